"""The replay buffer against a list of dictionaries, over random episodes of one and of several agents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuzoo

torch = pytest.importorskip("torch")

from gpuzoo.wrappers.replay import ReplayBuffer  # noqa: E402

GAMMA = 0.9


def episodes(envs: int, agents: int, steps: int, seed: int = 0) -> list[dict[str, np.ndarray]]:
    """Steps of random episodes in same-step mode, whose observations are numbers of their own.

    Agents leave early, or are cut by the time limit, and episodes last from one step to many.
    """
    rng = np.random.default_rng(seed)
    shape = (envs, agents) if agents else (envs,)
    alive = np.ones(shape, bool)
    count = 0

    def fresh() -> np.ndarray:
        nonlocal count
        count += envs
        return np.arange(count - envs, count, dtype=np.int64)

    out = []
    observation = fresh()
    for _ in range(steps):
        terminated = alive & (rng.random(shape) < 0.15)
        limit = rng.random(envs) < 0.1
        left = (alive & ~terminated).any(1) if agents else alive & ~terminated
        ended = ~left | limit
        truncated = alive & (limit[:, None] if agents else limit)  # both flags may be set in one step
        final, following = fresh(), fresh()
        out.append(
            {
                "observation": observation,
                "pixels": rng.integers(0, 255, (envs, 2, 3), np.uint8),
                "reward": np.where(alive, rng.normal(size=shape), 0).astype(np.float32),
                "terminated": terminated,
                "truncated": truncated,
                "ended": ended,
                "next_observation": np.where(ended, following, final),  # the first one of the next episode
                "final_observation": np.where(ended, final, -1),
            }
        )
        observation = out[-1]["next_observation"]
        alive = alive & ~terminated
        alive[ended] = True
    return out


def expected(steps: list[dict[str, Any]], first: int, env: int, n: int, agent: int | None) -> tuple[float, float, int]:
    """Return, discount and last observation of the window that begins at a step, the slow way."""
    total, discount, present = 0.0, 1.0, True
    at = env if agent is None else (env, agent)
    for step in steps[first : first + n]:
        if present:
            total += discount * float(step["reward"][at])
        alive_value = not (present and step["terminated"][at])
        present = present and not (step["terminated"][at] or step["truncated"][at])
        discount = discount * GAMMA if alive_value else 0.0
        seen = step["final_observation"][env] if step["ended"][env] else step["next_observation"][env]
        if step["ended"][env]:
            break
    return total, discount, int(seen)


@pytest.mark.parametrize("agents", [0, 2], ids=["rows", "agents"])
@pytest.mark.parametrize("n_step", [1, 3, 7])
@pytest.mark.parametrize("count", [9, 40], ids=["partly filled", "wrapped around"])
def test_samples_are_those_of_a_list(agents, n_step, count):
    envs, slots = 3, 16
    steps = episodes(envs, agents, count, seed=n_step)
    buffer = ReplayBuffer(envs * slots + 2, n_step=n_step, gamma=GAMMA)
    for step in steps:
        buffer.add(**({k: v for k, v in step.items() if k != "ended"} if not agents else step))
    kept = steps[-slots:]
    assert len(buffer) == len(kept) * envs

    batch = buffer.sample(4000, torch.Generator().manual_seed(1))
    assert batch.keys() == {"observation", "pixels", "next_observation", "reward", "discount"}
    assert batch["pixels"].dtype == torch.uint8
    assert batch["reward"].dtype == batch["discount"].dtype == torch.float32
    where = {int(step["observation"][e]): (t, e) for t, step in enumerate(kept) for e in range(envs)}
    rows = {int(observation): i for i, observation in enumerate(batch["observation"])}
    assert rows.keys() == where.keys(), "each stored transition is drawn, and no other"
    cut = 0
    for observation, i in rows.items():
        t, e = where[observation]
        np.testing.assert_array_equal(batch["pixels"][i], kept[t]["pixels"][e])
        for agent in range(agents) if agents else [None]:
            at = (i,) if agent is None else (i, agent)
            total, discount, last = expected(kept, t, e, n_step, agent)
            assert float(batch["reward"][at]) == pytest.approx(total, abs=1e-6)
            assert float(batch["discount"][at]) == pytest.approx(discount, abs=1e-6)
            assert int(batch["next_observation"][i]) == last
            cut += 0 < discount > GAMMA**n_step + 1e-6
    assert cut or n_step == 1, "some windows are cut by truncations or by the newest step"


def test_draws_are_uniform_and_those_of_the_generator():
    buffer = ReplayBuffer(64)
    for step in episodes(4, 0, 20):
        buffer.add(**step)
    draws = [buffer.sample(6400, torch.Generator().manual_seed(s))["observation"] for s in (1, 1, 2)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    counts = draws[0].unique(return_counts=True)[1]
    assert len(counts) == 64
    assert 60 <= counts.min() <= counts.max() <= 145  # 100 each, with a deviation of 10


@pytest.mark.parametrize("limit", [5, None], ids=["truncated", "terminated"])
def test_cartpole_bootstraps_from_final_observations(limit):
    """Next observations follow from their own by the game's rules, also where the episode ended."""
    envs = gpuzoo.make_vec(
        "CartPole-v1", 8, device="cpu", output="torch", autoreset_mode="same_step", max_episode_steps=limit
    )
    buffer = ReplayBuffer(8 * 40, gamma=GAMMA)
    observation, _ = envs.reset(seed=3)
    for _ in range(40):
        action = torch.ones(8, dtype=torch.int64)
        following, reward, terminated, truncated, infos = envs.step(action)
        buffer.add(
            observation=observation,
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            next_observation=following,
            final_observation=infos["final_obs"],
        )
        observation = following
    batch = buffer.sample(500, torch.Generator().manual_seed(0))
    before, after = batch["observation"], batch["next_observation"]
    assert torch.allclose(after[:, 0], before[:, 0] + 0.02 * before[:, 1])
    assert (batch["discount"] == (GAMMA if limit else batch["discount"])).all()
    assert (batch["discount"] == 0).any() == (limit is None)


def test_nothing_leaks_over_a_cut():
    buffer = ReplayBuffer(20, n_step=3, gamma=GAMMA)
    flag = torch.zeros(1, dtype=torch.bool)
    buffer.cut()
    for i in range(12):
        now = torch.tensor([float(i)])
        buffer.add(reward=now, terminated=flag, truncated=flag, at=now, next_at=now + 1)
        if i == 6:
            buffer.cut()
    batch = buffer.sample(400, torch.Generator().manual_seed(0))
    for at, reward, discount, following in zip(
        *(batch[k] for k in ("at", "reward", "discount", "next_at")), strict=True
    ):
        last = min(at + 3, torch.tensor(7.0 if at <= 6 else 12.0))
        assert following == last
        assert discount == pytest.approx(GAMMA ** int(last - at))
        assert reward == pytest.approx(sum(GAMMA**k * (float(at) + k) for k in range(int(last - at))))


def test_a_state_goes_on_with_the_same_samples(tmp_path):
    steps = episodes(3, 2, 30)
    one, other = ReplayBuffer(48, n_step=3), ReplayBuffer(48, n_step=3)
    for step in steps[:20]:
        one.add(**step)
    torch.save(one.state_dict(), tmp_path / "buffer.pt")
    other.load_state_dict(torch.load(tmp_path / "buffer.pt"))
    assert len(other) == len(one)
    saved = one.state_dict()
    for step in steps[20:]:
        one.add(**step)
        other.add(**step)
    batches = [buffer.sample(64, torch.Generator().manual_seed(5)) for buffer in (one, other)]
    assert all(torch.equal(batches[0][name], batches[1][name]) for name in batches[0])
    one.load_state_dict(saved)  # a copy: what came after is not in it
    assert torch.equal(one.state_dict()["fields"]["reward"], saved["fields"]["reward"])
    other.load_state_dict(ReplayBuffer(48).state_dict())
    assert len(other) == 0


def test_tensors_are_allocated_once():
    buffer = ReplayBuffer(12)
    assert buffer.nbytes == 0
    steps = episodes(3, 0, 10)
    buffer.add(**steps[0])
    stored = steps[0].keys() - {"final_observation", "truncated"}
    assert buffer.nbytes == 4 * sum(steps[0][name].nbytes for name in stored)
    places = {name: field.data_ptr() for name, field in buffer._fields.items()}
    for step in steps[1:]:
        buffer.add(**step)
    assert {name: field.data_ptr() for name, field in buffer._fields.items()} == places


def test_stored_tensors_are_copies_without_gradients():
    action = torch.zeros(2, requires_grad=True)
    flag = torch.zeros(2, dtype=torch.bool)
    buffer = ReplayBuffer(2)
    buffer.add(reward=torch.zeros(2), terminated=flag, truncated=flag, action=action * 2)
    with torch.no_grad():
        action += 1
    batch = buffer.sample(4)
    assert not batch["action"].requires_grad
    assert (batch["action"] == 0).all()


def changed(**changes: Any) -> dict[str, Any]:
    step = episodes(3, 0, 1)[0] | changes
    return {name: value for name, value in step.items() if value is not None}


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (changed(reward=np.zeros(3, np.int64)), "reward must be float"),
        (changed(terminated=np.zeros(3, np.float32)), "terminated must be bool"),
        (changed(truncated=np.zeros((3, 1), bool)), "truncated must be bool"),
        (changed(ended=np.zeros(4, bool)), "ended must be bool"),
        (changed(pixels=np.zeros((4, 2, 3), np.uint8)), "pixels must begin with the axis of the envs"),
        (changed(next_observation=None), "final_observation needs next_observation"),
        (changed(final_observation=np.zeros(3)), "final_observation must be torch.int64"),
        (episodes(3, 2, 1)[0] | {"ended": None}, "give ended"),
    ],
)
def test_a_step_that_cannot_be_stored_is_refused(step, message):
    buffer = ReplayBuffer(30)
    with pytest.raises(ValueError, match=message):
        buffer.add(**step)
    assert buffer.nbytes == 0


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (changed(pixels=None), "lacks pixels"),
        (changed(extra=np.zeros(3)), "adds extra"),
        (changed(pixels=np.zeros((3, 2, 4), np.uint8)), r"pixels is torch.uint8 \(3, 2, 3\) in the first step"),
        (changed(pixels=np.zeros((3, 2, 3), np.float32)), "but here torch.float32"),
        (changed(pixels=np.zeros((4, 2, 3), np.uint8)), "pixels must begin"),
    ],
)
def test_a_step_unlike_the_first_is_refused(step, message):
    buffer = ReplayBuffer(30)
    buffer.add(**changed())
    before = buffer.state_dict()
    with pytest.raises(ValueError, match=message):
        buffer.add(**step)
    after = buffer.state_dict()
    assert after["head"] == before["head"]
    assert all(torch.equal(field, before["fields"][name]) for name, field in after["fields"].items())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"capacity": 0}, "capacity must be at least 1"),
        ({"capacity": 9, "n_step": 0}, "n_step must be at least 1"),
        ({"capacity": 9, "gamma": 1.5}, "gamma must be in"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ReplayBuffer(**arguments)


def test_a_buffer_that_is_too_small_or_empty_says_so():
    buffer = ReplayBuffer(8, n_step=3)
    with pytest.raises(RuntimeError, match="empty"):
        buffer.sample(1)
    with pytest.raises(ValueError, match="holds 2 steps of 3 envs, but n_step=3: it must be at least 9"):
        buffer.add(**changed())
    fitting = ReplayBuffer(9, n_step=3)
    fitting.add(**changed())
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        fitting.sample(0)
    with pytest.raises(ValueError, match="buffer for 9 transitions of 3 envs"):
        ReplayBuffer(30).load_state_dict(fitting.state_dict())
    other = ReplayBuffer(9, n_step=3)
    other.add(**changed(pixels=None))
    with pytest.raises(ValueError, match="adds pixels"):
        other.load_state_dict(fitting.state_dict())


def test_a_buffer_larger_than_memory_says_what_it_needs():
    with pytest.raises(MemoryError, match=r"999,999,999,999 transitions needs 26,077.0 GiB on cpu .*pixels 5,587"):
        ReplayBuffer(10**12).add(**changed())
