GZ void reset(Env e) {
  lanes(e, 2, [=](int k) {
    e.speed[k] = 0.f;
    float x = uniform(e, k, -1.f, 1.f);
    for (int p = 0; p < e.cfg.past; ++p) e.path(p, k) = x;
  });
  once(e, [=] { e.steps = 0; });
}

GZ void step(Env e) {
  lanes(e, 2, [=](int k) {
    e.speed[k] = 0.9f * e.speed[k] + 0.2f * e.action[k] + e.cfg.wind * uniform(e, k, -1.f, 1.f);
    for (int p = e.cfg.past - 1; p > 0; --p) e.path(p, k) = e.path(p - 1, k);
    e.path(0, k) += 0.3f * e.speed[k];
  });
  once(e, [=] {
    float x = e.path(0, 0), y = e.path(0, 1);
    e.steps += 1;
    e.reward = -sqrt(x * x + y * y);
    e.terminated = x * x + y * y > 6.f;
  });
}

GZ void observe(Env e) {
  lanes(e, 2, [=](int k) {
    for (int p = 0; p < e.cfg.past; ++p) e.observation[2 * p + k] = e.path(p, k);
  });
}
