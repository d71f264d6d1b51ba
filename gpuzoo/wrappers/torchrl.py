"""TorchRL: batches of any game as a ``torchrl.envs.EnvBase``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from gpuzoo import registry, tensors
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.layout import choices, flat_size
from gpuzoo.core.simulator import Simulator
from gpuzoo.interfaces.arrays import ActionSlot
from gpuzoo.interfaces.batch import draw
from gpuzoo.interfaces.turns import check_all_observe

try:
    import torch
    from tensordict import TensorDict
    from torchrl.data import Bounded, Categorical, Composite, MultiCategorical, Unbounded
    from torchrl.envs import EnvBase
    from torchrl.envs.utils import check_marl_grouping
except ImportError as error:
    raise ImportError("gpuzoo.wrappers.torchrl needs TorchRL: pip install 'gpuzoo[torchrl]'.") from error

#: what a step and a reset return, as it lies in the simulator
_RETURNED = ("observation", "reward", "alive", "terminated", "truncated")

#: keys at the root that TorchRL's collectors and replay buffers write, and steps and resets
_TAKEN = frozenset({"collector", "index", "next", "done", "terminated", "truncated", "state"})


class GpuZooEnv(EnvBase):
    """A batch of a game as a ``torchrl.envs.EnvBase`` of batch size ``(num_envs,)``, with all tensors on the device.

    A single-agent game has the keys ``"observation"``, ``"action"``, ``"reward"``, ``"done"``, ``"terminated"``,
    ``"truncated"`` and, if it has masks, ``"action_mask"``. A game of several agents has one TensorDict of batch size
    ``(num_envs, agents)`` per group, with the same keys and ``"mask"``: bool ``(num_envs, agents)``, who acts next. An
    agent that has left, or whose turn it is not, has ``mask`` False and an ``action_mask`` of only True; its action is
    ignored. An agent that acts but has no legal action has such an ``action_mask``, too. Flags, once set, stay set
    until the env is reset. The flags at the root say that the env is over: no agent is left (``terminated``), or time
    is up (``truncated``); they alone decide about resets. A group whose name is a key of TorchRL's own has an ``s`` at
    its end: ``"collectors"`` for ``"collector"``.

    A game with a global state of its own (`EnvDef.state_space`) has it at the root as ``"state"``.

    Rewards and flags have a last dimension of size 1. Discrete actions are categorical int64; masks are bool.
    The random actions of ``rand_action`` and ``rollout`` are legal ones. After ``set_seed(seed)``, the next reset of
    all envs seeds env ``i`` with ``seed + i``, whatever the batch.

    Args:
        env: id or declaration of the game.
        num_envs: number of envs.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:k"`` or ``"auto"``.
        max_episode_steps: time limit; None or -1 means none.
        **kwargs: further arguments of `Simulator` (``threads``, ``debug``) and the game's parameters.

    Attributes:
        simulator: the engine below.
        group_map: names of the agents by group; ``{}`` for a single-agent game.

    Raises:
        TypeError: an env in place of a game, or an ``autoreset_mode``: TorchRL resets envs itself.
        ValueError: an unknown game or an argument out of range.
    """

    def __init__(
        self,
        env: str | EnvDef | type[EnvDef],
        num_envs: int = 1,
        *,
        device: str | torch.device = "auto",
        max_episode_steps: int | Literal["default"] | None = "default",
        **kwargs: Any,
    ) -> None:
        if not isinstance(env, (str, EnvDef, type)):
            raise TypeError(
                f"GpuZooEnv makes its own batch and takes a game's id or EnvDef, not {type(env).__name__}: for a "
                "Gymnasium env take torchrl.envs.GymWrapper, for a PettingZoo env torchrl.envs.PettingZooWrapper."
            )
        if "autoreset_mode" in kwargs:
            raise TypeError("GpuZooEnv has no autoreset_mode: TorchRL resets the envs that are done.")
        check_all_observe(kwargs, "GpuZooEnv")
        definition = registry.get(env)
        sim = Simulator(
            definition,
            num_envs,
            device=str(device),
            autoreset_mode="disabled",
            max_episode_steps=max_episode_steps,
            **kwargs,
        )
        lay = sim.layout
        names = [*_RETURNED, *(["action_mask"] if lay.mask_size else [])]
        views = {name: tensors.as_tensor(sim.arrays[name]) for name in names}
        super().__init__(device=views["reward"].device, batch_size=(sim.num_envs,))
        self.is_closed = False
        self.simulator = sim
        self._views = views
        self._mover = tensors.as_tensor(sim.arrays[definition.turn]) if definition.turn else None
        self._seed: int | None = None
        self._flat = definition.single()
        agents = lay.agent_names()
        self.group_map: dict[str, list[str]] = {}
        if not self._flat:
            self.group_map = {_key(g): agents[lay.first[g] : lay.first[g] + n] for g, n in lay.groups.items()}
            check_marl_grouping(self.group_map, agents)
        self._slots = {group: self._slot(group) for group in lay.groups}
        self._make_specs()

    def _entry(self, group: str, name: str) -> str | tuple[str, str]:
        return name if self._flat else (_key(group), name)

    def _lead(self, group: str) -> tuple[int, ...]:
        """Shape of one value per agent of a group, within one env."""
        return () if self._flat else (self.simulator.layout.groups[group],)

    def _slot(self, group: str) -> ActionSlot:
        lay = self.simulator.layout
        space = lay.action_spaces[group]
        shape = (self.simulator.num_envs, *self._lead(group), *(space.shape or ()))
        return ActionSlot(
            self.simulator, lay.first[group], lay.groups[group], space, shape, f"actions of group {group!r}"
        )

    def _make_specs(self) -> None:
        lay, device = self.simulator.layout, self.device
        flags = {"done": (1,), "terminated": (1,), "truncated": (1,)}
        action, observation = Composite(device=device), Composite(device=device)
        reward, done = Composite(device=device), Composite(_bools(flags, device), device=device)
        for group, count in lay.groups.items():
            lead = self._lead(group)
            space = lay.action_spaces[group]
            dtype = torch.float32 if lay.action_dtype == "float32" else torch.int64
            acts = {"action": _spec(space, lead, dtype, device)}
            sees = {"observation": _spec(lay.observation_spaces[group], lead, self._views["observation"].dtype, device)}
            if lay.mask_size:
                sees |= _bools({"action_mask": (*lead, sum(choices(space)))}, device)
            gets = {"reward": Unbounded((*lead, 1), device=device, dtype=torch.float32)}
            if self._flat:
                action.update(acts)
                observation.update(sees)
                reward.update(gets)
                continue
            sees |= _bools({"mask": lead}, device)
            ends = _bools({name: (count, 1) for name in flags}, device)
            for whole, part in ((action, acts), (observation, sees), (reward, gets), (done, ends)):
                whole[_key(group)] = Composite(part, shape=lead, device=device)
        if lay.state_space is not None:
            dtype = tensors.as_tensor(np.zeros(0, lay.state_space.dtype)).dtype
            observation["state"] = _spec(lay.state_space, (), dtype, device)
        self.full_action_spec_unbatched = action
        self.full_observation_spec_unbatched = observation
        self.full_reward_spec_unbatched = reward
        self.full_done_spec_unbatched = done

    def _read(self, *, stepped: bool) -> Any:
        """The results of a step or a reset, in tensors that belong to the caller."""
        lay, n = self.simulator.layout, self.simulator.num_envs
        now = {name: view.clone() for name, view in self._views.items()}
        alive, truncated = now["alive"], now["truncated"]
        terminated = now["terminated"] | ~(alive | truncated)
        acts = alive
        if self._mover is not None:
            acts = alive & (self._mover[:, None] == torch.arange(lay.agents, device=self.device))
        if lay.mask_size:
            masks = now["action_mask"].bool()
            masks = masks | ~(acts & masks.any(-1))[..., None]
        out: dict[str, Any] = {
            "done": ~alive.any(1, keepdim=True),
            "terminated": terminated.all(1, keepdim=True),
            "truncated": truncated.any(1, keepdim=True),
        }
        if lay.state_space is not None:
            out["state"] = tensors.as_tensor(self.simulator.global_state()).clone()
        for group, count in lay.groups.items():
            agents = slice(lay.first[group], lay.first[group] + count)
            lead = (n, *self._lead(group))
            space = lay.observation_spaces[group]
            observation = now["observation"][:, agents, : flat_size(space)].reshape(*lead, *(space.shape or ()))
            part = {"observation": observation}
            if lay.mask_size:
                mask = masks[:, agents, : sum(choices(lay.action_spaces[group]))].reshape(*lead, -1)
                part["action_mask"] = mask
                # TorchRL's convention: random actions come from the spec, which knows the present masks.
                self.input_spec["full_action_spec"][self._entry(group, "action")].update_mask(mask)
            if stepped:
                part["reward"] = now["reward"][:, agents].reshape(*lead, 1)
            if self._flat:
                out |= part
                continue
            part["mask"] = acts[:, agents]
            part["done"] = ~alive[:, agents, None]
            part["terminated"], part["truncated"] = terminated[:, agents, None], truncated[:, agents, None]
            out[_key(group)] = TensorDict(part, batch_size=lead, device=self.device)
        return TensorDict(out, batch_size=(n,), device=self.device)

    def _reset(self, tensordict: Any = None) -> Any:
        mask = None if tensordict is None else tensordict.get("_reset", None)
        if mask is None:
            self.simulator.reset(self._seed)
            self._seed = None
        else:
            self.simulator.reset(mask=mask.reshape(self.simulator.num_envs))
        return self._read(stepped=False)

    def _step(self, tensordict: Any) -> Any:
        sim = self.simulator
        for group, slot in self._slots.items():
            slot.write(tensordict.get(self._entry(group, "action")))
        active = tensordict.get("_step", None)
        if active is None:
            sim.step()
            return self._read(stepped=True)
        moves = active.reshape(sim.num_envs)
        sim.step(moves.cpu().numpy())
        self._views["reward"][~moves] = 0.0
        return self._read(stepped=True)

    def _set_seed(self, seed: int | None) -> None:
        self._seed = None if seed is None else int(seed)

    def to(self, device: Any) -> GpuZooEnv:
        """Returns this env, which stays on its device.

        Raises:
            RuntimeError: another device.
        """
        device = torch.device(device)
        if device.type != self.device.type or device.index not in (None, self.device.index):
            raise RuntimeError(
                f"{self.simulator.env.id} is on {self.device} and stays there: make it with device={str(device)!r}."
            )
        return self

    def extra_repr(self) -> str:
        """The text of ``repr``."""
        return f"{self.simulator.env.id}, num_envs={self.simulator.num_envs}, device={self.device}"

    def render(self, mode: str = "rgb_array", index: int = 0) -> np.ndarray[Any, Any]:
        """A picture of env ``index``, (height, width, 3) uint8.

        Raises:
            ValueError: another mode than ``"rgb_array"``.
        """
        if mode != "rgb_array":
            raise ValueError(f"mode must be 'rgb_array', not {mode!r}.")
        return draw(self.simulator, index)

    def close(self, *, raise_if_closed: bool = True) -> None:
        """Frees the arrays. May be called again."""
        self._views, self._mover = {}, None
        self.simulator.close()
        super().close(raise_if_closed=raise_if_closed)


def _key(group: str) -> str:
    """The keys under which a group's values lie."""
    return f"{group}s" if group in _TAKEN else group


def _bools(shapes: Mapping[str, tuple[int, ...]], device: torch.device) -> dict[str, Any]:
    return {name: Categorical(2, shape, device=device, dtype=torch.bool) for name, shape in shapes.items()}


def _spec(space: spaces.Space[Any], lead: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Any:
    """TorchRL's spec of a gymnasium space, for agents with batch size ``lead``."""
    shape = (*lead, *(space.shape or ()))
    if isinstance(space, spaces.Discrete):
        return Categorical(int(space.n), shape, device=device, dtype=dtype)
    if isinstance(space, spaces.MultiDiscrete):
        return MultiCategorical(torch.as_tensor(space.nvec), shape, device=device, dtype=dtype)
    assert isinstance(space, spaces.Box)
    if not space.is_bounded("both"):
        return Unbounded(shape, device=device, dtype=dtype)
    low, high = (torch.as_tensor(x, dtype=dtype, device=device).expand(shape) for x in (space.low, space.high))
    return Bounded(low, high, shape, device, dtype)
