// How rules reach arrays. checked.cuh is the other form of it.

namespace gz {

// A place in an array. checked.cuh has one that knows the line of the rules that named it.
using FieldPlace = int;
GZ FieldPlace place_after(FieldPlace first, int by) { return first + by; }
GZ int same_line(FieldPlace, int k) { return k; }

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

// A table of a few numbers in a loop over envs. Each entry is compared with the index, because a vector gathers its numbers
// from memory one by one.
template <class T, int SIZE> struct ShortTable {
  const T *data;
  GZ_MEMBER operator const T *() const { return data; }
  template <class I> GZ_MEMBER T operator[](I k) const {
#if GZ_THREADS
    return data[k];
#else
    T number = data[0];
    unrolled<1, SIZE>([&](int j) { put(Blend{(u8)(k == (I)j)}, number, data[j]); });
    return number;
#endif
  }
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

// A window of ROWS x COLUMNS bytes of a field, which has `pitch` bytes from row to row: the lowest five bits of each byte
// choose an entry of a table, and the lowest BITS bits of these entries follow each other in reading order.
template <int BITS, int ROWS, int COLUMNS, int SIZE>
GZ u64 window_bits(const u8 *table, const Array<u8, SIZE> &bytes, Index first, int pitch) {
  static_assert(BITS * ROWS * COLUMNS <= 64, "the bits of a window fit into 64");
#if GZ_SIDE_BY_SIDE && !GZ_THREADS && GZ_LOOKS_UP_BYTES
  if constexpr (ROWS == 3 && COLUMNS == 3) {
    // Four bytes of each row; of the last one from the byte before it, as the window may be at the end of the field.
    const u8 *const window = &bytes[first];
    u32 top, middle, bottom;
    __builtin_memcpy(&top, window, 4);
    __builtin_memcpy(&middle, window + pitch, 4);
    __builtin_memcpy(&bottom, window + 2 * pitch - 1, 4);
    const Words16 found = entries_of(table, top, middle, bottom >> 8);
    return packed_halves<BITS, 3>(found[0]) | packed_halves<BITS, 3>((u32)found[1]) << 6 * BITS;
  }
#endif
  u64 bits = 0;
  for (int k = 0; k < ROWS * COLUMNS; ++k) {
    const u32 entry = table[bytes[first + (k / COLUMNS * pitch + k % COLUMNS)] & 31];
    bits |= (u64)(entry & (1u << BITS) - 1u) << BITS * k;
  }
  return bits;
}

}  // namespace gz
