"""Kuhn poker."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field
from gpuzoo.render import Canvas

CARDS = ("jack", "queen", "king")


@dataclasses.dataclass(frozen=True)
class KuhnPokerConfig(Config):
    """Kuhn poker has no options."""


class KuhnPoker(EnvDef):
    """Poker of two players with one card each, out of three, and one round of betting.

    Both put a chip into the pot and get a card: jack, queen or king. Whoever bets adds a chip. If both bet or both
    pass, the higher card wins; if one bets and the other one passes after that, the bet wins. In equilibrium the
    first player loses 1/18 of a chip per game (Kuhn 1950).

    **Agents.** `player_0`, who begins, and `player_1`. They move in turn: a step is one move, and the action of the
    player who is not to move is ignored.

    **Actions.** `Discrete(2)`: 0 bet (or call), 1 pass (or fold). Both are always legal for the player to move; the
    action mask of the other one has zeros.

    **Observation.** `Box(0, 1, (7,), int8)`: one-hot, the player's own card, and how many chips the player and the
    opponent have bet, 0 or 1.

    **Reward.** At the end what was won or lost, in chips: 1 or 2. In between 0.

    **End.** After two or three moves. An action out of range ends the game at once with -1 for the player to move and 0
    for the other.

    **Differences from Pgx.** Pgx draws the seats: either player may begin. At the end of a game all its actions are
    legal.
    """

    id = "KuhnPoker-v0"
    Config = KuhnPokerConfig
    aliases = (r"kuhn(_poker)?",)
    invalid_action = -1
    action_mask = True
    chooses = True
    short_episodes = True
    turn = "to_move"
    reference = "pgx==2.6.0 kuhn_poker"
    interaction = "competitive"
    links: ClassVar[Mapping[str, str]] = {"Pgx": "https://www.sotets.uk/pgx/kuhn_poker/"}
    render_fps = 1

    def agents(self, cfg: KuhnPokerConfig) -> dict[str, int]:
        return {"player": 2}

    def observation_space(self, cfg: KuhnPokerConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (7,), np.int8)

    def action_space(self, cfg: KuhnPokerConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(2)

    def observation_names(self, cfg: KuhnPokerConfig, group: str) -> dict[str, int]:
        chips = {f"{who} chips bet: {k}": 1 for who in ("own", "opponent's") for k in range(2)}
        return {f"own card: {card}": 1 for card in CARDS} | chips

    def action_names(self, cfg: KuhnPokerConfig, group: str) -> dict[str, int]:
        return {"bet": 1, "pass": 1}

    def fields(self, cfg: KuhnPokerConfig) -> dict[str, Field]:
        return {
            "card": Field("int32", ("players",), "of each player: 0 jack, 1 queen, 2 king"),
            "bet": Field("int32", ("players",), "chips that each player has bet, beside the first one"),
            "last_action": Field("int32", doc="0 bet, 1 pass, -1 before the first"),
            "to_move": Field("int32", doc="index of the player to move"),
        }

    def render(self, cfg: KuhnPokerConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        last, mover = int(state["last_action"]), int(state["to_move"])
        shown = not np.any(state["alive"]) and state["bet"][0] == state["bet"][1]
        canvas.background("#2f7d57")
        canvas.view(0, 0, 4, 4, y_down=True, hud=True)
        for a in range(2):
            x, y = (1.2, 2.8) if a == 0 else (2.8, 1.2)
            canvas.rect(x - 0.55, y - 0.75, x + 0.55, y + 0.75, radius=0.12, fill="white", outline="line")
            hidden = canvas.hides(a) and not shown
            card, colour = ("?", "slate") if hidden else ("JQK"[int(state["card"][a])], ("red", "blue")[a])
            canvas.text(x, y, card, colour=colour, size=34)
            for k in range(1 + int(state["bet"][a])):
                side = 1 - 2 * a
                canvas.circle(2 + side * (0.2 + 0.35 * k), 2 + side * 0.6, 0.15, fill=("red", "blue")[a])
        said = f"   player_{1 - mover}: {('bet', 'pass')[last]}" if last >= 0 else ""
        canvas.hud(left=f"Kuhn poker{said}", right=f"player_{mover} to move")
