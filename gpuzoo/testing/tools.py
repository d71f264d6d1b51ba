"""What the checks share: small batches of a game, comparison bit for bit, the arrays in what an interface returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo import registry
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.layout import Layout, choices, flat_size
from gpuzoo.core.simulator import Simulator

EnvLike = str | EnvDef | type[EnvDef]
Array = NDArray[Any]

#: what `check_env` runs: functions of a game and its configuration, by name
CHECKS: dict[str, Callable[..., None]] = {}

SEED = 7
LIMIT = 40  # time limit in most checks, so that every game begins many episodes within some hundred steps
OBSERVATIONS = ("observation", "final_observation")
MASKS = ("action_mask", "final_action_mask")
_OUTPUTS = (
    "reward terminated truncated alive episode_return final_return final_length elapsed_steps episode ended waiting"
).split()


def promise(function: Callable[..., None]) -> Callable[..., None]:
    """Makes a function a check: ``check_name`` is ``CHECKS["name"]``."""
    CHECKS[function.__name__.removeprefix("check_")] = function
    return function


def simulator(env: EnvLike, num_envs: int, **kwargs: Any) -> Simulator:
    """A small batch on the CPU, with episodes that are short and begin again at once."""
    if "backend" not in kwargs:
        kwargs.setdefault("device", "cpu")
    kwargs.setdefault("max_episode_steps", LIMIT)
    kwargs.setdefault("autoreset_mode", "same_step")
    return Simulator(registry.get(env), num_envs, **kwargs)


def read(sim: Simulator, envs: Any = None) -> dict[str, Array]:
    """Copies of all that a step leaves: outputs, the game's fields, its own global state. Padding is left out."""
    lay = sim.layout
    where = slice(None) if envs is None else envs
    host = {
        name: sim.backend.to_numpy(array)
        for name, array in sim.arrays.items()
        if name in (*_OUTPUTS, *OBSERVATIONS, *MASKS) or name in sim.program.fields
    }
    done = host["terminated"] | host["truncated"]
    out = {}
    for name, array in host.items():
        if name not in (*OBSERVATIONS, *MASKS):
            out[name] = array[where]
            continue
        for group, first in lay.first.items():
            flat = flat_size(lay.observation_spaces[group])
            size = flat if name in OBSERVATIONS else sum(choices(lay.action_spaces[group]))
            agents = slice(first, first + lay.groups[group])
            part = array[where, agents, :size]
            if name.startswith("final_"):  # valid where an agent has just finished
                part = np.where(done[where, agents, None], part, np.zeros((), part.dtype))
            out[f"{name} of {group}"] = part
    if lay.state_space is not None:
        out["global state"] = sim.backend.to_numpy(sim.global_state())[where]
    return out


def _bits(array: Array) -> Array:
    array = np.ascontiguousarray(array)
    return array.view(f"u{array.dtype.itemsize}") if array.dtype.kind in "fb" else array


def assert_same(what: str, left: Mapping[str, Any], right: Mapping[str, Any]) -> None:
    """Raises AssertionError unless two dictionaries of arrays are equal bit for bit."""
    assert left.keys() == right.keys(), f"{what}: there are {sorted(left)} on one side and {sorted(right)} on the other"
    for name, array in left.items():
        a, b = np.asarray(array), np.asarray(right[name])
        assert a.shape == b.shape, f"{what}: {name} has shape {a.shape} on one side and {b.shape} on the other"
        assert a.dtype == b.dtype, f"{what}: {name} is {a.dtype} on one side and {b.dtype} on the other"
        different = np.argwhere(np.atleast_1d(_bits(a) != _bits(b)))
        if len(different):
            place = tuple(int(k) for k in different[0]) if a.ndim else ()
            raise AssertionError(
                f"{what}: {name}{list(place)} is {a[place]!r} on one side and {b[place]!r} on the other"
            )


def pick(values: Mapping[str, Array], envs: Any) -> dict[str, Array]:
    """The rows of some envs."""
    return {name: array[envs] for name, array in values.items()}


def random_step(sim: Simulator) -> None:
    """A step with random legal actions."""
    sim.random_actions()
    sim.step()


def random_actions(layout: Layout, rng: np.random.Generator, num_envs: int) -> Array:
    """Actions within the spaces of all agents, (num_envs, agents, action_size). Masks are not looked at."""
    out = np.zeros((num_envs, layout.agents, layout.action_size), layout.action_dtype)
    for group, count in layout.groups.items():
        first, space = layout.first[group], layout.action_spaces[group]
        part = out[:, first : first + count, : flat_size(space)]
        if isinstance(space, spaces.Box):
            part[...] = rng.uniform(np.ravel(space.low), np.ravel(space.high), part.shape)
        else:
            part[...] = rng.integers(0, choices(space), part.shape)
    return out


def first_of(bad: Array) -> list[int]:
    """The place of the first True."""
    return [int(k) for k in np.argwhere(bad)[0]]


def to_host(value: Any) -> Any:
    """NumPy of what a step returned."""
    if isinstance(value, Mapping):
        return {k: to_host(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(to_host(v) for v in value)
    if hasattr(value, "detach"):
        return value.detach().cpu().numpy()
    return value.get() if hasattr(value, "get") and hasattr(value, "dtype") else value


def flattened(value: Any, name: str = "") -> Iterator[tuple[str, Array]]:
    """The arrays in nested dictionaries and tuples, by their path."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from flattened(part, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (tuple, list)):
        for key, part in enumerate(value):
            yield from flattened(part, f"{name}.{key}")
    else:
        yield name, np.asarray(value)


def leaves_of(value: Any) -> dict[str, Array]:
    """As `flattened`, in host memory, without arrays of objects."""
    return {name: array for name, array in flattened(to_host(value), "") if array.dtype != object}
