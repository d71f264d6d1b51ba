"""JobShop."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.jumanji.instances import OfSizedInstances, Part, SizedConfig
from gpuzoo.render import CYCLE, Canvas

#: Jumanji's toy: machine and duration of each operation, and the sizes
TOY = (
    ((2, 3, 1, 2), (3, 2, 0, -1), (1, 3, -1, -1), (0, 3, 0, 0), (1, 0, 1, -1)),
    ((2, 2, 1, 2), (2, 4, 1, -1), (2, 3, -1, -1), (4, 1, 1, 1), (3, 1, 2, -1)),
)
TOY_SIZES = (5, 4, 4, 4)


@dataclasses.dataclass(frozen=True)
class JobShopConfig(SizedConfig):
    """The jobs and the machines."""

    num_jobs: int = param(20, low=1, high=500, doc="jobs of the largest instance")
    num_machines: int = param(10, low=2, high=100, doc="machines")
    max_num_ops: int = param(8, low=1, high=100, doc="most operations of a job")
    max_op_duration: int = param(6, low=1, high=1000, doc="longest duration of an operation, in steps")
    generator: Literal["random", "toy"] = param("random", doc="drawn jobs, or always the five of Jumanji's toy")


class JobShop(OfSizedInstances):
    """Job shop scheduling: machines process the operations of jobs, and all jobs should be done as early as possible.

    The operations of a job are processed one after the other, each on its machine and for its duration. A machine
    processes one operation at a time. Each step, each machine that is free begins the next operation of a job or
    nothing; then time goes on by one step. A job has from 1 to ``max_num_ops`` operations; their number, machines and
    durations, from 1 to ``max_op_duration``, are drawn uniformly, or given.

    **Instances.** ``instances`` is a dataset with `ops_machine_ids` and `ops_durations`, (instances, num_jobs,
    max_num_ops) each, -1 after the last operation of a job. Each episode takes one of them at random, or always the one
    that ``instance`` names. Instances may be smaller than ``num_jobs``: `size` of the dataset, (instances,), says how
    many jobs there are; the first ones count. ``size`` does the same for drawn instances. It may differ between envs,
    or be drawn anew for each episode by ``gpuzoo.Uniform``. Absent jobs have no operations. ``generator="toy"`` is an
    instance of Jumanji whose best schedule takes 8 steps; it needs ``num_jobs=5``, ``num_machines=4``,
    ``max_num_ops=4`` and ``max_op_duration=4``.

    **Actions.** `MultiDiscrete`, ``num_jobs`` + 1 for each machine: the job whose next operation it begins, or
    ``num_jobs`` for nothing. The action mask holds the jobs that a free machine can begin; nothing is always legal. No
    two machines can begin the same job, so any legal choices fit together.

    **Observation.** `Box(3 num_jobs max_num_ops + 2 num_machines)`, int16: the machine of each operation of each job;
    its duration, both -1 after the last one; whether it is still to be begun; the job that each machine processes or
    has just processed, ``num_jobs`` for none; the steps until it is free.

    **Reward.** -1 per step. If all machines do nothing, or an action is illegal, minus the number of jobs times
    ``max_num_ops`` times ``max_op_duration``.

    **End.** All operations are processed, all machines do nothing, or an action was illegal, which changes nothing.
    """

    id = "JobShop-v0"
    Config = JobShopConfig
    invalid_action = -1
    action_mask = True
    reference = "jumanji==1.1.2 JobShop-v0"
    links: ClassVar[Mapping[str, str]] = {"Jumanji": "https://instadeepai.github.io/jumanji/environments/job_shop/"}
    similar = (r"[Jj]ob[-_]?[Ss]hop.*", r"JSSP.*", r"jss.*")
    render_fps = 6

    def largest(self, cfg: JobShopConfig) -> int:
        return cfg.num_jobs

    def parts(self, cfg: JobShopConfig) -> dict[str, Part]:
        shape = (cfg.num_jobs, cfg.max_num_ops)
        return {
            **super().parts(cfg),
            "ops_machine_ids": Part(shape, "int32", -1, cfg.num_machines - 1),
            "ops_durations": Part(shape, "int32", -1, cfg.max_op_duration),
        }

    def fault(self, cfg: JobShopConfig, instance: Mapping[str, NDArray[Any]]) -> str:
        machines, durations = instance["ops_machine_ids"], instance["ops_durations"]
        if ((machines < 0) != (durations < 0)).any() or (durations == 0).any():
            return "each operation must have a machine and a duration of at least 1, or -1 for both"
        if ((machines[:, :-1] < 0) & (machines[:, 1:] >= 0)).any():
            return "-1 must stand after the last operation of a job only"
        return ""

    def check(self, cfg: JobShopConfig) -> None:
        super().check(cfg)
        sizes = (cfg.num_jobs, cfg.num_machines, cfg.max_num_ops, cfg.max_op_duration)
        if cfg.generator == "toy" and (sizes != TOY_SIZES or cfg.instances):
            raise ValueError(
                f"{self.id}: generator='toy' needs num_jobs=5, num_machines=4, max_num_ops=4, max_op_duration=4 "
                "and no instances."
            )

    def constants(self, cfg: JobShopConfig) -> dict[str, int]:
        return {**super().constants(cfg), **({"INSTANCES": 1} if cfg.generator == "toy" else {})}

    def tables(self, cfg: JobShopConfig) -> dict[str, NDArray[Any]]:
        if cfg.generator != "toy":
            return super().tables(cfg)
        machines, durations = (np.array(part, np.int32).reshape(-1) for part in TOY)
        size = np.array([cfg.num_jobs], np.int32)
        return {"given_size": size, "given_ops_machine_ids": machines, "given_ops_durations": durations}

    def observation_space(self, cfg: JobShopConfig, group: str) -> spaces.Box:
        ops, machines = cfg.num_jobs * cfg.max_num_ops, cfg.num_machines
        low = np.array([-1] * (2 * ops) + [0] * (ops + 2 * machines), np.int16)
        high = np.repeat(
            np.array([machines - 1, cfg.max_op_duration, 1, cfg.num_jobs, cfg.max_op_duration], np.int16),
            [ops, ops, ops, machines, machines],
        )
        return spaces.Box(low, high, dtype=np.int16)

    def action_space(self, cfg: JobShopConfig, group: str) -> spaces.MultiDiscrete:
        return spaces.MultiDiscrete([cfg.num_jobs + 1] * cfg.num_machines)

    def observation_names(self, cfg: JobShopConfig, group: str) -> dict[str, int]:
        ops = cfg.num_jobs * cfg.max_num_ops
        return {
            "machine of each operation": ops, "duration of each operation": ops, "whether it is to be begun": ops,
            "job of each machine": cfg.num_machines, "steps until it is free": cfg.num_machines,
        }  # fmt: skip

    def action_names(self, cfg: JobShopConfig, group: str) -> dict[str, int]:
        return {"job for each machine": cfg.num_machines}

    def fields(self, cfg: JobShopConfig) -> dict[str, Field]:
        shape = ("num_jobs", "max_num_ops")
        return {
            "ops_machine_ids": Field("int16", shape, "machine of each operation, -1 after the last one"),
            "ops_durations": Field("int16", shape, "duration of each operation in steps, -1 after the last one"),
            "scheduled_times": Field("int16", shape, "step at which each operation was begun, -1 if it was not"),
            "size": Field("int32", doc="number of jobs"),
            "num_ops": Field("int16", ("num_jobs",), "operations of each job"),
            "next_op": Field("int16", ("num_jobs",), "the next operation of each job"),
            "machines_job_ids": Field("int16", ("num_machines",), "job of each machine, num_jobs for none"),
            "machines_remaining_times": Field("int16", ("num_machines",), "steps until each machine is free"),
        }

    def aspect(self, cfg: JobShopConfig) -> float:
        return 1.6

    def render(self, cfg: JobShopConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        size, time = int(state["size"]), int(state["elapsed_steps"])
        machines, begun = np.asarray(state["ops_machine_ids"]), np.asarray(state["scheduled_times"])
        durations = np.asarray(state["ops_durations"])
        width = max(30.0, float((begun + durations).max()) + 1.0, time + 5.0)
        high = 0.55 * width / cfg.num_machines
        canvas.background("paper")
        canvas.view(-0.05 * width, -0.4 * high, 1.01 * width, high * (cfg.num_machines + 0.4), y_down=True, hud=True)
        for machine in range(cfg.num_machines):
            y = high * machine
            canvas.rect(0, y + 0.06 * high, width, y + 0.94 * high, fill="mist")
            canvas.text(-0.02 * width, y + 0.5 * high, str(machine), size=9, colour="slate")
        for job, op in zip(*np.nonzero(begun >= 0), strict=True):
            y, x, wide = high * int(machines[job, op]), float(begun[job, op]), float(durations[job, op])
            fill = CYCLE[job % len(CYCLE)]
            canvas.rect(x, y + 0.1 * high, x + wide, y + 0.9 * high, fill=fill, outline="white", width=1)
            canvas.text(x + wide / 2, y + 0.5 * high, str(job), colour="white", bold=True, height=0.4 * min(high, wide))
        canvas.line(time, -0.2 * high, time, high * (cfg.num_machines + 0.2), colour="ink", width=1.5)
        left = int((np.asarray(state["num_ops"]) - np.asarray(state["next_op"])).sum())
        canvas.hud(left=f"{size} jobs, {left} operations to begin", right=f"step {time}")
