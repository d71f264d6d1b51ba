#include "mujoco.cuh"

// What Hopper and Walker2d share: they walk along x, and want to be upright.

GZ void reset(Env e) {
  set_positions(e, e.cfg.reset_noise_scale);
  set_uniform_velocities(e, e.cfg.reset_noise_scale);
  e.x_velocity = e.reward_forward = e.reward_ctrl = e.reward_survive = 0.f;
}

GZ PackMask within(Pack x, Pack low, Pack high) { return (low < x) & (x < high); }

template <class E> GZ PackMask upright(const E &e) {
  const auto &c = e.cfg;
  return within(e.qpos[1], c.healthy_z_low, c.healthy_z_high) &
         within(e.qpos[2], c.healthy_angle_low, c.healthy_angle_high);
}

template <class E> GZ void walk(const E &e, int frame_skip) {
  const Pack x = e.qpos[0], from = origin_of(x);
  e.qpos[0] = from;
  simulate(e, frame_skip);
  e.x_velocity = (e.qpos[0] - from) / seconds(frame_skip);
  e.qpos[0] += x - from;
}

template <class E> GZ void reward(const E &e, PackMask healthy, bool ends) {
  e.reward_forward = e.cfg.forward_reward_weight * e.x_velocity;
  e.reward_ctrl = -(e.cfg.ctrl_cost_weight * sum_of_squares_of_actions(e));
  e.reward_survive = select(healthy, e.cfg.healthy_reward, Pack(0.f));
  e.reward = e.reward_forward + e.reward_survive + e.reward_ctrl;
  e.terminated = e.diverged | (!healthy & PackMask(ends));
}

GZ void observe(Env e) {
  const int skipped = e.cfg.exclude_current_positions_from_observation;
  for (int i = skipped; i < Physics::NQ; ++i) e.observation[i - skipped] = e.qpos[i];
  Row velocities = e.observation + (Physics::NQ - skipped);
  for (int d = 0; d < Physics::NV; ++d) velocities[d] = clamp(e.qvel[d], Pack(-10.f), Pack(10.f));
}
