"""Simple Formation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from numpy.typing import NDArray

from gpuzoo.envs.mpe.world import AssignmentWorld
from gpuzoo.render import Canvas


class SimpleFormation(AssignmentWorld):
    """Agents form a circle around a landmark.

    After every step N targets are laid evenly on the circle of radius 0.5 around the landmark,
    beginning at the least angle, in [0, 2 π), under which the landmark sees an agent. The targets are
    given to the agents so that the sum of the distances is least.

    Agents are discs of radius 0.05 that push each other away when they touch; they begin at rest,
    uniformly in [-1, 1]², and the landmark, a point, in [-0.5, 0.5]². Nothing bounds the plane. A step
    lasts 0.1 s, a motor's full force accelerates by 5, and a quarter of the velocity is lost per
    step.

    **Agents.** `agent_0` ... `agent_<N-1>`.

    **Actions.** `Discrete(5)`: 0 nothing, 1 left (-x), 2 right (+x), 3 down (-y), 4 up (+y), at
    full force. With `continuous_actions`, `Box(0, 1, (5,))`: the strengths of the same five, of
    which the first does nothing and opposite ones are subtracted. An action out of range counts as
    0; a component of a Box is clipped.

    **Observation.** `Box(6)`, float32: own velocity (2), own position (2), the landmark's position
    relative to the agent's (2). Agents do not see each other.

    **Reward.** All get minus the mean, over the agents, of the distance to the agent's target, which counts at most 2.

    **End.** Time limit: 25 steps. With `terminate_on_success`, also when every agent is closer than
    0.05 to its target, unless the time is up in the same step.
    """

    id = "SimpleFormation-v0"
    reference = "mpe2 simple_formation_v1"
    interaction = "cooperative"
    links: ClassVar[Mapping[str, str]] = {"MPE2": "https://mpe2.farama.org/environments/simple_formation/"}
    title = "Simple Formation"
    radius = 0.05
    landmarks = 1

    def backdrop(self, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        x, y = (float(v) for v in state["landmark"][0])
        canvas.circle(x, y, 0.5, outline="line", width=3.0)
