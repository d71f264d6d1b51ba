// Elementary functions in float32, written out so that every machine computes the same bits: only IEEE-exact operations
// in a fixed order, and a fused multiply-add only where fma() stands. No branches, so a loop over lanes vectorises.
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
GZ float one_nan(float x) { return x == x ? x : not_a_number(); }

// c0 + c1 x + c2 x^2 + ... (Horner).
GZ float poly(float, float c) { return c; }
template <class... C> GZ float poly(float x, float c, C... rest) { return fma(poly(x, rest...), x, c); }

// Python's x % y for finite y > 0: x - y floor(x / y), rounded once. Where the quotient rounds to the wrong side of an
// integer it rounds up, which r + y undoes. A tiny negative x gives y itself, as in Python; |x| >= 2^24 y gives 0.
GZ float mod(float x, float y) {
  float q = x / y;
  float r = fma(-floor(q), y, x);
  r = r < 0.0f ? r + y : r;
  return one_nan(abs(q) < 16777216.0f ? r : x - x);
}

// ---- sine and cosine ----

// Both from one reduction to |r| <= pi/4: r = |x| - k pi/2, with pi/2 in three parts (Cody & Waite, "Software Manual
// for the Elementary Functions", 1980; with fma the first step is exact). Beyond 2^17 a finite angle is taken as 0.
GZ void sincos(float x, float &s, float &c) {
  float a = abs(x);
  a = a <= 131072.0f ? a : a - a;
  float t = fma(a, 0.636619747f, TO_INT);
  float k = t - TO_INT;
  float r = fma(k, -1.57079637f, a);
  r = fma(k, 4.37113883e-8f, r);
  r = fma(k, 1.71512451e-15f, r);
  float z = r * r;
  // |r| <= 0.79: sin r = r + r^3 P(r^2), 2^-27.8; cos r = 1 - r^2/2 + r^4 P(r^2), 2^-32.8.
  float sine = fma(r * z, poly(z, -0.166666538f, 0.00833210628f, -0.000195078828f), r);
  float cosine = poly(z, 1.0f, -0.5f, 0.0416666456f, -0.00138873036f, 2.44312014e-5f);
  u32 quadrant = as_u32(t);
  bool odd = (quadrant & 1u) != 0u;
  u32 sin_sign = ((quadrant << 30) ^ as_u32(x)) & 0x80000000u;
  u32 cos_sign = ((quadrant + 1u) << 30) & 0x80000000u;
  s = one_nan(as_float(as_u32(odd ? cosine : sine) ^ sin_sign));
  c = one_nan(as_float(as_u32(odd ? sine : cosine) ^ cos_sign));
}
GZ float sin(float x) {
  float s, c;
  sincos(x, s, c);
  return s;
}
GZ float cos(float x) {
  float s, c;
  sincos(x, s, c);
  return c;
}

// ---- exponentials ----

// e^r 2^k, where t is TO_INT + k. The power of two goes on in two halves: results below 2^-126 are rounded gradually.
// |r| <= ln(2)/2: e^r = 1 + r + r^2 P(r), 2^-28.2.
GZ float exp_scaled(float r, float t) {
  float p = poly(r, 0.49999994f, 0.166665211f, 0.0416682884f, 0.00836868398f, 0.00138184207f);
  int k = (int)(as_u32(t) - as_u32(TO_INT));
  u32 half = (u32)(k >> 1), rest = (u32)k - half;
  return (1.0f + fma(r * r, p, r)) * as_float((half + 127u) << 23) * as_float((rest + 127u) << 23);
}

// x = k ln(2) + r (Cody & Waite).
GZ float exp(float x) {
  float a = clamp(x, -104.0f, 89.0f);  // where e^x has become 0 and infinity
  float t = fma(a, LOG2_E, TO_INT);
  float k = t - TO_INT;
  float r = fma(k, -LN2_LOW, fma(k, -LN2, a));
  return one_nan(exp_scaled(r, t));
}

// 1 - 2 / (e^2x + 1); near 0, where that cancels, x + x^3 P(x^2), |x| <= 0.625, 2^-27.7.
GZ float tanh(float x) {
  float a = abs(x), z = a * a;
  float p = poly(z, -0.333332807f, 0.133314058f, -0.0537365153f, 0.0206281673f, -0.00569229666f);
  float near = fma(a * z, p, a);
  float far = 1.0f - 2.0f / (exp(2.0f * a) + 1.0f);
  return one_nan(copysign(a < 0.625f ? near : far, x));
}

// ---- logarithms ----

// k ln(2) + log(1 + f). f in [-1/3, 1/3]: log(1 + f) = f - f^2/2 + f^3 P(f), 2^-27.6.
GZ float log_sum(float k, float f) {
  float p = poly(f, -0.5f, 0.333332151f, -0.249997929f, 0.200104609f, -0.166807786f, 0.140048623f, -0.121793576f,
                 0.139899179f, -0.129163906f);
  return fma(k, LN2, fma(f * f, p, f));
}

// x = 2^k m with m in [2/3, 4/3); subnormals are scaled up first.
GZ void split(float x, float &k, float &m) {
  bool tiny = x < 1.17549435e-38f;
  u32 bits = as_u32(tiny ? x * 8388608.0f : x);
  u32 power = (bits - TWO_THIRDS) & EXPONENT;
  k = (float)((int)power >> 23) - (tiny ? 23.0f : 0.0f);
  m = as_float(bits - power);
}

GZ float log(float x) {
  float k, m;
  split(x, k, m);
  float y = log_sum(k, m - 1.0f);
  return x > 0.0f ? (x < infinity() ? y : x) : (x == 0.0f ? -infinity() : not_a_number());
}

// k is that of 1 + x, but f = 2^-k (1 + x) - 1 is taken from x itself, so that nothing of x is lost.
GZ float log1p(float x) {
  u32 power = (as_u32(1.0f + x) - TWO_THIRDS) & EXPONENT;
  float scale = 0.25f * as_float(0x40800000u - power);  // 2^-k; k reaches 128
  float y = copysign(log_sum((float)((int)power >> 23), fma(x, scale, scale - 1.0f)), x);
  return x > -1.0f ? (x < infinity() ? y : x) : (x == -1.0f ? -infinity() : not_a_number());
}

// ---- power ----

// Unevaluated sums of two floats carry about 48 bits (Dekker, "A floating-point technique for extending the available
// precision", 1971).
struct Pair {
  float high, low;
};
GZ Pair fast_sum(float a, float b) {  // |a| >= |b|
  float s = a + b;
  return {s, b - (s - a)};
}
GZ Pair operator*(Pair a, Pair b) {
  float p = a.high * b.high;
  return fast_sum(p, fma(a.high, b.high, -p) + fma(a.high, b.low, a.low * b.high));
}

// log2 of a positive finite x: log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| <= 1/5;
// atanh s = s + s^3 (1/3 + s^2 P(s^2)), 2^-34.5.
GZ Pair log2_pair(float x) {
  float k, m;
  split(x, k, m);
  float f = m - 1.0f;
  Pair d = fast_sum(2.0f, f);
  float q = f / d.high;
  Pair s = {q, fma(-q, d.low, fma(-q, d.high, f)) / d.high};
  Pair z = s * s;
  Pair c = fast_sum(0.333333343f, z.high * poly(z.high, 0.20000194f, 0.142629251f, 0.119343884f));
  c.low += -9.93410776e-9f;
  Pair cube = s * (z * c);
  Pair sum = fast_sum(s.high, cube.high);
  sum.low += s.low + cube.low;
  Pair l = sum * Pair{2.88539004f, 3.85192607e-8f};  // 2 / ln(2)
  Pair y = fast_sum(k, l.high);                      // k is 0 or the larger
  return fast_sum(y.high, y.low + l.low);
}

// x^y = 2^(y log2|x|); a negative x takes an integer y, as in C.
GZ float pow(float x, float y) {
  float a = abs(x);
  bool bounded = a > 0.0f && a < infinity();
  Pair l = log2_pair(a);
  float p = y * (bounded ? l.high : a > 0.0f ? infinity() : -infinity());
  float q = fma(y, l.low, fma(y, l.high, -p));
  q = abs(p) < 160.0f ? q : 0.0f;  // beyond it the result is 0 or infinity
  p = a == 1.0f || y == 0.0f ? 0.0f : clamp(p, -160.0f, 160.0f);
  float t = p + TO_INT;
  float magnitude = exp_scaled(fma(p - (t - TO_INT), LN2, q * LN2), t);
  bool integer = floor(y) == y;
  bool odd = integer && floor(0.5f * y) != 0.5f * y;
  float result = as_float(as_u32(magnitude) | (odd ? as_u32(x) & 0x80000000u : 0u));
  bool defined = x == x && y == y && (x >= 0.0f || integer || a == infinity());
  return defined || x == 1.0f || y == 0.0f ? result : not_a_number();
}

// ---- arc tangent ----

// The angle of (x, y), from atan of the smaller over the larger: atan q = q + q^3 P(q^2), 0 <= q <= 1, 2^-28.4.
GZ float atan2(float y, float x) {
  float ax = abs(x), ay = abs(y);
  bool steep = ay > ax, left = (int)as_u32(x) < 0;
  float small = steep ? ax : ay, large = steep ? ay : ax;
  float q = small == large ? (large == 0.0f ? 0.0f : 1.0f) : small / large;
  float z = q * q;
  float p = poly(z, -0.333332986f, 0.199985296f, -0.142640159f, 0.109508812f, -0.0839931071f, 0.0578814521f,
                 -0.0310969446f, 0.0108685475f, -0.00178274955f);
  float r = fma(q * z, p, q);
  r = steep != left ? -r : r;
  float base = steep ? HALF_PI : left ? PI : 0.0f;
  float base_low = steep ? -4.37113883e-8f : left ? -8.74227766e-8f : 0.0f;
  return one_nan(copysign(base + (base_low + r), y));
}

}  // namespace gz
