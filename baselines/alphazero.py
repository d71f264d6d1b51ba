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
from torch import Tensor, nn

import gpuzoo
from gpuzoo.core.simulator import Simulator
from gpuzoo.search import Evaluate, Search, Settings
from gpuzoo.tensors import as_tensor

from .report import checkpoint
from .report.searchers import match, random_player, searcher


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
    replay: int = option(200_000, "positions that are remembered")
    reuse: float = option(3.0, "how often a position is learned from, on average")
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
    bfloat16: int = option(0, "1: self-play evaluates in bfloat16, twice as fast where the processor has it")
    out: str = option("", "folder for log.jsonl and checkpoints; none is written without it")

    def __post_init__(self) -> None:
        for name in ("num_envs", "num_steps", "simulations", "considered", "replay", "batch", "channels", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.rule not in ("gumbel", "puct"):
            raise ValueError(f"rule must be gumbel or puct, not {self.rule!r}.")
        if self.replay < self.num_envs * self.num_steps:
            raise ValueError(f"replay must hold a phase of {self.num_envs * self.num_steps} moves, not {self.replay}.")


class Block(nn.Module):
    """Two layers and a way around them."""

    def __init__(self, layer: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.first, self.second = layer(), layer()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = torch.relu(x + self.second(torch.relu(self.first(x))))
        return out


class Network(nn.Module):
    """Residual, with a policy head and a value head: convolutions where an observation is (rows, columns, planes)."""

    def __init__(self, shape: tuple[int, ...], actions: int, channels: int, blocks: int) -> None:
        super().__init__()
        self.image = len(shape) == 3
        size = math.prod(shape[:2]) if self.image else 4
        if self.image:
            self.stem: nn.Module = nn.Conv2d(shape[2], channels, 3, padding=1)
            body = [Block(lambda: nn.Conv2d(channels, channels, 3, padding=1)) for _ in range(blocks)]
        else:
            self.stem = nn.Linear(math.prod(shape), 4 * channels)
            body = [Block(lambda: nn.Linear(4 * channels, 4 * channels)) for _ in range(blocks)]
        self.body = nn.Sequential(*body)
        self.policy = nn.Linear(size * channels, actions)
        self.value = nn.Sequential(nn.Linear(size * channels, 64), nn.ReLU(), nn.Linear(64, 1), nn.Tanh())
        nn.init.zeros_(self.policy.weight)
        nn.Module.to(self, memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        x = observation.to(self.policy.weight.dtype)
        x = x.permute(0, 3, 1, 2) if self.image else x.flatten(1)
        x = self.body(torch.relu(self.stem(x))).flatten(1)
        return self.policy(x), self.value(x)[:, 0]


class Replay:
    """The latest positions, in a ring: what was seen, what search made of the policy, and how the game went on."""

    def __init__(self, capacity: int, observation: Tensor, actions: int) -> None:
        device = observation.device
        self.observation = torch.zeros((capacity, *observation.shape[1:]), dtype=observation.dtype, device=device)
        self.policy = torch.zeros((capacity, actions), device=device)
        self.value = torch.zeros(capacity, device=device)
        self.capacity, self.count = capacity, 0

    def add(self, observation: Tensor, policy: Tensor, value: Tensor) -> None:
        rows = torch.arange(self.count, self.count + len(value), device=value.device) % self.capacity
        self.observation[rows], self.policy[rows], self.value[rows] = observation, policy, value
        self.count += len(value)

    def sample(self, size: int) -> tuple[Tensor, Tensor, Tensor]:
        rows = torch.randint(min(self.count, self.capacity), (size,), device=self.value.device)
        return self.observation[rows], self.policy[rows], self.value[rows]


class SelfPlay:
    """Games of the network against itself."""

    def __init__(self, args: Args, network: Network | None = None) -> None:
        given: dict[str, Any] = {"device": args.device, "threads": args.threads, **(args.config or {})}
        env = gpuzoo.get(args.game)
        self.envs = Simulator(env, args.num_envs, autoreset_mode="same_step", **given)
        settings = Settings(
            considered=args.considered,
            dirichlet_fraction=0.25 if args.rule == "puct" else 0.0,
            value_range=(-1.0, 1.0),
        )
        rule: Any = args.rule
        self.search = Search(
            env, args.num_envs, simulations=args.simulations, rule=rule, settings=settings, seed=args.seed, **given
        )
        self.envs.reset(seed=args.seed)
        self.arrays = {name: as_tensor(array) for name, array in self.envs.arrays.items()}
        self.args, self.games, self.moves = args, 0, 0

    def observation(self) -> tuple[Tensor, Tensor]:
        """Observations (envs, ...) of the players to move, and their indices, int64 (envs,)."""
        turn = self.envs.env.turn
        seen = self.arrays["observation"]
        mover = torch.zeros(len(seen), dtype=torch.int64, device=seen.device)
        mover = mover if turn is None else self.arrays[turn].long()
        shape = next(iter(self.envs.layout.observation_spaces.values())).shape or (1,)
        return seen[torch.arange(len(seen), device=seen.device), mover].view(-1, *shape), mover

    def act(self, visits: Tensor, best: Tensor) -> Tensor:
        """The move of each game: the best one, or with PUCT in the beginning one drawn by visits."""
        if self.args.rule == "gumbel":
            return best
        early = self.arrays["elapsed_steps"] < self.args.exploring_moves
        drawn = torch.multinomial(visits.float().clamp_min(1e-9), 1)[:, 0]
        return torch.where(early, drawn, best)

    def play(self, evaluate: Evaluate, replay: Replay) -> dict[str, float]:
        """Some moves of all games go into the replay, each with the result for who made it, as far as it is known."""
        steps, arrays = list[tuple[Tensor, ...]](), self.arrays
        for _ in range(self.args.num_steps):
            found = self.search.run(self.envs, evaluate)
            seen, mover = self.observation()
            action = self.act(found.visits, found.action)
            arrays["action"].copy_(action.view(-1, 1, 1).expand_as(arrays["action"]))
            self.envs.step()
            reward = arrays["reward"].gather(1, mover[:, None])[:, 0]
            steps.append((seen.clone(), found.policy, mover, reward, arrays["ended"].clone()))
        seen, after = self.observation()
        value = evaluate(seen, torch.ones(len(seen), self.search.tree.actions, dtype=torch.bool, device=seen.device))[1]
        for seen, policy, mover, reward, ended in reversed(steps):
            value = reward + torch.where(ended, 0.0, torch.where(after == mover, value, -value))
            replay.add(seen, policy, value)
            after = mover
        ends = torch.stack([ended for *_, ended in steps])
        self.moves += ends.numel()
        self.games += int(ends.sum())
        policy = torch.stack([policy for _, policy, *_ in steps])
        entropy = -(policy * policy.clamp_min(1e-12).log()).sum(-1).mean()
        return {"games": self.games, "moves": self.moves, "search_entropy": float(entropy)}


def evaluator(network: Network, dtype: torch.dtype = torch.float32) -> Evaluate:
    """The evaluator of a search: the present network."""
    frozen = copy.deepcopy(network).to(dtype).requires_grad_(False)

    def evaluate(observation: Tensor, legal: Tensor) -> tuple[Tensor, Tensor]:
        logits, value = frozen(observation)
        return logits.float(), value.float()

    return evaluate


def learn(network: Network, optimizer: torch.optim.Optimizer, replay: Replay, args: Args) -> dict[str, float]:
    """Some minibatches: cross entropy with the improved policies, squared errors of the results."""
    count = max(1, round(args.reuse * args.num_envs * args.num_steps / args.batch))
    losses = torch.zeros(2)
    for _ in range(count):
        observation, policy, target = replay.sample(args.batch)
        logits, value = network(observation)
        policy_loss, value_loss = F.cross_entropy(logits, policy), F.mse_loss(value, target)
        optimizer.zero_grad()
        (policy_loss + value_loss).backward()
        optimizer.step()
        losses += torch.stack([policy_loss, value_loss]).detach().cpu()
    policy_loss, value_loss = losses / count
    return {"policy_loss": float(policy_loss), "value_loss": float(value_loss)}


def network_of(args: Args) -> Network:
    """A new network for a game."""
    layout = gpuzoo.Simulator(gpuzoo.get(args.game), 1, device="cpu", **(args.config or {})).layout
    space: Any = next(iter(layout.action_spaces.values()))
    shape = next(iter(layout.observation_spaces.values())).shape or (1,)
    return Network(shape, int(space.n), args.channels, args.blocks)


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


def train(args: Args, log: Callable[[dict[str, float]], None] | None = None) -> Network:
    """Trains for some minutes.

    Args:
        args: the options.
        log: gets a dict of metrics after each phase; by default it is printed.

    Returns:
        The network. With ``out`` there are ``log.jsonl`` and a checkpoint for each evaluation, too.
    """
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    self_play = SelfPlay(args)
    network = network_of(args).to(self_play.arrays["reward"].device)
    optimizer = torch.optim.AdamW(network.parameters(), args.lr, weight_decay=args.weight_decay)
    replay = Replay(args.replay, self_play.observation()[0], self_play.search.tree.actions)
    dtype = torch.bfloat16 if args.bfloat16 else torch.float32
    start, evaluated = time.perf_counter(), 0.0
    folder = Path(args.out) if args.out else None
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    while (share := (time.perf_counter() - start) / 60 / args.minutes) < 1:
        for group in optimizer.param_groups:
            group["lr"] = args.lr * (0.55 + 0.45 * math.cos(math.pi * share))
        metrics = self_play.play(evaluator(network, dtype), replay) | learn(network, optimizer, replay, args)
        minutes = (time.perf_counter() - start) / 60
        metrics |= {"minutes": minutes, "moves_per_second": metrics["moves"] / minutes / 60}
        if minutes - evaluated >= args.evaluate_every:
            evaluated = minutes
            metrics |= strength(network, args, self_play.envs.device)
            if folder:
                about = {"alphazero": dataclasses.asdict(args), "moves": self_play.moves}
                checkpoint.save(folder / f"network-{round(minutes):04d}.safetensors", network.state_dict(), about)
        (log or show)(metrics)
        if folder:
            with (folder / "log.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(metrics) + "\n")
    if folder:
        about = {"alphazero": dataclasses.asdict(args), "moves": self_play.moves}
        checkpoint.save(folder / "network.safetensors", network.state_dict(), about)
    return network


def strength(network: Network, args: Args, device: str) -> dict[str, float]:
    """Shares of the points against UCT with random games, and against random play, with the search of self-play."""
    options: dict[str, Any] = {"games": args.games, "config": args.config, "device": device, "seed": args.seed}
    own = searcher("puct", args.simulations, evaluator(network), args.threads)
    uct = searcher("uct", args.opponent, None, args.threads)
    return {
        f"points_against_uct_{args.opponent}": match(args.game, own, uct, **options).points,
        "points_against_random": match(args.game, own, random_player, **options).points,
    }


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
