// How rules reach arrays. checked.cuh is the other form of it.

namespace gz {

// `T[...]` of one env.
template <class T, int COLUMNS> struct Array {
  T *data;
  i64 num_envs;
  GZ_MEMBER T &operator[](Index k) const { return data[element_offset(k, num_envs)]; }
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

}  // namespace gz
