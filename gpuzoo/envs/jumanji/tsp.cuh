#include "sets.cuh"
#include "sized.cuh"

GZ float distance_between(Env e, int a, int b) {
  const float dx = e.coordinates(a, 0) - e.coordinates(b, 0), dy = e.coordinates(a, 1) - e.coordinates(b, 1);
  return sqrt(dx * dx + dy * dy);
}

GZ float tour_length(Env e) {
  float length = 0.f;
  for (int k = 0; k < e.size; ++k) {
    const int next = k + 1 < e.size ? k + 1 : 0;
    length += distance_between(e, e.trajectory[k], e.trajectory[next]);
  }
  return length;
}

GZ void reset(Env e) {
  once(e, [=] {
    const int given = INSTANCES > 0 ? given_instance(e, 0) : 0;
    e.size = INSTANCES > 0 ? (int)e.given_size[given] : drawn_size(e);
    GZ_ROLLED
    for (int k = 0; k < LARGEST; ++k)
      for (int axis = 0; axis < 2; ++axis) {
        const float at = INSTANCES > 0 ? e.given_coordinates[2 * (LARGEST * given + k) + axis]
                                       : uniform(e, k, axis, 0.f, 1.f);
        e.coordinates(k, axis) = k < e.size ? at : -1.f;
      }
    for (int w = 0; w < WORDS; ++w) e.left[w] = below(e.size, w);
    GZ_ROLLED
    for (int k = 0; k < LARGEST; ++k) e.trajectory[k] = -1;
    e.position = -1;
    e.num_visited = 0;
  });
}

GZ int choose(Env e, int, u32 bits) { return chosen_member<WORDS>(e.left, bits); }

GZ void step(Env e) {
  once(e, [=] {
    const int city = e.action;
    if (city < 0 || !has(e.left, city)) {
      e.reward = -(float)e.size * sqrt(2.f);
      e.terminated = true;
      return;
    }
    const int last = e.num_visited == 0 ? city : e.position;
    e.left[city / 64] &= ~bit(city);
    e.trajectory[e.num_visited] = (i16)city;
    e.position = city;
    e.num_visited += 1;
    const bool over = e.num_visited == e.size;
    if (Config::reward == REWARD_DENSE) {
      e.reward = -distance_between(e, last, city);
      if (over) e.reward -= distance_between(e, city, e.trajectory[0]);
    } else if (over) {
      e.reward = -tour_length(e);
    }
    e.terminated = over;
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    GZ_ROLLED
    for (int k = 0; k < LARGEST; ++k) {
      e.observation[2 * k] = e.coordinates(k, 0);
      e.observation[2 * k + 1] = e.coordinates(k, 1);
      e.observation[2 * LARGEST + 1 + k] = (float)e.trajectory[k];
      e.action_mask[k] = (i8)has(e.left, k);
    }
    e.observation[2 * LARGEST] = (float)e.position;
  });
}
