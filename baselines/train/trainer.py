"""A training run: envs, policies and learners of a population, and what all algorithms share."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from gpuzoo import registry
from gpuzoo.core.layout import Layout
from gpuzoo.core.simulator import Simulator

from . import distributed, saving, schedule
from .allocator import keep_freed_memory
from .args import Args, option
from .executor import Executor, choose_plain
from .extras import Extra
from .learner import Head, Learner
from .loading import fill, load
from .loss import Hyper, Loss, Row
from .minibatch import Minibatch
from .networks import Agents, Policy
from .rollout import Rollout, by_group, state_size
from .sweep import parse_sweep


class Trainer:
    """A run: `iterate` plays one rollout and improves every policy that learns, by what `learn` does.

    Args:
        args: the run.
        executor: does the work; by default what `choose_executor` finds for the options ``executor`` and ``device``.

    Attributes:
        simulator: the envs, ``num_envs`` for each member.
        rollout: how they are played.
        learners: by policy name; frozen policies are players of the rollout only.
        policies: the policy of each group.
        schedule: what changes from iteration to iteration, see ``--schedule``.
        steps: steps played so far, those of all envs of a member together.
        hyper: hyper-parameters of the members, (members, 1) each.
        fraction: (1,) of the learning rate.
        extra: by name, what else an algorithm keeps in checkpoints: tensors, modules, optimisers and generators. Fill
            it in ``__init__``. Of several processes it must be the same in all.
        play: plays one rollout.
        update: updates each policy by the rollout, and returns numbers to log.

    Raises:
        ValueError, TypeError: arguments that cannot work, before anything is compiled.
        MemoryError: the rollout does not fit; the message names a size that would.
    """

    #: Finds an executor by its name and the device; `PPO` and `A2C` have `baselines.executors.choose` here.
    choose_executor = staticmethod(choose_plain)
    #: further heads of the critic, by name; `on_rollout` writes their rewards into `Learner.rewards`
    heads: ClassVar[Mapping[str, Head]] = {}

    def __init__(self, args: Args, executor: Executor | None = None) -> None:
        lay, players = args.check()
        own = type(self).networks is not Trainer.networks
        loaded = {name: load(path, name, args.game, lay, players[name][0], own) for name, path in args.load.items()}
        self.args, self.steps, self.iteration = args, 0, 0
        self.extra: dict[str, Extra] = {}
        self.schedule = schedule.parse_schedule(args)
        self.executor = executor or self.choose_executor(args.executor, args.device)
        M, rank = args.population, distributed.rank()
        keep_freed_memory()
        seeds = [args.seed + k for k in range(M)]
        distributed.begin(args.device)
        self.simulator = Simulator(
            registry.get(args.game), M * args.num_envs, device=distributed.device(args.device),
            autoreset_mode="same_step", **args.config | schedule.ranges(self.schedule),
        )  # fmt: skip
        self.device = torch.device(self.simulator.device)
        torch.backends.cudnn.deterministic = True  # a run that goes on from a checkpoint gives the same bits
        try:
            with self._fits():
                self._make(lay, players, loaded, seeds, rank * args.num_envs)
            schedule.apply(self)  # before the first episodes begin
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
        self.hyper = Hyper({
            f.name: values.get(f.name, [getattr(args, f.name)] * M)
            for f in dataclasses.fields(args) if f.metadata.get("sweep")
        }, self.device)  # fmt: skip
        self.fraction = torch.ones(1, device=self.device)
        self.updates = torch.zeros(1, dtype=torch.int64, device=self.device)
        central = "central" in {args.critic, *(form["critic"] for form, _ in loaded.values())}
        self.rollout = Rollout(self.simulator, args.num_steps, seeds, self.executor, first, central)
        self.learners: dict[str, Learner] = {}
        for number, (name, groups) in enumerate(players.items()):
            seats = sum(lay.groups[g] for g in groups)
            options: dict[str, Any] = {
                "hidden": args.hidden, "encoder": args.encoder, "channels": args.channels, "memory": args.memory,
                "activation": args.activation, "critic": args.critic, "normalize": args.normalize_observations,
                "state_size": state_size(lay) if args.critic == "central" else 0, "seats": seats,
                "one_hot": args.one_hot, "action_parts": args.action_parts,
            }  # fmt: skip
            group, heads = groups[0], tuple(self.heads)
            if args.encoder == "set":
                options["entities"] = lay.entities[group]
            if args.encoder == "board":
                options["cells"] = lay.action_cells[group]
            if name in loaded:
                options = {k: v for k, v in loaded[name][0].items() if k not in ("heads", "module")}
                heads = tuple(loaded[name][0].get("heads", ()))
            policy = self.networks(Agents(
                name, tuple(groups), lay.observation_spaces[group], lay.action_spaces[group],
                tuple(s * 1009 + number for s in seeds), heads, self.device, options,
            ))  # fmt: skip
            policy.log_std.data.fill_(args.log_std_init)
            player = self.rollout.add(name, policy, groups)
            if name in loaded:
                made, wanted = (form.get("module", "the built-in networks") for form in (policy.form, loaded[name][0]))
                if made != wanted:
                    raise ValueError(f"policy {name!r} in {args.load[name]} has {wanted}, but `networks` made {made}.")
                fill(policy, {k: v.expand(M, *v.shape[1:]) for k, v in loaded[name][1].items()}, args.load[name])
            if name not in args.freeze:
                self.learners[name] = Learner(
                    player, self.rollout, self.updates, args.bf16, args.normalize_rewards, self.heads
                )
        if args.random_opponents:
            self.rollout.randomize(args.random_opponents)
        plays = {g: p.policy for p in self.rollout.players.values() for g in p.groups}
        self.policies = {g: plays[g] for g in lay.groups}
        self.selfplay = None
        if args.pool:
            from .selfplay import SelfPlay

            self.selfplay = SelfPlay(self.rollout, args.pool, args.pool_every)
        self.executor.setup(self)
        self.play = functools.partial(self.executor.play, self.rollout)
        self.update = self.executor.capture(self._learn_all)

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

    def loss(self, row: Row, hyper: Hyper) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of each row of a minibatch, and numbers of each row to log, by name; (members, rows) each."""
        raise NotImplementedError(f"{type(self).__name__} is no algorithm: see baselines/ppo.py")

    def learn(self, learner: Learner) -> Mapping[str, Tensor]:
        """Improves a policy by the rollout; returns numbers (members,) to log."""
        raise NotImplementedError(f"{type(self).__name__} is no algorithm: see baselines/ppo.py")

    def networks(self, agents: Agents) -> Policy:
        """Makes a policy with its networks: those that the options tell, or, if overridden, any modules.

        ``return ModulePolicy(agents, lambda: Net(agents.shape, agents.outputs))`` makes a policy of modules of one's
        own, see `ModulePolicy`.
        """
        return Policy(agents.observation_space, agents.action_space, agents.seeds, heads=agents.heads,
                      device=agents.device, **agents.options)  # fmt: skip

    def on_rollout(self, learner: Learner) -> Mapping[str, Tensor]:
        """Called after a rollout, before its advantages are computed: may change `Learner.reward`.

        Returns:
            Numbers (members,) to log.
        """
        learner.reward = learner.normalization.apply(learner, learner.reward, self.hyper.gamma)
        return {}

    # ---- what it does that with ----

    def prepare(self, learner: Learner) -> dict[str, Tensor]:
        """Makes transitions of what was played; returns numbers (members,) to log."""
        learner.collect()
        return {**self.on_rollout(learner), **learner.prepare(self.hyper.gamma, self.hyper.gae_lambda)}

    def evaluate(self, batch: Minibatch) -> Mapping[str, Tensor]:
        """Computes the gradient of a minibatch's loss; returns means over its rows, see `Executor.evaluate`."""
        return self.executor.evaluate(batch, self.objective, self.hyper)

    @property
    def objective(self) -> Loss:
        """`loss`, with half the squared errors of the further heads, times ``vf_coef``."""
        return self._loss_of_all_heads if self.heads else self.loss

    def _loss_of_all_heads(self, row: Row, hyper: Hyper) -> tuple[Tensor, dict[str, Tensor]]:
        loss, numbers = self.loss(row, hyper)
        for name in self.heads:
            error = 0.5 * (getattr(row, f"value_{name}") - getattr(row, f"target_{name}")).square()
            loss, numbers = loss + hyper.vf_coef * error, {**numbers, f"value_loss_{name}": error}
        return loss, numbers

    def step(self, learner: Learner, rate: Tensor | None = None) -> None:
        """A step of Adam down that gradient.

        Args:
            learner: whose policy.
            rate: (members, 1) learning rates; None: those of the run.
        """
        rate = self.hyper.lr * self.fraction if rate is None else rate
        self.executor.step(learner, rate, self.hyper.max_grad_norm)

    def _learn_all(self) -> dict[str, Tensor]:
        log: dict[str, Tensor] = {}
        for learner in self.learners.values():
            numbers = self.prepare(learner)
            numbers |= self.learn(learner)
            learner.learn_scale()
            numbers = {k: v.detach().reshape(-1) for k, v in numbers.items()}
            sound = learner.policy.flat.detach().sum(1).isfinite()
            numbers["loss"] = torch.where(sound, numbers.get("loss", torch.zeros_like(self.hyper.lr[:, 0])), torch.nan)
            log |= {f"{learner.name}/{k}": v for k, v in numbers.items()}
        self.updates += 1 << 20  # the passes of an update have the numbers between
        for player in self.rollout.players.values():
            for group, (returns, count) in by_group(self.rollout, player).items():
                log[f"return/{group}"] = distributed.all_reduce(returns) / distributed.all_reduce(count)
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
        falls = args.anneal_lr and not any(change.name == "lr" for change in self.schedule)
        self.fraction.fill_(max(0.0, 1 - self.iteration / args.iterations) if falls else 1.0)
        scheduled = schedule.apply(self)
        with self._fits():
            self.play()
            is_open = any(learner.normalization.is_open for learner in self.learners.values())
            log = self._learn_all() if is_open else self.update()  # a graph always does what it did first
        self.steps += args.num_envs * args.num_steps * distributed.world_size()
        self.iteration += 1
        found = torch.stack([x.double() for x in log.values()]).cpu().numpy()  # waits for a GPU, once
        numbers = dict(zip(log, found, strict=True)) | scheduled
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
        saving.save(self, path, about)

    def restore(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Goes on from a checkpoint of the same run; returns what it says about itself.

        Raises:
            ValueError: no checkpoint, a damaged one, or one of another game, shape or version. Nothing is changed then.
        """
        return saving.restore(self, path)

    def state(self) -> dict[str, Tensor]:
        """All that the run depends on, by name, as a checkpoint has it; of other processes what this one has."""
        return saving.tensors(self, [saving.own_state(self)] * distributed.world_size())

    def close(self) -> None:
        """Frees the envs."""
        self.simulator.close()


__all__ = ["Args", "Trainer", "option"]
