"""STORM for any number of players on a field of any size."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.storm.field import MeetingConfig, MeetingGame

MOST_SHOWN, CHANNELS = 127, 14
BEAM, RED_COIN, BLUE_COIN = 2, 3, 4  # what a cell holds


@dataclasses.dataclass(frozen=True)
class StormNPConfig(MeetingConfig):
    """Players, field, rounds, and what a meeting pays."""

    num_agents: int = param(2, low=2, high=64, doc="number of players")
    grid_size: int = param(8, low=4, high=64, doc="side of the square field")
    obs_size: int = param(5, low=1, high=31, doc="side of the square view")
    num_coins: int = param(6, low=1, high=512, doc="coins of each colour")
    corrected: bool = param(False, doc="the rules as they seem to be meant")


class StormNP(MeetingGame):
    """Players collect coins of two colours, the strategies of a matrix game, and play it with the players they shoot.

    Players walk on a square field with red and blue coins. When a player shoots another one and both have coins, they
    play the matrix game. A player's mixed strategy is the share of each colour among its coins. By default the game is
    the prisoner's dilemma, and red coins mean cooperation. Khan et al., "Scaling opponent shaping to high dimensional
    games" (2023).

    **Start.** Players and coins begin in different cells, drawn at random.

    **Actions.** `Discrete(8)`: turn left, turn right, step forward, stay, shoot at the cell ahead, at the second cell
    ahead, at the cell right of the first, at the cell left of the first.

    **Movement.** A player that walks against the wall stays. If several players want to be in one cell, the first of
    those that are already there gets it. If all of them come from other cells, one of them is drawn at random. The
    others go back. A player takes the coin in the cell where it is after the move.

    **Shots.** A player may shoot if it has coins and does not stand still. It hits the player in the target cell, if
    that player has coins and does not stand still. If several players shoot at one player, one of those in front of it
    and one of the others are drawn. A shot lights up all four cells. A cell beyond the wall is replaced by the last
    cell before the wall, and a cell beside it by the cell ahead.

    **Meeting.** The two players that met stand still for `freeze_penalty` more steps. Then they begin again without
    coins, in cells drawn at random, and all missing coins come back.

    **Observation.** `Box(0, 127, (14 obs_size²,), int8)`: a view of `obs_size` x `obs_size` cells; the player stands in
    the middle of the edge behind it. Each cell has 14 numbers: whether it holds the wall, a beam, a red coin, a blue
    coin, the player itself, another player; four for the other player's direction minus the player's own, 0 to 3;
    whether the player in the cell has coins; its red and blue coins, or 0; and whether it is another player that stands
    still.

    **Reward.** The payoffs of the matrix game. In JaxMARL they are as described below. With `corrected`, the shooter
    gets `first_payoff_..` and the player that is hit gets `second_payoff_..`. With shares (r, b) of the first and (r',
    b') of the second player, the first gets `r r' first_payoff_rr + r b' first_payoff_rb + b r' first_payoff_br + b b'
    first_payoff_bb`.

    **End.** A round has `num_inner_steps` steps. Its last step gives no reward, and then everything begins again. The
    episode terminates after `num_outer_steps` rounds.

    These are the rules of JaxMARL 0.2.0, including some that look like mistakes:

    - A player that goes back may share a cell with a player that has entered it; the one with the higher index is then
      the visible one. A player that stays, but is not the first in its cell, does not turn if a third player wants to
      enter.
    - A shot to the left happens only if somebody at the right could be hit. Then it hits the player at the left, even
      one without coins, or the shooter itself.
    - Let P1 and P2 be the two matrices, and x_a the shares of player a. If a hits b and b hits c, then a gets `x_c P1
      x_b`. If b hits nobody, a gets nothing. b gets `x_b P2 x_a`, and the payoff of its own hit; if two players hit b,
      only the one with the higher index counts. Let z be the last of the players that hit player 0 or nobody. If z hits
      nobody, player 0 gets what its own victim gets, or nothing if it has none.
    - A beam is invisible in a cell that a player with a higher index, which does not shoot, has at the same one of its
      four places.
    - Players that begin again avoid each other, but not what is already on the field. A coin hides a player in its
      cell.
    - In the view of player a, "the player itself" is player a + 1, except for the last player. The coins shown, and
      whether somebody stands still, belong to the player before the one in the cell. Coins of players other than player
      0 are shown if that player stands still, and the player before it is among the first twelve with an entry other
      than 0 in row a + 5 (or the last row) of the matrix of steps to stand still, which is -1 before the first meeting.
    - The direction after a start is never the last of the four.

    With `corrected` nobody enters a cell in which somebody stands, and exactly one of the players that want a cell gets
    it. Shots to the left work like those to the right. A player that shoots from the cell in front of another one comes
    before the others. All beams are visible. A player that begins again gets a free cell. Views show the player itself
    and the others as they are, and the coins of those that stand still because they met the player. JaxMARL draws some
    random numbers from the same key; here they are independent. Its `payoff_matrix` is understood.
    """

    id = "StormNP-v0"
    Config = StormNPConfig
    invalid_action = 3
    reference = "jaxmarl 0.2.0 storm_np"
    beam, coins = BEAM, (RED_COIN, BLUE_COIN)
    benchmarks: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "16 players": {"num_agents": 16, "grid_size": 16, "num_coins": 24}
    }

    def agents(self, cfg: StormNPConfig) -> dict[str, int]:
        return {"player": cfg.num_agents}

    def check(self, cfg: StormNPConfig) -> None:
        things, cells = cfg.num_agents + 2 * cfg.num_coins, cfg.grid_size**2
        if 2 * things > cells:
            raise ValueError(
                f"StormNP: {cfg.num_agents} players and {2 * cfg.num_coins} coins need {2 * things} cells, but "
                f"grid_size={cfg.grid_size} has {cells}."
            )

    def observation_space(self, cfg: StormNPConfig, group: str) -> spaces.Box:
        return spaces.Box(0, MOST_SHOWN, (cfg.obs_size**2 * CHANNELS,), np.int8)

    def action_space(self, cfg: StormNPConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(8)

    def observation_names(self, cfg: StormNPConfig, group: str) -> dict[str, int]:
        items = "the wall, a beam, a red coin, a blue coin, the player, another one"
        rest = "four relative directions, whether it has coins, its red coins, its blue coins, whether it stands still"
        return {f"for each cell of the view: whether there is {items}; {rest}": cfg.obs_size**2 * CHANNELS}

    def action_names(self, cfg: StormNPConfig, group: str) -> dict[str, int]:
        shots = ("shoot ahead", "shoot two ahead", "shoot ahead and right", "shoot ahead and left")
        return dict.fromkeys(("turn left", "turn right", "step forward", "stay", *shots), 1)

    def constants(self, cfg: StormNPConfig) -> dict[str, int]:
        cells = cfg.grid_size**2
        return {"SIDE": cfg.grid_size, "VIEW": cfg.obs_size, "FIELD": cells, "TWICE": 2 * cfg.num_coins} | {
            "MOST_SHOWN": MOST_SHOWN
        }

    def fields(self, cfg: StormNPConfig) -> dict[str, Field]:
        items = "0 nothing, 2 a beam, 3 a red coin, 4 a blue coin, 5 and more the players"
        return {
            "cell": Field("int32", ("agents",), "grid_size * x + y of each player"),
            "direction": Field("int32", ("agents",), "where each player looks: 0 y + 1, 1 x + 1, 2 y - 1, 3 x - 1"),
            "inventory": Field("int32", ("agents", 2), "red and blue coins of each player"),
            "freeze": Field(
                "int32", ("agents", "agents"), "steps to stand still for meeting another one; -1: never met"
            ),
            "grid": Field("int8", ("FIELD",), f"what is in each cell: {items}"),
            "coin_cell": Field("int32", ("TWICE",), "places of the red coins, then of the blue ones"),
            "acts": Field("int8", ("agents",), "the action of each", scratch=True),
            "wanted": Field("int32", ("agents",), "the cell in which each wants to be", scratch=True),
            "went": Field("int32", ("agents",), "the cell in which each is after the move", scratch=True),
            "ready": Field("bool", ("agents",), "whether each may shoot", scratch=True),
            "aim": Field("int8", ("agents",), "whom each would hit, or -1", scratch=True),
            "hit": Field("int8", ("agents",), "whom each hits, or -1", scratch=True),
            "ended": Field("bool", ("agents",), "whether each begins anew", scratch=True),
            "gone": Field("bool", ("TWICE",), "whether each coin is gone", scratch=True),
            "lights": Field("uint32", ("FIELD",), "whether a beam lights up each cell", scratch=True),
            "order": Field("int32", ("FIELD",), "the cells in random order", scratch=True),
        }
