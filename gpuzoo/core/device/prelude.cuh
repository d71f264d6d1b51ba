// The dialect in which rules are written: lanes, once and the reductions, in their loop form (CPU) and their
// thread form (CUDA, and GZ_SIMT on the host). Each ends with the barrier of the env's lanes, and a reduction has one
// tree order that depends on the number of elements alone: bits do not depend on the lane count or on the machine.
// LANES, the lanes of one env, is a power of two from 1 to 1024 and is defined by the generated part above.
// One file, because both forms of a word stand beside each other: they must give the same bits.

namespace gz {

// A count known to the compiler. It converts to int wherever an int is wanted.
template <int N> struct Const {
  constexpr GZ_MEMBER operator int() const { return N; }
};

template <int K, int N, class F> GZ void unrolled(const F &f) {
  if constexpr (K < N) {
    f(K);
    unrolled<K + 1, N>(f);
  }
}

// Reductions are trees over groups of 32 consecutive elements; the groups' results are then folded in order.
constexpr int GROUP = 32;
constexpr int MAX_GROUPS = 64;  // groups whose results wait for each other at one time

struct Sum {
  template <class T> GZ_MEMBER static T identity() { return (T)0; }
  template <class T> GZ_MEMBER static T combine(T a, T b) { return a + b; }
};
struct Any {
  template <class T> GZ_MEMBER static T identity() { return (T)0; }
  template <class T> GZ_MEMBER static T combine(T a, T b) { return a | b; }
};
template <class T> struct Limits;
template <> struct Limits<float> {
  GZ_MEMBER static float low() { return -infinity(); }
  GZ_MEMBER static float high() { return infinity(); }
};
template <> struct Limits<int> {
  GZ_MEMBER static int low() { return -INT_LIMIT - 1; }
  GZ_MEMBER static int high() { return INT_LIMIT; }
};
template <> struct Limits<u64> {
  GZ_MEMBER static u64 low() { return 0; }
  GZ_MEMBER static u64 high() { return ~0ull; }
};
template <class T> struct Rounds {
  static constexpr bool value = false;
};
template <> struct Rounds<float> {
  static constexpr bool value = true;
};
struct Min {
  template <class T> GZ_MEMBER static T identity() { return Limits<T>::high(); }
  template <class T> GZ_MEMBER static T combine(T a, T b) { return b < a ? b : a; }
};
struct Max {
  template <class T> GZ_MEMBER static T identity() { return Limits<T>::low(); }
  template <class T> GZ_MEMBER static T combine(T a, T b) { return b > a ? b : a; }
};

struct Or {
  template <class T> GZ_MEMBER static T combine(T a, T b) { return a | b; }
};
struct Plus {  // as Sum, but what does not fit goes round on a CPU, too, as it does on GPUs
  GZ_MEMBER static int combine(int a, int b) { return (int)((u32)a + (u32)b); }
  GZ_MEMBER static u32 combine(u32 a, u32 b) { return a + b; }
  GZ_MEMBER static u64 combine(u64 a, u64 b) { return a + b; }
};

// Integers that GPUs add to in one instruction.
template <class T> constexpr bool is_cell = false;
template <> inline constexpr bool is_cell<int> = true;
template <> inline constexpr bool is_cell<u32> = true;
template <> inline constexpr bool is_cell<u64> = true;

// Combines the second half of v with the first, and so on. (NVRTC does not unroll a loop over the halves, and would
// keep v in memory.)
template <class Op, int HALF, class T> GZ void fold(T *v) {
  if constexpr (HALF > 0) {
    GZ_UNROLL
    for (int k = 0; k < HALF; ++k) v[k] = Op::template combine<T>(v[k], v[k + HALF]);
    fold<Op, HALF / 2>(v);
  }
}

struct One {
  GZ_MEMBER int operator()(int) const { return 1; }
};

// Numbers 0, 1, ... of a row become `value` where the bit of `word` is set, and 0 elsewhere.
template <class Row> GZ void write_bits(Row row, int n, u64 word, int value = 1) {
  for (int k = 0; k < n; ++k) row[k] = (u32)(word >> 32 * (k / 32)) >> k % 32 & 1u ? value : 0;
}

// The bits of M numbers. rows_of_bits(e, n, m, row, words_of) is lanes_of_bits, where a row's words are found together.
template <int M> struct Words {
  u64 at[(M + 63) / 64];
};

#if GZ_THREADS

constexpr int WARP = 32;
// Packed rules have many registers per thread: small blocks waste fewer of an SM's.
constexpr int BLOCK = LANES > WARP ? LANES : GZ_PACKED ? WARP : 128;
constexpr int WIDTH = LANES < WARP ? LANES : WARP;  // lanes of one env within one warp

GZ int lane() { return (int)threadIdx.x % LANES; }
GZ u32 warp_mask() {
  return WIDTH == WARP ? 0xffffffffu : ((1u << WIDTH % WARP) - 1u) << ((int)threadIdx.x % WARP / WIDTH * WIDTH);
}
GZ void barrier() {
  if constexpr (LANES > WARP)
    __syncthreads();
  else if constexpr (LANES > 1)
    __syncwarp(warp_mask());
}

// What a region ends with. With debug=True the rules' regions are counted, so that the first fault of an env is known;
// the engine's own are not.
#ifdef GZ_DEBUG
template <class E> GZ auto count_region(const E &e, int) -> decltype((void)e.gz_watch.fault) {
  if (lane() == 0) ++e.gz_watch.fault->regions;
  barrier();
}
#endif
template <class E> GZ void count_region(const E &, long) {}
template <class E> GZ void end_region(const E &e) {
  barrier();
  count_region(e, 0);
}

// Regions of the engine, which have no Env.
struct Store;
GZ void end_region(const Store &) { barrier(); }

// Agents side by side in one thread overlap their loads, and take registers for all of them. Where that is too many,
// core/occupancy.py compiles the game with GZ_ROLLED_LANES: one agent after the other.
#ifdef GZ_ROLLED_LANES
#define GZ_AGENTS GZ_ROLLED
#else
#define GZ_ROLLED_LANES 0
#define GZ_AGENTS
#endif

template <class E, class F> GZ void lanes(const E &e, int n, F f) {
  GZ_AGENTS
  for (int a = lane(); a < n; a += LANES) f(a);
  end_region(e);
}
template <class E, int N, class F> GZ void lanes(const E &e, Const<N>, F f) {
  if constexpr (LANES == 1 && N <= 16 && !GZ_ROLLED_LANES)
    unrolled<0, N>(f);
  else
    lanes(e, (int)N, f);
}
// f(a, b) for every pair of a in 0..n-1 and b in 0..m-1; lanes lie side by side in b.
template <class E, class N, class M, class F> GZ void lanes(const E &e, N n, M m, F f) {
  _Pragma("unroll 1")
  for (int k = lane(); k < n * m; k += LANES) f(k / m, k % m);
  end_region(e);
}
// row(a)[b] is value(a) where bit b of the words word(a, 0), word(a, 1), ... is set, and 0 elsewhere, for every a in
// 0..n-1 and b in 0..m-1. A value is not negative and fits into a number of the row.
template <class E, class N, class M, class R, class W, class V>
GZ void lanes_of_bits(const E &e, N n, M m, R row, W word, V value) {
  lanes(e, n, m, [=](int a, int b) { row(a)[b] = word(a, b / 64) >> b % 64 & 1ull ? value(a) : 0; });
}
template <class E, int N, int M, class R, class W, class V>
GZ void lanes_of_bits(const E &e, Const<N>, Const<M>, R row, W word, V value) {
  const auto write = [=](int k) { row(k / M)[k % M] = word(k / M, k % M / 64) >> k % M % 64 & 1ull ? value(k / M) : 0; };
  if constexpr (LANES == 1 && N * M <= 128 && !GZ_ROLLED_LANES) {
    unrolled<0, N * M>(write);
    end_region(e);
  } else {
    lanes(e, N, M, [=](int a, int b) { write(a * M + b); });
  }
}
template <class E, int N, int M, class R, class W>
GZ void rows_of_bits(const E &e, Const<N>, Const<M>, R row, W words_of) {
  GZ_ROLLED
  for (int a = lane(); a < N; a += LANES) {
    const Words<M> words = words_of(a);
    GZ_UNROLL
    for (int b = 0; b < M; b += 64) write_bits(row(a) + b, M - b < 64 ? M - b : 64, words.at[b / 64]);
  }
  end_region(e);
}
template <class E, class F> GZ void once(const E &e, F f) {
  if (lane() == 0) f();
  end_region(e);
}

// Where the warps of one env exchange their results; one env has a block of its own as soon as it has two warps.
GZ u64 *scratch() {
  __shared__ u64 partials[LANES > WARP ? MAX_GROUPS : 1];
  return partials;
}

template <class Op, class E, class F> GZ auto reduce(const E &e, int n, const F &f) -> decltype(f(0)) {
  using T = decltype(f(0));
  constexpr int STACK = GROUP / WIDTH;  // elements of a group that one lane holds
  constexpr int WARPS = LANES / WIDTH;  // groups that are reduced side by side
  const int column = lane() % WIDTH;
  T total = Op::template identity<T>();
  for (int start = 0; start < n; start += GROUP * MAX_GROUPS) {
    const int stop = min(n, start + GROUP * MAX_GROUPS);
    for (int base = start; base < stop; base += GROUP * WARPS) {
      const int first = base + lane() / WIDTH * GROUP;
      T v[STACK];
      GZ_UNROLL
      for (int k = 0; k < STACK; ++k) {
        int a = first + k * WIDTH + column;
        v[k] = a < stop ? f(a) : Op::template identity<T>();
      }
      fold<Op, STACK / 2>(v);
      GZ_UNROLL
      for (int offset = WIDTH / 2; offset > 0; offset /= 2)
        v[0] = Op::template combine<T>(v[0], __shfl_xor_sync(warp_mask(), v[0], offset));
      if constexpr (WARPS == 1)
        total = base == 0 ? v[0] : Op::template combine<T>(total, v[0]);
      else if (column == 0 && first < stop)
        reinterpret_cast<T &>(scratch()[(first - start) / GROUP]) = v[0];
    }
    if constexpr (WARPS > 1) {
      barrier();
      for (int first = start; first < stop; first += GROUP) {
        T v = reinterpret_cast<T &>(scratch()[(first - start) / GROUP]);
        total = first == 0 ? v : Op::template combine<T>(total, v);
      }
      barrier();
    }
  }
  end_region(e);
  return total;
}

template <class T> GZ void combine_in(Plus, T &x, T v) { atomicAdd(&x, v); }
template <class T> GZ void combine_in(Min, T &x, T v) { atomicMin(&x, v); }
template <class T> GZ void combine_in(Max, T &x, T v) { atomicMax(&x, v); }
template <class T> GZ void combine_in(Or, T &x, T v) { atomicOr(&x, v); }
template <class Op, class T> GZ void combine_in_cell(T &x, T v) {
  if constexpr (LANES == 1)
    x = Op::combine(x, v);
  else
    combine_in(Op(), x, v);
}

constexpr u32 NOBODY_LEFT = ~0u;
template <class E, class W, class F> GZ void in_random_order(const E &e, int n, int draw, W takes_part, F f) {
  for (int a = lane(); a < n; a += LANES) {
    e.random_order(0, a) = random_bits(e, a, draw);
    e.random_order(1, a) = NOBODY_LEFT;
    e.random_order(2, a) = takes_part(a);
  }
  barrier();
  for (int a = lane(); a < n; a += LANES) {
    if (!e.random_order(2, a)) continue;
    const u32 key = e.random_order(0, a);
    int rank = 0;
    for (int b = 0; b < n; ++b) {
      const u32 other = e.random_order(0, b);
      rank += ((other < key) | ((other == key) & (b < a))) & e.random_order(2, b);
    }
    e.random_order(1, rank) = (u32)a;
  }
  barrier();
  if (lane() == 0)
    for (int k = 0; k < n && e.random_order(1, k) != NOBODY_LEFT; ++k) f((int)e.random_order(1, k));
  end_region(e);
}

#else  // CPU: the lanes of an env are the iterations of a loop, which are independent of each other by the dialect

GZ int lane() { return 0; }
GZ void barrier() {}
template <class E> GZ void end_region(const E &) {}

#ifdef GZ_LANE_ORDER  // tests: each region backwards or shuffled, by chance, so that one program has all orders
static thread_local u32 lane_order = 1;
template <class F> GZ void each(int n, F f) {
  lane_order = lane_order * 1664525u + 1013904223u;
  const int start = (int)(lane_order >> 16);
  if (lane_order >> 31) {
    for (int a = n - 1; a >= 0; --a) f(a);
    return;
  }
  int size = 1;
  while (size < n) size *= 2;
  for (int k = 0; k < size; ++k) {
    int a = (k * 5 + start) & (size - 1);
    if (a < n) f(a);
  }
}
template <class F> GZ void each_of_row(int n, F f) { each(n, f); }
#else
template <class F> GZ void each(int n, F f) {
  GZ_INDEPENDENT
  for (int a = 0; a < n; ++a) f(a);
}
// g++ takes what is left over of a known number of vectors one by one, so long rows have shorter vectors for that.
template <class F> GZ void each_of_row(int n, F f) {
  const int longest = n / 64 * 64, vectors = n < 64 ? 0 : n / 16 * 16;
  GZ_INDEPENDENT
  for (int b = 0; b < longest; ++b) f(b);
  GZ_INDEPENDENT
  for (int b = longest; b < vectors; ++b) f(b);
  GZ_INDEPENDENT
  for (int b = vectors; b < n; ++b) f(b);
}
#endif

template <class E, class F> GZ void lanes(const E &, int n, F f) { each(n, f); }
template <class E, int N, class F> GZ void lanes(const E &, Const<N>, const F &f) {
#ifndef GZ_LANE_ORDER
  if constexpr (LANES == 1 && N <= 16)
    unrolled<0, N>(f);
  else
#endif
    each(N, f);
}
template <class E, class N, class M, class F> GZ void lanes(const E &, N n, M m, F f) {
  each(n, [&](int a) { each_of_row(m, [&](int b) { f(a, b); }); });
}
// row[b] is `value` where bit b of word(0), word(1), ... is set, and 0 elsewhere, for every b in 0..n-1.
template <class Row, class W> GZ void write_words(Row row, int n, W word, int value) {
  GZ_UNROLL
  for (int b = 0; b < n; b += 64) write_bits(row + b, n - b < 64 ? n - b : 64, word(b / 64), value);
}
// Bytes in pieces of COUNT, or of less where a row is shorter; the last piece lies partly on the one before it.
template <int COUNT, class W> GZ void write_pieces(u8 *row, int n, W word, int value) {
  if (n >= COUNT) {
    GZ_UNROLL
    for (int end = COUNT; end < n + COUNT; end += COUNT) {
      const int first = (end < n ? end : n) - COUNT, place = first % 64;
      const u64 above = place + COUNT > 64 ? word(first / 64 + 1) << (64 - place) : 0ull;
      write_bytes_of_bits<COUNT>(row + first, word(first / 64) >> place | above, value);
    }
  } else if constexpr (COUNT > 8) {
    write_pieces<COUNT / 2>(row, n, word, value);
  } else {
    const u64 bytes = bytes_of_bits(word(0)) * (u64)value;
    __builtin_memcpy(row, &bytes, n);
  }
}
template <class W> GZ void write_words(u8 *row, int n, W word, int value) { write_pieces<64>(row, n, word, value); }
template <class W> GZ void write_words(i8 *row, int n, W word, int value) { write_pieces<64>((u8 *)row, n, word, value); }
GZ void write_bits(u8 *row, int n, u64 word, int value = 1) {
  write_pieces<64>(row, n, [=](int) { return word; }, value);
}
GZ void write_bits(i8 *row, int n, u64 word, int value = 1) { write_bits((u8 *)row, n, word, value); }
// Floats in the same way.
template <int COUNT> GZ void write_floats(float *row, int n, u64 word, int value) {
  if (n >= COUNT) {
    GZ_UNROLL
    for (int end = COUNT; end < n + COUNT; end += COUNT) {
      const int first = (end < n ? end : n) - COUNT;
      write_floats_of_bits<COUNT>(row + first, word, first, value);
    }
  } else if constexpr (COUNT > 4) {
    write_floats<COUNT / 2>(row, n, word, value);
  } else {
    for (int k = 0; k < n; ++k) row[k] = word >> k & 1 ? (float)value : 0.f;
  }
}
#ifdef __AVX__
constexpr int FLOATS_AT_ONCE = 8;
#else
constexpr int FLOATS_AT_ONCE = 4;
#endif
GZ void write_bits(float *row, int n, u64 word, int value = 1) { write_floats<FLOATS_AT_ONCE>(row, n, word, value); }
template <class E, class N, class M, class R, class W, class V>
GZ void lanes_of_bits(const E &, N n, M m, R row, W word, V value) {
  each(n, [&](int a) { write_words(row(a), m, [&](int k) { return (u64)word(a, k); }, value(a)); });
}
#ifdef __AVX512F__
constexpr int LONGEST_FLOATS = 16;
GZ void write_longest(float *to, u64 x, int first) {
  const Floats16 numbers = only_where(x >> first, Floats16{} + 1.f);
  __builtin_memcpy(to, &numbers, sizeof(numbers));
}
#else
constexpr int LONGEST_FLOATS = FLOATS_AT_ONCE;
GZ void write_longest(float *to, u64 x, int first) { write_floats_of_bits<LONGEST_FLOATS>(to, x, first, 1); }
#endif
// The last LEFT floats, which fill no vector.
template <int LEFT> GZ void write_rest(float *to, u64 left) {
  constexpr int COUNT = LEFT >= 8 ? 8 : 4, WHOLE = LEFT / COUNT * COUNT;
  if constexpr (WHOLE > 0) {
    write_floats_of_bits<COUNT>(to, left, 0, 1);
    write_rest<LEFT - WHOLE>(to + WHOLE, left >> WHOLE);
  } else {
    for (int k = 0; k < LEFT; ++k) to[k] = left >> k & 1 ? 1.f : 0.f;
  }
}
// R rows of M floats without gaps, from row a on, in whole vectors: the last LEFT bits of a row, which fill no vector, begin
// the next one. So all vectors are aligned where the first row is.
template <int R, int M, int PIECE, int LEFT, class W> GZ void write_joined(float *to, int a, u64 left, const W &word) {
  constexpr int PIECES = (M + 63) / 64, FIRST = PIECE % PIECES * 64, BITS = M - FIRST < 64 ? M - FIRST : 64;
  if constexpr (PIECE < PIECES * R) {
    constexpr int WRITTEN = LEFT + BITS > 64 ? 64 : (LEFT + BITS) / LONGEST_FLOATS * LONGEST_FLOATS, USED = WRITTEN - LEFT;
    const u64 bits = (u64)word(a + PIECE / PIECES, PIECE % PIECES) & ~0ull >> 64 - BITS, joined = left | bits << LEFT;
    GZ_UNROLL
    for (int b = 0; b < WRITTEN; b += LONGEST_FLOATS) write_longest(to + b, joined, b);
    const u64 rest = USED <= 0 ? joined : USED == 64 ? 0ull : bits >> (USED & 63);
    write_joined<R, M, PIECE + 1, LEFT + BITS - WRITTEN>(to + WRITTEN, a, rest, word);
  } else {
    write_rest<LEFT>(to, left);
  }
}
template <int N, int M, class W> GZ void write_joined_rows(float *first, const W &word) {
  constexpr int WHOLE = N / LONGEST_FLOATS * LONGEST_FLOATS;
  for (int a = 0; a < WHOLE; a += LONGEST_FLOATS) write_joined<LONGEST_FLOATS, M, 0, 0>(first + a * M, a, 0ull, word);
  write_joined<N - WHOLE, M, 0, 0>(first + WHOLE * M, WHOLE, 0ull, word);
}
template <int N, int M, class R> GZ bool without_gaps(R row) {
  bool joined = true;
  GZ_UNROLL
  for (int a = 1; a < N; ++a) joined &= row(a) == row(0) + a * M;
  return joined;
}
template <class Row> constexpr bool is_floats = false;
template <> inline constexpr bool is_floats<float *> = true;
template <class E, int N, int M, class R, class W>
GZ void lanes_of_bits(const E &, Const<N>, Const<M>, R row, W word, One) {
  if constexpr (N > 1 && M % LONGEST_FLOATS != 0 && is_floats<decltype(row(0))>)
    if (without_gaps<N, M>(row)) return write_joined_rows<N, M>(row(0), word);
  each(N, [&](int a) { write_words(row(a), M, [&](int w) { return (u64)word(a, w); }, 1); });
}
template <class E, int N, int M, class R, class W>
GZ void rows_of_bits(const E &e, Const<N> n, Const<M> m, R row, W words_of) {
  Words<M> words[N];
  each(N, [&](int a) { words[a] = words_of(a); });
  lanes_of_bits(e, n, m, row, [&](int a, int w) { return words[a].at[w]; }, One());
}
template <class E, class F> GZ void once(const E &, F f) { f(); }

template <class Op, class E, class F> GZ auto reduce(const E &, int n, const F &f) -> decltype(f(0)) {
  using T = decltype(f(0));
  T total = Op::template identity<T>();
  if constexpr (!Rounds<T>::value) {  // integers: every order gives the same bits
    for (int a = 0; a < n; ++a) total = Op::template combine<T>(total, f(a));
    return total;
  }
  for (int base = 0; base < n; base += GROUP) {
    T v[GROUP];
    int left = n - base;
    each(GROUP, [&](int k) { v[k] = k < left ? f(base + k) : Op::template identity<T>(); });
    GZ_UNROLL
    for (int half = GROUP / 2; half > 0; half /= 2)
      for (int k = 0; k < half; ++k) v[k] = Op::template combine<T>(v[k], v[k + half]);
    total = base == 0 ? v[0] : Op::template combine<T>(total, v[0]);
  }
  return total;
}

// Volatile, because two iterations may well meet in one place: this loop must stay as it is.
template <class Op, class T> GZ void combine_in_cell(T &x, T v) {
  volatile T &place = x;
  place = Op::combine((T)place, v);
}

// Keys are spread evenly, so that of as many buckets each gets one on average: what is left to sort lies close together.
template <class E, class W, class F> GZ void in_random_order(const E &e, int n, int draw, W takes_part, F f) {
  u32 *keys = &e.random_order(0, 0), *order = &e.random_order(1, 0);
  u32 *places = &e.random_order(2, 0), *sorted = &e.random_order(3, 0), *who = &e.random_order(4, 0);
  int m = 0;
  for (int a = 0; a < n; ++a) {
    who[m] = (u32)a;
    m += takes_part(a);
  }
  each(m, [=](int k) {
    keys[k] = random_bits(e, (int)who[k], draw);
    places[k] = 0;
  });
  for (int k = 0; k < m; ++k) ++places[mulhi(keys[k], (u32)m)];
  for (u32 k = 0, first = 0; k < (u32)m; ++k) {
    const u32 count = places[k];
    places[k] = first;
    first += count;
  }
  for (int k = 0; k < m; ++k) {
    const u32 place = places[mulhi(keys[k], (u32)m)]++;
    sorted[place] = keys[k];
    order[place] = who[k];
  }
  for (int k = 1; k < m; ++k) {
    const u32 a = order[k], key = sorted[k];
    int place = k;
    for (; place > 0 && sorted[place - 1] > key; --place) {
      sorted[place] = sorted[place - 1];
      order[place] = order[place - 1];
    }
    sorted[place] = key;
    order[place] = a;
  }
  for (int k = 0; k < m; ++k) f((int)order[k]);
}

#endif

template <class E, class N, class M, class R, class W> GZ void lanes_of_bits(const E &e, N n, M m, R row, W word) {
  lanes_of_bits(e, n, m, row, word, One());
}

template <class E, class F> GZ auto lane_sum(const E &e, int n, F f) -> decltype(f(0)) { return reduce<Sum>(e, n, f); }
template <class E, class F> GZ auto lane_min(const E &e, int n, F f) -> decltype(f(0)) { return reduce<Min>(e, n, f); }
template <class E, class F> GZ auto lane_max(const E &e, int n, F f) -> decltype(f(0)) { return reduce<Max>(e, n, f); }
template <class E, class F> GZ bool lane_any(const E &e, int n, F f) {
  return reduce<Any>(e, n, [=](int a) { return (int)(bool)f(a); }) != 0;
}

// What scratch holds when rules are called, in the forms that find out whether they look at it.
#ifdef GZ_LANE_ORDER
constexpr u64 GARBAGE = GZ_LANE_ORDER == 1 ? 0xA5A5A5A5A5A5A5A5ull : 0x3C3C3C3C3C3C3C3Cull;
#else
constexpr u64 GARBAGE = 0xA5A5A5A5A5A5A5A5ull;
#endif
template <class T> GZ T garbage() {
  if constexpr (Rounds<T>::value)
    return as_float((u32)GARBAGE);
  else
    return (T)GARBAGE;
}

// Inside a region: changes a cell that other iterations may change in the same way. The order makes no difference.
template <class Op, class T, class V> GZ void scatter(T &cell, V value) {
  static_assert(is_cell<T>, "a scatter changes cells of int32, uint32 or uint64");
  combine_in_cell<Op>(cell, (T)value);
}
template <class T, class V> GZ void scatter_add(T &cell, V value) { scatter<Plus>(cell, value); }
template <class T, class V> GZ void scatter_min(T &cell, V value) { scatter<Min>(cell, value); }
template <class T, class V> GZ void scatter_max(T &cell, V value) { scatter<Max>(cell, value); }
template <class T, class V> GZ void scatter_or(T &cell, V value) { scatter<Or>(cell, value); }
// Deleted, as a compiler then names the author's line; an assertion would name one of this file.
struct a_scatter_takes_integers;
template <class T> a_scatter_takes_integers scatter_add(T &, float) = delete;
template <class T> a_scatter_takes_integers scatter_min(T &, float) = delete;
template <class T> a_scatter_takes_integers scatter_max(T &, float) = delete;
template <class T> a_scatter_takes_integers scatter_or(T &, float) = delete;

// in_random_order(e, n, draw, takes_part, f): f(a) once for each a in 0..n-1 of which takes_part(a) is true at the beginning,
// one after the other on one lane, in ascending order of random_bits(e, a, draw) and then of a.
template <class E, class F> GZ void in_random_order(const E &e, int n, int draw, F f) {
  in_random_order(e, n, draw, [](int) { return true; }, f);
}

// A value of the state for all lanes, to be used outside of a region.
template <class E, class F> GZ auto broadcast(const E &e, F f) -> decltype(f()) {
  auto value = f();
  end_region(e);
  return value;
}

// Unsigned integers in the order of the numbers they stand for.
GZ u32 ordered(int x) { return (u32)x ^ 0x80000000u; }
GZ u32 ordered(float x) { return as_u32(x) >> 31 ? ~as_u32(x) : as_u32(x) | 0x80000000u; }

// The index of the smallest value, the lowest such index on ties; -1 where n = 0.
template <class E, class F> GZ int lane_argmin(const E &e, int n, F f) {
  return (int)(u32)reduce<Min>(e, n, [=](int a) { return (u64)ordered(f(a)) << 32 | (u32)a; });
}

// Where the elements of a field lie. On a GPU with one lane per env, and where rules are packed, element k of all envs lie
// together, as threads and vectors run over envs; otherwise an env's elements lie together.
#if (GZ_THREADS && LANES == 1) || GZ_PACKED
#define GZ_SIDE_BY_SIDE 0
GZ i64 field_offset(i64 env, int) { return env; }
GZ i64 element_offset(int k, i64 num_envs) { return k * num_envs; }
#else
#define GZ_SIDE_BY_SIDE 1
GZ i64 field_offset(i64 env, int size) { return env * size; }
GZ i64 element_offset(Index k, i64) { return k; }
#endif

}  // namespace gz
