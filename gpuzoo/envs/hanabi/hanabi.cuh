// A hand is a byte for each card, the oldest first: with its color as one bit, with its rank as one bit, and with what
// hints have left possible. An absent card's bytes are 0.

constexpr u64 EACH = 0x0101010101010101ull;  // card of a hand
constexpr int TOLD = 5, BITS = 8;            // a byte of knowledge: 5 bits of what is possible, whether it was told
constexpr int COLOR_HINTS = 2 * HAND, RANK_HINTS = COLOR_HINTS + (PLAYERS - 1) * COLORS;
constexpr int OTHERS_CARDS = (PLAYERS - 1) * HAND * CARDS, KNOWN = CARDS + COLORS + RANKS;
constexpr int DEALT_LATER = DECK - PLAYERS * HAND;
constexpr u64 HIGHEST_RANKS = ((1ull << CARDS) - 1) / ((1ull << RANKS) - 1) << (RANKS - 1);

GZ int place_of(u64 bit) { return popcount(bit - 1); }
GZ u64 first_bits(int n) { return (1ull << n) - 1; }

GZ int rank_of_copy(int copy) { return max(copy - 1, 0) / 2; }
GZ u64 copies_of(int color, int rank) {
  const int copies = rank == 0 ? 3 : rank == RANKS - 1 ? 1 : 2;
  return first_bits(copies) << (color * CARDS_PER_COLOR + (rank == 0 ? 0 : 2 * rank + 1));
}

GZ u64 without_card(u64 hand, int slot) {
  const u64 older = first_bits(BITS * slot);
  return (hand & older) | (hand >> BITS & ~older);
}
GZ u64 any_card(u64 hand) {
  hand |= hand >> 32;
  hand |= hand >> 16;
  return (hand | hand >> BITS) & first_bits(BITS);
}
GZ u64 cards_with(u64 hand, int value) { return hand >> value & EACH; }
GZ u64 after_hint(u64 knowledge, u64 told, int value) {
  const u64 cards = told * first_bits(BITS);
  return (knowledge & ~cards & ~(EACH << value)) | told << value | told << TOLD;
}

GZ void deal(Env e, int p, int slot, u32 bits) {
  const int card = chosen_bit(e.deck, bits), at = BITS * slot;
  const int color = card / CARDS_PER_COLOR, rank = rank_of_copy(card % CARDS_PER_COLOR);
  const bool seer = Config::observation_type == OBSERVATION_TYPE_SEER;
  e.deck &= ~(1ull << card);
  e.color[p] |= 1ull << (at + color);
  e.rank[p] |= 1ull << (at + rank);
  e.known_color[p] |= (seer ? 1ull << color | 1ull << TOLD : first_bits(COLORS)) << at;
  e.known_rank[p] |= (seer ? 1ull << rank | 1ull << TOLD : first_bits(RANKS)) << at;
}

GZ void reset(Env e) {
  once(e, [=] {
    e.deck = first_bits(DECK);
    e.discards = 0;
    e.fireworks = 0;
    for (int p = 0; p < PLAYERS; ++p) {
      e.color[p] = e.rank[p] = e.known_color[p] = e.known_rank[p] = 0;
      for (int slot = 0; slot < HAND; ++slot) deal(e, p, slot, random_bits(e, p, slot));
    }
    e.information_tokens = MAX_INFORMATION;
    e.life_tokens = MAX_LIVES;
    e.turns_left = PLAYERS;
    e.to_move = e.cfg.random_start_player ? random_int(e, 0, PLAYERS) : 0;
    e.last_player = e.last_action = e.last_card = -1;
    e.last_hinted = 0;
    e.last_scored = e.last_gained = false;
  });
}

GZ u64 legal_moves(Env e) {
  const int p = e.to_move;
  const u64 own = first_bits(popcount(e.color[p]));
  u64 moves = own << HAND | (e.information_tokens < MAX_INFORMATION ? own : 0);
  if (e.information_tokens == 0) return moves;
  for (int k = 0; k < PLAYERS - 1; ++k) {
    const int other = (p + k + 1) % PLAYERS;
    moves |= any_card(e.color[other]) << (COLOR_HINTS + k * COLORS);
    moves |= any_card(e.rank[other]) << (RANK_HINTS + k * RANKS);
  }
  return moves;
}

GZ int choose(Env e, int agent, u32 bits) { return agent == e.to_move ? chosen_bit(legal_moves(e), bits) : 0; }

GZ int score(Env e) { return e.life_tokens > 0 || e.cfg.keep_score ? popcount(e.fireworks) : 0; }

GZ void gain_information_token(Env e) {
  e.last_gained = e.information_tokens < MAX_INFORMATION;
  e.information_tokens += e.last_gained;
}

GZ void take_card(Env e, int p, int slot, bool plays) {
  const int at = BITS * slot;
  const int color = place_of(e.color[p] >> at & first_bits(COLORS)), rank = place_of(e.rank[p] >> at & first_bits(RANKS));
  const int played = popcount(e.fireworks >> color * RANKS & first_bits(RANKS));
  e.last_card = color * RANKS + rank;
  e.last_scored = plays && rank == played;
  if (e.last_scored) {
    e.fireworks |= 1u << e.last_card;
    if (rank == RANKS - 1) gain_information_token(e);
  } else {
    const u64 left = copies_of(color, rank) & ~e.discards;
    e.discards |= left & (0 - left);
    if (plays) e.life_tokens -= 1;
    else gain_information_token(e);
  }
  e.color[p] = without_card(e.color[p], slot);
  e.rank[p] = without_card(e.rank[p], slot);
  e.known_color[p] = without_card(e.known_color[p], slot);
  e.known_rank[p] = without_card(e.known_rank[p], slot);
  if (e.deck != 0) deal(e, p, HAND - 1, random_bits(e, 0));
}

GZ void hint(Env e, int p, int move) {
  const bool is_color = move < RANK_HINTS;
  const int k = move - (is_color ? COLOR_HINTS : RANK_HINTS), values = is_color ? COLORS : RANKS;
  const int other = (p + k / values + 1) % PLAYERS, value = k % values;
  e.information_tokens -= 1;
  if (is_color) {
    e.last_hinted = cards_with(e.color[other], value);
    e.known_color[other] = after_hint(e.known_color[other], e.last_hinted, value);
  } else {
    e.last_hinted = cards_with(e.rank[other], value);
    e.known_rank[other] = after_hint(e.known_rank[other], e.last_hinted, value);
  }
}

GZ void step(Env e) {
  once(e, [=] {
    const int p = e.to_move, move = e.action[p];
    if (move < 0 || !(legal_moves(e) >> move & 1)) {
      e.reward[p] = -1.f;
      e.terminate_all();
      return;
    }
    const int before = score(e);
    e.turns_left -= e.deck == 0;
    e.last_player = p;
    e.last_action = move;
    e.last_card = -1;
    e.last_hinted = 0;
    e.last_scored = e.last_gained = false;
    if (move < COLOR_HINTS) take_card(e, p, move % HAND, move >= HAND);
    else hint(e, p, move);
    e.to_move = (p + 1) % PLAYERS;
    for (int a = 0; a < AGENTS; ++a) e.reward[a] = (float)(score(e) - before);
    if (e.life_tokens == 0 || popcount(e.fireworks) == CARDS || e.turns_left == 0) e.terminate_all();
  });
}

template <int N, class Out> GZ void put(Out out, int at, u64 bits) {
  for (int k = 0; k < N; ++k) out[at + k] = (i8)(bits >> k & 1);
}

GZ u64 card_bits(Env e, int p, int slot) {
  const u64 color = e.color[p] >> BITS * slot & first_bits(COLORS), rank = e.rank[p] >> BITS * slot & first_bits(RANKS);
  return color == 0 ? 0 : rank << RANKS * place_of(color);
}

// What is possible for a card, one bit for each color and rank, and the color and the rank that hints have told.
GZ u64 knowledge_bits(Env e, int p, int slot) {
  const int at = BITS * slot;
  const u64 colors = e.known_color[p] >> at, ranks = e.known_rank[p] >> at & first_bits(RANKS);
  u64 bits = 0;
  for (int c = 0; c < COLORS; ++c) bits |= (colors >> c & 1) * ranks << RANKS * c;
  const u64 color = colors >> TOLD & 1 ? colors & first_bits(COLORS) : 0;
  const u64 rank = e.known_rank[p] >> (at + TOLD) & 1 ? ranks : 0;
  return bits | color << CARDS | rank << (CARDS + COLORS);
}

GZ int append(Env e, int a, int at, int n, u64 bits) {
  const int word = at / 64, shift = at % 64;
  e.table(a, word) |= bits << shift;
  if (shift + n > 64) e.table(a, word + 1) |= bits >> (64 - shift);
  return at + n;
}

// Which players lack a card, what lies on the table, and the last move, with players counted from a on.
GZ void make_table(Env e, int a) {
  for (int word = 0; word < TABLE_WORDS; ++word) e.table(a, word) = 0;
  int at = 0;
  for (int k = 0; k < PLAYERS; ++k) at = append(e, a, at, 1, popcount(e.color[(a + k) % PLAYERS]) < HAND);
  at = append(e, a, at, DEALT_LATER, first_bits(popcount(e.deck)));
  at = append(e, a, at, CARDS, e.fireworks & ~(e.fireworks >> 1 & ~HIGHEST_RANKS));
  at = append(e, a, at, MAX_INFORMATION, first_bits(e.information_tokens));
  at = append(e, a, at, MAX_LIVES, first_bits(e.life_tokens));
  at = append(e, a, at, DECK, e.discards);
  const int move = e.last_action, last = (e.last_player + PLAYERS - a) % PLAYERS;
  if (move < 0) return;
  const bool takes = move < COLOR_HINTS, hints_color = !takes && move < RANK_HINTS, hints_rank = move >= RANK_HINTS;
  const int k = move - (hints_color ? COLOR_HINTS : RANK_HINTS), values = hints_color ? COLORS : RANKS;
  const int kind = takes ? move < HAND : hints_color ? 2 : 3;
  at = append(e, a, at, PLAYERS, 1ull << last);
  at = append(e, a, at, 4, 1ull << kind);
  at = append(e, a, at, PLAYERS, takes ? 0 : 1ull << (last + k / values + 1) % PLAYERS);
  at = append(e, a, at, COLORS, hints_color ? 1ull << k % values : 0);
  at = append(e, a, at, RANKS, hints_rank ? 1ull << k % values : 0);
  for (int slot = 0; slot < HAND; ++slot) at = append(e, a, at, 1, e.last_hinted >> BITS * slot & 1);
  at = append(e, a, at, HAND, takes ? 1ull << move % HAND : 0);
  at = append(e, a, at, CARDS, takes ? 1ull << e.last_card : 0);
  at = append(e, a, at, 1, e.last_scored);
  append(e, a, at, 1, e.last_gained && move >= HAND);
}

// Eight numbers of the table.
template <class Out> GZ void put_table(Env e, Out out, int a, int part) {
  const u64 bits = e.table(a, part / 8) >> part % 8 * 8;
  for (int k = 0; k < 8; ++k)
    if (8 * part + k < TABLE) out[8 * part + k] = (i8)(bits >> k & 1);
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) { make_table(e, a); });
  once(e, [=] { e.legal = legal_moves(e); });
  lanes(e, AGENTS, Const<PLAYERS * HAND>(), [=](int a, int card) {
    const int p = (a + card / HAND) % PLAYERS, slot = card % HAND;
    if (card >= HAND) put<CARDS>(e.observation[a], (card - HAND) * CARDS, card_bits(e, p, slot));
    if (Config::observation_type != OBSERVATION_TYPE_MINIMAL)
      put<KNOWN>(e.observation[a], OTHERS_CARDS + TABLE + card * KNOWN, knowledge_bits(e, p, slot));
  });
  lanes(e, AGENTS, Const<(TABLE + 7) / 8>(), [=](int a, int part) {
    put_table(e, e.observation[a] + OTHERS_CARDS, a, part);
  });
  lanes(e, AGENTS, MOVES, [=](int a, int move) { e.action_mask[a][move] = a == e.to_move && (e.legal >> move & 1); });
}

GZ void state(Env e) {
  once(e, [=] { make_table(e, 0); });
  lanes(e, PLAYERS, HAND, [=](int p, int slot) {
    const int card = p * HAND + slot;
    put<CARDS>(e.state, card * CARDS, card_bits(e, p, slot));
    put<KNOWN>(e.state, PLAYERS * HAND * CARDS + TABLE + card * KNOWN, knowledge_bits(e, p, slot));
  });
  lanes(e, (TABLE + 7) / 8, [=](int part) { put_table(e, e.state + PLAYERS * HAND * CARDS, 0, part); });
  once(e, [=] { put<PLAYERS>(e.state, PLAYERS * HAND * (CARDS + KNOWN) + TABLE, 1ull << e.to_move); });
}
