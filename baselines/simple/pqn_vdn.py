"""PQN-VDN: parallelised Q-learning for teams, in one file. No replay buffer, no target network.

    python -m baselines.simple.pqn_vdn SimpleSpread-v0 --seed 1

Gallici et al., "Simplifying Deep Temporal Difference Learning" (2024), https://arxiv.org/abs/2407.04811, with the value
decomposition of Sunehag et al. (2017), https://arxiv.org/abs/1706.05296: every agent has a Q-function of what it has
seen, and their sum learns from the mean of the agents' rewards. What takes the place of buffer and target network:
[1] many envs at once, [2] LayerNorm in every layer, [3] targets of Q(lambda) from rollouts of the present policy,
[4] several epochs of minibatches on each rollout, [5] RAdam.

Shapes: T steps, N envs, A agents of all groups.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from gymnasium import spaces
from torch import Tensor, nn

import gpuzoo


def option(default: Any, text: str) -> Any:
    return dataclasses.field(default=default, metadata={"help": text})


@dataclasses.dataclass
class Args:
    """Options of a run."""

    game: str | type[gpuzoo.EnvDef] = option("SimpleSpread-v0", "id of the game; `gpuzoo list` names all")
    config: Any = option(None, "the game's parameters, as JSON")
    seed: int = option(1, "seed of envs, weights and actions")
    total_steps: int = option(1_000_000, "steps of all envs together")
    num_envs: int = option(256, "envs side by side")
    num_steps: int = option(16, "steps of each env in a rollout")
    epochs: int = option(4, "passes over a rollout")
    minibatches: int = option(16, "minibatches of an epoch")
    memory: int = option(0, "size of the agents' GRU; 0: they act by what they see now, and learn faster")
    hidden: int = option(128, "width of the agents' hidden layers")
    lr: float = option(1e-3, "learning rate at the beginning")
    anneal_lr: bool = option(True, "let the learning rate fall to 0 linearly")
    gamma: float = option(0.95, "discount")
    q_lambda: float = option(0.5, "between one-step targets (0) and returns of whole rollouts (1)")
    epsilon_start: float = option(1.0, "share of random actions at the beginning")
    epsilon_end: float = option(0.05, "share of random actions in the end")
    exploration: float = option(0.2, "fraction of the run until epsilon_end is reached")
    max_grad_norm: float = option(1.0, "largest norm of the gradient")
    device: str = option("auto", "auto, cpu, cuda or cuda:1")
    threads: int = option(1, "CPU threads of the envs and of torch")

    def __post_init__(self) -> None:
        for name in ("num_envs", "num_steps", "epochs", "minibatches", "hidden", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}.")
        divided = "num_envs" if self.memory else "num_envs * num_steps"
        if (self.num_envs if self.memory else self.num_envs * self.num_steps) % self.minibatches:
            raise ValueError(f"minibatches must divide {divided}, which {self.minibatches} does not.")
        if self.total_steps < self.num_envs * self.num_steps:
            raise ValueError(f"total_steps must be at least num_envs * num_steps, not {self.total_steps}.")


# ---- networks ----


def sizes_of(space: spaces.Space[Any]) -> list[int]:
    """Numbers of choices of a Discrete or MultiDiscrete space; none of a Box."""
    return [int(n) for n in np.ravel(getattr(space, "nvec", getattr(space, "n", ())))]


class GroupNetwork(nn.Module):
    """Q-values of the agents of one group, who share it."""

    def __init__(self, width: int, actions: int, hidden: int, memory: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(width, hidden), nn.LayerNorm(hidden), nn.ReLU())  # [2]
        layer = nn.Sequential(nn.Linear(hidden, hidden), nn.LayerNorm(hidden), nn.ReLU())
        self.body = nn.GRUCell(hidden, memory) if memory else layer
        self.head = nn.Linear(memory or hidden, actions)

    def forward(self, x: Tensor, memory: Tensor, begins: Tensor) -> tuple[Tensor, Tensor]:
        x = self.encoder(x)
        if not memory.shape[-1]:
            return self.head(self.body(x)), memory
        rows, keeps = memory.flatten(0, 1), (~begins).unsqueeze(-1).expand(x.shape[:3]).flatten(1).unsqueeze(-1)
        remembered = []
        for seen, keep in zip(x.flatten(1, 2), keeps, strict=True):
            rows = self.body(seen, rows * keep)
            remembered.append(rows)
        return self.head(torch.stack(remembered).view(*x.shape[:3], -1)), rows.view_as(memory)


class Agents(nn.Module):
    """All agents: a network for each group. Inputs are padded to the longest, values to the largest number of actions."""

    def __init__(self, envs: gpuzoo.BatchEnv, hidden: int, memory: int) -> None:
        super().__init__()
        self.counts, self.memory = envs.groups, memory
        self.spaces: dict[str, spaces.Space[Any]] = {}
        self.actions: dict[str, int] = {}
        for group, space in envs.observation_spaces.items():
            acts = envs.action_spaces[group]
            if not isinstance(acts, spaces.Discrete):
                raise ValueError(f"pqn_vdn.py needs Discrete actions, but those of {group!r} are {acts}.")
            self.spaces[group] = space["observation"] if isinstance(space, spaces.Dict) else space
            self.actions[group] = int(acts.n)
        self.widths = {group: spaces.flatdim(space) + self.counts[group] for group, space in self.spaces.items()}
        self.networks = nn.ModuleDict(
            {group: GroupNetwork(width, self.actions[group], hidden, memory) for group, width in self.widths.items()}
        )

    def encode(self, observations: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Inputs (N, A, width) float32, with each agent's one-hot number, and legal actions (N, A, actions) bool."""
        inputs, legal = [], []
        for group, space in self.spaces.items():
            x, count = observations[group], self.counts[group]
            x, mask = (x["observation"], x["action_mask"].bool()) if isinstance(x, dict) else (x, None)
            if mask is None:
                mask = torch.ones(*x.shape[:2], self.actions[group], dtype=torch.bool, device=x.device)
            x = x.flatten(2) if x.ndim > 2 else x.unsqueeze(2)
            if sizes := sizes_of(space):
                x = torch.cat([F.one_hot(c.long(), n) for c, n in zip(x.unbind(2), sizes, strict=True)], 2)
            number = torch.eye(count, device=x.device).expand(len(x), count, count)
            x = torch.cat([x.float(), number], 2)
            inputs.append(F.pad(x, (0, max(self.widths.values()) - x.shape[2])))
            mask = mask | ~mask.any(2, keepdim=True)  # who has no legal action may do anything
            legal.append(F.pad(mask, (0, max(self.actions.values()) - mask.shape[2])))
        return torch.cat(inputs, 1), torch.cat(legal, 1)

    def forward(self, x: Tensor, memory: Tensor, begins: Tensor) -> tuple[Tensor, Tensor]:
        """Values of all actions over T steps.

        Args:
            x: inputs (T, N, A, width).
            memory: (N, A, memory), before the first step.
            begins: bool (T, N), where an episode begins: nothing from before is remembered.

        Returns:
            Values (T, N, A, actions), and the memory after the last step.
        """
        q, after, first = [], [], 0
        for group, network in self.networks.items():
            mine = slice(first, first := first + self.counts[group])
            values, remembered = network(x[:, :, mine, : self.widths[group]], memory[:, mine], begins)
            q.append(F.pad(values, (0, max(self.actions.values()) - values.shape[-1])))
            after.append(remembered)
        return torch.cat(q, 2), torch.cat(after, 1)


# ---- Q-learning ----


def choose(q: Tensor, legal: Tensor, epsilon: float) -> Tensor:
    """The best legal actions, or with probability epsilon any legal ones."""
    random = torch.rand_like(q).masked_fill(~legal, -1).argmax(-1)
    best = q.masked_fill(~legal, -math.inf).argmax(-1)
    return torch.where(torch.rand(best.shape, device=q.device) < epsilon, random, best)


def lambda_returns(rewards: Tensor, discounts: Tensor, values: Tensor, goes_on: Tensor, q_lambda: float) -> Tensor:
    """Targets of Q(lambda), (T, ...); ``values[t]`` is of what follows step t, and where not ``goes_on[t]`` all there is."""
    targets, following = torch.empty_like(rewards), values[-1]
    for t in reversed(range(len(rewards))):
        following = torch.where(goes_on[t], torch.lerp(values[t], following, q_lambda), values[t])
        targets[t] = following = rewards[t] + discounts[t] * following
    return targets


def make(args: Args, num_envs: int) -> gpuzoo.BatchEnv:
    """Envs in which each observation follows the one before: a reset is a step of its own, in which nobody acts."""
    return gpuzoo.make(
        args.game, num_envs, device=args.device, threads=args.threads, output="torch", autoreset_mode="next_step",
        **(args.config or {}),
    )  # fmt: skip


def everyone(by_group: dict[str, Tensor]) -> Tensor:
    """(N, A): the groups side by side."""
    return torch.cat(list(by_group.values()), 1)


def train(args: Args, log: Callable[[dict[str, float]], None] | None = None) -> dict[str, Any]:
    """Trains a team.

    Args:
        args: the options.
        log: called once per iteration with its figures; by default a line is printed every two seconds.

    Returns:
        ``return``: mean return of the agents without exploration, over 256 episodes; ``returns``: the same by group;
        ``speed``: env steps per second; ``agent``: the networks.
    """
    log = log or printer()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    envs = make(args, args.num_envs)  # [1]
    observations, infos = envs.reset(seed=args.seed)
    alive = everyone(infos["alive"]).bool()
    device, T, (N, A) = alive.device, args.num_steps, alive.shape
    agents = Agents(envs, args.hidden, args.memory).to(device)
    optimizer = torch.optim.RAdam(agents.parameters(), lr=args.lr, foreach=True)  # [5]

    ended, memory = torch.zeros_like(alive[:, 0]), torch.zeros(N, A, args.memory, device=device)
    begins, (inputs, legal) = ~ended, agents.encode(observations)
    iterations, start = args.total_steps // (N * T), time.perf_counter()
    for iteration in range(iterations):
        progress = iteration / iterations
        optimizer.param_groups[0]["lr"] = args.lr * (1 - progress) if args.anneal_lr else args.lr
        epsilon = args.epsilon_start + min(1, progress / args.exploration) * (args.epsilon_end - args.epsilon_start)
        total = torch.zeros(2, device=device)  # sum of returns, and number, of the episodes that ended
        played: defaultdict[str, list[Tensor]] = defaultdict(list)
        memory_before = memory

        with torch.no_grad():
            for _ in range(T):
                q, memory = agents(inputs[None], memory, begins[None])
                action = choose(q[0], legal, epsilon)
                observations, rewards, terminations, truncations, infos = envs.step(action)
                terminated, truncated = everyone(terminations), everyone(truncations)
                step = {"inputs": inputs, "begins": begins, "action": action, "acting": alive,
                        "reward": everyone(rewards).mean(1), "value": q[0].masked_fill(~legal, -math.inf).amax(-1),
                        "stays": alive & ~terminated, "goes_on": alive & ~(terminated | truncated)}  # fmt: skip
                for name, x in step.items():
                    played[name].append(x)
                inputs, legal = agents.encode(observations)
                begins = ended  # an end is followed by a step that resets, and that by the next episode
                alive, ended = everyone(infos["alive"]).bool(), infos["ended"].bool().clone()
                total += torch.stack([everyone(infos["episode"]["r"])[ended].mean(1).sum(), ended.sum()])
            q, _ = agents(inputs[None], memory, begins[None])
            played["value"].append(q[0].masked_fill(~legal, -math.inf).amax(-1))

            rollout = {name: torch.stack(x) for name, x in played.items()}
            value, stays = rollout.pop("value"), rollout.pop("stays")
            following = (value[1:] * stays).sum(-1)  # of the team; who has left adds nothing
            discount, goes_on = args.gamma * stays.any(-1), rollout.pop("goes_on").any(-1)
            rollout["target"] = lambda_returns(rollout["reward"], discount, following, goes_on, args.q_lambda)  # [3]

        if not args.memory:  # every step is a sequence of its own
            rollout = {name: x.flatten(0, 1).unsqueeze(0) for name, x in rollout.items()}
            memory_before = memory_before.repeat(T, 1, 1)
        for _ in range(args.epochs):  # [4]
            for some in torch.randperm(len(memory_before), device=device).view(args.minibatches, -1):
                batch = {name: x[:, some] for name, x in rollout.items()}
                q, _ = agents(batch["inputs"], memory_before[some], batch["begins"])
                acting, taken = batch["acting"], q.gather(-1, batch["action"].unsqueeze(-1)).squeeze(-1)
                error = ((taken * acting).sum(-1) - batch["target"]) * acting.any(-1)
                loss = 0.5 * error.square().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agents.parameters(), args.max_grad_norm)
                optimizer.step()

        steps, seconds, (returns, count) = (iteration + 1) * N * T, time.perf_counter() - start, total.tolist()
        report = {"steps": float(steps), "seconds": seconds, "speed": steps / seconds}
        report |= {"return": returns / count} if count else {}
        log(report | {"epsilon": epsilon, "loss": loss.item(), "q": value.mean().item()})
    envs.close()
    found = evaluate(args, agents)
    mean = sum(found[group] * n for group, n in agents.counts.items()) / A
    return {"return": mean, "returns": found, "speed": steps / seconds, "agent": agents}


@torch.no_grad()
def evaluate(args: Args, agents: Agents, episodes: int = 256) -> dict[str, float]:
    """Mean return of each group's agents without exploration, one episode in each env."""
    with make(args, episodes) as envs:
        observations, infos = envs.reset(seed=args.seed + 1_000_000)
        alive = everyone(infos["alive"])
        over, returns = torch.zeros_like(alive[:, 0]).bool(), dict.fromkeys(envs.groups, 0.0)
        memory = torch.zeros(*alive.shape, agents.memory, device=alive.device)
        while not over.all():
            inputs, legal = agents.encode(observations)
            q, memory = agents(inputs[None], memory, over[None])
            observations, rewards, _, _, infos = envs.step(choose(q[0], legal, 0.0))
            for group, reward in rewards.items():
                returns[group] += (reward.mean(1) * ~over).mean().item()
            over |= infos["ended"].bool()
    return returns


# ---- command line ----


def printer(every: float = 2.0) -> Callable[[dict[str, float]], None]:
    shown = -math.inf

    def show(row: dict[str, float]) -> None:
        nonlocal shown
        if row["seconds"] - shown >= every:
            shown = row["seconds"]
            print("  ".join(f"{name} {value:,.4g}" for name, value in row.items()), flush=True)

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
    print(f"return {result['return']:.4g} at {result['speed']:,.0f} steps/s, by group {result['returns']}")
