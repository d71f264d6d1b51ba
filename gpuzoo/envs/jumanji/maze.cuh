#include "division.cuh"
#include "instances.cuh"
#include "moves.cuh"

GZ int ways_of(Env e) {
  int ways = 0;
  for (int way = 0; way < WAYS; ++way) {
    const int cell = neighbour(e.agent, way, ROWS, COLUMNS);
    if (cell >= 0) ways |= (int)(e.walls[cell] == 0) << way;
  }
  return ways;
}

// The open cell behind `rank` other ones.
GZ int open_cell(Env e, int rank) {
  int cell = 0;
  for (; cell < CELLS - 1; ++cell) {
    rank -= (int)(e.walls[cell] == 0);
    if (rank < 0) break;
  }
  return cell;
}

GZ void reset(Env e) {
  once(e, [=] {
    if (INSTANCES > 0) {
      const int given = given_instance(e, 0);
      for (int cell = 0; cell < CELLS; ++cell) e.walls[cell] = e.given_walls[CELLS * given + cell] != 0;
      e.agent = COLUMNS * e.given_agent[2 * given] + e.given_agent[2 * given + 1];
      e.target = COLUMNS * e.given_target[2 * given] + e.given_target[2 * given + 1];
    } else {
      draw_walls(e, 2);
      int open = 0;
      for (int cell = 0; cell < CELLS; ++cell) open += (int)(e.walls[cell] == 0);
      const int agent = random_int(e, 0, open), target = random_int(e, 1, open - 1);
      e.agent = open_cell(e, agent);
      e.target = open_cell(e, target + (int)(target >= agent));
    }
  });
}

GZ int choose(Env e, int, u32 bits) { return chosen_bit((u64)ways_of(e), bits); }

GZ void step(Env e) {
  once(e, [=] {
    const int way = e.action;
    if (way >= 0 && (ways_of(e) >> way & 1)) e.agent = neighbour(e.agent, way, ROWS, COLUMNS);
    const bool there = e.agent == e.target;
    e.reward = there ? 1.f : 0.f;
    e.terminated = there || ways_of(e) == 0;
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    for (int cell = 0; cell < CELLS; ++cell) {
      e.observation[3 * cell] = (i8)(e.walls[cell] != 0);
      e.observation[3 * cell + 1] = (i8)(cell == e.agent);
      e.observation[3 * cell + 2] = (i8)(cell == e.target);
    }
    const int ways = ways_of(e);
    for (int way = 0; way < WAYS; ++way) e.action_mask[way] = (i8)(ways >> way & 1);
  });
}
