enum Move { STAY, FORWARD, LEFT, RIGHT, FIRE };
enum Plane { APPLE, PICKER, OUTSIDE, PLANES };

constexpr int NOWHERE = -1;

// The cell that lies `ahead` cells in front of another and `aside` cells to the right, for who looks to `facing`.
GZ int cell_from(int cell, int facing, int ahead, int aside) {
  const int up = facing == 0 ? ahead : facing == 1 ? -aside : facing == 2 ? -ahead : aside;
  const int right = facing == 0 ? aside : facing == 1 ? ahead : facing == 2 ? -aside : -ahead;
  const int row = cell / Config::columns - up, column = cell % Config::columns + right;
  const bool inside = (row >= 0) & (row < Config::rows) & (column >= 0) & (column < Config::columns);
  return inside ? row * Config::columns + column : NOWHERE;
}

// Who is where: needed in a step and in an observation, and worth nothing between them.
GZ void place_pickers(Env e) {
  lanes(e, CELLS, [=](int c) { e.picker_at[c] = 0; });
  lanes(e, AGENTS, [=](int a) { e.picker_at[e.cell[a]] = a + 1; });
}

GZ void reset(Env e) {
  lanes(e, AGENTS, [=](int a) {
    e.cell[a] = (a * CELLS + random_int(e, 0, CELLS)) / AGENTS;
    e.facing[a] = random_int(e, a, 0, 4);
    e.frozen[a] = 0;
  });
  lanes(e, CELLS, [=](int c) { e.apple[c] = uniform(e, AGENTS + c, 0, 0.f, 1.f) < 0.3f; });
}

GZ void move_forward(Env e, int a) {
  const int target = cell_from(e.cell[a], e.facing[a], 1, 0);
  if (target == NOWHERE || e.picker_at[target] != 0) return;
  e.picker_at[e.cell[a]] = 0;
  e.picker_at[target] = a + 1;
  e.cell[a] = target;
  e.reward[a] = e.apple[target] ? 1.f : 0.f;
  e.apple[target] = 0;
}

GZ void step(Env e) {
  place_pickers(e);
  lanes(e, AGENTS, [=](int a) { e.frozen[a] = max(e.frozen[a] - 1, 0); });
  in_random_order(e, AGENTS, 0, [=](int a) {
    const int action = e.frozen[a] ? (int)STAY : e.action[a];
    e.facing[a] = (e.facing[a] + (action == RIGHT) - (action == LEFT)) & 3;
    if (action == FORWARD) move_forward(e, a);
  });
  lanes(e, CELLS, [=](int c) { e.hit[c] = 0; });
  lanes(e, AGENTS, [=](int a) {
    if (e.frozen[a] || e.action[a] != FIRE) return;
    for (int k = 1; k <= e.cfg.reach; ++k) {
      const int c = cell_from(e.cell[a], e.facing[a], k, 0);
      if (c != NOWHERE) scatter_or(e.hit[c], 1u << e.facing[a]);
    }
  });
  lanes(e, AGENTS, [=](int a) {
    if (e.hit[e.cell[a]] != 0) e.frozen[a] = e.cfg.frozen_steps + 1;
  });
  lanes(e, CELLS, [=](int c) { e.around[c] = 0; });
  lanes(e, CELLS, [=](int c) {
    if (!e.apple[c]) return;
    for (int k = 0; k < 9; ++k) {
      const int near = cell_from(c, 0, k / 3 - 1, k % 3 - 1);
      if (near != NOWHERE) scatter_add(e.around[near], 1);
    }
  });
  lanes(e, CELLS, [=](int c) {
    const bool grows = uniform(e, AGENTS + c, 0, 0.f, 1.f) < e.cfg.growth * (float)e.around[c];
    e.apple[c] = (u8)((e.apple[c] != 0) | (grows & (e.picker_at[c] == 0)));
  });
  const bool some = lane_any(e, CELLS, [=](int c) { return e.apple[c]; });
  once(e, [=] {
    if (!some) e.terminate_all();
  });
}

GZ void observe(Env e) {
  place_pickers(e);
  lanes(e, AGENTS, Const<VIEW * VIEW>(), [=](int a, int k) {
    const int c = cell_from(e.cell[a], e.facing[a], e.cfg.sight - k / VIEW, k % VIEW - e.cfg.sight);
    Row seen = e.observation[a] + PLANES * k;
    seen[APPLE] = c != NOWHERE && e.apple[c];
    seen[PICKER] = c != NOWHERE && e.picker_at[c] != 0;
    seen[OUTSIDE] = c == NOWHERE;
  });
}

GZ void state(Env e) {
  place_pickers(e);
  lanes(e, CELLS, [=](int c) {
    const int a = e.picker_at[c] - 1;
    e.state[2 * c] = (i8)e.apple[c];
    e.state[2 * c + 1] = (i8)(a < 0 ? 0 : 1 + e.facing[a]);
  });
}
