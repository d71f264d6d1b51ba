"""PettingZoo: one env as an ``AECEnv``, in which agents act one after the other."""

from __future__ import annotations

from typing import Any

from pettingzoo import AECEnv
from pettingzoo.utils.conversions import parallel_to_aec
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from gpuzoo import registry
from gpuzoo.core.definition import EnvDef
from gpuzoo.interfaces.parallel import AgentView, ViewedEnv, parallel_env
from gpuzoo.interfaces.signatures import arguments_of


class TurnBasedEnv(ViewedEnv, AECEnv[str, Any, Any]):
    """One env of a turn-based game; made by `aec_env`."""

    def __init__(self, view: AgentView) -> None:
        super().__init__(view, parallelizable=False)

    def observe(self, agent: str) -> Any:
        """The agent's present observation."""
        return self._view.observations([agent])[agent]

    def _to_move(self) -> str:
        return self.possible_agents[int(self._view.read(str(self._view.definition.turn)))]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begins an episode."""
        self._view.reset(seed, options)
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = self._view.infos(self.agents)
        self.agent_selection = self._to_move()

    def step(self, action: Any) -> None:
        """The move of ``agent_selection``; None for an agent whose game is over.

        Raises:
            RuntimeError: not reset, closed, or after a fork.
        """
        self.simulator.check_begun("step")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self._view.write(agent, action)
        self._view.simulator.step()
        self._cumulative_rewards[agent] = 0.0
        index = self._view.index
        rewards, terminated, truncated = (self._view.read(k).tolist() for k in ("reward", "terminated", "truncated"))
        self.rewards = {a: float(rewards[index[a]]) for a in self.agents}
        for a in self.agents:
            self.terminations[a] = bool(terminated[index[a]])
            self.truncations[a] = bool(truncated[index[a]])
        self.infos = self._view.infos(self.agents)
        self.agent_selection = self._to_move()
        self._accumulate_rewards()
        self._deads_step_first()
        if self.render_mode == "human":
            self.render()


@arguments_of(AgentView)
def aec_env(env: str | EnvDef | type[EnvDef], **kwargs: Any) -> AECEnv[str, Any, Any]:
    """One env as a PettingZoo ``AECEnv``, with the arguments of `parallel_env`.

    Turn-based games implement it directly. For other games PettingZoo converts the parallel env.

    Raises:
        ValueError: an argument is out of range.
    """
    definition = registry.get(env)
    if definition.turn is None:
        return parallel_to_aec(parallel_env(definition, **kwargs))
    return OrderEnforcingWrapper(TurnBasedEnv(AgentView(definition, **kwargs)))
