// Dots, lines and boxes are bits of one number each: a line has the bit of its left or upper dot, and a box that of its
// upper left dot. Dot (row, column) is bit STRIDE * row + column.

constexpr u64 DOTS = ~0ull >> (64 - STRIDE * (ROWS + 1)), FIRST_ROW = (1ull << STRIDE) - 1ull;
constexpr u64 FIRST_COLUMN = DOTS / FIRST_ROW;
constexpr u64 HORIZONTAL = FIRST_COLUMN * (FIRST_ROW >> 1), VERTICAL = DOTS >> STRIDE, BOXES = HORIZONTAL & VERTICAL;

GZ u64 closed(u64 horizontal, u64 vertical) {
  return horizontal & horizontal >> STRIDE & vertical & vertical >> 1;
}

// Actions count the horizontal lines first, without the last dots of rows.
GZ int place_of(int action) { return action < FIRST_VERTICAL ? action + action / COLUMNS : action - FIRST_VERTICAL; }

GZ int choose(Env e, int player, u32 bits) {
  const u64 horizontal = HORIZONTAL & ~e.horizontal, vertical = VERTICAL & ~e.vertical;
  const int first = popcount(horizontal), rank = (int)mulhi(bits, (u32)(first + popcount(vertical)));
  const bool across = rank < first;
  const int place = bit_at(across ? horizontal : vertical, across ? rank : rank - first);
  return player != e.to_move ? 0 : across ? place - place / STRIDE : place + FIRST_VERTICAL;
}

GZ void reset(Env e) {
  once(e, [=] {
    e.horizontal = e.vertical = 0ull;
    e.boxes_0 = e.boxes_1 = 0ull;
    e.to_move = 0;
    e.last_move = -1;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    const int mover = e.to_move, action = e.action[mover];
    const bool across = action < FIRST_VERTICAL;
    const u64 line = action < 0 ? 0ull : 1ull << place_of(action);
    const u64 horizontal = e.horizontal, vertical = e.vertical;
    if ((line & ~(across ? horizontal : vertical)) == 0ull) {
      e.reward[mover] = -1.f;
      e.terminate_all();
      return;
    }
    const u64 now_horizontal = horizontal | (across ? line : 0ull), now_vertical = vertical | (across ? 0ull : line);
    const u64 boxes = closed(now_horizontal, now_vertical), won = boxes & ~(e.boxes_0 | e.boxes_1);
    e.horizontal = now_horizontal;
    e.vertical = now_vertical;
    e.boxes_0 |= mover == 0 ? won : 0ull;
    e.boxes_1 |= mover == 1 ? won : 0ull;
    e.to_move = won != 0ull ? mover : 1 - mover;
    e.last_move = action;
    if (boxes != BOXES) return;
    const int lead = popcount(e.boxes_0) - popcount(e.boxes_1);
    const float result = Config::utility_margin ? (float)lead : lead > 0 ? 1.f : lead < 0 ? -1.f : 0.f;
    e.reward[0] = result;
    e.reward[1] = 0.f - result;
    e.terminate_all();
  });
}

// Horizontal lines without gaps between the rows, then the vertical ones, from number 64 * word on.
GZ u64 free_lines(Env e, int word) {
  const u64 horizontal = HORIZONTAL & ~e.horizontal, vertical = VERTICAL & ~e.vertical;
  if (word > 0) return vertical >> (64 - FIRST_VERTICAL);
  u64 lines = vertical << FIRST_VERTICAL;
  GZ_UNROLL
  for (int row = 0; row <= ROWS; ++row) lines |= (horizontal >> STRIDE * row & FIRST_ROW >> 1) << COLUMNS * row;
  return lines;
}

constexpr u64 EACH_BYTE = 0x0101010101010101ull;

// Bit k of a byte becomes bit 8 k.
GZ u64 spread(u64 set) {
  if constexpr (STRIDE <= 7) return (set & 0x7full) * 0x0002040810204081ull & EACH_BYTE;
  return ((set & 0xffull) * EACH_BYTE & 0x8040201008040201ull) + 0x7f * EACH_BYTE >> 7 & EACH_BYTE;
}

// Four planes of each of sixteen cells, of which every second one may be a line: 4 where it is drawn, otherwise 8.
GZ u64 planes_of_lines(u64 lines) { return 8 * EACH_BYTE - 4 * spread(lines); }

constexpr int BITS_OF_ROW = GRID_COLUMNS * PLANES;

GZ u64 planes_of_boxes(u64 own, u64 other) { return spread(own) << 4 | spread(other) << 5; }

// Rows of dots and horizontal lines take turns with rows of vertical lines and boxes.
GZ Words<BITS_OF_ROW> row_of(Env e, int player, int row) {
  const u64 own = player == 0 ? e.boxes_0 : e.boxes_1, other = player == 0 ? e.boxes_1 : e.boxes_0;
  Words<BITS_OF_ROW> bits;
  GZ_UNROLL
  for (int word = 0; word < (BITS_OF_ROW + 63) / 64; ++word) {
    const int first = row / 2 * STRIDE + 8 * word;
    if (row % 2 == 0)
      bits.at[word] = planes_of_lines(e.horizontal >> first) << 4;
    else
      bits.at[word] = planes_of_lines(e.vertical >> first) | planes_of_boxes(own >> first, other >> first);
  }
  return bits;
}

GZ void observe(Env e) {
  const int mover = broadcast(e, [=] { return e.to_move; });
  rows_of_bits(
      e, Const<OBSERVERS * GRID_ROWS>(), Const<BITS_OF_ROW>(),
      [=](int k) { return e.observation[k / GRID_ROWS] + k % GRID_ROWS * BITS_OF_ROW; },
      [=](int k) { return row_of(e, observer(e, k / GRID_ROWS), k % GRID_ROWS); });
  lanes_of_bits(
      e, Const<OBSERVERS>(), Const<LINES>(), [=](int row) { return e.action_mask[row] + 0; },
      [=](int row, int word) { return observer(e, row) == mover ? free_lines(e, word) : 0ull; });
}
