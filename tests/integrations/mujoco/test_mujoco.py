"""Generated physics against MuJoCo, and the robots against Gymnasium's environments with MuJoCo's default solver.

Humanoid's models ask for PGS with 50 rounds, which ends near the minimum that MuJoCo's other solvers find and ours. So
they are compared under Newton's method, and how near PGS comes is a test of its own.

What float32 may do wrong is said in ``tests/test_physics.py``; here the exact steps that measure it are MuJoCo's own.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
from physics_steps import Steps
from reference import nearest
from reference.elements import ELEMENTS, near
from reference.random_mjcf import random_mjcf
from reference.record_mujoco import ASSETS, FILES, compiled, exact, stepped, varied, visited, wild
from steps import CHAIN, ULP, assert_same_step, largest, learned, nudged, off, shaken, theirs_after

import gpuzoo
from gpuzoo.envs.mujoco.robot import Robot
from gpuzoo.physics.collision import touches
from gpuzoo.physics.contact import UNROLLED
from gpuzoo.physics.mjcf import extract
from gpuzoo.physics.model import FACTORS, load

ROOT = Path(__file__).parents[3]
GAMES = sorted(id for id in gpuzoo.ids() if isinstance(gpuzoo.get(id), Robot))
#: model -> the game about it
ROBOTS = {gpuzoo.get(id).model: id for id in GAMES}
STATES = 4096


@pytest.mark.parametrize("name", sorted(FILES))
def test_the_file_is_what_mujoco_compiles(name):
    assert extract(compiled(name), load(name).source).to_json() == load(name).to_json()


@pytest.mark.rotates
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sorted(FILES))
def test_a_step_from_thousands_of_states(name):
    """Wild ones, and those that random actions and the pretrained agent reach: in double precision, a step of time and
    the steps of an env step; in float32, a step of time."""
    rng, m = np.random.default_rng(1), compiled(name)
    some = STATES // 8
    states = wild(m, STATES, rng), visited(m, some, rng), learned(ROBOTS[name], some)
    qpos, qvel = (np.concatenate(x) for x in zip(*states, strict=True))
    ctrl = rng.uniform(*m.actuator_ctrlrange.T, (len(qpos), m.nu))
    qpos, qvel, ctrl = (x.astype(np.float32).astype(float) for x in (qpos, qvel, ctrl))
    double = Steps(load(name), double=True, optimise="-O1")
    for steps in (gymnasium.make(ROBOTS[name]).unwrapped.frame_skip, 1):
        step = nearest.stepped if nearest.searched(m) else stepped
        next_qpos, next_qvel = step(m, qpos, qvel, ctrl, steps)
        ours_qpos, ours_qvel, _ = double(qpos, qvel, ctrl, steps)
        fine = (largest(next_qvel) < 1e6) & (largest(ours_qvel) < 1e6)  # MuJoCo resets what explodes
        assert fine.mean() > 0.95
        scale = 1 + largest(qvel) + largest(next_qvel)
        assert np.all((largest(ours_qvel - next_qvel) < 1e-10 * scale)[fine])
        assert np.all((largest(ours_qpos - next_qpos) < 1e-10 * scale)[fine])

    single_qpos, single_qvel, _ = Steps(load(name), optimise="-O1")(qpos, qvel, ctrl)
    moved_qpos, moved_qvel = np.zeros(len(qpos)), np.zeros(len(qpos))
    for _ in range(8):
        changed_qpos, changed_qvel = stepped(nudged(m, rng), *(off(x, rng) for x in (qpos, qvel, ctrl)))
        moved_qpos = np.maximum(moved_qpos, largest(changed_qpos - next_qpos))
        moved_qvel = np.maximum(moved_qvel, largest(changed_qvel - next_qvel))
    moved = shaken(m, qpos, qvel, ctrl, rng)
    moved_qvel, moved_qpos = moved_qvel + moved, moved_qpos + m.opt.timestep * moved
    wrong_qvel = largest(single_qvel - next_qvel) / (moved_qvel + ULP * (scale + largest(next_qvel - qvel)))
    wrong_qpos = largest(single_qpos - next_qpos) / (moved_qpos + ULP * (1 + largest(next_qpos)))
    for wrong in (wrong_qvel, wrong_qpos):
        others = wrong[STATES:][fine[STATES:]]  # those that are visited
        print(f"{name}: {np.quantile(wrong[fine], 0.999):.0f} ulps of wild states, {others.max():.0f} of others")
        assert np.quantile(wrong[fine], 0.999) < CHAIN, np.sort(wrong[fine])[-9:]
        assert np.all(others < CHAIN)


@pytest.mark.rotates
@pytest.mark.parametrize("name", sorted(ELEMENTS))
def test_a_step_of_small_models(name):
    rng, m = np.random.default_rng(1), compiled(name)
    qpos, qvel = near(m, 1024, rng)
    ctrl = rng.uniform(-1, 1, (len(qpos), m.nu))
    next_qpos, next_qvel = stepped(m, qpos, qvel, ctrl)
    ours_qpos, ours_qvel, _ = Steps(extract(m, name), double=True, optimise="-O1")(qpos, qvel, ctrl)
    scale = 1 + largest(qvel) + largest(next_qvel)
    assert np.all(largest(ours_qvel - next_qvel) < 1e-10 * scale)
    assert np.all(largest(ours_qpos - next_qpos) < 1e-10 * scale)


@pytest.mark.rotates
@pytest.mark.parametrize("name", ["ant", "hopper", "shapes", "rolling", "implicitfast", "tendons"])
def test_constants_differ_from_env_to_env(name):
    """As of a model that is changed in MuJoCo, with `mj_setConst`."""
    rng, m = np.random.default_rng(1), compiled(name)
    qpos, qvel = near(m, 128, rng) if name in ELEMENTS else wild(m, 128, rng)
    ctrl = rng.uniform(-1, 1, (len(qpos), m.nu))
    factors = rng.uniform(0.5, 2.0, (len(qpos), len(FACTORS)))
    after = [
        stepped(varied(m, dict(zip(FACTORS, x, strict=True))), *(y[None] for y in state))
        for x, *state in zip(factors, qpos, qvel, ctrl, strict=True)
    ]
    next_qpos, next_qvel = (np.concatenate(x) for x in zip(*after, strict=True))
    model = extract(m, name) if name in ELEMENTS else load(name)
    ours = Steps(model, double=True, optimise="-O1", vary=FACTORS)
    ours_qpos, ours_qvel, _ = ours(qpos, qvel, ctrl, factors=factors)
    scale = 1 + largest(qvel) + largest(next_qvel)
    assert np.all(largest(ours_qvel - next_qvel) < 1e-10 * scale)
    assert np.all(largest(ours_qpos - next_qpos) < 1e-10 * scale)


@pytest.mark.rotates
@pytest.mark.parametrize("seed", [*range(8), 16, 107, 143])
def test_a_step_of_random_models(seed):
    """Of the last ones one contact of moving bodies is like no other, while others share loops."""
    m = exact(mujoco.MjModel.from_xml_string(random_mjcf(seed)))
    rng = np.random.default_rng(seed)
    qpos, qvel = near(m, 128, rng)
    ctrl = rng.uniform(-1, 1, (len(qpos), m.nu))
    next_qpos, next_qvel = stepped(m, qpos, qvel, ctrl)
    ours_qpos, ours_qvel, _ = Steps(extract(m, "random"), double=True, optimise="-O0")(qpos, qvel, ctrl)
    scale = 1 + largest(qvel) + largest(next_qvel)
    assert np.all(largest(ours_qvel - next_qvel) < 1e-10 * scale)
    assert np.all(largest(ours_qpos - next_qpos) < 1e-10 * scale)


ARM = """<body pos='{x} 0 0'>
  <joint type='hinge' axis='0 0 1'/><joint name='{name}' type='hinge' axis='0 1 0'/>
  <geom type='capsule' fromto='0 0 0 .3 .1 .1' size='.08'/>
  <body pos='.3 .1 .1'>
    <joint type='hinge' axis='1 0 0'/><joint type='hinge' axis='0 1 0'/>
    <geom type='capsule' fromto='0 0 0 .2 .2 0' size='.07'/><geom type='sphere' pos='.2 .25 0' size='.08'/>
  </body>
</body>"""


@pytest.mark.rotates
@pytest.mark.parametrize(("arms", "looped"), [(2, False), (4, True)])
def test_friction_between_bodies(arms, looped):
    """Arms that roll over each other: with the code of each contact, and with loops over lists of them."""
    bodies = "".join(ARM.format(x=0.15 * i, name=f"a{i}") for i in range(arms))
    ground = "<geom type='plane' size='5 5 1' pos='0 0 -.6'/>" if looped else ""
    m = exact(
        mujoco.MjModel.from_xml_string(
            f"<mujoco><option timestep='.005'/><default><geom friction='.7'/></default><worldbody>{ground}<body>"
            f"<freejoint/><geom type='sphere' size='.05'/>{bodies}</body></worldbody>"
            "<actuator><motor joint='a0'/></actuator></mujoco>"
        )
    )
    rng, n = np.random.default_rng(0), 256
    qpos, qvel, ctrl = np.tile(m.qpos0, (n, 1)), 2 * rng.normal(size=(n, m.nv)), rng.uniform(-1, 1, (n, 1))
    turn = rng.normal(size=(n, 4))
    qpos[:, :3], qpos[:, 3:7] = rng.uniform(-0.5, 0.5, (n, 3)), turn / np.linalg.norm(turn, axis=1, keepdims=True)
    qpos[:, 7:] = rng.uniform(-3, 3, (n, m.nq - 7))
    model = extract(m, "arms")
    assert (len(list(touches(model))) > UNROLLED) == looped
    _, next_qvel = stepped(m, qpos, qvel, ctrl)
    _, ours_qvel, _ = Steps(model, double=True, optimise="-O0")(qpos, qvel, ctrl)
    scale = 1 + largest(qvel) + largest(next_qvel)
    assert np.all(largest(ours_qvel - next_qvel) < 1e-10 * scale)
    m.geom_friction[:, 0] = 0.1
    assert np.mean(largest(stepped(m, qpos, qvel, ctrl)[1] - next_qvel) > 1e-3) > 0.3, "friction hardly mattered"


WATCHED = """<mujoco><option timestep='.005'/><worldbody>
  <geom type='plane' size='5 5 1'/><site name='mark' pos='1 2 .5'/>
  <body name='post' pos='2 -1 0' euler='0 0 30'><geom type='capsule' size='.1 .2' pos='.1 0 .2'/>
    <site name='top' pos='.1 0 .4'/><body name='flag' pos='0 .1 .4'/></body>
  <body name='torso' pos='0 0 .3'><freejoint/><geom type='sphere' size='.15'/>
    <body name='leg' pos='.1 0 0'><joint name='hip' axis='0 1 0' range='-30 30'/>
      <geom type='capsule' fromto='0 0 0 .3 .05 -.1' size='.05'/><site name='toe' pos='.3 .05 -.1'/></body></body>
</worldbody><tendon><spatial name='rope'><site site='top'/><site site='toe'/></spatial>
  <fixed name='bent'><joint joint='hip' coef='2'/></fixed></tendon>
  <actuator><motor joint='hip' gear='5' ctrlrange='-1 1'/></actuator></mujoco>"""


def test_what_rules_read_is_mujocos():
    """Of bodies that never move, too, while the robot is somewhere else."""
    m = exact(mujoco.MjModel.from_xml_string(WATCHED))
    bodies = [m.body(i).name for i in range(m.nbody)]
    of_one = {f"{what} {name}": (what, i) for what in ("xpos", "subtree_com") for i, name in enumerate(bodies)}
    of_one |= {f"site_xpos {m.site(i).name}": ("site_xpos", i) for i in range(m.nsite)}
    of_one |= {"qfrc_constraint hip": ("qfrc_constraint", 6)}
    watched = (*of_one, "cfrc_ext", "cvel", "cinert", "qfrc_actuator", "ten_length", "ten_velocity")
    watched += ("ten_j rope", "ten_j bent")
    sim = gpuzoo.Simulator(gpuzoo.from_mjcf(WATCHED, watch=watched), 16, device="cpu", threads=1)
    sim.reset(seed=0)
    rng, d = np.random.default_rng(0), mujoco.MjData(m)
    qpos, qvel = near(m, 16, rng)
    qpos[:, :3] += rng.uniform([-3, -3, -0.1], [3, 3, 0.1], (16, 3))
    qpos, qvel = qpos.astype(np.float32), qvel.astype(np.float32)
    sim.set_state({"qpos": qpos, "qvel": qvel, "qacc": np.zeros_like(qvel)})
    sim.arrays["action"][...] = 0.5
    sim.step()
    found = sim.state()
    for k in range(16):
        mujoco.mj_resetData(m, d)
        d.qpos[:], d.qvel[:], d.ctrl[:] = qpos[k], qvel[k], 0.5
        mujoco.mj_step(m, d)
        mujoco.mj_rnePostConstraint(m, d)
        for name in watched:
            what, i = of_one.get(name, (name, slice(None)))
            if name.startswith("ten_j"):  # MuJoCo's is sparse
                k0, size = m.ten_J_rowadr[m.tendon(name[6:]).id], m.ten_J_rownnz[m.tendon(name[6:]).id]
                want = np.zeros(m.nv)
                want[m.ten_J_colind[k0 : k0 + size]] = d.ten_J[k0 : k0 + size]
            else:
                want = np.ravel(getattr(d, what)[i])
            scale = 1 + abs(want).max()
            np.testing.assert_allclose(found[name.replace(" ", "_")][k], want, rtol=0, atol=1e-4 * scale, err_msg=name)


def options_of(game: str) -> list[dict[str, Any]]:
    """The options, and others of those that change observations."""
    names = {f for f in gpuzoo.get(game).Config.__dataclass_fields__ if f.startswith(("exclude", "include"))}
    return [{}, dict.fromkeys(names, False)] if names else [{}]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("robot", GAMES)
def test_a_step_of_an_env_is_gymnasiums(robot):
    for options in options_of(robot):
        assert_same_step(robot, 64, 64, **options)


@pytest.mark.rotates(long=True)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("robot", GAMES)
def test_a_step_of_an_env_from_thousands_of_states(robot):
    assert_same_step(robot, STATES, STATES // 8, STATES // 8)


def test_humanoids_own_solver_comes_near():
    """An env step under PGS as the model has it, against the exact one: the median is exact, few are far off."""
    env, m, rng = gymnasium.make("Humanoid-v5").unwrapped, compiled("humanoid"), np.random.default_rng(2)
    qpos, qvel = visited(m, 64, rng)
    actions = rng.uniform(*m.actuator_ctrlrange.T, (64, m.nu))
    near, *_ = theirs_after(env, qpos, qvel, actions)
    exact(env.model)
    wrong = largest((near - theirs_after(env, qpos, qvel, actions)[0])[:, :45]) / (1 + largest(qvel))
    assert np.median(wrong) < 1e-3
    assert np.quantile(wrong, 0.95) < 0.05


def mjcf(option: str = "", geom: str = "type='sphere'", joint: str = "", other: str = "", rest: str = "") -> str:
    """A pendulum above a floor, with something more."""
    return f"""<mujoco><option {option}/><worldbody><geom type='plane' size='5 5 1'/>
      <body name='a' pos='0 0 1'><joint name='j' {joint}/><geom name='bob' size='.1 .1 .1' {geom}/></body>{other}
      </worldbody>{rest}<actuator><motor joint='j' ctrlrange='-1 1'/></actuator></mujoco>"""


FIXED = "<tendon><fixed name='t' {}><joint joint='j' coef='1'/></fixed></tendon>"
BLOCK = "<body name='b' pos='0 0 2'><freejoint/><geom type='box' size='.1 .1 .1'/></body>"
REFUSED = {
    "equality constraint 'hold'; elliptic friction cones": mjcf(
        "cone='elliptic'", rest="<equality><joint name='hold' joint1='j'/></equality>"
    ),
    "equality constraint 0": mjcf(rest="<equality><joint joint1='j'/></equality>"),
    "noslip iterations": mjcf("noslip_iterations='3'"),
    "the flag gravity of <option>": mjcf("><flag gravity='disable'/></option><option"),
    "groups of actuators that are disabled": mjcf("actuatorgroupdisable='1'"),
    "a damper of tendon 't'": mjcf(rest=FIXED.format("damping='3'")),
    "pulleys or geoms of tendon 'u'": mjcf(
        rest="<worldbody><site name='s'/><site name='r' pos='1 0 0'/></worldbody><tendon>"
        "<spatial name='u' stiffness='1'><site site='s'/><geom geom='bob'/><site site='r'/></spatial></tendon>"
    ),
    "actuator 'pull', which does not act on a hinge or slide": mjcf(
        rest=FIXED.format("") + "<actuator><motor name='pull' tendon='t'/></actuator>"
    ),
    "the state of actuator 0; the gain or bias of actuator 0": mjcf(
        rest="<actuator><muscle joint='j' ctrlrange='0 1' lengthrange='0 1'/></actuator>"
    ),
    "a limit of actuator forces at joint 'j'": mjcf(joint="actuatorfrcrange='-1 1'"),
    "gravity compensation of body 'b'": mjcf(other=BLOCK.replace("name='b'", "name='b' gravcomp='1'")),
    "contacts of geom 'bob' of body 'a', which is no plane, sphere, capsule, cylinder or box": mjcf(
        geom="type='mesh' mesh='m'", rest="<asset><mesh name='m' vertex='0 0 0 1 0 0 0 1 0 0 0 1'/></asset>"
    ),
    "contacts of box 'bob' of body 'a' and box 2 of body 'b'": mjcf(geom="type='box' pos='.1 0 0'", other=BLOCK),
    "contacts of plane 0 of body 'world' and sphere 'bob' of body 'a', as only turns about its centre": mjcf(),
    "contacts of capsule 'bob' of body 'a' and box 2 of body 'b'": mjcf(
        geom="type='capsule' pos='.1 0 0'", other=BLOCK
    ),
}


@pytest.mark.parametrize("named", REFUSED)
def test_unsupported_elements_are_named(named):
    with pytest.raises(ValueError, match=f"not supported: {re.escape(named)}"):
        gpuzoo.from_mjcf(REFUSED[named])


def test_assets_are_there():
    assert all((ASSETS / file).is_file() for file in FILES.values())
