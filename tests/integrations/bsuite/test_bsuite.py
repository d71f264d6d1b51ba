"""The games of bsuite against the original ones: from states drawn at random, and over 1,000 whole episodes each.

(DiscountingChain: 300.) Both get the same random draws: what ours drew at a reset is put into theirs, and what ours
drew in a step is handed to theirs as the next number of its generator. Numbers are exact where nothing else is said:
bsuite computes in float64 and returns float32, and all of its observations are quotients of small integers, which both
round in the same way.
"""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from bsuite.environments import bandit, catch, deep_sea, discounting_chain, memory_chain, mnist, umbrella_chain
from bsuite.utils import datasets, wrappers
from scipy import stats

from gpuzoo import Simulator, get

EPS = 2.0**-24
EPISODES = 1000


class Draws:
    """A generator that returns what it was handed, and can be asked whether it was."""

    def __init__(self):
        self.uniform = self.normal = None
        self.coins = []
        self.normals = 0

    def rand(self):
        return self.uniform

    def randn(self):
        self.normals += 1
        return self.normal

    def binomial(self, n, p, size=None):
        assert (n, p) == (1, 0.5)
        return self.coins.pop(0) if size is None else np.array([self.coins.pop(0) for _ in range(size)], int)


def simulator(name, n, **options):
    sim = Simulator(get(name), n, autoreset_mode="disabled", device="cpu", **options)
    sim.reset(seed=3)
    return sim


def step(sim, actions):
    sim.arrays["action"][:, 0, 0] = actions
    sim.step()
    assert not sim.arrays["truncated"].any()
    return sim.arrays["reward"][:, 0].astype(float), sim.arrays["terminated"][:, 0].copy()


def same_observations(sim, theirs):
    theirs = np.stack(theirs)
    assert theirs.dtype == sim.arrays["observation"].dtype
    np.testing.assert_array_equal(sim.arrays["observation"][:, 0], theirs.reshape(len(theirs), -1))


def follow(sim, envs, reward_bound=lambda theirs: 0.0, before=lambda k, env, action: None, hand=lambda k, env: None):
    """One step of ours and of theirs.

    ``hand`` gives an env of theirs what ours drew; ``before`` is called with it and its action ahead of the step.
    """
    rng = np.random.default_rng(int(sim.arrays["elapsed_steps"][0]))
    actions = rng.integers(0, envs[0].action_spec().num_values, sim.num_envs)
    for k, env in enumerate(envs):
        before(k, env, actions[k])
    rewards, ended = step(sim, actions)
    observations = []
    for k, env in enumerate(envs):
        hand(k, env)
        theirs = env.step(int(actions[k]))
        assert abs(rewards[k] - theirs.reward) <= reward_bound(theirs.reward), (k, rewards[k], theirs.reward)
        assert ended[k] == theirs.last()
        observations.append(theirs.observation)
    same_observations(sim, observations)
    return rewards, ended


# ---- catch ----


def catch_of(state, k, **options):
    env = catch.Catch(**options)
    env.reset()
    env._ball_x, env._ball_y, env._paddle_x = (int(state[n][k]) for n in ("ball_x", "ball_y", "paddle_x"))
    return env


@pytest.mark.parametrize("options", [{}, {"rows": 2, "columns": 1}, {"rows": 7, "columns": 12}], ids=str)
def test_catch_from_any_state(options):
    n, rng = 1000, np.random.default_rng(0)
    sim = simulator("Catch-bsuite-v0", n, **options)
    rows, columns = sim.cfg.rows, sim.cfg.columns
    state = {
        "ball_x": rng.integers(0, columns, n),
        "ball_y": rng.integers(0, rows - 1, n),
        "paddle_x": rng.integers(0, columns, n),
    }
    sim.set_state({name: x.astype(np.int32) for name, x in state.items()})
    envs = [catch_of(state, k, **options) for k in range(n)]
    same_observations(sim, [env._observation() for env in envs])
    rewards, _ = follow(sim, envs)
    assert set(rewards) <= {-1.0, 0.0, 1.0}
    assert (rewards != 0).any()


@pytest.mark.parametrize("scale", [1.0, 0.03, 1000.0])
def test_catch_episodes(scale):
    sim = simulator("Catch-bsuite-v0", EPISODES, reward_scale=scale)
    envs = [wrappers.RewardScale(catch_of(sim.state(), k), scale) for k in range(EPISODES)]
    for t in range(9):
        rewards, ended = follow(sim, envs, lambda theirs: EPS * abs(theirs))
        assert ended.all() == ended.any() == (t == 8)
    assert 0.1 < (rewards > 0).mean() < 0.5
    columns = np.bincount(simulator("Catch-bsuite-v0", 50_000).state()["ball_x"], minlength=5)
    assert (abs(columns - 10_000) < 5 * np.sqrt(8000)).all()


@pytest.mark.parametrize("name", ["Catch-bsuite-v0", "MNISTBandit-bsuite-v0", "SimpleBandit-bsuite-v0"])
def test_reward_noise(name):
    """Theirs gets the normal numbers that ours has in the same steps where all rewards are 0."""
    n, steps, scale = 20_000, 9 if name.startswith("Catch") else 1, 3.0
    plain, noise, ours = (
        simulator(name, n, **kw) for kw in ({}, {"reward_scale": 0.0, "noise_scale": 1.0}, {"noise_scale": scale})
    )

    class Plain:
        reward = 0.0

        def step(self, action):
            return catch.dm_env.transition(self.reward, None)

    drawn = []
    for _ in range(steps):
        actions = np.random.default_rng(0).integers(0, 3, n)
        (rewards, _), (normal, _), (perturbed, _) = (step(sim, actions) for sim in (plain, noise, ours))
        for reward, z, got in zip(rewards[:500], normal[:500], perturbed[:500], strict=True):
            env = wrappers.RewardNoise(Plain(), scale)
            env._env.reward = float(reward)
            env._rng = Draws()
            env._rng.normal = float(z)
            wanted = env.step(0).reward
            assert abs(got - wanted) <= EPS * (scale * abs(z) + abs(wanted))
        drawn.append(normal)
    assert stats.kstest(np.concatenate(drawn), "norm").pvalue > 1e-3


# ---- deep sea ----

DEEP = [
    {},
    {"size": 10, "mapping_seed": 0},
    {"size": 20, "unscaled_move_cost": 0.3},
    {"size": 5, "randomize_actions": False},
    {"size": 10, "deterministic": False},
    {"size": 3, "deterministic": False, "mapping_seed": 7},
]


def deep_sea_of(cfg, row=0, column=0):
    options = {name: getattr(cfg, name) for name in deep_sea.DeepSea.__init__.__annotations__ if hasattr(cfg, name)}
    env = deep_sea.DeepSea(**options)
    env.reset()
    env._row, env._column, env._rng = int(row), int(column), Draws()
    return env


def deep_sea_draws(sim, was):
    """(before, hand) of `follow`, and the list of normal numbers. A gust shows in the column, noise in the reward."""
    normals, gusts = [], []

    def before(k, env, action):
        was[k] = env._row, env._column, action == env._action_mapping[env._row, env._column]

    def hand(k, env):
        row, column, right = was[k]
        n, cfg = sim.cfg.size, sim.cfg
        calm = int(sim.arrays["column"][k]) > column
        env._rng.uniform = 1.0 if calm else 0.0
        reward = float(right and column == n - 1) - (cfg.unscaled_move_cost / n if right else 0.0)
        env._rng.normal = float(sim.arrays["reward"][k, 0]) - reward
        noisy = not cfg.deterministic and row == n - 1 and column in (0, n - 1)
        if noisy:
            normals.append(env._rng.normal)
        if right and column < n - 1:
            gusts.append(not calm)

    return before, hand, normals, gusts


@pytest.mark.filterwarnings("ignore:Environment is in debug mode")
@pytest.mark.parametrize("options", DEEP, ids=str)
def test_deep_sea_from_any_state(options):
    n, rng = 1000, np.random.default_rng(0)
    sim = simulator("DeepSea-bsuite-v0", n, **options)
    rows, columns = rng.integers(0, sim.cfg.size, (2, n)).astype(np.int32)
    at_the_bottom = rng.random(n) < 0.3
    rows[at_the_bottom] = sim.cfg.size - 1
    sim.set_state({"row": rows, "column": columns})
    envs = [deep_sea_of(sim.cfg, *place) for place in zip(rows, columns, strict=True)]
    same_observations(sim, [env._get_observation() for env in envs])
    before, hand, normals, gusts = deep_sea_draws(sim, {})
    # 1, cost / size, their difference and the noise: each is rounded once to float32.
    rewards, ended = follow(sim, envs, lambda theirs: 4 * EPS * max(1.0, abs(theirs)), before, hand)
    assert (ended == (rows == sim.cfg.size - 1)).all()
    assert rewards.max() > 0.6
    called = [env._rng.normals for env in envs]
    bottom = (rows == sim.cfg.size - 1) & ((columns == 0) | (columns == sim.cfg.size - 1))
    if sim.cfg.deterministic:
        assert not any(called)
        assert not any(gusts)
    else:
        assert (np.array(called) == bottom).all()
        assert stats.kstest(normals, "norm").pvalue > 1e-3
        p = 1 / sim.cfg.size
        assert abs(np.mean(gusts) - p) < 5 * np.sqrt(p / len(gusts))


@pytest.mark.filterwarnings("ignore:Environment is in debug mode")
@pytest.mark.parametrize("options", DEEP, ids=str)
def test_deep_sea_episodes(options):
    sim = simulator("DeepSea-bsuite-v0", EPISODES, **options)
    envs = [deep_sea_of(sim.cfg) for _ in range(EPISODES)]
    before, hand, _, _ = deep_sea_draws(sim, {})
    for t in range(sim.cfg.size):
        _, ended = follow(sim, envs, lambda theirs: 4 * EPS * max(1.0, abs(theirs)), before, hand)
        assert ended.all() == ended.any() == (t == sim.cfg.size - 1)


def test_the_treasure_of_the_deep_sea_is_found():
    sim = simulator("DeepSea-bsuite-v0", 1)
    env = deep_sea_of(sim.cfg)
    total = 0.0
    for row in range(8):
        reward, _ = step(sim, env._action_mapping[row, row])
        total += float(reward[0])
    assert total == pytest.approx(env._optimal_return, abs=8 * EPS)


# ---- memory ----


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"memory_length": 1},
        {"memory_length": 2, "num_bits": 17},
        {"memory_length": 3, "num_bits": 40},
        {"num_bits": 64},
    ],
    ids=str,
)
def test_memory_chain_episodes(options):
    sim = simulator("MemoryChain-bsuite-v0", EPISODES, **options)
    length, bits, state = sim.cfg.memory_length, sim.cfg.num_bits, sim.state()
    contexts = state["context"].astype(np.uint64)[:, None] >> np.arange(bits, dtype=np.uint64) & np.uint64(1)
    envs = []
    for k in range(EPISODES):
        env = memory_chain.MemoryChain(memory_length=length, num_bits=bits)
        env.reset()
        env._context, env._query = contexts[k].astype(int), int(state["query"][k])
        envs.append(env)
    same_observations(sim, [env._get_observation() for env in envs])
    for t in range(length + 1):
        rewards, ended = follow(sim, envs)
        assert ended.all() == ended.any() == (t == length)
    assert 0.4 < (rewards == 1).mean() < 0.6
    assert (abs(contexts.mean(0) - 0.5) < 5 * 0.5 / np.sqrt(EPISODES)).all()
    assert (abs(np.bincount(state["query"], minlength=bits) - EPISODES / bits) < 5 * np.sqrt(EPISODES / bits)).all()


# ---- umbrella ----


@pytest.mark.parametrize(
    "options", [{}, {"chain_length": 1}, {"n_distractor": 20}, {"chain_length": 3, "n_distractor": 100}], ids=str
)
def test_umbrella_chain_episodes(options):
    sim = simulator("UmbrellaChain-bsuite-v0", EPISODES, **options)
    length, distractors, state = sim.cfg.chain_length, sim.cfg.n_distractor, sim.state()

    def distractors_of(k):
        return sim.arrays["observation"][k, 0, 3:].astype(int).tolist()

    envs = []
    for k in range(EPISODES):
        env = umbrella_chain.UmbrellaChain(chain_length=length, n_distractor=distractors)
        env.reset()
        env._rng = Draws()
        env._need_umbrella, env._has_umbrella = int(state["need_umbrella"][k]), int(state["has_umbrella"][k])
        env._rng.coins = distractors_of(k)
        envs.append(env)
    same_observations(sim, [env._get_observation() for env in envs])

    def hand(k, env):
        last = sim.arrays["elapsed_steps"][k] == length
        env._rng.coins = [] if last else [int(sim.arrays["reward"][k, 0] > 0)]
        env._rng.coins += distractors_of(k)

    seen = [state["need_umbrella"], state["has_umbrella"], *sim.arrays["observation"][:, 0, 3:].T.copy()]
    for t in range(length):
        rewards, ended = follow(sim, envs, hand=hand)
        assert not any(env._rng.coins for env in envs)
        assert ended.all() == ended.any() == (t == length - 1)
        seen += [rewards > 0, *sim.arrays["observation"][:, 0, 3:].T.copy()]
    coins = np.array(seen, float) - 0.5
    assert (abs(coins.mean(1)) < 5 * 0.5 / np.sqrt(EPISODES)).all()
    together = coins @ coins.T / EPISODES * 4  # correlations of all pairs, over steps too
    assert (abs(together - np.eye(len(coins))) < 6 / np.sqrt(EPISODES)).all()


# ---- discounting ----


@pytest.mark.parametrize("seed", [0, 3, 17])
def test_discounting_chain_episodes(seed):
    episodes = 300  # of 100 steps
    sim = simulator("DiscountingChain-bsuite-v0", episodes, mapping_seed=seed)
    envs = [discounting_chain.DiscountingChain(mapping_seed=seed) for _ in range(episodes)]
    same_observations(sim, [env.reset().observation for env in envs])
    returns = np.zeros(episodes)
    for t in range(100):
        rewards, ended = follow(sim, envs, lambda theirs: EPS * theirs)
        returns += rewards
        assert ended.all() == ended.any() == (t == 99)
    assert set(np.round(returns, 6)) == {1.0, 1.1}


# ---- bandits ----


@pytest.mark.parametrize("options", [{}, {"mapping_seed": 19}, {"num_actions": 300, "mapping_seed": 5}], ids=str)
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_simple_bandit(options, scale):
    sim = simulator("SimpleBandit-bsuite-v0", EPISODES, reward_scale=scale, **options)
    arguments = {"mapping_seed": 0, **options}
    envs = [wrappers.RewardScale(bandit.SimpleBandit(**arguments), scale) for _ in range(EPISODES)]
    same_observations(sim, [env.reset().observation for env in envs])
    rewards, ended = follow(sim, envs, lambda theirs: 2 * EPS * theirs)
    assert ended.all()
    assert len(set(rewards)) > 9


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Files in MNIST's format, which bsuite reads too."""
    rng = np.random.default_rng(0)
    for part, count in (("train", 300), ("t10k", 1)):
        images = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        labels = rng.integers(0, 10, count, dtype=np.uint8)
        head = b"".join(x.to_bytes(4, "big") for x in (2051, count, 28, 28))
        (tmp_path / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + images.tobytes()))
        head = b"".join(x.to_bytes(4, "big") for x in (2049, count))
        (tmp_path / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(head + labels.tobytes()))
    monkeypatch.setattr(datasets.load_mnist, "__defaults__", (str(tmp_path),))
    monkeypatch.setattr(datasets, "urlretrieve", None)
    return str(tmp_path)


@pytest.mark.parametrize("fraction", [1.0, 0.5, 0.07])
def test_mnist_bandit(files, fraction):
    theirs = mnist.MNISTBandit(fraction=fraction)
    sim = simulator("MNISTBandit-bsuite-v0", EPISODES, data=files, fraction=fraction)
    index = sim.arrays["index"].copy()
    assert set(index) == set(range(theirs._num_data)) or fraction == 1.0
    assert index.max() < theirs._num_data

    class Next:
        def randint(self, n):
            assert n == theirs._num_data
            return index[k]

    theirs._rng = Next()
    observations = sim.arrays["observation"].copy()
    actions = np.random.default_rng(0).integers(0, 10, EPISODES)
    rewards, ended = step(sim, actions)
    assert ended.all()
    assert 0.05 < (rewards > 0).mean() < 0.15
    ends = []
    for k in range(EPISODES):
        begin = theirs.reset()
        assert (observations[k, 0] == begin.observation.ravel()).all()
        ends.append(theirs.step(int(actions[k])))
        assert rewards[k] == ends[k].reward
        assert ends[k].last()
    same_observations(sim, [end.observation for end in ends])


def test_mnist_bandit_with_pixels_as_they_are(files):
    theirs = mnist.MNISTBandit()
    sim = simulator("MNISTBandit-bsuite-v0", 100, data=files, signed_pixels=False)
    wanted = theirs._images.view(np.uint8)[sim.arrays["index"]].astype(np.float32) / 255
    np.testing.assert_array_equal(sim.arrays["observation"][:, 0], wanted.reshape(100, -1))
