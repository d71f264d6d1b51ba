// How a GPU writes the observations of a game with one lane. Its rules write a row of numbers per thread. In global
// memory neighbouring threads would write far from each other, and each store of a warp would touch 32 sectors. So a
// warp assembles its rows in shared memory, and stores them side by side in 16 bytes per thread. Where they need too
// much memory, a part of the warp observes at a time.

// In a namespace of its own, as rules may have such names, too.
namespace gz::rows {

// The threads of a warp that go through a step together. The k-th of the warp has env first + k, or envs[first + k].
struct Together {
  u32 mask;
  i64 first;
  const i64 *envs;
};

GZ Together neighbours(const i64 *envs, i64 k, i64 count) {
  const i64 first = k - (int)threadIdx.x % WARP, left = count - first;
  return {left < WARP ? (1u << (int)left) - 1u : ~0u, first, envs};
}

template <int BYTES> struct alignas(BYTES) Bytes {
  u32 words[BYTES / 4];
};
template <class T> GZ bool aligned(const T *p) { return ((u64)p & 15) == 0; }

constexpr int ROW_NUMBERS = AGENTS * OBSERVATION_SIZE, ROW_BYTES = ROW_NUMBERS * (int)sizeof(Observation);
constexpr int CHUNK = 16;
using Chunk = Bytes<CHUNK>;

// Bytes from row to row. Where a row is whole chunks, an odd number of them, so that threads meet in few memory banks.
constexpr int STRIDE = ROW_BYTES + (ROW_BYTES % (2 * CHUNK) == 0 ? CHUNK : 0);

// How many of a warp's threads observe at a time. With 5.6 KB per warp an SM has shared memory for more threads than it
// has registers for.
constexpr int TURN = STRIDE <= 144 ? 32 : STRIDE <= 288 ? 16 : STRIDE <= 720 ? 8 : STRIDE <= 1088 ? 4 : 2;

// A row of one chunk is stored by the thread that made it.
constexpr bool OF_ONE_CHUNK = ROW_BYTES == 8 || ROW_BYTES == CHUNK;
using Whole = Bytes<OF_ONE_CHUNK ? ROW_BYTES : CHUNK>;
constexpr bool FITS = ROW_BYTES > 8 && ROW_BYTES <= 2048 && TURN * ROW_BYTES % CHUNK == 0;
constexpr bool ASSEMBLES = LANES == 1 && (OF_ONE_CHUNK || FITS);

// Padding is written by no rule.
template <class T> GZ void clear_padding(T *row) {
  if constexpr (PADDED)
    for (int a = 0; a < AGENTS; ++a)
      for (int k = Length_observation::of(a); k < OBSERVATION_SIZE; ++k) row[a * OBSERVATION_SIZE + k] = 0;
}

// Those of them who observe. All must call it.
GZ Together of_them(const Together &all, bool observes) {
  if constexpr (ASSEMBLES && !OF_ONE_CHUNK)
    return {__ballot_sync(all.mask, observes), all.first, all.envs};
  else
    return all;
}

// Stores rows `begin`, ..., `begin + TURN - 1` of a warp; the threads of `all` share the work.
GZ void store_rows(const u8 *rows, Observation *seen, const Together &all, int begin) {
  constexpr u32 EACH = TURN == WARP ? ~0u : (1u << TURN % WARP) - 1u;
  const u32 present = all.mask >> begin & EACH;
  const int rank = popcount(all.mask & ((1u << (int)threadIdx.x % WARP) - 1u)), width = popcount(all.mask);
  if (present == EACH && !all.envs && aligned(seen)) {
    const auto to = reinterpret_cast<Chunk *>(seen + (all.first + begin) * ROW_NUMBERS);
    const auto from = reinterpret_cast<const Chunk *>(rows);
    constexpr int OF_ROW = ROW_BYTES / CHUNK, APART_BY = STRIDE / CHUNK;
    for (int c = rank; c < TURN * ROW_BYTES / CHUNK; c += width)
      to[c] = from[STRIDE == ROW_BYTES ? c : c / OF_ROW * APART_BY + c % OF_ROW];
    return;
  }
  for (int r = 0; r < TURN; ++r) {
    if (!(present >> r & 1u)) continue;
    const i64 k = all.first + begin + r;
    Observation *to = seen + (all.envs ? all.envs[k] : k) * ROW_NUMBERS;
    const auto from = reinterpret_cast<const Observation *>(rows + r * STRIDE);
    for (int n = rank; n < ROW_NUMBERS; n += width) to[n] = from[n];
  }
}

GZ void finish_turn(const u8 *rows, Observation *seen, const Together &all, int turn) {
  if (!(all.mask >> turn * TURN)) return;  // nobody has it, nor a later one
  __syncwarp(all.mask);
  store_rows(rows, seen, all, turn * TURN);
  __syncwarp(all.mask);
}

// What the threads of `all` observe, each in its env i.
template <class E> GZ void observe_together(const Store &s, E &e, i64 i, const Together &all) {
  if constexpr (!ASSEMBLES) {
    observe(e);
  } else {
    alignas(CHUNK) __shared__ u8 memory[BLOCK / WARP][OF_ONE_CHUNK ? WARP * ROW_BYTES : TURN * STRIDE];
    const int warp = (int)threadIdx.x / WARP, thread = (int)threadIdx.x % WARP;
    u8 *const place = memory[warp] + (OF_ONE_CHUNK ? thread * ROW_BYTES : thread % TURN * STRIDE);
    Observation *const row = reinterpret_cast<Observation *>(place);
    see(e, row);
    if constexpr (OF_ONE_CHUNK) {
      clear_padding(row);
      observe(e);
      Observation *to = s.observation + i * ROW_NUMBERS;
      if (aligned(s.observation))
        reinterpret_cast<Whole &>(*to) = reinterpret_cast<const Whole &>(*row);
      else
        for (int k = 0; k < ROW_NUMBERS; ++k) to[k] = row[k];
    } else {
      // Each thread observes once, between the turns before its own and the rest. In a loop over turns the compiler would
      // compute all numbers ahead of it, and keep them in registers.
      const int turn = thread / TURN;
      for (int k = 0; k < turn; ++k) finish_turn(memory[warp], s.observation, all, k);
      clear_padding(row);
      observe(e);
      for (int k = turn; k < WARP / TURN; ++k) finish_turn(memory[warp], s.observation, all, k);
    }
  }
}

}  // namespace gz::rows

namespace gz {

using rows::of_them, rows::observe_together, rows::Together;

}  // namespace gz
