"""PettingZoo: one env of a game in which agents act at the same time, as a ``ParallelEnv``."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from gpuzoo import registry
from gpuzoo.core.backend import Device
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.layout import choices, flat_size
from gpuzoo.core.simulator import Simulator
from gpuzoo.core.suggestions import unknown
from gpuzoo.interfaces.arrays import ActionSlot
from gpuzoo.interfaces.batch import Masks, apply_options, check_masks, check_render_mode, draw_or_show
from gpuzoo.interfaces.global_state import global_state, global_state_space
from gpuzoo.interfaces.infos import infos_of_one
from gpuzoo.interfaces.interface import OneEnv
from gpuzoo.interfaces.signatures import arguments_of
from gpuzoo.interfaces.spaces import agent_observation_space, plain_space
from gpuzoo.interfaces.turns import check_all_observe
from gpuzoo.render import Window

_OPTIONS = ("params", "options")  # the second is what PettingZoo's own tests give


class AgentView(OneEnv):
    """One env of a simulator, agent by agent: what the parallel and the AEC interface have in common.

    `parallel_env` describes the arguments.
    """

    def __init__(
        self,
        env: str | EnvDef | type[EnvDef],
        *,
        render_mode: str | None = None,
        max_cycles: int | Literal["default"] | None = "default",
        device: Device = "cpu",
        masks: Masks = "observation",
        infos: bool = False,
        **kwargs: Any,
    ) -> None:
        definition = registry.get(env)
        check_render_mode(render_mode)
        check_masks(masks)
        check_all_observe(kwargs, "PettingZoo's interface")
        kwargs.setdefault("threads", 1)
        self.simulator = sim = Simulator(
            definition,
            1,
            device=device,
            autoreset_mode="disabled",
            max_episode_steps=max_cycles,
            **kwargs,
        )
        lay = sim.layout
        self.definition, self.render_mode, self._tells = definition, render_mode, infos
        self.names = lay.agent_names()
        self.index = {name: k for k, name in enumerate(self.names)}
        self.groups = {name: lay.group_of(k) for name, k in self.index.items()}
        by_group = {g: agent_observation_space(lay, g) for g in lay.groups}
        if masks == "info":
            by_group = {g: plain_space(space) for g, space in by_group.items()}
        self._masked = masks == "observation" and lay.mask_size > 0
        self.observation_spaces = {name: by_group[g] for name, g in self.groups.items()}
        self.action_spaces = {name: lay.action_spaces[g] for name, g in self.groups.items()}
        self._slots = [
            ActionSlot(sim, k, 1, s, s.shape or (), f"the action of {name}")
            for k, (name, s) in enumerate(self.action_spaces.items())
        ]
        self._dtypes = {g: lay.observation_spaces[g].dtype for g in lay.groups}
        self._mask_sizes = {g: sum(choices(lay.action_spaces[g])) for g in lay.groups} if lay.mask_size else {}
        self._window = Window(definition.id, definition.render_fps)

    def metadata(self, parallelizable: bool) -> dict[str, Any]:
        """PettingZoo's metadata."""
        return {
            "name": self.definition.module_name(),
            "render_modes": ["human", "rgb_array"],
            "is_parallelizable": parallelizable,
            "render_fps": self.definition.render_fps,
        }

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> None:
        """Begins an episode."""
        apply_options(self.simulator, seed, options, known=_OPTIONS)

    def read(self, name: str) -> Any:
        """A NumPy copy of an array of this env."""
        return self.simulator.backend.to_numpy(self.simulator.arrays[name])[0]

    def write(self, agent: str, action: Any) -> None:
        """Sets an agent's action for the next step."""
        self._slots[self.index[agent]].write(action)

    def observations(self, agents: list[str]) -> dict[str, Any]:
        """Observations of some agents, in arrays of their own."""
        everything = self.read("observation")
        masks = self._masks(agents) if self._masked else None
        out: dict[str, Any] = {}
        for agent in agents:
            k, group = self.index[agent], self.groups[agent]
            space = self.simulator.layout.observation_spaces[group]
            observation = everything[k][: flat_size(space)].reshape(space.shape).astype(self._dtypes[group])
            if not space.shape:
                observation = observation[()]  # a scalar, as Discrete spaces have them
            if masks is None:
                out[agent] = observation
            else:
                out[agent] = {"observation": observation, "action_mask": masks[agent]}
        return out

    def infos(self, agents: list[str]) -> dict[str, dict[str, Any]]:
        """Infos of some agents: the action mask, where the game has masks, and the game's own, if they are wanted."""
        sim = self.simulator
        own = infos_of_one(sim, stepped=bool(self.read("elapsed_steps"))) if self._tells else {}
        if not sim.layout.mask_size:
            return {agent: dict(own) for agent in agents}
        return {agent: {"action_mask": mask, **own} for agent, mask in self._masks(agents).items()}

    def _masks(self, agents: list[str]) -> dict[str, Any]:
        """Action masks of some agents, in arrays of their own."""
        masks = self.read("action_mask")
        return {a: masks[self.index[a]][: self._mask_sizes[self.groups[a]]].copy() for a in agents}

    def state_space(self) -> spaces.Box:
        """Space of `state`."""
        return global_state_space(self.simulator.layout)

    def state(self) -> np.ndarray[Any, Any]:
        """The game's own global state, or the observations of all agents, one after the other, float32."""
        return np.asarray(self.simulator.backend.to_numpy(global_state(self.simulator))[0])

    def render(self) -> Any:
        """A picture (height, width, 3) uint8, or None in human mode, which shows it in a window."""
        if self.render_mode is None:
            return None
        return draw_or_show(self.simulator, self._window if self.render_mode == "human" else None)

    def close(self) -> None:
        """Frees the arrays and closes the window. May be called again."""
        self._window.close()
        self.simulator.close()


class ViewedEnv(OneEnv):
    """The common base of PettingZoo's two kinds of env, over an `AgentView`."""

    def __init__(self, view: AgentView, parallelizable: bool) -> None:
        self._view = view
        self.simulator = view.simulator
        self.metadata = view.metadata(parallelizable)
        self.render_mode = view.render_mode
        self.possible_agents = list(view.names)
        self.agents: list[str] = []
        self.observation_spaces = view.observation_spaces
        self.action_spaces = view.action_spaces
        self.state_space = view.state_space()

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Space of one agent's observation, the same object at every call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Space of one agent's action, the same object at every call."""
        return self.action_spaces[agent]

    def state(self) -> np.ndarray[Any, Any]:
        """The game's own global state, or the observations of all agents, one after the other, float32."""
        return self._view.state()

    def render(self) -> Any:
        """A picture (height, width, 3) uint8, or None in human mode, which shows it in a window."""
        return self._view.render()

    def close(self) -> None:
        """Frees the arrays and closes the window. May be called again."""
        self._view.close()


class GpuzooParallelEnv(ViewedEnv, ParallelEnv[str, Any, Any]):
    """One env as a PettingZoo ``ParallelEnv``; made by `parallel_env`."""

    def __init__(self, view: AgentView) -> None:
        super().__init__(view, parallelizable=True)

    @property
    def max_cycles(self) -> int | None:
        """The time limit in steps."""
        return self._view.simulator.max_episode_steps

    @max_cycles.setter
    def max_cycles(self, limit: int | None) -> None:
        self._view.simulator.max_episode_steps = limit

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begins an episode with all agents."""
        self._view.reset(seed, options)
        self.agents = list(self.possible_agents)
        return self._view.observations(self.agents), self._view.infos(self.agents)

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        """One step of the agents that are in the game.

        Args:
            actions: an action for each agent in `agents`.

        Returns:
            Observations, rewards, terminations, truncations, infos of the agents that were in the game before the step.

        Raises:
            ValueError: an action is missing, or there is no such agent; actions of agents that have left are ignored.
            RuntimeError: not reset, closed, or after a fork.
        """
        acting = self.agents
        for agent in acting:
            if agent not in actions:
                raise ValueError(f"an action is missing for {agent!r}: every agent in env.agents needs one.")
        for agent in actions:
            if agent not in self._view.index:
                raise ValueError(unknown(f"{self.simulator.env.id} has no agent", str(agent), self._view.index))
        self.simulator.check_begun("step")
        for agent in acting:
            self._view.write(agent, actions[agent])
        if not acting:
            return {}, {}, {}, {}, {}
        self._view.simulator.step()
        index = self._view.index
        rewards, terminated, truncated = (self._view.read(k).tolist() for k in ("reward", "terminated", "truncated"))
        terminations = {a: bool(terminated[index[a]]) for a in acting}
        truncations = {a: bool(truncated[index[a]]) for a in acting}
        ended = bool(self._view.read("ended"))
        self.agents = [a for a in acting if not (terminations[a] or truncations[a] or ended)]
        return (
            self._view.observations(acting),
            {a: float(rewards[index[a]]) for a in acting},
            terminations,
            truncations,
            self._view.infos(acting),
        )


@arguments_of(AgentView)
def parallel_env(env: str | EnvDef | type[EnvDef], **kwargs: Any) -> GpuzooParallelEnv:
    """One env as a PettingZoo ``ParallelEnv``.

    Args:
        env: id or declaration of a game.
        render_mode: ``"rgb_array"``, ``"human"`` or None.
        max_cycles: time limit in steps; by default the game's own, None or -1 for none.
        device: the device; a single env is fastest on the CPU.
        masks: where to put a game's action masks. ``"observation"`` puts them into the observation, which becomes a
            dictionary, and into infos; ``"info"`` into infos only.
        infos: adds the game's own infos, the same for all agents.
        **kwargs: the game's parameters.

    Raises:
        ValueError: the game is turn-based, or an argument is out of range.
    """
    definition = registry.get(env)
    if definition.turn is not None:
        raise ValueError(f"in {definition.id} agents act in turns: use gpuzoo.aec_env.")
    return GpuzooParallelEnv(AgentView(definition, **kwargs))
