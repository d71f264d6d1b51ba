"""Whatever callers give, as NumPy's arrays in host memory."""

from __future__ import annotations

from typing import Any

import numpy as np


def to_host(value: Any) -> np.ndarray[Any, Any]:
    """An array of NumPy or CuPy, a tensor of torch on any device, a sequence or a number, as an array of NumPy.

    Where the value lies on a GPU, this waits for the work that the current stream was given before: torch's for a
    tensor, and for an array of CuPy the one that kernels are launched on (`CudaBackend.ordered`).
    """
    if type(value) is np.ndarray:
        return value
    if hasattr(value, "detach"):  # torch
        return np.asarray(value.detach().cpu())
    if hasattr(value, "get") and hasattr(value, "dtype"):  # CuPy
        from gpuzoo.core.backend_cuda import CudaBackend

        return np.asarray(CudaBackend(value.device.id).to_numpy(value))
    return np.asarray(value)
