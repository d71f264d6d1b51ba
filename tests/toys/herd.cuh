GZ int place(Env e, int cell) {
  int n = e.cfg.cells;
  return e.cfg.ring ? (cell + n) % n : clamp(cell, 0, n - 1);
}

GZ void reset(Env e) {
  lanes(e, AGENTS, [=](int a) {
    e.cell[a] = random_int(e, a, 0, e.cfg.cells);
    e.seen(a, 0) = (float)e.cell[a];
    e.seen(a, 1) = -1.f;
    e.mixed[a] = random_bits(e, a, 1);
  });
  lanes(e, WOLFS, [=](int w) { e.tired[w] = 0; });
  lanes(e, SHEEPS, [=](int s) { e.last[s] = -1; });
  once(e, [=] {
    e.caught = 0;
    e.quiet = 1;
    e.trace = 1;
  });
}

GZ void step(Env e) {
  lanes(e, AGENTS, [=](int a) {
    if (!e.alive[a]) return;
    int jump = e.cfg.mood == MOOD_WILD && a >= FIRST_SHEEP ? random_int(e, a, 0, 3) - 1 : 0;
    e.seen(a, 1) = e.seen(a, 0);
    e.cell[a] = place(e, e.cell[a] + e.shift[e.action[a]] + jump);
    e.seen(a, 0) = (float)e.cell[a];
    e.mixed[a] = e.mixed[a] * 1664525u + (u32)e.action[a];
  });
  lanes(e, WOLFS, [=](int w) {
    e.tired[w] = (u8)(e.tired[w] + (e.action[w] != 1));
    e.reward[w] -= e.cfg.hunger * e.weight[e.action[w]];
  });
  lanes(e, SHEEPS, [=](int s) {
    int a = FIRST_SHEEP + s;
    e.last[s] = (i8)e.action[a];
    bool bitten = false;
    for (int w = 0; w < WOLFS; ++w) bitten = bitten || e.cell[w] == e.cell[a];
    if (e.alive[a] && bitten) {
      e.reward[a] -= e.cfg.bite;
      e.terminate(a);
    }
  });
  int now = lane_sum(e, SHEEPS, [=](int s) { return (int)(e.alive[FIRST_SHEEP + s] && e.terminated[FIRST_SHEEP + s]); });
  float mean = lane_sum(e, AGENTS, [=](int a) { return e.seen(a, 0) * 0.1f; }) / (float)AGENTS;
  lanes(e, WOLFS, [=](int w) { e.reward[w] += e.cfg.bite * (float)now + 1e-3f * mean; });
  int left = lane_sum(e, SHEEPS, [=](int s) { return (int)(e.alive[FIRST_SHEEP + s] && !e.terminated[FIRST_SHEEP + s]); });
  once(e, [=] {
    e.caught += now;
    e.quiet = now == 0;
    e.trace = e.trace * 6364136223846793005ull + (u64)now;
    if (left == 0) e.terminate_all();
  });
}

GZ void observe(Env e) {
  int nearest = lane_argmin(e, SHEEPS, [=](int s) { return abs(e.cell[FIRST_SHEEP + s] - e.cell[0]); });
  lanes(e, AGENTS, [=](int a) {
    e.observation[a][0] = e.seen(a, 0);
    e.observation[a][1] = e.seen(a, 1);
    e.observation[a][2] = (float)nearest;
    if (a < WOLFS) e.observation[a][3] = (float)e.caught;
    int n = a < WOLFS ? 5 : 3;
    for (int k = 0; k < n; ++k) e.action_mask[a][k] = (i8)(k == 1 || (e.t + a + k) % 3 != 0);
  });
}
