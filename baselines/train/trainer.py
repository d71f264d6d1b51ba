"""A training run: envs, policies and learners of a population, and what all algorithms share."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gpuzoo import registry
from gpuzoo.core.definition import Layout
from gpuzoo.core.simulator import Simulator, Snapshot

from ..fast import fused
from ..fast.losses import Formula, Loss, Slopes
from ..report import checkpoint
from . import distributed
from .args import Args, option
from .learner import Learner
from .loading import describe, fill, load
from .minibatch import COLUMNS, Minibatch
from .networks import Policy
from .rollout import Rollout, by_group, state_size
from .sweep import parse_sweep


class Trainer:
    """A run: `iterate` plays one rollout and improves every policy that learns, by what `learn` does.

    Args:
        args: the run.

    Attributes:
        simulator: the envs, ``num_envs`` for each member.
        rollout: how they are played.
        learners: by policy name; frozen policies are players of the rollout only.
        policies: the policy of each group.
        steps: steps played so far, those of all envs of a member together.
        hyper: hyper-parameters of the members, (members, 1) each.
        play: plays one rollout; on a GPU a captured graph.
        update: updates each policy by the rollout, and returns what there is to log; on a GPU a captured graph.

    Raises:
        ValueError, TypeError: arguments that cannot work, before anything is compiled.
        MemoryError: the rollout does not fit; the message names a size that would.
    """

    def __init__(self, args: Args) -> None:
        lay, players = args.check()
        loaded = {name: load(path, name, args.game, lay, players[name][0]) for name, path in args.load.items()}
        self.args, self.steps, self.iteration = args, 0, 0
        M, rank = args.population, distributed.rank()
        keep_freed_memory()
        seeds = [args.seed + k for k in range(M)]
        distributed.begin(args.device)
        self.simulator = Simulator(
            registry.get(args.game), M * args.num_envs, device=distributed.device(args.device),
            autoreset_mode="same_step", **args.config,
        )  # fmt: skip
        self.device = torch.device(self.simulator.device)
        torch.backends.cudnn.deterministic = True  # a run that goes on from a checkpoint gives the same bits
        try:
            with self._fits(), ThreadPoolExecutor(1) as beside:  # the longest compilation, beside the others
                networks = beside.submit(fused.load) if self.device.type == "cpu" else None
                self._make(lay, players, loaded, seeds, rank * args.num_envs)
                if networks is not None:
                    networks.result()
        except BaseException:
            self.simulator.close()
            raise
        # Seeds of different members lie far apart, so that no two of them share an env.
        first = [(s << 32) + rank * args.num_envs for s in seeds]
        self.simulator.reset(seed=np.add.outer(np.array(first, object), range(args.num_envs)).ravel().tolist())
        limit = self.simulator.max_episode_steps
        if args.stagger and limit:
            times = np.tile(np.arange(args.num_envs) * limit // args.num_envs, M)
            self.simulator.set_state({"elapsed_steps": times.astype(np.int32)})
        self.rollout.begin()

    def _make(
        self, lay: Layout, players: Mapping[str, list[str]], loaded: Mapping[str, Any], seeds: list[int], first: int
    ) -> None:
        args, M = self.args, len(seeds)
        values = parse_sweep(args)
        self.hyper = {
            f.name: torch.tensor(values.get(f.name, [getattr(args, f.name)] * M), device=self.device).view(M, 1)
            for f in dataclasses.fields(args) if f.metadata.get("sweep")
        }  # fmt: skip
        self.fraction = torch.ones(1, device=self.device)  # of the learning rate
        self.updates = torch.zeros(1, dtype=torch.int64, device=self.device)
        central = "central" in {args.critic, *(form["critic"] for form, _ in loaded.values())}
        self.rollout = Rollout(self.simulator, args.num_steps, seeds, first, central)
        self.learners: dict[str, Learner] = {}
        for number, (name, groups) in enumerate(players.items()):
            seats = sum(lay.groups[g] for g in groups)
            form: dict[str, Any] = {
                "hidden": args.hidden, "encoder": args.encoder, "channels": args.channels, "memory": args.memory,
                "activation": args.activation, "critic": args.critic, "normalize": args.normalize_observations,
                "state_size": state_size(lay) if args.critic == "central" else 0, "seats": seats,
            }  # fmt: skip
            if name in loaded:
                form = loaded[name][0]
            policy = Policy(lay.observation_spaces[groups[0]], lay.action_spaces[groups[0]],
                            [s * 1009 + number for s in seeds], device=self.device, **form)  # fmt: skip
            player = self.rollout.add(name, policy, groups)
            if name in loaded:
                fill(policy, {k: v.expand(M, *v.shape[1:]) for k, v in loaded[name][1].items()}, args.load[name])
            if name not in args.freeze:
                learner = Learner(player, self.rollout, self.updates, distributed.total, args.bf16)
                self.learners[name] = learner
        self.losses = {name: self.loss_of(learner) for name, learner in self.learners.items()}
        self.policies = {g: p.policy for p in self.rollout.players.values() for g in p.groups}
        self.selfplay = None
        if args.pool:
            from .selfplay import SelfPlay

            self.selfplay = SelfPlay(self.rollout, args.pool, args.pool_every)
        self.play, self.update = captured(self.rollout.play, self.device), captured(self._learn_all, self.device)

    @contextlib.contextmanager
    def _fits(self) -> Iterator[None]:
        """Says which size would fit, where memory runs out."""
        args = self.args
        try:
            yield
        except (RuntimeError, MemoryError) as error:
            if not isinstance(error, MemoryError) and "memory" not in str(error).lower():
                raise
            smaller = f"population={args.population // 2}" if args.population > 1 else f"num_envs={args.num_envs // 2}"
            raise MemoryError(
                f"{args.population} x {args.num_envs} envs x {args.num_steps} steps of {self.simulator.env.id} do not "
                f"fit into the memory of {self.device}: try {smaller}."
            ) from error

    # ---- what an algorithm defines ----

    def loss_of(self, learner: Learner) -> Loss:
        """The loss that a learner goes down."""
        raise NotImplementedError(f"{type(self).__name__} is no algorithm: see baselines/ppo.py")

    def learn(self, learner: Learner, loss: Loss) -> dict[str, Tensor]:
        """Improves a policy by the rollout; returns numbers (members,) to log."""
        raise NotImplementedError(f"{type(self).__name__} is no algorithm: see baselines/ppo.py")

    # ---- what it does that with ----

    def compile(
        self, learner: Learner, formula: str, hyper: Sequence[str], numbers: Sequence[str], **constants: bool | int
    ) -> Loss:
        """A loss for a learner's kind of actions; see `Loss`."""
        self._hyper = torch.cat([self.hyper[name] for name in hyper], 1)
        masked = self.rollout.mask is not None
        form = Formula(formula, COLUMNS, hyper, numbers, learner.policy.actions, masked, constants)
        return Loss(form, self.device)

    def slopes(self, batch: Minibatch, loss: Loss) -> Slopes:
        """Gradients of the loss by what the networks said of a minibatch."""
        return batch.slopes(loss, self._hyper)

    def numbers(self, slopes: Slopes, loss: Loss) -> dict[str, Tensor]:
        """What the loss noted of a minibatch, (members,) each."""
        return dict(zip(loss.numbers, distributed.total(slopes.numbers.sum(1)).unbind(1), strict=True))

    def _learn_all(self) -> dict[str, Tensor]:
        log: dict[str, Tensor] = {}
        for learner in self.learners.values():
            numbers = learner.prepare(self.hyper["gamma"], self.hyper["gae_lambda"], self.args.normalize_rewards)
            numbers |= self.learn(learner, self.losses[learner.name])
            learner.learn_scale()
            numbers = {k: v.detach().reshape(-1) for k, v in numbers.items()}
            sound = learner.policy.flat.detach().sum(1).isfinite()
            numbers["loss"] = torch.where(
                sound, numbers.get("loss", torch.zeros_like(self.hyper["lr"][:, 0])), torch.nan
            )
            log |= {f"{learner.name}/{k}": v for k, v in numbers.items()}
        self.updates += 1 << 20  # the passes of an update have the numbers between
        for player in self.rollout.players.values():
            for group, (returns, count) in by_group(self.rollout, player).items():
                log[f"return/{group}"] = distributed.total(returns) / distributed.total(count)
        return log

    def iterate(self) -> dict[str, np.ndarray[Any, Any]]:
        """One rollout and one update of each policy.

        Returns:
            What there is to log, (members,) each: ``return/<group>``, the mean return of an agent over the episodes
            that ended (NaN if none did), and ``<policy>/...`` about the updates.

        Raises:
            FloatingPointError: the loss is not a number, for all members.
        """
        args = self.args
        self.fraction.fill_(max(0.0, 1 - self.iteration / args.iterations) if args.anneal_lr else 1.0)
        with self._fits():
            self.play()
            log = self.update()
        self.steps += args.num_envs * args.num_steps * distributed.world_size()
        self.iteration += 1
        found = torch.stack([x.double() for x in log.values()]).cpu().numpy()  # waits for a GPU, once
        numbers = dict(zip(log, found, strict=True))
        for name in self.learners:
            if np.isnan(numbers[f"{name}/loss"]).all():
                raise FloatingPointError(f"the loss of policy {name!r} is not a number in iteration {self.iteration}")
        if self.selfplay is not None:
            numbers |= {k: np.array([v]) for k, v in self.selfplay.after(self.iteration).items()}
        return numbers

    # ---- checkpoints ----

    def save(self, path: str | os.PathLike[str], **about: Any) -> None:
        """Writes a checkpoint from which `restore` goes on to the same bits; see `baselines.report.checkpoint`.

        Of several processes all must call it, and the first one writes.

        Args:
            path: the file; whole at any time.
            **about: more to keep, as JSON.
        """
        each = distributed.gather(self._own_state())
        if distributed.rank() != 0:
            return
        tensors = self._tensors(each)
        checkpoint.save(path, tensors, {
            **self._expected(), "args": self.args.about(), "steps": self.steps, "iteration": self.iteration, **about,
        })  # fmt: skip

    def state(self) -> dict[str, Tensor]:
        """All that the run depends on, by name, as a checkpoint has it; of other processes what this one has."""
        return self._tensors([self._own_state()] * distributed.world_size())

    def _tensors(self, each: Sequence[Mapping[str, np.ndarray[Any, Any]]]) -> dict[str, Tensor]:
        """All that the run depends on, with what each process has of its own."""
        tensors: dict[str, Tensor] = {"counter": self.rollout.counter, "updates": self.updates}
        for number, mine in enumerate(each):
            tensors |= {f"process/{number}/{k}": torch.from_numpy(v) for k, v in mine.items()}
        for name, player in self.rollout.players.items():
            found = {f"weights/{k}": v for k, v in player.policy.state_dict().items()}
            if name in self.learners:
                found = self.learners[name].state()
            tensors |= {f"policy/{name}/{k}": v for k, v in found.items()}
        if self.selfplay is not None:
            tensors |= {f"pool/{k}": v for k, v in self.selfplay.state().items()}
        return tensors

    def _own_state(self) -> dict[str, np.ndarray[Any, Any]]:
        """What differs between processes: the envs, and what their agents remember."""
        tensors = {f"memory/{n}": p.memory[-1] for n, p in self.rollout.players.items()}
        tensors |= {f"running_return/{n}": x.running_return for n, x in self.learners.items()}
        tensors["begins"] = self.rollout.begins[-1]
        arrays = {f"env/{k}": v for k, v in self.simulator.snapshot().numpy().arrays.items()}
        return arrays | {k: v.cpu().numpy() for k, v in tensors.items()}

    def _expected(self) -> dict[str, Any]:
        """What a run that goes on cannot change."""
        names = ("algorithm", "num_envs", "num_steps", "population", "seed", "sweep", "pool")
        about = self.args.about()
        run = {name: about[name] for name in names} | {"processes": distributed.world_size()}
        policies = {n: describe(p.policy) for n, p in self.rollout.players.items()}
        return {"game": self.simulator.env.id, "config": self.simulator.constants(), "policies": policies, "run": run}

    def restore(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Goes on from a checkpoint of the same run; returns what it says about itself.

        Raises:
            ValueError: no checkpoint, a damaged one, or one of another game, shape or version. Nothing is changed then.
        """
        tensors, about = checkpoint.load_run(path)
        checkpoint.check(about, self._expected(), path)
        expected = self.state()
        if self.selfplay is not None:
            expected |= self.selfplay.past_like(tensors, path, "pool/")
        checkpoint.check_tensors(tensors, expected, path)
        for name in ("counter", "updates"):
            if int(tensors[name]) < 0:
                raise ValueError(f"the checkpoint {path} cannot go on: {name} is {int(tensors[name])}.")
        mine = checkpoint.below(tensors, f"process/{distributed.rank()}/")
        env = {k: v.numpy() for k, v in checkpoint.below(mine, "env/").items()}
        try:
            self.simulator.restore(Snapshot(about["game"], about["config"], env))
        except ValueError as error:
            raise ValueError(f"the checkpoint {path} cannot go on: {error}") from error
        for name, player in self.rollout.players.items():
            found = checkpoint.below(tensors, f"policy/{name}/")
            if name in self.learners:
                self.learners[name].restore(found)
            else:
                player.policy.load_state_dict(checkpoint.below(found, "weights/"))
        self.rollout.begin()
        self.rollout.begins[-1].copy_(mine["begins"])
        for name, player in self.rollout.players.items():
            player.memory[-1].copy_(mine[f"memory/{name}"])
        for name, learner in self.learners.items():
            learner.running_return.copy_(mine[f"running_return/{name}"])
        self.rollout.counter.copy_(tensors["counter"])
        self.updates.copy_(tensors["updates"])
        if self.selfplay is not None:
            self.selfplay.restore(checkpoint.below(tensors, "pool/"))
        self.steps, self.iteration = about["steps"], about["iteration"]
        return about

    def close(self) -> None:
        """Frees the envs."""
        self.simulator.close()


@functools.cache
def keep_freed_memory() -> None:
    """Lets the C library keep freed memory for the next minibatch, where it is glibc.

    By default it gives large blocks back to the system, which clears them page by page when they are wanted again: a
    third of the time of an update with large minibatches.
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL("libc.so.6").mallopt
        mallopt(-4, 0)  # M_MMAP_MAX
        mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


def captured(function: Callable[[], Any], device: torch.device) -> Callable[[], Any]:
    """A function that on a GPU runs as one CUDA graph from its second call on; on a CPU it is what it was.

    It must do the same at each call, to the same tensors.
    """
    if device.type != "cuda":
        return function
    graph, stream, result, calls = torch.cuda.CUDAGraph(), torch.cuda.Stream(device), None, 0

    def run() -> Any:
        nonlocal result, calls
        calls += 1
        if calls == 1:  # on the stream on which it is captured next
            here = torch.cuda.current_stream(device)
            stream.wait_stream(here)
            with torch.cuda.stream(stream):
                out = function()
            here.wait_stream(stream)
            return out
        if calls == 2:
            with torch.cuda.device(device), torch.cuda.graph(graph, stream=stream):
                result = function()
        graph.replay()
        return result

    return run


__all__ = ["Args", "Trainer", "option"]
