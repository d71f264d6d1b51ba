// CUDA's words for the host, one thread per lane: tests run the thread form of the engine without a GPU. Blocks run one
// after another. A block's threads are coroutines of one thread where the C library has them: a barrier then costs a
// switch. With a sanitizer they are real threads, and ThreadSanitizer sees a missing barrier as the race that it is.

#include <pthread.h>
#include <sched.h>
#if defined(__GLIBC__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#define GZ_COROUTINES
#include <setjmp.h>
#include <stdlib.h>
#include <ucontext.h>
#endif

#define __global__
#define __shared__ static
#define __launch_bounds__(...)

namespace gz {

struct Index {
  unsigned x, y, z;
};

#ifdef GZ_COROUTINES

static Index threadIdx, blockIdx;

// A barrier: a thread that comes to it lets others run until the last one has come.
struct Meeting {
  int arrived;
  unsigned times;
  u64 slots[32];
};
static Meeting meetings[3][1024];  // [0]: the whole block, or the lanes of one env; [1]: a warp of a wider env;
                                   // [2]: in games of one lane, the threads of a mask, at the first of them
struct Coroutine {
  jmp_buf place;
  const Meeting *meeting;  // where it waits
  unsigned times;
  bool runs;
};
static Coroutine coroutines[1024];
static jmp_buf scheduler;

static __attribute__((noinline)) void meet(Meeting &m, int size) {
  if (++m.arrived == size) {
    m.arrived = 0, ++m.times;
    return;
  }
  Coroutine &self = coroutines[threadIdx.x];
  self.meeting = &m, self.times = m.times;
  if (!_setjmp(self.place)) _longjmp(scheduler, 1);
}
GZ void meet(int kind, int size) { meet(meetings[kind][threadIdx.x / size], size); }

#else

static thread_local Index threadIdx, blockIdx;

// A barrier for `size` neighbouring threads of the block: two in turn, because ThreadSanitizer takes what a fast thread
// did before it came to a barrier's next use as done before a slow one left the use before, and misses their race.
struct Meeting {
  pthread_barrier_t barrier[2];
  int arrived;
  unsigned times;
  u64 slots[32];
};
static Meeting meetings[3][1024];
static thread_local unsigned turn[2];

GZ void meet(int kind, int size) {
  pthread_barrier_wait(&meetings[kind][threadIdx.x / size].barrier[turn[kind]++ & 1]);
}
// For as many threads as come. Each waits for a number that the next use does not change before all have left.
static void meet(Meeting &m, int size) {
  const unsigned times = __atomic_load_n(&m.times, __ATOMIC_RELAXED);
  if (__atomic_add_fetch(&m.arrived, 1, __ATOMIC_ACQ_REL) == size) {
    __atomic_store_n(&m.arrived, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&m.times, times + 1, __ATOMIC_RELEASE);
  }
  while (__atomic_load_n(&m.times, __ATOMIC_ACQUIRE) == times) sched_yield();
}

#endif

static int block_size;
GZ void __syncthreads() { meet(0, block_size); }

constexpr int SIMT_WIDTH = LANES < 32 ? LANES : 32;
constexpr int SIMT_KIND = LANES <= 32 ? 0 : 1;
GZ Meeting &those(u32 mask) { return meetings[2][threadIdx.x / 32 * 32 + __builtin_ctz(mask)]; }
GZ void __syncwarp(u32 mask) {
  if constexpr (LANES == 1)
    meet(those(mask), __builtin_popcount(mask));
  else
    meet(SIMT_KIND, SIMT_WIDTH);
}
static u32 __ballot_sync(u32 mask, bool vote) {  // in games of one lane
  Meeting &m = those(mask);
  m.slots[threadIdx.x % 32] = vote;
  __syncwarp(mask);
  u32 votes = 0;
  for (int k = 0; k < 32; ++k)
    if (mask >> k & 1u) votes |= (u32)m.slots[k] << k;
  __syncwarp(mask);
  return votes;
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

// `simt_launch` runs `body` in every thread of every block.

#ifdef GZ_COROUTINES

static void (*body_of_all)(const void *);
static const void *arguments_of_all;

static void simt_thread() {
  body_of_all(arguments_of_all);
  coroutines[threadIdx.x].runs = false;
  _longjmp(scheduler, 1);
}

// Lets a thread run until it waits or is through.
static __attribute__((noinline)) void simt_resume(Coroutine &thread, ucontext_t *first) {
  if (_setjmp(scheduler)) return;
  if (first) setcontext(first);
  _longjmp(thread.place, 1);
}

static void simt_launch(void (*body)(const void *), const void *arguments, int blocks, int size) {
  static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
  constexpr u64 STACK = 64 << 10;
  pthread_mutex_lock(&one);
  static char *stacks = (char *)malloc(1024 * STACK);  // what is not touched is no memory
  static ucontext_t start;
  getcontext(&start);
  block_size = size, body_of_all = body, arguments_of_all = arguments;
  for (int block = 0; block < blocks; ++block) {
    blockIdx = {(unsigned)block, 0, 0};
    int left = size;
    for (bool begins = true; left > 0; begins = false)
      for (int k = 0; k < size; ++k) {
        Coroutine &thread = coroutines[k];
        if (begins) {
          start.uc_stack.ss_sp = stacks + k * STACK, start.uc_stack.ss_size = STACK;
          makecontext(&start, simt_thread, 0);
          thread.runs = true;
        } else if (!thread.runs || thread.meeting->times == thread.times) {
          continue;
        }
        threadIdx = {(unsigned)k, 0, 0};
        simt_resume(thread, begins ? &start : nullptr);
        left -= !thread.runs;
      }
  }
  pthread_mutex_unlock(&one);
}

#else

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

#endif

}  // namespace gz
