"""EnvPool's interface: send actions to some envs, receive those that are finished first.

One class: its two halves, sending and receiving, share the batch's arrays and the count of what is in flight.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from gpuzoo import registry, tensors
from gpuzoo.core.actions import illegal_action
from gpuzoo.core.backend import Device
from gpuzoo.core.backend_cpu import available_threads
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.host import to_host
from gpuzoo.core.pool import Column, HostQueue, Queue, Rows, StreamQueue
from gpuzoo.core.simulator import Simulator
from gpuzoo.interfaces.arrays import ActionSlot, Recycler, presented
from gpuzoo.interfaces.attributes import BatchAttributes
from gpuzoo.interfaces.batch import Output, check_options, check_output, check_render_mode, draw
from gpuzoo.interfaces.infos import names_of, own_infos
from gpuzoo.interfaces.pool_arguments import checked_count, env_indices, refusal, torch_kind
from gpuzoo.interfaces.spaces import common_spaces
from gpuzoo.interfaces.turns import check_all_observe

#: what a step of the whole batch writes in full
_WRITTEN = ("observation", "reward", "terminated", "truncated")
#: fewest streams, where there are streams
_STREAMS = 2
_INT32 = np.dtype(np.int32)


@dataclasses.dataclass(frozen=True)
class PoolSpec:
    """Facts about a pool that need no step, as EnvPool's ``spec``.

    Attributes:
        id: the game.
        config: as `EnvPool.config`.
        observation_space: of one row.
        action_space: of one row.
        reward_threshold: return at which the game counts as solved, or None.
    """

    id: str
    config: dict[str, Any]
    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    reward_threshold: float | None


class EnvPool(BatchAttributes, gymnasium.vector.VectorEnv[Any, Any, Any]):
    """A batch of a game with EnvPool's interface; `make_pool` makes one.

    An env is in flight from `send`, `async_reset` or `reset` until `recv` returns it. Meanwhile native threads step it,
    and the caller is free to do other work. An env's results depend on its seed and its actions only, not on when it is
    stepped or together with which envs.

    Autoreset is Gymnasium's next-step mode, as in EnvPool: the first send after the end of an episode begins the next
    one. Its action is ignored, its reward is 0 and its ``elapsed_step`` 0. In the same way, the first send to an env
    that was never reset begins its first episode.

    **Here `num_envs` counts envs**, as in EnvPool, and so does ``batch_size``. (`VectorEnv` counts rows.) A row is one
    agent of one env, like EnvPool's players. The rows of an env are adjacent, in the order of its agents. In a
    single-agent game a row is an env. If a game has action masks, observations are ``{"observation", "action_mask"}``.
    Discrete and MultiDiscrete observations are int32, as in EnvPool.

    Args:
        env: id or declaration of the game.
        num_envs: see `make_pool`, as for the next arguments.
        batch_size: see there.
        num_threads: see there.
        seed: see there.
        device: see there.
        output: see there.
        max_episode_steps: see there.
        infos: see there.
        render_mode: see there.
        extra_columns: names of further arrays of the simulator, one value per env or per agent, which `column` returns.
        **kwargs: further arguments of `Simulator` (``debug``, ``lanes``) and the game's parameters.

    Attributes:
        simulator: the engine below.
        num_envs, num_worlds: number of envs, whatever their number of agents.
        batch_size: number of envs that `recv` waits for.
        observation_space, action_space: of one row (``single_observation_space`` and ``single_action_space`` are
            the same).
        info_names: names of the game's own infos, where they were asked for.
        spec: a `PoolSpec`.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012
    _NOT_COPIED: ClassVar = {"_unwritten": list, "_finalizer": type(None)}

    def __init__(
        self,
        env: str | EnvDef | type[EnvDef],
        num_envs: int = 1,
        batch_size: int | None = None,
        num_threads: int | None = None,
        *,
        seed: int | Any | None = 42,
        device: Device = "auto",
        output: Output | None = None,
        max_episode_steps: int | Literal["default"] | None = "default",
        infos: bool = False,
        render_mode: str | None = None,
        extra_columns: tuple[str, ...] = (),
        **kwargs: Any,
    ) -> None:
        self._finalizer: Callable[[], Any] = lambda: None
        if "autoreset_mode" in kwargs:
            raise TypeError("a pool resets in next-step mode, as EnvPool does; for the other modes take make_vec.")
        check_render_mode(render_mode, ("rgb_array",))
        check_all_observe(kwargs, "a pool")
        definition = registry.get(env)
        tensors.start(output, device)
        threads = checked_count("num_threads", available_threads() if num_threads is None else num_threads, None)
        self.simulator = sim = Simulator(
            definition, num_envs, device=device, max_episode_steps=max_episode_steps, threads=threads, **kwargs
        )
        self.num_envs = self.num_worlds = sim.num_envs
        self.batch_size = checked_count(
            "batch_size", self.num_envs if batch_size is None else batch_size, self.num_envs
        )
        on_gpu = sim.device.startswith("cuda")
        self._output: str = output or ("torch" if on_gpu else "numpy")
        check_output(self._output, sim.device)
        self.info_names = tuple(names_of(definition, sim.cfg)) if infos else ()
        self.autoreset_mode = sim.autoreset_mode
        self.render_mode = render_mode
        self.metadata = {
            **self.metadata,
            "autoreset_mode": AutoresetMode.NEXT_STEP,
            "render_fps": definition.render_fps,
        }
        lay = sim.layout
        self._agents, self._multi, self._masks = lay.agents, lay.agents > 1, lay.mask_size > 0
        self.single_observation_space, self.single_action_space = common_spaces(lay, list(lay.groups))
        self.observation_space, self.action_space = self.single_observation_space, self.single_action_space
        space = self.single_observation_space
        plain = space["observation"] if isinstance(space, spaces.Dict) else space
        self._action_shape = self.single_action_space.shape or ()
        self._floats = lay.action_dtype == "float32"
        received = [
            Column("observation", lay.agents, plain.shape or ()),
            *(Column(name, lay.agents, ()) for name in _WRITTEN[1:]),
            Column("elapsed_steps", 1, ()),
        ]
        if lay.mask_size:
            received.append(Column("action_mask", lay.agents, (lay.mask_size,)))
        names = [*(("alive",) if lay.agents > 1 else ()), *extra_columns]
        received += [Column(name, 1 if sim.arrays[name].ndim == 1 else lay.agents, ()) for name in dict.fromkeys(names)]
        self._columns = received
        self._whole = self.batch_size == self.num_envs
        self._place = {c.name: k + 2 for k, c in enumerate(received)}
        self._seed = seed
        self._new = np.ones(self.num_envs, np.bool_)  # envs that were never reset
        self._begun = False  # whether there are none of these
        self._all = np.arange(self.num_envs, dtype=np.int32)
        self._slot = ActionSlot(
            sim,
            0,
            lay.agents,
            self.single_action_space,
            self._rows_shape(self.num_envs),
            f"actions of {self.num_envs} envs",
        )
        self._usual = (self.batch_size,), self._rows_shape(self.batch_size), np.dtype(lay.action_dtype)
        self._queue: Queue
        if on_gpu or sim.backend.interleaves:
            streams = max(_STREAMS, -(-self.num_envs // self.batch_size))
            self._queue = StreamQueue(sim, self.batch_size, received, min(streams, 16))
        else:
            self._queue = HostQueue(sim, threads, received, self._action_shape)
        rows_of = functools.partial(_recycled, self.num_envs, received[: len(_WRITTEN)])
        self._recycler = None if on_gpu else Recycler(sim, _WRITTEN, rows_of)
        self._converts = on_gpu or self._output != "numpy" or sim.debug
        self._config = {
            "num_envs": self.num_envs,
            "batch_size": self.batch_size,
            "num_threads": threads,
            "max_num_players": lay.agents,
            "seed": seed,
            "max_episode_steps": sim.max_episode_steps,
            "reward_threshold": definition.reward_threshold,
            "device": sim.device,
            **dataclasses.asdict(sim.cfg),
        }
        self.spec = PoolSpec(  # type: ignore[assignment]
            definition.id, self.config, self.observation_space, self.action_space, definition.reward_threshold
        )
        self._attach()

    def _attach(self) -> None:
        """Makes what belongs to this pool's memory and process, for a copy too."""
        sim = self.simulator
        self._unwritten = [_rows(sim.arrays, c, self.num_envs) for c in self._columns[len(_WRITTEN) :]]
        self._lent = False  # whether the caller has the arrays that the next step would write
        self._finalizer = weakref.finalize(self, _close, os.getpid(), self._queue, sim)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._attach()

    # ---- what EnvPool's users look up ----

    def __len__(self) -> int:
        return self.num_envs

    def __repr__(self) -> str:
        return f"EnvPool({self.simulator.env.id}, " + ", ".join(f"{k}={v!r}" for k, v in self._config.items()) + ")"

    @property
    def config(self) -> dict[str, Any]:
        """``num_envs``, ``batch_size``, ``num_threads``, ``seed`` and so on, and the game's parameters."""
        return dict(self._config)

    @property
    def all_env_ids(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """0 to ``num_envs - 1``, int32."""
        return self._all.copy()

    @property
    def is_async(self) -> bool:
        """Whether `recv` waits for only some of the envs."""
        return not self._whole

    # ---- rows ----

    def _rows_shape(self, count: int) -> tuple[int, ...]:
        return (count * self._agents, *self._action_shape)

    def _own_memory(self) -> None:
        """Takes the next steps to arrays that no caller has, with the present contents."""
        if self._lent:
            assert self._recycler is not None
            self._recycler.keep()
            self._lent = False

    def _checked(self, action: Any, env_id: Any) -> tuple[Any, Any]:
        """Actions as an array and envs as an array of indices, or one of the errors that `send` names."""
        if isinstance(action, Mapping):
            env_id = action.get("env_id") if env_id is None else env_id
            action = action["action"]
        if env_id is None:
            env_id = self._all
        elif type(env_id) is not np.ndarray or env_id.dtype != np.int32 or env_id.ndim != 1:
            env_id = env_indices(env_id, self.num_envs, self._queue.flight)
        if type(action) is not np.ndarray and (self._recycler is not None or not hasattr(action, "shape")):
            action = np.asarray(action)
        shape = (len(env_id) * self._agents, *self._action_shape)
        if action.shape != shape:
            rows = f"{len(env_id)} envs" if self._agents == 1 else f"{len(env_id)} envs of {self._agents} agents"
            raise ValueError(f"action for {rows} must have shape {shape}, not {tuple(action.shape)}.")
        kind = action.dtype.kind if hasattr(action.dtype, "kind") else torch_kind(action.dtype)
        if kind not in ("fiu" if self._floats else "iu"):
            wanted = "numbers" if self._floats else "integers"
            raise TypeError(f"action must be {wanted} in {self.single_action_space}, not {action.dtype}.")
        return action, env_id

    # ---- send and receive ----

    def send(self, action: Any, env_id: Any = None) -> None:
        """Starts a step of some envs, and returns at once.

        Args:
            action: (envs, ...), or (envs * agents, ...) with an env's rows together; copied. Or EnvPool's dictionary
                ``{"action": ..., "env_id": ...}``.
            env_id: integers (envs,) in any order, as in ``info["env_id"]``; all envs by default.

        Raises:
            IndexError: an env is out of range.
            ValueError: an env is named twice, or actions have the wrong shape; with ``debug``, an illegal action.
            TypeError: indices are not integers, or actions have the wrong kind.
            RuntimeError: an env is in flight, or the pool was closed or made before a fork. After any error nothing has
                changed.
        """
        sim = self.simulator
        if not self._queue.usable:
            sim.check_usable()
        if not (
            type(action) is np.ndarray
            and type(env_id) is np.ndarray
            and env_id.dtype is _INT32
            and env_id.shape == self._usual[0]
            and action.shape == self._usual[1]
            and action.dtype is self._usual[2]
        ):  # this is what the loop of a trainer has each time
            action, env_id = self._checked(action, env_id)
        if sim.debug:
            self._check_actions(action, len(env_id))
        if self._lent:
            self._own_memory()
        if self._begun:
            if not self._queue.send(env_id, action):
                raise refusal(env_id, self.num_envs, self._queue.flight)
        else:
            self._send_new(env_id, action)

    def _send_new(self, env_id: Any, action: Any) -> None:
        """As `send`, where an env that was never reset begins its first episode instead of taking a step."""
        env_id = env_indices(env_id, self.num_envs, self._queue.flight)
        if self._queue.flight[env_id].any() or np.bincount(env_id).max(initial=0) > 1:
            raise refusal(env_id, self.num_envs, self._queue.flight)
        new = self._new[env_id]
        if new.any():
            self._reset(env_id[new], None)
        if not new.all():
            self._queue.send(env_id[~new], to_host(action)[np.repeat(~new, self._agents)])

    def _check_actions(self, action: Any, count: int) -> None:
        lay = self.simulator.layout
        message = illegal_action(lay, to_host(action).reshape(count, lay.agents, lay.action_size))
        if message:
            raise ValueError(f"{self.simulator.env.id}: {message}")

    def recv(self) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Waits for the first ``batch_size`` envs to finish, or for all that are in flight if these are fewer.

        On a CPU the waiting thread steps envs itself. On a GPU the envs of a `send` are stepped in batches of at most
        ``batch_size``, each on a stream, and the oldest finished batch is returned. The current stream waits
        for it; the host does not.

        Returns:
            Observations, rewards (float32), terminations, truncations (bool), each (rows, ...), in arrays that the
            caller may keep, and infos: ``env_id`` int32 (envs,), ``players`` with the ``env_id`` of each row,
            ``elapsed_step`` int32 (envs,), and with several agents ``alive`` (rows,), whether the agent acts next. With
            ``infos=True`` also the game's own, (envs, ...); those of the last step mean nothing where ``elapsed_step``
            is 0.

        Raises:
            RuntimeError: nothing is in flight, so this would wait forever; the pool is closed; or after a fork.
            IndexError: with ``debug``, an index of the rules that is out of range.
        """
        return self._gymnasium(self.recv_rows())

    def recv_rows(self) -> Rows:
        """As `recv`, as a bare tuple; for other interfaces."""
        if not self._queue.usable:
            self.simulator.check_usable()
        rows = self._queue.receive(self.batch_size)
        return self._converted(rows) if self._converts else rows

    def _converted(self, rows: Rows) -> Rows:
        """Columns in the kind that was asked for. With ``debug``, if the rules kept to their arrays."""
        if self.simulator.debug:
            self.simulator.check_indices()
        if self._output == "cupy":
            return rows
        convert = tensors.as_tensor if self._output == "torch" else self.simulator.backend.to_numpy
        return rows[:2] + tuple(convert(x) for x in rows[2:])

    def _gymnasium(self, rows: Rows) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        infos = {"env_id": rows[0], "players": {"env_id": rows[1]}, "elapsed_step": rows[6]}
        if self._multi:
            infos["alive"] = rows[self._place["alive"]]
        if self.info_names:
            infos |= self._own_infos(rows[0])
        observation = self.observation(rows) if self._masks else rows[2]
        return observation, rows[3], rows[4], rows[5], infos

    def _own_infos(self, envs: Any) -> dict[str, Any]:
        """The game's own infos of some envs."""
        sim = self.simulator
        with sim.backend.ordered():
            where = sim.xp.asarray(to_host(envs).astype(np.int64))
        state, step = own_infos(sim, lambda array: presented(sim, self._output, sim.backend.take(array, where)))
        return state | step

    def observation(self, rows: Rows) -> Any:
        """The observation of `rows`, with the masks if the game has masks."""
        if not self._masks:
            return rows[2]
        return {"observation": rows[2], "action_mask": rows[self._place["action_mask"]]}

    def column(self, rows: Rows, name: str) -> Any:
        """An array of `rows` by its name in the simulator."""
        return rows[self._place[name]]

    def step(self, action: Any, env_id: Any = None) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """`send`, then `recv`. If ``batch_size`` is ``num_envs``, this steps all envs at once.

        Raises:
            As `send` and `recv`.
        """
        return self._gymnasium(self.step_rows(action, env_id))

    def step_rows(self, action: Any, env_id: Any = None) -> Rows:
        """As `step`, as a bare tuple; for other interfaces."""
        whole = env_id is None and self._begun and self._whole and not self._queue.in_flight
        if not whole or (type(action) is not np.ndarray and isinstance(action, Mapping)):
            self.send(action, env_id)
            return self.recv_rows()
        sim, recycler = self.simulator, self._recycler
        if not self._queue.usable:
            sim.check_usable()
        self._slot.write(action)
        envs = self._all.copy()
        players = self._all.repeat(self._agents) if self._multi else envs
        if recycler is not None:
            written = recycler.next()
            if not self._lent:
                self._lent = True
            sim.step()
            rows = (envs, players, *written, *[array.copy() for array in self._unwritten])
        else:
            sim.step()
            copies = {c.name: sim.backend.copied(sim.arrays[c.name]) for c in self._columns}
            rows = (envs, players, *(_rows(copies, c, self.num_envs) for c in self._columns))
        return self._converted(rows) if self._converts else rows

    # ---- reset ----

    def async_reset(self) -> None:
        """Resets all envs. They are in flight until `recv` returns them. The first episodes use the pool's seed.

        Raises:
            RuntimeError: an env is in flight.
        """
        self._reset(self._all, None)

    def _reset(self, env_id: Any, seed: Any) -> None:
        sim = self.simulator
        sim.check_usable()
        mask = np.zeros(self.num_envs, np.bool_)
        mask[env_id] = True

        def work() -> None:
            self._own_memory()
            if not sim.was_reset:
                sim.reset(self._seed)
            if seed is not None:
                sim.reset(seed, mask)
            elif (mask & ~self._new).any():  # the others are at the beginning of their first episode
                sim.reset(None, mask & ~self._new)

        if not self._queue.reset(env_id, work):
            raise refusal(env_id, self.num_envs, self._queue.flight)
        self._new &= ~mask
        self._begun = not self._new.any()

    def reset(
        self, env_id: Any = None, *, seed: int | Any | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins new episodes and receives a batch.

        Args:
            env_id: the envs to reset; all by default.
            seed: env ``i`` is seeded ``seed + i``; or a seed for each env of the pool. By default the pool's seed for
                the first episodes, and afterwards the next episode of each env's own sequence.
            options: ``reset_mask``: bool (num_envs,) of the envs to reset, in place of ``env_id``.

        Returns:
            Observations and infos of `recv`. In asynchronous mode these belong to ``batch_size`` envs. If other envs
            are in flight, they may not be the envs that were reset, so prefer `async_reset` there.

        Raises:
            RuntimeError: one of these envs is in flight.
            IndexError, ValueError, TypeError: invalid ``env_id``, ``seed`` or ``options``.
        """
        observations, _, _, _, infos = self._gymnasium(self.reset_rows(env_id, seed=seed, options=options))
        return observations, infos

    def reset_rows(self, env_id: Any = None, *, seed: Any = None, options: dict[str, Any] | None = None) -> Rows:
        """As `reset`, as a bare tuple; for other interfaces."""
        check_options(self.simulator, options, ("reset_mask",))
        mask = (options or {}).get("reset_mask")
        if mask is not None:
            mask = to_host(mask)
            if env_id is not None:
                raise ValueError("give either env_id or options['reset_mask'], not both.")
            if mask.dtype != np.bool_ or mask.shape != (self.num_envs,) or not mask.any():
                raise ValueError(f"options['reset_mask'] must be bool, of shape ({self.num_envs},), with a True in it.")
            env_id = np.flatnonzero(mask)
        ids = self._all if env_id is None else env_indices(env_id, self.num_envs, self._queue.flight)
        if not len(ids):
            raise ValueError("env_id must name at least one env to reset.")
        self._reset(ids, seed)
        return self.recv_rows()

    def xla(self) -> tuple[Any, Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
        """The envs as functions of JAX, for loops inside ``jax.jit``: EnvPool's ``handle, recv, send, step``.

        ``step(handle, action)`` returns the next handle and the results of `step`. ``send(handle, action)`` returns the
        next handle, and ``recv(handle)`` returns the same handle and the results of its step. A handle holds the
        current state of the envs in JAX arrays. The functions are pure: an old handle can be stepped again, and this
        pool does not change. Envs in flight are received first. `gpuzoo.jax` has more functions for JAX.

        Raises:
            ImportError: JAX is missing.
            RuntimeError: not reset yet, closed, or used after a fork.
            ValueError: ``batch_size`` is less than ``num_envs``, or the pool has ``debug`` or ``infos``.
            NotImplementedError: the pool is on a GPU.
        """
        from gpuzoo.jax.pool import xla

        self.simulator.check_usable()
        if self._queue.in_flight:
            self.recv_rows()
        return xla(self)

    def render(self, env_ids: Any = None) -> np.ndarray[Any, Any]:  # type: ignore[override]
        """Pictures of some envs, (envs, height, width, 3) uint8.

        Args:
            env_ids: an index or indices of envs; all by default.

        Raises:
            IndexError, TypeError: invalid ``env_ids``.
            RuntimeError: the pool was made without ``render_mode="rgb_array"``, or an env is in flight.
        """
        if self.render_mode is None:
            raise RuntimeError("make the pool with render_mode='rgb_array' to render() it.")
        ids = self._all if env_ids is None else env_indices(env_ids, self.num_envs, self._queue.flight)
        flying = ids[self._queue.flight[ids] != 0]
        if len(flying):
            raise RuntimeError(f"env {flying[0]} is in flight: recv() it before render().")
        return np.stack([draw(self.simulator, int(env)) for env in ids])

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the threads and frees the arrays, even if envs are in flight. `close` calls it once."""
        self._finalizer()


def _recycled(num_envs: int, columns: Sequence[Column], arrays: Mapping[str, Any]) -> Rows:
    return tuple(_rows(arrays, c, num_envs) for c in columns)


def _rows(arrays: Mapping[str, Any], column: Column, num_envs: int) -> Any:
    return arrays[column.name].reshape(num_envs * column.rows, *column.shape)


def _close(pid: int, queue: Queue, simulator: Simulator) -> None:
    if os.getpid() == pid:  # a child of a fork has the memory, but not the threads
        queue.close()
    simulator.close()
