"""skrl's multi-agent environments over one batch: `SkrlMultiAgentEnv`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from gymnasium import spaces

from gpuzoo.core.definition import EnvDef
from gpuzoo.interfaces.spaces import plain_space
from gpuzoo.wrappers.agents import batch_of, by_agent, places

try:
    from skrl.envs.wrappers.torch import MultiAgentEnvWrapper
    from skrl.utils.spaces.torch import flatten_tensorized_space, tensorize_space, unflatten_tensorized_space
except ImportError as error:
    raise ImportError("this adapter needs skrl: pip install 'gpuzoo[skrl]'.") from error

Tensors = dict[str, torch.Tensor]


class SkrlMultiAgentEnv(MultiAgentEnvWrapper):
    """A batch of a game of several agents, for skrl's IPPO, MAPPO and its trainers; it needs no ``wrap_env``.

    Observations, rewards and flags are dictionaries by agent with tensors ``(num_envs, ...)`` on the device of the
    simulator, fresh at each step. Observations are flat, as skrl has them. Envs whose episodes are over begin the next
    one in the same step. An agent that leaves its env early is terminated once; until the env's next episode its
    rewards are 0, and ``infos["alive"]`` is False for it.

    Args:
        env: id or declaration of the game.
        num_envs: number of envs.
        seed: of the first reset; env ``i`` is seeded ``seed + i``. None draws one.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:k"`` or ``"auto"``.
        **kwargs: further arguments of `gpuzoo.BatchEnv` and the game's parameters.

    Attributes:
        simulator: the engine below.
        possible_agents, agents: names of all agents, always.
        observation_spaces, action_spaces, state_spaces: Gymnasium's, by agent; without action masks.

    Raises:
        TypeError: a ready environment, or an argument that the adapter gives itself.
        ValueError: a game of one agent, or one played in turns.
    """

    def __init__(
        self,
        env: str | EnvDef | type[EnvDef],
        num_envs: int = 1,
        *,
        seed: int | None = None,
        device: str = "auto",
        **kwargs: Any,
    ) -> None:
        batch = batch_of(env, num_envs, "skrl.SkrlMultiAgentEnv", device=device, output="torch", **kwargs)
        super().__init__(batch)
        self.simulator = batch.simulator
        self._device = torch.device("cpu" if self.simulator.xp.__name__ == "numpy" else self.simulator.device)
        self._layout, self._seed = self.simulator.layout, seed
        self._places = places(self._layout)
        self._observation_spaces = {
            agent: plain_space(batch.observation_spaces[g]) for agent, (g, _) in self._places.items()
        }
        self._action_spaces = {agent: batch.action_spaces[g] for agent, (g, _) in self._places.items()}
        self._masks: Tensors = {}

    @property
    def num_agents(self) -> int:
        """Number of agents, of those that have left too."""
        return len(self._places)

    max_num_agents = num_agents

    @property
    def possible_agents(self) -> list[str]:
        """Names of all agents."""
        return list(self._places)

    agents = possible_agents

    @property
    def observation_spaces(self) -> dict[str, spaces.Space[Any]]:
        """One agent's observation, by agent."""
        return self._observation_spaces

    @property
    def action_spaces(self) -> dict[str, spaces.Space[Any]]:
        """One agent's action, by agent."""
        return self._action_spaces

    @property
    def state_spaces(self) -> dict[str, spaces.Space[Any]]:
        """The global state, which is the same for all agents."""
        return dict.fromkeys(self._places, self._env.state_space)

    def reset(self) -> tuple[Tensors, dict[str, Any]]:
        """Begins new episodes: the first time with the seed, then the next ones of each env."""
        observations, infos = self._env.reset(seed=self._seed)
        self._seed = None
        return self._seen(observations), self._infos(infos)

    def step(self, actions: Mapping[str, torch.Tensor]) -> tuple[Tensors, Tensors, Tensors, Tensors, dict[str, Any]]:
        """One step.

        Args:
            actions: by agent, ``(num_envs, numbers)``.

        Returns:
            Observations ``(num_envs, numbers)``; rewards, terminated and truncated, ``(num_envs, 1)``; and infos, by
            agent each: ``alive`` and ``final_obs``, where an episode ended.

        Raises:
            ValueError, TypeError: actions of the wrong shape or kind.
        """
        by_group: dict[str, list[torch.Tensor]] = {}
        for agent, (group, _) in self._places.items():
            space = self._action_spaces[agent]
            action = unflatten_tensorized_space(space, actions[agent])
            if not isinstance(space, spaces.Box):
                action = action.long().reshape(self.num_envs, *(space.shape or ()))
            by_group.setdefault(group, []).append(action)
        observations, *others, infos = self._env.step({g: torch.stack(rows, 1) for g, rows in by_group.items()})
        rewards, terminated, truncated = ({a: x[:, None] for a, x in by_agent(self._layout, y).items()} for y in others)
        return self._seen(observations), rewards, terminated, truncated, self._infos(infos)

    def _seen(self, observations: Mapping[str, Any], keep_masks: bool = True) -> Tensors:
        found = by_agent(self._layout, observations)
        if self._layout.mask_size:
            if keep_masks:
                self._masks = {agent: both["action_mask"].bool() for agent, both in found.items()}
            found = {agent: both["observation"] for agent, both in found.items()}
        own = self._observation_spaces
        return {a: flatten_tensorized_space(tensorize_space(own[a], x, device=self._device)) for a, x in found.items()}

    def _infos(self, infos: Mapping[str, Any]) -> dict[str, Any]:
        last = self._seen(infos["final_obs"], keep_masks=False)
        return {"alive": by_agent(self._layout, infos["alive"]), "final_obs": last}

    def state(self) -> dict[str, torch.Tensor | None]:
        """The global state ``(num_envs, numbers)``, the same tensor for every agent.

        It is the game's own where it declares one, and otherwise the observations of all agents.
        """
        return dict.fromkeys(self._places, self._env.state().reshape(self.num_envs, -1).float())

    def action_mask(self) -> Tensors:
        """The legal actions by agent, bool ``(num_envs, choices)``. skrl does not pass them to its models.

        Raises:
            ValueError: the game has no masks.
        """
        if not self._layout.mask_size:
            raise ValueError(f"{self.simulator.env.id} has no action masks: every action is legal.")
        return self._masks

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """A picture of one env, by default the first one."""
        return self._env.render(*args, **kwargs)

    def close(self) -> None:
        """Frees the arrays."""
        self._env.close()
