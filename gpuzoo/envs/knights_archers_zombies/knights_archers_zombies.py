"""Knights, archers and zombies."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas, fade, mix

SCREEN = (1280, 720)
DIRECTIONS = 36
SPEED, ARROW_SPEED = 25, 45
#: side of the pictures of a knight, an archer and a mace, in pixels: archer.png, knight.png and mace.png
SIDE = 32
ARROW, ZOMBIE = 46, (29, 31)  # arrow.png, zombie.png
#: degrees of the mace from the knight's direction, for each step of its swing
SWING = (40, 20, 0, -20, -40, -60)
KINDS = ("a zombie", "an archer", "a knight", "a mace", "an arrow", "the agent itself")
#: PettingZoo's ``obs_method``
METHODS = {"vector": "vector", "vector-masked": "masked", "vector-sequence": "sequence"}


@dataclasses.dataclass(frozen=True)
class KnightsArchersZombiesConfig(Config):
    """Who fights, how many come, who can be killed, and what agents observe."""

    spawn_delay: int = param(20, low=1, high=10**6, doc="steps between new zombies, while there is room for more")
    num_archers: int = param(2, low=0, high=32, doc="archers")
    num_knights: int = param(2, low=0, high=32, doc="knights")
    max_zombies: int = param(10, low=1, high=128, doc="zombies at a time")
    max_arrows: int = param(10, low=1, high=128, doc="arrows at a time")
    killable_knights: bool = param(True, doc="zombies kill knights")
    killable_archers: bool = param(True, doc="zombies kill archers")
    line_death: bool = param(False, doc="who walks against the upper or lower border of the screen dies")
    observation_type: Literal["vector", "masked", "sequence"] = param("vector", doc="PettingZoo's `obs_method`")
    delayed_rewards: bool = param(True, doc="points are paid as in PettingZoo: mostly one step late")
    caught_are_lost: bool = param(
        True, doc="as in PettingZoo, the game ends when zombies have met all, even those who cannot be killed"
    )


def _sine(k: int) -> float:
    """Sine of 10 k degrees, without rounding where it is 0, 0.5 or 1."""
    quadrant, rest = divmod(k % DIRECTIONS, 9)
    part = rest if quadrant % 2 == 0 else 9 - rest
    size = {0: 0.0, 3: 0.5, 9: 1.0}.get(part, math.sin(math.radians(10 * part)))
    return size if quadrant < 2 else -size


def heading(k: int) -> tuple[float, float]:
    """The unit vector of direction k: (x, y), y downwards; 0 is up."""
    return _sine(k), -_sine(k + 9)


class KnightsArchersZombies(EnvDef):
    """Knights and archers defend the lower border of the screen against zombies that walk down.

    The screen has 1280 x 720 pixels, with a wall of 100 pixels at the left and at the right; y grows downwards. These
    are the rules of PettingZoo's `butterfly.knights_archers_zombies_v11`, as its parallel interface shows them.

    **Agents.** `archer_0`, `archer_1`, ..., and then `knight_0`, ... They begin looking upwards, with their middles at
    y = 610, archers at x = 400 + 50 i and knights at x = 800 + 50 i, where i is the last digit of the name.

    **Actions.** `Discrete(6)`: forward, backward, turn left, turn right, attack, nothing. All act one after the other.
    A move is 25 pixels long, with x and y rounded to integers (12.5 to 12), and ends at the walls and at the upper and
    lower borders. With `line_death` those who would leave the screen above or below die. A turn is 10 degrees.

    **Bodies** are rectangles along the axes, and meet if they overlap. A player's picture has 32 x 32 pixels. Its body
    is the smallest square around the turned picture, with the same middle: its side is 32, 37, 41, 43, 45, 45, 43, 41
    and 37 pixels for 0, 10, ..., 80 degrees, and so on. Arrows have 46 x 46 pixels, maces 32 x 32, zombies 29 x 31. The
    numbers are the sizes of the original's image files.

    **Arrows.** An archer's attack shoots an arrow from its middle, in its direction, if there are fewer than
    `max_arrows`. The next three attacks for which there is room for an arrow do nothing. An arrow flies 45 pixels per
    step, rounded down in x and y, beginning with the step of the shot. It is gone when its upper left corner is off the
    screen, x < 0, y < 0, x > 1280 or y > 720. Arrows of dead archers fly on.

    **Maces.** A knight's attack swings its mace, in the step of the attack and in five more. It is 40, 20, 0, -20, -40
    and -60 degrees clockwise from the knight's direction. Its middle is half of both sides (the mace's and the body's)
    from the knight's middle, rounded towards 0 in x and y. The knight does nothing in the six steps after an attack.

    **Zombies.** When the weapons have moved, a zombie that meets one is killed, by the first one that it meets: arrows,
    by archer and age, and then maces. The weapon's agent gets a point for each zombie. Arrows that killed are gone.
    Then a zombie kills every agent that it meets. Then zombies move, 5 pixels down. In every third step of a
    zombie's life it also moves 30 pixels to the right with chance 0.3, or to the left with chance 0.4, if it stays
    between x = 69 and x = 1151. Every `spawn_delay` steps in which there is room for one more, a zombie comes, at y = 5
    and x from 69 to 1150.

    **Observation.** `Box(-1, 1, (rows, 5))`, with one row for the agent itself and then one for each archer, knight,
    mace, arrow and zombie: the distance divided by the screen's diagonal; x / 1280 and y / 720 of its upper left
    corner, less those of the agent's; and its direction as a unit vector. Maces, arrows and zombies fill the first of
    their rows, in the order of their agents and, of one agent, of their age. Rows of the dead and free ones are 0. The
    first row has no distance, and the agent's own x / 1280 and y / 720. `observation_type="masked"` has six more
    numbers at the beginning of each row: whether it is a zombie, an archer, a knight, a mace, an arrow, the agent
    itself. `"sequence"` is the same without the rows of nobody; the rows that are left over, at the end, are 0. The
    state has a row for each, without the distance, and with x / 1280 and y / 720 themselves, row after row in one
    vector.

    **Reward.** The points of the step before, except for the first living agent, who gets those of this step. An agent
    that becomes the first gets both, and the last points of an agent that dies, or of a game that ends, may be lost.
    That is how PettingZoo pays; with `delayed_rewards=False` all get the points of this step at once.

    **End.** A zombie's y is greater than 689, or all agents are dead: termination for all. An agent that dies
    terminates. Agents that cannot be killed still count as lost once a zombie has met them, as in the original, unless
    `caught_are_lost=False`. Time limit: 900 steps.

    Differences: a direction is a multiple of 10 degrees here. The original turns a vector, whose rounding errors grow,
    and which decide whether 12.5 is 12 or 13, and likewise whether arrows and maces are one pixel further. There the
    count of steps until the next zombie goes on in the next episode; here it begins at 0. Its `obs_method` is
    `observation_type` here, without the original's images, and its sequences have as many rows as there are things.
    """

    id = "KnightsArchersZombies-v0"
    Config = KnightsArchersZombiesConfig
    max_episode_steps = 900
    invalid_action = 5
    reference = "pettingzoo==1.27.0 butterfly.knights_archers_zombies_v11"
    interaction = "cooperative"
    links: ClassVar[Mapping[str, str]] = {
        "PettingZoo": "https://pettingzoo.farama.org/environments/butterfly/knights_archers_zombies/",
    }
    benchmarks: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "4 archers, 4 knights": {"num_archers": 4, "num_knights": 4, "max_zombies": 20, "max_arrows": 20},
    }
    render_fps = 15

    @classmethod
    def parameters_of(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        if "obs_method" not in options:
            return options
        method = options["obs_method"]
        if method not in METHODS:
            raise ValueError(f"{cls.id}: obs_method must be one of {', '.join(map(repr, METHODS))}, not {method!r}.")
        rest = {name: value for name, value in options.items() if name != "obs_method"}
        return {**rest, "observation_type": METHODS[method]}

    def agents(self, cfg: KnightsArchersZombiesConfig) -> dict[str, int]:
        both = {"archer": cfg.num_archers, "knight": cfg.num_knights}
        return {name: count for name, count in both.items() if count} or {"archer": 1}

    def check(self, cfg: KnightsArchersZombiesConfig) -> None:
        if cfg.num_archers + cfg.num_knights == 0:
            raise ValueError(f"{self.id}: there must be an archer or a knight.")

    def lanes(self, cfg: KnightsArchersZombiesConfig) -> int:
        return 32

    def _rows(self, cfg: KnightsArchersZombiesConfig) -> int:
        return cfg.num_archers + 2 * cfg.num_knights + cfg.max_arrows + cfg.max_zombies

    def _width(self, cfg: KnightsArchersZombiesConfig) -> int:
        return 5 if cfg.observation_type == "vector" else 5 + len(KINDS)

    def observation_space(self, cfg: KnightsArchersZombiesConfig, group: str) -> spaces.Box:
        return spaces.Box(-1.0, 1.0, (self._rows(cfg) + 1, self._width(cfg)), np.float32)

    def state_space(self, cfg: KnightsArchersZombiesConfig) -> spaces.Box:
        return spaces.Box(-1.0, 1.0, (self._rows(cfg) * (self._width(cfg) - 1),), np.float32)

    def action_space(self, cfg: KnightsArchersZombiesConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(6)

    def observation_names(self, cfg: KnightsArchersZombiesConfig, group: str) -> dict[str, int]:
        numbers = ("distance", "x / 1280, relative", "y / 720, relative", "x of its direction", "y of its direction")
        masks = () if cfg.observation_type == "vector" else tuple(f"whether it is {kind}" for kind in KINDS)
        return dict.fromkeys((*masks, *numbers), 1)

    def action_names(self, cfg: KnightsArchersZombiesConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("forward", "backward", "turn left", "turn right", "attack", "nothing"), 1)

    def constants(self, cfg: KnightsArchersZombiesConfig) -> dict[str, int]:
        return {
            "NUM_ARCHERS": cfg.num_archers,
            "NUM_KNIGHTS": cfg.num_knights,
            "NUM_TRACKED": self._rows(cfg),
            "ROW_SIZE": self._width(cfg),
        }

    def tables(self, cfg: KnightsArchersZombiesConfig) -> dict[str, NDArray[Any]]:
        ways = [heading(k) for k in range(DIRECTIONS)]
        sizes = [int(SIDE * (abs(x) + abs(y))) for x, y in ways]
        maces = [
            [int(part * (SIDE + sizes[k]) / 2) for part in heading(k + arc // 10)]
            for k in range(DIRECTIONS)
            for arc in SWING
        ]
        tables: dict[str, NDArray[Any]] = {"turned_size": np.array(sizes, np.int32)}
        for axis, name in enumerate("xy"):
            parts = [way[axis] for way in ways]
            tables[f"heading_{name}"] = np.array(parts, np.float32)
            tables[f"walk_{name}"] = np.array([round(SPEED * part) for part in parts], np.int32)
            tables[f"fly_{name}"] = np.array([math.floor(ARROW_SPEED * part) for part in parts], np.int32)
            tables[f"mace_{name}"] = np.array([mace[axis] for mace in maces], np.int32)
        return tables

    def fields(self, cfg: KnightsArchersZombiesConfig) -> dict[str, Field]:
        pause = "steps since a knight's attack, attempts since an archer's shot; -1: it may attack"
        arrow = "upper left corner of each arrow, in pixels"
        rows = "NUM_TRACKED"
        return {
            "x": Field("int32", ("agents",), "middle of each agent, in pixels"),
            "y": Field("int32", ("agents",), "middle of each agent, in pixels from above"),
            "direction": Field("int32", ("agents",), "tens of degrees, clockwise from up, 0 to 35"),
            "pause": Field("int32", ("agents",), pause),
            "dead": Field("bool", ("agents",), "whether it is dead"),
            "caught": Field("bool", ("agents",), "whether a zombie met it that cannot kill it"),
            "score": Field("int32", ("agents",), "points of the last step"),
            "archer": Field("int32", ("max_arrows",), "whose arrow it is, sorted; -1 for none"),
            "arrow_x": Field("int32", ("max_arrows",), arrow),
            "arrow_y": Field("int32", ("max_arrows",), arrow),
            "arrow_direction": Field("int32", ("max_arrows",), "direction of each arrow"),
            "arrows": Field("int32", doc="how many arrows there are"),
            "zombie_x": Field("int32", ("max_zombies",), "upper left corner of each zombie, the oldest first"),
            "zombie_y": Field("int32", ("max_zombies",), "upper left corner of each zombie: 5 and 5 more per step"),
            "zombies": Field("int32", doc="how many zombies there are"),
            "spawn_timer": Field("int32", doc="steps with room for a zombie since the last one came"),
            "score_before": Field("int32", ("agents",), "points of the step before", scratch=True),
            "spent": Field("int32", ("max_arrows",), "whether an arrow killed", scratch=True),
            "struck": Field("bool", ("max_zombies",), "whether a zombie was killed", scratch=True),
            "kind": Field("int32", (rows,), "what is in each row of the state, or -1", scratch=True),
            "corner_x": Field("int32", (rows,), "its upper left corner", scratch=True),
            "corner_y": Field("int32", (rows,), "its upper left corner", scratch=True),
            "heading": Field("int32", (rows,), "its direction", scratch=True),
            "listed": Field("int32", (rows,), "rows that hold something", scratch=True),
        }

    # ---- the picture ----

    def aspect(self, cfg: KnightsArchersZombiesConfig) -> float:
        return 1.6

    def side(self, cfg: KnightsArchersZombiesConfig) -> int:
        return 720

    def render(self, cfg: KnightsArchersZombiesConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        canvas.background("ink")
        canvas.view(0, 0, *SCREEN, y_down=True, hud=True)
        canvas.cached(_field)
        for z in range(int(state["zombies"])):
            _draw_zombie(canvas, int(state["zombie_x"][z]), int(state["zombie_y"][z]))
        dead = np.asarray(state["dead"], bool)
        for a in range(len(dead)):
            if not dead[a]:
                x, y, k, pause = (int(state[name][a]) for name in ("x", "y", "direction", "pause"))
                _draw_player(canvas, x, y, k, pause, archer=a < cfg.num_archers)
        for k in range(int(state["arrows"])):
            left, top = (int(state[name][k]) for name in ("arrow_x", "arrow_y"))
            _draw_arrow(canvas, left + ARROW / 2, top + ARROW / 2, int(state["arrow_direction"][k]))
        text = f"{int((~dead).sum())} of {len(dead)} defend, {int(state['zombies'])} zombies"
        canvas.hud(left=text, right=f"step {int(state['elapsed_steps'])}")


def _field(canvas: Canvas) -> None:
    """The floor, the walls, and the line to defend."""
    width, height = SCREEN
    canvas.rect(0, 0, width, height, fill="#4a3a48")
    for row in range(9):
        for column in range(14 + row % 2):
            x, y = 100 + 80 * column - 40 * (row % 2), 80 * row
            canvas.rect(max(x, 100) + 3, y + 3, min(x + 77, width - 103), y + 77, fill="#52414f", radius=8)
    canvas.rect(0, height - 31, width, height, fill=fade("red", 0.22))
    for left in (0, width - 100):
        canvas.rect(left, 0, left + 100, height, fill="#2f2531")
        for row in range(12):
            for column in range(2):
                x, y = left + 4 + 48 * column, 60 * row + 4
                canvas.rect(x, y, x + 44, y + 52, fill=mix("#2f2531", "white", 0.12), radius=6)


def _turned(x: float, y: float, k: int, ahead: float, right: float) -> tuple[float, float]:
    """A point so far ahead and to the right of (x, y), looking along direction k."""
    hx, hy = heading(k)
    return x + ahead * hx - right * hy, y + ahead * hy + right * hx


def _draw_zombie(canvas: Canvas, left: int, top: int) -> None:
    x, y = left + ZOMBIE[0] / 2, top + ZOMBIE[1] / 2
    for side in (-1, 1):
        canvas.line(x + side * 10, y, x + side * 12, y + 20, colour="#5f9150", width=3)
    canvas.circle(x + 1, y + 3, 17, fill=fade("black", 0.3))
    canvas.circle(x, y, 16, fill="#7fb069", outline="#3d5c33", width=1)
    canvas.circles([(x - 6, y + 1), (x + 6, y + 1)], 4, "white")
    canvas.circles([(x - 6, y + 3), (x + 6, y + 3)], 2, "red")
    canvas.line(x - 5, y + 10, x + 5, y + 10, colour="#3d5c33", width=1)


def _draw_player(canvas: Canvas, x: int, y: int, k: int, pause: int, *, archer: bool) -> None:
    colour = "yellow" if archer else "blue"
    canvas.circle(x + 1, y + 3, 19, fill=fade("black", 0.3))
    canvas.circle(x, y, 18, fill=colour, outline="white", width=1)
    tip, left, right = (_turned(x, y, k, *at) for at in ((17, 0), (4, -8), (4, 8)))
    canvas.polygon([tip, left, right], fill="white")
    if archer:
        bow = [_turned(x, y, k, 22 - 0.03 * s * s, s) for s in range(-20, 21, 4)]
        canvas.path(bow, colour="brown", width=2.5)
        canvas.line(*bow[0], *bow[-1], colour="white", width=0.7)
    else:
        canvas.circle(*_turned(x, y, k, -2, 0), 9, fill=mix("blue", "black", 0.25))
    if not archer and 0 <= pause < len(SWING):
        way = k + SWING[pause] // 10
        size = int(SIDE * (abs(heading(k)[0]) + abs(heading(k)[1])))
        end = _turned(x, y, way, (SIDE + size) / 2, 0)
        trail = [_turned(x, y, k + SWING[i] // 10, (SIDE + size) / 2, 0) for i in range(pause + 1)]
        if len(trail) > 1:
            canvas.trail(trail, colour="white", width=3, tail=0.1)
        canvas.line(x, y, *end, colour="brown", width=3)
        canvas.circle(*end, 11, fill="grey", outline="white", width=1)


def _draw_arrow(canvas: Canvas, x: float, y: float, k: int) -> None:
    tip, tail = _turned(x, y, k, 23, 0), _turned(x, y, k, -20, 0)
    canvas.line(*tail, *tip, colour="sand", width=2)
    canvas.polygon([tip, _turned(x, y, k, 12, -6), _turned(x, y, k, 12, 6)], fill="white")
    for side in (-5, 5):
        canvas.line(*tail, *_turned(x, y, k, -26, side), colour="red", width=2)
