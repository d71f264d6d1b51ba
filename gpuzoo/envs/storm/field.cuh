// What the STORM games share: a field of SIDE x SIDE cells, players with a direction, beams, views of VIEW x VIEW cells
// and the payoff of a meeting. A cell is SIDE * x + y.

constexpr int OUTSIDE = -1;

GZ int step_x(int direction) { return (direction == 1) - (direction == 3); }

GZ int step_y(int direction) { return (direction == 0) - (direction == 2); }

// The cell so far ahead, or the last one before the wall.
GZ int ahead(int cell, int direction, int far) {
  const int x = clamp(cell / SIDE + far * step_x(direction), 0, SIDE - 1);
  const int y = clamp(cell % SIDE + far * step_y(direction), 0, SIDE - 1);
  return SIDE * x + y;
}

// The cell beside the one ahead, or the one ahead where there is none.
GZ int beside(int cell, int direction, int side) {
  const int x = cell / SIDE + step_x(direction) + step_x(side), y = cell % SIDE + step_y(direction) + step_y(side);
  return (x < 0) | (x >= SIDE) | (y < 0) | (y >= SIDE) ? ahead(cell, direction, 1) : SIDE * x + y;
}

// The k-th of the four cells that a beam lights up: one and two ahead, right and left of the first.
GZ int lit(int cell, int direction, int k) {
  return k < 2 ? ahead(cell, direction, k + 1) : beside(cell, direction, (direction + (k == 2 ? 1 : 3)) % 4);
}

// The cell at row i and column j of a player's view: it looks along its direction, and the view turns with it.
GZ int seen(int cell, int direction, int i, int j) {
  const int last = VIEW - 1, d = direction;
  const int u = d == 0 ? i : d == 1 ? j : d == 2 ? last - i : last - j;
  const int v = d == 0 ? j : d == 1 ? last - i : d == 2 ? last - j : i;
  const int x = cell / SIDE + u - (d == 1 ? 0 : d == 3 ? last : VIEW / 2);
  const int y = cell % SIDE + v - (d == 0 ? 0 : d == 2 ? last : VIEW / 2);
  return (x < 0) | (x >= SIDE) | (y < 0) | (y >= SIDE) ? OUTSIDE : SIDE * x + y;
}

GZ int coins(Env e, int a) { return e.inventory(a, 0) + e.inventory(a, 1); }

// What the mixed strategies of a and b pay, the shares of red and of blue coins in their inventories.
GZ float payoff(Env e, int a, int b, float rr, float rb, float br, float bb) {
  const float n = (float)max(coins(e, a), 1), m = (float)max(coins(e, b), 1);
  const float red = (float)e.inventory(a, 0) / n, blue = (float)e.inventory(a, 1) / n;
  const float other_red = (float)e.inventory(b, 0) / m, other_blue = (float)e.inventory(b, 1) / m;
  return (red * rr + blue * br) * other_red + (red * rb + blue * bb) * other_blue;
}
