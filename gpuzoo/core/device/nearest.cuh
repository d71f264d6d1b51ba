// The K smallest of many values, and the K nearest of many points, for each of many seekers.
//
// lanes_smallest(e, n, m, Const<K>(), f, found): for every a in 0..n-1 the K smallest of f(a, 0), ..., f(a, m - 1), in
// ascending order and with the lowest index first on ties. found(a, k, b) is called for k in 0..K-1, b being the index,
// or -1 where fewer than K values are below infinity. `found` may be called twice for the same a and k.
//
// smallest<K>(m, f, found): the same for one lane, inside a region, with f(b) and found(k, b).
//
// lanes_nearest(e, n, m, Const<K>(), here, there, found): the same for the values distance(here(a), there(b)), with
// n and m known to the compiler. lanes_nearest_others(e, n, Const<K>(), at, found) leaves a itself out.
//
// Most points are far away, and a square says so without a root. The points are split into groups. The K-th smallest of
// the groups' smallest squares bounds the K-th smallest square from above, as each of those K groups has a point within
// it. The few points within the bound, and a margin for the rounding of roots, are then sorted by their distances.

namespace gz {

struct alignas(8) Point {
  float x, y;
};
// A point that nobody finds.
GZ Point nowhere() { return {as_float(0x7fc00000u), 0.f}; }

template <class X> GZ X squared_distance(const X &x, const X &y, Point to) {
  const X dx = x - to.x, dy = y - to.y;
  return dx * dx + dy * dy;
}
GZ float distance(Point from, Point to) { return sqrt(squared_distance(from.x, from.y, to)); }

// The smallest values seen, in ascending order, with their indices; what came first stays in front of its equals.
// X and I are float and int, or vectors of them.
template <int K, class X, class I> struct Smallest {
  X value[K];
  I index[K];
  GZ_MEMBER void clear() {
    GZ_UNROLL
    for (int k = 0; k < K; ++k) {
      value[k] = X{} + infinity();
      index[k] = I{} - 1;
    }
  }
  GZ_MEMBER void add(const X &x, const I &i) {
    GZ_UNROLL
    for (int k = K - 1; k > 0; --k) {
      auto before = x < value[k - 1], here = x < value[k];
      index[k] = before ? index[k - 1] : here ? i : index[k];
      value[k] = before ? value[k - 1] : here ? x : value[k];
    }
    auto first = x < value[0];
    index[0] = first ? i : index[0];
    value[0] = first ? x : value[0];
  }
};
constexpr int LIST = 10;  // so long a list fits into registers; longer ones are found in several rounds

template <int K, class F, class G> GZ void smallest(int m, const F &f, const G &found) {
  constexpr int L = K < LIST ? K : LIST;
  Smallest<L, float, int> list;
  float last = -infinity();
  int last_index = -1;
  for (int start = 0; start < K; start += L) {
    list.clear();
    for (int b = 0; b < m; ++b) {
      const float x = f(b);
      const bool later = K <= L || x > last || (x == last && b > last_index);
      if (later && x < list.value[L - 1]) list.add(x, b);
    }
    GZ_UNROLL
    for (int k = 0; k < L; ++k)
      if (start + k < K) found(start + k, list.index[k]);
    last = list.value[L - 1];
    last_index = list.index[L - 1];
  }
}

// Two squares whose roots round to the same float differ by a factor of less than 1 + 3e-7.
constexpr float ROOT_MARGIN = 1.000001f;

// How M points are split: CHAINS groups of SIZE points each take turns. Behind them lie points that nobody finds.
constexpr int CHAINS = 4;
template <int M, int SIZE = 1> constexpr int group_size() {
  if constexpr (M < 48 * SIZE)
    return SIZE;
  else
    return group_size<M, 2 * SIZE>();
}
template <int M> constexpr int padded() {
  constexpr int STRIDE = CHAINS * group_size<M>() > 32 ? CHAINS * group_size<M>() : 32;
  return (M + STRIDE - 1) / STRIDE * STRIDE;
}

// A square that at least K of the M points lie within, or infinity. If AGAIN, points within `before` do not count.
// X is float, or a vector of seekers.
template <int K, int M, bool AGAIN, class X, class P>
GZ X bound(const X &x, const X &y, const X &before, const P &points) {
  Smallest<K, X, X> closest;
  closest.clear();
  GZ_ROLLED
  for (int start = 0; start < M; start += CHAINS * group_size<M>()) {
    X square[CHAINS];
    for (int j = 0; j < CHAINS; ++j) square[j] = X{} + infinity();
    GZ_ROLLED
    for (int b = start; b < start + CHAINS * group_size<M>(); b += CHAINS) {
      GZ_UNROLL
      for (int j = 0; j < CHAINS; ++j) {
        X one = squared_distance(x, y, points(b + j));
        if constexpr (AGAIN) one = one > before ? one : X{} + infinity();
        square[j] = one < square[j] ? one : square[j];
      }
    }
    GZ_UNROLL
    for (int j = 0; j < CHAINS; ++j) closest.add(square[j], square[j]);
  }
  return closest.value[K - 1] * ROOT_MARGIN;
}

// Which of the 32 points from `start` on lie within the square, as bits.
template <class I, class X, class P>
GZ I bits_within(const X &x, const X &y, const X &square, const P &points, int start) {
  I bits = I{};
  GZ_ROLLED
  for (int base = 0; base < 32; base += 8) {
    GZ_UNROLL
    for (int k = 0; k < 8; ++k) {
      const X one = squared_distance(x, y, points(start + base + k));
      bits = one <= square ? bits | (I{} + (int)(1u << (base + k))) : bits;
    }
  }
  return bits;
}

#if GZ_THREADS

template <class E, int K, class F, class G> GZ void lanes_smallest(const E &e, int n, int m, Const<K>, F f, G found) {
  for (int a = lane(); a < n; a += LANES)
    smallest<K>(m, [=](int b) { return f(a, b); }, [=](int k, int b) { found(a, k, b); });
  end_region(e);
}

// Where the points of the envs of one block lie for their lanes: in shared memory, if it has room for them.
template <int M> struct Points {
  Point *data;
  GZ_MEMBER Point operator()(int b) const { return data[b]; }
};
constexpr int SHARED_BYTES = 16384;  // bytes of a block
template <int M> GZ Points<M> points_of_block() {
  __shared__ Point points[BLOCK / LANES * M];
  return {points + (int)threadIdx.x / LANES * M};
}

template <int K, int M, bool OTHERS, class P, class G>
GZ void find_nearest(int a, Point here, const P &points, const G &found) {
  constexpr int L = K < LIST ? K : LIST;
  Smallest<L, float, int> list;
  float last = -1.f;
  int last_index = -1;
  GZ_ROLLED
  for (int start = 0; start < K; start += L) {
    const float before = start == 0 ? -1.f : last * last * ROOT_MARGIN;
    const float square = bound<L + OTHERS, M, (K > L)>(here.x, here.y, before, points);
    list.clear();
    GZ_ROLLED
    for (int base = 0; base < M; base += 32) {
      u32 bits = (u32)bits_within<int>(here.x, here.y, square, points, base);
      for (; bits; bits &= bits - 1) {
        const int b = base + popcount((bits & (0u - bits)) - 1u);
        const float apart = distance(here, points(b));
        const bool later = start == 0 || apart > last || (apart == last && b > last_index);
        if (later && !(OTHERS && a == b) && apart < list.value[L - 1]) list.add(apart, b);
      }
    }
    GZ_UNROLL
    for (int k = 0; k < L; ++k)
      if (start + k < K) found(a, start + k, list.index[k]);
    last = list.value[L - 1];
    last_index = list.index[L - 1];
  }
}

template <bool OTHERS, int K, int N, int M, class E, class H, class T, class G>
GZ void nearest(const E &e, const H &here, const T &there, const G &found) {
  const auto known = [&](int b) { return b < M ? there(b) : nowhere(); };
  if constexpr (BLOCK / LANES * padded<M>() * sizeof(Point) <= SHARED_BYTES) {
    const auto points = points_of_block<padded<M>()>();
    for (int b = lane(); b < padded<M>(); b += LANES) points.data[b] = known(b);
    barrier();
    for (int a = lane(); a < N; a += LANES) find_nearest<K, M, OTHERS>(a, here(a), points, found);
  } else {
    for (int a = lane(); a < N; a += LANES) find_nearest<K, M, OTHERS>(a, here(a), known, found);
  }
  end_region(e);
}

#else

#ifdef GZ_LANE_ORDER
constexpr int ROW = 1;
#else
constexpr int ROW = 16;
#endif
template <int N> struct Vector {
  typedef float X __attribute__((vector_size(4 * N)));
  typedef int I __attribute__((vector_size(4 * N)));
};
template <> struct Vector<1> {
  typedef float X;
  typedef int I;
};

// For ROW neighbouring values of a at once.
template <int K, int N, class F, class G> GZ void row_smallest(int a, int m, F f, G found) {
  using X = typename Vector<N>::X;
  using I = typename Vector<N>::I;
  constexpr int L = K < LIST ? K : LIST;
  Smallest<L, X, I> list;
  X last = X{} - infinity();
  I last_index = I{} - 1;
  for (int start = 0; start < K; start += L) {
    list.clear();
    for (int b = 0; b < m; ++b) {
      float row[N];
      GZ_INDEPENDENT
      for (int w = 0; w < N; ++w) row[w] = f(a + w, b);
      X x;
      __builtin_memcpy(&x, row, sizeof(X));
      I index = I{} + b;
      if constexpr (K > L) {
        auto later = (x > last) | ((x == last) & (index > last_index));
        x = later ? x : X{} + infinity();
      }
      list.add(x, index);
    }
    int indices[L][N];
    __builtin_memcpy(indices, list.index, sizeof(indices));
    for (int w = 0; w < N; ++w)
      for (int k = 0; k < L && start + k < K; ++k) found(a + w, start + k, indices[k][w]);
    last = list.value[L - 1];
    last_index = list.index[L - 1];
  }
}
// The last row overlaps the one before it: the same results are found twice.
template <int K, int N, class F, class G> GZ void rows_smallest(int n, int m, F f, G found) {
  for (int a = 0; a < n; a += N) row_smallest<K, N>(min(a, n - N), m, f, found);
}
template <class E, int K, class F, class G> GZ void lanes_smallest(const E &, int n, int m, Const<K>, F f, G found) {
  if (n < ROW)
    each(n, [=](int a) { row_smallest<K, 1>(a, m, f, found); });
  else
    rows_smallest<K, ROW>(n, m, f, found);
}
template <class E, int A, int K, class F, class G>
GZ void lanes_smallest(const E &, Const<A>, int m, Const<K>, F f, G found) {
  rows_smallest<K, A >= ROW ? ROW : A >= 8 ? 8 : A >= 4 ? 4 : 1>(A, m, f, found);
}

// For W neighbouring values of a at once.
template <bool OTHERS, int K, int W, int M, class H, class P, class G>
GZ void row_nearest(int a, const H &here, const P &points, const G &found) {
  using X = typename Vector<W>::X;
  using I = typename Vector<W>::I;
  constexpr int L = K < LIST ? K : LIST, WORDS = padded<M>() / 32;
  float xs[W], ys[W];
  for (int w = 0; w < W; ++w) {
    const Point p = here(a + w);
    xs[w] = p.x;
    ys[w] = p.y;
  }
  X x, y;
  __builtin_memcpy(&x, xs, sizeof(X));
  __builtin_memcpy(&y, ys, sizeof(X));
  Smallest<L, X, I> list;
  X last = X{} - 1.f;
  I last_index = I{} - 1;
  for (int start = 0; start < K; start += L) {
    const X before = start == 0 ? last : last * last * ROOT_MARGIN;
    const X square = bound<L + OTHERS, M, (K > L)>(x, y, before, points);
    u32 bits[WORDS][W];
    for (int k = 0; k < WORDS; ++k) {
      const I word = bits_within<I>(x, y, square, points, 32 * k);
      __builtin_memcpy(bits[k], &word, sizeof(word));
    }
    int candidates[M][W], count[W], most = 0;
    for (int w = 0; w < W; ++w) {
      int n = 0;
      for (int k = 0; k < WORDS; ++k)
        for (u32 left = bits[k][w]; left; left &= left - 1) candidates[n++][w] = 32 * k + __builtin_ctz(left);
      count[w] = n;
      most = n > most ? n : most;
    }
    list.clear();
    for (int k = 0; k < most; ++k) {
      float apart[W];
      int indices[W];
      GZ_INDEPENDENT
      for (int w = 0; w < W; ++w) {
        const int b = k < count[w] ? candidates[k][w] : 0;
        const bool counts = (k < count[w]) & !(OTHERS & (b == a + w));
        const float d = distance({xs[w], ys[w]}, points(b));
        apart[w] = counts ? d : infinity();
        indices[w] = b;
      }
      X value;
      I index;
      __builtin_memcpy(&value, apart, sizeof(X));
      __builtin_memcpy(&index, indices, sizeof(I));
      if constexpr (K > L) {
        auto later = (value > last) | ((value == last) & (index > last_index));
        value = later ? value : X{} + infinity();
      }
      list.add(value, index);
    }
    int indices[L][W];
    __builtin_memcpy(indices, list.index, sizeof(indices));
    for (int w = 0; w < W; ++w)
      for (int k = 0; k < L && start + k < K; ++k) found(a + w, start + k, indices[k][w]);
    last = list.value[L - 1];
    last_index = list.index[L - 1];
  }
}

template <bool OTHERS, int K, int N, int M, class E, class H, class T, class G>
GZ void nearest(const E &, const H &here, const T &there, const G &found) {
  constexpr int W = ROW == 1 ? 1 : N >= ROW ? ROW : N >= 8 ? 8 : N >= 4 ? 4 : 1;
  Point copy[padded<M>()];
  for (int b = 0; b < padded<M>(); ++b) copy[b] = b < M ? there(b) : nowhere();
  const auto points = [&](int b) { return copy[b]; };
  for (int a = 0; a < N; a += W) row_nearest<OTHERS, K, W, M>(min(a, N - W), here, points, found);
}

#endif

constexpr int FEW_POINTS = 32;  // so few points are sorted without a search for a bound

template <class E, int N, int M, int K, class H, class T, class G>
GZ void lanes_nearest(const E &e, Const<N> n, Const<M> m, Const<K> k, H here, T there, G found) {
  if constexpr (M <= FEW_POINTS)
    lanes_smallest(e, n, m, k, [=](int a, int b) { return distance(here(a), there(b)); }, found);
  else
    nearest<false, K, N, M>(e, here, there, found);
}
template <class E, int N, int K, class H, class G>
GZ void lanes_nearest_others(const E &e, Const<N> n, Const<K> k, H at, G found) {
  if constexpr (N <= FEW_POINTS)
    lanes_smallest(e, n, n, k, [=](int a, int b) { return a == b ? infinity() : distance(at(a), at(b)); }, found);
  else
    nearest<true, K, N, N>(e, at, at, found);
}

}  // namespace gz
