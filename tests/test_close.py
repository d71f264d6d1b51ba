"""`close` and copies while another thread steps."""

from __future__ import annotations

import copy
import threading
import time
from typing import Any

import pytest
from toys.slow import Slow

from gpuzoo import Simulator, VectorEnv

TIMEOUT = 60  # a test that hangs fails then


def running(sim: Simulator, call: Any) -> tuple[threading.Thread, list[Any]]:
    """Starts a call in a thread of its own, and waits until its kernel runs."""
    seen: list[Any] = []

    def work() -> None:
        try:
            call()
            seen.append(time.monotonic())
        except Exception as error:
            seen.append(error)

    thread = threading.Thread(target=work, daemon=True)
    before = sim.arrays["elapsed_steps"].copy()
    thread.start()
    end = time.monotonic() + TIMEOUT
    while (sim.arrays["elapsed_steps"] == before).all() and time.monotonic() < end:
        time.sleep(0.001)
    return thread, seen


def test_close_waits_for_a_running_step() -> None:
    """Before, the arrays were freed under the kernel, which crashed, or wrote into what came to lie there."""
    sim = Simulator(Slow, 2, device="cpu", threads=1, work=1000, max_episode_steps=None)
    sim.reset(seed=0)
    sim.rollout(100)
    begun = time.monotonic()
    sim.rollout(1000)
    steps = int(0.7e3 / (time.monotonic() - begun))  # 0.7 seconds' worth
    thread, seen = running(sim, lambda: sim.rollout(steps))
    assert thread.is_alive()
    kept = sim.arrays["elapsed_steps"]
    sim.close()
    closed = time.monotonic()
    thread.join(TIMEOUT)
    assert isinstance(seen[0], float), seen
    assert kept[1] == 1100 + steps, "close returned while the kernel ran"
    assert seen[0] - closed < 0.2
    with pytest.raises(RuntimeError, match="Slow-v0: this env was closed; make a new one"):
        sim.rollout(1)


def test_a_copy_waits_for_a_running_step() -> None:
    """Before, it had arrays of which some envs were a step behind the others, or behind themselves."""
    sim = Simulator(Slow, 2, device="cpu", threads=1, work=1000, max_episode_steps=None)
    sim.reset(seed=0)
    thread, seen = running(sim, lambda: sim.rollout(20_000))
    assert thread.is_alive()
    twin = copy.deepcopy(sim)
    thread.join(TIMEOUT)
    assert isinstance(seen[0], float), seen
    assert twin.arrays["elapsed_steps"].tolist() == [20_000, 20_000]


@pytest.mark.parametrize("make", [Simulator, VectorEnv])
def test_a_thread_whose_env_is_closed_is_told(make: Any) -> None:
    """At whatever point of its loop: between two steps, or between a step and what is read after it."""
    for k in range(20):
        env = make(Slow, 2, device="cpu", threads=1, work=100)
        sim = env if make is Simulator else env.simulator
        env.reset(seed=0)

        def play(env: Any = env, sim: Simulator = sim) -> None:
            while True:
                env.step() if env is sim else env.step(sim.xp.zeros(2, int))
                sim.arrays["reward"][0]

        thread, seen = running(sim, play)
        time.sleep(k * 1e-4)
        env.close()
        thread.join(TIMEOUT)
        assert type(seen[0]) is RuntimeError, seen
        assert str(seen[0]) == "Slow-v0: this env was closed; make a new one."
        env.close()
