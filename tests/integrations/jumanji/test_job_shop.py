"""JobShop against Jumanji's; drawn jobs are compared in distribution."""

from __future__ import annotations

import numpy as np
import pytest
from against import Against, keys, resets, same_distribution, simulator
from jumanji.environments import JobShop
from jumanji.environments.packing.job_shop.generator import RandomGenerator, ToyGenerator
from jumanji.environments.packing.job_shop.types import State

pytestmark = pytest.mark.rotates


def job_shop(n: int, jobs: int, machines: int, ops: int, duration: int, **options) -> Against:
    env = JobShop(ToyGenerator() if options else RandomGenerator(jobs, machines, ops, duration))

    def state_of(arrays):
        op = np.arange(ops)
        return State(
            ops_machine_ids=arrays["ops_machine_ids"].astype(np.int32),
            ops_durations=arrays["ops_durations"].astype(np.int32),
            ops_mask=(op >= arrays["next_op"][..., None]) & (op < arrays["num_ops"][..., None]),
            machines_job_ids=arrays["machines_job_ids"].astype(np.int32),
            machines_remaining_times=arrays["machines_remaining_times"].astype(np.int32),
            action_mask=(arrays["action_mask"][:, 0] != 0).reshape(n, machines, jobs + 1),
            step_count=arrays["elapsed_steps"],
            scheduled_times=arrays["scheduled_times"].astype(np.int32),
            key=keys(n),
        )

    def seen(o):
        parts = (o.ops_machine_ids, o.ops_durations, o.ops_mask, o.machines_job_ids, o.machines_remaining_times)
        return np.concatenate([np.reshape(part, (n, -1)) for part in parts], 1)

    sim = simulator(
        "JobShop-v0", n, num_jobs=jobs, num_machines=machines, max_num_ops=ops, max_op_duration=duration, **options
    )
    return Against(sim, env, state_of, seen, lambda o: o.action_mask.reshape(n, -1), after_illegal=False)


@pytest.mark.parametrize("sizes", [(20, 10, 8, 6), (1, 2, 1, 1), (3, 2, 5, 9), (70, 4, 3, 2)], ids=str)
def test_episodes(sizes):
    job_shop(1000, *sizes).follow(100_000 if sizes[0] == 20 else 20_000)


def test_steps_that_waste_no_time():
    """A machine that can begin something does, so that episodes come to their other end."""
    game = job_shop(500, 5, 3, 3, 4)
    game.any_actions = lambda rng, legal: np.stack([  # the first legal job, or nothing
        part.argmax(1) for part in np.split(game.sim.arrays["action_mask"][:, 0], 3, axis=1)
    ], 1)  # fmt: skip
    game.follow(20_000, illegal=0.0)


def test_toy():
    game = job_shop(1000, 5, 4, 4, 4, generator="toy")
    game.sim.reset(seed=0)
    ours, theirs = game.state_of(game.arrays()), resets(game.env, 1000)
    for name in ("ops_machine_ids", "ops_durations", "ops_mask", "action_mask"):
        np.testing.assert_array_equal(getattr(ours, name), np.asarray(getattr(theirs, name)))
    game.follow(20_000)


def test_steps_from_drawn_states():
    """Jobs that are anywhere in their operations, some of them on a machine."""
    n, jobs, machines, ops, duration, rng = 20_000, 6, 4, 5, 6, np.random.default_rng(0)
    num_ops = rng.integers(1, ops + 1, (n, jobs))
    there = np.arange(ops) < num_ops[..., None]
    ids = np.where(there, rng.integers(0, machines, (n, jobs, ops)), -1)
    durations = np.where(there, rng.integers(1, duration + 1, (n, jobs, ops)), -1)
    next_op = rng.integers(0, num_ops + 1)
    now = 100
    scheduled = np.where(np.arange(ops) < next_op[..., None], 0, -1)
    job_ids, remaining = np.full((n, machines), jobs), np.zeros((n, machines), int)
    for job in range(jobs):
        row, op = np.arange(n), np.maximum(next_op[:, job] - 1, 0)
        machine = ids[row, job, op]
        left = rng.integers(0, durations[row, job, op])
        free = (next_op[:, job] > 0) & (job_ids[row, machine] == jobs) & (rng.random(n) < 0.6)
        scheduled[row[free], job, op[free]] = (now - durations[row, job, op] + left)[free]
        job_ids[row[free], machine[free]] = job
        remaining[row[free], machine[free]] = left[free]
    states = {
        "ops_machine_ids": ids, "ops_durations": durations, "scheduled_times": scheduled, "num_ops": num_ops,
        "next_op": next_op, "machines_job_ids": job_ids, "machines_remaining_times": remaining,
    }  # fmt: skip
    job_shop(n, jobs, machines, ops, duration).from_states({
        **{name: array.astype(np.int16) for name, array in states.items()}, "elapsed_steps": np.full(n, now, np.int32),
    })  # fmt: skip


def test_generator():
    n = 5000
    theirs, sim = resets(JobShop(), n), simulator("JobShop-v0", n)
    sim.reset(seed=0)
    for name in ("ops_machine_ids", "ops_durations"):
        ours, others = sim.arrays[name], np.asarray(getattr(theirs, name))
        for op in range(8):
            same_distribution(ours[..., op], others[..., op])
        same_distribution((ours >= 0).sum((1, 2)), (others >= 0).sum((1, 2)))


def test_given_jobs_of_unlike_number():
    machines, durations = (
        np.array([[[0, 1], [1, -1]], [[1, 0], [0, 0]]]),
        np.array([[[2, 3], [1, -1]], [[1, 1], [2, 2]]]),
    )
    given = {"ops_machine_ids": machines, "ops_durations": durations, "size": np.array([1, 2])}
    sizes = {"num_jobs": 2, "num_machines": 2, "max_num_ops": 2, "max_op_duration": 3}
    sim = simulator("JobShop-v0", 2, **sizes, instances=given, instance=np.array([0, 1]))
    sim.reset(seed=0)
    np.testing.assert_array_equal(sim.arrays["num_ops"], [[2, 0], [2, 2]])
    np.testing.assert_array_equal(sim.arrays["ops_machine_ids"][1], machines[1])
    wrong = np.array([[[-1, 1], [1, -1]]])
    with pytest.raises(ValueError, match="instance 0: -1 must stand after"):
        simulator("JobShop-v0", 2, **sizes, instances={"ops_machine_ids": wrong, "ops_durations": wrong})
