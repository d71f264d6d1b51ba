#include "walk.cuh"

GZ void step(Env e) {
  walk(e, e.cfg.frame_skip);
  PackMask healthy = upright(e);
  const Pack low = e.cfg.healthy_state_low, high = e.cfg.healthy_state_high;
  for (int i = 2; i < Physics::NQ; ++i) healthy = healthy & within(e.qpos[i], low, high);
  for (int d = 0; d < Physics::NV; ++d) healthy = healthy & within(e.qvel[d], low, high);
  reward(e, healthy, e.cfg.terminate_when_unhealthy);
}
