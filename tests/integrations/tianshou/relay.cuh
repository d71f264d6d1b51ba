GZ void reset(Env e) {
  once(e, [=] { e.mover = 0; });
}

GZ void step(Env e) {
  once(e, [=] {
    e.reward[e.mover] = 1.f + e.action[e.mover];
    if (e.t == 1) e.terminate(0);
    if (e.t == 3) e.terminate_all();
    e.mover = 1;
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) { e.observation[a][0] = e.t; });
}
