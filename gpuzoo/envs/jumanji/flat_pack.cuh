#include "factored.cuh"
#include "instances.cuh"

constexpr int SIDE = 3, ROTATIONS = 4;
constexpr int UPPERMOST = 0x07, LEFTMOST = 0x49;  // cells of a shape, a bit for each: SIDE * row + column

GZ int turned(int shape) {
  int out = 0;
  for (int row = 0; row < SIDE; ++row)
    for (int column = 0; column < SIDE; ++column)
      out |= (shape >> (SIDE * (SIDE - 1 - column) + row) & 1) << (SIDE * row + column);
  return out;
}

// Moved into the upper left corner.
GZ int cropped(int shape) {
  for (int k = 1; k < SIDE; ++k) shape = shape & UPPERMOST ? shape : shape >> SIDE;
  for (int k = 1; k < SIDE; ++k) shape = shape & LEFTMOST ? shape : shape >> 1;
  return shape;
}

GZ void set_shapes(Env e, int block, int shape) {
  for (int rotation = 0; rotation < ROTATIONS; ++rotation) {
    e.shape(block, rotation) = (i16)shape;
    shape = turned(shape);
  }
}

GZ int given_shape(Env e, int given, int block) {
  int shape = 0;
  for (int k = 0; k < SIDE * SIDE; ++k)
    shape |= (int)(e.given_blocks[(BLOCKS * given + block) * SIDE * SIDE + k] != 0) << k;
  return shape;
}

GZ int given_number(Env e, int given, int block) {
  int number = 0;
  for (int k = 0; k < SIDE * SIDE; ++k)
    number = max(number, (int)e.given_blocks[(BLOCKS * given + block) * SIDE * SIDE + k]);
  return number;
}

// Blocks share rows and columns at even places inside of the grid, which follow the one before or behind them.
GZ int source_of(int k, int size, u32 random) {
  const bool shared = k % 2 == 0 && k > 0 && k < size - 1;
  return shared ? k + 1 - 2 * (int)(random & 1u) : k;
}

GZ int block_at(int k, int size) { return min(k / 2, (size - 1) / 2 - 1); }

GZ int drawn_shape(Env e, int number) {
  const int top = 2 * ((number - 1) / COLUMN_BLOCKS), left = 2 * ((number - 1) % COLUMN_BLOCKS);
  int shape = 0;
  for (int k = 0; k < SIDE * SIDE; ++k)
    shape |= (int)(e.colour[COLUMNS * (top + k / SIDE) + left + k % SIDE] == number) << k;
  return cropped(shape);
}

GZ void draw_grid(Env e) {
  for (int row = 0; row < ROWS; ++row) {
    const u32 rows = random_bits(e, row, 0);
    for (int column = 0; column < COLUMNS; ++column) {
      const int from = source_of(row, ROWS, rows >> column);
      const int to = source_of(column, COLUMNS, random_bits(e, from, 1) >> column);
      e.colour[COLUMNS * row + column] = (u8)(1 + COLUMN_BLOCKS * block_at(from, ROWS) + block_at(to, COLUMNS));
    }
  }
}

GZ void draw_blocks(Env e) {
  draw_grid(e);
  for (int block = 0; block < BLOCKS; ++block) {
    const int other = random_int(e, block, 2, block + 1);
    e.number[block] = e.number[other];
    e.number[other] = (u8)(block + 1);
  }
  for (int block = 0; block < BLOCKS; ++block) {
    int shape = drawn_shape(e, e.number[block]);
    const int turns = random_int(e, block, 3, ROTATIONS);
    for (int k = 0; k < turns; ++k) shape = turned(shape);
    set_shapes(e, block, shape);
  }
}

GZ void reset(Env e) {
  once(e, [=] {
    if (INSTANCES > 0) {
      const int given = given_instance(e, 0);
      for (int block = 0; block < BLOCKS; ++block) {
        e.number[block] = (u8)given_number(e, given, block);
        set_shapes(e, block, given_shape(e, given, block));
      }
    } else {
      draw_blocks(e);
    }
    for (int row = 0; row < ROWS; ++row) e.filled[row] = 0u;
    for (int cell = 0; cell < CELLS; ++cell) e.colour[cell] = 0;
    for (int block = 0; block < BLOCKS; ++block) e.placed[block] = false;
    for (int shape = 0; shape < SHAPES; ++shape) e.options[shape] = (i16)PLACES;
  });
}

// The filled cells of the square where a shape would go, a bit for each.
GZ int window_at(Env e, int top, int left) {
  u32 out = 0u;
  for (int row = 0; row < SIDE; ++row) out |= (e.filled[top + row] >> left & 7u) << SIDE * row;
  return (int)out;
}
GZ int window_at(Env e, int place) { return window_at(e, place / LEFTS, place % LEFTS); }

GZ void look(Env e) {
  lanes(e, PLACES / LEFTS, LEFTS,
        [=](int top, int left) { e.window[LEFTS * top + left] = (i16)window_at(e, top, left); });
}

GZ int choose(Env e, int, u32 bits) {
  int count = 0;
  for (int shape = 0; shape < SHAPES; ++shape) count += e.options[shape];
  int left = (int)mulhi(bits, (u32)count);
  for (int shape = 0; shape < SHAPES; ++shape) {
    const int here = e.options[shape], cells = e.shape[shape];
    for (int place = 0; left < here && place < PLACES; ++place) {
      left -= (int)((cells & window_at(e, place)) == 0);
      if (left < 0) return PLACES * shape + place;
    }
    left -= here;
  }
  return 0;
}

GZ float reward_of(int cells) {
  return Config::reward == REWARD_CELLS ? (float)cells / (float)CELLS : 1.f / (float)BLOCKS;
}

GZ void put(Env e, int block, int shape, int top, int left) {
  e.placed[block] = true;
  for (int row = 0; row < SIDE; ++row) {
    const int cells = shape >> SIDE * row & 7;
    e.filled[top + row] |= (u32)cells << left;
    for (int column = 0; column < SIDE; ++column)
      if (cells >> column & 1) e.colour[COLUMNS * (top + row) + left + column] = e.number[block];
  }
}

GZ void step(Env e) {
  once(e, [=] {
    const int action = number_of(e.action), block = action / (ROTATIONS * PLACES), place = action % PLACES;
    if (action < 0 || e.placed[block]) return;
    const int shape = e.shape[action / PLACES];
    if ((shape & window_at(e, place)) != 0) return;
    put(e, block, shape, place / LEFTS, place % LEFTS);
    e.reward = reward_of(popcount((u64)shape));
  });
  look(e);
  const int options = lane_sum(e, SHAPES, [=](int shape) {
    const i16 cells = e.shape[shape];
    i16 count = 0;
    for (int place = 0; place < PLACES; ++place) count = (i16)(count + (i16)((cells & e.window[place]) == 0));
    e.options[shape] = e.placed[shape / ROTATIONS] ? (i16)0 : count;
    return (int)e.options[shape];
  });
  once(e, [=] { e.terminated = e.t >= BLOCKS || (Config::end_when_stuck && options == 0); });
}

GZ void observe(Env e) {
  lanes(e, CELLS, [=](int cell) { e.observation[cell] = e.colour[cell]; });
  lanes_of_bits(
      e, BLOCKS, SIDE * SIDE, [=](int block) { return e.observation + CELLS + SIDE * SIDE * block; },
      [=](int block, int) { return (u64)e.shape(block, 0); }, [=](int block) { return (int)e.number[block]; });
  look(e);
  if (Config::action_form == ACTION_FORM_FLAT) {
    lanes(e, SHAPES, PLACES, [=](int shape, int place) {
      const bool fits = (e.shape[shape] & e.window[place]) == 0;
      e.action_mask[PLACES * shape + place] = (i8)(fits & !e.placed[shape / ROTATIONS]);
    });
  } else {
    once(e, [=] {
      allow_nothing(e);
      for (int shape = 0; shape < SHAPES; ++shape)
        for (int place = 0; e.options[shape] > 0 && place < PLACES; ++place)
          allow(e, PLACES * shape + place, (e.shape[shape] & e.window[place]) == 0);
    });
  }
}
