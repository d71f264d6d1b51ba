#include "instances.cuh"

constexpr int FACES = 6, TURNS = 3;

// Turns a layer by 1, 2 or 3 quarters.
GZ void turn(Env e, int layer, int quarters) {
  for (int k = CYCLES * layer; k < CYCLES * (layer + 1); ++k) {
    const int a = e.cycles[4 * k], b = e.cycles[4 * k + 1], c = e.cycles[4 * k + 2], d = e.cycles[4 * k + 3];
    const i8 at_a = e.cube[a], at_b = e.cube[b], at_c = e.cube[c], at_d = e.cube[d];
    e.cube[a] = quarters == 1 ? at_d : quarters == 2 ? at_c : at_b;
    e.cube[b] = quarters == 1 ? at_a : quarters == 2 ? at_d : at_c;
    e.cube[c] = quarters == 1 ? at_b : quarters == 2 ? at_a : at_d;
    e.cube[d] = quarters == 1 ? at_c : quarters == 2 ? at_b : at_a;
  }
}

GZ void act(Env e, int action) {
  const int way = action % TURNS;
  turn(e, action / TURNS, way == 0 ? 1 : way == 1 ? 3 : 2);
}

GZ bool is_solved(Env e) {
  bool solved = true;
  for (int face = 0; face < FACES && solved; ++face) {
    const i8 first = e.cube[FACE * face];
    for (int k = 1; k < FACE && solved; ++k) solved = e.cube[FACE * face + k] == first;
  }
  return solved;
}

GZ void reset(Env e) {
  once(e, [=] {
    if (INSTANCES > 0) {
      const int given = given_instance(e, 0);
      for (int k = 0; k < STICKERS; ++k) e.cube[k] = e.given_cube[STICKERS * given + k];
    } else {
      for (int k = 0; k < STICKERS; ++k) e.cube[k] = (i8)(k / FACE);
      for (int k = 0; k < Config::num_scrambles_on_reset; ++k) act(e, random_int(e, k, LAYERS * TURNS));
    }
  });
}

GZ void step(Env e) {
  once(e, [=] {
    act(e, e.action);
    e.terminated = is_solved(e);
    e.reward = e.terminated ? 1.f : 0.f;
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    for (int k = 0; k < STICKERS; ++k) e.observation[k] = e.cube[k];
  });
}
