"""Tests take games as arguments and run for each one: a new folder in gpuzoo/envs brings its tests with it.

``game``: all; ``single_game``: of one agent; ``multi_game``: of several; ``parallel_game``: of several that act at the
same time; ``turn_game``: of several that act in turns; ``wide_game``: with more than one lane; ``published_game``: with
golden rollouts. The toys of tests/toys have what no game may have. A game that is exempt from a test says why in
`EnvDef.exempt`, under the test's name without ``test_``.

Four marks keep the cost of a further game small. A game that changed lately has all tests nevertheless (rotation.py).

- ``rotates``: costs much and seldom finds anything. One in `TURNS` of them runs each time. With ``together=True`` those
  of a file have the same turn, as they share what costs much. With ``long=True`` it takes long, as a learning run does:
  of those that run only because of what changed lately, not more than `LONG` do.
- ``one_case``: its cases are much the same to the code under test. One of them runs each time, by turns.
- ``by_kind``: is about the engine or an interface. One game of each kind has it in every fourth run, the others by
  turns.
- ``one_of_a_kind``: is about another library's wrappers. One game of each kind has it in every fourth run, the others
  never.

Games are of one kind if their agents and spaces are of the same sort: to an interface they look alike. A run takes a
fourth of the kinds. In a file that is marked ``by_kind`` or ``one_of_a_kind`` as a whole, tests without a
game always run.

A module may declare many games by one rules file: variants, maps, factorisations. The first of them stands for all in
tests by turns; with the others these run at releases (``--turn all``) and by name only.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import signal
import sys
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gymnasium import spaces
from rotation import CASES, LONG, ROOT, TURNS, Rotation, rotation
from toys.glide import Glide
from toys.herd import Herd
from toys.lamps import Lamps
from toys.nim import Nim
from toys.orchard import Orchard

import gpuzoo
from gpuzoo import EnvDef
from gpuzoo.core.declarations import games_of
from gpuzoo.core.layout import layout

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
# A shell starts what it puts into the background without Ctrl-C, which some tests are about.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

Game = type[EnvDef]

GOLDEN = Path(__file__).parent / "golden"
GAMES: list[Game] = [type(gpuzoo.get(env_id)) for env_id in gpuzoo.ids()]
TOYS: list[Game] = [Glide, Herd, Lamps, Nim, Orchard]


def wide(game: Game) -> bool:
    return game().lanes(game.Config()) > 1


CHOICES = {
    "game": lambda game: True,
    "single_game": lambda game: game.single(),
    "multi_game": lambda game: not game.single(),
    "parallel_game": lambda game: not game.single() and game.turn is None,
    "turn_game": lambda game: game.turn is not None,
    "wide_game": wide,
    "registered_game": lambda game: game in GAMES,
    "published_game": lambda game: (GOLDEN / f"{game.id}.json").exists(),
}


@functools.cache
def kind(game: Game) -> Hashable:
    """What games have in common that look alike from outside."""
    lay = layout(game(), game.Config())

    def sorts(by_group: dict[str, spaces.Space[Any]]) -> Hashable:
        return frozenset((type(space), len(space.shape or ()), space.dtype) for space in by_group.values())

    numbers = lay.agents > 1, len(lay.groups) > 1
    return (
        game.single(),
        game.turn is None,
        game.action_mask,
        *numbers,
        sorts(lay.observation_spaces),
        sorts(lay.action_spaces),
    )


@functools.cache
def observed(game: Game) -> int:
    """How many numbers all agents observe."""
    lay = layout(game(), game.Config())
    return sum(count * math.prod(lay.observation_spaces[group].shape or ()) for group, count in lay.groups.items())


def first_of_their_kind(games: list[Game]) -> set[Game]:
    # Packed rules take longest to compile, and have tests of their own. Large bodies and crowds take longest to test.
    order = sorted(games, key=lambda game: (game.packed, observed(game) if game.packed else observed(game) // 1000))
    return set({kind(game): game for game in reversed(order)}.values())


FIRST = first_of_their_kind([*GAMES, *TOYS])
#: games with the rules file of another one, which their module declares first
ALIKE = {other for game in GAMES for other in games_of(sys.modules[game.__module__])[1:]}


def one_of_a_kind(games: list[Game], chosen: Rotation) -> list[Game]:
    """One game of each kind that has its turn, and those that changed lately."""
    first = first_of_their_kind(games)
    first = {game for game in first if chosen.comes_for_kind(game.id)} or first
    return [game for game in games if game in first or (game.__module__ in chosen.names and game not in ALIKE)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name, chosen in CHOICES.items():
        if name in metafunc.fixturenames:
            games = [game for game in getattr(metafunc.module, "ONLY", (*GAMES, *TOYS)) if chosen(game)]
            on_gpu = metafunc.definition.get_closest_marker("gpu")
            if on_gpu and cuda_missing():
                games = games[:1]  # to be skipped
            if metafunc.definition.get_closest_marker("one_of_a_kind"):
                games = one_of_a_kind(games, metafunc.config.stash[ROTATION])
            marks = marks_on_gpu if on_gpu else lambda game: []
            metafunc.parametrize(name, [pytest.param(game, id=game.id, marks=marks(game)) for game in games])


def marks_on_gpu(game: Game) -> list[pytest.MarkDecorator]:
    """For scripts/gpu.sh: one process has all tests of a game and compiles it once; packed rules take longest."""
    return [pytest.mark.xdist_group(game.id), *([pytest.mark.packed] if game.packed else [])]


# ---- which tests run ----

ROTATION = pytest.StashKey[Rotation]()
COST = pytest.StashKey[float]()
#: seconds for a test that is marked as costly; pyproject.toml has the limit of all others
TIMEOUT = 900
#: classes of tests that run by turns
BY_TURNS = ("rotates", "one_case", "first of a kind", "by_kind")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--turn", metavar="N", help=f"which costly tests run: 0 to {TURNS - 1}, or all (tests/rotation.py)"
    )


def pytest_configure(config: pytest.Config) -> None:
    # A worker of pytest-xdist is told: all must collect the same tests, and files may change meanwhile.
    told = getattr(config, "workerinput", {}).get("rotation")
    try:
        config.stash[ROTATION] = Rotation(**told) if told else rotation(config.getoption("turn"))
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["rotation"] = dataclasses.asdict(node.config.stash[ROTATION])


def pytest_report_header(config: pytest.Config) -> str:
    return str(config.stash[ROTATION])


def arguments(item: pytest.Item) -> dict[str, Any]:
    return item.callspec.params if hasattr(item, "callspec") else {}


def game_of(item: pytest.Item) -> Game | None:
    params = arguments(item)
    return next((params[name] for name in CHOICES if name in params), None)


def how_often(item: pytest.Item) -> str:
    """A test's class: always, first of a kind, by_kind, one_of_a_kind, one_case, rotates."""
    game = game_of(item)
    for mark in ("rotates", "one_case"):
        if item.get_closest_marker(mark):
            return mark
    if game is None:
        return "always"
    if item.get_closest_marker("by_kind"):
        return "first of a kind" if game in FIRST else "by_kind"
    return "one_of_a_kind" if item.get_closest_marker("one_of_a_kind") else "always"


def function_of(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def is_called(item: pytest.Item) -> bool:
    """Whether the command line has its name."""
    return any("::" in word and item.nodeid.startswith(word) for word in item.config.args)


def has_its_turn(item: pytest.Item, chosen: Rotation) -> bool:
    game = game_of(item)
    if game is not None and how_often(item) == "first of a kind":
        return chosen.comes_for_kind(game.id)
    if game in ALIKE:
        return False
    mark = item.get_closest_marker("rotates")
    name = item.nodeid.partition("::")[0] if mark and mark.kwargs.get("together") else item.nodeid
    return chosen.comes(name)


def is_about_a_change(item: pytest.Item, chosen: Rotation) -> bool:
    """Whether what a test is about changed lately: its game, or its own file, or a page or program that it is given."""
    if game := game_of(item):
        return game.__module__ in chosen.names and game not in ALIKE
    given = [value for value in arguments(item).values() if isinstance(value, Path)]
    own = item.path.relative_to(ROOT).as_posix() in chosen.files
    return own or chosen.changed(*(given or [item.path]))


def first_cases(items: list[pytest.Item], most: int, chosen: Rotation) -> list[pytest.Item]:
    """Of each function's cases those that are first in this turn."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in sorted(items, key=lambda item: chosen.order(item.nodeid)):
        cases.setdefault(function_of(item), []).append(item)
    return [item for of_one in cases.values() for item in of_one[:most]]


def by_turns(items: list[pytest.Item], chosen: Rotation) -> set[str]:
    """Ids of those tests by turns that run: it is their turn, or what they are about changed lately."""
    if chosen.turn is None:
        return {item.nodeid for item in items}
    one = [item for item in items if how_often(item) == "one_case"]
    turn = [item for item in items if how_often(item) != "one_case" and has_its_turn(item, chosen)]
    runs = {item.nodeid for item in [*filter(is_called, items), *turn, *first_cases(one, 1, chosen)]}

    changed = [item for item in items if item.nodeid not in runs and is_about_a_change(item, chosen)]
    long = [item for item in changed if (mark := item.get_closest_marker("rotates")) and mark.kwargs.get("long")]
    short = [item for item in changed if item not in long]
    games = [item for item in short if game_of(item)]
    others = first_cases([item for item in short if not game_of(item)], CASES, chosen)
    long = sorted(long, key=lambda item: chosen.order(item.nodeid))[:LONG]
    return runs | {item.nodeid for item in [*games, *others, *long]}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    missing, chosen = cuda_missing(), config.stash[ROTATION]
    for item in items:
        if missing and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason=missing))
        if item.get_closest_marker("rotates") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(TIMEOUT))
    costly = [item for item in items if how_often(item) in BY_TURNS]
    left = {item.nodeid for item in costly} - by_turns(costly, chosen)
    # Golden rollouts compile the games' programs. They come first, so that this counts as no other test's cost.
    taken = [item for item in items if item.nodeid not in left]
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left])
    items[:] = sorted(taken, key=lambda item: item.path.name != "test_golden.py")


# ---- what a test costs, for scripts/test_costs.py ----


def cpu_seconds() -> float:
    """Of this process and of those that it waited for."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    item.stash[COST] = cpu_seconds()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    try:
        return (yield)
    finally:
        game = game_of(item)
        item.user_properties += [
            ("cpu", f"{cpu_seconds() - item.stash[COST]:.3f}"),
            ("runs", how_often(item)),
            ("complete", str(item.config.stash[ROTATION].turn is None)),
            *([("game", game.id), ("agents", "one" if game.single() else "several")] if game else []),
        ]


@pytest.fixture(autouse=True)
def _exempt(request: pytest.FixtureRequest) -> None:
    values = getattr(getattr(request.node, "callspec", None), "params", {})
    for name in CHOICES:
        game = values.get(name)
        test = values.get("check", request.node.originalname.removeprefix("test_"))
        if game is not None and test in game.exempt:
            pytest.skip(f"{game.id} is exempt: {game.exempt[test]}")


@functools.cache
def cuda_missing() -> str:
    """Why nothing can run on a GPU here, or nothing."""
    from gpuzoo.core.backend_cuda import available

    return "" if available() else "no GPU, or no CuPy"
