constexpr int LEFT = 0, DOWN = 1, RIGHT = 2, UP = 3;
constexpr int FROZEN = 0, HOLE = 1, GOAL = 2;

GZ void reset(Env e) {
  once(e, [=] {
    int start = e.starts[random_int(e, 0, STARTS)];
    e.row = start / COLUMNS;
    e.column = start % COLUMNS;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    int direction = e.action;
    if (e.cfg.is_slippery) {
      float fail_rate = 0.5f * (1.f - e.cfg.success_rate);
      float u = uniform(e, 0, 0.f, 1.f);
      direction += u < fail_rate ? 3 : u < fail_rate + e.cfg.success_rate ? 0 : 1;
    }
    direction &= 3;
    int here = e.tiles[e.row * COLUMNS + e.column];
    bool over = here != FROZEN;
    int row = clamp(e.row + (direction == DOWN) - (direction == UP), 0, ROWS - 1);
    int column = clamp(e.column + (direction == RIGHT) - (direction == LEFT), 0, COLUMNS - 1);
    int there = e.tiles[row * COLUMNS + column], tile = over ? here : there;
    e.row = over ? e.row : row;
    e.column = over ? e.column : column;
    float reward = tile == GOAL ? e.cfg.reward_goal : tile == HOLE ? e.cfg.reward_hole : e.cfg.reward_frozen;
    e.reward = over ? 0.f : reward;
    e.terminated = tile != FROZEN;
  });
}

GZ void observe(Env e) {
  once(e, [=] { e.observation[0] = e.row * COLUMNS + e.column; });
}
