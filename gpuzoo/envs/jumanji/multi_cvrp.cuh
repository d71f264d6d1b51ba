#include "sets.cuh"
#include "sized.cuh"

constexpr int DEPOT = 0;

// Whether a vehicle that carries so much serves a node: one comparison for 0 < demand <= capacity.
GZ bool serves(Env e, int node, int capacity) { return (u32)(e.demands[node] - 1) < (u32)capacity; }
GZ bool is_legal(Env e, int v, int node) { return node == DEPOT || serves(e, node, e.capacity[v]); }

struct Legal {
  Env e;
  int v;
  GZ_MEMBER u64 operator[](int w) const {
    const int capacity = e.capacity[v];
    u64 legal = w == 0 ? bit(DEPOT) : 0ull;
    for (int k = 64 * w; k < min(NODES, 64 * w + 64); ++k) legal |= serves(e, k, capacity) ? bit(k) : 0ull;
    return legal;
  }
};

GZ float distance_between(Env e, int a, int b) {
  const float dx = e.coordinates(a, 0) - e.coordinates(b, 0), dy = e.coordinates(a, 1) - e.coordinates(b, 1);
  return sqrt(dx * dx + dy * dy);
}

GZ float penalty(Env e, int node, float now) {
  const float early = now < e.start[node] ? (e.start[node] - now) * e.early[node] : 0.f;
  const float late = now > e.end[node] ? (now - e.end[node]) * e.late[node] : 0.f;
  return early + late;
}

// ---- instances ----

GZ void draw_nodes(Env e) {
  int sum = 0;
  for (int k = 0; k <= e.size; ++k) {
    for (int axis = 0; axis < 2; ++axis) e.coordinates(k, axis) = uniform(e, k, axis, 0.f, e.cfg.map_max);
    e.start[k] = uniform(e, k, 2, 0.f, e.cfg.max_start_window);
    e.end[k] = e.start[k] + e.cfg.time_window_length;
    e.early[k] = k == DEPOT ? 0.f : uniform(e, k, 3, e.cfg.min_early_coef, e.cfg.max_early_coef);
    e.late[k] = k == DEPOT ? 0.f : uniform(e, k, 4, e.cfg.min_late_coef, e.cfg.max_late_coef);
    e.demands[k] = k == DEPOT ? 0 : random_int(e, k, 5, Config::customer_demand_max);
    sum += e.demands[k];
  }
  const float scale = (float)(Config::max_capacity * AGENTS) / (float)max(sum, 1);
  for (int k = 0; k <= e.size; ++k) e.demands[k] = min((int)((float)e.demands[k] * scale), Config::customer_demand_max);
}

GZ void take_nodes(Env e, int given) {
  for (int k = 0; k <= e.size; ++k) {
    const int at = NODES * given + k;
    for (int axis = 0; axis < 2; ++axis) e.coordinates(k, axis) = e.given_coordinates[2 * at + axis];
    e.start[k] = e.given_window_start[at];
    e.end[k] = e.given_window_end[at];
    e.early[k] = e.given_early_coef[at];
    e.late[k] = e.given_late_coef[at];
    e.demands[k] = e.given_demands[at];
  }
}

GZ void reset(Env e) {
  once(e, [=] {
    const int given = INSTANCES > 0 ? given_instance(e, 0) : 0;
    e.size = INSTANCES > 0 ? (int)e.given_size[given] : drawn_size(e);
    if constexpr (INSTANCES > 0)
      take_nodes(e, given);
    else
      draw_nodes(e);
    e.num_left = 0;
    for (int k = 0; k < NODES; ++k) {
      if (k > e.size) {
        e.coordinates(k, 0) = e.coordinates(k, 1) = -1.f;
        e.start[k] = e.end[k] = e.early[k] = e.late[k] = 0.f;
        e.demands[k] = 0;
      }
      e.num_left += (int)(e.demands[k] > 0);
    }
    for (int v = 0; v < AGENTS; ++v) {
      e.position[v] = DEPOT;
      e.capacity[v] = Config::max_capacity;
      e.local_time[v] = e.distance[v] = e.time_penalty[v] = 0.f;
      for (int k = 0; k < ROUTE; ++k) e.order(v, k) = DEPOT;
    }
    e.step_count = 1;
  });
}

// ---- the game ----

GZ int choose(Env e, int v, u32 bits) { return chosen_member<WORDS>(Legal{e, v}, bits); }

// Where a vehicle goes: to the depot, if it may not go where it wants, or one of lower number goes there.
GZ int target(Env e, int v) {
  const int node = e.action[v] < 0 || !is_legal(e, v, e.action[v]) ? (int)DEPOT : e.action[v];
  bool first = true;
  for (int u = 0; u < v; ++u) first = first && e.next[u] != node;
  return first ? node : (int)DEPOT;
}

GZ void drive(Env e, int v) {
  const int node = e.next[v];
  const float distance = distance_between(e, e.position[v], node);
  e.position[v] = node;
  e.distance[v] += distance;
  e.local_time[v] += distance;
  e.time_penalty[v] += penalty(e, node, e.local_time[v]);
  e.capacity[v] = node == DEPOT ? Config::max_capacity : e.capacity[v] - e.demands[node];
  e.num_left -= (int)(e.demands[node] > 0);
  e.demands[node] = 0;
  if (e.step_count < ROUTE) e.order(v, e.step_count) = (i16)node;
}

// If one vehicle were to serve all that are left, each by a tour of its own, from the mean time on.
GZ float worst_case(Env e) {
  float distance = 0.f, now = 0.f, penalties = 0.f;
  for (int k = 0; k < NODES; ++k)
    if (e.demands[k] > 0) distance += distance_between(e, DEPOT, k);
  for (int v = 0; v < AGENTS; ++v) now += e.local_time[v];
  now = now / (float)AGENTS + 2.f * distance;
  for (int k = 0; k < NODES; ++k)
    if (e.demands[k] > 0) penalties += penalty(e, k, now);
  return -2.f * distance - penalties;
}

GZ float sum_of_costs(Env e) {
  float distance = 0.f, penalties = 0.f;
  for (int v = 0; v < AGENTS; ++v) {
    distance += e.distance[v];
    penalties += e.time_penalty[v];
  }
  return distance + penalties;
}

GZ void step(Env e) {
  once(e, [=] {
    const float before = Config::reward == REWARD_DENSE ? sum_of_costs(e) : 0.f;
    for (int v = 0; v < AGENTS; ++v) e.next[v] = target(e, v);
    for (int v = 0; v < AGENTS; ++v) drive(e, v);
    e.step_count += 1;
    bool home = e.num_left == 0;
    for (int v = 0; v < AGENTS; ++v) home = home && e.position[v] == DEPOT;
    const bool late = e.step_count > 2 * e.size;
    float reward = 0.f;
    if (late)
      reward = worst_case(e);
    else if (home || Config::reward == REWARD_DENSE)
      reward = before - sum_of_costs(e);
    for (int v = 0; v < AGENTS; ++v) e.reward[v] = reward;
    if (home || late) e.terminate_all();
  });
}

GZ void put_nodes(Env e, Row out) {
  for (int k = 0; k < NODES; ++k) {
    out[2 * k] = e.coordinates(k, 0);
    out[2 * k + 1] = e.coordinates(k, 1);
    out[2 * NODES + k] = (float)e.demands[k];
    out[3 * NODES + k] = e.start[k];
    out[4 * NODES + k] = e.end[k];
    out[5 * NODES + k] = e.early[k];
    out[6 * NODES + k] = e.late[k];
  }
}

GZ void put_vehicle(Env e, int v, Row out) {
  out[0] = e.coordinates(e.position[v], 0);
  out[1] = e.coordinates(e.position[v], 1);
  out[2] = e.local_time[v];
  out[3] = (float)e.capacity[v];
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int v) {
    const Row out = e.observation[v];
    put_nodes(e, out);
    put_vehicle(e, v, out + 7 * NODES);
    for (int u = 0; u < AGENTS; ++u)
      if (u != v) put_vehicle(e, u, out + 7 * NODES + 4 * (u + (int)(u < v)));
    for (int k = 0; k < NODES; ++k) e.action_mask[v][k] = (i8)is_legal(e, v, k);
  });
}

GZ void state(Env e) {
  once(e, [=] {
    put_nodes(e, e.state);
    for (int v = 0; v < AGENTS; ++v) put_vehicle(e, v, e.state + 7 * NODES + 4 * v);
  });
}
