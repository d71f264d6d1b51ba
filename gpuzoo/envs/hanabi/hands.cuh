// A hand is a byte for each card, the oldest first: with its color as one bit, with its rank as one bit, and with what
// hints have left possible. An absent card's bytes are 0. A set of kinds of cards has bit RANKS * color + rank.

constexpr u64 EACH = 0x0101010101010101ull;  // card of a hand
constexpr int TOLD = 5, BITS = 8;            // a byte of knowledge: 5 bits of what is possible, whether it was told
constexpr int DEALT_LATER = DECK - PLAYERS * HAND;
constexpr int COLOR_HINTS = 2 * HAND, RANK_HINTS = COLOR_HINTS + (PLAYERS - 1) * COLORS;

GZ int place_of(u64 bit) { return popcount(bit - 1); }
GZ u64 first_bits(int n) { return (1ull << n) - 1; }

GZ int rank_of_copy(int copy) { return max(copy - 1, 0) / 2; }
GZ u64 copies_of(int color, int rank) {
  const int copies = rank == 0 ? 3 : rank == RANKS - 1 ? 1 : 2;
  return first_bits(copies) << (color * CARDS_PER_COLOR + (rank == 0 ? 0 : 2 * rank + 1));
}

GZ u64 without_card(u64 hand, int slot) {
  const u64 older = first_bits(BITS * slot);
  return (hand & older) | (hand >> BITS & ~older);
}
GZ u64 any_card(u64 hand) {
  hand |= hand >> 32;
  hand |= hand >> 16;
  return (hand | hand >> BITS) & first_bits(BITS);
}
GZ u64 cards_with(u64 hand, int value) { return hand >> value & EACH; }
GZ u64 after_hint(u64 knowledge, u64 told, int value) {
  const u64 cards = told * first_bits(BITS);
  return (knowledge & ~cards & ~(EACH << value)) | told << value | told << TOLD;
}

GZ u64 card_bits(Env e, int p, int slot) {
  const u64 color = e.color[p] >> BITS * slot & first_bits(COLORS), rank = e.rank[p] >> BITS * slot & first_bits(RANKS);
  return color == 0 ? 0 : rank << RANKS * place_of(color);
}

// What is possible for a card, one bit for each color and rank, and the color and the rank that hints have told.
GZ u64 knowledge_bits(Env e, int p, int slot) {
  const int at = BITS * slot;
  const u64 colors = e.known_color[p] >> at, ranks = e.known_rank[p] >> at & first_bits(RANKS);
  u64 bits = 0;
  for (int c = 0; c < COLORS; ++c) bits |= (colors >> c & 1) * ranks << RANKS * c;
  const u64 color = colors >> TOLD & 1 ? colors & first_bits(COLORS) : 0;
  const u64 rank = e.known_rank[p] >> (at + TOLD) & 1 ? ranks : 0;
  return bits | color << CARDS | rank << (CARDS + COLORS);
}
