"""`Fast`: what `Plain` does, by kernels that are compiled from one source for CUDA and for the CPU.

Each piece is served where it can be, and left to plain torch where not: a policy with networks of its own is played by
autograd's torch but draws actions by a kernel, and a loss that `trace` has no formula for is differentiated by torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..train import distributed
from ..train.executor import Draw, Plain
from ..train.learner import Learner
from ..train.loss import COLUMNS, Hyper, Numbers
from ..train.loss import Loss as TorchLoss
from ..train.minibatch import Minibatch
from ..train.player import Draws
from ..train.rollout import Rollout
from . import dense, fused, kernels
from .capture import captured
from .descent import Descent
from .losses import Formula, Loss
from .minibatch import PreparedMinibatch
from .networks import FusedPolicy
from .sampling import Sampling
from .steps import Steps
from .trace import Traced, trace, unchanged
from .units import Call

if TYPE_CHECKING:
    from ..train.trainer import Trainer

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "")


def is_ours(function: Callable[..., Any]) -> bool:
    """Whether a function is one of these trainers' own, also of a file that Python runs as a program."""
    code = getattr(function, "__code__", None)
    return code is not None and os.path.realpath(code.co_filename).startswith(FOLDER)


class Fast(Plain):
    """Compiled passes on a CPU; kernels in CUDA graphs on a GPU.

    Args:
        device: where it will run: ``"cpu"`` or ``"cuda"``, with an index or without.
    """

    name = "fast"

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device, self.on_cpu = torch.device(device), device == "cpu"
        self.may_sync = self.on_cpu  # on a GPU, to wait for the device would break the capture of a graph
        self._sampling: dict[str, Sampling] = {}
        self._orders: dict[tuple[str, int], tuple[Tensor, Call]] = {}
        self._prepared: dict[tuple[str, int], PreparedMinibatch] = {}
        self._losses: dict[tuple[Any, ...], tuple[Traced, Loss] | None] = {}
        self._descents: dict[str, Descent] = {}
        self._left: set[str] = set()  # what is left to plain torch
        self._captures = False
        self._played: object = None
        self._play: Callable[[], None] | None = None
        self._compiling: Future[None] | None = None
        if self.on_cpu:  # the longest compilation, beside that of the game
            pool = ThreadPoolExecutor(1)
            self._compiling = pool.submit(fused.load)
            pool.shutdown(wait=False)

    def setup(self, trainer: Trainer) -> None:
        """Compiles the losses, and what else takes time."""
        for learner in trainer.learners.values():
            self._loss(learner.policy, COLUMNS, trainer.rollout.mask is not None, trainer.objective, trainer.hyper)
        if not all(player.policy.builtin for player in trainer.rollout.players.values()):
            self._left.add("the networks")
        if not self._at_once(trainer.rollout):
            self._left.add("actions by parts")
        # A captured graph does the same each time, which is known only of our own code.
        hooks = (getattr(type(trainer), name) for name in ("learn", "on_rollout", "networks"))
        self._captures = not self._left and all(map(is_ours, hooks))
        if self._compiling is not None:
            self._compiling.result()

    def describe(self) -> str:
        """For people."""
        return f"fast, with {' and '.join(sorted(self._left))} in plain torch" if self._left else "fast"

    # ---- playing ----

    def sampler(self, draws: Draws) -> Draw:
        """Draws by a kernel, unless an action is chosen part by part."""
        for network in draws.policy.networks:
            network.mlp = fused.mlp if self.on_cpu else dense.mlp
        if not draws.policy.actions.at_once:
            return super().sampler(draws)
        sampling = self._sampling[draws.name] = Sampling(draws)
        return sampling

    @torch.no_grad()
    def play(self, rollout: Rollout) -> None:
        """Plays by one plan on a CPU and one graph on a GPU, where that can be, from the second rollout on."""
        key = (rollout, *rollout.players.values(), rollout.opponents, torch.get_num_threads())
        if key != self._played:
            self._played, self._play = key, None
            if not self.on_cpu and self._at_once(rollout) and all(p.policy.builtin for p in rollout.players.values()):
                self._play = captured(lambda: super(Fast, self).play(rollout), self.device)
        elif self._play is None and self._at_once(rollout) and Steps.serves(rollout):
            self._play = self._planned(rollout)
        if self._play is None:
            super().play(rollout)
        else:
            self._play()

    @staticmethod
    def _at_once(rollout: Rollout) -> bool:
        return all(player.policy.actions.at_once for player in rollout.players.values())

    def _planned(self, rollout: Rollout) -> Callable[[], None]:
        steps, simulator = Steps(rollout, self._sampling), rollout.simulator

        def play() -> None:
            rollout.carry_over()
            with simulator.in_use:
                simulator.check_usable()
                simulator.use_outputs(rollout.outputs[-1])
                steps.run()
            rollout.finish()

        return play

    # ---- learning ----

    advantages = staticmethod(kernels.gae)
    discounted_sum = staticmethod(kernels.scan)

    def shuffle(self, learner: Learner, count: int, epoch: int) -> Tensor:
        """By a kernel, into the memory of the same pass of the update before."""
        found = self._orders.get((learner.name, epoch))
        if found is None or found[0].shape[1] != count:
            out = torch.empty(len(learner.counts), count, dtype=torch.int64, device=learner.counts.device)
            call = kernels.bind_shuffle(learner.rollout.seeds, learner.counter, learner.counts, out)
            found = self._orders[learner.name, epoch] = out, call
        out, call = found
        call(epoch)
        return out

    def minibatch(self, learner: Learner, part: int, index: Tensor, filled: Tensor | None) -> Minibatch:
        """On a CPU in the memory that this part of a pass had before."""
        count = index.shape[1]
        found = self._prepared.get((learner.name, part))
        if found is None or found.count != count or found.names != tuple(learner.columns):
            if not (self.on_cpu and count and PreparedMinibatch.serves(learner)):
                return super().minibatch(learner, part, index, filled)
            found = PreparedMinibatch(learner, FusedPolicy(learner.policy), count)
            self._prepared[learner.name, part] = found
        return found.load(learner, index, filled)

    def evaluate(self, batch: Minibatch, loss: TorchLoss, hyper: Hyper) -> Mapping[str, Tensor]:
        """By a kernel for the loss; on a CPU in one call with the networks, where these are dense ones."""
        compiled = self._loss(batch.policy, batch.names, batch.mask is not None, loss, hyper)
        if compiled is None:
            return super().evaluate(batch, loss, hyper)
        policy = batch.policy
        assert policy.flat.grad is not None
        if isinstance(batch, PreparedMinibatch):
            found = batch.differentiate(compiled, hyper.table)
        else:
            policy.flat.grad.zero_()
            out, value = batch.forward()
            found = compiled(
                out, value, policy.log_std, batch.mask, batch.action, batch.packed, batch.share, hyper.table
            )
            torch.autograd.backward([out, value], [found.out, found.value])
        if found.log_std.numel():
            assert policy.log_std.grad is not None
            policy.log_std.grad.copy_(found.log_std)
        return Numbers(compiled.numbers, lambda: distributed.all_reduce(found.numbers.sum(1)))

    def _loss(self, policy: Any, names: tuple[str, ...], masked: bool, loss: TorchLoss, hyper: Hyper) -> Loss | None:
        """A loss as a kernel for a policy's kind of actions, or None if it has no formula."""
        key = (loss, policy.actions, names, masked)
        if key in self._losses:
            found = self._losses[key]
            if found is None:
                return None
            if unchanged(found[0], loss):
                return found[1]
        traced = trace(loss, names, tuple(hyper)) if policy.actions.at_once else None
        if traced is None:
            self._losses[key] = None
            self._left.add("the loss")
            return None
        formula = Formula(traced.code, names, tuple(hyper), traced.numbers, policy.actions, masked)
        compiled = Loss(formula, policy.flat.device)
        self._losses[key] = traced, compiled
        return compiled

    def step(self, learner: Learner, rate: Tensor, max_grad_norm: Tensor) -> None:
        """By kernels for clipping and Adam."""
        found = self._descents.get(learner.name)
        if found is None:
            found = self._descents[learner.name] = Descent(learner, self.on_cpu)
        found.step(rate, max_grad_norm)

    def capture(self, function: Callable[[], Any]) -> Callable[[], Any]:
        """On a GPU a CUDA graph, if what it does is known to be the same at each call."""
        return captured(function, self.device) if self._captures else function
