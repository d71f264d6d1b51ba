"""The one-file algorithms for values, continuous actions and evolution: their parts, and that they learn."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

torch = pytest.importorskip("torch")

from baselines.simple import dqn, es, pqn, sac, td3  # noqa: E402

pytestmark = pytest.mark.rotates  # about these modules of the trainers

ALL = [dqn, pqn, sac, td3, es]


def name(module: Any) -> str:
    return module.__name__.rpartition(".")[2]


# ---- Q-learning ----


@pytest.mark.parametrize("q_lambda", [0.0, 0.7, 1.0])
def test_lambda_returns_are_mixtures_of_n_step_returns(q_lambda):
    """By their definition, from each step to the end of its episode or of the rollout."""
    torch.manual_seed(0)
    T, n, gamma = 6, 40, 0.9
    rewards, values, ends = torch.randn(T, n), torch.randn(T + 1, n), (torch.rand(T, n) < 0.2).float()
    found = pqn.lambda_returns(rewards, ends, values, gamma, q_lambda)
    for t, i in itertools.product(range(T), range(n)):
        length = next((k + 1 for k in range(T - t) if ends[t + k, i]), T - t)
        over = bool(ends[t + length - 1, i])
        returns = []
        for steps in range(1, length + 1):
            total = sum(gamma**k * float(rewards[t + k, i]) for k in range(steps))
            last = over and steps == length
            returns.append(total + (0 if last else gamma**steps * float(values[t + steps, i])))
        weights = [(1 - q_lambda) * q_lambda**k for k in range(length - 1)] + [q_lambda ** (length - 1)]
        assert float(found[t, i]) == pytest.approx(float(np.dot(weights, returns)), abs=1e-5)


@pytest.mark.parametrize("module", [dqn, pqn], ids=name)
def test_actions_are_legal_whether_greedy_or_random(module):
    torch.manual_seed(0)
    q = torch.randn(500, 4)
    legal = (torch.rand(500, 4) < 0.4).to(torch.int8)
    legal[:, 1] = 1
    value, best = module.greedy(q, legal)
    for row in range(500):
        choices = legal[row].nonzero().flatten()
        assert best[row] == choices[q[row, choices].argmax()]
        assert value[row] == q[row, choices].max()
    drawn = module.explore(best, q, legal, 1.0)
    assert legal.gather(1, drawn.unsqueeze(1)).all()
    assert set(drawn.tolist()) == {0, 1, 2, 3}
    assert torch.equal(module.explore(best, q, legal, 0.0), best)
    some = (module.explore(best, q, None, 0.4) != best).float().mean()
    assert 0.2 < some < 0.4, "0.4 * 3 / 4 of the actions change"


def test_a_dueling_network_has_the_mean_of_values_in_its_own_stream():
    args = dqn.Args(dueling=True)
    network = dqn.QNetwork(spaces.Box(-1, 1, (4,)), 3, args)
    seen = torch.randn(5, 4)
    assert torch.allclose(network(seen).mean(1, keepdim=True), network.value(network.layers(seen)), atol=1e-6)


@pytest.mark.parametrize("module", [dqn, pqn], ids=name)
def test_a_time_limit_is_no_end_of_the_game(module):
    """Every step of this bandit yields 1 and is cut by the limit: with gamma 0.5 the value of both actions is 2."""
    options = {"total_steps": 6_000, "num_envs": 16, "gamma": 0.5, "lr": 3e-3, "config": {"max_episode_steps": 1}}
    own: dict[str, Any] = {"num_steps": 8, "minibatches": 2, "reward_scale": 1.0} if module is pqn else {"tau": 0.05}
    result = module.train(module.Args("CartPole-v1", **options, **own), log=lambda row: None)
    with torch.no_grad():
        values = result["agent"](torch.zeros(1, 4))
    # A short run comes near 2; if the limit were an end, the value would be 1.
    assert torch.allclose(values, torch.full((1, 2), 2.0), atol=0.2), values


# ---- continuous actions ----


def test_a_squashed_gaussian_has_the_density_of_torchs():
    from torch.distributions import Independent, Normal, TanhTransform, TransformedDistribution

    torch.manual_seed(0)
    actor, seen = sac.Actor(3, 2, 16), torch.randn(200, 3)
    action, log_prob = actor(seen)
    mean, log_std = actor.layers(seen).chunk(2, -1)
    std = (-5 + 3.5 * (log_std.tanh() + 1)).exp()
    expected = TransformedDistribution(Independent(Normal(mean, std), 1), TanhTransform())
    inside = action.abs().max(1).values < 0.99  # where the inverse of tanh is exact enough
    assert inside.sum() > 100
    assert torch.allclose(log_prob[inside], expected.log_prob(action)[inside], atol=1e-3)


@pytest.mark.parametrize("module", [sac, td3], ids=name)
def test_twin_critics_are_two_networks(module):
    torch.manual_seed(0)
    critics, seen, action = module.Critics(5, 16), torch.randn(7, 3), torch.randn(7, 2)
    found = critics(seen, action)
    assert found.shape == (2, 7)
    assert not torch.allclose(found[0], found[1])
    for k in range(2):
        x = torch.cat([seen, action], 1)
        for i, (weight, bias) in enumerate(zip(critics.weights, critics.biases, strict=True)):
            x = (x.relu() if i else x) @ weight[k] + bias[k]
        assert torch.allclose(found[k], x.squeeze(1), atol=1e-5)


def test_observations_are_normalized_by_what_was_seen():
    torch.manual_seed(0)
    actor, seen = sac.Actor(3, 2, 16, normalize=True), 5 + 2 * torch.randn(4, 50, 3)
    for part in seen:
        actor.moments.update(part)
    found = actor.seen(seen.flatten(0, 1))
    assert torch.allclose(found.mean(0), torch.zeros(3), atol=1e-5)
    assert torch.allclose(found.std(0, correction=0), torch.ones(3), atol=1e-5)
    assert {"moments.mean", "moments.var"} <= actor.state_dict().keys()
    plain = sac.Actor(3, 2, 16)
    assert torch.equal(plain.seen(seen[0]), seen[0])


@pytest.mark.parametrize("module", [sac, td3], ids=name)
def test_actions_are_scaled_to_their_bounds(module):
    space = spaces.Box(np.float32([[-2, 0]]), np.float32([[2, 0.5]]))
    found = module.scaled(torch.tensor([[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0]]), space)
    assert found.tolist() == [[[-2, 0]], [[0, 0.25]], [[2, 0.5]]]


# ---- evolution ----


def test_ranks_are_centred_and_shared_by_equals():
    found = es.centred_ranks(torch.tensor([3.0, -1.0, 3.0, 900.0, 0.0]))
    assert found.tolist() == pytest.approx([0.125, -0.5, 0.125, 0.5, -0.25])
    assert es.centred_ranks(torch.full((6,), 2.0)).tolist() == [0.0] * 6


@pytest.mark.parametrize(
    ("observed", "acts"),
    [
        (spaces.Box(-1, 1, (2, 3)), spaces.Discrete(4)),
        (spaces.Discrete(5), spaces.MultiDiscrete([2, 3])),
        (spaces.Box(-1, 1, (4,)), spaces.Box(np.float32([-3, 1]), np.float32([-1, 2]))),
    ],
    ids=str,
)
def test_members_of_a_population_play_with_their_own_weights(observed, acts):
    torch.manual_seed(0)
    policies = es.Policies(observed, acts, 8)
    weights = torch.randn(6, policies.size)
    seen = torch.as_tensor(np.stack([observed.sample() for _ in range(18)]))
    together = policies(weights, seen, None)
    alone = [policies(weights[m : m + 1], seen[3 * m : 3 * m + 3], None) for m in range(6)]
    assert torch.allclose(together.float(), torch.cat(alone).float(), atol=1e-5)
    assert together.unique(dim=0).shape[0] > 1
    assert all(acts.contains(np.asarray(action, acts.dtype)) for action in together)


# ---- learning ----

REFUSED = [
    *((module, {"num_envs": 0}, "num_envs must be at least 1") for module in ALL),
    *((module, {"game": "TagGridWorld-v0"}, "has several agents") for module in ALL),
    *((module, {"game": "Pendulum-v1"}, "needs discrete actions") for module in (dqn, pqn)),
    *((module, {"game": "CartPole-v1"}, "needs bounded continuous actions") for module in (sac, td3)),
    (pqn, {"minibatches": 3}, "minibatches must divide"),
    (pqn, {"total_steps": 10}, "total_steps must be at least"),
    (es, {"population": 5}, "population must be even and divide"),
]


@pytest.mark.parametrize(("module", "options", "message"), REFUSED, ids=lambda x: name(x) if x in ALL else None)
def test_options_that_cannot_work_are_refused(module, options, message):
    with pytest.raises(ValueError, match=message):
        module.train(module.Args(**options), log=lambda row: None)


SMALL: dict[Any, dict[str, Any]] = {
    dqn: {"total_steps": 240, "num_envs": 16, "learning_starts": 64, "updates": 1, "dueling": True},
    pqn: {"total_steps": 512, "num_envs": 16, "num_steps": 8, "minibatches": 4},
    sac: {
        "total_steps": 240,
        "num_envs": 16,
        "learning_starts": 64,
        "updates": 2,
        "n_step": 3,
        "policy_delay": 2,
        "layer_norm": True,
        "normalize_observations": True,
        "reward_scale": 0.1,
        "alpha": 0.2,
    },
    td3: {"total_steps": 240, "num_envs": 16, "learning_starts": 64, "updates": 1, "n_step": 3},
    es: {"total_steps": 400, "num_envs": 16, "population": 8},
}
GAMES = {
    dqn: ["Breakout-MinAtar-v1", "FrozenLake-v1", "ConnectFour-v0"],  # images, choices, masks
    pqn: ["Breakout-MinAtar-v1", "FrozenLake-v1", "ConnectFour-v0"],
    sac: ["MountainCarContinuous-v0", "Reacher-misc-v0"],
    td3: ["MountainCarContinuous-v0", "Reacher-misc-v0"],
    es: ["ConnectFour-v0", "Reacher-misc-v0", "FrozenLake-v1"],
}


@pytest.mark.parametrize(
    ("module", "played"),
    [(m, played) for m, games in GAMES.items() for played in games],
    ids=lambda x: name(x) if x in ALL else None,
)
def test_every_kind_of_game_runs_and_repeats(module, played):
    config: dict[str, Any] = {"max_episode_steps": 20}
    if played == "ConnectFour-v0":
        config = {"group": "player_0", "opponents": "random"}
    runs: list[list[dict[str, float]]] = [[], []]
    returns = []
    for rows in runs:
        result = module.train(module.Args(played, config=config, **SMALL[module]), rows.append)
        returns.append(result["return"])
    assert math.isfinite(returns[0])
    assert returns[0] == returns[1]
    timeless = [[{k: v for k, v in row.items() if k not in ("seconds", "speed")} for row in rows] for rows in runs]
    assert timeless[0] == timeless[1]
    assert all(math.isfinite(value) for row in timeless[0] for value in row.values())


SOLVED = {
    dqn: ("CartPole-v1", 475),
    pqn: ("CartPole-v1", 475),
    es: ("CartPole-v1", 475),
    sac: ("Pendulum-v1", -200),
    td3: ("Pendulum-v1", -200),
}


@pytest.mark.rotates(long=True)
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("module", ALL, ids=name)
def test_defaults_solve_the_default_game(module, seed):
    """From random play, which has about 22 in CartPole and -1,200 in Pendulum."""
    game, goal = SOLVED[module]
    args = module.Args(seed=seed)
    assert args.game == game
    assert module.train(args, log=lambda row: None)["return"] >= goal
