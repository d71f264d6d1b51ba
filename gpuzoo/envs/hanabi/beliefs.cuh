// What players expect of cards that they do not see, from the copies that they see nowhere: the beliefs V0 of Foerster
// et al. 2019.

#include "hands.cuh"

constexpr int PLAYABLE = 0, NEXT = 1, LATER = 2, USELESS = 3, LAST_COPY = 4, CLASSES = 5;
constexpr int COPIES = 3;            // of a kind, at most
constexpr int EVERYBODY = PLAYERS;   // sees no hand
constexpr int HINTS = (PLAYERS - 1) * (COLORS + RANKS), OTHERS = (PLAYERS - 1) * HAND;
constexpr int OWN_NUMBERS = CLASSES + 7 + RANKS, OTHERS_NUMBERS = 2 * CLASSES + RANKS + 3, HINT_NUMBERS = 9;
constexpr int FROM_OTHERS = HAND * OWN_NUMBERS, FROM_HINTS = FROM_OTHERS + OTHERS * OTHERS_NUMBERS;
constexpr int FROM_TABLE = FROM_HINTS + HINTS * HINT_NUMBERS;
constexpr u32 LOWEST_RANKS = (u32)(((1ull << CARDS) - 1) / ((1ull << RANKS) - 1));

GZ float share(int n, int of) { return (float)n / (float)max(of, 1); }

GZ int firework(Env e, int color) { return popcount(e.fireworks >> color * RANKS & (u32)first_bits(RANKS)); }
GZ int not_discarded(Env e, int color, int rank) { return popcount(copies_of(color, rank) & ~e.discards); }

GZ void classify(Env e) {
  for (int k = 0; k < CLASSES; ++k) e.kinds[k] = 0;
  for (int color = 0; color < COLORS; ++color) {
    const int height = firework(e, color);
    bool reachable = true;
    for (int rank = 0; rank < RANKS; ++rank) {
      const u32 kind = 1u << (RANKS * color + rank);
      const int copies = not_discarded(e, color, rank);
      reachable = reachable && (rank < height || copies > 0);
      const bool useful = rank >= height && reachable;
      e.kinds[useful ? min(rank - height, LATER) : USELESS] |= kind;
      if (useful && copies == 1) e.kinds[LAST_COPY] |= kind;
    }
  }
}

// unseen(p, k): the kinds of which player p does not see more than k copies.
GZ void count_unseen(Env e, int p) {
  for (int k = 0; k < COPIES; ++k) e.unseen(p, k) = 0;
  for (int color = 0; color < COLORS; ++color)
    for (int rank = 0; rank < RANKS; ++rank) {
      const int kind = RANKS * color + rank;
      int copies = not_discarded(e, color, rank) - (int)(e.fireworks >> kind & 1);
      for (int other = 0; other < PLAYERS && p != EVERYBODY; ++other)
        if (other != p) copies -= popcount(cards_with(e.color[other], color) & cards_with(e.rank[other], rank));
      for (int k = 0; k < COPIES; ++k) e.unseen(p, k) |= (u32)(copies > k) << kind;
    }
}

GZ int copies_unseen(Env e, int p, u32 kinds) {
  int copies = 0;
  for (int k = 0; k < COPIES; ++k) copies += popcount(e.unseen(p, k) & kinds);
  return copies;
}

// That a card is one of `kinds`, given those that it may be.
GZ float chance(Env e, int p, u32 possible, u32 kinds) {
  return share(copies_unseen(e, p, possible & kinds), copies_unseen(e, p, possible));
}

GZ float chance_of_likeliest(Env e, int p, u32 possible) {
  int copies = 0;
  for (int k = 0; k < COPIES; ++k) copies += (e.unseen(p, k) & possible) != 0;
  return share(copies, copies_unseen(e, p, possible));
}

GZ u32 possible_kinds(Env e, int p, int slot) { return (u32)(knowledge_bits(e, p, slot) & first_bits(CARDS)); }
GZ u32 colors_told(Env e, int p, int slot) {
  return (u32)(knowledge_bits(e, p, slot) >> CARDS & first_bits(COLORS));
}
GZ u32 ranks_told(Env e, int p, int slot) { return (u32)(knowledge_bits(e, p, slot) >> (CARDS + COLORS)); }

GZ bool hinted_last(Env e, int p) {
  if (e.last_action < COLOR_HINTS) return false;
  const bool is_color = e.last_action < RANK_HINTS;
  const int k = is_color ? (e.last_action - COLOR_HINTS) / COLORS : (e.last_action - RANK_HINTS) / RANKS;
  return (e.last_player + k + 1) % PLAYERS == p;
}
GZ u64 told_last(Env e, int p) { return hinted_last(e, p) ? e.last_hinted : 0; }

template <class Out> GZ void put_own_card(Env e, Out out, int a, int slot) {
  const u32 possible = possible_kinds(e, a, slot), rank = ranks_told(e, a, slot);
  const u64 all_told = told_last(e, a), told = all_told >> BITS * slot;
  const bool tells = told & 1;
  for (int k = 0; k < CLASSES; ++k) out[k] = chance(e, a, possible, e.kinds[k]);
  out[CLASSES] = chance_of_likeliest(e, a, possible);
  out[CLASSES + 1] = colors_told(e, a, slot) != 0 ? 1.f : 0.f;
  out[CLASSES + 2] = tells ? 1.f : 0.f;
  out[CLASSES + 3] = tells && e.last_action < RANK_HINTS ? 1.f : 0.f;
  out[CLASSES + 4] = tells && popcount(all_told) == 1 ? 1.f : 0.f;
  out[CLASSES + 5] = tells && told == 1 ? 1.f : 0.f;
  out[CLASSES + 6] = tells && (all_told & first_bits(BITS * slot)) == 0 ? 1.f : 0.f;
  for (int k = 0; k < RANKS; ++k) out[CLASSES + 7 + k] = rank >> k & 1 ? 1.f : 0.f;
}

template <class Out> GZ void put_card_of_other(Env e, Out out, int p, int slot) {
  const u32 kind = (u32)card_bits(e, p, slot), rank = (u32)(e.rank[p] >> BITS * slot & first_bits(RANKS));
  const u32 possible = possible_kinds(e, p, slot);
  for (int k = 0; k < CLASSES; ++k) {
    out[k] = (kind & e.kinds[k]) != 0 ? 1.f : 0.f;
    out[CLASSES + k] = chance(e, EVERYBODY, possible, e.kinds[k]);
  }
  for (int k = 0; k < RANKS; ++k) out[2 * CLASSES + k] = rank >> k & 1 ? 1.f : 0.f;
  out[2 * CLASSES + RANKS] = colors_told(e, p, slot) != 0 ? 1.f : 0.f;
  out[2 * CLASSES + RANKS + 1] = ranks_told(e, p, slot) != 0 ? 1.f : 0.f;
  out[2 * CLASSES + RANKS + 2] = told_last(e, p) >> BITS * slot & 1 ? 1.f : 0.f;
}

// What a hint of these kinds would tell the player p.
template <class Out> GZ void put_hint(Env e, Out out, int p, u32 kinds) {
  int told = 0, news = 0, playable = 0, useless = 0, last = 0;
  bool newest_is_playable = false;
  float right = 0.f, wrong = 0.f, useless_known = 0.f;
  for (int slot = 0; slot < HAND; ++slot) {
    const u32 kind = (u32)card_bits(e, p, slot), before = possible_kinds(e, p, slot);
    const u32 after = before & ((kind & kinds) != 0 ? kinds : ~kinds);
    news += after != before;
    if ((kind & kinds) == 0) continue;
    const bool plays = (kind & e.kinds[PLAYABLE]) != 0, is_useless = (kind & e.kinds[USELESS]) != 0;
    const float expected = chance(e, EVERYBODY, after, e.kinds[PLAYABLE]);
    told += 1;
    playable += plays;
    useless += is_useless;
    last += (kind & e.kinds[LAST_COPY]) != 0;
    newest_is_playable = plays;
    if (plays) right = max(right, expected);
    else wrong = max(wrong, expected);
    if (is_useless) useless_known = max(useless_known, chance(e, EVERYBODY, after, e.kinds[USELESS]));
  }
  out[0] = share(told, HAND);
  out[1] = share(news, HAND);
  out[2] = share(playable, HAND);
  out[3] = share(useless, HAND);
  out[4] = share(last, HAND);
  out[5] = newest_is_playable ? 1.f : 0.f;
  out[6] = right;
  out[7] = wrong;
  out[8] = useless_known;
}

// How far the game is, and then what lies on the table, but for what tells colors apart.
template <class Out> GZ void put_progress(Env e, Out out, int a) {
  out[0] = share(popcount(e.deck), DEALT_LATER);
  out[1] = e.deck == 0 ? 1.f : 0.f;
  out[2] = share(popcount(e.fireworks), CARDS);
  for (int height = 0; height <= RANKS; ++height) {
    int fireworks = 0;
    for (int color = 0; color < COLORS; ++color) fireworks += firework(e, color) == height;
    out[3 + height] = share(fireworks, COLORS);
  }
  int to = 4 + RANKS, from = 0;
  const auto take = [&](int n) {
    for (int k = 0; k < n; ++k) out[to + k] = e.table(a, (from + k) / 64) >> (from + k) % 64 & 1 ? 1.f : 0.f;
    to += n;
    from += n;
  };
  take(PLAYERS);
  from += DEALT_LATER + CARDS;
  take(MAX_INFORMATION + MAX_LIVES);
  from += DECK;
  take(PLAYERS + 4 + PLAYERS);
  from += COLORS;
  take(RANKS);
  from += HAND;
  take(HAND);
  from += CARDS;
  take(2);
}

GZ void observe_beliefs(Env e) {
  once(e, [=] { classify(e); });
  lanes(e, PLAYERS + 1, [=](int p) { count_unseen(e, p); });
  lanes(e, OBSERVERS, Const<HAND>(), [=](int row, int slot) {
    put_own_card(e, e.observation[row] + slot * OWN_NUMBERS, observer(e, row), slot);
  });
  lanes(e, OBSERVERS, Const<OTHERS>(), [=](int row, int card) {
    const int other = (observer(e, row) + 1 + card / HAND) % PLAYERS;
    put_card_of_other(e, e.observation[row] + (FROM_OTHERS + card * OTHERS_NUMBERS), other, card % HAND);
  });
  lanes(e, OBSERVERS, Const<HINTS>(), [=](int row, int hint) {
    const bool is_color = hint < (PLAYERS - 1) * COLORS;
    const int k = is_color ? hint : hint - (PLAYERS - 1) * COLORS, values = is_color ? COLORS : RANKS;
    const u32 kinds = is_color ? (u32)first_bits(RANKS) << RANKS * (k % values) : LOWEST_RANKS << k % values;
    const int other = (observer(e, row) + 1 + k / values) % PLAYERS;
    put_hint(e, e.observation[row] + (FROM_HINTS + hint * HINT_NUMBERS), other, kinds);
  });
  lanes(e, OBSERVERS, [=](int row) { put_progress(e, e.observation[row] + FROM_TABLE, observer(e, row)); });
}
