"""Simple World Comm."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.mpe.speech import action_space, draw_bubble, spoken
from gpuzoo.envs.mpe.world import BODIES, World, WorldConfig, draw_agent, draw_goal, draw_landmark, draw_plane, seen
from gpuzoo.render import Canvas, fade

MOVES, WORDS = 5, 4
ADVERSARY_RADIUS, GOOD_RADIUS, OBSTACLE_RADIUS, FOOD_RADIUS, FOREST_RADIUS = 0.075, 0.045, 0.2, 0.03, 0.3


@dataclasses.dataclass(frozen=True)
class SimpleWorldCommConfig(WorldConfig):
    """The options of MPE2's simple_world_comm."""

    num_good: int = param(2, low=1, high=64, doc="number of good agents, who look for food")
    num_adversaries: int = param(4, low=1, high=64, doc="number of adversaries, who hunt them; the first one leads")
    num_obstacles: int = param(1, low=0, high=64, doc="number of obstacles")
    num_food: int = param(2, low=1, high=64, doc="number of places with food")
    num_forests: int = param(2, low=0, high=32, doc="number of forests, which hide who is inside")


class SimpleWorldComm(World):
    """Adversaries hunt good agents, who look for food and hide in forests; the leader sees everything and calls.

    | | radius | acceleration | greatest speed |
    |---|---|---|---|
    | adversary, leader | 0.075 | 3 | 1 |
    | good agent | 0.045 | 4 | 1.3 |
    | obstacle | 0.2 | | |
    | food | 0.03 | | |
    | forest | 0.3 | | |

    Agents and obstacles are discs that push each other away when they touch; obstacles stay where they are, and
    everybody passes over food and forests, which stay too. Agents begin at rest, uniformly in [-1, 1]², all landmarks
    lie in [-0.9, 0.9]². Nothing bounds the plane. A step lasts 0.1 s, and a quarter of the velocity is lost per step.

    **Agents.** `leadadversary_0`, then `adversary_0` ... `adversary_<num_adversaries-2>`, then `agent_0` ...
    `agent_<num_good-1>`.

    **Actions.** `Discrete(5)`: 0 nothing, 1 left (-x), 2 right (+x), 3 down (-y), 4 up (+y), at full force. The
    leader's: `Discrete(20)`, `move + 5 word` with words 0 to 3. With `continuous_actions`, `Box(0, 1, (5,))`: the
    strengths of the same five moves, of which the first does nothing and opposite ones are subtracted, and for the
    leader `Box(0, 1, (9,))`: those and how loudly each of the four words is said. An action out of range counts as 0; a
    component of a Box is clipped.

    **Observation.** float32, `Box(34)` for adversaries and `Box(28)` for good agents by default:

    1. own velocity (2) and own position (2);
    2. the positions of the landmarks relative to the agent's (2 each): obstacles, food, forests;
    3. those of the other agents (2 each, in the order above), zeros for those it does not see;
    4. only good agents: for each forest 1 if the agent is in it, else -1;
    5. the velocities of the other good agents (2 each), zeros for those it does not see;
    6. only adversaries: for each forest 1 if the agent is in it, else -1;
    7. only adversaries: what the leader said (4): the one-hot vector of its word, or the last four components of its
       action with `continuous_actions`; before the first step zeros.

    An agent is in a forest when it touches it. Two agents see each other when both are in one forest, or when neither
    is in any. The leader sees everybody.

    **Reward.** Every adversary gets 5 for each pair of an adversary and a good agent that touch, and loses 0.1 times
    its distance from the nearest good agent. A good agent gets 2 for each food that it touches, -5 for each adversary
    that touches it, and loses 0.05 times its distance from the nearest food; for each coordinate x of its position it
    loses twice this: 0 where |x| < 0.9, 10 (|x| - 0.9) up to 1, and beyond that min(exp(2 |x| - 2), 10).

    **End.** Never: there is a time limit of 25 steps.

    Two bodies in exactly the same place do not push each other; in MPE2 they become NaN.
    """

    id = "SimpleWorldComm-v0"
    Config = SimpleWorldCommConfig
    observes_apart = True
    reference = "mpe2 simple_world_comm_v3"
    aliases = ("MPE_simple_world_comm_v3",)
    interaction = "mixed"
    links: ClassVar[Mapping[str, str]] = {"MPE2": "https://mpe2.farama.org/environments/simple_world_comm/"}
    exempt: ClassVar[Mapping[str, str]] = {
        "half_occupancy": "With 32 agents a thread takes 72 registers: seven blocks of 128 threads on an SM.",
    }
    benchmarks = {
        "24 hunt 8": {"num_adversaries": 24, "num_good": 8, "num_obstacles": 4, "num_food": 8, "num_forests": 8}
    }

    def agents(self, cfg: SimpleWorldCommConfig) -> dict[str, int]:
        followers = {"adversary": cfg.num_adversaries - 1} if cfg.num_adversaries > 1 else {}
        return {"leadadversary": 1} | followers | {"agent": cfg.num_good}

    def observation_space(self, cfg: SimpleWorldCommConfig, group: str) -> spaces.Box:
        others, good = cfg.num_adversaries + cfg.num_good - 1, group == "agent"
        landmarks = cfg.num_obstacles + cfg.num_food + cfg.num_forests
        prey, words = (cfg.num_good - 1, 0) if good else (cfg.num_good, WORDS)
        return seen(4 + 2 * (landmarks + others + prey) + cfg.num_forests + words)

    def action_space(self, cfg: SimpleWorldCommConfig, group: str) -> spaces.Space[Any]:
        return action_space(cfg.continuous_actions, MOVES, WORDS if group == "leadadversary" else 0)

    def constants(self, cfg: SimpleWorldCommConfig) -> dict[str, int]:
        return {"WORDS": WORDS, "LANDMARKS": cfg.num_obstacles + cfg.num_food + cfg.num_forests}

    def observation_names(self, cfg: SimpleWorldCommConfig, group: str) -> dict[str, int]:
        is_good = group == "agent"
        others = cfg.num_adversaries + cfg.num_good - 1
        inside = {"whether it is in each forest, 1 or -1": cfg.num_forests}
        names = {"own velocity, x and y": 2, "own position, x and y": 2}
        names["obstacles, food, forests, x and y of each, relative"] = 2 * (
            cfg.num_obstacles + cfg.num_food + cfg.num_forests
        )
        names["other agents, x and y of each, relative, 0 if hidden"] = 2 * others
        names |= inside if is_good else {}
        names["velocities of good agents, x and y of each, 0 if hidden"] = 2 * (cfg.num_good - is_good)
        names |= {} if is_good else inside | {"what the leader said, one-hot": WORDS}
        return {name: count for name, count in names.items() if count}

    def action_names(self, cfg: SimpleWorldCommConfig, group: str) -> dict[str, int]:
        return spoken(cfg.continuous_actions, MOVES, WORDS if group == "leadadversary" else 0)

    def fields(self, cfg: SimpleWorldCommConfig) -> dict[str, Field]:
        return BODIES | {
            "landmark": Field("float32", ("LANDMARKS", 2), doc="centres of the obstacles, the food and the forests"),
            "shelter": Field("uint32", ("agents",), doc="the forests in which each agent is, one bit for each"),
            "speech": Field("float32", ("leadadversarys", "WORDS"), doc="what the leader said in the last step"),
        }

    def render(self, cfg: SimpleWorldCommConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        agents = np.asarray(state["position"], np.float64)
        landmarks = np.asarray(state["landmark"], np.float64)
        obstacles, food, forests = np.split(landmarks, [cfg.num_obstacles, cfg.num_obstacles + cfg.num_food])
        hunters, prey = agents[: cfg.num_adversaries], agents[cfg.num_adversaries :]
        apart = np.linalg.norm(hunters[:, None] - prey[None], axis=-1)
        caught = (apart < ADVERSARY_RADIUS + GOOD_RADIUS).any(0)
        eating = np.linalg.norm(prey[:, None] - food[None], axis=-1) < GOOD_RADIUS + FOOD_RADIUS

        draw_plane(canvas, np.concatenate([agents, landmarks]), FOREST_RADIUS)
        canvas.circles(forests, FOREST_RADIUS, "#4cae7238", outline="#4cae7290")
        for xy in obstacles:
            draw_landmark(canvas, xy, OBSTACLE_RADIUS, "slate")
        for xy in food:
            draw_goal(canvas, xy, 2.5 * FOOD_RADIUS, "blue")
        for a, xy in enumerate(hunters):
            draw_agent(canvas, xy, state["velocity"][a], ADVERSARY_RADIUS, "purple" if a == 0 else "red")
        for a, xy in enumerate(prey):
            if caught[a]:
                canvas.circle(float(xy[0]), float(xy[1]), 0.1, fill=fade("yellow", 0.8))
            draw_agent(canvas, xy, state["velocity"][cfg.num_adversaries + a], GOOD_RADIUS, "green")
        draw_bubble(canvas, agents[0, 0] + 0.12, agents[0, 1] + 0.25, state["speech"][0], 0.22, "purple")
        canvas.hud(
            left=f"Simple World Comm   {int(caught.sum())} of {cfg.num_good} caught, {int(eating.sum())} eating",
            right=f"step {int(state['elapsed_steps'])}",
        )
