#include "mujoco.cuh"

GZ void reset(Env e) {
  set_positions(e, e.cfg.reset_noise_scale);
  set_uniform_velocities(e, e.cfg.reset_noise_scale);
}

GZ void step(Env e) {
  simulate(e, e.cfg.frame_skip);
  e.terminated = e.diverged | (abs(e.qpos[1]) > 0.2f);
  e.reward = select(e.terminated, 0.f, 1.f);
}

GZ void observe(Env e) {
  for (int i = 0; i < Physics::NQ; ++i) e.observation[i] = e.qpos[i];
  for (int d = 0; d < Physics::NV; ++d) e.observation[Physics::NQ + d] = e.qvel[d];
}
