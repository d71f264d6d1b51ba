#include "mpe.cuh"

GZ Body body(Env, int) { return {0.15f, STRENGTH, NO_LIMIT, 1.f, false}; }

GZ void reset(Env e) {
  scatter(e, e.cfg.N, 1.f);
  once(e, [=] { e.goal = random_int(e, 0, e.cfg.N); });
}

GZ float to_goal(Env e, int a) { return length(vec(e.position, a) - vec(e.landmark, e.goal)); }

GZ void step(Env e) {
  simulate(e, 0, 0.f);
  const float nearest = lane_min(e, e.cfg.N, [=](int k) { return to_goal(e, FIRST_AGENT + k); });
  lanes(e, AGENTS, [=](int a) {
    const float adversary = to_goal(e, 0);
    e.reward[a] = a < FIRST_AGENT ? -adversary : adversary - nearest;
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    const auto &c = e.cfg;
    const Vec here = vec(e.position, a);
    Row out = e.observation[a];
    if (a >= FIRST_AGENT) out = put(out, vec(e.landmark, e.goal) - here);
    out = put_places(out, e.landmark, c.N, here, Const<Config::num_landmark_neighbors>(), NOBODY);
    put_places(out, e.position, AGENTS, here, Const<Config::num_agent_neighbors>(), a);
  });
}
