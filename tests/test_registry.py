"""The registry: what is in the folders is in every list, and nothing else is."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import gymnasium
import pytest
from conftest import GAMES, TOYS
from toys.nim import Nim

import gpuzoo
from gpuzoo import registry, testing
from gpuzoo.core.layout import layout as layout_of
from gpuzoo.core.layout import resolve_fields
from gpuzoo.core.values import config_types

ENVS = Path(gpuzoo.__file__).parent / "envs"
TESTS = Path(__file__).parent


def test_every_folder_is_registered():
    """A folder may have rules that several games include, and those of robots that users describe."""
    folders = {p.parent for p in ENVS.glob("*/*.cuh") if "GZ void step(Env e)" in p.read_text()}
    assert {game.source().parent for game in GAMES} == folders
    assert all(game.source().is_file() for game in GAMES)
    assert gpuzoo.ids() == sorted(game.id for game in GAMES)


def test_ids_in_all_spellings(registered_game):
    name = registered_game.id
    for spelling in (name, f"gpuzoo/{name}", f"gpuzoo:gpuzoo/{name}", registered_game, registered_game()):
        assert type(gpuzoo.get(spelling)) is registered_game
    assert gpuzoo.get(re.sub(r"-v\d+$", "", name)).id.startswith(re.sub(r"-v\d+$", "", name))


def test_the_name_of_its_reference(registered_game):
    """It is understood, or, where several games have one reference, answered with their ids."""
    name = registry._FACTS[registered_game.id].original
    if not name or name in gpuzoo.ids():
        return
    others = [i for i, facts in registry._FACTS.items() if facts.original == name]
    if others == [registered_game.id]:
        assert isinstance(gpuzoo.get(name), registered_game)
    else:
        with pytest.raises(ValueError, match=registered_game.id):
            gpuzoo.get(name)


@pytest.mark.parametrize(
    ("name", "id_", "config"),
    [
        ("simple_spread_v3", "SimpleSpread-v0", {}),
        ("MPE_simple_spread_v3", "SimpleSpread-v0", {}),
        ("simple_spread", "SimpleSpread-v0", {}),
        ("connect_four_v3", "ConnectFour-v0", {}),
        ("FourRooms-misc", "FourRooms-v0", {}),
        ("rware-tiny-2ag-v2", "RobotWarehouse-v0", {"n_agents": 2, "shelf_rows": 1}),
        ("rware-small-4ag-hard-v2", "RobotWarehouse-v0", {"n_agents": 4, "request_queue_size": 2, "shelf_rows": 2}),
        ("2s3z", "SMAX-v0", {"scenario": "2s3z"}),
        ("HeuristicEnemySMAX", "SMAX-v0", {"scenario": "5m"}),
        ("rware:rware-tiny-2ag-v2", "RobotWarehouse-v0", {"n_agents": 2}),
        ("pz-mpe-simple-speaker-listener-v4", "SimpleSpeakerListener-v0", {}),
        ("minatar-space_invaders", "SpaceInvaders-MinAtar-v1", {}),
        ("MinAtar/Breakout-v1", "Breakout-MinAtar-v1", {}),
        ("go_9x9", "Go-v0", {"size": 9}),
        ("go_19x19", "Go-v0", {"size": 19}),
        ("bridge_bidding", "BridgeBidding-v0", {}),
        ("texas_holdem_v4", "TexasHoldem-v0", {}),
        ("texas_holdem_no_limit_v6", "TexasHoldemNoLimit-v0", {}),
        ("gin_rummy_v4", "GinRummy-v0", {}),
        ("hanabi_v5", "Hanabi-v0", {}),
        ("battle_v4", "MAgentBattle-v0", {}),
        ("storm", "Storm-v0", {}),
        ("TSP-v1", "TSP-v1", {}),
        (
            "Foraging-2s-10x12-3p-4f-coop-v3",
            "LevelBasedForaging-v3",
            {"rows": 10, "cols": 12, "players": 3, "sight": 2},
        ),
    ],
)
def test_names_of_other_libraries(name, id_, config):
    game = gpuzoo.get(name)
    assert game.id == id_
    assert config.items() <= vars(game.Config()).items()
    again = pickle.loads(pickle.dumps(game))
    assert type(again) is type(game) is type(gpuzoo.get(name))
    assert game.observation_space(game.Config(), next(iter(game.agents(game.Config())))).shape


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("smac_3m", "perhaps you want 'SMAX-v0'"),
        ("simple_spread_v2", "perhaps you want 'SimpleSpread-v0'"),  # other rules than those of v3
        ("mamujoco_v1", "'MaAnt-4x2-v1' or .*'MaHopper-3x1-v1'"),
        ("rware-huge-v2", "'rware-huge-v2' is no id of rware"),
        ("SimpelSpread-v0", "did you mean 'SimpleSpread-v0'"),
        ("leduc_holdem_v4", "perhaps you want 'LeducHoldem-v0'"),  # other rules
        ("go_v5", "perhaps you want 'Go-v0'"),
        ("ALE/Breakout-v5", "perhaps you want 'Breakout-MinAtar-v1'"),
        ("corridor", "perhaps you want 'SMAX-v0'"),
        ("ant_4x2", "did you mean 'MaAnt-4x2-v1'"),
        ("no_such_thing_v9", "no game 'no_such_thing_v9'; `gpuzoo list` shows all"),
    ],
)
def test_names_that_come_near(name, answer):
    with pytest.raises(ValueError, match=answer):
        gpuzoo.get(name)


def test_gymnasium_says_what_to_take_for_several_agents():
    with pytest.raises(ValueError, match=r"several agents: take gpuzoo\.parallel_env.*gymnasium\.make_vec"):
        gymnasium.make("gpuzoo/SimpleSpread-v0")


def test_gymnasium_has_it(registered_game):
    spec = gymnasium.spec(f"gpuzoo/{registered_game.id}")
    assert spec.max_episode_steps == registered_game.max_episode_steps
    assert spec.entry_point == "gpuzoo.interfaces.single:make_single"
    assert spec.vector_entry_point == "gpuzoo.interfaces.vector:VectorEnv"


def test_envs_as_modules(registered_game):
    import gpuzoo.envs

    module = getattr(gpuzoo.envs, registered_game.module_name())
    assert hasattr(module, "parallel_env") == (registered_game.turn is None)
    with pytest.raises(AttributeError, match="has no attribute 'nothing_v0'"):
        _ = gpuzoo.envs.nothing_v0


def test_register_and_find_again(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    monkeypatch.setattr(registry, "_FACTS", dict(registry._FACTS))
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


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("SimpleSpred", "SimpleSpread-v0"), ("ConectFour-v0", "ConnectFour-v0"), ("Warehouse", "RobotWarehouse-")],
)
def test_the_nearest_name_is_suggested_first(typed, meant):
    with pytest.raises(ValueError, match=f"there is no game '{typed}'; did you mean '{meant}"):
        gpuzoo.get(typed)
