GZ void reset(Env e) {
  e.paddle = 0.f;
  e.x = uniform(e, 0, -0.5f, 0.5f);
  e.y = 1.f;
  e.vx = uniform(e, 1, -0.02f, 0.02f);
  e.vy = 0.f;
}

GZ void step(Env e) {
  Pack paddle = clamp(fma(e.cfg.speed, e.action[0], e.paddle), -1.f, 1.f);
  Pack vx = e.vx, vy = e.vy - e.cfg.gravity;
  Pack x = e.x + vx, y = e.y + vy;
  PackMask wall = abs(x) > 1.f;
  x = select(wall, copysign(2.f - abs(x), x), x);
  vx = select(wall, -vx, vx);
  PackMask down = y < 0.f, caught = down & (abs(x - paddle) < 0.2f);
  if (any(caught)) {  // saves time where no ball of the pack is caught; select keeps the others as they are
    Pack tilt = 0.3f * e.action[1];
    y = select(caught, -y, y);
    vx = select(caught, clamp(fma(tilt, e.cfg.bounce, vx), -0.05f, 0.05f), vx);
    vy = select(caught, e.cfg.bounce * sqrt(1.f - tilt * tilt), vy);
  }
  e.paddle = paddle;
  e.x = x;
  e.y = y;
  e.vx = vx;
  e.vy = vy;
  e.reward = select(caught, 1.f, select(down, -1.f, 0.f));
  e.terminated = down & !caught;
}

GZ void observe(Env e) {
  e.observation[0] = e.x - e.paddle;
  e.observation[1] = e.paddle;
  e.observation[2] = e.x;
  e.observation[3] = e.y;
  e.observation[4] = e.vx;
  e.observation[5] = e.vy;
}
