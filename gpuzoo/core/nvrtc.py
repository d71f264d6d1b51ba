"""NVIDIA's run-time compiler, called directly: it needs no GPU, and no flag is added behind our back.

(CuPy's own compile path always adds ``-ftz=true``, which would give the GPU other bits than the CPU.)
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import glob
import os
import re
import sys
from pathlib import Path

from gpuzoo.core.compiled import compiled
from gpuzoo.core.occupancy import bounded

OPTIONS = ("-std=c++17", "-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true", "-default-device", "-w")


@functools.cache
def load() -> ctypes.CDLL:
    """The NVRTC library: of the CUDA wheels, of a CUDA toolkit, or the system's.

    Raises:
        RuntimeError: it was not found.
    """
    places = [os.path.join(p, "nvidia", "*", "lib") for p in sys.path]
    places += [os.path.join(os.environ.get(v, "/usr/local/cuda"), "lib64") for v in ("CUDA_PATH", "CUDA_HOME")]
    for path in [f for place in places for f in sorted(glob.glob(os.path.join(place, "libnvrtc.so*")), reverse=True)]:
        with contextlib.suppress(OSError):
            # NVRTC opens its second half by name, which the loader finds if it is there already.
            for half in glob.glob(os.path.join(os.path.dirname(path), "libnvrtc-builtins.so*")):
                ctypes.CDLL(half, mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(path)
    for name in ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"):
        with contextlib.suppress(OSError):
            return ctypes.CDLL(name)
    raise RuntimeError(
        "NVRTC was not found: pip install 'gpuzoo[cuda13]' (or [cuda12]) brings it, or set CUDA_PATH to a CUDA toolkit."
    )


def version() -> str:
    """NVRTC's version, such as ``13.0``."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    load().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def compile_cubin(code: str, name: str, arch: str, options: tuple[str, ...] = OPTIONS) -> tuple[bytes, str]:
    """Compiles a translation unit to machine code.

    Args:
        code: the source.
        name: what messages call it.
        arch: such as ``sm_90``.
        options: NVRTC options.

    Returns:
        The cubin, and the compiler's log (with register and memory use if ``--ptxas-options=-v`` is an option).

    Raises:
        RuntimeError: the compiler's message.
    """
    return _compile(code, name, arch, options, "CUBIN")


def compile_ptx(code: str, name: str, arch: str, options: tuple[str, ...] = OPTIONS) -> str:
    """As `compile_cubin`, to PTX, for an architecture such as ``compute_90``.

    Raises:
        RuntimeError: the compiler's message.
    """
    return _compile(code, name, arch, options, "PTX")[0].rstrip(b"\0").decode()


def _compile(code: str, name: str, arch: str, options: tuple[str, ...], form: str) -> tuple[bytes, str]:
    nvrtc = load()
    program = ctypes.c_void_p()

    def check(status: int) -> None:
        if status != 0:
            nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
            raise RuntimeError(f"{name}: {nvrtc.nvrtcGetErrorString(status).decode()}")

    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), code.encode(), b"unit.cu", 0, None, None))
    try:
        words = [f"--gpu-architecture={arch}", *options]
        array = (ctypes.c_char_p * len(words))(*[w.encode() for w in words])
        status = nvrtc.nvrtcCompileProgram(program, len(words), array)
        size = ctypes.c_size_t()
        check(nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size)))
        text = ctypes.create_string_buffer(size.value)
        check(nvrtc.nvrtcGetProgramLog(program, text))
        log = text.value.decode(errors="replace")
        if status != 0:
            raise RuntimeError(f"{name} does not compile for {arch}:\n{_first_errors(log) or status}")
        check(nvrtc[f"nvrtcGet{form}Size"](program, ctypes.byref(size)))
        result = ctypes.create_string_buffer(size.value)
        check(nvrtc[f"nvrtcGet{form}"](program, result))
        return result.raw, log
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _first_errors(log: str) -> str:
    lines = log.splitlines()
    errors = [k for k, line in enumerate(lines) if re.search(r"\berror\b", line)]
    return "\n".join(line for k in errors[:3] for line in lines[k : k + 3])


def cached_cubin(code: str, name: str, arch: str, block: int | None = None) -> Path:
    """The path of a compiled program, compiled now if it is not in the cache.

    Args:
        code: the source.
        name: what messages call it.
        arch: such as ``sm_90``.
        block: threads per block of a game whose kernels are to have launch bounds; None for any other program.
    """
    key = "\0".join([code, arch, version(), *OPTIONS, *["bounded"] * (block is not None)])

    def build(_: Path) -> bytes:
        return (compile_cubin(code, name, arch) if block is None else bounded_cubin(code, name, arch, block))[0]

    return compiled("cuda", name, ".cubin", key, build)


def bounded_cubin(code: str, name: str, arch: str, block: int) -> tuple[bytes, str]:
    """As `compile_cubin`, of a game, with the launch bounds that `occupancy.bounded` finds, and with ptxas' report."""

    def compile_with(macros: tuple[str, ...]) -> tuple[bytes, str]:
        return compile_cubin(code, name, arch, (*OPTIONS, "--ptxas-options=-v", *macros))

    return bounded(compile_with, block, arch)
