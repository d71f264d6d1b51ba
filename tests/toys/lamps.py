"""A toy with several discrete actions at once, masks, and whole numbers as observation."""

from __future__ import annotations

from typing import Any, ClassVar

from gymnasium import spaces

from gpuzoo.core.definition import EnvDef, Field


class Lamps(EnvDef):
    """Two switches turn lamps on and off; the second is blocked now and then."""

    id = "Lamps-v0"
    max_episode_steps = 25
    action_mask = True
    short_episodes = True
    exempt: ClassVar = {"reference": "a toy of the tests"}

    def observation_space(self, cfg: Any, group: str) -> spaces.MultiDiscrete:
        return spaces.MultiDiscrete([4, 3, 2])

    def action_space(self, cfg: Any, group: str) -> spaces.MultiDiscrete:
        return spaces.MultiDiscrete([3, 2])

    def fields(self, cfg: Any) -> dict[str, Field]:
        return {"level": Field("int32"), "colour": Field("uint8"), "on": Field("bool")}

    def render(self, cfg: Any, state: Any, canvas: Any) -> None:
        canvas.background("paper")
        canvas.view(0, 0, 4, 2)
        canvas.circle(1 + int(state["level"]), 1, 0.5, fill="yellow" if state["on"] else "slate")
