"""AlphaZero for games of two players who move in turn, and for games of one.

    python -m baselines.alphazero ConnectFour-v0 --minutes 30 --out runs/four

Silver et al., "A general reinforcement learning algorithm that masters chess, shogi, and Go through self-play" (2018);
with ``--rule gumbel``, the default, policies are improved as in Danihelka et al., "Policy improvement by planning with
Gumbel" (2022), which learns from few simulations. Self-play, search, replay and learning stay on one device.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

import gpuzoo
from gpuzoo.core.layout import Layout
from gpuzoo.core.snapshot import Snapshot
from gpuzoo.search import Cached, Evaluate

from .report import checkpoint
from .report.league import lines_of, standings
from .report.searchers import Player, match, random_player, searcher
from .train import extras
from .train.replay import SYMMETRIES, Replay, Symmetry
from .train.residual import Network
from .train.searched_play import SelfPlay


def option(default: Any, text: str) -> Any:
    return dataclasses.field(default=default, metadata={"help": text})


@dataclasses.dataclass
class Args:
    """Options of a run."""

    game: str = option("ConnectFour-v0", "id of the game")
    config: dict[str, Any] | None = option(None, """the game's parameters, as JSON: '{"size": 5}'""")
    seed: int = option(1, "seed of envs, weights and searches")
    minutes: float = option(30.0, "how long it trains")
    num_envs: int = option(512, "games side by side")
    num_steps: int = option(16, "moves of each game between two phases of learning")
    rule: str = option("gumbel", "how actions are selected: gumbel or puct")
    simulations: int = option(32, "simulations of each move of self-play")
    considered: int = option(16, "with gumbel: actions of the root that are tried")
    exploring_moves: int = option(10, "with puct: so many moves of a game are drawn by visits, the others the best")
    opening: int = option(0, "so many moves at the beginning of a game are random, each with a probability of a half")
    replay: int = option(200_000, "positions that are remembered")
    reuse: float = option(3.0, "how often a position is learned from, on average")
    symmetry: str = option("none", "ways to turn the board that change nothing: none, mirror, turn or square")
    td_lambda: float = option(1.0, "1: values are learned from the ends of games; below: from later searches, too")
    batch: int = option(1024, "positions of a minibatch")
    lr: float = option(2e-3, "learning rate at the beginning; it falls to a tenth by a cosine")
    weight_decay: float = option(1e-4, "of AdamW")
    channels: int = option(32, "of the network's convolutions, or a quarter of its layers' width without images")
    blocks: int = option(3, "residual blocks")
    evaluate_every: float = option(5.0, "minutes between two evaluations")
    games: int = option(64, "games of each match of an evaluation")
    opponent: int = option(1000, "random games that the opponent of evaluations plays for each move (UCT)")
    device: str = option("auto", "auto, cpu, cuda or cuda:1")
    threads: int = option(1, "CPU threads of the envs, and of torch")
    bfloat16: int = option(0, "1: the network computes in bfloat16, twice as fast where the processor has it")
    out: str = option("", "folder for log.jsonl and checkpoints; none is written without it")
    resume: int = option(0, "1: go on from run.safetensors in the folder, if it is there, until it has had its minutes")

    def __post_init__(self) -> None:
        for name in ("num_envs", "num_steps", "simulations", "considered", "replay", "batch", "channels", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.rule not in ("gumbel", "puct"):
            raise ValueError(f"rule must be gumbel or puct, not {self.rule!r}.")
        if self.symmetry not in SYMMETRIES:
            raise ValueError(f"symmetry must be one of {', '.join(SYMMETRIES)}, not {self.symmetry!r}.")
        if self.opening < 0:
            raise ValueError(f"opening must be at least 0, not {self.opening}.")
        if not 0 <= self.td_lambda <= 1:
            raise ValueError(f"td_lambda must be from 0 to 1, not {self.td_lambda}.")
        if self.replay < self.num_envs * self.num_steps:
            raise ValueError(f"replay must hold a phase of {self.num_envs * self.num_steps} moves, not {self.replay}.")
        if self.resume and not self.out:
            raise ValueError("resume goes on from the checkpoint in a folder: give out=FOLDER.")

    @property
    def dtype(self) -> torch.dtype:
        """In which the network computes while games are played."""
        return torch.bfloat16 if self.bfloat16 else torch.float32


def evaluator(network: Network, dtype: torch.dtype = torch.float32) -> Evaluate:
    """The evaluator of a search: the network as it is now. On a CPU it remembers positions."""
    frozen = copy.deepcopy(network).to(dtype).requires_grad_(False)

    def evaluate(observation: Tensor, legal: Tensor) -> tuple[Tensor, Tensor]:
        logits, value = frozen(observation)
        return logits.float(), value.float()

    return Cached(evaluate) if next(frozen.parameters()).device.type == "cpu" else evaluate


def learn(
    network: Network, optimizer: torch.optim.Optimizer, replay: Replay, symmetry: Symmetry, args: Args
) -> dict[str, float]:
    """Some minibatches: cross entropy with the improved policies, squared errors of the results."""
    count = max(1, round(args.reuse * args.num_envs * args.num_steps / args.batch))
    losses = torch.zeros(2)
    for _ in range(count):
        observation, policy, target = replay.sample(args.batch)
        observation, policy = symmetry.varied(observation, policy)
        with torch.autocast(observation.device.type, torch.bfloat16, enabled=bool(args.bfloat16)):
            logits, value = network(observation)
        logits, value = logits.float(), value.float()
        policy_loss, value_loss = F.cross_entropy(logits, policy), F.mse_loss(value, target)
        optimizer.zero_grad()
        (policy_loss + value_loss).backward()
        optimizer.step()
        losses += torch.stack([policy_loss, value_loss]).detach().cpu()
    policy_loss, value_loss = losses / count
    return {"policy_loss": float(policy_loss), "value_loss": float(value_loss)}


def layout_of(args: Args) -> Layout:
    """Spaces of a game."""
    return gpuzoo.Simulator(gpuzoo.get(args.game), 1, device="cpu", **(args.config or {})).layout


def network_of(args: Args) -> Network:
    """A new network for a game."""
    layout = layout_of(args)
    space: Any = next(iter(layout.action_spaces.values()))
    shape = next(iter(layout.observation_spaces.values())).shape or (1,)
    return Network(shape, int(space.n), args.channels, args.blocks)


def symmetry_of(args: Args, device: torch.device | str = "cpu") -> Symmetry:
    """The symmetry that a run learns by, on the device of its network.

    Raises:
        ValueError: it does not fit the game.
    """
    layout = layout_of(args)
    shape = next(iter(layout.observation_spaces.values())).shape or (1,)
    return Symmetry(args.symmetry, shape, next(iter(layout.action_cells.values())), device)


def load(path: str | Path, device: str = "cpu") -> tuple[Network, Args]:
    """The network of a checkpoint, and the options of its run.

    Raises:
        ValueError: no such file, or another one.
    """
    tensors, about = checkpoint.load(path, device)
    if "alphazero" not in about:
        raise ValueError(f"{path} is a checkpoint, but not one of baselines.alphazero.")
    args = Args(**about["alphazero"])
    network = network_of(args).to(device)
    network.load_state_dict(tensors)
    return network.eval(), args


class Run:
    """All that a run has: `save` and `restore` stop it and go on with it.

    Attributes:
        args: the options.
        network: what is trained.
        minutes: how long it has trained, evaluations included.
        cpu_minutes: as much of that as its process computed, on all threads.
    """

    def __init__(self, args: Args) -> None:
        torch.set_num_threads(args.threads)
        torch.manual_seed(args.seed)
        self.args, self.self_play = args, SelfPlay(args)
        device = self.self_play.arrays["reward"].device
        self.network, self.symmetry = network_of(args).to(device), symmetry_of(args, device)
        self.optimizer = torch.optim.AdamW(self.network.parameters(), args.lr, weight_decay=args.weight_decay)
        self.replay = Replay(args.replay, self.self_play.observation()[0], self.self_play.search.tree.actions)
        self.minutes = self.cpu_minutes = self.evaluated = 0.0
        self._read = time.perf_counter(), time.process_time()

    def clock(self) -> None:
        """Adds what has passed since the last call to both clocks."""
        now = time.perf_counter(), time.process_time()
        self.minutes += (now[0] - self._read[0]) / 60
        self.cpu_minutes += (now[1] - self._read[1]) / 60
        self._read = now

    def phase(self) -> dict[str, float]:
        """Moves of all games, and what is learned from them."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.args.lr * (0.55 + 0.45 * math.cos(math.pi * min(self.minutes / self.args.minutes, 1)))
        metrics = self.self_play.play(evaluator(self.network, self.args.dtype), self.replay)
        metrics |= learn(self.network, self.optimizer, self.replay, self.symmetry, self.args)
        self.clock()
        speed = metrics["moves"] / self.minutes / 60
        return metrics | {"minutes": self.minutes, "cpu_minutes": self.cpu_minutes, "moves_per_second": speed}

    def extras(self) -> dict[str, extras.Extra]:
        """What changes in it, but for the games and numbers."""
        replay = {name: getattr(self.replay, name) for name in ("observation", "policy", "value")}
        own = {"network": self.network, "optimizer": self.optimizer, "noise": self.self_play.search.random}
        return {**own, **{f"replay/{name}": x for name, x in replay.items()}}

    def save(self, path: Path) -> None:
        """Writes all of it.

        Raises:
            OSError: see `checkpoint.save`.
        """
        games = self.self_play.envs.snapshot().numpy().arrays
        tensors = {**extras.tensors(self.extras()), "random": torch.get_rng_state()}
        tensors |= {f"games/{name}": torch.from_numpy(array) for name, array in games.items()}
        checkpoint.save(path, tensors, {"alphazero": dataclasses.asdict(self.args), "numbers": self.numbers()})

    def numbers(self) -> dict[str, float]:
        play = self.self_play
        counts = {"games": play.games, "moves": play.moves, "searches": play.search.searches, "seen": self.replay.count}
        return {**counts, "minutes": self.minutes, "cpu_minutes": self.cpu_minutes, "evaluated": self.evaluated}

    def restore(self, path: Path) -> None:
        """Goes on from a file of `save`, with the same options but for minutes, evaluations, folder and threads.

        Raises:
            ValueError: no such file, or one of another run.
        """
        found, about = checkpoint.load(path)
        if "numbers" not in about:
            raise ValueError(f"{path} is a checkpoint, but not a run of baselines.alphazero.")
        free = ("minutes", "evaluate_every", "games", "opponent", "device", "threads", "out", "resume")
        mine = {name: x for name, x in dataclasses.asdict(self.args).items() if name not in free}
        checkpoint.check(about["alphazero"], mine, path)
        own = {name: x for name, x in found.items() if name != "random" and not name.startswith("games/")}
        checkpoint.check_tensors(own, extras.expected(self.extras(), own), path)
        play, numbers = self.self_play, about["numbers"]
        games = {name: x.numpy() for name, x in checkpoint.below(found, "games/").items()}
        play.envs.restore(Snapshot(play.envs.env.id, play.envs.constants(), games))
        extras.restore(self.extras(), found)
        torch.set_rng_state(found["random"])
        play.games, play.moves, play.search.searches = numbers["games"], numbers["moves"], numbers["searches"]
        self.replay.count, self.evaluated = numbers["seen"], numbers["evaluated"]
        self.minutes, self.cpu_minutes = numbers["minutes"], numbers["cpu_minutes"]


def train(args: Args, log: Callable[[dict[str, float]], None] | None = None) -> Network:
    """Trains for some minutes.

    Args:
        args: the options.
        log: gets a dict of metrics after each phase; by default it is printed.

    Returns:
        The network. With ``out`` there are ``log.jsonl``, a checkpoint for each evaluation, a league of these in
        ``elo.csv`` and ``elo.png``, and ``run.safetensors``, from which ``resume`` goes on. It is also written when the
        run is interrupted (Ctrl-C).

    Raises:
        ValueError: the run in the folder is another one.
    """
    run, folder = Run(args), Path(args.out) if args.out else None
    if folder and args.resume and (folder / "run.safetensors").exists():
        run.restore(folder / "run.safetensors")
    try:
        while run.minutes < args.minutes:
            metrics = run.phase()
            due = run.minutes - run.evaluated >= args.evaluate_every
            if due:
                run.evaluated = run.minutes
                metrics |= strength(run.network, args, run.self_play.envs.device)
                run.clock()
            (log or show)(metrics)
            if folder:
                folder.mkdir(parents=True, exist_ok=True)
                with (folder / "log.jsonl").open("a", encoding="utf-8") as file:
                    file.write(json.dumps(metrics) + "\n")
            if folder and due:
                keep(run, folder / f"network-{round(run.evaluated):04d}.safetensors")
                run.save(folder / "run.safetensors")
    except KeyboardInterrupt:
        if folder:
            run.save(folder / "run.safetensors")
        raise
    if folder:
        run.save(folder / "run.safetensors")
        keep(run, folder / "network.safetensors")
        rate(run, folder)
    return run.network


def keep(run: Run, path: Path) -> None:
    """Writes the network alone, for `load`."""
    about = {"alphazero": dataclasses.asdict(run.args), "moves": run.self_play.moves}
    checkpoint.save(path, run.network.state_dict(), about)


def rate(run: Run, folder: Path) -> None:
    """Writes and prints the league of the run's networks, UCT and random play (`standings`)."""
    device = run.self_play.envs.device
    kept = {int(path.stem[8:]): load(path, device)[0] for path in folder.glob("network-*.safetensors")}
    past_selves = {
        age: player(network, run.args) for age, network in (kept | {round(run.minutes): run.network}).items()
    }
    table = standings(run.args.game, past_selves, run.args.opponent, run.args.threads, **matches(run.args, device))
    table.write(folder)
    print(*lines_of(table), sep="\n", flush=True)


def strength(network: Network, args: Args, device: str) -> dict[str, float]:
    """Shares of the points against UCT with random games, and against random play, with the search of self-play."""
    others = {f"uct_{args.opponent}": searcher("uct", args.opponent, None, args.threads), "random": random_player}
    own, options = player(network, args), matches(args, device)
    return {f"points_against_{name}": match(args.game, own, other, **options).points for name, other in others.items()}


def player(network: Network, args: Args) -> Player:
    """A player that searches as in self-play, without noise."""
    return searcher("puct", args.simulations, evaluator(network, args.dtype), args.threads)


def matches(args: Args, device: str) -> dict[str, Any]:
    """The options of an evaluation's matches."""
    return {"games": args.games, "config": args.config, "device": device, "seed": args.seed}


def show(metrics: dict[str, float]) -> None:
    print("  ".join(f"{name} {value:,.4g}" for name, value in metrics.items()), flush=True)


def parse() -> Args:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for f in dataclasses.fields(Args):
        how: Any = {"type": json.loads if f.default is None else type(f.default)}
        how |= {"nargs": "?"} if f.name == "game" else {}
        name = f.name if f.name == "game" else "--" + f.name.replace("_", "-")
        parser.add_argument(name, default=f.default, help=f"{f.metadata['help']} ({f.default})", **how)
    try:
        return Args(**vars(parser.parse_args()))
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    train(parse())
