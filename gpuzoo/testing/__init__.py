"""Checks that an env keeps its promises, for the games of this collection and for anybody else's.

`check_env` takes a game and runs every check of `CHECKS` on the CPU, `check_vector_env` takes any
``gymnasium.vector.VectorEnv``, and `check_parallel_env` and `strong_seed_test` take a function that makes a PettingZoo
``ParallelEnv``. All of them raise AssertionError with one sentence that says what is wrong and where::

    from gpuzoo.testing import check_env

    check_env(MyGame)

A game that cannot keep a promise names the check and the reason in `EnvDef.exempt`.
"""

from __future__ import annotations

from typing import Any

from gpuzoo import registry
from gpuzoo.testing import bits, episodes, spaces  # noqa: F401 (they fill CHECKS)
from gpuzoo.testing.interfaces import check_parallel_env, check_vector_env, strong_seed_test
from gpuzoo.testing.tools import CHECKS, EnvLike

__all__ = ["CHECKS", "check_env", "check_parallel_env", "check_vector_env", "strong_seed_test"]


def check_env(env: EnvLike, **config: Any) -> None:
    """Runs all `CHECKS` on a game, except those that it is exempt from.

    Args:
        env: id or declaration.
        **config: the game's parameters.

    Raises:
        AssertionError: a check fails; the message names it.
    """
    definition = registry.get(env)
    for name, check in CHECKS.items():
        if name in definition.exempt:
            continue
        try:
            check(definition, **config)
        except AssertionError as error:
            raise AssertionError(f"{definition.id} fails {name}: {error}") from error
