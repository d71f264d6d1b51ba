#include "hill.cuh"

GZ void step(Env e) {
  once(e, [=] {
    float action = e.action[0];
    roll(e, e.cfg.power * action);
    e.reward = (e.terminated ? 100.f : 0.f) - 0.1f * action * action;
  });
}
