"""The arrays of a batch: their shapes, places for outputs, and what is left of them after the end."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from gpuzoo.core.codegen import Program
from gpuzoo.core.configuration import PerEnv
from gpuzoo.core.faults import WORDS
from gpuzoo.core.generated.store import ENGINE_ARRAYS
from gpuzoo.core.layout import Shapes
from gpuzoo.core.uniform import Uniform

FIELD: Final = "field_"  #: what the pointers of fields begin with


class Freed(dict[str, Any]):
    """The arrays of a closed batch: whoever wants one is told."""

    def __init__(self, message: str) -> None:
        super().__init__()
        self._message = message

    def __missing__(self, name: str) -> Any:
        raise RuntimeError(self._message)


@dataclasses.dataclass(frozen=True)
class Outputs:
    """Arrays that kernels may write outputs to, and a `Store` that points at them.

    Attributes:
        arrays: by name.
        members: of the struct `Store`, uint64, in host memory.
        store: what a launch takes as that.
        step: a step of all envs that writes there.
    """

    arrays: dict[str, Any]
    members: np.ndarray[Any, Any]
    store: Any
    step: Callable[[], None]


def batch_shapes(program: Program, num_envs: int, per_env: PerEnv, envs_last: bool, scratch: bool) -> Shapes:
    """Names, as pointers have them, shapes and dtypes of all arrays of a batch.

    Args:
        program: of the game.
        num_envs: number of envs.
        per_env: the parameters that differ between envs.
        envs_last: whether the envs are the last axis of fields, instead of the first one.
        scratch: whether each env has scratch arrays of its own.
    """
    n, lay = num_envs, program.layout
    shapes: dict[str, tuple[tuple[int, ...], str]] = {
        name: ((n, lay.agents) if kind == "A" else (n,), dtype) for name, (dtype, kind) in ENGINE_ARRAYS.items()
    }
    observation = (n, lay.observers, lay.observation_size), lay.observation_dtype
    shapes |= {"observation": observation, "final_observation": observation}
    shapes["action"] = (n, lay.agents, lay.action_size), lay.action_dtype
    if lay.mask_size:
        mask = (n, lay.observers, lay.mask_size), "int8"
        shapes |= {"action_mask": mask, "final_action_mask": mask}
    for name, field in program.fields.items():
        shapes[FIELD + name] = (*field.sizes, n) if envs_last else (n, *field.sizes), field.dtype
    if scratch:
        shapes |= {FIELD + name: ((n, *field.sizes), field.dtype) for name, field in program.scratch.items()}
    shapes |= {f"param_{name}": ((n,) if name in per_env else (1,), "float32") for name in program.params}
    shapes |= {f"ends_{name}": ((2,), "float32") for name, values in per_env.items() if isinstance(values, Uniform)}
    shapes |= {f"table_{name}": (table.shape, str(table.dtype)) for name, table in program.tables.items()}
    shapes["control"] = (2,), "int32"
    if program.debug:
        shapes["faults"] = (n, program.lanes, WORDS), "uint64"
    return Shapes(tuple(shapes), tuple(shapes.values()))
