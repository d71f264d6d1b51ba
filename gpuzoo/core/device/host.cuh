// How a CPU is called: kernels as functions, whose envs threads share, and random actions. walk_cpu.cuh and walk_packed.cuh
// go through the envs of a thread.

namespace gz {

// `envs`: null, or the indices of those that are stepped.
struct Call {
  const Store *store;
  const i64 *envs;
  i64 steps;
  bool random;
  int reset;
  i64 rows;
};

// For a tile of envs, in two passes: random bits, which are always drawn in vector instructions, and the choices, which
// are not where there are masks.
GZ void act(const Store &s, i64 low, i64 high) {
  constexpr int BLOCKS = (ACTION_NUMBERS + 3) / 4, WORDS = ACTION_NUMBERS < 4 ? ACTION_NUMBERS : 4;
  const int envs = (int)(high - low);
  alignas(64) u32 bits[TILE * BLOCKS * WORDS];
  GZ_INDEPENDENT
  for (int j = 0; j < envs * BLOCKS; ++j) {
    const i64 i = low + j / BLOCKS;
    const u64 seed = s.seed[i];
    const u32x4 counter = {(u32)(j % BLOCKS), CHOOSER, (u32)s.elapsed_steps[i], s.episode[i]};
    const u32x4 word = philox(counter, (u32)seed, (u32)(seed >> 32));
    bits[j * WORDS] = word.x;
    if constexpr (WORDS > 1) bits[j * WORDS + 1] = word.y;
    if constexpr (WORDS > 2) bits[j * WORDS + 2] = word.z;
    if constexpr (WORDS > 3) bits[j * WORDS + 3] = word.w;
  }
  Action *actions = s.action + low * ACTION_NUMBERS;
#if GZ_CHOOSES_PARTS
  for (int r = 0; r < envs * AGENTS; ++r) {
    const int env = r / AGENTS, agent = r % AGENTS;
    const u32 random = bits[env * (BLOCKS * WORDS) + agent * ACTION_SIZE];
    choose_parts(s, low + env, agent, random, actions + r * ACTION_SIZE);
  }
#else
  GZ_INDEPENDENT
  for (int r = 0; r < envs * ACTION_NUMBERS; ++r) {
    const int env = r / ACTION_NUMBERS, k = r % ACTION_NUMBERS;
    actions[r] = chosen_action(s, low + env, k / ACTION_SIZE, k % ACTION_SIZE, bits[env * (BLOCKS * WORDS) + k]);
  }
#endif
}

// What walks through envs from `begin` to `end`; a `Call` says which.
static void run_range(const void *call, i64 begin, i64 end);
static void some_range(const void *call, i64 begin, i64 end);
static void reset_range(const void *call, i64 begin, i64 end);
static void state_range(const void *call, i64 begin, i64 end);

// How many envs a thread takes at once: a quarter of its share, and a tile at most. A vectorised loop takes whole tiles. Other
// games take a multiple of 16 envs if there are enough, as the flags of neighbours share a cache line.
GZ i64 share(i64 count, int threads) {
  constexpr int WHOLE = GZ_PACK_WIDTH > 1 ? GZ_PACK_WIDTH : GZ_BRANCHLESS ? TILE : 1, PART = 16;
  const i64 wholes = (count + WHOLE - 1) / WHOLE, each = (wholes + 4 * threads - 1) / (4 * threads) * WHOLE;
  const i64 rounded = WHOLE == 1 && each > PART ? (each + PART - 1) / PART * PART : each;
  return rounded < TILE ? rounded : TILE;
}

static void act_range(const void *pointer, i64 begin, i64 end) {
  const Store s = *((const Call *)pointer)->store;
  for (i64 low = begin; low < end; low += TILE) act(s, low, low + TILE < end ? low + TILE : end);
}

extern "C" void gz_launch_reset(const Store *store, i64 reset, i64 count, int threads) {
  const Call call = {store, nullptr, 0, false, (int)reset, 0};
  parallel(reset_range, &call, count, share(count, threads), threads);
}
extern "C" void gz_launch_step(const Store *store, i64 envs, i64 count, int threads) {
  const Call call = {store, (const i64 *)envs, 1, false, 0, 0};
  parallel(GZ_BRANCHLESS && envs ? some_range : run_range, &call, count, share(count, threads), threads);
}
extern "C" void gz_launch_rollout(const Store *store, i64 steps, i64 count, int threads) {
  const Call call = {store, nullptr, steps, true, 0, 0};
  parallel(run_range, &call, count, share(count, threads), threads);
}
extern "C" void gz_launch_act(const Store *store, i64, i64 count, int threads) {
  const Call call = {store, nullptr, 0, true, 0, 0};
  parallel(act_range, &call, count, TILE, threads);
}
extern "C" void gz_launch_state(const Store *store, i64 rows, i64 count, int threads) {
  const Call call = {store, nullptr, 0, false, 0, rows};
  parallel(state_range, &call, count, TILE, threads);
}

}  // namespace gz
