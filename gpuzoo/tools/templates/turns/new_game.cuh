GZ void reset(Env e) {
  once(e, [=] {
    e.sticks = e.cfg.heap + random_int(e, 0, 4);
    e.mover = 0;
  });
}

GZ void step(Env e) {
  once(e, [=] { e.sticks -= e.action[e.mover] + 1; });
  lanes(e, AGENTS, [=](int a) {
    if (e.sticks == 0) e.reward[a] = a == e.mover ? 1.f : -1.f / (float)(AGENTS - 1);
  });
  once(e, [=] {
    e.mover = (e.mover + 1) % AGENTS;
    if (e.sticks == 0) e.terminate_all();
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    e.observation[a][0] = e.sticks;
    e.observation[a][1] = (a - e.mover + AGENTS) % AGENTS;
    for (int k = 0; k < 3; ++k) e.action_mask[a][k] = a == e.mover && k < e.sticks;
  });
}
