"""Pretrained agents: for many games a small checkpoint in ``baselines/pretrained``.

Such a file is a checkpoint with the policies' weights alone, in half precision where that keeps the returns. It has the
returns that they had when it was written, too. As every checkpoint it has a checksum, and reading it runs no code.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from . import checkpoint

#: options that say where a run went, not what it learned
ASIDE = ("device", "out", "resume", "threads", "track", "video")


def write(
    source: Path, target: Path, returns: Mapping[str, Any] | None = None, dtype: torch.dtype = torch.float16
) -> None:
    """Writes the part of a run's checkpoint that its agents need to play.

    Args:
        source: the checkpoint of a run without a population.
        target: the small file.
        returns: their scores.
        dtype: of the matrices. Biases and running statistics keep theirs.

    Raises:
        ValueError: no such checkpoint, or one of a population.
    """
    tensors, about = checkpoint.load_run(source)
    if about["args"]["population"] != 1:
        raise ValueError(f"{source} holds {about['args']['population']} members: train one for a pretrained agent.")
    kept = {k: _short(x, dtype) for k, x in tensors.items() if k.startswith("policy/") and "/weights/" in k}
    args = {k: v for k, v in about["args"].items() if k not in ASIDE}
    said = {k: about[k] for k in ("game", "config", "policies", "steps", "iteration")}
    checkpoint.save(target, kept, {**said, "run": {}, "args": args, "returns": dict(returns or {})})


def _short(x: Tensor, dtype: torch.dtype) -> Tensor:
    """A matrix of each member in another precision; what is no matrix is small."""
    return x.to(dtype) if x.ndim > 2 and x.is_floating_point() and x.shape[1] > 1 else x
