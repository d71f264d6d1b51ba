"""AgileRL's vectorized PettingZoo envs over one batch: `AgileRLVecEnv`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import EnvDef
from gpuzoo.core.host import to_host
from gpuzoo.interfaces.spaces import plain_space
from gpuzoo.wrappers.agents import batch_of, by_agent, places

try:
    from agilerl.vector.pz_vec_env import PettingZooVecEnv
except ImportError as error:
    raise ImportError("this adapter needs AgileRL: pip install 'gpuzoo[agilerl]'.") from error

Arrays = dict[str, Any]


class AgileRLVecEnv(PettingZooVecEnv):
    """A batch of a game of several agents in place of AgileRL's ``AsyncPettingZooVecEnv``, in one process.

    Observations, rewards and flags are dictionaries by agent with NumPy arrays ``(num_envs, ...)``, fresh at each step.
    As there, an env whose agents are all through begins its next episode in the same step, and an agent that is not in
    its env has NaN for observation, reward and flags. Action masks are in ``infos[agent]["action_mask"]``, where
    AgileRL's algorithms look for them.

    Args:
        env: id or declaration of the game.
        num_envs: number of envs.
        device: of the simulator.
        **kwargs: further arguments of `gpuzoo.BatchEnv` and the game's parameters.

    Attributes:
        simulator: the engine below.

    Raises:
        TypeError: a ready environment, or an argument that the adapter gives itself.
        ValueError: a game of one agent, or one played in turns.
    """

    def __init__(
        self, env: str | EnvDef | type[EnvDef], num_envs: int = 1, *, device: str = "auto", **kwargs: Any
    ) -> None:
        self._batch = batch = batch_of(env, num_envs, "agilerl.AgileRLVecEnv", device=device, output="numpy", **kwargs)
        self.simulator = batch.simulator
        self._layout = self.simulator.layout
        self._places = places(self._layout)
        super().__init__(
            num_envs,
            {agent: plain_space(batch.observation_spaces[g]) for agent, (g, _) in self._places.items()},
            {agent: batch.action_spaces[g] for agent, (g, _) in self._places.items()},
            list(self._places),
            metadata={"name": self.simulator.env.id, "render_modes": ["rgb_array"]},
            render_mode="rgb_array",
        )
        self._alive: Arrays = {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Arrays, Arrays]:
        """Begins new episodes.

        Args:
            seed: env ``i`` is seeded ``seed + i``; None goes on with the next episodes.
            options: as `gpuzoo.BatchEnv.reset`.

        Returns:
            Observations and infos, by agent.
        """
        observations, infos = self._batch.reset(seed=seed, options=options)
        self._alive = by_agent(self._layout, infos["alive"])
        return self._seen(observations)

    def step(
        self, actions: Mapping[str, Any], *args: Any, **kwargs: Any
    ) -> tuple[Arrays, Arrays, Arrays, Arrays, Arrays]:
        """One step.

        Args:
            actions: by agent, ``(num_envs, ...)``; NaN for an agent that is not in its env.
            *args: not looked at, as in AgileRL's own.
            **kwargs: likewise.

        Returns:
            Observations, rewards, terminations, truncations and infos, by agent.

        Raises:
            ValueError, TypeError: actions of the wrong shape or kind.
        """
        by_group: dict[str, list[Any]] = {}
        for agent, (group, _) in self._places.items():
            space = self._batch.action_spaces[group]
            action = np.nan_to_num(to_host(actions[agent])).reshape(self.num_envs, *(space.shape or ()))
            if not isinstance(space, spaces.Box):
                action = action.astype(np.int64)
            by_group.setdefault(group, []).append(action)
        observations, *others, infos = self._batch.step({g: np.stack(rows, 1) for g, rows in by_group.items()})
        acted, self._alive = self._alive, by_agent(self._layout, infos["alive"])
        told = []
        for values in others:
            told.append({a: self._where(acted[a], x) for a, x in by_agent(self._layout, values).items()})
        seen, infos = self._seen(observations)
        return seen, told[0], told[1], told[2], infos

    @staticmethod
    def _where(there: Any, values: Any) -> Any:
        """Values, as floats with NaN where an agent is not there; the same where all are."""
        if there.all():
            return values
        out = values.astype(np.float32)
        out[~there] = np.nan
        return out

    def _seen(self, observations: Mapping[str, Any]) -> tuple[Arrays, Arrays]:
        found = by_agent(self._layout, observations)
        infos: Arrays = {agent: {} for agent in found}
        if self._layout.mask_size:
            infos = {agent: {"action_mask": both["action_mask"]} for agent, both in found.items()}
            found = {agent: both["observation"] for agent, both in found.items()}
        return {agent: self._where(self._alive[agent], x) for agent, x in found.items()}, infos

    def render(self) -> Any:
        """A picture of the first env."""
        return self._batch.render()

    def close_extras(self, **kwargs: Any) -> None:
        """Frees the arrays; `close` calls it once."""
        self._batch.close()
