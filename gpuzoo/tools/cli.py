"""The command ``gpuzoo``: one function for each subcommand, and how it prints; what they do is in other modules.

One file, because most of it is the options of the subcommands and their help, which a user reads as one.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import itertools
import json
import os
import re
import runpy
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table

if TYPE_CHECKING:
    from gpuzoo.core.definition import EnvDef

app = typer.Typer(
    help="Vectorized multi-agent environments: one kernel steps thousands of copies, on a GPU or a CPU.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DeviceOption = Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:<index> or auto.")]
GameArgument = Annotated[str, typer.Argument(metavar="ID", help="Id of the game, such as CartPole-v1.")]


def _console(stderr: bool = False) -> Console:
    """A console; in a file or pipe it is wide enough for the tables."""
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(stderr=stderr, highlight=False, width=160)
    return console


def _table(*columns: str, **options: Any) -> Table:
    """A table; columns whose name begins with ``>`` are numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", **options)
    for column in columns:
        right = column.startswith(">")
        table.add_column(column.removeprefix(">"), justify="right" if right else "left", no_wrap=right)
    return table


def _fail(message: object, code: int) -> NoReturn:
    text = str(message) or type(message).__name__
    _console(stderr=True).print(f"[bold red]error:[/] {escape(text)}", soft_wrap=True)
    raise typer.Exit(code)


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    """Ends the command with one sentence: status 2 for what the caller got wrong, 1 for what the machine did."""
    try:
        yield
    except Exception as error:
        if _common_options.traceback:
            raise
        if isinstance(error, (ValueError, TypeError, FileExistsError, NotImplementedError)):
            _fail(error, 2)
        if isinstance(error, (RuntimeError, ImportError, OSError, MemoryError)):
            _fail(error, 1)
        raise


class _Common:
    """What the options before the command's name say."""

    modules: tuple[str, ...] = ()
    traceback = False


_common_options = _Common()


def _version(wanted: bool) -> None:
    if wanted:
        import gpuzoo

        print(f"gpuzoo {gpuzoo.__version__}")
        raise typer.Exit


@app.callback()
def _common(
    imports: Annotated[
        list[str] | None,
        typer.Option("--import", "-i", metavar="MODULE", help="Import a module with games of your own first."),
    ] = None,
    traceback: Annotated[bool, typer.Option("--traceback", help="Show where an error comes from.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    _common_options.modules = tuple(imports or ())
    _common_options.traceback = traceback
    if imports and "" not in sys.path:
        sys.path.insert(0, "")
    with _errors():
        for module in _common_options.modules:
            importlib.import_module(module)


# ---- list ----


def _by_group(found: dict[str, str]) -> str:
    """The same for all groups, or each group's own."""
    if len(set(found.values())) == 1:
        return next(iter(found.values()))
    return "\n".join(f"{group}: {text}" for group, text in found.items())


@app.command("list")
def list_(
    pattern: Annotated[str, typer.Argument(metavar="REGEX", help="Only ids that match.")] = "",
    as_json: JsonOption = False,
) -> None:
    """List the games."""
    from gpuzoo.tools.listing import agents_text
    from gpuzoo.tools.listing import games as all_games

    with _errors():
        try:
            games = [game for game in all_games() if re.search(pattern, game["id"], re.IGNORECASE)]
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}.") from None
    if as_json:
        print(json.dumps(games, indent=2))
        return
    console = _console()
    wide = console.width >= 120
    table = _table("game", "agents", "observation", "actions", *[""] * wide)
    table.columns[0].no_wrap = True
    for game in games:
        masked = "\n(masked)" if game["action_mask"] else ""
        table.add_row(
            f"[bold cyan]{game['id']}[/]",
            agents_text(game["agents"]),
            _by_group(game["observation"]),
            _by_group(game["action"]) + masked,
            *[escape(game["description"])] * wide,
        )
    console.print(table)
    count = "1 game" if len(games) == 1 else f"{len(games)} games"
    console.print(f"{count}, with default parameters.", style="dim")


# ---- doctor ----

_MARKS = {"ok": "[green]ok[/]", "absent": "[yellow]absent[/]", "problem": "[bold red]problem[/]"}


def _doctor_of_game(game: str, config: list[str], as_json: bool) -> None:
    from gpuzoo import registry
    from gpuzoo.tools.doctor_game import examine

    with _errors():
        env = registry.get(game)
        with _console(stderr=True).status("Compiling"):
            report = examine(env, **parse_config(env, config))
    if as_json:
        print(json.dumps(report.as_json(), indent=2))
        return
    table = _table("", "")
    table.show_header = False
    for name, detail in report.lines():
        table.add_row(name, escape(detail))
    _console().print(table)


@app.command()
def doctor(
    game: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A game, whose compiled form is explained.")
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option("--config", "-c", metavar="NAME=VALUE", help="A parameter of the game.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check drivers, compilers and libraries, and run a game on every device; or explain how one game is compiled."""
    if game is not None:
        _doctor_of_game(game, config or [], as_json)
        return
    if config:
        _fail("--config needs the id of a game: gpuzoo doctor ID --config NAME=VALUE.", 2)
    from gpuzoo.tools import doctor as examination

    report = []
    with _console(stderr=True).status("Looking around") as status:
        for check in examination.checks():
            report.append(check)
            status.update(f"Checked {check.name}")
    usable = examination.usable(report)
    if as_json:
        print(json.dumps(examination.as_json(report), indent=2))
    else:
        table = _table("", "", "")
        table.show_header = False
        for check in report:
            advice = f"\n[dim]{escape(check.advice)}[/]" if check.advice else ""
            table.add_row(check.name, _MARKS[check.status], escape(check.detail) + advice)
        console = _console()
        console.print(table)
        devices = [c.name.rpartition(" ")[2] for c in report if " on " in c.name and c.status == "ok"]
        if usable:
            console.print(f"[green]Ready:[/] games run on {' and '.join(devices)}.")
        else:
            console.print("[bold red]Not ready:[/] games run on no device; see the problems above.")
    raise typer.Exit(0 if usable else 1)


# ---- bench ----


def short(number: float) -> str:
    """Three digits and a unit: ``157 M``."""
    for factor, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * factor:
            value = number / factor
            return f"{value:.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f} {unit}"
    return f"{number:.{0 if number >= 10 else 2}f}"


_BENCH_COLUMNS = (
    "game", ">agents", ">envs", ">steps/s", ">agent\nsteps/s", ">roof-\nline", ">rollout\nsteps/s", ">make_vec\nrows/s",
    ">over-\nhead", ">first\nstep", ">cached",
)  # fmt: skip
_BENCH_NOTES = """\
steps: of all envs, one launch each, with fixed actions; roofline: bytes such a step has to move / copy bandwidth
rollout: steps/s with random actions, many in one launch; overhead: of make_vec with NumPy output over the bare step
first step: seconds from make, with nothing compiled before\
"""


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


@app.command()
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

    out, err = _console(), _console(stderr=True)
    out.width = max(out.width, 100)
    table = _table(*_BENCH_COLUMNS, collapse_padding=True)
    table.columns[0].no_wrap = True
    failures: list[dict[str, Any]] = []
    done: list[dict[str, Any]] = []
    with _errors():
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
            modules=_common_options.modules,
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


# ---- record ----


def parse_config(env: EnvDef, pairs: list[str]) -> dict[str, Any]:
    """Values of a game's parameters from ``name=value`` words.

    Raises:
        ValueError, TypeError: a faulty word, an unknown parameter, or a value of the wrong type.
    """
    from gpuzoo.core.definition import config_types, unknown
    from gpuzoo.core.uniform import Uniform

    kinds = {**config_types(env.Config), "max_episode_steps": int}
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    out: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"--config takes name=value, not {pair!r}.")
        if name not in kinds:
            raise ValueError(unknown(f"{env.id} has no parameter", name, kinds))
        kind = kinds[name]
        try:
            if kind is bool:
                out[name] = words[text.lower()]
            elif kind is float and ":" in text:
                out[name] = Uniform.parse(text)
            else:
                out[name] = kind(text) if kind in (int, float) else text
        except (ValueError, KeyError):
            raise ValueError(f"{env.id}: {name} must be of type {kind.__name__}, not {text!r}.") from None
    return out


def _scripted(policy: str) -> dict[str, Any]:
    """The user's own policy by its name ``module:function``; nothing for one that `Live` has.

    Raises:
        ValueError: there is no such policy.
    """
    from gpuzoo.tools import live

    if ":" in policy:
        if "" not in sys.path:  # as with --import, a file of the present folder is found
            sys.path.insert(0, "")
        return {policy: live.imported(policy)}
    if policy not in live.POLICIES:
        raise ValueError(f"there is no policy {policy!r}: use {', '.join(live.POLICIES)}, or module:function.")
    return {}


def _wrote(out: Path, what: str) -> None:
    kib = out.stat().st_size / 1024
    amount = f"{kib / 1024:.1f} MiB" if kib >= 1000 else f"{kib:.0f} KiB"
    _console().print(f"Wrote [bold]{escape(str(out))}[/]: {what}, {amount}.", soft_wrap=True)


@app.command()
def record(
    game: Annotated[str, typer.Argument(metavar="ID|FILE", help="Id of a game, or a saved trajectory (.npz) to film.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="A .gif, .png (animated), .mp4, .webm or .html (a page with a player) file; or .npz, "
            "the trajectory of one env.",
        ),
    ],
    num_envs: Annotated[int | None, typer.Option(min=1, max=64, help="Envs, side by side.  [default: 4]")] = None,
    steps: Annotated[int, typer.Option(min=0, help="Steps.")] = 120,
    policy: Annotated[str, typer.Option(metavar="NAME", help="Who plays: as in gpuzoo view.")] = "random",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first env.")] = 0,
    size: Annotated[int, typer.Option(min=32, max=4096, help="Pixels of the longer side of an env's picture.")] = 240,
    aspect: Annotated[
        float | None, typer.Option(min=1 / 16, max=16, help="Width of a picture by its height.  [default: the game's]")
    ] = None,
    fps: Annotated[float | None, typer.Option(help="Frames per second.  [default: the game's]")] = None,
    config: Annotated[
        list[str] | None, typer.Option("--config", "-c", metavar="NAME=VALUE", help="A parameter of the game.")
    ] = None,
    device: DeviceOption = "cpu",
) -> None:  # fmt: skip
    """Record an animation or a trajectory of play, at random unless told; or film a trajectory that was saved."""
    from gpuzoo import registry
    from gpuzoo.render import save_animation
    from gpuzoo.tools.live import Live
    from gpuzoo.trajectory import Trajectory
    from gpuzoo.trajectory import record as recorder

    console = _console(stderr=True)
    with _errors():
        if out.is_dir():
            raise ValueError(f"{out} is a folder: give the name of a file.")
        if game.endswith(".npz"):
            saved = Trajectory.load(game)
            with console.status("Writing"):
                saved.film(out, fps, size, aspect)
            _wrote(out, f"{len(saved)} steps of {saved.id}")
            return
        env = registry.get(game)
        rate = fps or min(env.render_fps, 50)
        values = parse_config(env, config or [])
        scripted = _scripted(policy)
        alone = out.suffix.lower() == ".npz"
        if alone and num_envs not in (None, 1):
            raise ValueError("a trajectory is of one env: leave --num-envs out.")
        count = 1 if alone else num_envs or 4
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task("Compiling", total=steps + 1)

            def states() -> Iterator[Live]:
                groups = env.agents(env.Config(**{k: v for k, v in values.items() if k != "max_episode_steps"}))
                options: dict[str, Any] = {"seed": seed, "device": device, "scripted": scripted, **values}
                live = Live(env, count, dict.fromkeys(groups, policy), **options)
                try:
                    progress.update(task, description="Playing")
                    for k in range(steps + 1):
                        if k:
                            live.step()
                        yield live
                        progress.advance(task)
                finally:
                    live.close()
                progress.update(task, description="Writing")

            if alone:
                recording: Any = None
                for live in states():
                    recording = recording or recorder(live.envs)
                recording.trajectory().save(out)
            else:
                save_animation((live.picture(size, aspect) for live in states()), out, fps=rate, title=env.id)
    _wrote(out, f"{steps} steps" if alone else f"{steps + 1} frames")


# ---- view ----


@app.command()
def view(
    game: Annotated[str, typer.Argument(metavar="[ID]", help="Game to begin with.")] = "SimpleTag-v0",
    policy: Annotated[
        str,
        typer.Option(metavar="NAME", help="Who plays: random, trained, still, 'in turn', or a function module:name."),
    ] = "random",
    config: Annotated[
        list[str] | None, typer.Option("--config", "-c", metavar="NAME=VALUE", help="A parameter of the first game.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen to, by default of this machine alone. Any other wants a token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(help="What a page has to know; '' is none. Default: a random one, on this machine none."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8008,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    device: DeviceOption = "cpu",
) -> None:
    """Watch and play the games in a browser: one env or a wall of 64, with any policy and any parameters."""
    from gpuzoo import registry
    from gpuzoo.core.backend import make_backend
    from gpuzoo.tools.viewer.server import Viewer

    with _errors():
        env = registry.get(game)
        values = parse_config(env, config or [])
        scripted = _scripted(policy)
        if token is None:
            token = "" if host in ("127.0.0.1", "localhost", "::1") else secrets.token_urlsafe(24)
        viewer = Viewer(env.id, host, port, values, policy, scripted, make_backend(device).device, token)
    console = _console()
    console.print(f"Watch and play at [bold]{viewer.url}[/]; Ctrl-C ends.", soft_wrap=True)
    if token:
        console.print("[yellow]Whoever has this address can watch and play; nothing is encrypted.[/]", soft_wrap=True)
    if browser:
        import webbrowser

        webbrowser.open(viewer.url)
    with contextlib.suppress(KeyboardInterrupt):
        viewer.serve_forever()


# ---- new ----


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the game, such as windy_walk.")],
    parent: Annotated[Path, typer.Option("--dir", help="Where to make the game's folder.")] = Path(),
    agents: Annotated[int | None, typer.Option("--agents", help="Number of agents (default: one).")] = None,
    turn_based: Annotated[bool, typer.Option("--turn-based", help="Agents act in turns; two unless told.")] = False,
    grid: Annotated[bool, typer.Option("--grid", help="On square cells.")] = False,
    continuous: Annotated[bool, typer.Option("--continuous", help="Actions are real numbers.")] = False,
    packed: Annotated[
        bool, typer.Option("--packed", help="Rules that move many envs at once, for physics and other long arithmetic.")
    ] = False,
) -> None:
    """Make a game of your own: two files that work, to be changed. The options choose the game to start from."""
    from gpuzoo.tools import scaffold

    with _errors():
        files = scaffold.create(name, parent, scaffold.template(agents, turn_based, grid, continuous, packed), agents)
        module, title = scaffold.names(name)
        inside = scaffold.in_collection(parent)
    console = _console()
    console.print(f"Made [bold]{title}[/] to start from. {escape(scaffold.about(files[0]))}\n", soft_wrap=True)
    what = ("parameters, spaces, state, drawing", "the rules: reset, step, observe")
    width = max(len(str(path)) for path in files)
    for path, text in zip(files, what, strict=True):
        console.print(f"  [bold cyan]{escape(str(path)):{width}}[/]  {text}", soft_wrap=True)
    imported = "" if inside else f"{module}.{module}"
    where = "" if inside or parent.resolve() == Path.cwd() else f"  (in {parent}, or with it on PYTHONPATH)"
    console.print(f"\nUse it{where}:\n", markup=False, soft_wrap=True)
    code = [
        "import gpuzoo",
        *([f"import {imported}  # registers it"] if imported else []),
        f'env = gpuzoo.make("{title}-v0", num_envs=1024)',
        "observations, infos = env.reset(seed=0)",
    ]
    console.print("\n".join(f"  {line}" for line in code), markup=False, soft_wrap=True)
    option = f" --import {imported}" if imported else ""
    registered = f"import {imported}; " if imported else ""
    check = f"{registered}from gpuzoo.testing import check_env; check_env('{title}-v0')"
    steps = [
        f'python -c "{check}"',
        *(["make test"] if inside else []),
        f"gpuzoo{option} record {title}-v0 -o {module}.gif",
        f"gpuzoo{option} bench {title}",
    ]
    console.print("\nThen change the rules, and:\n")
    for line in steps:
        console.print(f"  {line}", markup=False, soft_wrap=True)


# ---- train, play ----

_PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


def _require(purpose: str, *modules: str) -> None:
    """Ends the command with one sentence if a package is missing that the trainers need."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        _fail(f"{purpose} needs {' and '.join(missing)}: pip install 'gpuzoo[train]'", 1)


TRAINERS = ("ppo", "a2c")


def algorithms() -> dict[str, str]:
    """Modules of ``gpuzoo.baselines`` by the name that ``--algorithm`` takes: the trainers, and algorithms in one file.

    A file that is called like a trainer is ``simple.NAME``.
    """
    files = sorted(path.stem for path in (Path(__file__).parents[1] / "baselines" / "simple").glob("[!_]*.py"))
    modules = {f"simple.{name}" if name in TRAINERS else name: f"simple.{name}" for name in files}
    return {name: name for name in TRAINERS} | modules


@contextlib.contextmanager
def _as_argv(*words: str) -> Iterator[None]:
    """With these words as ``sys.argv``, whose first is how argparse introduces the program."""
    before = sys.argv
    sys.argv = [*words]
    try:
        yield
    finally:
        sys.argv = before


@app.command(context_settings={**_PASSED_ON, "help_option_names": []}, options_metavar="ID [OPTIONS]")
def train(
    context: typer.Context,
    algorithm: Annotated[str, typer.Option(metavar="NAME", help="What to train with; --help names all.")] = "ppo",
) -> None:
    """Train agents: gpuzoo train ID, with the options that gpuzoo train ID --help shows."""
    from gpuzoo.core.definition import unknown

    known, words = algorithms(), context.args
    if algorithm not in known:
        _fail(unknown("there is no algorithm", algorithm, known), 2)
    if algorithm not in TRAINERS:
        _require("training", "torch")
        with _errors(), _as_argv(f"gpuzoo train --algorithm {algorithm}", *config_as_json(words)):
            name = f"gpuzoo.baselines.{known[algorithm]}"
            sys.modules.pop(name, None)  # runpy warns where a program has imported it
            runpy.run_module(name, run_name="__main__")
        return
    _require("training", "torch", "matplotlib", "safetensors", "tensorboard")
    from gpuzoo.baselines.train.args import Args
    from gpuzoo.baselines.train.command import parse

    kind = next(k for k in Args.__subclasses__() if k.algorithm == algorithm)
    others = ", ".join(name for name in known if name != algorithm)
    with _as_argv("gpuzoo train", *words):
        args = parse(
            kind, words, f"{kind.__doc__} Other algorithms, with options of their own, for --algorithm: {others}."
        )
        if not args.out:
            from gpuzoo import registry

            args.out = f"out/{registry.get(args.game).id}"
            words = [*words, "--out", args.out]
        with _errors():
            args.check()
        from gpuzoo.baselines import run  # only now: it imports torch, which takes longer than all of the above

        module = importlib.import_module(f"gpuzoo.baselines.{algorithm}")
        run.main(getattr(module, algorithm.upper()), module.Args, words)


def config_as_json(words: list[str]) -> list[str]:
    """The words with every ``--config.name value`` in the one ``--config JSON`` that the one-file algorithms take.

    Raises:
        ValueError: one without a value, or both forms together.
    """
    rest, own, left = [], [], iter(words)
    for word in left:
        if word.startswith("--config."):
            own += [word] if "=" in word else [word, *itertools.islice(left, 1)]
        else:
            rest.append(word)
    if not own:
        return words
    if any(word.partition("=")[0] == "--config" for word in rest):
        raise ValueError("give the game's parameters as --config JSON or as --config.NAME VALUE, not as both.")
    return [*rest, "--config", json.dumps({k: _json_or_text(v) for k, v in (x.split("=", 1) for x in dotted(own))})]


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def dotted(words: list[str]) -> list[str]:
    """``name=value`` words from ``--config.name value`` and ``--config.name=value``.

    Raises:
        ValueError: another option, or one without a value.
    """
    out, left = [], iter(words)
    for word in left:
        name, equals, value = word.partition("=")
        if not name.startswith("--config."):
            raise ValueError(f"there is no option {name}; see --help.")
        found = value if equals else next(left, None)
        if found is None:
            raise ValueError(f"{name} needs a value.")
        out.append(f"{name.removeprefix('--config.')}={found}")
    return out


def players(words: list[str]) -> dict[str, str]:
    """The players of a match, from ``name=file`` words.

    Raises:
        ValueError: a word without a name or a file.
    """
    for word in words:
        name, _, file = word.partition("=")
        if not (name and file):
            raise ValueError(f"--player takes NAME=FILE, NAME=pretrained or NAME=random, not {word!r}.")
    return {name: file for name, _, file in (word.partition("=") for word in words)}


def _play_oneself(
    game: str, agent: str | None, checkpoint: str, player: list[str], config: list[str], seed: int, device: str
) -> None:
    """A person plays an agent in a window; prints what came of it."""
    from gpuzoo import registry
    from gpuzoo.baselines.train.command import PRETRAINED
    from gpuzoo.core.backend import make_backend
    from gpuzoo.render.window import need_display
    from gpuzoo.tools import controls, human
    from gpuzoo.tools.live import RANDOM, TRAINED, Live, has_trained

    need_display()
    env = registry.get(game)
    values, files = parse_config(env, config), players(player)
    groups = env.agents(env.Config(**{k: v for k, v in values.items() if k != "max_episode_steps"}))
    alone = sum(groups.values()) == 1
    if checkpoint == RANDOM and not files and not alone and has_trained(env):
        checkpoint = PRETRAINED
    match = None
    if not alone and {checkpoint, *files.values()} != {RANDOM}:
        _require("playing against trained agents", "torch", "safetensors")
        from gpuzoo.baselines.report import match as matches

        match = matches.arrange(game, files, checkpoint, values)
        values = match.config
    who = RANDOM if match is None else TRAINED
    live = Live(
        env, players=dict.fromkeys(groups, who), seed=seed, device=make_backend(device).device, trained=match, **values
    )
    try:
        mine = agent or live.agents[0]
        live.play(mine)  # refuses whom there is not
        out = _console()
        out.print(f"You are [bold]{mine}[/] in {env.id}. Escape ends.", soft_wrap=True)
        out.print(escape(controls.legend(live.controls[live.group(mine)])), style="dim", soft_wrap=True)
        played = human.play(live, mine)
    finally:
        live.close()
    table = _table("episode", *(f">{name}" for name in live.agents[:12]))
    for k, returns in enumerate(played):
        table.add_row(str(k + 1), *(f"{returns[name]:.4g}" for name in live.agents[:12]))
    out.print(table if played else "No episode came to its end.")


@app.command(context_settings=_PASSED_ON)
def play(
    context: typer.Context,
    game: GameArgument,
    checkpoint: Annotated[
        str,
        typer.Option(metavar="FILE[#MEMBER]", help="Who plays all agents: what training left, pretrained or random."),
    ] = "random",
    pretrained: Annotated[
        bool, typer.Option("--pretrained", help="The agents that gpuzoo brings play, as --checkpoint pretrained.")
    ] = False,
    player: Annotated[
        list[str] | None,
        typer.Option(
            "--player", "-p", metavar="NAME=FILE|pretrained|random", help="Who plays a group or an agent instead."
        ),
    ] = None,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to measure, each with a seed of its own.")] = 256,
    greedy: Annotated[bool, typer.Option("--greedy/--sample", help="Take the likeliest actions or draw them.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the episodes and of the actions.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write an animation: a .gif, .png, .mp4, .webm or .html file.")
    ] = None,
    window: Annotated[bool, typer.Option("--window", help="Show them in a window, until it is closed.")] = False,
    human: Annotated[
        bool,
        typer.Option(
            "--human", help="Play yourself, in a window, by keyboard or mouse: against pretrained agents unless told."
        ),
    ] = False,
    agent: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --human: the agent that you play.  [default: the first]")
    ] = None,
    num_envs: Annotated[int, typer.Option(min=1, max=64, help="Envs in the animation or window.")] = 4,
    seconds: Annotated[float, typer.Option(min=0.1, max=600, help="Length of the animation.")] = 10.0,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config", "-c", metavar="NAME=VALUE",
            help="A parameter of the game, also as --config.NAME VALUE. By default those of training.",
        ),
    ] = None,
    device: DeviceOption = "cpu",
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Let trained agents play: measure their returns, and show them. Or play yourself, with --human."""
    from gpuzoo.baselines.train.command import PRETRAINED, checkpoint_of, existing

    if human:
        words = [*(config or []), *dotted(context.args)]
        with _errors():
            _play_oneself(game, agent, PRETRAINED if pretrained else checkpoint, player or [], words, seed, device)
        return
    if agent is not None:
        _fail("--agent needs --human.", 2)
    _require("playing", "torch", "safetensors")
    from gpuzoo import registry
    from gpuzoo.core.backend import make_backend

    err = _console(stderr=True)
    with _errors():
        values = parse_config(registry.get(game), [*(config or []), *dotted(context.args)])
        files = players(player or [])
        if pretrained and checkpoint != "random":
            raise ValueError(f"give either --pretrained or --checkpoint {checkpoint}, not both.")
        checkpoint = PRETRAINED if pretrained else checkpoint
        for file in {checkpoint, *files.values()} - {"random"}:
            existing(checkpoint_of(game, file).partition("#")[0])
        # Only now: torch takes longer to import than all of the above.
        from gpuzoo.baselines.report import match as matches
        from gpuzoo.baselines.report.evaluation import evaluate

        device = make_backend(device).device
        match = matches.arrange(game, files, checkpoint, values, device)
        options: dict[str, Any] = {"greedy": greedy, "seed": seed}
        if out:
            from gpuzoo.baselines.report.video import film

            film(match.game, match.players, out, match.config, device, envs=num_envs, seconds=seconds, **options)
        with err.status(f"Playing {episodes} episodes"):
            seen = evaluate(match.game, match.players, episodes, config=match.config, device=device, **options)
        sides = matches.summary(match, seen)
    if as_json:
        about = {"game": match.game, "config": match.config, "device": device, **options}
        print(json.dumps({**about, "sides": sides}, indent=2))
    else:
        table = _table("", "played by", ">agents", ">mean return", ">standard error", ">mean length")
        for name, side in sides.items():
            error = "" if side["standard_error"] is None else f"{side['standard_error']:.2g}"
            table.add_row(
                f"[bold cyan]{name}[/]", escape(side["player"]), str(side["agents"]), f"{side['mean_return']:.4g}",
                error, f"{side['mean_length']:.1f}",
            )  # fmt: skip
        how = "the likeliest actions" if greedy else "drawn actions"
        count = "1 episode" if episodes == 1 else f"{episodes} episodes"
        _console().print(table)
        _console().print(f"{match.game}, {count} with {how}; an agent's return, its length until it left.", style="dim")
    if out:
        err.print(f"Wrote [bold]{escape(str(out))}[/].", soft_wrap=True)
    if window:
        from gpuzoo.baselines.report.video import show

        with _errors():
            show(match.game, match.players, match.config, device, envs=num_envs, **options)


def main() -> None:
    """Runs the command."""
    app(prog_name="gpuzoo")
