#include "mpe.cuh"

constexpr int LANDMARKS = 2;

GZ Body body(Env, int) { return {0.05f, STRENGTH, NO_LIMIT, 1.f, true}; }

GZ void reset(Env e) {
  scatter(e, LANDMARKS, 1.f);
  once(e, [=] { e.goal = random_int(e, 0, LANDMARKS); });
}

GZ float to_goal(Env e, int a) { return length(vec(e.position, a) - vec(e.landmark, e.goal)); }

GZ void step(Env e) {
  simulate(e, 0, 0.f);
  lanes(e, AGENTS, [=](int a) {
    const float agent = to_goal(e, FIRST_AGENT);
    e.reward[a] = a < FIRST_AGENT ? agent - to_goal(e, a) : -agent;
  });
}

// Red, green and blue; what belongs to landmark k is bright in component k + 1.
GZ Row put_colour(Row out, float dark, float bright, int k) {
  out[0] = dark;
  out[1] = k == 0 ? bright : dark;
  out[2] = k == 1 ? bright : dark;
  return out + 3;
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    const Vec here = vec(e.position, a);
    const bool good = a >= FIRST_AGENT;
    Row out = e.observation[a];
    out = put(out, vec(e.velocity, a));
    if (good) {
      out = put(out, vec(e.landmark, e.goal) - here);
      out = put_colour(out, 0.25f, 0.75f, e.goal);
    }
    out = put_places(out, e.landmark, LANDMARKS, here, ALL, NOBODY);
    for (int k = 0; k < LANDMARKS && good; ++k) out = put_colour(out, 0.1f, 0.9f, k);
    put_places(out, e.position, AGENTS, here, ALL, a);
  });
}
