// Numbers that carry their derivatives along (Wengert, "A simple automatic derivative evaluation program", 1964): those
// by the logarithm of an action's probability, by the entropy of the policy, and by the value. Where a function has no
// derivative, torch's choice counts.

namespace gz {

struct Dual {
  float x, log_prob, entropy, value;
};

// f(a), where f(a.x) = x and f'(a.x) = derivative.
GZ Dual function(float x, float derivative, Dual a) {
  return {x, derivative * a.log_prob, derivative * a.entropy, derivative * a.value};
}

GZ Dual constant(float x) { return {x, 0.f, 0.f, 0.f}; }

GZ Dual operator-(Dual a) { return {-a.x, -a.log_prob, -a.entropy, -a.value}; }
GZ Dual operator+(Dual a, Dual b) {
  return {a.x + b.x, a.log_prob + b.log_prob, a.entropy + b.entropy, a.value + b.value};
}
GZ Dual operator-(Dual a, Dual b) { return a + -b; }
GZ Dual operator*(Dual a, Dual b) {
  return {a.x * b.x, a.x * b.log_prob + b.x * a.log_prob, a.x * b.entropy + b.x * a.entropy,
          a.x * b.value + b.x * a.value};
}

GZ Dual operator+(Dual a, float b) { return {a.x + b, a.log_prob, a.entropy, a.value}; }
GZ Dual operator+(float a, Dual b) { return b + a; }
GZ Dual operator-(Dual a, float b) { return a + -b; }
GZ Dual operator-(float a, Dual b) { return -b + a; }
GZ Dual operator*(float a, Dual b) { return function(a * b.x, a, b); }
GZ Dual operator*(Dual a, float b) { return b * a; }

GZ Dual operator/(Dual a, float b) { return function(a.x / b, 1.f / b, a); }
GZ Dual operator/(float a, Dual b) { return function(a / b.x, -a / (b.x * b.x), b); }
GZ Dual operator/(Dual a, Dual b) {
  const float by_a = 1.f / b.x, by_b = -a.x / (b.x * b.x);
  return {a.x / b.x, by_a * a.log_prob + by_b * b.log_prob, by_a * a.entropy + by_b * b.entropy,
          by_a * a.value + by_b * b.value};
}

GZ float square(float a) { return a * a; }
GZ float relu(float a) { return a > 0.f ? a : 0.f; }
GZ float sigmoid(float a) { return 1.f / (1.f + exp(-a)); }

GZ Dual square(Dual a) { return function(a.x * a.x, 2.f * a.x, a); }
GZ Dual exp(Dual a) {
  const float y = exp(a.x);
  return function(y, y, a);
}
GZ Dual log(Dual a) { return function(log(a.x), 1.f / a.x, a); }
GZ Dual sqrt(Dual a) {
  const float y = sqrt(a.x);
  return function(y, 0.5f / y, a);
}
GZ Dual tanh(Dual a) {
  const float y = tanh(a.x);
  return function(y, 1.f - y * y, a);
}
GZ Dual sigmoid(Dual a) {
  const float y = sigmoid(a.x);
  return function(y, y * (1.f - y), a);
}
GZ Dual abs(Dual a) { return function(abs(a.x), a.x > 0.f ? 1.f : a.x < 0.f ? -1.f : 0.f, a); }
GZ Dual relu(Dual a) { return function(relu(a.x), a.x > 0.f ? 1.f : 0.f, a); }

GZ Dual min(Dual a, Dual b) { return a.x < b.x ? a : b.x < a.x ? b : 0.5f * a + 0.5f * b; }
GZ Dual max(Dual a, Dual b) { return -min(-a, -b); }
GZ Dual clamp(Dual a, float low, float high) {
  return a.x < low ? constant(low) : a.x > high ? constant(high) : a;
}

// What a formula is about: a row's columns, and what the networks now say of it.
struct Transition : Columns {
  Dual log_prob, entropy, value;
};
GZ Transition transition(const Columns &columns, float log_prob, float entropy, float value) {
  return {columns, {log_prob, 1.f, 0.f, 0.f}, {entropy, 0.f, 1.f, 0.f}, {value, 0.f, 0.f, 1.f}};
}

}  // namespace gz
