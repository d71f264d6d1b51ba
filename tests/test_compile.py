"""NVRTC compiles every game for every architecture, without memory traffic that the author did not write."""

from __future__ import annotations

import re
import sys

import pytest
from toys.glide import Glide

from gpuzoo.core import nvrtc
from gpuzoo.core.backend import KERNELS
from gpuzoo.core.codegen import program
from gpuzoo.core.definition import Field

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_120")


def nvrtc_missing() -> str:
    try:
        nvrtc.load()
    except RuntimeError as error:
        return str(error)
    return ""


# On Linux the dev extra brings NVRTC: there its absence is a failure. NVIDIA has none for other systems' CPUs.
pytestmark = pytest.mark.skipif(sys.platform != "linux" and bool(nvrtc_missing()), reason=nvrtc_missing())


@pytest.mark.rotates
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_no_spills(game, arch):
    code = program(game(), game.Config()).code
    cubin, log = nvrtc.compile_cubin(code, game.id, arch, (*nvrtc.OPTIONS, "--ptxas-options=-v"))
    assert cubin[:4] == b"\x7fELF"
    seen = dict(re.findall(r"Function properties for gz_(\w+)\nptxas[ .]*([^\n]*)", log))
    assert seen.keys() >= set(KERNELS), log
    for kernel in KERNELS:
        assert seen[kernel] == "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", kernel


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
