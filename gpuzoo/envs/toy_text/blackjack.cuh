// Sutton and Barto, "Reinforcement learning: an introduction", example 5.1. Cards come from an endless deck.
#include "masks.cuh"

constexpr int DRAWS = 10;  // of the dealer, at most: A A and A A A A 6 A A A A A

struct Hand {
  int sum;  // aces count 1
  int ace;  // a mask: there is one
};

GZ int card(Env e, int draw) { return min(random_int(e, draw, 13) + 1, 10); }
GZ Hand pair(int a, int b) { return {a + b, less(a, 2) | less(b, 2)}; }
GZ Hand take(Hand hand, int drawn, int wanted) {
  return {hand.sum + (drawn & wanted), hand.ace | (less(drawn, 2) & wanted)};
}
GZ int usable_ace(Hand hand) { return hand.ace & less(hand.sum, 12); }
GZ int total(Hand hand) { return hand.sum + (10 & usable_ace(hand)); }
GZ int score(Hand hand) { return total(hand) & less(total(hand), 22); }
GZ int is_natural(Hand hand) { return hand.ace & equal(hand.sum, 11); }  // of two cards

template <int DRAW> GZ Hand dealer_plays(Env e, Hand hand) {
  if constexpr (DRAW < DRAWS)
    return dealer_plays<DRAW + 1>(e, take(hand, card(e, DRAW), less(total(hand), 17)));
  else
    return hand;
}

GZ void reset(Env e) {
  once(e, [=] {
    e.dealer_showing = card(e, 0);
    e.dealer_hidden = card(e, 1);
    Hand player = pair(card(e, 2), card(e, 3));
    e.player_sum = player.sum;
    e.player_ace = 1 & player.ace;
    e.player_cards = 2;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    int hit = equal(e.action, 1);
    Hand player = take({e.player_sum, -e.player_ace}, card(e, 0), hit);
    e.player_sum = player.sum;
    e.player_ace = 1 & player.ace;
    e.player_cards += 1 & hit;

    Hand dealt = pair(e.dealer_showing, e.dealer_hidden);
    int ours = score(player), theirs = score(dealer_plays<0>(e, dealt));
    int halves = 2 * (less(ours, theirs) - less(theirs, ours));
    int natural = is_natural(player) & equal(e.player_cards, 2);
    if (e.cfg.sab)
      halves = choose(natural & ~is_natural(dealt), 2, halves);
    else if (e.cfg.natural)
      halves += 1 & natural & less(theirs, ours);

    int bust = less(21, total(player));
    e.reward = 0.5f * (float)choose(hit, -2 & bust, halves);
    e.terminated = 1 & (~hit | bust);
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    Hand player = {e.player_sum, -e.player_ace};
    e.observation[0] = total(player);
    e.observation[1] = e.dealer_showing;
    e.observation[2] = 1 & usable_ace(player);
  });
}
