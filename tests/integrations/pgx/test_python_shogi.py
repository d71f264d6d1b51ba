"""Shogi against python-shogi: numbers of lines of play, and legal moves and results of whole random games."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import shogi

from gpuzoo import Simulator, get
from gpuzoo.envs.shogi.sfen import Position
from gpuzoo.envs.shogi.shogi import START

pytestmark = pytest.mark.rotates
#: published positions with their lines of up to 4 moves: the start, one with many drops, the one with most moves
PERFT = {
    START: [30, 900, 25470, 719731],
    "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1": [207, 28684, 4809015],
    "R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1": [593],
}
CHUNK = 4096
NEEDED = "board hands legal to_move moves".split()


def batch(num_envs: int, **options: Any) -> Simulator:
    sim = Simulator(get("Shogi-v0"), num_envs, device="cpu", autoreset_mode="disabled", strict_drops=True, **options)
    sim.reset(seed=0)
    return sim


def lines(sim: Simulator, state: Mapping[str, np.ndarray], depth: int) -> int:
    """Lines of `depth` moves from these positions, a batch at a time."""
    if depth == 1:
        return int(np.bitwise_count(state["legal"]).sum())
    bits = state["legal"][..., None] >> np.arange(27, dtype=np.uint32) & 1
    envs, words, ways, cells = bits.nonzero()
    actions = 81 * ways + 27 * words + cells
    total = 0
    for low in range(0, len(envs), CHUNK):
        chosen, played = envs[low : low + CHUNK], actions[low : low + CHUNK]
        some = np.arange(len(chosen))
        sim.reset(seed=0)
        sim.set_state({name: state[name][chosen] for name in NEEDED}, some)
        sim.arrays["action"][: len(chosen)] = played[:, None, None]
        sim.step(some)
        total += lines(sim, {name: sim.arrays[name][: len(chosen)].copy() for name in NEEDED}, depth - 1)
    return total


@pytest.mark.timeout(900)
@pytest.mark.parametrize("sfen", PERFT)
def test_lines_of_play(sfen: str) -> None:
    """As published; python-shogi confirms the first of the numbers."""
    start = batch(1, sfen=sfen)
    state, sim = {name: start.arrays[name].copy() for name in NEEDED}, batch(CHUNK)
    assert [lines(sim, state, depth + 1) for depth in range(len(PERFT[sfen]))] == PERFT[sfen]
    assert sum(1 for _ in shogi.Board(sfen).legal_moves) == PERFT[sfen][0]


@pytest.mark.timeout(900)
def test_whole_games() -> None:
    games, rng, moves, mates = 30, np.random.default_rng(2), 0, 0
    sim = batch(games)
    boards = [shogi.Board() for _ in range(games)]
    playing = [*range(games)]
    while playing:
        for k in playing:
            state = {name: sim.arrays[name][k] for name in (*NEEDED, "last_move")}
            mover = int(state["to_move"])
            assert str(Position.of_state(state)) == boards[k].sfen()
            actions = np.flatnonzero(sim.arrays["action_mask"][k, mover])
            legal = {sim.env.move_name(sim.cfg, state, int(a)): int(a) for a in actions}
            assert legal.keys() == {move.usi() for move in boards[k].legal_moves}
            assert sim.arrays["observation"][k].reshape(2, 81, 119)[mover, 0, 118] == boards[k].is_check()
            move = list(legal)[rng.integers(len(legal))]
            sim.arrays["action"][k, mover] = legal[move]
            boards[k].push_usi(move)
        sim.step()
        moves += len(playing)
        for k in playing:
            mated = not any(boards[k].legal_moves)
            assert sim.arrays["ended"][k] == (mated or len(boards[k].move_stack) >= 512)
            loser = int(boards[k].turn)
            want = np.where(np.arange(2) == loser, -1, 1) if mated else np.zeros(2)
            np.testing.assert_array_equal(sim.arrays["reward"][k], want)
            mates += mated
        playing = [k for k in playing if not sim.arrays["ended"][k]]
    assert moves > 3_000
    assert mates > 10
