#include "mujoco.cuh"

// What can be watched, at the state itself and without controls.
template <class E> GZ Physics evaluate(const E &e) {
  Physics s = physics_of(e);
  Vec ctrl[Physics::NU];
  for (int k = 0; k < Physics::NU; ++k) ctrl[k] = vec(0.f);
  physics_forward(s, s.qpos, s.qvel, ctrl);
  return s;
}
