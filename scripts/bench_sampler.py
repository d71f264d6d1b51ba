"""The action sampler of the trainers and torch side by side, in one run, taking turns.

    python scripts/bench_sampler.py [--rows 4 1024 65536] [--device cpu cuda] [--seconds 0.5] [--threads 1] [--json]

Each contestant draws actions from the same logits and gives their log-probabilities: ours, torch by hand (log_softmax,
Gumbel noise, argmax, gather) and torch.distributions.Categorical; and likewise actions with a number of normal
components from the same means. The ratio is their median time over ours.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from baselines.fast.kernels import CategoricalSampler, NormalSampler
from gpuzoo.core.backend import make_backend
from gpuzoo.tools import provenance
from gpuzoo.tools.clocks import Clock, take_turns

import torch  # isort: skip
from torch import Tensor  # isort: skip

#: choices of each component, or the number of normal components
SPACES: tuple[tuple[int, ...] | int, ...] = ((2,), (8,), (5, 5), 1, 6)
Space = tuple[int, ...] | int
Work = Callable[[], Any]


def ours(space: Space, x: Tensor) -> Work:
    rows, device = len(x), x.device
    seeds, counter = (torch.zeros(1, dtype=torch.int64, device=device) for _ in range(2))
    out, log_prob = x.view(1, rows, -1), torch.empty(1, rows, device=device)
    if isinstance(space, int):
        action, log_std = torch.empty(1, rows, space, device=device), torch.zeros(1, space, device=device)
        return NormalSampler(space, device).bind(seeds, counter, out, log_std, action, log_prob)
    action = torch.empty(1, rows, len(space), dtype=torch.int32, device=device)
    return CategoricalSampler(space, device=device).bind(seeds, counter, out, None, action, log_prob)


def by_hand(space: Space, x: Tensor) -> Work:
    noise = torch.empty_like(x)
    log_std = torch.zeros_like(x[0])

    def choices() -> Tensor:
        log_probs = torch.log_softmax(x, -1)
        action = (log_probs - noise.exponential_().log_()).argmax(-1, keepdim=True)
        return log_probs.gather(-1, action).sum((-2, -1))

    def normal() -> tuple[Tensor, Tensor]:
        action = torch.addcmul(x, log_std.exp(), noise.normal_())
        return action, (-0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi)).sum(-1)

    return normal if isinstance(space, int) else choices


def distributions(space: Space, x: Tensor) -> Work:
    log_std = torch.zeros_like(x[0])

    def work() -> Tensor:
        if isinstance(space, int):
            distribution = torch.distributions.Normal(x, log_std.exp(), validate_args=False)
        else:
            distribution = torch.distributions.Categorical(logits=x, validate_args=False)
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


def described(space: Space) -> str:
    return f"Box({space})" if isinstance(space, int) else "x".join(map(str, space))


@torch.inference_mode()
def compare(space: Space, rows: int, device: str, seconds: float) -> list[dict[str, Any]]:
    shape = (space,) if isinstance(space, int) else (len(space), max(space))
    x = torch.randn(rows, *shape, device=device)
    clocks = [Clock(repeated(make(space, x), device), seconds / 8) for make in CONTESTANTS.values()]
    take_turns(clocks, 8)
    return [
        {
            "kind": "sampler",
            "name": name,
            "device": device,
            "actions": described(space),
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
        machine = provenance.describe(make_backend(device)) | {"torch": torch.__version__, "threads": chosen.threads}
        if chosen.json:
            print(json.dumps(machine), flush=True)
        else:
            print(f"{machine['gpu'] or machine['cpu']}, torch {torch.__version__}, {machine['threads']} CPU threads")
            print(f"{'':20} {'actions':>8} {'rows':>7} {'microseconds':>13} {'ours is faster by':>18}")
        for space in SPACES:
            for rows in chosen.rows:
                for row in compare(space, rows, device, chosen.seconds):
                    if chosen.json:
                        print(json.dumps(row), flush=True)
                        continue
                    ratio = row["ours_is_faster_by"]
                    print(f"{row['name']:20} {row['actions']:>8} {rows:7} {row['microseconds']:13.1f} {ratio:18.2f}")


if __name__ == "__main__":
    main()
