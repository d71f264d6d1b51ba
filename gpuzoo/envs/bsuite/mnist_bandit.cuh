#include "rewards.cuh"

// byte / 255: a quotient, and what is left of the byte, which makes it the nearest float as a division would.
GZ float shade(int byte) {
  constexpr float UNIT = 1.f / 255.f;
  const float x = (float)byte, quotient = x * UNIT;
  return fma(fma(-quotient, 255.f, x), UNIT, quotient);
}

GZ void reset(Env e) {
  once(e, [=] {
    const int kept = clamp((int)rint(e.cfg.fraction * (float)IMAGES), 1, (int)IMAGES);
    e.index = random_int(e, 0, kept);
  });
}

GZ void step(Env e) {
  once(e, [=] {
    const bool correct = e.action == e.label[clamp(e.index, 0, IMAGES - 1)];
    e.reward = e.cfg.reward_scale * (correct ? 1.f : -1.f);
    e.terminate_all();
  });
  perturb_reward(e);
}

GZ void observe(Env e) {
  const i64 first = broadcast(e, [=] { return (i64)clamp(e.index, 0, IMAGES - 1) * OBSERVATION_SIZE; });
  if (e.t == 0)
    lanes(e, OBSERVATION_SIZE, [=](int k) { e.observation[k] = shade(e.pixels[first + k]); });
  else
    lanes(e, OBSERVATION_SIZE, [=](int k) { e.observation[k] = 0.f; });
}
