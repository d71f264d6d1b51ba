"""The engine: forms of the kernels, snapshots, state, settings. What holds for every game is in gpuzoo.testing."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from conftest import wide
from toys import faulty
from toys.glide import Glide
from toys.herd import Herd
from toys.lamps import Lamps
from toys.screen import Screen

import gpuzoo
from gpuzoo import Simulator, registry, testing
from gpuzoo.core.backend_cpu import CpuBackend
from gpuzoo.testing.tools import assert_same, leaves_of, read

# ---- the thread form (simt) ----


def assert_simt_equals_cpu(game, lanes, num_envs, steps, mode="same_step", **config):
    options = {"autoreset_mode": mode, "max_episode_steps": 5, **config}
    cpu = Simulator(game, num_envs, device="cpu", **options)
    simt = Simulator(game, num_envs, backend=CpuBackend(simt=True, flags=("-Og",)), lanes=lanes, **options)
    for sim in (cpu, simt):
        sim.reset(seed=11)
    assert_same("reset", read(cpu), read(simt))
    for step in range(steps):
        for sim in (cpu, simt):
            sim.random_actions()
        assert_same("random actions", {"a": cpu.arrays["action"]}, {"a": simt.arrays["action"]})
        for sim in (cpu, simt):
            sim.step()
        assert_same(f"{lanes} lanes, step {step}", read(cpu), read(simt))
    for sim in (cpu, simt):
        sim.rollout(4)
    assert_same(f"{lanes} lanes, rollout", read(cpu), read(simt))
    mask = np.arange(num_envs) % 2 == 0
    for sim in (cpu, simt):
        sim.reset(mask=mask)
    assert_same(f"{lanes} lanes, partial reset", read(cpu), read(simt))
    for sim in (cpu, simt):
        sim.random_actions()
        sim.step(np.flatnonzero(~mask))
    assert_same(f"{lanes} lanes, partial step", read(cpu), read(simt))
    for step in range(5):
        for sim in (cpu, simt):
            sim.between_episodes = read
            sim.random_actions()
            sim.step()
        assert_same(f"{lanes} lanes, step {step} in halves", read(cpu), read(simt))


@pytest.mark.by_kind
def test_simt_equals_cpu(game):
    lanes = game().lanes(game.Config())
    assert_simt_equals_cpu(game, lanes, 2 if lanes > 32 else 5, 4 if lanes >= 128 else 9)


@pytest.mark.rotates
@pytest.mark.parametrize("lanes", [1, 8, 32, 64])
def test_simt_with_other_lanes(wide_game, lanes):
    assert_simt_equals_cpu(wide_game, lanes, 3, 6, mode="next_step" if lanes % 3 else "disabled")


@pytest.mark.rotates
@pytest.mark.parametrize("lanes", [2, 16, 128])
def test_simt_with_many_agents(lanes):
    """More agents than lanes, and reductions over several groups of 32."""
    assert_simt_equals_cpu(Herd, lanes, 2, 4, wolfs=5, sheeps=40, cells=60, mood="wild")


@pytest.mark.parametrize("mode", ["same_step", "next_step", "disabled"])
def test_a_lone_agent_that_has_left_by_a_state_that_was_written(mode):
    """Its env ends in the next step, without a reward, a flag or a final return."""
    options = {"autoreset_mode": mode, "max_episode_steps": 7}
    sims = [Simulator(Glide, 70, backend=CpuBackend(simt=simt), **options) for simt in (False, True)]
    for sim in sims:
        sim.reset(seed=3)
        sim.rollout(5)
        sim.set_state({"alive": np.arange(70)[:, None] % 3 > 0})
    for step in range(4):
        for sim in sims:
            sim.random_actions()
            sim.step(None if step % 2 else np.arange(0, 70, 2))
        assert_same(f"step {step}", *map(read, sims))
        if step == 0:
            left = np.arange(0, 70, 6)
            assert sims[0].arrays["ended"][left].all()
            for name in ("reward", "terminated", "truncated"):
                assert not sims[0].arrays[name][left].any()


def test_a_lone_agent_is_terminated_by_any_number(tmp_path):
    """Rules may say more than true or false."""
    rules = Glide.source().read_text()
    loud = tmp_path / "loud.cuh"
    loud.write_text(rules.replace("x * x + y * y > 6.f;", "x * x + y * y > 6.f ? 2 : 0;"))
    assert loud.read_text() != rules

    class Loud(Glide):
        @classmethod
        def source(cls):
            return loud

    sims = [Simulator(game, 40, device="cpu", autoreset_mode="same_step") for game in (Glide, Loud)]
    ends = 0
    for sim in sims:
        sim.reset(seed=3)
    for step in range(60):
        for sim in sims:
            sim.random_actions()
            sim.step()
        assert_same(f"step {step}", *map(read, sims))
        ends += sims[0].arrays["terminated"].sum()
    assert ends > 20


@pytest.mark.rotates
def test_one_lane_of_a_wide_game_on_the_cpu(wide_game):
    """With one lane the state lies the other way round in memory."""
    sims = [Simulator(wide_game, 5, device="cpu", lanes=lanes, max_episode_steps=9) for lanes in (1, 4, None)]
    for sim in sims:
        sim.reset(seed=1)
        sim.rollout(40)
    for sim in sims[1:]:
        assert_same("lanes", read(sims[0]), read(sim))


def test_there_are_wide_games():
    assert wide(Herd)


# ---- settings that change while it runs ----


@pytest.mark.parametrize("old", ["next_step", "disabled"])
@pytest.mark.parametrize("game_", [Glide, Herd])
def test_a_waiting_env_goes_on_in_same_step_mode(game_, old):
    sim = Simulator(game_, 3, device="cpu", autoreset_mode=old, max_episode_steps=4)
    sim.reset(seed=0)
    sim.rollout(4)
    assert sim.arrays["waiting"].any()
    sim.autoreset_mode = "same_step"
    for _ in range(9):
        sim.random_actions()
        sim.step()
        assert not sim.arrays["waiting"].any()


def test_the_time_limit_can_change():
    sim = Simulator(Glide, 2, device="cpu", autoreset_mode="disabled", max_episode_steps=100)
    sim.reset(seed=0)
    sim.max_episode_steps = 2
    sim.rollout(2)
    assert sim.arrays["truncated"].all()
    sim.max_episode_steps = None
    assert sim.max_episode_steps is None
    assert Simulator(Glide, 2, device="cpu", max_episode_steps=-1).max_episode_steps is None
    assert Simulator(Glide, 2, device="cpu").max_episode_steps == 50


def test_integer_parameters_are_constants_and_literals_are_checked():
    calm, wild = (Simulator(Herd, 2, device="cpu", mood=mood) for mood in ("calm", "wild"))
    for sim in (calm, wild):
        sim.reset(seed=3)
        sim.rollout(10)
    assert (calm.arrays["cell"] != wild.arrays["cell"]).any()
    assert Simulator(Herd, 2, device="cpu", sheeps=7).arrays["last"].shape == (2, 7)


def test_set_params_for_all_and_some():
    sim = Simulator(Herd, 4, device="cpu", bite=np.array([1.0, 2, 3, 4]))
    sim.set_params(bite=5.0)
    assert sim.params["bite"].tolist() == [5] * 4
    sim.set_params([1, 3], bite=[6.0, 7.0])
    assert sim.params["bite"].tolist() == [5, 6, 5, 7]
    sim.set_params(np.array([True, False, False, False]), bite=0.5)
    assert sim.params["bite"].tolist() == [0.5, 6, 5, 7]
    sim.set_params(hunger=0.25)
    assert sim.params["hunger"].tolist() == [0.25]
    assert sim.cfg.hunger == 0.25


# ---- state ----


@pytest.mark.by_kind
def test_state_of_all_and_some(game):
    sim = Simulator(game, 5, device="cpu")
    sim.reset(seed=0)
    sim.rollout(7)
    state = sim.state()
    assert set(state) == {*sim.program.fields, "elapsed_steps", "alive"}
    for name, field in sim.program.fields.items():
        assert state[name].shape == (5, *field.shape)
        assert str(state[name].dtype) == field.dtype
    for envs, rows in ((2, [2]), ([4, 1], [4, 1]), (np.array([True, False, True, False, False]), [0, 2]), (-1, [4])):
        assert_same(str(envs), {k: v[rows] for k, v in state.items()}, sim.state(envs))


@pytest.mark.by_kind
def test_set_state_puts_another_env_into_it(game):
    one, other = Simulator(game, 3, device="cpu"), Simulator(game, 2, device="cpu")
    one.reset(seed=0)
    one.rollout(6)
    while (one.arrays["terminated"].any(1) & ~one.arrays["ended"].astype(bool)).any():
        one.rollout(1)  # who leaves in a step may be seen after it, as it was still there; nothing of the state says so
    other.reset(seed=100)
    other.arrays["alive"][...] = one.arrays["alive"][[2, 0]]  # no part of the game's own state
    other.set_state(one.state([2, 0]))
    assert_same("state", one.state([2, 0]), other.state())
    seen = [
        {k: v for k, v in read(sim, envs).items() if k.startswith(("observation", "action_mask"))}
        for sim, envs in ((one, [2, 0]), (other, [0, 1]))
    ]
    assert_same("what is observed of that state", *seen)
    other.set_state({"elapsed_steps": np.array([3])}, 1)
    assert other.arrays["elapsed_steps"].tolist() == [int(one.arrays["elapsed_steps"][2]), 3]


def test_state_is_a_copy():
    sim = Simulator(Glide, 2, device="cpu")
    sim.reset(seed=0)
    state, snapshot = sim.state(), sim.snapshot()
    was = copy.deepcopy(state), {k: v.copy() for k, v in snapshot.arrays.items()}
    sim.rollout(5)
    assert_same("state", was[0], state)
    assert_same("snapshot", was[1], snapshot.arrays)


def test_snapshot_between_modes_and_forms():
    """A snapshot taken with a wait for an autoreset goes on in every other mode, and in the thread form."""
    source = Simulator(Herd, 4, device="cpu", autoreset_mode="next_step", max_episode_steps=6)
    source.reset(seed=2)
    source.rollout(6)
    assert source.arrays["waiting"].any()
    snapshot = source.snapshot()
    simt = Simulator(
        Herd, 4, backend=CpuBackend(simt=True, flags=("-Og",)), autoreset_mode="next_step", max_episode_steps=6
    )
    simt.restore(snapshot.numpy())
    one = Simulator(Herd, 4, device="cpu", lanes=1, autoreset_mode="next_step", max_episode_steps=6)
    one.restore(snapshot)
    for _ in range(9):
        for sim in (source, simt, one):
            sim.random_actions()
            sim.step()
        assert_same("simt", read(source), read(simt))
        assert_same("one lane", read(source), read(one))
    same = Simulator(Herd, 4, device="cpu", autoreset_mode="same_step", max_episode_steps=6)
    same.restore(snapshot)
    same.rollout(3)
    assert not same.arrays["waiting"].any()


_CHILD = """
import json, pickle, sys
import numpy as np
import gpuzoo
with open(sys.argv[1], "rb") as file:
    name, snapshot = pickle.load(file)
sim = gpuzoo.Simulator(gpuzoo.get(name), 2, device="cpu", autoreset_mode="same_step")
sim.restore(snapshot)
sim.rollout(25)
print(json.dumps([sim.arrays[k].tobytes().hex() for k in ("observation", "reward", "elapsed_steps")]))
"""


@pytest.mark.rotates
def test_snapshot_goes_on_in_another_process(registered_game, tmp_path):
    sim = Simulator(registered_game, 5, device="cpu", autoreset_mode="same_step")
    sim.reset(seed=9)
    sim.rollout(13)
    file = tmp_path / "snapshot"
    file.write_bytes(pickle.dumps((registered_game.id, sim.snapshot([3, 1]).numpy())))
    out = subprocess.run([sys.executable, "-c", _CHILD, str(file)], capture_output=True, text=True, check=True).stdout
    sim.rollout(25)
    assert json.loads(out) == [
        sim.arrays[k][[3, 1]].tobytes().hex() for k in ("observation", "reward", "elapsed_steps")
    ]


def test_snapshot_has_its_envs_parameters():
    sim = Simulator(Herd, 3, device="cpu", bite=np.array([1.0, 2, 3]))
    sim.reset(seed=0)
    other = Simulator(Herd, 2, device="cpu", bite=np.array([7.0, 7]))
    other.restore(sim.snapshot([2, 0]))
    assert other.params["bite"].tolist() == [3, 1]


def test_actions_of_the_game_do_not_change_with_the_policy():
    """Random actions are a stream of their own: chance in the game is the same whoever chose the actions."""
    one, other = (Simulator(Glide, 2, device="cpu") for _ in range(2))
    for sim in (one, other):
        sim.reset(seed=0)
    one.rollout(1)
    other.arrays["action"][...] = one.arrays["action"]
    other.step()
    assert_same("step", read(one), read(other))


def test_nbytes_counts_all_arrays():
    sim = Simulator(Glide, 64, device="cpu")
    assert sim.nbytes >= sum(a.nbytes for n, a in sim.arrays.items())


def test_debug_names_env_and_agent():
    sim = Simulator(Herd, 3, device="cpu", debug=True)
    sim.reset(seed=0)
    sim.step()
    sim.arrays["action"][2, 3] = 3
    with pytest.raises(ValueError, match=r"action 3 of sheep_1 in env 2 is not in Discrete\(3\)"):
        sim.step()
    sim = Simulator(Glide, 2, device="cpu", debug=True)
    sim.reset(seed=0)
    sim.arrays["action"][1, 0, 1] = np.nan
    with pytest.raises(ValueError, match="action nan of agent_0 in env 1"):
        sim.step()


# ---- the batched multi-agent interface ----


@pytest.mark.by_kind
def test_batch_env(game):
    env = gpuzoo.make(game, 4, device="cpu", max_episode_steps=8)
    sim = env.simulator
    observations, infos = env.reset(seed=1)
    assert set(observations) == set(env.groups)
    for step in range(30):
        actions = env.random_actions()
        for group, count in env.groups.items():
            assert actions[group].shape == (4, count, *env.action_spaces[group].shape)
        if step % 2:
            actions = {g: a.copy() for g, a in actions.items()}
        observations, rewards, terminations, truncations, infos = env.step(actions)
        for group, count in env.groups.items():
            for values in (rewards, terminations, truncations, infos["alive"], infos["episode"]["r"]):
                assert values[group].shape == (4, count)
            for i in range(4):
                for k in range(count):
                    one = observations[group]
                    one = {n: v[i, k] for n, v in one.items()} if isinstance(one, dict) else one[i, k]
                    assert env.observation_spaces[group].contains(one)
        assert (infos["ended"] == sim.arrays["ended"]).all()
        first = next(iter(env.groups))
        final = infos["final_obs"][first]
        assert isinstance(final, dict) == bool(sim.layout.mask_size)
    env.close()
    env.close()


def test_batch_env_copies_and_torch():
    torch = pytest.importorskip("torch")
    plain = gpuzoo.make(Herd, 3, device="cpu")
    kept = gpuzoo.make(Herd, 3, device="cpu", copy=True)
    tensors = gpuzoo.make(Herd, 3, device="cpu", output="torch")
    for env in (plain, kept, tensors):
        env.reset(seed=4)
    first = kept.step(kept.random_actions())
    was = copy.deepcopy(first)
    plain.step(plain.random_actions())
    last = tensors.step(tensors.random_actions())
    assert isinstance(last[1]["wolf"], torch.Tensor)
    for _ in range(3):
        kept.step({g: np.zeros_like(a) for g, a in kept.random_actions().items()})
    assert_same("kept", leaves_of(was), leaves_of(first))
    assert_same("torch", leaves_of(last), leaves_of(was))
    whole = np.zeros((3, 5), np.int64)
    assert plain.step(whole)[1]["wolf"].shape == (3, 2)
    mask = np.array([False, True, False])
    options = {"reset_mask": mask, "params": {}}
    plain.reset(options=options)
    assert options["reset_mask"] is mask
    assert plain.simulator.arrays["elapsed_steps"].tolist() == [2, 0, 2]
    assert plain.render(1).shape == (480, 480, 3)


@pytest.mark.parametrize("num_envs", [1, 3, 64, 1000])
def test_arrays_begin_cache_lines(num_envs):
    env = gpuzoo.make_vec("CartPole-v1", num_envs, device="cpu")
    kept = [env.reset(seed=0)[0]]
    for _ in range(5):
        kept.append(env.step(np.zeros(num_envs, np.int64))[0])  # holds them, so that each step needs new ones
        arrays = env.unwrapped.simulator.arrays
        assert not any(array.ctypes.data % 64 for array in arrays.values())
    assert len({array.ctypes.data for array in kept}) == 6


def test_lamps_are_vectorised_without_a_branch():
    """The toys cover both forms of `advance`, and both ways to settle."""
    lamps = Simulator(Lamps, 1, device="cpu").program.code
    assert "#define GZ_BRANCHLESS 1" in lamps
    assert "#define GZ_SHORT 1" in lamps
    assert "#define GZ_BRANCHLESS 0" in Simulator(Glide, 1, device="cpu").program.code


def test_agents_who_end_together_are_vectorised():
    forms = {"SwitchRiddle-v0": 1, "CoinGame-v0": 1, "ConnectFour-v0": 0, "SimpleSpread-v0": 0}
    for game, vectorised in forms.items():
        sim = Simulator(registry.get(game), 1, device="cpu")
        assert f"#define GZ_BRANCHLESS {vectorised}" in sim.program.code
    many = Simulator(registry.get("SwitchRiddle-v0"), 1, device="cpu", num_agents=5)
    assert "#define GZ_BRANCHLESS 0" in many.program.code


@pytest.mark.by_kind
@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_neighbours_together_are_as_one_by_one(game, mode):
    """Neighbours are stepped and settled in vector instructions, but those that are named singly are not."""
    limit = min(game.max_episode_steps or 6, 6)
    together, alone = (
        Simulator(game, 77, device="cpu", autoreset_mode=mode, max_episode_steps=limit) for _ in range(2)
    )
    for sim in (together, alone):
        sim.reset(seed=5)
        sim.reset(mask=np.arange(77) % 3 == 0)
    for step in range(2 * limit + 2):
        if step == 3:
            for sim in (together, alone):  # from here on some end later than others
                sim.reset(mask=np.arange(77) % 5 == 0)
        together.random_actions()
        alone.arrays["action"][...] = together.arrays["action"]
        together.step()
        for first in (1, 0):
            alone.step(np.arange(first, 77, 2))
        assert_same(f"step {step}", read(together), read(alone))
        if mode == "disabled" and step % limit == limit - 1:
            for sim in (together, alone):
                sim.reset(mask=sim.arrays["ended"] | sim.arrays["waiting"])


@pytest.mark.by_kind
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_waiting_envs_begin_when_the_mode_changes(game, mode):
    together, alone = (
        Simulator(game, 77, device="cpu", autoreset_mode="disabled", max_episode_steps=2) for _ in range(2)
    )
    for sim in (together, alone):
        sim.reset(seed=5)
        sim.rollout(3)
        assert sim.arrays["waiting"].all()
        sim.autoreset_mode = mode
    together.step()
    for first in (1, 0):
        alone.step(np.arange(first, 77, 2))
    assert not together.arrays["waiting"].any()
    assert_same("the first step in that mode", read(together), read(alone))


@pytest.mark.rotates
@pytest.mark.parametrize("fault", faulty.FAULTS)
def test_checks_find_faults(fault, tmp_path):
    """A faulty game is refused by the check that is meant for it."""
    check, game = faulty.make(fault, tmp_path)
    with pytest.raises(AssertionError):
        testing.CHECKS[check](game)


def test_check_env_names_the_check(tmp_path):
    _, game = faulty.make("out of space", tmp_path)
    with pytest.raises(AssertionError, match=r"fails spaces: .* is not in"):
        testing.check_env(game)


# ---- a step of some envs ----


@pytest.mark.parametrize(
    ("envs", "error", "message"),
    [
        ([1, 1], ValueError, "each env can be named once"),
        ([0, -3], ValueError, "each env can be named once"),
        ([3], IndexError, "below 3"),
        ([0.5], TypeError, "indices"),
        ([True, False], ValueError, "shape \\(3,\\)"),
    ],
)
def test_wrong_envs_to_step_change_nothing(envs, error, message):
    sim = Simulator(Herd, 3, device="cpu")
    sim.reset(seed=0)
    before = read(sim)
    with pytest.raises(error, match=message):
        sim.step(envs)
    assert_same("after the refusal", before, read(sim))


def test_no_env_to_step():
    sim = Simulator(Herd, 3, device="cpu")
    sim.reset(seed=0)
    before = read(sim)
    sim.step([])
    assert_same("after no step", before, read(sim))


def test_debug_looks_only_at_the_envs_that_are_stepped():
    sim = Simulator(Lamps, 3, device="cpu", debug=True)
    sim.reset(seed=0)
    sim.arrays["action"][...] = 0
    sim.arrays["action"][1] = 99
    sim.step([0, 2])
    with pytest.raises(ValueError, match="99"):
        sim.step([1])


def test_text_constants_and_tables():
    """What follows from a text in the configuration reaches the rules as constants and tables."""
    simulator = Simulator(Screen, 5, device="cpu", picture="..#/#.#/...", max_episode_steps=None)
    assert simulator.arrays["seen"].shape == (5, 3, 3)
    simulator.reset(seed=0)
    simulator.rollout(50)
    dark = np.array([[0, 0, 1], [1, 0, 1], [0, 0, 0]], bool)
    picture = simulator.backend.to_numpy(simulator.arrays["observation"]).reshape(5, 3, 3, 3)
    assert not picture[:, dark].any()
    assert picture[:, ~dark, 2].all()
    other = Simulator(Screen, 1, device="cpu", picture="../..")
    other.reset(seed=0)
    with pytest.raises(ValueError, match="does not fit"):
        other.restore(simulator.snapshot(0))
