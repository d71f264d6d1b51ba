"""Robots whose joints are shared out among agents: the game is that of one agent, cut into pieces."""

from __future__ import annotations

import numpy as np
import pytest

import gpuzoo
from gpuzoo import EnvDef, Simulator
from gpuzoo.core.layout import layout
from gpuzoo.envs.mujoco.factored import Factored

GAMES = [gpuzoo.get(id) for id in gpuzoo.ids() if isinstance(gpuzoo.get(id), Factored)]


def played(game: EnvDef, actions: np.ndarray) -> list[dict[str, np.ndarray]]:
    """What is there after each step of 20 envs, of which some begin new episodes."""
    sim = Simulator(game, 20, device="cpu", threads=1, autoreset_mode="same_step", max_episode_steps=11)
    sim.reset(seed=3)
    out = []
    for action in actions:
        sim.arrays["action"][...] = action.reshape(sim.arrays["action"].shape)
        sim.step()
        several = sim.layout.state_space is not None
        seen = sim.global_state() if several else sim.arrays["observation"][:, 0]
        out.append({"seen": seen.copy(), **{k: sim.arrays[k].copy() for k in ("reward", "terminated", "truncated")}})
        out[-1] |= {name: x.copy() for name, x in sim.state().items() if name in sim.program.fields}
    return out


@pytest.mark.rotates
@pytest.mark.parametrize("team", GAMES, ids=lambda team: team.id)
def test_the_state_is_what_one_agent_observes(team):
    """Same bits, whoever has which joint; all agents have the same reward, and end together."""
    cfg = team.Config()
    one = team.robot()
    joints = team.actuators_of(cfg)
    torques = np.random.default_rng(0).uniform(-1.5, 1.5, (25, 20, len(joints))).astype(np.float32)
    parts = team.partition(cfg)
    width = layout(team, cfg).action_size
    shared = np.zeros((25, 20, len(parts), width), np.float32)
    for a, part in enumerate(parts):
        shared[:, :, a, : len(part)] = torques[..., [joints.index(joint) for joint in part]]
    for alone, together in zip(played(one, torques), played(team, shared), strict=True):
        for name, x in alone.items():
            assert x.dtype == together[name].dtype
            np.testing.assert_array_equal(np.broadcast_to(x, together[name].shape), together[name], err_msg=name)


@pytest.mark.rotates
def test_names_and_spaces():
    env = gpuzoo.parallel_env("MaHalfCheetah-6x1-v1")
    assert env.possible_agents == [f"agent_{k}" for k in range(6)]
    assert [env.observation_space(a).shape for a in env.possible_agents] == [(9,), (9,), (8,), (9,), (9,), (8,)]
    assert env.state_space.shape == (17,)
    env.close()
    sizes = {k: layout(GAMES[0], GAMES[0].Config(agent_obsk=k)).observation_size for k in range(4)}
    assert GAMES[0].id == "MaAnt-2x4-v1"
    assert sizes == {0: 61, 1: 63, 2: 65, 3: 65}, "the other hips, then their ankles"


def test_factorisations_of_ones_own():
    swapped = gpuzoo.get("MaHopper-3x1-v1")
    cfg = swapped.Config(agent_conf="foot_joint | leg_joint thigh_joint")
    assert swapped.agents(cfg) == {"agent_0": 1, "agent_1": 1}
    assert [swapped.action_space(cfg, a).shape for a in swapped.agents(cfg)] == [(1,), (2,)]
    with pytest.raises(ValueError, match=r"MaHopper-3x1-v1 has no factorisation '3x2'; did you mean '3x1'\?"):
        gpuzoo.parallel_env("MaHopper-3x1-v1", agent_conf="3x2")
    for wrong in ("thigh_joint | leg_joint", "thigh_joint | leg_joint | foot_joint foot_joint", "thigh_joint ||"):
        with pytest.raises(ValueError, match=r"must give each joint to one agent, as in 'thigh_joint \| leg_joint"):
            gpuzoo.parallel_env("MaHopper-3x1-v1", agent_conf=wrong)
