"""Files that are whole at any time."""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: Path, stale: float = 0.0) -> Iterator[BinaryIO]:
    """A file that takes the place of ``path`` when all of it is on the disk, and leaves nothing behind otherwise.

    What killed processes left beside ``path`` is removed. Two processes that write the same ``path`` at the same time
    do not mix: unless they are through within ``stale``, one of them may fail.

    Args:
        path: its folder is made if need be.
        stale: seconds after which an unfinished file counts as left by a killed process.

    Yields:
        A file to write bytes to.

    Raises:
        OSError: whatever the file system says; ``path`` is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}.part"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - left.stat().st_mtime >= stale:
                left.unlink()
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # some network file systems refuse this; the file is whole all the same
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
