"""A policy that plays: what its agents see and do in a rollout."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gpuzoo.core.layout import flat_size

from .networks import Policy
from .places import Places

if TYPE_CHECKING:
    from .rollout import Rollout

CHUNK = 1 << 15  # rows of which values are computed at a time


@dataclasses.dataclass
class Draws:
    """Where an executor reads and writes when a policy draws actions.

    Attributes:
        name: of the draws; no two of a run have the same.
        policy: whose distributions they are drawn from.
        seeds: int64 (members,), of the random numbers.
        counter: int64 (1,), env steps before the rollout.
        first_row: number of a member's first row here, where several processes share its rows.
        masked: whether some actions are illegal.
        action: (steps, members, rows, parts), for each step where the actions go.
        log_prob: (steps, members, rows), likewise for their log-probabilities.
    """

    name: str
    policy: Policy
    seeds: Tensor
    counter: Tensor
    first_row: int
    masked: bool
    action: Tensor
    log_prob: Tensor


class Player:
    """A policy, the agents it plays, and what they saw and did in the rollout.

    Rows are agents: with ``N`` envs per member and ``K`` agents of an env, member ``m``'s rows are its envs' agents,
    env by env. All tensors have the steps ``T``, the members ``M`` and the rows ``R = N * K`` as their first axes.

    Args:
        name: of the policy.
        policy: the networks.
        groups: the groups it plays.
        rollout: where it plays.

    Attributes:
        agents: index of its agents within an env.
        draws: of its actions.
        chosen: (envs, agents, parts), the actions drawn, where they must be copied to get between other ones.
        value: (T + 1, M, R, *value_shape of the policy) of the observations before each step, and of the last one.
        log_prob: (T, M, R) of the actions.
        memory: (T + 1, M, R, size) before each step.
        random: int64, rows of each member that draw from all choices alike; None: none does.
    """

    random: Tensor | None = None

    def __init__(self, name: str, policy: Policy, groups: Sequence[str], rollout: Rollout) -> None:
        self.name, self.policy, self.groups, self._rollout = name, policy, list(groups), rollout
        lay = rollout.simulator.layout
        self.agents = [lay.first[g] + k for g in groups for k in range(lay.groups[g])]
        together = self.agents == list(range(self.agents[0], self.agents[0] + len(self.agents)))
        self._part: Any = slice(self.agents[0], self.agents[-1] + 1)
        if not together:  # on the device: to index with a list would be to wait for a copy
            self._part = torch.tensor(self.agents, device=rollout.device)
        self._space = lay.observation_spaces[groups[0]]
        T, M, R = rollout.steps, rollout.members, rollout.envs * len(self.agents)
        self.shape = (T, M, R)
        self.value = torch.zeros(T + 1, M, R, *policy.value_shape, device=rollout.device)
        self.log_prob = torch.zeros(T, M, R, device=rollout.device)
        self.memory = torch.zeros(T + 1, M, R, policy.memory_size, device=rollout.device)
        self.seat = torch.arange(len(self.agents), device=rollout.device).repeat(rollout.envs)
        seen = self.observations(rollout.observation)
        in_place = seen.untyped_storage().data_ptr() == rollout.observation.untyped_storage().data_ptr()
        self._seen = seen.unbind() if in_place else None  # of each step
        # Where other policies' actions, or longer ones, lie between its own, they go through a place of their own.
        parts = policy.actions.parts
        alone = len(self.agents) == rollout.action.shape[2] and parts == rollout.action.shape[3]
        chosen = self.rows(rollout.action, 1) if alone else torch.zeros(1, M, R, parts).to(rollout.action)
        self.chosen = None if alone else chosen[0].unflatten(1, (-1, len(self.agents))).flatten(0, 1)
        seeds = rollout.seeds + (len(rollout.players) << 32)  # no two policies draw the same numbers
        first_row = rollout.first_env * len(self.agents)
        action, masked = chosen.expand(T, M, R, parts), rollout.mask is not None and policy.actions.discrete
        self.draws = Draws(name, policy, seeds, rollout.counter, first_row, masked, action, self.log_prob)
        self.draw = rollout.executor.sampler(self.draws)

    def act(self, t: int) -> None:
        """Draws the actions of step ``t``, and keeps their log-probabilities; and values, where they come along."""
        policy, rollout = self.policy, self._rollout
        seen = self.observations(rollout.observation[t]) if self._seen is None else self._seen[t]
        if policy.values_apart:
            out, _ = policy.act(seen)
        elif policy.recurrent:
            state = self.state_of_rows(rollout.state[t])
            state = None if state is None else state.unsqueeze(0)
            out, value, memory = policy(
                seen.unsqueeze(0), state, self.seat, self.memory[t], self.begins(t).unsqueeze(0)
            )
            self.memory[t + 1].copy_(memory)
            self.value[t].copy_(value[0])
            out = out[0]
        else:
            out, value, _ = policy(seen, self.state_of_rows(rollout.state[t]))
            self.value[t].copy_(value)
        if self.random is not None:
            out = out.index_fill(1, self.random, 0)
        self.draw(t, out, None if rollout.mask is None or not self.draws.masked else self.masks(rollout.mask[t]))
        if self.chosen is not None:
            rollout.action[t][:, self._part, : self.chosen.shape[-1]] = self.chosen

    def put(self, t: int, action: Tensor) -> None:
        """Lets the agents take these actions (members, rows, parts) in step ``t`` instead."""
        each = action.unflatten(1, (-1, len(self.agents))).flatten(0, 1)
        self._rollout.action[t][:, self._part, : each.shape[-1]] = each

    def look_ahead(self) -> None:
        """Computes the values that `act` did not: those of the last observations, or of all together."""
        rollout, policy, (T, M, R) = self._rollout, self.policy, self.shape
        if not policy.values_apart:
            seen, state = self.observations(rollout.observation[-1]), self.state_of_rows(rollout.state[-1])
            memory = self.memory[-1] * (1 - self.begins(-1).unsqueeze(-1)) if policy.recurrent else None
            self.value[-1].copy_(policy.value(seen, state, self.seat, memory))
            return
        most = max(1, CHUNK // (M * R))
        for first in range(0, T + 1, most):
            part, count = slice(first, first + most), min(most, T + 1 - first)
            seen, state = self.observations(rollout.observation[part]), self.state_of_rows(rollout.state[part])
            state = None if state is None else state.transpose(0, 1).flatten(1, 2)
            value = policy.value(seen.transpose(0, 1).flatten(1, 2), state, self.seat.repeat(count))
            self.value[part].copy_(value.unflatten(1, (count, R)).transpose(0, 1))

    def begins(self, t: int) -> Tensor:
        """(M, R), 1 where an episode begins before step ``t``."""
        return self._rollout.begins[t].repeat_interleave(len(self.agents), -1)

    @torch.no_grad()
    def final_values(self) -> Tensor | None:
        """Values (T, M, R, ...) of final observations, where truncated and not terminated; None: not known."""
        rollout = self._rollout
        if not rollout.knows_final:
            return None
        out = torch.zeros_like(self.value[1:])
        cut = self.rows(rollout.truncated & ~rollout.terminated)
        if not rollout.any(cut):
            return out
        T, M, R = self.shape
        limit = rollout.simulator.max_episode_steps
        most = T * R if limit is None else min(T, -(-T // limit)) * R  # an env runs out of time once in `limit` steps
        flags = cut.transpose(0, 1).flatten(1)
        if rollout.may_sync:
            most = int(flags.sum(1).max())
        index = flags.float().topk(most, sorted=False).indices  # (M, most) of steps and rows
        place, seats = Places(self.shape, index), len(self.agents)
        seen = place.take(self.observations(rollout.final_observation))
        memory = place.take(self.memory[1:]) if self.policy.recurrent else None
        state, seat = self.states(rollout.final_state), None
        if state is not None:
            state, seat = Places((T, M, R // seats), index // seats).take(state), index % seats
        values = self.policy.value(seen, state, seat, memory)
        chosen = flags.gather(1, index).view(*index.shape, *(1 for _ in self.policy.value_shape))
        return place.put(out, values * chosen)

    def rows(self, x: Tensor, *shape: int) -> Tensor:
        """The player's rows of (steps, envs, agents, ...) or (envs, agents, ...), without a copy if possible."""
        lead = x.ndim - len(shape) - 2
        members = self._rollout.members
        x = x[(slice(None),) * (lead + 1) + (self._part,)]
        return x.unflatten(lead, (members, -1)).flatten(lead + 1, lead + 2)

    def observations(self, x: Tensor) -> Tensor:
        """The rows of observations (..., envs, agents, size) in the shape of the space."""
        x = self.rows(x[..., : flat_size(self._space)], 1)
        shape = self._space.shape or ()
        return x.unflatten(-1, shape) if len(shape) > 1 else x if shape else x.squeeze(-1)

    def states(self, x: Tensor) -> Tensor | None:
        """Global states (..., envs, size) as (..., M, N, size), if the critic sees them."""
        return x.unflatten(-2, (self._rollout.members, -1)) if self.policy.central else None

    def state_of_rows(self, x: Tensor) -> Tensor | None:
        """`states`, for each row: (..., M, R, size)."""
        state = self.states(x)
        return None if state is None else state.repeat_interleave(len(self.agents), -2)

    def masks(self, x: Tensor) -> Tensor:
        """The rows of action masks (..., envs, agents, choices)."""
        return self.rows(x[..., : sum(self.policy.actions.nvec)], 1)
