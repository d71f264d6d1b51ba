// Texas hold'em: hands, pots and deals, for any rule of betting.
#include "cards.cuh"

enum Category { HIGH_CARD, PAIR, TWO_PAIRS, THREE, STRAIGHT, FLUSH, FULL_HOUSE, FOUR, STRAIGHT_FLUSH };

constexpr int BIG_BLIND = 2, SMALL_BLIND = 1, ROUNDS = 4;
constexpr int ODD_CHIPS = 8;  // first of their draws; cards have those before
constexpr u32 EVERYBODY = (1u << PLAYERS) - 1u;

// Ranks of a suit from the two up, so that the ace is the highest bit.
GZ u32 ranks_of(u64 cards, int suit) {
  const u32 ranks = (u32)(cards >> RANKS * suit) & 0x1fffu;
  return ranks >> 1 | (ranks & 1u) << 12;
}

GZ u32 highest(u32 set, int count) {
  for (int n = popcount(set); n > count; --n) set &= set - 1u;
  return set;
}

// The highest cards of straights. An ace is also below the two.
GZ u32 straights(u32 ranks) {
  const u32 with_low_ace = ranks << 1 | ranks >> 12, pairs = with_low_ace & with_low_ace >> 1;
  return (pairs & pairs >> 2 & with_low_ace >> 4) << 3;
}

GZ u32 value(int category, u32 first, u32 second) { return (u32)category << 26 | first << 13 | second; }

// Of two sets of seven cards the one with the better hand of five has the higher value.
GZ u32 value_of_hand(u64 cards) {
  const u32 s = ranks_of(cards, 0), h = ranks_of(cards, 1), d = ranks_of(cards, 2), c = ranks_of(cards, 3);
  const u32 any = s | h | d | c, two = (s & h) | (d & c) | ((s | h) & (d | c));
  const u32 three = (s & h & (d | c)) | (d & c & (s | h)), four = s & h & d & c;
  u32 suited = popcount(s) >= 5 ? s : popcount(h) >= 5 ? h : popcount(d) >= 5 ? d : popcount(c) >= 5 ? c : 0u;
  if (straights(suited) != 0u) return value(STRAIGHT_FLUSH, highest(straights(suited), 1), 0u);
  if (four != 0u) return value(FOUR, four, highest(any & ~four, 1));
  const u32 triple = highest(three, 1);
  if (triple != 0u && (two & ~triple) != 0u) return value(FULL_HOUSE, triple, highest(two & ~triple, 1));
  if (suited != 0u) return value(FLUSH, highest(suited, 5), 0u);
  if (straights(any) != 0u) return value(STRAIGHT, highest(straights(any), 1), 0u);
  if (triple != 0u) return value(THREE, triple, highest(any & ~triple, 2));
  const u32 pairs = highest(two, 2);
  if (popcount(pairs) == 2) return value(TWO_PAIRS, pairs, highest(any & ~pairs, 1));
  if (pairs != 0u) return value(PAIR, pairs, highest(any & ~pairs, 3));
  return value(HIGH_CARD, highest(any, 5), 0u);
}

GZ void deal(Env e) {
  u64 deck = DECK;
  GZ_ROLLED
  for (int p = 0; p < PLAYERS; ++p) {
    e.hand[p] = 0;
    e.value[p] = 0u;
    GZ_ROLLED
    for (int k = 0; k < 2; ++k) {
      const u64 card = drawn_card(deck, random_bits(e, p, k));
      deck &= ~card;
      e.hand[p] |= card;
    }
  }
  e.public_cards = 0;
}

GZ void show_cards(Env e, int total) {
  u64 gone = e.public_cards;
  GZ_ROLLED
  for (int p = 0; p < PLAYERS; ++p) gone |= e.hand[p];
  GZ_ROLLED
  for (int k = popcount(e.public_cards); k < total; ++k) {
    const u64 card = drawn_card(DECK & ~gone, random_bits(e, k));
    gone |= card;
    e.public_cards |= card;
  }
}

GZ void post_blinds(Env e, int small, int big) {
  GZ_ROLLED
  for (int p = 0; p < PLAYERS; ++p) e.chips[p] = p == big ? (int)BIG_BLIND : p == small ? (int)SMALL_BLIND : 0;
}

GZ int highest_bet(Env e) {
  int most = 0;
  GZ_ROLLED
  for (int p = 0; p < PLAYERS; ++p) most = max(most, e.chips[p]);
  return most;
}

GZ int next_player(Env e, int p) {
  do p = p + 1 < PLAYERS ? p + 1 : 0;
  while (e.folded >> p & 1u);
  return p;
}

GZ u32 winners(Env e) {
  u32 found = EVERYBODY & ~e.folded, best = 0u;
  if (popcount(found) == 1) return found;
  const u32 alive = found;
  GZ_ROLLED
  for (int p = 0; p < PLAYERS; ++p) {
    const u32 here = alive >> p & 1u ? value_of_hand(e.hand[p] | e.public_cards) : 0u;
    e.value[p] = here;
    found = here > best ? 1u << p : here == best ? found | (alive & 1u << p) : found;
    best = max((int)here, (int)best);
  }
  return found;
}

// Each layer of the pot is shared by the winners; one of them, drawn, gets the chips that are left over.
GZ void pay(Env e, u32 won, float unit) {
  const int count = popcount(won);
  GZ_ROLLED
  for (int p = 0; p < PLAYERS; ++p) e.reward[p] = -unit * (float)e.chips[p];
  GZ_ROLLED
  for (int layer = 0, paid = 0; layer < PLAYERS; ++layer) {
    int level = 1 << 30, players = 0;
    GZ_ROLLED
    for (int p = 0; p < PLAYERS; ++p) {
      players += e.chips[p] > paid;
      level = e.chips[p] > paid ? min(level, e.chips[p]) : level;
    }
    if (players == 0) return;
    const int pot = (level - paid) * players, odd = pot % count;
    const int lucky = odd > 0 ? chosen_bit(won, random_bits(e, ODD_CHIPS + layer)) : -1;
    GZ_ROLLED
    for (int p = 0; p < PLAYERS; ++p)
      if (won >> p & 1u) e.reward[p] += unit * (float)(pot / count + (p == lucky ? odd : 0));
    paid = level;
  }
}

GZ bool is_decided(Env e) { return popcount(EVERYBODY & ~e.folded) == 1 || e.round == ROUNDS; }

GZ void end_if_decided(Env e, float unit) {
  if (!is_decided(e)) return;
  pay(e, winners(e), unit);
  e.terminate_all();
}
