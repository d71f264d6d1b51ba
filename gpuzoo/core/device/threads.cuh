// The CPU's threads: workers that share the envs of one call in tiles. A worker spins for some microseconds after a
// call, because the next step is likely to follow at once, and then sleeps. The child of a fork starts new workers.

#ifndef _WIN32
#include <pthread.h>
#endif

namespace gz {

typedef void (*Task)(const void *arguments, i64 begin, i64 end);

#ifdef _WIN32

static void parallel(Task task, const void *arguments, i64 n, i64, int) { task(arguments, 0, n); }

#else

constexpr int MAX_THREADS = 64;

// How often a worker looks for the next call before it sleeps: some microseconds' worth. Each call says it for the time
// behind it.
#ifndef GZ_SPINS
#define GZ_SPINS 4000
#endif

// A thread's own share of the envs. The same envs go to the same thread at every call, so they stay in its cache; who
// is through with his share takes tiles of the others'.
struct alignas(64) Share {
  i64 next = 0, end = 0;
};

struct Pool {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
  int workers = 0, sleeping = 0;
  int busy = 0;  // one call at a time; a second one, from another thread, runs alone
  int threads = 0, spins = 0;
  i64 tile = 1;
  Task task = nullptr;
  const void *arguments = nullptr;
  alignas(64) u32 call = 0;    // number of the newest call
  int open = 0;                // whether workers may join it
  alignas(64) int joined = 0;  // how many are in it
  Share shares[MAX_THREADS];
};
// One for all libraries of a process: g++ makes the symbol unique. Other compilers' libraries have workers of their own.
inline Pool pool;

// In the child of a fork there are no workers, whatever the pool says, and its one thread is not in it. That is put right
// within fork(), before there can be a second thread. Each library does it, as each may have a pool of its own.
static void pool_forked() { pool = Pool(); }
__attribute__((constructor)) static void pool_loaded() { pthread_atfork(nullptr, nullptr, pool_forked); }

static void pool_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static void pool_run(Pool &p, int self) {
  for (int k = 0; k < p.threads; ++k) {
    Share &share = p.shares[(self + k) % p.threads];
    for (;;) {
      i64 begin = __atomic_fetch_add(&share.next, p.tile, __ATOMIC_RELAXED);
      if (begin >= share.end) break;
      p.task(p.arguments, begin, begin + p.tile < share.end ? begin + p.tile : share.end);
    }
  }
}

static void *pool_worker(void *number) {
  Pool &p = pool;
  const int self = (int)(i64)number;
  u32 seen = 0;
  for (;;) {
    const int spins = __atomic_load_n(&p.spins, __ATOMIC_RELAXED);
    for (int spin = 0; spin < spins && __atomic_load_n(&p.call, __ATOMIC_ACQUIRE) == seen; ++spin) pool_pause();
    if (__atomic_load_n(&p.call, __ATOMIC_ACQUIRE) == seen) {
      pthread_mutex_lock(&p.lock);
      __atomic_fetch_add(&p.sleeping, 1, __ATOMIC_SEQ_CST);
      while (__atomic_load_n(&p.call, __ATOMIC_SEQ_CST) == seen) pthread_cond_wait(&p.wake, &p.lock);
      __atomic_fetch_sub(&p.sleeping, 1, __ATOMIC_SEQ_CST);
      pthread_mutex_unlock(&p.lock);
    }
    seen = __atomic_load_n(&p.call, __ATOMIC_ACQUIRE);
    __atomic_fetch_add(&p.joined, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&p.open, __ATOMIC_SEQ_CST) && self < p.threads) pool_run(p, self);
    __atomic_fetch_sub(&p.joined, 1, __ATOMIC_SEQ_CST);
  }
  return nullptr;
}

static void parallel(Task task, const void *arguments, i64 n, i64 tile, int threads) {
  Pool &p = pool;
  i64 tiles = (n + tile - 1) / tile;
  if (tiles >= 32 * threads) {  // several at once, as each call of a task costs as much as a few envs
    tile *= tiles / (16 * threads);
    tiles = (n + tile - 1) / tile;
  }
  if (threads > tiles) threads = (int)tiles;
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  if (threads <= 1) return task(arguments, 0, n);
  if (__atomic_exchange_n(&p.busy, 1, __ATOMIC_ACQUIRE)) return task(arguments, 0, n);
  for (pthread_t id; p.workers < threads - 1; ++p.workers) {
    if (pthread_create(&id, nullptr, pool_worker, (void *)(i64)(p.workers + 1)) != 0) break;
    pthread_detach(id);
  }
  p.task = task;
  p.arguments = arguments;
  p.tile = tile;
  p.threads = threads;
  __atomic_store_n(&p.spins, GZ_SPINS, __ATOMIC_RELAXED);
  for (int k = 0; k < threads; ++k) {
    p.shares[k].end = tiles * (k + 1) / threads * tile < n ? tiles * (k + 1) / threads * tile : n;
    __atomic_store_n(&p.shares[k].next, tiles * k / threads * tile, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&p.open, 1, __ATOMIC_SEQ_CST);
  __atomic_fetch_add(&p.call, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&p.sleeping, __ATOMIC_SEQ_CST) > 0) {
    pthread_mutex_lock(&p.lock);
    pthread_cond_broadcast(&p.wake);
    pthread_mutex_unlock(&p.lock);
  }
  pool_run(p, 0);
  __atomic_store_n(&p.open, 0, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&p.joined, __ATOMIC_SEQ_CST) > 0) pool_pause();
  __atomic_store_n(&p.busy, 0, __ATOMIC_RELEASE);
}

#endif

}  // namespace gz
