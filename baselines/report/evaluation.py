"""Play without learning: evaluations, and steps for films."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gpuzoo.core.definition import EnvDef
from gpuzoo.core.suggestions import unknown
from gpuzoo.interfaces.batch import BatchEnv
from gpuzoo.interfaces.infos import own_infos
from gpuzoo.tensors import as_tensor

from ..train.experts import ExpertPlayer
from ..train.networks import Policy

Player = Policy | ExpertPlayer


class Seat:
    """A player of agents ``part`` of a group, with what it remembers of each env."""

    def __init__(self, group: str, part: slice, policy: Player, env: BatchEnv) -> None:
        self.group, self.part, self._policy = group, part, policy
        self._agents = len(range(*part.indices(env.groups[group])))
        self._memory = torch.zeros(1, env.num_envs * self._agents, policy.memory_size, device=env.simulator.device)

    def __call__(self, seen: Any, ended: Tensor, greedy: bool, generator: torch.Generator) -> Tensor:
        """Actions (envs, agents, parts) for the group's observation; ``ended`` (envs,) says where episodes begin."""
        policy, mask = self._policy, None
        if isinstance(seen, dict):
            seen, mask = seen["observation"], seen["action_mask"][:, self.part].flatten(0, 1)
        seen = seen[:, self.part].flatten(0, 1).unsqueeze(0)
        if policy.recurrent:
            begins = ended.repeat_interleave(self._agents).float().view(1, 1, -1)
            out, self._memory = policy.act(seen.unsqueeze(0), self._memory, begins)
            out = out[0]
        else:
            out, _ = policy.act(seen)
        mask = None if mask is None else mask.unsqueeze(0)
        actions = policy.actions
        chosen = actions.greedy(out, mask) if greedy else actions.sample(out, policy.log_std, mask, generator)
        return chosen[0].unflatten(0, (len(ended), -1))


@torch.no_grad()
def play(
    env: BatchEnv, players: Mapping[str, Player | None], seed: int, greedy: bool = False, member: int = 0
) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Steps envs without end, and yields terminations, truncations and infos after each step.

    Args:
        env: made with ``output="torch"``.
        players: the player of a group (``"tagger"``) or of one agent (``"tagger_0"``). The others act at random.
        seed: of the envs and of the actions.
        greedy: take the likeliest actions.
        member: who of a population plays.

    Raises:
        ValueError: a player of no group or agent.
    """
    seats: list[Seat] = []
    for name, policy in players.items():
        group, _, k = (name, "", "") if name in env.groups else name.rpartition("_")
        if group not in env.groups or (k and not (k.isdigit() and int(k) < env.groups[group])):
            raise ValueError(unknown(f"{env.simulator.env.id} has no group or agent", name, env.groups))
        if policy is not None:
            alone = policy.member(member) if isinstance(policy, Policy) and policy.members > 1 else policy
            seats.append(Seat(group, slice(int(k), int(k) + 1) if k else slice(None), alone, env))
    obs, _ = env.reset(seed=seed)
    device = torch.device(env.simulator.device)
    generator = torch.Generator(device).manual_seed(seed % 2**63)
    ended = torch.ones(env.num_envs, dtype=torch.bool, device=device)
    while True:
        actions = env.random_actions()  # the env's own memory: a policy writes its actions over them
        for seat in seats:
            target = actions[seat.group][:, seat.part]
            target.copy_(seat(obs[seat.group], ended, greedy, generator).view(target.shape))
        obs, _, terminations, truncations, infos = env.step(actions)
        ended = infos["ended"]
        yield terminations, truncations, infos


@dataclasses.dataclass
class Evaluation:
    """Results of some episodes: by group, arrays (episodes, agents of the group).

    Attributes:
        returns: of each agent.
        lengths: steps until the agent was terminated or time ran out.
        terminated: whether it was terminated.
        outcomes: by name, the game's infos that are true or false, such as ``won`` and ``lost`` in SMAX: in each
            episode's last step, (episodes,), or in each agent's, (episodes, agents of all groups).
    """

    returns: dict[str, np.ndarray[Any, Any]]
    lengths: dict[str, np.ndarray[Any, Any]]
    terminated: dict[str, np.ndarray[Any, Any]]
    outcomes: dict[str, np.ndarray[Any, Any]]

    @property
    def rates(self) -> dict[str, float]:
        """The share of episodes, or of agents, for which each outcome was true: the win rate, for instance."""
        return {name: float(x.mean()) for name, x in self.outcomes.items()}


def evaluate(
    game: str | type[EnvDef],
    players: Mapping[str, Player | None],
    episodes: int = 256,
    seed: int = 0,
    config: Mapping[str, Any] | None = None,
    device: str = "cpu",
    greedy: bool = False,
    member: int = 0,
    max_steps: int = 100_000,
) -> Evaluation:
    """Plays one episode in each of ``episodes`` envs, with seeds that no training uses.

    Every episode counts once, however short: the mean is not drawn towards episodes that end early.

    Args:
        game: its id.
        players: see `play`.
        episodes: how many.
        seed: of the episodes.
        config: parameters of the game.
        device: where to play.
        greedy: take the likeliest actions.
        member: who of a population plays.
        max_steps: an episode that is longer counts as it then stands.
    """
    # In the mode next_step an env still shows its last state, and so its outcomes, in the step that ends an episode.
    env = BatchEnv(game, episodes, device=device, output="torch", autoreset_mode="next_step", **(config or {}))
    sim = env.simulator
    first: dict[str, list[Tensor]] = {}
    outcomes: dict[str, Tensor] = {}
    over = torch.zeros(episodes, dtype=torch.bool, device=sim.device)
    for step, (terminations, truncations, infos) in enumerate(
        play(env, players, (seed << 32) + 2**31, greedy, member), start=1
    ):
        last = step == max_steps
        for group in env.groups:
            done = terminations[group] | truncations[group]
            now = [infos["episode"]["r"][group], infos["episode"]["l"][group], terminations[group]]
            if last:
                part = slice(sim.layout.first[group], sim.layout.first[group] + env.groups[group])
                so_far = as_tensor(sim.arrays["episode_return"])[:, part]
                now = [torch.where(done, now[0], so_far), torch.where(done, now[1], step), now[2]]
            kept = first.setdefault(group, [torch.zeros_like(x) for x in now])
            news = (done | (last & infos["alive"][group])) & ~over.unsqueeze(-1)
            for old, new in zip(kept, now, strict=True):
                old.copy_(torch.where(news, new, old))
        left = torch.cat(
            [terminations[group] | truncations[group] | (last & infos["alive"][group]) for group in env.groups], 1
        )
        of_state, of_step = own_infos(sim, as_tensor)
        for name, x in {**of_state, **of_step}.items():
            if x.dtype == torch.bool and (x.ndim == 1 or x.shape == left.shape):
                news = (infos["ended"] | last) & ~over if x.ndim == 1 else left & ~over.unsqueeze(-1)
                outcomes[name] = torch.where(news, x, outcomes.get(name, torch.zeros_like(x)))
        over |= infos["ended"]
        if last or ((step % 8 == 0 or device == "cpu") and bool(over.all())):
            break
    returns, lengths, terminated = ({g: x[k].cpu().numpy() for g, x in first.items()} for k in range(3))
    env.close()
    return Evaluation(returns, lengths, terminated, {name: x.cpu().numpy() for name, x in outcomes.items()})
