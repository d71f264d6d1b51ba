// Worlds in which each agent has a place of its own to go to. Beside what mpe.cuh wants they have the fields target
// (agents, 2), owner, price, reach, way and reached (agents).

#include "mpe.cuh"

constexpr float FAR = 1e6f;  // also the distance of what is nowhere
constexpr float ARRIVED = 0.05f;

GZ float distance(Env e, int a, int target) {
  return min(length(vec(e.position, a) - vec(e.target, target)), FAR);
}

// Gives the targets to agents so that the sum of the distances is least: one agent after another by the shortest path on
// which others change their targets (Jonker and Volgenant, "A shortest augmenting path algorithm for dense and sparse
// linear assignment problems", 1987).
GZ void assign(Env e) {
  lanes(e, AGENTS, [=](int j) {
    e.owner[j] = NOBODY;
    e.price[j] = 0.f;
  });
  for (int a = 0; a < AGENTS; ++a) {
    lanes(e, AGENTS, [=](int j) {
      e.reach[j] = distance(e, a, j) - e.price[j];
      e.way[j] = NOBODY;
      e.reached[j] = 0;
    });
    int last = lane_argmin(e, AGENTS, [=](int j) { return e.reach[j]; });
    for (int k = 0; k < a; ++k) {
      const int owner = broadcast(e, [=] { return (int)e.owner[last]; });
      if (owner == NOBODY) break;
      const float start = broadcast(e, [=] { return e.reach[last] - (distance(e, owner, last) - e.price[last]); });
      lanes(e, AGENTS, [=](int j) {
        if (j == last) e.reached[j] = 1;
        const float reach = start + distance(e, owner, j) - e.price[j];
        if (e.reached[j] || reach >= e.reach[j]) return;
        e.reach[j] = reach;
        e.way[j] = (i8)last;
      });
      last = lane_argmin(e, AGENTS, [=](int j) { return e.reached[j] ? infinity() : e.reach[j]; });
    }
    const float least = broadcast(e, [=] { return e.reach[last]; });
    lanes(e, AGENTS, [=](int j) {
      if (e.reached[j]) e.price[j] += e.reach[j] - least;
    });
    once(e, [=] {
      int j = last;
      for (; e.way[j] != NOBODY; j = e.way[j]) e.owner[j] = e.owner[e.way[j]];
      e.owner[j] = (i8)a;
    });
  }
}

// Rewards all with the mean distance to their targets, and ends the episode where they have arrived.
GZ void judge(Env e) {
  const float sum = lane_sum(e, AGENTS, [=](int j) { return min(distance(e, e.owner[j], j), 2.f); });
  lanes(e, AGENTS, [=](int a) { e.reward[a] = -sum / (float)AGENTS; });
  if constexpr (Config::terminate_on_success) {
    const bool away = lane_any(e, AGENTS, [=](int j) { return distance(e, e.owner[j], j) >= ARRIVED; });
    once(e, [=] {
      if (!away && e.t < e.max_steps) e.terminate_all();
    });
  }
}

GZ void observe_landmarks(Env e, int landmarks) {
  lanes(e, AGENTS, [=](int a) {
    const Vec here = vec(e.position, a);
    Row out = e.observation[a];
    out = put(out, vec(e.velocity, a));
    out = put(out, here);
    put_places(out, e.landmark, landmarks, here, ALL, NOBODY);
  });
}
