// The machine below translated PTX. A block's threads are coroutines, each with a stack of its own. A thread runs until
// it waits for others. When every thread of the block has stopped, complete groups exchange their values and go on. So a
// launch is deterministic in each order of the threads, and a group that can never be complete is an error, not a hang.
//
// Also the instructions that C++ has no operator for. Those that compute a NaN give the one of the hardware, 0x7fffffff.

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define GZ_INLINE static inline __attribute__((always_inline))

namespace ptx {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s8 = int8_t;
using s16 = int16_t;
using s32 = int32_t;
using s64 = int64_t;
using f32 = float;
using f64 = double;  // only to be made a float

// ---- threads ----

struct Three {
  u32 x, y, z;
};

enum Waits { NOT, BAR_SYNC, BAR_WARP_SYNC, SHFL, VOTE, ENDED };
static const char *const WAITS[] = {"", "bar.sync", "bar.warp.sync", "shfl.sync", "vote.sync", ""};

struct Thread {
  Three tid, ctaid, ntid, nctaid;
  u32 index;                        // in the block
  Waits waits;
  int site;                         // the instruction that it waits at
  u32 mask, value, source, result;  // of a warp's exchange
  ucontext_t context;
};

using Body = void (*)(Thread &, const char *);

constexpr u32 MOST_THREADS = 1024, WARP = 32, SHARED = 227 << 10;
constexpr u64 STACK = 256 << 10, GUARD = 4096;

static Thread block[MOST_THREADS];
alignas(1024) static char shared_memory[SHARED];
static char error[512];
static ucontext_t scheduler;
static Thread *current;
static Body current_body;
static const char *current_params;

#define FAIL(...) (error[0] ? false : snprintf(error, sizeof(error), __VA_ARGS__) > 0)

static void begin() {
  current_body(*current, current_params);
  current->waits = ENDED;
  swapcontext(&current->context, &scheduler);
}

static __attribute__((noinline)) u32 wait(Thread &t, Waits waits, int site, u32 mask, u32 value = 0, u32 source = 0) {
  t.waits = waits, t.site = site, t.mask = mask, t.value = value, t.source = source;
  swapcontext(&t.context, &scheduler);
  return t.result;
}

// Lets the threads of a complete warp-wide group go on.
static bool exchange(Thread *warp, u32 size, u32 lane) {
  const Thread &first = warp[lane];
  if (!(first.mask >> lane & 1))
    return FAIL("lane %u waits at %s and is not in its mask %08x", lane, WAITS[first.waits], first.mask);
  u32 members = 0, ballot = 0;
  for (u32 k = 0; k < size; ++k) {
    const Thread &t = warp[k];
    // threads may come to bar.warp.sync by several ways, to all others by one
    if (t.waits != first.waits || t.mask != first.mask || (t.site != first.site && t.waits != BAR_WARP_SYNC)) continue;
    members |= 1u << k;
    ballot |= t.value << k;
  }
  if (members != first.mask) return false;
  for (u32 k = 0; k < size; ++k) {
    if (!(members >> k & 1)) continue;
    if (warp[k].waits == SHFL && !(members >> warp[k].source & 1))
      FAIL("lane %u takes a value from lane %u, which is not in the mask %08x", k, warp[k].source, members);
    else
      warp[k].result = warp[k].waits == SHFL ? warp[warp[k].source].value : ballot;
  }
  for (u32 k = 0; k < size; ++k)
    if (members >> k & 1) warp[k].waits = NOT;
  return true;
}

static bool cross_barrier(u32 count) {
  for (u32 k = 0; k < count; ++k)
    if (block[k].waits != BAR_SYNC && block[k].waits != ENDED) return false;
  for (u32 k = 0; k < count; ++k) {
    const Thread &t = block[k], &first = block[k / WARP * WARP];
    if (t.waits == BAR_SYNC && first.waits == BAR_SYNC && t.site != first.site)
      FAIL("threads %u and %u of a warp wait at two different bar.sync", first.index, k);
  }
  for (u32 k = 0; k < count; ++k)
    if (block[k].waits == BAR_SYNC) block[k].waits = NOT;
  return true;
}

static u32 place(u32 k, u32 n, int order) {
  return order == 0 ? k : order == 1 ? n - 1 - k : k < n / 2 ? 2 * k + 1 : 2 * (k - n / 2);
}

static void run_block(u32 count, int order) {
  static char *stacks = (char *)mmap(nullptr, MOST_THREADS * STACK, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  for (u32 k = 0; k < count; ++k) {
    char *stack = stacks + k * STACK;
    mprotect(stack, GUARD, PROT_NONE);
    getcontext(&block[k].context);
    block[k].context.uc_stack.ss_sp = stack + GUARD;
    block[k].context.uc_stack.ss_size = STACK - GUARD;
    makecontext(&block[k].context, begin, 0);
    block[k].waits = NOT;
  }
  for (;;) {
    u32 waiting = count;
    for (u32 k = 0; k < count; ++k) {
      current = &block[place(k, count, order)];
      if (current->waits == NOT) swapcontext(&scheduler, &current->context);
    }
    for (u32 k = 0; k < count; ++k) waiting -= block[k].waits == ENDED;
    if (waiting == 0 || error[0]) return;
    bool some = cross_barrier(count);
    for (u32 k = 0; k < count; ++k)
      if (block[k].waits == BAR_WARP_SYNC || block[k].waits == SHFL || block[k].waits == VOTE)
        some |= exchange(&block[k / WARP * WARP], count - k / WARP * WARP < WARP ? count % WARP : WARP, k % WARP);
    for (u32 k = 0; k < count && !some; ++k)
      if (block[k].waits != ENDED)
        FAIL("thread %u waits at %s with mask %08x, and others never come there", k, WAITS[block[k].waits], block[k].mask);
  }
}

// Runs a kernel. Returns null, or what was wrong. A thread that never waits needs no stack.
static const char *launch(Body body, bool waits, const Three *dims, const char *params, u32 shared, int order) {
  static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&one);
  const Three grid = dims[0], size = dims[1];
  const u32 count = size.x * size.y * size.z, blocks = grid.x * grid.y * grid.z;
  current_body = body, current_params = params, error[0] = 0;
  for (u32 k = 0; k < count; ++k) {
    block[k].tid = {k % size.x, k / size.x % size.y, k / size.x / size.y};
    block[k].ntid = size, block[k].nctaid = grid, block[k].index = k;
  }
  for (u32 i = 0; i < blocks && !error[0]; ++i) {
    const u32 b = place(i, blocks, order);
    for (u32 k = 0; k < count; ++k) block[k].ctaid = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
    memset(shared_memory, 0xA5, shared);
    if (waits)
      run_block(count, order);
    else
      for (u32 k = 0; k < count; ++k) body(block[place(k, count, order)], params);
  }
  pthread_mutex_unlock(&one);
  return error[0] ? error : nullptr;
}

// ---- exchanges ----

GZ_INLINE u32 shuffled(Thread &t, int site, bool &inside, char mode, u32 value, u32 by, u32 limits, u32 mask) {
  const s32 lane = t.index % WARP, segments = limits >> 8 & 31, first = lane & segments;
  const s32 last = first | (limits & 31 & ~segments), b = by & 31;
  const s32 from = mode == 'u' ? lane - b : mode == 'd' ? lane + b : mode == 'b' ? (lane ^ b) : first | (b & ~segments);
  inside = mode == 'u' ? from >= last : from <= last;
  return wait(t, SHFL, site, mask, value, inside ? from : lane);
}
GZ_INLINE u32 ballot(Thread &t, int site, bool value, u32 mask) { return wait(t, VOTE, site, mask, value); }

// ---- memory ----

// An address, whose low bits are kept: hardware refuses one that is no multiple of the access's size.
GZ_INLINE char *at(u64 address, u64 size, u64 &odd) {
  odd |= address & (size - 1);
  return (char *)address;
}
template <class T> GZ_INLINE T get(const char *p) {
  T x;
  memcpy(&x, p, sizeof(T));
  return x;
}
template <class T> GZ_INLINE void put(char *p, T x) { memcpy(p, &x, sizeof(T)); }
template <class T, class F> static T atomic(char *p, F f) {
  const T old = get<T>(p);
  put<T>(p, f(old));
  return old;
}

// ---- instructions ----

template <class T, class U> GZ_INLINE T bits(U x) {
  static_assert(sizeof(T) == sizeof(U), "as many bits");
  T y;
  memcpy(&y, &x, sizeof(T));
  return y;
}
GZ_INLINE f32 number(f32 x) { return x == x ? x : bits<f32>(0x7fffffffu); }
GZ_INLINE f32 min_f32(f32 a, f32 b) {
  if (a != a || b != b) return number(a != a ? b : a);
  return a == b ? bits<f32>(bits<u32>(a) | bits<u32>(b)) : a < b ? a : b;
}
GZ_INLINE f32 max_f32(f32 a, f32 b) {
  if (a != a || b != b) return number(a != a ? b : a);
  return a == b ? bits<f32>(bits<u32>(a) & bits<u32>(b)) : a > b ? a : b;
}
// of a float without a fraction
template <class I> static I to_integer(f32 x) {
  constexpr int BITS = 8 * sizeof(I);
  constexpr bool SIGNED = (I)-1 < 0;
  constexpr I LOW = SIGNED ? (I)((u64)1 << (BITS - 1)) : (I)0, HIGH = (I)~LOW;
  if (x != x) return BITS == 64 ? (I)((u64)1 << 63) : (I)0;
  const f32 edge = ldexpf(1.f, SIGNED ? BITS - 1 : BITS);
  return x >= edge ? HIGH : x < (SIGNED ? -edge : 0.f) ? LOW : (I)x;
}
GZ_INLINE u32 mul_hi(u32 a, u32 b) { return (u32)((u64)a * b >> 32); }
GZ_INLINE s32 mul_hi(s32 a, s32 b) { return (s32)((s64)a * b >> 32); }
GZ_INLINE u64 mul_hi(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
GZ_INLINE s64 mul_hi(s64 a, s64 b) { return (s64)((__int128)a * b >> 64); }
GZ_INLINE u16 mul_hi(u16 a, u16 b) { return (u16)((u32)a * b >> 16); }
GZ_INLINE s16 mul_hi(s16 a, s16 b) { return (s16)((s32)a * b >> 16); }
// What a division by 0 gives is unspecified, and the host's would end the process.
template <class I> GZ_INLINE I quotient(I a, I b) { return b == 0 ? (I)-1 : b == (I)-1 && (I)-1 < 0 ? (I)(0 - a) : a / b; }
template <class I> GZ_INLINE I rest(I a, I b) { return b == 0 ? a : b == (I)-1 && (I)-1 < 0 ? (I)0 : a % b; }
template <class I> GZ_INLINE I shl(I a, u32 n) { return n >= 8 * sizeof(I) ? (I)0 : (I)(a << n); }
template <class I> GZ_INLINE I shr(I a, u32 n) {
  return n < 8 * sizeof(I) ? (I)(a >> n) : (I)(a < 0 ? -1 : 0);
}
GZ_INLINE u32 shf_l(u32 low, u32 high, u32 n) { return (u32)((((u64)high << 32 | low) << n) >> 32); }
GZ_INLINE u32 shf_r(u32 low, u32 high, u32 n) { return (u32)(((u64)high << 32 | low) >> n); }
GZ_INLINE u32 clamped(u32 n) { return n < 32 ? n : 32; }
template <class I> GZ_INLINE u32 clz(I x) { return x ? __builtin_clzll(x) - (64 - 8 * sizeof(I)) : 8 * sizeof(I); }
template <class I> static I brev(I x) {
  I y = 0;
  for (u32 k = 0; k < 8 * sizeof(I); ++k) y |= (I)(x >> k & 1) << (8 * sizeof(I) - 1 - k);
  return y;
}
template <class I> static I bfe(I a, u32 start, u32 length) {  // what lies beyond the last bit is 0, or the field's sign
  const u32 most = 8 * sizeof(I) - 1;
  start &= 255, length &= 255;
  const u32 last = start + length - 1 < most ? start + length - 1 : most;
  const bool sign = (I)-1 < 0 && length != 0 && (a >> last & 1);
  I x = 0;
  for (u32 k = 0; k <= most; ++k) {
    const bool bit = k < length && start + k <= most ? (a >> (start + k) & 1) : sign;
    x |= (I)((I)bit << k);
  }
  return x;
}
template <class I> static I bfi(I a, I b, u32 start, u32 length) {
  start &= 255, length &= 255;
  for (u32 k = start; k < start + length && k < 8 * sizeof(I); ++k)
    b = (b & ~((I)1 << k)) | (a >> (k - start) & 1) << k;
  return b;
}
static u32 prmt(u32 a, u32 b, u32 selector) {
  const u64 bytes = (u64)b << 32 | a;
  u32 x = 0;
  for (u32 k = 0; k < 4; ++k) {
    const u32 s = selector >> 4 * k & 15, byte = bytes >> 8 * (s & 7) & 255;
    x |= (s & 8 ? (byte & 128 ? 255u : 0u) : byte) << 8 * k;
  }
  return x;
}
static u32 lop3(u32 a, u32 b, u32 c, u32 table) {
  u32 x = 0;
  for (u32 k = 0; k < 8; ++k)
    if (table >> k & 1) x |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
  return x;
}

}  // namespace ptx
