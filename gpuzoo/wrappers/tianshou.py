"""Tianshou: batches of single-agent and turn-based games for its collectors and trainers."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from gpuzoo import registry
from gpuzoo.core.arguments import parse_autoreset_mode
from gpuzoo.core.backend import Device
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.simulator import Simulator
from gpuzoo.core.suggestions import unknown
from gpuzoo.interfaces.arrays import ActionSlot
from gpuzoo.interfaces.batch import apply_options, check_options, check_render_mode, draw
from gpuzoo.interfaces.spaces import common_spaces
from gpuzoo.interfaces.turns import check_all_observe

try:
    from tianshou.data import Batch, to_numpy
    from tianshou.env import BaseVectorEnv
except ImportError as error:
    raise ImportError("gpuzoo.wrappers.tianshou needs Tianshou: pip install 'gpuzoo[tianshou]'.") from error

Array = np.ndarray[Any, Any]
Ids = int | Sequence[int] | Array | None
Returned = tuple[Any, Array, Array, Array, Array]


class TianshouVectorEnv(BaseVectorEnv):
    """A batch of a game as one of Tianshou's vector envs, for ``Collector`` and everything built on it.

    An env begins its next episode when it is reset, as ``Collector`` does; until then a step leaves it as it is, with
    reward 0. Only the envs with the given ids are stepped or reset. Arrays are NumPy and fresh, and their rows are in
    the order of the ids. ``info`` is an object array of dictionaries with ``env_id``.

    Observations of a game with action masks are a ``tianshou.data.Batch`` of ``obs`` and ``mask`` (bool), the names
    that Tianshou's policies look for.

    A turn-based game is seen as by Tianshou's ``PettingZooEnv``: the observation is that of the agent to move, with its
    name as ``agent_id``, the action is its move, and rewards have a column per agent. The batch itself is the ``env``
    that ``MultiAgentOffPolicyAlgorithm`` asks for.

    Args:
        env: id or declaration of a game with one agent, or with agents that move in turns.
        num_envs: number of envs.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:k"`` or ``"auto"``. Tianshou's buffers are NumPy arrays: all results are
            copied from a GPU.
        autoreset_mode: ``"disabled"``, the only mode in which a collector can reset envs.
        render_mode: ``"rgb_array"`` or None.
        max_episode_steps: time limit; None or -1 means none.
        **kwargs: further arguments of `Simulator` (``threads``, ``debug``) and the game's parameters.

    Attributes:
        agents: names of the agents, the keys of ``MultiAgentPolicy``.
        agent_idx: index of each agent's column in the rewards, by name.
        action_space, observation_space: lists with each env's space. With masks an observation space is
            ``Dict({"observation", "action_mask"})``, as it is in Gymnasium and PettingZoo.
        simulator: the engine below.

    Raises:
        TypeError: ``env`` is a ready environment.
        ValueError: agents that act at the same time, another autoreset mode, or arguments out of range.
    """

    def __init__(
        self,
        env: str | EnvDef | type[EnvDef],
        num_envs: int = 1,
        *,
        device: Device = "auto",
        autoreset_mode: str | AutoresetMode = AutoresetMode.DISABLED,
        render_mode: str | None = None,
        max_episode_steps: int | Literal["default"] | None = "default",
        **kwargs: Any,
    ) -> None:
        if not isinstance(env, (str, EnvDef, type)):
            raise TypeError(
                f"TianshouVectorEnv makes its batch itself, from the id of a game or an EnvDef, not from {env!r}."
            )
        definition = registry.get(env)
        if not definition.single() and definition.turn is None:
            raise ValueError(
                f"{definition.id}: agents act at the same time, but Tianshou knows one acting agent per env: use "
                "DummyVectorEnv with PettingZooEnv(gpuzoo.aec_env(...)) of tianshou.env."
            )
        if parse_autoreset_mode(autoreset_mode) != AutoresetMode.DISABLED:
            raise ValueError(
                f"Tianshou's collectors reset envs themselves: leave out autoreset_mode={autoreset_mode!r}."
            )
        check_render_mode(render_mode, ("rgb_array",))
        check_all_observe(kwargs, "TianshouVectorEnv")
        self.simulator = sim = Simulator(
            definition,
            num_envs,
            device=device,
            autoreset_mode=AutoresetMode.DISABLED,
            max_episode_steps=max_episode_steps,
            **kwargs,
        )
        # In place of BaseVectorEnv.__init__, which makes a worker per env.
        self.env_num, self.is_async, self.is_closed = sim.num_envs, False, False
        self.agents = sim.layout.agent_names()
        self.agent_idx = {name: k for k, name in enumerate(self.agents)}
        observation_space, self._action_space = common_spaces(sim.layout, list(sim.layout.groups))
        # BaseVectorEnv asks get_env_attr for these, whatever is set on it.
        self._shared = {
            "observation_space": observation_space,
            "metadata": {"render_modes": ["rgb_array"], "render_fps": definition.render_fps},
            "render_mode": render_mode,
            "spec": gymnasium.registry.get(f"gpuzoo/{definition.id}"),
        }
        plain = observation_space["observation"] if isinstance(observation_space, spaces.Dict) else observation_space
        self._observation_shape = plain.shape or ()
        self._names = np.array(self.agents, object)
        self._all = np.arange(sim.num_envs)
        shape = (sim.num_envs, len(self.agents), *(self._action_space.shape or ()))
        self._slot = ActionSlot(sim, 0, len(self.agents), self._action_space, shape, f"actions of {sim.num_envs} envs")

    # ---- ids ----

    def _ids(self, ids: Ids) -> Array:
        """Checked ids as an array; ``_all`` itself where they are all envs in order."""
        if ids is None:
            return self._all
        chosen = np.atleast_1d(np.asarray(ids))
        if chosen.ndim != 1 or not chosen.size or chosen.dtype.kind not in "iu":
            raise TypeError(f"ids of envs must be an int, a sequence of ints, or None, not {ids!r}.")
        if chosen.min() < 0 or chosen.max() >= self.env_num:
            raise IndexError(f"ids of envs must be from 0 to {self.env_num - 1}, not {chosen.tolist()}.")
        if np.bincount(chosen).max() > 1:
            raise ValueError(f"each env can be named only once, but the ids are {chosen.tolist()}.")
        return self._all if np.array_equal(chosen, self._all) else chosen

    def _read(self, name: str, ids: Array) -> Array:
        """Fresh rows of an array of the simulator."""
        sim, array = self.simulator, self.simulator.arrays[name]
        if ids is not self._all:
            with sim.backend.ordered():
                where = sim.xp.asarray(ids.astype(np.int64))
            array = sim.backend.take(array, where)
        rows: Array = sim.backend.to_numpy(array)
        return rows

    def _infos(self, ids: Array) -> Array:
        infos = np.empty(len(ids), object)
        infos[:] = [{"env_id": i} for i in ids.tolist()]
        return infos

    # ---- running ----

    def reset(
        self, env_id: Ids = None, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, Array]:
        """Begins new episodes.

        Args:
            env_id: the envs to reset; all by default, and the first time.
            seed: env ``i`` is seeded ``seed + i``, whichever envs are reset; None goes on. (Tianshou's own vector envs
                give all the same seed.)
            options: ``params``: values for `Simulator.set_params`.

        Returns:
            Observations and infos of these envs.

        Raises:
            TypeError, IndexError, ValueError: no such ids, or an id that is named twice.
            RuntimeError: the first reset is not of all envs; closed, or after a fork.
        """
        self.simulator.check_usable()
        ids = self._ids(env_id)
        mask = None
        if len(ids) < self.env_num:
            mask = np.zeros(self.env_num, np.bool_)
            mask[ids] = True
        check_options(self.simulator, options, ("params",))
        apply_options(self.simulator, seed, {**(options or {}), "reset_mask": mask})
        return self._observe(ids), self._infos(ids)

    def step(self, action: Any, id: Ids = None) -> Returned:
        """One step of some envs; the others stay as they are.

        Args:
            action: (envs, ...) NumPy, torch or a list, in the order of the ids.
            id: the envs to step; all by default.

        Returns:
            Observations, rewards, terminated, truncated (bool) and infos of these envs. Rewards are float64, as
            Tianshou's own vector envs have them, of shape (envs,), or (envs, agents) in a turn-based game.

        Raises:
            TypeError, IndexError, ValueError: no such ids, an id that is named twice, or actions of the wrong shape or
                kind.
            RuntimeError: not reset, closed, or after a fork.
        """
        sim = self.simulator
        sim.check_usable()
        ids = self._ids(id)
        self._write(action, ids)
        sim.step(None if ids is self._all else ids)
        rewards = self._read("reward", ids).astype(np.float64)
        over = self._read("waiting", ids)
        terminated, truncated = (self._read(name, ids).any(1) & over for name in ("terminated", "truncated"))
        if sim.env.turn is None:
            rewards = rewards[:, 0]
        return self._observe(ids), rewards, terminated, truncated, self._infos(ids)

    def _write(self, action: Any, ids: Array) -> None:
        actions = np.asarray(to_numpy(action))
        shape = (len(ids), *(self._action_space.shape or ()))
        if actions.shape != shape:
            raise ValueError(f"actions of {len(ids)} envs must have shape {shape}, not {actions.shape}.")
        if ids is not self._all:
            some, actions = actions, np.zeros((self.env_num, *shape[1:]), actions.dtype)
            actions[ids] = some
        # The agent to move is one of them; the engine replaces what is illegal for the others.
        self._slot.write(np.repeat(actions[:, None], len(self.agents), 1))

    def _observe(self, ids: Array) -> Any:
        turn = self.simulator.env.turn
        mover = np.zeros(len(ids), np.int64) if turn is None else self._read(turn, ids)
        rows = np.arange(len(ids)), mover
        observation = self._read("observation", ids)[rows].reshape(len(ids), *self._observation_shape)
        parts = {} if turn is None else {"agent_id": self._names[mover]}
        if self.simulator.layout.mask_size:
            parts["mask"] = self._read("action_mask", ids)[rows].astype(np.bool_)
        # A batch, not an array of dictionaries: it is made, sliced and stored without a loop over envs.
        return Batch(obs=observation, **parts) if parts else observation

    def seed(self, seed: int | Sequence[int] | None = None) -> list[list[int | None]]:
        """Seeds envs and action spaces, and begins new episodes.

        Args:
            seed: env ``i`` gets ``seed + i``; a sequence has one seed per env; None goes on.

        Returns:
            A list with each env's seed.

        Raises:
            TypeError, ValueError: see `Simulator.reset`.
        """
        self.simulator.reset(seed)
        seeds: list[int | None] = [None] * self.env_num
        if seed is not None:
            seeds = list(range(seed, seed + self.env_num)) if isinstance(seed, (int, np.integer)) else list(seed)
        for space, value in zip(self._action_spaces, seeds, strict=True):
            space.seed(value)
        return [[value] for value in seeds]

    def render(self, **kwargs: Any) -> list[Any]:
        """A picture of each env, (height, width, 3) uint8; None for each without ``render_mode``."""
        self.simulator.check_usable()
        if self._shared["render_mode"] is None:
            return [None] * self.env_num
        return [draw(self.simulator, i) for i in range(self.env_num)]

    def close(self) -> None:
        """Frees the arrays. May be called again."""
        self.is_closed = True
        self.simulator.close()

    # ---- attributes by env ----

    @functools.cached_property
    def _action_spaces(self) -> list[spaces.Space[Any]]:
        """A space per env, each with random numbers of its own, from which collectors sample."""
        return [copy.deepcopy(self._action_space) for _ in range(self.env_num)]

    def get_env_attr(self, key: str, id: Ids = None) -> list[Any]:
        """An attribute of each env with these ids.

        Args:
            key: ``action_space``, ``observation_space``, ``metadata``, ``spec``, ``render_mode``, any name in
                `Simulator.arrays` (the fields of the state are there), or a run-time parameter.
            id: the envs; all by default.

        Raises:
            AttributeError: there is none of this name.
        """
        sim, ids = self.simulator, self._ids(id)
        if key == "action_space":
            return [self._action_spaces[i] for i in ids]
        if key in self._shared:
            return [self._shared[key]] * len(ids)
        sim.check_usable()
        if key in sim.arrays:
            return list(self._read(key, ids))
        params = sim.params
        if key in params:
            return list(np.broadcast_to(params[key], self.env_num)[ids])
        known = ["action_space", *self._shared, *sim.arrays, *params]
        raise AttributeError(unknown(f"{sim.env.id} has no attribute", key, known))

    def set_env_attr(self, key: str, value: Any, id: Ids = None) -> None:
        """Sets a field of the state or a run-time parameter of the envs with these ids.

        Raises:
            KeyError: there is none of this name.
            ValueError: out of range; or a parameter of some envs that was not given per env when the batch was made.
        """
        sim, ids = self.simulator, self._ids(id)
        if key in sim.params:
            sim.set_params(None if ids is self._all else ids, **{key: value})
        else:
            sim.set_state({key: np.repeat(np.asarray(value)[None], len(ids), 0)}, ids)
