"""Space Invaders of MinAtar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.definition import Field
from gpuzoo.envs.minatar.suite import MinAtar, RampingConfig
from gpuzoo.render import Canvas, fade

ALIEN = ("..#..#..", "...##...", "..####..", ".##..##.", "########", "#.####.#", "#.#..#.#", "...##...")
STARS = np.random.default_rng(5).random((40, 2)) * 10


class SpaceInvaders(MinAtar):
    """A cannon shoots at aliens that march down, and avoids their bullets.

    The game is played on 10 rows (0 is the top) and 10 columns. The cannon moves in row 9. Young and Tian, "MinAtar"
    (2019).

    **Start.** The cannon is in column 5 and may shoot. 24 aliens stand in rows 0 to 3 and columns 2 to 7 and move to
    the left. They move after 12 steps and shoot after 10. The button of the step before counts as no-op.

    **Actions.** `Discrete(4)`: no-op, left, right, fire. With `use_minimal_action_set=False`, `Discrete(6)`: no-op,
    left, up, right, down, fire, of which up and down do nothing. With probability `sticky_action_prob` the action is
    ignored and the button that counted in the step before counts again. An action out of range is a no-op.

    **Rules.** In this order. (1) The cannon moves and stays on the screen, or it shoots from its cell if `shot_timer`
    is 0, which is then set to 5. (2) Its bullets move up by one row, those of the aliens down by one row, and those
    that leave the screen are gone. A bullet in the cannon's cell ends the game, and so does an alien in it. (3) If
    `alien_move_timer` is 0 it is set to the number of aliens, or to `enemy_move_interval` if that is less, and the
    aliens move: by one column in their direction; but if one of them is in the last column on that side they turn and
    move down by one row. If that would take one of them out of the screen, the game ends, and its row comes back as row
    0. An alien in the cannon's cell ends the game. (4) If `alien_shot_timer` is 0 it is set to 10 and an alien shoots,
    in whose cell the bullet begins: the lowest one of the column that is the nearest to the cannon, the left one of
    two. (5) An alien and a bullet of the cannon in one cell are both gone. (6) The timers count down, that of the
    cannon to 0. (7) When all aliens are gone the 24 of the start come back, in the direction in which the last ones
    moved; with `difficulty_ramping`, `enemy_move_interval` falls by 1, from 12 down to 6. Timers go on.

    **Observation.** `Box(0, 1, (10, 10, 6), int8)`: row, column and channel: cannon, alien, alien that moves to the
    left, alien that moves to the right, bullet of the cannon, bullet of an alien.

    **Reward.** 1 for each alien.

    **End.** See above. There is no time limit, as in the original (Gymnax stops after 1,000 steps).

    In the original the first action of an episode may be replaced by the last one of the episode before, and
    observations are bool.
    """

    id = "SpaceInvaders-MinAtar-v1"
    Config = RampingConfig
    reference = "minatar 1.0.15 space_invaders"
    aliases = (r"minatar-space_invaders", r"MinAtar/SpaceInvaders-v1")
    similar = (r"(ALE/)?SpaceInvaders(NoFrameskip)?-v\d",)
    title = "Space Invaders"
    channels = ("cannon", "alien", "alien_left", "alien_right", "friendly_bullet", "enemy_bullet")
    buttons = ("noop", "left", "right", "fire")

    def fields(self, cfg: RampingConfig) -> dict[str, Field]:  # type: ignore[override]
        pictures = {"aliens": "alien", "shots": "bullet of the cannon", "bombs": "bullet of an alien"}
        upper, lower = "bit 10 * row + column, rows 0 to 4", "bit 10 * (row - 5) + column, rows 5 to 9"
        return (
            super().fields(cfg)
            | {f"{name}_upper": Field("uint64", doc=f"{upper}: {what}") for name, what in pictures.items()}
            | {f"{name}_lower": Field("uint64", doc=f"{lower}: {what}") for name, what in pictures.items()}
            | {
                "pos": Field("int8", doc="column of the cannon"),
                "alien_dir": Field("int8", doc="-1 if the aliens move to the left, 1 to the right"),
                "enemy_move_interval": Field("int8", doc="steps from one move of the aliens to the next, at the most"),
                "alien_move_timer": Field("int8", doc="steps until the aliens move"),
                "alien_shot_timer": Field("int8", doc="steps until an alien shoots"),
                "shot_timer": Field("int8", doc="steps until the cannon may shoot"),
                "ramp_index": Field("int8", doc="how often the aliens have become faster"),
            }
        )

    def render(self, cfg: RampingConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        cells = {}
        for name in ("aliens", "shots", "bombs"):
            bits = int(state[f"{name}_upper"]) | int(state[f"{name}_lower"]) << 50
            cells[name] = [divmod(k, 10) for k in range(100) if bits >> k & 1]
        self.screen(state, canvas, "#070912", f"{len(cells['aliens'])} aliens")
        canvas.rect(0, 0, 10, 10, fill="#10142a")
        canvas.circles(STARS, 0.025, fade("white", 0.5))
        for row, column in cells["aliens"]:
            for k, line in enumerate(ALIEN):
                for first in [j for j, c in enumerate(line) if c == "#" and (j == 0 or line[j - 1] != "#")]:
                    last = first + len(line[first:].split(".")[0])
                    x, y = column + 0.12 + 0.095 * first, row + 0.12 + 0.095 * k
                    canvas.rect(x, y, column + 0.12 + 0.095 * last, y + 0.095, fill=("teal", "green")[row % 2])
        for row, column in cells["shots"]:
            canvas.rect(column + 0.44, row + 0.2, column + 0.56, row + 0.8, fill="white", radius=0.06)
        for row, column in cells["bombs"]:
            x = column + 0.5
            zigzag = [(x - 0.1, row + 0.15), (x + 0.1, row + 0.38), (x - 0.1, row + 0.62), (x + 0.1, row + 0.85)]
            canvas.path(zigzag, colour="red", width=3)
        pos = int(state["pos"])
        canvas.rect(pos + 0.06, 9.5, pos + 0.94, 9.86, fill="blue", radius=0.08)
        canvas.rect(pos + 0.3, 9.34, pos + 0.7, 9.6, fill="blue", radius=0.06)
        ready = int(state["shot_timer"]) == 0
        canvas.rect(pos + 0.44, 9.14, pos + 0.56, 9.45, fill="white" if ready else "slate", radius=0.04)
