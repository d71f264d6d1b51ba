// Seats are north, east, south and west. Bit `bid` of a set is a bid: 5 * (level - 1) + denomination, which are clubs,
// diamonds, hearts, spades, no trumps. A hand's bit 4 * rank + suit is a card: rank 0 is the two, suit 0 are clubs.

#include "cards.cuh"

enum Move { PASS, DOUBLE, REDOUBLE, FIRST_BID };

constexpr int NONE = -1, BIDS = 35, CALLS = FIRST_BID + BIDS, SEATS = 4, DENOMINATIONS = 5;
constexpr u64 ALL_BIDS = (1ull << BIDS) - 1, OF_DENOMINATION = 0x42108421ull;
constexpr float ILLEGAL = -7600.f;

GZ void reset(Env e) {
  once(e, [=] {
    const int deal = random_int(e, 0, DEALS);
    GZ_ROLLED
    for (int seat = 0; seat < SEATS; ++seat) {
      e.hand[seat] = e.dealt[SEATS * deal + seat];
      e.tricks[seat] = e.solved[SEATS * deal + seat];
      e.bids[seat] = e.doubles[seat] = e.redoubles[seat] = 0;
    }
    e.dealer = random_int(e, 1, SEATS);
    e.vulnerable = (u32)random_int(e, 2, 4);
    e.opening_passes = 0u;
    e.last_bid = e.last_bidder = NONE;
    e.doubled = e.passes = 0;
    e.decided = false;
    e.to_move = e.dealer;
  });
}

GZ u64 legal_calls(Env e) {
  const bool partners = ((e.to_move ^ e.last_bidder) & 1) == 0, bid = e.last_bid != NONE;
  const bool may_double = bid && !partners && e.doubled == 0, may_redouble = bid && partners && e.doubled == 1;
  const u32 low = 1u << PASS | (may_double ? 1u << DOUBLE : 0u) | (may_redouble ? 1u << REDOUBLE : 0u);
  return e.decided ? 0 : ALL_BIDS >> (e.last_bid + 1) << (e.last_bid + 1 + FIRST_BID) | low;
}

GZ int choose(Env e, int player, u32 bits) { return player == e.to_move ? chosen_bit(legal_calls(e), bits) : 0; }

// Who of both partners was the first to bid the denomination of the contract.
GZ int declarer(Env e) {
  const int denomination = e.last_bid % DENOMINATIONS, one = e.last_bidder, other = one ^ 2;
  const u64 own = e.bids[one] & OF_DENOMINATION << denomination, partners = e.bids[other] & OF_DENOMINATION << denomination;
  return partners != 0 && (partners & (~partners + 1ull)) < (own & (~own + 1ull)) ? other : one;
}

GZ int score_down(int down, int doubled, bool vulnerable) {
  if (doubled == 0) return -down * (vulnerable ? 100 : 50);
  const int once = vulnerable ? 300 * down - 100 : down == 1 ? 100 : down <= 3 ? 200 * down - 100 : 300 * down - 400;
  return -once * doubled;
}

GZ int score_made(int level, int denomination, int over, int doubled, bool vulnerable) {
  const int each = denomination < 2 ? 20 : 30;
  const int bid = (each * level + (denomination == 4 ? 10 : 0)) << doubled;
  const int game = bid < 100 ? 0 : vulnerable ? 450 : 250, slam = vulnerable ? 750 : 500;
  const int overtrick = doubled == 0 ? each : 100 * doubled * (vulnerable ? 2 : 1);
  return bid + 50 + game + slam * max(level - 5, 0) + 50 * doubled + overtrick * over;
}

// Of the declarer's side.
GZ int score(Env e, int seat) {
  const int level = e.last_bid / DENOMINATIONS + 1, denomination = e.last_bid % DENOMINATIONS;
  const int over = (int)(e.tricks[seat] >> 4 * (DENOMINATIONS - 1 - denomination) & 15u) - level - 6;
  const bool vulnerable = e.vulnerable >> (seat & 1) & 1u;
  return over < 0 ? score_down(-over, e.doubled, vulnerable) : score_made(level, denomination, over, e.doubled, vulnerable);
}

GZ void end(Env e) {
  e.decided = true;
  e.terminate_all();
  if (e.last_bid == NONE) return;
  const int seat = declarer(e), points = score(e, seat);
  for (int a = 0; a < SEATS; ++a) e.reward[a] = (float)(((a ^ seat) & 1) == 0 ? points : -points);
}

GZ void step(Env e) {
  once(e, [=] {
    const int mover = e.to_move, call = e.action[mover];
    if (call < 0 || !(legal_calls(e) >> call & 1)) {
      e.reward[mover] = ILLEGAL;
      e.terminate_all();
      return;
    }
    const u64 last = e.last_bid == NONE ? 0 : 1ull << e.last_bid;
    e.passes = call == PASS ? e.passes + 1 : 0;
    if (call == PASS && last == 0) e.opening_passes |= 1u << mover;
    if (call == DOUBLE) e.doubles[mover] |= last;
    if (call == REDOUBLE) e.redoubles[mover] |= last;
    e.doubled = call >= FIRST_BID ? 0 : e.doubled + (call != PASS);
    if (call >= FIRST_BID) {
      e.last_bid = call - FIRST_BID;
      e.last_bidder = mover;
      e.bids[mover] |= 1ull << e.last_bid;
    }
    if (e.passes == (e.last_bid == NONE ? SEATS : SEATS - 1)) end(e);
    else e.to_move = (mover + 1) % SEATS;
  });
}

// Of each bid in sets, one for each seat: whose set it is in, counted from player a on, the four bytes of a word.
template <class Out, class Sets> GZ void put_calls(Out out, Sets sets, int a, int at) {
  const u64 first = sets[a], second = sets[(a + 1) % SEATS], third = sets[a ^ 2], fourth = sets[(a + 3) % SEATS];
  GZ_ROLLED
  for (u64 left = first | second | third | fourth; left != 0; left &= left - 1ull) {
    const u64 bid = left & (~left + 1ull);
    out[at + 3 * popcount(bid - 1ull)] = ((first & bid) != 0 ? 1u : 0u) | ((second & bid) != 0 ? 1u << 8 : 0u) |
                                         ((third & bid) != 0 ? 1u << 16 : 0u) | ((fourth & bid) != 0 ? 1u << 24 : 0u);
  }
}

GZ void observe(Env e) {
  lanes(e, OBSERVERS, [=](int row) {
    const int a = observer(e, row);
    const u32 own = e.vulnerable >> (a & 1) & 1u, others = e.vulnerable >> (~a & 1) & 1u;
    const u32 passed = e.opening_passes | e.opening_passes << SEATS;
    const auto out = words(e.observation[row]);
    out[0] = as_bytes((own != 0u ? 2u : 1u) | (others != 0u ? 8u : 4u));
    out[1] = as_bytes(passed >> a & 15u);
    GZ_ROLLED
    for (int k = 0; k < 3 * BIDS; ++k) out[2 + k] = 0u;
    put_calls(out, e.bids, a, 2);
    put_calls(out, e.doubles, a, 3);
    put_calls(out, e.redoubles, a, 4);
    GZ_ROLLED
    for (int k = 0; k < CARDS / 4; ++k) out[2 + 3 * BIDS + k] = as_bytes(e.hand[a] >> 4 * k);
    const u64 legal = a == e.to_move ? legal_calls(e) : 0;
    GZ_ROLLED
    for (int k = 0; k < CALLS; ++k) e.action_mask[row][k] = (i8)(legal >> k & 1);
  });
}
