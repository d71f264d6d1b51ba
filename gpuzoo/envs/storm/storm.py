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

    Two to eight players walk on a field of 8 x 8 cells with six red and six blue coins. When two players hit each other
    with their beams and both have coins, they play the matrix game. A player's mixed strategy is the share of each
    colour among its coins. By default the game is the prisoner's dilemma, and red coins mean cooperation. Khan et al.,
    "Scaling opponent shaping to high dimensional games" (2023).

    **Start.** Eight different places are drawn from 18 places near the corners. Player k begins at the k-th of them.

    **Actions.** `Discrete(5)`: turn left, turn right, step forward, shoot, stay.

    **Movement.** A player that walks against the wall stays. A player that walks into the cell of a player that stays
    is stopped. If two players walk into the same cell, one of them, drawn at random, is stopped. (For exceptions see
    below.) A player takes the coin in the cell where it is after the move.

    **Coins** grow again at their places. Each place has a timer, drawn from 3 to 9 steps. When the timer is over and
    the cell is empty, a coin appears, and the timer is drawn again.

    **Beams** light up four cells: the cells one and two ahead, and the cells left and right of the first. They end at
    the wall. They hit the players that stood in these cells before the move.

    **Meeting.** The game goes through as many pairs as there are players, in random order. The two of a pair meet if
    both shoot, hit each other and have coins. They stand still for `freeze_penalty` steps, and everybody sees their
    coins. Then they begin again without coins, at places drawn as at the start, even if somebody stands there.

    **Observation.** `Box(0, 127, (402 + 3 n,), int8)` for n players. First comes a view of 5 x 5 cells; the player
    stands in the middle of the edge behind it. Each cell has 16 numbers, 0 or 1: whether it holds the player itself,
    each of seven others (player 0 takes the place of the player itself; some may not exist), a red coin, a blue coin,
    the wall, a beam; and a direction, 0 to 3. Then come the player's red and blue coins. Then, for all players in the
    order of the view: whether they have coins, their red coins, and their blue coins. The counts are 0 unless that
    player stands still.

    **Reward.** The payoffs of a meeting. Let (r, b) be the shares of the player with the lower index, and (r', b')
    those of the other one. The first player gets `r r' first_payoff_rr + r b' first_payoff_rb + b r' first_payoff_br +
    b b' first_payoff_bb`.

    **End.** A round has `num_inner_steps` steps. Its last step gives no reward, and then everything begins again. The
    episode terminates after `num_outer_steps` rounds.

    These are the rules of JaxMARL 0.2.0, including some that look like mistakes:

    - A player is stopped only if some, but not all, of the others stop it. So with two players nobody is stopped, and
      both may stand in one cell. The player with the higher index is then the visible one.
    - If player 0 and another player walk into the same cell, one draw stops both or neither.
    - The game goes through only as many pairs as there are players. With two players the one pair comes up twice, so
      they meet but get nothing. Of a pair, the player with the lower index is paid only if the other is the last
      player, and the last player only if the other is the last but one. A player that has met may be met again; that
      stops the other player too, but pays nobody.
    - A player sees the directions only of players with higher indices. In the place of such a player it sees the
      direction of the next player, minus its own, modulo 5; a difference of -1 shows no direction. After the last
      player the direction counts as -128. Player a takes cells with numbers up to a + n for players, even if they hold
      coins, walls or beams.
    - The direction after a start is never the last of the four. At the beginning of a round, a coin hides a player that
      stands on its cell.

    With `corrected` nobody enters a cell in which somebody stands, and exactly one of the players that want a cell gets
    it. Beams hit the players that stand there after the move. All pairs are tried, each player meets at most one other,
    and both are paid. A player that begins again gets a free place. The direction shown is that of the player in the
    cell, minus the player's own, modulo 4.

    JaxMARL draws some random numbers from the same key; here they are independent. JaxMARL shows the coins of all
    players to all of them in a second array. Its `payoff_matrix` is understood.
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
