// Searchers and targets on a torus.

enum View { OF_SEARCHERS, OF_FOUND, OF_UNFOUND, VIEWS };

constexpr Const<Config::num_targets> TARGETS;
constexpr int RAYS = Config::num_vision;

// The shortest way from a to b on a circle.
GZ float shortest(float a, float b, float length) {
  const float there = b - a, round = there > 0.f ? there - length : there < 0.f ? there + length : 0.f;
  return abs(there) < abs(round) ? there : round;
}

GZ float square_of_way(float a, float b, float length) {
  const float there = abs(a - b), way = there > 0.5f * length ? length - there : there;
  return way * way;
}

GZ float square_distance(Env e, int a, float x, float y) {
  return square_of_way(e.x[a], x, e.cfg.env_size) + square_of_way(e.y[a], y, e.cfg.env_size);
}

GZ float angle_to(Env e, int a, float x, float y) {
  const float dx = shortest(e.x[a], x, e.cfg.env_size), dy = shortest(e.y[a], y, e.cfg.env_size);
  return shortest(mod(atan2(dy, dx), TWO_PI), e.heading[a], TWO_PI);
}

GZ bool finds(Env e, int a, int t) {
  const float range = e.cfg.target_contact_range;
  if (e.found[t] != 0 || square_distance(e, a, e.target_x[t], e.target_y[t]) > range * range) return false;
  return abs(angle_to(e, a, e.target_x[t], e.target_y[t])) <= e.cfg.view_angle * PI;
}

GZ void reset(Env e) {
  lanes(e, AGENTS, [=](int a) {
    e.x[a] = uniform(e, a, 0, 0.f, e.cfg.env_size);
    e.y[a] = uniform(e, a, 1, 0.f, e.cfg.env_size);
    e.heading[a] = uniform(e, a, 2, 0.f, TWO_PI);
    e.speed[a] = uniform(e, a, 3, e.cfg.searcher_min_speed, e.cfg.searcher_max_speed);
  });
  lanes(e, TARGETS, [=](int t) {
    e.target_x[t] = uniform(e, t, 4, 0.f, e.cfg.env_size);
    e.target_y[t] = uniform(e, t, 5, 0.f, e.cfg.env_size);
    e.target_vx[t] = e.target_vy[t] = 0.f;
    e.found[t] = false;
  });
}

GZ void steer(Env e, int a) {
  const float turn = e.action(a, 0) * e.cfg.searcher_max_rotate * PI;
  e.heading[a] = mod(e.heading[a] + turn, TWO_PI);
  e.speed[a] = clamp(e.speed[a] + e.action(a, 1) * e.cfg.searcher_max_accelerate, e.cfg.searcher_min_speed,
                     e.cfg.searcher_max_speed);
  float s, c;
  sincos(e.heading[a], s, c);
  e.x[a] = mod(e.x[a] + e.speed[a] * c, e.cfg.env_size);
  e.y[a] = mod(e.y[a] + e.speed[a] * s, e.cfg.env_size);
}

GZ void drift(Env e, int t) {
  float vx = e.target_vx[t] + e.cfg.target_acc_std * normal(e, t, 0);
  float vy = e.target_vy[t] + e.cfg.target_acc_std * normal(e, t, 2);
  const float speed = sqrt(vx * vx + vy * vy);
  if (speed > e.cfg.target_vel_max) {
    vx = e.cfg.target_vel_max * vx / speed;
    vy = e.cfg.target_vel_max * vy / speed;
  }
  e.target_vx[t] = vx;
  e.target_vy[t] = vy;
  e.target_x[t] = mod(e.target_x[t] + vx, e.cfg.env_size);
  e.target_y[t] = mod(e.target_y[t] + vy, e.cfg.env_size);
}

GZ void step(Env e) {
  lanes(e, AGENTS, [=](int a) { steer(e, a); });
  lanes(e, TARGETS, [=](int t) { drift(e, t); });
  lanes(e, TARGETS, [=](int t) {
    int finders = 0;
    for (int a = 0; a < AGENTS; ++a) finders += (int)finds(e, a, t);
    e.finders[t] = finders;
  });
  lanes(e, AGENTS, [=](int a) {
    float reward = 0.f;
    for (int t = 0; t < TARGETS; ++t)
      if (e.finders[t] > 0 && finds(e, a, t)) reward += Config::split_rewards ? 1.f / (float)e.finders[t] : 1.f;
    const float left = (float)(e.max_steps - e.t + 1) / (float)e.max_steps;
    e.reward[a] = Config::scale_rewards ? left * reward : reward;
  });
  lanes(e, TARGETS, [=](int t) { e.found[t] = e.found[t] != 0 || e.finders[t] > 0; });
  const bool some_left = lane_any(e, TARGETS, [=](int t) { return e.found[t] == 0; });
  once(e, [=] {
    if (!some_left) e.terminate_all();
  });
}

// What is at (x, y) covers the rays that pass within its radius.
GZ void see(Env e, int a, float x, float y, float range, Row out) {
  const float square = square_distance(e, a, x, y);
  if (square > range * range) return;
  const float dx = shortest(e.x[a], x, e.cfg.env_size), dy = shortest(e.y[a], y, e.cfg.env_size);
  const float distance = sqrt(dx * dx + dy * dy), near = distance / range;
  const float angle = angle_to(e, a, x, y), half = atan2(e.cfg.agent_radius, distance);
  const float edge = e.cfg.view_angle * PI;
  for (int k = 0; k < RAYS; ++k) {
    const float part = (float)k / (float)(RAYS > 1 ? RAYS - 1 : 1), ray = -edge * (1.f - part) + edge * part;
    if (angle - half < ray && ray < angle + half) out[k] = out[k] < 0.f ? near : min(out[k], near);
  }
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    const Row out = e.observation[a];
    for (int k = 0; k < VIEWS * RAYS; ++k) out[k] = -1.f;
    for (int b = 0; b < AGENTS; ++b)
      if (b != a) see(e, a, e.x[b], e.y[b], e.cfg.searcher_vision_range, out + RAYS * OF_SEARCHERS);
    int found = 0;
    for (int t = 0; t < TARGETS; ++t) {
      const bool known = e.found[t] != 0;
      found += (int)known;
      see(e, a, e.target_x[t], e.target_y[t], e.cfg.target_vision_range, out + RAYS * (int)(known ? OF_FOUND : OF_UNFOUND));
    }
    out[VIEWS * RAYS] = 1.f - (float)found / (float)TARGETS;
  });
}

GZ void state(Env e) {
  lanes(e, AGENTS, [=](int a) {
    float s, c;
    sincos(e.heading[a], s, c);
    e.state[5 * a] = e.x[a] / e.cfg.env_size;
    e.state[5 * a + 1] = e.y[a] / e.cfg.env_size;
    e.state[5 * a + 2] = c;
    e.state[5 * a + 3] = s;
    e.state[5 * a + 4] = e.speed[a];
  });
  lanes(e, TARGETS, [=](int t) {
    const int at = 5 * AGENTS + 3 * t;
    e.state[at] = e.target_x[t] / e.cfg.env_size;
    e.state[at + 1] = e.target_y[t] / e.cfg.env_size;
    e.state[at + 2] = e.found[t] ? 1.f : 0.f;
  });
}
