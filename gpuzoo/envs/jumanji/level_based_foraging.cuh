// Foods keep their numbers and levels; `eaten` says which are gone.

enum Move { NONE, NORTH, SOUTH, WEST, EAST, LOAD };

constexpr Const<Config::num_food> FOODS;
constexpr int SIDE = Config::grid_size, SIGHT = Config::fov;

GZ int row_after(int row, int move) { return row + (int)(move == SOUTH) - (int)(move == NORTH); }
GZ int column_after(int column, int move) { return column + (int)(move == EAST) - (int)(move == WEST); }

GZ bool is_food(Env e, int f, int row, int column) {
  return e.eaten[f] == 0 && e.food(f, 0) == row && e.food(f, 1) == column;
}

GZ bool is_free(Env e, int a, int row, int column) {
  bool free = row >= 0 && row < SIDE && column >= 0 && column < SIDE;
  for (int b = 0; b < AGENTS; ++b) free = free && (b == a || e.position(b, 0) != row || e.position(b, 1) != column);
  for (int f = 0; f < FOODS; ++f) free = free && !is_food(e, f, row, column);
  return free;
}

GZ bool is_beside(Env e, int a, int f) {
  const int down = abs(e.food(f, 0) - e.position(a, 0)), right = abs(e.food(f, 1) - e.position(a, 1));
  return e.eaten[f] == 0 && down + right == 1;
}

GZ int moves_of(Env e, int a) {
  const int row = e.position(a, 0), column = e.position(a, 1);
  int moves = 1 << NONE;
  for (int move = NORTH; move <= EAST; ++move)
    moves |= (int)is_free(e, a, row_after(row, move), column_after(column, move)) << move;
  for (int f = 0; f < FOODS; ++f) moves |= (int)is_beside(e, a, f) << LOAD;
  return moves;
}

// ---- generator ----

// Whether a food may lie on a cell inside the border: not on another one, nor beside it.
GZ bool takes_food(Env e, int foods, int row, int column) {
  bool free = true;
  for (int f = 0; f < foods; ++f) free = free && abs(e.food(f, 0) - row) + abs(e.food(f, 1) - column) > 1;
  return free;
}

GZ void place_food(Env e, int f) {
  int left = 0;
  for (int row = 1; row < SIDE - 1; ++row)
    for (int column = 1; column < SIDE - 1; ++column) left += (int)takes_food(e, f, row, column);
  left = random_int(e, f, 0, left);
  for (int row = 1; row < SIDE - 1; ++row)
    for (int column = 1; column < SIDE - 1; ++column) {
      left -= (int)takes_food(e, f, row, column);
      if (left >= 0) continue;
      e.food(f, 0) = (i8)row;
      e.food(f, 1) = (i8)column;
      return;
    }
}

GZ bool takes_agents(Env e, int row) {
  bool takes = true;
  for (int f = 0; f < FOODS; ++f) takes = takes && row != e.food(f, 0) && row != e.food(f, 1);
  return takes;
}

GZ bool takes_agent(Env e, int agents, int row, int column) {
  bool free = !Config::agents_avoid_rows || takes_agents(e, row);
  for (int b = 0; b < agents; ++b) free = free && (e.position(b, 0) != row || e.position(b, 1) != column);
  for (int f = 0; f < FOODS; ++f) free = free && (e.food(f, 0) != row || e.food(f, 1) != column);
  return free;
}

GZ void place_agent(Env e, int a, int free_cells) {
  int left = random_int(e, a, 1, free_cells - a);
  for (int cell = 0; cell < SIDE * SIDE; ++cell) {
    left -= (int)takes_agent(e, a, cell / SIDE, cell % SIDE);
    if (left >= 0) continue;
    e.position(a, 0) = (i8)(cell / SIDE);
    e.position(a, 1) = (i8)(cell % SIDE);
    return;
  }
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

GZ void reset(Env e) {
  once(e, [=] {
    for (int f = 0; f < FOODS; ++f) place_food(e, f);
    int free_cells = 0;
    for (int cell = 0; cell < SIDE * SIDE; ++cell) free_cells += (int)takes_agent(e, 0, cell / SIDE, cell % SIDE);
    for (int a = 0; a < AGENTS; ++a) {
      place_agent(e, a, free_cells);
      e.level[a] = (i8)(1 + random_int(e, a, 2, Config::max_agent_level));
    }
    const int highest = three_lowest_levels(e);
    for (int f = 0; f < FOODS; ++f) {
      e.food(f, 2) = (i8)(Config::force_coop ? highest : 1 + random_int(e, f, 3, highest));
      e.eaten[f] = false;
    }
  });
}

// ---- the game ----

GZ int choose(Env e, int a, u32 bits) { return chosen_bit((u64)moves_of(e, a), bits); }

GZ void step(Env e) {
  lanes(e, AGENTS, [=](int a) {
    const int move = e.action[a];
    const int row = e.position(a, 0), column = e.position(a, 1);
    const int to_row = row_after(row, move), to_column = column_after(column, move);
    e.target[a] = is_free(e, a, to_row, to_column) ? to_row * SIDE + to_column : row * SIDE + column;
  });
  lanes(e, AGENTS, [=](int a) {
    const int cell = e.target[a];
    int here = 0;
    for (int b = 0; b < AGENTS; ++b) here += (int)(e.target[b] == cell);
    if (here > 1) return;
    e.position(a, 0) = (i8)(cell / SIDE);
    e.position(a, 1) = (i8)(cell % SIDE);
  });
  once(e, [=] {
    int food_levels = 0;
    for (int f = 0; f < FOODS; ++f) food_levels += e.food(f, 2);
    for (int f = 0; f < FOODS; ++f) {
      int strength = 0;
      for (int a = 0; a < AGENTS; ++a) strength += is_beside(e, a, f) && e.action[a] == LOAD ? e.level[a] : 0;
      if (strength == 0) continue;
      const int level = e.food(f, 2);
      const bool loaded = strength >= level;
      const float part = Config::normalize_reward ? (float)(strength * food_levels) : 1.f;
      for (int a = 0; a < AGENTS; ++a) {
        const bool takes_part = loaded && is_beside(e, a, f) && e.action[a] == LOAD;
        const float gain = takes_part ? (float)(e.level[a] * level) : 0.f;
        e.reward[a] += (gain - (loaded ? 0.f : e.cfg.penalty)) / part;
      }
      e.eaten[f] = loaded;
    }
    bool over = true;
    for (int f = 0; f < FOODS; ++f) over = over && e.eaten[f] != 0;
    if (over) e.terminate_all();
  });
}

GZ void put(Row out, int slot, bool seen, int row, int column, int level) {
  out[3 * slot] = seen ? (float)row : -1.f;
  out[3 * slot + 1] = seen ? (float)column : -1.f;
  out[3 * slot + 2] = seen ? (float)level : 0.f;
}

GZ void observe_list(Env e, int a) {
  const Row out = e.observation[a];
  const int row = e.position(a, 0), column = e.position(a, 1);
  const int top = max(row - SIGHT, 0), left = max(column - SIGHT, 0);
  for (int f = 0; f < FOODS; ++f) {
    const int y = e.food(f, 0), x = e.food(f, 1);
    const bool seen = e.eaten[f] == 0 && abs(y - row) <= SIGHT && abs(x - column) <= SIGHT;
    put(out, f, seen, y - top, x - left, e.food(f, 2));
  }
  put(out, FOODS, true, row - top, column - left, e.level[a]);
  for (int b = 0; b < AGENTS; ++b) {
    const int y = e.position(b, 0), x = e.position(b, 1);
    const bool seen = abs(y - row) <= SIGHT && abs(x - column) <= SIGHT;
    if (b != a) put(out, FOODS + b + (int)(b < a), seen, y - top, x - left, e.level[b]);
  }
}

GZ void observe_grid(Env e, int a) {
  constexpr int WIDTH = 2 * SIGHT + 1, CELLS = WIDTH * WIDTH;
  const Row agents = e.observation[a], foods = agents + CELLS, free = foods + CELLS;
  for (int k = 0; k < CELLS; ++k) {
    const int row = e.position(a, 0) + k / WIDTH - SIGHT, column = e.position(a, 1) + k % WIDTH - SIGHT;
    agents[k] = foods[k] = 0.f;
    free[k] = row >= 0 && row < SIDE && column >= 0 && column < SIDE ? 1.f : 0.f;
  }
  for (int b = 0; b < AGENTS + FOODS; ++b) {
    const int f = b - AGENTS;
    const int y = (f < 0 ? e.position(b, 0) : e.food(f, 0)) - e.position(a, 0) + SIGHT;
    const int x = (f < 0 ? e.position(b, 1) : e.food(f, 1)) - e.position(a, 1) + SIGHT;
    if (y < 0 || y >= WIDTH || x < 0 || x >= WIDTH || (f >= 0 && e.eaten[f] != 0)) continue;
    (f < 0 ? agents : foods)[y * WIDTH + x] = (float)(f < 0 ? e.level[b] : e.food(f, 2));
    free[y * WIDTH + x] = 0.f;
  }
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    if constexpr (Config::grid_observation)
      observe_grid(e, a);
    else
      observe_list(e, a);
    const int moves = moves_of(e, a);
    for (int move = 0; move <= LOAD; ++move) e.action_mask[a][move] = (i8)(moves >> move & 1);
  });
}
