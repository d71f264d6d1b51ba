// Knights, archers and zombies with the rules of PettingZoo's butterfly.knights_archers_zombies_v11. Places are pixels of
// a screen, y grows downwards. A direction counts tens of degrees, clockwise from up. Archers come before knights.

enum Move { FORWARD, BACKWARD, TURN_LEFT, TURN_RIGHT, ATTACK, NOTHING };
enum Kind { NOBODY = -1, ZOMBIE, ARCHER, KNIGHT, MACE, ARROW, SELF, KINDS };
enum Draw { SPAWN, WOBBLE };

constexpr int SCREEN_WIDTH = 1280, SCREEN_HEIGHT = 720, MARGIN = 100;
constexpr int DIRECTIONS = 36, DOWN = 18;
constexpr int PLAYER = 32, ARROW_SIZE = 46, MACE_SIZE = 32, ZOMBIE_WIDTH = 29, ZOMBIE_HEIGHT = 31;
constexpr int ARROW_PAUSE = 4, MACE_PAUSE = 7, SWING = 6;  // steps
constexpr int ZOMBIE_LEFT = MARGIN - ZOMBIE_HEIGHT, ZOMBIE_RIGHT = SCREEN_WIDTH - MARGIN - ZOMBIE_WIDTH;
constexpr int ZOMBIE_TOP = 5, ZOMBIE_DOWN = 5, ZOMBIE_ASIDE = 30;
constexpr int REST = -1, GONE = -1;
constexpr bool MASKS = Config::observation_type != OBSERVATION_TYPE_VECTOR;
constexpr bool PACKED = Config::observation_type == OBSERVATION_TYPE_SEQUENCE;
constexpr Const<Config::max_arrows> ARROWS;
constexpr Const<Config::max_zombies> ZOMBIES;
constexpr Const<NUM_TRACKED> TRACKED;

struct Box {
  int x, y, width, height;
};

GZ bool overlap(Box a, Box b) {
  return (a.x < b.x + b.width) & (b.x < a.x + a.width) & (a.y < b.y + b.height) & (b.y < a.y + a.height);
}

GZ bool is_archer(int a) { return a < NUM_ARCHERS; }

GZ Box box_of_player(Env e, int a) {
  const int size = e.turned_size[e.direction[a]];
  return {e.x[a] - size / 2, e.y[a] - size / 2, size, size};
}

GZ bool swings(Env e, int a) { return !e.dead[a] & (e.pause[a] != REST) & (e.pause[a] < SWING); }

GZ Box box_of_mace(Env e, int a) {
  const int k = e.direction[a] * SWING + e.pause[a], half = MACE_SIZE / 2;
  return {e.x[a] - half + e.mace_x[k], e.y[a] - half + e.mace_y[k], MACE_SIZE, MACE_SIZE};
}

GZ Box box_of_arrow(Env e, int k) { return {e.arrow_x[k], e.arrow_y[k], ARROW_SIZE, ARROW_SIZE}; }

GZ Box box_of_zombie(Env e, int z) { return {e.zombie_x[z], e.zombie_y[z], ZOMBIE_WIDTH, ZOMBIE_HEIGHT}; }

GZ void reset(Env e) {
  lanes(e, AGENTS, [=](int a) {
    e.x[a] = is_archer(a) ? 400 + 50 * (a % 10) : 800 + 50 * ((a - NUM_ARCHERS) % 10);
    e.y[a] = 610;
    e.direction[a] = 0;
    e.pause[a] = REST;
    e.dead[a] = e.caught[a] = 0;
    e.score[a] = 0;
  });
  lanes(e, ARROWS, [=](int k) {
    e.archer[k] = GONE;
    e.arrow_x[k] = e.arrow_y[k] = e.arrow_direction[k] = 0;
  });
  lanes(e, ZOMBIES, [=](int z) { e.zombie_x[z] = e.zombie_y[z] = 0; });
  once(e, [=] { e.arrows = e.zombies = e.spawn_timer = 0; });
}

GZ void walk(Env e, int a, int way) {
  constexpr int TOP = PLAYER / 2, LEFT = MARGIN + PLAYER / 2;
  const int d = e.direction[a], x = e.x[a] + way * e.walk_x[d], y = e.y[a] + way * e.walk_y[d];
  e.x[a] = clamp(x, LEFT, SCREEN_WIDTH - LEFT);
  e.y[a] = clamp(y, TOP, SCREEN_HEIGHT - TOP);
  if (Config::line_death && e.y[a] != y) e.dead[a] = 1;
}

GZ void act(Env e, int a) {
  const int action = e.action[a];
  if (!is_archer(a) & (e.pause[a] != REST)) {
    e.pause[a] = e.pause[a] + 1 == MACE_PAUSE ? REST : e.pause[a] + 1;
    if (e.pause[a] != REST) return;
  }
  walk(e, a, (int)(action == FORWARD) - (int)(action == BACKWARD));
  const int turn = (int)(action == TURN_RIGHT) - (int)(action == TURN_LEFT);
  e.direction[a] = (e.direction[a] + turn + DIRECTIONS) % DIRECTIONS;
  if (!is_archer(a) & (action == ATTACK)) e.pause[a] = 0;
}

// Arrows stand in the order of their archers, and those of one archer by age.
GZ void shoot(Env e, int a) {
  int k = e.arrows;
  for (; k > 0 && e.archer[k - 1] > a; --k) {
    e.archer[k] = e.archer[k - 1];
    e.arrow_x[k] = e.arrow_x[k - 1];
    e.arrow_y[k] = e.arrow_y[k - 1];
    e.arrow_direction[k] = e.arrow_direction[k - 1];
  }
  e.archer[k] = a;
  e.arrow_x[k] = e.x[a] - ARROW_SIZE / 2;
  e.arrow_y[k] = e.y[a] - ARROW_SIZE / 2;
  e.arrow_direction[k] = e.direction[a];
  e.arrows += 1;
}

GZ void draw_bow(Env e, int a) {
  if (!e.alive[a] || e.action[a] != ATTACK || e.arrows == ARROWS) return;
  if (e.pause[a] != REST) e.pause[a] = e.pause[a] + 1 == ARROW_PAUSE ? REST : e.pause[a] + 1;
  if (e.pause[a] != REST || e.dead[a]) return;
  e.pause[a] = 0;
  shoot(e, a);
}

GZ void fly(Env e, int k) {
  const int d = e.arrow_direction[k];
  e.arrow_x[k] += e.fly_x[d];
  e.arrow_y[k] += e.fly_y[d];
  const bool here = (e.arrow_x[k] >= 0) & (e.arrow_y[k] >= 0) & (e.arrow_x[k] <= SCREEN_WIDTH) & (e.arrow_y[k] <= SCREEN_HEIGHT);
  if (!here) e.archer[k] = GONE;
}

// The first weapon that meets a zombie kills it.
GZ void strike(Env e, int z) {
  const Box zombie = box_of_zombie(e, z);
  e.struck[z] = 1;
  for (int k = 0; k < e.arrows; ++k)
    if (e.archer[k] != GONE && overlap(box_of_arrow(e, k), zombie)) {
      scatter_add(e.score[e.archer[k]], 1);
      scatter_max(e.spent[k], 1);
      return;
    }
  GZ_ROLLED
  for (int a = NUM_ARCHERS; a < AGENTS; ++a)
    if (swings(e, a) && overlap(box_of_mace(e, a), zombie)) {
      scatter_add(e.score[a], 1);
      return;
    }
  e.struck[z] = 0;
}

GZ void close_ranks(Env e) {
  int kept = 0;
  for (int k = 0; k < e.arrows; ++k) {
    if (e.archer[k] == GONE || e.spent[k]) continue;
    e.archer[kept] = e.archer[k];
    e.arrow_x[kept] = e.arrow_x[k];
    e.arrow_y[kept] = e.arrow_y[k];
    e.arrow_direction[kept] = e.arrow_direction[k];
    kept += 1;
  }
  for (int k = kept; k < e.arrows; ++k) e.archer[k] = GONE;
  e.arrows = kept;
  kept = 0;
  for (int z = 0; z < e.zombies; ++z) {
    if (e.struck[z]) continue;
    e.zombie_x[kept] = e.zombie_x[z];
    e.zombie_y[kept] = e.zombie_y[z];
    kept += 1;
  }
  e.zombies = kept;
}

GZ void meet_zombies(Env e, int a) {
  if (e.dead[a] | e.caught[a]) return;
  const Box player = box_of_player(e, a);
  bool met = false;
  for (int z = 0; z < e.zombies; ++z) met |= overlap(box_of_zombie(e, z), player);
  const bool killable = is_archer(a) ? Config::killable_archers : Config::killable_knights;
  if (met & killable) e.dead[a] = 1;
  if (met & !killable) e.caught[a] = Config::caught_are_lost;
}

GZ void stagger(Env e, int z) {
  e.zombie_y[z] += ZOMBIE_DOWN;
  if ((e.zombie_y[z] - ZOMBIE_TOP) / ZOMBIE_DOWN % 3 != 0) return;
  const int chance = random_int(e, AGENTS + z, WOBBLE, 10);  // 3 of 10 to the right, 4 of 10 to the left
  const bool right = (chance == 1) | (chance == 3) | (chance == 6);
  const bool left = (chance == 2) | (chance == 4) | (chance == 5) | (chance == 8);
  const int x = e.zombie_x[z] + ZOMBIE_ASIDE * ((int)right - (int)left);
  if ((x >= ZOMBIE_LEFT) & (x <= ZOMBIE_RIGHT)) e.zombie_x[z] = x;
}

GZ void spawn(Env e) {
  if (e.zombies == ZOMBIES) return;
  e.spawn_timer += 1;
  if (e.spawn_timer != Config::spawn_delay) return;
  e.spawn_timer = 0;
  e.zombie_x[e.zombies] = ZOMBIE_LEFT + random_int(e, SPAWN, ZOMBIE_RIGHT - ZOMBIE_LEFT);
  e.zombie_y[e.zombies] = ZOMBIE_TOP;
  e.zombies += 1;
}

// Points are paid when it is an agent's turn again: in the next step, but at once to the first who is left.
GZ void pay(Env e, int first, int last) {
  const int left = lane_min(e, AGENTS, [=](int a) { return e.alive[a] && !e.dead[a] ? a : AGENTS; });
  const int next = left < AGENTS ? left : last;
  lanes(e, AGENTS, [=](int a) {
    if (!e.alive[a]) return;
    const int before = a == first ? 0 : e.score_before[a], now = a == next ? e.score[a] : 0;
    e.reward[a] = (float)(Config::delayed_rewards ? before + now : e.score[a]);
  });
}

GZ void step(Env e) {
  const int first = lane_min(e, AGENTS, [=](int a) { return e.alive[a] ? a : AGENTS; });
  const int last = lane_max(e, AGENTS, [=](int a) { return e.alive[a] ? a : -1; });
  lanes(e, AGENTS, [=](int a) {
    e.score_before[a] = e.score[a];
    e.score[a] = 0;
    if (e.alive[a]) act(e, a);
  });
  once(e, [=] {
    GZ_ROLLED
    for (int a = 0; a < NUM_ARCHERS; ++a) draw_bow(e, a);
  });
  lanes(e, ARROWS, [=](int k) {
    e.spent[k] = 0;
    if (k < e.arrows) fly(e, k);
  });
  lanes(e, ZOMBIES, [=](int z) {
    if (z < e.zombies) strike(e, z);
  });
  once(e, [=] { close_ranks(e); });
  lanes(e, AGENTS, [=](int a) { meet_zombies(e, a); });
  lanes(e, ZOMBIES, [=](int z) {
    if (z < e.zombies) stagger(e, z);
  });
  once(e, [=] { spawn(e); });
  pay(e, first, last);
  const bool escaped = lane_any(e, ZOMBIES, [=](int z) { return (z < e.zombies) && e.zombie_y[z] > SCREEN_HEIGHT - ZOMBIE_HEIGHT; });
  const bool defended = lane_any(e, AGENTS, [=](int a) { return !(e.dead[a] | e.caught[a]); });
  lanes(e, AGENTS, [=](int a) {
    if (e.alive[a] && e.dead[a]) e.terminate(a);
  });
  once(e, [=] {
    if (escaped | !defended) e.terminate_all();
  });
}

GZ void list(Env e, int k, int kind, Box box, int direction) {
  e.kind[k] = kind;
  e.corner_x[k] = box.x;
  e.corner_y[k] = box.y;
  e.heading[k] = direction;
}

// Maces stand in the first rows of theirs.
GZ void list_mace(Env e, int k) {
  int left = k - AGENTS;
  GZ_ROLLED
  for (int a = NUM_ARCHERS; a < AGENTS; ++a) {
    if (!swings(e, a)) continue;
    if (left == 0) return list(e, k, MACE, box_of_mace(e, a), e.direction[a]);
    left -= 1;
  }
}

GZ void list_thing(Env e, int k) {
  const int arrow = k - AGENTS - NUM_KNIGHTS, zombie = arrow - ARROWS;
  list(e, k, NOBODY, {0, 0, 0, 0}, 0);
  if (k < AGENTS) {
    if (!e.dead[k]) list(e, k, is_archer(k) ? ARCHER : KNIGHT, box_of_player(e, k), e.direction[k]);
  } else if (arrow < 0) {
    list_mace(e, k);
  } else if (zombie < 0) {
    if (arrow < e.arrows) list(e, k, ARROW, box_of_arrow(e, arrow), e.arrow_direction[arrow]);
  } else if (zombie < e.zombies) {
    list(e, k, ZOMBIE, box_of_zombie(e, zombie), DOWN);
  }
}

GZ void list_all(Env e) {
  lanes(e, TRACKED, [=](int k) { list_thing(e, k); });
}

GZ float part_x(int x) { return (float)x / (float)SCREEN_WIDTH; }
GZ float part_y(int y) { return (float)y / (float)SCREEN_HEIGHT; }

template <class Out> GZ void describe(Env e, Out out, int kind, int x, int y, int direction) {
  out[0] = kind == NOBODY ? 0.f : part_x(x);
  out[1] = kind == NOBODY ? 0.f : part_y(y);
  out[2] = kind == NOBODY ? 0.f : e.heading_x[direction];
  out[3] = kind == NOBODY ? 0.f : e.heading_y[direction];
}

// Of the diagonal of the screen.
GZ float distance_of(int dx, int dy) {
  constexpr int X = 9, Y = 16, BOTH = 11520;  // X / BOTH = 1 / SCREEN_WIDTH, Y / BOTH = 1 / SCREEN_HEIGHT
  return sqrt(0.5f * (float)(X * X * dx * dx + Y * Y * dy * dy)) / (float)BOTH;
}

GZ void observe_thing(Env e, int a, int row, int k) {
  const Box own = box_of_player(e, a);
  Row out = e.observation[a] + row * ROW_SIZE;
  const int kind = row == 0 ? (int)SELF : k < TRACKED ? (int)e.kind[k] : (int)NOBODY;
  if constexpr (MASKS) {
    for (int m = 0; m < KINDS; ++m) out[m] = kind == m ? 1.f : 0.f;
    out += KINDS;
  }
  if (row == 0) {
    out[0] = 0.f;
    describe(e, out + 1, SELF, own.x, own.y, e.direction[a]);
  } else {
    const bool there = kind != NOBODY;
    const int dx = there ? e.corner_x[k] - own.x : 0, dy = there ? e.corner_y[k] - own.y : 0;
    out[0] = distance_of(dx, dy);
    describe(e, out + 1, kind, dx, dy, there ? (int)e.heading[k] : 0);
  }
}

GZ void observe(Env e) {
  list_all(e);
  if constexpr (PACKED) {
    once(e, [=] {
      int row = 0;
      for (int k = 0; k < TRACKED; ++k)
        if (e.kind[k] != NOBODY) e.listed[row++] = k;
      for (; row < TRACKED; ++row) e.listed[row] = TRACKED;
    });
    lanes(e, AGENTS, Const<NUM_TRACKED + 1>(), [=](int a, int row) { observe_thing(e, a, row, row == 0 ? 0 : (int)e.listed[row - 1]); });
  } else {
    lanes(e, AGENTS, Const<NUM_TRACKED + 1>(), [=](int a, int row) { observe_thing(e, a, row, max(row - 1, 0)); });
  }
}

GZ void state(Env e) {
  list_all(e);
  lanes(e, TRACKED, [=](int k) {
    const int first = k * (ROW_SIZE - 1);
    if constexpr (MASKS)
      for (int m = 0; m < KINDS; ++m) e.state[first + m] = e.kind[k] == m ? 1.f : 0.f;
    const int at = first + (MASKS ? (int)KINDS : 0), kind = e.kind[k];
    e.state[at] = part_x(e.corner_x[k]);
    e.state[at + 1] = part_y(e.corner_y[k]);
    e.state[at + 2] = kind == NOBODY ? 0.f : e.heading_x[e.heading[k]];
    e.state[at + 3] = kind == NOBODY ? 0.f : e.heading_y[e.heading[k]];
  });
}
