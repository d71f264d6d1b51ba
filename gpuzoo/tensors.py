"""Torch tensors that are the simulator's own memory: no copy, on the CPU and on a GPU.

On a GPU every kernel is launched on torch's current stream, looked up at each launch, so tensors and steps are ordered
as any two torch operations are, inside ``torch.cuda.stream`` and under CUDA graph capture too.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from gpuzoo.core.backend import Device
from gpuzoo.core.backend_cuda import available

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
    """A tensor that shares memory with a NumPy or CuPy array.

    Args:
        array: an array of any shape and strides. Unsigned 32 and 64 bit integers get the types that torch has for
            them.

    Raises:
        ImportError: torch is missing.
    """
    torch = _torch()
    if not hasattr(array, "get"):
        return torch.from_numpy(array)  # type: ignore[no-any-return]
    is_bool = array.dtype.kind == "b"
    exported = array.view("uint8") if is_bool else array
    if torch.cuda.is_initialized():
        # The array's work is on torch's current stream. By itself CuPy would have that stream wait for one of its own,
        # which cannot be captured.
        exported = exported.__dlpack__(stream=-1)
    tensor = torch.from_dlpack(exported)
    return tensor.view(torch.bool) if is_bool else tensor  # type: ignore[no-any-return]


def start(output: str | None, device: Device) -> None:
    """Has torch use the GPU, so that a batch which is made there next takes its memory from torch's pool.

    Args:
        output: kind of arrays that the batch will return; None: torch's, if it is on a GPU.
        device: of the batch.
    """
    if output in (None, "torch") and str(device) not in ("cpu", "simt") and available() and find_spec("torch"):
        torch = _torch()
        if torch.cuda.is_available():
            torch.cuda.init()


def converted(array: Any, dtype: Any) -> Any:
    """A copy of an array or tensor with another dtype, which is given as NumPy has it."""
    return array.to(getattr(_torch(), dtype.name)) if is_tensor(array) else array.astype(dtype)


def views(simulator: Simulator) -> dict[str, torch.Tensor]:
    """Tensors that share memory with all arrays of a simulator, by name; see `Simulator.arrays`.

    They are valid until ``close()``. Each step writes into the same memory, so clone values that you keep.

    Raises:
        ImportError: torch is missing.
    """
    return {name: as_tensor(array) for name, array in simulator.arrays.items()}


def is_tensor(value: Any) -> bool:
    """Whether a value is a torch tensor, without importing torch."""
    return hasattr(value, "data_ptr") and hasattr(value, "detach")
