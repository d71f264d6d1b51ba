"""Extra state of your own algorithm in checkpoints: tensors, modules, optimisers and generators, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

Extra = Tensor | nn.Module | torch.optim.Optimizer | torch.Generator


def tensors(extras: Mapping[str, Extra]) -> dict[str, Tensor]:
    """All tensors of them, by ``<name>/...``.

    Raises:
        TypeError: something else is among them.
    """
    return {key: x for name, extra in extras.items() for key, x in _of(name, extra)}


def _of(name: str, extra: Extra) -> Iterator[tuple[str, Tensor]]:
    match extra:
        case Tensor():
            yield name, extra
        case nn.Module():
            yield from ((f"{name}/{key}", x) for key, x in extra.state_dict().items())
        case torch.optim.Optimizer():
            for number, state in extra.state_dict()["state"].items():
                yield from ((f"{name}/{number}/{key}", torch.as_tensor(x)) for key, x in state.items())
        case torch.Generator():
            yield name, extra.get_state()
        case _:
            raise TypeError(f"the extra state {name!r} must be a tensor, a module, an optimiser or a generator, "
                            f"not {type(extra).__name__}.")  # fmt: skip


def expected(extras: Mapping[str, Extra], found: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors that a checkpoint must have: as `tensors`, but an optimiser may be further than this one.

    Optimisers make their state at their first step, so what there is of it is taken as the checkpoint has it, if each
    tensor is a number or of its parameter's shape.
    """
    wanted = tensors({k: x for k, x in extras.items() if not isinstance(x, torch.optim.Optimizer)})
    for name, optimizer in extras.items():
        if isinstance(optimizer, torch.optim.Optimizer):
            for number, parameter in enumerate(p for group in optimizer.param_groups for p in group["params"]):
                for key, x in found.items():
                    if key.startswith(f"{name}/{number}/"):
                        wanted[key] = x if x.ndim == 0 or x.dtype != parameter.dtype else parameter
    return wanted


@torch.no_grad()
def restore(extras: Mapping[str, Extra], found: Mapping[str, Tensor]) -> None:
    """Puts back what `tensors` gave."""
    for name, extra in extras.items():
        mine = {k.removeprefix(f"{name}/"): x for k, x in found.items() if k.startswith(f"{name}/")}
        match extra:
            case Tensor():
                extra.copy_(found[name])
            case nn.Module():
                extra.load_state_dict(mine)
            case torch.optim.Optimizer():
                state: dict[int, dict[str, Any]] = {}
                for key, x in mine.items():
                    number, _, part = key.partition("/")
                    state.setdefault(int(number), {})[part] = x.clone()
                extra.load_state_dict({"state": state, "param_groups": extra.state_dict()["param_groups"]})
            case torch.Generator():
                extra.set_state(found[name].cpu().clone())
