GZ void reset(Env e) {
  once(e, [=] {
    e.row = (int)uniform(e, 0, 0, 1.f, 5.f);
    e.column = (int)uniform(e, 0, 1, 1.f, 7.f);
  });
}

GZ void step(Env e) {
  once(e, [=] {
    e.row += (e.action == 0) - (e.action == 1);
    e.column += (e.action == 2) - (e.action == 3);
    e.reward = (float)e.row - 0.5f * (float)e.column;
    e.terminated = e.row < 0 || e.row > 5 || e.column < 0 || e.column > 7;
  });
}

GZ void observe(Env e) {
  lanes(e, 48, [=](int k) {
    int far = abs(k / 8 - e.row) + abs(k % 8 - e.column);
    for (int c = 0; c < 3; ++c) e.observation[3 * k + c] = (u8)(far > 2 ? 10 * c : 250 - 80 * far - 3 * c);
  });
}
