"""Numbers that change over a run: hyper-parameters, and float parameters of the game. Imports no torch."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo import registry
from gpuzoo.core.suggestions import unknown
from gpuzoo.core.uniform import Uniform
from gpuzoo.core.values import config_types

if TYPE_CHECKING:
    from .trainer import Trainer


@dataclasses.dataclass(frozen=True)
class Change:
    """What a number is in each iteration.

    Args:
        name: of the hyper-parameter or parameter.
        first: its value in the first iteration.
        last: that in the last one.
        log: whether its logarithm is what changes evenly.
        of_game: a parameter of the game.
    """

    name: str
    first: float
    last: float
    log: bool
    of_game: bool

    def at(self, iteration: int, iterations: int) -> float:
        """The value in an iteration, counted from 0, of so many."""
        share = min(iteration / max(iterations - 1, 1), 1.0)
        if self.log:
            value = self.first * (self.last / self.first) ** share
        else:
            value = self.first * (1 - share) + self.last * share
        low, high = sorted((self.first, self.last))
        return min(max(value, low), high)  # not beyond an end by rounding


def parse_schedule(args: Any) -> tuple[Change, ...]:
    """What changes over a run: ``lr=log:1e-3:1e-5`` falls evenly in its logarithm, ``gravity=5:15`` rises linearly.

    A hyper-parameter is meant where a parameter of the game has the same name.

    Args:
        args: of the run: ``schedule``, ``sweep``, ``game``, ``config``.

    Raises:
        ValueError, TypeError: an unknown name, one that is given twice or is swept or drawn, ends that are no numbers,
            or values with which there would be no run.
    """
    if not args.schedule:
        return ()
    hyper = [f.name for f in dataclasses.fields(args) if f.metadata.get("sweep")]
    env = registry.get(args.game)
    own = [name for name, kind in config_types(env.Config).items() if kind is float and name not in hyper]
    swept = {item.partition("=")[0] for item in args.sweep.split(",")}
    out: dict[str, Change] = {}
    for item in args.schedule.split(","):
        name, _, text = item.partition("=")
        if name not in (*hyper, *own):
            raise ValueError(
                unknown(f"schedule: neither a hyper-parameter nor a float parameter of {env.id} is", name, hyper + own)
            )
        if name in out:
            raise ValueError(f"schedule: {name} is there twice.")
        if name in swept:
            raise ValueError(f"{name} is in sweep and in schedule: take it out of one of them.")
        ends, log = text.removeprefix("log:").split(":"), text.startswith("log:")
        try:
            first, last = map(float, ends)
            if not (math.isfinite(first) and math.isfinite(last)) or (log and min(first, last) <= 0):
                raise ValueError
        except ValueError:
            raise ValueError(f"schedule: want NAME=FROM:TO or NAME=log:FROM:TO (positive), not {item!r}.") from None
        change = out[name] = Change(name, first, last, log, name in own)
        given = args.config.get(name)
        if change.of_game and (isinstance(given, Uniform) or (isinstance(given, str) and ":" in given)):
            raise ValueError(f"every episode draws {name}, so a schedule cannot set it: take it out of config.")
        for value in () if change.of_game else (first, last):
            dataclasses.replace(args, schedule="", sweep="", **{name: value}).check()
    return tuple(out.values())


def ranges(schedule: Sequence[Change]) -> dict[str, Uniform]:
    """Each scheduled parameter of the game as a range, so that batches are made for all its values."""
    return {c.name: Uniform(min(c.first, c.last), max(c.first, c.last)) for c in schedule if c.of_game}


def apply(trainer: Trainer) -> dict[str, NDArray[np.float64]]:
    """Sets what is scheduled for the iteration that comes next, in place; returns the values (members,) to log."""
    args, log = trainer.args, {}
    for change in trainer.schedule:
        value = change.at(trainer.iteration, args.iterations)
        if change.of_game:
            trainer.simulator.set_params(**{change.name: value})
        else:
            trainer.hyper[change.name].fill_(value)
        log[f"schedule/{change.name}"] = np.full(args.population, value)
    return log
