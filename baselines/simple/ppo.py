"""PPO for games of one agent: feed-forward networks, discrete and continuous actions, images.

    python -m baselines.simple.ppo CartPole-v1 --seed 1

Schulman et al., "Proximal Policy Optimization Algorithms" (2017). Numbers in brackets are the 13 core details of Huang
et al., "The 37 Implementation Details of Proximal Policy Optimization" (2022); [1] is that envs are stepped as a batch.
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
from torch.distributions import Independent, Normal

import gpuzoo


def option(default: Any, text: str) -> Any:
    return dataclasses.field(default=default, metadata={"help": text})


@dataclasses.dataclass
class Args:
    """Options of a run."""

    game: str = option("CartPole-v1", "id of the game; `gpuzoo list` names all")
    config: dict[str, Any] | None = option(None, """the game's parameters, as JSON: '{"length": 0.7}'""")
    seed: int = option(1, "seed of envs, weights and actions")
    total_steps: int = option(1_000_000, "steps of all envs together")
    num_envs: int = option(1024, "envs side by side")
    num_steps: int = option(32, "steps of each env in a rollout")
    epochs: int = option(2, "passes over a rollout")
    minibatches: int = option(16, "minibatches of an epoch")
    lr: float = option(2.5e-3, "learning rate at the beginning")
    anneal_lr: bool = option(True, "let the learning rate fall to 0 linearly")
    gamma: float = option(0.99, "discount")
    gae_lambda: float = option(0.95, "lambda of generalised advantage estimation")
    clip_eps: float = option(0.2, "how far the ratio of probabilities may move from 1")
    clip_values: bool = option(False, "clip the change of the value function, too: for small returns")
    ent_coef: float = option(0.01, "weight of the entropy bonus")
    vf_coef: float = option(0.5, "weight of the value loss")
    max_grad_norm: float = option(0.5, "largest norm of the gradient")
    normalize_observations: bool = option(False, "by running mean and deviation")
    normalize_rewards: bool = option(False, "by the running deviation of discounted returns")
    hidden: int = option(64, "width of the two hidden layers")
    device: str = option("auto", "auto, cpu, cuda or cuda:1")
    threads: int = option(1, "CPU threads of the envs, and of torch")
    compile: bool = option(False, "torch.compile the loss")

    def __post_init__(self) -> None:
        game, rollout = gpuzoo.get(self.game), self.num_envs * self.num_steps
        if not type(game).single() and "group" not in (self.config or {}):
            raise ValueError(f"{game.id} has several agents: train them with mappo.py, or one by its group in config.")
        for name in ("num_envs", "num_steps", "epochs", "minibatches", "hidden", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if rollout % self.minibatches:
            raise ValueError(f"minibatches must divide num_envs * num_steps = {rollout}: {self.minibatches} does not.")
        if self.total_steps < rollout:
            raise ValueError(f"total_steps must be at least num_envs * num_steps = {rollout}, not {self.total_steps}.")


def layer(module: nn.Linear | nn.Conv2d, gain: float = math.sqrt(2)) -> nn.Linear | nn.Conv2d:
    """[2] Orthogonal weights, biases of 0."""
    nn.init.orthogonal_(module.weight, gain)
    nn.init.zeros_(module.bias)  # type: ignore[arg-type]
    return module


def mlp(inputs: int, hidden: int, outputs: int, gain: float) -> nn.Sequential:
    first, second, last = nn.Linear(inputs, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, outputs)
    return nn.Sequential(layer(first), nn.Tanh(), layer(second), nn.Tanh(), layer(last, gain))


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


class Choices:
    """Categorical distributions: one for a Discrete action, several side by side for a MultiDiscrete one."""

    def __init__(self, logits: Tensor, sizes: list[int], legal: Tensor | None) -> None:
        if legal is not None:
            logits = logits.masked_fill(legal == 0, -1e9)
        self.parts = [x.log_softmax(-1) for x in logits.split(sizes, -1)]

    def sample(self) -> Tensor:
        noise = (torch.empty_like(x).exponential_().log() for x in self.parts)  # the largest of log p - log Exp(1)
        return torch.stack([(x - n).argmax(-1) for x, n in zip(self.parts, noise, strict=True)], -1)

    def log_prob(self, action: Tensor) -> Tensor:
        found = [x.gather(-1, a) for x, a in zip(self.parts, action.split(1, -1), strict=True)]
        return torch.cat(found, -1).sum(-1)

    def entropy(self) -> Tensor:
        return torch.stack([-(x.exp() * x).sum(-1) for x in self.parts]).sum(0)


def sizes_of(space: spaces.Space[Any]) -> list[int]:
    """Numbers of choices of a Discrete or MultiDiscrete space; none of a Box."""
    return [int(n) for n in np.ravel(getattr(space, "nvec", getattr(space, "n", ())))]


class Agent(nn.Module):
    """Policy and value function: two networks [13]; for images (height, width, channels) they share a convolution."""

    def __init__(self, observed: spaces.Space[Any], acted: spaces.Space[Any], args: Args) -> None:
        super().__init__()
        shape, self.one_hot, self.choices = observed.shape or (), sizes_of(observed), sizes_of(acted)
        size = sum(self.one_hot) or math.prod(shape)
        outputs = sum(self.choices) or math.prod(acted.shape or ())
        self.log_std = None if self.choices else nn.Parameter(torch.zeros(outputs))
        self.image = len(shape) == 3 and not self.one_hot
        self.moments = Moments(size) if args.normalize_observations and not self.image else None
        if not self.image:
            self.policy, self.critic = mlp(size, args.hidden, outputs, 0.01), mlp(size, args.hidden, 1, 1.0)
            return
        stride = 1 if max(shape) <= 16 else 2
        pixels = math.prod((n - 3) // stride + 1 for n in shape[:2])
        first, second = nn.Conv2d(shape[2], 16, 3, stride), nn.Linear(16 * pixels, 128)
        self.shared = nn.Sequential(layer(first), nn.ReLU(), nn.Flatten(), layer(second), nn.ReLU())
        self.policy, self.critic = (nn.Sequential(layer(nn.Linear(128, n), g)) for n, g in ((outputs, 0.01), (1, 1.0)))

    def features(self, x: Tensor) -> Tensor:
        if self.image:
            return self.shared(x.permute(0, 3, 1, 2).float())
        x = x.flatten(1) if x.ndim > 1 else x.unsqueeze(1)
        if self.one_hot:
            x = torch.cat([F.one_hot(c.long(), n) for c, n in zip(x.unbind(1), self.one_hot, strict=True)], 1)
        if self.moments is not None:
            x = ((x - self.moments.mean) * (self.moments.var + 1e-8).rsqrt()).clamp(-10, 10)
        return x.float()

    def forward(self, observation: Tensor, legal: Tensor | None = None) -> tuple[Any, Tensor]:
        x = self.features(observation)
        out, value = self.policy(x), self.critic(x).squeeze(-1)
        if self.log_std is None:
            return Choices(out, self.choices, legal), value
        std = self.log_std.exp().expand_as(out)  # not a function of the observation
        return Independent(Normal(out, std, validate_args=False), 1, validate_args=False), value


def train(args: Args, log: Callable[[dict[str, float]], None] | None = None) -> dict[str, Any]:
    """Trains an agent; ``log`` takes the figures of each iteration, by default a line is printed every two seconds.

    Returns the mean "return" of episodes that ended in the last tenth of the run, "speed" in steps/s, and the "agent".
    """
    log = log or printer()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    envs = gpuzoo.make_vec(
        args.game, args.num_envs, device=args.device, threads=args.threads, autoreset_mode="same_step",
        output="torch", copy=False, masks="info", statistics=True, **(args.config or {}),
    )  # fmt: skip
    obs, infos = envs.reset(seed=args.seed)  # the simulator's own memory: the next step overwrites it
    device, T, N, acts = obs.device, args.num_steps, args.num_envs, envs.single_action_space
    agent = Agent(envs.single_observation_space, acts, args).to(device)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.lr, eps=1e-5, fused=True)  # [3]

    def buffer(like: Tensor) -> Tensor:
        return torch.zeros(T, *like.shape, dtype=like.dtype, device=device)

    per_env = torch.zeros(N, device=device)
    observations, finals = buffer(obs), buffer(obs)
    masks = {"legal": buffer(infos["action_mask"])} if "action_mask" in infos else {}
    width = len(agent.choices) or math.prod(acts.shape or ())
    actions = buffer(per_env.unsqueeze(1).expand(N, width).to(torch.int64 if agent.choices else torch.float32))
    log_probs, values, rewards, advantages, dones, truncations = (buffer(per_env) for _ in range(6))
    bounds = [torch.as_tensor(getattr(acts, x), device=device) for x in ("low", "high") if hasattr(acts, x)]
    discounted, reward_moments = per_env.clone(), Moments(1).to(device)

    def loss_of(mb: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        distribution, value = agent(mb["observation"], mb.get("legal"))
        log_ratio = distribution.log_prob(mb["action"]) - mb["log_prob"]
        ratio, advantage, entropy = log_ratio.exp(), mb["advantage"], distribution.entropy().mean()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)  # [7]
        clipped = ratio.clamp(1 - args.clip_eps, 1 + args.clip_eps)  # [8]
        policy_loss = -torch.min(ratio * advantage, clipped * advantage).mean()
        error = (value - mb["target"]) ** 2
        if args.clip_values:  # [9]
            near = mb["value"] + (value - mb["value"]).clamp(-args.clip_eps, args.clip_eps)
            error = torch.max(error, (near - mb["target"]) ** 2)
        value_loss = 0.5 * error.mean()
        loss = policy_loss - args.ent_coef * entropy + args.vf_coef * value_loss  # [10]
        kl, share = (ratio - 1 - log_ratio).mean(), (ratio != clipped).float().mean()  # [12]
        return loss, torch.stack([policy_loss, value_loss, entropy, kl, share]).detach()

    loss_of = torch.compile(loss_of) if args.compile else loss_of
    iterations, start, history = args.total_steps // (N * T), time.perf_counter(), []
    for iteration in range(iterations):
        if args.anneal_lr:  # [4]
            optimizer.param_groups[0]["lr"] = args.lr * (1 - iteration / iterations)
        history.append(ended := torch.zeros(2, device=device))  # sum of returns, and number, of episodes that ended

        with torch.no_grad():
            for t in range(T):
                observations[t] = obs
                if masks:
                    masks["legal"][t] = infos["action_mask"]
                distribution, values[t] = agent(obs, infos.get("action_mask"))
                actions[t] = action = distribution.sample()
                log_probs[t] = distribution.log_prob(action)
                action = action.clamp(*bounds) if bounds else action  # what is stored is the one before
                obs, reward, terminated, truncated, infos = envs.step(action.reshape(N, *(acts.shape or ())))
                done = terminated | truncated
                rewards[t], dones[t], finals[t] = reward, done, infos["final_obs"]
                truncations[t] = truncated & ~terminated
                ended += torch.stack([(infos["episode"]["r"] * done).sum(), done.sum()])
                if args.normalize_rewards:
                    discounted = discounted * args.gamma + reward
                    reward_moments.update(discounted.unsqueeze(1))
                    rewards[t] = (reward * (reward_moments.var + 1e-8).rsqrt()).clamp(-10, 10)
                    discounted = discounted * ~done

            # A truncated episode bootstraps from the value of its final observation.
            cut = truncations.nonzero(as_tuple=True)
            rewards[cut] += args.gamma * agent(finals[cut])[1]
            next_value, advantage = agent(obs)[1], per_env
            for t in reversed(range(T)):  # [5]
                future = args.gamma * (1 - dones[t]) * (next_value + args.gae_lambda * advantage)
                advantages[t] = advantage = rewards[t] + future - values[t]
                next_value = values[t]

        targets = advantages + values
        batch = {"observation": observations, "action": actions, "log_prob": log_probs, "value": values,
                 "advantage": advantages, "target": targets, **masks}  # fmt: skip
        batch = {name: x.flatten(0, 1) for name, x in batch.items()}
        for _ in range(args.epochs):
            for rows in torch.randperm(N * T, device=device).view(args.minibatches, -1):  # [6]
                loss, figures = loss_of({name: x[rows] for name, x in batch.items()})
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)  # [11]
                optimizer.step()
        if agent.moments is not None:  # not before the update: it needs the observations as the policy saw them
            agent.moments.update(batch["observation"].flatten(1).float())

        (total, count), steps, seconds = ended.tolist(), (iteration + 1) * N * T, time.perf_counter() - start
        metrics = {"steps": steps, "seconds": seconds, "speed": steps / seconds}
        metrics |= {"return": total / count} if count else {}
        names = ("policy_loss", "value_loss", "entropy", "kl", "clipped")
        explained = 1 - (targets - values).var() / targets.var().clamp(min=1e-8)
        log(metrics | {"explained_variance": explained.item()} | dict(zip(names, figures.tolist(), strict=True)))
    envs.close()
    total, count = torch.stack(history[-max(1, iterations // 10) :]).sum(0).tolist()
    return {"return": total / count if count else math.nan, "speed": steps / seconds, "agent": agent}


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
