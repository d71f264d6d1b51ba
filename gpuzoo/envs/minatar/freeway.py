"""Freeway of MinAtar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from gpuzoo.core.definition import Field
from gpuzoo.envs.minatar.suite import MinAtar, MinAtarConfig
from gpuzoo.render import Canvas, fade

COLOURS = ("red", "orange", "purple", "blue", "teal")  # of the cars, from the fastest to the slowest


class Freeway(MinAtar):
    """A chicken crosses a road with eight lanes of cars.

    The game is played on 10 rows (0 is the top) and 10 columns. The chicken stays in column 4 and begins in row 9.
    There is one car in each of the rows 1 to 8. A car of speed s, from 1 (fast) to 5 (slow), moves by one column to the
    right or to the left and then waits for s steps; at the edge it comes back on the other side. Young and Tian,
    "MinAtar" (2019).

    **Start.** All cars are in column 0, with a speed and a direction drawn for each, all ten pairs with the same
    probability. Each waits for as many steps as its speed is. The chicken may move after 3 steps. The button of the
    step before counts as no-op.

    **Actions.** `Discrete(3)`: no-op, up, down. With `use_minimal_action_set=False`, `Discrete(6)`: no-op, left, up,
    right, down, fire, of which left, right and fire do nothing. With probability `sticky_action_prob` the action is
    ignored and the button that counted in the step before counts again. An action out of range is a no-op.

    **Rules.** The chicken moves if `move_timer` is 0, which is then set to 3. In row 0 it has crossed the road: it goes
    back to row 9, and all cars get new speeds and directions and wait for as many steps as their speed is. Then each
    car moves if its timer is 0, which is then set to its speed; otherwise the timer counts down. A car that is in the
    chicken's cell before or after its move sends the chicken back to row 9. Finally `move_timer` counts down to 0.

    **Observation.** `Box(0, 1, (10, 10, 7), int8)`: row, column and channel: chicken, car, and one channel for each
    speed from 1 to 5, which shows the cell behind a car of that speed (at the edge, that on the other side).

    **Reward.** 1 for each crossing.

    **End.** After 2,501 steps, by termination: there is no other time limit, as in the original.

    In the original the first action of an episode may be replaced by the last one of the episode before, a car's speed
    is 0 with a probability of about 10^-16, which is an error there, and observations are bool.
    """

    id = "Freeway-MinAtar-v1"
    Config = MinAtarConfig
    reference = "minatar 1.0.15 freeway"
    aliases = (r"minatar-freeway", r"MinAtar/Freeway-v1")
    similar = (r"(ALE/)?Freeway(NoFrameskip)?-v\d",)
    title = "Freeway"
    channels = ("chicken", "car", "speed1", "speed2", "speed3", "speed4", "speed5")
    buttons = ("noop", "up", "down")

    def fields(self, cfg: MinAtarConfig) -> dict[str, Field]:
        car = "the car in row k + 1"
        return super().fields(cfg) | {
            "pos": Field("int8", doc="row of the chicken"),
            "move_timer": Field("int8", doc="steps until the chicken may move"),
            "car_x": Field("uint32", doc=f"hexadecimal digit k: column of {car}"),
            "car_timer": Field("uint32", doc=f"digit k: steps until {car} moves"),
            "car_speed": Field("uint32", doc=f"digit k: steps that {car} waits after a move, 1 to 5"),
            "rightward": Field("uint32", doc=f"digit k: 1 if {car} moves to the right, or 0"),
        }

    def render(self, cfg: MinAtarConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        self.screen(state, canvas, "#7da56f")
        canvas.rect(0, 0, 10, 10, fill="grass")
        canvas.rect(0, 1, 10, 9, fill="slate")
        for row in range(2, 9):
            for column in range(10):
                canvas.line(column + 0.25, row, column + 0.75, row, colour="#ffffff60", width=1.5)
        for row in (1, 9):
            canvas.line(0, row, 10, row, colour="white", width=2)
        for row in range(1, 9):
            column, speed, rightward = (
                int(state[name]) >> 4 * (row - 1) & 15 for name in ("car_x", "car_speed", "rightward")
            )
            x, y, way = column + 0.5, row + 0.5, 1 if rightward else -1
            for k in range(max(0, 6 - speed)):
                end = x - way * (0.5 + 0.11 * (k + 1))
                high = y + 0.24 * (k % 3 - 1)
                canvas.line(x - way * 0.46, high, end, high, colour="#ffffff55", width=1.5)
            colour = COLOURS[min(max(speed, 1), 5) - 1]
            canvas.rect(x - 0.46, y - 0.3, x + 0.46, y + 0.3, fill=colour, radius=0.14)
            canvas.rect(x - 0.24, y - 0.23, x + 0.2, y + 0.23, fill=fade("white", 0.35), radius=0.08)
            for side in (-1, 1):
                canvas.circle(x + way * 0.4, y + side * 0.19, 0.06, fill="yellow")
        x, y = 4.5, int(state["pos"]) + 0.5
        canvas.polygon([(x - 0.34, y + 0.02), (x - 0.48, y - 0.22), (x - 0.18, y - 0.12)], fill="white")
        canvas.circle(x, y + 0.08, 0.32, fill="white", outline="line", width=1)
        canvas.circle(x + 0.16, y - 0.22, 0.19, fill="white")
        canvas.polygon([(x + 0.32, y - 0.27), (x + 0.5, y - 0.19), (x + 0.32, y - 0.12)], fill="orange")
        canvas.circle(x + 0.2, y - 0.26, 0.045, fill="ink")
        canvas.circle(x + 0.12, y - 0.42, 0.08, fill="red")
        for foot in (-0.1, 0.12):
            canvas.line(x + foot, y + 0.38, x + foot, y + 0.48, colour="orange", width=2)
