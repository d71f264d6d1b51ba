"""Processes, threads and memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from toys.glide import Glide
from toys.herd import Herd

import gpuzoo
from gpuzoo import Simulator, VectorEnv
from gpuzoo.core.backend_cpu import find_compiler
from gpuzoo.testing.tools import assert_same, read

_FORK = """
import os, signal, sys, warnings
import numpy as np
import gpuzoo
from gpuzoo import Simulator, VectorEnv

game = gpuzoo.get("CartPole-v1")
old = Simulator(game, 3000, device="cpu", threads=3)
vector = VectorEnv("CartPole-v1", 4, device="cpu")
old.reset(seed=0)
vector.reset(seed=0)
old.rollout(5)
calls = {
    "step": old.step, "reset": old.reset, "rollout": lambda: old.rollout(1), "state": old.state,
    "vector step": lambda: vector.step(np.zeros(4, int)), "vector reset": vector.reset,
}
pid = os.fork()
if pid == 0:
    signal.alarm(60)
    try:
        for name, call in calls.items():
            try:
                call()
                os._exit(3)
            except RuntimeError as error:
                assert "made in another process; make it after the fork, or use 'spawn'." in str(error), error
        new = Simulator(game, 3000, device="cpu", threads=3)
        new.reset(seed=0)
        new.rollout(5)
        new.rollout(20)
        assert (new.arrays["elapsed_steps"] > 0).any()
        print(new.arrays["observation"].tobytes().hex()[:64], flush=True)
        old.close()
        vector.close()
        os._exit(0)
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(4)
_, status = os.waitpid(pid, 0)
old.rollout(20)
print(old.arrays["observation"].tobytes().hex()[:64])
old.reset(seed=0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_fork():
    """The child is refused the parent's env, and its own new one works, threads included."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", _FORK], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    child, parent = done.stdout.split()
    assert child == parent


_WORKERS = """
import os
import gpuzoo

def workers(game):
    before = len(os.listdir("/proc/self/task"))
    simulator = gpuzoo.Simulator(gpuzoo.get(game), 3000, device="cpu", threads=3)
    simulator.reset(seed=0)
    simulator.rollout(5)
    return len(os.listdir("/proc/self/task")) - before

print(workers("CartPole-v1"), workers("MountainCar-v0"))
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="only Linux lists the threads of a process there")
def test_games_share_their_workers() -> None:
    """Two of them beside the caller, where the compiler is GNU's."""
    done = subprocess.run([sys.executable, "-c", _WORKERS], capture_output=True, text=True, check=True)
    version = subprocess.run([find_compiler()[0], "--version"], capture_output=True, text=True).stdout
    assert done.stdout.split() == ["2", "0" if "Free Software Foundation" in version else "2"]


def test_gymnasiums_async_vector_env_of_single_envs():
    """Gymnasium's processes make their envs after the fork."""
    from gymnasium.vector import AsyncVectorEnv

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: fork in a process with threads
        env = AsyncVectorEnv(
            [lambda: gpuzoo.SingleEnv("CartPole-v1")] * 2, context="spawn" if sys.platform == "darwin" else None
        )
    reference = VectorEnv("CartPole-v1", 2, device="cpu")
    a, b = env.reset(seed=3)[0], reference.reset(seed=3)[0]
    assert_same("reset", {"o": a}, {"o": b})
    for _ in range(30):
        actions = env.action_space.sample()
        assert_same("step", {"o": env.step(actions)[0]}, {"o": reference.step(actions)[0]})
    env.close()


def test_two_python_threads():
    """Batches that step at the same time do not disturb each other."""
    want = Simulator(gpuzoo.get("CartPole-v1"), 3000, device="cpu", threads=2)
    want.reset(seed=0)
    want.rollout(400)
    sims = [Simulator(gpuzoo.get("CartPole-v1"), 3000, device="cpu", threads=2) for _ in range(3)]

    def play(sim):
        sim.reset(seed=0)
        for _ in range(40):
            sim.rollout(10)

    threads = [threading.Thread(target=play, args=(sim,)) for sim in sims]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    for sim in sims:
        assert_same("threads", read(want), read(sim))


def test_interrupt_during_threads_leaves_it_usable():
    """A signal handler that steps another batch, in the midst of a call: the inner call runs alone."""
    if not hasattr(signal, "setitimer"):
        pytest.skip("this system has no interval timer")
    outer, inner = (Simulator(gpuzoo.get("CartPole-v1"), 2000, device="cpu", threads=2) for _ in range(2))
    outer.reset(seed=0)
    inner.reset(seed=0)
    seen = []

    def handler(number, frame):
        inner.rollout(3)
        seen.append(1)

    old = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    try:
        for _ in range(300):
            outer.rollout(20)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert seen
    check = Simulator(gpuzoo.get("CartPole-v1"), 2000, device="cpu", threads=1)
    check.reset(seed=0)
    check.rollout(6000)
    assert_same("interrupted", read(check), read(outer))


_MEMORY = """
import gc, os, sys
import numpy as np
import gpuzoo

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def make(n):
    return gpuzoo.make_vec(
        "CartPole-v1", n, device="cpu", output=sys.argv[2], autoreset_mode="same_step", statistics=True
    )

def create():
    env = make(20000)
    env.reset(seed=0)
    env.step(np.zeros(20000, np.int64))
    return env

def close():
    env = create()
    env.close()

if sys.argv[1] == "close":
    for _ in range(10): close()
    before = resident()
    for _ in range(100): close()
    print(resident() - before)
elif sys.argv[1] == "drop":
    for _ in range(10): create()
    gc.disable()
    before = resident()
    for _ in range(100): create()
    print(resident() - before)
else:
    env = make(256)
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, 2, (100, 256))
    for k in range(2000): env.step(actions[k % 100])
    before = resident()
    for k in range(20000): env.step(actions[k % 100])
    print(resident() - before)
"""


@pytest.mark.rotates
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
@pytest.mark.parametrize("what", ["close", "drop", "soak"])
@pytest.mark.parametrize("output", ["numpy", "torch"])
def test_memory_does_not_grow(what, output):
    """One batch of 20 000 holds about 2 MB: 100 that leak would be 200 MB."""
    if output == "torch":
        pytest.importorskip("torch")
    done = subprocess.run([sys.executable, "-c", _MEMORY, what, output], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 30e6


def test_arrays_survive_the_env_that_made_them():
    env = VectorEnv(Glide, 2, device="cpu")
    observations, _ = env.reset(seed=0)
    was = observations.copy()
    env.close()
    del env
    other = VectorEnv(Glide, 2, device="cpu")
    other.reset(seed=1)
    assert (observations == was).all()


def test_torch_views_survive_close():
    torch = pytest.importorskip("torch")
    sim = Simulator(Herd, 2, device="cpu")
    from gpuzoo.tensors import views

    tensors = views(sim)
    sim.reset(seed=0)
    assert set(tensors) == set(sim.arrays)
    assert (tensors["observation"].numpy() == sim.arrays["observation"]).all()
    kept = tensors["observation"]
    sim.close()
    del sim
    assert torch.isfinite(kept).all()
    assert isinstance(kept.numpy(), np.ndarray)
