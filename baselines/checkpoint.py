"""Checkpoints: the tensors of a run in a .safetensors file, with what is to be known about them as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import gpuzoo
from baselines.command import existing
from gpuzoo.core.files import replacing

FORMAT = 2  # of what the trainers write; 1 was pickled


def save(path: str | os.PathLike[str], tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """Writes a checkpoint in one piece: whatever happens, ``path`` is the previous file or the new one, each whole.

    Args:
        path: of the file, which should end in ``.safetensors``; its folder is made if need be.
        tensors: of any shape, stride, device and dtype, also such that share memory; `load` gives the same bits.
        about: what JSON can hold; tuples come back as lists.

    Raises:
        TypeError: ``about`` holds something else.
        OSError: the disk is full or the like; the previous checkpoint is kept.
    """
    from safetensors.torch import save as serialize

    path = Path(path)
    told = json.dumps({"format": FORMAT, "version": gpuzoo.__version__, "about": about})
    copies = {
        name: tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    data = serialize(copies, {"gpuzoo": told})
    try:
        with replacing(path) as file:
            file.write(data)
    except OSError as error:
        kept = "the previous one is kept" if path.exists() else "there is none before it"
        raise OSError(error.errno, f"cannot write the checkpoint {path}, {kept}: {error.strerror or error}.") from error


def load(path: str | os.PathLike[str], device: torch.device | str = "cpu") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Reads a checkpoint.

    Args:
        path: of the file.
        device: where the tensors shall be.

    Returns:
        The tensors and ``about``, as they were given to `save`.

    Raises:
        ValueError: no such file, or one that is not a whole checkpoint of this format.
    """
    from safetensors import SafetensorError, safe_open

    path = existing(path)
    try:
        with safe_open(path, "pt") as file:
            told = json.loads((file.metadata() or {}).get("gpuzoo", "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, it is no dictionary
            if told.get("format") == FORMAT:
                return {name: x.to(device, copy=True) for name, x in tensors.items()}, told["about"]
    except OSError as error:
        raise ValueError(f"cannot read the checkpoint {path}: {error.strerror or error}.") from error
    except SafetensorError as error:
        with path.open("rb") as raw:
            begun = raw.read(9)[8:] == b"{"  # after 8 bytes with the length of a JSON header
        fault = "was cut off or damaged" if begun else f"is not a checkpoint of gpuzoo (format {FORMAT}, .safetensors)"
        raise ValueError(f"{path} {fault}: {error}.") from error
    if not told:
        raise ValueError(f"{path} is a .safetensors file, but not a checkpoint of gpuzoo.")
    raise ValueError(
        f"{path} is a checkpoint of format {told.get('format')} from gpuzoo {told.get('version')}, but gpuzoo "
        f"{gpuzoo.__version__} reads format {FORMAT}: use the version that wrote it, or train anew."
    )


def check(about: Mapping[str, Any], expected: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Refuses a checkpoint that is not about the same as the run.

    Args:
        about: of the checkpoint, from `load`.
        expected: what the run has for some of its keys.
        path: of the checkpoint.

    Raises:
        ValueError: something differs; the message says what, and both values.
    """
    plain = json.loads(json.dumps(expected))
    for have, want in _differences({key: about[key] for key in plain if key in about}, plain):
        raise ValueError(
            f"the checkpoint {path} has {have}, but this run has {want}: go on with the same, or begin a new run."
        )


def below(found: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): x for name, x in found.items() if name.startswith(prefix)}


def latest(folder: str | os.PathLike[str]) -> Path | None:
    """The checkpoint of a folder that was written last, or None."""
    found = Path(folder).glob("*.safetensors")
    return max(found, key=lambda path: (path.stat().st_mtime_ns, path.name), default=None)


def _differences(have: Any, want: Any, words: str = "") -> Iterator[tuple[str, str]]:
    """Where two JSON values differ: what each of them has there, in words."""
    if isinstance(have, dict) and isinstance(want, dict):
        for key in {**want, **have}:
            inner = f"{words} {key.replace('_', ' ')}".lstrip()
            if key in have and key in want:
                yield from _differences(have[key], want[key], inner)
            else:
                told, missing = f"{inner} {json.dumps({**have, **want}[key])}", f"no {inner}"
                yield (told, missing) if key in have else (missing, told)
    elif json.dumps(have) != json.dumps(want) and have != want:  # as texts too, since NaN is not equal to itself
        yield f"{words} {json.dumps(have)}", f"{words} {json.dumps(want)}"
