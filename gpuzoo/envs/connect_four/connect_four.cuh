// Each player's discs are the bits of one number: bit 7 * row + column, row 0 at the top.

constexpr u64 COLUMN = 0x810204081ull;  // the six cells of column 0
constexpr u64 LEFT = COLUMN * 0x0f, RIGHT = COLUMN * 0x78;
constexpr u64 BOARD = COLUMN * 0x7f;

// Whether four discs lie `step` bits apart, the first of them in one of the columns `start`.
GZ bool four(u64 discs, int step, u64 start) {
  u64 pairs = discs & discs >> step;
  return (pairs & pairs >> 2 * step & start) != 0;
}

GZ bool has_four(u64 discs) {
  return four(discs, 1, LEFT) | four(discs, 7, BOARD) | four(discs, 8, LEFT) | four(discs, 6, RIGHT);
}

GZ void reset(Env e) {
  once(e, [=] {
    e.discs_0 = e.discs_1 = 0;
    e.to_move = 0;
    e.last_move = -1;
  });
}

// The columns that a player may choose: the cells of the upper row that are free.
GZ u64 legal(Env e, int player) { return player == e.to_move ? 0x7full & ~(e.discs_0 | e.discs_1) : 0ull; }

GZ int choose(Env e, int player, u32 bits) { return chosen_bit(legal(e, player), bits); }

GZ void step(Env e) {
  once(e, [=] {
    const int mover = e.to_move, column = e.action[mover];
    u64 discs = mover == 0 ? e.discs_0 : e.discs_1, others = mover == 0 ? e.discs_1 : e.discs_0;
    const u64 empty = column < 0 ? 0 : COLUMN << column & ~(discs | others);
    const bool legal = empty != 0;
    discs |= empty & ~(empty >> 7);
    const bool won = legal & has_four(discs);
    e.reward[mover] = won ? 1.f : legal ? 0.f : -1.f;
    e.reward[1 - mover] = won ? -1.f : 0.f;
    e.discs_0 = mover == 0 ? discs : others;
    e.discs_1 = mover == 0 ? others : discs;
    e.to_move = legal ? 1 - mover : mover;
    e.last_move = legal ? column : e.last_move;
    if (!legal | won | ((discs | others) == BOARD)) e.terminate_all();
  });
}

// A word of the observation holds two cells of two bytes each: one for each player.
GZ u32 spread(u32 discs) { return (discs & 3u) * 0x8001u & 0x10001u; }

GZ void observe(Env e) {
  lanes(e, OBSERVERS, [=](int row) {
    const int a = observer(e, row);
    const u64 own = a == 0 ? e.discs_0 : e.discs_1, other = a == 0 ? e.discs_1 : e.discs_0;
    const auto out = words(e.observation[row]);
    for (int k = 0; k < 21; ++k) out[k] = spread((u32)(own >> 2 * k)) | spread((u32)(other >> 2 * k)) << 8;
    const u64 free = legal(e, a);
    for (int column = 0; column < 7; ++column) e.action_mask[row][column] = (i8)(free >> column & 1);
  });
}
