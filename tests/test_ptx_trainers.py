"""The trainers' GPU code on a CPU: NVRTC's PTX of each of their kernels gives the CPU's bits (tests/ptx)."""

from __future__ import annotations

import importlib
import sys

import pytest
from ptx.exact import inexact, unwritten_fusions
from ptx.host import PtxBackend, ptx_of
from test_compile import nvrtc_missing

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(sys.platform != "linux" and bool(nvrtc_missing()), reason=nvrtc_missing())


@pytest.mark.rotates
@pytest.mark.parametrize(("tests", "module"), [
    ("test_fast_kernels", "baselines.fast.kernels"),
    ("test_fast_losses", "baselines.fast.losses"),
])  # fmt: skip
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
