#include "mujoco.cuh"

template <class E> GZ void see(const E &e, const Physics &s, PackMask anew) {
  const Vec *places[3] = {s.xpos_tips_arm, s.xpos_object, s.xpos_goal};
  for (int k = 0; k < 9; ++k) e.places[k] = select(anew, Pack(places[k / 3][k % 3]), e.places[k]);
}

template <class E> GZ Pack distance_to_object(const E &e, int place) {
  Pack square = 0.f;
  for (int i = 0; i < 3; ++i) {
    const Pack apart = e.places[3 + i] - e.places[3 * place + i];
    square = fma(apart, apart, square);
  }
  return sqrt(square);
}

GZ void reset(Env e) {
  set_positions(e, 0.f);
  set_uniform_velocities(e, 0.005f);
  for (int d = 7; d < Physics::NV; ++d) e.qvel[d] = 0.f;
  // Draws until the object is far enough from the goal; forty in a row are too near once in 10^17 times.
  Pack forward = -0.3f, aside = 0.f;
  PackMask placed = false;
  GZ_ROLLED for (int n = 0; n < 40; ++n) {
    const Pack x = uniform(e, n, 2, -0.3f, 0.f), y = uniform(e, n, 3, -0.2f, 0.2f);
    forward = select(placed, forward, x);
    aside = select(placed, aside, y);
    placed = placed | (x * x + y * y > 0.17f * 0.17f);
    if (all(placed)) break;
  }
  e.qpos[7] = forward;
  e.qpos[8] = aside;
  e.qpos[9] = e.qpos[10] = 0.f;
  Physics s = physics_of(e);
  physics_look(s);
  see(e, s, true);
  e.reward_near = e.reward_dist = e.reward_ctrl = 0.f;
}

GZ void step(Env e) {
  const Physics s = simulate(e, e.cfg.frame_skip);
  see(e, s, !e.diverged);
  e.reward_near = -(e.cfg.reward_near_weight * distance_to_object(e, 0));
  e.reward_dist = -(e.cfg.reward_dist_weight * distance_to_object(e, 2));
  e.reward_ctrl = -(e.cfg.reward_control_weight * sum_of_squares_of_actions(e));
  e.reward = e.reward_dist + e.reward_ctrl + e.reward_near;
  e.terminated = e.diverged;
}

GZ void observe(Env e) {
  for (int k = 0; k < 7; ++k) {
    e.observation[k] = e.qpos[k];
    e.observation[7 + k] = e.qvel[k];
  }
  for (int k = 0; k < 9; ++k) e.observation[14 + k] = e.places[k];
}
