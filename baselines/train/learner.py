"""Learning from a rollout: advantages, minibatches, and steps of the optimiser, for all members of a population."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from ..fast.kernels import bind_adam, bind_shuffle, gae, scan
from ..fast.losses import Slopes
from ..fast.native import clip
from ..fast.plan import Plan
from ..fast.units import Call
from ..report.checkpoint import below
from . import distributed
from .layers import Scale
from .minibatch import Minibatch, Prepared, share_of
from .networks import Policy
from .rollout import Places, Player, Rollout

# Members' parameters lie in one tensor, so that a parameter has gaps between its members; torch warns of that as slow.
warnings.filterwarnings("ignore", message="grad and param do not obey the gradient layout contract")


def advantages(
    rewards: Tensor,
    values: Tensor,
    acting: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    final_values: Tensor | None,
    gamma: float | Tensor,
    gae_lambda: float | Tensor,
    waits: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Generalised advantage estimates (Schulman et al. 2016) over every agent's own decisions.

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
        gamma: discount; a number or a tensor that broadcasts.
        gae_lambda: decay of the sum, likewise.
        waits: whether agents may skip steps and act again in the same episode.

    Returns:
        Advantages, targets of the values, and which rows are transitions, each (steps, ...).
    """

    def each(x: float | Tensor) -> Tensor:
        return torch.as_tensor(x, dtype=torch.float32, device=rewards.device).expand(rewards.shape[1:]).contiguous()

    gain, valid = gae(
        rewards.contiguous(), values.contiguous(), acting.contiguous(), terminated.contiguous(), truncated.contiguous(),
        None if final_values is None else final_values.contiguous(), each(gamma), each(gamma * gae_lambda), waits,
    )  # fmt: skip
    return gain, gain + values[:-1], valid


class Learner:
    """A player that learns: its optimiser, and the minibatches of its rollout.

    All parameters lie in `Policy.flat` (members, size), so an optimiser's step is a few operations whatever the network
    and the population.

    Args:
        player: who plays.
        rollout: where.
        counter: (1,) int64, number of the update, on the device.
        total: sums a tensor over all processes.
        bf16: compute in bfloat16 where that is sound.

    Attributes:
        valid: (steps, members, rows) bool, the rows of the rollout that are transitions; by `prepare`.
        packed: (steps, members, rows, 4), the columns of `train.minibatch.COLUMNS` in that order; by `prepare`.
        prepared: the minibatches that keep their memory from one update to the next, by their place in a pass.
    """

    def __init__(
        self, player: Player, rollout: Rollout, counter: Tensor, total: Callable[[Tensor], Tensor], bf16: bool = False
    ) -> None:
        self.player, self.rollout, self.counter, self.total, self.bf16 = player, rollout, counter, total, bf16
        policy = self.policy
        self.momentum, self.square = torch.zeros_like(policy.flat.data), torch.zeros_like(policy.flat.data)
        self.count = torch.zeros(1, device=policy.flat.device)  # steps of Adam
        self._factor, self._rate, self._limit = torch.ones(3, policy.members, 1, device=policy.flat.device)
        self.reward_scale = Scale(policy.members, 1, policy.flat.device)
        self.running_return = torch.zeros(player.shape[1:], device=policy.flat.device)
        self.valid = self.packed = self._seen = self._action = torch.empty(0)
        self._counts, self._most = torch.zeros(policy.members, dtype=torch.int64, device=policy.flat.device), 0
        self._orders: dict[int, tuple[Tensor, Call]] = {}
        self._places: Tensor | None = None
        self._state: Tensor | None = None
        self._mask: Tensor | None = None
        self._alone = distributed.world_size() == 1
        self.prepared: dict[int, Prepared] = {}

    @property
    def name(self) -> str:
        """That of the policy."""
        return self.player.name

    @property
    def policy(self) -> Policy:
        """What learns."""
        return self.player.policy

    # ---- what the rollout says ----

    @torch.no_grad()
    def prepare(self, gamma: Tensor, gae_lambda: Tensor, normalize_rewards: bool) -> dict[str, Tensor]:
        """Computes advantages and targets of the rollout.

        Args:
            gamma: (members, 1).
            gae_lambda: (members, 1).
            normalize_rewards: divide rewards by the deviation of the discounted return so far.

        Returns:
            Scalars (members,) to log.
        """
        rollout, player = self.rollout, self.player
        acting, terminated, truncated = map(player.rows, (rollout.acting, rollout.terminated, rollout.truncated))
        reward, old = player.rows(rollout.reward), player.value
        if normalize_rewards:
            reward = self.scaled_rewards(reward, gamma)
        gain, target, valid = advantages(
            reward, old, acting, terminated, truncated, rollout.final_values(player), gamma, gae_lambda, rollout.waits
        )
        self._find(valid)
        self.packed = torch.stack([gain, target, old[:-1], player.log_prob], -1)
        self._seen = player.observations(rollout.observation[:-1]).contiguous()
        self._state = player.states(rollout.state[:-1])
        self._mask = None if rollout.mask is None else player.masks(rollout.mask[:-1]).contiguous()
        self._action = player.rows(rollout.action, 1)[..., : self.policy.actions.parts].contiguous()
        both, weight = torch.stack([gain, target]).permute(2, 0, 1, 3).flatten(2), valid.transpose(0, 1).flatten(1)
        count, weight = self.total(self._counts.clone()).clamp(min=1).view(-1, 1, 1), weight.to(both.dtype).unsqueeze(1)
        mean = self.total((both * weight).sum(2, keepdim=True)) / count
        variance = self.total(((both - mean).square() * weight).sum(2)) / count[..., 0]
        return {"explained_variance": 1 - variance[:, 0] / (variance[:, 1] + 1e-8)}

    def _find(self, valid: Tensor) -> None:
        """Finds the rows that are transitions: how many each member has, and where, unless all are."""
        self.valid, numbers = valid, valid[:, 0].numel()
        flags = valid.transpose(0, 1).flatten(1)
        torch.sum(flags, 1, out=self._counts)
        self._most, all_are = numbers, False
        if self.rollout.looks:
            self._most, all_are = int(self._counts.max()), int(self._counts.min()) == numbers
        self._most = max(self._most, 1)  # without any, all goes on as on a GPU, or in a process that others wait for
        self._places = None
        if not all_are:
            place = torch.where(flags, flags.cumsum(1) - 1, numbers)
            rows = torch.arange(numbers, device=valid.device).expand_as(flags)
            self._places = rows.new_zeros(len(flags), numbers + 1).scatter_(1, place, rows)

    def scaled_rewards(self, reward: Tensor, gamma: Tensor) -> Tensor:
        """Rewards (steps, members, rows) divided by the deviation of the discounted return, which learns from them."""
        ended = self.rollout.ended.view(len(reward), self.player.shape[1], -1)
        goes_on = 1 - ended.repeat_interleave(len(self.player.agents), -1).float()
        decay = gamma * torch.cat([torch.ones_like(goes_on[:1]), goes_on[:-1]])
        first = reward[:1] + gamma * self.running_return
        returns = scan(torch.cat([first, reward[1:]]), decay)
        self.running_return.copy_(returns[-1] * goes_on[-1])
        flat = returns.transpose(0, 1).reshape(reward.shape[1], -1, 1)
        self.reward_scale.learn(flat, torch.ones_like(flat[..., 0]), self.total)
        return (reward * (self.reward_scale.variance + 1e-8).rsqrt()).clamp(-10, 10)

    def learn_scale(self) -> None:
        """Lets what was seen in the rollout enter the policy's normalisation."""
        if not self.policy.normalize:
            return
        weight = self.valid.transpose(0, 1).flatten(1)
        seen = self._seen.transpose(0, 1).flatten(1, 2).flatten(2).double()
        self.policy.scale.learn(seen, weight, self.total)
        if self.policy.central:
            assert self._state is not None
            state = self._state.transpose(0, 1).flatten(1, 2).double()
            self.policy.state_scale.learn(state, torch.ones_like(state[..., 0]), self.total)

    # ---- minibatches ----

    def minibatches(self, epoch: int, parts: int, sequence: int) -> Iterator[Minibatch]:
        """All transitions in random order, in ``parts`` minibatches, evaluated by the policy as it then is.

        Args:
            epoch: number of the pass within this update.
            parts: how many.
            sequence: steps that a recurrent policy goes through from a remembered state; it divides the rollout.
        """
        T, _, R = self.player.shape
        if self.policy.recurrent:
            n = T // sequence * R
            self._counts.fill_(n)
            order = self._shuffled(n, epoch)
            for part in range(parts):
                chosen = order[:, part::parts]
                first = chosen.div(R, rounding_mode="floor") * (sequence * R) + chosen % R
                steps = torch.arange(sequence, device=order.device)[:, None] * R
                yield self._evaluate((first[:, None] + steps).flatten(1), None, first)
            return
        n = self._most
        order = self._shuffled(n, epoch)
        filled = None
        if self._places is not None:
            filled = order >= 0
            order = self._places.gather(1, order.clamp(min=0))
        fits = self.rollout.looks and not self.bf16 and Prepared.fits(self.policy, self._seen)
        for part in range(parts):
            chosen, real = order[:, part::parts], None if filled is None else filled[:, part::parts]
            yield self._evaluate_prepared(part, chosen, real) if fits and part < n else self._evaluate(chosen, real)

    def _shuffled(self, n: int, epoch: int) -> Tensor:
        """Random orders (members, n) of as many numbers as members have transitions, where the last update's were."""
        found = self._orders.get(epoch)
        if found is None or found[0].shape[1] != n:
            out = torch.empty(*self._counts.shape, n, dtype=torch.int64, device=self._counts.device)
            found = self._orders[epoch] = out, bind_shuffle(self.rollout.seeds, self.counter, self._counts, out)
        out, call = found
        call(epoch)
        return out

    def _evaluate_prepared(self, part: int, index: Tensor, filled: Tensor | None) -> Minibatch:
        """`_evaluate`, in the memory that this part of a pass had before."""
        sources = [self._seen, self._action, self.packed, *([] if self._mask is None else [self._mask])]
        found = self.prepared.get(part)
        if found is None or found.count != index.shape[1]:
            found = Prepared(self.policy, self.player.shape, index.shape[1], sources, self.total, self._alone)
            self.prepared[part] = found
        return found.load(index, filled, sources)

    def _evaluate(self, index: Tensor, filled: Tensor | None, first: Tensor | None = None) -> Minibatch:
        player, policy = self.player, self.policy
        T, M, R = player.shape
        place, seats = Places((T, M, R), index), len(player.agents)
        seen, action = place.take(self._seen), place.take(self._action)
        mask = None if self._mask is None else place.take(self._mask)
        state, seat = None, None
        if self._state is not None:
            state, seat = Places((T, M, R // seats), index // seats).take(self._state), index % seats
        packed = place.take(self.packed)
        with torch.autocast(index.device.type, torch.bfloat16, enabled=self.bf16, cache_enabled=False):
            if first is None:
                out, value, back = policy.forward_and_back(seen, state, seat)
                weight = torch.ones_like(packed[..., 0]) if filled is None else filled.to(packed.dtype)
            else:
                S = first.shape[1]

                def steps(x: Tensor) -> Tensor:
                    return x.unflatten(1, (-1, S)).transpose(0, 1)

                memory = Places((T, M, R), first).take(player.memory[:-1])
                begins = self.rollout.begins[:-1].repeat_interleave(seats, -1)
                out, value, _ = policy(
                    steps(seen), None if state is None else steps(state), None if seat is None else steps(seat),
                    memory, steps(place.take(begins)),
                )  # fmt: skip
                out, value = out.transpose(0, 1).flatten(1, 2).float(), value.transpose(0, 1).flatten(1).float()
                back = policy.through_autograd(out, value)
                weight = place.take(self.valid).to(packed.dtype)
        share = share_of(weight, self.total)
        return Minibatch(policy, out, value, back, mask, action, packed, weight, share, self.total)

    # ---- steps ----

    def step(self, batch: Minibatch, slopes: Slopes, rate: Tensor, max_grad_norm: Tensor) -> None:
        """A step of Adam down the gradient of the members' losses.

        Args:
            batch: the minibatch.
            slopes: gradients by what the networks said.
            rate: (members, 1) learning rates; 0 leaves a member as it is.
            max_grad_norm: (members, 1); longer gradients are shortened to it.
        """
        gradient = self.policy.flat.grad
        assert gradient is not None
        batch.back(slopes.out, slopes.value)
        if slopes.log_std.numel():
            log_std = self.policy.log_std.grad
            assert log_std is not None
            log_std.copy_(slopes.log_std)
        if not self._alone:
            self.total(gradient)
        self._limit.copy_(max_grad_norm)
        self._rate.copy_(rate)
        self._descend()
        self.policy.gradient.of = None

    @functools.cached_property
    def _descend(self) -> Callable[[], None]:
        """A step, prepared: down the gradient that `flat` has then, by `_rate`, and by `_limit` at most."""
        policy = self.policy
        gradient = policy.flat.grad
        assert gradient is not None
        adam = bind_adam(policy.flat.data, gradient, self.momentum, self.square, self._factor, self._rate, self.count)
        if self.rollout.looks:
            plan = Plan()
            plan.add(clip(gradient, self._limit, self._factor, self.count))
            plan.add(adam)
            return plan.run

        def step() -> None:
            self.count.add_(1)
            norm = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
            torch.clamp(self._limit / (norm + 1e-6), max=1, out=self._factor)
            adam()

        return step

    def _moments(self) -> dict[str, Tensor]:
        return {"momentum": self.momentum, "square": self.square, "count": self.count}

    def state(self) -> dict[str, Tensor]:
        """What it has learnt, by name."""
        found: dict[str, Any] = {f"weights/{k}": v for k, v in self.policy.state_dict().items()}
        found |= {f"adam/{k}": v for k, v in self._moments().items()}
        found |= {f"reward_scale/{k}": v for k, v in self.reward_scale.state_dict().items()}
        return found

    def restore(self, found: Mapping[str, Tensor]) -> None:
        """Puts back what `state` gave."""
        self.policy.load_state_dict(below(found, "weights/"))
        self.reward_scale.load_state_dict(below(found, "reward_scale/"))
        for name, x in self._moments().items():
            x.copy_(found[f"adam/{name}"])
