"""Blackjack."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas


@dataclasses.dataclass(frozen=True)
class BlackjackConfig(Config):
    """The arguments of Gymnasium's Blackjack, as it registers them."""

    natural: bool = param(False, doc="whether a win with an ace and a ten pays 1.5; without effect if `sab`")
    sab: bool = param(True, doc="Sutton and Barto's rules: an ace and a ten beat all but an ace and a ten")


def _draw_table(canvas: Canvas) -> None:
    canvas.sector(5, -7.2, 13.2, 0.15 * np.pi, 0.85 * np.pi, fill="#37895f")
    canvas.sector(5, -7.2, 12.9, 0.15 * np.pi, 0.85 * np.pi, fill="#2f7d57")
    canvas.text(5, 0.55, "DEALER", height=0.5, colour="#cfe6d9")
    canvas.text(5, 5.55, "PLAYER", height=0.5, colour="#cfe6d9")


def _draw_card(canvas: Canvas, x: float, value: int, red: bool) -> None:
    y, face, colour = 1.1, "A" if value == 1 else str(value), "red" if red else "ink"
    canvas.rect(x + 0.07, y + 0.09, x + 2.27, y + 3.29, fill="#2b6549", radius=0.2)
    canvas.rect(x, y, x + 2.2, y + 3.2, fill="white", outline="line", width=1, radius=0.2)
    canvas.text(x + 1.1, y + 1.75, face, height=1.5, colour=colour, bold=True)
    for cx, cy in ((x + 0.38, y + 0.42), (x + 1.82, y + 2.78)):
        if red:
            canvas.polygon([(cx, cy - 0.24), (cx + 0.17, cy), (cx, cy + 0.24), (cx - 0.17, cy)], fill="red")
        else:
            canvas.circles([(cx - 0.1, cy + 0.05), (cx + 0.1, cy + 0.05), (cx, cy - 0.1)], 0.11, "ink")
            canvas.polygon([(cx, cy), (cx + 0.09, cy + 0.25), (cx - 0.09, cy + 0.25)], fill="ink")


def _draw_back(canvas: Canvas) -> None:
    """The dealer's card that is face down."""
    canvas.rect(5.22, 1.19, 7.42, 4.39, fill="#2b6549", radius=0.2)
    canvas.rect(5.15, 1.1, 7.35, 4.3, fill="blue", outline="white", width=3, radius=0.2)
    for k in range(3):
        for j in range(4):
            cx, cy = 5.65 + 0.6 * k, 1.65 + 0.7 * j
            canvas.polygon([(cx, cy - 0.3), (cx + 0.26, cy), (cx, cy + 0.3), (cx - 0.26, cy)], fill="#8db8f0")


def _draw_fan(canvas: Canvas, cards: int) -> None:
    """The player's cards."""
    first, last = 3.9 - 0.21 * (cards - 1), 3.9 + 0.21 * (cards - 1)
    canvas.rect(first + 0.05, 6.09, last + 2.25, 9.29, fill="#2b6549", radius=0.2)
    for x in np.linspace(first, last, cards).tolist():
        canvas.rect(x, 6.0, x + 2.2, 9.2, fill="white", outline="grey", width=1.2, radius=0.2)


class Blackjack(EnvDef):
    """A card game against the dealer: come closer to 21 than the dealer, without going over it.

    **Cards.** 2 to 10 count as their number; jack, queen and king count 10. An ace counts 11 (a usable ace), or 1 if
    the hand would be over 21. Each draw gives each of the 13 cards with the same probability.

    **Actions.** `Discrete(2)`: 0 stick, 1 hit (take a card).

    **Observation.** `MultiDiscrete([32, 11, 2])`: sum of the player's hand, the dealer's card that is face up (an ace
    is 1), whether the player has a usable ace.

    **Reward.** After a hit -1 if the hand is over 21, else 0. After sticking the dealer draws until their hand has 17
    or more; 1 if the player's sum is higher or the dealer's over 21, 0 if the sums are equal, else -1. With `sab`, an
    ace and a ten as the first two cards win (1), unless the dealer has that too. Without `sab` and with `natural`, a
    win with them pays 1.5.

    **Start.** Two cards for the dealer, one of them face up, and two for the player.

    **End.** The player sticks, or is over 21. No time limit. An action out of range counts as 0.

    **Differences from Gymnasium.** The observation is an array where theirs is a tuple.
    """

    id = "Blackjack-v1"
    Config = BlackjackConfig
    short_episodes = True
    reference = "gymnasium Blackjack-v1"
    links: ClassVar[Mapping[str, str]] = {
        "Gymnasium": "https://gymnasium.farama.org/environments/toy_text/blackjack/",
        "Sutton and Barto, example 5.1": "http://incompleteideas.net/book/the-book-2nd.html",
    }
    render_fps = 4

    def observation_space(self, cfg: BlackjackConfig, group: str) -> spaces.MultiDiscrete:
        return spaces.MultiDiscrete([32, 11, 2])

    def action_space(self, cfg: BlackjackConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(2)

    def observation_names(self, cfg: BlackjackConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(
            ("sum of the player's hand", "the dealer's card that is face up", "whether the player has a usable ace"), 1
        )

    def action_names(self, cfg: BlackjackConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("stick", "hit"), 1)

    def fields(self, cfg: BlackjackConfig) -> dict[str, Field]:
        return {
            "player_sum": Field("int32", doc="sum of the player's cards, aces counting 1"),
            "player_ace": Field("int32", doc="1 if the player has an ace, else 0"),
            "player_cards": Field("int32", doc="number of the player's cards"),
            "dealer_showing": Field("int32", doc="the dealer's card that is face up"),
            "dealer_hidden": Field("int32", doc="the dealer's card that is face down"),
        }

    def aspect(self, cfg: BlackjackConfig) -> float:
        return 0.8

    def render(self, cfg: BlackjackConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        canvas.background("#2f7d57")
        canvas.view(1, 0, 9, 10, y_down=True, hud=True)
        canvas.cached(_draw_table)
        showing, hidden = int(state["dealer_showing"]), int(state["dealer_hidden"])
        over = not bool(np.ravel(state["alive"])[0])
        canvas.cached(_draw_card, 2.65, showing, showing % 2 == 1)
        if over:
            canvas.cached(_draw_card, 5.15, hidden, hidden % 2 == 0)
        else:
            canvas.cached(_draw_back)
        ace = bool(state["player_ace"]) and int(state["player_sum"]) <= 11
        total = int(state["player_sum"]) + 10 * ace
        cards = int(state["player_cards"])
        last = 3.9 + 0.21 * (min(cards, 9) - 1)
        canvas.cached(_draw_fan, min(cards, 9))
        canvas.text(last + 1.1, 7.5, str(total), height=1.5, colour="red" if total > 21 else "ink", bold=True)
        canvas.text(last + 1.1, 8.75, "bust" if total > 21 else "soft" if ace else "sum", height=0.45, colour="slate")
        canvas.text(5, 9.65, f"{cards} cards", height=0.5, colour="#cfe6d9")
        canvas.hud(left="Blackjack", right=f"step {int(state['elapsed_steps'])}")
