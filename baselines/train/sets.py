"""A network for entities, such as cities or items, which treats all of them alike. The first axis is the member."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from gpuzoo.core.definition import Entities

from .encoders import SET_HEADS
from .layers import ACTIVATIONS, orthogonal


class Dense(nn.Module):
    """A dense layer of all members: (members, rows, inputs) becomes (members, rows, outputs)."""

    def __init__(self, generators: Sequence[torch.Generator], inputs: int, outputs: int, gain: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.stack([orthogonal(outputs, inputs, gain, g).T for g in generators]))
        self.bias = nn.Parameter(torch.zeros(len(generators), 1, outputs))

    def forward(self, x: Tensor) -> Tensor:
        """(members, rows, outputs)."""
        return torch.baddbmm(self.bias, x, self.weight)


class Norm(nn.Module):
    """Layer normalisation with a gain and a bias of each member."""

    def __init__(self, members: int, size: int) -> None:
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.ones(members, 1, size)), nn.Parameter(torch.zeros(members, 1, size))

    def forward(self, x: Tensor) -> Tensor:
        """Of the shape of ``x``, (members, rows, size)."""
        return functional.layer_norm(x, x.shape[-1:]) * self.gain + self.bias


class Attention(nn.Module):
    """Each entity attends to all others, and dense layers follow; both are added to what it was."""

    def __init__(self, generators: Sequence[torch.Generator], size: int, activation: str) -> None:
        super().__init__()
        self.activation, members, root = activation, len(generators), math.sqrt(2)
        self.norms = nn.ModuleList([Norm(members, size), Norm(members, size)])
        self.asks, self.merge = Dense(generators, size, 3 * size, 1.0), Dense(generators, size, size, 1.0)
        self.widen, self.narrow = Dense(generators, size, 2 * size, root), Dense(generators, 2 * size, size, 1.0)

    def forward(self, x: Tensor, entities: int) -> Tensor:
        """Both (members, rows * entities, size)."""
        parts = self.asks(self.norms[0](x)).unflatten(1, (-1, entities)).chunk(3, -1)
        query, key, value = (y.flatten(0, 1).unflatten(-1, (SET_HEADS, -1)).transpose(1, 2) for y in parts)
        found = functional.scaled_dot_product_attention(query, key, value)
        x = x + self.merge(found.transpose(1, 2).reshape(x.shape))
        return x + self.narrow(ACTIVATIONS[self.activation](self.widen(self.norms[1](x))))


class SetNetwork(nn.Module):
    """Layers of attention between entities, then a few numbers for each of them, and some for all together.

    What it says of an entity does not depend on the place at which the entity stands, as in Lee et al. 2019 (Set
    Transformer) and Kool, van Hoof and Welling 2019 (Attention, learn to solve routing problems!). An entity is told
    by its own numbers, those of the entities that are pointed at, whether it is one of these, whether it is in a list,
    and all other numbers of the observation. Partners attend and are attended to like entities; the logit of an entity
    with a partner is the product of a vector of each, as in pointer networks (Vinyals et al. 2015).

    Args:
        generators: of the initial weights, one for each member.
        size: of an observation.
        entities: which numbers of it tell about which entity.
        hidden: widths of the layers of attention, all the same.
        each: (outputs for the actions, gain of their initial weights), as many for each entity; 0 for none.
        whole: the same, for the output for all entities together.
        activation: ``"tanh"`` or ``"relu"``.
    """

    #: what a `Network` says of itself: there are more than dense layers here
    plain, image, sizes = False, False, ()

    def __init__(
        self,
        generators: Sequence[torch.Generator],
        size: int,
        entities: Entities,
        hidden: Sequence[int],
        each: tuple[int, float],
        whole: tuple[int, float],
        activation: str = "tanh",
    ) -> None:
        super().__init__()
        self.entities, self.activation, width = entities, activation, hidden[0]
        self.register_buffer("_own", torch.from_numpy(entities.columns), persistent=False)
        self.register_buffer("_context", torch.from_numpy(entities.context(size)), persistent=False)
        self.register_buffer("_listed", torch.tensor(entities.listed, dtype=torch.int64), persistent=False)
        self._own: Tensor
        self._context: Tensor
        self._listed: Tensor
        inputs = len(self._context) + sum(entities.widths) * (1 + len(entities.pointers))
        inputs += len(entities.pointers) + bool(entities.listed)
        root = math.sqrt(2)
        self.embed = nn.ModuleList([Dense(generators, inputs, width, root), Dense(generators, width, width, 1.0)])
        self.embed_partners = self.offer = None
        self.partners = 0 if entities.partners is None else entities.partners.count
        if self.partners:
            self.register_buffer("_partners", torch.from_numpy(entities.partner_columns), persistent=False)
            inputs = len(self._context) + entities.partner_columns.shape[1]
            layers = [Dense(generators, inputs, width, root), Dense(generators, width, width, 1.0)]
            self.embed_partners = nn.ModuleList(layers)
            self.offer = Dense(generators, width, width, 1.0) if each[0] else None
        self._partners: Tensor
        self.attention = nn.ModuleList(Attention(generators, width, activation) for _ in hidden)
        self.norm = Norm(len(generators), width)
        columns = width if self.partners else each[0] // entities.count
        self.each = Dense(generators, width, columns, each[1]) if each[0] else None
        self.pool = Dense(generators, 2 * width, width, root) if whole[0] else None
        self.whole = Dense(generators, width, *whole) if whole[0] else None
        self.layers: tuple[list[Tensor], list[Tensor]] = ([], [])

    def _told(self, x: Tensor) -> Iterator[Tensor]:
        """What is told of each entity, (members, rows, entities, some) each."""
        count = self.entities.count
        own = x[..., self._own]
        yield own
        yield self._context_for(count, x)
        places = torch.arange(count, device=x.device)
        for pointer in self.entities.pointers:
            at = x[..., pointer, None, None]
            inside = (at >= 0) & (at < count)
            target = own.take_along_dim(at.clamp(0, count - 1).long(), -2) * inside
            yield target.expand_as(own)
            yield (at == places[:, None]).to(x.dtype)
        if self.entities.listed:
            listed = x[..., self._listed]
            where = torch.where((listed >= 0) & (listed < count), listed, count).long()
            flags = x.new_zeros(*x.shape[:2], count + 1).scatter(-1, where, 1.0)
            yield flags[..., :count, None]

    def _context_for(self, count: int, x: Tensor) -> Tensor:
        """What describes no entity, told to each of so many, (members, rows, count, some)."""
        return x[..., self._context].unsqueeze(-2).expand(*x.shape[:2], count, -1)

    def forward(self, x: Tensor, memory: Tensor | None = None, begins: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Outputs (members, rows, ...) of each entity, one after the other, then those of all; and an empty tensor."""
        rows, act = x.shape[1], ACTIVATIONS[self.activation]
        y = self._embedded(torch.cat(list(self._told(x)), -1), self.embed)
        if self.embed_partners is not None:
            told = torch.cat([x[..., self._partners], self._context_for(self.partners, x)], -1)
            y = torch.cat([y, self._embedded(told, self.embed_partners)], 2)
        count = y.shape[2]
        y = y.flatten(1, 2)
        for layer in self.attention:
            y = layer(y, count)
        y = self.norm(y).unflatten(1, (rows, count))
        out = []
        if self.each is not None:
            own, others = y.split([self.entities.count, self.partners], 2)
            logits = self.each(own.flatten(1, 2)).unflatten(1, (rows, -1))
            if self.offer is not None:
                offers = self.offer(others.flatten(1, 2)).unflatten(1, (rows, -1))
                logits = logits @ offers.transpose(-1, -2) / math.sqrt(offers.shape[-1])
            out.append(logits.flatten(2))
        if self.whole is not None and self.pool is not None:
            out.append(self.whole(act(self.pool(torch.cat([y.mean(2), y.amax(2)], -1)))))
        return torch.cat(out, -1), x.new_empty(0)

    def _embedded(self, told: Tensor, layers: nn.ModuleList) -> Tensor:
        """Vectors (members, rows, entities, width) of what is told of each."""
        first, second = layers
        y = second(ACTIVATIONS[self.activation](first(told.flatten(1, 2))))
        return y.unflatten(1, (told.shape[1], -1))
