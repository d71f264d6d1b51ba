"""Policies: networks for a population of agents, whose weights lie side by side with the member as their first axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn
from torch.nn import functional

from gpuzoo.core.definition import choices

from .actions import Actions
from .encoders import choose
from .layers import Network, Scale


class Policy(nn.Module):
    """Actors and critics of a population, for one kind of agent.

    Args:
        observation_space: of one agent.
        action_space: of one agent.
        seeds: of the initial weights, one for each member of the population.
        hidden: sizes of the dense layers.
        encoder: ``"mlp"``, ``"cnn"``, or ``"auto"``: a CNN where observations are images (height, width, channels) and
            it costs little enough, see `encoders.choose`.
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
        why: the reason for the encoder that ``"auto"`` chose; empty where there was no choice.
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
        self.one_hot = choices(observation_space)
        shape = (sum(self.one_hot),) if self.one_hot else tuple(observation_space.shape or ())
        if encoder == "cnn" and len(shape) != 3:
            raise ValueError(f"a CNN needs observations of shape (height, width, channels), not {observation_space}.")
        encoder, self.why = choose(encoder, shape, hidden, channels)
        self.form: dict[str, Any] = {
            "hidden": list(hidden), "encoder": encoder, "channels": list(channels), "memory": memory,
            "activation": activation, "critic": critic, "state_size": state_size, "seats": seats,
            "normalize": normalize,
        }  # fmt: skip
        self.actions = Actions(action_space, device)
        self.members, self.central, self.normalize, self.seats = len(seeds), critic == "central", normalize, seats
        shape = shape if encoder == "cnn" else (int(np.prod(shape)),)
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
        self.scale = Scale(self.members, int(np.prod(observation_space.shape or (1,))), device)
        self.state_scale = Scale(self.members, state_size if self.central else 0, device)

    def _flatten(self) -> None:
        """All weights lie in one tensor, and so do their gradients: dense layers first, network by network."""
        dense = [x for n in self.networks for layer in zip(*n.layers, strict=True) for x in layer]
        known = {id(x) for x in dense}
        ordered = [*dense, *(x for x in self.parameters() if id(x) not in known)]
        self.flat = torch.cat([p.detach().reshape(self.members, -1) for p in ordered], 1).requires_grad_()
        self.flat.grad = torch.zeros_like(self.flat)
        end = 0
        for parameter in ordered:
            part, end = slice(end, end + parameter[0].numel()), end + parameter[0].numel()
            parameter.data = self.flat.data[:, part].view_as(parameter)
            parameter.grad = self.flat.grad[:, part].view_as(parameter)

    @property
    def networks(self) -> list[Network]:
        """The actor, and the critic if it is another one."""
        return [self.actor, *([] if self.critic is None else [self.critic])]

    def member(self, k: int) -> Policy:
        """Member ``k`` of the population, as a policy of its own with a copy of the weights."""
        alone = Policy(self.observation_space, self.action_space, device=self.flat.device, **self.form)
        alone.load_state_dict({name: x[k : k + 1] for name, x in self.state_dict().items()})
        return alone

    @property
    def recurrent(self) -> bool:
        """Whether it remembers."""
        return self.memory_size > 0

    @property
    def values_apart(self) -> bool:
        """Whether `value` costs no more than its part of `forward`, so that it can be called later."""
        return self.critic is not None and not self.recurrent

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
        if self.critic is None:
            out, memory = self.actor(x, memory, begins)
            return out[..., :-1], out[..., -1], memory
        mine, other = (None, None) if memory is None else memory.chunk(2, -1)
        out, mine = self.actor(x, mine, begins)
        value, other = self.critic(self.seen_by_critic(x, state), other, begins)
        return out, self._seat(value, seat if self.central else None), torch.cat([mine, other], -1)

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
