"""Networks that treat all entities alike, and observations whose integers become one-hot vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

torch = pytest.importorskip("torch")

import training  # noqa: E402, F401, makes the trainers importable
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import gpuzoo  # noqa: E402
from baselines import run  # noqa: E402
from baselines.ppo import PPO, Args  # noqa: E402
from baselines.report.match import arrange  # noqa: E402
from baselines.train.encoders import SET_HEADS, feature_shape  # noqa: E402
from baselines.train.loading import rescale  # noqa: E402
from baselines.train.networks import Policy  # noqa: E402
from baselines.train.sets import SetNetwork  # noqa: E402
from gpuzoo.core.definition import Entities  # noqa: E402

#: five places and demands, where the agent is, three visited ones, and two more numbers
FIVE = Entities(5, (2, 1), pointers=(15,), listed=(17, 18, 19))
SIZE = 21
#: five places and demands, three partners of two numbers each, where the agent is, two visited places, one more number
MATCHED = Entities(5, (2, 1), pointers=(21,), listed=(22, 23), partners=Entities(3, (2,)))
MATCHED_SIZE = 25


def declares(env_id: str) -> bool:
    env = gpuzoo.get(env_id)
    cfg = env.Config()
    return env.entities(cfg, next(iter(env.agents(cfg)))) is not None


DECLARED = [env_id for env_id in gpuzoo.ids() if declares(env_id)]


def observations(*lead: int) -> Any:
    """With pointers and lists that mean an entity or none."""
    x = torch.randn(*lead, SIZE)
    index = [*FIVE.pointers, *FIVE.listed]
    x[..., index] = torch.randint(-1, FIVE.count + 1, (*lead, len(index))).float()
    return x


def policy(members: int = 1, action: int = 5, **form: Any) -> Policy:
    torch.manual_seed(2)
    box = spaces.Box(-np.inf, np.inf, (SIZE,), np.float32)
    made = Policy(
        box, spaces.Discrete(action), range(members), hidden=(8, 8), encoder="set", entities=FIVE,
        activation="relu", **form,
    )  # fmt: skip
    with torch.no_grad():
        made.flat.add_(0.3 * torch.randn(made.flat.shape))
    return made


class Plain(nn.Module):
    """A member of a `SetNetwork`, in torch's own layers, for one observation."""

    def __init__(self, network: SetNetwork, k: int) -> None:
        super().__init__()
        self.w = {name: x.detach()[k] for name, x in network.named_parameters()}
        self.blocks = len(network.attention)

    def dense(self, name: str, x: Any) -> Any:
        return nn.functional.linear(x, self.w[f"{name}.weight"].T, self.w[f"{name}.bias"][0])

    def norm(self, name: str, x: Any) -> Any:
        return nn.functional.layer_norm(x, x.shape[-1:], self.w[f"{name}.gain"][0], self.w[f"{name}.bias"][0])

    def told(self, x: Any, here: int, visited: set[int], context: list[int]) -> Any:
        """Of each of five entities."""
        places, demands = x[:10].view(5, 2), x[10:15].view(5, 1)
        own, rows = torch.cat([places, demands], 1), []
        for k in range(5):
            inside = 0 <= here < 5
            there = own[here] if inside else torch.zeros(3)
            rows.append(torch.cat([own[k], x[context], there, torch.tensor([float(k == here), float(k in visited)])]))
        return self.dense("embed.1", self.dense("embed.0", torch.stack(rows)).relu())

    def attended(self, y: Any) -> Any:
        for b in range(self.blocks):
            name = f"attention.{b}"
            attention = nn.MultiheadAttention(y.shape[1], SET_HEADS, batch_first=True)
            with torch.no_grad():
                attention.in_proj_weight.copy_(self.w[f"{name}.asks.weight"].T)
                attention.in_proj_bias.copy_(self.w[f"{name}.asks.bias"][0])
                attention.out_proj.weight.copy_(self.w[f"{name}.merge.weight"].T)
                attention.out_proj.bias.copy_(self.w[f"{name}.merge.bias"][0])
            z = self.norm(f"{name}.norms.0", y)[None]
            y = y + attention(z, z, z)[0][0]
            z = self.norm(f"{name}.norms.1", y)
            y = y + self.dense(f"{name}.narrow", self.dense(f"{name}.widen", z).relu())
        return self.norm("norm", y)

    def of_all(self, y: Any) -> Any:
        if "whole.weight" not in self.w:
            return None
        return self.dense("whole", self.dense("pool", torch.cat([y.mean(0), y.amax(0)])).relu())

    def of_pairs(self, x: Any) -> tuple[Any, Any]:
        y = self.told(x, int(x[21]), {int(v) for v in x[22:24]}, [24])
        partners = torch.cat([x[15:21].view(3, 2), x[24].expand(3, 1)], 1)
        z = self.dense("embed_partners.1", self.dense("embed_partners.0", partners).relu())
        y = self.attended(torch.cat([y, z]))
        if "each.weight" not in self.w:
            return None, self.of_all(y)
        return self.dense("each", y[:5]) @ self.dense("offer", y[5:]).T / y.shape[1] ** 0.5, self.of_all(y)

    def forward(self, x: Any) -> tuple[Any, Any]:
        y = self.attended(self.told(x, int(x[15]), {int(v) for v in x[17:20]}, [16, 20]))
        each = self.dense("each", y).flatten() if "each.weight" in self.w else None
        return each, self.of_all(y)


@pytest.mark.parametrize("critic", ["shared", "separate"])
@pytest.mark.parametrize(("action", "heads"), [(5, ()), (10, ("other",))])
def test_members_are_what_torchs_own_layers_say(critic: str, action: int, heads: tuple[str, ...]) -> None:
    made, x = policy(3, action, critic=critic, heads=heads), observations(3, 7)
    with torch.no_grad():
        logits, values, _ = made(x)
        values = values.unflatten(-1, (-1, 1 + len(heads)))[..., 0, :] if heads else values[..., None]
        for k in range(3):
            actor = Plain(made.actor, k)
            critics = actor if made.critic is None else Plain(made.critic, k)
            for row in range(7):
                torch.testing.assert_close(logits[k, row], actor(x[k, row])[0], rtol=1e-4, atol=1e-4)
                torch.testing.assert_close(values[k, row], critics(x[k, row])[1], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(made.act(x)[0], logits)
        alone = made.member(1)
        torch.testing.assert_close(alone(x[1:2])[0], logits[1:2])


def matched(members: int, **form: Any) -> Policy:
    torch.manual_seed(2)
    box = spaces.Box(-np.inf, np.inf, (MATCHED_SIZE,), np.float32)
    made = Policy(
        box, spaces.Discrete(15), range(members), hidden=(8, 8), encoder="set", entities=MATCHED, activation="relu",
        **form,
    )  # fmt: skip
    with torch.no_grad():
        made.flat.add_(0.3 * torch.randn(made.flat.shape))
    return made


@pytest.mark.parametrize("critic", ["shared", "separate"])
def test_logits_of_partners_are_products(critic: str) -> None:
    """In torch's own layers: entities and partners attend to each other, and each pair has a product of two vectors."""
    made, x = matched(2, critic=critic), torch.randn(2, 4, MATCHED_SIZE)
    x[..., 21:24] = torch.randint(-1, 6, (2, 4, 3)).float()
    with torch.no_grad():
        logits, values, _ = made(x)
        for k in range(2):
            actor = Plain(made.actor, k)
            critics = actor if made.critic is None else Plain(made.critic, k)
            for row in range(4):
                wanted, _ = actor.of_pairs(x[k, row])
                torch.testing.assert_close(logits[k, row].view(5, 3), wanted, rtol=1e-4, atol=1e-4)
                worth = critics.of_pairs(x[k, row])[1]
                torch.testing.assert_close(values[k, row, None], worth, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(made.act(x)[0], logits)


@pytest.mark.parametrize("normalize", [False, True])
def test_the_order_of_partners_means_nothing(normalize: bool) -> None:
    made, x = matched(1, normalize=normalize), torch.randn(1, 40, MATCHED_SIZE)
    if normalize:
        made.scale.learn(x.double(), torch.ones(1, 40))
    other = x.clone()
    other[..., 15:21] = x[..., [19, 20, 15, 16, 17, 18]]
    with torch.no_grad():
        logits, value, _ = made(x)
        others, same, _ = made(other)
    assert logits.std() > 0.01
    torch.testing.assert_close(others.unflatten(-1, (5, 3)), logits.unflatten(-1, (5, 3))[..., [2, 0, 1]])
    torch.testing.assert_close(same, value)


def shuffled(x: Any, order: Any) -> Any:
    """The same observation with the entities in another order."""
    x, number = x.clone(), torch.cat([order.argsort(), torch.tensor([5, -1])]).float()
    places, demands = x[..., :10].unflatten(-1, (5, 2)), x[..., 10:15]
    x[..., :10], x[..., 10:15] = places[..., order, :].flatten(-2), demands[..., order]
    index = [*FIVE.pointers, *FIVE.listed]
    x[..., index] = number[x[..., index].long()]
    return x


@pytest.mark.parametrize("normalize", [False, True])
def test_the_order_of_entities_means_nothing(normalize: bool) -> None:
    made, x, order = policy(normalize=normalize), observations(1, 40), torch.randperm(5)
    if normalize:
        made.scale.learn(x.double(), torch.ones(1, 40))
    with torch.no_grad():
        logits, value, _ = made(x)
        other, same, _ = made(shuffled(x, order))
    assert logits.std() > 0.01
    torch.testing.assert_close(other, logits[..., order], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(same, value, rtol=1e-4, atol=1e-4)


def test_entities_share_a_scale_and_indices_have_none() -> None:
    made, x = policy(normalize=True), observations(1, 500) * 3 + 1
    index = [*FIVE.pointers, *FIVE.listed]
    x[..., index] = torch.randint(-1, 30, (1, 500, len(index))).float()
    made.scale.learn(x.double(), torch.ones(1, 500))
    seen = made.features(x)
    assert torch.equal(seen[..., index], x[..., index])
    places, wanted = seen[..., :10].unflatten(-1, (5, 2)), x[..., :10].unflatten(-1, (5, 2))
    for k in range(2):
        mean, deviation = wanted[..., k].mean(), wanted[..., k].std(correction=0)
        torch.testing.assert_close(places[..., k], (wanted[..., k] - mean) / deviation, rtol=1e-4, atol=1e-4)
    for k in (16, 20):
        assert abs(float(seen[..., k].mean())) < 1e-4


def test_gradients_stay_within_a_member() -> None:
    made = policy(3)
    logits, value, _ = made(observations(3, 4))
    (logits.square().sum() + value.square().sum(-1)[1] - logits[[0, 2]].square().sum()).backward()
    gradient = made.flat.grad
    assert gradient is not None
    assert (gradient[[0, 2]] == 0).all()
    assert (gradient[1] != 0).float().mean() > 0.5


@pytest.mark.parametrize("env_id", DECLARED)
def test_declared_entities_fit_the_spaces(env_id: str) -> None:
    env = gpuzoo.get(env_id)
    cfg = env.Config()
    for group in env.agents(cfg):
        entities, size = env.entities(cfg, group), spaces.flatdim(env.observation_space(cfg, group))
        assert entities is not None
        columns = [*entities.columns.ravel(), *entities.partner_columns.ravel()]
        parts = [*columns, *entities.context(size), *entities.pointers, *entities.listed]
        assert set(parts) == set(range(size))
        assert len(columns) == entities.described
        actions = env.action_space(cfg, group).n  # type: ignore[attr-defined]
        if entities.partners is None:
            assert actions % entities.count == 0
        else:
            assert actions == entities.count * entities.partners.count


@pytest.mark.parametrize("more", [{"pointers": (1,)}, {"listed": (1,)}, {"partners": Entities(2, (1,))}])
def test_what_partners_cannot_have(more: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"Entities: partners must have no pointers, lists or partners of their own\."):
        Entities(4, (2,), partners=Entities(3, (2,), **more))


@pytest.mark.parametrize("env_id", DECLARED)
def test_trained_agents_come_back_from_a_checkpoint(env_id: str, tmp_path: Path) -> None:
    args = Args.of(
        env_id, encoder="set", critic="shared", hidden=(8,), memory=0, num_envs=8, num_steps=8, total_steps=128,
        minibatches=2, population=2, device="cpu", out=str(tmp_path),
    )  # fmt: skip
    run.train(PPO, args, True)
    (played,) = arrange(env_id, {}, str(tmp_path / "checkpoint.safetensors")).players.values()
    assert played is not None
    assert isinstance(played.actor, SetNetwork)
    assert (played.flat != 0).any()


@pytest.mark.parametrize("normalize", [False, True])
def test_a_policy_plays_instances_of_any_size(normalize: bool, tmp_path: Path) -> None:
    args = Args.of(
        "MultiCVRP-v0", encoder="set", critic="shared", hidden=(8,), num_envs=8, num_steps=8, total_steps=128,
        minibatches=2, normalize_observations=normalize, device="cpu", out=str(tmp_path),
    )  # fmt: skip
    learned = run.train(PPO, args, True).policies["vehicle"]
    file = str(tmp_path / "checkpoint.safetensors")
    (played,) = arrange("MultiCVRP-v0", {}, file, {"num_customers": 6}).players.values()
    assert played is not None
    torch.testing.assert_close(played.flat, learned.flat)
    seen = torch.rand(1, 9, spaces.flatdim(played.observation_space))
    assert played(seen)[0].shape == (1, 9, 7)
    first, rest = seen[..., :49].split([14, 35], -1), seen[..., 49:]
    padded = [
        functional.pad(first[0], (0, 28)),
        functional.pad(first[1].unflatten(-1, (5, 7)), (0, 14)).flatten(-2),
        rest,
    ]
    now, before = played.features(seen), learned.features(torch.cat(padded, -1))
    torch.testing.assert_close(now[..., 49:], before[..., 147:])
    torch.testing.assert_close(now[..., :14], before[..., :14])
    torch.testing.assert_close(now[..., 14:21], before[..., 42:49])
    again = Args.of(
        "MultiCVRP-v0", encoder="set", critic="shared", hidden=(8,), num_envs=8, num_steps=8, total_steps=64,
        minibatches=2, normalize_observations=normalize, device="cpu", config={"num_customers": 10},
        load={"vehicle": file},
    )  # fmt: skip
    assert run.train(PPO, again, True).policies["vehicle"].actions.outputs == 11
    with pytest.raises(ValueError, match="entities that are told by other numbers than here"):
        arrange("MultiCVRP-v0", {}, file, {"num_vehicles": 3})


def test_a_checkpoint_that_was_changed_is_refused() -> None:
    weights = {name: torch.zeros(1, SIZE) for name in ("scale.mean", "scale.variance")}
    form = {"count": 5, "widths": [2, 1], "pointers": [15], "listed": [17, 18, 19]}
    rescale(weights, form, FIVE, SIZE, "file")
    with pytest.raises(ValueError, match="does not say which entities its policy knows"):
        rescale(weights, {**form, "partners": {"count": 2}}, FIVE, SIZE, "file")
    for changed in ({}, {**form, "count": "x"}, {**form, "widths": 3}):
        with pytest.raises(ValueError, match="does not say which entities its policy knows"):
            rescale(weights, changed, FIVE, SIZE, "file")
    for changed in ({**form, "count": 10**9}, {**form, "pointers": []}):
        with pytest.raises(ValueError, match="entities that are told by other numbers than here"):
            rescale(weights, changed, FIVE, SIZE, "file")


def test_tours_become_short() -> None:
    """A random tour of 8 cities is 4.2 long, the shortest 2.7 on average."""
    args = Args.of(
        "TSP-v1", config={"num_cities": 8}, encoder="set", critic="shared", hidden=(16,), activation="relu",
        num_envs=64, num_steps=16, total_steps=20_480, epochs=3, minibatches=4, lr=3e-3, gamma=1.0, ent_coef=0.003,
        population=3,
        normalize_rewards=False, normalize_observations=False, device="cpu",
    )  # fmt: skip
    found = run.train(PPO, args, True)
    assert found.returns["agent"].min() > -3.4


@pytest.mark.parametrize(
    ("env_id", "options", "fault"),
    [
        ("CartPole-v1", {}, r"CartPole-v1: encoder='set' is for games that declare entities"),
        ("TSP-v1", {"memory": 8}, "does not go with memory"),
        ("TSP-v1", {"one_hot": True}, "one_hot is for integers"),
        ("TSP-v1", {"hidden": (64, 32)}, r"layers of one width, a multiple of 4, not hidden=\[64, 32\]"),
        ("TSP-v1", {"hidden": (6,)}, "a multiple of 4"),
        ("TSP-v1", {"hidden": ()}, "layers of one width"),
        ("TSP-v1", {"action_parts": (4, 5)}, r"for each of the 20 entities, chosen at once, not for .* in parts"),
        ("BinPack-v2", {"config": {"action_form": "parts"}}, r"the 40 entities with one of 20 partners, chosen at"),
    ],
)  # fmt: skip
def test_what_a_set_cannot_be(env_id: str, options: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        Args(env_id, encoder="set", **options).check()


# ---- one-hot vectors ----


@pytest.mark.parametrize(
    ("box", "shape"),
    [
        (spaces.Box(-1, 8, (9, 9), np.int8), (9, 9, 10)),
        (spaces.Box(0, 5, (6, 9), np.int8), (6, 9, 6)),
        (spaces.Box(0, 2, (4, 3, 2), np.uint8), (4, 3, 6)),
        (spaces.Box(0, 3, (7,), np.int32), (28,)),
        (spaces.Box(np.array([0, -2]), np.array([3, 1]), dtype=np.int16), (8,)),
        (spaces.Box(np.array([0, -2]), np.array([3, 0]), dtype=np.int16), (7,)),
    ],
)
def test_integers_become_one_hot(box: spaces.Box, shape: tuple[int, ...]) -> None:
    assert feature_shape(box, True) == shape
    made = Policy(box, spaces.Discrete(2), one_hot=True, hidden=(4,), encoder="cnn" if len(shape) == 3 else "mlp")
    drawn = np.stack([box.sample() for _ in range(30)])
    seen = made.features(torch.from_numpy(drawn)[None])[0].flatten(1).numpy()
    flat, at = drawn.reshape(30, -1).astype(int), 0
    for k, (low, high) in enumerate(zip(box.low.ravel().astype(int), box.high.ravel().astype(int), strict=True)):
        assert (seen[:, at : at + high - low + 1] == np.eye(high - low + 1)[flat[:, k] - low]).all()
        at += high - low + 1
    assert at == seen.shape[1]
    assert made.form["one_hot"]


@pytest.mark.parametrize("box", [spaces.Box(0, 1, (3,), np.float32), spaces.Box(0, 255, (8, 8, 3), np.uint8)])
def test_amounts_do_not_become_one_hot(box: spaces.Box) -> None:
    with pytest.raises(ValueError, match="one_hot is for integers of at most 64 values, such as pieces or digits, not"):
        feature_shape(box, True)


def test_an_option_is_refused_before_anything_is_compiled() -> None:
    with pytest.raises(ValueError, match="one_hot is for integers"):
        Args("CartPole-v1", one_hot=True).check()


def test_a_run_with_one_hot_comes_back(tmp_path: Path) -> None:
    args = Args(
        "Minesweeper-v0", one_hot=True, encoder="cnn", channels=(4,), hidden=(8,), num_envs=8, num_steps=8,
        total_steps=64, device="cpu", out=str(tmp_path),
    )  # fmt: skip
    run.train(PPO, args, True)
    (played,) = arrange("Minesweeper-v0", {}, str(tmp_path / "checkpoint.safetensors")).players.values()
    assert played is not None
    assert played.shape == (10, 10, 10)
    assert played.actor.image
