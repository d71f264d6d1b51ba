// Cells are 4 * column + row as the player to move sees them: row 0 is the opponent's. Pieces are 0 to 4 for one's own,
// 5 to 9 for the opponent's. Row 0 of `history` and of `hands` is the present.

enum Piece { EMPTY = -1, CHICK, ELEPHANT, GIRAFFE, LION, HEN, KINDS };
constexpr int CELLS = 12, HANDS = 6, PIECES = 10, PAST = 8, PLANES = 24, CHANNELS = 194;
constexpr int DIRECTIONS = 8, DROPS = 3, WORDS = DIRECTIONS + DROPS;
constexpr u32 BOARD = 0xfff, PIECE_PLANES = (1u << PIECES) - 1u;

GZ int other_side(int piece) { return piece == EMPTY ? (int)EMPTY : piece < KINDS ? piece + KINDS : piece - KINDS; }
GZ u32 lowest(u32 set) { return set & (~set + 1u); }

// What leaves the board disappears, as does what comes from another column's end.
GZ u32 moved(Env e, u32 set, int d) {
  const int by = e.by[d];
  return (by > 0 ? set << by : set >> -by) & (u32)e.onto[d];
}

// Those of one side who can go in direction d, as that side sees it.
GZ u32 movers(Env e, int first, int d) {
  u32 set = 0;
  for (int kind = 0; kind < KINDS; ++kind) set |= (e.ways[kind] >> d & 1) != 0 ? e.cells[first + kind] : 0u;
  return set;
}

// Nobody moves farther than to a neighbour, so a check is answered by the lion or by the capture of who gives it.
GZ void find_legal_moves(Env e) {
  once(e, [=] {
    for (int piece = 0; piece <= PIECES; ++piece) e.cells[piece] = 0;
    for (int cell = 0; cell < CELLS; ++cell) e.cells[(e.history[cell] + PIECES + 1) % (PIECES + 1)] |= 1u << cell;
  });
  lanes(e, DIRECTIONS, [=](int d) {
    e.going[d] = movers(e, 0, d);
    e.coming[7 - d] = movers(e, KINDS, d);
  });
  once(e, [=] {
    const u32 lion = e.cells[LION], empty = e.cells[PIECES];
    u32 attacked = 0, checkers = 0, own = 0;
    for (int kind = 0; kind < KINDS; ++kind) own |= e.cells[kind];
    for (int d = 0; d < DIRECTIONS; ++d) {
      attacked |= moved(e, e.coming[d], d);
      checkers |= moved(e, lion, 7 - d) & e.coming[d];
    }
    const u32 target = checkers == 0 ? BOARD : checkers == lowest(checkers) ? checkers : 0;
    for (int d = 0; d < DIRECTIONS; ++d) {
      const u32 goals = moved(e, e.going[d] & ~lion, d) & target | moved(e, lion, d) & ~attacked;
      e.legal[d] = moved(e, goals & ~own, 7 - d);
    }
    for (int kind = 0; kind < DROPS; ++kind)
      e.legal[DIRECTIONS + kind] = e.hands[kind] > 0 && checkers == 0 ? empty : 0;
  });
}

GZ void reset(Env e) {
  lanes(e, PAST * CELLS, [=](int k) { e.history[k] = k < CELLS ? (i8)e.start[k] : (i8)EMPTY; });
  lanes(e, PAST * HANDS, [=](int k) { e.hands[k] = 0; });
  lanes(e, PAST, [=](int k) { e.repetitions[k] = 0; });
  lanes(e, MOST_MOVES + 1, [=](int k) { e.hashes[k] = k == 0 ? 1ull : 0ull; });
  once(e, [=] {
    e.hash = 1ull;
    e.to_move = 0;
    e.moves = 0;
    e.last_move = -1;
  });
  find_legal_moves(e);
}

GZ bool is_legal(Env e, int action) {
  return action >= 0 && (e.legal[max(action, 0) / CELLS] >> max(action, 0) % CELLS & 1u) != 0;
}

GZ int choose(Env e, int player, u32 bits) {
  if (player != e.to_move) return 0;
  const SetBit move = chosen_bit_of<WORDS>(e.legal, bits);
  return move.word < 0 ? 0 : move.word * CELLS + move.place;
}

GZ u64 cell_key(Env e, int cell, int piece) {
  const bool first = e.to_move == 0;
  return e.keys[(first ? cell : CELLS - 1 - cell) * 10 + (first ? piece : other_side(piece))];
}
GZ u64 hand_key(Env e, int kind, int number) { return e.keys[HAND_KEYS + (e.to_move * 3 + kind) * 3 + number]; }

// Pgx's hash: a captured piece leaves from where the capturing one stood, and a move without a capture counts as one of a
// chick. So positions are taken for different in some games where they are the same.
GZ void move_piece(Env e, int word, int from) {
  const int to = from + e.by[word], piece = e.board[from], taken = e.board[to];
  const int gains = taken == EMPTY ? (int)CHICK : taken - KINDS == HEN ? (int)CHICK : taken - KINDS;
  const int becomes = piece == CHICK && from % 4 == 1 ? (int)HEN : piece;
  e.hash ^= cell_key(e, from, piece) ^ cell_key(e, to, becomes);
  if (taken != EMPTY) {
    e.hash ^= cell_key(e, from, taken);
    e.hand[gains] = (i8)(e.hand[gains] + 1);
  }
  const int held = e.hand[gains];
  e.hash ^= hand_key(e, gains, held == 0 ? 2 : held - 1) ^ hand_key(e, gains, held);
  e.board[from] = (i8)EMPTY;
  e.board[to] = (i8)becomes;
}

GZ void drop_piece(Env e, int kind, int to) {
  const int held = e.hand[kind];
  e.hash ^= cell_key(e, to, kind) ^ hand_key(e, kind, min(held + 1, 2)) ^ hand_key(e, kind, held);
  e.hand[kind] = (i8)(held - 1);
  e.board[to] = (i8)kind;
}

GZ bool lion_is_home(Env e) { return e.board[0] == LION || e.board[4] == LION || e.board[8] == LION; }

// As in Pgx, 8 numbers move on in each step, though a board has 12 and hands have 6.
GZ void turn_history(Env e) {
  lanes(e, PAST * CELLS - 8, [=](int k) { e.next_history[k + 8] = e.history[k]; });
  lanes(e, CELLS, [=](int k) { e.next_history[k] = e.board[k]; });
  lanes(e, PAST * HANDS - 8, [=](int k) { e.next_hands[k + 8] = e.hands[k]; });
  lanes(e, 8, [=](int k) { e.next_hands[k] = k < HANDS ? e.hand[min(k, HANDS - 1)] : e.hands[PAST * HANDS - 8 + k]; });
  lanes(e, PAST, CELLS, [=](int age, int k) {
    e.history[age * CELLS + k] = (i8)other_side(e.next_history[age * CELLS + CELLS - 1 - k]);
  });
  lanes(e, PAST, 3, [=](int age, int k) {
    e.hands[age * HANDS + k] = e.next_hands[age * HANDS + k + 3];
    e.hands[age * HANDS + k + 3] = e.next_hands[age * HANDS + k];
  });
}

GZ void step(Env e) {
  const int action = broadcast(e, [=] { return e.action[e.to_move]; });
  if (!broadcast(e, [=] { return is_legal(e, action); })) {
    once(e, [=] {
      e.reward[e.to_move] = -1.f;
      e.terminate_all();
    });
    return;
  }
  lanes(e, CELLS, [=](int k) { e.board[k] = e.history[k]; });
  lanes(e, HANDS, [=](int k) { e.hand[k] = e.hands[k]; });
  once(e, [=] {
    const int word = action / CELLS, cell = action % CELLS;
    if (word < DIRECTIONS)
      move_piece(e, word, cell);
    else
      drop_piece(e, word - DIRECTIONS, cell);
    e.last_move = action;
  });
  turn_history(e);
  once(e, [=] {
    e.hash ^= e.keys[SIDE_KEY];
    e.to_move = 1 - e.to_move;
    e.moves += 1;
  });
  find_legal_moves(e);
  once(e, [=] {
    int before = 0;
    for (int k = 0; k < e.moves; ++k) before += e.hashes[k] == e.hash ? 1 : 0;
    e.hashes[e.moves] = e.hash;
    for (int k = PAST - 1; k > 0; --k) e.repetitions[k] = e.repetitions[k - 1];
    e.repetitions[0] = (u8)before;
    u32 any = 0;
    for (int k = 0; k < WORDS; ++k) any |= e.legal[k];
    const bool repeats = before >= 2, won = any == 0 || lion_is_home(e);
    if (won && !repeats) {
      e.reward[e.to_move] = -1.f;
      e.reward[1 - e.to_move] = 1.f;
    }
    if (won || repeats || e.moves >= MOST_MOVES) e.terminate_all();
  });
}

// What is observed of hands and repetitions, a bit for each plane behind those of pieces.
GZ u32 known_planes(Env e, int age, bool turned) {
  u32 planes = e.repetitions[age] < 2 ? 1u << 2 * HANDS + e.repetitions[age] : 0u;
  for (int p = 0; p < HANDS; ++p) {
    const int held = e.hands[age * HANDS + (turned ? (p + 3) % HANDS : p)];
    planes |= (held >= 2 ? 3u : held >= 1 ? 1u : 0u) << 2 * p;
  }
  return planes << PIECES;
}

GZ u32 planes(Env e, int a, int age, int cell, bool turned) {
  const u32 shown = e.shown[age * CELLS + cell];
  return e.known[a * PAST + age] | (turned ? shown >> KINDS | shown << KINDS : shown) & PIECE_PLANES;
}

GZ void observe(Env e) {
  const int mover = broadcast(e, [=] { return e.to_move; });
  lanes(e, PAST * CELLS, [=](int k) { e.shown[k] = 1u << (e.history[k] & 31); });
  lanes(e, OBSERVERS, PAST, [=](int row, int age) {
    e.known[row * PAST + age] = known_planes(e, age, observer(e, row) != mover);
  });
  for (int row = 0; row < OBSERVERS; ++row) {  // two positions in a row of bits, so that it fills whole vectors
    const bool turned = observer(e, row) != mover;
    lanes_of_bits(
        e, Const<CELLS * PAST / 2>(), Const<2 * PLANES>(),
        [=](int k) { return e.observation[row] + 2 * k / PAST * CHANNELS + 2 * k % PAST * PLANES; },
        [=](int k, int) {
          const int place = 2 * k / PAST, age = 2 * k % PAST, cell = (2 - place % 3) * 4 + place / 3;
          const int seen_as = turned ? CELLS - 1 - cell : cell;
          return (u64)planes(e, row, age, seen_as, turned) | (u64)planes(e, row, age + 1, seen_as, turned) << PLANES;
        });
  }
  lanes(e, OBSERVERS, CELLS, [=](int row, int place) {
    e.observation[row][place * CHANNELS + PAST * PLANES] = (float)observer(e, row);
    e.observation[row][place * CHANNELS + PAST * PLANES + 1] = (float)e.moves / (float)MOST_MOVES;
  });
  lanes_of_bits(
      e, Const<OBSERVERS * WORDS>(), Const<CELLS>(), [=](int k) { return e.action_mask[k / WORDS] + k % WORDS * CELLS; },
      [=](int k, int) { return observer(e, k / WORDS) == mover ? e.legal[k % WORDS] : 0u; });
}
