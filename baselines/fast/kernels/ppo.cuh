// The clipped surrogate objective (Schulman et al., "Proximal policy optimization algorithms", 2017).

namespace gz {

GZ Dual loss(const Transition &t, const Hyper &h, Numbers &n) {
  const Dual change = t.log_prob - t.old_log_prob, ratio = exp(change);
  const Dual clipped = clamp(ratio, 1.f - h.clip_eps, 1.f + h.clip_eps);
  const Dual policy_loss = -min(t.advantage * ratio, t.advantage * clipped);

  Dual error = square(t.value - t.target);
  if (CLIP_VALUES) {
    const Dual near = t.old_value + clamp(t.value - t.old_value, -h.clip_eps, h.clip_eps);
    error = max(error, square(near - t.target));
  }
  const Dual value_loss = 0.5f * error;

  n.policy_loss = policy_loss.x;
  n.value_loss = value_loss.x;
  n.entropy = t.entropy.x;
  n.kl = ratio.x - 1.f - change.x;
  n.clipped = abs(ratio.x - 1.f) > h.clip_eps ? 1.f : 0.f;
  return policy_loss + h.vf_coef * value_loss - h.ent_coef * t.entropy;
}

}  // namespace gz
