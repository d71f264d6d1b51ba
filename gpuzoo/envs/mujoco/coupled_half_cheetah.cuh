#include "evaluate.cuh"

constexpr int SECOND = Physics::NQ / 2;  // where the second cheetah's numbers begin

GZ void reset(Env e) {
  set_positions(e, e.cfg.reset_noise_scale);
  set_normal_velocities(e, e.cfg.reset_noise_scale);
  feel_tendon(e, evaluate(e));
  e.x_velocity1 = e.x_velocity2 = e.reward_run = e.reward_ctrl1 = e.reward_ctrl2 = 0.f;
}

GZ void step(Env e) {
  const Pack x = e.qpos[0], from = origin_of(x), ahead = e.qpos[SECOND] - x + from;
  e.qpos[0] = from;
  e.qpos[SECOND] = ahead;
  feel_tendon(e, simulate(e, e.cfg.frame_skip));
  e.x_velocity1 = (e.qpos[0] - from) / seconds(e.cfg.frame_skip);
  e.x_velocity2 = (e.qpos[SECOND] - ahead) / seconds(e.cfg.frame_skip);
  e.qpos[0] += x - from;
  e.qpos[SECOND] += x - from;

  Pack first = 0.f, second = 0.f;
  for (int k = 0; k < Physics::NU / 2; ++k) {
    first = fma(e.action[k], e.action[k], first);
    second = fma(e.action[Physics::NU / 2 + k], e.action[Physics::NU / 2 + k], second);
  }
  e.reward_ctrl1 = e.cfg.ctrl_cost_weight * first;
  e.reward_ctrl2 = e.cfg.ctrl_cost_weight * second;
  e.reward_run = e.cfg.forward_reward_weight * (e.x_velocity1 + e.x_velocity2) * 0.5f;
  e.reward = e.reward_run - (e.reward_ctrl1 + e.reward_ctrl2) * 0.5f;
  e.terminated = e.diverged;
}

GZ void observe(Env e) {
  Row rest = e.observation;
  for (int k = 0; k < 2; ++k) {
    for (int i = 1; i < SECOND; ++i) rest[i - 1] = e.qpos[k * SECOND + i];
    rest = rest + (SECOND - 1);
  }
  for (int d = 0; d < Physics::NV; ++d) rest[d] = e.qvel[d];
  rest = rest + Physics::NV;
  for (int k = 0; k < 4; ++k) rest[k] = e.tendon_jacobian[k];
  rest[4] = e.tendon_length[0];
  rest[5] = e.tendon_velocity[0];
}
