#include "mpe.cuh"
#include "speech.cuh"

constexpr int SPEAKER = FIRST_SPEAKER, LISTENER = FIRST_LISTENER;

GZ Body body(Env, int a) { return {0.075f, a == LISTENER ? STRENGTH : 0.f, NO_LIMIT, 1.f, false}; }

GZ void reset(Env e) {
  scatter(e, LANDMARKS, 1.f);
  once(e, [=] {
    e.goal = (u8)random_int(e, 0, LANDMARKS);
    hush(e, 0);
  });
}

GZ void step(Env e) {
  simulate(e, 0, 0.f);
  lanes(e, AGENTS, [=](int a) {
    e.reward[a] = -squared(vec(e.position, LISTENER) - vec(e.landmark, min((int)e.goal, LANDMARKS - 1)));
    if (a == SPEAKER) speak(e, a, 0, STANDS);
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    Row out = e.observation[SPEAKER];
    for (int k = 0; k < LANDMARKS; ++k) out[k] = k == e.goal ? 0.65f : 0.15f;
    out = e.observation[LISTENER];
    out = put(out, vec(e.velocity, LISTENER));
    out = put_places(out, e.landmark, LANDMARKS, vec(e.position, LISTENER), ALL, NOBODY);
    hear(e, out, 0);
  });
}
