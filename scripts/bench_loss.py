"""PPO's loss with its gradients by the networks' outputs: as one kernel, and as torch operations forth and back.

    python scripts/bench_loss.py [--rows 128 2048 32768] [--threads 1 2] [--device cpu] [--choices 4] [--seconds 1]

Both take turns, many times over; shown are the median time of a call of each and the median of their ratios. The way
back through the networks is the same for both and not measured.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as in training

import torch
from gymnasium import spaces
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from baselines.fast.losses import Formula, Loss
from baselines.train.actions import Actions

COLUMNS = ("advantage", "target", "old_value", "old_log_prob")
HYPER = ("clip_eps", "vf_coef", "ent_coef")
NUMBERS = ("policy_loss", "value_loss", "entropy", "kl", "clipped")


def by_torch(
    actions: Actions, out: Tensor, value: Tensor, action: Tensor, columns: Tensor, weight: Tensor, hyper: Tensor
):
    """The gradients, and the members' means."""
    out, value = out.requires_grad_(), value.requires_grad_()
    clip_eps, vf_coef, ent_coef = (hyper[:, k : k + 1] for k in range(3))
    advantage, target, _, old_log_prob = columns.unbind(-1)

    def mean(x: Tensor) -> Tensor:
        return (x * weight).sum(1, keepdim=True)

    log_prob, entropy = actions.evaluate(out, None, None, action)
    change = log_prob - old_log_prob
    ratio = change.exp()
    clipped = ratio.clamp(1 - clip_eps, 1 + clip_eps)
    policy_loss = -mean(torch.minimum(advantage * ratio, advantage * clipped))
    value_loss, entropy = 0.5 * mean((value - target).square()), mean(entropy)
    loss = policy_loss + vf_coef * value_loss - ent_coef * entropy
    with torch.no_grad():
        numbers = (loss, policy_loss, value_loss, entropy, mean(ratio - 1 - change),
                   mean(((ratio - 1).abs() > clip_eps).float()))  # fmt: skip
    return torch.autograd.grad(loss.sum(), (out, value)), numbers


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
    loss = Loss(Formula("ppo.cuh", COLUMNS, HYPER, NUMBERS, actions, False, {"clip_values": False}), args.device)
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
                lambda o=out, v=value, a=action, c=columns, w=weight, h=hyper: by_torch(actions, o, v, a, c, w, h),
                lambda o=out, v=value, a=action, c=columns, w=weight, h=hyper, s=log_std: loss(
                    o, v, s, None, a, c, w, h
                ).numbers.sum(1),
                args.seconds,
                args.device,
            )
            print(f"{threads:7} {rows:7} {theirs:8.1f} us {ours:8.1f} us {ratio:7.1f}")


if __name__ == "__main__":
    main()
