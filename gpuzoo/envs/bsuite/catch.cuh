#include "rewards.cuh"

constexpr int COLUMNS = Config::columns;
constexpr int BOTTOM = Config::rows - 1;

GZ void reset(Env e) {
  once(e, [=] {
    e.ball_x = random_int(e, 0, COLUMNS);
    e.ball_y = 0;
    e.paddle_x = COLUMNS / 2;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    e.paddle_x = clamp(e.paddle_x + e.action - 1, 0, COLUMNS - 1);
    e.ball_y += 1;
    const bool down = e.ball_y >= BOTTOM, caught = e.paddle_x == e.ball_x;
    e.reward = e.cfg.reward_scale * (down ? (caught ? 1.f : -1.f) : 0.f);
    e.terminated = down;
  });
  perturb_reward(e);
}

GZ void observe(Env e) {
  once(e, [=] {
    const int ball = COLUMNS * e.ball_y + e.ball_x, paddle = COLUMNS * BOTTOM + e.paddle_x;
    for (int k = 0; k < OBSERVATION_SIZE; ++k) e.observation[k] = (k == ball) | (k == paddle);
  });
}
