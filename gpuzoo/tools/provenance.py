"""Where a measurement comes from."""

from __future__ import annotations

import platform
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from gpuzoo.core.backend import Backend


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _commit() -> str | None:
    """The commit of the checkout that this package lies in, with ``+`` if it was changed since."""
    root = Path(__file__).parents[2]

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout

    try:
        if Path(git("rev-parse", "--show-toplevel").strip()) != root.resolve():
            return None
        changed = git("status", "--porcelain", "--untracked-files=no").strip()
        return git("rev-parse", "--short=10", "HEAD").strip() + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def describe(backend: Backend) -> dict[str, Any]:
    """Where and what is measured: processor, cores, GPU, versions, commit and command."""
    import gpuzoo
    from gpuzoo.core.backend_cpu import available_threads

    row: dict[str, Any] = {
        "kind": "machine",
        "device": backend.device,
        "cpu": _cpu_model(),
        "cores": available_threads(),
        "threads": getattr(backend, "threads", None),
        "gpu": None,
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "gpuzoo": gpuzoo.__version__,
        "commit": _commit(),
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    if backend.device.startswith("cuda"):
        properties = backend.xp.cuda.runtime.getDeviceProperties(int(backend.device.partition(":")[2]))
        row["gpu"] = properties["name"].decode()
        row["cupy"] = backend.xp.__version__
    return row
