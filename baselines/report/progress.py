"""Progress of a run: a bar in a terminal, and a line every few seconds in a file or a pipe."""

from __future__ import annotations

import datetime
import sys
import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column

LINE_SECONDS = 5.0


def returns_text(returns: Mapping[str, float]) -> str:
    """``return: tagger 1.20  runner -0.30``, or that there is none yet."""
    if not returns:
        return "no episode has ended yet"
    return "return: " + "  ".join(f"{group} {value:.2f}" for group, value in returns.items())


class Display:
    """Shows how far a run is, as a context manager.

    Args:
        name: what runs.
        total: iterations of the whole run.
        done: those of them that were made before.
        quiet: show nothing.
        title: a line to begin with.
    """

    def __init__(self, name: str, total: int, done: int = 0, quiet: bool = False, title: str = "") -> None:
        console = Console()
        bar = (console.is_terminal and not console.is_dumb_terminal) or console.is_jupyter
        self._name, self._total, self._first, self._began = name, total, done, time.perf_counter()
        self._title, self._quiet = "" if quiet else title, quiet
        self._lines, self._shown, self._latest = not (bar or quiet), float("-inf"), ""
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None, table_column=Column(ratio=1)),
            # in a narrow terminal on several lines, as half of a number says nothing
            TextColumn("{task.fields[news]}", table_column=Column(overflow="fold")),
            TimeRemainingColumn(),
            console=console,
            disable=quiet or not bar,
            refresh_per_second=4,
            expand=True,
        )
        self._task = self._bar.add_task(name, total=total, completed=done, news="")

    def __enter__(self) -> Display:
        if self._title:
            print(self._title, flush=True)
        self._bar.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._bar.stop()
        if self._latest:
            self._print()

    def update(self, done: int, speed: float, returns: Mapping[str, float]) -> None:
        """Shows a state of the run.

        Args:
            done: iterations.
            speed: steps per second.
            returns: mean return of each group whose episodes have ended.
        """
        news = f"{speed:,.0f} steps/s  {returns_text(returns)}"
        self._bar.update(self._task, completed=done, news=news)
        if not self._lines:
            return
        now = time.perf_counter()
        left = (now - self._began) * (self._total - done) / max(done - self._first, 1)
        ahead = f"  {datetime.timedelta(seconds=round(left))} left" if done < self._total else ""
        self._latest = f"{self._name}  {100 * done // self._total} %  {news}{ahead}"
        if now - self._shown >= LINE_SECONDS:
            self._print()

    def warn(self, text: str) -> None:
        """Shows a sentence on stderr, above the bar."""
        if not self._quiet:
            print(f"{self._name}: {text}", file=sys.stderr, flush=True)

    def _print(self) -> None:
        print(self._latest, file=sys.stdout, flush=True)
        self._shown, self._latest = time.perf_counter(), ""
