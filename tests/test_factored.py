"""Actions that are chosen part by part: the distribution against conditionals written out, and training."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor
from training import ROOT  # noqa: F401  the trainers' folder

import gpuzoo
from baselines.ppo import PPO, Args
from baselines.report import match
from baselines.train.actions import Actions
from baselines.train.factored import RANK, FactoredActions

FACTORS = (2, 3, 4)
JOINT, PARTS = spaces.Discrete(24), spaces.MultiDiscrete([2, 3, 4])
NOTHING = torch.zeros(1, 0)
COMBINATIONS = list(itertools.product(*map(range, FACTORS)))


def masks(space: spaces.Space[Any], rows: int) -> Tensor:
    """Some legal choice in each part, or of the whole."""
    if space is JOINT:
        mask = (torch.rand(rows, 24) < 0.3).to(torch.int8)
        mask[torch.arange(rows), torch.randint(24, (rows,))] = 1
        return mask
    parts = [(torch.rand(rows, n) < 0.5).to(torch.int8) for n in FACTORS]
    for part in parts:
        part[torch.arange(rows), torch.randint(part.shape[1], (rows,))] = 1
    return torch.cat(parts, 1)


def written_out(out: list[float], mask: list[int] | None, joint: bool) -> tuple[list[float], float]:
    """The probability of each combination and the entropy, number by number."""
    blocks: list[Any] = []
    rest = list(out)
    for k, n in enumerate(FACTORS):
        own = [rest.pop(0) for _ in range(n)]
        tells = [[rest.pop(0) for _ in range(RANK)] for _ in range(n)] if k < 2 else []
        listens = [[rest.pop(0) for _ in range(RANK)] for _ in range(n)] if k > 0 else []
        blocks.append((own, tells, listens))
    assert not rest

    def legal(k: int, before: tuple[int, ...], choice: int) -> bool:
        if mask is None:
            return True
        if not joint:
            return mask[sum(FACTORS[:k]) + choice] != 0
        begin = (*before, choice)
        return any(mask[number] and c[: k + 1] == begin for number, c in enumerate(COMBINATIONS))

    def conditional(k: int, before: tuple[int, ...]) -> list[float]:
        told = [0.0] * RANK
        for j, choice in enumerate(before):
            for r in range(RANK):
                told[r] += blocks[j][1][choice][r] + math.cos(math.pi * (r + 1) * (choice + 0.5) / FACTORS[j])
        logits = []
        for choice, logit in enumerate(blocks[k][0]):
            if k:
                logit += sum(a * b for a, b in zip(blocks[k][2][choice], told, strict=True))
            logits.append(math.exp(logit) if legal(k, before, choice) else 0.0)
        return [x / sum(logits) for x in logits]

    def chance(c: tuple[int, ...]) -> float:
        found = 1.0
        for k, choice in enumerate(c):  # what cannot begin has no continuation
            found = found and found * conditional(k, c[:k])[choice]
        return found

    chances = [chance(c) for c in COMBINATIONS]
    return chances, -sum(p * math.log(p) for p in chances if p)


def action(space: spaces.Space[Any], number: int) -> list[int]:
    return [number] if space is JOINT else list(COMBINATIONS[number])


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("space", [JOINT, PARTS])
def test_distribution(space: spaces.Space[Any], masked: bool) -> None:
    torch.manual_seed(5)
    actions, rows = FactoredActions(space, FACTORS), 6
    out = torch.randn(rows, actions.outputs)
    mask = masks(space, rows) if masked else None
    for row in range(rows):
        given = None if mask is None else mask[row]
        chances, entropy = written_out(
            out[row].double().tolist(), None if given is None else given.tolist(), space is JOINT
        )
        every = torch.tensor([action(space, k) for k in range(24)])
        log, of_parts = actions.evaluate(
            out[row].expand(1, 24, -1),
            NOTHING,
            None if given is None else given.expand(1, 24, -1),
            every.view(1, 24, -1),
        )
        torch.testing.assert_close(log.exp()[0], torch.tensor(chances))
        # Where an action is not possible, its probability is 0, and its parts' entropies count for nothing.
        mean = (of_parts[0] * torch.tensor(chances)).sum()
        torch.testing.assert_close(mean, torch.tensor(entropy))

        shape = (20_000, -1)
        drawn = actions.sample(
            out[row].expand(shape), NOTHING, None if given is None else given.expand(shape),
            torch.Generator().manual_seed(row),
        )  # fmt: skip
        numbers = drawn[:, 0] if space is JOINT else (drawn * torch.tensor([12, 4, 1])).sum(1)
        share = torch.bincount(numbers, minlength=24) / len(drawn)
        # Four deviations of a share of 20,000 draws are at most 4 * 0.5 / sqrt(20,000).
        torch.testing.assert_close(share, torch.tensor(chances), atol=0.015, rtol=0)
        assert (share[torch.tensor(chances) == 0] == 0).all()

        best = actions.greedy(out[row : row + 1], None if given is None else given.unsqueeze(0))[0].tolist()
        found, before = 0, 1.0
        for k in range(3):  # of the parts so far, the likeliest next one
            size = math.prod(FACTORS[k + 1 :])
            ways = [sum(chances[found + c * size : found + (c + 1) * size]) for c in range(FACTORS[k])]
            found, before = found + int(np.argmax(ways)) * size, max(ways)
        assert best == action(space, found)
        assert before > 0


def test_what_cannot_be_chosen_counts_for_nothing() -> None:
    actions = FactoredActions(JOINT, FACTORS)
    out = torch.randn(1, 3, actions.outputs, requires_grad=True)
    mask = torch.zeros(1, 3, 24, dtype=torch.int8)
    mask[0, 0, 5], mask[0, 1, [5, 6]] = 1, 1
    log, entropy = actions.evaluate(out, NOTHING, mask, torch.tensor([[[5], [6], [7]]]))
    assert log[0, 0] == entropy[0, 0] == 0  # one choice is sure
    assert log[0, 2] == entropy[0, 2] == 0  # no choice at all
    (log + entropy).sum().backward()
    assert out.grad is not None
    assert out.grad.isfinite().all()
    assert (out.grad[0, [0, 2]] == 0).all()
    assert out.grad[0, 1].any()
    drawn = actions.sample(out.detach(), NOTHING, mask, torch.Generator().manual_seed(1))
    assert drawn[0, 0] == 5
    assert drawn[0, 1] in (5, 6)
    assert drawn[0, 2] == 0


def test_parts_that_must_agree_are_learnt() -> None:
    """Independent parts reach 1/9 for each of three equal pairs, parts that listen to each other 1/3."""
    pairs = torch.arange(3).repeat_interleave(2).view(1, 3, 2)
    reached = []
    for actions in (Actions(spaces.MultiDiscrete([3, 3])), FactoredActions(spaces.MultiDiscrete([3, 3]), (3, 3))):
        torch.manual_seed(1)
        out = (0.01 * torch.randn(1, 1, actions.outputs)).requires_grad_()
        optimizer = torch.optim.Adam([out], 0.05)
        for _ in range(200):
            loss = -actions.evaluate(out.expand(1, 3, -1), NOTHING, None, pairs)[0].mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        reached.append(loss.item())
    assert reached[0] == pytest.approx(math.log(9), abs=0.01)
    assert reached[1] == pytest.approx(math.log(3), abs=0.02)


@pytest.mark.parametrize("executor", ["plain", "fast"])
def test_a_run_goes_on_from_its_checkpoint(executor: str, tmp_path: Path) -> None:
    """Of a population: a member alone does the same."""
    options: dict[str, Any] = {
        "num_envs": 8, "num_steps": 16, "total_steps": 2 * 128, "hidden": (16,), "action_parts": (3, 3),
        "executor": executor, "device": "cpu", "threads": 1,
    }  # fmt: skip
    trainer = PPO(Args("TicTacToe-v0", population=2, out=str(tmp_path), **options))
    for _ in range(2):
        trainer.iterate()
    trainer.save(tmp_path / "checkpoint.safetensors")
    assert ("actions by parts" in trainer.executor.describe()) == (executor == "fast")
    alone = PPO(Args("TicTacToe-v0", seed=2, **options))
    for _ in range(2):
        alone.iterate()
    policy = trainer.policies["player"]
    torch.testing.assert_close(policy.member(1).flat, alone.policies["player"].flat)
    played = match.arrange("TicTacToe-v0", {"player": f"{tmp_path / 'checkpoint.safetensors'}#1"})
    assert json.loads(json.dumps(played.players["player"].form)) == json.loads(json.dumps(policy.form))
    assert policy.form["action_parts"] == [3, 3]


@pytest.mark.parametrize(
    ("env_id", "options", "says"),
    [
        ("TicTacToe-v0", {"action_parts": (3, 4)}, r"whose product is 9, the choices of Discrete\(9\), not \[3, 4\]"),
        ("TicTacToe-v0", {"action_parts": (9, 1)}, "numbers above 1"),
        ("TagContinuous-v0", {"action_parts": (441,)}, r"can only be 21,21, not \[441\]"),
        ("Pendulum-v1", {"action_parts": (2,)}, "for actions that are choices"),
        ("SimpleTag-v0", {"action_parts": (5,), "random_opponents": {"agent": 0.5}}, "leave one away"),
    ],
)
def test_what_does_not_fit_is_refused(env_id: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Args(env_id, **options).check()


def test_illegal_combinations_are_never_played() -> None:
    """Sudoku's mask is of cells and digits together, so its parts, each alone, would often be illegal."""
    args = Args(
        "Sudoku-very-easy-v0", num_envs=16, num_steps=32, total_steps=512, hidden=(16,), action_parts=(9, 9, 9),
        device="cpu", threads=1,
    )  # fmt: skip
    trainer = PPO(args)
    trainer.play()
    assert gpuzoo.get("Sudoku-very-easy-v0").invalid_action != 0
    rollout = trainer.rollout
    assert rollout.mask is not None
    legal = rollout.mask[:-1].gather(-1, rollout.action.long())
    acting = rollout.acting[:-1].unsqueeze(-1)
    assert legal[acting].all()
    assert acting.float().mean() > 0.9
