#include "poker.cuh"

enum Move { CALL, RAISE, FOLD, CHECK, MOVES };

constexpr int MAX_RAISES = 4, RAISE_SIZES = MAX_RAISES + 1, SMALL_BET = 2;

GZ void reset(Env e) {
  once(e, [=] {
    deal(e);
    const int small = random_int(e, 0, PLAYERS), big = (small + 1) % PLAYERS;
    post_blinds(e, small, big);
    for (int r = 0; r < ROUNDS; ++r) e.raises[r] = 0;
    e.round = e.acted = 0;
    e.folded = 0u;
    e.to_move = (big + 1) % PLAYERS;
    e.last_action = -1;
    e.last_player = 0;
  });
}

GZ u64 legal_moves(Env e) {
  if (is_decided(e)) return 0;
  const bool behind = e.chips[e.to_move] < highest_bet(e), may_raise = e.raises[e.round] < MAX_RAISES;
  return (behind ? 1u << CALL : 1u << CHECK) | (may_raise ? 1u << RAISE : 0u) | 1u << FOLD;
}

GZ int choose(Env e, int player, u32 bits) { return player == e.to_move ? chosen_bit(legal_moves(e), bits) : 0; }

GZ void step(Env e) {
  once(e, [=] {
    const int mover = e.to_move, action = e.action[mover];
    if (action < 0 || !(legal_moves(e) >> action & 1)) {
      e.reward[mover] = -1.f;
      e.terminate_all();
      return;
    }
    const int bet = highest_bet(e), raise = e.round < 2 ? (int)SMALL_BET : 2 * SMALL_BET;
    if (action == CALL) e.chips[mover] = bet;
    if (action == RAISE) {
      e.chips[mover] = bet + raise;
      e.raises[e.round] += 1;
    }
    if (action == FOLD) e.folded |= 1u << mover;
    else e.acted = action == RAISE ? 1 : e.acted + 1;
    e.last_action = action;
    e.last_player = mover;
    e.to_move = next_player(e, mover);
    if (e.acted >= PLAYERS) {
      e.acted = 0;
      e.round += 1;
      show_cards(e, min(e.round + 2, 5));
    }
    end_if_decided(e, 1.f / (float)BIG_BLIND);
  });
}

GZ void observe(Env e) {
  lanes(e, OBSERVERS, [=](int row) {
    const int a = observer(e, row);
    const u64 cards = e.hand[a] | e.public_cards;
    u32 raises = 0u;
    for (int r = 0; r < ROUNDS; ++r) raises |= 1u << (RAISE_SIZES * r + e.raises[r]);
    const auto out = words(e.observation[row]);
    for (int k = 0; k < CARDS / 4; ++k) out[k] = as_bytes(cards >> 4 * k);
    for (int k = 0; k < RAISE_SIZES; ++k) out[CARDS / 4 + k] = as_bytes(raises >> 4 * k);
    const u64 legal = a == e.to_move ? legal_moves(e) : 0;
    for (int k = 0; k < MOVES; ++k) e.action_mask[row][k] = (i8)(legal >> k & 1);
  });
}
