// The board is as the player to move sees it, who goes upwards: points 0 to 23, own and other bar, own and other off. Own
// checkers count as positive, others as negative. Bit p of a set is point p; bit `source` of `legal` is an action's source.

constexpr int POINTS = 24, BAR = 24, OTHER_BAR = 25, OFF = 26, OTHER_OFF = 27, PLACES = 28, CHECKERS = 15, SIDES = 6, ACTIONS = 26 * SIDES;
constexpr u32 BOARD = 0xffffff, HOME = 0xfc0000, SOURCE_PASS = 1, SOURCE_BAR = 2;

struct Side {
  u32 own;   // points with own checkers
  u32 open;  // points with at most one of the others
  int bar;   // own checkers on the bar
};

GZ u32 lowest(u32 set) { return set & (~set + 1u); }
GZ int index_of(u32 one) { return popcount(one - 1u); }

// Points that a die moves on from. With all checkers at home they bear off by the exact number, or else from the rear.
GZ u32 movable(Side s, int die) {
  const u32 goal = 1u << POINTS - die, rear = lowest(s.own);
  const u32 off = (s.own & ~HOME) == 0u ? (s.own & goal) | (rear > goal ? rear : 0u) : 0u;
  return (s.own & s.open >> die) | off;
}

GZ u32 sources(Side s, int die) {
  return s.bar > 0 ? (s.open >> die - 1 & 1u) * SOURCE_BAR : movable(s, die) << 2;
}

GZ Side look(Env e) {
  const u64 own = bits_where<POINTS>([=](int p) { return e.board[p] > 0; });
  const u64 open = bits_where<POINTS>([=](int p) { return e.board[p] > -2; });
  return Side{(u32)own, (u32)open, e.board[BAR]};
}

// Those of the sources of one die after which the other one can still be played.
GZ u32 first_of_two(Env e, Side s, u32 from, int die, int other) {
  u32 found = 0u;
  for (u32 left = from; left != 0u; left &= left - 1u) {
    const u32 one = lowest(left), start = s.bar > 0 ? 0u : one >> 2;
    const bool leaves = start != 0u && e.board[index_of(start)] == 1;
    const u32 end = (s.bar > 0 ? 1u << die - 1 : start << die) & BOARD;
    const Side after = {(leaves ? s.own & ~start : s.own) | end, s.open, max(s.bar - 1, 0)};
    found |= sources(after, other) != 0u ? one : 0u;
  }
  return found;
}

// Whoever can play both dice, must; whoever can play either, but not both, plays the higher one.
GZ void use_most_dice(Env e, Side s) {
  int low = 0, high = 0;
  for (int k = 0; k < SIDES; ++k) {
    low = low == 0 && e.dice[k] == 1 ? k + 1 : low;
    high = e.dice[k] == 1 ? k + 1 : high;
  }
  if (low == high) return;
  const u32 of_low = e.legal[low - 1], of_high = e.legal[high - 1];
  const u32 low_first = first_of_two(e, s, of_low, low, high), high_first = first_of_two(e, s, of_high, high, low);
  const bool both = (low_first | high_first) != 0u;
  e.legal[low - 1] = both ? low_first : of_high != 0u ? 0u : of_low;
  e.legal[high - 1] = both ? high_first : of_high;
}

GZ void find_legal_moves(Env e) {
  const Side s = look(e);
  u32 any = 0u;
  for (int k = 0; k < SIDES; ++k) {
    const u32 found = e.dice[k] > 0 ? sources(s, k + 1) : 0u;
    e.legal[k] = found;
    any |= found;
  }
  if (e.cfg.official && any != 0u) use_most_dice(e, s);
  if (any == 0u)
    for (int k = 0; k < SIDES; ++k) e.legal[k] = SOURCE_PASS;
}

GZ void put_dice(Env e, int first, int second) {
  e.rolled[0] = (i8)(first + 1);
  e.rolled[1] = (i8)(second + 1);
  const int each = first == second ? 4 : 1;
  for (int k = 0; k < SIDES; ++k) e.dice[k] = k == first || k == second ? (i8)each : (i8)0;
}

GZ void reset(Env e) {
  once(e, [=] {
    GZ_ROLLED
    for (int k = 0; k < PLACES; ++k) e.board[k] = (i8)e.start[k];
    const int roll = random_int(e, 0, 30), first = roll / 5;
    put_dice(e, first, (first + 1 + roll % 5) % SIDES);
    e.to_move = 0;
    e.last_move = -1;
    find_legal_moves(e);
  });
}

GZ void move_checker(Env e, int source, int die) {
  const int start = source == 1 ? (int)BAR : source - 2, reached = source == 1 ? die - 1 : start + die;
  const int end = reached < POINTS ? reached : (int)OFF;
  const bool hits = e.board[end] == -1;
  e.board[start] = (i8)(e.board[start] - 1);
  e.board[end] = hits ? (i8)1 : (i8)(e.board[end] + 1);
  e.board[OTHER_BAR] = (i8)(e.board[OTHER_BAR] - (hits ? 1 : 0));
  e.dice[die - 1] = (i8)(e.dice[die - 1] - 1);
}

GZ void swap_places(Env e, int k, int other) {
  const int one = e.board[k];
  e.board[k] = (i8)-e.board[other];
  e.board[other] = (i8)-one;
}

GZ void change_turn(Env e) {
  GZ_ROLLED
  for (int k = 0; k < POINTS / 2; ++k) swap_places(e, k, POINTS - 1 - k);
  swap_places(e, BAR, OTHER_BAR);
  swap_places(e, OFF, OTHER_OFF);
  const int roll = random_int(e, 0, 36);
  put_dice(e, roll / SIDES, roll % SIDES);
  e.to_move = 1 - e.to_move;
}

// 1, 2 for a gammon, 3 for a backgammon.
GZ int won_points(Env e) {
  int left = e.cfg.official ? e.board[OTHER_BAR] : 0;
  for (int p = POINTS - SIDES; p < POINTS; ++p) left += e.board[p];
  return e.board[OTHER_OFF] != 0 ? 1 : left == 0 ? 2 : 3;
}

GZ bool is_legal(Env e, int action) {
  return action >= 0 && (e.legal[max(action, 0) % SIDES] >> max(action, 0) / SIDES & 1u) != 0u;
}

GZ int choose(Env e, int player, u32 bits) {
  if (player != e.to_move) return 0;
  const SetBit move = chosen_bit_of<SIDES>(e.legal, bits);
  return move.word < 0 ? 0 : move.place * SIDES + move.word;
}

GZ void step(Env e) {
  once(e, [=] {
    const int mover = e.to_move, action = e.action[mover], source = action / SIDES;
    if (!is_legal(e, action)) {
      e.reward[mover] = -3.f;
      e.terminate_all();
      return;
    }
    e.last_move = action;
    int left = 0;
    if (source > 0) {
      move_checker(e, source, action % SIDES + 1);
      for (int k = 0; k < SIDES; ++k) left += e.dice[k];
    }
    if (e.board[OFF] == CHECKERS) {
      const int points = won_points(e);
      e.reward[mover] = (float)points;
      e.reward[1 - mover] = (float)-points;
      e.terminate_all();
    } else if (left == 0)
      change_turn(e);
    find_legal_moves(e);
  });
}

GZ void observe(Env e) {
  lanes(e, OBSERVERS, [=](int row) {
    const Row out = e.observation[row];
    GZ_ROLLED
    for (int k = 0; k < PLACES; ++k) out[k] = e.board[k];
    for (int k = 0; k < SIDES; ++k) out[PLACES + k] = observer(e, row) == e.to_move ? e.dice[k] : (i8)0;
    GZ_ROLLED
    for (int k = 0; k < ACTIONS; ++k) e.action_mask[row][k] = 0;
  });
  once(e, [=] {
    GZ_ROLLED
    for (int k = 0; k < SIDES; ++k)
      for (u32 left = e.legal[k]; left != 0u; left &= left - 1u)
        e.action_mask[row_of_mover(e)][index_of(lowest(left)) * SIDES + k] = 1;
  });
}
