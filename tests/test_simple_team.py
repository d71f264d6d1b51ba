"""`baselines/simple/qmix.py` and `pqn_vdn.py`: mixers, targets, masks, groups, memory, and that teams learn."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from toys.herd import Herd
from toys.two_step import TwoStep

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from training import toy  # noqa: E402

import gpuzoo  # noqa: E402
from baselines.simple import pqn_vdn, qmix  # noqa: E402

pytestmark = pytest.mark.rotates  # about these modules of the trainers

FILES = [qmix, pqn_vdn]


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def silent(row: dict[str, float]) -> None:
    pass


# ---- mixers ----


def wild_mixer(agents: int) -> qmix.Mixer:
    """A mixer whose weights are of any sign and large."""
    mixer = qmix.Mixer("qmix", agents, 5, 8)
    for p in mixer.parameters():
        nn.init.normal_(p)
    return mixer


def test_qmix_never_falls_where_a_value_rises():
    q = torch.randn(1000, 3, requires_grad=True)
    total = wild_mixer(3)(q, torch.randn(1000, 5))
    assert total.shape == (1000, 1)
    (slope,) = torch.autograd.grad(total.sum(), q)
    assert (slope >= 0).all()
    assert (slope > 0.1).float().mean() > 0.5
    assert slope.std(0).min() > 0.1, "the state does not matter"


@pytest.mark.parametrize("kind", ["vdn", "qmix"])
def test_the_best_joint_action_consists_of_each_agents_own(kind):
    mixer = wild_mixer(3) if kind == "qmix" else qmix.Mixer(kind, 3, 5, 8)
    joint = torch.tensor(list(itertools.product(range(4), repeat=3)))  # (64, 3)
    for state in torch.randn(20, 5):
        q = torch.randn(3, 4)
        totals = mixer(q[torch.arange(3), joint], state.expand(64, 5)).squeeze(1)
        own = mixer(q.amax(1), state)
        torch.testing.assert_close(own, totals.max().reshape(1))


def test_vdn_adds_and_independent_learners_do_not_mix():
    q, state = torch.randn(7, 3), torch.zeros(7, 0)
    assert qmix.Mixer("vdn", 3, 0, 8)(q, state).squeeze(1).tolist() == q.sum(1).tolist()
    assert qmix.Mixer("none", 3, 0, 8)(q, state) is q


# ---- targets ----


class Table(nn.Module):
    """Agents whose values do not depend on what they see."""

    def __init__(self, values: torch.Tensor) -> None:
        super().__init__()
        self.values = nn.Parameter(values)

    def forward(self, *seen: Any) -> tuple[torch.Tensor, None]:
        return self.values, None


def random_sequences(steps: int, envs: int, agents: int, gamma: float) -> dict[str, torch.Tensor]:
    """What agents do who may leave before an episode ends by time; a step after each end is a reset."""
    T, N, A = steps, envs, agents
    acting, terminated, truncated = (torch.zeros(T, N, A, dtype=torch.bool) for _ in range(3))
    for n in range(N):
        alive, waits = torch.ones(A, dtype=torch.bool), False
        for t in range(T):
            if waits:  # the step that resets
                alive, waits = torch.ones(A, dtype=torch.bool), False
                continue
            acting[t, n] = alive
            terminated[t, n] = alive & (torch.rand(A) < 0.2)
            truncated[t, n] = alive & bool(torch.rand(()) < 0.15)
            alive = alive & ~terminated[t, n] & ~truncated[t, n]
            waits = not alive.any()
    assert (acting.any(-1) & ~acting.all(-1)).any()
    assert (terminated & truncated).any()
    legal = torch.rand(T + 1, N, A, 4) < 0.6
    legal[..., 0] = True
    return {
        "inputs": torch.zeros(0), "memory": torch.zeros(0), "begins": torch.zeros(0), "legal": legal,
        "state": torch.randn(T + 1, N, 5), "action": torch.randint(4, (T, N, A)), "acting": acting,
        "reward": torch.randn(T, N, A) * acting, "continues": acting & ~(terminated | truncated),
        "discount": gamma * (~terminated).float(), "terminated": terminated,
    }  # fmt: skip


@pytest.mark.parametrize("q_lambda", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("kind", ["none", "vdn", "qmix"])
def test_targets_follow_their_definition(kind, q_lambda):
    """A loop over envs and steps says the same."""
    T, N, A, gamma = 9, 30, 3, 0.9
    batch = random_sequences(T, N, A, gamma)
    online, target = (nn.ModuleList([Table(torch.randn(T + 1, N, A, 4)), wild_mixer(A)]) for _ in range(2))
    if kind != "qmix":
        online[1] = target[1] = qmix.Mixer(kind, A, 0, 8)
    args = qmix.Args(mixer=kind, gamma=gamma, q_lambda=q_lambda)
    loss = qmix.td_loss(args, online, target, batch)

    squares = []
    with torch.no_grad():
        for n in range(N):
            for team in [[0], [1], [2]] if kind == "none" else [[0, 1, 2]]:
                following = None
                for t in reversed(range(T)):
                    acts = [bool(batch["acting"][t, n, a]) for a in team]
                    if not any(acts):
                        following = None
                        continue
                    lasts = [bool(batch["acting"][t, n, a] & ~batch["terminated"][t, n, a]) for a in range(A)]
                    later = torch.zeros(A)
                    for a in range(A):
                        choice = online[0].values[t + 1, n, a].masked_fill(~batch["legal"][t + 1, n, a], -9e9).argmax()
                        later[a] = target[0].values[t + 1, n, a, choice] * lasts[a]
                    value = target[1](later, batch["state"][t + 1, n])
                    value = value[team[0]] if kind == "none" else value[0]
                    if following is not None and any(bool(batch["continues"][t, n, a]) for a in team):
                        value = (1 - q_lambda) * value + q_lambda * following
                    reward = batch["reward"][t, n, team].mean()
                    following = reward + gamma * value * any(lasts[a] for a in team)
                    taken = online[0].values[t, n].gather(1, batch["action"][t, n, :, None])[:, 0]
                    predicted = online[1](taken * batch["acting"][t, n], batch["state"][t, n])
                    squares.append((predicted[team[0]] - following) ** 2)
    torch.testing.assert_close(loss.detach(), torch.stack(squares).mean())
    loss.backward()
    assert target[0].values.grad is None


def test_lambda_returns_end_with_the_episode():
    reward, value = torch.tensor([[1.0], [2.0], [4.0], [8.0]]), torch.tensor([[10.0], [20.0], [30.0], [40.0]])
    discount = torch.tensor([[0.5], [0.0], [0.5], [0.5]])  # step 1 terminates
    continues = torch.tensor([[True], [False], [False], [True]])  # step 2 is cut by time
    found = pqn_vdn.lambda_returns(reward, discount, value, continues, 0.5)
    last, cut, terminal = 8 + 0.5 * 40, 4 + 0.5 * 30, 2.0
    assert found[:, 0].tolist() == [1 + 0.5 * (0.5 * 10 + 0.5 * terminal), terminal, cut, last]


# ---- agents ----


def test_random_and_best_actions_are_legal():
    q, legal = torch.randn(500, 3, 6), torch.rand(500, 3, 6) < 0.4
    legal[..., 2] |= ~legal.any(-1)
    for action in (
        *(qmix.choose(q, legal, epsilon) for epsilon in (0.0, 0.5, 1.0)),
        pqn_vdn.best(q, legal),
        pqn_vdn.explore(pqn_vdn.best(q, legal), q, legal, 1.0),
    ):
        assert legal.gather(-1, action[..., None]).all()
    best = qmix.choose(q, legal, 0.0)
    assert torch.equal(best, q.masked_fill(~legal, -9.0).argmax(-1))
    assert torch.equal(best, pqn_vdn.best(q, legal))
    random = qmix.choose(torch.zeros(10_000, 1, 4), torch.tensor([True, False, True, True]).expand(10_000, 1, 4), 1.0)
    counts = torch.bincount(random.flatten(), minlength=4) / 10_000
    assert counts[1] == 0
    assert (counts[[0, 2, 3]] - 1 / 3).abs().max() < 0.03


@pytest.mark.parametrize("file", FILES, ids=["qmix", "pqn_vdn"])
@pytest.mark.parametrize("memory", [0, 7])
def test_each_group_has_a_network_that_its_agents_share(file, memory):
    with gpuzoo.make(Herd, 4, device="cpu", output="torch", autoreset_mode="next_step") as envs:  # 2 wolves, 3 sheep
        observations, _ = envs.reset(seed=0)
        agents = file.Agents(envs, 16, memory)
        x, legal = agents.encode(observations)
        wolves, sheep = observations["wolf"], observations["sheep"]
        assert x.shape == (4, 5, max(4 + 2, 3 + 3))
        assert torch.equal(x[:, :2, :4], wolves["observation"].flatten(2))
        assert torch.equal(x[:, :2, 4:], torch.eye(2).expand(4, 2, 2))
        assert torch.equal(x[:, 2:, :3], sheep["observation"])
        assert torch.equal(x[:, 2:, 3:], torch.eye(3).expand(4, 3, 3))
        assert torch.equal(legal[:, :2], wolves["action_mask"].bool())
        assert torch.equal(legal[:, 2:, :3], sheep["action_mask"].bool())
        assert not legal[:, 2:, 3:].any(), "sheep have three actions"

        x = torch.randn(1, 4, 5, 6)
        x[0, 0, :2] = x[0, 0, 0]  # two wolves that see the same, and have the same number
        q, _ = agents(x, torch.zeros(4, 5, memory), torch.ones(1, 4, dtype=torch.bool))
        assert q.shape == (1, 4, 5, 5)
        torch.testing.assert_close(q[0, 0, 0], q[0, 0, 1])
        assert not torch.allclose(q[0, 0, 2], q[0, 0, 3])
        q[:, :, 2:].sum().backward()
        touched = {name.split(".")[1] for name, p in agents.named_parameters() if p.grad is not None and p.grad.any()}
        assert touched == {"sheep"}


@pytest.mark.parametrize("file", FILES, ids=["qmix", "pqn_vdn"])
def test_memory_goes_from_step_to_step_but_not_into_the_next_episode(file):
    with gpuzoo.make(Herd, 4, device="cpu", output="torch") as envs:
        agents = file.Agents(envs, 16, 7)
    x, begins = torch.randn(6, 4, 5, 6), torch.zeros(6, 4, dtype=torch.bool)
    begins[3, 1] = True
    start = torch.randn(4, 5, 7)
    whole, after = agents(x, start, begins)
    memory = start
    for t in range(6):
        q, memory = agents(x[t : t + 1], memory, begins[t : t + 1])
        torch.testing.assert_close(q[0], whole[t])
    torch.testing.assert_close(memory, after)
    fresh, _ = agents(x[3:], torch.zeros(4, 5, 7), begins[3:])
    torch.testing.assert_close(fresh[:, 1], whole[3:, 1])
    assert not torch.allclose(fresh[:, 0], whole[3:, 0])


@pytest.mark.parametrize("file", FILES, ids=["qmix", "pqn_vdn"])
def test_returns_are_those_of_agents_that_are_in_the_game(file):
    """`Clock` gives an agent the time and ten times its number; the second one dies at 3, the end is at 5."""
    args = file.Args(toy("Clock"), device="cpu")
    with file.make(args, 2) as envs:
        agents = file.Agents(envs, 4, 0)
    assert file.evaluate(args, agents, 2) == {"lasting": 15.0, "dying": 36.0}


# ---- runs ----


def small(**values: Any) -> dict[str, Any]:
    return {"device": "cpu", "hidden": 32, "num_steps": 3, "q_lambda": 0.0, "epsilon_end": 1.0, **values}


LEARNERS = [
    pytest.param(qmix, {"mixer": "none", "q_lambda": 1.0}, id="iql"),
    pytest.param(qmix, {"mixer": "vdn"}, id="vdn"),
    pytest.param(pqn_vdn, {}, id="pqn_vdn"),
]


@pytest.mark.parametrize(("file", "values"), LEARNERS)
def test_values_stop_where_an_agent_dies_and_go_on_where_time_is_up(file, values):
    """In `Clock` the second agent dies in step 3, and time is up in step 5. Values agree with the rewards.

    Small networks draw a line through what the dying agent is worth, 20.25, 18.5 and 13, hence the tolerance. What
    they think of times after the end is far beyond it.
    """
    values = small(num_envs=16, num_steps=7, memory=0, gamma=0.5, lr=5e-3) | values
    values |= {"target_every": 5, "updates": 6} if file is qmix else {"minibatches": 4, "epochs": 3}
    agents = file.train(file.Args(toy("Clock"), total_steps=16 * 7 * 60, **values), silent)["agent"]
    x = torch.zeros(6, 1, 2, 3)
    x[:, 0, :, 0], x[:, 0, 1, 1], x[..., 2] = torch.arange(6.0)[:, None], 1.0, 1.0  # time, agent, number in its group
    q, _ = agents(x, torch.zeros(1, 2, 0), torch.zeros(6, 1, dtype=torch.bool))
    lasting, dying = q.amax(-1)[:, 0].unbind(1)
    rewards = torch.arange(1.0, 6.0)
    assert lasting[5] > 4
    assert dying[3] > 4
    if values.get("mixer") == "none":
        torch.testing.assert_close(lasting[:5], rewards + 0.5 * lasting[1:], atol=0.3, rtol=0)
        torch.testing.assert_close(dying[:3], torch.tensor([20.25, 18.5, 13.0]), atol=1.5, rtol=0)
        return
    team = lasting + dying * torch.tensor([1, 1, 1, 0, 0, 0])
    rewards = (rewards + (rewards + 10) * torch.tensor([1, 1, 1, 0, 0])) / 2
    torch.testing.assert_close(team[:5], rewards + 0.5 * team[1:], atol=1.0, rtol=0)


@pytest.mark.parametrize("file", FILES, ids=["qmix", "pqn_vdn"])
def test_memory_is_lost_where_an_episode_begins(file, monkeypatch):
    """At time 0 of `Clock`, and nowhere else: not at the end of the one before, nor in the step that resets."""
    forward, seen = file.Agents.forward, []

    def watched(self: Any, x: torch.Tensor, memory: torch.Tensor, begins: torch.Tensor) -> Any:
        assert torch.equal(begins, x[:, :, 0, 0] == 0)
        seen.append(begins.sum().item())
        return forward(self, x, memory, begins)

    monkeypatch.setattr(file.Agents, "forward", watched)
    monkeypatch.setattr(file, "evaluate", lambda *_: {"everybody": 0.0})
    values = small(num_envs=4, num_steps=9, memory=5) | ({} if file is qmix else {"minibatches": 2})
    file.train(file.Args(toy("Clock"), total_steps=4 * 9 * 3, **values), silent)
    assert sum(seen) > 20


SEEDS = (1, 2, 3)


@pytest.mark.rotates(long=True)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("mixer", "best"), [("none", 7.0), ("vdn", 7.0), ("qmix", 8.0)])
def test_only_qmix_finds_the_best_way_through_the_two_step_game(mixer, best, seed):
    """Rashid et al. 2018, section 5: from random play a sum of values takes 8 for 6.5, and 7 for better."""
    args = qmix.Args(TwoStep, mixer=mixer, seed=seed, total_steps=32 * 3 * 100, lr=5e-3, embedding=8, memory=0,
                     updates=4, target_every=10, buffer_size=1024, **small())  # fmt: skip
    rows: list[dict[str, float]] = []
    result = qmix.train(args, rows.append)
    assert result["return"] == best
    assert result["returns"] == {"player": best}
    assert result["speed"] > 0
    assert len(rows) == 100
    assert rows[-1]["steps"] == args.total_steps


@pytest.mark.rotates(long=True)
@pytest.mark.parametrize("seed", SEEDS)
def test_pqn_vdn_learns_the_two_step_game(seed):
    """Random play has 4.75 on average. A sum is enough for the 7, and then knows what it is worth."""
    args = pqn_vdn.Args(TwoStep, seed=seed, total_steps=64 * 6 * 40, num_envs=64, minibatches=4, lr=5e-3, gamma=0.9,
                        **small(num_steps=6))  # fmt: skip
    result = pqn_vdn.train(args, silent)
    assert result["return"] == 7.0
    x = torch.tensor([[1.0, 0, 0, 1, 0], [1, 0, 0, 0, 1]]).reshape(1, 1, 2, 5)  # one-hot table, one-hot agent
    q, _ = result["agent"](x, torch.zeros(1, 2, 0), torch.ones(1, 1, dtype=torch.bool))
    assert abs(q.amax(-1).sum().item() - 0.9 * 7) < 0.5


@pytest.mark.rotates(long=True)
@pytest.mark.parametrize("file", FILES, ids=["qmix", "pqn_vdn"])
def test_what_was_seen_at_the_beginning_is_remembered(file):
    """`Cue` asks in its fifth step for what it showed in the first: guesses are right in half of the episodes."""
    values: dict[str, Any] = {"num_envs": 32, "memory": 16, "q_lambda": 1.0, "epsilon_end": 0.1}
    if file is qmix:
        values |= {"mixer": "vdn", "num_steps": 12, "updates": 4, "target_every": 5, "lr": 1e-2, "total_steps": 15_360}
    else:
        values |= {"num_steps": 6, "minibatches": 4, "anneal_lr": False, "lr": 5e-3, "total_steps": 9_600}
    args = file.Args(toy("Cue"), **small(**values))
    assert file.train(args, silent)["return"] > 0.9


# ---- mistakes ----


@pytest.mark.parametrize(
    ("file", "values", "message"),
    [
        (qmix, {"mixer": "sum"}, "mixer must be 'none', 'vdn' or 'qmix', not 'sum'"),
        (qmix, {"batch_size": 0}, "batch_size must be at least 1, not 0"),
        (qmix, {"total_steps": 10}, "total_steps must be at least num_envs"),
        (pqn_vdn, {"minibatches": 7}, "minibatches must divide num_envs . num_steps = 4096, which 7 does not"),
        (pqn_vdn, {"minibatches": 512, "memory": 8}, "minibatches must divide num_envs = 256, which 512 does not"),
    ],
)
def test_mistakes_in_options_are_named(file, values, message):
    with pytest.raises(ValueError, match=message):
        file.Args(**values)


@pytest.mark.parametrize("file", FILES, ids=["qmix", "pqn_vdn"])
def test_continuous_actions_are_refused(file):
    with pytest.raises(ValueError, match="needs Discrete actions, but those of 'agent' are Box"):
        file.train(file.Args("SimpleSpread-v0", config={"continuous_actions": True}, device="cpu"))
