#include "cards.cuh"

enum Move { SCORE_0, SCORE_1, DRAW, PICK_UP, DEAD_HAND, GIN, DISCARD, KNOCK = DISCARD + CARDS, MOVES = KNOCK + CARDS };
enum Phase { BEGIN_TURN, THROW, COUNT_0, COUNT_1, OVER };

constexpr int NONE = -1, HAND = 10, HIGHEST_TO_KNOCK = 10, LEAST_STOCK = 2, MOST_ACTIONS = 199;
constexpr u64 EACH_SUIT = 0x8004002001ull;              // the aces
constexpr u64 STARTS_OF_RUNS = EACH_SUIT * 0x7ffull;    // up to the jack
constexpr u64 ONES = EACH_SUIT * 0x155ull, TWOS = EACH_SUIT * 0x66ull, FOURS = EACH_SUIT * 0x78ull;
constexpr u64 EIGHTS = EACH_SUIT * 0x1f80ull, TENS = EACH_SUIT * 0x1e00ull;  // 10, jack, queen and king count 10

GZ u64 lowest(u64 set) { return set & (~set + 1ull); }
GZ int index_of(u64 one) { return popcount(one - 1ull); }

GZ int points(u64 cards) {
  return popcount(cards & ONES) + 2 * popcount(cards & (TWOS | TENS)) + 4 * popcount(cards & FOURS) +
         8 * popcount(cards & EIGHTS);
}

GZ u64 in_no_run(u64 cards) {
  const u64 starts = cards & cards >> 1 & cards >> 2 & STARTS_OF_RUNS;
  return cards & ~(starts | starts << 1 | starts << 2);
}

// The ace's place in each rank of which there are at least three cards.
GZ u64 ranks_of_sets(u64 cards) {
  const u64 s = cards, h = cards >> RANKS, d = cards >> 2 * RANKS, c = cards >> 3 * RANKS;
  return ((s & h & (d | c)) | (d & c & (s | h))) & 0x1fffull;
}

// Ways to use a rank's cards as a set: not at all, all of them, or of four cards three.
GZ int ways(u64 of_rank) { return of_rank == 0 ? 1 : popcount(of_rank) == 4 ? 6 : 2; }
GZ u64 used(u64 of_rank, int way) {
  if (way == 0) return 0;
  return way == 1 ? of_rank : of_rank & ~(lowest(of_rank) << RANKS * (way - 2));
}

struct Sets {
  u64 first, second, third;  // cards of the ranks of which there are at least three
};

GZ Sets find_sets(u64 cards) {
  u64 ranks = ranks_of_sets(cards);
  const u64 first = cards & lowest(ranks) * EACH_SUIT;
  ranks &= ranks - 1ull;
  const u64 second = cards & lowest(ranks) * EACH_SUIT;
  ranks &= ranks - 1ull;
  return Sets{first, second, cards & lowest(ranks) * EACH_SUIT};
}

GZ u64 without_sets(u64 cards, Sets sets, int way) {
  const int a = ways(sets.first), b = ways(sets.second);
  return cards & ~(used(sets.first, way % a) | used(sets.second, way / a % b) | used(sets.third, way / (a * b)));
}

GZ int all_ways(Sets sets) { return ways(sets.first) * ways(sets.second) * ways(sets.third); }

GZ int deadwood(u64 hand) {
  const Sets sets = find_sets(hand);
  int best = points(in_no_run(hand));
  GZ_ROLLED
  for (int way = 1; way < all_ways(sets); ++way) best = min(best, points(in_no_run(without_sets(hand, sets, way))));
  return best;
}

// Cards of a hand of eleven that leave at most ten points of deadwood, and those that leave none.
GZ void find_knocks(Env e, u64 hand) {
  const Sets sets = find_sets(hand);
  u64 knocks = 0, gins = 0;
  GZ_ROLLED
  for (int way = 0; way < all_ways(sets); ++way) {
    const u64 rest = without_sets(hand, sets, way);
    if (points(in_no_run(rest)) > 2 * HIGHEST_TO_KNOCK) continue;
    GZ_ROLLED
    for (u64 left = rest; left != 0; left &= left - 1ull) {
      const int after = points(in_no_run(rest & ~lowest(left)));
      knocks |= after <= HIGHEST_TO_KNOCK ? lowest(left) : 0;
      gins |= after == 0 ? lowest(left) : 0;
    }
  }
  e.knocks = knocks;
  e.gins = gins;
}

GZ u64 draw(Env e, u64 deck, int draw) { return drawn_card(deck, random_bits(e, draw)); }

GZ u64 stock(Env e) { return DECK & ~(e.hand[0] | e.hand[1] | e.discards | e.gone); }

GZ void reset(Env e) {
  once(e, [=] {
    const int first = random_int(e, 0, 2);
    u64 deck = DECK;
    for (int p = 0; p < 2; ++p) {
      e.hand[p] = e.known[p] = 0;
      GZ_ROLLED
      for (int k = 0; k < HAND + (p == first); ++k) {
        const u64 card = draw(e, deck, 1 + k + (HAND + 1) * p);
        deck &= ~card;
        e.hand[p] |= card;
      }
    }
    e.discards = e.gone = 0;
    e.top = e.below = e.picked_up = NONE;
    e.to_move = first;
    e.phase = THROW;
    e.actions = 0;
    e.went_out = NONE;
    e.gin = false;
    e.last_action = NONE;
    find_knocks(e, e.hand[first]);
  });
}

// Actions below DISCARD.
GZ u64 simple_moves(Env e) {
  if (e.phase == COUNT_0) return 1u << SCORE_0;
  if (e.phase == COUNT_1) return 1u << SCORE_1;
  if (e.phase == THROW) return e.gins != 0 ? 1u << GIN : 0u;
  if (e.phase == OVER) return 0;
  if (e.actions >= MOST_ACTIONS) return 1u << DEAD_HAND;
  return 1u << PICK_UP | (popcount(stock(e)) > LEAST_STOCK ? 1u << DRAW : 1u << DEAD_HAND);
}

GZ u64 discardable(Env e) {
  const u64 picked_up = e.picked_up >= 0 ? 1ull << e.picked_up : 0;
  return e.phase == THROW && e.gins == 0 ? e.hand[e.to_move] & ~picked_up : 0;
}
GZ u64 knockable(Env e) { return e.phase == THROW && e.gins == 0 ? e.knocks : 0; }

GZ bool is_legal(Env e, int action) {
  if (action < 0) return false;
  return action < DISCARD ? (simple_moves(e) >> action & 1) != 0
         : action < KNOCK ? (discardable(e) >> (action - DISCARD) & 1) != 0
                          : (knockable(e) >> (action - KNOCK) & 1) != 0;
}

GZ int choose(Env e, int player, u32 bits) {
  if (player != e.to_move) return 0;
  const u64 simple = simple_moves(e), discards = discardable(e), knocks = knockable(e);
  if (simple != 0) return chosen_bit(simple, bits);
  const int first = popcount(discards), place = (int)mulhi(bits, (u32)(first + popcount(knocks)));
  if (place < first) return (int)DISCARD + bit_at(discards, place);
  return knocks == 0 ? 0 : (int)KNOCK + bit_at(knocks, place - first);
}

GZ void take(Env e, int p, u64 card) {
  e.hand[p] |= card;
  e.phase = THROW;
  find_knocks(e, e.hand[p]);
}

GZ void throw_away(Env e, int p, u64 card) {
  e.hand[p] &= ~card;
  e.known[p] &= ~card;
}

GZ void go_out(Env e, int p, u64 card) {
  throw_away(e, p, card);
  e.gone |= card;
  e.went_out = p;
  e.to_move = 0;
  e.phase = COUNT_0;
}

GZ void step(Env e) {
  once(e, [=] {
    const int p = e.to_move, action = e.action[p];
    if (!is_legal(e, action)) {
      e.reward[p] = -1.f;
      e.terminate_all();
      return;
    }
    e.actions += 1;
    if (action == DRAW) {
      e.picked_up = NONE;
      take(e, p, draw(e, stock(e), 0));
    } else if (action == PICK_UP) {
      const u64 card = 1ull << e.top;
      e.discards &= ~card;
      e.known[p] |= card;
      e.picked_up = e.top;
      e.top = e.below;
      take(e, p, card);
    } else if (action == DEAD_HAND) {
      e.to_move = 0;
      e.phase = COUNT_0;
    } else if (action == GIN) {
      e.gin = true;
      go_out(e, p, lowest(e.gins));
    } else if (action >= KNOCK) {
      go_out(e, p, 1ull << (action - KNOCK));
    } else if (action >= DISCARD) {
      e.below = e.top;
      e.top = action - DISCARD;
      e.discards |= 1ull << e.top;
      throw_away(e, p, 1ull << e.top);
      e.to_move = 1 - p;
      e.phase = BEGIN_TURN;
    } else if (action == SCORE_0) {
      e.to_move = 1;
      e.phase = COUNT_1;
    } else {
      e.phase = OVER;
      const float bonus = e.gin ? e.cfg.gin_reward : e.cfg.knock_reward;
      for (int a = 0; a < 2; ++a) e.reward[a] = e.went_out == a ? bonus : (float)-deadwood(e.hand[a]) / 100.f;
      e.terminate_all();
    }
    e.last_action = action;
  });
}

GZ void observe(Env e) {
  lanes(e, OBSERVERS, [=](int row) {
    const int a = observer(e, row);
    const bool over = e.phase == OVER;
    const u64 top = e.top >= 0 ? 1ull << e.top : 0, known = e.known[1 - a];
    const auto out = words(e.observation[row]);
    for (int k = 0; k < CARDS / 4; ++k) {
      out[k] = over ? 0u : as_bytes(e.hand[a] >> 4 * k);
      out[CARDS / 4 + k] = over ? 0u : as_bytes(top >> 4 * k);
      out[CARDS / 2 + k] = over ? 0u : as_bytes((e.discards & ~top) >> 4 * k);
      out[3 * CARDS / 4 + k] = over ? 0u : as_bytes(known >> 4 * k);
    }
    if (e.cfg.opponents_hand_visible) {
      const u64 unknown = over ? 0 : stock(e) | (e.hand[1 - a] & ~known);
      for (int k = 0; k < CARDS / 4; ++k) out[CARDS + k] = as_bytes(unknown >> 4 * k);
    }
  });
  lanes(e, OBSERVERS, [=](int row) {
    const bool moves = observer(e, row) == e.to_move;
    const u64 simple = moves ? simple_moves(e) : 0, discards = moves ? discardable(e) : 0;
    const u64 knocks = moves ? knockable(e) : 0;
    for (int k = 0; k < DISCARD; ++k) e.action_mask[row][k] = (i8)(simple >> k & 1);
    GZ_ROLLED
    for (int k = 0; k < CARDS; ++k) {
      e.action_mask[row][DISCARD + k] = (i8)(discards >> k & 1);
      e.action_mask[row][KNOCK + k] = (i8)(knocks >> k & 1);
    }
  });
}
