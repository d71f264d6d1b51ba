// The rules of swings.cuh, of one env.

GZ void reset(Env e) {
  lanes(e, e.cfg.swings, [=](int k) {
    e.angle[k] = uniform(e, k, 0, -0.5f, 0.5f);
    e.speed[k] = 0.3f * normal(e, k, 1);
    e.bent[k] = 0;
  });
  once(e, [=] {
    e.energy = 0.f;
    e.gusts = random_int(e, 0, 3);
    e.windy = 0;
  });
}

GZ float unbent(float y) {
  float x = y;
  bool moves = abs(y) > 0.01f;
  for (int k = 0; k < 6 && moves; ++k) {
    const float next = x - (fma(0.4f * x * x, x, x) - y) / fma(1.2f * x, x, 1.f);
    moves = !(abs(next - x) < 1e-6f);
    x = next;
  }
  return x;
}

GZ void step(Env e) {
  once(e, [=] {
    const auto &c = e.cfg;
    e.windy = uniform(e, 0, 0.f, 1.f) < 0.2f;
    e.gusts += e.windy ? 1 + (random_int(e, 1, 5) & 3) : 0;
    float gust = 0.f;
    if (e.windy) {
      const float strength = exp(0.5f * normal(e, 2)) * (float)(e.gusts % 7) / (1.f + (float)e.t);
      gust = copysign(strength, sin((float)e.gusts));
    }
    for (int k = 0; k < c.swings; ++k) {
      float pull = -e.angle[k];
      if (k > 0) pull += c.spring * (e.angle[k - 1] - e.angle[k]);
      if (k + 1 < c.swings) pull += c.spring * (e.angle[k + 1] - e.angle[k]);
      if (k == 0) pull += 4.f * e.action[0];
      if (k + 1 == c.swings) pull += 4.f * e.action[1];
      e.force[k] = fma(gust, 0.1f, pull) - sin(e.angle[k]) / e.length[k];
    }
    float energy = 0.f, most = 0.f;
    for (int k = 0; k < c.swings; ++k) {
      float speed = clamp(fma(c.dt, e.force[k], e.speed[k]), -6.f, 6.f);
      float angle = fma(c.dt, speed, e.angle[k]);
      e.bent[k] = abs(angle) > 0.9f;
      if (e.bent[k]) angle = unbent(angle * 1.3f);
      e.angle[k] = angle;
      e.speed[k] = speed;
      energy = fma(speed, speed, energy);
      most = max(most, abs(angle));
    }
    e.energy = sqrt(energy);
    e.terminated = (most > c.limit) | (e.gusts > 30);
    e.reward = (e.terminated ? -1.f : 1.f) - 0.1f * e.energy;
  });
}

GZ void observe(Env e) {
  lanes(e, e.cfg.swings, [=](int k) {
    float s, c;
    sincos(e.angle[k], s, c);
    e.observation[3 * k] = s;
    e.observation[3 * k + 1] = c;
    e.observation[3 * k + 2] = e.bent[k] ? 10.f + e.speed[k] : e.speed[k];
  });
  once(e, [=] {
    e.observation[3 * e.cfg.swings] = (float)e.gusts;
    e.observation[3 * e.cfg.swings + 1] = atan2(e.angle[0], e.energy + uniform(e, 5, 0.f, 0.1f));
  });
}

GZ void state(Env e) {
  once(e, [=] {
    e.state[0] = e.energy;
    e.state[1] = (float)e.t;
    e.state[2] = e.windy ? 1.f : -1.f;
  });
}
