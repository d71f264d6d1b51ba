"""What MuJoCo's robots have in common: a model, its state, and its picture."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, flat_size, param, unknown
from gpuzoo.envs.mujoco import renderer
from gpuzoo.envs.mujoco.drawing import draw
from gpuzoo.physics.generate import shipped
from gpuzoo.physics.model import BALL, FACTORS, FREE, Model, load
from gpuzoo.render import Canvas

#: who draws
PICTURES = ("auto", "mujoco", "canvas")


def check_ranges(env: EnvDef, cfg: Any) -> None:
    """Checks the ranges among the parameters, which are two numbers each: ``NAME_low`` and ``NAME_high``.

    Raises:
        ValueError: the lower one is above the other.
    """
    for name in env.Config.__dataclass_fields__:
        if name.endswith("_low"):
            low, high = getattr(cfg, name), getattr(cfg, other := f"{name.removesuffix('_low')}_high")
            if low > high:
                raise ValueError(f"{env.id}: {name} must not be above {other}: {low} > {high}.")


@dataclasses.dataclass(frozen=True)
class RobotConfig(Config):
    """Options that all robots have: constants of the model that may differ from env to env."""

    picture: str = param(
        "auto", doc="who draws: `mujoco`, its own renderer; `canvas`, without it; `auto`: mujoco where it can"
    )
    randomize: str = param("", doc="what may differ from env to env: some of gravity, mass, friction, damping, gear")
    gravity_scale: float = param(1.0, doc="factor of gravity, if `randomize` has it")
    mass_scale: float = param(1.0, low=0.01, doc="factor of all masses and inertias, if `randomize` has it")
    friction_scale: float = param(1.0, low=0.01, doc="factor of all friction of contacts, if `randomize` has it")
    damping_scale: float = param(1.0, low=0.0, doc="factor of the joints' damping, if `randomize` has it")
    gear_scale: float = param(1.0, doc="factor of the actuators' gear, if `randomize` has it")


def check_picture(owner: str, cfg: Any) -> None:
    """Checks who draws.

    Raises:
        ValueError: there is no such choice.
    """
    if cfg.picture not in PICTURES:
        raise ValueError(unknown(f"{owner}: picture is not", cfg.picture, PICTURES))


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
        return shipped(self.model, self.watch, self.looks, varied(cfg)) + vary_text(varied(cfg))

    def check(self, cfg: Any) -> None:
        check_ranges(self, cfg)
        check_varied(self.id, cfg)
        check_picture(self.id, cfg)

    def action_space(self, cfg: Any, group: str) -> spaces.Box:
        low, high = self.constants_of_model().actuator_ctrlrange.astype(np.float32).T
        return spaces.Box(low, high, dtype=np.float32)

    def observation_names(self, cfg: Any, group: str) -> dict[str, int]:
        m = self.constants_of_model()
        return self.state_names(m.nq + m.nv - flat_size(self.observation_space(cfg, group)))

    def state_names(self, skipped: int = 0) -> dict[str, int]:
        """Names of the numbers in ``qpos``, but for the first ones, and in ``qvel``."""
        m = self.constants_of_model()
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

    def bodies(self) -> list[str]:
        """Names of the bodies but for the world; one without a name has the name of the one that carries it."""
        names = self.constants_of_model().body_names
        parents = self.constants_of_model().body_parentid
        return [name or f"the end of {names[parents[k]]}" for k, name in enumerate(names) if k]

    def action_names(self, cfg: Any, group: str) -> dict[str, int]:
        m = self.constants_of_model()
        joints = [m.jnt_names[int(np.ravel(ids)[0])] for ids in m.actuator_trnid]
        return dict.fromkeys((f"control of {joint}" for joint in joints), 1)

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

    def mjcf(self) -> tuple[str | Path, str | None] | None:
        """The model's MJCF, or a file of it, and whose camera its pictures have; None: there is only our canvas."""
        return renderer.mjcf_of(self.constants_of_model().source), self.id

    def render(self, cfg: Any, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        if (pixels := self._rendered(cfg, state["qpos"], canvas)) is not None:
            canvas.view(0.0, 0.0, canvas.width_px, canvas.height_px, y_down=True)
            canvas.image(pixels, 0.0, 0.0, canvas.width_px, canvas.height_px)
            return
        draw(self.constants_of_model(), state, canvas, self.view_height, self.view_above)

    def _rendered(self, cfg: Any, qpos: NDArray[Any], canvas: Canvas) -> NDArray[np.uint8] | None:
        """The picture by MuJoCo's renderer, or None where our canvas shall draw."""
        if cfg.picture == "canvas" or (cfg.picture == "auto" and (type(self) in _UNABLE or not renderer.available())):
            return None
        try:
            if (found := self.mjcf()) is None:
                raise RuntimeError(f"{self.id} has constants of a model, but no MJCF: choose picture='canvas'.")
            return renderer.picture(*found, qpos, canvas.width_px, canvas.height_px)
        except (ImportError, RuntimeError):
            if cfg.picture == "mujoco":
                raise
            _UNABLE.add(type(self))
            return None


#: robots that MuJoCo's renderer could not draw here
_UNABLE: set[type[Robot]] = set()
