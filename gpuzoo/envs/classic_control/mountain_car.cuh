#include "hill.cuh"

GZ void step(Env e) {
  once(e, [=] {
    roll(e, e.cfg.force * (float)(e.action - 1));
    e.reward = -1.f;
  });
}
