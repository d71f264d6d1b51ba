GZ void draw(Env e) {
  lanes(e, ROWS, WORDS, [=](int row, int w) {
    const u64 high = random_bits(e, row, 2 * w), low = random_bits(e, row, 2 * w + 1);
    e.word(row, w) = high << 32 | low;
  });
  lanes(e, ROWS, [=](int row) {
    e.again[row] = bits_where<COUNTED>([=](int k) { return (e.word(row, 0) >> k & 1ull) != 0ull; });
  });
}

GZ void reset(Env e) { draw(e); }

GZ void step(Env e) { draw(e); }

GZ int begin(int row) { return BITS * row + row / TOGETHER * GAP; }

GZ void observe(Env e) {
  lanes(e, ROWS / TOGETHER, GAP, [=](int k, int b) { e.observation[begin((k + 1) * TOGETHER) - GAP + b] = 0; });
  if constexpr (ROWS == 3)
    lanes_of_bits(
        e, ROWS, BITS, [=](int row) { return e.observation + begin(row); },
        [=](int row, int w) { return e.word(row, w); }, [=](int row) { return row + 2; });
  else if constexpr (Config::at_once)
    rows_of_bits(
        e, Const<ROWS>(), Const<BITS>(), [=](int row) { return e.observation + begin(row); },
        [=](int row) {
          Words<BITS> words;
          for (int w = 0; w < WORDS; ++w) words.at[w] = e.word(row, w);
          return words;
        });
  else
    lanes_of_bits(
        e, Const<ROWS>(), Const<BITS>(), [=](int row) { return e.observation + begin(row); },
        [=](int row, int w) { return e.word(row, w); });
  lanes_of_bits(
      e, ROWS, BITS, [=](int row) { return e.action_mask + BITS * row; },
      [=](int row, int w) { return ~e.word(row, w); });
}
