"""Envs that run, and who plays them: a policy for each group, and a person in place of one agent."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpuzoo import registry
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.searchable import check_searchable
from gpuzoo.core.suggestions import unknown
from gpuzoo.interfaces.batch import BatchEnv, draw, drawn, state_of
from gpuzoo.render import tile
from gpuzoo.tools import board, controls
from gpuzoo.tools.players import (
    IN_TURN,
    POLICIES,
    RANDOM,
    SEARCH,
    STILL,
    TRAINED,
    Array,
    Policy,
    in_turn,
    still,
)


class Live:
    """Some envs of a game that go on step by step.

    Args:
        game: its id or declaration.
        num_envs: number of envs.
        players: who plays a group: ``"random"``, ``"trained"``, ``"search"`` (a tree search, `tools.searching`), a name
            of ``scripted``, ``"still"`` or ``"in turn"``; those left out play at random.
        seed: of the first env; env ``k`` has ``seed + k``.
        device: where the envs are. Policies are in host memory.
        scripted: policies of one's own by name, functions of observations, action masks and the number of the step.
        trained: who ``"trained"`` is, a ``Match`` of the trainers; the agents that come with the package by default.
        **config: parameters of the game. Trained agents bring those of their training, unless they are given.

    Attributes:
        envs: the batch.
        players: who plays, by group.
        rewards: (num_envs, agents) of the last step.
        movers: (num_envs,) of a turn-based game: index of the agent who moved in the last step; None before it.
        person: the agent that a person plays in env 0, or None.
        choice: what the person does, a value for each part of an action.
        board: whether the person moves by pressing on the picture.

    Raises:
        ValueError, TypeError: as `gpuzoo.make`, or a player that there is not.
        ImportError: trained agents or a search without torch.
    """

    def __init__(
        self, game: str | EnvDef | type[EnvDef], num_envs: int = 1, players: Mapping[str, str] | None = None,
        seed: int = 0, device: str = "cpu", scripted: Mapping[str, Policy] | None = None,
        trained: Any = None, **config: Any,
    ) -> None:  # fmt: skip
        self.env = registry.get(game)
        self.scripted, self._trained = dict(scripted or {}), trained
        if TRAINED in (players or {}).values():
            config = {**self._match(config).config, **config}
        self.config = config
        self.envs = BatchEnv(
            self.env, num_envs, device=device, output="numpy", autoreset_mode="next_step", threads=1, **config
        )
        self.num_envs = num_envs
        self.simulator = self.envs.simulator
        self.layout = self.simulator.layout
        self.controls = controls.of_layout(self.env, self.simulator.cfg, self.layout)
        self.players: dict[str, str] = dict.fromkeys(self.envs.groups, RANDOM)
        self._policies: dict[str, list[tuple[slice, Policy]]] = {group: [] for group in self.envs.groups}
        self.agents = self.layout.agent_names()
        self.person: str | None = None
        self.choice: list[float] = []
        self.board = board.has_places(self.env)
        self._presses = board.Presses()
        self.movers: Array | None = None
        self._size: tuple[int | None, float | None] = (None, None)  # of the last picture
        try:
            for group, player in (players or {}).items():
                self.set_player(group, player)
            self.reset(seed)
            if self.board:
                for parts in self.controls.values():
                    state, cfg = state_of(self.simulator, 0), self.simulator.config(0)
                    controls.on_board(parts[0], board.without_places(self.env, cfg, state, len(parts[0].labels)))
        except Exception:
            self.envs.close()
            raise

    # ---- who plays ----

    def kinds(self) -> list[str]:
        """Who may play: the names that `set_player` takes."""
        absent = {TRAINED} if not has_trained(self.env) else set()
        absent |= {SEARCH} if not self._is_searchable() else set()
        return [*(p for p in POLICIES if p not in absent), *self.scripted]

    def _is_searchable(self) -> bool:
        try:
            check_searchable(self.env, self.layout)
        except ValueError:
            return False
        return self.layout.agents == 2

    def set_player(self, group: str, player: str) -> None:
        """Gives a group to another policy, from the next step on.

        Raises:
            ValueError: no such group or policy, or trained agents that do not fit these parameters.
            ImportError: trained agents or a search without torch.
        """
        if group not in self.envs.groups:
            raise ValueError(unknown(f"{self.env.id} has no group", str(group), self.envs.groups))
        space, parts = self.layout.action_spaces[group], self.controls[group]
        policy: Policy
        seats: list[tuple[slice, Policy]] = []
        if player == TRAINED:
            seats = self._seats(group)
        elif player == SEARCH and self._is_searchable():
            seats = [(slice(None), self._searching(group))]
        elif player == STILL:
            rest = still(parts, space)

            def policy(seen: Array, mask: Array | None, step: int) -> Array:
                return np.broadcast_to(rest, (*seen.shape[:2], *rest.shape))

            seats = [(slice(None), policy)]
        elif player == IN_TURN:
            seats = [(slice(None), in_turn(space))]
        elif player in self.scripted:
            seats = [(slice(None), self.scripted[player])]
        elif player != RANDOM:
            raise ValueError(unknown("there is no policy", str(player), self.kinds()))
        self.players[group], self._policies[group] = player, seats

    def _match(self, config: Mapping[str, Any]) -> Any:
        if self._trained is not None:
            return self._trained
        try:
            import torch  # noqa: F401

            from gpuzoo.baselines.report import match
        except ImportError as error:
            raise ImportError(f"trained agents need torch: pip install 'gpuzoo[train]' ({error})") from None
        return match.arrange(self.env.id, {}, "pretrained", config)

    def _seats(self, group: str) -> list[tuple[slice, Policy]]:
        """The trained agents of a group; those that play at random are left out."""
        players = self._match(self.config).players
        names = {group: slice(None)} | {f"{group}_{k}": slice(k, k + 1) for k in range(self.envs.groups[group])}
        found = [(part, players[name]) for name, part in names.items() if players.get(name) is not None]
        return [(part, self._seat(group, part, policy)) for part, policy in found]

    def _seat(self, group: str, part: slice, player: Any) -> Policy:
        import torch

        from gpuzoo.baselines.report.evaluation import Seat

        on_host = types.SimpleNamespace(device="cpu")  # where observations are read, whatever the envs' own device
        batch: Any = types.SimpleNamespace(num_envs=self.num_envs, groups=self.envs.groups, simulator=on_host)
        seat = Seat(group, part, player, batch)
        generator = torch.Generator().manual_seed(0)

        @torch.no_grad()
        def policy(seen: Array, mask: Array | None, step: int) -> Array:
            given: Any = torch.from_numpy(np.ascontiguousarray(seen))
            if mask is not None:
                given = {"observation": given, "action_mask": torch.from_numpy(np.ascontiguousarray(mask))}
            begins = torch.from_numpy(self._host("elapsed_steps") == 0)
            return np.asarray(seat(given, begins, False, generator))

        return policy

    def _searching(self, group: str) -> Policy:
        try:
            from gpuzoo.tools.searching import searching
        except ImportError as error:
            raise ImportError(f"a search needs torch: pip install 'gpuzoo[train]' ({error})") from None
        best, first = searching(self.simulator), self.layout.first[group]
        own = range(first, first + self.envs.groups[group])

        def policy(seen: Array, mask: Array | None, step: int) -> Array:
            moves = np.isin(self._host(str(self.env.turn)), own) & ~self._host("waiting").astype(bool)
            moves[0] &= not self.my_turn
            action = best() if moves.any() else np.zeros(self.num_envs, np.int64)
            return np.broadcast_to(action[:, None, None], (self.num_envs, len(own), 1))

        return policy

    def play(self, agent: str | None) -> None:
        """Lets a person play an agent of env 0, or nobody.

        Raises:
            ValueError: no such agent.
        """
        if agent is not None and agent not in self.agents:
            raise ValueError(unknown(f"{self.env.id} has no agent", str(agent), self.agents))
        self.person = agent
        self._presses.done.clear()
        if agent is not None:
            self.choice = [part.low if part.still is None else part.still for part in self.controls[self.group(agent)]]

    def choose(self, values: list[Any], *, takes: bool = False) -> None:
        """What the person does from now on, a number for each part of an action.

        Args:
            values: the numbers.
            takes: whether the person takes this action in the next step, so that an illegal one is refused.

        Raises:
            ValueError, TypeError: nobody plays, an illegal action is taken, or as `controls.action`.
        """
        if self.person is None:
            raise ValueError("choose the agent that you play first.")
        group = self.group(self.person)
        controls.action(self.layout.action_spaces[group], self.controls[group], values)
        legal = self.legal() if takes and self.my_turn else []
        if legal and values[0] not in legal:
            label = self.controls[group][0].labels[int(values[0])]
            raise ValueError(f"{self.env.id}: {label} is illegal now, so nothing was done.")
        self.choice = list(values)

    def legal(self) -> list[int]:
        """The legal actions of the person, where an action is one choice; otherwise nothing."""
        if self.person is None or len(self.choice) != 1:
            return []
        group = self.group(self.person)
        part, mask = self.controls[group][0], self.seen(group)[1]
        if not part.labels:
            return []
        member = self.agents.index(self.person) - self.layout.first[group]
        return [k for k in range(len(part.labels)) if mask is None or mask[0, member, k]]

    def group(self, agent: str) -> str:
        """The group of an agent."""
        index = self.agents.index(agent)
        return next(g for g, n in self.envs.groups.items() if index < self.layout.first[g] + n)

    @property
    def my_turn(self) -> bool:
        """Whether the person's action counts in the next step."""
        if self.person is None or bool(self._host("waiting")[0]):
            return False
        index = self.agents.index(self.person)
        if not self._host("alive")[0, index]:
            return False
        return self.env.turn is None or int(self._host(self.env.turn)[0]) == index

    @property
    def over(self) -> bool:
        """Whether the episode of env 0 is over; the next step begins another one."""
        return bool(self._host("waiting")[0])

    # ---- time ----

    def reset(self, seed: int | None = None) -> None:
        """Begins new episodes, with other seeds or the next ones."""
        self._presses.done.clear()
        self._observations, _ = self.envs.reset(seed=seed)
        self.steps, self.movers = 0, None
        self.rewards = np.zeros((self.num_envs, self.layout.agents), np.float32)

    def step(self) -> None:
        """One step of all envs. An env whose episode is over begins the next one."""
        actions = self.envs.random_actions()
        for group, seats in self._policies.items():
            seen, mask = self.seen(group)
            for part, policy in seats:
                target = actions[group][:, part]
                target[...] = np.asarray(policy(seen, mask, self.steps)).reshape(target.shape)
        if self.person is not None:
            group = self.group(self.person)
            mine = controls.action(self.layout.action_spaces[group], self.controls[group], self.choice)
            target = actions[group][0, self.agents.index(self.person) - self.layout.first[group]]
            actions[group][0, self.agents.index(self.person) - self.layout.first[group]] = mine.reshape(target.shape)
        self._presses.done.clear()
        self.movers = None if self.env.turn is None else self._host(self.env.turn).copy()
        self._observations, rewards, *_ = self.envs.step(actions)
        self.rewards = np.concatenate([np.array(rewards[g]) for g in self.envs.groups], axis=1)
        self.steps += 1

    def seen(self, group: str) -> tuple[Array, Array | None]:
        """Observations of a group, (num_envs, agents, ...), and its action masks."""
        found = self._observations[group]
        if isinstance(found, dict):
            return np.asarray(found["observation"]), np.asarray(found["action_mask"])
        return np.asarray(found), None

    def _host(self, name: str) -> Array:
        return np.asarray(self.simulator.backend.to_numpy(self.simulator.arrays[name]))

    def array(self, name: str, env: int) -> Array:
        """What an array of the simulator says of an env, in host memory."""
        found: Array = self._host(name)[env]
        return found

    def picture(self, side: int, aspect: float | None = None) -> Array:
        """All envs, tiled, (height, width, 3) uint8; each as `interfaces.batch.draw` makes it.

        Env 0 is drawn for the eyes of the person who plays in it.
        """
        if self.num_envs == 1:
            canvas, self._size = drawn(self.simulator, 0, side, aspect, self._seat_taken()), (side, aspect)
            if self._presses.done:
                self._presses.draw(canvas, self._ways())
            return canvas.array()
        frames = [
            draw(self.simulator, k, side, aspect, None if k else self._seat_taken()) for k in range(self.num_envs)
        ]
        return tile(frames)

    def _seat_taken(self) -> int | None:
        """Index of the agent that a person plays."""
        return None if self.person is None else self.agents.index(self.person)

    # ---- boards ----

    def press(self, across: float, down: float) -> bool:
        """The person presses on the last picture, on which the actions of a board game have places.

        Args:
            across: where, from 0 to 1 rightwards.
            down: likewise, downwards.

        Returns:
            Whether this completes a move, which is then `choice`.
        """
        if not self.board or not self.my_turn or self.num_envs > 1:
            return False
        canvas = drawn(self.simulator, 0, *self._size, self._seat_taken())
        found = self._presses.press(canvas, canvas.at(across, down), self._ways())
        if found is not None:
            self.choice = [found]
        return found is not None

    def unplaced(self) -> list[int]:
        """The legal actions of the person that have no place on the picture of a board game now."""
        return [k for k, places in self._ways().items() if not places] if self.board and self.my_turn else []

    def _ways(self) -> dict[int, Sequence[board.Press]]:
        """The places of each legal action of the person."""
        state, cfg = state_of(self.simulator, 0), self.simulator.config(0)
        return {k: self.env.presses(cfg, state, k) for k in self.legal()}

    def close(self) -> None:
        """Frees the envs. May be called again."""
        self.envs.close()


def has_trained(env: EnvDef) -> bool:
    """Whether agents of a game come with the package."""
    from gpuzoo.baselines.train.command import PRETRAINED, checkpoint_of

    try:
        return bool(checkpoint_of(type(env), PRETRAINED))
    except ValueError:
        return False
