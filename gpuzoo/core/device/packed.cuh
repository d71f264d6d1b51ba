// Packs: the values of several envs in one vector register, for rules that are packed. Operations are those of IEEE in
// each env, so packs of any width give the same bits. What is written here for one width is written for all of them:
//   16 with AVX-512, 8 with AVX2 and FMA, 4 with NEON;
//   1 on a GPU, in the thread form on a host, and on other CPUs: then a Pack is a float.
// GZ_PACK_WIDTH forces a width. GZ_PACKED_DOUBLE makes packs of one double, which shows the error of a method without
// that of float32. One file: each operation stands beside its forms for the other instruction sets.

#ifndef GZ_PACK_WIDTH
#if GZ_THREADS || defined(GZ_PACKED_DOUBLE)
#define GZ_PACK_WIDTH 1
#elif defined(__AVX512F__) && defined(__AVX512DQ__)
#define GZ_PACK_WIDTH 16
#elif defined(__AVX2__) && defined(__FMA__)
#define GZ_PACK_WIDTH 8
#elif defined(__ARM_NEON)
#define GZ_PACK_WIDTH 4
#else
#define GZ_PACK_WIDTH 1
#endif
#endif

#if GZ_PACK_WIDTH == 1

namespace gz {

#ifdef GZ_PACKED_DOUBLE
using Real = double;
GZ double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
GZ double sqrt(double x) { return __builtin_sqrt(x); }
GZ double floor(double x) { return __builtin_floor(x); }
GZ double rint(double x) { return __builtin_rint(x); }
GZ double abs(double x) { return __builtin_fabs(x); }
GZ double copysign(double x, double sign) { return __builtin_copysign(x, sign); }
GZ double min(double a, double b) { return a < b ? a : b; }
GZ double max(double a, double b) { return a > b ? a : b; }
GZ double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }
GZ double select(bool m, double a, double b) { return m ? a : b; }
GZ double mod(double x, double y) { return x - y * floor(x / y); }
GZ double sin(double x) { return __builtin_sin(x); }
GZ double cos(double x) { return __builtin_cos(x); }
GZ void sincos(double x, double &s, double &c) { s = sin(x), c = cos(x); }
GZ double exp(double x) { return __builtin_exp(x); }
GZ double tanh(double x) { return __builtin_tanh(x); }
GZ double log(double x) { return __builtin_log(x); }
GZ double log1p(double x) { return __builtin_log1p(x); }
GZ double pow(double x, double y) { return __builtin_pow(x, y); }
GZ double atan2(double y, double x) { return __builtin_atan2(y, x); }
GZ bool is_nan(double x) { return x != x; }

// Where a literal is a float, as it is beside a pack of floats.
template <bool> struct Mixed;
template <> struct Mixed<true> {
  using Type = double;
};
template <class... X> using OfMixed = typename Mixed<(... || (sizeof(X) == 8)) && (... || (sizeof(X) == 4))>::Type;
#define GZ_MIXED(F) \
  template <class A, class B> GZ OfMixed<A, B> F(A a, B b) { return F((double)a, (double)b); }
GZ_MIXED(min)
GZ_MIXED(max)
GZ_MIXED(copysign)
GZ_MIXED(mod)
GZ_MIXED(pow)
GZ_MIXED(atan2)
template <class A, class B, class C> GZ OfMixed<A, B, C> fma(A a, B b, C c) {
  return fma((double)a, (double)b, (double)c);
}
template <class A, class B, class C> GZ OfMixed<A, B, C> clamp(A x, B low, C high) {
  return clamp((double)x, (double)low, (double)high);
}
#else
using Real = float;
#endif

using Pack = Real;
using PackInt = int;
using PackMask = bool;
GZ bool select(bool m, bool a, bool b) { return m ? a : b; }
GZ bool any(bool m) { return m; }
GZ bool all(bool m) { return m; }

}  // namespace gz

#else

// GNU's compiler is told the instructions where a loop over the numbers would be none: fma, sqrt, rounding, min, max and
// masks. (Including immintrin.h would take it 0.3 s.) LLVM's has operations on whole vectors; where it has not, it finds the
// instructions, but takes a hundred times as long over long rules.
#if defined(__clang__) && defined(__has_builtin)
#if __has_builtin(__builtin_elementwise_fma) && __has_builtin(__builtin_reduce_or)
#define GZ_VECTOR_BUILTINS 1
#endif
#endif
#if defined(__GNUC__) && !defined(__clang__)
#if GZ_PACK_WIDTH == 16 && defined(__AVX512F__) && defined(__AVX512DQ__)
#define GZ_AVX512
#elif GZ_PACK_WIDTH == 8 && defined(__AVX2__) && defined(__FMA__)
#define GZ_AVX2
#elif GZ_PACK_WIDTH == 4 && defined(__aarch64__)
#define GZ_NEON
#endif
#endif

namespace gz {

constexpr int PACK_WIDTH = GZ_PACK_WIDTH;
using Real = float;

template <class T> struct VectorOf {
  typedef T Type __attribute__((vector_size(sizeof(T) * PACK_WIDTH)));
};
using Floats = VectorOf<float>::Type;
using Ints = VectorOf<int>::Type;

// A truth value for each env: a bit of a mask register, or all bits of a number.
struct PackMask {
#ifdef GZ_AVX512
  using Register = unsigned short;
  static constexpr Register ONES = 0xffff;
#else
  using Register = Ints;
#endif
  Register m;
  PackMask() = default;
  GZ_MEMBER explicit PackMask(Register m) : m(m) {}
#ifdef GZ_AVX512
  GZ_MEMBER PackMask(bool x) : m(x ? ONES : 0) {}
  GZ_MEMBER bool operator[](int k) const { return m >> k & 1; }
#else
  GZ_MEMBER PackMask(bool x) : m(Ints{} - (int)x) {}
  GZ_MEMBER bool operator[](int k) const { return m[k] != 0; }
#endif
  GZ_MEMBER friend PackMask operator&(PackMask a, PackMask b) { return PackMask((Register)(a.m & b.m)); }
  GZ_MEMBER friend PackMask operator|(PackMask a, PackMask b) { return PackMask((Register)(a.m | b.m)); }
  GZ_MEMBER friend PackMask operator^(PackMask a, PackMask b) { return PackMask((Register)(a.m ^ b.m)); }
  GZ_MEMBER friend PackMask operator!(PackMask a) { return PackMask((Register)~a.m); }
  GZ_MEMBER friend PackMask &operator&=(PackMask &a, PackMask b) { return a = a & b; }
  GZ_MEMBER friend PackMask &operator|=(PackMask &a, PackMask b) { return a = a | b; }
  GZ_MEMBER friend PackMask &operator^=(PackMask &a, PackMask b) { return a = a ^ b; }
};

// A float never becomes an integer by itself: with packs of one, the operation would be one of floats.
struct Nothing {};
template <class T> struct Literals {
  using Other = int;  // an int or a u32 makes either integer pack
  using Refused = float;
};
template <> struct Literals<int> {
  using Other = u32;
  using Refused = float;
};
template <> struct Literals<float> {
  struct Other {
    operator float() const;
  };
  using Refused = Nothing;
};

// Numbers of one type, one for each env.
template <class T> struct Packed {
  using Vector = typename VectorOf<T>::Type;
  Vector v;
  Packed() = default;
  GZ_MEMBER Packed(Vector v) : v(v) {}
  GZ_MEMBER Packed(T x) : v(x - Vector{}) {}
  GZ_MEMBER Packed(typename Literals<T>::Other x) : Packed((T)x) {}
  Packed(typename Literals<T>::Refused) = delete;
  template <class S> GZ_MEMBER explicit Packed(const Packed<S> &x) : v(__builtin_convertvector(x.v, Vector)) {}
  GZ_MEMBER T operator[](int k) const { return v[k]; }
  GZ_MEMBER friend Packed operator+(Packed a, Packed b) { return a.v + b.v; }
  GZ_MEMBER friend Packed operator-(Packed a, Packed b) { return a.v - b.v; }
  GZ_MEMBER friend Packed operator*(Packed a, Packed b) { return a.v * b.v; }
  GZ_MEMBER friend Packed operator/(Packed a, Packed b) { return a.v / b.v; }
  GZ_MEMBER friend Packed operator-(Packed a) { return -a.v; }
  GZ_MEMBER friend Packed &operator+=(Packed &a, Packed b) { return a = a + b; }
  GZ_MEMBER friend Packed &operator-=(Packed &a, Packed b) { return a = a - b; }
  GZ_MEMBER friend Packed &operator*=(Packed &a, Packed b) { return a = a * b; }
  GZ_MEMBER friend Packed &operator/=(Packed &a, Packed b) { return a = a / b; }
};
using Pack = Packed<float>;
using PackInt = Packed<int>;
using PackBits = Packed<u32>;

// ---- integers ----

#define GZ_INTEGERS(X)                                                        \
  GZ X operator%(X a, X b) { return a.v % b.v; }                              \
  GZ X operator&(X a, X b) { return a.v & b.v; }                              \
  GZ X operator|(X a, X b) { return a.v | b.v; }                              \
  GZ X operator^(X a, X b) { return a.v ^ b.v; }                              \
  GZ X operator~(X a) { return ~a.v; }                                        \
  GZ X operator<<(X a, int n) { return a.v << n; }                            \
  GZ X operator>>(X a, int n) { return a.v >> n; }                            \
  GZ X &operator&=(X &a, X b) { return a = a & b; }                           \
  GZ X &operator|=(X &a, X b) { return a = a | b; }                           \
  GZ X &operator^=(X &a, X b) { return a = a ^ b; }
GZ_INTEGERS(PackInt)
GZ_INTEGERS(PackBits)

GZ PackBits as_u32(Pack x) { return (PackBits::Vector)x.v; }
GZ PackInt as_int(Pack x) { return (Ints)x.v; }
GZ Pack as_float(PackBits x) { return (Floats)x.v; }

// ---- comparisons, choices and what else is an instruction ----

#ifdef GZ_AVX512

#define GZ_COMPARISON(OP, FLOATS, INTS)                                                                      \
  GZ PackMask operator OP(Pack a, Pack b) {                                                                  \
    return PackMask((PackMask::Register)__builtin_ia32_cmpps512_mask(a.v, b.v, FLOATS, PackMask::ONES, 4));  \
  }                                                                                                          \
  GZ PackMask operator OP(PackInt a, PackInt b) {                                                            \
    return PackMask((PackMask::Register)__builtin_ia32_cmpd512_mask(a.v, b.v, INTS, PackMask::ONES));        \
  }                                                                                                          \
  GZ PackMask operator OP(PackBits a, PackBits b) {                                                          \
    return PackMask((PackMask::Register)__builtin_ia32_ucmpd512_mask((Ints)a.v, (Ints)b.v, INTS, PackMask::ONES)); \
  }
GZ_COMPARISON(<, 17, 1)
GZ_COMPARISON(<=, 18, 2)
GZ_COMPARISON(>, 30, 6)
GZ_COMPARISON(>=, 29, 5)
GZ_COMPARISON(==, 0, 0)
GZ_COMPARISON(!=, 4, 4)

GZ Pack select(PackMask m, Pack a, Pack b) { return (Floats)__builtin_ia32_blendmps_512_mask(b.v, a.v, m.m); }
GZ PackInt select(PackMask m, PackInt a, PackInt b) { return (Ints)__builtin_ia32_blendmd_512_mask(b.v, a.v, m.m); }
GZ bool any(PackMask m) { return m.m != 0; }
GZ bool all(PackMask m) { return m.m == PackMask::ONES; }
GZ Pack fma(Pack a, Pack b, Pack c) { return (Floats)__builtin_ia32_vfmaddps512_mask(a.v, b.v, c.v, PackMask::ONES, 4); }
GZ Pack sqrt(Pack x) { return (Floats)__builtin_ia32_sqrtps512_mask(x.v, Floats{}, PackMask::ONES, 4); }
GZ Pack floor(Pack x) { return (Floats)__builtin_ia32_rndscaleps_mask(x.v, 9, Floats{}, PackMask::ONES, 4); }
GZ Pack rint(Pack x) { return (Floats)__builtin_ia32_rndscaleps_mask(x.v, 8, Floats{}, PackMask::ONES, 4); }
// These instructions are comparisons: where one is not a number, or both are zeros, the result is b.
GZ Pack min(Pack a, Pack b) { return (Floats)__builtin_ia32_minps512_mask(a.v, b.v, Floats{}, PackMask::ONES, 4); }
GZ Pack max(Pack a, Pack b) { return (Floats)__builtin_ia32_maxps512_mask(a.v, b.v, Floats{}, PackMask::ONES, 4); }
typedef char Bytes __attribute__((vector_size(16)));
GZ PackMask mask_of(const u8 *flags) {
  Bytes bytes;
  __builtin_memcpy(&bytes, flags, sizeof(bytes));
  return PackInt((Ints)__builtin_ia32_pmovsxbd512_mask(bytes, Ints{}, PackMask::ONES)) != PackInt(0);
}
GZ void bytes_of(PackMask m, u8 *flags) {
  const Ints numbers = select(m, PackInt(1), PackInt(0)).v;
  const Bytes bytes = (Bytes)__builtin_ia32_pmovdb512_mask(numbers, Bytes{}, PackMask::ONES);
  __builtin_memcpy(flags, &bytes, sizeof(bytes));
}

#else

#define GZ_COMPARISON(OP)                                                         \
  GZ PackMask operator OP(Pack a, Pack b) { return PackMask(a.v OP b.v); }        \
  GZ PackMask operator OP(PackInt a, PackInt b) { return PackMask(a.v OP b.v); }  \
  GZ PackMask operator OP(PackBits a, PackBits b) { return PackMask(a.v OP b.v); }
GZ_COMPARISON(<)
GZ_COMPARISON(<=)
GZ_COMPARISON(>)
GZ_COMPARISON(>=)
GZ_COMPARISON(==)
GZ_COMPARISON(!=)

GZ Pack select(PackMask m, Pack a, Pack b) { return m.m ? a.v : b.v; }
GZ PackInt select(PackMask m, PackInt a, PackInt b) { return m.m ? a.v : b.v; }
GZ PackMask mask_of(const u8 *flags) {
  Ints m;
  for (int k = 0; k < PACK_WIDTH; ++k) m[k] = -(flags[k] != 0);
  return PackMask(m);
}
GZ void bytes_of(PackMask m, u8 *flags) {
  for (int k = 0; k < PACK_WIDTH; ++k) flags[k] = (u8)(m.m[k] & 1);
}

#ifdef GZ_AVX2
GZ bool any(PackMask m) { return __builtin_ia32_movmskps256((Floats)m.m) != 0; }
GZ bool all(PackMask m) { return __builtin_ia32_movmskps256((Floats)m.m) == 0xff; }
GZ Pack fma(Pack a, Pack b, Pack c) { return __builtin_ia32_vfmaddps256(a.v, b.v, c.v); }
GZ Pack sqrt(Pack x) { return __builtin_ia32_sqrtps256(x.v); }
GZ Pack floor(Pack x) { return __builtin_ia32_roundps256(x.v, 9); }
GZ Pack rint(Pack x) { return __builtin_ia32_roundps256(x.v, 8); }
GZ Pack min(Pack a, Pack b) { return __builtin_ia32_minps256(a.v, b.v); }
GZ Pack max(Pack a, Pack b) { return __builtin_ia32_maxps256(a.v, b.v); }
#else
GZ Pack min(Pack a, Pack b) { return select(a < b, a, b); }
GZ Pack max(Pack a, Pack b) { return select(a > b, a, b); }
#if GZ_VECTOR_BUILTINS
GZ bool any(PackMask m) { return __builtin_reduce_or(m.m) != 0; }
#else
GZ bool any(PackMask m) {
  int found = 0;
  for (int k = 0; k < PACK_WIDTH; ++k) found |= m.m[k];
  return found != 0;
}
#endif
GZ bool all(PackMask m) { return !any(!m); }
#ifdef GZ_NEON
GZ Pack fma(Pack a, Pack b, Pack c) { return __builtin_aarch64_fmav4sf(a.v, b.v, c.v); }
GZ Pack sqrt(Pack x) { return __builtin_aarch64_sqrtv4sf(x.v); }
GZ Pack floor(Pack x) { return __builtin_aarch64_floorv4sf(x.v); }
GZ Pack rint(Pack x) { return __builtin_aarch64_rintv4sf(x.v); }
#elif GZ_VECTOR_BUILTINS
GZ Pack fma(Pack a, Pack b, Pack c) { return __builtin_elementwise_fma(a.v, b.v, c.v); }
GZ Pack sqrt(Pack x) { return __builtin_elementwise_sqrt(x.v); }
GZ Pack floor(Pack x) { return __builtin_elementwise_floor(x.v); }
GZ Pack rint(Pack x) { return __builtin_elementwise_rint(x.v); }
#else
template <class F> GZ Pack by_number(F f) {
  Floats r;
  for (int k = 0; k < PACK_WIDTH; ++k) r[k] = f(k);
  return r;
}
GZ Pack fma(Pack a, Pack b, Pack c) {
  return by_number([&](int k) { return fma(a[k], b[k], c[k]); });
}
GZ Pack sqrt(Pack x) {
  return by_number([&](int k) { return sqrt(x[k]); });
}
GZ Pack floor(Pack x) {
  return by_number([&](int k) { return floor(x[k]); });
}
GZ Pack rint(Pack x) {
  return by_number([&](int k) { return rint(x[k]); });
}
#endif
#endif
#endif

// ---- the rest follows ----

GZ PackBits select(PackMask m, PackBits a, PackBits b) {
  return (PackBits::Vector)select(m, PackInt((Ints)a.v), PackInt((Ints)b.v)).v;
}
GZ PackMask select(PackMask m, PackMask a, PackMask b) { return (m & a) | (!m & b); }
GZ Pack select(PackMask m, float a, float b) { return select(m, Pack(a), Pack(b)); }
GZ PackInt select(PackMask m, int a, int b) { return select(m, PackInt(a), PackInt(b)); }
GZ PackInt min(PackInt a, PackInt b) { return select(a < b, a, b); }
GZ PackInt max(PackInt a, PackInt b) { return select(a > b, a, b); }
GZ PackInt abs(PackInt x) { return select(x < PackInt(0), -x, x); }
GZ PackInt clamp(PackInt x, PackInt low, PackInt high) { return select(x < low, low, select(x > high, high, x)); }
GZ Pack clamp(Pack x, Pack low, Pack high) { return select(x < low, low, select(x > high, high, x)); }
GZ Pack abs(Pack x) { return as_float(as_u32(x) & 0x7fffffffu); }
GZ Pack copysign(Pack x, Pack sign) { return as_float((as_u32(x) & 0x7fffffffu) | (as_u32(sign) & 0x80000000u)); }
GZ PackMask is_nan(Pack x) { return x != x; }

GZ_MATHEMATICS(Pack)

// ---- random numbers: those of each env ----

struct PackSeed {
  u64 x[PACK_WIDTH];
};
GZ PackBits random_bits(const PackSeed &seed, PackBits episode, PackInt step, u32 agent, u32 draw) {
  u32 bits[PACK_WIDTH], episodes[PACK_WIDTH], steps[PACK_WIDTH];
  __builtin_memcpy(episodes, &episode, sizeof(episodes));
  __builtin_memcpy(steps, &step, sizeof(steps));
  GZ_INDEPENDENT
  for (int k = 0; k < PACK_WIDTH; ++k) bits[k] = random_bits(seed.x[k], episodes[k], steps[k], agent, draw);
  PackBits out;
  __builtin_memcpy(&out, bits, sizeof(out));
  return out;
}
GZ PackBits mulhi(PackBits a, u32 b) {
  u32 x[PACK_WIDTH];
  __builtin_memcpy(x, &a, sizeof(x));
  for (int k = 0; k < PACK_WIDTH; ++k) x[k] = mulhi(x[k], b);
  __builtin_memcpy(&a, x, sizeof(x));
  return a;
}
GZ Pack unit_float(PackBits bits) { return Pack(PackInt(bits >> 8)) * UNIT; }

// ---- places ----

// Which envs a pack stands for. Lanes behind `count` repeat the first one, so that they change no any() and no all().
struct Place {
  i64 env[PACK_WIDTH];
  int count;
  bool neighbours;  // PACK_WIDTH of them
};

GZ Place place_of(const i64 *envs, i64 count) {
  Place at;
  at.count = count < PACK_WIDTH ? (int)count : PACK_WIDTH;
  for (int w = 0; w < PACK_WIDTH; ++w) at.env[w] = envs[w < at.count ? w : 0];
  at.neighbours = at.count == PACK_WIDTH;
  for (int w = 1; w < PACK_WIDTH; ++w) at.neighbours &= at.env[w] == at.env[0] + w;
  return at;
}
GZ Place place_at(i64 first) {
  Place at;
  for (int w = 0; w < PACK_WIDTH; ++w) at.env[w] = first + w;
  at.count = PACK_WIDTH;
  at.neighbours = true;
  return at;
}

// f(w, i) for each env i of the pack and its lane w.
template <class F> GZ void each_env(const Place &at, F f) {
  if (at.neighbours) {
    const i64 first = at.env[0];
    GZ_INDEPENDENT
    for (int w = 0; w < PACK_WIDTH; ++w) f(w, first + w);
  } else {
    for (int w = 0; w < at.count; ++w) f(w, at.env[w]);
  }
}

// ---- between memory and registers: fields lie with the envs side by side ----

template <class P, class T> GZ P fetched(const T *from, const Place &at) {
  P x;
  if (at.neighbours) {
    __builtin_memcpy(&x, from + at.env[0], sizeof(x));
  } else {
    T numbers[PACK_WIDTH];
    for (int w = 0; w < PACK_WIDTH; ++w) numbers[w] = from[at.env[w]];
    __builtin_memcpy(&x, numbers, sizeof(x));
  }
  return x;
}
GZ void fetch(Pack &x, const float *from, const Place &at) { x = fetched<Pack>(from, at); }
GZ void fetch(PackInt &x, const int *from, const Place &at) { x = fetched<PackInt>(from, at); }
GZ void fetch(PackBits &x, const u32 *from, const Place &at) { x = fetched<PackBits>(from, at); }
GZ void fetch(PackSeed &x, const u64 *from, const Place &at) { x = fetched<PackSeed>(from, at); }
GZ void fetch(PackMask &x, const u8 *from, const Place &at) {
  if (at.neighbours) return (void)(x = mask_of(from + at.env[0]));
  u8 flags[PACK_WIDTH];
  for (int w = 0; w < PACK_WIDTH; ++w) flags[w] = from[at.env[w]];
  x = mask_of(flags);
}

// Writes the lanes that `here` holds. Those of neighbours are one write, which leaves what the others had.
template <class T, class P> GZ void keep(T *to, const Place &at, PackMask here, P x) {
  if (at.neighbours) {
    if (!all(here)) x = select(here, x, fetched<P>(to, at));
    __builtin_memcpy(to + at.env[0], &x, sizeof(x));
  } else {
    T numbers[PACK_WIDTH];
    __builtin_memcpy(numbers, &x, sizeof(x));
    for (int w = 0; w < at.count; ++w)
      if (here[w]) to[at.env[w]] = numbers[w];
  }
}
GZ void keep(u8 *to, const Place &at, PackMask here, PackMask x) {
  for (int w = 0; w < at.count; ++w)
    if (here[w]) to[at.env[w]] = x[w];
}

// Rows of numbers, one of each env, from packs.
template <int SIZE, class T> GZ void write_rows(T *rows, i64 stride, const Place &at, PackMask here, const Pack *packs) {
  const float *numbers = reinterpret_cast<const float *>(packs);
  for (int w = 0; w < at.count; ++w) {
    if (!here[w]) continue;
    T *row = rows + at.env[w] * stride;
    for (int k = 0; k < SIZE; ++k) row[k] = numbers[k * PACK_WIDTH + w];
  }
}

}  // namespace gz

#endif
