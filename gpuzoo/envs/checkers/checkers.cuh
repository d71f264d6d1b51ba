// Bit COLUMNS * row + column of a set is a cell of the board as player_0 sees it, row 0 at the top. Of the two cells
// 2 * square and 2 * square + 1 one is dark. A set of moves in one direction up or down has bit 2 * square for the move
// to the left and bit 2 * square + 1 for that to the right. Player_1 sees the board turned by half a turn, and so the bits
// of all sets in the opposite order.

enum Direction { UP_LEFT, UP_RIGHT, DOWN_LEFT, DOWN_RIGHT };
constexpr int ACTIONS = 2 * CELLS;
constexpr u64 BOARD = ~0ull >> (64 - CELLS), TOP_ROW = (1ull << COLUMNS) - 1ull;
constexpr u64 EDGES = TOP_ROW | TOP_ROW << (CELLS - COLUMNS);
constexpr u64 EVERY_SECOND_ROW = BOARD / ((1ull << 2 * COLUMNS) - 1ull);
constexpr u64 EVEN_ROWS = EVERY_SECOND_ROW * (TOP_ROW & 0xaaaaull);
constexpr u64 ODD_ROWS = EVERY_SECOND_ROW * (TOP_ROW & 0x5555ull) << COLUMNS;
constexpr u64 DARK = EVEN_ROWS | ODD_ROWS;

struct Moves {
  u64 up, down;
};

struct Side {
  u64 going_up, going_down, others, free;
};

// Beyond the left or the right edge lies a light cell.
template <int DIRECTION> GZ u64 moved(u64 set) {
  if constexpr (DIRECTION == UP_LEFT) return set >> (COLUMNS + 1);
  if constexpr (DIRECTION == UP_RIGHT) return set >> (COLUMNS - 1);
  if constexpr (DIRECTION == DOWN_LEFT) return set << (COLUMNS - 1);
  if constexpr (DIRECTION == DOWN_RIGHT) return set << (COLUMNS + 1);
}

template <int DIRECTION> GZ u64 before(u64 set) { return moved<3 - DIRECTION>(set); }

template <int DIRECTION> GZ u64 who_steps(u64 movers, u64 free) { return movers & before<DIRECTION>(free); }

template <int DIRECTION> GZ u64 who_jumps(u64 movers, u64 others, u64 free) {
  return movers & before<DIRECTION>(others & before<DIRECTION>(free));
}

GZ u64 left_and_right(u64 left, u64 right) {
  return (left & EVEN_ROWS) >> 1 | left & ODD_ROWS | right & EVEN_ROWS | (right & ODD_ROWS) << 1;
}

GZ Moves steps(Side s) {
  return {left_and_right(who_steps<UP_LEFT>(s.going_up, s.free), who_steps<UP_RIGHT>(s.going_up, s.free)),
          left_and_right(who_steps<DOWN_LEFT>(s.going_down, s.free), who_steps<DOWN_RIGHT>(s.going_down, s.free))};
}

GZ Moves jumps(Side s) {
  return {left_and_right(who_jumps<UP_LEFT>(s.going_up, s.others, s.free),
                         who_jumps<UP_RIGHT>(s.going_up, s.others, s.free)),
          left_and_right(who_jumps<DOWN_LEFT>(s.going_down, s.others, s.free),
                         who_jumps<DOWN_RIGHT>(s.going_down, s.others, s.free))};
}

GZ bool any(Moves moves) { return (moves.up | moves.down) != 0ull; }

GZ Side side_of(int player, u64 movers, u64 kings, u64 others, u64 pieces) {
  return {player == 0 ? movers : movers & kings, player == 1 ? movers : movers & kings, others, DARK & ~pieces};
}

GZ Moves legal_moves(Side s) {
  const Moves captures = jumps(s);
  return any(captures) ? captures : steps(s);
}

GZ int seen_by(int player, int action) { return player == 0 ? action : ACTIONS - 1 - action; }

GZ u64 cell_of(int square) { return 1ull << (2 * square + 1 - square / (COLUMNS / 2) % 2); }

GZ bool is_legal(Env e, int move) { return (e.legal[move / CELLS] >> move % CELLS & 1ull) != 0ull; }

GZ int choose(Env e, int player, u32 bits) {
  if (player != e.to_move) return 0;
  const SetBit move = chosen_bit_of<2>(e.legal, bits);
  return move.word < 0 ? 0 : seen_by(player, CELLS * move.word + move.place);
}

GZ void reset(Env e) {
  once(e, [=] {
    const u64 pieces_0 = e.start[0], pieces_1 = e.start[1], kings = e.start[2], jumper = e.start[3];
    const int player = (int)e.start[4];
    const u64 own = player == 0 ? pieces_0 : pieces_1, others = player == 0 ? pieces_1 : pieces_0;
    const Moves moves = legal_moves(side_of(player, jumper == 0ull ? own : jumper, kings, others, own | others));
    e.pieces_0 = pieces_0;
    e.pieces_1 = pieces_1;
    e.kings = kings;
    e.jumper = jumper;
    e.legal[0] = moves.up;
    e.legal[1] = moves.down;
    e.to_move = player;
    e.quiet_moves = (int)e.start[5];
    e.last_move = -1;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    const int mover = e.to_move, action = e.action[mover], move = seen_by(mover, action);
    if (action < 0 || !is_legal(e, move)) {
      e.reward[mover] = -1.f;
      e.terminate_all();
      return;
    }
    u64 own = mover == 0 ? e.pieces_0 : e.pieces_1, others = mover == 0 ? e.pieces_1 : e.pieces_0, kings = e.kings;
    const bool down = move >= CELLS, right = move % 2 == 1;
    const int by = down == right ? COLUMNS + 1 : COLUMNS - 1;
    const u64 from = cell_of(move % CELLS / 2), next = down ? from << by : from >> by;
    const u64 captured = next & others, to = captured == 0ull ? next : down ? next << by : next >> by;
    const bool captures = captured != 0ull, king = (from & kings) != 0ull, crowned = !king && (to & EDGES) != 0ull;
    own ^= from | to;
    others ^= captured;
    kings = kings & ~(from | captured) | (king || crowned ? to : 0ull);
    Moves moves = {0ull, 0ull};
    if (captures && !crowned) moves = jumps(side_of(mover, to, kings, others, own | others));
    const bool again = any(moves);
    if (!again) moves = legal_moves(side_of(1 - mover, others, kings, own, own | others));
    e.pieces_0 = mover == 0 ? own : others;
    e.pieces_1 = mover == 0 ? others : own;
    e.kings = kings;
    e.jumper = again ? to : 0ull;
    e.legal[0] = moves.up;
    e.legal[1] = moves.down;
    e.to_move = again ? mover : 1 - mover;
    e.quiet_moves = captures ? 0 : e.quiet_moves + 1;
    e.last_move = move;
    const bool draw = e.quiet_moves >= MOST_QUIET_MOVES, won = !draw && !any(moves);
    e.reward[mover] = won ? 1.f : 0.f;
    e.reward[1 - mover] = won ? -1.f : 0.f;
    if (draw || won) e.terminate_all();
  });
}

GZ u64 reversed(u64 set) {
  set = set >> 1 & 0x5555555555555555ull | (set & 0x5555555555555555ull) << 1;
  set = set >> 2 & 0x3333333333333333ull | (set & 0x3333333333333333ull) << 2;
  set = set >> 4 & 0x0f0f0f0f0f0f0f0full | (set & 0x0f0f0f0f0f0f0f0full) << 4;
  set = set >> 8 & 0x00ff00ff00ff00ffull | (set & 0x00ff00ff00ff00ffull) << 8;
  set = set >> 16 & 0x0000ffff0000ffffull | (set & 0x0000ffff0000ffffull) << 16;
  return (set >> 32 | set << 32) >> (64 - CELLS);
}

GZ u64 seen(int player, u64 set) { return player == 0 ? set : reversed(set); }

// Four bits become the lowest bits of four bytes.
GZ u32 spread(u32 bits) { return (bits & 15u) * 0x204081u & 0x01010101u; }

// Bit 8 * k + PLANE: whether a set has the k-th of four cells.
template <int PLANE> GZ u32 plane(u64 set, int first) { return spread((u32)(set >> first)) << PLANE; }

GZ u32 quarters(int quiet_moves) {
  const int share = 4 * quiet_moves / MOST_QUIET_MOVES;
  return (share >= 3 ? 0xe0u : share == 2 ? 0x60u : share == 1 ? 0x20u : 0u) * 0x01010101u;
}

GZ void observe(Env e) {
  lanes(e, OBSERVERS, [=](int row) {
    const int a = observer(e, row);
    const u64 own = seen(a, a == 0 ? e.pieces_0 : e.pieces_1), others = seen(a, a == 0 ? e.pieces_1 : e.pieces_0);
    const u64 kings = seen(a, e.kings), jumper = seen(a, e.jumper);
    const u32 draw = quarters(e.quiet_moves);
    for (int cell = 0; cell < CELLS; cell += 4) {
      const u32 planes = plane<0>(own & ~kings, cell) | plane<1>(own & kings, cell) | plane<2>(others & ~kings, cell) |
                         plane<3>(others & kings, cell) | plane<4>(jumper, cell) | draw;
      write_bits(e.observation[row] + cell * CHANNELS, 4 * CHANNELS, (u64)planes);
    }
    const bool moves = a == e.to_move;
    write_bits(e.action_mask[row] + 0, CELLS, moves ? seen(a, e.legal[a]) : 0ull);
    write_bits(e.action_mask[row] + CELLS, CELLS, moves ? seen(a, e.legal[1 - a]) : 0ull);
  });
}
