GZ float on_court(float center) { return clamp(center, (float)HALF, (float)(ROWS - HALF - 1)); }

// What a paddle at this height makes of the ball's vertical speed.
GZ float deflected(const Config &c, float speed, float offset) {
  float limit = (float)c.ball_max_y_speed;
  return rint(clamp(speed + offset / (float)HALF, -limit, limit));
}

GZ void reset(Env e) {
  once(e, [=] {
    e.left_paddle = e.right_paddle = 0.5f * (float)ROWS;
    e.ball_row = e.last_ball_row = 0.5f * (float)ROWS;
    e.ball_column = e.last_ball_column = 0.5f * (float)COLUMNS;
    e.row_velocity = 0.f;
    e.column_velocity = (float)e.cfg.ball_x_speed;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    const auto &c = e.cfg;
    const float speed = (float)c.paddle_y_speed;

    float move = speed * (float)((e.action == 2) - (e.action == 1));
    bool follow_up = abs(e.ball_row - on_court(e.right_paddle - speed)) < abs(e.ball_row - on_court(e.right_paddle + speed));
    float follow = follow_up ? -speed : speed;
    e.left_paddle = on_court(floor(e.left_paddle) + move);
    e.right_paddle = on_court(floor(e.right_paddle) + (c.use_ai_policy ? follow : move));

    e.last_ball_row = e.ball_row;
    e.last_ball_column = e.ball_column;
    float row = e.ball_row + e.row_velocity, column = e.ball_column + e.column_velocity;
    float row_velocity = e.row_velocity, column_velocity = e.column_velocity;

    bool below = row >= (float)ROWS, above = c.both_borders & (row < 0.f);
    row = below ? 2.f * (float)(ROWS - 1) - row : above ? -row : row;
    row_velocity = below | above ? -row_velocity : row_velocity;

    float left_offset = row - e.left_paddle, right_offset = row - e.right_paddle;
    bool left_hit = (column <= 1.f) & (abs(left_offset) <= (float)HALF);
    bool right_hit = (column > (float)(COLUMNS - 2)) & (abs(right_offset) < (float)(HALF + 1));
    column = left_hit ? 2.f - column : right_hit ? 2.f * (float)(COLUMNS - 2) - column : column;
    column_velocity = left_hit | right_hit ? -column_velocity : column_velocity;
    float turned = deflected(c, row_velocity, left_hit ? left_offset : right_offset);
    row_velocity = left_hit | right_hit ? turned : row_velocity;

    e.ball_row = row;
    e.ball_column = column;
    e.row_velocity = row_velocity;
    e.column_velocity = column_velocity;
    e.terminated = (column < 0.f) | (column >= (float)COLUMNS);
    e.reward = e.terminated ? 0.f : 1.f;
  });
}

GZ int cell(float x, int limit) { return clamp((int)clamp(floor(x), 0.f, (float)limit), 0, limit); }

GZ int pixel(float row, float column) { return 3 * (COLUMNS * cell(row, ROWS - 1) + cell(column, COLUMNS - 1)); }

GZ void observe(Env e) {
  if (e.cfg.use_visual_obs) {
    lanes(e, ROWS * COLUMNS * 3, [=](int k) { e.observation[k] = 0; });
    once(e, [=] {
      const int paddle = ROWS - 1 - 2 * HALF;  // the last row that its upper end can be in
      const int left = 3 * COLUMNS * cell(e.left_paddle - (float)HALF, paddle);
      const int right = 3 * COLUMNS * cell(e.right_paddle - (float)HALF, paddle) + 3 * (COLUMNS - 1);
      const int ball = pixel(e.ball_row, e.ball_column), last = pixel(e.last_ball_row, e.last_ball_column);
      for (int k = 0; k <= 2 * HALF; ++k) e.observation[left + 3 * COLUMNS * k] = e.observation[right + 3 * COLUMNS * k] = 1;
      e.observation[ball + 1] = 1;
      e.observation[last + 2] = 1;
    });
  } else {
    once(e, [=] {
      e.observation[0] = (Observation)e.left_paddle;
      e.observation[1] = (Observation)e.right_paddle;
      e.observation[2] = (Observation)e.ball_row;
      e.observation[3] = (Observation)e.ball_column;
      e.observation[4] = (Observation)e.last_ball_row;
      e.observation[5] = (Observation)e.last_ball_column;
      e.observation[6] = (Observation)e.row_velocity;
      e.observation[7] = (Observation)e.column_velocity;
    });
  }
}
