// Barto, Sutton and Anderson, "Neuronlike adaptive elements that can solve difficult learning control problems" (1983),
// with the equations of Florian, "Correct equations for the dynamics of the cart-pole system" (2007), frictionless.

GZ void reset(Env e) {
  once(e, [=] {
    e.x = uniform(e, 0, -0.05f, 0.05f);
    e.x_dot = uniform(e, 1, -0.05f, 0.05f);
    e.theta = uniform(e, 2, -0.05f, 0.05f);
    e.theta_dot = uniform(e, 3, -0.05f, 0.05f);
  });
}

GZ void step(Env e) {
  once(e, [=] {
    const auto &c = e.cfg;
    float force = e.action == 1 ? c.force_mag : -c.force_mag;
    float sin_theta, cos_theta;
    sincos(e.theta, sin_theta, cos_theta);
    float total_mass = c.masspole + c.masscart;
    float polemass_length = c.masspole * c.length;
    float temp = (force + polemass_length * e.theta_dot * e.theta_dot * sin_theta) / total_mass;
    float theta_acc = (c.gravity * sin_theta - cos_theta * temp) /
                      (c.length * (4.f / 3.f - c.masspole * cos_theta * cos_theta / total_mass));
    float x_acc = temp - polemass_length * theta_acc * cos_theta / total_mass;
    e.x += c.tau * e.x_dot;
    e.x_dot += c.tau * x_acc;
    e.theta += c.tau * e.theta_dot;
    e.theta_dot += c.tau * theta_acc;
    e.terminated = (e.x < -c.x_threshold) | (e.x > c.x_threshold) | (e.theta < -c.theta_threshold_radians) |
                   (e.theta > c.theta_threshold_radians);
    if constexpr (Config::sutton_barto_reward)
      e.reward = e.terminated ? -1.f : 0.f;
    else
      e.reward = 1.f;
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    e.observation[0] = e.x;
    e.observation[1] = e.x_dot;
    e.observation[2] = e.theta;
    e.observation[3] = e.theta_dot;
  });
}
