"""Simple Tag."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.mpe.world import BODIES, PartialConfig, World, draw_agent, draw_landmark, draw_plane, seen
from gpuzoo.render import Canvas

ADVERSARY_RADIUS, PREY_RADIUS, OBSTACLE_RADIUS = 0.075, 0.05, 0.2


@dataclasses.dataclass(frozen=True)
class SimpleTagConfig(PartialConfig):
    """The options of MPE2's simple_tag."""

    num_good: int = param(1, low=1, high=64, doc="number of good agents, the prey")
    num_adversaries: int = param(3, low=1, high=64, doc="number of adversaries, who hunt them")
    num_obstacles: int = param(2, low=0, high=64, doc="number of obstacles")
    prey_speed_factor: float = param(
        1.0, low=0.0, doc="the prey's greatest speed and acceleration are multiplied by it"
    )
    terminate_on_success: bool = param(False, doc="end the episode when all the prey is caught at the same time")


class SimpleTag(World):
    """Slow adversaries hunt good agents, who are faster, among obstacles.

    | | radius | acceleration | greatest speed |
    |---|---|---|---|
    | adversary | 0.075 | 3 | 1 |
    | good agent | 0.05 | 4 `prey_speed_factor` | 1.3 `prey_speed_factor` |
    | obstacle | 0.2 | | |

    All are discs that push each other away when they touch; obstacles stay where they are. Agents
    begin at rest, uniformly in [-1, 1]², obstacles lie in [-0.9, 0.9]². Nothing bounds the plane. A
    step lasts 0.1 s, and a quarter of the velocity is lost per step.

    **Agents.** `adversary_0` ... `adversary_<num_adversaries-1>`, then `agent_0` ...
    `agent_<num_good-1>`.

    **Actions.** `Discrete(5)`: 0 nothing, 1 left (-x), 2 right (+x), 3 down (-y), 4 up (+y), at
    full force. With `continuous_actions`, `Box(0, 1, (5,))`: the strengths of the same five, of
    which the first does nothing and opposite ones are subtracted. An action out of range counts as
    0; a component of a Box is clipped.

    **Observation.** float32: own velocity (2), own position (2), the obstacles' positions relative
    to the agent's (2 each), the other agents' (2 each, in the order above), and the velocities of
    the other good agents (2 each). By default that is `Box(16)` for adversaries and `Box(14)` for
    the good agent. With `num_landmark_neighbors` or `num_agent_neighbors` = k > 0 only the k nearest
    are seen, the nearest first, with zeros behind them if there are fewer than k; the velocities are
    then those of the same k agents, with zeros for adversaries.

    **Reward.** An adversary gets 10 for every pair of an adversary and a good agent that touch, so
    all get the same. A good agent gets -10 for every adversary that touches it, and loses for each
    coordinate x of its position: 0 where |x| < 0.9, 10 (|x| - 0.9) up to 1, and beyond that
    min(exp(2 |x| - 2), 10).

    **End.** Time limit: 25 steps. With `terminate_on_success`, also when every good agent is touched
    by an adversary at the same time, unless the time is up in the same step.

    A `prey_speed_factor` of 0.5, 0.75 and then 1 are the three stages of MPE2's curriculum:
    `set_params` changes it at any time. (MPE2 1.1.1 itself never leaves the first.) Two bodies in
    exactly the same place do not push each other; in MPE2 they become NaN.
    """

    id = "SimpleTag-v0"
    Config = SimpleTagConfig
    reference = "mpe2 simple_tag_v3"
    aliases = ("MPE_simple_tag_v3",)
    similar = (r"MPE_simple_facmac.*", r".*predator_prey.*")
    interaction = "competitive"
    links: ClassVar[Mapping[str, str]] = {"MPE2": "https://mpe2.farama.org/environments/simple_tag/"}
    benchmarks = {"32 hunt 8": {"num_adversaries": 32, "num_good": 8, "num_obstacles": 8}}

    def agents(self, cfg: SimpleTagConfig) -> dict[str, int]:
        return {"adversary": cfg.num_adversaries, "agent": cfg.num_good}

    def observation_space(self, cfg: SimpleTagConfig, group: str) -> spaces.Box:
        others = cfg.num_adversaries + cfg.num_good - 1
        prey = cfg.num_good - (group == "agent")
        places = (cfg.num_landmark_neighbors or cfg.num_obstacles) + (cfg.num_agent_neighbors or others)
        return seen(4 + 2 * places + 2 * (cfg.num_agent_neighbors or prey))

    def observation_names(self, cfg: SimpleTagConfig, group: str) -> dict[str, int]:
        good = cfg.num_good - (group == "agent")
        others = cfg.num_agent_neighbors or cfg.num_adversaries + cfg.num_good - 1
        counts = {
            "obstacles, x and y of each, relative": cfg.num_landmark_neighbors or cfg.num_obstacles,
            "other agents, x and y of each, relative": others,
            "velocities of good agents, x and y of each": cfg.num_agent_neighbors or good,
        }
        return {"own velocity, x and y": 2, "own position, x and y": 2} | {
            name: 2 * count for name, count in counts.items() if count
        }

    def fields(self, cfg: SimpleTagConfig) -> dict[str, Field]:
        return BODIES | {"landmark": Field("float32", ("num_obstacles", 2), doc="centres of the obstacles")}

    def render(self, cfg: SimpleTagConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        agents = np.asarray(state["position"], np.float64)
        obstacles = np.asarray(state["landmark"], np.float64)
        hunters, prey = agents[: cfg.num_adversaries], agents[cfg.num_adversaries :]
        apart = np.linalg.norm(hunters[:, None] - prey[None], axis=-1)
        touching = apart < ADVERSARY_RADIUS + PREY_RADIUS

        draw_plane(canvas, np.concatenate([agents, obstacles]), OBSTACLE_RADIUS)
        for xy in obstacles:
            draw_landmark(canvas, xy, OBSTACLE_RADIUS, "slate")
        for a, xy in enumerate(hunters):
            draw_agent(canvas, xy, state["velocity"][a], ADVERSARY_RADIUS, "red")
        for a, xy in enumerate(prey):
            if touching[:, a].any():
                canvas.circle(float(xy[0]), float(xy[1]), 0.1, fill="yellow")
            draw_agent(canvas, xy, state["velocity"][cfg.num_adversaries + a], PREY_RADIUS, "green")
        canvas.hud(
            left=f"Simple Tag   {int(touching.any(0).sum())} of {cfg.num_good} caught",
            right=f"step {int(state['elapsed_steps'])}",
        )
