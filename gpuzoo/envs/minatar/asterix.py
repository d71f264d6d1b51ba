"""Asterix of MinAtar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from gpuzoo.core.definition import Field
from gpuzoo.envs.minatar.suite import MinAtar, RampingConfig
from gpuzoo.render import Canvas, fade


class Asterix(MinAtar):
    """A player collects gold and avoids enemies, which cross the screen faster and faster.

    The game is played on 10 rows (0 is the top) and 10 columns. The player moves in rows 1 to 8. In each of these rows
    there may be one thing, an enemy or gold, that moves to the right or to the left. Young and Tian, "MinAtar" (2019).

    **Start.** The player is in row 5 and column 5, alone. `spawn_speed` and its timer are 10, `move_speed` and its
    timer 5, `ramp_timer` 100. The button of the step before counts as no-op.

    **Actions.** `Discrete(5)`: no-op, left, up, right, down. With `use_minimal_action_set=False`, `Discrete(6)`: no-op,
    left, up, right, down, fire, and fire does nothing. With probability `sticky_action_prob` the action is ignored and
    the button that counted in the step before counts again. An action out of range is a no-op.

    **Rules.** In this order. (1) If `spawn_timer` is 0 a new thing arrives and the timer is set to `spawn_speed`: it
    comes from the left, in column 0, or from the right, in column 9, with equal chances, is gold with probability 1/3,
    and takes one of the free rows, each with the same probability; without a free row nothing comes. (2) The player
    moves and stays on the screen. (3) If the player meets gold, it is taken away for a reward of 1; if it meets an
    enemy the game ends. (4) If `move_timer` is 0 it is set to `move_speed` and all things move by one column; those
    that leave the screen are gone; the player meets things as before. (5) Both timers count down. (6) With
    `difficulty_ramping`, as long as one of the speeds is above 1: `ramp_timer` counts down; when it is below 0 it is
    set to 100 instead, `spawn_speed` falls by 1 and, every second time, `move_speed` too, but neither below 1.

    **Observation.** `Box(0, 1, (10, 10, 4), int8)`: row, column and channel: player, enemy, trail (the cell behind each
    thing, if it is on the screen), gold.

    **Reward.** 1 for each piece of gold.

    **End.** The player meets an enemy. There is no time limit, as in the original (Gymnax stops after 1,000 steps).

    In the original the first action of an episode may be replaced by the last one of the episode before, and
    observations are bool.
    """

    id = "Asterix-MinAtar-v1"
    Config = RampingConfig
    reference = "minatar 1.0.15 asterix"
    aliases = (r"minatar-asterix", r"MinAtar/Asterix-v1")
    similar = (r"(ALE/)?Asterix(NoFrameskip)?-v\d",)
    title = "Asterix"
    channels = ("player", "enemy", "trail", "gold")
    buttons = ("noop", "left", "up", "right", "down")

    def fields(self, cfg: RampingConfig) -> dict[str, Field]:  # type: ignore[override]
        row = "in row k + 1"
        return super().fields(cfg) | {
            "player_x": Field("int8", doc="column of the player"),
            "player_y": Field("int8", doc="row of the player"),
            "entities": Field("uint32", doc=f"hexadecimal digit k: 1 if there is an enemy or gold {row}, or 0"),
            "entity_x": Field("uint32", doc=f"digit k: column of the one {row}, 0 if there is none"),
            "rightward": Field("uint32", doc=f"digit k: 1 if the one {row} moves to the right, or 0"),
            "gold": Field("uint32", doc=f"digit k: 1 if the one {row} is gold, or 0"),
            "spawn_speed": Field("int8", doc="steps from one arrival to the next"),
            "spawn_timer": Field("int8", doc="steps until the next arrival"),
            "move_speed": Field("int8", doc="steps from one move of enemies and gold to the next"),
            "move_timer": Field("int8", doc="steps until the next move"),
            "ramp_timer": Field("int8", doc="steps until the game becomes harder"),
            "ramp_index": Field("int8", doc="how often it has become harder"),
        }

    def render(self, cfg: RampingConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        self.screen(state, canvas, "#caa15c", f"level {int(state['ramp_index'])}")
        canvas.rect(0, 0, 10, 10, fill="#e9cf94")
        for row in range(1, 9):
            canvas.rect(0, row, 10, row + 1, fill="sand" if row % 2 else "#ecdcb4")
        for row in range(1, 9):
            entities, column, rightward, gold = (
                int(state[name]) >> 4 * (row - 1) & 15 for name in ("entities", "entity_x", "rightward", "gold")
            )
            if not entities:
                continue
            x, y, way = column + 0.5, row + 0.5, 1 if rightward else -1
            colour = "#d99a1c" if gold else "red"
            for k in range(3):
                high = y + 0.18 * (k - 1)
                canvas.line(x - way * 0.5, high, x - way * (1.0 - 0.12 * abs(k - 1)), high, colour=fade(colour, 0.45))
            if gold:
                canvas.circle(x, y, 0.36, fill="yellow", outline="#c98f1e", width=2)
                canvas.circle(x, y, 0.23, outline="#c98f1e", width=1.5)
                canvas.circle(x - 0.12, y - 0.13, 0.07, fill="#ffffffb0")
            else:
                canvas.polygon(
                    [(x - way * 0.38, y - 0.34), (x + way * 0.42, y), (x - way * 0.38, y + 0.34)], fill=colour
                )
                canvas.circle(x - way * 0.14, y - 0.06, 0.1, fill="white")
                canvas.circle(x - way * 0.11, y - 0.06, 0.05, fill="ink")
        x, y = int(state["player_x"]) + 0.5, int(state["player_y"]) + 0.5
        canvas.circle(x, y + 0.06, 0.36, fill="blue", outline="white", width=2)
        for side in (-1, 1):
            wing = [(x + side * 0.12, y - 0.26), (x + side * 0.42, y - 0.48), (x + side * 0.32, y - 0.1)]
            canvas.polygon(wing, fill="white", outline="blue", width=1)
            canvas.circle(x + side * 0.13, y, 0.07, fill="white")
            canvas.circle(x + side * 0.13, y, 0.035, fill="ink")
        canvas.line(x - 0.16, y + 0.2, x + 0.16, y + 0.2, colour="yellow", width=3)
