"""TagGridWorld."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas, fade


@dataclasses.dataclass(frozen=True)
class TagGridWorldConfig(Config):
    """The constants of WarpDrive's TagGridWorld, and how an episode starts."""

    num_taggers: int = param(10, low=1, high=1023, doc="taggers that chase the runner")
    grid_length: int = param(10, low=1, high=30000, doc="largest coordinate: there are (grid_length + 1)² cells")
    wall_hit_penalty: float = param(0.1, doc="taken from the reward of an agent that runs into a wall")
    tag_reward_for_tagger: float = param(10.0, doc="reward of every tagger in the step in which the runner is tagged")
    tag_penalty_for_runner: float = param(2.0, doc="taken from the runner's reward when it is tagged")
    step_cost_for_tagger: float = param(0.01, doc="what each other step costs a tagger and gives the runner")
    use_full_observation: bool = param(True, doc="whether agents see everybody, or just the opponent")
    start: Literal["fixed", "random"] = param(
        "fixed", doc="taggers in the middle, or in places that are drawn for every env and episode"
    )


class TagGridWorld(EnvDef):
    """Taggers chase one runner over a grid; the chase ends as soon as one of them stands on the runner's cell.

    Coordinates go from 0 to `grid_length`, both included. All agents move at once and may share cells. Agents are the
    taggers (`tagger_0`, ...) and then `runner_0`.

    **Start.** The runner begins in the corner (0, 0). With `start="fixed"`, WarpDrive's default, all taggers begin in
    the middle of the grid; with `start="random"` each begins on a cell away from the walls that is drawn for every env
    and every episode (WarpDrive draws such starts once, for all envs).

    **Actions.** `Discrete(5)`: 0 stays, 1 and 2 move right and left (x + 1, x - 1), 3 and 4 up and down (y + 1, y - 1).
    An action out of range counts as 0. A move into a wall leaves the agent where it is and costs `wall_hit_penalty`.

    **Observation.** float32. With `use_full_observation`, `Box(4 N + 1)` for N agents: x / grid_length of all agents, y
    / grid_length of all agents, their types (tagger 0, runner 1), a one-hot vector of the agent itself, and time /
    max_episode_steps. Without it, `Box(6)`: own x and y, the opponent's x and y, own type, time. A tagger's opponent is
    the runner; the runner's is the nearest tagger, the one with the lowest index on ties.

    **Reward.** In the step in which the runner is tagged every tagger gets `tag_reward_for_tagger` and the runner
    -`tag_penalty_for_runner`. In any other step a tagger gets -`step_cost_for_tagger` and the runner
    +`step_cost_for_tagger`. Wall hits count in all steps.

    **End.** The runner is tagged. Time limit: 100 steps.
    """

    id = "TagGridWorld-v0"
    Config = TagGridWorldConfig
    max_episode_steps = 100
    reference = "rl-warp-drive==2.7.1 example_envs TagGridWorld (recorded)"
    interaction = "competitive"
    links: ClassVar[Mapping[str, str]] = {
        "WarpDrive": "https://github.com/salesforce/warp-drive",
        "Lan et al. 2022": "https://arxiv.org/abs/2108.13976",
    }
    benchmarks = {
        "1000 agents, partial observation": {"num_taggers": 999, "grid_length": 100, "use_full_observation": False}
    }
    render_fps = 8

    def agents(self, cfg: TagGridWorldConfig) -> dict[str, int]:
        return {"tagger": cfg.num_taggers, "runner": 1}

    def lanes(self, cfg: TagGridWorldConfig) -> int:
        return min(256, max(32, 1 << cfg.num_taggers.bit_length()))

    def check(self, cfg: TagGridWorldConfig) -> None:
        if cfg.start == "random" and cfg.grid_length < 2:
            raise ValueError(
                "TagGridWorld: start='random' needs a grid_length of at least 2: no cell is off the walls."
            )

    def observation_space(self, cfg: TagGridWorldConfig, group: str) -> spaces.Box:
        size = 4 * (cfg.num_taggers + 1) + 1 if cfg.use_full_observation else 6
        return spaces.Box(0.0, 1.0, (size,), np.float32)

    def action_space(self, cfg: TagGridWorldConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(5)

    def observation_names(self, cfg: TagGridWorldConfig, group: str) -> dict[str, int]:
        if cfg.use_full_observation:
            n = cfg.num_taggers + 1
            places = {"x of all agents": n, "y of all agents": n, "types: tagger 0, runner 1": n}
            return places | {"the agent itself, one-hot": n, "time / max_episode_steps": 1}
        names = ("own x", "own y", "x of the opponent", "y of the opponent", "own type", "time / max_episode_steps")
        return dict.fromkeys(names, 1)

    def action_names(self, cfg: TagGridWorldConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("stay", "right (x + 1)", "left (x - 1)", "up (y + 1)", "down (y - 1)"), 1)

    def fields(self, cfg: TagGridWorldConfig) -> dict[str, Field]:
        return {
            "x": Field("int32", ("agents",), "column, 0..grid_length"),
            "y": Field("int32", ("agents",), "row, 0..grid_length"),
        }

    def render(self, cfg: TagGridWorldConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        x, y, cells = np.asarray(state["x"]), np.asarray(state["y"]), cfg.grid_length + 1
        canvas.background("paper")
        canvas.view(0, 0, cells, cells, pad=10, hud=True)
        canvas.rect(0, 0, cells, cells, fill="white")
        if cells <= 60:
            canvas.grid(cells, cells, colour="mist")
        else:
            canvas.rect(0, 0, cells, cells, outline="line")
        taggers = np.stack([x[:-1], y[:-1]], 1)
        places, counts = np.unique(taggers, axis=0, return_counts=True)
        gap = np.abs(taggers - [x[-1], y[-1]]).sum(1).min()
        caught = bool(gap == 0)
        size = max(0.36, cells / 120)  # at least visible on large grids
        canvas.circle(x[-1] + 0.5, y[-1] + 0.5, 2.6 * size, fill=fade("yellow" if caught else "blue", 0.25))
        canvas.circles(places + 0.5, size, "red", outline="white", width=1)
        for (px, py), count in zip(places.tolist(), counts.tolist(), strict=True):
            if count > 1 and cells <= 40 and (px, py) != (x[-1], y[-1]):
                canvas.text(px + 0.5, py + 0.5, str(count), height=0.8 * size, colour="white", bold=True)
        canvas.circle(x[-1] + 0.5, y[-1] + 0.5, 0.6 * size if caught else size, fill="blue", outline="white", width=1)
        distance = "tagged!" if caught else f"nearest tagger: {gap} {'step' if gap == 1 else 'steps'}"
        canvas.hud(left=f"taggers {cfg.num_taggers}, {distance}", right=f"step {int(state['elapsed_steps'])}")
