"""Stable-Baselines3: batches of any game as a ``stable_baselines3.common.vec_env.VecEnv``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from gpuzoo.core.backend import Device
from gpuzoo.core.definition import EnvDef
from gpuzoo.interfaces.opponents import Policy
from gpuzoo.wrappers.rows import Array, make_rows

try:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn
except ImportError as error:
    raise ImportError("gpuzoo.wrappers.sb3 needs Stable-Baselines3: pip install 'gpuzoo[sb3]'.") from error


class SB3VecEnv(VecEnv):
    """A batch of a game as Stable-Baselines3 wants it; a slot is a row of `VectorEnv`: one agent of one env.

    Episodes begin anew in the step that ends them. ``infos`` are filled only where an episode ended, with
    ``terminal_observation``, ``TimeLimit.truncated`` and, as by SB3's ``Monitor``, ``episode``. Arrays are fresh.

    With ``infos=True`` they also hold the game's own infos, in every step. If ``solved`` is among them it is reported
    as ``is_success``, from which SB3 logs ``rollout/success_rate``.

    Agents share one policy. SB3 has no way to leave a slot out, so when an agent leaves before its env ends, its
    slot is done, with the agent's last observation as ``terminal_observation``; from then on it is padding with
    observation 0 and reward 0 until the env's next episode begins, and that step is done again. So no target reaches
    from one episode into another, the value learnt for padding is 0, and ``MaskablePPO`` has no policy gradient there,
    as no action is legal. Padding is not reported as an ``episode``. It does count as time steps; `alive` tells.

    Games with masks have plain observations; ``sb3_contrib.MaskablePPO`` finds the masks by itself.

    Args:
        env: id or declaration of the game.
        num_envs: number of slots; a multiple of the agents.
        num_worlds: number of envs, in place of ``num_envs``.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:k"`` or ``"auto"``. SB3 keeps NumPy arrays: all results are copied from a
            GPU, which only pays for large games.
        group: only the agents of this group (or the one agent of this name) are slots.
        opponents: who plays the others: ``"random"``, or a function, see `VectorEnv`.
        seed: for the first reset; env ``w`` is seeded ``seed + w``. SB3's algorithms set their own if given one.
        monitor: reports ``episode`` and says that it is wrapped in ``Monitor``, as ``make_vec_env`` does. Switch it off
            to use ``VecMonitor``, which counts padding as episodes.
        render_mode: ``"rgb_array"`` or None.
        max_episode_steps: time limit; None or -1 means none.
        **kwargs: further arguments of `VectorEnv` (``infos``, ``threads``, ``debug``) and the game's parameters.

    Attributes:
        envs: the `Rows` below; ``envs.unwrapped.simulator`` is the engine.

    Raises:
        TypeError: ``env`` is a ready environment, or an argument that is chosen here (``autoreset_mode``, ...).
        ValueError: see `VectorEnv`.
    """

    def __init__(
        self,
        env: str | EnvDef | type[EnvDef],
        num_envs: int | None = None,
        *,
        num_worlds: int | None = None,
        device: Device = "auto",
        group: str | None = None,
        opponents: Policy = "random",
        seed: int | None = None,
        monitor: bool = True,
        render_mode: str | None = None,
        max_episode_steps: int | Literal["default"] | None = "default",
        **kwargs: Any,
    ) -> None:
        self.envs = make_rows(
            env,
            num_envs,
            "SB3VecEnv",
            num_worlds=num_worlds,
            device=device,
            group=group,
            opponents=opponents,
            render_mode=render_mode,
            max_episode_steps=max_episode_steps,
            **kwargs,
        )
        vector: Any = self.envs.unwrapped
        self._simulator = vector.simulator
        self._slots_of_env = vector.num_envs // vector.num_worlds
        self._monitor = monitor
        super().__init__(vector.num_envs, self.envs.single_observation_space, self.envs.single_action_space)
        self.metadata["render_fps"] = vector.metadata["render_fps"]
        if seed is not None:
            self.seed(seed)

    # ---- running ----

    def reset(self) -> Array:
        """New episodes in all envs, with the seeds and options that were set before.

        Returns:
            Observations (num_envs, ...). ``reset_infos`` are empty dictionaries.
        """
        seeds = self._seeds[:: self._slots_of_env]
        observations, _ = self.envs.reset(seed=None if None in seeds else seeds, options=self._options[0])
        self.reset_infos = [{} for _ in range(self.num_envs)]
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: Array) -> None:
        """Keeps actions (num_envs, ...) for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """One step of all slots.

        Returns:
            Observations (num_envs, ...), rewards (float32), dones (bool) and a list of ``num_envs`` dictionaries.

        Raises:
            ValueError, TypeError: actions of the wrong shape or kind.
            RuntimeError: not reset, closed, or after a fork.
        """
        observations, rewards, terminations, truncations, found = self.envs.step(self._actions)
        infos = self.envs.listed(terminations, truncations, found, self._monitor)
        return observations, rewards, terminations | truncations, infos

    def close(self) -> None:
        """Frees the simulator. May be called again."""
        self.envs.close()

    # ---- before a reset ----

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seeds the next reset.

        Args:
            seed: env ``w`` gets ``seed + w``; None: a random one.

        Returns:
            The seed of each slot's env.
        """
        seeds = super().seed(seed)
        self._seeds = [seeds[i // self._slots_of_env] for i in range(self.num_envs)]
        return self._seeds

    def set_options(self, options: list[dict[str, Any]] | dict[str, Any] | None = None) -> None:
        """Sets ``options`` of `VectorEnv.reset` for the next reset: ``{"params": {...}}``.

        Raises:
            TypeError: a list of options per env.
        """
        if not (options is None or isinstance(options, dict)):
            raise TypeError(
                "set_options takes one dictionary for all envs; params in it may be arrays with a value per env."
            )
        super().set_options(options)

    # ---- slots ----

    @property
    def alive(self) -> Array:
        """Bool (num_envs,): slots whose agent acts in the next step; the others are padding."""
        return self.envs.alive

    def action_masks(self) -> Array:
        """Legal actions, bool (num_envs, choices), as ``MaskablePPO`` asks for them.

        Raises:
            AttributeError: the game has no masks.
        """
        return self.envs.action_mask

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """For each slot: a run-time parameter of the game, or an attribute of the batch.

        Raises:
            AttributeError: there is none of this name.
        """
        slots = list(self._get_indices(indices))
        if attr_name == "action_masks":  # only games that have masks have the method
            self.action_masks()
            return [lambda i=i: self.action_masks()[i] for i in slots]
        params = self._simulator.params
        if attr_name in params:
            values = np.broadcast_to(params[attr_name], self._simulator.num_envs)
            return [float(values[i // self._slots_of_env]) for i in slots]
        return [getattr(self.envs.unwrapped, attr_name)] * len(slots)

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Sets a run-time parameter of the game, in the envs of some slots.

        Raises:
            TypeError: no such parameter, or one that is compiled in.
            ValueError: out of range; or for some slots only of a parameter that was not made with a value per env.
        """
        envs = None if indices is None else sorted({i // self._slots_of_env for i in self._get_indices(indices)})
        self._simulator.set_params(envs, **{attr_name: value})

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """For each slot, the result of ``"action_masks"`` (bool (choices,)) or ``"render"`` (a picture).

        Raises:
            AttributeError: another name, or a game without masks.
        """
        slots = self._get_indices(indices)
        if method_name == "action_masks":
            masks = self.action_masks()
            return [masks[i] for i in slots]
        if method_name == "render":
            pictures = self.get_images()
            return [pictures[i // self._slots_of_env] for i in slots]
        raise AttributeError(f"SB3VecEnv has the methods 'action_masks' and 'render' per slot, not {method_name!r}.")

    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        """False, but for SB3's ``Monitor``, whose work is done here unless ``monitor=False``."""
        wrapped = self._monitor and issubclass(wrapper_class, Monitor)
        return [wrapped for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[Array | None]:
        """A picture of each env, (height, width, 3) uint8; slots of one env share theirs."""
        pictures: Any = self.envs.render()
        if pictures is None:
            return [None] * self._simulator.num_envs
        return list(pictures[:: self._slots_of_env])
