"""JaxNav against JaxMARL's, from states drawn at random and over whole episodes.

Both compute with float32, in another order and with other sines: places of up to 11 m are equal to 1e-5, some ten
roundings. A beam is cut into samples, so it may end at another one if a sample is that near to a cell's edge, or the
distance of a robot that near to a multiple of the resolution; `explained` looks for either with float64.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jaxmarl
import numpy as np
import pytest

from gpuzoo import Simulator
from gpuzoo.envs.jaxnav.jaxnav import JaxNav

pytestmark = [
    pytest.mark.rotates,  # JAX compiles for long
    pytest.mark.filterwarnings("ignore:max_dist_to_goal"),  # of the map's defaults
    pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types"),  # in JaxMARL's rules
]

ROUNDING = 1e-5
SIDE = 11
OPTIONS = [
    {},
    {"num_agents": 1, "act_type": "Discrete", "lidar_num_beams": 60, "goal_radius": 0.3, "lidar_thresh": 0.3},
    {"num_agents": 4, "evaporating": True, "lidar_num_beams": 80, "rew_lambda": 0.2, "fixed_lambda": False},
    {
        "num_agents": 3, "lidar_num_beams": 50, "share_only_sparse": True, "lidar_angle_factor": 0.5, "weight_w": -0.3,
        "lim_w": 0.2, "lidar_max_range": 3.0, "max_v": 2.0, "max_w": 0.4, "dt": 0.2, "min_v": -0.5,
    },
]  # fmt: skip


def make(options):
    return jaxmarl.make("jaxnav", map_id="Grid-Rand-Poly", **options)


def draw(rng, n, cfg):
    """Any map and any places, also in walls and in each other."""
    robots = cfg.num_agents
    walls = (rng.random((n, SIDE, SIDE)) < rng.uniform(0, 0.5, (n, 1, 1))).astype(np.int8)
    walls[:, [0, -1]] = walls[:, :, [0, -1]] = 1
    centre = rng.uniform(1.2, SIDE - 1.2, (n, 1, 2))
    spread = np.where(rng.random((n, 1, 1)) < 0.5, 0.7, 8.0)
    position = np.clip(centre + rng.uniform(-spread, spread, (n, robots, 2)), 1.01, SIDE - 1.01)
    goal = np.where(
        rng.random((n, robots, 1)) < 0.3,
        position + rng.uniform(-0.6, 0.6, (n, robots, 2)),
        rng.uniform(1.3, SIDE - 1.3, (n, robots, 2)),
    )
    return {
        "position": position.astype(np.float32),
        "heading": rng.uniform(-np.pi, np.pi, (n, robots)).astype(np.float32),
        "speed": rng.uniform(cfg.min_v, cfg.max_v, (n, robots)).astype(np.float32),
        "turn": rng.uniform(-cfg.max_w, cfg.max_w, (n, robots)).astype(np.float32),
        "goal": goal.astype(np.float32),
        "goal_reached": (rng.random((n, robots)) < 0.2) & (not cfg.evaporating),
        "crashed": (rng.random((n, robots)) < 0.2) & (not cfg.evaporating),
        "map": walls.reshape(n, -1),
        "rew_lambda": np.full(n, cfg.rew_lambda, np.float32) if cfg.fixed_lambda else rng.random(n).astype(np.float32),
    }


def place(state, values, alive):
    """JaxMARL's states with our fields."""
    return state.replace(
        pos=jnp.array(values["position"]), theta=jnp.array(values["heading"]),
        vel=jnp.array(np.stack([values["speed"], values["turn"]], -1)), goal=jnp.array(values["goal"]),
        goal_reached=jnp.array(values["goal_reached"]), move_term=jnp.array(values["crashed"]),
        map_data=jnp.array(values["map"].reshape(-1, SIDE, SIDE), state.map_data.dtype), done=jnp.array(~alive),
        step=jnp.array(values["elapsed_steps"]),
        rew_lambda=jnp.array(values["rew_lambda"]).reshape(state.rew_lambda.shape).astype(state.rew_lambda.dtype),
    )  # fmt: skip


def play(sim, options):
    """JaxMARL's env, its state, and functions for observations and steps of a batch."""
    env = make(options)
    keys = jax.random.split(jax.random.key(1), sim.num_envs)
    _, state = jax.jit(jax.vmap(env.reset))(keys)
    if sim.cfg.fixed_lambda:
        state = state.replace(rew_lambda=jnp.full(sim.num_envs, sim.cfg.rew_lambda, jnp.float32))

    def look(state):
        return jnp.stack([*env.get_obs(state).values()]), env.get_world_state(state)[0]

    step = jax.jit(jax.vmap(env.step_env))
    names = env.agents

    def move(state, actions):
        _, after, rewards, done, _ = step(keys, state, {name: jnp.array(actions[:, a]) for a, name in enumerate(names)})
        return after, np.stack([rewards[name] for name in names], 1), np.asarray(done["__all__"])

    return state, jax.jit(jax.vmap(look)), move


def explained(cfg, values, env, a, k, ours, theirs):
    """Whether a beam may end elsewhere because of rounding."""
    count = int(cfg.lidar_max_range / cfg.lidar_range_resolution + 1e-3)
    angle = np.linspace(-np.pi, np.pi, cfg.lidar_num_beams)[k] * cfg.lidar_angle_factor + float(
        values["heading"][env, a]
    )
    way, here = np.array([np.cos(angle), np.sin(angle)]), values["position"][env, a].astype(float)
    first = round((min(ours, theirs) + 0.5) * (count - 1))
    point = here + way * cfg.lidar_max_range * first / (count - 1)
    if (abs(point - np.round(point)) < ROUNDING).any():
        return True
    for b in range(cfg.num_agents):
        heading, centre = float(values["heading"][env, b]), values["position"][env, b].astype(float)
        turned = np.array([[np.cos(heading), np.sin(heading)], [-np.sin(heading), np.cos(heading)]])
        corners = np.array([[-1, -1], [-1, 1], [1, 1], [1, -1], [-1, -1]]) * [cfg.half_length, cfg.half_width]
        corners = corners @ turned + centre
        beside = (corners - here) @ [-way[1], way[0]]
        if b != a and (abs(beside) < ROUNDING).any():  # grazes a corner
            return True
        for m in np.flatnonzero(beside[:-1] * beside[1:] < 0) if b != a else ():
            share = beside[m] / (beside[m] - beside[m + 1])
            far = (corners[m] + share * (corners[m + 1] - corners[m]) - here) @ way / cfg.lidar_range_resolution
            if abs(far - round(far)) < 1e-3:
                return True
    return False


def assert_same_observations(sim, values, seen, world, rows):
    """Our observations and global states are theirs."""
    cfg, ours, theirs = sim.cfg, sim.arrays["observation"], np.moveaxis(np.asarray(seen), 1, 1)
    beams, robots = cfg.lidar_num_beams, cfg.num_agents
    differ = np.argwhere((abs(ours[..., :beams] - theirs[..., :beams]) > ROUNDING) & rows[..., None])
    assert len(differ) < 1e-3 * ours.size
    for env, a, k in differ.tolist():
        assert explained(cfg, values, env, a, k, ours[env, a, k], theirs[env, a, k]), (env, a, k)
    rest, wanted = ours[rows][:, beams:], theirs[rows][:, beams:]
    np.testing.assert_allclose(rest[:, [0, 1, 2, 4]], wanted[:, [0, 1, 2, 4]], rtol=0, atol=ROUNDING)
    turned = abs(rest[:, 3] - wanted[:, 3])  # -1 and 1 are the same direction, and all are where the goal is
    distance = np.hypot(*(values["goal"] - values["position"])[rows].T)
    assert (np.minimum(turned, 2 - turned) < ROUNDING / np.maximum(distance, 1e-3) + ROUNDING).all()
    own = np.asarray(sim.global_state())
    np.testing.assert_allclose(own, np.asarray(world)[:, robots : robots + own.shape[1]], rtol=0, atol=ROUNDING)


def assert_same_step(sim, before, after, rewards, alive):
    """The fields after a step, and rewards, except where a beam that has a price may be another one."""
    ours = sim.state()
    np.testing.assert_allclose(ours["position"], np.asarray(after.pos), rtol=0, atol=ROUNDING)
    turned = abs(ours["heading"] - np.asarray(after.theta))
    assert (np.minimum(turned, 2 * np.pi - turned) < ROUNDING).all()
    np.testing.assert_allclose(
        np.stack([ours["speed"], ours["turn"]], -1), np.asarray(after.vel), rtol=0, atol=ROUNDING
    )
    np.testing.assert_array_equal(ours["goal_reached"], np.asarray(after.goal_reached))
    np.testing.assert_array_equal(ours["crashed"], np.asarray(after.move_term))
    differs = alive & (abs(sim.arrays["reward"] - rewards) > ROUNDING)
    assert differs.any(1).sum() <= len(alive) / 1000  # the price of a near wall, at the edge of its distance
    wrong = abs(sim.arrays["reward"] - rewards)[differs]
    assert (wrong <= abs(sim.cfg.lidar_rew) + ROUNDING).all()


def act(rng, sim, n):
    """Actions in the space; JaxMARL takes those of Discrete by their number."""
    cfg = sim.cfg
    if cfg.act_type == "Discrete":
        actions = rng.integers(0, 15, (n, cfg.num_agents)).astype(np.int32)
        sim.arrays["action"][...] = actions[..., None]
        return actions
    low, high = np.array([cfg.min_v, -np.pi / 6]), np.array([cfg.max_v, np.pi / 6])
    actions = (low + (high - low) * rng.random((n, cfg.num_agents, 2))).astype(np.float32)
    sim.arrays["action"][...] = actions
    return actions


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: str(len(o)))
def test_steps(options):
    n, rng = 2_000, np.random.default_rng(0)
    sim = Simulator(JaxNav, n, autoreset_mode="disabled", device="cpu", **options)
    sim.reset(seed=0)
    alive = np.ones((n, sim.cfg.num_agents), bool)
    values = draw(rng, n, sim.cfg) | {"elapsed_steps": rng.integers(0, 499, n).astype(np.int32)}
    sim.set_state(values)
    state, look, move = play(sim, options)
    state = place(state, values, alive)
    assert_same_observations(sim, values, *look(state), alive)
    actions = act(rng, sim, n)
    after, rewards, done = move(state, actions)
    sim.step()
    assert_same_step(sim, values, after, rewards, alive)
    over = sim.arrays["terminated"].all(1)
    np.testing.assert_array_equal(over, done)
    now = sim.state()
    assert_same_observations(sim, now, *look(place(after, now, alive)), alive)
    assert now["crashed"].mean() > 0.1
    assert now["goal_reached"].mean() > 0.05


@pytest.mark.parametrize("options", [{}, {"num_agents": 3, "evaporating": True}], ids=["stay", "leave"])
def test_episodes(options):
    """1,000 whole episodes; JaxMARL follows our states from step to step."""
    n, rng, options = 1000, np.random.default_rng(1), options | {"lidar_num_beams": 8}
    sim = Simulator(JaxNav, n, autoreset_mode="disabled", device="cpu", **options)
    sim.reset(seed=5)
    robots = sim.cfg.num_agents
    state, look, move = play(sim, options)
    alive, reached, crashed, running = np.ones((n, robots), bool), 0, 0, np.ones(n, bool)
    for t in range(500):
        values = sim.state()
        state = place(state, values, alive)
        actions = act(rng, sim, n)
        after, rewards, done = move(state, actions)
        sim.step()
        lives = alive & running[:, None]
        ours = sim.state()
        for name, theirs in (
            ("position", after.pos),
            ("goal_reached", after.goal_reached),
            ("crashed", after.move_term),
        ):
            np.testing.assert_allclose(
                ours[name][lives].astype(float), np.asarray(theirs)[lives].astype(float), rtol=0, atol=ROUNDING
            )
        differs = lives & (abs(sim.arrays["reward"] - rewards) > ROUNDING)
        assert differs.sum() <= 1
        ended = (sim.arrays["terminated"] | sim.arrays["truncated"]).astype(bool)
        if t < 499:
            np.testing.assert_array_equal((ended | ~alive).all(1)[running], done[running])
        reached += int((ours["goal_reached"] & lives & ~values["goal_reached"]).sum())
        crashed += int((ours["crashed"] & lives & ~values["crashed"]).sum())
        if options.get("evaporating"):
            alive &= ~ended
        running &= ~done
        if not running.any():
            break
        if t % 100 == 0:
            seen, world = look(place(after, ours, alive))
            assert_same_observations(sim, ours, seen, world, alive & running[:, None])
    assert not running.any() or t == 499
    assert crashed > 500
    assert reached > 20


def test_starts():
    """Maps, starts and goals as often as there, within 5 standard deviations, and all are allowed."""
    n = 2_000
    sim = Simulator(JaxNav, n, autoreset_mode="disabled", device="cpu", num_agents=3)
    sim.reset(seed=0)
    ours = sim.state()
    env = make({"num_agents": 3})
    _, theirs = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(3), n))
    walls = [np.asarray(m).reshape(n, -1).astype(bool) for m in (ours["map"], theirs.map_data)]
    inner = [w.sum(1) for w in walls]
    assert {x.max() for x in inner} <= {40 + k for k in range(20, 24)}  # 0 to 23 of the 81 inner cells
    assert abs(inner[0].mean() - inner[1].mean()) < 5 * inner[1].std() * np.sqrt(2 / n)
    assert (abs(walls[0].mean(0) - walls[1].mean(0)) < 5 * np.sqrt(2 * 0.14 * 0.86 / n) + 1e-9).all()
    for here, there in ((ours["position"], theirs.pos), (ours["goal"], theirs.goal), (ours["heading"], theirs.theta)):
        one, two = np.asarray(here).reshape(n, -1), np.asarray(there).reshape(n, -1)
        for k in range(one.shape[1]):
            edges = np.quantile(np.concatenate([one[:, k], two[:, k]]), np.linspace(0, 1, 11)[1:-1])
            counts = [np.bincount(np.searchsorted(edges, x[:, k]), minlength=10) for x in (one, two)]
            assert (abs(counts[0] - counts[1]) < 5 * np.sqrt(n * 0.2)).all()
    distances = [np.linalg.norm(np.asarray(p) - np.asarray(g), axis=-1) for p, g in (
        (ours["position"], ours["goal"]), (theirs.pos, theirs.goal)
    )]  # fmt: skip
    assert abs(distances[0].mean() - distances[1].mean()) < 5 * distances[1].std() * np.sqrt(2 / (3 * n))
    assert (distances[0] > 0.6).all()
    pairs = np.triu_indices(3, 1)
    for places in (ours["position"], ours["goal"]):
        apart = np.linalg.norm(places[:, :, None] - places[:, None], axis=-1)[:, pairs[0], pairs[1]]
        assert (apart > 0.9).all()
