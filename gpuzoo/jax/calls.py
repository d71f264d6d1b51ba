"""A game's kernels as functions of JAX: what a call takes and returns, and what `jax.vmap` makes of it.

The state of the envs is in the operands and in the results of a call, and XLA is told that they share memory. So a step
inside a loop works in place, and XLA copies a state that is needed later.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap

from gpuzoo.core.backend_cpu import compile_host
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.layout import flat_size
from gpuzoo.core.simulator import Simulator
from gpuzoo.interfaces.turns import check_all_observe

Arrays = dict[str, Any]
#: a kernel for some number of envs: arrays of the envs, and what they share -> arrays of the envs
Call = Callable[[Arrays, Arrays], Arrays]

#: kernel -> the argument of its launch: `reset` takes new seeds, `state` is told where to write
_ARGUMENTS: Final = {"reset": "1", "step": "0", "act": "0", "state": "RESULT"}
_OF_RESET: Final = ("reset_mask", "reset_seed")
#: what a call writes for every env, and the next one does not read
_WRITTEN: Final = ("reward", "terminated", "truncated", "ended", "over", "observation")
NO_LIMIT: Final = 2**31 - 1
_known: dict[str, dict[str, str]] = {}  #: source of calls -> what XLA knows them by


def _as_jax(shape: tuple[int, ...], dtype: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype as JAX has them without 64-bit numbers, which are two words."""
    kind = np.dtype(dtype)
    return ((*shape, 2), np.dtype(np.uint32)) if kind.itemsize == 8 else (shape, kind)


def _in_words(table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return table.view(np.uint32) if table.dtype.itemsize == 8 else table


class Program:
    """The kernels of a game, compiled and known to XLA.

    Args:
        env: the game.
        num_envs: number of envs, which arrays in ``config`` are for.
        threads: CPU threads that share the envs; all by default.
        config: arguments of `Simulator` and the game's parameters.

    Attributes:
        env: the game.
        layout: spaces and agents.
        carried: the arrays that go from step to step: name -> shape of an env's part, and dtype, as JAX has them.
        values: run-time parameters as they were given: name -> a number, or an array (num_envs,).
        max_episode_steps: the time limit.
    """

    def __init__(self, env: EnvDef, num_envs: int, threads: int | None, config: Mapping[str, Any]) -> None:
        check_all_observe(dict(config), "an env of gpuzoo.jax")
        sim = Simulator(env, num_envs, device="cpu", threads=threads, **config)
        self._given = env, num_envs, threads, config
        self._program = sim.program
        self._kernels: Any = sim._kernels
        self.env, self.layout = sim.env, sim.layout
        self.max_episode_steps = sim.max_episode_steps or NO_LIMIT
        self.values = {n: sim.param(n) for n in sim.program.params if n not in sim.drawn}
        self._per_env = sim.program.per_env & self.values.keys()
        shapes = {name: _as_jax(array.shape[1:], array.dtype) for name, array in sim.arrays.items()}
        shapes |= {f"param_{name}": ((), np.dtype(np.float32)) for name in sim.drawn}
        if sim.layout.state_space is not None:
            space = sim.layout.state_space
            shapes["state"] = (flat_size(space),), np.dtype(space.dtype)
        elsewhere = (*_OF_RESET, *_WRITTEN, "action", "state")
        self.carried = {"seed": shapes["seed"], **{n: s for n, s in shapes.items() if n not in elsewhere}}
        self._shapes = shapes
        self._constants = {f"table_{name}": _in_words(table) for name, table in sim.program.tables.items()}
        self._constants |= {f"ends_{name}": np.array(uniform.ends, np.float32) for name, uniform in sim.drawn.items()}
        sim.close()
        shared = ("control", *(f"param_{name}" for name in self.values), *self._constants)
        drawn = [name for name in shapes if name in ("seed", "elapsed_steps", "episode", "action_mask")]
        written = [name for name in _WRITTEN if name != "over" or sim.program.lanes > 1]  # else it is in a register
        stepped = [name for name in self.carried if name != "seed"]  # a step keeps the seeds
        self._members: dict[str, tuple[list[str], list[str]]] = {  # operands and results
            "reset": ([*self.carried, "action", *_OF_RESET, *shared], [*self.carried, *written]),
            "step": ([*self.carried, "action", *shared], [*stepped, *written]),
            "act": ([*self.carried, *shared] if self.env.chooses else drawn, ["action"]),  # rules see the whole state
        }
        if "state" in shapes:
            self._members["state"] = [*self.carried, "action", *shared], ["state"]
        self._target = self._registered()
        self._others: dict[frozenset[str], Program] = {}
        self._calls: dict[tuple[str, int, frozenset[str]], Call] = {}

    def zeros(self, num_envs: int) -> Arrays:
        """A state with nothing in it, for `reset`."""
        return {name: jnp.zeros((num_envs, *shape), dtype) for name, (shape, dtype) in self.carried.items()}

    def call(self, kernel: str, num_envs: int, own: Collection[str] = ()) -> Call:
        """A kernel as a function.

        Its arguments are two dictionaries. The first has arrays (num_envs, ...): all of ``carried``, ``action``, and
        ``own``. The second has what the envs share: ``control``, int32 (2,), and the other parameters. It returns the
        results by name, (num_envs, ...).

        `jax.vmap` makes one call with more envs of it.

        Args:
            kernel: its name.
            num_envs: number of envs.
            own: as ``param_NAME``, parameters with a value per env.
        """
        key = kernel, num_envs, frozenset(own)
        if key not in self._calls:
            self._calls[key] = self._with_rows(key[2])._new_call(kernel, num_envs)
        return self._calls[key]

    def _with_rows(self, own: frozenset[str]) -> Program:
        """The same game, compiled for a value per env of these parameters, too."""
        names = frozenset(name.removeprefix("param_") for name in own) - self._per_env
        if not names:
            return self
        if names not in self._others:
            env, num_envs, threads, config = self._given
            rows = {name: np.full(num_envs, self.values[name], np.float32) for name in names}
            self._others[names] = Program(env, num_envs, threads, {**config, **rows})
        return self._others[names]

    def _new_call(self, kernel: str, num_envs: int) -> Call:
        call: Any = custom_vmap(functools.partial(self._launch, kernel, num_envs))

        def with_more(size: int, mapped: Any, rows: Arrays, shared: Arrays) -> tuple[Arrays, Any]:
            of_rows, of_shared = mapped
            if of_shared["control"]:  # limits of time differ, which a batch shares: one member after the other
                out = jax.lax.map(*_one_by_one(call, of_rows, of_shared, rows, shared))
                return out, dict.fromkeys(out, True)
            own = {name for name, is_mapped in of_shared.items() if is_mapped}
            rows = {n: x if of_rows[n] else jnp.broadcast_to(x, (size, *x.shape)) for n, x in rows.items()}
            rows |= {name: jnp.broadcast_to(shared[name][:, None], (size, num_envs)) for name in own}
            rows = {name: x.reshape(size * num_envs, *x.shape[2:]) for name, x in rows.items()}
            shared = {name: x for name, x in shared.items() if name not in own}
            out = self.call(kernel, size * num_envs, own)(rows, shared)
            out = {name: x.reshape(size, num_envs, *x.shape[1:]) for name, x in out.items()}
            return out, dict.fromkeys(out, True)

        call.def_vmap(with_more)
        return call  # type: ignore[no-any-return]

    def _launch(self, kernel: str, num_envs: int, rows: Arrays, shared: Arrays) -> Arrays:
        operands, results = self._members[kernel]
        action = self._shape("action", num_envs)
        given = {**self._constants, "action": jnp.zeros(action.shape, action.dtype), "reset_seed": rows["seed"]}
        given |= {"reset_mask": jnp.ones(num_envs, jnp.bool_)} | shared | rows
        arrays = [given[name] for name in operands]
        arrays = [x.reshape(1) if x.ndim == 0 else x for x in arrays]
        done = jax.ffi.ffi_call(
            self._target[kernel],
            [self._shape(name, num_envs) for name in results],
            input_output_aliases={operands.index(n): k for k, n in enumerate(results) if n in operands},
            input_layouts=[self._order(name, np.ndim(x)) for name, x in zip(operands, arrays, strict=True)],
            output_layouts=[self._order(name, 1 + len(self._shapes[name][0])) for name in results],
        )(*arrays, threads=np.int32(self._kernels.threads))
        return {"seed": rows["seed"], **dict(zip(results, done, strict=True))}

    def _shape(self, name: str, num_envs: int) -> jax.ShapeDtypeStruct:
        shape, dtype = self._shapes[name]
        return jax.ShapeDtypeStruct((num_envs, *shape), dtype)

    def _order(self, name: str, ndim: int) -> tuple[int, ...]:
        """The axes of an array as they lie in memory: fields of packed rules have the envs side by side."""
        axes = tuple(range(ndim))
        field = self._program.fields.get(name)
        if field is None or not self._program.form.packed:
            return axes
        own = len(field.shape)
        return (*axes[1 : 1 + own], 0, *axes[1 + own :])

    def _registered(self) -> dict[str, str]:
        """Compiles the calls and tells XLA about them: kernel -> the name that XLA knows it by."""
        code = self._code()
        if code not in _known:
            path = compile_host(code, f"{self.env.id}-jax", (f"-I{jax.ffi.include_dir()}",))
            library = ctypes.CDLL(str(path))
            _known[code] = {kernel: f"gpuzoo.{path.stem}.{kernel}" for kernel in self._members}
            for kernel, name in _known[code].items():
                getattr(library, f"gz_bind_{kernel}")(ctypes.c_void_p(self._kernels.address(kernel)))
                handler = jax.ffi.pycapsule(getattr(library, f"gz_call_{kernel}"))
                jax.ffi.register_ffi_target(name, handler, platform="cpu")
        return _known[code]

    def _code(self) -> str:
        """The source of the calls."""
        store, lay = self._program.store, self.layout
        unlike = len({flat_size(space) for space in lay.observation_spaces.values()}) > 1
        row = lay.agents * lay.observation_size * np.dtype(lay.observation_dtype).itemsize
        numbers = {
            "MEMBERS": len(store),
            "NUM_ENVS": store.index("num_envs"),
            "OBSERVATION": store.index("observation"),
            "PADDED": row if unlike else 0,
        }
        lines = [f"// of {hashlib.sha256(self._program.code.encode()).hexdigest()}, jaxlib {jax.lib.__version__}"]
        lines += [f"constexpr int {name} = {number};" for name, number in numbers.items()]
        lines.append((Path(__file__).parent / "handler.cpp").read_text(encoding="utf-8"))
        for kernel, (operands, results) in self._members.items():
            names = [f"field_{name}" if name in self._program.fields else name for name in (*operands, *results)]
            places = ", ".join(str(store.index(name)) for name in names)
            lines.append(f"GZ_KERNEL({kernel}, {_ARGUMENTS[kernel]}, {places})")
        return "\n".join(lines) + "\n"


def _one_by_one(call: Call, of_rows: Any, of_shared: Any, rows: Arrays, shared: Arrays) -> tuple[Any, Any]:
    """Arguments of `jax.lax.map` for a call whose arguments are mapped in part."""
    moving = {n: x for n, x in rows.items() if of_rows[n]}, {n: x for n, x in shared.items() if of_shared[n]}
    return lambda now: call({**rows, **now[0]}, {**shared, **now[1]}), moving
