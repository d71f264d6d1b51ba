"""Rows for learners that know neither action masks in observations nor agents that leave; what adapters share."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorWrapper
from gymnasium.vector.utils import batch_space

from gpuzoo.core.definition import EnvDef
from gpuzoo.interfaces.vector import make_vec

Array = np.ndarray[Any, Any]

#: arguments of `VectorEnv` that `make_rows` gives itself
FIXED = ("autoreset_mode", "output", "copy", "statistics")


class Rows(VectorWrapper):
    """A `VectorEnv` in same-step mode, with NumPy arrays and statistics, whose every row can be learnt from.

    Observations come without their action masks, which `action_mask` has. An agent that leaves its env is terminated,
    and its row is padding until the env's next episode: observation and reward are 0, no action is legal. The step
    in which that episode begins terminates the padding, so that nothing is learnt across the border and recurrent
    policies forget. The padding is no episode: ``infos["episode"]`` leaves it out.

    Args:
        env: a `VectorEnv` as `make_rows` makes it.
        flatten: gives Box observations as vectors.

    Attributes:
        alive: bool (num_envs,), rows whose agent acts in the next step; the others are padding.
    """

    def __init__(self, env: Any, flatten: bool = False) -> None:
        super().__init__(env)
        self.alive: Array = np.ones(env.num_envs, np.bool_)
        self._start = time.time()
        self._names: tuple[str, ...] = env.info_names
        space = env.single_observation_space
        self._masked = isinstance(space, spaces.Dict)
        if isinstance(space, spaces.Dict):
            space = space["observation"]
        self._flatten = flatten and isinstance(space, spaces.Box)
        if self._flatten:
            space = spaces.flatten_space(space)
        if space is not env.single_observation_space:
            self.single_observation_space = space
            self.observation_space = batch_space(space, env.num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begins new episodes, see `VectorEnv.reset`."""
        observations, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        observations = self._plain(observations)
        self.alive = infos.get("alive", self.alive)
        if not self.alive.all():  # after a partial reset
            observations[~self.alive] = 0
        return observations, infos

    def step(self, actions: Any) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """One step of all rows, see `VectorEnv.step`."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        observations = self._plain(observations)
        if "final_obs" in infos:
            infos["final_obs"] = self._plain(infos["final_obs"])
        if "alive" in infos:
            self._pad(observations, terminations, infos)
        return observations, rewards, terminations, truncations, infos

    def _plain(self, observations: Any) -> Array:
        array: Array = observations["observation"] if self._masked else observations
        return array.reshape(self.num_envs, -1) if self._flatten else array

    def _pad(self, observations: Array, terminations: Array, infos: dict[str, Any]) -> None:
        before, self.alive = self.alive, infos["alive"]
        if not self.alive.all():
            observations[~self.alive] = 0
        if before.all():
            return
        began = self.alive & ~before
        if began.any():
            terminations |= began
            final = infos.setdefault("final_obs", np.zeros_like(observations))
            final[began] = 0
            infos["_final_obs"] = infos.get("_final_obs", False) | began

    def listed(
        self, terminations: Array, truncations: Array, infos: dict[str, Any], episodes: bool = True
    ) -> list[dict[str, Any]]:
        """Infos of a step as one fresh dictionary per row, filled where an episode or padding ended.

        The game's own infos, if they were asked for, are there in every step; those of an episode's last step are those
        of its last state.

        Args:
            terminations: as `step` returned them.
            truncations: likewise.
            infos: likewise.
            episodes: whether to report ``episode``, with return ``r``, length ``l`` and seconds since the start ``t``.

        Returns:
            Dictionaries with ``terminal_observation``, ``TimeLimit.truncated`` (cut short, not over), ``episode``, and
            ``is_success`` of an episode where the game's infos have ``solved``.
        """
        out = self.own(infos, np.arange(self.num_envs))
        rows = (terminations | truncations).nonzero()[0].tolist()
        if not rows:
            return out
        final, cut = infos["final_obs"], (truncations & ~terminations).tolist()
        for i in rows:
            out[i] |= {"terminal_observation": final[i], "TimeLimit.truncated": cut[i]}
        for i, episode in self.episodes(infos):
            if episodes:
                out[i]["episode"] = episode
            if "solved" in out[i]:
                out[i]["is_success"] = out[i]["solved"]
        return out

    def own(self, infos: dict[str, Any], rows: Array) -> list[dict[str, Any]]:
        """The game's own infos of a step, for some rows: those of the states that the step led to."""
        last = infos.get("final_info", {})
        out: list[dict[str, Any]] = [{} for _ in range(len(rows))]
        for name in self._names:
            values = infos[name][rows]
            if name in last:
                done = last[f"_{name}"][rows]
                values[done] = last[name][rows][done]
            for found, value in zip(out, values.tolist() if values.ndim == 1 else values, strict=True):
                found[name] = value
        return out

    def episodes(self, infos: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Row and statistics of each episode that ended in a step with these infos."""
        if "episode" not in infos:
            return
        found, elapsed = infos["episode"], round(time.time() - self._start, 6)
        returns, lengths = found["r"].tolist(), found["l"].tolist()
        for i in found["_r"].nonzero()[0].tolist():
            yield i, {"r": returns[i], "l": lengths[i], "t": elapsed}

    @property
    def action_mask(self) -> Array:
        """Bool (num_envs, choices): legal actions of each row, a copy; none in padding.

        Raises:
            AttributeError: the game has no masks.
        """
        mask: Array = self.env.action_mask.astype(np.bool_)  # type: ignore[attr-defined]
        if not self.alive.all():
            mask[~self.alive] = False
        return mask


def make_rows(
    env: str | EnvDef | type[EnvDef], num_envs: int | None, adapter: str, flatten: bool = False, **kwargs: Any
) -> Rows:
    """`Rows` of a game.

    Args:
        env: id or declaration of the game.
        num_envs: number of rows, see `make_vec`.
        adapter: who asks, for messages.
        flatten: see `Rows`.
        **kwargs: further arguments of `make_vec`.

    Raises:
        TypeError: ``env`` is a ready environment, or an argument that the adapter gives itself.
        ValueError: see `VectorEnv`.
    """
    if not isinstance(env, (str, EnvDef, type)):
        raise TypeError(f"{adapter} makes its batch itself, from the id of a game or an EnvDef, not from {env!r}.")
    for name in FIXED:
        if name in kwargs:
            raise TypeError(f"{adapter} chooses {name} itself: leave it out, or use gpuzoo.make_vec.")
    batch = make_vec(env, num_envs, autoreset_mode="same_step", output="numpy", statistics=True, **kwargs)
    return Rows(batch, flatten)
