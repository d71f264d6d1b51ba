// A tile is its exponent: 1 is 2, 2 is 4, 3 is 8; 0 is an empty cell. A word has four tiles, a byte for each.

enum Way { LEFT, UP, RIGHT, DOWN };
constexpr int SIZE = 4, CELLS = 16;
constexpr u32 EACH = 0x01010101u, HIGH_BITS = 0x80808080u;

// Word k of four lines has their k-th tiles, counted from the side that tiles slide to.
struct Lines {
  u32 tiles[SIZE];
};

GZ u32 empty(u32 tiles) { return HIGH_BITS & ~(tiles + ~HIGH_BITS); }
GZ u32 whole_bytes(u32 high_bits) { return high_bits | high_bits - (high_bits >> 7); }

// Where a cell is empty, the tile behind it comes nearer.
GZ void close_gaps(u32 &before, u32 &behind) {
  const u32 gaps = whole_bytes(empty(before));
  before |= behind & gaps;
  behind &= ~gaps;
}

GZ int values(u32 tiles) {
  int total = 0;
  GZ_UNROLL
  for (int k = 0; k < SIZE; ++k) total += 1 << (tiles >> 8 * k & 31u) & ~1;
  return total;
}

// Slides the tiles as far as they go; two that are alike become one of twice their value. Returns the values of the new
// tiles.
GZ int slide(Lines &l) {
  GZ_UNROLL
  for (int last = SIZE - 1; last > 0; --last)
    GZ_UNROLL
    for (int k = 0; k < last; ++k) close_gaps(l.tiles[k], l.tiles[k + 1]);
  u32 joined[SIZE - 1];
  GZ_UNROLL
  for (int k = 0; k < SIZE - 1; ++k) {
    const u32 alike = whole_bytes(empty(l.tiles[k] ^ l.tiles[k + 1]) & ~empty(l.tiles[k]));
    l.tiles[k] += EACH & alike;
    l.tiles[k + 1] &= ~alike;
    joined[k] = l.tiles[k] & alike;
    GZ_UNROLL
    for (int behind = k + 1; behind < SIZE - 1; ++behind) close_gaps(l.tiles[behind], l.tiles[behind + 1]);
  }
  return values(joined[0]) + values(joined[1] | joined[2]);  // no line has joins at both 1 and 2
}

GZ u32 even_bytes(u32 a, u32 b) { return a & 0x00ff00ffu | (b & 0x00ff00ffu) << 8; }
GZ u32 odd_bytes(u32 a, u32 b) { return a >> 8 & 0x00ff00ffu | b & 0xff00ff00u; }
GZ u32 low_halves(u32 a, u32 b) { return a & 0xffffu | b << 16; }
GZ u32 high_halves(u32 a, u32 b) { return a >> 16 | b & 0xffff0000u; }

GZ Lines transposed(Lines l) {
  const u32 even = even_bytes(l.tiles[0], l.tiles[1]), odd = odd_bytes(l.tiles[0], l.tiles[1]);
  const u32 even_below = even_bytes(l.tiles[2], l.tiles[3]), odd_below = odd_bytes(l.tiles[2], l.tiles[3]);
  return {low_halves(even, even_below), low_halves(odd, odd_below), high_halves(even, even_below),
          high_halves(odd, odd_below)};
}

GZ Lines chosen(bool first, Lines a, Lines b) {
  GZ_UNROLL
  for (int k = 0; k < SIZE; ++k) a.tiles[k] = first ? a.tiles[k] : b.tiles[k];
  return a;
}

GZ Lines turned(Lines l, bool across) { return chosen(across, transposed(l), l); }
GZ Lines reversed(Lines l, bool back) {
  return chosen(back, {l.tiles[3], l.tiles[2], l.tiles[1], l.tiles[0]}, l);
}

GZ Lines rows_of(Env e) { return {e.rows[0], e.rows[1], e.rows[2], e.rows[3]}; }
GZ void set_rows(Env e, Lines l) {
  e.rows[0] = l.tiles[0];
  e.rows[1] = l.tiles[1];
  e.rows[2] = l.tiles[2];
  e.rows[3] = l.tiles[3];
}

// Bit 0 is set if a tile of `behind` can move to its neighbour in `before`, bit 1 if one of `before` can move back.
GZ int passable(u32 before, u32 behind, u32 which) {
  const u32 free = empty(before), free_behind = empty(behind), alike = empty(before ^ behind) & ~free;
  return (((free & ~free_behind) | alike) & which) != 0u | ((((free_behind & ~free) | alike) & which) != 0u) << 1;
}

// Bit `way` is set if some tile can slide that way.
GZ int ways_of(Lines rows) {
  int across = 0, along = 0;
  GZ_UNROLL
  for (int k = 0; k < SIZE; ++k) across |= passable(rows.tiles[k], rows.tiles[k] >> 8, HIGH_BITS >> 8);
  GZ_UNROLL
  for (int k = 0; k < SIZE - 1; ++k) along |= passable(rows.tiles[k], rows.tiles[k + 1], HIGH_BITS);
  return (across & 1) << LEFT | (along & 1) << UP | (across >> 1) << RIGHT | (along >> 1) << DOWN;
}

// Byte k: how many of the bytes up to k have their high bits set.
GZ u32 counted(u32 high_bits) { return (high_bits >> 7) * EACH; }

GZ Lines with_new_tile(Env e, Lines rows, int draw) {
  int cells = 0;
  GZ_UNROLL
  for (int k = 0; k < SIZE; ++k) cells += (int)(counted(empty(rows.tiles[k])) >> 24);
  int place = 1 + (int)mulhi(random_bits(e, draw), (u32)cells);
  const u32 tile = uniform(e, draw + 1, 0.f, 1.f) < e.cfg.probability_of_4 ? 2u : 1u;
  GZ_UNROLL
  for (int k = 0; k < SIZE; ++k) {
    const u32 free = empty(rows.tiles[k]), count = counted(free), here = free & empty(count ^ (u32)(place & 31) * EACH);
    rows.tiles[k] |= (here >> 7) * tile;
    place -= (int)(count >> 24);
  }
  return rows;
}

GZ void reset(Env e) {
  once(e, [=] {
    const Lines none = {0u, 0u, 0u, 0u};
    set_rows(e, with_new_tile(e, with_new_tile(e, none, 0), 2));
    e.score = 0.f;
  });
}

GZ int choose(Env e, int, u32 bits) { return chosen_bit((u32)ways_of(rows_of(e)), bits); }

GZ void step(Env e) {
  once(e, [=] {
    const int way = e.action;
    const Lines before = rows_of(e);
    const int ways = ways_of(before);
    // g++ makes a cast to bool of a test of one bit, and then does not step envs in vectors.
    const bool legal = (way >= 0) & ((ways | 1 << (way & 3)) == ways);
    const bool across = (way == LEFT) | (way == RIGHT), back = (way == RIGHT) | (way == DOWN);
    Lines l = reversed(turned(before, across), back);
    const int gained = slide(l);
    const Lines after = with_new_tile(e, turned(reversed(l, back), across), 0);
    set_rows(e, chosen(legal, after, before));
    e.score += legal ? (float)gained : 0.f;
    e.reward = legal ? (float)gained : -1.f;
    e.terminated = !legal | (ways_of(after) == 0);
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    const Lines rows = rows_of(e);
    const int ways = ways_of(rows);
    for (int k = 0; k < CELLS * CHANNELS; ++k) e.observation[k] = 0;
    for (int k = 0; k < CELLS; ++k) {
      const int tile = (int)(rows.tiles[k / SIZE] >> 8 * (k % SIZE) & 255u);
      e.observation[k * CHANNELS + min(tile, CHANNELS - 1)] = 1;
    }
    for (int way = 0; way < SIZE; ++way) e.action_mask[way] = (i8)(ways >> way & 1);
  });
}
