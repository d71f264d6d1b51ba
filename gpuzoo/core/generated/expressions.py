"""Expressions of C++ for values that Python knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from gpuzoo.core.layout import Layout


def float_literal(x: float) -> str:
    """A number as float32."""
    return f"{float(np.float32(x))!r}f"


def pick(index: str, values: Sequence[str]) -> str:
    """An expression for ``values[index]`` without a table in memory; equal neighbours share a comparison."""
    runs: list[tuple[int, str]] = []
    for k, value in enumerate(values):
        if not runs or runs[-1][1] != value:
            runs.append((k, value))
    text = runs[-1][1]
    for (_, value), (start, _) in zip(reversed(runs[:-1]), reversed(runs[1:]), strict=True):
        text = f"({index} < {start} ? {value} : {text})"
    return text


def per_agent(lay: Layout, rows: Mapping[str, Sequence[str]], padding: str) -> str:
    """An expression in ``agent`` and ``k`` for a value that depends on the group and the component."""
    by_group = []
    for group, count in lay.groups.items():
        row = list(rows[group]) + [padding] * (lay.action_size - len(rows[group]))
        by_group += [pick("k", row)] * count
    return pick("agent", by_group)


def by_width(one: Iterable[str], several: Iterable[str]) -> str:
    """What is said of packs of one env, which is what ordinary rules have, and of longer ones."""
    return "\n".join(["#if GZ_PACK_WIDTH == 1", *one, "#else", *several, "#endif"])
