"""Gymnasium's stateful vector wrappers for batches whose arrays are torch tensors, on any device.

They go around ``gpuzoo.VectorEnv(..., output="torch")``, in all three autoreset modes. Nothing waits for the device but
what says so. Wrappers that only apply a function to rewards or actions are Gymnasium's own: ``TransformReward`` and
``TransformAction`` take tensors as they are. One file, as in Gymnasium, where people import them from one module.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorWrapper
from gymnasium.vector.utils import batch_space
from gymnasium.wrappers.utils import create_zero_array

from gpuzoo.interfaces.vector import VectorEnv

try:
    import torch

    from gpuzoo.wrappers.running_mean import RunningMeanStd
except ImportError as error:
    raise ImportError("gpuzoo.wrappers.vector needs PyTorch: pip install 'gpuzoo[torch]'.") from error

__all__ = [
    "FrameStackObservation",
    "NormalizeObservation",
    "NormalizeReward",
    "RecordEpisodeStatistics",
    "TransformObservation",
]

Step = tuple[Any, torch.Tensor, torch.Tensor, torch.Tensor, dict[str, Any]]


class TorchWrapper(VectorWrapper):
    """Base of the wrappers: knows which rows have acted, and which have begun an episode.

    Args:
        env: ``gpuzoo.VectorEnv`` with ``output="torch"``, or a wrapper around it.

    Raises:
        TypeError: another env.
    """

    def __init__(self, env: gymnasium.vector.VectorEnv[Any, Any, Any]) -> None:
        super().__init__(env)
        base = env.unwrapped
        if not isinstance(base, VectorEnv) or base._output != "torch":
            raise TypeError(
                f"{type(self).__name__} wraps gpuzoo.VectorEnv(..., output='torch'), not {env}; "
                "the wrappers for NumPy arrays are in gymnasium.wrappers.vector."
            )
        self._base = base
        self._acting = base._rows_of("alive").clone()
        self._acted = torch.zeros_like(self._acting)
        self._begun = torch.zeros_like(self._acting)
        self.device: torch.device = self._acting.device

    @property
    def autoreset_mode(self) -> AutoresetMode:
        """The env's autoreset mode."""
        return self._base.autoreset_mode

    @property
    def prev_done(self) -> torch.Tensor:
        """See `VectorEnv.prev_done`."""
        done: torch.Tensor = self._base.prev_done
        return done

    @property
    def action_mask(self) -> torch.Tensor:
        """See `VectorEnv.action_mask`."""
        mask: torch.Tensor = self._base.action_mask
        return mask

    @functools.cached_property
    def observation_space(self) -> spaces.Space[Any]:  # type: ignore[override]
        """Space of a batch of observations, built when first asked for."""
        if self._single_observation_space is None:
            return self.env.observation_space
        return batch_space(self.single_observation_space, self.num_envs)

    def _plain_space(self) -> spaces.Space[Any]:
        space = self.env.single_observation_space
        return space["observation"] if isinstance(space, spaces.Dict) else space

    def _set_plain_space(self, space: spaces.Space[Any]) -> None:
        whole = self.env.single_observation_space
        if isinstance(whole, spaces.Dict):
            space = spaces.Dict({**whole.spaces, "observation": space})
        self.single_observation_space = space

    def _env_reset(self, seed: Any, options: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
        """Resets; `_begun` then are the rows of the envs that were reset."""
        observations, infos = self.env.reset(seed=seed, options=options)
        self._acting.copy_(self._base._rows_of("alive"))
        mask = (options or {}).get("reset_mask")
        if mask is None:
            self._begun.fill_(True)
        else:
            envs = torch.as_tensor(mask, device=self.device).reshape(self._base.num_worlds, -1).any(1, keepdim=True)
            self._begun.copy_(envs.expand(-1, self.num_envs // self._base.num_worlds).reshape(-1))
        return observations, infos

    def _env_step(self, actions: Any) -> Step:
        """Steps; `_acted` then are the rows with a transition, `_acting` those that act next, `_begun` those reset."""
        self._acted.copy_(self._acting)
        values: Step = self.env.step(actions)
        self._acting.copy_(self._base._rows_of("alive"))
        torch.eq(self._base._rows_of("elapsed_steps"), 0, out=self._begun)
        return values


class RecordEpisodeStatistics(TorchWrapper):
    """Adds return ``r`` and length ``l`` of the episodes that ended in a step as ``infos["episode"]``.

    They are dense, with the mask ``_episode``, and there at every step. ``VectorEnv(statistics=True)`` has the same at
    no cost; this one counts rewards as the wrappers below it make them, and remembers the last episodes. An agent's
    episode ends when it is terminated or truncated, and rows of agents that have left count nothing. Gymnasium's ``t``
    is left out: the host's clock does not know when a device works.

    Args:
        env: ``gpuzoo.VectorEnv`` with ``output="torch"``, or a wrapper around it.
        buffer_length: number of episodes that `return_queue` and `length_queue` remember.
        stats_key: key of infos.

    Raises:
        ValueError: the env has ``statistics=True`` under the same key.
    """

    def __init__(
        self, env: gymnasium.vector.VectorEnv[Any, Any, Any], buffer_length: int = 100, stats_key: str = "episode"
    ) -> None:
        super().__init__(env)
        if self._base._statistics and stats_key == "episode":
            raise ValueError("the env adds infos['episode'] itself: leave out statistics=True, or choose a stats_key.")
        self._key, self._size = stats_key, buffer_length
        self.episode_returns = torch.zeros(self.num_envs, dtype=torch.float64, device=self.device)
        self.episode_lengths = torch.zeros(self.num_envs, dtype=torch.int64, device=self.device)
        self._count = torch.zeros((), dtype=torch.int64, device=self.device)
        # The entry at the end takes what is not to be remembered, so that no size depends on values.
        self._last_returns = torch.zeros(buffer_length + 1, dtype=torch.float64, device=self.device)
        self._last_lengths = torch.zeros(buffer_length + 1, dtype=torch.int64, device=self.device)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins new episodes, see `VectorEnv.reset`."""
        values = self._env_reset(seed, options)
        self._clear(self._begun)
        return values

    def step(self, actions: Any) -> Step:
        """One step, see `VectorEnv.step`."""
        observations, rewards, terminations, truncations, infos = self._env_step(actions)
        done = (terminations | truncations) & self._acted
        self.episode_returns += torch.where(self._acted, rewards, 0)
        self.episode_lengths += self._acted
        infos[self._key] = {
            "r": torch.where(done, self.episode_returns, 0),
            "l": torch.where(done, self.episode_lengths, 0),
        }
        infos[f"_{self._key}"] = done
        self._remember(done)
        self._clear(done)
        return observations, rewards, terminations, truncations, infos

    def _clear(self, rows: torch.Tensor) -> None:
        self.episode_returns.masked_fill_(rows, 0)
        self.episode_lengths.masked_fill_(rows, 0)

    def _remember(self, done: torch.Tensor) -> None:
        rank = done.cumsum(0)
        latest = done & (rank > rank[-1] - self._size)
        place = torch.where(latest, (self._count + rank - 1) % self._size, self._size)
        self._last_returns.index_copy_(0, place, self.episode_returns)
        self._last_lengths.index_copy_(0, place, self.episode_lengths)
        self._count += rank[-1]

    def _queue(self, values: torch.Tensor) -> deque[Any]:
        count = self.episode_count
        places = torch.arange(max(count - self._size, 0), count, device=self.device) % self._size
        return deque(values[places].tolist(), maxlen=self._size)

    @property
    def episode_count(self) -> int:
        """Number of finished episodes. Waits for the device."""
        return int(self._count)

    @property
    def return_queue(self) -> deque[float]:
        """Returns of the last episodes, the latest at the end. Waits for the device."""
        return self._queue(self._last_returns)

    @property
    def length_queue(self) -> deque[int]:
        """Lengths of the last episodes, the latest at the end. Waits for the device."""
        return self._queue(self._last_lengths)


class NormalizeObservation(TorchWrapper):
    """Observations with mean 0 and variance 1 in each component, float32; action masks stay as they are.

    The statistics take in each observation once, final ones included; they leave out agents that are not in the game
    and envs that stand still. So they are the same in all three autoreset modes.

    Args:
        env: ``gpuzoo.VectorEnv`` with ``output="torch"``, or a wrapper around it.
        epsilon: is added to the variance.

    Attributes:
        obs_rms: the statistics.
        update_running_mean: False freezes them, for evaluation.

    Raises:
        ValueError: epsilon is not positive.
    """

    def __init__(self, env: gymnasium.vector.VectorEnv[Any, Any, Any], epsilon: float = 1e-8) -> None:
        super().__init__(env)
        self.epsilon = _positive(epsilon)
        shape = self._plain_space().shape or ()
        self._set_plain_space(spaces.Box(-np.inf, np.inf, shape, np.float32))
        self.obs_rms = RunningMeanStd(shape, self.device)
        self.update_running_mean = True

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins new episodes, see `VectorEnv.reset`. What was seen before a partial reset is not counted again."""
        observations, infos = self._env_reset(seed, options)
        if self.update_running_mean:
            self.obs_rms.update(_plain(observations), self._begun & self._acting)
        return _changed(observations, self._normalized), infos

    def step(self, actions: Any) -> Step:
        """One step, see `VectorEnv.step`."""
        observations, rewards, terminations, truncations, infos = self._env_step(actions)
        final = infos.get("final_obs")
        if self.update_running_mean:
            self.obs_rms.update(_plain(observations), self._acting if final is not None else self._acting | self._acted)
            if final is not None:
                self.obs_rms.update(_plain(final), infos["_final_obs"])
        if final is not None:
            infos["final_obs"] = _changed(final, self._normalized)
        return _changed(observations, self._normalized), rewards, terminations, truncations, infos

    def _normalized(self, observations: torch.Tensor) -> torch.Tensor:
        return ((observations - self.obs_rms.mean) / torch.sqrt(self.obs_rms.var + self.epsilon)).to(torch.float32)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The statistics, for `load_state_dict`."""
        return self.obs_rms.state_dict()

    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        """Takes over statistics; see `RunningMeanStd.load_state_dict`."""
        self.obs_rms.load_state_dict(state)


class NormalizeReward(TorchWrapper):
    """Rewards divided by the standard deviation of the discounted return, float32.

    The return of each row is summed up as in Gymnasium's wrapper in same-step mode: it begins at 0 with each episode,
    and at a termination it is the last reward alone. Rows whose agents are not in the game do not count.

    Args:
        env: ``gpuzoo.VectorEnv`` with ``output="torch"``, or a wrapper around it.
        gamma: discount of the return.
        epsilon: is added to the variance.

    Attributes:
        return_rms: the statistics.
        update_running_mean: False freezes them, for evaluation.

    Raises:
        ValueError: gamma is not in [0, 1], or epsilon is not positive.
    """

    def __init__(
        self, env: gymnasium.vector.VectorEnv[Any, Any, Any], gamma: float = 0.99, epsilon: float = 1e-8
    ) -> None:
        super().__init__(env)
        if not 0 <= gamma <= 1:
            raise ValueError(f"gamma must be in [0, 1], not {gamma}.")
        self.gamma, self.epsilon = gamma, _positive(epsilon)
        self.return_rms = RunningMeanStd((), self.device)
        self.update_running_mean = True
        self.accumulated_reward = torch.zeros(self.num_envs, dtype=torch.float64, device=self.device)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins new episodes, see `VectorEnv.reset`."""
        values = self._env_reset(seed, options)
        self.accumulated_reward.masked_fill_(self._begun, 0)
        return values

    def step(self, actions: Any) -> Step:
        """One step, see `VectorEnv.step`."""
        observations, rewards, terminations, truncations, infos = self._env_step(actions)
        returns = torch.where(terminations, 0, self.accumulated_reward * self.gamma) + rewards
        if self.update_running_mean:
            self.return_rms.update(returns, self._acted)
        over = terminations | truncations | ~self._acted
        self.accumulated_reward.copy_(torch.where(over, 0, returns))
        scaled = (rewards / torch.sqrt(self.return_rms.var + self.epsilon)).to(torch.float32)
        return observations, scaled, terminations, truncations, infos

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The statistics, for `load_state_dict`. The returns of unfinished episodes are not part of them."""
        return self.return_rms.state_dict()

    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        """Takes over statistics; see `RunningMeanStd.load_state_dict`."""
        self.return_rms.load_state_dict(state)


class FrameStackObservation(TorchWrapper):
    """The last observations of each row, (num_envs, stack_size, ...), the latest at the end.

    The stack begins anew with each episode, and final observations are stacked upon those of their own episode. Action
    masks are the present ones. The stack of an agent that has left, or of an env that stands still, stays as it is.

    Args:
        env: ``gpuzoo.VectorEnv`` with ``output="torch"``, or a wrapper around it.
        stack_size: number of observations.
        padding_type: what stands in front of the first observation of an episode: ``"reset"`` (copies of it) or
            ``"zero"``.

    Raises:
        ValueError: stack_size is not positive, or another padding.
    """

    def __init__(
        self, env: gymnasium.vector.VectorEnv[Any, Any, Any], stack_size: int, *, padding_type: str = "reset"
    ) -> None:
        super().__init__(env)
        if stack_size < 1:
            raise ValueError(f"stack_size must be at least 1, not {stack_size}.")
        if padding_type not in ("reset", "zero"):
            raise ValueError(f"padding_type must be 'reset' or 'zero', not {padding_type!r}.")
        space = self._plain_space()
        self.stack_size, self.padding_type = stack_size, padding_type
        self._set_plain_space(batch_space(space, stack_size))
        zero = torch.as_tensor(np.asarray(create_zero_array(space)), device=self.device)
        self._padding = None if padding_type == "reset" else zero
        self._stack: Any = None

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins new episodes, see `VectorEnv.reset`."""
        observations, infos = self._env_reset(seed, options)
        if self._stack is None:
            self._stack = self._first(_plain(observations))
        none = torch.zeros_like(self._begun)
        return _changed(observations, lambda plain: self._pushed(plain, none)), infos

    def step(self, actions: Any) -> Step:
        """One step, see `VectorEnv.step`."""
        observations, rewards, terminations, truncations, infos = self._env_step(actions)
        if "final_obs" in infos:
            infos["final_obs"] = _changed(infos["final_obs"], self._shifted)
        stacked = _changed(observations, lambda plain: self._pushed(plain, self._acted))
        return stacked, rewards, terminations, truncations, infos

    def _shifted(self, plain: torch.Tensor) -> torch.Tensor:
        if self._stack is None:
            raise RuntimeError("call reset() of the wrapper before step().")
        return torch.cat([self._stack[:, 1:], plain[:, None]], 1)

    def _first(self, plain: torch.Tensor) -> torch.Tensor:
        stack = plain[:, None].repeat(1, self.stack_size, *(1 for _ in plain.shape[1:]))
        if self._padding is not None:
            stack[:, :-1] = self._padding
        return stack

    def _pushed(self, plain: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """The stack after new observations of some rows, and of those that begin an episode."""
        shifted, shape = self._shifted(plain), (-1, *(1 for _ in range(plain.ndim)))
        stack = torch.where(rows.reshape(shape), shifted, self._stack)
        stack = torch.where(self._begun.reshape(shape), self._first(plain), stack)
        self._stack.copy_(stack)
        return stack


class TransformObservation(TorchWrapper):
    """Applies a function to the observations of all rows at once, final ones included; action masks stay as they are.

    Args:
        env: ``gpuzoo.VectorEnv`` with ``output="torch"``, or a wrapper around it.
        func: of a tensor (num_envs, ...), which it must not change in place.
        single_observation_space: one row's observation after it, by default as before.
    """

    def __init__(
        self,
        env: gymnasium.vector.VectorEnv[Any, Any, Any],
        func: Callable[[torch.Tensor], torch.Tensor],
        single_observation_space: spaces.Space[Any] | None = None,
    ) -> None:
        super().__init__(env)
        self.func = func
        if single_observation_space is not None:
            self._set_plain_space(single_observation_space)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins new episodes, see `VectorEnv.reset`."""
        observations, infos = self._env_reset(seed, options)
        return _changed(observations, self.func), infos

    def step(self, actions: Any) -> Step:
        """One step, see `VectorEnv.step`."""
        observations, rewards, terminations, truncations, infos = self._env_step(actions)
        if "final_obs" in infos:
            infos["final_obs"] = _changed(infos["final_obs"], self.func)
        return _changed(observations, self.func), rewards, terminations, truncations, infos


def _plain(observations: Any) -> torch.Tensor:
    plain: torch.Tensor = observations["observation"] if isinstance(observations, dict) else observations
    return plain


def _changed(observations: Any, function: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(observations, dict):
        return {**observations, "observation": function(observations["observation"])}
    return function(observations)


def _positive(epsilon: float) -> float:
    if epsilon <= 0:
        raise ValueError(f"epsilon must be positive, not {epsilon}.")
    return epsilon
