"""Learning curves as small tables: CSV files of at most `ROWS` rows, which the documentation draws."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.files import replacing

ROWS = 200
NUMBERS = 4000  # the most in a file, which fewer rows keep where there are many agents and seeds


def thinned(steps: NDArray[Any], returns: Mapping[str, NDArray[Any]]) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    """At most `ROWS` rows and `NUMBERS` returns, a row for the mean of several, at the last of their steps."""
    columns = sum(v.shape[1] for v in returns.values())
    parts = np.array_split(np.arange(len(steps)), max(1, min(ROWS, NUMBERS // columns, len(steps))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the mean of no episode is not a number
        means = {g: np.stack([np.nanmean(v[part], 0) for part in parts]) for g, v in returns.items()}
    return np.array([steps[part[-1]] for part in parts]), means


def write(path: Path, steps: NDArray[Any], returns: Mapping[str, NDArray[Any]], seeds: Sequence[int]) -> None:
    """Writes a table: steps, and the return of each group and seed, empty where no episode ended.

    Args:
        path: of the file.
        steps: (T,), of all envs of a seed.
        returns: by group, (T, seeds), NaN where no episode ended.
        seeds: the number of each seed.
    """
    steps, returns = thinned(steps, returns)
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(["steps", *(f"{group}/seed {seed}" for group in returns for seed in seeds)])
    for step, row in zip(steps.tolist(), np.concatenate(list(returns.values()), 1), strict=True):
        out.writerow([step, *("" if np.isnan(x) else f"{x:.5g}" for x in row)])
    with replacing(path) as file:
        file.write(text.getvalue().encode())


def read(path: Path) -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64]]]:
    """The steps (T,), and by group the returns (T, seeds), of a table that `write` wrote."""
    head, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
    values = np.array([[float(cell or "nan") for cell in row] for row in rows])
    columns: dict[str, list[int]] = {}
    for k, name in enumerate(head[1:], 1):
        columns.setdefault(name.rsplit("/seed ", 1)[0], []).append(k)
    return values[:, 0].astype(np.int64), {group: values[:, ks] for group, ks in columns.items()}
