"""What can be said of Windows and macOS without them: imports need no POSIX, text is UTF-8, and zig links for both."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gpuzoo
from gpuzoo.core import backend_cpu
from gpuzoo.core.codegen import program

ROOT = Path(__file__).parents[1]

#: Python as on Windows, as far as gpuzoo can tell. What other libraries need of POSIX is imported before.
WINDOWS = """
import importlib, os, pkgutil, sys, warnings
import asyncio, gymnasium, multiprocessing, numpy, pettingzoo, rich.console, rich.table, subprocess, typer
extras = "PIL.Image matplotlib.pyplot pygame safetensors stable_baselines3 torch websockets.sync.server"
for extra in extras.split():
    try:
        importlib.import_module(extra)
    except ImportError:
        pass
posix = "crypt fcntl grp posix pty pwd resource syslog termios tty".split()
sys.modules |= dict.fromkeys(posix)  # None: it cannot be imported
for name in "fork geteuid getuid killpg register_at_fork sched_getaffinity uname".split():
    delattr(os, name)
sys.platform = "win32"
warnings.filterwarnings("error", category=EncodingWarning, module="gpuzoo")

import gpuzoo

count = 0
for module in pkgutil.walk_packages(gpuzoo.__path__, "gpuzoo."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
            count += 1
        except ImportError as error:  # an adapter without its library
            missing = error.__cause__ or error
            assert missing.name not in posix, error
for name in gpuzoo.ids():
    gpuzoo.get(name)
envs = gpuzoo.make("TagContinuous-v0", num_envs=2, device="cpu")
envs.reset(seed=0)
envs.step(envs.random_actions())
print(count)
"""


@pytest.mark.rotates
def test_nothing_posix_is_needed(tmp_path: Path) -> None:
    """With an empty cache, so that files are written, too. On Windows their encoding must be named."""
    surroundings = {**os.environ, "GPUZOO_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-X", "warn_default_encoding", "-c", WINDOWS]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=surroundings)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 150, "most of the package was imported"


@pytest.mark.rotates
@pytest.mark.parametrize(
    ("target", "cpu", "begins"),
    [("x86_64-windows-gnu", "x86_64_v3", b"MZ"), ("aarch64-macos", "apple_m1", b"\xcf\xfa\xed\xfe")],
)
def test_a_game_links_for_other_systems(target: str, cpu: str, begins: bytes, monkeypatch, tmp_path: Path) -> None:
    """With the usual flags, by zig, which has the headers and import libraries of both."""
    pytest.importorskip("ziglang")
    monkeypatch.setenv("CXX", f"{sys.executable} -m ziglang cc -target {target}")
    monkeypatch.setenv("GPUZOO_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(backend_cpu, "FLAGS", [x.replace("native", cpu) for x in backend_cpu.FLAGS])
    game = gpuzoo.get("SimpleSpread-v0")
    library = backend_cpu.compile_host(program(game, game.Config()).code, game.id).read_bytes()
    assert library.startswith(begins)
    assert b"gz_launch_step" in library
