// What the robots have in common.

// A state at rest near the model's own; `spread` is the width of the noise in positions.
template <class E> GZ void set_positions(const E &e, Pack spread) {
  for (int i = 0; i < Physics::NQ; ++i) e.qpos[i] = e.qpos0[i] + uniform(e, i, 0, -spread, spread);
  for (int d = 0; d < Physics::NV; ++d) e.qacc[d] = 0.f;
  e.diverged = false;
}
template <class E> GZ void set_uniform_velocities(const E &e, Pack spread) {
  for (int d = 0; d < Physics::NV; ++d) e.qvel[d] = uniform(e, d, 1, -spread, spread);
}
template <class E> GZ void set_normal_velocities(const E &e, Pack deviation) {
  for (int d = 0; d < Physics::NV; ++d) e.qvel[d] = deviation * normal(e, d, 1);
}

template <class E> GZ Physics physics_of(const E &e) {
  Physics s;
  for (int i = 0; i < Physics::NQ; ++i) s.qpos[i] = vec(e.qpos[i]);
  for (int d = 0; d < Physics::NV; ++d) s.qvel[d] = vec(e.qvel[d]), s.qacc[d] = vec(e.qacc[d]);
  physics_vary(s, e);
  return s;
}

// The actions are the controls for some steps of time. Where the state goes out of all bounds, which MuJoCo answers by a
// reset, the episode ends, and the env keeps the state that it had: no number that is none reaches an observation.
template <class E> GZ Physics simulate(const E &e, int steps) {
  Physics s = physics_of(e);
  Vec ctrl[Physics::NU];
  for (int k = 0; k < Physics::NU; ++k) ctrl[k] = vec(e.action[k]);
  GZ_ROLLED for (int n = 0; n < steps; ++n) {
    s.watched = n == steps - 1;
    physics_step(s, ctrl);
  }
  Pack size = 0.f;
  for (int i = 0; i < Physics::NQ; ++i) size += abs(Pack(s.qpos[i]));
  for (int d = 0; d < Physics::NV; ++d) size += abs(Pack(s.qvel[d]));
  const PackMask fine = size < 1e10f;
  for (int i = 0; i < Physics::NQ; ++i) e.qpos[i] = select(fine, Pack(s.qpos[i]), e.qpos[i]);
  for (int d = 0; d < Physics::NV; ++d) {
    e.qvel[d] = select(fine, Pack(s.qvel[d]), e.qvel[d]);
    e.qacc[d] = select(fine, Pack(s.qacc[d]), 0.f);
  }
  e.diverged = !fine;
  return s;
}

// Where a step begins that leads on from `x`: if the ground is the same everywhere, at 0, as nothing is lost there.
GZ Pack origin_of(Pack x) { return SAME_EVERYWHERE ? Pack(0.f) : x; }

// Seconds of a step of the env.
GZ Pack seconds(int frame_skip) { return Pack(Physics::TIMESTEP * Real(frame_skip)); }

template <class E> GZ Pack sum_of_squares_of_actions(const E &e) {
  Pack sum = 0.f;
  for (int k = 0; k < Physics::NU; ++k) sum = fma(e.action[k], e.action[k], sum);
  return sum;
}
