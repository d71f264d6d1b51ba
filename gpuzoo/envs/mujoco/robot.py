"""What MuJoCo's robots have in common: a model, its state, and its picture."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.core.layout import flat_size
from gpuzoo.core.suggestions import unknown
from gpuzoo.core.values import check_ranges
from gpuzoo.envs.mujoco import renderer
from gpuzoo.envs.mujoco.drawing import draw
from gpuzoo.envs.mujoco.options import camera_of, check_camera, parameters_of
from gpuzoo.physics.generate import text_of
from gpuzoo.physics.mjcf import found
from gpuzoo.physics.model import BALL, FACTORS, FREE, Model, load, travels
from gpuzoo.render import Canvas

#: who draws
PICTURES = ("auto", "mujoco", "canvas")


@dataclasses.dataclass(frozen=True)
class ModelConfig(Config):
    """Options of any model: how it is drawn, and which of its constants may differ from env to env."""

    picture: str = param(
        "auto", doc="who draws: `mujoco`, its own renderer; `canvas`, without it; `auto`: mujoco where it can"
    )
    camera: str = param("", doc="options of Gymnasium's renderer, as JSON; each may be given by itself")
    randomize: str = param(
        "", doc="what may differ from env to env: some of gravity, mass, friction, damping, gear, size"
    )
    gravity_scale: float = param(1.0, doc="factor of gravity, if `randomize` has it")
    mass_scale: float = param(1.0, low=0.01, doc="factor of all masses and inertias, if `randomize` has it")
    friction_scale: float = param(1.0, low=0.01, doc="factor of all friction of contacts, if `randomize` has it")
    damping_scale: float = param(1.0, low=0.0, doc="factor of the joints' damping, if `randomize` has it")
    gear_scale: float = param(1.0, doc="factor of the actuators' gear, if `randomize` has it")
    size_scale: float = param(1.0, low=0.01, doc="factor of what touches, not of masses, if `randomize` has it")


@dataclasses.dataclass(frozen=True)
class RobotConfig(ModelConfig):
    """Options of all of Gymnasium's robots."""

    xml_file: str = param("", doc="another model, an MJCF file as Gymnasium finds it; empty: the one that is shipped")


def check_picture(owner: str, cfg: Any) -> None:
    """Checks who draws, and how.

    Raises:
        ValueError: there is no such choice.
    """
    if cfg.picture not in PICTURES:
        raise ValueError(unknown(f"{owner}: picture is not", cfg.picture, PICTURES))
    check_camera(owner, cfg.camera)


def check_actuators(m: Model) -> None:
    """Checks that a model can be moved by actions.

    Raises:
        ValueError: it has no actuators, or one without bounds.
    """
    for i, limited in enumerate(m.actuator_ctrllimited):
        if not limited:
            raise ValueError(
                f"actuator {m.called('actuator', i)} has no ctrlrange, so actions have no bounds: give it one."
            )
    if not m.nu:
        raise ValueError("the model has no actuators, so there are no actions: add one.")


def varied(cfg: Any) -> tuple[str, ...]:
    """What a configuration randomizes."""
    chosen = {*cfg.randomize.replace(",", " ").split()}
    return tuple(name for name in FACTORS if name in chosen)


def check_varied(owner: str, cfg: Any) -> None:
    """Checks that factors other than 1 are of what is randomized.

    Raises:
        ValueError: they are not, or there is no such constant.
    """
    for name in cfg.randomize.replace(",", " ").split():
        if name not in FACTORS:
            raise ValueError(unknown(f"{owner}: randomize has no constant", name, FACTORS))
    for name in FACTORS:
        if name not in varied(cfg) and getattr(cfg, f"{name}_scale") != 1.0:
            raise ValueError(f"{owner}: {name} is compiled into the kernel: make the env with randomize={name!r}.")


def vary_text(vary: tuple[str, ...]) -> str:
    """Code that gives the model's step what differs from env to env."""
    lines = [f"  s.{name} = vec(Pack(e.cfg.{name}_scale));" for name in vary] + ["  physics_derive(s);"] * bool(vary)
    body = "\n".join(["  (void)s, (void)e;", *lines])
    return f"template <class E> GZ void physics_vary(Physics &s, const E &e) {{\n{body}\n}}\n"


class Robot(EnvDef):
    """A game about one model. Its rules include ``mujoco.cuh``."""

    packed = True
    links: ClassVar[Mapping[str, str]] = {"Todorov et al. 2012": "https://doi.org/10.1109/IROS.2012.6386109"}
    exempt: ClassVar[Mapping[str, str]] = {
        "half_occupancy": "One thread steps a whole robot; with half of its registers it would spill.",
    }
    #: the model's file, in ``gpuzoo/physics/models``
    model: ClassVar[str]
    #: quantities beside the state that rules read; see `gpuzoo.physics.generate.generate`
    watch: ClassVar[tuple[str, ...]] = ()
    #: whether rules call ``physics_look``
    looks: ClassVar[bool] = False
    #: whether rules call ``physics_forward``
    evaluates: ClassVar[bool] = False
    #: coordinates along which the robot travels, the first of its positions
    ways: ClassVar[int] = 0
    #: how many positions, velocities and controls the rules need of another model: at least, or exactly
    needs: ClassVar[tuple[int, int, int]] = (3, 3, 1)
    exactly: ClassVar[bool] = False
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
    def parameters_of(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        return parameters_of(cls.Config, options)

    @classmethod
    def shipped(cls) -> Model:
        """The model that the game is about, unless there is an ``xml_file``."""
        return load(cls.model)

    def xml(self, cfg: Any) -> Path | None:
        """The file of another model, or None."""
        own = self.shipped().source.split()[0]
        return None if cfg.xml_file in ("", own) else renderer.gymnasiums_path(cfg.xml_file)

    def model_of(self, cfg: Any) -> Model:
        """The model."""
        path = self.xml(cfg)
        return self.shipped() if path is None else found(path)

    def watch_of(self, cfg: Any) -> tuple[str, ...]:
        """What rules read beside the state."""
        return self.watch

    def generated(self, cfg: Any) -> str:
        text = text_of(self.model_of(cfg), self.watch_of(cfg), self.looks, varied(cfg), self.evaluates)
        return text + vary_text(varied(cfg))

    def constants(self, cfg: Any) -> dict[str, int]:
        return {"SAME_EVERYWHERE": int(all(travels(self.model_of(cfg), way) for way in range(self.ways)))}

    def check(self, cfg: Any) -> None:
        check_ranges(self, cfg)
        check_varied(self.id, cfg)
        check_picture(self.id, cfg)
        if (path := self.xml(cfg)) is not None:
            self.check_model(found(path, anew=True), path)

    def check_model(self, m: Model, path: Path) -> None:
        """Checks another model.

        Raises:
            ValueError: the rules cannot do with it.
        """
        check_actuators(m)
        sizes = (m.nq, m.nv, m.nu)
        fits = sizes == self.needs if self.exactly else all(a >= b for a, b in zip(sizes, self.needs, strict=True))
        if not fits:
            want = f"{'' if self.exactly else 'at least '}{self.needs}"
            raise ValueError(f"{self.id}: xml_file needs (nq, nv, nu) = {want}, but {path} has {sizes}.")

    def action_space(self, cfg: Any, group: str) -> spaces.Box:
        low, high = self.model_of(cfg).actuator_ctrlrange.astype(np.float32).T
        return spaces.Box(low, high, dtype=np.float32)

    def observation_names(self, cfg: Any, group: str) -> dict[str, int]:
        m = self.model_of(cfg)
        return self.state_names(cfg, m.nq + m.nv - flat_size(self.observation_space(cfg, group)))

    def state_names(self, cfg: Any, skipped: int = 0) -> dict[str, int]:
        """Names of the numbers in ``qpos``, but for the first ones, and in ``qvel``."""
        m = self.model_of(cfg)
        positions: list[str] = []
        velocities: list[str] = []
        for joint, kind in zip(m.jnt_names, m.jnt_type, strict=True):
            place, turn = ("x", "y", "z"), ("w", "x", "y", "z")
            free = [f"position {k} of {joint}" for k in place], [f"velocity {k} of {joint}" for k in place]
            ball = [f"quaternion {k} of {joint}" for k in turn], [f"angular velocity {k} of {joint}" for k in place]
            one = [f"position of {joint}"], [f"velocity of {joint}"]
            for parts in {FREE: (free, ball), BALL: (ball,)}.get(int(kind), (one,)):
                positions += parts[0]
                velocities += parts[1]
        return dict.fromkeys([*positions[skipped:], *velocities], 1)

    def bodies(self, cfg: Any) -> list[str]:
        """Names of the bodies but for the world; one without a name has the name of the one that carries it."""
        m = self.model_of(cfg)
        names, parents = m.body_names, m.body_parentid
        return [name or f"the end of {names[parents[k]]}" for k, name in enumerate(names) if k]

    def action_names(self, cfg: Any, group: str) -> dict[str, int]:
        m = self.model_of(cfg)
        joints = [m.jnt_names[int(np.ravel(ids)[0])] for ids in m.actuator_trnid]
        return dict.fromkeys((f"control of {joint}" for joint in joints), 1)

    def fields(self, cfg: Any) -> dict[str, Field]:
        m = self.model_of(cfg)
        return {
            "qpos": Field("float32", (m.nq,), "positions of the joints"),
            "qvel": Field("float32", (m.nv,), "velocities of the joints"),
            "qacc": Field("float32", (m.nv,), "accelerations that the solver starts from (`qacc_warmstart`)"),
            "diverged": Field("bool", doc="the last step went out of all bounds and was undone"),
            **{name: Field("float32", doc=doc) for name, doc in self.parts.items()},
        }

    def infos(self, cfg: Any, state: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.number(cfg, name, state) for name in self.told}

    def step_infos(self, cfg: Any, state: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.number(cfg, name, state) for name in self.told_of_step}

    def number(self, cfg: Any, name: str, state: Mapping[str, Any]) -> Any:
        """One of the infos, by Gymnasium's name."""
        if name == "x_position":
            return state["qpos"][:, 0]
        if name == "y_position":
            return state["qpos"][:, 1]
        if name == "distance_from_origin":
            return (state["qpos"][:, 0] ** 2 + state["qpos"][:, 1] ** 2) ** 0.5
        if name == "z_distance_from_origin":
            m = self.model_of(cfg)
            height = 2 if m.nq > m.nv else 1  # of a body that is free in space, or in a plane
            return state["qpos"][:, height] - float(m.qpos0[height])
        return state[name]

    def tables(self, cfg: Any) -> dict[str, NDArray[Any]]:
        return {"qpos0": self.model_of(cfg).qpos0.astype(np.float32)}

    def aspect(self, cfg: Any) -> float:
        size = camera_of(cfg.camera).size
        return size[0] / size[1] if size else 1.6

    def side(self, cfg: Any) -> int:
        size = camera_of(cfg.camera).size
        return max(size) if size else super().side(cfg)

    def mjcf(self, cfg: Any) -> tuple[str | Path, str | None] | None:
        """The model's MJCF, or a file of it, and whose camera its pictures have; None: there is only our canvas."""
        return self.xml(cfg) or renderer.gymnasiums_path(self.shipped().source.split()[0]), self.id

    def render(self, cfg: Any, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        if (pixels := self._rendered(cfg, state["qpos"], canvas)) is not None:
            canvas.view(0.0, 0.0, canvas.width_px, canvas.height_px, y_down=True)
            canvas.image(pixels, 0.0, 0.0, canvas.width_px, canvas.height_px)
            return
        draw(self.model_of(cfg), state, canvas, self.view_height, self.view_above)

    def _rendered(self, cfg: Any, qpos: NDArray[Any], canvas: Canvas) -> NDArray[np.uint8] | None:
        """The picture by MuJoCo's renderer, or None where our canvas shall draw."""
        if cfg.picture == "canvas" or (cfg.picture == "auto" and (type(self) in _UNABLE or not renderer.available())):
            return None
        try:
            if (model := self.mjcf(cfg)) is None:
                raise RuntimeError(f"{self.id} has constants of a model, but no MJCF: choose picture='canvas'.")
            return renderer.picture(*model, qpos, canvas.width_px, canvas.height_px, camera_of(cfg.camera))
        except (ImportError, RuntimeError):
            if cfg.picture == "mujoco":
                raise
            _UNABLE.add(type(self))
            return None


#: robots that MuJoCo's renderer could not draw here
_UNABLE: set[type[Robot]] = set()
