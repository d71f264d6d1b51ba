"""Self-play against past selves: who plays, what is learnt from, and the ratings."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toys.glide import Glide
from toys.herd import Herd
from toys.nim import Nim

from baselines.ppo import PPO, Args
from baselines.report.tournament import bradley_terry, tournament
from baselines.run import train
from baselines.train import selfplay
from baselines.train.networks import Policy
from baselines.train.selfplay import SelfPlay

HEAP = {"heap": 6}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def small(game: Any = Nim, **values: Any) -> Args:
    chosen: dict[str, Any] = {
        "num_envs": 16, "num_steps": 16, "total_steps": 16 * 16 * 100, "device": "cpu", "threads": 1, "minibatches": 2,
        "pool": 2, "pool_every": 2, "config": HEAP if game is Nim else {},
    }  # fmt: skip
    return Args(game, **(chosen | values))


def pool_of(ppo: PPO) -> SelfPlay:
    assert ppo.selfplay is not None
    return ppo.selfplay


def seats_of_past_selves(envs: int) -> list[tuple[int, int]]:
    """Env and seat of each, as the module promises."""
    return [(env, env % 2) for env in range(envs // 2, envs)]


# ---- who plays ----


@pytest.mark.parametrize("memory", [0, 4])
def test_past_selves_play_with_their_own_weights(memory: int) -> None:
    """Member ``k`` of the pool always takes ``k + 1`` sticks if there are as many; the learner never takes three."""
    ppo = PPO(small(memory=memory, num_envs=24, pool=3))
    pool, rollout = pool_of(ppo), ppo.rollout
    with torch.no_grad():
        pool.policy.flat.zero_()
        pool.policy.actor.biases[-1][:, 0, :] = 50 * torch.eye(3)
        ppo.policies["player"].flat.zero_()
        ppo.policies["player"].actor.biases[-1][:, 0, 2] = -50
    ppo.play()
    left = rollout.observation[:-1, :, 0, 0]
    moves = {(env, seat): rollout.action[:, env, seat, 0] for env in range(24) for seat in (0, 1)}
    theirs = seats_of_past_selves(24)
    for k in range(3):
        for env, seat in theirs[4 * k : 4 * k + 4]:
            to_move = (rollout.observation[:-1, env, seat, 1] == 1) & (left[:, env] > k)
            assert to_move.any()
            assert (moves[env, seat][to_move] == k).all()
    for env, seat in set(moves) - set(theirs):
        free = rollout.acting[:-1, env, seat] & (left[:, env] > 2)
        assert free.any()
        assert (moves[env, seat][free] < 2).all()
    ppo.close()


def test_the_pool_holds_the_newest() -> None:
    """One that enters before the pool is full takes all free places, and then the oldest one's."""
    ppo = PPO(small(num_envs=24, pool=3, normalize_observations=True))
    pool = pool_of(ppo)
    learner, seen = ppo.policies["player"], []
    for iteration in range(1, 13):
        learner.flat.detach().fill_(iteration)
        learner.scale.mean.fill_(iteration)
        pool.after(iteration)
        if iteration % 2 == 0:
            seen.append(pool.policy.scale.mean[:, 0].int().tolist())
    assert (pool.policy.flat == pool.policy.scale.mean[:, :1]).all()
    assert seen == [[0, 2, 2], [0, 2, 4], [6, 2, 4], [6, 8, 4], [6, 8, 10], [12, 8, 10]]
    ppo.close()


def test_what_past_selves_remember_ends_with_the_episode() -> None:
    ppo = PPO(small(memory=4, num_steps=1))
    pool, rollout = pool_of(ppo), ppo.rollout
    compared = 0
    for _ in range(12):
        before = pool.memory.clone()
        ppo.play()
        begins = rollout.begins[0, 0, 8:].view(2, 4)
        seen = torch.stack([rollout.observation[0, env, seat] for env, seat in seats_of_past_selves(16)]).view(2, 4, 2)
        fresh = torch.where(begins.bool().unsqueeze(-1), 0.0, before)
        with torch.no_grad():
            want = pool.policy.act(seen.unsqueeze(0), fresh)[1]
        torch.testing.assert_close(pool.memory, want)
        compared += int((begins.bool() & (before != 0).any(-1)).sum())
    assert compared > 0
    ppo.close()


# ---- what is learnt from ----


@pytest.mark.parametrize(
    "values", [{}, {"memory": 4}, {"normalize_observations": True}], ids=["plain", "memory", "scale"]
)
def test_nothing_is_learnt_from_the_moves_of_past_selves(values: dict[str, Any]) -> None:
    """Whatever stands in their rows after a rollout, the learner becomes the same, bit by bit."""
    found = []
    for spoilt in (False, True):
        ppo = PPO(small(**values))
        rollout, player = ppo.rollout, ppo.rollout.players["player"]
        ppo.play()
        for env, seat in seats_of_past_selves(16):
            assert not rollout.acting[:, env, seat].any()
            if spoilt:
                player.log_prob[:, 0, 2 * env + seat] = -7
                player.value[:, 0, 2 * env + seat] = 1e3
                player.memory[:-1, 0, 2 * env + seat] = 3
                rollout.observation[:, env, seat] = 99
                rollout.action[:, env, seat] = 1
                rollout.reward[:, env, seat] = 5
        before = player.policy.flat.clone()
        ppo.update()
        assert not torch.equal(before, player.policy.flat)
        found.append({k: v.clone() for k, v in player.policy.state_dict().items()})
        ppo.close()
    assert all(torch.equal(found[0][k], found[1][k]) for k in found[0])


def test_targets_of_the_learners_moves() -> None:
    """With gamma 1 and whole returns, a move is worth what the game brought, though the past self's reply ends it."""
    ppo = PPO(small(gamma=1.0, gae_lambda=1.0, num_steps=64))
    rollout, learner = ppo.rollout, ppo.learners["player"]
    ppo.play()
    ppo.prepare(learner)
    target = learner.packed[..., 1].view(64, 16, 2)
    replies = 0
    for env, theirs in seats_of_past_selves(16):
        ours, end = 1 - theirs, None
        for t in reversed(range(64)):
            if rollout.ended[t, env]:
                end = t
            moved = bool(rollout.observation[t, env, ours, 1])
            assert bool(rollout.acting[t, env, ours]) == moved
            if moved and end is not None:
                # Up to the rounding of (target - value) + value, both near 1.
                assert abs(target[t, env, ours] - rollout.reward[end, env, ours]) < 1e-6
                replies += end == t + 1 and bool(rollout.reward[end, env, ours] == -1)
        assert learner.valid.view(64, 16, 2)[:, env, theirs].sum() == 0
    assert replies > 10
    ppo.close()


def test_nim_is_learnt_against_past_selves(tmp_path: Path) -> None:
    """With perfect play, who leaves a multiple of four sticks wins."""
    args = small(num_envs=64, num_steps=32, total_steps=64 * 32 * 40, lr=5e-3, ent_coef=0.2, gamma=1.0, pool=4,
                 pool_every=4, minibatches=4, normalize_observations=True, out=str(tmp_path))  # fmt: skip
    result = train(PPO, args, quiet=True)
    policy = result.policies["player"]
    seen = torch.tensor([[left, 1] for left in range(1, 10) if left % 4])
    mask = torch.tensor([[k < left for k in range(3)] for left, _ in seen.tolist()])
    with torch.no_grad():
        taken = policy.actions.greedy(policy.act(seen.unsqueeze(0))[0], mask.unsqueeze(0))[0, :, 0] + 1
    assert ((seen[:, 0] - taken) % 4 == 0).all(), list(zip(seen[:, 0].tolist(), taken.tolist(), strict=True))

    assert all(np.isfinite([row["elo"], row["win_rate"]]).all() for row in result.rows)
    assert result.rows[-1]["elo"] > 50
    assert (tmp_path / "elo.png").stat().st_size > 5000
    with (tmp_path / "elo.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["iteration"] for row in rows] == [*map(str, range(0, 41, 4)), ""]
    assert rows[-1]["player"] == "random"
    assert float(rows[-1]["elo"]) == 0
    assert all(sum(int(row[k]) for k in ("wins", "draws", "losses")) == 64 * 11 for row in rows)
    # Perfect play is 400 points above random play, which is sometimes lucky. After 704 games with a chance near 1/4 or
    # 3/4, the deviation of a rating is 174 / sqrt(704 * 3/16) = 15 points, and that of a difference 21.
    assert float(rows[-2]["elo"]) > float(rows[0]["elo"]) + 250


@pytest.mark.parametrize("critic", ["separate", "shared", "central"])
def test_connect_four_runs_with_a_pool(critic: str) -> None:
    args = small("ConnectFour-v0", num_steps=32, total_steps=16 * 32 * 3, pool_every=1, channels=(8,), epochs=1,
                 critic=critic)  # fmt: skip
    result = train(PPO, args, quiet=True)
    assert [row["iteration"] for row in result.rows] == [1, 2, 3]
    assert all("elo" in row for row in result.rows)


# ---- ratings ----


def test_ratings_follow_the_results() -> None:
    ppo = PPO(small(pool_every=100))
    pool = pool_of(ppo)
    pool.elo = 100.0
    pool.ratings.copy_(torch.tensor([100.0, -300.0]))
    pool.began_before[0, 1] = True  # env 9
    ended, returns = ppo.rollout.ended, ppo.rollout.final_return
    ended.zero_()
    for t, env, first, second in [
        (0, 0, 1, -1),  # a game of the learner against itself
        (2, 8, -1, 1),  # env 8: the learner has the second seat, and wins
        (5, 8, 0, 0),
        (1, 9, -1, 1),  # env 9: the learner has the first seat; a newcomer took this game over
        (3, 9, -1, 1),
        (4, 9, 1, -1),
        (7, 13, 1, -1),  # against the second past self
    ]:
        ended[t, env] = True
        returns[t, env] = torch.tensor([first, second])
    log = pool.after(1)
    assert log["win_rate"] == (1 + 0.5 + 0 + 1 + 1) / 5
    gains = [32 * (2.5 - 4 * 0.5), 32 * (1 - 10 / 11)]
    assert log["elo"] == pytest.approx(100 + sum(gains))
    assert pool.ratings.tolist() == pytest.approx([100 - gains[0], -300 - gains[1]])
    assert not pool.began_before.any()

    ended.zero_()
    ended[:4, 12:] = True  # 16 games that count for 8, all of them drawn
    returns.zero_()
    pool.elo, before = 0.0, pool.ratings[1].item()
    log = pool.after(2)
    assert log == {"elo": pytest.approx(32 / 2 * 16 * (0.5 - 1 / (1 + 10 ** (before / 400)))), "win_rate": 0.5}

    ended.zero_()
    log = pool.after(100)
    assert np.isnan(log["win_rate"])
    assert pool.ratings.tolist()[1] == log["elo"]  # a newcomer inherits
    assert pool.began_before.tolist() == [[False] * 4, [True] * 4]
    ppo.close()


def test_snapshots_are_spread_over_the_run() -> None:
    ppo = PPO(small(hidden=(2,)))
    pool = pool_of(ppo)
    for iteration in range(1, 201):
        pool.after(iteration)
        kept = [n for n, _ in pool.past]
        assert len(kept) <= selfplay.SNAPSHOTS
        assert len({b - a for a, b in itertools.pairwise(kept)}) <= 1
    assert kept == list(range(0, 201, 16))
    ppo.close()


def test_bradley_terry_recovers_strengths() -> None:
    elo = np.array([0.0, 120.0, 200.0, 450.0, 330.0])
    truth = 10 ** (elo / 400)
    truth /= np.exp(np.log(truth).mean())
    chance = truth[:, None] / (truth[:, None] + truth)
    games = np.array([[0 if a == b else 40 + 20 * (a + b) for b in range(5)] for a in range(5)])
    # Of the expected wins the truth is the maximum itself; the iteration stops at changes of 1e-10.
    np.testing.assert_allclose(bradley_terry(games * chance), truth, rtol=1e-8)

    rng = np.random.default_rng(1)
    wins = np.zeros((5, 5))
    for a in range(5):
        for b in range(a):
            wins[a, b] = rng.binomial(games[a, b], chance[a, b])
            wins[b, a] = games[a, b] - wins[a, b]
    # The deviation of the estimate is the inverse of Fisher's information about log-strengths that sum to zero.
    weight = games * chance * (1 - chance)
    deviation = np.sqrt(np.diag(np.linalg.pinv(np.diag(weight.sum(1)) - weight)))
    error = np.abs(np.log(bradley_terry(wins) / truth))
    assert (error < 4 * deviation).all()
    assert deviation.max() < 0.2  # 35 Elo: far less than what lies between the players


def test_bradley_terry_refuses_what_has_no_maximum() -> None:
    wins = np.array([[0, 3, 4], [2, 0, 5], [0, 0, 0]])
    with pytest.raises(ValueError, match=r"some players won no point against the others"):
        bradley_terry(wins)
    with pytest.raises(ValueError, match=r"games must be even"):
        tournament(Nim, perfect(), games=3)


# ---- tournaments ----


def perfect() -> Policy:
    """Plays Nim without a fault, and any legal move where all of them lose."""
    env, cfg = Nim(), Nim.Config(**HEAP)
    policy = Policy(env.observation_space(cfg, "player"), env.action_space(cfg, "player"), hidden=(10,))
    good = torch.tensor([[40.0 * ((left - taken) % 4 == 0) for taken in (1, 2, 3)] for left in range(11)])
    with torch.no_grad():  # unit k is -1 below k sticks, and 1 from there on
        policy.flat.zero_()
        policy.actor.weights[0][0, 0] = 100.0
        policy.actor.biases[0][0, 0] = -100.0 * (torch.arange(1, 11) - 0.5)
        steps = (good[1:] - good[:-1]) / 2
        policy.actor.weights[1][0] = steps
        policy.actor.biases[1][0, 0] = good[0] + steps.sum(0)
    return policy


@cache
def chance(left: int, to_move: bool) -> float:
    """That perfect play wins against random play."""
    if left == 0:
        return float(not to_move)
    legal = range(1, min(left, 3) + 1)
    good = [n for n in legal if (left - n) % 4 == 0] if to_move else []
    moves = good or legal
    return float(np.mean([chance(left - n, not to_move) for n in moves]))


def test_a_tournament_rates_perfect_and_random_play() -> None:
    idle = perfect().stacked([{k: torch.zeros_like(v) for k, v in perfect().state_dict().items()}])
    both = perfect().stacked([perfect().state_dict(), idle.state_dict()])
    games = 2000
    table = tournament(Nim, both, games=games, config=HEAP, seed=3)
    assert table.names == ["0", "1", "random"]
    for seen in (table.wins[0, 1], table.wins[0, 2]):  # the second member plays randomly, too
        p = np.mean([chance(left, to_move) for left in (6, 7, 8, 9) for to_move in (True, False)])
        deviation = np.sqrt(p * (1 - p) / games)
        assert abs(seen / games - p) < 4 * deviation
    assert abs(table.wins[1, 2] / games - 0.5) < 4 * np.sqrt(0.25 / games)
    assert (table.wins + table.wins.T == games * (1 - np.eye(3))).all()
    assert not table.draws.any()
    # More is known about the difference than from the games of this pair: their deviation is an upper bound.
    expected = 400 * np.log10(p / (1 - p))
    bound = 4 * 400 / np.log(10) * deviation / (p * (1 - p))
    assert expected - bound > 200
    assert abs(table.elo[0] - expected) < bound
    assert abs(table.elo[1]) < 4 * 400 / np.log(10) / np.sqrt(0.25 * games)
    assert table.elo[2] == 0
    again = tournament(Nim, both, games=games, config=HEAP, seed=3)
    np.testing.assert_array_equal(again.wins, table.wins)


def test_games_without_end_are_drawn() -> None:
    table = tournament(Nim, perfect(), games=4, config=HEAP, max_steps=1)
    assert table.draws.tolist() == [[0, 4], [4, 0]]
    assert table.elo.tolist() == [0, 0]


# ---- runs ----


@pytest.mark.parametrize("memory", [0, 4])
def test_a_resumed_run_goes_on_to_the_same_bits(tmp_path: Path, memory: int) -> None:
    args = small(memory=memory, normalize_observations=True)
    whole = PPO(args)
    for _ in range(3):
        whole.iterate()
    whole.save(tmp_path / "there.safetensors")
    resumed = PPO(args)
    resumed.restore(tmp_path / "there.safetensors")
    before, after = pool_of(whole).state(), pool_of(resumed).state()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[k], after[k]) for k in before)
    assert (before["memory"] != 0).any() == (memory > 0)
    for _ in range(3):
        one, other = whole.iterate(), resumed.iterate()
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[k], other[k], equal_nan=True) for k in one)
    assert torch.equal(whole.policies["player"].flat, resumed.policies["player"].flat)
    before, after = pool_of(whole).state(), pool_of(resumed).state()
    assert all(torch.equal(before[k], after[k]) for k in before)
    assert before["iterations"].tolist() == [0, 2, 4, 6]
    tables = [tournament(Nim, *pool_of(ppo).players(6), games=8, config=HEAP) for ppo in (whole, resumed)]
    assert tables[0].names == [f"iteration {n}" for n in (0, 2, 4, 6)] + ["random"]
    np.testing.assert_array_equal(tables[0].wins, tables[1].wins)
    whole.close()
    resumed.close()


@pytest.mark.parametrize(
    ("toy", "values", "message"),
    [
        (Glide, {}, r"a pool of past selves is for turn-based games: Glide-v0 is none; take pool=0\."),
        (Herd, {}, r"for turn-based games: Herd-v0 is none"),
        (Nim, {"population": 2}, r"for population=1: this is one of 2"),
        (Nim, {"freeze": ("player",)}, r"for a policy that learns: it is frozen"),
        (Nim, {"pool": 3}, r"num_envs=16 must be a multiple of 4 \* pool = 12"),
        (Nim, {"pool_every": 0}, r"pool_every must be positive, not 0"),
    ],
)
def test_messages_come_before_the_compiler(
    toy: Any, values: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("baselines.train.trainer.Simulator", lambda *a, **k: pytest.fail("an env was made"))
    with pytest.raises(ValueError, match=message):
        PPO(small(toy, **values))


class Three(Nim):
    id = "ThreeNim-v0"

    def agents(self, cfg: Any) -> dict[str, int]:
        return {"player": 3}


class Sides(Nim):
    id = "SidesNim-v0"

    def agents(self, cfg: Any) -> dict[str, int]:
        return {"left": 1, "right": 1}


def test_two_seats_and_one_policy() -> None:
    with pytest.raises(ValueError, match=r"for games of two agents: ThreeNim-v0 has 3"):
        small(Three).check()
    with pytest.raises(ValueError, match=r"for one policy that plays both seats: here are 2"):
        small(Sides).check()
    small(Sides, policies={"left": "both", "right": "both"}).check()
