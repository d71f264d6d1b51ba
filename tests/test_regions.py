"""Regions that give something to whole groups of agents: scratch, scatters into cells, a random order."""

from __future__ import annotations

import itertools
import platform

import numpy as np
import pytest
from draws import bits
from toys.bitboard import Bitboard, ByteBitboard
from toys.orchard import Orchard
from toys.tally import Tally
from toys.views import BEFORE, BESIDE, UNWRITTEN, ByteViewsToy, ViewsToy
from toys.window import BITS, Window

from gpuzoo import Simulator
from gpuzoo.core.backend_cpu import CpuBackend
from gpuzoo.core.codegen import program
from gpuzoo.core.dialect import DialectError
from gpuzoo.testing.tools import assert_same, read

VOTERS, CELLS = 100, 7


def backend(kind: str) -> CpuBackend:
    flags = {
        "backward": ("-DGZ_LANE_ORDER=1", "-Og"),
        "shuffled": ("-DGZ_LANE_ORDER=2", "-Og"),
        "simt": ("-Og",),
        "old": ("-mno-bmi2",),
        "oldest": ("-mno-ssse3", "-O1"),
        "avx2": ("-mno-avx512f", "-O1"),
        "sse": ("-mno-avx", "-O1"),
    }
    return CpuBackend(simt=kind == "simt", flags=flags.get(kind, ()))


# ---- scatters ----


@pytest.mark.one_case
@pytest.mark.parametrize(
    ("kind", "lanes"),
    [("cpu", 8), ("cpu", 1), ("backward", 8), ("shuffled", 8), ("simt", 8), ("simt", 64), ("simt", 1)],
)
def test_scatters(kind, lanes):
    """All operations on all types give what NumPy's do, though many agents name the same cell."""
    sim = Simulator(Tally, 3, backend=backend(kind), lanes=lanes)
    sim.reset(seed=5)
    for _ in range(2):
        words = np.stack([bits(sim, 0, agent=a) for a in range(VOTERS)], 1)
        sim.random_actions()
        sim.step()
        for env, who in itertools.product(range(3), ("int", "word", "long")):
            kind_of = {"int": np.int32, "word": np.uint32, "long": np.uint64}[who]
            votes = words[env].astype(np.uint32).astype(kind_of)
            if who == "long":
                votes = words[env] << np.uint64(32) | np.arange(VOTERS, dtype=np.uint64)
            one = np.ones(VOTERS, kind_of) << (np.arange(VOTERS) % {"int": 31, "word": 32, "long": 64}[who]).astype(
                kind_of
            )
            start = {"add": 0, "min": np.iinfo(kind_of).max, "max": 0, "any": 0}
            ways = {"add": np.add, "min": np.minimum, "max": np.maximum, "any": np.bitwise_or}
            for way, function in ways.items():
                want = np.full(CELLS, start[way], kind_of)
                with np.errstate(over="ignore"):
                    function.at(want, sim.arrays["action"][env, :, 0], one if way == "any" else votes)
                assert_same(f"env {env}", {f"{way}_{who}": want}, {f"{way}_{who}": sim.arrays[f"{way}_{who}"][env]})


# ---- bits ----


X86 = platform.machine() in ("x86_64", "AMD64")
BITBOARDS = [
    *({"width": width} for width in (1, 7, 8, 36, 63, 64, 65, 81, 128, 200)),
    *({"width": width, "rows": 37} for width in (1, 12, 17, 63, 64, 65, 119, 127, 136)),
    *({"width": width, "rows": rows} for width, rows in ((71, 4), (71, 16), (71, 20), (12, 5), (3, 6), (65, 7))),
    *({"width": width, "rows": rows, "at_once": True} for width, rows in ((71, 4), (12, 5), (65, 37), (200, 9))),
    {"width": 119, "rows": 37, "gap": 1},
    *({"width": 71, "rows": rows, "gap": 3, "together": together} for rows, together in ((4, 2), (36, 18), (6, 6))),
]


@pytest.mark.one_case
@pytest.mark.parametrize("kind", ["cpu", "old", *["avx2", "sse"] * X86, "shuffled", "simt"])
@pytest.mark.parametrize("config", BITBOARDS)
@pytest.mark.parametrize("toy", [Bitboard, ByteBitboard])
def test_bits(toy, kind, config):
    """Rows of numbers are the bits of their words, times a value, and a set is where its condition holds."""
    width, rows = config["width"], config.get("rows", 3)
    values = np.array([[2], [3], [4]] if rows == 3 else [[1]])
    sim = Simulator(toy, 5, backend=backend(kind), **config)
    sim.reset(seed=3)
    for _ in range(3):
        sim.random_actions()
        sim.step()
        words = np.ascontiguousarray(sim.arrays["word"]).reshape(5, rows, -1)
        want = np.unpackbits(words.view(np.uint8), axis=2, bitorder="little")[..., :width]
        gap = [(0, 0), (0, 0), (0, config.get("gap", 0))]
        shown = (want * values).reshape(5, rows // config.get("together", 1), -1)
        assert np.array_equal(sim.arrays["observation"].reshape(5, len(shown[0]), -1), np.pad(shown, gap))
        assert np.array_equal(sim.arrays["action_mask"].reshape(want.shape), 1 - want)
        below = np.uint64(2 ** min(width, 64) - 1)
        assert np.array_equal(sim.arrays["again"].reshape(5, rows), words[..., 0] & below)


WINDOWS = [
    {},
    *({"height": height, "width": width} for height, width in ((3, 3), (3, 4), (9, 3), (16, 16))),
    *({"rows": rows, "columns": columns} for rows, columns in ((1, 1), (1, 5), (2, 4), (4, 2), (3, 2), (2, 3))),
    {"rows": 9, "columns": 1, "height": 9, "width": 1},
]


@pytest.mark.one_case
@pytest.mark.parametrize("kind", ["cpu", "debug", *["old", "oldest", "avx2"] * X86, "shuffled", "simt"])
@pytest.mark.parametrize("config", WINDOWS)
def test_window_bits(kind, config):
    """The bits of a window are the lowest ones of the entries that its bytes choose, in reading order."""
    on = {"device": "cpu", "debug": True} if kind == "debug" else {"backend": backend(kind)}
    lanes = {"lanes": 1} if kind == "simt" and config == {} else {}
    sim = Simulator(Window, 5, **on, **lanes, **config)
    shown = sim.program.tables["shown"].astype(np.uint64) & np.uint64(2**BITS - 1)
    sim.reset(seed=3)
    for _ in range(3):
        sim.step()
        entries = shown[sim.arrays["map"] & 31]
        windows = np.lib.stride_tricks.sliding_window_view(entries, (sim.cfg.rows, sim.cfg.columns), axis=(1, 2))
        windows = windows.reshape(*sim.arrays["seen"].shape, -1)
        places = BITS * np.arange(windows.shape[-1], dtype=np.uint64)
        assert np.array_equal(sim.arrays["seen"], np.bitwise_or.reduce(windows << places, axis=-1))


VIEWS = [
    {},
    *({"num_agents": 18, "side": side} for side in (1, 2, 3, 4, 7, 8, 9, 16, 17, 30)),
    {"num_agents": 1},
    *({"channels": channels} for channels in (1, 2, 3, 8, 9, 17)),
    {"channels": 3, "numbers": 7, "height": 13, "width": 13},
    {"side": 9, "channels": 7, "numbers": 0, "height": 9, "width": 9},
    *({"side": side, "height": side, "width": side} for side in (3, 6, 8)),
]


@pytest.mark.one_case
@pytest.mark.parametrize("kind", ["cpu", "debug", *["avx2", "sse", "oldest"] * X86, "shuffled", "simt"])
@pytest.mark.parametrize("config", VIEWS)
@pytest.mark.parametrize("toy", [ViewsToy, ByteViewsToy])
def test_views(toy, kind, config):
    """A channel shows a kind, or its number, in the cells of a window that are visible, and nothing else is written."""
    on = {"device": "cpu", "debug": True} if kind == "debug" else {"backend": backend(kind)}
    sim = Simulator(toy, 3, **on, **config)
    cfg, tables = sim.cfg, sim.program.tables
    shows, visible = tables["shows"].reshape(-1, cfg.channels), tables["visible"].reshape(-1, cfg.side**2)
    numbered = (cfg.numbers >> np.arange(cfg.channels) & 1).astype(bool)
    sim.reset(seed=3)
    for _ in range(3):
        sim.step()
        kinds, numbers, n = sim.arrays["kind"], sim.arrays["number"], cfg.side
        for env, a in itertools.product(range(3), range(cfg.num_agents)):
            lens, (y, x) = sim.arrays["lens"][env, a], divmod(int(sim.arrays["first"][env, a]), cfg.width)
            here = (env, slice(y, y + n), slice(x, x + n))
            is_shown = (kinds[here].reshape(-1, 1) == shows[lens]) & (visible[lens].reshape(-1, 1) != 0)
            want = np.where(is_shown, np.where(numbered, numbers[here].reshape(-1, 1), 1), 0).astype(toy.dtype).ravel()
            want = np.pad(want, (BEFORE, BESIDE - BEFORE), constant_values=UNWRITTEN)
            assert np.array_equal(sim.arrays["observation"][env, a], want)


# ---- a random order ----


def order(sim: Simulator, n: int) -> np.ndarray:
    """Who acts when in the next step, (envs, n): in ascending order of the documented key, and of the index."""
    return np.argsort(np.stack([bits(sim, 2, agent=a) for a in range(n)], 1), axis=1, kind="stable")


@pytest.mark.one_case
@pytest.mark.parametrize(("kind", "n"), [("cpu", 1), ("cpu", VOTERS), ("cpu", 1000), ("simt", VOTERS)])
def test_order_is_that_of_the_documented_keys(kind, n):
    sim = Simulator(Tally, 5, backend=backend(kind), num_voters=n)
    sim.reset(seed=11)
    for _ in range(3):
        want = order(sim, n)
        sim.step()
        assert np.array_equal(np.argsort(sim.arrays["turn_of"], axis=1), want)


@pytest.mark.one_case
@pytest.mark.parametrize("kind", ["cpu", "shuffled", "simt"])
@pytest.mark.parametrize("every", [2, 7, VOTERS, VOTERS + 1])
def test_order_of_those_who_take_part(kind, every):
    """The others have no turn, and those who take part come in the order of their keys."""
    sim = Simulator(Tally, 5, backend=backend(kind), every=every)
    sim.reset(seed=11)
    there = np.arange(VOTERS) % every == every - 1
    for _ in range(3):
        want = np.stack([row[there[row]] for row in order(sim, VOTERS)])
        sim.step()
        turns = sim.arrays["turn_of"]
        assert (turns[:, ~there] == -1).all()
        assert np.array_equal(np.flatnonzero(there)[np.argsort(turns[:, there], axis=1)], want)


def test_every_order_is_equally_likely():
    """The chi-square statistic of 24 orders over 40,000 draws; 23 degrees of freedom, so 50 is beyond p = 0.001."""
    sim = Simulator(Tally, 4000, device="cpu", num_voters=4)
    sim.reset(seed=0)
    seen = np.zeros(256)
    for _ in range(10):
        sim.step()
        seen += np.bincount(sim.arrays["turn_of"] @ [64, 16, 4, 1], minlength=256)
    found = seen[seen > 0]
    expected = 40_000 / 24
    assert len(found) == 24
    assert ((found - expected) ** 2 / expected).sum() < 50


@pytest.mark.one_case
@pytest.mark.parametrize("kind", ["cpu", "simt"])
def test_equal_keys_go_by_the_index(kind):
    sim = Simulator(Tally, 5, backend=backend(kind), kinds=3)
    sim.reset(seed=3)
    sim.step()
    seen = np.argsort(sim.arrays["turn_of"], axis=1)
    sim.reset(seed=3)
    keys = np.stack([bits(sim, 2, agent=a) % np.uint64(3) for a in range(VOTERS)], 1)
    assert np.array_equal(seen, np.argsort(keys, axis=1, kind="stable"))


def test_the_number_in_an_order_must_be_known(tmp_path):
    rules = Tally.source().read_text()
    old = "in_random_order(e, AGENTS, 2"
    assert old in rules
    for number, known in (("e.t", False), ("VOTERS", True), ("e.cfg.num_voters", True), ("3", True)):
        path = tmp_path / f"{len(number)}.cuh"
        path.write_text(rules.replace(old, f"in_random_order(e, {number}, 2"))
        game = type("Wrong", (Tally,), {"source": classmethod(lambda cls, path=path: path)})
        if known:
            assert program(game(), game.Config()).scratch["random_order"].shape == (5, 3 if number == "3" else VOTERS)
            continue
        with pytest.raises(
            DialectError, match=r"\.cuh:\d+: in_random_order\(e, e\.t, \.\.\.\): give AGENTS, the size of"
        ):
            program(game(), game.Config())


# ---- scratch ----


def test_scratch_is_no_state():
    sim = Simulator(Orchard, 4, device="cpu")
    sim.reset(seed=0)
    scratch = {"picker_at", "hit", "around"}
    assert scratch <= set(sim.program.scratch)
    for names in (sim.state(), sim.snapshot().arrays, sim.program.fields, read(sim)):
        assert not scratch & set(names)
    with pytest.raises(KeyError, match="no field 'hit'"):
        sim.set_state({"hit": np.zeros((4, 128), np.uint32)})


def test_scratch_takes_no_memory_per_env_on_a_cpu():
    def grows(**where):
        return Simulator(Orchard, 2, **where).nbytes - Simulator(Orchard, 1, **where).nbytes

    cpu, simt = grows(device="cpu"), grows(backend=backend("simt"))
    assert simt - cpu == 4 * (3 * 128 + 5 * 6), "three arrays of 128 cells, and five of the order of 6 pickers"
