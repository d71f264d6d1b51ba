GZ void reset(Env e) {
  lanes(e, AGENTS, [=](int a) { e.haul[a] = 0.f; });
  once(e, [=] { e.stock = uniform(e, 0, 0.5f, 1.f); });
}

GZ void step(Env e) {
  lanes(e, AGENTS, [=](int a) {
    e.haul[a] = e.cfg.catchability * (float)e.action[a] * e.stock / (float)AGENTS;
    e.reward[a] = e.haul[a];
  });
  float total = lane_sum(e, AGENTS, [=](int a) { return e.haul[a]; });
  once(e, [=] {
    e.stock += e.cfg.growth * e.stock * (1.f - e.stock) - total;
    if (e.stock < 0.05f) e.terminate_all();
  });
}

GZ void observe(Env e) {
  float total = lane_sum(e, AGENTS, [=](int a) { return e.haul[a]; });
  lanes(e, AGENTS, [=](int a) {
    e.observation[a][0] = e.stock;
    e.observation[a][1] = e.haul[a];
    e.observation[a][2] = total / (float)AGENTS;
  });
}
