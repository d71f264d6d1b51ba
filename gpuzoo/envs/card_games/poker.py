"""What limit and no-limit Texas hold'em have in common: agents, state and pictures."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar

from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.envs.card_games import cards
from gpuzoo.render import Canvas

CARDS = 52
WIDTH, HEIGHT = 14.0, 10.0
STAGES = ("before the flop", "flop", "turn", "river", "end")
CATEGORIES = (
    "high card", "a pair", "two pairs", "three of a kind", "a straight", "a flush", "a full house", "four of a kind",
    "a straight flush",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class PokerConfig(Config):
    """How many play."""

    num_players: int = param(2, low=2, high=23, doc="number of players")


class Poker(EnvDef):
    """Texas hold'em with any rule of betting."""

    invalid_action = -1
    action_mask = True
    chooses = True
    turn = "to_move"
    interaction = "competitive"
    benchmarks: ClassVar[Mapping[str, Mapping[str, Any]]] = {"6 players": {"num_players": 6}}
    exempt: ClassVar[Mapping[str, str]] = {
        "half_occupancy": "Hands and pots take up to 72 registers: seven blocks of 128 threads on an SM.",
    }
    moves: ClassVar[tuple[str, ...]]
    render_fps = 1

    def agents(self, cfg: PokerConfig) -> dict[str, int]:
        return {"player": cfg.num_players}

    def action_space(self, cfg: PokerConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(len(self.moves))

    def action_names(self, cfg: PokerConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(self.moves, 1)

    def fields(self, cfg: PokerConfig) -> dict[str, Field]:
        return {
            "hand": Field("uint64", ("players",), "both cards of each player: bit 13 * suit + rank, rank 0 is the ace"),
            "public_cards": Field("uint64", doc="the cards on the table, likewise"),
            "value": Field(
                "uint32", ("players",), "of each player's hand at a showdown: bits 26 and up are its category"
            ),
            "chips": Field("int32", ("players",), "that each player has in the pot"),
            "folded": Field("uint32", doc="a bit for each player who has folded"),
            "round": Field("int32", doc="of betting, from 0; 4 after the last one"),
            "acted": Field("int32", doc="players who have acted since the last raise, the one who raised included"),
            "to_move": Field("int32", doc="index of the player to move"),
            "last_player": Field("int32", doc="who made the last move"),
            "last_action": Field("int32", doc="the last move, -1 before the first"),
        }

    def aspect(self, cfg: PokerConfig) -> float:
        return 1.35

    def side(self, cfg: PokerConfig) -> int:
        return 640

    def render(self, cfg: PokerConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        canvas.background("#1f2a30")
        canvas.view(0.2, -0.15, WIDTH - 0.2, HEIGHT + 0.15, y_down=True, hud=True)
        canvas.cached(_table)
        players, chips = cfg.num_players, [int(x) for x in state["chips"]]
        folded, public, stage = int(state["folded"]), int(state["public_cards"]), int(state["round"])
        over = stage == len(STAGES) - 1 or players - folded.bit_count() == 1
        for k, card in enumerate(cards.of_set(public)):
            canvas.cached(cards.draw_card, WIDTH / 2 + 1.1 * (k - 2), HEIGHT / 2 - 0.35, 1.45, card)
        canvas.text(WIDTH / 2, HEIGHT / 2 + 0.85, f"pot {sum(chips)}", height=0.5, colour="#f3e6b5", bold=True)
        size = 1.55 if players < 5 else 1.2 if players < 9 else 0.8
        values = [int(x) for x in state["value"]]
        for p in range(players):
            turn = math.pi / 2 + 2 * math.pi * p / players
            x, y = WIDTH / 2 + 5.45 * math.cos(turn), HEIGHT / 2 + 3.75 * math.sin(turn)
            self._seat(canvas, state, p, x, y, size, not over and p == int(state["to_move"]))
            _chips(canvas, turn, chips[p], players)
            if values[p] and values[p] == max(values):
                canvas.text(x, y + 0.78 * size, CATEGORIES[values[p] >> 26], height=0.3, colour="#ffd75e", bold=True)
        last, who = int(state["last_action"]), int(state["last_player"])
        said = f"player_{who}: {self.moves[last]}" if last >= 0 else ""
        canvas.hud(left=f"Texas hold'em   {STAGES[stage]}", right="over   " + said if over else said)

    def _seat(
        self, canvas: Canvas, state: Mapping[str, NDArray[Any]], p: int, x: float, y: float, size: float, moves: bool
    ) -> None:
        folded = int(state["folded"])
        gone = bool(folded >> p & 1)
        shown = int(state["round"]) == len(STAGES) - 1 and len(state["hand"]) - folded.bit_count() > 1
        half = 0.42 * size * 2
        if moves:
            canvas.rect(x - half - 0.12, y - 0.58 * size - 0.06, x + half + 0.12, y + 0.62 * size, radius=0.2,
                        outline="#ffd75e", width=2.4)  # fmt: skip
        for k, card in enumerate(cards.of_set(int(state["hand"][p]))):
            place = (x + 0.78 * size * (k - 0.5), y, size)
            if gone or (canvas.hides(p) and not shown):
                canvas.cached(cards.draw_back, *place)
            else:
                canvas.cached(cards.draw_card, *place, card)
        label = f"player_{p}" if size > 1 else str(p)
        colour = "#ffd75e" if moves else "#8fa3a0" if gone else "#eef3ee"
        canvas.text(x, y - 0.72 * size, label, height=0.32, colour=colour, bold=moves)


def _table(canvas: Canvas) -> None:
    for grow, fill in ((0.28, "#5b3a24"), (0.12, "#7a5030"), (0.0, cards.FELT)):
        canvas.rect(1.0 - grow, 1.15 - grow, WIDTH - 1.0 + grow, HEIGHT - 1.15 + grow, radius=3.6, fill=fill)
    canvas.rect(1.5, 1.65, WIDTH - 1.5, HEIGHT - 1.65, radius=3.1, outline="#3d8465", width=1.5)


def _chips(canvas: Canvas, turn: float, count: int, players: int) -> None:
    """A player's stacks of chips, of 25, 5 and 1, and what they are worth."""
    if count == 0:
        return
    x, y = WIDTH / 2 + 3.9 * math.cos(turn), HEIGHT / 2 + 2.15 * math.sin(turn)
    kinds = (("#2f2f35", count // 25), ("#3c9a5f", count % 25 // 5), ("#d8574f", count % 5))
    stacks = [(fill, min(number, 8)) for fill, number in kinds if number]
    left = x - 0.22 * (len(stacks) - 1)
    for k, (fill, number) in enumerate(stacks):
        for level in range(number):
            canvas.circle(left + 0.44 * k, y - 0.07 * level, 0.19, fill=fill, outline="#f4efe2", width=1)
    if players < 9 and abs(math.cos(turn)) > 0.3:
        canvas.text(x, y + 0.42, str(count), height=0.36, colour="#f4efe2")
    elif players < 9:
        canvas.text(x + 0.22 * len(stacks) + 0.15, y, str(count), height=0.36, colour="#f4efe2", anchor="lm")
