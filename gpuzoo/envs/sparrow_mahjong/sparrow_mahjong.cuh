// Tile 4 * kind + copy; kinds are bamboos 1 to 9, the green and the red dragon. A hand has four bits for each kind, which
// count its tiles. A river has the tiles that a player has discarded, kind + 1 in four bits each, the last one lowest.

constexpr int BAMBOOS = 9, KINDS = 11, GREEN = 9, TILES = 44, HAND = 5, FEATURES = 15, NONE = -1;
constexpr int LEAST_FROM_DISCARD = 5, DEALERS_BONUS = 2, REDS_OF_SUPER_RED = 6, DEALS = 16;
constexpr float HIGHEST_SCORE = 26.f;
constexpr u64 EACH = 0x11111111111ull;  // one tile of each kind
constexpr u64 WALL = (1ull << TILES) - 1, RUN = 0x111ull;
constexpr u64 RED_TILES = EACH & ~(1ull << 4 * GREEN) | 0xf0000000000ull;
constexpr u64 ENDS_AND_DRAGONS = 0xfff0000000full, ALL_GREEN = 0xf0f0f0fff0ull, MIDDLES = 0xfffffff0ull;

GZ u64 one_of(int kind) { return 1ull << 4 * kind; }
GZ int count_of(u64 hand, int kind) { return (int)(hand >> 4 * kind & 15); }
GZ int size_of(u64 hand) { return (int)(hand * 0x1111111111111111ull >> 60); }
GZ u64 kinds_of(u64 hand) { return (hand | hand >> 1 | hand >> 2) & EACH; }
GZ int kind_of(u64 one) { return popcount(one - 1ull) / 4; }

struct Value {
  int base;  // one for a run, two for a triplet; 0 if the hand is not two of them
  int extra;
};

GZ Value value_of(u64 hand) {
  int base = 0;
  u64 left = hand;
  for (int k = 0; k < 2; ++k) {
    const u64 kinds = kinds_of(left), first = kinds & (~kinds + 1ull);
    const int kind = kind_of(first);
    if (left == 0) return Value{0, 0};
    const bool triplet = count_of(left, kind) >= 3, run = kind < BAMBOOS - 2 && (kinds & first * RUN) == first * RUN;
    if (!triplet && !run) return Value{0, 0};
    left -= triplet ? 3 * first : first * RUN;
    base += triplet ? 2 : 1;
  }
  if (left != 0) return Value{0, 0};
  const bool ends = (hand & ~ENDS_AND_DRAGONS) == 0, green = (hand & ~ALL_GREEN) == 0, middles = (hand & ~MIDDLES) == 0;
  return Value{base, ends ? 15 : green ? 10 : middles ? 1 : 0};
}

GZ int score(Env e, int p, u64 hand) {
  const Value value = value_of(hand);
  const int reds = size_of(e.reds[p]), extra = reds >= REDS_OF_SUPER_RED ? 20 : value.extra;
  const int dora = extra >= 10 ? 0 : count_of(hand, e.dora) + reds;
  return value.base == 0 ? 0 : value.base + extra + dora;
}

GZ u64 take_tile(Env e, u32 bits) {
  const u64 tile = 1ull << chosen_bit(e.wall, bits);
  e.wall &= ~tile;
  return tile;
}

GZ void give_tile(Env e, int p, u64 tile, bool may_be_red) {
  const u64 one = one_of(kind_of(tile));
  e.hand[p] += one;
  e.reds[p] += may_be_red && (tile & RED_TILES) != 0 ? one : 0;
}

GZ bool is_complete(u64 hand) { return value_of(hand).base > 0; }

GZ void deal(Env e, int attempt) {
  e.wall = WALL;
  e.dora = kind_of(take_tile(e, random_bits(e, attempt, 0)));
  for (int p = 0; p < PLAYERS; ++p) {
    e.hand[p] = e.reds[p] = 0;
    GZ_ROLLED
    for (int k = 0; k < HAND; ++k) give_tile(e, p, take_tile(e, random_bits(e, attempt, 1 + p * HAND + k)), true);
  }
  give_tile(e, 0, take_tile(e, random_bits(e, attempt, 1 + PLAYERS * HAND)), e.cfg.corrected);
}

GZ void reset(Env e) {
  once(e, [=] {
    GZ_ROLLED
    for (int attempt = 0; attempt < DEALS; ++attempt) {
      deal(e, attempt);
      if (!is_complete(e.hand[0])) break;
    }
    for (int p = 0; p < PLAYERS; ++p) {
      e.river[p] = 0;
      e.reds_in_river[p] = 0u;
    }
    e.to_move = 0;
    e.turn = 0;
    e.last_discard = NONE;
    e.winners = 0u;
    e.decided = false;
  });
}

GZ u64 legal_kinds(Env e) { return e.decided ? 0 : kinds_of(e.hand[e.to_move]); }

GZ int choose(Env e, int player, u32 bits) {
  return player == e.to_move ? chosen_bit(legal_kinds(e), bits) / 4 : 0;
}

GZ void end_with(Env e, u32 won) {
  e.decided = true;
  e.winners = won;
  e.terminate_all();
}

GZ bool has_discarded(Env e, int p, int kind) {
  for (u64 left = e.river[p]; left != 0; left >>= 4)
    if ((int)(left & 15) == kind + 1) return true;
  return false;
}

GZ bool win_by_discard(Env e, int mover, int kind) {
  u32 won = 0u;
  int paid = 0;
  for (int p = 0; p < PLAYERS; ++p) {
    const int points = score(e, p, e.hand[p] + one_of(kind));
    if (points < LEAST_FROM_DISCARD || has_discarded(e, p, kind)) continue;
    const int all = points + (p == 0 ? (int)DEALERS_BONUS : 0);
    e.reward[p] = (float)all / HIGHEST_SCORE;
    won |= 1u << p;
    paid += all;
  }
  if (won == 0u) return false;
  e.reward[mover] = (float)-paid / HIGHEST_SCORE;
  end_with(e, won);
  return true;
}

GZ void win_by_draw(Env e, int p) {
  const int points = score(e, p, e.hand[p]) + (p == 0 ? (int)DEALERS_BONUS : 0), each = (points + 1) / 2;
  for (int a = 0; a < PLAYERS; ++a) e.reward[a] = (float)(a == p ? 2 * each : -each) / HIGHEST_SCORE;
  end_with(e, 1u << p);
}

GZ void step(Env e) {
  once(e, [=] {
    const int mover = e.to_move, kind = e.action[mover];
    if (kind < 0 || count_of(e.hand[mover], kind) == 0) {
      e.reward[mover] = -1.f;
      e.decided = true;
      e.terminate_all();
      return;
    }
    e.hand[mover] -= one_of(kind);
    const bool red = count_of(e.hand[mover], kind) < count_of(e.reds[mover], kind);
    e.reds[mover] -= red ? one_of(kind) : 0;
    e.river[mover] = e.river[mover] << 4 | (u64)(kind + 1);
    e.reds_in_river[mover] = e.reds_in_river[mover] << 1 | (red ? 1u : 0u);
    e.last_discard = kind;
    if (win_by_discard(e, mover, kind)) return;
    if (e.wall == 0) {
      end_with(e, 0u);
      return;
    }
    const int next = (mover + 1) % PLAYERS;
    e.turn += 1;
    e.to_move = next;
    give_tile(e, next, take_tile(e, random_bits(e, 0)), true);
    const bool may_win = e.cfg.corrected || e.turn < PLAYERS || next == PLAYERS - 1;
    if (may_win && is_complete(e.hand[next])) win_by_draw(e, next);
  });
}

GZ u32 feature(bool here, int place) { return here ? 1u << place : 0u; }

GZ void observe(Env e) {
  lanes(e, OBSERVERS, [=](int row) {
    const int a = observer(e, row);
    u64 thrown = 0;
    for (int k = 0; k < PLAYERS; ++k)
      for (u64 left = e.river[(a + k) % PLAYERS]; left != 0; left >>= 4)
        thrown |= 1ull << (KINDS * k + (int)(left & 15) - 1);
    e.thrown[a] = thrown;
  });
  lanes(e, OBSERVERS, Const<KINDS>(), [=](int row, int kind) {
    const int a = observer(e, row);
    const u64 next = e.river[(a + 1) % PLAYERS], after = e.river[(a + 2) % PLAYERS], seen = (u64)(kind + 1);
    u32 bits = (1u << count_of(e.hand[a], kind)) - 1u;
    bits |= feature(count_of(e.reds[a], kind) > 0, 4) | feature(e.dora == kind, 5);
    for (int k = 0; k < 3; ++k) {
      bits |= feature((e.thrown[a] >> (KINDS * k + kind) & 1) != 0, 6 + k);
      bits |= feature((next >> 4 * k & 15) == seen, 9 + k) | feature((after >> 4 * k & 15) == seen, 12 + k);
    }
    const Row out = e.observation[row] + FEATURES * kind;
    for (int k = 0; k < FEATURES; ++k) out[k] = (i8)(bits >> k & 1u);
    e.action_mask[row][kind] = a == e.to_move ? (i8)(legal_kinds(e) >> 4 * kind & 1) : (i8)0;
  });
}
