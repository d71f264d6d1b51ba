#include "beliefs.cuh"
#include "hands.cuh"

constexpr int OTHERS_CARDS = (PLAYERS - 1) * HAND * CARDS, KNOWN = CARDS + COLORS + RANKS;
constexpr u64 HIGHEST_RANKS = ((1ull << CARDS) - 1) / ((1ull << RANKS) - 1) << (RANKS - 1);

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
  lanes(e, OBSERVERS, [=](int row) { make_table(e, observer(e, row)); });
  once(e, [=] { e.legal = legal_moves(e); });
  if constexpr (Config::observation_type == OBSERVATION_TYPE_BELIEFS) {
    observe_beliefs(e);
  } else {
    lanes(e, OBSERVERS, Const<PLAYERS * HAND>(), [=](int row, int card) {
      const int a = observer(e, row);
      const int p = (a + card / HAND) % PLAYERS, slot = card % HAND;
      if (card >= HAND) put<CARDS>(e.observation[row], (card - HAND) * CARDS, card_bits(e, p, slot));
      if (Config::observation_type != OBSERVATION_TYPE_MINIMAL)
        put<KNOWN>(e.observation[row], OTHERS_CARDS + TABLE + card * KNOWN, knowledge_bits(e, p, slot));
    });
    lanes(e, OBSERVERS, Const<(TABLE + 7) / 8>(), [=](int row, int part) {
      put_table(e, e.observation[row] + OTHERS_CARDS, observer(e, row), part);
    });
  }
  lanes(e, OBSERVERS, MOVES, [=](int row, int move) {
    e.action_mask[row][move] = observer(e, row) == e.to_move && (e.legal >> move & 1);
  });
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
