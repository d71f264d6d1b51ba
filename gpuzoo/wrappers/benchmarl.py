"""BenchMARL: any game of several agents as a task."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from gpuzoo import registry
from gpuzoo.core.configuration import split_config
from gpuzoo.core.layout import Layout, choices, layout
from gpuzoo.core.values import config_types

try:
    import torch
    from benchmarl.environments import TaskClass
    from torchrl.data import Categorical, Composite
    from torchrl.envs import DTypeCastTransform, FlattenObservation, Transform

    from gpuzoo.wrappers.torchrl import GpuZooEnv
except ImportError as error:
    raise ImportError("gpuzoo.wrappers.benchmarl needs BenchMARL: pip install benchmarl 'gpuzoo[torchrl]'.") from error


class _OneChoice(Transform):
    """Several discrete actions at once as one choice among their combinations."""

    def __init__(self, key: tuple[str, str], sizes: list[int]) -> None:
        super().__init__(in_keys_inv=[key], out_keys_inv=[key])
        self._key, self._sizes = key, sizes

    def _inv_apply_transform(self, action: torch.Tensor) -> torch.Tensor:
        return torch.stack(torch.unravel_index(action, self._sizes), -1)

    def transform_input_spec(self, input_spec: Any) -> Any:
        whole = input_spec["full_action_spec"]
        spec = whole[self._key]
        whole[self._key] = Categorical(math.prod(self._sizes), spec.shape[:-1], device=spec.device, dtype=spec.dtype)
        return input_spec


class GpuZooTask(TaskClass):
    """A game of several agents as a BenchMARL task: ``Experiment(task=GpuZooTask("SimpleSpread-v0"), ...)``.

    All envs of a batch are one `GpuZooEnv` on BenchMARL's sampling device; each group of agents has its own policy.
    Observations are float32, as BenchMARL's models need them, and flat, but for those with three axes, which
    ``CnnConfig`` takes. MultiDiscrete actions become one choice among all combinations.

    Args:
        name: id of the game.
        config: arguments of `GpuZooEnv` (``max_episode_steps``, ``threads``, ...) and the game's parameters.

    Raises:
        ValueError: an unknown game, one of a single agent, or one with masks for MultiDiscrete actions.
    """

    def __init__(self, name: str, config: dict[str, Any] | None = None) -> None:
        definition = registry.get(name)
        if definition.single():
            raise ValueError(f"{definition.id} has one agent: use gpuzoo.wrappers.torchrl.GpuZooEnv without BenchMARL.")
        super().__init__(definition.id, config)
        lay = self._layout()
        if lay.mask_size and any(isinstance(space, spaces.MultiDiscrete) for space in lay.action_spaces.values()):
            raise ValueError(f"{definition.id} has masks for MultiDiscrete actions, which BenchMARL has no policy for.")

    def _layout(self) -> Layout:
        definition = registry.get(self.name)
        known = config_types(definition.Config)
        cfg, _ = split_config(definition, 1, {k: v for k, v in self.config.items() if k in known})
        return layout(definition, cfg)

    def get_env_fun(
        self, num_envs: int, continuous_actions: bool, seed: int | None, device: Any
    ) -> Callable[[], GpuZooEnv]:
        """A function that makes a batch of ``num_envs`` envs. Actions keep the form that the game gives them."""
        name, config = self.name, dict(self.config)

        def make() -> GpuZooEnv:
            env = GpuZooEnv(name, num_envs, device=device, **config)
            env.set_seed(seed)
            return env

        return make

    def get_env_transforms(self, env: Any) -> list[Any]:
        """The transform that gives observations and actions the form that BenchMARL's models expect."""
        out: list[Any] = []
        if (state := env.simulator.layout.state_space) is not None:
            if state.dtype != np.float32:
                dtype = env.full_observation_spec_unbatched["state"].dtype
                out.append(DTypeCastTransform(dtype, torch.float32, in_keys=["state"]))
            seen = env.simulator.layout.observation_spaces.values()
            picture = len(state.shape) == 3 and any(len(space.shape or ()) == 3 for space in seen)  # one model for both
            if len(state.shape) != 1 and not picture:
                out.append(FlattenObservation(-len(state.shape), -1, in_keys=["state"]))
        for group, action_space in zip(env.group_map, env.simulator.layout.action_spaces.values(), strict=True):
            key, spec = (group, "observation"), env.full_observation_spec_unbatched[group, "observation"]
            if spec.dtype != torch.float32:
                out.append(DTypeCastTransform(spec.dtype, torch.float32, in_keys=[key]))
            axes = spec.ndim - 1
            if axes == 2 or axes > 3:
                out.append(FlattenObservation(-axes, -1, in_keys=[key]))
            if isinstance(action_space, spaces.MultiDiscrete):
                out.append(_OneChoice((group, "action"), choices(action_space)))
        return out

    def supports_continuous_actions(self) -> bool:
        """Whether the game, with these parameters, has Box actions."""
        return self._layout().action_dtype == "float32"

    def supports_discrete_actions(self) -> bool:
        """Whether the game, with these parameters, has discrete actions."""
        return not self.supports_continuous_actions()

    def max_steps(self, env: Any) -> int:
        """Length of an evaluation: the time limit.

        Raises:
            ValueError: there is none.
        """
        limit = env.simulator.max_episode_steps
        if limit is None:
            raise ValueError(
                f"{self.name} has no time limit, which BenchMARL needs: set max_episode_steps in the config."
            )
        return int(limit)

    def has_render(self, env: Any) -> bool:
        """Every game draws itself."""
        return True

    def group_map(self, env: Any) -> dict[str, list[str]]:
        """Names of the agents by group."""
        return dict(env.group_map)

    def _specs(self, env: Any, name: str) -> Any:
        """The observation spec with this entry of each group alone."""
        spec = env.full_observation_spec_unbatched.clone()
        if env.simulator.layout.state_space is not None:
            del spec["state"]
        for group in env.group_map:
            for key in [key for key in spec[group].keys() if key != name]:  # noqa: SIM118
                del spec[group, key]
        return spec

    def observation_spec(self, env: Any) -> Any:
        """Observations by group."""
        return self._specs(env, "observation")

    def action_spec(self, env: Any) -> Any:
        """Actions by group."""
        return env.full_action_spec_unbatched

    def action_mask_spec(self, env: Any) -> Any:
        """Action masks by group, or None."""
        return self._specs(env, "action_mask") if env.simulator.layout.mask_size else None

    def state_spec(self, env: Any) -> Any:
        """The game's own global state, or None: central critics then see the observations of all agents."""
        if env.simulator.layout.state_space is None:
            return None
        return Composite({"state": env.full_observation_spec_unbatched["state"].clone()}, device=env.device)

    def info_spec(self, env: Any) -> None:
        """None."""

    @staticmethod
    def env_name() -> str:
        """``gpuzoo``."""
        return "gpuzoo"
