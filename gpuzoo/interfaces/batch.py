"""The batched multi-agent interface: arrays of shape (num_envs, agents of a group, ...), on the device.

One file, because pictures and the state of an env, which other interfaces use as well, follow from the same arrays.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from gpuzoo import registry, tensors
from gpuzoo.core.arguments import parse_autoreset_mode
from gpuzoo.core.backend import Device
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.layout import flat_size
from gpuzoo.core.simulator import Simulator
from gpuzoo.core.suggestions import unknown
from gpuzoo.interfaces.arrays import ActionSlot
from gpuzoo.interfaces.global_state import global_state, global_state_space
from gpuzoo.interfaces.infos import InfosByRow, names_of
from gpuzoo.interfaces.interface import Interface
from gpuzoo.interfaces.spaces import agent_observation_space
from gpuzoo.interfaces.turns import check_all_observe
from gpuzoo.render import Canvas, Window, picture_size
from gpuzoo.render.window import need_display

Output = Literal["numpy", "torch", "cupy"]
#: what a step returns, with its infos
_RETURNED = ("observation reward terminated truncated alive ended final_return final_length final_observation").split()
Masks = Literal["observation", "info"]


def check_output(output: str, device: str) -> None:
    """Checks that arrays of a kind can be had from a device.

    Raises:
        ValueError: they cannot.
    """
    if output not in ("numpy", "torch", "cupy"):
        raise ValueError(f"output must be 'numpy', 'torch' or 'cupy', not {output!r}.")
    if output == "cupy" and not device.startswith("cuda"):
        raise ValueError(f"output='cupy' needs device='cuda'; on {device!r} use 'numpy' or 'torch'.")


def check_masks(masks: str) -> None:
    """Checks where action masks are to be.

    Raises:
        ValueError: it is neither ``"observation"`` nor ``"info"``.
    """
    if masks not in ("observation", "info"):
        raise ValueError(f"masks must be 'observation' or 'info', not {masks!r}.")


def check_render_mode(mode: str | None, accepted: tuple[str, ...] = ("rgb_array", "human")) -> None:
    """Checks a render mode.

    Raises:
        ValueError: it is not among the accepted ones.
        ImportError: ``"human"`` without pygame.
        RuntimeError: ``"human"`` without a display.
    """
    if mode is not None and mode not in accepted:
        raise ValueError(f"render_mode must be one of {', '.join(map(repr, accepted))} or None, not {mode!r}.")
    if mode == "human":
        need_display()


_canvases = threading.local()


def _canvas(size: tuple[int, int]) -> Canvas:
    """A white canvas: the thread's last one, if it has this size, as fresh memory costs more than most drawings."""
    canvas: Canvas | None = getattr(_canvases, "last", None)
    if canvas is None or (canvas.width_px, canvas.height_px) != size:
        canvas = _canvases.last = Canvas(*size)
    else:
        canvas.clear()
    return canvas


def state_of(simulator: Simulator, index: int) -> dict[str, np.ndarray[Any, Any]]:
    """The state of one env, in host memory, as `EnvDef.render` takes it."""
    return {name: simulator.backend.to_numpy(array)[0] for name, array in simulator.state(index).items()}


def drawn(
    simulator: Simulator, index: int, side: int | None = None, aspect: float | None = None, seat: int | None = None
) -> Canvas:
    """One env on a canvas, which the thread's next picture of this size writes over; the rest as `draw`."""
    env, cfg = simulator.env, simulator.cfg
    canvas = _canvas(picture_size(aspect or env.aspect(cfg), env.side(cfg) if side is None else side))
    canvas.seat = seat
    env.render(simulator.config(index), state_of(simulator, index), canvas)
    return canvas


def draw(
    simulator: Simulator, index: int, side: int | None = None, aspect: float | None = None, seat: int | None = None
) -> np.ndarray[Any, Any]:
    """A picture of one env, (height, width, 3) uint8.

    Args:
        simulator: the batch.
        index: of the env.
        side: pixels of the longer side; the game's own by default, which is 480 in most games.
        aspect: width by height; the game's own by default. In another one the drawing is centred.
        seat: index of the agent whose eyes the picture is for: cards of others are face down. By default all is shown.

    Raises:
        ValueError: ``aspect`` is not between 1/16 and 16.
        NotImplementedError: the game does not draw itself.
    """
    return drawn(simulator, index, side, aspect, seat).array()


def draw_or_show(simulator: Simulator, window: Window | None) -> np.ndarray[Any, Any] | None:
    """The picture of an env that is alone, or None where a window shows it."""
    frame = draw(simulator, 0)
    if window is None:
        return frame
    window.show(frame)
    return None


class BatchEnv(Interface):
    """Many copies of a game at once, with arrays by group of agents.

    Observations, rewards and so on are dictionaries from group to array. By default the arrays are the simulator's own
    memory, without a copy: they are valid until the next `step` or `reset`, and no call waits for the device.

    The kernels use this memory, so Discrete and MultiDiscrete observations are int32 here.

    Args:
        env: id or declaration of the game.
        num_envs: number of envs, however many agents each has. (`VectorEnv` counts agents.)
        device: ``"cpu"``, ``"cuda"``, ``"cuda:k"``, ``"auto"``, or a ``torch.device``.
        output: ``"numpy"`` (copied from a GPU), ``"torch"`` or ``"cupy"``; by default torch on a GPU, NumPy on a CPU.
        copy: whether to return copies, which later steps do not change.
        autoreset_mode: ``"same_step"`` (default: the learner's usual choice), ``"next_step"`` or ``"disabled"``.
        infos: adds the game's own infos, (num_envs, ...) each, fresh at each step. In same-step mode
            ``infos["final_info"]`` has those of last states.
        **kwargs: further arguments of `Simulator` and the game's parameters.

    Attributes:
        num_envs, num_worlds: number of envs.
        groups: number of agents by group.
        observation_spaces: one agent's observation, by group.
        action_spaces: one agent's action, by group.
        state_space: of an env's global state.
        info_names: names of the game's own infos, where they were asked for.
        simulator: the simulator that runs the envs, with every array by name.
    """

    def __init__(
        self,
        env: str | EnvDef | type[EnvDef],
        num_envs: int = 1,
        *,
        device: Device = "auto",
        output: Output | None = None,
        copy: bool = False,
        autoreset_mode: str | AutoresetMode = "same_step",
        infos: bool = False,
        **kwargs: Any,
    ) -> None:
        check_all_observe(kwargs, "a batch")
        tensors.start(output, device)
        self.simulator = sim = Simulator(
            registry.get(env), num_envs, device=device, autoreset_mode=autoreset_mode, **kwargs
        )
        self.num_envs = self.num_worlds = sim.num_envs
        self.output: str = output or ("torch" if sim.device.startswith("cuda") else "numpy")
        check_output(self.output, sim.device)
        self.copy = copy
        self.groups = dict(sim.layout.groups)
        self.observation_spaces = {g: agent_observation_space(sim.layout, g) for g in self.groups}
        self.action_spaces = dict(sim.layout.action_spaces)
        self.state_space = global_state_space(sim.layout)
        self._slots = {g: self._slot(g, n) for g, n in self.groups.items()}
        self._all = ActionSlot(
            sim,
            0,
            sim.layout.agents,
            next(iter(self.action_spaces.values())),
            self._action_shape(sim.layout.agents, sim.layout.action_size),
            "actions of all agents",
        )
        self._views: dict[tuple[str, str], Any] = {}
        self._host: dict[str, Any] = {}  # what was brought from a GPU since the last launch, for NumPy
        masks = ("action_mask", "final_action_mask") if sim.layout.mask_size else ()
        self._brings = (*_RETURNED, *masks) if self.output == "numpy" and sim.xp is not np else ()
        self.info_names = tuple(names_of(sim.env, sim.cfg)) if infos else ()
        self._own_infos = InfosByRow(self.output, 1) if infos else None
        self._attach()

    def _attach(self) -> None:
        """Ties the simulator to this object, as its copy is to a copy."""
        if self._own_infos is not None:
            self.simulator.between_episodes = self._own_infos.keep_last

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._attach()

    _NOT_COPIED: ClassVar = {"_views": dict, "_host": dict}

    def __repr__(self) -> str:
        agents = ", ".join(f"{n} {group}" for group, n in self.groups.items())
        return (
            f"BatchEnv({self.simulator.env.id}, num_envs={self.num_envs}, agents of an env: {agents}, "
            f"device={self.simulator.device!r}, autoreset_mode={self.autoreset_mode.value!r})"
        )

    def __enter__(self) -> BatchEnv:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def autoreset_mode(self) -> AutoresetMode:
        """When a finished env begins its next episode. May be changed between steps."""
        return self.simulator.autoreset_mode

    @autoreset_mode.setter
    def autoreset_mode(self, mode: str | AutoresetMode) -> None:
        self.simulator.autoreset_mode = parse_autoreset_mode(mode)

    def observation_space(self, group: str) -> spaces.Space[Any]:
        """Space of the observation of one agent of a group, the same object at every call.

        Raises:
            ValueError: no such group.
        """
        self._check_groups([group])
        return self.observation_spaces[group]

    def action_space(self, group: str) -> spaces.Space[Any]:
        """Space of the action of one agent of a group, the same object at every call.

        Raises:
            ValueError: no such group.
        """
        self._check_groups([group])
        return self.action_spaces[group]

    def _check_groups(self, groups: Iterable[str]) -> None:
        for group in groups:
            if group not in self.groups:
                raise ValueError(unknown(f"{self.simulator.env.id} has no group", group, self.groups))

    def _action_shape(self, count: int, size: int) -> tuple[int, ...]:
        discrete = all(isinstance(s, spaces.Discrete) for s in self.action_spaces.values())
        return (self.num_envs, count) if discrete else (self.num_envs, count, size)

    def _slot(self, group: str, count: int) -> ActionSlot:
        space = self.action_spaces[group]
        shape = self._action_shape(count, flat_size(space))
        return ActionSlot(
            self.simulator, self.simulator.layout.first[group], count, space, shape, f"actions of group {group!r}"
        )

    def _view(self, name: str, group: str) -> Any:
        """An array of the simulator for one group, in the kind that was asked for."""
        found = self._views.get((name, group))
        if found is None:
            if self._brings:
                return self._out(self._of_group(self._brought(name), name, group))
            found = self._of_group(self.simulator.arrays[name], name, group)
            if self.output == "torch":
                found = tensors.as_tensor(found)
            self._views[name, group] = found
        return self._out(found)

    def _of_group(self, array: Any, name: str, group: str) -> Any:
        lay = self.simulator.layout
        first, count = lay.first[group], lay.groups[group]
        found = array[:, first : first + count]
        if name in ("observation", "final_observation"):
            space = lay.observation_spaces[group]
            return found[..., : flat_size(space)].reshape(self.num_envs, count, *(space.shape or ()))
        if name in ("action_mask", "final_action_mask"):
            return found[..., : self.observation_spaces[group]["action_mask"].shape[0]]  # type: ignore[index]
        return found

    def _brought(self, name: str) -> Any:
        """An array of the simulator on a GPU, in host memory. All that a step returns come with the first one."""
        if name not in self._brings:
            return self.simulator.backend.to_numpy(self.simulator.arrays[name])
        if not self._host:
            arrays = [self.simulator.arrays[name] for name in self._brings]
            self._host = dict(zip(self._brings, self.simulator.backend.staged(arrays), strict=True))
        return self._host[name]

    def _out(self, array: Any) -> Any:
        if self.output == "torch":
            return array.clone() if self.copy else array
        if self.output == "numpy" and self.simulator.xp is not np:
            host = self.simulator.backend.to_numpy(array) if hasattr(array, "get") else array
            return host.copy() if self.copy and host is array else host
        if not self.copy:
            return array
        return self.simulator.backend.copied(array)

    def _each(self, name: str) -> dict[str, Any]:
        return {group: self._view(name, group) for group in self.groups}

    def _observations(self, prefix: str = "") -> dict[str, Any]:
        if not self.simulator.layout.mask_size:
            return self._each(f"{prefix}observation")
        kinds = ("observation", "action_mask")
        return {g: {kind: self._view(f"{prefix}{kind}", g) for kind in kinds} for g in self.groups}

    def _env_array(self, name: str) -> Any:
        found = self._views.get((name, ""))
        if found is None:
            if self._brings:
                return self._out(self._brought(name))
            found = self.simulator.arrays[name]
            if self.output == "torch":
                found = tensors.as_tensor(found)
            self._views[name, ""] = found
        return self._out(found)

    def _infos(self) -> dict[str, Any]:
        infos: dict[str, Any] = {"alive": self._each("alive"), "ended": self._env_array("ended")}
        infos["episode"] = {"r": self._each("final_return"), "l": self._each("final_length")}
        infos["final_obs"] = self._observations("final_")
        if self._own_infos is not None:
            state, step = self._own_infos.now(self.simulator)
            own = state | step
            infos |= own
            if self.autoreset_mode == AutoresetMode.SAME_STEP:
                infos["final_info"] = self._own_infos.last(own)
        return infos

    def reset(
        self, seed: int | Any | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begins new episodes.

        Args:
            seed: env ``i`` is seeded ``seed + i``; see `Simulator.reset`.
            options: ``reset_mask``: bool array (num_envs,) of the envs to reset; ``params``: a dictionary for
                `Simulator.set_params`, applied to the same envs.

        Returns:
            Observations by group, and infos (see `step`).

        Raises:
            ValueError: an unknown option; and as `Simulator.reset` and `Simulator.set_params`.
        """
        apply_options(self.simulator, seed, options)
        self._host = {}
        return self._observations(), self._infos()

    def step(
        self, actions: Mapping[str, Any] | Any
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]:
        """One step of all envs.

        Args:
            actions: an array (num_envs, agents, ...) for all agents, or a dictionary with an array
                (num_envs, agents of the group, ...) for each group. Discrete actions have no last axis. NumPy, CuPy and
                torch are accepted. A group that is left out repeats its last actions.

        Returns:
            Observations, rewards (float32), terminations (bool), truncations (bool), each by group with shape
            (num_envs, agents, ...), and infos: ``alive`` by group (whether an agent acts next), ``ended`` (num_envs,)
            (whether the episode ended in this step), ``final_obs`` by group (valid where an agent was terminated or
            truncated, in same-step mode), and ``episode`` with the return ``r`` and length ``l`` of each agent's last
            finished episode. With ``infos=True`` also the game's own, by name, (num_envs, ...), where those of the last
            step mean nothing if it was a reset; and ``final_info`` with those of last states, by name (valid like
            ``final_obs``).

        Raises:
            ValueError, TypeError: actions have the wrong shape or kind, or a group is unknown.
        """
        if isinstance(actions, Mapping):
            self._check_groups(actions)
            for group, value in actions.items():
                self._slots[group].write(value)
        else:
            self._all.write(actions)
        if self._own_infos is not None:
            self._own_infos.forget_last()
        self.simulator.step()
        if self._brings:
            self._host = {}
        return (
            self._observations(),
            self._each("reward"),
            self._each("terminated"),
            self._each("truncated"),
            self._infos(),
        )

    def random_actions(self) -> dict[str, Any]:
        """Random legal actions by group, drawn on the device."""
        self.simulator.random_actions()
        self._host = {}
        out = {}
        for group in self.groups:
            action = self._view("action", group)
            space = self.action_spaces[group]
            out[group] = action[..., 0] if not space.shape else action[..., : flat_size(space)]
        return out

    def state(self) -> Any:
        """The global state of each env, of shape ``(num_envs, *state_space.shape)``, as a central critic sees it.

        If the game declares a global state, this call computes it, and it is valid until the next call. Otherwise it is
        the observations of all agents, concatenated, float32.
        """
        found = global_state(self.simulator)
        if self.output == "torch":
            found = tensors.as_tensor(found)
        is_own = self.simulator.layout.state_space is None and not self._brings  # new, and the caller's
        return found if is_own else self._out(found)

    def render(
        self, index: int = 0, side: int | None = None, aspect: float | None = None, seat: str | None = None
    ) -> np.ndarray[Any, Any]:
        """A picture of one env, (height, width, 3) uint8.

        Args:
            index: of the env.
            side: pixels of the longer side.
            aspect: width divided by height, by default the game's own.
            seat: the agent whose eyes the picture is for, such as ``"player_0"``. Cards that this agent does not see
                are face down. By default everything is shown.

        Raises:
            ValueError: there is no such agent.
        """
        agents = self.simulator.layout.agent_names()
        if seat is not None and seat not in agents:
            raise ValueError(unknown(f"{self.simulator.env.id} has no agent", str(seat), agents))
        return draw(self.simulator, index, side, aspect, None if seat is None else agents.index(seat))

    def close(self) -> None:
        """Frees the arrays. May be called again."""
        self._views.clear()
        self.simulator.close()


def check_options(simulator: Simulator, options: Mapping[str, Any] | None, known: Collection[str]) -> None:
    """Checks the names of the options of a reset.

    Raises:
        TypeError: no dictionary.
        ValueError: one that nobody would look at.
    """
    if not (options is None or isinstance(options, Mapping)):
        raise TypeError(f"options must be a dictionary or None, not {options!r}.")
    for name in options or {}:
        if name not in known:
            raise ValueError(unknown(f"{simulator.env.id} has no option of reset", str(name), known))


def apply_options(
    simulator: Simulator,
    seed: Any,
    options: Mapping[str, Any] | None,
    known: Collection[str] = ("params", "reset_mask"),
) -> None:
    """Resets all envs or those of ``options["reset_mask"]`` with ``options["params"]``.

    Raises:
        TypeError, ValueError: as `check_options`, `Simulator.reset` and `Simulator.set_params`.
    """
    check_options(simulator, options, known)
    options = options or {}
    mask = options.get("reset_mask")
    simulator.reset(seed, mask, options.get("params"))
