// Things are numbers whose hexadecimal digits are, from the last one: column, row, direction (1 is right), steps until it
// moves, and for enemies 0 for a fish, or 1 + steps until a submarine shoots. Lists are in the order of arrival and, as in
// the original, are walked backwards. What is taken out of a list is the first thing in it that is equal; if that is an
// earlier one, the present one moves to the place before and comes up once more. (An enemy that runs into a bullet has no
// equal: the bullet would have hit that one before.)

#include "minatar.cuh"

constexpr int MAX_OXYGEN = 200, DIVER_SPAWN_SPEED = 30, SHOT_COOL_DOWN = 5;
constexpr int ENEMY_SHOT_INTERVAL = 10, DIVER_MOVE_INTERVAL = 5, MAX_DIVERS = 6;
constexpr u32 CELL = 0xffu, RIGHTWARD = 0x100u, TIMER = 0x1000u, SUB = 0x10000u;

enum Channel {
  SUB_FRONT, SUB_BACK, FRIENDLY_BULLET, TRAIL, ENEMY_BULLET, ENEMY_FISH, ENEMY_SUB, OXYGEN_GAUGE, DIVER_GAUGE, DIVER
};

GZ u32 cell(int x, int y) { return (u32)(y << 4 | x); }
GZ int column(u32 thing) { return (int)(thing & 15u); }
GZ int row(u32 thing) { return (int)(thing >> 4 & 15u); }
GZ int ahead(u32 thing) { return column(thing) + (thing & RIGHTWARD ? 1 : -1); }
GZ bool inside(int x) { return (u32)x < 10u; }
GZ u32 moved_to(u32 thing, int x) { return (thing & ~15u) | ((u32)x & 15u); }
GZ int timer(u32 thing) { return (int)(thing >> 12 & 15u); }
GZ bool is_sub(u32 thing) { return thing >= SUB; }

template <class List> GZ int find(List list, int n, u32 thing) {
  int k = 0;
  while (k < n && list[k] != thing) ++k;
  return k;
}

template <class List> GZ int find_cell(List list, int n, u32 there) {
  int k = 0;
  while (k < n && (list[k] & CELL) != there) ++k;
  return k;
}

// Both give the new length.
template <class List> GZ int without(List list, int n, int k) {
  GZ_ROLLED
  for (; k + 1 < n; ++k) list[k] = list[k + 1];
  list[n - 1] = 0;
  return n - 1;
}

template <class List> GZ int with(Env e, List list, int n, int capacity, u32 thing) {
  if (n < capacity)
    list[n++] = thing;
  else
    ++e.overflows;
  return n;
}

GZ int find_enemy(Env e, int n, u32 there, bool sub) {
  int k = 0;
  while (k < n && ((e.enemies[k] & CELL) != there || is_sub(e.enemies[k]) != sub)) ++k;
  return k;
}

GZ void spawn_enemy(Env e) {
  const int draw = random_int(e, 1, 48), y = 1 + draw / 6, n = e.num_enemies;
  const u32 rightward = draw & 1 ? RIGHTWARD : 0u;
  for (int k = 0; k < n; ++k)
    if (row(e.enemies[k]) == y && (e.enemies[k] & RIGHTWARD) != rightward) return;
  const u32 sub = draw / 2 % 3 == 0 ? SUB * (1 + ENEMY_SHOT_INTERVAL) : 0u;
  const u32 enemy = cell(rightward ? 0 : 9, y) | rightward | TIMER * (u32)e.move_speed | sub;
  e.num_enemies = (i8)with(e, e.enemies, n, ENEMIES, enemy);
}

GZ void spawn_diver(Env e) {
  const int draw = random_int(e, 2, 16), y = 1 + draw / 2;
  const u32 rightward = draw & 1 ? RIGHTWARD : 0u;
  const u32 diver = cell(rightward ? 0 : 9, y) | rightward | TIMER * DIVER_MOVE_INTERVAL;
  e.num_divers = (i8)with(e, e.divers, e.num_divers, DIVERS, diver);
}

// The submarine's bullets, and how many enemies they hit.
GZ int move_shots(Env e) {
  int n = e.num_shots, enemies = e.num_enemies, hits = 0;
  for (int i = n - 1; i >= 0; --i) {
    const int x = ahead(e.shots[i]);
    if (!inside(x)) {
      n = without(e.shots, n, i);
      continue;
    }
    const u32 shot = moved_to(e.shots[i], x);
    e.shots[i] = shot;
    int hit = find_enemy(e, enemies, shot & CELL, false);
    if (hit == enemies) hit = find_enemy(e, enemies, shot & CELL, true);
    if (hit < enemies) {
      enemies = without(e.enemies, enemies, hit);
      n = without(e.shots, n, find(e.shots, n, shot));
      ++hits;
    }
  }
  e.num_shots = (i8)n;
  e.num_enemies = (i8)enemies;
  return hits;
}

GZ void move_divers(Env e, u32 here) {
  int n = e.num_divers, rescued = e.diver_count;
  for (int i = n - 1; i >= 0; --i) {
    u32 diver = e.divers[i];
    bool met = (diver & CELL) == here && rescued < MAX_DIVERS;
    if (!met && timer(diver) > 0) {
      e.divers[i] = diver - TIMER;
      continue;
    }
    if (!met) {
      const int x = ahead(diver);
      if (!inside(x)) {
        n = without(e.divers, n, i);
        continue;
      }
      diver = moved_to(diver, x) | TIMER * DIVER_MOVE_INTERVAL;
      e.divers[i] = diver;
      met = (diver & CELL) == here && rescued < MAX_DIVERS;
    }
    if (met) {
      n = without(e.divers, n, find(e.divers, n, diver));
      ++rescued;
    }
  }
  e.num_divers = (i8)n;
  e.diver_count = rescued;
}

struct Outcome {
  int hits;
  bool over;
};

// The enemies of one kind: how many run into a bullet, and whether one meets the submarine.
GZ Outcome move_enemies(Env e, u32 here, bool subs) {
  int n = e.num_enemies, shots = e.num_shots;
  Outcome out = {0, false};
  for (int i = n - 1; i >= 0; --i) {
    u32 enemy = e.enemies[i];
    if (is_sub(enemy) != subs) continue;
    bool seen = true, hit = false;
    out.over |= (enemy & CELL) == here;
    if (timer(enemy) > 0) {
      enemy -= TIMER;
    } else {
      const int x = ahead(enemy);
      seen = inside(x);
      enemy = moved_to(enemy, x) | TIMER * (u32)e.move_speed;
      const bool met = (enemy & CELL) == here;
      const int shot = met | !seen ? shots : find_cell(e.shots, shots, enemy & CELL);
      hit = shot < shots;
      if (hit) shots = without(e.shots, shots, shot);
      out.over |= seen & met;
      out.hits += hit;
    }
    if (subs) {
      const bool shoots = enemy < 2u * SUB;
      if (shoots & seen) e.num_bombs = (i8)with(e, e.bombs, e.num_bombs, BOMBS, enemy & (CELL | RIGHTWARD));
      enemy = shoots ? enemy + SUB * ENEMY_SHOT_INTERVAL : enemy - SUB;
    }
    if (hit | !seen)
      n = without(e.enemies, n, i);
    else
      e.enemies[i] = enemy;
  }
  e.num_enemies = (i8)n;
  e.num_shots = (i8)shots;
  return out;
}

// The bullets of enemies, and whether one meets the submarine.
GZ bool move_bombs(Env e, u32 here) {
  int n = e.num_bombs;
  bool over = false;
  for (int i = n - 1; i >= 0; --i) {
    const u32 bomb = e.bombs[i];
    const int x = ahead(bomb);
    over |= (bomb & CELL) == here;
    if (!inside(x)) {
      n = without(e.bombs, n, i);
      continue;
    }
    e.bombs[i] = moved_to(bomb, x);
    over |= (e.bombs[i] & CELL) == here;
  }
  e.num_bombs = (i8)n;
  return over;
}

// At the surface with divers: air, and a reward for six of them.
GZ int surface(Env e) {
  const int reward = e.diver_count == MAX_DIVERS ? e.oxygen * 10 / MAX_OXYGEN : 0;
  e.surface = 1;
  e.diver_count = e.diver_count == MAX_DIVERS ? -1 : e.diver_count - 1;
  e.oxygen = MAX_OXYGEN;
  if (e.cfg.difficulty_ramping && (e.e_spawn_speed > 1 || e.move_speed > 2)) {
    if (e.move_speed > 2 && e.ramp_index % 2) --e.move_speed;
    if (e.e_spawn_speed > 1) --e.e_spawn_speed;
    ++e.ramp_index;
  }
  return reward;
}

GZ void reset(Env e) {
  once(e, [=] {
    e.sub_x = 5;
    e.sub_y = e.sub_or = 0;
    e.oxygen = MAX_OXYGEN;
    e.diver_count = 0;
    e.num_shots = e.num_bombs = e.num_enemies = e.num_divers = 0;
    for (int k = 0; k < SHOTS; ++k) e.shots[k] = 0;
    for (int k = 0; k < BOMBS; ++k) e.bombs[k] = 0;
    for (int k = 0; k < ENEMIES; ++k) e.enemies[k] = 0;
    for (int k = 0; k < DIVERS; ++k) e.divers[k] = 0;
    e.overflows = 0;
    e.e_spawn_speed = e.e_spawn_timer = 20;
    e.d_spawn_timer = DIVER_SPAWN_SPEED;
    e.move_speed = 5;
    e.ramp_index = e.shot_timer = 0;
    e.surface = 1;
    e.last_action = NOOP;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    const int button = press(e);
    e.num_shots = (i8)clamp(e.num_shots, 0, SHOTS);
    e.num_bombs = (i8)clamp(e.num_bombs, 0, BOMBS);
    e.num_enemies = (i8)clamp(e.num_enemies, 0, ENEMIES);
    e.num_divers = (i8)clamp(e.num_divers, 0, DIVERS);
    if (e.e_spawn_timer == 0) {
      spawn_enemy(e);
      e.e_spawn_timer = e.e_spawn_speed;
    }
    if (e.d_spawn_timer == 0) {
      spawn_diver(e);
      e.d_spawn_timer = DIVER_SPAWN_SPEED;
    }

    if (button == FIRE && e.shot_timer == 0) {
      const u32 shot = cell(e.sub_x, e.sub_y) | (e.sub_or ? RIGHTWARD : 0u);
      e.num_shots = (i8)with(e, e.shots, e.num_shots, SHOTS, shot);
      e.shot_timer = SHOT_COOL_DOWN;
    }
    e.sub_x = (i8)moved(e.sub_x, button, LEFT, RIGHT, 0, 9);
    e.sub_y = (i8)moved(e.sub_y, button, UP, DOWN, 0, 8);
    e.sub_or = button == LEFT ? 0 : button == RIGHT ? 1 : e.sub_or;
    const u32 here = cell(e.sub_x, e.sub_y);

    int reward = move_shots(e);
    move_divers(e, here);
    const Outcome subs = move_enemies(e, here, true);
    const bool bombed = move_bombs(e, here);
    const Outcome fish = move_enemies(e, here, false);
    reward += subs.hits + fish.hits;

    e.e_spawn_timer = (i8)max(e.e_spawn_timer - 1, 0);
    e.d_spawn_timer = (i8)max(e.d_spawn_timer - 1, 0);
    e.shot_timer = (i8)max(e.shot_timer - 1, 0);
    bool over = subs.over || bombed || fish.over || e.oxygen <= 0;
    if (e.sub_y > 0) {
      --e.oxygen;
      e.surface = 0;
    } else if (!e.surface) {
      if (e.diver_count == 0)
        over = true;
      else
        reward += surface(e);
    }
    e.reward = (float)reward;
    e.terminated = over;
  });
}

GZ void mark_thing(Env e, u32 thing, int channel) {
  mark(e, row(thing), column(thing), channel);
  mark(e, row(thing), column(thing) + (thing & RIGHTWARD ? -1 : 1), TRAIL);
}

GZ void observe(Env e) {
  once(e, [=] {
    blank(e);
    mark(e, e.sub_y, e.sub_x, SUB_FRONT);
    mark(e, e.sub_y, e.sub_or ? e.sub_x - 1 : e.sub_x + 1, SUB_BACK);
    const int oxygen = clamp(e.oxygen * 10 / MAX_OXYGEN, 0, 10), rescued = clamp(e.diver_count, 0, 9);
    for (int x = 0; x < oxygen; ++x) mark(e, 9, x, OXYGEN_GAUGE);
    for (int x = 9 - rescued; x < 9; ++x) mark(e, 9, x, DIVER_GAUGE);
    const int shots = min(e.num_shots, SHOTS), bombs = min(e.num_bombs, BOMBS);
    const int enemies = min(e.num_enemies, ENEMIES), divers = min(e.num_divers, DIVERS);
    for (int k = 0; k < shots; ++k) mark(e, row(e.shots[k]), column(e.shots[k]), FRIENDLY_BULLET);
    for (int k = 0; k < bombs; ++k) mark(e, row(e.bombs[k]), column(e.bombs[k]), ENEMY_BULLET);
    for (int k = 0; k < enemies; ++k) mark_thing(e, e.enemies[k], is_sub(e.enemies[k]) ? ENEMY_SUB : ENEMY_FISH);
    for (int k = 0; k < divers; ++k) mark_thing(e, e.divers[k], DIVER);
  });
}
