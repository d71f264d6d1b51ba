#include "instances.cuh"
#include "sets.cuh"

GZ int mines_beside(Env e, int cell) {
  const int row = cell / COLUMNS, column = cell % COLUMNS;
  int count = 0;
  for (int r = max(row - 1, 0); r <= min(row + 1, ROWS - 1); ++r)
    for (int c = max(column - 1, 0); c <= min(column + 1, COLUMNS - 1); ++c)
      count += (int)has(e.mines, COLUMNS * r + c);
  return count - (int)has(e.mines, cell);
}

// Any set of `num_mines` cells (Floyd: see Bentley, "Programming Pearls", 1987).
GZ void draw_mines(Env e) {
  for (int last = CELLS - Config::num_mines; last < CELLS; ++last) {
    const int drawn = random_int(e, last, last + 1), cell = has(e.mines, drawn) ? last : drawn;
    e.mines[cell / 64] |= bit(cell);
  }
}

GZ void reset(Env e) {
  once(e, [=] {
    for (int cell = 0; cell < CELLS; ++cell) e.board[cell] = -1;
    for (int w = 0; w < WORDS; ++w) {
      e.covered[w] = below(CELLS, w);
      e.mines[w] = 0ull;
    }
    if (INSTANCES > 0) {
      const int given = given_instance(e, 0);
      for (int cell = 0; cell < CELLS; ++cell)
        if (e.given_mines[CELLS * given + cell] != 0) e.mines[cell / 64] |= bit(cell);
    } else {
      draw_mines(e);
    }
  });
}

GZ int choose(Env e, int, u32 bits) { return chosen_member<WORDS>(e.covered, bits); }

GZ void step(Env e) {
  once(e, [=] {
    const int cell = e.action;
    if (cell < 0 || !has(e.covered, cell)) {
      e.reward = e.cfg.invalid_action_reward;
      e.terminated = true;
      return;
    }
    const bool mine = has(e.mines, cell);
    e.board[cell] = (i8)mines_beside(e, cell);
    e.covered[cell / 64] &= ~bit(cell);
    int covered = 0;
    for (int w = 0; w < WORDS; ++w) covered += popcount(e.covered[w]);
    e.reward = mine ? e.cfg.revealed_mine_reward : e.cfg.revealed_empty_square_reward;
    e.terminated = mine || covered == Config::num_mines;
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    for (int cell = 0; cell < CELLS; ++cell) {
      e.observation[cell] = e.board[cell];
      e.action_mask[cell] = (i8)(e.board[cell] < 0);
    }
  });
}
