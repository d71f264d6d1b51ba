"""PQN-VDN: parallelised Q-learning for teams, without a replay buffer and without target networks.

    python -m baselines.simple.pqn_vdn SimpleSpread-v0 --seed 1

Every agent has a Q-function of its history, and the sum of the values of their actions learns from the mean of
their rewards: Sunehag et al., "Value-Decomposition Networks" (2017), https://arxiv.org/abs/1706.05296. It learns as in
Gallici et al., "Simplifying Deep Temporal Difference Learning" (2024), https://arxiv.org/abs/2407.04811: [1] many envs
side by side, [2] LayerNorm in every layer, [3] targets of Q(lambda) from rollouts of the present policy, [4] several
epochs of minibatches on each rollout, [5] RAdam. Shapes: T steps, N envs, A agents of all groups.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import time
from collections.abc import Callable
from typing import Any

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

    game: str = option("SimpleSpread-v0", "id of the game; `gpuzoo list` names all")
    config: dict[str, Any] | None = option(None, "the game's parameters, as JSON")
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
        gpuzoo.get(self.game)  # names those that it could have been
        for name in ("num_envs", "num_steps", "epochs", "minibatches", "hidden", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}.")
        sequences = self.num_envs if self.memory else self.num_envs * self.num_steps
        if sequences % self.minibatches:
            what = "num_envs" if self.memory else "num_envs * num_steps"
            raise ValueError(f"minibatches must divide {what} = {sequences}, which {self.minibatches} does not.")
        if self.total_steps < self.num_envs * self.num_steps:
            raise ValueError(f"total_steps must be at least num_envs * num_steps, not {self.total_steps}.")


def layer(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, outputs), nn.LayerNorm(outputs), nn.ReLU())  # [2]


class Agents(nn.Module):
    """A network for each group, which its agents share. Inputs and actions are padded to those of the widest group."""

    def __init__(self, envs: gpuzoo.BatchEnv, hidden: int, memory: int) -> None:
        super().__init__()
        self.groups, self.memory = envs.groups, memory
        self.observed, self.inputs, self.actions = {}, {}, {}
        self.encoders, self.bodies, self.heads = nn.ModuleDict(), nn.ModuleDict(), nn.ModuleDict()
        for group, observed in envs.observation_spaces.items():
            if not isinstance(acts := envs.action_spaces[group], spaces.Discrete):
                raise ValueError(f"Q-learning needs Discrete actions, but those of {group!r} are {acts}.")
            self.observed[group] = observed["observation"] if isinstance(observed, spaces.Dict) else observed
            self.actions[group] = int(acts.n)
            self.inputs[group] = spaces.flatdim(self.observed[group]) + envs.groups[group]
            self.encoders[group] = layer(self.inputs[group], hidden)
            self.bodies[group] = nn.GRUCell(hidden, memory) if memory else layer(hidden, hidden)
            self.heads[group] = nn.Linear(memory or hidden, int(acts.n))

    def encode(self, observations: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Inputs (N, A, inputs) float32, with each agent's one-hot number, and legal actions (N, A, actions) bool."""
        inputs, legal = [], []
        for group, space in self.observed.items():
            x, count, size = observations[group], self.groups[group], self.actions[group]
            mask = x["action_mask"] if isinstance(x, dict) else x.new_ones(*x.shape[:2], size)
            x = x["observation"] if isinstance(x, dict) else x
            x = x.flatten(2) if x.ndim > 2 else x[..., None]
            if not isinstance(space, spaces.Box):  # choices become one-hot
                sizes = getattr(space, "nvec", [getattr(space, "n", 0)])
                x = torch.cat([F.one_hot(c.long(), int(n)) for c, n in zip(x.unbind(2), sizes, strict=True)], 2)
            x = torch.cat([x.float(), torch.eye(count, device=x.device).expand(len(x), count, count)], 2)
            inputs.append(F.pad(x, (0, max(self.inputs.values()) - x.shape[2])))
            legal.append(F.pad(mask > 0, (0, max(self.actions.values()) - size)))
        return torch.cat(inputs, 1), torch.cat(legal, 1)

    def forward(self, x: Tensor, memory: Tensor, begins: Tensor) -> tuple[Tensor, Tensor]:
        """Values (T, N, A, actions) of inputs (T, N, A, inputs). Memory (N, A, memory) is lost as an episode begins."""
        q, after, start = [], [], 0
        for group, count in self.groups.items():
            mine = slice(start, start := start + count)
            y, m, remembered = self.encoders[group](x[:, :, mine, : self.inputs[group]]), memory[:, mine], []
            for t in range(len(y) if self.memory else 0):
                m = self.bodies[group](y[t].flatten(0, 1), (m * ~begins[t, :, None, None]).flatten(0, 1)).view_as(m)
                remembered.append(m)
            y = self.heads[group](torch.stack(remembered) if self.memory else self.bodies[group](y))
            q.append(F.pad(y, (0, max(self.actions.values()) - y.shape[-1])))
            after.append(m)
        return torch.cat(q, 2), torch.cat(after, 1)


def make(args: Args, num_envs: int) -> gpuzoo.BatchEnv:
    """Envs in which each observation follows the one before: a reset is a step of its own, in which nobody acts."""
    how: Any = {"output": "torch", "autoreset_mode": "next_step", "threads": args.threads, **(args.config or {})}
    return gpuzoo.make(args.game, num_envs, device=args.device, **how)


def joint(by_group: dict[str, Tensor]) -> Tensor:  # (N, A), the groups side by side
    return torch.cat(list(by_group.values()), 1)


def best(q: Tensor, legal: Tensor) -> Tensor:  # actions (N, A)
    return q.masked_fill(~legal, -math.inf).argmax(-1)


def explore(action: Tensor, q: Tensor, legal: Tensor, epsilon: float) -> Tensor:
    """Random legal actions in place of some; if none is legal, the env replaces them."""
    random = torch.rand_like(q).masked_fill(~legal, -1).argmax(-1)
    return torch.where(torch.rand(action.shape, device=q.device) < epsilon, random, action)


def lambda_returns(reward: Tensor, discount: Tensor, value: Tensor, continues: Tensor, q_lambda: float) -> Tensor:
    """Targets (T, N) of Q(lambda); ``value[t]`` is that of what follows step t, and ends where not ``continues[t]``."""
    target, following = torch.empty_like(reward), value[-1]
    for t in reversed(range(len(reward))):
        following = torch.where(continues[t], torch.lerp(value[t], following, q_lambda), value[t])
        target[t] = following = reward[t] + discount[t] * following
    return target


def train(args: Args, log: Callable[[dict[str, float]], None] | None = None) -> dict[str, Any]:
    """Trains a team; ``log`` gets the figures of each iteration, by default a line is printed every two seconds.

    Returns:
        ``returns`` of 256 episodes without exploration, the mean of each group, and their mean ``return``; ``speed`` in
        env steps per second; ``agent``, the networks.
    """
    log = log or printer()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    envs = make(args, args.num_envs)  # [1]
    observations, infos = envs.reset(seed=args.seed)
    alive = joint(infos["alive"]).bool()
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
        memory_before, played, values = memory, [], []

        with torch.no_grad():
            for t in range(T + 1):
                q, following_memory = agents(inputs[None], memory, begins[None])
                action = best(q[0], legal)
                values.append(q[0].gather(-1, action[..., None]).squeeze(-1))
                if t == T:  # the value of what follows the rollout
                    break
                step = {"inputs": inputs, "begins": begins, "acting": alive}
                step["action"] = explore(action, q[0], legal, epsilon)
                observations, rewards, terminations, truncations, infos = envs.step(step["action"])
                stays, memory = alive & ~joint(terminations), following_memory
                step |= {"reward": joint(rewards).mean(1), "stays": stays, "continues": stays & ~joint(truncations)}
                played.append(step)
                inputs, legal = agents.encode(observations)
                begins = ended  # an end, then a step that resets, then the next episode
                alive, ended = joint(infos["alive"]).bool(), infos["ended"].bool().clone()
                total += torch.stack([(joint(infos["episode"]["r"]).mean(1) * ended).sum(), ended.sum()])
            rollout = {name: torch.stack([x[name] for x in played]) for name in played[0]}
            stays, continues = rollout.pop("stays"), rollout.pop("continues").any(-1)
            value = (torch.stack(values[1:]) * stays).sum(-1)  # who has left adds nothing
            discount = args.gamma * stays.any(-1)
            rollout["target"] = lambda_returns(rollout["reward"], discount, value, continues, args.q_lambda)  # [3]

        if not args.memory:  # each step is a sequence of its own
            rollout = {name: x.flatten(0, 1)[None] for name, x in rollout.items()}
            memory_before = memory_before.repeat(T, 1, 1)
        for _ in range(args.epochs):  # [4]
            for rows in torch.randperm(len(memory_before), device=device).view(args.minibatches, -1):
                batch = {name: x[:, rows] for name, x in rollout.items()}
                q, _ = agents(batch["inputs"], memory_before[rows], batch["begins"])
                taken = q.gather(-1, batch["action"][..., None]).squeeze(-1) * batch["acting"]
                error = (taken.sum(-1) - batch["target"]) * batch["acting"].any(-1)
                loss = 0.5 * error.square().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agents.parameters(), args.max_grad_norm)
                optimizer.step()

        steps, seconds, (returns, count) = (iteration + 1) * N * T, time.perf_counter() - start, total.tolist()
        metrics = {"steps": steps, "seconds": seconds, "speed": steps / seconds}
        metrics |= {"return": returns / count} if count else {}
        log(metrics | {"epsilon": epsilon, "loss": loss.item()})
    envs.close()
    result = {"returns": (found := evaluate(args, agents)), "return": sum(found.values()) / len(found)}
    return result | {"speed": steps / seconds, "agent": agents}


@torch.no_grad()
def evaluate(args: Args, agents: Agents, episodes: int = 256) -> dict[str, float]:
    """Mean return of each group's agents without exploration, one episode in each env."""
    with make(args, episodes) as envs:
        observations, infos = envs.reset(seed=args.seed + 1_000_000)
        over, returns = infos["ended"].bool().clone(), dict.fromkeys(envs.groups, 0.0)
        memory = torch.zeros(episodes, sum(envs.groups.values()), agents.memory, device=over.device)
        while not over.all():
            inputs, legal = agents.encode(observations)
            q, memory = agents(inputs[None], memory, over[None])
            observations, rewards, _, _, infos = envs.step(best(q[0], legal))
            returns = {g: total + (rewards[g].mean(1) * ~over).mean().item() for g, total in returns.items()}
            over |= infos["ended"].bool()
    return returns


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
    print(f"return {result['return']:.4g} at {result['speed']:,.0f} steps/s, by group {result['returns']}")
