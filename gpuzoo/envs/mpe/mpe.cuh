// The physics of the particle worlds: motors, soft contacts, damping, a speed limit, and Euler's method with a step of
// 0.1. Lowe et al., "Multi-Agent Actor-Critic for Mixed Cooperative-Competitive Environments" (2017).
// A world has the fields position and velocity (agents, 2), and the option continuous_actions.

struct Vec {
  float x, y;
};
GZ Vec operator+(Vec a, Vec b) { return {a.x + b.x, a.y + b.y}; }
GZ Vec operator-(Vec a, Vec b) { return {a.x - b.x, a.y - b.y}; }
GZ Vec operator*(float k, Vec a) { return {k * a.x, k * a.y}; }
GZ float squared(Vec a) { return a.x * a.x + a.y * a.y; }

template <class F> GZ Vec vec(const F &field, int row) { return {field(row, 0), field(row, 1)}; }
template <class F> GZ void set(const F &field, int row, Vec value) {
  field(row, 0) = value.x;
  field(row, 1) = value.y;
}

GZ void put(float *out, int slot, Vec value) {
  out[2 * slot] = value.x;
  out[2 * slot + 1] = value.y;
}

constexpr float TIME_STEP = 0.1f;
constexpr float KEPT = 0.75f;  // the part of its velocity that a body keeps in a step
constexpr float STIFFNESS = 100.f;
constexpr float SOFTNESS = 0.001f;
constexpr float NO_LIMIT = 0.f;

// The force of an agent's motor. Choices 0 to 4 of a Discrete action, and components of a Box: none, left, right, down,
// up. A Discrete action counts the ways to move fastest, so that what an agent says comes after them.
GZ Vec motor(Env e, int a, float strength) {
  if (e.cfg.continuous_actions)
    return strength * Vec{(float)(e.action(a, 2) - e.action(a, 1)), (float)(e.action(a, 4) - e.action(a, 3))};
  const int way = (int)e.action(a, 0) % 5;
  return strength * Vec{(float)((way == 2) - (way == 1)), (float)((way == 4) - (way == 3))};
}

// The force on a body that lies `apart` from another, when the sum of their radii is `reach`. It grows with
// softness * log(1 + exp(depth / softness)), a smooth max(0, depth). 30 * softness outside the reach it is below 1e-14
// and ends. Two bodies in the same place do not push each other.
GZ Vec contact(Vec apart, float reach) {
  const float end = reach + 30.f * SOFTNESS, square = squared(apart);
  if (square > end * end || square == 0.f) return {0.f, 0.f};
  const float distance = sqrt(square), depth = reach - distance;
  const float pressed = max(depth, 0.f) + SOFTNESS * log1p(exp(-abs(depth) / SOFTNESS));
  return STIFFNESS * pressed / distance * apart;
}

// A step of one body: the position first, with the velocity that it had.
GZ void move(Vec &position, Vec &velocity, Vec force, float mass, float max_speed) {
  position = position + TIME_STEP * velocity;
  velocity = KEPT * velocity + TIME_STEP / mass * force;
  const float square = squared(velocity);
  if (max_speed != NO_LIMIT && square > max_speed * max_speed) velocity = max_speed / sqrt(square) * velocity;
}

// The place of entity k among the n entities of `field` in the order of their distance from `here`; agent `self` is
// left out. On ties the first comes first.
template <class F> GZ int rank(const F &field, int n, Vec here, int k, int self) {
  const float square = squared(vec(field, k) - here);
  int nearer = 0;
  for (int j = 0; j < n; ++j) {
    const float other = squared(vec(field, j) - here);
    nearer += j != self && (other < square || (other == square && j < k));
  }
  return nearer;
}
