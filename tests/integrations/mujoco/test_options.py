"""Options of Gymnasium's robots, by Gymnasium's names: all of them are here, and do the same."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium.envs.mujoco import MujocoEnv
from gymnasium.envs.registration import load_env_creator
from reference.record_mujoco import ASSETS
from steps import assert_same_step

import gpuzoo
from gpuzoo import Simulator
from gpuzoo.core.configuration import split_config
from gpuzoo.envs.mujoco.options import RENDERING, camera_of
from gpuzoo.envs.mujoco.robot import Robot
from gpuzoo.physics.model import load, travels

GAMES = sorted(id for id in gpuzoo.ids() if isinstance(gpuzoo.get(id), Robot))
#: arguments that are no options of a game here, with the reason
ELSEWHERE = {
    "model_path": "Gymnasium's classes give it to their base class: `xml_file`",
    "observation_space": "Gymnasium's classes give it to their base class",
    "render_mode": "an argument of every interface: of `make_vec`, `gymnasium.make`, ...",
}
#: another value for each option whose default does not tell of what type it is
OTHERS: dict[str, Any] = {
    "main_body": "aux_1",
    "width": 320,
    "height": 200,
    "camera_id": 0,
    "camera_name": "track",
    "default_camera_config": {"distance": 2.5, "lookat": np.array([0.0, 0.0, 0.5])},
    "visual_options": {8: True},
}


def options_of(robot: str) -> dict[str, Any]:
    """The arguments of Gymnasium's class, with their defaults."""
    kinds = MujocoEnv, load_env_creator(gymnasium.spec(robot).entry_point)
    arguments = [p for kind in kinds for p in inspect.signature(kind.__init__).parameters.values()]
    return {p.name: p.default for p in arguments if p.kind is not p.VAR_KEYWORD and p.name != "self"}


def other(name: str, default: Any) -> Any:
    if name in OTHERS:
        return OTHERS[name]
    if isinstance(default, bool):
        return not default
    if isinstance(default, tuple):
        return tuple(np.clip(np.array(default) * 0.5, -5, 5))
    return default + 1


@pytest.mark.parametrize("robot", GAMES)
def test_all_options_are_there(robot, tmp_path):
    """Their defaults are ours, and no other value is ignored."""
    game, seen = gpuzoo.get(robot), options_of(robot)
    assert {"xml_file", "frame_skip", *RENDERING} <= seen.keys()
    for name, default in seen.items():
        if name in ELSEWHERE:
            continue
        if name not in RENDERING:
            assert_nearly(split_config(game, 1, {name: default})[0], game.Config(), game, name)
        value = changed(robot, tmp_path) if name == "xml_file" else other(name, default)
        found, _ = split_config(game, 1, {name: value})
        assert found != game.Config(), name
        assert (game.model_of(found) is not game.shipped()) == (name == "xml_file")


def assert_nearly(found: Any, want: Any, game: Any, name: str) -> None:
    """A model's file has a name here only if it is another one; its name stands for ours."""
    if name == "xml_file":
        assert game.model_of(found) is game.shipped()
        return
    assert found == want, name


def changed(robot: str, folder: Path, *changes: tuple[str, str]) -> str:
    """Gymnasium's file of a robot with other gears and dampers, and with other changes."""
    path = folder / "changed.xml"
    text = (ASSETS / gpuzoo.get(robot).shipped().source.split()[0]).read_text()
    for pattern, new in ((r'(gear|damping)="([\d.]+)"', lambda x: f'{x[1]}="{0.6 * float(x[2])}"'), *changes):
        text, count = re.subn(pattern, new, text)
        assert count, pattern
    path.write_text(text)
    return str(path)


EULER = (r' integrator="RK4"', "")
HEAD = (
    r'<body name="front_left_leg"',
    '<body name="head" pos=".3 .1 .2"><joint name="neck" type="hinge" axis="0 0 1" range="-30 30"/>'
    '<geom type="sphere" size=".1" pos=".1 0 0"/></body><body name="front_left_leg"',
)
#: goes down to the left, so that places differ
RAMP = ("</worldbody>", '<geom type="plane" size="9 9 1" pos="0 0 -.3" euler="0 8 0" conaffinity="1"/></worldbody>')
CASES = {
    "Ant-v5": ([HEAD], {"main_body": "head", "frame_skip": 3}),
    "HalfCheetah-v5": ([RAMP], {"frame_skip": 2}),
    "Hopper-v5": ([EULER], {"healthy_angle_range": (-1.0, 0.5), "healthy_z_range": (0.3, np.inf)}),
    "Humanoid-v5": ([EULER], {"contact_cost_range": (0.0, 1.0), "healthy_z_range": (0.5, 1.5)}),
    "InvertedDoublePendulum-v5": ([EULER], {"frame_skip": 2}),
    "InvertedPendulum-v5": ([], {"frame_skip": 3}),
    "Pusher-v5": ([], {"frame_skip": 1}),
    "Reacher-v5": ([EULER], {"frame_skip": 3}),
    "Swimmer-v5": ([EULER], {"frame_skip": 2}),
    "Walker2d-v5": ([], {"frame_skip": 2, "healthy_z_range": (0.5, 1.0)}),
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("robot", CASES)
def test_another_model_and_other_options(robot, tmp_path):
    changes, options = CASES[robot]
    assert_same_step(robot, 32, 32, xml_file=changed(robot, tmp_path, *changes), **options)


def test_a_main_body_is_measured_from_the_start(tmp_path):
    path = changed("Ant-v5", tmp_path, HEAD)
    sim = Simulator(gpuzoo.get("Ant-v5"), 16, device="cpu", threads=1, xml_file=path, main_body="head")
    sim.reset(seed=0)
    m = mujoco.MjModel.from_xml_path(path)
    data, state = mujoco.MjData(m), sim.state()
    assert state["qpos"].shape == (16, 16)
    for k in range(16):
        data.qpos[:] = state["qpos"][k]
        mujoco.mj_kinematics(m, data)
        lag = data.body("head").xpos - data.qpos[:3]
        np.testing.assert_allclose([state["lag_x"][k], state["lag_y"][k]], lag[:2], atol=1e-6)


def test_a_file_that_changed_is_read_again(tmp_path):
    for gear in (1.0, 2.0):
        path = changed("Swimmer-v5", tmp_path, (r'gear="[\d.]+"', f'gear="{gear}"'))
        cfg, _ = split_config(gpuzoo.get("Swimmer-v5"), 1, {"xml_file": path})
        assert gpuzoo.get("Swimmer-v5").model_of(cfg).actuator_gear[0, 0] == gear


def test_models_that_do_not_fit_are_refused(tmp_path):
    for robot, options, message in (
        ("Ant-v5", {"main_body": "nose"}, "Ant-v5: main_body: the model has no body 'nose'; there are: world, torso"),
        ("Ant-v5", {"main_body": 14}, "Ant-v5: main_body: the model has no body '14'"),
        (
            "Pusher-v5",
            {"xml_file": "ant.xml"},
            r"needs \(nq, nv, nu\) = \(11, 11, 7\), but .*ant.xml has \(15, 14, 8\)",
        ),
        ("Ant-v5", {"xml_file": "inverted_pendulum.xml"}, r"needs \(nq, nv, nu\) = at least \(3, 3, 1\)"),
        ("MaAnt-4x2-v1", {"xml_file": "hopper.xml"}, "must have the joints and bodies of ant.xml"),
        ("Ant-v5", {"healthy_z_range": 3.0}, "healthy_z_range must be two numbers"),
        ("Ant-v5", {"camera_id": 0, "camera_name": "track"}, "Ant-v5: camera_id and camera_name cannot be given both"),
        ("Ant-v5", {"default_camera_config": {"distanc": 1}}, "no entry 'distanc'; did you mean 'distance'"),
        ("Ant-v5", {"width": 0}, "Ant-v5: width must be a positive int, not 0"),
    ):
        with pytest.raises(ValueError, match=message):
            split_config(gpuzoo.get(robot), 1, options)
    with pytest.raises(FileNotFoundError, match=r"there is no model .*none.xml: a path begins with"):
        split_config(gpuzoo.get("Ant-v5"), 1, {"xml_file": "none.xml"})


def test_where_places_differ_a_step_begins_where_it_is(tmp_path):
    from gpuzoo.physics.mjcf import read

    assert travels(load("half_cheetah"), 0)
    assert not travels(read(changed("HalfCheetah-v5", tmp_path, RAMP)), 0)
    across = (RAMP[0], RAMP[1].replace('"0 8 0"', '"8 0 0"'))
    assert travels(read(changed("HalfCheetah-v5", tmp_path, across)), 0)
    box = (RAMP[0], '<geom type="box" size="1 1 .1" pos="3 0 0" conaffinity="1"/></worldbody>')
    assert not travels(read(changed("Ant-v5", tmp_path, box)), 0)


def test_options_of_the_renderer_are_one_parameter():
    given = {"width": 320, "height": 200, "camera_id": None, "default_camera_config": {"lookat": np.zeros(3)}}
    cfg, _ = split_config(gpuzoo.get("Ant-v5"), 1, given | {"visual_options": {8: True}})
    camera = camera_of(cfg.camera)
    assert (camera.size, camera.number, camera.view) == ((320, 200), None, {"lookat": [0, 0, 0]})
    assert camera.flags == {8: True}
    envs = gpuzoo.make_vec("Ant-v5", 1, device="cpu", render_mode="rgb_array", picture="canvas", width=320, height=200)
    envs.reset(seed=0)
    assert envs.render()[0].shape == (200, 320, 3)
    envs.close()
