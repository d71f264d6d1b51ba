"""``gpuzoo bench``."""

from __future__ import annotations

import contextlib
import json
from typing import Annotated, Any

import typer
from rich.markup import escape

from gpuzoo.tools.commands import common
from gpuzoo.tools.commands.options import DeviceOption

_BENCH_COLUMNS = (
    "game", ">agents", ">envs", ">steps/s", ">agent\nsteps/s", ">roof-\nline", ">rollout\nsteps/s", ">make_vec\nrows/s",
    ">over-\nhead", ">first\nstep", ">cached",
)  # fmt: skip
_BENCH_NOTES = """\
steps: of all envs, one launch each, with fixed actions; roofline: bytes such a step has to move / copy bandwidth
rollout: steps/s with random actions, many in one launch; overhead: of make_vec with NumPy output over the bare step
first step: seconds from make, with nothing compiled before\
"""


def short(number: float) -> str:
    """Three digits and a unit: ``157 M``."""
    for factor, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * factor:
            value = number / factor
            return f"{value:.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f} {unit}"
    return f"{number:.{0 if number >= 10 else 2}f}"


def _bench_row(row: dict[str, Any]) -> list[str]:
    name = f"[bold cyan]{row['id']}[/]" + ("" if row["case"] == "default" else f"\n  {escape(row['case'])}")
    if "error" in row:
        return [name, *[""] * 2, "[red]failed[/]"]
    start = [row.get(f"first_step_{k}_seconds") for k in ("uncached", "cached")]
    return [
        name,
        str(row["agents"]),
        str(row["num_envs"]),
        short(row["steps_per_second"]),
        short(row["agent_steps_per_second"]),
        f"{100 * row['roofline_fraction']:.{0 if row['roofline_fraction'] >= 0.1 else 1}f} %",
        short(row["rollout_steps_per_second"]),
        short(row["vector_rows_per_second"]),
        f"{100 * row['vector_overhead']:+.0f} %",
        *("" if seconds is None else f"{seconds:.2f} s" for seconds in start),
    ]


def bench(
    pattern: Annotated[str, typer.Argument(metavar="REGEX", help="Only games or configurations that match.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print rows of JSON, one a line, as they come.")] = False,
    device: DeviceOption = "auto",
    num_envs: Annotated[int | None, typer.Option(min=1, help="Number of envs.  [default: searched]")] = None,
    seconds: Annotated[float, typer.Option(min=0.001, help="Time for each game, without start-up.")] = 2.0,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads.  [default: all]")] = None,
    startup: Annotated[bool, typer.Option(help="Measure the time to the first step too.")] = True,
) -> None:
    """Measure steps per second, the share of the memory roofline, and the time to the first step."""
    from gpuzoo.tools import bench as measurement

    out, err = common.console(), common.console(stderr=True)
    out.width = max(out.width, 100)
    table = common.table(*_BENCH_COLUMNS, collapse_padding=True)
    table.columns[0].no_wrap = True
    failures: list[dict[str, Any]] = []
    done: list[dict[str, Any]] = []
    with common.errors():
        chosen = measurement.cases(pattern)
        if not chosen:
            raise ValueError(f"no game or configuration matches {pattern!r}; 'gpuzoo list' shows the games.")
        rows = measurement.run(
            chosen,
            device=device,
            threads=threads,
            num_envs=num_envs,
            seconds=seconds,
            startup=startup,
            modules=common.given.modules,
        )
        machine: dict[str, Any] = {}
        interrupted = True
        with err.status("Starting", refresh_per_second=2) as status, contextlib.suppress(KeyboardInterrupt):
            for k, row in enumerate(rows):
                if as_json:
                    print(json.dumps(row), flush=True)
                if "error" in row:
                    failures.append(row)
                if row["kind"] == "machine":
                    machine = row
                else:
                    table.add_row(*_bench_row(row))
                    done += [row] * ("error" not in row)
                if k < len(chosen):
                    status.update(f"{chosen[k].env.id} ({chosen[k].name}), {k + 1} of {len(chosen)}")
            interrupted = False
        if machine and not as_json:
            where = machine["gpu"] or f"{machine['threads']} threads"
            out.print(f"\n[bold]{machine['cpu']}[/], {machine['cores']} cores, on {machine['device']} ({where})")
            versions = f"gpuzoo {machine['gpuzoo']}" + f" ({machine['commit']})" * bool(machine["commit"])
            speeds = sorted(row["copy_bandwidth"] / 1e9 for row in done)
            copied = f", copy bandwidth {speeds[len(speeds) // 2]:.3g} GB/s" if speeds else ""
            out.print(f"{versions}{copied}, {machine['command']}", style="dim")
            out.print(table)
            out.print(_BENCH_NOTES, style="dim")
        for row in failures:
            err.print(f"[bold red]{row['id']} ({row['case']}):[/] {escape(row['error'])}", soft_wrap=True)
    raise typer.Exit(130 if interrupted else 1 if failures else 0)
