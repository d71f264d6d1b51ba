"""Policies: networks for a population of agents, whose weights lie side by side with the member as their first axis."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor, nn

from gpuzoo.core.definition import Entities

from .boards import BoardNetwork
from .encoders import board_refusal, choose, feature_shape, one_hot, set_refusal
from .factored import meaning
from .layers import Network, Scale
from .sets import SetNetwork


@dataclasses.dataclass(frozen=True)
class Agents:
    """For whom `Trainer.networks` makes a policy.

    Attributes:
        name: of the policy.
        groups: of agents that it plays.
        observation_space, action_space: of one agent.
        seeds: of the initial weights, one for each member of the population.
        heads: names of the critic's heads besides the one of the game's rewards.
        device: where the policy shall be.
        options: of the run, for the built-in networks; see `Policy`.
    """

    name: str
    groups: tuple[str, ...]
    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    seeds: tuple[int, ...]
    heads: tuple[str, ...]
    device: torch.device
    options: Mapping[str, Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of what a network sees of one agent: that of its observation, in which choices are one-hot."""
        return feature_shape(self.observation_space, bool(self.options.get("one_hot")))

    @property
    def outputs(self) -> int:
        """Numbers that a network says of the action: the logits of all choices, or the means of a Box."""
        return meaning(self.action_space, self.action_parts).outputs

    @property
    def action_parts(self) -> tuple[int, ...]:
        """Choices of the parts in which an action is chosen, see `FactoredActions`; empty: of all parts at once."""
        return tuple(self.options.get("action_parts", ()))


AnyNetwork = Network | SetNetwork | BoardNetwork
NOTHING = (0, 1.0)  # outputs and the gain of their weights


class Policy(nn.Module):
    """Actors and critics of a population, for one kind of agent.

    Args:
        observation_space: of one agent.
        action_space: of one agent.
        seeds: of the initial weights, one for each member of the population.
        hidden: sizes of the dense layers.
        encoder: ``"mlp"``, ``"cnn"``, or ``"auto"``: a CNN where observations are images (height, width, channels) and
            it costs little enough, see `encoders.choose`; ``"set"``: attention between the entities of a game, see
            `sets.SetNetwork`, whose layers have the widths ``hidden``; ``"board"``: convolutions that say of each cell
            what to do there, see `boards.BoardNetwork`.
        entities: which numbers of an observation tell about which entity, for ``"set"``; also as the dictionary that
            a checkpoint has.
        cells: where actions lie on the board, for ``"board"``; see `EnvDef.action_cells`. A checkpoint does not have
            them.
        channels: of the convolutions.
        memory: size of a GRU behind the dense layers; 0 for none.
        activation: ``"tanh"`` or ``"relu"``.
        critic: ``"separate"``: a network of its own; ``"shared"``: all layers but the last are the actor's;
            ``"central"``: a network of its own that sees the global state.
        state_size: numbers in the global state, for a central critic.
        seats: agents of an env that the policy plays; a central critic has a value for each.
        normalize: observations (and states) by their running mean and deviation; one-hot vectors stay as they are.
        one_hot: whether the integers of a Box become one-hot vectors, see `encoders.one_hot`.
        action_parts: choices of each part of an action, where each is chosen given those before it; see
            `FactoredActions`.
        heads: names of further heads of the critic; values are then (..., 1 + heads).
        device: where it lies.

    Attributes:
        heads: names of the critic's further heads.
        flat: all parameters, (members, size): an optimiser's step on it is few operations. Its gradient and those of
            the parameters are the same memory.
        why: the reason for the encoder that ``"auto"`` chose; empty where there was no choice.
        memory_size: numbers that an agent remembers.

    Raises:
        ValueError: an encoder that does not fit the spaces, or parts that do not fit the action space.
    """

    #: whether the networks are those of this package
    builtin = True
    _alike: Tensor | None = None

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        seeds: Sequence[int] = (0,),
        *,
        hidden: Sequence[int] = (64, 64),
        encoder: str = "auto",
        entities: Entities | Mapping[str, Any] | None = None,
        cells: NDArray[np.int64] | None = None,
        channels: Sequence[int] = (16, 32),
        memory: int = 0,
        activation: str = "tanh",
        critic: str = "separate",
        state_size: int = 0,
        seats: int = 1,
        normalize: bool = False,
        one_hot: bool = False,
        action_parts: Sequence[int] = (),
        heads: Sequence[str] = (),
        device: torch.device | str = "cpu",
    ) -> None:
        self._begin(observation_space, action_space, len(seeds), normalize, one_hot, action_parts, heads, device)
        shape = feature_shape(observation_space, one_hot)
        if encoder == "cnn" and len(shape) != 3:
            raise ValueError(f"a CNN needs observations of shape (height, width, channels), not {observation_space}.")
        encoder, self.why = choose(encoder, shape, hidden, channels)
        self.cells = cells if encoder == "board" else None
        if encoder == "board" and (fault := board_refusal(cells, shape, channels, memory, action_parts)):
            raise ValueError(fault)
        things = Entities.of(entities) if isinstance(entities, Mapping) else entities
        if encoder != "set":
            things = None
        elif fault := set_refusal(things, observation_space, action_space, hidden, memory, one_hot, action_parts):
            raise ValueError(fault)
        self.form: dict[str, Any] = {
            "hidden": list(hidden), "encoder": encoder, "channels": list(channels), "memory": memory,
            "activation": activation, "critic": critic, "state_size": state_size, "seats": seats,
            "normalize": normalize, **({"one_hot": True} if one_hot else {}),
            **({"action_parts": list(action_parts)} if action_parts else {}),
            **({"heads": list(heads)} if heads else {}),
            **({"entities": dataclasses.asdict(things)} if things else {}),
        }  # fmt: skip
        self.central, self.seats = critic == "central", seats
        shape = shape if encoder in ("cnn", "board") else (int(np.prod(shape)),)
        generators = [torch.Generator().manual_seed(s) for s in seeds]
        common: dict[str, Any] = {"hidden": hidden, "memory": memory, "activation": activation}
        choice, worth = (self.actions.outputs, 0.01), ((seats if self.central else 1) * (1 + len(heads)), 1.0)

        def network(choices: tuple[int, float], values: tuple[int, float]) -> AnyNetwork:
            """For what agents observe, with both outputs or one of them."""
            if self.cells is not None:
                return BoardNetwork(generators, shape, self.cells, channels, hidden, choices, values, activation)
            if things is not None:
                return SetNetwork(generators, shape[0], things, hidden, choices, values, activation)
            parts = [part for part in (choices, values) if part[0]]
            return Network(generators, shape, outputs=parts, channels=channels, **common)

        self.actor = network(choice, worth if critic == "shared" else NOTHING)
        self.critic: AnyNetwork | None = None
        if self.central:
            self.critic = Network(generators, (state_size,), outputs=[worth], channels=channels, **common)
        elif critic != "shared":
            self.critic = network(NOTHING, worth)
        if things is not None:
            self._alike = torch.from_numpy(things.alike(shape[0])).to(device)
        self.memory_size = memory * (1 if self.critic is None else 2)
        self._finish(state_size if self.central else 0)

    def _begin(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        members: int,
        normalize: bool,
        boxes: bool,
        action_parts: Sequence[int],
        heads: Sequence[str],
        device: torch.device | str,
    ) -> None:
        """What does not depend on the networks."""
        super().__init__()
        self.observation_space, self.action_space = observation_space, action_space
        self.actions, self.shape = meaning(action_space, action_parts, device), feature_shape(observation_space, boxes)
        self.members, self.normalize, self.heads, self.device = members, normalize, tuple(heads), torch.device(device)
        columns, values = one_hot(observation_space, boxes)
        self.one_hot = len(columns) > 0
        self.register_buffer("_columns", torch.from_numpy(columns), persistent=False)
        self.register_buffer("_values", torch.from_numpy(values), persistent=False)
        self._columns: Tensor
        self._values: Tensor

    def _finish(self, state_size: int) -> None:
        """Puts the weights where they belong, once the networks are there."""
        self.log_std = nn.Parameter(torch.zeros(self.members, 0 if self.actions.discrete else self.actions.parts))
        self.to(self.device)
        self._flatten()
        self.scale = Scale(self.members, int(np.prod(self.observation_space.shape or (1,))), self.device)
        self.state_scale = Scale(self.members, state_size, self.device)

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
    def networks(self) -> list[AnyNetwork]:
        """The actor, and the critic if it is another one."""
        return [self.actor, *([] if self.critic is None else [self.critic])]

    def member(self, k: int) -> Policy:
        """Member ``k`` of the population, as a policy of its own with a copy of the weights."""
        return self.stacked([{name: x[k : k + 1] for name, x in self.state_dict().items()}])

    def stacked(self, weights: Sequence[Mapping[str, Tensor]]) -> Policy:
        """A policy of the same form with other members.

        Args:
            weights: state of each, as a policy of one member has it.
        """
        policy = self._like(len(weights))
        state = policy.state_dict()
        policy.load_state_dict({k: torch.cat([w[k].to(v.device) for w in weights]) for k, v in state.items()})
        return policy

    def _like(self, members: int) -> Policy:
        spaces = self.observation_space, self.action_space
        return Policy(*spaces, [0] * members, cells=self.cells, device=self.flat.device, **self.form)

    @property
    def value_shape(self) -> tuple[int, ...]:
        """What stands behind the rows of values: nothing for one head."""
        return (1 + len(self.heads),) if self.heads else ()

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
            numbers = observation.flatten(lead) if observation.ndim > lead else observation.unsqueeze(-1)
            same = numbers.index_select(-1, self._columns) == self._values
            return self._shaped(same.float().unflatten(-1, self.shape), lead)
        x = observation.float()
        if self.normalize:
            x = self.scale(x.flatten(lead), self._alike).view_as(x)
        return self._shaped(x, lead)

    def _shaped(self, x: Tensor, lead: int) -> Tensor:
        """Features (*lead, ...) as the networks want them: images, or rows of numbers."""
        return x if self.actor.image or x.ndim == lead + 1 else x.flatten(lead)

    def seen_by_critic(self, x: Tensor, state: Tensor | None) -> Tensor:
        """The critic's input: the features, or the global state."""
        if not self.central:
            return x
        assert state is not None
        return self.state_scale(state) if self.normalize else state.float()

    def _seat(self, value: Tensor, seat: Tensor | None) -> Tensor:
        if self.heads:
            value = value.unflatten(-1, (-1, 1 + len(self.heads)))  # (..., seats, heads)
            if seat is None:
                return value.squeeze(-2)
            return value.take_along_dim(seat.expand(value.shape[:-2])[..., None, None], -2).squeeze(-2)
        if seat is None:
            return value.squeeze(-1)
        return value.gather(-1, seat.expand(value.shape[:-1]).unsqueeze(-1)).squeeze(-1)

    def _both(self, out: Tensor) -> tuple[Tensor, Tensor]:
        """What an actor with the critic's heads says of actions, and values."""
        last = 1 + len(self.heads)
        return out[..., :-last], self._seat(out[..., -last:], None)

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
            (members, rows, outputs) and ``(members, rows, *value_shape)``, with steps in front as the observation
            has; and the memory.
        """
        x = self.features(observation)
        if self.critic is None:
            out, memory = self.actor(x, memory, begins)
            return *self._both(out), memory
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
            return self._both(out)[0], memory
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
            return self._both(self.actor(x)[0])[1]
        return self._seat(self.critic(self.seen_by_critic(x, state))[0], seat if self.central else None)
