"""The exact solver of scripts/connect_four_moves.py against plain search of all lines of play."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import gpuzoo
from gpuzoo.envs.connect_four.connect_four import LINES

MASKS = [sum(1 << (7 * row + column) for row, column in line) for line in LINES]


@pytest.fixture
def strength(monkeypatch):
    """The script."""
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[1] / "scripts"), *sys.path])
    return importlib.import_module("connect_four_moves")


def dropped(taken, column):
    """The lowest free cell of a column, as a bit; 0: none."""
    return next((1 << (7 * row + column) for row in range(5, -1, -1) if not taken >> (7 * row + column) & 1), 0)


def value(own, other, column):
    """1, 0 or -1 for who drops a disc, -2 where there is no room."""
    cell = dropped(own | other, column)
    if not cell:
        return -2
    own |= cell
    if any(own & mask == mask for mask in MASKS):
        return 1
    if own | other == (1 << 42) - 1:
        return 0
    return -max(value(other, own, reply) for reply in range(7))


@pytest.mark.parametrize("discs", [32, 34, 36, 37])
def test_values_of_moves(strength, discs):
    envs = gpuzoo.Simulator(gpuzoo.get("ConnectFour-v0"), 400, device="cpu", threads=1, autoreset_mode="disabled")
    envs.reset(seed=discs)
    envs.rollout(discs)
    going = np.flatnonzero(~(envs.arrays["ended"] | envs.arrays["waiting"]))[:8]
    assert len(going) > 0
    first = envs.arrays["to_move"][going] == 0
    boards = [envs.arrays[f"discs_{k}"][going].astype(np.uint64) for k in range(2)]
    own, other = np.where(first, *boards), np.where(first, *boards[::-1])
    want = [[value(int(a), int(b), column) for column in range(7)] for a, b in zip(own, other, strict=True)]
    np.testing.assert_array_equal(strength.values_of_moves(own, other), want)
    assert {-1, 1} <= set(np.ravel(want).tolist())
