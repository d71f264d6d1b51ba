"""Chess."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.chess.board import HISTORY, Board, BoardConfig

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"


@dataclasses.dataclass(frozen=True)
class ChessConfig(BoardConfig):
    """Where games begin, and what players see of them."""

    observation_type: Literal["pgx", "pettingzoo"] = param("pgx", doc="whose observations")
    fen: str = param(START, doc="the first position, in Forsyth-Edwards notation")


class Chess(Board):
    """Chess, with AlphaZero's actions and observations (Silver et al. 2018).

    **Agents.** `player_0` (white), who begins, and `player_1` (black). They move in turn: a step is one move, and the
    action of the player who is not to move is ignored. Each player sees the board from its own side.

    **Actions.** `Discrete(4672)`: 73 * (8 * column + row) + plane, with the square where the move starts, as the mover
    sees it. The planes are

    | planes | move |
    |---|---|
    | 0 to 8 | pawns become rook (0, 1, 2), bishop (3, 4, 5), knight (6, 7, 8): straight on, to the right, to the left |
    | 9 to 15, 16 to 22 | 7 to 1 squares down, 1 to 7 squares up |
    | 23 to 29, 30 to 36 | 7 to 1 squares to the left, 1 to 7 to the right |
    | 37 to 43, 44 to 50 | 7 to 1 squares down and left, 1 to 7 up and right |
    | 51 to 57, 58 to 64 | 7 to 1 squares up and left, 1 to 7 down and right |
    | 65 to 72 | knights, by (rows, columns): (-1, -2), (1, -2), (-2, -1), (2, -1), (-1, 2), (1, 2), (-2, 1), (2, 1) |

    A pawn that reaches the last row by planes 9 to 64 becomes a queen. Castling is the king's move of two squares. The
    action mask holds the legal moves of the player to move, and zeros for the other one.

    **Observation.** `Box(0, 1, (8, 8, 119), float32)`: row from the opponent's side to one's own, column from a to h,
    and plane. Planes 14 k to 14 k + 13 show the position of k moves ago: own pawns, knights, bishops, rooks, queens,
    king, those of the opponent, and whether the position has occurred only once so far in the game, or more often.
    Positions before the first are empty and count as occurring once. Then follow the observing player's colour (0:
    white), moves of both players / 512, the rights to castle (own queen's side, own king's side, then the opponent's),
    and moves since the last capture or move of a pawn / 100.

    With ``observation_type="pettingzoo"`` it is that of PettingZoo's `chess_v6`: `Box(0, 1, (8, 8, 111), int8)`. Planes
    0 to 3 are the rights to castle (own king's side, own queen's side, then the opponent's), plane 4 is the observing
    player's colour, and plane 6 is 1 everywhere. Plane 5 is 1 at one square: squares are counted from a1, and its
    number is half of the moves since the last capture or move of a pawn. Planes 7 + 13 k to 19 + 13 k show the position
    of k moves ago: own pieces, those of the opponent, and whether the position had occurred before. A pawn that had
    just made a double step stands on its player's first row there. The position that games begin with is not shown.

    **Reward.** 1 for a checkmate, -1 for the one who is mated, 0 otherwise. A move also gets `material_reward` for each
    pawn's worth of material that it wins by a capture or a promotion, and the opponent loses as much. Pawns count 1,
    knights and bishops 3, rooks 5, queens 9. It is 0 by default; `--schedule material_reward=0.02:0` anneals it in
    training.

    **End.** Checkmate; stalemate; a position that occurs for the third time; 100 moves of both players without a
    capture or a move of a pawn; 512 moves; or too few pieces: kings with at most one knight or bishop, or with bishops
    on squares of one colour. A position repeats if pieces, player to move, rights to castle, and the square that a
    pawn has just passed by a double step are the same, whether or not a pawn can capture there. An illegal action of
    the player to move ends the game at once with -1 for that player and 0 for the other; the board and the turn stay
    as they were.

    **Positions.** `fen` is where games begin. `str(gpuzoo.envs.chess.fen.Position.of_state(state))` writes the
    position of an env, from its fields.

    **Differences from Pgx.** Pgx draws the seats: either player may be white. After an illegal action it gives 1 to the
    other player. At the end of a game all its actions are legal. The hash of the first position in Pgx 2.6.0 was
    computed with an older version of JAX: with newer ones Pgx does not notice that this position comes back, unless
    `jax_threefry_partitionable` is off.
    """

    id = "Chess-v0"
    Config = ChessConfig
    size = 8
    most_moves = 512
    channels = 119
    aliases = (r"chess(_v\d+)?",)
    reference = "pgx==2.6.0 chess"
    links: ClassVar[Mapping[str, str]] = {
        "Pgx": "https://www.sotets.uk/pgx/chess/",
        "AlphaZero": "https://arxiv.org/abs/1712.01815",
        "PettingZoo": "https://pettingzoo.farama.org/environments/classic/chess/",
    }

    @staticmethod
    def config_of(name: str) -> dict[str, Any]:
        return {"observation_type": "pettingzoo"} if name.startswith("chess_v") else {}

    def constants(self, cfg: ChessConfig) -> dict[str, int]:
        found = super().constants(cfg)
        return found | {"CHANNELS": 111, "AS_PETTINGZOO": 1} if cfg.observation_type == "pettingzoo" else found

    def observation_space(self, cfg: ChessConfig, group: str) -> spaces.Box:
        if cfg.observation_type == "pgx":
            return super().observation_space(cfg, group)
        return spaces.Box(0, 1, (8, 8, 111), np.int8)

    def observation_names(self, cfg: ChessConfig, group: str) -> dict[str, int]:
        if cfg.observation_type == "pgx":
            return super().observation_names(cfg, group)
        others = {"castling: own king's side, own queen's side, the opponent's": 4, "colour": 1}
        others |= {"halfmove clock / 2, as a square": 1, "everywhere 1": 1}
        ago = {f"{k} moves ago" if k > 1 else "1 move ago": 13 for k in range(1, HISTORY)}
        return {**others, "now": 13, **ago}

    def fields(self, cfg: ChessConfig) -> dict[str, Field]:
        doc = "by bytes, latest first: 1 + the column of a pawn that had made a double step, and 128 for a repetition"
        past = {"past": Field("uint64", doc=doc)} if cfg.observation_type == "pettingzoo" else {}
        return super().fields(cfg) | past
