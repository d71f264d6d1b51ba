// Player 0 walks up to row 0, player 1 down to the last row. A wall is bit REACH * row + column of the cell above it and to
// its left. It closes two edges: a horizontal one those below this cell and its right neighbour, a vertical one those to
// the right of this cell and of the one below it.

constexpr int REACH = SIZE - 1, PLACES = REACH * REACH, CELLS = SIZE * SIZE;
constexpr int UP = 0, DOWN = 1, LEFT = 2, RIGHT = 3, DIAGONAL = 4, DIRECTIONS = 8;

struct Walls {
  u64 horizontal, vertical;
};
constexpr u64 PLACES_OF_ROW = (1ull << REACH) - 1ull, ALL_PLACES = ~0ull >> (64 - PLACES);
constexpr u64 FIRST_COLUMN = ALL_PLACES / PLACES_OF_ROW, LAST_COLUMN = FIRST_COLUMN << (REACH - 1);
constexpr u64 FIRST_ROW = PLACES_OF_ROW, LAST_ROW = PLACES_OF_ROW << REACH * (REACH - 1);

constexpr Walls NO_WALLS = {0ull, 0ull};

GZ Walls operator|(Walls a, Walls b) { return {a.horizontal | b.horizontal, a.vertical | b.vertical}; }
GZ Walls operator&(Walls a, Walls b) { return {a.horizontal & b.horizontal, a.vertical & b.vertical}; }
GZ Walls without(Walls a, Walls b) { return {a.horizontal & ~b.horizontal, a.vertical & ~b.vertical}; }
GZ bool any(Walls a) { return (a.horizontal | a.vertical) != 0ull; }

GZ u64 beside(u64 walls) { return walls << 1 & ~FIRST_COLUMN | walls >> 1 & ~LAST_COLUMN; }
GZ u64 above_and_below(u64 walls) { return walls << REACH | walls >> REACH; }

// Where a wall neither crosses another one nor overlaps it.
GZ Walls free_places(Walls walls) {
  const u64 taken = walls.horizontal | walls.vertical;
  return {ALL_PLACES & ~(taken | beside(walls.horizontal)), ALL_PLACES & ~(taken | above_and_below(walls.vertical))};
}

GZ u64 two_of(u64 a, u64 b, u64 c) { return a & b | (a | b) & c; }

// A wall can close a way only if two of its ends and its middle touch other walls or the border.
GZ Walls joining_places(Walls walls) {
  const u64 taken = walls.horizontal | walls.vertical;
  const u64 touched = taken | beside(walls.horizontal) | above_and_below(walls.vertical);
  return {two_of(touched, touched << 1 | FIRST_COLUMN, touched >> 1 | LAST_COLUMN),
          two_of(touched, touched << REACH | FIRST_ROW, touched >> REACH | LAST_ROW)};
}

template <int R = 0> GZ u64 flipped(u64 walls) {
  if constexpr (R == REACH)
    return 0ull;
  else
    return (walls >> REACH * R & PLACES_OF_ROW) << REACH * (REACH - 1 - R) | flipped<R + 1>(walls);
}

// Bit SIZE * row + column. A board of nine rows has seven of them in `low` and two in `high`.
struct Cells {
  u64 low, high;
};
constexpr int LOW_ROWS = SIZE < 9 ? SIZE : 7, HIGH_ROWS = SIZE - LOW_ROWS;
constexpr u64 ONE_ROW = (1ull << SIZE) - 1ull, LOW = ~0ull >> (64 - SIZE * LOW_ROWS), HIGH = (1ull << SIZE * HIGH_ROWS) - 1ull;
constexpr Cells NOWHERE = {0ull, 0ull};

GZ Cells operator|(Cells a, Cells b) { return {a.low | b.low, a.high | b.high}; }
GZ Cells operator&(Cells a, Cells b) { return {a.low & b.low, a.high & b.high}; }
GZ Cells without(Cells a, Cells b) { return {a.low & ~b.low, a.high & ~b.high}; }
GZ bool meet(Cells a, Cells b) { return (a.low & b.low | a.high & b.high) != 0ull; }
GZ bool same(Cells a, Cells b) { return a.low == b.low && a.high == b.high; }

GZ Cells above(Cells a) { return {(a.low >> SIZE | a.high << SIZE * (LOW_ROWS - 1)) & LOW, a.high >> SIZE & HIGH}; }
GZ Cells below(Cells a) { return {a.low << SIZE & LOW, (a.high << SIZE | a.low >> SIZE * (LOW_ROWS - 1)) & HIGH}; }
GZ Cells left_of(Cells a) { return {a.low >> 1, a.high >> 1 & HIGH}; }
GZ Cells right_of(Cells a) { return {a.low << 1 & LOW, a.high << 1 & HIGH}; }

GZ Cells cells_in(int row, u64 columns) {
  if (row < LOW_ROWS) return {columns << SIZE * row, 0ull};
  return {0ull, columns << SIZE * (row - LOW_ROWS) & HIGH};
}
GZ Cells cell_at(int cell) { return cells_in(cell / SIZE, 1ull << cell % SIZE); }
GZ Cells goal_of(int player) { return cells_in(player == 0 ? 0 : REACH, ONE_ROW); }

template <int R = 0> GZ Cells cells_of(u64 walls) {
  if constexpr (R == REACH)
    return NOWHERE;
  else
    return cells_in(R, walls >> REACH * R & PLACES_OF_ROW) | cells_of<R + 1>(walls);
}

template <int R = 0> GZ u64 places_of(Cells cells) {
  if constexpr (R == REACH)
    return 0ull;
  else
    return ((R < LOW_ROWS ? cells.low : cells.high) >> SIZE * (R % LOW_ROWS) & PLACES_OF_ROW) << REACH * R |
           places_of<R + 1>(cells);
}

// Cells whose edge below is open, and those whose edge to the right is.
struct Edges {
  Cells below, right;
};

GZ Edges open_edges(Walls walls) {
  const Cells horizontal = cells_of(walls.horizontal), vertical = cells_of(walls.vertical);
  const Cells rows = without(Cells{LOW, HIGH}, cells_in(REACH, ONE_ROW)), columns = cells_of(ALL_PLACES) | cells_in(REACH, ONE_ROW >> 1);
  return {without(rows, horizontal | right_of(horizontal)), without(columns, vertical | below(vertical))};
}

GZ bool reaches(Edges open, Cells from, Cells goal) {
  Cells seen = from, before = NOWHERE;
  while (!meet(seen, goal) && !same(seen, before)) {
    before = seen;
    seen = seen | below(seen & open.below);
    seen = seen | above(seen) & open.below;
    seen = seen | right_of(seen & open.right);
    seen = seen | left_of(seen) & open.right;
  }
  return meet(seen, goal);
}

// One way to the goal; returns the places of walls that would close an edge of it.
GZ Walls across_a_way(Edges open, Cells from, Cells goal) {
  Cells seen = goal, before = NOWHERE, up = NOWHERE, down = NOWHERE, left = NOWHERE;
  while (!meet(seen, from) && !same(seen, before)) {
    before = seen;
    up = up | without(below(seen & open.below), seen);
    seen = seen | up;
    down = down | without(above(seen) & open.below, seen);
    seen = seen | down;
    left = left | without(right_of(seen & open.right), seen);
    seen = seen | left;
    seen = seen | left_of(seen) & open.right;
  }
  Cells at = from, crossed_below = NOWHERE, crossed_right = NOWHERE;
  while (!same(at, NOWHERE) && !meet(at, goal)) {
    if (meet(at, up)) {
      at = above(at);
      crossed_below = crossed_below | at;
    } else if (meet(at, down)) {
      crossed_below = crossed_below | at;
      at = below(at);
    } else if (meet(at, left)) {
      at = left_of(at);
      crossed_right = crossed_right | at;
    } else {
      crossed_right = crossed_right | at;
      at = right_of(at);
    }
  }
  return {places_of(crossed_below | left_of(crossed_below)), places_of(crossed_right | above(crossed_right))};
}

GZ Walls walls_of(Env e) { return {e.horizontal, e.vertical}; }
GZ Walls one_wall(int k) { return k < PLACES ? Walls{1ull << k, 0ull} : Walls{0ull, 1ull << (k - PLACES)}; }

GZ bool can_arrive(Env e, Walls walls, int player) {
  return reaches(open_edges(walls), cell_at(e.pawn[player]), goal_of(player));
}

GZ bool leaves_ways(Env e, Walls wall) {
  if (!any(wall & joining_places(walls_of(e)))) return true;
  bool arrive = true;
  GZ_ROLLED_ON_GPU
  for (int a = 0; a < AGENTS && arrive; ++a) arrive = can_arrive(e, walls_of(e) | wall, a);
  return arrive;
}

// Steps as the player sees them, who walks up.
GZ int rows_of(int player, int d) {
  const bool up = d == UP || d == DIAGONAL || d == DIAGONAL + 1, down = d == DOWN || d > DIAGONAL + 1;
  return up ? 2 * player - 1 : down ? 1 - 2 * player : 0;
}
GZ int columns_of(int d) { return d == UP || d == DOWN ? 0 : d % 2 == 0 ? -1 : 1; }
GZ int step_of(int player, int d) { return SIZE * rows_of(player, d) + columns_of(d); }

GZ bool has_wall(u64 walls, int row, int column) {
  return row >= 0 && row < REACH && column >= 0 && column < REACH && (walls >> (REACH * row + column) & 1ull) != 0ull;
}

GZ bool is_open(Walls walls, int cell, int rows, int columns) {
  const int row = cell / SIZE, column = cell % SIZE, top = min(row, row + rows), left = min(column, column + columns);
  if (top < 0 || row + rows >= SIZE || left < 0 || column + columns >= SIZE) return false;
  if (rows != 0) return !has_wall(walls.horizontal, top, left) && !has_wall(walls.horizontal, top, left - 1);
  return !has_wall(walls.vertical, top, left) && !has_wall(walls.vertical, top - 1, left);
}

GZ u64 jumps(Walls walls, int player, int other, int d) {
  const int first = d < LEFT ? (int)LEFT : (int)UP;
  u64 found = 0ull;
  if (is_open(walls, other, rows_of(player, d), columns_of(d))) return 1ull << d;
  GZ_ROLLED_ON_GPU
  for (int side = first; side < first + 2; ++side)
    if (is_open(walls, other, rows_of(player, side), columns_of(side)))
      found |= 1ull << (DIAGONAL + 2 * min(d, side) + max(d, side) - LEFT);
  return found;
}

GZ u64 pawn_moves(Env e, int player) {
  const Walls walls = walls_of(e);
  const int cell = e.pawn[player], other = e.pawn[1 - player];
  u64 found = 0ull;
  GZ_ROLLED_ON_GPU
  for (int d = 0; d < DIAGONAL; ++d)
    if (is_open(walls, cell, rows_of(player, d), columns_of(d)))
      found |= cell + step_of(player, d) == other ? jumps(walls, player, other, d) : 1ull << d;
  return found;
}

GZ int destination(Env e, int player, int d) {
  const int by = step_of(player, d), next = e.pawn[player] + by;
  return next == e.pawn[1 - player] ? next + by : next;
}

// A wall's number as the players count them: from the row that they walk to.
GZ int seen_by(int player, int k) {
  const int first = k / PLACES * PLACES, place = k % PLACES;
  return player == 0 ? k : first + (REACH - 1 - place / REACH) * REACH + place % REACH;
}

GZ int choose(Env e, int player, u32 bits) {
  if (player != e.to_move) return 0;
  const u64 moves = pawn_moves(e, player);
  const int pawn = popcount(moves);
  Walls places = e.walls_left[player] > 0 ? free_places(walls_of(e)) : NO_WALLS;
  while (pawn > 0 || any(places)) {
    const int flat = popcount(places.horizontal);
    const int rank = (int)mulhi(bits, (u32)(pawn + flat + popcount(places.vertical)));
    if (rank < pawn) return bit_at(moves, rank);
    const bool upright = rank >= pawn + flat;
    const int k = upright ? PLACES + bit_at(places.vertical, rank - pawn - flat) : bit_at(places.horizontal, rank - pawn);
    const Walls wall = one_wall(k);
    if (leaves_ways(e, wall)) return DIRECTIONS + seen_by(player, k);
    places = without(places, wall);
    bits = bits * 747796405u + 2891336453u;
  }
  return 0;
}

GZ bool is_legal(Env e, int player, int action) {
  if (action < 0) return false;
  if (action < DIRECTIONS) return (pawn_moves(e, player) >> action & 1ull) != 0ull;
  const Walls wall = one_wall(seen_by(player, action - DIRECTIONS));
  return e.walls_left[player] > 0 && any(wall & free_places(walls_of(e))) && leaves_ways(e, wall);
}

GZ void reset(Env e) {
  once(e, [=] {
    e.horizontal = e.vertical = 0ull;
    e.pawn[0] = REACH * SIZE + SIZE / 2;
    e.pawn[1] = SIZE / 2;
    e.walls_left[0] = e.walls_left[1] = MOST_WALLS;
    e.to_move = 0;
    e.moves = 0;
    e.last_move = -1;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    const int mover = e.to_move, action = e.action[mover];
    if (!is_legal(e, mover, action)) {
      e.reward[mover] = -1.f;
      e.terminate_all();
      return;
    }
    bool arrives = false;
    if (action < DIRECTIONS) {
      const int cell = destination(e, mover, action);
      e.pawn[mover] = cell;
      arrives = cell / SIZE == (mover == 0 ? 0 : REACH);
    } else {
      const Walls wall = one_wall(seen_by(mover, action - DIRECTIONS));
      e.horizontal |= wall.horizontal;
      e.vertical |= wall.vertical;
      e.walls_left[mover] -= 1;
    }
    const bool over = e.moves + 1 >= MOST_MOVES;
    e.to_move = 1 - mover;
    e.moves += 1;
    e.last_move = action;
    if (arrives && !over) {
      e.reward[mover] = 1.f;
      e.reward[1 - mover] = -1.f;
    }
    if (arrives || over) e.terminate_all();
  });
}

GZ void find_legal_moves(Env e) {
  once(e, [=] {
    const Walls places = e.walls_left[e.to_move] > 0 ? free_places(walls_of(e)) : NO_WALLS;
    const Walls joining = places & joining_places(walls_of(e));
    e.places[0] = places.horizontal;
    e.places[1] = places.vertical;
    e.joining[0] = joining.horizontal;
    e.joining[1] = joining.vertical;
    e.closing[0] = e.closing[1] = 0ull;
  });
  lanes(e, AGENTS, [=](int a) {
    Walls across = NO_WALLS;
    if ((e.joining[0] | e.joining[1]) != 0ull)
      across = across_a_way(open_edges(walls_of(e)), cell_at(e.pawn[a]), goal_of(a));
    e.risky[2 * a] = e.joining[0] & across.horizontal;
    e.risky[2 * a + 1] = e.joining[1] & across.vertical;
  });
  const int risks = broadcast(e, [=] {
    return popcount(e.risky[0]) + popcount(e.risky[1]) + popcount(e.risky[2]) + popcount(e.risky[3]);
  });
  lanes(e, risks, [=](int k) {
    int word = 0, rank = k;
    while (rank >= popcount(e.risky[word])) rank -= popcount(e.risky[word++]);
    const int place = bit_at(e.risky[word], rank), direction = word % 2;
    if (!can_arrive(e, walls_of(e) | one_wall(direction * PLACES + place), word / 2))
      scatter_or(e.closing[direction], 1ull << place);
  });
  lanes(e, 2, [=](int direction) {
    const u64 legal = e.places[direction] & ~e.closing[direction];
    e.places[direction] = e.to_move == 0 ? legal : flipped(legal);
  });
}

GZ u64 row_as_seen(u64 walls, int player, int row) {
  return row == REACH ? 0ull : walls >> REACH * (player == 0 ? row : REACH - 1 - row) & PLACES_OF_ROW;
}
GZ u64 pawn_in(int cell, int row) { return cell / SIZE == row ? 1ull << cell % SIZE : 0ull; }

GZ void observe(Env e) {
  find_legal_moves(e);
  lanes_of_bits(
      e, Const<OBSERVERS * SIZE>(), Const<SIZE * CHANNELS>(),
      [=](int k) { return e.observation[k / SIZE] + k % SIZE * SIZE * CHANNELS; },
      [=](int k, int) {
        const int a = observer(e, k / SIZE), seen = k % SIZE, row = a == 0 ? seen : REACH - seen;
        return e.spread[pawn_in(e.pawn[a], row)] | e.spread[pawn_in(e.pawn[1 - a], row)] << 1 |
               e.spread[row_as_seen(e.horizontal, a, seen)] << 2 | e.spread[row_as_seen(e.vertical, a, seen)] << 3;
      });
  lanes(e, OBSERVERS, CELLS, [=](int row, int cell) {
    const int a = observer(e, row);
    const Row out = e.observation[row] + cell * CHANNELS;
    out[4] = (float)e.walls_left[a] / (float)max(MOST_WALLS, 1);
    out[5] = (float)e.walls_left[1 - a] / (float)max(MOST_WALLS, 1);
  });
  const int mover = broadcast(e, [=] { return e.to_move; });
  lanes_of_bits(
      e, Const<OBSERVERS>(), Const<DIRECTIONS>(), [=](int row) { return e.action_mask[row] + 0; },
      [=](int row, int) { return observer(e, row) == mover ? pawn_moves(e, mover) : 0ull; });
  lanes_of_bits(
      e, Const<2 * OBSERVERS>(), Const<PLACES>(), [=](int k) { return e.action_mask[k / 2] + (DIRECTIONS + k % 2 * PLACES); },
      [=](int k, int) { return observer(e, k / 2) == mover ? e.places[k % 2] : 0ull; });
}
