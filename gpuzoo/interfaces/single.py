"""Gymnasium: one env of a single-agent game as a ``gymnasium.Env``."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces

from gpuzoo import registry
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.simulator import Simulator
from gpuzoo.interfaces.actions import ActionSlot
from gpuzoo.interfaces.batch import apply_options, check_render_mode, draw
from gpuzoo.interfaces.spaces import common_spaces


class SingleEnv(gymnasium.Env[Any, Any]):
    """One env of a single-agent game as a ``gymnasium.Env``.

    Args:
        env: id or declaration of a single-agent game.
        render_mode: ``"rgb_array"``, ``"human"`` or None.
        max_episode_steps: time limit, None for none; ``gymnasium.make`` sets none here and applies its own wrapper.
        device: where it runs; one env is fastest on the CPU.
        **kwargs: the game's parameters.

    Raises:
        ValueError: the game has several agents.
    """

    def __init__(
        self,
        env: str | EnvDef | type[EnvDef],
        *,
        render_mode: str | None = None,
        max_episode_steps: int | Literal["default"] | None = "default",
        device: str = "cpu",
        **kwargs: Any,
    ) -> None:
        definition = registry.get(env)
        if not definition.single():
            raise ValueError(
                f"{definition.id} has several agents: use gpuzoo.parallel_env, gpuzoo.aec_env or gymnasium.make_vec."
            )
        check_render_mode(render_mode)
        kwargs.setdefault("threads", 1)
        self.simulator = sim = Simulator(
            definition, 1, device=device, autoreset_mode="disabled", max_episode_steps=max_episode_steps, **kwargs
        )
        self.render_mode = render_mode
        self.metadata = {"render_modes": ["rgb_array", "human"], "render_fps": definition.render_fps}
        self.observation_space, self.action_space = common_spaces(sim.layout, ["agent"])
        self._slot = ActionSlot(sim, 0, 1, self.action_space, (1, *(self.action_space.shape or ())), "the env")
        self._window: Any = None

    def _observation(self) -> Any:
        arrays, to_numpy = self.simulator.arrays, self.simulator.backend.to_numpy
        space = self.observation_space
        plain = space["observation"] if isinstance(space, spaces.Dict) else space
        observation = to_numpy(arrays["observation"])[0, 0].reshape(plain.shape)
        if isinstance(plain, spaces.Discrete):
            observation = np.int64(observation)
        if isinstance(space, spaces.Dict):
            return {"observation": observation, "action_mask": to_numpy(arrays["action_mask"])[0, 0]}
        return observation

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode; ``options["params"]`` sets run-time parameters."""
        super().reset(seed=seed)
        apply_options(self.simulator, seed, {"params": (options or {}).get("params")})
        if self.render_mode == "human":
            self.render()
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step."""
        self._slot.write(np.asarray(action)[None])
        self.simulator.step()
        arrays, to_numpy = self.simulator.arrays, self.simulator.backend.to_numpy
        reward, terminated, truncated = (to_numpy(arrays[k])[0, 0] for k in ("reward", "terminated", "truncated"))
        if self.render_mode == "human":
            self.render()
        return self._observation(), float(reward), bool(terminated), bool(truncated), {}

    def render(self) -> Any:
        """A picture (height, width, 3) uint8, or None in human mode, which shows it in a window."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() does nothing: make the env with render_mode='rgb_array' or 'human'.")
            return None
        frame = draw(self.simulator, 0)
        if self.render_mode == "rgb_array":
            return frame
        if self._window is None:
            from gpuzoo.render import Window

            self._window = Window(self.simulator.env.id, self.metadata["render_fps"])
        self._window.show(frame)
        return None

    def close(self) -> None:
        """Frees the arrays and closes the window. May be called again."""
        if self._window is not None:
            self._window.close()
            self._window = None
        self.simulator.close()


def make_single(env: str, **kwargs: Any) -> SingleEnv:
    """Entry point of ``gymnasium.make``, which applies the time limit itself."""
    kwargs.setdefault("max_episode_steps", None)
    return SingleEnv(env, **kwargs)
