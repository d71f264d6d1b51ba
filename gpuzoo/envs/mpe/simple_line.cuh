#include "assignment.cuh"

constexpr float LENGTH = 1.25f;
constexpr float SECTOR = TWO_PI / 72.f;

GZ Body body(Env, int) { return {0.03f, STRENGTH, NO_LIMIT, 1.f, true}; }

GZ void place_targets(Env e) {
  lanes(e, AGENTS, [=](int k) {
    const Vec from = vec(e.landmark, 0), to = vec(e.landmark, 1);
    set(e.target, k, from + (float)k / (float)max(AGENTS - 1, 1) * (to - from));
  });
}

GZ void reset(Env e) {
  scatter(e, 1, 0.25f);
  once(e, [=] {
    const Vec from = vec(e.landmark, 0);
    float theta = uniform(e, 0, 0.f, TWO_PI);
    Vec to = from;
    for (int attempt = 0; attempt < 72; ++attempt, theta += SECTOR) {
      to = from + LENGTH * Vec{cos(theta), sin(theta)};
      if (abs(to.x) < 1.f && abs(to.y) < 1.f) break;
    }
    set(e.landmark, 1, to);
  });
  place_targets(e);
  assign(e);
}

GZ void step(Env e) {
  simulate(e, 0, 0.f);
  place_targets(e);
  assign(e);
  judge(e);
}

GZ void observe(Env e) { observe_landmarks(e, 2); }
