#include "mujoco.cuh"

template <class E> GZ void place(const E &e, const Physics &s) {
  e.lag_x = select(e.diverged, Pack(0.f), main_body(s, 0) - e.qpos[0]);
  e.lag_y = select(e.diverged, Pack(0.f), main_body(s, 1) - e.qpos[1]);
}

GZ void reset(Env e) {
  set_positions(e, e.cfg.reset_noise_scale);
  set_normal_velocities(e, e.cfg.reset_noise_scale);
  Physics s = physics_of(e);
  physics_look(s);
  place(e, s);
  e.x_velocity = e.y_velocity = 0.f;
  e.reward_forward = e.reward_ctrl = e.reward_contact = e.reward_survive = 0.f;
  for (int k = 0; k < 6 * (BODIES - 1); ++k) e.cfrc_ext[k] = 0.f;
}

GZ void step(Env e) {
  const Pack x = e.qpos[0], y = e.qpos[1], from_x = origin_of(x), from_y = origin_of(y);
  const Pack before_x = from_x + e.lag_x, before_y = from_y + e.lag_y;
  e.qpos[0] = from_x;
  e.qpos[1] = from_y;
  const Physics s = simulate(e, e.cfg.frame_skip);
  place(e, s);
  e.x_velocity = (e.qpos[0] + e.lag_x - before_x) / seconds(e.cfg.frame_skip);
  e.y_velocity = (e.qpos[1] + e.lag_y - before_y) / seconds(e.cfg.frame_skip);
  e.qpos[0] += x - from_x;
  e.qpos[1] += y - from_y;

  Pack squares = 0.f;
  for (int k = 0; k < 6 * (BODIES - 1); ++k) {
    Pack force = clamp(Pack(s.cfrc_ext[6 + k]), e.cfg.contact_force_low, e.cfg.contact_force_high);
    force = select(e.diverged, Pack(0.f), force);
    squares = fma(force, force, squares);
    e.cfrc_ext[k] = force;
  }
  const PackMask healthy = (e.cfg.healthy_z_low <= e.qpos[2]) & (e.qpos[2] <= e.cfg.healthy_z_high);
  e.reward_forward = e.cfg.forward_reward_weight * e.x_velocity;
  e.reward_ctrl = -(e.cfg.ctrl_cost_weight * sum_of_squares_of_actions(e));
  e.reward_contact = -(e.cfg.contact_cost_weight * squares);
  e.reward_survive = select(healthy, e.cfg.healthy_reward, Pack(0.f));
  e.reward = e.reward_forward + e.reward_survive + (e.reward_ctrl + e.reward_contact);
  e.terminated = e.diverged | (!healthy & PackMask((bool)e.cfg.terminate_when_unhealthy));
}

GZ void observe(Env e) {
  const int skipped = 2 * e.cfg.exclude_current_positions_from_observation;
  for (int i = skipped; i < Physics::NQ; ++i) e.observation[i - skipped] = e.qpos[i];
  Row velocities = e.observation + (Physics::NQ - skipped);
  for (int d = 0; d < Physics::NV; ++d) velocities[d] = e.qvel[d];
  if (e.cfg.include_cfrc_ext_in_observation) {
    Row forces = velocities + Physics::NV;
    for (int k = 0; k < 6 * (BODIES - 1); ++k) forces[k] = e.cfrc_ext[k];
  }
}
