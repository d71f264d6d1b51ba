#include "instances.cuh"
#include "moves.cuh"

GZ int ways_of(Env e) {
  int ways = 0;
  for (int way = 0; way < WAYS; ++way) ways |= (int)(neighbour(e.empty, way, SIZE, SIZE) >= 0) << way;
  return ways;
}

GZ int tile_of(int cell) { return cell + 1 < CELLS ? cell + 1 : 0; }

// The tile of the cell slides into the empty one.
GZ void slide(Env e, int cell) {
  const int tile = e.puzzle[cell], empty = e.empty;
  e.correct += (int)(tile == tile_of(empty)) - (int)(tile == tile_of(cell));
  e.correct += (int)(cell == CELLS - 1) - (int)(empty == CELLS - 1);
  e.puzzle[empty] = (i16)tile;
  e.puzzle[cell] = 0;
  e.empty = cell;
}

GZ void reset(Env e) {
  once(e, [=] {
    if (INSTANCES > 0) {
      const int given = given_instance(e, 0);
      e.correct = 0;
      for (int cell = 0; cell < CELLS; ++cell) {
        const int tile = e.given_puzzle[CELLS * given + cell];
        e.puzzle[cell] = (i16)tile;
        e.correct += (int)(tile == tile_of(cell));
        if (tile == 0) e.empty = cell;
      }
    } else {
      for (int cell = 0; cell < CELLS; ++cell) e.puzzle[cell] = (i16)tile_of(cell);
      e.empty = CELLS - 1;
      e.correct = CELLS;
      for (int k = 0; k < Config::num_random_moves; ++k)
        slide(e, neighbour(e.empty, chosen_bit((u64)ways_of(e), random_bits(e, k)), SIZE, SIZE));
    }
  });
}

GZ int choose(Env e, int, u32 bits) { return chosen_bit((u64)ways_of(e), bits); }

GZ void step(Env e) {
  once(e, [=] {
    const int way = e.action, before = e.correct;
    const int cell = way < 0 ? -1 : neighbour(e.empty, way, SIZE, SIZE);
    if (cell >= 0) slide(e, cell);
    const bool solved = e.correct == CELLS;
    e.reward = Config::reward == REWARD_DENSE ? (float)(e.correct - before) : solved ? 1.f : 0.f;
    e.terminated = solved;
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    for (int cell = 0; cell < CELLS; ++cell) e.observation[cell] = e.puzzle[cell];
    const int ways = ways_of(e);
    for (int way = 0; way < WAYS; ++way) e.action_mask[way] = (i8)(ways >> way & 1);
  });
}
