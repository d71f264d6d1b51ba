#include "gridworld.cuh"

GZ bool is_tiger(Env e, int a) { return a >= FIRST_TIGER; }
GZ float recovery(Env e, int group) { return group == 1 ? e.cfg.tiger_step_recover : 0.2f; }
GZ float step_reward(Env e, int group) { return 0.f; }
GZ float dead_penalty(Env e, int group) { return group == 1 ? 0.f : -1.f; }
GZ float attack_penalty(Env e, int group) { return 0.f; }

GZ float with_events(Env e, int a, float reward) {
  if (is_tiger(e, a)) return reward + (e.deed[a] == HIT ? (float)(e.hits[e.victim[a]] - 1) : 0.f);
  for (int k = 0; k < e.hits[a]; ++k) reward += e.cfg.deer_attacked;
  return reward;
}

GZ void observe_map(Env e) {
  observe_group(e, FIRST_DEER, DEERS, Const<DEER_ROWS>());
  observe_group(e, FIRST_TIGER, TIGERS, Const<TIGER_ROWS>());
}
