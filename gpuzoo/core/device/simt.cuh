// CUDA's words for the host: tests run the thread form of the engine without a GPU. A lane is a coroutine, which runs until
// it has to wait for others; a sanitizer gets a thread per lane, so that ThreadSanitizer sees a missing barrier as the race
// that it is, and so do C libraries without coroutines. Blocks run one after another.

#include <pthread.h>
#include <sched.h>

#ifdef __has_feature
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define GZ_THREAD_PER_LANE
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || !defined(__GLIBC__)
#define GZ_THREAD_PER_LANE
#endif

#ifdef GZ_THREAD_PER_LANE
#define GZ_PER_LANE static thread_local
#else
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#define GZ_PER_LANE static
#endif

#define __global__
#define __shared__ static
#define __launch_bounds__(...)

namespace gz {

struct ThreadIndex {
  unsigned x, y, z;
};
GZ_PER_LANE ThreadIndex threadIdx, blockIdx;
static int block_size;
#define blockDim (ThreadIndex{(unsigned)block_size, 1, 1})

constexpr int SIMT_WIDTH = LANES < 32 ? LANES : 32;

// Where `size` neighbouring lanes of the block wait for each other.
struct Meeting {
#ifdef GZ_THREAD_PER_LANE
  // Two in turn, because ThreadSanitizer takes what a fast thread did before it came to a barrier's next use as done
  // before a slow one left the use before, and misses their race.
  pthread_barrier_t barrier[2];
#else
  int arrived;
  u32 times;
#endif
  u64 slots[32];
};
static Meeting meetings[2][1024];  // [0]: of the whole block; [1]: of the lanes of a narrow env, or a warp of a wide one

// Both forms of lanes have `meet`, and `wait_while`, which returns when another lane has changed `x`.
#ifdef GZ_THREAD_PER_LANE

static void wait_while(const u32 &x, u32 value) {
  while (__atomic_load_n(&x, __ATOMIC_ACQUIRE) == value) sched_yield();
}

static thread_local unsigned turn[2];

GZ void meet(int kind, int size) {
  pthread_barrier_wait(&meetings[kind][threadIdx.x / size].barrier[turn[kind]++ & 1]);
}

#else

struct Lane {
  jmp_buf context;
  ucontext_t first;
  bool begun, ended;
};
static Lane block_lanes[1024];
static jmp_buf launched;
static int running, direction, polls;

// Goes on with the next lane that has not ended.
static void next_lane() {
  for (int k = 0; k < block_size; ++k) {
    running = (running + direction + block_size) % block_size;
    Lane &lane = block_lanes[running];
    if (lane.ended) continue;
    threadIdx = {(unsigned)running, 0, 0};
    if (lane.begun) _longjmp(lane.context, 1);
    lane.begun = true;
    setcontext(&lane.first);
  }
  _longjmp(launched, 1);
}

static __attribute__((noinline)) void yield_lane() {
  if (++polls > 2 * block_size) {
    fputs("simt: some lanes wait at a barrier that others do not come to\n", stderr);
    abort();
  }
  if (!_setjmp(block_lanes[running].context)) next_lane();
}

static __attribute__((noinline)) void wait_while(const u32 &x, u32 value) {
  polls = 0;
  while (*(const volatile u32 *)&x == value) yield_lane();
}

// The last to come goes on at once, and lanes then run in the other direction: what a missing barrier leaves to chance
// differs between one phase and the next.
static __attribute__((noinline)) void meet(int kind, int size) {
  Meeting &m = meetings[kind][threadIdx.x / size];
  if (++m.arrived < size) return wait_while(m.times, m.times);
  m.arrived = 0;
  ++m.times;
  direction = -direction;
}

#endif

GZ void __syncthreads() { meet(0, block_size); }

// Where those lanes of a warp wait for each other that a mask names: lanes of several envs. Some of them may wait with
// another mask meanwhile.
struct Crowd {
  u32 mask, inside, came, times;
  u8 votes[32];
};
static Crowd crowds[32][32];
static bool crowd_locks[32];

static Crowd &enter_crowd(u32 mask) {
  const int warp = (int)threadIdx.x / 32;
  while (__atomic_test_and_set(&crowd_locks[warp], __ATOMIC_ACQUIRE)) sched_yield();
  Crowd *found = nullptr;
  for (Crowd &c : crowds[warp]) {
    const u32 inside = __atomic_load_n(&c.inside, __ATOMIC_RELAXED);
    if (!inside || c.mask == mask) found = &c;
    if (inside && c.mask == mask) break;
  }
  found->mask = mask;
  __atomic_fetch_add(&found->inside, 1, __ATOMIC_RELAXED);
  __atomic_clear(&crowd_locks[warp], __ATOMIC_RELEASE);
  return *found;
}
static void leave_crowd(Crowd &c) { __atomic_fetch_sub(&c.inside, 1, __ATOMIC_RELAXED); }

static void meet(Crowd &c) {
  const u32 times = __atomic_load_n(&c.times, __ATOMIC_RELAXED);
  if (__atomic_add_fetch(&c.came, 1, __ATOMIC_ACQ_REL) < (u32)__builtin_popcount(c.mask)) return wait_while(c.times, times);
  __atomic_store_n(&c.came, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&c.times, times + 1, __ATOMIC_RELEASE);
}

GZ void __syncwarp(u32 mask) {
  if (LANES > 1 && __builtin_popcount(mask) == SIMT_WIDTH) return meet(1, SIMT_WIDTH);  // those of one env
  Crowd &c = enter_crowd(mask);
  meet(c);
  leave_crowd(c);
}

static u32 __ballot_sync(u32 mask, bool vote) {
  Crowd &c = enter_crowd(mask);
  c.votes[threadIdx.x % 32] = vote;
  meet(c);
  u32 votes = 0;
  for (int k = 0; k < 32; ++k)
    if (mask >> k & 1u) votes |= (u32)c.votes[k] << k;
  meet(c);
  leave_crowd(c);
  return votes;
}

template <class T> static T __shfl_xor_sync(u32, T value, int offset) {
  Meeting &m = meetings[1][threadIdx.x / SIMT_WIDTH];
  int k = threadIdx.x % SIMT_WIDTH;
  __builtin_memcpy(&m.slots[k], &value, sizeof(T));
  meet(1, SIMT_WIDTH);
  __builtin_memcpy(&value, &m.slots[k ^ offset], sizeof(T));
  meet(1, SIMT_WIDTH);
  return value;
}

template <class T> static T atomicAdd(T *x, T v) { return __atomic_fetch_add(x, v, __ATOMIC_RELAXED); }
template <class T> static T atomicOr(T *x, T v) { return __atomic_fetch_or(x, v, __ATOMIC_RELAXED); }
template <class T> static T atomicMin(T *x, T v) {
  T old = __atomic_load_n(x, __ATOMIC_RELAXED);
  while (v < old && !__atomic_compare_exchange_n(x, &old, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}
template <class T> static T atomicMax(T *x, T v) {
  T old = __atomic_load_n(x, __ATOMIC_RELAXED);
  while (v > old && !__atomic_compare_exchange_n(x, &old, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}

// Runs `body` in every thread of every block.
struct Launch {
  void (*body)(const void *);
  const void *arguments;
  unsigned blocks;
};

static Launch launch;

#ifdef GZ_THREAD_PER_LANE

static pthread_barrier_t block_end;

static void *simt_thread(void *index) {
  threadIdx = {(unsigned)(u64)index, 0, 0};
  for (unsigned block = 0; block < launch.blocks; ++block) {
    blockIdx = {block, 0, 0};
    launch.body(launch.arguments);
    pthread_barrier_wait(&block_end);
  }
  return nullptr;
}

static void run_lanes() {
  pthread_barrier_init(&block_end, nullptr, block_size);
  for (int k = 0; k < 2; ++k) {
    pthread_barrier_init(&meetings[0][0].barrier[k], nullptr, block_size);
    for (int g = 0; g < block_size / SIMT_WIDTH; ++g)
      pthread_barrier_init(&meetings[1][g].barrier[k], nullptr, SIMT_WIDTH);
  }
  static pthread_t ids[1024];
  for (int k = 0; k < block_size; ++k) pthread_create(&ids[k], nullptr, simt_thread, (void *)(u64)k);
  for (int k = 0; k < block_size; ++k) pthread_join(ids[k], nullptr);
}

#else

static void simt_lane() {
  launch.body(launch.arguments);
  block_lanes[running].ended = true;
  polls = 0;
  next_lane();
}

static void run_lanes() {
  constexpr u64 STACK = 256 << 10;
  static char *stacks;
  if (!stacks)
    stacks =
        (char *)mmap(nullptr, 1024 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  for (unsigned block = 0; block < launch.blocks; ++block) {
    blockIdx = {block, 0, 0};
    for (int k = 0; k < block_size; ++k) {
      Lane &lane = block_lanes[k];
      lane.begun = lane.ended = false;
      getcontext(&lane.first);
      lane.first.uc_stack.ss_sp = stacks + k * STACK;
      lane.first.uc_stack.ss_size = STACK;
      makecontext(&lane.first, simt_lane, 0);
    }
    running = -1, direction = 1, polls = 0;
    if (!_setjmp(launched)) next_lane();
  }
}

#endif

static void simt_launch(void (*body)(const void *), const void *arguments, int blocks, int threads) {
  static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&one);
  block_size = threads;
  launch = {body, arguments, (unsigned)blocks};
  run_lanes();
  pthread_mutex_unlock(&one);
}

}  // namespace gz
