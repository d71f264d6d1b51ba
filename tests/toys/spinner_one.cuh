// The rules of spinner.cuh, of one env.

GZ void reset(Env e) {
  once(e, [=] {
    e.angle = uniform(e, 0, -PI, PI);
    e.speed = 0.f;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    float speed = fma(e.cfg.dt, e.action[0] - sin(e.angle), e.speed);
    if (abs(speed) > e.cfg.limit) speed = copysign(sqrt(abs(speed)), speed);
    e.angle = fma(e.cfg.dt, speed, e.angle);
    e.speed = speed;
    e.reward = -(speed * speed);
    e.terminated = abs(e.angle) > 10.f;
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    float s, c;
    sincos(e.angle, s, c);
    e.observation[0] = c;
    e.observation[1] = s;
    e.observation[2] = e.speed;
  });
}
