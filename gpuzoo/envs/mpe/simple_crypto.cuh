#include "speech.cuh"

constexpr int EVE = FIRST_EVE, BOB = FIRST_BOB, ALICE = FIRST_ALICE;
constexpr int SYMBOLS = 2;

GZ void reset(Env e) {
  once(e, [=] {
    e.message = (u8)random_int(e, 0, SYMBOLS);
    e.key = (u8)random_int(e, 1, SYMBOLS);
  });
  lanes(e, AGENTS, [=](int a) { hush(e, a); });
}

GZ float spelled(int symbol, int k) { return k == symbol ? 1.f : 0.f; }

GZ Row spell(Row out, int symbol) {
  for (int k = 0; k < WORDS; ++k) out[k] = spelled(symbol, k);
  return out + WORDS;
}

// Of what agent a says, squared. To say nothing is no mistake.
GZ float mistake(Env e, int a) {
  float square = 0.f, loudest = 0.f;
  for (int k = 0; k < WORDS; ++k) {
    const float loud = e.speech(a, k), wrong = loud - spelled(e.message, k);
    square += wrong * wrong;
    loudest = max(loudest, loud);
  }
  return loudest == 0.f ? 0.f : square;
}

GZ void step(Env e) {
  lanes(e, AGENTS, [=](int a) { speak(e, a, a, STANDS); });
  lanes(e, AGENTS, [=](int a) { e.reward[a] = a == EVE ? 0.f - mistake(e, EVE) : mistake(e, EVE) - mistake(e, BOB); });
}

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    Row out = e.observation[a];
    if (a == ALICE) out = spell(out, e.message);
    if (a != EVE) out = spell(out, e.key);
    if (a != ALICE) hear(e, out, ALICE);
  });
}
