"""A replay buffer on the device: steps of whole batches go in, n-step transitions come out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

try:
    import torch
except ImportError as error:
    raise ImportError("gpuzoo.wrappers.replay needs PyTorch: pip install 'gpuzoo[torch]'.") from error

__all__ = ["ReplayBuffer"]


class ReplayBuffer:
    """A replay buffer: the last transitions of a batch of envs in preallocated tensors, for n-step samples.

    It is a ring of steps. `add` stores one step of all envs, and overwrites the oldest when the ring is full. The first
    step fixes the fields. The first axis of every tensor is the envs; the others are free, so agents, action masks and
    global states are fields like any other. Each field keeps its dtype. No call waits for the device.

    A field ``next_NAME`` holds the value after the step. A sample takes it from the end of the n-step window. In
    same-step mode an env that ends its episode returns the first observation of the next one: give the final
    observations as ``final_NAME`` too, and they replace ``next_NAME`` where the episode ended::

        buffer = ReplayBuffer(100_000, n_step=3, gamma=0.99)
        buffer.add(observation=observation, action=action, reward=reward, terminated=terminated, truncated=truncated,
                   next_observation=next_observation, final_observation=infos["final_obs"])
        batch = buffer.sample(256)
        target = batch["reward"] + batch["discount"] * value(batch["next_observation"])

    An n-step window ends with its episode or at the newest step, whichever comes first. With ``k`` steps in
    it, ``reward`` is their discounted sum, and ``discount`` is ``gamma ** k``, or 0 where one of them terminated.
    After a truncation ``discount`` is not 0, and ``next_NAME`` is the last value of the episode.

    With several agents, ``reward`` and the flags may be (num_envs, agents). The window extends to the end of the env's
    episode, ``ended``. An agent that terminates earlier has discount 0, and its rewards are 0 from then on.

    The buffer also stores transitions of agents that are not in the game, and of steps that were resets (``prev_done``
    in next-step mode). Store a mask as a field, and weight the loss with it.

    `gpuzoo.make` returns the simulator's memory: clone the observation before the step that overwrites it.

    Args:
        capacity: number of transitions, rounded down to whole steps of the batch.
        n_step: longest window.
        gamma: discount of a step.
        device: where the tensors are; by default where those of the first step are.

    Attributes:
        capacity, n_step, gamma: as given.

    Raises:
        ValueError: capacity or n_step is below 1, or gamma is outside [0, 1].
    """

    def __init__(
        self, capacity: int, *, n_step: int = 1, gamma: float = 0.99, device: torch.device | str | None = None
    ) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, not {capacity}.")
        if n_step < 1:
            raise ValueError(f"n_step must be at least 1, not {n_step}.")
        if not 0 <= gamma <= 1:
            raise ValueError(f"gamma must be in [0, 1], not {gamma}.")
        self.capacity, self.n_step, self.gamma = capacity, n_step, gamma
        self._device = None if device is None else torch.device(device)
        self._fields: dict[str, torch.Tensor] = {}
        self._steps = self._envs = 0
        self._head = 0  # the slot that is written next
        self._filled = 0  # slots that hold a step

    def __len__(self) -> int:
        """Number of transitions that are stored."""
        return self._filled * self._envs

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors; 0 before the first step."""
        return sum(field.nbytes for field in self._fields.values())

    # ---- writing ----

    def add(self, *, reward: Any, terminated: Any, truncated: Any, ended: Any = None, **fields: Any) -> None:
        """Stores one step of all envs.

        Args:
            reward: float (num_envs,) or (num_envs, agents, ...).
            terminated: bool, of the shape of ``reward``.
            truncated: likewise.
            ended: bool (num_envs,), the envs whose episode ended in this step (``infos["ended"]`` of `gpuzoo.make`);
                where ``reward`` is (num_envs,), it is by default ``terminated | truncated``.
            **fields: the other fields of a step, (num_envs, ...) tensors or NumPy arrays. They are copied.

        Raises:
            ValueError: names, shapes or dtypes differ from those of the first step, or do not fit together; or the
                capacity is too small for ``n_step`` steps.
            MemoryError: the first step shows that the tensors do not fit into memory.
        """
        step = {"reward": reward, "terminated": terminated, "truncated": truncated, **fields}
        step = {name: torch.as_tensor(value).detach() for name, value in step.items()}
        if ended is not None:
            step["ended"] = torch.as_tensor(ended)
        elif step["terminated"].ndim == 1:
            step["ended"] = step["terminated"] | step["truncated"]
        else:
            raise ValueError(
                f"reward has the shape {tuple(step['reward'].shape)}: give ended, bool (num_envs,), too, as an agent "
                "may be done before its env's episode is over."
            )
        final = {f"next_{name[6:]}": step.pop(name) for name in list(step) if name.startswith("final_")}
        _check_step(step, final)
        del step["truncated"]  # it ends an episode, which `ended` says, and changes nothing else
        specs = {name: (value.shape, value.dtype) for name, value in step.items()}
        if self._fields:
            _check_specs(specs, {name: (f.shape[1:], f.dtype) for name, f in self._fields.items()}, "the first step")
        else:
            self._allocate(specs, self._device or step["reward"].device)
        ends = step["ended"]
        for name, value in step.items():
            if name in final:
                value = torch.where(ends.reshape(-1, *(1 for _ in value.shape[1:])), final[name], value)
            self._fields[name][self._head].copy_(value)
        self._head = (self._head + 1) % self._steps
        self._filled = min(self._filled + 1, self._steps)

    def cut(self) -> None:
        """Marks a break: the next step does not follow the newest one, as the envs were reset by hand or replaced."""
        if self._filled:
            self._fields["ended"][self._head - 1].fill_(True)

    def _allocate(self, specs: Mapping[str, tuple[Any, torch.dtype]], device: torch.device) -> None:
        envs = specs["reward"][0][0]
        steps = self.capacity // envs
        if steps < self.n_step:
            raise ValueError(
                f"capacity {self.capacity:,} holds {steps} steps of {envs:,} envs, but n_step={self.n_step}: "
                f"it must be at least {envs * self.n_step:,}."
            )
        needed = {
            name: steps * torch.Size(shape).numel() * torch.empty((), dtype=dtype).element_size()
            for name, (shape, dtype) in specs.items()
        }
        message = (
            f"a replay buffer of {steps * envs:,} transitions needs {_size(sum(needed.values()))} on {device} "
            f"({', '.join(f'{name} {_size(n)}' for name, n in needed.items())}), which does not fit: "
            "take a smaller capacity."
        )
        if device.type == "cpu" and sum(needed.values()) > _physical_memory():
            raise MemoryError(message)
        try:
            fields = {
                name: torch.empty((steps, *shape), dtype=dtype, device=device) for name, (shape, dtype) in specs.items()
            }
        except RuntimeError as error:
            raise MemoryError(message) from error
        self._fields, self._steps, self._envs = fields, steps, envs

    # ---- reading ----

    def sample(self, batch_size: int, generator: torch.Generator | None = None) -> dict[str, torch.Tensor]:
        """Transitions drawn uniformly, with replacement.

        Args:
            batch_size: their number B.
            generator: random numbers, on the buffer's device; by default torch's own.

        Returns:
            Each field as (B, ...), fresh tensors: ``next_NAME`` from the end of the window, ``reward`` (B,) or
            (B, agents, ...) as the sum over the window, all others from its first step. The flags are left out.
            ``discount``, float32 of the shape of ``reward``, is the factor for the value after the window.

        Raises:
            RuntimeError: nothing is stored.
            ValueError: batch_size is not positive.
        """
        if not self._filled:
            raise RuntimeError("the replay buffer is empty: add steps before you sample.")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}.")
        device = self._fields["reward"].device
        return self._transitions(torch.randint(len(self), (batch_size,), generator=generator, device=device))

    def _transitions(self, first: torch.Tensor) -> dict[str, torch.Tensor]:
        """The transitions that begin at these positions, int64 (B,): that of env e in slot s is s * envs + e."""
        flat = {name: field.flatten(0, 1) for name, field in self._fields.items()}
        offset = torch.arange(self.n_step, device=first.device).unsqueeze(1)  # (n, 1)
        slot, env = first // self._envs, first % self._envs
        window = (slot + offset) % self._steps * self._envs + env  # (n, B)
        newest = (self._head - 1 - slot) % self._steps  # where in the window the newest step is, if it is there
        stops = flat["ended"][window] | (offset == newest)
        stops[-1] = True
        length = stops.byte().argmax(0) + 1  # up to the first stop
        inside = offset < length

        reward, terminated = flat["reward"][window], flat["terminated"][window]  # (n, B, ...)
        inside = inside.reshape(*inside.shape, *(1 for _ in reward.shape[2:]))
        offset = offset.reshape(self.n_step, *(1 for _ in reward.shape[1:]))
        length = length.reshape(-1, *(1 for _ in reward.shape[2:]))
        last = window.gather(0, (length.reshape(1, -1) - 1)).squeeze(0)
        batch = {
            name: field.index_select(0, last if name.startswith("next_") else first)
            for name, field in flat.items()
            if name not in ("reward", "terminated", "ended")
        }
        batch["reward"] = torch.where(inside, self.gamma**offset * reward, 0).sum(0)  # the rest may be uninitialised
        batch["discount"] = torch.where((terminated & inside).any(0), 0.0, self.gamma**length)
        return batch

    # ---- checkpoints ----

    def state_dict(self) -> dict[str, Any]:
        """A copy of the whole buffer in host memory, for `load_state_dict` and ``torch.save``."""
        fields = {name: field[: self._filled].to("cpu", copy=True) for name, field in self._fields.items()}
        return {"fields": fields, "steps": self._steps, "head": self._head}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores the result of `state_dict`, on any device. The same random numbers then give the same samples.

        If the envs do not continue where they were, call `cut`.

        Raises:
            KeyError: something is missing.
            ValueError: the capacity differs, or fields differ from those of this buffer's first step.
            MemoryError: as `add`.
        """
        fields, steps, head = dict(state["fields"]), state["steps"], state["head"]
        if not fields:  # saved before its first step
            self._head = self._filled = 0
            return
        specs = {name: (field.shape[1:], field.dtype) for name, field in fields.items()}
        envs = fields["reward"].shape[1]
        if self.capacity // envs != steps:
            raise ValueError(
                f"the state is that of a buffer for {steps * envs:,} transitions of {envs:,} envs, "
                f"but this one has the capacity {self.capacity:,}."
            )
        if self._fields:
            _check_specs(specs, {name: (f.shape[1:], f.dtype) for name, f in self._fields.items()}, "this buffer")
        else:
            self._allocate(specs, self._device or torch.device("cpu"))
        self._head, self._filled = head, fields["reward"].shape[0]
        for name, field in fields.items():
            self._fields[name][: self._filled].copy_(field)


def _check_step(step: Mapping[str, torch.Tensor], final: Mapping[str, torch.Tensor]) -> None:
    reward = step["reward"]
    if reward.ndim < 1 or not reward.is_floating_point():
        raise ValueError(f"reward must be float (num_envs, ...), not {reward.dtype} {tuple(reward.shape)}.")
    for name in ("terminated", "truncated", "ended"):
        shape = reward.shape[:1] if name == "ended" else reward.shape
        if step[name].shape != shape or step[name].dtype != torch.bool:
            raise ValueError(
                f"{name} must be bool {tuple(shape)}, not {step[name].dtype} {tuple(step[name].shape)}, "
                f"as reward is {tuple(reward.shape)}."
            )
    for name, value in step.items():
        if value.shape[:1] != reward.shape[:1]:
            raise ValueError(
                f"{name} must begin with the axis of the envs, ({reward.shape[0]}, ...), not {tuple(value.shape)}."
            )
    for name, value in final.items():
        if name not in step:
            raise ValueError(f"final_{name[5:]} needs {name}, which it replaces where an episode ended.")
        if (value.shape, value.dtype) != (step[name].shape, step[name].dtype):
            raise ValueError(
                f"final_{name[5:]} must be {step[name].dtype} {tuple(step[name].shape)} as {name}, "
                f"not {value.dtype} {tuple(value.shape)}."
            )


def _check_specs(found: Mapping[str, Any], expected: Mapping[str, Any], whose: str) -> None:
    if found.keys() != expected.keys():
        missing, unknown = expected.keys() - found.keys(), found.keys() - expected.keys()
        parts = [
            f"{verb} {', '.join(sorted(names))}" for verb, names in (("lacks", missing), ("adds", unknown)) if names
        ]
        raise ValueError(f"a step must have the fields of {whose}, but this one {' and '.join(parts)}.")
    for name, spec in expected.items():
        if found[name] != spec:
            (shape, dtype), (other, other_dtype) = spec, found[name]
            raise ValueError(f"{name} is {dtype} {tuple(shape)} in {whose}, but here {other_dtype} {tuple(other)}.")


def _size(count: int) -> str:
    return f"{count / 2**30:,.1f} GiB" if count >= 2**30 else f"{count / 2**20:,.1f} MiB"


def _physical_memory() -> float:
    """Bytes of the host, as a tensor larger than that is given by the system, and the process killed later."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows
        return float("inf")
