"""A batch of envs on one device: owns every array and launches the kernels. Knows no RL library.

One class, as all that it does is to the same arrays: settings, steps, state and snapshots.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, Final, Literal

import numpy as np
from gymnasium.vector import AutoresetMode

from gpuzoo.core.backend import Backend, Kernels, make_backend
from gpuzoo.core.codegen import ENGINE_ARRAYS, program
from gpuzoo.core.definition import EnvDef, check_class, config_types, split_config, unknown
from gpuzoo.core.faults import WORDS, CheckedKernels

Mode = Literal["next_step", "same_step", "disabled"]
_MODES: Final = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED)
_NEXT_EPISODE, _NEW_SEED, _NO_RESET = range(3)  # the enum Reset of entry.cuh
_NO_LIMIT: Final = 2**31 - 1
#: what of the engine belongs to a game's state, as its author sees it
_STATE: Final = ("elapsed_steps", "alive")
#: arrays that carry nothing from one step to the next
_TRANSIENT: Final = frozenset(
    "over reset_mask reset_seed action final_observation final_action_mask state final_state".split()
)


def parse_autoreset_mode(mode: str | AutoresetMode) -> AutoresetMode:
    """Gymnasium's enum from itself or from its name in any spelling: ``"next_step"``, ``"NextStep"``, ``"NEXT_STEP"``.

    Raises:
        ValueError: another name.
    """
    if isinstance(mode, AutoresetMode):
        return mode
    for candidate in _MODES:
        if str(mode).lower().replace("_", "") == candidate.value.lower():
            return candidate
    raise ValueError(f"autoreset_mode must be 'next_step', 'same_step' or 'disabled', not {mode!r}.")


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """The whole state of some envs, from which their episodes go on with the same bits, on any device.

    Attributes:
        id: the game.
        constants: the compile-time part of its configuration.
        arrays: every field and engine array, with the envs along the first axis.
    """

    id: str
    constants: dict[str, Any]
    arrays: dict[str, Any]

    def __len__(self) -> int:
        return len(self.arrays["elapsed_steps"])

    def numpy(self) -> Snapshot:
        """A copy in host memory, which can be pickled and restored anywhere."""
        host = {k: np.array(v.get() if hasattr(v, "get") else v) for k, v in self.arrays.items()}
        return dataclasses.replace(self, arrays=host)


@dataclasses.dataclass(frozen=True)
class Outputs:
    """Arrays that kernels may write outputs to, and a `Store` that points at them."""

    arrays: dict[str, Any]
    store: Any
    address: int


class Simulator:
    """``num_envs`` copies of a game on one device.

    Args:
        env: the game, an `EnvDef` or a subclass of it.
        num_envs: number of envs.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:k"`` or ``"auto"``.
        autoreset_mode: when an env whose episode is over begins the next one (Gymnasium's three modes).
        max_episode_steps: time limit; ``"default"`` takes the game's own, None or -1 means no limit.
        threads: CPU threads; all by default.
        lanes: overrides the game's number of lanes; results do not depend on it.
        debug: raise ValueError at once on actions that are out of range or not numbers, and IndexError where the rules
            use an index that is out of range, with file and line. Results are the same, and slower.
        backend: a ready backend in place of ``device``.
        **config: the game's parameters; a float parameter may be an array with a value per env.

    Attributes:
        arrays: every array by name, on the device, with the envs along the first axis. ``observation``,
            ``reward``, ``terminated``, ``truncated``, ``alive``, ``episode_return``, ``final_return``, ``final_length``
            (num_envs, agents, ...); ``ended``, ``waiting``, ``elapsed_steps``, ``seed``, ``episode`` (num_envs,);
            ``action`` (num_envs, agents, action_size), to be written before `step`; and the game's fields.

    Raises:
        ValueError, TypeError: arguments out of range or of the wrong type.
        RuntimeError: no GPU, no compiler, or rules that do not compile.
        ImportError: CuPy is missing for a CUDA device.
    """

    def __init__(
        self,
        env: EnvDef | type[EnvDef],
        num_envs: int = 1,
        *,
        device: str = "auto",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | Literal["default"] | None = "default",
        threads: int | None = None,
        lanes: int | None = None,
        debug: bool = False,
        backend: Backend | None = None,
        **config: Any,
    ) -> None:
        self._closed = True
        self.env: EnvDef = env() if isinstance(env, type) else env
        check_class(self.env)
        if isinstance(num_envs, bool) or not isinstance(num_envs, (int, np.integer)):
            raise TypeError(f"num_envs must be an int, not {num_envs!r}.")
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, not {num_envs}.")
        self.num_envs = int(num_envs)
        self.debug = debug
        mode = parse_autoreset_mode(autoreset_mode)
        cfg, per_env = split_config(self.env, self.num_envs, config)
        self.backend = make_backend(device, threads) if backend is None else backend
        self.device = self.backend.device
        if lanes is None and self.device == "cpu" and type(self.env).single():
            lanes = 1  # lanes are loops there, and the state of a game with one lane is in registers
        self.program = program(self.env, cfg, per_env, lanes, debug)
        self.cfg: Any = cfg
        self.layout = self.program.layout
        self.xp = self.backend.xp
        kernels = self.backend.compile(self.program)
        self._pid = os.getpid()
        self.arrays: dict[str, Any] = {}
        self._owned: list[Any] = []
        self._told: Any = None  # the global state, once somebody has asked for it
        self._pointers: dict[str, int] = {"num_envs": self.num_envs}
        with self.backend.ordered():
            self._allocate(per_env)
            self._store = self._array("store", (len(self.program.store),), "uint64")
            values = np.array([self._pointers[name] for name in self.program.store], np.uint64)
            self._store[...] = self.xp.asarray(values)
        self._kernels: Kernels = kernels
        if debug:
            self._kernels = CheckedKernels(kernels, self.program, self.backend, self._faults)
        self._address = self.backend.address(self._store)
        self._seeded = False
        self._closed = False
        self.autoreset_mode = mode
        limit = self.env.max_episode_steps if max_episode_steps == "default" else max_episode_steps
        self.max_episode_steps = None if limit == -1 else limit

    # ---- arrays ----

    def _array(self, name: str, shape: tuple[int, ...], dtype: str) -> Any:
        array = self.backend.zeros(shape, dtype)
        self._owned.append(array)
        self._pointers[name] = self.backend.address(array)
        return array

    def _allocate(self, per_env: Mapping[str, Any]) -> None:
        n, lay = self.num_envs, self.layout
        for name, (dtype, kind) in ENGINE_ARRAYS.items():
            self.arrays[name] = self._array(name, (n, lay.agents) if kind == "A" else (n,), dtype)
        shape = (n, lay.agents, lay.observation_size)
        self.arrays["observation"] = self._array("observation", shape, lay.observation_dtype)
        self.arrays["final_observation"] = self._array("final_observation", shape, lay.observation_dtype)
        self.arrays["action"] = self._array("action", (n, lay.agents, lay.action_size), lay.action_dtype)
        if lay.mask_size:
            for name in ("action_mask", "final_action_mask"):
                self.arrays[name] = self._array(name, (n, lay.agents, lay.mask_size), "int8")
        for name, field in self.program.fields.items():
            if field.sizes and self.program.lanes == 1 and self.backend.interleaves:
                whole = self._array(f"field_{name}", (*field.sizes, n), field.dtype)
                self.arrays[name] = self.xp.moveaxis(whole, -1, 0)
            else:
                self.arrays[name] = self._array(f"field_{name}", (n, *field.sizes), field.dtype)
        if lay.state_space is not None:  # nobody wants it at every step yet
            self._pointers |= {"state": 0, "final_state": 0}
        for name, field in self.program.scratch.items():
            self._pointers[f"field_{name}"] = 0
            if self.backend.scratch_per_env:
                self._array(f"field_{name}", (n, *field.sizes), field.dtype)
        self._params: dict[str, Any] = {}
        for name in self.program.params:
            array = self._array(f"param_{name}", (n,) if name in per_env else (1,), "float32")
            array[...] = self.xp.asarray(per_env.get(name, getattr(self.cfg, name)))
            self._params[name] = array
        for name, table in self.program.tables.items():
            self._array(f"table_{name}", table.shape, str(table.dtype))[...] = self.xp.asarray(table)
        self._control = self._array("control", (2,), "int32")
        if self.debug:
            self._faults = self._array("faults", (n, self.program.lanes, WORDS), "uint64")

    def new_outputs(self, arrays: Mapping[str, Any]) -> Outputs:
        """Makes a caller's arrays a place for outputs (and actions), for `use_outputs`.

        Args:
            arrays: by name; contiguous, on the device, with the shape and dtype of those in `arrays`.
        """
        with self.backend.ordered():
            store = self._store.copy()
            for name, array in arrays.items():
                store[self.program.store.index(name)] = self.backend.address(array)
        return Outputs(dict(arrays), store, self.backend.address(store))

    def use_outputs(self, outputs: Outputs) -> None:
        """From now on the kernels write these outputs here, in full at each step: no copy is needed to keep them.

        It fits what every step writes for every env, in next-step and same-step mode: ``observation``, ``reward``,
        ``terminated``, ``truncated``; and ``action``, which a step reads. A game's own global state is written at every
        step where ``state`` has a place, and in same-step mode that of an episode's end where ``final_state`` has one.
        """
        self._store, self._address = outputs.store, outputs.address
        self.arrays.update(outputs.arrays)

    @property
    def nbytes(self) -> int:
        """Bytes of device memory that this batch holds."""
        return sum(int(a.nbytes) for a in self._owned)

    # ---- settings ----

    @property
    def autoreset_mode(self) -> AutoresetMode:
        """When a finished env begins its next episode. May be changed between steps."""
        return self._mode

    @autoreset_mode.setter
    def autoreset_mode(self, mode: str | AutoresetMode) -> None:
        self._mode = parse_autoreset_mode(mode)
        with self.backend.ordered():
            self._control[0] = _MODES.index(self._mode)

    @property
    def max_episode_steps(self) -> int | None:
        """The time limit in steps, or None. May be changed between steps."""
        return self._limit

    @max_episode_steps.setter
    def max_episode_steps(self, limit: int | None) -> None:
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 1):
            raise ValueError(f"max_episode_steps must be a positive int or None, not {limit!r}.")
        self._limit = None if limit is None else int(limit)
        with self.backend.ordered():
            self._control[1] = _NO_LIMIT if limit is None else limit

    @property
    def params(self) -> dict[str, Any]:
        """Copies of the run-time parameters: arrays of shape (1,), or (num_envs,) where given per env."""
        return {name: self.backend.to_numpy(array) for name, array in self._params.items()}

    def set_params(self, envs: Any = None, **values: Any) -> None:
        """Changes run-time (float) parameters.

        Args:
            envs: indices or a bool mask of the envs concerned; all by default. Only parameters that were given per env
                when the batch was made can differ from env to env.
            **values: a number, or an array with a value for each env concerned.

        Raises:
            TypeError: an unknown parameter, or one that is a compile-time constant.
            ValueError: out of range, or per-env values for a parameter that is shared.
        """
        self.check_usable()
        for name, value in values.items():
            if name not in self._params:
                kind = config_types(self.env.Config).get(name)
                if kind is not None:
                    raise TypeError(f"{self.env.id}: {name} is compiled into the kernel: make a new env to change it.")
                raise TypeError(unknown(f"{self.env.id} has no parameter", name, self._params))
            per_env = self._params[name].shape != (1,)
            many = np.ndim(value) > 0
            if (many or envs is not None) and not per_env:
                raise ValueError(
                    f"{self.env.id}: {name} is shared by all envs: give an array of length {self.num_envs} when making "
                    "the env to have it per env."
                )
            host = np.atleast_1d(np.asarray(value.get() if hasattr(value, "get") else value, np.float32))
            for bound in (host.min(), host.max()):
                split_config(self.env, 1, {name: float(bound)})
            with self.backend.ordered():
                where = slice(None) if envs is None else self._index(envs)
                self._params[name][where] = self.xp.asarray(host if many else host[0])
            top = float(self.backend.to_numpy(self._params[name]).max())
            self.cfg = dataclasses.replace(self.cfg, **{name: top})

    # ---- running ----

    @property
    def was_reset(self) -> bool:
        """Whether there has been a first `reset`, without which there is no state."""
        return self._seeded

    def check_usable(self) -> None:
        """Raises RuntimeError after `close`, and in another process than the one that made this batch."""
        if self._closed:
            raise RuntimeError(f"{self.env.id}: this env was closed; make a new one.")
        if os.getpid() != self._pid:
            raise RuntimeError(
                f"{self.env.id}: this env was made in another process; make it after the fork, or use 'spawn'."
            )

    def reset(self, seed: int | Any | None = None, mask: Any = None) -> None:
        """Begins new episodes.

        Args:
            seed: env ``i`` is seeded ``seed + i``; or a sequence of ``num_envs`` seeds; None goes on with the next
                episode of each env's own sequence (a fresh random seed the first time).
            mask: bool array (num_envs,) of the envs to reset; all by default.

        Raises:
            TypeError: a mask that is no bool array, or a seed that is no integer.
            ValueError: a mask or seeds of the wrong shape, a mask in host memory without a True, or a negative seed.
            RuntimeError: the first reset is not of all envs.
        """
        self.check_usable()
        if mask is not None and not self._seeded:
            raise RuntimeError(f"{self.env.id}: the first reset must be of all envs.")
        if seed is None and not self._seeded:
            seed = int.from_bytes(os.urandom(6), "little")
        with self.backend.ordered():
            chosen = True if mask is None else self._checked_mask(mask)
            if seed is not None:
                self.arrays["reset_seed"][...] = self._seeds(seed)
                self._seeded = True
            self.arrays["reset_mask"][...] = chosen
        self._kernels.launch("reset", self._address, self.num_envs, _NEXT_EPISODE if seed is None else _NEW_SEED)

    def _checked_mask(self, mask: Any) -> Any:
        if not hasattr(mask, "dtype") or not str(mask.dtype).endswith("bool"):
            kind = getattr(mask, "dtype", type(mask).__name__)
            raise TypeError(f"reset mask must be a bool array of shape ({self.num_envs},), not {kind}.")
        if tuple(mask.shape) != (self.num_envs,):
            raise ValueError(f"reset mask must have shape ({self.num_envs},), not {tuple(mask.shape)}.")
        if isinstance(mask, np.ndarray) and not mask.any():
            raise ValueError("reset mask must select at least one env.")
        return self.xp.asarray(mask)

    def _seeds(self, seed: Any) -> Any:
        if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
            if seed < 0:
                raise ValueError(f"seed must not be negative: {seed}.")
            return self.xp.arange(self.num_envs, dtype="uint64") + self.xp.uint64(int(seed) % 2**64)
        seeds = list(seed) if hasattr(seed, "__iter__") and not isinstance(seed, str) else None
        if seeds is None or not all(isinstance(s, (int, np.integer)) for s in seeds):
            raise TypeError(f"seed must be an int, a sequence of {self.num_envs} ints, or None, not {seed!r}.")
        if len(seeds) != self.num_envs:
            raise ValueError(f"{self.num_envs} envs need as many seeds, not {len(seeds)}.")
        if min(seeds) < 0:
            raise ValueError(f"seed must not be negative: {min(seeds)}.")
        return self.xp.asarray(np.array([int(s) for s in seeds], np.uint64))

    def step(self, envs: Any = None) -> None:
        """One step with the actions in ``arrays["action"]``: one launch, without allocation or waiting for all envs.

        Args:
            envs: index, indices or a bool mask of the envs to step; the others stay as they are, with their time and
                random numbers. All by default.

        Raises:
            RuntimeError: not reset yet, closed, or used after a fork.
            ValueError: an env that is named twice; with ``debug``, an action that is out of range or not a number.
            IndexError, TypeError: ``envs`` are no indices of envs.
        """
        self.check_usable()
        if not self._seeded:
            raise RuntimeError(f"{self.env.id}: call reset() before step().")
        if envs is None:
            if self.debug:
                self._check_actions()
            self._kernels.launch("step", self._address, self.num_envs)
            return
        chosen = self._numbers(envs)
        if np.bincount(chosen).max(initial=0) > 1:
            raise ValueError(f"{self.env.id}: an env can be stepped only once in a step, but envs names one twice.")
        if self.debug:
            self._check_actions(chosen)
        if len(chosen):
            with self.backend.ordered():
                where = self.xp.asarray(chosen)
            self._kernels.launch("step", self._address, len(chosen), self.backend.address(where))

    def rollout(self, steps: int, policy: str = "random") -> None:
        """``steps`` steps in one launch, with random legal actions drawn in the kernel.

        The arrays then hold what the last of these steps left, ``action`` included. The result is the same as that of
        `random_actions` and `step` in turn.
        """
        self.check_usable()
        if policy != "random":
            raise ValueError(f"rollout has the policy 'random' only, not {policy!r}.")
        if not self._seeded:
            raise RuntimeError(f"{self.env.id}: call reset() before rollout().")
        if steps < 0:
            raise ValueError(f"steps must not be negative: {steps}.")
        self._kernels.launch("rollout", self._address, self.num_envs, steps)

    def random_actions(self) -> None:
        """Fills ``arrays["action"]`` with random legal actions, the ones that `rollout` would take next."""
        self.check_usable()
        if not self._seeded:
            raise RuntimeError(f"{self.env.id}: call reset() before random_actions().")
        self._kernels.launch("act", self._address, self.num_envs)

    def _check_actions(self, envs: Any = slice(None)) -> None:
        from gpuzoo.core.actions import illegal_action

        message = illegal_action(self.layout, self.backend.to_numpy(self.arrays["action"])[envs])
        if message:
            raise ValueError(f"{self.env.id}: {message}")

    def synchronize(self) -> None:
        """Waits until the device has finished."""
        self.backend.synchronize()

    # ---- state ----

    def _numbers(self, envs: Any) -> np.ndarray[Any, Any]:
        """int64 indices from 0 to num_envs - 1, in host memory."""
        if isinstance(envs, (int, np.integer)) and not isinstance(envs, bool):
            envs = [int(envs)]
        host = np.asarray(envs.get() if hasattr(envs, "get") else envs)
        if host.dtype == np.bool_:
            if host.shape != (self.num_envs,):
                raise ValueError(f"a mask of envs must have shape ({self.num_envs},), not {host.shape}.")
            host = np.flatnonzero(host)
        if host.ndim != 1 or (host.size and host.dtype.kind not in "iu"):
            raise TypeError("envs must be an index, a sequence of indices, or a bool mask.")
        if host.size and not (-self.num_envs <= host.min() and host.max() < self.num_envs):
            raise IndexError(f"env indices must be below {self.num_envs}, not {host.min()}..{host.max()}.")
        return host.astype(np.int64) % self.num_envs

    def _index(self, envs: Any) -> Any:
        return self.xp.asarray(self._numbers(envs))

    def state(self, envs: Any = None) -> dict[str, Any]:
        """Copies of the game's fields, ``elapsed_steps`` and ``alive``, with the envs along the first axis.

        Args:
            envs: an index, indices or a bool mask; all envs by default.
        """
        self.check_usable()
        names = [*self.program.fields, *_STATE]
        with self.backend.ordered():
            where = slice(None) if envs is None else self._index(envs)
            return {name: self.xp.ascontiguousarray(self.arrays[name][where]).copy() for name in names}

    def global_state(self) -> Any:
        """The game's own global state now (`EnvDef.state_space`), in memory that the next call writes again.

        Returns:
            An array (num_envs, *shape of the space) on the device. It costs one launch, and nothing is waited for.

        Raises:
            ValueError: the game declares no ``state_space``.
            RuntimeError: not reset yet, closed, or used after a fork.
        """
        self.check_usable()
        space = self.layout.state_space
        if space is None:
            raise ValueError(f"{self.env.id} declares no state_space: its global state is all observations together.")
        if not self._seeded:
            raise RuntimeError(f"{self.env.id}: call reset() before global_state().")
        if self._told is None:
            self._told = self._array("told", (self.num_envs, *(space.shape or ())), str(space.dtype))
        self._kernels.launch("state", self._address, self.num_envs, self.backend.address(self._told))
        return self._told

    def set_state(self, values: Mapping[str, Any], envs: Any = None) -> None:
        """Writes fields of the state, and observes these envs anew, with those agents acting that are alive now.

        Args:
            values: new values by name of a field, ``elapsed_steps`` or ``alive``, with the envs along the first axis.
            envs: an index, indices or a bool mask; all envs by default.

        Raises:
            KeyError: no such field.
            ValueError: the wrong shape.
        """
        self.check_usable()
        known = [*self.program.fields, *_STATE]
        with self.backend.ordered():
            where = self._index(range(self.num_envs) if envs is None else envs)
            new = {}
            for name, value in values.items():
                if name not in known:
                    raise KeyError(unknown(f"{self.env.id} has no field", name, known))
                new[name] = self.xp.asarray(value)
                want = (len(where), *self.arrays[name].shape[1:])
                if new[name].shape != want:
                    raise ValueError(f"{self.env.id}: {name} must have shape {want}, not {new[name].shape}.")
            for name, value in new.items():
                self.arrays[name][where] = value
            self.arrays["reset_mask"][...] = False
            self.arrays["reset_mask"][where] = True
        self._kernels.launch("reset", self._address, self.num_envs, _NO_RESET)

    def snapshot(self, envs: Any = None) -> Snapshot:
        """The whole state of some envs (all by default), on the device."""
        self.check_usable()
        with self.backend.ordered():
            where = slice(None) if envs is None else self._index(envs)
            arrays = {
                name: self.xp.ascontiguousarray(array[where]).copy()
                for name, array in self.arrays.items()
                if name not in _TRANSIENT
            }
            n = len(arrays["elapsed_steps"])
            for name, array in self._params.items():
                values = array[where] if array.shape != (1,) else self.xp.broadcast_to(array, (n,))
                arrays[f"param_{name}"] = self.xp.ascontiguousarray(values).copy()
        return Snapshot(self.env.id, self.constants(), arrays)

    def constants(self) -> dict[str, Any]:
        """The compile-time part of the game's configuration."""
        return {name: getattr(self.cfg, name) for name in config_types(self.env.Config) if name not in self._params}

    def restore(self, snapshot: Snapshot, envs: Any = None) -> None:
        """Puts envs into the state of a snapshot; their episodes go on from there with the same bits.

        Args:
            snapshot: from `snapshot`, of any batch of the same game on any device.
            envs: the envs to overwrite, as many as the snapshot has; all by default.

        Raises:
            ValueError: a snapshot of another game, configuration or number of envs.
            RuntimeError: a restore of some envs while the others were never reset.
        """
        self.check_usable()
        if snapshot.id != self.env.id or snapshot.constants != self.constants():
            raise ValueError(
                f"this is a snapshot of {snapshot.id} with {snapshot.constants}, which does not fit "
                f"{self.env.id} with {self.constants()}."
            )
        with self.backend.ordered():
            where = self._index(range(self.num_envs) if envs is None else envs)
            if len(where) != len(snapshot):
                raise ValueError(f"the snapshot has {len(snapshot)} envs, but {len(where)} are to be overwritten.")
            if len(where) < self.num_envs and not self._seeded:
                raise RuntimeError(f"{self.env.id}: call reset() before some of the envs are restored.")
            new = {name: self.xp.asarray(snapshot.arrays[f"param_{name}"]) for name in self._params}
            for name, array in self._params.items():
                if array.shape == (1,) and not bool((new[name] == array[0]).all()):
                    raise ValueError(f"{self.env.id}: the snapshot has another {name}, which this batch shares.")
            for name, array in self._params.items():
                if array.shape != (1,):
                    array[where] = new[name]
            for name, array in self.arrays.items():
                if name not in _TRANSIENT:
                    array[where] = self.xp.asarray(snapshot.arrays[name])
        self._seeded = True

    def close(self) -> None:
        """Frees the arrays. May be called again."""
        if self._closed:
            return
        self._closed = True
        if os.getpid() == self._pid:
            self.backend.synchronize()
        self.arrays, self._params, self._owned, self._told = {}, {}, [], None
