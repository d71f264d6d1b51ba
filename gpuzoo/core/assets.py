"""Files that a game needs beside its rules: levels, tables, weights."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import io
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from gpuzoo.core.cache import cache_root
from gpuzoo.core.files import replacing

TIMEOUT = 20.0  # seconds without a byte
SLOWEST = 10_000  # bytes per second of a transfer that is not given up
STALE = 6 * 3600.0  # seconds after which an unfinished file is what a killed process left


@dataclasses.dataclass(frozen=True)
class Asset:
    """A file that a game needs, in the package or behind a URL, with its size and checksum.

    A file of the package lies beside the declaration. A file behind a URL is fetched at its first use, and kept in the
    cache. Size and checksum are checked before the content is used.

    Args:
        source: ``Path(__file__).with_name("levels.txt")``, or a URL (http, https or file).
        size: its size in bytes; no more are fetched.
        sha256: its checksum, as 64 hexadecimal digits.
        licence: its licence, such as ``"CC-BY-4.0"``, and its author.

    Raises:
        ValueError: the size, checksum, licence or URL is not valid.
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
        """The path of the file on this machine. The first call fetches it.

        Raises:
            FileNotFoundError: a file of the package is missing.
            ConnectionError: the URL cannot be reached, or does not answer in time.
            OSError: the cache cannot be written.
            RuntimeError: the file is not the declared one.
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
        if stat.st_size != self.size:
            return f"{stat.st_size} bytes"
        return _words(stat.st_size, _digest(path, stat.st_mtime_ns))


def kept(arrays: Mapping[str, ArrayLike]) -> Path:
    """A file in the cache, as ``np.savez`` writes it, for arrays that a user gives where a game takes a file.

    Its name follows from what is in the arrays, so the same arrays are one file.

    Raises:
        OSError: the cache cannot be written.
    """
    plain = {name: np.ascontiguousarray(arrays[name]) for name in sorted(arrays)}
    digest = hashlib.sha256()
    for name, array in plain.items():
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    target = cache_root() / "arrays" / f"{digest.hexdigest()[:32]}.npz"
    if not target.is_file():
        content = io.BytesIO()
        np.savez(content, **plain)  # type: ignore[arg-type]
        try:
            with replacing(target, STALE) as file:
                file.write(content.getvalue())
        except OSError as error:
            why = error.strerror or error
            raise OSError(f"{target} cannot be written ({why}): set GPUZOO_CACHE_DIR to a folder that can.") from error
    return target


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
    digest, size = hashlib.sha256(), 0
    with replacing(target, STALE) as file:
        for block in _blocks(url, asset.size, target):
            file.write(block)
            digest.update(block)
            size += len(block)
        found = _words(size, digest.hexdigest())
        if size > asset.size:
            found = f"more than {asset.size} bytes"
        if found != asset._wanted:
            raise RuntimeError(
                f"{url} gave {found}, not {asset._wanted}: it has changed or was damaged on the way; nothing was kept."
            )


def _blocks(url: str, limit: int, target: Path) -> Iterator[bytes]:
    """What a URL answers, up to some bytes beyond the limit.

    Raises:
        ConnectionError: it cannot be reached, or its answer does not end in time.
    """
    from http.client import HTTPException
    from urllib.request import Request, urlopen

    end, size = time.monotonic() + TIMEOUT + limit / SLOWEST, 0
    try:
        with urlopen(Request(url, headers={"User-Agent": "gpuzoo"}), timeout=TIMEOUT) as answer:
            while size <= limit and (block := answer.read1(1 << 16)):
                if time.monotonic() > end:
                    raise TimeoutError(f"after {size} of {limit} bytes it is too slow")
                size += len(block)
                yield block
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise ConnectionError(
            f"cannot fetch {url} ({reason}): connect this machine once, or put a copy of the file at {target}."
        ) from error
