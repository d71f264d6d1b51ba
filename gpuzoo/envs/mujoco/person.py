"""What Humanoid and HumanoidStandup have in common: a body, what it feels, and what of it is observed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.mujoco.robot import Robot, RobotConfig


@dataclasses.dataclass(frozen=True)
class PersonConfig(RobotConfig):
    """Options of both."""

    frame_skip: int = param(5, low=1, doc="steps of time, of 0.003 seconds, for each step of the env")
    ctrl_cost_weight: float = param(0.1, doc="weight of the actions' cost")
    reset_noise_scale: float = param(1e-2, low=0.0, doc="noise of the first state")
    exclude_current_positions_from_observation: bool = param(True, doc="whether x and y are not observed")
    include_cinert_in_observation: bool = param(True, doc="whether inertias are observed")
    include_cvel_in_observation: bool = param(True, doc="whether velocities of bodies are observed")
    include_qfrc_actuator_in_observation: bool = param(True, doc="whether forces of actuators are observed")
    include_cfrc_ext_in_observation: bool = param(True, doc="whether contact forces are observed")


class Person(Robot):
    """A robot with two legs and two arms."""

    exempt: ClassVar = {
        **Robot.exempt,
        "no_spills": "Its contacts and a Jacobian of each pair of limbs are more than shared memory holds.",
    }
    evaluates = True
    needs = (7, 6, 1)
    view_height = 2.4
    render_fps = 67

    def watch_of(self, cfg: Any) -> tuple[str, ...]:
        return (*self.watch, *(("ten_length", "ten_velocity") if self.model_of(cfg).ntendon else ()))

    def generated(self, cfg: Any) -> str:
        lines = [
            f"  e.tendon_{what}[{i}] = select(e.diverged, e.tendon_{what}[{i}], Pack(s.ten_{what}[{i}]));"
            for what in ("length", "velocity")
            for i in range(self.model_of(cfg).ntendon)
        ]
        body = "\n".join(["  (void)e, (void)s;", *lines])
        head = "template <class E> GZ void feel_tendons(const E &e, const Physics &s)"
        return super().generated(cfg) + f"{head} {{\n{body}\n}}\n"

    def number(self, cfg: Any, name: str, state: Mapping[str, Any]) -> Any:
        if name.startswith("tendon_") and not self.model_of(cfg).ntendon:
            return state["qpos"][:, :0]
        return super().number(cfg, name, state)

    def fields(self, cfg: Any) -> dict[str, Field]:
        m = self.model_of(cfg)
        bodies = m.nbody - 1
        tendons = {
            "tendon_length": Field("float32", (m.ntendon,), "lengths of the tendons"),
            "tendon_velocity": Field("float32", (m.ntendon,), "their velocities"),
        }
        return {
            **super().fields(cfg),
            **(tendons if m.ntendon else {}),
            "cinert": Field("float32", (bodies, 10), "inertias of the bodies, about the centre of mass"),
            "cvel": Field("float32", (bodies, 6), "velocities of the bodies, there"),
            "qfrc_actuator": Field("float32", (m.nv - 6,), "forces of the actuators"),
            "cfrc_ext": Field("float32", (bodies, 6), "contact forces on the bodies"),
        }

    def observation_space(self, cfg: Any, group: str) -> spaces.Box:
        m = self.model_of(cfg)
        size = m.nq + m.nv - 2 * cfg.exclude_current_positions_from_observation
        size += (m.nbody - 1) * 10 * cfg.include_cinert_in_observation
        size += (m.nbody - 1) * 6 * (cfg.include_cvel_in_observation + cfg.include_cfrc_ext_in_observation)
        size += (m.nv - 6) * cfg.include_qfrc_actuator_in_observation
        return spaces.Box(-np.inf, np.inf, (size,), np.float32)

    def observation_names(self, cfg: Any, group: str) -> dict[str, int]:
        parts = [
            (cfg.include_cinert_in_observation, "inertia and mass (cinert)", 10),
            (cfg.include_cvel_in_observation, "angular velocity and velocity (cvel)", 6),
        ]
        names = self.state_names(cfg, 2 * cfg.exclude_current_positions_from_observation)
        for chosen, what, count in parts:
            names |= {f"{what} of {body}": count for body in self.bodies(cfg)} if chosen else {}
        if cfg.include_qfrc_actuator_in_observation:
            names["torques of the actuators (qfrc_actuator)"] = self.model_of(cfg).nv - 6
        if cfg.include_cfrc_ext_in_observation:
            names |= {f"contact torque and force (cfrc_ext) on {body}": 6 for body in self.bodies(cfg)}
        return names

    def constants(self, cfg: Any) -> dict[str, int]:
        return {**super().constants(cfg), "BODIES": self.model_of(cfg).nbody}
