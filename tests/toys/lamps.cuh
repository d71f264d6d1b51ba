GZ void reset(Env e) {
  once(e, [=] {
    e.level = random_int(e, 0, 3);
    e.colour = (u8)random_int(e, 1, 3);
    e.on = 0;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    int move = e.action(0, 0), toggle = e.action(0, 1);
    e.level = clamp(e.level + move - 1, 0, 3);
    e.colour = (u8)((e.colour + move) % 3);
    e.on = (u8)(e.on ^ (toggle & 1));
    e.reward = e.on ? (float)e.level : -0.5f;
    e.terminated = e.on & (e.level == 3);
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    e.observation[0] = e.level;
    e.observation[1] = e.colour;
    e.observation[2] = e.on;
    e.action_mask[0] = 1;
    e.action_mask[1] = e.level < 2;
    e.action_mask[2] = 1;
    e.action_mask[3] = 1;
    e.action_mask[4] = e.t % 3 == 2;
  });
}
