"""``gpuzoo train``: which trainers there are, and the words that they get."""

from __future__ import annotations

import contextlib
import itertools
import json
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from gpuzoo.tools.commands import common
from gpuzoo.tools.commands.options import dotted

TRAINERS = ("ppo", "a2c", "dagger")


def algorithms() -> dict[str, str]:
    """Modules of ``gpuzoo.baselines`` by the name that ``--algorithm`` takes: the trainers, and algorithms in one file.

    A file that is called like a trainer is ``simple.NAME``.
    """
    files = sorted(path.stem for path in (Path(__file__).parents[2] / "baselines" / "simple").glob("[!_]*.py"))
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


def train(
    context: typer.Context,
    algorithm: Annotated[str, typer.Option(metavar="NAME", help="What to train with; --help names all.")] = "ppo",
) -> None:
    """Train agents: gpuzoo train ID, with the options that gpuzoo train ID --help shows."""
    from gpuzoo.core.suggestions import unknown

    known, words = algorithms(), context.args
    if algorithm not in known:
        common.fail(unknown("there is no algorithm", algorithm, known), 2)
    if algorithm not in TRAINERS:
        common.require("training", "torch")
        with common.errors(), _as_argv(f"gpuzoo train --algorithm {algorithm}", *config_as_json(words)):
            name = f"gpuzoo.baselines.{known[algorithm]}"
            sys.modules.pop(name, None)  # runpy warns where a program has imported it
            runpy.run_module(name, run_name="__main__")
        return
    common.require("training", "torch", "matplotlib", "safetensors", "tensorboard")
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
        with common.errors():
            args.check()
        from gpuzoo.baselines import run  # only now: it imports torch, which takes longer than all of the above

        run.main(*run.algorithm(algorithm), words)


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
