GZ void reset(Env e) {
  e.angle = uniform(e, 0, -PI, PI);
  e.speed = 0.f;
}

GZ void step(Env e) {
  Pack torque = e.action[0];
  Pack speed = fma(e.cfg.dt, torque - sin(e.angle), e.speed);
  PackMask fast = abs(speed) > e.cfg.limit;
  if (any(fast)) {
    Pack slowed = sqrt(abs(speed));
    speed = select(fast, copysign(slowed, speed), speed);
  }
  e.angle = fma(e.cfg.dt, speed, e.angle);
  e.speed = speed;
  e.reward = -(speed * speed);
  e.terminated = abs(e.angle) > 10.f;
}

GZ void observe(Env e) {
  Pack s, c;
  sincos(e.angle, s, c);
  e.observation[0] = c;
  e.observation[1] = s;
  e.observation[2] = e.speed;
}
