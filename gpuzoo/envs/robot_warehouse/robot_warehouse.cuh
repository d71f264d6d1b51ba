// RWARE, the multi-robot warehouse of Papoudakis et al., "Benchmarking Multi-Agent Deep Reinforcement Learning
// Algorithms in Cooperative Tasks" (NeurIPS 2021). A byte of `cells` holds all about a cell of the floor, which has a
// margin of walls as wide as robots see. What is carried is on the cell of the robot that carries it.

enum Move { NOOP, FORWARD, LEFT, RIGHT, TOGGLE_LOAD };
enum Direction { FACING_UP, FACING_DOWN, FACING_LEFT, FACING_RIGHT };
enum Layer { SHELVES_LAYER, REQUESTS_LAYER, AGENTS_LAYER, DIRECTION_LAYER, LOAD_LAYER, GOALS_LAYER, ACCESSIBLE_LAYER };

constexpr int SHELF = 1, REQUESTED = 2, ROBOT = 4, DIRECTION = 8 | 16, HIGHWAY = 32, GOAL = 64, WALL = 128;
constexpr int DIRECTION_BIT = 3, MOVABLE = SHELF | REQUESTED | ROBOT | DIRECTION;
constexpr int NOBODY = -1;

// Small tables in one number each, by direction: steps of x and of y, 1 more than they are, in 4 bits; cells in 16; and
// where a robot looks after each action, in 2.
constexpr u32 AHEAD_X = 0x2011, AHEAD_Y = 0x1120;
constexpr u64 DOWN = PADDED_COLS, UP = 0x10000 - DOWN, AHEAD = UP | DOWN << 16 | (u64)0xffff << 32 | (u64)1 << 48;
constexpr u64 SAME = 0 | 1 << 2 | 2 << 4 | 3 << 6, TO_LEFT = 2 | 3 << 2 | 1 << 4 | 0 << 6;
constexpr u64 TO_RIGHT = 3 | 2 << 2 | 0 << 4 | 1 << 6;
constexpr u64 TURNS = SAME | SAME << 8 | TO_LEFT << 16 | TO_RIGHT << 24 | SAME << 32;

constexpr Const<PADDED_ROWS * PADDED_COLS> CELLS;
constexpr int SIGHT = Config::sensor_range, VIEW = 2 * SIGHT + 1;
constexpr Const<VIEW * VIEW> SEEN;

GZ int cell_of(int x, int y) { return (y + MARGIN) * PADDED_COLS + x + MARGIN; }
GZ int place(Env e, int a) {
  constexpr int FIRST = MARGIN * PADDED_COLS + MARGIN;
  return clamp(cell_of(e.x[a], e.y[a]), FIRST, CELLS - 1 - FIRST);
}
GZ int ahead_x(int direction) { return (int)(AHEAD_X >> 4 * direction & 15) - 1; }
GZ int ahead_y(int direction) { return (int)(AHEAD_Y >> 4 * direction & 15) - 1; }
GZ int ahead(int direction) { return (i16)(AHEAD >> 16 * direction); }
GZ int turned(int direction, int action) { return (int)(TURNS >> (8 * action + 2 * direction) & 3); }

GZ int robot_on(Env e, int cell) {
  int robot = NOBODY;
  for (int a = 0; a < AGENTS; ++a) robot = place(e, a) == cell ? a : robot;
  return robot;
}

// The n-th cell, in reading order, of which these bits have this value.
GZ int nth_cell(Env e, int n, int bits, int value) {
  for (int cell = 0; cell < CELLS; ++cell) {
    n -= (e.cells[cell] & bits) == value;
    if (n < 0) return cell;
  }
  return NOBODY;
}

GZ void request_shelf(Env e, int draw, int requested) {
  const int cell = nth_cell(e, random_int(e, draw, SHELVES - requested), SHELF | REQUESTED, SHELF);
  if (cell >= 0) e.cells[cell] |= REQUESTED;
}

GZ void place_robot(Env e, int a) {
  const int cell = nth_cell(e, random_int(e, a, 0, ROWS * COLS - a), WALL | ROBOT, 0);
  e.x[a] = (i8)(cell % PADDED_COLS - MARGIN);
  e.y[a] = (i8)(cell / PADDED_COLS - MARGIN);
  e.direction[a] = (i8)random_int(e, a, 1, 4);
  e.cells[cell] |= (u8)(ROBOT | e.direction[a] << DIRECTION_BIT);
}

GZ void reset(Env e) {
  lanes(e, CELLS, [=](int k) { e.cells[k] = e.floor[k]; });
  lanes(e, AGENTS, [=](int a) {
    e.carrying[a] = e.has_delivered[a] = 0;
    e.target[a] = e.queue[a] = 0;
    e.ahead[a] = NOBODY;
    e.lifted[a] = 0;
    for (int k = 0; k < MESSAGE; ++k) e.message(a, k) = 0;
  });
  once(e, [=] {
    for (int a = 0; a < AGENTS; ++a) place_robot(e, a);
    for (int k = 0; k < Config::request_queue_size; ++k) request_shelf(e, k, k);
    e.inactive_steps = 0;
  });
}

// A loaded robot does not pass under a shelf that stands.
GZ void choose_target(Env e, int a) {
  const int here = place(e, a), next = here + ahead(e.direction[a]);
  const bool forward = e.action(a, 0) == FORWARD;
  const int there = e.cells[next];
  const int robot = forward & ((there & ROBOT) != 0) ? robot_on(e, next) : NOBODY;
  const bool standing_shelf = ((there & SHELF) != 0) & !(robot >= 0 && e.carrying[robot]);
  const bool moves = forward & ((there & WALL) == 0) & !((e.carrying[a] != 0) & standing_shelf);
  e.here[a] = here;
  e.target[a] = moves ? next : here;
  e.ahead[a] = (i8)(moves ? robot : NOBODY);
  e.queue[a] = 0;
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
    if (b == a || e.target[b] != e.target[a]) continue;
    const int longer = e.queue[a] - e.queue[b];
    first = first && (longer > 0 || (longer == 0 && rank(e, a) < rank(e, b)));
  }
  return first;
}

// Whether a robot stands on the cell that this one wants, or an earlier one wants it, too.
GZ bool meets(Env e, int a) {
  bool meets = e.ahead[a] != NOBODY;
  for (int b = 0; b < a; ++b) meets |= e.target[b] == e.target[a];
  return meets;
}

GZ bool advances(Env e, int a) {
  bool first = true;
  int robot = a;
  for (int length = 1; length <= AGENTS; ++length) {
    if (e.target[robot] == e.here[robot]) return false;
    first = first && is_first(e, robot);
    robot = e.ahead[robot];
    if (robot == NOBODY) return first;
    if (robot == a) return length > 2;
  }
  return false;
}

// Lifts what moves off its cell: the robot and its load.
GZ void act(Env e, int a, bool moves) {
  const int action = e.action(a, 0), here = e.here[a], code = e.cells[here];
  const int direction = turned(e.direction[a], action), after = (code & ~DIRECTION) | direction << DIRECTION_BIT;
  const int lifted = moves ? after & (e.carrying[a] ? MOVABLE : ROBOT | DIRECTION) : 0;
  const bool toggles = action == TOGGLE_LOAD, loaded = e.carrying[a];
  const bool loads = toggles & !loaded & ((code & SHELF) != 0), unloads = toggles & loaded & ((code & HIGHWAY) == 0);
  e.direction[a] = (i8)direction;
  e.cells[here] = (u8)(after ^ lifted);
  e.lifted[a] = (u8)lifted;
  e.carrying[a] = (loaded | loads) & !unloads;
  if constexpr (Config::reward_type == REWARD_TYPE_TWO_STAGE) {
    e.reward[a] += unloads & e.has_delivered[a] ? 0.5f : 0.f;
    e.has_delivered[a] &= !unloads;
  }
  for (int k = 0; k < Config::msg_bits; ++k) e.message(a, k) = (i8)e.action(a, 1 + k);
}

GZ void put_down(Env e, int a) {
  const int lifted = e.lifted[a], direction = e.direction[a];
  e.cells[lifted ? (int)e.target[a] : (int)e.here[a]] |= (u8)lifted;
  e.x[a] = (i8)(e.x[a] + (lifted ? ahead_x(direction) : 0));
  e.y[a] = (i8)(e.y[a] + (lifted ? ahead_y(direction) : 0));
}

GZ void reward_delivery(Env e, int robot) {
  if constexpr (Config::reward_type == REWARD_TYPE_GLOBAL) {
    for (int a = 0; a < AGENTS; ++a) e.reward[a] += 1.f;
  } else if (robot >= 0) {
    e.reward[robot] += Config::reward_type == REWARD_TYPE_TWO_STAGE ? 0.5f : 1.f;
    e.has_delivered[robot] = Config::reward_type == REWARD_TYPE_TWO_STAGE;
  }
}

GZ void step(Env e) {
  lanes(e, AGENTS, [=](int a) { choose_target(e, a); });
  const bool meet = lane_any(e, AGENTS, [=](int a) { return meets(e, a); });
  if (meet) measure_queues(e);
  lanes(e, AGENTS, [=](int a) { act(e, a, meet ? advances(e, a) : e.target[a] != e.here[a]); });
  lanes(e, AGENTS, [=](int a) { put_down(e, a); });
  once(e, [=] {
    int deliveries = 0;
    for (int g = 0; g < GOALS; ++g) {
      const int cell = e.goals[g];
      if (!(e.cells[cell] & REQUESTED)) continue;
      request_shelf(e, deliveries++, Config::request_queue_size);
      e.cells[cell] &= (u8)~REQUESTED;
      reward_delivery(e, robot_on(e, cell));
    }
    e.inactive_steps = deliveries > 0 ? 0 : e.inactive_steps + 1;
    if (Config::max_inactivity_steps > 0 && e.inactive_steps >= Config::max_inactivity_steps) e.terminate_all();
  });
}

GZ void observe_message(Env e, int cell, Row out) {
  const int robot = e.cells[cell] & ROBOT ? robot_on(e, cell) : NOBODY;
  for (int k = 0; k < Config::msg_bits; ++k) out[k] = robot >= 0 ? (float)e.message(robot, k) : 0.f;
}

// What is seen of a cell is one of 32 rows of a table.
GZ void observe_numbers(Env e) {
  constexpr int BITS = Config::msg_bits, ROBOT_NUMBERS = 5, SHELF_NUMBERS = 2, NUMBERS = 7, STRIDE = 8;
  lanes(e, AGENTS, [=](int a) {
    Row out = e.observation[a];
    e.here[a] = place(e, a);
    const int here = e.cells[e.here[a]];
    out[0] = Config::normalised_coordinates ? (float)e.x[a] / (float)(COLS - 1) : (float)e.x[a];
    out[1] = Config::normalised_coordinates ? (float)e.y[a] / (float)(ROWS - 1) : (float)e.y[a];
    out[2] = (float)e.carrying[a];
    copy<4>(out + 3, e.look + (here & MOVABLE) * STRIDE + 1);
    out[7] = (float)((here & HIGHWAY) / HIGHWAY);
  });
  lanes(e, AGENTS, Const<VIEW>(), [=](int a, int row) {
    const int first = e.here[a] + (row - SIGHT) * PADDED_COLS - SIGHT;
    const auto table = e.look;
    Row out = e.observation[a] + 8 + row * VIEW * (NUMBERS + BITS);
    for (int k = 0; k < VIEW; ++k, out += NUMBERS + BITS) {
      const auto look = table + (e.cells[first + k] & MOVABLE) * STRIDE;
      copy<BITS ? ROBOT_NUMBERS : NUMBERS>(out, look);
      if (BITS) observe_message(e, first + k, out + ROBOT_NUMBERS);
      if (BITS) copy<SHELF_NUMBERS>(out + ROBOT_NUMBERS + BITS, look + ROBOT_NUMBERS);
    }
  });
}

template <int LAYER> GZ float pixel(Env e, int cell) {
  const int code = e.cells[cell];
  if (LAYER == SHELVES_LAYER) return (float)(code & SHELF);
  if (LAYER == REQUESTS_LAYER) return (float)((code & REQUESTED) / REQUESTED);
  if (LAYER == AGENTS_LAYER) return (float)((code & ROBOT) / ROBOT);
  if (LAYER == DIRECTION_LAYER) return code & ROBOT ? 1.f + (float)((code & DIRECTION) >> DIRECTION_BIT) : 0.f;
  if (LAYER == LOAD_LAYER) return code & ROBOT ? (float)e.carrying[max(robot_on(e, cell), 0)] : 0.f;
  if (LAYER == GOALS_LAYER) return (float)((code & GOAL) / GOAL);
  return (float)((code & (WALL | ROBOT)) == 0);
}

template <int I> GZ void observe_layers(Env e, Row out, int x, int y) {
  constexpr int LAYER = LAYER_CODES >> 3 * I & 7;
  if (Config::transposed_layers && (LAYER == DIRECTION_LAYER || LAYER == LOAD_LAYER))
    out[I * SEEN] = x >= 0 && y >= 0 && x < ROWS && y < COLS ? pixel<LAYER>(e, cell_of(y, x)) : 0.f;
  else
    out[I * SEEN] = pixel<LAYER>(e, cell_of(x, y));
  if constexpr (I + 1 < LAYERS) observe_layers<I + 1>(e, out, x, y);
}

GZ void observe_image(Env e, int features) {
  lanes(e, AGENTS, Const<VIEW>(), [=](int a, int row) {
    const int direction = Config::image_observation_directional ? (int)e.direction[a] : (int)FACING_UP;
    const int down_x = -ahead_x(direction), down_y = -ahead_y(direction), down = row - SIGHT;
    const int x = clamp(e.x[a], 0, COLS - 1) + down * down_x, y = clamp(e.y[a], 0, ROWS - 1) + down * down_y;
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
    for (int d = 0; d < 4; ++d) out[d] = (float)(e.direction[a] == d);
    out[4] = (float)((e.cells[place(e, a)] & HIGHWAY) != 0);
    out[5] = (float)e.carrying[a];
  });
}

GZ void observe(Env e) {
  if constexpr (Config::observation_type == OBSERVATION_TYPE_FLATTENED) observe_numbers(e);
  if constexpr (Config::observation_type == OBSERVATION_TYPE_IMAGE) observe_image(e, 0);
  if constexpr (Config::observation_type == OBSERVATION_TYPE_IMAGE_DICT) {
    observe_features(e);
    observe_image(e, 6);
  }
}
