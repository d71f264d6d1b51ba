constexpr int PIECES = 7, ROTATIONS = 4, SIDE = 4;
constexpr u32 LINE = (1u << SIDE) - 1u;

GZ u32 row_of(u32 shape, int row) { return shape >> SIDE * row & LINE; }

// The cells of a shape, and those above them in rows 0 and 1, as far as rows 1 and 2 reach.
GZ u32 shadow_of(u32 shape) {
  const u32 second = row_of(shape, 1) | row_of(shape, 2), first = row_of(shape, 0) | second;
  return first | second << SIDE | (shape & ~0xffu);
}

// The columns where a shape keeps within the board.
GZ u32 columns_within(u32 shape) {
  const u32 used = row_of(shape, 0) | row_of(shape, 1) | row_of(shape, 2) | row_of(shape, 3);
  const int width = used >> 3 & 1u ? 4 : used >> 2 & 1u ? 3 : used >> 1 & 1u ? 2 : 1;
  return (1u << (COLUMNS - width + 1)) - 1u;
}

GZ u32 legal_columns(Env e, int rotation) {
  const u32 shape = (u32)e.shape[ROTATIONS * e.piece + rotation], shadow = shadow_of(shape);
  u32 blocked = 0u;
  for (int row = 0; row < SIDE; ++row) {
    const u32 filled = e.filled[row];
    for (int column = 0; column < SIDE; ++column)
      blocked |= row_of(shadow, row) >> column & 1u ? filled >> column : 0u;
  }
  return columns_within(shape) & ~blocked;
}

GZ void next_piece(Env e, int draw) {
  e.piece = random_int(e, draw, PIECES);
  for (int rotation = 0; rotation < ROTATIONS; ++rotation) e.legal[rotation] = legal_columns(e, rotation);
}

GZ bool has_room(Env e, u32 shape, int top, int left) {
  bool room = true;
  for (int row = 0; row < SIDE; ++row) {
    const u32 cells = row_of(shape, row) << left;
    room = room && (cells == 0u || (top + row < ROWS && (cells & e.filled[top + row]) == 0u));
  }
  return room;
}

GZ void put(Env e, u32 shape, int top, int left) {
  for (int row = 0; row < SIDE; ++row) {
    const u32 cells = row_of(shape, row);
    if (cells == 0u) continue;
    e.filled[top + row] |= cells << left;
    for (int column = 0; column < SIDE; ++column)
      if (cells >> column & 1u) e.colour[COLUMNS * (top + row) + left + column] = (u8)(e.piece + 1);
  }
}

// Removes the full rows and says how many there were.
GZ int clear_rows(Env e) {
  constexpr u32 FULL = (1u << COLUMNS) - 1u;
  int cleared = 0;
  for (int row = ROWS - 1; row >= 0; --row) {
    const u32 filled = e.filled[row];
    if (filled == FULL) {
      ++cleared;
    } else if (cleared > 0) {
      e.filled[row + cleared] = filled;
      for (int k = 0; k < COLUMNS; ++k) e.colour[COLUMNS * (row + cleared) + k] = e.colour[COLUMNS * row + k];
    }
  }
  for (int row = 0; row < cleared; ++row) {
    e.filled[row] = 0u;
    for (int k = 0; k < COLUMNS; ++k) e.colour[COLUMNS * row + k] = 0;
  }
  return cleared;
}

GZ float reward_of(int cleared) {
  return cleared == 0 ? 0.f : cleared == 1 ? 40.f : cleared == 2 ? 100.f : cleared == 3 ? 300.f : 1200.f;
}

GZ void reset(Env e) {
  once(e, [=] {
    for (int row = 0; row < ROWS; ++row) e.filled[row] = 0u;
    for (int cell = 0; cell < CELLS; ++cell) e.colour[cell] = 0;
    e.score = 0.f;
    next_piece(e, 0);
  });
}

GZ int choose(Env e, int, u32 bits) {
  const SetBit move = chosen_bit_of<ROTATIONS>(e.legal, bits);
  return move.word < 0 ? 0 : COLUMNS * move.word + move.place;
}

GZ void step(Env e) {
  once(e, [=] {
    const int rotation = e.action / COLUMNS, left = e.action % COLUMNS;
    if (e.action < 0 || !(e.legal[rotation] >> left & 1u)) {
      e.terminated = true;
      return;
    }
    const u32 shape = (u32)e.shape[ROTATIONS * e.piece + rotation];
    int top = 0;
    while (has_room(e, shape, top + 1, left)) ++top;
    put(e, shape, top, left);
    const int cleared = clear_rows(e);
    e.reward = reward_of(cleared);
    e.score += e.reward;
    next_piece(e, 0);
    e.terminated = (e.legal[0] | e.legal[1] | e.legal[2] | e.legal[3]) == 0u;
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    const u32 shape = (u32)e.shape[ROTATIONS * e.piece];
    for (int row = 0; row < SIDE; ++row)
      for (int k = 0; k < COLUMNS; ++k) e.observation[COLUMNS * row + k] = (i8)(row_of(shape, row) >> k & 1u);
    for (int row = 0; row < ROWS; ++row) {
      const u32 filled = e.filled[row];
      for (int k = 0; k < COLUMNS; ++k) e.observation[COLUMNS * (SIDE + row) + k] = (i8)(filled >> k & 1u);
    }
    for (int rotation = 0; rotation < ROTATIONS; ++rotation)
      for (int k = 0; k < COLUMNS; ++k) e.action_mask[COLUMNS * rotation + k] = (i8)(e.legal[rotation] >> k & 1u);
  });
}
