"""Breakout of MinAtar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from gpuzoo.core.definition import Field
from gpuzoo.envs.minatar.suite import MinAtar, MinAtarConfig
from gpuzoo.render import Canvas, fade

COLOURS = ("red", "orange", "yellow")  # of the rows of bricks


class Breakout(MinAtar):
    """A paddle keeps a ball in play that breaks the bricks of a wall.

    The game is played on 10 rows (0 is the top) and 10 columns. The ball moves by one cell along a diagonal in each
    step. The paddle is one cell wide and moves in row 9. The wall has bricks in all cells of rows 1 to 3. Young and
    Tian, "MinAtar" (2019).

    **Start.** The paddle is in column 4. The ball is in row 3, in column 0 on its way right and down or in column 9 on
    its way left and down, with equal chances. The button of the step before counts as no-op.

    **Actions.** `Discrete(3)`: no-op, left, right. With `use_minimal_action_set=False`, `Discrete(6)`: no-op, left, up,
    right, down, fire, of which up, down and fire do nothing. With probability `sticky_action_prob` the action is
    ignored and the button that counted in the step before counts again. An action out of range is a no-op.

    **Rules.** The paddle moves first. The ball's next cell is then found: at a side wall it stays in its column and is
    mirrored left to right. After that, one of these: above row 0 it stays in row 0 and is mirrored up to down. In a
    brick, the brick breaks and the ball stays in its row and is mirrored up to down; but a ball that was in a brick's
    cell in the step before flies through (`strike`). In row 9 it meets the paddle or is lost: if the ball's old column
    is the paddle's it stays in its row and is mirrored up to down; if its new column is the paddle's it stays in its
    row and goes back to where it came from. When it comes to row 9 and no brick is left, the wall stands again.

    **Observation.** `Box(0, 1, (10, 10, 4), int8)`: row, column and channel: paddle, ball, trail (the ball's cell one
    step ago), brick.

    **Reward.** 1 for each brick.

    **End.** The ball is lost. There is no time limit, as in the original (Gymnax stops after 1,000 steps).

    In the original the first action of an episode may be replaced by the last one of the episode before, and
    observations are bool.
    """

    id = "Breakout-MinAtar-v1"
    Config = MinAtarConfig
    reference = "minatar 1.0.15 breakout"
    aliases = (r"minatar-breakout", r"MinAtar/Breakout-v1")
    similar = (r"(ALE/)?Breakout(NoFrameskip)?-v\d",)
    title = "Breakout"
    channels = ("paddle", "ball", "trail", "brick")
    buttons = ("noop", "left", "right")

    def fields(self, cfg: MinAtarConfig) -> dict[str, Field]:
        return super().fields(cfg) | {
            "ball_x": Field("int8", doc="column of the ball"),
            "ball_y": Field("int8", doc="row of the ball"),
            "last_x": Field("int8", doc="column of the ball one step ago"),
            "last_y": Field("int8", doc="row of the ball one step ago"),
            "ball_dir": Field("int8", doc="0 left and up, 1 right and up, 2 right and down, 3 left and down"),
            "pos": Field("int8", doc="column of the paddle"),
            "bricks": Field("uint32", doc="bit 10 * (row - 1) + column for each brick of rows 1 to 3"),
            "strike": Field("bool", doc="whether the ball is in the cell of a brick, broken or not"),
        }

    def render(self, cfg: MinAtarConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        bricks = [k for k in range(30) if int(state["bricks"]) >> k & 1]
        self.screen(state, canvas, "#151b2e", f"{len(bricks)} bricks")
        canvas.rect(0, 0, 10, 10, fill="#1d2540")
        for k in range(1, 10):
            canvas.line(k, 0, k, 10, colour="#252e4d", width=0.7)
            canvas.line(0, k, 10, k, colour="#252e4d", width=0.7)
        for brick in bricks:
            row, column = brick // 10 + 1, brick % 10
            canvas.rect(column + 0.04, row + 0.12, column + 0.96, row + 0.88, fill=COLOURS[row - 1], radius=0.12)
            canvas.rect(column + 0.12, row + 0.19, column + 0.88, row + 0.31, fill="#ffffff50", radius=0.06)
        x, y = int(state["ball_x"]) + 0.5, int(state["ball_y"]) + 0.5
        last = (int(state["last_x"]) + 0.5, int(state["last_y"]) + 0.5)
        if last != (x, y):
            canvas.trail([last, (x, y)], colour=fade("white", 0.5), width=5, tail=0.2)
            canvas.circle(*last, 0.14, fill=fade("white", 0.3))
        canvas.circle(x, y, 0.27, fill="white")
        pos = int(state["pos"])
        canvas.rect(pos + 0.02, 9.3, pos + 0.98, 9.72, fill="blue", radius=0.2)
        canvas.rect(pos + 0.14, 9.36, pos + 0.86, 9.46, fill="#ffffff70", radius=0.05)
