#include "mujoco.cuh"

GZ void reset(Env e) {
  set_positions(e, e.cfg.reset_noise_scale);
  set_normal_velocities(e, e.cfg.reset_noise_scale);
  e.x_velocity = e.reward_forward = e.reward_ctrl = 0.f;
}

GZ void step(Env e) {
  const Pack x = e.qpos[0], from = origin_of(x);
  e.qpos[0] = from;
  simulate(e, e.cfg.frame_skip);
  e.x_velocity = (e.qpos[0] - from) / seconds(e.cfg.frame_skip);
  e.qpos[0] += x - from;
  e.reward_forward = e.cfg.forward_reward_weight * e.x_velocity;
  e.reward_ctrl = -(e.cfg.ctrl_cost_weight * sum_of_squares_of_actions(e));
  e.reward = e.reward_forward + e.reward_ctrl;
  e.terminated = e.diverged;
}

GZ void observe(Env e) {
  const int skipped = e.cfg.exclude_current_positions_from_observation;
  for (int i = skipped; i < Physics::NQ; ++i) e.observation[i - skipped] = e.qpos[i];
  Row velocities = e.observation + (Physics::NQ - skipped);
  for (int d = 0; d < Physics::NV; ++d) velocities[d] = e.qvel[d];
}
