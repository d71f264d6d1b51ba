// Copies arrays of any strides, number by number, with conversions: the first axis is that of envs, of which some may be
// chosen, and up to three more follow. Any number becomes a float or an integer; what becomes a half or a double is one.

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

template <class T>
GZ void write(const Moves &m, u8 *to, T x) {
  if (m.way == IS_ZERO)
    *to = x == 0;
  else if (m.way == OR) {
    if (x != 0) *to = 1;
  } else if (m.to.kind == FLOATING)
    *(float *)to = (float)x;
  else {
    const i64 bits = (i64)x;  // little-endian: a narrower number is what comes first
    for (int b = 0; b < (int)m.to.size; ++b) to[b] = (u8)(bits >> 8 * b);
  }
}

// The nearest float. A half differs from it in where its exponent is counted from.
GZ float floating(const Side &side, const u8 *from) {
  if (side.size == 8) return (float)*(const double *)from;
  if (side.size == 4) return *(const float *)from;
  const u32 half = from[0] | (u32)from[1] << 8, bits = (half & 0x7fff) << 13;
  const bool finite = (half & 0x7c00) != 0x7c00;
  return copysign(finite ? as_float(bits) * 0x1p112f : as_float(bits | 0x7f800000), as_float(half << 16));
}

// A number of any kind: sign or zeros stand before what it has.
GZ i64 integer(const Side &side, const u8 *from) {
  u64 bits = 0;
  for (int b = 0; b < (int)side.size; ++b) bits |= (u64)from[b] << 8 * b;
  const int above = 64 - 8 * (int)side.size;
  return side.kind == SIGNED ? (i64)(bits << above) >> above : (i64)bits;
}

GZ void move(const Moves &m, i64 item) {
  u8 *const to = place_of(m.to, m, item);
  const u8 *const from = place_of(m.from, m, item);
  if (m.way == COPY && m.to.kind == m.from.kind && m.to.size == m.from.size) {
    if (m.to.size == 4)
      *(u32 *)to = *(const u32 *)from;
    else
      for (int b = 0; b < (int)m.to.size; ++b) to[b] = from[b];
  } else if (m.from.kind == FLOATING)
    write(m, to, floating(m.from, from));
  else if (m.from.kind == UNSIGNED)
    write(m, to, (u64)integer(m.from, from));
  else
    write(m, to, integer(m.from, from));
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
