"""Limit Texas hold'em."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import Field
from gpuzoo.envs.card_games import cards
from gpuzoo.envs.card_games.poker import CARDS, Poker, PokerConfig

ROUNDS, MAX_RAISES = 4, 4


class TexasHoldem(Poker):
    """Poker with two cards in each hand, five on the table, and bets of a fixed size.

    A player, drawn for each game, puts the small blind of 1 chip into the pot, and the next one the big blind of 2.
    Everybody gets two cards. There are four rounds of betting: before the flop, which shows three cards on the table,
    then before the turn and the river, which show a fourth and a fifth card, and after the river. The player with the
    best five of seven cards then wins the pot: straight flush, four of a kind, full house, flush, straight, three of a
    kind, two pairs, a pair, high card, and among equals the higher ranks. An ace also counts as one in a straight.
    Hands that are equal share the pot.

    A raise goes 2 chips above the highest bet in the first two rounds, and 4 in the last two. Each round has four
    raises at most. The player after the big blind begins; later rounds go on with the next player who has not folded.
    A round ends after as many moves as there are players without a new raise. The last raise counts as one of them, and
    folds do not count.

    **Agents.** `player_0`, `player_1`, ... They move in turn: a step is one move, and the actions of players who are
    not to move are ignored.

    **Actions.** `Discrete(4)`: 0 call, 1 raise, 2 fold, 3 check. Calling is legal for a player who has bet less than
    another one, checking for all others. The action mask holds the legal actions of the player to move, and zeros for
    the others.

    **Observation.** `Box(0, 1, (72,), int8)`: the player's own cards and those on the table, one number for each card
    of the deck: spades from the ace to the king, hearts, diamonds, clubs. Then for each round the number of raises,
    0 to 4, one-hot.

    **Reward.** At the end the chips that were won or lost, divided by 2, the big blind. In between 0.

    **End.** Only one player has not folded, or the last round is over. An illegal action of the player to move ends the
    game at once with -1 for that player and 0 for the others.

    **As in RLCard.** With three players or more, a round needs as many moves after a player has folded, so some players
    are asked twice. The pot is shared in layers, each up to the bet of the next player who has folded. If a layer
    cannot be shared equally, one of the winners, drawn at random, gets the remaining chips.

    **Differences from PettingZoo.** Its observations are float32, and all players see the mask of the player to move.
    """

    id = "TexasHoldem-v0"
    Config = PokerConfig
    aliases = (r"texas_holdem(_v4)?", r"limit-holdem")
    reference = "rlcard==1.2.0 in pettingzoo==1.25.0 texas_holdem_v4"
    links: ClassVar[Mapping[str, str]] = {
        "PettingZoo": "https://pettingzoo.farama.org/environments/classic/texas_holdem/",
        "RLCard": "https://rlcard.org/games.html#limit-texas-hold-em",
    }
    moves = ("call", "raise", "fold", "check")

    def observation_space(self, cfg: PokerConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (CARDS + ROUNDS * (MAX_RAISES + 1),), np.int8)

    def observation_names(self, cfg: PokerConfig, group: str) -> dict[str, int]:
        raises = {f"raises in round {k + 1}, 0 to {MAX_RAISES}": MAX_RAISES + 1 for k in range(ROUNDS)}
        return cards.names("own and public cards") | raises

    def fields(self, cfg: PokerConfig) -> dict[str, Field]:
        return super().fields(cfg) | {"raises": Field("int32", (ROUNDS,), "of each round")}
