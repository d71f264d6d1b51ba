#include "pac_man_world.cuh"

enum Ghost { RED, PINK, BLUE, ORANGE };

constexpr int FORESIGHT = 4, SHYNESS = 8;
constexpr int ACROSS = 1 | 4, UPRIGHT = 2 | 8;  // ways of a corridor

GZ void reset(Env e) {
  once(e, [=] { begin(e); });
}

GZ int choose(Env e, int, u32 bits) { return chosen_bit((u64)ways_of_player(e), bits); }

GZ int square_distance(int down, int right) { return down * down + right * right; }

// How far a cell is from what a ghost is after, squared. Where the original exchanges row and column, so do we.
GZ int distance_to_prey(Env e, int g, int row, int column) {
  const int down = row - e.player / COLUMNS, right = column - e.player % COLUMNS;
  const bool near = square_distance(e.ghost[g] / COLUMNS - e.player / COLUMNS,
                                    e.ghost[g] % COLUMNS - e.player % COLUMNS) <= SHYNESS * SHYNESS;
  if (e.frightened > 0 || (g == ORANGE && near))
    return square_distance(row - e.corner[g] % COLUMNS, column - e.corner[g] / COLUMNS);
  if (g == RED || g == ORANGE) return square_distance(down, right);
  const int ahead = moved(e.player, e.last_move, FORESIGHT);
  const int ahead_down = row - ahead % COLUMNS, ahead_right = column - ahead / COLUMNS;
  if (g == PINK) return square_distance(ahead_down, ahead_right);
  return square_distance(down + ahead_down, right + ahead_right);
}

// In a corridor a ghost goes on. Elsewhere it takes the way that brings it nearest to its prey, any of equal ones.
GZ int hunt(Env e, int g) {
  const int open = ways_of_ghost(e, g);
  if (open == ACROSS || open == UPRIGHT) return e.ghost_way[g];
  const int ways = ways_ahead(e, g, open);
  int best = INT_LIMIT, chosen = 0;
  for (int way = 0; way < STAY; ++way) {
    const int move = move_of_ghost(way);
    const int row = e.ghost[g] / COLUMNS + down_of(move), column = e.ghost[g] % COLUMNS + right_of(move);
    const int distance = ways >> way & 1 ? distance_to_prey(e, g, row, column) : INT_LIMIT;
    chosen = distance < best ? 0 : chosen;
    chosen |= (int)(distance <= best) << way;
    best = min(best, distance);
  }
  return chosen_bit((u64)chosen, random_bits(e, g, 0));
}

GZ void step(Env e) {
  once(e, [=] {
    e.last_move = e.action != STAY && (ways_of_player(e) >> e.action & 1) ? e.action : (int)STAY;
    for (int g = 0; g < NUM_GHOSTS; ++g) e.ghost_way[g] = (i8)(e.wait[g] >= 0 ? (int)STAY : hunt(e, g));
    e.reward = advance(e);
    e.terminated = is_over(e);
  });
}

GZ void observe(Env e) {
  lanes(e, CELLS, [=](int cell) { draw_maze(e, e.observation, cell); });
  once(e, [=] {
    draw_figures(e, e.observation, -1);
    const int ways = ways_of_player(e);
    for (int move = 0; move < MOVES; ++move) e.action_mask[move] = (i8)(ways >> move & 1);
  });
}
