// Lerer and Peysakhovich, "Maintaining cooperation in complex social dilemmas using deep reinforcement learning" (2017),
// in the form of JaxMARL: rounds within an episode. A cell is 3 * row + column.

constexpr int RIGHT = 0, LEFT = 1, DOWN = 2, UP = 3;

GZ int wrap(int k) { return k < 0 ? 2 : k > 2 ? 0 : k; }

GZ int moved(int cell, int action) {
  const int row = cell / 3 + (action == DOWN) - (action == UP), column = cell % 3 + (action == RIGHT) - (action == LEFT);
  return 3 * wrap(row) + wrap(column);
}

// Where `cell` is seen by whom `self` is the middle.
GZ int seen_from(int self, int cell) {
  const int row = cell / 3 - self / 3 + 1, column = cell % 3 - self % 3 + 1;
  return 3 * wrap(row) + wrap(column);
}

GZ void place(Env e) {
  const int draw = random_int(e, 0, 9 * 9 * 9 * 9);
  e.red = draw % 9;
  e.blue = draw / 9 % 9;
  e.red_coin = draw / 81 % 9;
  e.blue_coin = draw / 729;
}

GZ void reset(Env e) {
  once(e, [=] {
    place(e);
    e.own_coins = e.other_coins = 0;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    const auto &c = e.cfg;
    const int red = moved(e.red, e.action[0]), blue = moved(e.blue, e.action[1]);
    const bool rr = red == e.red_coin, rb = red == e.blue_coin, br = blue == e.red_coin, bb = blue == e.blue_coin;
    const float for_red = (rr ? c.red_takes_red : 0.f) + (rb ? c.red_takes_blue : 0.f) + (br ? c.red_loses : 0.f);
    const float for_blue = (br ? c.blue_takes_red : 0.f) + (bb ? c.blue_takes_blue : 0.f) + (rb ? c.blue_loses : 0.f);
    const bool last = e.t % c.num_inner_steps == 0;
    e.reward[0] = last ? 0.f : c.shared_rewards ? for_red + for_blue : for_red;
    e.reward[1] = last ? 0.f : c.shared_rewards ? for_red + for_blue : for_blue;
    e.own_coins += rr + bb;
    e.other_coins += rb + br;
    e.red = red;
    e.blue = blue;
    if (rr | br) e.red_coin = random_int(e, 1, 9);
    if (rb | bb) e.blue_coin = random_int(e, 2, 9);
    if (last) place(e);
    if (e.t >= c.num_inner_steps * c.num_outer_steps) e.terminate_all();
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    const int self = a == 0 ? e.red : e.blue, other = a == 0 ? e.blue : e.red;
    const int own = a == 0 ? e.red_coin : e.blue_coin, others = a == 0 ? e.blue_coin : e.red_coin;
    const bool ego = e.cfg.egocentric;
    const int cells[4] = {ego ? 4 : self, ego ? seen_from(self, other) : other, ego ? seen_from(self, own) : own,
                          ego ? seen_from(self, others) : others};
    Row out = e.observation[a];
    for (int cell = 0; cell < 9; ++cell)
      for (int plane = 0; plane < 4; ++plane) out[4 * cell + plane] = cells[plane] == cell;
  });
}
