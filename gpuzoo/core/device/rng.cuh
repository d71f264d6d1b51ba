// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// A number is a pure function of (env seed, episode, step, agent, draw): nothing to store, nothing to restore,
// and the same whatever the batch, the lane or the machine.

namespace gz {

struct u32x4 {
  u32 x, y, z, w;
};

GZ u32x4 philox(u32x4 c, u32 k0, u32 k1) {
  GZ_UNROLL
  for (int round = 0; round < 10; ++round) {
    u32 high0 = mulhi(0xD2511F53u, c.x), low0 = 0xD2511F53u * c.x;
    u32 high1 = mulhi(0xCD9E8D57u, c.z), low1 = 0xCD9E8D57u * c.z;
    c = {high1 ^ c.y ^ k0, low1, high0 ^ c.w ^ k1, low0};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// What a stream is drawn for. Agents are numbered from 0, so the high bits of the agent word are free.
enum Stream : u32 { GAME = 0u, PARAMETERS = 0x40000000u, POLICY = 0x80000000u };

GZ u32 random_bits(u64 seed, u32 episode, u32 step, u32 agent, u32 draw) {
  u32x4 r = philox({draw >> 2, agent, step, episode}, (u32)seed, (u32)(seed >> 32));
  u32 k = draw & 3u;
  return k == 0u ? r.x : k == 1u ? r.y : k == 2u ? r.z : r.w;
}

// 24 random bits as a float in [0, 1).
constexpr float UNIT = 5.9604644775390625e-8f;
GZ float unit_float(u32 bits) { return (float)(i32)(bits >> 8) * UNIT; }

// What an episode has of its parameter of this number, between two ends.
GZ float drawn(u64 seed, u32 episode, u32 number, bool of_logarithm, const float *ends) {
  const float low = ends[0], high = ends[1], u = unit_float(random_bits(seed, episode, 0u, PARAMETERS, number));
  return clamp(of_logarithm ? low * pow(high / low, u) : low + (high - low) * u, low, high);
}

// What a game calls. `draw` numbers the draws of one agent (or of the env, when no agent is given) within one step.
// An env's numbers are E::Number and E::Integer: float and int, or packs of them.
template <class E> GZ auto random_bits(const E &e, int agent, int draw) {
  return random_bits(e.seed, e.episode, e.t, GAME | (u32)(agent + 1), (u32)draw);
}
template <class E> GZ auto random_bits(const E &e, int draw) { return random_bits(e, -1, draw); }
template <class E>
GZ typename E::Number uniform(const E &e, int agent, int draw, typename E::Number low, typename E::Number high) {
  return low + (high - low) * unit_float(random_bits(e, agent, draw));
}
template <class E>
GZ typename E::Number uniform(const E &e, int draw, typename E::Number low, typename E::Number high) {
  return uniform(e, -1, draw, low, high);
}

// An integer in [0, n); the bias is below n / 2^32.
template <class E> GZ typename E::Integer random_int(const E &e, int agent, int draw, int n) {
  return typename E::Integer(mulhi(random_bits(e, agent, draw), (u32)n));
}
template <class E> GZ typename E::Integer random_int(const E &e, int draw, int n) { return random_int(e, -1, draw, n); }

// A number of the standard normal distribution (Box and Muller, 1958), from `draw` and `draw + 1`.
template <class E> GZ typename E::Number normal(const E &e, int agent, int draw) {
  const auto radius = sqrt(-2.f * log(1.f - unit_float(random_bits(e, agent, draw))));
  return radius * cos(TWO_PI * unit_float(random_bits(e, agent, draw + 1)));
}
template <class E> GZ typename E::Number normal(const E &e, int draw) { return normal(e, -1, draw); }

// The place of a nonzero byte of a mask, any of them with the same chance; 0 if there is none.
GZ int chosen_of(const i8 *mask, int n, u32 bits) {
  int count = 0;
  for (int c = 0; c < n; ++c) count += mask[c] != 0;
  int left = (int)mulhi(bits, (u32)count), chosen = 0, c = 0;
#if !defined(GZ_CUDA) && !defined(GZ_SIMT)
  if (count == 0) return 0;
  constexpr u64 LOW = 0x7f7f7f7f7f7f7f7full;
  for (; c + 8 <= n; c += 8) {
    u64 word;
    __builtin_memcpy(&word, mask + c, 8);
    const int here = popcount((((word & LOW) + LOW) | word) & ~LOW);
    if (left < here) break;
    left -= here;
  }
  n = n - c < 8 ? n : c + 8;
#endif
  for (; c < n; ++c) {
    chosen = mask[c] != 0 && left == 0 ? c : chosen;
    left -= mask[c] != 0;
  }
  return chosen;
}

// A bit for each k below N, which is at most 64: whether f(k).
template <int N, class F> GZ u64 bits_where(F f) {
  u64 word = 0ull;
#if defined(GZ_CUDA) || defined(GZ_SIMT)
  GZ_ROLLED
  for (int k = 0; k < N; ++k) word |= (u64)f(k) << k;
#else
  constexpr int COUNT = N < 8 ? N : N < 16 ? 8 : N < 32 ? 16 : 32;  // as many bytes as registers hold, at once
  i8 each[COUNT];
  for (int k = 0; k < N; k += COUNT) {
    const int first = k + COUNT <= N ? k : N - COUNT;
    GZ_INDEPENDENT
    for (int j = 0; j < COUNT; ++j) each[j] = (i8)-(int)f(first + j);
    if constexpr (N < 8)
      for (int j = 0; j < N; ++j) word |= (u64)(each[j] & 1) << j;
    else
      word |= signs_of<COUNT>(each) << first;
  }
#endif
  return word;
}

// The place of the set bit above `rank` other ones; 0 if there is none.
GZ int bit_at(u64 set, int rank) {
#if defined(__BMI2__) && !defined(GZ_SIMT)
  set = __builtin_ia32_pdep_di(1ull << rank, set);
#else
  for (int k = 0; k < rank; ++k) set &= set - 1ull;
#endif
  return set == 0 ? 0 : popcount((set & (~set + 1ull)) - 1ull);
}

// The place of a set bit, any of them with the same chance; 0 if there is none.
GZ int chosen_bit(u64 set, u32 bits) { return bit_at(set, (int)mulhi(bits, (u32)popcount(set))); }

struct SetBit {
  int word, place;
};

// A set bit of `words[0]`, ..., `words[WORDS - 1]`, any of them with the same chance; its word is -1 if there is none.
template <int WORDS, class Words> GZ SetBit chosen_bit_of(const Words &words, u32 bits) {
  int count = 0;
  GZ_ROLLED
  for (int k = 0; k < WORDS; ++k) count += popcount(words[k]);
  if (count == 0) return {-1, 0};
  int left = (int)mulhi(bits, (u32)count), k = 0, here = popcount(words[0]);
  while (left >= here) {
    left -= here;
    here = popcount(words[++k]);
  }
  return {k, bit_at(words[k], left)};
}

}  // namespace gz
