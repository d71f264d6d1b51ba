"""Robots of several agents against Gymnasium-Robotics' MaMuJoCo: names, spaces, what is observed, a few steps.

That their motion is that of one agent's game, bit by bit, is in ``tests/test_mamujoco.py``.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium_robotics import mamujoco_v1
from gymnasium_robotics.envs.multiagent_mujoco.obsk import get_parts_and_edges

import gpuzoo
from gpuzoo.envs.mujoco.mamujoco import Factored

GAMES = [id for id in gpuzoo.ids() if isinstance(gpuzoo.get(id), Factored)]


def original(game: str, distance: int) -> Any:
    name, conf = game.removeprefix("Ma").removesuffix("-v1").split("-", 1)
    if name == "Pusher":
        # Three of its nodes have one label, so that their order is that of a set, another one in each process.
        parts, edges, places = get_parts_and_edges(name, conf)
        for k, node in enumerate(node for part in parts for node in part if node.label == "r_wrist_roll_joint"):
            node.label += str(k)
        given = {"partition": parts, "edges": edges, "globals": places}
        return mamujoco_v1.parallel_env(name, conf, agent_obsk=distance, agent_factorization=given)
    return mamujoco_v1.parallel_env(name, conf.replace("-", "|"), agent_obsk=distance)


def numbers_of(game: Factored, cfg: Any, agent: int, data: Any) -> list[float]:
    """An agent's observation: the text of the rules, read as Python, on MuJoCo's own data."""
    state = SimpleNamespace(qpos=data.qpos, qvel=data.qvel, qfrc_actuator=data.qfrc_actuator[-data.ctrl.size :])
    for name in ("cinert", "cvel", "cfrc_ext"):
        setattr(state, name, getattr(data, name)[1:].ravel())
    if "fingertip" in game.robot.shipped().body_names:
        state.apart_x, state.apart_y, _ = data.body("fingertip").xpos - data.body("target").xpos
    if game.places:
        state.places = np.concatenate([data.body(name).xpos for name in ("tips_arm", "object", "goal")])
    words = {"e": state, "clamp": np.clip, "Pack": float, "sin": np.sin, "cos": np.cos}
    return [float(eval(text.replace(".f", ".0"), words)) for text in game.observed(cfg, agent)]


def assert_same_agents(theirs: Any, game: Factored, cfg: Any, exact: float) -> None:
    """After some steps of the original."""
    theirs.reset(seed=0)
    for space in theirs.action_spaces.values():
        space.seed(1)
    for _ in range(12):
        seen, *_ = theirs.step({name: space.sample() for name, space in theirs.action_spaces.items()})
    assert list(game.agents(cfg)) == theirs.possible_agents
    for k, name in enumerate(theirs.possible_agents):
        assert game.action_space(cfg, name) == theirs.action_space(name)
        assert game.observation_space(cfg, name).shape == theirs.observation_space(name).shape
        ours = numbers_of(game, cfg, k, theirs.single_agent_env.unwrapped.data)
        np.testing.assert_allclose(ours, seen[name], rtol=0, atol=exact)


@pytest.mark.parametrize("id", GAMES)
def test_agents_observe_what_the_originals_do(id):
    game = gpuzoo.get(id)
    for distance in range(5):
        assert_same_agents(original(id, distance), game, game.Config(agent_obsk=distance), 1e-15)


def test_a_factorisation_that_the_original_does_not_name():
    """It takes one, too: the nodes of its own graph, each for itself."""
    ant = gpuzoo.get("MaAnt-4x2-v1")
    (nodes,), edges, root = get_parts_and_edges("Ant", None)
    by_label = {node.label: node for node in nodes}
    parts = [(by_label[joint],) for joint in ant.joints.split()]
    given = {"partition": parts, "edges": edges, "globals": root}
    theirs = mamujoco_v1.parallel_env("Ant", "8x1", agent_factorization=given)
    assert_same_agents(theirs, ant, ant.Config(agent_conf="8x1"), 0)


@pytest.mark.parametrize("id", ["MaReacher-2x1-v1", "MaHalfCheetah-6x1-v1"])
def test_some_steps_are_the_originals(id):
    theirs, ours = original(id, 1), gpuzoo.parallel_env(id)
    theirs.reset(seed=0)
    ours.reset(seed=0)
    state = ours.simulator.state()
    theirs.single_agent_env.unwrapped.set_state(state["qpos"][0].astype(float), state["qvel"][0].astype(float))
    rng = np.random.default_rng(0)
    for step in range(5):
        actions = {
            name: rng.uniform(-1, 1, space.shape).astype(np.float32) for name, space in ours.action_spaces.items()
        }
        want, got = theirs.step(actions)[:4], ours.step(actions)[:4]
        for name in ours.possible_agents:
            scale = 1 + max(abs(x).max() for x in want[0].values())
            assert abs(got[0][name] - want[0][name]).max() < 1e-4 * scale, (step, name)
            assert abs(got[1][name] - want[1][name]) < 1e-3 * (1 + abs(want[1][name]))
            assert (got[2][name], got[3][name]) == (want[2][name], want[3][name])
        assert abs(ours.state() - theirs.state()).max() < 1e-4 * scale
    ours.close()
