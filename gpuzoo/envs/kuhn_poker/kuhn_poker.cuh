// Kuhn, "A Simplified Two-Person Poker" (1950).

enum Move { BET, PASS };

GZ void reset(Env e) {
  once(e, [=] {
    const int deal = random_int(e, 0, 6), first = deal >> 1;
    e.card[0] = first;
    e.card[1] = (first + 1 + (deal & 1)) % 3;
    e.bet[0] = e.bet[1] = 0;
    e.last_action = -1;
    e.to_move = 0;
  });
}

GZ int choose(Env e, int player, u32 bits) { return player == e.to_move ? (int)mulhi(bits, 2u) : 0; }

GZ void step(Env e) {
  once(e, [=] {
    const int mover = e.to_move, other = 1 - mover, action = e.action[mover], before = e.last_action;
    if (action < 0) {
      e.reward[mover] = -1.f;
      e.terminate_all();
      return;
    }
    e.bet[mover] += action == BET;
    e.last_action = action;
    e.to_move = other;
    const bool folds = before == BET && action == PASS, shows = before == action;
    if (!folds && !shows) return;
    const float stake = shows && action == BET ? 2.f : 1.f;
    const bool wins = shows && e.card[mover] > e.card[other];
    e.reward[mover] = wins ? stake : -stake;
    e.reward[other] = wins ? -stake : stake;
    e.terminate_all();
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    for (int k = 0; k < 3; ++k) e.observation[a][k] = e.card[a] == k;
    for (int k = 0; k < 2; ++k) {
      e.observation[a][3 + k] = e.bet[a] == k;
      e.observation[a][5 + k] = e.bet[1 - a] == k;
      e.action_mask[a][k] = a == e.to_move;
    }
  });
}
