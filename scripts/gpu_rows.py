"""Rows of JSON, one a line, of what trainers and Nsight Compute wrote; for scripts/gpu_work.py."""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
from pathlib import Path
from typing import Any

from gpu_figures import read_rows

Row = dict[str, Any]

#: what Nsight Compute is asked for, and what the rows call it
METRICS = {
    "gpu__time_duration.sum": "nanoseconds",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "dram_percent",
    "dram__bytes.sum": "dram_bytes",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "sm_percent",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "occupancy_percent",
    "launch__registers_per_thread": "registers",
    "launch__shared_mem_per_block_static": "shared_bytes",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "load_sectors",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": "load_requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": "store_sectors",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": "store_requests",
}


def say(row: Row) -> None:
    print(json.dumps(row), flush=True)


def training_rows(args: argparse.Namespace) -> bool:
    """Each training's own log as one row."""
    good = True
    for folder in map(Path, args.games):
        rows = read_rows(folder / "progress.jsonl")
        if rows:
            say(training_row(rows, json.loads((folder / "run.json").read_text())))
        else:
            good = False
            say({"kind": "training", "id": folder.name, "num_envs": None, "error": "no iteration was finished"})
    return good


def training_row(rows: list[Row], run: Row) -> Row:
    """A training's speed over all, and once it runs."""
    last, members = rows[-1], run["population"]
    early = next((row for row in rows if row["steps"] >= last["steps"] / 5), rows[0])
    taken = last["seconds"] - early["seconds"]
    return {
        "kind": "training", "id": run["game"], "device": run["device"], "num_envs": run["num_envs"],
        "num_steps": run["num_steps"], "population": members, "iterations": last["iteration"],
        "steps": last["steps"] * members, "seconds": last["seconds"],
        "ok": last["steps"] > run["total_steps"] - run["num_envs"] * run["num_steps"],
        "steps_per_second": last["steps"] * members / last["seconds"],
        "steady_steps_per_second": (last["steps"] - early["steps"]) * members / taken if taken > 0 else None,
        "returns": {name: value for name, value in last.items() if name.startswith("return/")},
    }  # fmt: skip


def profile_rows(args: argparse.Namespace) -> bool:
    """Nsight Compute's CSV as a row for each kernel. A file is called GAME.csv, or GAME:CASE.csv."""
    good = True
    for path in map(Path, args.games):
        env_id, _, case = path.stem.partition(":")
        lines = path.read_text(errors="replace").splitlines()
        start = next((k for k, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
        kernels: dict[str, Row] = {}
        for entry in csv.DictReader(lines[start:]):
            row = kernels.setdefault(entry["ID"], {
                "kind": "profile", "id": env_id, "case": case or "default", "kernel": entry.get("Kernel Name"),
                "block": entry.get("Block Size"), "grid": entry.get("Grid Size"),
            })  # fmt: skip
            with contextlib.suppress(KeyError, ValueError, AttributeError, TypeError):
                row[METRICS[entry["Metric Name"]]] = float(entry["Metric Value"].replace(",", ""))
        for row in kernels.values():
            say(row)
        if not kernels:
            good = False
            about = {"kind": "profile", "id": env_id, "case": case or "default"}
            say({**about, "ok": False, "error": "no kernel was profiled"})
    return good
