// Dorfman, Shenfeld and Tamar, "Offline meta learning of exploration" (2021): the semi-circle.

// A place in the upper half of the disc, by a radius and an angle that are both uniform.
GZ void begin_anywhere(Env e, float &x, float &y) {
  float radius = uniform(e, 0, 0.f, e.cfg.circle_radius), s, c;
  sincos(uniform(e, 1, 0.f, PI), s, c);
  x = e.cfg.center_init ? 0.f : radius * c;
  y = e.cfg.center_init ? 0.f : radius * s;
}

GZ void reset(Env e) {
  once(e, [=] {
    float s, c;
    sincos(uniform(e, 2, 0.f, PI), s, c);
    e.goal_x = e.cfg.circle_radius * c;
    e.goal_y = e.cfg.circle_radius * s;
    begin_anywhere(e, e.x, e.y);
    e.last_action_x = e.last_action_y = 0.f;
    e.last_reward = 0.f;
    e.goals_reached = 0;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    float dx = e.goal_x - e.x, dy = e.goal_y - e.y;
    float distance = sqrt(dx * dx + dy * dy);
    bool reached = distance <= e.cfg.goal_radius;
    float force = e.cfg.max_force;
    e.last_action_x = clamp(e.action[0], -force, force);
    e.last_action_y = clamp(e.action[1], -force, force);
    e.last_reward = e.cfg.dense_reward ? -distance : reached ? 1.f : 0.f;
    e.reward = e.last_reward;
    e.goals_reached += reached;
    float x, y;
    begin_anywhere(e, x, y);
    e.x = reached ? x : e.x + e.last_action_x;
    e.y = reached ? y : e.y + e.last_action_y;
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    e.observation[0] = e.x;
    e.observation[1] = e.y;
    e.observation[2] = e.last_reward;
    e.observation[3] = e.last_action_x;
    e.observation[4] = e.last_action_y;
    float steps = (float)e.t;
    e.observation[5] = e.cfg.normalize_time ? 2.f * steps / 100.f - 1.f : steps;
  });
}
