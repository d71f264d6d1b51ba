// The rules of TagContinuous in WarpDrive (Lan, Srinivasa and Zheng, "WarpDrive: Fast End-to-End Deep Multi-Agent
// Reinforcement Learning on a GPU", JMLR 2022).

constexpr int OTHERS = AGENTS - 1;
constexpr Const<Config::num_other_agents_observed> NEIGHBOURS;
constexpr float SQRT_2 = 1.41421356237310f;
constexpr int FEATURES = 5;

GZ bool is_tagger(int a) { return a < TAGGERS; }

GZ float top_speed(Env e, int a) {
  return e.cfg.max_speed * (is_tagger(a) ? e.cfg.skill_level_tagger : e.cfg.skill_level_runner);
}

// 0, and then n equally spaced numbers from low to high, each the float nearest to the exact number: rounding errors
// of the products, the sum and the quotient are carried along.
GZ float choice(int k, int n, float low, float high) {
  if (n <= 1) return k == 1 ? low : 0.f;
  float steps = (float)(n - 1), i = (float)(k - 1), j = (float)(n - k);
  float p = j * low, q = i * high, sum = p + q, back = sum - p;
  float rest = (p - (sum - back)) + (q - back) + fma(j, low, -p) + fma(i, high, -q);
  float x = sum / steps;
  return k == 0 ? 0.f : x + (fma(-x, steps, sum) + rest) / steps;
}

GZ Point place(Env e, int a) { return {e.x[a], e.y[a]}; }

GZ void reset(Env e) {
  lanes(e, AGENTS, [=](int a) {
    bool fixed = e.cfg.start == START_FIXED;
    u64 seed = fixed ? (u64)e.cfg.start_seed : e.seed;
    u32 episode = fixed ? 0u : e.episode;
    e.x[a] = e.cfg.grid_length * unit_float(random_bits(seed, episode, 0u, (u32)a + 1u, 0u));
    e.y[a] = e.cfg.grid_length * unit_float(random_bits(seed, episode, 0u, (u32)a + 1u, 1u));
    e.heading[a] = HALF_PI * (float)(random_bits(seed, episode, 0u, (u32)a + 1u, 2u) >> 30);
    e.speed[a] = e.acceleration[a] = 0.f;
  });
  lanes(e, RUNNERS, [=](int r) { e.tagged_by[r] = -1; });
}

GZ void move(Env e, int a) {
  const auto &c = e.cfg;
  float alive = e.alive[a] ? 1.f : 0.f, top = top_speed(e, a);
  float push = choice(e.action(a, 0), c.num_acceleration_levels, c.min_acceleration, c.max_acceleration);
  float turn = choice(e.action(a, 1), c.num_turn_levels, c.min_turn, c.max_turn);
  float acceleration = e.acceleration[a] + push;
  float heading = mod(e.heading[a] + turn, TWO_PI) * alive;
  float speed = clamp(e.speed[a] + acceleration, 0.f, top) * alive;
  float sine, cosine;
  sincos(heading, sine, cosine);
  float x = e.x[a] + speed * cosine, y = e.y[a] + speed * sine;
  e.x[a] = clamp(x, 0.f, c.grid_length);
  e.y[a] = clamp(y, 0.f, c.grid_length);
  bool crossed = (x != e.x[a]) | (y != e.y[a]);
  e.heading[a] = heading;
  e.speed[a] = speed;
  e.acceleration[a] = (speed <= 0.f) | (speed >= top) ? 0.f : acceleration;
  e.reward[a] = (crossed ? c.edge_hit_penalty : 0.f) + (is_tagger(a) ? c.step_penalty_for_tagger : c.step_reward_for_runner);
}

GZ void step(Env e) {
  lanes(e, AGENTS, [=](int a) { move(e, a); });
  lanes_nearest(
      e, RUNNERS, TAGGERS, Const<1>(), [=](int r) { return place(e, FIRST_RUNNER + r); },
      [=](int tagger) { return place(e, tagger); },
      [=](int r, int, int tagger) {
        int a = FIRST_RUNNER + r;
        bool near = distance(place(e, a), place(e, tagger)) < e.cfg.tagging_distance * e.cfg.grid_length;
        if (e.alive[a]) e.tagged_by[r] = near ? tagger : -1;
      });
  bool last = e.t == e.max_steps;
  lanes(e, RUNNERS, [=](int r) {
    int a = FIRST_RUNNER + r;
    bool tagged = e.alive[a] & (e.tagged_by[r] >= 0), leaves = tagged & e.cfg.runner_exits_game_after_tagged;
    if (tagged) e.reward[a] += e.cfg.tag_penalty_for_runner;
    if (leaves) e.terminate(a);
    if (last & !leaves) e.reward[a] += e.cfg.end_of_game_reward_for_runner;
  });
  lanes(e, TAGGERS, [=](int a) {
    int tags = 0;
    for (int r = 0; r < RUNNERS; ++r) tags += e.alive[FIRST_RUNNER + r] & (e.tagged_by[r] == a);
    e.reward[a] += (float)tags * e.cfg.tag_reward_for_tagger;
  });
  bool going_on = lane_any(e, RUNNERS, [=](int r) {
    return e.alive[FIRST_RUNNER + r] && !(e.cfg.runner_exits_game_after_tagged && e.tagged_by[r] >= 0);
  });
  once(e, [=] {
    if (!going_on) e.terminate_all();
  });
}

GZ float time_seen(Env e, int a) { return e.alive[a] ? (float)e.t / (float)e.max_steps : 0.f; }

GZ void observe_all(Env e) {
  lanes(e, AGENTS, Const<OTHERS>(), [=](int a, int k) {
    Row row = e.observation[a];
    bool behind = k >= a;
    for (int f = 0; f < FEATURES; ++f) {
      float here = e.features(f, k), next = e.features(f, k + 1);
      row[f * OTHERS + k] = e.alive[a] ? (behind ? next : here) - e.features(f, a) : 0.f;
    }
    row[FEATURES * OTHERS + k] = is_tagger(k + behind) ? 1.f : 0.f;
    u8 here = e.alive[k], next = e.alive[k + 1];
    row[(FEATURES + 1) * OTHERS + k] = (behind ? next : here) ? 1.f : 0.f;
  });
}

GZ void observe_nearest(Env e) {
  lanes_nearest_others(
      e, AGENTS, NEIGHBOURS, [=](int a) { return e.alive[a] ? place(e, a) : nowhere(); },
      [=](int a, int k, int b) { e.nearest(a, k) = b; });
  lanes(e, AGENTS, NEIGHBOURS, [=](int a, int k) {
    Row row = e.observation[a];
    int other = e.nearest(a, k), b = max(other, 0);
    for (int f = 0; f < FEATURES; ++f)
      row[f * NEIGHBOURS + k] = other < 0 ? 0.f : e.features(f, b) - e.features(f, a);
    row[FEATURES * NEIGHBOURS + k] = (other >= 0) & is_tagger(b) ? 1.f : 0.f;
    row[(FEATURES + 1) * NEIGHBOURS + k] = other < 0 ? 0.f : 1.f;
    if (k == 0) row[OBSERVATION_SIZE - 1] = time_seen(e, a);
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    float diagonal = e.cfg.grid_length * SQRT_2, speed = e.cfg.max_speed + 1e-10f;
    e.features(0, a) = e.x[a] / diagonal;
    e.features(1, a) = e.y[a] / diagonal;
    e.features(2, a) = e.speed[a] / speed;
    e.features(3, a) = e.acceleration[a] / speed;
    e.features(4, a) = e.heading[a] / TWO_PI;
    if constexpr (Config::use_full_observation) e.observation[a][OBSERVATION_SIZE - 1] = time_seen(e, a);
  });
  if constexpr (Config::use_full_observation)
    observe_all(e);
  else
    observe_nearest(e);
}
