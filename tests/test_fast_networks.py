"""The networks of CPUs and of GPUs against the same layers in plain torch, in float64."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from baselines.fast import dense, fused  # noqa: E402

MLPS = pytest.mark.parametrize("mlp", [fused.mlp, dense.mlp], ids=["CPU", "GPU"])

SHAPES = [
    (4, 64, 64, 2),
    (4, 64, 64, 1),
    (5, 30, 17),
    (7, 3),
    (1, 1, 1, 1),
    (4, 6, 2, 5, 4),
    (3, 16, 64),
    (33, 100, 128, 18),
]
ROUNDING = 2.0**-24  # of one float32 operation


@pytest.fixture
def threads() -> Iterator[Any]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def draw(*shape: int, scale: float = 1.0) -> Any:
    rng = np.random.default_rng(list(shape))
    return torch.from_numpy((rng.standard_normal(shape) * scale).astype(np.float32))


def layers(shape: tuple[int, ...], members: int = 1) -> tuple[list[Any], list[Any]]:
    """Weights and biases as leaves that are views of one tensor, as those of a population are."""
    sizes = [size for n, m in itertools.pairwise(shape) for size in (n * m, m)]
    flat = draw(members, sum(sizes)).clamp_(-1, 1)
    weights, biases = fused.views(flat, (shape,))[0]
    for weight in weights:
        weight *= weight.shape[1] ** -0.5
    return [w.detach().requires_grad_() for w in weights], [b.detach().requires_grad_() for b in biases]


def plain(x: Any, weights: list[Any], biases: list[Any], activation: str = "tanh", activate_last: bool = False) -> Any:
    for k, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        x = torch.baddbmm(bias, x, weight)
        if activate_last or k + 1 < len(weights):
            x = torch.tanh(x) if activation == "tanh" else torch.relu(x)
    return x


def assert_close(ours: Any, truth: Any, terms: int) -> None:
    """A sum of n terms rounds n times, by 2^-24 of a partial sum; those are about 1, like what is drawn, or less
    than the largest result."""
    assert ours.shape == truth.shape
    assert ours.dtype is torch.float32
    if truth.numel():
        error = (ours.detach().double() - truth.detach()).abs().max().item()
        assert error <= terms * ROUNDING * max(truth.detach().abs().max().item(), 1.0)


def check(x: Any, weights: list[Any], biases: list[Any], *options: Any, mlp: Any = fused.mlp) -> None:
    leaves = [t for t in (x, *weights, *biases) if t.requires_grad]
    ours = mlp(x, weights, biases, *options)
    grad = draw(*ours.shape)
    truth_leaves = [t.detach().double().requires_grad_(t.requires_grad) for t in (x, *weights, *biases)]
    count = len(weights)
    truth = plain(truth_leaves[0], truth_leaves[1 : 1 + count], truth_leaves[1 + count :], *options)
    terms = sum(w.shape[1] + 6 for w in weights)  # 6: an activation and its derivative
    assert_close(ours, truth, terms)
    terms += sum(w.shape[2] for w in weights)
    truths = torch.autograd.grad(truth, [t for t in truth_leaves if t.requires_grad], grad.double())
    for leaf, mine, right in zip(leaves, torch.autograd.grad(ours, leaves, grad), truths, strict=True):
        assert_close(mine, right, terms + (0 if leaf is x else x.shape[1]))


@MLPS
@pytest.mark.parametrize("rows", [0, 1, 97, 512])
@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_matches_torch(shape: tuple[int, ...], members: int, rows: int, mlp: Any) -> None:
    for activate_last in (False, True):
        check(draw(members, rows, shape[0]).requires_grad_(), *layers(shape, members), "tanh", activate_last, mlp=mlp)


@MLPS
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_relu_matches_torch(shape: tuple[int, ...], mlp: Any) -> None:
    for activate_last in (False, True):
        weights, biases = layers(shape)
        # whole numbers, so that no rounding decides on which side of 0 a unit is
        for t in (*weights, *biases):
            t.data.mul_(4).round_().clamp_(-2, 2)
        check((draw(1, 50, shape[0]) * 2).round().requires_grad_(), weights, biases, "relu", activate_last, mlp=mlp)


def test_wide_layers() -> None:
    check(draw(1, 40, 512), *layers((512, 300, 512)))


def test_tanh() -> None:
    # fitted to a relative error of 6e-9; a dozen roundings, which mostly cancel, leave 3e-7, and 4e-7 is the promise
    x = torch.cat(
        [torch.linspace(-12, 12, 400_001), torch.logspace(-30, 1, 50_000), torch.tensor([torch.inf, -torch.inf])]
    )
    one, zero = torch.ones(1, 1, 1), torch.zeros(1, 1, 1)
    y = fused.mlp(x.view(1, -1, 1), [one], [zero], "tanh", True).flatten()
    assert (y.double() - torch.tanh(x.double())).abs().max() < 4e-7
    assert y.abs().max() <= 1
    small = x.abs() > 1e-30
    assert (y[small].double() / torch.tanh(x[small].double()) - 1).abs().max() < 4e-7
    nan = fused.mlp(torch.full((1, 1, 1), torch.nan), [one], [zero], "tanh", True)
    assert nan.isnan().all()


@pytest.mark.parametrize("view", ["expanded", "sliced", "transposed"])
def test_strides_of_x(view: str) -> None:
    x = {
        "expanded": draw(1, 90, 6).requires_grad_().expand(3, 90, 6),
        "sliced": draw(3, 180, 9).requires_grad_()[:, ::2, 2:8],
        "transposed": draw(3, 6, 90).requires_grad_().transpose(1, 2),
    }[view]
    check(x, *layers((6, 20, 3), 3))


def test_expanded_gradient() -> None:
    weights, biases = layers((4, 8, 20))
    grads = torch.autograd.grad(fused.mlp(draw(1, 9, 4), weights, biases).sum(), [*weights, *biases])
    truth = torch.autograd.grad(plain(draw(1, 9, 4), weights, biases).sum(), [*weights, *biases])
    for mine, right in zip(grads, truth, strict=True):
        assert_close(mine, right.double(), 9 + 8 + 20 + 12)


@pytest.mark.parametrize("rows", [64, 5000])
@pytest.mark.parametrize("members", [1, 5])
def test_bits_do_not_depend_on_threads(threads: Any, members: int, rows: int) -> None:
    results = []
    for count in (1, 2, 2, 3):
        threads(count)
        weights, biases = layers((4, 64, 64, 2), members)
        x = draw(members, rows, 4).requires_grad_()
        y = fused.mlp(x, weights, biases)
        results.append([y, *torch.autograd.grad(y, [x, *weights, *biases], draw(*y.shape))])
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_without_gradients_the_same() -> None:
    weights, biases = layers((4, 32, 32, 2), 2)
    y = fused.mlp(draw(2, 300, 4), weights, biases)
    with torch.no_grad():
        assert torch.equal(fused.mlp(draw(2, 300, 4), weights, biases), y)
    with torch.inference_mode():
        free = fused.mlp(draw(2, 300, 4), weights, biases)
    assert y.requires_grad
    assert not free.requires_grad
    assert torch.equal(free, y.detach())


TOWERS = ((4, 64, 64, 2), (4, 32, 1))


def tower_parameters(members: int = 1) -> Any:
    return draw(members, sum((n + 1) * m for shape in TOWERS for n, m in itertools.pairwise(shape)), scale=0.3)


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_prepared_towers_give_the_bits_of_mlp(members: int, activation: str) -> None:
    """Outputs, and the gradient of the parameters, which may have others behind them."""
    flat, behind = tower_parameters(members), 3
    wide = torch.cat([flat, torch.zeros(members, behind)], 1)
    ours = fused.Towers(wide, TOWERS, activation)
    for rows in (1, 70, 300):
        x, leaf = draw(members, rows, 4), flat.clone().requires_grad_()
        outs = [torch.empty(members, rows, shape[-1]) for shape in TOWERS]
        saved = ours.workspace(members * rows)
        ours.bind(x, outs, saved)()
        want = [fused.mlp(x, *tower, activation) for tower in fused.views(leaf, TOWERS)]
        assert all(torch.equal(mine, right) for mine, right in zip(outs, want, strict=True))
        gradients, into = [torch.cos(out) for out in outs], torch.full_like(wide, 7.0)
        ours.bind_backward(x, saved, gradients, into)()
        torch.autograd.backward(want, gradients)
        assert torch.equal(into[:, :-behind], leaf.grad)
        assert (into[:, -behind:] == 7).all()


@pytest.mark.parametrize("members", [1, 3])
def test_networks_on_one_leaf(members: int) -> None:
    flat, x = tower_parameters(members).requires_grad_(), draw(members, 500, 4).requires_grad_()
    double, x_double = flat.detach().double().requires_grad_(), x.detach().double().requires_grad_()
    ours = [fused.mlp(x, *tower) for tower in fused.views(flat, TOWERS)]
    truth = [plain(x_double, *tower) for tower in fused.views(double, TOWERS)]
    for mine, right in zip(ours, truth, strict=True):
        assert_close(mine, right, 4 + 64 + 64 + 18)
    for outputs in (ours, truth):
        (outputs[0].square().sum() + outputs[1].sum()).backward()
    assert_close(flat.grad, double.grad, 500 + 2 * (4 + 64 + 64) + 18)
    assert_close(x.grad, x_double.grad, 2 * (4 + 64 + 64) + 18)


@pytest.mark.parametrize("why", ["double", "wide", "deep", "strided weight", "autocast"])
def test_falls_back_to_torch(why: str) -> None:
    shape = {"wide": (4, 513, 2), "deep": (4,) * 6}.get(why, (4, 8, 2))
    x, (weights, biases) = draw(1, 9, 4), layers(shape)
    if why == "double":
        x, weights, biases = x.double(), [w.double() for w in weights], [b.double() for b in biases]
    if why == "strided weight":
        weights[0] = weights[0].detach().transpose(1, 2).contiguous().transpose(1, 2)
    with torch.autocast("cpu", torch.bfloat16, enabled=why == "autocast"):
        assert not fused.available(x, weights, biases)
        assert torch.equal(fused.mlp(x, weights, biases), plain(x, weights, biases))
    assert fused.available(draw(1, 9, 4), *layers((4, 8, 2)))


def test_refuses_a_changed_weight() -> None:
    weights, biases = layers((4, 8, 2))
    y = fused.mlp(draw(1, 3, 4), weights, biases)
    with torch.no_grad():
        weights[1].add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_messages() -> None:
    x, (weights, biases) = draw(1, 3, 4), layers((4, 8, 2))
    with pytest.raises(ValueError, match="no activation 'gelu'; choose one of tanh, relu"):
        fused.mlp(x, weights, biases, "gelu")
    with pytest.raises(ValueError, match="one bias per weight"):
        fused.mlp(x, weights, biases[:1])
    with pytest.raises(ValueError, match=r"x must be \(members, rows, inputs\), not \(3, 4\)"):
        fused.mlp(x[0], weights, biases)
    with pytest.raises(ValueError, match=r"weights\[0\] must be \(1, 3, units\), not \(1, 4, 8\)"):
        fused.mlp(x[:, :, :3], weights, biases)
    with pytest.raises(ValueError, match=r"biases\[1\] must be \(1, 1, 2\), not \(1, 1, 8\)"):
        fused.mlp(x, weights, [biases[0], biases[0]])
    with pytest.raises(ValueError, match="all of the same inputs"):
        fused.Towers(tower_parameters(), ((4, 2), (3, 2)))
