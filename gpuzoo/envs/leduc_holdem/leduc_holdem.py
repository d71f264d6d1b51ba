"""Leduc hold'em."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas

CARDS = ("jack", "queen", "king")
HIGHEST = 13  # chips of one player


@dataclasses.dataclass(frozen=True)
class LeducHoldemConfig(Config):
    """What players see."""

    observation_type: Literal["pgx", "pettingzoo"] = param("pgx", doc="whose observations")


class LeducHoldem(EnvDef):
    """Poker of two players with six cards, a public card, and two rounds of betting.

    The deck has two jacks, two queens and two kings. Both players put a chip into the pot and get a card of their
    own. After the first round of betting a public card is shown, and after the second one the player whose card makes
    a pair with it wins, or else the higher card. A raise is two chips in the first round and four in the second one,
    and each round has two at most.

    **Agents.** `player_0`, who begins both rounds, and `player_1`. They move in turn: a step is one move, and the
    action of the player who is not to move is ignored.

    **Actions.** `Discrete(3)`: 0 call (or check), 1 raise (or bet), 2 fold, which is legal after a raise only. The
    action mask holds the legal actions of the player to move, and zeros for the other one.

    **Observation.** `Box(0, 1, (34,), int8)`: one-hot, the player's own card; the public card, zeros in the first
    round; the player's chips in the pot, 0 to 13; the opponent's. With ``observation_type="pettingzoo"`` it is that of
    PettingZoo's `leduc_holdem_v4`, `Box(0, 1, (36,), int8)`: chips are 0 to 14.

    **Reward.** At the end what was won or lost, in chips. In between 0.

    **End.** A fold, or the end of the second round, after 8 moves at the latest. An illegal action of the player to
    move ends the game at once with -1 for that player and 0 for the other; the cards and chips stay as they were.

    **As in Pgx.** The public card is hidden again after a showdown.

    **Differences from Pgx.** Pgx draws the seats: either player may begin. After an illegal action it gives 1 to the
    other player. At the end of a game all its actions are legal.
    """

    id = "LeducHoldem-v0"
    Config = LeducHoldemConfig
    aliases = (r"leduc(_holdem|_poker)?",)
    invalid_action = -1
    action_mask = True
    chooses = True
    short_episodes = True
    turn = "to_move"
    reference = "pgx==2.6.0 leduc_holdem"
    interaction = "competitive"
    links: ClassVar[Mapping[str, str]] = {
        "Pgx": "https://www.sotets.uk/pgx/leduc_holdem/",
        "Southey et al. 2005": "https://arxiv.org/abs/1207.1411",
    }
    render_fps = 1

    def agents(self, cfg: LeducHoldemConfig) -> dict[str, int]:
        return {"player": 2}

    def constants(self, cfg: LeducHoldemConfig) -> dict[str, int]:
        return {"CHIPS": _chips(cfg)}

    def observation_space(self, cfg: LeducHoldemConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (6 + 2 * _chips(cfg),), np.int8)

    def action_space(self, cfg: LeducHoldemConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(3)

    def observation_names(self, cfg: LeducHoldemConfig, group: str) -> dict[str, int]:
        cards = {f"{whose} card: {card}": 1 for whose in ("own", "public") for card in CARDS}
        most = _chips(cfg) - 1
        chips = {f"{whose} chips, 0 to {most}": most + 1 for whose in ("own", "opponent's")}
        return cards | chips

    def action_names(self, cfg: LeducHoldemConfig, group: str) -> dict[str, int]:
        return {"call": 1, "raise": 1, "fold": 1}

    def fields(self, cfg: LeducHoldemConfig) -> dict[str, Field]:
        return {
            "card": Field("int32", ("players",), "of each player: 0 jack, 1 queen, 2 king"),
            "public_card": Field("int32", doc="the public card, likewise, seen from the second round on"),
            "chips": Field("int32", ("players",), "that each player has in the pot"),
            "round": Field("int32", doc="0 before the public card, 1 after it, 2 after the showdown"),
            "raises": Field("int32", doc="of this round"),
            "last_action": Field("int32", doc="of this round: 0 call, 1 raise, -1 none"),
            "to_move": Field("int32", doc="index of the player to move"),
        }

    def render(self, cfg: LeducHoldemConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        canvas.background("#2f7d57")
        canvas.view(0, 0, 4.4, 4.4, y_down=True, hud=True)
        _card(canvas, 2.2, 2.2, "JQK"[int(state["public_card"])] if int(state["round"]) else "?", "slate")
        for a in range(2):
            x, y, colour = (0.9, 3.3, "red") if a == 0 else (3.5, 1.1, "blue")
            hidden = canvas.hides(a) and int(state["round"]) < 2
            _card(canvas, x, y, "?" if hidden else "JQK"[int(state["card"][a])], "slate" if hidden else colour)
            for k in range(int(state["chips"][a])):
                canvas.circle(
                    1.75 + 0.19 * (k % 7) if a == 0 else 2.65 - 0.19 * (k % 7),
                    3.5 + 0.2 * (k // 7) if a == 0 else 0.9 - 0.2 * (k // 7),
                    0.09,
                    fill=colour,
                    outline="white",
                )
        mover, last = int(state["to_move"]), int(state["last_action"])
        said = f"   player_{1 - mover}: {('call', 'raise')[last]}" if last >= 0 else ""
        canvas.hud(left=f"Leduc hold'em{said}", right=f"player_{mover} to move")


def _card(canvas: Canvas, x: float, y: float, name: str, colour: str) -> None:
    canvas.rect(x - 0.5, y - 0.7, x + 0.5, y + 0.7, radius=0.12, fill="white", outline="line")
    canvas.text(x, y, name, colour=colour, size=32)


def _chips(cfg: LeducHoldemConfig) -> int:
    """How many counts of a player's chips an observation tells apart."""
    return HIGHEST + 1 if cfg.observation_type == "pgx" else HIGHEST + 2
