#include "particle.cuh"

GZ void reset(Env e) {
  once(e, [=] {
    e.x = uniform(e, 0, -1.f, 1.f);
    e.y = uniform(e, 1, -1.f, 1.f);
    e.landmark_x = uniform(e, 2, -1.f, 1.f);
    e.landmark_y = uniform(e, 3, -1.f, 1.f);
    e.vx = e.vy = 0.f;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    Vec position = {e.x, e.y}, velocity = {e.vx, e.vy};
    move(position, velocity, STRENGTH * motor(e.action), 1.f, NO_LIMIT);
    e.x = position.x;
    e.y = position.y;
    e.vx = velocity.x;
    e.vy = velocity.y;
    e.reward = -squared(position - Vec{e.landmark_x, e.landmark_y});
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    e.observation[0] = e.vx;
    e.observation[1] = e.vy;
    e.observation[2] = e.landmark_x - e.x;
    e.observation[3] = e.landmark_y - e.y;
  });
}
