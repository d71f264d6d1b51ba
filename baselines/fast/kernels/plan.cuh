// What stands between networks, samplers and envs when they run behind each other without Python: rows that move, and
// who acts. For a CPU only; a GPU captures the same as a graph.

#include <time.h>

namespace gz {

// ---- calls behind each other ----

struct Entry {
  void (*function)(const void *arguments, i64 offset);
  const void *arguments;
  i64 offset;
};

struct Plan {
  const Entry *entries;
  i64 count, next;
};

static i64 nanoseconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// Goes on from `next` until all is done, or until so much time is over: Python wants to look for signals.
extern "C" void gz_launch_run(Plan *plan, i64 time) {
  const i64 end = nanoseconds() + time;
  while (plan->next < plan->count) {
    const Entry &entry = plan->entries[plan->next++];
    entry.function(entry.arguments, entry.offset);
    if (nanoseconds() > end) return;
  }
}

// A step of all envs: `launch` is the engine's gz_launch_step.
struct EnvStep {
  void (*launch)(const void *store, i64 envs, i64 count, int threads);
  const void *store;
  i64 count, threads;
};

extern "C" void gz_launch_env_step(const EnvStep *a, i64) { a->launch(a->store, 0, a->count, (int)a->threads); }

// ---- rows that move ----

// Rows of `bytes` each. Row r is number r % group of the group r / group; in a group, rows lie where `place` says, in
// bytes. With `when`, nothing moves unless one of these flags is set.
struct Copy {
  i64 items, threads, group, bytes;
  const char *from;
  i64 from_group;
  const i64 *from_place;
  char *to;
  i64 to_group;
  const i64 *to_place;
  const u8 *when;
  i64 flags;
};

GZ bool any(const u8 *flags, i64 n) {
  u8 found = 0;
  for (i64 k = 0; k < n; ++k) found |= flags[k];
  return found != 0;
}

GZ void copy(const Copy &a, i64, i64 begin, i64 end) {
  if (a.when && !any(a.when, a.flags)) return;
  for (i64 r = begin; r < end; ++r) {
    const i64 group = r / a.group, k = r % a.group;
    __builtin_memcpy(a.to + group * a.to_group + a.to_place[k], a.from + group * a.from_group + a.from_place[k], a.bytes);
  }
}

GZ_KERNEL(copy, Copy, 16384)

// Rows of any type as float32; with `mean`, normalised as `Scale` does.
struct Features {
  i64 items, threads, group, size, kind, member_rows;
  const char *from;
  i64 from_group;
  const i64 *from_place;
  const float *mean, *factor;
  float *to;
};

template <class T> GZ void feature_rows(const Features &a, i64 begin, i64 end) {
  for (i64 r = begin; r < end; ++r) {
    const T *from = (const T *)(a.from + r / a.group * a.from_group + a.from_place[r % a.group]);
    float *to = a.to + r * a.size;
    if (!a.mean) {
      for (i64 k = 0; k < a.size; ++k) to[k] = (float)from[k];
      continue;
    }
    const float *mean = a.mean + r / a.member_rows * a.size, *factor = a.factor + r / a.member_rows * a.size;
    for (i64 k = 0; k < a.size; ++k) {
      const float x = ((float)from[k] - mean[k]) * factor[k];
      to[k] = x < -10.f ? -10.f : x > 10.f ? 10.f : x;
    }
  }
}

GZ void features(const Features &a, i64, i64 begin, i64 end) {
  if (a.kind == 0) feature_rows<float>(a, begin, end);
  if (a.kind == 1) feature_rows<i32>(a, begin, end);
  if (a.kind == 2) feature_rows<i8>(a, begin, end);
  if (a.kind == 3) feature_rows<u8>(a, begin, end);
}

GZ_KERNEL(features, Features, 4096)

// ---- who acts ----

// Agents that are alive, have a legal action, and whose turn it is; and the masks.
struct Acting {
  i64 items, threads, agents, mask_size;
  const u8 *alive;
  const i8 *mask;
  const i32 *turn;
  u8 *acting;
  i8 *kept;
};

GZ void acting(const Acting &a, i64, i64 begin, i64 end) {
  for (i64 env = begin; env < end; ++env)
    for (i64 agent = 0; agent < a.agents; ++agent) {
      const i64 k = env * a.agents + agent;
      bool acts = a.alive[k] != 0;
      if (a.mask) {
        __builtin_memcpy(a.kept + k * a.mask_size, a.mask + k * a.mask_size, a.mask_size);
        acts &= any((const u8 *)a.kept + k * a.mask_size, a.mask_size);
      }
      if (a.turn) acts &= a.turn[env] == agent;
      a.acting[k] = acts;
    }
}

GZ_KERNEL(acting, Acting, 16384)

}  // namespace gz
