#include "sets.cuh"
#include "sized.cuh"

// Leaves the items that fit in.
GZ void drop_too_heavy(Env e) {
  if (e.remaining_budget >= e.heaviest) return;
  for (int w = 0; w < WORDS; ++w) {
    u64 fitting = e.fitting[w];
    for (u64 rest = fitting; rest != 0ull; rest &= rest - 1ull) {
      const int item = 64 * w + bit_at(rest, 0);
      if (e.weights[item] > e.remaining_budget) fitting &= ~bit(item);
    }
    e.fitting[w] = fitting;
  }
}

GZ float packed_value(Env e) {
  float sum = 0.f;
  for (int k = 0; k < e.size; ++k) sum += has(e.packed, k) ? e.values[k] : 0.f;
  return sum;
}

GZ void reset(Env e) {
  once(e, [=] {
    const int given = INSTANCES > 0 ? given_instance(e, 0) : 0;
    e.size = INSTANCES > 0 ? (int)e.given_size[given] : drawn_size(e);
    float heaviest = 0.f;
    for (int k = 0; k < LARGEST; ++k) {
      const float weight = INSTANCES > 0 ? e.given_weights[LARGEST * given + k] : uniform(e, k, 0, 0.f, 1.f);
      const float value = INSTANCES > 0 ? e.given_values[LARGEST * given + k] : uniform(e, k, 1, 0.f, 1.f);
      e.weights[k] = k < e.size ? weight : -1.f;
      e.values[k] = k < e.size ? value : -1.f;
      heaviest = max(heaviest, e.weights[k]);
    }
    for (int w = 0; w < WORDS; ++w) {
      e.packed[w] = 0ull;
      e.fitting[w] = below(e.size, w);
    }
    e.heaviest = heaviest;
    e.remaining_budget = e.cfg.total_budget;
    drop_too_heavy(e);
  });
}

GZ int choose(Env e, int, u32 bits) { return chosen_member<WORDS>(e.fitting, bits); }

GZ void step(Env e) {
  once(e, [=] {
    const int item = e.action;
    if (item < 0 || !has(e.fitting, item)) {
      e.terminated = true;
      return;
    }
    e.packed[item / 64] |= bit(item);
    e.fitting[item / 64] &= ~bit(item);
    e.remaining_budget -= e.weights[item];
    drop_too_heavy(e);
    e.terminated = is_empty<WORDS>(e.fitting);
    if (Config::reward == REWARD_DENSE)
      e.reward = e.values[item];
    else if (e.terminated)
      e.reward = packed_value(e);
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    for (int k = 0; k < LARGEST; ++k) {
      e.observation[k] = e.weights[k];
      e.observation[LARGEST + k] = e.values[k];
      e.observation[2 * LARGEST + k] = (float)has(e.packed, k);
      e.action_mask[k] = (i8)has(e.fitting, k);
    }
  });
}
