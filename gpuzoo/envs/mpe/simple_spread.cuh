#include "mpe.cuh"

constexpr float RADIUS = 0.15f;
constexpr float COVERED = 0.1f;

GZ Body body(Env, int) { return {RADIUS, STRENGTH, NO_LIMIT, 1.f, true}; }

GZ void reset(Env e) {
  scatter(e, AGENTS, 1.f);
  lanes(e, AGENTS, [=](int k) { e.gap[k] = 0.f; });
}

GZ void step(Env e) {
  simulate(e, 0, 0.f);
  lanes(e, AGENTS, [=](int k) {
    const Vec there = vec(e.landmark, k);
    float square = infinity();
    for (int a = 0; a < AGENTS; ++a) square = min(square, squared(vec(e.position, a) - there));
    e.gap[k] = sqrt(square);
  });
  lanes(e, AGENTS, [=](int a) {
    const auto &c = e.cfg;
    const Vec here = vec(e.position, a);
    float gaps = 0.f;
    int covered = 0, collisions = 0;
    for (int b = 0; b < AGENTS; ++b) {
      gaps += e.gap[b];
      covered += e.gap[b] < COVERED;
      collisions += b != a && touch(here, vec(e.position, b), 2.f * RADIUS);
    }
    e.reward[a] = -(1.f - c.local_ratio) * gaps - c.local_ratio * c.collision_penalty * (float)collisions;
    if (c.terminate_on_success && covered == AGENTS && e.t < e.max_steps) e.terminate(a);
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    const auto &c = e.cfg;
    const int others = c.num_agent_neighbors ? c.num_agent_neighbors : AGENTS - 1;
    const Vec here = vec(e.position, a);
    Row out = e.observation[a];
    out = put(out, vec(e.velocity, a));
    out = put(out, here);
    out = put_places(out, e.landmark, AGENTS, here, Const<Config::num_landmark_neighbors>(), NOBODY);
    out = put_places(out, e.position, AGENTS, here, Const<Config::num_agent_neighbors>(), a);
    for (int b = 0; b < others; ++b) out = put(out, {0.f, 0.f});  // what they say: nothing
  });
}
