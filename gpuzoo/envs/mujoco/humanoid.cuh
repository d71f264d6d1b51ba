#include "person.cuh"

template <class E> GZ void place(const E &e, const Physics &s) {
  e.lag_x = select(e.diverged, e.lag_x, Pack(s.subtree_com_0[0]) - e.qpos[0]);
  e.lag_y = select(e.diverged, e.lag_y, Pack(s.subtree_com_0[1]) - e.qpos[1]);
}

GZ void reset(Env e) {
  lie(e);
  place(e, feel_start(e));
  e.x_velocity = e.y_velocity = 0.f;
  e.reward_forward = e.reward_ctrl = e.reward_contact = e.reward_survive = 0.f;
}

GZ void step(Env e) {
  const Pack x = e.qpos[0], y = e.qpos[1], from_x = origin_of(x), from_y = origin_of(y);
  const Pack before_x = from_x + e.lag_x, before_y = from_y + e.lag_y;
  e.qpos[0] = from_x;
  e.qpos[1] = from_y;
  const Physics s = simulate(e, e.cfg.frame_skip);
  place(e, s);
  feel(e, s);
  e.x_velocity = (e.qpos[0] + e.lag_x - before_x) / seconds(e.cfg.frame_skip);
  e.y_velocity = (e.qpos[1] + e.lag_y - before_y) / seconds(e.cfg.frame_skip);
  e.qpos[0] += x - from_x;
  e.qpos[1] += y - from_y;

  const PackMask healthy = (e.cfg.healthy_z_low < e.qpos[2]) & (e.qpos[2] < e.cfg.healthy_z_high);
  e.reward_forward = e.cfg.forward_reward_weight * e.x_velocity;
  e.reward_ctrl = -(e.cfg.ctrl_cost_weight * sum_of_squares_of_actions(e));
  e.reward_contact = -contact_cost(e, e.cfg.contact_cost_weight, e.cfg.contact_cost_low, e.cfg.contact_cost_high);
  e.reward_survive = select(healthy, e.cfg.healthy_reward, Pack(0.f));
  e.reward = e.reward_forward + e.reward_survive + (e.reward_ctrl + e.reward_contact);
  e.terminated = e.diverged | (!healthy & PackMask((bool)e.cfg.terminate_when_unhealthy));
}
