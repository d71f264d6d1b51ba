constexpr int UP = 0, RIGHT = 1, DOWN = 2, LEFT = 3;

GZ void reset(Env e) {
  once(e, [=] {
    e.row = ROWS - 1;
    e.column = 0;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    int direction = e.action;
    if (e.cfg.is_slippery) direction = (direction + 3 + random_int(e, 0, 3)) & 3;
    int row = clamp(e.row + (direction == DOWN) - (direction == UP), 0, ROWS - 1);
    int column = clamp(e.column + (direction == RIGHT) - (direction == LEFT), 0, COLUMNS - 1);
    bool shore = row == ROWS - 1;
    bool fell = shore & (column > 0) & (column < COLUMNS - 1);
    e.row = row;
    e.column = fell ? 0 : column;
    e.reward = fell ? -100.f : -1.f;
    e.terminated = shore & (column == COLUMNS - 1);
  });
}

GZ void observe(Env e) {
  once(e, [=] { e.observation[0] = e.row * COLUMNS + e.column; });
}
