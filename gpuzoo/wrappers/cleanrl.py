"""CleanRL: batches that its scripts take when nothing but the line that makes ``envs`` is replaced.

CleanRL's scripts expect the infos of Gymnasium 0.29 (`make`); its multi-agent script, and others that ``import gym``,
expect the interface of OpenAI's Gym 0.23 (`make_gym`). Both begin new episodes in the step that ends them, and count
episodes. A row is one agent of one env. An agent that leaves early is done; its row is padding until its env's next
episode, see `Rows`.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorWrapper

from gpuzoo.core.definition import EnvDef
from gpuzoo.wrappers.rows import Array, Rows, make_rows


class CleanRLEnv(VectorWrapper):
    """`Rows` with the infos of Gymnasium 0.29; use `make`.

    In a step that ends episodes, ``infos["final_observation"]`` and ``infos["final_info"]`` are object arrays with
    None where none ended, ``final_info[i]["episode"]`` being the return ``r`` and length ``l``, beside the game's own
    infos with ``infos=True``. The keys of today's Gymnasium (``final_obs``, ``episode`` and their masks) are there as
    well.

    Args:
        rows: the batch.

    Attributes:
        rows: the batch, with ``rows.alive`` and ``rows.action_mask``.
    """

    def __init__(self, rows: Rows) -> None:
        super().__init__(rows)
        self.rows = rows

    def step(self, actions: Any) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """One step of all rows, see `VectorEnv.step`."""
        observations, rewards, terminations, truncations, infos = self.rows.step(actions)
        if "final_obs" in infos:
            done = infos["_final_obs"]
            final, reports = np.full((2, self.num_envs), None, object)
            for i in done.nonzero()[0].tolist():
                final[i] = infos["final_obs"][i]
            ended = dict(self.rows.episodes(infos))
            for (i, episode), own in zip(ended.items(), self.rows.own(infos, np.array([*ended], int)), strict=True):
                reports[i] = {"episode": episode, **own}
            infos["final_observation"], infos["_final_observation"] = final, done
            infos["final_info"], infos["_final_info"] = reports, done
        return observations, rewards, terminations, truncations, infos


class CleanRLGymEnv:
    """`Rows` with the interface of Gym 0.23; use `make_gym`.

    Args:
        rows: the batch.
        seed: of the first reset.

    Attributes:
        rows: the batch, with ``rows.alive`` and ``rows.action_mask``.
        num_envs, single_observation_space, single_action_space, observation_space, action_space: as in Gym, with
            Gym's classes of spaces.
    """

    is_vector_env = True

    def __init__(self, rows: Rows, seed: int | None = None) -> None:
        self.rows, self.num_envs, self._seed = rows, rows.num_envs, seed
        self.single_observation_space = _gym_space(rows.single_observation_space)
        self.single_action_space = _gym_space(rows.single_action_space)
        self.observation_space = _gym_space(rows.observation_space)
        self.action_space = _gym_space(rows.action_space)

    def reset(self) -> Array:
        """Begins new episodes and returns the observations."""
        observations, _ = self.rows.reset(seed=self._seed)
        self._seed = None
        return observations

    def step(self, actions: Any) -> tuple[Array, Array, Array, list[dict[str, Any]]]:
        """One step of all rows.

        Returns:
            Observations, rewards (float32), dones (bool), and a list of dictionaries, filled where an episode ended
            with ``terminal_observation``, ``TimeLimit.truncated`` and ``episode``.
        """
        observations, rewards, terminations, truncations, infos = self.rows.step(actions)
        listed = self.rows.listed(terminations, truncations, infos)
        return observations, rewards, terminations | truncations, listed

    def close(self) -> None:
        """Frees the simulator."""
        self.rows.close()


def _gym_space(space: spaces.Space[Any]) -> Any:
    try:
        gym: Any = importlib.import_module("gym")
    except ImportError as error:
        raise ImportError(
            "make_gym is for scripts that use OpenAI's gym, which is missing: pip install gym."
        ) from error
    if isinstance(space, spaces.Discrete):
        return gym.spaces.Discrete(int(space.n))
    if isinstance(space, spaces.MultiDiscrete):
        return gym.spaces.MultiDiscrete(space.nvec)
    assert isinstance(space, spaces.Box)
    return gym.spaces.Box(space.low, space.high, dtype=space.dtype)


def make(env: str | EnvDef | type[EnvDef], num_envs: int | None = None, **kwargs: Any) -> CleanRLEnv:
    """``envs`` for a CleanRL script that imports gymnasium.

    Args:
        env: id or declaration of the game.
        num_envs: number of rows; a multiple of the agents.
        **kwargs: ``flatten=True`` for Box observations as vectors, which scripts without convolutions need;
            ``num_worlds`` (envs in place of rows), ``device``, ``group``, ``opponents``, ``max_episode_steps``, see
            `VectorEnv`; and the game's parameters.

    Raises:
        TypeError: ``env`` is a ready environment, or an argument that is chosen here (``autoreset_mode``, ...).
        ValueError: see `VectorEnv`.
    """
    return CleanRLEnv(make_rows(env, num_envs, "gpuzoo.wrappers.cleanrl", **kwargs))


def make_gym(
    env: str | EnvDef | type[EnvDef], num_envs: int | None = None, *, seed: int | None = None, **kwargs: Any
) -> CleanRLGymEnv:
    """``envs`` for a CleanRL script that imports gym.

    Args:
        env: id or declaration of the game.
        num_envs: number of rows; a multiple of the agents.
        seed: of the first reset; env ``w`` is seeded ``seed + w``.
        **kwargs: as for `make`.

    Raises:
        ImportError: gym is missing.
        TypeError, ValueError: as for `make`.
    """
    return CleanRLGymEnv(make_rows(env, num_envs, "gpuzoo.wrappers.cleanrl", **kwargs), seed)
