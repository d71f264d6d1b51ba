"""Checkpoints: the tensors of a run in a .safetensors file, with metadata as JSON."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

import gpuzoo
from gpuzoo.core.files import replacing

from ..train.command import existing

FORMAT = 3  # of what the trainers write; 1 was pickled, 2 had no checksum
HEADER = 1 << 24  #: bytes that the header may have: enough for any run, and parsed within a second


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
    told = {"format": FORMAT, "version": gpuzoo.__version__, "about": about}
    copies = {
        name: tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    data = serialize(copies, {"gpuzoo": json.dumps({**told, "sha256": _checksum(told, copies)})})
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
        device: of the tensors.

    Returns:
        The tensors and ``about``, as they were given to `save`.

    Raises:
        ValueError: no such file, or one that is not a whole checkpoint of this format.
    """
    from safetensors.torch import load as deserialize

    path = existing(path)
    try:
        # One file from here on: a run that is being trained may put the next checkpoint in its place.
        with path.open("rb") as file:
            told = _metadata(file)
            file.seek(0)
            tensors = deserialize(file.read())
        if isinstance(told, dict) and told.get("format") == FORMAT:
            if told.pop("sha256", None) != _checksum(told, tensors):
                raise ValueError("its checksum does not match")
            return {name: x.to(device) for name, x in tensors.items()}, dict(told["about"])
    except OSError as error:
        raise ValueError(f"cannot read the checkpoint {path}: {error.strerror or error}.") from error
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # of whatever kind: a damaged file can lead anywhere
        with path.open("rb") as raw:
            begun = raw.read(9)[8:] == b"{"  # after 8 bytes with the length of a JSON header
        fault = "was cut off or damaged" if begun else f"is not a checkpoint of gpuzoo (format {FORMAT}, .safetensors)"
        raise ValueError(f"{path} {fault}: {error}.") from error
    if not told or not isinstance(told, dict):
        raise ValueError(f"{path} is a .safetensors file, but not a checkpoint of gpuzoo.")
    raise ValueError(
        f"{path} is a checkpoint of format {told.get('format')} from gpuzoo {told.get('version')}, but gpuzoo "
        f"{gpuzoo.__version__} reads format {FORMAT}: use the version that wrote it, or train anew."
    )


def _metadata(file: BinaryIO) -> Any:
    """The run's description in the header.

    It refuses a length that a small file, or any checkpoint, cannot have, before anybody allocates it.
    """
    size = int.from_bytes(file.read(8), "little")
    if not 1 < size <= min(HEADER, os.fstat(file.fileno()).st_size - 8):
        raise ValueError(f"its header cannot have {size} bytes")
    return json.loads((json.loads(file.read(size)).get("__metadata__") or {}).get("gpuzoo", "{}"))


def _checksum(told: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    found = hashlib.sha256(json.dumps(told).encode())
    for name, x in sorted(tensors.items()):
        found.update(json.dumps([name, str(x.dtype), list(x.shape)]).encode())
        found.update(x.reshape(-1).view(torch.uint8).numpy().data if x.numel() else b"")
    return found.hexdigest()


# ---- what the trainers tell ----

_COUNT: Any = (int, lambda x: 0 <= x < 2**63)
_TEXT: Any = (str, lambda x: True)
_FORM = {
    "hidden": [_COUNT], "encoder": _TEXT, "channels": [_COUNT], "memory": _COUNT, "activation": _TEXT, "critic": _TEXT,
    "normalize": (bool, lambda x: True), "state_size": _COUNT, "seats": _COUNT,
}  # fmt: skip
_POLICY = {"observation space": _TEXT, "action space": _TEXT, "form": _FORM}
_ABOUT = {
    "game": _TEXT, "config": {}, "run": {}, "steps": _COUNT, "iteration": _COUNT, "policies": {...: _POLICY},
    "args": {"population": (int, lambda x: 1 <= x < 2**31), "config": {}, "policies": {...: _TEXT}},
}  # fmt: skip


def load_run(path: str | os.PathLike[str]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Reads a checkpoint that a trainer wrote.

    Raises:
        ValueError: as `load`; or one that does not say what trainers say, such as a negative number of steps.
    """
    tensors, about = load(path)
    seconds = about.setdefault("seconds", 0.0)  # a trainer that saves by itself tells none
    wrong = next(_faults(about, _ABOUT, ""), "")
    if not wrong and (type(seconds) not in (int, float) or not 0 <= seconds < math.inf):
        wrong = f"seconds cannot be {seconds!r}"
    if not wrong and not about["policies"]:
        wrong = "policies are missing"
    if wrong:
        raise ValueError(f"{path} was not written by a trainer, or was changed: {wrong}.")
    return tensors, about


def _faults(found: Any, form: Any, name: str) -> Iterator[str]:
    """The part of a JSON value that does not have the required form."""
    if isinstance(form, tuple):
        kind, holds = form
        if type(found) is not kind or not holds(found):
            yield f"{name.strip()} cannot be {json.dumps(found)[:100]}"
    elif isinstance(form, list):
        if not isinstance(found, list):
            yield f"{name.strip()} must be a list"
        else:
            for k, value in enumerate(found):
                yield from _faults(value, form[0], f"{name} {k}")
    elif not isinstance(found, dict):
        yield f"{name.strip() or 'this'} must be a dictionary"
    else:
        for key in found if ... in form else form:
            if key in found:
                yield from _faults(found[key], form.get(key, form.get(...)), f"{name} {key}")
            else:
                yield f"{name.strip()} {key} is missing".strip()


def check_tensors(found: Mapping[str, Tensor], expected: Mapping[str, Tensor], path: str | os.PathLike[str]) -> None:
    """Refuses tensors whose names, shapes or dtypes differ from those of others.

    Raises:
        ValueError: they have not; the message names the first.
    """
    for name in sorted({*found, *expected}):
        have, want = (
            f"{x.dtype} {tuple(x.shape)}" if x is not None else "none" for x in (found.get(name), expected.get(name))
        )
        if have != want:
            raise ValueError(f"the checkpoint {path} does not fit this run: for the tensor {name!r} it has {have}, "
                             f"and this run has {want}.")  # fmt: skip


def check(about: Mapping[str, Any], expected: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Refuses a checkpoint of another kind of run.

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


def same(have: Any, want: Any) -> bool:
    """Whether two JSON values, or what becomes one, are equal."""
    return not [*_differences(*(json.loads(json.dumps(x)) for x in (have, want)))]


def below(found: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): x for name, x in found.items() if name.startswith(prefix)}


def latest(folder: str | os.PathLike[str]) -> Path | None:
    """The checkpoint of a folder that was written last, or None."""
    found = Path(folder).glob("*.safetensors")
    return max(found, key=lambda path: (path.stat().st_mtime_ns, path.name), default=None)


def _differences(have: Any, want: Any, words: str = "") -> Iterator[tuple[str, str]]:
    """The first difference between two JSON values, in words."""
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
