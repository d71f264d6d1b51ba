"""A batch of envs on one device: owns every array and launches the kernels. Knows no RL library.

One class, as all that it does is to the same arrays: settings, steps, state and snapshots.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import numpy as np
from gymnasium.vector import AutoresetMode

from gpuzoo.core.arguments import (
    MODES,
    checked_mask,
    different_envs,
    env_numbers,
    fitting,
    host_seed,
    parse_autoreset_mode,
    seeds_of,
)
from gpuzoo.core.backend import Backend, Device, Kernels, make_backend, prepared
from gpuzoo.core.configuration import split_config
from gpuzoo.core.definition import EnvDef, check_class
from gpuzoo.core.faults import CheckedKernels
from gpuzoo.core.generated.store import ENGINE_ARRAYS
from gpuzoo.core.host import to_host
from gpuzoo.core.layout import Layout
from gpuzoo.core.memory import FIELD, Freed, Outputs, batch_shapes
from gpuzoo.core.parameters import Change, changed_parameters
from gpuzoo.core.programs import own_layout, program
from gpuzoo.core.recording import Recording
from gpuzoo.core.snapshot import Snapshot
from gpuzoo.core.suggestions import unknown
from gpuzoo.core.uniform import Uniform
from gpuzoo.core.values import config_types

_NEXT_EPISODE, _NEW_SEED, _NO_RESET, _WAITING = range(4)  # the enum Reset of episode.cuh
_HALF_STEP = 3  # of the enum Mode there, whose others are `MODES`
_NO_LIMIT: Final = 2**31 - 1
_MOST_ENVS: Final = 2**30  # kernels count envs in 32 bits
#: what of the engine belongs to a game's state, as its author sees it
_STATE: Final = ("elapsed_steps", "alive")
#: whose observations and action masks are written
OBSERVERS: Final = ("all", "mover")
#: what has a row for each of them
_OBSERVED: Final = ("observation", "action_mask")
#: arrays that carry nothing from one step to the next
_TRANSIENT: Final = frozenset({"over", "reset_mask", "reset_seed", "action", "final_observation", "final_action_mask"})
#: outputs that are written only where somebody gave them a place
_WANTED: Final = frozenset({"state", "final_state"})
#: what a step is given and tells
_IN_AND_OUT: Final = ("observation", "final_observation", "action", "action_mask", "final_action_mask")
#: what a step writes whatever was there before
_TOLD: Final = frozenset({"observation", "reward", "terminated", "truncated", "final_return", "final_length"})

_generation = 0  #: forks between the first process and this one


def _forked() -> None:
    global _generation
    _generation += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Simulator:
    """``num_envs`` copies of a game on one device.

    Args:
        env: the game, an instance or a subclass of `EnvDef`.
        num_envs: number of envs, 2**30 at most.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:k"``, ``"auto"``, or a ``torch.device``.
        autoreset_mode: when an env whose episode is over begins the next one (Gymnasium's three modes).
        max_episode_steps: time limit; ``"default"`` takes the game's own, None or -1 means no limit.
        threads: CPU threads; all by default.
        lanes: overrides the game's number of lanes; results do not depend on it.
        observers: of a game in turns, who has observations and action masks: ``"all"`` agents, or the ``"mover"``, the
            agent to move. Then an env has one row of each, which is half the memory and less work for two players.
        debug: raise ValueError for actions that are out of range or NaN, and IndexError if the rules use an index out
            of range, with file and line. The results are the same; steps are slower.
        backend: a backend to use instead of ``device``.
        **config: the game's parameters. A float parameter may be an array with a value per env, or a `gpuzoo.Uniform`
            from which every episode draws a value.

    Attributes:
        arrays: every array by name, on the device, with the envs along the first axis. ``observation``,
            ``reward``, ``terminated``, ``truncated``, ``alive``, ``episode_return``, ``final_return``, ``final_length``
            (num_envs, agents, ...); ``ended``, ``waiting``, ``elapsed_steps``, ``seed``, ``episode`` (num_envs,);
            ``action`` (num_envs, agents, action_size), to be written before `step`; and the game's fields.
        recordings: the recordings of single envs that are in progress.
        in_use: a lock, held while a kernel of this batch is launched; on a CPU, while it runs. `close` waits for it.

    Raises:
        ValueError, TypeError: arguments out of range or of the wrong type.
        RuntimeError: there is no GPU or no compiler, or the rules do not compile.
        ImportError: CuPy is missing for a CUDA device.
    """

    def __init__(
        self,
        env: EnvDef | type[EnvDef],
        num_envs: int = 1,
        *,
        device: Device = "auto",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | Literal["default"] | None = "default",
        threads: int | None = None,
        lanes: int | None = None,
        observers: Literal["all", "mover"] = "all",
        debug: bool = False,
        backend: Backend | None = None,
        **config: Any,
    ) -> None:
        self._closed, self._born = True, _generation
        self.recordings: list[Recording] = []
        self.in_use = threading.RLock()
        self.env: EnvDef = env() if isinstance(env, type) else env
        check_class(self.env)
        if isinstance(num_envs, bool) or not isinstance(num_envs, (int, np.integer)):
            raise TypeError(f"num_envs must be an int, not {num_envs!r}.")
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, not {num_envs}.")
        if num_envs > _MOST_ENVS:
            raise ValueError(f"num_envs must be at most {_MOST_ENVS}, not {num_envs}: make several batches.")
        if lanes is not None and (isinstance(lanes, bool) or not isinstance(lanes, (int, np.integer))):
            raise TypeError(f"lanes must be an int or None, not {lanes!r}.")
        if observers not in OBSERVERS:
            raise ValueError(f"observers must be {' or '.join(map(repr, OBSERVERS))}, not {observers!r}.")
        self.num_envs = int(num_envs)
        self.debug = debug
        mode = parse_autoreset_mode(autoreset_mode)
        cfg, per_env = split_config(self.env, self.num_envs, config)
        self._drawn = {name: values for name, values in per_env.items() if isinstance(values, Uniform)}
        given = {**vars(cfg), **{n: v if isinstance(v, Uniform) else v.copy() for n, v in per_env.items()}}
        self._made_with = {"threads": threads, "lanes": lanes, "observers": observers, "debug": debug, **given}
        self.backend = make_backend(device, threads) if backend is None else backend
        self.device = self.backend.device
        if lanes is None and self.device == "cpu" and type(self.env).single():
            lanes = 1  # lanes are loops there, and the state of a game with one lane is in registers
        self.program = program(self.env, cfg, per_env, lanes, debug, observers == "mover")
        self.cfg: Any = cfg
        self.xp = self.backend.xp
        kernels = self.backend.compile(self.program)
        self._told: Any = None  # the global state, once somebody has asked for it
        with self.backend.ordered():
            self._allocate(per_env)
        self._kernels: Kernels = kernels
        if debug:
            self._kernels = CheckedKernels(kernels, self.program, self.backend, self._faults)
        self._step = self._prepared_step(self._store)
        self._between_episodes: Callable[[Simulator], None] | None = None
        self._seeded = False
        self._closed = False
        self.autoreset_mode = mode
        limit = self.env.max_episode_steps if max_episode_steps == "default" else max_episode_steps
        self.max_episode_steps = None if limit == -1 else limit

    @functools.cached_property
    def layout(self) -> Layout:
        """How the spaces lie in the arrays. Its spaces are this batch's own, and made when they are first asked for."""
        return own_layout(self.program)

    # ---- arrays ----

    def _allocate(self, per_env: Mapping[str, Any]) -> None:
        n, program, xp = self.num_envs, self.program, self.xp
        envs_last = program.lanes == 1 and (self.backend.interleaves or program.form.packed)
        key = n, envs_last, self.backend.scratch_per_env
        known = program.shapes.get(key)
        if known is None:
            program.shapes.clear()  # one is enough: who makes many batches makes them of one size
            known = program.shapes[key] = batch_shapes(program, n, per_env, envs_last, self.backend.scratch_per_env)
        self._owned, addresses = self.backend.zeros_all(known)
        arrays = dict(zip(known.names, self._owned, strict=True))
        pointers = dict(zip(known.names, addresses, strict=True))
        self._control, self._faults = arrays["control"], arrays.get("faults")
        # An output that nobody wants yet, and scratch that is a thread's own, have no place.
        values = [n if name == "num_envs" else pointers.get(name, 0) for name in program.store]
        self._members = np.array(values, np.uint64)
        self._store = self.backend.store(self._members)
        self.arrays: dict[str, Any] = {name: arrays[name] for name in (*ENGINE_ARRAYS, *_IN_AND_OUT) if name in arrays}
        for name, field in program.fields.items():
            array = arrays[FIELD + name]
            self.arrays[name] = xp.moveaxis(array, -1, 0) if envs_last and field.shape else array
        self._params: dict[str, Any] = {}
        for name in program.params:
            array = self._params[name] = arrays[f"param_{name}"]
            value = self._drawn[name].low if name in self._drawn else per_env.get(name, getattr(self.cfg, name))
            self.backend.upload(array, value)
        self._ends = {name: arrays[f"ends_{name}"] for name in self._drawn}
        for name, ends in self._ends.items():
            self.backend.upload(ends, self._drawn[name].ends)
        for name, table in program.tables.items():
            self.backend.upload(arrays[f"table_{name}"], table)
        self._settings = np.zeros(2, np.int32)  # what is in `control`

    def new_outputs(self, arrays: Mapping[str, Any]) -> Outputs:
        """Makes a caller's arrays a place for outputs (and actions), for `use_outputs`.

        Args:
            arrays: by name; contiguous, on the device, with the shape and dtype of those in `arrays`.
        """
        members = self._members.copy()
        for name, array in arrays.items():
            members[self.program.store.index(name)] = self.backend.address(array)
        store = self.backend.store(members)
        return Outputs(dict(arrays), members, store, self._prepared_step(store))

    def use_outputs(self, outputs: Outputs) -> None:
        """From now on the kernels write these outputs here, in full at each step: no copy is needed to keep them.

        It fits what every step writes for every env, in next-step and same-step mode: ``observation``, ``reward``,
        ``terminated``, ``truncated``; and ``action``, which a step reads. A game's own global state is written at every
        step where ``state`` has a place, and in same-step mode that of an episode's end where ``final_state`` has one.
        """
        self._members, self._store, self._step = outputs.members, outputs.store, outputs.step
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
        self._interrupt()
        self._mode = parse_autoreset_mode(mode)
        self._tell_mode()

    @property
    def between_episodes(self) -> Callable[[Simulator], None] | None:
        """A function that each `step` in same-step mode calls with this batch, or None, which costs nothing.

        It is called when episodes have ended and the next ones have not begun: the fields of envs that are ``waiting``
        are those of their last state. On a CPU it is not called if no episode has ended. `rollout` does not call it,
        and a copy of this batch has none.
        """
        return self._between_episodes

    @between_episodes.setter
    def between_episodes(self, function: Callable[[Simulator], None] | None) -> None:
        self._between_episodes = function
        self._tell_mode()

    @property
    def _in_halves(self) -> bool:
        """Whether a step ends episodes, and another kernel begins the next ones."""
        return self._between_episodes is not None and self._mode == AutoresetMode.SAME_STEP

    def _tell_mode(self) -> None:
        self._settings[0] = _HALF_STEP if self._in_halves else MODES.index(self._mode)
        self.backend.upload(self._control, self._settings)

    @property
    def max_episode_steps(self) -> int | None:
        """The time limit in steps, or None. May be changed between steps."""
        return self._limit

    @max_episode_steps.setter
    def max_episode_steps(self, limit: int | None) -> None:
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 1):
            raise ValueError(f"max_episode_steps must be a positive int or None, not {limit!r}.")
        self._interrupt()
        self._limit = None if limit is None else int(limit)
        self._settings[1] = _NO_LIMIT if limit is None else limit
        self.backend.upload(self._control, self._settings)

    @property
    def params(self) -> dict[str, Any]:
        """Copies of the run-time parameters: arrays (1,), or (num_envs,) for parameters given per env or drawn."""
        return {name: self.backend.to_numpy(array) for name, array in self._params.items()}

    def config(self, env: int) -> Any:
        """The configuration of one env, with its own values of the run-time parameters."""
        own = {name: float(values[env % len(values)]) for name, values in self.params.items()
               if len(values) > 1 or name in self._drawn}  # fmt: skip
        return dataclasses.replace(self.cfg, **own)

    def param(self, name: str) -> Any:
        """The current value of a parameter, or a float32 array (num_envs,) if it may differ between envs.

        Raises:
            AttributeError: there is no such parameter.
        """
        array = self._params.get(name)
        shared = array is None or (array.shape == (1,) and name not in self._drawn)
        return getattr(self.cfg, name) if shared else self.backend.to_numpy(array)

    @property
    def drawn(self) -> Mapping[str, Uniform]:
        """The parameters that every episode draws, by name, with their distributions."""
        return dict(self._drawn)

    def set_params(self, envs: Any = None, **values: Any) -> None:
        """Changes run-time (float) parameters. After an error none has changed.

        Spaces do not change, so a value that would let observations or actions leave them is refused. Make the batch
        with the value that needs the widest space, or with an array that has the extreme values.

        Args:
            envs: indices or a bool mask of the envs to change; all by default. Only parameters that were given per env
                when the batch was made can differ between envs.
            **values: a number, or an array with a value for each of these envs. A parameter that every episode draws
                takes a `gpuzoo.Uniform`, which later episodes draw from, or a number, which fixes it.

        Raises:
            TypeError: a parameter is unknown or a compile-time constant, or ``envs`` is a dictionary.
            ValueError: a value is out of range or not finite; per-env values are given for a shared parameter, or their
                number is wrong; an env is named twice; the values of an env do not fit together; or a value needs a
                wider space.
        """
        self.check_usable()
        if isinstance(envs, Mapping):
            raise TypeError("set_params takes values by name, set_params(name=value), not a dictionary.")
        self._set_params(
            self._changed_params(values, None if envs is None else different_envs(self.env.id, envs, self.num_envs))
        )

    def _changed_params(self, values: Mapping[str, Any], envs: Any, restored: bool = False) -> Change:
        if not isinstance(values, Mapping):
            raise TypeError(f"params must be a dictionary of values by name, not {values!r}.")
        return changed_parameters(
            self.env, self.cfg, self.layout, self.params, self._drawn, values, envs, self.num_envs, restored
        )

    def _set_params(self, change: Change) -> None:
        self._interrupt()
        for name, array in change.values.items():
            self.backend.upload(self._params[name], array)
        for name, drawn in change.drawn.items():
            self.backend.upload(self._ends[name], drawn.ends)
        self._drawn |= change.drawn
        self.cfg = change.cfg

    # ---- running ----

    @property
    def was_reset(self) -> bool:
        """Whether there was a first `reset`. Before it there is no state."""
        return self._seeded

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def check_usable(self) -> None:
        """Raises RuntimeError after `close`, and in a process that did not make this batch."""
        if self._closed:
            raise RuntimeError(self._closed_message())
        if self._born != _generation:
            raise RuntimeError(
                f"{self.env.id}: this env was made in another process; make it after the fork, or use 'spawn'."
            )

    def check_begun(self, call: str) -> None:
        """As `check_usable`, and raises RuntimeError before the first `reset`; the message names the ``call``."""
        self.check_usable()
        if not self._seeded:
            raise RuntimeError(f"{self.env.id}: call reset() before {call}().")

    def _closed_message(self) -> str:
        return f"{self.env.id}: this env was closed; make a new one."

    def _interrupt(self) -> None:
        """Tells recordings that something else than a step changes the envs."""
        for recording in self.recordings:
            recording.interrupt()

    def _prepared_step(self, store: Any) -> Callable[[], None]:
        return prepared(self._kernels.launches["step"], store, 0, self.num_envs, self._kernels.threads)

    def _launch(self, kernel: str, count: int, argument: int = 0) -> None:
        with self.in_use:
            if self._closed:  # by another thread, since it was looked at
                self.check_usable()
            self._kernels.launches[kernel](self._store, argument, count, self._kernels.threads)

    def reset(self, seed: int | Any | None = None, mask: Any = None, params: Mapping[str, Any] | None = None) -> None:
        """Begins new episodes. After an error nothing has changed.

        Args:
            seed: env ``i`` gets the seed ``seed + i``; or a sequence or array of ``num_envs`` seeds. None begins the
                next episode of each env's own sequence (with a fresh random seed the first time).
            mask: bool array (num_envs,) of the envs to reset; all by default. The first reset must reset all.
            params: run-time parameters of these envs, as in `set_params`.

        Raises:
            TypeError: the mask is not a bool array, a seed is not an integer, or as `set_params`.
            ValueError: a mask or seeds of the wrong shape, a mask in host memory without a True, a negative seed, or as
                `set_params`.
            RuntimeError: the first reset leaves out envs.
        """
        self.check_usable()
        seed = host_seed(seed)
        if seed is None and not self._seeded:
            seed = int.from_bytes(os.urandom(6), "little")
        with self.backend.ordered():
            chosen: Any = None if mask is None else self.xp.asarray(checked_mask(mask, self.num_envs))
            if not (mask is None or self._seeded or bool(to_host(mask).all())):
                raise RuntimeError(f"{self.env.id}: the first reset must be of all envs.")
            seeds = None if seed is None else seeds_of(seed, self.num_envs)
            if params:
                self._set_params(
                    self._changed_params(params, None if mask is None else env_numbers(mask, self.num_envs))
                )
            if seeds is not None:
                self.backend.upload(self.arrays["reset_seed"], seeds)
                self._seeded = True
            if mask is None:
                self.backend.fill(self.arrays["reset_mask"], 1)
            else:
                self.backend.write(self.arrays["reset_mask"], chosen)
        self._interrupt()
        self._launch("reset", self.num_envs, _NEXT_EPISODE if seed is None else _NEW_SEED)

    def step(self, envs: Any = None) -> None:
        """One step with the actions in ``arrays["action"]``.

        A step of all envs is one launch. It allocates nothing, and does not wait for the device.

        Args:
            envs: index, indices or a bool mask of the envs to step; all by default. The others do not change, nor do
                their time and their random numbers.

        Raises:
            RuntimeError: not reset yet, closed, or used after a fork.
            ValueError: an env is named twice; with ``debug``, an action is out of range or NaN.
            IndexError, TypeError: ``envs`` are not indices of envs.
            IndexError: with ``debug``, the rules use an index out of range. The step is complete: the index read 0, and
                writes to it were dropped.
        """
        if self._closed or self._born != _generation:  # a call less where all is well
            self.check_usable()
        if not self._seeded:
            self.check_begun("step")
        if envs is None:
            if self.debug:
                self._check_actions()
            for recording in self.recordings:
                recording.before_steps(self)
            with self.in_use:
                if self._closed:  # by another thread, since it was looked at
                    self.check_usable()
                self._step()
            if self._between_episodes is not None:
                self._begin_next()
            return
        chosen = different_envs(self.env.id, envs, self.num_envs)
        if self.debug:
            self._check_actions(chosen)
        if len(chosen):
            for recording in self.recordings:
                if recording.env in chosen:
                    recording.before_steps(self)
            with self.backend.ordered():
                where = self.xp.asarray(chosen)
            self._launch("step", len(chosen), self.backend.address(where))
            if self._between_episodes is not None:
                self._begin_next(np.isin(np.arange(self.num_envs), chosen))

    def _begin_next(self, stepped: Any = None) -> None:
        """The second half of a step in halves, for the envs that were ``stepped`` (all of them, or a mask)."""
        if not self._in_halves or (self.xp is np and not self.arrays["waiting"].any()):
            return
        assert self._between_episodes is not None
        self._between_episodes(self)
        if stepped is None:
            self.backend.fill(self.arrays["reset_mask"], 1)
        else:
            self.backend.upload(self.arrays["reset_mask"], stepped)
        self._launch("reset", self.num_envs, _WAITING)

    def rollout(self, steps: int, policy: str = "random") -> None:
        """``steps`` steps in one launch, with random legal actions drawn in the kernel.

        The arrays then hold the results of the last step, and its ``action``. The result is the same as calling
        `random_actions` and `step` in turn.
        """
        self.check_begun("rollout")
        if policy != "random":
            raise ValueError(f"rollout has the policy 'random' only, not {policy!r}.")
        if steps < 0:
            raise ValueError(f"steps must not be negative: {steps}.")
        for recording in self.recordings * (steps > 0):
            recording.before_steps(self, steps)
        between = self._between_episodes
        if between is not None:
            self.between_episodes = None
        self._launch("rollout", self.num_envs, steps)
        if between is not None:
            self.between_episodes = between

    def random_actions(self) -> None:
        """Fills ``arrays["action"]`` with random legal actions, the same that `rollout` would take next."""
        self.check_begun("random_actions")
        self._launch("act", self.num_envs)

    def _check_actions(self, envs: Any = slice(None)) -> None:
        from gpuzoo.core.actions import illegal_action

        message = illegal_action(self.layout, self.backend.to_numpy(self.arrays["action"])[envs])
        if message:
            raise ValueError(f"{self.env.id}: {message}")

    def check_indices(self) -> None:
        """Checks for indices of the rules that were out of range, as every launch does with ``debug``.

        Use it if something other than this class calls the kernels.

        Raises:
            IndexError: the first such index of the lowest env.
        """
        if isinstance(self._kernels, CheckedKernels):
            self._kernels.check()

    def synchronize(self) -> None:
        """Waits until the device has finished."""
        self.backend.synchronize()

    # ---- state ----

    def _index(self, envs: Any) -> Any:
        return self.xp.asarray(env_numbers(envs, self.num_envs))

    def state(self, envs: Any = None) -> dict[str, Any]:
        """Copies of the game's fields, ``elapsed_steps`` and ``alive``, with the envs along the first axis.

        Args:
            envs: an index, indices or a bool mask; all envs by default.
        """
        self.check_usable()
        names = [*self.program.fields, *_STATE]
        with self.backend.ordered():
            where = None if envs is None else self._index(envs)
            return {name: self.backend.take(self.arrays[name], where) for name in names}

    def global_state(self) -> Any:
        """The game's own global state (`EnvDef.state_space`), in memory that the next call overwrites.

        Returns:
            An array ``(num_envs, *state_space.shape)`` on the device. It costs one launch, and does not wait.

        Raises:
            ValueError: the game declares no ``state_space``.
            RuntimeError: not reset yet, closed, or used after a fork.
        """
        self.check_begun("global_state")
        space = self.layout.state_space
        if space is None:
            raise ValueError(f"{self.env.id} declares no state_space: its global state is all observations together.")
        if self._told is None:
            with self.backend.ordered():
                self._told = self.backend.zeros((self.num_envs, *(space.shape or ())), str(space.dtype))
                self._owned.append(self._told)
        self._launch("state", self.num_envs, self.backend.address(self._told))
        return self._told

    def set_state(self, values: Mapping[str, Any], envs: Any = None) -> None:
        """Writes fields of the state, and recomputes the observations of these envs.

        The agents that are alive now act next.

        Args:
            values: new values by name of a field, ``elapsed_steps`` or ``alive``, with the envs along the first axis.
            envs: an index, indices or a bool mask; all envs by default.

        Raises:
            KeyError: no such field.
            TypeError: values are not numbers.
            ValueError: a shape is wrong, a number does not fit the field's dtype, or an env is named twice. After any
                error nothing has changed.
        """
        self.check_usable()
        known = [*self.program.fields, *_STATE]
        with self.backend.ordered():
            chosen = different_envs(self.env.id, range(self.num_envs) if envs is None else envs, self.num_envs)
            where = self.xp.asarray(chosen)
            new = {}
            for name, value in values.items():
                if name not in known:
                    raise KeyError(unknown(f"{self.env.id} has no field", name, known))
                new[name] = fitting(self.env.id, name, value, self.arrays[name], (len(where),), self.xp)
            for name, value in new.items():
                self.backend.put(self.arrays[name], where, value)
            self.backend.upload(self.arrays["reset_mask"], np.isin(np.arange(self.num_envs), chosen))
        self._interrupt()
        self._launch("reset", self.num_envs, _NO_RESET)

    def snapshot(self, envs: Any = None) -> Snapshot:
        """The complete state of some envs (all by default), on the device."""
        self.check_usable()
        with self.backend.ordered():
            where = None if envs is None else self._index(envs)
            arrays = {
                name: self.backend.take(array, where)
                for name, array in self.arrays.items()
                if name not in _TRANSIENT | _WANTED
            }
            n = len(arrays["elapsed_steps"])
            for name, array in self._params.items():
                same = self.xp.asarray(np.zeros(n, np.int64)) if array.shape == (1,) else where
                arrays[f"param_{name}"] = self.backend.take(array, same)
        return Snapshot(self.env.id, self.constants(), arrays)

    def episode_arrays(self) -> dict[str, Any]:
        """Those of `arrays` from which episodes go on: a snapshot's without what a step writes anew, in place."""
        left_out = _TRANSIENT | _WANTED | _TOLD
        if self.env.chooses:  # its rules, not its masks, say what is legal
            left_out |= {"action_mask"}
        return {name: array for name, array in self.arrays.items() if name not in left_out}

    def constants(self) -> dict[str, Any]:
        """The compile-time part of the game's configuration."""
        return {name: getattr(self.cfg, name) for name in config_types(self.env.Config) if name not in self._params}

    def restore(self, snapshot: Snapshot, envs: Any = None, seed: int | Any | None = None) -> None:
        """Sets envs to the state of a snapshot. Their episodes continue from there with the same bits.

        With ``seed`` the state is the same, but later random numbers follow from the new seeds. So
        ``restore(sim.snapshot(3), seed=0)`` begins a different game in each env, all from the state of env 3.

        Args:
            snapshot: from `snapshot`, of any batch of the same game on any device.
            envs: index, indices or a bool mask of the envs to overwrite; all by default. There must be as many as in
                the snapshot, unless it has one env.
            seed: the ``k``-th of these envs gets the seed ``seed + k``; or a sequence with a seed for each. None keeps
                the snapshot's seeds.

        Raises:
            TypeError: ``envs`` are not indices, or a seed is not an integer.
            ValueError: the snapshot has another game, configuration or number of envs, lacks an array, or has one of
                another shape or dtype; an env is named twice; `set_params` would refuse its parameters; seeds are too
                few or negative. After any error nothing has changed.
            RuntimeError: some envs are restored while the others were never reset.
        """
        self.check_usable()
        if snapshot.id != self.env.id or snapshot.constants != self.constants():
            raise ValueError(
                f"this is a snapshot of {snapshot.id} with {snapshot.constants}, which does not fit "
                f"{self.env.id} with {self.constants()}."
            )
        kept = [name for name in self.arrays if name not in _TRANSIENT | _WANTED]
        others_observe = self._has_other_observers(snapshot)
        if others_observe:
            kept = [name for name in kept if name not in _OBSERVED]
        for name in (*kept, *(f"param_{name}" for name in self._params)):
            if name not in snapshot.arrays:
                raise ValueError(f"{self.env.id}: the snapshot has no array {name!r}.")
        chosen = different_envs(self.env.id, range(self.num_envs) if envs is None else envs, self.num_envs)
        if len(snapshot) not in (1, len(chosen)):
            raise ValueError(f"the snapshot has {len(snapshot)} envs, but {len(chosen)} are to be overwritten.")
        if len(chosen) < self.num_envs and not self._seeded:
            raise RuntimeError(f"{self.env.id}: call reset() before some of the envs are restored.")
        with self.backend.ordered():
            new = {
                name: fitting(self.env.id, name, snapshot.arrays[name], self.arrays[name], (len(snapshot),), self.xp)
                for name in kept
            }
            if seed is not None:
                new["seed"] = seeds_of(seed, len(chosen))
            params = self._restored_params(snapshot, chosen)
            where = self.xp.asarray(chosen)
            for name, array in new.items():
                self.backend.put(self.arrays[name], where, array)
        self._set_params(params)
        self._seeded = True
        if others_observe:
            self.backend.upload(self.arrays["reset_mask"], np.isin(np.arange(self.num_envs), chosen))
            self._launch("reset", self.num_envs, _NO_RESET)

    def _has_other_observers(self, snapshot: Snapshot) -> bool:
        """Whether rows of all agents stand against rows of the agent to move."""
        rows = getattr(snapshot.arrays.get("observation"), "shape", (0, 0))[1:2]
        return rows in ((1,), (self.layout.agents,)) and rows != (self.layout.observers,)

    def _restored_params(self, snapshot: Snapshot, chosen: Any) -> Change:
        values = {}
        for name, now in self.params.items():
            value = to_host(snapshot.arrays[f"param_{name}"])
            if value.shape != (len(snapshot),):
                raise ValueError(f"{self.env.id}: {name} must have shape ({len(snapshot)},), not {value.shape}.")
            if now.shape != (1,) or name in self._drawn:
                values[name] = np.broadcast_to(value, chosen.shape)
            elif not (value == now).all():
                raise ValueError(f"{self.env.id}: the snapshot has another {name}, which this batch shares.")
        return self._changed_params(values, chosen, restored=True)

    # ---- copies ----

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy (pickle, ``copy.deepcopy``) is a batch of its own on the same device, in the same state.

        A snapshot would not do: actions and the outputs of the last step belong to it too. A step of another thread is
        waited for.
        """
        self.check_usable()
        arguments = {
            "env": self.env,
            "num_envs": self.num_envs,
            "device": self.device,
            "autoreset_mode": self._mode,
            "max_episode_steps": self._limit,
            **self._made_with,
        }
        with self.in_use:
            self.check_usable()
            arrays = {n: self.backend.to_numpy(a) for n, a in self.arrays.items() if n not in _WANTED}
        return _copied, (arguments, Change(self.cfg, self.params, self._drawn), arrays, self._seeded)

    def close(self) -> None:
        """Frees the arrays, after a running step of another thread has finished. May be called again."""
        if self._born != _generation:  # a thread that is not in this process may have left `in_use` locked
            self._free()
            return
        with self.in_use:
            if not self._closed:
                for recording in list(self.recordings):
                    recording.stop()
                self.backend.release(self._owned)
                self._free()

    def _free(self) -> None:
        self._closed = True
        self.arrays, self._params, self._owned = Freed(self._closed_message()), {}, []
        self._told = None


def _copied(arguments: dict[str, Any], params: Change, arrays: dict[str, Any], seeded: bool) -> Simulator:
    simulator = Simulator(**arguments)  # with the parameters that the spaces follow from, and then the present ones
    simulator._set_params(params)
    for name, array in arrays.items():
        simulator.backend.upload(simulator.arrays[name], array)
    simulator._seeded = seeded
    return simulator
