// How a function becomes a kernel. `name(a, offset, begin, end)` does the items from begin to end of the call whose
// arguments are `a`: on a GPU each thread has one item, on a CPU each thread has tiles of many, which the function goes
// through WIDE at a time. Arguments are members of 8 bytes; the first two are `items` and `threads`. On a CPU there is also
// an entry `name_rows` for some of the items, on the thread that calls it.

namespace gz {

#if defined(GZ_CUDA) || defined(GZ_SIMT)
constexpr int WIDE = 1;
constexpr int BLOCK = 128;
#define GZ_KERNEL(name, Arguments, tile)                                                              \
  extern "C" __global__ void __launch_bounds__(BLOCK) gz_##name(const Arguments a, i64 offset) {      \
    const i64 i = (i64)blockIdx.x * BLOCK + threadIdx.x;                                              \
    if (i < a.items) name(a, offset, i, i + 1);                                                       \
  }                                                                                                   \
  GZ_HOST(name, Arguments, tile)
#else
constexpr int WIDE = 32;
#define GZ_KERNEL(name, Arguments, tile) GZ_HOST(name, Arguments, tile)
#endif

template <class Arguments> struct Launching {
  const Arguments *arguments;
  i64 offset;
};

#if defined(GZ_CUDA)
#define GZ_HOST(name, Arguments, tile)
#elif defined(GZ_SIMT)
#define GZ_HOST(name, Arguments, tile)                                                                \
  static void name##_body(const void *pointer) {                                                      \
    const Launching<Arguments> &x = *(const Launching<Arguments> *)pointer;                           \
    gz_##name(*x.arguments, x.offset);                                                                \
  }                                                                                                   \
  extern "C" void gz_launch_##name##_rows(const Arguments *a, i64 offset, i64 begin, i64 end) {       \
    for (i64 i = begin; i < end; ++i) name(*a, offset, i, i + 1);                                     \
  }                                                                                                   \
  extern "C" void gz_launch_##name(const Arguments *a, i64 offset) {                                  \
    const Launching<Arguments> x = {a, offset};                                                       \
    simt_launch(name##_body, &x, (int)((a->items + BLOCK - 1) / BLOCK), BLOCK);                       \
  }
#else
#define GZ_HOST(name, Arguments, tile)                                                                \
  static void name##_range(const void *pointer, i64 begin, i64 end) {                                 \
    const Launching<Arguments> x = *(const Launching<Arguments> *)pointer;                            \
    const Arguments a = *x.arguments;                                                                 \
    name(a, x.offset, begin, end);                                                                    \
  }                                                                                                   \
  extern "C" void gz_launch_##name##_rows(const Arguments *a, i64 offset, i64 begin, i64 end) {       \
    const Launching<Arguments> x = {a, offset};                                                       \
    name##_range(&x, begin, end);                                                                     \
  }                                                                                                   \
  extern "C" void gz_launch_##name(const Arguments *a, i64 offset) {                                  \
    const Launching<Arguments> x = {a, offset};                                                       \
    parallel(name##_range, &x, a->items, tile, (int)a->threads);                                      \
  }
#endif

}  // namespace gz
