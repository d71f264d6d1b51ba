"""Chess against python-chess: numbers of lines of play, and legal moves and results of whole random games."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import chess
import numpy as np
import pytest

from gpuzoo import Simulator, get
from gpuzoo.envs.chess.board import Geometry
from gpuzoo.envs.chess.fen import Position

pytestmark = pytest.mark.rotates
#: the six positions of the chess programming wiki, with their lines of 1 to 5 moves
PERFT = {
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1": [20, 400, 8902, 197281, 4865609],
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1": [48, 2039, 97862, 4085603, 193690690],
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1": [14, 191, 2812, 43238, 674624],
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1": [6, 264, 9467, 422333, 15833292],
    "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8": [44, 1486, 62379, 2103487, 89941194],
    "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10": [46, 2079, 89890, 3894594, 164075551],
}
CHUNK = 4096
#: all that the next move depends on, but for what has been before
NEEDED = "board legal pawns knights bishops rooks queens kings own hash to_move castling en_passant moves".split()


def batch(num_envs: int, **options: Any) -> Simulator:
    sim = Simulator(get("Chess-v0"), num_envs, device="cpu", autoreset_mode="disabled", **options)
    sim.reset(seed=0)
    return sim


def bits(legal: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Env, word and cell of each legal move."""
    envs, words = legal.nonzero()
    found = np.unpackbits(legal[envs, words].view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    rows, cells = found.nonzero()
    return envs[rows], words[rows], cells


def lines(sim: Simulator, state: Mapping[str, np.ndarray], depth: int) -> int:
    """Lines of `depth` moves from these positions, a batch at a time."""
    if depth == 1:
        return int(np.bitwise_count(state["legal"]).sum())
    planes = Geometry(8).words()
    envs, words, cells = bits(state["legal"])
    actions = 73 * (cells % 8 * 8 + cells // 8) + planes[words]
    total = 0
    for low in range(0, len(envs), CHUNK):
        chosen, played = envs[low : low + CHUNK], actions[low : low + CHUNK]
        n = len(chosen)
        sim.reset(seed=0)
        some = np.arange(n)
        sim.set_state({name: state[name][chosen] for name in NEEDED}, some)
        sim.arrays["action"][:n] = played[:, None, None]
        sim.step(some)
        total += lines(sim, {name: sim.arrays[name][:n].copy() for name in NEEDED}, depth - 1)
    return total


@pytest.mark.timeout(900)
@pytest.mark.parametrize("fen", PERFT)
def test_lines_of_play(fen: str) -> None:
    """To depth 5; python-chess confirms the first two of the published numbers."""
    start = batch(1, fen=fen)
    state = {name: start.arrays[name].copy() for name in NEEDED}
    sim = batch(CHUNK)
    assert [lines(sim, state, depth) for depth in range(1, 6)] == PERFT[fen]
    board = chess.Board(fen)
    assert board.legal_moves.count() == PERFT[fen][0]
    replies = 0
    for move in list(board.legal_moves):
        board.push(move)
        replies += board.legal_moves.count()
        board.pop()
    assert replies == PERFT[fen][1]


@pytest.mark.timeout(600)
def test_whole_games() -> None:
    games, rng, moves = 100, np.random.default_rng(2), 0
    sim = batch(games)
    boards = [chess.Board() for _ in range(games)]
    playing = [*range(games)]
    mates = 0
    while playing:
        for k in playing:
            mover = int(sim.arrays["to_move"][k])
            actions = np.flatnonzero(sim.arrays["action_mask"][k, mover])
            state = {name: sim.arrays[name][k] for name in ("board", *Position.__dataclass_fields__, "moves")}
            ours = {chess.Move.from_uci(sim.env.move_name(sim.cfg, state, int(a))): int(a) for a in actions}
            assert len(ours) == len(actions)
            assert ours.keys() == {*boards[k].legal_moves}
            assert str(Position.of_state(state)) == boards[k].fen(en_passant="fen")
            move = list(ours)[rng.integers(len(ours))]
            sim.arrays["action"][k, mover] = ours[move]
            boards[k].push(move)
        sim.step()
        moves += len(playing)
        for k in playing:
            board = boards[k]
            no_moves = not any(board.legal_moves)
            many = no_moves or board.halfmove_clock >= 100 or len(board.move_stack) >= 512
            assert sim.arrays["ended"][k] >= many
            if board.is_checkmate():
                mates += 1
                np.testing.assert_array_equal(sim.arrays["reward"][k], [-1, 1] if board.turn else [1, -1])
            else:
                assert not sim.arrays["reward"][k].any()
            if sim.arrays["ended"][k] and not many:
                assert board.is_insufficient_material() or board.is_repetition(3) or _as_few(board)
        playing = [k for k in playing if not sim.arrays["ended"][k]]
    assert moves > 20_000
    assert mates > 5


def _as_few(board: chess.Board) -> bool:
    """OpenSpiel's rule, which Pgx follows, for what python-chess does not count: it asks who could still mate."""
    kinds = [piece.piece_type for piece in board.piece_map().values()]
    return {*kinds} <= {chess.KING, chess.BISHOP}
