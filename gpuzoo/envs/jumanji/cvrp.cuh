#include "sets.cuh"
#include "sized.cuh"

constexpr int DEPOT = 0;

struct Legal {
  Env e;
  GZ_MEMBER u64 operator[](int w) const {
    u64 legal = 0ull;
    for (int k = 64 * w; k < min(NODES, 64 * w + 64); ++k) legal |= e.demands[k] <= e.capacity ? bit(k) : 0ull;
    return legal & e.left[w];
  }
};

GZ float distance_between(Env e, int a, int b) {
  const float dx = e.coordinates(a, 0) - e.coordinates(b, 0), dy = e.coordinates(a, 1) - e.coordinates(b, 1);
  return sqrt(dx * dx + dy * dy);
}

GZ float length_of_routes(Env e) {
  float length = 0.f;
  for (int k = 0; k < ROUTE; ++k)
    length += distance_between(e, e.trajectory[k], e.trajectory[k + 1 < ROUTE ? k + 1 : 0]);
  return length;
}

GZ void reset(Env e) {
  once(e, [=] {
    const int given = INSTANCES > 0 ? given_instance(e, 0) : 0;
    e.size = INSTANCES > 0 ? (int)e.given_size[given] : drawn_size(e);
    for (int k = 0; k < NODES; ++k) {
      const bool here = k <= e.size;
      for (int axis = 0; axis < 2; ++axis) {
        const float at = INSTANCES > 0 ? e.given_coordinates[2 * (NODES * given + k) + axis]
                                       : uniform(e, k, axis, 0.f, 1.f);
        e.coordinates(k, axis) = here ? at : -1.f;
      }
      const int demand = INSTANCES > 0 ? (int)e.given_demands[NODES * given + k]
                                       : 1 + random_int(e, k, 2, Config::max_demand - 1);
      e.demands[k] = here && k != DEPOT ? demand : 0;
    }
    for (int w = 0; w < WORDS; ++w) e.left[w] = below(e.size + 1, w);
    e.left[0] &= ~bit(DEPOT);
    for (int k = 0; k < ROUTE; ++k) e.trajectory[k] = DEPOT;
    e.position = DEPOT;
    e.capacity = Config::max_capacity;
    e.num_total_visits = 1;
  });
}

GZ int choose(Env e, int, u32 bits) { return chosen_member<WORDS>(Legal{e}, bits); }

GZ void step(Env e) {
  once(e, [=] {
    const int node = e.action;
    if (node < 0 || !has(e.left, node) || e.demands[node] > e.capacity) {
      e.reward = -2.f * (float)e.size * sqrt(2.f);
      e.terminated = true;
      return;
    }
    const int last = e.position;
    e.left[0] |= bit(DEPOT);
    e.left[node / 64] &= ~bit(node);
    e.capacity = node == DEPOT ? Config::max_capacity : e.capacity - e.demands[node];
    if (e.num_total_visits < ROUTE) e.trajectory[e.num_total_visits] = (i16)node;
    e.position = node;
    e.num_total_visits += 1;
    e.terminated = is_empty<WORDS>(e.left);
    if (Config::reward == REWARD_DENSE)
      e.reward = -distance_between(e, last, node);
    else if (e.terminated)
      e.reward = -length_of_routes(e);
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    const Legal legal{e};
    Row demands = e.observation + 2 * NODES, left = demands + NODES, route = left + NODES + 1;
    for (int w = 0; w < WORDS; ++w) {
      const u64 word = legal[w];
      for (int k = 64 * w; k < min(NODES, 64 * w + 64); ++k) e.action_mask[k] = (i8)((word & bit(k)) != 0ull);
    }
    for (int k = 0; k < NODES; ++k) {
      e.observation[2 * k] = e.coordinates(k, 0);
      e.observation[2 * k + 1] = e.coordinates(k, 1);
      demands[k] = (float)e.demands[k] / (float)Config::max_capacity;
      left[k] = (float)has(e.left, k);
    }
    left[NODES] = (float)e.position;
    for (int k = 0; k < ROUTE; ++k) route[k] = (float)e.trajectory[k];
    route[ROUTE] = (float)e.capacity / (float)Config::max_capacity;
  });
}
