"""Learning from a rollout: advantages and minibatches, for all members of a population."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from ..report.checkpoint import below
from . import distributed
from .minibatch import Minibatch, Sequences, share_of
from .networks import Policy
from .places import Places
from .player import Player
from .rewards import Normalization
from .rollout import Rollout

# Members' parameters lie in one tensor, so that a parameter has gaps between its members; torch warns of that as slow.
warnings.filterwarnings("ignore", message="grad and param do not obey the gradient layout contract")


@dataclasses.dataclass(frozen=True)
class Head:
    """A further head of the critic, with rewards of its own, see `Trainer.heads`.

    Attributes:
        gamma: its discount.
        weight: what its advantage counts for, where that of the game's rewards counts for 1.
        episodic: whether its returns end with the episode.
    """

    gamma: float = 0.99
    weight: float = 1.0
    episodic: bool = True


class Learner:
    """A player that learns: its rollout, minibatches of that, and the state of its optimiser.

    All parameters lie in `Policy.flat` (members, size), so an optimiser's step is a few operations whatever the network
    and the population.

    Args:
        player: who plays.
        rollout: where.
        counter: (1,) int64, number of the update, on the device.
        bf16: compute in bfloat16 where that is sound.
        normalize_rewards: True, False or ``"auto"``, see `Normalization`.
        heads: of the critic, besides the one of the game's rewards.

    Attributes:
        reward: (steps, members, rows), what advantages are computed from; ``on_rollout`` may change it.
        rewards: likewise for each of ``heads``, by name; 0 until ``on_rollout`` writes there.
        observation: (steps, members, rows, ...), before each action.
        action: (steps, members, rows, parts).
        mask: (steps, members, rows, choices) of legal choices, or None.
        state: (steps, members, envs, ...) the global state, for a central critic.
        valid: (steps, members, rows) bool, the rows that are transitions; by `prepare`.
        columns: (steps, members, rows) each, what a loss is told about a transition; by `prepare`. ``on_rollout`` may
            add some.
        packed: (steps, members, rows, columns), all of `columns`.
        momentum, square, count: the state of Adam: (members, size) twice, and steps (members,).
    """

    def __init__(
        self,
        player: Player,
        rollout: Rollout,
        counter: Tensor,
        bf16: bool = False,
        normalize_rewards: bool | str = False,
        heads: Mapping[str, Head] | None = None,
    ) -> None:
        self.player, self.rollout, self.counter, self.bf16 = player, rollout, counter, bf16
        self.heads: Mapping[str, Head] = heads or {}
        self.rewards: dict[str, Tensor] = {}
        self.executor, policy = rollout.executor, player.policy
        self.momentum, self.square = torch.zeros_like(policy.flat.data), torch.zeros_like(policy.flat.data)
        self.count = torch.zeros(policy.members, device=policy.flat.device)
        self.normalization = Normalization(normalize_rewards, policy.members, player.shape[2], policy.flat.device)
        self.reward = self.valid = self.packed = self.observation = self.action = torch.empty(0)
        self.columns: dict[str, Tensor] = {}
        self.mask: Tensor | None = None
        self.state: Tensor | None = None
        self.counts = torch.zeros(policy.members, dtype=torch.int64, device=policy.flat.device)  # of transitions
        self._most = 0
        self._places: Tensor | None = None

    @property
    def name(self) -> str:
        """That of the policy."""
        return self.player.name

    @property
    def policy(self) -> Policy:
        """What learns."""
        return self.player.policy

    # ---- the rollout ----

    def collect(self) -> None:
        """Takes the transitions from the rollout."""
        rollout, player = self.rollout, self.player
        self.reward, self.columns = player.rows(rollout.reward), {}
        self.rewards = {name: torch.zeros_like(self.reward) for name in self.heads}
        self.observation = player.observations(rollout.observation[:-1]).contiguous()
        self.state = player.states(rollout.state[:-1])
        self.mask = None if rollout.mask is None else player.masks(rollout.mask[:-1]).contiguous()
        self.action = player.rows(rollout.action, 1)[..., : self.policy.actions.parts].contiguous()

    @torch.no_grad()
    def prepare(self, gamma: Tensor, gae_lambda: Tensor) -> dict[str, Tensor]:
        """Computes advantages and targets of the rollout.

        Args:
            gamma: (members, 1).
            gae_lambda: (members, 1).

        Returns:
            Numbers (members,) to log.
        """
        player, final = self.player, self.player.final_values()
        values, own_final = player.value, final
        if self.heads:
            values, own_final = values[..., 0].contiguous(), None if final is None else final[..., 0].contiguous()
        advantage, valid = self._advantages(self.reward, values, own_final, gamma, gae_lambda)
        old = values[:-1]
        target = advantage + old
        self._find(valid)
        columns = {"advantage": advantage, "target": target, "old_value": old, "old_log_prob": player.log_prob}
        for k, (name, head) in enumerate(self.heads.items(), start=1):
            theirs, cut = player.value[..., k].contiguous(), None if final is None else final[..., k].contiguous()
            if not head.episodic:
                cut = None
            found, _ = self._advantages(self.rewards[name], theirs, cut, head.gamma, gae_lambda, head.episodic)
            columns["advantage"] = columns["advantage"] + head.weight * found
            columns |= {f"target_{name}": found + theirs[:-1], f"old_value_{name}": theirs[:-1]}
        self.columns = {**columns, **self.columns}
        self.packed = torch.stack([*self.columns.values()], -1)
        both, weight = torch.stack([advantage, target]).permute(2, 0, 1, 3).flatten(2), valid.transpose(0, 1).flatten(1)
        count = distributed.all_reduce(self.counts.clone()).clamp(min=1).view(-1, 1, 1)
        weight = weight.to(both.dtype).unsqueeze(1)
        mean = distributed.all_reduce((both * weight).sum(2, keepdim=True)) / count
        variance = distributed.all_reduce(((both - mean).square() * weight).sum(2)) / count[..., 0]
        return {"explained_variance": 1 - variance[:, 0] / (variance[:, 1] + 1e-8)}

    def _advantages(
        self,
        rewards: Tensor,
        values: Tensor,
        final_values: Tensor | None,
        gamma: Tensor | float,
        gae_lambda: Tensor,
        episodic: bool = True,
    ) -> tuple[Tensor, Tensor]:
        """Advantages of one head, and which rows are transitions."""
        rollout, rows = self.rollout, self.player.rows
        acting, terminated, truncated = map(rows, (rollout.acting, rollout.terminated, rollout.truncated))
        if not episodic:  # the next episode's first value follows
            terminated, truncated = torch.zeros_like(terminated), torch.zeros_like(truncated)
        return self.executor.advantages(
            rewards, values, acting, terminated, truncated, final_values, gamma, gae_lambda, rollout.waits
        )

    def _find(self, valid: Tensor) -> None:
        """Finds the rows that are transitions: how many each member has, and where, unless all are."""
        self.valid, numbers = valid, valid[:, 0].numel()
        flags = valid.transpose(0, 1).flatten(1)
        torch.sum(flags, 1, out=self.counts)
        self._most, all_are = numbers, False
        if self.rollout.may_sync:
            self._most, all_are = int(self.counts.max()), int(self.counts.min()) == numbers
        self._most = max(self._most, 1)  # without any, all goes on as on a GPU, or in a process that others wait for
        self._places = None
        if not all_are:
            place = torch.where(flags, flags.cumsum(1) - 1, numbers)
            rows = torch.arange(numbers, device=valid.device).expand_as(flags)
            self._places = rows.new_zeros(len(flags), numbers + 1).scatter_(1, place, rows)

    def learn_scale(self) -> None:
        """Updates the policy's normalisation by the rollout's observations."""
        if not self.policy.normalize:
            return
        weight = self.valid.transpose(0, 1).flatten(1)
        seen = self.observation.transpose(0, 1).flatten(1, 2).flatten(2).double()
        self.policy.scale.learn(seen, weight, distributed.all_reduce)
        if self.policy.central:
            assert self.state is not None
            state = self.state.transpose(0, 1).flatten(1, 2).double()
            self.policy.state_scale.learn(state, torch.ones_like(state[..., 0]), distributed.all_reduce)

    # ---- minibatches ----

    def minibatches(self, epoch: int, parts: int, sequence: int = 0) -> Iterator[Minibatch]:
        """All transitions in random order, in ``parts`` minibatches.

        Args:
            epoch: number of the pass within this update.
            parts: how many.
            sequence: steps that a recurrent policy goes through from a remembered state; it divides the rollout; 0:
                all of it.
        """
        T, _, R = self.player.shape
        if self.policy.recurrent:
            sequence = sequence or T
            n = T // sequence * R
            self.counts.fill_(n)
            order = self.executor.shuffle(self, n, epoch)
            for part in range(parts):
                chosen = order[:, part::parts]
                yield self.gather_sequences(
                    chosen.div(R, rounding_mode="floor") * (sequence * R) + chosen % R, sequence
                )
            return
        order, filled = self.executor.shuffle(self, self._most, epoch), None
        if self._places is not None:
            filled = order >= 0
            order = self._places.gather(1, order.clamp(min=0))
        for part in range(parts):
            chosen, real = order[:, part::parts], None if filled is None else filled[:, part::parts]
            yield self.executor.minibatch(self, part, chosen, real)

    def gather(self, index: Tensor, filled: Tensor | None) -> Minibatch:
        """The minibatch of some rows of the rollout.

        Args:
            index: int64 (members, n), numbers of rows: step * rows + row.
            filled: bool (members, n), false for rows that only fill up a member's share; None: all are true.
        """
        (T, M, R), seats = self.player.shape, len(self.player.agents)
        place = Places((T, M, R), index)
        packed = place.take(self.packed)
        weight = torch.ones_like(packed[..., 0]) if filled is None else filled.to(packed.dtype)
        state, seat = None, None
        if self.state is not None:
            state, seat = Places((T, M, R // seats), index // seats).take(self.state), index % seats
        return Minibatch(
            self.policy, tuple(self.columns), place.take(self.observation), place.take(self.action), packed,
            None if self.mask is None else place.take(self.mask), weight, share_of(weight, distributed.all_reduce),
            distributed.all_reduce, self.bf16, state, seat,
        )  # fmt: skip

    def gather_sequences(self, first: Tensor, steps: int) -> Minibatch:
        """The minibatch of some sequences of steps.

        Args:
            first: int64 (members, count), the rows with which they begin, see `gather`.
            steps: length of each.
        """
        T, M, R = self.player.shape
        offsets = torch.arange(steps, device=first.device)[:, None] * R
        index = (first[:, None] + offsets).flatten(1)
        batch, place = self.gather(index, None), Places((T, M, R), index)
        begins = self.rollout.begins[:-1].repeat_interleave(len(self.player.agents), -1)
        memory = Places((T, M, R), first).take(self.player.memory[:-1])
        batch.sequences = Sequences(first.shape[1], memory, place.take(begins))
        batch.weight = place.take(self.valid).to(batch.weight.dtype)
        batch.share = share_of(batch.weight, distributed.all_reduce)
        return batch

    # ---- checkpoints ----

    def _moments(self) -> dict[str, Tensor]:
        return {"momentum": self.momentum, "square": self.square, "count": self.count}

    def state_dict(self) -> dict[str, Tensor]:
        """The learnt state, by name."""
        found: dict[str, Any] = {f"weights/{k}": v for k, v in self.policy.state_dict().items()}
        found |= {f"adam/{k}": v for k, v in self._moments().items()}
        return found | self.normalization.state_dict()

    def load_state_dict(self, found: Mapping[str, Tensor]) -> None:
        """Puts back what `state_dict` gave."""
        self.policy.load_state_dict(below(found, "weights/"))
        self.normalization.load_state_dict(found)
        for name, x in self._moments().items():
            x.copy_(found[f"adam/{name}"])
