// Cell 9 * column + row as the player to move sees it, who plays upwards; column 0 is on the right, row 0 at the top.
// A set of cells has a word for each three columns. "Others" are the opponent's. Directions are as whoever moves sees
// them; seen from a cell, those who come from direction d of it move in direction d of their own.

enum Kind { PAWN, LANCE, KNIGHT, SILVER, BISHOP, ROOK, GOLD, KING, HORSE, DRAGON, KINDS };  // what moves alike is one
enum Direction { UP, UP_LEFT, UP_RIGHT, LEFT, RIGHT, DOWN, DOWN_LEFT, DOWN_RIGHT, LINES, JUMPS = LINES, TURNED_JUMPS = 10 };
constexpr int CELLS = 81, EMPTY = -1, SIDE = 14, HANDS = 7, PROMOTION = 8, DROPS = 20, WAYS = 27, OTHERS = KINDS;
constexpr int WORD = 27, WORDS = 3, FREE = 2 * KINDS, DIRECTIONS = 10, CHANNELS = 119;
constexpr u32 ALL = 0x7ffffff, TOP_ROW = 0x40201, TOP_ROWS = 3u * TOP_ROW, ZONE = 7u * TOP_ROW;

struct Set {
  u32 a, b, c;
};
GZ Set operator|(Set s, Set t) { return {s.a | t.a, s.b | t.b, s.c | t.c}; }
GZ Set operator&(Set s, Set t) { return {s.a & t.a, s.b & t.b, s.c & t.c}; }
GZ Set operator~(Set s) { return {ALL & ~s.a, ALL & ~s.b, ALL & ~s.c}; }
GZ Set of_each_word(u32 w) { return {w, w, w}; }
GZ Set none() { return of_each_word(0u); }
GZ bool any(Set s) { return (s.a | s.b | s.c) != 0u; }
GZ Set only_if(bool so, Set s) { return {so ? s.a : 0u, so ? s.b : 0u, so ? s.c : 0u}; }
GZ u32 word(Set s, int w) { return w == 0 ? s.a : w == 1 ? s.b : s.c; }
GZ bool has(Set s, int cell) { return (word(s, cell / WORD) >> cell % WORD & 1u) != 0u; }
GZ Set cell_set(int cell) {
  const u32 bit = 1u << cell % WORD;
  return {cell < WORD ? bit : 0u, cell / WORD == 1 ? bit : 0u, cell >= 2 * WORD ? bit : 0u};
}
GZ int first_cell(Set s) {
  const int w = s.a != 0u ? 0 : s.b != 0u ? 1 : 2;
  const u32 bits = word(s, w);
  return w * WORD + popcount((bits & (~bits + 1u)) - 1u);
}

struct Way {
  u32 by, twice;  // bits that a word turns to the left for one step and for two
  bool back;      // whether the words turn first
  Set onto;       // where one can arrive
};
GZ Way way_of(Env e, int d) {
  return {(u32)e.by[d], (u32)e.twice[d], e.back[d] != 0, {e.onto[d], e.onto[12 + d], e.onto[24 + d]}};
}
GZ Set turned(Set s, u32 by, bool back) {
  const Set t = {back ? s.b : s.a, back ? s.c : s.b, back ? s.a : s.c};
  const u32 rest = (u32)WORD - by;
  return {ALL & (t.a << by | t.c >> rest), ALL & (t.b << by | t.a >> rest), ALL & (t.c << by | t.b >> rest)};
}
GZ Set moved(Set s, Way w) { return turned(s, w.by, w.back) & w.onto; }

// `from` and all that is reached from it over cells of `through` (Kogge and Stone's parallel prefix).
GZ Set filled(Set from, Set through, Way w) {
  through = through & w.onto;
  from = from | through & turned(from, w.by, w.back);
  through = through & turned(through, w.by, w.back);
  from = from | through & turned(from, w.twice, w.back);
  through = through & turned(through, w.twice, w.back);
  return from | through & turned(turned(from, w.twice, w.back), w.twice, w.back);
}

GZ Set at(Env e, int k) { return {e.sets[k * WORDS], e.sets[k * WORDS + 1], e.sets[k * WORDS + 2]}; }

// Those of one side whose kinds are bits of `kinds`.
GZ Set those(Env e, int side, u32 kinds) {
  Set s = none();
  for (int k = 0; k < KINDS; ++k) s = s | only_if((kinds >> k & 1u) != 0u, at(e, side + k));
  return s;
}
GZ Set everybody(Env e, int side) { return those(e, side, (1u << KINDS) - 1u); }

// Where those of one side arrive in direction d as the player to move sees it.
GZ Set arrivals(Set sliders, Set steppers, Set through, Way w) { return moved(filled(sliders, through, w) | steppers, w); }

// Sets of the eight directions lie side by side.
GZ void keep(u32, Env) {}
GZ Set of_direction(Env e, int kind, int d) {
  return {e.seen[(kind * WORDS) * LINES + d], e.seen[(kind * WORDS + 1) * LINES + d],
          e.seen[(kind * WORDS + 2) * LINES + d]};
}
GZ void see(Env e, int kind, int d, Set s) {
  e.seen[(kind * WORDS) * LINES + d] = s.a;
  e.seen[(kind * WORDS + 1) * LINES + d] = s.b;
  e.seen[(kind * WORDS + 2) * LINES + d] = s.c;
}
GZ Set all_directions(Env e, int kind) {
  Set s = none();
  for (int d = 0; d < LINES; ++d) s = s | of_direction(e, kind, d);
  return s;
}
