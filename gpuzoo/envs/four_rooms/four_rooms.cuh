// Sutton, Precup and Singh, "Between MDPs and semi-MDPs: a framework for temporal abstraction in reinforcement learning"
// (1999).

GZ bool is_wall(int row, int column) {
  bool edge = (row == 0) | (row == SIZE - 1) | (column == 0) | (column == SIZE - 1);
  bool middle = (column == 6) & (row != 3) & (row != 10);
  bool left = (row == 6) & (column < 6) & (column != 2);
  bool right = (row == 7) & (column > 6) & (column != 9);
  return edge | middle | left | right;
}

GZ void reset(Env e) {
  once(e, [=] {
    const auto &c = e.cfg;
    int goal = c.resample_goal_pos ? e.open[random_int(e, 0, OPEN)] : SIZE * c.goal_row + c.goal_column;
    int cell = SIZE * c.start_row + c.start_column;
    if (c.resample_init_pos) {  // among the others
      cell = e.open[random_int(e, 1, OPEN - 1)];
      cell = cell == goal ? e.open[OPEN - 1] : cell;
    }
    e.row = cell / SIZE;
    e.column = cell % SIZE;
    e.goal_row = goal / SIZE;
    e.goal_column = goal % SIZE;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    bool fails = uniform(e, 0, 0.f, 1.f) < e.cfg.fail_prob * 4.f / 3.f;
    int action = fails ? random_int(e, 1, 4) : e.action;
    int row = e.row + (action == 2) - (action == 0);
    int column = e.column + (action == 1) - (action == 3);
    bool blocked = is_wall(row, column);
    e.row = blocked ? e.row : row;
    e.column = blocked ? e.column : column;
    bool arrived = (e.row == e.goal_row) & (e.column == e.goal_column);
    e.reward = arrived ? 1.f : 0.f;
    e.terminated = arrived;
  });
}

GZ void observe(Env e) {
  if (e.cfg.use_visual_obs) {
    lanes(e, 2 * SIZE * SIZE, [=](int k) { e.observation[k] = (Observation)e.walls[k]; });
    once(e, [=] {
      int cell = e.cfg.transposed ? SIZE * e.column + e.row : SIZE * e.row + e.column;
      e.observation[2 * cell + 1] = 1;
    });
  } else {
    once(e, [=] {
      e.observation[0] = (Observation)e.row;
      e.observation[1] = (Observation)e.column;
      e.observation[2] = (Observation)e.goal_row;
      e.observation[3] = (Observation)e.goal_column;
    });
  }
}
