// Two links, a motor between them. Equations of Sutton, "Generalization in reinforcement learning: successful examples
// using sparse coarse coding" (1996), as corrected in Sutton and Barto's book; Runge and Kutta's method of fourth order.
#include "angle.cuh"

struct Motion {
  float theta1, theta2, dtheta1, dtheta2;
};

GZ Motion operator+(Motion a, Motion b) {
  return {a.theta1 + b.theta1, a.theta2 + b.theta2, a.dtheta1 + b.dtheta1, a.dtheta2 + b.dtheta2};
}
GZ Motion operator*(float k, Motion a) { return {k * a.theta1, k * a.theta2, k * a.dtheta1, k * a.dtheta2}; }

GZ Motion derivative(const Config &c, Motion s, float torque) {
  const float m1 = c.link_mass_1, m2 = c.link_mass_2, l1 = c.link_length_1, lc1 = c.link_com_pos_1,
              lc2 = c.link_com_pos_2, moi = c.link_moi, g = 9.8f;
  float sin1, cos1, sin2, cos2;
  sincos(s.theta1, sin1, cos1);
  sincos(s.theta2, sin2, cos2);
  float d1 = m1 * lc1 * lc1 + m2 * (l1 * l1 + lc2 * lc2 + 2.f * l1 * lc2 * cos2) + 2.f * moi;
  float d2 = m2 * (lc2 * lc2 + l1 * lc2 * cos2) + moi;
  float coupling = m2 * l1 * lc2 * sin2;
  float phi2 = m2 * lc2 * g * (sin1 * cos2 + cos1 * sin2);
  float phi1 = (m1 * lc1 + m2 * l1) * g * sin1 + phi2 - coupling * s.dtheta2 * (s.dtheta2 + 2.f * s.dtheta1);
  float ratio = d2 / d1;
  float turning = torque + ratio * phi1 - phi2;
  if (c.book_or_nips == BOOK_OR_NIPS_BOOK) turning -= coupling * s.dtheta1 * s.dtheta1;
  float ddtheta2 = turning / (m2 * lc2 * lc2 + moi - d2 * ratio);
  return {s.dtheta1, s.dtheta2, -(d2 * ddtheta2 + phi1) / d1, ddtheta2};
}

GZ void reset(Env e) {
  once(e, [=] {
    e.theta1 = uniform(e, 0, e.cfg.low, e.cfg.high);
    e.theta2 = uniform(e, 1, e.cfg.low, e.cfg.high);
    e.dtheta1 = uniform(e, 2, e.cfg.low, e.cfg.high);
    e.dtheta2 = uniform(e, 3, e.cfg.low, e.cfg.high);
  });
}

GZ void step(Env e) {
  once(e, [=] {
    const auto &c = e.cfg;
    float torque = c.avail_torque * (float)(e.action - 1) + uniform(e, 0, -c.torque_noise_max, c.torque_noise_max);
    Motion s = {e.theta1, e.theta2, e.dtheta1, e.dtheta2};
    Motion k1 = derivative(c, s, torque);
    Motion k2 = derivative(c, s + 0.5f * c.dt * k1, torque);
    Motion k3 = derivative(c, s + 0.5f * c.dt * k2, torque);
    Motion k4 = derivative(c, s + c.dt * k3, torque);
    s = s + c.dt / 6.f * (k1 + 2.f * k2 + 2.f * k3 + k4);
    e.theta1 = wrap(s.theta1);
    e.theta2 = wrap(s.theta2);
    e.dtheta1 = clamp(s.dtheta1, -c.max_vel_1, c.max_vel_1);
    e.dtheta2 = clamp(s.dtheta2, -c.max_vel_2, c.max_vel_2);
    float height = -cos(e.theta1) - cos(e.theta1 + e.theta2);
    e.terminated = height > 1.f;
    e.reward = e.terminated ? 0.f : -1.f;
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    float sin1, cos1, sin2, cos2;
    sincos(e.theta1, sin1, cos1);
    sincos(e.theta2, sin2, cos2);
    e.observation[0] = cos1;
    e.observation[1] = sin1;
    e.observation[2] = cos2;
    e.observation[3] = sin2;
    e.observation[4] = e.dtheta1;
    e.observation[5] = e.dtheta2;
  });
}
