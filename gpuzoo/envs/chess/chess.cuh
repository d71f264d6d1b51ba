// Bit SIZE * row + column of a set is a square as the player to move sees it, who plays upwards. Directions come in
// opposite pairs, d and d ^ 1. Fields of cells (`board`, `en_passant`) have White's view.

enum Piece { NONE, PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING };
enum Direction { DOWN, UP, LEFT, RIGHT, DOWN_LEFT, UP_RIGHT, UP_LEFT, DOWN_RIGHT, DIRECTIONS };
constexpr int REACH = SIZE - 1, KNIGHT_MOVES = REACH * DIRECTIONS, UNDERPROMOTIONS = KNIGHT_MOVES + DIRECTIONS;
constexpr u64 BOTTOM_ROW = (1ull << SIZE) - 1ull, TOP_ROW = BOTTOM_ROW << SIZE * REACH;
constexpr u64 SEVENTH_ROW = TOP_ROW >> SIZE, DARK = SIZE == 8 ? 0xaa55aa55aa55aa55ull : 0x1555555ull;
constexpr int KINGS_HOME = 4;

GZ u64 square(int cell) { return 1ull << cell; }
GZ int cell_of(u64 one) { return popcount(one - 1ull); }
GZ u64 rotated(u64 set, u64 by) { return set << by | set >> 64ull - by; }

template <int ROW = 0> GZ u64 flipped(u64 set) {
  if constexpr (ROW == SIZE)
    return 0ull;
  else
    return (set >> SIZE * ROW & BOTTOM_ROW) << SIZE * (REACH - ROW) | flipped<ROW + 1>(set);
}
GZ int flipped_cell(int cell) { return (REACH - cell / SIZE) * SIZE + cell % SIZE; }
GZ int seen_by(int player, int cell) { return player == 0 ? cell : flipped_cell(cell); }

// `from` and all that is reached from it over squares of `through` (Kogge and Stone's parallel prefix).
GZ u64 filled(u64 from, u64 through, u64 by) {
  const u64 twice = 2ull * by & 63ull, four_times = 4ull * by & 63ull;
  from |= through & rotated(from, by);
  through &= rotated(through, by);
  from |= through & rotated(from, twice);
  through &= rotated(through, twice);
  return from | through & rotated(from, four_times);
}

GZ u64 occupied(Env e) { return e.pawns | e.knights | e.bishops | e.rooks | e.queens | e.kings; }
GZ u64 sliders(Env e, int d) { return e.queens | (d < DOWN_LEFT ? e.rooks : e.bishops); }

// What the opponent attacks in one direction if the own king steps aside, who checks from there, and who is pinned.
GZ void look_around(Env e, int d) {
  const u64 by = e.by[d], onto = e.onto[d], jump = e.jump[d], landing = e.landing[d];
  const u64 pieces = occupied(e), own = e.own, others = pieces & ~own, king = e.kings & own;
  const u64 lines = sliders(e, d) & others, free = ~pieces & onto;
  const u64 down = d == DOWN_LEFT || d == DOWN_RIGHT ? ~0ull : 0ull, up = d == UP_LEFT || d == UP_RIGHT ? ~0ull : 0ull;
  const u64 beside = e.kings & others | e.pawns & others & down;
  e.attacks[d] = rotated(filled(lines, free | king & onto, by) | beside, by) & onto |
                 rotated(e.knights & others, jump) & landing;
  const u64 ray = rotated(filled(king, free, by), by) & onto, shield = ray & own;
  const u64 behind = rotated(filled(shield, free, by), by) & onto;
  const u64 near = rotated(king, by) & onto & e.pawns & others & up | rotated(king, jump) & landing & e.knights & others;
  e.checkers[d] = ray & lines | near;
  e.evasions[d] = (ray & lines ? ray : 0ull) | near;
  e.pinned[d] = behind & lines ? shield : 0ull;
}

// Sets of those who may move K squares in direction d, for each K.
template <int K = 1> GZ void slide(Env e, int d, u64 there, u64 free, u64 target, u64 by, u64 onto) {
  there = rotated(there, by) & onto;
  e.legal[(K - 1) * DIRECTIONS + d] = rotated(there & target, (u64)K * (64ull - by) & 63ull);
  if constexpr (K < REACH) slide<K + 1>(e, d, there & free, free, target, by, onto);
}

GZ void find_moves(Env e, int d) {
  const u64 by = e.by[d], onto = e.onto[d], pieces = occupied(e), own = e.own, others = pieces & ~own, king = e.kings & own;
  const u64 loose = own & (~e.all_pinned | e.pinned[d] | e.pinned[d ^ 1]), target = e.target & ~own;
  const u64 steps = d == UP ? ~pieces : d == UP_LEFT || d == UP_RIGHT ? others : 0ull;
  slide(e, d, sliders(e, d) & loose, ~pieces, target, by, onto);
  const u64 near = rotated(king, by) & onto & ~own & ~e.attacked | rotated(e.pawns & loose, by) & onto & steps & e.target;
  e.legal[d] |= rotated(near, 64ull - by);
  const u64 jump = e.jump[d], landing = rotated(e.knights & own & ~e.all_pinned, jump) & e.landing[d] & target;
  e.legal[KNIGHT_MOVES + d] = rotated(landing, 64ull - jump);
}

GZ bool safe_after(Env e, u64 pieces, u64 gone) {
  const u64 others = pieces & ~e.own & ~gone, king = e.kings & e.own;
  u64 checkers = 0ull;
  for (int d = 0; d < DIRECTIONS; ++d) {
    const u64 by = e.by[d], onto = e.onto[d];
    checkers |= rotated(filled(king, ~pieces & onto, by), by) & onto & sliders(e, d) & others;
    checkers |= e.checkers[d] & ~gone & (e.knights | e.pawns);
  }
  return checkers == 0ull;
}

GZ void add_en_passant(Env e, int d) {
  const u64 end = square(seen_by(e.to_move, e.en_passant)), gone = end >> SIZE, by = 64ull - e.by[d];
  const u64 start = rotated(end, by) & e.onto[d ^ 1] & e.pawns & e.own;
  if (start != 0ull && safe_after(e, occupied(e) & ~start & ~gone | end, gone)) e.legal[d] |= start;
}

GZ void add_special_moves(Env e) {
  const u64 pieces = occupied(e), pawns = e.pawns & e.own;
  const u64 loose = pawns & (~e.all_pinned | e.pinned[UP] | e.pinned[DOWN]) & BOTTOM_ROW << SIZE;
  e.legal[DIRECTIONS + UP] |= loose & ~pieces >> SIZE & (~pieces & e.target) >> 2 * SIZE;
  if (e.en_passant >= 0) {
    add_en_passant(e, UP_LEFT);
    add_en_passant(e, UP_RIGHT);
  }
  const int rights = e.castling >> 2 * e.to_move;
  const u64 clear = BOTTOM_ROW & ~pieces, safe = ~e.attacked;
  if ((rights & 1) && (clear & 0x0eull) == 0x0eull && (safe & 0x1cull) == 0x1cull)
    e.legal[DIRECTIONS + LEFT] |= square(KINGS_HOME);
  if ((rights & 2) && (clear & 0x60ull) == 0x60ull && (safe & 0x70ull) == 0x70ull)
    e.legal[DIRECTIONS + RIGHT] |= square(KINGS_HOME);
}

GZ void find_legal_moves(Env e) {
  lanes(e, DIRECTIONS, [=](int d) { look_around(e, d); });
  once(e, [=] {
    u64 attacked = 0ull, checkers = 0ull, evasions = 0ull, pinned = 0ull;
    for (int d = 0; d < DIRECTIONS; ++d) {
      attacked |= e.attacks[d];
      checkers |= e.checkers[d];
      evasions |= e.evasions[d];
      pinned |= e.pinned[d];
    }
    e.attacked = attacked;
    e.all_pinned = pinned;
    e.target = checkers == 0ull ? ~0ull : (checkers & checkers - 1ull) == 0ull ? evasions : 0ull;
    e.in_check = checkers != 0ull;
  });
  lanes(e, DIRECTIONS, [=](int d) { find_moves(e, d); });
  once(e, [=] {
    if constexpr (SIZE == 8) add_special_moves(e);
    const u64 promoted = e.pawns & e.own & SEVENTH_ROW;
    for (int k = 0; k < 9; ++k) {
      const int d = k % 3 == 0 ? (int)UP : k % 3 == 1 ? (int)UP_RIGHT : (int)UP_LEFT;
      e.legal[UNDERPROMOTIONS + k] = e.legal[d] & promoted;
    }
  });
}

// PettingZoo shows what positions were when they came about; other configurations have no such field.
constexpr u32 CAME_AGAIN = 1u << 7;
template <class E> GZ void forget_past(E e) {
  if constexpr (AS_PETTINGZOO) e.past = 0ull;
}
template <class E> GZ void remember(E e, bool came_again) {
  const u64 passed = e.en_passant < 0 ? 0ull : 1ull + (u64)e.en_passant % SIZE;
  if constexpr (AS_PETTINGZOO) e.past = e.past << 8 | passed | (came_again ? CAME_AGAIN : 0u);
}

GZ void reset(Env e) {
  lanes(e, HISTORY * CELLS, [=](int k) { e.board[k] = k < CELLS ? (u8)e.start[k] : (u8)NONE; });
  lanes(e, RING, [=](int k) { e.hashes[k] = k == 0 ? 1ull : 0ull; });
  once(e, [=] {
    e.pawns = e.start_sets[PAWN];
    e.knights = e.start_sets[KNIGHT];
    e.bishops = e.start_sets[BISHOP];
    e.rooks = e.start_sets[ROOK];
    e.queens = e.start_sets[QUEEN];
    e.kings = e.start_sets[KING];
    e.own = e.start_sets[NONE];
    e.to_move = e.start[CELLS];
    e.castling = e.start[CELLS + 1];
    e.en_passant = e.start[CELLS + 2];
    e.halfmove_clock = e.start[CELLS + 3];
    e.moves = 0;
    e.fullmove_number = e.start[CELLS + 4];
    e.hash = 1ull;
    e.repeated = 0;
    e.last_move = -1;
    forget_past(e);
  });
  find_legal_moves(e);
}

GZ void put_piece(Env e, int place, int cell, int code) {
  const int old = e.board[place + cell];
  e.hash ^= e.keys[old * CELLS + cell] ^ e.keys[code * CELLS + cell];
  e.board[place + cell] = (u8)code;
}

// Returns the material that the move wins, in pawns.
GZ int move_piece(Env e, int action) {
  const int plane = action % PLANES, column = action / PLANES / SIZE, row = action / PLANES % SIZE, mover = e.to_move;
  const int from = SIZE * row + column, to = from + e.offset[plane], place = (e.moves + 1) % HISTORY * CELLS;
  const int start = seen_by(mover, from), end = seen_by(mover, to), forward = mover == 0 ? SIZE : -SIZE;
  const int before = e.board[place + start], type = before - 6 * mover;
  const bool pawn = type == PAWN;
  const int becomes = plane < 9 ? (plane < 3 ? (int)ROOK : plane < 6 ? (int)BISHOP : (int)KNIGHT)
                      : pawn && row == SIZE - 2 ? (int)QUEEN
                                                : type;
  int captured = e.board[place + end] == NONE ? (int)NONE : e.board[place + end] - 6 * (1 - mover);
  const bool captures = captured != NONE;
  const u64 first = square(from), last = square(to);
  u64 gone = first | last;
  put_piece(e, place, start, NONE);
  put_piece(e, place, end, becomes + 6 * mover);
  if constexpr (SIZE == 8) {
    e.hash ^= e.keys[EN_PASSANT_KEYS + e.en_passant + 1] ^ e.keys[CASTLING_KEYS + e.castling];
    if (pawn && end == e.en_passant) {
      captured = PAWN;
      gone |= last >> SIZE;
      put_piece(e, place, end - forward, NONE);
    }
    e.en_passant = pawn && to - from == 2 * SIZE ? start + forward : -1;
    e.castling &= e.rights_after[start] & e.rights_after[end];
    e.hash ^= e.keys[EN_PASSANT_KEYS + e.en_passant + 1] ^ e.keys[CASTLING_KEYS + e.castling];
  }
  e.pawns = e.pawns & ~gone | (becomes == PAWN ? last : 0ull);
  e.knights = e.knights & ~gone | (becomes == KNIGHT ? last : 0ull);
  e.bishops = e.bishops & ~gone | (becomes == BISHOP ? last : 0ull);
  e.rooks = e.rooks & ~gone | (becomes == ROOK ? last : 0ull);
  e.queens = e.queens & ~gone | (becomes == QUEEN ? last : 0ull);
  e.kings = e.kings & ~gone | (becomes == KING ? last : 0ull);
  e.own = e.own & ~gone | last;
  if (SIZE == 8 && type == KING && abs(to - from) == 2) {
    const int corner = to < from ? 0 : REACH, beside = (from + to) / 2;
    e.rooks ^= square(corner) | square(beside);
    e.own ^= square(corner) | square(beside);
    put_piece(e, place, seen_by(mover, corner), NONE);
    put_piece(e, place, seen_by(mover, beside), (int)ROOK + 6 * mover);
  }
  e.halfmove_clock = captures || pawn ? 0 : e.halfmove_clock + 1;
  e.fullmove_number += mover;
  return e.worth[captured] + e.worth[becomes] - e.worth[type];
}

GZ void turn_board(Env e) {
  e.own = flipped(occupied(e) & ~e.own);
  e.pawns = flipped(e.pawns);
  e.knights = flipped(e.knights);
  e.bishops = flipped(e.bishops);
  e.rooks = flipped(e.rooks);
  e.queens = flipped(e.queens);
  e.kings = flipped(e.kings);
  e.to_move = 1 - e.to_move;
  e.moves += 1;
  e.hash ^= e.keys[SIDE_KEY];
}

// Counts how often the position has been there. Bit k of `repeated` says that the position of k moves ago occurs twice.
GZ int count_repetitions(Env e) {
  int count = 0, repeated = e.repeated << 1;
  for (int k = 4; k <= min(e.halfmove_clock, e.moves); k += 2)
    if (e.hashes[(e.moves - k) % RING] == e.hash) {
      ++count;
      repeated |= 1 | 1 << min(k, HISTORY);
    }
  e.hashes[e.moves % RING] = e.hash;
  e.repeated = repeated & (1 << HISTORY) - 1;
  remember(e, count > 0);
  return count;
}

GZ bool too_few_pieces(Env e) {
  const bool only_bishops = e.knights == 0ull && ((e.bishops & DARK) == 0ull || (e.bishops & ~DARK) == 0ull);
  return (e.pawns | e.rooks | e.queens) == 0ull && (popcount(occupied(e)) <= 3 || only_bishops);
}

// Actions count squares column by column.
GZ int transposed(int cell) { return cell % SIZE * SIZE + cell / SIZE; }

GZ bool is_legal(Env e, int action) {
  return action >= 0 && (e.legal[e.word_of[action % PLANES]] >> transposed(action / PLANES) & 1ull) != 0ull;
}

GZ int choose(Env e, int player, u32 bits) {
  if (player != e.to_move) return 0;
  const SetBit move = chosen_bit_of<PLANES>(e.legal, bits);
  return move.word < 0 ? 0 : transposed(move.place) * PLANES + e.plane_of[move.word];
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
  lanes(e, CELLS, [=](int cell) {
    e.board[(e.moves + 1) % HISTORY * CELLS + cell] = e.board[e.moves % HISTORY * CELLS + cell];
  });
  once(e, [=] {
    e.last_move = action;
    const float won = e.cfg.material_reward * (float)move_piece(e, action);
    e.reward[e.to_move] = won;
    turn_board(e);
    e.reward[e.to_move] = 0.f - won;
  });
  find_legal_moves(e);
  once(e, [=] {
    u64 any = 0ull;
    for (int word = 0; word < PLANES; ++word) any |= e.legal[word];
    const bool third_time = count_repetitions(e) >= 2;
    if (any == 0ull && e.in_check) {
      e.reward[e.to_move] -= 1.f;
      e.reward[1 - e.to_move] += 1.f;
    }
    if (any == 0ull || third_time || e.halfmove_clock >= 100 || e.moves >= MOST_MOVES || too_few_pieces(e))
      e.terminate_all();
  });
}

// Sets of planes: 14 bits for each position, and so 56 for four of them.
GZ u32 pieces_at(Env e, int move, int cell) { return 1u << e.board[move % HISTORY * CELLS + cell] >> 1; }

GZ u64 repetitions(Env e, int age) {
  u64 planes = 0ull;
  for (int k = 0; k < 4; ++k) planes |= (e.repeated >> (age + k) & 1 ? 1ull << 13 : 1ull << 12) << 14 * k;
  return planes;
}

constexpr u64 OWN_PIECES = 0x3full | 0x3full << 14 | 0x3full << 28 | 0x3full << 42;
GZ u64 seen_by_other(u64 planes) { return (planes & OWN_PIECES) << 6 | planes >> 6 & OWN_PIECES; }

GZ u64 four_positions(Env e, int a, int age, int cell) {
  const u64 white = e.pieces[age / 2 * CELLS + cell] | (u64)e.pieces[(age / 2 + 1) * CELLS + cell] << 28;
  return a == 0 ? white : seen_by_other(white);
}

// Rights to castle as bits, the own ones first.
GZ int rights_of(Env e, int a) { return SIZE == 8 ? (e.castling >> 2 * a | e.castling << 2 * a) & 15 : 0; }

// Pieces of a position as White sees it, and whether it had come before. A pawn that has just made a double step stands
// on the row where its pieces begin.
GZ u32 shown_at(Env e, int moves, bool black, u32 then, int age, int cell) {
  const int column = (int)(then & CAME_AGAIN - 1u) - 1, passed = (black ? 4 : 3) * SIZE + column;
  const int home = column < 0 ? -1 : black ? passed + 3 * SIZE : passed - 3 * SIZE;
  const u32 pieces = pieces_at(e, moves + HISTORY - age, cell), pawn = black ? 1u << 6 : 1u;
  const u32 shown = (home >= 0 && cell == passed ? 0u : pieces) | (cell == home ? pawn : 0u);
  return age < moves ? shown | ((then & CAME_AGAIN) != 0u ? 1u << 12 : 0u) : 0u;
}

constexpr u64 FIRST_SIX = 0x3full | 0x3full << 13 | 0x3full << 26 | 0x3full << 39;
constexpr u64 REPEATED = 1ull << 12 | 1ull << 25 | 1ull << 38 | 1ull << 51;
GZ u64 four_shown(Env e, int a, int age, int cell) {
  const u64 white = e.pieces[age / 2 * CELLS + cell] | (u64)e.pieces[(age / 2 + 1) * CELLS + cell] << 26;
  return a == 0 ? white : (white & FIRST_SIX) << 6 | white >> 6 & FIRST_SIX | white & REPEATED;
}

template <class E> GZ void observe_as_pettingzoo(const E &e) {
  const int moves = broadcast(e, [=] { return e.moves; }), mover = broadcast(e, [=] { return e.to_move; });
  const u64 past = broadcast(e, [=] { return e.past; });
  for (int age = 0; age < HISTORY; age += 2) {
    const u32 then = (u32)(past >> 8 * age) & 255u, before = (u32)(past >> 8 * age + 8) & 255u;
    lanes(e, CELLS, [=](int cell) {
      e.pieces[age / 2 * CELLS + cell] = shown_at(e, moves, mover == 0, then, age, cell) |
                                         shown_at(e, moves, mover != 0, before, age + 1, cell) << 13;
    });
  }
  const int turns = broadcast(e, [=] { return e.halfmove_clock / 2; });
  for (int k = 0; k < OBSERVERS; ++k) {
    const int a = observer(e, k), rights = broadcast(e, [=] { return rights_of(e, a); });
    const int kings_side_first = (rights >> 1 & 5) | (rights & 5) << 1;
    lanes_of_bits(
        e, Const<CELLS>(), Const<CHANNELS>(), [=](int cell) { return e.observation[k] + cell * CHANNELS; },
        [=](int cell, int word) {
          const int here = a == 0 ? flipped_cell(cell) : cell;
          const u64 others = (u64)(kings_side_first | a << 4 | (here == turns) << 5 | 1 << 6);
          const u64 past = four_shown(e, a, 4, here);
          return word == 0 ? others | four_shown(e, a, 0, here) << 7 | past << 59 : past >> 5;
        });
  }
}

GZ void observe(Env e) {
  if constexpr (AS_PETTINGZOO) {
    observe_as_pettingzoo(e);
  } else {
    const int move = broadcast(e, [=] { return e.moves + HISTORY; });
    GZ_ROLLED_ON_GPU
    for (int age = 0; age < HISTORY; age += 2)
      lanes(e, CELLS, [=](int cell) {
        e.pieces[age / 2 * CELLS + cell] = pieces_at(e, move - age, cell) | pieces_at(e, move - age - 1, cell) << 14;
      });
    const u64 now = broadcast(e, [=] { return repetitions(e, 0); }), before = broadcast(e, [=] { return repetitions(e, 4); });
    GZ_ROLLED_ON_GPU
    for (int k = 0; k < OBSERVERS; ++k) {
      const int a = observer(e, k);
      const int player = broadcast(e, [=] { return a | rights_of(e, a) << 2; });
      lanes_of_bits(
          e, Const<CELLS>(), Const<CHANNELS>(), [=](int cell) { return e.observation[k] + cell * CHANNELS; },
          [=](int cell, int word) {
            const int here = a == 0 ? flipped_cell(cell) : cell;
            const u64 past = four_positions(e, a, 4, here) | before;
            return word == 0 ? four_positions(e, a, 0, here) | now | past << 56 : past >> 8 | (u64)player << 48;
          });
    }
    lanes(e, OBSERVERS, CELLS, [=](int k, int cell) {
      const Row out = e.observation[k] + cell * CHANNELS;
      out[14 * HISTORY + 1] = (float)e.moves / (float)MOST_MOVES;
      out[CHANNELS - 1] = (float)e.halfmove_clock / 100.f;
    });
  }
  lanes(e, OBSERVERS, CELLS * PLANES, [=](int k, int action) { e.action_mask[k][action] = 0; });
  lanes(e, PLANES, [=](int word) {
    const int plane = e.plane_of[word];
    for (u64 left = e.legal[word]; left != 0ull; left &= left - 1ull) {
      const int from = cell_of(left & (~left + 1ull));
      e.action_mask[row_of_mover(e)][transposed(from) * PLANES + plane] = 1;
    }
  });
}
