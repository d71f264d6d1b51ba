"""The games by id: those in ``gpuzoo/envs``, and users' own; rows in Gymnasium's and PettingZoo's registries.

A game of the collection is imported when it is first asked for. Until then its row holds the name of its module, and
what the other registries want to know comes from its text (see `core.declarations`).
"""

from __future__ import annotations

import difflib
import functools
import importlib
import re
from pathlib import Path

import gymnasium

from gpuzoo.core.declarations import Facts, games_of, read
from gpuzoo.core.definition import EnvDef, check_class
from gpuzoo.core.variants import configured

#: id -> the game, or the name of the module that declares it
_REGISTRY: dict[str, type[EnvDef] | str] = {}
#: id -> what its declaration says
_FACTS: dict[str, Facts] = {}


def register(env: type[EnvDef]) -> type[EnvDef]:
    """Adds a game: to `gpuzoo.make`, `gymnasium.make_vec` and `pettingzoo.make`. Usable as a class decorator.

    Raises:
        ValueError: the declaration is faulty, or another game already has the id.
    """
    games = (env, *env.variant_classes)
    for game in games:
        check_class(game())
        taken = _REGISTRY.get(game.id, game)
        if taken not in (game, game.__module__):
            name = taken if isinstance(taken, str) else taken.__name__
            raise ValueError(f"the id {game.id!r} is taken by {name}: choose another name or version.")
    for game in games:
        new = game.id not in _REGISTRY
        _REGISTRY[game.id] = game
        if new:
            _tell_others(Facts.of(game))
    return env


def _tell_others(facts: Facts) -> None:
    _FACTS[facts.id] = facts
    _register_gymnasium(facts)
    _register_pettingzoo(facts)


def _register_gymnasium(env: Facts) -> None:
    gymnasium.register(
        f"gpuzoo/{env.id}",
        entry_point="gpuzoo.interfaces.single:make_single",  # which says what to take for several agents
        vector_entry_point="gpuzoo.interfaces.vector:VectorEnv",
        max_episode_steps=env.max_episode_steps,
        reward_threshold=env.reward_threshold,
        disable_env_checker=True,
        kwargs={"env": env.id},
    )


def _register_pettingzoo(env: Facts) -> None:
    if env.single:
        return
    try:
        from pettingzoo import register as pettingzoo_register
    except ImportError:  # before PettingZoo 1.27 there was no registry
        return
    kwargs = {"env": env.id}
    if env.turn is None:
        pettingzoo_register(
            "parallel",
            f"gpuzoo/{env.id}",
            "gpuzoo.interfaces.parallel:parallel_env",
            max_cycles=env.max_episode_steps,
            kwargs=kwargs,
        )
    pettingzoo_register(
        "aec", f"gpuzoo/{env.id}", "gpuzoo.interfaces.aec:aec_env", max_cycles=env.max_episode_steps, kwargs=kwargs
    )


def ids() -> list[str]:
    """Ids of all games."""
    return sorted(_REGISTRY)


def module_of(env_id: str) -> str:
    """Name of the module that declares a game, which is not imported for this."""
    found = _REGISTRY[env_id]
    return found if isinstance(found, str) else found.__module__


def get(env: str | EnvDef | type[EnvDef]) -> EnvDef:
    """The game with an id: ``"CartPole-v1"``, ``"gpuzoo/CartPole-v1"``, or without version for the newest one.

    Names of other libraries work, too: ``"simple_spread_v3"`` is SimpleSpread-v0, and
    ``"rware-tiny-4ag-v2"`` is RobotWarehouse-v0 with four robots by default. A declaration, registered or not, is
    returned as it is.

    Raises:
        ValueError: there is no such game. The message names close matches.
    """
    if isinstance(env, EnvDef):
        return env
    if isinstance(env, type) and issubclass(env, EnvDef):
        return env()
    if not isinstance(env, str):
        raise TypeError(f"a game is given by its id or its EnvDef, not by {env!r}.")
    name = env.removeprefix("gpuzoo:").removeprefix("gpuzoo/")
    if name in _REGISTRY:
        return _imported(name)()
    base = re.sub(r"-v\d+$", "", name)
    versions = sorted(
        (i for i in _REGISTRY if re.sub(r"-v\d+$", "", i) == base), key=lambda i: int(i.rsplit("-v", 1)[1])
    )
    if versions and base == name:
        return _imported(versions[-1])()
    if versions and not any(name == facts.original for facts in _FACTS.values()):
        raise ValueError(f"there is no version {name!r} of {base}; use {versions[-1]!r}.")
    return _known_elsewhere(name)


def _known_elsewhere(name: str) -> EnvDef:
    """The game that another library calls so.

    Raises:
        ValueError: there is none, or several; the message names what comes near.
    """
    given, name = name, _without_library(name)
    plain, versioned = _plain(name), bool(_VERSION.search(name))
    exact = [i for i, facts in _FACTS.items() if name == facts.original or _matches(facts.aliases, name)]
    alike = [i for i in _FACTS if _plain(i) == plain]
    found = exact or ([] if versioned else alike)
    if len(found) == 1:
        game = _imported(found[0])
        changes = game.config_of(name) if _matches(game.aliases, name) else {}
        return _configured(game, name)() if changes else game()  # type: ignore[arg-type]
    near = found or alike or [i for i, facts in _FACTS.items() if _matches(facts.similar, name)]
    if near:
        raise ValueError(f"there is no game {given!r}; perhaps you want {' or '.join(map(repr, sorted(near)))}.")
    close = _close(plain)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "`gpuzoo list` shows all."
    raise ValueError(f"there is no game {given!r}; {hint}")


def _without_library(name: str) -> str:
    """A name without the module that Gymnasium imports for it (``rware:``), and as EPyMARL writes those of MPE2."""
    name = re.sub(r"^[A-Za-z_][\w.]*:", "", name)
    epymarl = re.fullmatch(r"pz-mpe-([-\w]+)", name)
    return epymarl[1].replace("-", "_") if epymarl else name


def _close(plain: str) -> list[str]:
    """Games with nearly this name, the nearest first."""
    names = {i: _plain(i) for i in _REGISTRY}

    def ratio_to(other: str) -> float:
        inside = len(other) > 3 and len(plain) > 3 and (other in plain or plain in other)
        return max(difflib.SequenceMatcher(None, plain, other).ratio(), 0.8 if inside else 0.0)

    ratio = {i: ratio_to(other) for i, other in names.items()}
    best = sorted(names, key=lambda i: -ratio[i])[:3]
    return [i for i in best if ratio[i] >= 0.6 and ratio[i] > 0.7 * ratio[best[0]]]


_VERSION = re.compile(r"[-_]v\d+$|/\d+$")


def _plain(name: str) -> str:
    return re.sub(r"\W|_", "", _VERSION.sub("", name)).lower()


def _matches(patterns: tuple[str, ...], name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns)


@functools.cache
def _configured(game: type[EnvDef], alias: str) -> type[EnvDef]:
    """The game with the defaults that one of its aliases stands for. Its id stays the game's."""
    made = configured(game, game.id, game.config_of(alias), alias)
    made.__reduce__ = lambda self: (get, (alias,))  # type: ignore[method-assign]
    return made


def _imported(env_id: str) -> type[EnvDef]:
    found = _REGISTRY[env_id]
    if isinstance(found, type):
        return found
    for game in games_of(importlib.import_module(found)):
        register(game)
    imported = _REGISTRY[env_id]
    assert isinstance(imported, type), f"{found} declares no {env_id}, though its text says so."
    return imported


def _discover(root: Path, package: str) -> None:
    """Enters the games of a collection, whose text tells all that is asked for; else its module is imported."""
    for module, games in read(root, package):
        if games is None:
            for game in games_of(importlib.import_module(module)):
                register(game)
            continue
        for facts in games:
            if facts.id in _REGISTRY:
                raise ValueError(f"the id {facts.id!r} is declared twice, in {_REGISTRY[facts.id]} and {module}.")
            _REGISTRY[facts.id] = module
            _tell_others(facts)


_discover(Path(__file__).parent / "envs", "gpuzoo.envs")
