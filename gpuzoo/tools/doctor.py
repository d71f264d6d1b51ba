"""What ``gpuzoo doctor`` looks at: what is there, whether it works, and what to do about what does not."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

Status = Literal["ok", "absent", "problem"]

_GAME = "CartPole-v1"


@dataclasses.dataclass(frozen=True)
class Check:
    """One line of the report.

    Attributes:
        name: what was looked at.
        status: ``"ok"``, ``"absent"`` (something optional is missing) or ``"problem"``.
        detail: what was found.
        advice: what to do about it, or nothing.
    """

    name: str
    status: Status
    detail: str
    advice: str = ""


@dataclasses.dataclass(frozen=True)
class _Driver:
    version: tuple[int, int]
    gpus: list[str]


def _cuda_driver() -> _Driver | str | None:
    """The CUDA driver, asked directly; a message if it does not work, None if there is none."""
    driver = None
    for name in ("libcuda.so.1", "libcuda.so", "nvcuda.dll"):
        with contextlib.suppress(OSError):
            driver = ctypes.CDLL(name)
            break
    if driver is None:
        return None
    status = driver.cuInit(0)
    version, count = ctypes.c_int(), ctypes.c_int()
    if status == 0:
        status = driver.cuDriverGetVersion(ctypes.byref(version)) or driver.cuDeviceGetCount(ctypes.byref(count))
    if status != 0:
        text = ctypes.c_char_p()
        driver.cuGetErrorString(status, ctypes.byref(text))
        return (text.value or b"unknown error").decode() + f" (CUDA error {status})"
    gpus = []
    for k in range(count.value):
        device, buffer = ctypes.c_int(), ctypes.create_string_buffer(128)
        major, minor, size = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
        driver.cuDeviceGet(ctypes.byref(device), k)
        driver.cuDeviceGetName(buffer, len(buffer), device)
        driver.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
        driver.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
        driver.cuDeviceTotalMem_v2(ctypes.byref(size), device)
        gpus.append(f"{buffer.value.decode()} (sm_{major.value}{minor.value}, {size.value / 2**30:.0f} GiB)")
    return _Driver((version.value // 1000, version.value % 1000 // 10), gpus)


def _driver_package() -> str:
    """The driver package's version from nvidia-smi, which knows it."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return ""
    query = [command, "--query-gpu=driver_version", "--format=csv,noheader"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(query, capture_output=True, text=True, timeout=20)
        if done.returncode == 0 and done.stdout.strip():
            return f"driver {done.stdout.split()[0]}, "
    return ""


def _check_driver(driver: _Driver | str | None) -> Check:
    if driver is None:
        return Check("GPU driver", "absent", "no NVIDIA driver", "Without a GPU everything runs on the CPU.")
    if isinstance(driver, str):
        return Check("GPU driver", "problem", driver, "Check the driver's installation with nvidia-smi.")
    text = f"{_driver_package()}CUDA {driver.version[0]}.{driver.version[1]}"
    if not driver.gpus:
        advice = "Check CUDA_VISIBLE_DEVICES, and that a container was given the GPU."
        return Check("GPU driver", "problem", f"{text}, but no GPU is visible", advice)
    return Check("GPU driver", "ok", f"{text}; {', '.join(driver.gpus)}")


def _extra(driver: _Driver | str | None) -> str:
    return "cuda12" if isinstance(driver, _Driver) and driver.version[0] < 13 else "cuda13"


def _check_nvrtc(driver: _Driver | str | None) -> Check:
    from gpuzoo.core import nvrtc

    takes = 1000 * driver.version[0] + 10 * driver.version[1] if isinstance(driver, _Driver) else None
    try:
        library = nvrtc.load(takes)
    except RuntimeError as error:
        status: Status = "absent" if driver is None else "problem"
        return Check("NVRTC", status, "no CUDA compiler whose programs the driver takes", str(error))
    return Check("NVRTC", "ok", f"{nvrtc.version(library)}, {library._name}")


def _check_cupy(driver: _Driver | str | None) -> Check:
    install = f"pip install 'gpuzoo[{_extra(driver)}]'"
    if importlib.util.find_spec("cupy") is None:
        status: Status = "absent" if driver is None else "problem"
        return Check("CuPy", status, "not installed", "Only needed for a GPU." if driver is None else f"{install}.")
    try:
        import cupy

        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # whatever a broken installation raises
        status = "absent" if driver is None else "problem"
        return Check("CuPy", status, f"installed, but sees no GPU: {error}", "" if driver is None else f"{install}.")
    return Check("CuPy", "ok", f"{cupy.__version__}, sees {count} GPU{'s' * (count != 1)}")


def _check_torch(driver: _Driver | str | None) -> Check:
    if importlib.util.find_spec("torch") is None:
        return Check("PyTorch", "absent", "not installed", "For tensors and training: pip install 'gpuzoo[torch]'.")
    try:
        import torch
    except Exception as error:  # whatever a broken installation raises
        return Check("PyTorch", "problem", f"cannot be imported: {error}", "Install it again: pip install torch.")
    if torch.cuda.is_available():
        return Check("PyTorch", "ok", f"{torch.__version__}, sees {torch.cuda.get_device_name()}")
    if driver is None:
        return Check("PyTorch", "ok", f"{torch.__version__}, CPU")
    advice = "Install the build for your driver's CUDA: see pytorch.org/get-started."
    return Check("PyTorch", "problem", f"{torch.__version__}, does not see the GPU", advice)


def _check_compiler() -> Check:
    from gpuzoo.core.backend_cpu import find_compiler

    try:
        command = find_compiler()
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=120)
        lines = (done.stdout or done.stderr).strip().splitlines() or [""]
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} fails: {lines[0]}")
    except RuntimeError as error:
        return Check("C++ compiler", "problem", "none that works", str(error))
    except (OSError, subprocess.SubprocessError) as error:
        return Check("C++ compiler", "problem", str(error), "Check CXX.")
    return Check("C++ compiler", "ok", f"{lines[0]}, {' '.join(command)}")


def _check_cache() -> Check:
    from gpuzoo.core.cache import cache_root

    try:
        root = cache_root()
        root.mkdir(parents=True, exist_ok=True)
        probe = root / f".probe-{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        return Check("Cache", "problem", str(error), "Set GPUZOO_CACHE_DIR to a folder that can be written.")
    files = [f.stat().st_size for f in root.rglob("*") if f.is_file()]
    return Check("Cache", "ok", f"{root}: {len(files)} files, {sum(files) / 2**20:.1f} MiB")


def _digest(device: str) -> tuple[str, float]:
    """A fingerprint of every array after some steps, and the seconds to the end of the first step."""
    from gpuzoo import registry
    from gpuzoo.core.simulator import Simulator
    from gpuzoo.tools.doctor_game import empty_cache

    start = time.perf_counter()
    with empty_cache():
        sim = Simulator(registry.get(_GAME), 256, device=device, autoreset_mode="same_step")
    try:
        sim.reset(seed=0)
        sim.random_actions()
        sim.step()
        sim.synchronize()
        taken = time.perf_counter() - start
        sim.rollout(200)
        digest = hashlib.sha256()
        for name in sorted(sim.arrays):
            digest.update(sim.backend.to_numpy(sim.arrays[name]).tobytes())
        return digest.hexdigest(), taken
    finally:
        sim.close()


def _check_run(device: str, expected: dict[str, str], needs: str) -> Check:
    name = f"{_GAME} on {device}"
    try:
        digest, taken = _digest(device)
    except Exception as error:  # whatever the machine's problem is, it is to be reported
        first = str(error).strip().splitlines() or [type(error).__name__]
        return Check(name, "problem", " ".join(first[:2]), needs)
    others = {other for other, d in expected.items() if d != digest}
    expected[device] = digest
    if others:
        advice = "This must not happen: please report it with this table."
        return Check(name, "problem", f"runs, but with other bits than on {', '.join(sorted(others))}", advice)
    same = f", same bits as on {', '.join(d for d in expected if d != device)}" if len(expected) > 1 else ""
    return Check(name, "ok", f"compiled, first step after {taken:.2f} s, 200 more steps{same}")


def _check_module(name: str, distribution: str, purpose: str) -> Check:
    try:
        version = importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return Check(name, "absent", "not installed", f"For {purpose}: pip install 'gpuzoo[render]'.")
    return Check(name, "ok", version)


def _check_ffmpeg() -> Check:
    try:
        place = importlib.import_module("imageio_ffmpeg").get_ffmpeg_exe()
    except (ImportError, RuntimeError):
        return Check("ffmpeg", "absent", "imageio-ffmpeg not installed", "For .mp4: pip install 'gpuzoo[render]'.")
    return Check("ffmpeg", "ok", Path(place).name)


def checks() -> Iterator[Check]:
    """Looks at one thing after another."""
    import gymnasium
    import numpy as np
    import pettingzoo

    import gpuzoo

    python = f"Python {platform.python_version()}, {platform.platform()}"
    yield Check("gpuzoo", "ok", f"{gpuzoo.__version__}, {Path(gpuzoo.__file__).parent}, {len(gpuzoo.ids())} games")
    yield Check("Python", "ok" if sys.version_info >= (3, 10) else "problem", python)
    yield Check(
        "Libraries",
        "ok",
        f"NumPy {np.__version__}, Gymnasium {gymnasium.__version__}, PettingZoo {pettingzoo.__version__}",
    )
    driver = _cuda_driver()
    more: list[Callable[[], Check]] = [
        lambda: _check_driver(driver),
        lambda: _check_nvrtc(driver),
        lambda: _check_cupy(driver),
        lambda: _check_torch(driver),
        _check_compiler,
        _check_cache,
    ]
    for check in more:
        yield check()
    digests: dict[str, str] = {}
    yield _check_run("cpu", digests, "See the lines on the C++ compiler and the cache.")
    if isinstance(driver, _Driver) and driver.gpus:
        from gpuzoo.core.backend_cuda import available

        for k in range(len(driver.gpus) if available() else 1):
            yield _check_run(f"cuda:{k}", digests, "See the lines on the GPU driver, NVRTC and CuPy.")
    yield _check_module("Pillow", "pillow", "pictures and animations")
    yield _check_module("pygame", "pygame-ce", "windows")
    yield _check_ffmpeg()


def usable(report: list[Check]) -> bool:
    """Whether games run on some device."""
    return any(check.status == "ok" and check.name.startswith(_GAME) for check in report)


def as_json(report: list[Check]) -> dict[str, Any]:
    """The report as JSON has it."""
    return {"usable": usable(report), "checks": [dataclasses.asdict(check) for check in report]}
