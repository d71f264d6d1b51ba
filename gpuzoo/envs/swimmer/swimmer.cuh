// Up to 8 urchins are scalar fields, which the compiler holds in registers, for many envs at a time.
template <int K, class E> GZ float &urchin_x(const E &e) {
  if constexpr (URCHINS > 8) return e.urchin_x[K];
  else if constexpr (K == 0) return e.urchin_x_0;
  else if constexpr (K == 1) return e.urchin_x_1;
  else if constexpr (K == 2) return e.urchin_x_2;
  else if constexpr (K == 3) return e.urchin_x_3;
  else if constexpr (K == 4) return e.urchin_x_4;
  else if constexpr (K == 5) return e.urchin_x_5;
  else if constexpr (K == 6) return e.urchin_x_6;
  else return e.urchin_x_7;
}
template <int K, class E> GZ float &urchin_y(const E &e) {
  if constexpr (URCHINS > 8) return e.urchin_y[K];
  else if constexpr (K == 0) return e.urchin_y_0;
  else if constexpr (K == 1) return e.urchin_y_1;
  else if constexpr (K == 2) return e.urchin_y_2;
  else if constexpr (K == 3) return e.urchin_y_3;
  else if constexpr (K == 4) return e.urchin_y_4;
  else if constexpr (K == 5) return e.urchin_y_5;
  else if constexpr (K == 6) return e.urchin_y_6;
  else return e.urchin_y_7;
}
template <int K = 0, class E, class F> GZ void each_urchin(const E &e, const F &f) {
  if constexpr (K < URCHINS) {
    f(K, urchin_x<K>(e), urchin_y<K>(e));
    each_urchin<K + 1>(e, f);
  }
}

GZ void reset(Env e) {
  once(e, [=] {
    each_urchin(e, [&](int k, float &x, float &y) {
      x = uniform(e, 2 * k, -1.f, 1.f);
      y = uniform(e, 2 * k + 1, -1.f, 1.f);
    });
    e.x = uniform(e, 2 * URCHINS, -1.f, 1.f);
    e.y = uniform(e, 2 * URCHINS + 1, -1.f, 1.f);
    e.goal_x = uniform(e, 2 * URCHINS + 2, -1.f, 1.f);
    e.goal_y = uniform(e, 2 * URCHINS + 3, -1.f, 1.f);
    e.x_velocity = e.y_velocity = 0.f;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    e.x_velocity += e.cfg.dt * e.action[0];
    e.y_velocity += e.cfg.dt * e.action[1];
    e.x += e.cfg.dt * e.x_velocity;
    e.y += e.cfg.dt * e.y_velocity;
    float dx = e.x - e.goal_x, dy = e.y - e.goal_y;
    float reward = exp(-0.5f * (dx * dx + dy * dy));
    each_urchin(e, [&](int, float &x, float &y) {
      float ux = e.x - x, uy = e.y - y;
      reward *= 1.f - exp(-30.f * (ux * ux + uy * uy));
    });
    e.reward = reward;
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    each_urchin(e, [&](int k, float &x, float &y) {
      e.observation[2 * k] = x;
      e.observation[2 * k + 1] = y;
    });
    Row rest = e.observation + 2 * URCHINS;
    rest[0] = e.x;
    rest[1] = e.y;
    rest[2] = e.x_velocity;
    rest[3] = e.y_velocity;
    rest[4] = e.goal_x;
    rest[5] = e.goal_y;
  });
}
