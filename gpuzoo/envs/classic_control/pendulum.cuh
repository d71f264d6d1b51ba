// A rod that turns about its upper end: inertia m l^2 / 3, torque of gravity m g (l / 2) sin(theta).
#include "angle.cuh"

GZ void reset(Env e) {
  once(e, [=] {
    e.theta = wrap(uniform(e, 0, -e.cfg.x_init, e.cfg.x_init));
    e.theta_dot = uniform(e, 1, -e.cfg.y_init, e.cfg.y_init);
  });
}

GZ void step(Env e) {
  once(e, [=] {
    const auto &c = e.cfg;
    float u = e.action[0];
    float theta = wrap(e.theta);
    e.reward = -(theta * theta + 0.1f * e.theta_dot * e.theta_dot + 0.001f * u * u);
    float theta_acc = 1.5f * c.g / c.l * sin(theta) + 3.f / (c.m * c.l * c.l) * u;
    e.theta_dot = clamp(e.theta_dot + c.dt * theta_acc, -c.max_speed, c.max_speed);
    e.theta = wrap(theta + c.dt * e.theta_dot);
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    float s, c;
    sincos(e.theta, s, c);
    e.observation[0] = c;
    e.observation[1] = s;
    e.observation[2] = e.theta_dot;
  });
}
