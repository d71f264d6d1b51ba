#include "grid.cuh"

// Apples and waste grow as long as there is little waste; the apples the faster, the less there is.
GZ void grow(Env e) {
  const auto &c = e.cfg;
  const int waste = lane_sum(e, WASTES, [=](int k) { return (int)(e.cells[e.waste_cell[k]] == WASTE); });
  const float density = WASTES > 0 ? (float)waste / (float)max((int)WASTES, 1) : 0.f;
  const bool spoilt = density >= c.threshold_depletion;
  const float part = (density - c.threshold_restoration) / (c.threshold_depletion - c.threshold_restoration);
  const float slower = density <= c.threshold_restoration ? 1.f : 1.f - part;
  const float p = spoilt ? 0.f : c.apple_respawn_probability * slower;
  if (p > 0.f) {
    lanes(e, APPLES, [=](int k) { e.ripe[k] = uniform(e, AGENTS + k, GROW, 0.f, 1.f) < p; });
    lanes(e, APPLES, [=](int k) {
      const int cell = e.apple_cell[k];
      if (e.ripe[k] && e.top[cell] == NONE) e.cells[cell] = APPLE;
    });
  }
  once(e, [=] {
    const int clean = WASTES - waste;
    const float none = pow(1.f - c.waste_spawn_probability, (float)clean);
    if (spoilt || clean == 0 || uniform(e, SPOIL, 0.f, 1.f) < none) return;
    int left = random_int(e, WHERE, clean), k = 0;
    for (; e.cells[e.waste_cell[k]] == WASTE || left > 0; ++k) left -= e.cells[e.waste_cell[k]] == WASTE ? 0 : 1;
    e.cells[e.waste_cell[k]] = WASTE;
  });
}
