"""A GPU for tests on a machine without one: ``device="cuda"`` works, on host memory.

`installed` puts modules in the places of CuPy and of ``torch.cuda`` for a while, and gives the `Driver` that notes what
they are asked. Kernels are the thread form of their code, compiled for the host, or what `build` makes (kernels.py).
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import pytest

from gpuzoo.core import nvrtc

from . import cupy, kernels
from .driver import WORK, Driver, DriverError, Entry, driver, restart

__all__ = ["WORK", "Driver", "DriverError", "Entry", "driver", "installed", "kernels"]


@contextlib.contextmanager
def installed(devices: int = 1, version: int = 13000, build: kernels.Build = kernels.thread_form) -> Iterator[Driver]:
    """A GPU or several.

    Args:
        devices: how many.
        version: the driver's, as CUDA counts: 12040 is 12.4.
        build: makes what is executed in place of a cubin.
    """
    from . import cuda_torch

    restart(devices, version)
    with pytest.MonkeyPatch.context() as patch, _no_units_of_others():
        patch.setitem(sys.modules, "cupy", cupy)
        patch.setattr(nvrtc, "cached_cubin", kernels.cubin)
        patch.setattr(kernels, "build", build)
        cuda_torch.put_in_place(patch)
        with cuda_torch.Cuda():
            yield driver


@contextlib.contextmanager
def _no_units_of_others() -> Iterator[None]:
    """The trainers' compiled units are kept by device: those of the stand-in are not another test's."""

    def forget() -> None:
        units = sys.modules.get("gpuzoo.baselines.fast.units")
        if units is not None:
            units.compile_unit.cache_clear()

    forget()
    try:
        yield
    finally:
        forget()
