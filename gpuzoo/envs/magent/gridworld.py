"""What MAgent's games share: the map, ranges of vision, movement and attack, spaces, tables and the picture."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas, fade, mix

#: what a cell of the map holds, if no body
BLANK, WALL, OUTSIDE = -1, -2, -3
#: what viewers tell apart in a cell, beside nothing; and no such thing
WALL_KIND, FIRST_GROUP_KIND, NO_KIND = 1, 2, 255
#: states of a body
FELL, LIVES = 1, 2
#: what an agent's attack did
MISSED, HIT, KILLED = 1, 2, 3
#: agents of an env at most
MOST_AGENTS = 1024
EPSILON = 1e-8


@dataclasses.dataclass(frozen=True)
class GridWorldConfig(Config):
    """The map, and what agents see beside it."""

    map_size: int = param(45, low=12, high=400, doc="side of the square map, its walls included")
    minimap_mode: bool = param(False, doc="agents see how each group is spread over the map, and where they stand")
    extra_features: bool = param(False, doc="agents see their number, last action and last reward")


@dataclasses.dataclass(frozen=True)
class Unit:
    """What the members of a group are and can.

    Args:
        hp: health at the start, and the most.
        speed: radius of the cells that one move reaches.
        view: radius of vision.
        attack: radius of attacks; 0 for none.
        damage: what an attack takes.
        supply: health that its killer gains.
        kill_reward: what its killer gets.
        side: cells along each side of its square body.
        colour: in pictures.
    """

    hp: float
    speed: float
    view: float
    attack: float
    damage: float = 0.0
    supply: float = 0.0
    kill_reward: float = 0.0
    side: int = 1
    colour: str = "red"


def circle(radius: float, side: int, inner: float = 0.0) -> tuple[int, NDArray[np.bool_]]:
    """The cells around a body within a radius, measured between centres.

    Returns:
        The row and column of the first cell relative to the body's, and which cells count, (height, width).
    """
    parity = side % 2
    width = 2 * int(radius + EPSILON) + parity
    first = side // 2 - int(radius)
    away = np.abs(np.arange(width) - int(radius) + (0.0 if parity else 0.5))
    distance = np.hypot(away[:, None], away[None, :])
    return first, (distance < radius + EPSILON) & (distance > inner - EPSILON)


def offsets(radius: float, side: int, inner: float = 0.0) -> list[tuple[int, int]]:
    """(x, y) of those cells, row by row."""
    first, inside = circle(radius, side, inner)
    return [(int(x) + first, int(y) + first) for y, x in np.argwhere(inside)]


def moves(unit: Unit) -> list[tuple[int, int]]:
    """(x, y) of each move."""
    return offsets(unit.speed, 1)


def attacks(unit: Unit) -> list[tuple[int, int]]:
    """(x, y) of each attack, from the first cell of the body."""
    return offsets(unit.attack, unit.side, unit.side / 2) if unit.attack else []


class GridWorld(EnvDef):
    """Groups of agents on a map that move, attack each other, and see the cells around them."""

    #: whether members of a group can attack each other
    attacks_own_group: ClassVar[bool] = False
    #: numbers of an agent's binary number among the extra features
    embedding: ClassVar[int] = 10
    #: groups at the end of `units` that are no agents
    passive: ClassVar[tuple[str, ...]] = ()
    invalid_action = 0
    links: ClassVar[Mapping[str, str]] = {
        "MAgent2": "https://magent2.farama.org/",
        "Zheng et al. 2018": "https://arxiv.org/abs/1712.00600",
    }
    render_fps = 5

    def units(self, cfg: Any) -> dict[str, Unit]:
        """The groups, in the order in which they are numbered."""
        raise NotImplementedError(f"{type(self).__name__} must define units(cfg)")

    def places(self, cfg: Any) -> dict[str, list[tuple[int, int]]] | None:
        """(x, y) where the members of each group start, or None if that is drawn."""
        raise NotImplementedError(f"{type(self).__name__} must define places(cfg)")

    def counts(self, cfg: Any) -> dict[str, int]:
        """Sizes of the groups, and of ``"wall"``, if places are drawn."""
        return {name: len(places) for name, places in (self.places(cfg) or {}).items()} | {"wall": 0}

    def inner_walls(self, cfg: Any) -> Iterable[tuple[int, int]]:
        """(x, y) of the walls that are always there, beside those around the map."""
        return ()

    # ---- the declaration ----

    def agents(self, cfg: Any) -> dict[str, int]:
        counts = self.counts(cfg)
        return {name: counts[name] for name in self.units(cfg) if name not in self.passive}

    def lanes(self, cfg: Any) -> int:
        return 128 if sum(self.agents(cfg).values()) <= 128 else 256

    def check(self, cfg: Any) -> None:
        sizes = self.agents(cfg)
        if not 0 < min(sizes.values()) <= sum(sizes.values()) <= MOST_AGENTS:
            found = ", ".join(f"{size} of {name}" for name, size in sizes.items())
            raise ValueError(
                f"{self.id}: map_size={cfg.map_size} gives {found}; each group needs one, all at most {MOST_AGENTS}."
            )

    def channels(self, cfg: Any) -> int:
        """Numbers for each cell, without the features."""
        return 1 + len(self.units(cfg)) * (3 if cfg.minimap_mode else 2)

    def first_channels(self, cfg: Any) -> list[int]:
        """Of each group, the viewer's own first, the channel that says where one is; the next one is its health."""
        return [1 + k * (3 if cfg.minimap_mode else 2) for k in range(len(self.units(cfg)))]

    def feature_size(self, cfg: Any, unit: Unit) -> int:
        """Numbers of a group's features, which stand in every cell."""
        extra = self.embedding + len(moves(unit)) + len(attacks(unit)) + 1
        return (extra if cfg.extra_features else 0) + (2 if cfg.minimap_mode else 0)

    def state_depth(self, cfg: Any) -> int:
        """Numbers for each cell of the state."""
        units = self.units(cfg).values()
        extra = max(self.embedding + len(moves(unit)) + len(attacks(unit)) + 1 for unit in units)
        return 1 + 2 * len(units) + (extra if cfg.extra_features else 0)

    def observation_space(self, cfg: Any, group: str) -> spaces.Box:
        unit = self.units(cfg)[group]
        rows = len(circle(unit.view, unit.side)[1])
        return _box((rows, rows, self.channels(cfg) + self.feature_size(cfg, unit)), cfg, 2 * cfg.minimap_mode + 1)

    def state_space(self, cfg: Any) -> spaces.Box:
        return _box((cfg.map_size, cfg.map_size, self.state_depth(cfg)), cfg, 1)

    def action_space(self, cfg: Any, group: str) -> spaces.Discrete:
        unit = self.units(cfg)[group]
        return spaces.Discrete(len(moves(unit)) + len(attacks(unit)))

    def observation_names(self, cfg: Any, group: str) -> dict[str, int]:
        units = list(self.units(cfg))
        own = units.index(group)
        names = {"wall": 1}
        for name in units[own:] + units[:own]:
            names |= {f"{name}: one is there": 1, f"{name}: its share of its health": 1}
            if cfg.minimap_mode:
                names[f"{name}: share of the group in this part of the map, 1 more where the agent is"] = 1
        if cfg.extra_features:
            unit = self.units(cfg)[group]
            names |= {"the agent's number, binary, lowest bit first": self.embedding} if self.embedding else {}
            names["last action, one-hot"] = len(moves(unit)) + len(attacks(unit))
            names["reward of the step before the last"] = 1
        if cfg.minimap_mode:
            names |= {"x / map_size": 1, "y / map_size": 1}
        return names

    def action_names(self, cfg: Any, group: str) -> dict[str, int]:
        unit = self.units(cfg)[group]
        walk = [f"move by {at}" if at != (0, 0) else "stay" for at in moves(unit)]
        return dict.fromkeys(walk + [f"attack {at}" for at in attacks(unit)], 1)

    def margin(self, cfg: Any) -> int:
        """Cells beside the map that somebody may look at, or try to reach."""
        units = self.units(cfg).values()
        steps = [at for unit in units for at in moves(unit) + attacks(unit) + offsets(unit.view, unit.side)]
        return max(max(map(abs, at)) for at in steps)

    def constants(self, cfg: Any) -> dict[str, int]:
        units, counts = list(self.units(cfg).values()), self.counts(cfg)
        seen = [circle(unit.view, unit.side) for unit in units]
        far = max(len(inside) for _, inside in seen)
        margin = self.margin(cfg)
        agents = self.agents(cfg)
        viewers = [unit for name, unit in self.units(cfg).items() if name in agents]
        acts = [len(moves(unit)) + len(attacks(unit)) for unit in units]
        features = self.state_depth(cfg) - 1 - 2 * len(units)
        return {
            "MARGIN": margin,
            "STRIDE": cfg.map_size + 2 * margin,
            "CELLS": (cfg.map_size + 2 * margin) ** 2,
            "BODIES": sum(counts[name] for name in self.units(cfg)),
            "WALLS": counts["wall"],
            "PLACES": sum(counts.values()),
            "GROUPS": len(units),
            "KINDS": FIRST_GROUP_KIND + len(units),
            "VIEWERS": len(agents),
            "FIRST_VIEWER": list(self.units(cfg)).index(next(iter(agents))),
            "LARGEST_SIDE": max(unit.side for unit in units),
            "MOST_ATTACKS": max(len(attacks(unit)) for unit in units),
            "MOST_ROWS": far,
            **{f"{name.upper()}_ROWS": len(inside) for name, (_, inside) in zip(self.units(cfg), seen, strict=True)},
            "SAME_ROWS": int(all(len(circle(kind.view, kind.side)[1]) == far for kind in viewers)),
            "CHANNELS": self.channels(cfg),
            "HEALTH_CHANNELS": sum(1 << first + 1 for first in self.first_channels(cfg)),
            "MINIMAP_SIZE": far * far * len(units),
            "COUNTS": len(agents) * far * far * len(units) if cfg.minimap_mode else 1,
            "PARTS": far * far,
            "SHARES": (len(agents) + 1) * far * far * self.channels(cfg) if cfg.minimap_mode else 1,
            "MOST_FEATURES": max(self.feature_size(cfg, unit) for unit in units),
            "TOLD": max(1, max(self.feature_size(cfg, unit) for unit in units)),
            "EMBEDDING": self.embedding,
            "MOST_ACTIONS": max(acts),
            "ATTACKS_OWN_GROUP": int(self.attacks_own_group),
            "RANDOM_START": int(self.places(cfg) is None),
            "STATE_DEPTH": self.state_depth(cfg),
            "FIRST_STATE_FEATURE": 1 + 2 * len(agents) if features else self.state_depth(cfg),
        }

    def tables(self, cfg: Any) -> dict[str, NDArray[Any]]:
        known, units, counts = self.constants(cfg), self.units(cfg), self.counts(cfg)
        margin, stride, rows, channels = (known[k] for k in ("MARGIN", "STRIDE", "MOST_ROWS", "CHANNELS"))
        kinds = list(units.values())
        order = [*self.agents(cfg), *self.passive]
        bodies = [(name, k) for name in order for k in range(counts[name])]
        places = self.places(cfg)
        at = [places[name][k] for name, k in bodies] if places else [(0, 0)] * len(bodies)

        def cells(xy: Iterable[tuple[int, int]], origin: int = 0) -> list[int]:
            return [(y + origin) * stride + x + origin for x, y in xy]

        # The cells that each group sees, and nothing for those who are gone; and what each channel shows.
        visible = np.zeros((len(kinds) + 1, rows * rows), np.uint8)
        shows = np.full((len(kinds), channels), NO_KIND, np.uint8)
        shows[:, 0] = WALL_KIND
        for own, unit in enumerate(kinds):
            inside = circle(unit.view, unit.side)[1]
            visible[own, : inside.size] = inside.ravel()
            for k, first in enumerate(self.first_channels(cfg)):
                shows[own, first : first + 2] = FIRST_GROUP_KIND + (own + k) % len(kinds)
        # The same for each group and kind: channels that are 1 where the kind is, and those that are its health.
        is_shown = (shows[:, None] == np.arange(known["KINDS"])[:, None]).astype(np.float32)
        has_health = known["HEALTH_CHANNELS"] >> np.arange(channels) & 1
        corners = [circle(unit.view, unit.side)[0] for unit in kinds]
        plan = self.plan(cfg)

        return {
            "plan": plan.ravel(),
            "start": np.array(cells(at, margin), np.int32),
            "group": np.array([list(units).index(name) for name, _ in bodies], np.int32),
            "group_size": np.array([counts[name] for name in units], np.int32),
            "full_hp": np.array([unit.hp for unit in kinds], np.float32),
            "damage": np.array([unit.damage for unit in kinds], np.float32),
            "supply": np.array([unit.supply for unit in kinds], np.float32),
            "kill_reward": np.array([unit.kill_reward for unit in kinds], np.float32),
            "side": np.array([unit.side for unit in kinds], np.int32),
            "moves": np.array([len(moves(unit)) for unit in kinds], np.int32),
            "actions": np.array([len(moves(unit)) + len(attacks(unit)) for unit in kinds], np.int32),
            "stride": _padded([cells(moves(unit)) + [0] * len(attacks(unit)) for unit in kinds]),
            "reach": _padded([cells(attacks(unit)) for unit in kinds]),
            "rows": np.array([len(circle(unit.view, unit.side)[1]) for unit in kinds], np.int32),
            "view_corner": np.array(cells([(c, c) for c in corners]), np.int32),
            "visible": visible.ravel(),
            "shows": shows.ravel(),
            "shown_once": (is_shown * (1 - has_health)).astype(np.float32).ravel(),
            "shown_health": (is_shown * has_health).astype(np.float32).ravel(),
            "features": np.array([self.feature_size(cfg, unit) for unit in kinds], np.int32),
        }

    def plan(self, cfg: Any) -> NDArray[np.int16]:
        """The map without bodies, in its margin."""
        margin = self.margin(cfg)
        plan = np.full((cfg.map_size + 2 * margin,) * 2, OUTSIDE, np.int16)
        inside = plan[margin:-margin, margin:-margin]
        inside[...] = WALL
        inside[1:-1, 1:-1] = BLANK
        for x, y in self.inner_walls(cfg):
            inside[y, x] = WALL
        return plan

    def fields(self, cfg: Any) -> dict[str, Field]:
        return {
            "map": Field("int16", ("CELLS",), "what is on each cell: index of a body, -1 nothing, -2 wall, -3 margin"),
            "cell": Field("int32", ("PLACES",), "(first) cell of each body, then of each drawn wall"),
            "hp": Field("float32", ("BODIES",), "health"),
            "life": Field("uint8", ("BODIES",), "2 lives, 1 fell in the last step, 0 gone"),
            "hits": Field("int32", ("BODIES",), "attacks of the last step that it survived"),
            "deed": Field("uint8", ("agents",), "attack of the last step: 0 none, 1 missed, 2 hit, 3 killed"),
            "victim": Field("int32", ("agents",), "whom it attacked in the last step, or -1"),
            "last_action": Field("int32", ("agents",), "action of the last step, or -1"),
            "earned": Field("float32", ("agents",), "reward of the last step"),
            "earned_before": Field("float32", ("agents",), "reward of the step before the last"),
            "standing": Field("int32", ("GROUPS",), "how many of each group live"),
            "gain": Field("float32", ("agents",), "reward for what it killed in this step", scratch=True),
            "late": Field("bool", ("agents",), "whether it moves after the others", scratch=True),
            "corner": Field("int32", ("agents",), "first cell of its window", scratch=True),
            "mask": Field("int32", ("agents",), "its group, or the number of groups if it is gone", scratch=True),
            "kind": Field("uint8", ("CELLS",), "0 nothing there, 1 a wall, 2 and more a group", scratch=True),
            "health": Field("float32", ("CELLS",), "share of its health that a body there has", scratch=True),
            "count": Field("int32", ("COUNTS",), "minimap: bodies of each group in each part of the map", scratch=True),
            "part": Field("int32", ("agents",), "minimap: part of the map that it is in", scratch=True),
            "share": Field("float32", ("SHARES",), "minimap: what share of each group that is", scratch=True),
            "minimap": Field("int32", ("agents",), "minimap: where that begins which it sees", scratch=True),
            "told": Field("float32", ("agents", "TOLD"), "features of each agent", scratch=True),
            "present": Field("int32", ("GROUPS",), "minimap: bodies of each group", scratch=True),
        }

    # ---- the picture ----

    def render(self, cfg: Any, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        tables, known = self.tables(cfg), self.constants(cfg)
        margin, stride, size = known["MARGIN"], known["STRIDE"], cfg.map_size
        canvas.background("mist")
        canvas.view(0, 0, size, size, y_down=True, pad=6, hud=True)
        walls = np.asarray(state["map"]).reshape(stride, stride)[margin:-margin, margin:-margin] == WALL
        canvas.cached(_ground, size)
        for y, x in np.argwhere(walls).tolist():
            canvas.rect(x, y, x + 1, y + 1, fill="slate")
        y, x = np.divmod(np.asarray(state["cell"])[: known["BODIES"]], stride) - np.array([[margin]])
        units, life = list(self.units(cfg).values()), np.asarray(state["life"])
        centre = np.stack([x, y], 1) + tables["side"][tables["group"]][:, None] / 2
        for b in np.flatnonzero(life == FELL).tolist():
            canvas.circle(
                float(centre[b, 0]), float(centre[b, 1]), 0.7, fill=fade(units[tables["group"][b]].colour, 0.25)
            )
        for b in np.flatnonzero(life == LIVES).tolist():
            unit = units[tables["group"][b]]
            share = min(1.0, max(0.0, float(state["hp"][b]) / unit.hp))
            canvas.cached(_body, int(x[b]), int(y[b]), unit.side, unit.colour, round(4 * share) / 4)
        deed, victim = np.asarray(state["deed"]), np.asarray(state["victim"])
        for a in np.flatnonzero(deed >= HIT).tolist():
            (x0, y0), (x1, y1) = centre[a].tolist(), centre[victim[a]].tolist()
            canvas.line(x0, y0, x1, y1, colour="ink", width=1.6)
            canvas.circle(x1, y1, 0.2, fill="yellow", outline="ink", width=0.6)
        standing = np.asarray(state["standing"]).tolist()
        score = "   ".join(f"{name} {left}" for name, left in zip(self.units(cfg), standing, strict=True))
        canvas.hud(left=score, right=f"step {int(state['elapsed_steps'])}")


def _box(shape: tuple[int, int, int], cfg: Any, reward_at: int) -> spaces.Box:
    """Numbers from 0 to 2, but for the reward among the extra features, counted from the end."""
    low, high = np.zeros(shape, np.float32), np.full(shape, 2.0, np.float32)
    if cfg.extra_features:
        low[..., -reward_at], high[..., -reward_at] = -np.inf, np.inf
    return spaces.Box(low, high, shape, np.float32)


def _padded(rows: list[list[int]]) -> NDArray[np.int32]:
    """Rows of the same length, one after another."""
    table = np.zeros((len(rows), max(map(len, rows))), np.int32)
    for row, values in zip(table, rows, strict=True):
        row[: len(values)] = values
    return table.ravel()


def _ground(canvas: Canvas, size: int) -> None:
    """The floor."""
    canvas.rect(0, 0, size, size, fill="white")
    if size <= 60:
        canvas.grid(size, size, colour=fade("line", 0.6), width=0.5)


def _body(canvas: Canvas, x: int, y: int, side: int, colour: str, share: float) -> None:
    """A square, the paler the less health is left."""
    canvas.rect(x + 0.06, y + 0.06, x + side - 0.06, y + side - 0.06, fill=mix("white", colour, 0.25 + 0.75 * share),
                outline=colour, width=0.8, radius=0.2)  # fmt: skip
