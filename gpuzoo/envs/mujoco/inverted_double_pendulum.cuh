#include "evaluate.cuh"

template <class E> GZ void feel_rail(const E &e, const Physics &s) {
  e.rail_force = clamp(Pack(s.qfrc_constraint_0[0]), Pack(-10.f), Pack(10.f));
}

GZ void reset(Env e) {
  set_positions(e, e.cfg.reset_noise_scale);
  set_normal_velocities(e, e.cfg.reset_noise_scale);
  feel_rail(e, evaluate(e));
  e.reward_survive = e.distance_penalty = e.velocity_penalty = 0.f;
}

GZ void step(Env e) {
  const Physics s = simulate(e, e.cfg.frame_skip);
  feel_rail(e, s);
  const Pack x = s.site_xpos_0[0], y = s.site_xpos_0[2];
  const Pack first = e.qvel[1], second = e.qvel[2];
  e.terminated = e.diverged | (y <= 1.f);
  e.reward_survive = select(e.terminated, Pack(0.f), e.cfg.healthy_reward);
  e.distance_penalty = -(Pack(0.01f) * x * x + (y - 2.f) * (y - 2.f));
  e.velocity_penalty = -(Pack(1e-3f) * first * first + Pack(5e-3f) * second * second);
  e.reward = select(e.diverged, Pack(0.f), e.reward_survive + e.distance_penalty + e.velocity_penalty);
}

GZ void observe(Env e) {
  e.observation[0] = e.qpos[0];
  for (int k = 0; k < 2; ++k) {
    Pack s, c;
    sincos(e.qpos[1 + k], s, c);
    e.observation[1 + k] = s;
    e.observation[3 + k] = c;
  }
  for (int d = 0; d < 3; ++d) e.observation[5 + d] = clamp(e.qvel[d], Pack(-10.f), Pack(10.f));
  e.observation[8] = e.rail_force;
}
