constexpr int UP = 0, RIGHT = 1, DOWN = 2, LEFT = 3;

GZ void reset(Env e) {
  lanes(e, e.cfg.size, e.cfg.size, [=](int row, int column) {
    e.dirty(row, column) = uniform(e, e.cfg.size * row + column, 0, 0.f, 1.f) < e.cfg.dirt;
  });
  once(e, [=] {
    e.row = random_int(e, 0, e.cfg.size);
    e.column = random_int(e, 1, e.cfg.size);
  });
}

GZ void step(Env e) {
  once(e, [=] {
    int last = e.cfg.size - 1;
    e.row = clamp(e.row + (e.action == DOWN) - (e.action == UP), 0, last);
    e.column = clamp(e.column + (e.action == RIGHT) - (e.action == LEFT), 0, last);
    e.reward = e.dirty(e.row, e.column) ? 1.f : -e.cfg.step_cost;
    e.dirty(e.row, e.column) = 0;
  });
  bool dirty = lane_any(e, e.cfg.size * e.cfg.size, [=](int cell) { return e.dirty[cell]; });
  once(e, [=] { e.terminated = !dirty; });
}

GZ void observe(Env e) {
  lanes(e, e.cfg.size, e.cfg.size, [=](int row, int column) {
    int cell = e.cfg.size * row + column;
    e.observation[2 * cell] = e.dirty(row, column);
    e.observation[2 * cell + 1] = row == e.row && column == e.column;
  });
}
