"""Board and card games against what is known of them: counts of positions, payoffs, and connections by another way.

Whole games are compared with Pgx and OpenSpiel in tests/integrations/pgx.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.game_2048.game_2048 import Game2048
from gpuzoo.envs.hex.hex import Hex
from gpuzoo.envs.kuhn_poker.kuhn_poker import KuhnPoker
from gpuzoo.envs.leduc_holdem.leduc_holdem import LeducHoldem
from gpuzoo.envs.othello.othello import Othello


def started(game: type, num_envs: int, **options: object) -> Simulator:
    s = Simulator(game, num_envs, device="cpu", autoreset_mode="disabled", **options)
    s.reset(seed=0)
    return s


def play(s: Simulator, actions: np.ndarray) -> None:
    """What the other player does is ignored."""
    rows, mover = np.arange(s.num_envs), s.arrays["to_move"].copy()
    s.arrays["action"][rows, 1 - mover, 0] = 10**6
    s.arrays["action"][rows, mover, 0] = actions
    s.step()


@pytest.mark.rotates
def test_othello_has_as_many_lines_of_play_as_is_known() -> None:
    """Perft of the start, depths 1 to 7, as in the published tables."""
    state, counts = started(Othello, 1).state(), []
    for _ in range(7):
        n = len(state["to_move"])
        s = started(Othello, n)
        s.set_state(state)
        masks = s.arrays["action_mask"][np.arange(n), s.arrays["to_move"]]
        envs, actions = masks.nonzero()
        again = started(Othello, len(envs))
        again.set_state({name: value[envs] for name, value in state.items()})
        play(again, actions)
        assert not again.arrays["ended"].any()
        state = again.state()
        counts.append(len(envs))
    assert counts == [4, 12, 56, 244, 1396, 8200, 55092]


def test_othello_ends_when_nobody_can_move() -> None:
    s = started(Othello, 3)
    full = 2**64 - 1
    last, lonely = 1 << 7, 1 << 62  # free cells: one beside a line, and one that no line from the first cell leads to
    others = np.array([1 << 6, 1, 2], np.uint64)
    own = np.array([full ^ last ^ 1 << 6, full ^ lonely ^ 1, 1], np.uint64)
    legal = np.array([last, 0, 1 << 2], np.uint64)
    s.set_state({"discs_0": own, "discs_1": others, "legal": legal, "to_move": np.zeros(3, np.int32)})
    play(s, np.array([7, 64, 2]))
    np.testing.assert_array_equal(s.arrays["ended"], [1, 0, 1])  # full, one has passed, nothing left of the other
    np.testing.assert_array_equal(s.arrays["reward"], [[1, -1], [0, 0], [1, -1]])
    play(s, np.array([0, 64, 0]))
    assert s.arrays["ended"][1]
    np.testing.assert_array_equal(s.arrays["reward"][1], [1, -1])


def test_the_second_player_wins_small_othello_by_eleven_to_three() -> None:
    """All positions of a board of 4 x 4 are visited, level by level, and solved from the last level to the first."""

    def discs(words: np.ndarray) -> np.ndarray:
        return np.array([int(word).bit_count() for word in words], int)

    state, levels, passing = started(Othello, 1, size=4).state(), [], 16
    while len(state["to_move"]):
        n = len(state["to_move"])
        s = started(Othello, n, size=4)
        s.set_state(state)
        masks = s.arrays["action_mask"][np.arange(n), s.arrays["to_move"]]
        envs, actions = masks.nonzero()
        s = started(Othello, len(envs), size=4)
        s.set_state({name: value[envs] for name, value in state.items()})
        play(s, actions)
        after, ended = s.state(), s.arrays["ended"].astype(bool)
        lead = discs(after["discs_0"]) - discs(after["discs_1"])
        key = np.stack([after["discs_0"], after["discs_1"], after["to_move"], after["last_move"] == passing], 1)
        _, first, number = np.unique(key.astype(np.uint64)[~ended], axis=0, return_index=True, return_inverse=True)
        levels.append((state["to_move"], envs, ended, lead, number.reshape(-1)))
        state = {name: value[~ended][first] for name, value in after.items()}
    below = np.zeros(0, int)
    for to_move, envs, ended, lead, number in reversed(levels):
        child = lead.copy()
        child[~ended] = below[number]
        sign = 1 - 2 * to_move
        best = np.full(len(to_move), -99)
        np.maximum.at(best, envs, child * sign[envs])
        below = best * sign
    assert below == [3 - 11]
    assert sum(len(to_move) for to_move, *_ in levels) > 10_000


def test_a_board_of_othello_has_even_sides() -> None:
    with pytest.raises(ValueError, match="size must be 4, 6 or 8, not 5"):
        started(Othello, 1, size=5)


def test_kuhn_poker_pays_as_published() -> None:
    deals = list(itertools.permutations(range(3), 2))
    #: 0 bets, 1 passes; what player_0 wins if its card is the lower one, and if it is the higher one
    lines = {(0, 0): (-2, 2), (0, 1): (1, 1), (1, 0, 0): (-2, 2), (1, 0, 1): (-1, -1), (1, 1): (-1, 1)}
    for moves, (lower, higher) in lines.items():
        s = started(KuhnPoker, len(deals))
        s.set_state({"card": np.array(deals, np.int32)})
        for k, move in enumerate(moves):
            assert not s.arrays["ended"].any()
            np.testing.assert_array_equal(s.arrays["to_move"], k % 2)
            play(s, np.full(len(deals), move))
        assert s.arrays["ended"].all()
        want = [higher if a > b else lower for a, b in deals]
        np.testing.assert_array_equal(s.arrays["reward"], np.stack([want, np.negative(want)], 1))


def test_kuhn_poker_deals_fairly() -> None:
    cards, counts = np.unique(started(KuhnPoker, 60_000).arrays["card"], axis=0, return_counts=True)
    assert len(cards) == 6
    assert abs(counts - 10_000).max() < 5 * np.sqrt(10_000)


def test_leduc_deals_from_six_cards() -> None:
    s = started(LeducHoldem, 120_000)
    deals = np.concatenate([s.arrays["card"], s.arrays["public_card"][:, None]], 1)
    found, counts = np.unique(deals, axis=0, return_counts=True)
    assert len(found) == 24  # of 27, without three alike
    ways = [np.prod([2 - sum(deal[:k] == deal[k]) for k in range(3)]) for deal in found]
    assert abs(counts - 1000 * np.array(ways)).max() < 5 * np.sqrt(8000)


def test_leduc_is_about_chips() -> None:
    """Call 0, raise 1, fold 2. The cards of player_0 and player_1, the public one, and what player_0 wins."""
    games = [
        ((2, 1, 0), (1, 0, 1, 0), 1 + 2 + 4),
        ((1, 2, 1), (0, 1, 1, 0, 1, 1, 0), 13),  # a pair beats a king
        ((1, 2, 2), (0, 0, 0, 0), -1),
        ((0, 0, 1), (1, 1, 0, 0, 0), 0),
        ((2, 0, 2), (0, 1, 2), -1),
        ((2, 0, 2), (1, 0, 1, 1, 2), -(1 + 2 + 4)),
    ]
    for cards, moves, won in games:
        s = started(LeducHoldem, 1)
        s.set_state({"card": np.array([cards[:2]], np.int32), "public_card": np.array(cards[2:], np.int32)})
        for move in moves:
            assert not s.arrays["ended"].any()
            assert s.arrays["action_mask"][0, s.arrays["to_move"][0], move]
            play(s, np.array([move]))
        assert s.arrays["ended"].all()
        np.testing.assert_array_equal(s.arrays["reward"][0], [won, -won])


def connected(stones: np.ndarray, colour: int) -> bool:
    """Whether stones join the first row with the last one, for black, or the columns; by spreading."""
    board = stones == colour if colour == 1 else (stones == colour).T
    reached = np.zeros_like(board)
    reached[0] = board[0]
    while True:
        wide = np.pad(reached, 1)
        near = wide[:-2, 1:-1] | wide[2:, 1:-1] | wide[1:-1, :-2] | wide[1:-1, 2:] | wide[:-2, 2:] | wide[2:, :-2]
        more = reached | near & board
        if (more == reached).all():
            return bool(reached[-1].any())
        reached = more


@pytest.mark.rotates
@pytest.mark.parametrize("size", [2, 5, 14])
def test_hex_ends_with_the_first_connection(size: int) -> None:
    games, rng = 64, np.random.default_rng(size)
    s, playing = started(Hex, games, size=size), np.ones(games, bool)
    swapped = np.zeros(games, bool)
    for move in range(size * size + 1):
        mover = s.arrays["to_move"].copy()
        np.testing.assert_array_equal(mover[playing], move % 2)
        mask = s.arrays["action_mask"][np.arange(games), mover]
        assert (mask[playing, -1] == (move == 1)).all()
        actions = (rng.random(mask.shape) * mask).argmax(1)
        if move == 1:
            actions[::2] = size * size
            swapped = actions == size * size
        play(s, actions)
        for k in np.flatnonzero(playing):
            stones = s.arrays["stone"][k].reshape(size, size)
            assert (stones != 0).sum() == move + 1 - swapped[k]
            wins = [connected(stones, colour) for colour in (1, 2)]
            assert s.arrays["ended"][k] == any(wins)
            if any(wins):
                assert wins[mover[k]]
                np.testing.assert_array_equal(s.arrays["reward"][k], np.where(wins, 1, -1))
        playing &= s.arrays["ended"] == 0
    assert not playing.any()


def test_hex_swaps_the_first_stone() -> None:
    s = started(Hex, 2, size=3)
    play(s, np.array([1, 7]))
    play(s, np.array([9, 9]))
    stones = s.arrays["stone"].reshape(2, 3, 3)
    want = np.zeros_like(stones)
    want[0, 1, 0] = want[1, 1, 2] = 2
    np.testing.assert_array_equal(stones, want)
    for a, b in ((0, 0), (3, 5), (8, 8)):  # its old edges belong to black no more, and the new ones to white
        play(s, np.array([a if stones[0].ravel()[a] == 0 else 2, b if stones[1].ravel()[b] == 0 else 0]))
    assert not s.arrays["ended"].any()


def test_hex_without_a_swap() -> None:
    s = started(Hex, 1, size=3, swap=False)
    play(s, np.array([4]))
    assert not s.arrays["action_mask"][0, 1, 9]
    play(s, np.array([9]))
    np.testing.assert_array_equal(s.arrays["reward"], [[0, -1]])
    assert s.arrays["ended"].all()


def tiles_of(s: Simulator) -> np.ndarray:
    """Exponents of the tiles of 2048, (num_envs, 16)."""
    return np.ascontiguousarray(s.arrays["rows"]).view(np.uint8)


def rows_of(tiles: np.ndarray) -> dict[str, np.ndarray]:
    return {"rows": np.ascontiguousarray(tiles, np.uint8).view(np.uint32)}


def test_2048_joins_tiles_as_the_original() -> None:
    """A line, what it becomes when it moves to its first cell, and the reward; the new tile comes after that.

    Left, up, right and down are the same, after as many quarter turns of the board.
    """
    lines = {
        (1, 1, 1, 1): ((2, 2), 8),
        (1, 1, 2, 0): ((2, 2), 4),
        (2, 1, 1, 0): ((2, 2), 4),
        (1, 0, 0, 1): ((2,), 4),
        (0, 3, 0, 4): ((3, 4), 0),
        (1, 1, 1, 0): ((2, 1), 4),
        (10, 10, 5, 5): ((11, 6), 2048 + 64),
    }
    for line, (after, gained) in lines.items():
        board = np.array([line, (0, 0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 0)])
        s = started(Game2048, 4)
        s.set_state(rows_of(np.stack([np.rot90(board, -k).ravel() for k in range(4)])))
        s.arrays["action"][:, 0, 0] = range(4)
        s.step()
        for k in range(4):
            seen = np.rot90(tiles_of(s)[k].reshape(4, 4), k).copy()
            seen[0, : len(after)] -= np.array(after, np.uint8)
            assert sorted(seen.ravel().tolist())[:-1] == [0] * 15  # nothing else but the new tile
            assert seen.max() in (1, 2)
        np.testing.assert_array_equal(s.arrays["reward"][:, 0], gained)


def test_2048_draws_tiles_fairly() -> None:
    s = started(Game2048, 40_000)
    tiles = tiles_of(s)
    assert ((tiles > 0).sum(1) == 2).all()
    for counts, chance in (((tiles > 0).sum(0), 1 / 8), ((tiles == 2).sum(0), 1 / 80)):
        assert abs(counts - 40_000 * chance).max() < 5 * np.sqrt(40_000 * chance)
    play_on = started(Game2048, 8, probability_of_4=1.0)
    assert set(np.unique(tiles_of(play_on))) == {0, 2}


def test_2048_ends_when_no_tile_moves() -> None:
    stuck = np.indices((4, 4)).sum(0) % 2 + 1
    almost = stuck.copy()
    almost[3, 2:] = (0, 5)
    s = started(Game2048, 1)
    s.set_state(rows_of(almost.ravel()[None]))
    np.testing.assert_array_equal(s.arrays["action_mask"][0, 0], [1, 0, 1, 1])
    s.arrays["action"][0, 0, 0] = 1
    s.step()
    assert s.arrays["ended"].all()
    assert s.arrays["reward"][0, 0] == -1
