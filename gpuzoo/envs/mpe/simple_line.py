"""Simple Line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from numpy.typing import NDArray

from gpuzoo.envs.mpe.world import AssignmentWorld
from gpuzoo.render import Canvas


class SimpleLine(AssignmentWorld):
    """Agents line up between two landmarks.

    N targets lie evenly on the line from the first landmark to the second, both ends included; one
    agent alone has the first. After every step the targets are given to the agents so that the sum of
    the distances is least.

    Agents are discs of radius 0.03 that push each other away when they touch; they begin at rest,
    uniformly in [-1, 1]². The landmarks are points: the first begins in [-0.25, 0.25]², the second
    1.25 away from it in a random direction, which is turned by 5 degrees as long as the second would
    lie outside of [-1, 1]². Nothing bounds the plane. A step lasts 0.1 s, a motor's full force
    accelerates by 5, and a quarter of the velocity is lost per step.

    **Agents.** `agent_0` ... `agent_<N-1>`.

    **Actions.** `Discrete(5)`: 0 nothing, 1 left (-x), 2 right (+x), 3 down (-y), 4 up (+y), at
    full force. With `continuous_actions`, `Box(0, 1, (5,))`: the strengths of the same five, of
    which the first does nothing and opposite ones are subtracted. An action out of range counts as
    0; a component of a Box is clipped.

    **Observation.** `Box(8)`, float32: own velocity (2), own position (2), the landmarks' positions
    relative to the agent's (2 each). Agents do not see each other.

    **Reward.** All get minus the mean, over the agents, of the distance to the agent's target, which counts at most 2.

    **End.** Time limit: 25 steps. With `terminate_on_success`, also when every agent is closer than
    0.05 to its target, unless the time is up in the same step.
    """

    id = "SimpleLine-v0"
    observes_apart = True
    reference = "mpe2 simple_line_v1"
    interaction = "cooperative"
    links: ClassVar[Mapping[str, str]] = {"MPE2": "https://mpe2.farama.org/environments/simple_line/"}
    title = "Simple Line"
    radius = 0.03
    landmarks = 2

    def backdrop(self, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        (x0, y0), (x1, y1) = state["landmark"].astype(float).tolist()
        canvas.line(x0, y0, x1, y1, colour="line", width=3.0)
