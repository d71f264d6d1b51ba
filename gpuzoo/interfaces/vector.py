"""Gymnasium: batches of any game as a ``gymnasium.vector.VectorEnv``.

One class; its length is that of three kinds of arrays, copied or not, for all agents or some, with masks here or there.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from gpuzoo import registry, tensors
from gpuzoo.core.arguments import host_seed
from gpuzoo.core.backend import Device
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.host import to_host
from gpuzoo.core.layout import flat_size
from gpuzoo.core.simulator import Simulator
from gpuzoo.interfaces.arrays import ActionSlot, Recycler, Rows, by_row, presented
from gpuzoo.interfaces.attributes import BatchAttributes
from gpuzoo.interfaces.batch import (
    Masks,
    Output,
    apply_options,
    check_masks,
    check_options,
    check_output,
    check_render_mode,
    draw,
)
from gpuzoo.interfaces.infos import InfosByRow, names_of
from gpuzoo.interfaces.opponents import Opponents, Policy
from gpuzoo.interfaces.rows import layout_of, rows_of, worlds_of
from gpuzoo.interfaces.signatures import arguments_of
from gpuzoo.interfaces.spaces import common_spaces, converted_dtype, plain_space
from gpuzoo.interfaces.turns import Turns

#: what a step returns, in arrays that a caller may keep
_RETURNED = ("observation", "reward", "terminated", "truncated")
#: what agents see
_SEEN = frozenset({"observation", "final_observation", "action_mask", "final_action_mask"})


class VectorEnv(BatchAttributes, gymnasium.vector.VectorEnv[Any, Any, Any]):
    """A batch of a game as a ``gymnasium.vector.VectorEnv``.

    **Here `num_envs` counts rows**, as everything that takes a ``VectorEnv`` expects; `num_worlds` counts envs. A row
    is one agent of one env (parameter sharing), ordered env by env: with ``W`` envs of ``A`` agents row ``w * A + a``
    is agent ``a`` of env ``w``. For a single-agent game a row is an env, and the two numbers are the same.

    An agent that leaves its env is reported as terminated once. Until the env begins its next episode, its row has
    reward 0, both flags False and ``infos["alive"]`` False. All agents of an env begin the next episode together.

    Args:
        env: id or declaration of the game.
        num_envs: number of rows, 1 by default; a multiple of the agents.
        num_worlds: number of envs, in place of ``num_envs``.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:k"``, ``"auto"``, or a ``torch.device``.
        autoreset_mode: Gymnasium's three modes, as enum or name. In disabled mode a finished env stays as it is (reward
            0) until ``options={"reset_mask": ...}`` resets it.
        output: kind of the returned arrays: ``"numpy"``, ``"torch"`` or ``"cupy"``, the latter two on the device.
        copy: True returns arrays that later steps do not change. False returns the simulator's memory, valid until the
            next call (except for Discrete and MultiDiscrete observations, which are int32 there and returned as int64).
        group: only the agents of this group (or the one agent of this name) are rows.
        opponents: the policy of the agents that are not rows: ``"random"`` (random legal actions), or a function of the
            batch ``f(observations, action_masks) -> actions`` with arrays (envs, other agents, ...) in ``output`` kind
            (masks are None if the game has none). In a turn-based game they reply within the step, so it is always the
            row's turn, and a step's reward is the sum over these moves.
        observers: of a game in turns, ``"mover"`` makes an env one row, that of the agent to move: its observation and
            mask, and its action. A step's reward is that of the agent who has just moved; ``infos["rewards"]`` has
            those of all agents, (num_envs, agents), and ``infos["player"]`` the index of the agent to move next.
        statistics: adds ``infos["episode"]`` with return ``r`` and length ``l`` where an agent finished. (Gymnasium's
            RecordEpisodeStatistics does the same, and refuses envs that already do it.)
        masks: where to put a game's action masks: into the ``"observation"``, which becomes a dictionary, or into
            ``"info"`` as ``action_mask``, (num_envs, choices) int8.
        infos: adds the game's own infos, such as the parts of a robot's reward, (num_envs, ...) each. In same-step mode
            ``infos["final_info"]`` has those of an episode's last step.
        render_mode: ``"rgb_array"``, ``"rgb_array_list"`` (the pictures since the last `render`) or None.
        max_episode_steps: time limit; None or -1 means none.
        **kwargs: further arguments of `Simulator` (``threads``, ``debug``) and the game's parameters.

    Attributes:
        simulator: the simulator that runs the envs; its ``num_envs`` is `num_worlds`.
        num_envs: number of rows, which is the length of observations, rewards, actions, masks and infos.
        num_worlds: number of envs, which is rows divided by the agents per env that are rows.
        info_names: names of the game's own infos, where they were asked for.

    Raises:
        ValueError: ``num_envs`` is not a multiple of the agents, or given together with ``num_worlds``; or the game,
            the group or an option is unknown.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "rgb_array_list"], "render_fps": 30}  # noqa: RUF012
    _NOT_COPIED: ClassVar = {"_tensors": dict, "_finalizer": type(None)}

    def __init__(
        self,
        env: str | EnvDef | type[EnvDef],
        num_envs: int | None = None,
        *,
        num_worlds: int | None = None,
        device: Device = "auto",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        output: Output = "numpy",
        copy: bool = True,
        group: str | None = None,
        opponents: Policy = "random",
        observers: Literal["all", "mover"] = "all",
        masks: Masks = "observation",
        statistics: bool = False,
        infos: bool = False,
        render_mode: str | None = None,
        max_episode_steps: int | Literal["default"] | None = "default",
        **kwargs: Any,
    ) -> None:
        self._tensors: dict[str, Any] = {}
        self._finalizer: Callable[[], Any] = lambda: None  # Gymnasium before 1.3 also closes envs that never came to be
        definition = registry.get(env)
        check_render_mode(render_mode, ("rgb_array", "rgb_array_list"))
        check_masks(masks)
        tensors.start(output, device)
        shape_of = layout_of(definition, kwargs)
        self._first, self._count, groups = rows_of(definition, shape_of, group)
        of_movers = observers == "mover"
        if of_movers:
            if group is not None:
                raise ValueError("observers='mover' makes rows of all agents in turn: leave out group.")
            self._count = 1
        if num_worlds is not None:
            if num_envs is not None:
                raise ValueError("give either num_envs (rows) or num_worlds (envs), not both.")
            num_envs = num_worlds * self._count
        worlds = worlds_of(definition, 1 if num_envs is None else num_envs, self._count)
        tensors.start(output, device)
        self.simulator = sim = Simulator(
            definition,
            worlds,
            device=device,
            autoreset_mode=autoreset_mode,
            max_episode_steps=max_episode_steps,
            observers=observers,
            **kwargs,
        )
        check_output(output, sim.device)
        self.num_envs, self.num_worlds = worlds * self._count, worlds
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "autoreset_mode": sim.autoreset_mode, "render_fps": definition.render_fps}
        self.autoreset_mode = sim.autoreset_mode
        self._output, self._copy, self._statistics = output, copy, statistics
        space, self.single_action_space = common_spaces(sim.layout, groups)
        plain = plain_space(space)
        self._masks_in = masks if sim.layout.mask_size else None
        self._choices = flat_size(space["action_mask"]) if isinstance(space, spaces.Dict) else 0
        self.single_observation_space = space if self._masks_in == "observation" else plain
        self._dtype = converted_dtype(sim.layout, space)
        self._observation_shape = plain.shape or ()
        self._observation_size = flat_size(plain)
        action_shape = self.single_action_space.shape or ()
        self._slot = ActionSlot(
            sim,
            self._first,
            self._count,
            self.single_action_space,
            (self.num_envs, *action_shape),
            f"actions of {self._described()}",
        )
        self._opponents: Opponents | None = None
        if self._count < sim.layout.observers:
            rows = range(self._first, self._first + self._count)
            self._opponents = Opponents(sim, rows, opponents, output)
        self._turns = Turns(sim) if of_movers else None
        self._whole = self._count == sim.layout.agents and self._observation_size == sim.layout.observation_size
        # In disabled mode a step leaves rows as they are, so the memory that it writes is not given away.
        rewrites_all = sim.autoreset_mode != AutoresetMode.DISABLED
        swaps = output == "numpy" and copy and sim.xp is np and self._whole and rewrites_all
        written = functools.partial(_recycled_rows, self.num_envs, self._observation_shape)
        self._recycler = Recycler(sim, _RETURNED, written) if swaps else None
        self._multi = sim.layout.agents > 1 and not of_movers
        self._same_step = sim.autoreset_mode == AutoresetMode.SAME_STEP
        replies = self._opponents is not None and self._opponents.turn is not None
        self._own_infos = InfosByRow(output, self._count, replies) if infos else None
        self.info_names = tuple(names_of(definition, sim.cfg)) if infos else ()
        # Arrays in host memory while a call returns NumPy arrays from a GPU; all of one call come with one wait.
        self._brought: dict[str, Any] = {}
        self._on_cpu = sim.xp is np
        self._brings = () if self._on_cpu or output != "numpy" else self._names_of_infos()
        self._stepped = False
        # Most often there is nothing to add to what the kernel wrote.
        adds = of_movers or self._multi or self._same_step or statistics or infos or self._masks_in
        self._bare = not (adds or render_mode == "rgb_array_list")
        self._frames: list[list[Any]] | None = None
        if render_mode == "rgb_array_list":
            self._frames = [[] for _ in range(worlds)]
        self._attach()

    def _attach(self) -> None:
        """Ties the simulator to this object, as its copy is to a copy."""
        if self._own_infos is not None and self._same_step:
            self.simulator.between_episodes = self._own_infos.keep_last
        self._finalizer = weakref.finalize(self, self.simulator.close)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._attach()

    def __repr__(self) -> str:
        return (
            f"VectorEnv({self.simulator.env.id}, num_envs={self.num_envs}, num_worlds={self.num_worlds}, "
            f"device={self.simulator.device!r}, autoreset_mode={self.autoreset_mode.value!r})"
        )

    def _described(self) -> str:
        """The rows in words, for messages."""
        if self._count == 1:
            return f"{self.num_envs} envs"
        return f"{self.num_envs} rows ({self.num_worlds} envs of {self._count} agents)"

    @functools.cached_property
    def observation_space(self) -> spaces.Space[Any]:  # type: ignore[override]
        """Space of a batch of observations, built when first asked for."""
        return batch_space(self.single_observation_space, self.num_envs)

    @functools.cached_property
    def action_space(self) -> spaces.Space[Any]:  # type: ignore[override]
        """Space of a batch of actions, built when first asked for."""
        return batch_space(self.single_action_space, self.num_envs)

    # ---- arrays ----

    def _names_of_infos(self) -> tuple[str, ...]:
        """The arrays that a step returns, with those of its infos."""
        names = list(_RETURNED)
        names += ["alive"] if self._multi else []
        names += ["action_mask"] if self._masks_in else []
        names += ["final_observation"] if self._same_step else []
        names += ["final_action_mask"] if self._same_step and self._masks_in else []
        return (*names, *(("final_return", "final_length") if self._statistics else ()))

    def _bring(self) -> None:
        """Copies what a call returns to the host."""
        arrays = self.simulator.arrays
        found = self.simulator.backend.staged([arrays[name] for name in self._brings])
        self._brought = dict(zip(self._brings, found, strict=True))

    def _rows_of(self, name: str) -> Any:
        """An array of the simulator as rows, in the kind that was asked for; a copy if ``copy``."""
        if self._output == "torch":
            array: Any = self._tensors.get(name)
            if array is None:
                array = self._tensors[name] = tensors.as_tensor(self.simulator.arrays[name])
            return self._as_rows(name, array)
        if self._output == "numpy" and not self._on_cpu:
            array = self._brought.get(name)
            if array is None:
                array = self.simulator.backend.to_numpy(self.simulator.arrays[name])
            return self._as_rows(name, array)
        return self._as_rows(name, self.simulator.arrays[name])

    def _as_rows(self, name: str, array: Any) -> Any:
        if array.ndim == 1:  # one value per env
            return self._by_row(array)
        if not self._whole:
            array = self._select(name, array)
        shape: tuple[int, ...] = (self.num_envs,)
        if name in ("observation", "final_observation"):
            shape = (self.num_envs, *self._observation_shape)
        elif name in ("action_mask", "final_action_mask"):
            shape = (self.num_envs, array.shape[-1])
        if self._output == "cupy" and (self._copy or not array.flags.c_contiguous):
            return self.simulator.backend.copied(array).reshape(shape)
        array = array.reshape(shape)
        if self._recycler is not None or not self._copy or self._output == "cupy":
            return array
        return array.clone() if self._output == "torch" else array.copy()

    def _select(self, name: str, array: Any) -> Any:
        if self._turns is not None:
            return array if name in _SEEN else self._turns.of_mover(array)
        array = array[:, self._first : self._first + self._count]
        if name in ("observation", "final_observation"):
            return array[..., : self._observation_size]
        if name in ("action_mask", "final_action_mask"):
            return array[..., : self._choices]
        return array

    def _kept(self, name: str) -> Any:
        """Rows of an array that the next step overwrites, as a copy where the caller may keep what it gets."""
        array = self._rows_of(name)
        return array.copy() if self._recycler is not None else array

    def _converted(self, observation: Any) -> Any:
        if type(observation) is np.ndarray:
            return observation.astype(self._dtype)
        if self._output == "cupy":
            return self.simulator.backend.copied(observation, self._dtype)
        return tensors.converted(observation, self._dtype)

    def _presented(self, observation: Any, mask: str) -> Any:
        """An observation in its space's dtype, with its mask if that is part of it."""
        if self._dtype is not None:
            observation = self._converted(observation)
        if self._masks_in != "observation":
            return observation
        return {"observation": observation, "action_mask": self._kept(mask)}  # the next step reads and rewrites it

    # ---- Gymnasium ----

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins new episodes.

        Args:
            seed: env ``w`` gets the seed ``seed + w``, in every batch size. A sequence has one seed per env. None
                continues each env's own sequence of episodes.
            options: ``reset_mask``: bool array (num_envs,), NumPy or on the device; an env is reset if any of its rows
                is. ``params``: values for `Simulator.set_params`.

        Returns:
            All observations, and infos.

        Raises:
            TypeError: the mask is not a bool array.
            ValueError: an unknown option; a mask of the wrong shape or without a True.
        """
        self.simulator.check_usable()
        check_options(self.simulator, options, ("params", "reset_mask"))
        mask = (options or {}).get("reset_mask")
        if mask is not None:
            mask = self._world_mask(mask)
            options = {**(options or {}), "reset_mask": mask}
        seed = host_seed(seed)
        if isinstance(seed, int):
            super().reset(seed=seed)
        rows = self._recycler.keep() if self._recycler is not None else None
        apply_options(self.simulator, seed, options)
        self._stepped = False
        if self._opponents is not None:
            self._opponents.after_reset()
        if self._frames is not None:
            began = np.ones(self.num_worlds, np.bool_) if mask is None else to_host(mask)
            self._add_frames(self._frames, began, began)
        observations = self._presented(rows[0] if rows else self._rows_of("observation"), "action_mask")
        return observations, self._infos_of_rows(*self._own())

    def _world_mask(self, mask: Any) -> Any:
        if not (hasattr(mask, "dtype") and hasattr(mask, "shape")) or not str(mask.dtype).endswith("bool"):
            kind = getattr(mask, "dtype", type(mask).__name__)
            raise TypeError(f"options['reset_mask'] must be a bool array of shape ({self.num_envs},), not {kind}.")
        if tuple(mask.shape) != (self.num_envs,):
            raise ValueError(
                f"options['reset_mask'] must have shape ({self.num_envs},), for {self._described()}, "
                f"not {tuple(mask.shape)}."
            )
        if isinstance(mask, np.ndarray) and not mask.any():
            raise ValueError("options['reset_mask'] must select at least one env.")
        if self._count == 1:
            return mask
        mask = mask.reshape(self.num_worlds, self._count)
        own = isinstance(mask, np.ndarray) or tensors.is_tensor(mask)
        return mask.any(1) if own else self.simulator.backend.any(mask, 1)

    def _all_rows(self) -> Any:
        return np.ones(self.num_envs, np.bool_)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One step of all rows.

        Args:
            actions: (num_envs, ...) NumPy, CuPy or torch, as int32 or int64, or for Box as float32 or float64.

        Returns:
            Observations, rewards (float32), terminations, truncations (bool), infos. ``infos["final_obs"]`` (dense,
            with the mask ``_final_obs``) holds final observations in same-step mode.

        Raises:
            ValueError, TypeError: actions of the wrong shape or kind.
            RuntimeError: not reset, closed, or after a fork.
        """
        sim = self.simulator
        sim.check_usable()
        self._slot.write(actions)
        if not self._stepped:
            self._stepped = True
        if self._own_infos is not None:
            self._own_infos.forget_last()
        if self._recycler is not None:
            rows = self._recycler.next()
            sim.step()
        else:
            self._step()
            if self._brings:
                self._bring()
            rows = tuple(self._rows_of(name) for name in _RETURNED)
            if self._bare:
                self._brought = {}
        observations, rewards, terminations, truncations = rows
        if self._bare:
            if self._dtype is not None:
                observations = self._converted(observations)
            return observations, rewards, terminations, truncations, {}
        infos = self._infos(terminations, truncations)
        observations = self._presented(observations, "action_mask")
        if self._brings:
            self._brought = {}
        if self._frames is not None:
            began = sim.backend.to_numpy(sim.arrays["elapsed_steps"]) == 0
            self._add_frames(self._frames, began, np.ones_like(began))
        return observations, rewards, terminations, truncations, infos

    def _step(self) -> None:
        if self._turns is not None:
            self._turns.step()
            return
        if self._opponents is None:
            self.simulator.step()
            return
        self._opponents.before_step()
        self.simulator.step()
        self._opponents.after_step()

    def _own(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The game's own infos, of the state and of the last step."""
        return ({}, {}) if self._own_infos is None else self._own_infos.now(self.simulator)

    def _infos_of_rows(self, state: Mapping[str, Any], step: Mapping[str, Any]) -> dict[str, Any]:
        """Infos that every row has at any time, with the game's own; after a reset there are none of a step."""
        infos: dict[str, Any] = {}
        if self._multi:
            infos["alive"], infos["_alive"] = self._kept("alive"), self._all_rows()
        for name, told in self._turns.told.items() if self._turns is not None else ():
            infos[name], infos[f"_{name}"] = self._by_row(self._read(self.simulator.arrays[told])), self._all_rows()
        if self._masks_in == "info":
            infos["action_mask"], infos["_action_mask"] = self._kept("action_mask"), self._all_rows()
        if self._own_infos is not None:
            backend = self.simulator.backend
            begun = backend.is_zero(self.simulator.arrays["elapsed_steps"])
            stepped = backend.is_zero(begun)
            for own, there in ((state, backend.either(begun, stepped)), (step, stepped)):
                for name, x in own.items():
                    infos[name], infos[f"_{name}"] = x, self._by_row(self._read(there))
        return infos

    def _read(self, array: Any) -> Any:
        """An array of the device in the kind that was asked for."""
        return presented(self.simulator, self._output, array)

    def _by_row(self, array: Any) -> Any:
        """A value of each env for each of its rows, in memory of its own."""
        return by_row(self.simulator, self._output, self._count, array)

    def _infos(self, terminations: Any, truncations: Any) -> dict[str, Any]:
        state, step = self._own()
        infos = self._infos_of_rows(state, step)
        if not (self._same_step or self._statistics):
            return infos
        if self._output == "cupy":
            done = self.simulator.backend.either(terminations, truncations)
        else:
            done = terminations | truncations
        if self._output == "numpy" and not done.any():
            return infos
        if self._same_step:
            final = self._presented(self._kept("final_observation"), "final_action_mask")
            infos["final_obs"], infos["_final_obs"] = final, done
            infos["final_info"], infos["_final_info"] = {}, done
            if self._masks_in == "info":
                infos["final_info"] |= {"action_mask": self._kept("final_action_mask"), "_action_mask": done}
            if self._own_infos is not None:
                for name, x in self._own_infos.last(state | step).items():
                    infos["final_info"] |= {name: x, f"_{name}": done}
        if self._statistics:
            episode = {
                "r": self._kept("final_return"),
                "_r": done,
                "l": self._kept("final_length"),
                "_l": done,
            }
            infos["episode"], infos["_episode"] = episode, done
            if self._same_step:
                infos["final_info"] |= {"episode": episode, "_episode": done}
        return infos

    @property
    def prev_done(self) -> Any:
        """Bool (num_envs,): rows whose last step was a reset instead of a transition. Learners ignore such steps.

        Always False except in next-step mode.
        """
        counts = self._stepped and self.autoreset_mode == AutoresetMode.NEXT_STEP
        begun = self._begun_in_place()
        if self._output == "cupy":
            return begun if counts else self.simulator.backend.zeros((self.num_envs,), "bool")
        return begun & counts

    def _begun_in_place(self) -> Any:
        """Rows whose env has taken no step since its episode began, or was only reset by the last one."""
        if self._opponents is None or self._opponents.turn is None:
            elapsed = self._rows_of("elapsed_steps")
            return self.simulator.backend.is_zero(elapsed) if self._output == "cupy" else elapsed == 0
        begun = self._opponents.just_begun
        if self._output == "torch":
            if "just_begun" not in self._tensors:
                self._tensors["just_begun"] = tensors.as_tensor(begun)
            begun = self._tensors["just_begun"]
        elif self._output == "numpy":
            begun = to_host(begun)
        return self._by_row(begun)

    @property
    def action_mask(self) -> Any:
        """Legal actions of each row, (num_envs, choices) int8.

        Raises:
            AttributeError: the game has no masks.
        """
        if not self.simulator.layout.mask_size:
            raise AttributeError(f"{self.simulator.env.id} has no action masks.")
        return self._kept("action_mask")  # the next step reads the mask, so its memory is not recycled

    def _add_frames(self, frames: list[list[Any]], began: Any, drawn: Any) -> None:
        """Draws some envs (bool arrays); the list of an env that began an episode holds nothing older."""
        for w in np.flatnonzero(drawn):
            frames[w] = [*([] if began[w] else frames[w]), draw(self.simulator, int(w))]

    def render(self) -> tuple[Any, ...] | None:
        """A picture for each row, (height, width, 3) uint8. The rows of one env share a picture.

        With ``"rgb_array_list"`` a list for each row, as in Gymnasium's ``RenderCollection``: the pictures of the env's
        current episode that were not returned before.
        """
        if self.render_mode is None:
            return None
        if self._frames is not None:
            frames, self._frames = self._frames, [[] for _ in range(self.num_worlds)]
            return tuple(list(frame) for frame in frames for _ in range(self._count))
        pictures = [draw(self.simulator, w) for w in range(self.num_worlds)]
        return tuple(picture for picture in pictures for _ in range(self._count))

    def close_extras(self, **kwargs: Any) -> None:
        """Frees the simulator; `close` calls it once."""
        self._tensors.clear()
        self._finalizer()


def _recycled_rows(num_envs: int, observation_shape: tuple[int, ...], arrays: Mapping[str, Any]) -> Rows:
    observation = arrays["observation"].reshape(num_envs, *observation_shape)
    return (observation, *(arrays[name].reshape(num_envs) for name in _RETURNED[1:]))


@arguments_of(VectorEnv)
def make_vec(*args: Any, **kwargs: Any) -> VectorEnv:
    """A `VectorEnv`, counted in rows (``num_envs``) or in envs (``num_worlds``): see there for the arguments.

    Raises:
        ValueError: as `VectorEnv`.
    """
    return VectorEnv(*args, **kwargs)
