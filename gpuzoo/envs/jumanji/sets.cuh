// Sets of numbers, one bit for each, 64 in a word.

GZ u64 bit(int k) { return 1ull << (u64)(k & 63); }

// The word `w` of the set of the numbers below n.
GZ u64 below(int n, int w) {
  const int here = n - 64 * w;
  return here <= 0 ? 0ull : here >= 64 ? ~0ull : bit(here) - 1ull;
}

template <class Set> GZ bool has(Set set, int k) { return (set[k / 64] & bit(k)) != 0ull; }

template <int WORDS, class Set> GZ bool is_empty(Set set) {
  u64 any = 0ull;
  for (int w = 0; w < WORDS; ++w) any |= set[w];
  return any == 0ull;
}

// A member of a set, any of them with the same chance; 0 of an empty one.
template <int WORDS, class Set> GZ int chosen_member(Set set, u32 random) {
  if constexpr (WORDS == 1) return chosen_bit(set[0], random);
  const SetBit member = chosen_bit_of<WORDS>(set, random);
  return member.word < 0 ? 0 : 64 * member.word + member.place;
}
