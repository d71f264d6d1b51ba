"""The text of translation units that are no games: the engine's headers, and kernels by ``launch.cuh``."""

from __future__ import annotations

from pathlib import Path

from gpuzoo.core.headers import DEVICE


def unit_code(*parts: Path | str) -> str:
    """A translation unit.

    Args:
        parts: files, or code itself, which stand in this order after the engine's headers.
    """
    return "\n".join(
        [
            "#define LANES 1",
            _text(DEVICE / "base.cuh"),
            "#ifdef GZ_SIMT",
            _text(DEVICE / "simt.cuh"),
            "#endif",
            _text(DEVICE / "math.cuh"),
            _text(DEVICE / "rng.cuh"),
            "#if !defined(GZ_CUDA) && !defined(GZ_SIMT)",
            _text(DEVICE / "threads.cuh"),
            "#endif",
            _text(DEVICE / "launch.cuh"),
            *(_text(part) if isinstance(part, Path) else part for part in parts),
            "",
        ]
    )


def _text(path: Path) -> str:
    return f'#line 1 "{path.name}"\n{path.read_text(encoding="utf-8")}'
