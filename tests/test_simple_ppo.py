"""PPO in one file, with a memory, and for teams: targets, probabilities, memories, and that they learn."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from training import toy

import gpuzoo
from baselines.simple import mappo, ppo, ppo_rnn

pytestmark = pytest.mark.rotates  # about these modules of the trainers

CPU: dict[str, Any] = {"device": "cpu", "threads": 1}
SMALL: dict[str, Any] = {"num_envs": 16, "num_steps": 16, **CPU}


def quiet(row: dict[str, float]) -> None:
    """A log that keeps nothing."""


@pytest.mark.parametrize(
    ("algorithm", "played"),
    [(ppo, "CartPole-v1"), (ppo, "Pendulum-v1"), (ppo, "Breakout-MinAtar-v1"), (ppo, "Blackjack-v1"),
     (ppo_rnn, "CartPole-v1"), (ppo_rnn, "Pendulum-v1"), (mappo, "SimpleSpread-v0"), (mappo, "LevelBasedForaging-v3")],
    ids=lambda x: x.split("-")[0] if isinstance(x, str) else x.__name__.rpartition(".")[2],
)  # fmt: skip
def test_update_starts_from_the_policy_that_acted(algorithm, played):
    """With one minibatch its ratios are 1, if masks, memories and actions are those of the rollout.

    Not in the first iteration only: later ones begin within episodes, with memories.
    """
    rows: list[dict[str, float]] = []
    options = SMALL | {"total_steps": 16 * 16 * 4, "epochs": 1, "minibatches": 1}
    algorithm.train(algorithm.Args(played, **options), rows.append)
    assert len(rows) == 4
    for row in rows:
        assert abs(row["kl"]) < 1e-5
        assert row["clipped"] == 0
        assert row["entropy"] != 0


def values_along(algorithm: Any, game: Any, agent: Any) -> tuple[torch.Tensor, ...]:
    """Values, rewards, terminations and whether agents act, (steps + 1, agents), over one episode of a toy."""
    with gpuzoo.make(game, 1, device="cpu", output="torch", autoreset_mode="next_step", threads=1) as envs:
        seen, infos = envs.reset(seed=0)
        values, rewards, terminations, alive = [], [], [], []
        memory = torch.zeros(1, 64)
        while True:
            if algorithm is mappo:
                values.append(agent(*agent.encode(seen), envs.state())[1][0])
            else:
                x = seen["agent"]["observation"][:, 0]
                begins = torch.full((1, 1), float(not rewards))
                found = agent(x) if algorithm is ppo else agent(x[None], memory, begins)
                values.append(found[1].reshape(1))
                memory = found[-1]
            alive.append(torch.cat([x[0] for x in infos["alive"].values()]).clone())
            if infos["ended"].any():
                return tuple(torch.stack(x).float() for x in (values, rewards, terminations, alive[:-1]))
            seen, reward, terminated, _, infos = envs.step(envs.random_actions())
            rewards.append(torch.cat([x[0] for x in reward.values()]).clone())
            terminations.append(torch.cat([x[0] for x in terminated.values()]).clone())


@pytest.mark.parametrize(("algorithm", "name"), [(ppo, "Pause"), (ppo_rnn, "Pause"), (mappo, "Clock")])
def test_values_at_the_end(algorithm, name):
    """A terminated agent gets nothing more; at a time limit the value of the final observation counts.

    The toys' rewards grow with time, so the first observation of the next episode has a much smaller value.
    """
    options = SMALL | {"num_steps": 12, "total_steps": 16 * 12 * 100, "epochs": 4, "lr": 5e-3, "ent_coef": 0.0}
    options |= {"gamma": 0.5, "gae_lambda": 0.5, "hidden": 64, "minibatches": 1, "max_grad_norm": 10.0}
    agent = algorithm.train(algorithm.Args(toy(name), **options), quiet)["agent"]
    with torch.no_grad():
        values, rewards, terminations, alive = values_along(algorithm, toy(name), agent)
    targets = rewards + 0.5 * (1 - terminations) * values[1:]
    errors = ((values[:-1] - targets) * alive).abs()
    as_if_it_went_on = rewards[-1] + 0.5 * values[0]  # into the next episode
    mistake = (alive[-1] * (targets[-1] - as_if_it_went_on)).abs().max()
    assert errors.max() < mistake / 2


def test_memory_begins_with_the_episode():
    """What comes before an episode does not count, and a sequence gives what its steps give one by one."""
    envs = gpuzoo.make_vec("CartPole-v1", 3, device="cpu")
    torch.manual_seed(0)
    args = ppo_rnn.Args("CartPole-v1", hidden=8, **CPU)
    agent = ppo_rnn.Agent(envs.single_observation_space, envs.single_action_space, args)
    x, memory, begins = torch.randn(6, 3, 4), torch.randn(3, 8), torch.zeros(6, 3)
    begins[2, 0] = begins[4, 1] = 1
    with torch.no_grad():
        _, values, after = agent(x, memory, begins)
        fresh = agent(x[2:], torch.zeros(3, 8), begins[2:])[1]
        torch.testing.assert_close(values[2:, 0], fresh[:, 0])
        assert not torch.allclose(values[2:, 2], fresh[:, 2])
        for t in range(6):
            _, value, memory = agent(x[t : t + 1], memory, begins[t : t + 1])
            torch.testing.assert_close(value[0], values[t])
    torch.testing.assert_close(memory, after)
    envs.close()


def test_running_moments():
    moments = ppo.Moments(3)
    x = torch.randn(100, 3) * torch.tensor([1.0, 5.0, 0.1]) + 2
    for part in x.split([10, 50, 1, 39]):
        moments.update(part)
    torch.testing.assert_close(moments.mean.data, x.mean(0))
    torch.testing.assert_close(moments.var.data, x.var(0, correction=0))


def test_games_that_do_not_fit():
    with pytest.raises(ValueError, match=r"SimpleSpread-v0 has several agents: train them with mappo\.py"):
        ppo.Args("SimpleSpread-v0")
    with pytest.raises(ValueError, match="has several agents"):
        ppo_rnn.Args("SimpleSpread-v0")
    for game in ("CartPole-v1", "ConnectFour-v0"):
        with pytest.raises(ValueError, match="no game of several agents who act at the same time"):
            mappo.Args(game)
    rows: list[dict[str, float]] = []
    options = SMALL | {"total_steps": 256, "config": {"group": "player_0"}}
    ppo.train(ppo.Args("ConnectFour-v0", **options), rows.append)  # one of the two, against random play
    assert math.isfinite(rows[0]["value_loss"])


@pytest.mark.rotates(long=True)
@pytest.mark.parametrize("seed", [1, 2])
def test_ppo_solves_cartpole(seed):
    assert ppo.train(ppo.Args(seed=seed, **CPU), quiet)["return"] > 475


@pytest.mark.rotates(long=True)
def test_ppo_learns_continuous_control():
    """With observations and rewards normalised; random play has -1,200."""
    options = {
        "num_envs": 64,
        "num_steps": 128,
        "total_steps": 600_000,
        "epochs": 8,
        "lr": 2e-3,
        "gamma": 0.9,
        "ent_coef": 0.0,
    }
    options |= {"normalize_observations": True, "normalize_rewards": True, **CPU}
    assert ppo.train(ppo.Args("Pendulum-v1", **options), quiet)["return"] > -500


@pytest.mark.rotates(long=True)
@pytest.mark.parametrize("seed", [1, 2])
def test_only_memory_remembers(seed):
    with_memory = ppo_rnn.train(ppo_rnn.Args(seed=seed, total_steps=100_000, **CPU), quiet)["return"]
    options = {"num_envs": 128, "total_steps": 100_000, "minibatches": 4, "epochs": 4, **CPU}
    without = ppo.train(ppo.Args("MemoryChain-bsuite-v0", seed=seed, **options), quiet)["return"]
    assert with_memory > 0.95
    assert without < 0.2


@pytest.mark.rotates(long=True)
@pytest.mark.parametrize("central", [True, False])
def test_mappo_learns_to_spread(central):
    """Random play has -27 for each agent."""
    args = mappo.Args(central=central, total_steps=200_000, **CPU)
    assert mappo.train(args, quiet)["return"] > -20
