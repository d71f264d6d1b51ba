"""OpenES, an evolution strategy, in one file: no gradients, and the population is the batch. Games of one agent.

    python -m baselines.simple.es CartPole-v1 --seed 1

Salimans et al., "Evolution Strategies as a Scalable Alternative to Reinforcement Learning" (2017),
https://arxiv.org/abs/1703.03864. Each member of the population has its own weights and plays in its own envs. All
are stepped together, and a layer of all networks is one batched matrix product. In brackets: [1] antithetic
perturbations, [2] fitness by centred ranks, [3] Adam on the estimated gradient, with weight decay.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from gymnasium import spaces
from torch import Tensor

import gpuzoo


def option(default: Any, text: str) -> Any:
    return dataclasses.field(default=default, metadata={"help": text})


@dataclasses.dataclass
class Args:
    """Options of a run."""

    game: str = option("CartPole-v1", "id of a game with one agent; `gpuzoo list` names all")
    config: dict[str, Any] | None = option(None, """the game's parameters, as JSON: '{"length": 0.7}'""")
    seed: int = option(1, "seed of envs and perturbations")
    total_steps: int = option(2_000_000, "steps of all envs together, after which no generation begins")
    num_envs: int = option(512, "envs side by side: those of one member times the population")
    population: int = option(128, "members of the population, an even number")
    sigma: float = option(0.1, "deviation of the perturbations")
    lr: float = option(0.05, "learning rate")
    weight_decay: float = option(0.005, "pull of the weights to 0")
    hidden: int = option(32, "width of the two hidden layers")
    device: str = option("auto", "auto, cpu, cuda or cuda:1")
    threads: int = option(1, "CPU threads of the envs, and of torch")

    def __post_init__(self) -> None:
        game = gpuzoo.get(self.game)
        if not type(game).single() and "group" not in (self.config or {}):
            raise ValueError(f"{game.id} has several agents: train one of them by its group in config.")
        for name in ("total_steps", "num_envs", "population", "hidden", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.population % 2 or self.num_envs % self.population:
            raise ValueError(f"population must be even and divide num_envs = {self.num_envs}, not {self.population}.")


# ---- networks ----


def sizes_of(space: spaces.Space[Any]) -> list[int]:
    """Numbers of choices of a Discrete or MultiDiscrete space; none of a Box."""
    return [int(n) for n in np.ravel(getattr(space, "nvec", getattr(space, "n", ())))]


class Policies:
    """Deterministic policies of one shape, whose weights are rows of a matrix (members, `size`)."""

    def __init__(self, observed: spaces.Space[Any], acts: Any, hidden: int) -> None:
        self.one_hot, self.choices, self.acts = sizes_of(observed), sizes_of(acts), acts
        if not self.choices and not np.isfinite([acts.low, acts.high]).all():
            raise ValueError(f"es.py needs discrete or bounded actions, not {acts}.")
        inputs = sum(self.one_hot) or math.prod(observed.shape or ())
        outputs = sum(self.choices) or math.prod(acts.shape or ())
        self.shapes = [(inputs + 1, hidden), (hidden + 1, hidden), (hidden + 1, outputs)]  # the last row is the bias
        self.size = sum(a * b for a, b in self.shapes)

    def initial(self, device: torch.device) -> Tensor:
        """Weights of one member: random ones, biases and the last layer 0."""
        layers = [torch.randn(shape, device=device) / shape[0] ** 0.5 for shape in self.shapes]
        layers[-1].zero_()
        for layer in layers:
            layer[-1] = 0
        return torch.cat([layer.flatten() for layer in layers])

    def __call__(self, weights: Tensor, observation: Tensor, legal: Tensor | None) -> Tensor:
        """Actions of all envs: the first ones are those of the first member, and so on."""
        x = observation.flatten(1) if observation.ndim > 1 else observation.unsqueeze(1)
        if self.one_hot:
            x = torch.cat([F.one_hot(c.long(), n) for c, n in zip(x.unbind(1), self.one_hot, strict=True)], 1)
        x = x.float().view(len(weights), -1, x.shape[1])  # (members, envs of a member, numbers)
        parts = weights.split([a * b for a, b in self.shapes], 1)
        for i, (part, shape) in enumerate(zip(parts, self.shapes, strict=True)):
            layer = part.view(-1, *shape)
            x = torch.baddbmm(layer[:, -1:], x.tanh() if i else x, layer[:, :-1])
        x = x.flatten(0, 1)
        if not self.choices:
            low, high = (torch.as_tensor(bound, device=x.device) for bound in (self.acts.low, self.acts.high))
            return (low + (x.tanh().view(-1, *low.shape) + 1) * (0.5 * (high - low))).clamp(low, high)
        x = x if legal is None else x.masked_fill(legal == 0, -math.inf)
        actions = torch.stack([part.argmax(1) for part in x.split(self.choices, 1)], 1)
        return actions.view(-1, *(self.acts.shape or ()))


# ---- training ----


def make(args: Args, num_envs: int) -> gpuzoo.VectorEnv:
    """Envs that stand still, with reward 0, when their episode is over."""
    return gpuzoo.make_vec(
        args.game, num_envs, device=args.device, threads=args.threads, autoreset_mode="disabled",
        output="torch", copy=False, masks="info", **(args.config or {}),
    )  # fmt: skip


def play(envs: gpuzoo.VectorEnv, policies: Policies, weights: Tensor, seeds: list[int | None]) -> tuple[Tensor, Tensor]:
    """Return of one episode of each env, and the number of steps of all."""
    obs, infos = envs.reset(seed=seeds)
    playing = torch.ones(envs.num_envs, dtype=torch.bool, device=obs.device)
    returns, steps = torch.zeros(envs.num_envs, device=obs.device), torch.zeros((), device=obs.device)
    while playing.any():
        obs, reward, terminated, truncated, infos = envs.step(policies(weights, obs, infos.get("action_mask")))
        returns += reward
        steps += playing.sum()
        playing &= ~(terminated | truncated)
    return returns, steps


def centred_ranks(fitness: Tensor) -> Tensor:
    """Ranks, evenly spaced from -0.5 to 0.5; equal values share theirs [2]."""
    ordered = fitness.sort().values
    ranks = torch.searchsorted(ordered, fitness) + torch.searchsorted(ordered, fitness, right=True) - 1
    return ranks / (2 * (len(fitness) - 1)) - 0.5


@torch.no_grad()
def train(args: Args, log: Callable[[dict[str, float]], None] | None = None) -> dict[str, Any]:
    """Trains the mean of a population.

    Args:
        args: the options.
        log: called once per generation with its figures; by default a line is printed every two seconds.

    Returns:
        ``return``: mean return of the population's mean, over 128 episodes; ``speed``: env steps per second; ``agent``:
        its weights, (1, size); ``policies``: the network that they are for.
    """
    log = log or printer()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    envs = make(args, args.num_envs)
    policies = Policies(envs.single_observation_space, envs.single_action_space, args.hidden)
    device, each = envs.reset(seed=args.seed)[0].device, args.num_envs // args.population
    mean = policies.initial(device)
    optimizer = torch.optim.Adam([mean], lr=args.lr, maximize=True)  # [3]

    steps, generation, start = 0.0, 0, time.perf_counter()
    while steps < args.total_steps:
        noise = torch.randn(args.population // 2, policies.size, device=device)
        noise = torch.cat([noise, -noise])  # [1]
        first = args.seed * 1_000_000 + generation * each
        seeds: list[int | None] = [*range(first, first + each)] * args.population  # the same episodes for every member
        returns, played = play(envs, policies, mean + args.sigma * noise, seeds)
        fitness = returns.view(args.population, each).mean(1)
        gradient = centred_ranks(fitness) @ noise / (args.population * args.sigma)
        mean.grad = gradient - args.weight_decay * mean
        optimizer.step()

        generation, steps, seconds = generation + 1, steps + played.item(), time.perf_counter() - start
        metrics = {"steps": steps, "seconds": seconds, "speed": steps / seconds, "return": fitness.mean().item()}
        log(metrics | {"best": fitness.max().item(), "generation": float(generation), "norm": mean.norm().item()})
    envs.close()

    envs, agent = make(args, 128), mean.unsqueeze(0)
    total = play(envs, policies, agent, [*range(128)])[0].mean().item()
    envs.close()
    return {"return": total, "speed": steps / seconds, "agent": agent, "policies": policies}


# ---- command line ----


def printer(every: float = 2.0) -> Callable[[dict[str, float]], None]:
    shown = -math.inf

    def show(metrics: dict[str, float]) -> None:
        nonlocal shown
        if metrics["seconds"] - shown >= every:
            shown = metrics["seconds"]
            print("  ".join(f"{name} {value:,.4g}" for name, value in metrics.items()), flush=True)

    return show


def parse() -> Args:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for f in dataclasses.fields(Args):
        kind = {"type": json.loads if f.default is None else type(f.default)}
        how: Any = {"action": argparse.BooleanOptionalAction} if isinstance(f.default, bool) else kind
        how |= {"nargs": "?"} if f.name == "game" else {}
        name = f.name if f.name == "game" else "--" + f.name.replace("_", "-")
        parser.add_argument(name, default=f.default, help=f"{f.metadata['help']} ({f.default})", **how)
    try:
        return Args(**vars(parser.parse_args()))
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    result = train(parse())
    print(f"return {result['return']:.4g} at {result['speed']:,.0f} steps/s")
