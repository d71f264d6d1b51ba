// Actions with SIZE independent normal components (Box & Muller, "A note on the generation of random normal deviates",
// 1958): a pair of uniform numbers gives a pair of normal ones.

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

GZ void normal_component(const Sampling &a, Rows &v, int k, const float (&z)[WIDE]) {
  float action[WIDE];
  GZ_INDEPENDENT
  for (int l = 0; l < WIDE; ++l) {
    const float mean = a.input[v.index[l] * SIZE + k];
    const float log_std = ((const float *)a.more)[v.more[l] + k];
    const float std = exp(log_std);
    action[l] = a.greedy ? mean : mean + std * z[l];
    const float distance = (action[l] - mean) / std;
    v.sum[l] -= 0.5f * distance * distance + log_std + HALF_LOG_TWO_PI;
  }
  for (int l = 0; l < WIDE; ++l) ((float *)a.action)[v.action[l] + k] = action[l];
}

GZ void normal(const Sampling &a, i64 offset, i64 begin, i64 end) {
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
