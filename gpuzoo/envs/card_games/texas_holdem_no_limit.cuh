#include "poker.cuh"

enum Move { FOLD, CHECK_OR_CALL, RAISE_HALF_POT, RAISE_POT, ALL_IN, MOVES };

GZ void reset(Env e) {
  once(e, [=] {
    deal(e);
    const int dealer = random_int(e, 0, PLAYERS), big = (dealer + 2) % PLAYERS;
    post_blinds(e, (dealer + 1) % PLAYERS, big);
    e.dealer = dealer;
    e.round = e.acted = 0;
    e.folded = 0u;
    e.to_move = (big + 1) % PLAYERS;
    e.last_action = -1;
    e.last_player = 0;
  });
}

GZ int pot(Env e) {
  int sum = 0;
  GZ_ROLLED
  for (int p = 0; p < PLAYERS; ++p) sum += e.chips[p];
  return sum;
}

GZ u64 legal_moves(Env e) {
  if (is_decided(e)) return 0;
  const int chips = e.chips[e.to_move], left = STACK - chips, to_call = highest_bet(e) - chips, all = pot(e);
  const u32 always = 1u << FOLD | 1u << CHECK_OR_CALL;
  if (to_call > 0 && to_call >= left) return always;
  const bool half = all / 2 <= left && all / 2 > to_call;
  return always | (half ? 1u << RAISE_HALF_POT : 0u) | (all <= left ? 1u << RAISE_POT : 0u) | 1u << ALL_IN;
}

GZ int choose(Env e, int player, u32 bits) { return player == e.to_move ? chosen_bit(legal_moves(e), bits) : 0; }

GZ u32 all_in(Env e) {
  u32 found = 0u;
  GZ_ROLLED
  for (int p = 0; p < PLAYERS; ++p) found |= e.chips[p] == STACK ? 1u << p : 0u;
  return found & ~e.folded;
}

// Nobody can bet any more: all have folded or bet everything, but for one at most, who is not behind.
GZ bool nobody_bets(Env e, u32 out) {
  const int playing = PLAYERS - popcount(out);
  if (playing > 1) return false;
  return playing == 0 || e.chips[chosen_bit(EVERYBODY & ~out, 0u)] >= highest_bet(e);
}

GZ void end_round(Env e, u32 out) {
  const bool all = nobody_bets(e, out);
  int first = (e.dealer + 1) % PLAYERS;
  while (!all && (out >> first & 1u)) first = (first + 1) % PLAYERS;
  e.to_move = first;
  e.acted = 0;
  e.round = all ? (int)ROUNDS : e.round + 1;
  show_cards(e, min(e.round + 2, 5));
}

GZ void step(Env e) {
  once(e, [=] {
    const int mover = e.to_move, action = e.action[mover];
    if (action < 0 || !(legal_moves(e) >> action & 1)) {
      e.reward[mover] = -1.f;
      e.terminate_all();
      return;
    }
    const int chips = e.chips[mover], all = pot(e);
    if (action == FOLD) e.folded |= 1u << mover;
    else {
      e.chips[mover] = action == CHECK_OR_CALL    ? highest_bet(e)
                       : action == RAISE_HALF_POT ? chips + all / 2
                       : action == RAISE_POT      ? chips + all
                                                  : (int)STACK;
      e.acted = (action == CHECK_OR_CALL ? e.acted : 0) + (e.chips[mover] < STACK);
    }
    e.last_action = action;
    e.last_player = mover;
    e.to_move = next_player(e, mover);
    const u32 out = e.folded | all_in(e);
    if (e.acted + popcount(out) >= PLAYERS) end_round(e, out);
    end_if_decided(e, 1.f);
  });
}

GZ void observe(Env e) {
  const int most = broadcast(e, [=] { return highest_bet(e); });
  lanes(e, OBSERVERS, [=](int row) {
    const int a = observer(e, row);
    const u64 cards = e.hand[a] | e.public_cards;
    const auto out = words(e.observation[row]);
    for (int k = 0; k < CARDS / 2; ++k) out[k] = as_halves(cards >> 2 * k);
    out[CARDS / 2] = (u32)e.chips[a] | (u32)most << 16;
    const u64 legal = a == e.to_move ? legal_moves(e) : 0;
    for (int k = 0; k < MOVES; ++k) e.action_mask[row][k] = (i8)(legal >> k & 1);
  });
}
