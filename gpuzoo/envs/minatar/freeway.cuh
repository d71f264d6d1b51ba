// Hexadecimal digit k of `car_x`, `car_timer`, `car_speed` and `rightward` (0 or 1) is about the car in row k + 1.

#include "minatar.cuh"

constexpr int PLAYER_SPEED = 3, TIME_LIMIT = 2500, COLUMN = 4;

enum Channel { CHICKEN, CAR, SPEED };  // and more channels for the other speeds

// The four decimal digits of a number as hexadecimal ones.
GZ u32 decimal(int n) { return (u32)(n + 6 * (n / 10) + 6 * 16 * (n / 100) + 6 * 256 * (n / 1000)); }

// New speeds and directions for all cars: a digit is 5 * direction + speed - 1.
GZ u32 traffic(Env e) { return decimal(random_int(e, 1, 10000)) | decimal(random_int(e, 2, 10000)) << 16; }

GZ u32 at_least_five(u32 digits) { return digits + 3u * ONES >> 3 & ONES; }

GZ void reset(Env e) {
  once(e, [=] {
    const u32 cars = traffic(e), rightward = at_least_five(cars);
    e.car_x = 0;
    e.rightward = rightward;
    e.car_speed = e.car_timer = cars - 5u * rightward + ONES;
    e.pos = 9;
    e.move_timer = PLAYER_SPEED;
    e.last_action = NOOP;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    const int button = press(e), old_timer = e.move_timer;
    const int way = ((button == DOWN) - (button == UP)) * (old_timer == 0), walked = clamp(e.pos + way, 0, 9);
    const bool crossed = walked == 0;
    const int pos = walked + 9 * crossed, timer = way != 0 ? PLAYER_SPEED : old_timer;

    const u32 cars = traffic(e), turned = at_least_five(cars), fresh = cars - 5u * turned + ONES;
    const u32 all = 0u - (u32)crossed, rightward = (turned & all) | (e.rightward & ~all);
    const u32 speed = (fresh & all) | (e.car_speed & ~all), wait = (fresh & all) | (e.car_timer & ~all), x = e.car_x;
    const u32 due = equal(wait, 0u), right = due & rightward, left = due & ~rightward;
    const u32 ahead = x + right + 10u * (left & equal(x, 0u)) - left - 10u * (right & equal(x, 9u * ONES));
    const u32 lane = (u32)(pos < 9) << 4 * (pos - 1 & 7);
    const bool hit = ((equal(x, COLUMN * ONES) | equal(ahead, COLUMN * ONES)) & lane) != 0u;

    e.car_x = ahead;
    e.car_timer = wait - (ONES ^ due) + (15u * due & speed);
    e.car_speed = speed;
    e.rightward = rightward;
    e.pos = (i8)(hit ? 9 : pos);
    e.move_timer = (i8)max(timer - 1, 0);
    e.reward = crossed ? 1.f : 0.f;
    e.terminated = e.t > TIME_LIMIT;
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    blank(e);
    mark(e, e.pos, COLUMN, CHICKEN);
    for (int k = 0; k < 8; ++k) {
      const int x = e.car_x >> 4 * k & 15u, speed = e.car_speed >> 4 * k & 15u;
      const int behind = e.rightward >> 4 * k & 1u ? (x == 0 ? 9 : x - 1) : (x == 9 ? 0 : x + 1);
      mark(e, k + 1, x, CAR);
      mark(e, k + 1, behind, SPEED + min(speed, 5) - 1);
    }
  });
}
