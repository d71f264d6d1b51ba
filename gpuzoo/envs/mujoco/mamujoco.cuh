// Several agents move one robot. Its own rules are in the namespace `robot`, where it has one action and one reward.

GZ void reset(Env e) {
  Pack reward = 0.f;
  robot::reset(robot::Env(e, reward, robot::Controls()));
}

GZ void step(Env e) {
  Pack reward = 0.f;
  robot::step(robot::Env(e, reward, controls_of(e)));
  for (int a = 0; a < AGENTS; ++a) e.reward[a] = reward;
}

GZ void observe(Env e) { sense(e); }

GZ void state(Env e) {
  Pack reward = 0.f;
  robot::observe(robot::Env(e, reward, robot::Controls()));
}
