"""Backgammon."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas

POINTS, BAR, OFF, PLACES, SIDES = 24, 24, 26, 28, 6
START = {0: 2, 5: -5, 7: -3, 11: 5, 12: -5, 16: 3, 18: 5, 23: -2}
COLOURS = ("white", "black")
FILLS, RIMS, RINGS = ("#f6efe0", "#38332f"), ("#a89a80", "#0f0d0c"), ("#d8cbb0", "#6a615a")
WIDTH, HEIGHT, GAP, RADIUS = 14.9, 11.4, 1.2, 0.45


@dataclasses.dataclass(frozen=True)
class BackgammonConfig(Config):
    """Which rules hold."""

    official: bool = param(
        False, doc="players must use as many dice as they can, and checkers on the bar count for a backgammon"
    )


class Backgammon(EnvDef):
    """Two players throw two dice to bring 15 checkers each around 24 points, and then off the board.

    Each player goes from point 24 down to point 1, which is the opponent's point 24. Both begin with two checkers on
    point 24, five on 13, three on 8 and five on 6. A die moves a checker by as many points as it shows. A checker may
    not go to a point that holds two or more of the opponent's. If it meets a single one, it hits it: that one goes to
    the bar. Whoever has checkers on the bar must first bring them back: a die of d enters at point 25 - d. When all
    checkers of a player are on its points 6 to 1, a die of d bears one off from point d, or from the highest point that
    has one if that is below d. Doubles are played four times.

    **Agents.** `player_0` (white), who begins, and `player_1` (black). A step is one die: the player to move stays the
    same until the turn's dice are played, and the action of the other one is ignored. At the end of a turn the other
    player's dice are thrown. The first throw is never a double.

    **Actions.** `Discrete(156)`: 6 * source + die - 1. The sources are 0 for no move, 1 for the bar, and 26 - n for
    point n as the mover counts it. The action mask holds the legal moves of the player to move, and zeros for the other
    one. No move (source 0) is legal only if no checker can move. It is then legal with each of the six numbers, and
    ends the turn.

    **Observation.** `Box(-15, 15, (34,), int8)`: checkers on points 24 to 1, on one's own bar, on the opponent's bar,
    borne off, and borne off by the opponent; then how many dice of each number from 1 to 6 are left to play. Own
    checkers are positive, the opponent's negative. As in Pgx, both players see the board as the one to move sees it;
    the other one sees no dice.

    **Reward.** At the end 1 for the winner. 2 if the loser has borne off no checker (a gammon), and 3 if one of these
    is still on the winner's points 6 to 1 (a backgammon). The loser gets the negative of that.

    **End.** A player has borne off all checkers. There is no time limit. An illegal action of the player to move ends
    the game at once with -3 for that player and 0 for the other; the board and the turn stay as they were.

    **Official rules.** `official` adds two rules that Pgx leaves out. A player who can play both dice must do so, and
    one who can play either of them, but not both, must play the higher one. A loser's checker on the bar makes a
    backgammon, too.

    **Differences from Pgx.** Pgx draws who begins. After an illegal action it gives 3 to the other player. At the end
    of a game all its actions are legal.
    """

    id = "Backgammon-v0"
    Config = BackgammonConfig
    aliases = (r"[Bb]ackgammon",)
    invalid_action = -1
    action_mask = True
    chooses = True
    turn = "to_move"
    reference = "pgx==2.6.0 backgammon"
    interaction = "competitive"
    links: ClassVar[Mapping[str, str]] = {
        "Pgx": "https://www.sotets.uk/pgx/backgammon/",
        "Antonoglou et al. 2022": "https://openreview.net/forum?id=X6D9bAHhBQ1",
        "Rules": "https://bkgm.com/rules.html",
    }
    benchmarks: ClassVar[Mapping[str, Mapping[str, Any]]] = {"official": {"official": True}}
    render_fps = 3

    def agents(self, cfg: BackgammonConfig) -> dict[str, int]:
        return {"player": 2}

    def observation_space(self, cfg: BackgammonConfig, group: str) -> spaces.Box:
        return spaces.Box(-15, 15, (PLACES + SIDES,), np.int8)

    def action_space(self, cfg: BackgammonConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(26 * SIDES)

    def observation_names(self, cfg: BackgammonConfig, group: str) -> dict[str, int]:
        points = {f"point {POINTS - k}": 1 for k in range(POINTS)}
        places = {"own bar": 1, "opponent's bar": 1, "own checkers off": 1, "opponent's checkers off": 1}
        return points | places | {f"dice of {k + 1} to play": 1 for k in range(SIDES)}

    def action_names(self, cfg: BackgammonConfig, group: str) -> dict[str, int]:
        sources = ["the bar", *(f"point {POINTS - k}" for k in range(POINTS))]
        return {"no move": SIDES} | {f"{k + 1} from {source}": 1 for source in sources for k in range(SIDES)}

    def fields(self, cfg: BackgammonConfig) -> dict[str, Field]:
        return {
            "board": Field("int8", (PLACES,), "checkers on points 24 to 1, bars, off, as the player to move sees them"),
            "dice": Field("int8", (SIDES,), "how many dice of each number are left to play"),
            "rolled": Field("int8", (2,), "the dice of this turn, 1 to 6"),
            "legal": Field("uint32", (SIDES,), "bits of the sources from which each number can be played"),
            "to_move": Field("int32", doc="index of the player to move"),
            "last_move": Field("int32", doc="the last action, -1 before the first"),
        }

    def tables(self, cfg: BackgammonConfig) -> dict[str, NDArray[Any]]:
        return {"start": np.array([START.get(k, 0) for k in range(PLACES)], np.int32)}

    def aspect(self, cfg: BackgammonConfig) -> float:
        return (WIDTH + 0.8) / (HEIGHT + 1.3)

    def side(self, cfg: BackgammonConfig) -> int:
        return 600

    def render(self, cfg: BackgammonConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        mover, board = int(state["to_move"]), seen_by_white(state["board"], int(state["to_move"]))
        canvas.background("paper")
        canvas.view(-0.4, -0.4, WIDTH + 0.4, HEIGHT + 0.4, y_down=True, hud=True)
        canvas.cached(_table)
        for place, count in enumerate(board):
            owner = 0 if count > 0 else 1
            for k, (x, y) in enumerate(_stack(place, abs(count))):
                if place < OFF:
                    canvas.cached(_checker, x, y, owner)
                else:
                    canvas.rect(x - 0.45, y - 0.1, x + 0.45, y + 0.1, fill=FILLS[owner], outline=RIMS[owner], width=1)
                if k == 4 and place < OFF and abs(count) > 5:
                    canvas.text(x, y, str(abs(count)), height=0.5, colour=RIMS[1 - owner], bold=True)
        left = list(state["dice"])
        rolled = [int(k) for k in state["rolled"]]
        shown = rolled * 2 if rolled[0] == rolled[1] else rolled
        for k, number in enumerate(shown):
            unplayed = left[number - 1] > 0
            left[number - 1] -= 1
            x = (9.5 if mover == 0 else 2.3) + 0.95 * (k - len(shown) / 2) + 1.2
            _die(canvas, x, HEIGHT / 2, number, mover, unplayed)
        for x, y in self._moved(state, board):
            canvas.circle(x, y, 0.13, fill="red")
        canvas.hud(
            left=f"Backgammon   pips left: white {_pips(board, 1)}, black {_pips(board, -1)}",
            right=f"player_{mover} ({COLOURS[mover]}) to move",
        )

    def move_name(self, cfg: BackgammonConfig, state: Mapping[str, NDArray[Any]], action: int) -> str:
        """The move of a checker by one die, such as ``13/7``, ``bar/22`` or ``6/off``, or ``-`` for none."""
        source, die = action // SIDES, action % SIDES + 1
        if source == 0:
            return "-"
        begin = 25 if source == 1 else 26 - source
        end = begin - die
        return f"{'bar' if source == 1 else begin}/{end if end > 0 else 'off'}"

    def presses(
        self, cfg: BackgammonConfig, state: Mapping[str, NDArray[Any]], action: int
    ) -> list[tuple[float, float] | str]:
        (source, die), player = divmod(action, SIDES), int(state["to_move"])
        if source < 1:
            return []
        board, begin, end = seen_by_white(state["board"], player), _start(source, player), _goal(source, die, player)
        held = max(0, board[end] if player == 0 else -board[end])
        points = [_stack(begin, max(1, abs(board[begin])))[-1], _stack(end, held + 1)[-1]]
        return [*points, f"with {die + 1}"] if end >= OFF else [*points]

    def _moved(self, state: Mapping[str, NDArray[Any]], board: list[int]) -> list[tuple[float, float]]:
        """Where the checker lies that moved last."""
        source, die = divmod(int(state["last_move"]), SIDES)
        if source < 1:
            return []
        begins = int(sum(state["dice"])) == (4 if state["rolled"][0] == state["rolled"][1] else 2)
        place = _goal(source, die, int(state["to_move"]) ^ int(begins))
        if place >= OFF:
            return []
        return _stack(place, min(abs(board[place]), 5))[-1:]


def seen_by_white(board: NDArray[Any], to_move: int) -> list[int]:
    """Checkers on player_0's points 24 to 1, on both bars, and borne off by both; player_0's count as positive."""
    seen = [int(count) for count in board]
    if to_move == 0:
        return seen
    return [-count for part in (seen[:24], seen[24:26], seen[26:]) for count in reversed(part)]


def _start(source: int, player: int) -> int:
    """The place where a move of a player begins."""
    if source == 1:
        return BAR + player
    return source - 2 if player == 0 else POINTS + 1 - source


def _goal(source: int, die: int, player: int) -> int:
    """The place where it ends; `die` is one less than the number of the die."""
    point = source - 1 + die if source > 1 else die
    if point >= POINTS:
        return OFF + player
    return point if player == 0 else POINTS - 1 - point


def _pips(board: list[int], sign: int) -> int:
    """The sum of the dice that the player whose checkers have this sign needs at least."""
    on_points = sum(max(0, sign * board[p]) * (POINTS - p if sign > 0 else p + 1) for p in range(POINTS))
    return on_points + 25 * abs(board[BAR if sign > 0 else BAR + 1])


def _column(k: int) -> float:
    """The middle of a column of points, from the left."""
    return k + 0.5 + (GAP if k > 5 else 0.0)


def _stack(place: int, count: int) -> list[tuple[float, float]]:
    """Where the checkers of a place lie: on a point five at most, side by side."""
    if place < POINTS:
        x = _column(11 - place if place < 12 else place - 12)
        return [(x, 0.5 + 0.92 * k if place < 12 else HEIGHT - 0.5 - 0.92 * k) for k in range(min(count, 5))]
    if place < OFF:
        sign = 1 if place == BAR else -1  # a checker waits on the side where it enters
        return [(6.6, HEIGHT / 2 - sign * (0.9 + 0.92 * k)) for k in range(min(count, 5))]
    x = 12 + GAP + 0.85
    return [(x, HEIGHT - 0.25 - 0.26 * k if place == OFF else 0.25 + 0.26 * k) for k in range(count)]


def _table(canvas: Canvas) -> None:
    """The board with its points and their numbers, as white counts them."""
    canvas.rect(-0.35, -0.35, WIDTH + 0.35, HEIGHT + 0.35, fill="#5a3a26", radius=0.2)
    for x in (0.0, 6 + GAP):
        canvas.rect(x, 0, x + 6, HEIGHT, fill="#2f6b53")
    canvas.rect(12 + GAP + 0.3, 0, WIDTH - 0.1, HEIGHT, fill="#43291a", radius=0.1)
    for place in range(POINTS):
        x = _column(11 - place if place < 12 else place - 12)
        base, tip = (0.0, 4.9) if place < 12 else (HEIGHT, HEIGHT - 4.9)
        canvas.polygon([(x - 0.48, base), (x + 0.48, base), (x, tip)], fill=("#d9b98a", "#a4512f")[place % 2])
        y = -0.18 if place < 12 else HEIGHT + 0.18
        canvas.text(x, y, str(POINTS - place), height=0.27, colour="#e9d9bd")


def _checker(canvas: Canvas, x: float, y: float, owner: int) -> None:
    canvas.circle(x + 0.03, y + 0.05, RADIUS, fill="#00000045")
    canvas.circle(x, y, RADIUS, fill=FILLS[owner], outline=RIMS[owner], width=1.4)
    canvas.circle(x, y, 0.68 * RADIUS, outline=RINGS[owner], width=1.2)


def _die(canvas: Canvas, x: float, y: float, number: int, owner: int, unplayed: bool) -> None:
    faint = "" if unplayed else "60"
    canvas.rect(x - 0.36, y - 0.36, x + 0.36, y + 0.36, fill=FILLS[owner] + faint, outline=RIMS[owner] + faint,
                width=1.2, radius=0.1)  # fmt: skip
    spots = {1: [4], 2: [0, 8], 3: [0, 4, 8], 4: [0, 2, 6, 8], 5: [0, 2, 4, 6, 8], 6: [0, 2, 3, 5, 6, 8]}[number]
    for spot in spots:
        canvas.circle(x + 0.2 * (spot % 3 - 1), y + 0.2 * (spot // 3 - 1), 0.075, fill=FILLS[1 - owner] + faint)
