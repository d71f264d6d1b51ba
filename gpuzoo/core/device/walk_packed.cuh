// How a CPU goes through a batch of a game with packed rules: PACK_WIDTH envs at once. A step of a pack has the two halves
// of episode.cuh. `advance` runs the rules for neighbours, of which those that wait for a reset keep what they had; then
// the envs of a tile that begin an episode are put together in packs of their own, so that each costs its share of a pack.

namespace gz {

// Actions, as the rules see them: legal ones. In two passes, as a vector is loaded late after its numbers were stored.
GZ void fetch_actions(const Store &s, const Place &at, State &v) {
  Action numbers[ACTION_NUMBERS][PACK_WIDTH];
  for (int k = 0; k < ACTION_NUMBERS; ++k)
    for (int w = 0; w < PACK_WIDTH; ++w) numbers[k][w] = s.action[at.env[w] * ACTION_NUMBERS + k];
  for (int k = 0; k < ACTION_NUMBERS; ++k) {
    __builtin_memcpy(&v.action[k], numbers[k], sizeof(v.action[k]));
    v.action[k] = legal(v.action[k], k / ACTION_SIZE, k % ACTION_SIZE);
  }
}

// What is the same for rules in any call. `t` and `episode` are set by the caller.
GZ void load(const Store &s, const Place &at, State &v) {
  load_fields(s, at, v);
  load_config(s, at, v.cfg);
  fetch_actions(s, at, v);
  fetch(v.seed, s.seed, at);
  for (int k = 0; k < AGENTS; ++k) v.reward[k] = 0.f;
  v.terminated = false;
}

__attribute__((noinline)) static void observe_pack(const Store &s, const Place &at, PackMask here, State &v, int max_steps) {
  if constexpr (PADDED)
    for (int k = 0; k < AGENTS * OBSERVATION_SIZE; ++k) v.observation[k] = 0.f;
  Env e = bind(s, v, max_steps);
  forget(e);
  observe(e);
  write_rows<AGENTS * OBSERVATION_SIZE>(s.observation, AGENTS * OBSERVATION_SIZE, at, here, v.observation);
}

// ---- a step, first half ----

// The same as `advance_general` for each of these envs: their agents begin and end together. It has no branch behind the
// rules, so that it is vectorised, and its Store is a copy that nobody else sees, as bytes may be a part of anything.
__attribute__((noinline)) static void advance(const Store &store, bool finals, int max_steps, const Place &at) {
  const Store s = store;
  State v;
  PackMask waiting;
  fetch(waiting, s.waiting, at);
  const PackMask acts = !waiting;
  u8 awake[PACK_WIDTH], over[PACK_WIDTH] = {}, ends[PACK_WIDTH] = {};
  float reward[AGENTS][PACK_WIDTH] = {};
  fetch(v.t, s.elapsed_steps, at);
  v.t += select(acts, 1, 0);
  bytes_of(acts, awake);
  if (any(acts)) {
    load(s, at, v);
    fetch(v.episode, s.episode, at);
    Env e = bind(s, v, max_steps);
    forget(e);
    step(e);
    save_fields(s, at, acts, v);
    observe_pack(store, at, acts, v, max_steps);
    bytes_of(v.terminated, over);
    __builtin_memcpy(reward, v.reward, sizeof(reward));
  }
  int t[PACK_WIDTH];
  __builtin_memcpy(t, &v.t, sizeof(t));
  each_env(at, [&](int w, i64 i) {
    const u8 awakes = awake[w], late = t[w] >= max_steps;
    u8 somebody = 0;
    unrolled<0, AGENTS>([&](int a) {
      const i64 k = i * AGENTS + a;
      const u8 acted = s.alive[k] & awakes, gone = acted & over[w], leaves = acted & (over[w] | late);
      const float number = acted ? reward[a][w] : 0.f;
      s.terminated[k] = (s.terminated[k] & (u8)(awakes ^ 1)) | gone;
      s.truncated[k] = (s.truncated[k] & (u8)(awakes ^ 1)) | (acted & late);
      s.reward[k] = number;
      s.episode_return[k] += number;
      leave(s, k, Blend{leaves}, s.episode_return[k], t[w]);
      somebody |= acted ^ leaves;
    });
    s.elapsed_steps[i] = t[w];
    s.ended[i] = ends[w] = awakes & (u8)(somebody ^ 1);
  });
  if (finals)
    for (int w = 0; w < at.count; ++w)
      if (ends[w]) {
        constexpr int SIZE = AGENTS * OBSERVATION_SIZE;
        const i64 row = at.env[w] * SIZE;
        for (int k = 0; k < SIZE; ++k) s.final_observation[row + k] = s.observation[row + k];
      }
}

// ---- a step, second half ----

// Runs the rules for envs that begin an episode, or only observes them.
__attribute__((noinline)) static void restart(const Store &s, const Place &at, int max_steps, bool begins) {
  State v;
  load(s, at, v);
  fetch(v.t, s.elapsed_steps, at);
  fetch(v.episode, s.episode, at);
  if (begins) {
    Env e = bind(s, v, max_steps);
    forget(e);
    reset(e);
    save_fields(s, at, true, v);
  }
  observe_pack(s, at, true, v, max_steps);
}
GZ void restart(const Store &s, const i64 *envs, i64 count, int max_steps, bool begins) {
  for (i64 k = 0; k < count; k += PACK_WIDTH) restart(s, place_of(envs + k, count - k), max_steps, begins);
}

// What is not the rules' when env i begins an episode.
GZ void begin_episode(const Store &s, i64 i, u32 episode, bool silent) {
  draw_parameters(s, i, true, episode);
  for (int a = 0; a < AGENTS; ++a) join(s, i * AGENTS + a, true, silent);
  begin(s, i, true, episode);
}

// ---- the game's own global state ----

// Templates, which a game without one does not instantiate.
template <class S, class T, class V = State>
GZ void tell_states(const S &s, T *rows, int max_steps, const i64 *envs, i64 count) {
  for (i64 k = 0; rows && k < count; k += PACK_WIDTH) {
    const Place at = place_of(envs + k, count - k);
    V v;
    load(s, at, v);
    fetch(v.t, s.elapsed_steps, at);
    fetch(v.episode, s.episode, at);
    auto e = bind(s, v, max_steps);
    forget(e);
    state(e);
    write_rows<STATE_SIZE>(rows, STATE_SIZE, at, true, v.state);
  }
}
// Between the halves of a step: the last states of episodes, before the next ones begin.
template <class S> GZ void keep_last_states(const S &s, bool finals, int max_steps, const i64 *envs, int count) {
  if constexpr (STATE_SIZE > 0) {
    if (!finals) return;
    i64 last[TILE];
    int ended = 0;
    for (int k = 0; k < count; ++k)
      if (s.ended[envs[k]]) last[ended++] = envs[k];
    tell_states(s, s.final_state, max_steps, last, ended);
  }
}
// Behind a step.
template <class S> GZ void show_states(const S &s, int max_steps, const i64 *envs, i64 count) {
  if constexpr (STATE_SIZE > 0) tell_states(s, s.state, max_steps, envs, count);
}

// ---- batches ----

#ifdef GZ_LANE_ORDER  // tests: in another order, so that neighbours are others
constexpr bool SHUFFLED = true;
#else
constexpr bool SHUFFLED = false;
#endif

// Envs of a tile.
struct Envs {
  i64 env[TILE];
  int count;
  GZ_MEMBER Envs(const i64 *envs, i64 low, i64 high) : count(0) {
    const int n = (int)(high - low);
    each(n, [&](int k) { env[count++] = envs ? envs[low + k] : low + k; });
  }
};

// Ends and begins episodes of those among the envs for which it is time.
static void settle_envs(const Store &s, const Envs &envs, int mode, bool finals, int max_steps) {
  i64 news[TILE];
  int count = 0;
  for (int k = 0; k < envs.count; ++k) {
    news[count] = envs.env[k];
    count += s.ended[envs.env[k]] | s.waiting[envs.env[k]];
  }
  keep_last_states(s, finals, max_steps, news, count);
  int begun = 0;
  for (int k = 0; k < count; ++k) {
    const i64 i = news[k];
    const Next now = next(mode, s.ended[i], s.waiting[i]);
    s.waiting[i] = now.waits;
    if (!now.begins) continue;
    begin_episode(s, i, s.episode[i] + 1, now.silent);
    news[begun++] = i;
  }
  restart(s, news, begun, max_steps, true);
}

static void step_tile(const Store &s, const i64 *envs, int mode, bool finals, int max_steps, i64 low, i64 high) {
  int news = 0;
  if (envs || SHUFFLED) {
    const Envs some(envs, low, high);
    for (int k = 0; k < some.count; k += PACK_WIDTH)
      advance(s, finals, max_steps, place_of(some.env + k, some.count - k));
    return settle_envs(s, some, mode, finals, max_steps);
  }
  i64 rest = low;
  for (; rest + PACK_WIDTH <= high; rest += PACK_WIDTH) advance(s, finals, max_steps, place_at(rest));
  if (rest < high) advance(s, finals, max_steps, place_of(Envs(nullptr, rest, high).env, high - rest));
  const u8 *ended = s.ended, *waiting = s.waiting;
  for (i64 i = low; i < high; ++i) news += ended[i] | waiting[i];
  if (news) settle_envs(s, Envs(nullptr, low, high), mode, finals, max_steps);
}

static void run_range(const void *pointer, i64 begin, i64 end) {
  const Call &call = *(const Call *)pointer;
  const Store s = *call.store;
  const int mode = s.control->mode, max_steps = s.control->max_steps;
  for (i64 low = begin; low < end; low += TILE) {
    const i64 high = low + TILE < end ? low + TILE : end;
    for (i64 step = 0; step < call.steps; ++step) {
      if (call.random) act(s, low, high);
      step_tile(s, call.envs, mode, finals_after(mode, step, call.steps), max_steps, low, high);
    }
    if constexpr (STATE_SIZE > 0) {
      const Envs envs(call.envs, low, high);
      show_states(s, max_steps, envs.env, envs.count);
    }
  }
}

static void some_range(const void *pointer, i64 begin, i64 end) { run_range(pointer, begin, end); }

static void reset_range(const void *pointer, i64 begin, i64 end) {
  const Call &call = *(const Call *)pointer;
  const Store s = *call.store;
  const int max_steps = s.control->max_steps;
  for (i64 low = begin; low < end; low += TILE) {
    const i64 high = low + TILE < end ? low + TILE : end;
    i64 envs[TILE];
    int count = 0;
    for (i64 i = low; i < high; ++i) {
      if (!is_reset(s, i, call.reset)) continue;
      envs[count++] = i;
      if (call.reset == NO_RESET) continue;
      if (call.reset == NEW_SEED) s.seed[i] = s.reset_seed[i];
      const bool of_step = is_of_step(s, i, call.reset);
      s.ended[i] = of_step;
      s.waiting[i] = 0;
      begin_episode(s, i, call.reset == NEW_SEED ? 0u : s.episode[i] + 1u, !of_step);
    }
    restart(s, envs, count, max_steps, call.reset != NO_RESET);
    show_states(s, max_steps, envs, count);
  }
}

template <class S> GZ void tell_range(const S &s, StateNumber *rows, i64 begin, i64 end) {
  if constexpr (STATE_SIZE > 0)
    for (i64 low = begin; low < end; low += TILE) {
      const Envs envs(nullptr, low, low + TILE < end ? low + TILE : end);
      tell_states(s, rows, s.control->max_steps, envs.env, envs.count);
    }
}
static void state_range(const void *pointer, i64 begin, i64 end) {
  const Call &call = *(const Call *)pointer;
  tell_range(*call.store, (StateNumber *)call.rows, begin, end);
}

}  // namespace gz
