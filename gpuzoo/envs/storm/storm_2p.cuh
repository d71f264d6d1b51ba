// STORM for two players (Khan, Willi, Kwan, Tacchetti, Lu, Grefenstette, Rocktäschel and Foerster, "Scaling opponent
// shaping to high dimensional games", 2023), as JaxMARL has it.

#include "field.cuh"

constexpr int CELLS = SIDE * SIDE, ITEMS = 6, CHANNELS = ITEMS + 4;
constexpr int EMPTY = 0, RED = 1, BLUE = 2, RED_COIN = 3, BLUE_COIN = 4, WALL = 5, BEAM = 6;
constexpr int LEFT = 0, RIGHT = 1, FORWARD = 2, INTERACT = 3, STAY = 4;
constexpr int BOTH_MOVE = 0, START = 1, DIRECTIONS = 2, COLOURS = 4;  // draws

GZ void lay_coins(Env e) {
  for (int k = 0; k < COINS; ++k) e.grid[e.coin_cell[k]] = e.coin_is_red[k] ? RED_COIN : BLUE_COIN;
}

GZ void place_players(Env e) {
  const int start = e.start_cell[random_int(e, START, STARTS)];
  for (int a = 0; a < AGENTS; ++a) {
    e.cell[a] = a == 0 ? start : CELLS - 1 - start;
    e.direction[a] = random_int(e, DIRECTIONS + a, 3);
    e.inventory(a, 0) = e.inventory(a, 1) = 0;
  }
  e.freeze = -1;
}

GZ void stand(Env e) {
  e.grid[e.cell[0]] = RED;
  e.grid[e.cell[1]] = BLUE;
}

GZ void clear(Env e) {
  for (int c = 0; c < CELLS; ++c) e.grid[c] = EMPTY;
}

GZ void begin_round(Env e) {
  for (int k = 0, red = COINS / 2; k < COINS; ++k) {
    const bool is_red = e.cfg.fixed_coin_location ? k % 2 == 1 : random_int(e, COLOURS + k, COINS - k) < red;
    e.coin_is_red[k] = is_red;
    red -= is_red;
  }
  clear(e);
  place_players(e);
  stand(e);
  lay_coins(e);
}

GZ void begin_anew(Env e) {
  clear(e);
  lay_coins(e);
  place_players(e);
  stand(e);
}

GZ void reset(Env e) {
  once(e, [=] { begin_round(e); });
}

GZ int turned(int direction, int action) { return (direction + (action == LEFT) + 3 * (action == RIGHT)) % 4; }

GZ void move(Env e, int red_action, int blue_action) {
  const int red = e.cell[0], blue = e.cell[1];
  int to_red = red_action == FORWARD ? ahead(red, e.direction[0], 1) : red;
  int to_blue = blue_action == FORWARD ? ahead(blue, e.direction[1], 1) : blue;
  if (to_red == to_blue) {
    const bool red_moves = to_red != red, blue_moves = to_blue != blue, red_first = random_int(e, BOTH_MOVE, 2) == 1;
    if (red_moves & (!blue_moves | !red_first)) to_red = red;
    if (blue_moves & (!red_moves | red_first)) to_blue = blue;
  }
  e.direction[0] = turned(e.direction[0], red_action);
  e.direction[1] = turned(e.direction[1], blue_action);
  e.cell[0] = to_red;
  e.cell[1] = to_blue;
  for (int a = 0; a < AGENTS; ++a) {
    e.inventory(a, 0) += e.grid[e.cell[a]] == RED_COIN;
    e.inventory(a, 1) += e.grid[e.cell[a]] == BLUE_COIN;
  }
  e.grid[red] = e.grid[blue] = EMPTY;
  stand(e);
}

// Whether a beam of the player hits the other one; it lights up what is empty.
GZ bool shoot(Env e, int a, int action) {
  if (action != INTERACT) return false;
  bool hit = false;
  for (int k = 0; k < 4; ++k) {
    const int c = lit(e.cell[a], e.direction[a], k);
    hit |= e.grid[c] == (a == 0 ? BLUE : RED);
    if (e.grid[c] == EMPTY) e.grid[c] = BEAM;
  }
  return hit;
}

GZ void meet(Env e, int red_action, int blue_action) {
  const auto &c = e.cfg;
  const bool last = e.t % c.num_inner_steps == 0;
  const bool red_hits = shoot(e, 0, red_action), blue_hits = shoot(e, 1, blue_action);
  const bool met = (red_hits | blue_hits) & (coins(e, 0) > 0) & (coins(e, 1) > 0);
  if (met & !last) {
    e.reward[0] = payoff(e, 0, 1, c.red_payoff_rr, c.red_payoff_rb, c.red_payoff_br, c.red_payoff_bb);
    e.reward[1] = payoff(e, 0, 1, c.blue_payoff_rr, c.blue_payoff_rb, c.blue_payoff_br, c.blue_payoff_bb);
  }
  if (met) e.freeze = c.freeze_penalty;
  if (e.freeze > 0) e.freeze -= 1;
  if (e.freeze == 0) begin_anew(e);
  if (met) e.freeze = c.freeze_penalty;
  if (last) begin_round(e);
  if (e.t >= c.num_inner_steps * c.num_outer_steps) e.terminate_all();
}

GZ void step(Env e) {
  const bool frozen = broadcast(e, [=] { return e.freeze > 0; });
  once(e, [=] { move(e, frozen ? STAY : e.action[0], frozen ? STAY : e.action[1]); });
  lanes(e, CELLS, [=](int c) {
    if (e.grid[c] == BEAM) e.grid[c] = EMPTY;
  });
  once(e, [=] { meet(e, frozen ? STAY : e.action[0], frozen ? STAY : e.action[1]); });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, Const<VIEW * VIEW>(), [=](int a, int k) {
    const int cell = seen(e.cell[a], e.direction[a], k / VIEW, k % VIEW);
    const int item = cell == OUTSIDE ? WALL : (int)e.grid[cell], self = a == 0 ? RED : BLUE, other = a == 0 ? BLUE : RED;
    const int angle = (e.direction[1 - a] + 4 - e.direction[a]) % 4;
    const int shown = item == self ? RED : item == other ? BLUE : item;
    const u32 faces = item == other ? 1u << angle : 0u;
    write_bits(e.observation[a] + k * CHANNELS, CHANNELS, 1u << shown >> 1 | faces << ITEMS);
  });
  lanes(e, AGENTS, [=](int a) {
    const int b = 1 - a;
    const bool open = e.freeze >= 0;
    Row out = e.observation[a] + VIEW * VIEW * CHANNELS;
    out[0] = e.inventory(a, 0);
    out[1] = e.inventory(a, 1);
    out[2] = coins(e, a) > 0;
    out[3] = coins(e, b) > 0;
    out[4] = open ? e.inventory(b, 0) : 0;
    out[5] = open ? e.inventory(b, 1) : 0;
  });
}
