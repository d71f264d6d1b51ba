// Symmetric matrices whose zeros are known when the code runs: where contacts join branches of a tree. The lower half is
// given; bit j of columns[i] says whether entry (i, j), j < i, may differ from zero.

constexpr int PANEL = 8;  // columns that are computed together, in registers
constexpr int panels(int n) { return (n + PANEL - 1) / PANEL; }
template <int N> struct Symmetric {
  static_assert(N <= 32, "a row's columns are the bits of a u32");
  Vec entry[N][PANEL * panels(N)];  // once it is factorised, L is above the diagonal: entry[i][d] is L(d, i)
  Vec inverse[N];                   // 1 / D
  u32 columns[N], rows[N];          // bit d of rows[i]: whether (d, i), d > i, may differ from zero
};

GZ int lowest_bit(u32 x) { return popcount((u64)((x & -x) - 1)); }

// Adds the entries that a factorisation fills in, and clears the matrix.
template <int N> GZ void fill_in(Symmetric<N> &m) {
  for (int d = 0; d < N; ++d) {
    m.rows[d] = 0;
    for (Vec &x : m.entry[d]) x = num(0.0);
  }
  for (int d = N - 1; d > 0; --d)
    for (u32 left = m.columns[d]; left; left &= left - 1) {
      const int i = lowest_bit(left);
      m.columns[i] |= m.columns[d] & ((1u << i) - 1);
      m.rows[i] |= 1u << d;
    }
}

// L'DL, from the last row to the first.
template <int N> GZ_SELDOM void factor(Symmetric<N> &m) {
  GZ_ROLLED for (int i = N - 1; i >= 0; --i) {
    Vec *row = m.entry[i];
    GZ_ROLLED for (int first = 0; first <= i; first += PANEL) {
      Vec sums[PANEL];
      for (int c = 0; c < PANEL; ++c) sums[c] = row[first + c];
      GZ_ROLLED for (u32 left = m.rows[i]; left; left &= left - 1) {
        const int d = lowest_bit(left);
        const Vec lower = -row[d];
        for (int c = 0; c < PANEL; ++c) sums[c] = fma(lower, m.entry[d][first + c], sums[c]);
      }
      for (int c = 0; c < PANEL; ++c)
        if (first + c <= i) row[first + c] = sums[c];
    }
    const Vec inverse = m.inverse[i] = num(1.0) / row[i];
    for (u32 left = m.columns[i]; left; left &= left - 1) {
      const int j = lowest_bit(left);
      m.entry[j][i] = row[j] * inverse;
    }
  }
}

// The inverse of a factorised matrix times x, in place.
template <int N> GZ_SELDOM void solve(const Symmetric<N> &m, Vec (&x)[N]) {
  GZ_ROLLED for (int i = N - 1; i >= 0; --i)
    for (u32 left = m.rows[i]; left; left &= left - 1) {
      const int d = lowest_bit(left);
      x[i] = fma(-m.entry[i][d], x[d], x[i]);
    }
  GZ_ROLLED for (int i = 0; i < N; ++i) {
    x[i] = x[i] * m.inverse[i];
    for (u32 left = m.columns[i]; left; left &= left - 1) {
      const int j = lowest_bit(left);
      x[i] = fma(-m.entry[j][i], x[j], x[i]);
    }
  }
}
