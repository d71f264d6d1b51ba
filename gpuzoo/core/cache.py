"""Where gpuzoo keeps what it has made or fetched once: compiled programs, declarations that were read, assets."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_root() -> Path:
    """``$GPUZOO_CACHE_DIR``, or the user's cache directory. It need not exist."""
    return Path(os.environ.get("GPUZOO_CACHE_DIR") or platformdirs.user_cache_dir("gpuzoo"))
