"""Checkpoints of a run: which tensors they hold, and how a run goes on from them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from gpuzoo.core.snapshot import Snapshot
from gpuzoo.core.uniform import Uniform

from ..report import checkpoint
from . import distributed, extras
from .loading import describe

if TYPE_CHECKING:
    from .trainer import Trainer


def save(trainer: Trainer, path: str | os.PathLike[str], about: Mapping[str, Any]) -> None:
    """Writes a checkpoint, see `Trainer.save`."""
    each = distributed.gather(own_state(trainer))
    if distributed.rank() != 0:
        return
    now = {"args": trainer.args.about(), "steps": trainer.steps, "iteration": trainer.iteration,
           "executor": trainer.executor.name}  # fmt: skip
    checkpoint.save(path, tensors(trainer, each), {**expected(trainer), **now, **about})


def tensors(trainer: Trainer, each: Sequence[Mapping[str, np.ndarray[Any, Any]]]) -> dict[str, Tensor]:
    """All that the run depends on, with what each process has of its own."""
    out: dict[str, Tensor] = {"counter": trainer.rollout.counter, "updates": trainer.updates}
    out |= {
        f"range/{k}": torch.tensor([x.low, x.high], dtype=torch.float64) for k, x in trainer.simulator.drawn.items()
    }
    out |= {f"extra/{k}": x for k, x in extras.tensors(trainer.extra).items()}
    for number, mine in enumerate(each):
        out |= {f"process/{number}/{k}": torch.from_numpy(v) for k, v in mine.items()}
    for name, player in trainer.rollout.players.items():
        found = {f"weights/{k}": v for k, v in player.policy.state_dict().items()}
        if name in trainer.learners:
            found = trainer.learners[name].state_dict()
        out |= {f"policy/{name}/{k}": v for k, v in found.items()}
    if trainer.selfplay is not None:
        out |= {f"pool/{k}": v for k, v in trainer.selfplay.state().items()}
    return out


def own_state(trainer: Trainer) -> dict[str, np.ndarray[Any, Any]]:
    """The state that differs between processes: the envs, the memories of their agents, and random numbers."""
    tensors = {f"memory/{n}": p.memory[-1] for n, p in trainer.rollout.players.items()}
    tensors |= {f"running_return/{n}": x.normalization.running_return for n, x in trainer.learners.items()}
    tensors |= {f"random/{n}": x for n, x in trainer.executor.state().items()}
    tensors["begins"] = trainer.rollout.begins[-1]
    arrays = {f"env/{k}": v for k, v in trainer.simulator.snapshot().numpy().arrays.items()}
    return arrays | {k: v.cpu().numpy() for k, v in tensors.items()}


def expected(trainer: Trainer) -> dict[str, Any]:
    """Options that cannot change when a run continues."""
    names = ("algorithm", "num_envs", "num_steps", "population", "seed", "sweep", "pool")
    about = trainer.args.about()
    run = {name: about[name] for name in names}
    run |= {"processes": distributed.world_size()}
    policies = {n: describe(p.policy) for n, p in trainer.rollout.players.items()}
    return {"game": trainer.simulator.env.id, "config": trainer.simulator.constants(), "policies": policies, "run": run}


def restore_envs(trainer: Trainer, snapshot: Snapshot, config: Mapping[str, Any], ranges: Mapping[str, Tensor]) -> None:
    """Puts the envs into the state of a snapshot, with parameters that the run has changed since it was made.

    Args:
        trainer: of the run.
        snapshot: of its envs.
        config: the parameters with which the run was made. If they are others than these, nothing is changed.
        ranges: both ends (2,) of what every episode draws, by name.

    Raises:
        ValueError: see `Simulator.restore`.
    """
    simulator, arrays, drawn = trainer.simulator, snapshot.arrays, trainer.simulator.drawn
    shared = {k: float(now[0]) for k, now in simulator.params.items() if now.shape == (1,) and k not in drawn}
    if checkpoint.same(config, trainer.args.about()["config"]):
        found = {name: np.unique(arrays.get(f"param_{name}", np.zeros(0))) for name in shared}
        numbers = {name: float(x[0]) for name, x in found.items() if len(x) == 1}
        ends = {name: ranges[name].tolist() for name in drawn}
        simulator.set_params(**numbers, **{k: Uniform(ends[k][0], ends[k][1], x.log) for k, x in drawn.items()})
    try:
        simulator.restore(snapshot)
    except ValueError:
        simulator.set_params(**shared, **drawn)
        raise


def without_random(found: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors without the state of random numbers, which only the same executor can go on from."""
    return {name: x for name, x in found.items() if not re.match(r"process/\d+/random/", name)}


def restore(trainer: Trainer, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Goes on from a checkpoint, see `Trainer.restore`."""
    found, about = checkpoint.load_run(path)
    checkpoint.check(about, expected(trainer), path)
    extra = checkpoint.below(found, "extra/")
    wanted = {k: x for k, x in trainer.state().items() if not k.startswith("extra/")}
    wanted |= {f"extra/{k}": x for k, x in extras.expected(trainer.extra, extra).items()}
    if trainer.selfplay is not None:
        wanted |= trainer.selfplay.past_like(found, path, "pool/")
    same_executor = about.get("executor") == trainer.executor.name
    if not same_executor:
        found, wanted = without_random(found), without_random(wanted)
    checkpoint.check_tensors(found, wanted, path)
    for name in ("counter", "updates"):
        if int(found[name]) < 0:
            raise ValueError(f"the checkpoint {path} cannot go on: {name} is {int(found[name])}.")
    mine = checkpoint.below(found, f"process/{distributed.rank()}/")
    env = {k: v.numpy() for k, v in checkpoint.below(mine, "env/").items()}
    try:
        if same_executor:
            trainer.executor.check(checkpoint.below(mine, "random/"))
        snapshot, ranges = Snapshot(about["game"], about["config"], env), checkpoint.below(found, "range/")
        restore_envs(trainer, snapshot, about["args"]["config"], ranges)
    except ValueError as error:
        raise ValueError(f"the checkpoint {path} cannot go on: {error}") from error
    for name, player in trainer.rollout.players.items():
        learnt = checkpoint.below(found, f"policy/{name}/")
        if name in trainer.learners:
            trainer.learners[name].load_state_dict(learnt)
        else:
            player.policy.load_state_dict(checkpoint.below(learnt, "weights/"))
    extras.restore(trainer.extra, extra)
    trainer.rollout.begin()
    trainer.rollout.begins[-1].copy_(mine["begins"])
    for name, player in trainer.rollout.players.items():
        player.memory[-1].copy_(mine[f"memory/{name}"])
    for name, learner in trainer.learners.items():
        learner.normalization.running_return.copy_(mine[f"running_return/{name}"])
    trainer.rollout.counter.copy_(found["counter"])
    if same_executor:
        trainer.executor.restore(checkpoint.below(mine, "random/"))
    else:
        trainer.executor.reseed(int(found["counter"]))
    trainer.updates.copy_(found["updates"])
    if trainer.selfplay is not None:
        trainer.selfplay.restore(checkpoint.below(found, "pool/"))
    trainer.steps, trainer.iteration = about["steps"], about["iteration"]
    return about
