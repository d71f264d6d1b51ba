#include "mpe.cuh"

constexpr float COLLECTOR_RADIUS = 0.05f, DEPOSIT_RADIUS = 0.075f, TREASURE_RADIUS = 0.025f;
constexpr float AWAY = -999.f;  // where a treasure is for the step after it was picked up
constexpr int NOTHING = -1;

GZ bool collects(int a) { return a < FIRST_DEPOSIT; }

GZ Body body(Env, int a) {
  return collects(a) ? Body{COLLECTOR_RADIUS, 1.5f, 1.f, 1.f, false} : Body{DEPOSIT_RADIUS, 1.5f, 1.f, 2.25f, false};
}

GZ void hide(Env e, int k) {
  set(e.landmark, k, {uniform(e, k, 2, -0.95f, 0.95f), uniform(e, k, 3, -0.95f, 0.95f)});
  e.kind[k] = (i8)random_int(e, k, 4, DEPOSITS);
  e.present[k] = 1;
}

GZ void reset(Env e) {
  scatter(e, TREASURES, 0.95f);
  lanes(e, TREASURES, [=](int k) { hide(e, k); });
  lanes(e, COLLECTORS, [=](int a) { e.holding[a] = NOTHING; });
  once(e, [=] { e.deals = 0; });
}

// The deposit for what collector a holds, or NOTHING.
GZ int deposit_for(Env e, int a) {
  const int kind = e.holding[a];
  return kind >= 0 && kind < DEPOSITS ? FIRST_DEPOSIT + kind : NOTHING;
}

// Treasure k goes to the first collector that touches it with empty hands. Says whether there was one.
GZ bool pick_up(Env e, int k) {
  GZ_ROLLED
  for (int a = 0; a < COLLECTORS; ++a)
    if (e.holding[a] == NOTHING && touch(vec(e.position, a), vec(e.landmark, k), COLLECTOR_RADIUS + TREASURE_RADIUS)) {
      e.holding[a] = e.kind[k];
      e.present[k] = 0;
      set(e.landmark, k, {AWAY, AWAY});
      return true;
    }
  return false;
}

GZ bool deliver(Env e, int a) {
  const int d = deposit_for(e, a);
  if (d == NOTHING || !touch(vec(e.position, a), vec(e.position, d), COLLECTOR_RADIUS + DEPOSIT_RADIUS)) return false;
  e.holding[a] = NOTHING;
  return true;
}

GZ int collisions(Env e, int a) {
  int n = 0;
  GZ_ROLLED
  for (int b = 0; b < COLLECTORS; ++b) n += b != a && touch(vec(e.position, a), vec(e.position, b), 2.f * COLLECTOR_RADIUS);
  return n;
}

// From collector a to the deposit for what it holds, or to the nearest treasure.
GZ float errand(Env e, int a) {
  const Vec here = vec(e.position, a);
  const int d = deposit_for(e, a);
  if (d != NOTHING) return length(vec(e.position, d) - here);
  float square = infinity();
  GZ_ROLLED
  for (int k = 0; k < TREASURES; ++k)
    if (e.present[k]) square = min(square, squared(vec(e.landmark, k) - here));
  return square < infinity() ? sqrt(square) : 0.f;
}

// From deposit d to the nearest collector with something for it, or to the middle of all collectors.
GZ float approach(Env e, int d) {
  const Vec here = vec(e.position, d);
  float square = infinity();
  Vec sum = {0.f, 0.f};
  GZ_ROLLED
  for (int a = 0; a < COLLECTORS; ++a) {
    const Vec there = vec(e.position, a);
    if (deposit_for(e, a) == d) square = min(square, squared(there - here));
    sum = sum + there;
  }
  return square < infinity() ? sqrt(square) : length(1.f / (float)COLLECTORS * sum - here);
}

GZ void step(Env e) {
  simulate(e, 0, 0.f);
  once(e, [=] {
    int deals = 0;
    for (int k = 0; k < TREASURES; ++k)
      if (e.present[k])
        deals += pick_up(e, k);
      else
        hide(e, k);
    for (int a = 0; a < COLLECTORS; ++a) deals += deliver(e, a);
    e.deals = deals;
  });
  lanes(e, AGENTS, [=](int a) {
    e.reward[a] = collects(a) ? 5.f * (float)(e.deals - collisions(e, a)) - 0.1f * errand(e, a)
                              : 5.f * (float)e.deals - 0.1f * approach(e, a);
  });
}

GZ Row put_one_hot(Row out, int number) {
  for (int k = 0; k < DEPOSITS; ++k) out[k] = k == number ? 1.f : 0.f;
  return out + DEPOSITS;
}

GZ Row others(Env e, int a) { return e.observation[a] + (collects(a) ? 4 + DEPOSITS : 4); }

GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    Row out = e.observation[a];
    out = put(out, vec(e.position, a));
    out = put(out, vec(e.velocity, a));
    if (collects(a)) put_one_hot(out, e.holding[a]);
  });
  constexpr Const<AGENTS - 1> OTHERS;
  lanes_smallest(
      e, AGENTS, AGENTS, OTHERS,
      [=](int a, int b) { return a == b ? infinity() : squared(vec(e.position, b) - vec(e.position, a)); },
      [=](int a, int k, int nearest) {
        const int b = max(nearest, 0);
        Row out = others(e, a) + (4 + 2 * DEPOSITS) * k;
        out = put(out, vec(e.position, b) - vec(e.position, a));
        out = put(out, vec(e.velocity, b));
        out = put_one_hot(out, b - FIRST_DEPOSIT);
        put_one_hot(out, collects(b) ? e.holding[b] : NOTHING);
      });
  lanes_smallest(
      e, AGENTS, TREASURES, TREASURES,
      [=](int a, int k) { return e.present[k] ? squared(vec(e.landmark, k) - vec(e.position, a)) : infinity(); },
      [=](int a, int slot, int k) {
        Row out = others(e, a) + (4 + 2 * DEPOSITS) * OTHERS + (2 + DEPOSITS) * slot;
        out = put(out, k < 0 ? Vec{0.f, 0.f} : vec(e.landmark, k) - vec(e.position, a));
        put_one_hot(out, k < 0 ? NOTHING : e.kind[k]);
      });
}
