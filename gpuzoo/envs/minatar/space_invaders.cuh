// A picture of 10 x 10 bits is two numbers: bit 10 * row + column of `upper` is the cell in row 0 to 4, bit
// 10 * (row - 5) + column of `lower` that in row 5 to 9.

#include "minatar.cuh"

constexpr int SHOT_COOL_DOWN = 5, ENEMY_MOVE_INTERVAL = 12, ENEMY_SHOT_INTERVAL = 10;
constexpr u64 HALF = (1ull << 50) - 1ull, COLUMN = 0x10040100401ull;
constexpr u64 WAVE = 0xfcull * 0x40100401ull;  // rows 0 to 3, columns 2 to 7

enum Channel { CANNON, ALIEN, ALIEN_LEFT, ALIEN_RIGHT, FRIENDLY_BULLET, ENEMY_BULLET };

struct Bits {
  u64 upper, lower;
};

GZ u64 count_bytes(u64 x) {
  x -= x >> 1 & 0x5555555555555555ull;
  x = (x & 0x3333333333333333ull) + (x >> 2 & 0x3333333333333333ull);
  return (x & 0x0f0f0f0f0f0f0f0full) + (x >> 4 & 0x0f0f0f0f0f0f0f0full);
}

GZ int count(Bits a) {
  u64 x = count_bytes(a.upper) + count_bytes(a.lower);
  x += x >> 32;
  x += x >> 16;
  return (int)(x + (x >> 8) & 0xffull);
}

// The lowest one of those bits that are in one column.
GZ u64 lowest(u64 x) {
  x |= x >> 10;
  x |= x >> 20 | x >> 40;
  return x & ~(x >> 10);
}

// The column with an alien that is the nearest to `pos`, the left one of two, as a bit.
GZ u32 nearest(Bits aliens, int pos) {
  u64 any = aliens.upper | aliens.lower;
  any |= any >> 10;
  any |= any >> 20 | any >> 40;
  const u32 columns = (u32)any & 1023u, here = 1u << pos;
  u32 left = columns & 2u * here - 1u, right = columns & 0u - here;
  left |= left >> 1;
  left |= left >> 2;
  left |= left >> 4;
  left |= left >> 8;
  left ^= left >> 1;
  right &= 0u - right;
  return (right == 0u) | (left * right >= here * here) ? left : right;
}

GZ void reset(Env e) {
  once(e, [=] {
    e.aliens_upper = WAVE;
    e.aliens_lower = e.shots_upper = e.shots_lower = e.bombs_upper = e.bombs_lower = 0;
    e.pos = 5;
    e.alien_dir = -1;
    e.enemy_move_interval = e.alien_move_timer = ENEMY_MOVE_INTERVAL;
    e.alien_shot_timer = ENEMY_SHOT_INTERVAL;
    e.shot_timer = 0;
    e.ramp_index = 0;
    e.last_action = NOOP;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    const int button = press(e), pos = moved(e.pos, button, LEFT, RIGHT, 0, 9), shot_timer = e.shot_timer;
    Bits aliens = {e.aliens_upper, e.aliens_lower}, shots, bombs;
    const u32 here = 1u << pos, fires = (button == FIRE) & (shot_timer == 0) ? here : 0u;
    const u64 base = (u64)here << 40;  // the cell of the cannon

    shots.upper = e.shots_upper >> 10 | (e.shots_lower & 1023ull) << 40;
    shots.lower = e.shots_lower >> 10 | (u64)fires << 30;
    bombs.upper = e.bombs_upper << 10 & HALF;
    bombs.lower = (e.bombs_lower << 10 & HALF) | e.bombs_upper >> 40;
    u64 deadly = (bombs.lower | aliens.lower) & base;

    const int dir = e.alien_dir;
    const u64 moves = 0ull - (u64)(e.alien_move_timer == 0), to_right = 0ull - (u64)(dir > 0);
    const u64 border = ((COLUMN << 9 & to_right) | (COLUMN & ~to_right)) & (aliens.upper | aliens.lower);
    const u64 falls = moves & 0ull - (u64)(border != 0ull), slides = moves & ~falls;
    const u64 side_upper = (aliens.upper << 1 & to_right) | (aliens.upper >> 1 & ~to_right);
    const u64 side_lower = (aliens.lower << 1 & to_right) | (aliens.lower >> 1 & ~to_right);
    const u64 down_upper = (aliens.upper << 10 & HALF) | aliens.lower >> 40;
    const u64 down_lower = (aliens.lower << 10 & HALF) | aliens.upper >> 40;
    const int move_timer = moves != 0ull ? min(count(aliens), (int)e.enemy_move_interval) : (int)e.alien_move_timer;
    deadly |= falls & aliens.lower >> 40;
    aliens.upper = (falls & down_upper) | (slides & side_upper) | (~moves & aliens.upper);
    aliens.lower = (falls & down_lower) | (slides & side_lower) | (~moves & aliens.lower);
    deadly |= aliens.lower & base;

    const bool drops = e.alien_shot_timer == 0;
    const u64 line = COLUMN * nearest(aliens, pos) & 0ull - (u64)drops;
    const u64 low = aliens.lower & line, high = aliens.upper & line;
    bombs.lower |= lowest(low);
    bombs.upper |= lowest(high) & 0ull - (u64)(low == 0ull);

    const Bits hits = {aliens.upper & shots.upper, aliens.lower & shots.lower};
    aliens.upper ^= hits.upper;
    aliens.lower ^= hits.lower;
    const bool cleared = (aliens.upper | aliens.lower) == 0ull, ramps = e.cfg.difficulty_ramping & cleared;
    const int interval = e.enemy_move_interval, faster = (int)ramps & (int)(interval > 6);

    e.reward = (float)count(hits);
    e.terminated = deadly != 0ull;
    e.aliens_upper = aliens.upper | (WAVE & 0ull - (u64)cleared);
    e.aliens_lower = aliens.lower;
    e.shots_upper = shots.upper ^ hits.upper;
    e.shots_lower = shots.lower ^ hits.lower;
    e.bombs_upper = bombs.upper;
    e.bombs_lower = bombs.lower;
    e.pos = (i8)pos;
    e.alien_dir = (i8)(falls != 0ull ? -dir : dir);
    e.enemy_move_interval = (i8)(interval - faster);
    e.ramp_index = (i8)(e.ramp_index + faster);
    e.shot_timer = (i8)max((fires != 0u ? SHOT_COOL_DOWN : shot_timer) - 1, 0);
    e.alien_move_timer = (i8)(move_timer - 1);
    e.alien_shot_timer = (i8)((drops ? ENEMY_SHOT_INTERVAL : (int)e.alien_shot_timer) - 1);
  });
}

// Two neighbouring cells are three words.
template <class Words> GZ void draw(Words out, u64 aliens, u64 shots, u64 bombs, u32 channels) {
  for (int k = 0; k < 25; ++k) {
    const u32 a = (u32)(aliens >> 2 * k), s = (u32)(shots >> 2 * k), b = (u32)(bombs >> 2 * k);
    out[3 * k] = (a & 1u) * channels;
    out[3 * k + 1] = (s & 1u) | (b & 1u) << 8 | (a >> 1 & 1u) << 24;
    out[3 * k + 2] = (a >> 1 & 1u) * (channels >> 16) | (s >> 1 & 1u) << 16 | (b >> 1 & 1u) << 24;
  }
}

GZ void observe(Env e) {
  once(e, [=] {
    const auto out = words(e.observation);
    const u32 channels = 1u << 8 * ALIEN | 1u << 8 * (e.alien_dir < 0 ? ALIEN_LEFT : ALIEN_RIGHT);
    draw(out, e.aliens_upper, e.shots_upper, e.bombs_upper, channels);
    draw(out + 75, e.aliens_lower, e.shots_lower, e.bombs_lower, channels);
    mark(e, 9, e.pos, CANNON);
  });
}
