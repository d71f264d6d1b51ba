"""Robots of several agents against Gymnasium-Robotics' MaMuJoCo: names, spaces, what is observed, a few steps.

That their motion is that of one agent's game, bit by bit, is in ``tests/test_mamujoco.py``.
"""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from gymnasium_robotics import mamujoco_v1
from gymnasium_robotics.envs.multiagent_mujoco.coupled_half_cheetah import CoupledHalfCheetahEnv
from gymnasium_robotics.envs.multiagent_mujoco.obsk import get_parts_and_edges
from physics_steps import Steps
from reference.record_mujoco import exact, stepped, visited, wild
from steps import CHAIN, ULP, largest, nudged, off, shaken

import gpuzoo
from gpuzoo.envs.mujoco.factored import Factored
from gpuzoo.physics.mjcf import extract
from gpuzoo.physics.model import Model

GAMES = [id for id in gpuzoo.ids() if isinstance(gpuzoo.get(id), Factored)]
#: whose robots are not Gymnasium's
UNLIKE = ["MaCoupledHalfCheetah-1p1-v1", "MaManySegmentAnt-2x3-v1", "MaManySegmentSwimmer-10x2-v1"]


class Dense:
    """MuJoCo's data, with tendons' Jacobians as they were before MuJoCo made them sparse, which the original reads."""

    def __init__(self, model: Any, data: Any) -> None:
        self.model, self.data = model, data

    def __getattr__(self, name: str) -> Any:
        return getattr(self.data, name)

    @property
    def ten_J(self) -> np.ndarray:  # noqa: N802
        m, out = self.model, np.zeros((self.model.ntendon, self.model.nv))
        for i, (first, count) in enumerate(zip(m.ten_J_rowadr, m.ten_J_rownnz, strict=True)):
            out[i, m.ten_J_colind[first : first + count]] = self.data.ten_J[first : first + count]
        return out


class Coupled(CoupledHalfCheetahEnv):
    """The original, which takes its numbers from `Dense`."""

    @property
    def data(self) -> Any:
        return Dense(self.model, self._data)

    @data.setter
    def data(self, data: Any) -> None:
        self._data = data

    def set_state(self, qpos: np.ndarray, qvel: np.ndarray) -> None:
        self._data.qpos[:], self._data.qvel[:] = qpos, qvel
        mujoco.mj_forward(self.model, self._data)

    def _reset_simulation(self) -> None:
        mujoco.mj_resetData(self.model, self._data)

    def _step_mujoco_simulation(self, ctrl: np.ndarray, n_frames: int) -> None:
        self._data.ctrl[:] = ctrl
        mujoco.mj_step(self.model, self._data, n_frames)
        mujoco.mj_rnePostConstraint(self.model, self._data)


def original(game: str, distance: int) -> Any:
    name, conf = game.removeprefix("Ma").removesuffix("-v1").split("-", 1)
    if name == "CoupledHalfCheetah":
        env = TimeLimit(Coupled(), max_episode_steps=1000)
        return mamujoco_v1.parallel_env(name, conf, agent_obsk=distance, gym_env=env)
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
    if data.ten_J.size and data.ten_J.ndim == 2:
        state.tendon_jacobian = data.ten_J[0, [0, 1, 9, 10]]
        state.tendon_length, state.tendon_velocity = data.ten_length, data.ten_velocity
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


@pytest.mark.parametrize(
    ("id", "conf"),
    [
        ("MaManySegmentSwimmer-10x2-v1", "2x1"),
        ("MaManySegmentSwimmer-10x2-v1", "3x4"),
        ("MaManySegmentAnt-2x3-v1", "1x1"),
        ("MaManySegmentAnt-2x3-v1", "3x1"),
        ("MaManySegmentAnt-2x3-v1", "2x6"),
    ],
)
def test_any_number_of_segments(id, conf):
    """Agents observe the same, and the model has the same constants but for names of bodies and shapes."""
    game, name = gpuzoo.get(id), id.split("-")[0].removeprefix("Ma")
    for distance in (0, 1, 3):
        theirs = mamujoco_v1.parallel_env(name, conf, agent_obsk=distance)
        assert_same_agents(theirs, game, game.Config(agent_conf=conf, agent_obsk=distance), 1e-15)
    assert_same_constants(theirs, game, game.Config(agent_conf=conf))


@pytest.mark.parametrize("id", UNLIKE)
def test_the_file_is_what_mujoco_compiles(id):
    game = gpuzoo.get(id)
    assert_same_constants(original(id, 1), game, game.Config())


@pytest.mark.parametrize("id", UNLIKE)
def test_a_step_of_time_in_double_precision(id):
    """1e-10 as in ``test_mujoco.py``; where the tendon's limit acts, which is as hard as the root of an ulp, 1e-7."""
    game, rng = gpuzoo.get(id), np.random.default_rng(1)
    m = exact(original(id, 1).single_agent_env.unwrapped.model)
    qpos, qvel = wild(m, 512, rng)
    qpos[:, 0] += rng.uniform(-3, 3, len(qpos))
    ctrl = rng.uniform(-1, 1, (len(qpos), m.nu))
    next_qpos, next_qvel = stepped(m, qpos, qvel, ctrl)
    ours_qpos, ours_qvel, _ = Steps(game.robot().shipped(), double=True, optimise="-O0")(qpos, qvel, ctrl)
    fine = (largest(next_qvel) < 1e6) & (largest(ours_qvel) < 1e6)  # MuJoCo resets what explodes
    assert fine.mean() > (0.6 if "Swimmer" in id else 0.8), "long chains in a fluid explode easily"
    bound = np.full(len(qpos), 1e-10)
    if m.ntendon:
        hard = np.hypot(np.hypot(2, qpos[:, 0] - qpos[:, 9]), qpos[:, 1] - qpos[:, 10]) > 3.5
        assert hard.sum() > 3
        bound[hard] = 1e-7
    scale = bound * (1 + largest(qvel) + largest(next_qvel))
    assert np.all((largest(ours_qvel - next_qvel) < scale)[fine])
    assert np.all((largest(ours_qpos - next_qpos) < scale)[fine])


def assert_same_constants(theirs: Any, game: Factored, cfg: Any) -> None:
    found = Model.from_json(extract(theirs.single_agent_env.unwrapped.model, "original").to_json())
    ours = Model.from_json(game.robot().model_of(cfg).to_json())
    for field in dataclasses.fields(found):
        if field.name not in ("source", "body_names", "geom_names"):
            np.testing.assert_array_equal(getattr(ours, field.name), getattr(found, field.name), err_msg=field.name)


def after(theirs: Any, qpos: np.ndarray, qvel: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, ...]:
    """What all agents observe and the state after a step of the original from each state, rewards and ends."""
    env, found = theirs.single_agent_env.unwrapped, []
    theirs.reset(seed=0)
    for q, v, action in zip(qpos, qvel, actions, strict=True):
        mujoco.mj_resetData(env.model, getattr(env, "_data", env.data))
        env.set_state(q, v)
        first, given = 0, {}
        for name in theirs.possible_agents:
            size = theirs.action_space(name).shape[0]
            given[name] = action[first : first + size]
            first += size
        seen, reward, ended, *_ = theirs.step(given)
        fine = not any(warning.number for warning in env.data.warning)
        numbers = np.concatenate([*seen.values(), theirs.state()])
        found.append((numbers, reward["agent_0"], ended["agent_0"], fine))
    return tuple(np.array(x) for x in zip(*found, strict=True))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("id", UNLIKE)
def test_a_step_from_wild_states_is_the_originals(id):
    """As `steps.assert_same_step`.

    The far links of the long swimmer are 20 metres from where spatial vectors are taken about, so inertias of 14,000
    leave entries of 12 in the mass matrix: three digits less, of which one is seen. The tendon's limit is hard in
    MuJoCo, as nothing stretches it where the model is at rest; in float32 a limit can be as hard as the root of an ulp,
    which is the bound where it acts.
    """
    theirs, game, n = original(id, 1), gpuzoo.get(id), 96
    env, rng = theirs.single_agent_env.unwrapped, np.random.default_rng(3)
    m = env.model
    states = wild(m, n // 2, rng), visited(m, n // 2, rng)
    qpos, qvel = (np.concatenate(x).astype(np.float32).astype(float) for x in zip(*states, strict=True))
    actions = rng.uniform(-1, 1, (n, m.nu)).astype(np.float32).astype(float)
    numbers, rewards, ended, fine = after(theirs, qpos, qvel, actions)
    moved, earned, unsure = np.zeros(n), np.zeros(n), np.zeros(n, bool)
    for _ in range(6):
        env.model = nudged(m, rng)
        changed, reward, end, _ = after(theirs, *(off(x, rng) for x in (qpos, qvel, actions)))
        moved = np.maximum(moved, largest(changed - numbers))
        earned, unsure = np.maximum(earned, abs(reward - rewards)), unsure | (end != ended)
    # The mass matrix of a long chain is nearly singular: what matters is how its own entries are rounded.
    moved += env.frame_skip * shaken(m, qpos, qvel, actions, rng)

    sim = gpuzoo.Simulator(game, n, device="cpu", autoreset_mode="disabled", threads=1)
    sim.reset(seed=0)
    state = sim.state()
    fresh = {k: np.zeros_like(v) for k, v in state.items() if k.startswith("lag_") or k == "qacc"}
    sim.set_state({"qpos": qpos.astype(np.float32), "qvel": qvel.astype(np.float32), **fresh})
    width, first = sim.arrays["action"].shape[-1], 0
    for a, name in enumerate(theirs.possible_agents):
        size = theirs.action_space(name).shape[0]
        assert size <= width
        sim.arrays["action"][:, a, :size] = actions[:, first : first + size]
        first += size
    sim.step()
    sizes = [theirs.observation_space(name).shape[0] for name in theirs.possible_agents]
    seen = [sim.arrays["observation"][:, a, :size] for a, size in enumerate(sizes)]
    ours = np.concatenate([*seen, sim.global_state()], axis=1)
    fine &= largest(numbers) < 1e4
    assert fine.mean() > (0.6 if "Swimmer" in id else 0.8), "long chains in a fluid explode easily"
    scale = 1 + largest(numbers) + largest(qvel)
    wrong, hard = largest(ours - numbers), np.zeros(n, bool)
    if m.ntendon:
        hard = np.maximum(np.hypot(2, qpos[:, 0] - qpos[:, 9]), numbers[:, -2]) > 3.2
        assert hard.sum() > 3
        assert np.all(wrong[hard & fine] < 2e-3 * scale[hard & fine])
    wrong = wrong / (moved + ULP * scale)
    chain = 16 * CHAIN if "Swimmer" in id else CHAIN
    assert np.quantile(wrong[fine & ~hard], 0.99) < chain, np.sort(wrong[fine & ~hard])[-5:]
    wrong = abs(sim.arrays["reward"][:, 0] - rewards) / (earned + ULP * (1 + abs(rewards) + 0.1 / env.dt))
    assert np.quantile(wrong[fine & ~hard], 0.99) < chain, np.sort(wrong[fine & ~hard])[-5:]
    np.testing.assert_array_equal(sim.arrays["terminated"][:, 0][fine & ~unsure], ended[fine & ~unsure])


@pytest.mark.parametrize("id", ["MaReacher-2x1-v1", "MaHalfCheetah-6x1-v1", *UNLIKE[:2]])
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
