"""Playing: all envs of a population, step by step, into tensors that the learners read in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from gpuzoo.core.definition import Layout, flat_size
from gpuzoo.core.simulator import Simulator
from gpuzoo.tensors import as_tensor

from ..fast.kernels import CategoricalSampler, NormalSampler
from ..fast.steps import Steps
from ..fast.units import Call
from .networks import Policy


def state_size(lay: Layout) -> int:
    """Numbers of the global state that a central critic sees."""
    return lay.agents * lay.observation_size if lay.state_space is None else flat_size(lay.state_space)


class Player:
    """A policy, the agents it plays, and what they saw and did in the rollout.

    Rows are agents: with ``N`` envs per member and ``K`` agents of an env, member ``m``'s rows are its envs' agents,
    env by env. All tensors have the steps ``T``, the members ``M`` and the rows ``R = N * K`` as their first axes.

    Args:
        name: of the policy.
        policy: the networks.
        groups: the groups it plays.
        rollout: where it plays.

    Attributes:
        agents: index of its agents within an env.
        in_place: whether its observations are read where the env writes them.
        out: (M, R, outputs) of the actor, from which actions are drawn.
        draws: for each step.
        legal: (M, R, choices), copy of the masks for the draws, if there are masks.
        chosen: (envs, agents, parts), the actions drawn, where they must be copied to get between other ones.
        value: (T + 1, M, R) of the observations before each step, and of the last one.
        log_prob: (T, M, R) of the actions.
        memory: (T + 1, M, R, size) before each step.
    """

    def __init__(self, name: str, policy: Policy, groups: Sequence[str], rollout: Rollout) -> None:
        self.name, self.policy, self.groups, self._rollout = name, policy, list(groups), rollout
        lay = rollout.simulator.layout
        self.agents = [lay.first[g] + k for g in groups for k in range(lay.groups[g])]
        together = self.agents == list(range(self.agents[0], self.agents[0] + len(self.agents)))
        self._part: Any = slice(self.agents[0], self.agents[-1] + 1)
        if not together:  # on the device: to index with a list would be to wait for a copy
            self._part = torch.tensor(self.agents, device=rollout.device)
        self._space = lay.observation_spaces[groups[0]]
        T, M, R = rollout.steps, rollout.members, rollout.envs * len(self.agents)
        self.shape = (T, M, R)
        self.value = torch.zeros(T + 1, M, R, device=rollout.device)
        self.log_prob = torch.zeros(T, M, R, device=rollout.device)
        self.memory = torch.zeros(T + 1, M, R, policy.memory_size, device=rollout.device)
        self.seat = torch.arange(len(self.agents), device=rollout.device).repeat(rollout.envs)
        self.legal: Tensor | None = None
        self.draws = self._bind()
        seen = self.observations(rollout.observation)
        self.in_place = seen.data_ptr() == rollout.observation[..., self.agents[0], :].data_ptr()
        self._seen = seen.unbind(0) if self.in_place else ()

    def _bind(self) -> list[Call]:
        """A prepared draw for each step, from `out` to the rollout's actions."""
        rollout, actions = self._rollout, self.policy.actions
        T, M, R = self.shape
        device = rollout.device
        self.out = torch.zeros(M, R, actions.outputs, device=device)
        # Where other policies' actions, or longer ones, lie between its own, they go through a place of their own.
        alone = len(self.agents) == rollout.action.shape[2] and actions.parts == rollout.action.shape[3]
        chosen = self.rows(rollout.action, 1) if alone else torch.zeros(1, M, R, actions.parts).to(rollout.action)
        self.chosen = None if alone else chosen[0].unflatten(1, (-1, len(self.agents))).flatten(0, 1)
        targets, first = chosen.expand(T, M, R, actions.parts), rollout.first_env * len(self.agents)
        seeds = rollout.seeds + (len(rollout.players) << 32)  # no two policies draw the same numbers
        common = (seeds, rollout.counter, self.out)
        if not actions.discrete:
            normal, std = NormalSampler(actions.parts, device), self.policy.log_std
            return [normal.bind(*common, std, targets[t], self.log_prob[t], first) for t in range(T)]
        categorical = CategoricalSampler(actions.nvec, rollout.mask is not None, device)
        if rollout.mask is not None:
            self.legal = torch.ones(M, R, sum(actions.nvec), dtype=torch.int8, device=device)
        return [categorical.bind(*common, self.legal, targets[t], self.log_prob[t], first) for t in range(T)]

    def act(self, t: int) -> None:
        """Chooses the actions of step ``t``, and keeps their log-probabilities and what the critic expects."""
        policy, seen = self.policy, self.observed(t)
        state = self.state_of_rows(self._rollout.state[t])
        if policy.recurrent:
            state = None if state is None else state.unsqueeze(0)
            out, value, memory = policy(
                seen.unsqueeze(0), state, self.seat, self.memory[t], self.begins(t).unsqueeze(0)
            )
            out, value = out[0], value[0]
            self.memory[t + 1].copy_(memory)
        else:
            out, value, _ = policy(seen, state, self.seat)
        self.value[t].copy_(value)
        self._draw(out, t)

    def observed(self, t: int) -> Tensor:
        """What its agents see before step ``t``, (M, R, ...)."""
        return self._seen[t] if self._seen else self.observations(self._rollout.observation[t])

    def look_ahead(self) -> None:
        """Keeps what the critic expects from the last observations on."""
        seen, memory = self.observations(self._rollout.observation[-1]), None
        state = self.state_of_rows(self._rollout.state[-1])
        if self.policy.recurrent:
            memory = self.memory[-1] * (1 - self.begins(-1).unsqueeze(-1))
        self.value[-1].copy_(self.policy.value(seen, state, self.seat, memory))

    def begins(self, t: int) -> Tensor:
        """(M, R), 1 where an episode begins before step ``t``."""
        return self._rollout.begins[t].repeat_interleave(len(self.agents), -1)

    def _draw(self, out: Tensor, t: int) -> None:
        self.out.copy_(out)
        if self._rollout.mask is not None and self.legal is not None:
            self.legal.copy_(self.masks(self._rollout.mask[t]))
        self.draws[t](t)
        if self.chosen is not None:
            self._rollout.action[t][:, self._part, : self.chosen.shape[-1]] = self.chosen

    def rows(self, x: Tensor, *shape: int) -> Tensor:
        """The player's rows of (steps, envs, agents, ...) or (envs, agents, ...), without a copy if possible."""
        lead = x.ndim - len(shape) - 2
        members = self._rollout.members
        x = x[(slice(None),) * (lead + 1) + (self._part,)]
        return x.unflatten(lead, (members, -1)).flatten(lead + 1, lead + 2)

    def observations(self, x: Tensor) -> Tensor:
        """The rows of observations (..., envs, agents, size) in the shape of the space."""
        x = self.rows(x[..., : flat_size(self._space)], 1)
        shape = self._space.shape or ()
        return x.unflatten(-1, shape) if len(shape) > 1 else x if shape else x.squeeze(-1)

    def states(self, x: Tensor) -> Tensor | None:
        """Global states (..., envs, size) as (..., M, N, size), if the critic sees them."""
        return x.unflatten(-2, (self._rollout.members, -1)) if self.policy.central else None

    def state_of_rows(self, x: Tensor) -> Tensor | None:
        """`states`, for each row: (..., M, R, size)."""
        state = self.states(x)
        return None if state is None else state.repeat_interleave(len(self.agents), -2)

    def masks(self, x: Tensor) -> Tensor:
        """The rows of action masks (..., envs, agents, choices)."""
        return self.rows(x[..., : sum(self.policy.actions.nvec)], 1)


class Rollout:
    """``steps`` steps of all envs of a population.

    Args:
        simulator: in same-step mode, with ``members * envs`` envs: those of a member are neighbours.
        steps: length of a rollout.
        seeds: one for each member.
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
        self, simulator: Simulator, steps: int, seeds: Sequence[int], first_env: int = 0, central: bool = False
    ) -> None:
        self.simulator, self.steps, self.members, self.first_env = simulator, steps, len(seeds), first_env
        self.envs = simulator.num_envs // self.members
        self.device = torch.device(simulator.device)
        #: whether to look at what was computed, in order to do less; on a GPU, to look would be to wait
        self.looks = self.device.type == "cpu"
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
        #: (envs, agents), false where an opponent decides; None: nowhere
        self.mine: Tensor | None = None
        self._played: object = None
        self._steps: Steps | None = None

    def add(self, name: str, policy: Policy, groups: Sequence[str]) -> Player:
        """Lets a policy play some groups."""
        player = self.players[name] = Player(name, policy, groups, self)
        return player

    def look(self, mask: Tensor) -> bool:
        """Whether any is true, or might be."""
        return not self.looks or bool(mask.any())

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

    @torch.no_grad()
    def play(self) -> None:
        """Plays a rollout, going on from the last one. Nothing here waits for a GPU."""
        simulator = self.simulator
        self.observation[0].copy_(self.observation[-1])
        if self.own_state:
            self.state[0].copy_(self.state[-1])
        self.acting[0].copy_(self.acting[-1])
        self.begins[0].copy_(self.begins[-1])
        if self.mask is not None:
            self.mask[0].copy_(self.mask[-1])
        for player in self.players.values():
            player.memory[0].copy_(player.memory[-1])
        steps = self._prepared()
        if steps is None:
            self._play_each()
            for player in self.players.values():
                player.look_ahead()
        else:
            with simulator.in_use:
                simulator.check_usable()
                simulator.use_outputs(self.outputs[-1])
                steps.play()
        # What older rollouts left there says nothing, but would be in checkpoints.
        self.final_return.masked_fill_(~self.ended.unsqueeze(-1), 0)
        self.counter += self.steps

    def _play_each(self) -> None:
        """The steps one after another, as a GPU captures them."""
        simulator, recurrent = self.simulator, any(p.policy.recurrent for p in self.players.values())
        for t in range(self.steps):
            for player in self.players.values():
                player.act(t)
            if self.opponents is not None:
                self.opponents(t)
            simulator.use_outputs(self.outputs[t])
            simulator.step()
            if self.copies_return:
                self.final_return[t].copy_(self.now["final_return"])
            if recurrent:
                self.begins[t + 1].copy_(self.ended[t].view(self.members, self.envs))
            if self.knows_final and self.look(self.truncated[t]):
                self.final_observation[t].copy_(self.now["final_observation"])
            self._observe(t + 1)

    def _prepared(self) -> Steps | None:
        """The steps as one plan, where that can be, from the second rollout of the same players on."""
        form = (*self.players.values(), self.opponents, self.looks, torch.get_num_threads())
        if form != self._played:
            self._played, self._steps = form, None
        elif self._steps is None and Steps.fits(self):
            self._steps = Steps(self)
        return self._steps

    @torch.no_grad()
    def final_values(self, player: Player) -> Tensor | None:
        """Values (T, M, R) of final observations, where agents were truncated and not terminated; None: not known."""
        if not self.knows_final:
            return None
        out = torch.zeros(player.shape, device=self.device)
        cut = player.rows(self.truncated & ~self.terminated)
        if not self.look(cut):
            return out
        T, M, R = player.shape
        limit = self.simulator.max_episode_steps
        most = T * R if limit is None else min(T, -(-T // limit)) * R  # an env runs out of time once in `limit` steps
        flags = cut.transpose(0, 1).flatten(1)
        if self.looks:
            most = int(flags.sum(1).max())
        index = flags.float().topk(most, sorted=False).indices  # (M, most) of steps and rows
        place, seats = Places(player.shape, index), len(player.agents)
        seen = place.take(player.observations(self.final_observation))
        memory = place.take(player.memory[1:]) if player.policy.recurrent else None
        state, seat = player.states(self.final_state), None
        if state is not None:
            state, seat = Places((T, M, R // seats), index // seats).take(state), index % seats
        values = player.policy.value(seen, state, seat, memory)
        return place.put(out, values * flags.gather(1, index))


class Places:
    """Where (members, n) chosen transitions lie in tensors (steps, members, rows, ...).

    Args:
        shape: (steps, members, rows) of the tensors.
        index: (members, n), number of the transition among its member's: step * rows + row.
    """

    def __init__(self, shape: tuple[int, int, int], index: Tensor) -> None:
        _, members, rows = shape
        self._shape = index.shape
        self._flat = index
        if members > 1:
            step = index.div(rows, rounding_mode="floor")
            self._flat = index + (step * (members - 1) + torch.arange(members, device=index.device)[:, None]) * rows
        self._flat = self._flat.flatten()

    def take(self, x: Tensor) -> Tensor:
        """(steps, members, rows, ...) -> (members, n, ...)."""
        return x.flatten(0, 2).index_select(0, self._flat).unflatten(0, self._shape)

    def put(self, x: Tensor, values: Tensor) -> Tensor:
        """Writes (members, n) into ``x`` (steps, members, rows) and returns it."""
        x.view(-1)[self._flat] = values.flatten()
        return x


def by_group(rollout: Rollout, player: Player) -> Mapping[str, tuple[Tensor, Tensor]]:
    """By group: for each member the sum of the agents' mean returns over ended episodes, and how many ended."""
    ended = rollout.ended.view(rollout.steps, rollout.members, -1).float()
    lay, out = rollout.simulator.layout, {}
    for group in player.groups:
        first = lay.first[group]
        returns = rollout.final_return[:, :, first : first + lay.groups[group]].mean(-1).view_as(ended)
        out[group] = (returns.sum((0, 2)), ended.sum((0, 2)))
    return out
