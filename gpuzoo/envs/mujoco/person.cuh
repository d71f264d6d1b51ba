#include "evaluate.cuh"

// What Humanoid and HumanoidStandup share: what they feel, and what of it they see.

template <class E> GZ void lie(const E &e) {
  set_positions(e, e.cfg.reset_noise_scale);
  set_uniform_velocities(e, e.cfg.reset_noise_scale);
}

// The world, which comes first, is left out.
template <class E> GZ void feel(const E &e, const Physics &s) {
  for (int k = 0; k < 10 * (BODIES - 1); ++k) e.cinert[k] = select(e.diverged, e.cinert[k], Pack(s.cinert[10 + k]));
  for (int k = 0; k < 6 * (BODIES - 1); ++k) {
    e.cvel[k] = select(e.diverged, e.cvel[k], Pack(s.cvel[6 + k]));
    e.cfrc_ext[k] = select(e.diverged, e.cfrc_ext[k], Pack(s.cfrc_ext[6 + k]));
  }
  for (int k = 0; k < Physics::NV - 6; ++k) {
    e.qfrc_actuator[k] = select(e.diverged, e.qfrc_actuator[k], Pack(s.qfrc_actuator[6 + k]));
  }
  feel_tendons(e, s);
}

// At the start MuJoCo has not computed the contacts' forces yet.
template <class E> GZ Physics feel_start(const E &e) {
  const Physics s = evaluate(e);
  feel(e, s);
  for (int k = 0; k < 6 * (BODIES - 1); ++k) e.cfrc_ext[k] = 0.f;
  return s;
}

template <class E> GZ Pack contact_cost(const E &e, Pack weight, Pack low, Pack high) {
  Pack squares = 0.f;
  for (int k = 0; k < 6 * (BODIES - 1); ++k) squares = fma(e.cfrc_ext[k], e.cfrc_ext[k], squares);
  return clamp(weight * squares, low, high);
}

GZ void observe(Env e) {
  const int skipped = 2 * e.cfg.exclude_current_positions_from_observation;
  for (int i = skipped; i < Physics::NQ; ++i) e.observation[i - skipped] = e.qpos[i];
  Row rest = e.observation + (Physics::NQ - skipped);
  for (int d = 0; d < Physics::NV; ++d) rest[d] = e.qvel[d];
  rest = rest + Physics::NV;
  if (e.cfg.include_cinert_in_observation) {
    for (int k = 0; k < 10 * (BODIES - 1); ++k) rest[k] = e.cinert[k];
    rest = rest + 10 * (BODIES - 1);
  }
  if (e.cfg.include_cvel_in_observation) {
    for (int k = 0; k < 6 * (BODIES - 1); ++k) rest[k] = e.cvel[k];
    rest = rest + 6 * (BODIES - 1);
  }
  if (e.cfg.include_qfrc_actuator_in_observation) {
    for (int k = 0; k < Physics::NV - 6; ++k) rest[k] = e.qfrc_actuator[k];
    rest = rest + (Physics::NV - 6);
  }
  if (e.cfg.include_cfrc_ext_in_observation) {
    for (int k = 0; k < 6 * (BODIES - 1); ++k) rest[k] = e.cfrc_ext[k];
  }
}
