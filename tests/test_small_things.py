"""What is made once and used by every further env: right where something is different, and fast where nothing is."""

from __future__ import annotations

import copy
import itertools
import pickle
import shutil

import gymnasium
import numpy as np
import pytest
from toys.glide import Glide
from toys.orchard import Orchard

import gpuzoo
from gpuzoo import Simulator, SingleEnv
from gpuzoo.core import codegen
from gpuzoo.core.backend_cpu import LINE, CpuBackend
from gpuzoo.core.layout import Shapes
from gpuzoo.interfaces import single

ID = "gpuzoo/CartPole-v1"


@pytest.fixture
def generated(monkeypatch):
    """The calls of the code generator."""
    calls = []
    program = codegen.program
    monkeypatch.setattr(codegen, "program", lambda *args: calls.append(args) or program(*args))
    return calls


def test_one_more_env_needs_no_new_program(generated):
    Simulator(Glide, 1, device="cpu", past=5)
    before = len(generated)
    for num_envs in (1, 3):
        Simulator(Glide, num_envs, device="cpu", past=5)
    assert len(generated) == before
    Simulator(Glide, 1, device="cpu", past=6)
    Simulator(Glide, 2, device="cpu", past=5, wind=np.array([0.1, 0.2]))
    assert len(generated) == before + 2


def test_changed_rules_are_a_new_program(tmp_path):
    rules = shutil.copy(Glide.source(), tmp_path / "glide.cuh")
    game = type("Copy", (Glide,), {"id": "Copy-v0", "source": classmethod(lambda cls: tmp_path / "glide.cuh")})
    assert "// a line that no engine has" not in Simulator(game, 1, device="cpu").program.code
    with open(rules, "a") as file:
        file.write("// a line that no engine has\n")
    assert "// a line that no engine has" in Simulator(game, 1, device="cpu").program.code


def test_lanes_that_are_no_int_are_refused_and_not_remembered():
    for lanes in (True, 1.0, [1]):
        with pytest.raises(TypeError, match="lanes must be an int or None, not"):
            Simulator(Glide, 1, device="cpu", lanes=lanes, past=7)
    assert "#define LANES 1\n" in Simulator(Glide, 1, device="cpu", lanes=np.int64(1), past=7).program.code


def test_envs_share_no_space():
    """Spaces hold random generators, and bounds that somebody may change."""
    for make in (lambda: SingleEnv("Pendulum-v1"), lambda: gpuzoo.make_vec("Pendulum-v1", 2, device="cpu")):
        one, other = make(), make()
        one.action_space.seed(0)
        first = one.action_space.sample()
        one.action_space.seed(0)
        other.action_space.seed(1)
        np.testing.assert_array_equal(one.action_space.sample(), first)
        one.observation_space.low[...] = 0
        assert other.observation_space.low.min() < 0
        assert make().observation_space.low.min() < 0
    ours, theirs = (Simulator(Orchard, 1, device="cpu").layout.state_space for _ in range(2))
    assert ours == theirs
    assert ours is not theirs


def test_small_arrays_share_no_cache_line():
    backend = CpuBackend(1)
    shapes = [(1,), (3,), (1,), (2000,), (1,), (100,)] * 30
    named = Shapes(tuple(map(str, range(180))), tuple((shape, "float32") for shape in shapes))
    made = [pair for _ in range(2) for pair in zip(*backend.zeros_all(named), strict=True)]
    assert [array.shape for array, _ in made] == shapes * 2
    places = sorted((address, array.nbytes) for array, address in made)
    for array, address in made:
        assert address == backend.address(array)
        assert address % LINE == 0
        assert not array.any()
        array[...] = 1
    for (address, nbytes), (after, _) in itertools.pairwise(places):
        assert -(-(address + nbytes) // LINE) * LINE <= after


def test_a_further_env_is_built_at_first_use():
    SingleEnv("CartPole-v1", gravity=9.0)
    env = SingleEnv("CartPole-v1", gravity=9.0)
    assert "simulator" not in vars(env)
    assert env.gravity == 9.0
    env = SingleEnv("CartPole-v1", gravity=9.0)
    env.gravity = 5.0
    assert env.simulator.params["gravity"] == 5.0
    env = SingleEnv("CartPole-v1", gravity=9.0)
    assert env.observation_space.shape == (4,)
    for copied in (copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))):
        env = SingleEnv("CartPole-v1", gravity=9.0)
        other = copied(env)
        np.testing.assert_array_equal(env.reset(seed=3)[0], other.reset(seed=3)[0])
    with pytest.raises(AttributeError, match="no attribute 'gravitation'"):
        _ = SingleEnv("CartPole-v1", gravity=9.0).gravitation


def test_few_arguments_are_remembered(monkeypatch):
    monkeypatch.setattr(single, "_BUILT", {})
    monkeypatch.setattr(single, "_MOST", 3)
    for gravity in (1.0, 2.0, 3.0, 4.0, 5.0):
        SingleEnv("CartPole-v1", gravity=gravity)
    assert len(single._BUILT) == 3
    assert "simulator" in vars(SingleEnv("CartPole-v1", gravity=1.0)), "the oldest were forgotten"
    assert "simulator" not in vars(SingleEnv("CartPole-v1", gravity=5.0))


def test_a_closed_env_stays_closed():
    SingleEnv("CartPole-v1").close()
    env = SingleEnv("CartPole-v1")
    env.close()
    with pytest.raises(RuntimeError, match="this env was closed"):
        env.reset(seed=0)


def test_faulty_arguments_are_refused_by_each_make():
    for _ in range(2):
        with pytest.raises(ValueError, match="gravity must be"):
            SingleEnv("CartPole-v1", gravity=float("nan"))
        with pytest.raises(TypeError, match="has no parameter 'gravit'"):
            SingleEnv("CartPole-v1", gravit=1.0)
    SingleEnv("FrozenLake-v1", is_slippery=True)
    with pytest.raises(TypeError, match="is_slippery must be a bool, not 1"):
        SingleEnv("FrozenLake-v1", is_slippery=1)


def test_a_fault_of_the_first_use_is_told_at_each_use(monkeypatch):
    SingleEnv("CartPole-v1", gravity=9.0)
    env = SingleEnv("CartPole-v1", gravity=9.0)
    with monkeypatch.context() as broken:
        broken.setenv("CXX", "no-such-compiler")
        for _ in range(2):
            with pytest.raises(RuntimeError, match="'no-such-compiler' was not found"):
                env.reset(seed=0)
    assert env.reset(seed=0)[0].shape == (4,)


def test_the_random_generator_is_gymnasiums_own():
    """The game does not use it, so it is made when somebody asks for it."""
    env = SingleEnv("CartPole-v1")
    with pytest.raises(TypeError, match=r"seed must be an int or None, not \[5\]"):
        env.reset(seed=[5])
    with pytest.raises(ValueError, match="seed must not be negative: -1"):
        env.reset(seed=-1)
    assert env._np_random is None, "a refused seed changes nothing"
    env.reset(seed=5)
    assert env.np_random_seed == 5
    expected = gymnasium.utils.seeding.np_random(5)[0].random(3)
    env.reset()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(env)).np_random.random(3), expected)
    np.testing.assert_array_equal(env.np_random.random(3), expected)
    assert (env.np_random.random(3) != expected).all(), "it goes on"
    env.np_random = np.random.default_rng(1)
    assert env.np_random_seed == -1
    np.testing.assert_array_equal(env.np_random.random(2), np.random.default_rng(1).random(2))
    env.reset(seed=5)
    np.testing.assert_array_equal(env.np_random.random(3), expected)
