#include "division.cuh"
#include "instances.cuh"
#include "moves.cuh"

GZ bool is_open(Env e, int cell) { return cell >= 0 && e.walls[cell] == 0; }

GZ int ways_of(Env e, int a) {
  int ways = 0;
  for (int way = 0; way < WAYS; ++way)
    ways |= (int)is_open(e, neighbour(e.place[a], way, ROWS, COLUMNS)) << way;
  return ways;
}

GZ void reset(Env e) {
  once(e, [=] {
    if (INSTANCES > 0) {
      const int given = given_instance(e, 0);
      for (int cell = 0; cell < CELLS; ++cell) e.walls[cell] = e.given_walls[CELLS * given + cell] != 0;
    } else {
      draw_walls(e, 0);
    }
    e.num_dirty = -1;
    for (int cell = 0; cell < CELLS; ++cell) {
      e.dirty[cell] = e.walls[cell] == 0 && cell > 0;
      e.num_dirty += (int)(e.walls[cell] == 0);
    }
    for (int a = 0; a < AGENTS; ++a) e.place[a] = 0;
  });
}

GZ int choose(Env e, int a, u32 bits) { return chosen_bit((u64)ways_of(e, a), bits); }

GZ void step(Env e) {
  once(e, [=] {
    bool legal = true;
    const int before = e.num_dirty;
    for (int a = 0; a < AGENTS; ++a) {
      const int way = e.action[a];
      const int cell = way < 0 ? -1 : neighbour(e.place[a], way, ROWS, COLUMNS);
      if (is_open(e, cell))
        e.place[a] = cell;
      else
        legal = false;
      e.num_dirty -= (int)(e.dirty[e.place[a]] != 0);
      e.dirty[e.place[a]] = false;
    }
    const float reward = (float)(before - e.num_dirty) - e.cfg.penalty_per_timestep;
    for (int a = 0; a < AGENTS; ++a) e.reward[a] = reward;
    if (!legal || e.num_dirty == 0) e.terminate_all();
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    Row out = e.observation[a];
    for (int cell = 0; cell < CELLS; ++cell) {
      out[4 * cell] = (i8)(e.dirty[cell] != 0);
      out[4 * cell + 1] = (i8)(e.walls[cell] != 0);
      out[4 * cell + 2] = (i8)(cell == e.place[a]);
      out[4 * cell + 3] = 0;
    }
    for (int b = 0; b < AGENTS; ++b)
      if (b != a) out[4 * e.place[b] + 3] = (i8)(out[4 * e.place[b] + 3] + 1);
    const int ways = ways_of(e, a);
    for (int way = 0; way < WAYS; ++way) e.action_mask[a][way] = (i8)(ways >> way & 1);
  });
}

GZ void state(Env e) {
  once(e, [=] {
    for (int cell = 0; cell < CELLS; ++cell) e.state[cell] = (i8)(e.walls[cell] != 0 ? 2 : e.dirty[cell] != 0 ? 0 : 1);
    for (int a = 0; a < AGENTS; ++a) {
      e.state[CELLS + 2 * a] = (i8)(e.place[a] / COLUMNS);
      e.state[CELLS + 2 * a + 1] = (i8)(e.place[a] % COLUMNS);
    }
  });
}
