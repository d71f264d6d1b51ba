"""Checkers: rules that random play seldom meets, counts of positions, FEN, and search where a player moves twice.

Squares have PDN's numbers. Black, who begins, moves to higher ones. tests/integrations/pgx has whole games.
"""

from __future__ import annotations

import numpy as np
import pytest

from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.checkers.checkers import Checkers
from gpuzoo.envs.checkers.fen import Position, bit_of, square_at


def started(num_envs: int = 1, **options: object) -> Simulator:
    s = Simulator(Checkers, num_envs, device="cpu", autoreset_mode="disabled", threads=1, **options)
    s.reset(seed=0)
    return s


def names(s: Simulator) -> dict[str, int]:
    """The legal moves of the first env and their actions."""
    state = {name: value[0] for name, value in s.state().items()}
    actions = np.flatnonzero(s.arrays["action_mask"][0, s.arrays["to_move"][0]])
    return {s.env.move_name(s.cfg, state, int(action)): int(action) for action in actions}


def play(s: Simulator, *moves: str) -> None:
    """What the other player does is ignored."""
    for move in moves:
        assert not s.arrays["ended"].any()
        s.arrays["action"][0, :, 0] = 10**6
        s.arrays["action"][0, s.arrays["to_move"][0], 0] = names(s)[move]
        s.step()


def over(s: Simulator) -> np.ndarray:
    return (s.arrays["ended"] | s.arrays["waiting"]).astype(bool)


def fen(s: Simulator) -> str:
    return str(Position.of_state({name: value[0] for name, value in s.state().items()}, s.cfg.rows, s.cfg.columns))


def test_the_first_position() -> None:
    s = started()
    assert [*names(s)] == ["12-16", "11-16", "11-15", "10-15", "10-14", "9-14", "9-13"]
    assert fen(s) == "B:W21,22,23,24,25,26,27,28,29,30,31,32:B1,2,3,4,5,6,7,8,9,10,11,12"
    play(s, "11-15")
    assert {"21-17", "22-18", "24-20"} < {*names(s)}
    assert fen(s).endswith(":B1,2,3,4,5,6,7,8,9,10,12,15:H1")


@pytest.mark.rotates
def test_as_many_lines_of_play_as_is_known() -> None:
    """Perft of the start, depths 1 to 7, as in the published tables, where several jumps are one move."""
    state, counts = started().state(), []
    for _ in range(7):
        ends = []
        while len(state["to_move"]):
            s = started(len(state["to_move"]))
            s.set_state(state)
            envs, players, actions = s.arrays["action_mask"].nonzero()
            s = started(len(envs))
            s.set_state({name: value[envs] for name, value in state.items()})
            s.arrays["action"][np.arange(len(envs)), players, 0] = actions
            s.step()
            assert not s.arrays["ended"].any()
            after = s.state()
            np.testing.assert_array_equal(after["to_move"] == players, after["jumper"] != 0)
            ends.append({name: value[after["jumper"] == 0] for name, value in after.items()})
            state = {name: value[after["jumper"] != 0] for name, value in after.items()}
        state = {name: np.concatenate([end[name] for end in ends]) for name in state}
        counts.append(len(state["to_move"]))
    assert counts == [7, 49, 302, 1469, 7361, 36768, 179740]


#: a position, and all legal moves
LEGAL = {
    "B:W19,32:B1,15": {"15x24"},  # who can capture must
    "B:W32:B1,15": {"1-5", "1-6", "15-18", "15-19"},
    "B:W14,32:B18": {"18-22", "18-23"},  # a man does not capture backwards
    "B:W14,32:BK18": {"18x9"},
    "B:W32:BK18": {"18-14", "18-15", "18-22", "18-23"},
    "W:W18:B1": {"18-14", "18-15"},
    "B:W7,10,11,18,19,32:B2,14": {"14x23"},  # behind 7 and 10 lie others
    "B:W19,24,32:B15": {"15-18"},  # no room behind 19
    "B:W6,17,22,32:B1,13": {"1x10"},  # 22 is taken
    "B:W6,9,32:B1,2,5": {"1x10", "5x14"},  # any capture
    "W:W13:B9,10,1": {"13x6"},
    "W:W12,28:B8,3": {"28-24"},  # over 8 lies a man
    "W:WK4,K29:B8,25": {"4x11", "29x22"},  # from the corners
    "B:W12,20:BK8": {"8-3", "8-4", "8-11"},  # at the edge there is nothing to jump to
}


@pytest.mark.parametrize("position", LEGAL)
def test_legal_moves(position: str) -> None:
    s = started(fen=position)
    assert {*names(s)} == LEGAL[position]
    assert not s.arrays["action_mask"][0, 1 - s.arrays["to_move"][0]].any()


def test_a_piece_jumps_on() -> None:
    s = started(fen="B:W6,14,15,18,32:B1,11,12")
    assert {*names(s)} == {"1x10"}
    play(s, "1x10")
    assert s.arrays["to_move"][0] == 0
    assert {*names(s)} == {"10x17", "10x19"}  # not 11 and 12, nor a step
    assert fen(s) == "B:W14,15,18,32:B10,11,12:J10"
    seen = s.arrays["observation"][0].reshape(2, 8, 8, 8)[..., 4]
    assert [*np.flatnonzero(seen[0])] == [bit_of(10)]
    assert [*np.flatnonzero(seen[1])] == [63 - bit_of(10)]
    again = started(fen=fen(s))
    assert names(again) == names(s)
    play(s, "10x19")
    assert s.arrays["to_move"][0] == 1
    assert fen(s) == "W:W14,18,32:B11,12,19"


def test_the_longer_capture_is_not_forced() -> None:
    s = started(fen="B:W6,14,19,32:B1,15")
    assert {*names(s)} == {"1x10", "15x24"}
    play(s, "15x24")
    assert s.arrays["to_move"][0] == 1


def test_a_man_that_is_crowned_stops() -> None:
    s = started(fen="B:W8,26,27:B22")
    play(s, "22x31")
    assert fen(s) == "W:W8,27:BK31"
    s = started(fen="B:W8,26,27:BK22")
    play(s, "22x31")
    assert fen(s) == "B:W8,27:BK31:J31"
    play(s, "31x24")
    assert fen(s) == "W:W8:BK24"


def test_a_king_jumps_in_a_circle() -> None:
    s = started(fen="B:W12,17,18,25,26:BK14")
    assert {*names(s)} == {"14x21", "14x23"}
    play(s, "14x21", "21x30", "30x23", "23x14")
    assert fen(s) == "W:W12:BK14"


def test_a_man_becomes_a_king_by_a_step() -> None:
    s = started(fen="W:W5:B28")
    play(s, "5-1")
    assert fen(s) == "B:WK1:B28:H1"


def test_a_captured_king_is_gone() -> None:
    s = started(fen="B:WK19,32:B15")
    play(s, "15x24")
    assert fen(s) == "W:W32:B24"
    assert s.arrays["kings"][0] == 0


def test_who_cannot_move_has_lost() -> None:
    for position, move, rewards in (
        ("B:W12:B3,4", "4-8", [1, -1]),  # blocked
        ("B:W19:B15", "15x24", [1, -1]),  # nothing left
        ("W:W18:B15", "18x11", [-1, 1]),
    ):
        s = started(fen=position)
        play(s, move)
        assert s.arrays["ended"][0]
        np.testing.assert_array_equal(s.arrays["reward"][0], rewards)


def test_draws() -> None:
    s = started(fen="B:WK32:BK1:H38")
    play(s, "1-5")
    assert not s.arrays["ended"][0]
    play(s, "32-28")
    assert s.arrays["ended"][0]
    np.testing.assert_array_equal(s.arrays["reward"][0], [0, 0])
    s = started(fen="B:W12:B3,4:H39")  # the last move blocks white, but it is too late
    play(s, "4-8")
    assert s.arrays["ended"][0]
    np.testing.assert_array_equal(s.arrays["reward"][0], [0, 0])
    s = started(fen="B:W19,32:B15:H39")
    play(s, "15x24")
    assert not s.arrays["ended"][0]
    assert s.arrays["quiet_moves"][0] == 0
    s = started(fen="B:WK32:BK1:H3", most_quiet_moves=4)
    assert [*s.arrays["observation"][0, 0, 5:8]] == [1, 1, 1]
    play(s, "1-5")
    assert s.arrays["ended"][0]


@pytest.mark.parametrize("quiet", [9, 10, 19, 20, 29, 30])
def test_how_near_a_draw_is(quiet: int) -> None:
    s = started(fen=f"W:WK32:BK1:H{quiet}")
    seen = s.arrays["observation"][0].reshape(2, 64, 8)[..., 5:]
    assert (seen == [quiet >= 10, quiet >= 20, quiet >= 30]).all()


def test_illegal_actions() -> None:
    free, bound = names(started(fen="B:W32:B1,15")), "B:W19,32:B1,15"
    white = names(started(fen="W:W19,32:B1,15"))
    for player, action in (
        (0, free["1-5"]),
        (0, free["15-18"]),
        (0, -1),
        (0, 128),
        (0, 10**6),
        (1, white["19x10"] ^ 1),
    ):
        s = started(fen=bound.replace("B:", "BW"[player] + ":", 1))
        before = fen(s)
        s.arrays["action"][0, :, 0] = action
        s.step()
        assert s.arrays["ended"][0]
        np.testing.assert_array_equal(s.arrays["reward"][0], [-1, 0] if player == 0 else [0, -1])
        assert fen(s) == before


def turned(words: np.ndarray) -> np.ndarray:
    """Sets of 64 cells as seen from the other side."""
    return np.array([int(f"{int(word):064b}"[::-1], 2) for word in words.ravel()], np.uint64).reshape(words.shape)


def test_both_players_see_the_same() -> None:
    """Positions of random games, and the same with the colours exchanged and the board turned."""
    s, rng, n = started(200), np.random.default_rng(0), 200
    for _ in range(60):
        state = s.state()
        other = {
            **state,
            "pieces_0": turned(state["pieces_1"]),
            "pieces_1": turned(state["pieces_0"]),
            "kings": turned(state["kings"]),
            "jumper": turned(state["jumper"]),
            "legal": turned(state["legal"])[:, ::-1],
            "to_move": 1 - state["to_move"],
            "last_move": np.where(state["last_move"] < 0, -1, 127 - state["last_move"]),
        }
        t = started(n)
        t.set_state(other)
        for name in ("observation", "action_mask"):
            np.testing.assert_array_equal(t.arrays[name], s.arrays[name][:, ::-1])
        mask = s.arrays["action_mask"].sum(1)
        actions = (rng.random(mask.shape) * mask).argmax(1)
        going = ~over(s)
        for sim in (s, t):
            sim.arrays["action"][..., 0] = actions[:, None]
            sim.step()
        np.testing.assert_array_equal(t.arrays["reward"][going], s.arrays["reward"][going][:, ::-1])
        np.testing.assert_array_equal(t.arrays["ended"][going], s.arrays["ended"][going])
        both = ~over(s)
        np.testing.assert_array_equal(t.state()["pieces_0"][both], turned(s.state()["pieces_1"])[both])
    assert 0 < both.sum() < n


@pytest.mark.rotates
def test_small_boards() -> None:
    s = started(rows=6, columns=6)
    assert fen(s) == "B:W13,14,15,16,17,18:B1,2,3,4,5,6"
    assert {*names(s)} == {"4-7", "5-7", "5-8", "6-8", "6-9"}
    s = started(rows=6, columns=6, fen="B:W8,14,18:B5")
    play(s, "5x12", "12x17")
    assert fen(s) == "W:W18:BK17"
    s = started(rows=4, columns=4)
    assert fen(s) == "B:W7,8:B1,2"
    play(s, "1-3", "7-5")
    assert fen(s) == "B:W5,8:B2,3:H2"
    assert fen(started(rows=16, columns=4)).startswith("B:W27,28,29,30,31,32:")
    for columns, rows in ((8, 8), (6, 8), (8, 6), (4, 4), (6, 10)):
        bits = [bit_of(k, rows, columns) for k in range(1, rows * columns // 2 + 1)]
        assert all((bit // columns + bit % columns) % 2 == 1 for bit in bits)
        assert [square_at(bit, rows, columns) for bit in bits] == [*range(1, len(bits) + 1)]


@pytest.mark.parametrize(("rows", "columns"), [(8, 8), (6, 6), (4, 16)])
def test_who_can_move(rows: int, columns: int) -> None:
    """As the rules say in games of random moves, whose last positions often leave nothing to move."""
    s = started(64, rows=rows, columns=columns, most_quiet_moves=200)
    ends = 0
    while not over(s).all():
        live = ~over(s)
        s.random_actions()
        s.step()
        for k in np.flatnonzero(live):
            position = Position.of_state({name: value[k] for name, value in s.state().items()}, rows, columns)
            legal = bool(s.arrays["legal"][k].any())
            assert position.can_move(rows, columns) == legal
            ends += not legal
    assert ends > 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": 7}, "rows must be even, not 7"),
        ({"columns": 5}, "columns must be even, not 5"),
        ({"rows": 10}, r"at most 64 cells, not 10 \* 8"),
        ({"fen": "B:WK32:BK1:H40"}, "is a draw"),
        ({"fen": "hello"}, "must be like"),
        ({"fen": "B:W1"}, "must be like"),
        ({"fen": "B:B1:B2"}, "must be like"),
        ({"fen": "B:W32:B1,33"}, "'33' is not a square from 1 to 32"),
        ({"fen": "B:W32:B1,,2"}, "'' is not a square"),
        ({"fen": "B:W32:B4-1"}, "'4-1' is not a square"),
        ({"fen": "B:W32:B1,32"}, "two pieces on square 32"),
        ({"fen": "B:W32:B29"}, "a man on the last row"),
        ({"fen": "B:W4:B5"}, "a man on the last row"),
        ({"fen": "B:W32:B1:X3"}, "'X3' is neither H nor J"),
        ({"fen": "B:W32:B1:J32"}, "no piece on square 32"),
        ({"fen": "B:W32:B1:J99"}, "no piece on square 99"),
        ({"fen": "B:W31:B1", "rows": 6, "columns": 6}, "'31' is not a square from 1 to 18"),
        ({"fen": "B:W27,28,31,32:B24"}, "leaves the player to move without a move"),
        ({"fen": "B:W32:B1,12:J1"}, "leaves the player to move without a move"),
    ],
)
def test_what_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        started(**options)


def test_fen_as_others_write_it() -> None:
    want = "W:W18,24,K27:B5,6,7,8,K32"
    for text in (want, "W:B5-8,K32:WK27,18,24.", " W:WK27,24,18:BK32,8,5-7:H0 "):
        assert str(Position.parse(text)) == want
    assert str(Position.parse("B:W21-32:B1-12")) == str(Position.start())
    assert fen(started(fen=want)) == want


def test_where_a_person_presses() -> None:
    s = started(fen="B:W19,32:B1,15")
    state = {name: value[0] for name, value in s.state().items()}
    places = [(bit_of(k) % 8 + 0.5, bit_of(k) // 8 + 0.5) for k in (15, 24)]
    assert s.env.presses(s.cfg, state, names(s)["15x24"]) == places
    s = started(fen="W:W19,32:B1")
    state = {name: value[0] for name, value in s.state().items()}
    places = [(bit_of(k) % 8 + 0.5, bit_of(k) // 8 + 0.5) for k in (32, 28)]
    assert s.env.presses(s.cfg, state, names(s)["32-28"]) == places


# ---- search ----


def searched(position: str, rule: str, simulations: int = 60):
    """The result of a search from a position, its tree, and the legal moves."""
    torch = pytest.importorskip("torch")
    from gpuzoo.search import Search, Settings

    s = started(fen=position)
    options = {"settings": Settings(considered=100, gumbel_scale=0.0), "fen": position}
    search = Search("Checkers-v0", 1, rule=rule, simulations=simulations, device="cpu", threads=1, **options)

    def uniform(observation, legal):
        return torch.zeros(legal.shape), torch.zeros(len(legal))

    return search.run(s, None if rule == "uct" else uniform), search.tree, names(s)


@pytest.mark.rotates
@pytest.mark.parametrize("rule", ["puct", "gumbel", "uct"])
def test_search_knows_who_moves_again(rule: str) -> None:
    result, tree, moves = searched("B:W6,15:B1", rule)
    assert float(result.q[0, moves["1x10"]]) > 0.9  # 10x19 follows, and wins
    assert float(tree.discount[0, 1]) == 1.0
    result, tree, moves = searched("W:W32:B18,27", rule)  # 32x23 and 23x14: the same for white
    assert float(result.q[0, moves["32x23"]]) > 0.9
    assert float(tree.discount[0, 1]) == 1.0
    result, tree, moves = searched("B:W32:B1", rule, 200)
    signs = {float(tree.discount[0, int(node)]) for node in tree.child[0, 0] if node > 0}
    assert signs == {-1.0}


@pytest.mark.rotates
def test_search_beats_random_play() -> None:
    pytest.importorskip("torch")
    from gpuzoo.search import Search

    games = 24
    s = started(games)
    search = Search("Checkers-v0", games, rule="uct", simulations=40, device="cpu", threads=1)
    seat = np.arange(games) % 2
    for _ in range(300):
        if over(s).all():
            break
        found = search.run(s).action.numpy()
        s.random_actions()
        rows = np.flatnonzero(s.arrays["to_move"] == seat)
        s.arrays["action"][rows, seat[rows], 0] = found[rows]
        s.step()
    assert over(s).all()
    won = s.arrays["final_return"][np.arange(games), seat]
    assert won.mean() > 0.8
    assert (won >= 0).all()
