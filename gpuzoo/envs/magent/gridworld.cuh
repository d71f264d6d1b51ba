// MAgent's grid world (Zheng, Yang, Cai, Zhou, Zhang, Wang and Yu, "MAgent: A Many-Agent Reinforcement Learning Platform
// for Artificial Collective Intelligence", AAAI 2018), with the rules of MAgent2. The map has a margin, so that nobody
// looks or walks off it. Bodies are the agents and then what else has health.

// A game's own file defines what its groups gain in a step, and what it pays for.
GZ float recovery(Env e, int group);
GZ float step_reward(Env e, int group);
GZ float dead_penalty(Env e, int group);
GZ float attack_penalty(Env e, int group);
GZ float with_events(Env e, int a, float reward);
GZ void observe_map(Env e);

enum Cell { BLANK = -1, WALL = -2, OUTSIDE = -3 };
enum Life { GONE, FELL, LIVES };
enum Deed { NOTHING, MISSED, HIT, KILLED };
enum Draw { ATTACK_ORDER };

constexpr int FIRST_GROUP_CHANNEL = 1, GROUP_CHANNELS = Config::minimap_mode ? 3 : 2;
constexpr int MAP = Config::map_size, WINDOW = MOST_ROWS * MOST_ROWS;
constexpr Const<MOST_ROWS> ROWS;

GZ int x_of(int cell) { return cell % STRIDE - MARGIN; }
GZ int y_of(int cell) { return cell / STRIDE - MARGIN; }
GZ int cell_at(int x, int y) { return (y + MARGIN) * STRIDE + x + MARGIN; }

GZ int side_of(Env e, int g) { return LARGEST_SIDE == 1 ? 1 : e.side[g]; }

GZ void fill(Env e, int b, int value) {
  const int side = side_of(e, e.group[b]), corner = e.cell[b];
  for (int row = 0; row < side; ++row)
    for (int col = 0; col < side; ++col) e.map[corner + row * STRIDE + col] = (i16)value;
}

GZ bool is_free(Env e, int side, int corner, int self) {
  bool free = true;
  for (int row = 0; row < side; ++row)
    for (int col = 0; col < side; ++col) {
      const int found = e.map[corner + row * STRIDE + col];
      free &= (found == BLANK) | (found == self);
    }
  return free;
}

// A place that is drawn among the free ones; after many draws, the next free one.
GZ int free_place(Env e, int k, int side) {
  constexpr int ATTEMPTS = 1000, INSIDE = MAP - 2;
  const int width = INSIDE - side + 1;
  int place = 0, attempt = 0;
  for (bool found = false; !found && attempt < ATTEMPTS + width * width; ++attempt) {
    place = attempt < ATTEMPTS ? random_int(e, k, attempt, width * width) : (place + 1) % (width * width);
    found = is_free(e, side, cell_at(1 + place % width, 1 + place / width), BLANK);
  }
  return cell_at(1 + place % width, 1 + place / width);
}

GZ void scatter_bodies(Env e) {
  for (int w = 0; w < WALLS; ++w) {
    e.cell[BODIES + w] = free_place(e, BODIES + w, 1);
    e.map[e.cell[BODIES + w]] = WALL;
  }
  for (int b = 0; b < BODIES; ++b) {
    e.cell[b] = free_place(e, b, side_of(e, e.group[b]));
    fill(e, b, b);
  }
}

GZ void reset(Env e) {
  lanes(e, CELLS, [=](int c) { e.map[c] = e.plan[c]; });
  lanes(e, BODIES, [=](int b) {
    e.life[b] = LIVES;
    e.hp[b] = e.full_hp[e.group[b]];
    e.hits[b] = 0;
    if (!RANDOM_START) {
      e.cell[b] = e.start[b];
      fill(e, b, b);
    }
  });
  lanes(e, AGENTS, [=](int a) {
    e.deed[a] = NOTHING;
    e.victim[a] = -1;
    e.last_action[a] = -1;
    e.earned[a] = e.earned_before[a] = 0.f;
  });
  once(e, [=] {
    if (RANDOM_START) scatter_bodies(e);
    for (int g = 0; g < GROUPS; ++g) e.standing[g] = e.group_size[g];
  });
}

GZ void fall(Env e, int b) {
  e.life[b] = FELL;
  fill(e, b, BLANK);
}

GZ bool attacks(Env e, int a) { return e.action[a] >= e.moves[e.group[a]]; }

GZ void attack(Env e, int a) {
  const int g = e.group[a], way = e.action[a] - e.moves[g];
  if (e.life[a] != LIVES) return;
  const int b = e.map[e.cell[a] + e.reach[g * MOST_ATTACKS + way]];
  const bool misses = b < 0 || (!ATTACKS_OWN_GROUP && e.group[b] == g);
  e.deed[a] = MISSED;
  if (misses) return;
  e.victim[a] = b;
  e.hp[b] -= e.damage[g];
  if (e.hp[b] < 0.f) {
    e.deed[a] = KILLED;
    e.gain[a] = e.kill_reward[e.group[b]];
    e.hp[a] = min(e.full_hp[g], e.hp[a] + e.supply[e.group[b]]);
    e.standing[e.group[b]] -= 1;
    fall(e, b);
  } else {
    e.deed[a] = HIT;
    e.hits[b] += 1;
  }
}

GZ void recover(Env e, int a) {
  const int g = e.group[a];
  const float gain = recovery(e, g), hp = e.hp[a] + gain;
  if (e.life[a] != LIVES) return;
  e.hp[a] = gain > 0.f ? min(e.full_hp[g], hp) : hp;
  if (e.hp[a] < 0.f) {
    scatter_add(e.standing[g], -1);
    fall(e, a);
  }
}

// An attack has no stride.
GZ void move(Env e, int a) {
  const int g = e.group[a], stride = e.stride[g * MOST_ACTIONS + e.action[a]];
  if (e.life[a] != LIVES) return;
  const bool goes = is_free(e, side_of(e, g), e.cell[a] + stride, a);
  fill(e, a, BLANK);
  e.cell[a] += goes * stride;
  fill(e, a, a);
}

// On a large map MAgent moves first those who stand inside of its eight bands.
GZ bool near_border_of_band(Env e, int a) {
  constexpr int WIDTH = (MAP + 7) / 8;
  const int x = x_of(e.cell[a]) % WIDTH;
  return x < 4 || x > WIDTH - 4;
}

GZ void move_all(Env e) {
  if constexpr (MAP * MAP > 99 * 99) {
    for (int a = 0; a < AGENTS; ++a) {
      e.late[a] = near_border_of_band(e, a);
      if (!e.late[a]) move(e, a);
    }
    for (int a = 0; a < AGENTS; ++a)
      if (e.late[a]) move(e, a);
  } else {
    for (int a = 0; a < AGENTS; ++a) move(e, a);
  }
}

GZ float reward_of(Env e, int a) {
  const int g = e.group[a];
  const float peaceful = step_reward(e, g), fighting = peaceful + (e.gain[a] + attack_penalty(e, g));
  const float living = e.deed[a] == NOTHING ? peaceful : fighting;
  return with_events(e, a, e.life[a] == FELL ? dead_penalty(e, g) : living);
}

GZ void step(Env e) {
  lanes(e, BODIES, [=](int b) {
    e.life[b] = e.life[b] == LIVES ? LIVES : GONE;
    e.hits[b] = 0;
  });
  lanes(e, AGENTS, [=](int a) {
    e.deed[a] = NOTHING;
    e.victim[a] = -1;
    e.gain[a] = 0.f;
    e.last_action[a] = e.action[a];
    e.earned_before[a] = e.earned[a];
  });
  in_random_order(e, AGENTS, ATTACK_ORDER, [=](int a) { return attacks(e, a); }, [=](int a) { attack(e, a); });
  lanes(e, AGENTS, [=](int a) { recover(e, a); });
  once(e, [=] { move_all(e); });
  lanes(e, AGENTS, [=](int a) {
    e.earned[a] = e.life[a] == GONE ? 0.f : reward_of(e, a);
    e.reward[a] = e.earned[a];
  });
  lanes(e, AGENTS, [=](int a) {
    if (e.life[a] == FELL) e.terminate(a);
  });
  once(e, [=] {
    bool over = false;
    GZ_ROLLED
    for (int g = 0; g < GROUPS; ++g) over |= e.standing[g] == 0;
    if (over) e.terminate_all();
  });
}

// Where a viewer of group `own` sees those of group g.
GZ int channel_of(int own, int g) { return FIRST_GROUP_CHANNEL + GROUP_CHANNELS * ((g - own + GROUPS) % GROUPS); }

// What stands in a cell, as viewers tell it apart; 0 is nothing.
enum Kind { WALL_KIND = 1, FIRST_GROUP_KIND = 2 };

GZ void paint_body(Env e, int b) {
  const int g = e.group[b], side = side_of(e, g);
  if (e.life[b] != LIVES) return;
  for (int row = 0; row < side; ++row)
    for (int col = 0; col < side; ++col) {
      const int cell = e.cell[b] + row * STRIDE + col;
      e.kind[cell] = (u8)(FIRST_GROUP_KIND + g);
      e.health[cell] = e.hp[b] / e.full_hp[g];
    }
}

GZ void paint(Env e) {
  lanes(e, CELLS, [=](int c) {
    e.kind[c] = e.map[c] == WALL ? WALL_KIND : 0;
    if constexpr (Config::minimap_mode || Config::extra_features) e.health[c] = 0.f;
  });
  lanes(e, BODIES, [=](int b) { paint_body(e, b); });
}

// Part of the map that a body is in.
GZ int part_of(Env e, int b, int viewer) {
  const int rows = e.rows[viewer], scale = (MAP + rows - 1) / rows;
  return y_of(e.cell[b]) / scale * rows + x_of(e.cell[b]) / scale;
}

GZ void count_bodies(Env e) {
  lanes(e, VIEWERS * MINIMAP_SIZE, [=](int k) { e.count[k] = 0; });
  lanes(e, GROUPS, [=](int g) { e.present[g] = 0; });
  lanes(e, BODIES, [=](int b) {
    const int g = e.group[b];
    if (e.life[b] == GONE) return;
    scatter_add(e.present[g], 1);
    for (int v = 0; v < VIEWERS; ++v)
      scatter_add(e.count[v * MINIMAP_SIZE + part_of(e, b, FIRST_VIEWER + v) * GROUPS + g], 1);
  });
}

// The minimap of each group as its agents' observations have it, and one of zeros, for those who are gone.
GZ void draw_minimaps(Env e) {
  lanes(e, (VIEWERS + 1) * PARTS * CHANNELS, [=](int k) { e.share[k] = 0.f; });
  lanes(e, VIEWERS, PARTS, [=](int v, int part) {
    const int first = (v * PARTS + part) * CHANNELS;
    for (int g = 0; g < GROUPS; ++g)
      e.share[first + channel_of(FIRST_VIEWER + v, g) + 2] =
          (float)e.count[v * MINIMAP_SIZE + part * GROUPS + g] / (float)e.present[g];
  });
}

GZ float feature(Env e, int a, int k) {
  const int actions = e.actions[e.group[a]];
  if (Config::extra_features) {
    if (k < EMBEDDING) return (float)(a >> k & 1);
    if (k < EMBEDDING + actions) return e.last_action[a] == k - EMBEDDING ? 1.f : 0.f;
    if (k == EMBEDDING + actions) return e.earned_before[a];
    k -= EMBEDDING + actions + 1;
  }
  return (float)(k == 0 ? x_of(e.cell[a]) : y_of(e.cell[a])) / (float)MAP;
}

// Rows of a group's view: a constant where all are the same.
GZ int rows_of(Env e, int g) { return SAME_ROWS ? MOST_ROWS : e.rows[g]; }

// Where an agent's window begins, and which mask it looks through. Those who are gone see nothing through the last one.
GZ void aim(Env e, int a) {
  const int g = e.group[a];
  e.corner[a] = e.cell[a] + e.view_corner[g];
  e.mask[a] = e.life[a] == GONE ? (int)GROUPS : g;
}

GZ void aim_with_features(Env e, int a) {
  const int g = e.group[a];
  aim(e, a);
  if constexpr (Config::minimap_mode) {
    e.part[a] = part_of(e, a, g);
    e.minimap[a] = (e.life[a] == GONE ? (int)VIEWERS : g - FIRST_VIEWER) * PARTS * CHANNELS;
  }
  for (int k = 0; k < MOST_FEATURES; ++k) e.told(a, k) = k < e.features[g] && e.life[a] != GONE ? feature(e, a, k) : 0.f;
}

GZ auto view_of(const Env &e, int a) {
  return MapView{e.kind, e.health, STRIDE, e.corner[a], e.shows + e.group[a] * CHANNELS, e.visible + e.mask[a] * WINDOW};
}

// The views of n agents from `first` on.
template <int N, int SIDE> GZ void observe_group(Env e, int first, Const<N> n, Const<SIDE>) {
  lanes_of_views(
      e, n, ViewShape<SIDE, CHANNELS, HEALTH_CHANNELS>(), [=](int a) { return e.observation[first + a]; },
      [=](int a) { return view_of(e, first + a); });
}

GZ void observe_row(Env e, int a, int row) {
  const int g = e.group[a], rows = rows_of(e, g), features = e.features[g];
  const int first = e.corner[a] + row * STRIDE, mask = e.mask[a] * WINDOW + row * rows;
  const int minimap = Config::minimap_mode ? e.minimap[a] + row * rows * CHANNELS : 0;
  Row out = e.observation[a] + row * rows * (CHANNELS + features);
  for (int col = 0; col < rows; ++col) {
    const int kind = e.visible[mask + col] * e.kind[first + col], shown = (g * KINDS + kind) * CHANNELS;
    const Row cell = out + col * (CHANNELS + features);
    float seen[CHANNELS];
    for (int c = 0; c < CHANNELS; ++c) seen[c] = e.shown_once[shown + c] + e.shown_health[shown + c] * e.health[first + col];
    if constexpr (Config::minimap_mode)
      for (int c = 0; c < CHANNELS; ++c) seen[c] += e.share[minimap + col * CHANNELS + c];
    for (int c = 0; c < CHANNELS; ++c) cell[c] = seen[c];
    for (int k = 0; k < features; ++k) cell[CHANNELS + k] = e.told(a, k);
  }
  if constexpr (Config::minimap_mode) {
    const int col = e.part[a] - row * rows;
    if ((col < 0) | (col >= rows) | (e.life[a] == GONE)) return;
    for (int h = 0; h < GROUPS; ++h) out[col * (CHANNELS + features) + channel_of(g, h) + 2] += 1.f;
  }
}

GZ void observe_with_features(Env e) {
  if constexpr (Config::minimap_mode) {
    count_bodies(e);
    draw_minimaps(e);
  }
  lanes(e, AGENTS, [=](int a) { aim_with_features(e, a); });
  lanes(e, AGENTS, ROWS, [=](int a, int row) {
    if (SAME_ROWS || row < e.rows[e.group[a]]) observe_row(e, a, row);
  });
}

GZ void observe(Env e) {
  paint(e);
  if (Config::minimap_mode)  // one option for each condition: so the engine sees which rows a GPU writes in windows
    observe_with_features(e);
  else if (Config::extra_features)
    observe_with_features(e);
  else {
    lanes(e, AGENTS, [=](int a) { aim(e, a); });
    observe_map(e);
  }
}

GZ float state_feature(Env e, int a, int k) {
  const int actions = e.actions[e.group[a]];
  if (k < EMBEDDING) return (float)(a >> k & 1);
  if (k < EMBEDDING + actions) return e.last_action[a] == k - EMBEDDING ? 1.f : 0.f;
  return k == STATE_DEPTH - FIRST_STATE_FEATURE - 1 ? e.earned[a] : 0.f;
}

// The map is seen column by column: (x, y).
GZ void state(Env e) {
  lanes(e, MAP, MAP, [=](int x, int y) {
    const int first = (x * MAP + y) * STATE_DEPTH, c = cell_at(x, y), b = e.map[c];
    for (int k = 0; k < STATE_DEPTH; ++k) e.state[first + k] = 0.f;
    if (b == WALL) e.state[first] = 1.f;
    if (b < 0 || e.cell[b] != c) return;
    const int g = e.group[b];
    e.state[first + 1 + 2 * g] = 1.f;
    e.state[first + 2 + 2 * g] = e.hp[b] / e.full_hp[g];
    if (!Config::extra_features) return;
    for (int k = FIRST_STATE_FEATURE; k < STATE_DEPTH; ++k)
      e.state[first + k] = b < AGENTS ? state_feature(e, b, k - FIRST_STATE_FEATURE) : 0.f;
  });
}
