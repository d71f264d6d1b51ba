"""The switch riddle."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas


@dataclasses.dataclass(frozen=True)
class SwitchRiddleConfig(Config):
    """Who is imprisoned, and what is at stake."""

    num_agents: int = param(3, low=3, high=64, doc="number of prisoners")
    initial_bulb_state: bool = param(False, doc="whether the light is on at the beginning")
    reward_all_live: float = param(1.0, doc="for all, when it is true that everybody has been in the room")
    reward_all_die: float = param(-1.0, doc="for all, when it is not")


class SwitchRiddle(EnvDef):
    """Prisoners who never meet must know when each of them has been in the room with the light.

    Every day one prisoner, drawn at random, is in a room with a light and a switch. They may leave a
    message for the next one by the switch, and nothing else. As soon as somebody says that everybody
    has been in the room, all are free if it is true, and lost if it is not. Foerster et al.,
    "Learning to Communicate with Deep Multi-Agent Reinforcement Learning" (2016).

    **Agents.** `agent_0` to `agent_{num_agents - 1}`. All act at every step, but only the action of the
    one in the room counts.

    **Actions.** `Discrete(3)`: do nothing, switch the light, tell.

    **Observation.** `MultiDiscrete([2, 2])`: whether the agent is in the room, and whether it sees the light on. Only
    the agent in the room can see it.

    **Reward.** All get `reward_all_live` or `reward_all_die` at a tell, 0 otherwise.

    **End.** A tell, or 4 `num_agents` - 6 days: that is a rule of the riddle, so it terminates.
    The prisoner who tells counts as a visitor.

    As in JaxMARL, the next prisoner is drawn from all, so the same one may come again on the next day. The numbers of
    days and of agents are JaxMARL's, too.
    """

    id = "SwitchRiddle-v0"
    Config = SwitchRiddleConfig
    reference = "jaxmarl 0.2.0 switch_riddle"
    interaction = "cooperative"
    links: ClassVar[Mapping[str, str]] = {
        "JaxMARL": "https://github.com/FLAIROx/JaxMARL/tree/main/jaxmarl/environments/switch_riddle",
        "Foerster et al. 2016": "https://arxiv.org/abs/1605.06676",
    }
    render_fps = 2

    def agents(self, cfg: SwitchRiddleConfig) -> dict[str, int]:
        return {"agent": cfg.num_agents}

    def observation_space(self, cfg: SwitchRiddleConfig, group: str) -> spaces.MultiDiscrete:
        return spaces.MultiDiscrete([2, 2])

    def action_space(self, cfg: SwitchRiddleConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(3)

    def observation_names(self, cfg: SwitchRiddleConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("whether the agent is in the room", "whether it sees the light on"), 1)

    def action_names(self, cfg: SwitchRiddleConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("do nothing", "switch the light", "tell"), 1)

    def fields(self, cfg: SwitchRiddleConfig) -> dict[str, Field]:
        return {
            "light": Field("bool", doc="whether the light is on"),
            "in_room": Field("int32", doc="index of the agent in the room"),
            "has_been": Field(
                "uint32" if cfg.num_agents <= 32 else "uint64",
                doc="bit a: whether agent a has been in the room before this day",
            ),
        }

    def render(self, cfg: SwitchRiddleConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        n, inside, been = cfg.num_agents, int(state["in_room"]), int(state["has_been"])
        light = bool(state["light"])
        canvas.background("paper")
        canvas.view(-1.35, -1.35, 1.35, 1.35, hud=True)
        canvas.rect(-0.5, -0.5, 0.5, 0.5, fill="sand" if light else "mist", outline="slate", radius=0.06)
        if light:
            canvas.circle(0, 0.27, 0.22, fill="#f2c14b50")
        canvas.circle(0, 0.27, 0.12, fill="yellow" if light else "grey", outline="ink")
        size = min(0.13, 2.2 / n)
        for a in range(n):
            angle = np.pi / 2 - 2 * np.pi * a / n
            x, y = (0.0, -0.2) if a == inside else (np.cos(angle), np.sin(angle))
            if a == inside:
                canvas.circle(np.cos(angle), np.sin(angle), size, outline="line")
            known = been >> a & 1
            canvas.circle(x, y, size, fill="green" if known else "blue", outline="white")
            canvas.text(x, y, str(a), size=11, colour="white", bold=True)
        who = bin(been).count("1")
        canvas.hud(left=f"Switch riddle   {who} of {n} have been inside", right=f"day {int(state['elapsed_steps'])}")
