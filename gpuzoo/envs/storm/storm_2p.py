"""STORM for two players."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, Field, param
from gpuzoo.envs.storm.field import MeetingGame

SIDE, VIEW = 8, 5
RED, BLUE, RED_COIN, BLUE_COIN, BEAM = 1, 2, 3, 4, 6  # what a cell holds
#: (x, y) of coins: every second one is red, if their places are fixed
COINS = (
    (1, 1), (1, 2), (2, 1), (1, 6), (2, 6), (1, 5), (6, 2), (5, 1), (6, 1), (6, 6), (6, 5), (5, 6),
)  # fmt: skip
#: (x, y) of where red may begin; blue begins at the opposite place
STARTS = (
    (0, 0), (1, 0), (2, 0), (0, 1), (2, 1), (7, 0), (6, 0), (5, 0), (7, 1), (0, 7), (1, 7), (2, 7), (0, 6),
    (7, 7), (6, 7), (5, 7), (7, 6), (5, 6),
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Storm2PConfig(Config):
    """Rounds, and what a meeting pays; the defaults are a prisoner's dilemma."""

    num_inner_steps: int = param(152, low=1, doc="steps of a round")
    num_outer_steps: int = param(1, low=1, doc="rounds of an episode")
    fixed_coin_location: bool = param(True, doc="coins of a colour lie at the same places in all rounds")
    freeze_penalty: int = param(5, low=0, high=32767, doc="steps for which players stand still after they met")
    red_payoff_rr: float = param(3.0, doc="what red gets if both have red coins only")
    red_payoff_rb: float = param(0.0, doc="what red gets if red has red coins, and blue has blue ones")
    red_payoff_br: float = param(5.0, doc="what red gets if red has blue coins, and blue has red ones")
    red_payoff_bb: float = param(1.0, doc="what red gets if both have blue coins only")
    blue_payoff_rr: float = param(3.0, doc="what blue gets if both have red coins only")
    blue_payoff_rb: float = param(5.0, doc="what blue gets if red has red coins, and blue has blue ones")
    blue_payoff_br: float = param(0.0, doc="what blue gets if red has blue coins, and blue has red ones")
    blue_payoff_bb: float = param(1.0, doc="what blue gets if both have blue coins only")


class Storm2P(MeetingGame):
    """Two players collect coins of two colours, which are strategies of a matrix game, and then meet to play it.

    A red and a blue player walk on a field of 8 x 8 cells with six red and six blue coins. When a player's beam hits
    the other one and both have coins, they play the matrix game. A player's mixed strategy is the share of each colour
    among its coins. By default the game is the prisoner's dilemma, and red coins mean cooperation. Khan et al.,
    "Scaling opponent shaping to high dimensional games" (2023).

    **Agents.** `player_0` is red, `player_1` blue.

    **Actions.** `Discrete(5)`: turn left, turn right, step forward, shoot, stay.

    **Movement.** A player that walks against the wall stays. If both want the same cell, the player that is already
    there gets it; if both come from other cells, one of them is drawn at random. Players may swap cells. A player takes
    the coin in the cell where it is after the move.

    **Beams** light up four cells: the cells one and two ahead, and the cells left and right of the first. They end at
    the wall. They hit a player in one of these cells.

    **Meeting.** When a beam hits and both have coins, both get their payoffs and stand still for `freeze_penalty`
    steps. During these steps each sees the other's coins. Then the coins return to their places, and the players begin
    elsewhere without coins.

    **Observation.** `Box(0, 6, (256,), int8)`. First comes a view of 5 x 5 cells; the player stands in the middle of
    the edge behind it. Each cell has ten numbers, 0 or 1: whether it holds the player itself, the other player, a red
    coin, a blue coin, the wall, a beam; and, if the other player is there, its direction minus the player's own, 0 to
    3. Then come the player's red and blue coins, whether it has any, whether the other has any, and the other's red and
    blue coins, which are shown while both stand still.

    **Reward.** The payoffs of a meeting. With a player's shares (r, b) and the other's (r', b') red gets `r r'
    red_payoff_rr + r b' red_payoff_rb + b r' red_payoff_br + b b' red_payoff_bb`, where the first letter is red's.

    **End.** A round has `num_inner_steps` steps. Its last step gives no reward, and then everything begins again. The
    episode terminates after `num_outer_steps` rounds.

    These are the rules of JaxMARL 0.2.0, including some that look like mistakes. The direction after a start is never
    the last of the four. Fixed coins have the same colours in all rounds. At the beginning of a round a coin hides a
    player that stands on its cell; that player takes it by staying. The last step of a round gives no reward. JaxMARL
    draws the direction, the place and who comes first from one random number; here they are independent. Its
    `payoff_matrix`, `[[[rr, rb], [br, bb]], ...]` for red and then for blue, is understood.
    """

    id = "Storm2P-v0"
    Config = Storm2PConfig
    invalid_action = 4
    reference = "jaxmarl 0.2.0 storm_2p"
    similar = (r"storm_2p",)
    beam, coins, pair = BEAM, (RED_COIN, BLUE_COIN), ("red", "blue")

    def agents(self, cfg: Storm2PConfig) -> dict[str, int]:
        return {"player": 2}

    def observation_space(self, cfg: Storm2PConfig, group: str) -> spaces.Box:
        return spaces.Box(0, len(COINS) // 2, (VIEW * VIEW * 10 + 6,), np.int8)

    def action_space(self, cfg: Storm2PConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(5)

    def observation_names(self, cfg: Storm2PConfig, group: str) -> dict[str, int]:
        items = "the player, the other, a red coin, a blue coin, the wall, a beam"
        view = f"for each cell of the view: whether there is {items}, the other with each of four relative directions"
        whether = {"whether the player has coins": 1, "whether the other has coins": 1}
        others = {"the other's red coins, or 0": 1, "the other's blue coins, or 0": 1}
        return {view: VIEW * VIEW * 10, "red coins of the player": 1, "blue coins of the player": 1} | whether | others

    def action_names(self, cfg: Storm2PConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("turn left", "turn right", "step forward", "shoot", "stay"), 1)

    def constants(self, cfg: Storm2PConfig) -> dict[str, int]:
        return {"SIDE": SIDE, "VIEW": VIEW, "COINS": len(COINS), "STARTS": len(STARTS)}

    def tables(self, cfg: Storm2PConfig) -> dict[str, NDArray[Any]]:
        places = {"coin_cell": COINS, "start_cell": STARTS}
        return {name: np.array([SIDE * x + y for x, y in cells], np.int32) for name, cells in places.items()}

    def fields(self, cfg: Storm2PConfig) -> dict[str, Field]:
        items = "0 nothing, 1 the red player, 2 the blue player, 3 a red coin, 4 a blue coin, 6 a beam"
        return {
            "cell": Field("int32", ("agents",), "8 * x + y of each player"),
            "direction": Field("int32", ("agents",), "where each player looks: 0 y + 1, 1 x + 1, 2 y - 1, 3 x - 1"),
            "inventory": Field("int32", ("agents", 2), "red and blue coins of each player"),
            "freeze": Field("int32", doc="steps for which the players will stand still, or -1"),
            "grid": Field("int8", (SIDE * SIDE,), f"what is in each cell: {items}"),
            "coin_is_red": Field("bool", ("COINS",), "the colours of the coins that are laid out again"),
        }
