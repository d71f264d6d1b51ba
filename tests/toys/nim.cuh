GZ void reset(Env e) {
  once(e, [=] {
    e.left = e.cfg.heap + random_int(e, 0, 4);
    e.mover = 0;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    int mover = e.mover;
    e.left -= min(e.action[mover] + 1, e.left);
    if (e.left == 0) {
      e.reward[mover] += 1.f;
      e.reward[1 - mover] -= 1.f;
      e.terminate_all();
    }
    e.mover = 1 - mover;
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    e.observation[a][0] = e.left;
    e.observation[a][1] = a == e.mover;
    for (int k = 0; k < 3; ++k) e.action_mask[a][k] = (i8)(a == e.mover && k < e.left);
  });
}
