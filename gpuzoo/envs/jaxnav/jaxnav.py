"""JaxNav-v0: robots with lidar."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.core.values import check_ranges
from gpuzoo.render import Canvas, fade

ROBOT_COLOURS = ("red", "blue", "green", "orange", "purple", "pink", "teal", "yellow")
SPEEDS, TURNS = (0.0, 0.5, 1.0), (0.5, 0.25, 0.0, -0.25, -0.5)  # of discrete actions
MOST_TURN = float(np.pi / 6)
SAMPLES_OF_TRAIL = 16


@dataclasses.dataclass(frozen=True)
class JaxNavConfig(Config):
    """Robots, maps, lidar and rewards; JaxMARL's defaults. Lengths are in m, times in s, angles in rad."""

    num_agents: int = param(2, low=1, high=64, doc="number of robots")
    act_type: Literal["Continuous", "Discrete"] = param("Continuous", doc="speeds, or one of 15 pairs of them")
    evaporating: bool = param(False, doc="who reaches its goal or crashes leaves the game")
    map_width: int = param(11, low=4, high=128, doc="columns of cells, 1 m each")
    map_height: int = param(11, low=4, high=128, doc="rows of cells, 1 m each")
    fill: float = param(0.3, low=0.0, high=1.0, doc="largest share of inner cells that are walls")
    layout: str = param("", doc="one's own map, rows of # and . with / between, or several with spaces between")
    valid_path_check: bool = param(False, doc="goals are in the same region as starts")
    min_dist_to_goal: float = param(-1.0, doc="least distance from start to goal; negative: 1 + rad")
    max_dist_to_goal: float = param(-1.0, doc="largest distance from start to goal; negative: map_height - 1 - rad")
    start_pad: float = param(1.5, low=1.0, doc="free space around a start, in units of rad")
    rad: float = param(0.3, low=0.0, high=0.99, doc="radius of a robot, where its shape does not matter")
    half_length: float = param(0.25, low=0.01, high=0.49, doc="half of a robot's length")
    half_width: float = param(0.25, low=0.01, high=0.49, doc="half of a robot's width")
    lidar_num_beams: int = param(200, low=2, high=1024, doc="beams of a lidar")
    lidar_range_resolution: float = param(0.05, low=1e-3, doc="distance between samples of a beam")
    lidar_max_range: float = param(6.0, low=0.1, high=50.0, doc="length of a beam")
    lidar_angle_factor: float = param(1.0, low=0.0, high=1.0, doc="share of the circle that beams cover")
    min_v: float = param(0.0, doc="least speed")
    max_v: float = param(1.0, doc="top speed")
    max_v_acc: float = param(1.0, low=0.0, doc="largest acceleration")
    max_w: float = param(0.6, low=1e-3, doc="largest angular speed")
    max_w_acc: float = param(1.0, low=0.0, doc="largest angular acceleration")
    dt: float = param(0.1, low=1e-4, doc="time of a step")
    fixed_lambda: bool = param(True, doc="robots are told rew_lambda; otherwise a number that is drawn for the episode")
    rew_lambda: float = param(0.5, low=0.0, high=1.0, doc="share of a robot's own reward in what it gets")
    lambda_low: float = param(0.0, doc="least number that is drawn")
    lambda_high: float = param(1.0, doc="largest number that is drawn")
    share_only_sparse: bool = param(False, doc="robots share rewards for goals, crashes and time only")
    goal_radius: float = param(0.5, low=0.0, doc="distance at which a goal is reached")
    goal_rew: float = param(4.0, doc="reward for reaching the goal")
    weight_g: float = param(0.25, doc="reward for each m closer to the goal")
    lim_w: float = param(0.7, doc="angular speed from which on an action has a price")
    weight_w: float = param(0.0, doc="price of such an action, for each rad/s: a penalty is a negative number")
    dt_rew: float = param(-0.01, doc="reward of each step before goal and crash")
    coll_rew: float = param(-4.0, doc="reward of the first crash")
    lidar_thresh: float = param(0.1, doc="distance between robot and wall from which on being near has a price")
    lidar_rew: float = param(-0.1, doc="reward of being nearer")


class JaxNav(EnvDef):
    """Robots with lidar drive to their goals, and avoid walls and each other.

    The map has cells of 1 m x 1 m; a cell (i, j) lies at x in [i, i + 1], y in [j, j + 1]. Robots are rectangles that
    drive along their heading. Rutherford et al., "No regrets: investigating and improving regret approximations for
    curriculum discovery" (2024).

    **Start.** The outermost cells are walls. Of the n inner cells k are walls, at random places; k is drawn from 0 to
    `fill` n - 1. A start is drawn in the square from `1 + rad` to `map_height - 1 - rad`. Its goal is drawn in a random
    direction, at a distance from `min_dist_to_goal` to `max_dist_to_goal`, and clipped to the same square. Both are
    drawn again, up to 1,000 times, until no wall is nearer than `start_pad rad` to the start or 0.3 to the goal, other
    starts and other goals are farther away than `2 start_pad rad`, and the goal is farther than `2 rad` from the start.
    With `valid_path_check`, their cells are connected by steps across the sides of free cells. The heading is drawn
    from -π to π.

    **Your own maps.** `layout` has rows of `#` for walls and `.` for free cells, with `/` between them; the first row
    is at y = 0. It may hold several maps of the same size, with spaces between them; each episode then draws one. The
    map is part of the state, so it may differ from env to env, and `set_state` sets it, too:

    ```
    envs = gpuzoo.make("JaxNav-v0", num_envs=64, layout="######/#....#/#.##.#/#.##.#/#....#/######", num_agents=1)
    ```

    **Actions.** `Box([min_v, -π/6], [max_v, π/6])`: the speed and the angular speed that the robot should have. With
    `act_type="Discrete"`, `Discrete(15)`: action 5 i + j is the speed 0, 0.5, 1 for i = 0, 1, 2 and the angular speed
    0.5, 0.25, 0, -0.25, -0.5 for j = 0 to 4.

    **Movement.** Speeds change by at most `max_v_acc dt` and `max_w_acc dt`, and are clipped to [`min_v`, `max_v`] and
    [-`max_w`, `max_w`]. The robot moves by `speed dt` along its heading, and then turns. A crashed robot stands still.
    A robot that has reached its goal may drive on, and crash.

    **Crashes.** A robot crashes if its rectangle crosses the edge of a wall's cell, lies inside it, or overlaps another
    robot's rectangle.

    **Observation.** `Box(lidar_num_beams + 5)`. Beams go from -π to π times `lidar_angle_factor`, relative to the
    heading. Each is sampled at n = `lidar_max_range / lidar_range_resolution` equally spaced points from 0 to
    `lidar_max_range`. A beam ends at the first sample inside a wall. For another robot at distance d it ends at sample
    `d / lidar_range_resolution`, rounded down. Otherwise it ends at the last sample. Its length is observed as a share
    of `lidar_max_range`, minus 0.5. Then come `speed / max_v - 0.5`; the angular speed over `max_w`; the distance to
    the goal, at most `lidar_max_range`, as a share of that minus 0.5; the direction to the goal relative to the
    heading, over π; and `rew_lambda - 0.5`.

    **Global state.** The inner cells row by row, 1 for walls; the robots' positions as shares of the map's size, minus
    0.5; their headings over π, minus 0.5; the goals, like positions; for each robot its speed over `max_v` and its
    angular speed over `max_w`, both minus 0.5; the used share of the time limit, minus 0.5.

    **Reward.** A robot's own reward is the sum of: `goal_rew` when it reaches its goal, which has a radius of
    `goal_radius`, or before that `weight_g` for each meter that it comes closer; `coll_rew` when it crashes; `dt_rew`
    per step before goal and crash; `weight_w` |w| if its action turns at a speed w above `lim_w`; `lidar_rew` if a beam
    ends at `lidar_thresh + rad` or nearer. Each robot gets `rew_lambda` times its own reward and 1 - `rew_lambda` times
    the mean of all robots' own rewards. With `share_only_sparse` that mean has only the parts for goals, crashes and
    time.

    **End.** Each robot has reached its goal or crashed. With `evaporating`, a robot leaves at that moment, and waits in
    the corner (0, 0). Time limit: 500 steps. Infos: `goal_reached` and `crashed`, for each robot.

    These are the rules of JaxMARL 0.2.0 with the map `Grid-Rand-Poly`, or `Grid-Rand-Poly-Single` for one layout.
    JaxMARL's time limit is a termination. With `fixed_lambda=False`, JaxMARL draws and shows a number, but still mixes
    rewards by `rew_lambda`. With `evaporating`, its robots that have left still get their share of the common reward.
    Its `Grid-Rand` and `Grid-Buffer` cannot take a step.
    """

    id = "JaxNav-v0"
    Config = JaxNavConfig
    max_episode_steps = 500
    reference = "jaxmarl 0.2.0 jaxnav"
    exempt: ClassVar[Mapping[str, str]] = {
        "half_occupancy": "A beam on its way takes up to 80 registers: six blocks of 128 threads on an SM.",
        "parameters": "min_v and max_v bound the actions, so random actions follow from the widest range of a batch.",
    }
    interaction = "mixed"
    links: ClassVar[Mapping[str, str]] = {
        "JaxMARL": "https://github.com/FLAIROx/JaxMARL/tree/main/jaxmarl/environments/jaxnav",
        "Rutherford et al. 2024": "https://arxiv.org/abs/2408.15099",
    }
    benchmarks: ClassVar[Mapping[str, Mapping[str, Any]]] = {"8 robots": {"num_agents": 8}}
    render_fps = 20

    def agents(self, cfg: JaxNavConfig) -> dict[str, int]:
        return {"robot": cfg.num_agents}

    def lanes(self, cfg: JaxNavConfig) -> int:
        return 128

    def check(self, cfg: JaxNavConfig) -> None:
        check_ranges(self, cfg)
        if cfg.min_v >= cfg.max_v:
            raise ValueError(f"JaxNav-v0: min_v must be below max_v: {cfg.min_v} >= {cfg.max_v}.")
        if cfg.act_type == "Discrete" and cfg.min_v != 0.0:
            raise ValueError(f"JaxNav-v0: min_v must be 0 for discrete actions, not {cfg.min_v}.")
        nearest = cfg.min_dist_to_goal if cfg.min_dist_to_goal >= 0 else 1 + cfg.rad
        farthest = cfg.max_dist_to_goal if cfg.max_dist_to_goal >= 0 else cfg.map_height - 1 - cfg.rad
        if nearest > farthest:
            raise ValueError(f"JaxNav-v0: min_dist_to_goal must not be above max_dist_to_goal: {nearest} > {farthest}.")
        layouts_of(cfg)

    def observation_space(self, cfg: JaxNavConfig, group: str) -> spaces.Box:
        return spaces.Box(-np.inf, np.inf, (cfg.lidar_num_beams + 5,), np.float32)

    def state_space(self, cfg: JaxNavConfig) -> spaces.Box:
        inside = (cfg.map_width - 2) * (cfg.map_height - 2)
        return spaces.Box(-np.inf, np.inf, (inside + 7 * cfg.num_agents + 1,), np.float32)

    def action_space(self, cfg: JaxNavConfig, group: str) -> spaces.Space[Any]:
        if cfg.act_type == "Discrete":
            return spaces.Discrete(len(SPEEDS) * len(TURNS))
        low, high = np.array([cfg.min_v, -MOST_TURN], np.float32), np.array([cfg.max_v, MOST_TURN], np.float32)
        return spaces.Box(low, high, dtype=np.float32)

    def observation_names(self, cfg: JaxNavConfig, group: str) -> dict[str, int]:
        rest = ("speed", "angular speed", "distance to the goal", "direction to the goal", "rew_lambda")
        return {"length of each beam": cfg.lidar_num_beams} | dict.fromkeys(rest, 1)

    def action_names(self, cfg: JaxNavConfig, group: str) -> dict[str, int]:
        if cfg.act_type == "Discrete":
            return {f"speed {speed}, angular speed {turn}": 1 for speed in SPEEDS for turn in TURNS}
        return {"speed": 1, "angular speed": 1}

    def constants(self, cfg: JaxNavConfig) -> dict[str, int]:
        return {"LAYOUTS": len(layouts_of(cfg)), "FIELD": cfg.map_width * cfg.map_height, "BEAMS": cfg.lidar_num_beams}

    def tables(self, cfg: JaxNavConfig) -> dict[str, NDArray[Any]]:
        layouts = layouts_of(cfg) or [np.zeros(1, np.int8)]
        return {
            "beam_angle": np.linspace(-np.pi, np.pi, cfg.lidar_num_beams, dtype=np.float32),
            "layout": np.concatenate([layout.reshape(-1) for layout in layouts]),
        }

    def fields(self, cfg: JaxNavConfig) -> dict[str, Field]:
        return {
            "position": Field("float32", ("agents", 2), "x and y, m"),
            "heading": Field("float32", ("agents",), "direction, rad, -π..π"),
            "speed": Field("float32", ("agents",), "m/s"),
            "turn": Field("float32", ("agents",), "angular speed, rad/s"),
            "goal": Field("float32", ("agents", 2), "x and y, m"),
            "goal_reached": Field("bool", ("agents",), "whether each has reached its goal"),
            "crashed": Field("bool", ("agents",), "whether each has crashed"),
            "map": Field("int8", ("FIELD",), "1 for walls, row by row"),
            "rew_lambda": Field("float32", doc="the share of own rewards that is observed"),
            "cosine": Field("float32", ("agents",), "of the heading", scratch=True),
            "sine": Field("float32", ("agents",), "of the heading", scratch=True),
            "beam_cosine": Field("float32", ("BEAMS",), "of a beam's direction relative to the heading", scratch=True),
            "beam_sine": Field("float32", ("BEAMS",), "of a beam's direction relative to the heading", scratch=True),
            "before": Field("float32", ("agents",), "distance to the goal before the move", scratch=True),
            "looks": Field("int32", ("agents",), "how many samples of beams each looks at", scratch=True),
            "sample": Field("int32", ("agents", "BEAMS"), "where each beam ends", scratch=True),
            "close": Field("uint32", ("agents",), "whether a beam is short", scratch=True),
            "hits": Field("bool", ("agents",), "whether each touches something", scratch=True),
            "own": Field("float32", ("agents",), "own reward", scratch=True),
            "sparse": Field("float32", ("agents",), "the part of it for goals, crashes and time", scratch=True),
            "region": Field("int32", ("FIELD",), "a cell of the same region, or -1", scratch=True),
            "queue": Field("int32", ("FIELD",), "cells of a region", scratch=True),
        }

    def step_infos(self, cfg: JaxNavConfig, state: Mapping[str, Any]) -> dict[str, Any]:
        return {name: state[name] != 0 for name in ("goal_reached", "crashed")}

    def render(self, cfg: JaxNavConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        width, height = cfg.map_width, cfg.map_height
        walls = np.asarray(state["map"]).reshape(height, width) != 0
        canvas.background("paper")
        canvas.view(0, 0, width, height, pad=6, hud=True)
        canvas.cached(_floor, width, height)
        places, goals = np.asarray(state["position"]), np.asarray(state["goal"])
        headings = np.asarray(state["heading"])
        colours = [ROBOT_COLOURS[a % len(ROBOT_COLOURS)] for a in range(cfg.num_agents)]
        left = (
            ~np.asarray(state["alive"], bool) if cfg.evaporating and "alive" in state else np.zeros(len(places), bool)
        )
        for a in np.flatnonzero(~left).tolist():
            ends = _beams(cfg, walls, places[a], float(headings[a]))
            starts = np.repeat(places[a : a + 1], len(ends), 0)
            canvas.lines(starts, ends, colour=fade(colours[a], 0.1), width=1.0)
        for y, x in np.argwhere(walls).tolist():
            canvas.cached(_wall, x, y)
        for a, colour in enumerate(colours):
            x, y = goals[a].tolist()
            filled = 0.3 if state["goal_reached"][a] else 0.1
            canvas.circle(x, y, cfg.goal_radius, fill=fade(colour, filled), outline=fade(colour, 0.7))
            canvas.circle(x, y, 0.09, fill=colour)
        for a in np.flatnonzero(~left).tolist():
            speed, turn = float(state["speed"][a]), float(state["turn"][a])
            if speed > 0.02:
                canvas.trail(_past(places[a], float(headings[a]), speed, turn), colour=fade(colours[a], 0.5), width=5)
            _robot(cfg, canvas, places[a], float(headings[a]), colours[a], bool(state["crashed"][a]))
        reached, crashed = int(np.sum(state["goal_reached"])), int(np.sum(state["crashed"]))
        canvas.hud(
            left=f"at goals {reached} of {cfg.num_agents}, crashed {crashed}",
            right=f"step {int(state['elapsed_steps'])}",
        )


def layouts_of(cfg: JaxNavConfig) -> list[NDArray[np.int8]]:
    """The maps of `layout`, (map_height, map_width), 1 for walls.

    Raises:
        ValueError: a map has another size, other signs, or an open edge.
    """
    found = []
    for text in cfg.layout.split():
        rows = text.split("/")
        if len(rows) != cfg.map_height or any(len(row) != cfg.map_width for row in rows):
            raise ValueError(
                f"JaxNav-v0: a layout must have {cfg.map_height} rows of {cfg.map_width} cells (map_height, map_width)."
            )
        if set(text) - set("#./"):
            raise ValueError("JaxNav-v0: a layout has # for walls and . for free cells, with / between its rows.")
        cells = np.array([[cell == "#" for cell in row] for row in rows], np.int8)
        if not (cells[[0, -1]].all() and cells[:, [0, -1]].all()):
            raise ValueError("JaxNav-v0: the outermost cells of a layout must be walls.")
        found.append(cells)
    return found


def _floor(canvas: Canvas, width: int, height: int) -> None:
    """The floor, with lines between its cells."""
    canvas.rect(0, 0, width, height, fill="white")
    for k in range(1, max(width, height)):
        canvas.line(k, 0, k, height, colour="mist", width=0.8)
        canvas.line(0, k, width, k, colour="mist", width=0.8)


def _wall(canvas: Canvas, x: int, y: int) -> None:
    """A cell of a wall."""
    canvas.rect(x, y, x + 1, y + 1, fill="#56606f")
    canvas.rect(x + 0.06, y + 0.06, x + 0.94, y + 0.94, fill="#677283", radius=0.08)


def _beams(cfg: JaxNavConfig, walls: NDArray[Any], place: NDArray[Any], heading: float) -> NDArray[np.float64]:
    """The ends of every other beam at walls."""
    angles = np.linspace(-np.pi, np.pi, cfg.lidar_num_beams)[::2] * cfg.lidar_angle_factor + heading
    reach = np.linspace(0, cfg.lidar_max_range, 121)
    way = np.stack([np.cos(angles), np.sin(angles)], 1)
    points = place + reach[None, :, None] * way[:, None]
    x, y = (np.clip(points[..., k].astype(int), 0, walls.shape[1 - k] - 1) for k in (0, 1))
    hit = walls[y, x]
    first = np.where(hit.any(1), hit.argmax(1), len(reach) - 1)
    return np.asarray(place + reach[first, None] * way)


def _past(place: NDArray[Any], heading: float, speed: float, turn: float) -> NDArray[np.float64]:
    """Where a robot with this speed and angular speed was in the last two seconds, oldest first."""
    ago = np.linspace(2, 0, SAMPLES_OF_TRAIL)
    middle = heading - turn * ago / 2  # of an arc: its chord has this direction
    chord = speed * ago * np.sinc(turn * ago / (2 * np.pi))
    return np.stack([place[0] - chord * np.cos(middle), place[1] - chord * np.sin(middle)], 1)


def _robot(cfg: JaxNavConfig, canvas: Canvas, place: NDArray[Any], heading: float, colour: str, crashed: bool) -> None:
    """A robot with wheels and a nose."""
    turned = np.array([[np.cos(heading), np.sin(heading)], [-np.sin(heading), np.cos(heading)]])
    corners = np.array([[-1, -1], [-1, 1], [1, 1], [1, -1]]) * [cfg.half_length, cfg.half_width]
    wheel = np.array([[-1, -1], [-1, 1], [1, 1], [1, -1]]) * [0.3 * cfg.half_length, 0.14 * cfg.half_width]
    for side in (-1, 1):
        for end in (-0.55, 0.55):
            axle = np.array([end * cfg.half_length, side * cfg.half_width])
            canvas.polygon((wheel + axle) @ turned + place, fill="ink")
    canvas.polygon(corners @ turned + place, fill="grey" if crashed else colour, outline="ink" if crashed else "white")
    canvas.dart(float(place[0]), float(place[1]), heading, 0.6 * cfg.half_length, fill=colour if crashed else "white")
