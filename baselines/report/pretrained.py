"""Pretrained agents: for many games a small checkpoint in ``baselines/pretrained``.

Such a file is a checkpoint with the policies' weights alone, in half precision where that keeps the returns. It has the
returns that they had when it was written, too. As every checkpoint it has a checksum, and reading it runs no code.
Networks of AlphaZero, which need a search to play, have a folder of their own, ``baselines/networks``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpuzoo import registry
from gpuzoo.core.definition import EnvDef

from ..train.loading import is_scale
from . import checkpoint

#: options that say where a run went, not what it learned
ASIDE = ("device", "out", "resume", "threads", "track", "video")

NETWORKS = Path(__file__).parents[1] / "networks"


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
    kept = {k: _short(x, dtype) for k, x in tensors.items() if _plays(k, about["policies"])}
    args = {k: v for k, v in about["args"].items() if k not in ASIDE}
    said = {k: about[k] for k in ("game", "config", "policies", "steps", "iteration")}
    checkpoint.save(target, kept, {**said, "run": {}, "args": args, "returns": dict(returns or {})})


def _plays(name: str, policies: Mapping[str, Any]) -> bool:
    """Whether a policy needs a tensor of a checkpoint in order to play; a set's scale tells how much it sees."""
    of, _, weight = name.partition("/weights/")
    form = policies[of.removeprefix("policy/")]["form"] if weight and of.startswith("policy/") else None
    return form is not None and (form["normalize"] or form["encoder"] == "set" or not is_scale(weight))


def write_network(source: Path, target: Path) -> None:
    """Writes a network of `baselines.alphazero` in half precision, for `network_of`.

    Args:
        source: what the run left, ``network.safetensors``.
        target: the smaller file.

    Raises:
        ValueError: no such checkpoint, or one of another trainer.
    """
    tensors, about = checkpoint.load(source)
    if "alphazero" not in about:
        raise ValueError(f"{source} is a checkpoint, but not one of baselines.alphazero.")
    args = {k: v for k, v in about["alphazero"].items() if k not in ASIDE}
    short = {k: x.half() if x.ndim > 1 else x for k, x in tensors.items()}
    checkpoint.save(target, short, {"alphazero": args, "moves": about["moves"]})


def network_of(game: str | EnvDef | type[EnvDef]) -> Path:
    """The file of the network that comes with the package for a game, for `baselines.alphazero.load`.

    Raises:
        ValueError: there is none.
    """
    env = registry.get(game)
    path = NETWORKS / f"{env.id}.safetensors"
    if not path.is_file():
        known = ", ".join(sorted(other.stem for other in NETWORKS.glob("*.safetensors")))
        raise ValueError(f"no network for {env.id} comes with the package. There are some for {known}.")
    return path


def _short(x: Tensor, dtype: torch.dtype) -> Tensor:
    """A matrix of each member in another precision; what is no matrix is small."""
    return x.to(dtype) if x.ndim > 2 and x.is_floating_point() and x.shape[1] > 1 else x
