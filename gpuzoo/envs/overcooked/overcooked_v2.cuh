// Gessler, Dizdarevic, Calinescu, Ellis, Lupu and Foerster, "OvercookedV2: Rethinking Overcooked for Zero-Shot
// Coordination" (2025), as JaxMARL has it. A thing is a plate, raw food, a soup or what is in a pot, as a set of bits:
// PLATE, COOKED, and two bits for the number of each ingredient.

#include "kitchen.cuh"

enum Button { RIGHT, DOWN, LEFT, UP, STAY, INTERACT };
enum Terrain { FLOOR, COUNTER, GOAL, POT, RECIPE, BUTTON, PLATES, PILE };
enum Thing { NOTHING = 0, PLATE = 1, COOKED = 2, FIRST_INGREDIENT = 4 };
enum Draw { NEW_RECIPE = 0, PLACE = 0, LOOK, KIND, FOOD, DISH, POT_KIND, FIRST, SECOND, THIRD, HOW_MANY, TIME, ORDER };

constexpr int FULL = 3, UNREACHABLE = 32767;

GZ int ingredient(int k) { return FIRST_INGREDIENT << 2 * k; }
GZ int how_many(int thing, int k) { return thing >> 2 * k + 2 & 3; }
GZ bool is_raw(int thing) { return thing >= FIRST_INGREDIENT && !(thing & PLATE); }
GZ int soup(int recipe) { return recipe | PLATE | COOKED; }
GZ int way_of(int action) {
  return action == RIGHT ? EAST : action == DOWN ? SOUTH : action == LEFT ? WEST : NORTH;
}

GZ int food_count(int thing) {
  int count = 0;
  for (int k = 0; k < INGREDIENTS; ++k) count += how_many(thing, k);
  return count;
}

// ---- resets ----

GZ int random_recipe(Env e) { return e.recipes[random_int(e, NEW_RECIPE, RECIPES)]; }
GZ int random_soup(Env e, int who) { return soup(e.recipes[random_int(e, who, DISH, RECIPES)]); }
GZ int random_food(Env e, int who) { return ingredient(random_int(e, who, FOOD, INGREDIENTS)); }

// Nothing, a plate, raw food, or a soup that may be ordered.
GZ int random_thing(Env e, int who, float plate, float food, float dish) {
  const float u = uniform(e, who, KIND, 0.f, 1.f);
  return u < plate ? (int)NOTHING : u < food ? (int)PLATE : u < dish ? random_food(e, who) : random_soup(e, who);
}

GZ bool is_free(Env e, int k, int room, int players) {
  bool free = e.floor_room[k] == room;
  for (int b = 0; b < players; ++b) free &= e.cell[b] != e.floor[k];
  return free;
}

// A place in the room where the player starts by the layout, apart from those who are placed already.
GZ int random_place(Env e, int a) {
  const int room = e.start_room[a];
  int count = 0, place = 0;
  for (int k = 0; k < FLOORS; ++k) count += is_free(e, k, room, a);
  int skipped = random_int(e, a, PLACE, count);
  for (int k = 0; k < FLOORS; ++k)
    if (is_free(e, k, room, a) && skipped-- == 0) place = e.floor[k];
  return place;
}

GZ void permute(Env e, int a) {
  for (int k = 0; k < INGREDIENTS; ++k) e.shown(a, k) = (i8)k;
  for (int k = PERMUTED - 1; k > 0; --k) {
    const int to = e.permuted[k], from = e.permuted[random_int(e, a, ORDER + k, k + 1)], kept = e.shown(a, to);
    e.shown(a, to) = e.shown(a, from);
    e.shown(a, from) = (i8)kept;
  }
}

GZ void reset_player(Env e, int a) {
  const bool moved = e.cfg.random_agent_positions || e.cfg.random_reset;
  e.cell[a] = moved ? random_place(e, a) : e.start_cell[a];
  e.orientation[a] = moved ? random_int(e, a, LOOK, 4) : (int)NORTH;
  e.held[a] = e.cfg.random_reset ? random_thing(e, a, 0.5f, 0.6f, 0.85f) : (int)NOTHING;
  e.shaped[a] = 0.f;
  permute(e, a);
}

GZ void fill_pot(Env e, int k) {
  const int who = AGENTS + k, count = 1 + random_int(e, who, HOW_MANY, FULL);
  const int first = ingredient(random_int(e, who, FIRST, INGREDIENTS));
  const int second = ingredient(random_int(e, who, SECOND, INGREDIENTS));
  const int third = ingredient(random_int(e, who, THIRD, INGREDIENTS));
  const int some = first + (count > 1 ? second : 0) + (count > 2 ? third : 0);
  const int enough = e.cfg.start_cooking_interaction ? some : first + second + third;
  const float u = uniform(e, who, POT_KIND, 0.f, 1.f);
  e.pot[k] = u < 0.4f ? (int)NOTHING : u < 0.75f ? some : u < 0.9f ? enough : enough | COOKED;
  e.timer[k] = (u >= 0.75f) & (u < 0.9f) ? 1 + random_int(e, who, TIME, e.cfg.pot_cook_time) : 0;
}

GZ void reset(Env e) {
  once(e, [=] {
    for (int k = 0; k < SOME_COUNTERS; ++k)
      e.counter[k] = e.cfg.random_reset ? random_thing(e, AGENTS + POTS + k, 0.5f, 0.6f, 0.9f) : (int)NOTHING;
    for (int k = 0; k < POTS; ++k) {
      e.pot[k] = NOTHING;
      e.timer[k] = 0;
      if (e.cfg.random_reset) fill_pot(e, k);
    }
    for (int k = 0; k < SOME_BUTTONS; ++k) e.lit[k] = 0;
    for (int a = 0; a < AGENTS; ++a) reset_player(e, a);
    e.recipe = random_recipe(e);
    e.delivered = 0;
    e.earned = e.score = 0.f;
    e.soups = 0;
  });
}

// ---- interactions ----

GZ bool plate_is_useful(Env e, int plates_held) {
  int pots = 0;
  bool lies_there = false;
  for (int k = 0; k < POTS; ++k) pots += e.pot[k] != NOTHING;
  for (int k = 0; k < COUNTERS; ++k) lies_there |= e.counter[k] == PLATE;
  return !lies_there && plates_held < pots;
}

GZ bool is_needed(int food, int inside, int recipe) {
  const int both_bits = food | food << 1;
  return (inside & both_bits) < (recipe & both_bits);
}

GZ void use_pot(Env e, int a, int k) {
  const int held = e.held[a], inside = e.pot[k];
  if (e.timer[k] > 0) return;
  if (inside & COOKED) {
    if (held != PLATE) return;
    e.held[a] = inside | PLATE;
    e.pot[k] = NOTHING;
    if (e.held[a] == soup(e.recipe)) e.shaped[a] += e.cfg.dish_pickup_reward;
    return;
  }
  if (is_raw(held) && food_count(inside) < FULL) {
    e.pot[k] = inside + held;
    e.held[a] = NOTHING;
    if (is_needed(held, inside, e.recipe)) e.shaped[a] += e.cfg.placement_in_pot_reward;
  }
  const bool starts = held == NOTHING && inside != NOTHING;
  if (e.cfg.start_cooking_interaction ? starts : food_count(e.pot[k]) == FULL) e.timer[k] = e.cfg.pot_cook_time;
  if (e.cfg.start_cooking_interaction && starts && inside == e.recipe) e.shaped[a] += e.cfg.pot_start_cooking_reward;
}

GZ void deliver(Env e, int a) {
  const int held = e.held[a];
  if (!(held & COOKED)) return;
  const bool correct = held == soup(e.recipe);
  e.earned += correct ? e.cfg.delivery_reward : e.cfg.negative_rewards ? -e.cfg.delivery_reward : 0.f;
  e.soups += correct;
  e.delivered |= (u8)correct;
  e.held[a] = NOTHING;
}

GZ void interact(Env e, int a, int plates_held) {
  const int place = ahead(e.cell[a], e.orientation[a]), kind = terrain(e, place), k = index(e, place);
  const int held = e.held[a];
  if (kind == COUNTER) {
    use_counter(e, a, k);
  } else if (kind == POT) {
    use_pot(e, a, k);
  } else if (kind == GOAL) {
    deliver(e, a);
  } else if (held == NOTHING && kind == PLATES) {
    if (plate_is_useful(e, plates_held)) e.shaped[a] += e.cfg.plate_pickup_reward;
    e.held[a] = PLATE;
  } else if (held == NOTHING && kind == PILE) {
    e.held[a] = ingredient(k);
  } else if (held == NOTHING && kind == BUTTON) {
    e.lit[k] = e.cfg.indicator_activation_time;
    e.earned -= e.cfg.indicator_activation_cost;
  }
}

// ---- steps ----

// Whether another player would be in the same cell.
GZ bool collides(Env e, int a) {
  bool met = false;
  for (int b = 0; b < AGENTS; ++b) met |= (b != a) & (e.target[b] == e.target[a]);
  return met;
}

GZ bool swaps(Env e, int a) {
  bool met = false;
  for (int b = 0; b < AGENTS; ++b) met |= (b != a) & (e.target[a] == e.cell[b]) & (e.target[b] == e.cell[a]);
  return met;
}

GZ void move(Env e) {
  for (int a = 0; a < AGENTS; ++a) {
    const int action = e.action[a], cell = e.cell[a];
    e.target[a] = cell;
    if (action >= STAY) continue;
    e.orientation[a] = way_of(action);
    const int next = ahead(cell, way_of(action));
    if (terrain(e, next) == FLOOR) e.target[a] = next;
  }
  bool any = true;
  for (int round = 0; any && round < AGENTS; ++round) {
    any = false;
    for (int a = 0; a < AGENTS; ++a) e.stays[a] = collides(e, a);
    for (int a = 0; a < AGENTS; ++a) {
      any |= e.stays[a] != 0;
      if (e.stays[a]) e.target[a] = e.cell[a];
    }
  }
  for (int a = 0; a < AGENTS; ++a) e.stays[a] = swaps(e, a);
  for (int a = 0; a < AGENTS; ++a)
    if (!e.stays[a]) e.cell[a] = e.target[a];
}

GZ void cook(Env e, int k) {
  if (e.timer[k] == 0) return;
  e.timer[k] -= 1;
  if (e.timer[k] == 0) e.pot[k] |= COOKED;
}

GZ void step(Env e) {
  once(e, [=] {
    e.delivered = 0;
    e.earned = 0.f;
    move(e);
    int plates = 0;
    for (int a = 0; a < AGENTS; ++a) {
      plates += e.held[a] == PLATE;
      e.shaped[a] = 0.f;
    }
    for (int a = 0; a < AGENTS; ++a)
      if (e.action[a] == INTERACT) interact(e, a, plates);
    for (int k = 0; k < POTS; ++k) cook(e, k);
    for (int k = 0; k < BUTTONS; ++k) e.lit[k] = max((int)e.lit[k] - 1, 0);
    for (int a = 0; a < AGENTS; ++a) e.reward[a] = e.earned + e.cfg.shaped_reward * e.shaped[a];
    if (e.cfg.sample_recipe_on_delivery && e.delivered) e.recipe = random_recipe(e);
    e.score += e.earned;
  });
}

// ---- observations as layers ----

constexpr int VIEW = Config::agent_view_size, SEEN_ROWS = VIEW ? 2 * VIEW + 1 : ROWS, SEEN_COLS = VIEW ? 2 * VIEW + 1 : COLS;
constexpr int BITS = INGREDIENTS + 2;  // layers of a thing: plate, cooked, and how many of each ingredient
constexpr int HIDDEN = -1;
enum Layer {
  AT,
  LOOKS,
  HOLDS = 5,
  PLAYER = HOLDS + BITS,  // as many for the player itself, and for all others
  OF_PILES = 2 * PLAYER + 6,
  LIES = OF_PILES + INGREDIENTS,
  ORDERED = LIES + BITS,
  TIMER = ORDERED + BITS,
  DELIVERED,
};

// Where a player's observation begins to tell of a cell.
GZ int spot(Env e, int a, int cell) {
  if (!VIEW) return cell * CHANNELS;
  const int row = cell / COLS - e.cell[a] / COLS + VIEW, column = cell % COLS - e.cell[a] % COLS + VIEW;
  const bool hidden = (row < 0) | (row >= SEEN_ROWS) | (column < 0) | (column >= SEEN_COLS);
  return hidden ? (int)HIDDEN : (row * SEEN_COLS + column) * CHANNELS;
}

GZ int shown(Env e, int a, int k) { return PERMUTED > 1 ? (int)e.shown(a, k) : k; }

GZ void show_thing(Env e, int a, Row out, int thing) {
  out[0] = thing & PLATE ? 1 : 0;
  out[1] = thing & COOKED ? 1 : 0;
  for (int k = 0; k < INGREDIENTS; ++k) out[2 + k] = (Observation)how_many(thing, shown(e, a, k));
}

GZ void show_kitchen(Env e, int a, Row out) {
  for (int k = 0; k < COUNTERS; ++k) {
    if (e.counter[k] == NOTHING) continue;
    const int at = spot(e, a, e.counter_cell[k]);
    if (at != HIDDEN) show_thing(e, a, out + at + LIES, e.counter[k]);
  }
  for (int k = 0; k < POTS; ++k) {
    const int at = e.pot[k] == NOTHING ? (int)HIDDEN : spot(e, a, e.pot_cell[k]);
    if (at == HIDDEN) continue;
    show_thing(e, a, out + at + LIES, e.pot[k]);
    out[at + TIMER] = (Observation)e.timer[k];
  }
}

GZ void show_signs(Env e, int a, Row out) {
  for (int k = 0; k < INDICATORS; ++k) {
    const int at = spot(e, a, e.indicator_cell[k]);
    if (at != HIDDEN) show_thing(e, a, out + at + ORDERED, e.recipe);
  }
  for (int k = 0; k < BUTTONS; ++k) {
    const int at = e.lit[k] == 0 ? (int)HIDDEN : spot(e, a, e.button_cell[k]);
    if (at != HIDDEN) show_thing(e, a, out + at + ORDERED, e.recipe);
  }
  for (int k = 0; Config::indicate_successful_delivery && k < GOALS; ++k) {
    const int at = spot(e, a, e.goal_cell[k]);
    if (at != HIDDEN) out[at + DELIVERED] = (Observation)e.delivered;
  }
  for (int k = 0; PERMUTED > 1 && k < PILES; ++k) {
    const int at = spot(e, a, e.pile_cell[k]);
    if (at == HIDDEN) continue;
    for (int i = 0; i < INGREDIENTS; ++i) out[at + OF_PILES + i] = shown(e, a, i) == index(e, e.pile_cell[k]) ? 1 : 0;
  }
}

GZ void show_players(Env e, int a, Row out) {
  for (int b = 0; b < AGENTS; ++b) {
    const int at = spot(e, a, e.cell[b]), first = at + (b == a ? 0 : (int)PLAYER);
    if (at == HIDDEN) continue;
    out[first + AT] = 1;
    out[first + LOOKS + e.orientation[b]] = 1;
    show_thing(e, a, out + first + HOLDS, e.held[b]);
  }
}

GZ void observe_layers(Env e) {
  lanes(e, AGENTS, Const<OBSERVATION_SIZE>(), [=](int a, int k) {
    const int from = VIEW ? index(e, e.cell[a]) * OBSERVATION_SIZE : 0;
    e.observation[a][k] = e.kitchen[from + k];
  });
  lanes(e, AGENTS, [=](int a) {
    const Row out = e.observation[a];
    show_kitchen(e, a, out);
    show_signs(e, a, out);
    show_players(e, a, out);
  });
}

// ---- observations as features ----

constexpr int FEATURES = 46, POT_FEATURES = 10, FAR = 1 << 30;

GZ void show_way(Env e, int a, Row out, int nearest, bool holds) {
  const bool none = holds | (nearest >= FAR);
  const int to = none ? (int)e.cell[a] : e.fixture_cell[nearest % FIXTURES];
  out[0] = (Observation)(to % COLS - e.cell[a] % COLS);
  out[1] = (Observation)(to / COLS - e.cell[a] / COLS);
}

GZ void show_pot(Env e, int a, Row out, int nearest) {
  for (int k = 0; k < POT_FEATURES; ++k) out[k] = 0;
  if (nearest >= FAR) return;
  const int k = index(e, e.fixture_cell[nearest % FIXTURES]), count = food_count(e.pot[k]);
  out[0] = 1;
  out[1] = e.pot[k] == NOTHING ? 1 : 0;
  out[2] = count == FULL ? 1 : 0;
  out[3] = e.timer[k] > 0 ? 1 : 0;
  out[4] = e.pot[k] & COOKED ? 1 : 0;
  out[5] = (Observation)count;
  out[7] = (Observation)e.timer[k];
  show_way(e, a, out + 8, nearest, false);
}

GZ int nearer(int best, int key, bool fits) { return fits & (key < best) ? key : best; }

GZ void show_features(Env e, int a, Row out) {
  const int onion = ingredient(0), dish = soup(FULL * onion), held = e.held[a], way = e.orientation[a];
  const int from = (index(e, e.cell[a]) * 4 + way) * FIXTURES;
  int onions = FAR, plates = FAR, soups = FAR, goals = FAR, counters = FAR, pot = FAR, next_pot = FAR;
  for (int f = 0; f < FIXTURES; ++f) {
    const int cell = e.fixture_cell[f], kind = terrain(e, cell), far = e.distance[from + f];
    const int lies = kind == COUNTER ? e.counter[index(e, cell)] : -1;
    const int key = far == UNREACHABLE ? (int)FAR : far * FIXTURES + f;
    onions = nearer(onions, key, (kind == PILE) | (lies == onion));
    plates = nearer(plates, key, (kind == PLATES) | (lies == PLATE));
    soups = nearer(soups, key, lies == dish);
    goals = nearer(goals, key, kind == GOAL);
    counters = nearer(counters, key, lies == NOTHING);
    next_pot = nearer(next_pot, max(key, pot), kind == POT);
    pot = nearer(pot, key, kind == POT);
  }
  bool soup_there = held == dish;
  for (int k = 0; k < COUNTERS; ++k) soup_there |= e.counter[k] == dish;
  for (int k = 0; k < 4; ++k) out[k] = k == way ? 1 : 0;
  out[4] = held == onion ? 1 : 0;
  out[5] = held == dish ? 1 : 0;
  out[6] = held == PLATE ? 1 : 0;
  out[7] = 0;
  show_way(e, a, out + 8, onions, held == onion);
  show_way(e, a, out + 10, FAR, false);
  show_way(e, a, out + 12, plates, held == PLATE);
  show_way(e, a, out + 14, soups, held == dish);
  out[16] = soup_there ? FULL : 0;
  out[17] = 0;
  show_way(e, a, out + 18, goals, false);
  show_way(e, a, out + 20, counters, false);
  show_pot(e, a, out + 22, pot);
  show_pot(e, a, out + 32, next_pot);
  for (int k = 0; k < 4; ++k) out[42 + k] = terrain(e, ahead(e.cell[a], k)) != FLOOR ? 1 : 0;
}

GZ void observe_features(Env e) {
  lanes(e, AGENTS, [=](int a) { show_features(e, a, e.observation[a]); });
  lanes(e, AGENTS, AGENTS, [=](int a, int b) {
    const Row out = e.observation[a], end = out + FEATURES * AGENTS;
    const int order = b + (b < a ? 1 : 0), x = e.cell[a] % COLS, y = e.cell[a] / COLS;
    if (b == a) {
      end[2 * AGENTS - 2] = (Observation)x;
      end[2 * AGENTS - 1] = (Observation)y;
      return;
    }
    for (int k = 0; k < FEATURES; ++k) out[FEATURES * order + k] = e.observation[b][k];
    end[2 * order - 2] = (Observation)(e.cell[b] % COLS - x);
    end[2 * order - 1] = (Observation)(e.cell[b] / COLS - y);
  });
}

GZ void observe(Env e) {
  if (Config::observation_type == OBSERVATION_TYPE_FEATURIZED) observe_features(e);
  else observe_layers(e);
}
