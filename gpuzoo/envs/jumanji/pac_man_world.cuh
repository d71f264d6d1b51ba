// The maze, the player and the ghosts of PacMan, whoever moves the ghosts.

#include "sets.cuh"

enum Move { UP, LEFT, DOWN, RIGHT, STAY, MOVES };  // of the player; ghosts count from the left one

constexpr int NUM_GHOSTS = 4;

GZ int down_of(int move) { return (int)(move == DOWN) - (int)(move == UP); }
GZ int right_of(int move) { return (int)(move == RIGHT) - (int)(move == LEFT); }
GZ int move_of_ghost(int way) { return way == 0 ? LEFT : way == 1 ? UP : way == 2 ? RIGHT : way == 3 ? DOWN : STAY; }

GZ int wrapped(int k, int n) { return (k % n + n) % n; }
GZ int cell_at(int row, int column) { return wrapped(row, ROWS) * COLUMNS + wrapped(column, COLUMNS); }
GZ int moved(int cell, int move, int steps) {
  return cell_at(cell / COLUMNS + steps * down_of(move), cell % COLUMNS + steps * right_of(move));
}

// What a look beyond the edge finds: on the upper and the left side the other end, else the last cell.
GZ int looked_at(int k, int n) { return k < 0 ? k + n : min(k, n - 1); }
GZ bool looks_open(Env e, int row, int column) {
  return e.open[looked_at(row, ROWS) * COLUMNS + looked_at(column, COLUMNS)] != 0;
}

GZ int ways_of_player(Env e) {
  int ways = 0;
  for (int move = 0; move < STAY; ++move)
    ways |= (int)looks_open(e, e.player / COLUMNS + down_of(move), e.player % COLUMNS + right_of(move)) << move;
  return ways;
}

GZ int ways_of_ghost(Env e, int g) {
  int ways = 0;
  for (int way = 0; way < STAY; ++way) {
    const int move = move_of_ghost(way);
    ways |= (int)looks_open(e, e.ghost[g] / COLUMNS + down_of(move), e.ghost[g] % COLUMNS + right_of(move)) << way;
  }
  return ways;
}

// Of these ways those that do not lead back.
GZ int ways_ahead(Env e, int g, int ways) {
  for (int way = 0; way < STAY; ++way) {
    const int move = move_of_ghost(way);
    const bool back = e.ghost[g] / COLUMNS + down_of(move) == e.old_ghost[g] / COLUMNS &&
                      e.ghost[g] % COLUMNS + right_of(move) == e.old_ghost[g] % COLUMNS;
    ways &= ~((int)back << way);
  }
  return ways;
}

GZ void begin(Env e) {
  e.player = PLAYER_START;
  e.num_pellets = NUM_PELLETS;
  for (int w = 0; w < WORDS; ++w) e.pellets[w] = 0ull;
  for (int cell = 0; cell < CELLS; ++cell)
    if (e.open[cell] != 0) e.pellets[cell / 64] |= bit(cell);
  e.powers = (1 << POWERS) - 1;
  for (int g = 0; g < NUM_GHOSTS; ++g) {
    e.ghost[g] = e.old_ghost[g] = e.ghost_start[g];
    e.ghost_way[g] = 1;
    e.edible[g] = true;
    e.wait[g] = g == 0 ? 1 : 5 * g;
  }
  e.last_move = UP;
  e.frightened = 0;
  e.score = 0;
  e.dead = false;
}

GZ float meet_ghosts(Env e, int to) {
  float reward = 0.f;
  for (int g = 0; g < NUM_GHOSTS; ++g) {
    const int before = e.ghost[g], there = e.wait[g] > 0 ? before : moved(before, move_of_ghost(e.ghost_way[g]), 1);
    const bool meets = there == to || there == e.player || e.old_ghost[g] == to;
    const bool eaten = meets && e.frightened > 0;
    e.dead = e.dead || (meets && !eaten);
    reward += eaten && e.edible[g] != 0 ? 200.f : 0.f;
    e.edible[g] = e.edible[g] != 0 && !eaten;
    e.old_ghost[g] = before;
    e.ghost[g] = eaten ? (int)e.ghost_start[g] : there;
    e.wait[g] -= 1;
  }
  return reward;
}

GZ float eat(Env e) {
  float reward = 0.f;
  bool power = false;
  for (int k = 0; k < POWERS; ++k)
    if ((e.powers >> k & 1) && e.power[k] == e.player) {
      e.powers &= ~(1 << k);
      power = true;
      reward += 50.f;
    }
  e.frightened = power ? FRIGHT : e.frightened - 1;
  if (has(e.pellets, e.player)) {
    e.pellets[e.player / 64] &= ~bit(e.player);
    e.num_pellets -= 1;
    reward += 10.f;
  }
  return reward;
}

// Everybody moves: the player by `e.last_move`, the ghosts by `e.ghost_way`.
GZ float advance(Env e) {
  const int ahead = moved(e.player, e.last_move, 1), to = e.open[ahead] != 0 ? ahead : e.player;
  const float hunted = meet_ghosts(e, to);
  e.player = to;
  const float reward = hunted + eat(e);
  e.score += (int)reward;
  return reward;
}

GZ bool is_over(Env e) { return e.dead != 0 || e.num_pellets == 0; }

// A cell is two words of four bytes.
GZ void draw_maze(Env e, Row out, int cell) {
  words(out)[2 * cell] = (u32)(e.open[cell] != 0) | (u32)has(e.pellets, cell) << 8;
  words(out)[2 * cell + 1] = 0u;
}

// What a ghost sees has itself before the other ghosts; the player, who is nobody of them, sees them in their order.
GZ void draw_figures(Env e, Row out, int own) {
  for (int k = 0; k < POWERS; ++k) words(out)[2 * e.power[k]] |= (u32)(e.powers >> k & 1) << 16;
  words(out)[2 * e.player] |= 1u << 24;
  const u32 shown = e.frightened > 0 ? (u32)(-e.frightened) & 0xffu : 1u;
  for (int g = 0; g < NUM_GHOSTS; ++g) {
    const int place = g == own ? 0 : g + (int)(g < own);
    words(out)[2 * e.ghost[g] + 1] |= shown << (u32)(8 * place);
  }
}
