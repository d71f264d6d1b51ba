// Cooperative Pong with the rules of PettingZoo's butterfly.cooperative_pong_v6. Places are those of pixels: (x, y) is
// the upper left corner of the ball.

enum Move { STAY, UP, DOWN };
enum Draw { ANGLE, TO_THE_LEFT, UPWARDS, BOUNCE };

constexpr int TIERS = Config::cake_paddle ? 4 : 1;
constexpr float STEEPEST = 65.f * PI / 180.f, FLATTEST = 10.f * PI / 180.f;
constexpr float LARGEST_BOUNCE = 0.01f;

// The tiers of the right paddle, from the wall to the middle of the court.
GZ int tier_height(int k) { return k == 0 ? RIGHT_HEIGHT : k == 1 ? RIGHT_HEIGHT * 2 / 3 : k == 2 ? RIGHT_HEIGHT / 3 : RIGHT_HEIGHT / 12; }
GZ int tier_left(int k) { return COURT_WIDTH - (k + 1) * RIGHT_WIDTH; }
GZ int tier_top(int right, int k) { return right + RIGHT_HEIGHT / 2 - tier_height(k) / 2; }

GZ void reset(Env e) {
  once(e, [=] {
    const float angle = uniform(e, ANGLE, FLATTEST, STEEPEST);
    const float vx = e.cfg.ball_speed * cos(angle), vy = e.cfg.ball_speed * sin(angle);
    e.left = COURT_HEIGHT / 2 - LEFT_HEIGHT / 2;
    e.right = COURT_HEIGHT / 2 - RIGHT_HEIGHT / 2;
    e.x = COURT_WIDTH / 2 - BALL / 2;
    e.y = COURT_HEIGHT / 2 - BALL / 2;
    e.vx = random_int(e, TO_THE_LEFT, 2) == 1 ? -vx : vx;
    e.vy = random_int(e, UPWARDS, 2) == 1 ? -vy : vy;
  });
}

GZ int moved(int top, int height, int action, float speed) {
  const int to = top + ((int)(action == DOWN) - (int)(action == UP)) * (int)speed;
  return (to >= 0) & (to + height <= COURT_HEIGHT) ? to : top;
}

// x + v, rounded towards 0.
GZ int carried(int x, float v) {
  const float whole = floor(v);
  const int to = x + (int)whole;
  return to + (int)((to < 0) & (whole != v));
}

GZ bool touches(int x, int y, int left, int top, int width, int height) {
  return (x < left + width) & (x + BALL > left) & (y < top + height) & (y + BALL > top) & (height > 0);
}

GZ void step(Env e) {
  once(e, [=] {
    const auto &c = e.cfg;
    const int left = moved(e.left, LEFT_HEIGHT, e.action[0], c.left_paddle_speed);
    const int right = moved(e.right, RIGHT_HEIGHT, e.action[1], c.right_paddle_speed);

    int x = carried(e.x, e.vx), y = carried(e.y, e.vy);
    float vx = e.vx, vy = e.vy;
    const bool below = y + BALL > COURT_HEIGHT, above = y < 0;
    y = below ? COURT_HEIGHT - BALL : above ? 0 : y;
    vy = below | above ? -vy : vy;
    const bool lost = (x < 0) | (x + BALL > COURT_WIDTH);

    const bool at_left = x + BALL / 2 < COURT_WIDTH / 2;
    bool hit = at_left & touches(x, y, 0, left, LEFT_WIDTH, LEFT_HEIGHT);
    int top = left, height = LEFT_HEIGHT, to_x = LEFT_WIDTH;
    for (int k = 0; k < TIERS; ++k) {
      const int upper = tier_top(right, k);
      const bool here = !at_left & touches(x, y, tier_left(k), upper, RIGHT_WIDTH, tier_height(k));
      hit |= here;
      top = here ? upper : top;
      height = here ? tier_height(k) : height;
      to_x = here ? tier_left(k) - BALL : to_x;
    }
    hit = hit & !lost;
    const bool from_above = hit & (vy > 0.f) & ((float)(y - top) < vy);
    const int below_paddle = y - top - height;
    const bool from_below = hit & (vy < 0.f) & (below_paddle < 0) & ((float)(below_paddle + BALL) > vy);
    x = hit ? to_x : x;
    y = from_above ? top - BALL : from_below ? top + height - 1 : y;
    const float away = at_left ? abs(vx) : -abs(vx);
    vx = hit ? away : vx;
    vy = from_above | from_below ? -vy : vy;
    if (c.bounce_randomness) {
      float sine, cosine;
      sincos(uniform(e, BOUNCE, -LARGEST_BOUNCE, LARGEST_BOUNCE), sine, cosine);
      const float turned_x = vx * cosine - vy * sine, turned_y = vx * sine + vy * cosine;
      vx = hit ? turned_x : vx;
      vy = hit ? turned_y : vy;
    }

    e.left = left;
    e.right = right;
    e.x = x;
    e.y = y;
    e.vx = vx;
    e.vy = vy;
    const float kept = c.max_reward / (float)e.max_steps;
    e.reward[0] = e.reward[1] = lost ? c.off_screen_penalty : kept;
    if (lost) e.terminate_all();
  });
}

template <class Out> GZ void paint(Env e, Out out, int row, int left, int top, int width, int height) {
  if (row < top || row >= top + height) return;
  for (int x = max(left, 0); x < min(left + width, COURT_WIDTH); ++x)
    for (int c = 0; c < 3; ++c) out[3 * (COURT_WIDTH * row + x) + c] = 255;
}

// What of the picture, which is black, is white in one of its rows.
template <class Out> GZ void paint_row(Env e, Out out, int row) {
  paint(e, out, row, 0, e.left, LEFT_WIDTH, LEFT_HEIGHT);
  for (int k = 0; k < TIERS; ++k) paint(e, out, row, tier_left(k), tier_top(e.right, k), RIGHT_WIDTH, tier_height(k));
  paint(e, out, row, e.x, e.y, BALL, BALL);
}

// -1 at the upper or left border of the court, 1 at the opposite one.
GZ float centred(int corner, int size, int court) { return (float)(2 * corner + size) / (float)court - 1.f; }

template <class Out> GZ void numbers(Env e, Out out) {
  out[0] = centred(e.left, LEFT_HEIGHT, COURT_HEIGHT);
  out[1] = centred(e.right, RIGHT_HEIGHT, COURT_HEIGHT);
  out[2] = centred(e.x, BALL, COURT_WIDTH);
  out[3] = centred(e.y, BALL, COURT_HEIGHT);
  out[4] = e.vx / e.cfg.ball_speed;
  out[5] = e.vy / e.cfg.ball_speed;
}

GZ void observe(Env e) {
  if constexpr (Config::observation_type == OBSERVATION_TYPE_IMAGE) {
    lanes(e, AGENTS, 3 * COURT_WIDTH * COURT_HEIGHT, [=](int a, int k) { e.observation[a][k] = 0; });
    lanes(e, AGENTS, COURT_HEIGHT, [=](int a, int row) { paint_row(e, e.observation[a], row); });
  } else {
    lanes(e, AGENTS, [=](int a) {
      numbers(e, e.observation[a]);
      e.observation[a][6] = a == 0 ? -1.f : 1.f;
    });
  }
}

GZ void state(Env e) {
  if constexpr (Config::observation_type == OBSERVATION_TYPE_IMAGE) {
    lanes(e, 3 * COURT_WIDTH * COURT_HEIGHT, [=](int k) { e.state[k] = 0; });
    lanes(e, COURT_HEIGHT, [=](int row) { paint_row(e, e.state, row); });
  } else {
    once(e, [=] { numbers(e, e.state); });
  }
}
