"""Damaged and hostile checkpoints: each gives one ValueError, soon and without much memory, and changes nothing."""

from __future__ import annotations

import json
import math
import resource
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys.nim import Nim

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from training import small  # noqa: E402

from baselines.ppo import PPO  # noqa: E402
from baselines.report import checkpoint  # noqa: E402
from baselines.report.match import arrange  # noqa: E402

SECONDS, MEGABYTES = 5.0, 600


def make(**values: Any) -> PPO:
    return PPO(small(Nim, num_envs=16, num_steps=4, total_steps=640, pool=2, pool_every=1, **values))


@pytest.fixture(scope="module")
def trainer() -> Iterator[PPO]:
    trainer = make()
    yield trainer
    trainer.close()


@pytest.fixture(scope="module")
def whole(trainer: PPO, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file that fits the trainer, which has gone on since."""
    path = tmp_path_factory.mktemp("checkpoint") / "whole.safetensors"
    trainer.iterate()
    trainer.iterate()
    trainer.save(path, seconds=1.5)
    trainer.iterate()
    return path.read_bytes()


def parts(data: bytes) -> tuple[dict[str, Any], bytes]:
    size = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def joined(header: Any, body: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def in_header(change: Callable[[dict[str, Any]], Any]) -> Callable[[bytes, Path], bytes]:
    """A fault in the header's JSON."""

    def damaged(data: bytes, path: Path) -> bytes:
        header, body = parts(data)
        change(header)
        return joined(header, body)

    return damaged


def in_text(old: bytes, new: bytes) -> Callable[[bytes, Path], bytes]:
    def damaged(data: bytes, path: Path) -> bytes:
        header, body = parts(data)
        text = json.dumps(header).encode()
        assert old in text
        return joined(text.replace(old, new, 1), body)

    return damaged


def written(change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> Callable[[bytes, Path], bytes]:
    """What somebody else wrote on purpose: its checksum is right."""

    def hostile(data: bytes, path: Path) -> bytes:
        path.write_bytes(data)
        tensors, about = checkpoint.load(path)
        change(tensors, about)
        checkpoint.save(path, tensors, about)
        return path.read_bytes()

    return hostile


def tensor(name: str, change: Callable[[Any], Any]) -> Callable[[bytes, Path], bytes]:
    def changed(tensors: dict[str, Any], about: dict[str, Any]) -> None:
        (found,) = [n for n in tensors if n == name] or sorted(n for n in tensors if n.startswith(name))[:1]
        tensors[found] = change(tensors[found])

    return written(changed)


def about(*keys: str, value: Any) -> Callable[[bytes, Path], bytes]:
    def changed(tensors: dict[str, Any], about: dict[str, Any]) -> None:
        for key in keys[:-1]:
            about = about[key]
        assert keys[-1] in about
        about[keys[-1]] = value

    return written(changed)


def without(*keys: str) -> Callable[[bytes, Path], bytes]:
    def changed(tensors: dict[str, Any], about: dict[str, Any]) -> None:
        for key in keys[:-1]:
            about = about[key]
        del about[keys[-1]]

    return written(changed)


def first(header: dict[str, Any]) -> dict[str, Any]:
    return next(v for k, v in sorted(header.items()) if k != "__metadata__")


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


ENV = "process/0/env"
FORM = ("policies", "player", "form")
FAULTS: dict[str, Callable[[bytes, Path], bytes]] = {
    # cut off
    "empty": lambda data, path: b"",
    "seven bytes": lambda data, path: data[:7],
    "the length alone": lambda data, path: data[:8],
    "half a header": lambda data, path: data[:200],
    "no body": lambda data, path: data[: -len(parts(data)[1])],
    "half a body": lambda data, path: data[: -len(parts(data)[1]) // 2],
    "a byte less": lambda data, path: data[:-1],
    "a byte more": lambda data, path: data + b"\0",
    "zeros": lambda data, path: bytes(len(data)),
    "twice": lambda data, path: data + data,
    # the header's length
    "a huge header": lambda data, path: struct.pack("<Q", 2**63) + data[8:],
    "a header of 90 MB": lambda data, path: struct.pack("<Q", 90 << 20) + b"{" + b" " * (90 << 20) + data[8:],
    "a header of all": lambda data, path: struct.pack("<Q", len(data) - 8) + data[8:],
    "a header of nothing": lambda data, path: struct.pack("<Q", 0) + data[8:],
    "a header one shorter": lambda data, path: struct.pack("<Q", struct.unpack("<Q", data[:8])[0] - 1) + data[8:],
    # its JSON
    "no JSON": lambda data, path: joined(b"{nonsense}", parts(data)[1]),
    "a list": lambda data, path: joined(b"[]", parts(data)[1]),
    "a number": lambda data, path: joined(b"{}1", parts(data)[1]),
    "no UTF-8": lambda data, path: joined(b'{"\xff\xfe": 1}', parts(data)[1]),
    "deep": lambda data, path: joined(b'{"a":' + nested(100_000) + b"}", parts(data)[1]),
    "NaN": in_text(b'"data_offsets": [', b'"data_offsets": [NaN, '),
    "no metadata": in_header(lambda header: header.pop("__metadata__")),
    "metadata of numbers": in_header(lambda header: header.update(__metadata__={"gpuzoo": 3})),
    "metadata without JSON": in_header(lambda header: header["__metadata__"].update(gpuzoo="{")),
    "metadata of a list": in_header(lambda header: header["__metadata__"].update(gpuzoo="[1]")),
    "deep metadata": in_header(lambda header: header["__metadata__"].update(gpuzoo=nested(100_000).decode())),
    "a long number": in_header(lambda header: header["__metadata__"].update(gpuzoo="9" * 100_000)),
    "no about": in_header(lambda header: header["__metadata__"].update(gpuzoo='{"format": 3}')),
    "no checksum": in_text(b"sha256", b"sha257"),
    "another number of steps": in_text(rb"\"steps\": ", rb"\"steps\": 9"),
    # its tensors
    "a huge shape": in_header(lambda header: first(header).update(shape=[2**40, 2**40])),
    "a shape that overflows": in_header(lambda header: first(header).update(shape=[2**63, 2])),
    "a negative shape": in_header(lambda header: first(header).update(shape=[-1])),
    "a shape of text": in_header(lambda header: first(header).update(shape="big")),
    "another dtype": in_header(lambda header: first(header).update(dtype="F64")),
    "no dtype": in_header(lambda header: first(header).update(dtype="COMPLEX999")),
    "offsets beyond the end": in_header(lambda header: first(header).update(data_offsets=[0, 2**50])),
    "offsets that overlap": in_header(lambda header: first(header).update(data_offsets=[0, 1 << 10])),
    "a missing tensor": in_header(lambda header: header.pop(next(k for k in sorted(header) if k != "__metadata__"))),
    "another name": in_text(b'"counter"', b'"countes"'),
    # with a right checksum
    "a tensor less": written(lambda tensors, about: tensors.pop("counter")),
    "a tensor more": written(lambda tensors, about: tensors.update(more=torch.zeros(3))),
    "an array of the envs less": written(lambda tensors, about: tensors.pop(f"{ENV}/elapsed_steps")),
    "weights of another shape": tensor("policy/player/weights/", lambda x: x[..., :1]),
    "weights that would be broadcast": tensor("policy/player/adam/momentum", lambda x: x[:, :1]),
    "weights of another dtype": tensor("policy/player/adam/square", lambda x: x.double()),
    "envs of another shape": tensor(f"{ENV}/left", lambda x: x[:3]),
    "envs of no dimension": tensor(f"{ENV}/elapsed_steps", lambda x: x[0]),
    "negative times": tensor(f"{ENV}/elapsed_steps", lambda x: x - 1000),
    "a negative counter": tensor("counter", lambda x: x - 10_000),
    "negative updates": tensor("updates", lambda x: x - (1 << 50)),
    "no past selves": tensor("pool/iterations", lambda x: x[:0]),
    "past selves without end": tensor("pool/iterations", lambda x: torch.zeros(10**6, dtype=x.dtype)),
    "a spacing of none": tensor("pool/counts", lambda x: x * 0),
    "negative steps": about("steps", value=-64),
    "steps of text": about("steps", value="many"),
    "half a step": about("steps", value=0.5),
    "steps of a bool": about("steps", value=True),
    "a negative iteration": about("iteration", value=-1),
    "iterations beyond 64 bits": about("iteration", value=2**70),
    "negative seconds": about("seconds", value=-1.0),
    "seconds that are no number": about("seconds", value=math.nan),
    "no steps": without("steps"),
    "no policies": about("policies", value={}),
    "policies of a list": about("policies", value=[1]),
    "no form": without(*FORM),
    "another game": about("game", value="CartPole-v1"),
    "a game of a list": about("game", value=["Nim-v0"]),
    "another configuration": about("config", value={"heap": 10**9}),
    "a population of none": about("args", "population", value=0),
    "no arguments": without("args"),
    "layers without end": about(*FORM, "hidden", value=[10**9, 10**9]),
    "layers of text": about(*FORM, "hidden", value=["64"]),
    "a negative memory": about(*FORM, "memory", value=-5),
}


def state(trainer: PPO) -> dict[str, bytes]:
    found = {k: x.contiguous().view(-1).view(torch.uint8).numpy().tobytes() for k, x in trainer.state().items()}
    return found | {"steps": str((trainer.steps, trainer.iteration)).encode()}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_gives_one_value_error_and_changes_nothing(
    fault: str, trainer: PPO, whole: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(FAULTS[fault](whole, path))
    before, begun, memory = state(trainer), time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors") as found:
        trainer.restore(path)
    assert type(found.value) is ValueError
    assert "\n" not in str(found.value).split(path.name)[0]
    assert time.monotonic() - begun < SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < MEGABYTES << 10
    assert state(trainer) == before


@pytest.mark.parametrize("fault", ["deep", "no arguments", "no form", "layers without end", "layers of text"])
def test_players_are_refused_too(fault: str, whole: bytes, tmp_path: Path) -> None:
    """`gpuzoo play` makes networks of the form that the file tells: it must not have more weights than the file."""
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(FAULTS[fault](whole, path))
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors"):
        arrange(Nim, {}, default=str(path))


def test_every_bit_counts(trainer: PPO, whole: bytes, tmp_path: Path) -> None:
    """Bits that are turned over, anywhere: nothing is loaded, or what was saved."""
    path, rng = tmp_path / "checkpoint.safetensors", np.random.default_rng(0)
    path.write_bytes(whole)
    saved, refused = checkpoint.load(path), 0
    header = 8 + struct.unpack("<Q", whole[:8])[0]
    places = [*range(8), *rng.integers(8, header, 60).tolist(), *rng.integers(header, len(whole), 60).tolist()]
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            tensors, about_ = checkpoint.load(path)
        except ValueError:
            refused += 1
        else:
            assert about_ == saved[1]
            assert all(torch.equal(x, saved[0][k]) for k, x in tensors.items())
    assert refused > len(places) - 5


def test_the_whole_file_is_taken(trainer: PPO, whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(whole)
    assert trainer.restore(path)["steps"] == trainer.steps == 128
    again = tmp_path / "again.safetensors"
    trainer.save(again)
    assert trainer.restore(again)["seconds"] == 0, "a file that tells no seconds can be gone on from"
    trainer.save(again, seconds=1.5)
    first_, second = checkpoint.load(path), checkpoint.load(again)
    assert first_[1] == second[1]
    assert first_[0].keys() == second[0].keys()
    assert [k for k, x in first_[0].items() if not torch.equal(x, second[0][k])] == []
