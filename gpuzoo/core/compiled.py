"""Compiled programs in the cache: found whole, or built and kept.

A file beside each program holds its checksum. One that does not fit was damaged, and the program is built again.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import re
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from gpuzoo.core.cache import cache_root
from gpuzoo.core.files import replacing

STALE = 6 * 3600.0  #: seconds after which unfinished work is what a killed process left
_WORK = "work-"
_FOLDER = re.compile(r'^(#line \d+ ").*/', re.M)
_UNFINISHED = re.compile(rf"{_WORK}\w+|tmp\w{{8}}|\..+\.part")  # `tmp` is what earlier versions left
_found: set[Path] = set()  #: programs whose checksum was right, which is looked at once


def without_folders(code: str) -> str:
    """A translation unit without the folders of its ``#line`` marks, which are no part of the program."""
    return _FOLDER.sub(r"\1", code)


def compiled(kind: str, name: str, suffix: str, key: str, build: Callable[[Path], bytes]) -> Path:
    """The path of a program, built now if it is not in the cache.

    Files appear whole or not at all, so several processes may build the same program at once. Where the cache cannot be
    written, the program goes into a temporary folder of this process, with one warning.

    Args:
        kind: folder of the cache.
        name: what the file's name begins with.
        suffix: what it ends with.
        key: all that the program follows from. The folders of its ``#line`` marks do not count, so two copies of a game
            share one program.
        build: makes the program; it is given an empty folder to work in.

    Raises:
        RuntimeError: the one of ``build``.
    """
    short = hashlib.sha256(without_folders(key).encode()).hexdigest()[:20]
    file = f"{name}-{short}{suffix}"
    target = cache_root() / kind / file
    if _is_whole(target):
        return target
    if _temporary.cache_info().currsize and _is_whole(_temporary() / kind / file):
        return _temporary() / kind / file
    try:
        return _built(target, build)
    except OSError as error:
        _warn(target.parent, error.strerror or str(error))
        return _built(_temporary() / kind / file, build)


def _sum(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _is_whole(path: Path) -> bool:
    if path in _found:
        return path.exists()
    try:
        whole = hashlib.sha256(path.read_bytes()).hexdigest() == _sum(path).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
    if whole:
        _found.add(path)
    return whole


def _built(target: Path, build: Callable[[Path], bytes]) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target.parent)
    with tempfile.TemporaryDirectory(prefix=_WORK, dir=target.parent, ignore_cleanup_errors=True) as folder:
        program = build(Path(folder))
    with replacing(target, STALE) as file:
        os.chmod(file.name, 0o755)
        file.write(program)
    with replacing(_sum(target), STALE) as file:
        file.write(hashlib.sha256(program).hexdigest().encode())
    _found.add(target)
    return target


@functools.cache
def _sweep(folder: Path) -> None:
    """Removes what killed processes left, once."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if _UNFINISHED.fullmatch(path.name) and time.time() - path.stat().st_mtime > STALE:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


@functools.cache
def _temporary() -> Path:
    path, pid = Path(tempfile.mkdtemp(prefix="gpuzoo-cache-")), os.getpid()
    # Not when the child of a fork ends.
    atexit.register(lambda: shutil.rmtree(path, ignore_errors=True) if os.getpid() == pid else None)
    return path


@functools.cache
def _warn(folder: Path, reason: str) -> None:
    warnings.warn(
        f"the cache folder {folder} cannot be written ({reason}): what this process compiles goes into {_temporary()} "
        "and is lost at its end. Set GPUZOO_CACHE_DIR to a folder that can be written.",
        stacklevel=2,
    )
