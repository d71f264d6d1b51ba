// Few different keys, where the test wants them: the engine's own function gives way to this one.
GZ u32 random_bits(Env e, int agent, int draw) {
  const u32 bits = random_bits(e.seed, e.episode, (u32)e.t, (u32)(agent + 1), (u32)draw);
  return e.cfg.kinds ? bits % (u32)max(e.cfg.kinds, 1) * 0x40000000u : bits;
}

GZ void clear(Env e) {
  lanes(e, e.cfg.cells, [=](int c) {
    e.add_int[c] = e.max_int[c] = e.any_int[c] = 0;
    e.add_word[c] = e.max_word[c] = e.any_word[c] = 0;
    e.add_long[c] = e.max_long[c] = e.any_long[c] = 0;
    e.min_int[c] = INT_LIMIT;
    e.min_word[c] = 0xffffffffu;
    e.min_long[c] = ~0ull;
  });
  once(e, [=] { e.came = 0; });
}

GZ void reset(Env e) {
  clear(e);
  lanes(e, AGENTS, [=](int a) { e.turn_of[a] = 0; });
}

GZ void take_turn(Env e, int a) {
  e.turn_of[a] = e.came;
  e.came += 1;
}

GZ void step(Env e) {
  clear(e);
  lanes(e, AGENTS, [=](int a) {
    e.cell_of[a] = e.action[a];
    e.vote_of[a] = (int)random_bits(e, a, 0);
  });
  lanes(e, AGENTS, [=](int a) { e.turn_of[a] = -1; });
  if constexpr (Config::every == 1)
    in_random_order(e, AGENTS, 2, [=](int a) { take_turn(e, a); });
  else
    in_random_order(e, AGENTS, 2, [=](int a) { return a % e.cfg.every == e.cfg.every - 1; }, [=](int a) { take_turn(e, a); });
  lanes(e, AGENTS, [=](int a) { scatter_add(e.add_int[e.cell_of[a]], e.vote_of[a]); });  // as a compiler likes it
  lanes(e, AGENTS, [=](int a) {
    const int c = e.action[a];
    const u32 word = (u32)e.vote_of[a];
    const u64 wide = (u64)word << 32 | (u32)a;
    scatter_add(e.add_word[c], word);
    scatter_add(e.add_long[c], wide);
    scatter_min(e.min_int[c], (int)word);
    scatter_min(e.min_word[c], word);
    scatter_min(e.min_long[c], wide);
    scatter_max(e.max_int[c], (int)word);
    scatter_max(e.max_word[c], word);
    scatter_max(e.max_long[c], wide);
    scatter_or(e.any_int[c], 1 << a % 31);
    scatter_or(e.any_word[c], 1u << a % 32);
    scatter_or(e.any_long[c], 1ull << a % 64);
  });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) { e.observation[a][0] = 0.f; });
}
