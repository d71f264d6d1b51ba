"""Gymnasium: one env of a single-agent game as a ``gymnasium.Env``."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode

from gpuzoo import registry
from gpuzoo.core.arguments import host_seed
from gpuzoo.core.backend import Device
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.simulator import Simulator
from gpuzoo.interfaces.arrays import ActionSlot
from gpuzoo.interfaces.batch import Masks, apply_options, check_masks, check_render_mode, draw_or_show
from gpuzoo.interfaces.infos import infos_of_one
from gpuzoo.interfaces.interface import OneEnv
from gpuzoo.interfaces.spaces import common_spaces, converted_dtype, plain_space
from gpuzoo.render import Window

_MOST = 256
#: arguments of envs that were built in this process, and so can be built again; the oldest are forgotten
_BUILT: dict[Hashable, None] = {}


class SingleEnv(OneEnv, gymnasium.Env[Any, Any]):
    """One env of a single-agent game as a ``gymnasium.Env``.

    The game's parameters are attributes of it. ``env.unwrapped.gravity = 5.0`` and, from outside of wrappers,
    ``env.set_wrapper_attr("gravity", 5.0)`` hold from the next step on.

    Arrays of the first env with some arguments are made at once, so that faults are told. Further ones with the same
    arguments get theirs at first use. Spaces, and `np_random`, which the game does not use, are made when asked for.

    Args:
        env: id or declaration of a single-agent game.
        render_mode: ``"rgb_array"``, ``"human"`` or None.
        max_episode_steps: time limit, None for none; ``gymnasium.make`` sets none here and applies its own wrapper.
        device: where it runs; one env is fastest on the CPU.
        masks: where a game's action masks are: ``"observation"``, which is then a dictionary, or ``"info"``.
        infos: adds what the game itself has for infos, such as the parts of a robot's reward.
        **kwargs: the game's parameters.

    Raises:
        ValueError: the game has several agents.
    """

    # gymnasium.make looks at the class, before there is an env, for the modes that its wrappers can make of these.
    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "human"], "render_fps": 30}  # noqa: RUF012
    _LATER: ClassVar = frozenset(("simulator", "_shape", "_masks_in", "_dtype", "_slot"))
    _SPACES: ClassVar = frozenset(("observation_space", "action_space"))
    _closed = False
    _generator: np.random.Generator | None = None
    _tells: bool
    _unbuilt: tuple[Callable[[], Simulator], Masks] | None
    _window: Window
    _shape: tuple[int, ...]
    _masks_in: Masks | None
    _dtype: Any
    _slot: ActionSlot

    def __init__(
        self,
        env: str | EnvDef | type[EnvDef],
        *,
        render_mode: str | None = None,
        max_episode_steps: int | Literal["default"] | None = "default",
        device: Device = "cpu",
        masks: Masks = "observation",
        infos: bool = False,
        **kwargs: Any,
    ) -> None:
        definition = registry.get(env)
        if not definition.single():
            raise ValueError(
                f"{definition.id} has several agents: take gpuzoo.parallel_env, gpuzoo.aec_env or pettingzoo.make for "
                "one env by PettingZoo's interface, gymnasium.make_vec for many, in which a row is an agent, or "
                "gpuzoo.make for arrays by group."
            )
        check_render_mode(render_mode)
        check_masks(masks)
        kwargs.setdefault("threads", 1)
        arguments = {"device": device, "max_episode_steps": max_episode_steps, **kwargs}
        vars(self).update(  # an assignment takes time to find out that this is no parameter
            render_mode=render_mode,
            _tells=infos,
            metadata={**self.metadata, "render_fps": definition.render_fps},
            _window=Window(definition.id, definition.render_fps),
            _unbuilt=(
                functools.partial(Simulator, definition, 1, autoreset_mode=AutoresetMode.DISABLED, **arguments),
                masks,
            ),
        )
        key: Hashable = None
        with contextlib.suppress(TypeError):  # an array, say
            key = type(definition), frozenset((name, type(v), v) for name, v in arguments.items())  # True is not 1 here
        if key not in _BUILT or vars(definition):
            self._build()
            if key is not None:
                while len(_BUILT) >= _MOST:
                    _BUILT.pop(next(iter(_BUILT)), None)
                _BUILT[key] = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in self._LATER and vars(self).get("_unbuilt"):
                self._build()
                return getattr(self, name)
            if name in self._SPACES:
                self._make_spaces()
                return vars(self)[name]
            return super().__getattr__(name)

        @property
        def _np_random(self) -> np.random.Generator | None:
            if self._generator is None and self._np_random_seed is not None:
                self._generator = seeding.np_random(self._np_random_seed)[0]
            return self._generator

        @_np_random.setter
        def _np_random(self, generator: np.random.Generator | None) -> None:
            self._generator = generator

    def _is_parameter(self, name: str) -> bool:
        unbuilt = vars(self).get("_unbuilt")
        fields = unbuilt[0].args[0].Config.__dataclass_fields__ if unbuilt else ()
        return name in fields or super()._is_parameter(name)

    def _build(self) -> None:
        """Everything that `_LATER` names."""
        assert self._unbuilt is not None
        make, masks = self._unbuilt
        sim = make()
        lay = sim.program.layout
        space, action_space = lay.observation_spaces["agent"], lay.action_spaces["agent"]
        vars(self).update(
            simulator=sim,
            _unbuilt=None,
            _shape=space.shape or (),
            _masks_in=masks if lay.mask_size else None,
            _dtype=converted_dtype(lay, space),
            _slot=ActionSlot(sim, 0, 1, action_space, action_space.shape or (), "the action"),
        )
        if self._closed:
            sim.close()

    def _make_spaces(self) -> None:
        """Everything that `_SPACES` names."""
        space, action_space = common_spaces(self.simulator.layout, ["agent"])
        space = plain_space(space) if self._masks_in == "info" else space
        vars(self).update(observation_space=space, action_space=action_space)

    def _observation(self) -> tuple[Any, dict[str, Any]]:
        """The observation, and infos."""
        arrays, to_numpy = self.simulator.arrays, self.simulator.backend.to_numpy
        observation = to_numpy(arrays["observation"])[0, 0].reshape(self._shape)
        if self._dtype is not None:
            observation = observation.astype(self._dtype)
        if not self._shape:
            observation = observation[()]  # a scalar, as Discrete spaces have them
        if self._masks_in is None:
            return observation, {}
        mask = to_numpy(arrays["action_mask"])[0, 0]
        if self._masks_in == "info":
            return observation, {"action_mask": mask}
        return {"observation": observation, "action_mask": mask}, {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode; ``options["params"]`` sets run-time parameters.

        Raises:
            TypeError: a seed that is no integer.
            ValueError: another option, a negative seed; and as `Simulator.set_params`.
        """
        seed = host_seed(seed)
        if not (seed is None or isinstance(seed, int)):
            raise TypeError(f"seed must be an int or None, not {seed!r}.")
        apply_options(self.simulator, seed, options, known=("params",))
        if seed is not None:
            vars(self).update(_np_random_seed=seed, _generator=None)
        if self.render_mode == "human":
            self.render()
        observation, infos = self._observation()
        return observation, infos | infos_of_one(self.simulator, stepped=False) if self._tells else infos

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step."""
        self._slot.write(action)
        self.simulator.step()
        arrays, to_numpy = self.simulator.arrays, self.simulator.backend.to_numpy
        reward, terminated, truncated = (to_numpy(arrays[k])[0, 0] for k in ("reward", "terminated", "truncated"))
        if self.render_mode == "human":
            self.render()
        observation, infos = self._observation()
        if self._tells:
            infos |= infos_of_one(self.simulator, stepped=True)
        return observation, float(reward), bool(terminated), bool(truncated), infos

    def render(self) -> Any:
        """A picture (height, width, 3) uint8, or None in human mode, which shows it in a window."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() does nothing: make the env with render_mode='rgb_array' or 'human'.")
            return None
        return draw_or_show(self.simulator, self._window if self.render_mode == "human" else None)

    def close(self) -> None:
        """Frees the arrays and closes the window. May be called again."""
        self._window.close()
        self._closed = True
        if not self._unbuilt:
            self.simulator.close()


def make_single(env: str, **kwargs: Any) -> SingleEnv:
    """Entry point of ``gymnasium.make``, which applies the time limit itself."""
    kwargs.setdefault("max_episode_steps", None)
    return SingleEnv(env, **kwargs)


make_single.metadata = SingleEnv.metadata  # type: ignore[attr-defined]  # gymnasium.make looks here, too
