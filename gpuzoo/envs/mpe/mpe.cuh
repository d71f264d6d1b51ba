// What the particle worlds have in common. A world has the fields position, velocity and force (agents, 2) and landmark
// (.., 2), the option continuous_actions, and a function that says what its agents are.

#include "particle.cuh"

// Bodies that are not solid pass through everything.
struct Body {
  float radius, strength, max_speed, mass;
  bool solid;
};
GZ Body body(Env e, int a);

template <class F> GZ Vec vec(const F &field, int row) { return {field(row, 0), field(row, 1)}; }
template <class F> GZ void set(const F &field, int row, Vec value) {
  field(row, 0) = value.x;
  field(row, 1) = value.y;
}

// Agents at rest, uniformly in [-1, 1]^2, and landmarks in [-span, span]^2.
GZ void scatter(Env e, int landmarks, float span) {
  lanes(e, AGENTS, [=](int a) {
    set(e.position, a, {uniform(e, a, 0, -1.f, 1.f), uniform(e, a, 1, -1.f, 1.f)});
    set(e.velocity, a, {0.f, 0.f});
    set(e.force, a, {0.f, 0.f});
  });
  lanes(e, landmarks,
        [=](int k) { set(e.landmark, k, {uniform(e, k, 2, -span, span), uniform(e, k, 3, -span, span)}); });
}

// Adds the force on agent a of a body that it touches. That is rare, and as g++ does not turn a store into arithmetic,
// nothing is computed otherwise.
GZ void meet(Env e, int a, Vec apart, float reach) {
  if (near(apart, reach)) set(e.force, a, vec(e.force, a) + contact(apart, reach));
}

// A step of all agents. The first `obstacles` landmarks are solid, with the given radius.
GZ void simulate(Env e, int obstacles, float radius) {
  lanes(e, AGENTS, [=](int a) {
    const Body self = body(e, a);
    const Vec here = vec(e.position, a);
    set(e.force, a, self.strength * (e.cfg.continuous_actions ? motor(e.action, a) : motor((int)e.action(a, 0))));
    if (!self.solid) return;
    for (int b = 0; b < AGENTS; ++b) {
      const Body other = body(e, b);
      if (b != a && other.solid) meet(e, a, here - vec(e.position, b), self.radius + other.radius);
    }
    for (int k = 0; k < obstacles; ++k) meet(e, a, here - vec(e.landmark, k), self.radius + radius);
  });
  lanes(e, AGENTS, [=](int a) {
    const Body self = body(e, a);
    Vec position = vec(e.position, a), velocity = vec(e.velocity, a);
    move(position, velocity, vec(e.force, a), self.mass, self.max_speed);
    set(e.position, a, position);
    set(e.velocity, a, velocity);
  });
}

// What a coordinate outside of [-0.9, 0.9] costs.
GZ float straying(float x) {
  const float out = abs(x);
  return out < 0.9f ? 0.f : out < 1.f ? 10.f * (out - 0.9f) : min(exp(2.f * out - 2.f), 10.f);
}

// ---- observations: each of these writes to `out` and returns what lies behind ----

GZ Row put(Row out, Vec value) {
  out[0] = value.x;
  out[1] = value.y;
  return out + 2;
}

constexpr int NOBODY = -1;
constexpr Const<0> ALL;

// A value for each of the n entities of `field`, in their order. With NEAREST > 0 for so many of them, the nearest to
// `here` first, and zeros behind them if there are fewer. Agent `self` is left out.
template <class F, int NEAREST, class V>
GZ Row put_each(Row out, const F &field, int n, Vec here, Const<NEAREST>, int self, V value) {
  if constexpr (NEAREST > 0) {
    smallest<NEAREST>(
        n, [=](int k) { return k == self ? infinity() : squared(vec(field, k) - here); },
        [=](int slot, int k) { put(out + 2 * slot, k < 0 ? Vec{0.f, 0.f} : value(k)); });
    return out + 2 * NEAREST;
  } else {
    for (int k = 0; k < n; ++k)
      if (k != self) put(out + 2 * (k - (self != NOBODY && k > self)), value(k));
    return out + 2 * (n - (self != NOBODY));
  }
}

// Where they lie as seen from `here`.
template <class F, int NEAREST>
GZ Row put_places(Row out, const F &field, int n, Vec here, Const<NEAREST> nearest, int self) {
  return put_each(out, field, n, here, nearest, self, [=](int k) { return vec(field, k) - here; });
}
