"""Small models, in MJCF, of what the robots do not have."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

ELEMENTS = {
    # Boxes and cylinders on a plane that leans, and a sphere between them; friction between moving bodies.
    "shapes": """<mujoco><option timestep="0.005"/><worldbody>
        <geom type="plane" size="5 5 1" quat="0.98 0.1 0.05 0"/>
        <body pos="0 0 0.3"><freejoint/>
          <geom type="box" size=".1 .15 .2" euler="10 20 30" margin="0.01" contype="2" conaffinity="1"/></body>
        <body pos="0.3 0.1 0.3"><freejoint/>
          <geom type="cylinder" size=".1 .2" euler="10 20 30" condim="1" contype="2" conaffinity="1"/></body>
        <body pos="0.15 0.1 0.35"><freejoint/><geom type="sphere" size=".12" pos=".02 0 .01" friction="0.6"/></body>
    </worldbody></mujoco>""",
    # Spheres roll, capsules spin, also on each other.
    "rolling": """<mujoco><option timestep="0.005" impratio="2"/><worldbody>
        <geom type="plane" size="5 5 1" friction="0.7 0.02 0.003" condim="1"/>
        <body pos="0 0 0.15"><freejoint/>
          <geom type="sphere" size=".1" pos=".02 0 0" condim="6" friction="0.9 0.01 0.02"/></body>
        <body pos="0.2 0 0.15"><freejoint/>
          <geom type="capsule" size=".1 .2" euler="90 0 0" condim="4" friction="0.5 0.05 0.0001"/></body>
    </worldbody></mujoco>""",
    # The integrator implicitfast with servos and their limits, a body that is free, and friction in joints.
    "implicitfast": """<mujoco><option timestep="0.01" integrator="implicitfast"/>
      <default><geom conaffinity="0"/></default><worldbody>
        <geom type="plane" size="5 5 1" conaffinity="1"/>
        <body pos="0 0 0.3"><freejoint/><geom type="box" size=".1 .15 .2" pos=".05 .02 0" euler="10 20 30"/></body>
        <body pos="1 0 0.6"><joint type="slide" axis="0 0 1" frictionloss="30"/><geom type="capsule" size=".1 .2"/>
          <body pos="0 .1 .2">
            <joint name="b" axis="0 1 .2" damping="2" armature=".01" frictionloss="1.5" solreffriction="0.03 1"/>
            <geom type="capsule" fromto="0 0 0 .4 0 0" size=".04"/>
            <body pos=".4 0 0"><joint name="c" axis="1 0 .2" damping=".2" frictionloss="0.1" range="-60 60"/>
              <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".04"/></body></body></body>
      </worldbody><actuator>
        <position joint="b" kp="20" kv="3" gear="2" ctrlrange="-1 1" forcerange="-15 15"/>
        <velocity joint="c" kv="2" ctrlrange="-1 1"/>
    </actuator></mujoco>""",
    # The integrator implicitfast in a medium that moves: a chain, a slide, and bodies that are free.
    "fluid": """<mujoco>
      <option timestep="0.01" integrator="implicitfast" density="800" viscosity="0.5" wind=".5 -.3 .1"/>
      <default><geom contype="0" conaffinity="0"/></default><worldbody>
        <body pos="0 0 1"><freejoint/><geom type="box" size=".1 .15 .2" pos=".05 .02 0" euler="10 20 30"/></body>
        <body pos="1 1 1"><freejoint/><geom type="ellipsoid" size=".1 .15 .2"/></body>
        <body pos="2 1 1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
          <geom type="box" size=".1 .02 .05" euler="10 20 30"/></body>
        <body pos="1 0 1"><joint type="slide" axis="0 .6 .8"/><geom type="capsule" size=".1 .2"/>
          <body pos="0 .1 .2"><joint name="b" axis="0 1 .2" damping="2" armature=".01"/>
            <geom type="capsule" fromto="0 0 0 .4 0 0" size=".04"/>
            <body pos=".4 0 0"><joint type="ball"/><geom type="box" size=".15 .08 .1" pos=".15 0 0"/>
              <body pos="0 .1 .1"><geom type="sphere" size=".05"/></body></body></body></body>
      </worldbody><actuator><velocity joint="b" kv="2" ctrlrange="-1 1"/></actuator></mujoco>""",
    # Tendons with springs and limits: between bodies of three trees and the world, in a branch, and of joints.
    "tendons": """<mujoco><option timestep="0.005"/><default><geom contype="0" conaffinity="0"/></default><worldbody>
        <site name="post" pos="0 0 1"/>
        <body pos="0 0 0.3"><freejoint/><geom type="box" size=".1 .15 .2"/><site name="box" pos=".1 .05 .2"/></body>
        <body pos="0.3 0.1 0.3"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
          <geom type="sphere" size=".12"/><site name="ball" pos=".02 0 .01"/></body>
        <body pos="1 0 0.6"><joint name="a" axis="0 1 0" damping="1"/><geom type="capsule" size=".1 .2"/>
          <body pos="0 .1 .2"><joint name="b" axis="0 1 .2" range="-60 60"/><site name="middle" pos=".2 0 0"/>
            <geom type="capsule" fromto="0 0 0 .4 0 0" size=".04"/>
            <body pos=".4 0 0"><joint name="c" axis="1 0 .2"/><site name="end" pos="0 .1 -.3"/>
              <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".04"/></body></body></body>
      </worldbody><tendon>
        <spatial name="rope" limited="true" range="0.5 1.4" stiffness="30" springlength="0.2 0.9" margin=".05">
          <site site="post"/><site site="box"/><site site="ball"/><site site="end"/></spatial>
        <spatial name="muscle" limited="true" range="0.2 0.35" solreflimit="0.03 0.8" stiffness="20">
          <site site="middle"/><site site="end"/></spatial>
        <fixed name="both" limited="true" range="-.5 .7" stiffness="3" solimplimit=".8 .95 .1">
          <joint joint="a" coef="1"/><joint joint="b" coef="-.7"/></fixed>
      </tendon><actuator><motor joint="b" ctrlrange="-1 1"/></actuator></mujoco>""",
    # Bodies that are excluded from contacts, by themselves: what is welded to them, or hangs on them, is not.
    "excluded": """<mujoco><option timestep="0.005"/><worldbody>
        <geom type="plane" size="5 5 1"/><body name="stone" pos=".2 .2 0"><geom type="sphere" size=".15"/></body>
        <body name="a" pos="0 0 0.3"><freejoint/><geom type="sphere" size=".15"/>
          <body name="welded" pos=".2 0 0"><geom type="sphere" size=".1"/></body></body>
        <body name="b" pos="0.2 0.1 0.3"><freejoint/><geom type="capsule" size=".08 .2"/>
          <body name="c" pos="0 0 .3"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 .05 -.1" size=".07"/>
            <body name="d" pos=".3 0 -.1"><joint axis="1 0 0"/><geom type="sphere" size=".12"/></body></body></body>
      </worldbody><contact>
        <exclude body1="b" body2="a"/><exclude body1="d" body2="b"/><exclude body1="world" body2="welded"/>
        <exclude body1="stone" body2="c"/></contact></mujoco>""",
}
Floats = NDArray[np.float64]


def near(m: Any, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Positions near the model's own, turned in all directions, and velocities of several scales."""
    qpos = np.tile(m.qpos0, (n, 1))
    for j in range(m.njnt):
        a = m.jnt_qposadr[j]
        if m.jnt_type[j] == 0:  # free
            qpos[:, a : a + 3] += rng.uniform(-0.25, 0.25, (n, 3))
            a += 3
        if m.jnt_type[j] in (0, 1):  # free or ball
            turn = rng.normal(size=(n, 4))
            qpos[:, a : a + 4] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
        else:
            qpos[:, a] += rng.uniform(-1.2, 1.2, n)
    return qpos, rng.normal(size=(n, m.nv)) * rng.choice([0.1, 1, 5], (n, 1))
