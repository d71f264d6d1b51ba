// Miconi, Rawal, Clune and Stanley, "Backpropamine: training self-modifying neural networks with differentiable
// neuromodulated plasticity" (2019).

constexpr Const<4> ACTIONS;
constexpr int PAIR = SIZE + (SIZE + 1) / 2;  // open cells of a row without and a row with walls

// 1 for walls, 0 for open cells. In integers, because GCC does not vectorise a choice between truth values: a number out
// of range makes one of the four negative, which is the first bit.
GZ int wall(int row, int column) {
  u32 outside = (u32)(row | column | (SIZE - 1 - row) | (SIZE - 1 - column)) >> 31;
  return (int)outside | (row & column & 1);
}

struct Cell {
  int row, column;
};

// The k-th open cell, row by row.
GZ Cell open_cell(int k) {
  int pair = k / PAIR, rest = k - pair * PAIR;
  bool walled = rest >= SIZE;
  return {2 * pair + walled, walled ? 2 * (rest - SIZE) : rest};
}

GZ void reset(Env e) {
  once(e, [=] {
    Cell goal = open_cell(random_int(e, 0, OPEN));
    e.goal_row = goal.row;
    e.goal_column = goal.column;
    e.row = e.column = START;
    e.last_action = 0;
    e.last_reward = 0.f;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    int down = (e.action == 2) - (e.action == 0), right = (e.action == 1) - (e.action == 3);
    int blocked = wall(e.row + down, e.column + right);
    int row = e.row + down * (1 - blocked), column = e.column + right * (1 - blocked);
    bool found = (row == e.goal_row) & (column == e.goal_column);
    e.last_action = e.action;
    e.last_reward = (found ? e.cfg.reward : 0.f) + e.cfg.punishment * (float)blocked;
    e.reward = e.last_reward;
    Cell anywhere = open_cell(random_int(e, 0, OPEN));
    e.row = found ? anywhere.row : row;
    e.column = found ? anywhere.column : column;
    bool again = found & (anywhere.row == e.goal_row) & (anywhere.column == e.goal_column);
    e.terminated = e.cfg.end_on_goal ? again : false;
  });
}

GZ void observe(Env e) {
  lanes(e, CELLS, [=](int k) {
    int row = clamp(e.row, 0, SIZE - 1) - RADIUS + k / WINDOW, column = clamp(e.column, 0, SIZE - 1) - RADIUS + k % WINDOW;
    e.observation[k] = (float)wall(row, column);
  });
  // 1 where k is the last action; four comparisons would become a switch, which is not vectorised
  lanes(e, ACTIONS, [=](int k) { e.observation[CELLS + k] = (float)max(0, 1 - abs(e.last_action - k)); });
  once(e, [=] {
    float steps = (float)e.t;
    e.observation[CELLS + 4] = e.last_reward;
    e.observation[CELLS + 5] = e.cfg.normalize_time ? 2.f * steps / 100.f - 1.f : steps;
  });
}
