"""Pictures by MuJoCo's renderer, beside Gymnasium's of the same states.

A process of its own draws, as ``MUJOCO_GL`` counts when ``mujoco`` is imported. On a machine that cannot draw by EGL
the test is that our canvas draws there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

DRAW = """
import json, sys
import gymnasium, gpuzoo
from gpuzoo.core.simulator import Simulator
from gpuzoo.interfaces.batch import draw

def frame(game, **options):
    sim = Simulator(game, 1, device="cpu", threads=1, **options)
    sim.reset(seed=0)
    return sim, draw(sim, 0).astype(int)

apart = {}
for id in sys.argv[1:]:
    _, ours = frame(gpuzoo.get(id), picture="canvas")
    try:
        sim, exact = frame(gpuzoo.get(id), picture="mujoco")
    except RuntimeError as error:
        _, chosen = frame(gpuzoo.get(id))
        apart[id] = [str(error), int(abs(chosen - ours).max())]
        continue
    _, chosen = frame(gpuzoo.get(id))
    options = {"render_mode": "rgb_array", "height": exact.shape[0], "width": exact.shape[1]}
    if "track" in sim.env.mjcf(sim.cfg)[0].read_text():
        options["camera_name"] = "track"  # which follows the robot; by itself Gymnasium's camera stays where it is
    env = gymnasium.make(id, **options).unwrapped
    env.reset()
    state = sim.state()
    env.set_state(state["qpos"][0].astype(float), state["qvel"][0].astype(float))
    theirs = env.render().astype(int)
    apart[id] = [float(abs(x - theirs).mean()) for x in (exact, chosen, ours)]
print(json.dumps(apart))
"""
ROBOTS = (
    "HalfCheetah-v5",
    "Ant-v5",
    "Reacher-v5",
    "Pusher-v5",
    "InvertedPendulum-v5",
)  # with and without such a camera


#: with the same options here and there
CHOOSE = """
import json
import gymnasium, gpuzoo
import numpy as np

apart, view = {}, {"distance": 2.0, "elevation": -30.0, "lookat": np.array([0, 0, 0.4])}
for name, options in {
    "view": {"width": 300, "default_camera_config": view},
    "name": {"width": 480, "height": 300, "camera_name": "track"},
    "flags": {"height": 200, "camera_id": -1, "visual_options": {14: True}},
}.items():
    theirs = gymnasium.make("Hopper-v5", render_mode="rgb_array", **options).unwrapped
    theirs.reset(seed=0)
    envs = gpuzoo.make_vec("Hopper-v5", 1, device="cpu", render_mode="rgb_array", picture="mujoco", **options)
    envs.reset(seed=0)
    state = envs.simulator.state()
    theirs.set_state(state["qpos"][0].astype(float), state["qvel"][0].astype(float))
    try:
        ours = envs.render()[0].astype(int)
        apart[name] = [list(ours.shape), float(abs(ours - theirs.render()).mean())]
    except RuntimeError as error:
        apart[name] = [str(error), 0]
print(json.dumps(apart))
"""


def drawn(platform: str, *robots: str, text: str = DRAW) -> dict[str, list[Any]]:
    env = os.environ | {"MUJOCO_GL": platform}
    done = subprocess.run([sys.executable, "-c", text, *robots], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.timeout(600)
def test_pictures_are_gymnasiums():
    for id, found in drawn("egl", *ROBOTS).items():
        if isinstance(found[0], str):
            assert_canvas(found)
            continue
        exact, chosen, ours = found
        assert exact == chosen < 1.0 < ours, (id, found)


@pytest.mark.timeout(600)
def test_options_of_the_renderer_are_gymnasiums():
    for name, found in drawn("egl", text=CHOOSE).items():
        if isinstance(found[0], str):
            assert_canvas(found)
            continue
        size = {"view": (480, 300), "name": (300, 480), "flags": (200, 480)}[name]
        assert found == [[*size, 3], 0.0]


def test_where_there_is_no_context_our_canvas_draws():
    assert_canvas(drawn("nothing", "Reacher-v5")["Reacher-v5"])


def assert_canvas(found: list[Any]) -> None:
    message, difference = found
    assert message.startswith("MuJoCo's renderer has no GL context")
    assert difference == 0
