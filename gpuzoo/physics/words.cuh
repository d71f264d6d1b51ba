// What generated physics is written in: bare vector registers, not packs. g++ takes six times as long over thousands of
// packs, which are structs, for the same instructions.

#undef GZ_ROLLED  // a host's compiler, too, would make more text of these loops than it is worth
#if defined(GZ_CUDA) || defined(__clang__)
#define GZ_ROLLED _Pragma("unroll 1")
#else
#define GZ_ROLLED _Pragma("GCC unroll 1")
#endif

#if GZ_PACK_WIDTH == 1
using Vec = Pack;
GZ Vec vec(Pack x) { return x; }
#else
using Vec = Floats;
GZ Vec vec(Pack x) { return x.v; }
GZ Vec fma(Vec a, Vec b, Vec c) { return fma(Pack(a), Pack(b), Pack(c)).v; }
GZ Vec sqrt(Vec x) { return sqrt(Pack(x)).v; }
GZ Vec abs(Vec x) { return abs(Pack(x)).v; }
GZ Vec min(Vec a, Vec b) { return min(Pack(a), Pack(b)).v; }
GZ Vec max(Vec a, Vec b) { return max(Pack(a), Pack(b)).v; }
GZ Vec select(PackMask m, Vec a, Vec b) { return select(m, Pack(a), Pack(b)).v; }
GZ void sincos(Vec x, Vec &s, Vec &c) {
  Pack sine, cosine;
  sincos(Pack(x), sine, cosine);
  s = sine.v, c = cosine.v;
}
#endif
GZ PackMask less(Vec a, Vec b) { return Pack(a) < Pack(b); }
GZ Vec num(double x) { return vec(Pack(Real(x))); }

// In front of a model's dynamics whose contacts are in local memory. It is called in a step, at the beginning of an
// episode and in a rollout, and is so long that a copy in each of these places takes minutes to compile. Other models'
// dynamics are in registers, which a call would put on a stack.
#ifdef GZ_CUDA
#define GZ_CALLED static __device__ __noinline__
#else
#define GZ_CALLED GZ_SELDOM
#endif

// An array of a GPU's thread in shared memory, beside those of the block's other threads. With one index or with many it
// costs no register, and no local memory.
#ifdef GZ_CUDA
template <class T> struct Kept {
  T *first;
  GZ_MEMBER T &operator[](int i) const { return first[i * BLOCK]; }
};
#define GZ_KEPT(T, name, n)              \
  __shared__ T name##_of_block[n * BLOCK]; \
  const Kept<T> name = {name##_of_block + threadIdx.x}
#else
#define GZ_KEPT(T, name, n) T name[n]
#endif
