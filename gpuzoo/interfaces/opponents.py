"""Opponents: policies for the agents that are no rows of a `gpuzoo.VectorEnv`."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from gpuzoo import tensors
from gpuzoo.core.host import to_host
from gpuzoo.core.layout import flat_size
from gpuzoo.core.simulator import Simulator
from gpuzoo.interfaces.arrays import ActionSlot
from gpuzoo.interfaces.spaces import common_spaces

Policy = Literal["random"] | Callable[..., Any]
#: what a row is told of a step; with replies in it, of all their moves together
_SUMMED = ("reward", "terminated", "truncated")
#: attributes of `Opponents` that are arrays on the device
_ARRAYS = ("_where", "just_begun")


class Opponents:
    """Plays all agents of a simulator but some neighbours. It acts after each reset and step, for the next step.

    In a turn-based game it moves until it is a row's turn again, so that a step of a row has all replies in it: the
    rewards of these moves are summed, and the row is done if one of them ended the episode. The reward of an opening
    move counts in the step that follows. On a GPU each reply waits for the device, to know whose turn it is, and these
    sums are made on the host.

    Args:
        simulator: whose agents.
        rows: the agents that others play.
        policy: ``"random"``, or a function ``f(observations, action_masks) -> actions``.
        output: kind of arrays that the function is given.

    Raises:
        ValueError: another policy.
    """

    def __init__(self, simulator: Simulator, rows: range, policy: Policy, output: str) -> None:
        if policy != "random" and not callable(policy):
            raise ValueError(f"opponents must be 'random' or a function, not {policy!r}.")
        self._simulator, self._policy, self._output = simulator, policy, output
        lay, xp = simulator.layout, simulator.xp
        self._index = [a for a in range(lay.agents) if a not in rows]
        groups = list(dict.fromkeys(lay.group_of(a) for a in self._index))
        self._space, action_space = common_spaces(lay, groups)
        self._shape = (simulator.num_envs, len(self._index), *(action_space.shape or ()))
        self._slots = []
        for span in (range(rows.start), range(rows.stop, lay.agents)):
            if span:
                shape = (simulator.num_envs, len(span), *(action_space.shape or ()))
                slot = ActionSlot(simulator, span.start, len(span), action_space, shape, "actions of opponents")
                self._slots.append((span, slot))
        self._tensors: dict[str, Any] = {}  # of what the function is given, exported once
        self.turn = simulator.env.turn
        with simulator.backend.ordered():
            self._where = xp.asarray(np.array(self._index))
        self._theirs = np.isin(np.arange(lay.agents), self._index)
        self._opening = np.zeros((simulator.num_envs, lay.agents), np.float32)
        #: envs whose last step was a reset in place of a transition; kept for turn-based games only
        self.just_begun = simulator.backend.zeros((simulator.num_envs,), "bool")

    def __deepcopy__(self, memo: dict[int, Any]) -> Opponents:
        twin = object.__new__(Opponents)
        memo[id(self)] = twin
        twin.__setstate__(copy.deepcopy(self._state(), memo))
        return twin

    def _state(self) -> dict[str, Any]:
        """Attributes, with arrays in host memory."""
        return {**vars(self), **{name: to_host(getattr(self, name)) for name in _ARRAYS}, "_tensors": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        with self._simulator.backend.ordered():
            for name in _ARRAYS:
                setattr(self, name, self._simulator.xp.asarray(state[name]))

    def __getstate__(self) -> dict[str, Any]:
        try:
            pickle.dumps(self._policy)
        except Exception as error:
            raise pickle.PicklingError(
                f"opponents={self._policy!r} cannot be pickled ({error}): give a function that stands in a module, or "
                "copy the env with copy.deepcopy."
            ) from error
        return self._state()

    def after_reset(self) -> None:
        """Chooses actions; in a turn-based game makes the moves before the first one of a row."""
        sim = self._simulator
        if self.turn is None:
            self._act()
            return
        sim.backend.fill(self.just_begun, 0)
        told = self._told("elapsed_steps", *_SUMMED)
        began = told["elapsed_steps"] == 0
        self._opening[began] = 0
        self._reply(began, told)

    def before_step(self) -> None:
        """Notes which envs this step will only reset."""
        if self.turn is not None:
            self._simulator.backend.write(self.just_begun, self._simulator.arrays["waiting"])

    def after_step(self) -> None:
        """As `after_reset`."""
        if self.turn is None:
            self._act()
            return
        told = self._told("ended", *_SUMMED, just_begun=self.just_begun)
        began = told["just_begun"] | told["ended"]
        told["reward"] += self._opening
        self._opening[...] = 0
        self._reply(began, told)

    def _told(self, *names: str, **more: Any) -> dict[str, Any]:
        """Arrays of the simulator, and others: on a CPU themselves, from a GPU copies in host memory."""
        sim = self._simulator
        arrays = {**{name: sim.arrays[name] for name in names}, **more}
        found = sim.backend.staged(list(arrays.values()))
        found = found if sim.xp is np else [array.copy() for array in found]
        return dict(zip(arrays, found, strict=True))

    def _reply(self, began: Any, sums: Mapping[str, Any]) -> None:
        """Moves until it is a row's turn everywhere. What ``began`` an episode has no transition yet to add to.

        Args:
            began: bool (num_envs,).
            sums: what the rows are told, which the replies are added to.
        """
        sim, turn = self._simulator, str(self.turn)
        while True:
            now = self._told(turn, "waiting")
            envs = np.flatnonzero(self._theirs[now[turn]] & ~now["waiting"])
            if not len(envs):
                break
            self._act()
            before = {name: sums[name][envs] for name in _SUMMED}
            sim.step(envs)
            now = self._told("ended", *_SUMMED)
            opening = began[envs][:, None]
            gained = now["reward"][envs]
            self._opening[envs] += gained * opening
            sums["reward"][envs] = before["reward"] + gained * ~opening
            for name in ("terminated", "truncated"):
                sums[name][envs] = now[name][envs] | before[name]
            began = began | now["ended"]
        if sim.xp is not np:
            for name in _SUMMED:
                sim.backend.upload(sim.arrays[name], sums[name])

    def _act(self) -> None:
        sim = self._simulator
        if self._policy == "random":
            sim.random_actions()
            return
        assert callable(self._policy)
        observation = self._part("observation")
        mask = self._part("action_mask") if sim.layout.mask_size else None
        actions = self._policy(observation, mask)
        actions = actions if hasattr(actions, "shape") else np.asarray(actions)
        if tuple(actions.shape) != self._shape:  # and not that of the agents on one side of the rows
            raise ValueError(f"actions of opponents must have shape {self._shape}, not {tuple(actions.shape)}.")
        start = 0
        for span, slot in self._slots:
            slot.write(actions[:, start : start + len(span)])
            start += len(span)

    def _part(self, name: str) -> Any:
        """A copy of the others' part of an array of the simulator, in the kind that was asked for."""
        sim = self._simulator
        if self._output == "torch":
            return self._shaped(name, self._tensor(name, sim.arrays[name])[:, self._tensor("where", self._where)])
        if self._output == "numpy":
            return self._shaped(name, sim.backend.to_numpy(sim.arrays[name])[:, self._index])
        array = sim.arrays[name]
        part, start = sim.backend.empty((len(array), len(self._index), *array.shape[2:]), array.dtype), 0
        for span, _ in self._slots:
            sim.backend.write(part[:, start : start + len(span)], array[:, span.start : span.stop])
            start += len(span)
        return self._shaped(name, part)

    def _tensor(self, name: str, array: Any) -> Any:
        tensor = self._tensors.get(name)
        if tensor is None:
            tensor = self._tensors[name] = tensors.as_tensor(array)
        return tensor

    def _shaped(self, name: str, array: Any) -> Any:
        if name != "observation":
            return array
        plain = self._space["observation"] if isinstance(self._space, spaces.Dict) else self._space
        shape = (self._simulator.num_envs, len(self._index), *(plain.shape or ()))
        return array[..., : flat_size(plain)].reshape(shape)
