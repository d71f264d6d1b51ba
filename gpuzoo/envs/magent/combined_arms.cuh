#include "gridworld.cuh"

GZ float recovery(Env e, int group) { return 0.1f; }
GZ float step_reward(Env e, int group) { return e.cfg.step_reward; }
GZ float dead_penalty(Env e, int group) { return e.cfg.dead_penalty; }
GZ float attack_penalty(Env e, int group) { return e.cfg.attack_penalty; }

GZ int army(Env e, int b) { return e.group[b] / 2; }

GZ float with_events(Env e, int a, float reward) {
  const int deed = e.deed[a];
  if (deed < HIT || army(e, e.victim[a]) == army(e, a)) return reward;
  return reward + (deed == HIT ? e.cfg.attack_opponent_reward : 5.f);
}

GZ void observe_map(Env e) { observe_group(e, 0, AGENTS, ROWS); }
