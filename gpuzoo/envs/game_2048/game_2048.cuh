// A tile is its exponent: 1 is 2, 2 is 4, 3 is 8; 0 is an empty cell.

enum Way { LEFT, UP, RIGHT, DOWN };
constexpr int SIZE = 4, CELLS = 16;

// The k-th cell of a line, counted from the side that tiles move to.
GZ int cell_of(int way, int line, int k) {
  const int along = way == LEFT || way == UP ? k : SIZE - 1 - k;
  return way == LEFT || way == RIGHT ? SIZE * line + along : SIZE * along + line;
}

GZ bool can_move(Env e, int way) {
  bool found = false;
  for (int line = 0; line < SIZE; ++line)
    for (int k = 1; k < SIZE; ++k) {
      const int before = e.tile[cell_of(way, line, k - 1)], tile = e.tile[cell_of(way, line, k)];
      found |= tile > 0 && (before == 0 || before == tile);
    }
  return found;
}

// Moves the tiles of a line; two that are alike become one of twice their value. Returns the values of the new tiles.
GZ int slide(Env e, int way, int line) {
  int filled = 0, last = 0, gained = 0;
  for (int k = 0; k < SIZE; ++k) {
    const int place = cell_of(way, line, k), tile = e.tile[place];
    if (tile == 0) continue;
    e.tile[place] = 0;
    if (tile == last) {
      e.tile[cell_of(way, line, filled - 1)] = tile + 1;
      gained += 2 << tile;
      last = 0;
    } else {
      e.tile[cell_of(way, line, filled)] = tile;
      filled += 1;
      last = tile;
    }
  }
  return gained;
}

GZ void add_tile(Env e, int draw) {
  int empty = 0;
  for (int k = 0; k < CELLS; ++k) empty += e.tile[k] == 0;
  int left = random_int(e, draw, empty);
  const int tile = uniform(e, draw + 1, 0.f, 1.f) < e.cfg.probability_of_4 ? 2 : 1;
  for (int k = 0; k < CELLS; ++k) {
    const bool free = e.tile[k] == 0;
    if (free && left == 0) e.tile[k] = tile;
    left -= free;
  }
}

GZ void reset(Env e) {
  once(e, [=] {
    for (int k = 0; k < CELLS; ++k) e.tile[k] = 0;
    add_tile(e, 0);
    add_tile(e, 2);
    e.score = 0.f;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    const int way = e.action;
    if (way < 0) {
      e.reward = -1.f;
      e.terminated = true;
      return;
    }
    int gained = 0;
    for (int line = 0; line < SIZE; ++line) gained += slide(e, way, line);
    add_tile(e, 0);
    e.score += (float)gained;
    e.reward = (float)gained;
    bool stuck = true;
    for (int other = 0; other < SIZE; ++other) stuck &= !can_move(e, other);
    e.terminated = stuck;
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    for (int k = 0; k < CELLS * CHANNELS; ++k) e.observation[k] = 0;
    for (int k = 0; k < CELLS; ++k) e.observation[k * CHANNELS + min((int)e.tile[k], CHANNELS - 1)] = 1;
    for (int way = 0; way < SIZE; ++way) e.action_mask[way] = can_move(e, way);
  });
}
