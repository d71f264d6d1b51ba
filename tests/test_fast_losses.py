"""Losses as kernels: the gradients that torch finds for the same formulas, and the same bits everywhere."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import sys
import types
from typing import Any, NamedTuple

import pytest
from gymnasium import spaces

from gpuzoo.core import nvrtc
from gpuzoo.core.backend import make_backend

torch = pytest.importorskip("torch")

from baselines import a2c, ppo  # noqa: E402
from baselines.fast import kernels, losses, trace  # noqa: E402
from baselines.train import actions, networks  # noqa: E402

pytestmark = pytest.mark.rotates  # about these modules of the trainers


@dataclasses.dataclass
class Run:
    """What a loss reads of its trainer."""

    args: Any


def kind_of(algorithm, columns, hyper, **options):
    """A formula, as it is traced from the loss of an algorithm."""
    run = Run(dataclasses.make_dataclass("Args", options)(**options))
    traced = trace.trace(types.MethodType(algorithm.loss, run), columns, hyper)
    return {"code": traced.code, "columns": columns, "hyper": hyper, "numbers": traced.numbers}


COLUMNS = ("advantage", "target", "old_value", "old_log_prob")
PPO, CLIPPED = (
    kind_of(ppo.PPO, COLUMNS, ("clip_eps", "vf_coef", "ent_coef"), clip_values=clip) for clip in (False, True)
)
A2C = kind_of(a2c.A2C, COLUMNS[:2], ("vf_coef", "ent_coef"))
KINDS = {"ppo": PPO, "ppo-clip_values": CLIPPED, "a2c": A2C}
SPACES = {
    "Discrete(2)": spaces.Discrete(2), "Discrete(7)": spaces.Discrete(7), "Discrete(600)": spaces.Discrete(600),
    "MultiDiscrete": spaces.MultiDiscrete([3, 5, 2]), "MultiDiscrete equal": spaces.MultiDiscrete([4, 4]),
    "Box(1)": spaces.Box(-1, 1, (1,)), "Box(6)": spaces.Box(-1, 1, (6,)),
}  # fmt: skip
DISCRETE = [name for name in SPACES if "Discrete" in name]
CASES = [(name, masked) for name in SPACES for masked in (False, True)[: 1 + (name in DISCRETE)]]
IMPOSSIBLE = -1e300  # whose probability is 0 and whose logarithm, times 0, is 0


class Batch(NamedTuple):
    """What a `Loss` is called with."""

    out: torch.Tensor
    value: torch.Tensor
    log_std: torch.Tensor
    mask: torch.Tensor | None
    action: torch.Tensor
    columns: torch.Tensor
    weight: torch.Tensor
    hyper: torch.Tensor

    def to(self, device):
        return Batch(*[None if x is None else x.to(device) for x in self])


def make_loss(kind, space, masked=False, device="cpu"):
    return losses.Loss(losses.Formula(**kind, actions=actions.Actions(space), masked=masked), device)


def distribution(space, out, log_std, mask, action):
    """Log-probability and entropy, by torch's own distributions."""
    if isinstance(space, spaces.Box):
        normal = torch.distributions.Normal(out, log_std.unsqueeze(1).exp().expand_as(out))
        return normal.log_prob(action).sum(-1), normal.entropy().sum(-1)
    nvec = actions.choices(space)
    log_prob, entropy, width, start = 0, 0, max(nvec), 0
    for p, n in enumerate(nvec):
        logits = out[..., p * width : p * width + n]
        if mask is not None:
            logits = logits.masked_fill(mask[..., start : start + n] == 0, IMPOSSIBLE)
        log = logits.log_softmax(-1)
        log_prob = log_prob + log.gather(-1, action[..., p : p + 1].long()).squeeze(-1)
        entropy = entropy - (log.exp() * log).sum(-1)
        start += n
    return log_prob, entropy


def formula(kind, log_prob, entropy, value, column, hyper):
    """The loss of each row, and its parts in the order of `Loss.numbers`."""
    h = {name: x.unsqueeze(-1) for name, x in zip(kind["hyper"], hyper.unbind(-1), strict=True)}
    c = dict(zip(kind["columns"], column.unbind(-1), strict=True))
    error = (value - c["target"]).square()
    if "old_log_prob" not in kind["columns"]:
        policy_loss, more = -c["advantage"] * log_prob, []
    else:
        change = log_prob - c["old_log_prob"]
        ratio = change.exp()
        clipped = torch.clamp(ratio, 1 - h["clip_eps"], 1 + h["clip_eps"])
        policy_loss = -torch.minimum(c["advantage"] * ratio, c["advantage"] * clipped)
        if "old_value" in kind["code"]:
            near = c["old_value"] + torch.clamp(value - c["old_value"], -h["clip_eps"], h["clip_eps"])
            error = torch.maximum(error, (near - c["target"]).square())
        more = [ratio - 1 - change, ((ratio - 1).abs() > h["clip_eps"]).to(ratio)]
    loss = policy_loss + h["vf_coef"] * 0.5 * error - h["ent_coef"] * entropy
    return torch.stack([loss, policy_loss, 0.5 * error, entropy, *more], -1)


def oracle(kind, space, batch):
    """The same by autograd in float64."""
    real = [x if x is None or not x.is_floating_point() else x.double() for x in batch]
    out, value, log_std, mask, action, columns, weight, hyper = real
    leaves = [out.requires_grad_(), value.requires_grad_(), log_std.requires_grad_()]
    log_prob, entropy = distribution(space, out, log_std, mask, action)
    numbers = formula(kind, log_prob, entropy, value, columns, hyper) * weight.unsqueeze(-1)
    numbers[..., 0].sum().backward()
    return losses.Gradients(*[torch.zeros_like(x) if x.grad is None else x.grad for x in leaves], numbers.detach())


def random_mask(space, members, rows, action, generator):
    """With the action legal, and about half of the others."""
    masks = []
    for p, n in enumerate(actions.choices(space)):
        mask = torch.rand(members, rows, n, generator=generator) < 0.5
        masks.append(mask.scatter(-1, action[..., p : p + 1].long(), True))
    return torch.cat(masks, -1).to(torch.int8)


def random_batch(kind, space, members=2, rows=100, masked=False, seed=0, scale=3.0):
    """Ratios at 1, within the clip range and beyond, with advantages of both signs."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    meaning = actions.Actions(space)
    out, value = normal(members, rows, meaning.outputs) * scale, normal(members, rows)
    log_std, mask = torch.zeros(members, 0), None
    if meaning.discrete:
        parts = [torch.randint(n, (members, rows), generator=generator) for n in meaning.nvec]
        action = torch.stack(parts, -1).int()
        mask = random_mask(space, members, rows, action, generator) if masked else None
    else:
        log_std = 0.3 * normal(members, meaning.parts)
        action = out + log_std.exp().unsqueeze(1) * normal(*out.shape)
    log_prob, _ = distribution(space, out.double(), log_std.double(), mask, action)
    change = torch.tensor([-1.0, -0.5, -0.1, 0.0, 0.1, 0.5, 1.0])
    change = change[torch.randint(7, (members, rows), generator=generator)]
    known = {
        "advantage": normal(members, rows), "target": value + 0.5 * normal(members, rows),
        "old_value": value + 0.3 * normal(members, rows), "old_log_prob": log_prob.float() - change,
    }  # fmt: skip
    weight = torch.rand(members, rows, generator=generator)
    weight /= weight.sum(1, keepdim=True)
    settings = {"clip_eps": [0.2, 0.3, 0.1], "vf_coef": [0.5, 1.0, 0.7], "ent_coef": [0.01, 0.1, 0.0]}
    hyper = torch.tensor([[settings[name][m % 3] for name in kind["hyper"]] for m in range(members)])
    columns = torch.stack([known[name] for name in kind["columns"]], -1)
    return Batch(out, value, log_std, mask, action, columns, weight, hyper)


def close(ours, theirs, space, scale=1.0):
    """Compares with float64.

    A log-probability is wrong by as many roundings of 2**-24 as it has terms, and some for exp, log and differences of
    logits of size ``scale * 20``; a ratio and a slope by as much of themselves, and then by some more roundings.
    """
    meaning = actions.Actions(space)
    error = meaning.parts * (meaning.width + 64 * max(1, scale)) * 2**-24
    for name, mine, other in zip(losses.Gradients._fields, ours, theirs, strict=True):
        columns = [(mine, other)] if name != "numbers" else zip(mine.unbind(-1), other.unbind(-1), strict=True)
        for k, (x, y) in enumerate(columns):
            assert x.shape == y.shape
            if y.numel():
                atol = 4 * error * y.abs().max().item()
                about = f"{name}[{k}]: {{}}"
                torch.testing.assert_close(x.double(), y, rtol=4 * error, atol=atol, msg=about.format)


def copied(gradients):
    return losses.Gradients(*[x.clone() for x in gradients])


def same(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        assert torch.equal(a.cpu(), b.cpu())


@pytest.fixture
def simt(monkeypatch):
    """The thread form of the kernels, on the host."""
    backend = make_backend("simt")
    monkeypatch.setattr(
        losses, "compile_unit", lambda code, device, *names: backend.compile_unit(code, names[0], names)
    )


# ---- against autograd ----


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_gradients_and_numbers(kind, name, members):
    batch = random_batch(kind, SPACES[name], members)
    gradients = make_loss(kind, SPACES[name])(*batch)
    close(gradients, oracle(kind, SPACES[name], batch), SPACES[name])
    assert gradients.log_std.shape == batch.log_std.shape


@pytest.mark.parametrize("name", DISCRETE)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_masks(kind, name):
    batch = random_batch(kind, SPACES[name], masked=True)
    gradients = make_loss(kind, SPACES[name], masked=True)(*batch)
    close(gradients, oracle(kind, SPACES[name], batch), SPACES[name])
    nvec, start = actions.choices(SPACES[name]), 0
    for p, n in enumerate(nvec):
        first = p * max(nvec)
        assert (gradients.out[..., first : first + n][batch.mask[..., start : start + n] == 0] == 0).all()
        assert (gradients.out[..., first + n : first + max(nvec)] == 0).all()
        start += n


@pytest.mark.parametrize(("name", "masked"), CASES)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_rows_that_do_not_count(kind, name, masked):
    """Their gradients are 0 whatever they hold, and the others' are what they are without them."""
    space = SPACES[name]
    batch = random_batch(kind, space, masked=masked)
    loss = make_loss(kind, space, masked)
    idle = torch.arange(100) % 3 == 0
    batch.weight[:, idle] = 0.0
    expected = copied(loss(*batch))
    close(expected, oracle(kind, space, batch), space)
    for x in (batch.out, batch.value, batch.columns):
        x[:, idle] = torch.tensor([math.nan, math.inf, -math.inf, 1e38])[torch.arange(34) % 4].view(
            34, *[1] * (x.ndim - 2)
        )
    batch.action[:, idle] = 123456 if name in DISCRETE else math.nan
    if masked:
        batch.mask[:, idle] = 0
    same(loss(*batch), expected)
    assert all((x[:, idle] == 0).all() for x in (expected.out, expected.value, expected.numbers))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("logits", [
    [0.0, -1e8, 0.0, -1e8], [-1e8, -1e8, -1e8, -1e8], [1e8, 1e8, -1e8, 0.0], [1e30, -1e30, 1e30, 0.0],
    [88.0, 89.0, 90.0, -90.0], [0.0, -104.0, -50.0, -1e-30], [1e-30, 0.0, -1e-30, 2.0],
])  # fmt: skip
def test_unusual_logits(logits, masked):
    kind, space = KINDS["ppo"], spaces.Discrete(4)
    batch = random_batch(kind, space, 1, 64, masked)
    batch.out[:] = torch.tensor(logits)
    best = batch.out if batch.mask is None else batch.out.masked_fill(batch.mask == 0, -math.inf)
    batch.action[:] = best.argmax(-1, keepdim=True)
    batch.columns[..., 3] = torch.linspace(-2, 0.5, 64)
    gradients = make_loss(kind, space, masked)(*batch)
    # log_softmax subtracts the largest logit, which is exact or of an effect below exp's smallest number
    close(gradients, oracle(kind, space, batch), space)


def test_a_choice_of_probability_zero_has_no_slope():
    kind, space = KINDS["a2c"], spaces.Discrete(3)
    batch = random_batch(kind, space, 1, 8)
    batch.out[:] = torch.tensor([0.0, -math.inf, 1.0])
    batch.action[:] = 2
    gradients = make_loss(kind, space)(*batch)
    assert (gradients.out[..., 1] == 0).all()
    assert gradients.out.isfinite().all()
    assert gradients.numbers.isfinite().all()


def test_a_component_without_a_legal_choice():
    """It is as if it were not there."""
    kind = KINDS["ppo"]
    alone = random_batch(kind, spaces.Discrete(3), masked=True)
    both = alone._replace(
        out=torch.cat([alone.out, torch.randn(2, 100, 3, generator=torch.Generator().manual_seed(1))], -1),
        action=torch.cat([alone.action, torch.ones_like(alone.action)], -1),
        mask=torch.cat([alone.mask, torch.zeros(2, 100, 2, dtype=torch.int8)], -1),
    )
    expected = copied(make_loss(kind, spaces.Discrete(3), True)(*alone))
    gradients = make_loss(kind, spaces.MultiDiscrete([3, 2]), True)(*both)
    assert (gradients.out[..., 3:] == 0).all()
    assert torch.equal(gradients.value, expected.value)
    # The entropy of one of several components is summed a second time, in another way.
    torch.testing.assert_close(gradients.out[..., :3], expected.out, rtol=2**-20, atol=2**-24)
    assert torch.equal(gradients.numbers, expected.numbers)


def test_nan_is_not_hidden():
    kind, space = KINDS["ppo"], spaces.Discrete(3)
    for change in ("out", "value", "columns"):
        batch = random_batch(kind, space, 1, 40)
        getattr(batch, change)[0, 5] = math.nan
        gradients = make_loss(kind, space)(*batch)
        assert gradients.numbers[0, :, 0].isnan().nonzero().ravel().tolist() == [5]
        assert gradients.out[0, 5].isnan().any() or gradients.value[0, 5].isnan()


# ---- corners ----

CORNERS = {
    "clamp": ("clamp(t.value, -1.f, 1.f)", lambda v, a: v.clamp(-1, 1)),
    "min": ("min(t.value, t.a * t.value)", lambda v, a: torch.minimum(v, a * v)),
    "max": ("max(t.value, t.a * t.value)", lambda v, a: torch.maximum(v, a * v)),
    "square": ("square(t.value - t.a)", lambda v, a: (v - a).square()),
    "product": ("t.value * (1.f + t.value) * (t.a - t.value)", lambda v, a: v * (1 + v) * (a - v)),
    "mixed": ("2.f - t.value * 3.f + (t.a + t.value) - (t.value - t.a)", lambda v, a: 2 - v * 3 + (a + v) - (v - a)),
}


@pytest.mark.parametrize("name", CORNERS)
def test_gradients_are_those_of_torch(name):
    """Of numbers that have no rounding, at all corners and between them."""
    text, expected = CORNERS[name]
    code = (
        "namespace gz { GZ Dual loss(const Transition &t, const Hyper &, Numbers &) "
        f"{{ return {text} + 0.f * t.log_prob + 0.f * t.entropy; }} }}"
    )
    space = spaces.Discrete(2)
    loss = losses.Loss(losses.Formula(code, ("a",), ("unused",), (), actions.Actions(space)), "cpu")
    points = torch.tensor(list(itertools.product([-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2], [-2, -1, 0, 0.5, 1, 2])))
    value, a = points.T.float().unsqueeze(1).contiguous().requires_grad_()
    rows = points.shape[0]
    y = expected(value, a)
    (slope,) = torch.autograd.grad(y.sum(), value)
    gradients = loss(
        torch.zeros(1, rows, 2), value.detach(), torch.zeros(1, 0), None, torch.zeros(1, rows, 1, dtype=torch.int32),
        a.detach().unsqueeze(-1), torch.ones(1, rows), torch.zeros(1, 1),
    )  # fmt: skip
    assert torch.equal(gradients.value, slope)
    assert torch.equal(gradients.numbers[..., 0], y.detach())
    assert gradients.numbers.shape == (1, rows, 1)


def test_borders_of_the_clip_range():
    """At the border a ratio still counts as within; one unit of float32 beyond, its gradient is 0."""
    code = (
        "namespace gz { GZ Dual loss(const Transition &t, const Hyper &, Numbers &n) "
        "{ n.ratio = exp(t.log_prob.x - t.old_log_prob); return t.log_prob; } }"
    )
    kind, space, rows = KINDS["ppo"], spaces.Discrete(3), 200
    batch = random_batch(kind, space, 1, rows)
    batch.weight[:] = 1.0
    meaning = actions.Actions(space)
    look = losses.Loss(losses.Formula(code, kind["columns"], kind["hyper"], ("ratio",), meaning), "cpu")
    ratio = look(*batch).numbers[0, :, 1]
    within = ((ratio > 0.5) & (ratio < 2) & ((ratio - 1).abs() > 2**-10)).nonzero().ravel()
    assert len(within) > 50
    # each row as a member of its own, whose clip range ends at the row's ratio
    ratio, count, names = ratio[within], len(within), ("out", "value", "action", "columns", "weight")
    chosen = {name: getattr(batch, name)[0, within].unsqueeze(1) for name in names}
    alone = Batch(mask=None, log_std=torch.zeros(count, 0), hyper=batch.hyper.repeat(count, 1), **chosen)
    size, sign = (ratio - 1).abs(), (ratio - 1).sign()
    assert torch.equal(1 + sign * size, ratio)
    alone.columns[:, 0, 0] = sign
    alone.hyper[:, 2] = 0.0
    loss = make_loss(kind, space)
    alone.hyper[:, 0] = size
    at = copied(loss(*alone))
    alone.hyper[:, 0] = size - 2**-23
    beyond = loss(*alone)
    assert (at.out.abs().amax(-1) > 0).all()
    assert (beyond.out == 0).all()
    clipped = loss.numbers.index("clipped")
    assert (at.numbers[..., clipped] == 0).all()
    assert (beyond.numbers[..., clipped] == 1).all()
    expected = look(*alone).out * (-ratio * sign).view(-1, 1, 1)
    torch.testing.assert_close(at.out, expected, rtol=2**-20, atol=2**-22)  # the same gradients with other roundings


def test_values_at_the_border_of_their_range():
    """Multiples of 1/8 have no rounding: ties and borders are exact."""
    kind, space = KINDS["ppo-clip_values"], spaces.Discrete(2)
    eighths = [k / 8 for k in range(-4, 5)]
    points = torch.tensor(list(itertools.product(eighths, eighths, eighths)))
    batch = random_batch(kind, space, 1, len(points))
    batch.hyper[:, 0], batch.hyper[:, 1] = 0.25, 1.0
    batch.value[0], batch.columns[0, :, 1], batch.columns[0, :, 2] = points.T
    batch.weight[:] = 1.0
    gradients, expected = make_loss(kind, space)(*batch), oracle(kind, space, batch)
    assert torch.equal(gradients.value.double(), expected.value)
    assert torch.equal(gradients.numbers[..., 2].double(), expected.numbers[..., 2])


# ---- together with the rest ----


@pytest.mark.parametrize(("name", "masked"), CASES)
def test_log_prob_has_the_bits_of_the_sampler(name, masked):
    """A policy that has not changed has the ratio 1, exactly."""
    space, kind = SPACES[name], KINDS["ppo"]
    batch = random_batch(kind, space, masked=masked)
    log_prob, seeds, counter = torch.zeros(2, 100), torch.tensor([1, 2]), torch.zeros(1, dtype=torch.int64)
    action = torch.zeros_like(batch.action)
    if name in DISCRETE:
        sampler = kernels.CategoricalSampler(actions.choices(space), masked)
        sampler.bind(seeds, counter, batch.out, batch.mask, action, log_prob)(0)
    else:
        kernels.NormalSampler(action.shape[-1]).bind(seeds, counter, batch.out, batch.log_std, action, log_prob)(0)
    columns = batch.columns.clone()
    columns[..., 3] = log_prob
    loss = make_loss(kind, space, masked)
    numbers = loss(*batch._replace(action=action, columns=columns)).numbers
    kl, clipped = (numbers[..., loss.numbers.index(name)] for name in ("kl", "clipped"))
    assert (kl == 0).all()
    assert (clipped == 0).all()


@pytest.mark.parametrize("critic", ["separate", "shared"])
@pytest.mark.parametrize("name", ["Discrete(7)", "MultiDiscrete", "Box(6)"])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_gradient_of_a_policy(kind, name, critic):
    space, members, rows = SPACES[name], 2, 64
    policy = networks.Policy(spaces.Box(-1, 1, (5,)), space, [3, 4], hidden=(16,), critic=critic)
    batch = random_batch(kind, space, members, rows)
    seen = torch.randn(members, rows, 5, generator=torch.Generator().manual_seed(2))

    out, value, _ = policy(seen)
    rest = (batch.mask, batch.action, batch.columns, batch.weight, batch.hyper)
    policy.flat.grad.zero_()
    log_prob, entropy = distribution(space, out.double(), policy.log_std.double(), batch.mask, batch.action)
    numbers = formula(kind, log_prob, entropy, value.double(), batch.columns.double(), batch.hyper.double())
    (numbers[..., 0] * batch.weight).sum().backward()
    expected = policy.flat.grad.clone()

    out, value, _ = policy(seen)
    policy.flat.grad.zero_()
    gradients = make_loss(kind, space)(out, value, policy.log_std, *rest)
    ends = [(out, gradients.out), (value, gradients.value)]
    ends += [] if policy.actions.discrete else [(policy.log_std, gradients.log_std)]
    torch.autograd.backward(*map(list, zip(*ends, strict=True)))
    assert expected.abs().max() > 1e-3
    # sums over 64 rows of float32 gradients through two layers
    torch.testing.assert_close(policy.flat.grad, expected, rtol=1e-4, atol=64 * 2**-24 * expected.abs().max().item())


# ---- the same bits ----


@pytest.mark.parametrize("name", SPACES)
def test_strides_members_and_threads_change_nothing(name):
    kind, space, masked = KINDS["ppo-clip_values"], SPACES[name], name in DISCRETE
    members, rows = 3, 50 if "600" in name else 3001
    batch, loss = random_batch(kind, space, members, rows, masked), make_loss(kind, space, masked)
    whole = copied(loss(*batch))
    for m in range(members):
        alone = loss(*[x if x is None else x[m : m + 1] for x in batch])
        same([x[0] for x in alone], [x[m] for x in whole])
    spread = []
    for x in batch[:7]:
        if x is not None and x.ndim == 3:
            wide = torch.full((members, 2, rows, x.shape[-1] + 3), 7, dtype=x.dtype)
            wide[:, 1, :, 1:-2] = x
            x = wide[:, 1, :, 1:-2]
        elif x is not None:
            wide = torch.full((*x.shape, 2), 7.0)
            wide[..., 1] = x
            x = wide[..., 1] if x.shape[1:] == (rows,) else wide[..., 1].contiguous()
        spread.append(x)
    same(loss(*spread, batch.hyper), whole)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        same(loss(*batch), whole)
    finally:
        torch.set_num_threads(before)


def test_a_shared_network_gives_slices_and_recurrent_ones_other_strides():
    kind, space = KINDS["ppo"], spaces.Discrete(4)
    batch, loss = random_batch(kind, space), make_loss(kind, space)
    expected = copied(loss(*batch))
    both = torch.cat([batch.out, batch.value.unsqueeze(-1)], -1)
    same(loss(both[..., :-1], both[..., -1], *batch[2:]), expected)
    turned = [x.transpose(0, 1).contiguous().transpose(0, 1) for x in batch[:2]]
    same(loss(*turned, *batch[2:]), expected)
    same(loss(*batch[:6], torch.full((2, 1), 0.01).expand(2, 100), batch.hyper),
         copied(loss(*batch[:6], torch.full((2, 100), 0.01), batch.hyper)))  # fmt: skip


def everything(device):
    """A result of every kernel."""
    found = []
    for (k, kind), (name, masked) in itertools.product(KINDS.items(), CASES):
        batch = random_batch(kind, SPACES[name], 3, 53, masked, seed=len(k))
        batch.weight[:, ::5] = 0.0
        found += [x.cpu().clone() for x in make_loss(kind, SPACES[name], masked, device)(*batch.to(device))]
    return found


@pytest.mark.rotates
def test_the_thread_form_gives_the_same_bits(simt, monkeypatch):
    ours = everything("cpu")
    monkeypatch.undo()
    same(ours, everything("cpu"))


# ---- calls ----


def test_the_memory_of_a_result_is_used_again():
    kind, space = KINDS["ppo"], spaces.Discrete(4)
    loss = make_loss(kind, space)
    first = loss(*random_batch(kind, space, seed=1))
    second = loss(*random_batch(kind, space, seed=2))
    assert first.out.data_ptr() == second.out.data_ptr()
    for rows in range(20):
        batch = random_batch(kind, space, 2, rows)
        close(loss(*batch), oracle(kind, space, batch), space)
    close(loss(*random_batch(kind, space, seed=1)), oracle(kind, space, random_batch(kind, space, seed=1)), space)


def test_names_of_the_numbers():
    loss = make_loss(KINDS["ppo"], spaces.Discrete(2))
    assert loss.numbers == ("loss", "policy_loss", "value_loss", "entropy", "kl", "clipped")


GOOD = random_batch(KINDS["ppo"], spaces.MultiDiscrete([2, 3]), 2, 8, masked=True)


@pytest.mark.parametrize(("change", "error", "message"), [
    ({"out": GOOD.out.double()}, TypeError, r"out must be torch.float32, not torch.float64"),
    ({"out": GOOD.out[0]}, ValueError, r"out must have the shape \(members, rows, 6\), not \(8, 6\)"),
    ({"out": GOOD.out.mT.contiguous().mT}, ValueError, r"out must be contiguous in its last axis: its strides"),
    ({"out": GOOD.out.to("meta")}, ValueError, r"out must be on cpu like the kernel, not on meta"),
    ({"value": GOOD.value.unsqueeze(-1)}, ValueError, r"value must have the shape \(2, 8\), not \(2, 8, 1\)"),
    ({"weight": GOOD.weight[:, :7]}, ValueError, r"weight must have the shape \(2, 8\), not \(2, 7\)"),
    ({"weight": GOOD.weight.bool()}, TypeError, r"weight must be torch.float32, not torch.bool"),
    ({"columns": GOOD.columns[..., :3]}, ValueError, r"columns must have the shape \(2, 8, 4\), not \(2, 8, 3\)"),
    ({"hyper": GOOD.hyper[0]}, ValueError, r"hyper must have the shape \(2, 3\), not \(3,\)"),
    ({"log_std": torch.zeros(2, 2)}, ValueError, r"log_std must have the shape \(2, 0\), not \(2, 2\)"),
    ({"action": GOOD.action.long()}, TypeError, r"action must be torch.int32, not torch.int64"),
    ({"mask": None}, ValueError, r"made with masked=True: mask must not be None"),
    ({"mask": GOOD.mask.bool()}, TypeError, r"mask must be torch.int8, not torch.bool"),
    ({"mask": GOOD.mask[..., :4]}, ValueError, r"mask must have the shape \(2, 8, 5\), not \(2, 8, 4\)"),
])  # fmt: skip
def test_refusals_of_a_call(change, error, message):
    loss = make_loss(KINDS["ppo"], spaces.MultiDiscrete([2, 3]), True)
    loss(*GOOD)
    with pytest.raises(error, match=message):
        loss(*GOOD._replace(**change))


@pytest.mark.parametrize(("change", "message"), [
    ({"columns": ("x", "value")}, r"columns must be different names other than log_prob, entropy, value, not \('x', "),
    ({"columns": ("target", "target")}, r"columns must be different names other than"),
    ({"columns": ("a b",)}, r"columns must be different names"),
    ({"hyper": ("clip-eps",)}, r"hyper must be different names, not \('clip-eps',\)"),
    ({"numbers": ("loss",)}, r"numbers must be different names other than loss, not \('loss',\)"),
    ({"columns": ()}, r"at least one column and one hyper-parameter"),
    ({"hyper": ()}, r"at least one column and one hyper-parameter"),
])  # fmt: skip
def test_refusals_of_names(change, message):
    with pytest.raises(ValueError, match=message):
        make_loss(KINDS["ppo"] | change, spaces.Discrete(2))


def test_other_refusals():
    with pytest.raises(ValueError, match="for a Box, masked must be False"):
        make_loss(A2C, SPACES["Box(6)"], masked=True)
    with pytest.raises(ValueError, match="device must be 'cpu', 'cuda' or 'cuda:<index>', not 'gpu'"):
        make_loss(A2C, spaces.Discrete(2), device="gpu")
    with pytest.raises(ValueError, match="this loss was made with masked=False: mask must be None"):
        make_loss(CLIPPED, spaces.MultiDiscrete([2, 3]))(*GOOD)
    with pytest.raises(RuntimeError, match=r"formula"):
        make_loss(A2C | {"columns": ("advantage",)}, spaces.Discrete(2))


# ---- CUDA ----

COMPILED = [("ppo", "Discrete(2)", False), ("ppo-clip_values", "MultiDiscrete", True), ("ppo", "Discrete(600)", True),
            ("ppo-clip_values", "Box(6)", False), ("a2c", "Discrete(7)", True), ("a2c", "Box(1)", False)]  # fmt: skip


@pytest.mark.rotates
@pytest.mark.skipif(sys.platform != "linux", reason="NVIDIA has NVRTC for Linux's CPUs only")
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize(("kind", "name", "masked"), COMPILED)
def test_nvrtc_compiles_it_without_spills(kind, name, masked, arch):
    code = losses.Formula(**KINDS[kind], actions=actions.Actions(SPACES[name]), masked=masked).program()
    cubin, log = nvrtc.compile_cubin(code, "gradients", arch, (*nvrtc.OPTIONS, "--ptxas-options=-v"))
    assert cubin[:4] == b"\x7fELF"
    seen = dict(re.findall(r"Function properties for gz_(\w+)\nptxas[ .]*([^\n]*)", log))
    assert seen == {"gradients": "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"}


@pytest.mark.gpu
def test_cuda_gives_the_bits_of_the_cpu():
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    actions_of = {name: actions.Actions(space) for name, space in SPACES.items()}
    for a, b in zip(everything("cuda"), everything("cpu"), strict=True):
        if a.ndim == 2 and a.shape[1] in {x.parts for x in actions_of.values() if not x.discrete}:
            # torch adds the rows' gradients by the deviations in another order on a GPU
            torch.testing.assert_close(a, b, rtol=2**-18, atol=2**-20)
        else:
            assert torch.equal(a, b)


@pytest.mark.gpu
def test_a_cuda_graph_repeats_it():
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    kind, space = KINDS["ppo"], SPACES["MultiDiscrete"]
    loss, batch = make_loss(kind, space, device="cuda"), random_batch(kind, space).to("cuda")
    loss(*batch)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gradients = loss(*batch)
    other = random_batch(kind, space, seed=5)
    for x, y in zip(batch, other, strict=True):
        if x is not None:
            x.copy_(y)
    graph.replay()
    same(gradients, make_loss(kind, space)(*other))
