"""Hyper-parameters in which the members of a population differ."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from gpuzoo.core.suggestions import unknown


def parse_sweep(args: Any) -> dict[str, list[float]]:
    """The values of each swept hyper-parameter, one for each member.

    ``lr=log:1e-4:1e-2`` spreads over a range logarithmically, ``ent_coef=0:0.02`` linearly, ``gamma=0.9/0.99`` takes
    values in turn. Ranges are covered evenly by the members, in an order of its own for each hyper-parameter (a Latin
    hypercube; McKay, Beckman, Conover 1979).

    Args:
        args: of the run: ``sweep``, ``population``, ``seed``.

    Raises:
        ValueError: an unknown name, a range that is none, or a population of one.
    """
    if not args.sweep:
        return {}
    members = args.population
    if members < 2:
        raise ValueError("a sweep needs members that differ: give population=N with N of at least 2.")
    known = [f.name for f in dataclasses.fields(args) if f.metadata.get("sweep")]
    rng, out = np.random.default_rng(args.seed), {}
    for item in args.sweep.split(","):
        name, equals, text = item.partition("=")
        if name not in known:
            raise ValueError(unknown("sweep: there is no hyper-parameter", name, known))
        try:
            if not equals:
                raise ValueError
            if ":" in text:
                *kind, low, high = text.split(":")
                if kind not in ([], ["log"]) or (kind and min(float(low), float(high)) <= 0):
                    raise ValueError
                places = (rng.permutation(members) + 0.5) / members
                scale = np.geomspace if kind else np.linspace
                grid = scale(float(low), float(high), 10_001)
                values = np.interp(places, np.linspace(0, 1, 10_001), grid)
            else:
                values = np.resize([float(x) for x in text.split("/")], members)
        except ValueError:
            raise ValueError(
                f"sweep: want NAME=LOW:HIGH, NAME=log:LOW:HIGH (positive) or NAME=A/B/C, not {item!r}."
            ) from None
        out[name] = [float(v) for v in values]
        for value in (min(out[name]), max(out[name])):
            dataclasses.replace(args, sweep="", **{name: value}).check()
    return out
