// The hundred prisoners' riddle as in Foerster et al., "Learning to Communicate with Deep Multi-Agent Reinforcement
// Learning" (2016), with the number of days of JaxMARL.

enum { NOTHING, SWITCH, TELL };

constexpr u64 EVERYBODY = ~0ull >> (64 - AGENTS);
constexpr int DAYS = 4 * AGENTS - 6;

template <class Set> GZ Set with(Set set, int agent) { return set | (Set)1 << agent; }

GZ void reset(Env e) {
  once(e, [=] {
    e.light = e.cfg.initial_bulb_state;
    e.in_room = random_int(e, 0, AGENTS);
    e.has_been = 0;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    const int action = e.action[e.in_room];
    const auto been = with(e.has_been, e.in_room);
    const float told = been == EVERYBODY ? e.cfg.reward_all_live : e.cfg.reward_all_die;
    for (int a = 0; a < AGENTS; ++a) e.reward[a] = action == TELL ? told : 0.f;
    e.light = e.light ^ (action == SWITCH);
    e.has_been = been;
    e.in_room = random_int(e, 0, AGENTS);
    if ((action == TELL) | (e.t >= DAYS)) e.terminate_all();
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    const bool inside = a == e.in_room;
    e.observation[a][0] = inside;
    e.observation[a][1] = inside & e.light;
  });
}
