// How a GPU writes observations and action masks: an env has a row of numbers in each of these arrays. Rules write numbers
// of many agents, or of many envs, at a time. In global memory these lie far from each other, and each store of a warp
// would touch 32 sectors. So threads that work together, a team, assemble rows in shared memory, and store them side by
// side in 16 bytes per thread. A team is a warp, or the block of an env with more lanes. Where the rows of its envs need
// too much memory, a part of them observes at a time. Where even those of one env do, the region that writes them goes
// through a window of agents at a time, if the rules allow it (core/windows.py).

// In a namespace of its own, as rules may have such names, too.
namespace gz::rows {

constexpr int TEAM = LANES < WARP ? WARP : (int)LANES, TEAMS = BLOCK / TEAM, ENVS = TEAM / LANES;

// The threads of a team that go through a step together, by a bit each where the team has several envs. The k-th env has
// index first + k, or envs[first + k].
struct Together {
  u32 mask;
  i64 first;
  const i64 *envs;
  GZ_MEMBER i64 env(int k) const { return envs ? envs[first + k] : first + k; }
};
GZ Together alone(i64 i) { return {~0u, i, nullptr}; }

GZ Together neighbours(const i64 *envs, i64 k, i64 count) {
  if constexpr (ENVS == 1) return alone(envs ? envs[k] : k);
  const i64 first = k - (int)threadIdx.x % TEAM / LANES, left = count - first;
  return {left < ENVS ? (1u << (int)left * LANES) - 1u : ~0u, first, envs};
}

template <int BYTES> struct alignas(BYTES) Bytes {
  u32 words[BYTES / 4];
};
constexpr int CHUNK = 16, SECTOR = 32;
using Chunk = Bytes<CHUNK>;

// One of the arrays, with N numbers per env.
template <class T, int N, class LENGTH> struct Output {
  using Number = T;
  using Length = LENGTH;
  static constexpr int NUMBERS = N, BYTES = N * (int)sizeof(T);
  // Bytes from row to row. Where threads have a row each, and it is whole sectors, an odd number of chunks, so that
  // threads meet in few memory banks.
  static constexpr bool GAPS = LANES == 1 && BYTES > 0 && BYTES % SECTOR == 0;
  static constexpr int STRIDE = BYTES + (GAPS ? CHUNK : 0);
};
using Observations = Output<Observation, OBSERVERS * OBSERVATION_SIZE, Length_observation>;
using Masks = Output<i8, OBSERVERS * MASK_SIZE, Length_action_mask>;  // in games without masks of no bytes

// Shared memory of a team. An SM then has shared memory for more threads than it has registers for.
constexpr int ROOM = TEAM > 6 * WARP ? 38912 : TEAM * 192;
constexpr int of_turn(int envs) {
  return envs * (Observations::STRIDE + Masks::STRIDE) <= ROOM ? envs : envs > 1 ? of_turn(envs / 2) : 0;
}
// How many of a team's envs observe at a time.
constexpr int TURN = of_turn(ENVS);

// A row of one chunk is stored by the thread that made it.
constexpr bool OF_ONE_CHUNK =
    LANES == 1 && MASK_SIZE == 0 && (Observations::BYTES == 8 || Observations::BYTES == CHUNK);
using Whole = Bytes<OF_ONE_CHUNK ? Observations::BYTES : CHUNK>;
constexpr bool ASSEMBLES = OF_ONE_CHUNK || (Observations::BYTES > 8 && TURN > (LANES == 1));

// How many agents of an env have a place for their rows; 0: all of them, or none. A multiple of 4, so that all windows
// begin alike within a chunk. As few windows as possible, and none much shorter than the others.
constexpr int balanced(int most) {
  return most < 4 ? 0 : ((OBSERVERS + (OBSERVERS + most - 1) / most - 1) / ((OBSERVERS + most - 1) / most) + 3) / 4 * 4;
}
constexpr int SEEN_AT_ONCE =
    GZ_WINDOWED && TURN == 0 ? balanced(ROOM / ENVS / ((Observations::BYTES + Masks::BYTES) / OBSERVERS) / 4 * 4) : 0;

// A turn's rows lie within a chunk as they will in global memory. It is not said that rows of bytes begin at one: the
// compiler would put neighbouring bytes together, and keep twice the registers for it.
template <class O> constexpr bool SHIFTED = TURN * O::BYTES % CHUNK != 0 || sizeof(typename O::Number) == 1;
template <class O> constexpr int PLACE = (TURN * O::STRIDE + CHUNK - 1) / CHUNK * CHUNK + (SHIFTED<O> ? CHUNK : 0);
template <class O> GZ int shift(const typename O::Number *rows, const Together &all, int turn) {
  if constexpr (!SHIFTED<O>) return 0;
  return (int)(u64)(rows + all.env(turn * TURN) * O::NUMBERS) & (CHUNK - 1);
}

// Padding is written by no rule.
template <class O> GZ void clear_padding(typename O::Number *place, int first = 0, int stop = OBSERVERS) {
  constexpr int COLUMNS = O::NUMBERS / OBSERVERS;
  if constexpr (O::Length::PADDED)
    for (int a = first + lane(); a < stop; a += LANES)
      for (int k = O::Length::of(a); k < COLUMNS; ++k) place[(a - first) * COLUMNS + k] = 0;
}

// Those of them who observe. All must call it.
GZ Together of_them(const Together &all, bool observes) {
  if constexpr (ASSEMBLES && !OF_ONE_CHUNK && ENVS > 1)
    return {__ballot_sync(all.mask, observes), all.first, all.envs};
  else
    return all;
}

GZ void wait_for(const Together &all) {
  if constexpr (ENVS > 1)
    __syncwarp(all.mask);
  else
    barrier();
}

// Stores numbers that lie at an offset of `place`, by `width` threads of which this one is the rank-th. Whole sectors go
// in chunks, if places within a chunk are the same here and there.
template <class O>
GZ void store(const u8 *place, int offset, typename O::Number *to, int numbers, int rank, int width) {
  using T = typename O::Number;
  constexpr int OF_ROW = O::GAPS ? O::BYTES / CHUNK : 1, APART_BY = O::GAPS ? O::STRIDE / CHUNK : 1;
  constexpr int SIZE = (int)sizeof(T);
  const int begin = (int)(u64)to & (SECTOR - 1);
  const bool alike = ((begin - offset) & (CHUNK - 1)) == 0;
  const int head = alike ? min(numbers, ((SECTOR - begin) & (SECTOR - 1)) / SIZE) : numbers;
  const int chunks = (numbers - head) * SIZE / SECTOR * (SECTOR / CHUNK);
  const T *const from = reinterpret_cast<const T *>(place + offset);
  const auto whole = reinterpret_cast<const Chunk *>(place + offset + head * SIZE);
  GZ_ROLLED
  for (int n = rank; n < head; n += width) to[n] = from[n];
  GZ_ROLLED
  for (int c = rank; c < chunks; c += width)
    reinterpret_cast<Chunk *>(to + head)[c] = whole[O::GAPS ? c / OF_ROW * APART_BY + c % OF_ROW : c];
  GZ_ROLLED
  for (int n = head + chunks * (CHUNK / SIZE) + rank; n < numbers; n += width) to[n] = from[n];
}

// Stores the rows of a turn, together if all are there; the threads of `all` share the work.
template <class O>
GZ void store_rows(const u8 *place, typename O::Number *rows, const Together &all, int turn) {
  const int first = shift<O>(rows, all, turn);
  if constexpr (ENVS == 1) {
    store<O>(place, first, rows + all.env(0) * O::NUMBERS, O::NUMBERS, (int)threadIdx.x % TEAM, TEAM);
  } else {
    constexpr u32 EACH = TURN == ENVS ? ~0u : (1u << TURN * LANES % WARP) - 1u;
    const int begin = turn * TURN;
    const int rank = popcount(all.mask & ((1u << (int)threadIdx.x % WARP) - 1u)), width = popcount(all.mask);
    const u32 present = all.mask >> begin * LANES & EACH;
    const bool together = present == EACH && !all.envs && !(O::GAPS && ((u64)rows & (SECTOR - 1)));
    GZ_ROLLED
    for (int r = 0; r < (together ? 1 : TURN); ++r)
      if (present >> r * LANES & 1u)
        store<O>(place, first + r * O::STRIDE, rows + all.env(begin + r) * O::NUMBERS,
                 together ? TURN * O::NUMBERS : O::NUMBERS, rank, width);
  }
}

template <class S>
GZ void finish_turn(const u8 *observations, const u8 *masks, const S &s, const Together &those, int turn) {
  if (ENVS > 1 && !(those.mask >> turn * TURN * LANES)) return;  // nobody has it, nor a later one
  const Together all = {those.mask, anew(those.first), those.envs};
  wait_for(all);
  store_rows<Observations>(observations, s.observation, all, turn);
  if constexpr (MASK_SIZE > 0) store_rows<Masks>(masks, s.action_mask, all, turn);
  wait_for(all);
}

#if GZ_WINDOWED

template <class T> GZ int within_chunk(const T *row) { return (int)(u64)row & (CHUNK - 1); }

// Stores the rows of agents first, ..., stop - 1, by the lanes of their env.
template <class O> GZ void store_window(const typename O::Number *place, typename O::Number *rows, int first, int stop) {
  constexpr int COLUMNS = O::NUMBERS / OBSERVERS;
  const int offset = within_chunk(rows);
  const u8 *const from = reinterpret_cast<const u8 *>(place) - offset;
  store<O>(from, offset, rows + first * COLUMNS, (stop - first) * COLUMNS, lane(), LANES);
}

// Goes through the agents, a window at a time: run(first, stop) writes rows.
template <class E, class F> GZ void in_windows(const E &e, const F &run) {
  GZ_ROLLED
  for (int first = 0; first < OBSERVERS; first += SEEN_AT_ONCE) {
    const int stop = min((int)OBSERVERS, first + SEEN_AT_ONCE);
    clear_padding<Observations>(e.observation.data, first, stop);
    if constexpr (MASK_SIZE > 0) clear_padding<Masks>(e.action_mask.data, first, stop);
    run(first, stop);
    barrier();
    store_window<Observations>(e.observation.data, e.gz_rows, first, stop);
    if constexpr (MASK_SIZE > 0) store_window<Masks>(e.action_mask.data, e.gz_mask_rows, first, stop);
    barrier();
  }
}

#endif

// Waits for those who observed without the others. Where a team's envs take turns, they share its memory.
GZ void meet(const Together &all) {
  if constexpr (GZ_HELP && ASSEMBLES && !OF_ONE_CHUNK && TURN < ENVS) wait_for(all);
}

// What the threads of `all` observe, each in its env i.
template <class S, class E> GZ void observe_together(const S &s, E &e, i64 i, const Together &all) {
  if constexpr (SEEN_AT_ONCE > 0) {
    constexpr int OBSERVATIONS = SEEN_AT_ONCE * Observations::BYTES / OBSERVERS + CHUNK;
    constexpr int MASKS = (SEEN_AT_ONCE * Masks::BYTES / OBSERVERS + 2 * CHUNK - 1) / CHUNK * CHUNK;
    alignas(CHUNK) __shared__ u8 memory[BLOCK / LANES][OBSERVATIONS + (MASK_SIZE ? MASKS : 0)];
    u8 *const place = memory[(int)threadIdx.x / LANES];
    see(e, reinterpret_cast<Observation *>(place + within_chunk(e.gz_rows)));
    if constexpr (MASK_SIZE > 0)
      see_masks(e, reinterpret_cast<i8 *>(place + OBSERVATIONS + within_chunk(e.gz_mask_rows)));
    observe(e);
  } else if constexpr (!ASSEMBLES) {
    observe(e);
  } else if constexpr (OF_ONE_CHUNK) {
    alignas(CHUNK) __shared__ u8 memory[BLOCK][Observations::BYTES];
    Observation *const row = reinterpret_cast<Observation *>(memory[threadIdx.x]);
    see(e, row);
    clear_padding<Observations>(row);
    observe(e);
    Observation *to = s.observation + i * Observations::NUMBERS;
    if (((u64)s.observation & (CHUNK - 1)) == 0)
      reinterpret_cast<Whole &>(*to) = reinterpret_cast<const Whole &>(*row);
    else
      for (int k = 0; k < Observations::NUMBERS; ++k) to[k] = row[k];
  } else {
    constexpr int MASKS_AT = PLACE<Observations>, BYTES = MASKS_AT + (MASK_SIZE ? PLACE<Masks> : 0);
    alignas(CHUNK) __shared__ u8 memory[TEAMS][BYTES ? BYTES : 1];
    u8 *const observations = memory[(int)threadIdx.x / TEAM], *const masks = observations + MASKS_AT;
    // Each env observes once, between the turns before its own and the rest. In a loop over turns the compiler would
    // compute all numbers ahead of it, and keep them in registers.
    const int own = (int)threadIdx.x % TEAM / LANES, turn = own / TURN;
    GZ_ROLLED
    for (int k = 0; k < turn; ++k) finish_turn(observations, masks, s, all, k);
    const auto row = reinterpret_cast<Observation *>(
        observations + shift<Observations>(s.observation, all, turn) + own % TURN * Observations::STRIDE);
    see(e, row);
    clear_padding<Observations>(row);
    if constexpr (MASK_SIZE > 0) {
      const int begin = shift<Masks>(s.action_mask, all, turn) + own % TURN * Masks::STRIDE;
      const auto mask = reinterpret_cast<i8 *>(masks + begin);
      see_masks(e, mask);
      clear_padding<Masks>(mask);
    }
    observe(e);
    GZ_ROLLED
    for (int k = turn; k < ENVS / TURN; ++k) finish_turn(observations, masks, s, all, k);
  }
}

// The same for an env alone: its neighbours do something else.
template <class S, class E> GZ void observe_alone(const S &s, E &e, i64 i) {
  if constexpr (ENVS == 1 || SEEN_AT_ONCE > 0)
    observe_together(s, e, i, alone(i));
  else
    observe(e);
}

// Copies a row by `width` threads of which this one is the rank-th, as many numbers at a time as its place allows.
template <class Unit, class T> GZ int copy_units(T *to, const T *from, int numbers, int rank, int width) {
  constexpr int OF_UNIT = sizeof(Unit) / sizeof(T);
  GZ_ROLLED
  for (int n = rank; n < numbers / OF_UNIT; n += width)
    reinterpret_cast<Unit *>(to)[n] = reinterpret_cast<const Unit *>(from)[n];
  return numbers / OF_UNIT * OF_UNIT;
}
template <class T> GZ void copy_row(T *to, const T *from, int numbers, int rank, int width) {
  const int offset = (int)((u64)to | (u64)from);
  int done = 0;
  if (offset % CHUNK == 0)
    done = copy_units<Chunk>(to, from, numbers, rank, width);
  else if (offset % 4 == 0)
    done = copy_units<Bytes<4>>(to, from, numbers, rank, width);
  GZ_ROLLED
  for (int n = done + rank; n < numbers; n += width) to[n] = from[n];
}

// Whether all threads of a team copy the last rows of an env that ends. By its own threads alone, numbers would go one by
// one, far from those of other envs.
constexpr bool KEEPS_TOGETHER = GZ_HELP && ENVS > 1 && Observations::BYTES + Masks::BYTES > SECTOR;

// Copies the rows of those envs that end. All of the threads call it.
template <class S> GZ void keep_together(const S &s, const Together &those, bool ends) {
  const u32 ending = __ballot_sync(those.mask, ends);
  if (!ending) return;
  const Together all = {those.mask, anew(those.first), those.envs};
  const int rank = popcount(all.mask & ((1u << (int)threadIdx.x % WARP) - 1u)), width = popcount(all.mask);
  wait_for(all);
  GZ_ROLLED
  for (int r = 0; r < ENVS; ++r)
    if (ending >> r * LANES & 1u) {
      const i64 row = all.env(r) * Observations::NUMBERS, mask = all.env(r) * Masks::NUMBERS;
      copy_row(s.final_observation + row, s.observation + row, Observations::NUMBERS, rank, width);
      if constexpr (MASK_SIZE > 0)
        copy_row(s.final_action_mask + mask, s.action_mask + mask, Masks::NUMBERS, rank, width);
    }
  wait_for(all);
}

}  // namespace gz::rows

namespace gz {

using rows::keep_together, rows::KEEPS_TOGETHER, rows::meet;
using rows::observe_alone, rows::observe_together, rows::of_them, rows::Together;

#if GZ_WINDOWED

GZ int place_of_row(int agent) { return rows::SEEN_AT_ONCE ? agent % max(1, rows::SEEN_AT_ONCE) : agent; }

template <class E, class N, class F> GZ void row_lanes(const E &e, N n, F f) {
  if constexpr (rows::SEEN_AT_ONCE == 0)
    lanes(e, n, f);
  else
    rows::in_windows(e, [=](int first, int stop) {
      GZ_AGENTS
      for (int a = first + lane(); a < stop; a += LANES) f(a);
    });
}
template <class E, class N, class M, class F> GZ void row_lanes(const E &e, N n, M m, F f) {
  if constexpr (rows::SEEN_AT_ONCE == 0)
    lanes(e, n, m, f);
  else
    rows::in_windows(e, [=](int first, int stop) {
      _Pragma("unroll 1")
      for (int k = first * m + lane(); k < stop * m; k += LANES) f(k / m, k % m);
    });
}

#endif

}  // namespace gz
