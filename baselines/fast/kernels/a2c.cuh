// Advantage actor-critic (Mnih et al., "Asynchronous methods for deep reinforcement learning", 2016).

namespace gz {

GZ Dual loss(const Transition &t, const Hyper &h, Numbers &n) {
  const Dual policy_loss = -(t.advantage * t.log_prob);
  const Dual value_loss = 0.5f * square(t.value - t.target);

  n.policy_loss = policy_loss.x;
  n.value_loss = value_loss.x;
  n.entropy = t.entropy.x;
  return policy_loss + h.vf_coef * value_loss - h.ent_coef * t.entropy;
}

}  // namespace gz
