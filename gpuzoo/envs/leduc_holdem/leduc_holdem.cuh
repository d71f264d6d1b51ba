// Southey et al., "Bayes' Bluff: Opponent Modelling in Poker" (2005).

enum Move { CALL, RAISE, FOLD };

constexpr int NONE = -1, MAX_RAISES = 2, HIGHEST = 13;

// The k-th of the cards that are left in a deck of two jacks, two queens and two kings.
GZ int left_card(int k, int first, int second) {
  int found = 0;
  for (int card = 0; card < 3; ++card) {
    const int copies = 2 - (card == first) - (card == second);
    found = k >= 0 && k < copies ? card : found;
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
  return action == CALL || (action == RAISE && e.raises < MAX_RAISES) || (action == FOLD && e.last_action == RAISE);
}

// 1 if the first card wins, -1 if it loses, 0 if both are alike.
GZ int showdown(int own, int other, int shown) {
  if (own == other) return 0;
  return own == shown || (other != shown && own > other) ? 1 : -1;
}

GZ void step(Env e) {
  once(e, [=] {
    const int mover = e.to_move, other = 1 - mover, action = e.action[mover];
    if (!is_legal(e, action)) {
      e.reward[mover] = -1.f;
      e.terminate_all();
      return;
    }
    const bool folds = action == FOLD, closes = folds || (action == CALL && e.last_action != NONE);
    const bool over = folds || (closes && e.round == 1);
    const int before = e.chips[mover], matched = e.chips[other];
    const int raised = max(before, matched) + 2 * (e.round + 1);
    const int chips = action == CALL ? matched : action == RAISE ? raised : before;
    e.chips[mover] = chips;
    e.round += closes;
    e.raises = closes ? 0 : e.raises + (action == RAISE);
    e.last_action = closes ? (int)NONE : action;
    e.to_move = closes ? 0 : other;
    if (!over) return;
    const int result = folds ? -1 : showdown(e.card[mover], e.card[other], e.public_card);
    const float won = (float)(result * min(chips, matched));
    e.reward[mover] = won;
    e.reward[other] = -won;
    e.terminate_all();
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    const auto out = e.observation[a];
    for (int k = 0; k < 3; ++k) {
      out[k] = e.card[a] == k;
      out[3 + k] = e.round == 1 && e.public_card == k;
      e.action_mask[a][k] = a == e.to_move && is_legal(e, k);
    }
    for (int k = 0; k <= HIGHEST; ++k) {
      out[6 + k] = e.chips[a] == k;
      out[20 + k] = e.chips[1 - a] == k;
    }
  });
}
