// There is at most one thing in each of the rows 1 to 8. Hexadecimal digit k of `entities` (0 or 1), of `entity_x`, of
// `rightward` and of `gold` is about the thing in row k + 1: all rows move in a few operations.

#include "minatar.cuh"

constexpr int RAMP_INTERVAL = 100;

enum Channel { PLAYER, ENEMY, TRAIL, GOLD };

GZ void reset(Env e) {
  once(e, [=] {
    e.player_x = e.player_y = 5;
    e.entities = e.entity_x = e.rightward = e.gold = 0;
    e.spawn_speed = e.spawn_timer = 10;
    e.move_speed = e.move_timer = 5;
    e.ramp_timer = RAMP_INTERVAL;
    e.ramp_index = 0;
    e.last_action = NOOP;
  });
}

// Member n of a set of digits.
GZ u32 member(u32 set, u32 n) { return set & equal(set * ONES, (n + 1u) * ONES); }

GZ int size(u32 set) { return (int)(set * ONES >> 28); }

GZ u32 at(u32 entities, u32 entity_x, int x, int y) {
  return entities & equal(entity_x, (u32)x * ONES) & 1u << 4 * (y - 1 & 7);
}

GZ void step(Env e) {
  once(e, [=] {
    const int button = press(e);
    u32 entities = e.entities, entity_x = e.entity_x, rightward = e.rightward, gold = e.gold;

    const bool spawns = e.spawn_timer == 0;
    const u32 room = ~entities & ONES, place = member(room, (u32)random_int(e, 3, size(room)));
    const u32 fresh = spawns ? place : 0u, from_left = uniform(e, 1, 0.f, 1.f) < 0.5f ? fresh : 0u;
    entities |= fresh;
    rightward |= from_left;
    gold |= uniform(e, 2, 0.f, 1.f) < 1.f / 3.f ? fresh : 0u;
    entity_x |= 9u * (fresh & ~from_left);

    const int x = moved(e.player_x, button, LEFT, RIGHT, 0, 9), y = moved(e.player_y, button, UP, DOWN, 1, 8);
    const u32 met = at(entities, entity_x, x, y);
    entities &= ~(met & gold);

    const bool moves = e.move_timer == 0;
    const u32 leave = (rightward & equal(entity_x, 9u * ONES)) | (~rightward & equal(entity_x, 0u));
    const u32 stay = entities & ~leave;
    entities = moves ? stay : entities;
    entity_x = moves ? (entity_x & 15u * stay) + (stay & rightward) - (stay & ~rightward) : entity_x;
    const u32 met_then = at(entities, entity_x, x, y);  // again, where nothing moved
    entities &= ~(met_then & gold);

    e.reward = ((met & gold) != 0u ? 1.f : 0.f) + ((met_then & gold) != 0u ? 1.f : 0.f);
    e.terminated = ((met | met_then) & ~gold) != 0u;
    e.player_x = (i8)x;
    e.player_y = (i8)y;
    e.entities = entities;
    e.entity_x = entity_x & 15u * entities;
    e.rightward = rightward & entities;
    e.gold = gold & entities;

    const int spawn_speed = e.spawn_speed, move_speed = e.move_speed, ramp_timer = e.ramp_timer;
    e.spawn_timer = (i8)((spawns ? spawn_speed : (int)e.spawn_timer) - 1);
    e.move_timer = (i8)((moves ? move_speed : (int)e.move_timer) - 1);
    const bool counts = e.cfg.difficulty_ramping & ((spawn_speed > 1) | (move_speed > 1));
    const bool ramps = counts & (ramp_timer < 0);
    e.spawn_speed = (i8)(ramps ? max(spawn_speed - 1, 1) : spawn_speed);
    e.move_speed = (i8)(ramps ? max(move_speed - (e.ramp_index & 1), 1) : move_speed);
    e.ramp_timer = (i8)(ramps ? RAMP_INTERVAL : counts ? ramp_timer - 1 : ramp_timer);
    e.ramp_index = (i8)(ramps ? e.ramp_index + 1 : (int)e.ramp_index);
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    blank(e);
    mark(e, e.player_y, e.player_x, PLAYER);
    for (int k = 0; k < 8; ++k) {
      if (!(e.entities >> 4 * k & 1u)) continue;
      const int x = e.entity_x >> 4 * k & 15u;
      mark(e, k + 1, x, e.gold >> 4 * k & 1u ? GOLD : ENEMY);
      mark(e, k + 1, e.rightward >> 4 * k & 1u ? x - 1 : x + 1, TRAIL);
    }
  });
}
