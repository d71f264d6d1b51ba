"""Pictures of a run. Each is written in one piece, and not at all while there is nothing to show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#4285e0", "#e5575a", "#4cae72", "#8a66d3", "#d99a2b", "#3aa6b9")
LOG_FACTOR = 20  # values that span more than this lie on a logarithmic axis
FAINT_CURVES, FAINT_POINTS = 300, 500  # more of them than this cannot be told apart


def learning_curve(rows: Sequence[Mapping[str, float]], title: str, path: Path) -> None:
    """Mean returns over steps, a panel for each metric ``return/<group>``.

    Args:
        rows: of the log.
        title: of the panels, before the name of the group.
        path: of the PNG.
    """
    names = dict.fromkeys(name for row in rows for name, value in row.items() if math.isfinite(value))
    groups = [name[7:] for name in names if name.startswith("return/")]
    if not groups:
        return
    figure, axes = _panels(len(groups))
    for k, (group, axis) in enumerate(zip(groups, axes, strict=True)):
        curve(axis, rows, group, COLOURS[k % len(COLOURS)])
        axis.set_title(f"{title}: {group}", fontsize=11, loc="left")
        axis.set_ylabel("mean return of an agent")
        finish(axis)
    write(figure, path)


def population_curves(steps: NDArray[Any], returns: Mapping[str, NDArray[Any]], title: str, path: Path) -> None:
    """Mean returns of all members of a population over steps: each, their median and the range of their middle half.

    Args:
        steps: (T,), of all envs of a member.
        returns: by group, (T, members), NaN where no episode has ended yet.
        title: of the panels, before the name of the group.
        path: of the PNG.
    """
    known = {group: np.asarray(values, float) for group, values in returns.items() if np.isfinite(values).any()}
    if not known:
        return
    figure, axes = _panels(len(known))
    for k, ((group, values), axis) in enumerate(zip(known.items(), axes, strict=True)):
        colour, members = COLOURS[k % len(COLOURS)], values.shape[1]
        shown = np.unique(np.linspace(0, members - 1, min(members, FAINT_CURVES)).astype(int))
        thin = np.unique(np.linspace(0, len(values) - 1, min(len(values), FAINT_POINTS)).astype(int))
        axis.plot(
            np.asarray(steps)[thin], values[np.ix_(thin, shown)], color=colour, linewidth=0.7,
            alpha=float(np.clip(4 / len(shown), 0.04, 0.35)),
        )  # fmt: skip
        some = np.isfinite(values).any(1)
        low, middle, high = np.nanpercentile(values[some], (25, 50, 75), axis=1)
        axis.fill_between(
            np.asarray(steps)[some], low, high, color=colour, alpha=0.25, linewidth=0, label="middle half of them"
        )
        axis.plot(np.asarray(steps)[some], middle, color=colour, linewidth=2, label=f"median of {members} members")
        axis.set_title(f"{title}: {group}", fontsize=11, loc="left")
        axis.set_ylabel("mean return of an agent")
        axis.legend(fontsize=8, frameon=False, reverse=True, loc="upper left")  # to look for the best place takes long
        finish(axis)
        axis.set_xlabel("steps of a member")
    write(figure, path)


def sweep_plot(values: Mapping[str, NDArray[Any]], final: Mapping[str, NDArray[Any]], path: Path) -> None:
    """The final return of each member of a population over each hyper-parameter that differs between them.

    Args:
        values: by hyper-parameter, (members,).
        final: by group, (members,), NaN for a member without one.
        path: of the PNG.
    """
    known = {group: np.asarray(y, float) for group, y in final.items() if np.isfinite(y).any()}
    if not (known and values):
        return
    figure, axes = _panels(len(values) * len(known), columns=len(values))
    for k, axis in enumerate(axes):
        row, column = divmod(k, len(values))
        (group, y), (name, x) = list(known.items())[row], list(values.items())[column]
        x, colour = np.asarray(x, float), COLOURS[row % len(COLOURS)]
        axis.scatter(x, y, s=22, color=colour, alpha=0.6, linewidth=0)
        best = int(np.nanargmax(y))
        axis.scatter(x[best], y[best], s=70, facecolor="none", edgecolor=colour, linewidth=1.6, label="best member")
        _look(axis)
        if x.min() > 0 and x.max() > LOG_FACTOR * x.min():
            axis.set_xscale("log")
        axis.set_xlabel(name.replace("_", " "))
        if column == 0:
            axis.set_ylabel(f"final return of {group}")
    axes[0].legend(fontsize=8, frameon=False, loc="lower left", bbox_to_anchor=(0, 1), borderpad=0)
    write(figure, path)


def elo_curve(rows: Sequence[tuple[float, float]], path: Path, unit: str = "iteration") -> None:
    """The rating of a policy that plays against its past.

    Args:
        rows: pairs of iteration and Elo.
        path: of the PNG.
        unit: of time, if not iterations.
    """
    if not rows:
        return
    figure, (axis,) = _panels(1)
    marker = "o" if len(rows) <= 60 else ""
    axis.plot(*np.array(rows, float).T, color=COLOURS[3], linewidth=2, marker=marker, markersize=4)
    _look(axis)
    axis.set_xlabel(unit)
    axis.set_ylabel("Elo")
    axis.set_title("strength against earlier policies", fontsize=11, loc="left")
    write(figure, path)


def curve(axis: Any, rows: Sequence[Mapping[str, float]], group: str, colour: str) -> None:
    """Draws a group's mean return over steps, as it is and smoothed."""
    name = f"return/{group}"
    points = np.array([(r["steps"], r[name]) for r in rows if math.isfinite(r.get(name, math.nan))]).reshape(-1, 2)
    axis.plot(*points.T, color=colour, alpha=0.2, linewidth=1)
    axis.plot(points[:, 0], smoothed(points[:, 1]), color=colour, linewidth=2, label=group)


def finish(axis: Any) -> None:
    """The look of all our curves over steps."""
    from matplotlib.ticker import EngFormatter

    _look(axis)
    axis.set_xlabel("steps of all envs")
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))


def smoothed(values: NDArray[Any]) -> NDArray[Any]:
    """The mean of a twentieth of the values around each, fewer at the ends."""
    n, width = len(values), max(1, len(values) // 20)
    last = np.minimum(np.arange(n) + (width + 1) // 2, n)
    first = np.maximum(np.arange(n) - width // 2, 0)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    means: NDArray[Any] = (sums[last] - sums[first]) / (last - first)
    return means


def _look(axis: Any) -> None:
    axis.grid(color="#e9ecf1")
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def _panels(count: int, columns: int | None = None) -> tuple[Figure, list[Any]]:
    """A figure with so many panels, at most three side by side unless told."""
    from matplotlib.figure import Figure

    wide = columns or min(count, 3)
    high = math.ceil(count / wide)
    figure = Figure(figsize=(4.6 * wide, 3.4 * high), layout="tight")
    return figure, [figure.add_subplot(high, wide, k + 1) for k in range(count)]


def write(figure: Figure, path: Path) -> None:
    """Writes a figure as PNG; a file that is there stays until the new one is whole."""
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=120)
