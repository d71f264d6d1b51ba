// What Harvest and Cleanup share (Leibo et al., "Multi-agent Reinforcement Learning in Sequential Social Dilemmas", 2017;
// Hughes et al., "Inequity aversion improves cooperation in intertemporal social dilemmas", 2018), with the rules of
// Vinitsky et al.'s sequential_social_dilemma_games. The map has a margin, so that nobody looks off it.

// A game's own file defines what grows.
GZ void grow(Env e);

enum Content { EMPTY, BORDER, APPLE, WASTE, RIVER, STREAM, OUTSIDE };
enum Move { GO_LEFT, GO_RIGHT, GO_AHEAD, GO_BACK, STAY, TURN_RIGHT, TURN_LEFT, FIRE, CLEAN };
enum Facing { UP, RIGHT, DOWN, LEFT };
enum Beam { FINES = 1, CLEANS = 2 };
enum Draw { MOVE_ORDER, BEAM_ORDER, PLACE, LOOK, GROW, SPOIL, WHERE };
constexpr int NONE = -1;
constexpr int WITHOUT_AGENTS = 32, CODES = 5 * WITHOUT_AGENTS;  // of what is shown of a cell

GZ int ahead(int facing) { return facing == UP ? -STRIDE : facing == RIGHT ? 1 : facing == DOWN ? STRIDE : -1; }

GZ bool is_open(Env e, int cell) { return (e.cells[cell] != BORDER) & (e.cells[cell] != OUTSIDE); }

GZ void clear_maps(Env e) {
  lanes(e, CELLS, [=](int c) {
    e.top[c] = NONE;
    e.beams[c] = 0;
  });
}

GZ void reset(Env e) {
  lanes(e, CELLS, [=](int c) { e.cells[c] = e.plan[c]; });
  lanes(e, STARTS, [=](int k) { e.taken[k] = 0; });
  clear_maps(e);
  once(e, [=] {
    for (int a = 0; a < AGENTS; ++a) {
      int left = random_int(e, a, PLACE, STARTS - a), k = 0;
      for (; e.taken[k] || left > 0; ++k) left -= e.taken[k] ? 0 : 1;
      e.taken[k] = 1;
      e.place[a] = e.start[k];
      e.facing[a] = random_int(e, a, LOOK, 4);
      e.smooth[a] = 0.f;
    }
    for (int a = 0; a < AGENTS; ++a) e.top[e.place[a]] = (i8)a;
  });
  grow(e);
}

// ---- moves ----

GZ int wish_of(Env e, int a) {
  const int action = e.action[a], facing = e.facing[a];
  if (action > STAY) return NONE;
  if (action == STAY) return e.place[a];
  const int turn = action == GO_AHEAD ? 0 : action == GO_RIGHT ? 1 : action == GO_BACK ? 2 : 3;
  const int to = e.place[a] + ahead((facing + turn) % 4);
  return is_open(e, to) ? to : (int)e.place[a];
}

GZ void put(Env e, int a, int cell) {
  e.here[e.place[a]] -= 1;
  e.place[a] = cell;
  e.here[cell] += 1;
}

// Who is seen on a cell: the last one, if there are several.
GZ void see(Env e) {
  for (int a = 0; a < AGENTS; ++a) e.top[e.seat[a]] = NONE;
  for (int a = 0; a < AGENTS; ++a) {
    e.top[e.place[a]] = (i8)a;
    e.seat[a] = e.place[a];
  }
}

// Whether agent b, on the cell that a wants, will not leave it, or comes from there.
GZ bool stands_in_the_way(Env e, int a, int b) {
  const int to = e.target[b];
  return (a == b) | (to == NONE) | (to == e.place[b]) | (to == e.place[a]);
}

// Of those who want the same cell one goes there at once, unless somebody stands in the way of one of them.
GZ void contend(Env e, int cell) {
  int winner = NONE;
  u32 first = 0;
  bool free = true;
  for (int a = 0; a < AGENTS; ++a) {
    if (e.wish[a] != cell) continue;
    const u32 key = random_bits(e, a, MOVE_ORDER);
    if (winner == NONE || key < first) {
      winner = a;
      first = key;
    }
    if (e.here[cell] > 0 && stands_in_the_way(e, a, e.top[cell])) free = false;
  }
  if (free) {
    put(e, winner, cell);
    see(e);
  }
  for (int a = 0; a < AGENTS; ++a)
    if (e.wish[a] == cell) e.target[a] = e.place[a];
}

GZ void contend_for_all(Env e) {
  int last = NONE;
  for (int k = 0; k < AGENTS / 2; ++k) {
    int cell = CELLS;
    for (int a = 0; a < AGENTS; ++a) {
      const int wish = e.wish[a];
      if (wish > last && wish < cell && e.wanted[wish] > 1) cell = wish;
    }
    if (cell == CELLS) return;
    contend(e, cell);
    last = cell;
  }
}

// Goes once through all who still want to move. Returns how many do after that.
GZ int move_in_turn(Env e, int left) {
  see(e);
  for (int a = 0; a < AGENTS; ++a) e.wants[a] = e.target[a] != NONE;
  for (int a = 0; a < AGENTS; ++a) {
    const int to = e.target[a];
    if (to == NONE) continue;
    if (e.here[to] == 0) {
      put(e, a, to);
    } else {
      const int b = e.top[to], other = e.target[b];
      const bool swap = (b != a) & (other == e.place[a]);
      const bool stuck = (b == a) | !e.wants[b] | (other == NONE) | (other == e.place[b]);
      if (!stuck & !swap) continue;
      if (swap & !stuck) {
        e.target[b] = NONE;
        left -= 1;
      }
    }
    e.target[a] = NONE;
    left -= 1;
  }
  return left;
}

GZ void move_all(Env e) {
  int left = 0;
  for (int a = 0; a < AGENTS; ++a) {
    e.here[e.place[a]] = 0;
    if (e.wish[a] != NONE) e.here[e.wish[a]] = e.wanted[e.wish[a]] = 0;
  }
  for (int a = 0; a < AGENTS; ++a) {
    e.seat[a] = e.place[a];
    e.here[e.place[a]] += 1;
    e.target[a] = e.wish[a];
    if (e.wish[a] == NONE) continue;
    e.wanted[e.wish[a]] += 1;
    left += 1;
  }
  see(e);
  contend_for_all(e);
  for (int k = 0; k < AGENTS && left > 0; ++k) {
    const int still = move_in_turn(e, left);
    if (still == left) break;
    left = still;
  }
  for (int a = 0; a < AGENTS && left > 0; ++a)
    if (e.target[a] != NONE) put(e, a, e.target[a]);
  see(e);
}

// ---- beams ----

GZ void shine(Env e, int cell, int direction, int beam) {
  for (int k = 0; k < Config::beam_length; ++k, cell += direction) {
    if (!is_open(e, cell)) return;
    e.beams[cell] = e.beams[cell] | beam;
    const bool waste = (beam == CLEANS) & (e.cells[cell] == WASTE);
    if (waste) e.cells[cell] = RIVER;
    if (e.top[cell] != NONE) {
      if (beam == FINES) e.hits[e.top[cell]] += 1;
      return;
    }
    if (waste) return;
  }
}

GZ bool has_beam(Env e, int a) { return e.action[a] == FIRE || e.action[a] == CLEAN; }

GZ void use_beam(Env e, int a) {
  const int direction = ahead(e.facing[a]), right = ahead((e.facing[a] + 1) % 4);
  const int beam = e.action[a] == FIRE ? FINES : CLEANS;
  shine(e, e.place[a] + direction, direction, beam);
  shine(e, e.place[a] + right, direction, beam);
  shine(e, e.place[a] - right, direction, beam);
}

// ---- rewards ----

GZ void average(Env e) {
  const auto &c = e.cfg;
  const float others = (float)max(AGENTS - 1, 1), all = lane_sum(e, AGENTS, [=](int a) { return e.earned[a]; });
  lanes(e, AGENTS, [=](int a) {
    if (c.use_collective_reward) e.earned[a] = all;
    e.smooth[a] = c.inequity_decay * e.smooth[a] + e.earned[a];
  });
  lanes(e, AGENTS, [=](int a) {
    float reward = e.earned[a];
    if (c.inequity_averse_reward != INEQUITY_AVERSE_REWARD_NO) {
      const bool original = c.inequity_averse_reward == INEQUITY_AVERSE_REWARD_ORIGINAL;
      float less = 0.f, more = 0.f;
      for (int b = 0; b < AGENTS; ++b) {
        const float gap = original ? e.earned[b] - e.earned[a] : e.smooth[b] - e.smooth[a];
        less += max(gap, 0.f);
        more += max(-gap, 0.f);
      }
      reward -= (c.alpha * less + (original ? -c.beta : c.beta) * more) / others;
    }
    e.reward[a] = reward;
  });
}

GZ void step(Env e) {
  clear_maps(e);
  lanes(e, AGENTS, [=](int a) {
    const int action = e.action[a];
    e.wish[a] = wish_of(e, a);
    e.facing[a] = (e.facing[a] + (action == TURN_RIGHT ? 1 : action == TURN_LEFT ? 3 : 0)) % 4;
    e.hits[a] = 0;
    e.earned[a] = action == FIRE ? -e.cfg.fire_cost : 0.f;
  });
  once(e, [=] {
    move_all(e);
    for (int a = 0; a < AGENTS; ++a) {
      if (e.cells[e.place[a]] != APPLE) continue;
      e.cells[e.place[a]] = EMPTY;
      e.earned[a] += 1.f;
    }
  });
  if constexpr (CAN_CLEAN) {
    in_random_order(e, AGENTS, BEAM_ORDER, [=](int a) { return has_beam(e, a); }, [=](int a) { use_beam(e, a); });
  } else {
    once(e, [=] {
      GZ_ROLLED
      for (int a = 0; a < AGENTS; ++a)
        if (has_beam(e, a)) use_beam(e, a);
    });
  }
  lanes(e, AGENTS, [=](int a) { e.earned[a] -= e.cfg.fine * (float)e.hits[a]; });
  grow(e);
  average(e);
}

// ---- what agents see ----

// The agent's view turns with it: where its rows go up to, as a direction on the map.
GZ int upwards(Env e, int a) { return Config::upright_views ? (int)e.facing[a] : (4 - e.facing[a]) % 4; }

GZ void show_row(Env e, int a, int i) {
  const int up = upwards(e, a), right = ahead((up + 1) % 4), looks = e.facing[a] * CODES;
  auto out = words(e.observation[a]) + i * SIDE * WORDS;
  const int first = e.place[a] - ahead(up) * (i - VIEW) - right * VIEW;
  GZ_ROLLED
  for (int j = 0; j < SIDE; ++j) copy<WORDS>(out + j * WORDS, e.look + (looks + e.shown[first + j * right]) * WORDS);
  if (i == VIEW && e.top[e.place[a]] == a) out[VIEW * WORDS + AGENT_WORD] = 0u;
}

// The last one of those on a cell is seen; the agent itself is not.
GZ void observe(Env e) {
  lanes(e, CELLS, [=](int c) { e.shown[c] = (u8)(e.cells[c] | e.beams[c] << 3); });
  once(e, [=] {
    for (int a = 0; a < AGENTS; ++a) {
      const int c = e.place[a];
      e.shown[c] = (u8)(e.shown[c] % WITHOUT_AGENTS + (e.facing[a] + 1) * WITHOUT_AGENTS);
      e.top[c] = (i8)a;
    }
  });
  lanes(e, AGENTS, Const<SIDE>(), [=](int a, int i) { show_row(e, a, i); });
}
