"""On a GPU everything happens on the stream that torch has made current, and a capture holds what it can hold.

On the stand-in for a GPU, which notes each operation with its stream.
"""

from __future__ import annotations

import copy
import gc
import sys
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from gpu_stand_in import WORK, DriverError, driver, installed, kernels  # noqa: E402
from ptx.host import load, ptx_of  # noqa: E402
from toys.glide import Glide  # noqa: E402
from toys.herd import Herd  # noqa: E402
from toys.lamps import Lamps  # noqa: E402
from toys.nim import Nim  # noqa: E402

import gpuzoo  # noqa: E402
from gpuzoo import Simulator, VectorEnv, make_pool, make_vec  # noqa: E402
from gpuzoo.core import nvrtc  # noqa: E402
from gpuzoo.core.backend import make_backend  # noqa: E402
from gpuzoo.core.backend_cuda import block_size  # noqa: E402
from gpuzoo.core.host import to_host  # noqa: E402
from gpuzoo.testing.tools import assert_same, leaves_of, read  # noqa: E402
from gpuzoo.testing.tools import to_host as read_out  # noqa: E402
from gpuzoo.wrappers.sb3 import SB3VecEnv  # noqa: E402
from gpuzoo.wrappers.vector import (  # noqa: E402
    FrameStackObservation,
    NormalizeObservation,
    NormalizeReward,
    RecordEpisodeStatistics,
)

OUTPUTS = ("numpy", "torch", "cupy")
MODES = ("next_step", "same_step", "disabled")


@pytest.fixture
def gpu():
    with installed() as driver:
        yield driver
    assert driver.failures == []


@pytest.fixture
def stream(gpu):
    """torch's current stream during the test. At its end nothing has been on another one."""
    own = torch.cuda.Stream()
    with torch.cuda.stream(own):
        yield own
    assert gpu.streams() <= {own.cuda_stream}, [e for e in gpu.entries(*WORK) if e.stream != own.cuda_stream][:5]


def sent(output, actions):
    """NumPy actions in the kind that goes with an output."""
    with driver.unwatched():
        if output == "torch":
            return torch.as_tensor(actions).cuda()
        return sys.modules["cupy"].asarray(actions) if output == "cupy" else actions


def ptx_kernels(code, name):
    """NVRTC's PTX, in place of the thread form."""
    return load(ptx_of(code, name), name)


def seen(value):
    """NumPy of what a call returned."""
    with driver.unwatched():
        return to_host(value)


def all_seen(value):
    """The arrays in what a call returned."""
    with driver.unwatched():
        return leaves_of(read_out(value))


# ---- interfaces ----


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize(
    "options", [{}, {"group": "sheep"}, {"group": "wolf", "masks": "info"}], ids=["all", "group", "masks"]
)
def test_vector_env(gpu, output, mode, options):
    """Rows of all agents, of a group, with padded observations and masks: on the stream, and as on a CPU."""
    options = {"num_worlds": 3, "autoreset_mode": mode, "max_episode_steps": 4, "statistics": True, **options}
    cpu = make_vec(Herd, device="cpu", **options)
    own = torch.cuda.Stream()
    with torch.cuda.stream(own):
        env = make_vec(Herd, device="cuda", output=output, **options)
        cpu.action_space.seed(1)
        assert_same("reset", leaves_of(cpu.reset(seed=1)), all_seen(env.reset(seed=1)))
        for step in range(6):
            actions = cpu.action_space.sample()
            want, got = cpu.step(actions), env.step(sent(output, actions))
            assert_same(f"step {step}", leaves_of(want[:4]), all_seen(got[:4]))
            assert want[4].keys() == got[4].keys() or output != "numpy"
            assert_same("prev_done", {"p": cpu.prev_done}, {"p": seen(env.prev_done)})
            if mode == "disabled" and step == 4:
                mask = np.ones(env.num_envs, bool)
                for one in (cpu, env):
                    one.reset(options={"reset_mask": sent(output, mask) if one is env else mask})
        action_mask = seen(env.action_mask)
        assert_same("masks", {"m": cpu.action_mask}, {"m": action_mask})
        env.close()
    assert gpu.streams() == {own.cuda_stream}


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("rules", [Herd, Nim])
def test_opponents(gpu, output, rules):
    """Whom a function plays, at the same time and in turns."""
    group = "sheep" if rules is Herd else "player_0"
    kinds = {"numpy": np.ndarray, "torch": torch.Tensor, "cupy": sys.modules["cupy"].ndarray}

    def policy(observations, masks):
        assert isinstance(observations, kinds[output])
        legal = seen(observations if masks is None else masks)[..., :3].argmax(-1).astype(np.int32)
        return sent(output, legal)

    def plain(observations, masks):
        return seen(observations if masks is None else masks)[..., :3].argmax(-1)

    options = {"num_worlds": 3, "group": group, "autoreset_mode": "same_step", "max_episode_steps": 5}
    cpu = make_vec(rules, device="cpu", opponents=plain, **options)
    own = torch.cuda.Stream()
    with torch.cuda.stream(own):
        env = make_vec(rules, device="cuda", output=output, opponents=policy, **options)
        cpu.action_space.seed(1)
        assert_same("reset", leaves_of(cpu.reset(seed=1)), all_seen(env.reset(seed=1)))
        for step in range(6):
            actions = cpu.action_space.sample()
            want, got = cpu.step(actions), env.step(sent(output, actions))
            assert_same(f"step {step}", leaves_of(want[:4]), all_seen(got[:4]))
        twin = copy.deepcopy(env)
        want, got = env.step(sent(output, actions)), twin.step(sent(output, actions))
        assert_same("a copy", all_seen(want[:4]), all_seen(got[:4]))
    assert gpu.streams() == {own.cuda_stream}


class Told(Herd):
    """A game that computes infos from its state. Only its own operators may be what CuPy compiles."""

    def infos(self, cfg, state):
        with driver.compiling():
            return {"first": state["cell"][:, 0] * 2, "second": state["cell"][:, 1], "all": state["cell"] * 2}

    def step_infos(self, cfg, state):
        with driver.compiling():
            return {"caught": state["caught"] + 1}

    @classmethod
    def source(cls):
        return Herd.source()


class ToldGlide(Glide):
    """Likewise, of one agent."""

    def infos(self, cfg, state):
        with driver.compiling():
            return {"twice": state["path"] * 2}

    @classmethod
    def source(cls):
        return Glide.source()


class ToldNim(Nim):
    """Likewise, of a game in turns."""

    def infos(self, cfg, state):
        with driver.compiling():
            return {"left": state["left"] + 1}

    @classmethod
    def source(cls):
        return Nim.source()


@pytest.mark.parametrize("output", OUTPUTS)
def test_infos_of_a_game(stream, output):
    """Where they are computed, and what is repeated for the rows of an env."""
    envs = [make_vec(Told, num_worlds=3, device=d, output=o, infos=True, max_episode_steps=3)
            for d, o in (("cpu", "numpy"), ("cuda", output))]  # fmt: skip
    told = [env.reset(seed=1)[1] for env in envs]
    for step in range(5):
        assert set(told[0]) >= {"first", "_first", "all", "_all", "caught", "_caught"}
        assert np.asarray(seen(told[1]["all"])).shape == (envs[0].num_envs, *envs[0].simulator.arrays["cell"].shape[1:])
        assert_same(f"step {step}", *({k: np.asarray(seen(x)) for k, x in infos.items()} for infos in told))
        actions = np.ones(envs[0].num_envs, np.int64)
        told = [env.step(given)[4] for env, given in zip(envs, (actions, sent(output, actions)), strict=True)]


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("options", [{"game": Told}, {"game": ToldNim, "group": "player_1"}], ids=["herd", "nim"])
def test_infos_of_last_states(stream, output, options):
    """Kept between the end of an episode and the beginning of the next one; in games in turns of each reply."""
    game, others = options["game"], {key: x for key, x in options.items() if key != "game"}
    common = {"num_worlds": 5, "infos": True, "max_episode_steps": 7, "autoreset_mode": "same_step", **others}
    envs = [make_vec(game, device=d, output=o, **common) for d, o in (("cpu", "numpy"), ("cuda", output))]
    for env in envs:
        env.reset(seed=1)
    ends = 0
    for step in range(30):
        actions = np.arange(envs[0].num_envs) % 3
        want, got = (env.step(given) for env, given in zip(envs, (actions, sent(output, actions)), strict=True))
        done = want[2] | want[3]
        for name in envs[0].info_names:
            assert_same(f"step {step}", {name: want[4][name]}, {name: seen(got[4][name])})
            if done.any():
                last, mask = (seen(got[4]["final_info"][key]) for key in (name, f"_{name}"))
                assert_same(f"step {step}", {"done": done}, {"done": mask})
                assert_same(f"step {step}", {name: want[4]["final_info"][name][done]}, {name: last[done]})
        ends += done.sum()
    assert ends > 10


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("rules", [Herd, Told])
def test_batch_env(stream, output, rules):
    options = {"max_episode_steps": 4, "copy": True, "infos": rules is Told}
    cpu = gpuzoo.make(rules, 3, device="cpu", **options)
    env = gpuzoo.make(rules, 3, device="cuda", output=output, **options)
    assert_same("reset", leaves_of(cpu.reset(seed=1)), all_seen(env.reset(seed=1)))
    for step in range(5):
        want, got = cpu.step(cpu.random_actions()), env.step(env.random_actions())
        assert_same(f"step {step}", leaves_of(want), all_seen(got))
    assert_same("state", {"s": cpu.state()}, {"s": seen(env.state())})


@pytest.mark.parametrize("output", OUTPUTS)
def test_pool(gpu, output):
    """Each batch on a stream of its own, behind and before the current one."""
    options = {"batch_size": 2, "infos": True, "max_episode_steps": 4}
    cpu = make_pool(ToldGlide, 6, device="cpu", **options)
    env = make_pool(ToldGlide, 6, device="cuda", output=output, **options)
    gpu.log.clear()
    found = [{}, {}]
    for which, pool in enumerate((cpu, env)):
        rng = np.random.default_rng(0)
        actions = {k: rng.uniform(-1, 1, (9, 2)).astype(np.float32) for k in range(6)}
        pool.async_reset()
        times = dict.fromkeys(range(6), 0)
        for _ in range(18):
            observation, reward, *_, infos = pool.recv()
            ids = infos["env_id"]
            for k, env_id in enumerate(ids):
                told = (observation, reward, infos["twice"])
                found[which][int(env_id), times[int(env_id)]] = [seen(array)[k] for array in told]
            action = np.stack([actions[int(i)][times[int(i)] % 9] for i in ids])
            for i in ids:
                times[int(i)] += 1
            pool.send(sent(output, action) if pool is env else action, ids)
    common = found[0].keys() & found[1].keys()
    assert len(common) > 20
    for key in common:
        for left, right in zip(found[0][key], found[1][key], strict=True):
            assert left.tobytes() == right.tobytes()
    launches = {entry.stream for entry in gpu.entries("launch") if entry.what == "gz_step"}
    assert len(launches) >= 2
    assert 0 not in launches
    env.close()


def test_single_envs(stream):
    """Gymnasium's, PettingZoo's, dm_env's and Stable-Baselines3's: NumPy on both sides."""
    for make, play in (
        (lambda d: gpuzoo.SingleEnv(Glide, device=d), lambda e: e.step(np.array([0.5, -0.5], np.float32))),
        (lambda d: gpuzoo.parallel_env(Herd, device=d), lambda e: e.step(dict.fromkeys(e.agents, 1))),
        (lambda d: SB3VecEnv(Glide, 3, device=d), lambda e: e.step(np.full((3, 2), 0.5, np.float32))),
    ):
        cpu, env = make("cpu"), make("cuda")
        for one in (cpu, env):
            one.seed(1) if isinstance(one, SB3VecEnv) else None
        first = [one.reset(**({} if isinstance(one, SB3VecEnv) else {"seed": 1})) for one in (cpu, env)]
        assert_same("reset", *map(leaves_of, first))
        for _ in range(3):
            assert_same("step", *(leaves_of(play(one)[:2]) for one in (cpu, env)))
    time_steps = [make_pool(Glide, 3, device=d, env_type="dm").reset() for d in ("cpu", "cuda")]
    assert_same("dm", *(leaves_of(x.observation.obs) for x in time_steps))


def test_wrappers_of_tensors(stream):
    options = {"output": "torch", "autoreset_mode": "same_step", "max_episode_steps": 4}
    cpu, env = (VectorEnv(Glide, 3, device=device, **options) for device in ("cpu", "cuda"))
    chain = [RecordEpisodeStatistics, NormalizeObservation, NormalizeReward, lambda e: FrameStackObservation(e, 2)]
    for wrapper in chain:
        cpu, env = wrapper(cpu), wrapper(env)
    assert_same("reset", all_seen(cpu.reset(seed=1)[0]), all_seen(env.reset(seed=1)[0]))
    for _ in range(6):
        actions = np.full((3, 2), 0.25, np.float32)
        want, got = cpu.step(torch.as_tensor(actions)), env.step(sent("torch", actions))
        assert_same("step", all_seen(want), all_seen(got))


# ---- what callers give and read ----


def test_masks_indices_seeds_and_parameters(stream):
    """Of NumPy, CuPy and torch, for a reset, a step and what concerns the state."""
    wind = np.linspace(0, 1, 6, dtype=np.float32)
    options = {"wind": wind, "max_episode_steps": 9, "autoreset_mode": "same_step"}
    mask, where = np.array([True, False, True, False, False, True]), np.array([4, 1])
    for kind in OUTPUTS:
        cpu, sim = (Simulator(Glide, 6, device=device, **options) for device in ("cpu", "cuda"))
        for one in (cpu, sim):

            def given(x, kind=kind if one is sim else "numpy"):
                return sent(kind, x)

            one.reset(seed=given(np.arange(6)))
            one.step(given(where))
            one.reset(mask=given(mask), params={"wind": given(np.full(3, 0.5, np.float32))})
            one.set_params(given(mask), wind=0.25)
            one.set_params(given(where), wind=given(np.array([0.5, 0.75], np.float32)))
            one.step(given(mask))
            one.set_state({name: given(seen(x)) for name, x in one.state(given(where)).items()}, given(where))
            one.restore(one.snapshot(given(where)), given(where), seed=given(np.array([5, 6])))
        assert_same(kind, read(cpu), read(sim))
        assert_same(kind, cpu.params, sim.params)
        host = sim.snapshot().numpy().arrays
        assert_same(kind, cpu.snapshot().numpy().arrays, host)
        env = VectorEnv(Glide, 6, device="cuda", output="torch", wind=wind)
        env.reset(seed=sent(kind, np.arange(6)))
        env.reset(options={"reset_mask": sent(kind, mask), "params": {"wind": 0.5}})
        assert env.simulator.params["wind"].tolist() == pytest.approx(np.where(mask, 0.5, wind).tolist())
        pool = make_pool(Glide, 6, device="cuda", output="numpy")
        pool.reset()
        pool.reset(options={"reset_mask": sent(kind, mask)})
        assert sorted(pool.recv_rows()[0].tolist() if pool._queue.in_flight else [0, 2, 5]) == [0, 2, 5]


def test_copies_and_pickles(stream):
    env = make_vec(Herd, num_worlds=2, device="cuda", output="torch", autoreset_mode="same_step")
    env.reset(seed=0)
    actions = torch.zeros(env.num_envs, dtype=torch.int64, device="cuda")
    env.step(actions)
    twin = copy.deepcopy(env)
    left, right = env.step(actions), twin.step(actions)
    assert_same("a copy", leaves_of(left[:4]), leaves_of(right[:4]))
    assert left[1].data_ptr() != right[1].data_ptr()


# ---- one launch ----


@pytest.mark.parametrize("mode", MODES)
def test_a_step_is_one_launch(gpu, mode):
    """Of a simulator, and of the interfaces whose arrays are its memory: no allocation, no copy, no wait."""
    sim = Simulator(Herd, 3, device="cuda", autoreset_mode=mode)
    sim.reset(seed=0)
    sim.step()
    with gpu.watched() as entries:
        sim.step()
    assert [(e.kind, e.what) for e in entries] == [("launch", "gz_step")]
    batch = gpuzoo.make(Herd, 3, device="cuda", autoreset_mode=mode)
    batch.reset(seed=0)
    actions = {group: action.clone() for group, action in batch.random_actions().items()}
    batch.step(actions)
    with gpu.watched() as entries:
        batch.step(actions)
    asked = {e.kind for e in entries}
    assert asked == {"launch", "torch"}, entries
    assert {e.what for e in entries if e.kind == "torch"} == {"copy_"}, entries
    assert sum(e.kind == "launch" for e in entries) == 1


@pytest.mark.parametrize("output", ["torch", "cupy"])
def test_a_state_of_observations_is_made_once(gpu, output):
    """No later call writes into it, so ``copy=True`` copies nothing."""
    for copies in (False, True):
        env = gpuzoo.make(Herd, 3, device="cuda", output=output, copy=copies)
        env.reset(seed=0)
        env.state()
        with gpu.watched() as entries:
            env.state()
        assert sum(e.kind == "allocate" or e.what == "clone" for e in entries) == 1, entries


def test_numpy_from_a_gpu_waits_once(gpu):
    """All that a step returns comes through one place in pinned memory."""
    vector = make_vec(Herd, num_worlds=3, device="cuda", autoreset_mode="same_step", statistics=True)
    batch = gpuzoo.make(Herd, 3, device="cuda", output="numpy")
    for env in (vector, batch):
        env.reset(seed=0)
        whole = env.simulator.arrays["action"]
        actions = env.action_space.sample() if env is vector else np.ones(whole.shape[:2], np.int64)
        for _ in range(2):  # pinned memory for what goes there is of two pieces
            env.step(actions)
        with gpu.watched() as entries:
            env.step(actions)
        assert sum(e.kind == "synchronize" for e in entries) == 1, entries
        assert not [e for e in entries if e.kind == "allocate"], entries
    kept = [vector.step(actions) for actions in (vector.action_space.sample(), vector.action_space.sample())]
    assert not np.shares_memory(kept[0][1], kept[1][1])


def test_no_fill_or_copy_is_compiled(gpu):
    """CuPy compiles its own kernels at first use, which takes a second: making, resetting and stepping need none.

    In this test as in all others the stand-in refuses them.
    """
    env = make_vec(Glide, 6, device="cuda", output="torch", wind=np.linspace(0, 1, 6, dtype=np.float32))
    env.reset(seed=3)
    env.reset(seed=list(range(6)))
    env.reset(options={"reset_mask": np.arange(6) < 3})
    sim = env.simulator
    env.step(np.zeros((6, 2), np.float64))
    env.step(torch.zeros((6, 2), device="cuda"))
    sim.step(np.arange(3))
    sim.rollout(3)
    sim.set_params(wind=0.5)
    sim.autoreset_mode, sim.max_episode_steps = "same_step", 7
    for array in sim.arrays.values():
        sim.backend.to_numpy(array)
    copy.deepcopy(sim)
    numpy_env = VectorEnv(Glide, 6, device="cuda")
    numpy_env.reset(seed=1)
    numpy_env.step(numpy_env.action_space.sample())


@pytest.mark.parametrize("toy", [Glide, Herd])  # with envs along the last axis of memory, and along the first
def test_no_move_of_some_envs_is_compiled(gpu, toy):
    kept = []
    sims = [Simulator(toy, 6, device=device, max_episode_steps=9) for device in ("cpu", "cuda")]
    for sim in sims:
        sim.reset(seed=3)
        sim.rollout(4)
        some = sim.snapshot([4, 1])
        sim.set_state({"elapsed_steps": [2, 3], "alive": np.ones((2, sim.layout.agents), bool)}, envs=[5, 0])
        sim.restore(some, [2, 3])
        sim.restore(sim.snapshot(2), np.arange(6) % 3 == 0, seed=8)
        sim.set_state(sim.state([1]), [5])
        sim.step([1, 2])
        kept.append([some.arrays, sim.state([3, 0]), sim.state(), sim.snapshot().arrays])
    for number, arrays in enumerate(zip(*kept, strict=True)):
        assert_same(f"copy {number}", *({name: to_host(x) for name, x in of_one.items()} for of_one in arrays))
    assert_same("all", *map(read, sims))


def test_no_upload_into_a_part_of_an_array_is_compiled(gpu):
    """Such as NumPy actions of one group."""
    envs = [gpuzoo.make(Herd, num_envs=5, device=device, output="numpy") for device in ("cpu", "cuda")]
    for env in envs:
        env.reset(seed=2)
    for _ in range(3):
        actions = envs[0].random_actions()
        for env in envs:
            env.step(actions)
    backend = envs[1].simulator.backend
    array, want = backend.zeros((4, 5, 3), "float32"), np.zeros((4, 5, 3), np.float32)
    parts = [np.s_[:, 1:3, :2], np.s_[:, 4:, 1:], np.s_[:, :2], np.s_[1:3], np.s_[:, :, 2:], np.s_[2:3, 1:2, :2]]
    for number, part in enumerate(parts):
        want[part] = np.arange(want[part].size).reshape(want[part].shape) + 100 * number
        backend.upload(array[part], want[part])
    assert_same("groups", *(read(env.simulator) for env in envs))
    np.testing.assert_array_equal(to_host(array), want)


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("toy", [Glide, Herd, Lamps, Nim])  # Nim has turns, in which opponents reply
def test_nothing_of_an_interface_is_compiled(gpu, toy, output):
    """Whatever is copied, converted or repeated for a caller: rows, masks, infos, the global state."""
    group = {Herd: {"group": "sheep"}, Nim: {"group": "player_0"}}.get(toy, {})
    for mode in MODES:
        for options in ({}, {"statistics": True, "masks": "info"}, group):
            options = {"num_worlds": 3, "autoreset_mode": mode, "max_episode_steps": 4, "output": output, **options}
            env = make_vec(toy, device="cuda", **options)
            env.reset(seed=0)
            actions = sent(output, env.action_space.sample())
            for _ in range(6):
                env.step(actions)
                assert len(env.prev_done) == env.num_envs
            env.reset(options={"reset_mask": sent(output, np.arange(env.num_envs) < env.num_envs // 2 + 1)})
    for copies in (False, True):
        batch = gpuzoo.make(toy, 3, device="cuda", output=output, copy=copies)
        batch.reset(seed=0)
        batch.step(batch.random_actions())
        batch.state()


@pytest.fixture(
    params=[
        "thread form",
        pytest.param("PTX", marks=pytest.mark.skipif(sys.platform != "linux", reason="no NVRTC for other CPUs")),
    ]
)
def backends(request):
    """The CPU's, and the GPU's with kernels of either kind."""
    with installed(build=ptx_kernels if request.param == "PTX" else kernels.thread_form) as driver:
        yield make_backend("cpu"), make_backend("cuda")
        assert driver.failures == []


NUMBERS = np.random.default_rng(0).integers(0, 2**64, (5, 4, 3, 6), np.uint64)
PARTS = [np.s_[:, 1:3, :2], np.s_[1:, :, 1, ::2], np.s_[:, :, ::-1], np.s_[:, 2, 2, 3], np.s_[..., 2:3], np.s_[:]]
FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def same_bits(found, want, was):
    """But for those of a NaN that was made of another kind of float."""
    if found.dtype.kind == "f" and found.dtype != was:
        found, want = (np.where(np.isnan(x), x.dtype.type(np.nan), x) for x in (found, want))
    return found.tobytes() == want.tobytes()


@pytest.mark.parametrize("kind", [*INTEGERS, "bool", *FLOATS])
def test_copies_and_conversions(backends, kind):
    """Between arrays of any strides and dtypes a GPU does what NumPy does."""
    cpu, gpu = backends
    array = (NUMBERS & 1).astype(kind)
    if kind in (*INTEGERS, "float16", "float32"):  # any bits: NaN, infinities, numbers below the normal ones
        array = NUMBERS.view(kind).reshape(5, 4, 3, -1)[..., :6].copy()
    if kind == "float64":  # from numbers that no float is near to to infinite ones, and two that lie between two floats
        array = (NUMBERS * 1e-21 - 3) * 2.0 ** np.random.default_rng(1).integers(-165, 120, NUMBERS.shape)
        array[0, 2, 0] = 1 + 2**-24, 1 + 3 * 2**-24, np.nan, np.inf, -np.inf, -0.0
        array[0, 1, 0] = 65520 - 2**-30, 65520, 2**-25, 2**-25 + 2**-70, 3 * 2**-25, 1 + 2**-11 + 2**-60  # of halves
    there = sent("cupy", array)
    # What is no integer or beyond one becomes another one on each machine.
    integers = set() if array.dtype.kind == "f" else {"int32"} if kind == "bool" else {"int32", "int64"}
    for part in PARTS:
        for dtype in {kind, *FLOATS} | integers:
            with np.errstate(over="ignore", invalid="ignore"):
                want, got = cpu.copied(array[part], dtype), gpu.copied(there[part], dtype)
            assert (got.dtype, got.shape, got.flags.c_contiguous) == (want.dtype, want.shape, True)
            assert same_bits(seen(got), want, array.dtype), (dtype, part)
            places = np.full(array.shape, 7, dtype), sent("cupy", np.full(array.shape, 7, dtype))
            with np.errstate(over="ignore", invalid="ignore"):
                cpu.write(places[0][part], array[part])
            gpu.write(places[1][part], there[part])
            assert same_bits(seen(places[1]), places[0], array.dtype), (dtype, part)


@pytest.mark.parametrize("kind", ["int32", "uint8", "uint64", "bool", "float32"])
def test_what_is_zero(backends, kind):
    cpu, gpu = backends
    array = np.where(NUMBERS % 7 == 0, NUMBERS % 3 + 1, 0).astype(kind)
    if kind == "float32":
        array[..., 0] *= -1  # -0.0 is 0
    there = sent("cupy", array)
    for part in PARTS:
        assert (seen(gpu.is_zero(there[part])) == cpu.is_zero(array[part])).all()
        for axis in (None, *range(array[part].ndim)):
            assert (seen(gpu.any(there[part], axis)) == cpu.any(array[part], axis)).all()
    flags = NUMBERS % 7 == 0, NUMBERS % 3 == 0
    assert (seen(gpu.either(*(sent("cupy", x) for x in flags))) == cpu.either(*flags)).all()


def test_parts_of_some_envs(backends):
    cpu, gpu = backends
    array, where = NUMBERS.view(np.uint32).copy(), np.array([4, 0, 3])
    there, where_there = sent("cupy", array), sent("cupy", where)
    for rows in (array[1:4].copy(), array[:1].copy()):
        cpu.put(array[..., 1:4], where, rows[..., 3:6])
        gpu.put(there[..., 1:4], where_there, sent("cupy", rows)[..., 3:6])
        assert seen(there).tobytes() == array.tobytes()
        taken = cpu.take(array[:, 1:], where), gpu.take(there[:, 1:], where_there)
        assert seen(taken[1]).tobytes() == taken[0].tobytes()


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("toy", [Glide, Herd])
@pytest.mark.parametrize("batch_size", [2, 6])
def test_nothing_of_a_pool_is_compiled(gpu, toy, output, batch_size):
    """Neither for actions on their way in, also wider ones, nor for rows on their way out."""
    cpu, env = (
        make_pool(toy, 6, batch_size=batch_size, device=device, max_episode_steps=4, output=kind)
        for device, kind in (("cpu", "numpy"), ("cuda", output))
    )
    wide = "float64" if toy is Glide else "int64"
    rows = cpu.simulator.layout.agents * batch_size

    def by_env(received):
        order = np.argsort(received[4]["env_id"])
        return {name: x.reshape(len(order), -1)[order] for name, x in all_seen(received).items()}

    for pool in (cpu, env):
        pool.async_reset()
        while pool._queue.in_flight:
            pool.recv()
    for step in range(9):
        ids = (np.arange(batch_size, dtype=np.int32) + step) % 6
        actions = np.full((rows, *cpu.single_action_space.shape), step % 2, wide)
        given = sent(output, actions)
        for call in ("send and recv", "step"):
            if call == "step":
                want, got = cpu.step(actions, ids), env.step(given, ids)
            else:
                cpu.send(actions, ids)
                env.send(given, ids)
                want, got = cpu.recv(), env.recv()
            assert_same(f"{call} {step}", by_env(want), by_env(got))
    if batch_size == 6:
        want, got = cpu.step(actions), env.step(given)
        assert_same("all", by_env(want), by_env(got))
    env.close()


# ---- captures ----


def graph_of(function):
    """A captured function, after a call that loads its kernels."""
    function()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph


def test_opponents_can_be_captured(gpu):
    """Their observations are exported once: an export orders streams, and an index from the host is a copy."""

    def policy(observations, masks):
        return (
            (observations["observation"] if isinstance(observations, dict) else observations)
            .flatten(2)[..., 0]
            .gt(0)
            .int()
        )

    options = {"group": "sheep", "opponents": policy, "output": "torch", "autoreset_mode": "same_step"}
    env, eager = (VectorEnv(Herd, 6, device="cuda", copy=False, **options) for _ in range(2))
    actions = torch.ones(6, dtype=torch.int64, device="cuda")
    env.reset(seed=0)
    graph = graph_of(lambda: env.step(actions))
    with gpu.watched() as entries:
        env.step(actions)
    assert not [e for e in entries if e.kind in ("record", "wait", "upload", "export")], entries
    for one in (env, eager):
        one.reset(seed=0)
    for _ in range(9):
        graph.replay()
        eager.step(actions)
    assert_same("9 replays", read(eager.simulator), read(env.simulator))


def test_views_are_exported_without_order(gpu):
    """Within a capture too, where an event of another stream could not be waited for."""
    env = gpuzoo.make(Herd, 3, device="cuda")
    env.reset(seed=0)
    actions = {group: action.clone() for group, action in env.random_actions().items()}
    env.simulator.step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        env.step(actions)  # its views are made here
    assert gpu.entries("export")


def test_what_a_capture_cannot_hold_is_said(gpu):
    """And the capture goes on."""
    env = VectorEnv(Glide, 3, device="cuda", output="torch", copy=False)
    numpy_env = VectorEnv(Glide, 3, device="cuda")
    for one in (env, numpy_env):
        one.reset(seed=0)
        one.step(torch.zeros((3, 2), device="cuda"))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with pytest.raises(RuntimeError, match="a CUDA graph is being captured: values from host memory"):
            env.step(np.zeros((3, 2), np.float32))
        with pytest.raises(RuntimeError, match="a CUDA graph is being captured: arrays in host memory"):
            numpy_env.step(torch.zeros((3, 2), device="cuda"))
        env.step(torch.zeros((3, 2), device="cuda"))


def test_host_memory_can_be_written_after_a_call(gpu):
    """What is uploaded was copied before: the device may read it later."""
    env = VectorEnv(Glide, 3, device="cuda")
    env.reset(seed=0)
    actions = np.full((3, 2), 0.5, np.float32)
    with gpu.watched() as entries:
        env._slot.write(actions)
    (upload,) = [e for e in entries if e.kind == "upload"]
    assert upload.what == "set"
    assert not any(np.shares_memory(actions, memory) for memory, _ in env.simulator.backend._pinned._pieces)
    assert to_host(env.simulator.arrays["action"]).ravel().tolist() == [0.5] * 6


def test_closing_in_a_capture_waits_for_nothing(gpu):
    """By hand or by the garbage collector. The memory is kept until somebody can wait."""
    from gpuzoo.core import backend_cuda

    kept = Simulator(Glide, 3, device="cuda")
    envs = [VectorEnv(Glide, 3, device="cuda", output="torch") for _ in range(2)]
    pool = make_pool(Glide, 4, batch_size=2, device="cuda")
    pool.async_reset()
    kept.reset(seed=0)
    kept.step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept.step()
        envs.pop().close()
        pool.close()
        envs.clear()
        gc.collect()
    assert backend_cuda._held
    with gpu.watched() as entries:
        kept.close()
    assert [e.kind for e in entries] == ["synchronize"]
    assert not backend_cuda._held


def test_the_stand_in_refuses(gpu):
    """What a driver would: so the tests above can fail."""
    sim = Simulator(Glide, 3, device="cuda")
    sim.reset(seed=0)
    array = sim.arrays["reward"]
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.asarray(array)
    with pytest.raises(TypeError, match="Unsupported type"):
        array + np.ones((3, 1), np.float32)
    with pytest.raises(ValueError, match="fill"):
        array[...] = np.ones((3, 1), np.float32)
    tensor = torch.zeros(3, device="cuda")
    with pytest.raises(TypeError, match="can't convert cuda:0"):
        np.asarray(tensor)
    with pytest.raises(RuntimeError, match="same device"):
        tensor + torch.zeros(3)
    for compiled in (lambda: array + array, lambda: array.astype("float64"), lambda: array[array > 0], array.max):
        with pytest.raises(DriverError, match="which CuPy compiles at first use"):
            compiled()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for forbidden in (tensor.sum().item, array.get, sim.synchronize, lambda: torch.zeros(3).cuda()):
            with pytest.raises(DriverError):
                forbidden()
    with pytest.raises(TypeError, match="a type with a size"):
        sim._kernels.launches["step"](3, 0, 3, 0)
    with pytest.raises(DriverError, match="threads for"):
        sim.backend.launch(sim._kernels.launches["step"].args[0], (2,), (128,), (sim._store, np.int64(0), np.int64(3)))
    gpu.failures.clear()


# ---- who uses what ----


def test_a_batch_leaves_torchs_cuda_alone(gpu):
    """Where torch is installed and does not use CUDA, the stream is CuPy's."""
    cupy = sys.modules["cupy"]
    sim = Simulator(Glide, 3, device="cuda")
    with cupy.cuda.Stream(non_blocking=True) as own:
        gpu.log.clear()
        sim.reset(seed=0)
        sim.step()
        sim.snapshot().numpy()
    assert not gpu.torch_is_initialized
    assert gpu.streams() == {own.ptr}


def test_tensors_take_their_memory_from_torch(gpu):
    """There is one pool where tensors are asked for."""
    for make in (
        lambda: VectorEnv(Glide, 3, device="cuda", output="torch"),
        lambda: gpuzoo.make(Glide, 3, device="cuda"),
        lambda: make_pool(Glide, 3, device="cuda"),
    ):
        with installed() as driver:
            make()
            assert {e.what for e in driver.entries("allocate")} - {"pinned"} == {"zeros"}
            assert [e.kind for e in driver.log if e.what == "zeros"].count("torch")


def test_several_devices():
    """Each batch on its own device and on torch's stream of that one, whichever is current."""
    with installed(devices=2) as driver:
        sims = [Simulator(Glide, 3, device=f"cuda:{k}") for k in range(2)]
        streams = [torch.cuda.Stream(f"cuda:{k}") for k in range(2)]
        with torch.cuda.stream(streams[0]), torch.cuda.stream(streams[1]):
            driver.log.clear()
            for k, sim in enumerate(sims):
                with driver.watched() as entries:
                    sim.reset(seed=0)
                    sim.step()
                    read(sim)
                    sim.snapshot().numpy()
                assert {e.stream for e in entries if e.kind in WORK} == {streams[k].cuda_stream}
        assert driver.failures == []


def test_a_second_thread_is_refused(gpu):
    """While one thread is in a call of a pool; a stream that it works on is not the other's."""
    pool = make_pool(Glide, 6, batch_size=2, device="cuda", output="numpy")
    pool.async_reset()
    ids = pool.recv()[-1]["env_id"]
    backend, inside, go_on = pool.simulator.backend, threading.Event(), threading.Event()
    step, found = pool.simulator.step, []

    def slow(envs=None):
        inside.set()
        assert go_on.wait(30)
        step(envs)

    pool.simulator.step = slow
    sender = threading.Thread(target=lambda: pool.send(np.zeros((2, 2), np.float32), ids))
    sender.start()
    assert inside.wait(30)
    try:
        with pytest.raises(RuntimeError, match="another thread is in send"):
            pool.recv()
        found.append(backend.stream())
    finally:
        go_on.set()
        sender.join()
    assert found == [None]  # not the one that the other thread works on
    assert len(pool.recv()[-1]["env_id"]) == 2


def test_programs_are_compiled_for_the_driver(gpu, monkeypatch):
    asked, compile_one = [], nvrtc.cached_cubin
    monkeypatch.setattr(nvrtc, "cached_cubin", lambda *x: asked.append(x[2:]) or compile_one(*x))
    gpu.version = 12040
    Simulator(Glide, 3, device="cuda")
    assert [(x[0], x[-1]) for x in asked] == [("sm_90", 12040)]


@pytest.mark.skipif(sys.platform != "linux", reason="NVIDIA has no NVRTC for other systems' CPUs")
def test_launches_of_what_nvrtc_makes():
    """With NVRTC's PTX in place of the thread form: arguments of its sizes, at its offsets, and the CPU's bits."""
    with installed(build=ptx_kernels):
        options = {"autoreset_mode": "same_step", "max_episode_steps": 5}
        sims = [Simulator(Nim, 40, device=device, **options) for device in ("cpu", "cuda")]
        for sim in sims:
            sim.reset(seed=0)
            sim.step()
            sim.step([1, 7])
            sim.rollout(9)
            sim.random_actions()
            sim.step()
        assert_same("a launch of each kernel", *map(read, sims))
        run = sims[1]._kernels.launches["step"].args[0]
        longer = sims[1].backend.store(np.append(sims[1]._members, np.uint64(0)))
        with pytest.raises(ValueError, match="bytes of arguments"):
            sims[1].backend.launch(run, (1,), (64,), (longer, np.int64(0), np.int64(40)))


def test_small_batches_have_small_blocks(gpu):
    """So that no multiprocessor is idle; what is computed does not depend on it."""
    sizes = {n: block_size(n, 128, 132) for n in (1, 4096, 4224, 4225, 8448, 8449, 16896, 10**6)}
    assert sizes == {1: 32, 4096: 32, 4224: 32, 4225: 64, 8448: 64, 8449: 128, 16896: 128, 10**6: 128}
    found = []
    for gpu.multiprocessors in (1, 2, 132):
        sims = [Simulator(game, 77, device="cuda", autoreset_mode="same_step") for game in (Lamps, Nim)]
        for sim in sims:
            sim.reset(seed=0)
            sim.rollout(9)
            sim.random_actions()
            sim.step()
        found.append({f"{k} {name}": x for k, sim in enumerate(sims) for name, x in read(sim).items()})
    assert_same("64 and 128 threads", found[0], found[1])
    assert_same("32 and 128 threads", found[0], found[2])
