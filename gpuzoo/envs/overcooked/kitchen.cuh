// What the kitchens share: a cell is row * COLS + column, and `places` tells what is in it and its number of that kind.

enum Way { NORTH, SOUTH, EAST, WEST };

GZ int ahead(int cell, int way) { return cell + COLS * ((way == SOUTH) - (way == NORTH)) + (way == EAST) - (way == WEST); }
GZ int terrain(Env e, int cell) { return e.places[cell] & 7; }
GZ int index(Env e, int cell) { return e.places[cell] >> 3; }

// A player lays down what it holds, or takes what lies there.
GZ void use_counter(Env e, int a, int k) {
  const int held = e.held[a], lies = e.counter[k];
  if ((held == 0) == (lies == 0)) return;
  e.counter[k] = held;
  e.held[a] = lies;
}
