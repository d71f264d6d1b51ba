"""What callers give a batch: modes, seeds, envs and values of arrays, checked."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from gymnasium.vector import AutoresetMode

from gpuzoo.core.host import to_host

MODES: Final = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED)


def parse_autoreset_mode(mode: str | AutoresetMode) -> AutoresetMode:
    """Gymnasium's enum from itself or from its name in any spelling: ``"next_step"``, ``"NextStep"``, ``"NEXT_STEP"``.

    Raises:
        ValueError: another name.
    """
    if isinstance(mode, AutoresetMode):
        return mode
    for candidate in MODES:
        if str(mode).lower().replace("_", "") == candidate.value.lower():
            return candidate
    raise ValueError(f"autoreset_mode must be 'next_step', 'same_step' or 'disabled', not {mode!r}.")


def host_seed(seed: Any) -> Any:
    """A seed or seeds as Python's own ints, from arrays and tensors of any library, 0-dimensional ones too."""
    if hasattr(seed, "tolist"):
        return to_host(seed).tolist()
    return [host_seed(s) for s in seed] if isinstance(seed, (list, tuple)) else seed


def seeds_of(seed: Any, count: int) -> np.ndarray[Any, Any]:
    """Seeds of ``count`` envs, uint64: the ``k``-th gets ``seed + k``, or the ``k``-th of a sequence.

    Raises:
        TypeError: neither an integer nor integers.
        ValueError: a negative seed, or another number of seeds.
    """
    seed = host_seed(seed)
    if isinstance(seed, int) and not isinstance(seed, bool):
        if seed < 0:
            raise ValueError(f"seed must not be negative: {seed}.")
        return np.arange(count, dtype=np.uint64) + np.uint64(seed % 2**64)
    seeds = list(seed) if hasattr(seed, "__iter__") and not isinstance(seed, str) else None
    if seeds is None or not all(isinstance(s, int) and not isinstance(s, bool) for s in seeds):
        raise TypeError(f"seed must be an int, a sequence of {count} ints, or None, not {seed!r}.")
    if len(seeds) != count:
        raise ValueError(f"{count} envs need as many seeds, not {len(seeds)}.")
    if min(seeds, default=0) < 0:
        raise ValueError(f"seed must not be negative: {min(seeds)}.")
    return np.array([s % 2**64 for s in seeds], np.uint64)


def env_numbers(envs: Any, num_envs: int) -> np.ndarray[Any, Any]:
    """int64 indices from 0 to num_envs - 1, in host memory, from an index, indices or a bool mask.

    Raises:
        TypeError: neither.
        ValueError: a mask of another shape.
        IndexError: no such env.
    """
    if isinstance(envs, (int, np.integer)) and not isinstance(envs, bool):
        envs = [int(envs)]
    host = to_host(envs)
    if host.dtype == np.bool_:
        if host.shape != (num_envs,):
            raise ValueError(f"a mask of envs must have shape ({num_envs},), not {host.shape}.")
        host = np.flatnonzero(host)
    if host.ndim != 1 or (host.size and host.dtype.kind not in "iu"):
        raise TypeError("envs must be an index, a sequence of indices, or a bool mask.")
    if host.size and not (-num_envs <= host.min() and host.max() < num_envs):
        raise IndexError(f"env indices must be below {num_envs}, not {host.min()}..{host.max()}.")
    return host.astype(np.int64) % num_envs


def different_envs(owner: str, envs: Any, num_envs: int) -> np.ndarray[Any, Any]:
    """`env_numbers` of envs that are to be changed, each once; messages call their game ``owner``.

    Raises:
        TypeError, IndexError: as `env_numbers`.
        ValueError: an env is named twice, or as `env_numbers`.
    """
    chosen = env_numbers(envs, num_envs)
    times = np.bincount(chosen)
    if times.max(initial=0) > 1:
        raise ValueError(f"{owner}: each env can be named once, but envs names {times.argmax()} twice.")
    return chosen


def checked_mask(mask: Any, num_envs: int) -> Any:
    """A mask of the envs to reset.

    Raises:
        TypeError: not a bool array.
        ValueError: another shape, or a mask in host memory without a True.
    """
    if not hasattr(mask, "dtype") or not str(mask.dtype).endswith("bool"):
        kind = getattr(mask, "dtype", type(mask).__name__)
        raise TypeError(f"reset mask must be a bool array of shape ({num_envs},), not {kind}.")
    if tuple(mask.shape) != (num_envs,):
        raise ValueError(f"reset mask must have shape ({num_envs},), not {tuple(mask.shape)}.")
    if isinstance(mask, np.ndarray) and not mask.any():
        raise ValueError("reset mask must select at least one env.")
    return mask


def fitting(owner: str, name: str, value: Any, target: Any, lead: tuple[int, ...], xp: Any) -> Any:
    """A value for an array of some envs, as an array of its dtype; messages call their game ``owner``.

    Raises:
        TypeError: not numbers.
        ValueError: another shape, or a number that the dtype cannot hold.
    """
    on_device = xp is not np and (isinstance(value, xp.ndarray) or getattr(value, "is_cuda", False))
    given = xp.asarray(value) if on_device else to_host(value)
    want = (*lead, *target.shape[1:])
    if given.shape != want:
        raise ValueError(f"{owner}: {name} must have shape {want}, not {given.shape}.")
    if given.dtype.kind not in "biuf":
        raise TypeError(f"{owner}: {name} must be numbers that fit into {target.dtype}, not {given.dtype}.")
    if given.dtype == target.dtype and name != "elapsed_steps":
        return given
    given = to_host(given)
    with np.errstate(all="ignore"):
        new = given.astype(target.dtype, copy=False)
    if name == "elapsed_steps":
        bad = (given < 0) | (new != given)
    elif target.dtype.kind == "f":
        bad = np.isfinite(given) & ~np.isfinite(new)
    else:
        bad = new != given
    if bool(bad.any()):
        why = "it counts from 0" if name == "elapsed_steps" else f"its dtype is {target.dtype}"
        raise ValueError(f"{owner}: {name} cannot be {given[bad][0]}: {why}.")
    return new
