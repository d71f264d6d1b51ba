"""The registry: what is in the folders is in every list, and nothing else is."""

from __future__ import annotations

import re
from pathlib import Path

import gymnasium
import pytest
from conftest import GAMES, TOYS
from toys.nim import Nim

import gpuzoo
from gpuzoo import registry, testing
from gpuzoo.core.definition import config_types, resolve_fields
from gpuzoo.core.definition import layout as layout_of

ENVS = Path(gpuzoo.__file__).parent / "envs"
TESTS = Path(__file__).parent


def test_every_folder_is_registered():
    """A folder may have further rules, such as those of robots that users describe."""
    files = {p for p in ENVS.glob("*/*.cuh") if "GZ void step(Env e)" in p.read_text()}
    assert {game.source() for game in GAMES} <= files
    assert {game.source().parent for game in GAMES} == {p.parent for p in files}
    assert gpuzoo.ids() == sorted(game.id for game in GAMES)


def test_ids_in_all_spellings(registered_game):
    name = registered_game.id
    for spelling in (name, f"gpuzoo/{name}", f"gpuzoo:gpuzoo/{name}", registered_game, registered_game()):
        assert type(gpuzoo.get(spelling)) is registered_game
    assert gpuzoo.get(re.sub(r"-v\d+$", "", name)).id.startswith(re.sub(r"-v\d+$", "", name))


def test_gymnasium_has_it(registered_game):
    spec = gymnasium.spec(f"gpuzoo/{registered_game.id}")
    assert spec.max_episode_steps == registered_game.max_episode_steps
    assert (spec.entry_point is not None) == registered_game.single()
    assert spec.vector_entry_point == "gpuzoo.interfaces.vector:VectorEnv"


def test_envs_as_modules(registered_game):
    import gpuzoo.envs

    module = getattr(gpuzoo.envs, registered_game.module_name())
    assert hasattr(module, "parallel_env") == (registered_game.turn is None)
    with pytest.raises(AttributeError, match="has no attribute 'nothing_v0'"):
        _ = gpuzoo.envs.nothing_v0


def test_register_and_find_again(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    for name in ("gymnasium", "pettingzoo"):
        monkeypatch.setattr(registry, f"_register_{name}", lambda env: None)
    versions = [
        type("Nim", (Nim,), {"id": f"Nim-v{k}", "source": classmethod(lambda cls: Nim.source())}) for k in (2, 10)
    ]
    for game in versions:
        assert gpuzoo.register(game) is game
        assert gpuzoo.register(game) is game, "the same game again is no fault"
    assert type(gpuzoo.get("Nim")) is versions[1]
    with pytest.raises(ValueError, match="there is no version 'Nim-v3' of Nim; use 'Nim-v10'"):
        gpuzoo.get("Nim-v3")


def test_declaration_is_complete(game):
    """What the documentation is made from."""
    env, cfg = game(), game.Config()
    assert game.__doc__
    assert game.reference or game.exempt["reference"]
    lay = layout_of(env, cfg)
    assert lay.agents >= 1
    if game in TOYS:
        return
    assert game.max_episode_steps is None or game.max_episode_steps > 0
    for name, field in resolve_fields(env, cfg, lay).items():
        assert field.doc, f"field {name} has no line of documentation"
    for name in config_types(game.Config):
        assert game.Config.__dataclass_fields__[name].metadata.get("doc"), f"parameter {name} has no documentation"


def test_agents_are_all_agents_where_a_group_is_called_agent():
    env = gpuzoo.get("SimpleTag-v0")
    cfg = env.Config()
    assert env.agents(cfg) == {"adversary": 3, "agent": 1}
    assert resolve_fields(env, cfg, layout_of(env, cfg))["position"].shape == (4, 2)


def test_exemptions_name_tests_and_give_reasons(game):
    names = {m for path in TESTS.glob("test_*.py") for m in re.findall(r"def test_(\w+)", path.read_text())}
    for name, reason in game.exempt.items():
        assert name in {"reference", *testing.CHECKS} | names, f"there is no test {name!r} to be exempt from"
        assert len(reason) > 10


def test_configuration_cannot_change(game):
    cfg = game.Config()
    for name in config_types(game.Config):
        with pytest.raises(AttributeError):
            setattr(cfg, name, 1)


def test_spaces_do_not_depend_on_the_call(game):
    env, cfg = game(), game.Config()
    for group in env.agents(cfg):
        assert env.observation_space(cfg, group) == env.observation_space(cfg, group)
        assert env.action_space(cfg, group) == env.action_space(cfg, group)
