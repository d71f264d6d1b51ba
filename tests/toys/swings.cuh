GZ void reset(Env e) {
  for (int k = 0; k < e.cfg.swings; ++k) {
    e.angle[k] = uniform(e, k, 0, -0.5f, 0.5f);
    e.speed[k] = 0.3f * normal(e, k, 1);
    e.bent[k] = false;
  }
  e.energy = 0.f;
  e.gusts = random_int(e, 0, 3);
  e.windy = false;
}

// The angle x that x + 0.4 x^3 makes: Newton's method, until it stands still.
GZ Pack unbent(Pack y) {
  Pack x = y;
  PackMask moves = abs(y) > Pack(Real(0.01));
  for (int k = 0; k < 6 && any(moves); ++k) {
    const Pack next = x - (fma(Pack(0.4f) * x * x, x, x) - y) / fma(Pack(1.2f) * x, x, Pack(1.f));
    const PackMask near = abs(next - x) < Pack(1e-6f);
    x = select(moves, next, x);
    moves = moves & !near;
  }
  return x;
}

GZ void step(Env e) {
  const auto &c = e.cfg;
  e.windy = uniform(e, 0, 0.f, 1.f) < 0.2f;
  e.gusts += select(e.windy, 1 + (random_int(e, 1, 5) & 3), 0);
  Pack gust = 0.f;
  if (any(e.windy)) {
    const Pack strength = exp(0.5f * normal(e, 2)) * Pack(e.gusts % 7) / (1.f + Pack(e.t));
    gust = select(e.windy, copysign(strength, sin(Pack(e.gusts))), gust);
  }
  for (int k = 0; k < c.swings; ++k) {
    Pack pull = -e.angle[k];
    if (k > 0) pull += c.spring * (e.angle[k - 1] - e.angle[k]);
    if (k + 1 < c.swings) pull += c.spring * (e.angle[k + 1] - e.angle[k]);
    if (k == 0) pull += 4.f * e.action[0];
    if (k + 1 == c.swings) pull += 4.f * e.action[1];
    e.force[k] = fma(gust, Pack(0.1f), pull) - sin(e.angle[k]) / e.length[k];
  }
  Pack energy = 0.f, most = 0.f;
  for (int k = 0; k < c.swings; ++k) {
    Pack speed = clamp(fma(c.dt, e.force[k], e.speed[k]), -6.f, 6.f);
    Pack angle = fma(c.dt, speed, e.angle[k]);
    const PackMask bent = abs(angle) > 0.9f;
    if (any(bent)) angle = select(bent, unbent(angle * 1.3f), angle);
    e.bent[k] = bent;
    e.angle[k] = angle;
    e.speed[k] = speed;
    energy = fma(speed, speed, energy);
    most = max(most, abs(angle));
  }
  e.energy = sqrt(energy);
  e.terminated = (most > c.limit) | (e.gusts > 30);
  e.reward = select(e.terminated, -1.f, 1.f) - 0.1f * e.energy;
}

GZ void observe(Env e) {
  Row out = e.observation;
  for (int k = 0; k < e.cfg.swings; ++k) {
    Pack s, c;
    sincos(e.angle[k], s, c);
    out[3 * k] = s;
    out[3 * k + 1] = c;
    out[3 * k + 2] = select(e.bent[k], 10.f + e.speed[k], e.speed[k]);
  }
  Row rest = out + 3 * e.cfg.swings;
  rest[0] = Pack(e.gusts);
  rest[1] = atan2(e.angle[0], e.energy + uniform(e, 5, 0.f, 0.1f));
}

GZ void state(Env e) {
  e.state[0] = e.energy;
  e.state[1] = Pack(e.t);
  e.state[2] = select(e.windy, 1.f, -1.f);
}
