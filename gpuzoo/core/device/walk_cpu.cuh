// How a CPU goes through a batch: threads share the envs in tiles that fit into a cache. A branchless game (few agents,
// one lane, few numbers) advances a tile in vector instructions, several envs in each, and then settles those envs
// that end or begin. Any other game does both halves of a step env by env.

// `gpuzoo doctor ID` asks g++ what has become of the loops that are marked "loop over envs".

namespace gz {

// Writes what is seen of env i, where `advance` and `settle` leave that to a loop of its own; `last`: of an episode that
// has ended.
GZ void look(const Store &s, int max_steps, i64 i, bool last) {
  if constexpr (APART) {
    State v = load(s, i);
    Env e = bind(s, v, i, s.episode[i], s.elapsed_steps[i], max_steps);
    if (last) see_last(s, e, i);
    forget(e);
    observe(e);
  }
}

// `settle` for neighbours of which many end or begin, in vector instructions: all are reset, and those that do not begin
// keep what they had.
template <class Held> GZ void settle_all(const Store &s, int mode, bool finals, int max_steps, i64 low, i64 high) {
  const u8 seen = finals;
  GZ_INDEPENDENT
  for (i64 i = low; i < high; ++i) {  // loop over envs: resets
    const u8 ended = s.ended[i];
    const Next now = next(mode, ended, s.waiting[i]);
    const Blend ends = {ended}, kept = {(u8)(ended & seen)}, begins = {now.begins}, silent = {now.silent};
    const u32 episode = s.episode[i] + now.begins;
    const int length = s.elapsed_steps[i];
    int t = length;
    put(begins, t, 0);
    s.waiting[i] = now.waits;
    unrolled<0, AGENTS>([=](int a) { leave(s, i * AGENTS + a, ends, s.episode_return[i * AGENTS + a], length); });
    keep_last_seen(s, i, [=](int) { return kept; });
    unrolled<0, AGENTS>([=](int a) { join(s, i * AGENTS + a, begins, silent); });
    begin(s, i, begins, episode);
    draw_parameters(s, i, begins, episode);
    Held v = load(s, i);
    const Held before = v;
    Env e = bind(s, v, i, episode, t, max_steps);
    forget(e);
    reset(e);
    v = keep(!now.begins, before, v);
    forget(e);
    if constexpr (!APART) observe(e);
    save(s, i, v);
  }
}

// The end of a step for an env that ends an episode or waits for the next one, where `count` did what comes before.
GZ_SELDOM void conclude(const Store &s, int mode, bool finals, int max_steps, i64 i, bool seen) {
  const bool leaves = s.ended[i] && (!ALONE || s.terminated[i] | s.truncated[i]);
  for (int a = 0; leaves && a < AGENTS; ++a)
    leave(s, i * AGENTS + a, true, s.episode_return[i * AGENTS + a], s.elapsed_steps[i]);
  if (finals && leaves) keep_last_seen(s, i, [](int) { return true; });
  keep_last_state(s, finals, max_steps, i);
  settle(s, halfway(s, i), mode, finals, max_steps, i, {}, seen);
}

// The first half of a step of neighbours. `WAITS`: whether one of them may wait for its reset.
template <class Held, bool WAITS> GZ void advance_tile(const Store &s, bool finals, int max_steps, i64 low, i64 high) {
  GZ_INDEPENDENT
  for (i64 i = low; i < high; ++i) advance<Held, WAITS>(s, finals, max_steps, i);  // loop over envs: rules
}

template <class Held>
GZ void step_tile(const Call &call, const Store &s, int mode, bool finals, bool seen, int max_steps, i64 low, i64 high) {
  if constexpr (GZ_BRANCHLESS) {
    u8 waits = APART;  // then steps are long, and gain nothing from knowing that nobody waits
    for (i64 i = low; !APART && i < high; ++i) waits |= s.waiting[i];
    if (waits)
      advance_tile<Held, true>(s, finals, max_steps, low, high);
    else
      advance_tile<Held, APART>(s, finals, max_steps, low, high);
    for (i64 i = low; finals && i < high; ++i)
      if (s.ended[i]) look(s, max_steps, i, true);
    for (i64 i = low; finals && i < high; ++i) keep_last_state(*call.store, finals, max_steps, i);
    u8 any = 0;
    for (i64 i = low; i < high; ++i) any |= s.ended[i] | s.waiting[i];
    int news = 0;
    for (i64 i = low; GZ_SHORT && any && i < high; ++i) news += s.ended[i] | s.waiting[i];
    if (GZ_SHORT && 8 * news > high - low) {
      if constexpr (GZ_SHORT) settle_all<Held>(s, mode, finals, max_steps, low, high);
    } else {
      for (i64 i = low; any && i < high; ++i)
        if (s.ended[i] | s.waiting[i]) settle(*call.store, halfway(s, i), mode, finals, max_steps, i, {}, seen && !APART);
    }
    for (i64 i = low; seen && i < high; ++i) look(s, max_steps, i, false);  // loop over envs: observations
  } else if constexpr (COUNTS_APART) {
    const auto env = [&](i64 k) { return call.envs ? call.envs[k] : k; };
    for (i64 k = low; k < high; ++k) play<Held>(s, max_steps, env(k), seen);
    for (i64 k = low; OBSERVES_APART && seen && k < high; ++k)
      if (is_shown(s, env(k))) observe_played<Held>(s, max_steps, env(k));
    if (call.envs)
      for (i64 k = low; k < high; ++k) count(s, max_steps, call.envs[k]);
    else
      GZ_INDEPENDENT
      for (i64 i = low; i < high; ++i) count(s, max_steps, i);
    int news = call.envs != nullptr;
    for (i64 i = low; !call.envs && i < high; ++i) news += s.ended[i] | s.waiting[i];
    for (i64 k = low; news && k < high; ++k)
      if (s.ended[env(k)] | s.waiting[env(k)]) conclude(*call.store, mode, finals, max_steps, env(k), seen);
  } else {
    for (i64 k = low; k < high; ++k) {
      const i64 i = call.envs ? call.envs[k] : k;
      const Halfway at = advance<Held>(s, finals, max_steps, i, {}, seen);
      keep_last_state(*call.store, finals, max_steps, i);
      settle(*call.store, at, mode, finals, max_steps, i, {}, seen);
    }
  }
}

template <class Held> GZ void run_tiles(const void *pointer, i64 begin, i64 end) {
  const Call &call = *(const Call *)pointer;
  const Store s = *call.store;  // its address is given to nobody, so the loops below have it in registers
  const int mode = s.control->mode, max_steps = s.control->max_steps;
  for (i64 low = begin; low < end; low += TILE) {
    const i64 high = low + TILE < end ? low + TILE : end;
    for (i64 step = 0; step < call.steps; ++step) {
      const bool finals = finals_after(mode, step, call.steps);
      if (call.random) act(s, low, high);
      step_tile<Held>(call, s, mode, finals, seen_after(step, call.steps), max_steps, low, high);
    }
    for (i64 k = low; k < high; ++k) show_state(*call.store, max_steps, call.envs ? call.envs[k] : k);
  }
}

// Flattened, because a game's regions are functions, which compilers do not inline where they are long, and a call
// keeps the loop over envs from being vectorised.
template <class Held> __attribute__((flatten)) static void run_flat(const void *pointer, i64 begin, i64 end) {
  run_tiles<Held>(pointer, begin, end);
}

static void run_range(const void *pointer, i64 begin, i64 end) {
  if constexpr (GZ_BRANCHLESS)
    run_flat<State>(pointer, begin, end);
  else
    run_tiles<State>(pointer, begin, end);
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
      if (finals && s.ended[i]) look(s, max_steps, i, true);
      keep_last_state(*call.store, finals, max_steps, i);
      if (s.ended[i] | s.waiting[i]) settle(*call.store, halfway(s, i), mode, finals, max_steps, i, {}, !APART);
      look(s, max_steps, i, false);
      show_state(*call.store, max_steps, i);
    }
  }
}

static void reset_range(const void *pointer, i64 begin, i64 end) {
  const Call &call = *(const Call *)pointer;
  const int max_steps = call.store->control->max_steps;
  for (i64 i = begin; i < end; ++i) reset_env(*call.store, max_steps, i, call.reset);
}

static void state_range(const void *pointer, i64 begin, i64 end) {
  const Call &call = *(const Call *)pointer;
  for (i64 i = begin; i < end; ++i) tell_state(*call.store, (StateNumber *)call.rows, i);
}

}  // namespace gz
