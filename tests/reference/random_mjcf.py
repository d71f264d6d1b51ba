"""Models drawn at random, in MJCF, of all that the generator supports: what is allowed one by one is here together.

Left out are contacts of capsules and cylinders, which MuJoCo searches (``nearest.py``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

#: bodies below one that stands on nothing
DEEPEST = 2


class _Drawn:
    """A model while it is written."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.joints: list[str] = []  # those that actuators may move

    def any(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def numbers(self, *bounds: float) -> str:
        """One between each bound and its neighbour: low, high, low, high, ..."""
        return " ".join(f"{self.rng.uniform(a, b):.3f}" for a, b in zip(bounds[::2], bounds[1::2], strict=True))

    def way(self, size: float) -> str:
        return self.numbers(*[-size, size] * 3)

    def joint(self) -> str:
        name, kind = f"j{len(self.joints)}", self.any("hinge", "slide")
        self.joints.append(name)
        turns = kind == "hinge"
        out = f"<joint name='{name}' type='{kind}' axis='{self.way(1)}' pos='{self.way(0.1)}'"
        out += f" damping='{self.numbers(0, 0.5)}' armature='{self.numbers(0, 0.02)}'"
        out += f" stiffness='{self.any(0, 2)}' springref='{self.numbers(-0.3, 0.3)}' frictionloss='{self.any(0, 0.2)}'"
        out += f" ref='{self.numbers(*((-10, 10) if turns else (-0.3, 0.3)))}'"
        limit = f" range='{'-40 50' if turns else '-.3 .4'}' margin='{self.any(0, 0.01)}'"
        return out + self.any("", limit) + "/>"

    def geom(self, deep: bool) -> str:
        shape = self.any("sphere", "capsule") if deep else self.any("sphere", "capsule", "box", "cylinder")
        out = f"<geom type='{shape}' size='{self.numbers(0.05, 0.12, 0.08, 0.2, 0.05, 0.15)}'"
        out += f" pos='{self.way(0.15)}' euler='{self.way(90)}' density='{self.numbers(300, 2000)}'"
        out += f" condim='{self.any(1, 3, 4, 6)}' friction='{self.numbers(0.2, 1, 0.001, 0.05, 0.001, 0.02)}'"
        out += f" margin='{self.any(0, 0.02)}' priority='{self.any(0, 0, 1)}'"
        out += f" solref='{self.any('0.02 1', '0.01 .8', '-500 -20')}'"
        out += f" solimp='{self.any('.9 .95 .001', '.8 .9 .01 .4 2')}'"
        # Boxes and cylinders touch the ground only.
        return out + (" contype='0' conaffinity='2'/>" if shape in ("box", "cylinder") else "/>")

    def body(self, depth: int = 0) -> str:
        kind = self.any("ball", 1, 2, "free" if depth == 0 else 1)
        ball = f"<joint type='ball' damping='{self.numbers(0, 0.5)}' armature='{self.numbers(0, 0.01)}'/>"
        held = {"ball": ball, "free": "<freejoint/>"}.get(kind) or "".join(self.joint() for _ in range(kind))
        out = f"<body pos='{self.way(0.3)}' euler='{self.way(60)}'>{held}{self.geom(depth > 0)}{self.geom(True)}"
        if depth < DEEPEST:
            out += "".join(self.body(depth + 1) for _ in range(self.rng.integers(0, 3 - depth)))
        return out + "</body>"

    def actuator(self, joint: str) -> str:
        kind, more = self.any(
            ("motor", f"gear='{self.numbers(0.5, 3)}'"),
            ("position", f"kp='{self.numbers(1, 9)}' kv='{self.numbers(0, 1)}' forcerange='-3 3'"),
            ("velocity", f"kv='{self.numbers(0.1, 1)}'"),
            ("general", "gainprm='2' biastype='affine' biasprm='.1 -1 -.2'"),
        )
        return f"<{kind} joint='{joint}' ctrlrange='-1 1' {more}/>"


def random_mjcf(seed: int) -> str:
    """A model of one or two trees above a floor that leans."""
    drawn = _Drawn(np.random.default_rng(seed))
    bodies = "".join(drawn.body() for _ in range(drawn.any(1, 2)))
    actuators = "".join(drawn.actuator(joint) for joint in drawn.joints if drawn.any(True, False))
    fluid = drawn.any("", "density='500' viscosity='.2' wind='.3 .1 0'")
    integrator, impratio = drawn.any("Euler", "RK4", "implicitfast"), drawn.any(1, 3)
    floor = f"<geom type='plane' size='5 5 1' pos='0 0 -.3' euler='{drawn.way(5)}' conaffinity='3'/>"
    return f"""<mujoco>
      <option timestep='.005' integrator='{integrator}' impratio='{impratio}' {fluid}/>
      <worldbody>{floor}{bodies}</worldbody><actuator>{actuators}</actuator></mujoco>"""
