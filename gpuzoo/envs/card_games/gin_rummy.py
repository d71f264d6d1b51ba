"""Gin rummy."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.envs.card_games import cards
from gpuzoo.render import Canvas

CARDS = 52
PLANES = ("own hand", "top of the discard pile", "discard pile below the top", "opponent's cards that are known")
SIMPLE = ("count player_0's hand", "count player_1's hand", "draw", "pick up", "declare the hand dead", "gin")
DRAW, PICK_UP = 2, 3
BEGIN_TURN, THROW, COUNT_0, COUNT_1, OVER = range(5)
WIDTH, HEIGHT = 14.0, 9.6
HANDS, STOCK, PILE = (HEIGHT - 1.35, 1.65), (2.0, 5.0), (4.2, 5.0)  # where they lie in the picture
GOLD = "#ffd75e"


@dataclasses.dataclass(frozen=True)
class GinRummyConfig(Config):
    """Rewards, and what is seen."""

    knock_reward: float = param(0.5, doc="reward of the player who knocks")
    gin_reward: float = param(1.0, doc="reward of the player who goes gin")
    opponents_hand_visible: bool = param(False, doc="a fifth plane shows the cards that may be drawn or be held")


class GinRummy(EnvDef):
    """Two players draw and discard until nearly all cards of one of them are in sets and runs.

    A meld is a set, three or four cards of a rank, or a run, three or more cards of a suit in sequence. The ace is low.
    Cards outside of melds are deadwood: an ace counts 1, face cards count 10, and others their rank. A hand's deadwood
    is that of the best way to lay it out.

    A player, drawn for each game, gets 11 cards and the other one 10. The other 31 are the stock. The player with 11
    cards begins by discarding one. Then the players take turns: a player draws a card from the stock, or picks up the
    top of the discard pile, and then discards a card, but not the one picked up. In place of discarding, a player may
    **knock** with a card that leaves at most 10 points of deadwood, which ends the play. If a card leaves none, the
    player must go **gin**: of such cards the first one is thrown away, by suits (spades, hearts, diamonds, clubs) and
    ranks. A card that is thrown away by knocking or gin goes to no pile. If two cards are left in the stock, a player
    who does not pick up declares the hand **dead**, which nobody wins. After 199 moves of both this is the only legal
    move of a player whose turn begins. At the end `player_0` and then `player_1` count their hands, which is their only
    legal move.

    **Agents.** `player_0` and `player_1`. A step is one move: a player who draws moves again. The action of the player
    who is not to move is ignored.

    **Actions.** `Discrete(110)`: 0 count player_0's hand, 1 count player_1's hand, 2 draw, 3 pick up, 4 declare the
    hand dead, 5 gin, 6 to 57 discard a card, 58 to 109 knock with a card. Cards are numbered from the ace to the king:
    spades, hearts, diamonds, clubs. The action mask holds the legal actions of the player to move, and zeros for the
    other one.

    **Observation.** `Box(0, 1, (4, 52), int8)`, a number for each card: the player's own hand; the top of the discard
    pile; the cards below it; the opponent's cards that are known, which it has picked up and still holds. With
    `opponents_hand_visible` a fifth plane has the cards of the stock and those of the opponent's that are not known. At
    the end all is 0.

    **Reward.** At the end 1 for the player who went gin, 0.5 for the one who knocked, and for any other one its
    deadwood, divided by -100. In between 0.

    **End.** Both hands are counted. An illegal action of the player to move ends the game at once with -1 for that
    player and 0 for the other.

    **As in RLCard.** Whoever knocks wins: the other player lays off no cards and cannot undercut.

    **Differences from PettingZoo.** In PettingZoo both players see what the player to move sees. If several cards leave
    no deadwood, the order of a Python set decides which of them is thrown away. RLCard's own reward for a knock is 0.2.
    """

    id = "GinRummy-v0"
    Config = GinRummyConfig
    aliases = (r"gin[_-]rummy(_v4)?",)
    invalid_action = -1
    action_mask = True
    chooses = True
    turn = "to_move"
    reference = "rlcard==1.2.0 in pettingzoo==1.25.0 gin_rummy_v4"
    interaction = "competitive"
    links: ClassVar[Mapping[str, str]] = {
        "RLCard": "https://rlcard.org/games.html#gin-rummy",
        "PettingZoo 1.25": "https://pettingzoo.farama.org/1.25.0/environments/classic/gin_rummy/",
        "Rules": "https://www.pagat.com/rummy/ginrummy.html",
    }
    benchmarks: ClassVar[Mapping[str, Mapping[str, Any]]] = {"5 planes": {"opponents_hand_visible": True}}
    render_fps = 3

    def agents(self, cfg: GinRummyConfig) -> dict[str, int]:
        return {"player": 2}

    def observation_space(self, cfg: GinRummyConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (len(PLANES) + cfg.opponents_hand_visible, CARDS), np.int8)

    def action_space(self, cfg: GinRummyConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(len(SIMPLE) + 2 * CARDS)

    def observation_names(self, cfg: GinRummyConfig, group: str) -> dict[str, int]:
        return dict.fromkeys((*PLANES, *["cards that may be drawn or be held"] * cfg.opponents_hand_visible), 1)

    def action_names(self, cfg: GinRummyConfig, group: str) -> dict[str, int]:
        return {name: 1 for name in SIMPLE} | {
            f"{what} the {cards.name(card)}": 1 for what in ("discard", "knock with") for card in range(CARDS)
        }

    def fields(self, cfg: GinRummyConfig) -> dict[str, Field]:
        return {
            "hand": Field("uint64", ("players",), "cards of each player: bit 13 * suit + rank, rank 0 is the ace"),
            "known": Field("uint64", ("players",), "those of them that the opponent has seen the player pick up"),
            "discards": Field("uint64", doc="cards in the discard pile"),
            "gone": Field("uint64", doc="the card that was thrown away by knocking or gin"),
            "top": Field("int32", doc="the top of the discard pile, -1 if there is none"),
            "below": Field("int32", doc="the card under it, likewise; of no meaning after a card was picked up"),
            "picked_up": Field("int32", doc="the card that the player to move has picked up in this turn, or -1"),
            "phase": Field("int32", doc="0 a turn begins, 1 discard or knock, 2 and 3 hands are counted, 4 over"),
            "actions": Field("int32", doc="moves of both players"),
            "knocks": Field("uint64", doc="cards with which the player to move may knock"),
            "gins": Field("uint64", doc="those of them that leave no deadwood"),
            "gin": Field("bool", doc="whether a player went gin"),
            "went_out": Field("int32", doc="index of the player who knocked or went gin, -1 before that"),
            "to_move": Field("int32", doc="index of the player to move"),
            "last_action": Field("int32", doc="the last move, -1 before the first"),
        }

    def aspect(self, cfg: GinRummyConfig) -> float:
        return WIDTH / (HEIGHT + 0.6)

    def side(self, cfg: GinRummyConfig) -> int:
        return 640

    def render(self, cfg: GinRummyConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        numbers = {name: int(value) for name, value in state.items() if value.ndim == 0}
        canvas.background(cards.FELT)
        canvas.view(0, 0, WIDTH, HEIGHT, y_down=True, hud=True)
        for p, y in enumerate(HANDS):
            moves = p == numbers["to_move"] and numbers["phase"] < OVER
            hand, known = int(state["hand"][p]), int(state["known"][p])
            if canvas.hides(p) and numbers["phase"] < COUNT_0:
                _hidden_hand(canvas, p, hand, known, y, moves)
            else:
                self._hand(canvas, p, hand, known, y, moves)
        self._piles(canvas, state, numbers)
        canvas.hud(left="Gin rummy   " + self._last_move(numbers), right=self._result(numbers))

    def _hand(self, canvas: Canvas, p: int, hand: int, known: int, y: float, moves: bool) -> None:
        melds, left = best_melds(hand)
        _player(canvas, p, y, moves)
        canvas.text(
            WIDTH - 0.4, y - 1.32, f"deadwood {sum(map(points, left))}", height=0.38, anchor="rm", colour="#cfe6d9"
        )
        places = _places(melds, left)
        for meld in melds:
            canvas.rect(places[meld[0]] - 0.62, y + 0.92, places[meld[-1]] + 0.62, y + 1.02, radius=0.05, fill=GOLD)
        for card, x in places.items():
            canvas.cached(cards.draw_card, x, y, 1.55, card)
            if known >> card & 1:
                canvas.circle(x + 0.36, y - 0.56, 0.11, fill="#4285e0")

    def _piles(self, canvas: Canvas, state: Mapping[str, NDArray[Any]], numbers: Mapping[str, int]) -> None:
        y = STOCK[1]
        held = int(state["hand"][0]) | int(state["hand"][1])
        stock = ((1 << CARDS) - 1) & ~(held | numbers["discards"] | numbers["gone"])
        for k in range(min(3, stock.bit_count() // 8 + 1)):
            canvas.cached(cards.draw_back, STOCK[0] + 0.08 * k, y - 0.08 * k, 1.7)
        canvas.circle(*STOCK, 0.44, fill=cards.FELT)
        canvas.text(*STOCK, str(stock.bit_count()), height=0.42, colour="#ffffff", bold=True)
        canvas.text(2.1, y + 1.2, "stock", height=0.34, colour="#cfe6d9")
        if numbers["top"] >= 0:
            canvas.cached(cards.draw_card, *PILE, 1.7, numbers["top"])
        canvas.text(4.2, y + 1.2, "discards", height=0.34, colour="#cfe6d9")
        for card in range(CARDS):
            there = bool(numbers["discards"] >> card & 1)
            x, row = 6.2 + 0.56 * (card % 13), y - 0.95 + 0.62 * (card // 13)
            canvas.cached(_small_card, x, row, card, there, card == numbers["top"])

    def presses(
        self, cfg: GinRummyConfig, state: Mapping[str, NDArray[Any]], action: int
    ) -> list[tuple[float, float] | str]:
        if action < len(SIMPLE):
            return [STOCK] if action == DRAW else [PILE] if action == PICK_UP else []
        kind, card = divmod(action - len(SIMPLE), CARDS)
        mover = int(state["to_move"])
        places = _places(*best_melds(int(state["hand"][mover])))
        return [(places[card], HANDS[mover]), ("discard", "knock")[kind]] if card in places else []

    def _last_move(self, numbers: Mapping[str, int]) -> str:
        action = numbers["last_action"]
        if action < 0:
            return ""
        if action < len(SIMPLE):
            return SIMPLE[action]
        kind, card = divmod(action - len(SIMPLE), CARDS)
        return f"{('discard', 'knock with')[kind]} {cards.name(card)}"

    def _result(self, numbers: Mapping[str, int]) -> str:
        if numbers["phase"] < COUNT_0:
            return f"player_{numbers['to_move']} to move"
        if numbers["went_out"] < 0:
            return "dead hand"
        return f"player_{numbers['went_out']} {'goes gin' if numbers['gin'] else 'knocks'}"


def _places(melds: Sequence[Sequence[int]], left: Sequence[int]) -> dict[int, float]:
    """Where the cards of a hand lie from left to right: its melds, and what is left."""
    groups, step, places = [*melds, left] if left else [*melds], 1.12, {}
    width = step * (sum(map(len, groups)) + 0.45 * (len(groups) - 1)) - step + 1.4
    x = (WIDTH - width) / 2 + 0.7
    for group in groups:
        for card in group:
            places[card] = x
            x += step
        x += 0.45 * step
    return places


def _player(canvas: Canvas, p: int, y: float, moves: bool) -> None:
    canvas.text(0.4, y - 1.32, f"player_{p}", height=0.38, anchor="lm", colour=GOLD if moves else "#eef3ee", bold=moves)


def _hidden_hand(canvas: Canvas, p: int, hand: int, known: int, y: float, moves: bool) -> None:
    """A hand as the opponent sees it: the cards that the player has picked up, and the backs of the others."""
    _player(canvas, p, y, moves)
    seen, count = cards.of_set(known), hand.bit_count()
    step = 1.12
    for k in range(count):
        x = WIDTH / 2 + step * (k - (count - 1) / 2)
        if k < len(seen):
            canvas.cached(cards.draw_card, x, y, 1.55, seen[k])
        else:
            canvas.cached(cards.draw_back, x, y, 1.55)


def points(card: int) -> int:
    """What a card counts as deadwood."""
    return min(card % 13 + 1, 10)


@functools.lru_cache(maxsize=256)
def best_melds(hand: int) -> tuple[list[list[int]], list[int]]:
    """The melds of a hand that leave least deadwood, and the other cards."""
    held = cards.of_set(hand)
    sets = [[c for c in held if c % 13 == rank] for rank in range(13)]
    options = [group for group in sets if len(group) >= 3]
    options += [[c for c in group if c != out] for group in options if len(group) == 4 for out in group]
    for first in held:
        run = [first]
        while run[-1] % 13 < 12 and run[-1] + 1 in held:
            run.append(run[-1] + 1)
            if len(run) >= 3:
                options.append(list(run))

    def search(rest: frozenset[int], start: int) -> tuple[int, list[list[int]]]:
        best: tuple[int, list[list[int]]] = (sum(map(points, rest)), [])
        for k in range(start, len(options)):
            if rest.issuperset(options[k]):
                score, others = search(rest - {*options[k]}, k + 1)
                if score < best[0]:
                    best = (score, [options[k], *others])
        return best

    melds = search(frozenset(held), 0)[1]
    return melds, [c for c in held if not any(c in meld for meld in melds)]


def _small_card(canvas: Canvas, x: float, y: float, card: int, there: bool, top: bool) -> None:
    """A card of the table of discards."""
    fill = "#fdfcf8" if there else "#ffffff18"
    canvas.rect(x - 0.25, y - 0.28, x + 0.25, y + 0.28, radius=0.06, fill=fill, outline="#ffd75e" if top else None)
    ink = cards.INKS[card // 13] if there else "#ffffff48"
    rank = cards.RANKS[card % 13].replace("T", "10")
    canvas.text(x - 0.1, y, rank, height=0.26 if len(rank) == 1 else 0.21, colour=ink, bold=there)
    cards.draw_suit(canvas, x + 0.13, y, 0.19, card // 13, ink)
