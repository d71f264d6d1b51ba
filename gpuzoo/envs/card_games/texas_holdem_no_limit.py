"""No-limit Texas hold'em."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.card_games import cards
from gpuzoo.envs.card_games.poker import CARDS, Poker, PokerConfig


@dataclasses.dataclass(frozen=True)
class TexasHoldemNoLimitConfig(PokerConfig):
    """How many play, and for how much."""

    chips: int = param(100, low=3, high=10_000, doc="chips that each player has at the beginning")


class TexasHoldemNoLimit(Poker):
    """Texas hold'em in which a bet may be half the pot, the pot, or all that a player has.

    Cards, blinds, rounds and showdown are those of TexasHoldem. Every player begins with 100 chips. The dealer is drawn
    for each game; the next player has the small blind of 1, and the one after that the big blind of 2. So of two
    players the dealer has the big blind. The player after the big blind begins, and in later rounds the first one after
    the dealer who can still bet.

    A round ends when everybody who has not folded and still has chips has answered the last raise. If nobody can bet
    any more, or one player at most who is not behind, all cards are shown at once.

    **Agents.** `player_0`, `player_1`, ... They move in turn: a step is one move, and the actions of players who are
    not to move are ignored.

    **Actions.** `Discrete(5)`: 0 fold, 1 check or call, 2 raise by half the pot, rounded down, 3 raise by the pot, 4
    bet all chips. A raise by the pot adds as many chips to the player's own as there are in the pot, those for a call
    included. Folding and calling are always legal. The others are legal if the player has more chips than a call takes.
    For half the pot and the pot the player needs as many chips, and half the pot must be more than a call takes. The
    action mask holds the legal actions of the player to move, and zeros for the others.

    **Observation.** `Box(0, 100, (54,), int16)`: the player's own cards and those on the table, one number for each
    card of the deck: spades from the ace to the king, hearts, diamonds, clubs. Then the player's chips in the pot, and
    the most that any player has there.

    **Reward.** At the end the chips that were won or lost. In between 0.

    **End.** Only one player has not folded, or the last round is over. An illegal action of the player to move ends the
    game at once with -1 for that player and 0 for the others.

    **As in RLCard.** A fold may end a round, and then the next cards are shown although the game is over. If a pot
    cannot be shared equally, one of the winners, drawn at random, gets the remaining chips, as in TexasHoldem.

    **Differences from PettingZoo.** PettingZoo draws the dealer once per seed, who stays the same in later games. Its
    observations are float32, and all players see the mask of the player to move. `chips` is RLCard's `chips_for_each`.
    """

    id = "TexasHoldemNoLimit-v0"
    Config = TexasHoldemNoLimitConfig
    aliases = (r"texas_holdem_no_limit(_v6)?", r"no-limit-holdem")
    reference = "rlcard==1.2.0 in pettingzoo==1.25.0 texas_holdem_no_limit_v6"
    links: ClassVar[Mapping[str, str]] = {
        "PettingZoo": "https://pettingzoo.farama.org/environments/classic/texas_holdem_no_limit/",
        "RLCard": "https://rlcard.org/games.html#no-limit-texas-hold-em",
    }
    moves = ("fold", "check or call", "raise half the pot", "raise the pot", "all in")

    def constants(self, cfg: TexasHoldemNoLimitConfig) -> dict[str, int]:
        return {"STACK": cfg.chips}

    def observation_space(self, cfg: TexasHoldemNoLimitConfig, group: str) -> spaces.Box:
        high = np.array([1] * CARDS + [cfg.chips] * 2, np.int16)
        return spaces.Box(np.zeros_like(high), high, dtype=np.int16)

    def observation_names(self, cfg: TexasHoldemNoLimitConfig, group: str) -> dict[str, int]:
        return cards.names("own and public cards") | {"own chips in the pot": 1, "most chips of any player": 1}

    def fields(self, cfg: PokerConfig) -> dict[str, Field]:
        return super().fields(cfg) | {"dealer": Field("int32", doc="index of the dealer")}
