// Carroll et al., "On the Utility of Learning about Humans for Human-AI Coordination" (2019). A recipe is its number of
// onions + 4 times its number of tomatoes. The first four actions are the ways to walk.

#include "kitchen.cuh"

enum Button { STAY = 4, INTERACT };
enum Terrain { FLOOR, COUNTER, POT, ONIONS, TOMATOES, DISHES, SERVING };
enum Thing { NOTHING, ONION, TOMATO, DISH, SOUP = 16 };  // a soup is SOUP + its recipe

constexpr int IDLE = -1, FULL = 3;
constexpr int URGENT = 40;  // the last steps of an episode, of which the observation tells
enum Layer {
  AT = 0,
  LOOKS = AGENTS,
  OF_COUNTERS = 5 * AGENTS + 1,
  OF_ONIONS_IN_POT = 5 * AGENTS + 6,
  OF_TOMATOES_IN_POT,
  OF_ONIONS_IN_SOUP,
  OF_TOMATOES_IN_SOUP,
  OF_TIME_LEFT,
  OF_READY_SOUPS,
  OF_DISHES,
  OF_ONIONS,
  OF_TOMATOES,
};

GZ int ingredients(int recipe) { return (recipe & 3) + (recipe >> 2); }
GZ int one(int ingredient) { return ingredient == ONION ? 1 : 4; }
GZ bool is_ready(Env e, int pot) { return e.tick[pot] >= e.cook_time[e.recipe[pot]]; }

// ---- resets ----

GZ int free_floor(Env e, int players, int skipped) {
  int found = 0;
  for (int k = 0; k < FLOORS; ++k) {
    bool taken = false;
    for (int b = 0; b < players; ++b) taken |= e.cell[b] == e.floor[k];
    if (!taken && skipped-- == 0) found = e.floor[k];
  }
  return found;
}

GZ int random_recipe(Env e, int who, int draw) {
  const int onions = 1 + random_int(e, who, draw, 3);
  return onions + 4 * random_int(e, who, draw + 1, 4 - onions);
}

GZ int random_object(Env e, int a) {
  const float u = uniform(e, a, 3, 0.f, 1.f);
  return u < 0.2f ? (int)DISH : u < 0.8f ? (int)ONION : SOUP + random_recipe(e, a, 4);
}

GZ void reset_player(Env e, int a) {
  const auto &c = e.cfg;
  const bool moved = c.random_start_pos || c.random_reset, turned = c.random_orientation || c.random_reset;
  e.cell[a] = moved ? free_floor(e, a, random_int(e, a, 0, FLOORS - a)) : e.start_cell[a];
  e.orientation[a] = turned ? random_int(e, a, 1, 4) : e.start_orientation[a];
  e.held[a] = e.start_held[a];
  if (uniform(e, a, 2, 0.f, 1.f) < c.rnd_obj_prob_thresh) e.held[a] = random_object(e, a);
  if (c.random_reset) {
    const int object = random_int(e, a, 6, 4);
    e.held[a] = object == 0 ? (int)NOTHING : object == 1 ? (int)ONION : object == 2 ? (int)DISH : SOUP + FULL;
  }
  e.shaped[a] = 0.f;
}

GZ void reset_pot(Env e, int k) {
  const auto &c = e.cfg;
  const int who = AGENTS + k;
  e.recipe[k] = e.start_recipe[k];
  e.tick[k] = IDLE;
  if (uniform(e, who, 0, 0.f, 1.f) < c.rnd_obj_prob_thresh) {
    e.recipe[k] = random_recipe(e, who, 1);
    e.tick[k] = uniform(e, who, 3, 0.f, 1.f) < c.rnd_obj_prob_thresh ? 0 : IDLE;
  }
  if (c.random_reset) {  // empty, some onions, or any step of cooking
    const int status = random_int(e, who, 4, e.cook_time[FULL] + 4);
    e.recipe[k] = min(status, FULL);
    e.tick[k] = status <= FULL ? (int)IDLE : status - FULL;
  }
}

GZ void reset(Env e) {
  once(e, [=] {
    for (int k = 0; k < COUNTERS; ++k) e.counter[k] = NOTHING;
    for (int k = 0; k < POTS; ++k) reset_pot(e, k);
    for (int a = 0; a < AGENTS; ++a) reset_player(e, a);
    e.delivered = e.score = 0.f;
    e.soups = 0;
  });
}

// ---- interactions ----

// Pots whose soup somebody will want a dish for.
GZ int promising_pots(Env e) {
  int pots = 0;
  for (int k = 0; k < POTS; ++k) {
    const bool waits = Config::stale_pots && e.tick[k] == IDLE && ingredients(e.recipe[k]) == FULL;
    pots += e.recipe[k] > 0 && !waits;
  }
  return pots;
}

GZ bool dish_is_useful(Env e, int pots) {
  int dishes = 0;
  bool lies_there = AGENTS != 2;
  for (int a = 0; a < AGENTS; ++a) dishes += e.held[a] == DISH;
  for (int k = 0; k < COUNTERS; ++k) lies_there |= e.counter[k] == DISH;
  return !lies_there && dishes < pots;
}

GZ void use_pot(Env e, int a, int k) {
  const int held = e.held[a], recipe = e.recipe[k];
  if (held == NOTHING) {
    if (!e.cfg.old_dynamics && recipe > 0 && e.tick[k] == IDLE) e.tick[k] = 0;
  } else if (held == DISH) {
    if (!is_ready(e, k)) return;
    e.held[a] = SOUP + recipe;
    e.recipe[k] = 0;
    e.tick[k] = IDLE;
    e.shaped[a] += e.cfg.soup_pickup_reward;
  } else if (held < SOUP && e.tick[k] == IDLE && ingredients(recipe) < FULL) {
    e.held[a] = NOTHING;
    e.recipe[k] = recipe + one(held);
    e.shaped[a] += e.cfg.placement_in_pot_reward;
  }
}

GZ void interact(Env e, int a, int pots_before) {
  const int place = ahead(e.cell[a], e.orientation[a]), kind = terrain(e, place), k = index(e, place);
  const int held = e.held[a];
  if (kind == COUNTER) {
    use_counter(e, a, k);
  } else if (kind == POT) {
    use_pot(e, a, k);
  } else if (kind == SERVING) {
    if (held < SOUP) return;
    e.held[a] = NOTHING;
    e.delivered += e.value[held - SOUP];
    e.soups += 1;
  } else if (kind != FLOOR && held == NOTHING) {
    if (kind == DISHES && dish_is_useful(e, Config::stale_pots ? pots_before : promising_pots(e)))
      e.shaped[a] += e.cfg.dish_pickup_reward;
    e.held[a] = kind - ONIONS + ONION;
  }
}

// ---- steps ----

GZ void move(Env e) {
  for (int a = 0; a < AGENTS; ++a) {
    const int action = e.action[a], cell = e.cell[a], next = ahead(cell, action);
    const bool walks = action < STAY;
    e.target[a] = walks && terrain(e, next) == FLOOR ? next : cell;
    e.orientation[a] = walks ? action : (int)e.orientation[a];
  }
  bool collide = false;
  for (int a = 0; a < AGENTS; ++a)
    for (int b = 0; b < a; ++b) {
      const bool meet = e.target[a] == e.target[b];
      collide |= meet | (e.target[a] == e.cell[b] && e.target[b] == e.cell[a]);
    }
  if (collide) return;
  for (int a = 0; a < AGENTS; ++a) e.cell[a] = e.target[a];
}

GZ void cook(Env e, int k) {
  if (e.cfg.old_dynamics && e.tick[k] == IDLE && ingredients(e.recipe[k]) == FULL) e.tick[k] = 0;
  if (e.tick[k] != IDLE && !is_ready(e, k)) e.tick[k] += 1;
}

GZ void step(Env e) {
  once(e, [=] {
    e.delivered = 0.f;
    const int pots = Config::stale_pots ? promising_pots(e) : 0;
    for (int a = 0; a < AGENTS; ++a) e.shaped[a] = 0.f;
    for (int a = 0; a < AGENTS; ++a)
      if (e.action[a] == INTERACT) interact(e, a, pots);
    move(e);
    for (int k = 0; k < POTS; ++k) cook(e, k);
    for (int a = 0; a < AGENTS; ++a) e.reward[a] = e.delivered + e.cfg.shaped_reward * e.shaped[a];
    e.score += e.delivered;
  });
}

// ---- observations ----

GZ void show_object(Row out, int object) {
  if (object == ONION) out[OF_ONIONS] = 1;
  if (object == TOMATO) out[OF_TOMATOES] = 1;
  if (object == DISH) out[OF_DISHES] = 1;
  if (object < SOUP) return;
  out[OF_ONIONS_IN_SOUP] = (Observation)(object - SOUP & 3);
  out[OF_TOMATOES_IN_SOUP] = (Observation)(object - SOUP >> 2);
  out[OF_READY_SOUPS] = 1;
}

GZ void show_pot(Env e, Row out, int k) {
  const int recipe = e.recipe[k];
  const bool idle = e.tick[k] == IDLE;
  out[idle ? OF_ONIONS_IN_POT : OF_ONIONS_IN_SOUP] = (Observation)(recipe & 3);
  out[idle ? OF_TOMATOES_IN_POT : OF_TOMATOES_IN_SOUP] = (Observation)(recipe >> 2);
  out[OF_TIME_LEFT] = (Observation)(idle ? 0 : e.cook_time[recipe] - e.tick[k]);
  out[OF_READY_SOUPS] = is_ready(e, k);
}

GZ void show_players(Env e, Row out, int a) {
  for (int b = 0; b < AGENTS; ++b) {
    const int order = b == a ? 0 : b < a ? b + 1 : b;
    const Row place = out + e.spot[e.cell[b]];
    place[AT + order] = 1;
    place[LOOKS + 4 * order + e.orientation[b]] = 1;
    show_object(place, e.held[b]);
  }
}

GZ void observe(Env e) {
  const int kitchen = e.max_steps - e.t < URGENT ? (int)OBSERVATION_SIZE : 0;
  lanes(e, AGENTS, Const<OBSERVATION_SIZE>(), [=](int a, int k) { e.observation[a][k] = e.kitchen[kitchen + k]; });
  lanes(e, AGENTS, [=](int a) {
    const Row out = e.observation[a];
    for (int k = 0; k < COUNTERS; ++k) {
      if (e.counter[k] == NOTHING) continue;
      const Row place = out + e.spot[e.counter_cell[k]];
      show_object(place, e.counter[k]);
      if (Config::observation_type == OBSERVATION_TYPE_JAXMARL) place[OF_COUNTERS] = 0;
    }
    for (int k = 0; k < POTS; ++k)
      if (e.recipe[k] > 0) show_pot(e, out + e.spot[e.pot_cell[k]], k);
    show_players(e, out, a);
  });
}
