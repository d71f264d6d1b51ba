GZ void reset(Env e) {
  once(e, [=] { e.cell = e.cfg.length / 2; });
}

GZ void step(Env e) {
  once(e, [=] {
    bool windy = uniform(e, 0, 0.f, 1.f) < e.cfg.wind;
    int move = windy ? random_int(e, 1, 3) : e.action;
    e.cell = clamp(e.cell + move - 1, 0, e.cfg.length - 1);
    bool home = e.cell == e.cfg.length - 1, fell = e.cell == 0;
    e.reward = home ? 1.f : fell ? -1.f : -e.cfg.step_cost;
    e.terminated = home | fell;
  });
}

GZ void observe(Env e) {
  once(e, [=] { e.observation[0] = (float)e.cell / (float)(e.cfg.length - 1); });
}
