"""STORM for two to eight players, where coins grow again."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.storm.field import MeetingConfig, MeetingGame

SIDE, VIEW, MOST_PLAYERS, MOST_SHOWN = 8, 5, 8, 127
RED_COIN, BLUE_COIN, BEAM = 9, 10, 12  # what a cell holds
#: (x, y) of coins: every second one is red, the first one too, if their places are fixed
COINS = (
    (1, 1), (1, 2), (2, 1), (1, 6), (2, 6), (1, 5), (6, 2), (5, 1), (6, 1), (6, 6), (6, 5), (5, 6),
)  # fmt: skip
#: (x, y) of where players may begin
STARTS = (
    (0, 0), (0, 1), (0, 2), (1, 0), (1, 2), (0, 7), (0, 6), (0, 5), (1, 7), (7, 0), (7, 1), (7, 2), (6, 0),
    (7, 7), (7, 6), (7, 5), (6, 7), (6, 5),
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class StormConfig(MeetingConfig):
    """Players, rounds, and what a meeting pays."""

    num_agents: int = param(3, low=2, high=MOST_PLAYERS, doc="number of players")
    fixed_coin_location: bool = param(True, doc="coins of a colour lie at the same places in all rounds")
    corrected: bool = param(False, doc="the rules as they seem to be meant")


class Storm(MeetingGame):
    """Players collect coins of two colours, which are strategies of a matrix game, and meet in pairs to play it.

    Two to eight players walk on a field of 8 x 8 cells with six red and six blue coins. Two players that shoot their
    beams at each other play the matrix game, if both have coins: a player's mixed strategy is the shares of the
    colours among its coins. By default this is the prisoner's dilemma, in which red coins cooperate. Khan et al.,
    "Scaling opponent shaping to high dimensional games" (2023).

    **Start.** Eight of 18 places at the corners are drawn, and in their order the first ones are the players'.

    **Actions.** `Discrete(5)`: turn left, turn right, step forward, shoot, stay.

    **Movement.** Who walks against the wall stays. Who walks into a cell where another one stays is stopped, and of
    two who walk into the same cell a draw stops one; but see below. A player takes the coin of the cell in which it
    is after the move.

    **Coins** grow at their places again. Each has a timer, which is drawn from 3 to 9 steps; when it is over and
    nothing is in the cell, the coin is there, and the timer is drawn anew.

    **Beams** light up four cells: one and two ahead, and those to the left and right of the first. They end at the
    wall. They hit who stood in these cells before the players moved.

    **Meeting.** Pairs are looked at in random order, as many as there are players. The two meet if both shoot and hit
    each other, and both have coins. They stand still for `freeze_penalty` steps, in which everybody sees their coins.
    Then they begin with nothing at places that are drawn as at the start, even if somebody stands there.

    **Observation.** `Box(0, 127, (402 + 3 n,), int8)` for n players. First a view of 5 x 5 cells, in which the player
    stands in the middle of the edge at its back. Each cell has 16 numbers of 0 and 1: whether there is the player
    itself, each of seven others (player 0 in the place of the player itself; some may not exist), a red coin,
    a blue coin, the wall, a beam; and a direction, 0 to 3. Then the player's red and blue coins; and for all
    players, in the order of the view: whether they have coins, their red coins, their blue coins, which are 0 unless
    they stand still.

    **Reward.** The payoffs of a meeting. With the shares (r, b) of the player with the lower index and (r', b') of the
    other one the first gets `r r' first_payoff_rr + r b' first_payoff_rb + b r' first_payoff_br + b b'
    first_payoff_bb`.

    **End.** A round has `num_inner_steps` steps. Its last step gives no reward, and everything begins anew. The
    episode ends, by termination, after `num_outer_steps` rounds.

    These are the rules of JaxMARL 0.2.0, with what seems not to be meant there:

    - A player is stopped only if some, but not all others stop it. So two players are never stopped, and may
      stand in one cell; the one with the higher index is seen.
    - If player 0 and another one walk into the same cell, the same draw stops both or neither.
    - Only as many pairs as there are players are looked at. Two players are looked at twice, so they meet but get
      nothing. Of a pair the one with the lower index is paid only if the other is the last player, and the last player
      only if the other is the last but one. Somebody who has met may be met again, which stops the other one, too, but
      pays nobody.
    - A player sees the directions of players with higher indices only, and that of the one after them in their place,
      less its own, modulo 5, where a difference of -1 is shown as none. Behind the last player the direction is taken
      for -128. Player a takes cells up to the number a + n for players, even if they are coins, walls or beams.
    - The direction after a start is never the last of the four. In the beginning of a round a coin hides a player
      that stands on its cell.

    With `corrected` nobody enters a cell in which somebody stands, and one of those who want a cell gets it; beams hit
    who stands there after the move; all pairs are looked at, each player meets one other at most, and both are paid;
    who begins anew gets a free place; a direction is that of the player in the cell, less the own one, modulo 4.
    JaxMARL draws some random numbers from the same key; here they are independent. It shows the coins of all players
    to all, in a second array. `payoff_matrix` is understood as there.
    """

    id = "Storm-v0"
    Config = StormConfig
    invalid_action = 4
    reference = "jaxmarl 0.2.0 storm"
    beam, coins = BEAM, (RED_COIN, BLUE_COIN)
    benchmarks: ClassVar[Mapping[str, Mapping[str, Any]]] = {"8 players": {"num_agents": 8}}

    def agents(self, cfg: StormConfig) -> dict[str, int]:
        return {"player": cfg.num_agents}

    def observation_space(self, cfg: StormConfig, group: str) -> spaces.Box:
        return spaces.Box(0, MOST_SHOWN, (VIEW * VIEW * 16 + 2 + 3 * cfg.num_agents,), np.int8)

    def action_space(self, cfg: StormConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(5)

    def observation_names(self, cfg: StormConfig, group: str) -> dict[str, int]:
        items = "the player, each of seven others, a red coin, a blue coin, the wall, a beam"
        view = f"for each cell of the view: whether there is {items}; a relative direction"
        own = {view: VIEW * VIEW * 16, "red coins of the player": 1, "blue coins of the player": 1}
        kinds = ("whether each player has coins", "the red coins of each, or 0", "the blue coins of each, or 0")
        return own | dict.fromkeys(kinds, cfg.num_agents)

    def action_names(self, cfg: StormConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("turn left", "turn right", "step forward", "shoot", "stay"), 1)

    def constants(self, cfg: StormConfig) -> dict[str, int]:
        sizes = {"SIDE": SIDE, "VIEW": VIEW, "COINS": len(COINS), "STARTS": len(STARTS)}
        return sizes | {"MOST_PLAYERS": MOST_PLAYERS, "MOST_SHOWN": MOST_SHOWN}

    def tables(self, cfg: StormConfig) -> dict[str, NDArray[Any]]:
        places = {"coin_cell": COINS, "start_cell": STARTS}
        return {name: np.array([SIDE * x + y for x, y in cells], np.int32) for name, cells in places.items()}

    def fields(self, cfg: StormConfig) -> dict[str, Field]:
        items = "0 nothing, 1 to 8 the players, 9 a red coin, 10 a blue coin, 12 a beam"
        return {
            "cell": Field("int32", ("agents",), "8 * x + y of each player"),
            "direction": Field("int32", ("agents",), "where each player looks: 0 y + 1, 1 x + 1, 2 y - 1, 3 x - 1"),
            "inventory": Field("int32", ("agents", 2), "red and blue coins of each player"),
            "freeze": Field("int32", ("agents",), "steps for which each player will stand still, or -1"),
            "grid": Field("int8", (SIDE * SIDE,), f"what is in each cell: {items}"),
            "coin_is_red": Field("bool", ("COINS",), "the colours of the coins"),
            "timer": Field("int8", ("COINS",), "steps until each coin grows again"),
            "start": Field("int8", ("agents",), "where each would begin anew", scratch=True),
            "wanted": Field("int8", ("agents",), "the cell into which each wants to go", scratch=True),
            "went": Field("int8", ("agents",), "the cell in which each is after the move", scratch=True),
            "shoots": Field("bool", ("agents",), "whether each shoots", scratch=True),
            "met": Field("bool", ("agents",), "whether each met another one", scratch=True),
        }
