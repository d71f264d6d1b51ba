// Moore, "Efficient memory-based learning for robot control" (1990): a car in a valley of height sin(3 x).

GZ void reset(Env e) {
  once(e, [=] {
    e.position = uniform(e, 0, e.cfg.low, e.cfg.high);
    e.velocity = 0.f;
  });
}

GZ void roll(Env e, float push) {
  const auto &c = e.cfg;
  float velocity = clamp(e.velocity + (push - c.gravity * cos(3.f * e.position)), -c.max_speed, c.max_speed);
  e.position = clamp(e.position + velocity, c.min_position, c.max_position);
  e.velocity = (e.position == c.min_position) & (velocity < 0.f) ? 0.f : velocity;
  e.terminated = (e.position >= c.goal_position) & (e.velocity >= c.goal_velocity);
}

GZ void observe(Env e) {
  once(e, [=] {
    e.observation[0] = e.position;
    e.observation[1] = e.velocity;
  });
}
