"""Torch tensors that are the simulator's own memory: no copy, on the CPU and on a GPU.

On a GPU every kernel is launched on torch's current stream, looked up at each launch, so tensors and steps are ordered
as any two torch operations are, inside ``torch.cuda.stream`` and under CUDA graph capture too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from gpuzoo.core.simulator import Simulator


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise ImportError("torch tensors need PyTorch: pip install 'gpuzoo[torch]'.") from error
    return torch


def as_tensor(array: Any) -> torch.Tensor:
    """A tensor over the memory of a NumPy or CuPy array.

    Args:
        array: an array of any shape and strides; unsigned 32 and 64 bit integers come as torch has them.

    Raises:
        ImportError: torch is missing.
    """
    torch = _torch()
    if hasattr(array, "get"):  # CuPy
        if array.dtype.kind == "b":
            return torch.from_dlpack(array.view("uint8")).view(torch.bool)  # type: ignore[no-any-return]
        return torch.from_dlpack(array)  # type: ignore[no-any-return]
    return torch.from_numpy(array)  # type: ignore[no-any-return]


def converted(array: Any, dtype: Any) -> Any:
    """A copy of an array or tensor with another dtype, which is given as NumPy has it."""
    return array.to(getattr(_torch(), dtype.name)) if is_tensor(array) else array.astype(dtype)


def views(simulator: Simulator) -> dict[str, torch.Tensor]:
    """Tensors over all arrays of a simulator, by name; see `Simulator.arrays`.

    Made once and valid until ``close()``: each step writes into the same memory. Clone what is to be kept.

    Raises:
        ImportError: torch is missing.
    """
    return {name: as_tensor(array) for name, array in simulator.arrays.items()}


def is_tensor(value: Any) -> bool:
    """Whether a value is a torch tensor, without importing torch."""
    return type(value).__module__.split(".")[0] == "torch" and hasattr(value, "data_ptr")
