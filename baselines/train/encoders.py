"""Chooses the encoder for ``encoder="auto"``. Imports no torch, so the help of a command line can use it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

ENCODERS = ("auto", "mlp", "cnn")
#: "auto" takes a CNN that needs at most so many times the multiply-adds of an MLP. A count does not depend on what else
#: the machine does, so that a run that goes on from a checkpoint chooses the same network.
CNN_COST = 8


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
        encoder: one of `ENCODERS`; ``"mlp"`` and ``"cnn"`` are taken as they are.
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
