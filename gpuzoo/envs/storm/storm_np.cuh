// STORM for any number of players on a field of any size (Khan, Willi, Kwan, Tacchetti, Lu, Grefenstette, Rocktäschel
// and Foerster, "Scaling opponent shaping to high dimensional games", 2023), as JaxMARL's storm_np has it.

#include "field.cuh"

constexpr int CELLS = SIDE * SIDE, COINS = Config::num_coins, ITEMS = 4, CHANNELS = ITEMS + 10;
constexpr int EMPTY = 0, WALL = 1, BEAM = 2, RED_COIN = 3, BLUE_COIN = 4, PLAYER_0 = 5;
constexpr int LEFT = 0, RIGHT = 1, FORWARD = 2, STAY = 3, NEAR = 4, FAR = 5, SHOOT_RIGHT = 6, SHOOT_LEFT = 7;
constexpr int MOVES = 0, NEARLY = 1, FARTHER = 2, DIRECTIONS = 3, AGAIN = 4, PLACES = 5, NEW_PLACES = 6;  // draws
constexpr int NOBODY = -1, MOST_KNOWN = 12;

GZ bool is_player(int item) { return item >= PLAYER_0; }

GZ bool is_frozen(Env e, int a) {
  bool any = false;
  GZ_ROLLED
  for (int b = 0; b < AGENTS; ++b) any |= e.freeze(a, b) > 0;
  return any;
}

GZ void stand(Env e) {
  for (int a = 0; a < AGENTS; ++a) e.grid[e.cell[a]] = PLAYER_0 + a;
}

GZ void lift(Env e) {
  for (int a = 0; a < AGENTS; ++a) e.grid[e.cell[a]] = EMPTY;
}

GZ void lay(Env e, int first, int item) {
  for (int k = first; k < first + COINS; ++k) e.grid[e.coin_cell[k]] = item;
}

// The k-th cell of a shuffled field; those before it are drawn already.
GZ int next_cell(Env e, int k, int draw) {
  const int j = k + random_int(e, k, draw, CELLS - k), cell = e.order[j];
  e.order[j] = e.order[k];
  e.order[k] = cell;
  return cell;
}

GZ void begin_round(Env e) {
  GZ_ROLLED
  for (int c = 0; c < CELLS; ++c) {
    e.order[c] = c;
    e.grid[c] = EMPTY;
  }
  GZ_ROLLED
  for (int a = 0; a < AGENTS; ++a) {
    e.cell[a] = next_cell(e, a, PLACES);
    e.direction[a] = random_int(e, a, DIRECTIONS, 3);
    e.inventory(a, 0) = e.inventory(a, 1) = 0;
    GZ_ROLLED
    for (int b = 0; b < AGENTS; ++b) e.freeze(a, b) = -1;
  }
  GZ_ROLLED
  for (int k = 0; k < 2 * COINS; ++k) e.coin_cell[k] = next_cell(e, AGENTS + k, PLACES);
  lay(e, 0, RED_COIN);
  lay(e, COINS, BLUE_COIN);
  stand(e);
}

GZ void reset(Env e) {
  once(e, [=] { begin_round(e); });
}

GZ int turned(int direction, int action) { return (direction + (action == LEFT) + 3 * (action == RIGHT)) % 4; }

// Whether a, which wants a cell that others want, too, is put back.
GZ bool put_back(Env e, int a) {
  int want = 0, move = 0, before = 0, first = NOBODY, stays = NOBODY;
  GZ_ROLLED
  for (int b = 0; b < AGENTS; ++b) {
    if (e.wanted[b] != e.wanted[a]) continue;
    const bool moves = e.wanted[b] != e.cell[b];
    first = first == NOBODY ? b : first;
    stays = (stays == NOBODY) & !moves ? b : stays;
    before += b < a;
    move += moves;
    ++want;
  }
  if ((want == 1) | (move == 0)) return false;
  return stays != NOBODY ? a != stays : before != random_int(e, first, MOVES, want);
}

// The same, where no two players may come to stand in one cell.
GZ bool put_back_for_sure(Env e, int a) {
  const u32 own = random_bits(e, a, MOVES);
  bool stops = false;
  for (int b = 0; b < AGENTS; ++b) {
    const u32 other = random_bits(e, b, MOVES);
    const bool first = (other > own) | ((other == own) & (b < a));
    stops |= (b != a) & (e.wanted[a] != e.cell[a]) & ((e.cell[b] == e.wanted[a]) | ((e.wanted[b] == e.wanted[a]) & first));
  }
  return stops;
}

GZ int target(Env e, int a, int action) { return e.grid[lit(e.cell[a], e.direction[a], action - NEAR)]; }

GZ bool may_be_hit(Env e, int a, int item) {
  const int b = item - PLAYER_0;
  return is_player(item) && b != a && !is_frozen(e, b) && coins(e, b) > 0;
}

// Whom a's shot would hit, if nobody else shot.
GZ int aims_at(Env e, int a) {
  const int action = e.acts[a];
  if (action < NEAR || !e.ready[a]) return NOBODY;
  const int item = target(e, a, action);
  const bool left = (action == SHOOT_LEFT) & !e.cfg.corrected;
  if (!may_be_hit(e, a, left ? target(e, a, SHOOT_RIGHT) : item)) return NOBODY;
  return is_player(item) ? item - PLAYER_0 : NOBODY;
}

// Whom a hits: of those who shoot at one player from the same distance a draw chooses.
GZ int hits(Env e, int a) {
  const int b = e.aim[a];
  if (b == NOBODY || is_frozen(e, b)) return NOBODY;
  const bool near = e.acts[a] == NEAR;
  int shoot = 0, before = 0, first = NOBODY;
  bool nearer = false;
  GZ_ROLLED
  for (int c = 0; c < AGENTS; ++c) {
    const bool also_near = e.acts[c] == NEAR;
    nearer |= (e.aim[c] == b) & also_near & !near;
    if ((e.aim[c] != b) | (also_near != near)) continue;
    first = first == NOBODY ? c : first;
    before += c < a;
    ++shoot;
  }
  if (e.cfg.corrected & nearer) return NOBODY;
  const int chosen = near ? random_int(e, first, NEARLY, shoot) : random_int(e, first, FARTHER, shoot);
  return before == chosen ? b : NOBODY;
}

GZ float first_payoff(Env e, int a, int b) {
  const auto &c = e.cfg;
  return payoff(e, a, b, c.first_payoff_rr, c.first_payoff_rb, c.first_payoff_br, c.first_payoff_bb);
}

GZ float second_payoff(Env e, int a, int b) {
  const auto &c = e.cfg;
  return payoff(e, a, b, c.second_payoff_rr, c.second_payoff_rb, c.second_payoff_br, c.second_payoff_bb);
}

// What the one who hit somebody gets: the first payoff of the hit of whom it hit.
GZ float of_hitting(Env e, int a) {
  const int b = e.hit[a], c = b == NOBODY ? NOBODY : (int)e.hit[b];
  return c == NOBODY ? 0.f : first_payoff(e, c, b);
}

GZ float of_being_hit(Env e, int a) {
  const int b = e.hit[a];
  return b == NOBODY ? 0.f : of_hitting(e, b) + second_payoff(e, b, a);
}

GZ float pay(Env e, int a) {
  if (e.cfg.corrected) {
    float sum = e.hit[a] == NOBODY ? 0.f : first_payoff(e, a, e.hit[a]);
    GZ_ROLLED
    for (int b = 0; b < AGENTS; ++b)
      if (e.hit[b] == a) sum += second_payoff(e, b, a);
    return sum;
  }
  int last = NOBODY;
  GZ_ROLLED
  for (int b = 0; b < AGENTS; ++b) last = (e.hit[b] == a) | ((a == 0) & (e.hit[b] == NOBODY)) ? b : last;
  if (last == NOBODY) return of_hitting(e, a);
  return of_being_hit(e, e.hit[last] == NOBODY ? 0 : last);
}

GZ bool shoots(Env e, int a) { return (e.acts[a] >= NEAR) & (e.ready[a] != 0); }

// Whether a's beam is seen in the k-th cell: a later player, for whom that cell is the k-th, too, puts it out.
GZ bool shines(Env e, int a, int k) {
  if (!shoots(e, a)) return false;
  const int cell = lit(e.cell[a], e.direction[a], k);
  bool out = false;
  GZ_ROLLED
  for (int b = a + 1; b < AGENTS; ++b) out |= !shoots(e, b) & (lit(e.cell[b], e.direction[b], k) == cell);
  return e.cfg.corrected | !out;
}

// Players whose time is over begin anew, and so do the coins that are gone.
GZ void begin_anew(Env e) {
  int drawn = 0;
  bool red = false, blue = false;
  if (e.cfg.corrected) {  // cells that stay as they are come first in the order
    GZ_ROLLED
    for (int c = 0; c < CELLS; ++c) {
      const int item = e.grid[c];
      const bool leaves = is_player(item) && e.ended[max(item - PLAYER_0, 0)];
      if ((item == EMPTY) | (item == BEAM) | leaves) continue;
      GZ_ROLLED
      for (int k = 0; k < CELLS; ++k)
        if (e.order[k] == c) e.order[k] = e.order[drawn];
      e.order[drawn] = c;
      ++drawn;
    }
  }
  GZ_ROLLED
  for (int k = 0; k < 2 * COINS; ++k) e.gone[k] = e.grid[e.coin_cell[k]] != (k < COINS ? RED_COIN : BLUE_COIN);
  lift(e);
  GZ_ROLLED
  for (int a = 0; a < AGENTS; ++a) {
    if (!e.ended[a]) continue;
    e.cell[a] = next_cell(e, drawn, NEW_PLACES);
    e.direction[a] = random_int(e, a, AGAIN, 3);
    e.inventory(a, 0) = e.inventory(a, 1) = 0;
    ++drawn;
  }
  stand(e);
  GZ_ROLLED
  for (int k = 0; k < 2 * COINS; ++k) {
    if (!e.gone[k]) continue;
    e.coin_cell[k] = next_cell(e, drawn, NEW_PLACES);
    red |= k < COINS;
    blue |= k >= COINS;
    ++drawn;
  }
  if (red) lay(e, 0, RED_COIN);
  if (blue) lay(e, COINS, BLUE_COIN);
}

GZ void step(Env e) {
  lanes(e, AGENTS, [=](int a) {
    const int action = is_frozen(e, a) ? STAY : (int)e.action[a];
    e.acts[a] = action;
    e.wanted[a] = action == FORWARD ? ahead(e.cell[a], e.direction[a], 1) : (int)e.cell[a];
  });
  lanes(e, AGENTS, [=](int a) {
    const bool back = e.cfg.corrected ? put_back_for_sure(e, a) : put_back(e, a);
    e.went[a] = back ? e.cell[a] : e.wanted[a];
    e.direction[a] = back & !e.cfg.corrected ? (int)e.direction[a] : turned(e.direction[a], e.acts[a]);
    const int item = e.grid[e.went[a]];
    e.inventory(a, 0) += item == RED_COIN;
    e.inventory(a, 1) += item == BLUE_COIN;
    e.ready[a] = coins(e, a) > 0 && !is_frozen(e, a);
  });
  once(e, [=] {
    lift(e);
    GZ_ROLLED
    for (int a = 0; a < AGENTS; ++a) e.cell[a] = e.went[a];
    stand(e);
  });
  lanes(e, CELLS, [=](int c) {
    if (e.grid[c] == BEAM) e.grid[c] = EMPTY;
    e.lights[c] = 0;
    e.order[c] = c;
  });
  lanes(e, AGENTS, [=](int a) { e.aim[a] = aims_at(e, a); });
  lanes(e, AGENTS, [=](int a) { e.hit[a] = hits(e, a); });
  const bool last = broadcast(e, [=] { return e.t % e.cfg.num_inner_steps == 0; });
  lanes(e, AGENTS, [=](int a) {
    e.reward[a] = last ? 0.f : pay(e, a);
    bool ends = false;
    GZ_ROLLED
    for (int b = 0; b < AGENTS; ++b) {
      const int before = e.freeze(a, b), now = (e.hit[a] == b) | (e.hit[b] == a) ? e.cfg.freeze_penalty : before;
      const int after = now - ((now <= before) & (now > 0));
      e.freeze(a, b) = after;
      ends |= (after == 0) & (before == 1);
    }
    e.ended[a] = ends;
  });
  lanes(e, AGENTS, Const<4>(), [=](int a, int k) {
    if (shines(e, a, k)) scatter_or(e.lights[lit(e.cell[a], e.direction[a], k)], 1u);
  });
  lanes(e, CELLS, [=](int c) {
    if ((e.lights[c] != 0) & (e.grid[c] == EMPTY)) e.grid[c] = BEAM;
  });
  const bool anew = lane_any(e, AGENTS, [=](int a) { return e.ended[a]; });
  once(e, [=] {
    if (anew & !last) begin_anew(e);
    if (last) begin_round(e);
    if (e.t >= e.cfg.num_inner_steps * e.cfg.num_outer_steps) e.terminate_all();
  });
}

// Whether b is among the first twelve that the row of a's memory of meetings names.
GZ bool knows(Env e, int a, int b) {
  const int row = min(PLAYER_0 + a, AGENTS - 1);
  int known = 0;
  for (int c = 0; c < b; ++c) known += e.freeze(row, c) != 0;
  return (e.freeze(row, b) != 0) & (known < MOST_KNOWN);
}

GZ void observe(Env e) {
  lanes(e, AGENTS, Const<VIEW * VIEW>(), [=](int a, int k) {
    const int cell = seen(e.cell[a], e.direction[a], k / VIEW, k % VIEW);
    const int item = cell == OUTSIDE ? WALL : (int)e.grid[cell], b = item - PLAYER_0;
    Row out = e.observation[a] + k * CHANNELS;
    for (int m = 0; m < ITEMS; ++m) out[m] = item == m + 1;
    if (b < 0) {
      for (int m = ITEMS; m < CHANNELS; ++m) out[m] = 0;
      return;
    }
    const bool corrected = e.cfg.corrected, self = b == (corrected ? a : min(a + 1, AGENTS - 1));
    const int shown = corrected ? b : (b + AGENTS - 1) % AGENTS;
    const bool known = corrected ? e.freeze(a, b) > 0 : (b > 0) && is_frozen(e, a) && knows(e, a, shown);
    const int angle = b == a ? -1 : (e.direction[b] + 4 - e.direction[a]) % 4;
    Row more = out + ITEMS;
    more[0] = self;
    more[1] = !self;
    for (int m = 0; m < 4; ++m) more[2 + m] = m == angle;
    more[6] = coins(e, b) > 0;
    more[7] = self | known ? min((int)e.inventory(shown, 0), MOST_SHOWN) : 0;
    more[8] = self | known ? min((int)e.inventory(shown, 1), MOST_SHOWN) : 0;
    more[9] = !self && is_frozen(e, shown);
  });
}
