GZ void reset(Env e) {
  once(e, [=] {
    e.total = 0;
    e.noise = 1u;
    e.past[0] = e.past[1] = 0;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    for (int k = 0; k < e.cfg.work; ++k) e.noise = e.noise * 1664525u + 1013904223u + (e.noise >> 16);
    e.total += e.action;
    e.past[e.t % 2] = e.action;
    e.reward = (float)e.action;
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    e.observation[0] = (float)e.total;
    e.observation[1] = (float)(e.noise >> 8);
  });
}
