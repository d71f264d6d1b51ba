"""Playing: all envs of a population, step by step, into tensors that the learners read in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gpuzoo.core.layout import Layout, flat_size
from gpuzoo.core.simulator import Simulator
from gpuzoo.tensors import as_tensor

from .networks import Policy
from .player import Player

if TYPE_CHECKING:
    from .executor import Executor


def state_size(lay: Layout) -> int:
    """Numbers of the global state that a central critic sees."""
    return lay.agents * lay.observation_size if lay.state_space is None else flat_size(lay.state_space)


class Rollout:
    """``steps`` steps of all envs of a population.

    Args:
        simulator: in same-step mode, with ``members * envs`` envs: those of a member are neighbours.
        steps: length of a rollout.
        seeds: one for each member.
        executor: of what the policies do.
        first_env: number of a member's first env here, where several processes share its envs.
        central: whether a critic sees the global state.

    Attributes:
        outputs: of the simulator, a step each.
        observation: (steps + 1, envs, agents, size); ``final_observation`` where an agent was truncated.
        state: (steps + 1, envs, size), the global state: the game's own where a critic sees one, or the observations
            of all agents; ``final_state`` where an agent was truncated.
        acting: (steps + 1, envs, agents), whether the agent decides on that observation.
        action, reward, terminated, truncated: (steps, envs, agents, ...).
        ended: (steps, envs).
        final_return: (steps, envs, agents), 0 where the episode did not end.
        players: by policy name.
        now: the simulator's arrays.
        copies_return: whether ``final_return`` must be copied from there.
    """

    def __init__(
        self,
        simulator: Simulator,
        steps: int,
        seeds: Sequence[int],
        executor: Executor,
        first_env: int = 0,
        central: bool = False,
    ) -> None:
        self.simulator, self.steps, self.members, self.first_env = simulator, steps, len(seeds), first_env
        self.envs = simulator.num_envs // self.members
        self.device = torch.device(simulator.device)
        self.executor = executor
        #: whether the host may read what was computed, in order to do less; a captured graph may not wait for that
        self.may_sync = executor.may_sync
        self.seeds = torch.tensor(seeds, dtype=torch.int64, device=self.device)
        self.counter = torch.zeros(1, dtype=torch.int64, device=self.device)  # env steps so far
        lay, T, E = simulator.layout, steps, simulator.num_envs
        zeros = simulator.backend.zeros
        arrays = {
            "observation": zeros((T + 1, E, lay.agents, lay.observation_size), lay.observation_dtype),
            "action": zeros((T, E, lay.agents, lay.action_size), lay.action_dtype),
            "reward": zeros((T, E, lay.agents), "float32"),
            "terminated": zeros((T, E, lay.agents), "bool"),
            "truncated": zeros((T, E, lay.agents), "bool"),
            "ended": zeros((T, E), "bool"),
            "final_return": zeros((T, E, lay.agents), "float32"),
        }
        #: whether the global state is another than the observations that are kept anyway
        self.own_state = central and lay.state_space is not None
        if lay.state_space is not None and central:
            shape, dtype = lay.state_space.shape or (), str(lay.state_space.dtype)
            arrays["state"], arrays["final_state"] = zeros((T + 1, E, *shape), dtype), zeros((T, E, *shape), dtype)
        #: an agent that has left keeps its return until the env's episode ends, so there it must be copied
        self.copies_return = lay.agents > 1
        written = {n: a for n, a in arrays.items() if n != "final_return" or not self.copies_return}
        self.outputs = [simulator.new_outputs({n: a[t + (len(a) - T)] for n, a in written.items()}) for t in range(T)]
        (self.observation, self.action, self.reward, self.terminated, self.truncated, self.ended,
         self.final_return, *states) = map(as_tensor, arrays.values())  # fmt: skip
        self.final_observation = torch.zeros_like(self.observation[1:])
        self.state, self.final_state = states or (self.observation, self.final_observation)
        self.state, self.final_state = self.state.flatten(2), self.final_state.flatten(2)
        self.acting = torch.ones(T + 1, E, lay.agents, dtype=torch.bool, device=self.device)
        self.mask: Tensor | None = None
        if lay.mask_size:
            self.mask = torch.zeros(T + 1, E, lay.agents, lay.mask_size, dtype=torch.int8, device=self.device)
        self.begins = torch.ones(T + 1, self.members, self.envs, device=self.device)
        self.now = {name: as_tensor(array) for name, array in simulator.arrays.items()}
        turn = simulator.env.turn
        #: (envs,), who is to move
        self.turn = None if turn is None else self.now[turn]
        self._agents = torch.arange(lay.agents, device=self.device)
        #: agents wait: without a legal action, or until it is their turn; or have left
        self.waits = lay.mask_size > 0 or turn is not None
        #: where a turn-based game stops, nobody says who would have moved next
        self.knows_final = turn is None
        self.players: dict[str, Player] = {}
        #: moves of those who are no players, before each step
        self.opponents: Callable[[int], None] | None = None
        #: (envs, agents), false where an opponent or chance decides; None: nowhere
        self.mine: Tensor | None = None
        #: (members * envs,), true where returns tell how well the policies play; None: everywhere
        self.counted: Tensor | None = None

    def add(self, name: str, policy: Policy, groups: Sequence[str]) -> Player:
        """Lets a policy play some groups."""
        player = self.players[name] = Player(name, policy, groups, self)
        return player

    def randomize(self, shares: Mapping[str, float]) -> None:
        """Lets all agents but one player's act at random in some of each member's envs, evenly spread over them.

        They draw from all their choices alike, and nothing is learnt from what they do.

        Args:
            shares: of the envs, for players by their names; together at most 1. In the rest all act by their policies.
        """
        whose = shared_out(self.first_env + self.envs, [*shares.values(), 1 - sum(shares.values())])[self.first_env :]
        alone = torch.tensor(whose)
        mine = torch.ones(self.envs, len(self._agents), dtype=torch.bool)
        for name, player in self.players.items():
            own = torch.tensor([n in (name, None) for n in (*shares, None)])
            others = ~own[alone, None].expand(-1, len(player.agents))
            player.random = others.flatten().nonzero().flatten().to(self.device) if others.any() else None
            mine[:, player.agents] &= ~others
        self.mine = mine.repeat(self.members, 1).to(self.device)

    def any(self, mask: Tensor) -> bool:
        """Whether any is true, or might be."""
        return not self.may_sync or bool(mask.any())

    def begin(self) -> None:
        """Takes the present of the simulator, after a reset or a restore, as the end of the last rollout."""
        self._observe(self.steps)
        # Not `now`: after the first rollout observations are written here.
        self.observation[-1].copy_(as_tensor(self.simulator.arrays["observation"]))
        if self.own_state:
            self.state[-1].copy_(as_tensor(self.simulator.global_state()).flatten(1))

    def _observe(self, t: int) -> None:
        """Keeps whether agents act before step ``t``, and their masks."""
        acting = self.acting[t]
        if self.simulator.layout.agents > 1 or self.mask is not None:
            acting.copy_(self.now["alive"])
        if self.mask is not None:
            self.mask[t].copy_(self.now["action_mask"])
            acting &= self.mask[t].any(-1)
        if self.turn is not None:
            acting &= self.turn.unsqueeze(-1) == self._agents
        if self.mine is not None:
            acting &= self.mine

    def carry_over(self) -> None:
        """The end of the last rollout becomes the beginning of this one."""
        kept = [
            self.observation,
            self.acting,
            self.begins,
            *(p.memory for p in self.players.values() if p.memory.numel()),
        ]
        kept += [self.state] * self.own_state + ([] if self.mask is None else [self.mask])
        for x in kept:
            x[0].copy_(x[-1])

    def step(self, t: int) -> None:
        """Steps the envs by the actions of step ``t``, and keeps what the next step overwrites."""
        self.simulator.use_outputs(self.outputs[t])
        self.simulator.step()
        if self.copies_return:
            self.final_return[t].copy_(self.now["final_return"])
        if self.remembers:
            self.begins[t + 1].copy_(self.ended[t].view(self.members, self.envs))
        if self.knows_final and self.any(self.truncated[t]):
            self.final_observation[t].copy_(self.now["final_observation"])
        self._observe(t + 1)

    def finish(self) -> None:
        """Ends a rollout, after its last step."""
        # What older rollouts left there says nothing, but would be in checkpoints.
        self.final_return.masked_fill_(~self.ended.unsqueeze(-1), 0)
        self.counter += self.steps

    @property
    def remembers(self) -> bool:
        """Whether a player has a memory."""
        return any(p.policy.recurrent for p in self.players.values())


def shared_out(count: int, shares: Sequence[float]) -> list[int]:
    """Indices of shares that sum up to 1: of the first ``n`` each has its share, up to one, for all ``n``."""
    given, out = [0] * len(shares), []
    for number in range(1, count + 1):
        owed = [share * number - mine for share, mine in zip(shares, given, strict=True)]
        out.append(owed.index(max(owed)))
        given[out[-1]] += 1
    return out


def by_group(rollout: Rollout, player: Player) -> Mapping[str, tuple[Tensor, Tensor]]:
    """By group: for each member the sum of the agents' mean returns over ended episodes, and how many ended.

    Of agents that act at random nothing counts.
    """
    ended = rollout.ended if rollout.counted is None else rollout.ended & rollout.counted
    ended = ended.view(rollout.steps, rollout.members, -1).float()
    lay, out = rollout.simulator.layout, {}
    for group in player.groups:
        first = lay.first[group]
        returns = rollout.final_return[:, :, first : first + lay.groups[group]].mean(-1).view_as(ended)
        returns, count = (returns if rollout.counted is None else returns * ended), ended
        if player.random is not None:
            assert rollout.mine is not None
            counts = rollout.mine[:, first].view(rollout.members, -1).float()
            returns, count = returns * counts, ended * counts
        out[group] = (returns.sum((0, 2)), count.sum((0, 2)))
    return out
