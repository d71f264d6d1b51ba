// How rules reach arrays. checked.cuh is the other form of it.

namespace gz {

// `T[...]` of one env.
template <class T, int COLUMNS> struct Array {
  T *data;
  i64 num_envs;
  GZ_MEMBER T &operator[](int k) const { return data[element_offset(k, num_envs)]; }
  GZ_MEMBER T &operator()(int row, int column) const { return (*this)[row * COLUMNS + column]; }
};

// Where rows are written in windows of agents (rows.cuh), only those of a window have a place.
#if GZ_WINDOWED && GZ_THREADS
GZ int place_of_row(int agent);
#else
GZ i64 place_of_row(int agent) { return agent; }
#endif

// One row of `columns` values per agent.
template <class T> struct Rows {
  T *data;
  int columns;
  GZ_MEMBER T *operator[](int agent) const { return data + place_of_row(agent) * columns; }
};

// The region that writes rows; its first index is the agent. Where nothing else is said, it is one like others.
#if GZ_WINDOWED && GZ_THREADS
template <class E, class N, class F> GZ void row_lanes(const E &e, N n, F f);
template <class E, class N, class M, class F> GZ void row_lanes(const E &e, N n, M m, F f);
#else
template <class E, class N, class F> GZ void row_lanes(const E &e, N n, F f) { lanes(e, n, f); }
template <class E, class N, class M, class F> GZ void row_lanes(const E &e, N n, M m, F f) { lanes(e, n, m, f); }
#endif

// Numbers of an observation, four bytes at once.
template <class T> GZ u32 *words(T *row) { return reinterpret_cast<u32 *>(row); }

template <int N, class T> struct Numbers {
  T x[N];
};
// N numbers of a table or an observation, in as few moves as the machine can.
template <int N, class T> GZ void copy(T *to, const T *from) {
  reinterpret_cast<Numbers<N, T> &>(*to) = reinterpret_cast<const Numbers<N, T> &>(*from);
}

#if !GZ_THREADS
template <int N> struct Words {
  typedef u32 Type __attribute__((vector_size(4 * N)));
};
// N numbers 0 and 1, the lowest bits of a word, in a vector.
template <int N> GZ void write_vector(float *to, u32 bits) {
  using Vector = typename Words<N>::Type;
  constexpr u32 ONE = 0x3f800000u;  // the bits of 1.f
  Vector bit;
  for (int k = 0; k < N; ++k) bit[k] = 1u << k;
  const Vector numbers = (bits & bit) != 0 ? ONE + 0 * bit : 0 * bit;
  __builtin_memcpy(to, &numbers, sizeof numbers);
}
// Whole vectors, of which the last one may write some numbers of the one before again.
template <int N> GZ void write_vectors(float *to, int n, u64 bits) {
  for (int first = 0; first + N <= n; first += N) write_vector<N>(to + first, (u32)(bits >> first));
  if (n % N) write_vector<N>(to + n - N, (u32)(bits >> (n - N)));
}
#endif

// Writes the lowest n bits of a word as numbers 0 and 1, n at most 64.
template <class T> GZ void write_bits(T *to, int n, u64 bits) {
#if !GZ_THREADS
  if constexpr (sizeof(T) == 4) {
    if (n >= 16) return write_vectors<16>(to, n, bits);
    if (n >= 4) return write_vectors<4>(to, n, bits);
  }
#endif
  for (int k = 0; k < n; ++k) to[k] = (T)(int)(bits >> k & 1ull);
}

}  // namespace gz
