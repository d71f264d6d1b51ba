// y[t] = x[t] + decay[t] y[t + 1] for every column, from the last row upwards; or from the first downwards.

namespace gz {

struct Scanning {
  i64 items, threads, steps, forward;
  const float *x, *decay;
  float *y;
};

// Columns that go through the rows together.
constexpr i64 TILE = 8192;

// A GPU's thread has one column. It reads some rows ahead, to wait for memory once and not for each row.
GZ void scan_column(const Scanning &a, i64 place, i64 stride) {
  constexpr int AHEAD = 8;
  float carry = 0.f;
  for (i64 t = 0; t < a.steps; t += AHEAD, place += AHEAD * stride) {
    float x[AHEAD], decay[AHEAD];
    GZ_UNROLL
    for (int k = 0; k < AHEAD; ++k) {
      const bool inside = t + k < a.steps;
      x[k] = inside ? a.x[place + k * stride] : 0.f;
      decay[k] = inside ? a.decay[place + k * stride] : 0.f;
    }
    GZ_UNROLL
    for (int k = 0; k < AHEAD; ++k) {
      carry = t + k == 0 ? x[k] : x[k] + decay[k] * carry;
      if (t + k < a.steps) a.y[place + k * stride] = carry;
    }
  }
}

GZ void scan_columns(const Scanning &a, i64 place, i64 stride, i64 columns) {
  for (i64 l = 0; l < columns; ++l) a.y[place + l] = a.x[place + l];
  for (i64 t = 1; t < a.steps; ++t) {
    const float *before = a.y + place;
    place += stride;
    GZ_INDEPENDENT
    for (i64 l = 0; l < columns; ++l) a.y[place + l] = a.x[place + l] + a.decay[place + l] * before[l];
  }
}

GZ void scan(const Scanning &a, i64, i64 begin, i64 end) {
  const i64 stride = a.forward ? a.items : -a.items;
  const i64 first = a.forward ? 0 : (a.steps - 1) * a.items;
  if (WIDE == 1) return scan_column(a, first + begin, stride);
  for (i64 i = begin; i < end; i += TILE) scan_columns(a, first + i, stride, end - i < TILE ? end - i : TILE);
}

GZ_KERNEL(scan, Scanning, TILE)

}  // namespace gz
