"""Speeds that were measured, read from the tables of the pages that tell how."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from pathlib import Path
from typing import Any

import gpuzoo

DOCS = Path(__file__).parent
BATCHES = DOCS / "batch_sizes.json"  #: which scripts/bench_batches.py writes
_UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}


@dataclasses.dataclass(frozen=True)
class Speed:
    """A game beside that of another library.

    Attributes:
        game: its id.
        case: the configuration, nothing for the default.
        ours: steps per second.
        envs: of ours.
        library: the other one.
        theirs: its steps per second.
        batch: its number of envs, as the table says it.
        page: where the table is.
        per: the time in which the steps are counted.
    """

    game: str
    case: str
    ours: float
    envs: str
    library: str
    theirs: float
    batch: str
    page: str
    per: str = "second of two cores"

    @property
    def ratio(self) -> float:
        """How many times as fast ours is."""
        return self.ours / self.theirs


def table(page: str, *head: str) -> list[list[str]]:
    """The rows of the first table of a page whose first columns have these names; empty without such a table."""
    rows: list[list[str]] = []
    for line in (DOCS / page).read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not rows and cells[: len(head)] != [*head]:
            continue
        if not cells:
            break
        rows.append(cells)
    return rows[2:]


def number(text: str) -> float:
    """A number of a table: ``1,200``, ``20.7 M``."""
    match = re.fullmatch(r"(-?[\d.,]+) ?([kMG]?)", text.strip())
    if not match:
        raise ValueError(f"no number: {text!r}")
    return float(match[1].replace(",", "")) * _UNITS[match[2]]


@functools.cache
def games() -> list[Speed]:
    """Games beside those of other libraries, and robots beside EnvPool's."""
    found = []
    for unit, per, where in (
        ("steps/s", "second of two cores", "games"),
        ("steps/CPU s", "CPU second of one core", "one-core"),
    ):
        for game, ours, envs, library, theirs, batch, *_ in table("benchmarks.md", "game", f"gpuzoo, {unit}"):
            env_id, _, case = game.partition(", ")
            rates = number(ours), envs, library, number(theirs), batch
            found.append(Speed(env_id.strip("`"), case, *rates, f"benchmarks.md#{where}", per))
    for name, stepped, asynchronous, _, ours, *_ in table("physics.md", "", "EnvPool, `step`"):
        env_id = f"{name}-v5"
        if env_id in gpuzoo.ids():
            theirs = max(number(stepped), number(asynchronous))
            found.append(Speed(env_id, "", number(ours), "4,096", "EnvPool", theirs, "64", "physics.md#speed"))
    return [speed for speed in found if speed.game in gpuzoo.ids()]


@functools.cache
def alone() -> dict[str, tuple[float, str]]:
    """Steps per CPU second of one core, and envs, of the games that are not timed beside another library."""
    return {game.strip("`"): (number(rate), envs) for game, rate, envs in table("benchmarks.md", "game, alone")}


@functools.cache
def on_gpu() -> list[Speed]:
    """Games beside those of JAX's libraries on one GPU."""
    found, page = [], "benchmarks.md#beside-jax-on-the-same-gpu"
    for game, ours, envs, library, theirs, batch, *_ in table("benchmarks.md", "game", "gpuzoo's steps/s"):
        env_id, _, case = game.partition(", ")
        rates = number(ours), envs, library, number(theirs), batch
        found.append(Speed(env_id.strip("`"), case, *rates, page, "second of an NVIDIA H200"))
    return found


@dataclasses.dataclass(frozen=True)
class Training:
    """A training run: who trained what, steps per second, and the return in the end."""

    setting: str
    trainer: str
    rate: float
    whole: float
    reached: float


@functools.cache
def training() -> list[Training]:
    """PPO beside other libraries' with equal settings."""
    found, setting = [], ""
    for named, trainer, rate, _, whole, reached in table("benchmarks.md", "setting", "trainer"):
        setting = named or setting
        found.append(Training(setting, trainer.replace("`", ""), number(rate), number(whole), number(reached)))
    return found


@functools.cache
def batches() -> dict[str, Any]:
    """Steps per second by numbers of envs, and the machine."""
    found: dict[str, Any] = json.loads(BATCHES.read_text())
    return found
