"""Names of observations and actions add up to the spaces, with the default parameters and all others that are timed."""

from __future__ import annotations

import dataclasses
import re

import pytest

import gpuzoo
from gpuzoo.core.configuration import split_config
from gpuzoo.core.definition import Config, EnvDef
from gpuzoo.core.names import action_parts, links, observation_parts
from gpuzoo.envs.coin_game.coin_game import CoinGame
from gpuzoo.envs.mujoco.hopper import Hopper


def configs(env: EnvDef) -> list[Config]:
    """The default, those of the benchmarks, and the default with each of its switches and choices the other way."""
    changes = [{}, *({k: v for k, v in one.items() if k != "num_envs"} for one in env.benchmarks.values())]
    changes += [{f.name: not f.default} for f in dataclasses.fields(env.Config) if isinstance(f.default, bool)]
    found = []
    for one in changes:
        fields = env.Config.__dataclass_fields__
        try:
            found.append(split_config(env, 1, {k: v for k, v in one.items() if k in fields})[0])
        except ValueError:  # a switch that needs another parameter
            continue
    return found


@pytest.mark.parametrize("env_id", gpuzoo.ids())
def test_names_fit_the_spaces(env_id: str) -> None:
    env = gpuzoo.get(env_id)
    for cfg in configs(env):
        for group in env.agents(cfg):
            for _, parts in (observation_parts(env, cfg, group), action_parts(env, cfg, group)):
                assert [part.first for part in parts] == [0, *(part.last + 1 for part in parts[:-1])]
                assert all(part.low <= part.high for part in parts)


@pytest.mark.parametrize("env_id", gpuzoo.ids())
def test_what_the_documentation_shows(env_id: str) -> None:
    env = gpuzoo.get(env_id)
    cfg = env.Config()
    for group in env.agents(cfg):
        assert all(
            part.name
            for _, parts in (observation_parts(env, cfg, group), action_parts(env, cfg, group))
            for part in parts
        )
    assert links(env) or "reference" in env.exempt
    assert all(re.match(r"https?://\S+$", address) for address in links(env).values())
    assert bool(env.interaction) == (not env.single())


def test_names_that_do_not_fit() -> None:
    class Short(CoinGame):
        id = "Short-v0"

        def action_names(self, cfg: object, group: str) -> dict[str, int]:
            return {"up": 1, "down": 1}

    with pytest.raises(ValueError, match="names of actions of 'player' are for 2 numbers, but the space has 5"):
        action_parts(Short(), Short.Config(), "player")


def test_channels_and_ranges() -> None:
    kind, parts = observation_parts(CoinGame(), CoinGame.Config(cnn=True), "player")
    assert (kind, len(parts)) == ("channel", 4)

    class Unnamed(Hopper):
        id = "Unnamed-v0"

        def action_names(self, cfg: object, group: str) -> dict[str, int]:
            return {}

    kind, parts = action_parts(Unnamed(), Unnamed.Config(), "agent")
    assert (kind, [(p.first, p.last, p.name, p.low, p.high) for p in parts]) == ("index", [(0, 2, "", -1.0, 1.0)])
