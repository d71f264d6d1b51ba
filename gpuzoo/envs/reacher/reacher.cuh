// Up to 8 joints are scalar fields, which the compiler holds in registers, for many envs at a time.
template <int K, class E> GZ float &angle(const E &e) {
  if constexpr (JOINTS > 8) return e.angle[K];
  else if constexpr (K == 0) return e.angle_0;
  else if constexpr (K == 1) return e.angle_1;
  else if constexpr (K == 2) return e.angle_2;
  else if constexpr (K == 3) return e.angle_3;
  else if constexpr (K == 4) return e.angle_4;
  else if constexpr (K == 5) return e.angle_5;
  else if constexpr (K == 6) return e.angle_6;
  else return e.angle_7;
}
template <int K, class E> GZ float &velocity(const E &e) {
  if constexpr (JOINTS > 8) return e.velocity[K];
  else if constexpr (K == 0) return e.velocity_0;
  else if constexpr (K == 1) return e.velocity_1;
  else if constexpr (K == 2) return e.velocity_2;
  else if constexpr (K == 3) return e.velocity_3;
  else if constexpr (K == 4) return e.velocity_4;
  else if constexpr (K == 5) return e.velocity_5;
  else if constexpr (K == 6) return e.velocity_6;
  else return e.velocity_7;
}
template <int K = 0, class E, class F> GZ void each_joint(const E &e, const F &f) {
  if constexpr (K < JOINTS) {
    f(K, angle<K>(e), velocity<K>(e));
    each_joint<K + 1>(e, f);
  }
}

GZ void reset(Env e) {
  once(e, [=] {
    each_joint(e, [&](int k, float &angle, float &velocity) {
      angle = uniform(e, 2 * k, -PI, PI);
      velocity = uniform(e, 2 * k + 1, -1.f, 1.f);
    });
    e.goal_x = uniform(e, 2 * JOINTS, -(float)JOINTS, (float)JOINTS);
    e.goal_y = uniform(e, 2 * JOINTS + 1, -(float)JOINTS, (float)JOINTS);
  });
}

GZ void step(Env e) {
  once(e, [=] {
    float x = 0.f, y = 0.f;
    each_joint(e, [&](int k, float &angle, float &velocity) {
      velocity += e.cfg.dt * (e.cfg.torque_scale * e.action[k]);
      angle += e.cfg.dt * velocity;
      float s, c;
      sincos(angle, s, c);
      x += c;
      y += s;
    });
    float dx = x - e.goal_x, dy = y - e.goal_y;
    e.reward = exp(-(dx * dx + dy * dy));
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    each_joint(e, [&](int k, float &angle, float &velocity) {
      float s, c;
      sincos(angle, s, c);
      e.observation[k] = c;
      e.observation[JOINTS + k] = s;
      e.observation[2 * JOINTS + k] = velocity;
    });
    e.observation[3 * JOINTS] = e.goal_x;
    e.observation[3 * JOINTS + 1] = e.goal_y;
  });
}
