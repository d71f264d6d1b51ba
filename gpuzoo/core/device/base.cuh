// The machine below the dialect. Three compile environments share every other file of this folder:
//   CUDA      (NVRTC)                  one thread per lane
//   CPU       (any host C++17 compiler)  one loop over the lanes
//   GZ_SIMT   (host compiler, tests)   the CUDA form on the host, one thread per lane
// GZ_THREADS is 1 in the first and the last. Only IEEE-exact operations stand here, so the same expression gives the
// same bits in all three.
//
// GZ stands in front of a function, GZ_MEMBER in front of a member function: both are always inlined. GZ_SELDOM stands
// in front of a function that is called seldom. On a host it is not inlined, as every copy of the rules costs time to
// compile; on a GPU a call would cost a stack. GZ_FLAT is GZ_SELDOM for a long function with regions: a host inlines all of
// them, as it vectorises no loop over lanes that calls a function. GZ_ROLLED stands in front of a loop that a GPU would
// unroll into more registers than it is worth, and GZ_ROLLED_ON_GPU in front of one that a host must unroll, besides, to
// vectorise the loop around it. GZ_STORE is how a kernel of walk_gpu.cuh takes the Store: a GPU by value, in constant
// memory.

#if defined(__CUDACC_RTC__) || defined(__CUDACC__)
#define GZ_CUDA 1
#define GZ_THREADS 1
#define GZ static __device__ __forceinline__
#define GZ_MEMBER __device__ __forceinline__
#define GZ_SELDOM GZ
#define GZ_FLAT GZ
#define GZ_UNROLL _Pragma("unroll")
#define GZ_ROLLED _Pragma("unroll 1")
#define GZ_ROLLED_ON_GPU GZ_ROLLED
#define GZ_INDEPENDENT
#define GZ_STORE const __grid_constant__ Store
#else
#define GZ static inline __attribute__((always_inline))
#define GZ_MEMBER inline __attribute__((always_inline))
#define GZ_SELDOM static __attribute__((noinline))
#ifdef __clang__  // it takes minutes for what is flattened
#define GZ_FLAT GZ_SELDOM
#else
#define GZ_FLAT static __attribute__((noinline, flatten))
#endif
#define GZ_ROLLED
#define GZ_ROLLED_ON_GPU GZ_UNROLL
#define GZ_STORE const Store &
#ifdef GZ_SIMT
#define GZ_THREADS 1
#else
#define GZ_THREADS 0
#endif
#if defined(__clang__)
#define GZ_UNROLL _Pragma("unroll")
#define GZ_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define GZ_UNROLL _Pragma("GCC unroll 64")
#define GZ_INDEPENDENT _Pragma("GCC ivdep")
#endif
#ifdef GZ_DEBUG  // iterations that go wrong write to one place
#undef GZ_INDEPENDENT
#define GZ_INDEPENDENT
#endif
#endif

namespace gz {

using u8 = unsigned char;
using i8 = signed char;
using i16 = short;
using i32 = int;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;

// The type of index from which the machine computes addresses fastest.
#if GZ_THREADS
using Index = int;
#else
using Index = i64;
#endif

constexpr int INT_LIMIT = 0x7fffffff;

#ifdef GZ_CUDA
GZ u32 as_u32(float x) { return __float_as_uint(x); }
GZ float as_float(u32 x) { return __uint_as_float(x); }
GZ float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
GZ float sqrt(float x) { return __fsqrt_rn(x); }
GZ float floor(float x) { return floorf(x); }
GZ float rint(float x) { return rintf(x); }
GZ u32 mulhi(u32 a, u32 b) { return __umulhi(a, b); }
GZ int popcount(u64 x) { return __popcll(x); }
// Returns x. The compiler knows nothing of the result, so it loads x before this point, and computes what depends on it
// after this point.
template <class T> GZ T anew(T x) {
  if constexpr (sizeof(T) < 4)
    return (T)anew((u32)x);
  else if constexpr (sizeof(T) == 8)
    asm volatile("" : "+l"(x));
  else if constexpr ((T)0.5f != 0)
    asm volatile("" : "+f"(x));
  else
    asm volatile("" : "+r"(x));
  return x;
}
#else
GZ u32 as_u32(float x) { u32 y; __builtin_memcpy(&y, &x, 4); return y; }
GZ float as_float(u32 x) { float y; __builtin_memcpy(&y, &x, 4); return y; }
GZ float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
GZ float sqrt(float x) { return __builtin_sqrtf(x); }
GZ float floor(float x) { return __builtin_floorf(x); }
GZ float rint(float x) { return __builtin_rintf(x); }
GZ u32 mulhi(u32 a, u32 b) { return (u32)(((u64)a * b) >> 32); }
GZ int popcount(u64 x) { return __builtin_popcountll(x); }
template <class T> GZ T anew(T x) { return x; }
// The signs of 8, 16 or 32 bytes, a bit for each.
template <int COUNT> GZ u64 signs_of(const i8 *bytes) {
#ifdef __SSE2__
  if constexpr (COUNT == 16) {
    typedef char Bytes __attribute__((vector_size(16)));
    Bytes x;
    __builtin_memcpy(&x, bytes, 16);
    return (u64)__builtin_ia32_pmovmskb128(x);
  }
#endif
#ifdef __AVX2__
  if constexpr (COUNT == 32) {
    typedef char Bytes __attribute__((vector_size(32)));
    Bytes x;
    __builtin_memcpy(&x, bytes, 32);
    return (u64)(u32)__builtin_ia32_pmovmskb256(x);
  }
#endif
  if constexpr (COUNT > 8) {
    return signs_of<COUNT / 2>(bytes) | signs_of<COUNT / 2>(bytes + COUNT / 2) << COUNT / 2;
  } else {
    u64 x;
    __builtin_memcpy(&x, bytes, 8);
    return (x >> 7 & 0x0101010101010101ull) * 0x0102040810204080ull >> 56;
  }
}
// The lowest eight bits of x, a byte for each.
GZ u64 bytes_of_bits(u64 x) {
#if defined(__BMI2__) && !defined(GZ_SIMT)
  return __builtin_ia32_pdep_di(x, 0x0101010101010101ull);
#else
  const u64 single = (x & 255ull) * 0x0101010101010101ull & 0x8040201008040201ull;
  return (single + 0x7f7f7f7f7f7f7f7full) >> 7 & 0x0101010101010101ull;
#endif
}
template <class T> GZ void put_bytes(u8 *to, T bytes) { __builtin_memcpy(to, &bytes, sizeof(T)); }
#ifdef __SSSE3__
typedef char Bytes16 __attribute__((vector_size(16)));
typedef u64 Words16 __attribute__((vector_size(16)));
#endif
#if defined(__AVX512BW__) && defined(__AVX512VL__)
typedef char Bytes32 __attribute__((vector_size(32)));
typedef char Bytes64 __attribute__((vector_size(64)));
#if __has_builtin(__builtin_ia32_selectb_512)  // Clang
GZ Bytes16 only_where(u64 x, Bytes16 bytes) { return __builtin_ia32_selectb_128((unsigned short)x, bytes, Bytes16{}); }
GZ Bytes32 only_where(u64 x, Bytes32 bytes) { return __builtin_ia32_selectb_256((u32)x, bytes, Bytes32{}); }
GZ Bytes64 only_where(u64 x, Bytes64 bytes) { return __builtin_ia32_selectb_512(x, bytes, Bytes64{}); }
#else
GZ Bytes16 only_where(u64 x, Bytes16 bytes) { return __builtin_ia32_movdquqi128_mask(bytes, Bytes16{}, (unsigned short)x); }
GZ Bytes32 only_where(u64 x, Bytes32 bytes) { return __builtin_ia32_movdquqi256_mask(bytes, Bytes32{}, (u32)x); }
GZ Bytes64 only_where(u64 x, Bytes64 bytes) { return __builtin_ia32_movdquqi512_mask(bytes, Bytes64{}, x); }
#endif
#elif defined(__SSSE3__)
GZ Words16 only_where(u64 x, u64 value) {
  const Words16 both = {x, x}, bit = {0x8040201008040201ull, 0x8040201008040201ull};
  const Bytes16 eight = (Bytes16)both;
  const Bytes16 bits = __builtin_shufflevector(eight, eight, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
  const u64 bytes = 0x0101010101010101ull * value;
  return (Words16)((bits & (Bytes16)bit) != 0) & Words16{bytes, bytes};
}
#endif
#if defined(__SSSE3__) && !defined(GZ_SIMT)
#define GZ_LOOKS_UP_BYTES 1
// Entries of a table of 32 bytes, by the lowest five bits of each byte of three words.
GZ Words16 entries_of(const u8 *table, u32 x, u32 y, u32 z) {
  typedef u32 Quarters __attribute__((vector_size(16)));
  Bytes16 low, high;
  __builtin_memcpy(&low, table, 16);
  __builtin_memcpy(&high, table + 16, 16);
  const Bytes16 index = (Bytes16)Quarters{x, y, z, 0u}, place = index & (Bytes16{} + (char)15);
  const Bytes16 from_low = (Bytes16)__builtin_ia32_pshufb128(low, place);
  const Bytes16 from_high = (Bytes16)__builtin_ia32_pshufb128(high, place);
  return (Words16)((index & (Bytes16{} + (char)16)) != 0 ? from_high : from_low);
}
#else
#define GZ_LOOKS_UP_BYTES 0
#endif
// The lowest BITS bits of the first N bytes of each half of x, one after the other.
template <int BITS, int N> GZ u64 packed_halves(u64 x) {
  constexpr u64 HALF = (0x01010101u >> 32 - 8 * N) * ((1u << BITS) - 1u), BOTH = HALF | HALF << 32;
#if defined(__BMI2__) && !defined(__znver1__) && !defined(__znver2__)  // these take dozens of cycles for the instruction
  return __builtin_ia32_pext_di(x, BOTH);
#else
  const u64 single = x & BOTH, odd = single & 0xff00ff00ff00ff00ull, pairs = (single ^ odd) | odd >> 8 - BITS;
  const u64 later = pairs & 0xffff0000ffff0000ull, fours = (pairs ^ later) | later >> 16 - 2 * BITS;
  return (fours & 0xffffffffull) | fours >> 32 << N * BITS;
#endif
}
// Of 8, 16, 32 or 64 bytes those are `value` where x has a bit, and the others are 0.
template <int COUNT> GZ void write_bytes_of_bits(u8 *to, u64 x, int value) {
  if constexpr (COUNT == 8) put_bytes(to, bytes_of_bits(x) * (u64)value);
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  if constexpr (COUNT == 16) put_bytes(to, only_where(x, Bytes16{} + (char)value));
  if constexpr (COUNT == 32) put_bytes(to, only_where(x, Bytes32{} + (char)value));
  if constexpr (COUNT == 64) put_bytes(to, only_where(x, Bytes64{} + (char)value));
#else
#ifdef __SSSE3__
  if constexpr (COUNT == 16) return put_bytes(to, only_where(x, (u64)value));
#endif
  if constexpr (COUNT > 8) {
    write_bytes_of_bits<COUNT / 2>(to, x, value);
    write_bytes_of_bits<COUNT / 2>(to + COUNT / 2, x >> COUNT / 2, value);
  }
#endif
}
// Of 4 or 8 numbers those are `value` where x has a bit, from its bit `first` on, and the others are 0.
template <int COUNT> GZ void write_floats_of_bits(float *to, u64 x, int first, int value) {
  typedef u32 Words __attribute__((vector_size(4 * COUNT)));
  const u32 single[8] = {1, 2, 4, 8, 16, 32, 64, 128};
  Words bit;
  __builtin_memcpy(&bit, single, sizeof(bit));
  // Neighbours share this word, so that it is broadcast once for all of them.
  const int begin = first % 32 + COUNT <= 32 ? first / 32 * 32 : first;
  const Words word = Words{} + (u32)(x >> begin), number = Words{} + as_u32((float)value);
  bit <<= first - begin;
  const Words numbers = (Words)((word & bit) == bit) & number;
  __builtin_memcpy(to, &numbers, sizeof(numbers));
}
#ifdef __AVX512F__
typedef float Floats16 __attribute__((vector_size(64)));
#if __has_builtin(__builtin_ia32_selectps_512)  // Clang
GZ Floats16 only_where(u64 x, Floats16 floats) { return __builtin_ia32_selectps_512((unsigned short)x, floats, Floats16{}); }
#else
GZ Floats16 only_where(u64 x, Floats16 floats) { return __builtin_ia32_movaps512_mask(floats, Floats16{}, (unsigned short)x); }
#endif
#endif
// The place of a thread's own array, in whole cache lines. Compilers would look it up at each use, by a call.
template <class T> GZ T *found_once(T *array) {
  __asm__("" : "+r"(array));
  return (T *)__builtin_assume_aligned(array, 64);
}
#endif

// CUDA's fminf and x86's minps disagree on NaN and on signed zeros; a comparison does not.
GZ float min(float a, float b) { return a < b ? a : b; }
GZ float max(float a, float b) { return a > b ? a : b; }
GZ int min(int a, int b) { return a < b ? a : b; }
GZ int max(int a, int b) { return a > b ? a : b; }
GZ float clamp(float x, float low, float high) { return x < low ? low : x > high ? high : x; }
// With `low` first, ptxas 12.6 to 13.3 makes code for Hopper in which `clamp(x, 0, n) == n` is wrong.
GZ int clamp(int x, int low, int high) { return x > high ? high : x < low ? low : x; }
GZ float abs(float x) { return as_float(as_u32(x) & 0x7fffffffu); }
GZ int abs(int x) { return x < 0 ? -x : x; }
GZ float copysign(float x, float sign) { return as_float((as_u32(x) & 0x7fffffffu) | (as_u32(sign) & 0x80000000u)); }
GZ bool is_nan(float x) { return x != x; }
GZ int as_int(float x) { return (int)as_u32(x); }

// m ? a : b, for what is written for one number and for packs of them.
GZ float select(bool m, float a, float b) { return m ? a : b; }
GZ int select(bool m, int a, int b) { return m ? a : b; }
GZ u32 select(bool m, u32 a, u32 b) { return m ? a : b; }

// `put` writes a value where something happens. Given a bool, it branches. Given a Blend, it always writes, the old
// value where nothing happens: loops over envs with such writes are vectorised. It works on bits, as g++ makes
// `on ? x : y` a store that happens or not.
struct Blend {
  u8 on;
};
template <class T> GZ void put(bool here, T &place, T value) {
  if (here) place = value;
}
template <class T> GZ void put(Blend here, T &place, T value) {
  place = (T)(place ^ ((value ^ place) & (T)-here.on));
}
GZ void put(Blend here, float &place, float value) {
  const u32 old = as_u32(place);
  place = as_float(old ^ ((as_u32(value) ^ old) & (u32)-here.on));
}

}  // namespace gz
