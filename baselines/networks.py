"""Policies: networks for a population of agents, whose weights lie side by side with the member as their first axis."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn
from torch.nn import functional

from baselines.actions import Actions
from baselines.fused import mlp, towers, towers_and_back
from gpuzoo.core.definition import choices

ENCODERS = ("auto", "mlp", "cnn")
CRITICS = ("separate", "shared", "central")


class Network(nn.Module):
    """Convolutions where the input is an image, dense layers, a GRU if it has a memory, and linear outputs.

    Everything has the members as its first axis: a layer of all members is one batched product.

    Args:
        generators: of the initial weights, one for each member.
        shape: of one input: (n,) or (height, width, channels).
        hidden: sizes of the dense layers.
        outputs: (columns, gain of their initial weights) of each part of the output.
        channels: of the 3x3 convolutions, if ``shape`` is an image's.
        memory: size of the GRU; 0 for none.
        activation: ``"tanh"`` or ``"relu"``.
    """

    def __init__(
        self,
        generators: Sequence[torch.Generator],
        shape: Sequence[int],
        hidden: Sequence[int],
        outputs: Sequence[tuple[int, float]],
        channels: Sequence[int] = (),
        memory: int = 0,
        activation: str = "tanh",
    ) -> None:
        super().__init__()
        self.memory, self.activation, self.image = memory, activation, len(shape) == 3

        def weight(n: int, *parts: tuple[int, float]) -> nn.Parameter:
            """(members, n, sum of the parts): orthogonal columns, scaled by the gain of their part."""
            return nn.Parameter(torch.stack([
                torch.cat([nn.init.orthogonal_(torch.empty(m, n), gain, g) for m, gain in parts]).T for g in generators
            ]))  # fmt: skip

        def bias(m: int) -> nn.Parameter:
            return nn.Parameter(torch.zeros(len(generators), 1, m))

        size, root = int(np.prod(shape)), math.sqrt(2)
        self.kernels, self.offsets = nn.ParameterList(), nn.ParameterList()
        if self.image:
            for n, m in itertools.pairwise([shape[2], *channels]):
                self.kernels.append(weight(9 * n, (m, root)))  # (members, channel x row x column, m)
                self.offsets.append(bias(m))
            size = shape[0] * shape[1] * (channels[-1] if channels else shape[2])
        sizes = [size, *hidden]
        last = memory or sizes[-1]
        self.weights = nn.ParameterList(weight(n, (m, root)) for n, m in itertools.pairwise(sizes))
        self.biases = nn.ParameterList(bias(m) for m in hidden)
        if memory:
            self.gates = nn.ParameterList([weight(sizes[-1], *[(memory, 1.0)] * 3), bias(3 * memory),
                                           weight(memory, *[(memory, 1.0)] * 3), bias(3 * memory)])  # fmt: skip
        self.weights.append(weight(last, *outputs))
        self.biases.append(bias(sum(m for m, _ in outputs)))
        self.layers = list(self.weights), list(self.biases)  # a ParameterList takes microseconds to go through

    @property
    def sizes(self) -> tuple[int, ...]:
        """Inputs, units of the dense layers, outputs."""
        return (self.layers[0][0].shape[1], *(b.shape[2] for b in self.layers[1]))

    @property
    def plain(self) -> bool:
        """Whether it is nothing but dense layers."""
        return not self.image and not self.memory

    def _convolve(self, x: Tensor) -> Tensor:
        members = len(x)
        x = x.permute(1, 0, 4, 2, 3).flatten(1, 2)  # a group of channels for each member
        for kernel, offset in zip(self.kernels, self.offsets, strict=True):
            n = kernel.shape[1] // 9
            filters = kernel.mT.reshape(-1, n, 3, 3)
            x = functional.conv2d(x, filters, offset.flatten(), padding=1, groups=members).relu_()
        return x.unflatten(1, (members, -1)).transpose(0, 1).flatten(2)

    def _encode(self, x: Tensor, activate_last: bool, layers: slice) -> Tensor:
        weights, biases = self.layers
        return mlp(x, weights[layers], biases[layers], self.activation, activate_last)

    def forward(self, x: Tensor, memory: Tensor | None = None, begins: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Outputs and new memory.

        Args:
            x: (members, rows, *shape), or with a memory (steps, members, rows, *shape).
            memory: (members, rows, size) before the first step.
            begins: (steps, members, rows), 1 where an episode begins, before which nothing is remembered.

        Returns:
            (members, rows, outputs), and an empty tensor; with a memory, (steps, members, rows, outputs) and the
            memory after the last step.
        """
        if memory is None:
            x = self._convolve(x) if self.image else x
            return mlp(x, *self.layers, self.activation), x.new_empty(0)
        steps, rows = len(x), x.shape[2]
        x = x.transpose(0, 1).flatten(1, 2)
        x = self._convolve(x) if self.image else x
        x = self._encode(x, True, slice(-1)) if len(self.weights) > 1 else x
        wi, bi, wh, bh = self.gates
        inputs = torch.baddbmm(bi, x, wi).unflatten(1, (steps, rows)).unbind(1)
        remembered = []
        for t, gate in enumerate(inputs):
            if begins is not None:
                memory = memory * (1 - begins[t].unsqueeze(-1))
            own = torch.baddbmm(bh, memory, wh)
            i, h = gate.chunk(3, -1), own.chunk(3, -1)
            reset, keep = (i[0] + h[0]).sigmoid(), (i[1] + h[1]).sigmoid()
            new = (i[2] + reset * h[2]).tanh()
            memory = torch.lerp(new.to(memory.dtype), memory, keep.to(memory.dtype))  # in float32 whatever the products
            remembered.append(memory)
        out = self._encode(torch.cat(remembered, 1), False, slice(-1, None))
        return out.unflatten(1, (steps, rows)).transpose(0, 1), memory


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


class Scale(nn.Module):
    """Running mean and variance of what each member saw, (members, size) each (Chan, Golub, LeVeque 1979)."""

    def __init__(self, members: int, size: int, device: torch.device | str) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(members, size, device=device))
        self.register_buffer("variance", torch.ones(members, size, device=device))
        self.register_buffer("seen", torch.zeros(members, 1, dtype=torch.float64, device=device))
        self.mean: Tensor
        self.variance: Tensor
        self.seen: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """``x`` (..., members, rows, size) with mean 0 and deviation 1, limited to 10 deviations."""
        factor = (self.variance + 1e-8).rsqrt()
        return ((x - self.mean.unsqueeze(1)) * factor.unsqueeze(1)).clamp(-10, 10)

    def learn(self, x: Tensor, weight: Tensor, total: Any = lambda x: x) -> None:
        """Lets values enter the mean and variance.

        Args:
            x: (members, rows, size).
            weight: (members, rows), 0 for rows that do not count.
            total: sums over all processes.
        """
        weight = weight.double().unsqueeze(-1)
        count = total(weight.sum(1))
        mean = total((x * weight).sum(1)) / count.clamp(min=1)
        spread = total(((x - mean.unsqueeze(1)).square() * weight).sum(1))
        both = (self.seen + count).clamp(min=1)
        delta = mean - self.mean
        spread = self.variance * self.seen + spread + delta.square() * self.seen * count / both
        self.variance.copy_(torch.where(self.seen + count > 0, spread / both, self.variance.double()))
        self.mean.add_(delta * count / both)
        self.seen.add_(count)
