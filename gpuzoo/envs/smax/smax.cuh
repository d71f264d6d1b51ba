#include "battle.cuh"

GZ void act(Env e, int a) {
  const int action = e.action[a];
  e.attack[a] = action < MOVES ? 0 : action;
  set_way(e, a, action);
}

GZ void write_masks(Env e) {
  lanes(e, AGENTS, Const<MOST_ACTIONS>(), [=](int a, int k) {
    if (k >= MOVES + opponents(a)) return;
    const int b = opponent(a, max(k - MOVES, 0));
    const bool in_range = lives(e, b) & (distance(place(e, a), place(e, b)) < e.attack_range[e.type[a]]);
    e.action_mask[a][k] = (k == MOVES - 1) | (lives(e, a) & ((k < MOVES) | in_range));
  });
}
