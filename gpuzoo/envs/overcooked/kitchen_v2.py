"""OvercookedV2's kitchens: layouts with their recipes, by name or as text, and ways through them."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import re
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.assets import Asset
from gpuzoo.core.definition import Config
from gpuzoo.core.suggestions import unknown

LAYOUTS = Asset(
    Path(__file__).with_name("layouts_v2.json"),
    size=3942,
    sha256="0e92b3861a0d9d971b47cd7998ce59bbce875691fd981517ddf8987b22019e88",
    licence="Apache-2.0, the authors of JaxMARL",
)
TERRAIN = " WXPRLB"  # floor, counter, goal, pot, recipe indicator, button, plates: as in the rules; then piles
FLOOR, COUNTER, GOAL, POT, RECIPE, BUTTON, PLATES, PILE = range(8)
PLATE, COOKED = 1, 2
FULL = 3
WAYS = ((-1, 0), (1, 0), (0, 1), (0, -1))  # (rows, columns) of north, south, east, west
UNREACHABLE = 32767


@functools.cache
def layouts() -> dict[str, dict[str, Any]]:
    """The known layouts by name."""
    known: dict[str, dict[str, Any]] = json.loads(LAYOUTS.read())
    return known


def code(recipe: str) -> int:
    """The bits of what "002" has in it: two for the number of each ingredient, after those of plate and cooked."""
    return sum(4 << 2 * int(digit) for digit in recipe)


def foods(thing: int) -> tuple[int, ...]:
    """The ingredients of a thing, those that are there more than once as often."""
    return tuple(k for k in range(10) for _ in range(thing >> 2 * k + 2 & 3))


@dataclasses.dataclass(frozen=True)
class Kitchen:
    """What a configuration's layout and recipes come to.

    Attributes:
        terrain: (rows, columns), an index into `TERRAIN`, or `PILE` + an ingredient.
        cells: where the players begin, row * columns + column.
        ingredients: how many kinds there are.
        recipes: what may be ordered, as bits; one that comes twice is ordered twice as often.
        permuted: ingredients that look like each other, anew in each episode.
    """

    terrain: NDArray[np.int32]
    cells: list[int]
    ingredients: int
    recipes: list[int]
    permuted: list[int]

    def where(self, kind: int) -> NDArray[np.int32]:
        """Cells of a kind, in reading order; `PILE` stands for those of all ingredients."""
        return np.flatnonzero(np.minimum(self.terrain, PILE) == kind).astype(np.int32)

    @functools.cached_property
    def rooms(self) -> NDArray[np.int32]:
        """(rows, columns), a number for each part of the floor that can be walked through, -1 elsewhere."""
        rooms = np.full(self.terrain.shape, -1, np.int32)
        for cell in self.where(FLOOR):
            place = divmod(int(cell), self.terrain.shape[1])
            if rooms[place] < 0:
                for there, _ in self.steps(place, 0):
                    rooms[there] = cell
        return rooms

    def steps(self, place: tuple[int, int], way: int) -> dict[tuple[tuple[int, int], int], int]:
        """How many actions it takes to be somewhere and look some way, for who is alone: by place and way."""
        far = {(place, way): 0}
        waiting = deque(far)
        while waiting:
            (y, x), _ = here = waiting.popleft()
            for turn, (dy, dx) in enumerate(WAYS):
                ahead = y + dy, x + dx
                there = (ahead if self.terrain[ahead] == FLOOR else (y, x), turn)
                if there not in far:
                    far[there] = far[here] + 1
                    waiting.append(there)
        return far

    def distances(self, fixtures: NDArray[np.int32]) -> NDArray[np.int16]:
        """(floors, ways, fixtures): actions until somebody looks at each of these cells, or `UNREACHABLE`."""
        columns, floor = self.terrain.shape[1], self.where(FLOOR)
        number = {divmod(int(cell), columns): k for k, cell in enumerate(fixtures)}
        out = np.full((len(floor), 4, len(fixtures)), UNREACHABLE, np.int16)
        for k, way in itertools.product(range(len(floor)), range(4)):
            for ((y, x), turn), steps in self.steps(divmod(int(floor[k]), columns), way).items():
                seen = number.get((y + WAYS[turn][0], x + WAYS[turn][1]))
                if seen is not None:
                    out[k, way, seen] = min(out[k, way, seen], steps)
        return out


def _refuse(what: str) -> ValueError:
    return ValueError(f"OvercookedV2: {what}")


def _grid(text: str) -> tuple[NDArray[np.int32], list[int]]:
    """Terrain and start cells of lines of text.

    Raises:
        ValueError: lines of different lengths, other characters, floor at the edge, missing players or facilities.
    """
    lines = [line for line in text.replace("/", "\n").split("\n") if line.strip()]
    if len({len(line) for line in lines}) != 1:
        raise _refuse("the lines of the layout must be of the same length.")
    rows, columns, cells = len(lines), len(lines[0]), "".join(lines).replace("O", "0")
    if not re.fullmatch("[ AWXPRLB0-9]*", cells):
        raise _refuse("a layout consists of W (counter), X (goal), P (pot), B (plates), 0 to 9 (piles of ingredients), "
                      "R (recipe indicator), L (button for it), A (players) and spaces (floor).")  # fmt: skip
    missing = [c for c in "AXPB" if c not in cells] + ([] if re.search("[0-9]", cells) else ["0 to 9"])
    if missing:
        raise _refuse(f"the layout has no {', '.join(missing)}.")
    kinds = [PILE + int(c) if c.isdigit() else TERRAIN.index(c.replace("A", " ")) for c in cells]
    terrain = np.array(kinds, np.int32).reshape(rows, columns)
    if not (terrain[[0, -1]].all() and terrain[:, [0, -1]].all()):
        raise _refuse("there must be no floor at the edge of a layout.")
    return terrain, [k for k, c in enumerate(cells) if c == "A"]


def _recipes(text: str, ingredients: int, indicated: bool) -> list[int]:
    """Recipes from words like 002; all that there can be, if there are none.

    Raises:
        ValueError: other words, ingredients that the layout does not have, or none in a layout that shows none.
    """
    words = text.replace(",", " ").split()
    if any(not re.fullmatch("[0-9]{3}", word) for word in words):
        raise _refuse(f"possible_recipes are words of three digits, such as '000 112', not {text!r}.")
    if any(int(digit) >= ingredients for word in words for digit in word):
        raise _refuse(f"the layout has the ingredients 0 to {ingredients - 1}, not all of {text!r}.")
    if not words and not indicated:
        raise _refuse("a layout without a recipe indicator R needs possible_recipes, such as '000'.")
    kinds = "".join(map(str, range(ingredients)))
    return [code(word) for word in words or map("".join, itertools.combinations_with_replacement(kinds, FULL))]


def _permuted(text: str, ingredients: int) -> list[int]:
    words = text.replace(",", " ").split()
    if any(not word.isdigit() or int(word) >= ingredients for word in words) or len(set(words)) < len(words):
        raise _refuse(
            f"op_ingredient_permutations are different ingredients from 0 to {ingredients - 1}, such as '0 1', "
            f"not {text!r}."
        )
    return [int(word) for word in words]


@functools.lru_cache(maxsize=256)
def kitchen(cfg: Config) -> Kitchen:
    """The kitchen of a configuration.

    Raises:
        ValueError: an unknown layout, or a layout, recipes or permutations that are not valid.
    """
    given: Any = cfg
    text: str = given.layout
    written = "\n" in text or "/" in text
    if not written and text not in layouts():
        raise _refuse(unknown("there is no layout", text, layouts()) + " A layout of your own is lines with / between.")
    own = {} if written else layouts()[text]
    terrain, cells = _grid(text if written else "\n".join(own["grid"]))
    ingredients = int(terrain.max()) - PILE + 1
    recipes = _recipes(given.possible_recipes or own.get("possible_recipes", ""), ingredients, RECIPE in terrain)
    permuted = _permuted(given.op_ingredient_permutations, ingredients)
    if own.get("swap_agents", False) != given.swap_agents:
        cells.reverse()
    return Kitchen(terrain, cells, ingredients, recipes, permuted)
