"""A pool beside EnvPool's own: the same calls, shapes, dtypes and autoreset, and CartPole's same motion."""

from __future__ import annotations

import inspect
from typing import Any

import envpool
import numpy as np
import pytest

import gpuzoo
from gpuzoo.core.layout import layout

pytestmark = pytest.mark.filterwarnings("ignore:.*precision lowered.*")
SIZES = [(6, 6), (6, 2), (5, 3)]


def pools(num_envs: int, batch_size: int, kind: str = "gymnasium", **more: Any) -> tuple[Any, Any]:
    """EnvPool's and ours."""
    more = {"num_envs": num_envs, "batch_size": batch_size, "num_threads": 2, "seed": 3, **more}
    return envpool.make("CartPole-v1", env_type=kind, **more), gpuzoo.make_pool(
        "CartPole-v1", env_type=kind, device="cpu", **more
    )


def arrays(value: Any, name: str = "") -> dict[str, tuple[Any, Any]]:
    """dtype and shape of each array in nested dictionaries and tuples."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, tuple):
        value = dict(enumerate(value))
    if isinstance(value, dict):
        return {k: v for key, part in value.items() for k, v in arrays(part, f"{name}/{key}").items()}
    return {name: (value.dtype, value.shape)}


def test_same_calls():
    theirs, ours = pools(4, 2)
    for name in ("send", "recv", "step", "async_reset", "reset", "close", "render", "config", "spec", "all_env_ids"):
        assert hasattr(ours, name), name
    for name in ("send", "step", "reset"):
        wanted = list(inspect.signature(getattr(theirs, name)).parameters)
        assert list(inspect.signature(getattr(ours, name)).parameters) == wanted, name
    known = {
        "num_envs",
        "batch_size",
        "num_threads",
        "max_num_players",
        "seed",
        "max_episode_steps",
        "reward_threshold",
    }
    assert {k: ours.config[k] for k in known} == {k: theirs.config[k] for k in known}
    for name in ("num_envs", "is_async"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.metadata["autoreset_mode"] == theirs.metadata["autoreset_mode"]
    assert len(ours) == len(theirs)
    np.testing.assert_array_equal(ours.all_env_ids, theirs.all_env_ids)
    assert ours.all_env_ids.dtype == theirs.all_env_ids.dtype
    assert ours.action_space == theirs.action_space
    assert ours.observation_space.shape == theirs.observation_space.shape
    assert ours.observation_space.dtype == theirs.observation_space.dtype
    assert ours.spec.reward_threshold == theirs.spec.reward_threshold


@pytest.mark.parametrize(("num_envs", "batch_size"), SIZES)
def test_same_shapes_and_dtypes(num_envs, batch_size):
    seen = []
    for pool in pools(num_envs, batch_size):
        pool.async_reset()
        batch = pool.recv()
        mine = [arrays(batch)]
        pool.send(np.ones(batch_size, np.int32), batch[4]["env_id"])
        batch = pool.recv()
        mine.append(arrays(batch))
        mine.append(arrays(pool.step(np.ones(batch_size, np.int32), batch[4]["env_id"])))
        seen.append(mine)
    assert seen[0] == seen[1]


@pytest.mark.parametrize("steps", [1, 4])
def test_reset_of_some(steps):
    seen = []
    for pool in pools(4, 4):
        mine = [arrays(pool.reset())]
        for _ in range(steps):
            pool.step(np.zeros(4, np.int32))
        result = pool.reset(np.array([1, 3]))
        mine += [arrays(result), result[1]["env_id"].tolist(), result[1]["elapsed_step"].tolist()]
        result = pool.step(np.zeros(2, np.int32), np.array([1, 2]))
        mine += [arrays(result), sorted(result[4]["env_id"].tolist()), sorted(result[4]["elapsed_step"].tolist())]
        seen.append(mine)
    assert seen[0] == seen[1]


@pytest.mark.parametrize(("num_envs", "batch_size"), SIZES)
def test_same_autoreset(num_envs, batch_size):
    """What both do when an episode ends, whatever its length: the next step is a reset that ignores its action."""
    for pool in pools(num_envs, batch_size, max_episode_steps=12):
        length, over, ends = np.zeros(num_envs, int), np.zeros(num_envs, bool), set()
        started = np.zeros(num_envs, bool)
        pool.async_reset()
        for _ in range(60 * num_envs // batch_size):
            observation, reward, terminated, truncated, info = pool.recv()
            envs = info["env_id"]
            begins = over[envs] | ~started[envs]
            length[envs] = np.where(begins, 0, length[envs] + 1)
            np.testing.assert_array_equal(info["elapsed_step"], length[envs])
            np.testing.assert_array_equal(reward, np.where(begins, 0, 1))
            assert (abs(observation[begins]) <= 0.05).all()
            np.testing.assert_array_equal(truncated, length[envs] == 12)
            assert not (terminated & begins).any()
            ends |= {(bool(a), bool(b)) for a, b in zip(terminated, truncated, strict=True)}
            over[envs], started[envs] = terminated | truncated, True
            pool.send((envs % 2 * (length[envs] % 2)).astype(np.int32), envs)
        assert {(True, False), (False, True), (False, False)} <= ends


def test_same_motion():
    """EnvPool's first observations put into our state, and both played in an order of their own."""
    theirs, ours = pools(8, 3)
    for pool in (theirs, ours):
        pool.async_reset()
    first = np.zeros((8, 4), np.float32)
    batches = [[], []]
    for _ in range(2):
        for kind, pool in enumerate((theirs, ours)):
            batches[kind].append(pool.recv())
    for batch in batches[0]:
        first[batch[4]["env_id"]] = batch[0]
    seen = np.concatenate([batch[4]["env_id"] for batch in batches[0]])
    names = list(ours.simulator.program.fields)
    ours.simulator.set_state({name: first[seen, k] for k, name in enumerate(names)}, seen)
    sequences: list[dict[int, list[Any]]] = [{int(env): [] for env in seen} for _ in range(2)]
    for kind, pool in enumerate((theirs, ours)):
        rng, steps = np.random.default_rng(kind), np.zeros(8, int)
        pending = [int(env) for env in seen]
        for _ in range(200):
            chosen = np.array(sorted(rng.permutation(pending)[:3]), np.int32)
            pool.send(((chosen + steps[chosen]) % 2).astype(np.int32), chosen)
            steps[chosen] += 1
            observation, reward, terminated, _, info = pool.recv()
            pending = [env for env in pending if env not in chosen]
            for k, env in enumerate(info["env_id"].tolist()):
                pending.append(env)
                if env in sequences[kind]:
                    sequences[kind][env].append((observation[k], reward[k], terminated[k]))
    for env in sequences[0]:
        a, b = (sequences[kind][env] for kind in range(2))
        n = min(len(a), len(b), 25)
        assert n == 25
        for (x, *rest), (y, *others) in zip(a[:n], b[:n], strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-5)  # EnvPool computes in float64
            assert rest == others
            if rest[1]:
                break


# ---- dm_env ----


def test_same_specs():
    theirs, ours = pools(4, 2, "dm")
    assert ours.action_spec() == theirs.action_spec()
    mine, his = ours.observation_spec(), theirs.observation_spec()
    for name in ("shape", "dtype"):
        assert getattr(mine.obs, name) == getattr(his.obs, name)
        assert getattr(mine.env_id, name) == getattr(his.env_id, name)
        assert getattr(mine.players.env_id, name) == getattr(his.players.env_id, name)
    assert ours.discount_spec() == theirs.discount_spec().replace(name="discount", dtype=np.float32)
    ours.reward_spec()


def one_of_each_kind() -> list[str]:
    """The game that has the shortest observations, as those of large bodies take long to compile."""
    found: dict[Any, tuple[int, str]] = {}
    for game in gpuzoo.ids():
        env = gpuzoo.get(game)
        lay = layout(env, env.Config())
        sorts = [frozenset(map(type, by_group.values())) for by_group in (lay.observation_spaces, lay.action_spaces)]
        kind = (*sorts, lay.agents > 1, lay.mask_size > 0, env.turn is None)
        found[kind] = min(found.get(kind, (lay.observation_size, game)), (lay.observation_size, game))
    return [game for _, game in found.values()]


def test_specs_fit_the_time_steps():
    games = one_of_each_kind()
    assert len(games) > 5
    for game in games:
        pool = gpuzoo.make_pool(game, 4, 2, device="cpu", env_type="dm")
        step = pool.reset()
        agents = pool.simulator.layout.agents
        pool.observation_spec().obs.validate(step.observation.obs[0])
        pool.observation_spec().env_id.validate(step.observation.env_id[0])
        spec = pool.observation_spec().action_mask
        assert (spec is None) == (step.observation.action_mask is None)
        if spec is not None:
            spec.validate(step.observation.action_mask[0])
        pool.reward_spec().validate(step.reward[0])
        pool.discount_spec().validate(step.discount[0])
        action = np.array([pool.action_spec().generate_value()] * (2 * agents))
        pool.send(action, step.observation.env_id)


def test_same_time_steps():
    """But for the discount of an episode that ran out of time: EnvPool has 0, dm_env's convention is 1."""
    kinds = []
    for pool in pools(2, 2, "dm", max_episode_steps=12):
        step, before, seen = pool.reset(), np.zeros(2, bool), []
        assert step.first().all()
        for k in range(40):
            step = pool.step(np.array([0, k % 2], np.int32))
            np.testing.assert_array_equal(step.first(), before)
            before = step.last()
            seen += [(int(a), float(b)) for a, b in zip(step.step_type, step.discount, strict=True)]
            dtypes = step.step_type.dtype, step.reward.dtype, step.discount.dtype, step.observation.obs.dtype
        kinds.append((set(seen), dtypes))
    (theirs, a), (ours, b) = kinds
    assert a == b
    assert theirs == {(0, 1.0), (1, 1.0), (2, 0.0)}
    assert ours == theirs | {(2, 1.0)}
