#include "moves.cuh"

// The place of a cell in the body: 1 at the tail, the length at the head, 0 or less elsewhere.
GZ int place_in_body(Env e, int cell) { return e.until[cell] - e.clock; }

GZ int ways_of(Env e) {
  int ways = 0;
  for (int way = 0; way < WAYS; ++way) {
    const int cell = neighbour(e.head, way, ROWS, COLUMNS);
    if (cell >= 0) ways |= (int)(place_in_body(e, cell) <= 1) << way;
  }
  return ways;
}

GZ void place_fruit(Env e, int draw) {
  e.fruit = 0;
  if (e.length == CELLS) return;
  int left = random_int(e, draw, CELLS - e.length), cell = 0;
  for (;; ++cell) {
    left -= (int)(place_in_body(e, cell) <= 0);
    if (left < 0 || cell == CELLS - 1) break;
  }
  e.fruit = cell;
}

GZ void reset(Env e) {
  once(e, [=] {
    for (int cell = 0; cell < CELLS; ++cell) e.until[cell] = 0;
    e.clock = 0;
    e.length = 1;
    e.head = random_int(e, 0, CELLS);
    e.until[e.head] = 1;
    place_fruit(e, 1);
  });
}

GZ int choose(Env e, int, u32 bits) { return chosen_bit((u64)ways_of(e), bits); }

GZ void step(Env e) {
  once(e, [=] {
    const int way = e.action;
    if (way < 0 || !(ways_of(e) >> way & 1)) {
      e.terminated = true;
      return;
    }
    e.head = neighbour(e.head, way, ROWS, COLUMNS);
    const bool eaten = e.head == e.fruit;
    e.length += (int)eaten;
    e.clock += (int)!eaten;
    e.until[e.head] = e.clock + e.length;
    if (eaten) {
      place_fruit(e, 0);
      e.reward = 1.f;
      e.terminated = e.length == CELLS;
    }
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    for (int cell = 0; cell < CELLS; ++cell) {
      Row out = e.observation + 5 * cell;
      const int place = max(place_in_body(e, cell), 0);
      out[0] = (float)(place > 0);
      out[1] = (float)(cell == e.head);
      out[2] = (float)(place == 1);
      out[3] = (float)(cell == e.fruit);
      out[4] = (float)place / (float)e.length;
    }
    const int ways = ways_of(e);
    for (int way = 0; way < WAYS; ++way) e.action_mask[way] = (i8)(ways >> way & 1);
  });
}
