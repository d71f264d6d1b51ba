"""DQN with its best-known improvements, in one file: discrete actions, games of one agent.

    python -m baselines.simple.dqn CartPole-v1 --seed 1

Mnih et al., "Human-level control through deep reinforcement learning" (2015). In brackets: [1] double Q-learning, van
Hasselt et al. (2015), [2] a dueling network, Wang et al. (2015), [3] n-step returns, whose windows the buffer cuts at
the ends of episodes, [4] a target network that follows slowly, [5] LayerNorm, which keeps bootstrapped values stable,
Gallici et al. (2024). Teams: see `qmix.py`.
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
from torch import Tensor, nn

import gpuzoo
from gpuzoo.wrappers.replay import ReplayBuffer


def option(default: Any, text: str) -> Any:
    return dataclasses.field(default=default, metadata={"help": text})


@dataclasses.dataclass
class Args:
    """Options of a run."""

    game: str = option("CartPole-v1", "id of a game with one agent and discrete actions; `gpuzoo list` names all")
    config: dict[str, Any] | None = option(None, """the game's parameters, as JSON: '{"length": 0.7}'""")
    seed: int = option(1, "seed of envs, weights and actions")
    total_steps: int = option(60_000, "steps of all envs together")
    num_envs: int = option(32, "envs side by side")
    learning_starts: int = option(2_000, "steps with random actions at the beginning")
    updates: int = option(2, "updates after each step of the batch of envs")
    batch_size: int = option(128, "transitions of an update")
    buffer_size: int = option(50_000, "transitions in the replay buffer")
    n_step: int = option(10, "steps that a target looks ahead")
    gamma: float = option(0.99, "discount")
    lr: float = option(2e-3, "learning rate at the beginning")
    anneal_lr: bool = option(True, "let the learning rate fall to 0 linearly")
    tau: float = option(0.02, "how far the target network follows in an update")
    double: bool = option(True, "choose the target's action by the online network")
    dueling: bool = option(False, "sum a value and advantages in the network")
    epsilon_start: float = option(1.0, "share of random actions at the beginning")
    epsilon_end: float = option(0.1, "share of random actions in the end")
    exploration: float = option(0.3, "fraction of the run until epsilon_end is reached")
    max_grad_norm: float = option(10.0, "largest norm of the gradient")
    hidden: int = option(64, "width of the hidden layers")
    device: str = option("auto", "auto, cpu, cuda or cuda:1")
    threads: int = option(1, "CPU threads of the envs, and of torch")

    def __post_init__(self) -> None:
        game = gpuzoo.get(self.game)
        if not type(game).single() and "group" not in (self.config or {}):
            raise ValueError(f"{game.id} has several agents: train teams with qmix.py, or one by its group in config.")
        for name in ("num_envs", "updates", "batch_size", "hidden", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.total_steps < self.num_envs:
            raise ValueError(f"total_steps must be at least num_envs = {self.num_envs}, not {self.total_steps}.")


# ---- networks ----


def sizes_of(space: spaces.Space[Any]) -> list[int]:
    """Numbers of choices of a Discrete or MultiDiscrete space; none of a Box."""
    return [int(n) for n in np.ravel(getattr(space, "nvec", getattr(space, "n", ())))]


class QNetwork(nn.Module):
    """The value of each action: two hidden layers [5]; for images (height, width, channels) one is a convolution."""

    def __init__(self, observed: spaces.Space[Any], actions: int, args: Args) -> None:
        super().__init__()
        shape, self.one_hot, self.dueling = observed.shape or (), sizes_of(observed), args.dueling
        self.image = len(shape) == 3 and not self.one_hot
        first: nn.Module = nn.Linear(sum(self.one_hot) or math.prod(shape), width := args.hidden)
        if self.image:
            stride = 1 if max(shape) <= 16 else 2
            first, width = nn.Conv2d(shape[2], 16, 3, stride), 16 * math.prod((n - 3) // stride + 1 for n in shape[:2])
        self.layers = nn.Sequential(
            first, nn.Flatten(), nn.LayerNorm(width), nn.ReLU(),
            nn.Linear(width, args.hidden), nn.LayerNorm(args.hidden), nn.ReLU(),
        )  # fmt: skip
        self.advantage, self.value = nn.Linear(args.hidden, actions), nn.Linear(args.hidden, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = x.permute(0, 3, 1, 2) if self.image else x.flatten(1) if x.ndim > 1 else x.unsqueeze(1)
        if self.one_hot:
            x = torch.cat([F.one_hot(c.long(), n) for c, n in zip(x.unbind(1), self.one_hot, strict=True)], 1)
        x = self.layers(x.float())
        advantage = self.advantage(x)
        return self.value(x) + advantage - advantage.mean(1, keepdim=True) if self.dueling else advantage  # [2]


def greedy(q: Tensor, legal: Tensor | None) -> tuple[Tensor, Tensor]:
    """Value and index of the best legal action."""
    best = q if legal is None else q.masked_fill(legal == 0, -math.inf)
    return best.max(-1)


def explore(action: Tensor, q: Tensor, legal: Tensor | None, epsilon: float) -> Tensor:
    """Random legal actions in place of some."""
    noise = torch.rand_like(q)
    noise = noise if legal is None else noise * legal
    return torch.where(torch.rand(len(q), device=q.device) < epsilon, noise.argmax(-1), action)


# ---- training ----


def make(args: Args, num_envs: int, autoreset_mode: str) -> gpuzoo.VectorEnv:
    return gpuzoo.make_vec(
        args.game, num_envs, device=args.device, threads=args.threads, autoreset_mode=autoreset_mode,
        output="torch", masks="info", statistics=True, **(args.config or {}),
    )  # fmt: skip


def train(args: Args, log: Callable[[dict[str, float]], None] | None = None) -> dict[str, Any]:
    """Trains a Q-network.

    Args:
        args: the options.
        log: called a hundred times with the figures of the run; by default a line is printed every two seconds.

    Returns:
        ``return``: mean return of the greedy policy, over 128 episodes; ``speed``: env steps per second; ``agent``: the
        network.
    """
    log = log or printer()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    envs = make(args, args.num_envs, "same_step")
    acts, N = envs.single_action_space, args.num_envs
    if not isinstance(acts, spaces.Discrete):
        raise ValueError(f"dqn.py needs discrete actions, which {args.game} does not have: see sac.py and td3.py.")
    obs, infos = envs.reset(seed=args.seed)
    device = obs.device
    agent, target_network = (QNetwork(envs.single_observation_space, int(acts.n), args).to(device) for _ in range(2))
    target_network.load_state_dict(agent.state_dict())
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.lr, fused=True)
    buffer = ReplayBuffer(args.buffer_size, n_step=args.n_step, gamma=args.gamma)  # [3]

    def update(batch: dict[str, Tensor]) -> Tensor:
        with torch.no_grad():
            q = target_network(batch["next_observation"])
            chosen = agent(batch["next_observation"]) if args.double else q  # [1]
            action = greedy(chosen, batch.get("next_legal"))[1]
            value = q.gather(1, action.unsqueeze(1)).squeeze(1)
            target = batch["reward"] + batch["discount"] * value
        q = agent(batch["observation"]).gather(1, batch["action"].unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss(q, target)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
        optimizer.step()
        with torch.no_grad():  # [4]
            for old, new in zip(target_network.parameters(), agent.parameters(), strict=True):
                old.lerp_(new, args.tau)
        return torch.stack([loss, q.mean()]).detach()

    iterations, start = args.total_steps // N, time.perf_counter()
    every, figures = max(1, iterations // 100), torch.zeros(2, device=device)
    ended = torch.zeros(2, device=device)  # sum of returns, and number, of the episodes that ended
    for iteration in range(1, iterations + 1):
        progress = iteration / iterations
        optimizer.param_groups[0]["lr"] = args.lr * (1 - progress) if args.anneal_lr else args.lr
        epsilon = args.epsilon_start + min(1, progress / args.exploration) * (args.epsilon_end - args.epsilon_start)
        with torch.no_grad():
            q, legal = agent(obs), infos.get("action_mask")
            action = explore(greedy(q, legal)[1], q, legal, epsilon if iteration * N > args.learning_starts else 1)
        next_obs, reward, terminated, truncated, infos = envs.step(action)
        masks = {} if legal is None else {
            "next_legal": infos["action_mask"], "final_legal": infos["final_info"]["action_mask"]
        }  # fmt: skip
        buffer.add(
            observation=obs, action=action, reward=reward, terminated=terminated, truncated=truncated,
            next_observation=next_obs, final_observation=infos["final_obs"], **masks,
        )  # fmt: skip
        obs, done = next_obs, terminated | truncated
        ended += torch.stack([torch.where(done, infos["episode"]["r"], 0).sum(), done.sum()])

        if iteration * N > args.learning_starts:
            for _ in range(args.updates):
                figures = update(buffer.sample(args.batch_size))
        if iteration % every == 0 or iteration == iterations:
            steps, seconds, (total, count) = iteration * N, time.perf_counter() - start, ended.tolist()
            metrics = {"steps": float(steps), "seconds": seconds, "speed": steps / seconds}
            metrics |= {"return": total / count} if count else {}
            log(metrics | {"epsilon": epsilon} | dict(zip(("loss", "q"), figures.tolist(), strict=True)))
            ended.zero_()
    envs.close()
    return {"return": evaluate(args, agent), "speed": steps / seconds, "agent": agent}


@torch.no_grad()
def evaluate(args: Args, agent: nn.Module, episodes: int = 128) -> float:
    """Mean return of the greedy policy, one episode in each env."""
    envs = make(args, episodes, "disabled")  # an env that has finished stands still, and its reward is 0
    obs, infos = envs.reset(seed=args.seed + 1_000_000)
    total = torch.zeros(episodes, device=obs.device)
    finished = torch.zeros_like(total, dtype=torch.bool)
    while not finished.all():
        obs, reward, terminated, truncated, infos = envs.step(greedy(agent(obs), infos.get("action_mask"))[1])
        total += reward
        finished |= terminated | truncated
    envs.close()
    return total.mean().item()


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
