GZ float way_to_go(Env e) {
  float dx = e.buoy_x - e.x, dy = e.buoy_y - e.y;
  return sqrt(dx * dx + dy * dy);
}

GZ void reset(Env e) {
  once(e, [=] {
    float direction = uniform(e, 0, 0.f, TWO_PI);
    e.x = e.y = e.vx = e.vy = 0.f;
    e.buoy_x = 0.8f * cos(direction);
    e.buoy_y = 0.8f * sin(direction);
  });
}

GZ void step(Env e) {
  once(e, [=] {
    float before = way_to_go(e);
    e.vx += e.cfg.thrust * e.action[0] - e.cfg.drag * e.vx + e.cfg.wind * uniform(e, 0, -1.f, 1.f);
    e.vy += e.cfg.thrust * e.action[1] - e.cfg.drag * e.vy + e.cfg.wind * uniform(e, 1, -1.f, 1.f);
    e.x += e.vx;
    e.y += e.vy;
    float after = way_to_go(e);
    bool there = after < 0.1f, lost = (abs(e.x) > 1.f) | (abs(e.y) > 1.f);
    e.reward = there ? 1.f : lost ? -1.f : before - after;
    e.terminated = there | lost;
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    e.observation[0] = e.x;
    e.observation[1] = e.y;
    e.observation[2] = e.vx;
    e.observation[3] = e.vy;
    e.observation[4] = e.buoy_x - e.x;
    e.observation[5] = e.buoy_y - e.y;
  });
}
