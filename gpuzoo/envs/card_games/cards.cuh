// Bit 13 * suit + rank of a set is a card. Suits are spades, hearts, diamonds, clubs; rank 0 is the ace, 12 the king.

constexpr int RANKS = 13, CARDS = 52;
constexpr u64 DECK = (1ull << CARDS) - 1;

GZ u64 drawn_card(u64 from, u32 bits) { return 1ull << chosen_bit(from, bits); }

// Four bits as the four bytes of a word, and two bits as the halves of one.
GZ u32 as_bytes(u64 bits) { return ((u32)bits & 15u) * 0x204081u & 0x1010101u; }
GZ u32 as_halves(u64 bits) { return ((u32)bits & 3u) * 0x8001u & 0x10001u; }
