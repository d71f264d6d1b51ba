// What becomes of a minibatch beside the networks and the loss: rows are taken from a rollout, a column is standardised,
// and gradients are shortened. For a CPU only.

namespace gz {

// ---- taking rows ----

struct Part {
  const char *from;
  char *to;
  i64 bytes;
};

// Rows of tensors (steps, members, rows, ...) into (members, items / members, ...), by their numbers step * rows + row.
struct Gather {
  i64 items, threads, members, rows;
  const i64 *index;
  const u8 *filled;  // or null: all are
  i64 index_member, index_row;
  float *weight;
  Part parts[4];
};

constexpr int GATHERED = 256;  // rows whose places are found before any of them is taken

template <int BYTES> GZ void take_rows(const Part &part, const i64 *places, i64 begin, i64 count) {
  const i64 bytes = BYTES ? BYTES : part.bytes;
  for (i64 k = 0; k < count; ++k) __builtin_memcpy(part.to + (begin + k) * bytes, part.from + places[k] * bytes, bytes);
}

GZ void take(const Part &part, const i64 *places, i64 begin, i64 count) {
  if (part.bytes == 4) return take_rows<4>(part, places, begin, count);
  if (part.bytes == 16) return take_rows<16>(part, places, begin, count);
  take_rows<0>(part, places, begin, count);
}

GZ void gather(const Gather &a, i64, i64 begin, i64 end) {
  if (begin == end) return;
  const i64 chosen = a.items / a.members;
  i64 member = begin / chosen, k = begin % chosen, places[GATHERED];
  for (i64 first = begin; first < end; first += GATHERED) {
    const i64 count = end - first < GATHERED ? end - first : GATHERED;
    for (i64 r = 0; r < count; ++r) {
      const i64 at = member * a.index_member + k * a.index_row;
      const u32 number = (u32)a.index[at], rows = (u32)a.rows, step = number / rows;
      places[r] = (step * a.members + member) * rows + (number - step * rows);
      a.weight[first + r] = !a.filled || a.filled[at] ? 1.f : 0.f;
      if (++k == chosen) {
        k = 0;
        ++member;
      }
    }
    for (const Part &part : a.parts)
      if (part.bytes) take(part, places, first, count);
  }
}

GZ_KERNEL(gather, Gather, 512)

// ---- standardising ----

// Numbers that lie `stride` apart, `rows` of each member, weighted by shares that sum up to 1.
struct Standardize {
  i64 items, threads, rows, stride;
  float *x;
  const float *share;
};

constexpr int SUMS = 8;

template <class F> GZ float sum_of(i64 n, F f) {
  float sums[SUMS] = {}, all = 0.f;
  i64 k = 0;
  for (; k + SUMS <= n; k += SUMS)
    for (int l = 0; l < SUMS; ++l) sums[l] += f(k + l);
  for (; k < n; ++k) sums[0] += f(k);
  for (const float x : sums) all += x;
  return all;
}

GZ void standardize(const Standardize &a, i64, i64 begin, i64 end) {
  for (i64 member = begin; member < end; ++member) {
    float *x = a.x + member * a.rows * a.stride;
    const float *share = a.share + member * a.rows;
    const i64 stride = a.stride;
    const float mean = sum_of(a.rows, [=](i64 k) { return x[k * stride] * share[k]; });
    for (i64 k = 0; k < a.rows; ++k) x[k * stride] -= mean;
    const float variance = sum_of(a.rows, [=](i64 k) { return x[k * stride] * x[k * stride] * share[k]; });
    const float deviation = sqrt(variance) + 1e-8f;
    for (i64 k = 0; k < a.rows; ++k) x[k * stride] /= deviation;
  }
}

GZ_KERNEL(standardize, Standardize, 1)

// ---- clipping ----

// Factors that shorten the members' gradients to their limits, before steps that are counted here.
struct Clip {
  i64 items, threads, size;
  const float *gradient, *limit;
  float *factor, *count;
};

GZ void clip(const Clip &a, i64, i64 begin, i64 end) {
  for (i64 member = begin; member < end; ++member) {
    a.count[member] += 1.f;
    const float *g = a.gradient + member * a.size;
    const float factor = a.limit[member] / (sqrt(sum_of(a.size, [=](i64 k) { return g[k] * g[k]; })) + 1e-6f);
    a.factor[member] = factor >= 1.f ? 1.f : factor;  // NaN stays
  }
}

GZ_KERNEL(clip, Clip, 1)

}  // namespace gz
