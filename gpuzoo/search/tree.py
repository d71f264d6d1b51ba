"""Search trees in arrays: many side by side, on the device, and rows of bytes that hold the states of their nodes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from gpuzoo.core.backend import Backend, Unit
from gpuzoo.core.units import unit_code
from gpuzoo.search.settings import RULES, Rule, Settings
from gpuzoo.tensors import as_tensor

KERNELS = ("tree_begin", "tree_select", "tree_backup", "tree_complete", "state_carry")


@functools.cache
def code() -> str:
    """The translation unit."""
    return unit_code(Path(__file__).with_name("tree.cuh"))


def unit_of(backend: Backend) -> Unit:
    """The compiled translation unit."""
    return backend.compile_unit(code(), "search", KERNELS)


def bound(unit: Unit, kernel: str, words: Sequence[int | Tensor]) -> Callable[[], None]:
    """A call of a kernel. It keeps its tensors alive."""
    call = unit.bind(kernel, [word.data_ptr() if isinstance(word, Tensor) else word for word in words])

    def launch(kept: Sequence[int | Tensor] = tuple(words)) -> None:
        call(0)

    return launch


def considered_visits(actions: int, simulations: int) -> list[int]:
    """Visits that an action of the root must have to be considered, by simulation: sequential halving.

    Danihelka et al., "Policy improvement by planning with Gumbel" (2022), section 3.4: ``actions`` actions get the same
    number of visits, then the better half of them, and so on down to two.

    Args:
        actions: how many are considered at first.
        simulations: how many there are.
    """
    if actions <= 1:
        return list(range(simulations))
    rounds, visits, found, left = math.ceil(math.log2(actions)), [0] * actions, list[int](), actions
    while len(found) < simulations:
        for _ in range(max(1, int(simulations / (rounds * left)))):
            found += visits[:left]
            for k in range(left):
                visits[k] += 1
        left = max(2, left // 2)
    return found[:simulations]


class Tree:
    """Trees that grow by one node each with every simulation.

    The model and the evaluation are the caller's: after `begin`, call `select`, find out what lies behind the actions
    ``chosen`` of the nodes ``origin``, and give that to `backup`.

    Args:
        trees: how many, T.
        simulations: nodes besides the root, N - 1.
        actions: A.
        rule: how actions are selected: ``"puct"`` (AlphaZero, MuZero), ``"gumbel"`` (Gumbel MuZero) or ``"uct"``.
        backend: of the device.
        settings: constants of the rules.

    Attributes:
        visits, value, raw_value, reward, discount, over, parent: of each node, (T, N); ``value`` is the mean of what
            was found at the node and below, ``raw_value`` what the evaluation said.
        child: int32 (T, N, A): the node behind an action; 0 where there is none.
        logits: float32 (T, N, A), minus infinity where an action is illegal.
        origin: int64 (T,): row of the node, among all T * N, to which `select` came.
        row: int64 (T,): row of the new node, -1 where there is none.
        chosen: int32 (T,): the action that leads from one to the other, -1 where there is none.
        gumbel: float32 (T, A): noise of the root's actions, to be written before the first `select`.
    """

    def __init__(
        self, trees: int, simulations: int, actions: int, rule: Rule, backend: Backend, settings: Settings
    ) -> None:
        nodes, device = simulations + 1, as_tensor(backend.empty((1,), "float32")).device
        self.trees, self.nodes, self.actions, self.rule = trees, nodes, actions, rule
        new = functools.partial(torch.zeros, device=device)
        self.visits, self.parent = (new((trees, nodes), dtype=torch.int32) for _ in range(2))
        self.value, self.raw_value, self.reward, self.discount = (new((trees, nodes)) for _ in range(4))
        self.over = new((trees, nodes), dtype=torch.bool)
        self.child = new((trees, nodes, actions), dtype=torch.int32)
        self.logits = new((trees, nodes, actions))
        self.size, self.chosen = (new(trees, dtype=torch.int32) for _ in range(2))
        self.origin, self.row = (new(trees, dtype=torch.int64) for _ in range(2))
        self.gumbel, self._scratch, self._logits = (new((trees, actions)) for _ in range(3))
        self._value, self._reward, self._discount = (new(trees) for _ in range(3))
        self._over = new(trees, dtype=torch.bool)
        most = min(settings.considered, actions)
        table = torch.tensor([considered_visits(n, simulations) for n in range(most + 1)], dtype=torch.int32).to(device)
        words: list[int | Tensor] = [
            *(trees, max(1, torch.get_num_threads()), nodes, actions, RULES.index(rule)),
            torch.tensor(settings.numbers(), dtype=torch.float32).to(device),
            *(self.visits, self.parent, self.value, self.raw_value, self.reward, self.discount, self.over),
            *(self.child, self.logits, self.size, self.origin, self.row, self.chosen, self.gumbel),
            *(table, simulations, most, self._scratch),
            *(self._logits, self._value, self._reward, self._discount, self._over),
        ]
        unit = unit_of(backend)
        self._begin, self._select, self._backup, self._complete = (bound(unit, kernel, words) for kernel in KERNELS[:4])

    def begin(self, logits: Tensor, value: Tensor, over: Tensor) -> None:
        """Makes trees of one node.

        Args:
            logits: (T, A), minus infinity where an action is illegal.
            value: (T,): of the root, for who moves there.
            over: bool (T,): whether the episode is over there.
        """
        self._logits.copy_(logits)
        self._value.copy_(value)
        self._over.copy_(over)
        self._begin()

    def select(self) -> None:
        """Goes down in each tree, and writes ``origin``, ``chosen`` and ``row``."""
        self._select()

    def backup(self, logits: Tensor, value: Tensor, reward: Tensor, discount: Tensor, over: Tensor) -> None:
        """Adds the nodes behind the actions that were chosen.

        Args:
            logits: (T, A).
            value: (T,): for who moves at the new node.
            reward: (T,): of the action, for who chose it.
            discount: (T,): the weight of the new node's value for who chose the action: negative for opponents.
            over: bool (T,): whether the episode is over at the new node, which is then worth 0.
        """
        self._logits.copy_(logits)
        self._value.copy_(value)
        self._reward.copy_(reward)
        self._discount.copy_(discount)
        self._over.copy_(over)
        self._backup()

    def root_visits(self) -> Tensor:
        """int32 (T, A): how often each action of the root was taken."""
        child = self.child[:, 0].long()
        return torch.where(child > 0, self.visits.gather(1, child), 0)

    def root_q(self) -> Tensor:
        """float32 (T, A): values of the root's actions, for who moves there; 0 where one was not tried."""
        child = self.child[:, 0].long()
        q = self.reward.gather(1, child) + self.discount.gather(1, child) * self.value.gather(1, child)
        return torch.where(child > 0, q, 0.0)

    def completed(self) -> Tensor:
        """float32 (T, A): completed and scaled values of the root's actions, see ``complete`` in tree.cuh."""
        self._complete()
        return self._scratch.clone()
