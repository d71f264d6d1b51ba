"""A training run: envs, policies and learners of a population, and what all algorithms share."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from baselines import checkpoint, distributed, fused
from baselines.learner import COLUMNS, Learner, Minibatch
from baselines.losses import Loss, Slopes
from baselines.networks import CRITICS, ENCODERS, Policy
from baselines.rollout import Rollout, by_group
from baselines.sweep import parse_sweep
from gpuzoo import registry
from gpuzoo.core.definition import EnvDef, Layout, choices, flat_size, layout, split_config, unknown
from gpuzoo.core.simulator import Simulator, Snapshot


def option(default: Any, doc: str, *, sweep: bool = False) -> Any:
    """A hyper-parameter with its line of help; ``sweep`` if the members of a population may differ in it."""
    return dataclasses.field(default=default, metadata={"doc": doc, "sweep": sweep})


@dataclasses.dataclass
class Args:
    """Everything that a run depends on, whatever the algorithm."""

    algorithm: ClassVar[str]

    game: str | type[EnvDef]
    num_envs: int = option(64, "envs that are stepped together, for each member of a population")
    num_steps: int = option(128, "steps of each env between two updates")
    total_steps: int = option(1_000_000, "steps to train for, those of all envs of a member together")
    seed: int = option(1, "seed of envs, weights, actions and minibatches")
    device: str = option("auto", "cpu, cuda, cuda:k or auto")
    out: str = option("", "folder for checkpoint, log and learning curve; none by default")
    resume: bool = option(False, "go on from the checkpoint in the folder, if there is one")
    config: dict[str, Any] = dataclasses.field(default_factory=dict)
    population: int = option(1, "agents trained side by side, with the seeds seed, seed + 1, ...")
    sweep: str = option("", "NAME=LOW:HIGH, NAME=log:LOW:HIGH or NAME=A/B/C, with commas between: hyper-parameters "
                            "in which the members of the population differ")  # fmt: skip
    policies: dict[str, str] = dataclasses.field(
        default_factory=dict, metadata={"doc": "group=name,...: which policy plays a group; equal names share one"}
    )
    load: dict[str, str] = dataclasses.field(
        default_factory=dict,
        metadata={"doc": "name=FILE,...: begin with a policy from a checkpoint; FILE#k takes member k"},
    )
    freeze: tuple[str, ...] = option((), "names of policies that play but do not learn")
    pool: int = option(0, "turn-based games: play half of the envs against so many past selves")
    pool_every: int = option(10, "iterations between two past selves")
    hidden: tuple[int, ...] = option((64, 64), "sizes of the dense layers")
    activation: str = option("tanh", "tanh or relu")
    encoder: str = option("auto", "mlp, cnn, or auto: a CNN where observations are images")
    channels: tuple[int, ...] = option((16, 32), "of the CNN's 3x3 convolutions")
    memory: int = option(0, "size of a GRU, for policies that remember; 0: none")
    sequence: int = option(0, "steps that a recurrent policy is trained through; 0: the whole rollout")
    critic: str = option("separate", "separate, shared (all layers but the last are the actor's) or central (a network "
                                     "that sees what all agents see)")  # fmt: skip
    lr: float = option(2.5e-4, "Adam's step size", sweep=True)
    anneal_lr: bool = option(True, "lower the learning rate linearly to 0")
    gamma: float = option(0.99, "discount of the future", sweep=True)
    gae_lambda: float = option(0.95, "0: one-step advantages, 1: whole returns", sweep=True)
    ent_coef: float = option(0.01, "weight of the entropy bonus", sweep=True)
    vf_coef: float = option(0.5, "weight of the value loss", sweep=True)
    max_grad_norm: float = option(0.5, "longer gradients are shortened to this", sweep=True)
    normalize_advantages: bool = option(True, "in each minibatch, to mean 0 and deviation 1")
    normalize_observations: bool = option(False, "by their running mean and deviation")
    normalize_rewards: bool = option(False, "by the running deviation of the discounted return")
    bf16: bool = option(False, "compute the networks in bfloat16")
    stagger: bool = option(False, "begin the envs at different times, so that not all episodes end in the same step")
    save_every: float = option(60.0, "seconds between two checkpoints")
    eval_every: int = option(0, "iterations between two evaluations on seeds of their own; 0: none")
    eval_episodes: int = option(64, "episodes of an evaluation")
    video: bool = option(False, "leave an animation of the trained agents")
    track: bool = option(False, "send the log to Weights & Biases")
    threads: int = option(0, "torch's CPU threads; 0: one for small minibatches, else all")

    @classmethod
    def of(cls, game: str | type[EnvDef], **values: Any) -> Any:
        """The defaults, what ``baselines/configs`` says about the game, and then ``values``."""
        path = Path(__file__).parent / "configs" / f"{type(registry.get(game)).id}.json"
        found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
        names = {f.name for f in dataclasses.fields(cls)}
        found = {k: tuple(v) if isinstance(v, list) else v for k, v in found.items() if k in names}
        return cls(game, **found | values | {"config": found.get("config", {}) | values.get("config", {})})

    @property
    def iterations(self) -> int:
        """Rollouts, and as many updates, in a run."""
        return self.total_steps // (self.num_envs * distributed.world_size() * self.num_steps)

    def minibatch_count(self) -> int:
        """Into how many minibatches a rollout is divided."""
        return 1

    def check(self) -> tuple[Layout, dict[str, list[str]]]:
        """Refuses what cannot work, before anything is compiled.

        Returns:
            The layout of the game, and the groups of each policy.

        Raises:
            ValueError, TypeError: with one sentence about what is wrong.
        """
        self._check_numbers()
        if not self.iterations:
            raise ValueError(
                f"total_steps={self.total_steps} is less than one rollout of num_envs * num_steps = "
                f"{self.num_envs * distributed.world_size() * self.num_steps} steps."
            )
        if self.num_steps % (self.sequence or self.num_steps):
            raise ValueError(f"sequence={self.sequence} does not divide num_steps={self.num_steps}.")
        if self.resume and not self.out:
            raise ValueError("resume goes on from the checkpoint in a folder: give out=FOLDER.")
        parse_sweep(self)
        env = registry.get(self.game)
        cfg, _ = split_config(env, self.num_envs, {k: v for k, v in self.config.items() if k != "max_episode_steps"})
        lay = layout(env, cfg)
        if self.critic == "central" and lay.agents == 1:
            raise ValueError(
                f"a central critic needs a state beyond one agent's observation, which {env.id} with its one agent "
                "does not have: take critic='separate'."
            )
        for group in self.policies:
            if group not in lay.groups:
                raise ValueError(unknown(f"{env.id} has no group", group, lay.groups))
        players: dict[str, list[str]] = {}
        for group in lay.groups:
            players.setdefault(self.policies.get(group, group), []).append(group)
        for name in (*self.load, *self.freeze):
            if name not in players:
                raise ValueError(unknown("there is no policy", name, players))
        for name, groups in players.items():
            for mine in (lay.observation_spaces, lay.action_spaces):
                if any(mine[g] != mine[groups[0]] for g in groups):
                    raise ValueError(
                        f"the groups {' and '.join(groups)} cannot share the policy {name!r}: their spaces differ."
                    )
            space = lay.observation_spaces[groups[0]]
            if self.encoder == "cnn" and (choices(space) or len(space.shape or ()) != 3):
                raise ValueError(f"a CNN needs observations of shape (height, width, channels), not {space}.")
            self._check_batch(name, sum(lay.groups[g] for g in groups))
        if self.pool:
            self._check_pool(env, lay.agents, len(players))
        return lay, players

    def _check_numbers(self) -> None:
        for name in (
            "num_envs",
            "num_steps",
            "population",
            "max_grad_norm",
            "save_every",
            "eval_episodes",
            "pool_every",
        ):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}.")
        for name in ("memory", "pool", "eval_every", "threads", "lr", "seed", "sequence"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative: {getattr(self, name)}.")
        for name, number in vars(self).items():
            if isinstance(number, float) and not math.isfinite(number):
                raise ValueError(f"{name} must be a finite number, not {number}.")
        for name in ("hidden", "channels"):
            if any(n < 1 for n in getattr(self, name)):
                raise ValueError(f"{name} must be positive sizes, not {getattr(self, name)}.")
        for name in ("gamma", "gae_lambda"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie between 0 and 1, not {getattr(self, name)}.")
        for name, known in (("encoder", ENCODERS), ("critic", CRITICS), ("activation", ("tanh", "relu"))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, not {getattr(self, name)!r}.")

    def _check_batch(self, name: str, agents: int) -> None:
        rows = self.num_envs * agents
        what = "transitions (num_envs * num_steps * agents)"
        count = rows * self.num_steps
        if self.memory:
            what = "sequences (num_envs * agents * num_steps / sequence)"
            count = rows * (self.num_steps // (self.sequence or self.num_steps))
        if name not in self.freeze and count % self.minibatch_count():
            raise ValueError(
                f"the {count} {what} of policy {name!r} cannot be divided into {self.minibatch_count()} minibatches."
            )

    def _check_pool(self, env: EnvDef, agents: int, policies: int) -> None:
        for fits, rule, fault in (
            (env.turn is not None, "turn-based games", f"{env.id} is none"),
            (agents == 2, "games of two agents", f"{env.id} has {agents}"),
            (policies == 1, "one policy that plays both seats", f"here are {policies}, see policies"),
            (not self.freeze, "a policy that learns", "it is frozen"),
            (self.population == 1, "population=1", f"this is one of {self.population}"),
        ):
            if not fits:
                raise ValueError(f"a pool of past selves is for {rule}: {fault}; take pool=0.")
        if self.num_envs % (4 * self.pool):
            raise ValueError(
                f"num_envs={self.num_envs} must be a multiple of 4 * pool = {4 * self.pool}: half of the envs are for "
                "the past selves, and each plays as often in either seat."
            )

    def about(self) -> dict[str, Any]:
        """What a checkpoint says of the run, as JSON."""
        found = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        found = {k: list(v) if isinstance(v, tuple) else v for k, v in found.items()}
        return found | {"game": registry.get(self.game).id, "algorithm": self.algorithm}


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
            with self._fits():
                self._make(lay, players, loaded, seeds, rank * args.num_envs)
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
        self.rollout = Rollout(self.simulator, args.num_steps, seeds, first)
        self.learners: dict[str, Learner] = {}
        state_size = lay.agents * lay.observation_size
        for number, (name, groups) in enumerate(players.items()):
            seats = sum(lay.groups[g] for g in groups)
            form: dict[str, Any] = {
                "hidden": args.hidden, "encoder": args.encoder, "channels": args.channels, "memory": args.memory,
                "activation": args.activation, "critic": args.critic, "normalize": args.normalize_observations,
                "state_size": state_size if args.critic == "central" else 0, "seats": seats,
            }  # fmt: skip
            if name in loaded:
                form = loaded[name][0]
            policy = Policy(lay.observation_spaces[groups[0]], lay.action_spaces[groups[0]],
                            [s * 1009 + number for s in seeds], device=self.device, **form)  # fmt: skip
            player = self.rollout.add(name, policy, groups)
            if name in loaded:
                policy.load_state_dict({k: v.expand(M, *v.shape[1:]) for k, v in loaded[name][1].items()})
            if name not in args.freeze:
                learner = Learner(player, self.rollout, self.updates, distributed.total, args.bf16)
                self.learners[name] = learner
        self.losses = {name: self.loss_of(learner) for name, learner in self.learners.items()}
        self.policies = {g: p.policy for p in self.rollout.players.values() for g in p.groups}
        if self.device.type == "cpu":
            fused.load()
        self.selfplay = None
        if args.pool:
            from baselines.selfplay import SelfPlay

            self.selfplay = SelfPlay(self.rollout, args.pool, args.pool_every)
        self._play, self._learn = captured(self.rollout.play, self.device), captured(self._learn_all, self.device)

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
        raise NotImplementedError

    def learn(self, learner: Learner, loss: Loss) -> dict[str, Tensor]:
        """Improves a policy by the rollout; returns numbers (members,) to log."""
        raise NotImplementedError

    # ---- what it does that with ----

    def compile(
        self, learner: Learner, formula: str, hyper: Sequence[str], numbers: Sequence[str], **constants: bool | int
    ) -> Loss:
        """A loss for a learner's kind of actions; see `Loss`."""
        self._hyper = torch.cat([self.hyper[name] for name in hyper], 1)
        masked = self.rollout.mask is not None
        return Loss(formula, COLUMNS, hyper, numbers, learner.policy.actions, masked, self.device, **constants)

    def slopes(self, batch: Minibatch, loss: Loss) -> Slopes:
        """Gradients of the loss by what the networks said of a minibatch."""
        return loss(batch.out, batch.value, batch.policy.log_std, batch.mask, batch.action, batch.packed, batch.share,
                    self._hyper)  # fmt: skip

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
            sound = learner.policy.flat.isfinite().all(1)
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
            self._play()
            log = self._learn()
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
        """Writes a checkpoint from which `restore` goes on to the same bits; see `baselines.checkpoint`.

        Of several processes all must call it, and the first one writes.

        Args:
            path: the file; whole at any time.
            **about: more to keep, as JSON.
        """
        each = distributed.gather(self._own_state())
        if distributed.rank() != 0:
            return
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
        checkpoint.save(path, tensors, {
            **self._expected(), "args": self.args.about(), "steps": self.steps, "iteration": self.iteration, **about,
        })  # fmt: skip

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
            ValueError: no checkpoint, or one of another game, shape or version.
        """
        tensors, about = checkpoint.load(path)
        checkpoint.check(about, self._expected(), path)
        for name, player in self.rollout.players.items():
            found = checkpoint.below(tensors, f"policy/{name}/")
            if name in self.learners:
                self.learners[name].restore(found)
            else:
                player.policy.load_state_dict(checkpoint.below(found, "weights/"))
        mine = checkpoint.below(tensors, f"process/{distributed.rank()}/")
        env = {k: v.numpy() for k, v in checkpoint.below(mine, "env/").items()}
        self.simulator.restore(Snapshot(about["game"], about["config"], env))
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


def describe(policy: Policy) -> dict[str, Any]:
    """A policy's form and spaces, as a checkpoint says them."""
    spaces = {"observation space": brief(policy.observation_space), "action space": brief(policy.action_space)}
    return {**spaces, "form": policy.form}


def brief(space: Any) -> str:
    """A space without its bounds."""
    return f"Box{space.shape} {space.dtype}" if type(space).__name__ == "Box" else str(space)


def load(
    path: str, name: str, game: str | type[EnvDef], lay: Layout, group: str
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The form and the weights (1, ...) of a policy in a checkpoint: the one of that name, or else the only one.

    Args:
        path: the file; with ``#k`` behind it, member k of a population.
        name: of the policy.
        game: the game it is to play.
        lay: the game's layout.
        group: the group it is to play.

    Raises:
        ValueError: no checkpoint, or one that does not fit.
    """
    file, _, member = path.partition("#")
    tensors, about = checkpoint.load(file)
    env_id = registry.get(game).id
    if about["game"] != env_id:
        raise ValueError(f"{file} holds policies for {about['game']}, not for {env_id}.")
    found = about["policies"]
    if name not in found and len(found) > 1:
        raise ValueError(unknown(f"{file} has no policy", name, found))
    kept = name if name in found else next(iter(found))
    for key, space in (("observation", lay.observation_spaces[group]), ("action", lay.action_spaces[group])):
        if found[kept][f"{key} space"] != brief(space):
            raise ValueError(
                f"policy {name!r} in {file} was trained with the {key} space {found[kept][f'{key} space']}, but with "
                f"these parameters {env_id} has {brief(space)} for {group}."
            )
    seen = lay.agents * lay.observation_size
    if found[kept]["form"]["critic"] == "central" and found[kept]["form"]["state_size"] != seen:
        raise ValueError(
            f"the critic of policy {name!r} in {file} sees {found[kept]['form']['state_size']} numbers of the state, "
            f"but with these parameters {env_id} has {seen}."
        )
    prefix = f"policy/{kept}/weights/"
    weights = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
    members = about["args"]["population"]
    if member and not (member.isdigit() and int(member) < members):
        held = "one member, number 0" if members == 1 else f"{members} members, numbered from 0"
        raise ValueError(f"{file} has {held}, and no {member!r}.")
    k = int(member or 0)
    return found[kept]["form"], {n: v[k : k + 1] for n, v in weights.items()}


__all__ = ["Args", "Trainer", "flat_size", "option"]
