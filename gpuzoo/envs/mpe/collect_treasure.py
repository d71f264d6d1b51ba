"""Collect Treasure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.mpe.world import BODIES, World, WorldConfig, draw_agent, draw_plane, seen
from gpuzoo.render import Canvas, fade

COLLECTOR_RADIUS, DEPOSIT_RADIUS, TREASURE_RADIUS = 0.05, 0.075, 0.025
COLOURS = ("blue", "orange", "green", "red", "purple", "brown")  # of the kinds of treasure


@dataclasses.dataclass(frozen=True)
class CollectTreasureConfig(WorldConfig):
    """The options of MPE2's collect_treasure."""

    num_collectors: int = param(6, low=1, high=64, doc="number of collectors")
    num_deposits: int = param(2, low=1, high=6, doc="number of deposits, each for its own kind of treasure")
    num_treasures: int = param(6, low=1, high=64, doc="number of treasures")


class CollectTreasure(World):
    """Collectors carry treasures to moving deposits, each of which takes one kind of treasure.

    | | radius | mass |
    |---|---|---|
    | collector | 0.05 | 1 |
    | deposit | 0.075 | 2.25 |
    | treasure | 0.025 | |

    Agents are discs that pass through each other. They begin at rest, uniformly in [-1, 1]²; treasures lie in
    [-0.95, 0.95]², and there are as many kinds of treasure as deposits. Nothing bounds the plane. A step lasts 0.1 s; a
    motor's full force is 1.5, the greatest speed 1, and a quarter of the velocity is lost per step.

    After the agents have moved, one treasure after the other is looked at. If it lies there, the first collector that
    touches it and holds nothing takes it up. If it was taken up in an earlier step, it appears at a new place, with a
    kind drawn anew (and cannot be taken up in that step). Then every collector that touches the deposit for what it
    holds hands it over, and holds nothing again.

    **Agents.** `collector_0` ... `collector_<num_collectors-1>`, then `deposit_0` ... `deposit_<num_deposits-1>`.
    Deposit k takes the treasures of kind k.

    **Actions.** `Discrete(5)`: 0 nothing, 1 left (-x), 2 right (+x), 3 down (-y), 4 up (+y), at full force. With
    `continuous_actions`, `Box(0, 1, (5,))`: the strengths of the same five, of which the first does nothing and
    opposite ones are subtracted. An action out of range counts as 0; a component of a Box is clipped.

    **Observation.** float32. With n kinds of treasure, of which a one-hot vector (n) is zeros where there is none:

    1. own position (2) and own velocity (2);
    2. only collectors: what it holds (n);
    3. the other agents, the nearest first: position relative to the agent's (2), velocity (2), the kind that it takes
       (n, for deposits), the kind that it holds (n, for collectors);
    4. the treasures, the nearest first: position relative to the agent's (2), kind (n). One that is taken up comes
       last, and is zeros.

    By default that is `Box(86)` for collectors and `Box(84)` for deposits.

    **Reward.** Everybody gets 5 for each treasure that was taken up, and 5 for each that was handed over. A collector
    gets -5 for each other collector that it overlaps, and loses 0.1 times its distance from the nearest treasure that
    lies there, or from the deposit for what it holds. A deposit loses 0.1 times its distance from the nearest collector
    that holds its kind, or from the centre of all collectors if none does.

    **End.** Never: there is a time limit of 25 steps.
    """

    id = "CollectTreasure-v0"
    Config = CollectTreasureConfig
    reference = "mpe2 collect_treasure_v1"
    interaction = "cooperative"
    links: ClassVar[Mapping[str, str]] = {"MPE2": "https://mpe2.farama.org/environments/collect_treasure/"}

    def agents(self, cfg: CollectTreasureConfig) -> dict[str, int]:
        return {"collector": cfg.num_collectors, "deposit": cfg.num_deposits}

    def observation_space(self, cfg: CollectTreasureConfig, group: str) -> spaces.Box:
        kinds = cfg.num_deposits
        others = (cfg.num_collectors + cfg.num_deposits - 1) * (4 + 2 * kinds)
        return seen(4 + kinds * (group == "collector") + others + cfg.num_treasures * (2 + kinds))

    def constants(self, cfg: CollectTreasureConfig) -> dict[str, int]:
        return {"TREASURES": cfg.num_treasures}

    def observation_names(self, cfg: CollectTreasureConfig, group: str) -> dict[str, int]:
        n, collects = cfg.num_deposits, group == "collector"
        names = {"own position, x and y": 2, "own velocity, x and y": 2} | (
            {"what it holds, one-hot": n} if collects else {}
        )
        others = cfg.num_collectors + n - 1
        if others:
            each = "other agents, the nearest first: place, velocity, the kind it takes, the kind it holds"
            names[each] = others * (4 + 2 * n)
        return names | {"treasures, the nearest first: place, kind": cfg.num_treasures * (2 + n)}

    def fields(self, cfg: CollectTreasureConfig) -> dict[str, Field]:
        return BODIES | {
            "landmark": Field("float32", ("TREASURES", 2), doc="positions of the treasures"),
            "present": Field("bool", ("TREASURES",), doc="whether each treasure lies there"),
            "kind": Field("int8", ("TREASURES",), doc="kinds of the treasures"),
            "holding": Field(
                "int8", ("collectors",), doc="the kind of treasure that each collector holds, -1 for none"
            ),
            "deals": Field("int32", doc="treasures taken up and handed over in the last step"),
        }

    def render(self, cfg: CollectTreasureConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        agents = np.asarray(state["position"], np.float64)
        collectors, deposits = np.split(agents, [cfg.num_collectors])
        there = np.asarray(state["present"], bool)
        treasures = np.asarray(state["landmark"], np.float64)[there]
        kinds = [COLOURS[int(k) % 6] for k in np.asarray(state["kind"])[there]]
        draw_plane(canvas, np.concatenate([agents, treasures]), DEPOSIT_RADIUS)
        for d, (x, y) in enumerate(deposits):
            canvas.rect(x - 0.1, y - 0.1, x + 0.1, y + 0.1, fill=fade(COLOURS[d], 0.2), radius=0.03)
            draw_agent(canvas, deposits[d], state["velocity"][cfg.num_collectors + d], DEPOSIT_RADIUS, COLOURS[d])
        for (x, y), colour in zip(treasures, kinds, strict=True):
            canvas.darts([(x, y)] * 2, [np.pi / 2, -np.pi / 2], 1.6 * TREASURE_RADIUS, colour)
        for a, (x, y) in enumerate(collectors):
            held = int(state["holding"][a])
            draw_agent(canvas, collectors[a], state["velocity"][a], COLLECTOR_RADIUS, "slate")
            if held >= 0:
                canvas.circle(x, y, 1.2 * TREASURE_RADIUS, fill=COLOURS[held % 6], outline="white", width=1)
        canvas.hud(
            left=f"Collect Treasure   {int((np.asarray(state['holding']) >= 0).sum())} of {cfg.num_collectors} loaded",
            right=f"step {int(state['elapsed_steps'])}",
        )
