GZ void draw(Env e) {
  lanes(e, MAP_ROWS, MAP_COLUMNS, [=](int y, int x) {
    const int cell = y * MAP_COLUMNS + x, kind = random_int(e, cell, 0, KINDS);
    e.kind(y, x) = (u8)kind;
    e.number(y, x) = kind == 0 ? as_float(0x7fc00000u) : uniform(e, cell, 1, 0.f, 100.f);
  });
  lanes(e, AGENTS, [=](int a) {
    e.lens[a] = random_int(e, a, 2, LENSES);
    e.first[a] = random_int(e, a, 3, MAP_ROWS - SIDE + 1) * MAP_COLUMNS + random_int(e, a, 4, MAP_COLUMNS - SIDE + 1);
  });
}

GZ void reset(Env e) { draw(e); }

GZ void step(Env e) { draw(e); }

GZ void observe(Env e) {
  lanes(e, AGENTS, NUMBERS_OF_ROW, [=](int a, int k) { e.observation[a][k] = UNWRITTEN; });
  lanes_of_views(
      e, AGENTS, ViewShape<SIDE, CHANNELS, NUMBERS>(), [=](int a) { return e.observation[a] + BEFORE; },
      [=](int a) {
        const int lens = e.lens[a];
        return MapView{e.kind,     e.number,                 MAP_COLUMNS,
                       e.first[a], e.shows + lens * CHANNELS, e.visible + lens * SIDE * SIDE};
      });
}
