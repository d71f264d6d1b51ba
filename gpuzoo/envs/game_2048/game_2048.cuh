// A tile is its exponent: 1 is 2, 2 is 4, 3 is 8; 0 is an empty cell.

enum Way { LEFT, UP, RIGHT, DOWN };
constexpr int SIZE = 4, CELLS = 16, LAST = SIZE - 1;

// The k-th cell of a line, counted from the side that tiles slide to.
GZ int cell_of(int way, int line, int k) {
  const int along = way == LEFT || way == UP ? k : LAST - k;
  return way == LEFT || way == RIGHT ? SIZE * line + along : SIZE * along + line;
}

struct Line {
  int tile[SIZE];
};

// If a cell is empty, the tile behind it comes nearer.
GZ void close_gap(Line &l, int k) {
  const bool gap = l.tile[k] == 0;
  l.tile[k] += gap ? l.tile[k + 1] : 0;
  l.tile[k + 1] = gap ? 0 : l.tile[k + 1];
}

// Slides the tiles as far as they go; two that are alike become one of twice their value. Returns the values of the new
// tiles.
GZ int slide(Line &l) {
  int gained = 0;
  for (int last = LAST; last > 0; --last)
    for (int k = 0; k < last; ++k) close_gap(l, k);
  for (int k = 0; k < LAST; ++k) {
    const int tile = l.tile[k];
    const bool alike = tile != 0 && tile == l.tile[k + 1];
    l.tile[k] += alike;
    l.tile[k + 1] = alike ? 0 : l.tile[k + 1];
    gained += alike ? 2 << tile : 0;
    for (int behind = k + 1; behind < LAST; ++behind) close_gap(l, behind);
  }
  return gained;
}

// Eight tiles, a byte for each.
GZ u64 tiles_from(Env e, int cell) {
  u64 tiles = 0;
  GZ_ROLLED
  for (int k = 0; k < 8; ++k) tiles |= (u64)e.tile[cell + k] << 8 * k;
  return tiles;
}

constexpr u64 HIGH_BITS = 0x8080808080808080ull;
GZ u64 empty(u64 tiles) { return HIGH_BITS & ~(tiles + ~HIGH_BITS); }

// Bit 0 is set if a tile of `behind` can move to its neighbour in `before`, bit 1 if one of `before` can move back.
GZ int passable(u64 before, u64 behind, u64 which) {
  const u64 free = empty(before), free_behind = empty(behind), alike = empty(before ^ behind) & ~free;
  return (((free & ~free_behind) | alike) & which) != 0 | ((((free_behind & ~free) | alike) & which) != 0) << 1;
}

// Bit `way` is set if some tile can slide that way.
GZ int ways_of(Env e) {
  const u64 upper = tiles_from(e, 0), lower = tiles_from(e, 8), middle = upper >> 32 | lower << 32;
  constexpr u64 NOT_LAST_COLUMN = 0x0080808000808080ull, ONE_ROW = 0x80808080ull;
  const int across = passable(upper, upper >> 8, NOT_LAST_COLUMN) | passable(lower, lower >> 8, NOT_LAST_COLUMN);
  const int along = passable(upper, middle, HIGH_BITS) | passable(lower, lower >> 32, ONE_ROW);
  return (across & 1) << LEFT | (along & 1) << UP | (across >> 1) << RIGHT | (along >> 1) << DOWN;
}

GZ void add_tile(Env e, int draw) {
  u32 empty = 0u;
  GZ_ROLLED
  for (int k = 0; k < CELLS; ++k) empty |= (u32)(e.tile[k] == 0) << k;
  const int cell = chosen_bit(empty, random_bits(e, draw));
  e.tile[cell] = uniform(e, draw + 1, 0.f, 1.f) < e.cfg.probability_of_4 ? 2 : 1;
}

GZ void reset(Env e) {
  once(e, [=] {
    for (int k = 0; k < CELLS; ++k) e.tile[k] = 0;
    add_tile(e, 0);
    add_tile(e, 2);
    e.score = 0.f;
  });
}

GZ int choose(Env e, int, u32 bits) { return chosen_bit((u32)ways_of(e), bits); }

GZ void step(Env e) {
  once(e, [=] {
    const int way = e.action;
    if (way < 0 || !(ways_of(e) >> way & 1)) {
      e.reward = -1.f;
      e.terminated = true;
      return;
    }
    int gained = 0;
    GZ_ROLLED
    for (int line = 0; line < SIZE; ++line) {
      Line l;
      for (int k = 0; k < SIZE; ++k) l.tile[k] = e.tile[cell_of(way, line, k)];
      gained += slide(l);
      for (int k = 0; k < SIZE; ++k) e.tile[cell_of(way, line, k)] = (u8)l.tile[k];
    }
    add_tile(e, 0);
    e.score += (float)gained;
    e.reward = (float)gained;
    e.terminated = ways_of(e) == 0;
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    for (int k = 0; k < CELLS * CHANNELS; ++k) e.observation[k] = 0;
    for (int k = 0; k < CELLS; ++k) e.observation[k * CHANNELS + min((int)e.tile[k], CHANNELS - 1)] = 1;
    const int ways = ways_of(e);
    for (int way = 0; way < SIZE; ++way) e.action_mask[way] = (i8)(ways >> way & 1);
  });
}
