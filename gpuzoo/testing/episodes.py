"""How episodes begin and end: autoreset modes, time limits, resets and steps of some envs, statistics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpuzoo.core.simulator import Simulator
from gpuzoo.testing.tools import (
    LIMIT,
    SEED,
    Array,
    EnvLike,
    assert_same,
    first_of,
    pick,
    promise,
    random_step,
    read,
    simulator,
)


@promise
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
    sim = simulator(env, n, autoreset_mode=mode, max_episode_steps=limit, **config)
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


@promise
def check_time_limit(env: EnvLike, **config: Any) -> None:
    """Truncation comes exactly at the limit, to all that are in the game, and apart from termination."""
    for limit in (1, 2, 13, None):
        sim = simulator(env, 6, autoreset_mode="disabled", max_episode_steps=limit, **config)
        sim.reset(seed=SEED)
        for t in range(1, (limit or 60) + 1):
            plays = sim.arrays["alive"] & ~sim.arrays["waiting"][:, None]
            random_step(sim)
            truncated = sim.arrays["truncated"]
            want = plays if t == limit else np.zeros_like(plays)
            bad = (truncated != want) & ~sim.arrays["waiting"][:, None] | (truncated & ~plays if t != limit else False)
            if bad.any():
                i, a = first_of(bad)
                raise AssertionError(f"limit {limit}, step {t}: agent {a} of env {i} has truncated={truncated[i, a]}")
        over = (sim.arrays["waiting"] | sim.arrays["ended"]).all()
        assert limit is None or over, f"an env goes on after its limit of {limit} steps"


@promise
def check_disabled_mode(env: EnvLike, **config: Any) -> None:
    """Without autoreset a finished env stands still: reward 0, everything else stays as it is."""
    sim = simulator(env, 6, autoreset_mode="disabled", max_episode_steps=11, **config)
    sim.reset(seed=SEED)
    for _ in range(30):
        frozen = np.flatnonzero(sim.arrays["waiting"])
        before = read(sim, frozen)
        random_step(sim)
        after = read(sim, frozen)
        assert not after["reward"].any(), "a finished env has a reward"
        for name in ("reward", "ended"):
            del before[name], after[name]
        assert_same("a finished env before and after a step", before, after)
    assert len(frozen) == 6, "an env goes on after its limit of 11 steps"


@promise
def check_partial_reset(env: EnvLike, **config: Any) -> None:
    """A reset of some envs leaves every byte of the others, and gives its own what a reset of all gives."""
    n = 5
    mask = np.array([True, False, True, False, False])
    for seed in (None, 99):
        part, whole = simulator(env, n, **config), simulator(env, n, **config)
        for sim in (part, whole):
            sim.reset(seed=SEED)
            sim.rollout(23)
        before = {k: np.array(a) for k, a in part.arrays.items() if k not in ("reset_mask", "reset_seed")}
        part.reset(seed, mask)
        whole.reset(seed)
        after = {k: np.array(part.arrays[k]) for k in before}
        assert_same("an env that was not reset, before and after", pick(before, ~mask), pick(after, ~mask))
        assert_same("an env reset with some and with all", read(part, mask), read(whole, mask))
        for sim in (part, whole):
            sim.rollout(5)
        assert_same("5 steps after that", read(part, mask), read(whole, mask))


@promise
def check_partial_step(env: EnvLike, **config: Any) -> None:
    """A step of some envs is for them the same as a step of all, and leaves every byte of the others."""
    n = 12
    for mode in ("next_step", "same_step", "disabled"):
        options = {"autoreset_mode": mode, "max_episode_steps": 7, **config}
        part, whole = simulator(env, n, threads=2, **options), simulator(env, n, **options)
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
            assert_same("an env stepped with some and with all", read(part, chosen), read(whole, chosen))
            assert_same("an env that was not stepped", pick(part.arrays, others), pick(before, others))


@promise
def check_between_episodes(env: EnvLike, **config: Any) -> None:
    """A step that shows last states before the next episodes begin is the same step, and they are the last states."""
    n = 9
    options = {"max_episode_steps": 7, **config}
    whole, halves = (simulator(env, n, **options) for _ in range(2))
    still = simulator(env, n, **{**options, "autoreset_mode": "disabled"})
    seen: list[tuple[Array, dict[str, Array]]] = []

    def look(sim: Simulator) -> None:
        over = np.flatnonzero(sim.backend.to_numpy(sim.arrays["waiting"]))
        seen.append((over, {name: sim.backend.to_numpy(x) for name, x in sim.state(over).items()}))

    halves.between_episodes = look
    rng = np.random.default_rng(SEED)
    for sim in (whole, halves, still):
        sim.reset(seed=SEED)
    for step in range(30):
        where = f"step {step}"
        if step % 10 == 9:
            for sim in (whole, halves):
                sim.rollout(8)
        else:
            chosen = None if step % 3 else rng.permutation(n)[: rng.integers(1, n + 1)]
            whole.random_actions()
            still.restore(whole.snapshot())
            for sim in (halves, still):
                sim.backend.write(sim.arrays["action"], whole.arrays["action"])
            seen.clear()
            for sim in (whole, halves, still):
                sim.step(chosen)
            over = np.flatnonzero(still.backend.to_numpy(still.arrays["waiting"]))
            last = {name: still.backend.to_numpy(x) for name, x in still.state(over).items()}
            if len(over) or seen:
                ((envs, states),) = seen
                assert_same(f"{where}, who ended", {"envs": envs}, {"envs": over})
                assert_same(f"{where}, last states", states, last)
        assert_same(f"{where} with and without a look at last states", read(halves), read(whole))


@promise
def check_statistics(env: EnvLike, **config: Any) -> None:
    """Returns, lengths and who is alive agree with what Python adds up; who left the game gets nothing more."""
    n = 6
    sim = simulator(env, n, **config)
    sim.reset(seed=SEED)
    arrays = sim.arrays
    total = np.zeros_like(arrays["reward"])
    length = np.zeros(n, np.int32)
    for step in range(150):
        alive = arrays["alive"].copy()
        random_step(sim)
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
