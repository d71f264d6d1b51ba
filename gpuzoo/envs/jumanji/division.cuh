// Mazes by recursive division, in `walls`; `chamber` is a stack.

GZ int push(Env e, int chambers, int left, int top, int width, int height) {
  if (width < 2 || height < 2) return chambers;
  e.chamber(chambers, 0) = left;
  e.chamber(chambers, 1) = top;
  e.chamber(chambers, 2) = width;
  e.chamber(chambers, 3) = height;
  return chambers + 1;
}

// Recursive division. Each chamber takes two draws, the first one `draw`.
GZ void draw_walls(Env e, int draw) {
  for (int cell = 0; cell < CELLS; ++cell) e.walls[cell] = false;
  for (int chambers = push(e, 0, 0, 0, COLUMNS, ROWS); chambers > 0; draw += 2) {
    --chambers;
    const int left = e.chamber(chambers, 0), top = e.chamber(chambers, 1);
    const int width = e.chamber(chambers, 2), height = e.chamber(chambers, 3);
    const bool upright = width >= height;
    const int across = upright ? width : height, along = upright ? height : width;
    const int wall = 2 * random_int(e, draw, across / 2) + 1;
    const int gap = 2 * random_int(e, draw + 1, (along + 1) / 2);
    for (int k = 0; k < along; ++k) {
      const int row = upright ? top + k : top + wall, column = upright ? left + wall : left + k;
      e.walls[COLUMNS * row + column] = k != gap;
    }
    const int rest = across - wall - 1;
    chambers = push(e, chambers, left, top, upright ? wall : width, upright ? height : wall);
    chambers = push(e, chambers, upright ? left + wall + 1 : left, upright ? top : top + wall + 1,
                    upright ? rest : width, upright ? height : rest);
  }
}
