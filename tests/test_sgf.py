"""Records of Go in SGF."""

from __future__ import annotations

import numpy as np
import pytest

import gpuzoo
from gpuzoo.envs.go.sgf import Record

GAME = r"""(;GM[1]FF[4]CA[UTF-8]AP[Somebody's Program:1.0]
SZ[9]KM[6.5]PB[A \] B]PW[C\\D]RE[W+Resign]C[a comment; with (parentheses)]
;B[ee]C[good \] move];W[ce](;B[gc];W[];B[tt])(;B[aa];W[bb]))"""


def test_the_main_line():
    record = Record.parse(GAME)
    assert record == Record(9, 6.5, (40, 38, 24, 81, 81), "A ] B", "C\\D", "W+Resign")
    assert Record.parse(str(record)) == record
    assert str(Record(9, 7.5, (0, 80))) == "(;FF[4]GM[1]CA[UTF-8]SZ[9]KM[7.5];B[aa];W[ii])"


def test_long_names_of_older_versions():
    assert Record.parse("(;GaMe[1]SiZe[5];B[aa];W[eb])") == Record(5, 0.0, (0, 9))


@pytest.mark.one_case
@pytest.mark.parametrize("size", [5, 19])
def test_whole_games(size):
    """Games are the same after they were written and read."""
    envs = gpuzoo.Simulator(gpuzoo.get("Go-v0"), 4, device="cpu", size=size, autoreset_mode="disabled")
    envs.reset(seed=0)
    moves: list[list[int]] = [[] for _ in range(4)]
    for _ in range(60):
        envs.random_actions()
        for k in np.flatnonzero(~(envs.arrays["ended"] | envs.arrays["waiting"])):
            moves[k].append(int(envs.arrays["action"][k, envs.arrays["to_move"][k], 0]))
        envs.step()
    records = [Record.parse(str(Record(size, 7.5, tuple(made)))) for made in moves]
    again = gpuzoo.Simulator(gpuzoo.get("Go-v0"), 4, device="cpu", size=size, autoreset_mode="disabled")
    again.reset(seed=1)
    for t in range(max(len(record.moves) for record in records)):
        some = [k for k in range(4) if t < len(records[k].moves)]
        again.arrays["action"][some] = np.array([records[k].moves[t] for k in some]).reshape(-1, 1, 1)
        again.step(some)
    for name in ("board", "position", "prisoners", "final_return"):
        np.testing.assert_array_equal(again.arrays[name], envs.arrays[name])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", r"begins with '\(;'"),
        ("(;GM[2]SZ[9])", r"GM\[1\], not GM\[2\]"),
        ("(;SZ[40])", "2 to 25"),
        ("(;SZ[9:9])", "must be a number"),
        ("(;SZ[9]AB[aa][bb])", "AB has stones that nobody played"),
        ("(;SZ[9];W[aa])", "move 1 of an SGF record is W's"),
        ("(;SZ[9];B[zz])", "no point of a board of 9"),
        ("(;SZ[9];B[aa]", "ends within its first line"),
        ("(;SZ[9];B[aa", "ends within its first line"),
        ("(;SZ[9];B[aa](", "ends within its first line"),
        ("(;SZ[9];B aa)", "is no property"),
    ],
)
def test_what_is_no_record(text, message):
    with pytest.raises(ValueError, match=message):
        Record.parse(text)
