"""Shogi against Pgx: moves from drawn positions. Whole games are in test_pgx.py."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pgx.shogi
import pytest
from pgx._src.games import shogi as rules
from pgx.experimental.shogi import from_sfen

from gpuzoo import Simulator
from gpuzoo.envs.shogi.shogi import Shogi

pytestmark = [pytest.mark.rotates, pytest.mark.filterwarnings("ignore:.*player_id")]

ENV: Any = pgx.make("shogi")
STEP = jax.jit(jax.vmap(ENV.step))
SEEN = jax.jit(jax.vmap(ENV._observe))
MASK = jax.jit(jax.vmap(rules._legal_action_mask))
CHECKED = jax.jit(jax.vmap(lambda x: rules._is_checked(rules._set_cache(rules._flip(x)))))
RNG = np.random.default_rng(0)
NUMBERS = (18, 4, 4, 4, 2, 2, 4)  # pawns to golds
PAWN, KNIGHT, GOLD, KING, SIDE = 0, 2, 6, 7, 14


def drawn() -> tuple[np.ndarray, np.ndarray]:
    """All pieces on the board or in hand. In some positions they stand around a king at the edge."""
    board, hands = np.full(81, -1), np.zeros((2, 7), int)
    king = int(RNG.choice([71, 79, *range(8, 81, 9), *range(72, 81)])) if RNG.random() < 0.7 else int(RNG.integers(81))
    cells = np.arange(81)
    away = np.maximum(abs(cells // 9 - king // 9), abs(cells % 9 - king % 9)) * (RNG.random() < 0.8)
    order = [int(c) for c in np.argsort(away + RNG.random(81) * RNG.uniform(0.5, 6)) if c != king]
    board[king] = KING
    board[order.pop(int(RNG.integers(40, 80)))] = SIDE + KING
    used, others = RNG.random() * 0.9, RNG.uniform(0.3, 0.95)
    for kind in RNG.permutation(np.repeat(np.arange(7), NUMBERS)):
        owner = int(RNG.random() < others)
        if RNG.random() > used or not order:
            hands[owner, kind] += 1
            continue
        cell = order.pop(0)
        row = 8 - cell % 9 if owner else cell % 9
        column = board[cell // 9 * 9 : cell // 9 * 9 + 9]
        stuck = (kind <= KNIGHT and row == 0) or (kind == KNIGHT and row == 1)
        twice = kind == PAWN and (column == SIDE * owner + PAWN).any()
        promoted = kind < GOLD and (stuck or twice or RNG.random() < 0.3)
        board[cell] = kind + 8 * promoted + SIDE * owner
    return board, hands


def in_pgx(boards: np.ndarray, hands: np.ndarray, to_move: np.ndarray) -> Any:
    n = len(boards)
    states: Any = jax.vmap(ENV.init)(jax.random.split(jax.random.key(0), n))
    x = states._x._replace(
        color=jnp.asarray(to_move.copy()), board=jnp.asarray(boards, jnp.int32), hand=jnp.asarray(hands, jnp.int32)
    )
    x = x._replace(legal_action_mask=MASK(x))
    return states.replace(
        _x=x,
        current_player=jnp.asarray(to_move.copy()),
        _player_order=jnp.tile(jnp.arange(2), (n, 1)),
        legal_action_mask=x.legal_action_mask,
    )


def words(mask: np.ndarray) -> np.ndarray:
    """A mask as our field `legal`."""
    return (mask.reshape(-1, 27, 3, 27).transpose(0, 2, 1, 3) << np.arange(27)).sum(3).astype(np.uint32)


@pytest.mark.timeout(900)
def test_moves_from_drawn_positions() -> None:
    n, moves, mates = 500, 0, 0
    sims = [Simulator(Shogi, n, device="cpu", autoreset_mode="disabled", strict_drops=k) for k in (False, True)]
    for _ in range(8):
        boards, hands = (np.array(x) for x in zip(*(drawn() for _ in range(n)), strict=True))
        to_move, rows = RNG.integers(0, 2, n).astype(np.int32), np.arange(n)
        states = in_pgx(boards, hands, to_move)
        live = ~np.asarray(CHECKED(states._x)) & np.asarray(states.legal_action_mask).any(1)
        for sim in sims:
            sim.reset(seed=0)
            start = {
                "board": boards.astype(np.int8),
                "hands": hands.reshape(-1, 14).astype(np.int8),
                "to_move": to_move,
            }
            sim.set_state(start | {"legal": words(np.asarray(states.legal_action_mask))})
        for _ in range(3):
            mask, mover = np.asarray(states.legal_action_mask), sims[0].arrays["to_move"].copy()
            actions = (RNG.random(mask.shape) * mask).argmax(1)
            states = STEP(states, jnp.asarray(actions))
            sims[1].set_state({"legal": sims[0].arrays["legal"]})
            for sim in sims:
                sim.arrays["action"][...] = actions[:, None, None]
                sim.step()
            ours, over = sims[0].arrays, np.asarray(states.terminated)
            for a in range(2):
                want = np.asarray(SEEN(states, jnp.full(n, a)))
                np.testing.assert_array_equal(ours["observation"][live, a].reshape(-1, 9, 9, 119), want[live])
                np.testing.assert_array_equal(ours["reward"][live, a], np.asarray(states.rewards)[live, a])
                np.testing.assert_array_equal(ours["terminated"][live, a], over[live])
            going = live & ~over
            legal, strict = (sim.arrays["action_mask"][rows, 1 - mover] for sim in sims)
            np.testing.assert_array_equal(legal[going], np.asarray(states.legal_action_mask)[going])
            assert (strict <= legal)[going].all()
            unlike = ((strict != legal) & going[:, None]).nonzero()[1]
            assert {*(unlike // 81)} <= {20}  # drops of pawns
            moves, mates = moves + int(live.sum()), mates + int((live & over).sum())
            live = going
    assert moves > 4_000
    assert mates > 0


#: a pawn that is dropped mates: is it legal in Pgx?
MATES = {
    "6nk1/9/6GSL/9/9/9/9/9/4K4 b P 1": True,
    "6nk1/9/6GSL/9/9/9/9/R8/4K4 b P 1": False,  # the rook attacks the opposite corner
    "6nk1/9/6GSL/9/9/9/9/R8/L3K4 b P 1": True,  # it cannot capture there
    "6nkp/9/6GSL/9/9/9/9/9/4K4 b P 1": False,
    "7l1/8k/7G1/5B1P1/9/9/9/9/4K4 b P 1": False,  # the bishop attacks it
    "7l1/8k/7G1/5B1P1/9/3P5/9/9/4K4 b P 1": True,
    "3lkl3/9/3GSG3/9/9/9/9/9/4K4 b P 1": False,
}


@pytest.mark.parametrize("sfen", MATES)
def test_mate_by_a_dropped_pawn(sfen: str) -> None:
    """Beside a corner Pgx allows it by mistake."""
    sims = [Simulator(Shogi, 1, device="cpu", sfen=sfen, strict_drops=k) for k in (False, True)]
    for sim in sims:
        sim.reset(seed=0)
    theirs = np.asarray(from_sfen(sfen).legal_action_mask)
    ours, strict = (sim.arrays["action_mask"][0, 0] for sim in sims)
    np.testing.assert_array_equal(ours, theirs)
    unlike = np.flatnonzero(strict != ours)
    assert len(unlike) == MATES[sfen]
    assert {*(unlike // 81)} <= {20}
