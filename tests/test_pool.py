"""EnvPool's interface: what an env does depends on its seed and actions alone, whenever and with whom it is stepped."""

from __future__ import annotations

import _thread
import gc
import os
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
import test_sanitizers
from test_sanitizers import THREAD, assert_clean, program_text
from toys.glide import Glide
from toys.herd import Herd
from toys.lamps import Lamps
from toys.slow import Slow

import gpuzoo
from gpuzoo import EnvPool, Simulator, make_pool
from gpuzoo.core import pool as core
from gpuzoo.core.backend_cpu import compile_host
from gpuzoo.core.headers import DEVICE
from gpuzoo.testing.tools import assert_same, leaves_of

pytestmark = pytest.mark.one_of_a_kind

LIMIT = 7  # of steps, so that episodes end
DEVICES = ("cpu", pytest.param("simt", marks=pytest.mark.rotates))
RESULTS = ("observation", "reward", "terminated", "truncated", "elapsed_steps")


@pytest.fixture
def eager(monkeypatch):
    """Native threads take work however little it is."""
    monkeypatch.setattr(core, "_WORTH", 0)
    monkeypatch.setattr(core, "_MOVING", 0)


def drawn_actions(pool: EnvPool, steps: int) -> np.ndarray:
    """(steps, num_envs, agents, ...), some of them illegal where an action is an integer."""
    rng, space = np.random.default_rng(1), pool.action_space
    shape = (steps, pool.num_envs, pool.simulator.layout.agents, *(space.shape or ()))
    if np.issubdtype(space.dtype, np.floating):
        return rng.uniform(-2, 2, shape).astype(np.float32)
    return rng.integers(0, 3, shape)


def expected(game, actions: np.ndarray, device: str, **config) -> dict[str, np.ndarray]:
    """(steps + 1, num_envs, ...): what each env gives at its reset and after each step, all stepped together."""
    sim = Simulator(game, actions.shape[1], device=device, max_episode_steps=LIMIT, **config)
    sim.reset(3)
    seen = []
    for k in range(len(actions) + 1):
        seen.append({name: sim.backend.to_numpy(sim.arrays[name]) for name in names_of(sim)})
        if k < len(actions):
            sim.arrays["action"][...] = sim.xp.asarray(actions[k].reshape(sim.arrays["action"].shape))
            sim.step()
    sim.close()
    return {name: np.array([x[name] for x in seen]) for name in seen[0]}


def names_of(sim: Simulator) -> list[str]:
    names = list(RESULTS)
    names += ["alive"] if sim.layout.agents > 1 else []
    return names + (["action_mask"] if sim.layout.mask_size else [])


def host(x) -> np.ndarray:
    return x.cpu().numpy() if hasattr(x, "cpu") else np.asarray(x)


def check_batch(pool: EnvPool, batch, want: dict[str, np.ndarray], steps: np.ndarray) -> np.ndarray:
    """Compares a received batch with what its envs give after so many steps of each; returns the envs."""
    observation, reward, terminated, truncated, info = batch
    envs, agents = info["env_id"], pool.simulator.layout.agents
    assert envs.dtype == np.int32
    assert len(set(envs.tolist())) == len(envs)
    np.testing.assert_array_equal(info["players"]["env_id"], envs.repeat(agents))
    got = {"reward": reward, "terminated": terminated, "truncated": truncated, "elapsed_steps": info["elapsed_step"]}
    if pool.simulator.layout.mask_size:
        got["action_mask"] = observation["action_mask"]
        observation = observation["observation"]
    got["observation"] = observation
    if agents > 1:
        got["alive"] = info["alive"]
    assert set(got) == set(want)
    for name, values in got.items():
        rows = want[name][steps[envs], envs]
        assert host(values).dtype == rows.dtype, name
        np.testing.assert_array_equal(host(values).reshape(rows.shape), rows, name)
    if not pool.simulator.layout.mask_size:
        assert observation.shape == (len(envs) * agents, *pool.observation_space.shape)
    return envs


def play(pool: EnvPool, actions: np.ndarray, want: dict[str, np.ndarray], seed: int = 0) -> None:
    """Sends envs in random groups and orders until each has made all its steps, and checks all that comes back."""
    rng, last = np.random.default_rng(seed), len(actions)
    steps, ready, left = np.zeros(pool.num_envs, int), [], pool.num_envs
    pool.async_reset()
    kept = []
    while True:
        while left and (left >= pool.batch_size or not ready):
            batch = pool.recv()
            envs = check_batch(pool, batch, want, steps)
            kept.append((batch, steps.copy()))
            left -= len(envs)
            ready += [env for env in envs.tolist() if steps[env] < last]
        if not ready:
            break
        rng.shuffle(ready)
        count = int(rng.integers(1, len(ready) + 1))
        envs, ready = np.array(ready[:count]), ready[count:]
        if rng.random() < 0.5:
            envs.sort()  # neighbours are stepped together
        pool.send(actions[steps[envs], envs].reshape(-1, *pool.action_space.shape), envs)
        steps[envs] += 1
        left += count
    assert (steps == last).all()
    for batch, then in kept[:: max(1, len(kept) // 20)]:  # what was received stays as it was
        check_batch(pool, batch, want, then)


@pytest.mark.parametrize("device", DEVICES)
def test_any_order_gives_the_bits_of_stepping_together(game, device, eager):
    num_envs, batch_size, steps = (11, 4, 25) if device == "cpu" else (3, 2, 3)
    pool = EnvPool(game, num_envs, batch_size, 3, seed=3, device=device, max_episode_steps=LIMIT)
    actions = drawn_actions(pool, steps)
    play(pool, actions, expected(game, actions, "cpu"))
    pool.close()


@pytest.mark.gpu
def test_any_order_gives_the_bits_of_stepping_together_on_a_gpu(game):
    pool = EnvPool(game, 61, 16, seed=3, device="cuda", max_episode_steps=LIMIT)
    actions = drawn_actions(pool, 25)
    play(pool, actions, expected(game, actions, "cpu"))
    pool.close()


@pytest.mark.one_case
@pytest.mark.parametrize(("worth", "moving"), [(0, 0), (20_000, 0), (20_000, 20)])
@pytest.mark.parametrize(("num_envs", "batch_size"), [(1, 1), (500, 499), (2000, 37), (2000, 1000)])
def test_wide_batches(num_envs, batch_size, worth, moving, monkeypatch):
    monkeypatch.setattr(core, "_WORTH", worth)
    monkeypatch.setattr(core, "_MOVING", moving)
    game = gpuzoo.get("CartPole-v1")
    pool = EnvPool(game, num_envs, batch_size, 4, seed=3, device="cpu", max_episode_steps=LIMIT)
    actions = drawn_actions(pool, 30)
    play(pool, actions, expected(game, actions, "cpu"))
    pool.close()


@pytest.mark.parametrize("device", DEVICES)
def test_steps_of_all_are_those_of_make_vec(game, device):
    pool = EnvPool(game, 5, device=device, seed=3, max_episode_steps=LIMIT)
    agents = pool.simulator.layout.agents
    vec = gpuzoo.make_vec(game, num_worlds=5, device=device, max_episode_steps=LIMIT)
    assert not pool.is_async
    got, want = pool.reset(), vec.reset(seed=3)
    actions = drawn_actions(pool, 20 if device == "cpu" else 3).reshape(-1, 5 * agents, *pool.action_space.shape)
    kept = []
    for k, action in enumerate(actions):
        np.testing.assert_equal(got[0], want[0])
        kept.append((got, want))
        if k % 5 == 3:  # the two ways to step are mixed
            pool.send(action, pool.all_env_ids)
            got = pool.recv()
        else:
            got = pool.step(action)
        want = vec.step(action)
        for mine, his in zip(got[1:4], want[1:4], strict=True):
            assert mine.dtype == his.dtype
            np.testing.assert_array_equal(mine, his)
        np.testing.assert_array_equal(got[4]["env_id"], np.arange(5))
    for got, want in kept:  # nothing that was returned is written again
        np.testing.assert_equal(got[0], want[0])
        np.testing.assert_equal(got[1:-1], want[1:-1])


def test_some_of_a_synchronous_pool():
    pool = make_pool("CartPole-v1", 4, seed=0, device="cpu")
    pool.reset()
    pool.step(np.zeros(4, int))
    *_, info = pool.step(np.zeros(2, int), [3, 1])
    assert info["env_id"].tolist() == [1, 3]
    assert info["elapsed_step"].tolist() == [2, 2]
    *_, info = pool.step({"action": np.zeros(4, int), "env_id": np.array([2, 0, 1, 3])})
    assert info["env_id"].tolist() == [0, 1, 2, 3]
    assert info["elapsed_step"].tolist() == [2, 3, 2, 3]


def test_reset_of_some():
    pool = make_pool("CartPole-v1", 6, 3, seed=0, device="cpu")
    first, info = pool.reset()
    assert info["env_id"].tolist() == [0, 1, 2]
    pool.send(np.zeros(3, int), info["env_id"])
    with pytest.raises(RuntimeError, match="env 4 is still in flight"):
        pool.reset([4])
    pool.recv()
    assert pool.recv()[4]["elapsed_step"].tolist() == [1, 1, 1]
    again, info = pool.reset(np.array([2, 1]))
    assert info["env_id"].tolist() == [1, 2]
    assert info["elapsed_step"].tolist() == [0, 0]
    assert not np.array_equal(again, first[1:3])  # the next episode
    third, info = pool.reset(options={"reset_mask": np.arange(6) < 3}, seed=0)
    np.testing.assert_array_equal(third, first)
    for wrong in ({"reset_mask": np.zeros(6, bool)}, {"reset_mask": np.ones(5, bool)}):
        with pytest.raises(ValueError, match="reset_mask"):
            pool.reset(options=wrong)
    with pytest.raises(ValueError, match="at least one"):
        pool.reset([])


def test_fewer_in_flight_than_a_batch_all_come():
    pool = make_pool("CartPole-v1", 10, 4, seed=0, device="cpu")
    pool.async_reset()
    sizes = [len(pool.recv()[1]) for _ in range(3)]
    assert sizes == [4, 4, 2]
    with pytest.raises(RuntimeError, match="wait forever"):
        pool.recv()


# ---- refused, with nothing changed ----


@pytest.mark.parametrize("device", ["cpu", "simt"])
@pytest.mark.parametrize(
    ("action", "env_id", "error", "message"),
    [
        (np.zeros(2, int), [0, 6], IndexError, "from 0 to 5, not 6"),
        (np.zeros(2, int), np.array([0, -1], np.int32), IndexError, "from 0 to 5, not -1"),
        (np.zeros(2, int), [0, 2**32 + 1], IndexError, "from 0 to 5, not 4294967297"),
        (np.zeros(3, int), [0, 1, 0], ValueError, "env 0 is named twice"),
        (np.zeros(2, int), [1, 3], RuntimeError, "env 3 is still in flight"),
        (np.zeros(2, int), [0.0, 1.0], TypeError, "integers, not float64"),
        (np.zeros(2, int), [[0, 1]], TypeError, r"shape \(1, 2\)"),
        (np.zeros(3, int), [0, 1], ValueError, r"2 envs must have shape \(2,\), not \(3,\)"),
        (np.zeros((2, 1), int), [0, 1], ValueError, r"not \(2, 1\)"),
        (np.zeros(2), [0, 1], TypeError, "integers in Discrete"),
        (np.zeros(2, bool), [0, 1], TypeError, "not bool"),
        (np.zeros(2, int), None, ValueError, r"6 envs must have shape \(6,\)"),
    ],
)
def test_what_cannot_be_sent_changes_nothing(device, action, env_id, error, message):
    pool = make_pool("CartPole-v1", 6, 3, seed=0, device=device)
    pool.async_reset()
    assert pool.recv()[4]["env_id"].tolist() == [0, 1, 2]
    before = pool.simulator.snapshot().numpy()
    flight = pool._queue.flight.copy()
    with pytest.raises(error, match=message):
        pool.send(action, env_id)
    np.testing.assert_array_equal(pool._queue.flight, flight)
    np.testing.assert_equal(pool.simulator.snapshot().numpy().arrays, before.arrays)
    pool.send(np.ones(3, int), [2, 0, 1])
    assert [sorted(pool.recv()[4]["env_id"].tolist()) for _ in range(2)] == [[3, 4, 5], [0, 1, 2]]


def test_a_pool_resets_itself():
    """As in EnvPool the first send of an env begins its first episode; its action is ignored."""
    told, pool = (make_pool("CartPole-v1", 3, seed=5, device="cpu") for _ in range(2))
    wanted = told.reset()
    obs, rew, terminated, truncated, info = pool.step(np.ones(3, int))
    np.testing.assert_array_equal(obs, wanted[0])
    assert_same("infos", leaves_of(info), leaves_of(wanted[1]))
    assert not np.concatenate([rew, terminated, truncated, info["elapsed_step"]]).any()
    assert_same("a step", leaves_of(told.step(np.ones(3, int))), leaves_of(pool.step(np.ones(3, int))))


@pytest.mark.parametrize("name", ["CartPole-v1", "SimpleSpread-v0"])
def test_envs_of_a_pool_begin_one_by_one(name):
    told, pool = (make_pool(name, 4, 2, seed=5, device="cpu") for _ in range(2))
    agents = pool.simulator.layout.agents
    told.async_reset()
    first = {e: told.recv()[0] for e in (0, 2)}
    first = np.concatenate([first[0], first[2]]).reshape(4, agents, -1)

    def send(envs: list[int]) -> dict[int, tuple[np.ndarray, int]]:
        pool.send(np.ones(len(envs) * agents, int), np.array(envs))
        found = {}
        while len(found) < len(envs):
            obs, *_, info = pool.recv()
            rows = obs.reshape(len(info["env_id"]), agents, -1)
            found |= {int(e): (rows[k], int(info["elapsed_step"][k])) for k, e in enumerate(info["env_id"])}
        return found

    for envs, ages in (([2], [0]), ([1, 2], [0, 1])):
        found = send(envs)
        assert [found[e][1] for e in envs] == ages
        np.testing.assert_array_equal(found[envs[0]][0], first[envs[0]])
    before = pool.simulator.snapshot().arrays
    for wrong, error in (([0, 0], ValueError), ([3, 4], IndexError)):
        with pytest.raises(error):
            pool.send(np.ones(2 * agents, int), np.array(wrong))
    assert_same("after what was refused", before, pool.simulator.snapshot().arrays)
    pool.send(np.ones(agents, int), [0])
    with pytest.raises(RuntimeError, match="env 0 is still in flight"):
        pool.send(np.ones(2 * agents, int), [3, 0])
    np.testing.assert_array_equal(pool.recv()[0].reshape(agents, -1), first[0])
    obs, _ = pool.reset([3])
    np.testing.assert_array_equal(obs.reshape(agents, -1), first[3])  # not its second episode
    ages = {env: age for env, (_, age) in send([0, 1, 2, 3]).items()}
    assert ages == {0: 1, 1: 1, 2: 2, 3: 1}


def test_render_of_a_pool():
    pool = make_pool("CartPole-v1", 3, 3, seed=0, device="cpu", render_mode="rgb_array")
    pool.reset()
    pictures = pool.render()
    assert pictures.shape[0] == 3
    assert pictures.shape[3] == 3
    assert pictures.dtype == np.uint8
    vec = gpuzoo.make_vec("CartPole-v1", 3, device="cpu", render_mode="rgb_array")
    vec.reset(seed=0)
    np.testing.assert_array_equal(pictures, vec.render())
    np.testing.assert_array_equal(pool.render([2, 0]), pictures[[2, 0]])
    np.testing.assert_array_equal(pool.render(1), pictures[[1]])
    with pytest.raises(IndexError, match="env_id must be from 0 to 2, not 3"):
        pool.render([3])
    pool.send(np.zeros(1, int), [1])
    with pytest.raises(RuntimeError, match=r"env 1 is in flight: recv\(\) it before render\(\)"):
        pool.render()
    assert len(pool.render([0, 2])) == 2
    with pytest.raises(RuntimeError, match=r"make the pool with render_mode='rgb_array' to render\(\) it"):
        make_pool("CartPole-v1", 1, device="cpu").render()
    dm = make_pool("CartPole-v1", 3, seed=0, device="cpu", env_type="dm", render_mode="rgb_array")
    dm.reset()
    np.testing.assert_array_equal(dm.render(), pictures)


def test_before_reset_and_after_close():
    pool = make_pool("CartPole-v1", 2, seed=0, device="cpu")
    with pytest.raises(RuntimeError, match="wait forever"):
        pool.recv()
    pool.close()
    for call in (pool.recv, pool.async_reset, pool.reset, lambda: pool.send(np.zeros(2, int))):
        with pytest.raises(RuntimeError, match="closed"):
            call()
    pool.close()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"batch_size": 5}, ValueError, "at most 4, not 5"),
        ({"batch_size": 0}, ValueError, "at least 1"),
        ({"batch_size": 2.0}, TypeError, "must be an int"),
        ({"num_threads": 0}, ValueError, "num_threads must be at least 1"),
        ({"env_type": "gym"}, ValueError, "'gymnasium' or 'dm'"),
        ({"autoreset_mode": "same_step"}, TypeError, "make_vec"),
        ({"output": "cupy"}, ValueError, "cupy"),
        ({"output": "torch", "env_type": "dm"}, ValueError, "NumPy"),
        ({"gravitation": 3.0}, TypeError, "gravitation"),
    ],
)
def test_wrong_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        make_pool("CartPole-v1", 4, device="cpu", **arguments)


def test_debug_refuses_illegal_actions():
    pool = make_pool("CartPole-v1", 4, 2, device="cpu", debug=True)
    pool.async_reset()
    envs = pool.recv()[4]["env_id"]
    with pytest.raises(ValueError, match="action 7"):
        pool.send(np.array([0, 7]), envs)
    pool.send(np.array([0, 1]), envs)


def test_a_failed_reset_leaves_nothing_in_flight():
    pool = make_pool("CartPole-v1", 4, 2, device="cpu")
    pool.async_reset()
    pool.recv(), pool.recv()
    with pytest.raises(ValueError, match="negative"):
        pool.reset(seed=-1)
    assert not pool._queue.flight.any()
    pool.reset(seed=1)


# ---- what users look up ----


def test_what_is_looked_up():
    pool = make_pool("CartPole-v1", 6, 2, 3, seed=5, device="cpu", max_episode_steps=20)
    assert len(pool) == pool.num_envs == 6
    assert pool.batch_size == 2
    assert pool.is_async
    assert pool.all_env_ids.dtype == np.int32
    assert pool.all_env_ids.tolist() == list(range(6))
    wanted = {"num_envs": 6, "batch_size": 2, "num_threads": 3, "seed": 5, "max_episode_steps": 20}
    assert wanted.items() <= pool.config.items()
    assert pool.spec.config == pool.config
    assert pool.spec.reward_threshold == 475.0
    assert pool.observation_space.shape == (4,)
    assert pool.single_action_space == pool.action_space == pool.spec.action_space
    assert "batch_size=2" in repr(pool)


def test_seeds():
    one = make_pool("CartPole-v1", 3, seed=[7, 8, 9], device="cpu").reset()[0]
    np.testing.assert_array_equal(make_pool("CartPole-v1", 3, seed=7, device="cpu").reset()[0], one)
    np.testing.assert_array_equal(
        make_pool("CartPole-v1", 3, device="cpu").reset()[0],
        make_pool("CartPole-v1", 3, seed=42, device="cpu").reset()[0],
    )
    free = [make_pool("CartPole-v1", 3, seed=None, device="cpu").reset()[0] for _ in range(2)]
    assert not np.array_equal(*free)


@pytest.mark.parametrize("batch_size", [2, 4])
def test_torch(batch_size):
    torch = pytest.importorskip("torch")
    pools = [make_pool(Glide, 4, batch_size, seed=1, device="cpu", output=output) for output in ("numpy", "torch")]
    for pool in pools:
        pool.async_reset()
        for _ in range(4 // batch_size):
            pool.recv()
    envs = np.arange(batch_size)
    action = np.random.default_rng(0).uniform(-1, 1, (batch_size, 2))
    whole = batch_size == 4
    a = pools[0].step(action, None if whole else envs)
    b = pools[1].step(torch.from_numpy(action), None if whole else torch.from_numpy(envs))
    for x, y in zip(a[:4], b[:4], strict=True):
        assert isinstance(y, torch.Tensor)
        np.testing.assert_array_equal(x, y.numpy())


# ---- threads, forks and ends ----


def test_envs_are_stepped_while_the_caller_does_something_else():
    """Native threads finish what was sent although nobody receives."""
    pool = EnvPool(Slow, 16, 8, 2, seed=0, device="cpu", work=20_000)
    pool.async_reset()
    for _ in range(6):
        pool.send(np.ones(8, int), pool.recv()[4]["env_id"])
    pool.recv(), pool.recv()
    elapsed = pool.simulator.arrays["elapsed_steps"]
    before = elapsed.copy()
    time.sleep(0.2)  # they sleep by now
    pool.send(np.ones(16, int), pool.all_env_ids)
    end = time.monotonic() + 60
    while (elapsed == before).any():
        assert time.monotonic() < end, "nobody stepped them"
        time.sleep(0.01)
    pool.close()


@pytest.mark.timeout(120)  # what is lost is waited for without an end
def test_one_thread_sends_and_another_receives(eager):
    game = gpuzoo.get("CartPole-v1")
    pool = EnvPool(game, 64, 8, 2, seed=3, device="cpu", max_episode_steps=LIMIT)
    actions = drawn_actions(pool, 200)
    want = expected(game, actions, "cpu")
    steps, ready, total = np.zeros(64, int), [], 64 * 201
    lock = threading.Lock()

    def send() -> None:
        sent = 0
        while sent < 64 * 200:
            with lock:
                envs, ready[:] = np.array(ready, int), []
            envs = envs[steps[envs] < 200]
            if not len(envs):
                time.sleep(1e-4)
            else:
                chosen = actions[steps[envs], envs].reshape(-1)
                steps[envs] += 1
                pool.send(chosen, envs)
                sent += len(envs)

    pool.async_reset()
    sender = threading.Thread(target=send)
    sender.start()
    received = 0
    while received < total:
        if not pool._queue.in_flight:
            time.sleep(1e-4)
            continue
        envs = check_batch(pool, pool.recv(), want, steps)
        received += len(envs)
        with lock:
            ready.extend(envs.tolist())
    sender.join()


def test_interrupt_while_waiting():
    """Ctrl-C comes through while envs are stepped that take long, and nothing is lost."""
    pool = EnvPool(Slow, 400, 400, 1, seed=0, device="cpu", work=10_000_000)
    pool.async_reset()
    pool.recv()
    pool.send(np.ones(400, int))
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        pool.recv()  # minutes
    assert pool._queue.in_flight == 400
    begin = time.monotonic()
    pool.close()  # with envs in flight
    assert time.monotonic() - begin < 30


def test_close_while_another_thread_waits():
    pool = EnvPool(Slow, 400, 400, 1, seed=0, device="cpu", work=10_000_000)
    pool.async_reset()
    pool.recv()
    pool.send(np.ones(400, int))
    errors = []

    def wait() -> None:
        try:
            pool.recv()
        except RuntimeError as error:
            errors.append(str(error))

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.3)
    pool.close()
    waiting.join(60)
    assert errors == ["the pool was closed while recv() waited."]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("num_threads", [1, 5])
def test_closing_with_work_in_flight(num_threads, eager):
    """Fails only by a crash, or by a hang, which its time limit ends."""
    for k in range(30):
        pool = make_pool("SimpleSpread-v0", 200, 20, num_threads, seed=k, device="cpu")
        pool.async_reset()
        for _ in range(k % 4):
            envs = pool.recv()[4]["env_id"]
            pool.send(np.zeros(60, int), envs)
        pool.close()


def test_a_dropped_pool_is_freed_at_once():
    pool = make_pool("CartPole-v1", 8, 4, device="cpu")
    pool.async_reset()
    batch = pool.recv()
    pool.send(np.zeros(4, int), batch[4]["env_id"])
    gone, copy = weakref.ref(pool), batch[0].copy()
    gc.disable()
    try:
        del pool
        assert gone() is None
    finally:
        gc.enable()
    np.testing.assert_array_equal(batch[0], copy)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="only Linux lists a process's threads")
def test_threads_end_with_the_pool():
    """Threads of tests before may still be ending; and a thread that was joined stays in the list for a moment."""
    before = set(os.listdir("/proc/self/task"))
    pool = make_pool("CartPole-v1", 8, 4, 6, device="cpu")
    its_own = set(os.listdir("/proc/self/task")) - before
    assert len(its_own) == 6
    pool.close()
    deadline = time.monotonic() + 10
    while its_own & set(os.listdir("/proc/self/task")):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def test_a_process_ends_with_work_in_flight():
    code = (
        "import gpuzoo, numpy as np\n"
        "pool = gpuzoo.make_pool('TagContinuous-v0', 64, 16, 3, device='cpu')\n"
        "pool.async_reset()\n"
        "for _ in range(8):\n"
        "    pool.send(np.zeros((16 * 105, 2), int), pool.recv()[4]['env_id'])\n"
        "print('end')\n"
    )
    assert python(code) == "end\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_with_work_in_flight():
    """The child may not use the pool, and can close it and end; the parent goes on."""
    code = (
        "import os, gpuzoo, numpy as np\n"
        "pool = gpuzoo.make_pool('TagContinuous-v0', 32, 16, 3, device='cpu')\n"
        "pool.async_reset()\n"
        "for _ in range(8):\n"
        "    pool.send(np.zeros((16 * 105, 2), int), pool.recv()[4]['env_id'])\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        try:\n"
        "            pool.recv()\n"
        "        except RuntimeError as error:\n"
        "            assert 'fork' in str(error), error\n"
        "            pool.close()\n"
        "            own = gpuzoo.make_pool('CartPole-v1', 8, 4, 2, device='cpu')\n"
        "            own.async_reset()\n"
        "            own.send(np.zeros(4, int), own.recv()[4]['env_id'])\n"
        "            os._exit(0 if len(own.recv()[1]) == 4 else 2)\n"
        "        os._exit(1)\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
        "print(len(pool.recv()[4]['env_id']))\n"
    )
    assert python(code) == "16\n"


# ---- streams ----


class LateEvent:
    """Of work that is only done when it must be."""

    def __init__(self, work, before):
        self.work, self.before, self.finished = work, before, False

    def finish(self):
        if self.before is not None:
            self.before.finish()
        if self.work is not None:
            work, self.work = self.work, None
            work()
        self.finished = True

    def done(self):
        return self.finished

    join = finish


class LateStream:
    def __init__(self):
        self.events = []

    def run(self, work):
        self.events.append(LateEvent(work, self.events[-1] if self.events else None))
        return self.events[-1]


def late_pool(game, num_envs, batch_size, streams, **arguments):
    pool = EnvPool(game, num_envs, batch_size, device="simt", seed=3, **arguments)
    pool._queue._streams.clear()
    pool._queue._streams.extend(LateStream() for _ in range(streams))
    return pool, list(pool._queue._streams)


@pytest.mark.one_case
@pytest.mark.parametrize("toy", [gpuzoo.get("CartPole-v1"), Glide, Herd, Lamps], ids=lambda g: g.id)
def test_streams_that_lag_give_the_same_bits(toy):
    pool, _ = late_pool(toy, 11, 4, 2, max_episode_steps=LIMIT)
    actions = drawn_actions(pool, 4)
    play(pool, actions, expected(toy, actions, "cpu"))


def test_the_oldest_finished_batch_comes_first():
    pool, streams = late_pool("CartPole-v1", 8, 2, 4)
    pool.async_reset()
    for _ in range(4):
        pool.recv()
    pool.send(np.zeros(8, int))  # split into four batches, each on a stream of its own
    assert [len(s.events) for s in streams] == [1, 1, 1, 1]
    streams[2].events[0].finish()
    streams[1].events[0].finish()
    order = [pool.recv()[4]["env_id"].tolist() for _ in range(4)]
    assert order == [[2, 3], [4, 5], [0, 1], [6, 7]]
    with pytest.raises(RuntimeError, match="wait forever"):
        pool.recv()


@pytest.mark.gpu
def test_batches_are_ordered_with_torchs_current_stream():
    torch = pytest.importorskip("torch")
    pool = make_pool("CartPole-v1", 64, 16, seed=3, device="cuda", max_episode_steps=LIMIT)
    stream = torch.cuda.Stream()
    game = gpuzoo.get("CartPole-v1")
    actions = drawn_actions(pool, 30)
    want = expected(game, actions, "cpu")
    steps = np.zeros(64, int)
    with torch.cuda.stream(stream):
        pool.async_reset()
        for _ in range(4 * 30):
            batch = pool.recv()
            assert batch[0].is_cuda
            slow = torch.randn(512, 512, device="cuda")
            for _ in range(10):
                slow = slow @ slow
            envs = check_batch(pool, batch, want, steps)
            late = (
                torch.as_tensor(actions[steps[envs], envs].reshape(-1), device="cuda")
                + (slow.sum() * 0).nan_to_num().int()
            )
            steps[envs] += 1
            pool.send(late, envs)


# ---- dm_env ----


def test_time_steps():
    dm = make_pool("CartPole-v1", 3, seed=3, device="cpu", env_type="dm", max_episode_steps=12)
    plain = make_pool("CartPole-v1", 3, seed=3, device="cpu", max_episode_steps=12)
    step, (observation, _) = dm.reset(), plain.reset()
    np.testing.assert_array_equal(step.observation.obs, observation)
    assert step.first().all()
    assert (step.discount == 1).all()
    actions = np.array([[0, k % 2, k % 2] for k in range(40)])
    previous, kinds = np.zeros(3, bool), set()
    for action in actions:
        step = dm.step(action)
        observation, reward, terminated, truncated, info = plain.step(action)
        np.testing.assert_array_equal(step.observation.obs, observation)
        np.testing.assert_array_equal(step.observation.env_id, info["env_id"])
        np.testing.assert_array_equal(step.observation.players.env_id, info["env_id"])
        np.testing.assert_array_equal(step.reward, reward)
        np.testing.assert_array_equal(step.first(), previous)
        np.testing.assert_array_equal(step.last(), terminated | truncated)
        np.testing.assert_array_equal(step.mid(), ~(terminated | truncated | previous))
        np.testing.assert_array_equal(step.discount, 1 - terminated.astype(np.float32))
        assert step.step_type.dtype == np.int32
        assert step.discount.dtype == np.float32
        kinds |= {(bool(a), bool(b)) for a, b in zip(terminated, truncated, strict=True)}
        previous = terminated | truncated
    assert {(True, False), (False, True)} <= kinds


def test_time_steps_of_several_agents():
    """An agent that has left has discount 0 until the next first step, of which the env has one."""
    dm = make_pool(Herd, 4, 2, seed=3, device="cpu", env_type="dm", max_episode_steps=LIMIT)
    agents, seen = dm.simulator.layout.agents, set()
    gone = np.zeros((4, agents), bool)
    dm.async_reset()
    actions = drawn_actions(dm.pool, 40)
    for k in range(80):
        step = dm.recv()
        envs = step.observation.env_id
        assert step.step_type.shape == (2,)
        assert step.discount.shape == step.reward.shape == (2 * agents,)
        alive = dm.simulator.arrays["alive"][envs]
        truncated = dm.simulator.arrays["truncated"][envs]
        terminated = dm.simulator.arrays["terminated"][envs]
        gone[envs[step.first()]] = False
        gone[envs] |= terminated
        np.testing.assert_array_equal(step.discount.reshape(2, agents), ~gone[envs])
        assert (alive | truncated | gone[envs]).all()
        seen |= set(step.discount.tolist())
        dm.send(actions[k // 2, envs].reshape(-1, *dm.pool.action_space.shape), envs)
    assert seen == {0.0, 1.0}


def test_masks_in_time_steps():
    dm = make_pool(Lamps, 4, 2, seed=3, device="cpu", env_type="dm")
    state = dm.reset().observation
    assert state.action_mask.shape == (len(state.obs), dm.simulator.layout.mask_size)


def test_specs_need_dm_env(monkeypatch):
    monkeypatch.setitem(sys.modules, "dm_env", None)
    dm = make_pool("CartPole-v1", 4, device="cpu", env_type="dm")
    for spec in (dm.observation_spec, dm.action_spec, dm.reward_spec, dm.discount_spec):
        with pytest.raises(ImportError, match=r"gpuzoo\[dm\]"):
            spec()


# ---- races ----

RACE = """
int main() {
  using namespace gz;
  void *place[MEMBERS];
  u64 members[MEMBERS];
  for (int k = 0; k < MEMBERS; ++k) {
    place[k] = bytes[k] < 0 ? nullptr : calloc(1, bytes[k]);
    if (data[k]) memcpy(place[k], data[k], bytes[k]);
    members[k] = place[k] ? (u64)place[k] : value[k];
  }
  Store *store = (Store *)members;
  const int n = (int)store->num_envs;
  for (int i = 0; i < n; ++i) store->reset_mask[i] = 1;
  gz_launch_reset(store, 1, n, 1);
  i32 *ids = (i32 *)calloc(n, 4), *out_ids = (i32 *)calloc(n, 4), *players = (i32 *)calloc(n, 4);
  i32 *actions = (i32 *)calloc(n, 4);
  float *seen = (float *)calloc(n, 16), *reward = (float *)calloc(n, 4);
  Plan plan = {};
  plan.step = (Launch)gz_launch_step;
  plan.num_envs = n;
  plan.agents = 1;
  plan.columns = 2;
  plan.workers = THREADS;
  plan.worth = WORTH;
  plan.width = gz_pack_width();
  plan.ids = ids;
  plan.actions = (const char *)actions;
  plan.flight = (u8 *)calloc(n, 1);
  plan.flying = (i64 *)calloc(1, 8);
  plan.action = {ACTION, 4};
  plan.column[0] = {OBSERVATION, 16};
  plan.column[1] = {REWARD, 4};
  char *out[] = {(char *)out_ids, (char *)players, (char *)seen, (char *)reward};
  Queue *queue = gz_pool_new(&plan);
  for (int i = 0; i < n; ++i) ids[i] = i;
  if (!gz_pool_take_off(queue, n)) return 2;
  gz_pool_land(queue, members, n);
  u32 chance = 2463534242u;
  for (int step = 0; step < STEPS; ++step) {
    const int count = n / 4;
    for (int slices = 0; !gz_pool_receive(queue, out, count); ++slices)
      if (slices > 10000) return 4;
    for (int k = 0; k < count; ++k) {
      chance ^= chance << 13; chance ^= chance >> 17; chance ^= chance << 5;
      const int other = chance % (k + 1);
      ids[k] = ids[other];
      ids[other] = out_ids[k];
      actions[k] = chance >> 31;
    }
    if (!gz_pool_send(queue, members, count)) return 3;
  }
  gz_pool_delete(queue);
  return 0;
}
"""


def race(num_envs: int, steps: int, worth: int, flags: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    sim = Simulator(gpuzoo.get("CartPole-v1"), num_envs, device="cpu", max_episode_steps=30)
    places = {name: sim.program.store.index(name) for name in ("action", "observation", "reward")}
    head = "".join(f"constexpr int {name.upper()} = {k};\n" for name, k in places.items())
    text = program_text(sim, steps, 3).replace(test_sanitizers.MAIN, RACE)
    text = text.replace('#line 1 "main"', (DEVICE / "pool.cuh").read_text() + f"{head}constexpr int WORTH = {worth};")
    return test_sanitizers.run(compile_host(text, "queue", flags, ".exe"))


@pytest.mark.one_case
@pytest.mark.parametrize("worth", [0, 1_000_000])
def test_races_in_the_queue(worth):
    assert_clean(race(64, 3000, worth, THREAD))


@pytest.mark.timeout(120)
def test_a_thread_that_is_held_up_at_any_point():
    """More threads than processors and a small ring, which the others go around while one is held up.

    Fails only by a crash, or by a hang, which its time limit ends.
    """
    assert_clean(race(16, 1_000_000, 0, ()))
