#include "sets.cuh"
#include "sized.cuh"

GZ void join(Env e, int a, int b) {
  e.edges[WORDS * a + b / 64] |= bit(b);
  e.edges[WORDS * b + a / 64] |= bit(a);
}

GZ void find_legal(Env e) {
  for (int w = 0; w < WORDS; ++w) e.legal[w] = below(e.size, w);
  for (int w = 0; w < WORDS; ++w)
    for (u64 rest = e.edges[WORDS * e.current_node_index + w]; rest != 0ull; rest &= rest - 1ull) {
      const int colour = e.colors[64 * w + bit_at(rest, 0)];
      if (colour >= 0) e.legal[colour / 64] &= ~bit(colour);
    }
}

GZ void reset(Env e) {
  once(e, [=] {
    const int given = INSTANCES > 0 ? given_instance(e, 0) : 0;
    e.size = INSTANCES > 0 ? (int)e.given_size[given] : drawn_size(e);
    for (int k = 0; k < ROW_WORDS; ++k) e.edges[k] = 0ull;
    for (int a = 0; a < e.size; ++a)
      for (int b = 0; b < a; ++b) {
        const bool joined = INSTANCES > 0 ? e.given_adj_matrix[(LARGEST * given + a) * LARGEST + b] != 0
                                          : uniform(e, a, b, 0.f, 1.f) < e.cfg.edge_probability;
        if (joined) join(e, a, b);
      }
    for (int k = 0; k < LARGEST; ++k) e.colors[k] = -1;
    for (int w = 0; w < WORDS; ++w) {
      e.used[w] = 0ull;
      e.legal[w] = below(e.size, w);
    }
    e.current_node_index = 0;
  });
}

GZ int choose(Env e, int, u32 bits) { return chosen_member<WORDS>(e.legal, bits); }

GZ void step(Env e) {
  once(e, [=] {
    const int colour = e.action, node = e.current_node_index;
    if (colour < 0 || !has(e.legal, colour)) {
      e.reward = -(float)e.size;
      e.terminated = true;
      return;
    }
    e.colors[node] = (i16)colour;
    e.used[colour / 64] |= bit(colour);
    e.current_node_index = node + 1 < e.size ? node + 1 : 0;
    find_legal(e);
    if (node + 1 < e.size) return;
    int colours = 0;
    for (int w = 0; w < WORDS; ++w) colours += popcount(e.used[w]);
    e.reward = -(float)colours;
    e.terminated = true;
  });
}

GZ void observe(Env e) {
  lanes_of_bits(
      e, LARGEST, LARGEST, [=](int node) { return e.observation + LARGEST * node; },
      [=](int node, int word) { return e.edges[WORDS * node + word]; });
  lanes(e, LARGEST, [=](int k) { e.observation[LARGEST * LARGEST + k] = (float)e.colors[k]; });
  lanes_of_bits(e, 1, LARGEST, [=](int) { return e.action_mask + 0; }, [=](int, int word) { return e.legal[word]; });
  once(e, [=] { e.observation[LARGEST * (LARGEST + 1)] = (float)e.current_node_index; });
}
