"""What MuJoCo's robots have in common: a model, its state, and its picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import EnvDef, Field
from gpuzoo.envs.mujoco.drawing import draw
from gpuzoo.physics.generate import shipped
from gpuzoo.physics.model import Model, load
from gpuzoo.render import Canvas


class Robot(EnvDef):
    """A game about one model. Its rules include ``mujoco.cuh``."""

    packed = True
    exempt: ClassVar[Mapping[str, str]] = {
        "half_occupancy": "one thread steps a whole robot, in as many registers as it can have; docs/physics.md",
        "no_spills": "a step of the physics has more values than a thread of a GPU has registers; docs/physics.md",
    }
    #: the model's file, in ``gpuzoo/physics/models``
    model: ClassVar[str]
    #: quantities beside the state that rules read; see `gpuzoo.physics.generate.generate`
    watch: ClassVar[tuple[str, ...]] = ()
    #: whether rules call ``physics_look``
    looks: ClassVar[bool] = False
    #: numbers that each step leaves for whoever wants them, name -> one line of documentation
    parts: ClassVar[Mapping[str, str]] = {}
    #: what Gymnasium's env has in its infos: of the state, and of the last step
    told: ClassVar[tuple[str, ...]] = ()
    told_of_step: ClassVar[tuple[str, ...]] = ()

    #: metres from top to bottom of a picture
    view_height: ClassVar[float] = 2.0
    #: whether pictures are from above
    view_above: ClassVar[bool] = False

    @classmethod
    def constants_of_model(cls) -> Model:
        """The model."""
        return load(cls.model)

    def generated(self, cfg: Any) -> str:
        return shipped(self.model, self.watch, self.looks)

    def action_space(self, cfg: Any, group: str) -> spaces.Box:
        low, high = self.constants_of_model().actuator_ctrlrange.astype(np.float32).T
        return spaces.Box(low, high, dtype=np.float32)

    def fields(self, cfg: Any) -> dict[str, Field]:
        m = self.constants_of_model()
        return {
            "qpos": Field("float32", (m.nq,), "positions of the joints"),
            "qvel": Field("float32", (m.nv,), "velocities of the joints"),
            "qacc": Field("float32", (m.nv,), "accelerations that the solver starts from (`qacc_warmstart`)"),
            "diverged": Field("bool", doc="the last step went out of all bounds and was undone"),
            **{name: Field("float32", doc=doc) for name, doc in self.parts.items()},
        }

    def infos(self, cfg: Any, state: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.number(name, state) for name in self.told}

    def step_infos(self, cfg: Any, state: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.number(name, state) for name in self.told_of_step}

    def number(self, name: str, state: Mapping[str, Any]) -> Any:
        """One of the infos, by Gymnasium's name."""
        if name == "x_position":
            return state["qpos"][:, 0]
        if name == "y_position":
            return state["qpos"][:, 1]
        if name == "distance_from_origin":
            return (state["qpos"][:, 0] ** 2 + state["qpos"][:, 1] ** 2) ** 0.5
        if name == "z_distance_from_origin":
            m = self.constants_of_model()
            height = 2 if m.nq > m.nv else 1  # of a body that is free in space, or in a plane
            return state["qpos"][:, height] - float(m.qpos0[height])
        return state[name]

    def tables(self, cfg: Any) -> dict[str, NDArray[Any]]:
        return {"qpos0": self.constants_of_model().qpos0.astype(np.float32)}

    def aspect(self, cfg: Any) -> float:
        return 1.6

    def render(self, cfg: Any, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        draw(self.constants_of_model(), state, canvas, self.view_height, self.view_above)
