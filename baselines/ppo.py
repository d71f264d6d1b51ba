"""PPO for groups of agents: acting, stepping, advantages and updates all happen on one device.

    python baselines/ppo.py TagContinuous-v0 --num-envs 64 --total-steps 2e6 --out out/tag --config.num_runners 20

Each group of agents has a policy of its own, named after the group, unless ``--policies`` says otherwise; all agents of
a policy share its weights and learn from their own observations and rewards. As a library: `train`, `PPO`, `evaluate`.

Read from `PPO.iterate` downwards: `PPO.rollout` plays, `advantages` says what was good, `Learner.update` learns.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import itertools
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

# A thread that waits gives its core away: without this, two threads on two busy cores are ten times slower than one.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn
from torch.nn import functional

from gpuzoo import registry
from gpuzoo.batch import BatchEnv
from gpuzoo.core.definition import EnvDef, Layout, choices, config_types, layout, split_config, unknown
from gpuzoo.tensors import as_tensor

CHUNK = 16384  # rows that pass through a network at once outside of training: their activations fit into a cache


def option(default: Any, doc: str) -> Any:
    """A hyper-parameter with its line of help."""
    return dataclasses.field(default=default, metadata={"doc": doc})


@dataclasses.dataclass
class Args:
    """Everything that a run depends on."""

    game: str | type[EnvDef]
    num_envs: int = option(64, "envs that are stepped together")
    total_steps: int = option(1_000_000, "steps to train for, those of all envs together")
    seed: int = option(1, "seed of envs, weights and actions")
    device: str = option("auto", "cpu, cuda, cuda:k or auto")
    out: str = option("", "folder for checkpoint, log and learning curve; none by default")
    config: dict[str, Any] = dataclasses.field(
        default_factory=dict, metadata={"doc": "parameters of the game, max_episode_steps among them"}
    )
    policies: dict[str, str] = dataclasses.field(
        default_factory=dict, metadata={"doc": "group=name,...: which policy plays a group; equal names share one"}
    )
    load: dict[str, str] = dataclasses.field(
        default_factory=dict, metadata={"doc": "name=FILE,...: begin with a policy from a checkpoint"}
    )
    freeze: tuple[str, ...] = option((), "names of policies that play but do not learn")
    num_steps: int = option(128, "steps of each env between two updates")
    epochs: int = option(4, "passes over what was played, in each update")
    minibatches: int = option(4, "gradient steps of each pass")
    learning_rate: float = option(2.5e-4, "Adam's step size")
    anneal: bool = option(True, "lower the learning rate linearly to 0")
    gamma: float = option(0.99, "discount of the future")
    gae_lambda: float = option(0.95, "0: one-step advantages, 1: whole returns")
    clip: float = option(0.2, "how far the probability of an action may move per update")
    clip_values: bool = option(False, "limit the movement of values likewise")
    entropy: float = option(0.01, "weight of the entropy bonus")
    value_weight: float = option(0.5, "weight of the value loss")
    max_grad_norm: float = option(0.5, "longer gradients are shortened to this")
    normalize_advantages: bool = option(True, "in each minibatch, to mean 0 and deviation 1")
    normalize_observations: bool = option(False, "by their running mean and deviation")
    hidden: tuple[int, ...] = option((64, 64), "sizes of the tanh layers of actor and critic")
    stagger: bool = option(False, "begin the envs at different times, so that not all episodes end in the same step")
    checkpoints: int = option(10, "how many times a checkpoint is written during a run")
    threads: int = option(0, "torch's CPU threads; 0: one for small minibatches, else all")

    @classmethod
    def of(cls, game: str | type[EnvDef], **values: Any) -> Args:
        """The defaults, what ``baselines/configs`` says about the game, and then ``values``."""
        path = Path(__file__).parent / "configs" / f"{type(registry.get(game)).id}.json"
        found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
        found = {k: tuple(v) if isinstance(v, list) else v for k, v in found.items()}
        return cls(game, **found | values | {"config": found.get("config", {}) | values.get("config", {})})

    @property
    def iterations(self) -> int:
        """Rollouts, and as many updates, in a run."""
        return self.total_steps // (self.num_envs * self.num_steps)

    def check(self) -> tuple[Layout, dict[str, list[str]]]:
        """Refuses what cannot work, before anything is compiled.

        Returns:
            The layout of the game, and the groups of each policy.

        Raises:
            ValueError, TypeError: with one sentence about what is wrong.
        """
        for name in ("num_envs", "num_steps", "epochs", "minibatches", "checkpoints", "max_grad_norm"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}.")
        for name in ("gamma", "gae_lambda"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie between 0 and 1, not {getattr(self, name)}.")
        if not self.iterations:
            raise ValueError(
                f"total_steps={self.total_steps} is less than one rollout of num_envs * num_steps = "
                f"{self.num_envs * self.num_steps} steps."
            )
        env = registry.get(self.game)
        cfg, _ = split_config(env, self.num_envs, {k: v for k, v in self.config.items() if k != "max_episode_steps"})
        lay = layout(env, cfg)
        for group in self.policies:
            if group not in lay.groups:
                raise ValueError(unknown(f"{env.id} has no group", group, lay.groups))
        players: dict[str, list[str]] = {}
        for group in lay.groups:
            players.setdefault(self.policies.get(group, group), []).append(group)
        for name in (*self.load, *self.freeze):
            if name not in players:
                raise ValueError(unknown("there is no policy", name, players))
        for name, groups in players.items():
            for mine in (lay.observation_spaces, lay.action_spaces):
                if any(mine[g] != mine[groups[0]] for g in groups):
                    raise ValueError(
                        f"the groups {' and '.join(groups)} cannot share the policy {name!r}: their spaces differ."
                    )
            rows = self.num_envs * self.num_steps * sum(lay.groups[g] for g in groups)
            if name not in self.freeze and rows % self.minibatches:
                raise ValueError(
                    f"the {rows} transitions of policy {name!r} (num_envs * num_steps * agents) cannot be divided into "
                    f"{self.minibatches} minibatches."
                )
        return lay, players


class Policy(nn.Module):
    """An actor and a critic for one kind of agent.

    They are two MLPs of one shape whose weights are stacked, so that a layer of both is one batched product; the critic
    uses the first output only. Discrete and MultiDiscrete actions are independent categoricals over logits, in one
    tensor (rows, components, choices) in which shorter components are padded; Box actions are a normal distribution
    whose deviation does not depend on the observation, and which the env clips to the bounds.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        hidden: Sequence[int] = (64, 64),
        normalize: bool = False,
        *,
        device: torch.device | str = "cpu",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.observation_space, self.action_space = observation_space, action_space
        self.hidden, self.normalize = tuple(hidden), normalize
        kinds = choices(observation_space)
        self.one_hot = kinds
        size = sum(kinds) if kinds else int(np.prod(observation_space.shape or (), dtype=np.int64))
        self.nvec = choices(action_space)
        self.discrete = bool(self.nvec)
        width = max(self.nvec) if self.nvec else 1
        self.parts = len(self.nvec) or int(np.prod(action_space.shape or ()))  # components of an action
        self.noise_shape = (self.parts, width) if self.discrete else (self.parts,)
        sizes = [size, *hidden, self.parts * width]
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for k, (n, m) in enumerate(itertools.pairwise(sizes)):
            last = k == len(hidden)  # it begins with a nearly uniform actor and a critic of unit scale
            actor = nn.init.orthogonal_(torch.empty(m, n), 0.01 if last else math.sqrt(2), generator)
            critic = nn.init.orthogonal_(torch.empty(1 if last else m, n), 1 if last else math.sqrt(2), generator)
            stacked = torch.stack([actor, critic.expand(m, n)]).transpose(1, 2).contiguous()
            self.weights.append(nn.Parameter(stacked.to(device)))
            self.biases.append(nn.Parameter(torch.zeros(2, 1, m, device=device)))
        self.log_std = nn.Parameter(torch.zeros(0 if self.discrete else self.parts, device=device))
        # All weights lie in one vector, and so do their gradients: an optimiser's step is then a few operations.
        self.flat = nn.utils.parameters_to_vector(self.parameters()).detach()
        self.flat.grad = torch.zeros_like(self.flat)
        end = 0
        for parameter in self.parameters():
            part, end = slice(end, end + parameter.numel()), end + parameter.numel()
            parameter.data = self.flat[part].view_as(parameter)
            parameter.grad = self.flat.grad[part].view_as(parameter)
        self._towers = [
            [(w.detach()[k], b.detach()[k]) for w, b in zip(self.weights, self.biases, strict=True)] for k in (0, 1)
        ]
        places = [p * width + c for p, n in enumerate(self.nvec) for c in range(n)]
        legal = torch.zeros(self.parts * width, dtype=torch.bool)
        legal[places] = True
        self.ragged = self.discrete and not bool(legal.all())
        self.places = torch.tensor(places, device=device)
        self.legal = legal.view(self.parts, width).to(device)
        for name in ("mean", "variance"):
            self.register_buffer(name, torch.full((size,), float(name == "variance"), device=device))
        self.register_buffer("seen", torch.zeros((), dtype=torch.float64, device=device))
        self.mean: Tensor
        self.variance: Tensor
        self.seen: Tensor

    def features(self, observation: Tensor) -> Tensor:
        """Numbers for the networks, (rows, size): flat, one-hot where the space counts choices."""
        if self.one_hot:
            columns = observation.reshape(len(observation), -1).long().unbind(-1)
            return torch.cat([functional.one_hot(c, n).float() for c, n in zip(columns, self.one_hot, strict=True)], -1)
        x = observation.flatten(1).float()
        if self.normalize:
            x = ((x - self.mean) * (self.variance + 1e-8).rsqrt()).clamp(-10, 10)
        return x

    def learn_scale(self, observation: Tensor) -> None:
        """Lets observations enter the running mean and variance (Chan's formula)."""
        x = observation.flatten(1).double()
        total, delta = self.seen + len(x), x.mean(0) - self.mean
        spread = self.variance * self.seen + x.var(0, correction=0) * len(x) + delta**2 * self.seen * len(x) / total
        self.variance.copy_(spread / total)
        self.mean.add_(delta * len(x) / total)
        self.seen.copy_(total)

    def _tower(self, which: int, observation: Tensor) -> Tensor:
        x = self.features(observation)
        for weight, bias in self._towers[which][:-1]:
            x = torch.addmm(bias, x, weight).tanh_()
        weight, bias = self._towers[which][-1]
        return torch.addmm(bias, x, weight)

    def _logits(self, out: Tensor, mask: Tensor | None) -> Tensor:
        logits = out.view(-1, *self.noise_shape)
        if mask is not None:
            allowed = mask.bool().flatten(1)
            if self.ragged:
                allowed = torch.zeros_like(out, dtype=torch.bool).index_copy_(1, self.places, allowed)
            return logits.masked_fill(~allowed.view_as(logits), -1e8)
        return logits.masked_fill(~self.legal, -1e8) if self.ragged else logits

    def act(self, observation: Tensor, mask: Tensor | None, noise: Tensor | None, out: Tensor | None = None) -> Tensor:
        """Actions (rows, components). Call it without gradients.

        Args:
            observation: (rows, ...) as the env gives them.
            mask: (rows, choices of all components) or None.
            noise: what `draw` filled, (rows, *noise_shape); None takes the likeliest action.
            out: where to write the actions.
        """
        x = self._tower(0, observation)
        if self.discrete:
            logits = self._logits(x, mask)
            # The largest of logits plus Gumbel noise is a sample of the categorical distribution.
            return torch.argmax(logits if noise is None else logits + noise, -1, out=out)
        return torch.addcmul(x, self.log_std.exp(), torch.zeros_like(x) if noise is None else noise, out=out)

    def draw(self, noise: Tensor, generator: torch.Generator) -> None:
        """Fills a tensor with noise for `act`."""
        if self.discrete:
            noise.uniform_(1e-7, 1 - 1e-7, generator=generator).log_().neg_().log_().neg_()
        else:
            noise.normal_(generator=generator)

    def value(self, observation: Tensor) -> Tensor:
        """The critic's values (rows,). Call it without gradients."""
        return self._tower(1, observation)[:, 0]

    def forward(self, observation: Tensor, mask: Tensor | None, action: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probabilities and entropies of the distributions of whole actions, and values, each (rows,)."""
        x = self.features(observation).expand(2, -1, -1)
        for k, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias, x, weight)
            x = x if k == len(self.hidden) else x.tanh()
        if self.discrete:
            log = functional.log_softmax(self._logits(x[0], mask), -1)
            chosen = log.gather(-1, action.unsqueeze(-1)).sum((-2, -1))
            return chosen, -(log.exp() * log).sum((-2, -1)), x[1, :, 0]
        z = (action - x[0]) * (-self.log_std).exp()
        unit = self.log_std.sum() + 0.5 * math.log(2 * math.pi) * self.parts
        return -0.5 * z.square().sum(-1) - unit, (unit + 0.5 * self.parts).expand(len(z)), x[1, :, 0]


def scan(x: Tensor, decay: Tensor) -> Tensor:
    """Sums from behind along the first axis: ``y[t] = x[t] + decay[t] * y[t + 1]``."""
    y = torch.empty_like(x)
    y[-1] = x[-1]
    rows = list(zip(x.unbind(0), decay.unbind(0), y.unbind(0), strict=True))
    for (a, d, here), (_, _, after) in zip(rows[-2::-1], rows[:0:-1], strict=True):
        torch.addcmul(a, d, after, out=here)
    return y


def advantages(
    rewards: Tensor,
    values: Tensor,
    acting: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    final_values: Tensor | None,
    gamma: float,
    gae_lambda: float,
    waits: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Generalised advantage estimates over every agent's own decisions.

    A transition of an agent begins where it acts and ends where it acts next. In most games that is one step. Where
    agents wait for their turn, or are out of the game, the steps between belong to the transition before: their rewards
    are added to it undiscounted, since time, for the agent, passes from decision to decision. So in a board game the
    opponent's reply, and a loss that comes with it, count for the move that it answers.

    What follows a transition is worth the value of the agent's next observation at which it acts; 0 if the agent was
    terminated; the value of its final observation if it was truncated: time ran out, but not for what it did. A
    transition whose end is not known is left out: in games with waiting agents, the last move before the rollout's end
    of an agent that is not to move there, and the last move before a truncation.

    Args:
        rewards: (steps, ...).
        values: (steps + 1, ...), of the observations before each step, and of the last one.
        acting: (steps + 1, ...) bool, whether the agent acts on that observation.
        terminated: (steps, ...) bool.
        truncated: (steps, ...) bool.
        final_values: (steps, ...), of the final observations where truncated; None: not known.
        gamma: discount.
        gae_lambda: decay of the sum.
        waits: whether agents may skip steps and act again in the same episode.

    Returns:
        Advantages, targets of the values, and which rows are transitions, each (steps, ...).
    """
    cut = terminated | truncated
    goes_on = acting[1:] & ~cut
    target = rewards + gamma * values[1:] * goes_on
    if final_values is not None:
        target += gamma * final_values * (truncated & ~terminated)
    valid = acting[:-1]
    if waits:
        waiting = (~acting[1:] & ~cut).float()
        target = scan(target, waiting)
        known = goes_on | terminated | (truncated if final_values is not None else False)
        valid = valid & (scan(known.float(), waiting) > 0)
    delta = (target - values[:-1]) * valid
    decay = torch.where(acting[:-1], gamma * gae_lambda, 1.0) * ~cut
    gain = scan(delta, decay)
    return gain, gain + values[:-1], valid


class Learner:
    """A policy, its optimiser, and what the agents it plays saw and did in the rollout.

    Args:
        name: of the policy.
        policy: the networks.
        groups: the groups it plays.
        env: the envs.
        args: the run.
    """

    def __init__(self, name: str, policy: Policy, groups: list[str], env: BatchEnv, args: Args) -> None:
        self.name, self.policy, self.groups, self.args = name, policy, groups, args
        self.frozen = name in args.freeze
        lay, self.device = env.simulator.layout, policy.log_std.device
        self.masked = lay.mask_size > 0
        turns = env.simulator.env.turn is not None
        self.waits = self.masked or turns  # an agent without a legal action waits
        self.knows_final = not turns  # where a turn-based game stops, nobody says who would have moved next
        T, N, K = args.num_steps, args.num_envs, sum(env.groups[g] for g in groups)
        space = lay.observation_spaces[groups[0]]
        dtype = getattr(torch, lay.observation_dtype)

        def new(steps: int, *shape: int, dtype: torch.dtype = torch.float32, seen: bool = False) -> Tensor:
            if seen and self.frozen:  # needs no memory of what it saw: all steps are written to one place
                return new(1, *shape, dtype=dtype).expand(steps, N, K, *shape)
            return torch.zeros(steps, N, K, *shape, dtype=dtype, device=self.device)

        self.observation = new(T + 1, *(space.shape or ()), dtype=dtype, seen=True)
        self.final_observation = new(T, *(space.shape or ()), dtype=dtype, seen=True)
        self.mask = new(T + 1, sum(policy.nvec), dtype=torch.int8, seen=True) if self.masked else None
        self.action = new(T, policy.parts, dtype=torch.int64 if policy.discrete else torch.float32)
        self.acting = new(T + 1, dtype=torch.bool)
        self.reward, self.episode_return = new(T), new(T)
        self.terminated, self.truncated = new(T, dtype=torch.bool), new(T, dtype=torch.bool)
        # Gumbel or normal noise for several steps at once, as long as that is little memory.
        self.noise = torch.empty(max(1, min(T, 2**21 // (N * K * math.prod(policy.noise_shape)))), N * K,
                                 *policy.noise_shape, device=self.device)  # fmt: skip
        flat_action = all(isinstance(s, spaces.Discrete) for s in lay.action_spaces.values())
        # Views of every step, made once: a rollout spends its time in few operations and none of it in indexing.
        first, self.rows, self.parts = 0, {}, {}
        names = ["observation", "final_observation", "action", "acting", "reward", "episode_return", "terminated",
                 "truncated", *(["mask"] if self.masked else [])]  # fmt: skip
        for key in names:
            self.rows[key] = getattr(self, key).flatten(1, 2).unbind(0)
        for group in groups:
            last = first + env.groups[group]
            for key in names:
                part = getattr(self, key)[:, :, first:last]
                self.parts[group, key] = (part.squeeze(-1) if key == "action" and flat_action else part).unbind(0)
            first = last
        self.optimizer = torch.optim.Adam([policy.flat], lr=args.learning_rate, eps=1e-5, fused=True)

    def act(self, t: int, generator: torch.Generator) -> dict[str, Tensor]:
        """The actions of all groups in step ``t`` of the rollout."""
        k = t % len(self.noise)
        if k == 0:
            self.policy.draw(self.noise, generator)
        mask = self.rows["mask"][t] if self.masked else None
        self.policy.act(self.rows["observation"][t], mask, self.noise[k], self.rows["action"][t])
        return {group: self.parts[group, "action"][t] for group in self.groups}

    def _chunks(self, function: Callable[..., Tensor], rows: Tensor, *tensors: Tensor | None) -> Tensor:
        flat = [None if x is None else x.flatten(0, 2) for x in tensors]
        parts = [rows[k : k + CHUNK] for k in range(0, len(rows), CHUNK)]
        return torch.cat([function(*(x if x is None else x[part] for x in flat)) for part in parts])

    @torch.no_grad()
    def targets(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Advantages, targets of the values, old values, and the rows of the flat rollout that are transitions."""
        final, values = torch.zeros_like(self.reward), torch.zeros(self.acting.shape, device=self.device)
        rows = self.acting.flatten().nonzero().squeeze(-1)
        values.view(-1)[rows] = self._chunks(self.policy.value, rows, self.observation)
        rows = (self.truncated & ~self.terminated).flatten().nonzero().squeeze(-1)
        if len(rows) and self.knows_final:
            final.view(-1)[rows] = self._chunks(self.policy.value, rows, self.final_observation)
        gain, target, valid = advantages(
            self.reward, values, self.acting, self.terminated, self.truncated, final if self.knows_final else None,
            self.args.gamma, self.args.gae_lambda, self.waits,
        )  # fmt: skip
        return gain.flatten(), target.flatten(), values[:-1].flatten(), valid.flatten().nonzero().squeeze(-1)

    def update(self, learning_rate: float, generator: torch.Generator) -> dict[str, Tensor]:
        """Improves the policy by what was played; returns scalars to log."""
        args = self.args
        gain, target, old_value, rows = self.targets()
        if len(rows) < 2 * args.minibatches:
            return {}
        obs, action = self.observation[:-1].flatten(0, 2), self.action.flatten(0, 2)
        mask = None if self.mask is None else self.mask[:-1].flatten(0, 2)
        old_log = torch.zeros_like(gain)
        with torch.no_grad():
            old_log[rows] = self._chunks(lambda *x: self.policy(*x)[0], rows, self.observation[:-1],
                                         None if self.mask is None else self.mask[:-1], self.action)  # fmt: skip

        def loss_of(index: Tensor, advantage: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
            log, entropy, value = self.policy(obs[index], None if mask is None else mask[index], action[index])
            change = log - old_log[index]
            ratio = change.exp()
            clipped = ratio.clamp(1 - args.clip, 1 + args.clip)
            policy_loss = -torch.minimum(advantage * ratio, advantage * clipped).mean()
            error = (value - target[index]).square()
            if args.clip_values:
                old = old_value[index]
                near = old + (value - old).clamp(-args.clip, args.clip)
                error = torch.maximum(error, (near - target[index]).square())
            value_loss, entropy = 0.5 * error.mean(), entropy.mean()
            loss = policy_loss + args.value_weight * value_loss - args.entropy * entropy
            return loss, {"loss": loss, "policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy,
                          "change": change, "ratio": ratio}  # fmt: skip

        self.optimizer.param_groups[0]["lr"] = learning_rate
        step = CHUNK // 2 if self.device.type == "cpu" else len(rows)
        for _ in range(args.epochs):
            order = rows[torch.randperm(len(rows), device=self.device, generator=generator)]
            for index in order.tensor_split(args.minibatches):
                advantage = gain[index]
                if args.normalize_advantages:
                    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                self.optimizer.zero_grad(set_to_none=False)
                for k in range(0, len(index), step):  # the gradient of a large minibatch is summed up in pieces
                    piece = index[k : k + step]
                    loss, found = loss_of(piece, advantage[k : k + step])
                    share = loss if len(piece) == len(index) else loss * (len(piece) / len(index))
                    share.backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_([self.policy.flat], args.max_grad_norm)
                self.optimizer.step()
        if self.policy.normalize:
            self.policy.learn_scale(obs[rows])
        with torch.no_grad():
            change, ratio = found.pop("change"), found.pop("ratio")
            sound = self.policy.flat.isfinite().all() & found["loss"].isfinite()
            residual = (target - old_value)[rows].var() / (target[rows].var() + 1e-8)
            return found | {
                "loss": torch.where(sound, found["loss"], torch.nan),
                "kl": (ratio - 1 - change).mean(),
                "clipped": ((ratio - 1).abs() > args.clip).float().mean(),
                "explained_variance": 1 - residual,
            }


class PPO:
    """A training run: `iterate` plays one rollout and updates every policy that learns.

    Attributes:
        env: the envs.
        learners: by policy name.
        policies: the policy of each group.
        steps: steps played so far, those of all envs together.
    """

    def __init__(self, args: Args) -> None:
        lay, players = args.check()
        loaded = {name: load(path, name, args.game, lay, players[name][0]) for name, path in args.load.items()}
        self.args, self.steps, self.iteration = args, 0, 0
        self.env = BatchEnv(args.game, args.num_envs, device=args.device, output="torch", **args.config)
        self.device = torch.device(self.env.simulator.device)
        weights = torch.Generator().manual_seed(args.seed)
        self.generator = torch.Generator(self.device).manual_seed(args.seed)
        self.learners: dict[str, Learner] = {}
        for name, groups in players.items():
            state = loaded.get(name)
            policy = Policy(
                lay.observation_spaces[groups[0]], lay.action_spaces[groups[0]],
                state["hidden"] if state else args.hidden,
                state["normalize"] if state else args.normalize_observations,
                device=self.device, generator=weights,
            )  # fmt: skip
            self.learners[name] = Learner(name, policy, groups, self.env, args)
            if state:
                policy.load_state_dict(state["weights"])
                self.learners[name].optimizer.load_state_dict(state["optimizer"])
        self.policies = {group: x.policy for x in self.learners.values() for group in x.groups}
        self.ended = torch.zeros(args.num_steps, args.num_envs, dtype=torch.bool, device=self.device)
        turn, first = self.env.simulator.env.turn, lay.first
        self._turn = None if turn is None else as_tensor(self.env.simulator.arrays[turn]).unsqueeze(-1)
        self._seats = {g: torch.arange(first[g], first[g] + n, device=self.device) for g, n in lay.groups.items()}
        # Seeds of different runs lie far apart, so that no two of them share an env.
        first_seen = self.env.reset(seed=args.seed << 32)
        limit = self.env.simulator.max_episode_steps
        if args.stagger and limit:
            self.env.simulator.set_state({"elapsed_steps": np.arange(args.num_envs) * limit // args.num_envs})
        self._observe(0, *first_seen)

    def _observe(self, t: int, obs: dict[str, Any], infos: dict[str, Any]) -> None:
        """Keeps what the agents see before step ``t`` and whether they act on it."""
        for learner in self.learners.values():
            for group in learner.groups:
                seen, acting = obs[group], learner.parts[group, "acting"][t]
                acting.copy_(infos["alive"][group])
                if learner.masked:
                    learner.parts[group, "mask"][t].copy_(seen["action_mask"])
                    acting &= seen["action_mask"].any(-1)
                    seen = seen["observation"]
                if self._turn is not None:
                    acting &= self._turn == self._seats[group]
                learner.parts[group, "observation"][t].copy_(seen)

    @torch.inference_mode()
    def rollout(self) -> None:
        """Plays ``num_steps`` steps. Nothing here waits for a GPU."""
        on_gpu = self.device.type != "cpu"
        if self.iteration:  # go on from where the last rollout ended
            for learner in self.learners.values():
                for key in ("observation", "acting", *(["mask"] if learner.masked else [])):
                    learner.rows[key][0].copy_(learner.rows[key][-1])
        for t in range(self.args.num_steps):
            actions: dict[str, Tensor] = {}
            for learner in self.learners.values():
                actions |= learner.act(t, self.generator)
            obs, rewards, terminations, truncations, infos = self.env.step(actions)
            for learner in self.learners.values():
                for group in learner.groups:
                    parts = learner.parts
                    parts[group, "reward"][t].copy_(rewards[group])
                    parts[group, "terminated"][t].copy_(terminations[group])
                    parts[group, "truncated"][t].copy_(truncations[group])
                    parts[group, "episode_return"][t].copy_(infos["episode"]["r"][group])
                    # On a CPU, looking first is cheaper than copying; on a GPU it would mean waiting.
                    if learner.knows_final and (on_gpu or bool(truncations[group].any())):
                        final = infos["final_obs"][group]
                        parts[group, "final_observation"][t].copy_(final["observation"] if learner.masked else final)
            self.ended[t].copy_(infos["ended"])
            self._observe(t + 1, obs, infos)
        self.steps += self.args.num_envs * self.args.num_steps

    def iterate(self) -> dict[str, float]:
        """One rollout and one update of each policy.

        Returns:
            What there is to log: ``return/<group>``, the mean return of an agent over the episodes that ended (absent
            if none did), and ``<policy>/...`` about the updates.

        Raises:
            FloatingPointError: a loss is not a number.
        """
        args = self.args
        self.rollout()
        rate = args.learning_rate * (max(0.0, 1 - self.iteration / args.iterations) if args.anneal else 1)
        self.iteration += 1
        log: dict[str, Tensor] = {}
        for learner in self.learners.values():
            for group in learner.groups:
                # When an env's episode ends, all its agents have finished: those that left early count as well.
                returns = torch.stack(learner.parts[group, "episode_return"]).mean(-1)
                log[f"return/{group}"] = (returns * self.ended).sum() / self.ended.sum()
            if not learner.frozen:
                log |= {f"{learner.name}/{k}": v for k, v in learner.update(rate, self.generator).items()}
        numbers = dict(zip(log, torch.stack([x.double() for x in log.values()]).tolist(), strict=True))  # waits once
        for name in self.learners:
            if math.isnan(numbers.get(f"{name}/loss", 0.0)):
                raise FloatingPointError(f"the loss of policy {name!r} is not a number in iteration {self.iteration}")
        return {k: v for k, v in numbers.items() if not math.isnan(v)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a checkpoint; the file is whole at any time."""
        state = {
            "format": 1, "game": self.env.simulator.env.id, "steps": self.steps,
            "args": dataclasses.asdict(dataclasses.replace(self.args, game=self.env.simulator.env.id)),
            "policies": {
                name: {
                    "observation": brief(x.policy.observation_space),
                    "action": brief(x.policy.action_space), "hidden": x.policy.hidden, "normalize": x.policy.normalize,
                    "weights": x.policy.state_dict(), "optimizer": x.optimizer.state_dict(),
                }
                for name, x in self.learners.items()
            },
        }  # fmt: skip
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            torch.save(state, part)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)

    def close(self) -> None:
        """Frees the envs."""
        self.env.close()


def brief(space: spaces.Space[Any]) -> str:
    """A space without its bounds."""
    return f"Box{space.shape} {space.dtype}" if isinstance(space, spaces.Box) else str(space)


def load(path: str | os.PathLike[str], name: str, game: str | type[EnvDef], lay: Layout, group: str) -> dict[str, Any]:
    """The part of a checkpoint about one policy: under its name, or else the only policy there is.

    Raises:
        ValueError: no checkpoint, or one that does not fit.
    """
    try:
        state = torch.load(path, weights_only=True, map_location="cpu")
        found = state["policies"]
    except Exception as error:
        raise ValueError(f"cannot read a checkpoint from {path}: {error or type(error).__name__}.") from error
    env_id = registry.get(game).id
    if state["game"] != env_id:
        raise ValueError(f"{path} holds policies for {state['game']}, not for {env_id}.")
    if name not in found and len(found) > 1:
        raise ValueError(unknown(f"{path} has no policy", name, found))
    policy: dict[str, Any] = found.get(name) or next(iter(found.values()))
    for key, space in (("observation", lay.observation_spaces[group]), ("action", lay.action_spaces[group])):
        if policy[key] != brief(space):
            raise ValueError(
                f"policy {name!r} in {path} was trained with the {key} space {policy[key]}, but with these parameters "
                f"{env_id} has {brief(space)} for {group}."
            )
    return policy


# ---- playing without learning ----


@torch.inference_mode()
def play(
    env: BatchEnv, players: Mapping[str, Policy | None], seed: int, greedy: bool = False
) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Steps envs without end, and yields terminations, truncations and infos after each step.

    Args:
        env: made with ``output="torch"``.
        players: who plays a group (``"tagger"``) or one agent (``"tagger_0"``); those left out, or None, play randomly.
        seed: of the envs and of the actions.
        greedy: take the likeliest actions.
    """
    seats: list[tuple[str, slice, Policy]] = []
    for name, policy in players.items():
        group, _, k = (name, "", "") if name in env.groups else name.rpartition("_")
        if group not in env.groups or (k and not (k.isdigit() and int(k) < env.groups[group])):
            raise ValueError(unknown(f"{env.simulator.env.id} has no group or agent", name, env.groups))
        if policy is not None:
            seats.append((group, slice(int(k), int(k) + 1) if k else slice(None), policy))
    obs, _ = env.reset(seed=seed)
    device = torch.device(env.simulator.device)
    generator = torch.Generator(device).manual_seed(seed)
    while True:
        actions = env.random_actions()  # the env's own memory: a policy writes its actions over them
        for group, part, policy in seats:
            seen, mask = obs[group], None
            if isinstance(seen, dict):
                seen, mask = seen["observation"], seen["action_mask"][:, part].flatten(0, 1)
            seen = seen[:, part].flatten(0, 1)
            noise = None if greedy else torch.empty(len(seen), *policy.noise_shape, device=device)
            if noise is not None:
                policy.draw(noise, generator)
            target = actions[group][:, part]
            target.copy_(policy.act(seen, mask, noise).view(target.shape))
        obs, _, terminations, truncations, infos = env.step(actions)
        yield terminations, truncations, infos


@dataclasses.dataclass
class Evaluation:
    """What happened in some episodes: by group, arrays (episodes, agents of the group).

    Attributes:
        returns: of each agent.
        lengths: steps until the agent was terminated or time ran out.
        terminated: whether it was terminated.
    """

    returns: dict[str, np.ndarray[Any, Any]]
    lengths: dict[str, np.ndarray[Any, Any]]
    terminated: dict[str, np.ndarray[Any, Any]]


def evaluate(
    game: str | type[EnvDef],
    players: Mapping[str, Policy | None],
    episodes: int = 256,
    seed: int = 0,
    config: Mapping[str, Any] | None = None,
    device: str = "cpu",
    greedy: bool = False,
) -> Evaluation:
    """Plays one episode in each of ``episodes`` envs, with seeds that no training uses.

    Every episode counts once, however short: the mean is not drawn towards episodes that end early.

    Args:
        game: its id.
        players: see `play`.
        episodes: how many.
        seed: of the episodes.
        config: parameters of the game.
        device: where to play.
        greedy: take the likeliest actions.
    """
    env = BatchEnv(game, episodes, device=device, output="torch", **(config or {}))
    first: dict[str, list[Tensor]] = {}
    over = torch.zeros(episodes, dtype=torch.bool, device=env.simulator.device)
    for step, (terminations, truncations, infos) in enumerate(play(env, players, (seed << 32) + 2**31, greedy)):
        for group in env.groups:
            now = [infos["episode"]["r"][group], infos["episode"]["l"][group], terminations[group]]
            kept = first.setdefault(group, [torch.zeros_like(x) for x in now])
            news = (terminations[group] | truncations[group]) & ~over.unsqueeze(-1)
            for old, new in zip(kept, now, strict=True):
                old.copy_(torch.where(news, new, old))
        over |= infos["ended"]
        if (step % 8 == 7 or device == "cpu") and bool(over.all()):
            break
    returns, lengths, terminated = ({g: x[k].cpu().numpy() for g, x in first.items()} for k in range(3))
    env.close()
    return Evaluation(returns, lengths, terminated)


# ---- a whole run ----


@dataclasses.dataclass
class Result:
    """What a run leaves.

    Attributes:
        policies: by group.
        rows: the log, a dictionary for each iteration.
        returns: mean return by group over the last tenth of the run.
        seconds: how long it took, without compiling.
        steps_per_second: steps of all envs together.
        checkpoint: the last one, or None without ``out``.
    """

    policies: dict[str, Policy]
    rows: list[dict[str, float]]
    returns: dict[str, float]
    seconds: float
    steps_per_second: float
    checkpoint: Path | None


def train(args: Args, quiet: bool = False, watch: Callable[[PPO], None] | None = None) -> Result:
    """A run from beginning to end, with log, learning curve and checkpoints in ``args.out`` and a progress bar.

    Args:
        args: the run.
        quiet: no progress bar.
        watch: called after every iteration.

    Raises:
        ValueError, TypeError: arguments that cannot work, before anything is compiled.
        FloatingPointError: a loss is not a number; the message names the last good checkpoint.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    lay, _ = args.check()
    before = torch.get_num_threads()
    small = args.num_envs * args.num_steps * max(lay.groups.values()) < 4096 * args.minibatches
    torch.set_num_threads(args.threads or (1 if small else os.cpu_count() or 1))
    ppo = PPO(args)
    out = Path(args.out) if args.out else None
    checkpoint = out / "checkpoint.pt" if out else None
    if checkpoint:
        ppo.save(checkpoint)
    rows: list[dict[str, float]] = []
    latest: dict[str, float] = {}
    every, name = max(1, args.iterations // args.checkpoints), registry.get(args.game).id
    bar = Progress(TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[news]}"),
                   TimeRemainingColumn(), disable=quiet)  # fmt: skip
    start = time.perf_counter()
    try:
        with bar:
            task = bar.add_task(name, total=args.iterations, news="")
            for k in range(args.iterations):
                numbers = ppo.iterate()
                if watch:
                    watch(ppo)
                seconds = time.perf_counter() - start
                speed = ppo.steps / seconds
                rows.append({"iteration": k + 1, "steps": ppo.steps, "seconds": seconds, "speed": speed, **numbers})
                latest |= {n[7:]: v for n, v in numbers.items() if n.startswith("return/")}
                shown = "  ".join(f"{group} {value:.2f}" for group, value in latest.items())
                bar.update(task, advance=1, news=f"{speed:,.0f} steps/s  return: {shown or '(no episode ended)'}")
                if out and checkpoint and ((k + 1) % every == 0 or k + 1 == args.iterations):
                    ppo.save(checkpoint)
                    write_log(rows, out / "progress.csv")
                    plot(rows, name, out / "learning_curve.png")
    except FloatingPointError as error:
        kept = f"the last good checkpoint is {checkpoint}" if checkpoint else "give out=FOLDER to keep checkpoints"
        raise FloatingPointError(f"{error}: lower the learning rate; {kept}.") from None
    finally:
        torch.set_num_threads(before)
        ppo.close()
    last = rows[-max(1, len(rows) // 10) :]
    returns = {g: [r[f"return/{g}"] for r in last if f"return/{g}" in r] for g in ppo.policies}
    means = {g: sum(v) / len(v) for g, v in returns.items() if v}
    return Result(ppo.policies, rows, means, rows[-1]["seconds"], rows[-1]["speed"], checkpoint)


def write_log(rows: Sequence[Mapping[str, float]], path: Path) -> None:
    """The log as CSV, a row for each iteration."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


def curve(axis: Any, rows: Sequence[Mapping[str, float]], group: str, colour: str) -> None:
    """Draws a group's mean return over steps, as it is and smoothed."""
    points = np.array([(r["steps"], r[f"return/{group}"]) for r in rows if f"return/{group}" in r]).reshape(-1, 2)
    width = np.ones(max(1, len(points) // 20))
    smooth = np.convolve(points[:, 1], width, "same") / np.convolve(np.ones(len(points)), width, "same")
    axis.plot(*points.T, color=colour, alpha=0.2, linewidth=1)
    axis.plot(points[:, 0], smooth, color=colour, linewidth=2, label=group)


def finish(axis: Any) -> None:
    """The look of all our curves."""
    from matplotlib.ticker import EngFormatter

    axis.set_xlabel("steps of all envs")
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    axis.grid(color="#e9ecf1")
    axis.spines[["top", "right"]].set_visible(False)


def plot(rows: Sequence[Mapping[str, float]], title: str, path: Path) -> None:
    """The learning curve: mean returns over steps, a panel for each group."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    groups = list(dict.fromkeys(name[7:] for row in rows for name in row if name.startswith("return/")))
    if not groups:  # no episode has ended yet
        return
    figure, axes = pyplot.subplots(1, len(groups), figsize=(4.6 * len(groups), 3.4), squeeze=False)
    for group, axis, colour in zip(groups, axes[0], ("#4285e0", "#e5575a", "#4cae72", "#8a66d3") * 8, strict=False):
        curve(axis, rows, group, colour)
        axis.set_title(f"{title}: {group}", fontsize=11, loc="left")
        axis.set_ylabel("mean return of an agent")
        finish(axis)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


# ---- command line ----


def pairs(text: str) -> dict[str, str]:
    """``a=x,b=y`` as a dictionary."""
    if not all("=" in item for item in text.split(",")):
        raise argparse.ArgumentTypeError(f"want name=value,name=value, not {text!r}")
    return dict(item.split("=", 1) for item in text.split(","))


def parse(argv: Sequence[str] | None = None) -> Args:
    """The arguments of a command line."""
    kinds: dict[str, Callable[[str], Any]] = {
        "int": lambda s: int(float(s)), "float": float, "str": str, "dict[str, str]": pairs,
        "tuple[str, ...]": lambda s: tuple(s.split(",")), "tuple[int, ...]": lambda s: tuple(map(int, s.split(","))),
    }  # fmt: skip
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n")[0], argument_default=argparse.SUPPRESS, allow_abbrev=False,
        epilog=f"--config.NAME VALUE sets a parameter of the game. Games: {', '.join(registry.ids())}.",
    )  # fmt: skip
    parser.add_argument("game", help="id of a game")
    for field in dataclasses.fields(Args):
        kind, flag = str(field.type), "--" + field.name.replace("_", "-")
        text = f"{field.metadata.get('doc')} (default: {field.default})"
        if kind == "bool":
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, help=text)
        elif kind in kinds and field.metadata:
            parser.add_argument(flag, type=kinds[kind], help=text.replace(" (default: )", ""))
    known, rest = parser.parse_known_args(argv)
    values = vars(known)
    try:
        types = config_types(registry.get(values["game"]).Config) | {"max_episode_steps": int}
        config: dict[str, Any] = {}
        for name, text in zip(rest[::2], itertools.chain(rest[1::2], [""]), strict=False):
            key = name.removeprefix("--config.")
            if key == name:
                parser.error(f"unknown option {name}; see --help")
            if key not in types:
                raise ValueError(unknown(f"{values['game']} has no parameter", key, types))
            config[key] = (
                text == "true" if types[key] is bool else types[key](text) if types[key] in (int, float) else text
            )
        return Args.of(**values, config=config)
    except (ValueError, TypeError) as error:
        parser.error(str(error))


def main() -> None:
    """Trains as the command line says."""
    args = parse()
    try:
        result = train(args)
    except (ValueError, TypeError, FloatingPointError) as error:
        sys.exit(f"error: {error}")
    returns = ", ".join(f"{group} {value:.2f}" for group, value in result.returns.items())
    print(f"{args.game}: mean return {returns}; {result.steps_per_second:,.0f} steps/s, {result.seconds:.0f} s.")
    if args.out:
        print(f"In {args.out}: learning_curve.png, progress.csv, checkpoint.pt.")


if __name__ == "__main__":
    main()
