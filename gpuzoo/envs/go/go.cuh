// The board has a wall around it: point (row, column) is STRIDE * (row + 1) + column + 1. The stones of a chain form a ring.

constexpr int PASS = CELLS;
enum Cell { EMPTY, BLACK, WHITE, WALL };

GZ int point_of(int cell) { return STRIDE * (cell / SIZE + 1) + cell % SIZE + 1; }

template <class F> GZ void at_neighbours(int point, F visit) {
  visit(point - STRIDE);
  visit(point - 1);
  visit(point + 1);
  visit(point + STRIDE);
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
    e.board[stone] = EMPTY;
    e.position ^= key_of(stone, colour);
    change_liberties_beside(e, stone, 1);
    stone = e.next[stone];
    ++stones;
  } while (stone != chain);
  return stones;
}

GZ void place(Env e, int point, int colour) {
  e.board[point] = colour;
  e.position ^= key_of(point, colour);
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
    const int other = point + (k == 0 ? -STRIDE : k == 1 ? -1 : k == 2 ? 1 : STRIDE);
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
    const int other = point + (k == 0 ? -STRIDE : k == 1 ? -1 : k == 2 ? 1 : STRIDE);
    const int there = e.board[other];
    if (there == EMPTY) legal = true;
    if (there == BLACK || there == WHITE) legal = legal || (there == colour) != in_atari(e, e.chain[other]);
  }
  return legal;
}

// Points of the other colour and those that it reaches over empty ones; the rest belongs to `colour` (Tromp and Taylor).
GZ int area(Env e, int colour) {
  const int opponent = BLACK + WHITE - colour;
  int points = CELLS;
  for (int p = 0; p < POINTS; ++p) {
    e.reached[p] = e.board[p] == opponent;
    points -= e.board[p] == opponent;
  }
  for (bool spreads = true; spreads;) {
    spreads = false;
    for (int p = STRIDE; p < POINTS - STRIDE; ++p) {
      const bool beside = e.reached[p - STRIDE] | e.reached[p - 1] | e.reached[p + 1] | e.reached[p + STRIDE];
      if (e.board[p] != EMPTY || e.reached[p] || !beside) continue;
      e.reached[p] = true;
      points -= 1;
      spreads = true;
    }
  }
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
  const int moves = broadcast(e, [=] { return e.moves; });
  once(e, [=] {
    const int mover = e.to_move, action = e.action[mover];
    if (!is_legal_move) {
      e.reward[mover] = -1.f;
      e.terminate_all();
      return;
    }
    e.ko = 0;
    if (action != PASS) play(e, point_of(action), mover + BLACK);
  });
  if (!is_legal_move) return;
  lanes(e, CELLS, [=](int k) {
    const int there = e.board[point_of(k)];
    e.history[k] = (e.history[k] << 2 | (there == BLACK ? 1 : 0) | (there == WHITE ? 2 : 0)) & (1 << 2 * HISTORY) - 1;
  });
  const bool was_there = lane_any(e, moves, [=](int k) { return e.positions[k] == e.position; });
  once(e, [=] {
    const int mover = e.to_move;
    const bool passes = e.action[mover] == PASS, passes_twice = passes && e.last_move == PASS;
    const bool repeats = was_there && !passes;
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

// `open` holds the colours that may play beside a point: both beside an empty one, else those who have a liberty left
// there, or capture.
GZ void observe(Env e) {
  lanes(e, POINTS, [=](int p) {
    const int there = e.board[p];
    int colours = there == EMPTY ? 3 : 0;
    if (there == BLACK || there == WHITE) colours = (there == BLACK) != in_atari(e, e.chain[p]) ? 1 : 2;
    e.open[p] = colours;
  });
  lanes(e, CELLS, [=](int k) {
    const int p = point_of(k);
    const int colours = e.open[p - STRIDE] | e.open[p - 1] | e.open[p + 1] | e.open[p + STRIDE];
    const bool legal = e.board[p] == EMPTY && p != e.ko && (colours >> e.to_move & 1) != 0;
    e.action_mask[e.to_move][k] = legal;
    e.action_mask[1 - e.to_move][k] = 0;
  });
  lanes(e, AGENTS, [=](int a) { e.action_mask[a][PASS] = a == e.to_move; });
  lanes(e, AGENTS, CELLS, [=](int a, int k) {
    const u32 seen = (u32)e.history[k] & 0xffffu, own = a == 0 ? seen : (seen & 0x5555u) << 1 | (seen >> 1 & 0x5555u);
    const Row out = e.observation[a] + PLANES * k;
    for (int plane = 0; plane < 2 * HISTORY; ++plane) out[plane] = own >> plane & 1u;
    out[2 * HISTORY] = a;
  });
}
