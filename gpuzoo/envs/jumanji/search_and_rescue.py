"""SearchAndRescue."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import CYCLE, Canvas, fade

CHANNELS = ("other searchers", "targets that were found", "targets that were not found")


@dataclasses.dataclass(frozen=True)
class SearchAndRescueConfig(Config):
    """Who searches for what, and what they can."""

    num_searchers: int = param(2, low=1, high=128, doc="number of searchers")
    num_targets: int = param(40, low=1, high=1024, doc="number of targets")
    num_vision: int = param(128, low=2, high=1024, doc="rays of a view")
    env_size: float = param(1.0, low=0.01, doc="side of the square that is searched")
    target_contact_range: float = param(0.02, low=0.0, doc="how far away a target is found")
    searcher_max_rotate: float = param(0.25, low=0.0, high=1.0, doc="largest turn of a step, as a part of pi")
    searcher_max_accelerate: float = param(0.005, low=0.0, doc="largest change of speed in a step")
    searcher_min_speed: float = param(0.005, low=0.0, doc="lowest speed, per step")
    searcher_max_speed: float = param(0.02, low=0.0, doc="highest speed, per step")
    target_acc_std: float = param(0.0001, low=0.0, doc="standard deviation of a target's change of velocity in a step")
    target_vel_max: float = param(0.002, low=0.0, doc="highest speed of a target, per step")
    searcher_vision_range: float = param(0.4, low=1e-6, doc="how far away searchers are seen")
    target_vision_range: float = param(0.1, low=1e-6, doc="how far away targets are seen")
    view_angle: float = param(0.4, low=0.0, high=1.0, doc="how far to each side a searcher sees, as a part of pi")
    agent_radius: float = param(0.02, low=0.0, doc="radius of searchers and targets in a view")
    split_rewards: bool = param(True, doc="searchers who find a target at the same time share its reward")
    scale_rewards: bool = param(True, doc="rewards go down to 0 with time")


class SearchAndRescue(EnvDef):
    """Searchers fly over a square and look for targets that drift through it.

    The square is a torus: what leaves it on one side comes back on the other. Searchers begin anywhere, in any
    direction, at any of their speeds. Targets begin anywhere, at rest.

    **Actions.** `Box(2)` in [-1, 1]: the turn, as a part of ``searcher_max_rotate`` pi, and the change of speed, as a
    part of ``searcher_max_accelerate``. Speeds stay between ``searcher_min_speed`` and ``searcher_max_speed``.
    Searchers turn first and then move. Each target's velocity changes by two normal numbers of standard deviation
    ``target_acc_std``, is shortened to ``target_vel_max``, and moves the target.

    A searcher finds a target if it is at most ``target_contact_range`` away, at most ``view_angle`` pi from the
    direction of its flight, and was not found before.

    **Observation.** `Box(3 num_vision + 1)`, float32. ``num_vision`` rays go out from the searcher, from
    -``view_angle`` pi to ``view_angle`` pi, the angle being its heading minus the direction of the ray. For each ray:
    the distance to the nearest other searcher that it hits, as a part of ``searcher_vision_range``; -1 if there is none
    in that range. Then the same for targets that were found, and for those that were not, with
    ``target_vision_range``. A ray hits what is less than atan(``agent_radius`` / distance) beside it. The last number
    is the part of the targets that is still to be found.

    **State.** `Box(5 num_searchers + 3 num_targets)`, float32. For each searcher: x and y as parts of ``env_size``,
    cosine and sine of its heading, its speed; for each target: x and y, and whether it was found.

    **Reward.** 1 for each target that the searcher finds. Searchers who find a target in the same step share this,
    unless ``split_rewards=False``. With ``scale_rewards`` it goes down evenly, from 1 in the first step to 0 after the
    last one.

    **End.** All targets are found. Time limit: 400 steps.

    **In Jumanji** one agent acts for all searchers. The time limit terminates the episode, and the number of steps and
    all searchers' places are observed.
    """

    id = "SearchAndRescue-v0"
    Config = SearchAndRescueConfig
    exempt: ClassVar[Mapping[str, str]] = {
        "rows_are_stored_in_few_sectors": "Rows of 16 searchers are too long for shared memory; a lane writes one.",
    }
    max_episode_steps = 400
    interaction = "cooperative"
    reference = "jumanji==1.1.2 SearchAndRescue-v0"
    links: ClassVar[Mapping[str, str]] = {
        "Jumanji": "https://instadeepai.github.io/jumanji/environments/search_and_rescue/"
    }
    similar = (r"[Ss]earch_?[Aa]nd_?[Rr]escue.*",)
    benchmarks: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "16 searchers, 100 targets": {"num_searchers": 16, "num_targets": 100}
    }
    render_fps = 20

    def agents(self, cfg: SearchAndRescueConfig) -> dict[str, int]:
        return {"searcher": cfg.num_searchers}

    def lanes(self, cfg: SearchAndRescueConfig) -> int:
        return 32

    def check(self, cfg: SearchAndRescueConfig) -> None:
        if cfg.searcher_min_speed > cfg.searcher_max_speed:
            raise ValueError(f"{self.id}: searcher_min_speed must be at most searcher_max_speed.")
        for name in ("target_contact_range", "searcher_vision_range", "target_vision_range"):
            if getattr(cfg, name) > cfg.env_size:
                raise ValueError(f"{self.id}: {name} must be at most env_size, {cfg.env_size:g}.")

    def observation_space(self, cfg: SearchAndRescueConfig, group: str) -> spaces.Box:
        low = np.full(3 * cfg.num_vision + 1, -1.0, np.float32)
        low[-1] = 0
        return spaces.Box(low, np.full_like(low, 2.0), dtype=np.float32)

    def state_space(self, cfg: SearchAndRescueConfig) -> spaces.Box:
        low = [0, 0, -1, -1, 0] * cfg.num_searchers + [0, 0, 0] * cfg.num_targets
        high = [1, 1, 1, 1, cfg.searcher_max_speed] * cfg.num_searchers + [1, 1, 1] * cfg.num_targets
        return spaces.Box(np.array(low, np.float32), np.array(high, np.float32), dtype=np.float32)

    def action_space(self, cfg: SearchAndRescueConfig, group: str) -> spaces.Box:
        return spaces.Box(-1.0, 1.0, (2,), np.float32)

    def observation_names(self, cfg: SearchAndRescueConfig, group: str) -> dict[str, int]:
        views = {f"distance along each ray: {name}": cfg.num_vision for name in CHANNELS}
        return views | {"part of the targets that is left": 1}

    def action_names(self, cfg: SearchAndRescueConfig, group: str) -> dict[str, int]:
        return {"turn": 1, "change of speed": 1}

    def fields(self, cfg: SearchAndRescueConfig) -> dict[str, Field]:
        return {
            "x": Field("float32", ("agents",), "place of each searcher"),
            "y": Field("float32", ("agents",), "place of each searcher"),
            "heading": Field("float32", ("agents",), "direction of its flight, from 0 to 2 pi"),
            "speed": Field("float32", ("agents",), "its speed, per step"),
            "target_x": Field("float32", ("num_targets",), "place of each target"),
            "target_y": Field("float32", ("num_targets",), "place of each target"),
            "target_vx": Field("float32", ("num_targets",), "its velocity, per step"),
            "target_vy": Field("float32", ("num_targets",), "its velocity, per step"),
            "found": Field("bool", ("num_targets",), "whether it was found"),
            "finders": Field("int32", ("num_targets",), "how many searchers find it in this step", scratch=True),
        }

    def infos(self, cfg: SearchAndRescueConfig, state: Mapping[str, Any]) -> Mapping[str, Any]:
        found = (state["found"] != 0).sum(1)
        return {"targets_found": found, "solved": found == cfg.num_targets}

    def render(self, cfg: SearchAndRescueConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        found = np.asarray(state["found"]) != 0
        size = cfg.env_size
        canvas.background("paper")
        canvas.view(0, 0, size, size, pad=8, hud=True)
        canvas.rect(0, 0, size, size, fill="white")
        place = np.stack([state["x"], state["y"]], 1)
        heading = np.asarray(state["heading"])
        around = [(dx * size, dy * size) for dx in (-1, 0, 1) for dy in (-1, 0, 1)]  # what is seen across the edges
        for a in range(cfg.num_searchers):
            colour = CYCLE[a % len(CYCLE)]
            for reach, alpha in ((cfg.searcher_vision_range, 0.1), (cfg.target_vision_range, 0.22)):
                angles = float(heading[a]) + np.pi * cfg.view_angle * np.linspace(-1, 1, 41)
                cone = np.stack([np.cos(angles), np.sin(angles)], 1) * reach
                for offset in around:
                    corner = place[a] + offset
                    if ((corner > -reach) & (corner < size + reach)).all():
                        canvas.polygon(np.vstack([corner, corner + cone]), fill=fade(colour, alpha))
        for left, bottom, right, top in ((-1, -1, 0, 2), (1, -1, 2, 2), (0, -1, 1, 0), (0, 1, 1, 2)):  # hides the rest
            canvas.rect(left * size, bottom * size, right * size, top * size, fill="paper")
        canvas.rect(0, 0, size, size, outline="grey", width=1.5)
        targets = np.stack([state["target_x"], state["target_y"]], 1)
        radius = max(cfg.agent_radius, 0.008 * size)
        canvas.circles(targets[found], 0.55 * radius, "green")
        canvas.circles(targets[~found], 0.55 * radius, "red")
        for a in range(cfg.num_searchers):
            x, y = place[a].tolist()
            canvas.circle(x, y, 0.024 * size, fill="white")
            canvas.dart(x, y, float(heading[a]), 0.022 * size, fill=CYCLE[a % len(CYCLE)])
        canvas.hud(
            left=f"{int(found.sum())} of {cfg.num_targets} targets found", right=f"step {int(state['elapsed_steps'])}"
        )
