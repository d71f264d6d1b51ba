// Dietterich, "Hierarchical reinforcement learning with the MAXQ value function decomposition" (2000).
// Stops and passengers: 0 red, 1 green, 2 yellow, 3 blue; a passenger 4 rides in the taxi.
#include "masks.cuh"

constexpr int SOUTH = 0, NORTH = 1, EAST = 2, WEST = 3, PICKUP = 4, DROPOFF = 5;
constexpr int RIDING = 4;

// The lowest bit is set if the way is free. WAYS_SOUTH and so on have a bit for each place.
GZ int way(int place, int direction) {
  int second = -(direction & 1);
  int ways = choose(-(direction >> 1), choose(second, WAYS_WEST, WAYS_EAST), choose(second, WAYS_NORTH, WAYS_SOUTH));
  return ways >> place;
}

// To the left of a direction; the other lateral one has another lowest bit.
GZ int left_of(int direction) { return direction ^ (2 | direction >> 1); }

GZ void reset(Env e) {
  once(e, [=] {
    e.row = random_int(e, 0, SIZE);
    e.column = random_int(e, 1, SIZE);
    e.passenger = random_int(e, 2, 4);
    e.destination = (e.passenger + 1 + random_int(e, 3, 3)) & 3;
    e.fickle_step = e.cfg.fickle_passenger && uniform(e, 4, 0.f, 1.f) < e.cfg.fickle_probability;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    int action = e.action, direction = action & 3, place = SIZE * e.row + e.column;
    int free = way(place, direction);
    if (e.cfg.is_rainy) {
      float u = uniform(e, 0, 0.f, 1.f);
      float lateral = 0.5f * (1.f - e.cfg.rainy_probability);
      int drifts = -(u >= e.cfg.rainy_probability), right = u >= e.cfg.rainy_probability + lateral;
      direction = choose(drifts, left_of(direction) ^ right, direction);
      free = free & way(place, direction);
    }
    int driving = less(action, PICKUP) & -(free & 1);
    int stop = (1 & equal(place, STOP_1)) | (2 & equal(place, STOP_2)) | (3 & equal(place, STOP_3));
    int at_stop = equal(place, STOP_0) | less(0, stop), riding = equal(e.passenger, RIDING);
    int gets_in = equal(action, PICKUP) & at_stop & equal(e.passenger, stop);
    int gets_out = equal(action, DROPOFF) & at_stop & riding;
    int arrives = gets_out & equal(stop, e.destination);
    int refused = less(WEST, action) & ~gets_in & ~gets_out;
    e.passenger = choose(gets_in, RIDING, choose(gets_out, stop, e.passenger));
    e.row += driving & (equal(direction, NORTH) - equal(direction, SOUTH));
    e.column += driving & (equal(direction, WEST) - equal(direction, EAST));
    if (e.cfg.fickle_passenger) {
      int changes = -e.fickle_step & riding & driving;
      e.destination = choose(changes, (e.destination + 1 + random_int(e, 1, 3)) & 3, e.destination);
      e.fickle_step += changes;
    }
    e.reward = (float)(-1 + (21 & arrives) - (9 & refused));
    e.terminated = 1 & arrives;
  });
}

GZ void observe(Env e) {
  once(e, [=] { e.observation[0] = ((SIZE * e.row + e.column) * 5 + e.passenger) * 4 + e.destination; });
}
