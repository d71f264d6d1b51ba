// STORM for two to eight players (Khan, Willi, Kwan, Tacchetti, Lu, Grefenstette, Rocktäschel and Foerster, "Scaling
// opponent shaping to high dimensional games", 2023), as JaxMARL has it.

#include "field.cuh"

constexpr int CELLS = SIDE * SIDE, ITEMS = 12, CHANNELS = ITEMS + 4, PAIRS = AGENTS * (AGENTS - 1) / 2;
constexpr int EMPTY = 0, RED_COIN = 9, BLUE_COIN = 10, WALL = 11, BEAM = 12;  // 1 to 8 are the players
constexpr int LEFT = 0, RIGHT = 1, FORWARD = 2, INTERACT = 3, STAY = 4;
constexpr int FIRST_TIMER = 3, TIMERS = 7;                                                          // lengths, and how many
constexpr int TAKES = 0, DIRECTIONS = 1, COLOURS = 2, TIMES = 3, PAIR = 4, START = PAIR + PAIRS;  // draws

GZ int player(int item) { return item - 1; }

GZ bool is_player(int item) { return (item >= 1) & (item <= AGENTS); }

GZ void stand(Env e) {
  for (int a = 0; a < AGENTS; ++a) e.grid[e.cell[a]] = a + 1;
}

GZ void lift(Env e) {
  for (int a = 0; a < AGENTS; ++a) e.grid[e.cell[a]] = EMPTY;
}

// Starts of all players, in ascending order: those of the first players among eight that are drawn.
GZ void draw_starts(Env e) {
  GZ_ROLLED
  for (int s = 0, drawn = 0; s < STARTS; ++s) {
    if (random_int(e, START + s, STARTS - s) >= MOST_PLAYERS - drawn) continue;
    if (drawn < AGENTS) e.start[drawn] = e.start_cell[s];
    ++drawn;
  }
}

GZ void begin_round(Env e) {
  for (int c = 0; c < CELLS; ++c) e.grid[c] = EMPTY;
  draw_starts(e);
  GZ_ROLLED
  for (int a = 0; a < AGENTS; ++a) {
    e.cell[a] = e.start[a];
    e.direction[a] = random_int(e, a, DIRECTIONS, 3);
    e.inventory(a, 0) = e.inventory(a, 1) = 0;
    e.freeze[a] = -1;
  }
  stand(e);
  GZ_ROLLED
  for (int k = 0, red = COINS / 2; k < COINS; ++k) {
    const bool is_red = e.cfg.fixed_coin_location ? k % 2 == 0 : random_int(e, k, COLOURS, COINS - k) < red;
    e.coin_is_red[k] = is_red;
    red -= is_red;
    e.timer[k] = FIRST_TIMER + random_int(e, k, TIMES, TIMERS);
    e.grid[e.coin_cell[k]] = is_red ? RED_COIN : BLUE_COIN;
  }
  if (e.cfg.corrected) stand(e);
}

GZ void reset(Env e) {
  once(e, [=] { begin_round(e); });
}

GZ int acts(Env e, int a) { return e.freeze[a] > 0 ? STAY : (int)e.action[a]; }

// Whether a takes a cell that b wants, too.
GZ bool takes(Env e, int a, int b) {
  const int low = min(a, b), high = max(a, b);
  const bool drawn = random_int(e, MOST_PLAYERS * low + high, TAKES, 2) == 1;
  return (a == low) | (low == 0) ? drawn : !drawn;
}

// Whether somebody stops a from going where it wants.
GZ bool stopped(Env e, int a) {
  if (e.wanted[a] == e.cell[a]) return false;
  int stand_there = 0, win = 0;
  for (int b = 0; b < AGENTS; ++b) {
    const bool both = (b != a) & (e.wanted[b] == e.wanted[a]), moves = e.wanted[b] != e.cell[b];
    stand_there += both & !moves;
    if (both & moves) win += !takes(e, a, b);
  }
  return ((stand_there > 0) & (stand_there < AGENTS - 1)) | ((win > 0) & (win < AGENTS - 1));
}

// The same, where no two players may come to stand in one cell.
GZ bool stopped_for_sure(Env e, int a) {
  const u32 own = random_bits(e, a, TAKES);
  bool stops = false;
  for (int b = 0; b < AGENTS; ++b) {
    const u32 other = random_bits(e, b, TAKES);
    const bool first = (other > own) | ((other == own) & (b < a));
    stops |= (b != a) & ((e.cell[b] == e.wanted[a]) | ((e.wanted[b] == e.wanted[a]) & first));
  }
  return stops;
}

GZ bool sees(Env e, int a, int b) {
  bool found = false;
  GZ_ROLLED
  for (int k = 0; k < 4; ++k) found |= e.grid[lit(e.went[a], e.direction[a], k)] == b + 1;
  return found;
}

// The pair that is drawn next, as 8 a + b, of those whose bits are not set; pairs are in lexicographic order.
GZ int next_pair(u32 drawn, int skip) {
  int found = 0, pair = 0;
  for (int a = 0; a < AGENTS; ++a)
    GZ_ROLLED
    for (int b = a + 1; b < AGENTS; ++b, ++pair) {
      if ((drawn >> pair) & 1u) continue;
      if (skip == 0) found = MOST_PLAYERS * a + b;
      --skip;
    }
  return found;
}

GZ int index_of(int a, int b) { return a * (2 * AGENTS - a - 1) / 2 + b - a - 1; }

GZ void meet(Env e, int a, int b) {
  const auto &c = e.cfg;
  const bool beams = (e.shoots[a] != 0) & (e.shoots[b] != 0) & (coins(e, a) > 0) & (coins(e, b) > 0);
  if (!beams || !sees(e, a, b) || !sees(e, b, a)) return;
  const bool pays = !e.met[a] & !e.met[b];
  if (e.cfg.corrected & !pays) return;
  e.met[a] = e.met[b] = true;
  const float row = payoff(e, a, b, c.first_payoff_rr, c.first_payoff_rb, c.first_payoff_br, c.first_payoff_bb);
  const float column = payoff(e, a, b, c.second_payoff_rr, c.second_payoff_rb, c.second_payoff_br, c.second_payoff_bb);
  if (pays & (e.cfg.corrected | ((AGENTS > 2) & (b == AGENTS - 1)))) e.reward[a] = row;
  if (pays & (e.cfg.corrected | ((AGENTS > 2) & (a == AGENTS - 2)))) e.reward[b] = column;
}

GZ void meet_all(Env e) {
  constexpr int DRAWN = Config::corrected || PAIRS < AGENTS ? PAIRS : AGENTS;
  u32 drawn = 0;
  GZ_ROLLED
  for (int k = 0; k < DRAWN; ++k) {
    const int pair = next_pair(drawn, random_int(e, PAIR + k, PAIRS - k));
    const int a = pair / MOST_PLAYERS, b = pair % MOST_PLAYERS;
    drawn |= 1u << index_of(a, b);
    meet(e, a, b);
  }
}

GZ int free_start(Env e, int a) {
  int open = 0, found = 0;
  for (int s = 0; s < STARTS; ++s) open += !is_player(e.grid[e.start_cell[s]]);
  int skip = random_int(e, START + STARTS + a, open);
  for (int s = 0; s < STARTS; ++s) {
    if (is_player(e.grid[e.start_cell[s]])) continue;
    if (skip == 0) found = e.start_cell[s];
    --skip;
  }
  return found;
}

GZ void thaw(Env e) {
  bool anybody = false;
  for (int a = 0; a < AGENTS; ++a) {
    e.freeze[a] = e.met[a] ? e.cfg.freeze_penalty : max(e.freeze[a] - 1, -1);
    anybody |= e.freeze[a] == 0;
  }
  if (anybody) draw_starts(e);
  lift(e);
  for (int a = 0; a < AGENTS; ++a) e.cell[a] = e.went[a];
  if (e.cfg.corrected) stand(e);
  GZ_ROLLED
  for (int a = 0; a < AGENTS; ++a) {
    if (e.freeze[a] != 0) continue;
    const int start = e.cfg.corrected ? free_start(e, a) : (int)e.start[a];
    if (e.cfg.corrected) e.grid[e.cell[a]] = EMPTY;
    if (e.cfg.corrected) e.grid[start] = a + 1;
    e.cell[a] = start;
    e.direction[a] = random_int(e, a, DIRECTIONS, 3);
    e.inventory(a, 0) = e.inventory(a, 1) = 0;
    e.freeze[a] = -1;
  }
  stand(e);
}

GZ void grow_coins(Env e) {
  GZ_ROLLED
  for (int k = 0; k < COINS; ++k) {
    const int c = e.coin_cell[k];
    e.timer[k] -= 1;
    if (e.timer[k] != 0) continue;
    if (e.grid[c] == EMPTY) e.grid[c] = e.coin_is_red[k] ? RED_COIN : BLUE_COIN;
    e.timer[k] = FIRST_TIMER + random_int(e, k, TIMES, TIMERS);
  }
}

GZ void step(Env e) {
  lanes(e, AGENTS, [=](int a) {
    const int action = acts(e, a);
    e.wanted[a] = action == FORWARD ? ahead(e.cell[a], e.direction[a], 1) : (int)e.cell[a];
    e.shoots[a] = action == INTERACT;
    e.met[a] = false;
  });
  lanes(e, AGENTS, [=](int a) {
    const bool stops = e.cfg.corrected ? stopped_for_sure(e, a) : stopped(e, a);
    e.went[a] = stops ? e.cell[a] : e.wanted[a];
    const int item = e.grid[e.went[a]];
    e.inventory(a, 0) += item == RED_COIN;
    e.inventory(a, 1) += item == BLUE_COIN;
    const int action = acts(e, a);
    e.direction[a] = (e.direction[a] + (action == LEFT) + 3 * (action == RIGHT)) % 4;
  });
  lanes(e, CELLS, [=](int c) {
    if (e.grid[c] == BEAM) e.grid[c] = EMPTY;
  });
  once(e, [=] {
    if (e.cfg.corrected) {
      lift(e);
      for (int a = 0; a < AGENTS; ++a) e.cell[a] = e.went[a];
      stand(e);
    }
  });
  once(e, [=] { meet_all(e); });
  once(e, [=] {
    for (int a = 0; a < AGENTS; ++a) {
      GZ_ROLLED
      for (int k = 0; k < 4; ++k) {
        const int c = lit(e.went[a], e.direction[a], k);
        if ((e.shoots[a] != 0) & (e.grid[c] == EMPTY)) e.grid[c] = BEAM;
      }
    }
  });
  once(e, [=] { thaw(e); });
  once(e, [=] {
    grow_coins(e);
    if (e.t % e.cfg.num_inner_steps == 0) {
      for (int a = 0; a < AGENTS; ++a) e.reward[a] = 0.f;
      begin_round(e);
    }
    if (e.t >= e.cfg.num_inner_steps * e.cfg.num_outer_steps) e.terminate_all();
  });
}

// The relative direction that a's view shows with an item, 0 to 3, or something else for none.
GZ int shown_direction(Env e, int a, int item) {
  if (e.cfg.corrected) return is_player(item) & (item != a + 1) ? (e.direction[player(item)] + 4 - e.direction[a]) % 4 : -1;
  if ((item < a + 2) | (item > a + AGENTS)) return -1;
  const int next = item < AGENTS ? (e.direction[item] - e.direction[a] + 6) % 5 : e.direction[a] == 0 ? 3 : e.direction[a] == 3 ? 1 : 2;
  return next - 1;
}

// Views and inventories show the player as number 0, and number 0 in its place.
GZ int swapped(int a, int b) { return b == a ? 0 : b == 0 ? a : b; }

GZ void observe(Env e) {
  lanes(e, AGENTS, Const<VIEW * VIEW>(), [=](int a, int k) {
    const int cell = seen(e.cell[a], e.direction[a], k / VIEW, k % VIEW);
    const int item = cell == OUTSIDE ? WALL : (int)e.grid[cell];
    const int direction = shown_direction(e, a, item);
    const u32 shown = item == EMPTY ? 0u : 1u << swapped(a, item - 1);
    const u32 faces = (u32)direction < 4u ? 1u << direction : 0u;
    write_bits(e.observation[a] + k * CHANNELS, CHANNELS, shown | faces << ITEMS);
  });
  lanes(e, AGENTS, AGENTS, [=](int a, int k) {
    const int b = swapped(a, k);
    const bool open = e.freeze[b] >= 0;
    Row out = e.observation[a] + VIEW * VIEW * CHANNELS;
    if (k == 0) out[0] = min((int)e.inventory(a, 0), MOST_SHOWN);
    if (k == 0) out[1] = min((int)e.inventory(a, 1), MOST_SHOWN);
    out[2 + k] = coins(e, b) > 0;
    out[2 + AGENTS + k] = open ? min((int)e.inventory(b, 0), MOST_SHOWN) : 0;
    out[2 + 2 * AGENTS + k] = open ? min((int)e.inventory(b, 1), MOST_SHOWN) : 0;
  });
}
