"""The struct `Store`: addresses of all arrays."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from gpuzoo.core.definition import C_TYPES, EnvDef, Field
from gpuzoo.core.layout import Layout

#: what the engine keeps per env (E) or per agent (A), beside the game's fields; name -> (dtype, E or A)
ENGINE_ARRAYS: Mapping[str, tuple[str, str]] = {
    "reward": ("float32", "A"),
    "terminated": ("bool", "A"),
    "truncated": ("bool", "A"),
    "alive": ("bool", "A"),
    "episode_return": ("float32", "A"),
    "final_return": ("float32", "A"),
    "final_length": ("int32", "A"),
    "elapsed_steps": ("int32", "E"),
    "episode": ("uint32", "E"),
    "seed": ("uint64", "E"),
    "ended": ("bool", "E"),
    "waiting": ("bool", "E"),
    "over": ("bool", "E"),
    "reset_mask": ("bool", "E"),
    "reset_seed": ("uint64", "E"),
}


def store_members(
    env: EnvDef,
    lay: Layout,
    fields: Mapping[str, Field],
    params: Iterable[str],
    drawn: Collection[str],
    tables: Mapping[str, np.ndarray[Any, Any]],
    debug: bool,
) -> list[tuple[str, str]]:
    """(C declaration without the name, name) of each member of `Store`; every member is 8 bytes."""
    out = [("struct Control *", "control"), ("i64", "num_envs")]
    out += [("struct Fault *", "faults")] * debug
    out += [(f"{C_TYPES[dtype]} *", name) for name, (dtype, _) in ENGINE_ARRAYS.items()]
    observation = C_TYPES[lay.observation_dtype]
    out += [(f"{observation} *", "observation"), (f"{observation} *", "final_observation")]
    out += [(f"{C_TYPES[lay.action_dtype]} *", "action")]
    if lay.mask_size:
        out += [("i8 *", "action_mask"), ("i8 *", "final_action_mask")]
    if lay.state_space is not None:
        out += [("StateNumber *", "state"), ("StateNumber *", "final_state")]
    out += [(f"{C_TYPES[f.dtype]} *", f"field_{name}") for name, f in fields.items()]
    out += [("float *" if name in drawn else "const float *", f"param_{name}") for name in params]
    out += [("const float *", f"ends_{name}") for name in params if name in drawn]
    out += [(f"const {C_TYPES[str(t.dtype)]} *", f"table_{name}") for name, t in tables.items()]
    return out
