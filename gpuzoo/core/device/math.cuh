// Elementary functions in float32, written out so that every machine computes the same bits: only IEEE-exact operations
// in a fixed order, and a fused multiply-add only where fma() stands. No branches, so a loop over lanes vectorises, and
// one text serves a float and packs of floats (packed.cuh): GZ_MATHEMATICS at the end makes the functions of a type.
// Largest errors found, in ulp: sin, cos, log1p, atan2 1.55; tanh 1.35; exp, pow 1.05; log 0.95.
// What C's functions do at 0, infinity and NaN, these do; every NaN they return is 0x7fc00000, as machines disagree
// on the bits of a NaN that arithmetic makes.
// Polynomials are relative-error minimax fits (Remez exchange), their coefficients rounded to float32 one by one with
// the rest refitted; the comment gives the interval and the error of the rounded fit.

namespace gz {

constexpr float PI = 3.14159265358979f;
constexpr float TWO_PI = 6.28318530717959f;
constexpr float HALF_PI = 1.57079632679490f;

constexpr float TO_INT = 12582912.0f;  // 1.5 * 2^23: adding it rounds |x| < 2^22 to an integer, which is its low bits
constexpr float LN2 = 0.693147182f, LN2_LOW = -1.90465421e-9f;
constexpr float LOG2_E = 1.44269502f;
constexpr u32 TWO_THIRDS = 0x3f2aaaabu;
constexpr u32 EXPONENT = 0xff800000u;

GZ float infinity() { return as_float(0x7f800000u); }
GZ float not_a_number() { return as_float(0x7fc00000u); }

namespace math {

// What belongs to a type of numbers: truth values, and the bits as integers.
template <class X> using Mask = decltype(X() < X());
template <class X> using Bits = decltype(as_u32(X()));
template <class X> using Int = decltype(as_int(X()));

template <class X> GZ X one_nan(X x) { return select(x == x, x, X(not_a_number())); }

// c0 + c1 x + c2 x^2 + ... (Horner).
template <class X> GZ X poly(X, float c) { return X(c); }
template <class X, class... C> GZ X poly(X x, float c, C... rest) { return fma(poly(x, rest...), x, X(c)); }

// Python's x % y for finite y > 0: x - y floor(x / y), rounded once. Where the quotient rounds to the wrong side of an
// integer it rounds up, which r + y undoes. A tiny negative x gives y itself, as in Python; |x| >= 2^24 y gives 0.
template <class X> GZ X mod(X x, X y) {
  X q = x / y;
  X r = fma(-floor(q), y, x);
  r = select(r < 0.0f, r + y, r);
  return one_nan(select(abs(q) < 16777216.0f, r, x - x));
}

// ---- sine and cosine ----

// Both from one reduction to |r| <= pi/4: r = |x| - k pi/2, with pi/2 in three parts (Cody & Waite, "Software Manual
// for the Elementary Functions", 1980; with fma the first step is exact). Beyond 2^17 a finite angle is taken as 0.
template <class X> GZ void sincos(X x, X &s, X &c) {
  X a = abs(x);
  a = select(a <= 131072.0f, a, a - a);
  X t = fma(a, X(0.636619747f), X(TO_INT));
  X k = t - TO_INT;
  X r = fma(k, X(-1.57079637f), a);
  r = fma(k, X(4.37113883e-8f), r);
  r = fma(k, X(1.71512451e-15f), r);
  X z = r * r;
  // |r| <= 0.79: sin r = r + r^3 P(r^2), 2^-27.8; cos r = 1 - r^2/2 + r^4 P(r^2), 2^-32.8.
  X sine = fma(r * z, poly(z, -0.166666538f, 0.00833210628f, -0.000195078828f), r);
  X cosine = poly(z, 1.0f, -0.5f, 0.0416666456f, -0.00138873036f, 2.44312014e-5f);
  Bits<X> quadrant = as_u32(t);
  Mask<X> odd = (quadrant & 1u) != 0u;
  Bits<X> sin_sign = ((quadrant << 30) ^ as_u32(x)) & 0x80000000u;
  Bits<X> cos_sign = ((quadrant + 1u) << 30) & 0x80000000u;
  s = one_nan(as_float(as_u32(select(odd, cosine, sine)) ^ sin_sign));
  c = one_nan(as_float(as_u32(select(odd, sine, cosine)) ^ cos_sign));
}
template <class X> GZ X sin(X x) {
  X s, c;
  sincos(x, s, c);
  return s;
}
template <class X> GZ X cos(X x) {
  X s, c;
  sincos(x, s, c);
  return c;
}

// ---- exponentials ----

// e^r 2^k, where t is TO_INT + k. The power of two goes on in two halves: results below 2^-126 are rounded gradually.
// |r| <= ln(2)/2: e^r = 1 + r + r^2 P(r), 2^-28.2.
template <class X> GZ X exp_scaled(X r, X t) {
  X p = poly(r, 0.49999994f, 0.166665211f, 0.0416682884f, 0.00836868398f, 0.00138184207f);
  Int<X> k = Int<X>(as_u32(t) - as_u32(TO_INT));
  Bits<X> half = Bits<X>(k >> 1), rest = Bits<X>(k) - half;
  return (1.0f + fma(r * r, p, r)) * as_float((half + 127u) << 23) * as_float((rest + 127u) << 23);
}

// x = k ln(2) + r (Cody & Waite).
template <class X> GZ X exp(X x) {
  X a = clamp(x, X(-104.0f), X(89.0f));  // where e^x has become 0 and infinity
  X t = fma(a, X(LOG2_E), X(TO_INT));
  X k = t - TO_INT;
  X r = fma(k, X(-LN2_LOW), fma(k, X(-LN2), a));
  return one_nan(exp_scaled(r, t));
}

// 1 - 2 / (e^2x + 1); near 0, where that cancels, x + x^3 P(x^2), |x| <= 0.625, 2^-27.7.
template <class X> GZ X tanh(X x) {
  X a = abs(x), z = a * a;
  X p = poly(z, -0.333332807f, 0.133314058f, -0.0537365153f, 0.0206281673f, -0.00569229666f);
  X near = fma(a * z, p, a);
  X far = 1.0f - 2.0f / (math::exp(2.0f * a) + 1.0f);
  return one_nan(copysign(select(a < 0.625f, near, far), x));
}

// ---- logarithms ----

// k ln(2) + log(1 + f). f in [-1/3, 1/3]: log(1 + f) = f - f^2/2 + f^3 P(f), 2^-27.6.
template <class X> GZ X log_sum(X k, X f) {
  X p = poly(f, -0.5f, 0.333332151f, -0.249997929f, 0.200104609f, -0.166807786f, 0.140048623f, -0.121793576f,
             0.139899179f, -0.129163906f);
  return fma(k, X(LN2), fma(f * f, p, f));
}

// x = 2^k m with m in [2/3, 4/3); subnormals are scaled up first.
template <class X> GZ void split(X x, X &k, X &m) {
  Mask<X> tiny = x < 1.17549435e-38f;
  Bits<X> bits = as_u32(select(tiny, x * 8388608.0f, x));
  Bits<X> power = (bits - TWO_THIRDS) & EXPONENT;
  k = X(Int<X>(power) >> 23) - select(tiny, X(23.0f), X(0.0f));
  m = as_float(bits - power);
}

template <class X> GZ X log(X x) {
  X k, m;
  split(x, k, m);
  X y = log_sum(k, m - 1.0f);
  X beyond = select(x == 0.0f, X(-infinity()), X(not_a_number()));
  return select(x > 0.0f, select(x < infinity(), y, x), beyond);
}

// k is that of 1 + x, but f = 2^-k (1 + x) - 1 is taken from x itself, so that nothing of x is lost.
template <class X> GZ X log1p(X x) {
  Bits<X> power = (as_u32(1.0f + x) - TWO_THIRDS) & EXPONENT;
  X scale = 0.25f * as_float(0x40800000u - power);  // 2^-k; k reaches 128
  X y = copysign(log_sum(X(Int<X>(power) >> 23), fma(x, scale, scale - 1.0f)), x);
  X beyond = select(x == -1.0f, X(-infinity()), X(not_a_number()));
  return select(x > -1.0f, select(x < infinity(), y, x), beyond);
}

// ---- power ----

// Unevaluated sums of two numbers carry about 48 bits (Dekker, "A floating-point technique for extending the available
// precision", 1971).
template <class X> struct Pair {
  X high, low;
};
template <class X> GZ Pair<X> fast_sum(X a, X b) {  // |a| >= |b|
  X s = a + b;
  return {s, b - (s - a)};
}
template <class X> GZ Pair<X> operator*(Pair<X> a, Pair<X> b) {
  X p = a.high * b.high;
  return fast_sum(p, fma(a.high, b.high, -p) + fma(a.high, b.low, a.low * b.high));
}

// log2 of a positive finite x: log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| <= 1/5;
// atanh s = s + s^3 (1/3 + s^2 P(s^2)), 2^-34.5.
template <class X> GZ Pair<X> log2_pair(X x) {
  X k, m;
  split(x, k, m);
  X f = m - 1.0f;
  Pair<X> d = fast_sum(X(2.0f), f);
  X q = f / d.high;
  Pair<X> s = {q, fma(-q, d.low, fma(-q, d.high, f)) / d.high};
  Pair<X> z = s * s;
  Pair<X> c = fast_sum(X(0.333333343f), z.high * poly(z.high, 0.20000194f, 0.142629251f, 0.119343884f));
  c.low = c.low + -9.93410776e-9f;
  Pair<X> cube = s * (z * c);
  Pair<X> sum = fast_sum(s.high, cube.high);
  sum.low = sum.low + (s.low + cube.low);
  Pair<X> l = sum * Pair<X>{X(2.88539004f), X(3.85192607e-8f)};  // 2 / ln(2)
  Pair<X> y = fast_sum(k, l.high);                               // k is 0 or the larger
  return fast_sum(y.high, y.low + l.low);
}

// x^y = 2^(y log2|x|); a negative x takes an integer y, as in C.
template <class X> GZ X pow(X x, X y) {
  X a = abs(x);
  Mask<X> bounded = (a > 0.0f) & (a < infinity()), trivial = (a == 1.0f) | (y == 0.0f);
  Pair<X> l = log2_pair(a);
  X p = y * select(bounded, l.high, select(a > 0.0f, X(infinity()), X(-infinity())));
  X q = fma(y, l.low, fma(y, l.high, -p));
  q = select(abs(p) < 160.0f, q, X(0.0f));  // beyond it the result is 0 or infinity
  p = select(trivial, X(0.0f), clamp(p, X(-160.0f), X(160.0f)));
  X t = p + TO_INT;
  X magnitude = exp_scaled(fma(p - (t - TO_INT), X(LN2), q * LN2), t);
  Mask<X> integer = floor(y) == y;
  Mask<X> odd = integer & (floor(0.5f * y) != 0.5f * y);
  X result = as_float(as_u32(magnitude) | select(odd, as_u32(x) & 0x80000000u, Bits<X>(0u)));
  Mask<X> defined = (x == x) & (y == y) & ((x >= 0.0f) | integer | (a == infinity()));
  return select(defined | (x == 1.0f) | (y == 0.0f), result, X(not_a_number()));
}

// ---- arc tangent ----

// The angle of (x, y), from atan of the smaller over the larger: atan q = q + q^3 P(q^2), 0 <= q <= 1, 2^-28.4.
template <class X> GZ X atan2(X y, X x) {
  X ax = abs(x), ay = abs(y);
  Mask<X> steep = ay > ax, left = as_int(x) < 0;
  X small = select(steep, ax, ay), large = select(steep, ay, ax);
  X q = select(small == large, select(large == 0.0f, X(0.0f), X(1.0f)), small / large);
  X z = q * q;
  X p = poly(z, -0.333332986f, 0.199985296f, -0.142640159f, 0.109508812f, -0.0839931071f, 0.0578814521f,
             -0.0310969446f, 0.0108685475f, -0.00178274955f);
  X r = fma(q * z, p, q);
  r = select(steep ^ left, -r, r);
  X base = select(steep, X(HALF_PI), select(left, X(PI), X(0.0f)));
  X base_low = select(steep, X(-4.37113883e-8f), select(left, X(-8.74227766e-8f), X(0.0f)));
  return one_nan(copysign(base + (base_low + r), y));
}

}  // namespace math

// The functions of a type, which take what converts to it.
#define GZ_MATHEMATICS(X)                                                \
  GZ X mod(X x, X y) { return math::mod(x, y); }                         \
  GZ void sincos(X x, X &s, X &c) { math::sincos(x, s, c); }             \
  GZ X sin(X x) { return math::sin(x); }                                 \
  GZ X cos(X x) { return math::cos(x); }                                 \
  GZ X exp(X x) { return math::exp(x); }                                 \
  GZ X tanh(X x) { return math::tanh(x); }                               \
  GZ X log(X x) { return math::log(x); }                                 \
  GZ X log1p(X x) { return math::log1p(x); }                             \
  GZ X pow(X x, X y) { return math::pow(x, y); }                         \
  GZ X atan2(X y, X x) { return math::atan2(y, x); }
GZ_MATHEMATICS(float)

}  // namespace gz
