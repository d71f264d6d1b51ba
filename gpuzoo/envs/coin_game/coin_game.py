"""The coin game."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas

COLOURS = ("red", "blue")


@dataclasses.dataclass(frozen=True)
class CoinGameConfig(Config):
    """Rounds, what is seen, and what coins are worth."""

    num_inner_steps: int = param(10, low=1, doc="steps of a round")
    num_outer_steps: int = param(10, low=1, doc="rounds of an episode")
    cnn: bool = param(False, doc="observations as planes (3, 3, 4) in place of 36 numbers")
    egocentric: bool = param(False, doc="an agent sees itself in the middle of the board")
    shared_rewards: bool = param(False, doc="both get the sum of the rewards")
    red_takes_red: float = param(1.0, doc="red's reward for a red coin")
    red_takes_blue: float = param(1.0, doc="red's reward for a blue coin")
    red_loses: float = param(-2.0, doc="red's reward when blue takes a red coin")
    blue_takes_red: float = param(1.0, doc="blue's reward for a red coin")
    blue_takes_blue: float = param(1.0, doc="blue's reward for a blue coin")
    blue_loses: float = param(-2.0, doc="blue's reward when red takes a blue coin")


class CoinGame(EnvDef):
    """Two players collect coins; each pays when the other takes one of its colour.

    A red and a blue player move on a board of 3 x 3 cells without borders: a player that leaves on one
    side comes back on the other. There are a red and a blue coin. Any coin is worth 1 to the player
    that takes it, but a coin of the other's colour costs the other 2. A player cooperates by taking
    only its own coins. Lerer and Peysakhovich, "Maintaining cooperation in complex social dilemmas
    using deep reinforcement learning" (2017). Players and coins may share a cell, and both players may
    take the same coin.

    **Agents.** `player_0` is red, `player_1` blue.

    **Actions.** `Discrete(5)`: column + 1, column - 1, row + 1, row - 1, stay.

    **Observation.** `Box(0, 1, (36,), int8)`, or (3, 3, 4) with `cnn`: for each row, column and plane
    whether there is: the player itself, the other one, its own coin, the other's coin. With
    `egocentric` the board is moved so that the player is in the middle.

    **Reward.** The sum of `red_takes_red` and so on, over all that happens in a step; with
    `shared_rewards` both players get the sum of both rewards.

    **End.** A round has `num_inner_steps` steps. Its last step gives no reward, and everything is placed
    anew. The episode ends, by termination, after `num_outer_steps` rounds. A coin that was taken comes
    back in any cell, that of a player included.

    These are the rules of JaxMARL 0.2.0, the reward that is missing in the last step of a round
    included. Its `payoff_matrix` ``[[rr, rb, rp], [br, bb, bp]]`` is `red_takes_red`,
    `red_takes_blue`, `red_loses`; `blue_takes_red`, `blue_takes_blue`, `blue_loses`.
    """

    id = "CoinGame-v0"
    Config = CoinGameConfig
    invalid_action = 4
    reference = "jaxmarl 0.2.0 coin_game"
    interaction = "mixed"
    links: ClassVar[Mapping[str, str]] = {
        "JaxMARL": "https://github.com/FLAIROx/JaxMARL/tree/main/jaxmarl/environments/coin_game",
        "Lerer and Peysakhovich 2017": "https://arxiv.org/abs/1707.01068",
    }
    render_fps = 4

    def agents(self, cfg: CoinGameConfig) -> dict[str, int]:
        return {"player": 2}

    def observation_space(self, cfg: CoinGameConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (3, 3, 4) if cfg.cnn else (36,), np.int8)

    def action_space(self, cfg: CoinGameConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(5)

    def observation_names(self, cfg: CoinGameConfig, group: str) -> dict[str, int]:
        planes = dict.fromkeys(
            ("the player", "the other player", "a coin of its own colour", "a coin of the other's"), 1
        )
        return planes if cfg.cnn else {"for each cell: whether there is " + ", ".join(planes): 36}

    def action_names(self, cfg: CoinGameConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("column + 1", "column - 1", "row + 1", "row - 1", "stay"), 1)

    def fields(self, cfg: CoinGameConfig) -> dict[str, Field]:
        cell = "cell 3 * row + column"
        return {
            "red": Field("int32", doc=f"{cell} of the red player"),
            "blue": Field("int32", doc=f"{cell} of the blue player"),
            "red_coin": Field("int32", doc=f"{cell} of the red coin"),
            "blue_coin": Field("int32", doc=f"{cell} of the blue coin"),
            "own_coins": Field("int32", doc="coins of their own colour that the players took in this episode"),
            "other_coins": Field("int32", doc="coins of the other's colour that they took"),
        }

    def render(self, cfg: CoinGameConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        canvas.background("paper")
        canvas.view(-0.2, -0.2, 3.2, 3.2, y_down=True, hud=True)
        canvas.cached(_board)
        for k, name in enumerate(("red_coin", "blue_coin")):
            row, column = divmod(int(state[name]), 3)
            canvas.cached(_coin, column + 0.28 + 0.44 * k, row + 0.76, COLOURS[k])
        for k, name in enumerate(COLOURS):
            row, column = divmod(int(state[name]), 3)
            canvas.cached(_player, column + 0.28 + 0.44 * k, row + 0.3, name)
        t = int(state["elapsed_steps"])
        own, other = int(state["own_coins"]), int(state["other_coins"])
        if own + other:  # how far they cooperate: the share of coins that were taken by whom they belong to
            canvas.rect(0, 3.07, 3, 3.13, fill="rose", radius=0.03)
            canvas.rect(0, 3.07, 3 * own / (own + other), 3.13, fill="green", radius=0.03)
        coins = f"own coins {own}, the other's {other}"
        canvas.hud(left="Coin game", right=f"{coins}   round {t // cfg.num_inner_steps + 1} of {cfg.num_outer_steps}")


def _board(canvas: Canvas) -> None:
    """Nine cells, and marks where who leaves comes back on the other side."""
    for cell in range(9):
        row, column = divmod(cell, 3)
        canvas.rect(
            column + 0.02, row + 0.02, column + 0.98, row + 0.98, radius=0.08, outline="line",
            fill="white" if cell % 2 else "#fbfcfd",
        )  # fmt: skip
    for k in range(3):
        middle = k + 0.5
        for x, y, angle in ((-0.1, middle, 180), (3.1, middle, 0), (middle, -0.1, 270)):
            canvas.dart(x, y, np.radians(angle), 0.06, fill="line")


def _coin(canvas: Canvas, x: float, y: float, colour: str) -> None:
    """A coin with a rim, and the colour of the player to whom it belongs."""
    canvas.circle(x + 0.012, y + 0.018, 0.16, fill="#1f293730")
    canvas.circle(x, y, 0.16, fill="yellow", outline="#c9962b", width=2.0)
    canvas.circle(x, y, 0.085, fill=colour)


def _player(canvas: Canvas, x: float, y: float, colour: str) -> None:
    """A figure: shoulders and a head."""
    canvas.sector(x, y + 0.21, 0.21, np.pi, 2 * np.pi, fill=colour)
    canvas.circle(x, y - 0.06, 0.125, fill=colour, outline="white", width=2.0)
