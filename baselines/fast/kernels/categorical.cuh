// Actions with several components, each drawn from the softmax of its logits over its legal choices, by inversion: the
// last choice whose predecessors weigh no more than a uniform part of the whole. Generated above: PARTS, WIDTH (logits
// of one component), MASK_SIZE (0 without masks), choices(part).

namespace gz {

// Whether the numbers of WIDE rows are kept, beside each other for vector instructions, or computed in each pass.
constexpr bool HELD = WIDE > 1 && WIDTH <= 512;

using Lanes = float[WIDE];

struct Part {
  int number, choices, mask_offset;
};

GZ float logit(const Sampling &a, i64 row, const Part &part, int c) {
  return a.input[(row * PARTS + part.number) * WIDTH + c];
}
GZ bool legal(const Sampling &a, i64 row, const Part &part, int c) {
  return MASK_SIZE == 0 || ((const i8 *)a.more)[row * MASK_SIZE + part.mask_offset + c] != 0;
}

GZ void sample_part(const Sampling &a, Rows &v, const Part &part, const u32 (&bits)[WIDE]) {
  Lanes held[HELD ? WIDTH : 1], x, top, whole, sum;
  int first[WIDE], best[WIDE], chosen[WIDE];
  const auto column = [&](int c) -> Lanes & { return HELD ? held[HELD ? c : 0] : x; };
  const auto read = [&](int c, int l) {
    column(c)[l] = legal(a, v.index[l], part, c) ? logit(a, v.index[l], part, c) : -infinity();
  };
  const auto read_anew = [&](int c) {
    for (int l = 0; l < WIDE && !HELD; ++l) read(c, l);
  };
  for (int l = 0; l < WIDE; ++l) {
    first[l] = best[l] = -1;
    top[l] = -infinity();
    whole[l] = sum[l] = 0.f;
    for (int c = part.choices - 1; c >= 0; --c) {
      first[l] = legal(a, v.index[l], part, c) ? c : first[l];
      if (HELD) read(c, l);
    }
  }
  for (int c = 0; c < part.choices; ++c) {
    read_anew(c);
    const Lanes &y = column(c);
    GZ_INDEPENDENT
    for (int l = 0; l < WIDE; ++l) {
      const float highest = top[l];
      const int earlier = best[l];
      const bool better = (y[l] != -infinity()) & !(y[l] <= highest);
      best[l] = better ? c : earlier;
      top[l] = better ? y[l] : highest;
    }
  }
  for (int c = 0; c < part.choices; ++c) {
    read_anew(c);
    Lanes &y = column(c);
    GZ_INDEPENDENT
    for (int l = 0; l < WIDE; ++l) {
      y[l] = exp(y[l] - top[l]);
      whole[l] += y[l];
    }
  }
  for (int l = 0; l < WIDE; ++l) chosen[l] = max(best[l], max(first[l], 0));
  for (int c = 0; c < part.choices && !a.greedy; ++c) {
    read_anew(c);
    const Lanes &y = column(c);
    GZ_INDEPENDENT
    for (int l = 0; l < WIDE; ++l) {
      const float w = HELD ? y[l] : exp(y[l] - top[l]);
      const int earlier = chosen[l];
      const bool reached = (w > 0.f) & (sum[l] <= unit_interval(bits[l]) * whole[l]);
      chosen[l] = reached ? c : earlier;
      sum[l] += w;
    }
  }
  for (int l = 0; l < WIDE; ++l) {
    x[l] = logit(a, v.index[l], part, chosen[l]);
    ((i32 *)a.action)[v.action[l] + part.number] = chosen[l];
  }
  GZ_INDEPENDENT
  for (int l = 0; l < WIDE; ++l) {
    const float y = x[l] - top[l] - log(whole[l]);
    v.sum[l] += first[l] < 0 ? 0.f : y;
  }
}

GZ void categorical(const Sampling &a, i64 offset, i64 begin, i64 end) {
  for (i64 i = begin; i < end; i += WIDE) {
    Rows v;
    u32 words[4][WIDE];
    locate(a, i, end, v);
    int mask_offset = 0;
    for (int p = 0; p < PARTS; ++p) {
      if (p % 4 == 0) draw(a, offset, v, p / 4, words);
      const int n = choices(p);
      sample_part(a, v, {p, n, mask_offset}, words[0]);
      mask_offset += n;
      next_word(words);
    }
    save_log_prob(a, v);
  }
}

GZ_KERNEL(categorical, Sampling, (16384 / (PARTS * WIDTH) + WIDE) / WIDE * WIDE)

}  // namespace gz
