"""What scripts/gpu.sh measured: a table for the eye, or figures in the documentation.

    python scripts/gpu_figures.py --show [--out out]  # prints tables
    python scripts/gpu_figures.py [--out out]         # writes docs/gpu.md, docs/benchmarks.md, the table of kernels

Rows of JSON are taken from OUT/*.jsonl. A row that was cut off is left out, a phase that did not run leaves no table,
and figures of a CPU are shown, but never written as those of a GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]

ROOT = Path(__file__).resolve().parents[1]
PHASES = ("smoke", "bits", "bench", "train", "profile")


def read_rows(path: Path) -> list[Row]:
    """The rows of a file, without those that were cut off."""
    rows = []
    for line in path.read_text(errors="replace").splitlines() if path.is_file() else ():
        with contextlib.suppress(ValueError):
            row = json.loads(line)
            if isinstance(row, dict):
                rows.append(row)
    return rows


# ---- cells ----


def count(x: float) -> str:
    """Three digits and a unit: 12.3 M."""
    for size, unit in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(x) >= size:
            return f"{x / size:.3g}{unit}"
    return f"{x:.3g}"


def share(x: float) -> str:
    return f"{100 * x:.3g} %"


def milliseconds(x: float) -> str:
    return f"{1000 * x:.3g}"


def text(x: object) -> str:
    return str(x)


Column = tuple[str, str, Callable[[Any], str]]  # heading, key, format
NAME: tuple[Column, ...] = (("game", "id", lambda x: f"`{x}`"), ("case", "case", text))


def table(rows: Sequence[Row], columns: Sequence[Column]) -> str:
    """A table in Markdown. A row without a number has an empty cell; a column that no row has is left out."""
    columns = [column for column in columns if any(row.get(column[1]) is not None for row in rows)]
    cells = [["" if row.get(key) is None else form(row[key]) for _, key, form in columns] for row in rows]
    lines = [[heading for heading, _, _ in columns], ["---"] * len(columns), *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


# ---- tables ----

STEPS: tuple[Column, ...] = (
    ("agents", "agents", text),
    ("envs", "num_envs", text),
    ("steps/s", "steps_per_second", count),
    ("agent steps/s", "agent_steps_per_second", count),
    ("roofline", "roofline_fraction", share),
)
TABLES: tuple[tuple[str, str, tuple[Column, ...]], ...] = (
    ("headline", "Single steps in a CUDA graph, and a million frames of `rollout`", (
        *NAME, *STEPS, ("a million frames, ms", "frames_seconds", milliseconds), ("error", "error", text),
    )),
    ("game", "`gpuzoo bench`", (
        *NAME, *STEPS, ("rollout steps/s", "rollout_steps_per_second", count),
        ("make_vec rows/s", "vector_rows_per_second", count), ("error", "error", text),
    )),
    ("training", "PPO, whole trainings", (
        NAME[0], ("envs", "num_envs", text), ("population", "population", text), ("steps", "steps", count),
        ("seconds", "seconds", lambda x: f"{x:.1f}"), ("steps/s", "steps_per_second", count),
        ("after a fifth", "steady_steps_per_second", count), ("error", "error", text),
    )),
    ("phases", "Where an iteration of PPO goes", (
        NAME[0], ("envs", "num_envs", text), ("population", "population", text), ("steps/s", "steps_per_second", count),
        *((name, name, share) for name in ("env", "acting", "advantages", "update")),
    )),
    ("profile", "Step kernels under Nsight Compute", (
        *NAME, ("µs", "nanoseconds", lambda x: f"{x / 1000:.4g}"), ("registers", "registers", lambda x: f"{x:.0f}"),
        ("occupancy", "occupancy_percent", lambda x: f"{x:.0f} %"), ("memory", "dram_percent", lambda x: f"{x:.0f} %"),
        ("arithmetic", "sm_percent", lambda x: f"{x:.0f} %"), ("sectors per load", "per_load", lambda x: f"{x:.2f}"),
        ("sectors per store", "per_store", lambda x: f"{x:.2f}"), ("error", "error", text),
    )),
    ("check", "Smoke", (("what", "what", text), ("game", "id", text), ("right", "ok", text), ("s", "seconds", text),
                        ("error", "error", text))),
)  # fmt: skip


def sorted_out(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows by table, with the numbers that follow from others."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        kind = row.get("kind")
        if kind is None and "share" in row:
            kind, row = "phases", {**row, **row["share"], "id": row.get("game")}
        elif kind == "golden" and row.get("ok"):
            kind = "published"
        elif kind in ("equal", "capture", "golden") or (kind == "training" and "num_envs" not in row):
            kind, row = "check", {**row, "what": kind}
        elif kind == "profile":
            row = dict(row)
            for way in ("load", "store"):
                if row.get(f"{way}_requests"):
                    row[f"per_{way}"] = row.get(f"{way}_sectors", 0) / row[f"{way}_requests"]
        if isinstance(kind, str):
            found.setdefault(kind, []).append(row)
    return found


def tables(found: Mapping[str, Sequence[Row]], kinds: Iterable[str]) -> str:
    parts = [f"{title}:\n\n{table(found[kind], columns)}" for kind, title, columns in TABLES
             if kind in kinds and found.get(kind)]  # fmt: skip
    return "\n\n".join(parts)


# ---- the documentation ----


def put(page: Path, name: str, content: str) -> None:
    """Replaces what stands between two marks of a page."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    before, found, rest = page.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"{page} has no marks {begin.strip()} and {end}.")
    page.write_text(before + begin + content.strip() + "\n" + end + after)


def write(folder: Path, root: Path = ROOT) -> None:
    """Writes the figures into the documentation.

    Raises:
        SystemExit: there are no rows of a GPU.
    """
    by_phase = {phase: read_rows(folder / f"{phase}.jsonl") for phase in PHASES}
    rows = [row for phase in by_phase.values() for row in phase]
    machines = [row for row in rows if row.get("kind") == "machine" and row.get("gpu")]
    if not machines:
        raise SystemExit(f"{folder} has no rows of a GPU: run scripts/gpu.sh there first.")
    # A profile has no device in its rows: there is no profiler without a GPU.
    rows = [row for row in rows if str(row.get("device", "cuda")).startswith("cuda")]
    found, machine = sorted_out(rows), machines[-1]
    found["check"] = sorted_out(by_phase["smoke"]).get("check", [])
    ran = {
        "smoke": f"{sum(bool(row.get('ok')) for row in found['check'])} of {len(found['check'])} first checks",
        "bits": f"the golden rollouts of {len(found.get('published', []))} games",
        "bench": f"{len([r for r in found.get('game', []) if 'error' not in r])} cases of `gpuzoo bench`",
        "train": f"{len(found.get('training', []))} trainings",
        "profile": f"{len(found.get('profile', []))} profiles",
    }
    what = ", ".join(ran[phase] for phase in PHASES if by_phase[phase])
    versions = (
        f"CuPy {machine.get('cupy', '?')}, Python {machine.get('python', '?')}, commit {machine.get('commit') or '?'}"
    )
    put(root / "docs/gpu.md", "what ran on a GPU", (
        "| GPU | what ran | when |\n|---|---|---|\n"
        f"| {machine['gpu']} | {what} ({versions}) | {str(machine.get('time', '?'))[:10]} |"
    ))  # fmt: skip
    heading = (
        f"Measured on an {machine['gpu']} ({versions}), with `scripts/gpu.sh`, on {str(machine.get('time', '?'))[:10]}."
    )
    put(root / "docs/benchmarks.md", "figures of a GPU", (
        heading + "\n\n" + tables(found, ("headline", "game", "training", "phases", "profile"))
    ))  # fmt: skip
    report = root / "scripts/kernel_report.py"
    if report.exists() and found.get("game"):
        subprocess.run([sys.executable, str(report), "--measured", str(folder / "bench.jsonl")], check=True)


def show(folder: Path, phases: Iterable[str]) -> None:
    rows = [row for phase in phases for row in read_rows(folder / f"{phase}.jsonl")]
    for machine in [row for row in rows if row.get("kind") == "machine"][:1]:
        print(machine.get("gpu") or machine.get("cpu"), f"({machine.get('device')})")
    print(tables(sorted_out(rows), [kind for kind, _, _ in TABLES]) or f"no rows in {folder}")


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "out", help="the folder that scripts/gpu.sh wrote")
    parser.add_argument("--show", action="store_true", help="print tables, and write nothing")
    parser.add_argument("--phase", choices=PHASES, help="with --show: the rows of this one")
    args = parser.parse_args(words)
    if args.show:
        show(args.out, [args.phase] if args.phase else PHASES)
    else:
        write(args.out)


if __name__ == "__main__":
    main()
