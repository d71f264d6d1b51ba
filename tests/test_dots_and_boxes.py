"""Dots and boxes: positions by hand, the numbering of lines, and searches beside an exact solver.

Whole games are compared with OpenSpiel in tests/integrations/pgx.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.dots_and_boxes.dots_and_boxes import DotsAndBoxes, DotsAndBoxesConfig

SMALL = {"num_rows": 2, "num_cols": 2}


def started(num_envs: int = 1, **options: Any) -> Simulator:
    s = Simulator(DotsAndBoxes, num_envs, device="cpu", autoreset_mode="disabled", threads=1, **options)
    s.reset(seed=0)
    return s


def play(s: Simulator, *actions: int) -> list[int]:
    """Who drew the lines. What the other player does is ignored."""
    movers = []
    for action in actions:
        mover = int(s.arrays["to_move"][0])
        s.arrays["action"][0, 1 - mover, 0] = -1
        s.arrays["action"][0, mover, 0] = action
        s.step()
        movers.append(mover)
    return movers


def seen(s: Simulator, player: int, plane: int) -> list[list[int]]:
    rows, columns = 2 * s.cfg.num_rows + 1, 2 * s.cfg.num_cols + 1
    return s.arrays["observation"][0, player].reshape(rows, columns, 4)[:, :, plane].tolist()


def owned(s: Simulator) -> list[int]:
    return [int(s.arrays[f"boxes_{k}"][0]).bit_count() for k in range(2)]


def test_a_closed_box_gives_another_move() -> None:
    s = started(**SMALL)
    assert play(s, 0, 6, 2, 7) == [0, 1, 0, 1]  # the sides of the upper left box
    assert owned(s) == [0, 1]
    assert s.arrays["to_move"][0] == 1
    assert not s.arrays["ended"][0]
    assert not s.arrays["reward"].any()
    assert play(s, 1) == [1]
    assert s.arrays["to_move"][0] == 0


def test_a_line_may_close_two_boxes() -> None:
    s = started(num_rows=1, num_cols=2)
    assert play(s, 0, 1, 2, 3, 4, 6) == [0, 1, 0, 1, 0, 1]  # all but the line between the boxes
    assert owned(s) == [0, 0]
    assert play(s, 5) == [0]
    assert owned(s) == [2, 0]
    assert s.arrays["ended"][0]
    np.testing.assert_array_equal(s.arrays["reward"][0], [1, -1])
    assert s.arrays["to_move"][0] == 0
    assert not s.arrays["action_mask"].any()


def test_a_line_without_a_box_passes_the_turn_on_however_many_boxes_it_touches() -> None:
    s = started(num_rows=1, num_cols=2)
    assert play(s, 5, 0, 2, 1) == [0, 1, 0, 1]
    assert play(s, 3, 4, 6) == [0, 1, 1]  # both boxes need one line now, and player_1 takes both
    np.testing.assert_array_equal(s.arrays["reward"][0], [-1, 1])


@pytest.mark.parametrize("margin", [False, True])
def test_results(margin: bool) -> None:
    """Four boxes in a row: 2 to 2, then 3 to 1, then 0 to 4. Box c has the sides c, c + 4, c + 8 and c + 9."""
    ends: dict[tuple[int, ...], tuple[int, int]] = {
        (0, 4, 8, 9, 1, 5, 10, 2, 6, 3, 7, 12, 11): (2, 2),
        (0, 4, 8, 9, 1, 5, 2, 10, 6, 3, 7, 12, 11): (3, 1),
        (0, 4, 8, 9, 1, 5, 10, 2, 6, 11, 3, 7, 12): (0, 4),
    }
    for lines, boxes in ends.items():
        s = started(num_rows=1, num_cols=4, utility_margin=margin)
        play(s, *lines[:-1])
        assert not s.arrays["ended"][0]
        play(s, lines[-1])
        assert s.arrays["ended"][0]
        assert owned(s) == list(boxes), lines
        lead = boxes[0] - boxes[1]
        won = lead if margin else np.sign(lead)
        np.testing.assert_array_equal(s.arrays["reward"][0], [won, -won])


def test_the_winner_is_known_early_but_the_game_goes_on() -> None:
    s = started(num_rows=1, num_cols=3)
    play(s, 0, 3, 6, 7, 4, 1, 8)
    assert owned(s)[int(s.arrays["to_move"][0])] == 2
    assert not s.arrays["ended"][0]


@pytest.mark.parametrize("line", [4, -1])
@pytest.mark.parametrize("mover", [0, 1])
def test_an_illegal_line_loses(line: int, mover: int) -> None:
    s = started(**SMALL)
    play(s, 4, *[0][: 1 - mover])
    before = s.state()
    play(s, line)
    want = [0, 0]
    want[mover] = -1
    np.testing.assert_array_equal(s.arrays["reward"][0], want)
    assert s.arrays["ended"][0]
    for name in s.program.fields:
        np.testing.assert_array_equal(s.state()[name], before[name], err_msg=name)


def test_what_players_see() -> None:
    s = started(num_rows=1, num_cols=2)
    play(s, 0, 2, 4, 5)
    boxes, none = [[0, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]], np.zeros((3, 5), int).tolist()
    for player in range(2):
        assert seen(s, player, 1 - player) == boxes  # player_1 has closed the left box
        assert seen(s, player, player) == none
        assert seen(s, player, 2) == [[0, 1, 0, 0, 0], [1, 0, 1, 0, 0], [0, 1, 0, 0, 0]]
        assert seen(s, player, 3) == [[0, 0, 0, 1, 0], [0, 0, 0, 0, 1], [0, 0, 0, 1, 0]]
    np.testing.assert_array_equal(s.arrays["action_mask"][0], [[0] * 7, [0, 1, 0, 1, 0, 0, 1]])


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 2), (5, 5), (7, 7), (1, 31), (31, 1), (3, 15), (8, 6)])
def test_each_line_has_its_cell(rows: int, columns: int) -> None:
    """The cell of an action, what is pressed for it, and the numbering of the docstring say the same."""
    cfg = DotsAndBoxesConfig(num_rows=rows, num_cols=columns)
    game, s = DotsAndBoxes(), started(num_rows=rows, num_cols=columns)
    lines, width = 2 * rows * columns + rows + columns, 2 * columns + 1
    cells, _ = game.action_cells(cfg, "player")
    across = [(2 * r, 2 * c + 1) for r in range(rows + 1) for c in range(columns)]
    down = [(2 * r + 1, 2 * c) for r in range(rows) for c in range(columns + 1)]
    assert cells == [width * y + x for y, x in across + down]
    assert len(cells) == len(game.action_names(cfg, "player")) == lines
    drawn = np.zeros((2 * rows + 1, width), int)
    for action in np.random.default_rng(0).permutation(lines):
        assert s.arrays["action_mask"][0, s.arrays["to_move"][0], action]
        play(s, int(action))
        drawn.ravel()[cells[action]] = 1
        ((x, y),) = game.presses(cfg, {}, int(action))
        assert (round(2 * y), round(2 * x)) == divmod(cells[action], width)
        assert seen(s, 0, 2) == seen(s, 1, 2) == drawn.tolist()
    assert s.arrays["ended"][0]
    assert sum(owned(s)) == rows * columns


def test_a_board_has_64_dots_at_most() -> None:
    with pytest.raises(ValueError, match=r"64 dots, but num_rows=8 and num_cols=7 make 72: .* 7 by 7 boxes"):
        started(num_rows=8, num_cols=7)


# ---- searches beside an exact solver, on 2 x 2 boxes ----

SIDES = [sum(1 << k for k in sides) for sides in ((0, 2, 6, 7), (1, 3, 7, 8), (2, 4, 9, 10), (3, 5, 10, 11))]


def closed_by(drawn: int, line: int) -> int:
    after = drawn | 1 << line
    return sum(after & box == box != drawn & box for box in SIDES)


@functools.cache
def future(drawn: int) -> int:
    """By how many boxes who is to move will win more from here on than the other one, if both play at their best."""
    return max((gain(drawn, line) for line in range(12) if not drawn >> line & 1), default=0)


def gain(drawn: int, line: int) -> int:
    """The same, if this line is the first."""
    boxes = closed_by(drawn, line)
    return boxes + future(drawn | 1 << line) if boxes else -future(drawn | 1 << line)


def position(s: Simulator, env: int) -> tuple[int, int]:
    """The lines that are drawn, and the lead of who is to move."""
    mover = int(s.arrays["to_move"][env])
    free = s.arrays["action_mask"][env, mover]
    counts = [int(s.arrays[f"boxes_{k}"][env]).bit_count() for k in (mover, 1 - mover)]
    return sum(1 << k for k in range(12) if not free[k]), counts[0] - counts[1]


def worth(drawn: int, lead: int, margin: bool) -> dict[int, int]:
    """The result for who is to move, by legal line."""
    ends = {line: lead + gain(drawn, line) for line in range(12) if not drawn >> line & 1}
    return ends if margin else {line: int(np.sign(end)) for line, end in ends.items()}


def random_positions(count: int, moves: int, margin: bool = False) -> Simulator:
    s = started(count, utility_margin=margin, **SMALL)
    for _ in range(moves):
        s.random_actions()
        s.step()
    return s


def test_the_first_player_wins_two_by_two_boxes_by_three_to_one() -> None:
    assert future(0) == 2
    drawn, mover, boxes = 0, 0, [0, 0]
    s = started(**SMALL)
    while drawn != 2**12 - 1:
        line = max((k for k in range(12) if not drawn >> k & 1), key=lambda k: gain(drawn, k))
        closed = closed_by(drawn, line)
        assert play(s, line) == [mover]
        drawn |= 1 << line
        boxes[mover] += closed
        mover = mover if closed else 1 - mover
        assert owned(s) == boxes
    assert boxes == [3, 1]


@pytest.mark.parametrize("margin", [False, True])
@pytest.mark.parametrize("moves", range(12))
def test_values_on_the_path_change_their_sign_with_the_player_only(moves: int, margin: bool) -> None:
    """An evaluation that knows the result: a search that tries each line once finds the exact value of each."""
    torch = pytest.importorskip("torch")
    from gpuzoo.search import Search, Settings

    def oracle(observation: Any, legal: Any) -> tuple[Any, Any]:
        lines = [*((2 * r, 2 * c + 1) for r in range(3) for c in range(2))]
        lines += [(2 * r + 1, 2 * c) for r in range(2) for c in range(3)]
        values = []
        for board in observation.numpy():
            drawn = sum(1 << k for k, (y, x) in enumerate(lines) if board[y, x, 2])
            end = int(board[:, :, 0].sum()) - int(board[:, :, 1].sum()) + future(drawn)
            values.append(end if margin else np.sign(end))
        return torch.zeros(legal.shape), torch.tensor(values, dtype=torch.float32)

    count, left = 40, 12 - moves
    s = random_positions(count, moves, margin)
    given: dict[str, Any] = {"device": "cpu", "threads": 1, "utility_margin": margin, **SMALL}
    settings = Settings(considered=12, gumbel_scale=0.0)
    search = Search(DotsAndBoxes, count, rule="gumbel", simulations=left, settings=settings, **given)
    found = search.run(s, oracle)
    again = set()
    for env in range(count):
        drawn, lead = position(s, env)
        want = worth(drawn, lead, margin)
        legal = [*want]
        assert found.visits[env, legal].tolist() == [1] * left
        assert found.q[env, legal].tolist() == [*want.values()]
        assert want[int(found.action[env])] == max(want.values())
        for line in legal:
            child = int(search.tree.child[env, 0, line])
            same = closed_by(drawn, line) > 0
            again.add(same)
            assert search.tree.discount[env, child] == (0 if left == 1 else 1 if same else -1)
    # A line closes a box whose other three sides are drawn; of 40 positions of four lines and more some have one.
    if moves < 3:
        assert again == {False}
    elif moves > 3:
        assert True in again


@pytest.mark.rotates
@pytest.mark.parametrize(
    ("rule", "moves", "simulations", "margin"),
    [("uct", 7, 3000, False), ("uct", 7, 3000, True), ("puct", 7, 6000, True), ("puct", 6, 10000, False)],
)
def test_searches_agree_with_an_exact_solver(rule: str, moves: int, simulations: int, margin: bool) -> None:
    """Without knowledge, in the second half of games: the best lines, and values but for what other lines cost."""
    torch = pytest.importorskip("torch")
    from gpuzoo.search import Search, Settings

    count, most = 60, 4 if margin else 1
    s = random_positions(count, moves, margin)
    settings = Settings(value_range=(-most, most), exploration=most * 2**0.5)
    given: dict[str, Any] = {"device": "cpu", "threads": 1, "settings": settings, "utility_margin": margin, **SMALL}
    search = Search(DotsAndBoxes, count, rule=rule, simulations=simulations, **given)  # type: ignore[arg-type]
    if rule == "uct":
        found = search.run(s)
    else:
        found = search.run(s, lambda seen, legal: (torch.zeros(legal.shape), torch.zeros(len(legal))))
    ends = [worth(*position(s, env), margin) for env in range(count)]
    assert len({min(x.values()) for x in ends}) > 1
    best = [max(x.values()) for x in ends]
    assert [x[int(action)] for x, action in zip(ends, found.action, strict=True)] == best
    error = np.abs(found.value.numpy() - best) / most
    assert error.mean() < 0.15
    assert error.max() < 0.4


@pytest.mark.rotates
def test_uct_beats_random_play() -> None:
    pytest.importorskip("torch")
    from gpuzoo.baselines.report.searchers import match, random_player, searcher

    board = {"num_rows": 3, "num_cols": 3}
    score = match("DotsAndBoxes-v0", searcher("uct", 200, threads=1), random_player, games=60, config=board)
    assert score.points > 0.9
