// Level-Based Foraging as in Papoudakis et al., "Benchmarking Multi-Agent Deep Reinforcement Learning Algorithms in
// Cooperative Tasks" (NeurIPS 2021). The foods are listed in row-major order; one that was loaded has level 0.

enum Move { NONE, NORTH, SOUTH, WEST, EAST, LOAD };

constexpr Const<Config::max_num_food> FOODS;
constexpr int ROWS = Config::rows, COLS = Config::cols;
constexpr int SIGHT = Config::sight ? Config::sight : ROWS > COLS ? ROWS : COLS;
constexpr bool WHOLE = SIGHT >= ROWS - 1 && SIGHT >= COLS - 1;
constexpr int ATTEMPTS = 1000;

GZ bool player_at(Env e, int players, int row, int col) {
  bool found = false;
  for (int a = 0; a < players; ++a) found |= (e.position(a, 0) == row) & (e.position(a, 1) == col);
  return found;
}

// Whether one of the first `foods` is in the 3 x 3 cells around a cell, or two cells from it in its row or column.
GZ bool food_near(Env e, int foods, int row, int col) {
  bool found = false;
  for (int f = 0; f < foods; ++f) {
    const int down = e.food(f, 0) - row, right = e.food(f, 1) - col;
    found |= down * down + right * right < 5;
  }
  return found;
}

GZ void set_food(Env e, int f, int row, int col, int level) {
  e.food(f, 0) = (i8)row;
  e.food(f, 1) = (i8)col;
  e.food(f, 2) = (i8)level;
}

GZ void insert_food(Env e, int f, int row, int col, int level) {
  for (; f > 0 && e.food(f - 1, 0) * COLS + e.food(f - 1, 1) > row * COLS + col; --f)
    set_food(e, f, e.food(f - 1, 0), e.food(f - 1, 1), e.food(f - 1, 2));
  set_food(e, f, row, col, level);
}

GZ void place_player(Env e, int a) {
  int cell = 0;
  for (int attempt = 1; attempt <= ATTEMPTS; ++attempt) {
    cell = random_int(e, a, attempt, ROWS * COLS);
    if (!player_at(e, a, cell / COLS, cell % COLS)) break;
  }
  e.position(a, 0) = (i8)(cell / COLS);
  e.position(a, 1) = (i8)(cell % COLS);
}

GZ int three_lowest_levels(Env e) {
  int first = INT_LIMIT, second = INT_LIMIT, third = INT_LIMIT;
  for (int a = 0; a < AGENTS; ++a) {
    const int level = e.level[a];
    third = min(third, max(second, level));
    second = min(second, max(first, level));
    first = min(first, level);
  }
  return first + (AGENTS > 1 ? second : 0) + (AGENTS > 2 ? third : 0);
}

GZ void place_foods(Env e) {
  const int highest = e.cfg.max_food_level ? e.cfg.max_food_level : three_lowest_levels(e);
  const int lowest = e.cfg.force_coop ? highest : e.cfg.min_food_level;
  int placed = 0, spawned = 0;
  for (int attempt = 0; attempt < ATTEMPTS && placed < FOODS; ++attempt) {
    const int cell = random_int(e, attempt, (ROWS - 2) * (COLS - 2));
    const int row = 1 + cell / (COLS - 2), col = 1 + cell % (COLS - 2);
    if (player_at(e, AGENTS, row, col) || food_near(e, placed, row, col)) continue;
    const int level = lowest + random_int(e, ATTEMPTS + placed, highest - lowest + 1);
    insert_food(e, placed, row, col, level);
    spawned += level;
    ++placed;
  }
  for (int f = placed; f < FOODS; ++f) set_food(e, f, 0, 0, 0);
  e.food_spawned = spawned;
}

GZ void reset(Env e) {
  lanes(e, AGENTS, [=](int a) {
    const int lowest = e.cfg.min_player_level;
    e.level[a] = (i8)(lowest + random_int(e, a, 0, e.cfg.max_player_level - lowest + 1));
    e.target[a] = 0;
  });
  once(e, [=] {
    for (int a = 0; a < AGENTS; ++a) place_player(e, a);
    place_foods(e);
  });
}

GZ bool loads(Env e, int a, int f) {
  const int down = abs(e.food(f, 0) - e.position(a, 0)), right = abs(e.food(f, 1) - e.position(a, 1));
  return down + right == 1 && e.food(f, 2) > 0 && e.action[a] == LOAD;
}

GZ void step(Env e) {
  lanes(e, AGENTS, [=](int a) {
    const int move = e.action[a];
    const int row = e.position(a, 0) + (move == SOUTH) - (move == NORTH);
    const int col = e.position(a, 1) + (move == EAST) - (move == WEST);
    e.target[a] = row * COLS + col;
  });
  lanes(e, AGENTS, [=](int a) {
    const int cell = e.target[a];
    int here = 0;
    for (int b = 0; b < AGENTS; ++b) here += e.target[b] == cell;
    e.position(a, 0) = here == 1 ? (i8)(cell / COLS) : e.position(a, 0);
    e.position(a, 1) = here == 1 ? (i8)(cell % COLS) : e.position(a, 1);
  });
  lanes(e, FOODS, [=](int f) {  // foods lie so far apart that nobody stands beside two
    const int level = e.food(f, 2);
    int strength = 0;
    for (int a = 0; a < AGENTS; ++a) strength += loads(e, a, f) ? e.level[a] : 0;
    if (strength == 0) return;
    const float part = e.cfg.normalize_reward ? (float)(strength * e.food_spawned) : 1.f;
    for (int a = 0; a < AGENTS; ++a)
      if (loads(e, a, f)) e.reward[a] = strength < level ? 0.f - e.cfg.penalty : (float)(e.level[a] * level) / part;
    if (strength >= level) e.food(f, 2) = 0;
  });
  const bool food_left = lane_any(e, FOODS, [=](int f) { return e.food(f, 2) > 0; });
  once(e, [=] {
    if (!food_left) e.terminate_all();
  });
}

GZ void observe_actions(Env e, int a) {
  const int row = e.position(a, 0), col = e.position(a, 1);
  bool north = false, south = false, west = false, east = false;
  for (int f = 0; f < FOODS; ++f) {
    const int down = e.food(f, 0) - row, right = e.food(f, 1) - col;
    const bool there = e.food(f, 2) > 0;
    north |= there & (down == -1) & (right == 0);
    south |= there & (down == 1) & (right == 0);
    west |= there & (down == 0) & (right == -1);
    east |= there & (down == 0) & (right == 1);
  }
  const auto mask = e.action_mask[a];
  mask[NONE] = 1;
  mask[NORTH] = (row > 0) & !north;
  mask[SOUTH] = (row < ROWS - 1) & !south;
  mask[WEST] = (col > 0) & !west;
  mask[EAST] = (col < COLS - 1) & !east;
  mask[LOAD] = north | south | west | east;
}

template <int SIZE> GZ void put(Row out, int slot, int row, int col, int level) {
  out[SIZE * slot] = (float)row;
  out[SIZE * slot + 1] = (float)col;
  if (SIZE == 3) out[SIZE * slot + 2] = (float)level;
}

// A row of an entity that is not seen is overwritten by the next one.
GZ void observe_list(Env e) {
  constexpr int PLAYER = Config::observe_agent_levels ? 3 : 2;
  lanes(e, AGENTS, [=](int a) {
    const int row = e.position(a, 0), col = e.position(a, 1);
    const int top = WHOLE ? 0 : max(row - SIGHT, 0), left = WHOLE ? 0 : max(col - SIGHT, 0);
    Row out = e.observation[a];
    int seen = 0;
    for (int f = 0; f < FOODS; ++f) {
      const int y = e.food(f, 0), x = e.food(f, 1), level = e.food(f, 2);
      put<3>(out, seen, y - top, x - left, level);
      seen += (level > 0) & (WHOLE | ((abs(y - row) <= SIGHT) & (abs(x - col) <= SIGHT)));
    }
    for (; seen < FOODS; ++seen) put<3>(out, seen, -1, -1, 0);
    out += 3 * FOODS;
    put<PLAYER>(out, 0, row - top, col - left, e.level[a]);
    seen = 1;
    for (int b = 0; b < AGENTS; ++b) {
      if (b == a) continue;
      const int y = e.position(b, 0) - top, x = e.position(b, 1) - left;
      put<PLAYER>(out, seen, y, x, e.level[b]);
      seen += WHOLE | ((y >= 0) & (x >= 0) & (y <= 2 * SIGHT) & (x <= 2 * SIGHT));
    }
    for (; seen < AGENTS; ++seen) put<PLAYER>(out, seen, -1, -1, 0);
    observe_actions(e, a);
  });
}

GZ void observe_grid(Env e) {
  constexpr int WIDTH = 2 * SIGHT + 1, CELLS = WIDTH * WIDTH;
  lanes(e, AGENTS, CELLS, [=](int a, int k) {
    const int row = e.position(a, 0) + k / WIDTH - SIGHT, col = e.position(a, 1) + k % WIDTH - SIGHT;
    const Row players = e.observation[a], foods = players + CELLS, free = foods + CELLS;
    players[k] = foods[k] = 0.f;
    free[k] = (float)((row >= 0) & (row < ROWS) & (col >= 0) & (col < COLS));
  });
  lanes(e, AGENTS, [=](int a) {
    const Row players = e.observation[a], foods = players + CELLS, free = foods + CELLS;
    for (int b = 0; b < AGENTS; ++b) {
      const int y = e.position(b, 0) - e.position(a, 0) + SIGHT, x = e.position(b, 1) - e.position(a, 1) + SIGHT;
      if (y < 0 || y >= WIDTH || x < 0 || x >= WIDTH) continue;
      players[y * WIDTH + x] = e.cfg.observe_agent_levels ? (float)e.level[b] : 1.f;
      free[y * WIDTH + x] = 0.f;
    }
    for (int f = 0; f < FOODS; ++f) {
      const int y = e.food(f, 0) - e.position(a, 0) + SIGHT, x = e.food(f, 1) - e.position(a, 1) + SIGHT;
      if (e.food(f, 2) == 0 || y < 0 || y >= WIDTH || x < 0 || x >= WIDTH) continue;
      foods[y * WIDTH + x] = (float)e.food(f, 2);
      free[y * WIDTH + x] = 0.f;
    }
    observe_actions(e, a);
  });
}

GZ void observe(Env e) {
  if constexpr (Config::grid_observation)
    observe_grid(e);
  else
    observe_list(e);
}
