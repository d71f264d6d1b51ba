// Symmetric matrices whose zeros are known when the code runs: where contacts join branches of a tree. The lower half is
// kept; bit j of columns[i] says whether entry (i, j), j < i, may differ from zero.

GZ int lowest_bit(u32 x) { return popcount((u64)((x & -x) - 1)); }

// Adds the columns that a factorisation fills in.
template <int N> GZ void fill_in(u32 (&columns)[N]) {
  for (int d = N - 1; d > 0; --d)
    for (u32 left = columns[d]; left; left &= left - 1) {
      const int i = lowest_bit(left);
      columns[i] |= columns[d] & ((1u << i) - 1);
    }
}

// L'DL, from the last row to the first, in place: L without its diagonal of ones, and 1 / D on the diagonal.
template <int N> GZ_SELDOM void factor(Vec (&a)[N][N], const u32 (&columns)[N]) {
  GZ_ROLLED for (int d = N - 1; d >= 0; --d) {
    Vec *row = a[d];
    const Vec inverse = row[d] = num(1.0) / row[d];
    int place[N], count = 0;
    for (u32 left = columns[d]; left; left &= left - 1) place[count++] = lowest_bit(left);
    GZ_ROLLED for (int k = count - 1; k >= 0; --k) {
      const int i = place[k];
      const Vec scaled = row[i] * inverse;
      GZ_ROLLED for (int l = 0; l <= k; ++l) {
        const int j = place[l];
        a[i][j] = fma(-scaled, row[j], a[i][j]);
      }
      row[i] = scaled;
    }
  }
}

// The inverse of a factorised matrix times x, in place.
template <int N> GZ_SELDOM void solve(const Vec (&a)[N][N], const u32 (&columns)[N], Vec (&x)[N]) {
  GZ_ROLLED for (int d = N - 1; d > 0; --d)
    for (u32 left = columns[d]; left; left &= left - 1) {
      const int i = lowest_bit(left);
      x[i] = fma(-a[d][i], x[d], x[i]);
    }
  GZ_ROLLED for (int d = 0; d < N; ++d) x[d] = x[d] * a[d][d];
  GZ_ROLLED for (int d = 1; d < N; ++d)
    for (u32 left = columns[d]; left; left &= left - 1) {
      const int i = lowest_bit(left);
      x[d] = fma(-a[d][i], x[i], x[d]);
    }
}
