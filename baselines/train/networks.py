"""Policies: networks for a population of agents, whose weights lie side by side with the member as their first axis."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn
from torch.nn import functional

from gpuzoo.core.definition import choices

from ..fast.fused import Towers, towers, towers_and_back
from ..fast.native import Rows, copy
from ..fast.units import Call
from .actions import Actions
from .layers import Network, Scale


class Policy(nn.Module):
    """Actors and critics of a population, for one kind of agent.

    Args:
        observation_space: of one agent.
        action_space: of one agent.
        seeds: of the initial weights, one for each member of the population.
        hidden: sizes of the dense layers.
        encoder: ``"mlp"``, ``"cnn"``, or ``"auto"``: a CNN where observations are images (height, width, channels).
        channels: of the convolutions.
        memory: size of a GRU behind the dense layers; 0 for none.
        activation: ``"tanh"`` or ``"relu"``.
        critic: ``"separate"``: a network of its own; ``"shared"``: all layers but the last are the actor's;
            ``"central"``: a network of its own that sees the global state.
        state_size: numbers in the global state, for a central critic.
        seats: agents of an env that the policy plays; a central critic has a value for each.
        normalize: observations (and states) by their running mean and deviation.
        device: where it lies.

    Attributes:
        flat: all parameters, (members, size): an optimiser's step on it is few operations. Its gradient and those of
            the parameters are the same memory.
        memory_size: numbers that an agent remembers.

    Raises:
        ValueError: a CNN for observations that are no images.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        seeds: Sequence[int] = (0,),
        *,
        hidden: Sequence[int] = (64, 64),
        encoder: str = "auto",
        channels: Sequence[int] = (16, 32),
        memory: int = 0,
        activation: str = "tanh",
        critic: str = "separate",
        state_size: int = 0,
        seats: int = 1,
        normalize: bool = False,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        self.observation_space, self.action_space = observation_space, action_space
        self.form: dict[str, Any] = {
            "hidden": list(hidden), "encoder": encoder, "channels": list(channels), "memory": memory,
            "activation": activation, "critic": critic, "state_size": state_size, "seats": seats,
            "normalize": normalize,
        }  # fmt: skip
        self.actions = Actions(action_space, device)
        self.members, self.central, self.normalize, self.seats = len(seeds), critic == "central", normalize, seats
        self.one_hot = choices(observation_space)
        shape = (sum(self.one_hot),) if self.one_hot else tuple(observation_space.shape or ())
        image = not self.one_hot and len(shape) == 3 and encoder != "mlp"
        if encoder == "cnn" and not image:
            raise ValueError(f"a CNN needs observations of shape (height, width, channels), not {observation_space}.")
        shape = shape if image else (int(np.prod(shape)),)
        generators = [torch.Generator().manual_seed(s) for s in seeds]
        common: dict[str, Any] = {"hidden": hidden, "memory": memory, "activation": activation}
        choice, worth = (self.actions.outputs, 0.01), (seats if self.central else 1, 1.0)
        if critic == "shared":
            self.actor = Network(generators, shape, outputs=[choice, worth], channels=channels, **common)
            self.critic = None
        else:
            self.actor = Network(generators, shape, outputs=[choice], channels=channels, **common)
            seen = (state_size,) if self.central else shape
            self.critic = Network(generators, seen, outputs=[worth], channels=channels, **common)
        self.memory_size = memory * (1 if self.critic is None else 2)
        self.log_std = nn.Parameter(torch.zeros(self.members, 0 if self.actions.discrete else self.actions.parts))
        self.to(device)
        self._flatten()
        #: ``of``: what `flat`'s gradient is that of, where somebody wants to know
        self.gradient = SimpleNamespace(of=None)
        self.scale = Scale(self.members, int(np.prod(observation_space.shape or (1,))), device)
        self.state_scale = Scale(self.members, state_size if self.central else 0, device)

    def _flatten(self) -> None:
        """All weights lie in one tensor, in the order that `towers` wants, and so do their gradients."""
        networks = [self.actor, *([] if self.critic is None else [self.critic])]
        dense = [x for n in networks for layer in zip(*n.layers, strict=True) for x in layer]
        known = {id(x) for x in dense}
        ordered = [*dense, *(x for x in self.parameters() if id(x) not in known)]
        self.flat = torch.cat([p.detach().reshape(self.members, -1) for p in ordered], 1).requires_grad_()
        self.flat.grad = torch.zeros_like(self.flat)
        end = 0
        for parameter in ordered:
            part, end = slice(end, end + parameter[0].numel()), end + parameter[0].numel()
            parameter.data = self.flat.data[:, part].view_as(parameter)
            parameter.grad = self.flat.grad[:, part].view_as(parameter)
        #: the shapes of networks that `towers` takes together
        self._towers = tuple(n.sizes for n in networks) if all(n.plain for n in networks) and not self.central else ()
        self._dense = sum(x[0].numel() for x in dense)

    def member(self, k: int) -> Policy:
        """Member ``k`` of the population, as a policy of its own with a copy of the weights."""
        alone = Policy(self.observation_space, self.action_space, device=self.flat.device, **self.form)
        alone.load_state_dict({name: x[k : k + 1] for name, x in self.state_dict().items()})
        return alone

    @property
    def is_fused(self) -> bool:
        """Whether all networks run in one call, see `bind`."""
        return bool(self._towers) and Towers.serves(self.flat, self._towers)

    @functools.cached_property
    def _fused(self) -> Towers:
        return Towers(self.flat.data, self._towers, self.actor.activation)

    def bind(self, x: Tensor, out: Tensor, value: Tensor, kept: Tensor | None = None) -> list[Call]:
        """Prepares what `forward` does with features, on a CPU, if the policy `is_fused`.

        Args:
            x: (members, rows, features) float32.
            out: (members, rows, outputs), contiguous; is written.
            value: (members, rows), contiguous; is written.
            kept: from `room`, if there will be a way back.
        """
        if self.critic is not None:
            return [self._fused.bind(x, [out, value], kept)]
        both, columns = self._both(out)
        into = [Rows(out.detach().view(len(both), -1)), Rows(value.detach().view(-1, 1))]
        return [self._fused.bind(x, [both], kept), *map(copy, into, columns, (out.shape[-1], 1))]

    def room(self, rows: int) -> Tensor:
        """Memory for what `bind` keeps of so many rows of each member."""
        return self._fused.room(rows * self.members)

    def bind_back(self, x: Tensor, kept: Tensor, slope: Tensor, of_value: Tensor) -> list[Call]:
        """Prepares the way back from gradients of what `bind` wrote, contiguous ones, to `flat`'s gradient."""
        assert self.flat.grad is not None
        if self.critic is not None:
            return [self._fused.bind_back(x, kept, [slope, of_value], self.flat.grad)]
        both, columns = self._both(slope)
        sources = [Rows(slope.view(len(both), -1)), Rows(of_value.view(-1, 1))]
        return [*map(copy, columns, sources, (slope.shape[-1], 1)),
                self._fused.bind_back(x, kept, [both], self.flat.grad)]  # fmt: skip

    def bind_descent(self, x: Tensor, out: Tensor, value: Tensor, loss: Call, slope: Tensor, of_value: Tensor) -> Call:
        """Prepares `bind`, a loss that writes the gradients of ``out`` and ``value``, and `bind_back`, as one call.

        It is for a separate critic. The loss is an entry for some of its rows, see `Loss.bind_rows`.
        """
        assert self.critic is not None
        assert self.flat.grad is not None
        return self._fused.bind_descent(x, [out, value], loss, [slope, of_value], self.flat.grad)

    @staticmethod
    def _both(out: Tensor) -> tuple[Tensor, list[Rows]]:
        """A row for outputs and a value each, and where in it they lie."""
        both = torch.empty(out.shape[0] * out.shape[1], out.shape[2] + 1)
        return both, [Rows(both), Rows(both, [out.shape[2]])]

    @property
    def recurrent(self) -> bool:
        """Whether it remembers."""
        return self.memory_size > 0

    def features(self, observation: Tensor) -> Tensor:
        """Numbers for the networks: one-hot where the space counts choices, normalised if wanted."""
        lead = observation.ndim - len(self.observation_space.shape or ())
        if self.one_hot:
            columns = observation.flatten(lead).long().unbind(-1) if observation.ndim > lead else [observation.long()]
            return torch.cat([functional.one_hot(c, n).float() for c, n in zip(columns, self.one_hot, strict=True)], -1)
        x = observation.float()
        if self.normalize:
            x = self.scale(x.flatten(lead)).view_as(x)
        return x if self.actor.image or x.ndim == lead + 1 else x.flatten(lead)

    def seen_by_critic(self, x: Tensor, state: Tensor | None) -> Tensor:
        """The critic's input: the features, or the global state."""
        if not self.central:
            return x
        assert state is not None
        return self.state_scale(state) if self.normalize else state.float()

    def _seat(self, value: Tensor, seat: Tensor | None) -> Tensor:
        if seat is None:
            return value.squeeze(-1)
        return value.gather(-1, seat.expand(value.shape[:-1]).unsqueeze(-1)).squeeze(-1)

    def forward(
        self,
        observation: Tensor,
        state: Tensor | None = None,
        seat: Tensor | None = None,
        memory: Tensor | None = None,
        begins: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Outputs of the actor, values, and the new memory.

        Args:
            observation: (members, rows, ...); with a memory (steps, members, rows, ...).
            state: (members, rows, state_size) or with steps in front, for a central critic.
            seat: (rows,) or of the shape of the values: which of its agents a row is, for a central critic.
            memory: (members, rows, memory_size) before the first step.
            begins: (steps, members, rows), 1 where an episode begins.

        Returns:
            (members, rows, outputs) and (members, rows), with steps in front as the observation has; and the memory.
        """
        x = self.features(observation)
        if self._towers:
            dense = self.flat if self._dense == self.flat.shape[1] else self.flat[:, : self._dense]
            out, *value = towers(x, dense, self._towers, self.actor.activation)
            return (out, value[0][..., 0], x) if value else (out[..., :-1], out[..., -1], x)
        if self.critic is None:
            out, memory = self.actor(x, memory, begins)
            return out[..., :-1], out[..., -1], memory
        mine, other = (None, None) if memory is None else memory.chunk(2, -1)
        out, mine = self.actor(x, mine, begins)
        value, other = self.critic(self.seen_by_critic(x, state), other, begins)
        return out, self._seat(value, seat if self.central else None), torch.cat([mine, other], -1)

    def forward_and_back(
        self,
        observation: Tensor,
        state: Tensor | None = None,
        seat: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Callable[[Tensor, Tensor], None]]:
        """Outputs and values as `forward` gives them, for a policy without memory, and the way back.

        The third result, called with gradients of the first two, makes `flat`'s gradient that of a loss. The gradient
        of ``log_std``, which outputs and values do not depend on, is then 0 or what it was.
        """
        if not self._towers:
            out, value, _ = self(observation, state, seat)
            out, value = out.float(), value.float()
            return out, value, self.through_autograd(out, value)
        gradient = self.flat.grad
        assert gradient is not None
        dense = slice(None) if self._dense == self.flat.shape[1] else slice(self._dense)
        x = self.features(observation)
        outs, back = towers_and_back(x, self.flat[:, dense], self._towers, self.actor.activation)
        if len(outs) == 1:
            both = outs[0].detach()

            def through_one(slope: Tensor, of_value: Tensor) -> None:
                back([torch.cat([slope, of_value.unsqueeze(-1)], -1)], gradient[:, dense])

            return both[..., :-1].requires_grad_(), both[..., -1].requires_grad_(), through_one
        value = outs[1].detach()[..., 0].requires_grad_()

        def through_both(slope: Tensor, of_value: Tensor) -> None:
            back([slope, of_value.unsqueeze(-1)], gradient[:, dense])

        return outs[0], value, through_both

    def through_autograd(self, out: Tensor, value: Tensor) -> Callable[[Tensor, Tensor], None]:
        """The way back from outputs and values, see `forward_and_back`."""

        def back(slope: Tensor, of_value: Tensor) -> None:
            assert self.flat.grad is not None
            self.flat.grad.zero_()
            torch.autograd.backward([out, value], [slope, of_value])

        return back

    def act(
        self, observation: Tensor, memory: Tensor | None = None, begins: Tensor | None = None
    ) -> tuple[Tensor, Any]:
        """Outputs of the actor and the new memory, without the critic; see `forward`."""
        x = self.features(observation)
        if self.critic is None:
            out, memory = self.actor(x, memory, begins)
            return out[..., :-1], memory
        if memory is None:
            return self.actor(x)[0], None
        mine, other = memory.chunk(2, -1)
        out, mine = self.actor(x, mine, begins)
        return out, torch.cat([mine, other], -1)

    def value(
        self, observation: Tensor, state: Tensor | None = None, seat: Tensor | None = None, memory: Tensor | None = None
    ) -> Tensor:
        """The critic's values (members, rows); with a memory, of one more step."""
        if memory is not None:
            state = None if state is None else state.unsqueeze(0)
            return self(observation.unsqueeze(0), state, seat, memory)[1][0]
        x = self.features(observation)
        if self.critic is None:
            return self.actor(x)[0][..., -1]
        return self._seat(self.critic(self.seen_by_critic(x, state))[0], seat if self.central else None)
