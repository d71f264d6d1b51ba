"""What networks see, and which encoder ``"auto"`` means. Imports no torch, so the help of a command line can use it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Entities
from gpuzoo.core.layout import choices

ENCODERS = ("auto", "mlp", "cnn", "set", "board")
#: "auto" takes a CNN that needs at most so many times the multiply-adds of an MLP. A count does not depend on what else
#: the machine does, so that a run that goes on from a checkpoint chooses the same network.
CNN_COST = 8
#: integers of a Box with more values than this are amounts, and no one-hot vectors are made of them
MOST_VALUES = 64
#: heads of the attention between entities
SET_HEADS = 4


def one_hot(space: spaces.Space[Any], boxes: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How an observation becomes one-hot: feature k is whether number ``columns[k]`` of it is ``values[k]``.

    Args:
        space: of the observation. Discrete and MultiDiscrete spaces are always one-hot.
        boxes: whether a Box of integers is, too.

    Returns:
        ``columns`` and ``values``, int64, one for each feature; both empty where nothing is one-hot.

    Raises:
        ValueError: a Box whose numbers are no integers of at most `MOST_VALUES` values each.
    """
    counts, low = np.array(choices(space), np.int64), np.zeros(1, np.int64)
    if boxes and isinstance(space, spaces.Box):
        ends = space.low.astype(np.float64).ravel(), space.high.astype(np.float64).ravel()
        if space.dtype.kind not in "iub" or (ends[1] - ends[0]).max() >= MOST_VALUES:
            raise ValueError(
                f"one_hot is for integers of at most {MOST_VALUES} values, such as pieces or digits, not for {space}."
            )
        low, counts = ends[0].astype(np.int64), (ends[1] - ends[0]).astype(np.int64) + 1
    columns = np.repeat(np.arange(len(counts)), counts)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    return columns, np.arange(len(columns)) - first + np.broadcast_to(low, counts.shape)[columns]


def feature_shape(space: spaces.Space[Any], boxes: bool = False) -> tuple[int, ...]:
    """The shape of what networks see of one observation.

    One-hot vectors of an image's numbers are its channels, and a board (height, width) becomes an image.

    Args:
        space: of the observation.
        boxes: whether the integers of a Box are one-hot; see `one_hot`.
    """
    columns, _ = one_hot(space, boxes)
    shape = tuple(space.shape or ())
    if not len(columns):
        return shape
    counts = np.bincount(columns)
    if isinstance(space, spaces.Box) and len(shape) in (2, 3) and (counts == counts[0]).all():
        return (*shape[:2], math.prod(shape[2:]) * int(counts[0]))
    return (len(columns),)


def multiply_adds(shape: Sequence[int], hidden: Sequence[int], channels: Sequence[int] = ()) -> int:
    """Multiply-adds for one observation in the 3x3 convolutions and the dense layers behind them.

    Args:
        shape: (height, width, channels) of the observation.
        hidden: sizes of the dense layers; without any, those of one output count.
        channels: of the convolutions; none for an MLP.
    """
    cells, layers = math.prod(shape[:2]), [shape[2], *channels]
    convolutions = sum(9 * cells * n * m for n, m in itertools.pairwise(layers))
    return convolutions + sum(n * m for n, m in itertools.pairwise([cells * layers[-1], *(hidden or [1])]))


def choose(encoder: str, shape: Sequence[int], hidden: Sequence[int], channels: Sequence[int]) -> tuple[str, str]:
    """``"mlp"`` or ``"cnn"``, and why, or no reason where there was no choice.

    Args:
        encoder: one of `ENCODERS`; all but ``"auto"`` are taken as they are.
        shape: of one observation.
        hidden: sizes of the dense layers.
        channels: of the convolutions.
    """
    if encoder != "auto" or len(shape) != 3:
        return (encoder if encoder != "auto" else "mlp"), ""
    cnn, mlp = multiply_adds(shape, hidden, channels), multiply_adds(shape, hidden)
    chosen, other = ("cnn", "mlp") if cnn <= CNN_COST * mlp else ("mlp", "cnn")
    return chosen, (
        f"encoder {chosen} for observations of {'x'.join(map(str, shape))}: a CNN with channels "
        f"{','.join(map(str, channels))} takes {cnn / mlp:.1f} times the multiply-adds of an MLP, "
        f"and auto allows {CNN_COST} (--encoder {other} for the other)"
    )


def set_refusal(
    entities: Entities | None,
    observation_space: spaces.Space[Any],
    action_space: spaces.Space[Any],
    hidden: Sequence[int],
    memory: int,
    one_hot: bool,
    action_parts: Sequence[int],
) -> str:
    """Why these options do not fit ``encoder="set"``, as a sentence, or nothing.

    Args:
        entities: that the game declares.
        observation_space: of one agent.
        action_space: of one agent.
        hidden: widths of the layers.
        memory: size of a GRU.
        one_hot: whether integers become one-hot vectors.
        action_parts: choices of the parts of an action.
    """
    if entities is None:
        return "encoder='set' is for games that declare entities, see EnvDef.entities: take mlp or cnn."
    partners = 0 if entities.partners is None else entities.partners.count
    actions = int(action_space.n) if isinstance(action_space, spaces.Discrete) and not action_parts else 0
    if not actions or actions % entities.count or (partners and actions != entities.count * partners):
        with_one = f" with one of {partners} partners" if partners else ""
        return (
            f"encoder='set' is for as many actions for each of the {entities.count} entities{with_one}, chosen at "
            f"once, not for {action_space}{' in parts' if action_parts else ''}."
        )
    if not isinstance(observation_space, spaces.Box):
        return f"encoder='set' is for observations that are a Box, not {observation_space}."
    if not hidden or len(set(hidden)) > 1 or hidden[0] % SET_HEADS:
        return f"encoder='set' needs layers of one width, a multiple of {SET_HEADS}, not hidden={list(hidden)}."
    if memory or one_hot:
        return f"encoder='set' does not go with {'memory' if memory else 'one_hot'}: leave one away."
    return ""


def board_refusal(
    cells: NDArray[np.int64] | None,
    shape: Sequence[int],
    channels: Sequence[int],
    memory: int,
    action_parts: Sequence[int],
) -> str:
    """Why these options do not fit ``encoder="board"``, as a sentence, or nothing.

    Args:
        cells: where actions lie, as the game declares it.
        shape: of what networks see of one observation.
        channels: of the convolutions.
        memory: size of a GRU.
        action_parts: choices of the parts of an action.
    """
    if cells is None:
        return "encoder='board' is for games that say where actions lie, see EnvDef.action_cells: take mlp or cnn."
    if len(shape) != 3:
        return "encoder='board' needs channels of each cell: take one_hot for observations (rows, columns) of integers."
    if not channels:
        return "encoder='board' needs channels for the cells' description, at least one number."
    if memory or action_parts:
        return f"encoder='board' does not go with {'memory' if memory else 'action_parts'}: leave one away."
    return ""
