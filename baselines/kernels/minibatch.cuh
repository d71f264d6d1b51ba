// How a minibatch's rows are taken from a rollout. For a CPU only.

namespace gz {

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

GZ void gather(const Gather &a, i64, i64 begin, i64 end) {
  const i64 chosen = a.items / a.members;
  for (i64 r = begin; r < end; ++r) {
    const i64 member = r / chosen, at = member * a.index_member + r % chosen * a.index_row, i = a.index[at];
    const i64 row = (i / a.rows * a.members + member) * a.rows + i % a.rows;
    a.weight[r] = !a.filled || a.filled[at] ? 1.f : 0.f;
    for (const Part &part : a.parts)
      if (part.bytes) __builtin_memcpy(part.to + r * part.bytes, part.from + row * part.bytes, part.bytes);
  }
}

GZ_KERNEL(gather, Gather, 16384)

}  // namespace gz
