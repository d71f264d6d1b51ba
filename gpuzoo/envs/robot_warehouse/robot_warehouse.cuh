// RWARE, the multi-robot warehouse of Papoudakis et al., "Benchmarking Multi-Agent Deep Reinforcement Learning
// Algorithms in Cooperative Tasks" (NeurIPS 2021). A byte of `cells` holds all about a cell of the floor, which has a
// margin of walls as wide as robots see. What is carried is on the cell of the robot that carries it.

enum Move { NOOP, FORWARD, LEFT, RIGHT, TOGGLE_LOAD };
enum Direction { FACING_UP, FACING_DOWN, FACING_LEFT, FACING_RIGHT };
enum Layer { SHELVES_LAYER, REQUESTS_LAYER, AGENTS_LAYER, DIRECTION_LAYER, LOAD_LAYER, GOALS_LAYER, ACCESSIBLE_LAYER };

constexpr int SHELF = 1, REQUESTED = 2, ROBOT = 4, DIRECTION = 8 | 16, LOADED = 32;
constexpr int PLACE = 64 | 128, HIGHWAY = 64, WALL = 128, GOAL = 64 | 128;  // a goal is a highway, too
constexpr int DIRECTION_BIT = 3, NOBODY = -1;

constexpr Const<PADDED_ROWS * PADDED_COLS> CELLS;
constexpr int SIGHT = Config::sensor_range, VIEW = 2 * SIGHT + 1;
constexpr Const<VIEW * VIEW> SEEN;

// Cells of the floor are counted from its first one, on through the margins at its sides.
constexpr int FIRST = MARGIN * PADDED_COLS + MARGIN, FLOOR = CELLS - 2 * FIRST;
GZ u8 &code_at(Env e, Index cell) { return e.cells[FIRST + cell]; }
GZ Index place(Env e, int a) {
  const u32 cell = e.cell[a];
  return cell < (u32)FLOOR ? cell : 0;
}
GZ int direction_of(int code) { return (code & DIRECTION) >> DIRECTION_BIT; }

GZ int robot_on(Env e, int cell) {
  int robot = NOBODY;
  for (int a = 0; a < AGENTS; ++a) robot = e.cell[a] == cell ? a : robot;
  return robot;
}

// The n-th cell, in reading order, of those that are `wanted`.
template <class Wanted> GZ int nth_cell(Env e, int n, Wanted wanted) {
  for (int cell = 0; cell < FLOOR; ++cell) {
    n -= wanted((int)code_at(e, cell));
    if (n < 0) return cell;
  }
  return NOBODY;
}

GZ void request_shelf(Env e, int draw, int requested) {
  const int n = random_int(e, draw, SHELVES - requested);
  const int cell = nth_cell(e, n, [](int code) { return (code & (SHELF | REQUESTED)) == SHELF; });
  if (cell >= 0) code_at(e, cell) |= REQUESTED;
}

GZ void place_robot(Env e, int a) {
  const int cell = nth_cell(e, random_int(e, a, 0, ROWS * COLS - a), [](int code) {
    return (code & PLACE) != WALL && !(code & ROBOT);
  });
  e.cell[a] = cell;
  code_at(e, cell) |= (u8)(ROBOT | random_int(e, a, 1, 4) << DIRECTION_BIT);
}

GZ void reset(Env e) {
  lanes(e, CELLS, [=](int k) { e.cells[k] = e.floor[k]; });
  lanes(e, AGENTS, [=](int a) {
    e.has_delivered[a] = 0;
    for (int k = 0; k < MESSAGE; ++k) e.message(a, k) = 0;
  });
  once(e, [=] {
    for (int a = 0; a < AGENTS; ++a) place_robot(e, a);
    for (int k = 0; k < Config::request_queue_size; ++k) request_shelf(e, k, k);
    e.inactive_steps = 0;
  });
}

// What comes of a robot, by the byte of its cell: two bytes for the step ahead, one for what moves off the cell with it,
// and five for what the cell becomes after each action.
GZ int step_ahead(u64 outcome) { return (i16)outcome; }
GZ int moving_part(u64 outcome) { return (u8)(outcome >> 16); }
GZ int after(u64 outcome, int action) { return (u8)(outcome >> 24 + 8 * action); }

// A loaded robot does not pass under a shelf that stands.
GZ void act(Env e, int a) {
  const Index here = place(e, a);
  const int code = code_at(e, here), action = e.action(a, 0);
  const u64 outcome = e.outcome[code];
  const int there = code_at(e, here + step_ahead(outcome));
  const bool stopped = (e.stops[there] & (ROBOT | (code & LOADED))) != 0, moves = (action == FORWARD) & !stopped;
  e.target[a] = (int)here + moves * step_ahead(outcome);
  e.behind[a] = moves & ((there & ROBOT) != 0);
  e.moving[a] = (u8)(moves * moving_part(outcome));
  e.left[a] = (u8)after(outcome, action) ^ e.moving[a];
  if constexpr (Config::reward_type == REWARD_TYPE_TWO_STAGE) {
    const bool unloads = ((code & ~after(outcome, action)) & LOADED) != 0;
    e.reward[a] += unloads & e.has_delivered[a] ? 0.5f : 0.f;
    e.has_delivered[a] &= !unloads;
  }
  for (int k = 0; k < Config::msg_bits; ++k) e.message(a, k) = (i8)e.action(a, 1 + k);
}

// Whether a robot stands on the cell that this one wants, or an earlier one wants it, too.
GZ bool meets(Env e, int a) {
  bool meets = e.behind[a];
  for (int b = 0; b < a; ++b) meets |= e.target[b] == e.target[a];
  return meets;
}

GZ void measure_queues(Env e) {
  lanes(e, AGENTS, [=](int a) {
    int robot = e.ahead[a];
    for (int length = 1; length < AGENTS && robot >= 0 && robot != a; ++length) {
      scatter_max(e.queue[robot], length);
      robot = e.ahead[robot];
    }
  });
}

// The cells in the order in which the robots name them, each its own and then the one that it wants.
GZ int rank(Env e, int a) {
  int first = 2 * a;
  for (int b = 0; b < a; ++b) first = e.ahead[b] == a ? min(first, 2 * b + 1) : first;
  return first;
}

GZ bool is_first(Env e, int a) {
  bool first = true;
  for (int b = 0; b < AGENTS; ++b) {
    if (b == a || e.wanted[b] != e.wanted[a]) continue;
    const int longer = e.queue[a] - e.queue[b];
    first = first && (longer > 0 || (longer == 0 && rank(e, a) < rank(e, b)));
  }
  return first;
}

GZ bool advances(Env e, int a) {
  bool first = true;
  int robot = a;
  for (int length = 1; length <= AGENTS; ++length) {
    if (e.wanted[robot] == e.here[robot]) return false;
    first = first && is_first(e, robot);
    robot = e.ahead[robot];
    if (robot == NOBODY) return first;
    if (robot == a) return length > 2;
  }
  return false;
}

GZ void stay(Env e, int a) {
  e.target[a] = e.here[a];
  e.left[a] ^= e.moving[a];
  e.moving[a] = 0;
}

GZ void resolve(Env e) {
  lanes(e, AGENTS, [=](int a) {
    e.here[a] = (int)place(e, a);
    e.wanted[a] = e.target[a];
    e.ahead[a] = e.behind[a] ? robot_on(e, e.target[a]) : NOBODY;
    e.queue[a] = 0;
  });
  measure_queues(e);
  lanes(e, AGENTS, [=](int a) {
    if (!advances(e, a)) stay(e, a);
  });
}

GZ void leave(Env e, int a) { code_at(e, place(e, a)) = e.left[a]; }

GZ void arrive(Env e, int a) {
  const Index cell = e.target[a];
  code_at(e, cell) |= e.moving[a];
  e.cell[a] = (int)cell;
}

GZ void reward_delivery(Env e, int robot) {
  if constexpr (Config::reward_type == REWARD_TYPE_GLOBAL) {
    for (int a = 0; a < AGENTS; ++a) e.reward[a] += 1.f;
  } else if (robot >= 0) {
    e.reward[robot] += Config::reward_type == REWARD_TYPE_TWO_STAGE ? 0.5f : 1.f;
    e.has_delivered[robot] = Config::reward_type == REWARD_TYPE_TWO_STAGE;
  }
}

GZ void deliver(Env e) {
  int deliveries = 0;
  for (int g = 0; g < GOALS; ++g) {
    const int cell = e.goals[g];
    if (!(code_at(e, cell) & REQUESTED)) continue;
    request_shelf(e, deliveries++, Config::request_queue_size);
    code_at(e, cell) &= (u8)~REQUESTED;
    reward_delivery(e, robot_on(e, cell));
  }
}

GZ void step(Env e) {
  lanes(e, AGENTS, [=](int a) { act(e, a); });
  if (lane_any(e, AGENTS, [=](int a) { return meets(e, a); })) resolve(e);
  lanes(e, AGENTS, [=](int a) { leave(e, a); });
  lanes(e, AGENTS, [=](int a) { arrive(e, a); });
  once(e, [=] {
    bool delivered = false;
    for (int g = 0; g < GOALS; ++g) delivered |= (code_at(e, e.goals[g]) & REQUESTED) != 0;
    if (delivered) deliver(e);
    e.inactive_steps = delivered ? 0 : e.inactive_steps + 1;
    if (Config::max_inactivity_steps > 0 && e.inactive_steps >= Config::max_inactivity_steps) e.terminate_all();
  });
}

GZ void observe_message(Env e, Index cell, Row out) {
  const int robot = code_at(e, cell) & ROBOT ? robot_on(e, (int)cell) : NOBODY;
  for (int k = 0; k < Config::msg_bits; ++k) out[k] = robot >= 0 ? (float)e.message(robot, k) : 0.f;
}

// What a robot says of itself, and what is seen of a cell, are bits: tables have them for each byte that a cell may hold.
constexpr int ROBOT_BITS = 5, CELL_BITS = 7, OWN_NUMBERS = 8, CELL_NUMBERS = CELL_BITS + Config::msg_bits;

GZ void observe_coordinates(Env e, int a) { copy<2>(e.observation[a], e.coordinates + 2 * place(e, a)); }

GZ void observe_nearby(Env e) {
  constexpr Const<OWN_NUMBERS + CELL_BITS * 9> NUMBERS;
  rows_of_bits(
      e, AGENTS, NUMBERS, [=](int a) { return e.observation[a]; },
      [=](int a) {
        const Index here = place(e, a);
        const u64 own = e.own[code_at(e, here)];
        const u64 seen = window_bits<CELL_BITS, 3, 3>(e.look, e.cells, FIRST + here - PADDED_COLS - 1, PADDED_COLS);
        return Words<NUMBERS>{own | seen << OWN_NUMBERS, seen >> 64 - OWN_NUMBERS};
      });
  lanes(e, AGENTS, [=](int a) { observe_coordinates(e, a); });
}

GZ void observe_far(Env e) {
  lanes(e, AGENTS, Const<SEEN / CELLS_AT_ONCE>(), [=](int a, int part) {
    const Index here = place(e, a), start = part * CELLS_AT_ONCE;
    const Index first = here + (start / VIEW - SIGHT) * PADDED_COLS + start % VIEW - SIGHT;
    const u64 bits = window_bits<CELL_BITS, 1, CELLS_AT_ONCE>(e.look, e.cells, FIRST + first, PADDED_COLS);
    if (part == 0) {
      write_bits(e.observation[a], OWN_NUMBERS, e.own[code_at(e, here)]);
      observe_coordinates(e, a);
    }
    Row out = e.observation[a] + OWN_NUMBERS + (int)start * CELL_NUMBERS;
    if (Config::msg_bits == 0) {
      write_bits(out, CELL_BITS * CELLS_AT_ONCE, bits);
    } else {
      write_bits(out, ROBOT_BITS, bits);
      observe_message(e, first, out + ROBOT_BITS);
      write_bits(out + ROBOT_BITS + Config::msg_bits, CELL_BITS - ROBOT_BITS, bits >> ROBOT_BITS);
    }
  });
}

GZ int cell_of(int x, int y) { return y * PADDED_COLS + x; }

template <int LAYER> GZ float pixel(Env e, int cell) {
  const int code = code_at(e, cell);
  if (LAYER == SHELVES_LAYER) return (float)(code & SHELF);
  if (LAYER == REQUESTS_LAYER) return (float)((code & REQUESTED) / REQUESTED);
  if (LAYER == AGENTS_LAYER) return (float)((code & ROBOT) / ROBOT);
  if (LAYER == DIRECTION_LAYER) return code & ROBOT ? 1.f + (float)direction_of(code) : 0.f;
  if (LAYER == LOAD_LAYER) return (float)((code & LOADED) / LOADED);
  if (LAYER == GOALS_LAYER) return (float)((code & PLACE) == GOAL);
  return (float)((code & PLACE) != WALL && !(code & ROBOT));
}

template <int I> GZ void observe_layers(Env e, Row out, int x, int y) {
  constexpr int LAYER = LAYER_CODES >> 3 * I & 7;
  if (Config::transposed_layers && (LAYER == DIRECTION_LAYER || LAYER == LOAD_LAYER))
    out[I * SEEN] = x >= 0 && y >= 0 && x < ROWS && y < COLS ? pixel<LAYER>(e, cell_of(y, x)) : 0.f;
  else
    out[I * SEEN] = pixel<LAYER>(e, cell_of(x, y));
  if constexpr (I + 1 < LAYERS) observe_layers<I + 1>(e, out, x, y);
}

GZ int ahead_x(int direction) { return (direction == FACING_RIGHT) - (direction == FACING_LEFT); }
GZ int ahead_y(int direction) { return (direction == FACING_DOWN) - (direction == FACING_UP); }

GZ void observe_image(Env e, int features) {
  lanes(e, AGENTS, Const<VIEW>(), [=](int a, int row) {
    const int here = place(e, a), own_x = min(here % PADDED_COLS, COLS - 1);
    const int direction = Config::image_observation_directional ? direction_of(code_at(e, here)) : (int)FACING_UP;
    const int down_x = -ahead_x(direction), down_y = -ahead_y(direction), down = row - SIGHT;
    const int x = own_x + down * down_x, y = here / PADDED_COLS + down * down_y;
    Row out = e.observation[a] + features + row * VIEW;
    for (int k = 0; k < VIEW; ++k) {
      const int right = k - SIGHT;
      observe_layers<0>(e, out + k, x + right * down_y, y - right * down_x);
    }
  });
}

GZ void observe_features(Env e) {
  lanes(e, AGENTS, [=](int a) {
    Row out = e.observation[a];
    const int code = code_at(e, place(e, a));
    for (int d = 0; d < 4; ++d) out[d] = (float)(direction_of(code) == d);
    out[4] = (float)((code & HIGHWAY) / HIGHWAY);
    out[5] = (float)((code & LOADED) / LOADED);
  });
}

GZ void observe(Env e) {
  constexpr bool FLATTENED = Config::observation_type == OBSERVATION_TYPE_FLATTENED;
  constexpr bool NEARBY = SIGHT == 1 && Config::msg_bits == 0;
  if constexpr (FLATTENED && NEARBY) observe_nearby(e);
  if constexpr (FLATTENED && !NEARBY) observe_far(e);
  if constexpr (Config::observation_type == OBSERVATION_TYPE_IMAGE) observe_image(e, 0);
  if constexpr (Config::observation_type == OBSERVATION_TYPE_IMAGE_DICT) {
    observe_features(e);
    observe_image(e, 6);
  }
}
