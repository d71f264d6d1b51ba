"""A loss that is written in torch becomes a kernel: the same losses and gradients as autograd's, or none at all."""

from __future__ import annotations

import dataclasses
import types
from typing import Any

import pytest
from gymnasium import spaces
from test_docs import DOCS, blocks

torch = pytest.importorskip("torch")

from baselines.fast import losses, trace  # noqa: E402
from baselines.train import actions  # noqa: E402

pytestmark = pytest.mark.rotates  # about these modules of the trainers

COLUMNS = ("advantage", "target", "old_value", "old_log_prob")
HYPER = ("clip_eps", "vf_coef", "ent_coef")


def ppo(row: Any, hyper: Any) -> Any:
    log_ratio = row.log_prob - row.old_log_prob
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - hyper.clip_eps, 1 + hyper.clip_eps)
    policy_loss = -torch.minimum(row.advantage * ratio, row.advantage * clipped)
    value_loss = 0.5 * (row.value - row.target).square()
    numbers = {"policy_loss": policy_loss, "kl": ratio - 1 - log_ratio, "far": (ratio - 1).abs() > hyper.clip_eps}
    return policy_loss + hyper.vf_coef * value_loss - hyper.ent_coef * row.entropy, numbers


def spo(row: Any, hyper: Any) -> Any:
    """Simple policy optimisation (Xie et al. 2024)."""
    ratio = torch.exp(row.log_prob - row.old_log_prob)
    penalty = row.advantage.abs() / (2 * hyper.clip_eps) * (ratio - 1) ** 2
    return penalty - row.advantage * ratio + (row.value - row.target) ** 2, {}


def rational(row: Any, hyper: Any) -> Any:
    a, b = row.log_prob / (2 + row.value * row.value), 1 / (1 + row.entropy**2)
    return (a / b - row.value / hyper.vf_coef) * 3 - (-b) / (a.square() + 1.5), {"a": a, "b": b}


def functions(row: Any, hyper: Any) -> Any:
    x = row.log_prob + row.value
    found = torch.tanh(x) + x.sigmoid() * torch.nn.functional.relu(x) + x.abs() + torch.log(x.square() + 1)
    return found + (x * x + 0.5).sqrt() + row.target.square() + row.advantage.tanh() * x, {"x": x.detach()}


def choices(row: Any, hyper: Any) -> Any:
    good, near = row.advantage > 0, (row.value - row.target).abs() <= hyper.vf_coef
    error = torch.where(near & ~good, (row.value - row.target).square(), (row.value - row.target).abs())
    error = torch.where(good | near, error, torch.maximum(error, row.value)) + good * row.log_prob
    bounded = row.entropy.clamp(max=1.0) + row.value.clamp(min=row.old_value) - row.log_prob.clip(-2, 2)
    return error + bounded + row.log_prob.detach() * row.value, {"good": good, "three": 3, "near": near.float()}


def only_the_critic(row: Any, hyper: Any) -> Any:
    return (row.value - row.target).square(), {}


def nothing_to_learn(row: Any, hyper: Any) -> Any:
    return row.target - 1, {}


TRACED = (ppo, spo, rational, functions, choices, only_the_critic, nothing_to_learn)


@pytest.mark.parametrize("space", [spaces.Discrete(3), spaces.Box(-1, 1, (2,))], ids=["choices", "Box"])
@pytest.mark.parametrize("loss", TRACED, ids=lambda loss: loss.__name__)
def test_a_traced_loss_has_the_gradients_of_autograd(loss: Any, space: Any) -> None:
    traced = trace.trace(loss, COLUMNS, HYPER)
    assert traced is not None
    meaning, generator = actions.Actions(space), torch.Generator().manual_seed(1)
    fused = losses.Loss(losses.Formula(traced.code, COLUMNS, HYPER, traced.numbers, meaning), "cpu")

    def normal(*shape: int) -> Any:
        return torch.randn(*shape, generator=generator)

    M, B = 2, 200
    out, value = normal(M, B, meaning.outputs).requires_grad_(), normal(M, B).requires_grad_()
    log_std = (0.3 * normal(M, 0 if meaning.discrete else meaning.parts)).requires_grad_()
    action = torch.randint(3, (M, B, 1), generator=generator).int() if meaning.discrete else normal(M, B, 2)
    log_prob, entropy = meaning.evaluate(out, log_std, None, action)
    columns = torch.stack([normal(M, B), normal(M, B), normal(M, B), log_prob.detach() + 0.3 * normal(M, B)], -1)
    weight, hyper = torch.full((M, B), 1 / B), torch.tensor([[0.2, 0.5, 0.01], [0.1, 1.0, 0.1]])

    row = types.SimpleNamespace(log_prob=log_prob, entropy=entropy, value=value)
    vars(row).update(zip(COLUMNS, columns.unbind(-1), strict=True))
    rates = types.SimpleNamespace(**dict(zip(HYPER, hyper.unsqueeze(-1).unbind(1), strict=True)))
    each, numbers = loss(row, rates)
    each = each.expand(M, B)
    if each.requires_grad:
        (each * weight).sum().backward()
    found = fused(out.detach(), value.detach(), log_std.detach(), None, action, columns, weight, hyper)
    noted = torch.stack([torch.as_tensor(x, dtype=torch.float32).expand(M, B) for x in (each, *numbers.values())], -1)
    torch.testing.assert_close(found.numbers, noted.detach() * weight.unsqueeze(-1), rtol=1e-4, atol=1e-6)
    # Sums of a few hundred float32 terms, in two orders.
    for mine, leaf in zip(found, (out, value, log_std), strict=False):
        other = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
        torch.testing.assert_close(mine, other, rtol=2e-4, atol=2e-6)


class Algorithm:
    """An object with a loss, as an algorithm is."""

    @dataclasses.dataclass
    class Args:
        clip: bool = True

    def __init__(self) -> None:
        self.args, self.weight, self.table = self.Args(), 0.5, torch.ones(3)

    def loss(self, row: Any, hyper: Any) -> Any:
        error = self.error(row)
        return self.weight * (error.clamp(-1, 1) if self.args.clip else error), {}

    def error(self, row: Any) -> Any:
        return row.value - row.target


class Child(Algorithm):
    def loss(self, row: Any, hyper: Any) -> Any:
        loss, numbers = super().loss(row, hyper)
        return loss - 0.1 * row.entropy, numbers


@pytest.mark.parametrize("kind", [Algorithm, Child])
def test_what_the_loss_reads_of_its_object_is_watched(kind: Any) -> None:
    algorithm = kind()
    traced = trace.trace(algorithm.loss, COLUMNS, HYPER)
    assert traced is not None
    assert traced.constants == {"weight": 0.5, "args.clip": True}
    assert trace.unchanged(traced, algorithm.loss)
    algorithm.weight = 0.25
    assert not trace.unchanged(traced, algorithm.loss)
    assert "0.25f" in trace.trace(algorithm.loss, COLUMNS, HYPER).code


def by_the_mean(row: Any, hyper: Any) -> Any:
    return row.value - row.target.mean(), {}


def by_an_axis(row: Any, hyper: Any) -> Any:
    return torch.min(row.value, 0)[0], {}


def by_a_branch(row: Any, hyper: Any) -> Any:
    return (row.value if row.advantage > 0 else row.target), {}


def by_logits(row: Any, hyper: Any) -> Any:
    return row.logits.sum(-1), {}


def by_a_moving_bound(row: Any, hyper: Any) -> Any:
    return row.value.clamp(min=row.log_prob), {}


def in_place(row: Any, hyper: Any) -> Any:
    return row.value.mul_(2), {}


def by_another_tensor(row: Any, hyper: Any) -> Any:
    return row.value * torch.ones(3), {}


def by_an_infinity(row: Any, hyper: Any) -> Any:
    return row.value * float("inf"), {}


def with_an_option(row: Any, hyper: Any) -> Any:
    return torch.sub(row.value, row.target, alpha=2), {}


class Tables(Algorithm):
    def loss(self, row: Any, hyper: Any) -> Any:
        return row.value * self.table[0], {}


class Counts(Algorithm):
    def loss(self, row: Any, hyper: Any) -> Any:
        self.weight += 1
        return row.value, {}


@pytest.mark.parametrize(
    "loss", [by_the_mean, by_an_axis, by_a_branch, by_logits, by_a_moving_bound, in_place, by_another_tensor,
             by_an_infinity, with_an_option, Tables().loss, Counts().loss],
    ids=lambda loss: loss.__qualname__,
)  # fmt: skip
def test_what_is_no_formula_of_one_row_is_left_to_autograd(loss: Any) -> None:
    assert trace.trace(loss, COLUMNS, HYPER) is None


@pytest.mark.skipif(not DOCS.is_dir(), reason="not a checkout")
def test_the_loss_of_the_tutorial_is_fused() -> None:
    page = next(b.code for b in blocks(DOCS / "tutorials/own_loss.md") if b.caption == "spo.py")
    names: dict[str, Any] = {"__name__": "spo"}
    exec(page, names)
    spo = names["SPO"].__new__(names["SPO"])
    assert trace.trace(spo.loss, COLUMNS, HYPER).numbers == ("policy_loss", "value_loss", "kl")


def test_a_refused_trace_changes_nothing() -> None:
    counts = Counts()
    assert trace.trace(counts.loss, COLUMNS, HYPER) is None
    assert counts.weight == 0.5
