// Osband et al., "Deep exploration via randomized value functions" (2019).

constexpr int N = Config::size;

GZ void reset(Env e) {
  once(e, [=] { e.row = e.column = 0; });
}

GZ void step(Env e) {
  once(e, [=] {
    const int row = clamp(e.row, 0, N - 1), column = clamp(e.column, 0, N - 1);
    const bool right = e.action == e.right[N * row + column];
    const bool blown_off = !e.cfg.deterministic && uniform(e, 0, 0.f, 1.f) <= 1.f / (float)N;
    float reward = right & (column == N - 1) ? 1.f : 0.f;
    if (!e.cfg.deterministic && row == N - 1 && (column == 0 || column == N - 1)) reward += normal(e, 2);
    e.reward = right ? reward - e.cfg.unscaled_move_cost / (float)N : reward;
    e.column = clamp(column + (right ? (int)!blown_off : -1), 0, N - 1);
    e.row = row + 1;
    e.terminated = row + 1 == N;
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    const int here = e.row < N ? N * e.row + e.column : -1;
    for (int k = 0; k < N * N; ++k) e.observation[k] = k == here;
  });
}
