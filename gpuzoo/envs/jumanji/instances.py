"""Instances of a problem that a user gives, in place of drawn ones, and instances of unlike size in one batch."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.assets import kept
from gpuzoo.core.definition import Config, EnvDef, param
from gpuzoo.core.values import config_types


@dataclasses.dataclass(frozen=True)
class InstanceConfig(Config):
    """Where instances come from."""

    instances: str = param(
        "", doc="file (.npz) with instances, or a dictionary of its arrays; without it they are drawn"
    )
    instance: float = param(-1.0, low=-1.0, doc="number of the instance, per env if wanted; -1: any, for each episode")


@dataclasses.dataclass(frozen=True)
class SizedConfig(InstanceConfig):
    """Where instances come from, and how large they are."""

    size: float = param(0.0, low=0.0, doc="size of drawn instances, rounded down; 0 is the largest that fits")


@dataclasses.dataclass(frozen=True)
class Part:
    """An array of an instance.

    Args: shape: within one instance. dtype: what the rules read. low: the smallest value. high: the largest value.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: float = -np.inf
    high: float = np.inf


class OfInstances(EnvDef):
    """A game whose instances may be given.

    A dataset is a file that ``np.savez`` writes, or a dictionary of the same arrays. Each array has one row for each
    instance; `parts` says which there are.
    """

    def parts(self, cfg: Any) -> dict[str, Part]:
        """The arrays of an instance, by name."""
        raise NotImplementedError(f"{type(self).__name__} must define parts(cfg)")

    def fault(self, cfg: Any, instance: Mapping[str, NDArray[Any]]) -> str:
        """What is wrong with an instance whose numbers are in range, or nothing."""
        return ""

    @classmethod
    def parameters_of(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        given = options.get("instances")
        if isinstance(given, Mapping):
            return {**options, "instances": str(kept(given))}
        return {**options, "instances": str(given)} if isinstance(given, Path) else options

    def constants(self, cfg: Any) -> dict[str, int]:
        return {"INSTANCES": len(next(iter(self._given(cfg).values()))) if cfg.instances else 0}

    def tables(self, cfg: Any) -> dict[str, NDArray[Any]]:
        if cfg.instances:
            return {f"given_{name}": array.reshape(-1) for name, array in self._given(cfg).items()}
        return {f"given_{name}": np.zeros(1, part.dtype) for name, part in self.parts(cfg).items()}

    def check(self, cfg: Any) -> None:
        if not cfg.instances:
            if cfg.instance != -1:
                raise ValueError(f"{self.id}: instance={cfg.instance:g} has no meaning without instances.")
            return
        self.check_number(cfg)

    def check_number(self, cfg: Any) -> None:
        """Raises ValueError if there is no instance of the number that the configuration names."""
        count = len(next(iter(self._given(cfg).values())))
        if cfg.instance != -1 and not (cfg.instance >= 0 and cfg.instance == int(cfg.instance) < count):
            raise ValueError(f"{self.id}: instance must be -1 or a number from 0 to {count - 1}, not {cfg.instance:g}.")

    def _given(self, cfg: Any) -> dict[str, NDArray[Any]]:
        path = Path(cfg.instances)
        if not path.is_file():
            raise FileNotFoundError(f"{self.id}: there is no file of instances {path}.")
        fixed = {name: getattr(cfg, name) for name, kind in config_types(self.Config).items() if kind is not float}
        return _read(self, self.Config(**fixed), path.stat().st_mtime_ns)  # once for all values of the others


class OfSizedInstances(OfInstances):
    """A game whose instances may be smaller than its arrays. In a dataset ``size`` has the size of each."""

    def largest(self, cfg: Any) -> int:
        """The size that fits."""
        raise NotImplementedError(f"{type(self).__name__} must define largest(cfg)")

    #: the smallest size
    smallest = 1

    def parts(self, cfg: Any) -> dict[str, Part]:
        return {"size": Part((), "int32", self.smallest, self.largest(cfg))}

    def constants(self, cfg: Any) -> dict[str, int]:
        return {**super().constants(cfg), "LARGEST": self.largest(cfg)}

    def check(self, cfg: Any) -> None:
        super().check(cfg)
        if cfg.size != 0 and not self.smallest <= int(cfg.size) <= self.largest(cfg):
            raise ValueError(
                f"{self.id}: size must be 0 or from {self.smallest} to {self.largest(cfg)}, not {cfg.size:g}."
            )


def bits(members: NDArray[Any]) -> NDArray[np.uint64]:
    """Sets as the rules hold them: one bit for each number, 64 in a word.

    Args:
        members: (..., n), nonzero for what is in the set.

    Returns:
        (..., words), uint64.
    """
    n = members.shape[-1]
    padded = np.zeros((*members.shape[:-1], -(-n // 64) * 64), bool)
    padded[..., :n] = members
    packed = np.packbits(padded, axis=-1, bitorder="little").reshape(*members.shape[:-1], -1, 8)
    return np.ascontiguousarray(packed).view("<u8")[..., 0].astype(np.uint64)


def members(words: NDArray[Any], n: int) -> NDArray[np.bool_]:
    """The inverse of `bits`: (..., words) becomes bool (..., n)."""
    octets = np.ascontiguousarray(words, "<u8").view(np.uint8)
    return np.unpackbits(octets, axis=-1, bitorder="little")[..., :n].astype(bool)


@functools.lru_cache(maxsize=16)
def _read(env: OfInstances, cfg: Any, _changed: int) -> dict[str, NDArray[Any]]:
    name = f"{env.id}: {cfg.instances}"
    with np.load(cfg.instances) as file:
        found = dict(file)
    parts = env.parts(cfg)
    if "size" in parts and "size" not in found and found:
        found["size"] = np.full(len(next(iter(found.values()))), parts["size"].high)
    if found.keys() != parts.keys():
        raise ValueError(f"{name} must hold {', '.join(sorted(parts))}, not {', '.join(sorted(found)) or 'nothing'}.")
    counts = {len(array) if array.ndim else 0 for array in found.values()}
    if len(counts) != 1 or counts == {0}:
        raise ValueError(f"{name} must hold one row of each array for each instance, and at least one instance.")
    for key, part in parts.items():
        array = found[key]
        if array.shape[1:] != part.shape:
            raise ValueError(f"{name}: {key} must have shape (instances, {', '.join(map(str, part.shape))}), "
                             f"not {array.shape}.")  # fmt: skip
        if not ((array >= part.low) & (array <= part.high)).all():
            raise ValueError(f"{name}: {key} must be from {part.low:g} to {part.high:g}.")
    out = {key: np.ascontiguousarray(found[key], part.dtype) for key, part in parts.items()}
    for k in range(counts.pop()):
        fault = env.fault(cfg, {key: array[k] for key, array in out.items()})
        if fault:
            raise ValueError(f"{name}: instance {k}: {fault}.")
    return out
