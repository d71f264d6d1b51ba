"""Quoridor: jumps, walls that would shut somebody in, the last move. tests/integrations/pgx compares with OpenSpiel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpuzoo import Simulator, get
from gpuzoo.envs.quoridor.quoridor import Quoridor

UP, DOWN, LEFT, RIGHT, UP_LEFT, UP_RIGHT, DOWN_LEFT, DOWN_RIGHT = range(8)
FLAT, UPRIGHT = "horizontal", "vertical"


def started(num_envs: int = 1, **options: Any) -> Simulator:
    s = Simulator(Quoridor, num_envs, device="cpu", autoreset_mode="disabled", **options)
    s.reset(seed=0)
    return s


def position(size: int, pawns: list[tuple[int, int]], *walls: tuple[str, int, int], **state: Any) -> Simulator:
    """Rows and columns of pawns, and of the cells that give walls their numbers."""
    s = started(board_size=size)
    sets = {FLAT: 0, UPRIGHT: 0}
    for kind, row, column in walls:
        sets[kind] |= 1 << (size - 1) * row + column
    cells = [size * row + column for row, column in pawns]
    s.set_state({
        **{kind: np.array([bits], np.uint64) for kind, bits in sets.items()},
        "pawn": np.array([cells], np.int32),
        **{name: np.array([value], np.int32) for name, value in state.items()},
    })  # fmt: skip
    return s


def legal(s: Simulator, player: int = 0) -> set[int]:
    return {*np.flatnonzero(s.arrays["action_mask"][0, player])}


def steps(s: Simulator, player: int = 0) -> set[int]:
    return {k for k in legal(s, player) if k < 8}


def wall(s: Simulator, kind: str, row: int, column: int, player: int = 0) -> int:
    """The number of a wall that player_0 sees there, as a player counts it."""
    n = s.cfg.board_size - 1
    return 8 + (kind == UPRIGHT) * n * n + (row if player == 0 else n - 1 - row) * n + column


def play(s: Simulator, action: int) -> None:
    """What the other player does is ignored."""
    mover = int(s.arrays["to_move"][0])
    s.arrays["action"][0, 1 - mover, 0] = 10**6
    s.arrays["action"][0, mover, 0] = action
    s.step()


@pytest.mark.parametrize(("size", "walls"), [(3, 1), (4, 2), (5, 3), (9, 10)])
def test_the_first_position_is_the_same_to_both(size: int, walls: int) -> None:
    s = started(board_size=size)
    seen = s.arrays["observation"].reshape(2, size, size, 6)
    np.testing.assert_array_equal(seen[0], seen[1])
    assert seen[0, size - 1, size // 2, 0] == seen[0, 0, size // 2, 1] == 1
    assert seen[0, ..., :4].sum() == 2
    assert (seen[..., 4:] == 1).all()
    assert s.arrays["walls_left"].tolist() == [[walls, walls]]
    assert legal(s) == {UP, LEFT, RIGHT, *range(8, 8 + 2 * (size - 1) ** 2)}


def test_each_player_sees_the_board_from_its_side() -> None:
    s = started()
    play(s, wall(s, FLAT, 7, 2))
    first = 8 + 64
    play(s, first + 8 * 1 + 6)  # upright, beside the second and third row of player_1's goal
    seen = s.arrays["observation"].reshape(2, 9, 9, 6)
    assert [tuple(x) for x in np.argwhere(seen[0, ..., 2])] == [(7, 2)]
    assert [tuple(x) for x in np.argwhere(seen[1, ..., 2])] == [(0, 2)]
    assert [tuple(x) for x in np.argwhere(seen[0, ..., 3])] == [(6, 6)]
    assert [tuple(x) for x in np.argwhere(seen[1, ..., 3])] == [(1, 6)]
    np.testing.assert_allclose(seen[..., 4:], 0.9)
    play(s, UP)
    assert s.arrays["pawn"].tolist() == [[7 * 9 + 4, 4]]
    play(s, UP)
    assert s.arrays["pawn"].tolist() == [[7 * 9 + 4, 9 + 4]]


def test_pawns_jump_straight_on() -> None:
    s = position(5, [(3, 2), (2, 2)])
    assert steps(s) == {UP, DOWN, LEFT, RIGHT}
    play(s, UP)
    assert s.arrays["pawn"].tolist() == [[5 + 2, 10 + 2]]
    assert steps(s, 1) == {UP, DOWN, LEFT, RIGHT}
    play(s, DOWN)
    assert s.arrays["pawn"].tolist() == [[5 + 2, 2]]
    assert not s.arrays["ended"].any()


def test_pawns_jump_aside_where_a_wall_or_the_border_is_behind() -> None:
    behind = (FLAT, 1, 2)
    assert steps(position(5, [(3, 2), (2, 2)], behind)) == {DOWN, LEFT, RIGHT, UP_LEFT, UP_RIGHT}
    assert steps(position(5, [(3, 2), (2, 2)], behind, (UPRIGHT, 1, 1))) == {DOWN, LEFT, RIGHT, UP_RIGHT}
    assert steps(position(5, [(3, 2), (2, 2)], (FLAT, 2, 1))) == {DOWN, LEFT, RIGHT}  # a wall between the pawns
    beside = position(5, [(2, 3), (2, 4)])
    assert steps(beside) == {UP, DOWN, LEFT, UP_RIGHT, DOWN_RIGHT}
    play(beside, DOWN_RIGHT)
    assert beside.arrays["pawn"].tolist() == [[3 * 5 + 4, 2 * 5 + 4]]
    other = position(5, [(2, 4), (2, 3)], to_move=1)
    assert steps(other, 1) == {UP, DOWN, LEFT, UP_RIGHT, DOWN_RIGHT}
    play(other, UP_RIGHT)  # player_1 walks down the rows
    assert other.arrays["pawn"].tolist() == [[2 * 5 + 4, 3 * 5 + 4]]


def test_walls_neither_cross_nor_overlap() -> None:
    s = position(9, [(8, 4), (0, 4)], (FLAT, 4, 4))
    assert missing(s) == {wall(s, FLAT, 4, k) for k in (3, 4, 5)} | {wall(s, UPRIGHT, 4, 4)}
    s = position(9, [(8, 4), (0, 4)], (UPRIGHT, 7, 0))
    assert missing(s) == {wall(s, UPRIGHT, 6, 0), wall(s, UPRIGHT, 7, 0), wall(s, FLAT, 7, 0)}


def missing(s: Simulator) -> set[int]:
    return {*range(8, s.arrays["action_mask"].shape[-1])} - legal(s)


def test_a_wall_leaves_everybody_a_way() -> None:
    pawns = [(3, 2), (0, 2)]
    s = position(4, pawns, (FLAT, 1, 0))
    taken = {wall(s, FLAT, 1, 0), wall(s, FLAT, 1, 1), wall(s, UPRIGHT, 1, 0)}
    assert missing(s) == taken | {wall(s, FLAT, 1, 2)}  # from border to border
    s = position(4, pawns, (FLAT, 1, 0), (UPRIGHT, 1, 1))
    taken |= {wall(s, UPRIGHT, row, 1) for row in range(3)}
    assert missing(s) == taken | {wall(s, FLAT, row, 2) for row in range(3)}  # over the ends and the middle


def test_a_corner_may_be_closed_if_nobody_is_in_it() -> None:
    corner = (FLAT, 0, 0)
    s = position(3, [(2, 2), (1, 0)], corner)
    assert wall(s, UPRIGHT, 0, 1) in legal(s)  # player_0 still reaches the other end of its goal
    s = position(3, [(2, 2), (0, 0)], corner)
    assert wall(s, UPRIGHT, 0, 1) not in legal(s)
    s = position(3, [(2, 2), (0, 0)], corner, to_move=1)
    play(s, wall(s, UPRIGHT, 0, 1, 1))
    assert s.arrays["ended"].all()
    np.testing.assert_array_equal(s.arrays["reward"], [[0, -1]])
    assert s.arrays["vertical"].tolist() == [0]


def test_a_player_without_walls_only_walks() -> None:
    s = position(5, [(4, 2), (0, 2)], walls_left=[0, 3])
    assert legal(s) == {UP, LEFT, RIGHT}
    play(s, UP)
    assert len(legal(s, 1)) == 3 + 2 * 16
    play(s, wall(s, FLAT, 0, 0, 1))
    assert s.arrays["walls_left"].tolist() == [[0, 2]]
    play(s, wall(s, FLAT, 3, 3))
    np.testing.assert_array_equal(s.arrays["reward"], [[-1, 0]])


def test_a_pawn_in_its_goal_wins() -> None:
    s = position(5, [(1, 0), (3, 4)])
    play(s, UP)
    np.testing.assert_array_equal(s.arrays["reward"], [[1, -1]])
    s = position(5, [(2, 4), (3, 4)], to_move=1)
    play(s, UP)
    np.testing.assert_array_equal(s.arrays["reward"], [[-1, 1]])
    assert s.arrays["ended"].all()
    s = position(5, [(2, 3), (1, 3)])  # a jump
    play(s, UP)
    assert s.arrays["pawn"].tolist() == [[3, 5 + 3]]
    np.testing.assert_array_equal(s.arrays["reward"], [[1, -1]])


@pytest.mark.parametrize(("moves", "rewards"), [(98, [1, -1]), (99, [0, 0])])
def test_the_last_move_wins_no_more(moves: int, rewards: list[int]) -> None:
    s = position(5, [(1, 0), (3, 4)], moves=moves)
    play(s, UP)
    assert s.arrays["ended"].all()
    np.testing.assert_array_equal(s.arrays["reward"], [rewards])


def test_a_game_without_an_end_is_a_draw() -> None:
    s = started(board_size=4, walls=0)
    for move in range(64):
        assert not s.arrays["ended"].any()
        play(s, LEFT if move % 4 < 2 else RIGHT)
    assert s.arrays["ended"].all()
    np.testing.assert_array_equal(s.arrays["reward"], [[0, 0]])


@pytest.mark.parametrize("action", [-1, DOWN, UP_LEFT, 40, 10**6])
def test_illegal_actions(action: int) -> None:
    s = started(board_size=5)
    play(s, action)
    assert s.arrays["ended"].all()
    np.testing.assert_array_equal(s.arrays["reward"], [[-1, 0]])
    assert s.arrays["to_move"].tolist() == [0]


@pytest.mark.rotates
def test_all_legal_actions_have_the_same_chance() -> None:
    """Walls that would close a way are drawn, and refused, so another action is drawn then."""
    walls = [(FLAT, 2, 0), (UPRIGHT, 2, 1), (FLAT, 1, 2)]
    one = position(5, [(4, 2), (0, 1)], *walls)
    mask = one.arrays["action_mask"][0, 0]
    assert wall(one, UPRIGHT, 0, 2) not in legal(one)
    s = started(100_000, board_size=5)
    s.set_state({name: np.repeat(value, s.num_envs, 0) for name, value in one.state().items()})
    s.random_actions()
    actions, counts = np.unique(s.arrays["action"][:, 0, 0], return_counts=True)
    assert {*actions} == {*np.flatnonzero(mask)}
    want = s.num_envs / len(actions)
    assert ((counts - want) ** 2 / want).sum() < len(actions) + 5 * np.sqrt(2 * len(actions))


@pytest.mark.rotates
@pytest.mark.parametrize("size", [4, 5, 9])
def test_ways_are_those_of_a_search_without_bits(size: int) -> None:
    """Each wall that is free and not legal shuts somebody in, and each legal one does not."""
    s = started(6, board_size=size, walls=64)
    n, refused = size - 1, 0
    for _ in range(2 * size):
        s.rollout(1)
        for k in np.flatnonzero(s.arrays["ended"] == 0):
            mover = int(s.arrays["to_move"][k])
            sets = [int(s.arrays[name][k]) for name in (FLAT, UPRIGHT)]
            for kind in range(2):
                for place in range(n * n):
                    row, column = divmod(place, n)
                    seen = place if mover == 0 else (n - 1 - row) * n + column
                    free = not any(sets[j] >> place & 1 for j in range(2))
                    for side in (-1, 1):
                        r, c = (row, column + side) if kind == 0 else (row + side, column)
                        free &= not (0 <= r < n and 0 <= c < n and sets[kind] >> r * n + c & 1)
                    after = [sets[j] | (j == kind) << place for j in range(2)]
                    ways = free and all(arrives(size, after, int(s.arrays["pawn"][k, a]), a) for a in range(2))
                    assert s.arrays["action_mask"][k, mover, 8 + kind * n * n + seen] == ways
                    refused += free and not ways
    assert refused > 5


def arrives(size: int, sets: list[int], cell: int, player: int) -> bool:
    n, seen, ahead = size - 1, {divmod(cell, size)}, [divmod(cell, size)]

    def has(kind: int, row: int, column: int) -> int:
        return 0 <= row < n and 0 <= column < n and sets[kind] >> row * n + column & 1

    while ahead:
        row, column = ahead.pop()
        if row == (0 if player == 0 else n):
            return True
        for r, c in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
            top, left = min(r, row), min(c, column)
            closed = (
                has(0, top, left) | has(0, top, left - 1) if c == column else has(1, top, left) | has(1, top - 1, left)
            )
            if 0 <= r < size and 0 <= c < size and not closed and (r, c) not in seen:
                seen.add((r, c))
                ahead.append((r, c))
    return False


@pytest.mark.rotates
def test_search_beats_random_play() -> None:
    pytest.importorskip("torch")
    from gpuzoo.search import Search

    games = 16
    s = Simulator(get("Quoridor-v0"), games, device="cpu", autoreset_mode="disabled", board_size=5)
    s.reset(seed=0)
    search = Search("Quoridor-v0", games, rule="uct", simulations=200, device="cpu", board_size=5)
    for move in range(100):
        s.random_actions()
        if move % 2 == 0:
            s.arrays["action"][:, 0, 0] = search.run(s).action.numpy()
        s.step()
    assert s.arrays["final_return"][:, 0].mean() > 0.8


def test_moves_have_names_and_places() -> None:
    s = position(5, [(3, 2), (2, 2)])
    env, cfg = Quoridor(), Quoridor.Config(board_size=5)
    state = {name: value[0] for name, value in s.state().items()}
    assert env.move_name(cfg, state, UP) == "c2"
    assert env.move_name(cfg, state, wall(s, FLAT, 1, 3)) == "d2h"
    assert env.presses(cfg, state, wall(s, UPRIGHT, 1, 3)) == [(4.0, 1.5)]
    state["to_move"] = np.int32(1)
    assert env.move_name(cfg, state, LEFT) == "b3"
    assert env.move_name(cfg, state, wall(s, UPRIGHT, 1, 3, 1)) == "d2v"
    assert env.presses(cfg, state, wall(s, FLAT, 1, 3, 1)) == [(3.5, 2.0)]
