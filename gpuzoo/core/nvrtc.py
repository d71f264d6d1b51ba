"""NVIDIA's run-time compiler, called directly: it needs no GPU, and no flag is added behind our back.

(CuPy's own compile path always adds ``-ftz=true``, which would give the GPU other bits than the CPU.)
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import functools
import glob
import inspect
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from gpuzoo.core import occupancy
from gpuzoo.core.compiled import compiled
from gpuzoo.core.occupancy import Bounded, Compile, bounded

#: from this version on NVRTC has a cache of its own, where there is a driver: what it finds there has no report
CACHES = (12, 9)
OPTIONS = ("-std=c++17", "-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true", "-default-device", "-w")


@functools.cache
def _candidates() -> tuple[str, ...]:
    """Where NVRTC may be: in the CUDA wheels, in a CUDA toolkit, or where the system has it."""
    places = [os.path.join(p, "nvidia", "*", "lib") for p in sys.path]
    places += [os.path.join(os.environ.get(v, "/usr/local/cuda"), "lib64") for v in ("CUDA_PATH", "CUDA_HOME")]
    found = [f for place in places for f in sorted(glob.glob(os.path.join(place, "libnvrtc.so*")), reverse=True)]
    return (*found, "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")


@functools.cache
def _open(path: str) -> ctypes.CDLL | None:
    with contextlib.suppress(OSError):
        # NVRTC opens its second half by name, which the loader finds if it is there already.
        for half in glob.glob(os.path.join(os.path.dirname(path), "libnvrtc-builtins.so*")) if "/" in path else ():
            ctypes.CDLL(half, mode=ctypes.RTLD_GLOBAL)
        return ctypes.CDLL(path)
    return None


def _version_of(library: ctypes.CDLL) -> tuple[int, int]:
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def _architectures(library: ctypes.CDLL) -> list[int]:
    """The compute capabilities that it knows, as 90 for 9.0."""
    count = ctypes.c_int()
    library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    known = (ctypes.c_int * count.value)()
    library.nvrtcGetSupportedArchs(known)
    return list(known)


def _libraries(driver: int | None) -> Iterator[ctypes.CDLL]:
    """The libraries whose programs a driver takes, the preferred one first.

    A driver loads machine code of every NVRTC of its own major version, and of older ones.
    """
    newer: tuple[int, int] | None = None
    for path in _candidates():
        library = _open(path)
        if library is None:
            continue
        version = _version_of(library)
        if driver is None or version[0] <= driver // 1000:
            yield library
        else:
            newer = newer or version
    if newer is not None and driver is not None:
        major, minor = driver // 1000, driver % 1000 // 10
        raise RuntimeError(
            f"NVRTC {newer[0]}.{newer[1]} is newer than the GPU's driver, which is of CUDA {major}.{minor} and refuses "
            f"its programs: pip install 'gpuzoo[cuda{major}]', or update the driver."
        )
    raise RuntimeError(
        "NVRTC was not found: pip install 'gpuzoo[cuda13]' (or [cuda12]) brings it, or set CUDA_PATH to a CUDA toolkit."
    )


def load(driver: int | None = None) -> ctypes.CDLL:
    """The NVRTC library: of the CUDA wheels, of a CUDA toolkit, or the system's.

    Args:
        driver: the CUDA version of the GPU's driver, which must take its programs, as CUDA counts: 12040 is 12.4.

    Raises:
        RuntimeError: it was not found, or is newer than the driver.
    """
    return next(_libraries(driver))


@functools.cache
def choose(arch: str, driver: int | None) -> tuple[ctypes.CDLL, str]:
    """The library for a GPU and its driver, and what it is to compile for.

    That is ``arch``; or where no library knows a GPU which is newer, PTX for the newest GPU that one knows, such as
    ``compute_90``: then the driver makes the machine code.

    Raises:
        RuntimeError: as `load`, or no library makes programs for this GPU.
    """
    wanted, known = int(re.sub(r"\D", "", arch)), []
    with contextlib.suppress(RuntimeError):  # no library is left: what is wrong is said below
        for library in _libraries(driver):
            architectures = _architectures(library)
            if wanted in architectures:
                return library, arch
            known.append((library, architectures))
    first = load(driver)
    for library, architectures in known:
        major, minor = _version_of(library)
        older = [x for x in architectures if x < wanted]
        if older and (driver is None or 1000 * major + 10 * minor <= driver):
            return library, f"compute_{max(older)}"
    major, minor = _version_of(first)
    raise RuntimeError(
        f"NVRTC {major}.{minor} makes no programs for this GPU, of compute capability {wanted // 10}.{wanted % 10}, "
        "that its driver would take: install another NVRTC (pip install 'gpuzoo[cuda12]' or 'gpuzoo[cuda13]'), or "
        "update the driver."
    )


def version(library: ctypes.CDLL | None = None) -> str:
    """NVRTC's version, such as ``13.0``."""
    major, minor = _version_of(library or load())
    return f"{major}.{minor}"


def compile_cubin(
    code: str, name: str, arch: str, options: tuple[str, ...] = OPTIONS, library: ctypes.CDLL | None = None
) -> tuple[bytes, str]:
    """Compiles a translation unit to machine code.

    Args:
        code: the source.
        name: what messages call it.
        arch: such as ``sm_90``.
        options: NVRTC options.
        library: from `load`, which is asked by default.

    Returns:
        The cubin, and the compiler's log (with register and memory use if ``--ptxas-options=-v`` is an option).

    Raises:
        RuntimeError: the compiler's message.
    """
    return _compile(code, name, arch, options, "CUBIN", library)


def compile_ptx(
    code: str, name: str, arch: str, options: tuple[str, ...] = OPTIONS, library: ctypes.CDLL | None = None
) -> str:
    """As `compile_cubin`, to PTX, for an architecture such as ``compute_90``.

    Raises:
        RuntimeError: the compiler's message.
    """
    return _compile(code, name, arch, options, "PTX", library)[0].rstrip(b"\0").decode()


def uncached(version: tuple[int, int]) -> tuple[str, ...]:
    """Options with which NVRTC of a version compiles anew what it compiled before."""
    return ("--no-cache",) if version >= CACHES else ()


def _compile(
    code: str, name: str, arch: str, options: tuple[str, ...], form: str, library: ctypes.CDLL | None
) -> tuple[bytes, str]:
    nvrtc = library or load()
    program = ctypes.c_void_p()

    def check(status: int) -> None:
        if status != 0:
            nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
            raise RuntimeError(f"{name}: {nvrtc.nvrtcGetErrorString(status).decode()}")

    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), code.encode(), b"unit.cu", 0, None, None))
    try:
        words = [f"--gpu-architecture={arch}", *options, *uncached(_version_of(nvrtc))]
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


def cached_cubin(code: str, name: str, arch: str, block: int | None = None, driver: int | None = None) -> Path:
    """The path of a compiled program, compiled now if it is not in the cache.

    Args:
        code: the source.
        name: what messages call it.
        arch: such as ``sm_90``.
        block: threads per block of a game whose kernels are to have launch bounds; None for any other program.
        driver: as for `load`; see `choose` for what becomes of a GPU that NVRTC does not know.

    Raises:
        RuntimeError: as `choose`, or the compiler's message.
    """
    library, target = choose(arch, driver)
    key = "\0".join([code, target, version(library), *OPTIONS, *["bounded"] * (block is not None)])
    if target != arch:
        return compiled("cuda", name, ".ptx", key, lambda _: compile_ptx(code, name, target, OPTIONS, library).encode())

    def compile_with(options: tuple[str, ...]) -> tuple[bytes, str]:
        return compile_cubin(code, name, arch, options, library)

    def build(_: Path) -> bytes:
        return compile_with(OPTIONS)[0] if block is None else _bounded(compile_with, block, arch).cubin

    return compiled("cuda", name, ".cubin", key, build)


def bounded_cubin(code: str, name: str, arch: str, block: int) -> Bounded:
    """As `compile_cubin`, of a game, with the macros that `occupancy.bounded` finds, and with ptxas' report.

    It comes from the cache if it was made before by the same search for macros.
    """

    def build(_: Path) -> bytes:
        made = _bounded(lambda options: compile_cubin(code, name, arch, options), block, arch)
        return json.dumps([base64.b64encode(made.cubin).decode(), made.log, made.options]).encode()

    key = "\0".join([code, arch, version(load()), *OPTIONS, str(block), inspect.getsource(occupancy)])
    cubin, log, options = json.loads(compiled("reports", name, ".json", key, build).read_bytes())
    return Bounded(base64.b64decode(cubin), log, tuple(options))


def _bounded(compile_with: Compile, block: int, arch: str) -> Bounded:
    return bounded(lambda macros: compile_with((*OPTIONS, "--ptxas-options=-v", *macros)), block, arch)
