"""Convolutions of a population's CNN on small grids, forward and backward: ours and other forms, in one run, in turns.

    python scripts/bench_conv.py [--grids 10x10x4 11x11x5] [--members 1 16] [--rows 128 1024] [--threads 1] [--repeat 5]

Contestants, each followed by the first dense layer, whose inputs are channel x row x column of the image:

- `ours`: `baselines.train.layers.Network`;
- `groups`: one convolution of all members, a group of channels each, its result copied into the dense layer's order;
- `gather`: patches by one index, multiplied by the kernels (im2col and bmm), channels last;
- `dense`: each convolution as one product with a banded matrix, cells x cells, on grids of up to 16 cells.

Each runs as often as asked for, in turn with the others; CPU seconds of its fastest run count. The ratio is the time of
`groups` over that of the contestant. `mlp` is the dense layer alone, without convolutions.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from baselines.train.allocator import keep_freed_memory
from baselines.train.layers import Network

import torch  # isort: skip
from torch import Tensor  # isort: skip
from torch.nn import functional  # isort: skip

DENSE_CELLS = 16
HIDDEN = 64
Grid = tuple[int, int, int]
Encoder = Callable[[Tensor, Network], Tensor]


def ours(x: Tensor, net: Network) -> Tensor:
    return net(x)[0]


def _first(x: Tensor, net: Network) -> Tensor:
    """(members, rows, channels, cells) through the dense layer."""
    return torch.baddbmm(net.biases[0], x.flatten(2), net.weights[0])


def groups(x: Tensor, net: Network) -> Tensor:
    members = len(x)
    x = x.permute(1, 0, 4, 2, 3).flatten(1, 2)
    for kernel, offset in zip(net.kernels, net.offsets, strict=True):
        filters = kernel.mT.reshape(-1, kernel.shape[1] // 9, 3, 3)
        x = functional.conv2d(x, filters, offset.flatten(), padding=1, groups=members).relu_()
    return _first(x.unflatten(1, (members, -1)).transpose(0, 1).flatten(2), net)


def gather(x: Tensor, net: Network) -> Tensor:
    members, rows, height, width, _ = x.shape
    cells = torch.arange((height + 2) * (width + 2)).view(height + 2, width + 2)
    index = cells.unfold(0, 3, 1).unfold(1, 3, 1).flatten()
    for kernel, offset in zip(net.kernels, net.offsets, strict=True):
        n, m = kernel.shape[1] // 9, kernel.shape[2]
        patches = functional.pad(x, (0, 0, 1, 1, 1, 1)).flatten(2, 3).index_select(2, index)
        patches = patches.view(members, rows * height * width, 9 * n)
        by_cell = kernel.unflatten(1, (n, 9)).transpose(1, 2).flatten(1, 2)
        x = torch.baddbmm(offset, patches, by_cell).relu_().view(members, rows, height, width, m)
    return _first(x.permute(0, 1, 4, 2, 3), net)


def dense(x: Tensor, net: Network) -> Tensor:
    members, _, height, width, _ = x.shape
    x = x.permute(0, 1, 4, 2, 3).flatten(2)
    for kernel, offset in zip(net.kernels, net.offsets, strict=True):
        n, m = kernel.shape[1] // 9, kernel.shape[2]
        units = torch.eye(n * height * width).view(-1, n, height, width).repeat(1, members, 1, 1)
        filters = kernel.mT.reshape(-1, n, 3, 3)
        band = functional.conv2d(units, filters, padding=1, groups=members).unflatten(1, (members, m)).transpose(0, 1)
        x = torch.baddbmm(offset.repeat_interleave(height * width, 2), x, band.flatten(2)).relu_()
    return _first(x, net)


def mlp(x: Tensor, net: Network) -> Tensor:
    return torch.baddbmm(net.biases[0], x.flatten(2), net.weights[0][:, : math.prod(x.shape[2:])])


def contestants(grid: Grid) -> list[Encoder]:
    return [groups, ours, gather, *([dense] if grid[0] * grid[1] <= DENSE_CELLS else []), mlp]


def seconds(encoder: Encoder, x: Tensor, net: Network, backward: bool, count: int) -> float:
    """CPU seconds of one call, forward or both ways."""
    start = time.process_time()
    for _ in range(count):
        if not backward:
            with torch.no_grad():
                encoder(x, net)
            continue
        for parameter in net.parameters():
            parameter.grad = None
        encoder(x, net).sum().backward()
    return (time.process_time() - start) / count


def check(grid: Grid, net: Network, x: Tensor) -> None:
    """The contestants compute the same."""
    with torch.no_grad():
        want = groups(x, net)
        for encoder in contestants(grid):
            if encoder is not mlp:
                torch.testing.assert_close(encoder(x, net), want, rtol=1e-3, atol=1e-3)


def measure(grid: Grid, members: int, rows: int, channels: Sequence[int], repeat: int) -> None:
    net = Network([torch.Generator().manual_seed(k) for k in range(members)], grid, (), [(HIDDEN, 1.0)], channels)
    x = (torch.rand(members, rows, *grid) < 0.2).float()
    check(grid, net, x[:, : min(rows, 256)])
    for backward in (False, True):
        best = {encoder: math.inf for encoder in contestants(grid)}
        for _ in range(repeat):
            for encoder in best:
                best[encoder] = min(best[encoder], seconds(encoder, x, net, backward, max(1, 512 // (members * rows))))
        told = "  ".join(f"{e.__name__} {t * 1e3:.2f} ms x{best[groups] / t:.2f}" for e, t in best.items())
        way = "both ways" if backward else "forward"
        print(f"{'x'.join(map(str, grid)):9} {members:3} x {rows:5} rows  {way:9}  {told}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grids", nargs="+", default=["4x4x3", "6x7x2", "10x10x4", "10x10x10", "11x11x5"])
    parser.add_argument("--members", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--rows", type=int, nargs="+", default=[16, 128, 1024])
    parser.add_argument("--channels", default="16,32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    keep_freed_memory()
    for text in args.grids:
        height, width, planes = map(int, text.split("x"))
        for members in args.members:
            for rows in args.rows:
                measure((height, width, planes), members, rows, list(map(int, args.channels.split(","))), args.repeat)


if __name__ == "__main__":
    main()
