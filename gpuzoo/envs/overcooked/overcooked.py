"""Overcooked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.assets import Asset
from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.envs.overcooked.drawing import draw_kitchen, draw_object, draw_player, draw_soup
from gpuzoo.envs.overcooked.kitchen import COUNTER, LAYOUTS, POT, STATIC, foods, kitchen, thing
from gpuzoo.render import Canvas

GIVEN = "0: the layout's"
DRAWN = " XP01DS"  # the terrain, as it is drawn


@dataclasses.dataclass(frozen=True)
class OvercookedConfig(Config):
    """The options of overcooked-ai's OvercookedGridworld and of its start states, by their names, and of JaxMARL's."""

    layout: str = param("cramped_room", doc="name of a layout, or one's own: lines with / between")
    old_dynamics: bool = param(True, doc="a pot with three ingredients starts to cook; otherwise somebody starts it")
    observation_type: Literal["lossless", "jaxmarl"] = param("lossless", doc="overcooked-ai's encoding or JaxMARL's")
    shaped_reward: float = param(0.0, doc="weight of the shaped reward in the reward; infos have it in any case")
    placement_in_pot_reward: float = param(3.0, doc="shaped reward for an ingredient put into a pot")
    dish_pickup_reward: float = param(3.0, doc="shaped reward for a useful dish taken from the dispenser")
    soup_pickup_reward: float = param(5.0, doc="shaped reward for a soup taken out of its pot")
    stale_pots: bool = param(True, doc="a dish is useful by the pots before the step, as in overcooked-ai")
    all_orders: str = param("", doc="recipes that are worth something, such as 'OOO OT'; '': the layout's")
    bonus_orders: str = param("", doc="those of them that earn a bonus; '': the layout's")
    order_bonus: int = param(0, low=0, doc=f"factor for a bonus; {GIVEN}, 2 as a rule")
    delivery_reward: int = param(0, low=0, doc=f"what every ordered soup is worth; {GIVEN}, 20 as a rule")
    recipe_values: str = param("", doc="what each of all_orders is worth, such as '20 9'")
    onion_value: int = param(0, low=0, doc="what each onion adds to a soup's value; with tomato_value")
    tomato_value: int = param(0, low=0, doc="what each tomato adds")
    cook_time: int = param(0, low=0, doc=f"steps that every soup cooks; {GIVEN}, 20 as a rule")
    recipe_times: str = param("", doc="steps that each of all_orders cooks")
    onion_time: int = param(0, low=0, doc="steps that each onion adds to a soup's time; with tomato_time")
    tomato_time: int = param(0, low=0, doc="steps that each tomato adds")
    random_start_pos: bool = param(False, doc="players begin anywhere on the floor")
    random_orientation: bool = param(False, doc="players begin looking anywhere, as always in JaxMARL")
    rnd_obj_prob_thresh: float = param(0.0, low=0.0, high=1.0, doc="probability that a pot or a player begins filled")
    random_reset: bool = param(False, doc="JaxMARL's: random places, directions, held objects and pots of onions")


class Overcooked(EnvDef):
    """Cooks in a small kitchen fill pots, wait for the soup, and serve as many soups as they can.

    This is the benchmark of human-AI coordination by Carroll et al. (2019). The rules are those of the package
    overcooked-ai 1.1.0; the Overcooked of JaxMARL 0.2.0 is a part of them.

    **Kitchen.** `layout` is one of overcooked-ai's, such as the classic five `cramped_room`, `asymmetric_advantages`,
    `coordination_ring`, `forced_coordination` and `counter_circuit_o_1order`; or one of JaxMARL's, in which the players
    begin at other places (`jaxmarl_cramped_room`, `jaxmarl_asymm_advantages`, `jaxmarl_coord_ring`,
    `jaxmarl_forced_coord`, `jaxmarl_counter_circuit`); or your own, as lines with `/` between them:

    ```python
    import gpuzoo

    envs = gpuzoo.make("Overcooked-v0", num_envs=4, layout="XXPXX/O1 2T/X   X/XDXSX", all_orders="OOO OT")
    ```

    `X` is a counter, `P` a pot, `O` and `T` dispensers of onions and tomatoes, `D` dishes, `S` serving, a space the
    floor, and a digit from 1 on a player. No floor is at the edge. In your own layout all recipes take 20 steps and are
    worth 20, unless options say otherwise.

    **Agents.** `player_0`, `player_1`, ...: as many as the layout has, mostly two.

    **Actions.** `Discrete(6)`: 0 north (up), 1 south, 2 east, 3 west, 4 stay, 5 interact. First the players that
    interact do so, in their order, with the cell that they face:

    - counter: put down what they hold, or take what lies there;
    - dispenser: take an onion, a tomato or a dish, with empty hands;
    - pot: add an ingredient, up to three and not once it cooks; with a dish take out a soup that is ready; with empty
      hands start to cook whatever is in it (not with `old_dynamics`, where three ingredients start by themselves);
    - serving: deliver a soup.

    Then all players move at once. A player that walks always turns that way, and goes there if it is floor. If two
    players would meet in a cell or change places, nobody moves. Then every soup cooks for one step.

    **Recipes.** A recipe has one to three ingredients, in any order. A soup that is not among `all_orders` is worth
    nothing; one of `bonus_orders` is worth `order_bonus` times its value. Values and cooking times come from the
    layout: the same for all (`delivery_reward`, `cook_time`), one for each order (`recipe_values`, `recipe_times`), or
    sums over the ingredients (`onion_value`, `tomato_value`, `onion_time`, `tomato_time`). An option replaces what the
    layout says, and `all_orders` also replaces its bonus orders.

    **Observation.** int8. `observation_type="lossless"` is overcooked-ai's `lossless_state_encoding`, (columns, rows,
    channels), with 26 channels for two players. The player itself comes first, then the others: their positions, then
    four channels of direction for each. Then come pots, counters, dispensers and serving; the contents of pots that do
    not cook; the contents of soups that cook or are ready, wherever they are; the steps left to cook; soups that are
    ready; dishes, onions and tomatoes, held ones included; and 1 everywhere when fewer than 40 steps are left.
    `"jaxmarl"` is the same as (rows, columns, channels), except that a counter with something on it is not marked as
    one.

    **Reward.** All players get the value of the soups that were delivered. Each player also gets `shaped_reward` times
    its own shaped reward: `placement_in_pot_reward` for an ingredient, `soup_pickup_reward` for a soup taken out of its
    pot, and `dish_pickup_reward` for a dish from a dispenser, if no dish lies on a counter and fewer dishes are held
    than pots are in use. Infos have `sparse_reward`, and `shaped_reward_0`, ... for the players. `--schedule
    shaped_reward=1:0` anneals it in training.

    **Start.** Players begin where the layout says, looking north. With `random_start_pos` they begin anywhere on the
    floor. With `rnd_obj_prob_thresh` = p, each pot is filled with probability p, by 1 to 3 onions and by tomatoes up to
    3 in all, and then cooks with probability p; each player holds something with probability p: a dish (0.2), an onion
    (0.6) or a soup (0.2). `random_reset` is JaxMARL's: random places and directions; nothing, an onion, a dish or an
    onion soup in each player's hands; and pots with 0 to 3 onions, or at any step of cooking three, all equally likely.

    **End.** Time limit: 400 steps, overcooked-ai's `horizon`.

    **As in the original.** The shaped reward for a dish depends on the pots before the step. So it misses an ingredient
    that another player adds in the same step, and it ignores a full pot that nobody has started. Without `stale_pots`
    it depends on the pots now, and counts all that are not empty, as JaxMARL does. That reward exists for two players
    only. A collision of two players stops all others, too. A bonus order of `tutorial_3` is worth infinity.

    **Unlike the original.** The original encodes observations for two players only. Its `old_dynamics`, which is in its
    repository but not in the package 1.1.0, demands that all orders have three ingredients.
    """

    id = "Overcooked-v0"
    Config = OvercookedConfig
    max_episode_steps = 400
    invalid_action = 4
    observes_apart = True
    reference = "overcooked-ai==1.1.0 OvercookedGridworld"
    interaction = "cooperative"
    links: ClassVar[Mapping[str, str]] = {
        "overcooked-ai": "https://github.com/HumanCompatibleAI/overcooked_ai",
        "JaxMARL": "https://github.com/FLAIROx/JaxMARL/tree/main/jaxmarl/environments/overcooked",
        "Carroll et al. 2019": "https://arxiv.org/abs/1910.05789",
    }
    assets: ClassVar[Mapping[str, Asset]] = {"layouts": LAYOUTS}
    benchmarks = {
        "counter_circuit": {"layout": "counter_circuit_o_1order"},
        "corridor": {"layout": "corridor"},
        "4 players": {"layout": "multiplayer_schelling"},
    }
    render_fps = 6

    def agents(self, cfg: OvercookedConfig) -> dict[str, int]:
        return {"player": len(kitchen(cfg).cells)}

    def lanes(self, cfg: OvercookedConfig) -> int:
        """As many as can put an env's observations together in a GPU's shared memory, 192 bytes each."""
        found = kitchen(cfg)
        players = len(found.cells)
        size = found.terrain.size * (5 * players + 16) * players
        return int(min(256, max(8, 1 << (-(-size // 192) - 1).bit_length())))

    def check(self, cfg: OvercookedConfig) -> None:
        found = kitchen(cfg)
        if len(found.cells) > len(found.floor):
            raise ValueError("Overcooked: there are more players than cells of floor.")

    def constants(self, cfg: OvercookedConfig) -> dict[str, int]:
        found = kitchen(cfg)
        rows, columns = found.terrain.shape
        return {
            "ROWS": rows,
            "COLS": columns,
            "COUNTERS": max(1, len(found.where(COUNTER))),
            "POTS": len(found.pots),
            "FLOORS": len(found.floor),
        }

    def tables(self, cfg: OvercookedConfig) -> dict[str, NDArray[Any]]:
        found = kitchen(cfg)
        terrain, players = found.terrain, len(found.cells)
        index = np.zeros(terrain.size, np.int32)
        for kind in (COUNTER, POT):
            index[found.where(kind)] = np.arange(len(found.where(kind)))
        calm = np.zeros((*terrain.shape, 5 * players + 16), np.int8)
        for k, kind in enumerate(STATIC):
            calm[..., 5 * players + k] = terrain == kind
        urgent = calm.copy()
        urgent[..., -1] = 1
        order = np.arange(terrain.size, dtype=np.int32).reshape(terrain.shape)
        views = np.stack([calm, urgent])
        if cfg.observation_type == "lossless":
            views = views.transpose(0, 2, 1, 3)
            order = np.arange(terrain.size, dtype=np.int32).reshape(terrain.T.shape).T
        return {
            "places": terrain.ravel() | index << 3,
            "floor": found.floor,
            "counter_cell": found.where(COUNTER) if COUNTER in terrain else np.zeros(1, np.int32),
            "pot_cell": found.where(POT),
            "start_cell": np.array(found.cells, np.int32),
            "start_orientation": np.array(found.orientations, np.int32),
            "start_held": np.array(found.held, np.int32),
            "start_recipe": np.array(found.pots, np.int32),
            "value": found.value,
            "cook_time": found.time,
            "spot": order.ravel() * np.int32(calm.shape[-1]),
            "kitchen": np.ascontiguousarray(views).ravel(),
        }

    def observation_space(self, cfg: OvercookedConfig, group: str) -> spaces.Box:
        found = kitchen(cfg)
        channels = 5 * len(found.cells) + 16
        top = np.ones(channels, np.int8)
        top[-10:-6] = 3
        top[-6] = found.time.max()
        rows, columns = found.terrain.shape
        shape = (columns, rows) if cfg.observation_type == "lossless" else (rows, columns)
        high = np.broadcast_to(top, (*shape, channels)).copy()
        return spaces.Box(np.zeros_like(high), high, dtype=np.int8)

    def action_space(self, cfg: OvercookedConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(6)

    def observation_names(self, cfg: OvercookedConfig, group: str) -> dict[str, int]:
        others = ["the other player"] if len(kitchen(cfg).cells) == 2 else [
            f"other player {k}" for k in range(1, len(kitchen(cfg).cells))
        ]  # fmt: skip
        who = ["the player itself", *others]
        names = dict.fromkeys(who, 1)
        names |= {f"{one}: direction, one channel each for north, south, east, west": 4 for one in who}
        names |= dict.fromkeys(
            (
                "pots", "counters", "onion dispensers", "tomato dispensers", "dish dispensers", "serving",
                "onions in a pot that does not cook", "tomatoes in a pot that does not cook", "onions in a soup",
                "tomatoes in a soup", "steps that a soup has still to cook", "soups that are ready", "dishes", "onions",
                "tomatoes", "everywhere 1: fewer than 40 steps are left",
            ),
            1,
        )  # fmt: skip
        return names

    def action_names(self, cfg: OvercookedConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("north", "south", "east", "west", "stay", "interact"), 1)

    def fields(self, cfg: OvercookedConfig) -> dict[str, Field]:
        thing = "0 nothing, 1 onion, 2 tomato, 3 dish, or 16 + the recipe of a soup"
        return {
            "cell": Field("int16", ("players",), "row * columns + column of each player"),
            "orientation": Field("int8", ("players",), "where each looks: 0 north, 1 south, 2 east, 3 west"),
            "held": Field("uint8", ("players",), f"what each holds: {thing}"),
            "counter": Field("uint8", ("COUNTERS",), f"what lies on each counter, in reading order: {thing}"),
            "recipe": Field("uint8", ("POTS",), "onions + 4 * tomatoes in each pot, in reading order"),
            "tick": Field("int16", ("POTS",), "steps that each pot has cooked, -1 before it starts"),
            "delivered": Field("float32", doc="value of the soups of the last step"),
            "shaped": Field("float32", ("players",), "each player's shaped reward of the last step, before its weight"),
            "score": Field("float32", doc="value of all soups of the episode"),
            "soups": Field("int32", doc="soups delivered in the episode"),
            "target": Field("int16", ("players",), "cell where each wants to be", scratch=True),
        }

    def step_infos(self, cfg: OvercookedConfig, state: Mapping[str, Any]) -> dict[str, Any]:
        shaped = {f"shaped_reward_{a}": state["shaped"][:, a] for a in range(len(kitchen(cfg).cells))}
        return {"sparse_reward": state["delivered"], **shaped}

    def aspect(self, cfg: OvercookedConfig) -> float:
        rows, columns = kitchen(cfg).terrain.shape
        return float(columns / (rows + 0.3))

    def render(self, cfg: OvercookedConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        found = kitchen(cfg)
        rows, columns = found.terrain.shape
        canvas.background("#5d4633")
        canvas.view(0, 0, columns, rows, y_down=True, pad=6, hud=True)
        canvas.cached(draw_kitchen, tuple("".join(DRAWN[kind] for kind in row) for row in found.terrain))
        for cell, lies in zip(found.where(COUNTER), state["counter"], strict=False):
            canvas.cached(draw_object, cell % columns + 0.5, cell // columns + 0.5, *thing(int(lies)))
        for cell, recipe, tick in zip(found.where(POT), state["recipe"], state["tick"], strict=True):
            time = int(found.time[recipe])
            left = None if tick < 0 else max(time - int(tick), 0)
            canvas.cached(draw_soup, cell % columns + 0.5, cell // columns + 0.5, foods(int(recipe)), left, time)
        for a, (cell, way, held) in enumerate(zip(state["cell"], state["orientation"], state["held"], strict=True)):
            canvas.cached(draw_player, cell % columns + 0.5, cell // columns + 0.5, a, int(way), *thing(int(held)))
        soups, score, t = int(state["soups"]), float(state["score"]), int(state["elapsed_steps"])
        canvas.hud(left=f"Overcooked   {soups} soups, {score:g} points", right=f"step {t}")
