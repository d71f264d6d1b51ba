// The only kernels of the project, and all that is the same for every game: time, truncation, episode statistics, final
// observations, autoreset. A step of one env has two halves. `advance` runs the rules for envs that are in an episode;
// `settle` does what is rare, the ends and beginnings of episodes. On a CPU a branchless game (few agents, one lane,
// scalar fields) advances a tile of envs in vector instructions and then settles it; other games do both env by env.
//
// Generated above: Store (where arrays lie), State (an env's scalars, in registers where LANES == 1), Env (what a game
// sees), load, save, bind, forget (scratch, in tests), chosen_action, row_size, see_final, see_state; LANES,
// GZ_BRANCHLESS, GZ_APART, GZ_SHORT, GZ_MASKS, AGENTS, OBSERVATION_SIZE, STATE_SIZE, TILE. One file, as the loops of the CPU and the kernels of GPUs call the same functions.

namespace gz {

// What is called seldom is a function of its own on a CPU: every copy of the rules costs time to compile. On a GPU a
// call would cost a stack.
#if defined(GZ_CUDA) || defined(GZ_SIMT)
#define GZ_SELDOM GZ
#else
#define GZ_SELDOM static __attribute__((noinline))
#endif

enum Mode { NEXT_STEP = 0, SAME_STEP = 1, DISABLED = 2 };

// How an env begins. SILENT: in a step that has no transition, so its reward and flags are cleared. REFRESH: not at all,
// but what is seen of the present state is written anew.
enum Start { AFTER_STEP, SILENT, REFRESH };

GZ_SELDOM void restart(const Store &s, i64 i, u32 episode, int max_steps, Start start) {
  const int t = start == REFRESH ? s.elapsed_steps[i] : 0;
  barrier();
  State v = load(s, i);
  Env e = bind(s, v, i, episode, t, max_steps);
  if (start != REFRESH) {
    lanes(e, AGENTS, [=](int a) {
      const i64 k = i * AGENTS + a;
      s.alive[k] = 1;
      s.episode_return[k] = 0.f;
      if (start == SILENT) {
        s.reward[k] = 0.f;
        s.terminated[k] = s.truncated[k] = 0;
      }
    });
    once(e, [=] {
      s.episode[i] = episode;
      s.elapsed_steps[i] = 0;
      s.waiting[i] = 0;
    });
    forget(e);
    reset(e);
  }
  forget(e);
  observe(e);
  save(s, i, v);
}

// Whether rules and observations have a loop over envs each.
#if defined(GZ_CUDA) || defined(GZ_SIMT)
constexpr bool APART = false;
#else
constexpr bool APART = GZ_APART;
#endif

// Final observations (`finals`) are for who reads them after a step in same step mode. In the middle of a rollout nobody
// does.
GZ bool finals_after(int mode, i64 step, i64 steps) { return mode == SAME_STEP && step + 1 == steps; }

// What `advance` leaves to be done for the envs from `begin` to `end`, where it does.
GZ void look(const Store &s, int mode, bool finals, int max_steps, i64 begin, i64 end) {
  if constexpr (APART)
    for (i64 i = begin; i < end; ++i) {
      const bool begins = mode == SAME_STEP && s.ended[i];
      if (begins && !finals) continue;
      State v = load(s, i);
      Env e = bind(s, v, i, s.episode[i], s.elapsed_steps[i], max_steps);
      if (begins) see_final(s, e, i);
      forget(e);
      observe(e);
    }
}

#if GZ_BRANCHLESS

// Few agents, who begin and end together: no branch, so that a loop over envs can be vectorised. An env that waits for its
// reset computes a step like the others and then keeps what it had.
GZ void advance(const Store &s, bool, int max_steps, i64 i) {
  const bool idle = s.waiting[i];
  State v = load(s, i);
  const State before = v;
  const int t = s.elapsed_steps[i] + !idle;
  Env e = bind(s, v, i, s.episode[i], t, max_steps);
  unrolled<0, AGENTS>([&](int a) { v.reward[a] = 0.f; });
  v.terminated = v.over = 0;
  forget(e);
  step(e);
  // not `idle ? ... : ...`, which g++ takes for stores that are made or not
  const u8 terminated = (u8)(!idle & ((v.terminated | v.over) != 0)), truncated = (u8)(!idle & (t >= max_steps)), stays = idle;
  unrolled<0, AGENTS>([&](int a) {
    const i64 k = i * AGENTS + a;
    const float reward = idle ? 0.f : v.reward[a];
    s.reward[k] = reward;
    s.episode_return[k] += reward;
    s.terminated[k] = (s.terminated[k] & stays) | terminated;
    s.truncated[k] = (s.truncated[k] & stays) | truncated;
  });
  v = keep(idle, before, v);
  forget(e);
  if constexpr (!APART) observe(e);
  save(s, i, v);
  s.elapsed_steps[i] = t;
  s.ended[i] = terminated | truncated;
}

#else

GZ void advance(const Store &s, bool finals, int max_steps, i64 i) {
  const bool idle = s.waiting[i];
  const int t = s.elapsed_steps[i] + 1;
  const u32 episode = s.episode[i];
  barrier();
  State v = load(s, i);
  Env e = bind(s, v, i, episode, t, max_steps);
  if (idle) {
    lanes(e, AGENTS, [=](int a) { s.reward[i * AGENTS + a] = 0.f; });
    once(e, [=] { s.ended[i] = 0; });
    return;
  }
  clear(s, v, i);
  lanes(e, AGENTS, [=](int a) {
    const i64 k = i * AGENTS + a;
    s.reward[k] = 0.f;
    s.terminated[k] = 0;
  });
  forget(e);
  step(e);
  forget(e);
  observe(e);
  const bool out_of_time = t >= max_steps;
  // bit 0: somebody plays on; bit 1: somebody has just finished
  const int news = reduce<Any>(e, AGENTS, [=](int a) {
    const i64 k = i * AGENTS + a;
    const bool gone = s.terminated[k] | e.over;
    return !s.alive[k] ? 0 : gone ? 2 : out_of_time ? 3 : 1;
  });
  lanes(e, AGENTS, [=](int a) {
    const i64 k = i * AGENTS + a;
    const bool acted = s.alive[k];
    const u8 gone = (u8)(acted & ((s.terminated[k] | e.over) != 0));
    s.terminated[k] = gone;
    s.truncated[k] = (u8)(acted & out_of_time);
    if (!acted) s.reward[k] = 0.f;
    s.episode_return[k] += s.reward[k];
    if (gone | (acted & out_of_time)) {
      s.final_return[k] = s.episode_return[k];
      s.final_length[k] = t;
    }
    s.alive[k] = (u8)(acted & !gone & !out_of_time);
  });
  const bool ends = out_of_time | !(news & 1);
  if (finals && (news & 2)) {
    lanes(e, AGENTS * OBSERVATION_SIZE, [=](int k) {
      const i64 agent = i * AGENTS + k / OBSERVATION_SIZE;
      if (AGENTS == 1 || (ends | s.terminated[agent] | s.truncated[agent]))
        s.final_observation[i * (AGENTS * OBSERVATION_SIZE) + k] = s.observation[i * (AGENTS * OBSERVATION_SIZE) + k];
    });
#if GZ_MASKS
    lanes(e, AGENTS * MASK_SIZE, [=](int k) {
      const i64 agent = i * AGENTS + k / MASK_SIZE;
      if (ends | s.terminated[agent] | s.truncated[agent])
        s.final_action_mask[i * (AGENTS * MASK_SIZE) + k] = s.action_mask[i * (AGENTS * MASK_SIZE) + k];
    });
#endif
  }
  once(e, [=] {
    s.elapsed_steps[i] = t;
    s.ended[i] = (u8)ends;
  });
  save(s, i, v);
}

#endif

GZ void settle(const Store &s, int mode, bool finals, int max_steps, i64 i) {
  (void)finals;
  const bool ended = s.ended[i], idle = s.waiting[i];
  const u32 episode = s.episode[i];
  barrier();
  if (ended) {
    if constexpr (GZ_BRANCHLESS) {
      for (i64 k = i * AGENTS; k < (i + 1) * AGENTS; ++k) {
        s.final_return[k] = s.episode_return[k];
        s.final_length[k] = s.elapsed_steps[i];
        s.alive[k] = 0;
      }
      if (finals) {
        constexpr int SEEN = APART ? 0 : AGENTS * OBSERVATION_SIZE;
        for (i64 k = i * SEEN; k < (i + 1) * SEEN; ++k) s.final_observation[k] = s.observation[k];
#if GZ_MASKS
        constexpr int MASKS = AGENTS * MASK_SIZE;
        for (i64 k = i * MASKS; k < (i + 1) * MASKS; ++k) s.final_action_mask[k] = s.action_mask[k];
#endif
      }
    }
    if (mode != SAME_STEP && lane() == 0) s.waiting[i] = 1;
  }
  if (ended ? mode == SAME_STEP : idle && mode != DISABLED) {
    restart(s, i, episode + 1, max_steps, ended ? AFTER_STEP : SILENT);
  }
  barrier();
}

// ---- the game's own global state, for who wants it; both are templates, as only some games have one ----

// Writes the state of env i into its row of `rows`, which is null where nobody wants it.
template <class S, class T> GZ void write_state(const S &s, T *rows, int max_steps, i64 i) {
  if (!rows) return;
  barrier();
  State v = load(s, i);
  auto e = bind(s, v, i, s.episode[i], s.elapsed_steps[i], max_steps);
  see_state(e, rows + i * STATE_SIZE);
  forget(e);
  state(e);
  barrier();
}
// Between the halves of a step: the last state of an episode, before the next one begins.
template <class S> GZ void keep_last_state(const S &s, bool finals, int max_steps, i64 i) {
  if constexpr (STATE_SIZE > 0)
    if (finals && s.ended[i]) write_state(s, s.final_state, max_steps, i);
}
// Behind a step.
template <class S> GZ void show_state(const S &s, int max_steps, i64 i) {
  if constexpr (STATE_SIZE > 0) write_state(s, s.state, max_steps, i);
}
// On demand.
template <class S> GZ void tell_state(const S &s, i64 rows, int max_steps, i64 i) {
  if constexpr (STATE_SIZE > 0) write_state(s, (StateNumber *)rows, max_steps, i);
}

#if GZ_SHORT && !defined(GZ_CUDA) && !defined(GZ_SIMT)

// In bits, as g++ makes `chosen ? x : y` a store that happens or not.
template <class T> GZ T either(u8 chosen, T x, T y) { return y ^ ((x ^ y) & (T)-chosen); }
GZ float either(u8 chosen, float x, float y) { return as_float(either(chosen, as_u32(x), as_u32(y))); }

// `settle` for neighbours of which many end or begin, in vector instructions, for a game with one agent: all are reset, and
// those that do not begin keep what they had.
GZ void settle_all(const Store &s, int mode, bool finals, int max_steps, i64 low, i64 high) {
  const u8 at_once = mode == SAME_STEP, later = mode != DISABLED, seen = finals;
  GZ_INDEPENDENT
  for (i64 i = low; i < high; ++i) {
    const u8 ended = s.ended[i], waits = s.waiting[i] & ~ended, silent = waits & later, begins = (ended & at_once) | silent;
    const u32 episode = s.episode[i] + begins;
    const int length = s.elapsed_steps[i], t = either(begins, 0, length);
    s.final_return[i] = either(ended, s.episode_return[i], s.final_return[i]);
    s.final_length[i] = either(ended, length, s.final_length[i]);
    s.episode_return[i] = either(begins, 0.f, s.episode_return[i]);
    s.alive[i] = (s.alive[i] & ~ended) | begins;
    s.reward[i] = either(silent, 0.f, s.reward[i]);
    s.terminated[i] &= ~silent;
    s.truncated[i] &= ~silent;
    s.waiting[i] = (waits & ~silent) | (ended & ~at_once);
    s.episode[i] = episode;
    s.elapsed_steps[i] = t;
    if constexpr (!APART)
      unrolled<0, OBSERVATION_SIZE>([&](int n) {
        const i64 k = i * row_size(s) + n;
        s.final_observation[k] = either(ended & seen, s.observation[k], s.final_observation[k]);
      });
#if GZ_MASKS
    for (i64 k = i * MASK_SIZE; k < (i + 1) * MASK_SIZE; ++k)
      s.final_action_mask[k] = either(ended & seen, s.action_mask[k], s.final_action_mask[k]);
#endif
    State v = load(s, i);
    const State before = v;
    Env e = bind(s, v, i, episode, t, max_steps);
    forget(e);
    reset(e);
    v = keep(begins == 0, before, v);
    forget(e);
    if constexpr (!APART) observe(e);
    save(s, i, v);
  }
  if constexpr (APART)
    for (i64 i = low; i < high; ++i)
      if (s.elapsed_steps[i] == 0) look(s, DISABLED, false, max_steps, i, i + 1);
}

#endif

// What the reset kernel does with the envs of the mask.
enum Reset { NEXT_EPISODE = 0, NEW_SEED = 1, NO_RESET = 2 };

GZ void reset_env(const Store &s, int max_steps, i64 i, int reset) {
  if (!s.reset_mask[i]) return;
  const u32 episode = reset == NEW_SEED ? 0u : reset == NEXT_EPISODE ? s.episode[i] + 1u : s.episode[i];
  barrier();
  if (lane() == 0 && reset != NO_RESET) {
    if (reset == NEW_SEED) s.seed[i] = s.reset_seed[i];
    s.ended[i] = 0;
  }
  restart(s, i, episode, max_steps, reset == NO_RESET ? REFRESH : SILENT);
  show_state(s, max_steps, i);
}

// Random legal actions, from a stream of their own: an episode's game does not depend on who chose the actions. All
// numbers of an env's actions are draws of one agent, so that a block of random bits serves four of them.
constexpr u32 CHOOSER = POLICY | 1u;
constexpr int ACTION_NUMBERS = AGENTS * ACTION_SIZE;

#if defined(GZ_CUDA) || defined(GZ_SIMT)

GZ void act(const Store &s, i64 i) {
  for (int r = lane(); r < ACTION_NUMBERS; r += LANES) {
    const u32 bits = random_bits(s.seed[i], s.episode[i], (u32)s.elapsed_steps[i], CHOOSER, (u32)r);
    s.action[i * ACTION_NUMBERS + r] = chosen_action(s, i, r / ACTION_SIZE, r % ACTION_SIZE, bits);
  }
  barrier();
}

GZ i64 env_index() { return ((i64)blockIdx.x * BLOCK + threadIdx.x) / LANES; }

// The kernels get an argument and the number of envs to work on. That of gz_step is null, or the address of as many
// indices of envs, all different: then these alone are stepped.

extern "C" __global__ void __launch_bounds__(BLOCK, 1) gz_reset(const Store *store, i64 reset, i64 count) {
  const Store s = *store;
  const i64 i = env_index();
  if (i < count) reset_env(s, s.control->max_steps, i, (int)reset);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1) gz_step(const Store *store, i64 envs, i64 count) {
  const Store s = *store;
  const i64 k = env_index();
  if (k >= count) return;
  const i64 i = envs ? ((const i64 *)envs)[k] : k;
  const int mode = s.control->mode, max_steps = s.control->max_steps;
  const bool finals = finals_after(mode, 0, 1);
  advance(s, finals, max_steps, i);
  keep_last_state(s, finals, max_steps, i);
  settle(s, mode, finals, max_steps, i);
  show_state(s, max_steps, i);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1) gz_rollout(const Store *store, i64 steps, i64 count) {
#if LANES > 1
  const Store &s = *store;  // all its pointers in registers throughout the loop would be too many
#else
  const Store s = *store;
#endif
  const i64 i = env_index();
  if (i >= count) return;
  const int mode = s.control->mode, max_steps = s.control->max_steps;
  for (i64 k = 0; k < steps; ++k) {
    const bool finals = finals_after(mode, k, steps);
    act(s, i);
    advance(s, finals, max_steps, i);
    keep_last_state(s, finals, max_steps, i);
    settle(s, mode, finals, max_steps, i);
  }
  show_state(s, max_steps, i);
}

extern "C" __global__ void gz_act(const Store *store, i64, i64 count) {
  const Store s = *store;
  const i64 i = env_index();
  if (i < count) act(s, i);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1) gz_state(const Store *store, i64 rows, i64 count) {
  const Store s = *store;
  const i64 i = env_index();
  if (i < count) tell_state(s, rows, s.control->max_steps, i);
}

#ifdef GZ_SIMT

struct SimtArguments {
  void (*kernel)(const Store *, i64, i64);
  const Store *store;
  i64 argument, count;
};
static void simt_body(const void *pointer) {
  const SimtArguments &x = *(const SimtArguments *)pointer;
  x.kernel(x.store, x.argument, x.count);
}
static void simt_run(void (*kernel)(const Store *, i64, i64), const Store *store, i64 argument, i64 count) {
  const SimtArguments x = {kernel, store, argument, count};
  simt_launch(simt_body, &x, (int)((count * LANES + BLOCK - 1) / BLOCK), BLOCK);
}
extern "C" void gz_launch_reset(const Store *s, i64 reset, i64 count, int) { simt_run(gz_reset, s, reset, count); }
extern "C" void gz_launch_step(const Store *s, i64 envs, i64 count, int) { simt_run(gz_step, s, envs, count); }
extern "C" void gz_launch_rollout(const Store *s, i64 steps, i64 count, int) { simt_run(gz_rollout, s, steps, count); }
extern "C" void gz_launch_act(const Store *s, i64, i64 count, int) { simt_run(gz_act, s, 0, count); }
extern "C" void gz_launch_state(const Store *s, i64 rows, i64 count, int) { simt_run(gz_state, s, rows, count); }

#endif

#else

// `envs`: null, or the indices of those that are stepped.
struct Call {
  const Store *store;
  const i64 *envs;
  i64 steps;
  bool random;
  int reset;
  i64 rows;
};

static void reset_range(const void *pointer, i64 begin, i64 end) {
  const Call &call = *(const Call *)pointer;
  const int max_steps = call.store->control->max_steps;
  for (i64 i = begin; i < end; ++i) reset_env(*call.store, max_steps, i, call.reset);
}

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
    const u32x4 word = philox({(u32)(j % BLOCKS), CHOOSER, (u32)s.elapsed_steps[i], s.episode[i]}, (u32)seed, (u32)(seed >> 32));
    bits[j * WORDS] = word.x;
    if constexpr (WORDS > 1) bits[j * WORDS + 1] = word.y;
    if constexpr (WORDS > 2) bits[j * WORDS + 2] = word.z;
    if constexpr (WORDS > 3) bits[j * WORDS + 3] = word.w;
  }
  Action *actions = s.action + low * ACTION_NUMBERS;
  GZ_INDEPENDENT
  for (int r = 0; r < envs * ACTION_NUMBERS; ++r) {
    const int env = r / ACTION_NUMBERS, k = r % ACTION_NUMBERS;
    actions[r] = chosen_action(s, low + env, k / ACTION_SIZE, k % ACTION_SIZE, bits[env * (BLOCKS * WORDS) + k]);
  }
}

// A game's regions are functions, which compilers do not inline where they are long, and a call keeps the loop over envs
// from being vectorised.
#if GZ_BRANCHLESS
#define GZ_FLAT __attribute__((flatten))
#else
#define GZ_FLAT
#endif

GZ_FLAT static void run_range(const void *pointer, i64 begin, i64 end) {
  const Call &call = *(const Call *)pointer;
  const Store s = *call.store;  // its address is given to nobody, so the loops below have it in registers
  const int mode = s.control->mode, max_steps = s.control->max_steps;
  for (i64 low = begin; low < end; low += TILE) {
    const i64 high = low + TILE < end ? low + TILE : end;
    for (i64 step = 0; step < call.steps; ++step) {
      const bool finals = finals_after(mode, step, call.steps);
      if (call.random) act(s, low, high);
#if GZ_BRANCHLESS
      GZ_INDEPENDENT
      for (i64 i = low; i < high; ++i) advance(s, finals, max_steps, i);
      look(s, mode, finals, max_steps, low, high);
      for (i64 i = low; finals && i < high; ++i) keep_last_state(s, finals, max_steps, i);
      int news = 0;
      for (i64 i = low; i < high; ++i) news += s.ended[i] | s.waiting[i];
#if GZ_SHORT
      if (8 * news > high - low) {
        settle_all(s, mode, finals, max_steps, low, high);
        news = 0;
      }
#endif
      for (i64 i = low; news && i < high; ++i)
        if (s.ended[i] | s.waiting[i]) settle(*call.store, mode, finals, max_steps, i);
#else
      for (i64 k = low; k < high; ++k) {
        const i64 i = call.envs ? call.envs[k] : k;
        advance(s, finals, max_steps, i);
        keep_last_state(s, finals, max_steps, i);
        settle(*call.store, mode, finals, max_steps, i);
      }
#endif
    }
    for (i64 k = low; k < high; ++k) show_state(*call.store, max_steps, call.envs ? call.envs[k] : k);
  }
}

// For branchless games: long runs of neighbours are vectorised, the rest goes env by env.
static void some_range(const void *pointer, i64 begin, i64 end) {
  constexpr i64 LONG = 8;
  const Call &call = *(const Call *)pointer;
  const Call whole = {call.store, nullptr, 1, false, 0, 0};
  const Store s = *call.store;
  const int mode = s.control->mode, max_steps = s.control->max_steps;
  const bool finals = finals_after(mode, 0, 1);
  for (i64 k = begin, next; k < end; k = next) {
    const i64 first = call.envs[k];
    for (next = k + 1; next < end && call.envs[next] == first + (next - k);) ++next;
    if (next - k >= LONG) {
      run_range(&whole, first, first + (next - k));
      continue;
    }
    for (i64 i = first; i < first + (next - k); ++i) {
      advance(s, finals, max_steps, i);
      look(s, mode, finals, max_steps, i, i + 1);
      keep_last_state(s, finals, max_steps, i);
      if (s.ended[i] | s.waiting[i]) settle(*call.store, mode, finals, max_steps, i);
      show_state(*call.store, max_steps, i);
    }
  }
}

static void state_range(const void *pointer, i64 begin, i64 end) {
  const Call &call = *(const Call *)pointer;
  for (i64 i = begin; i < end; ++i) tell_state(*call.store, call.rows, call.store->control->max_steps, i);
}

static void act_range(const void *pointer, i64 begin, i64 end) {
  const Store s = *((const Call *)pointer)->store;
  for (i64 low = begin; low < end; low += TILE) act(s, low, low + TILE < end ? low + TILE : end);
}

extern "C" void gz_launch_reset(const Store *store, i64 reset, i64 count, int threads) {
  const Call call = {store, nullptr, 0, false, (int)reset, 0};
  parallel(reset_range, &call, count, TILE, threads);
}
extern "C" void gz_launch_step(const Store *store, i64 envs, i64 count, int threads) {
  const Call call = {store, (const i64 *)envs, 1, false, 0, 0};
  parallel(GZ_BRANCHLESS && envs ? some_range : run_range, &call, count, TILE, threads);
}
extern "C" void gz_launch_rollout(const Store *store, i64 steps, i64 count, int threads) {
  const Call call = {store, nullptr, steps, true, 0, 0};
  parallel(run_range, &call, count, TILE, threads);
}
extern "C" void gz_launch_act(const Store *store, i64, i64 count, int threads) {
  const Call call = {store, nullptr, 0, true, 0, 0};
  parallel(act_range, &call, count, TILE, threads);
}
extern "C" void gz_launch_state(const Store *store, i64 rows, i64 count, int threads) {
  const Call call = {store, nullptr, 0, false, 0, rows};
  parallel(state_range, &call, count, TILE, threads);
}

#endif

}  // namespace gz
