"""Knapsack."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Entities, Field, param
from gpuzoo.envs.jumanji.instances import OfSizedInstances, Part, SizedConfig, members
from gpuzoo.render import Canvas


@dataclasses.dataclass(frozen=True)
class KnapsackConfig(SizedConfig):
    """The items and the knapsack, and what is rewarded."""

    num_items: int = param(50, low=1, high=1000, doc="items of the largest instance")
    total_budget: float = param(12.5, low=0.0, doc="weight that the knapsack holds")
    reward: Literal["dense", "sparse"] = param("dense", doc="when values are paid: at each step, or at the end")


class Knapsack(OfSizedInstances):
    """Pack items into a knapsack that holds a limited weight; they should be worth as much as possible.

    Each step packs an item. Weights and values are drawn uniformly from [0, 1), or given.

    **Instances.** ``instances`` is a dataset with `weights` and `values`, (instances, num_items) each, in [0, 1]. Each
    episode takes one of them at random, or always the one that ``instance`` names. Instances may be smaller than
    ``num_items``: `size` of the dataset, (instances,), says how many items there are; the first ones count. ``size``
    does the same for drawn instances. It and ``total_budget`` may differ between envs, or be drawn anew for each
    episode by ``gpuzoo.Uniform``. Absent items have the weight and value -1, and are never legal.

    **Actions.** `Discrete(num_items)`: the item to pack. The action mask holds the unpacked items that still fit in.

    **Observation.** `Box(3 num_items)`, float32: weight of each item; value of each item; whether it is packed.

    **Reward.** The item's value. With ``reward="sparse"`` only the last step is paid, with the value of all packed
    items. An illegal action gives 0.

    **End.** No item fits in, or the action was illegal, which changes nothing.
    """

    id = "Knapsack-v1"
    Config = KnapsackConfig
    exempt: ClassVar[Mapping[str, str]] = {
        "rows_are_stored_in_few_sectors": "Masks are no whole sectors; rows are long, so few envs observe at a time.",
    }
    invalid_action = -1
    action_mask = True
    chooses = True
    reference = "jumanji==1.1.2 Knapsack-v1"
    links: ClassVar[Mapping[str, str]] = {
        "Jumanji": "https://instadeepai.github.io/jumanji/environments/knapsack/",
        "Kwon et al. 2020": "https://arxiv.org/abs/2010.16011",
    }
    similar = (r"[Kk]napsack.*",)
    benchmarks: ClassVar[Mapping[str, Mapping[str, Any]]] = {"200 items": {"num_items": 200, "total_budget": 25.0}}
    render_fps = 4

    def largest(self, cfg: KnapsackConfig) -> int:
        return cfg.num_items

    def parts(self, cfg: KnapsackConfig) -> dict[str, Part]:
        part = Part((cfg.num_items,), low=0.0, high=1.0)
        return {**super().parts(cfg), "weights": part, "values": part}

    def constants(self, cfg: KnapsackConfig) -> dict[str, int]:
        return {**super().constants(cfg), "WORDS": -(-cfg.num_items // 64)}

    def observation_space(self, cfg: KnapsackConfig, group: str) -> spaces.Box:
        low = np.repeat(np.array([-1, -1, 0], np.float32), cfg.num_items)
        return spaces.Box(low, np.ones_like(low), dtype=np.float32)

    def action_space(self, cfg: KnapsackConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(cfg.num_items)

    def observation_names(self, cfg: KnapsackConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("weight of each item", "value of each item", "whether it is packed"), cfg.num_items)

    def action_names(self, cfg: KnapsackConfig, group: str) -> dict[str, int]:
        return {"item": cfg.num_items}

    def entities(self, cfg: KnapsackConfig, group: str) -> Entities:
        return Entities(cfg.num_items, (1, 1, 1))

    def fields(self, cfg: KnapsackConfig) -> dict[str, Field]:
        return {
            "weights": Field("float32", ("num_items",), "weight of each item, -1 where there is none"),
            "values": Field("float32", ("num_items",), "value of each item, -1 where there is none"),
            "size": Field("int32", doc="number of items"),
            "packed": Field("uint64", ("WORDS",), "packed items, a bit for each"),
            "fitting": Field("uint64", ("WORDS",), "unpacked items that fit in, a bit for each"),
            "heaviest": Field("float32", doc="largest weight of all items"),
            "remaining_budget": Field("float32", doc="weight that the knapsack still holds"),
        }

    def render(self, cfg: KnapsackConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        size = int(state["size"])
        weights, values = np.asarray(state["weights"])[:size], np.asarray(state["values"])[:size]
        packed = members(np.asarray(state["packed"]), size)
        fitting = members(np.asarray(state["fitting"]), size)
        remaining = float(state["remaining_budget"])
        used = float(weights[packed].sum())
        canvas.background("paper")
        canvas.view(-0.12, -0.1, 1.04, 1.2, hud=True)
        canvas.rect(0, 0, 1, 1, fill="white", outline="line")
        canvas.text(0.5, -0.055, "weight", size=10, colour="slate")
        canvas.text(-0.06, 0.5, "value", size=10, colour="slate")
        radius = max(0.008, 0.02 * min(1.0, 50 / size))
        for k in np.argsort(packed, kind="stable"):
            colour = "green" if packed[k] else "blue" if fitting[k] else "line"
            canvas.circle(float(weights[k]), float(values[k]), radius, fill=colour)
        whole = used + remaining
        if whole > 0:
            canvas.rect(0, 1.07, 1, 1.15, fill="mist", radius=0.02)
            at = 0.0
            for weight in weights[packed]:
                end = at + float(weight) / whole
                canvas.rect(at, 1.07, end, 1.15, fill="green", outline="white", width=0.8)
                at = end
        canvas.hud(left=f"value {values[packed].sum():.2f}", right=f"weight {used:.2f} of {whole:.2f}")

    def presses(self, cfg: KnapsackConfig, state: Mapping[str, NDArray[Any]], action: int) -> list[tuple[float, float]]:
        return [(float(state["weights"][action]), float(state["values"][action]))]
