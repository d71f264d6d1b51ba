#include "person.cuh"

GZ void reset(Env e) {
  lie(e);
  feel_start(e);
  e.reward_linup = e.reward_quadctrl = e.reward_impact = 0.f;
}

GZ void step(Env e) {
  const Pack x = e.qpos[0], y = e.qpos[1], from_x = origin_of(x), from_y = origin_of(y);
  e.qpos[0] = from_x;
  e.qpos[1] = from_y;
  feel(e, simulate(e, e.cfg.frame_skip));
  e.qpos[0] += x - from_x;
  e.qpos[1] += y - from_y;
  e.reward_linup = e.cfg.uph_cost_weight * e.qpos[2] / seconds(1);
  e.reward_quadctrl = -(e.cfg.ctrl_cost_weight * sum_of_squares_of_actions(e));
  e.reward_impact = -contact_cost(e, e.cfg.impact_cost_weight, e.cfg.impact_cost_low, e.cfg.impact_cost_high);
  e.reward = e.reward_linup + e.reward_quadctrl + e.reward_impact + 1.f;
  e.terminated = e.diverged;
}
