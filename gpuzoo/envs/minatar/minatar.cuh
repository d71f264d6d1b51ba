// What the games of MinAtar share: Young and Tian, "MinAtar: An Atari-inspired testbed for thorough and reproducible
// reinforcement learning experiments" (2019).

enum Button { NOOP, LEFT, UP, RIGHT, DOWN, FIRE };

constexpr int CHANNELS = OBSERVATION_SIZE / 100;

// The button that counts in this step: the one of the action, or by chance that of the step before.
GZ int press(Env e) {
  const bool sticks = uniform(e, 0, 0.f, 1.f) < e.cfg.sticky_action_prob;
  e.last_action = (i8)(sticks ? (int)e.last_action : BUTTONS >> 4 * e.action & 15);
  return e.last_action;
}

GZ int moved(int x, int button, int minus, int plus, int low, int high) {
  return clamp(x + (button == plus) - (button == minus), low, high);
}

GZ void blank(Env e) {
  const auto out = words(e.observation);
  for (int k = 0; k < OBSERVATION_SIZE / 4; ++k) out[k] = 0;
}

// Nothing is shown outside of the screen.
GZ void mark(Env e, int row, int column, int channel) {
  if (((u32)row < 10u) & ((u32)column < 10u)) e.observation[(10 * row + column) * CHANNELS + channel] = 1;
}

// ---- eight small numbers in one: its hexadecimal digits ----

constexpr u32 ONES = 0x11111111u;

// 1 where two digits are equal.
GZ u32 equal(u32 a, u32 b) {
  const u32 x = a ^ b;
  return ~((x & 7u * ONES) + 7u * ONES | x) >> 3 & ONES;
}
