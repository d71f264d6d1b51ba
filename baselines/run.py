"""A whole run of any algorithm: progress, log, curves, checkpoints, evaluations, and the command line."""

from __future__ import annotations

import dataclasses
import gc
import importlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gpuzoo.core.backend_cpu import available_threads

from .executors import choose
from .report import plots
from .report.evaluation import evaluate
from .report.health import Health, facts_of
from .report.log import Log, read
from .report.progress import Display
from .report.tournament import tournament
from .train import distributed
from .train.command import parse
from .train.executor import Executor
from .train.networks import Policy
from .train.sweep import parse_sweep
from .train.trainer import Args, Trainer

CHECKPOINT = "checkpoint.safetensors"


def algorithm(name: str) -> tuple[type[Trainer], type[Args]]:
    """The trainer and the options of an algorithm: those in the module of that name."""
    module = importlib.import_module(f".{name}", __package__)
    own = [x for x in vars(module).values() if getattr(x, "__module__", "") == module.__name__]
    (trainer,) = (x for x in own if isinstance(x, type) and issubclass(x, Trainer))
    return trainer, module.Args


@dataclasses.dataclass
class Result:
    """The results of a run.

    Attributes:
        policies: by group.
        rows: the log, a dictionary for each iteration, with the mean over the members.
        returns: by group, (members,): mean return over the last tenth of the run.
        seconds: how long it took, without compiling.
        steps_per_second: steps of all envs of all members together.
        checkpoint: the last one, or None without ``out``.
    """

    policies: dict[str, Policy]
    rows: list[dict[str, float]]
    returns: dict[str, np.ndarray[Any, Any]]
    seconds: float
    steps_per_second: float
    checkpoint: Path | None


class Run:
    """The files and the progress of a run.

    Args:
        trainer: what runs.
        quiet: show no progress.
    """

    def __init__(self, trainer: Trainer, quiet: bool) -> None:
        args = trainer.args
        self.trainer, self.args, self.name = trainer, args, trainer.simulator.env.id
        self.folder = Path(args.out) if args.out and distributed.rank() == 0 else None
        self.checkpoint = Path(args.out) / CHECKPOINT if args.out else None
        self.members: list[dict[str, np.ndarray[Any, Any]]] = []  # returns of each member, an entry for each iteration
        self.before = 0.0  # seconds of the run that this one goes on from
        former = trainer.executor.name
        rows: list[dict[str, float]] = []
        found = args.resume and self.checkpoint is not None and self.checkpoint.is_file()
        if distributed.any_of(found) and not found:
            raise ValueError(f"only some of the processes see {self.checkpoint}: all need the folder to resume.")
        if found and self.checkpoint is not None:
            told = trainer.restore(self.checkpoint)
            self.before, former = told["seconds"], told.get("executor", former)
            if self.folder:
                rows = read(self.folder, trainer.steps)
                self.members = load_members(self.folder, len(rows))
        executor = trainer.executor.describe()
        if former != trainer.executor.name:
            executor += f" from iteration {trainer.iteration + 1} on, {former} before"
        about = args.about() | {"executor": executor}
        self.log = Log(self.folder, about, track=args.track and distributed.rank() == 0, rows=rows)
        self.health = Health(facts_of(trainer))
        self.health.again(rows)
        self.start = self.saved = time.perf_counter()
        hidden = quiet or distributed.rank() != 0
        title = f"{self.name} on {trainer.device}, executor: {executor}"
        self.display = Display(self.name, args.iterations, trainer.iteration, quiet=hidden, title=title)
        self.latest: dict[str, float] = {}
        for name, player in trainer.rollout.players.items():
            if player.policy.why and not hidden:
                print(f"{name}: {player.policy.why}.", flush=True)

    @property
    def seconds(self) -> float:
        """Of the whole run."""
        return self.before + time.perf_counter() - self.start

    def note(self, numbers: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Logs an iteration and shows it."""
        trainer, seconds = self.trainer, self.seconds
        speed = trainer.steps * self.args.population / seconds
        row = {"iteration": trainer.iteration, "steps": trainer.steps, "seconds": seconds, "speed": speed}
        table = np.stack(list(numbers.values()))
        finite = np.isfinite(table)
        means = np.where(finite, table, 0).sum(1) / np.maximum(finite.sum(1), 1)
        row |= {k: m for k, m, any_ in zip(numbers, means.tolist(), finite.any(1).tolist(), strict=True) if any_}
        self.log.write(row)
        chosen = (learner.normalization.news() for learner in trainer.learners.values())
        for text in (*filter(None, chosen), *self.health.look(self.log.rows)):
            self.log.note(text, trainer.steps)
            self.display.warn(text)
        if self.args.population > 1:
            self.members.append({k[7:]: v for k, v in numbers.items() if k.startswith("return/")})
        self.latest |= {k[7:]: v for k, v in row.items() if k.startswith("return/")}
        self.display.update(trainer.iteration, speed, self.latest)

    def keep(self) -> None:
        """Writes log, checkpoint and curves; all processes take part."""
        self.saved = time.perf_counter()
        if self.checkpoint is None:
            return
        if self.folder and self.members:
            save_members(self.folder, self.members)
        self.log.flush()
        self.trainer.save(self.checkpoint, seconds=self.seconds)
        if self.folder and self.log.rows:
            self.draw()

    def draw(self) -> None:
        """The learning curve, and the members' curves."""
        assert self.folder is not None
        path = self.folder / "learning_curve.png"
        if not self.members:
            plots.learning_curve(self.log.rows, self.name, path)
            return
        steps = np.array([row["steps"] for row in self.log.rows])
        plots.population_curves(steps, stacked(self.members), self.name, path)
        if self.args.sweep:
            values = {k: np.array(v) for k, v in parse_sweep(self.args).items()}
            plots.sweep_plot(values, final_returns(self.members), self.folder / "sweep.png")

    def evaluate(self) -> dict[str, np.ndarray[Any, Any]]:
        """Mean returns of each member, and rates of outcomes, in episodes on seeds that training does not use."""
        args = self.args
        found: dict[str, np.ndarray[Any, Any]] = {}
        for k in range(args.population):
            players: dict[str, Policy | None] = dict(self.trainer.policies)
            seen = evaluate(args.game, players, args.eval_episodes, args.seed + k, args.config,
                            str(self.trainer.device), member=k)  # fmt: skip
            means = {group: float(returns.mean()) for group, returns in seen.returns.items()}
            for name, mean in (means | seen.rates).items():
                found.setdefault(f"eval/{name}", np.zeros(args.population))[k] = mean
        return found


def stacked(members: Sequence[Mapping[str, np.ndarray[Any, Any]]]) -> dict[str, np.ndarray[Any, Any]]:
    """By group, (iterations, members)."""
    return {group: np.stack([m[group] for m in members]) for group in members[0]}


def final_returns(members: Sequence[Mapping[str, np.ndarray[Any, Any]]]) -> dict[str, np.ndarray[Any, Any]]:
    """By group, (members,): the mean over the last tenth of the run, NaN where no episode ended."""
    last = stacked(members[-max(1, len(members) // 10) :])
    with np.errstate(invalid="ignore"):
        return {g: np.nansum(v, 0) / np.isfinite(v).sum(0) for g, v in last.items()}


def save_members(folder: Path, members: Sequence[Mapping[str, np.ndarray[Any, Any]]]) -> None:
    """``members.npz``: by group, the returns (iterations, members)."""
    from gpuzoo.core.files import replacing

    with replacing(folder / "members.npz") as file:
        np.savez_compressed(file, **stacked(members))  # type: ignore[arg-type]


def load_members(folder: Path, iterations: int) -> list[dict[str, np.ndarray[Any, Any]]]:
    """What `save_members` wrote, up to an iteration."""
    path = folder / "members.npz"
    if not path.is_file():
        return []
    with np.load(path) as found:
        arrays = {g: found[g][:iterations] for g in found.files}
    return [dict(zip(arrays, values, strict=True)) for values in zip(*arrays.values(), strict=True)]


def train(
    make: Callable[[Any, Executor], Trainer],
    args: Args,
    quiet: bool = False,
    on_iteration: Callable[[Trainer], None] | None = None,
) -> Result:
    """A run from beginning to end, with log, learning curve and checkpoints in ``args.out`` and a progress bar.

    Args:
        make: the algorithm.
        args: the run.
        quiet: no progress bar.
        on_iteration: called with the trainer before the first iteration and after every one, also before those of a run
            that goes on: for curricula, ``trainer.iteration`` says how many are done.

    Raises:
        ValueError, TypeError: arguments that cannot work, before anything is compiled.
        FloatingPointError: a loss is not a number; the message names the last good checkpoint.
        MemoryError: too many envs or members; the message names a number that would fit.
        OSError: a checkpoint cannot be written; the one before is kept.
    """
    lay, _ = args.check()
    before = torch.get_num_threads()
    rows = args.population * args.num_envs * args.num_steps * max(lay.groups.values())
    small = rows < 1024 * args.minibatch_count()
    torch.set_num_threads(args.threads or (1 if small else available_threads()))
    trainer = make(args, choose(args.executor, args.device))
    gc.freeze()  # what is there by now is not looked through again and again
    try:
        run = Run(trainer, quiet)
        with run.display:
            if on_iteration:
                on_iteration(trainer)
            if trainer.iteration == 0:
                run.keep()
            while trainer.iteration < args.iterations:
                numbers = trainer.iterate()
                if args.eval_every and trainer.iteration % args.eval_every == 0:
                    numbers |= run.evaluate()
                if on_iteration:
                    on_iteration(trainer)
                run.note(numbers)
                if distributed.any_of(time.perf_counter() - run.saved > args.save_every):
                    run.keep()
            run.keep()
        if trainer.selfplay is not None and run.folder:
            players, iterations = trainer.selfplay.players(trainer.iteration)
            tournament(args.game, players, iterations, config=args.config, seed=args.seed).write(run.folder)
        if args.video and run.folder:
            from .report.video import film

            film(args.game, trainer.policies, run.folder / "video.gif", args.config, str(trainer.device))
    except FloatingPointError as error:
        kept = f"the last good checkpoint is {run.checkpoint}" if run.checkpoint else "give out=FOLDER to keep some"
        raise FloatingPointError(f"{error}: lower the learning rate; {kept}.") from None
    finally:
        gc.unfreeze()
        torch.set_num_threads(before)
        trainer.close()
        if "run" in locals():
            run.log.close()
    rows_, last = run.log.rows, run.log.rows[-max(1, len(run.log.rows) // 10) :]
    if run.members:
        returns = final_returns(run.members)
    else:
        found = {g: [r[f"return/{g}"] for r in last if f"return/{g}" in r] for g in trainer.policies}
        returns = {g: np.array([np.mean(v)]) for g, v in found.items() if v}
    return Result(trainer.policies, rows_, returns, run.seconds, rows_[-1]["speed"], run.checkpoint)


# ---- command line ----


def main(make: Callable[[Any, Executor], Trainer], kind: type[Args], argv: Sequence[str] | None = None) -> None:
    """Trains as the command line says."""
    args = parse(kind, argv, sys.modules[make.__module__].__doc__ or "")
    try:
        result = train(make, args)
    except (ValueError, TypeError, FloatingPointError, MemoryError, OSError, ImportError, NotImplementedError) as error:
        # what `train` raises; the last one if --video is asked of a game that does not draw itself
        sys.exit(f"error: {error}")
    finally:
        distributed.end()
    if distributed.rank() != 0:
        return
    returns = ", ".join(
        f"{group} {np.nanmedian(value):.2f}" + (f" (median of {len(value)})" if len(value) > 1 else "")
        for group, value in result.returns.items()
        if np.isfinite(value).any()
    )
    told = f"mean return {returns}" if returns else "no episode has ended in the last tenth of the run"
    print(f"{args.game}: {told}; {result.steps_per_second:,.0f} steps/s, {result.seconds:.0f} s.")
    if args.out:
        print(f"In {args.out}: learning_curve.png, progress.csv, ... Watch them: gpuzoo play {args.game} --checkpoint "
              f"{Path(args.out) / CHECKPOINT}")  # fmt: skip
