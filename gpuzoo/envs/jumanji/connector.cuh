#include "instances.cuh"
#include "moves.cuh"

// The grid has a margin of walls. A cell holds 0, or PATH, HEAD or TARGET of agent a, plus 3 a.
enum Mark { WALL = -1, EMPTY, PATH, HEAD, TARGET };

constexpr int PITCH = SIDE + 2;
// The cells from the board's first one to its last, walls between the rows included.
constexpr int FIRST_CELL = PITCH + 1, INNER = GRID - 2 * FIRST_CELL, SOME = INNER < 64 ? INNER : 64;

GZ int cell_of(int k) { return (k / SIDE + 1) * PITCH + k % SIDE + 1; }
GZ int ahead(int cell, int way) {
  return cell + (way == UP ? -PITCH : way == DOWN ? PITCH : way == RIGHT ? 1 : -1);
}

GZ int mark(int a, int kind) { return 3 * a + kind; }
GZ bool is_connected(Env e, int a) { return e.place[a] == e.target[a]; }

// Whether a cell is empty or holds this mark.
GZ bool is_open(Env e, int cell, int goal) {
  const int held = e.grid[cell];
  return (held == EMPTY) | (held == goal);
}

// The ways from a cell to open ones, a bit for each.
GZ int ways_from(Env e, int cell, int goal) {
  int ways = 0;
  for (int way = 0; way < WAYS; ++way) ways |= (int)is_open(e, ahead(cell, way), goal) << way;
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

// Whether a cell is empty, and has an empty cell beside it, if `beside`.
GZ bool is_vacant(Env e, int cell, bool beside) {
  return (e.grid[cell] == EMPTY) & (!beside | (ways_from(e, cell, EMPTY) != 0));
}

// Those of 64 cells that are vacant, a bit for each, from 64 w cells behind the first one of the board.
GZ u64 vacant_cells(Env e, int w, bool beside) {
  const int from = min(64 * w, INNER - SOME);
  const u64 vacant = bits_where<SOME>([=](int k) { return is_vacant(e, FIRST_CELL + from + k, beside); });
  return vacant >> (64 * w - from);
}

GZ int count_vacant(Env e, bool beside) {
  int count = 0;
  for (int w = 0; 64 * w < INNER; ++w) count += popcount(vacant_cells(e, w, beside));
  return count;
}

// The vacant cell behind `rank` other ones.
GZ int vacant_cell(Env e, int rank, bool beside) {
  for (int w = 0; 64 * w < INNER; ++w) {
    const u64 vacant = vacant_cells(e, w, beside);
    const int count = popcount(vacant);
    if (rank < count) return FIRST_CELL + 64 * w + bit_at(vacant, rank);
    rank -= count;
  }
  return FIRST_CELL + INNER - 1;
}

GZ void place_anywhere(Env e) {
  for (int k = 0; k < 2 * AGENTS; ++k) {
    const int cell = vacant_cell(e, random_int(e, k, 0, CELLS - k), false), a = k / 2;
    e.grid[cell] = PATH;
    if (k % 2 == 0)
      e.start[a] = cell;
    else
      e.target[a] = cell;
  }
}

GZ int cells_of_agent_beside(Env e, int a, int cell) {
  int count = 0;
  for (int way = 0; way < WAYS; ++way) {
    const int held = e.grid[ahead(cell, way)];
    count += (int)(held > EMPTY && (held - 1) / 3 == a);
  }
  return count;
}

// The ways that a walk may go on; a legacy walk does not touch itself.
GZ int ways_of_walk(Env e, int a) {
  int ways = ways_from(e, e.place[a], EMPTY);
  if constexpr (Config::generator == GENERATOR_LEGACY_RANDOM_WALK)
    for (int way = 0; way < WAYS; ++way)
      if ((ways >> way & 1) && cells_of_agent_beside(e, a, ahead(e.place[a], way)) > 1) ways &= ~(1 << way);
  return ways;
}

// In a legacy walk the same number chooses the first cell and the first way, the latter of up, down, left and right.
GZ void begin_walk(Env e, int a) {
  constexpr bool LEGACY = Config::generator == GENERATOR_LEGACY_RANDOM_WALK;
  constexpr int LEGACY_ORDER = UP | DOWN << 4 | LEFT << 8 | RIGHT << 12;
  const u32 bits = random_bits(e, a, 0);
  const int cell = vacant_cell(e, (int)mulhi(bits, (u32)count_vacant(e, true)), true);
  const int ways = ways_from(e, cell, EMPTY);
  int way = LEGACY ? 0 : chosen_bit((u64)ways, random_bits(e, a, 1));
  if constexpr (LEGACY) {
    int rank = (int)mulhi(bits, (u32)popcount((u64)ways));
    for (int k = 0; k < WAYS; ++k) {
      const int other = LEGACY_ORDER >> 4 * k & 15;
      way = rank == 0 && (ways >> other & 1) ? other : way;
      rank -= ways >> other & 1;
    }
  }
  e.start[a] = e.place[a] = cell;
  advance(e, a, ahead(cell, way), way);
}

GZ int pull(int way, int down, int right) {
  return way == UP ? -down : way == RIGHT ? right : way == DOWN ? down : -right;
}

// One of the ways: with odds by the exponential of how far from its start a walk already is in that direction.
GZ int drawn_way(Env e, int a, int ways, u32 draw) {
  const u32 bits = random_bits(e, a, draw);
  if constexpr (Config::generator == GENERATOR_LEGACY_RANDOM_WALK) return chosen_bit((u64)ways, bits);
  const int down = e.place[a] / PITCH - e.start[a] / PITCH, right = e.place[a] % PITCH - e.start[a] % PITCH;
  int top = -SIDE;
  for (int way = 0; way < WAYS; ++way) top = ways >> way & 1 ? max(top, pull(way, down, right)) : top;
  float sum = 0.f;
  for (int way = 0; way < WAYS; ++way) sum += ways >> way & 1 ? e.odds[top - pull(way, down, right)] : 0.f;
  float left = (float)(bits >> 8) * 0x1p-24f * sum;
  int chosen = 0;
  for (int way = 0; way < WAYS; ++way)
    if ((ways >> way & 1) && left >= 0.f) {
      chosen = way;
      left -= e.odds[top - pull(way, down, right)];
    }
  return chosen;
}

// All walks take a step at the same time. Of those that want the same cell the last one gets it.
GZ void walk(Env e) {
  lanes(e, ODDS, [=](int k) { e.odds[k] = exp(-(float)k / e.cfg.temperature); });
  once(e, [=] {
    for (int a = 0; a < AGENTS; ++a) begin_walk(e, a);
  });
  bool any = true;
  for (int steps = 1; steps < LONGEST_WALK && any; ++steps) {
    lanes(e, AGENTS, [=](int a) {
      const int ways = ways_of_walk(e, a);
      e.way[a] = ways == 0 ? -1 : drawn_way(e, a, ways, (u32)steps + 1u);
    });
    any = lane_any(e, AGENTS, [=](int a) { return e.way[a] >= 0; });
    once(e, [=] {
      for (int a = AGENTS - 1; a >= 0; --a) {
        const int cell = ahead(e.place[a], e.way[a]);
        if (e.way[a] >= 0 && e.grid[cell] == EMPTY) advance(e, a, cell, e.way[a]);
      }
    });
  }
  lanes(e, AGENTS, [=](int a) { e.target[a] = e.place[a]; });
}

GZ void place_given(Env e) {
  const int given = given_instance(e, 0);
  for (int a = 0; a < AGENTS; ++a) {
    const int k = 2 * (AGENTS * given + a);
    e.start[a] = cell_of(e.given_starts[k] * SIDE + e.given_starts[k + 1]);
    e.target[a] = cell_of(e.given_targets[k] * SIDE + e.given_targets[k + 1]);
  }
}

GZ void clear(Env e) {
  lanes(e, GRID, [=](int cell) {
    const int row = cell / PITCH, column = cell % PITCH;
    e.grid[cell] = (i16)(row == 0 || row > SIDE || column == 0 || column > SIDE ? WALL : EMPTY);
    e.entered[cell] = -1;
  });
}

GZ void reset(Env e) {
  clear(e);
  if constexpr (INSTANCES > 0)
    once(e, [=] { place_given(e); });
  else if constexpr (Config::generator == GENERATOR_UNIFORM)
    once(e, [=] { place_anywhere(e); });
  else
    walk(e);
  clear(e);
  lanes(e, AGENTS, [=](int a) {
    e.place[a] = e.start[a];
    e.grid[e.start[a]] = (i16)mark(a, HEAD);
    e.grid[e.target[a]] = (i16)mark(a, TARGET);
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
  lanes(e, AGENTS, [=](int a) {
    const int way = e.action[a] - 1;
    const bool goes = way >= 0 && !is_connected(e, a) && is_open(e, ahead(e.place[a], way), mark(a, TARGET));
    e.way[a] = goes ? way : -1;
  });
  once(e, [=] {
    float sum = 0.f;
    for (int a = AGENTS - 1; a >= 0; --a) {
      if (is_connected(e, a)) continue;
      const int cell = ahead(e.place[a], e.way[a]);
      if (e.way[a] >= 0 && (e.grid[cell] == EMPTY || cell == e.target[a])) advance(e, a, cell, e.way[a]);
      e.reward[a] = pay(e, is_connected(e, a));
      sum += e.reward[a];
    }
    if (Config::reward == REWARD_SHARED_DENSE || Config::reward == REWARD_SHARED_SPARSE)
      for (int a = 0; a < AGENTS; ++a) e.reward[a] = sum;
  });
  once(e, [=] {
    for (int a = 0; a < AGENTS; ++a)
      if (ways_of(e, a) != 0) return;
    e.terminate_all();
  });
}

// A cell is a word of four bytes: three for the agent's own marks, and one for those of others.
GZ void observe(Env e) {
  lanes(e, SIDE, SIDE, [=](int row, int column) { e.held[SIDE * row + column] = e.grid[PITCH * (row + 1) + column + 1]; });
  lanes(e, CELLS, [=](int k) {
    const int held = e.held[k] - 1;
    e.owner[k] = held < 0 ? -1 : held / 3;
    e.kind[k] = held < 0 ? 0 : held % 3 + 1;
  });
  lanes(e, AGENTS, Const<CELLS>(), [=](int a, int k) {
    const u32 kind = (u32)e.kind[k], own = 1u << ((8u * kind - 8u) & 31u);
    words(e.observation[a])[k] = e.owner[k] == a ? own : kind << 24;
  });
  lanes(e, AGENTS, [=](int a) {
    const int ways = ways_of(e, a);
    e.action_mask[a][0] = 1;
    for (int way = 0; way < WAYS; ++way) e.action_mask[a][way + 1] = (i8)(ways >> way & 1);
  });
}

GZ void state(Env e) {
  lanes(e, CELLS, [=](int k) { e.state[k] = e.grid[cell_of(k)]; });
}
