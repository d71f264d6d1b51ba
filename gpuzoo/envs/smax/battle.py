"""What SMAX's games share: units, scenarios, spaces, tables and the state."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.envs.smax.drawing import draw_battle
from gpuzoo.render import Canvas


@dataclasses.dataclass(frozen=True)
class Unit:
    """A type of units. Lengths are in units of the map, which is 32 wide; times in seconds.

    Args:
        sign: how scenarios write it.
        velocity: length per second.
        strength: health that one of its attacks takes.
        attack_range: how far it attacks.
        sight: how far it sees.
        radius: of its round body.
        health: at the start.
        recharge: time between two of its attacks.
    """

    sign: str
    velocity: float
    strength: int
    attack_range: float
    sight: float
    radius: float
    health: float
    recharge: float


#: the types by their numbers in the rules
UNITS: Mapping[str, Unit] = {
    "marine": Unit("m", 3.15, 9, 5.0, 9.0, 0.375, 45.0, 0.61),
    "marauder": Unit("M", 2.25, 10, 6.0, 10.0, 0.5625, 125.0, 1.07),
    "stalker": Unit("s", 4.13, 13, 6.0, 10.0, 0.625, 160.0, 1.87),
    "zealot": Unit("z", 3.15, 8, 2.0, 9.0, 0.5, 150.0, 0.86),
    "zergling": Unit("zg", 4.13, 5, 2.0, 8.0, 0.375, 35.0, 0.5),
    "hydralisk": Unit("h", 3.15, 12, 5.0, 9.0, 0.625, 80.0, 0.59),
}
#: the maps that JaxMARL names
SCENARIOS = (
    "3m", "2s3z", "25m", "3s5z", "8m", "5m_vs_6m", "10m_vs_11m", "27m_vs_30m", "3s5z_vs_3s6z", "3s_vs_5z", "6h_vs_8z",
    "smacv2_5_units", "smacv2_10_units", "smacv2_20_units",
)  # fmt: skip
SIGNS = {unit.sign: number for number, unit in enumerate(UNITS.values())}
MOVES, SECTIONS, SEEN_IN_SECTION = 5, 32, 2
UNIT_FEATURES, OWN_FEATURES = 7 + len(UNITS), 4 + len(UNITS)
MOST_UNITS = 1024  # of a battle
_GROUP = r"(\d+)(zg|[mMszh])"
_ARMIES = re.compile(rf"((?:{_GROUP})+)(?:_vs_((?:{_GROUP})+))?")
_RANDOM = re.compile(r"smacv2_(\d+)(?:_vs_(\d+))?_units")


@dataclasses.dataclass(frozen=True)
class Armies:
    """Who fights.

    Attributes:
        allies, enemies: the type of each unit; zeros where types are drawn.
        random: whether types and places are drawn for each episode, as in SMACv2.
    """

    allies: tuple[int, ...]
    enemies: tuple[int, ...]
    random: bool = False


@functools.cache
def armies(scenario: str) -> Armies:
    """The armies of a scenario: ``3m``, ``2s3z``, ``3s5z_vs_3s6z``, ``smacv2_5_units``, ``smacv2_5_vs_6_units``.

    Raises:
        ValueError: no scenario is written so.
    """
    if found := _RANDOM.fullmatch(scenario):
        allies, enemies = int(found[1]), int(found[2] or found[1])
        named = Armies((0,) * min(allies, MOST_UNITS), (0,) * min(enemies, MOST_UNITS), random=True)
    elif found := _ARMIES.fullmatch(scenario):
        ours = _types(found[1])
        named = Armies(ours, _types(found[4]) if found[4] else ours)
    else:
        raise ValueError(
            f"SMAX: there is no scenario {scenario!r}; write armies as in '2s3z' or '3s_vs_5z', with m marines, M "
            "marauders, s stalkers, z zealots, zg zerglings and h hydralisks, or 'smacv2_5_units'."
        )
    if not (named.allies and named.enemies and len(named.allies) + len(named.enemies) <= MOST_UNITS):
        raise ValueError(f"SMAX: scenario {scenario!r} must have units on both sides, at most {MOST_UNITS} in all.")
    return named


def _types(army: str) -> tuple[int, ...]:
    groups = re.findall(_GROUP, army)
    return tuple(SIGNS[sign] for count, sign in groups for _ in range(min(int(count), MOST_UNITS + 1)))


@dataclasses.dataclass(frozen=True)
class BattleConfig(Config):
    """The options of JaxMARL's SMAX and of its HeuristicEnemySMAX."""

    scenario: str = param("3m", doc="who fights: a map of JaxMARL, or armies written in the same way")
    enemy_policy: Literal["heuristic", "agents"] = param(
        "heuristic", doc="who commands the enemies: a heuristic of the game, or they are agents, too"
    )
    enemy_shoots: bool = param(True, doc="whether the heuristic attacks")
    attack_mode: Literal["closest", "random"] = param("closest", doc="whom the heuristic attacks")
    observation_type: Literal["unit_list", "conic"] = param(
        "unit_list", doc="observe all units in order, or those in each of 32 directions"
    )
    see_enemy_actions: bool = param(True, doc="whether units see their opponents' last actions")
    use_self_play_reward: bool = param(False, doc="reward victories and defeats only, so that the game is zero-sum")
    won_battle_bonus: float = param(1.0, low=0.0, doc="reward of a victory")
    walls_cause_death: bool = param(True, doc="whether units die where they touch the edge of the map")
    dead_units_leave: bool = param(False, doc="whether a unit leaves the game when it dies, without later rewards")
    world_steps_per_env_step: int = param(8, low=1, high=1000, doc="world steps for each action")
    time_per_step: float = param(1 / 16, low=0.0, doc="seconds of a world step")
    map_width: float = param(32.0, low=1.0, doc="width of the map")
    map_height: float = param(32.0, low=1.0, doc="height of the map")


class Battle(EnvDef):
    """Two armies of units that move, and attack each other."""

    Config = BattleConfig
    max_episode_steps = 101
    interaction = "cooperative"  # with the default enemies, which no agent plays
    links: ClassVar[Mapping[str, str]] = {
        "JaxMARL": "https://github.com/FLAIROx/JaxMARL/tree/main/jaxmarl/environments/smax",
        "Rutherford et al. 2023": "https://arxiv.org/abs/2311.10090",
    }
    exempt: ClassVar[Mapping[str, str]] = {
        "half_occupancy": "With half of an SM's threads eight lanes would spill registers, and 32 lanes are slower."
    }
    render_fps = 6

    def agents(self, cfg: Any) -> dict[str, int]:
        found = armies(cfg.scenario)
        allies = {"ally": len(found.allies)}
        return allies if cfg.enemy_policy == "heuristic" else allies | {"enemy": len(found.enemies)}

    def lanes(self, cfg: Any) -> int:
        """At least one for each unit: fewer lanes hold several terms of a sum each, which takes too many registers.

        On an H200 8 lanes make 1.6 times as many steps as 32 with 6 units; with 10 units 32 make more than 16.
        """
        units = len(armies(cfg.scenario).allies + armies(cfg.scenario).enemies)
        return 8 if units <= 8 else 32 if units <= 64 else 256

    def check(self, cfg: Any) -> None:
        armies(cfg.scenario)

    def constants(self, cfg: Any) -> dict[str, int]:
        found = armies(cfg.scenario)
        allies, enemies = len(found.allies), len(found.enemies)
        conic = cfg.observation_type == "conic"
        return {
            "ALLIES": allies,
            "ENEMIES": enemies,
            "UNITS": allies + enemies,
            "RANDOM_UNITS": int(found.random),
            "MOST_ACTIONS": MOVES + (enemies if cfg.enemy_policy == "heuristic" else max(allies, enemies)),
            "VIEWERS": sum(self.agents(cfg).values()) if conic else 1,
            "VIEWED": allies + enemies if conic else 1,
        }

    def tables(self, cfg: Any) -> dict[str, NDArray[Any]]:
        found = armies(cfg.scenario)
        columns = {
            "velocity": np.float32, "strength": np.int32, "attack_range": np.float32, "sight": np.float32,
            "radius": np.float32, "recharge": np.float32,
        }  # fmt: skip
        of_types: dict[str, NDArray[Any]] = {
            name: np.array([getattr(unit, name) for unit in UNITS.values()], kind) for name, kind in columns.items()
        }
        of_types["full_health"] = np.array([unit.health for unit in UNITS.values()], np.float32)
        return of_types | {"army": np.array(found.allies + found.enemies, np.int32)}

    def observation_space(self, cfg: Any, group: str) -> spaces.Box:
        """Positions have no bounds: a unit may be pushed off the map, before it dies there."""
        inf = np.inf
        types = np.array([[0, 1]] * len(UNITS), np.float32)
        unit = np.concatenate([[[0, 1], [-1, 1], [-1, 1], [-1, 1], [-1, 1], [0, 1], [0, 1]], types])
        own = np.concatenate([[[0, 1], [-inf, inf], [-inf, inf], [0, 1]], types])
        others = sum(map(len, self._both(cfg))) - 1
        seen = others if cfg.observation_type == "unit_list" else SECTIONS * SEEN_IN_SECTION
        low, high = np.concatenate([np.tile(unit, (seen, 1)), own]).astype(np.float32).T
        return spaces.Box(low, high, dtype=np.float32)

    def state_space(self, cfg: Any) -> spaces.Box:
        """Positions and cooldowns have no bounds."""
        inf, n = np.inf, sum(map(len, self._both(cfg)))
        unit = np.array([[0, 1], [-inf, inf], [-inf, inf], [-inf, inf], *[[0, 1]] * len(UNITS)])
        rest = np.array([[0, 1]] * n + [[0, len(UNITS) - 1]] * n)
        low, high = np.concatenate([np.tile(unit, (n, 1)), rest]).astype(np.float32).T
        return spaces.Box(low, high, dtype=np.float32)

    def observation_names(self, cfg: Any, group: str) -> dict[str, int]:
        what = "health, x and y from here, last move in x and y, last attack, cooldown, six bits of its type"
        names: dict[str, int] = {}
        if cfg.observation_type == "conic":
            names[f"for each of {SECTIONS} directions, two units: {what}"] = SECTIONS * SEEN_IN_SECTION * UNIT_FEATURES
        else:
            mates, opponents = self._both(cfg) if group == "ally" else self._both(cfg)[::-1]
            own, others = ("ally", "enemy") if group == "ally" else ("enemy", "ally")
            for name, count in ((f"other {own}", len(mates) - 1), (others, len(opponents))):
                if count:
                    names[f"for each {name}: {what}"] = count * UNIT_FEATURES
        mine = ("own health", "own x / map_width", "own y / map_height", "own cooldown")
        return names | dict.fromkeys(mine, 1) | {"six bits of the own type": len(UNITS)}

    def fields(self, cfg: Any) -> dict[str, Field]:
        return {
            "x": Field("float32", ("UNITS",), "place of each unit, allies first"),
            "y": Field("float32", ("UNITS",), "place of each unit; y grows upwards"),
            "health": Field("float32", ("UNITS",), "of each unit; 0 if it is dead"),
            "type": Field("int32", ("UNITS",), f"of each unit: {', '.join(f'{k} {n}' for k, n in enumerate(UNITS))}"),
            "cooldown": Field(
                "float32", ("UNITS",), "seconds until each unit may attack; it may if that is not above 0"
            ),
            "move_x": Field("float32", ("UNITS",), "last move of each unit, as a share of its velocity"),
            "move_y": Field("float32", ("UNITS",), "last move of each unit, as a share of its velocity"),
            "attack": Field("int32", ("UNITS",), "last attack of each unit: 0 none, 5 + k on its k-th opponent"),
            "goal_x": Field("float32", ("ENEMIES",), "where each enemy of the heuristic goes if it sees nobody"),
            "goal_y": Field("float32", ("ENEMIES",), "where each enemy of the heuristic goes if it sees nobody"),
            "last_attacked": Field("int32", ("ENEMIES",), "opponent whom each enemy of the heuristic attacks, or -1"),
            "winner": Field("int32", doc="who won in the last step: 0 nobody, 1 the allies, 2 the enemies"),
            "size": Field("float32", ("UNITS",), "radius of each unit", scratch=True),
            "moved": Field("float32", (2, "UNITS"), "x and y before units push each other", scratch=True),
            "health_before": Field("float32", ("UNITS",), "at the beginning of the step", scratch=True),
            "damage": Field("int32", ("UNITS",), "by the attacks of a world step", scratch=True),
            "shown": Field(
                "float32", ("UNITS", UNIT_FEATURES), "what is shown of each unit, without its place", scratch=True
            ),
            "section": Field(
                "int8", ("VIEWERS", "VIEWED"), "direction in which each unit is seen, or -1", scratch=True
            ),
        }

    def step_infos(self, cfg: Any, state: Mapping[str, Any]) -> dict[str, Any]:
        return {"won": state["winner"] == 1, "lost": state["winner"] == 2}

    def aspect(self, cfg: Any) -> float:
        return float(cfg.map_width / cfg.map_height)

    def side(self, cfg: Any) -> int:
        return 600

    def render(self, cfg: Any, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        draw_battle(canvas, cfg, state, tuple(UNITS.values()), len(armies(cfg.scenario).allies))

    def _both(self, cfg: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        found = armies(cfg.scenario)
        return found.allies, found.enemies
