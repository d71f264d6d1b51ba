"""SAC, off-policy actor-critic with maximal entropy, in one file: continuous actions, games of one agent.

    python -m baselines.simple.sac Pendulum-v1 --seed 1

Haarnoja et al., "Soft Actor-Critic Algorithms and Applications" (2018), https://arxiv.org/abs/1812.05905. In brackets:
[1] a Gaussian squashed by tanh, [2] twin critics, whose smaller value counts, [3] target critics that follow slowly,
[4] a temperature that keeps the entropy at a target.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import time
from collections.abc import Callable
from itertools import pairwise
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

    game: str = option("Pendulum-v1", "id of a game with one agent and continuous actions; `gpuzoo list` names all")
    config: dict[str, Any] | None = option(None, """the game's parameters, as JSON: '{"length": 0.7}'""")
    seed: int = option(1, "seed of envs, weights and actions")
    total_steps: int = option(40_000, "steps of all envs together")
    num_envs: int = option(16, "envs side by side")
    learning_starts: int = option(2_000, "steps with random actions at the beginning")
    updates: int = option(2, "updates after each step of the batch of envs")
    policy_delay: int = option(1, "updates of the critics for one of policy and temperature")
    batch_size: int = option(256, "transitions of an update")
    buffer_size: int = option(200_000, "transitions in the replay buffer")
    n_step: int = option(1, "steps that a target looks ahead")
    gamma: float = option(0.99, "discount")
    tau: float = option(0.02, "how far target critics follow in an update")
    reward_scale: float = option(1.0, "factor of rewards")
    alpha: float = option(1.0, "temperature at the beginning, above 0")
    target_entropy: float = option(-1.0, "of each action, which is in [-1, 1]")
    actor_lr: float = option(2e-3, "learning rate of policy and temperature")
    critic_lr: float = option(2e-3, "learning rate of the critics")
    hidden: int = option(64, "width of the two hidden layers")
    layer_norm: bool = option(False, "LayerNorm in the critics")
    normalize_observations: bool = option(False, "by running mean and deviation")
    device: str = option("auto", "auto, cpu, cuda or cuda:1")
    threads: int = option(1, "CPU threads of the envs, and of torch")

    def __post_init__(self) -> None:
        game = gpuzoo.get(self.game)
        if not type(game).single() and "group" not in (self.config or {}):
            raise ValueError(f"{game.id} has several agents: train one of them by its group in config.")
        for name in ("num_envs", "updates", "policy_delay", "batch_size", "hidden", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.total_steps < self.num_envs:
            raise ValueError(f"total_steps must be at least num_envs = {self.num_envs}, not {self.total_steps}.")


# ---- networks ----


class Moments(nn.Module):
    """Running mean and variance, saved with the weights."""

    def __init__(self, size: int) -> None:
        super().__init__()
        start = (torch.zeros(size), torch.ones(size), torch.zeros(()))
        self.mean, self.var, self.count = (nn.Parameter(x, requires_grad=False) for x in start)

    def update(self, x: Tensor) -> None:
        var, mean = torch.var_mean(x, 0, correction=0)
        delta, share = mean - self.mean, len(x) / (self.count + len(x))
        self.var.add_((var - self.var + delta**2 * (1 - share)) * share)
        self.mean.add_(delta * share)
        self.count.add_(len(x))


class Actor(nn.Module):
    """A Gaussian policy whose samples are squashed into [-1, 1] by tanh [1]."""

    def __init__(self, size: int, actions: int, hidden: int, normalize: bool = False) -> None:
        super().__init__()
        self.moments = Moments(size) if normalize else None
        self.layers = nn.Sequential(
            nn.Linear(size, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2 * actions)
        )

    def seen(self, observation: Tensor) -> Tensor:
        """Observations (n, size) as actor and critics take them."""
        x, m = observation.flatten(1).float(), self.moments
        return x if m is None else ((x - m.mean) * (m.var + 1e-8).rsqrt()).clamp(-10, 10)

    def forward(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        """A sample (n, actions) and its log probability (n,)."""
        mean, log_std = self.layers(seen).chunk(2, -1)
        log_std = -5 + 3.5 * (log_std.tanh() + 1)  # in [-5, 2]
        noise = torch.randn_like(mean)
        x = mean + noise * log_std.exp()
        log_prob = -0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi)
        log_prob = log_prob - 2 * (math.log(2) - x - F.softplus(-2 * x))  # log of the derivative of tanh
        return x.tanh(), log_prob.sum(-1)

    def mean(self, seen: Tensor) -> Tensor:
        return self.layers(seen).chunk(2, -1)[0].tanh()


class Critics(nn.Module):
    """Twin Q-functions side by side [2]: each layer is one product of matrices for both."""

    def __init__(self, size: int, hidden: int, layer_norm: bool = False, count: int = 2) -> None:
        super().__init__()
        self.layer_norm = layer_norm
        sizes = [size, hidden, hidden, 1]
        layers = [[nn.Linear(a, b) for _ in range(count)] for a, b in pairwise(sizes)]
        self.weights = nn.ParameterList(torch.stack([x.weight.data.T for x in layer]) for layer in layers)
        self.biases = nn.ParameterList(torch.stack([x.bias.data[None] for x in layer]) for layer in layers)

    def forward(self, seen: Tensor, action: Tensor) -> Tensor:
        """Values (2, n)."""
        x = torch.cat([seen, action], -1).expand(len(self.weights[0]), -1, -1)
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if i and self.layer_norm:
                x = F.layer_norm(x, x.shape[-1:])
            x = torch.baddbmm(bias, x.relu() if i else x, weight)
        return x.squeeze(-1)


# ---- training ----


def make(args: Args, num_envs: int, autoreset_mode: str) -> gpuzoo.VectorEnv:
    return gpuzoo.make_vec(
        args.game, num_envs, device=args.device, threads=args.threads, autoreset_mode=autoreset_mode,
        output="torch", statistics=True, **(args.config or {}),
    )  # fmt: skip


def scaled(action: Tensor, space: Any) -> Tensor:
    """An action in [-1, 1] as the env takes it."""
    low, high = (torch.as_tensor(x, device=action.device) for x in (space.low, space.high))
    return (low + (action.reshape(-1, *space.shape) + 1) * (0.5 * (high - low))).clamp(low, high)


def train(args: Args, log: Callable[[dict[str, float]], None] | None = None) -> dict[str, Any]:
    """Trains an actor.

    Args:
        args: the options.
        log: called a hundred times with the figures of the run; by default a line is printed every two seconds.

    Returns:
        ``return``: mean return of the policy without noise, over 128 episodes; ``speed``: env steps per second;
        ``agent``: the actor.
    """
    log = log or printer()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    envs = make(args, args.num_envs, "same_step")
    acts, observed, N = envs.single_action_space, envs.single_observation_space, args.num_envs
    if not (
        isinstance(acts, spaces.Box) and np.isfinite([acts.low, acts.high]).all() and isinstance(observed, spaces.Box)
    ):
        raise ValueError(f"sac.py needs bounded continuous actions and observations in a Box: {args.game} has others.")
    obs, _ = envs.reset(seed=args.seed)
    device, size, actions = obs.device, math.prod(observed.shape), math.prod(acts.shape)
    actor = Actor(size, actions, args.hidden, args.normalize_observations).to(device)
    critics, targets = (Critics(size + actions, args.hidden, args.layer_norm).to(device) for _ in range(2))
    targets.load_state_dict(critics.state_dict())
    log_alpha = torch.tensor(math.log(args.alpha), device=device, requires_grad=True)  # of the temperature
    learned = [*actor.layers.parameters(), log_alpha]
    actor_optimizer = torch.optim.Adam(learned, lr=args.actor_lr, fused=True)
    critic_optimizer = torch.optim.Adam(critics.parameters(), lr=args.critic_lr, fused=True)
    buffer = ReplayBuffer(args.buffer_size, n_step=args.n_step, gamma=args.gamma)
    figures = torch.zeros(4, device=device)  # loss and mean of the critics, entropy, temperature

    def update_critics(batch: dict[str, Tensor]) -> None:
        seen, next_seen = (actor.seen(batch[name]) for name in ("observation", "next_observation"))
        with torch.no_grad():
            action, log_prob = actor(next_seen)
            value = targets(next_seen, action).min(0).values - log_alpha.exp() * log_prob
            target = args.reward_scale * batch["reward"] + batch["discount"] * value
        q = critics(seen, batch["action"])
        loss = (q - target).square().mean(1).sum()
        critic_optimizer.zero_grad()
        loss.backward()
        critic_optimizer.step()
        with torch.no_grad():  # [3]
            for old, new in zip(targets.parameters(), critics.parameters(), strict=True):
                old.lerp_(new, args.tau)
        figures[0], figures[1] = loss.detach(), q.detach().mean()

    def update_actor(batch: dict[str, Tensor]) -> None:
        seen, alpha = actor.seen(batch["observation"]), log_alpha.exp().detach()
        action, log_prob = actor(seen)
        entropy = -log_prob.detach().mean()
        loss = (alpha * log_prob - critics(seen, action).min(0).values).mean()
        loss = loss + log_alpha * (entropy - args.target_entropy * actions)  # [4]
        actor_optimizer.zero_grad()
        loss.backward(inputs=learned)  # the critics stay as they are
        actor_optimizer.step()
        figures[2], figures[3] = entropy, alpha

    iterations, start = args.total_steps // N, time.perf_counter()
    every, updated = max(1, iterations // 100), 0
    ended = torch.zeros(2, device=device)  # sum of returns, and number, of the episodes that ended
    for iteration in range(1, iterations + 1):
        with torch.no_grad():
            if actor.moments is not None:
                actor.moments.update(obs.flatten(1).float())
            action = actor(actor.seen(obs))[0]
        if iteration * N <= args.learning_starts:
            action = action.uniform_(-1, 1)
        next_obs, reward, terminated, truncated, infos = envs.step(scaled(action, acts))
        buffer.add(
            observation=obs, action=action, reward=reward, terminated=terminated, truncated=truncated,
            next_observation=next_obs, final_observation=infos["final_obs"],
        )  # fmt: skip
        obs, done = next_obs, terminated | truncated
        ended += torch.stack([torch.where(done, infos["episode"]["r"], 0).sum(), done.sum()])

        if iteration * N > args.learning_starts:
            drawn = buffer.sample(args.updates * args.batch_size)
            for parts in zip(*(x.chunk(args.updates) for x in drawn.values()), strict=True):
                batch, updated = dict(zip(drawn, parts, strict=True)), updated + 1
                update_critics(batch)
                if updated % args.policy_delay == 0:
                    update_actor(batch)
        if iteration % every == 0 or iteration == iterations:
            steps, seconds, (total, count) = iteration * N, time.perf_counter() - start, ended.tolist()
            metrics = {"steps": float(steps), "seconds": seconds, "speed": steps / seconds}
            metrics |= {"return": total / count} if count else {}
            log(metrics | dict(zip(("critic_loss", "q", "entropy", "alpha"), figures.tolist(), strict=True)))
            ended.zero_()
    envs.close()
    return {"return": evaluate(args, actor), "speed": steps / seconds, "agent": actor}


@torch.no_grad()
def evaluate(args: Args, actor: Actor, episodes: int = 128) -> float:
    """Mean return of the policy without noise, one episode in each env."""
    envs = make(args, episodes, "disabled")  # an env that has finished stands still, and its reward is 0
    obs, _ = envs.reset(seed=args.seed + 1_000_000)
    total = torch.zeros(episodes, device=obs.device)
    finished = torch.zeros_like(total, dtype=torch.bool)
    while not finished.all():
        action = scaled(actor.mean(actor.seen(obs)), envs.single_action_space)
        obs, reward, terminated, truncated, _ = envs.step(action)
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
