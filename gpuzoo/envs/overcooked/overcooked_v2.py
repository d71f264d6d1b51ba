"""OvercookedV2."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.assets import Asset
from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.envs.overcooked.drawing import draw_kitchen, draw_object, draw_player, draw_recipe, draw_soup
from gpuzoo.envs.overcooked.kitchen_v2 import (
    BUTTON,
    COOKED,
    COUNTER,
    FLOOR,
    GOAL,
    LAYOUTS,
    PILE,
    PLATE,
    PLATES,
    POT,
    RECIPE,
    WAYS,
    Kitchen,
    foods,
    kitchen,
)
from gpuzoo.render import CYCLE, Canvas, fade

DRAWN = " XSPRLD0123456789"  # the terrain, as it is drawn
STATIC = (COUNTER, GOAL, POT, RECIPE, BUTTON, PLATES)  # in the order of their channels
KINDS = {"COUNTERS": COUNTER, "GOALS": GOAL, "POTS": POT, "INDICATORS": RECIPE, "BUTTONS": BUTTON, "PILES": PILE}
OWN = (  # a player's features, and how large they can be: None for a way, which the kitchen bounds
    *((f"looks {way}", 1) for way in ("north", "south", "east", "west")),
    *((f"holds {thing}", 1) for thing in ("an onion", "a soup", "a plate", "a tomato")),
    *((f"way to the nearest {thing}: x, y", None) for thing in ("onion", "tomato", "plate", "soup")),
    ("onions in a soup that is there", 3), ("tomatoes in it", 1),
    *((f"way to the nearest {thing}: x, y", None) for thing in ("goal", "empty counter")),
    *((f"{pot} pot: {what}", size) for pot in ("nearest", "second nearest") for what, size in (
        ("can be reached", 1), ("empty", 1), ("full", 1), ("cooks", 1), ("ready", 1), ("onions", 3), ("tomatoes", 1),
        ("steps left", 127), ("way to it: x, y", None),
    )),
    *((f"no floor {way}", 1) for way in ("north", "south", "east", "west")),
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class OvercookedV2Config(Config):
    """The options of JaxMARL's OvercookedV2 by their names, and what it counts as rewards and times."""

    layout: str = param("cramped_room", doc="name of a layout, or one's own: lines with / between")
    possible_recipes: str = param("", doc="what may be ordered, such as '000 112'; '': the layout's, or any")
    swap_agents: bool = param(False, doc="players start in each other's places")
    observation_type: Literal["default", "featurized"] = param("default", doc="layers, or features as in overcooked-ai")
    agent_view_size: int = param(0, low=0, high=32, doc="cells that players see in each direction; 0: all")
    random_reset: bool = param(False, doc="places, things in hands and on counters, and pots are drawn")
    random_agent_positions: bool = param(False, doc="places are drawn, each in the room where the player starts")
    start_cooking_interaction: bool = param(False, doc="a player starts to cook; otherwise three ingredients do")
    negative_rewards: bool = param(False, doc="a wrong soup costs as much as the right one is worth")
    sample_recipe_on_delivery: bool = param(False, doc="a new recipe after each delivery that is right")
    indicate_successful_delivery: bool = param(False, doc="players see at the goals that the last delivery was right")
    op_ingredient_permutations: str = param("", doc="ingredients that each player sees in an order of its own: '0 1'")
    delivery_reward: float = param(20.0, doc="what the soup that is ordered is worth")
    indicator_activation_cost: float = param(5.0, doc="what pressing a button costs")
    indicator_activation_time: int = param(10, low=1, high=127, doc="steps until a button's indicator goes out")
    pot_cook_time: int = param(20, low=1, high=127, doc="steps that a soup cooks")
    shaped_reward: float = param(0.0, doc="weight of the shaped reward in the reward; infos have it in any case")
    placement_in_pot_reward: float = param(3.0, doc="shaped reward for an ingredient that is ordered, put into a pot")
    pot_start_cooking_reward: float = param(5.0, doc="shaped reward for starting to cook what is ordered")
    dish_pickup_reward: float = param(5.0, doc="shaped reward for taking the soup that is ordered out of its pot")
    plate_pickup_reward: float = param(3.0, doc="shaped reward for a useful plate")


class OvercookedV2(EnvDef):
    """Cooks serve soups by changing recipes that not everybody can read, in kitchens that they see only in part.

    Gessler et al., "OvercookedV2: Rethinking Overcooked for Zero-Shot Coordination" (2025), with the rules of JaxMARL
    0.2.0. It adds to Overcooked: more ingredients, random recipes that are shown at some places only, views of a few
    cells, and buttons that cost something.

    **Kitchen.** `layout` is one of JaxMARL's, such as `cramped_room`, `cramped_room_v2`, `two_rooms`,
    `grounded_coord_simple`, `test_time_wide` or `demo_cook_simple`; or your own, as lines with `/` between them:

    ```python
    import gpuzoo

    envs = gpuzoo.make("OvercookedV2-v0", num_envs=4, layout="WWPWW/0A A1/L   R/WBWXW", agent_view_size=2)
    ```

    `W` is a counter, `X` a goal, `P` a pot, `B` plates, `0` to `9` piles of ingredients, `R` a recipe indicator, `L` a
    button with an indicator, a space the floor, and `A` the players in reading order (in reverse order with
    `swap_agents`). No floor is at the edge. `possible_recipes` are words of three ingredients; without them, all
    recipes are possible that the layout's ingredients allow.

    **Agents.** `player_0`, `player_1`, ...: as many as the layout has.

    **Actions.** `Discrete(6)`: 0 right, 1 down, 2 left, 3 up, 4 stay, 5 interact. First all players move at once. A
    player that walks always turns that way, and goes there if it is floor. Players that would be in the same cell stay
    where they were; so do players whose target is thereby taken, and so on. Two players that would change places stay,
    too. Then the players that interact do so, in their order, with the cell that they face:

    - counter: put down what they hold, or take what lies there;
    - pile or plates: take an ingredient or a plate, with empty hands;
    - pot: add an ingredient, up to three and not once it cooks; with a plate take out a soup that is ready. With
      `start_cooking_interaction` empty hands start to cook whatever is in it; without, any interaction after which
      there are three ingredients does, also one that adds none;
    - goal: deliver a soup;
    - button, with empty hands: its indicator shows the recipe for `indicator_activation_time` steps, this one included.

    Then every soup cooks for one of its `pot_cook_time` steps, and the time of lit indicators runs down.

    **Recipe.** One of the possible recipes is drawn at the start. With `sample_recipe_on_delivery` a new one is drawn
    after each step in which the ordered soup was delivered.

    **Observation.** int8. `observation_type="default"`: (rows, columns, channels). With n ingredients, a thing takes n
    + 2 channels: a plate, cooked, and the number of each ingredient. First come the player itself, its direction in
    four channels (up, down, right, left) and the thing that it holds; then the same for all others together. Then come
    counters, goals, pots, recipe indicators, buttons, plates, and piles of each ingredient; things on counters and in
    pots; the recipe as a thing, at recipe indicators and at lit buttons; and the steps that a pot has still to cook.
    With `indicate_successful_delivery` one more channel is 1 at the goals after a step with a right delivery. With
    `agent_view_size` = v a player sees the (2v + 1, 2v + 1) cells around it, and zeros outside the kitchen. With
    `op_ingredient_permutations` each player sees these ingredients in an order of its own, which each episode draws.

    `"featurized"`, for kitchens with one ingredient: 46 numbers of the player, the same of each other player, in their
    order, (x, y) of each other player relative to this one, and its own x and y. `observation_names` lists them. The
    nearest thing is the one that takes the fewest actions to face, turns included, if nobody is in the way; on ties,
    the first one in reading order. Things that cannot be reached, and things that the player holds, are at (0, 0).

    **Reward.** All players get `delivery_reward` for each delivery of the ordered soup. Another soup gives nothing, or
    with `negative_rewards` the negative of that. Each pressed button costs `indicator_activation_cost`. Each player
    also gets `shaped_reward` times its own shaped reward: `placement_in_pot_reward` for an ingredient of which the
    recipe has more than the pot; `pot_start_cooking_reward` for starting a pot that holds the recipe;
    `dish_pickup_reward` for taking the ordered soup out of its pot; and `plate_pickup_reward` for a plate from the
    pile, if none lies on a counter and fewer plates were held before the step than pots are in use. Infos have
    `sparse_reward`, and `shaped_reward_0`, ... for the players. `--schedule shaped_reward=1:0` anneals it in training.

    **Start.** Players begin where the layout says, looking up; hands, counters and pots are empty. With
    `random_agent_positions` each player begins anywhere in the part of the kitchen that its place in the layout belongs
    to, and looks in any direction. `random_reset` does that, too, and fills hands, counters and pots: hands have
    nothing (0.5), a plate (0.1), an ingredient (0.25) or a possible soup (0.15); counters have the same with 0.5, 0.1,
    0.3 and 0.1; pots are empty (0.4), have one to three ingredients and do not cook (0.35), cook with any number of
    steps left (0.15), or are ready (0.1). Pots that cook or are ready have three ingredients, or one to three with
    `start_cooking_interaction`.

    **End.** Time limit: 400 steps.

    **As in the original.** `negative_rewards` leaves the shaped reward as it is.

    **Unlike the original.** All players have the same `observation_type`. Views are of layers only, as they are there.
    In place of a buffer of states to start from, use `set_state`.
    """

    id = "OvercookedV2-v0"
    Config = OvercookedV2Config
    max_episode_steps = 400
    invalid_action = 4
    observes_apart = True
    reference = "jaxmarl==0.2.0 overcooked_v2"
    interaction = "cooperative"
    links: ClassVar[Mapping[str, str]] = {
        "JaxMARL": "https://github.com/FLAIROx/JaxMARL/tree/main/jaxmarl/environments/overcooked_v2",
        "Gessler et al. 2025": "https://arxiv.org/abs/2503.17821",
    }
    assets: ClassVar[Mapping[str, Asset]] = {"layouts": LAYOUTS}
    benchmarks = {
        "partial views": {"layout": "grounded_coord_simple", "agent_view_size": 2},
        "large kitchen": {"layout": "grounded_coord_ring"},
        "featurized": {"observation_type": "featurized"},
    }
    render_fps = 6

    @classmethod
    def parameters_of(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """JaxMARL's lists of ingredients and of recipes are texts here, and its None is 0."""
        out = dict(options)
        if out.get("agent_view_size", 0) is None:
            out["agent_view_size"] = 0
        for name in ("possible_recipes", "op_ingredient_permutations"):
            if name in out and not isinstance(out[name], str):
                words = out[name] or []
                out[name] = " ".join(str(w) if isinstance(w, int) else "".join(map(str, w)) for w in words)
        return out

    def agents(self, cfg: OvercookedV2Config) -> dict[str, int]:
        return {"player": len(kitchen(cfg).cells)}

    def check(self, cfg: OvercookedV2Config) -> None:
        if cfg.observation_type == "featurized" and kitchen(cfg).ingredients > 1:
            raise ValueError("OvercookedV2: observation_type='featurized' is for kitchens with one ingredient.")
        if cfg.observation_type == "featurized" and cfg.agent_view_size:
            raise ValueError("OvercookedV2: agent_view_size is for observation_type='default'; take 0.")

    def lanes(self, cfg: OvercookedV2Config) -> int:
        """As many as can put an env's observations together in a GPU's shared memory, 192 bytes each."""
        size = len(kitchen(cfg).cells) * int(np.prod(self.observation_space(cfg, "player").shape))
        return int(min(256, max(32, 1 << (-(-size // 192) - 1).bit_length())))

    def channels(self, cfg: OvercookedV2Config) -> int:
        """Layers of an observation."""
        count = kitchen(cfg).ingredients
        return 17 + count + 4 * (count + 2) + cfg.indicate_successful_delivery

    def constants(self, cfg: OvercookedV2Config) -> dict[str, int]:
        found = kitchen(cfg)
        rows, columns = found.terrain.shape
        counts = {name: len(found.where(kind)) for name, kind in KINDS.items()}
        return counts | {
            "ROWS": rows,
            "COLS": columns,
            "FLOORS": len(found.where(FLOOR)),
            "FIXTURES": len(fixtures(found)),
            "INGREDIENTS": found.ingredients,
            "RECIPES": len(found.recipes),
            "PERMUTED": len(found.permuted),
            "CHANNELS": self.channels(cfg),
            "SOME_COUNTERS": max(1, counts["COUNTERS"]),
            "SOME_BUTTONS": max(1, counts["BUTTONS"]),
        }

    def tables(self, cfg: OvercookedV2Config) -> dict[str, NDArray[Any]]:
        found = kitchen(cfg)
        terrain, floor, rooms = found.terrain, found.where(FLOOR), found.rooms.ravel()
        index = np.zeros(terrain.size, np.int32)
        for kind in (FLOOR, *KINDS.values()):
            index[found.where(kind)] = np.arange(len(found.where(kind)))
        piles = found.where(PILE)
        index[piles] = terrain.ravel()[piles] - PILE
        places = {f"{name[:-1].lower()}_cell": some(found.where(kind)) for name, kind in KINDS.items()}
        featurized = cfg.observation_type == "featurized"
        return places | {
            "places": np.minimum(terrain.ravel(), PILE) | index << 3,
            "floor": floor,
            "floor_room": rooms[floor],
            "start_cell": np.array(found.cells, np.int32),
            "start_room": rooms[found.cells],
            "recipes": np.array(found.recipes, np.int32),
            "permuted": some(np.array(found.permuted, np.int32)),
            "fixture_cell": fixtures(found),
            "distance": found.distances(fixtures(found)).ravel() if featurized else np.zeros(1, np.int16),
            "kitchen": np.zeros(1, np.int8) if featurized else self.views(cfg).ravel(),
        }

    def views(self, cfg: OvercookedV2Config) -> NDArray[np.int8]:
        """What never changes in an observation: of the whole kitchen, or of the view from each cell of the floor."""
        found, view = kitchen(cfg), cfg.agent_view_size
        rows, columns = found.terrain.shape
        first = 2 * (found.ingredients + 7)
        seen = np.zeros((rows + 2 * view, columns + 2 * view, self.channels(cfg)), np.int8)
        inside = seen[view : view + rows, view : view + columns]
        for k, kind in enumerate(STATIC):
            inside[..., first + k] = found.terrain == kind
        for k in range(found.ingredients):
            inside[..., first + len(STATIC) + k] = found.terrain == PILE + k
        if not view:
            return seen
        side = 2 * view + 1
        corners = (divmod(int(cell), columns) for cell in found.where(FLOOR))
        return np.stack([seen[y : y + side, x : x + side] for y, x in corners])

    def observation_space(self, cfg: OvercookedV2Config, group: str) -> spaces.Box:
        found = kitchen(cfg)
        rows, columns = found.terrain.shape
        if cfg.observation_type == "featurized":
            far, players = [columns - 1, rows - 1], len(found.cells)
            of_one = [x for _, size in OWN for x in (far if size is None else [size])]
            high = np.array(of_one * players + far * players, np.int8)
            is_way = [x for _, size in OWN for x in ([True] * 2 if size is None else [False])]
            signed = np.array(is_way * players + [True] * (2 * players - 2) + [False] * 2)
            return spaces.Box(np.where(signed, -high, 0).astype(np.int8), high, dtype=np.int8)
        thing = [1, 1] + [3] * found.ingredients
        still = [1] * (len(STATIC) + found.ingredients)
        top = ([1] * 5 + thing) * 2 + still + thing * 2 + [cfg.pot_cook_time] + [1] * cfg.indicate_successful_delivery
        if cfg.agent_view_size:
            rows = columns = 2 * cfg.agent_view_size + 1
        high = np.broadcast_to(np.array(top, np.int8), (rows, columns, len(top))).copy()
        return spaces.Box(np.zeros_like(high), high, dtype=np.int8)

    def action_space(self, cfg: OvercookedV2Config, group: str) -> spaces.Discrete:
        return spaces.Discrete(6)

    def observation_names(self, cfg: OvercookedV2Config, group: str) -> dict[str, int]:
        others = [f"other player {k}" for k in range(1, len(kitchen(cfg).cells))]
        if cfg.observation_type == "featurized":
            names = {f"{who}: {what}": 2 if size is None else 1 for who in ("itself", *others) for what, size in OWN}
            return names | {f"{who}: x, y from the player's": 2 for who in others} | {"x, y of the player": 2}
        count = kitchen(cfg).ingredients
        parts = {"a plate": 1, "cooked": 1, f"how many of each of the {count} ingredients": count}
        names = {}
        for who in ("the player itself", "other players"):
            names |= {who: 1, f"{who}: direction, one channel each for up, down, right, left": 4}
            names |= {f"{who} hold: {part}": size for part, size in parts.items()}
        names |= dict.fromkeys(("counters", "goals", "pots", "recipe indicators", "buttons", "plates"), 1)
        names["piles of each ingredient"] = count
        names |= {f"on counters and in pots: {part}": size for part, size in parts.items()}
        names |= {f"recipe: {part}": size for part, size in parts.items()}
        names["steps that a pot has still to cook"] = 1
        return names | ({"goals after a right delivery": 1} if cfg.indicate_successful_delivery else {})

    def action_names(self, cfg: OvercookedV2Config, group: str) -> dict[str, int]:
        return dict.fromkeys(("right", "down", "left", "up", "stay", "interact"), 1)

    def fields(self, cfg: OvercookedV2Config) -> dict[str, Field]:
        thing = "bits: 1 a plate, 2 cooked, and two from the third on for the number of each ingredient"
        return {
            "cell": Field("int16", ("players",), "row * columns + column of each player"),
            "orientation": Field("int8", ("players",), "where each looks: 0 up, 1 down, 2 right, 3 left"),
            "held": Field("int32", ("players",), f"what each holds; {thing}"),
            "shown": Field("int8", ("players", "INGREDIENTS"), "which ingredient each sees as the first, second, ..."),
            "counter": Field("int32", ("SOME_COUNTERS",), f"what lies on each counter, in reading order; {thing}"),
            "pot": Field("int32", ("POTS",), f"what is in each pot, in reading order; {thing}"),
            "timer": Field("int8", ("POTS",), "steps that each pot has still to cook; 0: it does not"),
            "lit": Field("int8", ("SOME_BUTTONS",), "steps for which each button's indicator shows the recipe"),
            "recipe": Field("int32", (), f"what is ordered; {thing}"),
            "delivered": Field("bool", (), "whether what was ordered was delivered in the last step"),
            "earned": Field("float32", (), "reward of the last step for all, without the shaped one"),
            "shaped": Field("float32", ("players",), "each player's shaped reward of the last step, before its weight"),
            "score": Field("float32", (), "rewards for all in the episode"),
            "soups": Field("int32", (), "right deliveries in the episode"),
            "target": Field("int16", ("players",), "cell where each wants to be", scratch=True),
            "stays": Field("bool", ("players",), "whether each stays where it is", scratch=True),
        }

    def step_infos(self, cfg: OvercookedV2Config, state: Mapping[str, Any]) -> dict[str, Any]:
        shaped = {f"shaped_reward_{a}": state["shaped"][:, a] for a in range(len(kitchen(cfg).cells))}
        return {"sparse_reward": state["earned"], **shaped}

    def aspect(self, cfg: OvercookedV2Config) -> float:
        rows, columns = kitchen(cfg).terrain.shape
        return float(columns / (rows + 0.3))

    def render(self, cfg: OvercookedV2Config, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        found = kitchen(cfg)
        rows, columns = found.terrain.shape

        def middle(cell: int) -> tuple[float, float]:
            return int(cell) % columns + 0.5, int(cell) // columns + 0.5

        canvas.background("#5d4633")
        canvas.view(0, 0, columns, rows, y_down=True, pad=6, hud=True)
        canvas.cached(draw_kitchen, tuple("".join(DRAWN[kind] for kind in row) for row in found.terrain))
        recipe = foods(int(state["recipe"]))
        for cell in found.where(RECIPE):
            canvas.cached(draw_recipe, *middle(cell), recipe, None)
        for cell, left in zip(found.where(BUTTON), state["lit"], strict=False):
            if left:
                canvas.cached(draw_recipe, *middle(cell), recipe, int(left))
        for cell, lies in zip(found.where(COUNTER), state["counter"], strict=False):
            canvas.cached(draw_object, *middle(cell), foods(int(lies)), bool(lies & PLATE))
        for cell, inside, left in zip(found.where(POT), state["pot"], state["timer"], strict=True):
            cooks = int(left) if left or inside & COOKED else None
            canvas.cached(draw_soup, *middle(cell), foods(int(inside)), cooks, cfg.pot_cook_time)
        for a, (cell, way, held) in enumerate(zip(state["cell"], state["orientation"], state["held"], strict=True)):
            canvas.cached(draw_player, *middle(cell), a, int(way), foods(int(held)), bool(held & PLATE))
        for a, cell in enumerate(state["cell"] if cfg.agent_view_size else ()):
            (x, y), far = middle(cell), cfg.agent_view_size + 0.46
            corners = max(x - far, 0.04), max(y - far, 0.04), min(x + far, columns - 0.04), min(y + far, rows - 0.04)
            canvas.rect(*corners, outline=fade(CYCLE[a % len(CYCLE)], 0.8), width=2.0, radius=0.1)
        soups, score, t = int(state["soups"]), float(state["score"]), int(state["elapsed_steps"])
        canvas.hud(left=f"OvercookedV2   {soups} soups, {score:g} points", right=f"step {t}")


def some(values: NDArray[np.int32]) -> NDArray[np.int32]:
    """A table that is not empty."""
    return values if len(values) else np.zeros(1, np.int32)


def fixtures(found: Kitchen) -> NDArray[np.int32]:
    """The cells beside the floor with something to interact with, in reading order."""
    columns = found.terrain.shape[1]
    beside = {int(cell) + dy * columns + dx for cell in found.where(FLOOR) for dy, dx in WAYS}
    return np.array(sorted(beside - set(found.where(FLOOR).tolist())), np.int32)
