#include "pac_man_world.cuh"

GZ void reset(Env e) {
  once(e, [=] { begin(e); });
}

GZ int way_of(int move) { return move == LEFT ? 0 : move == UP ? 1 : move == RIGHT ? 2 : move == DOWN ? 3 : (int)STAY; }

// A ghost does not turn back where it can go on.
GZ int moves_of_ghost(Env e, int g) {
  const int open = ways_of_ghost(e, g), ahead = ways_ahead(e, g, open), ways = ahead != 0 ? ahead : open;
  if (e.wait[g] >= 0 || ways == 0) return 1 << STAY;
  int moves = 0;
  for (int way = 0; way < STAY; ++way) moves |= (ways >> way & 1) << move_of_ghost(way);
  return moves;
}

GZ int moves_of(Env e, int a) { return a == FIRST_PLAYER ? ways_of_player(e) : moves_of_ghost(e, a - FIRST_GHOST); }

GZ int choose(Env e, int a, u32 bits) { return chosen_bit((u64)moves_of(e, a), bits); }

GZ void step(Env e) {
  once(e, [=] {
    const int wanted = e.action[FIRST_PLAYER];
    e.last_move = wanted != STAY && (ways_of_player(e) >> wanted & 1) ? wanted : (int)STAY;
    for (int g = 0; g < NUM_GHOSTS; ++g) {
      const int move = e.action[FIRST_GHOST + g];
      e.ghost_way[g] = (i8)(moves_of_ghost(e, g) >> move & 1 ? way_of(move) : (int)STAY);
    }
    const float reward = advance(e) - (e.dead ? e.cfg.catch_reward : 0.f);
    e.reward[FIRST_PLAYER] = reward;
    for (int g = 0; g < NUM_GHOSTS; ++g) e.reward[FIRST_GHOST + g] = 0.f - reward;
    if (is_over(e)) e.terminate_all();
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, Const<CELLS>(), [=](int a, int cell) { draw_maze(e, e.observation[a], cell); });
  lanes(e, AGENTS, [=](int a) {
    draw_figures(e, e.observation[a], a - FIRST_GHOST);
    const int moves = moves_of(e, a);
    for (int move = 0; move < MOVES; ++move) e.action_mask[a][move] = (i8)(moves >> move & 1);
  });
}
