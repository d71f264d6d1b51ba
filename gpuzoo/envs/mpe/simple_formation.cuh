#include "assignment.cuh"

constexpr float CIRCLE = 0.5f;

GZ Body body(Env, int) { return {0.05f, STRENGTH, NO_LIMIT, 1.f, true}; }

GZ float angle(Env e, int a) {
  const Vec v = vec(e.position, a) - vec(e.landmark, 0);
  const float theta = atan2(v.y, v.x);
  return theta < 0.f ? theta + TWO_PI : theta;
}

// Evenly on a circle around the landmark, beginning at the least angle of an agent.
GZ void place_targets(Env e) {
  const float first = lane_min(e, AGENTS, [=](int a) { return angle(e, a); });
  lanes(e, AGENTS, [=](int k) {
    const float theta = first + TWO_PI / (float)AGENTS * (float)k;
    set(e.target, k, vec(e.landmark, 0) + CIRCLE * Vec{cos(theta), sin(theta)});
  });
}

GZ void reset(Env e) {
  scatter(e, 1, 0.5f);
  place_targets(e);
  assign(e);
}

GZ void step(Env e) {
  simulate(e, 0, 0.f);
  place_targets(e);
  assign(e);
  judge(e);
}

GZ void observe(Env e) { observe_landmarks(e, 1); }
