// An episode: how an env begins, steps and ends. Time, truncation, statistics, final observations and autoreset are
// decided here, once for every game and every device. walk_cpu.cuh and walk_gpu.cuh call it for the envs of a batch.
//
// A step of one env has two halves. `advance` runs the rules for an env that is in an episode; `settle` does what is
// rare: it ends episodes and begins the next ones.
//
// Generated above: Store (addresses of the arrays), State (an env's scalars, in registers where LANES == 1), Env (what
// rules see), load, save, keep, clear, bind, row_size; AGENTS, OBSERVERS, OBSERVATION_SIZE, MASK_SIZE, GZ_BRANCHLESS, GZ_APART.
// What only some games can compile is a template, which the others do not instantiate.

namespace gz {

// HALF_STEP is SAME_STEP without the beginning of the next episode, which the reset kernel then makes.
enum Mode { NEXT_STEP = 0, SAME_STEP = 1, DISABLED = 2, HALF_STEP = 3 };

#if !GZ_THREADS
// A CPU's rows need no help of neighbours, as those of rows.cuh do.
struct Together {};
GZ Together of_them(Together all, bool) { return all; }
GZ void meet(Together) {}
// What is seen of a game with lanes is a function of its own: it is long, and compiled once for steps and resets.
#if LANES > 1
GZ_SELDOM void show(const Store &s, i64 i, u32 episode, int t, int max_steps) {
  State v = load(s, i);
  Env e = bind(s, v, i, episode, t, max_steps);
  forget(e);
  observe(e);
}
template <class E> GZ void show(const Store &s, E &e, i64 i) { show(s, i, e.episode, e.t, e.max_steps); }
#else
template <class E> GZ void show(const Store &, E &e, i64) { observe(e); }
#endif
template <class E> GZ void observe_together(const Store &s, E &e, i64 i, Together) { show(s, e, i); }
template <class E> GZ void observe_alone(const Store &s, E &e, i64 i) { show(s, e, i); }
constexpr bool KEEPS_TOGETHER = false;
template <class S> GZ void keep_together(const S &, Together, bool) {}
#endif

// Whether observations are written by a loop over envs of their own (`look` in walk_cpu.cuh).
constexpr bool APART = GZ_APART && !GZ_THREADS;

// ---- ends and beginnings; `Where` is a bool or a Blend ----

// Agent k of the batch leaves its env.
template <class Where> GZ void leave(const Store &s, i64 k, Where leaves, float total, int length) {
  put(leaves, s.final_return[k], total);
  put(leaves, s.final_length[k], length);
  put(leaves, s.alive[k], (u8)0);
}

// What is observed from now on is what env i sees last.
template <class S, class E> GZ void see_last(const S &s, E &e, i64 i) {
  see(e, s.final_observation + i * row_size(s));
  if constexpr (MASK_SIZE > 0) see_masks(e, s.final_action_mask + i * (OBSERVERS * MASK_SIZE));
}

// Copies what the agents who leave see last, before observations of the next episode take its place. `leaves(agent)`
// says who they are.
template <int SIZE, class T, class Leaves> GZ void keep_rows(const Store &s, T *kept, const T *seen, Leaves leaves) {
  const auto keep = [&](int n) { put(leaves(n / SIZE), kept[n], seen[n]); };
  if constexpr (GZ_BRANCHLESS && GZ_THREADS && OBSERVERS * SIZE <= 8) {
    T row[OBSERVERS * SIZE];
    unrolled<0, OBSERVERS * SIZE>([&](int n) { row[n] = seen[n]; });
    unrolled<0, OBSERVERS * SIZE>([&](int n) { kept[n] = row[n]; });
  } else if constexpr (GZ_BRANCHLESS && OBSERVERS * SIZE <= 32)
    unrolled<0, OBSERVERS * SIZE>(keep);  // a loop would keep one over envs from being vectorised
  else if constexpr (GZ_BRANCHLESS || GZ_THREADS)
    lanes(s, OBSERVERS * SIZE, keep);
  else  // few leave at a time: a CPU passes over the rows of the others
    for (int a = 0; a < OBSERVERS; ++a)
      if (leaves(a)) lanes(s, SIZE, [=](int k) { kept[a * SIZE + k] = seen[a * SIZE + k]; });
}
template <class S, class Leaves> GZ void keep_last_seen(const S &s, i64 i, Leaves leaves) {
  const i64 row = i * row_size(s), mask = i * (OBSERVERS * MASK_SIZE);
  if constexpr (!APART) keep_rows<OBSERVATION_SIZE>(s, s.final_observation + row, s.observation + row, leaves);
  if constexpr (!APART && MASK_SIZE > 0) keep_rows<MASK_SIZE>(s, s.final_action_mask + mask, s.action_mask + mask, leaves);
}
// The same at the end of a step, in which everybody leaves, or only somebody. The threads of `all` call it together.
template <class S, class Leaves>
GZ void keep_last_seen(const S &s, i64 i, const Together &all, bool everybody, bool somebody, Leaves leaves) {
  if constexpr (KEEPS_TOGETHER) keep_together(s, all, everybody);
  if (somebody && !(KEEPS_TOGETHER && everybody)) keep_last_seen(s, i, leaves);
}

// Agent k of the batch begins an episode. `silent`: in a step that has no transition, so reward and flags are cleared.
template <class Where> GZ void join(const Store &s, i64 k, Where begins, Where silent) {
  put(begins, s.alive[k], (u8)1);
  put(begins, s.episode_return[k], 0.f);
  put(silent, s.reward[k], 0.f);
  put(silent, s.terminated[k], (u8)0);
  put(silent, s.truncated[k], (u8)0);
}

// Env i begins an episode.
template <class Where> GZ void begin(const Store &s, i64 i, Where begins, u32 episode) {
  put(begins, s.episode[i], episode);
  put(begins, s.elapsed_steps[i], 0);
}

// Env i draws the parameters of an episode that it begins.
template <class S, class Where> GZ void draw_parameters(const S &s, i64 i, Where begins, u32 episode) {
  draw_parameters(s, i, episode, [=](float &place, float value) { put(begins, place, value); });
}

// How an env goes on after a step: it begins an episode, or waits for the next step or a reset.
struct Next {
  u8 begins, silent, waits;
};
GZ Next next(int mode, u8 ended, u8 waiting) {
  const u8 at_once = mode == SAME_STEP, later = mode < DISABLED;
  const u8 silent = waiting & ~ended & later, begins = (ended & at_once) | silent;
  return {begins, silent, (u8)((ended | waiting) & ~begins)};
}

// Final observations (`finals`) are read after a step in same step mode, and in its half. In the middle of a rollout nobody
// reads them.
GZ bool finals_after(int mode, i64 step, i64 steps) { return mode & 1 && step + 1 == steps; }

// Whether somebody looks at observations and masks after a step of a rollout: random actions that rules choose need none.
GZ bool seen_after(i64 step, i64 steps) { return !GZ_CHOOSES || step + 1 == steps; }

// What the reset kernel does with the envs of the mask. WAITING: the rest of a HALF_STEP.
enum Reset { NEXT_EPISODE = 0, NEW_SEED = 1, NO_RESET = 2, WAITING = 3 };
GZ bool is_reset(const Store &s, i64 i, int reset) { return s.reset_mask[i] && (reset != WAITING || s.waiting[i]); }
// Whether it is a part of the step that has ended the episode.
GZ bool is_of_step(const Store &s, i64 i, int reset) { return reset == WAITING && s.ended[i]; }

#if GZ_PACK_WIDTH == 1  // walk_packed.cuh has the same for packs

// What the second half of a step has to know of the first one.
struct Halfway {
  u8 ended, waiting;
  u32 episode;
  u64 seed;  // if READS_FIRST, and an episode may begin
};
GZ Halfway halfway(const Store &s, i64 i) { return {s.ended[i], s.waiting[i], s.episode[i], 0ull}; }

// What a step changes rather than writes anew.
struct Carried {
  float episode_return[AGENTS];
  u8 terminated[AGENTS], truncated[AGENTS];
};

// ---- a step, first half ----

// A GPU's thread reads everything before it writes anything, if it has registers for that: the compiler cannot know that
// arrays do not overlap, and the thread would wait for memory once more at each load behind a store. g++ does not
// vectorise that.
constexpr bool READS_FIRST = GZ_THREADS && GZ_HELP;
// How `load` reads then.
struct Read {
  template <class T> GZ_MEMBER T operator()(T x) const { return READS_FIRST ? anew(x) : x; }
};
// Nor does it read what it has just written: agents leave in the first half of a step, and rules write short rows of last
// observations once more.
constexpr bool LEAVES_AT_ONCE = READS_FIRST || !GZ_BRANCHLESS;
constexpr bool SEES_LAST_AT_ONCE =
    READS_FIRST && GZ_BRANCHLESS && OBSERVERS * (OBSERVATION_SIZE + MASK_SIZE) <= 8;

// The seed of an env that may begin an episode. It is read as soon as that is known, and the thread goes on while memory
// answers.
GZ u64 seed_of_next(const Store &s, i64 i, bool begins) { return READS_FIRST && begins ? anew(s.seed[i]) : 0ull; }

// Few agents, who begin and end together: no branch, so that a loop over envs can be vectorised. An env that waits for
// its reset computes a step like the others and then keeps what it had; `WAITS`: whether there may be one.
template <class Held, bool WAITS>
GZ Halfway advance_branchless(const Store &s, bool finals, int max_steps, i64 i, const Together &all) {
  const bool idle = WAITS && s.waiting[i];
  const u32 episode = s.episode[i];
  Held v = load(s, i, Read());
  const Held before = v;
  Carried old;
  if constexpr (READS_FIRST)
    unrolled<0, AGENTS>([&](int a) {
      const i64 k = i * AGENTS + a;
      old.episode_return[a] = s.episode_return[k];
      old.terminated[a] = s.terminated[k];
      old.truncated[a] = s.truncated[k];
    });
  const int t = s.elapsed_steps[i] + !idle;
  Env e = bind(s, v, i, episode, t, max_steps);
  unrolled<0, AGENTS>([&](int a) { v.reward[a] = 0.f; });
  v.terminated = v.over = 0;
  forget(e);
  step(e);
  // Not `idle ? ... : ...`, which g++ takes for stores that are made or not. Nor `over != 0`, which becomes a conversion
  // to bool where rules write 0 or 1, and is not vectorised.
  const u8 over = v.terminated | v.over, stays = idle;
  const u8 terminated = (u8)((over | (u8)-over) >> 7 & ~stays), truncated = (u8)(!idle & (t >= max_steps));
  const u8 ended = terminated | truncated;
  unrolled<0, AGENTS>([&](int a) {
    const i64 k = i * AGENTS + a;
    const float reward = idle ? 0.f : v.reward[a];
    s.reward[k] = reward;
    if constexpr (READS_FIRST) {
      s.episode_return[k] = old.episode_return[a] += reward;
      s.terminated[k] = (old.terminated[a] & stays) | terminated;
      s.truncated[k] = (old.truncated[a] & stays) | truncated;
    } else {
      s.episode_return[k] += reward;
      s.terminated[k] = (s.terminated[k] & stays) | terminated;
      s.truncated[k] = (s.truncated[k] & stays) | truncated;
    }
  });
  const u64 seed = seed_of_next(s, i, ended | stays);
  v = keep(idle, before, v);
  forget(e);
  if constexpr (!APART) observe_together(s, e, i, all);
  save(s, i, v);
  s.elapsed_steps[i] = t;
  s.ended[i] = ended;
  if constexpr (!READS_FIRST) return halfway(s, i);
  if (ended) unrolled<0, AGENTS>([&](int a) { leave(s, i * AGENTS + a, true, old.episode_return[a], t); });
  if (SEES_LAST_AT_ONCE && finals & ended) {
    see_last(s, e, i);
    observe(e);
  }
  return {ended, stays, episode, seed};
}

// Agents who end together, on a CPU: `play` runs the rules of env i, and `count` does what follows from that without
// branches, so that a loop over envs can be vectorised.
constexpr bool COUNTS_APART = GZ_TOGETHER && !GZ_BRANCHLESS && !GZ_THREADS;
// A lone agent's rules may terminate it by its number, and who writes a state may say that it has left.
constexpr bool ALONE = AGENTS == 1;

constexpr bool OBSERVES_APART = GZ_OBSERVES_APART && COUNTS_APART;

// Where rules choose, an idle env's last step may have been an earlier one of a rollout.
GZ bool is_shown(const Store &s, i64 i) { return !s.waiting[i] || GZ_CHOOSES; }

template <class Held> GZ void play(const Store &s, int max_steps, i64 i, bool seen) {
  const bool idle = s.waiting[i];
  Held v = load(s, i);
  Env e = bind(s, v, i, s.episode[i], s.elapsed_steps[i] + 1, max_steps);
  clear(s, v, i);
  for (int a = 0; a < AGENTS; ++a) s.reward[i * AGENTS + a] = 0.f;
  if (ALONE && !idle) s.terminated[i] = 0;
  forget(e);
  if (!idle) step(e);
  forget(e);
  if (!OBSERVES_APART && seen && is_shown(s, i)) observe_alone(s, e, i);
  if (!idle) save(s, i, v);
  const bool over = ALONE ? e.over | s.terminated[i] : e.over;
  s.ended[i] = !idle & over;
}

// What `play` leaves to a loop of its own.
template <class Held> GZ void observe_played(const Store &s, int max_steps, i64 i) {
  Held v = load(s, i);
  Env e = bind(s, v, i, s.episode[i], s.elapsed_steps[i] + 1, max_steps);
  forget(e);
  observe_alone(s, e, i);
}

GZ void count(const Store &s, int max_steps, i64 i) {
  const u8 stays = s.waiting[i], plays = !stays, acted = ALONE ? s.alive[i] : (u8)1, over = s.ended[i] & acted;
  const int t = s.elapsed_steps[i] + plays;
  const u8 late = plays & acted & (u8)(t >= max_steps);
  s.elapsed_steps[i] = t;
  s.ended[i] = over | late | (plays & !acted);
  if constexpr (ALONE) {
    const float reward = s.reward[i];
    s.reward[i] = acted ? reward : 0.f;
  }
  const auto of_all = [](auto f) {
    if constexpr (AGENTS <= 4)
      unrolled<0, AGENTS>(f);
    else
      for (int a = 0; a < AGENTS; ++a) f(a);
  };
  of_all([=](int a) { s.episode_return[i * AGENTS + a] += s.reward[i * AGENTS + a]; });
  of_all([=](int a) { s.terminated[i * AGENTS + a] = (s.terminated[i * AGENTS + a] & stays) | over; });
  of_all([=](int a) { s.truncated[i * AGENTS + a] = (s.truncated[i * AGENTS + a] & stays) | late; });
}

// Any number of agents, some of whom may leave before the others.
template <class Held>
GZ Halfway advance_general(const Store &s, bool finals, int max_steps, i64 i, const Together &all, bool seen) {
  const bool idle = s.waiting[i];
  const int t = s.elapsed_steps[i] + 1;
  const u32 episode = s.episode[i];
  const Together active = of_them(all, !idle);
  barrier();
  Held v = load(s, i, Read());
  Env e = bind(s, v, i, episode, t, max_steps);
  if (idle) {
    lanes(e, AGENTS, [=](int a) { s.reward[i * AGENTS + a] = 0.f; });
    once(e, [=] { s.ended[i] = 0; });
    if (GZ_CHOOSES && seen) observe_alone(s, e, i);  // its last step may have been an earlier one of a rollout
    return {0, 1, episode, seed_of_next(s, i, true)};
  }
  clear(s, v, i);
  constexpr bool BY_AGENT = AGENTS == 1 || !GZ_TOGETHER;  // rules say of each agent whether it leaves
  lanes(e, AGENTS, [=](int a) {
    const i64 k = i * AGENTS + a;
    s.reward[k] = 0.f;
    if (BY_AGENT) s.terminated[k] = 0;
  });
  constexpr bool AT_ONCE = ALONE && LANES == 1;
  const float so_far = AT_ONCE ? s.episode_return[i] : 0.f;
  forget(e);
  step(e);
  forget(e);
  if (seen) observe_together(s, e, i, active);
  const bool out_of_time = t >= max_steps;
  const auto gone = [=](i64 k) { return (bool)((BY_AGENT ? s.terminated[k] : 0) | e.over); };
  // bit 0: somebody plays on; bit 1: somebody has just finished
  int news = out_of_time | e.over ? 2 : 1;
  if constexpr (BY_AGENT)
    news = reduce<Any>(e, AGENTS, [=](int a) {
      const i64 k = i * AGENTS + a;
      return !s.alive[k] ? 0 : gone(k) ? 2 : out_of_time ? 3 : 1;
    });
  lanes(e, AGENTS, [=](int a) {
    const i64 k = i * AGENTS + a;
    const bool acted = s.alive[k];
    const u8 left = (u8)(acted & gone(k)), late = (u8)(acted & out_of_time);
    s.terminated[k] = left;
    s.truncated[k] = late;
    if (!acted) s.reward[k] = 0.f;
    s.episode_return[k] = (AT_ONCE ? so_far : s.episode_return[k]) + s.reward[k];
    leave(s, k, (bool)(left | late), s.episode_return[k], t);
  });
  const bool ends = out_of_time | !(news & 1);
  const u64 seed = seed_of_next(s, i, ends);
  if (finals)
    keep_last_seen(s, i, active, ends, news & 2, [=](int a) {
      const i64 k = i * AGENTS + a;
      return GZ_TOGETHER || (ends | (OBSERVERS == AGENTS ? s.terminated[k] | s.truncated[k] : 0));
    });
  once(e, [=] {
    s.elapsed_steps[i] = t;
    s.ended[i] = (u8)ends;
  });
  save(s, i, v);
  return {(u8)ends, 0, episode, seed};
}

// On a GPU the threads of `all` call it together, each for its env i.
template <class Held = State, bool WAITS = true>
GZ Halfway advance(const Store &s, bool finals, int max_steps, i64 i, const Together &all = {}, bool seen = true) {
  if constexpr (GZ_BRANCHLESS)
    return advance_branchless<Held, WAITS>(s, finals, max_steps, i, all);
  else
    return advance_general<Held>(s, finals, max_steps, i, all, seen);
}

// ---- a step, second half ----

// How an env begins. REFRESH: not at all, but what is seen of the present state is written anew.
enum Start { AFTER_STEP, SILENT, REFRESH };

// The threads of `those` call it together.
GZ_SELDOM void restart(const Store &s, i64 i, u32 episode, u64 seed, int max_steps, Start start,
                       const Together &those = {}, bool seen = true) {
  const int t = start == REFRESH ? s.elapsed_steps[i] : 0;
  if (lane() == 0 && start != REFRESH) draw_parameters(s, i, true, episode);
  barrier();
  State v = load(s, i);
  Env e = bind(s, v, i, episode, t, max_steps);
  e.seed = seed;
  if (start != REFRESH) {
    lanes(e, AGENTS, [=](int a) { join(s, i * AGENTS + a, true, start == SILENT); });
    once(e, [=] { begin(s, i, true, episode); });
    forget(e);
    reset(e);
  }
  forget(e);
  if constexpr (GZ_HELP) {
    if (seen) observe_together(s, e, i, those);
  } else if (seen) {
    observe_alone(s, e, i);
  }
  save(s, i, v);
}

GZ void settle(
    const Store &s, Halfway at, int mode, bool finals, int max_steps, i64 i, const Together &all = {}, bool seen = true) {
  const bool ended = at.ended;
  const Next now = next(mode, at.ended, at.waiting);
  const Together those = of_them(all, now.begins);
  barrier();
  for (int a = 0; !LEAVES_AT_ONCE && ended && a < AGENTS; ++a)
    leave(s, i * AGENTS + a, true, s.episode_return[i * AGENTS + a], s.elapsed_steps[i]);
  if constexpr (GZ_BRANCHLESS && !SEES_LAST_AT_ONCE)  // in other games it was kept in `advance`
    if (finals) keep_last_seen(s, i, all, ended, ended, [](int) { return true; });
  if (lane() == 0) put(ended | now.begins, s.waiting[i], now.waits);
  const Start start = now.silent ? SILENT : AFTER_STEP;
  if (now.begins) restart(s, i, at.episode + 1, READS_FIRST ? at.seed : s.seed[i], max_steps, start, those, seen);
  barrier();
  meet(all);
}

// ---- the game's own global state, where it has one ----

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
template <class S> GZ void tell_state(const S &s, StateNumber *rows, i64 i) {
  if constexpr (STATE_SIZE > 0) write_state(s, rows, s.control->max_steps, i);
}

// ---- resets that the caller asks for ----

GZ void reset_env(const Store &s, int max_steps, i64 i, int reset, const Together &all = {}) {
  const bool chosen = is_reset(s, i, reset);
  const Together those = of_them(all, chosen);
  if (!chosen) return;
  const bool of_step = is_of_step(s, i, reset);
  const u32 episode = reset == NEW_SEED ? 0u : reset == NO_RESET ? s.episode[i] : s.episode[i] + 1u;
  const u64 seed = reset == NEW_SEED ? s.reset_seed[i] : s.seed[i];
  barrier();
  if (lane() == 0 && reset != NO_RESET) {
    s.seed[i] = seed;
    s.ended[i] = of_step;
    s.waiting[i] = 0;
  }
  const Start start = reset == NO_RESET ? REFRESH : of_step ? AFTER_STEP : SILENT;
  restart(s, i, episode, seed, max_steps, start, those);
  show_state(s, max_steps, i);
}

#endif

// ---- random legal actions ----

// They have a stream of their own: an episode's game does not depend on who chose the actions. All numbers of an env's
// actions are draws of one agent, so that a block of random bits serves four of them.
constexpr u32 CHOOSER = POLICY | 1u;
constexpr int ACTION_NUMBERS = AGENTS * ACTION_SIZE;

#ifndef GZ_CUDA
extern "C" int gz_pack_width() { return GZ_PACK_WIDTH; }
#endif

}  // namespace gz
