"""Encoders of images: the convolutions are torch's, and "auto" chooses by a count that anybody can repeat."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode
from training import small

from baselines import run
from baselines.ppo import PPO, Args
from baselines.train import encoders, layers
from baselines.train.encoders import CNN_COST, choose, multiply_adds
from baselines.train.layers import MANY_ROWS, Network, convolve
from baselines.train.networks import Policy

SHAPE = (4, 5, 3)
FEW = 3


def images(members: int, rows: int) -> Tensor:
    return torch.randn(members, rows, *SHAPE, generator=torch.Generator().manual_seed(1))


def network(members: int, **form: Any) -> Network:
    generators = [torch.Generator().manual_seed(k) for k in range(members)]
    made = Network(
        generators, SHAPE, form.pop("hidden", (7,)), [(3, 1.0), (2, 0.1)], form.pop("channels", (4, 6)), **form
    )
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generators[0]))
    return made


def gradients(out: Tensor, made: Network) -> list[Tensor]:
    weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(2))
    return list(torch.autograd.grad((out * weight).sum(), list(made.parameters())))


@pytest.mark.parametrize("rows", [FEW, MANY_ROWS])
@pytest.mark.parametrize("members", [1, 3])
def test_convolutions_of_each_member_are_those_of_torch(members: int, rows: int) -> None:
    made, x = network(members), images(members, rows).requires_grad_()
    have = convolve(x, list(made.kernels), list(made.offsets))
    assert have.shape == (members, rows, 6, 4, 5)
    wants = []
    for k in range(members):
        want = x[k].movedim(-1, 1).contiguous()
        for kernel, offset in zip(made.kernels, made.offsets, strict=True):
            filters = kernel[k].T.unflatten(1, (-1, 3, 3))
            want = functional.conv2d(want, filters, offset[k, 0], padding=1).relu()
        wants.append(want)
    want = torch.stack(wants)
    torch.testing.assert_close(have, want, rtol=1e-5, atol=1e-5)
    leaves = [x, *made.kernels, *made.offsets]
    weight = torch.randn(have.shape)
    for mine, theirs in zip(*(torch.autograd.grad((y * weight).sum(), leaves) for y in (have, want)), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("memory", [0, 5])
@pytest.mark.parametrize("hidden", [(), (7,)])
@pytest.mark.parametrize("channels", [(), (4, 6)])
def test_many_rows_are_what_each_of_them_is(channels: Any, hidden: Any, memory: int) -> None:
    made, rows = network(2, hidden=hidden, channels=channels, memory=memory), MANY_ROWS + 1
    x = images(2, rows)
    if memory:
        x, before = x.unsqueeze(0), torch.randn(2, rows, memory)
        many = made(x, before)[0][0]
        few = torch.cat([made(x[:, :, k : k + 43], before[:, k : k + 43])[0][0] for k in range(0, rows, 43)], 1)
    else:
        many = made(x)[0]
        few = torch.cat([made(x[:, k : k + 43])[0] for k in range(0, rows, 43)], 1)
    torch.testing.assert_close(many, few, rtol=1e-5, atol=1e-5)
    for mine, theirs in zip(gradients(many, made), gradients(few, made), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


def test_many_rows_in_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    """Single numbers of a ReLU's gradient flip in 8 bits, so gradients are compared with those of the other order."""

    def short() -> list[Tensor]:
        with torch.autocast("cpu", torch.bfloat16):
            out = made(x)[0]
        assert out.dtype == torch.bfloat16
        return [out.float(), *gradients(out, made)]

    made, x = network(2), images(2, MANY_ROWS)
    full = made(x)[0]
    have = short()
    assert (have[0] - full).norm() < 0.01 * full.norm()
    monkeypatch.setattr(layers, "MANY_ROWS", MANY_ROWS + 1)
    for mine, theirs in zip(have, short(), strict=True):
        assert (mine - theirs).norm() < 0.01 * theirs.norm()


@pytest.mark.parametrize("dtype", [np.uint8, np.bool_, np.int8])
def test_numbers_of_any_type_are_seen_as_floats(dtype: Any) -> None:
    box = spaces.MultiBinary(SHAPE) if dtype is np.bool_ else spaces.Box(0, 1, SHAPE, dtype)
    policy = Policy(box, spaces.Discrete(2), (0, 1), encoder="cnn", channels=(4,))
    seen = torch.from_numpy(np.random.default_rng(0).integers(0, 2, (2, FEW, *SHAPE)).astype(dtype))
    for have, want in zip(policy(seen)[:2], policy(seen.float())[:2], strict=True):
        assert torch.equal(have, want)


@pytest.mark.parametrize("channels", [(), (16,), (16, 32)])
def test_the_count_is_what_torch_counts(channels: tuple[int, ...]) -> None:
    made = network(1, hidden=(8, 7), channels=channels).to("meta")
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        made(torch.empty(1, 1, *SHAPE, device="meta"))
    outputs = 7 * 5
    assert counter.get_total_flops() == 2 * (multiply_adds(SHAPE, (8, 7), channels) + outputs)


def test_auto_takes_a_cnn_only_where_it_is_cheap() -> None:
    assert choose("auto", (11, 11, 5), (64, 64), (16, 32))[0] == "mlp"  # 20 times an MLP
    assert choose("auto", (11, 11, 5), (64, 64), (16,))[0] == "cnn"  # 5 times
    dear, cheap = ((10, 10, 4), (64, 64), (24,)), ((10, 10, 4), (64, 64), (23,))
    for form, chosen in ((dear, "mlp"), (cheap, "cnn")):  # on both sides of the bound
        assert (multiply_adds(*form) <= CNN_COST * multiply_adds(*form[:2])) == (chosen == "cnn")
        assert choose("auto", *form)[0] == chosen
    for encoder in ("mlp", "cnn"):
        assert choose(encoder, *dear) == choose(encoder, *cheap) == (encoder, "")
    assert choose("auto", (84,), (64, 64), (16,)) == ("mlp", "")


def test_a_policy_keeps_what_auto_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a checkpoint fits also where the bound has been changed since."""
    box = spaces.Box(0, 1, SHAPE, np.uint8)
    kept = Policy(box, spaces.Discrete(2), hidden=(8,), channels=(1,)).form
    assert kept["encoder"] == "cnn"
    monkeypatch.setattr(encoders, "CNN_COST", 0)
    assert Policy(box, spaces.Discrete(2), **kept).actor.image
    assert not Policy(box, spaces.Discrete(2), **{**kept, "encoder": "auto"}).actor.image


def test_a_run_says_which_encoder_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    def said(quiet: bool = False, **values: Any) -> list[str]:
        run.train(PPO, small("ConnectFour-v0", Args, total_steps=128, **values), quiet)
        return [line for line in capsys.readouterr().out.splitlines() if "encoder" in line]

    (line,) = said()
    assert line == (
        "player: encoder mlp for observations of 6x7x2: a CNN with channels 16,32 takes 31.2 times the multiply-adds "
        "of an MLP, and auto allows 8 (--encoder cnn for the other)."
    )
    (line,) = said(channels=(4,))
    assert line.startswith("player: encoder cnn for observations of 6x7x2: a CNN with channels 4 takes 1.9 times")
    assert not said(quiet=True)
    assert not said(encoder="mlp")
