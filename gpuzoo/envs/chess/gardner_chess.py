"""Gardner's minichess."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from gpuzoo.core.definition import param
from gpuzoo.envs.chess.board import Board, BoardConfig


@dataclasses.dataclass(frozen=True)
class GardnerChessConfig(BoardConfig):
    """Where games begin."""

    fen: str = param("rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1", doc="the first position, in Forsyth-Edwards notation")


class GardnerChess(Board):
    """Chess on five by five squares (Gardner 1969): no castling, and pawns go one square at a time.

    **Agents.** `player_0` (white), who begins, and `player_1` (black). They move in turn: a step is one move, and the
    action of the player who is not to move is ignored. Each player sees the board from its own side.

    **Actions.** `Discrete(1225)`: 49 * (5 * column + row) + plane, with the square where the move starts, as the mover
    sees it. The planes are those of `Chess-v0` for ways of up to four squares:

    | planes | move |
    |---|---|
    | 0 to 8 | pawns become rook (0, 1, 2), bishop (3, 4, 5), knight (6, 7, 8): straight on, to the right, to the left |
    | 9 to 12, 13 to 16 | 4 to 1 squares down, 1 to 4 squares up |
    | 17 to 20, 21 to 24 | 4 to 1 squares to the left, 1 to 4 to the right |
    | 25 to 28, 29 to 32 | 4 to 1 squares down and left, 1 to 4 up and right |
    | 33 to 36, 37 to 40 | 4 to 1 squares up and left, 1 to 4 down and right |
    | 41 to 48 | knights, by (rows, columns): (-1, -2), (1, -2), (-2, -1), (2, -1), (-1, 2), (1, 2), (-2, 1), (2, 1) |

    A pawn that reaches the last row by planes 9 to 40 becomes a queen. The action mask holds the legal moves of the
    player to move, and zeros for the other one.

    **Observation.** `Box(0, 1, (5, 5, 115), float32)`: row from the opponent's side to one's own, column from a to e,
    and plane. Planes 14 k to 14 k + 13 show the position of k moves ago: own pawns, knights, bishops, rooks, queens,
    king, those of the opponent, and whether the position has occurred only once so far in the game, or more often.
    Positions before the first are empty and count as occurring once. Then follow the observing player's colour (0:
    white), moves of both players / 256, and moves since the last capture or move of a pawn / 100.

    **Reward.** 1 for a checkmate, -1 for the one who is mated, 0 otherwise. A move also gets `material_reward` for each
    pawn's worth of material that it wins by a capture or a promotion, and the opponent loses as much. Pawns count 1,
    knights and bishops 3, rooks 5, queens 9. It is 0 by default; `--schedule material_reward=0.02:0` anneals it in
    training.

    **End.** Checkmate; stalemate; a position that occurs for the third time; 100 moves of both players without a
    capture or a move of a pawn; 256 moves; or too few pieces: kings with at most one knight or bishop, or with bishops
    on squares of one colour. An illegal action of the player to move ends the game at once with -1 for that player and
    0 for the other; the board and the turn stay as they were.

    **Differences from Pgx.** Pgx draws the seats: either player may be white. After an illegal action it gives 1 to the
    other player. At the end of a game all its actions are legal.
    """

    id = "GardnerChess-v0"
    Config = GardnerChessConfig
    size = 5
    most_moves = 256
    channels = 115
    aliases = (r"gardner_chess",)
    reference = "pgx==2.6.0 gardner_chess"
    links: ClassVar[Mapping[str, str]] = {"Pgx": "https://www.sotets.uk/pgx/gardner_chess/"}
