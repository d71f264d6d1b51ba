#include "rewards.cuh"

// byte / 255, to the bit as a division gives it: 1 / 255 is HIGH, and the rest of it LOW.
GZ float shade(int byte) {
  constexpr float HIGH = 1.f / 255.f, LOW = -2.31917582e-10f;
  const float x = (float)byte;
  return fma(x, HIGH, x * LOW);
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
