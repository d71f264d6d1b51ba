// Brick 10 * (row - 1) + column of rows 1 to 3 is a bit of `bricks`. Directions of the ball: 0 left and up, 1 right and
// up, 2 right and down, 3 left and down; so ^ 1 mirrors it at a wall, ^ 3 at a ceiling, and ^ 2 sends it back.

#include "minatar.cuh"

constexpr u32 WALL = 0x3fffffffu;

enum Channel { PADDLE, BALL, TRAIL, BRICK };

GZ void reset(Env e) {
  once(e, [=] {
    const int right = random_int(e, 0, 2);
    e.ball_x = e.last_x = (i8)(9 * right);
    e.ball_y = e.last_y = 3;
    e.ball_dir = (i8)(2 + right);
    e.pos = 4;
    e.bricks = WALL;
    e.strike = 0;
    e.last_action = NOOP;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    const int pos = moved(e.pos, press(e), LEFT, RIGHT, 0, 9), old_x = e.ball_x, old_y = e.ball_y, old_dir = e.ball_dir;
    const int straight = old_x + ((old_dir == 1) | (old_dir == 2) ? 1 : -1), x = clamp(straight, 0, 9);
    const int ahead = old_y + (old_dir >= 2 ? 1 : -1);
    const u32 brick = (u32)((ahead >= 1) & (ahead <= 3)) << (10 * (ahead - 1) + x & 31);
    const bool hits = (e.bricks & brick) != 0;
    const bool breaks = hits & !e.strike;
    const bool low = ahead >= 9, under = low & (old_x == pos), edge = low & !under & (x == pos);
    const bool bounces = breaks | under | edge;
    e.reward = breaks ? 1.f : 0.f;
    e.terminated = low & !bounces;
    e.ball_dir = (i8)(old_dir ^ (x != straight) ^ ((ahead < 0) | breaks | under ? 3 : edge ? 2 : 0));
    e.bricks = breaks ? e.bricks & ~brick : low & (e.bricks == 0) ? WALL : e.bricks;
    e.strike = hits;
    e.pos = (i8)pos;
    e.last_x = (i8)old_x;
    e.last_y = (i8)old_y;
    e.ball_x = (i8)x;
    e.ball_y = (i8)(bounces ? old_y : max(ahead, 0));
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    blank(e);
    const auto rows = words(e.observation) + 10;
    const u32 bricks = e.bricks;
    for (int k = 0; k < 30; ++k) rows[k] = (bricks >> k & 1u) << 8 * BRICK;
    mark(e, 9, e.pos, PADDLE);
    mark(e, e.ball_y, e.ball_x, BALL);
    mark(e, e.last_y, e.last_x, TRAIL);
  });
}
