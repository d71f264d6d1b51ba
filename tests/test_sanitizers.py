"""Every game under AddressSanitizer, UndefinedBehaviorSanitizer and, in the thread form, ThreadSanitizer.

A stand-alone program holds the game's unit and a ``main`` that allocates each array with exactly the bytes that
`Simulator` gives it, fills the fields with garbage, and plays: random rollouts in the three modes, then steps under
actions that no policy would take. A conversion of a float that does not fit its integer counts as undefined too: it
gives other bits on a GPU.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from toys.glide import Glide
from toys.herd import Herd

import gpuzoo
from gpuzoo import Simulator
from gpuzoo.core.backend_cpu import compile_host
from gpuzoo.core.headers import DEVICE

ADDRESS = (
    "-O0", "-g1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined,float-cast-overflow",
    "-fno-sanitize-recover=all", "-Wno-error",
)  # fmt: skip
THREAD = ("-O1", "-g1", "-fsanitize=thread")

MAIN = """
#include <stdlib.h>
#include <string.h>
static gz::u32 chance = 2463534242u;
static gz::u32 draw() { chance ^= chance << 13; chance ^= chance >> 17; chance ^= chance << 5; return chance; }
static const gz::u32 wild[] = {0x80000000u, 0x7fffffffu, 0xffffffffu, 0x7f800000u, 0xff800000u, 0x7fc00000u,
                               0xffc00001u, 0x7f7fffffu, 3u, 1000000u, 0x4f000000u, 0x3f800000u, 0u};
int main() {
  using gz::u8;
  using gz::u64;
  void *place[MEMBERS];
  for (int k = 0; k < MEMBERS; ++k) {
    place[k] = nullptr;
    if (bytes[k] < 0) continue;
    place[k] = malloc(bytes[k]);
    memset(place[k], fill[k], bytes[k]);
    if (data[k]) memcpy(place[k], data[k], bytes[k]);
  }
  u64 members[MEMBERS];
  for (int k = 0; k < MEMBERS; ++k) members[k] = place[k] ? (u64)place[k] : value[k];
  gz::Store *store = (gz::Store *)malloc(sizeof(gz::Store));
  static_assert(sizeof(gz::Store) == 8 * MEMBERS, "Store has other members");
  memcpy((void *)store, members, sizeof(members));
  gz::i64 *odd = (gz::i64 *)malloc(8 * (store->num_envs / 2 + 1));
  for (int i = 0; i < store->num_envs / 2; ++i) odd[i] = 2 * i + 1;
  for (int mode = 0; mode < 3; ++mode) {
    store->control->mode = mode;
    for (int i = 0; i < store->num_envs; ++i) {
      store->reset_mask[i] = 1;
      store->reset_seed[i] = 17 * mode + i;
    }
    gz::gz_launch_reset(store, 1, store->num_envs, THREADS);
    gz::gz_launch_rollout(store, STEPS, store->num_envs, THREADS);
    for (int step = 0; step < STEPS; ++step) {
      for (int k = 0; k < ACTIONS; ++k) {
        gz::u32 bits = draw() % 3 == 0 ? draw() : wild[draw() % (sizeof(wild) / 4)];
        memcpy((char *)store->action + 4 * k, &bits, 4);
      }
      const gz::i64 some = step % 3 ? 0 : (gz::i64)odd;
      gz::gz_launch_step(store, some, some ? store->num_envs / 2 : store->num_envs, THREADS);
      if (mode == 2 && step % 7 == 0) {
        for (int i = 0; i < store->num_envs; ++i) store->reset_mask[i] = store->waiting[i];
        gz::gz_launch_reset(store, 0, store->num_envs, THREADS);
      }
    }
  }
  for (int k = 0; k < MEMBERS; ++k) free(place[k]);
  free(odd);
  free(store);
  return 0;
}
"""


def program_text(sim: Simulator, steps: int, threads: int) -> str:
    """The game's unit with a main that gives it the arrays of a simulator."""
    owned = {sim.backend.address(a): a for a in sim._owned}
    sizes, fills, values, data, blobs = [], [], [], [], []
    numbers = {f"field_{name}": (field.sizes, field.dtype) for name, field in sim.program.scratch.items()}
    if (state := sim.layout.state_space) is not None:
        numbers |= dict.fromkeys(("state", "final_state"), (state.shape, str(state.dtype)))
    for name, pointer in zip(sim.program.store, sim._members.tolist(), strict=True):
        if name in numbers:  # what a CPU's threads have of their own, and what is only written where it has a place
            shape, dtype = numbers[name]
            nbytes = sim.num_envs * int(np.prod(shape)) * np.dtype(dtype).itemsize
            sizes.append(str(nbytes))
            values.append("0")
            fills.append("0xA5")
            data.append("nullptr")
            continue
        array = owned.get(pointer)
        if array is None or name == "num_envs":
            sizes.append("-1")
            values.append(str(pointer))
            fills.append("0")
            data.append("nullptr")
            continue
        sizes.append(str(max(array.nbytes, 1)))
        values.append("0")
        fills.append("0xA5" if name.startswith("field_") else "0")
        if name.startswith(("param_", "table_")) or name == "control":
            blob = ",".join(map(str, np.ascontiguousarray(array).view(np.uint8).ravel()))
            blobs.append(f"static const unsigned char data_{name}[] = {{{blob}}};")
            data.append(f"data_{name}")
        else:
            data.append("nullptr")
    head = [
        '#line 1 "main"',
        f"constexpr int MEMBERS = {len(sizes)}, STEPS = {steps}, THREADS = {threads};",
        f"constexpr int ACTIONS = {sim.arrays['action'].size};",
        *blobs,
        f"static const long bytes[] = {{{','.join(sizes)}}};",
        f"static const int fill[] = {{{','.join(fills)}}};",
        f"static const unsigned long long value[] = {{{','.join(values)}}};",
        f"static const void *const data[] = {{{','.join(data)}}};",
    ]
    # Compiled as it is written: forced inlining would make the sanitizers' build take minutes.
    code = sim.program.code.replace(" __attribute__((always_inline))", "")
    return code + "\n".join(head) + MAIN


def run(path: Path, **options: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1", **options}
    done = subprocess.run([str(path)], capture_output=True, text=True, env=environment, timeout=300)
    if "unexpected memory mapping" in done.stderr:  # ThreadSanitizer and a kernel that spreads addresses far
        done = subprocess.run(
            ["setarch", "-R", str(path)], capture_output=True, text=True, env=environment, timeout=300
        )
    return done


def assert_clean(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, "\n".join(done.stderr.splitlines()[:40])
    assert "ERROR" not in done.stderr
    assert "WARNING" not in done.stderr
    assert "runtime error" not in done.stderr


@pytest.mark.rotates
def test_memory_and_undefined_behaviour(game):
    sim = Simulator(game, 5, device="cpu", max_episode_steps=9)
    path = compile_host(program_text(sim, 30, 2), f"{game.id}-address", ADDRESS, ".exe")
    assert_clean(run(path))


@pytest.mark.rotates
def test_memory_of_wide_batches():
    """Several tiles and threads."""
    sim = Simulator(gpuzoo.get("CartPole-v1"), 1100, device="cpu", max_episode_steps=30)
    assert_clean(run(compile_host(program_text(sim, 40, 3), "tiles-address", ADDRESS, ".exe")))


@pytest.mark.rotates
def test_races_between_lanes(wide_game):
    """64 lanes: two warps, so the exchange between warps is in it."""
    sim = Simulator(wide_game, 2, device="cpu", lanes=64, max_episode_steps=3)
    path = compile_host(program_text(sim, 3, 1), f"{wide_game.id}-thread", (*THREAD, "-DGZ_SIMT"), ".exe")
    assert_clean(run(path))


def test_races_between_cpu_threads():
    sim = Simulator(gpuzoo.get("CartPole-v1"), 2000, device="cpu", max_episode_steps=30)
    path = compile_host(program_text(sim, 20, 3), "pool-thread", THREAD, ".exe")
    assert_clean(run(path))


# ---- the sanitizers find what they are there for ----


def changed(game, tmp_path, old: str, new: str):
    """A copy of a game with a fault in its rules."""
    rules = game.source().read_text()
    assert old in rules
    (tmp_path / "changed.cuh").write_text(rules.replace(old, new))
    return type("Changed", (game,), {"source": classmethod(lambda cls: tmp_path / "changed.cuh"), "id": "Changed-v0"})


@pytest.mark.rotates
def test_a_race_is_found(tmp_path):
    """A lane reads what its neighbour writes in the same region."""
    game = changed(
        Herd,
        tmp_path,
        "e.seen(a, 0) = (float)e.cell[a];\n    e.mixed",
        "e.seen(a, 0) = (float)e.cell[(a + 1) % AGENTS];\n    e.mixed",
    )
    sim = Simulator(game, 2, device="cpu", lanes=64)
    done = run(compile_host(program_text(sim, 3, 1), "race", (*THREAD, "-DGZ_SIMT"), ".exe"))
    assert done.returncode != 0
    assert "data race" in done.stderr
    assert "changed.cuh" in done.stderr


@pytest.mark.rotates
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("e.steps += 1;", "e.path(e.cfg.past, 1) = 1.f; e.steps += 1;", "heap-buffer-overflow"),
        ("e.steps += 1;", "e.steps += 2000000000;", "signed integer overflow"),
        ("e.steps += 1;", "e.steps = (int)(3e9f + e.path(0, 0));", "outside the range of representable values"),
    ],
)
def test_a_fault_is_found(tmp_path, old, new, message):
    game = changed(Glide, tmp_path, old, new)
    sim = Simulator(game, 1, device="cpu", past=32)
    done = run(compile_host(program_text(sim, 5, 1), "fault", ADDRESS, ".exe"))
    assert done.returncode != 0
    assert message in done.stderr


def test_a_barrier_that_not_all_lanes_come_to_is_an_error():
    """The thread form on the host ends with a sentence where a GPU would hang."""
    main = """
    static void body(const void *) { if (gz::threadIdx.x != 5) gz::__syncthreads(); }
    int main() { gz::simt_launch(body, nullptr, 1, 8); }
    """
    headers = [(DEVICE / name).read_text() for name in ("base.cuh", "simt.cuh")]
    text = "\n".join(["#define LANES 1", *headers, main])
    done = run(compile_host(text, "hang", ("-DGZ_SIMT", "-O1"), ".exe"))
    assert done.returncode != 0
    assert "wait at a barrier" in done.stderr
