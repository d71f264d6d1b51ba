"""What passes between a game and its players: spaces, masks, illegal actions, parameters, pictures, interfaces."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from gymnasium import spaces

from gpuzoo import registry
from gpuzoo.core.actions import illegal_action
from gpuzoo.core.backend_cpu import CpuBackend
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.layout import choices, flat_size
from gpuzoo.core.simulator import Simulator
from gpuzoo.core.values import config_types
from gpuzoo.testing.interfaces import check_parallel_env, check_vector_env, strong_seed_test
from gpuzoo.testing.tools import (
    LIMIT,
    OBSERVATIONS,
    SEED,
    Array,
    EnvLike,
    assert_same,
    first_of,
    pick,
    promise,
    random_actions,
    random_step,
    read,
    simulator,
)


@promise
def check_spaces(env: EnvLike, **config: Any) -> None:
    """Observations are in their spaces, and masks hold 0 and 1."""
    sim = simulator(env, 5, **config)
    lay = sim.layout
    assert sim.arrays["observation"].dtype == lay.observation_dtype
    sim.reset(seed=SEED)
    for step in range(150):
        for name in OBSERVATIONS:
            done = sim.arrays["terminated"] | sim.arrays["truncated"]
            for group, first in lay.first.items():
                space, part = lay.observation_spaces[group], slice(first, first + lay.groups[group])
                values = sim.arrays[name][:, part, : flat_size(space)]
                bad = ~_contains(space, values)
                if name == "final_observation":
                    bad &= done[:, part]
                if bad.any():
                    i, a = first_of(bad)
                    raise AssertionError(
                        f"after {step} steps the {name} {values[i, a]} of {group}_{a} in env {i} is not in {space}"
                    )
        if lay.mask_size:
            assert np.isin(sim.arrays["action_mask"], (0, 1)).all(), "an action mask holds something other than 0 and 1"
        random_step(sim)


@promise
def check_legal_actions(env: EnvLike, **config: Any) -> None:
    """Whoever plays has a legal action."""
    sim = simulator(env, 5, **config)
    if not sim.layout.mask_size:
        return
    sim.reset(seed=SEED)
    for _ in range(150):
        _check_masks(sim)
        random_step(sim)


@promise
def check_global_state(env: EnvLike, **config: Any) -> None:
    """A game's own global state is in its space, and the same from a step and on demand, where episodes end as well."""
    asked = simulator(env, 5, autoreset_mode="disabled", **config)
    space = asked.layout.state_space
    if space is None:
        return
    written = simulator(env, 5, **config)
    shape = (5, *(space.shape or ()))
    rows = {name: written.backend.zeros(shape, str(space.dtype)) for name in ("state", "final_state")}
    written.use_outputs(written.new_outputs(rows))
    for sim in (asked, written):
        sim.reset(seed=SEED)
    for step in range(100):
        for array in rows.values():
            array[...] = np.full(array.nbytes, 0xA5 if step % 2 else 0x3C, np.uint8).view(array.dtype).reshape(shape)
        if step:
            for sim in (asked, written):
                random_step(sim)
            ended = asked.arrays["ended"].copy()
            final = {"final_state": asked.global_state()[ended]}
            assert_same(f"the state at an end, after {step} steps", final, {"final_state": rows["final_state"][ended]})
            if ended.any():
                asked.reset(mask=ended)
        else:
            written.reset(seed=SEED)
        found = np.array(asked.global_state())
        assert_same(f"on demand and by the step, after {step} steps", {"state": found}, {"state": rows["state"]})
        bad = ~_contains(space, found.reshape(5, -1))
        assert not bad.any(), f"after {step} steps the state of env {first_of(bad)[0]} is not in {space}"


def _check_masks(sim: Simulator) -> None:
    masks, lay = sim.arrays["action_mask"], sim.layout
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


def _contains(space: spaces.Space[Any], array: Array) -> Array:
    """Whether each row (the last axis is flat) is in a space."""
    if isinstance(space, spaces.Box):
        low, high = np.ravel(space.low), np.ravel(space.high)
    else:
        low, high = np.zeros(flat_size(space)), np.array(choices(space)) - 1
    return np.asarray(((array >= low) & (array <= high)).all(-1))


@promise
def check_illegal_actions(env: EnvLike, **config: Any) -> None:
    """An action that is out of range, not a number or masked is the same as `EnvDef.invalid_action`."""
    n = 6
    wild, tame = simulator(env, n, **config), simulator(env, n, **config)
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
        assert_same(f"illegal actions and their substitute, step {step}", read(wild), read(tame))
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
        assert_same(f"masked actions and their substitute, step {step}", read(wild), read(tame))


@promise
def check_rollout(env: EnvLike, **config: Any) -> None:
    """`rollout(n)` is n times `random_actions` and `step`, and its actions are legal."""
    n = 7
    fused, single = simulator(env, n, **config), simulator(env, n, **config)
    for sim in (fused, single):
        sim.reset(seed=SEED)
    for block in (1, 2, 50, 0, 21):
        fused.rollout(block)
        for _ in range(block):
            single.random_actions()
            _check_legal(single)
            single.step()
        assert_same(f"rollout({block}) and single steps", read(fused), read(single))
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


@promise
def check_parameters(env: EnvLike, **config: Any) -> None:
    """An env with its own value of a parameter is the env of a batch in which all have that value."""
    definition = registry.get(env)
    pairs = {name: pair for name, pair in _other_values(definition).items() if name not in config}
    if not pairs:
        return
    n = 4
    mixed = {name: np.array([p[(i + k) % 2] for i in range(n)]) for k, (name, p) in enumerate(pairs.items())}
    others = {name: np.roll(values, 1) for name, values in mixed.items()}  # the same spaces
    mask = np.array([False, True, False, True])
    # Values per env make another program, which is compiled for this check alone: quickly.
    backend = CpuBackend(flags=("-Og",))
    batch, changed = (simulator(definition, n, backend=backend, **values, **config) for values in (mixed, others))
    changed.set_params(mask, **{name: values[mask] for name, values in mixed.items()})
    alone = []
    for i in range(n):
        alone.append(simulator(definition, 1, **{name: float(v[i]) for name, v in mixed.items()}, **config))
        alone[i].reset(seed=SEED + i)
    for sim in (batch, changed):
        sim.reset(seed=SEED)
    for step in range(80):
        whole = read(batch)
        for i, single in enumerate(alone):
            assert_same(f"env {i} with its own parameters, after {step} steps", pick(whole, [i]), read(single))
        assert_same("parameters given at the start and set later", pick(whole, mask), read(changed, mask))
        for sim in (batch, changed, *alone):
            random_step(sim)


@promise
def check_render(env: EnvLike, **config: Any) -> None:
    """A picture can be drawn at any time, shows something, and leaves the env as it was."""
    from gpuzoo.interfaces.batch import draw

    sim = simulator(env, 2, **config)
    sim.reset(seed=SEED)
    for _ in range(3):
        before = read(sim)
        frame = draw(sim, 1)
        assert_same("drawing an env", before, read(sim))
        assert frame.dtype == np.uint8 and frame.ndim == 3 and frame.shape[2] == 3, (
            "a picture is (height, width, 3) uint8"
        )
        assert (frame != frame[0, 0]).any(), "the picture has one colour only"
        assert_same("the same state drawn twice", {"frame": frame}, {"frame": draw(sim, 1)})
        sim.rollout(9)


@promise
def check_interfaces(env: EnvLike, **config: Any) -> None:
    """The Gymnasium and PettingZoo interfaces pass `check_vector_env`, `check_parallel_env` and `strong_seed_test`."""
    from gpuzoo.interfaces.parallel import parallel_env
    from gpuzoo.interfaces.vector import make_vec

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
