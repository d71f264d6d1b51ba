"""AlphaZero: symmetries, targets, and a run of a few seconds. tests/test_search.py is about the search."""

from __future__ import annotations

import csv
import dataclasses
import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import gpuzoo  # noqa: E402
from baselines import alphazero  # noqa: E402
from baselines.alphazero import Args, Run  # noqa: E402
from baselines.report import checkpoint, league, pretrained  # noqa: E402
from baselines.report.league import lines_of, standings  # noqa: E402
from baselines.report.searchers import match, searcher  # noqa: E402
from baselines.train.replay import SYMMETRIES, turned  # noqa: E402
from baselines.train.searched_play import SelfPlay, searched  # noqa: E402
from gpuzoo.search import Result  # noqa: E402
from gpuzoo.tools import searching  # noqa: E402

TINY = {"num_envs": 16, "num_steps": 4, "simulations": 4, "batch": 32, "channels": 8, "blocks": 1, "replay": 256,
        "games": 4, "opponent": 10}  # fmt: skip


def played(game, moves, **config):
    """The observation of the player to move after some moves, (1, rows, columns, planes)."""
    envs = gpuzoo.Simulator(gpuzoo.get(game), 1, device="cpu", autoreset_mode="disabled", **config)
    envs.reset(seed=0)
    for move in moves:
        envs.arrays["action"][...] = move
        envs.step()
    shape = next(iter(envs.layout.observation_spaces.values())).shape
    mover = int(envs.arrays[envs.env.turn][0])
    return torch.from_numpy(envs.arrays["observation"][0, mover].reshape(1, *shape).copy())


def board_moves(rng, size, count):
    return rng.permutation(size * size)[:count].tolist()


@pytest.mark.parametrize(
    ("name", "symmetry", "config", "moves"),
    [
        ("ConnectFour-v0", "mirror", {}, [3, 3, 2, 0, 6, 1]),
        ("Go-v0", "square", {"size": 5}, board_moves(np.random.default_rng(0), 5, 4)),
        ("TicTacToe-v0", "square", {}, board_moves(np.random.default_rng(0), 3, 4)),
        ("DotsAndBoxes-v0", "square", {"num_rows": 3, "num_cols": 3}, [0, 5, 14, 20, 23]),
        ("DotsAndBoxes-v0", "mirror", {"num_rows": 3, "num_cols": 2}, [0, 5, 9, 12, 16]),
    ],
)
def test_symmetries_of_games(name, symmetry, config, moves):
    """A game whose moves are all turned is seen turned."""
    args = Args(name, config=config, symmetry=symmetry, device="cpu")
    found, ways = alphazero.symmetry_of(args), SYMMETRIES[symmetry]
    actions = int(next(iter(alphazero.layout_of(args).action_spaces.values())).n)
    seen = played(name, moves, **config).repeat(len(ways), 1, 1, 1)
    policies = [torch.eye(actions)[move].repeat(len(ways), 1) for move in moves]
    again = [found.varied(seen, policy) for policy in policies]
    for k in range(len(ways)):
        there = [int(policy[k].argmax()) for _, policy in again]
        assert torch.equal(again[0][0][k], played(name, there, **config)[0])
    if name == "Go-v0":
        passing = found.varied(seen, torch.eye(26)[25].repeat(len(ways), 1))[1]
        assert (passing.argmax(1) == 25).all()


@pytest.mark.parametrize(
    ("name", "symmetry", "config", "told"),
    [
        ("Chess-v0", "mirror", {}, "symmetry 'mirror' is for games with at most one action on each cell"),
        ("KuhnPoker-v0", "mirror", {}, "symmetry 'mirror' is for games with at most one action on each cell"),
        ("ConnectFour-v0", "turn", {}, "symmetry 'turn' does not fit this game"),
        ("DotsAndBoxes-v0", "square", {"num_rows": 3, "num_cols": 2}, "symmetry 'square' does not fit this game"),
    ],
)
def test_a_symmetry_that_a_game_does_not_have_is_refused(name, symmetry, config, told):
    with pytest.raises(ValueError, match=told):
        Run(Args(name, config=config, symmetry=symmetry, device="cpu", **TINY))


def test_turned():
    board = torch.arange(6).view(1, 2, 3)
    assert turned(board, 0, True).tolist() == [[[2, 1, 0], [5, 4, 3]]]
    assert turned(board, 2, False).tolist() == [[[5, 4, 3], [2, 1, 0]]]


def test_parts_of_a_minibatch_that_is_no_multiple():
    seen, policy = torch.rand(11, 5, 5, 2), torch.rand(11, 26)
    found = alphazero.symmetry_of(Args("Go-v0", config={"size": 5}, symmetry="square", device="cpu"))
    found = found.varied(seen, policy)
    assert found[0].shape == seen.shape
    torch.testing.assert_close(found[1].sum(1), policy.sum(1))


def test_the_value_that_a_search_found():
    policy, visits = torch.tensor([[0.5, 0.25, 0.25]]), torch.tensor([[3, 1, 0]])
    found = Result(torch.tensor([0]), policy, torch.zeros(1), visits, torch.tensor([[0.4, -0.2, 0.0]]))
    torch.testing.assert_close(searched(found), torch.tensor([0.2]))


@pytest.mark.parametrize("td_lambda", [0.0, 1.0])
def test_targets(td_lambda):
    """With 1 all positions before an end have its result; with 0 those one move before it alone."""
    args = Args(
        "TicTacToe-v0", device="cpu", td_lambda=td_lambda, **TINY | {"num_envs": 64, "num_steps": 12, "replay": 768}
    )
    self_play = SelfPlay(args)
    kept = []

    class Kept:
        def add(self, observation, policy, value):
            kept.append(value.clone())

    def evaluate(observation, legal):
        return torch.zeros(legal.shape), torch.zeros(len(legal))

    self_play.play(evaluate, Kept())
    first = torch.stack(kept[::-1])[:5]  # no game of tic-tac-toe ends before its fifth move
    assert (first.abs() <= 1).all()
    whole = (first.abs() == 1) | (first == 0)
    assert bool(whole.all()) == (td_lambda == 1.0)


def test_openings_are_varied():
    """Half of the first moves are random, and those later than the opening are the searches'."""
    self_play = SelfPlay(Args("ConnectFour-v0", device="cpu", opening=1, **TINY | {"num_envs": 512, "replay": 2048}))
    middle = torch.full((512,), 3)
    action, random = self_play.vary(middle)
    assert 200 < int(random.sum()) < 312
    assert torch.equal(action[~random], middle[~random])
    assert action[random].unique().tolist() == list(range(7))
    self_play.arrays["action"].copy_(action.view(-1, 1, 1).expand_as(self_play.arrays["action"]))
    self_play.envs.step()
    action, random = self_play.vary(middle)
    assert torch.equal(action, middle)
    assert not random.any()


@pytest.mark.parametrize("random", [False, True])
def test_what_follows_a_random_move_does_not_count_for_the_position_before_it(monkeypatch, random):
    args = Args("ConnectFour-v0", device="cpu", **TINY | {"num_steps": 2})
    self_play, kept = SelfPlay(args), []
    q, uniform = torch.full((16, 7), 0.5), torch.full((16, 7), 1 / 7)
    found = Result(torch.zeros(16, dtype=torch.int64), uniform, torch.zeros(16), torch.ones(16, 7), q)
    monkeypatch.setattr(self_play.search, "run", lambda envs, evaluate: found)
    monkeypatch.setattr(self_play, "vary", lambda action: (action, torch.full((16,), random)))

    class Kept:
        def add(self, observation, policy, value):
            kept.append(value.clone())

    self_play.play(lambda observation, legal: (uniform, torch.full((16,), 0.25)), Kept())
    expected = [0.5, 0.5] if random else [-0.25, 0.25]  # the last position is worth 0.25 to who moves next
    for value, target in zip(kept, expected, strict=True):
        torch.testing.assert_close(value, torch.full((16,), target))


@pytest.mark.parametrize("options", [{}, {"bfloat16": 1, "symmetry": "mirror", "td_lambda": 0.8}, {"rule": "puct"}])
def test_a_run(tmp_path, options):
    args = Args("ConnectFour-v0", minutes=0.02, device="cpu", out=str(tmp_path), **TINY | options)
    rows = []
    network = alphazero.train(args, log=rows.append)
    assert rows
    assert rows[-1]["cpu_minutes"] > 0
    again, about = alphazero.load(tmp_path / "network.safetensors")
    assert about == args
    for name, tensor in network.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor)
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == len(rows)
    assert json.loads((tmp_path / "log.jsonl").read_text().splitlines()[0])["moves"] > 0


def test_the_league_of_a_run(tmp_path):
    """Its networks play each other, UCT and random play, which has rating 0."""
    args = Args("TicTacToe-v0", minutes=0.02, evaluate_every=0.005, device="cpu", out=str(tmp_path), **TINY)
    alphazero.train(args, log=lambda metrics: None)
    with (tmp_path / "elo.csv").open() as file:
        rows = list(csv.DictReader(file))
    *past_selves, strong, weak, random = rows
    assert [row["player"] for row in (strong, weak, random)] == ["UCT, 10 playouts", "UCT, 1 playouts", "random"]
    assert past_selves, "how many depends on the minutes that a slow machine took"
    assert all(row["player"] == f"after {row['minutes']} minutes" for row in past_selves)
    assert rows[-1]["elo"] == "0.0"
    assert all(sum(int(row[k]) for k in ("wins", "draws", "losses")) == (len(rows) - 1) * TINY["games"] for row in rows)
    assert (tmp_path / "elo.png").stat().st_size > 5000


def test_ratings_of_a_league(monkeypatch):
    """Who searches more is better; of many past selves some play."""
    monkeypatch.setattr(league, "PAST_SELVES", 3)
    past_selves = {age: searcher("uct", 8 + 2 * age, None, 1) for age in range(20)}
    table = standings("ConnectFour-v0", past_selves, 100, 1, games=20)
    assert table.iterations == [0, 10, 19, None, None, None]
    assert table.names[-3:] == ["UCT, 100 playouts", "UCT, 10 playouts", "random"]
    elo = dict(zip(table.names, table.elo, strict=True))
    assert elo["UCT, 100 playouts"] > elo["UCT, 10 playouts"] + 100
    assert elo["after 19 minutes"] > elo["after 0 minutes"] + 20
    assert min(elo, key=elo.get) == "random"
    lines = list(lines_of(table))
    assert lines[0].strip().startswith("UCT, 100 playouts  Elo ")
    assert lines[-1].strip().startswith("random  Elo     0")
    assert lines[0].endswith("of 100")


def test_a_run_goes_on_where_it_was_saved(tmp_path):
    args = Args("Backgammon-v0", minutes=60, device="cpu", **TINY)
    whole = Run(args)
    whole.phase()
    whole.save(tmp_path / "run.safetensors")
    kept = whole.minutes
    whole.minutes = 1.0  # learning rates follow the clock
    metrics = [whole.phase()]
    again = Run(args)
    again.restore(tmp_path / "run.safetensors")
    assert again.minutes == kept > 0
    again.minutes = 1.0
    metrics.append(again.phase())
    for name in ("moves", "games", "search_entropy", "policy_loss", "value_loss"):
        assert metrics[0][name] == metrics[1][name]
    for name, tensor in whole.network.state_dict().items():
        assert torch.equal(again.network.state_dict()[name], tensor)


def test_a_run_in_a_folder_goes_on(tmp_path):
    args = Args("ConnectFour-v0", minutes=0.02, device="cpu", out=str(tmp_path), **TINY)
    rows = []
    alphazero.train(args, log=rows.append)
    longer = dataclasses.replace(args, minutes=0.04, resume=1)
    alphazero.train(longer, log=rows.append)
    assert [row["moves"] for row in rows] == sorted({row["moves"] for row in rows})
    assert rows[-1]["minutes"] >= 0.04
    with pytest.raises(ValueError, match=r"has lr 0.002, but this run has lr 0.1: go on with the same"):
        alphazero.train(dataclasses.replace(longer, lr=0.1), log=rows.append)
    with pytest.raises(ValueError, match=r"network.safetensors is a checkpoint, but not a run of"):
        Run(args).restore(tmp_path / "network.safetensors")


def test_an_interrupted_run_is_kept(tmp_path):
    def stop(metrics):
        raise KeyboardInterrupt

    args = Args("ConnectFour-v0", minutes=60, device="cpu", out=str(tmp_path), **TINY)
    with pytest.raises(KeyboardInterrupt):
        alphazero.train(args, log=stop)
    run = Run(args)
    run.restore(tmp_path / "run.safetensors")
    assert run.self_play.moves > 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"symmetry": "knot"}, "symmetry must be one of none, mirror, turn, square, not 'knot'"),
        ({"td_lambda": 2.0}, "td_lambda must be from 0 to 1"),
        ({"opening": -1}, "opening must be at least 0"),
        ({"rule": "minimax"}, "rule must be gumbel or puct"),
        ({"batch": 0}, "batch must be at least 1"),
        ({"replay": 10}, "replay must hold a phase"),
        ({"resume": 1}, "resume goes on from the checkpoint in a folder"),
    ],
)
def test_options_that_cannot_work(wrong, message):
    with pytest.raises(ValueError, match=message):
        Args(**wrong)


NETWORKS = sorted(pretrained.NETWORKS.glob("*.safetensors"))


def test_networks_that_come_with_the_package_are_small():
    assert NETWORKS
    for path in NETWORKS:
        tensors, about = checkpoint.load(path)
        assert path.stat().st_size < 2**20
        assert not {"out", "device", "threads", "resume"} & about["alphazero"].keys()
        assert all(x.dtype == torch.float16 for x in tensors.values() if x.ndim > 1)


def test_a_network_comes_for_the_parameters_of_its_training_alone():
    for path in NETWORKS:
        _, args = alphazero.load(path)
        assert pretrained.network_of(args.game) == path
        others = [{}] if args.config else []  # a board of the usual size
        for config in (args.config or {}, *others):
            envs = gpuzoo.Simulator(gpuzoo.get(args.game), 1, device="cpu", **config)
            assert (searching.network(envs) is None) == (config in others)
            envs.close()
    with pytest.raises(ValueError, match=r"no network for Chess-v0 comes with the package. There are some for .*Four"):
        pretrained.network_of("Chess-v0")


@pytest.mark.rotates
@pytest.mark.parametrize("path", NETWORKS, ids=[path.stem for path in NETWORKS])
def test_a_network_beats_a_search_with_random_games(path):
    """With 100 simulations against 1,000 games; docs/alphazero.md has longer matches."""
    network, args = alphazero.load(path)
    own = searcher("puct", 100, alphazero.evaluator(network), 1)
    score = match(args.game, own, searcher("uct", 1000, None, 1), games=40, config=args.config)
    assert score.interval[0] > 0.5, score


def test_a_network_is_written_in_half_precision(tmp_path):
    run = Run(Args("ConnectFour-v0", device="cpu", **TINY))
    alphazero.keep(run, tmp_path / "network.safetensors")
    pretrained.write_network(tmp_path / "network.safetensors", tmp_path / "short.safetensors")
    short, args = alphazero.load(tmp_path / "short.safetensors")
    assert args == dataclasses.replace(run.args, out="", device=args.device, threads=args.threads)
    for name, x in run.network.state_dict().items():
        assert torch.equal(short.state_dict()[name], x.half().float() if x.ndim > 1 else x), name
    checkpoint.save(tmp_path / "other.safetensors", {}, {})
    with pytest.raises(ValueError, match=r"not one of baselines\.alphazero"):
        pretrained.write_network(tmp_path / "other.safetensors", tmp_path / "short.safetensors")
