// Pseudo-random permutations without sorting (Mitchell, Stokes, Frank & Holmes, "Bandwidth-optimal random shuffling for
// GPUs", 2022): a keyed bijection of a range that is hardly larger, applied again to what falls outside. It is the
// generalized Feistel network of Black & Rogaway, "Ciphers with arbitrary finite domains", 2002: the range is a nearly
// square table, in which each coordinate of a place in turn is rotated by a function of the other.

namespace gz {

struct Shuffling {
  i64 items, threads, width;
  const u64 *seeds;
  const i64 *counter, *counts;
  i64 *out;
  i64 out_member;
};

constexpr int ROUNDS = 12;
constexpr int SMALLEST = 4;  // rows, columns: in a smaller table not all orders are reached equally often

struct Place {
  u32 row, column;
};

struct Bijection {
  u32 rows, columns, keys[ROUNDS];

  // A table has less than 2^16 rows and columns, so 16 random bits rotate it. The factors are MurmurHash3's.
  GZ_MEMBER static u32 rotate(u32 x, u32 size, u32 bits) {
    bits *= 0x85ebca6bu;
    bits = (bits ^ (bits >> 15)) * 0xc2b2ae35u;
    const u32 y = x + ((bits >> 16) * size >> 16), wrapped = y - size;
    return y < wrapped ? y : wrapped;
  }
  GZ_MEMBER Place operator()(Place p) const {
    GZ_UNROLL
    for (int r = 0; r < ROUNDS; r += 2) {
      p.row = rotate(p.row, rows, p.column ^ keys[r]);
      p.column = rotate(p.column, columns, p.row ^ keys[r + 1]);
    }
    return p;
  }
  // The quotient from a rounded reciprocal is right or 1 too small, for x < 2^31.
  GZ_MEMBER Place place(u32 x) const {
    const u32 quotient = mulhi(x, 0xffffffffu / columns), rest = x - quotient * columns;
    return rest < columns ? Place{quotient, rest} : Place{quotient + 1, rest - columns};
  }
  GZ_MEMBER u32 number(Place p) const { return p.row * columns + p.column; }
};

GZ Bijection bijection(u64 seed, i64 counter, u32 count) {
  Bijection f;
  f.rows = (u32)max((int)sqrt((float)(i32)(count - 1)) + 1, SMALLEST);
  f.columns = (u32)max((int)((count - 1) / f.rows) + 1, SMALLEST);
  GZ_UNROLL
  for (int b = 0; b < ROUNDS / 4; ++b) {
    const u32x4 r = trainer_bits(seed, SHUFFLE, counter, 0u, (u32)b);
    f.keys[4 * b] = r.x;
    f.keys[4 * b + 1] = r.y;
    f.keys[4 * b + 2] = r.z;
    f.keys[4 * b + 3] = r.w;
  }
  return f;
}

// Elements [begin, end) of one member's row; lanes beyond the last one repeat it.
GZ void shuffle_row(const Shuffling &a, i64 counter, i64 member, i64 begin, i64 end) {
  const i64 wanted = a.counts[member], count = wanted < a.width ? wanted : a.width;
  i64 *out = a.out + member * a.out_member;
  for (i64 i = begin > count ? begin : count < 0 ? 0 : count; i < end; ++i) out[i] = -1;
  if (begin >= count) return;
  const u32 n = (u32)count, last = (u32)(end < count ? end : count) - 1u;
  const Bijection f = bijection(a.seeds[member], counter, n);
  for (u32 i = (u32)begin; i <= last; i += WIDE) {
    u32 row[WIDE], column[WIDE], outside = 0;
    for (int l = 0; l < WIDE; ++l) {
      const Place p = f(f.place(i + l < last ? i + l : last));
      row[l] = p.row;
      column[l] = p.column;
      outside |= (u32)(f.number(p) >= n);
    }
    while (outside) {
      outside = 0;
      for (int l = 0; l < WIDE; ++l) {
        const Place old = {row[l], column[l]}, next = f(old);
        const bool kept = f.number(old) < n;
        row[l] = kept ? old.row : next.row;
        column[l] = kept ? old.column : next.column;
        outside |= (u32)(f.number({row[l], column[l]}) >= n);
      }
    }
    for (int l = 0; l < WIDE; ++l) out[i + l < last ? i + l : last] = f.number({row[l], column[l]});
  }
}

GZ void shuffle(const Shuffling &a, i64 offset, i64 begin, i64 end) {
  const i64 counter = *a.counter + offset;
  for (i64 i = begin; i < end;) {
    const i64 member = i / a.width, first = member * a.width;
    const i64 stop = first + a.width < end ? first + a.width : end;
    shuffle_row(a, counter, member, i - first, stop - first);
    i = stop;
  }
}

GZ_KERNEL(shuffle, Shuffling, 1024)

}  // namespace gz
