"""Actor and critic side by side: the networks of baselines/fast/fused.py and eager torch, in one run, taking turns.

    python scripts/bench_mlp.py [--rows 4 128 1024 32768] [--shapes 4-64-64-2 4-64-64-1] [--threads 2] [--repeat 20]

Two contestants evaluate the same networks on the same rows: `mlp` (one call per network) and torch (baddbmm and tanh).
Each runs as often as asked for, in turn with the other, and its fastest run counts. Forward is without gradients, "both
ways" is forward and backward into ``.grad``. The ratio is torch's time over ours.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from baselines.fast import fused  # before torch: it tells threads that wait to give their core away

import torch  # isort: skip
from torch import Tensor  # isort: skip

Shapes = tuple[tuple[int, ...], ...]
Networks = Callable[[Tensor], list[Tensor]]


def contestants(shapes: Shapes) -> dict[str, tuple[Networks, list[Tensor]]]:
    """Of each its networks and the leaves that they depend on."""
    torch.manual_seed(0)
    flat = torch.randn(1, sum((n + 1) * m for shape in shapes for n, m in itertools.pairwise(shape))) * 0.1
    layers = [
        ([w.clone().requires_grad_() for w in weights], [b.clone().requires_grad_() for b in biases])
        for weights, biases in fused.views(flat, shapes)
    ]
    leaves = [t for weights, biases in layers for t in (*weights, *biases)]

    def eager(x: Tensor, weights: list[Tensor], biases: list[Tensor]) -> Tensor:
        for k, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            x = torch.baddbmm(bias, x, weight)
            x = torch.tanh(x) if k + 1 < len(weights) else x
        return x

    return {
        "mlp": (lambda x: [fused.mlp(x, *tower) for tower in layers], leaves),
        "torch": (lambda x: [eager(x, *tower) for tower in layers], leaves),
    }


def forward(networks: Networks, leaves: list[Tensor], x: Tensor) -> Callable[[], None]:
    def run() -> None:
        with torch.no_grad():
            networks(x)

    return run


def both_ways(networks: Networks, leaves: list[Tensor], x: Tensor) -> Callable[[], None]:
    grads = [torch.ones_like(y) for y in networks(x)]

    def run() -> None:
        for leaf in leaves:
            leaf.grad = None
        torch.autograd.backward(networks(x), grads)

    return run


def seconds(run: Callable[[], None], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - start) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[4, 128, 1024, 32768])
    parser.add_argument("--shapes", nargs="+", default=["4-64-64-2", "4-64-64-1"])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeat", type=int, default=20)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    shapes = tuple(tuple(map(int, shape.split("-"))) for shape in args.shapes)
    found = contestants(shapes)
    print(f"{' and '.join(args.shapes)}, {args.threads} threads; microseconds, million rows per second, ratio")
    for what in (forward, both_ways):
        for rows in args.rows:
            x = torch.randn(1, rows, shapes[0][0])
            runs = {name: what(*networks, x) for name, networks in found.items()}
            for run in runs.values():
                run()  # the first backward pass of a process imports half a second's worth of torch's modules
            best = dict.fromkeys(runs, float("inf"))
            for _ in range(args.repeat):
                for name, run in runs.items():
                    best[name] = min(best[name], seconds(run, max(1, 1000 // rows)))
            for name, time_taken in best.items():
                print(
                    f"{what.__name__:10} {rows:6} rows  {name:7} {time_taken * 1e6:10.1f} us "
                    f"{rows / time_taken / 1e6:7.2f} M/s  x{best['torch'] / time_taken:.1f}"
                )


if __name__ == "__main__":
    main()
