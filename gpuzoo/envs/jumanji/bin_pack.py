"""BinPack."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.assets import kept
from gpuzoo.core.definition import Entities, Field, param
from gpuzoo.envs.jumanji.factored import Factored, FactoredConfig
from gpuzoo.envs.jumanji.instances import OfSizedInstances, Part, SizedConfig
from gpuzoo.render import CYCLE, Canvas, mix

COLUMNS = ("Item_Name", "Length", "Width", "Height", "Quantity")
#: Jumanji's toy: length, width and height of the items
TOY = (
    (2445, 1306, 1022), (3083, 1429, 549), (1950, 1301, 700), (3425, 321, 1022), (3083, 1165, 629), (2787, 2330, 200),
    (3425, 291, 1022), (2787, 1504, 157), (2787, 826, 157), (3425, 466, 363), (3083, 901, 549), (2787, 1029, 700),
    (1295, 1024, 1022), (2787, 2330, 121), (3083, 1165, 629), (3425, 466, 659), (3425, 663, 1022), (837, 1301, 700),
    (1150, 1024, 1022), (3425, 589, 1022),
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class BinPackConfig(FactoredConfig, SizedConfig):
    """The container, the items, and what is seen."""

    max_num_items: int = param(20, low=1, high=500, doc="items of the largest instance")
    max_num_ems: int = param(40, low=1, high=1000, doc="empty maximal spaces that are kept")
    obs_num_ems: int = param(40, low=1, high=1000, doc="the largest of them that are seen and may get an item")
    generator: Literal["random", "toy"] = param("random", doc="drawn items, or always the twenty of Jumanji's toy")
    split_num_same_items: int = param(2, low=1, high=100, doc="most items of equal size that an item is split into")
    split_eps: float = param(0.3, low=0.0, high=0.5, doc="share of an item at either end where it is not split")
    prob_split_one_item: float = param(
        0.7, low=0.0, high=1.0, doc="probability of a split into two items of unlike size, not into some of equal size"
    )
    reward: Literal["dense", "sparse"] = param("dense", doc="volume of each item, or of all of them at the end")
    normalize_dimensions: bool = param(True, doc="whether lengths are seen as parts of the container's")
    container_x: int = param(5870, low=1, high=32_000, doc="length of the container in mm")
    container_y: int = param(2330, low=1, high=32_000, doc="width of the container in mm")
    container_z: int = param(2200, low=1, high=32_000, doc="height of the container in mm")


class BinPack(Factored, OfSizedInstances):
    """Pack items into a container so that they fill it.

    An empty maximal space (EMS) is a box within the container that touches no item and lies in no larger such box. At
    first there is one, the container. Each step puts an item into the corner of an EMS with the lowest x, y and z.
    Items are never turned. Each EMS that the item cuts is replaced by what lies beside the item, along x, y and z,
    below and above it, without empty boxes and without those that lie in another one. New EMSs take the lowest free
    places among ``max_num_ems``; if there is none, as in Jumanji, each takes the first place.

    **Items.** The container is split at random. An axis is drawn, and an item with a probability that is proportional
    to its length along it. With ``prob_split_one_item`` it is split into two, anywhere but within ``split_eps`` of its
    length from an end; otherwise into 1 to ``split_num_same_items`` of equal length. That goes on until there are more
    than ``max_num_items`` - ``split_num_same_items`` items.

    **Instances.** ``instances`` is a dataset with `items`, (instances, max_num_items, 3): length, width and height in
    mm. Each episode takes one of them at random, or always the one that ``instance`` names. Instances may have fewer
    items: `size` of the dataset, (instances,), says how many; the first ones count. ``size`` does the same for drawn
    items. It may differ between envs, or be drawn anew for each episode by ``gpuzoo.Uniform``. ``instances`` may also
    be one of Jumanji's CSV files, with the columns Item_Name, Length, Width, Height and Quantity. ``generator="toy"``
    has Jumanji's 20 items, which fill the container; Jumanji takes ``max_num_ems=60`` for them.

    **Actions.** `Discrete(obs_num_ems max_num_items)`: ``max_num_items`` EMS + item, where EMSs are counted in the
    order in which they are seen. The action mask holds the items that are left, with the EMSs into which they fit. With
    ``action_form="parts"``, `MultiDiscrete([obs_num_ems, max_num_items])`; the mask then holds the numbers that are a
    part of any legal action.

    **Observation.** `Box(7 obs_num_ems + 5 max_num_items)`, float32: of each EMS x1, x2, y1, y2, z1, z2 and whether it
    exists, the largest one first; of each item its length, width and height, whether it exists, and whether it is
    packed. Lengths are parts of the container's, or mm without ``normalize_dimensions``.

    **Reward.** The volume of the item as a share of the container's. With ``reward="sparse"``, that of all packed items
    at the end. An illegal action gives 0, or with "sparse" the share that is packed.

    **End.** There is no legal action left, or the action was illegal, which changes nothing.

    **In Jumanji** an action is given in parts and the mask holds whole actions.
    """

    id = "BinPack-v2"
    Config = BinPackConfig
    exempt: ClassVar[Mapping[str, str]] = {
        "half_occupancy": "One thread compares boxes of six numbers each; with half of its registers it would spill.",
    }
    invalid_action = -1
    action_mask = True
    chooses = True
    reference = "jumanji==1.1.2 BinPack-v2"
    links: ClassVar[Mapping[str, str]] = {"Jumanji": "https://instadeepai.github.io/jumanji/environments/bin_pack/"}
    similar = (r"[Bb]in[-_]?[Pp]ack.*",)
    render_fps = 4

    @classmethod
    def parameters_of(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        given = options.get("instances")
        if isinstance(given, (str, Path)) and Path(given).suffix == ".csv":
            largest = int(options.get("max_num_items", cls.Config().max_num_items))
            return {**options, "instances": str(kept(read_csv(Path(given), largest)))}
        return super().parameters_of(options)

    def largest(self, cfg: BinPackConfig) -> int:
        return cfg.max_num_items

    def parts(self, cfg: BinPackConfig) -> dict[str, Part]:
        return {**super().parts(cfg), "items": Part((cfg.max_num_items, 3), "int32", 0, 32_000)}

    def fault(self, cfg: BinPackConfig, instance: Mapping[str, NDArray[Any]]) -> str:
        return "" if (instance["items"][: instance["size"]] > 0).all() else "lengths must be above 0"

    def check(self, cfg: BinPackConfig) -> None:
        super().check(cfg)
        if cfg.obs_num_ems > cfg.max_num_ems:
            raise ValueError(f"{self.id}: obs_num_ems must not be above max_num_ems.")
        smallest = int(cfg.size) or cfg.max_num_items
        if cfg.split_num_same_items > smallest:
            raise ValueError(f"{self.id}: split_num_same_items must not be above the number of items, {smallest}.")
        if cfg.generator == "toy" and (cfg.max_num_items != len(TOY) or cfg.instances):
            raise ValueError(f"{self.id}: generator='toy' needs max_num_items={len(TOY)} and takes no instances.")

    def constants(self, cfg: BinPackConfig) -> dict[str, int]:
        own = {"TRIES": 100 + 20 * cfg.max_num_items}
        for prefix, most in (("", cfg.max_num_items), ("SPACE_", cfg.max_num_ems)):
            words = -(-most // 64)
            own |= {f"{prefix}WORDS": words, f"{prefix}SLOTS": most if words == 1 else 64 * words}
        return {**super().constants(cfg), **own, **({"INSTANCES": 1} if cfg.generator == "toy" else {})}

    def tables(self, cfg: BinPackConfig) -> dict[str, NDArray[Any]]:
        if cfg.generator != "toy":
            return super().tables(cfg)
        return {"given_size": np.array([len(TOY)], np.int32), "given_items": np.array(TOY, np.int32).reshape(-1)}

    def observation_space(self, cfg: BinPackConfig, group: str) -> spaces.Box:
        sides = [cfg.container_x, cfg.container_y, cfg.container_z]
        x, y, z = [1, 1, 1] if cfg.normalize_dimensions else sides
        largest: float = np.inf if cfg.instances or cfg.generator == "toy" else 1  # of items, which need not fit
        high: list[float] = [x, x, y, y, z, z, 1] * cfg.obs_num_ems
        high += [largest * x, largest * y, largest * z, 1, 1] * cfg.max_num_items
        return spaces.Box(np.zeros(len(high), np.float32), np.array(high, np.float32), dtype=np.float32)

    def entities(self, cfg: BinPackConfig, group: str) -> Entities:
        return Entities(cfg.obs_num_ems, (7,), partners=Entities(cfg.max_num_items, (5,)))

    def factors(self, cfg: BinPackConfig) -> list[int]:
        return [cfg.obs_num_ems, cfg.max_num_items]

    def observation_names(self, cfg: BinPackConfig, group: str) -> dict[str, int]:
        return {
            "x1, x2, y1, y2, z1, z2 of each space, whether it exists": 7 * cfg.obs_num_ems,
            "length, width and height of each item, whether it exists, whether it is packed": 5 * cfg.max_num_items,
        }

    def action_names(self, cfg: BinPackConfig, group: str) -> dict[str, int]:
        if cfg.action_form == "parts":
            return dict.fromkeys(("space", "item"), 1)
        return {f"item for space {k + 1}": cfg.max_num_items for k in range(cfg.obs_num_ems)}

    def fields(self, cfg: BinPackConfig) -> dict[str, Field]:
        items, ems = "max_num_items", "max_num_ems"
        return {
            "size": Field("int32", doc="number of items, or the most if they are drawn"),
            "items": Field("int16", (items, 3), "length, width and height of each item in mm"),
            "items_mask": Field("bool", (items,), "whether each item exists"),
            "items_placed": Field("bool", (items,), "whether each item is in the container"),
            "items_location": Field("int16", (items, 3), "x, y and z of each packed item"),
            "ems": Field("int16", (ems, 6), "x1, x2, y1, y2, z1, z2 of each empty maximal space"),
            "ems_mask": Field("bool", (ems,), "whether each space exists"),
            "sorted_ems": Field("int16", (ems,), "numbers of the spaces, the largest one first"),
            "fitting": Field("uint64", ("obs_num_ems", "WORDS"), "items that fit into each space seen, a bit for each"),
            "sides": Field("int16", (3, "SLOTS"), "length, width and height of each item that is left", scratch=True),
            "volume": Field("float32", (ems,), "volume of each space", scratch=True),
            "edges": Field("int16", (6, "SPACE_SLOTS"), "of the spaces, while an item is packed", scratch=True),
            "free_spaces": Field("uint64", ("SPACE_WORDS",), "those that do not exist, a bit for each", scratch=True),
            "split_ems": Field("int16", (ems, 6), "spaces that an item splits", scratch=True),
            "held_parts": Field("int8", (ems,), "of each of them the parts within parts of others", scratch=True),
            "parts": Field("int16", (items, 6), "items where they are in the full container", scratch=True),
        }

    def infos(self, cfg: BinPackConfig, state: Mapping[str, Any]) -> Mapping[str, Any]:
        packed, items = (state["items_placed"] != 0).sum(1), (state["items_mask"] != 0).sum(1)
        return {
            "packed_items": packed, "ratio_packed_items": packed / items, "solved": packed == items,
            "active_ems": (state["ems_mask"] != 0).sum(1),
        }  # fmt: skip

    def aspect(self, cfg: BinPackConfig) -> float:
        return 1.5

    def render(self, cfg: BinPackConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        whole = np.array([cfg.container_x, cfg.container_y, cfg.container_z], float)
        items = np.asarray(state["items"], float)
        placed, exists = np.asarray(state["items_placed"]) != 0, np.asarray(state["items_mask"]) != 0
        corners = _seen(np.array(np.meshgrid(*[[0.0, side] for side in whole])).reshape(3, -1).T)
        low, high = corners.min(0), corners.max(0)
        width, height = high - low
        canvas.background("paper")
        canvas.view(
            low[0] - 0.03 * width, low[1] - 0.03 * width, high[0] + 0.03 * width, high[1] + 0.42 * height,
            y_down=True, hud=True,
        )  # fmt: skip
        _edges(canvas, whole, behind=True)
        at = np.asarray(state["items_location"], float)
        for item in _from_behind(at, at + items, np.flatnonzero(placed)):
            _box(canvas, at[item], items[item], CYCLE[item % len(CYCLE)])
        _edges(canvas, whole, behind=False)
        left = np.flatnonzero(exists & ~placed)
        columns = max(10, -(-len(items) // 2))
        pitch, largest = width / columns, items[exists].max(0, initial=1.0)
        scale = min(0.9 * pitch / (largest @ [0.87, 0.62, 0.0]), 0.17 * height / (largest @ [0.22, 0.42, 0.9]))
        for place, item in enumerate(left.tolist()):
            row, column = divmod(place, columns)
            corner = np.array([low[0] + pitch * (column + 0.05), high[1] + height * (0.18 + 0.2 * row)])
            _box(canvas, np.zeros(3), items[item] * scale, CYCLE[item % len(CYCLE)], corner)
        volume = float((items.prod(1) * placed).sum() / whole.prod())
        canvas.hud(left=f"{int(placed.sum())} of {int(exists.sum())} items", right=f"{volume:.0%} of the container")


def _seen(points: NDArray[Any]) -> NDArray[Any]:
    """Points x, y, z in the picture, from the front on the right and from above."""
    x, y, z = points[..., 0], points[..., 1], points[..., 2]
    return np.stack([0.87 * x + 0.62 * y, 0.22 * x - 0.42 * y - 0.9 * z], -1)


def _box(canvas: Canvas, at: NDArray[Any], size: NDArray[Any], colour: str, offset: NDArray[Any] | float = 0.0) -> None:
    """A box: its upper side, its front (low y) and its side at low x or high x, whichever is seen."""
    (x0, y0, z0), (x1, y1, z1) = at, at + size
    faces = (
        ([[x0, y0, z1], [x1, y0, z1], [x1, y1, z1], [x0, y1, z1]], mix(colour, "white", 0.35)),
        ([[x0, y0, z0], [x1, y0, z0], [x1, y0, z1], [x0, y0, z1]], colour),
        ([[x1, y0, z0], [x1, y1, z0], [x1, y1, z1], [x1, y0, z1]], mix(colour, "black", 0.2)),
    )
    for face, fill in faces:
        corners = _seen(np.array(face)) + offset
        canvas.polygon(corners, fill=fill, outline="ink", width=1.0)


def _edges(canvas: Canvas, whole: NDArray[Any], *, behind: bool) -> None:
    """The container's edges, those behind the items or before them."""
    x, y, z = whole
    hidden, near = [0, y, 0], [x, 0, z]
    corner, rest = (hidden, [[x, y, 0], [0, 0, 0], [0, y, z]]) if behind else (near, [[0, 0, z], [x, y, z], [x, 0, 0]])
    if behind:
        for face in ([[0, 0, 0], [x, 0, 0], [x, y, 0], [0, y, 0]], [[0, y, 0], [x, y, 0], [x, y, z], [0, y, z]],
                     [[0, 0, 0], [0, y, 0], [0, y, z], [0, 0, z]]):  # fmt: skip
            canvas.polygon(_seen(np.array(face, float)), fill="white", outline="line", width=1.5)
    for end in rest:
        a, b = _seen(np.array([corner, end], float))
        canvas.line(*a, *b, colour="line" if behind else "slate", width=1.5)


def _from_behind(low: NDArray[Any], high: NDArray[Any], items: NDArray[Any]) -> list[int]:
    """Items in an order in which each may cover those before it."""

    def is_behind(one: int, other: int) -> bool:
        return bool(low[one, 1] >= high[other, 1] or high[one, 0] <= low[other, 0] or high[one, 2] <= low[other, 2])

    left, out = [int(k) for k in items], []
    while left:
        first = next((one for one in left if all(is_behind(one, k) for k in left if k != one)), left[0])
        left.remove(first)
        out.append(first)
    return out


def read_csv(path: Path, largest: int) -> dict[str, NDArray[np.int32]]:
    """One instance from a file of Jumanji's form.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: other columns, or more items than fit.
    """
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    if tuple(header) != COLUMNS:
        raise ValueError(f"BinPack-v2: {path} must have the columns {', '.join(COLUMNS)}, not {', '.join(header)}.")
    items = [[int(side) for side in row[1:4]] for row in rows for _ in range(int(row[4]))]
    if not 1 <= len(items) <= largest:
        raise ValueError(f"BinPack-v2: {path} has {len(items)} items, and max_num_items is {largest}.")
    padded = np.zeros((1, largest, 3), np.int32)
    padded[0, : len(items)] = items
    return {"items": padded, "size": np.array([len(items)], np.int32)}
