#include "mpe.cuh"

constexpr float RADIUS = 0.15f;
constexpr float COVERED = 0.1f;
constexpr float STRENGTH = 5.f;
constexpr int NOBODY = -1;

GZ void reset(Env e) {
  lanes(e, AGENTS, [=](int a) {
    set(e.position, a, {uniform(e, a, 0, -1.f, 1.f), uniform(e, a, 1, -1.f, 1.f)});
    set(e.landmark, a, {uniform(e, a, 2, -1.f, 1.f), uniform(e, a, 3, -1.f, 1.f)});
    set(e.velocity, a, {0.f, 0.f});
    set(e.force, a, {0.f, 0.f});
    e.gap[a] = 0.f;
  });
}

GZ void step(Env e) {
  lanes(e, AGENTS, [=](int a) {
    const Vec here = vec(e.position, a);
    Vec force = motor(e, a, STRENGTH);
    for (int b = 0; b < AGENTS; ++b)
      if (b != a) force = force + contact(here - vec(e.position, b), 2.f * RADIUS);
    set(e.force, a, force);
  });
  lanes(e, AGENTS, [=](int a) {
    Vec position = vec(e.position, a), velocity = vec(e.velocity, a);
    move(position, velocity, vec(e.force, a), 1.f, NO_LIMIT);
    set(e.position, a, position);
    set(e.velocity, a, velocity);
  });
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
      collisions += b != a && squared(vec(e.position, b) - here) < 4.f * RADIUS * RADIUS;
    }
    e.reward[a] = -(1.f - c.local_ratio) * gaps - c.local_ratio * c.collision_penalty * (float)collisions;
    if (c.terminate_on_success && covered == AGENTS && e.t < e.max_steps) e.terminate(a);
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    const auto &c = e.cfg;
    const int landmarks = c.num_landmark_neighbors ? c.num_landmark_neighbors : (int)AGENTS;
    const int others = c.num_agent_neighbors ? c.num_agent_neighbors : AGENTS - 1;
    const Vec here = vec(e.position, a);
    float *out = e.observation[a];
    put(out, 0, vec(e.velocity, a));
    put(out, 1, here);
    out += 4;
    for (int k = 0; k < AGENTS; ++k) {
      const int slot = c.num_landmark_neighbors ? rank(e.landmark, AGENTS, here, k, NOBODY) : k;
      if (slot < landmarks) put(out, slot, vec(e.landmark, k) - here);
    }
    for (int slot = AGENTS; slot < landmarks; ++slot) put(out, slot, {0.f, 0.f});
    out += 2 * landmarks;
    for (int b = 0; b < AGENTS; ++b) {
      const int slot = c.num_agent_neighbors ? rank(e.position, AGENTS, here, b, a) : b - (b > a);
      if (b != a && slot < others) put(out, slot, vec(e.position, b) - here);
    }
    for (int slot = AGENTS - 1; slot < others; ++slot) put(out, slot, {0.f, 0.f});
    out += 2 * others;
    for (int slot = 0; slot < others; ++slot) put(out, slot, {0.f, 0.f});  // what they say: nothing
  });
}
