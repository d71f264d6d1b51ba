#include "instances.cuh"
#include "moves.cuh"

constexpr int EMPTY = 0, WALL = 1, TARGET = 2, WORKER = 3, BOX = 4;

GZ int boxes_on_targets(Env e) {
  int count = 0;
  for (int cell = 0; cell < CELLS; ++cell) count += (int)((e.fixed[cell] == TARGET) & (e.variable[cell] == BOX));
  return count;
}

GZ void reset(Env e) {
  once(e, [=] {
    const int given = given_instance(e, 0);
    for (int cell = 0; cell < CELLS; ++cell) {
      e.fixed[cell] = e.given_fixed[CELLS * given + cell];
      e.variable[cell] = e.given_variable[CELLS * given + cell];
      if (e.variable[cell] == WORKER) e.worker = cell;
    }
    e.on_target = boxes_on_targets(e);
  });
}

GZ bool is_open(Env e, int cell) { return cell >= 0 && e.fixed[cell] != WALL; }

GZ void move(Env e, int way) {
  const int to = neighbour(e.worker, way, ROWS, COLUMNS);
  if (!is_open(e, to)) return;
  if (e.variable[to] == BOX) {
    const int beyond = neighbour(to, way, ROWS, COLUMNS);
    if (!is_open(e, beyond) || e.variable[beyond] == BOX) return;
    e.variable[beyond] = BOX;
    e.on_target += (int)(e.fixed[beyond] == TARGET) - (int)(e.fixed[to] == TARGET);
  }
  e.variable[e.worker] = EMPTY;
  e.variable[to] = WORKER;
  e.worker = to;
}

GZ void step(Env e) {
  once(e, [=] {
    const int before = e.on_target;
    move(e, e.action);
    e.terminated = e.on_target == Config::num_boxes;
    const int reward = e.terminated ? 10 : 0;
    e.reward = Config::reward == REWARD_DENSE ? (float)(e.on_target - before + reward) - 0.1f : (float)reward;
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    GZ_ROLLED
    for (int cell = 0; cell < CELLS; ++cell) {
      e.observation[2 * cell] = e.variable[cell];
      e.observation[2 * cell + 1] = e.fixed[cell];
    }
  });
}
