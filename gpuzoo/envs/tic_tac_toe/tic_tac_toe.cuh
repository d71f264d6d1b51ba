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
    const u32 mark = cell < 0 ? 0u : (1u << cell) & ~(marks | others);
    const bool legal = mark != 0u;
    marks |= mark;
    const bool won = legal & has_three(marks);
    e.reward[mover] = won ? 1.f : legal ? 0.f : -1.f;
    e.reward[1 - mover] = won ? -1.f : 0.f;
    e.marks_0 = mover == 0 ? marks : others;
    e.marks_1 = mover == 0 ? others : marks;
    e.to_move = legal ? 1 - mover : mover;
    if (!legal | won | ((marks | others) == BOARD)) e.terminate_all();
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    const u32 own = a == 0 ? e.marks_0 : e.marks_1, other = a == 0 ? e.marks_1 : e.marks_0;
    const u32 free = legal(e, a);
    for (int cell = 0; cell < 9; ++cell) {
      e.observation[a][2 * cell] = (i8)(own >> cell & 1u);
      e.observation[a][2 * cell + 1] = (i8)(other >> cell & 1u);
      e.action_mask[a][cell] = (i8)(free >> cell & 1u);
    }
  });
}
