"""What rules did with ``debug=True``: the first index that was out of range, in one sentence.

The checked form of a program (``device/checked.cuh``) keeps such accesses away from memory and records the first one of
each lane. `CheckedKernels` looks after every launch and raises it.
"""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpuzoo.core.backend import Backend, Kernels, Launch
from gpuzoo.core.codegen import Program
from gpuzoo.core.layout import choices, flat_size

#: the struct `Fault` of checked.cuh, one for each lane
FAULT = np.dtype(
    [
        ("line", np.int32),
        ("file", np.uint32),
        ("array", np.int32),
        ("part", np.int32),
        ("index", np.int64),
        ("other", np.int64),
        ("step", np.int32),
        ("region", np.uint32),
        ("regions", np.uint32),
        ("unused", np.uint32),
        ("nowhere", np.uint64),
    ]
)
WORDS = FAULT.itemsize // 8
_FLAT, _ROW, _COLUMN, _AGENT, _NUMBER, _WORD = range(6)  # the enum Part of checked.cuh


class CheckedKernels:
    """The kernels of a checked program, which raise after a launch in which an index was out of range.

    The step that went wrong is finished: what it read out of range was 0, and what it wrote there is lost.

    Args:
        kernels: the compiled program.
        program: what they were compiled from.
        backend: where they run.
        faults: uint64 (num_envs, lanes, WORDS), the array ``faults`` of `Store`.
    """

    def __init__(self, kernels: Kernels, program: Program, backend: Backend, faults: Any) -> None:
        self._kernels, self._program, self._backend, self._faults = kernels, program, backend, faults
        self.threads = kernels.threads
        self.pack_width = 1  # the checked form goes env by env
        #: as `Kernels.launches`, but they wait for the device and raise what `check` raises
        self.launches: Mapping[str, Launch] = {
            kernel: functools.partial(self._launch, launch) for kernel, launch in kernels.launches.items()
        }

    def _launch(self, launch: Launch, store: Any, argument: int, count: int, threads: int) -> None:
        launch(store, argument, count, threads)
        self.check()

    def address(self, kernel: str) -> int:
        """As that of the CPU's kernels; whoever calls it calls `check` afterwards."""
        kernels: Any = self._kernels
        return int(kernels.address(kernel))

    def check(self) -> None:
        """Raises IndexError for the lowest env's first access out of range since the last check, and forgets it."""
        lines = self._faults[..., 0]
        if not self._backend.to_numpy(self._backend.any(lines))[0]:
            return
        found = self._backend.to_numpy(self._faults)
        self._backend.write(lines, self._backend.zeros(lines.shape, str(lines.dtype)))
        faults = np.ascontiguousarray(found).view(FAULT)[..., 0]
        env = int(np.flatnonzero(faults["line"].any(1))[0])
        lanes = [fault for fault in faults[env] if fault["line"]]
        first = min(lanes, key=lambda fault: int(fault["region"]))  # of several lanes the lowest
        raise IndexError(f"{_sentence(self._program, first)}; env {env}, step {first['step']}.")


def _hashed(text: str) -> int:
    """As in checked.cuh."""
    value = 2166136261
    for byte in text.encode():
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value


def _sentence(program: Program, fault: Any) -> str:
    """Where, which index of what, and how many there are."""
    paths = re.findall(r'^#line \d+ "(.*)"$', program.code, re.M)
    files = {_hashed(os.path.basename(path)): path for path in sorted(paths, key=os.path.isabs)}  # rules come last
    name, part = program.indexed[fault["array"]], int(fault["part"])
    describe = _stored if name in _shapes(program) else _of_agents
    access, extent = describe(program, name, part, int(fault["index"]), int(fault["other"]))
    return f"{files.get(int(fault['file']), 'unknown')}:{fault['line']}: {access} is out of range: {extent}"


def _shapes(program: Program) -> dict[str, tuple[int, ...]]:
    """Of what rules reach by an index that is no agent's."""
    state = program.layout.state_space
    shapes = {} if state is None else {"state": (flat_size(state),)}
    shapes |= {name: table.shape for name, table in program.tables.items()}
    return shapes | {name: field.sizes for name, field in (program.fields | program.scratch).items()}


def _stored(program: Program, name: str, part: int, index: int, other: int) -> tuple[str, str]:
    """An access to a field or a table as the rules write it, and what there is."""
    shape = _shapes(program)[name]
    size = math.prod(shape)
    if part == _ROW:
        return f"e.{name}({index}, {other})", f"{name} has {_count(size // shape[-1], 'row')}"
    if part == _COLUMN:
        return f"e.{name}({other}, {index})", f"{name} has {_count(shape[-1], 'column')}"
    detail = f" ({' x '.join(map(str, shape))})" if len(shape) > 1 else ""
    return f"e.{name}[{index}]", f"{name} has {_count(size, 'element')}{detail}"


def _of_agents(program: Program, name: str, part: int, index: int, other: int) -> tuple[str, str]:
    """The same of what the engine has for each agent; `other` is the agent where `index` is not."""
    lay, single = program.layout, type(program.env).single()
    if part in (_FLAT, _AGENT):
        left, right = "()" if name == "terminate" else "[]"
        few = name in ("observation", "action_mask") and lay.observers < lay.agents
        what = _count(lay.observers, "observer") if few else _count(lay.agents, "agent")
        return f"e.{name}{left}{index}{right}", f"the env has {what}"
    group = lay.group_of(other)
    whose = f"{name.replace('_', ' ')} of {lay.agent_names()[other]}"
    if name == "action":
        access = f"e.action[{index}]" if single else f"e.action({other}, {index})"
        return access, f"an action has {_count(lay.action_size, 'number')}"
    row = f"e.{name}" if single else f"e.{name}[{other}]"
    if name == "action_mask":
        return f"{row}[{index}]", f"the {whose} has {_count(sum(choices(lay.action_spaces[group])), 'number')}"
    size = flat_size(lay.observation_spaces[group])
    if part == _WORD:
        words = size * np.dtype(lay.observation_dtype).itemsize // 4
        return f"words({row})[{index}]", f"the {whose} has {_count(words, 'word')}"
    return f"{row}[{index}]", f"the {whose} has {_count(size, 'number')}"


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' if n != 1 else ''}"
