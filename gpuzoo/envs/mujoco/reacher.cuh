#include "evaluate.cuh"

// Where the fingertip is, seen from the target; returns the squared distance.
template <class E> GZ Pack look(const E &e, const Physics &s) {
  Pack apart[3];
  for (int i = 0; i < 3; ++i) apart[i] = Pack(s.xpos_fingertip[i]) - Pack(s.xpos_target[i]);
  e.apart_x = apart[0];
  e.apart_y = apart[1];
  return apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2];
}

GZ void reset(Env e) {
  set_positions(e, 0.1f);
  set_uniform_velocities(e, 0.005f);
  // A point of the disc, by its radius and angle.
  Pack s, c;
  sincos(uniform(e, 0, -PI, PI), s, c);
  const Pack radius = Pack(0.2f) * sqrt(uniform(e, 1, 0.f, 1.f));
  e.qpos[2] = radius * c;
  e.qpos[3] = radius * s;
  e.qvel[2] = e.qvel[3] = 0.f;
  look(e, evaluate(e));
  e.reward_dist = e.reward_ctrl = 0.f;
}

GZ void step(Env e) {
  const Pack distance = sqrt(look(e, simulate(e, e.cfg.frame_skip)));
  e.reward_dist = -(e.cfg.reward_dist_weight * distance);
  e.reward_ctrl = -(e.cfg.reward_control_weight * sum_of_squares_of_actions(e));
  e.reward = e.reward_dist + e.reward_ctrl;
  e.terminated = e.diverged;
}

GZ void observe(Env e) {
  for (int k = 0; k < 2; ++k) {
    Pack s, c;
    sincos(e.qpos[k], s, c);
    e.observation[k] = c;
    e.observation[2 + k] = s;
    e.observation[4 + k] = e.qpos[2 + k];
    e.observation[6 + k] = e.qvel[k];
  }
  e.observation[8] = e.apart_x;
  e.observation[9] = e.apart_y;
}
