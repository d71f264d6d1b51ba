// Each player's marks are the bits of one number: bit 3 * column + row.

constexpr u32 BOARD = 0x1ffu;
constexpr u32 FIRST_ROW = 0x49u, FIRST_COLUMN = 0x7u, CORNER = 0x1u, OTHER_CORNER = 0x4u;

// Whether three marks lie `step` bits apart, the first of them in one of the cells `start`.
GZ bool three(u32 marks, int step, u32 start) { return (marks & marks >> step & marks >> 2 * step & start) != 0u; }

GZ bool has_three(u32 marks) {
  return three(marks, 1, FIRST_ROW) | three(marks, 3, FIRST_COLUMN) | three(marks, 4, CORNER) |
         three(marks, 2, OTHER_CORNER);
}

GZ void reset(Env e) {
  once(e, [=] {
    e.marks_0 = e.marks_1 = 0u;
    e.to_move = 0;
  });
}

// The cells that a player may mark.
GZ u32 legal(Env e, int player) { return player == e.to_move ? BOARD & ~(e.marks_0 | e.marks_1) : 0u; }

GZ int choose(Env e, int player, u32 bits) { return chosen_bit(legal(e, player), bits); }

GZ void step(Env e) {
  once(e, [=] {
    const int mover = e.to_move, cell = e.action[mover];
    u32 marks = mover == 0 ? e.marks_0 : e.marks_1, others = mover == 0 ? e.marks_1 : e.marks_0;
    const u32 mark = (1u << (cell & 31)) & BOARD & ~(marks | others);  // none where the action is invalid, -1
    const bool legal = mark != 0u;
    marks |= mark;
    const bool won = legal & has_three(marks);
    const int points = won ? 1 : 0;
    for (int a = 0; a < AGENTS; ++a) e.reward[a] = (float)(a != mover ? -points : legal ? points : -1);
    e.marks_0 = mover == 0 ? marks : others;
    e.marks_1 = mover == 0 ? others : marks;
    e.to_move = legal ? 1 - mover : mover;
    if (!legal | won | ((marks | others) == BOARD)) e.terminate_all();
  });
}

// Bit k of the marks becomes bit 2 k.
GZ u64 spread(u32 marks) {
  marks = (marks | marks << 8) & 0x0100ffu;
  marks = (marks | marks << 4) & 0x010f0fu;
  marks = (marks | marks << 2) & 0x013333u;
  return (marks | marks << 1) & 0x015555u;
}

GZ void observe(Env e) {
  lanes_of_bits(
      e, OBSERVERS, Const<18>(), [=](int row) { return e.observation[row]; },
      [=](int row, int) {
        const int a = observer(e, row);
        return spread(a == 0 ? e.marks_0 : e.marks_1) | spread(a == 0 ? e.marks_1 : e.marks_0) << 1;
      });
  lanes_of_bits(
      e, OBSERVERS, Const<9>(), [=](int row) { return e.action_mask[row]; },
      [=](int row, int) { return (u64)legal(e, observer(e, row)); });
}
