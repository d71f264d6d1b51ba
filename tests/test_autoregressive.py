"""Actions whose parts are chosen one after the other: a distribution over legal combinations, and runs with it."""

from __future__ import annotations

import pytest
from gymnasium import spaces

torch = pytest.importorskip("torch")

import training  # noqa: E402, makes the trainers importable

from baselines.ppo import PPO, Args  # noqa: E402
from baselines.report.evaluation import evaluate  # noqa: E402
from baselines.train.autoregressive import Autoregressive  # noqa: E402

FACTORS = (3, 4, 2)


def random(rows=1, masked=True):
    generator = torch.Generator().manual_seed(0)
    actions = Autoregressive(spaces.Discrete(24), FACTORS)
    out = torch.randn(rows, actions.outputs, generator=generator)
    mask = (torch.rand(rows, 24, generator=generator) < 0.4).to(torch.int8) if masked else None
    return actions, out, mask


@pytest.mark.parametrize("masked", [True, False])
def test_probabilities_are_of_legal_actions(masked) -> None:
    actions, out, mask = random(50, masked)
    log = actions.log_probs(out, mask).squeeze(-2)
    legal = torch.ones(50, 24, dtype=torch.bool) if mask is None else mask != 0
    torch.testing.assert_close(log.exp().sum(-1), torch.ones(50))
    assert (log.exp()[~legal] == 0).all()
    assert (log.exp()[legal] > 0).all()
    for action in range(24):
        chosen = torch.full((50, 1), action)
        found, _ = actions.evaluate(out, out.new_empty(0), mask, chosen)
        torch.testing.assert_close(found[legal[:, action]], log[legal[:, action], action])


def test_entropy_is_that_of_the_distribution_on_average() -> None:
    actions, out, mask = random(20)
    log = actions.log_probs(out, mask).squeeze(-2)
    each = torch.stack(
        [actions.evaluate(out, out.new_empty(0), mask, torch.full((20, 1), a))[1] for a in range(24)], -1
    )
    torch.testing.assert_close((each * log.exp()).sum(-1), -(log.exp() * log).sum(-1))


def test_draws_have_these_probabilities() -> None:
    actions, out, mask = random()
    assert mask is not None
    n = 20_000
    many, legal = out.expand(n, -1), mask.expand(n, -1)
    drawn = actions.sample(many, out.new_empty(0), legal, torch.Generator().manual_seed(1)).squeeze(-1)
    expected = n * actions.log_probs(out, mask).exp().flatten()
    counts = torch.bincount(drawn, minlength=24)
    assert (counts[expected == 0] == 0).all()
    some = expected > 0
    assert ((counts - expected)[some] ** 2 / expected[some]).sum() < 40  # of at most 23 degrees of freedom


def test_chosen_actions_have_the_log_probability_that_is_said() -> None:
    actions, out, mask = random(200)
    assert mask is not None
    mask[:5] = 0  # an agent without legal action
    noise = torch.empty_like(out)
    actions.fill_noise(noise, [torch.Generator().manual_seed(2)])
    action, log = actions.choose(out, out.new_empty(0), mask, noise)
    assert mask.gather(-1, action)[5:].all()
    assert not action[:5].any()
    assert not log[:5].any()
    torch.testing.assert_close(log, actions.evaluate(out, out.new_empty(0), mask, action)[0])
    assert mask.gather(-1, actions.greedy(out, mask))[5:].all()


def test_a_part_can_follow_the_one_before() -> None:
    """The probability of equal parts grows to 1, and they stay equally likely. Independent parts cannot do that."""
    actions = Autoregressive(spaces.Discrete(25), (5, 5))
    out = torch.zeros(actions.outputs, requires_grad=True)
    equal = torch.eye(5).flatten().bool()
    optimizer = torch.optim.Adam([out], 0.1)
    for _ in range(200):
        log = actions.log_probs(out, None).squeeze(-2)
        optimizer.zero_grad()
        (-log[equal].mean()).backward()
        optimizer.step()
    found = actions.log_probs(out, None).exp().squeeze(-2)[equal]
    assert found.sum() > 0.97
    assert found.max() < 1.2 * found.min()


def test_wrong_parts() -> None:
    with pytest.raises(ValueError, match="parts of 2 x 3 choices are no"):
        Autoregressive(spaces.Discrete(7), (2, 3))
    with pytest.raises(ValueError, match="autoregressive is for Discrete actions that count"):
        PPO(Args("CartPole-v1", autoregressive=True, device="cpu"))
    with pytest.raises(ValueError, match="Sudoku-v0 with these parameters does not have"):
        PPO(Args("Sudoku-v0", autoregressive=True, device="cpu", config={"action_form": "parts"}))


@pytest.mark.parametrize("executor", ["plain", "fast"])
def test_a_run(executor, tmp_path) -> None:
    """A policy learns, is saved, and goes on playing: legal actions only, as an illegal one ends the episode."""
    game, file = "Sudoku-very-easy-v0", tmp_path / "checkpoint.safetensors"
    trainer = PPO(training.small(game, autoregressive=True, executor=executor))
    if executor == "fast":
        assert "autoregressive actions in plain torch" in trainer.executor.describe()
    before = trainer.policies["agent"].flat.detach().clone()
    for _ in range(3):
        trainer.iterate()
    policy = trainer.policies["agent"]
    assert (policy.flat != before).any()
    assert policy.form["factors"] == [9, 9, 9]
    trainer.save(file)
    loaded = PPO(training.small(game, load={"agent": str(file)})).policies["agent"]
    assert isinstance(loaded.actions, Autoregressive)
    torch.testing.assert_close(loaded.flat, policy.flat)
    found = evaluate(game, {"agent": loaded}, episodes=64)
    assert found.lengths["agent"].mean() > 2
