"""QMIX, VDN and independent Q-learning (IQL): teams, with agents that remember and a replay of sequences.

    python -m baselines.simple.qmix SwitchRiddle-v0 --mixer qmix --seed 1

Every agent has a Q-function of its history. A mixer turns the values of their actions into one of the team,
which learns from the mean of their rewards. It is monotonic in each agent's value, so the agents' greedy actions are
together the greedy joint action. Shapes: T steps, N envs or sequences, A agents of all groups.

- ``none``: each agent learns from its own rewards. Tan, "Multi-Agent Reinforcement Learning" (1993).
- ``vdn``: the sum. Sunehag et al., "Value-Decomposition Networks" (2017), https://arxiv.org/abs/1706.05296.
- ``qmix``: a network with weights from the global state. Rashid et al. (2018), https://arxiv.org/abs/1803.11485.
"""

from __future__ import annotations

import argparse
import copy
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
from gpuzoo.wrappers.replay import ReplayBuffer


def option(default: Any, text: str) -> Any:
    return dataclasses.field(default=default, metadata={"help": text})


@dataclasses.dataclass
class Args:
    """Options of a run."""

    game: str = option("SwitchRiddle-v0", "id of the game; `gpuzoo list` names all")
    config: dict[str, Any] | None = option(None, "the game's parameters, as JSON")
    mixer: str = option("qmix", "none (IQL), vdn or qmix")
    seed: int = option(1, "seed of envs, weights and actions")
    total_steps: int = option(200_000, "steps of all envs together")
    num_envs: int = option(32, "envs side by side")
    num_steps: int = option(26, "steps of a sequence")
    memory: int = option(64, "size of the agents' GRU; 0: they act by what they see now, and learn faster")
    hidden: int = option(64, "width of the agents' hidden layers")
    embedding: int = option(32, "width of QMIX's mixing network")
    lr: float = option(1e-3, "learning rate at the beginning")
    anneal_lr: bool = option(True, "let the learning rate fall to 0 linearly")
    gamma: float = option(0.99, "discount")
    q_lambda: float = option(0.6, "between one-step targets (0) and returns of whole sequences (1)")
    epsilon_start: float = option(1.0, "share of random actions at the beginning")
    epsilon_end: float = option(0.05, "share of random actions in the end")
    exploration: float = option(0.2, "fraction of the run until epsilon_end is reached")
    buffer_size: int = option(4096, "sequences in the replay buffer")
    batch_size: int = option(32, "sequences of a minibatch")
    updates: int = option(8, "minibatches after every num_steps steps of the envs")
    target_every: int = option(25, "iterations between two copies of the networks to the target networks")
    max_grad_norm: float = option(10.0, "largest norm of the gradient")
    device: str = option("auto", "auto, cpu, cuda or cuda:1")
    threads: int = option(1, "CPU threads of the envs and of torch")

    def __post_init__(self) -> None:
        gpuzoo.get(self.game)  # names those that it could have been
        if self.mixer not in ("none", "vdn", "qmix"):
            raise ValueError(f"mixer must be 'none', 'vdn' or 'qmix', not {self.mixer!r}.")
        for name in ("num_envs", "num_steps", "hidden", "batch_size", "updates", "target_every", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.total_steps < self.num_envs * self.num_steps:
            raise ValueError(f"total_steps must be at least num_envs * num_steps, not {self.total_steps}.")


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
            self.encoders[group] = nn.Sequential(nn.Linear(self.inputs[group], hidden), nn.ReLU())
            body = nn.GRUCell(hidden, memory) if memory else nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU())
            self.bodies[group], self.heads[group] = body, nn.Linear(memory or hidden, int(acts.n))

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


class Mixer(nn.Module):
    """From values (..., A) and states (..., state) to the team's (..., 1). QMIX's weights are never negative."""

    def __init__(self, kind: str, agents: int, state: int, embedding: int) -> None:
        super().__init__()
        self.kind, self.shape = kind, (agents, embedding)
        if kind == "qmix":
            self.weight1, self.bias1 = self.hyper(state, agents * embedding), nn.Linear(state, embedding)
            self.weight2, self.bias2 = self.hyper(state, embedding), self.hyper(state, 1)

    def hyper(self, state: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(nn.Linear(state, self.shape[1]), nn.ReLU(), nn.Linear(self.shape[1], outputs))

    def forward(self, q: Tensor, state: Tensor) -> Tensor:
        if self.kind != "qmix":
            return q if self.kind == "none" else q.sum(-1, keepdim=True)
        weight1 = self.weight1(state).abs().unflatten(-1, self.shape)
        x = F.elu((q[..., None, :] @ weight1).squeeze(-2) + self.bias1(state))
        return (x * self.weight2(state).abs()).sum(-1, keepdim=True) + self.bias2(state)


def make(args: Args, num_envs: int) -> gpuzoo.BatchEnv:
    """Envs in which each observation follows the one before: a reset is a step of its own, in which nobody acts."""
    how: Any = {"output": "torch", "autoreset_mode": "next_step", "threads": args.threads, **(args.config or {})}
    return gpuzoo.make(args.game, num_envs, device=args.device, **how)


def joint(by_group: dict[str, Tensor]) -> Tensor:  # (N, A), the groups side by side
    return torch.cat(list(by_group.values()), 1)


def choose(q: Tensor, legal: Tensor, epsilon: float) -> Tensor:
    """The best legal actions, or with probability epsilon any legal ones; if none is legal, the env replaces them."""
    random = torch.rand_like(q).masked_fill(~legal, -1).argmax(-1)
    best = q.masked_fill(~legal, -math.inf).argmax(-1)
    return torch.where(torch.rand(best.shape, device=q.device) < epsilon, random, best)


def td_loss(args: Args, online: nn.ModuleList, target: nn.ModuleList, batch: dict[str, Tensor]) -> Tensor:
    """Mean squared TD error on sequences: inputs, legal, begins and state (T + 1, N, ...), the rest (T, N, ...)."""
    (agents, mixer), (target_agents, target_mixer) = online, target
    sequence, state, acting = (batch["inputs"], batch["memory"], batch["begins"]), batch["state"], batch["acting"]
    reward, continues, discount = batch["reward"], batch["continues"], batch["discount"] * acting
    q = agents(*sequence)[0]
    with torch.no_grad():  # double Q-learning: the target networks value what the others prefer
        best = q[1:].masked_fill(~batch["legal"][1:], -math.inf).argmax(-1, keepdim=True)
        later = target_agents(*sequence)[0][1:].gather(-1, best).squeeze(-1)
        values = target_mixer(later * (discount > 0), state[1:])  # of what follows; who has left adds nothing
    predicted = mixer(q[:-1].gather(-1, batch["action"][..., None]).squeeze(-1) * acting, state[:-1])
    if args.mixer != "none":
        reward, discount = reward.mean(-1, keepdim=True), discount.amax(-1, keepdim=True)
        acting, continues = acting.any(-1, keepdim=True), continues.any(-1, keepdim=True)
    targets, following = torch.empty_like(reward), values[-1]
    for t in reversed(range(len(reward))):  # Q(lambda), up to the end of the episode or of the sequence
        following = torch.where(continues[t], torch.lerp(values[t], following, args.q_lambda), values[t])
        targets[t] = following = reward[t] + discount[t] * following
    return ((predicted - targets).square() * acting).sum() / acting.sum().clamp(min=1)


def train(args: Args, log: Callable[[dict[str, float]], None] | None = None) -> dict[str, Any]:
    """Trains a team; ``log`` gets the figures of each iteration, by default a line is printed every two seconds.

    Returns:
        ``returns`` of 256 episodes without exploration, the mean of each group, and their mean ``return``; ``speed`` in
        env steps per second; ``agent``, the networks.
    """
    log = log or printer()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    envs = make(args, args.num_envs)
    observations, infos = envs.reset(seed=args.seed)
    alive = joint(infos["alive"]).bool()
    device, T, (N, A) = alive.device, args.num_steps, alive.shape
    agents = Agents(envs, args.hidden, args.memory)
    mixer = Mixer(args.mixer, A, math.prod(envs.state_space.shape), args.embedding)
    online = nn.ModuleList([agents, mixer]).to(device)
    target = copy.deepcopy(online)
    optimizer = torch.optim.Adam(online.parameters(), lr=args.lr)
    replay = ReplayBuffer(args.buffer_size, n_step=1, gamma=args.gamma)

    def observe(observations: dict[str, Any], begins: Tensor) -> dict[str, Tensor]:
        inputs, legal = agents.encode(observations)
        state = envs.state().flatten(1).float().clone() if args.mixer == "qmix" else inputs[:, 0, :0]
        return {"inputs": inputs, "legal": legal, "begins": begins, "state": state}

    ended, memory = torch.zeros_like(alive[:, 0]), torch.zeros(N, A, args.memory, device=device)
    now = observe(observations, begins=~ended)
    iterations, start = args.total_steps // (N * T), time.perf_counter()
    for iteration in range(iterations):
        progress = iteration / iterations
        optimizer.param_groups[0]["lr"] = args.lr * (1 - progress) if args.anneal_lr else args.lr
        epsilon = args.epsilon_start + min(1, progress / args.exploration) * (args.epsilon_end - args.epsilon_start)
        total = torch.zeros(2, device=device)  # sum of returns, and number, of the episodes that ended
        memory_before, played = memory, []
        with torch.no_grad():
            for _ in range(T):
                q, memory = agents(now["inputs"][None], memory, now["begins"][None])
                action = choose(q[0], now["legal"], epsilon)
                observations, rewards, terminations, truncations, infos = envs.step(action)
                step = now | {"action": action, "acting": alive, "reward": joint(rewards)}
                step |= {"terminated": joint(terminations), "truncated": joint(truncations)}
                played.append(step | {"continues": alive & ~(step["terminated"] | step["truncated"])})
                now = observe(observations, begins=ended)  # an end, then a step that resets, then the next episode
                alive, ended = joint(infos["alive"]).bool(), infos["ended"].bool().clone()
                total += torch.stack([(joint(infos["episode"]["r"]).mean(1) * ended).sum(), ended.sum()])

        # One item of the buffer is a whole sequence of an env, what follows it, and the memory before it.
        sequences = {k: torch.stack([x[k] for x in (*played, now) if k in x], 1) for k in played[0]}
        replay.add(**sequences, memory=memory_before, ended=torch.ones_like(ended))
        for _ in range(args.updates):
            batch = {k: x if k == "memory" else x.transpose(0, 1) for k, x in replay.sample(args.batch_size).items()}
            loss = td_loss(args, online, target, batch)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(online.parameters(), args.max_grad_norm)
            optimizer.step()
        if iteration % args.target_every == 0:
            target.load_state_dict(online.state_dict())
        steps, seconds, (returns, count) = (iteration + 1) * N * T, time.perf_counter() - start, total.tolist()
        metrics = {"steps": steps, "seconds": seconds, "speed": steps / seconds, "loss": loss.item()}
        log(metrics | {"epsilon": epsilon} | ({"return": returns / count} if count else {}))
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
            observations, rewards, _, _, infos = envs.step(choose(q[0], legal, 0.0))
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
