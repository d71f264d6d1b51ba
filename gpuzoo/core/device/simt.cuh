// CUDA's words for the host, one thread per lane: tests run the thread form of the engine without a GPU, and
// ThreadSanitizer sees a missing barrier as the race that it is. Blocks run one after another.

#include <pthread.h>
#include <sched.h>

#define __global__
#define __shared__ static
#define __launch_bounds__(...)

namespace gz {

struct Index {
  unsigned x, y, z;
};
static thread_local Index threadIdx, blockIdx;

// A barrier for `size` neighbouring threads of the block: two in turn, because ThreadSanitizer takes what a fast thread
// did before it came to a barrier's next use as done before a slow one left the use before, and misses their race.
struct Meeting {
  pthread_barrier_t barrier[2];
  u64 slots[32];
};
static Meeting meetings[2][1024];  // [0]: the whole block, or the lanes of one env; [1]: a warp of a wider env
static int block_size;
static thread_local unsigned turn[2];

GZ void meet(int kind, int size) {
  pthread_barrier_wait(&meetings[kind][threadIdx.x / size].barrier[turn[kind]++ & 1]);
}
GZ void __syncthreads() { meet(0, block_size); }

constexpr int SIMT_WIDTH = LANES < 32 ? LANES : 32;
constexpr int SIMT_KIND = LANES <= 32 ? 0 : 1;

// For those threads of a warp that `mask` names, in games of one lane. No thread leaves before the last one has come; that
// it waits for a count which none of the next use changes lets ThreadSanitizer see a race between two uses.
struct Crowd {
  u32 came, uses, votes;
};
static Crowd crowds[1024];  // of the first thread of the mask

GZ Crowd &crowd(u32 mask) { return crowds[threadIdx.x / 32 * 32 + __builtin_ctz(mask)]; }
static void meet(Crowd &c, u32 mask, bool counted = false) {
  const u32 use = __atomic_load_n(&c.uses, __ATOMIC_RELAXED);
  if (__atomic_add_fetch(&c.came, 1, __ATOMIC_ACQ_REL) == (u32)__builtin_popcount(mask)) {
    __atomic_store_n(&c.came, 0, __ATOMIC_RELAXED);
    if (counted) __atomic_store_n(&c.votes, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&c.uses, use + 1, __ATOMIC_RELEASE);
  }
  while (__atomic_load_n(&c.uses, __ATOMIC_ACQUIRE) == use) sched_yield();
}
static u32 __ballot_sync(u32 mask, bool vote) {
  Crowd &c = crowd(mask);
  if (vote) __atomic_fetch_or(&c.votes, 1u << threadIdx.x % 32, __ATOMIC_RELAXED);
  meet(c, mask);
  const u32 votes = __atomic_load_n(&c.votes, __ATOMIC_RELAXED);
  meet(c, mask, true);
  return votes;
}

GZ void __syncwarp(u32 mask) {
  if constexpr (LANES == 1)
    meet(crowd(mask), mask);
  else
    meet(SIMT_KIND, SIMT_WIDTH);
}

template <class T> static T __shfl_xor_sync(u32, T value, int offset) {
  Meeting &m = meetings[SIMT_KIND][threadIdx.x / SIMT_WIDTH];
  int k = threadIdx.x % SIMT_WIDTH;
  __builtin_memcpy(&m.slots[k], &value, sizeof(T));
  meet(SIMT_KIND, SIMT_WIDTH);
  __builtin_memcpy(&value, &m.slots[k ^ offset], sizeof(T));
  meet(SIMT_KIND, SIMT_WIDTH);
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
  unsigned thread, blocks;
};

static void *simt_thread(void *pointer) {
  const Launch &launch = *(const Launch *)pointer;
  threadIdx = {launch.thread, 0, 0};
  for (unsigned block = 0; block < launch.blocks; ++block) {
    blockIdx = {block, 0, 0};
    launch.body(launch.arguments);
    pthread_barrier_wait(&meetings[1][1023].barrier[0]);
  }
  return nullptr;
}

static void simt_launch(void (*body)(const void *), const void *arguments, int blocks, int threads) {
  static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&one);
  block_size = threads;
  int members = LANES <= 32 ? SIMT_WIDTH : threads;
  for (int k = 0; k < 2; ++k) {
    for (int g = 0; g < threads / members; ++g) pthread_barrier_init(&meetings[0][g].barrier[k], nullptr, members);
    for (int g = 0; g < threads / SIMT_WIDTH && SIMT_KIND == 1; ++g)
      pthread_barrier_init(&meetings[1][g].barrier[k], nullptr, SIMT_WIDTH);
  }
  pthread_barrier_init(&meetings[1][1023].barrier[0], nullptr, threads);
  static Launch launches[1024];
  static pthread_t ids[1024];
  for (int k = 0; k < threads; ++k) {
    launches[k] = {body, arguments, (unsigned)k, (unsigned)blocks};
    pthread_create(&ids[k], nullptr, simt_thread, &launches[k]);
  }
  for (int k = 0; k < threads; ++k) pthread_join(ids[k], nullptr);
  pthread_mutex_unlock(&one);
}

}  // namespace gz
