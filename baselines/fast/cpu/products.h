// Products of small matrices, and activations, in a CPU's vector instructions.

namespace gz {

#if defined(__AVX512F__)
constexpr int LANES = 16, TILE_ROWS = 6, TILE_COLUMNS = 4;
#elif defined(__AVX__)
constexpr int LANES = 8, TILE_ROWS = 6, TILE_COLUMNS = 2;
#else
constexpr int LANES = 4, TILE_ROWS = 6, TILE_COLUMNS = 3;
#endif

constexpr int NARROW = 4;  // a last layer of so few outputs is not padded to whole vectors

typedef float Vector __attribute__((vector_size(4 * LANES)));
typedef int Bits __attribute__((vector_size(4 * LANES)));

static i64 padded(i64 n) { return (n + LANES - 1) / LANES * LANES; }

GZ Vector load(const float *p) {
  Vector v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
GZ void store(float *p, Vector v) { __builtin_memcpy(p, &v, sizeof v); }
GZ Vector splat(float x) { return x - Vector{}; }
// Lanes of a, numbered from 0, and of b, from LANES.
GZ Vector shuffled(Vector a, Vector b, Bits lanes) {
#ifdef __clang__
  Vector c;
  for (int l = 0; l < LANES; ++l) c[l] = lanes[l] < LANES ? a[lanes[l]] : b[lanes[l] - LANES];
  return c;
#else
  return __builtin_shuffle(a, b, lanes);
#endif
}

static void copy(float *to, i64 to_stride, const float *from, i64 from_stride, i64 rows, i64 n) {
  for (i64 r = 0; r < rows; ++r) __builtin_memcpy(to + r * to_stride, from + r * from_stride, n * sizeof(float));
}

// ------------------------------------------------------------------------------------------------- products

template <int M, int N, bool ACROSS>
static void tile(i64 depth, const float *a, i64 as, const float *b, i64 bs, const float *start, i64 ss, float *c,
                 i64 cs) {
  Vector sum[M][N];
  GZ_UNROLL for (int i = 0; i < M; ++i)
    GZ_UNROLL for (int j = 0; j < N; ++j) sum[i][j] = load(start + i * ss + j * LANES);
  for (i64 k = 0; k < depth; ++k) {
    Vector row[N];
    GZ_UNROLL for (int j = 0; j < N; ++j) row[j] = load(b + k * bs + j * LANES);
    GZ_UNROLL for (int i = 0; i < M; ++i) {
      const float x = ACROSS ? a[k * as + i] : a[i * as + k];
      GZ_UNROLL for (int j = 0; j < N; ++j) sum[i][j] += x * row[j];
    }
  }
  GZ_UNROLL for (int i = 0; i < M; ++i)
    GZ_UNROLL for (int j = 0; j < N; ++j) store(c + i * cs + j * LANES, sum[i][j]);
}

template <int M, int N, bool ACROSS>
static void strip(i64 m, i64 depth, const float *a, i64 as, const float *b, i64 bs, const float *start, i64 ss,
                  float *c, i64 cs) {
  const i64 step = ACROSS ? 1 : as;
  for (; m >= M; m -= M, a += M * step, start += M * ss, c += M * cs)
    tile<M, N, ACROSS>(depth, a, as, b, bs, start, ss, c, cs);
  if constexpr (M > 1)
    if (m > 0) strip<M - 1, N, ACROSS>(m, depth, a, as, b, bs, start, ss, c, cs);
}

// c = start + a b, for c of m rows and n columns, n a multiple of LANES; ACROSS: c = start + a' b.
template <bool ACROSS>
static void product(i64 m, i64 n, i64 depth, const float *a, i64 as, const float *b, i64 bs, const float *start, i64 ss,
                    float *c, i64 cs) {
  for (; n >= TILE_COLUMNS * LANES; n -= TILE_COLUMNS * LANES) {
    strip<TILE_ROWS, TILE_COLUMNS, ACROSS>(m, depth, a, as, b, bs, start, ss, c, cs);
    b += TILE_COLUMNS * LANES;
    start += TILE_COLUMNS * LANES;
    c += TILE_COLUMNS * LANES;
  }
  if (n == 3 * LANES) strip<TILE_ROWS, 3, ACROSS>(m, depth, a, as, b, bs, start, ss, c, cs);
  if (n == 2 * LANES) strip<TILE_ROWS, 2, ACROSS>(m, depth, a, as, b, bs, start, ss, c, cs);
  if (n == 1 * LANES) strip<TILE_ROWS, 1, ACROSS>(m, depth, a, as, b, bs, start, ss, c, cs);
}

template <int N>
struct Part {
  typedef float Type __attribute__((vector_size(4 * N)));
};

template <int N>
GZ float total(typename Part<N>::Type v) {
  if constexpr (N == 2) {
    return v[0] + v[1];
  } else {
    typename Part<N / 2>::Type low, high;
    __builtin_memcpy(&low, &v, sizeof low);
    __builtin_memcpy(&high, (const char *)&v + sizeof low, sizeof low);
    return total<N / 2>(low + high);
  }
}

// c = start + a b' for N columns: dot products of rows.
template <int N>
static void dots(i64 m, i64 depth, const float *a, i64 as, const float *b, i64 bs, const float *start, float *c) {
  for (i64 i = 0; i < m; ++i, a += as, c += N) {
    Vector sum[N] = {};
    for (i64 k = 0; k < depth; k += LANES)
      GZ_UNROLL for (int j = 0; j < N; ++j) sum[j] += load(a + k) * load(b + j * bs + k);
    GZ_UNROLL for (int j = 0; j < N; ++j) c[j] = start[j] + total<LANES>(sum[j]);
  }
}

template <int N = NARROW>
static void narrow_product(i64 n, i64 m, i64 depth, const float *a, i64 as, const float *b, i64 bs, const float *start,
                           float *c) {
  if (n == N) return dots<N>(m, depth, a, as, b, bs, start, c);
  if constexpr (N > 1) narrow_product<N - 1>(n, m, depth, a, as, b, bs, start, c);
}

static void add_rows(i64 m, i64 n, const float *a, i64 as, float *sum) {
  i64 j = 0;
  for (; j + 4 * LANES <= n; j += 4 * LANES) {
    Vector sums[4];
    GZ_UNROLL for (int k = 0; k < 4; ++k) sums[k] = load(sum + j + k * LANES);
    for (i64 i = 0; i < m; ++i)
      GZ_UNROLL for (int k = 0; k < 4; ++k) sums[k] += load(a + i * as + j + k * LANES);
    GZ_UNROLL for (int k = 0; k < 4; ++k) store(sum + j + k * LANES, sums[k]);
  }
  for (i64 i = 0; i < m; ++i)
    for (i64 k = j; k < n; ++k) sum[k] += a[i * as + k];
}

// A square of LANES by LANES. Blocks of 2H by 2H swap their corners, for H = 1, 2, 4, ...
template <int H = 1>
GZ void turn(Vector (&row)[LANES]) {
  Bits low, high;
  GZ_UNROLL for (int l = 0; l < LANES; ++l) {
    low[l] = l & H ? LANES + (l ^ H) : l;
    high[l] = l & H ? LANES + l : l ^ H;
  }
  GZ_UNROLL for (int i = 0; i < LANES; ++i)
    if (!(i & H)) {
      const Vector a = row[i], b = row[i | H];
      row[i] = shuffled(a, b, low);
      row[i | H] = shuffled(a, b, high);
    }
  if constexpr (2 * H < LANES) turn<2 * H>(row);
}

static void transpose(i64 m, i64 n, const float *a, float *to, i64 to_stride) {
  const i64 whole_m = m / LANES * LANES, whole_n = n / LANES * LANES;
  for (i64 j = 0; j < whole_n; j += LANES)
    for (i64 i = 0; i < whole_m; i += LANES) {
      Vector row[LANES];
      GZ_UNROLL for (int k = 0; k < LANES; ++k) row[k] = load(a + (i + k) * n + j);
      turn(row);
      GZ_UNROLL for (int k = 0; k < LANES; ++k) store(to + (j + k) * to_stride + i, row[k]);
    }
  for (i64 j = 0; j < n; ++j) {
    for (i64 i = j < whole_n ? whole_m : 0; i < m; ++i) to[j * to_stride + i] = a[i * n + j];
    for (i64 i = m; i < to_stride; ++i) to[j * to_stride + i] = 0;
  }
}

// ------------------------------------------------------------------------------------------------- activations

// A rational approximation, fitted to the relative error on [-8, 8]: 6e-9, and 3e-7 with the rounding. Beyond it the
// result is 1 but for 2.3e-7.
GZ Vector tanh(Vector x) {
  const Vector s = x * x;
  const Vector p = (((1.5230366e-8f * s + 2.1894624e-5f) * s + 3.5715958e-3f) * s + 0.13444497f) * s + 1.0f;
  const Vector q = (((8.5224258e-7f * s + 3.4112885e-4f) * s + 2.6164435e-2f) * s + 0.46777824f) * s + 1.0f;
  const Bits sign = (Bits)x & (Bits)splat(-0.0f), one = (Bits)splat(1.0f);
  return s > 64.0f ? (Vector)(one | sign) : x * p / q;
}

static void activate(bool relu, float *h, i64 n) {
  const Vector zero = {};
  if (relu)
    for (i64 k = 0; k < n; k += LANES) store(h + k, load(h + k) < zero ? zero : load(h + k));
  else
    for (i64 k = 0; k < n; k += LANES) store(h + k, tanh(load(h + k)));
}

// The gradient before an activation from the one behind it.
static void differentiate(bool relu, const float *h, float *grad, i64 n) {
  const Vector zero = {};
  for (i64 k = 0; k < n; k += LANES) {
    const Vector y = load(h + k), g = load(grad + k);
    store(grad + k, relu ? (y > zero ? g : zero) : g - g * (y * y));
  }
}

}  // namespace gz
