// SMAX (Rutherford et al., "JaxMARL: Multi-Agent RL Environments and Algorithms in JAX", 2023). Units are the allies and
// then the enemies. An attack has a number: 0 none, or MOVES + k for the k-th opponent as the unit counts them.

// A game's own file defines how actions are read, and writes action masks where it has them.
GZ void act(Env e, int a);
GZ void write_masks(Env e);

constexpr int OTHERS = UNITS - 1, TYPES = 6, MOVES = 5;
constexpr int UNIT_FEATURES = 7 + TYPES, OWN_FEATURES = 4 + TYPES;
constexpr int SECTIONS = 32, SEEN_IN_SECTION = 2;
constexpr bool HEURISTIC = Config::enemy_policy == ENEMY_POLICY_HEURISTIC;
enum Winner { NOBODY, ALLIES_WON, ENEMIES_WON };
enum Draw { CHASED, ATTACKED, MOVES_OR_SHOOTS, SHOOTS_AGAIN, COOLDOWN };  // COOLDOWN + the number of the world step
enum StartDraw { PLACE_X, PLACE_Y, TYPE, CORNER };
enum WholeDraw { SURROUNDED, ALLIES_INSIDE, DISTANCE };  // DISTANCE + the number of the corner

GZ bool is_ally(int u) { return u < ALLIES; }
GZ bool lives(Env e, int u) { return e.health[u] > 0.f; }
GZ Point place(Env e, int u) { return {e.x[u], e.y[u]}; }

// Opponents and others are counted from the unit's own side: enemies count backwards.
GZ int opponents(int u) { return is_ally(u) ? ENEMIES : ALLIES; }
GZ int opponent(int u, int k) { return is_ally(u) ? ALLIES + k : ALLIES - 1 - k; }
GZ int other(int u, int k) {
  const int j = is_ally(u) ? k : OTHERS - k;
  return is_ally(u) ? j + (j >= u) : j - (j <= u);
}

// ---- start ----

GZ Point around(Env e, int u, float x, float y) {
  return {x + uniform(e, u, PLACE_X, -2.f, 2.f), y + uniform(e, u, PLACE_Y, -2.f, 2.f)};
}

GZ Point beside_corner(Env e, int u) {
  const int corner = random_int(e, u, CORNER, 4);
  const float t = uniform(e, DISTANCE + corner, 0.f, 1.f), width = e.cfg.map_width, height = e.cfg.map_height;
  const float x = corner & 2 ? width : 0.f, y = corner & 1 ? height : 0.f;
  return around(e, u, t * (width / 2.f) + (1.f - t) * x, t * (height / 2.f) + (1.f - t) * y);
}

GZ Point random_place(Env e, int u) {
  const float width = e.cfg.map_width, height = e.cfg.map_height;
  if (random_int(e, SURROUNDED, 2) == 1) {
    const bool inside = is_ally(u) == (random_int(e, ALLIES_INSIDE, 2) == 1);
    return inside ? around(e, u, width / 2.f, height / 2.f) : beside_corner(e, u);
  }
  const bool mirrored = !is_ally(u) & (u - ALLIES < ALLIES);
  const int drawn = mirrored ? u - ALLIES : u;
  const float x = uniform(e, drawn, PLACE_X, 0.f, width / 2.f);
  return {mirrored ? width - x : is_ally(u) ? x : width / 2.f + x, uniform(e, drawn, PLACE_Y, 0.f, height)};
}

GZ Point start(Env e, int u) {
  if (RANDOM_UNITS) return random_place(e, u);
  return around(e, u, is_ally(u) ? e.cfg.map_width / 4.f : e.cfg.map_width / 4.f * 3.f, e.cfg.map_height / 2.f);
}

GZ int start_type(Env e, int u) {
  if (!RANDOM_UNITS) return e.army[u];
  const int drawn = is_ally(u) ? u : u - ALLIES;
  return drawn < ALLIES ? random_int(e, drawn, TYPE, TYPES) : 0;
}

// ---- a world step ----

GZ Point moved(Env e, int u) { return {e.moved(0, u), e.moved(1, u)}; }

GZ bool overlap(Env e, int u, int b) {
  const Point here = moved(e, u);
  const float both = e.size[u] + e.size[b];
  return (squared_distance(here.x, here.y, moved(e, b)) < both * both) & (b != u);
}

// Living units that overlap push each other apart. They are where they have moved, and the dead infinitely far away.
GZ void push_apart(Env e) {
  lanes(e, UNITS, [=](int u) {
    if (!lives(e, u)) return;
    const Point here = moved(e, u);
    float dx = 0.f, dy = 0.f;
    bool touched = false;
    for (int b = 0; b < UNITS; ++b) touched |= overlap(e, u, b);
    GZ_ROLLED
    for (int b = 0; touched && b < UNITS; ++b) {
      if (!overlap(e, u, b)) continue;
      const Point there = moved(e, b);
      const float share = max((e.size[u] + e.size[b]) / (distance(here, there) + 1e-6f) - 1.f, 0.f);
      dx += (here.x - there.x) * share;
      dy += (here.y - there.y) * share;
    }
    e.x[u] = here.x + dx / 2.f;
    e.y[u] = here.y + dy / 2.f;
  });
}

GZ void fire(Env e, int u, int world_step) {
  const int attack = e.attack[u], type = e.type[u], target = opponent(u, max(attack - MOVES, 0));
  const float cooldown = e.cooldown[u], dt = e.cfg.time_per_step;
  bool hits = (cooldown <= 0.f) & (attack >= MOVES) & lives(e, u);
  if (hits) hits = lives(e, target) & (distance(place(e, u), place(e, target)) < e.attack_range[type]);
  if (hits) {
    scatter_add(e.damage[target], e.strength[type]);
    e.cooldown[u] = e.recharge[type] + uniform(e, u, COOLDOWN + world_step, -dt, 2.f * dt);
  } else {
    e.cooldown[u] = cooldown - dt;
  }
}

GZ void walk(Env e, int u) {
  const float way = e.velocity[e.type[u]], dt = e.cfg.time_per_step;
  const bool alive = lives(e, u);
  const float x = e.x[u] + e.move_x[u] * way * dt, y = e.y[u] + e.move_y[u] * way * dt;
  e.moved(0, u) = alive ? max(min(x, e.cfg.map_width), 0.f) : e.x[u];
  e.moved(1, u) = alive ? max(min(y, e.cfg.map_height), 0.f) : e.y[u];
}

GZ bool touches_wall(Env e, int u) {
  const float x = e.moved(0, u), y = e.moved(1, u);
  return (x <= 0.f) | (y <= 0.f) | (x >= e.cfg.map_width) | (y >= e.cfg.map_height);
}

GZ void suffer(Env e, int u) {
  const bool dies = e.cfg.walls_cause_death & touches_wall(e, u);
  e.health[u] = dies ? 0.f : max(e.health[u] - (float)e.damage[u], 0.f);
  e.damage[u] = 0;
  if (lives(e, u)) return;
  e.x[u] = e.moved(0, u);
  e.y[u] = e.moved(1, u);
  e.moved(0, u) = e.moved(1, u) = infinity();
}

GZ void advance_world(Env e, int world_step) {
  lanes(e, UNITS, [=](int u) { fire(e, u, world_step); });
  lanes(e, UNITS, [=](int u) { walk(e, u); });
  lanes(e, UNITS, [=](int u) { suffer(e, u); });
  push_apart(e);
}

// ---- the enemies of the game ----

struct View {
  float x, y, away;  // from the unit, as its observation shows it
  bool visible, in_range;
};

// The k-th opponent as the observation of the unit shows it.
GZ View view(Env e, int u, int k) {
  const int b = opponent(u, k), type = e.type[u];
  const float dx = e.x[b] - e.x[u], dy = e.y[b] - e.y[u], sight = e.sight[type];
  const bool visible = (distance(place(e, u), place(e, b)) < sight) & lives(e, u) & lives(e, b);
  const float x = dx / sight * sight, y = dy / sight * sight;
  const float away = sqrt(x * x + y * y);
  return {x, y, away, visible, visible && away < e.attack_range[type]};
}

struct Choice {
  int attacked, visible;  // the opponent to attack, or -1; how many are visible
};

// The opponent attacked before, or the nearest one in range, or any of them; those in range are visible, too.
GZ Choice choose_opponent(Env e, int u) {
  const int last = e.last_attacked[u - ALLIES];
  int nearest = -1, in_range = 0, visible = 0;
  bool goes_on = false;
  float least = infinity();
  GZ_ROLLED
  for (int k = 0; k < ALLIES; ++k) {
    const View seen = view(e, u, k);
    const bool nearer = seen.in_range & (seen.away < least);
    nearest = nearer ? k : nearest;
    least = nearer ? seen.away : least;
    goes_on |= seen.in_range & (k == last);
    in_range += seen.in_range;
    visible += seen.visible;
  }
  int chosen = nearest;
  if constexpr (Config::attack_mode == ATTACK_MODE_RANDOM) {
    int left = random_int(e, u, ATTACKED, in_range);
    for (int k = 0; k < ALLIES; ++k) {
      const bool counts = view(e, u, k).in_range;
      chosen = counts & (left == 0) ? k : chosen;
      left -= counts;
    }
  }
  return {goes_on ? last : chosen, visible};
}

GZ void set_way(Env e, int u, int way) {
  e.move_x[u] = way == 1 ? 1.f : way == 3 ? -1.f : 0.f;
  e.move_y[u] = way == 0 ? 1.f : way == 2 ? -1.f : 0.f;
}

// The move that is most similar to a direction.
GZ int way_to(float dx, float dy) {
  const float most = max(max(dy, dx), max(-dy, -dx));
  return dy == most ? 0 : dx == most ? 1 : -dy == most ? 2 : 3;
}

// Where the unit is, as its observation shows it.
GZ Point seen_from(Env e, int u) {
  const float width = e.cfg.map_width, height = e.cfg.map_height;
  return lives(e, u) ? Point{e.x[u] / width * width, e.y[u] / height * height} : Point{0.f, 0.f};
}

// The place opposite to the first one.
GZ void set_goal(Env e, int u) {
  const int h = u - ALLIES;
  if ((e.goal_x[h] != 0.f) | (e.goal_y[h] != 0.f) | (e.last_attacked[h] != -1)) return;
  const Point here = seen_from(e, u);
  e.goal_x[h] = e.cfg.map_width / 2.f - (here.x - e.cfg.map_width / 2.f);
  e.goal_y[h] = e.cfg.map_height / 2.f - (here.y - e.cfg.map_height / 2.f);
}

// The way to one of the visible opponents, or to the goal.
GZ int chase(Env e, int u, int visible) {
  const Point here = seen_from(e, u);
  float x = e.goal_x[u - ALLIES], y = e.goal_y[u - ALLIES];
  int left = visible > 0 ? random_int(e, u, CHASED, visible) : -1;
  GZ_ROLLED
  for (int k = 0; left >= 0; ++k) {
    const View seen = view(e, u, k);
    x = seen.visible ? seen.x + here.x : x;
    y = seen.visible ? seen.y + here.y : y;
    left -= seen.visible;
  }
  return way_to(x - here.x, y - here.y);
}

GZ void act_by_heuristic(Env e, int u) {
  set_goal(e, u);
  const Choice choice = choose_opponent(e, u);
  const bool attacks = e.cfg.enemy_shoots && choice.attacked >= 0;
  e.last_attacked[u - ALLIES] = choice.attacked;
  e.attack[u] = attacks ? MOVES + choice.attacked : 0;
  set_way(e, u, attacks ? MOVES - 1 : chase(e, u, choice.visible));
}

// ---- reset, step ----

GZ void reset(Env e) {
  lanes(e, UNITS, [=](int u) {
    const Point at = start(e, u);
    e.moved(0, u) = at.x;
    e.moved(1, u) = at.y;
    e.type[u] = start_type(e, u);
    e.size[u] = e.radius[e.type[u]];
    e.health[u] = e.full_health[e.type[u]];
    e.cooldown[u] = e.move_x[u] = e.move_y[u] = 0.f;
    e.attack[u] = 0;
  });
  push_apart(e);
  lanes(e, ENEMIES, [=](int h) {
    e.goal_x[h] = e.goal_y[h] = 0.f;
    e.last_attacked[h] = -1;
  });
  once(e, [=] { e.winner = NOBODY; });
}

// What a team has lost in this step, as a share of its health; every unit counts the same.
GZ float losses(Env e, int first, int n) {
  const float sum = lane_sum(e, n, [=](int k) {
    const int u = first + k;
    return (e.health[u] - e.health_before[u]) / e.full_health[e.type[u]];
  });
  return abs(sum) / (float)n;
}

GZ float reward_of(Env e, float damage, bool wins, bool loses) {
  const float bonus = e.cfg.won_battle_bonus;
  return (e.cfg.use_self_play_reward ? (loses ? -bonus : 0.f) : damage) + (wins ? bonus : 0.f);
}

GZ void step(Env e) {
  lanes(e, AGENTS, [=](int a) { act(e, a); });
  lanes(e, UNITS - AGENTS, [=](int h) { act_by_heuristic(e, ALLIES + h); });
  lanes(e, UNITS, [=](int u) {
    e.size[u] = e.radius[e.type[u]];
    e.health_before[u] = e.health[u];
    e.damage[u] = 0;
  });
  GZ_ROLLED
  for (int k = 0; k < e.cfg.world_steps_per_env_step; ++k) advance_world(e, k);

  const float allies_lost = losses(e, 0, ALLIES), enemies_lost = losses(e, ALLIES, ENEMIES);
  const bool allies_live = lane_any(e, ALLIES, [=](int a) { return lives(e, a); });
  const bool enemies_live = lane_any(e, ENEMIES, [=](int h) { return lives(e, ALLIES + h); });
  const bool allies_win = allies_live & !enemies_live, enemies_win = enemies_live & !allies_live;
  lanes(e, AGENTS, [=](int a) {
    e.reward[a] = is_ally(a) ? reward_of(e, enemies_lost, allies_win, enemies_win)
                             : reward_of(e, allies_lost, enemies_win, allies_win);
    if (e.cfg.dead_units_leave & e.alive[a] & !lives(e, a)) e.terminate(a);
  });
  once(e, [=] {
    e.winner = allies_win ? ALLIES_WON : enemies_win ? ENEMIES_WON : NOBODY;
    if (!allies_live | !enemies_live) e.terminate_all();
  });
}

// ---- observation ----

GZ float shown_cooldown(Env e, int u) { return clamp(e.cooldown[u] / e.recharge[e.type[u]], 0.f, 1.f); }

GZ void write_type(Row out, int type, bool shown) {
  for (int k = 0; k < TYPES; ++k) out[k] = shown & (k == type) ? 1.f : 0.f;
}

// What is shown of a unit to all who see it; its place is different for each.
GZ void show_units(Env e) {
  lanes(e, UNITS, [=](int u) {
    e.shown(u, 0) = e.health[u] / e.full_health[e.type[u]];
    e.shown(u, 1) = e.shown(u, 2) = 0.f;
    e.shown(u, 3) = e.move_x[u];
    e.shown(u, 4) = e.move_y[u];
    e.shown(u, 5) = (float)e.attack[u] / (float)(MOVES - 1 + opponents(u));
    e.shown(u, 6) = shown_cooldown(e, u);
    for (int k = 0; k < TYPES; ++k) e.shown(u, 7 + k) = k == e.type[u] ? 1.f : 0.f;
  });
}

// Unit b as unit u sees it.
GZ void write_unit(Env e, int u, int b, bool seen, Row out) {
  const float sight = e.sight[e.type[u]];
  for (int k = 0; k < UNIT_FEATURES; ++k) out[k] = seen ? e.shown(b, k) : 0.f;
  out[1] = seen ? (e.x[b] - e.x[u]) / sight : 0.f;
  out[2] = seen ? (e.y[b] - e.y[u]) / sight : 0.f;
  if (e.cfg.see_enemy_actions | (is_ally(u) == is_ally(b))) return;
  out[3] = out[4] = out[5] = 0.f;
}

GZ void write_self(Env e, int u, Row out) {
  const bool alive = lives(e, u);
  out[0] = alive ? e.health[u] / e.full_health[e.type[u]] : 0.f;
  out[1] = alive ? e.x[u] / e.cfg.map_width : 0.f;
  out[2] = alive ? e.y[u] / e.cfg.map_height : 0.f;
  out[3] = alive ? shown_cooldown(e, u) : 0.f;
  write_type(out + 4, e.type[u], alive);
}

GZ void observe_list(Env e) {
  lanes(e, AGENTS, Const<OTHERS>(), [=](int a, int k) {
    const int b = other(a, k);
    const bool visible = distance(place(e, a), place(e, b)) < e.sight[e.type[a]];
    write_unit(e, a, b, visible & lives(e, a) & lives(e, b), e.observation[a] + k * UNIT_FEATURES);
    if (k == 0) write_self(e, a, e.observation[a] + OTHERS * UNIT_FEATURES);
  });
}

GZ float bound_of_section(int j) { return TWO_PI * ((float)j / (float)SECTIONS) - PI; }

// The section in which b lies as u sees it, or -1: it is not seen, or lies on a bound.
GZ int section_of(Env e, int u, int b) {
  const float sight = e.sight[e.type[u]], x = (e.x[b] - e.x[u]) / sight, y = (e.y[b] - e.y[u]) / sight;
  const float turn = x < 0.f ? (y > 0.f ? PI : -PI) : 0.f, angle = atan2(y / (x + 1e-8f), 1.f) + turn;
  const int near = (int)floor((angle + PI) / TWO_PI * (float)SECTIONS);
  int found = -1;
  for (int k = -1; k <= 1; ++k) {
    const int j = near + k;
    if ((angle > bound_of_section(j)) & (angle < bound_of_section(j + 1))) found = j;
  }
  const bool seen = (sqrt(x * x + y * y) < 1.f) & (b != u) & (b != 0) & (found < SECTIONS);
  return seen ? found : -1;
}

GZ void observe_cone(Env e) {
  lanes(e, AGENTS, Const<UNITS>(), [=](int a, int b) { e.section(a, b) = (i8)section_of(e, a, b); });
  lanes(e, AGENTS, Const<SECTIONS>(), [=](int a, int j) {
    int found = 0;
    for (int b = 0; b < UNITS; ++b)
      if ((e.section(a, b) == j) & (found < SEEN_IN_SECTION)) {
        write_unit(e, a, b, lives(e, a), e.observation[a] + (j * SEEN_IN_SECTION + found) * UNIT_FEATURES);
        ++found;
      }
    for (; found < SEEN_IN_SECTION; ++found)
      write_unit(e, a, a, false, e.observation[a] + (j * SEEN_IN_SECTION + found) * UNIT_FEATURES);
    if (j == 0) write_self(e, a, e.observation[a] + SECTIONS * SEEN_IN_SECTION * UNIT_FEATURES);
  });
}

GZ void observe(Env e) {
  show_units(e);
  if constexpr (Config::observation_type == OBSERVATION_TYPE_UNIT_LIST)
    observe_list(e);
  else
    observe_cone(e);
  write_masks(e);
}

GZ void state(Env e) {
  lanes(e, UNITS, [=](int u) {
    const bool alive = lives(e, u);
    const int first = u * OWN_FEATURES;
    e.state[first] = alive ? e.health[u] / e.full_health[e.type[u]] : 0.f;
    e.state[first + 1] = alive ? e.x[u] : 0.f;
    e.state[first + 2] = alive ? e.y[u] : 0.f;
    e.state[first + 3] = alive ? e.cooldown[u] : 0.f;
    for (int k = 0; k < TYPES; ++k) e.state[first + 4 + k] = alive & (k == e.type[u]) ? 1.f : 0.f;
    e.state[UNITS * OWN_FEATURES + u] = is_ally(u) ? 0.f : 1.f;
    e.state[UNITS * (OWN_FEATURES + 1) + u] = (float)e.type[u];
  });
}
