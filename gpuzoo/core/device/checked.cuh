// The checked form of arrays.cuh, for debug=True. An index that is out of range is recorded with its file and line, and
// never reaches memory: what is read there is 0, what is written there is lost. All else gives the same bits.

namespace gz {

#ifdef GZ_CUDA
#define GZ_OUTLINE static __device__ __noinline__
#else
#define GZ_OUTLINE static __attribute__((noinline, cold))
#endif

// The first index of a lane that was out of range. `FAULT` in core/faults.py has the same members.
struct Fault {
  int line;  // 0 where there was none
  u32 file;  // see `hashed`
  int array, part;
  i64 index, other;
  int step;
  u32 region;   // how many regions of this env ended before
  u32 regions;  // the counter; the one of an env's first lane is used
  u32 unused;
  u64 nowhere;  // where accesses out of range go
};

// A file's name as a number, FNV-1a. Its folder does not count: copies of a game share one compiled program.
GZ u32 hashed(const char *path) {
  u32 hash = 2166136261u;
  for (; *path; ++path) hash = *path == '/' ? 2166136261u : (hash ^ (u8)*path) * 16777619u;
  return hash;
}

// An index, and the line of the rules that has it.
struct Subscript {
  i64 value;
  int line;
  const char *file;
  template <class K>
  GZ_MEMBER Subscript(const K &k, int line = __builtin_LINE(), const char *file = __builtin_FILE())
      : value((i64)k), line(line), file(file) {}
};

using FieldPlace = Subscript;
GZ FieldPlace same_line(const FieldPlace &first, i64 k) { return Subscript(k, first.line, first.file); }
GZ FieldPlace place_after(const FieldPlace &first, int by) { return same_line(first, first.value + by); }

template <class T> struct Writable {
  using Type = T;
};
template <class T> struct Writable<const T> {
  using Type = T;
};

// What an array of an env needs to check its indices.
struct Watch {
  Fault *fault;
  int step;
  GZ_MEMBER bool admits(const Subscript &k, i64 size, int array, int part, i64 other) const;
  template <class T> GZ_MEMBER T &nowhere() const {
    auto &place = *reinterpret_cast<typename Writable<T>::Type *>(&fault->nowhere);
    place = 0;
    return place;
  }
};

GZ_OUTLINE void record(const Watch &watch, const Subscript &k, int array, int part, i64 other) {
  Fault &fault = *watch.fault;
  if (fault.line) return;
  fault.file = hashed(k.file);
  fault.array = array;
  fault.part = part;
  fault.index = k.value;
  fault.other = other;
  fault.step = watch.step;
  fault.region = watch.fault[-lane()].regions;
  fault.line = k.line;
}

GZ_MEMBER bool Watch::admits(const Subscript &k, i64 size, int array, int part, i64 other) const {
  const bool inside = (u64)k.value < (u64)size;
  if (!inside) record(*this, k, array, part, other);
  return inside;
}

// Which of an array's indices is meant, and how it is written.
enum Part { FLAT, ROW_OF, COLUMN_OF, AGENT_OF, NUMBER_OF, WORD_OF };

// `T[...]` of one env.
template <class T, int COLUMNS> struct Array {
  T *data;
  i64 num_envs;
  Watch watch;
  int array, size;
  GZ_MEMBER T &operator[](const Subscript &k) const {
    if (!watch.admits(k, size, array, FLAT, 0)) return watch.nowhere<T>();
    return data[element_offset((int)k.value, num_envs)];
  }
  GZ_MEMBER T &operator()(const Subscript &row, const Subscript &column) const {
    const bool inside = watch.admits(row, size / COLUMNS, array, ROW_OF, column.value) &&
                        watch.admits(column, COLUMNS, array, COLUMN_OF, row.value);
    if (!inside) return watch.nowhere<T>();
    return data[element_offset((int)(row.value * COLUMNS + column.value), num_envs)];
  }
};

// A pointer that knows how far it may go. `last` is where it came from: a line for what has no index, as *p.
template <class T> struct Pointer {
  T *data;
  i64 size;
  Watch watch;
  int array, part;
  i64 other, offset;
  Subscript last;
  GZ_MEMBER T &operator[](const Subscript &k) const {
    const Subscript place(offset + k.value, k.line, k.file);
    return watch.admits(place, size, array, part, other) ? data[place.value] : watch.nowhere<T>();
  }
  GZ_MEMBER T &operator*() const { return (*this)[Subscript(0, last.line, last.file)]; }
  GZ_MEMBER Pointer operator+(const Subscript &k) const {
    return {data, size, watch, array, part, other, offset + k.value, k};
  }
  GZ_MEMBER Pointer operator-(const Subscript &k) const { return *this + Subscript(-k.value, k.line, k.file); }
  GZ_MEMBER Pointer &operator+=(const Subscript &k) { return *this = *this + k; }
  GZ_MEMBER Pointer &operator-=(const Subscript &k) { return *this = *this - k; }
  GZ_MEMBER Pointer &operator++() { return ++offset, *this; }
  GZ_MEMBER Pointer operator++(int) {
    const Pointer before = *this;
    ++offset;
    return before;
  }
};

// A row of numbers for each agent; LENGTH says how many an agent has.
template <class T, class LENGTH> struct Rows {
  T *data;
  int columns;
  Watch watch;
  int array, agents;
  GZ_MEMBER Pointer<T> operator[](const Subscript &agent) const {
    const bool inside = watch.admits(agent, agents, array, AGENT_OF, 0);
    const int a = inside ? (int)agent.value : 0;
    return {data + (i64)a * columns, inside ? LENGTH::of(a) : 0, watch, array, NUMBER_OF, a, 0, agent};
  }
};

template <class T> GZ Pointer<u32> words(const Pointer<T> &row) {
  const i64 size = sizeof(u32) / sizeof(T);
  return {reinterpret_cast<u32 *>(row.data), row.size / size, row.watch, row.array, WORD_OF, row.other,
          row.offset / size, row.last};
}

template <int N, class T, class V>
GZ void copy(const Pointer<T> &to, const Pointer<V> &from, int line = __builtin_LINE(), const char *file = __builtin_FILE()) {
  for (int k = 0; k < N; ++k) to[Subscript(k, line, file)] = from[Subscript(k, line, file)];
}

template <int BITS, int ROWS, int COLUMNS, class Table, int SIZE>
GZ u64 window_bits(const Table &table, const Array<u8, SIZE> &bytes, const Subscript &first, int pitch) {
  u64 bits = 0;
  for (int k = 0; k < ROWS * COLUMNS; ++k) {
    const FieldPlace place = place_after(first, k / COLUMNS * pitch + k % COLUMNS);
    const u32 entry = table[same_line(first, bytes[place] & 31)];
    bits |= (u64)(entry & (1u << BITS) - 1u) << BITS * k;
  }
  return bits;
}

}  // namespace gz
