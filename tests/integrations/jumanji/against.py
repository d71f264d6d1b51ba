"""Jumanji's envs step from our states, by our actions; what both say of it must be the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from gpuzoo import Simulator, get
from gpuzoo.core.layout import choices

Arrays = Mapping[str, NDArray[Any]]
LAST = 2  # step type of dm_env
MOVES = 100_000
EPS = 2.0**-23


def simulator(name: str, n: int, **options: Any) -> Simulator:
    """Envs that stay as they are after their end."""
    return Simulator(get(name), n, device="cpu", **{"autoreset_mode": "disabled", **options})


@dataclasses.dataclass
class Against:
    """A game of both.

    Args:
        sim: ours, as `simulator` makes it.
        env: Jumanji's.
        state_of: Jumanji's states with our fields, all envs in one; leaves are NumPy arrays or None.
        seen: our observations (n, size of all agents) from Jumanji's.
        mask: our action masks (n, actions of all agents) from Jumanji's observations; all actions are legal without it.
        action: Jumanji's actions from ours.
        observe: Jumanji's observation of one state, for games with chance: theirs draws other numbers.
        chance: fields of Jumanji's state that chance changes.
        over: which of our states are the last ones, given whether the actions were legal, if chance decides about it.
        after_illegal: whether states and observations are the same after an illegal action, too.
        also: what else is compared: a function of our states, theirs and `live`.
        rounding: largest difference of a reward, as a part of it or absolute.
        seen_rounding: largest difference of a number of an observation, as a part of it.
    """

    sim: Simulator
    env: Any
    state_of: Callable[[Arrays], Any]
    seen: Callable[[Any], NDArray[Any]]
    mask: Callable[[Any], NDArray[Any]] | None = None
    action: Callable[[NDArray[Any]], NDArray[Any]] = lambda actions: actions
    observe: Callable[[Any], Any] | None = None
    chance: Sequence[str] = ()
    over: Callable[[Any, NDArray[np.bool_]], NDArray[np.bool_]] | None = None
    after_illegal: bool = True
    also: Callable[[Any, Any, NDArray[np.bool_]], None] | None = None
    rounding: float = 0.0
    seen_rounding: float = 0.0

    def __post_init__(self) -> None:
        self._step = jax.jit(jax.vmap(self.env.step))
        self._observe = jax.jit(jax.vmap(self.observe)) if self.observe else None

    def arrays(self) -> Arrays:
        """A copy of our arrays."""
        return {name: np.array(array) for name, array in self.sim.arrays.items()}

    def step(self, actions: NDArray[Any], live: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """One step of both, compared in the envs that are `live`; returns which of them have ended."""
        before = self.arrays()
        self.sim.arrays["action"][...] = actions.reshape(self.sim.arrays["action"].shape)
        self.sim.step()
        after = self.arrays()
        state, timestep = self._step(self.state_of(before), self.action(actions))
        reward = after["reward"][live]
        theirs = np.asarray(timestep.reward)[live].reshape(len(reward), -1)  # one for all agents, or one for each
        assert (abs(reward - theirs) <= self.rounding * np.maximum(1.0, abs(theirs))).all()
        ended = (after["terminated"] | after["truncated"])[:, 0].astype(bool)
        ours = self.state_of(after)
        legal = self.legal(before, actions)
        last = self.over(ours, legal) if self.over else np.asarray(timestep.step_type) == LAST
        np.testing.assert_array_equal(ended[live], last[live])
        if not self.after_illegal:
            live = live & legal
        if self.also:
            self.also(ours, state, live)
        for name in (f.name for f in dataclasses.fields(ours)):
            if name != "key" and name not in self.chance and getattr(ours, name) is not None:
                pairs = zip(jax.tree.leaves(getattr(ours, name)), jax.tree.leaves(getattr(state, name)), strict=True)
                for one, other in pairs:
                    np.testing.assert_array_equal(np.asarray(one)[live], np.asarray(other)[live], name)
        observation = timestep.observation if self._observe is None else self._observe(ours)
        self.same_observations(after, observation, live)
        return ended

    def same_observations(self, arrays: Arrays, observation: Any, live: NDArray[np.bool_]) -> None:
        """Our observations and masks are Jumanji's."""
        seen = np.asarray(self.seen(observation), np.float32)
        ours = arrays["observation"][live].astype(np.float32).reshape(seen[live].shape)
        if self.seen_rounding:
            assert (abs(ours - seen[live]) <= self.seen_rounding * abs(seen[live])).all()
        else:
            np.testing.assert_array_equal(ours, seen[live])
        if self.mask is not None:
            legal = np.asarray(self.mask(observation))
            ours = arrays["action_mask"][live].astype(bool).reshape(legal[live].shape)
            np.testing.assert_array_equal(ours, legal[live])

    def legal(self, arrays: Arrays, actions: NDArray[Any]) -> NDArray[np.bool_]:
        """Which actions are legal."""
        if self.mask is None:
            return np.ones(len(actions), bool)
        parts = actions.reshape(len(actions), -1) + self._offsets()
        mask = arrays["action_mask"].reshape(len(actions), -1)
        return (np.take_along_axis(mask, parts, axis=1) != 0).all(1)

    def any_actions(self, rng: np.random.Generator, *, legal: bool) -> NDArray[Any]:
        """Random ones for each env, as the space has them."""
        n, sizes = self.sim.num_envs, self._sizes()
        mask = np.ones((n, sum(sizes)))
        if legal and self.mask is not None:
            mask = self.sim.arrays["action_mask"].reshape(n, -1)
        chances = np.split(rng.random(mask.shape) * (mask != 0), self._offsets()[1:], axis=1)
        actions = np.stack([chance.argmax(1) for chance in chances], 1)
        return actions if len(sizes) > 1 else actions[:, 0]

    def _sizes(self) -> list[int]:
        """Choices of each part of an action, or of each agent."""
        (space,) = self.sim.layout.action_spaces.values()
        return choices(space) * self.sim.layout.agents

    def _offsets(self) -> NDArray[Any]:
        return np.cumsum([0, *self._sizes()[:-1]])

    def some_illegal(self, rng: np.random.Generator, illegal: float) -> NDArray[Any]:
        """Random legal actions, but in a part of the envs any."""
        legal, other = (self.any_actions(rng, legal=legal) for legal in (True, False))
        chosen = rng.random(self.sim.num_envs) < illegal
        return np.where(chosen.reshape(-1, *[1] * (legal.ndim - 1)), other, legal)

    def follow(self, moves: int = MOVES, illegal: float = 0.01) -> None:
        """Whole episodes of random legal moves, and of some illegal ones beside them."""
        rng, n, made, seed = np.random.default_rng(0), self.sim.num_envs, 0, 0
        while made < moves:
            self.sim.reset(seed=seed)
            live, seed = np.ones(n, bool), seed + 1
            while live.any() and made < moves:
                actions = self.some_illegal(rng, illegal)
                made += int((live & self.legal(self.sim.arrays, actions)).sum())
                live &= ~self.step(actions, live)

    def from_states(self, states: Arrays, illegal: float = 0.1) -> None:
        """One step from each of these states."""
        self.sim.reset(seed=1)
        self.sim.set_state(dict(states))
        self.step(self.some_illegal(np.random.default_rng(1), illegal), np.ones(self.sim.num_envs, bool))


def keys(n: int) -> Any:
    """Random keys, which states hold."""
    return jax.random.split(jax.random.key(0), n)


def resets(env: Any, n: int, seed: int = 0) -> Any:
    """First states of Jumanji's env, all in one."""
    state, _ = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(seed), n))
    return state


def same_distribution(ours: Any, theirs: Any) -> None:
    """Two samples of numbers come from the same distribution: Kolmogorov and Smirnov's test, at about 1e-5."""
    one, other = np.sort(np.ravel(ours)).astype(float), np.sort(np.ravel(theirs)).astype(float)
    points = np.concatenate([one, other])
    below = [np.searchsorted(sample, points, side="right") / len(sample) for sample in (one, other)]
    largest = abs(below[0] - below[1]).max()
    assert largest < 2.5 * np.sqrt((len(one) + len(other)) / (len(one) * len(other))), largest
