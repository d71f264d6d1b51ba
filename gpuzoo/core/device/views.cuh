// What agents see of a map through square windows: lanes_of_views.

namespace gz {

// What an agent sees: a window of a map, from its cell `first` on, whose rows begin `pitch` elements after each other. Each
// cell has a kind and a number. Channel k shows the kind shows[k], which is not 0, in the cells that are visible.
template <class Kinds, class Numbers, class Shows, class Visible> struct MapView {
  Kinds kinds;
  Numbers numbers;
  int pitch;
  FieldPlace first;
  Shows shows;
  Visible visible;
};
template <class Kinds, class Numbers, class Shows, class Visible>
MapView(Kinds, Numbers, int, FieldPlace, Shows, Visible) -> MapView<Kinds, Numbers, Shows, Visible>;

// The side of a window, how many channels a cell has, and a bit for each channel that shows numbers in place of 1.
template <int SIDE, int CHANNELS, u64 NUMBERS> struct ViewShape {};

// What one cell shows.
template <int SIDE, int CHANNELS, u64 NUMBERS, class V> struct SeenCell {
  V view;
  FieldPlace place;
  int kind;
  GZ_MEMBER SeenCell(const V &view, int cell)
      : view(view), place(place_after(view.first, cell / SIDE * view.pitch + cell % SIDE)),
        kind(view.visible[same_line(view.first, cell)] ? view.kinds[place] : 0) {}
  GZ_MEMBER float operator[](int k) const {
    if (kind != view.shows[same_line(place, k)]) return 0.f;
    return NUMBERS >> k & 1u ? view.numbers[place] : 1.f;
  }
};
template <int SIDE, int CHANNELS, u64 NUMBERS, class V>
GZ SeenCell<SIDE, CHANNELS, NUMBERS, V> seen_cell(ViewShape<SIDE, CHANNELS, NUMBERS>, const V &view, int cell) {
  return {view, cell};
}

// lanes_of_views(e, n, shape, row, view): row(a) becomes what view(a) shows, for each a in 0..n-1: the channels of a cell side
// by side, and cells in reading order.
#if GZ_THREADS
template <class E, class N, int SIDE, int CHANNELS, u64 NUMBERS, class R, class V>
GZ void lanes_of_views(const E &e, N n, ViewShape<SIDE, CHANNELS, NUMBERS> shape, R row, V view) {
  lanes(e, n, Const<SIDE * SIDE * CHANNELS>(),
        [=](int a, int k) { row(a)[k] = seen_cell(shape, view(a), k / CHANNELS)[k % CHANNELS]; });
}
#else
#if GZ_SIDE_BY_SIDE && !defined(GZ_DEBUG) && !defined(GZ_LANE_ORDER)
// In vectors: the cells of a window are copied side by side, and as many of them as a vector has numbers give one vector
// for each channel. The copy for the next agent comes before an agent's row is written: read at once, it would wait for
// the stores.
namespace views {

typedef float Floats __attribute__((vector_size(4 * LONGEST_FLOATS)));
typedef i32 Ints __attribute__((vector_size(4 * LONGEST_FLOATS)));
typedef u8 Bytes __attribute__((vector_size(LONGEST_FLOATS)));
#if defined(__AVX512F__) && !defined(__clang__)  // g++ would take the bytes one by one
GZ Ints widened(Bytes x) { return (Ints)__builtin_ia32_pmovzxbd512_mask((Bytes16)x, Ints{}, (unsigned short)-1); }
#elif defined(__AVX2__) && !defined(__clang__)
GZ Ints widened(Bytes x) { return (Ints)__builtin_ia32_pmovzxbd256((Bytes16)Words16{(u64)x, 0ull}); }
#elif defined(__SSE4_1__) && !defined(__AVX__) && !defined(__clang__)
GZ Ints widened(Bytes x) { return (Ints)__builtin_ia32_pmovzxbd128((Bytes16)Ints{(i32)x}); }
#else
GZ Ints widened(Bytes x) { return __builtin_convertvector(x, Ints); }
#endif

constexpr int COPIED = 16;

template <class T> GZ T loaded(const void *from) {
  T x;
  __builtin_memcpy(&x, from, sizeof(T));
  return x;
}

template <int SIDE> struct Seen {
  alignas(64) float numbers[SIDE * SIDE + 2 * COPIED];
  alignas(64) u8 kinds[SIDE * SIDE + 2 * COPIED];
};

template <int COUNT, class T> GZ void copy_some(T *to, const T *from) { __builtin_memcpy(to, from, COUNT * sizeof(T)); }

// Whole pieces of a row, which is longer than its window: what they have too much, the next row covers.
template <int SIDE, class T> GZ void copy_window(T *to, const T *from, int pitch) {
  constexpr int PIECES = (SIDE + COPIED - 1) / COPIED;
  const int whole = SIDE + pitch < PIECES * COPIED ? 0 : SIDE - 1;  // the last one may be at the end of the field
  GZ_UNROLL
  for (int row = 0; row < whole; ++row) copy_some<PIECES * COPIED>(to + row * SIDE, from + row * pitch);
  for (int row = whole; row < SIDE; ++row) copy_some<SIDE>(to + row * SIDE, from + row * pitch);
}

template <int... K> struct Places {};
template <int N, int... K> struct First : First<N - 1, N - 1, K...> {};
template <int... K> struct First<0, K...> {
  using Type = Places<K...>;
};
using VectorPlaces = First<LONGEST_FLOATS>::Type;

// Vector J of the channels of a vector of cells: their kinds, and what is shown of them.
template <int CHANNELS, int J, int... K> GZ Ints kinds_of(Ints kinds, Places<K...>) {
  return __builtin_shufflevector(kinds, kinds, (LONGEST_FLOATS * J + K) / CHANNELS...);
}
template <int CHANNELS, int J, u64 NUMBERS, int... K> GZ Floats shown_of(Floats numbers, Floats ones, Places<K...>) {
  constexpr auto from = [](int k) { return NUMBERS >> k % CHANNELS & 1u ? k / CHANNELS : LONGEST_FLOATS; };
  return __builtin_shufflevector(numbers, ones, from(LONGEST_FLOATS * J + K)...);
}
template <int CHANNELS, u64 NUMBERS, int J, class F>
GZ void write_channels(Ints kinds, Floats numbers, const Ints *shows, const F &write) {
  if constexpr (J < CHANNELS) {
    const Ints here = kinds_of<CHANNELS, J>(kinds, VectorPlaces()) == shows[J];
    const Floats shown = shown_of<CHANNELS, J, NUMBERS>(numbers, Floats{} + 1.f, VectorPlaces());
    write(J, (Floats)((Ints)shown & here));
    write_channels<CHANNELS, NUMBERS, J + 1>(kinds, numbers, shows, write);
  }
}

constexpr int inverse_of(int x) {  // of an odd number, modulo the numbers of a vector
  int y = 1;
  while (x * y % LONGEST_FLOATS != 1) y += 2;
  return y;
}

template <int CHANNELS> struct Lens {
  Ints shows[CHANNELS];
};
template <int CHANNELS> GZ Lens<CHANNELS> lens_of(const u8 *shows) {
  i32 kinds[CHANNELS * LONGEST_FLOATS];
  for (int k = 0; k < CHANNELS * LONGEST_FLOATS; ++k) kinds[k] = shows[k % CHANNELS];
  return loaded<Lens<CHANNELS>>(kinds);
}

// From the first cell on whose channels begin at an aligned place, vectors are aligned. Those of the first and the last
// cells overlap them.
template <int CHANNELS, u64 NUMBERS, int SIDE>
GZ void write_seen(float *row, const Seen<SIDE> &seen, const u8 *visible, const Lens<CHANNELS> &lens) {
  constexpr int COUNT = LONGEST_FLOATS, CELLS_SEEN = SIDE * SIDE, LAST = CELLS_SEEN - COUNT;
  const auto cells_from = [&](int first, Bytes sees, const auto &write) {
    const Bytes kinds = loaded<Bytes>(seen.kinds + first) & (Bytes)(sees != 0);
    write_channels<CHANNELS, NUMBERS, 0>(widened(kinds), loaded<Floats>(seen.numbers + first), lens.shows,
                                         [&](int j, Floats x) { write(j, row + first * CHANNELS + j * COUNT, x); });
  };
  if constexpr (CELLS_SEEN < COUNT) {
    Bytes sees = {};
    __builtin_memcpy(&sees, visible, CELLS_SEEN);
    Floats channels[CHANNELS];
    cells_from(0, sees, [&](int j, float *, Floats x) { channels[j] = x; });
    __builtin_memcpy(row, channels, CELLS_SEEN * CHANNELS * sizeof(float));
  } else {
    const int start = (int)(-((u64)row / sizeof(float)) % COUNT) * inverse_of(CHANNELS % COUNT) % COUNT;
    if (start > 0)
      cells_from(0, loaded<Bytes>(visible), [=](int j, float *to, Floats x) {
        if (j * COUNT < start * CHANNELS) __builtin_memcpy(to, &x, sizeof(x));
      });
    int cell = start;
    for (; cell + COUNT <= CELLS_SEEN; cell += COUNT)
      cells_from(cell, loaded<Bytes>(visible + cell), [](int, float *to, Floats x) { *(Floats *)to = x; });
    if (cell < CELLS_SEEN)
      cells_from(LAST, loaded<Bytes>(visible + LAST), [=](int j, float *to, Floats x) {
        if ((j + 1) * COUNT > (cell - LAST) * CHANNELS) __builtin_memcpy(to, &x, sizeof(x));
      });
  }
}

template <int SIDE, int CHANNELS, u64 NUMBERS, class R, class V> GZ void write_views(int n, const R &row, const V &view) {
  Seen<SIDE> seen[2];
  Lens<CHANNELS> lens;
  decltype(view(0)) here = {}, next = {};
  const u8 *looked_through = nullptr;
  for (int a = 0; a <= n; ++a) {
    if (a < n) {
      next = view(a);
      copy_window<SIDE>(seen[a % 2].numbers, &next.numbers[next.first], next.pitch);
      copy_window<SIDE>(seen[a % 2].kinds, &next.kinds[next.first], next.pitch);
    }
    if (a > 0) {
      if (here.shows != looked_through) lens = lens_of<CHANNELS>(here.shows);
      looked_through = here.shows;
      write_seen<CHANNELS, NUMBERS>(row(a - 1), seen[(a - 1) % 2], here.visible, lens);
    }
    here = next;
  }
}

}  // namespace views
#define GZ_VIEWS_IN_VECTORS 1
#else
#define GZ_VIEWS_IN_VECTORS 0
#endif

template <class E, class N, int SIDE, int CHANNELS, u64 NUMBERS, class R, class V>
GZ void lanes_of_views(const E &, N n, ViewShape<SIDE, CHANNELS, NUMBERS> shape, const R &row, const V &view) {
#if GZ_VIEWS_IN_VECTORS
  if constexpr (is_floats<decltype(row(0))> && CHANNELS % 2 == 1)
    return views::write_views<SIDE, CHANNELS, NUMBERS>(n, row, view);
#endif
  each(n, [&](int a) {
    const auto seen = view(a);
    for (int cell = 0; cell < SIDE * SIDE; ++cell)
      for (int k = 0; k < CHANNELS; ++k)
        row(a)[same_line(seen.first, cell * CHANNELS + k)] = seen_cell(shape, seen, cell)[k];
  });
}
#endif

}  // namespace gz
