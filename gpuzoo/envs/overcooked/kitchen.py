"""Kitchens: layouts with their orders, by name or as text, and the tables that the rules read."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.assets import Asset
from gpuzoo.core.definition import Config
from gpuzoo.core.suggestions import unknown

LAYOUTS = Asset(
    Path(__file__).with_name("layouts.json"),
    size=11424,
    sha256="104f89f484949ea04e10256303b39e1afc469d9d7eef80d12a7f7508f95f5ab2",
    licence="MIT, Center for Human-Compatible AI (overcooked-ai); those of JaxMARL Apache-2.0, its authors",
)
TERRAIN = " XPOTDS"  # floor, counter, pot, onions, tomatoes, dishes, serving: as in the rules
FLOOR, COUNTER, POT = range(3)
HELD = {None: 0, "onion": 1, "tomato": 2, "dish": 3}
STATIC = (POT, COUNTER, 3, 4, 5, 6)  # in the order of their channels
RECIPES = [(onions, tomatoes) for onions in range(4) for tomatoes in range(4) if 1 <= onions + tomatoes <= 3]
DEFAULT_VALUE, DEFAULT_TIME, DEFAULT_BONUS = 20, 20, 2
LARGEST_TIME = 127

Recipe = tuple[int, int]


@functools.cache
def layouts() -> dict[str, dict[str, Any]]:
    """The known layouts by name."""
    known: dict[str, dict[str, Any]] = json.loads(LAYOUTS.read())
    return known


def code(recipe: Recipe) -> int:
    """The number of a recipe in the rules."""
    return recipe[0] + 4 * recipe[1]


def foods(recipe: int) -> tuple[int, ...]:
    """A recipe's ingredients: 0 for each onion, 1 for each tomato."""
    return (0,) * (recipe & 3) + (1,) * (recipe >> 2)


def thing(number: int) -> tuple[tuple[int, ...], bool]:
    """The ingredients of what the rules give a number, and whether they are on a plate."""
    return (foods(number - 16), True) if number >= 16 else ({1: (0,), 2: (1,)}.get(number, ()), number == 3)


@dataclasses.dataclass(frozen=True)
class Kitchen:
    """What a configuration's layout and orders come to.

    Attributes:
        terrain: (rows, columns), an index into `TERRAIN` for each cell.
        cells: where the players begin, row * columns + column.
        orientations: where they look then: 0 north, 1 south, 2 east, 3 west.
        held: what they hold then.
        pots: what is in the pots then, as codes of recipes, in reading order.
        value: (16,) float32, what the delivery of each recipe is worth, by code; 0 for those that nobody orders.
        time: (16,) int32, steps that each recipe cooks.
    """

    terrain: NDArray[np.int32]
    cells: list[int]
    orientations: list[int]
    held: list[int]
    pots: list[int]
    value: NDArray[np.float32]
    time: NDArray[np.int32]

    def where(self, kind: int) -> NDArray[np.int32]:
        """Cells of a kind, in reading order."""
        return np.flatnonzero(self.terrain == kind).astype(np.int32)

    @property
    def floor(self) -> NDArray[np.int32]:
        return self.where(FLOOR)


def _refuse(what: str) -> ValueError:
    return ValueError(f"Overcooked: {what}")


def _grid(text: str) -> tuple[NDArray[np.int32], list[int]]:
    """Terrain and start cells of lines of text.

    Raises:
        ValueError: lines of different lengths, other characters, floor at the edge, missing players or facilities.
    """
    lines = [line.strip() for line in text.strip("\n").replace("/", "\n").split("\n")]
    lines = [line for line in lines if line]
    if len({len(line) for line in lines}) != 1:
        raise _refuse("the lines of the layout must be of the same length.")
    rows, columns, cells = len(lines), len(lines[0]), "".join(lines)
    digits = sorted(c for c in cells if c.isdigit())
    if set(cells) - set(TERRAIN) - set(digits):
        raise _refuse("a layout consists of X (counter), P (pot), O (onions), T (tomatoes), D (dishes), S (serving), "
                      "spaces (floor) and digits (players).")  # fmt: skip
    if not digits or digits != [str(k + 1) for k in range(len(digits))]:
        raise _refuse(f"the players of a layout are the digits 1, 2, ..., each once, not {' '.join(digits) or 'none'}.")
    bare = re.sub("[0-9]", " ", cells)
    terrain = np.array([TERRAIN.index(c) for c in bare], np.int32).reshape(rows, columns)
    if not (terrain[[0, -1]].all() and terrain[:, [0, -1]].all()):
        raise _refuse("there must be no floor at the edge of a layout.")
    missing = [c for c in "PDS" if c not in bare] + ([] if set("OT") & set(bare) else ["O or T"])
    if missing:
        raise _refuse(f"the layout has no {', '.join(missing)}.")
    return terrain, [cells.index(digit) for digit in digits]


def _recipes(text: str, what: str) -> list[Recipe]:
    """Recipes from words like OOT.

    Raises:
        ValueError: other letters, more than three of them, or a recipe that comes twice.
    """
    words = text.upper().replace(",", " ").split()
    if any(not re.fullmatch("[OT]{1,3}", word) for word in words):
        raise _refuse(f"{what} are words of one to three letters O and T, such as 'OOO OT', not {text!r}.")
    recipes = [(word.count("O"), word.count("T")) for word in words]
    if len(set(recipes)) < len(recipes):
        raise _refuse(f"{what} must not name a recipe twice: {text!r}.")
    return recipes


def _numbers(text: str, orders: list[Recipe], what: str) -> dict[Recipe, int]:
    try:
        numbers = [int(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise _refuse(f"{what} are whole numbers, such as '20 9', not {text!r}.") from None
    if len(numbers) != len(orders):
        raise _refuse(f"{what} must be as many as all_orders, {len(orders)}, not {len(numbers)}.")
    return dict(zip(orders, numbers, strict=True))


def _rated(given: dict[str, Any], orders: list[Recipe], names: tuple[str, str, str, str], usual: int) -> list[int]:
    """A number for each of `RECIPES`: one for all, one for each order, or a sum over ingredients.

    Raises:
        ValueError: more than one of these ways, or one ingredient without the other.
    """
    for_all, each, onion, tomato = names
    ways = [way for way in ((for_all,), (each,), (onion, tomato)) if any(given.get(name) for name in way)]
    if len(ways) > 1:
        raise _refuse(f"choose one of {for_all}, {each}, and {onion} with {tomato}.")
    if given.get(for_all):
        return [given[for_all]] * len(RECIPES)
    if given.get(each):
        listed = _numbers(given[each], orders, each)
        return [listed.get(recipe, usual) for recipe in RECIPES]
    if bool(given.get(onion)) != bool(given.get(tomato)):
        raise _refuse(f"{onion} and {tomato} must be given together.")
    if given.get(onion):
        return [onions * given[onion] + tomatoes * given[tomato] for onions, tomatoes in RECIPES]
    return [usual] * len(RECIPES)


VALUES = ("delivery_reward", "recipe_values", "onion_value", "tomato_value")
TIMES = ("cook_time", "recipe_times", "onion_time", "tomato_time")


def _settings(cfg: Any, own: dict[str, Any]) -> dict[str, Any]:
    """The layout's settings, with those of the configuration in their place."""
    mine = {name: getattr(cfg, name) for name in ("all_orders", "bonus_orders", "order_bonus", *VALUES, *TIMES)}
    mine = {name: value for name, value in mine.items() if value}
    dropped: set[str] = set()
    for ways in (VALUES, TIMES):
        if any(name in mine for name in ways):
            dropped |= set(ways)
    if "all_orders" in mine:
        dropped |= {"bonus_orders", "recipe_values", "recipe_times"}
    return {name: value for name, value in own.items() if name not in dropped} | mine


@functools.lru_cache(maxsize=256)
def kitchen(cfg: Config) -> Kitchen:
    """The kitchen of a configuration.

    Raises:
        ValueError: an unknown layout, or a layout or orders that are not valid.
    """
    text: str = getattr(cfg, "layout")  # noqa: B009
    written = "\n" in text or "/" in text
    if not written and text not in layouts():
        raise _refuse(unknown("there is no layout", text, layouts()) + " A layout of your own is lines with / between.")
    own = {} if written else layouts()[text]
    terrain, cells = _grid(text if written else "\n".join(own["grid"]))
    given = _settings(cfg, own)
    orders = _recipes(given.get("all_orders", ""), "all_orders") or RECIPES
    bonus = _recipes(given.get("bonus_orders", ""), "bonus_orders")
    if not set(bonus) <= set(orders):
        raise _refuse("bonus_orders must be some of all_orders.")
    values, times = _rated(given, orders, VALUES, DEFAULT_VALUE), _rated(given, orders, TIMES, DEFAULT_TIME)
    if max(times) > LARGEST_TIME or min(times) < 1:
        raise _refuse(f"a recipe must cook 1 to {LARGEST_TIME} steps, not {min(times)} to {max(times)}.")
    value, time = np.zeros(16, np.float32), np.ones(16, np.int32)
    factor = float(given.get("order_bonus", DEFAULT_BONUS))
    for recipe, worth, steps in zip(RECIPES, values, times, strict=True):
        time[code(recipe)] = steps
        if recipe in orders:
            value[code(recipe)] = worth * (factor if recipe in bonus else 1.0)
    columns = terrain.shape[1]
    start = own.get("start", {"players": [], "pots": []})
    places = {p["position"][0] + columns * p["position"][1]: p["recipe"] for p in start["pots"]}
    pots = np.flatnonzero(terrain == POT)
    players = start["players"]
    return Kitchen(
        terrain,
        [p["position"][0] + columns * p["position"][1] for p in players] or cells,
        [p["orientation"] for p in players] or [0] * len(cells),
        [HELD[p["held"]] for p in players] or [0] * len(cells),
        [code(_recipes(places[cell], "pots")[0]) if cell in places else 0 for cell in pots],
        value,
        time,
    )
