"""Several processes, one GPU each: `torchrun --nproc-per-node=N` sets the environment that is read here.

Each process steps its own share of the envs; gradients and statistics are summed over all. Without torchrun there is
one process, and nothing here does anything.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # torch is imported where there are several processes: a command line is read without it
    from torch import Tensor


def world_size() -> int:
    """Number of processes."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank() -> int:
    """Number of this process, from 0; the one with 0 writes the files."""
    return int(os.environ.get("RANK", "0"))


def device(name: str) -> str:
    """The device of this process: with CUDA, the GPU of its own number on this machine."""
    if world_size() == 1:
        return name
    import torch

    if name == "cuda" or (name == "auto" and torch.cuda.is_available()):
        return f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    return name


def begin(name: str) -> None:
    """Joins the other processes: by NCCL between GPUs, by gloo between CPUs. May be called again."""
    if world_size() == 1:
        return
    import torch
    from torch import distributed as dist

    if dist.is_initialized():
        return
    mine = device(name)
    if mine.startswith("cuda"):
        torch.cuda.set_device(mine)
    dist.init_process_group("nccl" if mine.startswith("cuda") else "gloo")


def all_reduce(x: Tensor) -> Tensor:
    """Sums a tensor over all processes, in place."""
    if world_size() > 1:
        from torch import distributed as dist

        dist.all_reduce(x)
    return x


def any_of(flag: bool) -> bool:
    """Whether a condition holds in any process, so that all processes do the same."""
    if world_size() == 1:
        return flag
    import torch

    return bool(all_reduce(torch.tensor(float(flag), device=_meeting_place())) > 0)


def gather(x: Any) -> list[Any]:
    """The values of all processes, for the first one; the others get nothing."""
    if world_size() == 1:
        return [x]
    from torch import distributed as dist

    found: list[Any] | None = [None] * world_size() if rank() == 0 else None
    dist.gather_object(x, found)
    return found or []


def _meeting_place() -> str:
    import torch
    from torch import distributed as dist

    return f"cuda:{torch.cuda.current_device()}" if dist.get_backend() == "nccl" else "cpu"


def end() -> None:
    """Leaves the other processes."""
    if world_size() == 1:
        return
    from torch import distributed as dist

    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()
