"""The log of a run: a row of numbers for each iteration, in files that other programs read."""

from __future__ import annotations

import csv
import io
import json
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from gpuzoo.core.files import replacing

FLUSH_SECONDS = 5.0  # rows are on the disk after so long
#: TensorBoard and Weights & Biases take 0.2 ms for a row, a tenth of a fast iteration: they get so many points of a
#: metric per flush, spread evenly. The other files get every row.
POINTS, FIRST_POINTS = 50, 2000  # the second number is for the rows of a run that goes on


class Log:
    """Rows of a run, kept as CSV, JSON lines and TensorBoard events in a folder; with Weights & Biases too if asked.

    A folder holds one run: what was logged there before is replaced by ``rows``.

    Args:
        folder: for ``progress.csv``, ``progress.jsonl``, ``run.json`` and TensorBoard's events; None keeps the rows in
            memory only.
        about: the arguments of the run, for ``run.json``, TensorBoard's text and W&B's config; what JSON does not know
            is written as its ``str``.
        track: log to Weights & Biases, as a new run there, with ``rows`` too.
        project: its name at Weights & Biases.
        rows: what a run that goes on has logged up to its checkpoint, see `read`.

    Attributes:
        rows: all rows.

    Raises:
        ImportError: TensorBoard or Weights & Biases is missing; the message says how to install it.
    """

    def __init__(
        self,
        folder: Path | None,
        about: Mapping[str, Any],
        *,
        track: bool = False,
        project: str = "gpuzoo",
        rows: Sequence[Mapping[str, float]] = (),
    ) -> None:
        self.rows = [dict(row) for row in rows]
        self.folder = folder
        self._names: dict[str, None] = {}  # of the columns of the CSV file, in order
        self._new: list[dict[str, float]] = []  # rows that are in no file yet, and when they were written
        self._times: list[float] = []
        self._flushed = time.monotonic()
        self._csv: TextIO | None = None
        self._json: TextIO | None = None
        plain = json.loads(json.dumps(about, default=str))
        self._board = _tensorboard(folder, plain) if folder else None
        self._run = _wandb(folder, plain, project) if track else None
        if folder:
            with replacing(folder / "run.json") as file:
                file.write((json.dumps(plain, indent=2) + "\n").encode())
            with replacing(folder / "progress.jsonl") as file:
                file.write("".join(map(_json_line, self.rows)).encode())
            self._json = (folder / "progress.jsonl").open("a", encoding="utf-8")
            self._rewrite_csv(folder)
            notes = _notes(folder, int(self.rows[-1]["steps"]) if self.rows else -1)
            (folder / "notes.txt").unlink(missing_ok=True)
            for steps, text in notes:
                self.note(text, steps)
        self._send(self.rows, [time.time()] * len(self.rows), FIRST_POINTS)

    def write(self, row: Mapping[str, float]) -> None:
        """Adds a row, and now and then calls `flush`.

        Args:
            row: numbers by name, ``steps`` among them; rows may have different names.

        Raises:
            ValueError: the row has no ``steps``.
            OSError: the disk is full or the like.
        """
        if "steps" not in row:
            raise ValueError(f"a row of the log needs 'steps', and this one has {', '.join(row) or 'nothing'}.")
        self.rows.append(dict(row))
        self._new.append(self.rows[-1])
        self._times.append(time.time())
        if time.monotonic() - self._flushed >= FLUSH_SECONDS:
            self.flush()

    def note(self, text: str, steps: int) -> None:
        """Adds a sentence to ``notes.txt`` and to TensorBoard's texts.

        Raises:
            OSError: the disk is full or the like.
        """
        if self.folder:
            with (self.folder / "notes.txt").open("a", encoding="utf-8") as file:
                file.write(f"{steps} steps: {text}\n")
        if self._board:
            self._board.add_text("notes", text, steps)

    def flush(self) -> None:
        """Writes all rows to the files. Call it before writing a checkpoint.

        Raises:
            OSError: the disk is full or the like.
        """
        self._flushed = time.monotonic()
        new, times, self._new, self._times = self._new, self._times, [], []
        if self.folder and self._csv and self._json and new:
            self._json.write("".join(map(_json_line, new)))
            self._json.flush()
            if any(row.keys() - self._names.keys() for row in new):
                self._rewrite_csv(self.folder)
            else:
                self._csv.write(_csv_lines(new, self._names))
                self._csv.flush()
        self._send(new, times, POINTS)

    def close(self) -> None:
        """Flushes, and ends the run at Weights & Biases."""
        self.flush()
        for file in (self._csv, self._json, self._board):
            if file:
                file.close()
        if self._run:
            self._run.finish()
        self.folder = self._csv = self._json = self._board = self._run = None

    def _rewrite_csv(self, folder: Path) -> None:
        """The whole file, with a column for every metric."""
        self._names = dict.fromkeys(name for row in self.rows for name in row)
        if self._csv:
            self._csv.close()
        with replacing(folder / "progress.csv") as file:
            header = _csv_lines([{name: name for name in self._names}], self._names) if self._names else ""
            file.write((header + _csv_lines(self.rows, self._names)).encode())
        self._csv = (folder / "progress.csv").open("a", encoding="utf-8", newline="")

    def _send(self, rows: Sequence[Mapping[str, float]], times: Sequence[float], count: int) -> None:
        """Sends at most ``count`` points of each metric to TensorBoard and W&B."""
        if not (self._board or self._run):
            return
        where: dict[str, list[int]] = {}
        for k, row in enumerate(rows):
            for name in row:
                where.setdefault(name, []).append(k)
        points: list[dict[str, float]] = [{} for _ in rows]
        for name, places in where.items():
            for k in places[:: -math.ceil(len(places) / count)]:  # from the last one backwards
                points[k][name] = rows[k][name]
        for row, point, moment in zip(rows, points, times, strict=True):
            if point and self._board:
                _add(self._board, point, int(row["steps"]), moment)
            if point and self._run:
                self._run.log(point, step=int(row["steps"]))
        if self._board:
            self._board.flush()


def read(folder: Path, steps: int) -> list[dict[str, float]]:
    """The rows of a log up to so many steps, for a run that goes on from a checkpoint.

    Args:
        folder: of the log; without one there are no rows.
        steps: of the checkpoint.
    """
    path = folder / "progress.jsonl"
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.is_file() else []  # the last may be a part of one
    rows = [json.loads(line) for line in lines]
    return [{k: math.nan if v is None else v for k, v in row.items()} for row in rows if row["steps"] <= steps]


def _notes(folder: Path, steps: int) -> list[tuple[int, str]]:
    """The events that `Log.note` recorded up to a number of steps."""
    path = folder / "notes.txt"
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.is_file() else []
    parts = [line.partition(" steps: ") for line in lines]
    return [(int(count), text) for count, _, text in parts if int(count) <= steps]


def _json_line(row: Mapping[str, float]) -> str:
    try:
        return json.dumps(row, allow_nan=False) + "\n"
    except ValueError:  # JSON has neither NaN nor infinity
        return json.dumps({k: v if math.isfinite(v) else None for k, v in row.items()}) + "\n"


def _csv_lines(rows: Sequence[Mapping[str, Any]], names: Mapping[str, None]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([row.get(name, "") for name in names] for row in rows)
    return text.getvalue()


def _tensorboard(folder: Path, about: Mapping[str, Any]) -> Any:
    """A writer of events that take the place of those in the folder."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ImportError("the log needs TensorBoard: pip install 'gpuzoo[train]'") from error
    # Old files stay, as a TensorBoard that is running stumbles over one that is gone: purge_step outdates their events.
    writer = SummaryWriter(str(folder), max_queue=1000, purge_step=0)
    lines = [f"|{name}|{json.dumps(value)}|" for name, value in about.items()]
    writer.add_text("run", "\n".join(["|argument|value|", "|-|-|", *lines]))
    return writer


def _add(board: Any, point: Mapping[str, float], steps: int, moment: float) -> None:
    """Adds the metrics of a row as one event, ten times as fast as ``add_scalar`` for each."""
    from tensorboard.compat.proto.summary_pb2 import Summary

    values = [Summary.Value(tag=name, simple_value=value) for name, value in point.items()]
    board.file_writer.add_summary(Summary(value=values), steps, moment)


def _wandb(folder: Path | None, about: dict[str, Any], project: str) -> Any:
    """A run at Weights & Biases."""
    try:
        import wandb
    except ImportError as error:
        raise ImportError("tracking needs Weights & Biases: pip install 'gpuzoo[track]'") from error
    return wandb.init(project=project, config=about, name=folder and folder.name, dir=folder and str(folder))
