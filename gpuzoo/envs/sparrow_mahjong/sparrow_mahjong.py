"""Sparrow mahjong."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas

PLAYERS, KINDS, FEATURES, GREEN, RED = 3, 11, 15, 9, 10
NAMES = (*(f"bamboo {k}" for k in range(1, 10)), "green dragon", "red dragon")
JADE, RUBY = "#2f8a57", "#cf3f45"
WIDTH, HEIGHT = 15.2, 7.5


@dataclasses.dataclass(frozen=True)
class SparrowMahjongConfig(Config):
    """Which rules hold."""

    corrected: bool = param(
        False, doc="all players can win by drawing in all rounds, and the dealer's first tile can be red"
    )


class SparrowMahjong(EnvDef):
    """Three players draw and discard tiles until one has two sets of three.

    There are 44 tiles: bamboos 1 to 9, green dragons and red dragons, four of each. One of each bamboo is red, and all
    red dragons are. A set is a triplet of a kind, or a run of three bamboos. Everybody gets five tiles. Another one,
    the dora, is shown. In turn each player draws a tile and discards one of its six. If these are two sets, the player
    wins at once. If a discarded tile makes two sets with another player's five, and they are worth 5 points or more,
    that player wins, except if it has discarded a tile of the same kind before. Several may win at once. All this is
    automatic: a player only chooses the kind to discard. Of a red tile and another one of the same kind, the other one
    is discarded.

    **Points.** A run is worth 1, a triplet 2. A hand without 1, 9 and dragons is worth 1 more. Each dora and each red
    tile counts 1, but not a discarded tile's red colour. Green hands, of bamboos 2, 3, 4, 6, 8 and green dragons, are
    worth 10 more, hands of 1, 9 and dragons alone 15, and those with six red tiles 20; in these neither dora nor red
    tiles count. The dealer has 2 more for winning. For a discard its player pays all of this to each winner. For a
    drawn tile both others pay half, rounded up.

    **Agents.** `player_0`, the dealer, who begins, `player_1`, `player_2`. A step is one discard. The actions of
    players who are not to move are ignored.

    **Actions.** `Discrete(11)`: the kind of the tile to discard, bamboos 1 to 9, green dragon, red dragon. The action
    mask holds what the player to move has, and zeros for the others.

    **Observation.** `Box(0, 1, (11, 15), int8)`, for each kind: whether the player has at least one, two, three, four;
    whether it has a red one; whether it is the dora; whether the player itself, the next one, and the one after that
    have discarded it; whether it is the last, second last and third last discard of the next player, and of the one
    after that.

    **Reward.** At the end the points that were won or paid, divided by 26. In between 0.

    **End.** Somebody wins, or no tile is left to draw. An illegal action of the player to move ends the game at once
    with -1 for that player and 0 for the others.

    **As in Pgx.** From the fourth turn on only `player_2` wins by drawing: the program looks at the hand whose number
    is the turn's, or else at the last one. The dealer's sixth tile does not count as red. With `corrected` all players
    win by drawing, and that tile is red if it is. A deal in which the dealer has won before the first discard is dealt
    anew, 15 times at most.

    **Differences from Pgx.** Pgx draws the seats. After an illegal action it gives 2 to each of the others. At the end
    of a game all its actions are legal.
    """

    id = "SparrowMahjong-v0"
    Config = SparrowMahjongConfig
    aliases = (r"sparrow_mahjong",)
    invalid_action = -1
    action_mask = True
    chooses = True
    turn = "to_move"
    reference = "pgx==2.6.0 sparrow_mahjong"
    interaction = "competitive"
    links: ClassVar[Mapping[str, str]] = {
        "Pgx": "https://www.sotets.uk/pgx/sparrow_mahjong/",
        "Koyamada et al. 2023": "https://arxiv.org/abs/2303.17503",
    }
    benchmarks: ClassVar[Mapping[str, Mapping[str, Any]]] = {"corrected": {"corrected": True}}
    exempt: ClassVar[Mapping[str, str]] = {
        "rows_are_stored_in_few_sectors": "The masks of an env are 33 bytes, which begin and end inside of sectors.",
    }
    render_fps = 2

    def agents(self, cfg: SparrowMahjongConfig) -> dict[str, int]:
        return {"player": PLAYERS}

    def observation_space(self, cfg: SparrowMahjongConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (KINDS, FEATURES), np.int8)

    def action_space(self, cfg: SparrowMahjongConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(KINDS)

    def observation_names(self, cfg: SparrowMahjongConfig, group: str) -> dict[str, int]:
        others = ("the next player", "the player after that")
        names = {"at least one, two, three, four in the hand": 4, "a red one in the hand": 1, "the dora": 1}
        names |= {f"discarded by {who}": 1 for who in ("the player itself", *others)}
        return names | {f"last, second last, third last discard of {who}": 3 for who in others}

    def action_names(self, cfg: SparrowMahjongConfig, group: str) -> dict[str, int]:
        return {f"discard {name}": 1 for name in NAMES}

    def fields(self, cfg: SparrowMahjongConfig) -> dict[str, Field]:
        return {
            "hand": Field("uint64", ("players",), "tiles of each player: four bits count those of a kind"),
            "reds": Field("uint64", ("players",), "the red ones of them, likewise"),
            "river": Field(
                "uint64", ("players",), "discards of each player, kind + 1 in four bits, the last one lowest"
            ),
            "reds_in_river": Field("uint32", ("players",), "a bit for each of them: whether it is red"),
            "wall": Field("uint64", doc="tiles left to draw: bit 4 * kind + copy"),
            "dora": Field("int32", doc="kind of the dora"),
            "turn": Field("int32", doc="discards before this one"),
            "last_discard": Field("int32", doc="kind of the last discard, -1 before the first"),
            "winners": Field("uint32", doc="a bit for each player who has won"),
            "decided": Field("bool", doc="whether the game is over"),
            "to_move": Field("int32", doc="index of the player to move"),
            "thrown": Field(
                "uint64", ("agents",), "kinds discarded by players, 11 bits each, from this one on", scratch=True
            ),
        }

    def aspect(self, cfg: SparrowMahjongConfig) -> float:
        return WIDTH / (HEIGHT + 0.5)

    def side(self, cfg: SparrowMahjongConfig) -> int:
        return 680

    def render(self, cfg: SparrowMahjongConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        canvas.background("#20463b")
        canvas.view(0, 0, WIDTH, HEIGHT, y_down=True, hud=True)
        dora, winners, over = int(state["dora"]), int(state["winners"]), bool(state["decided"])
        for p in range(PLAYERS):
            y, moves = 1.32 + 2.42 * p, not over and p == int(state["to_move"])
            won = bool(winners >> p & 1)
            fill = "#2f6150" if moves else "#6b5a1e" if won else "#275546"
            canvas.rect(0.2, y - 1.12, WIDTH - 0.2, y + 1.2, radius=0.18, fill=fill)
            name = f"player_{p}" + ("  (dealer)" if p == 0 else "") + ("  wins" if won else "")
            canvas.text(0.45, y - 0.83, name, height=0.34, anchor="lm", bold=moves or won,
                        colour="#ffd75e" if moves or won else "#dcebe3")  # fmt: skip
            self._hand(
                canvas, int(state["hand"][p]), int(state["reds"][p]), y + 0.27, dora, canvas.hides(p) and not over
            )
            self._river(canvas, int(state["river"][p]), int(state["reds_in_river"][p]), y + 0.27)
        left = int(state["wall"]).bit_count()
        result = "over" if over else f"player_{int(state['to_move'])} to move"
        canvas.hud(left=f"Sparrow mahjong   dora: {NAMES[dora]}   {left} tiles left", right=result)

    def _hand(self, canvas: Canvas, hand: int, reds: int, y: float, dora: int, hidden: bool) -> None:
        x = 0.95
        for kind in range(KINDS):
            for k in range(hand >> 4 * kind & 15):
                if hidden:
                    canvas.cached(_back, x, y, 1.45)
                else:
                    canvas.cached(_tile, x, y, 1.45, kind, k < (reds >> 4 * kind & 15), kind == dora)
                x += 1.06

    def _river(self, canvas: Canvas, river: int, reds: int, y: float) -> None:
        count = (river.bit_length() + 3) // 4
        for k in range(count):
            kind = (river >> 4 * (count - 1 - k) & 15) - 1
            canvas.cached(_tile, 7.5 + 0.76 * k, y, 1.0, kind, bool(reds >> (count - 1 - k) & 1), False)


def _back(canvas: Canvas, x: float, y: float, height: float) -> None:
    """The back of a tile."""
    w, h = 0.36 * height, 0.5 * height
    canvas.rect(x - w, y - h + 0.07 * height, x + w, y + h + 0.07 * height, radius=0.1 * height, fill="#cfc6b0")
    canvas.rect(x - w, y - h, x + w, y + h, radius=0.1 * height, fill="#c08a3e", outline="#8f6427", width=1)


def _tile(canvas: Canvas, x: float, y: float, height: float, kind: int, red: bool, dora: bool) -> None:
    """A tile: a bamboo's number with as many sticks, or a dragon."""
    w, h = 0.36 * height, 0.5 * height
    canvas.rect(x - w, y - h + 0.07 * height, x + w, y + h + 0.07 * height, radius=0.1 * height, fill="#b58a4a")
    edge = "#ffd75e" if dora else "#cfc6b0"
    canvas.rect(x - w, y - h, x + w, y + h, radius=0.1 * height, fill="#fbf8ef", outline=edge, width=3 if dora else 1)
    if kind >= GREEN:
        ink = JADE if kind == GREEN else RUBY
        canvas.rect(x - 0.21 * height, y - 0.3 * height, x + 0.21 * height, y + 0.3 * height, outline=ink, width=1.5,
                    radius=0.06 * height)  # fmt: skip
        canvas.text(x, y, "G" if kind == GREEN else "R", height=0.44 * height, colour=ink, bold=True)
        return
    number, ink = kind + 1, RUBY if red else JADE
    canvas.text(x - 0.2 * height, y - 0.33 * height, str(number), height=0.24 * height, colour=ink, bold=True)
    rows = {1: [1], 2: [1, 1], 3: [1, 2], 4: [2, 2], 5: [2, 1, 2], 6: [3, 3], 7: [1, 3, 3], 8: [3, 2, 3], 9: [3, 3, 3]}
    lines = rows[number]
    size = 0.56 * height / max(len(lines), 2)
    for row, count in enumerate(lines):
        middle = y + 0.1 * height + size * (row - (len(lines) - 1) / 2)
        for k in range(count):
            left = x + 0.19 * height * (k - (count - 1) / 2)
            canvas.rect(left - 0.045 * height, middle - 0.42 * size, left + 0.045 * height, middle + 0.42 * size,
                        radius=0.04 * height, fill=ink)  # fmt: skip
            canvas.line(left - 0.04 * height, middle, left + 0.04 * height, middle, colour="#fbf8ef", width=0.8)
