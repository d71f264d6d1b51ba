#include "gridworld.cuh"

GZ float recovery(Env e, int group) { return 0.1f; }
GZ float step_reward(Env e, int group) { return e.cfg.step_reward; }
GZ float dead_penalty(Env e, int group) { return e.cfg.dead_penalty; }
GZ float attack_penalty(Env e, int group) { return e.cfg.attack_penalty; }

GZ float with_events(Env e, int a, float reward) {
  return e.deed[a] == HIT ? reward + e.cfg.attack_opponent_reward : reward;
}

GZ void observe_map(Env e) { observe_group(e, 0, AGENTS, ROWS); }
