"""Policies from networks of anybody's own, for `Trainer.networks`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .networks import Agents, Policy


class ModulePolicy(Policy):
    """A policy whose network is any module.

    The module says numbers of actions and values at once. Without a memory it is called with observations
    ``(rows, *shape)`` and returns numbers (rows, outputs) of actions and values (rows,).

    With an attribute ``memory_size`` above 0 it remembers so many numbers of each agent. What they are is its own
    affair: a vector, or a window of past embeddings. It is called with observations ``(steps, rows, *shape)``, the
    memory (rows, memory_size) before the first step, and ``begins`` (steps, rows), 1 where an episode begins. It
    returns numbers (steps, rows, outputs) of actions, values (steps, rows), and the memory after the last step. Where
    an episode begins in the first step, the memory is 0 already; in a later one, the module must forget by itself what
    was before. A rollout calls it with one step, an update with many.

    With a central critic (``critic="central"``) it is called with the global state as one more argument, the last one:
    (rows, state_size), or (steps, rows, state_size) with a memory. Values may use it, actions must not: where agents
    only play, it is 0.

    Where `Trainer.heads` names further heads, values have one more axis, (..., 1 + heads), and the first is the value
    of the game's rewards.

    Each member of a population has a module of its own, and they take turns. Parameters must be float32 and, like
    buffers, are those that the module has when it is made. Torch's random numbers are seeded by the member's seed
    before.

    Args:
        agents: for whom.
        make: makes the module of one member.

    Raises:
        ValueError: the module has no parameters, or other ones than float32.
    """

    builtin = False

    def __init__(self, agents: Agents, make: Callable[[], nn.Module]) -> None:
        self._begin(agents.observation_space, agents.action_space, len(agents.seeds),
                    bool(agents.options["normalize"]), bool(agents.options.get("one_hot")), agents.action_parts,
                    agents.heads, agents.device)  # fmt: skip
        self._agents, self._make, self._modules_of = agents, make, _made(make, agents.seeds)
        first = self._modules_of[0]
        if {p.dtype for p in first.parameters()} != {torch.float32}:
            raise ValueError(f"the module {type(first).__name__} must have parameters, all of them float32.")
        self.memory_size, self.seats, self.critic = int(getattr(first, "memory_size", 0)), 1, None
        self.central = agents.options["critic"] == "central"
        self._state_size = agents.options["state_size"] if self.central else 0
        self.why, self.form = "", {
            "hidden": [], "encoder": "module", "channels": [], "memory": self.memory_size, "activation": "",
            "critic": "central" if self.central else "shared", "state_size": self._state_size, "seats": 1,
            "normalize": self.normalize, "one_hot": bool(agents.options.get("one_hot")),
            "action_parts": list(agents.action_parts),
            "heads": list(self.heads), "module": type(first).__qualname__,
        }  # fmt: skip
        #: parameters and buffers of all members, of the same names and with one more axis in front
        self.module = copy.deepcopy(first)
        _stack(self.module, self._modules_of)
        self._finish(self._state_size)
        self._share()

    def _share(self) -> None:
        """The members' modules use the memory of those that are stacked."""
        for k, module in enumerate(self._modules_of):
            for mine, whole in zip(module.parameters(), self.module.parameters(), strict=True):
                assert whole.grad is not None
                mine.data, mine.grad = whole.data[k], whole.grad[k]
            for mine_part, whole_part in zip(module.modules(), self.module.modules(), strict=True):
                for name, buffer in whole_part.named_buffers(recurse=False):
                    mine_part._buffers[name] = buffer[k]

    def _like(self, members: int) -> Policy:
        changed = {**vars(self._agents), "seeds": (0,) * members, "device": self.flat.device}
        return ModulePolicy(Agents(**changed), self._make)

    @property
    def networks(self) -> list[Any]:
        """None that an executor could know."""
        return []

    def _shaped(self, x: Tensor, lead: int) -> Tensor:
        """In the shape of the observation."""
        return x

    def forward(
        self,
        observation: Tensor,
        state: Tensor | None = None,
        seat: Tensor | None = None,
        memory: Tensor | None = None,
        begins: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What the members' modules say, and the new memory; see `Policy.forward`."""
        x, modules = self.features(observation), self._modules_of
        states = [self._state(x, state)] if self.central else []
        if memory is None:
            found = [self._checked(m(x[k], *(s[k] for s in states)), x[k]) for k, m in enumerate(modules)]
            return torch.stack([o for o, _ in found]), torch.stack([v for _, v in found]), x.new_empty(0)
        begins = torch.zeros(x.shape[:3], device=x.device) if begins is None else begins
        memory = memory * (1 - begins[0].unsqueeze(-1))
        seen = [x, begins, *states]
        out, value, new = zip(
            *(
                self._checked(m(mine, memory[k], *rest), mine)
                for k, m in enumerate(modules)
                for mine, *rest in [[y[:, k] for y in seen]]
            ),
            strict=True,
        )
        return torch.stack(out, 1), torch.stack(value, 1), torch.stack(new)

    def _state(self, x: Tensor, state: Tensor | None) -> Tensor:
        """What the critic sees beside features; 0 where nobody asks for values."""
        if state is None:
            return x.new_zeros(*x.shape[: 3 if self.recurrent else 2], self._state_size)
        return self.seen_by_critic(x, state)

    def _checked(self, found: Any, x: Tensor) -> tuple[Tensor, ...]:
        """Refuses what is not of the shapes that the rest relies on, since it might broadcast."""
        lead = x.shape[: 2 if self.recurrent else 1]
        wanted = [(*lead, self.actions.outputs), (*lead, *self.value_shape)]
        wanted += [(lead[1], self.memory_size)] if self.recurrent else []
        have = [tuple(y.shape) for y in found] if isinstance(found, tuple) else type(found).__name__
        if have != wanted:
            raise ValueError(f"{type(self.module).__name__} must return a tuple of shapes {wanted} for observations "
                             f"{tuple(x.shape)}, not {have}.")  # fmt: skip
        return tuple(found)

    def act(
        self, observation: Tensor, memory: Tensor | None = None, begins: Tensor | None = None
    ) -> tuple[Tensor, Any]:
        """Numbers of actions, and the new memory."""
        out, _, memory = self(observation, None, None, memory, begins)
        return out, memory

    def value(
        self, observation: Tensor, state: Tensor | None = None, seat: Tensor | None = None, memory: Tensor | None = None
    ) -> Tensor:
        """Values ``(members, rows, *value_shape)``; with a memory, of one more step."""
        if memory is None:
            return self(observation, state)[1]
        state = None if state is None else state.unsqueeze(0)
        return self(observation.unsqueeze(0), state, None, memory)[1][0]


def _made(make: Callable[[], nn.Module], seeds: tuple[int, ...]) -> list[nn.Module]:
    """A module for each seed, whatever else draws torch's random numbers."""
    out = []
    for seed in seeds:
        with torch.random.fork_rng([]):
            torch.manual_seed(seed)
            out.append(make())
    return out


def _stack(whole: nn.Module, modules: list[nn.Module]) -> None:
    """Gives a module the parameters and buffers of several, with the members as their first axis."""
    for same in zip(whole.parameters(), *(m.parameters() for m in modules), strict=True):
        same[0].data = torch.stack([p.data for p in same[1:]])
    for parts in zip(whole.modules(), *(m.modules() for m in modules), strict=True):
        for name, _ in parts[0].named_buffers(recurse=False):
            parts[0]._buffers[name] = torch.stack([p.get_buffer(name) for p in parts[1:]])
