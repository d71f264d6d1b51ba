constexpr float RADIUS = 0.02f;  // of a drone

GZ float length(float x, float y) { return sqrt(x * x + y * y); }

GZ void reset(Env e) {
  lanes(e, AGENTS, [=](int a) {
    float angle = TWO_PI * (float)a / (float)AGENTS;
    e.x[a] = 0.9f * cos(angle);
    e.y[a] = 0.9f * sin(angle);
    e.vx[a] = e.vy[a] = 0.f;
  });
  once(e, [=] {
    e.beacon_x = uniform(e, 0, -0.5f, 0.5f);
    e.beacon_y = uniform(e, 1, -0.5f, 0.5f);
  });
}

GZ void step(Env e) {
  lanes(e, AGENTS, [=](int a) {
    if (!e.alive[a]) return;
    e.vx[a] += e.cfg.thrust * e.action(a, 0) - e.cfg.drag * e.vx[a];
    e.vy[a] += e.cfg.thrust * e.action(a, 1) - e.cfg.drag * e.vy[a];
    e.x[a] = clamp(e.x[a] + e.vx[a], -1.f, 1.f);
    e.y[a] = clamp(e.y[a] + e.vy[a], -1.f, 1.f);
  });
  lanes(e, AGENTS, [=](int a) {  // all have moved, and nobody moves here
    if (!e.alive[a]) return;
    bool crashed = false;
    for (int b = 0; b < AGENTS; ++b) {
      bool close = length(e.x[b] - e.x[a], e.y[b] - e.y[a]) < 2.f * RADIUS;
      crashed = crashed || (b != a && e.alive[b] && close);
    }
    float distance = length(e.beacon_x - e.x[a], e.beacon_y - e.y[a]);
    e.reward[a] = crashed ? -1.f : 0.1f * max(0.f, 1.f - distance);
    if (crashed) e.terminate(a);
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    int nearest = a;
    float least = infinity();
    for (int b = 0; b < AGENTS; ++b) {
      float distance = length(e.x[b] - e.x[a], e.y[b] - e.y[a]);
      bool closer = b != a && e.alive[b] && distance < least;
      nearest = closer ? b : nearest;
      least = closer ? distance : least;
    }
    Row row = e.observation[a];
    row[0] = e.x[a];
    row[1] = e.y[a];
    row[2] = e.vx[a];
    row[3] = e.vy[a];
    row[4] = e.beacon_x - e.x[a];
    row[5] = e.beacon_y - e.y[a];
    row[6] = e.x[nearest] - e.x[a];
    row[7] = e.y[nearest] - e.y[a];
  });
}
