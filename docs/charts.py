"""Plots as SVG text that stands in a page and takes its colours from the theme, light or dark."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#4285e0", "#e5575a", "#4cae72", "#8a66d3", "#d99a2b", "#3aa6b9")
OTHERS = "#9aa4b2"  #: bars of others
INK, GRID = "#808081", "#c3c4c5"  #: of texts and lines; they stand for the theme's colours in what Matplotlib writes
_LOCK = threading.Lock()  # Matplotlib's settings belong to the process


def svg(figure: Figure, label: str) -> str:
    """A figure as SVG with texts as texts, for a reader's font, and a label for those who do not see it."""
    text = io.StringIO()
    import matplotlib

    with _LOCK, matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": label}):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    out = text.getvalue()
    out = out[out.index("<svg") :]
    out = re.sub(r"<metadata>.*?</metadata>\s*", "", out, flags=re.DOTALL)
    out = re.sub(r"<!--.*?-->\s*", "", out, flags=re.DOTALL)
    out = re.sub(r' width="[\d.]+pt" height="[\d.]+pt"', "", out, count=1)
    out = re.sub(r"font: (?:[\w.]+ )?([\d.]+)px [^;\"]*", r"font-size: \1px", out)
    out = re.sub(
        r'\bid="(?![pm])\w+"\s*', "", out
    )  # several share a page; clip paths and markers alone are referred to
    out = out.replace(INK, "currentColor").replace(GRID, "var(--color-background-border)")
    title = label.replace("&", "&amp;").replace("<", "&lt;")
    return out.replace("<svg ", f'<svg class="chart" role="img" aria-label="{title}" ', 1).strip() + "\n"


def figure(width: float, height: float, left: float = 0.75, top: float = 0.35) -> tuple[Figure, Any]:
    """An empty figure and its axes, with margins, all in inches of 72 units."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height))
    bottom, right = 0.5, 0.1
    made.subplots_adjust(left / width, bottom / height, 1 - right / width, 1 - top / height)
    axis = made.add_subplot()
    axis.grid(color=GRID, linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color(GRID)
    axis.tick_params(colors=INK, labelsize=9, which="both", length=0)
    return made, axis


def _legend(axis: Any, **options: Any) -> None:
    legend = axis.legend(frameon=False, fontsize=9, labelcolor=INK, **options)
    for handle in legend.legend_handles:
        handle.set_alpha(1)


def _labels(axis: Any, x: str, y: str) -> None:
    axis.set_xlabel(x, color=INK, fontsize=9)
    axis.set_ylabel(y, color=INK, fontsize=9)


def engineering(value: float) -> str:
    """A number in thousands, millions or billions: ``1.2 M``."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g}"


def learning_curves(
    steps: NDArray[Any],
    returns: Mapping[str, NDArray[Any]],
    label: str,
    levels: Mapping[str, float] | None = None,
) -> str:
    """Returns of several seeds over steps: each seed, their median, and horizontal lines to compare with.

    Args:
        steps: (T,).
        returns: by group, (T, seeds), NaN where no episode ended.
        label: what the figure shows.
        levels: name -> the height of a line.
    """
    from matplotlib.ticker import FuncFormatter

    made, axis = figure(7.2, 3.2)
    for k, (group, values) in enumerate(returns.items()):
        some = np.isfinite(values).any(1)
        if not some.any():
            continue
        colour, seeds = COLOURS[k % len(COLOURS)], values.shape[1]
        for seed in values.T:
            known = np.isfinite(seed)
            axis.plot(steps[known], seed[known], color=colour, linewidth=0.7, alpha=0.3)
        name = f"{group}, median of {seeds} seeds" if len(returns) > 1 else f"median of {seeds} seeds"
        axis.plot(steps[some], np.nanmedian(values[some], 1), color=colour, linewidth=2, label=name)
    for (name, level), style in zip((levels or {}).items(), (":", "--", "-."), strict=False):
        axis.axhline(level, color=INK, linewidth=1.1, linestyle=style, label=f"{name}: {level:.4g}")
    axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: engineering(x) if x else "0"))
    _labels(axis, "steps of all envs of a seed", "mean return of an agent")
    _legend(axis, loc="lower left", bbox_to_anchor=(0, 0.98), ncols=4, borderaxespad=0)
    return svg(made, label)


def bars(rows: Sequence[tuple[str, str, float]], label: str, unit: str, log: bool = True) -> str:
    """Horizontal bars with their numbers.

    Args:
        rows: (name, kind, value) from top to bottom; bars of one kind have one colour.
        label: what the figure shows.
        unit: of the values.
        log: whether the axis is logarithmic.
    """
    from matplotlib.ticker import FuncFormatter

    kinds = [*dict.fromkeys(kind for _, kind, _ in rows)]
    left = 0.2 + 0.075 * max(len(name) for name, *_ in rows)
    top = 0.35 if len(kinds) > 1 else 0.05
    made, axis = figure(7.2, 0.5 + top + 0.3 * len(rows), left, top)
    axis.grid(visible=False, axis="y")
    values = [value for *_, value in rows]
    for kind in kinds:
        chosen = [k for k, row in enumerate(rows) if row[1] == kind]
        colour = COLOURS[0] if kind == "gpuzoo" or len(kinds) == 1 else OTHERS
        axis.barh(chosen, [values[k] for k in chosen], color=colour, height=0.72, label=kind)
    axis.set_yticks(range(len(rows)), [name for name, *_ in rows])
    axis.invert_yaxis()
    if log:
        axis.set_xscale("log")
        axis.set_xlim(min(values) / 3, max(values) * 4)
    else:
        axis.set_xlim(0, max(values) * 1.2)
    for k, value in enumerate(values):
        axis.annotate(
            engineering(value), (value, k), (4, 0), textcoords="offset points", va="center", color=INK, fontsize=9
        )
    axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: engineering(x)))
    axis.minorticks_off()
    _labels(axis, unit, "")
    if len(kinds) > 1:
        _legend(axis, loc="lower left", bbox_to_anchor=(0, 0.98), ncols=4, borderaxespad=0)
    return svg(made, label)


def lines(series: Mapping[str, Sequence[tuple[float, float]]], label: str, x: str, y: str) -> str:
    """Curves on two logarithmic axes; a name that begins with a dash is drawn dashed.

    Args:
        series: name -> points.
        label: what the figure shows.
        x: of the horizontal axis.
        y: of the vertical one.
    """
    from matplotlib.ticker import FuncFormatter

    made, axis = figure(7.2, 4.0, top=0.6)
    for k, (name, points) in enumerate(series.items()):
        style = "--" if name.startswith("-") else "-"
        colour, values = COLOURS[k % len(COLOURS)], np.array(points, float).T
        axis.plot(*values, style, color=colour, marker="o", markersize=3.5, linewidth=1.8, label=name.lstrip("- "))
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda x, _: engineering(x)))
    axis.minorticks_off()
    _labels(axis, x, y)
    _legend(axis, loc="lower left", bbox_to_anchor=(0, 0.98), ncols=3, borderaxespad=0)
    return svg(made, label)


def dots(series: Mapping[str, Sequence[float]], label: str, x: str) -> str:
    """A row of dots for each name, on a logarithmic axis, with the median as a line.

    Args:
        series: name -> values, from top to bottom.
        label: what the figure shows.
        x: of the axis.
    """
    from matplotlib.ticker import FuncFormatter

    made, axis = figure(7.2, 0.55 + 0.36 * len(series), 0.2 + 0.075 * max(map(len, series)), 0.05)
    for k, values in enumerate(series.values()):
        axis.plot(values, [k] * len(values), "o", color=COLOURS[0], alpha=0.55, markersize=6, markeredgewidth=0)
        axis.plot([float(np.median(values))] * 2, [k - 0.32, k + 0.32], color=COLOURS[1], linewidth=2)
    axis.set_yticks(range(len(series)), [*series])
    axis.set_ylim(len(series) - 0.4, -0.6)
    axis.set_xscale("log")
    axis.axvline(1, color=INK, linewidth=1.1, linestyle="--")
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axis.minorticks_off()
    _labels(axis, x, "")
    return svg(made, label)
