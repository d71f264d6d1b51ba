constexpr int LENGTH = Config::memory_length, BITS = Config::num_bits;
constexpr u64 ALL = ~0ull >> (64 - BITS);

GZ void reset(Env e) {
  once(e, [=] {
    e.context = ((u64)random_bits(e, 1) << 32 | random_bits(e, 0)) & ALL;
    e.query = random_int(e, 2, BITS);
  });
}

GZ void step(Env e) {
  once(e, [=] {
    const bool wanted = e.context >> clamp(e.query, 0, BITS - 1) & 1;
    const bool last = e.t > LENGTH;
    e.reward = last ? (e.action == wanted ? 1.f : -1.f) : 0.f;
    e.terminated = last;
  });
}

GZ void observe(Env e) {
  const int now = max(e.t - 1, 0);
  once(e, [=] {
    e.observation[0] = (float)(LENGTH - now) / (float)LENGTH;
    e.observation[1] = now == LENGTH - 1 ? (float)e.query : 0.f;
    for (int k = 0; k < BITS; ++k)
      e.observation[2 + k] = now == 0 ? (float)(2 * (int)(e.context >> k & 1) - 1) : 0.f;
  });
}
