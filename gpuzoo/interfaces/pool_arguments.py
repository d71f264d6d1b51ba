"""What a pool refuses: a wrong env would be a data race."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.host import to_host


def env_indices(env_id: Any, num_envs: int, flight: NDArray[Any]) -> np.ndarray[Any, Any]:
    """Indices of envs that a caller names, int32.

    Raises:
        TypeError: no integers.
        IndexError: there is no such env.
    """
    ids = np.atleast_1d(to_host(env_id))
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise TypeError(f"env_id must be a sequence of integers, not {ids.dtype} of shape {ids.shape}.")
    if ids.size and (ids.min() < 0 or ids.max() >= num_envs):
        raise refusal(ids, num_envs, flight)
    return ids.astype(np.int32)


def refusal(ids: np.ndarray[Any, Any], num_envs: int, flight: NDArray[Any]) -> Exception:
    """Why some envs cannot be sent or reset, where ``flight`` says which are in flight."""
    for env in (int(x) for x in ids):
        if not 0 <= env < num_envs:
            return IndexError(f"env_id must be from 0 to {num_envs - 1}, not {env}; nothing was changed.")
        if flight[env]:
            return RuntimeError(f"env {env} is still in flight: recv() it first; nothing was changed.")
    twice = np.flatnonzero(np.bincount(ids) > 1)[0]
    return ValueError(f"env {twice} is named twice in env_id; nothing was changed.")


def checked_count(name: str, value: Any, most: int | None) -> int:
    """A number of things, from 1 to ``most``.

    Raises:
        TypeError: no integer.
        ValueError: out of range.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an int, not {value!r}.")
    if value < 1 or (most is not None and value > most):
        raise ValueError(f"{name} must be at least 1{'' if most is None else f' and at most {most}'}, not {value}.")
    return int(value)


def torch_kind(dtype: Any) -> str:
    """NumPy's letter for a kind of numbers, of a dtype of torch."""
    return "f" if dtype.is_floating_point else "b" if str(dtype) == "torch.bool" else "i"
