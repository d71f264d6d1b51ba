"""What the games of MinAtar share: buttons, spaces, and how a picture begins."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas

#: MinAtar's six actions
BUTTONS = ("noop", "left", "up", "right", "down", "fire")


@dataclasses.dataclass(frozen=True)
class MinAtarConfig(Config):
    """How buttons are pressed."""

    sticky_action_prob: float = param(
        0.1, low=0.0, high=1.0, doc="probability that the button of the step before is pressed again"
    )
    use_minimal_action_set: bool = param(True, doc="the actions are the buttons that do something; False: all six")


@dataclasses.dataclass(frozen=True)
class RampingConfig(MinAtarConfig):
    """How buttons are pressed, and whether the game becomes harder."""

    difficulty_ramping: bool = param(True, doc="the game becomes harder as it goes on")


class MinAtar(EnvDef):
    """A game on 10 x 10 cells, seen as planes of bits."""

    #: what the planes of the observation show
    channels: ClassVar[tuple[str, ...]]
    #: the buttons that do something, in MinAtar's order
    buttons: ClassVar[tuple[str, ...]]
    title: ClassVar[str]
    links: ClassVar[Mapping[str, str]] = {
        "MinAtar": "https://github.com/kenjyoung/MinAtar",
        "Young and Tian 2019": "https://arxiv.org/abs/1903.03176",
    }
    render_fps = 15

    def pressed(self, cfg: MinAtarConfig) -> tuple[str, ...]:
        """The button of each action."""
        return self.buttons if cfg.use_minimal_action_set else BUTTONS

    def constants(self, cfg: MinAtarConfig) -> dict[str, int]:
        return {"BUTTONS": sum(BUTTONS.index(button) << 4 * k for k, button in enumerate(self.pressed(cfg)))}

    def observation_space(self, cfg: MinAtarConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (10, 10, len(self.channels)), np.int8)

    def action_space(self, cfg: MinAtarConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(len(self.pressed(cfg)))

    def observation_names(self, cfg: MinAtarConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(self.channels, 1)

    def action_names(self, cfg: MinAtarConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(self.pressed(cfg), 1)

    def fields(self, cfg: MinAtarConfig) -> dict[str, Field]:
        return {"last_action": Field("int8", doc="the button pressed last: " + ", ".join(BUTTONS))}

    def screen(self, state: Mapping[str, NDArray[Any]], canvas: Canvas, colour: str, status: str = "") -> None:
        """Shows the cells, cell (row, column) from (column, row) to (column + 1, row + 1), under a line of text."""
        canvas.background(colour)
        canvas.view(0, 0, 10, 10, y_down=True, hud=True)
        canvas.hud(left=self.title, right=f"{status}   step {int(state['elapsed_steps'])}".strip())
