// The rows of a sampler: what a tile of them reads and where it writes.

namespace gz {

struct Sampling {
  i64 items, threads, rows, first_row, greedy;  // rows: of one member; items: of all
  const u64 *seeds;
  const i64 *counter;
  const float *input;
  const void *more;  // the mask, or the logarithms of the deviations
  i64 more_member;
  void *action;
  i64 action_member, action_row;
  float *log_prob;
  i64 log_prob_member, log_prob_row;
};

struct Rows {
  u32 seed_low[WIDE], seed_high[WIDE], number[WIDE];
  i64 index[WIDE], more[WIDE], action[WIDE], log_prob[WIDE];
  float sum[WIDE];
};

GZ void locate(const Sampling &a, i64 member, i64 row, int l, Rows &v) {
  const u64 seed = a.seeds[member];
  v.seed_low[l] = (u32)seed;
  v.seed_high[l] = (u32)(seed >> 32);
  v.number[l] = (u32)(a.first_row + row);
  v.index[l] = member * a.rows + row;
  v.more[l] = member * a.more_member;
  v.action[l] = member * a.action_member + row * a.action_row;
  v.log_prob[l] = member * a.log_prob_member + row * a.log_prob_row;
  v.sum[l] = 0.f;
}

// Lanes beyond the last row repeat it.
GZ void locate(const Sampling &a, i64 begin, i64 end, Rows &v) {
  i64 member = begin / a.rows, row = begin % a.rows;
  if (begin + WIDE <= end && row + WIDE <= a.rows) {
    GZ_INDEPENDENT
    for (int l = 0; l < WIDE; ++l) locate(a, member, row + l, l, v);
    return;
  }
  for (int l = 0; l < WIDE; ++l) {
    locate(a, member, row, l, v);
    if (begin + l + 1 < end && ++row == a.rows) {
      row = 0;
      ++member;
    }
  }
}

GZ void draw(const Sampling &a, i64 offset, const Rows &v, int block, u32 (&words)[4][WIDE]) {
  const i64 counter = *a.counter + offset;
  GZ_INDEPENDENT
  for (int l = 0; l < WIDE; ++l) {
    const u64 seed = (u64)v.seed_high[l] << 32 | v.seed_low[l];
    const u32x4 r = trainer_bits(seed, SAMPLER, counter, v.number[l], (u32)block);
    words[0][l] = r.x;
    words[1][l] = r.y;
    words[2][l] = r.z;
    words[3][l] = r.w;
  }
}

GZ void next_word(u32 (&words)[4][WIDE]) {
  for (int l = 0; l < WIDE; ++l) {
    words[0][l] = words[1][l];
    words[1][l] = words[2][l];
    words[2][l] = words[3][l];
  }
}

GZ void save_log_prob(const Sampling &a, const Rows &v) {
  for (int l = 0; l < WIDE; ++l) a.log_prob[v.log_prob[l]] = v.sum[l];
}

// 31 bits, so that small numbers are fine-grained; 1 is possible, by rounding.
GZ float unit_interval(u32 bits) { return (float)(i32)(bits >> 1) * 4.656612873077393e-10f; }

}  // namespace gz
