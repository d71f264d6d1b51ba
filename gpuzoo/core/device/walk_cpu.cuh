// How a CPU goes through a batch: threads share the envs in tiles that fit into a cache. A branchless game (few agents,
// one lane, scalar fields) advances a tile in vector instructions, several envs in each, and then settles those envs
// that end or begin. Any other game does both halves of a step env by env.

// `gpuzoo doctor ID` asks g++ what has become of the loops that are marked "loop over envs".

namespace gz {

// Writes the observations that `advance` leaves to a loop of their own. In same step mode the last of an episode go
// straight to the final observations.
GZ void look(const Store &s, int mode, bool finals, int max_steps, i64 begin, i64 end) {
  if constexpr (APART)
    for (i64 i = begin; i < end; ++i) {  // loop over envs: observations
      const bool begins = mode == SAME_STEP && s.ended[i];
      if (begins && !finals) continue;
      State v = load(s, i);
      Env e = bind(s, v, i, s.episode[i], s.elapsed_steps[i], max_steps);
      if (begins) see(e, s.final_observation + i * row_size(s));
      forget(e);
      observe(e);
    }
}

// `settle` for neighbours of which many end or begin, in vector instructions, for a game with one agent: all are reset,
// and those that do not begin keep what they had.
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
    leave(s, i, ends, length);
    keep_last_seen(s, i, [=](int) { return kept; });
    join(s, i, begins, silent);
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
  if constexpr (APART)
    for (i64 i = low; i < high; ++i)
      if (s.elapsed_steps[i] == 0) look(s, DISABLED, false, max_steps, i, i + 1);
}

template <class Held>
GZ void step_tile(const Call &call, const Store &s, int mode, bool finals, bool seen, int max_steps, i64 low, i64 high) {
  if constexpr (GZ_BRANCHLESS) {
    GZ_INDEPENDENT
    for (i64 i = low; i < high; ++i) advance<Held>(s, finals, max_steps, i);  // loop over envs: rules
    if (seen) look(s, mode, finals, max_steps, low, high);
    for (i64 i = low; finals && i < high; ++i) keep_last_state(*call.store, finals, max_steps, i);
    int news = 0;
    for (i64 i = low; i < high; ++i) news += s.ended[i] | s.waiting[i];
    if constexpr (GZ_SHORT)
      if (8 * news > high - low) return settle_all<Held>(s, mode, finals, max_steps, low, high);
    for (i64 i = low; news && i < high; ++i)
      if (s.ended[i] | s.waiting[i]) settle(*call.store, mode, finals, max_steps, i, seen);
  } else {
    for (i64 k = low; k < high; ++k) {
      const i64 i = call.envs ? call.envs[k] : k;
      advance<Held>(s, finals, max_steps, i, {}, seen);
      keep_last_state(*call.store, finals, max_steps, i);
      settle(*call.store, mode, finals, max_steps, i, seen);
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
      look(s, mode, finals, max_steps, i, i + 1);
      keep_last_state(*call.store, finals, max_steps, i);
      if (s.ended[i] | s.waiting[i]) settle(*call.store, mode, finals, max_steps, i);
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
