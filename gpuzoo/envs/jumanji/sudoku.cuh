#include "factored.cuh"
#include "instances.cuh"

constexpr int SIDE = 9, CELLS = 81;
constexpr u32 ALL = (1u << SIDE) - 1u;

GZ int row_of(int cell) { return cell / SIDE; }
GZ int column_of(int cell) { return SIDE + cell % SIDE; }
GZ int box_of(int cell) { return 2 * SIDE + cell / SIDE / 3 * 3 + cell % SIDE / 3; }

// The digits that a cell may get, a bit for each; none if it has one.
GZ u32 digits_for(Env e, int cell) {
  const u32 used = e.used[row_of(cell)] | e.used[column_of(cell)] | e.used[box_of(cell)];
  return e.board[cell] < 0 ? ALL & ~used : 0u;
}

GZ void write(Env e, int cell, int digit) {
  e.board[cell] = (i8)digit;
  if (digit < 0) return;
  e.used[row_of(cell)] |= 1u << digit;
  e.used[column_of(cell)] |= 1u << digit;
  e.used[box_of(cell)] |= 1u << digit;
}

GZ bool is_solved(Env e) {
  u32 common = ALL;
  for (int k = 0; k < 3 * SIDE; ++k) common &= e.used[k];
  return common == ALL;
}

GZ bool can_go_on(Env e) {
  for (int cell = 0; cell < CELLS; ++cell)
    if (digits_for(e, cell) != 0u) return true;
  return false;
}

GZ void reset(Env e) {
  once(e, [=] {
    const int given = given_instance(e, 0);
    for (int k = 0; k < 3 * SIDE; ++k) e.used[k] = 0u;
    for (int cell = 0; cell < CELLS; ++cell) write(e, cell, (int)e.given_board[CELLS * given + cell] - 1);
  });
}

struct Digits {
  Env e;
  GZ_MEMBER u32 operator[](int cell) const { return digits_for(e, cell); }
};

GZ int choose(Env e, int, u32 bits) {
  const SetBit move = chosen_bit_of<CELLS>(Digits{e}, bits);
  return move.word < 0 ? 0 : SIDE * move.word + move.place;
}

GZ void step(Env e) {
  once(e, [=] {
    const int action = number_of(e.action), cell = action / SIDE, digit = action % SIDE;
    if (action < 0 || !(digits_for(e, cell) >> digit & 1u)) {
      e.terminated = true;
      return;
    }
    write(e, cell, digit);
    e.terminated = !can_go_on(e);
    e.reward = e.terminated && is_solved(e) ? 1.f : 0.f;
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    allow_nothing(e);
    for (int cell = 0; cell < CELLS; ++cell) {
      e.observation[cell] = e.board[cell];
      const u32 digits = digits_for(e, cell);
      for (int digit = 0; digit < SIDE; ++digit) allow(e, SIDE * cell + digit, (digits >> digit & 1u) != 0u);
    }
  });
}
