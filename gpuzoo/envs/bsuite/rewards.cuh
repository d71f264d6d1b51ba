GZ void perturb_reward(Env e) {
  if (e.cfg.noise_scale > 0.f)
    once(e, [=] { e.reward += e.cfg.noise_scale * normal(e, 0); });
}
