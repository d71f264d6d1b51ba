"""The tables of `kernels.md`, from `kernels.json`, which `scripts/kernel_report.py` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markdown_text import table

import gpuzoo

FILE = Path(__file__).with_name("kernels.json")
#: the tests that a game may be exempt from
OCCUPANCY, SPILLS, SECTORS = "half_occupancy", "no_spills", "rows_are_stored_in_few_sectors"


def _by_bytes(instructions: Mapping[str, int]) -> str:
    return ", ".join(f"{size}: {count}" for size, count in sorted(instructions.items(), key=lambda x: int(x[0])))


def _rate(rate: float | None) -> str:
    if rate is None:
        return ""
    return f"{rate / 1e9:.3g} G" if rate >= 1e9 else f"{rate / 1e6:.3g} M"


def _cells(row: Mapping[str, Any]) -> list[str]:
    cells = [f"`{row['id']}`", row["case"], str(row["lanes"]), str(row["registers"])]
    cells += [
        f"{row['code'] / 1024:.3g}" if "code" in row else "",
        f"{row['shared'] / 1024:.3g}",
        f"{row['occupancy']:.0%}",
        _by_bytes(row["loads"]),
        _by_bytes(row["stores"]),
    ]
    if row["kernel"] == "step" and "row_sectors" not in row:
        cells += [""] * 4
    elif row["kernel"] == "step":
        cells += [f"{row['sectors_per_load']:.1f}, {row['sectors_per_store']:.1f}", f"{row['row_sectors']:.2f}"]
        cells += [f"{row['bytes']:.0f}, {row['fewest_bytes']}", _rate(row["predicted_steps_per_second"])]
    return [*cells, _rate(row.get("measured_steps_per_second"))]


def _reason(row: dict[str, Any], test: str) -> str:
    """Why a test of kernels does not apply to a game."""
    return gpuzoo.get(row["id"]).exempt.get(test, "the game does not say")


def substitutions() -> dict[str, str]:
    """The tables of steps, of rollouts, and of games below half occupancy."""
    rows = [row for row in json.loads(FILE.read_text()) if row["id"] in gpuzoo.ids()]
    head = ["game", "case", "lanes", "registers", "code", "shared", "occupancy", "loads", "stores"]
    heads = {"step": [*head, "sectors", "rows", "bytes", "model", "measured"], "rollout": [*head, "measured"]}
    made = {
        f"kernels_{kernel}": table(head, [_cells(row) for row in rows if row["kernel"] == kernel])
        for kernel, head in heads.items()
    }
    rolled = dict.fromkeys(f"{row['id']} ({row['case']})" for row in rows if row.get("rolled"))
    local = [
        [
            f"`{row['id']}`",
            row["kernel"],
            *(str(row[name]) for name in ("registers", "stack", "spills")),
            _reason(row, SPILLS),
        ]
        for row in rows
        if row.get("stack") or row.get("spills")
    ]
    made["kernels_rolled"] = ", ".join(rolled) or "none"
    heads_of_local = ["game", "kernel", "registers", "bytes of stack", "bytes spilled", "reason"]
    made["kernels_local"] = table(heads_of_local, local)
    below = [
        [f"`{row['id']}`", row["case"], f"{row['occupancy']:.0%}", _reason(row, OCCUPANCY)]
        for row in rows
        if row["kernel"] == "step" and row["occupancy"] < 0.5
    ]
    scattered = [
        [
            f"`{row['id']}`",
            row["case"],
            *(f"{row[f'{name}_sectors']:.1f}" for name in ("row", "mask")),
            _reason(row, SECTORS),
        ]
        for row in rows
        if any(row.get(f"{name}_bytes", 0) >= 16 and row[f"{name}_sectors"] > 1.2 for name in ("row", "mask"))
    ]
    made["kernels_scattered"] = table(["game", "case", "observations", "masks", "reason"], scattered)
    return {**made, "kernels_exceptions": table(["game", "case", "occupancy", "reason"], below)}
