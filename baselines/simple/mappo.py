"""MAPPO for teams: actors share weights and know their number, one critic sees the global state. Discrete actions.

    python -m baselines.simple.mappo SimpleSpread-v0 --seed 1

Yu et al., "The Surprising Effectiveness of PPO in Cooperative Multi-Agent Games" (2022); `--no-central` is IPPO, whose
critic sees what the actor sees. Numbers in brackets are the details of PPO that `ppo.py` lists. What several agents
add is marked as [M1] to [M4]. Envs reset in the step after an episode's end (Gymnasium's next-step mode), because then
`state()` is the final state at a time limit; the transition that leads to the next episode is left out.
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

    game: str = option("SimpleSpread-v0", "id of a game of several agents; `gpuzoo list` names all")
    config: dict[str, Any] | None = option(None, "the game's parameters, as JSON")
    seed: int = option(1, "seed of envs, weights and actions")
    total_steps: int = option(1_000_000, "steps of all envs together")
    num_envs: int = option(64, "envs side by side")
    num_steps: int = option(25, "steps of each env in a rollout")
    epochs: int = option(4, "passes over a rollout")
    minibatches: int = option(4, "minibatches of an epoch")
    lr: float = option(3e-3, "learning rate at the beginning")
    anneal_lr: bool = option(True, "let the learning rate fall to 0 linearly")
    gamma: float = option(0.95, "discount")
    gae_lambda: float = option(0.95, "lambda of generalised advantage estimation")
    clip_eps: float = option(0.2, "how far the ratio of probabilities may move from 1")
    clip_values: bool = option(False, "clip the change of the value function, too: for small returns")
    ent_coef: float = option(0.001, "weight of the entropy bonus")
    vf_coef: float = option(0.5, "weight of the value loss")
    max_grad_norm: float = option(0.5, "largest norm of the gradient")
    central: bool = option(True, "the critic sees the global state, not one agent's observation")
    hidden: int = option(64, "width of the two hidden layers")
    device: str = option("auto", "auto, cpu, cuda or cuda:1")
    threads: int = option(1, "CPU threads of the envs, and of torch")
    compile: bool = option(False, "torch.compile the loss")

    def __post_init__(self) -> None:
        game, rollout = gpuzoo.get(self.game), self.num_envs * self.num_steps
        if game.turn is not None or type(game).single():
            raise ValueError(f"{game.id} is no game of several agents who act at the same time, as mappo.py needs.")
        for name in ("num_envs", "num_steps", "epochs", "minibatches", "hidden", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if rollout % self.minibatches:
            raise ValueError(f"minibatches must divide num_envs * num_steps = {rollout}: {self.minibatches} does not.")
        if self.total_steps < rollout:
            raise ValueError(f"total_steps must be at least num_envs * num_steps = {rollout}, not {self.total_steps}.")


def layer(module: nn.Linear, gain: float = math.sqrt(2)) -> nn.Linear:
    """[2] Orthogonal weights, biases of 0."""
    nn.init.orthogonal_(module.weight, gain)
    nn.init.zeros_(module.bias)
    return module


def mlp(inputs: int, hidden: int, outputs: int, gain: float) -> nn.Sequential:
    first, second, last = nn.Linear(inputs, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, outputs)
    return nn.Sequential(layer(first), nn.Tanh(), layer(second), nn.Tanh(), layer(last, gain))


def sizes_of(space: spaces.Space[Any]) -> list[int]:
    """Numbers of choices of a Discrete or MultiDiscrete space; none of a Box."""
    return [int(n) for n in np.ravel(getattr(space, "nvec", getattr(space, "n", ())))]


class Agent(nn.Module):
    """Policy and value function [13] of all agents of a game."""

    def __init__(self, envs: gpuzoo.BatchEnv, args: Args) -> None:
        super().__init__()
        self.central, agents = args.central, sum(envs.groups.values())
        plain = {g: s["observation"] if isinstance(s, spaces.Dict) else s for g, s in envs.observation_spaces.items()}
        self.one_hot = {g: sizes_of(s) for g, s in plain.items()}
        self.size = max(sum(self.one_hot[g]) or math.prod(s.shape or ()) for g, s in plain.items())
        self.choices = {g: sizes_of(s)[0] for g, s in envs.action_spaces.items()}
        self.ids = nn.Parameter(torch.eye(agents), requires_grad=False)
        self.policy = mlp(self.size + agents, args.hidden, max(self.choices.values()), 0.01)
        seen_by_critic, values = math.prod(envs.state_space.shape), agents
        if not self.central:
            seen_by_critic, values = self.size + agents, 1
        self.critic = mlp(seen_by_critic, args.hidden, values, 1.0)  # [M2] central: a value for each agent

    def encode(self, obs: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Observations (N, agents, size + agents) and legal actions (N, agents, choices), from those by group."""
        rows, legal = [], []
        for group, found in obs.items():
            x = found["observation"] if isinstance(found, dict) else found
            x = x.flatten(2) if x.ndim > 2 else x.unsqueeze(2)
            if self.one_hot[group]:
                x = torch.cat(
                    [F.one_hot(c.long(), n) for c, n in zip(x.unbind(2), self.one_hot[group], strict=True)], 2
                )
            rows.append(F.pad(x.float(), (0, self.size - x.shape[2])))
            mask = found["action_mask"] if isinstance(found, dict) else x.new_ones(*x.shape[:2], self.choices[group])
            legal.append(F.pad(mask != 0, (0, max(self.choices.values()) - mask.shape[2])))
        x = torch.cat(rows, 1)
        return torch.cat([x, self.ids.expand(len(x), -1, -1)], 2), torch.cat(legal, 1)  # [M1] Actors know their number.

    def forward(self, x: Tensor, legal: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Logarithms of probabilities (n, agents, choices), and values (n, agents)."""
        value = self.critic(state.flatten(1).float()) if self.central else self.critic(x).squeeze(-1)
        return self.policy(x).masked_fill(~legal, -1e9).log_softmax(-1), value


def train(args: Args, log: Callable[[dict[str, float]], None] | None = None) -> dict[str, Any]:
    """Trains agents; ``log`` takes the figures of each iteration, by default a line is printed every two seconds.

    Returns the mean "return" of an agent in episodes that ended in the last tenth of the run, "speed" in env steps per
    second, and the network as "agent".
    """
    log = log or printer()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    envs = gpuzoo.make(
        args.game, args.num_envs, device=args.device, threads=args.threads, autoreset_mode="next_step",
        output="torch", **(args.config or {}),
    )  # fmt: skip
    if not all(isinstance(space, spaces.Discrete) for space in envs.action_spaces.values()):
        raise ValueError(f"mappo.py needs Discrete actions, {args.game} has {envs.action_spaces}.")
    obs, infos = envs.reset(seed=args.seed)  # the simulator's own memory: the next step overwrites it
    device, T, N, A = infos["ended"].device, args.num_steps, args.num_envs, sum(envs.groups.values())
    agent = Agent(envs, args).to(device)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.lr, eps=1e-5, fused=True)  # [3]

    def buffer(like: Tensor) -> Tensor:
        return torch.zeros(T, *like.shape, dtype=like.dtype, device=device)

    def joint(by_group: dict[str, Tensor]) -> Tensor:
        """(N, agents)."""
        return torch.cat(list(by_group.values()), 1)

    per_agent, (x, legal), over = torch.zeros(N, A, device=device), agent.encode(obs), torch.zeros(N, 1, device=device)
    batch = {"x": buffer(x), "legal": buffer(legal), "state": buffer(envs.state()), "action": buffer(per_agent.long())}
    batch |= {name: buffer(per_agent) for name in ("log_prob", "value", "advantage", "target", "acts")}
    rewards, dones, terminations = buffer(per_agent), buffer(per_agent), buffer(per_agent)

    def loss_of(mb: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        def mean(of: Tensor) -> Tensor:
            return (of * mb["acts"]).sum() / mb["acts"].sum().clamp(min=1)  # [M4] of agents that acted

        log_p, value = agent(mb["x"], mb["legal"], mb["state"])
        log_ratio = log_p.gather(-1, mb["action"].unsqueeze(-1)).squeeze(-1) - mb["log_prob"]
        ratio, entropy = log_ratio.exp(), mean(-(log_p.exp() * log_p).sum(-1))
        advantage = mb["advantage"] - mean(mb["advantage"])
        advantage = advantage / (mean(advantage**2).sqrt() + 1e-8)  # [7]
        clipped = ratio.clamp(1 - args.clip_eps, 1 + args.clip_eps)  # [8]
        policy_loss = -mean(torch.min(ratio * advantage, clipped * advantage))
        error = (value - mb["target"]) ** 2
        if args.clip_values:  # [9]
            near = mb["value"] + (value - mb["value"]).clamp(-args.clip_eps, args.clip_eps)
            error = torch.max(error, (near - mb["target"]) ** 2)
        value_loss = 0.5 * mean(error)
        loss = policy_loss - args.ent_coef * entropy + args.vf_coef * value_loss  # [10]
        kl, share = mean(ratio - 1 - log_ratio), mean((ratio != clipped).float())  # [12]
        return loss, torch.stack([policy_loss, value_loss, entropy, kl, share]).detach()

    loss_of = torch.compile(loss_of) if args.compile else loss_of
    iterations, start, history = args.total_steps // (N * T), time.perf_counter(), []
    for iteration in range(iterations):
        if args.anneal_lr:  # [4]
            optimizer.param_groups[0]["lr"] = args.lr * (1 - iteration / iterations)
        ended = torch.zeros(2, device=device)  # sum of returns, and number, of the episodes that ended

        with torch.no_grad():
            for t in range(T):
                state = batch["state"][t].copy_(envs.state())
                log_p, batch["value"][t] = agent(x, legal, state)
                action = (log_p - torch.empty_like(log_p).exponential_().log()).argmax(-1)  # a sample: Gumbel's trick
                batch["x"][t], batch["legal"][t], batch["action"][t] = x, legal, action
                batch["log_prob"][t] = log_p.gather(-1, action.unsqueeze(-1)).squeeze(-1)
                batch["acts"][t] = joint(infos["alive"]) * (1 - over)  # [M3] not who has left, nor the step that resets
                obs, reward, terminated, truncated, infos = envs.step(action)
                x, legal = agent.encode(obs)
                rewards[t], terminations[t] = joint(reward), joint(terminated)
                dones[t], over = joint(terminated) | joint(truncated), infos["ended"].float().unsqueeze(1)
                ended += torch.stack([(joint(infos["episode"]["r"]).mean(1, keepdim=True) * over).sum(), over.sum()])

            next_value, advantage = agent(x, legal, envs.state())[1], per_agent
            for t in reversed(range(T)):  # [5] A truncated episode bootstraps from its final state.
                next_value = rewards[t] + args.gamma * (1 - terminations[t]) * next_value
                advantage = next_value - batch["value"][t] + args.gamma * args.gae_lambda * (1 - dones[t]) * advantage
                batch["advantage"][t], next_value = advantage, batch["value"][t]
        batch["target"] = batch["advantage"] + batch["value"]

        flat = {name: of.flatten(0, 1) for name, of in batch.items()}
        for _ in range(args.epochs):
            for rows in torch.randperm(N * T, device=device).view(args.minibatches, -1):  # [6]
                loss, figures = loss_of({name: of[rows] for name, of in flat.items()})
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)  # [11]
                optimizer.step()

        acts = batch["acts"] > 0
        targets, advantages = batch["target"][acts], batch["advantage"][acts]
        explained = 1 - advantages.var() / targets.var().clamp(min=1e-8)
        (total, count), steps, seconds = ended.tolist(), (iteration + 1) * N * T, time.perf_counter() - start
        metrics = {"steps": steps, "seconds": seconds, "speed": steps / seconds}
        metrics |= {"return": total / count} if count else {}
        names = ("explained_variance", "policy_loss", "value_loss", "entropy", "kl", "clipped")
        history.append(ended)
        log(metrics | dict(zip(names, [explained.item(), *figures.tolist()], strict=True)))
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
