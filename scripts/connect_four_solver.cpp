// Exact values of moves in Connect Four: 1 wins, 0 draws, -1 loses, under perfect play of both.
//
// Bit 7 * column + row, row 0 at the bottom; the seventh bit of a column stays empty. Negamax with alpha-beta and a table
// of bounds. A player blocks the other one's four, and never plays below a cell where the other one would make a four.

#include <cstdint>
#include <vector>

using u64 = std::uint64_t;
using i8 = std::int8_t;

constexpr u64 BOTTOM = 0x0040810204081ull, BOARD = BOTTOM * 63;
constexpr int COLUMNS = 7, ROWS = 6, CENTRE_FIRST[COLUMNS] = {3, 2, 4, 1, 5, 0, 6};

static int count(u64 cells) { return __builtin_popcountll(cells); }

// Empty cells where a player would make a four.
static u64 fours(u64 own, u64 taken) {
  u64 found = own << 1 & own << 2 & own << 3;
  for (int step : {6, 7, 8}) {
    const u64 above = own << step & own << 2 * step, below = own >> step & own >> 2 * step;
    found |= above & own << 3 * step | above & own >> step;
    found |= below & own >> 3 * step | below & own << step;
  }
  return found & BOARD & ~taken;
}

static u64 playable(u64 taken) { return (taken + BOTTOM) & BOARD; }

class Solver {
  struct Entry {
    u64 key = ~0ull;
    i8 lowest = -1, highest = 1;
  };
  std::vector<Entry> table{1 << 22};

  // For the player to move, who cannot win at once.
  int value(u64 own, u64 taken, int lowest, int highest) {
    const u64 other = own ^ taken, theirs = fours(other, taken), all = playable(taken);
    const u64 forced = all & theirs;
    if (forced & (forced - 1)) return -1;
    const u64 moves = (forced ? forced : all) & ~(theirs >> 1);
    if (count(taken) >= ROWS * COLUMNS - 1) return 0;  // the last move makes no four
    if (!moves) return -1;
    const u64 key = own + taken;
    Entry &entry = table[key * 0x9e3779b97f4a7c15ull >> 42];
    if (entry.key != key) entry = {key};
    if (entry.lowest > lowest) lowest = entry.lowest;
    if (entry.highest < highest) highest = entry.highest;
    if (lowest >= highest) return lowest == entry.lowest ? lowest : highest;

    u64 order[COLUMNS];
    int threats[COLUMNS], n = 0;
    for (int column : CENTRE_FIRST) {
      const u64 move = moves & 63ull << 7 * column;
      if (!move) continue;
      const int made = count(fours(own | move, taken | move));
      int k = n++;
      for (; k && threats[k - 1] < made; --k) {
        order[k] = order[k - 1];
        threats[k] = threats[k - 1];
      }
      order[k] = move;
      threats[k] = made;
    }
    int best = -1;
    for (int k = 0; k < n && best < highest; ++k) {
      const int found = after(own, taken, order[k], lowest > best ? lowest : best, highest);
      if (found > best) best = found;
    }
    Entry &known = table[key * 0x9e3779b97f4a7c15ull >> 42];
    if (known.key != key) known = {key};
    if (best > lowest && best > known.lowest) known.lowest = (i8)best;
    if (best < highest && best < known.highest) known.highest = (i8)best;
    return best;
  }

 public:
  // The value of a move for who makes it.
  int after(u64 own, u64 taken, u64 move, int lowest, int highest) {
    if (fours(own, taken) & move) return 1;
    own |= move;
    taken |= move;
    if (taken == BOARD) return 0;
    if (fours(own ^ taken, taken) & playable(taken)) return -1;
    return -value(own ^ taken, taken, -highest, -lowest);
  }
};

// `own` and `taken` of n positions that are not over; values of the seven columns of each, -2 where one is full.
extern "C" void solve(std::int64_t n, const u64 *own, const u64 *taken, i8 *values) {
  static Solver solver;  // what it found stays true
  for (std::int64_t k = 0; k < n; ++k)
    for (int column = 0; column < COLUMNS; ++column) {
      const u64 move = playable(taken[k]) & 63ull << 7 * column;
      values[COLUMNS * k + column] = (i8)(move ? solver.after(own[k], taken[k], move, -1, 1) : -2);
    }
}
