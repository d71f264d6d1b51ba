enum Way { UP, RIGHT, DOWN, LEFT, WAYS };

// The cell beside a cell, or -1 beyond the edge.
GZ int neighbour(int cell, int way, int rows, int columns) {
  const int row = cell / columns + (int)(way == DOWN) - (int)(way == UP);
  const int column = cell % columns + (int)(way == RIGHT) - (int)(way == LEFT);
  return row < 0 || row >= rows || column < 0 || column >= columns ? -1 : row * columns + column;
}
