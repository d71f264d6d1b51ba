// Lange and Sprekeler, "Learning not to learn: nature versus nurture in silico" (2022).
#include "two_arms.cuh"

GZ void reset(Env e) {
  once(e, [=] {
    e.mu = e.cfg.mean_mu + e.cfg.sigma_p * normal(e, 0);
    e.last_action = 0;
    e.last_reward = 0.f;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    pulled(e, e.action, (float)e.action * (e.mu + e.cfg.sigma_l * normal(e, 0)));
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    const float now = (float)e.t;
    observe_pull(e, e.cfg.normalize_time ? 2.f * now / 100.f - 1.f : now);
  });
}
