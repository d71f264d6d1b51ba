// Actions with SIZE independent normal components (Box & Muller, "A note on the generation of random normal deviates",
// 1958): a pair of uniform numbers gives a pair of normal ones. Where there is one component, rows 2k and 2k + 1 of a
// member share a pair; so a row's number still depends on nothing but seed, counter and row.

namespace gz {

constexpr float HALF_LOG_TWO_PI = 0.918938533f;

GZ void normal_pair(u32 radius_bits, u32 angle_bits, float &x, float &y) {
  const float u = (float)(i32)(radius_bits >> 1 | 1u) * 4.656612873077393e-10f;
  const float radius = sqrt(-2.f * log(u));
  float sine, cosine;
  sincos(TWO_PI * unit_float(angle_bits), sine, cosine);
  x = radius * cosine;
  y = radius * sine;
}

// An action, and its part of the logarithm of the density.
GZ float normal_action(float mean, float std, float z, bool greedy) { return greedy ? mean : mean + std * z; }
GZ float normal_density(float action, float mean, float std, float log_std) {
  const float distance = (action - mean) / std;
  return 0.5f * distance * distance + log_std + HALF_LOG_TWO_PI;
}

GZ void normal_component(const Sampling &a, Rows &v, int k, const float (&z)[WIDE]) {
  float action[WIDE];
  GZ_INDEPENDENT
  for (int l = 0; l < WIDE; ++l) {
    const float mean = a.input[v.index[l] * SIZE + k];
    const float log_std = ((const float *)a.more)[v.more[l] + k];
    const float std = exp(log_std);
    action[l] = normal_action(mean, std, z[l], a.greedy);
    v.sum[l] -= normal_density(action[l], mean, std, log_std);
  }
  for (int l = 0; l < WIDE; ++l) ((float *)a.action)[v.action[l] + k] = action[l];
}

// The pair that a row shares with its neighbour.
GZ void shared_pair(u64 seed, i64 counter, u32 number, float &x, float &y) {
  const u32x4 r = trainer_bits(seed, SAMPLER, counter, number / 2, 0u);
  normal_pair(r.x, r.y, x, y);
}

// WIDE rows of one member whose single components lie side by side, the first of them with an even number.
GZ void normal_neighbours(const Sampling &a, i64 counter, i64 member, i64 row) {
  const float *mean = a.input + member * a.rows + row;
  const float log_std = ((const float *)a.more)[member * a.more_member], std = exp(log_std);
  const u64 seed = a.seeds[member];
  const u32 first = (u32)(a.first_row + row);
  float x[WIDE / 2 + 1], y[WIDE / 2 + 1], z[WIDE];
  GZ_INDEPENDENT
  for (int l = 0; l < WIDE / 2; ++l) shared_pair(seed, counter, first + 2 * l, x[l], y[l]);
  for (int l = 0; l < WIDE; ++l) z[l] = l % 2 ? y[l / 2] : x[l / 2];
  float *action = (float *)a.action + member * a.action_member + row;
  float *log_prob = a.log_prob + member * a.log_prob_member + row;
  GZ_INDEPENDENT
  for (int l = 0; l < WIDE; ++l) {
    action[l] = normal_action(mean[l], std, z[l], a.greedy);
    log_prob[l] = 0.f - normal_density(action[l], mean[l], std, log_std);
  }
}

// One component: rows 2k and 2k + 1 share a pair.
GZ void normal_single(const Sampling &a, i64 offset, i64 begin, i64 end) {
  const i64 counter = *a.counter + offset;
  for (i64 i = begin; i < end; i += WIDE) {
    const i64 member = i / a.rows, row = i % a.rows;
    const bool inside = i + WIDE <= end && row + WIDE <= a.rows && (a.first_row + row) % 2 == 0;
    if (WIDE > 1 && inside && a.action_row == 1 && a.log_prob_row == 1) {
      normal_neighbours(a, counter, member, row);
      continue;
    }
    Rows v;
    float z[WIDE];
    locate(a, i, end, v);
    GZ_INDEPENDENT
    for (int l = 0; l < WIDE; ++l) {
      float x, y;
      shared_pair((u64)v.seed_high[l] << 32 | v.seed_low[l], counter, v.number[l], x, y);
      z[l] = v.number[l] % 2 ? y : x;
    }
    normal_component(a, v, 0, z);
    save_log_prob(a, v);
  }
}

GZ void normal(const Sampling &a, i64 offset, i64 begin, i64 end) {
  if (SIZE == 1) return normal_single(a, offset, begin, end);
  for (i64 i = begin; i < end; i += WIDE) {
    Rows v;
    u32 words[4][WIDE];
    locate(a, i, end, v);
    for (int k = 0; k < SIZE; k += 2) {
      if (k % 4 == 0) draw(a, offset, v, k / 4, words);
      float x[WIDE], y[WIDE];
      GZ_INDEPENDENT
      for (int l = 0; l < WIDE; ++l) normal_pair(words[0][l], words[1][l], x[l], y[l]);
      normal_component(a, v, k, x);
      if (k + 1 < SIZE) normal_component(a, v, k + 1, y);
      next_word(words);
      next_word(words);
    }
    save_log_prob(a, v);
  }
}

GZ_KERNEL(normal, Sampling, (16384 / SIZE + WIDE) / WIDE * WIDE)

}  // namespace gz
