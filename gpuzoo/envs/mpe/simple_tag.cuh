#include "mpe.cuh"

constexpr float OBSTACLE_RADIUS = 0.2f;

GZ bool adversary(int a) { return a < FIRST_AGENT; }

GZ Body body(Env e, int a) {
  const float pace = e.cfg.prey_speed_factor;
  return adversary(a) ? Body{0.075f, 3.f, 1.f, 1.f, true} : Body{0.05f, 4.f * pace, 1.3f * pace, 1.f, true};
}

GZ void reset(Env e) { scatter(e, e.cfg.num_obstacles, 0.9f); }

// The adversaries that touch good agent a.
GZ int catchers(Env e, int a) {
  int n = 0;
  for (int b = 0; b < FIRST_AGENT; ++b)
    n += touch(vec(e.position, a), vec(e.position, b), body(e, a).radius + body(e, b).radius);
  return n;
}

GZ void step(Env e) {
  simulate(e, e.cfg.num_obstacles, OBSTACLE_RADIUS);
  const int catches = lane_sum(e, AGENTS, [=](int a) { return adversary(a) ? 0 : catchers(e, a); });
  lanes(e, AGENTS, [=](int a) {
    const Vec here = vec(e.position, a);
    e.reward[a] = adversary(a) ? 10.f * (float)catches
                               : 0.f - 10.f * (float)catchers(e, a) - straying(here.x) - straying(here.y);
  });
  if constexpr (Config::terminate_on_success) {
    const bool free = lane_any(e, AGENTS, [=](int a) { return !adversary(a) && catchers(e, a) == 0; });
    once(e, [=] {
      if (!free && e.t < e.max_steps) e.terminate_all();
    });
  }
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    const auto &c = e.cfg;
    const Vec here = vec(e.position, a);
    Row out = e.observation[a];
    out = put(out, vec(e.velocity, a));
    out = put(out, here);
    out = put_places(out, e.landmark, c.num_obstacles, here, Const<Config::num_landmark_neighbors>(), NOBODY);
    out = put_places(out, e.position, AGENTS, here, Const<Config::num_agent_neighbors>(), a);
    if (c.num_agent_neighbors)
      put_each(out, e.position, AGENTS, here, Const<Config::num_agent_neighbors>(), a,
               [=](int b) { return adversary(b) ? Vec{0.f, 0.f} : vec(e.velocity, b); });
    else
      for (int b = FIRST_AGENT; b < AGENTS; ++b)
        if (b != a) out = put(out, vec(e.velocity, b));
  });
}
