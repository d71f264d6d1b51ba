"""RLlib's new API stack: batches of any game for its env runners, alone or on a Ray cluster.

RLlib has different interfaces for one agent and for several, and for one env and for many. This file has all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from gpuzoo import registry
from gpuzoo.core.arguments import parse_autoreset_mode
from gpuzoo.core.configuration import split_config
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.layout import flat_size, layout
from gpuzoo.core.simulator import Simulator
from gpuzoo.interfaces.arrays import ActionSlot
from gpuzoo.interfaces.batch import apply_options, check_render_mode, draw
from gpuzoo.interfaces.spaces import with_mask
from gpuzoo.interfaces.turns import check_all_observe
from gpuzoo.interfaces.vector import VectorEnv

try:
    from ray.rllib.callbacks.utils import make_callback
    from ray.rllib.env.env_context import EnvContext
    from ray.rllib.env.multi_agent_env import MultiAgentEnv
    from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
    from ray.rllib.env.vector.vector_multi_agent_env import VectorMultiAgentEnv
    from ray.rllib.utils.pre_checks.env import check_multiagent_environments
except ImportError as error:
    raise ImportError("gpuzoo.wrappers.rllib needs RLlib: pip install 'gpuzoo[rllib]'.") from error

#: what RLlib's env runners take for granted and never check
_FIXED = {"autoreset_mode": AutoresetMode.NEXT_STEP, "output": "numpy", "copy": True}
_Dicts = list[dict[str, Any]]


def _arguments(config: Mapping[str, Any]) -> tuple[EnvDef, bool, dict[str, Any]]:
    """The game, whether observations are flattened, and the other arguments of ``env_config``."""
    kwargs = dict(config)
    if "env" not in kwargs:
        raise ValueError("env_config needs the id of a game: env_config={'env': 'CartPole-v1'}.")
    definition = registry.get(kwargs.pop("env"))
    for name, only in _FIXED.items():
        value = kwargs.pop(name, only)
        if (parse_autoreset_mode(value) if name == "autoreset_mode" else value) != only:
            raise ValueError(f"RLlib's env runners take {name}={only!r} only: leave {name} out of env_config.")
    # Ray counts the cores of its actors, so a batch has one unless it is given more.
    return definition, bool(kwargs.pop("flatten", False)), {"device": "cpu", "threads": 1, **kwargs}


def _flat(space: spaces.Space[Any]) -> spaces.Space[Any]:
    if not isinstance(space, spaces.Box):
        return space
    low, high = (np.ravel(bound).astype(np.float32) for bound in (space.low, space.high))
    return spaces.Box(low, high, dtype=np.float32)


def _observation_space(
    space: spaces.Space[Any], action_space: spaces.Space[Any], masked: bool, flatten: bool
) -> spaces.Space[Any]:
    space = _flat(space) if flatten else space
    if not masked:
        return space
    mask = with_mask(space, action_space)["action_mask"]
    return spaces.Dict({"observations": space, "action_mask": mask})  # RLlib's names


class RLlibVectorEnv(VectorEnv):
    """A batch of a single-agent game for RLlib's ``SingleAgentEnvRunner``.

    ``config.environment(RLlibVectorEnv, env_config={"env": "CartPole-v1"})`` together with
    ``config.env_runners(num_envs_per_env_runner=N, gym_env_vectorize_mode="vector_entry_point")`` steps one batch of
    ``N`` envs per env runner. Episodes begin anew in the step after the one that ended them. Games with action masks
    have RLlib's form of an observation, ``{"observations", "action_mask"}``.

    Args:
        config: RLlib's ``env_config``: ``env``, the id or declaration of the game; ``flatten``, True for Box
            observations as one row of float32 numbers, which RLlib's default networks need; any other argument of
            `VectorEnv` (``max_episode_steps``, ``threads``, ...) and of the game. RLlib adds ``num_envs``. By default a
            batch is on the CPU with one thread.

    Raises:
        ValueError: no game, a game of several agents, another vectorization mode of RLlib, or an argument that does
            not fit RLlib (``autoreset_mode``, ``output``, ``copy``).
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.closed = True  # so far there is nothing to close
        definition, flatten, kwargs = _arguments(config)
        if not definition.single():
            raise ValueError(f"{definition.id} has several agents: use RLlibMultiAgentEnv in place of RLlibVectorEnv.")
        if "num_envs" not in kwargs:
            raise ValueError(
                "RLlibVectorEnv is a whole batch, which RLlib must not vectorize again: "
                "set config.env_runners(gym_env_vectorize_mode='vector_entry_point')."
            )
        self.closed = False
        super().__init__(definition, **kwargs)
        space, masked = self.simulator.layout.observation_spaces["agent"], self._masks_in == "observation"
        self.single_observation_space = _observation_space(space, self.single_action_space, masked, flatten)
        self._flatten = flatten and isinstance(space, spaces.Box)
        self._bare &= not self._flatten

    def _presented(self, observation: Any, mask: str) -> Any:
        shown = super()._presented(observation, mask)
        plain = shown["observation"] if isinstance(shown, dict) else shown
        if self._flatten:
            plain = plain.reshape(self.num_envs, -1).astype(np.float32, copy=False)
        return {"observations": plain, "action_mask": shown["action_mask"]} if isinstance(shown, dict) else plain

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins new episodes.

        Args:
            seed: env ``w`` is seeded ``seed * 2**32 + w``. RLlib gives env runner ``k`` the seed ``config.seed + k``,
                with which Gymnasium's ``seed + w`` would let the env runners play the same episodes.
            options: see `VectorEnv.reset`.
        """
        if isinstance(seed, (int, np.integer)):
            seed = int(seed) << 32
        return super().reset(seed=seed, options=options)


class RLlibMultiAgentVectorEnv(VectorMultiAgentEnv):  # type: ignore[misc]
    """A batch of a game with several agents, as the lists of dictionaries that ``MultiAgentEnvRunner`` works with.

    `BatchedEnvRunner` makes it. Episodes begin anew in the step after the one that ended them. What is returned may be
    kept.

    Args:
        config: as of `RLlibMultiAgentEnv`.
        num_envs: number of envs.
        autoreset_mode: next step; disabled for an env that is reset by its user.

    Attributes:
        simulator: the engine below.
        envs: for each env something that knows its agents and spaces.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        num_envs: int = 1,
        autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP,
    ) -> None:
        self.closed = True  # so far there is nothing to close
        definition, flatten, kwargs = _arguments(config)
        if definition.single():
            raise ValueError(f"{definition.id} has one agent: use RLlibVectorEnv in place of RLlibMultiAgentEnv.")
        self.render_mode = kwargs.pop("render_mode", None)
        check_render_mode(self.render_mode, ("rgb_array",))
        check_all_observe(kwargs, "RLlibMultiAgentEnv")
        self.simulator = sim = Simulator(definition, num_envs, autoreset_mode=autoreset_mode, **kwargs)
        self.closed = False
        self.num_envs = num_envs
        self.metadata = {
            "autoreset_mode": autoreset_mode,
            "render_modes": ["rgb_array"],
            "render_fps": definition.render_fps,
        }
        # RLlib tells an env runner's envs apart by seed, but not the env runners.
        self._first_seed = (getattr(config, "worker_index", 0) or 0) << 32
        lay = sim.layout
        self.possible_agents = lay.agent_names()
        groups = {name: lay.group_of(k) for k, name in enumerate(self.possible_agents)}
        by_group = {
            g: _observation_space(lay.observation_spaces[g], lay.action_spaces[g], bool(lay.mask_size), flatten)
            for g in lay.groups
        }
        self.single_observation_spaces = {name: by_group[g] for name, g in groups.items()}
        self._observation_spaces: list[Any] = list(self.single_observation_spaces.values())
        self.single_action_spaces = {name: lay.action_spaces[g] for name, g in groups.items()}
        self.single_observation_space = spaces.Dict(self.single_observation_spaces)
        self.single_action_space = spaces.Dict(self.single_action_spaces)
        self._slots = [
            ActionSlot(sim, k, 1, space, (num_envs, *(space.shape or ())), f"actions of {name}")
            for k, (name, space) in enumerate(self.single_action_spaces.items())
        ]
        self._no_action = [np.zeros(s.shape or (), s.dtype) for s in self.single_action_spaces.values()]
        self._acting = np.zeros((num_envs, lay.agents), np.bool_)
        member = MultiAgentEnv()
        member.agents, member.possible_agents = list(self.possible_agents), list(self.possible_agents)
        member.observation_spaces, member.action_spaces = self.single_observation_spaces, self.single_action_spaces
        self.envs = [member] * num_envs

    def _read(self, name: str) -> Any:
        return self.simulator.backend.to_numpy(self.simulator.arrays[name])

    def _find_acting(self) -> None:
        """Notes which agents act next, (num_envs, agents)."""
        self._acting = self._read("alive")
        if self.simulator.env.turn is not None:
            movers = self._read(self.simulator.env.turn)
            self._acting &= movers[:, None] == np.arange(self._acting.shape[1])

    def _observations(self, present: Any) -> _Dicts:
        """Observations of the agents that are present, (num_envs, agents)."""
        everything = self._read("observation")
        masks = self._read("action_mask") if self.simulator.layout.mask_size else None
        columns = []  # for each agent its observations, env by env
        for k, space in enumerate(self._observation_spaces):
            plain: spaces.Space[Any] = space["observations"] if masks is not None else space
            rows = everything[:, k, : flat_size(plain)].reshape(self.num_envs, *(plain.shape or ()))
            column = list(rows.astype(plain.dtype, copy=False))
            if masks is not None:
                legal = masks[:, k, : flat_size(space["action_mask"])]
                column = [{"observations": o, "action_mask": m} for o, m in zip(column, legal, strict=True)]
            columns.append(column)
        return self._dicts(zip(*columns, strict=True), present)

    def _dicts(self, rows: Any, present: Any) -> _Dicts:
        """A dictionary for each env, of one value per agent and of the agents that are present."""
        names = self.possible_agents
        return [dict(compress(zip(names, row, strict=True), p)) for row, p in zip(rows, present.tolist(), strict=True)]

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[_Dicts, _Dicts]:
        """Begins new episodes.

        Args:
            seed: env ``w`` is seeded ``seed + w + worker_index * 2**32``; a sequence has one seed per env and is taken
                as it is; None goes on.
            options: ``params``: values for `Simulator.set_params`.

        Returns:
            Observations of the agents that act next, and empty infos.
        """
        if isinstance(seed, (int, np.integer)):
            super().reset(seed=int(seed))
            seed = int(seed) + self._first_seed
        apply_options(self.simulator, seed, options, known=("params",))
        self._find_acting()
        return self._observations(self._acting), [{} for _ in range(self.num_envs)]

    def step(self, actions: Sequence[Mapping[str, Any]]) -> tuple[_Dicts, _Dicts, _Dicts, _Dicts, _Dicts]:
        """One step of all envs.

        Args:
            actions: for each env a dictionary with the actions of the agents that act; not looked at where an episode
                begins anew.

        Returns:
            A dictionary for each env of observations, rewards, terminations, truncations and infos. There are
            observations of the agents that act next and of those that have just left. ``"__all__"`` is True in the
            terminations if the episode ended with each agent terminated, and in the truncations if it ended otherwise.

        Raises:
            ValueError: an action is missing.
        """
        self.simulator.check_usable()
        self._write(actions)
        was_alive = self._read("alive")
        self.simulator.step()
        self._find_acting()
        terminated, over = self._read("terminated"), self._read("waiting")
        acted = was_alive | (self._read("elapsed_steps") == 0)[:, None]
        by_time = (self._read("truncated") & ~terminated).any(1)
        observations = self._observations(self._acting | acted & (terminated | over[:, None]))
        rewards = self._dicts(self._read("reward").tolist(), acted)
        terminations = self._dicts(terminated.tolist(), acted)
        for flags, everybody in zip(terminations, (over & ~by_time).tolist(), strict=True):
            flags["__all__"] = everybody
        # No agent's own flag: RLlib's episodes count an env as terminated in which each agent is done by itself, and
        # would give no value to what follows the time limit.
        truncations = [{"__all__": everybody} for everybody in (over & by_time).tolist()]
        return observations, rewards, terminations, truncations, [{} for _ in range(self.num_envs)]

    def _write(self, actions: Sequence[Mapping[str, Any]]) -> None:
        given = np.fromiter(map(len, actions), np.int64, self.num_envs)
        if (given < self._acting.sum(1)).any():
            w = int(np.argmax(given < self._acting.sum(1)))
            acting = compress(self.possible_agents, self._acting[w])
            missing = [name for name in acting if name not in actions[w]]
            raise ValueError(f"an action is missing for {missing[0]!r}: each agent with an observation needs one.")
        for slot, name, default in zip(self._slots, self.possible_agents, self._no_action, strict=True):
            slot.write(np.array([action.get(name, default) for action in actions]))

    def render(self) -> tuple[Any, ...] | None:
        """A picture of each env, (height, width, 3) uint8."""
        return None if self.render_mode is None else tuple(draw(self.simulator, w) for w in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Frees the simulator; `close` calls it once."""
        self.simulator.close()


class RLlibMultiAgentEnv(MultiAgentEnv):  # type: ignore[misc]
    """One env of a game with several agents, at the same time or in turns, as RLlib's ``MultiAgentEnv``.

    ``config.environment(RLlibMultiAgentEnv, env_config={"env": "SimpleSpread-v0"})``. With
    ``config.env_runners(env_runner_cls=BatchedEnvRunner)`` the envs of an env runner are one batch. ``agents`` stays as
    it is when an agent leaves. An agent acts if it has an observation; whoever leaves has a last one. Games with action
    masks have RLlib's form of an observation, ``{"observations", "action_mask"}``. Agents that are truncated have no
    flag of their own, only ``truncateds["__all__"]``.

    Args:
        config: RLlib's ``env_config``: ``env``, the id or declaration of the game; ``flatten``, True for Box
            observations as one row of float32 numbers, which RLlib's default networks need; ``render_mode``,
            ``"rgb_array"`` or None; any other argument of `Simulator` (``max_episode_steps``, ``threads``, ...) and of
            the game. By default an env is on the CPU with one thread.

    Raises:
        ValueError: no game, a game of one agent, or an argument that does not fit RLlib (``autoreset_mode``,
            ``output``, ``copy``).
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._batch = RLlibMultiAgentVectorEnv(config, autoreset_mode=AutoresetMode.DISABLED)
        self.metadata = {k: v for k, v in self._batch.metadata.items() if k != "autoreset_mode"}
        self.render_mode = self._batch.render_mode
        self.agents, self.possible_agents = list(self._batch.possible_agents), list(self._batch.possible_agents)
        self.observation_spaces = self._batch.single_observation_spaces
        self.action_spaces = self._batch.single_action_spaces
        super().__init__()

    @property
    def simulator(self) -> Simulator:
        """The engine below."""
        return self._batch.simulator

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begins an episode.

        Args:
            seed: the env is seeded ``seed + worker_index * 2**32``; None goes on with the next episode.
            options: ``params``: values for `Simulator.set_params`.
        """
        super().reset(seed=seed)
        observations, infos = self._batch.reset(seed=seed, options=options)
        return observations[0], infos[0]

    def step(
        self, action_dict: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        """One step; see `RLlibMultiAgentVectorEnv.step`."""
        observations, rewards, terminations, truncations, infos = self._batch.step([action_dict])
        return observations[0], rewards[0], terminations[0], truncations[0], infos[0]

    def render(self) -> Any:
        """A picture, (height, width, 3) uint8."""
        frames = self._batch.render()
        return frames[0] if frames else None

    def close(self) -> None:
        """Frees the arrays. May be called again."""
        self._batch.close()


class BatchedEnvRunner(MultiAgentEnvRunner):  # type: ignore[misc]
    """RLlib's ``MultiAgentEnvRunner`` over one batch: ``config.env_runners(env_runner_cls=BatchedEnvRunner)``.

    Raises:
        TypeError: ``config.env`` is not `RLlibMultiAgentEnv`.
    """

    env: Any

    def make_env(self) -> None:
        """Makes the batch, and checks one env as RLlib would check each."""
        if self.config.env is not RLlibMultiAgentEnv:
            raise TypeError(f"BatchedEnvRunner steps gpuzoo's RLlibMultiAgentEnv, not {self.config.env!r}.")
        if self.env is not None:
            self.env.close()
        context = self.config.env_config
        if not isinstance(context, EnvContext):
            context = EnvContext(context, worker_index=self.worker_index, num_workers=self.config.num_env_runners)
        self.num_envs = self.config.num_envs_per_env_runner
        self.env = RLlibMultiAgentVectorEnv(context, self.num_envs)
        if not self.config.disable_env_checking:
            env = RLlibMultiAgentEnv(context)
            check_multiagent_environments(env)
            env.close()
        self._needs_initial_reset = True
        make_callback(
            "on_environment_created",
            callbacks_objects=self._callbacks,
            callbacks_functions=self.config.callbacks_on_environment_created,
            kwargs={
                "env_runner": self,
                "metrics_logger": self.metrics,
                "env": self.env,
                "env_context": context,
            },
        )


def _group_of(groups: Mapping[str, str], agent_id: str, *_: Any, **__: Any) -> str:
    return groups[agent_id]


def _itself(agent_id: str, *_: Any, **__: Any) -> str:
    return agent_id


def policies(config: Mapping[str, Any], per_agent: bool = False) -> dict[str, Any]:
    """Arguments of ``config.multi_agent``: a policy for each group of agents, or for each agent.

    Args:
        config: the ``env_config`` of `RLlibMultiAgentEnv`.
        per_agent: one policy per agent, named like it. Otherwise the agents of a group share the one that is named like
            the group.

    Returns:
        ``policies``, a list of names, and ``policy_mapping_fn``.
    """
    definition, _, kwargs = _arguments(config)
    names = definition.Config.__dataclass_fields__
    lay = layout(definition, split_config(definition, 1, {k: v for k, v in kwargs.items() if k in names})[0])
    if per_agent:
        return {"policies": lay.agent_names(), "policy_mapping_fn": _itself}
    groups = {name: lay.group_of(k) for k, name in enumerate(lay.agent_names())}
    return {"policies": list(lay.groups), "policy_mapping_fn": functools.partial(_group_of, groups)}
