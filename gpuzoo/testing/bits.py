"""The same bits everywhere: in any batch, on any number of threads, in any order of lanes, from any snapshot."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np

from gpuzoo.core.backend_cpu import CpuBackend
from gpuzoo.core.layout import choices
from gpuzoo.core.simulator import Simulator
from gpuzoo.testing.tools import SEED, EnvLike, assert_same, pick, promise, random_actions, random_step, read, simulator


# The first check of all: what it finds makes others crash.
@promise
def check_indices(env: EnvLike, **config: Any) -> None:
    """No index of the rules is out of range, and ``debug=True``, which looks at each of them, gives the same bits."""
    checked = simulator(env, 6, debug=True, **config)
    try:
        checked.reset(seed=SEED)
        checked.rollout(200)
    except IndexError as error:
        raise AssertionError(str(error)) from error
    sim = simulator(env, 6, **config)
    sim.reset(seed=SEED)
    sim.rollout(200)
    assert_same("without and with debug=True", read(sim), read(checked))


@promise
def check_determinism(env: EnvLike, **config: Any) -> None:
    """A seed gives the same episodes again, in a new batch and in one that has been played with."""
    first, again, used = (simulator(env, 4, **config) for _ in range(3))
    used.reset(seed=1234)
    used.rollout(57)
    for sim in (first, again, used):
        sim.reset(seed=SEED)
    for step in range(100):
        left = read(first)
        # What was last left by an episode before the reset is no part of the new ones.
        late = {n for n in left if n.startswith("final_")}
        assert_same(f"two batches of one seed, after {step} steps", left, read(again))
        assert_same(
            f"a batch that was reset again with its seed, after {step} steps",
            {n: a for n, a in left.items() if n not in late},
            {n: a for n, a in read(used).items() if n not in late},
        )
        for sim in (first, again, used):
            random_step(sim)


def _tile(sim: Simulator) -> int:
    found = re.search(r"constexpr int TILE = (\d+);", sim.program.code)
    assert found
    return int(found[1])


@promise
def check_batch_invariance(env: EnvLike, **config: Any) -> None:
    """Env i of a batch is the env alone with seed + i, whatever the size of the batch."""
    tile = _tile(simulator(env, 1, **config))
    for n in sorted({1, 2, tile - 1, tile + 1, 2 * tile - 24} - {0, -1} | {3}):
        if n < 1:
            continue
        batch = simulator(env, n, **config)
        batch.reset(seed=SEED)
        probes = sorted({0, n // 2, min(tile, n) - 1, min(tile, n - 1), n - 1})
        alone = [simulator(env, 1, threads=1, **config) for _ in probes]
        for probe, single in zip(probes, alone, strict=True):
            single.reset(seed=SEED + probe)
        for step in range(200):
            for sim in (batch, *alone):
                random_step(sim)
            if step % 8 and step < 190:
                continue
            whole = read(batch, probes)
            for k, single in enumerate(alone):
                assert_same(f"env {probes[k]} of {n} and alone, after {step + 1} steps", pick(whole, [k]), read(single))


@promise
def check_threads(env: EnvLike, **config: Any) -> None:
    """The number of CPU threads changes nothing."""
    n = 3 * _tile(simulator(env, 1, **config)) + 5
    sims = [simulator(env, n, threads=threads, **config) for threads in (1, 2, 3)]
    for sim in sims:
        sim.reset(seed=SEED)
        for _ in range(5):
            sim.rollout(11)
            random_step(sim)
    for sim in sims[1:]:
        assert_same(f"1 and {sim.backend.threads} threads", read(sims[0]), read(sim))  # type: ignore[attr-defined]


@promise
def check_lane_order(env: EnvLike, **config: Any) -> None:
    """The order in which lanes run changes nothing: iterations of one region are independent."""
    # a compiler that optimises less is sooner done, and must give the same bits, too
    other = CpuBackend(flags=("-DGZ_LANE_ORDER", "-Og"))
    forward, mixed = simulator(env, 4, **config), simulator(env, 4, backend=other, **config)
    for sim in (forward, mixed):
        sim.reset(seed=SEED)
    for step in range(80):
        assert_same(f"lanes forward and in other orders, after {step} steps", read(forward), read(mixed))
        for sim in (forward, mixed):
            random_step(sim)


@promise
def check_reset_writes_all(env: EnvLike, **config: Any) -> None:
    """A reset sets every field: nothing of the episode before, or of what lay in memory, is left."""
    clean, dirty = simulator(env, 4, **config), simulator(env, 4, **config)
    for name in dirty.program.fields:
        array = dirty.arrays[name]
        array[...] = np.full(array.size * array.itemsize, 0xA5, np.uint8).view(array.dtype).reshape(array.shape)
    for sim in (clean, dirty):
        sim.reset(seed=SEED)
    assert_same("a reset over zeros and over garbage", read(clean), read(dirty))


@promise
def check_observe_writes_all(env: EnvLike, **config: Any) -> None:
    """Each step and reset writes the whole observation and mask of every agent, of those that left the game too."""
    for mode in ("same_step", "next_step"):
        clean, dirty = (simulator(env, 4, autoreset_mode=mode, **config) for _ in range(2))
        for step in range(120):
            if step:
                for sim in (clean, dirty):
                    sim.random_actions()
                    _fill_in_invalid(sim)
            for name in ("observation", "reward"):
                array = dirty.arrays[name]
                array[...] = np.full(array.nbytes, 0xFF, np.uint8).view(array.dtype).reshape(array.shape)
            if "action_mask" in dirty.arrays:  # the legal actions stay legal
                dirty.arrays["action_mask"][...] = 1
            for sim in (clean, dirty):
                if step:
                    sim.step()
                else:
                    sim.reset(seed=SEED)
            assert_same(f"observations written over garbage, after {step} steps", read(clean), read(dirty))


def _fill_in_invalid(sim: Simulator) -> None:
    """Gives agents without any legal action the one that they would be given anyway."""
    lay = sim.layout
    for group, first in lay.first.items():
        start = 0
        for k, n in enumerate(choices(lay.action_spaces[group]) if lay.mask_size else []):
            agents = slice(first, first + lay.groups[group])
            none = ~sim.arrays["action_mask"][:, agents, start : start + n].any(-1)
            sim.arrays["action"][:, agents, k][none] = type(sim.env).invalid_action
            start += n


@promise
def check_observe_again(env: EnvLike, **config: Any) -> None:
    """What is observed follows from the state alone: observing twice, with other actions waiting, changes nothing."""
    for mode in ("same_step", "disabled"):
        sim = simulator(env, 4, autoreset_mode=mode, **config)
        sim.reset(seed=SEED)
        rng = np.random.default_rng(SEED)
        for step in range(60):
            # who has just finished was alive when the step was observed, and is not any more
            finished = sim.arrays["terminated"] | sim.arrays["truncated"]
            envs = np.flatnonzero(~finished.any(1) | (sim.arrays["elapsed_steps"] == 0))
            before = read(sim, envs)
            sim.arrays["action"][...] = random_actions(sim.layout, rng, 4)
            sim.set_state({})
            assert_same(f"observed twice after {step} steps", before, read(sim, envs))
            random_step(sim)


@promise
def check_snapshot(env: EnvLike, **config: Any) -> None:
    """Episodes go on from a snapshot with the same bits: in place, pickled, in part, and in another batch."""
    sim = simulator(env, 6, **config)
    sim.reset(seed=SEED)
    sim.rollout(29)
    some = np.array([4, 1])
    whole, part = sim.snapshot(), pickle.loads(pickle.dumps(sim.snapshot(some).numpy()))
    story = []
    for _ in range(60):
        random_step(sim)
        story.append(read(sim))
    sim.restore(whole)
    for k, want in enumerate(story):
        random_step(sim)
        assert_same(f"{k + 1} steps after restore", want, read(sim))
    other = simulator(env, 9, **config)
    other.reset(seed=555)
    other.rollout(3)
    where = [7, 2]
    rest = [i for i in range(9) if i not in where]
    before = {name: np.array(array)[rest] for name, array in other.arrays.items()}
    other.restore(part, where)
    after = {name: np.array(array)[rest] for name, array in other.arrays.items()}
    assert_same("envs beside the restored ones", before, after)
    for k, want in enumerate(story):
        random_step(other)
        assert_same(f"{k + 1} steps after restore in another batch", pick(want, some), read(other, where))
