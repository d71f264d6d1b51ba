#include "mpe.cuh"
#include "speech.cuh"

GZ Body body(Env, int) { return {0.05f, STRENGTH, NO_LIMIT, 1.f, false}; }

GZ void reset(Env e) {
  scatter(e, LANDMARKS, 1.f);
  lanes(e, AGENTS, [=](int a) {
    e.goal[a] = (u8)random_int(e, a, 4, LANDMARKS);
    hush(e, a);
  });
}

// From the partner of agent a to the landmark where a wants it.
GZ float distance(Env e, int a) {
  return length(vec(e.position, 1 - a) - vec(e.landmark, min((int)e.goal[a], LANDMARKS - 1)));
}

GZ void step(Env e) {
  simulate(e, 0, 0.f);
  lanes(e, AGENTS, [=](int a) {
    const float own = distance(e, a), mean = 0.5f * (distance(e, 0) + distance(e, 1));
    e.reward[a] = -(1.f - e.cfg.local_ratio) * mean - e.cfg.local_ratio * own;
    speak(e, a, a, MOVES);
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    Row out = e.observation[a];
    out = put(out, vec(e.velocity, a));
    out = put_places(out, e.landmark, LANDMARKS, vec(e.position, a), ALL, NOBODY);
    for (int k = 0; k < LANDMARKS; ++k) out[k] = k == e.goal[a] ? 0.75f : 0.25f;
    hear(e, out + LANDMARKS, 1 - a);
  });
}
