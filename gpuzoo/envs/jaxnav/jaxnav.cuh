// JaxNav (Rutherford, Beukman, Willi, Lacerda, Hawes and Foerster, "No regrets: investigating and improving regret
// approximations for curriculum discovery", 2024): robots drive to their goals between walls, which they see by lidar.

constexpr int COLUMNS = Config::map_width, ROWS = Config::map_height, CELLS = COLUMNS * ROWS;
constexpr int INSIDE = (COLUMNS - 2) * (ROWS - 2);
constexpr int MAP = 0, FILL = 1, WEIGHT = 2, CLUTTER = 0, TRY = 1, DRAWS = 6, NUM_TRIES = 1000;  // draws
constexpr float GOAL_SPACE = 0.3f;  // free around a goal
constexpr float MARGIN = 1e-3f;     // more than any rounding

GZ float wrapped(float angle) { return angle >= PI ? angle - TWO_PI : angle < -PI ? angle + TWO_PI : angle; }

GZ bool is_wall(Env e, int x, int y) {
  if ((x < 0) | (x >= COLUMNS) | (y < 0) | (y >= ROWS)) return true;
  return e.map[COLUMNS * y + x] != 0;
}

GZ int cell_of(float x) { return (int)floor(x); }

// ---- maps, starts and goals

GZ void draw_map(Env e) {
  if (LAYOUTS > 0) {
    const int which = random_int(e, MAP, max(LAYOUTS, 1));
    for (int c = 0; c < CELLS; ++c) e.map[c] = e.layout[which * CELLS + c];
    return;
  }
  const int clutter = (int)((float)INSIDE * e.cfg.fill + MARGIN);
  int left = clutter > 0 ? random_int(e, FILL, clutter) : 0;
  for (int c = 0, rest = INSIDE; c < CELLS; ++c) {
    const int x = c % COLUMNS, y = c / COLUMNS;
    const bool edge = (x == 0) | (x == COLUMNS - 1) | (y == 0) | (y == ROWS - 1);
    bool wall = edge;
    if (!edge) {
      wall = random_int(e, c, CLUTTER, rest) < left;
      left -= wall;
      --rest;
    }
    e.map[c] = wall;
  }
}

// Gives each free cell the number of its region; cells of one region are connected by their sides.
GZ void find_regions(Env e) {
  for (int c = 0; c < CELLS; ++c) e.region[c] = -1;
  for (int c = 0; c < CELLS; ++c) {
    if ((e.map[c] != 0) | (e.region[c] >= 0)) continue;
    int first = 0, last = 1;
    e.queue[0] = c;
    e.region[c] = c;
    while (first < last) {
      const int here = e.queue[first];
      ++first;
      for (int k = 0; k < 4; ++k) {
        const int x = here % COLUMNS + (k == 0) - (k == 1), y = here / COLUMNS + (k == 2) - (k == 3);
        if (is_wall(e, x, y) || e.region[COLUMNS * y + x] >= 0) continue;
        e.region[COLUMNS * y + x] = c;
        e.queue[last] = COLUMNS * y + x;
        ++last;
      }
    }
  }
}

GZ float apart(float x, float y, float to_x, float to_y) {
  return sqrt((x - to_x) * (x - to_x) + (y - to_y) * (y - to_y));
}

// Whether a disc of less than a cell touches a wall.
GZ bool touches_wall(Env e, float x, float y, float radius) {
  const int low_x = cell_of(x - radius), high_x = cell_of(x + radius);
  const int low_y = cell_of(y - radius), high_y = cell_of(y + radius);
  bool touches = false;
  for (int j = low_y; j <= high_y; ++j)
    for (int i = low_x; i <= high_x; ++i) {
      const float near_x = clamp(x, (float)i, (float)i + 1.f), near_y = clamp(y, (float)j, (float)j + 1.f);
      if (is_wall(e, i, j)) touches |= apart(x, y, near_x, near_y) <= radius;
    }
  return touches;
}

GZ float most(float chosen, float otherwise) { return chosen < 0.f ? otherwise : chosen; }

GZ bool draw_start(Env e, int a, int k) {
  const auto &c = e.cfg;
  const int draw = TRY + DRAWS * k;
  const float low = 1.f + c.rad, high = (float)ROWS - 1.f - c.rad;
  const float x = uniform(e, a, draw, low, high), y = uniform(e, a, draw + 1, low, high);
  const float far = uniform(e, a, draw + 2, most(c.min_dist_to_goal, low), most(c.max_dist_to_goal, high));
  const float way = uniform(e, a, draw + 3, -PI, PI);
  const float goal_x = clamp(x + far * cos(way), low, high), goal_y = clamp(y + far * sin(way), low, high);
  e.position(a, 0) = x;
  e.position(a, 1) = y;
  e.goal(a, 0) = goal_x;
  e.goal(a, 1) = goal_y;
  e.heading[a] = uniform(e, a, draw + 4, -PI, PI);
  const float space = c.rad * c.start_pad;
  bool good = apart(x, y, goal_x, goal_y) > 2.f * c.rad;
  good &= !touches_wall(e, x, y, space) & !touches_wall(e, goal_x, goal_y, GOAL_SPACE);
  for (int b = 0; b < a; ++b) {
    good &= apart(x, y, e.position(b, 0), e.position(b, 1)) > 2.f * space;
    good &= apart(goal_x, goal_y, e.goal(b, 0), e.goal(b, 1)) > 2.f * space;
  }
  if (c.valid_path_check) {
    const int from = COLUMNS * cell_of(y) + cell_of(x), to = COLUMNS * cell_of(goal_y) + cell_of(goal_x);
    good &= e.region[from] == e.region[to];
  }
  return good;
}

GZ void reset(Env e) {
  once(e, [=] {
    draw_map(e);
    if (e.cfg.valid_path_check) find_regions(e);
    e.rew_lambda = e.cfg.fixed_lambda ? e.cfg.rew_lambda : uniform(e, WEIGHT, e.cfg.lambda_low, e.cfg.lambda_high);
    for (int a = 0; a < AGENTS; ++a) {
      for (int k = 0; k < NUM_TRIES; ++k)
        if (draw_start(e, a, k)) break;
      e.speed[a] = e.turn[a] = 0.f;
      e.goal_reached[a] = e.crashed[a] = false;
    }
  });
}

// ---- the bodies of robots, rectangles

GZ void find_bodies(Env e) {
  lanes(e, AGENTS, [=](int a) {
    float sine, cosine;
    sincos(e.heading[a], sine, cosine);
    e.cosine[a] = cosine;
    e.sine[a] = sine;
  });
}

// The k-th corner, counted modulo 4, along x or y.
GZ float corner_x(Env e, int a, int k) {
  const float u = (k & 3) < 2 ? -e.cfg.half_length : e.cfg.half_length;
  const float v = ((k + 1) & 3) < 2 ? -e.cfg.half_width : e.cfg.half_width;
  return e.position(a, 0) + (e.cosine[a] * u - e.sine[a] * v);
}

GZ float corner_y(Env e, int a, int k) {
  const float u = (k & 3) < 2 ? -e.cfg.half_length : e.cfg.half_length;
  const float v = ((k + 1) & 3) < 2 ? -e.cfg.half_width : e.cfg.half_width;
  return e.position(a, 1) + (e.sine[a] * u + e.cosine[a] * v);
}

// The place at which the line from 1 to 2 crosses that from 3 to 4, as a share of the first; or infinity.
GZ float crossing(float x1, float y1, float x2, float y2, float x3, float y3, float x4, float y4) {
  const float bottom = (y4 - y3) * (x2 - x1) - (x4 - x3) * (y2 - y1);
  const float u = ((x4 - x3) * (y1 - y3) - (y4 - y3) * (x1 - x3)) / bottom;
  const float v = ((x2 - x1) * (y1 - y3) - (y2 - y1) * (x1 - x3)) / bottom;
  return (u >= 0.f) & (u <= 1.f) & (v >= 0.f) & (v <= 1.f) ? u : infinity();
}

GZ bool meets(Env e, int a, int k, float x3, float y3, float x4, float y4) {
  return crossing(corner_x(e, a, k), corner_y(e, a, k), corner_x(e, a, k + 1), corner_y(e, a, k + 1), x3, y3, x4, y4) < 2.f;
}

// Whether a robot cuts the sides of a cell, or lies in it.
GZ bool covers(Env e, int a, int i, int j) {
  const float x = (float)i, y = (float)j;
  bool cuts = false, inside = true;
  GZ_ROLLED
  for (int k = 0; k < 4; ++k) {
    const float corner = corner_x(e, a, k), other = corner_y(e, a, k);
    inside &= (corner >= x) & (corner <= x + 1.f) & (other >= y) & (other <= y + 1.f);
    GZ_ROLLED
    for (int m = 0; m < 4; ++m) {  // left, right, lower, upper
      const float x3 = m == 1 ? x + 1.f : x, y3 = m == 3 ? y + 1.f : y;
      cuts |= meets(e, a, k, x3, y3, m == 0 ? x : x + 1.f, m == 2 ? y : y + 1.f);
    }
  }
  return cuts | inside;
}

GZ bool hits_wall(Env e, int a) {
  const float wide = abs(e.cosine[a]) * e.cfg.half_length + abs(e.sine[a]) * e.cfg.half_width + MARGIN;
  const float tall = abs(e.sine[a]) * e.cfg.half_length + abs(e.cosine[a]) * e.cfg.half_width + MARGIN;
  const float x = e.position(a, 0), y = e.position(a, 1);
  const int low_x = max(cell_of(x - wide), 0), high_x = min(cell_of(x + wide), COLUMNS - 1);
  const int low_y = max(cell_of(y - tall), 0), high_y = min(cell_of(y + tall), ROWS - 1);
  for (int j = low_y; j <= high_y; ++j)
    for (int i = low_x; i <= high_x; ++i)
      if (is_wall(e, i, j) && covers(e, a, i, j)) return true;
  return false;
}

// Whether the shadows of a and b on a line overlap; the line is along the body of a, or across it.
GZ bool overlap(Env e, int a, int b, bool along) {
  const float x = along ? e.cosine[a] : -e.sine[a], y = along ? e.sine[a] : e.cosine[a];
  float low_a = infinity(), high_a = -infinity(), low_b = infinity(), high_b = -infinity();
  GZ_ROLLED
  for (int k = 0; k < 4; ++k) {
    const float of_a = x * corner_x(e, a, k) + y * corner_y(e, a, k);
    const float of_b = x * corner_x(e, b, k) + y * corner_y(e, b, k);
    low_a = min(low_a, of_a);
    high_a = max(high_a, of_a);
    low_b = min(low_b, of_b);
    high_b = max(high_b, of_b);
  }
  return (low_a <= high_b) & (low_b <= high_a);
}

GZ bool hits_robot(Env e, int a) {
  const float most = 2.f * (e.cfg.half_length + e.cfg.half_width) + MARGIN;
  GZ_ROLLED
  for (int b = 0; b < AGENTS; ++b) {
    const float x = e.position(b, 0) - e.position(a, 0), y = e.position(b, 1) - e.position(a, 1);
    if (b == a || x * x + y * y > most * most) continue;
    if (overlap(e, a, b, true) && overlap(e, a, b, false) && overlap(e, b, a, true) && overlap(e, b, a, false)) return true;
  }
  return false;
}

// ---- lidar

GZ int samples(Env e) { return (int)(e.cfg.lidar_max_range / e.cfg.lidar_range_resolution + MARGIN); }

// The distance between two samples.
GZ float spacing(Env e) { return e.cfg.lidar_max_range / (float)(samples(e) - 1); }

// The first sample of a beam that has left a cell along x or y, or count or more; inverse is that of way * step.
GZ int leaves_at(float place, float way, float step, float inverse, int cell, int count) {
  const bool up = way > 0.f;
  const float edge = (float)(cell + (up ? 1 : 0));
  int k = (int)clamp((edge - place) * inverse, 0.f, (float)count);
  for (int n = 0; n < 2; ++n) {  // it is rounded
    const float x = (float)k * step * way + place;
    k += up ? (x < edge ? 1 : 0) : (x >= edge ? 1 : 0);
  }
  return k;
}

GZ float inverse_of(float way, float step) { return 1.f / (copysign(max(abs(way), 1e-6f), way) * step); }

// The first sample of a beam that is in a wall and less than limit, or the number of samples.
GZ int wall_at(Env e, float x, float y, float to_x, float to_y, int count, int limit) {
  const float step = spacing(e), over_x = inverse_of(to_x, step), over_y = inverse_of(to_y, step);
  int i = cell_of(x), j = cell_of(y), k = 0;
  GZ_ROLLED
  for (int n = 0; n < count; ++n) {
    if (is_wall(e, i, j)) return k;
    const int leaves_x = leaves_at(x, to_x, step, over_x, i, count);
    const int leaves_y = leaves_at(y, to_y, step, over_y, j, count);
    k = min(leaves_x, leaves_y);
    if (k >= limit) return count;
    i = cell_of((float)k * step * to_x + x);
    j = cell_of((float)k * step * to_y + y);
  }
  return count;
}

// The first sample of a beam that is in another robot, or -1.
GZ int robot_at(Env e, int a, float to_x, float to_y) {
  const float x = e.position(a, 0), y = e.position(a, 1), far = e.cfg.lidar_max_range;
  const float size = e.cfg.half_length + e.cfg.half_width + MARGIN;
  float first = infinity();
  GZ_ROLLED
  for (int b = 0; b < AGENTS; ++b) {
    const float dx = e.position(b, 0) - x, dy = e.position(b, 1) - y;
    const bool beside = abs(dx * to_y - dy * to_x) > size;
    if (b == a || beside || dx * to_x + dy * to_y < -size) continue;
    GZ_ROLLED
    for (int k = 0; k < 4; ++k) {
      const float end_x = far * to_x + x, end_y = far * to_y + y;
      const float u = crossing(x, y, end_x, end_y, corner_x(e, b, k), corner_y(e, b, k), corner_x(e, b, k + 1), corner_y(e, b, k + 1));
      const float along_x = u * (end_x - x), along_y = u * (end_y - y);
      if (u < 2.f) first = min(first, floor(sqrt(along_x * along_x + along_y * along_y) / e.cfg.lidar_range_resolution));
    }
  }
  return first < infinity() ? (int)first : -1;
}

// The direction of a beam, of length 1.
GZ void find_way(Env e, int a, int k, float &x, float &y) {
  sincos(e.heading[a] + e.beam_angle[k] * e.cfg.lidar_angle_factor, y, x);
}

// The samples at which beams end, of robots that look; as if there were no wall from the sample e.looks[a] on.
GZ void look(Env e) {
  lanes(e, AGENTS, BEAMS, [=](int a, int k) {
    float to_x, to_y;
    find_way(e, a, k, to_x, to_y);
    if (e.looks[a] > 0) e.sample(a, k) = robot_at(e, a, to_x, to_y);
  });
  lanes(e, AGENTS, BEAMS, [=](int a, int k) {
    const int limit = e.looks[a], count = samples(e), robot = limit > 0 ? (int)e.sample(a, k) : 0;
    if (limit == 0) return;
    float to_x, to_y;
    find_way(e, a, k, to_x, to_y);
    const int wall = wall_at(e, e.position(a, 0), e.position(a, 1), to_x, to_y, count, limit);
    const int first = min(wall, robot < 0 ? count - 1 : robot);
    e.sample(a, k) = first < count ? first : 0;
  });
}

GZ float beam(Env e, int a, int k) { return (float)e.sample(a, k) * spacing(e); }

// ---- steps

GZ void drive(Env e, int a, float action_speed, float action_turn) {
  const auto &c = e.cfg;
  if (!e.alive[a] || (!c.evaporating && e.crashed[a])) {
    if (c.evaporating) e.position(a, 0) = e.position(a, 1) = 0.f;  // in the wall of the corner
    e.speed[a] = e.turn[a] = 0.f;
    return;
  }
  const float faster = clamp((action_speed - e.speed[a]) / c.dt, -c.max_v_acc, c.max_v_acc);
  const float more = clamp((action_turn - e.turn[a]) / c.dt, -c.max_w_acc, c.max_w_acc);
  const float speed = clamp(e.speed[a] + faster * c.dt, c.min_v, c.max_v);
  const float turn = clamp(e.turn[a] + more * c.dt, -c.max_w, c.max_w);
  float sine, cosine;
  sincos(e.heading[a], sine, cosine);
  e.position(a, 0) += speed * cosine * c.dt;
  e.position(a, 1) += speed * sine * c.dt;
  e.heading[a] = wrapped(e.heading[a] + turn * c.dt);
  e.speed[a] = speed;
  e.turn[a] = turn;
}

GZ float to_goal(Env e, int a) { return apart(e.position(a, 0), e.position(a, 1), e.goal(a, 0), e.goal(a, 1)); }

constexpr bool DISCRETE = Config::act_type == ACT_TYPE_DISCRETE;

GZ float chosen_speed(Env e, int a) {
  const auto first = e.action(a, 0);
  return DISCRETE ? 0.5f * (float)((int)first / 5) : clamp((float)first, e.cfg.min_v, e.cfg.max_v);
}

GZ float chosen_turn(Env e, int a) {
  const auto last = e.action(a, DISCRETE ? 0 : 1);
  return DISCRETE ? 0.5f - 0.25f * (float)((int)last % 5) : (float)last;
}

// Whether any wall or robot may be so near that a beam shows less than the threshold.
GZ bool may_be_close(Env e, int a) {
  const auto &c = e.cfg;
  const float reach = c.lidar_thresh + c.rad + MARGIN, size = reach + c.half_length + c.half_width;
  if (c.lidar_max_range > c.lidar_range_resolution * (float)samples(e) + MARGIN) return true;
  if (touches_wall(e, e.position(a, 0), e.position(a, 1), reach)) return true;
  for (int b = 0; b < AGENTS; ++b)
    if (b != a && apart(e.position(a, 0), e.position(a, 1), e.position(b, 0), e.position(b, 1)) < size) return true;
  return false;
}

GZ void rate(Env e, int a) {
  const auto &c = e.cfg;
  const float distance = to_goal(e, a), turn = abs(chosen_turn(e, a));
  const bool had_reached = e.goal_reached[a], had_crashed = e.crashed[a], lives = e.alive[a];
  const bool crashes = lives & (e.hits[a] != 0);
  const bool reaches = lives & (distance <= c.goal_radius);
  const bool reached = reaches | (had_reached & !c.evaporating), crashed = crashes | (had_crashed & !c.evaporating);
  e.goal_reached[a] = reached;
  e.crashed[a] = crashed;
  const float closer = c.weight_g * (e.before[a] - distance);
  const float at_goal = had_reached ? 0.f : reached ? c.goal_rew : closer;
  const float crash = crashed & !had_crashed ? c.coll_rew : 0.f;
  const float pace = had_reached | had_crashed ? 0.f : c.dt_rew;
  const float turning = turn > c.lim_w ? c.weight_w * turn : 0.f;
  const float near = e.close[a] != 0u ? c.lidar_rew : 0.f;
  e.own[a] = lives ? at_goal + crash + turning + pace + near : 0.f;
  e.sparse[a] = lives ? (reached ? at_goal : 0.f) + crash + pace : 0.f;
}

GZ void step(Env e) {
  lanes(e, AGENTS, [=](int a) {
    e.before[a] = to_goal(e, a);
    drive(e, a, chosen_speed(e, a), chosen_turn(e, a));
  });
  find_bodies(e);
  lanes(e, AGENTS, [=](int a) {
    const int limit = (int)min((e.cfg.lidar_thresh + e.cfg.rad) / spacing(e) + 2.f, (float)samples(e));
    e.looks[a] = may_be_close(e, a) ? max(limit, 1) : 0;
    e.close[a] = 0u;
  });
  look(e);
  lanes(e, AGENTS, BEAMS, [=](int a, int k) {
    if (e.looks[a] > 0 && beam(e, a, k) <= e.cfg.lidar_thresh + e.cfg.rad) scatter_or(e.close[a], 1u);
  });
  lanes(e, AGENTS, [=](int a) { e.hits[a] = hits_wall(e, a); });
  lanes(e, AGENTS, [=](int a) {
    if (AGENTS > 1) e.hits[a] |= hits_robot(e, a);
  });
  lanes(e, AGENTS, [=](int a) { rate(e, a); });
  const bool sparse = e.cfg.share_only_sparse;
  const float shared = lane_sum(e, AGENTS, [=](int a) { return sparse ? e.sparse[a] : e.own[a]; }) / (float)AGENTS;
  const bool over = !lane_any(e, AGENTS, [=](int a) { return e.alive[a] && !e.goal_reached[a] && !e.crashed[a]; });
  lanes(e, AGENTS, [=](int a) {
    e.reward[a] = e.cfg.rew_lambda * e.own[a] + (1.f - e.cfg.rew_lambda) * shared;
    if (e.cfg.evaporating && e.alive[a] && (e.goal_reached[a] || e.crashed[a])) e.terminate(a);
  });
  once(e, [=] {
    if (over) e.terminate_all();
  });
}

GZ void observe(Env e) {
  find_bodies(e);
  lanes(e, AGENTS, [=](int a) { e.looks[a] = samples(e); });
  look(e);
  lanes(e, AGENTS, BEAMS, [=](int a, int k) { e.observation[a][k] = beam(e, a, k) / e.cfg.lidar_max_range - 0.5f; });
  lanes(e, AGENTS, [=](int a) {
    const auto &c = e.cfg;
    const float x = e.goal(a, 0) - e.position(a, 0), y = e.goal(a, 1) - e.position(a, 1);
    Row out = e.observation[a] + BEAMS;
    out[0] = e.speed[a] / c.max_v - 0.5f;
    out[1] = e.turn[a] / c.max_w;
    out[2] = min(sqrt(x * x + y * y), c.lidar_max_range) / c.lidar_max_range - 0.5f;
    out[3] = wrapped(atan2(y, x) - e.heading[a]) / PI;
    out[4] = e.rew_lambda - 0.5f;
  });
}

GZ void state(Env e) {
  lanes(e, INSIDE, [=](int k) {
    const int x = 1 + k % (COLUMNS - 2), y = 1 + k / (COLUMNS - 2);
    e.state[k] = e.map[COLUMNS * y + x];
  });
  lanes(e, AGENTS, [=](int a) {
    const auto &c = e.cfg;
    e.state[INSIDE + 2 * a] = e.position(a, 0) / (float)COLUMNS - 0.5f;
    e.state[INSIDE + 2 * a + 1] = e.position(a, 1) / (float)ROWS - 0.5f;
    e.state[INSIDE + 2 * AGENTS + a] = e.heading[a] / PI - 0.5f;
    e.state[INSIDE + 3 * AGENTS + 2 * a] = e.goal(a, 0) / (float)COLUMNS - 0.5f;
    e.state[INSIDE + 3 * AGENTS + 2 * a + 1] = e.goal(a, 1) / (float)ROWS - 0.5f;
    e.state[INSIDE + 5 * AGENTS + 2 * a] = e.speed[a] / c.max_v - 0.5f;
    e.state[INSIDE + 5 * AGENTS + 2 * a + 1] = e.turn[a] / c.max_w - 0.5f;
  });
  once(e, [=] { e.state[INSIDE + 7 * AGENTS] = (float)e.t / (float)e.max_steps - 0.5f; });
}
