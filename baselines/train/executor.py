"""The `Executor` protocol, which does a trainer's work, and `Plain`, which does it in plain torch.

`Plain` is what training means, and serves every policy and every loss. Another executor may do the same faster, and
gives the same numbers up to rounding; only its random numbers may be others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.optim.adam import adam

from . import distributed
from .advantages import advantages, discounted_sum
from .learner import Learner
from .loss import Hyper, Loss, Numbers
from .minibatch import Minibatch
from .player import Draws
from .rollout import Rollout

if TYPE_CHECKING:
    from .trainer import Trainer

AHEAD = 1 << 16  # random numbers of a member that are drawn together

Draw = Callable[[int, Tensor, Tensor | None], None]


class Executor(Protocol):
    """Plays rollouts, evaluates minibatches and improves policies."""

    @property
    def name(self) -> str:
        """As ``--executor`` has it."""

    @property
    def may_sync(self) -> bool:
        """Whether the host may wait for what the device computes, so as to do less."""

    def setup(self, trainer: Trainer) -> None:
        """Prepares for the rollout and the learners of a trainer, before its first iteration."""

    def describe(self) -> str:
        """A line for people: the executor's name, and the work that it leaves to plain torch."""

    def play(self, rollout: Rollout) -> None:
        """Plays a rollout, going on from the last one."""

    def sampler(self, draws: Draws) -> Draw:
        """A function of a step, network outputs (members, rows, outputs) and masks (members, rows, choices) or None.

        It draws actions, and writes them and their log-probabilities where ``draws`` says.
        """

    def advantages(
        self,
        rewards: Tensor,
        values: Tensor,
        acting: Tensor,
        terminated: Tensor,
        truncated: Tensor,
        final_values: Tensor | None,
        gamma: float | Tensor,
        gae_lambda: float | Tensor,
        waits: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Advantages, and which rows are transitions; see the function of that name."""

    def discounted_sum(self, x: Tensor, decay: Tensor) -> Tensor:
        """``y[t] = x[t] + decay[t] * y[t - 1]``; see the function of that name."""

    def shuffle(self, learner: Learner, count: int, epoch: int) -> Tensor:
        """Random orders: int64 (members, count), of a member's `Learner.counts` first numbers, and then -1.

        ``epoch`` is the number of the pass within an update. The memory is that of the same pass in the next update.
        """

    def minibatch(self, learner: Learner, part: int, index: Tensor, filled: Tensor | None) -> Minibatch:
        """Minibatch ``part`` of a pass; see `Learner.gather`."""

    def evaluate(self, batch: Minibatch, loss: Loss, hyper: Hyper) -> Mapping[str, Tensor]:
        """Leaves the gradient of the members' mean losses in `Policy.flat`'s ``grad``.

        Returns:
            Means over the rows, (members,) each: ``loss``, and what the loss noted. Read them before the next call.
        """

    def step(self, learner: Learner, rate: Tensor, max_grad_norm: Tensor) -> None:
        """A step of Adam down the gradient of a learner's policy, summed over all processes.

        Args:
            learner: whose policy.
            rate: (members, 1) learning rates; 0 leaves a member as it is.
            max_grad_norm: (members, 1); longer gradients are scaled down to it.
        """

    def capture(self, function: Callable[[], Any]) -> Callable[[], Any]:
        """A function that repeats this one at each call."""

    def state(self) -> dict[str, Tensor]:
        """The state of the random numbers of this process, by name; for checkpoints."""

    def check(self, found: Mapping[str, Tensor]) -> None:
        """Refuses a state that `state` cannot have returned.

        Raises:
            ValueError: it cannot.
        """

    def restore(self, found: Mapping[str, Tensor]) -> None:
        """Puts back what `state` gave."""

    def reseed(self, counter: int) -> None:
        """Seeds the random numbers by the run's seeds and a counter of its steps: another executor played so far."""


def choose_plain(name: str = "auto", device: str = "auto") -> Executor:
    """`Plain`, whatever is asked for; see `baselines.executors.choose`."""
    return Plain()


def mixed(seed: int, *more: int) -> int:
    """A seed for torch's generators, of which those on a CPU take 32 bits only."""
    return int(np.random.SeedSequence([seed % 2**64, *more]).generate_state(1)[0])


class Plain:
    """Every operation by torch, with its autograd and its Adam."""

    name, may_sync = "plain", True

    def __init__(self) -> None:
        self._generators: dict[str, list[torch.Generator]] = {}  # one for each member
        self._seeds: dict[str, list[int]] = {}  # of these generators

    def _seeded(self, name: str, seeds: list[int], device: torch.device) -> list[torch.Generator]:
        self._generators[name] = [torch.Generator(device).manual_seed(seed) for seed in seeds]
        self._seeds[name] = seeds
        return self._generators[name]

    def setup(self, trainer: Trainer) -> None:
        """Makes generators for the order of minibatches. Each process shuffles what it has."""
        for name, learner in trainer.learners.items():
            seeds = [mixed(seed, distributed.rank(), 1) for seed in learner.player.draws.seeds.tolist()]
            self._seeded(f"order/{name}", seeds, trainer.device)

    def describe(self) -> str:
        """For people."""
        return "plain"

    # ---- playing ----

    @torch.no_grad()
    def play(self, rollout: Rollout) -> None:
        """Plays a rollout, step by step."""
        rollout.carry_over()
        for t in range(rollout.steps):
            for player in rollout.players.values():
                player.act(t)
            if rollout.opponents is not None:
                rollout.opponents(t)
            rollout.step(t)
        for player in rollout.players.values():
            player.look_ahead()
        rollout.finish()

    def sampler(self, draws: Draws) -> Draw:
        """Draws with a generator of each member's own, so that a member alone is the same as among others.

        A process draws for the rows of all processes and takes those of its own: several play as one would.
        """
        device, actions, log_std = draws.log_prob.device, draws.policy.actions, draws.policy.log_std
        generators = self._seeded(f"actions/{draws.name}", [mixed(seed) for seed in draws.seeds.tolist()], device)
        T, M, R = draws.log_prob.shape
        rows, first = R * distributed.world_size(), R * distributed.rank()
        ahead = max(1, min(T, AHEAD // (rows * actions.draws)))  # steps; not of M: a member's numbers are its own
        noise = torch.empty(M, ahead, rows, actions.draws, device=device)
        mine = noise[:, :, first : first + R]
        places = [*zip(draws.action, draws.log_prob, mine.unbind(1) * T, strict=False)]

        def draw(t: int, out: Tensor, mask: Tensor | None) -> None:
            if t % ahead == 0:
                actions.fill_noise(noise, generators)
            to, log_prob, drawn = places[t]
            action, chosen = actions.choose(out, log_std, mask, drawn)
            to.copy_(action)
            log_prob.copy_(chosen)

        return draw

    # ---- learning ----

    advantages = staticmethod(advantages)
    discounted_sum = staticmethod(discounted_sum)

    def shuffle(self, learner: Learner, count: int, epoch: int) -> Tensor:
        """By ``torch.randperm``."""
        order = torch.full((len(learner.counts), count), -1, device=learner.counts.device)
        for row, n, random in zip(
            order, learner.counts.tolist(), self._generators[f"order/{learner.name}"], strict=True
        ):
            torch.randperm(n, generator=random, device=row.device, out=row[:n])
        return order

    def minibatch(self, learner: Learner, part: int, index: Tensor, filled: Tensor | None) -> Minibatch:
        """Gathered anew."""
        return learner.gather(index, filled)

    def evaluate(self, batch: Minibatch, loss: Loss, hyper: Hyper) -> Mapping[str, Tensor]:
        """By autograd."""
        gradient = batch.policy.flat.grad
        assert gradient is not None
        gradient.zero_()
        rows, numbers = loss(batch.row(*batch.forward()), hyper)
        (rows * batch.share).sum().backward()  # of a number, for which torch needs no sympy: half a second to import
        noted = {"loss": rows} | numbers

        def means() -> Tensor:
            found = [torch.as_tensor(x).detach().to(rows.dtype).expand_as(batch.share) for x in noted.values()]
            return distributed.all_reduce((torch.stack(found, 1) * batch.share.unsqueeze(1)).sum(-1))

        return Numbers(tuple(noted), means)

    def step(self, learner: Learner, rate: Tensor, max_grad_norm: Tensor) -> None:
        """By torch's Adam: its function, since the class would import a compiler, which takes a second."""
        flat = learner.policy.flat
        gradient = flat.grad
        assert gradient is not None
        distributed.all_reduce(gradient)
        norm = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
        gradient.mul_((max_grad_norm / (norm + 1e-6)).clamp(max=1))  # `clip_grad_norm_`, for each member
        members = zip(flat.data, gradient, learner.momentum, learner.square, learner.count, strict=True)
        for (weights, part, momentum, square, count), lr in zip(members, rate.flatten().tolist(), strict=True):
            adam(
                [weights], [part], [momentum], [square], [], [count], fused=True, amsgrad=False, maximize=False,
                beta1=0.9, beta2=0.999, lr=lr, weight_decay=0.0, eps=1e-5,
            )  # fmt: skip

    def capture(self, function: Callable[[], Any]) -> Callable[[], Any]:
        """The function itself."""
        return function

    # ---- checkpoints ----

    def state(self) -> dict[str, Tensor]:
        """The states of the generators, (members, bytes) by name."""
        return {name: torch.stack([x.get_state() for x in found]) for name, found in self._generators.items()}

    def check(self, found: Mapping[str, Tensor]) -> None:
        """Tries the states out."""
        for name, generators in self._generators.items():
            try:
                for state in found[name]:
                    torch.Generator(generators[0].device).set_state(state.cpu().clone())
            except RuntimeError as error:
                raise ValueError(f"random/{name} is no state of a generator: {error}") from error

    def restore(self, found: Mapping[str, Tensor]) -> None:
        """Puts back what `state` gave."""
        for name, generators in self._generators.items():
            for random, state in zip(generators, found[name], strict=True):
                random.set_state(state.cpu().clone())  # a clone, since it does not see where a view begins

    def reseed(self, counter: int) -> None:
        """Seeds each generator by what it was seeded with at first, and the counter."""
        for name, generators in self._generators.items():
            for random, seed in zip(generators, self._seeds[name], strict=True):
                random.manual_seed(mixed(seed, counter))
