"""DiscountingChain in a scan of JAX: gpuzoo's kernel, one written by hand, no kernel at all, and gymnax, in turns.

    python scripts/bench_jax_by_hand.py [--num-envs 1024] [--steps 64] [--seconds 2]

The game is the one in which gymnax computes the least, and this says what a call can gain there. The kernel by hand
is for this game only and for CPUs with AVX-512. It reads and writes the same arrays, looks its two tables up in
registers, and leaves out what this scan does not need: envs that wait for a reset, a limit of time, and a loop over
other steps. The call without a kernel only returns. All have one thread.
"""

from __future__ import annotations

import argparse
import ctypes

import gymnax
import jax
from bench_jax import drawn, scanned

import gpuzoo.jax
from gpuzoo.core.backend_cpu import compile_host
from gpuzoo.tools.clocks import REPEATS, Clock, take_turns

GAME = "DiscountingChain-bsuite"
MEMBERS = {
    "CONTEXT": "field_context", "ELAPSED": "elapsed_steps", "ACTION": "action", "REWARD": "reward",
    "RETURN": "episode_return", "OBSERVATION": "observation", "TERMINATED": "terminated", "TRUNCATED": "truncated",
    "ENDED": "ended", "LAST_RETURN": "final_return", "LAST_LENGTH": "final_length", "EPISODE": "episode",
    "LAST_OBSERVATION": "final_observation",
}  # fmt: skip
KERNELS = r"""
#include <immintrin.h>

template <class T> static T *member(const void *store, int k) { return (T *)((void *const *)store)[k]; }

extern "C" void nothing(const void *, long long, long long, int) {}

extern "C" void by_hand(const void *store, long long, long long n, int) {
  int *context = member<int>(store, CONTEXT), *elapsed = member<int>(store, ELAPSED);
  const int *action = member<int>(store, ACTION);
  float *reward = member<float>(store, REWARD), *sum = member<float>(store, RETURN);
  float *observation = member<float>(store, OBSERVATION);
  char *terminated = member<char>(store, TERMINATED), *truncated = member<char>(store, TRUNCATED);
  char *ended = member<char>(store, ENDED);
  const __m512i one = _mm512_set1_epi32(1), hundred = _mm512_set1_epi32(100);
  const __m512i due = _mm512_setr_epi32(1, 3, 10, 30, 100, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  const __m512 pay = _mm512_setr_ps(1.1f, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
  int ends = 0;
  for (long long i = 0; i < n; i += 16) {
    const __m512i t = _mm512_add_epi32(_mm512_loadu_si512(elapsed + i), one), raw = _mm512_loadu_si512(action + i);
    const __m512i legal = _mm512_maskz_mov_epi32(_mm512_cmplt_epu32_mask(raw, _mm512_set1_epi32(5)), raw);
    const __m512i before = _mm512_loadu_si512(context + i);
    const __m512i chain = _mm512_mask_mov_epi32(before, _mm512_cmpeq_epi32_mask(t, one), legal);
    const __mmask16 now = _mm512_cmpeq_epi32_mask(_mm512_permutexvar_epi32(chain, due), t);
    const __m512 paid = _mm512_maskz_permutexvar_ps(now, chain, pay);
    _mm512_storeu_ps(reward + i, paid);
    _mm512_storeu_ps(sum + i, _mm512_add_ps(_mm512_loadu_ps(sum + i), paid));
    _mm512_storeu_si512(elapsed + i, t);
    _mm512_storeu_si512(context + i, chain);
    const __m512 number = _mm512_cvtepi32_ps(chain), part = _mm512_div_ps(_mm512_cvtepi32_ps(t), _mm512_set1_ps(100.f));
    _mm512_storeu_ps(observation + 2 * i, _mm512_permutex2var_ps(number, low, part));
    _mm512_storeu_ps(observation + 2 * i + 16, _mm512_permutex2var_ps(number, high, part));
    const __mmask16 over = _mm512_cmpge_epi32_mask(t, hundred);
    const __m128i flags = _mm_maskz_set1_epi8(over, 1);
    _mm_storeu_si128((__m128i *)(terminated + i), flags);
    _mm_storeu_si128((__m128i *)(ended + i), flags);
    _mm_storeu_si128((__m128i *)(truncated + i), _mm_setzero_si128());
    ends |= over;
  }
  for (long long i = 0; ends && i < n; ++i) {
    if (!ended[i]) continue;
    float *row = observation + 2 * i, *last = member<float>(store, LAST_OBSERVATION) + 2 * i;
    last[0] = row[0], last[1] = row[1], row[0] = -1, row[1] = 0;
    member<float>(store, LAST_RETURN)[i] = sum[i], sum[i] = 0;
    member<int>(store, LAST_LENGTH)[i] = elapsed[i], elapsed[i] = 0;
    member<unsigned>(store, EPISODE)[i] += 1, context[i] = -1;
  }
}
"""


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--num-envs", type=int, default=1024, help="a multiple of 16 (default: 1024)")
    parser.add_argument("--steps", type=int, default=64, help="of a scan (default: 64)")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each contestant")
    chosen = parser.parse_args()
    env, params = gpuzoo.jax.make(gpuzoo.get(GAME).id, threads=1)
    actions = drawn(next(iter(env.action_spaces.values())), chosen.steps, chosen.num_envs)
    ours, theirs = (scanned(*made, chosen.num_envs, actions) for made in ((env, params), gymnax.make(GAME)))
    program = env._program
    flags = tuple(f"-D{name}={program._program.store.index(member)}" for name, member in MEMBERS.items())
    own = ctypes.CDLL(str(compile_host(KERNELS, "by-hand", flags)))
    calls = ctypes.CDLL(str(compile_host(program._code(), f"{env.name}-jax", (f"-I{jax.ffi.include_dir()}",))))
    kernels = {
        "gpuzoo.jax": ctypes.c_void_p(program._kernels.address("step")),
        "the same call, kernel by hand": ctypes.cast(own.by_hand, ctypes.c_void_p),
        "the same call, no kernel": ctypes.cast(own.nothing, ctypes.c_void_p),
    }

    def with_kernel(kernel: ctypes.c_void_p) -> Clock:
        def loop(count: int) -> None:
            calls.gz_bind_step(kernel)
            ours(count)

        return Clock(loop, chosen.seconds / (REPEATS + 1))

    clocks = {name: with_kernel(kernel) for name, kernel in kernels.items()}
    clocks["gymnax"] = Clock(theirs, chosen.seconds / (REPEATS + 1))
    take_turns(list(clocks.values()))
    print("| step | µs | times gymnax |\n|:--|--:|--:|")
    for name, clock in clocks.items():
        ratio = clocks["gymnax"].seconds / clock.seconds
        print(f"| {name} | {clock.seconds / chosen.steps * 1e6:.2f} | {ratio:.1f} |")


if __name__ == "__main__":
    main()
