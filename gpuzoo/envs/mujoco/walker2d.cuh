#include "walk.cuh"

GZ void step(Env e) {
  walk(e, e.cfg.frame_skip);
  reward(e, upright(e), e.cfg.terminate_when_unhealthy);
}
