// Stones of a colour that touch are joined in a tree, as are those at the two edges of the colour with the edge itself:
// `parent` of a cell or an edge leads to the tree's root (Tarjan, "Efficiency of a Good But Not Linear Set Union
// Algorithm", 1975).

constexpr int SWAP = CELLS;
enum Cell { EMPTY, BLACK, WHITE };
enum Edge { TOP = CELLS, BOTTOM, LEFT, RIGHT };

GZ int root(Env e, int node) {
  int parent = e.parent[node];
  while (parent != node) {
    const int above = e.parent[parent];
    e.parent[node] = above;
    node = above;
    parent = e.parent[node];
  }
  return node;
}

GZ void join(Env e, int a, int b) {
  const int first = root(e, a), second = root(e, b);
  e.parent[max(first, second)] = min(first, second);
}

GZ void join_neighbour(Env e, int cell, int row, int column) {
  const bool on_board = row >= 0 && row < SIZE && column >= 0 && column < SIZE;
  if (on_board && e.stone[row * SIZE + column] == e.stone[cell]) join(e, cell, row * SIZE + column);
}

GZ void place(Env e, int cell, int colour) {
  const int row = cell / SIZE, column = cell % SIZE;
  e.stone[cell] = colour;
  join_neighbour(e, cell, row, column - 1);
  join_neighbour(e, cell, row + 1, column - 1);
  join_neighbour(e, cell, row - 1, column);
  join_neighbour(e, cell, row + 1, column);
  join_neighbour(e, cell, row - 1, column + 1);
  join_neighbour(e, cell, row, column + 1);
  const int along = colour == BLACK ? row : column;
  if (along == 0) join(e, cell, colour == BLACK ? (int)TOP : (int)LEFT);
  if (along == SIZE - 1) join(e, cell, colour == BLACK ? (int)BOTTOM : (int)RIGHT);
}

GZ bool connects(Env e, int colour) {
  return colour == BLACK ? root(e, TOP) == root(e, BOTTOM) : root(e, LEFT) == root(e, RIGHT);
}

GZ bool can_swap(Env e) { return Config::swap && e.moves == 1; }

GZ void reset(Env e) {
  lanes(e, CELLS, [=](int k) { e.stone[k] = EMPTY; });
  lanes(e, NODES, [=](int k) { e.parent[k] = k; });
  once(e, [=] {
    e.to_move = 0;
    e.moves = 0;
    e.last_move = -1;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    const int mover = e.to_move, action = e.action[mover];
    const bool swaps = action == SWAP && can_swap(e);
    const bool places = action >= 0 && action < CELLS && e.stone[min(max(action, 0), CELLS - 1)] == EMPTY;
    if (!swaps && !places) {
      e.reward[mover] = -1.f;
      e.terminate_all();
      return;
    }
    int cell = action;
    if (swaps) {
      const int first = e.last_move, edge = first / SIZE == 0 ? (int)TOP : (int)BOTTOM;
      cell = first % SIZE * SIZE + first / SIZE;
      e.stone[first] = EMPTY;
      e.parent[first] = first;
      e.parent[edge] = edge;
    }
    place(e, cell, mover == 0 ? (int)BLACK : (int)WHITE);
    e.last_move = cell;
    e.moves += 1;
    e.to_move = 1 - mover;
    if (!connects(e, mover == 0 ? (int)BLACK : (int)WHITE)) return;
    e.reward[mover] = 1.f;
    e.reward[1 - mover] = -1.f;
    e.terminate_all();
  });
}

// A word of the observation has the four planes of a cell.
GZ void observe(Env e) {
  const int mover = broadcast(e, [=] { return e.to_move; });
  const bool swap = broadcast(e, [=] { return can_swap(e); });
  lanes(e, OBSERVERS, CELLS, [=](int row, int cell) {
    const int a = observer(e, row);
    const int stone = e.stone[cell];
    const u32 own = stone == 1 + a, other = stone == 2 - a;
    words(e.observation[row])[cell] = own | other << 8 | (u32)a << 16 | (u32)swap << 24;
    e.action_mask[row][cell] = (a == mover) & (stone == EMPTY);
  });
  lanes(e, OBSERVERS, [=](int row) { e.action_mask[row][SWAP] = (observer(e, row) == mover) & swap; });
}
