// EnvPool's queue on a CPU: envs that were sent wait in a ring, workers and the thread that receives take them from it in
// runs, and who has stepped a run writes it to the ring of finished envs. An env is in at most one of the two, so rings
// with a place for each never overflow. One thread at a time sends, and one receives; the caller sees to that.
//
// A worker is of use only if there is more to do than a wake-up costs, and if the step of an env takes longer than moving
// it between the caches of two cores. Small work is left to the thread that receives, which does it in less time than it
// would take to tell another one. So the time of an env's step is measured.
//
// This unit knows no game: a game's arrays are members of its Store, of so many bytes per env.

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

namespace gz {

typedef void (*Launch)(const void *store, i64 envs, i64 count, int threads);

constexpr int MAX_COLUMNS = 12;
constexpr float RUN = 4000.f;  // nanoseconds of work that are taken at once
constexpr i64 LONGEST = 1024;  // most envs that are taken at once
constexpr i64 SLICE = 50000000;  // nanoseconds after which a wait returns, so that the caller may look for signals

// An array of the game: which member of the Store, and its bytes per env.
struct Column {
  i64 member, bytes;
};

// What the caller gives, as words of 8 bytes each.
struct Plan {
  Launch step;
  i64 num_envs, agents, columns;
  i64 workers, worth;   // how many, and for how many nanoseconds of work one is called
  i64 moving;           // nanoseconds in which an env goes from core to core
  i64 width;            // envs that are stepped in the time of one
  i32 *ids;             // of the envs that are sent or reset, written by the caller
  const char *actions;  // theirs
  u8 *flight;           // by env: sent and not received yet
  i64 *flying;          // how many these are
  Column action, column[MAX_COLUMNS];
};

struct Queue {
  Plan plan;
  const u64 *store = nullptr;
  i64 mask = 0;
  i64 *sent = nullptr;      // a ring of indices
  i32 *finished = nullptr;  // a ring of indices plus 1; 0 where nothing is written yet
  u64 *bits = nullptr;      // one for each env, all 0, to sort with
  alignas(64) i64 tail = 0;      // number of envs put into `sent`
  alignas(64) i64 head = 0;      // and of those taken out
  alignas(64) i64 reserved = 0;  // places given out in `finished`
  i64 written = 0;               // and how many of them are written
  float cost = 0.f;              // nanoseconds of an env's step; 0: not known yet
  alignas(64) i64 received = 0, seen = 0;  // of the thread that receives: read from `finished`, and found written
  int waiting = 0;
  alignas(64) int sleeping = 0, stop = 0, workers = 0;
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake = PTHREAD_COND_INITIALIZER, news = PTHREAD_COND_INITIALIZER;
  pthread_t threads[MAX_THREADS];
};

static i64 nanoseconds(int clock) {
  timespec t;
  clock_gettime((clockid_t)clock, &t);
  return (i64)t.tv_sec * 1000000000 + t.tv_nsec;
}

static float queue_cost(const Queue &q) {
  float cost;
  __atomic_load(&q.cost, &cost, __ATOMIC_RELAXED);
  return cost;
}

static bool worth_a_worker(const Queue &q) {
  const i64 left = __atomic_load_n(&q.tail, __ATOMIC_SEQ_CST) - __atomic_load_n(&q.head, __ATOMIC_RELAXED);
  const float cost = queue_cost(q);
  return left > 0 && cost >= (float)q.plan.moving && (float)left * cost >= (float)q.plan.worth;
}

static void wake_workers(Queue &q) {
  pthread_mutex_lock(&q.lock);
  pthread_cond_broadcast(&q.wake);
  pthread_mutex_unlock(&q.lock);
}

static void call_workers(Queue &q) {
  if (__atomic_load_n(&q.sleeping, __ATOMIC_SEQ_CST) > 0 && worth_a_worker(q)) wake_workers(q);
}

static void finish(Queue &q, const i64 *envs, i64 count) {
  // Who gets a place for the second time comes after who sent an env that was received since, so after it was emptied.
  const i64 first = __atomic_fetch_add(&q.reserved, count, __ATOMIC_ACQ_REL);
  for (i64 k = 0; k < count; ++k)
    __atomic_store_n(&q.finished[(first + k) & q.mask], (i32)envs[k] + 1, __ATOMIC_RELEASE);
  __atomic_fetch_add(&q.written, count, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&q.waiting, __ATOMIC_SEQ_CST)) {
    pthread_mutex_lock(&q.lock);
    pthread_cond_signal(&q.news);
    pthread_mutex_unlock(&q.lock);
  }
}

// Steps a run of envs; false: none were left. The indices are copied before the run is taken: a thread that is held up
// here has the others go on, around the ring, and finds `head` changed.
static bool step_run(Queue &q) {
  i64 envs[LONGEST], count, head = __atomic_load_n(&q.head, __ATOMIC_RELAXED);
  const float cost = queue_cost(q);
  const i64 wanted = cost == 0.f ? 1 : cost * (float)LONGEST <= RUN ? LONGEST : (i64)(RUN / cost) + 1;
  const i64 most = (wanted + q.plan.width - 1) / q.plan.width * q.plan.width;
  do {
    const i64 left = __atomic_load_n(&q.tail, __ATOMIC_ACQUIRE) - head;
    if (left <= 0) return false;
    count = left < most ? left : most;
    for (i64 k = 0; k < count; ++k) envs[k] = __atomic_load_n(&q.sent[(head + k) & q.mask], __ATOMIC_RELAXED);
  } while (!__atomic_compare_exchange_n(&q.head, &head, head + count, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  const i64 before = nanoseconds(CLOCK_MONOTONIC);
  q.plan.step(q.store, (i64)envs, count, 1);
  // What took longer than before was perhaps interrupted.
  float now = (float)(nanoseconds(CLOCK_MONOTONIC) - before) / (float)count;
  if (cost > 0.f && now > cost) now = cost + ((now < 2.f * cost ? now : 2.f * cost) - cost) / 16.f;
  if (now < .01f) now = .01f;
  __atomic_store(&q.cost, &now, __ATOMIC_RELAXED);
  finish(q, envs, count);
  if (cost == 0.f) call_workers(q);
  return true;
}

static void *queue_worker(void *pointer) {
  Queue &q = *(Queue *)pointer;
  while (!__atomic_load_n(&q.stop, __ATOMIC_ACQUIRE)) {
    if (worth_a_worker(q)) {
      step_run(q);
      continue;
    }
    int spins = 0;
    while (++spins < GZ_SPINS && !worth_a_worker(q)) pool_pause();
    if (spins < GZ_SPINS) continue;
    pthread_mutex_lock(&q.lock);
    __atomic_fetch_add(&q.sleeping, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&q.stop, __ATOMIC_ACQUIRE) && !worth_a_worker(q)) pthread_cond_wait(&q.wake, &q.lock);
    __atomic_fetch_sub(&q.sleeping, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&q.lock);
  }
  return nullptr;
}

// Sleeps until more than `written` envs are finished, or for a slice of time.
static void await_news(Queue &q, i64 written) {
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += (long)SLICE;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_mutex_lock(&q.lock);
  __atomic_store_n(&q.waiting, 1, __ATOMIC_SEQ_CST);
  int error = 0;
  while (__atomic_load_n(&q.written, __ATOMIC_SEQ_CST) == written && error != ETIMEDOUT)
    error = pthread_cond_timedwait(&q.news, &q.lock, &until);
  __atomic_store_n(&q.waiting, 0, __ATOMIC_SEQ_CST);
  pthread_mutex_unlock(&q.lock);
}

// Length of the run of consecutive envs at the beginning of some.
GZ i64 consecutive(const i32 *envs, i64 count) {
  i64 n = 1;
  while (n < count && envs[n] == envs[0] + (i32)n) ++n;
  return n;
}

// Moves rows between an array of all envs and one of some of them.
template <class Move>
GZ void for_rows(const i32 *envs, i64 count, i64 bytes, Move move) {
  for (i64 k = 0, n; k < count; k += n) {
    n = consecutive(envs + k, count - k);
    move(k * bytes, envs[k] * bytes, n * bytes);
  }
}

template <int BYTES>
static void gather_fixed(char *to, const char *from, const i32 *envs, i64 count) {
  for (i64 k = 0; k < count; ++k) __builtin_memcpy(to + k * BYTES, from + (i64)envs[k] * BYTES, BYTES);
}

static void gather(char *to, const char *from, i64 bytes, const i32 *envs, i64 count) {
  if (consecutive(envs, count) == count) memcpy(to, from + envs[0] * bytes, (size_t)(count * bytes));
  else if (bytes == 1) gather_fixed<1>(to, from, envs, count);
  else if (bytes == 4) gather_fixed<4>(to, from, envs, count);
  else if (bytes == 16) gather_fixed<16>(to, from, envs, count);
  else for_rows(envs, count, bytes, [=](i64 row, i64 env, i64 n) { memcpy(to + row, from + env, (size_t)n); });
}

static int ascending(const void *a, const void *b) { return *(const i32 *)a - *(const i32 *)b; }

// Sorts indices that are all different: neighbours are stepped and copied together.
static void sort_envs(Queue &q, i32 *envs, i64 count) {
  i64 sorted = 1;
  while (sorted < count && envs[sorted - 1] < envs[sorted]) ++sorted;
  if (sorted >= count) return;
  const i64 words = (q.plan.num_envs + 63) / 64;
  if (words > 4 * count) return qsort(envs, (size_t)count, sizeof(i32), ascending);
  for (i64 k = 0; k < count; ++k) q.bits[envs[k] >> 6] |= (u64)1 << (envs[k] & 63);
  for (i64 w = 0, k = 0; w < words; ++w) {
    for (u64 left = q.bits[w]; left; left &= left - 1) envs[k++] = (i32)(w * 64 + __builtin_ctzll(left));
    q.bits[w] = 0;
  }
}

extern "C" Queue *gz_pool_new(const Plan *plan) {
  void *place = nullptr;
  if (posix_memalign(&place, 64, sizeof(Queue)) != 0) return nullptr;
  Queue &q = *(Queue *)place;
  {
    const Queue fresh = {*plan};
    memcpy(place, (const void *)&fresh, sizeof(Queue));
  }
  i64 size = 1;
  while (size < plan->num_envs) size *= 2;
  q.mask = size - 1;
  q.sent = (i64 *)calloc((size_t)size, sizeof(i64));
  q.finished = (i32 *)calloc((size_t)size, sizeof(i32));
  q.bits = (u64 *)calloc((size_t)(plan->num_envs + 63) / 64, sizeof(u64));
  const i64 most = plan->workers < MAX_THREADS ? plan->workers : MAX_THREADS;
  while (q.workers < most && pthread_create(&q.threads[q.workers], nullptr, queue_worker, &q) == 0) ++q.workers;
  return &q;
}

// Ends the workers, who first step to its end what they have begun.
extern "C" void gz_pool_delete(Queue *queue) {
  Queue &q = *queue;
  __atomic_store_n(&q.stop, 1, __ATOMIC_SEQ_CST);
  wake_workers(q);
  for (int k = 0; k < q.workers; ++k) pthread_join(q.threads[k], nullptr);
  free(q.sent);
  free(q.finished);
  free(q.bits);
  free(queue);
}

// Marks the envs of `ids` as in flight. False, with nothing changed: one is out of range, named twice or in flight.
static bool take_off(Queue &q, i64 count) {
  u8 *flight = q.plan.flight;
  for (i64 k = 0; k < count; ++k) {
    const u32 env = (u32)q.plan.ids[k];
    if (env < (u64)q.plan.num_envs && !__atomic_load_n(&flight[env], __ATOMIC_ACQUIRE)) {
      __atomic_store_n(&flight[env], 1, __ATOMIC_RELAXED);
      continue;
    }
    while (k-- > 0) __atomic_store_n(&flight[q.plan.ids[k]], 0, __ATOMIC_RELAXED);
    return false;
  }
  __atomic_fetch_add(q.plan.flying, count, __ATOMIC_RELAXED);
  return true;
}

static void put_back(Queue &q, const i32 *envs, i64 count) {
  for (i64 k = 0; k < count; ++k) __atomic_store_n(&q.plan.flight[envs[k]], 0, __ATOMIC_RELEASE);
  __atomic_fetch_sub(q.plan.flying, count, __ATOMIC_RELAXED);
}

// Sends `count` of `ids` with their actions. Nothing may be in flight that was sent with another store.
extern "C" int gz_pool_send(Queue *queue, const u64 *store, i64 count) {
  Queue &q = *queue;
  if (!take_off(q, count)) return 0;
  if (q.store != store) q.store = store;
  const i64 tail = q.tail;
  char *actions = (char *)store[q.plan.action.member];
  const char *given = q.plan.actions;
  for_rows(q.plan.ids, count, q.plan.action.bytes,
           [=](i64 row, i64 env, i64 n) { memcpy(actions + env, given + row, (size_t)n); });
  for (i64 k = 0; k < count; ++k)
    __atomic_store_n(&q.sent[(tail + k) & q.mask], (i64)q.plan.ids[k], __ATOMIC_RELAXED);
  __atomic_store_n(&q.tail, tail + count, __ATOMIC_SEQ_CST);
  call_workers(q);
  return 1;
}

// For envs of `ids` that another kernel resets: first asked whether they may be, then told that they are, which puts them
// with the finished ones, or that it failed.
extern "C" int gz_pool_take_off(Queue *queue, i64 count) { return take_off(*queue, count); }
extern "C" void gz_pool_put_back(Queue *queue, i64 count) { put_back(*queue, queue->plan.ids, count); }
extern "C" void gz_pool_land(Queue *queue, const u64 *store, i64 count) {
  Queue &q = *queue;
  if (q.store != store) q.store = store;
  for (i64 k = 0; k < count; ++k) {
    const i64 env = q.plan.ids[k];
    finish(q, &env, 1);
  }
}

// Waits for `count` finished envs and writes their columns, after their indices, in ascending order, and one index for
// each of their agents, to `out`. 0: not yet, and it is time for the caller to look for signals.
extern "C" int gz_pool_receive(Queue *queue, char *const *out, i64 count) {
  Queue &q = *queue;
  const i64 end = q.received + count;
  i64 since = 0;
  for (int spins = 0, runs = 0;;) {
    const i64 written = __atomic_load_n(&q.written, __ATOMIC_SEQ_CST);
    while (q.seen < end && __atomic_load_n(&q.finished[q.seen & q.mask], __ATOMIC_ACQUIRE)) ++q.seen;
    if (q.seen >= end) break;
    if (runs > 0) {
      const i64 now = nanoseconds(CLOCK_MONOTONIC);
      if (since == 0) since = now;
      if (now - since > SLICE) return 0;
    }
    if (step_run(q)) {
      ++runs;
    } else if (++spins < GZ_SPINS) {
      pool_pause();
    } else {
      await_news(q, written);
      return 0;
    }
  }
  i32 *envs = (i32 *)out[0], *players = (i32 *)out[1];
  for (i64 k = 0; k < count; ++k) {
    i32 &place = q.finished[(q.received + k) & q.mask];
    envs[k] = place - 1;
    __atomic_store_n(&place, 0, __ATOMIC_RELAXED);
  }
  sort_envs(q, envs, count);
  const i64 agents = q.plan.agents;
  if (agents == 1) memcpy(players, envs, (size_t)count * sizeof(i32));
  for (i64 k = 0; agents > 1 && k < count; ++k)
    for (i64 a = 0; a < agents; ++a) players[k * agents + a] = envs[k];
  for (i64 c = 0; c < q.plan.columns; ++c) {
    const Column column = q.plan.column[c];
    gather(out[2 + c], (const char *)q.store[column.member], column.bytes, envs, count);
  }
  q.received = end;
  put_back(q, envs, count);
  return 1;
}

}  // namespace gz
