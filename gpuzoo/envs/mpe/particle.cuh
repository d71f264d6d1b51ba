// Particles: motors, soft contacts, damping, a speed limit, and Euler's method with a step of 0.1.
// Lowe et al., "Multi-Agent Actor-Critic for Mixed Cooperative-Competitive Environments" (2017).

struct Vec {
  float x, y;
};
GZ Vec operator+(Vec a, Vec b) { return {a.x + b.x, a.y + b.y}; }
GZ Vec operator-(Vec a, Vec b) { return {a.x - b.x, a.y - b.y}; }
GZ Vec operator*(float k, Vec a) { return {k * a.x, k * a.y}; }
GZ float squared(Vec a) { return a.x * a.x + a.y * a.y; }
GZ float length(Vec a) { return sqrt(squared(a)); }

constexpr float TIME_STEP = 0.1f;
constexpr float KEPT = 0.75f;  // the part of its velocity that a body keeps in a step
constexpr float STIFFNESS = 100.f;
constexpr float SOFTNESS = 0.001f;
constexpr float STRENGTH = 5.f;  // of a motor, where the world says nothing else
constexpr float NO_LIMIT = -1.f;

// The direction of a motor. Choices 0 to 4 of a Discrete action, and components of a Box: none, left, right, down, up.
// A Discrete action counts the ways to move fastest, so that what an agent says comes after them.
GZ Vec motor(int choice) {
  const int way = choice % 5;
  return {(float)((way == 2) - (way == 1)), (float)((way == 4) - (way == 3))};
}
GZ Vec motor(const Actions &box, int a = 0) {
  return {(float)(box(a, 2) - box(a, 1)), (float)(box(a, 4) - box(a, 3))};
}

// Whether a body that lies `apart` from another is pushed by it, when the sum of their radii is `reach`. The force ends
// 30 * softness outside the reach, where it is below 1e-14. Two bodies in the same place do not push each other.
GZ bool near(Vec apart, float reach) {
  const float end = reach + 30.f * SOFTNESS, square = squared(apart);
  return square <= end * end && square != 0.f;
}

// The force grows with softness * log(1 + exp(depth / softness)), a smooth max(0, depth).
GZ Vec contact(Vec apart, float reach) {
  const float distance = length(apart), depth = reach - distance;
  const float pressed = max(depth, 0.f) + SOFTNESS * log1p(exp(-abs(depth) / SOFTNESS));
  return STIFFNESS * pressed / distance * apart;
}

GZ bool touch(Vec a, Vec b, float reach) { return squared(a - b) < reach * reach; }

// A step of one body: the position first, with the velocity that it had.
GZ void move(Vec &position, Vec &velocity, Vec force, float mass, float max_speed) {
  position = position + TIME_STEP * velocity;
  velocity = KEPT * velocity + TIME_STEP / mass * force;
  const float square = squared(velocity);
  if (max_speed >= 0.f && square > max_speed * max_speed) velocity = max_speed / sqrt(square) * velocity;
}
