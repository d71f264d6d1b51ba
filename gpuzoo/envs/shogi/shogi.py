"""Shogi."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.envs.shogi import pieces
from gpuzoo.envs.shogi.sfen import SIDE, Position, piece_name
from gpuzoo.render import Canvas

START = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"
MOST_MOVES, CELLS, CHANNELS, WAYS = 512, 81, 119, 27
#: a column with what frames it; cells of the framed board, in whole vectors; cells beside it that four steps may reach
FRAMED_COLUMN, PLACES, MARGIN = 11, 128, 48
COLOURS = ("black", "white")
#: columns to the left and rows down of a step in each direction: eight lines, knights, and knights backwards
DIRECTIONS = (
    (0, -1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1), (1, 1), (-1, 1), (1, -2), (-1, -2), (-1, 2), (1, 2),
)  # fmt: skip
OPPOSITE = [DIRECTIONS.index((-left, -down)) for left, down in DIRECTIONS]
NAMES = ("up", "up left", "up right", "left", "right", "down", "down left", "down right", "jump left", "jump right")
PIECES = (
    "pawn", "lance", "knight", "silver", "bishop", "rook", "gold", "king", "promoted pawn", "promoted lance",
    "promoted knight", "promoted silver", "horse", "dragon",
)  # fmt: skip
#: what moves alike: promoted pawns, lances, knights and silvers are golds
KINDS = (0, 1, 2, 3, 4, 5, 6, 7, 6, 6, 6, 6, 8, 9)
_PAWN, _LANCE, _KNIGHT, _SILVER, _BISHOP, _ROOK, _GOLD, _KING, _HORSE, _DRAGON = (1 << k for k in range(10))
_GOLDS = _GOLD | _KING
#: kinds that go far in each direction, and those that go one step
SLIDES = (_LANCE | _ROOK | _DRAGON, *[_BISHOP | _HORSE] * 2, *[_ROOK | _DRAGON] * 3, *[_BISHOP | _HORSE] * 2, 0, 0)
STEPS = (
    _PAWN | _SILVER | _GOLDS | _HORSE, *[_SILVER | _GOLDS | _DRAGON] * 2, *[_GOLDS | _HORSE] * 3,
    *[_SILVER | _KING | _DRAGON] * 2, _KNIGHT, _KNIGHT,
)  # fmt: skip
#: pieces on the board, in pawns
WORTH = (1, 3, 4, 5, 8, 10, 6, 0, 6, 6, 6, 6, 10, 12)
#: kinds in hand and how many at most have a plane
HAND_PLANES = ((0, 8), (1, 4), (2, 4), (3, 4), (6, 4), (4, 2), (5, 2))


@dataclasses.dataclass(frozen=True)
class ShogiConfig(Config):
    """Where games begin, and how drops of pawns are judged."""

    sfen: str = param(START, doc="the first position, in SFEN")
    material_reward: float = param(0.0, doc="reward for each pawn's worth of material that a move wins")
    strict_drops: bool = param(False, doc="no mate by a dropped pawn is legal, not even beside a corner")


class Shogi(EnvDef):
    """Shogi, with the actions and observations of dlshogi (Yamaoka 2017).

    Kings go one cell in all directions, rooks and bishops far in straight and diagonal lines, lances far upwards, golds
    one cell but not diagonally down, silvers one cell up or diagonally, pawns one cell up. Knights jump two cells up
    and one to the side. A piece that begins or ends its move in the three rows farthest from its owner may promote; it
    must, if it could not move any more. Promoted pawns, lances, knights and silvers go like golds. A promoted rook
    (dragon) also goes one cell diagonally, a promoted bishop (horse) one cell straight. A player holds the pieces that
    it captures, unpromoted, and may drop one on an empty cell instead of a move. A drop where the piece could never
    move is illegal, as are a pawn in a column that holds an unpromoted pawn of the same player, and mate by a dropped
    pawn.

    **Agents.** `player_0` (black), who begins, and `player_1` (white). They move in turn: a step is one move, and the
    action of the player who is not to move is ignored. Each player sees the board from its own side.

    **Actions.** `Discrete(2187)`: 81 * way + cell, with the cell where the move ends: 9 * column + row, column 0 on the
    right, row 0 at the top. The ways are

    | ways | move |
    |---|---|
    | 0 to 7 | up, up and left, up and right, left, right, down, down and left, down and right |
    | 8, 9 | knight's jump: up and to the left, up and to the right |
    | 10 to 19 | the same with promotion |
    | 20 to 26 | drop of a pawn, lance, knight, silver, bishop, rook, gold |

    The action mask holds the legal moves of the player to move, and zeros for the other one.

    **Observation.** `Box(0, 1, (9, 9, 119), int8)`: row from the top, column from left to right, and plane. 0 to 13
    show own pawns, lances, knights, silvers, bishops, rooks, golds, king, promoted pawns, lances, knights, silvers,
    horses and dragons; 14 to 27 what each of these attacks; 28 to 30 where at least one, two, three of them do. 31 to
    61 show the same of the opponent. 62 to 89 are 1 everywhere if one holds at least 1, ..., 8 pawns; 1, ..., 4 lances,
    knights, silvers, golds; 1, 2 bishops, rooks. 90 to 117 show the same of the opponent. 118 is 1 everywhere if one's
    king is in check.

    **Reward.** 1 for the winner, -1 for the loser, 0 for both in a draw. A move also gets `material_reward` for each
    pawn's worth of material that it wins by a capture or a promotion, and the opponent loses as much. Pawns count 1,
    lances 3, knights 4, silvers 5, golds 6, bishops 8, rooks 10, horses 10, dragons 12, and other promoted pieces 6. It
    is 0 by default; `--schedule material_reward=0.02:0` anneals it in training.

    **End.** A player without a legal move has lost. After 512 moves the game is a draw. As in Pgx, nothing happens if
    positions repeat. An illegal action of the player to move ends the game at once with -1 for that player and 0 for
    the other; the board and the turn stay as they were.

    **Positions.** `sfen` is where games begin; its number counts as moves that have been made.
    `str(gpuzoo.envs.shogi.sfen.Position.of_state(state))` writes the position of an env, from its fields. The player
    who is not to move may not be in check.

    **Mate by a dropped pawn.** Pgx mistakes cells beside the board for the last cell. So it allows the drop of a pawn
    that mates a king beside the corner on the dropping player's upper right, if no other piece of that king's side
    stands in the corner, and the dropping player attacks the opposite corner with no piece, or has one there.
    `strict_drops` forbids it, as shogi's rules do.

    **Differences from Pgx.** Pgx draws the seats: either player may be black. After an illegal action it gives 1 to the
    other player. At the end of a game all its actions are legal.
    """

    id = "Shogi-v0"
    Config = ShogiConfig
    aliases = (r"[Ss]hogi",)
    invalid_action = -1
    action_mask = True
    chooses = True
    turn = "to_move"
    reference = "pgx==2.6.0 shogi"
    interaction = "competitive"
    links: ClassVar[Mapping[str, str]] = {
        "Pgx": "https://www.sotets.uk/pgx/shogi/",
        "dlshogi": "https://github.com/TadaoYamaoka/DeepLearningShogi",
    }
    render_fps = 2
    exempt: ClassVar[Mapping[str, str]] = {
        "half_occupancy": "Sets of 81 cells take three registers each; with half of an SM's threads they would spill.",
        "rows_are_stored_in_few_sectors": "Rows are too long for shared memory, and cells are written one by one.",
    }

    def agents(self, cfg: ShogiConfig) -> dict[str, int]:
        return {"player": 2}

    def lanes(self, cfg: ShogiConfig) -> int:
        return 8

    def check(self, cfg: ShogiConfig) -> None:
        Position.parse(cfg.sfen)

    def constants(self, cfg: ShogiConfig) -> dict[str, int]:
        return {"MOST_MOVES": MOST_MOVES, "FRAMED_COLUMN": FRAMED_COLUMN, "PLACES": PLACES, "MARGIN": MARGIN}

    def observation_space(self, cfg: ShogiConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (9, 9, CHANNELS), np.int8)

    def action_space(self, cfg: ShogiConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(WAYS * CELLS)

    def observation_names(self, cfg: ShogiConfig, group: str) -> dict[str, int]:
        names: dict[str, int] = {}
        for who in ("own", "opponent's"):
            names |= {f"{who} {piece}": 1 for piece in PIECES}
            names |= {f"attacked by {who} {piece}": 1 for piece in PIECES}
            names[f"attacked by at least 1, 2, 3 of the {who} pieces"] = 3
        for who in ("own", "opponent's"):
            names |= {f"{PIECES[kind]}s in {who} hand: at least 1 to {most}": most for kind, most in HAND_PLANES}
        return {**names, "own king in check": 1}

    def action_names(self, cfg: ShogiConfig, group: str) -> dict[str, int]:
        moves = {name: CELLS for name in NAMES} | {f"{name}, promote": CELLS for name in NAMES}
        return {**moves, **{f"drop {piece}": CELLS for piece in PIECES[:7]}}

    def action_cells(self, cfg: ShogiConfig, group: str) -> tuple[NDArray[Any], NDArray[Any]]:
        way, column, row = np.indices((WAYS, 9, 9)).reshape(3, -1)
        return 9 * row + 8 - column, way

    def fields(self, cfg: ShogiConfig) -> dict[str, Field]:
        return {
            "board": Field(
                "int8", (CELLS,), "pieces as the player to move sees them: -1 none, 0 to 13 own, then others"
            ),
            "hands": Field(
                "int8", (14,), "pawns, lances, knights, silvers, bishops, rooks, golds held: own, then others"
            ),
            "legal": Field("uint32", (3, WAYS), "cells where legal moves end, by way: three columns in each number"),
            "to_move": Field("int32", doc="index of the player to move"),
            "moves": Field("int32", doc="moves of both players in this game"),
            "last_move": Field("int32", doc="the last action, -1 before the first"),
            "turned_board": Field("int8", (CELLS,), "the board as the other player sees it", scratch=True),
            "sets": Field(
                "uint32", (23 * 3,), "cells of each kind of own pieces, of others; empty; of a side", scratch=True
            ),
            "seen": Field("uint32", (4 * 3 * 8,), "what is seen in eight directions", scratch=True),
            "attacked": Field("uint32", (3,), "where the king may not go", scratch=True),
            "pinned": Field("uint32", (3,), "who shields the king", scratch=True),
            "target": Field("uint32", (3,), "where other pieces must go, because of a check", scratch=True),
            "framed": Field("int16", (MARGIN + PLACES + MARGIN,), "the board in a frame", scratch=True),
            "sight": Field("int16", (3, MARGIN + 8 * PLACES + MARGIN), "who is seen within 2, 4, 8 steps", True),
            "planes": Field("uint64", (PLACES,), "what is observed of each cell", scratch=True),
        }

    def tables(self, cfg: ShogiConfig) -> dict[str, NDArray[Any]]:
        position = Position.parse(cfg.sfen)
        seen = position if position.to_move == 0 else position.turned()
        order = np.argsort([kind for kind, _ in HAND_PLANES])
        step_by = np.array([9 * left + down for left, down in DIRECTIONS], np.int32)
        kinds = [2 * 10, *KINDS, *(10 + kind for kind in KINDS)]
        return {
            "by": (step_by % 27).astype(np.int32),
            "twice": (2 * step_by % 27).astype(np.int32),
            "back": -(step_by < 0).astype(np.int32),
            "onto": _onto(),
            "opposite": np.array(OPPOSITE, np.int32),
            "step_by": step_by,
            "reach": _reach(),
            "slides": np.array(SLIDES, np.int32),
            "steps": np.array(STEPS, np.int32),
            "kind_of": np.array(kinds, np.int32),
            "framed_step": np.array([FRAMED_COLUMN * left + down for left, down in DIRECTIONS], np.int32),
            "near": _attackers(STEPS),
            "far": _attackers(SLIDES),
            "hand_plane": np.array([sum(most for _, most in HAND_PLANES[:k]) for k in order], np.int32),
            "hand_most": np.array([HAND_PLANES[k][1] for k in order], np.int32),
            "worth": np.array(WORTH, np.int32),
            "start": np.array([*seen.board, *seen.hands, position.to_move, position.number - 1], np.int32),
        }

    def aspect(self, cfg: ShogiConfig) -> float:
        return pieces.WIDTH / (pieces.HEIGHT + 0.6)

    def side(self, cfg: ShogiConfig) -> int:
        return 640

    def render(self, cfg: ShogiConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        position, last = Position.of_state(state), int(state["last_move"])
        canvas.background("paper")
        canvas.view(0, 0, pieces.WIDTH, pieces.HEIGHT, y_down=True, hud=True)
        canvas.cached(pieces.table)
        if last >= 0:
            cell = _seen_by_black(position, last % CELLS)
            canvas.cached(pieces.mark, cell // 9, cell % 9)
        for cell, piece in enumerate(position.board):
            if piece >= 0:
                canvas.cached(pieces.on_board, cell // 9, cell % 9, piece % SIDE, piece // SIDE)
        for owner in range(2):
            held = [(kind, position.hands[7 * owner + kind]) for kind in pieces.STAND]
            for k, (kind, count) in enumerate((kind, count) for kind, count in held if count):
                canvas.cached(pieces.in_hand, k, kind, owner, count)
        said = f"   last {_last(position, last)}" if last >= 0 else ""
        over = "" if state["legal"].any() else " is mated"
        canvas.hud(
            left=f"Shogi   move {position.number}{said}",
            right=f"player_{position.to_move} ({COLOURS[position.to_move]}){over or ' to move'}",
        )

    def move_name(self, cfg: ShogiConfig, state: Mapping[str, NDArray[Any]], action: int) -> str:
        """A move of the player to move as the Universal Shogi Interface writes it, such as ``7g7f+`` or ``P*5e``."""
        (way, cell), turned = divmod(action, CELLS), int(state["to_move"]) == 1
        end = _square_name(CELLS - 1 - cell if turned else cell)
        if way >= 20:
            return f"{piece_name(way - 20)}*{end}"
        begin = _origin([int(piece) for piece in state["board"]], way % 10, cell)
        return f"{_square_name(CELLS - 1 - begin if turned else begin)}{end}{'+' if way >= 10 else ''}"

    def presses(
        self, cfg: ShogiConfig, state: Mapping[str, NDArray[Any]], action: int
    ) -> list[tuple[float, float] | str]:
        mover, board = int(state["to_move"]), [int(piece) for piece in state["board"]]
        way, end = divmod(action, CELLS)
        if way >= 20:
            held = [kind for kind in pieces.STAND if state["hands"][kind] or kind == way - 20]
            return [pieces.stand(held.index(way - 20), mover), _middle(end, mover)]
        begin = _origin(board, way % 10, end)
        points = [_middle(begin, mover), _middle(end, mover)]
        may_promote = 0 <= board[begin] < 6 and min(begin % 9, end % 9) < 3
        return [*points, "promote" if way >= 10 else "stay"] if may_promote else [*points]


def _origin(board: list[int], way: int, end: int) -> int:
    """The cell from which an own piece arrives, as the player to move sees the board."""
    left, down = DIRECTIONS[way]
    column, row = end // 9 - left, end % 9 - down
    while way < 8 and 0 <= column < 9 and 0 <= row < 9 and board[9 * column + row] < 0:
        column, row = column - left, row - down
    return 9 * column + row if 0 <= column < 9 and 0 <= row < 9 else end


def _middle(cell: int, mover: int) -> tuple[float, float]:
    """The middle of a cell that a player sees."""
    return pieces.middle(*divmod(cell if mover == 0 else CELLS - 1 - cell, 9))


def _square_name(cell: int) -> str:
    """Such as ``7g``, of a cell as black sees it."""
    return f"{cell // 9 + 1}{'abcdefghi'[cell % 9]}"


def _seen_by_black(position: Position, cell: int) -> int:
    """The cell of the last move."""
    return cell if position.to_move == 1 else CELLS - 1 - cell


def _last(position: Position, action: int) -> str:
    """The piece that moved, and where it is; a * stands for a drop."""
    way, cell = action // CELLS, _seen_by_black(position, action % CELLS)
    moved = piece_name(position.board[cell]).upper() + ("*" if way >= 20 else "")
    return f"{moved} {_square_name(cell)}"


def _cells() -> list[tuple[int, int]]:
    return [(column, row) for column in range(9) for row in range(9)]


def _onto() -> NDArray[np.uint32]:
    """Cells where each direction can arrive: first columns 0 to 2 of all directions, then the others."""
    out = np.zeros((3, len(DIRECTIONS)), np.uint32)
    for d, (left, down) in enumerate(DIRECTIONS):
        for cell, (column, row) in enumerate(_cells()):
            if 0 <= column - left < 9 and 0 <= row - down < 9:
                out[cell // 27, d] |= np.uint32(1 << cell % 27)
    return out.ravel()


def _reach() -> NDArray[np.int32]:
    """How many steps in each direction, from each cell, stay on the board; a knight makes one."""
    out = np.zeros((len(DIRECTIONS), CELLS), np.int32)
    for d, (left, down) in enumerate(DIRECTIONS):
        for cell, (column, row) in enumerate(_cells()):
            steps = range(1, 9) if d < 8 else range(1, 2)
            out[d, cell] = sum(0 <= column + k * left < 9 and 0 <= row + k * down < 9 for k in steps)
    return out.ravel()


def _attackers(ways: tuple[int, ...]) -> NDArray[np.int32]:
    """Who attacks a cell that sees it in each direction: a bit for each own piece, then for each of the others."""
    kinds = [*ways, 0, 0]  # nobody jumps backwards
    return np.array([_pieces(kinds[OPPOSITE[d]]) | _pieces(kinds[d]) << SIDE for d in range(len(kinds))], np.int32)


def _pieces(kinds: int) -> int:
    """A bit for each piece whose kind is a bit of `kinds`."""
    return sum(1 << piece for piece, kind in enumerate(KINDS) if kinds >> kind & 1)
