#include "gridworld.cuh"

GZ float recovery(Env e, int group) { return 0.f; }
GZ float step_reward(Env e, int group) { return 0.f; }
GZ float dead_penalty(Env e, int group) { return 0.f; }
GZ float attack_penalty(Env e, int group) { return e.cfg.tag_penalty; }

GZ float with_events(Env e, int a, float reward) {
  return reward + (e.deed[a] == HIT ? 1.f : 0.f) - (float)e.hits[a];
}

GZ void observe_map(Env e) {
  observe_group(e, FIRST_PREDATOR, PREDATORS, Const<PREDATOR_ROWS>());
  observe_group(e, FIRST_PREY, PREYS, Const<PREY_ROWS>());
}
