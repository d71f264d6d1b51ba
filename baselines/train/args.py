"""Training options of all algorithms, and their validation. Imports no torch, so that a mistake is told at once."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

from gpuzoo import registry
from gpuzoo.core.configuration import split_config
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.layout import Layout, choices, layout
from gpuzoo.core.suggestions import unknown

from . import config_files, distributed
from .encoders import CNN_COST, ENCODERS, board_refusal, feature_shape, set_refusal
from .parts import refusal
from .schedule import parse_schedule, ranges
from .sweep import parse_sweep

#: Rewards whose discounted returns have a larger deviation are normalised by default: a critic's output begins near 0,
#: and Adam moves it by some multiples of the learning rate in a step, so that it needs many updates to get that far.
LARGE_RETURNS = 10.0
EXECUTORS = ("auto", "plain", "fast")
CRITICS = ("separate", "shared", "central")


def option(default: Any, doc: str, *, sweep: bool = False) -> Any:
    """A hyper-parameter with its line of help; ``sweep`` if the members of a population may differ in it."""
    return dataclasses.field(default=default, metadata={"doc": doc, "sweep": sweep})


@dataclasses.dataclass
class Args:
    """The options that all algorithms share."""

    algorithm: ClassVar[str]

    game: str | type[EnvDef]
    num_envs: int = option(64, "envs that are stepped together, for each member of a population")
    num_steps: int = option(128, "steps of each env between two updates")
    total_steps: int = option(1_000_000, "steps to train for, those of all envs of a member together")
    seed: int = option(1, "seed of envs, weights, actions and minibatches")
    device: str = option("auto", "cpu, cuda, cuda:k or auto")
    executor: str = option("auto", "plain: every operation by torch; fast: by compiled kernels where there are some; "
                                   "auto: fast, if it is there")  # fmt: skip
    out: str = option("", "folder for checkpoint, log and learning curve; none by default")
    resume: bool = option(False, "go on from the checkpoint in the folder, if there is one")
    config: dict[str, Any] = dataclasses.field(default_factory=dict)
    population: int = option(1, "agents trained side by side, with the seeds seed, seed + 1, ...")
    sweep: str = option("", "NAME=LOW:HIGH, NAME=log:LOW:HIGH or NAME=A/B/C, with commas between: hyper-parameters "
                            "in which the members of the population differ")  # fmt: skip
    schedule: str = option("", "NAME=FROM:TO or NAME=log:FROM:TO, with commas between: hyper-parameters and float "
                               "parameters of the game that change from the first iteration to the last")  # fmt: skip
    policies: dict[str, str] = dataclasses.field(
        default_factory=dict, metadata={"doc": "group=name,...: which policy plays a group; equal names share one"}
    )
    load: dict[str, str] = dataclasses.field(
        default_factory=dict,
        metadata={"doc": "name=FILE,...: begin with a policy from a checkpoint; FILE#k takes member k"},
    )
    freeze: tuple[str, ...] = option((), "names of policies that play but do not learn")
    random_opponents: dict[str, float] = dataclasses.field(
        default_factory=dict,
        metadata={
            "doc": "name=SHARE,...: shares of the envs in which a policy acts alone, and all others' agents at random"
        },
    )
    pool: int = option(0, "turn-based games: play half of the envs against so many past selves")
    pool_every: int = option(10, "iterations between two past selves")
    hidden: tuple[int, ...] = option((64, 64), "sizes of the dense layers")
    activation: str = option("tanh", "tanh or relu")
    encoder: str = option("auto", "mlp, cnn, set (attention between the entities of a game, such as cities), board "
                                  "(convolutions that say of each cell what to do there), or auto: "
                                  f"a CNN where observations are images and it takes at most {CNN_COST} times the "
                                  "multiply-adds of an MLP")  # fmt: skip
    channels: tuple[int, ...] = option((16, 32), "of the CNN's 3x3 convolutions")
    memory: int = option(0, "size of a GRU, for policies that remember; 0: none")
    sequence: int = option(0, "steps that a recurrent policy is trained through; 0: the whole rollout")
    one_hot: bool = option(False, "integers of observations become one-hot vectors: for pieces, digits or colours, "
                                  "which are no amounts")  # fmt: skip
    critic: str = option("separate", "separate, shared (all layers but the last are the actor's) or central (a network "
                                     "that sees what all agents see)")  # fmt: skip
    action_parts: tuple[int, ...] = option((), "choices of each part of an action, e.g. 9,9,9: each part is chosen "
                                               "given those before it; by default they are independent")  # fmt: skip
    log_std_init: float = option(0.0, "logarithm of the first deviation of Box actions; where large random actions end "
                                      "in a bad habit, -1 or -2 may avoid it")  # fmt: skip
    lr: float = option(2.5e-4, "Adam's step size", sweep=True)
    anneal_lr: bool = option(True, "lower the learning rate linearly to 0")
    gamma: float = option(0.99, "discount of the future", sweep=True)
    gae_lambda: float = option(0.95, "0: one-step advantages, 1: whole returns", sweep=True)
    ent_coef: float = option(0.01, "weight of the entropy bonus", sweep=True)
    vf_coef: float = option(0.5, "weight of the value loss", sweep=True)
    max_grad_norm: float = option(0.5, "longer gradients are shortened to this", sweep=True)
    normalize_advantages: bool = option(True, "in each minibatch, to mean 0 and deviation 1")
    normalize_observations: bool = option(False, "by their running mean and deviation")
    normalize_rewards: bool | str = option("auto", "by the running deviation of the discounted return: on, off, or "
                                           f"auto: if that of the first rewards is over {LARGE_RETURNS:g}")  # fmt: skip
    bf16: bool = option(False, "compute the networks in bfloat16")
    stagger: bool = option(False, "begin the envs at different times, so that not all episodes end in the same step")
    save_every: float = option(60.0, "seconds between two checkpoints")
    eval_every: int = option(0, "iterations between two evaluations on seeds of their own; 0: none")
    eval_episodes: int = option(64, "episodes of an evaluation")
    video: bool = option(False, "leave an animation of the trained agents")
    track: bool = option(False, "send the log to Weights & Biases")
    threads: int = option(0, "torch's CPU threads; 0: one for small minibatches, else all")

    def __post_init__(self) -> None:
        self.normalize_rewards = {"on": True, "off": False}.get(str(self.normalize_rewards), self.normalize_rewards)

    @classmethod
    def of(cls, game: str | type[EnvDef], file: str = "", **values: Any) -> Any:
        """The options of a run: ``values``, over those in a file, over those of ``baselines/configs`` for the game.

        Args:
            game: what is to be trained.
            file: a ``.json`` file, or the name of a game in ``baselines/configs``; see `config_files.read`.
            **values: options; in ``config`` each parameter of the game counts by itself.

        Raises:
            ValueError: a file that cannot be read, or that has what is no option.
        """
        layers = [config_files.of_game(cls, game), config_files.read(cls, game, file) if file else {}, values]
        parameters = {name: x for layer in layers for name, x in layer.get("config", {}).items()}
        return cls(game, **{name: x for layer in layers for name, x in layer.items()} | {"config": parameters})

    @property
    def iterations(self) -> int:
        """Rollouts, and as many updates, in a run."""
        return self.total_steps // (self.num_envs * distributed.world_size() * self.num_steps)

    def minibatch_count(self) -> int:
        """Number of minibatches of a rollout."""
        return 1

    def check(self) -> tuple[Layout, dict[str, list[str]]]:
        """Refuses options that cannot work, before anything is compiled.

        Returns:
            The layout of the game, and the groups of each policy.

        Raises:
            ValueError, TypeError: with one sentence about what is wrong.
        """
        self._check_numbers()
        if self.iterations < 1:
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
        values = self.config | ranges(parse_schedule(self))
        cfg, _ = split_config(env, self.num_envs, {k: v for k, v in values.items() if k != "max_episode_steps"})
        lay = layout(env, cfg)
        if self.critic == "central" and lay.agents == 1 and lay.state_space is None:
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
            shape = feature_shape(space, self.one_hot)
            if self.encoder == "cnn" and len(shape) != 3:
                raise ValueError(f"a CNN needs observations of shape (height, width, channels), not {space}.")
            if self.encoder == "set":
                chosen = self.hidden, self.memory, self.one_hot, self.action_parts
                if fault := set_refusal(lay.entities[groups[0]], space, lay.action_spaces[groups[0]], *chosen):
                    raise ValueError(f"{env.id}: {fault}")
            if self.encoder == "board":
                fault = board_refusal(lay.action_cells[groups[0]], shape, self.channels, self.memory, self.action_parts)
                if fault:
                    raise ValueError(f"{env.id}: {fault}")
            if self.action_parts and (fault := refusal(lay.action_spaces[groups[0]], self.action_parts)):
                raise ValueError(fault)
            self._check_batch(name, sum(lay.groups[g] for g in groups))
        if self.pool:
            self._check_pool(env, lay.agents, len(players))
        if self.random_opponents:
            self._check_random_opponents(lay, players)
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
        if self.normalize_rewards not in (True, False, "auto"):
            raise ValueError(f"normalize_rewards must be on, off or auto, not {self.normalize_rewards!r}.")
        for name in ("hidden", "channels"):
            if any(n < 1 for n in getattr(self, name)):
                raise ValueError(f"{name} must be positive sizes, not {getattr(self, name)}.")
        for name in ("gamma", "gae_lambda"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie between 0 and 1, not {getattr(self, name)}.")
        for name, known in (
            ("encoder", ENCODERS),
            ("critic", CRITICS),
            ("activation", ("tanh", "relu")),
            ("executor", EXECUTORS),
        ):
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

    def _check_random_opponents(self, lay: Layout, players: dict[str, list[str]]) -> None:
        for name in self.random_opponents:
            if name not in players:
                raise ValueError(unknown("there is no policy", name, players))
            if name in self.freeze:
                raise ValueError(f"random opponents are for policies that learn: {name!r} is frozen.")
        shares = self.random_opponents.values()
        if min(shares) < 0 or sum(shares) > 1 + 1e-9:
            text = ", ".join(f"{name}={share:g}" for name, share in self.random_opponents.items())
            raise ValueError(f"random_opponents are shares of the envs, together at most 1, not {text}.")
        if self.action_parts:
            raise ValueError("action_parts are not for random opponents, who draw whole actions: leave one away.")
        if len(players) == 1:
            raise ValueError(f"random opponents need several policies: {next(iter(players))!r} plays everybody.")
        for space in lay.action_spaces.values():
            if not choices(space):
                raise ValueError(f"random opponents are for actions that are choices, not {space}.")

    def about(self) -> dict[str, Any]:
        """The run's description in a checkpoint, as JSON."""
        found = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        found = {k: list(v) if isinstance(v, tuple) else v for k, v in found.items()}
        return found | {"game": registry.get(self.game).id, "algorithm": self.algorithm}


@dataclasses.dataclass
class PPOArgs(Args):
    """PPO (Schulman et al. 2017) for groups of agents and whole populations: everything that a run depends on."""

    algorithm: ClassVar[str] = "ppo"

    epochs: int = option(4, "passes over what was played, in each update")
    minibatches: int = option(4, "gradient steps of each pass")
    clip_eps: float = option(0.2, "how far the probability of an action may move per update", sweep=True)
    clip_values: bool = option(False, "limit the movement of values likewise")
    target_kl: float = option(0.0, "stop an update when the policy has moved this far; 0: never", sweep=True)

    def minibatch_count(self) -> int:
        """Into how many minibatches a rollout is divided."""
        return self.minibatches

    def _check_numbers(self) -> None:
        super()._check_numbers()
        for name in ("epochs", "minibatches", "clip_eps"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}.")


@dataclasses.dataclass
class A2CArgs(Args):
    """A2C (Mnih et al. 2016) for groups of agents and whole populations: everything that a run depends on."""

    algorithm: ClassVar[str] = "a2c"

    num_steps: int = option(8, "steps of each env between two updates")
    lr: float = option(7e-4, "Adam's step size", sweep=True)
    gae_lambda: float = option(1.0, "0: one-step advantages, 1: whole returns", sweep=True)
    normalize_advantages: bool = option(False, "in each update, to mean 0 and deviation 1")


@dataclasses.dataclass
class DAggerArgs(Args):
    """DAgger (Ross et al. 2011) for groups of agents and whole populations: everything that a run depends on."""

    algorithm: ClassVar[str] = "dagger"

    expert: str = option(
        "", "MODULE:FUNCTION of a group and its observations: what actions it would take; empty: the game's"
    )
    beta: float = option(1.0, "probability with which the expert plays a step in the envs with most help", sweep=True)
    epochs: int = option(1, "passes over what was played, in each update")
    minibatches: int = option(4, "gradient steps of each pass")
    ent_coef: float = option(0.0, "weight of the entropy bonus", sweep=True)

    def minibatch_count(self) -> int:
        """Into how many minibatches a rollout is divided."""
        return self.minibatches

    def check(self) -> tuple[Layout, dict[str, list[str]]]:
        """Refuses options that cannot work, see `Args.check`."""
        lay, players = super().check()
        env = registry.get(self.game)
        if not (self.expert or env.expert):
            raise ValueError(f"DAgger needs an expert, and {env.id} has none: give --expert MODULE:FUNCTION.")
        if self.pool:
            raise ValueError("DAgger has no pool of past selves: take pool=0.")
        for group, space in lay.action_spaces.items():
            if not choices(space):
                raise ValueError(f"DAgger is for actions that are choices, but those of {group!r} are {space}.")
        return lay, players

    def _check_numbers(self) -> None:
        super()._check_numbers()
        for name in ("epochs", "minibatches"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}.")
        if not 0 <= self.beta <= 1:
            raise ValueError(f"beta must lie between 0 and 1, not {self.beta}.")
