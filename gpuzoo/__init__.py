"""Vectorized multi-agent environments: one kernel steps thousands of copies, on a GPU or a CPU, with the same bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuzoo.core.assets import Asset
from gpuzoo.core.definition import Config, Entities, EnvDef, Field, param
from gpuzoo.core.simulator import Simulator
from gpuzoo.core.snapshot import Snapshot
from gpuzoo.core.uniform import Uniform
from gpuzoo.interfaces.aec import aec_env
from gpuzoo.interfaces.batch import BatchEnv
from gpuzoo.interfaces.make_pool import make_pool
from gpuzoo.interfaces.parallel import parallel_env
from gpuzoo.interfaces.pool import EnvPool
from gpuzoo.interfaces.signatures import arguments_of
from gpuzoo.interfaces.single import SingleEnv
from gpuzoo.interfaces.vector import VectorEnv, make_vec
from gpuzoo.notebook import show
from gpuzoo.registry import get, ids, register
from gpuzoo.render import Canvas
from gpuzoo.trajectory import Trajectory, record

if TYPE_CHECKING:
    from gpuzoo.envs.mujoco.own import from_mjcf

__version__ = "0.1.0"

__all__ = [
    "Asset",
    "BatchEnv",
    "Canvas",
    "Config",
    "Entities",
    "EnvDef",
    "EnvPool",
    "Field",
    "Simulator",
    "SingleEnv",
    "Snapshot",
    "Trajectory",
    "Uniform",
    "VectorEnv",
    "aec_env",
    "from_mjcf",
    "get",
    "ids",
    "make",
    "make_pool",
    "make_vec",
    "parallel_env",
    "param",
    "record",
    "register",
    "show",
]


@arguments_of(BatchEnv)
def make(*args: Any, **kwargs: Any) -> BatchEnv:
    """The batched multi-agent interface: see `BatchEnv` for the arguments.

    Raises:
        ValueError: no such game (close matches are named), or an argument out of range.
    """
    return BatchEnv(*args, **kwargs)


def __getattr__(name: str) -> Any:
    if name == "from_mjcf":  # what few need: an import of gpuzoo does not wait for it
        from gpuzoo.envs.mujoco.own import from_mjcf

        return from_mjcf
    raise AttributeError(f"module 'gpuzoo' has no attribute {name!r}")
