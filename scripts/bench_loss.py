"""PPO's loss with its gradients by the networks' outputs: as one kernel, and as torch operations forth and back.

    python scripts/bench_loss.py [--rows 128 2048 32768] [--threads 1 2] [--device cpu] [--choices 4] [--seconds 1]

Both take turns, many times over; shown are the median time of a call of each and the median of their ratios. The way
back through the networks is the same for both and not measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gymnasium import spaces

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from baselines.fast.losses import Formula, Loss
from baselines.fast.trace import trace
from baselines.ppo import PPO
from baselines.train.actions import Actions
from baselines.train.args import PPOArgs
from baselines.train.loss import Row

import torch  # isort: skip
from torch import Tensor  # isort: skip

COLUMNS = ("advantage", "target", "old_value", "old_log_prob")

HYPER = ("clip_eps", "vf_coef", "ent_coef")


@dataclasses.dataclass
class Run:
    """What the loss reads of its trainer."""

    args: PPOArgs


def by_torch(
    loss: Callable[[Row, Any], tuple[Tensor, dict[str, Tensor]]], actions: Actions, out: Tensor, value: Tensor,
    action: Tensor, columns: Tensor, weight: Tensor, hyper: Tensor,
):  # fmt: skip
    """The gradients, and the members' means."""
    out, value = out.requires_grad_(), value.requires_grad_()
    log_prob, entropy = actions.evaluate(out, None, None, action)
    known = dict(zip(COLUMNS, columns.unbind(-1), strict=True))
    rates = types.SimpleNamespace(**dict(zip(HYPER, hyper.split(1, 1), strict=True)))
    rows, numbers = loss(Row(log_prob=log_prob, entropy=entropy, value=value, **known), rates)
    means = (torch.stack([rows.detach(), *(x.detach().float() for x in numbers.values())]) * weight).sum(-1)
    return torch.autograd.grad((rows * weight).sum(), (out, value)), means


def compare(first: Callable[[], object], second: Callable[[], object], seconds: float, device: str):
    """Median times of both in microseconds, and the median ratio."""

    def time_of(call: Callable[[], object], repeats: int) -> float:
        begin = time.perf_counter()
        for _ in range(repeats):
            call()
        if device != "cpu":
            torch.cuda.synchronize()
        return (time.perf_counter() - begin) / repeats * 1e6

    for call in (first, second):
        time_of(call, 3)
    repeats = max(1, int(5000 / time_of(first, 3)))
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        times.append((time_of(first, repeats), time_of(second, repeats)))
    a, b = zip(*times, strict=True)
    return statistics.median(a), statistics.median(b), statistics.median(x / y for x, y in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[128, 2048, 32768])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--choices", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1.0)
    args = parser.parse_args()
    actions = Actions(spaces.Discrete(args.choices), args.device)
    by_row = types.MethodType(PPO.loss, Run(PPOArgs("CartPole-v1")))
    traced = trace(by_row, COLUMNS, HYPER)
    assert traced is not None
    loss = Loss(Formula(traced.code, COLUMNS, HYPER, traced.numbers, actions), args.device)
    print("threads    rows      torch     kernel   ratio")
    for threads in args.threads:
        torch.set_num_threads(threads)
        for rows in args.rows:
            out, value = (
                torch.randn(1, rows, args.choices, device=args.device),
                torch.randn(1, rows, device=args.device),
            )
            action = torch.randint(args.choices, (1, rows, 1), dtype=torch.int32, device=args.device)
            columns = torch.randn(1, rows, 4, device=args.device)
            weight = torch.full((1, rows), 1 / rows, device=args.device)
            hyper, log_std = torch.tensor([[0.2, 0.5, 0.01]], device=args.device), torch.zeros(1, 0, device=args.device)
            theirs, ours, ratio = compare(
                lambda o=out, v=value, a=action, c=columns, w=weight, h=hyper: by_torch(
                    by_row, actions, o, v, a, c, w, h
                ),
                lambda o=out, v=value, a=action, c=columns, w=weight, h=hyper, s=log_std: loss(
                    o, v, s, None, a, c, w, h
                ).numbers.sum(1),
                args.seconds,
                args.device,
            )
            print(f"{threads:7} {rows:7} {theirs:8.1f} us {ours:8.1f} us {ratio:7.1f}")


if __name__ == "__main__":
    main()
