"""rl-games over one batch: `register` and `RLGamesVecEnv`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from gpuzoo import tensors
from gpuzoo.core.definition import EnvDef
from gpuzoo.interfaces.global_state import global_state, global_state_space
from gpuzoo.interfaces.spaces import plain_space
from gpuzoo.interfaces.vector import make_vec

try:
    from rl_games.common import env_configurations, vecenv
    from rl_games.common.ivecenv import IVecEnv
except ImportError as error:
    raise ImportError("this adapter needs rl-games: pip install 'gpuzoo[rl-games]'.") from error

_CHOSEN = ("autoreset_mode", "output", "copy", "masks", "num_envs", "num_worlds")


def register() -> None:
    """Tells rl-games of the environment ``gpuzoo``: ``env_name: gpuzoo``, ``env_config: {env: CartPole-v1}``."""
    vecenv.register("GPUZOO", RLGamesVecEnv)
    env_configurations.register("gpuzoo", {"vecenv_type": "GPUZOO", "env_creator": RLGamesVecEnv})


class RLGamesVecEnv(IVecEnv):
    """A batch of a game as rl-games' vector env, with tensors on the device of the simulator.

    A row is one agent of one env, so the batch of ``num_actors`` envs has ``num_actors`` times as many rows as an env
    has agents, and one network plays them all. Envs whose episodes are over begin the next one in the same step.
    ``infos["time_outs"]`` says where time was up, for ``value_bootstrap``.

    An agent that leaves its env early is done; its row is zeros until the env's next episode, and the step in which
    that begins is done as well, so nothing is learnt across the border.

    Args:
        config_name: rl-games gives it; it is not looked at.
        num_actors: number of envs.
        env: id or declaration of the game.
        seed: env ``i`` is seeded ``seed + i`` at the first reset; None draws one.
        central_value: adds the global state, which a ``central_value_config`` needs.
        **kwargs: further arguments of `gpuzoo.VectorEnv` and the game's parameters.

    Attributes:
        envs: the `gpuzoo.VectorEnv` below.

    Raises:
        TypeError: a ready environment, or an argument that the adapter gives itself.
        ValueError: observations that rl-games has no network for; and as `gpuzoo.VectorEnv`.
    """

    def __init__(
        self,
        config_name: str,
        num_actors: int,
        *,
        env: str | EnvDef | type[EnvDef],
        seed: int | None = None,
        central_value: bool = False,
        **kwargs: Any,
    ) -> None:
        if not isinstance(env, (str, EnvDef, type)):
            raise TypeError(f"RLGamesVecEnv makes its batch itself, from the id of a game, not from {env!r}.")
        for name in _CHOSEN:
            if name in kwargs:
                raise TypeError(f"RLGamesVecEnv chooses {name} itself: leave it out of env_config.")
        self.envs = make_vec(
            env, num_worlds=num_actors, output="torch", autoreset_mode="same_step", masks="info", **kwargs
        )
        sim = self.envs.simulator
        self._seed, self._central, self._masked = seed, central_value, sim.layout.mask_size > 0
        space = plain_space(self.envs.single_observation_space)
        if not isinstance(space, spaces.Box):
            raise ValueError(f"{sim.env.id} observes {space}, for which rl-games has no network: it takes Box only.")
        self._bytes = space.dtype == np.uint8  # rl-games divides them by 255 itself
        low, high = (x.astype(np.float32) for x in (space.low, space.high))
        self._observation_space = space if self._bytes else spaces.Box(low, high, dtype=np.float32)
        action = self.envs.single_action_space
        if isinstance(action, spaces.MultiDiscrete):
            action = spaces.Tuple([spaces.Discrete(int(n)) for n in action.nvec])
        self._action_space = action
        self._alive: torch.Tensor | None = None
        self._mask: torch.Tensor | None = None

    def get_number_of_agents(self) -> int:
        """Number of rows of an env."""
        return self.envs.num_envs // self.envs.num_worlds

    def get_env_info(self) -> dict[str, Any]:
        """The spaces that rl-games reads before it makes networks and buffers."""
        info = {
            "observation_space": self._observation_space,
            "action_space": self._action_space,
            "agents": self.get_number_of_agents(),
            "value_size": 1,
            "use_global_observations": self._central,
        }
        if self._central:
            space = global_state_space(self.envs.simulator.layout)
            low, high = (np.ravel(x).astype(np.float32) for x in (space.low, space.high))
            info["state_space"] = spaces.Box(low, high, dtype=np.float32)
        return info

    def seed(self, seed: int) -> None:
        """The seed of the next reset."""
        self._seed = seed

    def reset(self) -> Any:
        """Begins new episodes.

        Returns:
            The observations, float32 (rows, ...); with ``central_value`` ``{"obs", "states"}``.
        """
        observations, infos = self.envs.reset(seed=self._seed)
        self._seed = None
        self._alive, self._mask = infos.get("alive"), infos.get("action_mask")
        return self._seen(observations)

    def step(self, actions: torch.Tensor) -> tuple[Any, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """One step.

        Args:
            actions: of all rows, as rl-games has them.

        Returns:
            Observations as `reset`, rewards float32 and dones bool (rows,), and infos with ``time_outs`` bool (rows,).

        Raises:
            ValueError, TypeError: actions of the wrong shape or kind.
        """
        space = self.envs.single_action_space
        if not isinstance(space, spaces.Box):
            actions = actions.long().reshape(self.envs.num_envs, *(space.shape or ()))
        observations, rewards, terminations, truncations, infos = self.envs.step(actions)
        dones = terminations | truncations
        before, self._alive, self._mask = self._alive, infos.get("alive"), infos.get("action_mask")
        if before is not None and self._alive is not None:
            dones = dones | (self._alive & ~before)  # padding ends where an episode begins
        return self._seen(observations), rewards, dones, {"time_outs": truncations & ~terminations}

    def _seen(self, observations: Any) -> Any:
        seen = observations if self._bytes else observations.float()
        if self._alive is not None:
            seen = seen * self._alive.reshape(-1, *(1,) * (seen.ndim - 1))
        if not self._central:
            return seen
        state = tensors.as_tensor(global_state(self.envs.simulator))
        return {"obs": seen, "states": state.reshape(self.envs.num_worlds, -1).float().clone()}

    def has_action_masks(self) -> bool:
        """Whether the game has action masks; ``use_action_masks: True`` in the configuration makes use of them."""
        return self._masked

    def get_action_masks(self) -> torch.Tensor:
        """The legal actions, bool (rows, choices).

        Raises:
            ValueError: the game has no masks.
        """
        if self._mask is None:
            raise ValueError(f"{self.envs.simulator.env.id} has no action masks: leave use_action_masks out.")
        mask = self._mask.bool()
        return mask if self._alive is None else mask | ~self._alive[:, None]

    def close(self) -> None:
        """Frees the arrays."""
        self.envs.close()
