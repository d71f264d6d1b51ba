#include "instances.cuh"
#include "moves.cuh"

// A cell holds 0, or PATH, HEAD or TARGET of agent a, plus 3 a.
enum Mark { EMPTY, PATH, HEAD, TARGET };

GZ int mark(int a, int kind) { return 3 * a + kind; }
GZ bool is_connected(Env e, int a) { return e.place[a] == e.target[a]; }

// The ways from a cell to cells that are empty or hold this mark, a bit for each.
GZ int ways_from(Env e, int cell, int goal) {
  int ways = 0;
  for (int way = 0; way < WAYS; ++way) {
    const int next = neighbour(cell, way, SIDE, SIDE);
    if (next >= 0) ways |= (int)(e.grid[next] == EMPTY || e.grid[next] == goal) << way;
  }
  return ways;
}

GZ int ways_of(Env e, int a) { return is_connected(e, a) ? 0 : ways_from(e, e.place[a], mark(a, TARGET)); }

GZ void advance(Env e, int a, int cell, int way) {
  e.grid[e.place[a]] = (i16)mark(a, PATH);
  e.grid[cell] = (i16)mark(a, HEAD);
  e.entered[cell] = (i8)way;
  e.place[a] = cell;
}

// ---- generators ----

// The empty cell behind `rank` other ones, of those that have an empty cell beside them, if `beside`.
GZ int empty_cell(Env e, int rank, bool beside) {
  int cell = 0;
  for (; cell < CELLS - 1; ++cell) {
    if (e.grid[cell] == EMPTY && (!beside || ways_from(e, cell, EMPTY) != 0)) --rank;
    if (rank < 0) break;
  }
  return cell;
}

GZ int count_empty_cells(Env e, bool beside) {
  int count = 0;
  for (int cell = 0; cell < CELLS; ++cell)
    count += (int)(e.grid[cell] == EMPTY && (!beside || ways_from(e, cell, EMPTY) != 0));
  return count;
}

GZ void place_anywhere(Env e) {
  for (int a = 0; a < AGENTS; ++a) {
    e.start[a] = empty_cell(e, random_int(e, a, 0, CELLS - 2 * a), false);
    e.grid[e.start[a]] = (i16)mark(a, HEAD);
    e.target[a] = empty_cell(e, random_int(e, a, 1, CELLS - 2 * a - 1), false);
    e.grid[e.target[a]] = (i16)mark(a, TARGET);
  }
}

GZ int cells_of_agent_beside(Env e, int a, int cell) {
  int count = 0;
  for (int way = 0; way < WAYS; ++way) {
    const int next = neighbour(cell, way, SIDE, SIDE);
    count += (int)(next >= 0 && e.grid[next] != EMPTY && (e.grid[next] - 1) / 3 == a);
  }
  return count;
}

// The ways that a walk may go on; a legacy walk does not touch itself.
GZ int ways_of_walk(Env e, int a) {
  int ways = ways_from(e, e.place[a], EMPTY);
  if (Config::generator == GENERATOR_LEGACY_RANDOM_WALK)
    for (int way = 0; way < WAYS; ++way)
      if ((ways >> way & 1) && cells_of_agent_beside(e, a, neighbour(e.place[a], way, SIDE, SIDE)) > 1)
        ways &= ~(1 << way);
  return ways;
}

// In a legacy walk the same number chooses the first cell and the first way, the latter of up, down, left and right.
GZ void begin_walk(Env e, int a) {
  constexpr bool LEGACY = Config::generator == GENERATOR_LEGACY_RANDOM_WALK;
  constexpr int LEGACY_ORDER = UP | DOWN << 4 | LEFT << 8 | RIGHT << 12;
  const u32 bits = random_bits(e, a, 0);
  const int cell = empty_cell(e, (int)mulhi(bits, (u32)count_empty_cells(e, true)), true);
  const int ways = ways_from(e, cell, EMPTY);
  int way = chosen_bit((u64)ways, random_bits(e, a, 1));
  if (LEGACY) {
    int rank = (int)mulhi(bits, (u32)popcount((u64)ways));
    for (int k = 0; k < WAYS; ++k) {
      const int other = LEGACY_ORDER >> 4 * k & 15;
      rank -= ways >> other & 1;
      if (rank < 0) {
        way = other;
        break;
      }
    }
  }
  e.start[a] = e.place[a] = cell;
  advance(e, a, neighbour(cell, way, SIDE, SIDE), way);
}

GZ float pull(int way, float down, float right) {
  return way == UP ? -down : way == RIGHT ? right : way == DOWN ? down : -right;
}

// One of the ways: with odds by the exponential of how far from its start a walk already is in that direction.
GZ int drawn_way(Env e, int a, int ways, u32 draw) {
  if (Config::generator == GENERATOR_LEGACY_RANDOM_WALK || popcount((u64)ways) == 1)
    return chosen_bit((u64)ways, random_bits(e, a, draw));
  const float down = (float)(e.place[a] / SIDE - e.start[a] / SIDE);
  const float right = (float)(e.place[a] % SIDE - e.start[a] % SIDE);
  float top = -infinity(), sum = 0.f;
  for (int way = 0; way < WAYS; ++way)
    if (ways >> way & 1) top = max(top, pull(way, down, right));
  for (int way = 0; way < WAYS; ++way)
    if (ways >> way & 1) sum += exp((pull(way, down, right) - top) / e.cfg.temperature);
  float left = uniform(e, a, draw, 0.f, sum);
  int chosen = 0;
  for (int way = 0; way < WAYS; ++way)
    if ((ways >> way & 1) && left >= 0.f) {
      chosen = way;
      left -= exp((pull(way, down, right) - top) / e.cfg.temperature);
    }
  return chosen;
}

// All walks take a step at the same time. Of those that want the same cell the last one gets it.
GZ bool walk_on(Env e, u32 draw) {
  bool any = false;
  for (int a = 0; a < AGENTS; ++a) {
    const int ways = ways_of_walk(e, a);
    e.way[a] = ways == 0 ? -1 : drawn_way(e, a, ways, draw);
    any = any || ways != 0;
  }
  for (int a = AGENTS - 1; a >= 0; --a) {
    const int way = e.way[a], cell = way < 0 ? -1 : neighbour(e.place[a], way, SIDE, SIDE);
    if (cell >= 0 && e.grid[cell] == EMPTY) advance(e, a, cell, way);
  }
  return any;
}

GZ void walk(Env e) {
  for (int a = 0; a < AGENTS; ++a) begin_walk(e, a);
  for (int steps = 1; steps < LONGEST_WALK; ++steps)
    if (!walk_on(e, (u32)steps + 1u)) break;
  for (int a = 0; a < AGENTS; ++a) e.target[a] = e.place[a];
}

GZ void place_given(Env e) {
  const int given = given_instance(e, 0);
  for (int a = 0; a < AGENTS; ++a) {
    const int k = 2 * (AGENTS * given + a);
    e.start[a] = e.given_starts[k] * SIDE + e.given_starts[k + 1];
    e.target[a] = e.given_targets[k] * SIDE + e.given_targets[k + 1];
  }
}

GZ void clear(Env e) {
  for (int cell = 0; cell < CELLS; ++cell) {
    e.grid[cell] = EMPTY;
    e.entered[cell] = -1;
  }
}

GZ void reset(Env e) {
  once(e, [=] {
    clear(e);
    if constexpr (INSTANCES > 0)
      place_given(e);
    else if constexpr (Config::generator == GENERATOR_UNIFORM)
      place_anywhere(e);
    else
      walk(e);
    clear(e);
    for (int a = 0; a < AGENTS; ++a) {
      e.place[a] = e.start[a];
      e.grid[e.start[a]] = (i16)mark(a, HEAD);
      e.grid[e.target[a]] = (i16)mark(a, TARGET);
    }
  });
}

// ---- the game ----

GZ int choose(Env e, int a, u32 bits) { return chosen_bit(1ull | (u64)ways_of(e, a) << 1, bits); }

GZ float pay(Env e, bool connects) {
  if (Config::reward == REWARD_SPARSE || Config::reward == REWARD_SHARED_SPARSE) return connects ? 1.f : 0.f;
  return (connects ? e.cfg.connected_reward : 0.f) + e.cfg.timestep_reward;
}

// The last agent moves first: of those that want the same cell it gets it. Nothing else depends on the order.
GZ void step(Env e) {
  once(e, [=] {
    float sum = 0.f;
    for (int a = AGENTS - 1; a >= 0; --a) {
      if (is_connected(e, a)) continue;
      const int way = e.action[a] - 1;
      if (way >= 0 && (ways_of(e, a) >> way & 1)) advance(e, a, neighbour(e.place[a], way, SIDE, SIDE), way);
      e.reward[a] = pay(e, is_connected(e, a));
      sum += e.reward[a];
    }
    if (Config::reward == REWARD_SHARED_DENSE || Config::reward == REWARD_SHARED_SPARSE)
      for (int a = 0; a < AGENTS; ++a) e.reward[a] = sum;
    bool over = true;
    for (int a = 0; a < AGENTS && over; ++a) over = ways_of(e, a) == 0;
    if (over) e.terminate_all();
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    Row out = e.observation[a];
    for (int k = 0; k < CHANNELS * CELLS; ++k) out[k] = 0;
    for (int cell = 0; cell < CELLS; ++cell) {
      const int held = e.grid[cell] - 1;
      if (held >= 0) out[CHANNELS * cell + held % 3 + (held / 3 == a ? 0 : 3)] = 1;
    }
    const int ways = ways_of(e, a);
    e.action_mask[a][0] = 1;
    for (int way = 0; way < WAYS; ++way) e.action_mask[a][way + 1] = (i8)(ways >> way & 1);
  });
}

GZ void state(Env e) {
  lanes(e, CELLS, [=](int cell) { e.state[cell] = e.grid[cell]; });
}
