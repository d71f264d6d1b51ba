// How rules reach arrays. checked.cuh is the other form of it.

namespace gz {

// `T[...]` of one env.
template <class T, int COLUMNS> struct Array {
  T *data;
  i64 num_envs;
  GZ_MEMBER T &operator[](int k) const { return data[element_offset(k, num_envs)]; }
  GZ_MEMBER T &operator()(int row, int column) const { return (*this)[row * COLUMNS + column]; }
};

// One row of `columns` values per agent.
template <class T> struct Rows {
  T *data;
  int columns;
  GZ_MEMBER T *operator[](int agent) const { return data + (i64)agent * columns; }
};

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
