// The board has a wall around it: point (row, column) is STRIDE * (row + 1) + column + 1. The stones of a chain form a ring.
// A set of points is a number for each row of the board and the wall: bit k is its column k.

constexpr int PASS = CELLS;
enum Cell { EMPTY, BLACK, WHITE, WALL };

GZ int point_of(int cell) { return STRIDE * (cell / SIZE + 1) + cell % SIZE + 1; }

GZ int cell_of(int point) { return SIZE * (point / STRIDE - 1) + point % STRIDE - 1; }
GZ int neighbour(int point, int k) { return point + (k == 0 ? -STRIDE : k == 1 ? -1 : k == 2 ? 1 : STRIDE); }

template <class F> GZ void at_neighbours(int point, F visit) {
  for (int k = 0; k < 4; ++k) visit(neighbour(point, k));
}

GZ bool is_stone(Env e, int point) { return e.board[point] == BLACK || e.board[point] == WHITE; }

// SplitMix64 (Steele, Lea and Flood 2014); the hash of a position is the exclusive or of those of its stones (Zobrist 1970).
GZ u64 key_of(int point, int colour) {
  u64 z = (u64)(2 * point + colour) * 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

// An empty point counts as a liberty of a chain once for each stone beside it. So all liberties are one point if and only
// if the square of their sum is their number times the sum of their squares (Cauchy and Schwarz).
GZ void add_liberty(Env e, int chain, int point, int count) {
  e.liberties[chain] += count;
  e.liberty_sum[chain] += count * point;
  e.liberty_squares[chain] += count * point * point;
}

GZ bool in_atari(Env e, int chain) {
  const i64 sum = e.liberty_sum[chain];
  return sum * sum == (i64)e.liberties[chain] * e.liberty_squares[chain];
}

GZ void change_liberties_beside(Env e, int point, int count) {
  at_neighbours(point, [=](int other) {
    if (is_stone(e, other)) add_liberty(e, e.chain[other], point, count);
  });
}

// `colour` of a stone that comes or goes.
GZ void change_stone(Env e, int point, int colour) {
  e.board[point] ^= colour;
  e.history[cell_of(point)] ^= colour;
  e.position ^= key_of(point, colour);
}

GZ void join(Env e, int chain, int other) {
  if (chain == other) return;
  int stone = other;
  do {
    e.chain[stone] = chain;
    stone = e.next[stone];
  } while (stone != other);
  e.liberties[chain] += e.liberties[other];
  e.liberty_sum[chain] += e.liberty_sum[other];
  e.liberty_squares[chain] += e.liberty_squares[other];
  const int after = e.next[chain];
  e.next[chain] = e.next[other];
  e.next[other] = after;
}

GZ int capture(Env e, int chain, int colour) {
  int stone = chain, stones = 0;
  do {
    change_stone(e, stone, colour);
    change_liberties_beside(e, stone, 1);
    stone = e.next[stone];
    ++stones;
  } while (stone != chain);
  return stones;
}

GZ void place(Env e, int point, int colour) {
  change_stone(e, point, colour);
  e.chain[point] = point;
  e.next[point] = point;
  change_liberties_beside(e, point, -1);
  e.liberties[point] = 0;
  e.liberty_sum[point] = 0;
  e.liberty_squares[point] = 0;
  at_neighbours(point, [=](int other) {
    if (e.board[other] == EMPTY) add_liberty(e, point, other, 1);
  });
  at_neighbours(point, [=](int other) {
    if (e.board[other] == colour) join(e, e.chain[other], e.chain[point]);
  });
}

GZ void play(Env e, int point, int colour) {
  const int opponent = BLACK + WHITE - colour;
  place(e, point, colour);
  int taken = 0, last = 0;
  for (int k = 0; k < 4; ++k) {
    const int other = neighbour(point, k);
    if (e.board[other] != opponent || e.liberties[e.chain[other]] != 0) continue;
    taken += capture(e, e.chain[other], opponent);
    last = other;
  }
  const bool is_alone = e.next[point] == point, has_one_liberty = e.liberties[e.chain[point]] == 1;
  e.ko = taken == 1 && is_alone && has_one_liberty ? last : 0;
  e.prisoners[colour - BLACK] += taken;
}

GZ bool is_legal(Env e, int point, int colour) {
  if (e.board[point] != EMPTY || point == e.ko) return false;
  bool legal = false;
  for (int k = 0; k < 4; ++k) {
    const int other = neighbour(point, k), there = e.board[other];
    const bool takes_or_lives = (there == colour) != in_atari(e, e.chain[other]);
    legal |= (there == EMPTY) | (is_stone(e, other) & takes_or_lives);
  }
  return legal;
}

GZ u32 row_of(Env e, int row, int what) {
  return (u32)bits_where<STRIDE>([=](int k) { return e.board[STRIDE * row + k] == what; });
}

template <class Set> GZ u32 beside(const Set &set, int row) {
  return set[row] << 1 | set[row] >> 1 | set[row - 1] | set[row + 1];
}

// Points of the other colour and those that it reaches over empty ones; the rest belongs to `colour` (Tromp and Taylor).
GZ int area(Env e, int colour) {
  for (int row = 0; row < STRIDE; ++row) {
    e.free[row] = row_of(e, row, EMPTY);
    e.reached[row] = row_of(e, row, BLACK + WHITE - colour);
  }
  for (bool spreads = true; spreads;) {
    spreads = false;
    for (int row = 1; row <= SIZE; ++row) {
      const u32 before = e.reached[row], after = before | beside(e.reached, row) & e.free[row];
      e.reached[row] = after;
      spreads |= after != before;
    }
  }
  int points = CELLS;
  for (int row = 1; row <= SIZE; ++row) points -= popcount(e.reached[row]);
  return points;
}

GZ void reset(Env e) {
  lanes(e, POINTS, [=](int p) {
    const int row = p / STRIDE - 1, column = p % STRIDE - 1;
    e.board[p] = row >= 0 && row < SIZE && column >= 0 && column < SIZE ? EMPTY : WALL;
    e.chain[p] = 0;
    e.next[p] = 0;
    e.liberties[p] = 0;
    e.liberty_sum[p] = 0;
    e.liberty_squares[p] = 0;
  });
  lanes(e, CELLS, [=](int k) { e.history[k] = 0; });
  lanes(e, MAX_MOVES, [=](int k) { e.positions[k] = 0ull; });
  once(e, [=] {
    e.prisoners[0] = 0;
    e.prisoners[1] = 0;
    e.position = 0ull;
    e.ko = 0;
    e.moves = 0;
    e.to_move = 0;
    e.last_move = -1;
  });
}

GZ void step(Env e) {
  const bool is_legal_move = broadcast(e, [=] {
    const int action = e.action[e.to_move];
    const bool places = action >= 0 && action < CELLS && is_legal(e, point_of(action), e.to_move + BLACK);
    return places || action == PASS;
  });
  if (!is_legal_move) {
    once(e, [=] {
      e.reward[e.to_move] = -1.f;
      e.terminate_all();
    });
    return;
  }
  lanes(e, CELLS, [=](int k) {
    const int seen = e.history[k];
    e.history[k] = (seen << 2 | (seen & 3)) & (1 << 2 * HISTORY) - 1;
  });
  const int moves = broadcast(e, [=] { return e.moves; });
  const bool returns = broadcast(e, [=] {
    const int action = e.action[e.to_move];
    return action != PASS && e.chain[point_of(action)] != 0;
  });
  once(e, [=] {
    const int mover = e.to_move, action = e.action[mover];
    e.ko = 0;
    if (action != PASS) play(e, point_of(action), mover + BLACK);
  });
  const bool repeats = lane_any(e, returns ? moves : 0, [=](int k) { return e.positions[k] == e.position; });
  once(e, [=] {
    const int mover = e.to_move;
    const bool passes = e.action[mover] == PASS, passes_twice = passes && e.last_move == PASS;
    e.positions[moves] = e.position;
    e.moves = moves + 1;
    e.last_move = e.action[mover];
    e.to_move = 1 - mover;
    if (!passes_twice && !repeats && moves + 1 < MAX_MOVES) return;
    const bool black_wins = repeats ? mover == 1 : (float)(area(e, BLACK) - area(e, WHITE)) > e.cfg.komi;
    e.reward[0] = black_wins ? 1.f : -1.f;
    e.reward[1] = black_wins ? -1.f : 1.f;
    e.terminate_all();
  });
}

GZ void observe(Env e) {
  const int mover = broadcast(e, [=] { return e.to_move; });
  lanes(e, STRIDE, [=](int row) { e.free[row] = row_of(e, row, EMPTY); });
  lanes(e, SIZE, [=](int k) {
    const int row = k + 1;
    const u32 free = e.free[row];
    u32 legal = free & beside(e.free, row);
    for (u32 left = free & ~legal; left != 0u; left &= left - 1u) {
      const u32 point = left & (~left + 1u);
      if (is_legal(e, STRIDE * row + popcount(point - 1u), mover + BLACK)) legal |= point;
    }
    e.legal[k] = legal >> 1;
  });
  lanes_of_bits(
      e, SIZE, SIZE, [=](int k) { return e.action_mask[row_of_mover(e)] + SIZE * k; }, [=](int k, int) { return (u64)e.legal[k]; });
  if (OBSERVERS == AGENTS) lanes(e, CELLS, [=](int k) { e.action_mask[1 - mover][k] = 0; });
  lanes(e, OBSERVERS, [=](int row) { e.action_mask[row][PASS] = observer(e, row) == mover; });
  lanes(e, OBSERVERS, CELLS, [=](int row, int k) {
    const int a = observer(e, row);
    const u32 black_first = (u32)e.history[k] & 0xffffu;
    const u32 white_first = (black_first & 0x5555u) << 1 | (black_first >> 1 & 0x5555u);
    u32 seen = a == 0 ? black_first : white_first;
    if constexpr (Config::observation_type == OBSERVATION_TYPE_PETTINGZOO) {  // who had made the move comes first
      const u32 of_white = mover == 0 ? 0x3333u : 0xccccu;
      seen = (white_first & of_white) | (black_first & ~of_white);
    }
    write_bits(e.observation[row] + PLANES * k, PLANES, seen | (u32)a << 2 * HISTORY);
  });
}
