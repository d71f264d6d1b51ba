// Each player's discs are the bits of one number: bit SIZE * row + column.

constexpr u64 BOARD = ~0ull >> (64 - PASS), FIRST_ROW = (1ull << SIZE) - 1ull, FIRST_COLUMN = BOARD / FIRST_ROW;
constexpr u64 INNER_COLUMNS = FIRST_COLUMN * (FIRST_ROW >> 2 << 1), INNER_ROWS = BOARD >> 2 * SIZE << SIZE;
constexpr u64 INNER = INNER_COLUMNS & INNER_ROWS;
constexpr int CENTRE = SIZE / 2 * SIZE + SIZE / 2;
constexpr u64 FIRST_OF_PLAYER_0 = 1ull << (CENTRE - SIZE) | 1ull << (CENTRE - 1);
constexpr u64 FIRST_OF_PLAYER_1 = 1ull << (CENTRE - SIZE - 1) | 1ull << CENTRE;

template <int STEP> GZ u64 moved(u64 discs) {
  if constexpr (STEP > 0)
    return discs << STEP;
  else
    return discs >> -STEP;
}

// The others' discs in an unbroken line from `start`, one step after the other.
template <int STEP> GZ u64 line(u64 start, u64 others, u64 inner) {
  const u64 between = others & inner;
  u64 found = between & moved<STEP>(start);
  for (int k = 0; k < SIZE - 3; ++k) found |= between & moved<STEP>(found);
  return found;
}

// What lies behind lines of the others' discs that begin beside one's own.
template <int STEP> GZ u64 behind(u64 own, u64 others, u64 inner) { return moved<STEP>(line<STEP>(own, others, inner)); }

GZ u64 legal_moves(u64 own, u64 others) {
  const u64 found = behind<1>(own, others, INNER_COLUMNS) | behind<-1>(own, others, INNER_COLUMNS) |
                    behind<SIZE>(own, others, INNER_ROWS) | behind<-SIZE>(own, others, INNER_ROWS) |
                    behind<SIZE - 1>(own, others, INNER) | behind<1 - SIZE>(own, others, INNER) |
                    behind<SIZE + 1>(own, others, INNER) | behind<-SIZE - 1>(own, others, INNER);
  return found & ~(own | others);
}

// The line from a new disc in one direction, if a disc of one's own ends it.
template <int STEP> GZ u64 turned_along(u64 disc, u64 own, u64 others, u64 inner) {
  const u64 found = line<STEP>(disc, others, inner);
  return (moved<STEP>(found) & own) != 0ull ? found : 0ull;
}

GZ u64 turned(u64 disc, u64 own, u64 others) {
  return turned_along<1>(disc, own, others, INNER_COLUMNS) | turned_along<-1>(disc, own, others, INNER_COLUMNS) |
         turned_along<SIZE>(disc, own, others, INNER_ROWS) | turned_along<-SIZE>(disc, own, others, INNER_ROWS) |
         turned_along<SIZE - 1>(disc, own, others, INNER) | turned_along<1 - SIZE>(disc, own, others, INNER) |
         turned_along<SIZE + 1>(disc, own, others, INNER) | turned_along<-SIZE - 1>(disc, own, others, INNER);
}

GZ int count(u64 discs) {
  discs -= discs >> 1 & 0x5555555555555555ull;
  discs = (discs & 0x3333333333333333ull) + (discs >> 2 & 0x3333333333333333ull);
  discs = discs + (discs >> 4) & 0x0f0f0f0f0f0f0f0full;
  return (int)(discs * 0x0101010101010101ull >> 56);
}

GZ void reset(Env e) {
  once(e, [=] {
    e.discs_0 = FIRST_OF_PLAYER_0;
    e.discs_1 = FIRST_OF_PLAYER_1;
    e.legal = legal_moves(FIRST_OF_PLAYER_0, FIRST_OF_PLAYER_1);
    e.to_move = 0;
    e.last_move = -1;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    const int mover = e.to_move, action = e.action[mover];
    const bool places = action >= 0 && action < PASS, passes = action == PASS;
    const u64 disc = places ? 1ull << action & e.legal : 0ull;
    if (disc == 0ull && !(passes && e.legal == 0ull)) {
      e.reward[mover] = -1.f;
      e.terminate_all();
      return;
    }
    u64 own = mover == 0 ? e.discs_0 : e.discs_1, others = mover == 0 ? e.discs_1 : e.discs_0;
    const u64 changed = turned(disc, own, others);
    own |= disc | changed;
    others &= ~changed;
    e.discs_0 = mover == 0 ? own : others;
    e.discs_1 = mover == 0 ? others : own;
    e.legal = legal_moves(others, own);
    e.to_move = 1 - mover;
    const bool twice = passes && e.last_move == PASS;
    e.last_move = action;
    if (!twice && others != 0ull && (own | others) != BOARD) return;
    const int lead = count(own) - count(others);
    e.reward[mover] = lead > 0 ? 1.f : lead < 0 ? -1.f : 0.f;
    e.reward[1 - mover] = lead > 0 ? -1.f : lead < 0 ? 1.f : 0.f;
    e.terminate_all();
  });
}

// A word of the observation holds two cells of two bytes each: one for each player.
GZ u32 spread(u32 discs) { return (discs & 3u) * 0x8001u & 0x10001u; }

GZ void observe(Env e) {
  lanes(e, OBSERVERS, [=](int row) {
    const int a = observer(e, row);
    const u64 own = a == 0 ? e.discs_0 : e.discs_1, other = a == 0 ? e.discs_1 : e.discs_0;
    const auto out = words(e.observation[row]);
    for (int k = 0; k < PASS / 2; ++k) out[k] = spread((u32)(own >> 2 * k)) | spread((u32)(other >> 2 * k)) << 8;
    const u64 legal = a == e.to_move ? (u64)e.legal : 0ull;
    for (int cell = 0; cell < PASS; ++cell) e.action_mask[row][cell] = (i8)(legal >> cell & 1ull);
    e.action_mask[row][PASS] = a == e.to_move && legal == 0ull;
  });
}
