"""Tree search from the envs of a simulator."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch
from gymnasium import spaces
from torch import Tensor

from gpuzoo.core.backend import Device
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.searchable import check_searchable
from gpuzoo.core.simulator import Simulator
from gpuzoo.core.snapshot import Snapshot
from gpuzoo.registry import get
from gpuzoo.search.cached import Evaluate, evaluated
from gpuzoo.search.results import Result, result_of
from gpuzoo.search.settings import RULES, Rule, Settings
from gpuzoo.search.states import States
from gpuzoo.search.tree import Tree
from gpuzoo.tensors import as_tensor


class Search:
    """Batched Monte Carlo tree search: a tree for each of many roots, all on the device.

    A simulation goes down every tree, steps all envs in one launch from the states they came to, and evaluates the new
    positions in one batch: by a network, or by random play to the end with ``rule="uct"``.

    The game has one agent, or two who move in turn and whose rewards sum to 0. In a game with chance each action has
    one outcome per search, drawn with seeds of the search's own: it does not know what the game will draw.

    Args:
        game: the game or its id.
        roots: number of trees, R.
        simulations: nodes that each tree gets.
        rule: ``"gumbel"`` (Gumbel AlphaZero, best with few simulations), ``"puct"`` (AlphaZero) or ``"uct"``.
        playouts: with ``"uct"``, random games behind each new node.
        playout_steps: with ``"uct"``, most steps of a random game; None: until all of them are over, which waits for
            the device.
        discount: of rewards, per move.
        settings: how actions are selected.
        device: as for `Simulator`.
        threads: likewise.
        seed: of the search's own random numbers.
        **config: the game's parameters.

    Attributes:
        tree: the trees; valid until the next search.

    Raises:
        ValueError: a game that cannot be searched, or arguments out of range.
        TypeError: no game.
    """

    def __init__(
        self,
        game: str | EnvDef | type[EnvDef],
        roots: int,
        *,
        simulations: int = 32,
        rule: Rule = "gumbel",
        playouts: int = 1,
        playout_steps: int | None = None,
        discount: float = 1.0,
        settings: Settings | None = None,
        device: Device = "auto",
        threads: int | None = None,
        seed: int = 0,
        **config: Any,
    ) -> None:
        if rule not in RULES:
            raise ValueError(f"rule must be one of {', '.join(RULES)}, not {rule!r}.")
        for name, value in (("simulations", simulations), ("playouts", playouts)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}.")
        env = get(game) if isinstance(game, str) else game
        given: dict[str, Any] = {"device": device, "threads": threads, "autoreset_mode": "disabled", **config}
        self._envs = Simulator(env, roots, max_episode_steps=None, **given)
        self.settings = Settings() if settings is None else settings
        self.rule, self.discount, self.simulations = rule, discount, simulations
        layout = self._envs.layout
        check_searchable(self._envs.env, layout)
        space = next(iter(layout.action_spaces.values()))
        self._observed = next(iter(layout.observation_spaces.values())).shape or (1,)
        assert isinstance(space, spaces.Discrete)
        self.tree = Tree(roots, simulations, int(space.n), rule, self._envs.backend, self.settings)
        self._here = torch.arange(roots, device=self.tree.row.device)
        rows = roots * self.tree.nodes
        self._states = States(self._envs, self.tree.origin, count=rows)
        self._new = States(self._envs, self.tree.row, into=self._states)
        self._root_rows = self._here * self.tree.nodes
        self._roots = States(self._envs, self._root_rows, into=self._states)
        self._games: Simulator | None = None
        if rule == "uct":
            self._games = Simulator(env, roots * playouts, max_episode_steps=None, **given)
            self._playout_rows = torch.zeros_like(self.tree.row)
            self._starts = States(self._games, self._playout_rows, playouts, into=self._states)
        self._playouts, self._playout_steps = playouts, playout_steps
        self._arrays = {name: as_tensor(array) for name, array in self._envs.arrays.items()}
        self.random = torch.Generator(device=self.tree.row.device).manual_seed(seed)
        self.searches = seed

    def run(
        self,
        roots: Simulator | Snapshot,
        evaluate: Evaluate | None = None,
        *,
        gumbel: Tensor | None = None,
        dirichlet: Tensor | None = None,
    ) -> Result:
        """Searches from the states of some envs.

        Args:
            roots: a simulator with R envs of the same game and configuration, or a snapshot of such.
            evaluate: gets the observations (R, ...) of the agents who are to move and a bool tensor (R, A) of what is
                legal, and returns logits (R, A) and values (R,) for these agents. None with ``rule="uct"``.
            gumbel: float32 (R, A): noise instead of the search's own, for ``rule="gumbel"``.
            dirichlet: float32 (R, A): likewise, for ``rule="puct"``.

        Raises:
            ValueError: ``evaluate`` is missing, or there with ``rule="uct"``; the roots do not fit.
        """
        if (evaluate is None) != (self.rule == "uct"):
            needs = "plays random games: give no evaluate" if self.rule == "uct" else "needs evaluate"
            raise ValueError(f"rule={self.rule!r} {needs}.")
        snapshot = roots.snapshot() if isinstance(roots, Simulator) else roots
        self.searches += 1
        self._envs.restore(snapshot, seed=self.searches * self._envs.num_envs)
        if self._games is not None:
            copies = {name: array.repeat(self._playouts, axis=0) for name, array in snapshot.arrays.items()}
            self._games.restore(dataclasses.replace(snapshot, arrays=copies))
        self._begin(evaluate, gumbel, dirichlet)
        for _ in range(self.simulations):
            self._simulate(evaluate)
        return result_of(self.tree)

    # ---- one search ----

    def _begin(self, evaluate: Evaluate | None, gumbel: Tensor | None, dirichlet: Tensor | None) -> None:
        tree, settings = self.tree, self.settings
        self._roots.save()
        self._playout_rows_of(self._root_rows)
        over = self._arrays["ended"] | self._arrays["waiting"]
        logits, value = self._evaluated(evaluate)
        if self.rule == "puct" and (settings.dirichlet_fraction or dirichlet is not None):
            legal = logits > -math.inf
            noise = self._dirichlet(legal) if dirichlet is None else dirichlet.to(logits)
            share = settings.dirichlet_fraction
            mixed = (1 - share) * logits.softmax(1) + share * noise
            logits = torch.where(legal, mixed.clamp_min(torch.finfo(torch.float32).tiny).log(), -math.inf)
        tree.begin(logits, value, over)
        if gumbel is not None:
            tree.gumbel.copy_(gumbel)
        elif self.rule == "gumbel":
            uniform = torch.rand(tree.gumbel.shape, generator=self.random, device=tree.gumbel.device)
            tree.gumbel.copy_(settings.gumbel_scale * -(-uniform.clamp_min(1e-20).log()).log())

    def _dirichlet(self, legal: Tensor) -> Tensor:
        alpha = torch.full(legal.shape, self.settings.dirichlet_alpha, device=legal.device)
        drawn = torch._standard_gamma(alpha, generator=self.random).where(legal, 0.0)
        return drawn / drawn.sum(1, keepdim=True).clamp_min(1e-30)

    def _simulate(self, evaluate: Evaluate | None) -> None:
        tree, arrays = self.tree, self._arrays
        tree.select()
        self._states.load()
        mover = self._mover()
        arrays["action"].copy_(tree.chosen.view(-1, 1, 1).expand_as(arrays["action"]))
        self._envs.step()
        self._new.save()
        self._playout_rows_of(tree.row)
        reward = arrays["reward"].gather(1, mover[:, None])[:, 0]
        sign = torch.where(self._mover() == mover, self.discount, -self.discount)
        over = arrays["ended"]
        logits, value = self._evaluated(evaluate)
        tree.backup(logits, value, reward, torch.where(over, 0.0, sign), over)

    def _mover(self) -> Tensor:
        """int64 (R,): index of the agent to move."""
        turn = self._envs.env.turn
        return torch.zeros_like(self._here) if turn is None else self._arrays[turn].long()

    def _evaluated(self, evaluate: Evaluate | None) -> tuple[Tensor, Tensor]:
        """Logits and values of the envs as they are."""
        mover, width = self._mover(), self.tree.actions
        row = mover if self._envs.layout.observers > 1 else torch.zeros_like(mover)
        if "action_mask" in self._arrays:
            legal = self._arrays["action_mask"][self._here, row, :width] != 0
        else:
            legal = torch.ones((len(mover), width), dtype=torch.bool, device=mover.device)
        if evaluate is None:
            return torch.zeros(legal.shape, device=mover.device).masked_fill(~legal, -math.inf), self._played(mover)
        observation = self._arrays["observation"][self._here, row].view(-1, *self._observed)
        logits, value = evaluated(evaluate, observation, legal)
        return logits.masked_fill(~legal, -math.inf), value

    # ---- random games ----

    def _playout_rows_of(self, rows: Tensor) -> None:
        if self._games is not None:
            self._playout_rows.copy_(rows)

    def _played(self, mover: Tensor) -> Tensor:
        """The mean return of random games, for who moves."""
        games = self._games
        assert games is not None
        self._starts.load()
        seeds = torch.randint(2**62, (games.num_envs,), generator=self.random, device=mover.device)
        as_tensor(games.arrays["seed"]).view(torch.int64).copy_(seeds)
        for name in ("episode_return", "final_return"):
            as_tensor(games.arrays[name]).zero_()
        if self._playout_steps is not None:
            games.rollout(self._playout_steps)
        else:
            waiting = as_tensor(games.arrays["waiting"])
            while not bool(waiting.all()):
                games.rollout(64)
        alive = as_tensor(games.arrays["alive"])
        found = torch.where(alive, as_tensor(games.arrays["episode_return"]), as_tensor(games.arrays["final_return"]))
        mean = found.view(len(mover), self._playouts, -1).mean(1)
        return mean.gather(1, mover[:, None])[:, 0]

    def close(self) -> None:
        """Frees the envs. May be called again."""
        self._envs.close()
        if self._games is not None:
            self._games.close()
