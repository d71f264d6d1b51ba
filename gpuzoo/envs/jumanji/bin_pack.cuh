#include "factored.cuh"
#include "sets.cuh"
#include "sized.cuh"

constexpr int ITEMS = LARGEST, SPACES = Config::max_num_ems, SEEN = Config::obs_num_ems;
constexpr int DIRECTIONS = 6, AXES = 3, TOO_LONG = 0x7fff;

// A space: from (x1, y1, z1) to (x2, y2, z2).
struct Space {
  int x1, x2, y1, y2, z1, z2;
};

template <class Spaces> GZ Space space_at(Spaces spaces, int k) {
  return {spaces(k, 0), spaces(k, 1), spaces(k, 2), spaces(k, 3), spaces(k, 4), spaces(k, 5)};
}

template <class Spaces> GZ void put_space(Spaces spaces, int k, Space s) {
  spaces(k, 0) = (i16)s.x1;
  spaces(k, 1) = (i16)s.x2;
  spaces(k, 2) = (i16)s.y1;
  spaces(k, 3) = (i16)s.y2;
  spaces(k, 4) = (i16)s.z1;
  spaces(k, 5) = (i16)s.z2;
}

GZ bool is_empty(Space s) { return (s.x1 >= s.x2) | (s.y1 >= s.y2) | (s.z1 >= s.z2); }

// What of a space lies below (0, 2, 4) or above (1, 3, 5) an item, along x, y or z.
GZ Space beside(Space s, Space item, int direction) {
  switch (direction) {
    case 0: s.x2 = min(s.x2, item.x1); break;
    case 1: s.x1 = max(s.x1, item.x2); break;
    case 2: s.y2 = min(s.y2, item.y1); break;
    case 3: s.y1 = max(s.y1, item.y2); break;
    case 4: s.z2 = min(s.z2, item.z1); break;
    default: s.z1 = max(s.z1, item.z2); break;
  }
  return s;
}

GZ Space container() { return {0, Config::container_x, 0, Config::container_y, 0, Config::container_z}; }

GZ float volume_of(Space s) { return (float)(s.x2 - s.x1) * (float)(s.y2 - s.y1) * (float)(s.z2 - s.z1); }

GZ float volume_of_item(Env e, int item) {
  return (float)e.items(item, 0) * (float)e.items(item, 1) * (float)e.items(item, 2);
}

// The largest spaces first, and what fits into them.
GZ bool look(Env e) {
  int last = 0;  // spaces that do not exist come last
  GZ_ROLLED
  for (int k = 0; k < SPACES; ++k) {
    e.volume[k] = e.ems_mask[k] ? volume_of(space_at(e.ems, k)) : 0.f;
    last += (int)(e.ems_mask[k] != 0);
  }
  GZ_ROLLED
  for (int k = 0; k < SPACES; ++k) {
    const float volume = e.volume[k];
    int rank = 0;
    if (e.ems_mask[k])
      for (int other = 0; other < SPACES; ++other)
        rank += (int)((e.volume[other] > volume) | ((e.volume[other] == volume) & (other < k)));
    else
      rank = last++;
    e.sorted_ems[rank] = (i16)k;
  }
  GZ_ROLLED
  for (int slot = 0; slot < SLOTS; ++slot) {
    const int item = min(slot, ITEMS - 1);
    const bool left = slot < ITEMS && e.items_mask[item] && !e.items_placed[item];
    for (int axis = 0; axis < AXES; ++axis) e.sides(axis, slot) = left ? e.items(item, axis) : (i16)TOO_LONG;
  }
  u64 any = 0ull;
  GZ_ROLLED
  for (int k = 0; k < SEEN; ++k) {
    const int number = e.sorted_ems[k];
    const Space s = space_at(e.ems, number);
    const i16 x = (i16)(s.x2 - s.x1), y = (i16)(s.y2 - s.y1), z = (i16)(s.z2 - s.z1);
    GZ_ROLLED
    for (int w = 0; w < WORDS; ++w) {
      const u64 fits = !e.ems_mask[number] ? 0ull : bits_where<SLOTS / WORDS>([=](int k) {
        return (e.sides(0, 64 * w + k) <= x) & (e.sides(1, 64 * w + k) <= y) & (e.sides(2, 64 * w + k) <= z);
      });
      e.fitting(k, w) = fits;
      any |= fits;
    }
  }
  return any != 0ull;
}

GZ int free_item(Env e) {
  GZ_ROLLED
  for (int item = 0; item < ITEMS; ++item)
    if (!e.items_mask[item]) return item;
  return 0;
}

// Splits an item along an axis: `from` and `to` are where a new item begins and ends.
GZ void split_off(Env e, int item, int axis, int from, int to) {
  const int other = free_item(e);
  for (int k = 0; k < DIRECTIONS; ++k) e.parts(other, k) = e.parts(item, k);
  e.parts(other, 2 * axis) = (i16)from;
  e.parts(other, 2 * axis + 1) = (i16)to;
  e.items_mask[other] = true;
}

GZ int drawn_item(Env e, int axis, int tried) {
  int total = 0;
  GZ_ROLLED
  for (int item = 0; item < ITEMS; ++item)
    total += e.items_mask[item] ? e.parts(item, 2 * axis + 1) - e.parts(item, 2 * axis) : 0;
  int left = random_int(e, tried, 1, total);
  GZ_ROLLED
  for (int item = 0; item < ITEMS; ++item) {
    left -= e.items_mask[item] ? e.parts(item, 2 * axis + 1) - e.parts(item, 2 * axis) : 0;
    if (left < 0) return item;
  }
  return 0;
}

GZ void split(Env e, int tried) {
  const int axis = random_int(e, tried, 0, AXES), item = drawn_item(e, axis, tried);
  const int from = e.parts(item, 2 * axis), to = e.parts(item, 2 * axis + 1), length = to - from;
  if (uniform(e, tried, 2, 0.f, 1.f) < e.cfg.prob_split_one_item) {
    const int margin = (int)(e.cfg.split_eps * (float)length), span = length - 2 * margin;
    const int at = from + margin + (span > 0 ? random_int(e, tried, 3, span) : 0);
    split_off(e, item, axis, at, to);
    e.parts(item, 2 * axis + 1) = (i16)at;
  } else {
    const int number = 1 + random_int(e, tried, 4, Config::split_num_same_items);
    e.parts(item, 2 * axis + 1) = (i16)(from + (int)((float)length / (float)number));
    GZ_ROLLED
    for (int k = 1; k < number; ++k)
      split_off(e, item, axis, from + (int)((float)(k * length) / (float)number),
                from + (int)((float)((k + 1) * length) / (float)number));
  }
}

GZ int count_items(Env e) {
  int count = 0;
  GZ_ROLLED
  for (int item = 0; item < ITEMS; ++item) {
    e.items_mask[item] = e.items_mask[item] && !is_empty(space_at(e.parts, item));
    count += (int)e.items_mask[item];
  }
  return count;
}

// The container is divided into items.
GZ void draw_items(Env e) {
  GZ_ROLLED
  for (int item = 0; item < ITEMS; ++item) {
    put_space(e.parts, item, container());
    e.items_mask[item] = item == 0;
  }
  const int enough = e.size - Config::split_num_same_items + 1;
  GZ_ROLLED
  for (int tried = 0; count_items(e) < enough && tried < TRIES; ++tried) split(e, tried);
  GZ_ROLLED
  for (int item = 0; item < ITEMS; ++item)
    for (int axis = 0; axis < AXES; ++axis)
      e.items(item, axis) = (i16)(e.parts(item, 2 * axis + 1) - e.parts(item, 2 * axis));
}

GZ void reset(Env e) {
  once(e, [=] {
    const int given = INSTANCES > 0 ? given_instance(e, 0) : 0;
    e.size = INSTANCES > 0 ? (int)e.given_size[given] : drawn_size(e);
    if (INSTANCES > 0) {
      GZ_ROLLED
      for (int item = 0; item < ITEMS; ++item) {
        for (int axis = 0; axis < AXES; ++axis)
          e.items(item, axis) = (i16)e.given_items[AXES * (ITEMS * given + item) + axis];
        e.items_mask[item] = item < e.size;
      }
    } else {
      draw_items(e);
    }
    GZ_ROLLED
    for (int k = 0; k < SPACES; ++k) {
      put_space(e.ems, k, k == 0 ? container() : Space{0, 0, 0, 0, 0, 0});
      e.ems_mask[k] = k == 0;
    }
    GZ_ROLLED
    for (int item = 0; item < ITEMS; ++item) {
      e.items_placed[item] = false;
      for (int axis = 0; axis < AXES; ++axis) e.items_location(item, axis) = 0;
    }
    look(e);
  });
}

GZ int choose(Env e, int, u32 bits) {
  const SetBit fits = chosen_bit_of<SEEN * WORDS>(e.fitting, bits);
  return fits.word < 0 ? 0 : ITEMS * (fits.word / WORDS) + 64 * (fits.word % WORDS) + fits.place;
}

GZ void note_edges(Env e, int k) {
  for (int edge = 0; edge < DIRECTIONS; ++edge) e.edges(edge, k) = e.ems(k, edge);
}

// A space that begins too far away neither holds nor meets another one.
GZ void forget_edges(Env e, int k) { e.edges(0, k) = TOO_LONG; }

// Those of 64 spaces, from 64 w, whose edges meet the condition.
template <class F> GZ u64 spaces_where(int w, F f) {
  return bits_where<SPACE_SLOTS / SPACE_WORDS>([=](int k) { return f(64 * w + k); });
}

// The spaces that an item splits: `split_ems`, as many as are returned. They are free now.
GZ int remove_split_spaces(Env e, Space item) {
  const i16 x1 = (i16)item.x1, x2 = (i16)item.x2, y1 = (i16)item.y1, y2 = (i16)item.y2, z1 = (i16)item.z1,
            z2 = (i16)item.z2;
  int count = 0;
  GZ_ROLLED
  for (int w = 0; w < SPACE_WORDS; ++w) {
    const u64 met = spaces_where(w, [=](int k) {
      return (e.edges(0, k) < x2) & (e.edges(1, k) > x1) & (e.edges(2, k) < y2) & (e.edges(3, k) > y1) &
             (e.edges(4, k) < z2) & (e.edges(5, k) > z1);
    });
    GZ_ROLLED
    for (u64 rest = met; rest != 0ull; rest &= rest - 1ull) {
      const int k = 64 * w + bit_at(rest, 0);
      put_space(e.split_ems, count, space_at(e.ems, k));
      forget_edges(e, k);
      e.ems_mask[k] = false;
      e.free_spaces[w] |= bit(k);
      ++count;
    }
  }
  return count;
}

GZ int less(int a, int b) { return (int)((u32)(a - b) >> 31); }

// The sides at which a space reaches out of another one, a bit for each direction from an item.
GZ int beyond(Space a, Space b) {
  return less(b.x2, a.x2) | less(a.x1, b.x1) << 1 | less(b.y2, a.y2) << 2 | less(a.y1, b.y1) << 3 |
         less(b.z2, a.z2) << 4 | less(a.z1, b.z1) << 5;
}

// The directions of which a set has another one, too.
GZ int others_of(int set) {
  constexpr int ALL = (1 << DIRECTIONS) - 1;
  return set == 0 ? 0 : (set & (set - 1)) != 0 ? ALL : ALL ^ set;
}

// Finds the parts of a split space that lie within parts of others and are not the same, a bit for each direction. Parts in
// unlike directions never hold each other, and those in the same one do if the spaces do on all other sides.
GZ void find_held_parts(Env e, int own) {
  const Space s = space_at(e.split_ems, own);
  int held = 0;
  GZ_ROLLED
  for (int k = 0; k < own; ++k) {
    const Space other = space_at(e.split_ems, k);
    const int out = others_of(beyond(s, other)), in = others_of(beyond(other, s));
    held |= in & ~out;
    e.held_parts[k] |= (i8)(out & ~in);
  }
  e.held_parts[own] = (i8)held;
}

GZ bool is_within_any(Env e, Space s) {
  const i16 x1 = (i16)s.x1, x2 = (i16)s.x2, y1 = (i16)s.y1, y2 = (i16)s.y2, z1 = (i16)s.z1, z2 = (i16)s.z2;
  u64 any = 0ull;
  GZ_ROLLED
  for (int w = 0; w < SPACE_WORDS; ++w)
    any |= spaces_where(w, [=](int k) {
      return (e.edges(0, k) <= x1) & (e.edges(1, k) >= x2) & (e.edges(2, k) <= y1) & (e.edges(3, k) >= y2) &
             (e.edges(4, k) <= z1) & (e.edges(5, k) >= z2);
    });
  return any != 0ull;
}

// The first free place; the first one of all if there is none.
GZ int free_place(Env e) {
  GZ_ROLLED
  for (int w = 0; w < SPACE_WORDS; ++w)
    if (e.free_spaces[w] != 0ull) return 64 * w + bit_at(e.free_spaces[w], 0);
  return 0;
}

GZ void add_space(Env e, Space s) {
  if (is_within_any(e, s)) return;
  const int place = free_place(e);
  put_space(e.ems, place, s);
  note_edges(e, place);
  e.ems_mask[place] = true;
  e.free_spaces[place / 64] &= ~bit(place);
}

GZ void pack(Env e, int number, int item) {
  const Space ems = space_at(e.ems, number);
  const Space placed = {ems.x1, ems.x1 + e.items(item, 0), ems.y1, ems.y1 + e.items(item, 1),
                        ems.z1, ems.z1 + e.items(item, 2)};
  e.items_location(item, 0) = (i16)ems.x1;
  e.items_location(item, 1) = (i16)ems.y1;
  e.items_location(item, 2) = (i16)ems.z1;
  e.items_placed[item] = true;
  GZ_ROLLED
  for (int w = 0; w < SPACE_WORDS; ++w) e.free_spaces[w] = below(SPACES, w);
  GZ_ROLLED
  for (int k = 0; k < SPACE_SLOTS; ++k)
    if (k < SPACES && e.ems_mask[k]) {
      note_edges(e, k);
      e.free_spaces[k / 64] &= ~bit(k);
    } else {
      forget_edges(e, k);
    }
  const int count = remove_split_spaces(e, placed);
  GZ_ROLLED
  for (int k = 0; k < count; ++k) find_held_parts(e, k);
  GZ_ROLLED
  for (int direction = 0; direction < DIRECTIONS; ++direction)
    GZ_ROLLED
    for (int k = 0; k < count; ++k) {
      const Space part = beside(space_at(e.split_ems, k), placed, direction);
      if (!is_empty(part) && (e.held_parts[k] >> direction & 1) == 0) add_space(e, part);
    }
}

GZ float filled(Env e) {
  float sum = 0.f;
  GZ_ROLLED
  for (int item = 0; item < ITEMS; ++item) sum += e.items_placed[item] ? volume_of_item(e, item) : 0.f;
  return sum / volume_of(container());
}

GZ void step(Env e) {
  once(e, [=] {
    const int action = number_of(e.action), seen = action / ITEMS, item = action % ITEMS;
    const bool legal = action >= 0 && (e.fitting(seen, item / 64) & bit(item)) != 0ull;
    bool more = false;
    if (legal) {
      pack(e, e.sorted_ems[seen], item);
      more = look(e);
    }
    e.terminated = !more;
    if (Config::reward == REWARD_DENSE)
      e.reward = legal ? volume_of_item(e, item) / volume_of(container()) : 0.f;
    else
      e.reward = more ? 0.f : filled(e);
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    const Space whole = container();
    const bool unit = Config::normalize_dimensions;
    const float x = unit ? (float)whole.x2 : 1.f, y = unit ? (float)whole.y2 : 1.f, z = unit ? (float)whole.z2 : 1.f;
    GZ_ROLLED
    for (int k = 0; k < SEEN; ++k) {
      const int number = e.sorted_ems[k];
      const Space s = space_at(e.ems, number);
      Row row = e.observation + 7 * k;
      row[0] = (float)s.x1 / x;
      row[1] = (float)s.x2 / x;
      row[2] = (float)s.y1 / y;
      row[3] = (float)s.y2 / y;
      row[4] = (float)s.z1 / z;
      row[5] = (float)s.z2 / z;
      row[6] = (float)(e.ems_mask[number] != 0);
    }
    GZ_ROLLED
    for (int item = 0; item < ITEMS; ++item) {
      Row row = e.observation + 7 * SEEN + 5 * item;
      row[0] = (float)e.items(item, 0) / x;
      row[1] = (float)e.items(item, 1) / y;
      row[2] = (float)e.items(item, 2) / z;
      row[3] = (float)(e.items_mask[item] != 0);
      row[4] = (float)(e.items_placed[item] != 0);
    }
  });
  if (Config::action_form == ACTION_FORM_FLAT) {
    lanes_of_bits(
        e, SEEN, ITEMS, [=](int k) { return e.action_mask + ITEMS * k; },
        [=](int k, int word) { return e.fitting(k, word); });
  } else {
    once(e, [=] {
      allow_nothing(e);
      GZ_ROLLED
      for (int k = 0; k < SEEN; ++k)
        for (int item = 0; item < ITEMS; ++item)
          allow(e, ITEMS * k + item, (e.fitting(k, item / 64) & bit(item)) != 0ull);
    });
  }
}
