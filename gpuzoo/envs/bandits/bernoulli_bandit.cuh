// Wang et al., "Learning to reinforcement learn" (2016).
#include "two_arms.cuh"

GZ void reset(Env e) {
  once(e, [=] {
    e.prob = random_int(e, 0, 2) == 0 ? e.cfg.reward_prob : 1.f - e.cfg.reward_prob;
    e.last_action = 0;
    e.last_reward = 0.f;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    const float prob = e.action == 0 ? e.prob : 1.f - e.prob;
    pulled(e, e.action, uniform(e, 0, 0.f, 1.f) < prob ? 1.f : 0.f);
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    const auto &c = e.cfg;
    const float now = (float)e.t;
    observe_pull(e, c.normalize_time ? (c.max_lim - c.min_lim) * now / (float)c.t_max + c.min_lim : now);
  });
}
