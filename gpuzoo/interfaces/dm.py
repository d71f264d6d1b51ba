"""dm_env's interface for a pool: time steps of many envs at once, as EnvPool has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from gymnasium import spaces

from gpuzoo.core.pool import Rows

if TYPE_CHECKING:
    from gpuzoo.interfaces.pool import EnvPool

#: arrays of the simulator that time steps are made of, beside those that every pool returns
COLUMNS = ("alive", "ended")

_FIRST, _MID, _LAST = range(3)  # dm_env.StepType


class Players(NamedTuple):
    """Of each row: the index of its env, int32 (rows,)."""

    env_id: Any


class State(NamedTuple):
    """The observation of some envs.

    Attributes:
        env_id: int32 (envs,), to be sent back with the actions.
        players: the ``env_id`` of each row.
        obs: (rows, ...).
        elapsed_step: int32 (envs,).
        action_mask: int8 (rows, choices), or None if the game has no masks.
    """

    env_id: Any
    players: Any
    obs: Any
    elapsed_step: Any
    action_mask: Any = None


class TimeStep(NamedTuple):
    """A ``dm_env.TimeStep`` of many envs.

    Attributes:
        step_type: int32 (envs,): 0 first, 1 mid, 2 last.
        reward: float32 (rows,).
        discount: float32 (rows,): 0 for an agent that was terminated, as long as it is out of the game and even if the
            last step is truncated for others; otherwise 1.
        observation: a `State`.
    """

    step_type: Any
    reward: Any
    discount: Any
    observation: State

    def first(self) -> Any:
        """Bool (envs,)."""
        return self.step_type == _FIRST

    def mid(self) -> Any:
        """Bool (envs,)."""
        return self.step_type == _MID

    def last(self) -> Any:
        """Bool (envs,)."""
        return self.step_type == _LAST


class DmPool:
    """An `EnvPool` with dm_env's time steps, in NumPy arrays; ``make_pool(..., env_type="dm")`` makes one.

    A truncated episode ends with discount 1 and a terminated one with 0, as in dm_env. (EnvPool has 0 for both.) The
    step after the end of an episode is a first step: its action is ignored and its reward is 0.

    Args:
        pool: an `EnvPool` with NumPy output whose rows have `COLUMNS`; it is closed with this one.
    """

    def __init__(self, pool: EnvPool) -> None:
        self.pool = pool
        self.num_envs, self.batch_size = pool.num_envs, pool.batch_size
        self.spec, self.simulator = pool.spec, pool.simulator

    def __len__(self) -> int:
        return self.num_envs

    @property
    def config(self) -> dict[str, Any]:
        """As `EnvPool.config`."""
        return self.pool.config

    @property
    def all_env_ids(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """As `EnvPool.all_env_ids`."""
        return self.pool.all_env_ids

    @property
    def is_async(self) -> bool:
        """As `EnvPool.is_async`."""
        return self.pool.is_async

    def _time_step(self, rows: Rows) -> TimeStep:
        env_id, players, obs, reward, terminated, truncated, elapsed_step = rows[:7]
        alive, ended = self.pool.column(rows, "alive"), self.pool.column(rows, "ended")
        mask = self.pool.column(rows, "action_mask") if self.simulator.layout.mask_size else None
        return TimeStep(
            np.add(elapsed_step != 0, ended, dtype=np.int32),
            reward,
            (alive | (truncated & ~terminated)).astype(np.float32),
            State(env_id, Players(players), obs, elapsed_step, mask),
        )

    def send(self, action: Any, env_id: Any = None) -> None:
        """As `EnvPool.send`."""
        self.pool.send(action, env_id)

    def recv(self) -> TimeStep:
        """As `EnvPool.recv`, as a `TimeStep`."""
        return self._time_step(self.pool.recv_rows())

    def step(self, action: Any, env_id: Any = None) -> TimeStep:
        """As `EnvPool.step`, as a `TimeStep`."""
        return self._time_step(self.pool.step_rows(action, env_id))

    def async_reset(self) -> None:
        """As `EnvPool.async_reset`."""
        self.pool.async_reset()

    def reset(self, env_id: Any = None) -> TimeStep:
        """As `EnvPool.reset`, as a `TimeStep`."""
        return self._time_step(self.pool.reset_rows(env_id))

    def render(self, env_ids: Any = None) -> np.ndarray[Any, Any]:
        """As `EnvPool.render`."""
        return self.pool.render(env_ids)

    def observation_spec(self) -> State:
        """``dm_env.specs`` of one row.

        Raises:
            ImportError: dm_env is missing.
        """
        specs = _specs()
        space: Any = self.pool.single_observation_space
        mask = None
        if isinstance(space, spaces.Dict):
            mask = _spec(specs, space["action_mask"], "action_mask")
            space = space["observation"]
        last = self.num_envs - 1
        index = specs.BoundedArray((), np.int32, 0, last, "env_id")
        elapsed = specs.BoundedArray((), np.int32, 0, np.iinfo(np.int32).max, "elapsed_step")
        return State(index, Players(index.replace(name="players.env_id")), _spec(specs, space, "obs"), elapsed, mask)

    def action_spec(self) -> Any:
        """``dm_env.specs`` of one row.

        Raises:
            ImportError: dm_env is missing.
        """
        return _spec(_specs(), self.pool.single_action_space, "action")

    def reward_spec(self) -> Any:
        """``dm_env.specs`` of one row.

        Raises:
            ImportError: dm_env is missing.
        """
        return _specs().Array((), np.float32, "reward")

    def discount_spec(self) -> Any:
        """``dm_env.specs`` of one row.

        Raises:
            ImportError: dm_env is missing.
        """
        return _specs().BoundedArray((), np.float32, 0.0, 1.0, "discount")

    def close(self) -> None:
        """As `EnvPool.close`."""
        self.pool.close()


def _specs() -> Any:
    try:
        from dm_env import specs
    except ImportError as error:
        raise ImportError("specs need dm_env: pip install 'gpuzoo[dm]'.") from error
    return specs


def _spec(specs: Any, space: spaces.Space[Any], name: str) -> Any:
    if isinstance(space, spaces.Discrete):
        return specs.DiscreteArray(int(space.n), np.int32, name)
    if isinstance(space, spaces.MultiDiscrete):
        return specs.BoundedArray(space.shape, np.int32, 0, space.nvec - 1, name)
    if isinstance(space, spaces.MultiBinary):
        return specs.BoundedArray(space.shape, space.dtype, 0, 1, name)
    assert isinstance(space, spaces.Box)
    return specs.BoundedArray(space.shape, space.dtype, space.low, space.high, name)
