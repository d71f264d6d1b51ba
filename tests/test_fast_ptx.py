"""The trainers' GPU code on a CPU: NVRTC's PTX of each of their kernels gives the CPU's bits (tests/ptx)."""

from __future__ import annotations

import importlib
import sys

import pytest
from ptx.exact import inexact, unwritten_fusions
from ptx.host import PtxBackend, ptx_of
from test_compile import nvrtc_missing

from gpuzoo.core import nvrtc, occupancy

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(sys.platform != "linux" and bool(nvrtc_missing()), reason=nvrtc_missing())


UNITS = pytest.mark.parametrize(("tests", "module"), [
    ("test_fast_kernels", "baselines.fast.kernels"),
    ("test_fast_losses", "baselines.fast.losses"),
])  # fmt: skip


@pytest.mark.rotates
@UNITS
def test_the_bits_of_the_cpu(tests, module, monkeypatch):
    everything = importlib.import_module(tests).everything
    expected = everything("cpu")
    backend, codes = PtxBackend(), {}

    def compile_unit(code, device, *names):
        codes[code] = names[0]
        return backend.compile_unit(code, names[0], names)

    monkeypatch.setattr(importlib.import_module(module), "compile_unit", compile_unit)
    importlib.import_module(tests).same(everything("cpu"), expected)
    assert codes
    for code, name in codes.items():
        assert inexact(ptx_of(code, name)) == set()
        assert unwritten_fusions(code, ptx_of(code, name)) == set()


@pytest.mark.rotates
@UNITS
def test_no_spills(tests, module, monkeypatch):
    """Each of their kernels has the registers that it wants, and no local memory."""
    place, codes = importlib.import_module(module), {}
    compile_unit = place.compile_unit

    def noted(code, device, *names):
        codes[code] = names
        return compile_unit(code, device, *names)

    monkeypatch.setattr(place, "compile_unit", noted)
    importlib.import_module(tests).everything("cpu")
    assert codes
    for code, names in codes.items():
        log = nvrtc.compile_cubin(code, names[0], "sm_90", (*nvrtc.OPTIONS, "--ptxas-options=-v"))[1]
        usage = occupancy.usage(log)
        assert names[0] in usage  # of some entries only a CPU has a kernel
        assert {name: use.local for name, use in usage.items()} == dict.fromkeys(usage, 0)
