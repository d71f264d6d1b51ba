"""What a trainer does often and torch does in many small operations: draw actions, shuffle, and sum backwards.

Each is one kernel, compiled from one source for CUDA and for the CPU as the games are, and gives the same bits on both.
Nothing here waits for the device or allocates on it, so every call can be part of a CUDA graph.

Random numbers are a function of (seed, counter + offset, row, draw): ``seeds``, int64 (M,), has one seed for each of M
members, agents that train side by side; ``counter``, int64 (1,), lies on the device, where a graph can advance it;
``offset`` is an int, fixed within a graph. What a row gets depends on nothing else: not on M, the size of the batch,
threads or device. Samplers that are to draw independently need different seeds, counters or rows. A shuffle with the
same seed and counter, and a game with the same seed, have other numbers than a sampler.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from torch import Tensor

from gpuzoo.core.backend import Unit

from .units import Call, Word, check, compile_unit, device_name, prepare, shape_of, unit_code

MAX_ROWS = 1 << 32  # a row's number is one word of the generator's counter


# ---- programs ----


def categorical_code(nvec: Sequence[int], masked: bool) -> str:
    """The program of a `CategoricalSampler`."""
    cases = "".join(f"part == {p} ? {n} : " for p, n in enumerate(nvec[:-1])) if len(set(nvec)) > 1 else ""
    constants = [
        '#line 1 "generated"',
        "namespace gz {",
        f"constexpr int PARTS = {len(nvec)}, WIDTH = {max(nvec)}, MASK_SIZE = {sum(nvec) if masked else 0};",
        f"GZ int choices(int part) {{ (void)part; return {cases}{nvec[-1]}; }}",
        "}",
    ]
    return unit_code("rows.cuh", "categorical.cuh", constants="\n".join(constants))


def normal_code(size: int) -> str:
    """The program of a `NormalSampler`."""
    return unit_code("rows.cuh", "normal.cuh", constants=f"namespace gz {{ constexpr int SIZE = {size}; }}")


@functools.cache
def tools_code() -> str:
    """The program of `bind_shuffle`, `scan`, `gae` and `bind_adam`."""
    return unit_code("shuffle.cuh", "scan.cuh", "gae.cuh", "adam.cuh")


def _tools(device: str) -> Unit:
    return compile_unit(tools_code(), device, "shuffle", "scan", "gae", "adam")


# ---- sampling ----


class _Sampler:
    """What both samplers share: the struct `Sampling`."""

    _kernel: str

    def __init__(self, code: str, device: str | torch.device) -> None:
        self.device = device_name(device)
        self._unit = compile_unit(code, self.device, self._kernel)

    def _bind(
        self,
        seeds: Tensor,
        counter: Tensor,
        data: Tensor,
        more: Tensor | None,
        more_stride: int,
        action: Tensor,
        log_prob: Tensor,
        first_row: int,
        greedy: bool,
    ) -> Call:
        members, rows = data.shape[:2]
        check("seeds", seeds, torch.int64, (members,), self.device)
        check("counter", counter, torch.int64, (1,), self.device)
        check("log_prob", log_prob, torch.float32, (members, rows), self.device, strided=2)
        if not 0 <= first_row <= MAX_ROWS - rows:
            raise ValueError(f"first_row must be from 0 to 2**32 - {rows}, the number of rows, not {first_row}.")
        arguments: list[Word] = [members * rows, rows, first_row, int(greedy), seeds, counter, data]
        arguments += [more if more is not None else 0, more_stride, action, action.stride(0), action.stride(1)]
        return prepare(self._unit, self._kernel, [*arguments, log_prob, log_prob.stride(0), log_prob.stride(1)])


class CategoricalSampler(_Sampler):
    """Draws actions with one or several discrete components from their logits.

    Args:
        nvec: number of choices of each component.
        masked: whether there are masks of legal choices.
        device: ``"cpu"``, ``"cuda"`` or ``"cuda:k"``.

    Raises:
        ValueError: no component, a component without a choice, or another device.
        RuntimeError, ImportError: it cannot be compiled on this machine; the message says why.
    """

    _kernel = "categorical"

    def __init__(self, nvec: Sequence[int], masked: bool = False, device: str | torch.device = "cpu") -> None:
        self.nvec = tuple(int(n) for n in nvec)
        if not self.nvec or min(self.nvec) < 1:
            raise ValueError(f"nvec must give each component at least one choice, not {self.nvec}.")
        self.masked = masked
        super().__init__(categorical_code(self.nvec, masked), device)

    def bind(
        self,
        seeds: Tensor,
        counter: Tensor,
        logits: Tensor,
        mask: Tensor | None,
        action: Tensor,
        log_prob: Tensor,
        first_row: int = 0,
        greedy: bool = False,
    ) -> Call:
        """Prepares a draw for these tensors, which are checked here and nowhere else.

        An illegal choice is never drawn. A component without a legal one gets action 0, and adds 0 to the logarithm.
        Where a legal logit is NaN or +inf, or all of them are -inf, the logarithm is NaN and the action any legal one.

        Args:
            seeds: int64 (M,).
            counter: int64 (1,).
            logits: float32 (M, R, parts * width), contiguous. Component ``p`` has its ``nvec[p]`` logits from
                ``p * width`` on, where ``width`` is the largest of ``nvec``; what lies behind them is not read.
            mask: int8 (M, R, sum(nvec)), contiguous, without that padding; None if the sampler has no masks.
            action: int32 (M, R, parts), contiguous in its last axis; is written.
            log_prob: float32 (M, R); is written: the sum over the components of the log-softmax over the legal choices.
            first_row: number of the first row of each member.
            greedy: take the likeliest choice, the first of equal ones.

        Returns:
            The draw: ``draw(offset=0)`` fills ``action`` and ``log_prob``. It is made for the memory that the tensors
            have now, which it keeps alive, and for torch's present number of threads.

        Raises:
            TypeError: a wrong dtype.
            ValueError: a wrong shape, device or stride, or a mask where there must be none.
        """
        width, parts = max(self.nvec), len(self.nvec)
        members, rows, _ = shape_of("logits", logits, f"members, rows, {parts * width}")
        check("logits", logits, torch.float32, (members, rows, parts * width), self.device)
        check("action", action, torch.int32, (members, rows, parts), self.device, strided=2)
        if self.masked is (mask is None):
            raise ValueError(
                f"this sampler was made with masked={self.masked}: mask must {'not ' * self.masked}be None."
            )
        if mask is not None:
            check("mask", mask, torch.int8, (members, rows, sum(self.nvec)), self.device)
        return self._bind(seeds, counter, logits, mask, 0, action, log_prob, first_row, greedy)


class NormalSampler(_Sampler):
    """Draws actions with independent normal components.

    Args:
        size: number of components.
        device: ``"cpu"``, ``"cuda"`` or ``"cuda:k"``.

    Raises:
        ValueError: no component, or another device.
        RuntimeError, ImportError: it cannot be compiled on this machine; the message says why.
    """

    _kernel = "normal"

    def __init__(self, size: int, device: str | torch.device = "cpu") -> None:
        if size < 1:
            raise ValueError(f"size must be at least 1, not {size}.")
        self.size = size
        super().__init__(normal_code(size), device)

    def bind(
        self,
        seeds: Tensor,
        counter: Tensor,
        mean: Tensor,
        log_std: Tensor,
        action: Tensor,
        log_prob: Tensor,
        first_row: int = 0,
        greedy: bool = False,
    ) -> Call:
        """Prepares a draw for these tensors, which are checked here and nowhere else.

        The logarithm is that of the density at the float32 action, as whoever evaluates the action later sees it.

        Args:
            seeds: int64 (M,).
            counter: int64 (1,).
            mean: float32 (M, R, size), contiguous.
            log_std: float32 (M, size), contiguous in its last axis: logarithms of the standard deviations.
            action: float32 (M, R, size), contiguous in its last axis; is written.
            log_prob: float32 (M, R); is written: the sum over the components of the log-density.
            first_row: number of the first row of each member.
            greedy: take the mean.

        Returns:
            The draw: ``draw(offset=0)`` fills ``action`` and ``log_prob``. It is made for the memory that the tensors
            have now, which it keeps alive, and for torch's present number of threads.

        Raises:
            TypeError: a wrong dtype.
            ValueError: a wrong shape, device or stride.
        """
        members, rows, _ = shape_of("mean", mean, f"members, rows, {self.size}")
        check("mean", mean, torch.float32, (members, rows, self.size), self.device)
        check("log_std", log_std, torch.float32, (members, self.size), self.device, strided=1)
        check("action", action, torch.float32, (members, rows, self.size), self.device, strided=2)
        return self._bind(seeds, counter, mean, log_std, log_std.stride(0), action, log_prob, first_row, greedy)


# ---- shuffling ----


def bind_shuffle(seeds: Tensor, counter: Tensor, counts: Tensor, out: Tensor) -> Call:
    """Prepares to fill each member's row with a random permutation of ``0 .. counts[m] - 1`` and then with -1.

    Source: Mitchell, Stokes, Frank and Holmes, "Bandwidth-optimal random shuffling for GPUs", 2022.

    Args:
        seeds: int64 (M,).
        counter: int64 (1,).
        counts: int64 (M,), on the device: how many elements each member permutes; more than n count as n.
        out: int64 (M, n), contiguous in its last axis, n <= 2**31.

    Returns:
        ``shuffle(offset)`` fills ``out``; the offset is added to the counter.

    Raises:
        TypeError: a wrong dtype.
        ValueError: a wrong shape, device or stride.
    """
    members, width = shape_of("out", out, "members, elements")
    device = device_name(out.device)
    check("out", out, torch.int64, (members, width), device, strided=1)
    check("seeds", seeds, torch.int64, (members,), device)
    check("counter", counter, torch.int64, (1,), device)
    check("counts", counts, torch.int64, (members,), device)
    if width > 1 << 31:
        raise ValueError(f"out must have at most 2**31 columns, not {width}.")
    arguments: list[Word] = [members * width, width, seeds, counter, counts, out, out.stride(0)]
    return prepare(_tools(device), "shuffle", arguments)


# ---- scanning ----


def scan(x: Tensor, decay: Tensor) -> Tensor:
    """The discounted sum ``y[t] = x[t] + decay[t] * y[t - 1]`` along the first axis, with ``y[0] = x[0]``.

    Multiplication and addition are rounded one after the other, as in torch.

    Args:
        x: float32 (T, ...), contiguous.
        decay: float32, contiguous, of the same shape; its first row does not count.

    Returns:
        float32 (T, ...).

    Raises:
        TypeError: a wrong dtype.
        ValueError: a wrong shape or device, or a tensor that is not contiguous.
    """
    if not isinstance(x, Tensor) or x.dim() == 0:
        raise TypeError(f"x must be a torch tensor with at least one axis, not {x!r}.")
    device = device_name(x.device)
    for name, tensor in (("x", x), ("decay", decay)):
        check(name, tensor, torch.float32, x.shape, device)
    out, columns = torch.empty_like(x), x[0].numel() if len(x) else 0
    prepare(_tools(device), "scan", [columns, len(x), x, decay, out])(0)
    return out


def gae(
    rewards: Tensor,
    values: Tensor,
    acting: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    final_values: Tensor | None,
    gamma: float | Tensor,
    gae_lambda: float | Tensor,
    waits: bool = False,
) -> tuple[Tensor, Tensor]:
    """Advantages, and which rows are transitions; see `baselines.train.advantages`, whose arguments it takes.

    Raises:
        TypeError: a wrong dtype.
        ValueError: a wrong shape or device.
    """
    device, (steps, *shape) = device_name(rewards.device), rewards.shape

    def whole(x: float | Tensor) -> Tensor:
        return torch.as_tensor(x, dtype=torch.float32, device=rewards.device).expand(shape).contiguous()

    rewards, values, acting = rewards.contiguous(), values.contiguous(), acting.contiguous()
    terminated, truncated = terminated.contiguous(), truncated.contiguous()
    final_values = None if final_values is None else final_values.contiguous()
    check("rewards", rewards, torch.float32, (steps, *shape), device)
    check("values", values, torch.float32, (steps + 1, *shape), device)
    check("acting", acting, torch.bool, (steps + 1, *shape), device)
    check("terminated", terminated, torch.bool, (steps, *shape), device)
    check("truncated", truncated, torch.bool, (steps, *shape), device)
    if final_values is not None:
        check("final_values", final_values, torch.float32, (steps, *shape), device)
    discount, decay = whole(gamma), whole(gamma * gae_lambda)
    advantage, valid = torch.empty_like(rewards), torch.empty_like(terminated)
    arguments: list[Word] = [discount.numel() if steps else 0, steps, int(waits), rewards, values, acting, terminated]
    arguments += [truncated, 0 if final_values is None else final_values, discount, decay, advantage, valid]
    prepare(_tools(device), "gae", arguments)(0)
    return advantage, valid


# ---- optimising ----


def bind_adam(
    parameters: Tensor, gradient: Tensor, momentum: Tensor, square: Tensor, factor: Tensor, rate: Tensor, count: Tensor
) -> Call:
    """Prepares a step of Adam for the parameters of many members (Kingma, Ba 2015, algorithm 1; epsilon 1e-5).

    Args:
        parameters: float32 (M, P), contiguous; is changed.
        gradient: float32 (M, P), contiguous.
        momentum: float32 (M, P), contiguous, first 0; is changed.
        square: float32 (M, P), contiguous, first 0; is changed.
        factor: float32 (M, 1), by which the gradients are multiplied.
        rate: float32 (M, 1), learning rates.
        count: float32 (M,), the numbers of steps, this one included.

    Returns:
        The step, without an argument.

    Raises:
        TypeError: a wrong dtype.
        ValueError: a wrong shape or device, or a tensor that is not contiguous.
    """
    shape_of("parameters", parameters, "members, parameters")
    members, size = parameters.shape
    device = device_name(parameters.device)
    for name, x in {"parameters": parameters, "gradient": gradient, "momentum": momentum, "square": square}.items():
        check(name, x, torch.float32, (members, size), device)
    for name, x, shape in (
        ("factor", factor, (members, 1)),
        ("rate", rate, (members, 1)),
        ("count", count, (members,)),
    ):
        check(name, x, torch.float32, shape, device)
    arguments: list[Word] = [members * size, size, parameters, gradient, momentum, square, factor, rate, count]
    return prepare(_tools(device), "adam", arguments)
