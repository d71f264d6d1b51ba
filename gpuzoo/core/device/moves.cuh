// Copies arrays of any strides, number by number, with conversions: the first axis is that of envs, of which some may be
// chosen, and up to three more follow. Numbers are integers, halves, floats and doubles. What becomes another kind of
// floating number is taken to pieces, so that no machine needs halves and doubles for it.

namespace gz {

enum Way : i64 { COPY, IS_ZERO, OR };       // OR: true is written where a number is not zero, and nothing elsewhere
enum Kind : i64 { FLOATING, SIGNED, UNSIGNED };

struct Side {
  u8 *array;
  i64 strides[4];   // bytes
  i64 kind, size;   // of a number, and its bytes
  const i64 *envs;  // null: all
};

struct Moves {
  i64 items;     // numbers
  i64 sizes[3];  // of the axes behind that of envs
  i64 way;
  Side to, from;
};

GZ u8 *place_of(const Side &side, const Moves &m, i64 item) {
  u8 *place = side.array;
  for (int axis = 3; axis > 0; --axis) {
    place += item % m.sizes[axis - 1] * side.strides[axis];
    item /= m.sizes[axis - 1];
  }
  return place + (side.envs ? side.envs[item] : item) * side.strides[0];
}

GZ u64 bits_of(const u8 *from, i64 size) {
  u64 bits = 0;
  for (int b = 0; b < (int)size; ++b) bits |= (u64)from[b] << 8 * b;
  return bits;
}

// Little-endian: a narrower number is what comes first.
GZ void put(u8 *to, i64 size, u64 bits) {
  for (int b = 0; b < (int)size; ++b) to[b] = (u8)(bits >> 8 * b);
}

// A number of any integer kind: sign or zeros stand before what it has.
GZ i64 integer(const Side &side, const u8 *from) {
  const u64 bits = bits_of(from, side.size);
  const int above = 64 - 8 * (int)side.size;
  return side.kind == SIGNED ? (i64)(bits << above) >> above : (i64)bits;
}

// digits * 2^exponent, or infinite, or none.
struct Number {
  bool negative, finite;
  u64 digits;
  int exponent;
};

// A floating format by its size: digits with the one that is not written, and the largest exponent of a power of two.
struct Format {
  int digits, largest;
};

GZ Format format_of(i64 size) {
  if (size == 2) return {11, 15};
  if (size == 4) return {24, 127};
  return {53, 1023};
}

GZ Number number(const Side &side, const u8 *from) {
  const u64 bits = bits_of(from, side.size), one = 1;
  if (side.kind != FLOATING) {
    const i64 x = integer(side, from);
    const bool negative = side.kind == SIGNED && x < 0;
    return {negative, true, negative ? -(u64)x : (u64)x, 0};
  }
  const Format f = format_of(side.size);
  const u64 written = bits & ((one << (f.digits - 1)) - 1);
  const int field = (int)(bits >> (f.digits - 1)) & (2 * f.largest + 1);
  const bool small = field == 0, finite = field != 2 * f.largest + 1;  // small: no one before what is written
  const u64 digits = finite && !small ? written | one << (f.digits - 1) : written;
  return {bool(bits >> (8 * side.size - 1)), finite, digits, field + small - f.largest - f.digits + 1};
}

// The nearest number of a format, the even one of two that are as near.
GZ u64 rounded(Number x, i64 size) {
  const Format f = format_of(size);
  const u64 one = 1, sign = (u64)x.negative << (8 * size - 1);
  const u64 infinite = (u64)(2 * f.largest + 1) << (f.digits - 1);
  if (!x.finite) return sign | infinite | (u64)(x.digits != 0) << (f.digits - 2);
  if (x.digits == 0) return sign;
  for (int step = 32; step > 0; step /= 2)
    if (!(x.digits >> (64 - step))) x.digits <<= step, x.exponent -= step;
  const int least = 2 - f.largest - f.digits, own = x.exponent + 64 - f.digits;
  const int unit = own < least ? least : own, dropped = unit - x.exponent;  // unit: the exponent of the last digit
  if (dropped > 64) return sign;
  const u64 head = x.digits >> (dropped - 1), kept = head >> 1;
  const bool beyond = x.digits != head << (dropped - 1), up = (head & 1) && (beyond || (kept & 1));
  if (unit - least > 2 * f.largest) return sign | infinite;
  const u64 found = ((u64)(unit - least) << (f.digits - 1)) + kept + up;
  return sign | (found < infinite ? found : infinite);
}

// Towards zero.
GZ i64 truncated(const Number &x) {
  const int e = x.exponent;
  const u64 whole = e <= -64 || e >= 64 || !x.finite ? 0 : e < 0 ? x.digits >> -e : x.digits << e;
  return x.negative ? -(i64)whole : (i64)whole;
}

GZ bool is_zero(const Side &side, const u8 *from) {
  const u64 bits = bits_of(from, side.size);
  return (side.kind == FLOATING ? bits << (65 - 8 * side.size) : bits) == 0;  // but for the sign
}

GZ void move(const Moves &m, i64 item) {
  u8 *const to = place_of(m.to, m, item);
  const u8 *const from = place_of(m.from, m, item);
  if (m.way == IS_ZERO)
    *to = is_zero(m.from, from);
  else if (m.way == OR) {
    if (!is_zero(m.from, from)) *to = 1;
  } else if (m.to.kind == m.from.kind && m.to.size == m.from.size) {
    if (m.to.size == 4)
      *(u32 *)to = *(const u32 *)from;
    else
      for (int b = 0; b < (int)m.to.size; ++b) to[b] = from[b];
  } else if (m.to.kind != FLOATING)
    put(to, m.to.size, m.from.kind == FLOATING ? truncated(number(m.from, from)) : integer(m.from, from));
  else if (m.to.size == 4 && m.from.kind == SIGNED)
    *(float *)to = (float)integer(m.from, from);
  else if (m.to.size == 4 && m.from.kind == UNSIGNED)
    *(float *)to = (float)(u64)integer(m.from, from);
  else
    put(to, m.to.size, rounded(number(m.from, from), m.to.size));
}

#ifdef GZ_CUDA
extern "C" __global__ void gz_move(const __grid_constant__ Moves m, i64) {
  const i64 item = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (item < m.items) move(m, item);
}
#else
extern "C" void gz_launch_move(const Moves *m, i64) {
  for (i64 item = 0; item < m->items; ++item) move(*m, item);
}
#endif

}  // namespace gz
