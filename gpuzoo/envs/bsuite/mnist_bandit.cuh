#include "rewards.cuh"

// byte / 255, from three times the byte: with 1 / 765 the product is, to the bit, what the division gives.
GZ float shade(int thrice) { return (float)thrice * (1.f / 765.f); }

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
    lanes(e, OBSERVATION_SIZE, [=](int k) { e.observation[k] = shade(e.thrice[first + k]); });
  else
    lanes(e, OBSERVATION_SIZE, [=](int k) { e.observation[k] = 0.f; });
}
