"""A step of a robot's env here and in Gymnasium, from wild states and from visited ones.

What float32 may do wrong is `CHAIN` times what an ulp explains, as in ``tests/test_physics.py``: an ulp of each number
of the state and, here, of each of the model's constants, which float32 rounds, too, and of each entry of the matrix of
Newton's method. An ulp of the state moves all contacts of a body together and leaves that matrix of low rank; roundings
do neither. It counts where shapes of one body are deep in another and push against each other, as those of Pusher's
fingertip do in the table. Of 4,096 wild states of Pusher the largest error is 1,300 times what state and constants
explain, and 60 times what all three do.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import gymnasium
import mujoco
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from reference.record_mujoco import exact, visited, wild

import gpuzoo
from baselines import pretrained
from baselines.ppo import Args
from gpuzoo import Simulator
from gpuzoo.physics.model import Model, travels

ULP, CHAIN = 2.0**-23, 64
mujoco.set_mju_user_warning(lambda message: None)  # of states that explode


def largest(x: np.ndarray) -> np.ndarray:
    return np.abs(x).max(1)


def off(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each number an ulp more or less."""
    return x * (1 + rng.choice([-ULP, ULP], x.shape))  # type: ignore[no-any-return]


def nudged(m: Any, rng: np.random.Generator) -> Any:
    """The model with each constant an ulp more or less: those that the generator reads."""
    m = copy.copy(m)
    for field in dataclasses.fields(Model):
        if str(field.type) == "Floats":
            kind, _, rest = field.name.partition("_")
            constants = getattr(m.opt, rest) if kind == "opt" else getattr(m, field.name)
            constants[...] = off(constants, rng)
    return m


def shaken(m: Any, qpos: np.ndarray, qvel: np.ndarray, ctrl: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """How much a step's velocities may change where each entry of Newton's matrix is an ulp of its summands off.

    At the minimum that matrix, ``M + J' D J`` over the active constraints, times the acceleration is given.
    """
    d, out, full = mujoco.MjData(m), [], np.zeros((m.nv, m.nv))
    for state in zip(qpos, qvel, ctrl, strict=True):
        mujoco.mj_resetData(m, d)
        d.qpos[:], d.qvel[:], d.ctrl[:] = state
        mujoco.mj_forward(m, d)
        mujoco.mj_fullM(m, d, full)
        active = d.efc_state == mujoco.mjtConstraintState.mjCNSTRSTATE_QUADRATIC
        rows, stiffness = d.efc_J.reshape(-1, m.nv)[active], d.efc_D[active, None]
        summands = abs(full) + abs(rows).T @ (stiffness * abs(rows))
        upper = np.triu(rng.choice([-ULP, ULP], (8, m.nv, m.nv)))
        off = summands * (upper + np.triu(upper, 1).swapaxes(1, 2))
        changes = np.linalg.solve(full + rows.T @ (stiffness * rows), (off @ d.qacc).T)
        out.append(m.opt.timestep * abs(changes).max())
    return np.array(out)


def learned(robot: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """States that the pretrained agent reaches, with the noise of its policy: each tenth of 64 envs."""
    ((_, policy),) = pretrained(robot).items()
    envs, generator = gpuzoo.make_vec(robot, 64, device="cpu", **Args.of(robot).config), torch.Generator()
    observation, _ = envs.reset(seed=0)
    found = []
    for step in range(10 * -(-n // 64)):
        with torch.no_grad():
            out, _ = policy.act(torch.as_tensor(observation)[None])
            actions = policy.actions.sample(out, policy.log_std, None, generator)[0].numpy()
        observation, *_ = envs.step(np.clip(actions, envs.single_action_space.low, envs.single_action_space.high))
        if step % 10 == 9:
            state = envs.simulator.state()
            found.append((state["qpos"].astype(float), state["qvel"].astype(float)))
    envs.close()
    qpos, qvel = (np.concatenate(x)[:n] for x in zip(*found, strict=True))
    return qpos, qvel


def measured(env: Any) -> np.ndarray:
    """From the root to what the velocity is measured of: Ant's main body, or the centre of all mass."""
    data, body = env.data, getattr(env, "_main_body", None)
    return (data.subtree_com[0] if body is None else data.body(body).xpos) - data.xpos[1]


def theirs_after(env: Any, qpos: np.ndarray, qvel: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, ...]:
    """A step of Gymnasium's env after each state.

    Returns:
        Observations, rewards, terminations; whether MuJoCo gave up; and what was `measured` before.
    """
    found = []
    for q, v, action in zip(qpos, qvel, actions, strict=True):
        mujoco.mj_resetData(env.model, env.data)
        env.set_state(q, v)
        centre = measured(env)
        observation, reward, terminated, _, _ = env.step(action)
        found.append((observation, reward, terminated, any(warning.number for warning in env.data.warning), centre))
    observations, rewards, terminations, unstable, centres = zip(*found, strict=True)
    return (
        np.array(observations),
        np.array(rewards, float),
        np.array(terminations, bool),
        np.array(unstable, bool),
        np.array(centres, np.float32),
    )


def assert_same_step(robot: str, wilds: int, visits: int, learns: int = 0, **options: Any) -> None:
    """With the same options here and there.

    Args:
        robot: its id.
        wilds: number of states that are wild.
        visits: number of states that random actions reach.
        learns: number of states that the pretrained agent reaches.
        **options: of the env.
    """
    env = gymnasium.make(robot, **options).unwrapped
    m, rng = env.model, np.random.default_rng(2)
    if m.opt.solver == mujoco.mjtSolver.mjSOL_PGS:
        exact(m)
    states = [wild(m, wilds, rng), visited(m, visits, rng), *([learned(robot, learns)] if learns else [])]
    qpos, qvel = (np.concatenate(x) for x in zip(*states, strict=True))
    n = len(qpos)
    actions = rng.uniform(*m.actuator_ctrlrange.T, (n, m.nu))
    qpos, qvel, actions = (x.astype(np.float32).astype(float) for x in (qpos, qvel, actions))
    observations, rewards, terminations, unstable, centres = theirs_after(env, qpos, qvel, actions)
    moved, earned = np.zeros(n), np.zeros(n)
    unsure = np.zeros(n, bool)
    for _ in range(6):
        env.model = nudged(m, rng)
        changed, reward, terminated, *_ = theirs_after(env, *(off(x, rng) for x in (qpos, qvel, actions)))
        moved, earned = (
            np.maximum(moved, largest(changed - observations)),
            np.maximum(earned, abs(reward - rewards)),
        )
        unsure |= terminated != terminations

    sim = Simulator(gpuzoo.get(robot), n, device="cpu", autoreset_mode=AutoresetMode.DISABLED, threads=1, **options)
    sim.reset(seed=0)
    fresh = {k: np.zeros_like(v) for k, v in sim.state().items() if k.startswith("lag_") or k == "qacc"}
    if "lag_x" in fresh:
        fresh |= {"lag_x": centres[:, 0], "lag_y": centres[:, 1]}
    sim.set_state({"qpos": qpos.astype(np.float32), "qvel": qvel.astype(np.float32), **fresh})
    sim.arrays["action"][...] = actions.reshape(sim.arrays["action"].shape)
    sim.step()
    # What explodes within the step is reset by MuJoCo; ours ends.
    fine = ~unstable & (largest(observations) < 1e4)
    assert fine.mean() > 0.8
    assert not sim.arrays["diverged"][fine].any()
    ended = sim.arrays["terminated"][:, 0].copy()
    np.testing.assert_array_equal(ended[fine & ~unsure], terminations[fine & ~unsure])
    seen = sim.arrays["observation"][:, 0]
    scale = 1 + largest(observations) + largest(qvel)
    wrong = largest(seen - observations) / (moved + ULP * scale)
    assert np.quantile(wrong[fine], 0.99) < CHAIN, (robot, options, np.sort(wrong[fine])[-5:])
    # A velocity is the difference of two places: of 0.1 m, or of the true ones where a step does not begin at 0.
    game = sim.env
    way = 0.1 + abs(qpos[:, 0]) * (game.ways > 0 and not travels(game.model_of(sim.cfg), 0))
    per_step = way / (m.opt.timestep * env.frame_skip)
    wrong = abs(sim.arrays["reward"][:, 0] - rewards) / (earned + ULP * (1 + abs(rewards) + per_step))
    assert np.quantile(wrong[fine], 0.99) < CHAIN, (robot, options, np.sort(wrong[fine])[-5:])
