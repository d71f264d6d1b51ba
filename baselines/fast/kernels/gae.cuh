// Generalised advantage estimates (Schulman et al., "High-dimensional continuous control using generalized advantage
// estimation", 2016) over every agent's own decisions, see `advantages` in baselines/train/advantages.py. Columns are agents.

namespace gz {

struct Gae {
  i64 items, threads, steps, waits;
  const float *reward, *value;  // value: of steps + 1 rows, as `acting`
  const u8 *acting, *terminated, *truncated;
  const float *final_value;  // or null: not known
  const float *gamma, *decay;  // of each column; decay: gamma * lambda
  float *advantage;
  u8 *valid;
};

// A GPU's thread has one column. It reads some rows ahead, to wait for memory once and not for each row.
constexpr int GAE_COLUMNS = WIDE == 1 ? 1 : 256, GAE_AHEAD = WIDE == 1 ? 4 : 1;

struct Moment {
  float reward, value, next_value, final_value;
  bool acts, acts_next, terminated, truncated;
};

// What is known of the step behind: the transition that goes on there, and its advantage.
struct Behind {
  float target, advantage;
  bool known;
};

GZ Moment moment(const Gae &a, i64 t, i64 column) {
  const i64 now = t * a.items + column, next = now + a.items;
  return {a.reward[now], a.value[now], a.value[next], a.final_value ? a.final_value[now] : 0.f, a.acting[now] != 0,
          a.acting[next] != 0, a.terminated[now] != 0, a.truncated[now] != 0};
}

GZ bool estimate(const Gae &a, i64 column, bool last, const Moment &m, Behind &b) {
  const bool cut = m.terminated || m.truncated, goes_on = m.acts_next && !cut;
  const float gamma = a.gamma[column];
  float target = m.reward;
  if (goes_on) target += gamma * m.next_value;
  if (m.truncated && !m.terminated) target += gamma * m.final_value;
  bool known = goes_on || m.terminated || (m.truncated && a.final_value);
  if (a.waits && !last && !m.acts_next && !cut) {
    target += b.target;
    known |= b.known;
  }
  const bool valid = m.acts && (known || !a.waits);
  const float delta = valid ? target - m.value : 0.f;
  b.advantage = last || cut ? delta : delta + (m.acts ? a.decay[column] : 1.f) * b.advantage;
  b.target = target;
  b.known = known;
  return valid;
}

GZ void gae_columns(const Gae &a, i64 first, i64 columns) {
  Behind behind[GAE_COLUMNS];
  Moment seen[GAE_AHEAD][GAE_COLUMNS];
  for (i64 end = a.steps; end > 0; end -= GAE_AHEAD) {
    GZ_UNROLL
    for (int k = 0; k < GAE_AHEAD; ++k)
      for (i64 l = 0; l < columns && k < end; ++l) seen[k][l] = moment(a, end - 1 - k, first + l);
    GZ_UNROLL
    for (int k = 0; k < GAE_AHEAD; ++k)
      for (i64 l = 0; l < columns && k < end; ++l) {
        const i64 t = end - 1 - k, at = t * a.items + first + l;
        a.valid[at] = estimate(a, first + l, t == a.steps - 1, seen[k][l], behind[l]);
        a.advantage[at] = behind[l].advantage;
      }
  }
}

GZ void gae(const Gae &a, i64, i64 begin, i64 end) {
  for (i64 i = begin; i < end; i += GAE_COLUMNS)
    gae_columns(a, i, end - i < GAE_COLUMNS ? end - i : GAE_COLUMNS);
}

GZ_KERNEL(gae, Gae, GAE_COLUMNS)

}  // namespace gz
