"""Packed rules: the bits of ordinary ones, in any width and order; what they may say; how they are compiled."""

from __future__ import annotations

import ctypes
import platform
import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from batches import advance
from toys.rafts import OneRafts, Rafts
from toys.spinner import OneSpinner, Spinner
from toys.swings import OneSwings, Swings

import gpuzoo
from gpuzoo import Simulator, make_pool
from gpuzoo.core import nvrtc
from gpuzoo.core.backend_cpu import CpuBackend, _CpuKernels, compile_host
from gpuzoo.core.codegen import program
from gpuzoo.core.definition import Field
from gpuzoo.core.dialect import DialectError, inline_includes
from gpuzoo.core.headers import DEVICE
from gpuzoo.testing import check_env
from gpuzoo.testing.tools import assert_same, read
from gpuzoo.tools.doctor_game import examine

TWINS = [(Swings, OneSwings), (Rafts, OneRafts), (Spinner, OneSpinner)]
ENVS = 37  # no multiple of any width


def backend(kind: str) -> CpuBackend:
    """A width in envs, or another way to run the same rules; less optimised, which must make no difference."""
    flags = {
        "native": (),
        "shuffled": ("-DGZ_LANE_ORDER=2", "-O1"),
        "avx2": ("-mno-avx512f", "-O1"),
        "simt": ("-O1",),
    }
    return CpuBackend(simt=kind == "simt", flags=flags.get(kind, (f"-DGZ_PACK_WIDTH={kind}", "-O1")))


def played(game, mode: str, steps: int, **options):
    """All arrays after each of some steps, in which all happens that may happen to a batch."""
    own = {"spring": np.linspace(1, 3, ENVS)} if issubclass(game, Swings) else {}
    sim = Simulator(game, ENVS, autoreset_mode=mode, max_episode_steps=7, **own, **options)
    sim.reset(seed=3)
    chance = np.random.default_rng(0)
    for step in range(steps):
        sim.random_actions()
        if sim.arrays["action"].dtype == np.float32:
            sim.arrays["action"][chance.random(ENVS) < 0.1] = np.nan
        else:
            sim.arrays["action"][chance.random(ENVS) < 0.1] = 17
        advance(sim, step, chance)
        if step % 9 == 8 and issubclass(game, Swings):
            sim.set_state({"angle": chance.normal(size=(3, sim.cfg.swings))}, envs=[4, 9, 17])
        yield read(sim) | ({} if sim.layout.state_space is None else {"told": sim.global_state().copy()})


X86 = platform.machine() in ("x86_64", "AMD64")


WIDTHS = [pytest.param(width, marks=pytest.mark.rotates) for width in ("1", "4", "8", "16")]


@pytest.mark.one_case
@pytest.mark.parametrize("kind", ["native", "shuffled", "simt", *["avx2"] * X86, *WIDTHS])
@pytest.mark.parametrize(("toy", "twin"), TWINS)
def test_bits_are_those_of_ordinary_rules(toy, twin, kind):
    """In each mode, with some envs stepped, reset and written, and actions that are no numbers."""
    for mode in ("next_step", "same_step", "disabled"):
        steps = 15 if kind == "simt" else 45
        pair = played(twin, mode, steps, device="cpu"), played(toy, mode, steps, backend=backend(kind))
        for step, (one, packed) in enumerate(zip(*pair, strict=True)):
            assert_same(f"ordinary and packed rules, {mode}, step {step}", one, packed)
    assert one["final_length"].any(), "no episode ended"


@pytest.mark.one_case
@pytest.mark.parametrize(("toy", "twin"), TWINS[:2])
def test_agents_that_were_written_dead_stay_so(toy, twin):
    """`set_state` may end an agent's part; the flags are those of ordinary rules in their general form.

    The spinner's twin has the branchless form, in which agents begin and end together, so it does not ask who is alive.
    """
    found = []
    for which in (toy, twin):
        sim = Simulator(which, 3, device="cpu")
        sim.reset(seed=0)
        alive = sim.state()["alive"]
        alive[1, 0] = False
        sim.set_state({"alive": alive})
        for _ in range(3):
            sim.random_actions()
            sim.step()
        found.append(read(sim))
    assert_same("ordinary and packed rules", *found)


def test_the_game_of_the_page_is_a_tested_one():
    page = (Path(__file__).parents[1] / "docs" / "dialect.md").read_text()
    declaration = Path(__file__).with_name("toys") / "spinner.py"
    shown = re.search(r"from __future__.*(?=\n\n\nclass OneSpinner)", declaration.read_text(), re.DOTALL)
    assert f"\n\n{shown[0]}\n```" in page
    assert f"```cpp\n{Spinner.source().read_text()}```" in page


@pytest.mark.one_case
@pytest.mark.parametrize("toy", [Swings, Rafts])
def test_it_keeps_the_promises(toy):
    check_env(toy)


def test_drawn_parameters():
    drawn = gpuzoo.Uniform(1.0, 3.0)
    sims = [Simulator(game, 21, backend=CpuBackend(flags=("-O1",)), spring=drawn) for game in (Swings, OneSwings)]
    for sim in sims:
        sim.reset(seed=1)
        sim.rollout(60)
    assert_same("ordinary and packed rules", *map(read, sims))
    assert_same("parameters", *(sim.params for sim in sims))


def test_state_has_its_documented_shape():
    sim = Simulator(Swings, 5, device="cpu")
    sim.reset(seed=0)
    assert {name: x.shape for name, x in sim.state().items()} == {
        **dict.fromkeys(("angle", "speed", "bent"), (5, 3)),
        **dict.fromkeys(("energy", "gusts", "windy", "elapsed_steps"), (5,)),
        "alive": (5, 1),
    }


def test_a_lane_with_no_number_harms_nobody():
    """NaN in one env leaves the bits of its neighbours."""
    clean, harmed = (Simulator(Swings, 16, device="cpu") for _ in range(2))
    for sim in (clean, harmed):
        sim.reset(seed=2)
    harmed.set_state({"angle": np.full((1, 3), np.nan), "speed": np.full((1, 3), np.inf)}, envs=7)
    for sim in (clean, harmed):
        sim.rollout(100)
    others = np.arange(16) != 7
    assert_same("neighbours", *({k: v[others] for k, v in read(sim).items()} for sim in (clean, harmed)))


# ---- other ways to run it ----


@pytest.mark.skipif(sys.platform != "linux", reason="NVIDIA has no NVRTC for other systems' CPUs")
def test_a_gpu_has_one_env_per_thread():
    code = program(Swings(), Swings.Config()).code
    _, log = nvrtc.compile_cubin(code, "Swings", "sm_90", (*nvrtc.OPTIONS, "--ptxas-options=-v"))
    frames = re.findall(r"Function properties for gz_(\w+)\nptxas[ .]*(\d+) bytes stack frame", log)
    assert dict(frames) == dict.fromkeys(("reset", "step", "rollout", "act", "state"), "0")


def test_an_index_out_of_range_is_named(tmp_path):
    game, line = changed(tmp_path, "out[3 * k] = s;", "out[3 * k] = s; e.bent[k + 1] = e.bent[k];")
    sim = Simulator(game, 20, device="cpu", debug=True)
    with pytest.raises(IndexError, match=rf"changed\.cuh:{line}: e\.bent\[3\] is out of range: .*; env 0, step 0"):
        sim.reset(seed=0)


def test_doctor_says_how_many_envs_a_register_holds():
    report = examine(Rafts())
    longest = next((n for n, name in ((16, "AVX-512"), (8, "AVX2"), (4, "NEON")) if name in report.features), 1)
    assert report.pack_width == longest
    assert report.vectorised == (longest > 1)
    assert dict(report.lines())["Vectorised on a CPU"].startswith(f"packed rules, {longest} env")


def test_a_pool_gives_whole_packs_to_the_rules(monkeypatch):
    """Though a first run tells that an env alone takes long: a pack takes no longer."""
    runs = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_int)
    def slow(store, envs, count, threads):
        runs.append(count)
        time.sleep(1e-4)

    width = Simulator(Swings, 1, device="cpu")._kernels.pack_width
    monkeypatch.setattr(_CpuKernels, "address", lambda self, kernel: ctypes.cast(slow, ctypes.c_void_p).value)
    pool = make_pool(Swings, 4 * width, 2 * width, 1, device="cpu")
    pool.async_reset()
    for _ in range(20):
        envs = pool.recv()[-1]["env_id"]
        pool.send(np.zeros((len(envs), 2), np.float32), envs)
    while sum(runs) < 20 * 2 * width:
        time.sleep(1e-3)
    pool.close()
    assert set(runs[1:]) == {width}


def test_any_order_of_a_pool_has_the_bits_of_stepping_together():
    want = Simulator(Swings, 50, device="cpu")
    pool = make_pool(Swings, 50, 17, 2, device="cpu", seed=3)
    want.reset(seed=3)
    chance, steps, seen = np.random.default_rng(0), 12, np.zeros(50, int)
    actions = chance.uniform(-1, 2, (steps + 1, 50, 2)).astype(np.float32)
    observations = [want.arrays["observation"][:, 0].copy()]
    for step in range(steps):
        want.arrays["action"][:, 0] = actions[step]
        want.step()
        observations.append(want.arrays["observation"][:, 0].copy())
    pool.async_reset()
    left = 50 * (steps + 1)
    while left:
        observation, *_, info = pool.recv()
        envs = info["env_id"]
        left -= len(envs)
        assert np.array_equal(observation, np.array(observations)[seen[envs], envs])
        going = envs[seen[envs] < steps]
        chance.shuffle(going)
        if len(going):
            pool.send(actions[seen[going], going], going)
        seen[going] += 1
    pool.close()


# ---- what is refused ----


def changed(tmp_path, old, new, game=Swings, **attributes):
    """A copy of a game with other rules, and the line of the change."""
    rules = game.source().read_text()
    assert rules.count(old) == 1
    path = tmp_path / "changed.cuh"
    path.write_text(rules.replace(old, new))
    line = rules[: rules.index(old)].count("\n") + 1
    made = type("Changed", (game,), {"source": classmethod(lambda cls: path), "id": "Changed-v0", **attributes})
    return made, line


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("if (any(e.windy)) {", "if (e.windy) {", "e.windy in a condition: it has a value for each env"),
        ("k < 6 && any(moves)", "k < 6 && moves", "moves in a condition"),
        ("if (any(bent)) angle", "if (abs(angle) > 0.9f) angle", "angle in a condition"),
        ("select(bent, unbent(angle * 1.3f), angle)", "unbent(angle * 1.3f)", "angle is changed in a block that runs"),
        ("x = select(moves, next, x);", "x += next;", "x is changed in a block that runs because of some envs"),
        ("if (any(bent)) angle = ", "if (any(bent)) e.speed[k] = speed + 1.f; angle = ", "e.speed[k] is changed in"),
        ("moves = moves & !near;", "if (all(near)) return x;", "return behind any() or all()"),
        ("Pack gust = 0.f;", "Pack gust = e.windy ? 1.f : 0.f;", "e.windy in a condition"),
        ("e.energy = 0.f;", "once(e, [=] { e.energy = 0.f; });", "once in packed rules: a pack has one lane"),
        ("e.energy = 0.f;", "e.terminate_all();", "e.terminate_all in packed rules: agents end together"),
        ("e.energy = 0.f;", "scatter_add(e.gusts, 1);", "scatter_add in packed rules"),
        ("e.energy = 0.f;", "e.energy = 0.1;", "'0.1' is a double: write 0.1f"),
    ],
)
def test_rules_that_look_at_neighbours(tmp_path, old, new, message):
    game, line = changed(tmp_path, old, new)
    with pytest.raises(DialectError, match=rf"changed\.cuh:{line}: {re.escape(message)}"):
        program(game(), game.Config())


def test_a_loop_that_is_left_behind_any_is_guarded(tmp_path):
    old = "for (int k = 0; k < 6 && any(moves); ++k) {"
    right, _ = changed(tmp_path, old, f"{old.replace('&& any(moves)', '')} if (!any(moves)) break;")
    program(right(), right.Config())
    rules = right.source().read_text().replace("x = select(moves, next, x);", "x = next;")
    right.source().write_text(rules)
    with pytest.raises(DialectError, match="x is changed in a block"):
        program(right(), right.Config())


def test_a_float_never_becomes_an_integer_pack(tmp_path):
    """In packs of one it would be an operation of floats."""
    game, line = changed(tmp_path, "e.gusts > 30", "e.gusts > 30.5f")
    with pytest.raises(RuntimeError, match=rf"changed\.cuh:{line}:.*error"):
        Simulator(game, 1, device="cpu")


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (
            {"fields": lambda self, cfg: {"n": Field("uint64")}},
            "field n is uint64; packed rules have fields of float32",
        ),
        ({"lanes": lambda self, cfg: 4}, "one lane per env"),
        ({"action_mask": True}, "action masks"),
        ({"state_space": lambda self, cfg: gpuzoo.get("Taxi-v4").observation_space(None, "agent")}, "state_space"),
    ],
)
def test_declarations_that_packs_cannot_hold(attributes, message):
    base = Rafts if "action_mask" in attributes else Swings
    game = type("Wrong", (base,), {"source": classmethod(lambda cls: base.source()), "id": "Wrong-v0", **attributes})
    with pytest.raises(ValueError, match=message):
        program(game(), game.Config())


# ---- double precision ----


def test_literals_beside_doubles_stay_in_double_precision():
    headers = "".join((DEVICE / f"{name}.cuh").read_text() for name in ("base", "math", "rng", "packed"))
    code = f"""#define GZ_PACKED_DOUBLE
    {headers} namespace gz {{ extern "C" double run(double x) {{
      const Pack y = fma(x, 0.5f, x) + fma(2.f, 0.25f, x) + min(x, 9.f) + max(-9.f, x) + clamp(x, -9.f, 9.f);
      return select(is_nan(y), 0.f, y + copysign(x, 1.f) + mod(x, 7.f) + pow(x, 2.f) + atan2(1.f, x));
    }} }}"""
    library = ctypes.CDLL(str(compile_host(code, "literals")))
    library.run.restype, library.run.argtypes = ctypes.c_double, [ctypes.c_double]
    x = 1 / 3
    assert abs(library.run(x) - (1.5 * x + 0.5 + x + 3 * x + x + x + x**2 + np.arctan2(1, x))) < 1e-14


def test_the_same_text_in_double_precision():
    """Against NumPy in float64: what is left is the rounding of double precision."""
    rules = "".join(piece.text for piece in inline_includes(Swings.source()))
    unbent = rules[rules.index("GZ Pack unbent") : rules.index("GZ void step")]
    headers = "".join((DEVICE / f"{name}.cuh").read_text() for name in ("base", "math", "rng", "packed"))
    code = f"""#define GZ_PACKED_DOUBLE
    {headers} namespace gz {{ {unbent} }}
    extern "C" void run(const double *y, double *x, int n) {{ for (int i = 0; i < n; ++i) x[i] = gz::unbent(y[i]); }}"""
    library = ctypes.CDLL(str(compile_host(code, "double")))
    y = np.linspace(-3, 3, 1001)
    x = np.empty_like(y)
    library.run(*(ctypes.c_void_p(a.ctypes.data) for a in (y, x)), y.size)
    want, moves = y.copy(), np.abs(y) > 0.01
    fine, slope = np.float64(np.float32(0.4)), np.float64(np.float32(1.2))
    for _ in range(6):
        following = want - (fine * want**3 + want - y) / (slope * want**2 + 1)
        near = np.abs(following - want) < np.float64(np.float32(1e-6))
        want = np.where(moves, following, want)
        moves &= ~near
    assert np.abs(x - want).max() < 1e-14
    single = x.astype(np.float32).astype(np.float64)
    assert np.abs(single - want).max() > 1e-8, "float32 would have passed, too"
