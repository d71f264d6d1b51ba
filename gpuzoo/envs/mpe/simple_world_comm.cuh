#include "mpe.cuh"
#include "speech.cuh"

constexpr float OBSTACLE_RADIUS = 0.2f, FOOD_RADIUS = 0.03f, FOREST_RADIUS = 0.3f;
constexpr int LEADER = FIRST_LEADADVERSARY;
constexpr int FIRST_FOOD = Config::num_obstacles, FIRST_FOREST = FIRST_FOOD + Config::num_food;  // among the landmarks

GZ bool adversary(int a) { return a < FIRST_AGENT; }

GZ Body body(Env, int a) {
  return adversary(a) ? Body{0.075f, 3.f, 1.f, 1.f, true} : Body{0.045f, 4.f, 1.3f, 1.f, true};
}

GZ void reset(Env e) {
  scatter(e, LANDMARKS, 0.9f);
  lanes(e, AGENTS, [=](int a) { e.shelter[a] = 0; });
  once(e, [=] { hush(e, 0); });
}

// The adversaries that touch good agent a.
GZ int catchers(Env e, int a) {
  int n = 0;
  for (int b = 0; b < FIRST_AGENT; ++b)
    n += touch(vec(e.position, a), vec(e.position, b), body(e, a).radius + body(e, b).radius);
  return n;
}

GZ float adversary_reward(Env e, int a, int catches) {
  float square = infinity();
  for (int b = FIRST_AGENT; b < AGENTS; ++b) square = min(square, squared(vec(e.position, b) - vec(e.position, a)));
  return 5.f * (float)catches - 0.1f * sqrt(square);
}

GZ float good_reward(Env e, int a) {
  const Vec here = vec(e.position, a);
  float square = infinity();
  int eaten = 0;
  for (int k = FIRST_FOOD; k < FIRST_FOREST; ++k) {
    square = min(square, squared(vec(e.landmark, k) - here));
    eaten += touch(vec(e.landmark, k), here, body(e, a).radius + FOOD_RADIUS);
  }
  return 2.f * (float)eaten - 5.f * (float)catchers(e, a) - 2.f * (straying(here.x) + straying(here.y)) -
         0.05f * sqrt(square);
}

GZ void step(Env e) {
  simulate(e, e.cfg.num_obstacles, OBSTACLE_RADIUS);
  const int catches = lane_sum(e, AGENTS, [=](int a) { return adversary(a) ? 0 : catchers(e, a); });
  lanes(e, AGENTS, [=](int a) {
    e.reward[a] = adversary(a) ? adversary_reward(e, a, catches) : good_reward(e, a);
    if (a == LEADER) speak(e, a, 0, MOVES);
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    u32 forests = 0;
    for (int k = FIRST_FOREST; k < LANDMARKS; ++k)
      if (touch(vec(e.position, a), vec(e.landmark, k), body(e, a).radius + FOREST_RADIUS))
        forests |= 1u << (k - FIRST_FOREST);
    e.shelter[a] = forests;
  });
  lanes(e, AGENTS, [=](int a) {
    const Vec here = vec(e.position, a), unseen = {0.f, 0.f};
    const u32 mine = e.shelter[a];
    const auto sees = [=](int b) { return a == LEADER || (mine & e.shelter[b]) || !(mine | e.shelter[b]); };
    Row out = e.observation[a];
    out = put(out, vec(e.velocity, a));
    out = put(out, here);
    out = put_places(out, e.landmark, LANDMARKS, here, ALL, NOBODY);
    GZ_ROLLED
    for (int b = 0; b < AGENTS; ++b)
      if (b != a) out = put(out, sees(b) ? vec(e.position, b) - here : unseen);
    Row forests = adversary(a) ? out + 2 * AGENTS - 2 * FIRST_AGENT : out;
    if (!adversary(a)) out += LANDMARKS - FIRST_FOREST;
    GZ_ROLLED
    for (int b = FIRST_AGENT; b < AGENTS; ++b)
      if (b != a) out = put(out, sees(b) ? vec(e.velocity, b) : unseen);
    for (int k = 0; k < LANDMARKS - FIRST_FOREST; ++k) forests[k] = mine >> k & 1u ? 1.f : -1.f;
    if (adversary(a)) hear(e, forests + LANDMARKS - FIRST_FOREST, 0);
  });
}
