GZ void reset(Env e) {
  once(e, [=] {
    e.row = (int)uniform(e, 0, 0, 1.f, (float)(ROWS - 1));
    e.column = (int)uniform(e, 0, 1, 1.f, (float)(COLUMNS - 1));
  });
  lanes(e, ROWS, COLUMNS, [=](int row, int column) { e.seen(row, column) = 0; });
}

GZ void step(Env e) {
  once(e, [=] {
    e.row += (e.action == 0) - (e.action == 1);
    e.column += (e.action == 2) - (e.action == 3);
    e.reward = (float)e.row - 0.5f * (float)e.column;
    e.terminated = e.row < 0 || e.row >= ROWS || e.column < 0 || e.column >= COLUMNS;
    if (!e.terminated) e.seen(e.row, e.column) = 1;
  });
}

GZ void observe(Env e) {
  lanes(e, ROWS * COLUMNS, [=](int k) {
    int far = abs(k / COLUMNS - e.row) + abs(k % COLUMNS - e.column);
    for (int c = 0; c < 3; ++c) {
      int bright = far > 2 ? 10 * c : 250 - 80 * far - 3 * c;
      e.observation[3 * k + c] = e.dark[k] ? (u8)0 : (u8)bright;
    }
  });
}
