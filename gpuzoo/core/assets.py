"""Files that a game needs beside its rules: levels, tables, weights."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import re
import tempfile
import time
from pathlib import Path
from typing import IO

from gpuzoo.core.cache import cache_root

TIMEOUT = 20.0  # seconds without a byte
SLOWEST = 10_000  # bytes per second of a transfer that is not given up


@dataclasses.dataclass(frozen=True)
class Asset:
    """A file that a game needs, in the package or behind a URL, and how it is known to be whole.

    A file of the package lies beside the declaration. One behind a URL is fetched when it is first asked for, and kept
    in the cache. Size and checksum are compared before anybody sees the content.

    Args:
        source: ``Path(__file__).with_name("levels.txt")``, or a URL (http, https or file).
        size: its bytes; no more are fetched.
        sha256: its checksum, as 64 hexadecimal digits.
        licence: under which it may be used, such as ``"CC-BY-4.0"``, and by whom it is.

    Raises:
        ValueError: a size, checksum, licence or URL that is none.
    """

    source: str | Path
    size: int
    sha256: str
    licence: str

    def __post_init__(self) -> None:
        if isinstance(self.source, str) and not re.match(r"(https?|file)://", self.source):
            raise ValueError(f"an asset's source is a Path or a URL of http, https or file, not {self.source!r}.")
        if not isinstance(self.size, int) or self.size < 1:
            raise ValueError(f"{self.source}: an asset's size is its number of bytes, not {self.size!r}.")
        if not re.fullmatch(r"[0-9a-f]{64}", self.sha256):
            raise ValueError(f"{self.source}: an asset's sha256 is 64 hexadecimal digits, not {self.sha256!r}.")
        if not self.licence.strip():
            raise ValueError(f"{self.source}: say under which licence the asset may be used.")

    def path(self) -> Path:
        """Where the whole file lies on this machine. It is fetched if that was not done before.

        Raises:
            FileNotFoundError: a file of the package is missing.
            ConnectionError: the URL cannot be reached, or its answer does not end in time.
            OSError: the cache cannot be written.
            RuntimeError: the file is not the one that was declared.
        """
        if isinstance(self.source, Path):
            if not self.source.is_file():
                raise FileNotFoundError(f"{self.source} is missing: install the package again.")
            found = self._describe(self.source)
            if found != self._wanted:
                raise RuntimeError(f"{self.source} has {found}, not {self._wanted}: install the package again.")
            return self.source
        name = re.sub(r"[^\w.-]", "_", self.source.rpartition("/")[2])[-80:] or "asset"
        target = cache_root() / "assets" / f"{self.sha256[:20]}-{name}"
        if not target.is_file() or self._describe(target) != self._wanted:
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                _fetch(self, self.source, target)
            except ConnectionError:
                raise
            except OSError as error:
                why = error.strerror or error
                raise OSError(
                    f"{target} cannot be written ({why}): set GPUZOO_CACHE_DIR to a folder that can."
                ) from error
        return target

    def read(self) -> bytes:
        """The content. Raises what `path` raises."""
        return self.path().read_bytes()

    @property
    def _wanted(self) -> str:
        return _words(self.size, self.sha256)

    def _describe(self, path: Path) -> str:
        stat = path.stat()
        return _words(stat.st_size, _digest(path, stat.st_mtime_ns) if stat.st_size == self.size else "another")


def _words(size: int, digest: str) -> str:
    return f"{size} bytes with the sha256 {digest}"


@functools.lru_cache(maxsize=1024)
def _digest(path: Path, changed: int) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def _fetch(asset: Asset, url: str, target: Path) -> None:
    """Puts the file into its place in the cache, whole or not at all."""
    from http.client import HTTPException

    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        part = Path(folder) / "part"
        try:
            with part.open("wb") as file:
                size, digest = _copy(url, file, asset.size)
                file.flush()
                os.fsync(file.fileno())
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise ConnectionError(
                f"cannot fetch {url} ({reason}): connect this machine once, or put a copy of the file at {target}."
            ) from error
        found = _words(size, digest)
        if size > asset.size:
            found = f"more than {asset.size} bytes"
        if found != asset._wanted:
            raise RuntimeError(
                f"{url} gave {found}, not {asset._wanted}: it has changed or was damaged on the way; nothing was kept."
            )
        os.replace(part, target)


def _copy(url: str, file: IO[bytes], limit: int) -> tuple[int, str]:
    """Copies what a URL answers, up to a byte beyond the limit; its size and checksum."""
    from urllib.request import Request, urlopen

    end = time.monotonic() + TIMEOUT + limit / SLOWEST
    found, size = hashlib.sha256(), 0
    with urlopen(Request(url, headers={"User-Agent": "gpuzoo"}), timeout=TIMEOUT) as answer:
        while size <= limit and (block := answer.read1(1 << 16)):
            if time.monotonic() > end:
                raise TimeoutError(f"after {size} of {limit} bytes it is too slow")
            file.write(block)
            found.update(block)
            size += len(block)
    return size, found.hexdigest()
