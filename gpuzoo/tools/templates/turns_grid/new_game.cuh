// How many stones like the one on a cell follow each other from there on in one direction.
GZ int line(Env e, int row, int column, int down, int right) {
  int length = 0, stone = e.board(row, column);
  bool same = true;
  while (same) {
    ++length;
    row += down;
    column += right;
    bool outside = min(row, column) < 0 || max(row, column) >= e.cfg.size;
    same = !outside && e.board(row, column) == stone;
  }
  return length;
}

GZ bool wins(Env e, int row, int column) {
  int longest = 0;
  for (int k = 0; k < 4; ++k) {  // down to the left, down, down to the right, to the right
    int down = k < 3, right = k < 3 ? k - 1 : 1;
    longest = max(longest, line(e, row, column, down, right) + line(e, row, column, -down, -right) - 1);
  }
  return longest >= e.cfg.in_a_row;
}

GZ void reset(Env e) {
  lanes(e, e.cfg.size, e.cfg.size, [=](int row, int column) { e.board(row, column) = 0; });
  once(e, [=] { e.mover = 0; });
}

GZ void step(Env e) {
  int room = lane_sum(e, e.cfg.size * e.cfg.size, [=](int cell) { return (int)(e.board[cell] == 0); });
  once(e, [=] {
    int mover = e.mover, cell = e.action[mover];
    if (cell < 0) {  // it was not free
      e.reward[mover] = -1.f;
      e.terminate_all();
      return;
    }
    e.board[cell] = (i8)(mover + 1);
    e.mover = (mover + 1) % AGENTS;
    bool won = wins(e, cell / e.cfg.size, cell % e.cfg.size);
    for (int a = 0; won && a < AGENTS; ++a) e.reward[a] = a == mover ? 1.f : -1.f / (float)(AGENTS - 1);
    if (won || room == 1) e.terminate_all();
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, e.cfg.size * e.cfg.size, [=](int a, int cell) {
    int stone = e.board[cell];
    e.observation[a][2 * cell] = stone == a + 1;
    e.observation[a][2 * cell + 1] = stone != 0 && stone != a + 1;
    e.action_mask[a][cell] = a == e.mover && stone == 0;
  });
}
