constexpr int UP = 1, RIGHT = 2, DOWN = 3, LEFT = 4;

// How many gatherers are on a cell.
GZ int visitors(Env e, int row, int column) {
  int count = 0;
  for (int a = 0; a < AGENTS; ++a) count += e.row[a] == row && e.column[a] == column;
  return count;
}

GZ void reset(Env e) {
  lanes(e, AGENTS, [=](int a) {
    e.row[a] = random_int(e, a, 0, e.cfg.size);
    e.column[a] = random_int(e, a, 1, e.cfg.size);
  });
  lanes(e, e.cfg.size, e.cfg.size, [=](int row, int column) {
    int key = AGENTS + e.cfg.size * row + column;  // cells draw with numbers that no agent has
    e.apple(row, column) = uniform(e, key, 0, 0.f, 1.f) < e.cfg.apples;
  });
}

GZ void step(Env e) {
  lanes(e, AGENTS, [=](int a) {
    int move = e.action[a], last = e.cfg.size - 1;
    e.row[a] = clamp(e.row[a] + (move == DOWN) - (move == UP), 0, last);
    e.column[a] = clamp(e.column[a] + (move == RIGHT) - (move == LEFT), 0, last);
  });
  lanes(e, AGENTS, [=](int a) {  // all have moved, and no apple is gone yet
    if (e.apple(e.row[a], e.column[a])) e.reward[a] = 1.f / (float)visitors(e, e.row[a], e.column[a]);
  });
  lanes(e, e.cfg.size, e.cfg.size, [=](int row, int column) {
    bool grows = uniform(e, AGENTS + e.cfg.size * row + column, 0, 0.f, 1.f) < e.cfg.growth;
    e.apple(row, column) = visitors(e, row, column) == 0 && (e.apple(row, column) || grows);
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, e.cfg.size * e.cfg.size, [=](int a, int cell) {
    int row = cell / e.cfg.size, column = cell % e.cfg.size;
    bool self = e.row[a] == row && e.column[a] == column;
    e.observation[a][3 * cell] = e.apple[cell];
    e.observation[a][3 * cell + 1] = self;
    e.observation[a][3 * cell + 2] = visitors(e, row, column) > (int)self;
  });
}
