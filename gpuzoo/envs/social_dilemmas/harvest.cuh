#include "grid.cuh"

// Apples grow the faster, the more there are around; without any they grow no more.
GZ float chance(Env e, int cell) {
  int near = 0;
  for (int row = -1; row <= 1; ++row)
    for (int column = -1; column <= 1; ++column) near += e.cells[cell + row * STRIDE + column] == APPLE;
  return near == 0 ? 0.f : near == 1 ? e.cfg.regrowth_1 : near == 2 ? e.cfg.regrowth_2 : e.cfg.regrowth_3;
}

GZ void grow(Env e) {
  lanes(e, APPLES, [=](int k) {
    const int cell = e.apple_cell[k];
    e.ripe[k] = 0;
    if (e.cells[cell] == APPLE || e.top[cell] != NONE) return;
    const float p = chance(e, cell);
    if (p > 0.f) e.ripe[k] = uniform(e, AGENTS + k, GROW, 0.f, 1.f) < p;
  });
  lanes(e, APPLES, [=](int k) {
    if (e.ripe[k]) e.cells[e.apple_cell[k]] = APPLE;
  });
}
