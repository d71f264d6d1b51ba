// Cell 9 * column + row as the player to move sees it, who plays upwards; column 0 is on the right, row 0 at the top.
// A set of cells has a word for each three columns. "Others" are the opponent's. Directions are as whoever moves sees
// them; seen from a cell, those who come from direction d of it move in direction d of their own.

enum Kind { PAWN, LANCE, KNIGHT, SILVER, BISHOP, ROOK, GOLD, KING, HORSE, DRAGON, KINDS };  // what moves alike is one
enum Direction { UP, UP_LEFT, UP_RIGHT, LEFT, RIGHT, DOWN, DOWN_LEFT, DOWN_RIGHT, LINES, JUMPS = LINES, TURNED_JUMPS = 10 };
constexpr int CELLS = 81, EMPTY = -1, SIDE = 14, HANDS = 7, PROMOTION = 8, DROPS = 20, WAYS = 27, OTHERS = KINDS;
constexpr int WORD = 27, WORDS = 3, FREE = 2 * KINDS, OWN_ALL = FREE + 1, OTHERS_ALL = FREE + 2, DIRECTIONS = 10, CHANNELS = 119, BOARD_PLANES = 31, HAND_PLANES = 28;
constexpr int SIGHTS = 12, FRAME = 2 * SIDE, LAST_PLACE = 8 * FRAMED_COLUMN + 8;
constexpr u32 ALL = 0x7ffffff, TOP_ROW = 0x40201, TOP_ROWS = 3u * TOP_ROW, ZONE = 7u * TOP_ROW, OWN_PIECES = (1u << SIDE) - 1u;

struct Set {
  u32 a, b, c;
};
GZ Set operator|(Set s, Set t) { return {s.a | t.a, s.b | t.b, s.c | t.c}; }
GZ Set operator&(Set s, Set t) { return {s.a & t.a, s.b & t.b, s.c & t.c}; }
GZ Set operator~(Set s) { return {ALL & ~s.a, ALL & ~s.b, ALL & ~s.c}; }
GZ Set of_each_word(u32 w) { return {w, w, w}; }
GZ Set none() { return of_each_word(0u); }
GZ bool any(Set s) { return (s.a | s.b | s.c) != 0u; }
GZ Set only_if(bool so, Set s) { return s & of_each_word(0u - (u32)so); }
// `s` if `some` has a cell, without a branch, so that a CPU looks in eight directions at once.
GZ Set only_with(Set some, Set s) { return s & of_each_word((u32)(-(int)(some.a | some.b | some.c) >> 31)); }
GZ u32 word(Set s, int w) { return w == 0 ? s.a : w == 1 ? s.b : s.c; }
GZ bool has(Set s, int cell) { return (word(s, cell / WORD) >> cell % WORD & 1u) != 0u; }
GZ Set cell_set(int cell) {
  const u32 bit = 1u << cell % WORD;
  return {cell < WORD ? bit : 0u, cell / WORD == 1 ? bit : 0u, cell >= 2 * WORD ? bit : 0u};
}
GZ int first_cell(Set s) {
  const int w = s.a != 0u ? 0 : s.b != 0u ? 1 : 2;
  const u32 bits = word(s, w);
  return w * WORD + popcount((bits & (~bits + 1u)) - 1u);
}

struct Way {
  u32 by, twice;  // bits that a word turns to the left for one step and for two
  u32 back;       // all bits if the words turn first, or none
  Set onto;       // where one can arrive
};
GZ Way way_of(Env e, int d) {
  return {(u32)e.by[d], (u32)e.twice[d], (u32)e.back[d], {e.onto[d], e.onto[12 + d], e.onto[24 + d]}};
}
GZ u32 either(u32 so, u32 one, u32 other) { return (so & one) | (~so & other); }
GZ Set turned(Set s, u32 by, u32 back) {
  const Set t = {either(back, s.b, s.a), either(back, s.c, s.b), either(back, s.a, s.c)};
  const u32 rest = (u32)WORD - by;
  return {ALL & (t.a << by | t.c >> rest), ALL & (t.b << by | t.a >> rest), ALL & (t.c << by | t.b >> rest)};
}
GZ Set moved(Set s, Way w) { return turned(s, w.by, w.back) & w.onto; }

// `from` and all that is reached from it over cells of `through` (Kogge and Stone's parallel prefix).
GZ Set filled(Set from, Set through, Way w) {
  through = through & w.onto;
  from = from | through & turned(from, w.by, w.back);
  through = through & turned(through, w.by, w.back);
  from = from | through & turned(from, w.twice, w.back);
  through = through & turned(through, w.twice, w.back);
  return from | through & turned(turned(from, w.twice, w.back), w.twice, w.back);
}

GZ Set at(Env e, int k) { return {e.sets[k * WORDS], e.sets[k * WORDS + 1], e.sets[k * WORDS + 2]}; }

// Those of one side whose kinds are bits of `kinds`.
GZ Set those(Env e, int side, u32 kinds) {
  Set s = none();
  GZ_ROLLED_ON_GPU
  for (int k = 0; k < KINDS; ++k) s = s | at(e, side + k) & of_each_word(0u - (kinds >> k & 1u));
  return s;
}

// Where those of one side arrive in direction d as the player to move sees it.
GZ Set arrivals(Set sliders, Set steppers, Set through, Way w) { return moved(filled(sliders, through, w) | steppers, w); }

// What is seen in each of the eight directions, side by side.
enum Sight { ATTACKS, CHECKERS, EVASIONS, PINNED };
GZ Set seen(Env e, int sight, int d) {
  const int k = sight * WORDS * LINES + d;
  return {e.seen[k], e.seen[k + LINES], e.seen[k + 2 * LINES]};
}
GZ void see(Env e, int sight, int d, Set s) {
  const int k = sight * WORDS * LINES + d;
  e.seen[k] = s.a;
  e.seen[k + LINES] = s.b;
  e.seen[k + 2 * LINES] = s.c;
}
GZ Set seen_anywhere(Env e, int sight) {
  Set s = none();
  GZ_ROLLED
  for (int d = 0; d < LINES; ++d) s = s | seen(e, sight, d);
  return s;
}

GZ Set legal(Env e, int way) { return {e.legal[way], e.legal[WAYS + way], e.legal[2 * WAYS + way]}; }
GZ void set_legal(Env e, int way, Set s) {
  e.legal[way] = s.a;
  e.legal[WAYS + way] = s.b;
  e.legal[2 * WAYS + way] = s.c;
}

// In direction d: where a side arrives, and who shields the other side's king against it.
GZ void attack(Env e, int d, int side, int own_d, Set king, Set free, Set more) {
  const Way w = way_of(e, d);
  const Set sliders = those(e, side, (u32)e.slides[own_d]), steppers = those(e, side, (u32)e.steps[own_d]) | more;
  see(e, ATTACKS, d, arrivals(sliders, steppers, free | king, w));
}
GZ Set shield(Set king, Set own, Set others, Set free, Way w) {
  const Set first = moved(filled(king, free, w), w) & own;
  return only_with(moved(filled(first, free, w), w) & others, first);
}

// What the others attack if the king steps aside, who checks from there, and who is pinned.
GZ void look_around(Env e, int d) {
  const Set free = at(e, FREE), king = at(e, KING), own = at(e, OWN_ALL);
  attack(e, d, OTHERS, e.opposite[d], king, free, none());
  const Way w = way_of(e, d);
  const Set lines = those(e, OTHERS, (u32)e.slides[d]), near = moved(king, w) & those(e, OTHERS, (u32)e.steps[d]);
  const Set ray = moved(filled(king, free, w), w), far = ray & lines;
  see(e, CHECKERS, d, far | near);
  see(e, EVASIONS, d, only_with(far, ray) | near);
  see(e, PINNED, d, shield(king, own, lines, free, w));
}

GZ Set jumps(Env e, int first, Set from) { return moved(from, way_of(e, first)) | moved(from, way_of(e, first + 1)); }

// Whom a check leaves the choice where to go.
GZ void find_targets(Env e) {
  const Set king = at(e, KING), jumpers = jumps(e, JUMPS, king) & at(e, OTHERS + KNIGHT);
  const Set attacked = seen_anywhere(e, ATTACKS) | jumps(e, TURNED_JUMPS, at(e, OTHERS + KNIGHT));
  const Set checkers = seen_anywhere(e, CHECKERS) | jumpers, evasions = seen_anywhere(e, EVASIONS) | jumpers;
  const Set pinned = seen_anywhere(e, PINNED);
  const int count = popcount(checkers.a) + popcount(checkers.b) + popcount(checkers.c);
  const Set target = count == 0 ? of_each_word(ALL) : count == 1 ? evasions : none();
  for (int w = 0; w < WORDS; ++w) {
    e.attacked[w] = word(attacked, w);
    e.pinned[w] = word(pinned, w);
    e.target[w] = word(target, w);
  }
}
GZ Set attacked(Env e) { return {e.attacked[0], e.attacked[1], e.attacked[2]}; }
GZ Set pinned(Env e) { return {e.pinned[0], e.pinned[1], e.pinned[2]}; }
GZ Set target(Env e) { return {e.target[0], e.target[1], e.target[2]}; }

constexpr u32 PROMOTABLE = 1 << PAWN | 1 << LANCE | 1 << KNIGHT | 1 << SILVER | 1 << BISHOP | 1 << ROOK;

GZ void find_moves(Env e, int d, Set free, Set king, Set goals, Set king_goals, Set unpinned) {
  const Way w = way_of(e, d);
  const Set loose = unpinned | seen(e, PINNED, d) | seen(e, PINNED, e.opposite[d]);
  const u32 slides = (u32)e.slides[d], steps = (u32)e.steps[d] & ~(1u << KING);
  const Set sliders = those(e, 0, slides & PROMOTABLE) & loose, steppers = those(e, 0, steps & PROMOTABLE) & loose;
  const Set others = arrivals(those(e, 0, slides & ~PROMOTABLE) & loose, those(e, 0, steps & ~PROMOTABLE) & loose, free, w);
  const Set zone = of_each_word(ZONE), may_promote = arrivals(sliders, steppers, free, w);
  const Set leaves = arrivals(sliders & zone, steppers & zone, free, w);
  set_legal(e, d, (may_promote | others) & goals | moved(king, w) & king_goals);
  set_legal(e, DIRECTIONS + d, (may_promote & zone | leaves) & goals);
}

// Columns of which `s` has a cell.
GZ u32 columns(u32 s) {
  s |= s >> 1 & ~(TOP_ROW << 8);
  s |= s >> 2 & ~(TOP_ROW << 8 | TOP_ROW << 7);
  s |= s >> 4 & ~(TOP_ROW << 8 | TOP_ROW << 7 | TOP_ROW << 6 | TOP_ROW << 5);
  s |= s >> 8 & TOP_ROW;
  return (s & TOP_ROW) * 0x1ffu;
}

// Knights' moves and drops; who could not move any more must promote and may not be dropped.
GZ void find_special_moves(Env e) {
  const Set goals = target(e) & ~at(e, OWN_ALL), loose = ~pinned(e), free = at(e, FREE), pawns = at(e, PAWN);
  GZ_ROLLED
  for (int d = JUMPS; d < DIRECTIONS; ++d) {
    const Set arrived = moved(at(e, KNIGHT) & loose, way_of(e, d)) & goals;
    set_legal(e, d, arrived & ~of_each_word(TOP_ROWS));
    set_legal(e, DIRECTIONS + d, arrived & of_each_word(ZONE));
  }
  const Way up = way_of(e, UP);
  const Set upright = loose | seen(e, PINNED, UP) | seen(e, PINNED, DOWN), top = of_each_word(TOP_ROW);
  set_legal(e, UP, legal(e, UP) & ~(arrivals(at(e, LANCE) & upright, pawns & upright, free, up) & top));
  const Set drops = free & target(e), of_pawns = {columns(pawns.a), columns(pawns.b), columns(pawns.c)};
  GZ_ROLLED
  for (int kind = 0; kind < HANDS; ++kind) {
    const Set stuck = kind == KNIGHT ? of_each_word(TOP_ROWS) : kind <= LANCE ? top : none();
    set_legal(e, DROPS + kind, only_if(e.hands[kind] > 0, drops & ~stuck & ~only_if(kind == PAWN, of_pawns)));
  }
}

// Where a dropped pawn checks, if it may be dropped there.
GZ Set checking_drop(Env e) { return moved(at(e, OTHERS + KING), way_of(e, DOWN)) & legal(e, DROPS + PAWN); }

// With the pawn dropped: where one attacks if the king steps aside, who captures the pawn, where the king goes, who is pinned.
GZ void look_at_drop(Env e, int d, Set pawn, Set free, Set king, Set others) {
  const Way w = way_of(e, d);
  attack(e, d, 0, d, king, free, only_if(d == UP, pawn));
  const Set far = moved(filled(pawn, free, w), w) & those(e, OTHERS, (u32)e.slides[d]);
  see(e, CHECKERS, d, far | moved(pawn, w) & those(e, OTHERS, (u32)e.steps[d] & ~(1u << KING)));
  see(e, EVASIONS, d, moved(king, w) & ~others);
  see(e, PINNED, d, shield(king, others, those(e, 0, (u32)e.slides[e.opposite[d]]), free, w));
}

// Pgx takes cells beside the board for the last one: a king beside one corner can also go where nobody attacks the other.
GZ bool escapes_in_pgx(Env e, Set attacks) {
  const int king = first_cell(at(e, OTHERS + KING));
  const bool beside = king == 1 || king == 9, blocked = has(at(e, OTHERS_ALL), 0);
  return beside && !blocked && !(has(attacks, CELLS - 1) && !has(at(e, OWN_ALL), CELLS - 1));
}

GZ void forbid_mate_by_pawn(Env e, Set pawn) {
  const Set attacks = seen_anywhere(e, ATTACKS) | jumps(e, JUMPS, at(e, KNIGHT));
  const Set takers = (seen_anywhere(e, CHECKERS) | jumps(e, JUMPS, pawn) & at(e, OTHERS + KNIGHT)) & ~seen_anywhere(e, PINNED);
  const bool escapes = any(seen_anywhere(e, EVASIONS) & ~attacks) || (!e.cfg.strict_drops && escapes_in_pgx(e, attacks));
  if (!any(takers) && !escapes) set_legal(e, DROPS + PAWN, legal(e, DROPS + PAWN) & ~pawn);
}

GZ_FLAT void find_legal_moves(Env e) {
  lanes(e, (OTHERS_ALL + 1) * WORDS, [=](int k) { e.sets[k] = 0u; });
  lanes(e, WORD, WORDS, [=](int place, int w) {
    scatter_or(e.sets[e.kind_of[e.board[w * WORD + place] + 1] * WORDS + w], 1u << place);
  });
  lanes(e, WORDS, [=](int w) {
    u32 own = 0u, others = 0u;
    GZ_ROLLED
    for (int k = 0; k < KINDS; ++k) {
      own |= e.sets[k * WORDS + w];
      others |= e.sets[(OTHERS + k) * WORDS + w];
    }
    e.sets[OWN_ALL * WORDS + w] = own;
    e.sets[OTHERS_ALL * WORDS + w] = others;
  });
  lanes(e, LINES, [=](int d) { look_around(e, d); });
  once(e, [=] { find_targets(e); });
  const Set free = broadcast(e, [=] { return at(e, FREE); }), king = broadcast(e, [=] { return at(e, KING); });
  const Set goals = broadcast(e, [=] { return target(e) & ~at(e, OWN_ALL); });
  const Set king_goals = broadcast(e, [=] { return ~attacked(e) & ~at(e, OWN_ALL); });
  const Set unpinned = broadcast(e, [=] { return ~pinned(e); });
  lanes(e, LINES, [=](int d) { find_moves(e, d, free, king, goals, king_goals, unpinned); });
  once(e, [=] { find_special_moves(e); });
  const Set pawn = broadcast(e, [=] { return checking_drop(e); });
  if (!any(pawn)) return;
  const Set others_king = broadcast(e, [=] { return at(e, OTHERS + KING); });
  const Set others = broadcast(e, [=] { return at(e, OTHERS_ALL); });
  lanes(e, LINES, [=](int d) { look_at_drop(e, d, pawn, free & ~pawn, others_king, others); });
  once(e, [=] { forbid_mate_by_pawn(e, pawn); });
}

GZ void reset(Env e) {
  lanes(e, CELLS, [=](int c) { e.board[c] = (i8)e.start[c]; });
  lanes(e, 2 * HANDS, [=](int k) { e.hands[k] = (i8)e.start[CELLS + k]; });
  once(e, [=] {
    e.to_move = e.start[CELLS + 2 * HANDS];
    e.moves = e.start[CELLS + 2 * HANDS + 1];
    e.last_move = -1;
  });
  find_legal_moves(e);
}

GZ bool is_legal(Env e, int action) { return action >= 0 && has(legal(e, max(action, 0) / CELLS), max(action, 0) % CELLS); }

GZ int choose(Env e, int player, u32 bits) {
  if (player != e.to_move) return 0;
  const SetBit move = chosen_bit_of<WAYS * WORDS>(e.legal, bits);
  return move.word < 0 ? 0 : move.word % WAYS * CELLS + move.word / WAYS * WORD + move.place;
}

// The piece that arrives is the nearest one of those who could come from there.
GZ int source(Env e, int way, int to) {
  const int back = e.opposite[way % DIRECTIONS], reach = e.reach[back * CELLS + to], step = e.step_by[back];
  int from = to + step;
  GZ_ROLLED
  for (int k = 1; k < reach && e.board[from] == EMPTY; ++k) from += step;
  return from;
}

// Returns the material that the move wins, in pawns.
GZ int move_piece(Env e, int action) {
  const int way = action / CELLS, to = action % CELLS;
  if (way >= DROPS) {
    e.board[to] = (i8)(way - DROPS);
    e.hands[way - DROPS] = (i8)(e.hands[way - DROPS] - 1);
    return 0;
  }
  const int from = source(e, way, to), taken = e.board[to] - SIDE, before = e.board[from];
  if (taken >= 0) {
    const int kind = taken < PROMOTION ? taken : taken - PROMOTION;
    e.hands[kind] = (i8)(e.hands[kind] + 1);
  }
  const int after = before + (way >= DIRECTIONS ? (int)PROMOTION : 0);
  e.board[to] = (i8)after;
  e.board[from] = (i8)EMPTY;
  return (taken >= 0 ? e.worth[taken] : 0) + e.worth[after] - e.worth[before];
}

GZ int other_side(int piece) { return piece == EMPTY ? (int)EMPTY : piece < SIDE ? piece + SIDE : piece - SIDE; }

GZ void step(Env e) {
  const int action = broadcast(e, [=] { return e.action[e.to_move]; });
  if (!broadcast(e, [=] { return is_legal(e, action); })) {
    once(e, [=] {
      e.reward[e.to_move] = -1.f;
      e.terminate_all();
    });
    return;
  }
  once(e, [=] {
    const float won = e.cfg.material_reward * (float)move_piece(e, action);
    e.reward[e.to_move] = won;
    e.reward[1 - e.to_move] = 0.f - won;
  });
  lanes(e, CELLS, [=](int c) { e.turned_board[c] = (i8)other_side(e.board[CELLS - 1 - c]); });
  lanes(e, CELLS, [=](int c) { e.board[c] = e.turned_board[c]; });
  once(e, [=] {
    GZ_ROLLED
    for (int k = 0; k < HANDS; ++k) {
      const int own = e.hands[k];
      e.hands[k] = e.hands[HANDS + k];
      e.hands[HANDS + k] = (i8)own;
    }
    e.to_move = 1 - e.to_move;
    e.moves += 1;
    e.last_move = action;
  });
  find_legal_moves(e);
  once(e, [=] {
    u32 some = 0u;
    GZ_ROLLED
    for (int k = 0; k < WAYS * WORDS; ++k) some |= e.legal[k];
    if (some == 0u) {
      e.reward[e.to_move] -= 1.f;
      e.reward[1 - e.to_move] += 1.f;
    }
    if (some == 0u || e.moves >= MOST_MOVES) e.terminate_all();
  });
}

// The first piece that each place of the framed board sees in each direction within 2, 4 and 8 cells; FRAME counts as one.
GZ void look_far(Env e) {
  lanes(e, MARGIN + PLACES + MARGIN, [=](int k) { e.framed[k] = (i16)FRAME; });
  lanes(e, 9, 9, [=](int column, int row) {
    e.framed[MARGIN + column * FRAMED_COLUMN + row] = e.board[9 * column + row];
  });
  lanes(e, LINES, PLACES, [=](int d, int k) {
    const i16 near = e.framed[MARGIN + k + e.framed_step[d]], far = e.framed[MARGIN + k + 2 * e.framed_step[d]];
    e.sight(0, MARGIN + d * PLACES + k) = near != EMPTY ? near : far;
  });
  for (int s = 0; s < 2; ++s)
    lanes(e, LINES, PLACES, [=](int d, int k) {
      const int here = MARGIN + d * PLACES + k;
      const i16 near = e.sight(s, here), far = e.sight(s, here + (2 << s) * e.framed_step[d]);
      e.sight(s + 1, here) = near != EMPTY ? near : far;
    });
}

// That of EMPTY or FRAME is no piece's.
GZ u32 bit(int piece) { return 1u << (piece & 31); }

// Planes of a side on each cell: its pieces, which of them attack the cell, whether at least one, two, three do.
GZ void find_planes(Env e) {
  lanes(e, PLACES, [=](int k) {
    u32 attackers = 0u, by_own = 0u, by_others = 0u;
    GZ_ROLLED_ON_GPU
    for (int d = 0; d < SIGHTS; ++d) {
      const int near = e.framed[MARGIN + k + e.framed_step[d]], far = e.sight(2, MARGIN + d % LINES * PLACES + k);
      const u32 found = bit(near) & (u32)e.near[d] | bit(far) & (u32)e.far[d];
      attackers |= found;
      by_own = (found & OWN_PIECES) != 0u ? by_own << 1 | 1u : by_own;
      by_others = found >> SIDE != 0u ? by_others << 1 | 1u : by_others;
    }
    const u32 shown = bit(e.framed[MARGIN + k]);
    const u32 own = shown & OWN_PIECES | (attackers & OWN_PIECES) << SIDE | (by_own & 7u) << 2 * SIDE;
    const u32 others = (shown >> SIDE & OWN_PIECES) | attackers >> SIDE << SIDE | (by_others & 7u) << 2 * SIDE;
    e.planes[k] = (u64)own | (u64)others << BOARD_PLANES;
  });
}

// As the player of a side sees them, who counts its own pieces first.
GZ u64 planes_for(int side, u64 planes) {
  return side == 0 ? planes : planes >> BOARD_PLANES | (planes & ((1ull << BOARD_PLANES) - 1ull)) << BOARD_PLANES;
}

GZ bool in_check(Env e, int side) {
  constexpr u64 ATTACKED_KING = 1ull << KING | 1ull << BOARD_PLANES + 2 * SIDE;
  return lane_any(e, PLACES, [=](int k) { return (planes_for(side, e.planes[k]) & ATTACKED_KING) == ATTACKED_KING; });
}

GZ u64 hand(Env e, int side) {
  u64 planes = 0ull;
  GZ_ROLLED
  for (int kind = 0; kind < HANDS; ++kind)
    planes |= (u64)((1u << min((int)e.hands[side * HANDS + kind], e.hand_most[kind])) - 1u) << e.hand_plane[kind];
  return planes;
}

GZ void observe(Env e) {
  look_far(e);
  find_planes(e);
  const int mover = broadcast(e, [=] { return e.to_move; });
  for (int k = 0; k < OBSERVERS; ++k) {
    const int side = observer(e, k) == mover ? 0 : 1;
    const u64 check = in_check(e, side) ? 1ull : 0ull;
    const u64 hands = broadcast(e, [=] { return hand(e, side) | hand(e, 1 - side) << HAND_PLANES; });
    const u64 known = hands | check << 2 * HAND_PLANES;
    lanes_of_bits(
        e, Const<CELLS>(), Const<CHANNELS>(), [=](int place) { return e.observation[k] + place * CHANNELS; },
        [=](int place, int word) {
          const int seen_as = (8 - place % 9) * FRAMED_COLUMN + place / 9;
          const u64 board = planes_for(side, e.planes[side == 0 ? seen_as : LAST_PLACE - seen_as]);
          return word == 0 ? board | known << 2 * BOARD_PLANES : known >> 64 - 2 * BOARD_PLANES;
        });
  }
  lanes_of_bits(
      e, Const<OBSERVERS * WAYS>(), Const<CELLS>(), [=](int k) { return e.action_mask[k / WAYS] + k % WAYS * CELLS; },
      [=](int k, int word) {
        const Set found = only_if(observer(e, k / WAYS) == mover, legal(e, k % WAYS));
        return word == 0 ? (u64)found.a | (u64)found.b << WORD | (u64)found.c << 2 * WORD : (u64)found.c >> 64 - 2 * WORD;
      });
}
