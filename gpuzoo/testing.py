"""Checks that an env keeps its promises, for the games of this collection and for anybody else's.

`check_env` takes a game and runs every check of `CHECKS` on the CPU, `check_vector_env` takes any
``gymnasium.vector.VectorEnv``, and `check_parallel_env` and `strong_seed_test` take a function that makes a PettingZoo
``ParallelEnv``. All of them raise AssertionError with one sentence that says what is wrong and where::

    from gpuzoo.testing import check_env

    check_env(MyGame)

A game that cannot keep a promise names the check and the reason in `EnvDef.exempt`.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from gpuzoo import registry
from gpuzoo.core.actions import illegal_action
from gpuzoo.core.backend_cpu import CpuBackend
from gpuzoo.core.definition import EnvDef, Layout, choices, config_types, flat_size
from gpuzoo.core.simulator import Simulator

__all__ = ["CHECKS", "check_env", "check_parallel_env", "check_vector_env", "strong_seed_test"]

EnvLike = str | EnvDef | type[EnvDef]
Array = NDArray[Any]

#: what `check_env` runs: functions of a game and its configuration, by name
CHECKS: dict[str, Callable[..., None]] = {}

SEED = 7
LIMIT = 40  # time limit in most checks, so that every game begins many episodes within some hundred steps
_OBSERVATIONS = ("observation", "final_observation")
_MASKS = ("action_mask", "final_action_mask")
_OUTPUTS = (
    "reward terminated truncated alive episode_return final_return final_length elapsed_steps episode ended waiting"
).split()


def _check(function: Callable[..., None]) -> Callable[..., None]:
    CHECKS[function.__name__.removeprefix("check_")] = function
    return function


def check_env(env: EnvLike, **config: Any) -> None:
    """Runs all `CHECKS` on a game, except those that it is exempt from.

    Args:
        env: id or declaration.
        **config: the game's parameters.

    Raises:
        AssertionError: a promise that is not kept, with the check's name.
    """
    definition = registry.get(env)
    for name, check in CHECKS.items():
        if name in definition.exempt:
            continue
        try:
            check(definition, **config)
        except AssertionError as error:
            raise AssertionError(f"{definition.id} fails {name}: {error}") from error


# ---- tools ----


def _simulator(env: EnvLike, num_envs: int, **kwargs: Any) -> Simulator:
    if "backend" not in kwargs:
        kwargs.setdefault("device", "cpu")
    kwargs.setdefault("max_episode_steps", LIMIT)
    kwargs.setdefault("autoreset_mode", "same_step")
    return Simulator(registry.get(env), num_envs, **kwargs)


def _read(sim: Simulator, envs: Any = None) -> dict[str, Array]:
    """Copies of all that a step leaves: outputs, and the game's fields. Padding of observations is left out."""
    lay = sim.layout
    where = slice(None) if envs is None else envs
    host = {
        name: sim.backend.to_numpy(array)
        for name, array in sim.arrays.items()
        if name in (*_OUTPUTS, *_OBSERVATIONS, *_MASKS) or name in sim.program.fields
    }
    done = host["terminated"] | host["truncated"]
    out = {}
    for name, array in host.items():
        if name not in (*_OBSERVATIONS, *_MASKS):
            out[name] = array[where]
            continue
        for group, first in lay.first.items():
            flat = flat_size(lay.observation_spaces[group])
            size = flat if name in _OBSERVATIONS else sum(choices(lay.action_spaces[group]))
            agents = slice(first, first + lay.groups[group])
            part = array[where, agents, :size]
            if name.startswith("final_"):  # valid where an agent has just finished
                part = np.where(done[where, agents, None], part, np.zeros((), part.dtype))
            out[f"{name} of {group}"] = part
    return out


def _bits(array: Array) -> Array:
    array = np.ascontiguousarray(array)
    return array.view(f"u{array.dtype.itemsize}") if array.dtype.kind in "fb" else array


def assert_same(what: str, left: Mapping[str, Any], right: Mapping[str, Any]) -> None:
    """Raises AssertionError unless two dictionaries of arrays are equal bit for bit."""
    assert left.keys() == right.keys(), f"{what}: there are {sorted(left)} on one side and {sorted(right)} on the other"
    for name, array in left.items():
        a, b = np.asarray(array), np.asarray(right[name])
        assert a.shape == b.shape, f"{what}: {name} has shape {a.shape} on one side and {b.shape} on the other"
        assert a.dtype == b.dtype, f"{what}: {name} is {a.dtype} on one side and {b.dtype} on the other"
        different = np.argwhere(np.atleast_1d(_bits(a) != _bits(b)))
        if len(different):
            place = tuple(int(k) for k in different[0]) if a.ndim else ()
            raise AssertionError(
                f"{what}: {name}{list(place)} is {a[place]!r} on one side and {b[place]!r} on the other"
            )


def _pick(values: Mapping[str, Array], envs: Any) -> dict[str, Array]:
    return {name: array[envs] for name, array in values.items()}


def _random_step(sim: Simulator) -> None:
    sim.random_actions()
    sim.step()


def random_actions(layout: Layout, rng: np.random.Generator, num_envs: int) -> Array:
    """Actions within the spaces of all agents, (num_envs, agents, action_size). Masks are not looked at."""
    out = np.zeros((num_envs, layout.agents, layout.action_size), layout.action_dtype)
    for group, count in layout.groups.items():
        first, space = layout.first[group], layout.action_spaces[group]
        part = out[:, first : first + count, : flat_size(space)]
        if isinstance(space, spaces.Box):
            part[...] = rng.uniform(np.ravel(space.low), np.ravel(space.high), part.shape)
        else:
            part[...] = rng.integers(0, choices(space), part.shape)
    return out


def _contains(space: spaces.Space[Any], array: Array) -> Array:
    """Whether each row (the last axis is flat) is in a space."""
    if isinstance(space, spaces.Box):
        low, high = np.ravel(space.low), np.ravel(space.high)
    else:
        low, high = np.zeros(flat_size(space)), np.array(choices(space)) - 1
    return np.asarray(((array >= low) & (array <= high)).all(-1))


def _first(bad: Array) -> list[int]:
    return [int(k) for k in np.argwhere(bad)[0]]


# ---- what every game promises ----


@_check
def check_spaces(env: EnvLike, **config: Any) -> None:
    """Observations are in their spaces; masks hold 0 and 1 and leave a legal action to whoever plays."""
    sim = _simulator(env, 5, **config)
    lay = sim.layout
    assert sim.arrays["observation"].dtype == lay.observation_dtype
    sim.reset(seed=SEED)
    for step in range(150):
        for name in _OBSERVATIONS:
            done = sim.arrays["terminated"] | sim.arrays["truncated"]
            for group, first in lay.first.items():
                space, part = lay.observation_spaces[group], slice(first, first + lay.groups[group])
                values = sim.arrays[name][:, part, : flat_size(space)]
                bad = ~_contains(space, values)
                if name == "final_observation":
                    bad &= done[:, part]
                if bad.any():
                    i, a = _first(bad)
                    raise AssertionError(
                        f"after {step} steps the {name} {values[i, a]} of {group}_{a} in env {i} is not in {space}"
                    )
        if lay.mask_size:
            _check_masks(sim)
        _random_step(sim)


def _check_masks(sim: Simulator) -> None:
    masks, lay = sim.arrays["action_mask"], sim.layout
    assert np.isin(masks, (0, 1)).all(), "an action mask holds something other than 0 and 1"
    turn = sim.env.turn
    for group, first in lay.first.items():
        start = 0
        for n in choices(lay.action_spaces[group]):
            free = masks[:, first : first + lay.groups[group], start : start + n].any(-1)
            plays = sim.arrays["alive"][:, first : first + lay.groups[group]].copy()
            if turn:
                plays &= sim.arrays[turn][:, None] == np.arange(first, first + lay.groups[group])
            plays &= ~sim.arrays["waiting"][:, None]
            assert (free | ~plays).all(), f"an agent of {group} that is in the game has no legal action"
            start += n


@_check
def check_determinism(env: EnvLike, **config: Any) -> None:
    """A seed gives the same episodes again, in a new batch and in one that has been played with."""
    first, again, used = (_simulator(env, 4, **config) for _ in range(3))
    used.reset(seed=1234)
    used.rollout(57)
    for sim in (first, again, used):
        sim.reset(seed=SEED)
    for step in range(100):
        left = _read(first)
        # What was last left by an episode before the reset is no part of the new ones.
        late = {n for n in left if n.startswith("final_")}
        assert_same(f"two batches of one seed, after {step} steps", left, _read(again))
        assert_same(
            f"a batch that was reset again with its seed, after {step} steps",
            {n: a for n, a in left.items() if n not in late},
            {n: a for n, a in _read(used).items() if n not in late},
        )
        for sim in (first, again, used):
            _random_step(sim)


def _tile(sim: Simulator) -> int:
    found = re.search(r"constexpr int TILE = (\d+);", sim.program.code)
    assert found
    return int(found[1])


@_check
def check_batch_invariance(env: EnvLike, **config: Any) -> None:
    """Env i of a batch is the env alone with seed + i, whatever the size of the batch."""
    tile = _tile(_simulator(env, 1, **config))
    for n in sorted({1, 2, tile - 1, tile + 1, 2 * tile - 24} - {0, -1} | {3}):
        if n < 1:
            continue
        batch = _simulator(env, n, **config)
        batch.reset(seed=SEED)
        probes = sorted({0, n // 2, min(tile, n) - 1, min(tile, n - 1), n - 1})
        alone = [_simulator(env, 1, threads=1, **config) for _ in probes]
        for probe, single in zip(probes, alone, strict=True):
            single.reset(seed=SEED + probe)
        for step in range(200):
            for sim in (batch, *alone):
                _random_step(sim)
            if step % 8 and step < 190:
                continue
            whole = _read(batch, probes)
            for k, single in enumerate(alone):
                assert_same(
                    f"env {probes[k]} of {n} and alone, after {step + 1} steps", _pick(whole, [k]), _read(single)
                )


@_check
def check_threads(env: EnvLike, **config: Any) -> None:
    """The number of CPU threads changes nothing."""
    n = 3 * _tile(_simulator(env, 1, **config)) + 5
    sims = [_simulator(env, n, threads=threads, **config) for threads in (1, 2, 3)]
    for sim in sims:
        sim.reset(seed=SEED)
        for _ in range(5):
            sim.rollout(11)
            _random_step(sim)
    for sim in sims[1:]:
        assert_same(f"1 and {sim.backend.threads} threads", _read(sims[0]), _read(sim))  # type: ignore[attr-defined]


@_check
def check_reset_writes_all(env: EnvLike, **config: Any) -> None:
    """A reset sets every field: nothing of the episode before, or of what lay in memory, is left."""
    clean, dirty = _simulator(env, 4, **config), _simulator(env, 4, **config)
    for name in dirty.program.fields:
        array = dirty.arrays[name]
        array[...] = np.full(array.size * array.itemsize, 0xA5, np.uint8).view(array.dtype).reshape(array.shape)
    for sim in (clean, dirty):
        sim.reset(seed=SEED)
    assert_same("a reset over zeros and over garbage", _read(clean), _read(dirty))


@_check
def check_observe_writes_all(env: EnvLike, **config: Any) -> None:
    """Each step and reset writes the whole observation and mask of every agent, of those that left the game too."""
    for mode in ("same_step", "next_step"):
        clean, dirty = (_simulator(env, 4, autoreset_mode=mode, **config) for _ in range(2))
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
            assert_same(f"observations written over garbage, after {step} steps", _read(clean), _read(dirty))


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


@_check
def check_observe_again(env: EnvLike, **config: Any) -> None:
    """What is observed follows from the state alone: observing twice, with other actions waiting, changes nothing."""
    for mode in ("same_step", "disabled"):
        sim = _simulator(env, 4, autoreset_mode=mode, **config)
        sim.reset(seed=SEED)
        rng = np.random.default_rng(SEED)
        for step in range(60):
            # who has just finished was alive when the step was observed, and is not any more
            finished = sim.arrays["terminated"] | sim.arrays["truncated"]
            envs = np.flatnonzero(~finished.any(1) | (sim.arrays["elapsed_steps"] == 0))
            before = _read(sim, envs)
            sim.arrays["action"][...] = random_actions(sim.layout, rng, 4)
            sim.set_state({})
            assert_same(f"observed twice after {step} steps", before, _read(sim, envs))
            _random_step(sim)


@_check
def check_autoreset_modes(env: EnvLike, **config: Any) -> None:
    """The three autoreset modes give the same transitions, final observations and returns included."""
    for limit in (LIMIT, 9):
        left = _transitions(env, "disabled", limit, config)
        for mode in ("same_step", "next_step"):
            right = _transitions(env, mode, limit, config)
            for i, (a, b) in enumerate(zip(left, right, strict=True)):
                assert min(len(a), len(b)) > 40, f"hardly any transition in env {i} in mode {mode}"
                for k, (x, y) in enumerate(zip(a, b, strict=False)):
                    assert_same(f"transition {k} of env {i} in modes disabled and {mode}", x, y)


def _transitions(
    env: EnvLike, mode: str, limit: int, config: Mapping[str, Any], steps: int = 130
) -> list[list[dict[str, Array]]]:
    """Per env, its transitions; random actions depend on the env's seed, episode and step alone."""
    n = 4
    sim = _simulator(env, n, autoreset_mode=mode, max_episode_steps=limit, **config)
    sim.reset(seed=SEED)
    out: list[list[dict[str, Array]]] = [[] for _ in range(n)]
    for _ in range(steps):
        if mode == "disabled" and sim.arrays["waiting"].any():
            sim.reset(mask=sim.arrays["waiting"].copy())
        waiting, acts = sim.arrays["waiting"].copy(), sim.arrays["alive"].copy()
        before = sim.arrays["observation"].copy()
        masked = "action_mask" in sim.arrays
        sim.random_actions()
        action = sim.arrays["action"].copy()
        sim.step()
        done = sim.arrays["terminated"] | sim.arrays["truncated"]
        after = sim.arrays["observation"].copy()
        if mode == "same_step":
            after = np.where(done[..., None], sim.arrays["final_observation"], after)
        mask = sim.arrays["action_mask"].copy() if masked else np.zeros((*acts.shape, 0))
        if masked and mode == "same_step":
            mask = np.where(done[..., None], sim.arrays["final_action_mask"], mask)
        if mode == "next_step":
            silent = sim.arrays["reward"][waiting].any() or done[waiting].any()
            assert not silent, "in next-step mode the step that resets has a reward or a flag"
        for i in np.flatnonzero(~waiting):
            who = acts[i]
            values = {
                "who": who,
                "observation": before[i][who],
                "action": action[i][who],
                "reward": sim.arrays["reward"][i],
                "terminated": sim.arrays["terminated"][i],
                "truncated": sim.arrays["truncated"][i],
                "next observation": after[i][who],
                "next mask": mask[i][who],
                "ended": sim.arrays["ended"][i],
                "final return": sim.arrays["final_return"][i][done[i]],
                "final length": sim.arrays["final_length"][i][done[i]],
            }
            out[i].append({name: np.array(value) for name, value in values.items()})
    return out


@_check
def check_time_limit(env: EnvLike, **config: Any) -> None:
    """Truncation comes exactly at the limit, to all that are in the game, and apart from termination."""
    for limit in (1, 2, 13, None):
        sim = _simulator(env, 6, autoreset_mode="disabled", max_episode_steps=limit, **config)
        sim.reset(seed=SEED)
        for t in range(1, (limit or 60) + 1):
            plays = sim.arrays["alive"] & ~sim.arrays["waiting"][:, None]
            _random_step(sim)
            truncated = sim.arrays["truncated"]
            want = plays if t == limit else np.zeros_like(plays)
            bad = (truncated != want) & ~sim.arrays["waiting"][:, None] | (truncated & ~plays if t != limit else False)
            if bad.any():
                i, a = _first(bad)
                raise AssertionError(f"limit {limit}, step {t}: agent {a} of env {i} has truncated={truncated[i, a]}")
        over = (sim.arrays["waiting"] | sim.arrays["ended"]).all()
        assert limit is None or over, f"an env goes on after its limit of {limit} steps"


@_check
def check_disabled_mode(env: EnvLike, **config: Any) -> None:
    """Without autoreset a finished env stands still: reward 0, everything else stays as it is."""
    sim = _simulator(env, 6, autoreset_mode="disabled", max_episode_steps=11, **config)
    sim.reset(seed=SEED)
    for _ in range(30):
        frozen = np.flatnonzero(sim.arrays["waiting"])
        before = _read(sim, frozen)
        _random_step(sim)
        after = _read(sim, frozen)
        assert not after["reward"].any(), "a finished env has a reward"
        for name in ("reward", "ended"):
            del before[name], after[name]
        assert_same("a finished env before and after a step", before, after)
    assert len(frozen) == 6, "an env goes on after its limit of 11 steps"


@_check
def check_partial_reset(env: EnvLike, **config: Any) -> None:
    """A reset of some envs leaves every byte of the others, and gives its own what a reset of all gives."""
    n = 5
    mask = np.array([True, False, True, False, False])
    for seed in (None, 99):
        part, whole = _simulator(env, n, **config), _simulator(env, n, **config)
        for sim in (part, whole):
            sim.reset(seed=SEED)
            sim.rollout(23)
        before = {k: np.array(a) for k, a in part.arrays.items() if k not in ("reset_mask", "reset_seed")}
        part.reset(seed, mask)
        whole.reset(seed)
        after = {k: np.array(part.arrays[k]) for k in before}
        assert_same("an env that was not reset, before and after", _pick(before, ~mask), _pick(after, ~mask))
        assert_same("an env reset with some and with all", _read(part, mask), _read(whole, mask))
        for sim in (part, whole):
            sim.rollout(5)
        assert_same("5 steps after that", _read(part, mask), _read(whole, mask))


@_check
def check_partial_step(env: EnvLike, **config: Any) -> None:
    """A step of some envs is for them the same as a step of all, and leaves every byte of the others."""
    n = 12
    for mode in ("next_step", "same_step", "disabled"):
        options = {"autoreset_mode": mode, "max_episode_steps": 7, **config}
        part, whole = _simulator(env, n, threads=2, **options), _simulator(env, n, **options)
        rng = np.random.default_rng(SEED)
        part.reset(seed=SEED)
        for step in range(30):
            waiting = part.arrays["waiting"]
            if mode == "disabled" and step % 5 == 4 and waiting.any():
                part.reset(mask=waiting.copy())
            part.random_actions()
            whole.restore(part.snapshot())
            whole.arrays["action"][...] = part.arrays["action"]
            chosen = rng.permutation(n)[: rng.integers(0, n + 1)]
            others = np.setdiff1d(np.arange(n), chosen)
            before = {name: np.array(array) for name, array in part.arrays.items()}
            whole.step()
            part.step(chosen)
            assert_same("an env stepped with some and with all", _read(part, chosen), _read(whole, chosen))
            assert_same("an env that was not stepped", _pick(part.arrays, others), _pick(before, others))


@_check
def check_snapshot(env: EnvLike, **config: Any) -> None:
    """Episodes go on from a snapshot with the same bits: in place, pickled, in part, and in another batch."""
    sim = _simulator(env, 6, **config)
    sim.reset(seed=SEED)
    sim.rollout(29)
    some = np.array([4, 1])
    whole, part = sim.snapshot(), pickle.loads(pickle.dumps(sim.snapshot(some).numpy()))
    story = []
    for _ in range(60):
        _random_step(sim)
        story.append(_read(sim))
    sim.restore(whole)
    for k, want in enumerate(story):
        _random_step(sim)
        assert_same(f"{k + 1} steps after restore", want, _read(sim))
    other = _simulator(env, 9, **config)
    other.reset(seed=555)
    other.rollout(3)
    where = [7, 2]
    rest = [i for i in range(9) if i not in where]
    before = {name: np.array(array)[rest] for name, array in other.arrays.items()}
    other.restore(part, where)
    after = {name: np.array(array)[rest] for name, array in other.arrays.items()}
    assert_same("envs beside the restored ones", before, after)
    for k, want in enumerate(story):
        _random_step(other)
        assert_same(f"{k + 1} steps after restore in another batch", _pick(want, some), _read(other, where))


@_check
def check_rollout(env: EnvLike, **config: Any) -> None:
    """`rollout(n)` is n times `random_actions` and `step`, and its actions are legal."""
    n = 7
    fused, single = _simulator(env, n, **config), _simulator(env, n, **config)
    for sim in (fused, single):
        sim.reset(seed=SEED)
    for block in (1, 2, 50, 0, 21):
        fused.rollout(block)
        for _ in range(block):
            single.random_actions()
            _check_legal(single)
            single.step()
        assert_same(f"rollout({block}) and single steps", _read(fused), _read(single))
        assert_same("their actions", {"action": fused.arrays["action"]}, {"action": single.arrays["action"]})


def _check_legal(sim: Simulator) -> None:
    lay, actions = sim.layout, sim.arrays["action"]
    message = illegal_action(lay, actions)
    assert not message, f"a random {message}"
    if not lay.mask_size:
        return
    for group, first in lay.first.items():
        start = 0
        for k, n in enumerate(choices(lay.action_spaces[group])):
            mask = sim.arrays["action_mask"][:, first : first + lay.groups[group], start : start + n]
            taken = np.take_along_axis(mask, actions[:, first : first + lay.groups[group], k, None], -1)[..., 0]
            assert (taken.astype(bool) | ~mask.any(-1)).all(), f"a random action of {group} is masked"
            start += n


@_check
def check_lane_order(env: EnvLike, **config: Any) -> None:
    """The order in which lanes run changes nothing: iterations of one region are independent."""
    orders = {"forward": (), "backward": ("-DGZ_LANE_ORDER=1",), "shuffled": ("-DGZ_LANE_ORDER=2",)}
    sims = {name: _simulator(env, 4, backend=CpuBackend(flags=flags), **config) for name, flags in orders.items()}
    for sim in sims.values():
        sim.reset(seed=SEED)
    for step in range(80):
        forward = _read(sims["forward"])
        for name in ("backward", "shuffled"):
            assert_same(f"lanes forward and {name}, after {step} steps", forward, _read(sims[name]))
        for sim in sims.values():
            _random_step(sim)


@_check
def check_illegal_actions(env: EnvLike, **config: Any) -> None:
    """An action that is out of range, not a number or masked is the same as `EnvDef.invalid_action`."""
    n = 6
    wild, tame = _simulator(env, n, **config), _simulator(env, n, **config)
    lay, rng = wild.layout, np.random.default_rng(SEED)
    for sim in (wild, tame):
        sim.reset(seed=SEED)
    for step in range(80):
        bad = random_actions(lay, rng, n)
        good = bad.copy()
        for group, count in lay.groups.items():
            agents = slice(lay.first[group], lay.first[group] + count)
            for k in range(flat_size(lay.action_spaces[group])):
                values, substitutes = _illegal(lay.action_spaces[group], k, type(wild.env).invalid_action)
                chosen = rng.random((n, count)) < 0.5
                which = rng.integers(0, len(values), (n, count))
                bad[:, agents, k] = np.where(chosen, values[which], bad[:, agents, k])
                good[:, agents, k] = np.where(chosen, substitutes[which], good[:, agents, k])
        wild.arrays["action"][...], tame.arrays["action"][...] = bad, good
        for sim in (wild, tame):
            sim.step()
        assert_same(f"illegal actions and their substitute, step {step}", _read(wild), _read(tame))
    if lay.mask_size:
        _check_masked_actions(wild, tame)


def _illegal(space: spaces.Space[Any], k: int, invalid: int) -> tuple[Array, Array]:
    """Illegal values of component k, and what they are to be replaced by."""
    if isinstance(space, spaces.Box):
        low, high = np.ravel(space.low)[k], np.ravel(space.high)[k]
        pairs = [
            (np.nan, np.clip(invalid, low, high)), (np.inf, high), (-np.inf, low),
            (high + 1, high), (low - 1, low), (3e38, high), (-3e38, low),
        ]  # fmt: skip
        return np.array([p[0] for p in pairs], np.float32), np.array([p[1] for p in pairs], np.float32)
    size = choices(space)[k]
    values = np.array([-1, size, size + 1, 2**31 - 1, -(2**31), 1_000_000, -7], np.int32)
    return values, np.full_like(values, invalid)


def _check_masked_actions(wild: Simulator, tame: Simulator) -> None:
    lay = wild.layout
    for step in range(60):
        for sim in (wild, tame):
            sim.random_actions()
        for group, first in lay.first.items():
            start = 0
            for k, size in enumerate(choices(lay.action_spaces[group])):
                agents = slice(first, first + lay.groups[group])
                mask = wild.arrays["action_mask"][:, agents, start : start + size]
                masked = ~mask.all(-1)
                action = np.where(masked, mask.argmin(-1), wild.arrays["action"][:, agents, k])
                wild.arrays["action"][:, agents, k] = action
                tame.arrays["action"][:, agents, k] = np.where(masked, type(wild.env).invalid_action, action)
                start += size
        for sim in (wild, tame):
            sim.step()
        assert_same(f"masked actions and their substitute, step {step}", _read(wild), _read(tame))


@_check
def check_statistics(env: EnvLike, **config: Any) -> None:
    """Returns, lengths and who is alive agree with what Python adds up; who left the game gets nothing more."""
    n = 6
    sim = _simulator(env, n, **config)
    sim.reset(seed=SEED)
    arrays = sim.arrays
    total = np.zeros_like(arrays["reward"])
    length = np.zeros(n, np.int32)
    for step in range(150):
        alive = arrays["alive"].copy()
        _random_step(sim)
        done, ended = arrays["terminated"] | arrays["truncated"], arrays["ended"]
        where = f"step {step}"
        assert not arrays["reward"][~alive].any(), f"{where}: an agent that is not in the game has a reward"
        assert not done[~alive].any(), f"{where}: an agent that is not in the game is reported as done"
        total += arrays["reward"]
        length += 1
        assert_same(where, {"final_return": total[done]}, {"final_return": arrays["final_return"][done]})
        lengths = np.broadcast_to(length[:, None], done.shape)
        assert_same(where, {"final_length": lengths[done]}, {"final_length": arrays["final_length"][done]})
        over = ~(alive & ~done).any(1)
        assert_same(where, {"ended": over}, {"ended": ended})
        total[ended], length[ended] = 0, 0
        assert_same(where, {"episode_return": total}, {"episode_return": arrays["episode_return"]})
        assert_same(where, {"elapsed_steps": length}, {"elapsed_steps": arrays["elapsed_steps"]})
        left = np.where(ended[:, None], True, alive & ~arrays["terminated"])
        assert_same(where, {"alive": left}, {"alive": arrays["alive"]})


def _other_values(env: EnvDef) -> dict[str, tuple[float, float]]:
    """Two values for each float parameter that can be varied by itself: the default and one beside it."""
    out = {}
    for field in dataclasses.fields(env.Config):
        if config_types(env.Config)[field.name] is not float:
            continue
        low, high, default = field.metadata.get("low"), field.metadata.get("high"), float(field.default)  # type: ignore[arg-type]
        for other in (default * 1.25 or 0.125, default * 0.75, default + 0.125):
            if other != default and (low is None or other >= low) and (high is None or other <= high):
                try:
                    env.check(env.Config(**{field.name: other}))
                except ValueError:
                    continue
                out[field.name] = (default, other)
                break
    return out


@_check
def check_parameters(env: EnvLike, **config: Any) -> None:
    """An env with its own value of a parameter is the env of a batch in which all have that value."""
    definition = registry.get(env)
    pairs = {name: pair for name, pair in _other_values(definition).items() if name not in config}
    if not pairs:
        return
    n = 4
    mixed = {name: np.array([p[(i + k) % 2] for i in range(n)]) for k, (name, p) in enumerate(pairs.items())}
    plain = {name: np.full(n, p[0]) for name, p in pairs.items()}
    mask = np.array([False, True, False, True])
    batch, changed = _simulator(definition, n, **mixed, **config), _simulator(definition, n, **plain, **config)
    changed.set_params(mask, **{name: values[mask] for name, values in mixed.items()})
    alone = []
    for i in range(n):
        alone.append(_simulator(definition, 1, **{name: float(v[i]) for name, v in mixed.items()}, **config))
        alone[i].reset(seed=SEED + i)
    for sim in (batch, changed):
        sim.reset(seed=SEED)
    for step in range(80):
        whole = _read(batch)
        for i, single in enumerate(alone):
            assert_same(f"env {i} with its own parameters, after {step} steps", _pick(whole, [i]), _read(single))
        assert_same("parameters given at the start and set later", _pick(whole, mask), _read(changed, mask))
        for sim in (batch, changed, *alone):
            _random_step(sim)


@_check
def check_render(env: EnvLike, **config: Any) -> None:
    """A picture can be drawn at any time, shows something, and leaves the env as it was."""
    from gpuzoo.batch import draw

    sim = _simulator(env, 2, **config)
    sim.reset(seed=SEED)
    for _ in range(3):
        before = _read(sim)
        frame = draw(sim, 1)
        assert_same("drawing an env", before, _read(sim))
        assert frame.dtype == np.uint8 and frame.ndim == 3 and frame.shape[2] == 3, (
            "a picture is (height, width, 3) uint8"
        )
        assert (frame != frame[0, 0]).any(), "the picture has one colour only"
        assert_same("the same state drawn twice", {"frame": frame}, {"frame": draw(sim, 1)})
        sim.rollout(9)


@_check
def check_interfaces(env: EnvLike, **config: Any) -> None:
    """The Gymnasium and PettingZoo interfaces pass `check_vector_env`, `check_parallel_env` and `strong_seed_test`."""
    from gpuzoo.parallel import parallel_env
    from gpuzoo.vector import make_vec

    definition = registry.get(env)
    for mode in ("next_step", "same_step", "disabled"):
        vector = make_vec(
            definition, num_worlds=4, autoreset_mode=mode, device="cpu", max_episode_steps=LIMIT, **config
        )
        check_vector_env(vector)
        vector.close()
    if not definition.single() and definition.turn is None:

        def make() -> Any:
            return parallel_env(definition, max_cycles=LIMIT, **config)

        check_parallel_env(make)
        strong_seed_test(make)


# ---- interfaces ----


def _host(value: Any) -> Any:
    """NumPy of what a step returned."""
    if isinstance(value, Mapping):
        return {k: _host(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(_host(v) for v in value)
    if hasattr(value, "detach"):
        return value.detach().cpu().numpy()
    return value.get() if hasattr(value, "get") and hasattr(value, "dtype") else value


def _flatten(value: Any, name: str = "") -> Iterator[tuple[str, Array]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _flatten(part, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (tuple, list)):
        for key, part in enumerate(value):
            yield from _flatten(part, f"{name}.{key}")
    else:
        yield name, np.asarray(value)


def _leaves(value: Any) -> dict[str, Array]:
    return {name: array for name, array in _flatten(_host(value), "") if array.dtype != object}


def _rows_of(value: Any, rows: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _rows_of(v, rows) for k, v in value.items()}
    return tuple(_rows_of(v, rows) for v in value) if isinstance(value, tuple) else value[rows]


def _check_infos(infos: Any, n: int, where: str) -> None:
    """Each key has a bool mask under the same key with an underscore, at every level."""
    assert isinstance(infos, Mapping), f"{where}: infos is {type(infos).__name__}, not a dictionary"
    for key, value in infos.items():
        if key.startswith("_") and key[1:] in infos:
            mask = np.asarray(_host(value))
            assert mask.dtype == np.bool_, f"{where}: infos[{key!r}] is {mask.dtype}, not bool"
            assert mask.shape == (n,), f"{where}: infos[{key!r}] has shape {mask.shape}, not ({n},)"
            continue
        assert f"_{key}" in infos, f"{where}: infos[{key!r}] has no mask infos['_{key}']"
        if isinstance(value, Mapping):
            if key != "final_obs":
                _check_infos(value, n, f"{where}, infos[{key!r}]")
        elif not isinstance(value, tuple):
            assert len(value) == n, f"{where}: infos[{key!r}] has {len(value)} entries, not {n}"


class _Keeper:
    """Remembers arrays with copies of them, to see later that nobody wrote into them."""

    def __init__(self) -> None:
        self._kept: list[tuple[int, str, Array, Array]] = []

    def keep(self, step: int, *values: Any) -> None:
        for value in values:
            self._kept += [(step, name, array, array.copy()) for name, array in _leaves(value).items()]

    def check(self, step: int) -> None:
        for made, name, array, was in self._kept:
            assert_same(f"what step {made} returned has changed by step {step}", {name: was}, {name: array})


def check_vector_env(env: Any, steps: int = 120, seed: int = SEED, copies: bool = True) -> None:
    """Checks a ``gymnasium.vector.VectorEnv`` of any library: spaces, dtypes, autoreset, infos, seeds, fresh arrays.

    Args:
        env: the vector env; ``metadata["autoreset_mode"]`` says which of the three modes is checked. It is left in the
            midst of episodes. Several rows may belong to one env if it has the attribute ``num_worlds``.
        steps: how many steps are taken; episodes should end within them.
        seed: of the resets.
        copies: whether returned arrays must stay as they are.

    Raises:
        AssertionError: the first fault.
    """
    n, mode = env.num_envs, env.metadata.get("autoreset_mode")
    assert isinstance(mode, AutoresetMode), f"metadata['autoreset_mode'] is {mode!r}, not a gymnasium AutoresetMode"
    assert env.observation_space == batch_space(env.single_observation_space, n), "observation_space is not batched"
    assert env.action_space == batch_space(env.single_action_space, n), "action_space is not batched"
    block = n // getattr(env.unwrapped, "num_worlds", n)
    keeper = _Keeper()

    env.action_space.seed(seed)
    observations, infos = env.reset(seed=seed)
    start = copy.deepcopy(_leaves(observations))
    _check_observations(env, observations, "reset")
    _check_infos(infos, n, "reset")
    done, finished = np.zeros((2, n), np.bool_)  # in the last step; ever
    plays = np.ones((n // block, block), np.bool_)  # rows that are not done in the present episode
    for step in range(steps):
        over = ~plays.any(1)
        if mode == AutoresetMode.DISABLED and over.any():
            old = _host(observations)
            mask = np.repeat(over, block)
            observations, infos = env.reset(options={"reset_mask": mask})
            _check_observations(env, observations, f"partial reset before step {step}")
            _check_infos(infos, n, f"partial reset before step {step}")
            assert_same(
                f"observations of envs that were not reset before step {step}",
                _leaves(_rows_of(old, ~mask)),
                _leaves(_rows_of(_host(observations), ~mask)),
            )
            plays[over] = True
        results = env.step(env.action_space.sample())
        assert isinstance(results, tuple) and len(results) == 5, "step must return five values"
        observations, rewards, terminations, truncations, infos = results
        if copies:
            keeper.keep(step, observations, rewards, terminations, truncations, infos)
        where = f"step {step}"
        _check_observations(env, observations, where)
        _check_infos(infos, n, where)
        rewards, terminations, truncations = _host((rewards, terminations, truncations))
        assert rewards.shape == (n,) and rewards.dtype.kind == "f", (
            f"{where}: rewards are {rewards.dtype}{rewards.shape}"
        )
        for name, flags in (("terminations", terminations), ("truncations", truncations)):
            assert flags.shape == (n,) and flags.dtype == np.bool_, f"{where}: {name} are {flags.dtype}{flags.shape}"
        new = terminations | truncations
        if mode == AutoresetMode.NEXT_STEP:
            assert not (done & new).any(), f"{where}: an env is done twice in a row"
            assert not rewards[done].any(), f"{where}: the step that resets an env has a reward"
        if mode == AutoresetMode.SAME_STEP:
            _check_final(env, infos, new, where)
        else:
            assert "final_obs" not in infos, f"{where}: infos has final_obs, which belongs to same-step mode"
        done, finished = new, finished | new
        plays &= ~new.reshape(plays.shape)
    assert finished.all(), f"env {np.argmin(finished)} had no end in {steps} steps"
    keeper.check(steps)
    observations, _ = env.reset(seed=seed)
    assert_same("a second reset with the same seed", start, _leaves(observations))


def _check_observations(env: Any, observations: Any, where: str) -> None:
    host = _host(observations)
    leaves, wanted = dict(_flatten(host)), dict(_flatten(_host(env.observation_space.sample())))
    for name, array in leaves.items():
        assert name in wanted, f"{where}: an observation has {name!r}, its space has not"
        want = wanted[name]
        assert array.shape == want.shape, f"{where}: observations {name} have shape {array.shape}, not {want.shape}"
        assert np.can_cast(array.dtype, want.dtype), f"{where}: observations {name} are {array.dtype}, not {want.dtype}"
    assert env.observation_space.contains(host), f"{where}: observations are not in the observation space: {host}"


def _check_final(env: Any, infos: Mapping[str, Any], done: Array, where: str) -> None:
    if not done.any():
        assert not np.asarray(_host(infos.get("_final_obs", False))).any(), f"{where}: final_obs, but no env is done"
        return
    assert "final_obs" in infos, f"{where}: an env is done, but infos has no final_obs"
    assert_same(where, {"_final_obs": done}, {"_final_obs": np.asarray(_host(infos["_final_obs"]))})
    assert "final_info" in infos, f"{where}: an env is done, but infos has no final_info"
    final = _host(infos["final_obs"])
    for i in np.flatnonzero(done):
        one = _rows_of(final, i)
        assert env.single_observation_space.contains(one), (
            f"{where}: the final observation {one} of env {i} is not in its space"
        )


def _sample(env: Any, observations: Mapping[str, Any], infos: Mapping[str, Any]) -> dict[str, Any]:
    actions = {}
    for agent in env.agents:
        observation = observations[agent]
        mask = observation.get("action_mask") if isinstance(observation, Mapping) else None
        mask = infos[agent].get("action_mask") if mask is None else mask
        space = env.action_space(agent)
        if mask is not None and isinstance(space, spaces.MultiDiscrete):
            mask = tuple(np.split(mask, np.cumsum(space.nvec)[:-1]))
        actions[agent] = space.sample(mask=mask)
    return actions


def check_parallel_env(make: Callable[[], Any], episodes: int = 3, max_steps: int = 10_000) -> None:
    """Plays whole episodes of a PettingZoo ``ParallelEnv`` and checks who is in which dictionary, spaces and types.

    The keys of all five dictionaries are the agents that were in the game when the step began; who is done leaves
    ``agents`` at once; an episode ends when nobody is left.

    Args:
        make: makes the env.
        episodes: how many are played.
        max_steps: when an episode counts as endless.

    Raises:
        AssertionError: the first fault.
    """
    env = make()
    for agent in env.possible_agents:
        assert env.observation_space(agent) is env.observation_space(agent), (
            "observation_space must not make new spaces"
        )
        assert env.action_space(agent) is env.action_space(agent), "action_space must not make new spaces"
        env.action_space(agent).seed(SEED)
    for episode in range(episodes):
        observations, infos = env.reset(seed=SEED + episode)
        assert env.agents == env.possible_agents, "a reset must bring all agents back"
        assert env.agents is not env.possible_agents, "agents and possible_agents are one list"
        _check_agents(env, env.agents, observations, "reset", infos)
        for step in range(max_steps):
            acting = list(env.agents)
            results = env.step(_sample(env, observations, infos))
            observations, rewards, terminations, truncations, infos = results
            where = f"step {step} of episode {episode}"
            names = ("observations", "rewards", "terminations", "truncations", "infos")
            for name, part in zip(names, results, strict=True):
                assert set(part) == set(acting), (
                    f"{where}: the keys of {name} are {sorted(part)}, but in the game were {sorted(acting)}"
                )
            _check_agents(env, acting, observations, where, infos)
            for agent in acting:
                for flag in (terminations[agent], truncations[agent]):
                    assert isinstance(flag, bool), f"{where}: a flag of {agent} is {type(flag).__name__}, not bool"
                assert np.isscalar(rewards[agent]), f"{where}: the reward of {agent} is {rewards[agent]!r}, no number"
            left = [a for a in acting if not (terminations[a] or truncations[a])]
            assert env.agents == left, f"{where}: agents is {env.agents}, but not done are {left}"
            if not left:
                break
        else:
            raise AssertionError(f"episode {episode} has no end within {max_steps} steps")
    env.close()


def _check_agents(env: Any, agents: Sequence[str], observations: Any, where: str, infos: Any) -> None:
    for agent in agents:
        space = env.observation_space(agent)
        assert space.contains(observations[agent]), (
            f"{where}: the observation {observations[agent]} of {agent} is not in {space}"
        )
        assert isinstance(infos[agent], dict), f"{where}: the info of {agent} is not a dictionary"


def strong_seed_test(make: Callable[[], Any], episodes: int = 3, max_steps: int = 10_000) -> None:
    """Checks that a PettingZoo ``ParallelEnv`` repeats itself to the last bit, over whole episodes.

    (PettingZoo 1.27's own ``parallel_seed_test`` looks at the first step only.) The first episode is seeded, the later
    ones go on from it.

    Args:
        make: makes the env.
        episodes: how many are compared.
        max_steps: when an episode counts as endless.

    Raises:
        AssertionError: two envs of one seed differ, or one env does at its second run.
    """
    first, second = make(), make()
    stories = [_story(env, episodes, max_steps) for env in (first, second, second)]
    for what, story in (("two envs with one seed", stories[1]), ("one env seeded twice", stories[2])):
        for k, (a, b) in enumerate(itertools.zip_longest(stories[0], story)):
            assert a is not None and b is not None, f"{what}: episodes of different length"
            assert_same(f"{what}, step {k}", a, b)
    for env in (first, second):
        env.close()


def _story(env: Any, episodes: int, max_steps: int) -> list[dict[str, Array]]:
    out = []
    for episode in range(episodes):
        observations, infos = env.reset(seed=SEED if episode == 0 else None)
        if episode == 0:
            for agent in env.possible_agents:
                env.action_space(agent).seed(SEED)
        out.append(_leaves({"observations": observations}))
        for _ in range(max_steps):
            if not env.agents:
                break
            results = env.step(_sample(env, observations, infos))
            observations, infos = results[0], results[4]
            names = ("observations", "rewards", "terminations", "truncations", "infos")
            out.append(copy.deepcopy(_leaves(dict(zip(names, results, strict=True)))))
    return out
