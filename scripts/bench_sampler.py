"""The action sampler of the trainers and torch side by side, in one run, taking turns.

    python scripts/bench_sampler.py [--rows 4 1024 65536] [--device cpu cuda] [--seconds 0.5] [--threads 1] [--json]

Each contestant draws actions from the same logits and gives their log-probabilities: ours, torch by hand (log_softmax,
Gumbel noise, argmax, gather) and torch.distributions.Categorical. The ratio is their median time over ours.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from baselines.kernels import CategoricalSampler
from gpuzoo import bench
from gpuzoo.core.backend import make_backend

SPACES = ((2,), (8,), (5, 5))
Work = Callable[[], Any]


def ours(nvec: Sequence[int], logits: Tensor) -> Work:
    rows, device = len(logits), logits.device
    action = torch.empty(1, rows, len(nvec), dtype=torch.int32, device=device)
    seeds, counter = (torch.zeros(1, dtype=torch.int64, device=device) for _ in range(2))
    log_prob = torch.empty(1, rows, device=device)
    return CategoricalSampler(nvec, device=device).bind(
        seeds, counter, logits.view(1, rows, -1), None, action, log_prob
    )


def by_hand(nvec: Sequence[int], logits: Tensor) -> Work:
    noise = torch.empty_like(logits)

    def work() -> Tensor:
        log_probs = torch.log_softmax(logits, -1)
        action = (log_probs - noise.exponential_().log_()).argmax(-1, keepdim=True)
        return log_probs.gather(-1, action).sum((-2, -1))

    return work


def distributions(nvec: Sequence[int], logits: Tensor) -> Work:
    def work() -> Tensor:
        distribution = torch.distributions.Categorical(logits=logits, validate_args=False)
        return distribution.log_prob(distribution.sample()).sum(-1)

    return work


CONTESTANTS = {"ours": ours, "torch by hand": by_hand, "torch.distributions": distributions}


def repeated(work: Work, device: str) -> Callable[[int], None]:
    def loop(count: int) -> None:
        for _ in range(count):
            work()
        if device != "cpu":
            torch.cuda.synchronize(device)

    return loop


@torch.inference_mode()
def compare(nvec: Sequence[int], rows: int, device: str, seconds: float) -> list[dict[str, Any]]:
    logits = torch.randn(rows, len(nvec), max(nvec), device=device)
    clocks = [bench.Clock(repeated(make(nvec, logits), device), seconds / 8) for make in CONTESTANTS.values()]
    bench.take_turns(clocks, 8)
    return [
        {
            "kind": "sampler",
            "name": name,
            "device": device,
            "nvec": list(nvec),
            "rows": rows,
            "microseconds": clock.seconds * 1e6,
            "ours_is_faster_by": clock.seconds / clocks[0].seconds,
            "spread": clock.spread,
        }
        for name, clock in zip(CONTESTANTS, clocks, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[4, 1024, 65536])
    parser.add_argument("--device", nargs="+", default=["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"])
    parser.add_argument("--seconds", type=float, default=0.5, help="for each contestant at each size")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of all contestants")
    parser.add_argument("--json", action="store_true", help="rows of JSON")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    for device in chosen.device:
        machine = bench.machine(make_backend(device)) | {"torch": torch.__version__, "threads": chosen.threads}
        if chosen.json:
            print(json.dumps(machine), flush=True)
        else:
            print(f"{machine['gpu'] or machine['cpu']}, torch {torch.__version__}, {machine['threads']} CPU threads")
            print(f"{'':20} {'choices':>8} {'rows':>7} {'microseconds':>13} {'ours is faster by':>18}")
        for nvec in SPACES:
            for rows in chosen.rows:
                for row in compare(nvec, rows, device, chosen.seconds):
                    if chosen.json:
                        print(json.dumps(row), flush=True)
                        continue
                    choices = "x".join(map(str, nvec))
                    ratio = row["ours_is_faster_by"]
                    print(f"{row['name']:20} {choices:>8} {rows:7} {row['microseconds']:13.1f} {ratio:18.2f}")


if __name__ == "__main__":
    main()
