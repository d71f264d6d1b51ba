// Pursuit as in Gupta, Egorov and Kochenderfer, "Cooperative Multi-Agent Control Using Deep Reinforcement Learning"
// (2017), with the rules of PettingZoo's sisl.pursuit_v5.

enum Move { LEFT, RIGHT, UP, DOWN, STAY };
enum Plane { WALLS, PURSUERS_HERE, EVADERS_HERE, PLANES };

constexpr Const<Config::n_evaders> EVADERS;
constexpr int X_SIZE = Config::x_size, Y_SIZE = Config::y_size;
constexpr int ATTEMPTS = 200;
constexpr int GONE = -1;

GZ bool in_building(int x, int y) {
  return (x >= BUILDING_LEFT) & (x < BUILDING_RIGHT) & (y >= BUILDING_LOW) & (y < BUILDING_HIGH);
}

GZ bool on_board(int x, int y) { return (x >= 0) & (x < X_SIZE) & (y >= 0) & (y < Y_SIZE); }

GZ void move(int &x, int &y, int way) {
  const int to_x = x + (way == RIGHT) - (way == LEFT), to_y = y + (way == UP) - (way == DOWN);
  const bool free = on_board(to_x, to_y) & !in_building(to_x, to_y);
  x = free ? to_x : x;
  y = free ? to_y : y;
}

// Whether a cell is free, and not on or beside one of the first n places.
template <class X> GZ bool fits(const X &xs, const X &ys, int n, int cell) {
  const int x = cell % X_SIZE, y = cell / X_SIZE;
  bool apart = !in_building(x, y);
  for (int k = 0; k < n; ++k) apart &= abs(xs[k] - x) + abs(ys[k] - y) > 1;
  return apart;
}

struct Window {
  int x, y, width, height;
};

GZ Window window(Env e) {
  const float side = e.cfg.constraint_window;
  const float left = uniform(e, 0, 0.f, 1.f - side), low = uniform(e, 1, 0.f, 1.f - side);
  const int x = min((int)((float)X_SIZE * left), X_SIZE - 1), y = min((int)((float)Y_SIZE * low), Y_SIZE - 1);
  const int right = min((int)((float)X_SIZE * (left + side)), X_SIZE);
  const int high = min((int)((float)Y_SIZE * (low + side)), Y_SIZE);
  return {x, y, max(right - x, 1), max(high - y, 1)};
}

template <class X> GZ void place(Env e, const X &xs, const X &ys, int n, int first) {
  constexpr int CELLS = X_SIZE * Y_SIZE;
  const Window w = window(e);
  for (int k = 0; k < n; ++k) {
    int cell = 0, attempt = 0;
    bool found = false;
    for (; attempt < ATTEMPTS && !found; ++attempt) {
      const int draw = random_int(e, first + k, attempt, w.width * w.height);
      cell = (w.y + draw / w.width) * X_SIZE + w.x + draw % w.width;
      found = fits(xs, ys, k, cell);
    }
    for (int c = 0; c < CELLS && !found; ++c) {
      cell = (cell + 1) % CELLS;
      found = fits(xs, ys, k, cell);
    }
    for (int c = 0; c < CELLS && !found; ++c) {
      cell = (cell + 1) % CELLS;
      found = fits(xs, ys, 0, cell);
    }
    xs[k] = cell % X_SIZE;
    ys[k] = cell / X_SIZE;
  }
}

GZ void reset(Env e) {
  once(e, [=] {
    place(e, e.pursuer_x, e.pursuer_y, AGENTS, 0);
    place(e, e.evader_x, e.evader_y, EVADERS, AGENTS);
  });
  lanes(e, AGENTS, [=](int a) {
    e.tags[a] = 0;
    e.catcher[a] = 0;
  });
  lanes(e, EVADERS, [=](int i) { e.caught[i] = e.way[i] = 0; });
}

// Where the planes of a cell begin in the board.
GZ int cell_of(int x, int y) {
  return PLANES * ((clamp(y, 0, Y_SIZE - 1) + MARGIN) * BOARD_COLUMNS + clamp(x, 0, X_SIZE - 1) + MARGIN);
}

GZ int evaders_at(Env e, int x, int y) { return e.board[cell_of(x, y) + EVADERS_HERE]; }

// At the border a pursuer's own cell is in place of the one beyond.
GZ int tagged(Env e, int x, int y) {
  return evaders_at(e, x - 1, y) + evaders_at(e, x + 1, y) + evaders_at(e, x, y - 1) + evaders_at(e, x, y + 1);
}

GZ bool closed(Env e, int cell) { return (e.board[cell + WALLS] | e.board[cell + PURSUERS_HERE]) != 0; }

GZ bool surrounded(Env e, int x, int y) {
  constexpr int COLUMN = PLANES, ROW_BELOW = PLANES * BOARD_COLUMNS;
  const int cell = cell_of(x, y);
  return (X_SIZE > 1) & (Y_SIZE > 1) & closed(e, cell - COLUMN) & closed(e, cell + COLUMN) &
         closed(e, cell - ROW_BELOW) & closed(e, cell + ROW_BELOW);
}

GZ int pursuers_at(Env e, int x, int y) { return e.board[cell_of(x, y) + PURSUERS_HERE]; }

GZ bool catches(Env e, int a) {
  constexpr int DISTANCE = Config::surround ? 1 : 0;
  bool found = false;
  for (int i = 0; i < EVADERS; ++i) {
    const int distance = abs(e.evader_x[i] - e.pursuer_x[a]) + abs(e.evader_y[i] - e.pursuer_y[a]);
    found |= e.caught[i] & (distance == DISTANCE);
  }
  return found;
}

GZ void count_pursuers(Env e, int change) {
  for (int a = 0; a < AGENTS; ++a) e.board[cell_of(e.pursuer_x[a], e.pursuer_y[a]) + PURSUERS_HERE] += change;
}

GZ void step(Env e) {
  const auto &c = e.cfg;
  once(e, [=] { count_pursuers(e, -1); });
  lanes(e, AGENTS, [=](int a) {
    int x = e.pursuer_x[a], y = e.pursuer_y[a];
    const int before = tagged(e, x, y);
    move(x, y, e.action[a]);
    e.tags[a] = a * before + (AGENTS - a) * tagged(e, x, y);
    e.pursuer_x[a] = x;
    e.pursuer_y[a] = y;
  });
  once(e, [=] { count_pursuers(e, 1); });
  lanes(e, EVADERS, [=](int i) {
    const int x = e.evader_x[i], y = e.evader_y[i];
    e.caught[i] = (x != GONE) & (c.surround ? surrounded(e, x, y) : pursuers_at(e, x, y) >= c.n_catch);
  });
  const bool caught = lane_any(e, EVADERS, [=](int i) { return e.caught[i]; });
  lanes(e, AGENTS, [=](int a) { e.catcher[a] = caught && catches(e, a); });
  const int tags = lane_sum(e, AGENTS, [=](int a) { return e.tags[a]; });
  const int catchers = lane_sum(e, AGENTS, [=](int a) { return e.catcher[a]; });
  lanes(e, AGENTS, [=](int a) {
    const float mean_tags = c.shared_reward ? (float)tags / (float)AGENTS : (float)e.tags[a];
    const float mean_catches = c.shared_reward ? (float)catchers / (float)AGENTS : (float)e.catcher[a];
    e.reward[a] = c.tag_reward * mean_tags / (float)AGENTS + c.catch_reward * mean_catches + c.urgency_reward;
  });
  lanes(e, EVADERS, [=](int i) { e.way[i] = c.freeze_evaders ? (int)STAY : random_int(e, AGENTS + i, 0, 5); });
  lanes(e, EVADERS, [=](int i) {
    int x = e.evader_x[i], y = e.evader_y[i];
    const bool gone = (x == GONE) | e.caught[i];
    move(x, y, e.way[i]);
    e.evader_x[i] = gone ? GONE : x;
    e.evader_y[i] = gone ? GONE : y;
  });
  const bool some_left = lane_any(e, EVADERS, [=](int i) { return e.evader_x[i] != GONE; });
  once(e, [=] {
    if (!some_left && e.t < e.max_steps) e.terminate_all();
  });
}

GZ void observe(Env e) {
  constexpr Const<PLANES * Config::obs_range> WIDE;
  constexpr int SEEN = 2 * SIGHT + 1;
  lanes(e, BOARD_SIZE, [=](int k) { e.board[k] = e.empty_board[k]; });
  once(e, [=] {
    count_pursuers(e, 1);
    for (int i = 0; i < EVADERS; ++i)
      e.board[cell_of(e.evader_x[i], e.evader_y[i]) + EVADERS_HERE] += e.evader_x[i] != GONE;
  });
  lanes(e, AGENTS, WIDE, [=](int a, int k) {
    const int corner = cell_of(e.pursuer_x[a], e.pursuer_y[a]) - PLANES * SIGHT * (BOARD_COLUMNS + 1);
    for (int row = 0; row < Config::obs_range; ++row) {
      const bool seen = (row < SEEN) & (k < PLANES * SEEN);
      const int value = seen ? e.board[corner + PLANES * BOARD_COLUMNS * row + k] : k % PLANES == WALLS;
      e.observation[a][row * WIDE + k] = (float)value;
    }
  });
}
