// Southey et al., "Bayes' Bluff: Opponent Modelling in Poker" (2005).

enum Move { CALL, RAISE, FOLD };

constexpr int NONE = -1, MAX_RAISES = 2, HIGHEST = 13;

// The k-th of the cards that are left in a deck of two jacks, two queens and two kings.
GZ int left_card(int k, int first, int second) {
  int found = 0;
  for (int card = 0; card < 3; ++card) {
    const int copies = 2 - (int)(card == first) - (int)(card == second);
    found = (k >= 0) & (k < copies) ? card : found;
    k -= copies;
  }
  return found;
}

GZ void reset(Env e) {
  once(e, [=] {
    const int first = left_card(random_int(e, 0, 6), NONE, NONE);
    const int second = left_card(random_int(e, 1, 5), first, NONE);
    e.card[0] = first;
    e.card[1] = second;
    e.public_card = left_card(random_int(e, 2, 4), first, second);
    e.chips[0] = e.chips[1] = 1;
    e.round = e.raises = 0;
    e.last_action = NONE;
    e.to_move = 0;
  });
}

GZ bool is_legal(Env e, int action) {
  return (action == CALL) | ((action == RAISE) & (e.raises < MAX_RAISES)) | ((action == FOLD) & (e.last_action == RAISE));
}

GZ u64 legal(Env e) { return bits_where<3>([=](int k) { return is_legal(e, k); }); }

GZ int choose(Env e, int player, u32 bits) { return player == e.to_move ? chosen_bit(legal(e), bits) : 0; }

// 1 if the first card wins, -1 if it loses, 0 if both are alike.
GZ int showdown(int own, int other, int shown) {
  return own == other ? 0 : (own == shown) | ((other != shown) & (own > other)) ? 1 : -1;
}

GZ void step(Env e) {
  once(e, [=] {
    const int mover = e.to_move, other = 1 - mover, action = e.action[mover];
    const bool legal = is_legal(e, action), raises = legal & (action == RAISE), folds = legal & (action == FOLD);
    const bool closes = folds | ((action == CALL) & (e.last_action != NONE)), over = folds | (closes & (e.round == 1));
    const int before = mover == 0 ? e.chips[0] : e.chips[1], matched = mover == 0 ? e.chips[1] : e.chips[0];
    const int raised = max(before, matched) + 2 * (e.round + 1);
    const int chips = action == CALL ? matched : raises ? raised : before;
    const int own = mover == 0 ? e.card[0] : e.card[1], others = mover == 0 ? e.card[1] : e.card[0];
    const int result = folds ? -1 : showdown(own, others, e.public_card);
    const float won = (float)(result * min(chips, matched));
    for (int a = 0; a < AGENTS; ++a) {
      e.chips[a] = a == mover ? chips : matched;
      e.reward[a] = over ? (a == mover ? won : -won) : (a == mover) & !legal ? -1.f : 0.f;
    }
    e.round += (int)closes;
    e.raises = closes ? 0 : e.raises + (int)raises;
    e.last_action = closes ? (int)NONE : legal ? action : e.last_action;
    e.to_move = closes ? 0 : legal ? other : mover;
    if (over | !legal) e.terminate_all();
  });
}

GZ u64 bit(int k) { return 1ull << k; }

GZ void observe(Env e) {
  lanes_of_bits(
      e, OBSERVERS, Const<6 + 2 * CHIPS>(), [=](int row) { return e.observation[row]; },
      [=](int row, int) {
        const int a = observer(e, row), card = a == 0 ? e.card[0] : e.card[1];
        const int own = a == 0 ? e.chips[0] : e.chips[1], other = a == 0 ? e.chips[1] : e.chips[0];
        const u64 shown = e.round == 1 ? bit(3 + e.public_card) : 0ull;
        return bit(card) | shown | bit(6 + own) | bit(6 + CHIPS + other);
      });
  lanes_of_bits(
      e, OBSERVERS, Const<3>(), [=](int row) { return e.action_mask[row]; },
      [=](int row, int) { return observer(e, row) == e.to_move ? legal(e) : 0ull; });
}
