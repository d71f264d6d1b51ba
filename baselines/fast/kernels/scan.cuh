// y[t] = x[t] + decay[t] y[t - 1] for every column.

namespace gz {

struct Scanning {
  i64 items, threads, steps;
  const float *x, *decay;
  float *y;
};

// Columns that go through the rows together.
constexpr i64 TILE = 8192;

// A GPU's thread has one column. It reads some rows ahead, to wait for memory once and not for each row.
GZ void scan_column(const Scanning &a, i64 place) {
  constexpr int AHEAD = 8;
  float carry = 0.f;
  for (i64 t = 0; t < a.steps; t += AHEAD, place += AHEAD * a.items) {
    float x[AHEAD], decay[AHEAD];
    GZ_UNROLL
    for (int k = 0; k < AHEAD; ++k) {
      const bool inside = t + k < a.steps;
      x[k] = inside ? a.x[place + k * a.items] : 0.f;
      decay[k] = inside ? a.decay[place + k * a.items] : 0.f;
    }
    GZ_UNROLL
    for (int k = 0; k < AHEAD; ++k) {
      carry = t + k == 0 ? x[k] : x[k] + decay[k] * carry;
      if (t + k < a.steps) a.y[place + k * a.items] = carry;
    }
  }
}

GZ void scan_columns(const Scanning &a, i64 place, i64 columns) {
  for (i64 l = 0; l < columns; ++l) a.y[place + l] = a.x[place + l];
  for (i64 t = 1; t < a.steps; ++t) {
    const float *before = a.y + place;
    place += a.items;
    GZ_INDEPENDENT
    for (i64 l = 0; l < columns; ++l) a.y[place + l] = a.x[place + l] + a.decay[place + l] * before[l];
  }
}

GZ void scan(const Scanning &a, i64, i64 begin, i64 end) {
  if (WIDE == 1) return scan_column(a, begin);
  for (i64 i = begin; i < end; i += TILE) scan_columns(a, i, end - i < TILE ? end - i : TILE);
}

GZ_KERNEL(scan, Scanning, TILE)

}  // namespace gz
