"""Tests take games as arguments and run for each one: a new folder in gpuzoo/envs brings its tests with it.

``game``: all; ``single_game``: of one agent; ``multi_game``: of several; ``parallel_game``: of several that act at the
same time; ``turn_game``: of several that act in turns; ``wide_game``: with more than one lane. The toys of tests/toys
have what no game may have. A game that is exempt from a test says why in `EnvDef.exempt`, under the test's name without
``test_``.

A file of tests that has ``ONE_OF_A_KIND = True`` takes one game of each kind: to games whose agents and spaces are of
the same sort a library's wrapper does the same.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Hashable
from typing import Any

import pytest
from gymnasium import spaces
from toys.glide import Glide
from toys.herd import Herd
from toys.lamps import Lamps
from toys.nim import Nim
from toys.orchard import Orchard

import gpuzoo
from gpuzoo import EnvDef
from gpuzoo.core.definition import layout

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
# A shell starts what it puts into the background without Ctrl-C, which some tests are about.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

Game = type[EnvDef]

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
}


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


def one_of_a_kind(games: list[Game]) -> list[Game]:
    return list({kind(game): game for game in reversed(games)}.values())[::-1]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name, chosen in CHOICES.items():
        if name in metafunc.fixturenames:
            games = [game for game in (*GAMES, *TOYS) if chosen(game)]
            if getattr(metafunc.module, "ONE_OF_A_KIND", False):
                games = one_of_a_kind(games)
            metafunc.parametrize(name, games, ids=[game.id for game in games])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-golden", action="store_true", help="write the golden rollouts that do not exist yet")


@pytest.fixture(autouse=True)
def _exempt(request: pytest.FixtureRequest) -> None:
    values = getattr(getattr(request.node, "callspec", None), "params", {})
    for name in CHOICES:
        game = values.get(name)
        test = values.get("check", request.node.originalname.removeprefix("test_"))
        if game is not None and test in game.exempt:
            pytest.skip(f"{game.id} is exempt: {game.exempt[test]}")


def cuda_missing() -> str:
    """Why nothing can run on a GPU here, or nothing."""
    from gpuzoo.core.backend_cuda import available

    return "" if available() else "no GPU, or no CuPy"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = cuda_missing()
    for item in items:
        if missing and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason=missing))
