"""`gpuzoo.jax` against the Simulator: the same bits in whatever way the functions are mapped, scanned and copied."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gpuzoo
import gpuzoo.jax

#: one lane and scalars, arrays and long observations, Discrete observations, masks and turns, a group, groups of unlike
#: observations, agents that leave early, packed rules, fields of 64 bits; rules that choose actions
IDS = [
    "CartPole-v1",
    "Breakout-MinAtar-v1",
    "FrozenLake-v1",
    "ConnectFour-v0",
    "SimpleSpread-v0",
    "SimpleSpeakerListener-v0",
    "TagContinuous-v0",
    "InvertedPendulum-v5",
    "RobotWarehouse-v0",
    "Go-v0",
    "FlatPack-v0",
]
N = 6


def simulator(name, n=N, **config):
    sim = gpuzoo.Simulator(gpuzoo.get(name), n, device="cpu", autoreset_mode="same_step", **config)
    sim.reset(seed=3)
    return sim


def by_group(env, value):
    return value if isinstance(value, dict) else {"agent": value[:, None]}


def same(env, sim, name, value):
    """Whether what the function returned is what the Simulator has in an array, bit for bit."""
    for group, array in by_group(env, value).items():
        first = env.layout.first[group]
        ours = np.asarray(array)
        theirs = sim.arrays[name][:, first : first + env.groups[group]].reshape(*ours.shape[:2], -1)
        ours = ours.reshape(*ours.shape[:2], -1)
        np.testing.assert_array_equal(ours, theirs[..., : ours.shape[-1]], err_msg=f"{name} of {group}")


def compare(name, n, steps, limit):
    """Random actions in a scan of JAX, and the same steps of a Simulator: every array, bit for bit."""
    env, params = gpuzoo.jax.make(name, n, max_episode_steps=limit)
    sim = simulator(name, n, max_episode_steps=limit)
    obs, state = env.reset(3)
    same(env, sim, "observation", obs)

    def one(state, _):
        action = env.random_actions(state)
        obs, state, reward, terminated, truncated, info = env.step(None, state, action, params)
        mask = env.action_mask(state) if env.layout.mask_size else reward
        return state, (action, obs, reward, terminated, truncated, info, mask, env.alive(state))

    state, seen = jax.jit(lambda state: jax.lax.scan(one, state, None, steps))(state)
    ends = 0
    for t in range(steps):
        action, obs, reward, terminated, truncated, info, mask, alive = jax.tree.map(lambda x, t=t: x[t], seen)
        sim.random_actions()
        same(env, sim, "action", action)
        sim.step()
        same(env, sim, "observation", obs)
        same(env, sim, "reward", reward)
        same(env, sim, "terminated", terminated)
        same(env, sim, "truncated", truncated)
        same(env, sim, "alive", alive)
        if env.layout.mask_size:
            same(env, sim, "action_mask", mask)
        np.testing.assert_array_equal(info["done"], sim.arrays["ended"])
        over = (sim.arrays["terminated"] | sim.arrays["truncated"])[:, :, None]
        led_to = np.where(over, sim.arrays["final_observation"], sim.arrays["observation"])
        for group, array in by_group(env, info["final_observation"]).items():
            first, ours = env.layout.first[group], np.asarray(array).reshape(n, env.groups[group], -1)
            np.testing.assert_array_equal(ours, led_to[:, first : first + env.groups[group], : ours.shape[-1]])
        ends += int(sim.arrays["ended"].sum())
    assert ends >= n
    for field, array in sim.arrays.items():
        if field in state:
            got = np.asarray(state[field])
            np.testing.assert_array_equal(got.view(array.dtype).reshape(array.shape), array, err_msg=field)
    if env.layout.state_space is not None:
        np.testing.assert_array_equal(env.global_state(state), sim.global_state())


@pytest.mark.parametrize("name", IDS)
def test_the_bits_of_the_simulator(name):
    compare(name, N, steps=40, limit=15)


@pytest.mark.rotates
def test_every_game(game):
    compare(game, 3, steps=20, limit=8)


@pytest.mark.parametrize("name", ["CartPole-v1", "SimpleSpeakerListener-v0", "InvertedPendulum-v5"])
def test_mapped_once_and_twice(name):
    one, params = gpuzoo.jax.make(name)
    many, _ = gpuzoo.jax.make(name, 3)
    keys = jax.random.split(jax.random.key(0), 4)
    obs, states = jax.vmap(many.reset, (0, None))(keys, params)
    # env k of a batch has the batch's seed + k
    seeds = np.asarray(states["seed"]).copy().view(np.uint64)[..., 0]
    assert (np.diff(seeds, axis=1) == 1).all()
    for _ in range(30):
        action = jax.vmap(many.random_actions)(states)
        obs, after, reward, *_ = jax.vmap(many.step, (None, 0, 0, None))(None, states, action, params)
        twice = jax.vmap(jax.vmap(one.step, (None, 0, 0, None)), (None, 0, 0, None))(None, states, action, params)
        jax.tree.map(np.testing.assert_array_equal, (obs, after, reward), twice[:3])
        alone = many.step(None, *jax.tree.map(lambda x: x[2], (states, action)), params)
        jax.tree.map(lambda x, y: np.testing.assert_array_equal(x, y[2]), alone[:3], (obs, after, reward))
        states = after


def test_parameters_per_env_and_per_member():
    env, params = gpuzoo.jax.make("CartPole-v1", 4)
    gravity = np.linspace(5, 15, 4, dtype=np.float32)
    sim = simulator("CartPole-v1", 4, gravity=gravity)
    _, state = env.reset(3)
    own = params.replace(gravity=gravity)
    one, _ = gpuzoo.jax.make("CartPole-v1")
    axes = (None, 0, 0, jax.tree.map(lambda _: None, params).replace(gravity=0))
    for t in range(30):
        action = np.full(4, t % 2)
        mapped = jax.vmap(one.step, axes)(None, state, action, own)
        obs, state, *_ = env.step(None, state, action, own)
        sim.arrays["action"][:, 0, 0] = action
        sim.step()
        same(env, sim, "observation", obs)
        np.testing.assert_array_equal(mapped[0], obs)


def test_time_limits_per_member():
    env, params = gpuzoo.jax.make("CartPole-v1", 2)
    limits = jnp.array([3, 5])
    axes = jax.tree.map(lambda _: None, params).replace(max_steps_in_episode=0)
    _, state = env.reset(0)
    state = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    ended = []
    for t in range(5):
        own = params.replace(max_steps_in_episode=limits)
        _, state, *_, truncated, _ = jax.vmap(env.step, (None, 0, 0, axes))(None, state, np.full((2, 2), t % 2), own)
        ended.append(np.asarray(truncated)[:, 0].tolist())
    assert ended == [[False] * 2, [False] * 2, [True, False], [False] * 2, [False, True]]


def test_episodes_draw_parameters():
    config = {"gravity": gpuzoo.Uniform(5.0, 15.0), "max_episode_steps": 7}
    env, _ = gpuzoo.jax.make("CartPole-v1", N, **config)
    sim = simulator("CartPole-v1", **config)
    obs, state = env.reset(3)
    for t in range(20):
        obs, state, *_ = env.step(None, state, np.full(N, t % 2))
        sim.arrays["action"][...] = t % 2
        sim.step()
        same(env, sim, "observation", obs)
    np.testing.assert_array_equal(state["param_gravity"], sim.params["gravity"])


def test_a_state_stays_what_it_was():
    env, params = gpuzoo.jax.make("CartPole-v1", N)
    _, state = env.reset(0)
    before = jax.tree.map(np.array, state)

    @jax.jit
    def branches(state):
        left = env.step(None, state, jnp.zeros(N, int), params)
        right = env.step(None, state, jnp.ones(N, int), params)
        again = env.step(None, state, jnp.zeros(N, int), params)
        return left, right, again, state

    left, right, again, kept = branches(state)
    jax.tree.map(np.testing.assert_array_equal, left, again)
    assert (np.asarray(left[0]) != np.asarray(right[0])).any()
    jax.tree.map(np.testing.assert_array_equal, before, state)
    jax.tree.map(np.testing.assert_array_equal, before, kept)


def test_one_done_for_purejaxrl():
    env, params = gpuzoo.jax.make("CartPole-v1", merged_done=True, max_episode_steps=2)
    obs, state = env.reset(jax.random.PRNGKey(0), params)
    assert obs.shape == (4,)
    obs, state, _, done, info = env.step(jax.random.PRNGKey(1), state, 1, params)
    assert not done
    assert set(info) == {"discount", "terminated", "truncated"}
    last, state, _, done, info = env.step(None, state, 0, params)
    assert done
    assert info["truncated"]
    assert info["discount"] == 1.0
    assert (np.asarray(env.final_obs(state)) != np.asarray(last)).any()


def test_spaces_of_gymnax():
    from gymnax.environments import spaces

    env, params = gpuzoo.jax.make("CartPole-v1")
    assert isinstance(env.observation_space(params), spaces.Box)
    assert env.observation_space(params).shape == (4,)
    assert isinstance(env.action_space(params), spaces.Discrete)
    assert env.action_space().n == env.num_actions == 2
    assert env.action_space(params).contains(env.action_space(params).sample(jax.random.key(0)))
    with pytest.raises(ValueError, match="several agents: see observation_spaces"):
        gpuzoo.jax.make("SimpleSpread-v0")[0].observation_space()


def test_global_state():
    env, _ = gpuzoo.jax.make("MaAnt-2x4-v1", 2)
    sim = simulator("MaAnt-2x4-v1", 2)
    _, state = env.reset(3)
    np.testing.assert_array_equal(env.global_state(state), sim.global_state())


def test_seeds():
    env, _ = gpuzoo.jax.make("CartPole-v1", 2)
    for seed, words in (
        (5, [[5, 0], [6, 0]]),
        (2**32 - 1, [[2**32 - 1, 0], [0, 1]]),
        (2**63, [[0, 2**31], [1, 2**31]]),
    ):
        np.testing.assert_array_equal(env.reset(seed)[1]["seed"], np.array(words, np.uint32))
    np.testing.assert_array_equal(jax.jit(env.reset)(jnp.int32(5))[1]["seed"], [[5, 0], [6, 0]])
    old, new = env.reset(jax.random.PRNGKey(0))[1], env.reset(jax.random.key(0))[1]
    np.testing.assert_array_equal(old["seed"], new["seed"])


@pytest.mark.parametrize("name", ["CartPole-v1", "SimpleSpeakerListener-v0", "ConnectFour-v0"])
def test_envpools_contract(name):
    """`xla()` does what the pool does, in a loop inside of jit."""
    pool = gpuzoo.make_pool(name, N, seed=3, device="cpu", max_episode_steps=9)
    pool.async_reset()
    handle, recv, send, step = pool.xla()
    rows = N * (pool.spec.config["max_num_players"])
    actions = np.random.default_rng(0).integers(0, pool.action_space.n, (30, rows))
    _, first = recv(handle)

    def body(handle, action):
        return step(handle, action)

    seen = jax.jit(lambda handle: jax.lax.scan(body, handle, jnp.asarray(actions))[1])(handle)
    for t, action in enumerate(actions):
        theirs = pool.step(action)
        jax.tree.map(np.testing.assert_array_equal, jax.tree.map(lambda x, t=t: x[t], seen), theirs)
    again = recv(send(handle, actions[0]))[1]  # an old handle is what it was
    jax.tree.map(np.testing.assert_array_equal, again, jax.tree.map(lambda x: x[0], seen))
    jax.tree.map(np.testing.assert_array_equal, recv(handle)[1], first)


def test_what_xla_refuses():
    with pytest.raises(RuntimeError, match=r"call reset\(\) or async_reset\(\) before xla"):
        gpuzoo.make_pool("CartPole-v1", 4, device="cpu").xla()
    pool = gpuzoo.make_pool("CartPole-v1", 4, 2, device="cpu")
    pool.async_reset()
    with pytest.raises(ValueError, match="batch_size=4"):
        pool.xla()
    with pytest.raises(ValueError, match="does not go together with infos"):
        gpuzoo.make_pool("Maze-v0", 4, device="cpu", infos=True).xla()


def test_mistakes():
    env, params = gpuzoo.jax.make("CartPole-v1", 2)
    _, state = env.reset(0)
    with pytest.raises(ValueError, match=r"action must have shape \(2,\), not \(3,\)"):
        env.step(None, state, np.zeros(3, int))
    with pytest.raises(TypeError, match="action must be in Discrete"):
        env.step(None, state, np.zeros(2))
    with pytest.raises(ValueError, match="negative"):
        env.reset(-1)
    with pytest.raises(TypeError, match=r"a key of jax\.random or a seed"):
        env.reset(0.5)
    with pytest.raises(TypeError, match=r"no run-time parameter 'gravitation'.*gravity"):
        params.replace(gravitation=1.0)
    with pytest.raises(ValueError, match="masscart"):
        env.step(None, state, np.zeros(2, int), params.replace(masscart=-1.0))
    with pytest.raises(ValueError, match="max_steps_in_episode must be a positive int"):
        env.reset(0, params.replace(max_steps_in_episode=0))
    with pytest.raises(ValueError, match=r"gravity must be a number or have shape \(2,\), not \(3,\)"):
        env.reset(0, params.replace(gravity=np.ones(3)))
    with pytest.raises(TypeError, match="no argument device"):
        gpuzoo.jax.make("CartPole-v1", device="cuda")
    with pytest.raises(ValueError, match="no action masks"):
        env.action_mask(state)
    with pytest.raises(ValueError, match="num_envs must be at least 1"):
        gpuzoo.jax.make("CartPole-v1", 0)
