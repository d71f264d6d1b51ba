// Robots and shelves are on a grid each, by their numbers plus 1. Robots act one after the other.

enum Move { NOOP, FORWARD, TURN_LEFT, TURN_RIGHT, TOGGLE_LOAD, MOVES };
enum Direction { UP, RIGHT, DOWN, LEFT, DIRECTIONS };

constexpr int SIGHT = Config::sensor_range, GOALS = 2;

// The cell in front of a robot, or its own one at the edge.
GZ int ahead(Env e, int a) {
  const int row = e.place[a] / COLUMNS, column = e.place[a] % COLUMNS, direction = e.direction[a];
  const int to_row = clamp(row + (int)(direction == DOWN) - (int)(direction == UP), 0, ROWS - 1);
  const int to_column = clamp(column + (int)(direction == RIGHT) - (int)(direction == LEFT), 0, COLUMNS - 1);
  return to_row * COLUMNS + to_column;
}

GZ bool is_blocked(Env e, int a) {
  const int cell = ahead(e, a);
  return e.carrying[a] != 0 && cell != e.place[a] && e.shelves[cell] > 0;
}

// The shelf behind `rank` other ones that are not requested.
GZ int unrequested(Env e, int rank) {
  int shelf = 0;
  for (; shelf < SHELVES - 1; ++shelf) {
    rank -= (int)(e.requested[shelf] == 0);
    if (rank < 0) break;
  }
  return shelf;
}

GZ int free_cell(Env e, int rank) {
  int cell = 0;
  for (; cell < CELLS - 1; ++cell) {
    rank -= (int)(e.robots[cell] == 0);
    if (rank < 0) break;
  }
  return cell;
}

GZ void reset(Env e) {
  once(e, [=] {
    for (int cell = 0; cell < CELLS; ++cell) {
      e.robots[cell] = 0;
      e.shelves[cell] = e.home[cell];
    }
    for (int shelf = 0; shelf < SHELVES; ++shelf) e.requested[shelf] = false;
    for (int a = 0; a < AGENTS; ++a) {
      e.place[a] = free_cell(e, random_int(e, a, 0, CELLS - a));
      e.robots[e.place[a]] = (u8)(a + 1);
      e.direction[a] = (i8)random_int(e, a, 1, DIRECTIONS);
      e.carrying[a] = false;
    }
    for (int k = 0; k < Config::request_queue_size; ++k)
      e.requested[unrequested(e, random_int(e, k, 2, SHELVES - k))] = true;
  });
}

GZ int choose(Env e, int a, u32 bits) {
  constexpr u64 ALL = (1ull << (u64)MOVES) - 1ull;
  return chosen_bit(is_blocked(e, a) ? ALL & ~(1ull << (u64)FORWARD) : ALL, bits);
}

GZ void go_forward(Env e, int a) {
  const int from = e.place[a], to = ahead(e, a);
  e.place[a] = to;
  e.robots[from] = 0;
  e.robots[to] = (u8)(a + 1);
  if (e.carrying[a] == 0) return;
  const int shelf = e.shelves[from];
  e.shelves[from] = 0;
  e.shelves[to] = (i16)shelf;
}

// A loaded robot that does nothing sets its shelf down, too.
GZ void act(Env e, int a, int move) {
  const int cell = e.place[a];
  if (move == FORWARD)
    go_forward(e, a);
  else if (move == TURN_LEFT || move == TURN_RIGHT)
    e.direction[a] = (i8)((e.direction[a] + (move == TURN_RIGHT ? 1 : DIRECTIONS - 1)) % DIRECTIONS);
  else if (move == TOGGLE_LOAD && e.carrying[a] == 0)
    e.carrying[a] = e.shelves[cell] > 0;
  else if (e.highway[cell] == 0 && (!Config::noop_keeps_load || move == TOGGLE_LOAD))
    e.carrying[a] = false;
}

GZ float deliver(Env e, int goal, u32 draw) {
  const int shelf = e.shelves[goal] - 1;
  if (shelf < 0 || e.requested[shelf] == 0) return 0.f;
  const int next = unrequested(e, random_int(e, draw, SHELVES - Config::request_queue_size));
  e.requested[shelf] = false;
  e.requested[next] = true;
  return 1.f;
}

GZ void step(Env e) {
  once(e, [=] {
    for (int a = 0; a < AGENTS; ++a) e.move[a] = e.action[a] == FORWARD && is_blocked(e, a) ? (int)NOOP : e.action[a];
    for (int a = 0; a < AGENTS; ++a) act(e, a, e.move[a]);
    bool collision = false;
    for (int a = 0; a < AGENTS; ++a) collision = collision || e.robots[e.place[a]] != a + 1;
    constexpr int FIRST_GOAL = (ROWS - 1) * COLUMNS + COLUMNS / 2 - 1;
    float reward = 0.f;
    for (int g = 0; g < GOALS; ++g) reward += deliver(e, FIRST_GOAL + g, (u32)g);
    for (int a = 0; a < AGENTS; ++a) e.reward[a] = reward;
    if (collision) e.terminate_all();
  });
}

// After a collision a robot may not find itself on the grid. Then all that follows is shifted, and what would lie beyond
// the end is written at the end.
GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    const Row out = e.observation[a];
    const int row = e.place[a] / COLUMNS, column = e.place[a] % COLUMNS;
    for (int k = 0; k < SEEN; ++k) out[k] = 0.f;
    out[0] = (float)row;
    out[1] = (float)column;
    out[2] = e.carrying[a] ? 1.f : 0.f;
    out[3 + e.direction[a]] = 1.f;
    out[7] = e.highway[e.place[a]] ? 1.f : 0.f;
    int at = 8;
    for (int y = row - SIGHT; y <= row + SIGHT; ++y)
      for (int x = column - SIGHT; x <= column + SIGHT; ++x) {
        const bool inside = y >= 0 && y < ROWS && x >= 0 && x < COLUMNS;
        const int robot = inside ? (int)e.robots[y * COLUMNS + x] - 1 : -1;
        if (robot == a) continue;
        if (robot >= 0) {
          out[min(at, SEEN - 1)] = 1.f;
          for (int d = 0; d < DIRECTIONS; ++d)
            out[min(at + 1, SEEN - DIRECTIONS) + d] = e.direction[robot] == d ? 1.f : 0.f;
        }
        at += 1 + DIRECTIONS;
      }
    for (int y = row - SIGHT; y <= row + SIGHT; ++y)
      for (int x = column - SIGHT; x <= column + SIGHT; ++x, at += 2) {
        const bool inside = y >= 0 && y < ROWS && x >= 0 && x < COLUMNS;
        const int shelf = inside ? (int)e.shelves[y * COLUMNS + x] - 1 : -1;
        if (shelf < 0) continue;
        out[min(at, SEEN - 2)] = 1.f;
        out[min(at, SEEN - 2) + 1] = e.requested[shelf] ? 1.f : 0.f;
      }
    for (int move = 0; move < MOVES; ++move) e.action_mask[a][move] = 1;
    if (is_blocked(e, a)) e.action_mask[a][FORWARD] = 0;
  });
}
