GZ void reset(Env e) {
  lanes(e, e.cfg.memory, AGENTS, [=](int round, int a) { e.moves(round, a) = MOVES; });
}

GZ void step(Env e) {
  lanes(e, AGENTS, [=](int a) {
    int joint = 0;
    for (int b = 0; b < AGENTS; ++b) joint = MOVES * joint + e.action[b];
    e.reward[a] = e.payoff[AGENTS * joint + a];
    for (int round = e.cfg.memory - 1; round > 0; --round) e.moves(round, a) = e.moves(round - 1, a);
    e.moves(0, a) = e.action[a];
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    for (int round = 0; round < e.cfg.memory; ++round)
      for (int k = 0; k < AGENTS; ++k) {
        const int b = a + k < AGENTS ? a + k : a + k - AGENTS;
        e.observation[a][AGENTS * round + k] = e.moves(round, b);
      }
  });
}
