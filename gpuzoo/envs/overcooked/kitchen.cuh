// What the kitchens share: a cell is row * COLS + column, and `places` tells what is in it and its number of that kind.

enum Way { NORTH, SOUTH, EAST, WEST };

GZ int ahead(int cell, int way) { return cell + COLS * ((way == SOUTH) - (way == NORTH)) + (way == EAST) - (way == WEST); }
GZ int terrain(Env e, int cell) { return e.places[cell] & 7; }
GZ int index(Env e, int cell) { return e.places[cell] >> 3; }
