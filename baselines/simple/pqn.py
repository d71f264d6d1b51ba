r"""PQN, Q-learning on whole batches of envs, in one file: no replay buffer, no target network. Discrete actions.

    python -m baselines.simple.pqn CartPole-v1 --seed 1
    python -m baselines.simple.pqn Breakout-MinAtar-v1 --total-steps 7000000 --num-envs 256 --num-steps 32 --epochs 2 \
        --q-lambda 0.65 --epsilon-end 0.01 --exploration 0.05 --reward-scale 1 --hidden 128 --no-conv

Gallici et al., "Simplifying Deep Temporal Difference Learning" (2024), https://arxiv.org/abs/2407.04811. In place of
buffer and target network it has [1] many envs at once, [2] LayerNorm in every layer, [3] targets of Q(lambda) from
rollouts of the present policy, [4] several epochs of minibatches on each rollout, and [5] RAdam. Teams: `pqn_vdn.py`.
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


def option(default: Any, text: str) -> Any:
    return dataclasses.field(default=default, metadata={"help": text})


@dataclasses.dataclass
class Args:
    """Options of a run."""

    game: str = option("CartPole-v1", "id of a game with one agent and discrete actions; `gpuzoo list` names all")
    config: dict[str, Any] | None = option(None, """the game's parameters, as JSON: '{"length": 0.7}'""")
    seed: int = option(1, "seed of envs, weights and actions")
    total_steps: int = option(300_000, "steps of all envs together")
    num_envs: int = option(128, "envs side by side")
    num_steps: int = option(64, "steps of each env in a rollout")
    epochs: int = option(4, "passes over a rollout")
    minibatches: int = option(16, "minibatches of an epoch")
    lr: float = option(1e-3, "learning rate at the beginning")
    anneal_lr: bool = option(True, "let the learning rate fall to 0")
    gamma: float = option(0.99, "discount")
    q_lambda: float = option(0.95, "between one-step targets (0) and Monte Carlo returns (1)")
    epsilon_start: float = option(1.0, "share of random actions at the beginning")
    epsilon_end: float = option(0.05, "share of random actions in the end")
    exploration: float = option(0.2, "fraction of the run until epsilon_end is reached")
    max_grad_norm: float = option(10.0, "largest norm of the gradient")
    reward_scale: float = option(0.1, "factor of rewards")
    hidden: int = option(64, "width of the hidden layers")
    conv: bool = option(True, "begin with a convolution where observations are images; slow on a CPU")
    device: str = option("auto", "auto, cpu, cuda or cuda:1")
    threads: int = option(1, "CPU threads of the envs, and of torch")

    def __post_init__(self) -> None:
        game, rollout = gpuzoo.get(self.game), self.num_envs * self.num_steps
        if not type(game).single() and "group" not in (self.config or {}):
            raise ValueError(f"{game.id} has several agents: train teams with qmix.py, or one by its group in config.")
        for name in ("num_envs", "num_steps", "epochs", "minibatches", "hidden", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if rollout % self.minibatches:
            raise ValueError(f"minibatches must divide num_envs * num_steps = {rollout}: {self.minibatches} does not.")
        if self.total_steps < rollout:
            raise ValueError(f"total_steps must be at least num_envs * num_steps = {rollout}, not {self.total_steps}.")


# ---- networks ----


def sizes_of(space: spaces.Space[Any]) -> list[int]:
    """Numbers of choices of a Discrete or MultiDiscrete space; none of a Box."""
    return [int(n) for n in np.ravel(getattr(space, "nvec", getattr(space, "n", ())))]


class QNetwork(nn.Module):
    """The value of each action: two hidden layers with LayerNorm [2]; of images the first one is a convolution."""

    def __init__(self, observed: spaces.Space[Any], actions: int, hidden: int, conv: bool) -> None:
        super().__init__()
        shape, self.one_hot = observed.shape or (), sizes_of(observed)
        self.image = conv and len(shape) == 3 and not self.one_hot  # (height, width, channels)
        first: nn.Module = nn.Linear(sum(self.one_hot) or math.prod(shape), width := hidden)
        if self.image:
            stride = 1 if max(shape) <= 16 else 2
            first, width = nn.Conv2d(shape[2], 16, 3, stride), 16 * math.prod((n - 3) // stride + 1 for n in shape[:2])
        self.layers = nn.Sequential(
            first, nn.Flatten(), nn.LayerNorm(width), nn.ReLU(),
            nn.Linear(width, hidden), nn.LayerNorm(hidden), nn.ReLU(),
            nn.Linear(hidden, actions),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        if self.image:
            return self.layers(x.permute(0, 3, 1, 2).float())
        x = x.flatten(1) if x.ndim > 1 else x.unsqueeze(1)
        if self.one_hot:
            x = torch.cat([F.one_hot(c.long(), n) for c, n in zip(x.unbind(1), self.one_hot, strict=True)], 1)
        return self.layers(x.float())


def greedy(q: Tensor, legal: Tensor | None) -> tuple[Tensor, Tensor]:
    """Value and index of the best legal action."""
    best = q if legal is None else q.masked_fill(legal == 0, -math.inf)
    return best.max(-1)


def explore(action: Tensor, q: Tensor, legal: Tensor | None, epsilon: float) -> Tensor:
    """Random legal actions in place of some."""
    noise = torch.rand_like(q)
    noise = noise if legal is None else noise * legal
    return torch.where(torch.rand(len(q), device=q.device) < epsilon, noise.argmax(-1), action)


def lambda_returns(rewards: Tensor, dones: Tensor, values: Tensor, gamma: float, q_lambda: float) -> Tensor:
    """Targets (T, n) from rewards and ends of episodes (T, n) and the best actions' values (T + 1, n) [3]."""
    targets, target = torch.empty_like(rewards), values[-1]
    for t in reversed(range(len(rewards))):
        following = q_lambda * target + (1 - q_lambda) * values[t + 1]
        targets[t] = target = rewards[t] + gamma * (1 - dones[t]) * following
    return targets


# ---- training ----


def make(args: Args, num_envs: int, autoreset_mode: str) -> gpuzoo.VectorEnv:
    return gpuzoo.make_vec(
        args.game, num_envs, device=args.device, threads=args.threads, autoreset_mode=autoreset_mode,
        output="torch", copy=False, masks="info", statistics=True, **(args.config or {}),
    )  # fmt: skip


def train(args: Args, log: Callable[[dict[str, float]], None] | None = None) -> dict[str, Any]:
    """Trains a Q-network.

    Args:
        args: the options.
        log: called once per iteration with its figures; by default a line is printed every two seconds.

    Returns:
        ``return``: mean return of the greedy policy, over 128 episodes; ``speed``: env steps per second; ``agent``: the
        network.
    """
    log = log or printer()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    envs = make(args, args.num_envs, "same_step")  # [1]
    if not isinstance(envs.single_action_space, spaces.Discrete):
        raise ValueError(f"pqn.py needs discrete actions, which {args.game} does not have: see sac.py and td3.py.")
    obs, infos = envs.reset(seed=args.seed)  # the simulator's own memory: the next step overwrites it
    device, T, N = obs.device, args.num_steps, args.num_envs
    agent = QNetwork(envs.single_observation_space, int(envs.single_action_space.n), args.hidden, args.conv).to(device)
    optimizer = torch.optim.RAdam(agent.parameters(), lr=args.lr, foreach=True)  # [5]

    observations = torch.zeros(T, *obs.shape, dtype=obs.dtype, device=device)
    finals, actions = torch.zeros_like(observations), torch.zeros(T, N, dtype=torch.int64, device=device)
    legal, final_legal = None, None
    if "action_mask" in infos:
        final_legal = torch.zeros(T, *infos["action_mask"].shape, dtype=torch.int8, device=device)
    rewards, dones, truncations = (torch.zeros(T, N, device=device) for _ in range(3))
    values = torch.zeros(T + 1, N, device=device)

    iterations, start = args.total_steps // (N * T), time.perf_counter()
    for iteration in range(iterations):
        progress = iteration / iterations
        optimizer.param_groups[0]["lr"] = args.lr * (1 - progress) if args.anneal_lr else args.lr
        epsilon = args.epsilon_start + min(1, progress / args.exploration) * (args.epsilon_end - args.epsilon_start)
        ended = torch.zeros(2, device=device)  # sum of returns, and number, of the episodes that ended

        with torch.no_grad():
            for t in range(T):
                observations[t], legal = obs, infos.get("action_mask")
                q = agent(obs)
                values[t], best = greedy(q, legal)
                actions[t] = explore(best, q, legal, epsilon)
                obs, reward, terminated, truncated, infos = envs.step(actions[t])
                done = terminated | truncated
                rewards[t], dones[t], finals[t] = reward, done, infos["final_obs"]
                truncations[t] = truncated & ~terminated
                if final_legal is not None:
                    final_legal[t] = infos["final_info"]["action_mask"]
                ended += torch.stack([infos["episode"]["r"][done].sum(), done.sum()])
            values[T] = greedy(agent(obs), infos.get("action_mask"))[0]
            rewards *= args.reward_scale

            # A truncated episode bootstraps from the value of its final observation.
            cut = truncations.nonzero(as_tuple=True)
            rewards[cut] += (
                args.gamma * greedy(agent(finals[cut]), None if final_legal is None else final_legal[cut])[0]
            )
            targets = lambda_returns(rewards, dones, values, args.gamma, args.q_lambda)

        batch = observations.flatten(0, 1), actions.flatten(), targets.flatten()
        for _ in range(args.epochs):  # [4]
            for rows in torch.randperm(N * T, device=device).view(args.minibatches, -1):
                observation, action, target = (x[rows] for x in batch)
                q = agent(observation).gather(1, action.unsqueeze(1)).squeeze(1)
                loss = 0.5 * (q - target).square().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
                optimizer.step()

        steps, seconds, (total, count) = (iteration + 1) * N * T, time.perf_counter() - start, ended.tolist()
        metrics = {"steps": float(steps), "seconds": seconds, "speed": steps / seconds}
        metrics |= {"return": total / count} if count else {}
        log(metrics | {"epsilon": epsilon, "loss": loss.item(), "q": values.mean().item()})
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
