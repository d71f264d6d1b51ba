"""Policies of a population: networks, their parameters, and the distributions that their outputs stand for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

torch = pytest.importorskip("torch")

import training  # noqa: E402, F401, makes the trainers importable
from torch import nn  # noqa: E402

from baselines.train.actions import Actions  # noqa: E402
from baselines.train.networks import Network, Policy, Scale  # noqa: E402

# The gradients of a population's parameters lie apart from each other, so that those of a member are neighbours.
pytestmark = pytest.mark.filterwarnings("ignore:grad and param do not obey the gradient layout contract")

ROWS, STEPS = 6, 4
SPACES = {
    "box": spaces.Box(-1, 1, (3, 2), np.float32),
    "image": spaces.Box(0, 9, (5, 4, 3), np.int32),
    "discrete": spaces.Discrete(4),
    "multidiscrete": spaces.MultiDiscrete([2, 3]),
}


# ---- networks ----


class Plain(nn.Module):
    """The network of one member, in torch's own layers."""

    def __init__(self, network: Network, member: int) -> None:
        super().__init__()
        w = {name: x.detach()[member] for name, x in network.named_parameters()}
        self.act = torch.tanh if network.activation == "tanh" else torch.relu
        self.convolutions, self.layers = nn.ModuleList(), nn.ModuleList()
        for k in range(len(network.kernels)):
            n, m = w[f"kernels.{k}"].shape
            layer = nn.Conv2d(n // 9, m, 3, padding=1)
            self.fill(layer, weight=w[f"kernels.{k}"].T.reshape(m, n // 9, 3, 3), bias=w[f"offsets.{k}"][0])
            self.convolutions.append(layer)
        for k in range(len(network.weights)):
            layer = nn.Linear(*w[f"weights.{k}"].shape)
            self.fill(layer, weight=w[f"weights.{k}"].T, bias=w[f"biases.{k}"][0])
            self.layers.append(layer)
        self.cell = None
        if network.memory:
            self.cell = nn.GRUCell(len(w["gates.0"]), network.memory)
            self.fill(self.cell, weight_ih=w["gates.0"].T, bias_ih=w["gates.1"][0],
                      weight_hh=w["gates.2"].T, bias_hh=w["gates.3"][0])  # fmt: skip

    @staticmethod
    def fill(layer: nn.Module, **values: Any) -> None:
        with torch.no_grad():
            for name, value in values.items():
                getattr(layer, name).copy_(value)

    def forward(self, x: Any, memory: Any) -> Any:
        if self.convolutions:
            x = x.permute(0, 3, 1, 2)
            for layer in self.convolutions:
                x = layer(x).relu()
            x = x.flatten(1)
        for layer in self.layers[:-1]:
            x = self.act(layer(x))
        if self.cell is not None:
            x = memory = self.cell(x, memory)
        return self.layers[-1](x), memory


def make(space: str, action: spaces.Space[Any] | None = None, members: int = 1, **form: Any) -> Policy:
    """A policy whose weights and scales are far from how they begin."""
    torch.manual_seed(4)
    form = {"hidden": (8, 7), "channels": (4, 5), "encoder": "cnn" if space == "image" else "auto"} | form
    if form.get("critic") == "central":
        form |= {"state_size": 9, "seats": 3}
    policy = Policy(SPACES[space], action or spaces.Discrete(5), range(3, 3 + members), **form)
    with torch.no_grad():
        policy.flat.add_(0.3 * torch.randn(policy.flat.shape))
        for scale in (policy.scale, policy.state_scale):
            scale.mean.normal_()
            scale.variance.uniform_(0.5, 2)
    return policy


def inputs(policy: Policy, space: str, lead: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Observations, and for a central critic states and seats."""
    shape = SPACES[space].shape or ()
    kind = {"box": torch.randn, "image": lambda s: torch.randint(0, 9, s).int(),
            "discrete": lambda s: torch.randint(0, 4, s).int(),
            "multidiscrete": lambda s: torch.randint(0, 2, s).int()}[space]  # fmt: skip
    observation = kind((*lead, *shape))
    if not policy.central:
        return observation, None, None
    return observation, torch.randn(*lead, 9), torch.arange(ROWS) % 3


def plain_features(policy: Policy, space: str, k: int, x: Any) -> Any:
    if space == "discrete":
        return nn.functional.one_hot(x.long(), 4).float()
    if space == "multidiscrete":
        return torch.stack([x[:, 0] == 0, x[:, 0] == 1, x[:, 1] == 0, x[:, 1] == 1, x[:, 1] == 2], 1).float()
    flat = x.float().flatten(1)
    if policy.normalize:
        flat = ((flat - policy.scale.mean[k]) / (policy.scale.variance[k] + 1e-8).sqrt()).clamp(-10, 10)
    return flat.view(x.shape) if space == "image" else flat


def plain_policy(policy: Policy, space: str, k: int, seen: Any, state: Any, memory: Any, begins: Any) -> Any:
    """What member k says, step by step: outputs (steps, rows, columns), values (steps, rows), memory."""
    actor = Plain(policy.actor, k)
    critic = None if policy.critic is None else Plain(policy.critic, k)
    mine, other = (memory, None) if critic is None else memory.chunk(2, -1)
    outs, values = [], []
    for t, x in enumerate(seen):
        keep = 1 - begins[t].unsqueeze(-1)
        x = plain_features(policy, space, k, x)
        out, mine = actor(x, mine * keep)
        if critic is None:
            out, value = out[:, :-1], out[:, -1]
        else:
            if state is not None:
                x = state[t]
                if policy.normalize:
                    x = (x - policy.state_scale.mean[k]) / (policy.state_scale.variance[k] + 1e-8).sqrt()
            value, other = critic(x, other * keep)
            value = value[torch.arange(ROWS), torch.arange(ROWS) % 3] if state is not None else value[:, 0]
        outs.append(out)
        values.append(value)
    return torch.stack(outs), torch.stack(values), mine if critic is None else torch.cat([mine, other], -1)


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("memory", [0, 5])
@pytest.mark.parametrize("critic", ["separate", "shared", "central"])
@pytest.mark.parametrize("space", SPACES)
def test_every_form_is_what_its_layers_say(space: str, critic: str, memory: int, activation: str, members: int) -> None:
    policy = make(space, members=members, critic=critic, memory=memory, activation=activation, normalize=members == 3)
    assert policy.actor.image == (space == "image")
    assert policy.recurrent == bool(memory)
    steps = STEPS if memory else 1
    seen, state, seat = inputs(policy, space, (steps, members, ROWS))
    begins = (torch.rand(steps, members, ROWS) < 0.4).float()
    remembered = torch.randn(members, ROWS, policy.memory_size)
    first = None if state is None else state[0]
    with torch.no_grad():
        if memory:
            out, value, after = policy(seen, state, seat, remembered, begins)
            acted, acted_after = policy.act(seen, remembered, begins)
            last = policy.value(seen[0], first, seat, remembered)
        else:
            out, value = (x.unsqueeze(0) for x in policy(seen[0], first, seat)[:2])
            after, acted_after = remembered, remembered
            acted, last = policy.act(seen[0])[0].unsqueeze(0), policy.value(seen[0], first, seat)
        for k in range(members):
            states = None if state is None else state[:, k]
            want = plain_policy(policy, space, k, seen[:, k], states, remembered[k], begins[:, k])
            close(out[:, k], want[0])
            close(value[:, k], want[1])
            close(after[k], want[2])
            close(acted[:, k], want[0])
            close(acted_after[k, :, :memory], want[2][:, :memory])  # what is behind, only the critic remembers
            close(last[k], plain_policy(policy, space, k, seen[:1, k], states, remembered[k], 0 * begins[:, k])[1][0])


def close(have: Any, want: Any) -> None:
    """Equal but for the order of sums: of up to 80 products of up to 30, in float32, layer after layer."""
    torch.testing.assert_close(have, want, rtol=1e-4, atol=1e-4)


def test_a_network_without_hidden_layers_is_linear() -> None:
    policy = make("box", hidden=())
    x = torch.randn(1, ROWS, 3, 2)
    weight, bias = policy.actor.weights[0][0], policy.actor.biases[0][0]
    torch.testing.assert_close(policy(x)[0][0], x[0].flatten(1) @ weight + bias)


def test_an_image_for_an_mlp_and_a_vector_for_a_cnn() -> None:
    assert not make("image", encoder="mlp").actor.image
    with pytest.raises(ValueError, match=r"a CNN needs observations of shape \(height, width, channels\), not Box"):
        make("box", encoder="cnn")


@pytest.mark.parametrize("memory", [0, 5])
@pytest.mark.parametrize("space", ["box", "image"])
def test_gradients_stay_within_a_member(space: str, memory: int) -> None:
    policy = make(space, members=3, memory=memory)
    lead = (STEPS, 3, ROWS) if memory else (3, ROWS)
    seen, _, _ = inputs(policy, space, lead)
    remembered = torch.randn(3, ROWS, policy.memory_size) if memory else None
    out, value, _ = policy(seen, None, None, remembered)
    (out.square().sum(-1) + value.square()).select(-2, 1).sum().backward()
    gradient = policy.flat.grad
    assert gradient is not None
    assert (gradient[[0, 2]] == 0).all()
    for name, parameter in policy.named_parameters():
        if parameter.numel():
            assert (parameter.grad[1] != 0).any(), name
            assert parameter.grad.untyped_storage().data_ptr() == gradient.untyped_storage().data_ptr()


def share_memory(policy: Policy) -> bool:
    """Whether `flat` holds each parameter, each number of it once."""
    before = policy.flat.clone()
    with torch.no_grad():
        policy.flat.copy_(torch.arange(policy.flat.numel()).view_as(policy.flat))
        seen = torch.cat([p.reshape(policy.members, -1) for p in policy.parameters()], 1)
        same = bool((seen.sort(1).values == policy.flat).all())
        policy.flat.copy_(before)
    return same


@pytest.mark.parametrize("critic", ["separate", "shared", "central"])
def test_parameters_lie_in_one_tensor(critic: str) -> None:
    form: dict[str, Any] = {"members": 3, "critic": critic, "memory": 5}
    policy, other = make("image", spaces.Box(-1, 1, (2,)), **form), make("image", spaces.Box(-1, 1, (2,)), **form)
    assert share_memory(policy)
    with torch.no_grad():
        other.flat.normal_()
        other.scale.mean.normal_()
    assert not torch.equal(policy.flat, other.flat)
    policy.load_state_dict(other.state_dict())
    assert torch.equal(policy.flat, other.flat)
    assert torch.equal(policy.scale.mean, other.scale.mean)
    assert share_memory(policy)
    assert share_memory(other)


def test_members_begin_as_lone_policies_do() -> None:
    form: dict[str, Any] = {"hidden": (8,), "channels": (4,), "memory": 5}
    together = Policy(SPACES["image"], spaces.Discrete(3), [7, 8, 9], **form)
    for k in range(3):
        alone = Policy(SPACES["image"], spaces.Discrete(3), [7 + k], **form)
        assert torch.equal(together.flat[k], alone.flat[0])
    assert not torch.equal(together.flat[0], together.flat[1])


def test_weights_begin_orthogonal() -> None:
    policy = Policy(SPACES["box"], spaces.Discrete(5), [1], hidden=(6, 4))
    for network, gain in ((policy.actor, 0.01), (policy.critic, 1.0)):
        for k, weight in enumerate(network.weights):
            scale = gain if k == 2 else math.sqrt(2)
            small = weight[0] if weight.shape[1] >= weight.shape[2] else weight[0].T
            torch.testing.assert_close(small.T @ small, scale**2 * torch.eye(small.shape[1]), atol=1e-5, rtol=1e-5)


# ---- normalisation ----


def test_scales_learn_mean_and_variance_of_what_counts() -> None:
    """Also where the mean is a thousand deviations from 0, and where members see different numbers of rows."""
    scale, rng = Scale(2, 3, "cpu"), np.random.default_rng(1)
    shift = np.array([0.0, 5.0, 1000.0])
    x, weight = shift + rng.normal(size=(2, 1000, 3)), rng.random((2, 1000)) < [[0.9], [0.2]]
    weight[1, :300] = False  # a part without any row
    for a, b in zip(range(0, 1000, 300), (300, 600, 900, 1000), strict=True):
        scale.learn(torch.tensor(x[:, a:b]), torch.tensor(weight[:, a:b]))
    for k in range(2):
        kept = x[k][weight[k]]
        # The mean is kept in float32.
        np.testing.assert_allclose(scale.mean[k].numpy(), kept.mean(0), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(scale.variance[k].numpy(), kept.var(0), rtol=1e-4)
        assert scale.seen[k] == len(kept)
    seen = scale(torch.tensor(x).float())
    assert seen.shape == (2, 1000, 3)
    np.testing.assert_allclose(seen[0].numpy()[weight[0]].std(0), 1, rtol=1e-3)
    assert scale(torch.full((2, 1, 3), 1e6)).max() == 10


def test_a_scale_that_has_seen_nothing_changes_nothing() -> None:
    scale, x = Scale(1, 3, "cpu"), torch.randn(1, 5, 3)
    scale.learn(x, torch.zeros(1, 5))
    torch.testing.assert_close(scale(x), x)


def test_choices_are_one_hot() -> None:
    policy = Policy(SPACES["multidiscrete"], spaces.Discrete(2))
    assert policy.features(torch.tensor([[[1, 2], [0, 0]]])).tolist() == [[[0, 1, 0, 0, 1], [1, 0, 1, 0, 0]]]
    policy = Policy(SPACES["discrete"], spaces.Discrete(2))
    assert policy.features(torch.tensor([[3, 0]])).tolist() == [[[0, 0, 0, 1], [1, 0, 0, 0]]]


# ---- distributions ----


def masks(nvec: list[int], rows: int, masked: bool) -> Any:
    mask = torch.ones(rows, sum(nvec), dtype=torch.int8)
    if masked:
        mask = (torch.rand(rows, sum(nvec)) < 0.5).to(torch.int8)
        for part in mask.split(nvec, 1):
            part[:, 0] |= part.sum(1) == 0
    return mask


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("space", [spaces.Discrete(5), spaces.MultiDiscrete([4, 4]), spaces.MultiDiscrete([2, 5, 3])])
def test_discrete_distributions(space: spaces.Space[Any], masked: bool) -> None:
    torch.manual_seed(5)
    actions, rows = Actions(space), 200
    nvec = [int(n) for n in np.atleast_1d(space.n if isinstance(space, spaces.Discrete) else space.nvec)]  # type: ignore[attr-defined]
    assert (actions.parts, actions.width, actions.outputs) == (len(nvec), max(nvec), len(nvec) * max(nvec))
    out, mask = torch.randn(rows, actions.outputs), masks(nvec, rows, masked)
    logits = out.view(rows, len(nvec), max(nvec))
    parts = [
        torch.distributions.Categorical(logits=logits[:, k, :n].masked_fill(m == 0, -math.inf))
        for k, (n, m) in enumerate(zip(nvec, mask.split(nvec, 1), strict=True))
    ]
    action = torch.stack([d.sample() for d in parts], -1)
    given, log_std = mask.view(2, 100, -1) if masked else None, torch.zeros(2, 0)
    log, entropy = actions.evaluate(out.view(2, 100, -1), log_std, given, action.view(2, 100, -1))
    want = sum(d.log_prob(a) for d, a in zip(parts, action.unbind(-1), strict=True))
    torch.testing.assert_close(log.flatten(), want)
    want = sum(torch.where(d.probs > 0, -d.probs * d.probs.log(), 0.0).sum(-1) for d in parts)
    torch.testing.assert_close(entropy.flatten(), want)
    best = actions.greedy(out, mask if masked else None)
    torch.testing.assert_close(best, torch.stack([d.probs.argmax(-1) for d in parts], -1))

    one, few = out[:1].expand(20_000, -1), mask[:1].expand(20_000, -1)
    drawn = actions.sample(one, log_std, few if masked else None, torch.Generator().manual_seed(5))
    for k, d in enumerate(parts):
        share = torch.bincount(drawn[:, k], minlength=nvec[k]) / len(drawn)
        # Four deviations of a share of 20,000 draws are at most 4 * 0.5 / sqrt(20,000).
        torch.testing.assert_close(share, d.probs[0], atol=0.015, rtol=0)
        assert (share[d.probs[0] == 0] == 0).all()


def test_gradients_of_masked_choices_are_zero() -> None:
    actions, out = Actions(spaces.MultiDiscrete([2, 3])), torch.randn(1, 4, 6, requires_grad=True)
    mask = torch.tensor([1, 1, 0, 1, 1]).expand(1, 4, 5)
    log, entropy = actions.evaluate(out, torch.zeros(1, 0), mask, torch.ones(1, 4, 2))
    (log + entropy).sum().backward()
    assert out.grad is not None
    assert out.grad.isfinite().all()
    assert (out.grad[..., [2, 3]] == 0).all()  # the padding of the first part, and the choice that is masked
    assert (out.grad[..., [0, 1, 4, 5]] != 0).all()


def test_continuous_distribution() -> None:
    torch.manual_seed(6)
    actions = Actions(spaces.Box(-1, 1, (3,), np.float32))
    out, log_std = torch.randn(2, 50, 3), torch.randn(2, 3)
    normal = torch.distributions.Normal(out, log_std.exp().unsqueeze(1).expand_as(out))
    action = actions.sample(out, log_std, None, torch.Generator().manual_seed(5))
    noise = torch.empty_like(out).normal_(generator=torch.Generator().manual_seed(5))
    torch.testing.assert_close(action, normal.mean + noise * normal.stddev)
    log, entropy = actions.evaluate(out, log_std, None, action)
    torch.testing.assert_close(log, normal.log_prob(action).sum(-1))
    torch.testing.assert_close(entropy, normal.entropy().sum(-1))
    assert actions.greedy(out, None) is out
