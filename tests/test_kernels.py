"""What a GPU's kernels must have for speed, seen in the compiler's output and in the addresses of a step.

docs/kernels.md has the same figures; scripts/kernel_report.py writes them.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from test_compile import nvrtc_missing

import gpuzoo
from gpuzoo.core import nvrtc, occupancy
from gpuzoo.core.backend import KERNELS
from gpuzoo.core.configuration import split_config
from gpuzoo.core.programs import program
from gpuzoo.tools import bench

pytestmark = pytest.mark.skipif(sys.platform != "linux" and bool(nvrtc_missing()), reason=nvrtc_missing())

ROOT = Path(__file__).parents[1]


@pytest.fixture
def kernel_report(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import kernel_report

    return kernel_report


def cases(game):
    return [case for case in bench.cases(f"^{game.id} ") if case.num_envs is None]


def programs(game):
    for case in cases(game):
        cfg, per_env = split_config(case.env, 2, dict(case.config))
        yield case.name, program(case.env, cfg, per_env)


# ---- every game, by turns ----


@pytest.mark.rotates
def test_half_occupancy(game, kernel_report):
    """A step has registers and shared memory for half of an SM's threads."""
    for name, made in programs(game):
        step = kernel_report.compiled(made)[0]["step"]
        assert step["occupancy"] >= 0.5, f"{name}: {step['registers']} registers, {step['shared']} bytes shared"


@pytest.mark.rotates
def test_no_spills(game, kernel_report):
    """In the configurations of benchmarks; tests/test_compile.py has the default ones."""
    for name, made in programs(game):
        if name != "default":
            log = nvrtc.bounded_cubin(made.code, game.id, kernel_report.ARCH, made.block).log
            usage = occupancy.usage(log)
            assert {kernel: usage[kernel].local for kernel in KERNELS} == dict.fromkeys(KERNELS, 0), name


@pytest.mark.rotates
def test_address_spaces_are_known(game, kernel_report):
    """A load or store that is not known to be of global memory asks at run time where it goes."""
    for name, made in programs(game):
        ptx = kernel_report.ptx_of(made.code, made.env.id)
        for kernel in kernel_report.KERNELS:
            assert kernel_report.instructions(ptx, kernel)[2] == 0, f"{name}, {kernel}"


@pytest.mark.rotates
def test_rows_are_stored_in_few_sectors(game, kernel_report):
    """Those of observations, and of action masks."""
    for case, (name, _) in zip(cases(game), programs(game), strict=True):
        sim = kernel_report.simulator(case)
        row = kernel_report.traced(sim)
        sim.close()
        for rows in ("row", "mask"):
            assert row[f"{rows}_bytes"] < 16 or row[f"{rows}_sectors"] <= 1.2, (
                f"{name}: {rows} {row[f'{rows}_sectors']}"
            )


# ---- the report itself ----


def test_cartpole(kernel_report, monkeypatch, tmp_path):
    """The smallest step there is: one store for the observation. Its rows of the table say what the report says."""
    (case,) = bench.cases("^CartPole-v1 default")
    rows = step, rollout = kernel_report.report(case)
    known = [row for row in kernel_report.read() if (row["id"], row["case"]) == ("CartPole-v1", "default")]
    monkeypatch.setattr(kernel_report, "FILE", tmp_path / "kernels.json")
    kernel_report.write(rows)
    if all(row["source"] == step["source"] for row in known):  # the same kernels
        told = [{name: x for name, x in row.items() if not name.startswith("measured")} for row in known]
        assert told == kernel_report.read(), "count up COLUMNS of scripts/kernel_report.py, and make all rows anew"
    assert step["registers"] <= 48
    assert step["stores"]["16"] == rollout["stores"]["16"] == 2  # in an episode's step, and where one begins
    assert step["row_sectors"] == 1
    assert step["bytes"] <= 1.2 * step["fewest_bytes"]


def test_a_step_of_cartpole_waits_for_memory_once(kernel_report):
    """What an env has is loaded ahead of the first branch, which is in a division, and nothing is read back."""
    (case,) = bench.cases("^CartPole-v1 default")
    ptx = kernel_report.ptx_of(kernel_report.program_of(case).code, "CartPole-v1")
    step = ptx[ptx.index(".entry gz_step(") : ptx.index(".entry gz_rollout(")]
    behind_divisions, behind_stores = (step.partition(word)[2] for word in ("div.rn.f32", "st.global"))
    assert re.findall(r"ld\.global\.\w+", behind_stores) == ["ld.global.u64"]  # the seed of the next episode
    shared = len(re.findall(r"ld\.global", behind_divisions)) - 1
    assert shared <= 4  # gravity, tau and two thresholds, which all envs have in common


def test_what_makes_a_row_old(kernel_report, tmp_path, monkeypatch):
    """Another program or another rule of launch bounds, and no comment, and not the folder that gpuzoo is in."""
    (case,) = bench.cases("^CartPole-v1 default")
    made, rules = kernel_report.program_of(case), Path(occupancy.__file__).read_text()
    first = kernel_report.source(made)
    folder = str(Path(gpuzoo.__file__).parents[1])
    assert folder in made.code
    assert kernel_report.source(dataclasses.replace(made, code=made.code.replace(folder, "/elsewhere"))) == first
    assert kernel_report.source(dataclasses.replace(made, code=f"// a comment\n{made.code} // one more")) == first
    changed = tmp_path / "occupancy.py"
    monkeypatch.setattr(occupancy, "__file__", str(changed))
    changed.write_text(rules.replace('"""Launch bounds', '"""Bounds') + "# a comment\n")
    assert kernel_report.source(made) == first
    changed.write_text(rules.replace("REGISTERS = 65536", "REGISTERS = 32768"))
    assert kernel_report.source(made) != first
    changed.write_text(rules)
    assert kernel_report.source(dataclasses.replace(made, code=made.code + " ")) != first


def test_requests():
    """By hand: two instructions, of which the second one is executed twice by one of the threads."""
    from ptx.trace import ACCESS, STORE, requests

    log = [(0, 0, 0, 0), (0, 1, 0, 4), (0, 0, 1, 64), (0, 1, 1, 68), (0, 0, 1, 96), (0, 32, 1, 64), (1, 0, 1, 64)]
    accesses = np.zeros(len(log), ACCESS)
    for place, (block, thread, site, address) in zip(accesses, log, strict=True):
        place["block"], place["thread"], place["site"], place["address"], place["kind"] = (
            block,
            thread,
            site,
            address,
            4,
        )
    place["kind"] |= STORE
    everywhere = {"memory": (0, 1 << 20)}
    loads = requests(accesses, False, everywhere)
    assert dataclasses.astuple(loads) == (4, 4, 3)  # the last access is a store
    assert dataclasses.astuple(requests(accesses, True, everywhere)) == (1, 1, 1)
    assert dataclasses.astuple(requests(accesses, False, {"row": (0, 32)})) == (1, 1, 1)


def test_kinds_of_accesses(kernel_report):
    ptx = """
.visible .entry gz_step(
)
{
\tld.param.u64 \t%rd1, [gz_step_param_0+8];
\tld.global.nc.v4.f32 \t{%f1, %f2, %f3, %f4}, [%rd1];
\t@%p1 ld.global.u8 \t%rs1, [%rd2];
\tst.global.v2.u32 \t[%rd1], {%r1, %r2};
\tst.shared.u32 \t[%r3], %r1;
\tst.u8 \t[%rd3], %rs1;
}
.visible .entry gz_rollout(
)
{
\tst.global.f32 \t[%rd1], %f1;
}
"""
    assert kernel_report.instructions(ptx, "step") == ({"16": 1, "1": 1}, {"8": 1}, 1)
    assert kernel_report.instructions(ptx, "rollout") == ({}, {"4": 1}, 0)


@pytest.mark.parametrize(("registers", "shared", "block", "share"), [
    (64, 0, 128, 0.5), (65, 0, 128, 0.4375), (20, 0, 128, 1.0), (32, 27 << 10, 128, 0.5), (64, 0, 512, 0.5),
])  # fmt: skip
def test_occupancy_on_an_h200(kernel_report, registers, shared, block, share):
    assert kernel_report.resident_threads(occupancy.Usage(registers, 0, 0, shared), block) == share


def test_measured_figures(kernel_report, tmp_path, monkeypatch):
    """They are added to the table, and stay when it is written anew; a file that was cut off breaks nothing."""
    row = {"id": "CartPole-v1", "case": "default", "kernel": "step", "registers": 44}
    monkeypatch.setattr(kernel_report, "FILE", tmp_path / "kernels.json")
    kernel_report.write([row])
    rows = [
        {"kind": "machine"},
        {"kind": "game", "id": "CartPole-v1", "case": "default", "device": "cpu", "steps_per_second": 1.0},
        {"kind": "game", "id": "CartPole-v1", "case": "default", "device": "cuda:0", "steps_per_second": 3e10},
    ]
    (tmp_path / "bench.jsonl").write_text("\n".join(map(json.dumps, rows)) + '\n{"kind": "ga')
    kernel_report.measured(tmp_path / "bench.jsonl")
    kernel_report.write([{**row, "registers": 40}])
    assert kernel_report.read() == [{**row, "registers": 40, "measured_steps_per_second": 3e10}]


def test_the_table_is_rendered(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import kernels

    made = kernels.substitutions()
    assert "| `CartPole-v1` | default | 1 | " in made["kernels_step"]
    assert made["kernels_rollout"].count("| `CartPole-v1` |") == 2
    assert "| `Ant-v5` | " in made["kernels_exceptions"]


def test_exceptions_have_their_reason(kernel_report):
    """Every kernel in the table with local memory, and every step below half occupancy."""
    rows = kernel_report.read()
    wanted = {
        "no_spills": {row["id"] for row in rows if row.get("stack") or row.get("spills")},
        "half_occupancy": {row["id"] for row in rows if row["kernel"] == "step" and row["occupancy"] < 0.5},
    }
    for test, of_games in wanted.items():
        exempt = {env_id for env_id in gpuzoo.ids() if test in gpuzoo.get(env_id).exempt}
        assert of_games <= exempt, test
    assert not [row for row in rows if row["generic"]]
