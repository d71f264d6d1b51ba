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
    const bool legal = action >= 0, folds = (before == BET) & (action == PASS), shows = legal & (before == action);
    const int higher = e.card[0] > e.card[1] ? 0 : 1;
    const int stake = action == BET ? 2 : 1, won = !(folds | shows) ? 0 : shows & (higher == mover) ? stake : -stake;
    for (int a = 0; a < AGENTS; ++a) {
      e.bet[a] += (int)((action == BET) & (a == mover));
      e.reward[a] = (float)(a != mover ? -won : legal ? won : -1);
    }
    e.last_action = legal ? action : before;
    e.to_move = legal ? other : mover;
    if (folds | shows | !legal) e.terminate_all();
  });
}

GZ void observe(Env e) {
  lanes(e, OBSERVERS, [=](int row) {
    const int a = observer(e, row), card = a == 0 ? e.card[0] : e.card[1];
    const int own = a == 0 ? e.bet[0] : e.bet[1], other = a == 0 ? e.bet[1] : e.bet[0];
    for (int k = 0; k < 3; ++k) e.observation[row][k] = card == k;
    for (int k = 0; k < 2; ++k) {
      e.observation[row][3 + k] = own == k;
      e.observation[row][5 + k] = other == k;
      e.action_mask[row][k] = a == e.to_move;
    }
  });
}
