constexpr int LENGTH = Config::chain_length, DISTRACTORS = Config::n_distractor;

GZ void reset(Env e) {
  once(e, [=] {
    const u32 bits = random_bits(e, 0);
    e.need_umbrella = bits & 1;
    e.has_umbrella = bits >> 1 & 1;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    const bool last = e.t >= LENGTH;
    e.has_umbrella = e.t == 1 ? (u8)e.action : e.has_umbrella;
    const int wrong = last ? e.has_umbrella ^ e.need_umbrella : (int)(random_bits(e, 0) & 1u);
    e.reward = (float)(1 - 2 * wrong);
    e.terminated = last;
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    e.observation[0] = e.need_umbrella;
    e.observation[1] = e.has_umbrella;
    e.observation[2] = (float)(LENGTH - e.t) / (float)LENGTH;
    for (int first = 0; first < DISTRACTORS; first += 32) {
      const u32 bits = random_bits(e, 1 + first / 32);
      for (int k = 0; k < min(32, DISTRACTORS - first); ++k) e.observation[3 + first + k] = bits >> k & 1;
    }
  });
}
