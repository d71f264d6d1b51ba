"""NVRTC compiles every game for every architecture, without memory traffic that the author did not write."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest
from hopper import instructions, is_wrong, wrong_clamps
from toys.glide import Glide

import gpuzoo
from gpuzoo.core import nvrtc, occupancy
from gpuzoo.core.backend import KERNELS
from gpuzoo.core.codegen import program
from gpuzoo.core.definition import Field
from gpuzoo.tools import doctor

ROOT = Path(__file__).parents[1]
ARCHITECTURES = [
    pytest.param(arch, marks=pytest.mark.rotates(long=arch != "sm_90"))
    for arch in ("sm_75", "sm_80", "sm_90", "sm_120")
]


def nvrtc_missing() -> str:
    try:
        nvrtc.load()
    except RuntimeError as error:
        return str(error)
    return ""


# On Linux the dev extra brings NVRTC: there its absence is a failure. NVIDIA has none for other systems' CPUs.
pytestmark = pytest.mark.skipif(sys.platform != "linux" and bool(nvrtc_missing()), reason=nvrtc_missing())


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_no_spills(game, arch):
    made = program(game(), game.Config())
    cubin, log, _ = nvrtc.bounded_cubin(made.code, game.id, arch, made.block)
    assert cubin[:4] == b"\x7fELF"
    seen = occupancy.usage(log)
    assert seen.keys() >= set(KERNELS), log
    assert {kernel: seen[kernel].local for kernel in KERNELS} == dict.fromkeys(KERNELS, 0)
    if arch == "sm_90":
        assert not wrong_clamps(cubin)


def test_nvrtc_compiles_anew():
    """Or there is no report of ptxas, by which launch bounds are chosen. Older versions know no such option."""
    assert nvrtc.uncached((12, 8)) == ()
    assert nvrtc.uncached((12, 9)) == nvrtc.uncached((13, 0)) == ("--no-cache",)
    assert nvrtc.compile_ptx("", "nothing", "compute_90").startswith("//")


CLAMPED = """
__device__ int clamp(int x, int low, int high) { return %s; }
extern "C" __global__ void gz_clamps(const int *x, int *y, bool *is_highest) {
  const int k = threadIdx.x;
  y[k] = clamp(x[k], 0, 11);
  is_highest[k] = y[k] == 11;
}
"""


def test_clamps_are_right_on_hopper():
    """Of the two ways to write a clamp, ptxas compiles one wrong: that of CUDA 12.6 to 13.3 at least."""
    engine, wrong = "x > high ? high : x < low ? low : x", "x < low ? low : x > high ? high : x"
    assert engine in (ROOT / "gpuzoo/core/device/base.cuh").read_text()
    compiled = {text: nvrtc.compile_cubin(CLAMPED % text, "clamps", "sm_90")[0] for text in (engine, wrong)}
    assert not wrong_clamps(compiled[engine])
    if nvrtc.version() in ("12.6", "12.8", "12.9", "13.0", "13.1", "13.2", "13.3"):
        assert wrong_clamps(compiled[wrong]) == 1
    assert len(list(instructions(compiled[engine]))) > 16
    # as nvdisasm prints them: with predicates, without them, and without .RELU
    assert is_wrong(0x0000000B17177848, 0x000FE20003801100)
    assert not is_wrong(0x0000000707077848, 0x000FE40003FE1100)
    assert not is_wrong(0xFFFFFFFA02097848, 0x000FE40007FE0100)


def test_what_called_functions_spill_counts():
    code = """
    __device__ __noinline__ void far(float *x) {
      float all[64], sum = 0.f;
      for (int i = 0; i < 64; ++i) sum += all[i] = x[i * 99];
      for (int i = 0; i < 64; ++i) x[i * 77] = all[i] * sum;
    }
    extern "C" __global__ void gz_calls(float *x) { far(x); }
    extern "C" __global__ void gz_plain(float *x) { x[0] = 1.f; }
    """
    options = (*nvrtc.OPTIONS, "--ptxas-options=-v", "--maxrregcount=32")
    usage = occupancy.usage(nvrtc.compile_cubin(code, "calls", "sm_90", options)[1])
    assert usage.keys() == {"calls", "plain"}
    assert usage["calls"].spills > 0
    assert usage["plain"].local == 0


ROLLED = occupancy.ROLLED[0]


@pytest.mark.parametrize(("arch", "registers", "spills_below", "rolled_spills_below", "chosen"), [
    ("sm_90", 64, 0, 0, ()),  # half of 2,048 threads have room already
    ("sm_90", 65, 0, 0, ("-DGZ_BLOCKS_step=8",)),
    ("sm_90", 255, 80, 80, ("-DGZ_BLOCKS_step=6",)),  # eased until nothing spills
    ("sm_90", 255, 80, 64, (ROLLED, "-DGZ_BLOCKS_step=8")),  # loops over agents take fewer
    ("sm_90", 72, 72, 72, ()),
    ("sm_75", 72, 0, 0, ()),  # half of 1,024
    ("sm_120", 96, 0, 0, ("-DGZ_BLOCKS_step=6",)),
])  # fmt: skip
def test_launch_bounds(arch, registers, spills_below, rolled_spills_below, chosen):
    """A compiler that obeys bounds, and spills where a kernel has fewer registers than it needs."""

    def compile_with(macros):
        asked = dict(macro.removeprefix("-DGZ_BLOCKS_").split("=") for macro in macros if macro != ROLLED)
        needed = rolled_spills_below if ROLLED in macros else spills_below
        log = ""
        for name in ("reset", "step", "rollout"):
            bound = 65536 // (128 * int(asked.get(name, 1))) // 8 * 8
            used = min(255, bound, registers if name == "step" else 40)
            spilled = 8 * (name == "step" and used < needed)
            log += (
                f"ptxas info    : Function properties for gz_{name}\n"
                f"    {spilled} bytes stack frame, {spilled} bytes spill stores, 0 bytes spill loads\n"
                f"ptxas info    : Used {used} registers, used 1 barriers, 512 bytes smem, 400 bytes cmem[0]\n"
            )
        return repr(macros).encode(), log

    made = occupancy.bounded(compile_with, 128, arch)
    assert made.options == chosen
    assert made.cubin == repr(chosen).encode()
    step = occupancy.usage(made.log)["step"]
    assert step.local == 0
    assert step.shared == 512
    if chosen:
        assert occupancy.resident(step.registers, 128) >= int(chosen[-1].split("=")[1])


@pytest.mark.parametrize(("unrolled", "rolled", "is_rolled"), [
    ({"step": 8}, {"rollout": 8}, True),  # a rollout's bound may be eased
    ({"rollout": 8}, {}, True),
    ({"rollout": 8}, {"rollout": 8}, False),
    ({"step": 8, "rollout": 8}, {"step": 8}, False),
    ({"step": 8}, {"reset": 4}, False),  # an array that the loop's variable has put into memory
])  # fmt: skip
def test_which_form_is_chosen(unrolled, rolled, is_rolled):
    def compile_with(macros):
        asked = dict(macro.removeprefix("-DGZ_BLOCKS_").split("=") for macro in macros if macro != ROLLED)
        log = ""
        for name in ("reset", "step", "rollout"):
            needs = rolled if ROLLED in macros else unrolled
            spilled = 4 * (needs.get(name, 99) <= int(asked.get(name, 8 * (name == "reset"))))
            log += (
                f"ptxas info    : Function properties for gz_{name}\n"
                f"    {spilled} bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                f"ptxas info    : Used {255 if not macros else 64} registers, used 1 barriers\n"
            )
        return b"", log

    made = occupancy.bounded(compile_with, 128, "sm_90")
    assert (ROLLED in made.options) == is_rolled
    assert not any(use.local for use in occupancy.usage(made.log).values())


@pytest.mark.parametrize(("shared", "chosen", "most"), [
    (0, ("-DGZ_BLOCKS_rollout=10", "-DGZ_BLOCKS_step=12"), 11),
    (19 << 10, ("-DGZ_BLOCKS_rollout=10", "-DGZ_BLOCKS_step=11"), 6),  # an SM has room for 11 blocks
    (24 << 10, (), 1),  # for 9, which have registers without a bound
])  # fmt: skip
def test_few_trials_find_the_bound(shared, chosen, most):
    """A robot's thread takes so many registers that there are twenty bounds between what it has and what it should."""
    seen = []

    def compile_with(macros):
        asked = dict(macro.removeprefix("-DGZ_BLOCKS_").split("=") for macro in macros if macro != ROLLED)
        seen.append(macros)
        log = ""
        for name, free, needed in (("reset", 40, 40), ("step", 208, 160), ("rollout", 208, 199)):
            bound = 65536 // (32 * int(asked.get(name, 1))) // 8 * 8
            used = min(free, bound)
            log += (
                f"ptxas info    : Function properties for gz_{name}\n"
                f"    0 bytes stack frame, {8 * (used < needed)} bytes spill stores, 0 bytes spill loads\n"
                f"ptxas info    : Used {used} registers, used 1 barriers, {shared} bytes smem\n"
            )
        return b"", log

    made = occupancy.bounded(compile_with, 32, "sm_90")
    assert made.options == chosen
    assert not any(use.local for use in occupancy.usage(made.log).values())
    assert len(seen) == len(set(seen)) <= most


def test_a_step_has_registers_for_half_of_the_threads():
    """SpaceInvaders takes 254 registers where nothing bounds it."""
    made = program(gpuzoo.get("SpaceInvaders-MinAtar-v1"), gpuzoo.get("SpaceInvaders-MinAtar-v1").Config())
    step = occupancy.usage(nvrtc.bounded_cubin(made.code, made.env.id, "sm_90", made.block).log)["step"]
    assert step.registers <= 64
    assert step.local == 0


def test_more_arrays_than_a_kernel_takes():
    class Wide(Glide):
        id = "Wide-v0"

        def fields(self, cfg):
            return {**super().fields(cfg), **{f"more_{k}": Field("int32") for k in range(500)}}

        @classmethod
        def source(cls):
            return Glide.source()

    with pytest.raises(ValueError, match="a GPU's kernels take 510 at most"):
        program(Wide(), Wide.Config())


def test_names_of_the_kernels_and_options():
    """No flag that would change bits: no fused multiply-add by itself, no flush to zero, no fast mathematics."""
    assert {"-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true"} <= set(nvrtc.OPTIONS)
    assert "fast" not in " ".join(nvrtc.OPTIONS)


def test_message_names_file_and_line():
    with pytest.raises(RuntimeError, match=r"Toy does not compile for sm_90:\n.*rules\.cuh\(7\): error"):
        nvrtc.compile_cubin('#line 7 "rules.cuh"\nint x = nothing;\n', "Toy", "sm_90")


def test_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUZOO_CACHE_DIR", str(tmp_path))
    code = 'extern "C" __global__ void f(int *x) { *x = 1; }'
    path = nvrtc.cached_cubin(code, "toy", "sm_80")
    stamp = path.stat().st_mtime_ns
    assert nvrtc.cached_cubin(code, "toy", "sm_80").stat().st_mtime_ns == stamp
    others = {nvrtc.cached_cubin(code + " ", "toy", "sm_80"), nvrtc.cached_cubin(code, "toy", "sm_90"), path}
    assert len(others) == 3


# ---- which NVRTC, for a GPU and its driver ----


@dataclasses.dataclass(frozen=True)
class Library:
    """A stand-in for an installed NVRTC."""

    version: tuple[int, int]
    architectures: tuple[int, ...]
    _name: str = "libnvrtc.so"


OF_12_4 = Library((12, 4), (50, 60, 70, 75, 80, 86, 89, 90))
OF_12_9 = Library((12, 9), (50, 60, 70, 75, 80, 86, 89, 90, 100, 120))
OF_13 = Library((13, 0), (75, 80, 86, 89, 90, 100, 120))


@pytest.fixture
def installed(monkeypatch):
    def install(*libraries):
        monkeypatch.setattr(nvrtc, "_candidates", lambda: libraries)
        monkeypatch.setattr(nvrtc, "_open", lambda library: library)
        monkeypatch.setattr(nvrtc, "_version_of", lambda library: library.version)
        monkeypatch.setattr(nvrtc, "_architectures", lambda library: library.architectures)
        nvrtc.choose.cache_clear()

    yield install
    nvrtc.choose.cache_clear()


@pytest.mark.parametrize(
    ("libraries", "arch", "driver", "chosen"),
    [
        ((OF_13, OF_12_4), "sm_90", 13000, (OF_13, "sm_90")),
        ((OF_13, OF_12_4), "sm_90", 12040, (OF_12_4, "sm_90")),  # a driver of CUDA 12 refuses cubins of CUDA 13
        ((OF_12_9,), "sm_90", 12020, (OF_12_9, "sm_90")),  # a minor version does not matter
        ((OF_13, OF_12_9), "sm_70", 13000, (OF_12_9, "sm_70")),  # CUDA 13 has given up old GPUs
        ((OF_12_4,), "sm_120", 13000, (OF_12_4, "compute_90")),  # the driver compiles PTX for a new one
        ((OF_12_4, OF_13), "sm_120", 13000, (OF_13, "sm_120")),
        ((OF_13,), "sm_90", None, (OF_13, "sm_90")),
    ],
)
def test_nvrtc_is_chosen_by_the_driver(installed, libraries, arch, driver, chosen):
    installed(*libraries)
    assert nvrtc.choose(arch, driver) == chosen


def test_messages_about_nvrtc_and_driver(installed):
    installed(OF_13)
    with pytest.raises(RuntimeError, match=r"NVRTC 13.0 is newer than the GPU's driver, .* 12.4 .*gpuzoo\[cuda12\]"):
        nvrtc.choose("sm_90", 12040)
    installed(OF_13)
    with pytest.raises(RuntimeError, match=r"NVRTC 13.0 makes no programs for this GPU, of compute capability 7.0"):
        nvrtc.choose("sm_70", 13000)
    installed(OF_12_9)
    with pytest.raises(RuntimeError, match=r"NVRTC 12.9 makes no programs .* 12.1, that its driver would take"):
        nvrtc.choose("sm_121", 12080)  # PTX of 12.9 is too new for it
    installed()
    with pytest.raises(RuntimeError, match="NVRTC was not found"):
        nvrtc.choose("sm_90", 13000)


def test_doctor_looks_for_what_the_driver_takes(installed):
    driver = doctor._Driver((12, 4), ["a GPU"])
    installed(OF_13, OF_12_4)
    assert doctor._check_nvrtc(driver) == doctor.Check("NVRTC", "ok", "12.4, libnvrtc.so")
    installed(OF_13)
    found = doctor._check_nvrtc(driver)
    assert found.status == "problem"
    assert "NVRTC 13.0 is newer than the GPU's driver" in found.advice


def test_ptx_for_a_gpu_that_nvrtc_does_not_know(monkeypatch, tmp_path):
    monkeypatch.setenv("GPUZOO_CACHE_DIR", str(tmp_path))
    code = 'extern "C" __global__ void f(int *x) { *x = 1; }'
    path = nvrtc.cached_cubin(code, "toy", "sm_990", driver=99000)
    assert path.suffix == ".ptx"
    assert ".entry f(" in path.read_text()
