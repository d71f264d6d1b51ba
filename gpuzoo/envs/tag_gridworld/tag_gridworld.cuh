// The rules of TagGridWorld in WarpDrive (Lan, Srinivasa and Zheng, "WarpDrive: Fast End-to-End Deep Multi-Agent
// Reinforcement Learning on a GPU", JMLR 2022).

constexpr int RUNNER = FIRST_RUNNER;

GZ int squared_distance(Env e, int a, int b) {
  int dx = e.x[a] - e.x[b], dy = e.y[a] - e.y[b];
  return dx * dx + dy * dy;
}

GZ void reset(Env e) {
  lanes(e, AGENTS, [=](int a) {
    int inner = e.cfg.grid_length - 1;
    bool random = e.cfg.start == START_RANDOM;
    e.x[a] = a == RUNNER ? 0 : random ? 1 + random_int(e, a, 0, inner) : e.cfg.grid_length / 2;
    e.y[a] = a == RUNNER ? 0 : random ? 1 + random_int(e, a, 1, inner) : e.cfg.grid_length / 2;
  });
}

GZ void step(Env e) {
  lanes(e, AGENTS, [=](int a) {
    int move = e.action[a], length = e.cfg.grid_length;
    int x = e.x[a] + (move == 1) - (move == 2), y = e.y[a] + (move == 3) - (move == 4);
    e.x[a] = clamp(x, 0, length);
    e.y[a] = clamp(y, 0, length);
    e.reward[a] = (x != e.x[a]) | (y != e.y[a]) ? -e.cfg.wall_hit_penalty : 0.f;
  });
  bool tagged = lane_any(e, TAGGERS, [=](int a) { return squared_distance(e, a, RUNNER) == 0; });
  float tagger_reward = tagged ? e.cfg.tag_reward_for_tagger : -e.cfg.step_cost_for_tagger;
  float runner_reward = tagged ? -e.cfg.tag_penalty_for_runner : e.cfg.step_cost_for_tagger;
  lanes(e, AGENTS, [=](int a) { e.reward[a] += a == RUNNER ? runner_reward : tagger_reward; });
  once(e, [=] {
    if (tagged) e.terminate_all();
  });
}

GZ void observe_all(Env e) {
  lanes(e, AGENTS, AGENTS, [=](int a, int b) {
    Row row = e.observation[a];
    row[b] = (float)e.x[b] / (float)e.cfg.grid_length;
    row[AGENTS + b] = (float)e.y[b] / (float)e.cfg.grid_length;
    row[2 * AGENTS + b] = b == RUNNER ? 1.f : 0.f;
    row[3 * AGENTS + b] = 0.f;
  });
  lanes(e, AGENTS, [=](int a) {
    Row row = e.observation[a];
    row[3 * AGENTS + a] = 1.f;
    row[4 * AGENTS] = (float)e.t / (float)e.max_steps;
  });
}

GZ void observe_one(Env e) {
  int nearest = lane_argmin(e, TAGGERS, [=](int a) { return squared_distance(e, a, RUNNER); });
  lanes(e, AGENTS, [=](int a) {
    int other = a == RUNNER ? nearest : RUNNER;
    Row row = e.observation[a];
    row[0] = (float)e.x[a] / (float)e.cfg.grid_length;
    row[1] = (float)e.y[a] / (float)e.cfg.grid_length;
    row[2] = (float)e.x[other] / (float)e.cfg.grid_length;
    row[3] = (float)e.y[other] / (float)e.cfg.grid_length;
    row[4] = a == RUNNER ? 1.f : 0.f;
    row[5] = (float)e.t / (float)e.max_steps;
  });
}

GZ void observe(Env e) {
  if constexpr (Config::use_full_observation)
    observe_all(e);
  else
    observe_one(e);
}
