"""DAgger, and the experts that come along."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot
from toys.nim import Nim
from typer.testing import CliRunner

import gpuzoo
from baselines import ppo
from baselines.dagger import Args, DAgger, chosen
from baselines.report.evaluation import evaluate
from baselines.run import train
from gpuzoo.envs.jumanji import thistlethwaite, tile_by_tile
from gpuzoo.tools import cli

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def wide(group: str, observation: Tensor) -> Tensor:
    """Has one action too many."""
    return torch.ones(len(observation), 3)


def balance(group: str, observation: Tensor) -> Tensor:
    """Pushes a cart to the side to which the pole falls."""
    assert group == "agent"
    return one_hot((observation[:, 2] + observation[:, 3] > 0).long(), 2)


def ignorant(group: str, observation: Tensor) -> Tensor:
    """Knows only what to do on the left."""
    return balance(group, observation) * (observation[:, :1] < 0)


def take_one(group: str, observation: Tensor) -> Tensor:
    """Takes one stick, or three, where only one may be there."""
    return torch.tensor([[1, 0, 1]]).expand(len(observation), 3)


def small(game: Any = "CartPole-v1", expert: str = "balance", **values: Any) -> Args:
    chosen: dict[str, Any] = {"num_envs": 16, "num_steps": 16, "total_steps": 16 * 16 * 4, "device": "cpu"}
    return Args(game, **{**chosen, "threads": 1, "expert": f"{__name__}:{expert}", **values})


# ---- the algorithm ----


def test_what_is_learnt_is_the_own_action_where_it_is_right_and_else_one_of_the_right_ones() -> None:
    best = torch.tensor([[1, 0, 0, 1, 1], [0, 1, 1, 0, 1], [0, 1, 1, 0, 0]]) != 0  # parts of three and two choices
    action = torch.tensor([[2, 0], [2, 1], [0, 1]])
    rows = 4000
    found = chosen(
        best.repeat(1, rows, 1).view(1, -1, 5), action.repeat(rows, 1).view(1, -1, 2), [3, 2], torch.Generator()
    )
    first, second, third = found.view(rows, 3, 2).unbind(1)
    assert first.unique(dim=0).tolist() == [[0, 0]], (
        "the only right choice of the first part, the own one of the second"
    )
    assert second.unique(dim=0).tolist() == [[2, 1]], "both parts were right"
    ones = (third[:, 0] == 1).float().mean()
    assert sorted(third[:, 0].unique().tolist()) == [1, 2]
    assert abs(ones - 0.5) < 4 * 0.5 / rows**0.5
    assert third[:, 1].unique().numel() <= 2, "nothing is right for the second part, and something is drawn"


def test_half_of_the_envs_are_the_policys_alone_and_the_others_get_ever_more_help() -> None:
    run = DAgger(small(num_envs=64, num_steps=200, total_steps=12800))
    with torch.no_grad():  # a policy that always takes what is wrong
        for layer in (run.policies["agent"].actor,):
            for x in layer.parameters():
                x.zero_()
    run.play()
    own = run.rollout.action[:, :, 0, 0]
    seen = run.rollout.observation[:-1, :, 0]
    right = (own.long() == balance("agent", seen.flatten(0, 1)).argmax(-1).view(200, 64)).float().mean(0)
    assert abs(right[:32].mean() - 0.5) < 0.04, "a policy that knows nothing is right in half of its steps"
    assert right[-1] == 1, "the last env is the expert's"
    for first in (32, 48):
        want = 0.5 + 0.5 * run.help[first : first + 16].mean()
        assert abs(right[first : first + 16].mean() - want) < 0.04
    assert run.rollout.counted is not None
    assert run.rollout.counted.tolist() == [True] * 32 + [False] * 32
    alone = DAgger(small(num_envs=64, num_steps=200, total_steps=12800, beta=0.0))
    alone.play()
    assert torch.equal(
        alone.wanted["agent"] == alone.rollout.action[None, :, :, 0].transpose(0, 1),
        alone.agreed["agent"][..., None] > 0,
    )


def test_returns_are_those_of_the_policy_alone() -> None:
    run = DAgger(small(num_envs=64, num_steps=128, total_steps=64 * 128 * 3, lr=1e-9))
    told = [run.iterate()["return/agent"][0] for _ in range(3)]
    assert max(told) < 60, "the envs of the expert last 500 steps"


def test_rows_without_an_answer_teach_nothing() -> None:
    run = DAgger(small(expert="ignorant"))
    run.play()
    learner = run.learners["agent"]
    run.prepare(learner)
    left = learner.observation[..., 0] < 0
    assert torch.equal(learner.columns["taught"] > 0, left)
    (batch,) = learner.minibatches(0, 1)
    row = batch.row(*batch.forward())
    _, numbers = run.loss(row, run.hyper)
    assert torch.equal(numbers["imitation_loss"] != 0, row.taught > 0)
    assert 0.2 < float(row.taught.mean()) < 0.8


def test_nothing_is_learnt_from_agents_that_wait() -> None:
    run = DAgger(small(Nim, "take_one", config={"heap": 6}, num_steps=32))
    run.play()
    assert torch.equal(run.taught["player"].view(32, 16, 2) > 0, run.rollout.acting[:-1])


def test_an_expert_takes_legal_actions_only() -> None:
    run = DAgger(small(Nim, "take_one", config={"heap": 6}, num_steps=32))
    run.play()
    mask, action = run.rollout.mask, run.rollout.action.long()
    assert mask is not None
    acting = run.rollout.acting[:-1]
    assert mask[:-1].gather(-1, action)[acting].all()
    wanted = run.wanted["player"].view(32, 16, 2, 1).long()
    assert mask[:-1].gather(-1, wanted)[acting].all()
    assert set(wanted[acting].unique().tolist()) == {0, 2}


@pytest.mark.rotates
@pytest.mark.parametrize("executor", ["plain", "fast"])
def test_policies_learn_what_the_expert_does(executor: str) -> None:
    for seed in (1, 2, 3):
        args = small(num_envs=32, num_steps=32, total_steps=32 * 32 * 60, lr=3e-3, seed=seed, executor=executor)
        result = train(DAgger, args, quiet=True)
        assert result.rows[0]["agent/agreement"] < 0.65
        assert result.rows[-1]["agent/agreement"] > 0.85
        returns = evaluate("CartPole-v1", result.policies, 32, seed=9, greedy=True).returns["agent"]
        assert returns.mean() > 400


def test_a_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole, half = small(total_steps=16 * 16 * 6), small(total_steps=16 * 16 * 6)
    first = DAgger(whole)
    for _ in range(6):
        first.iterate()
    again = DAgger(half)
    for _ in range(3):
        again.iterate()
    again.save(tmp_path / "checkpoint.safetensors", seconds=0.0)
    third = DAgger(half)
    third.restore(tmp_path / "checkpoint.safetensors")
    for _ in range(3):
        third.iterate()
    assert torch.equal(first.policies["agent"].flat, third.policies["agent"].flat)


def test_ppo_goes_on_from_there(tmp_path: Path) -> None:
    train(DAgger, small(out=str(tmp_path)), quiet=True)
    file = str(tmp_path / "checkpoint.safetensors")
    args = ppo.Args("CartPole-v1", num_envs=16, num_steps=16, total_steps=256, threads=1, load={"agent": file})
    train(ppo.PPO, args, quiet=True)


def test_the_command_line_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["train", "CartPole-v1", "--algorithm", "dagger", "--expert", f"{__name__}:balance", "--out", str(tmp_path)]
    found = CliRunner().invoke(cli.app, [*words, "--total-steps", "8192", "--num-envs", "16", "--device", "cpu"])
    assert found.exit_code == 0, found.output
    assert json.loads((tmp_path / "run.json").read_text())["algorithm"] == "dagger"


@pytest.mark.parametrize(
    ("of", "values", "message"),
    [
        ("CartPole-v1", {"expert": ""}, "DAgger needs an expert: give --expert MODULE:FUNCTION."),
        ("CartPole-v1", {"expert": "nothing:here"}, "there is no expert 'nothing:here': No module named 'nothing'"),
        ("CartPole-v1", {"expert": "math"}, "an expert is given as module:function, not as 'math'."),
        ("CartPole-v1", {"beta": 1.5}, "beta must lie between 0 and 1, not 1.5."),
        ("CartPole-v1", {"epochs": 0}, "epochs must be positive, not 0."),
        ("Pendulum-v1", {}, "DAgger is for actions that are choices, but those of 'agent' are Box"),
        ("TicTacToe-v0", {"pool": 2}, "DAgger has no pool of past selves: take pool=0."),
    ],
)
def test_what_cannot_work_is_refused(of: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        DAgger(dataclasses.replace(small(of), **values))


def test_an_expert_that_answers_something_else_is_told_what_is_wanted() -> None:
    run = DAgger(small(expert="wide"))
    with pytest.raises(ValueError, match=r"test_dagger:wide must return shape \(16, 2\), not \(16, 3\)\."):
        run.iterate()


# ---- the expert for Rubik's cube ----


@pytest.mark.rotates
def test_its_phases_have_the_positions_and_the_longest_ways_that_are_known() -> None:
    """As https://www.jaapsch.net/puzzles/thistle.htm has them."""
    positions = [2048, 1082565, 29400, 663552]
    found = [np.count_nonzero(phase.best) for phase in thistlethwaite.phases()]
    # of the third phase each position stands for 96 arrangements of corners that half turns make of each other
    assert found == [positions[0] - 1, positions[1] - 1, 96 * (positions[2] - 1), positions[3] - 1]
    assert [phase.longest for phase in thistlethwaite.phases()] == [7, 10, 13, 15]


@pytest.mark.rotates
def test_it_solves_every_cube_in_at_most_45_turns() -> None:
    """By the rules of the game, which `tests/integrations/jumanji` compares with Jumanji's."""
    cubes, generator = 2000, torch.Generator().manual_seed(1)
    env = gpuzoo.make_vec("RubiksCube-v0", num_envs=cubes, device="cpu", output="torch", autoreset_mode="same_step")
    observation, _ = env.reset(seed=5)
    turns = np.zeros(cubes, int)
    for turn in range(1, 46):
        best = torch.from_numpy(thistlethwaite.best_moves("agent", observation))
        assert best.any(1).all(), "a cube that is not solved"
        observation, reward, *_ = env.step(torch.multinomial(best.float(), 1, generator=generator)[:, 0])
        turns[(turns == 0) & (np.asarray(reward) == 1)] = turn
    assert turns.all()
    assert 28 < turns.mean() < 36  # about 31 in the literature
    env.close()


@pytest.mark.rotates
def test_a_solved_cube_has_no_best_move() -> None:
    solved = (np.arange(54) // 9).reshape(1, 6, 9)
    assert not thistlethwaite.best_moves("agent", solved).any()


def test_another_cube_is_refused() -> None:
    with pytest.raises(ValueError, match=r"is for cubes of size 3, .*, not for shape \(1, 6, 4\)"):
        thistlethwaite.best_moves("agent", np.zeros((1, 6, 4), np.int8))


@pytest.mark.rotates
def test_one_turn_before_the_end_that_turn_is_the_best() -> None:
    """A quarter turn of front breaks the first phase, one of the right the second, and one of the top the third."""
    env = gpuzoo.make_vec("RubiksCube-v0", num_envs=18, device="cpu", output="torch", num_scrambles_on_reset=0)
    env.reset(seed=1)
    observation, *_ = env.step(torch.arange(18))
    best = torch.from_numpy(thistlethwaite.best_moves("agent", observation))
    inverse = torch.tensor([3 * (k // 3) + (1, 0, 2)[k % 3] for k in range(18)])
    assert best[torch.arange(18), inverse].all()
    half = torch.arange(18) % 3 == 2
    assert (best[half].sum(1) == 1).all(), "of a half turn nothing else is as short"
    env.close()


# ---- the expert for sliding tiles ----


@pytest.mark.parametrize(("size", "most"), [(2, 6), (3, 55), (4, 150), (5, 280)])
def test_it_solves_every_puzzle(size: int, most: int) -> None:
    """By the rules of the game, which `tests/integrations/jumanji` compares with Jumanji's."""
    puzzles, generator = 500, torch.Generator().manual_seed(1)
    settings: dict[str, Any] = {"grid_size": size, "num_random_moves": 2001}  # an odd number of moves solves none
    env = gpuzoo.make_vec(
        "SlidingTilePuzzle-v0", num_envs=puzzles, device="cpu", output="torch", autoreset_mode="same_step", **settings
    )
    seen, _ = env.reset(seed=5)
    moves = np.zeros(puzzles, int)
    for move in range(1, most + 1):
        best = torch.from_numpy(tile_by_tile.best_moves("agent", seen["observation"]))
        assert best.any(1).all(), "a puzzle that is not solved"
        assert (seen["action_mask"][best] == 1).all(), "a move that leaves the board"
        seen, _, terminated, *_ = env.step(torch.multinomial(best.float(), 1, generator=generator)[:, 0])
        moves[(moves == 0) & np.asarray(terminated)] = move
    assert moves.all()
    env.close()


def test_four_cells_have_the_positions_and_the_longest_way_that_are_known() -> None:
    """Three tiles have 12 positions, of which the farthest is solved in six moves: the rotations of a cycle."""
    for size in (2, 5):
        *_, last = tile_by_tile.goals(size)
        assert np.count_nonzero(last.best) == 12 - 1
    puzzle = np.array([[[0, 3], [2, 1]]])
    for left in range(6, 0, -1):
        ways = tile_by_tile.best_moves("agent", puzzle)[0]
        assert ways.sum() == (2 if left == 6 else 1)
        (row, column), (down, right) = np.argwhere(puzzle[0] == 0)[0], tile_by_tile.WAYS[int(ways.argmax())]
        puzzle[0, row, column], puzzle[0, row + down, column + right] = puzzle[0, row + down, column + right], 0
    assert puzzle.tolist() == [[[1, 2], [3, 0]]]


def test_boards_that_are_solved_or_cannot_be_have_no_best_move() -> None:
    solved = np.roll(np.arange(25), -1).reshape(1, 5, 5)
    assert not tile_by_tile.best_moves("agent", solved).any()
    unsolvable = solved.copy()
    unsolvable[0, 3, 3:] = 20, 19
    assert not tile_by_tile.best_moves("agent", unsolvable).any()


@pytest.mark.parametrize("shape", [(1, 4, 5), (1, 9, 9), (1, 1, 1)])
def test_other_boards_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"is for square boards of 2 to 8 rows, not for shape"):
        tile_by_tile.best_moves("agent", np.zeros(shape, np.int32))
