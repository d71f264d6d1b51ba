#include "battle.cuh"

GZ int nearest_opponent(Env e, int a, Point to) {
  const int first = is_ally(a) ? ALLIES : 0;
  int nearest = first;
  float least = infinity();
  for (int b = first; b < first + opponents(a); ++b) {
    const float away = distance(place(e, b), to);
    nearest = away < least ? b : nearest;
    least = min(away, least);
  }
  return nearest;
}

GZ void act(Env e, int a) {
  const bool moves = uniform(e, a, MOVES_OR_SHOOTS, 0.f, 1.f) < e.action(a, 1);
  const bool again = uniform(e, a, SHOOTS_AGAIN, 0.f, 1.f) >= e.action(a, 0);
  float sine, cosine;
  sincos(e.action(a, 3) * TWO_PI, sine, cosine);
  const float x = e.action(a, 2) * cosine, y = e.action(a, 2) * sine;
  e.move_x[a] = moves ? x : 0.f;
  e.move_y[a] = moves ? y : 0.f;
  if (again & !moves) return;
  const int b = nearest_opponent(e, a, Point{e.x[a] + x, e.y[a] + y});
  e.attack[a] = moves ? 0 : MOVES + (is_ally(a) ? b - ALLIES : ALLIES - 1 - b);
}

GZ void write_masks(Env) {}
