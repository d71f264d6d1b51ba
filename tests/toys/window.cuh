GZ void draw(Env e) {
  lanes(e, MAP_ROWS, MAP_COLUMNS, [=](int y, int x) { e.map(y, x) = (u8)random_bits(e, y * MAP_COLUMNS + x, 0); });
  lanes(e, DOWN, ACROSS, [=](int y, int x) {
    e.seen(y, x) = window_bits<BITS, ROWS, COLUMNS>(e.shown, e.map, y * MAP_COLUMNS + x, MAP_COLUMNS);
  });
}

GZ void reset(Env e) { draw(e); }

GZ void step(Env e) { draw(e); }

GZ void observe(Env e) {
  lanes(e, 1, [=](int) { e.observation[0] = 0.f; });
}
