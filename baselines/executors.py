"""Chooses the executor of a run."""

from __future__ import annotations

from .train import distributed
from .train.args import EXECUTORS
from .train.executor import Executor, Plain


def choose(name: str = "auto", device: str = "auto") -> Executor:
    """The executor of a run.

    Args:
        name: ``"plain"``: every operation by torch; ``"fast"``: by compiled kernels where there are some; ``"auto"``:
            fast, if it is installed.
        device: where it will run: ``"cpu"``, ``"cuda"``, ``"cuda:k"`` or ``"auto"``.

    Raises:
        ValueError: there is no such executor.
    """
    if name not in EXECUTORS:
        raise ValueError(f"executor must be one of {', '.join(EXECUTORS)}, not {name!r}.")
    if name == "plain":
        return Plain()
    try:
        from .fast.executor import Fast
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(f"{__package__}.fast"):
            raise
        if name == "fast":
            raise ValueError(
                "executor='fast' needs the folder baselines/fast, which is not here: take 'plain'."
            ) from None
        return Plain()
    if device == "auto":
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
    return Fast(distributed.device(device))
