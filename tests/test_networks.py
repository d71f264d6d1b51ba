"""Policies of anybody's own modules, and several value heads: `Trainer.networks` and `Trainer.heads`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from toys.glide import Glide
from toys.herd import Herd
from toys.nim import Nim

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from training import small, toy  # noqa: E402

from baselines.ppo import PPO  # noqa: E402
from baselines.report import checkpoint  # noqa: E402
from baselines.report.evaluation import evaluate  # noqa: E402
from baselines.report.match import arrange  # noqa: E402
from baselines.run import train  # noqa: E402
from baselines.train.executor import Plain  # noqa: E402
from baselines.train.learner import Head  # noqa: E402
from baselines.train.modules import ModulePolicy  # noqa: E402
from baselines.train.networks import Policy  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:grad and param do not obey the gradient layout contract")


class Wrapped(nn.Module):
    """One member of a built-in policy, as a module that knows nothing of members."""

    def __init__(self, policy: Any) -> None:
        super().__init__()
        self.policy, self.memory_size = policy, policy.memory_size

    def forward(self, x: Any, *rest: Any) -> Any:
        lead = 1 if self.memory_size else 0
        state, seat = (rest[-1].unsqueeze(lead), torch.tensor(0)) if self.policy.central else (None, None)
        if not self.memory_size:
            out, value, _ = self.policy(x.unsqueeze(0), state, seat)
            return out[0], value[0]
        memory, begins = rest[:2]
        out, value, memory = self.policy(x.unsqueeze(1), state, seat, memory.unsqueeze(0), begins.unsqueeze(1))
        return out[:, 0], value[:, 0], memory[0]


def wrapping(kind: type[PPO]) -> type[PPO]:
    """An algorithm with the built-in networks as somebody's own."""

    class Wrapping(kind):  # type: ignore[misc, valid-type]
        def networks(self, agents: Any) -> Policy:
            options = {**agents.options, "normalize": False}
            seeds = iter(agents.seeds)

            def make() -> nn.Module:
                seed = [next(seeds, 0)]
                return Wrapped(
                    Policy(agents.observation_space, agents.action_space, seed, heads=agents.heads, **options)
                )

            return ModulePolicy(agents, make)

    return Wrapping


class TwoHeads(PPO):
    """A second head foresees a constant reward beyond the ends of episodes."""

    heads: ClassVar = {"steady": Head(gamma=0.5, weight=0.25, episodic=False)}

    def on_rollout(self, learner: Any) -> Any:
        learner.rewards["steady"] += 1.0
        return super().on_rollout(learner)


RUNS: dict[str, dict[str, Any]] = {
    "population": {"game": "CartPole-v1", "population": 2},
    "memory": {"game": Glide, "memory": 5, "sequence": 8, "population": 2},
    "memory, deaths": {"game": Herd, "memory": 5},
    "images": {"game": "ConnectFour-v0", "channels": (3,)},
    "heads": {"game": "CartPole-v1", "kind": TwoHeads, "population": 2, "critic": "shared"},
    "heads, truncated": {"game": Glide, "kind": TwoHeads, "memory": 3},
    "normalised": {"game": Glide, "normalize_observations": True},
    "central": {"game": "SimpleSpeakerListener-v0", "critic": "central", "population": 2},
    "central, memory": {"game": "SimpleSpeakerListener-v0", "critic": "central", "memory": 3, "sequence": 8,
                        "normalize_observations": True},
}  # fmt: skip


@pytest.mark.one_case
@pytest.mark.parametrize("name", RUNS)
def test_a_module_of_ones_own_learns_what_the_built_in_networks_do(name: str) -> None:
    values = {"num_envs": 4, "hidden": (16,), **RUNS[name]}
    kind = values.pop("kind", PPO)
    ends = []
    for algorithm in (kind, wrapping(kind)):
        trainer = algorithm(small(values["game"], **{k: v for k, v in values.items() if k != "game"}), Plain())
        logs = [trainer.iterate() for _ in range(2)]
        policy = next(iter(trainer.policies.values()))
        weights = {k.removeprefix("module.policy."): v.clone() for k, v in policy.state_dict().items()}
        ends.append((logs, {k: v for k, v in weights.items() if k.split(".")[0] in ("actor", "critic", "scale")}))
        trainer.close()
    (logs, built_in), (own_logs, own) = ends
    assert any(k.startswith("actor") for k in built_in)
    if "normalised" in name:
        assert built_in["scale.mean"].abs().max() > 0
    for k, x in built_in.items():
        torch.testing.assert_close(own[k].view_as(x), x, rtol=1e-4, atol=1e-5)
    for mine, theirs in zip(own_logs, logs, strict=True):
        assert mine.keys() == theirs.keys()
        for k, x in theirs.items():
            torch.testing.assert_close(torch.tensor(mine[k]), torch.tensor(x), rtol=1e-3, atol=1e-4, equal_nan=True)


class Net(nn.Module):
    """With a buffer, a scalar parameter and tied weights."""

    def __init__(self, n: int, outputs: int) -> None:
        super().__init__()
        self.body = nn.Linear(n, 8)
        self.again = self.body
        self.gain = nn.Parameter(torch.ones(()))
        self.actor, self.critic = nn.Linear(8, outputs), nn.Linear(8, 1)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Any) -> Any:
        if torch.is_grad_enabled():
            self.calls += 1
        x = self.again(x).tanh() * self.gain
        return self.actor(x), self.critic(x).squeeze(-1)


class Own(PPO):
    def networks(self, agents: Any) -> Policy:
        return ModulePolicy(agents, lambda: Net(*agents.shape, agents.outputs))


class Recurrent(nn.Module):
    memory_size = 6

    def __init__(self, n: int, outputs: int) -> None:
        super().__init__()
        self.cell, self.head = nn.GRUCell(n, 6), nn.Linear(6, outputs + 1)

    def forward(self, x: Any, memory: Any, begins: Any) -> Any:
        out = []
        for now, begin in zip(x, begins, strict=True):
            memory = self.cell(now, memory * (1 - begin.unsqueeze(-1)))
            out.append(self.head(memory))
        both = torch.stack(out)
        return both[..., :-1], both[..., -1], memory


class Remembering(PPO):
    def networks(self, agents: Any) -> Policy:
        return ModulePolicy(agents, lambda: Recurrent(*agents.shape, agents.outputs))


@pytest.mark.one_case
@pytest.mark.parametrize("kind", [Own, Remembering])
@pytest.mark.parametrize("executor", ["plain", "auto"])
def test_a_run_with_modules_goes_on_with_the_same_bits(kind: type[PPO], executor: str, tmp_path: Path) -> None:
    args = small("CartPole-v1", population=2, executor=executor)
    whole = kind(args)
    for _ in range(3):
        whole.iterate()
        if whole.iteration == 2:
            whole.save(tmp_path / "a.safetensors")
    again = kind(args)
    again.restore(tmp_path / "a.safetensors")
    again.iterate()
    mine, wanted = again.state(), whole.state()
    checkpoint.check_tensors(mine, wanted, "")
    for name, x in wanted.items():
        assert torch.equal(mine[name], x), name
    flat = again.learners["agent"].policy.flat
    assert not torch.equal(flat[0], flat[1])
    if kind is Own:
        assert (
            mine["policy/agent/weights/module.calls"].tolist() == [whole.args.epochs * whole.args.minibatches * 3] * 2
        )
    whole.close()
    again.close()


def test_members_are_what_they_are_alone() -> None:
    args = small("CartPole-v1", population=2, seed=3)
    both, alone = Own(args, Plain()), Own(small("CartPole-v1", seed=4), Plain())
    for trainer in (both, alone):
        trainer.iterate()
    torch.testing.assert_close(both.policies["agent"].flat[1], alone.policies["agent"].flat[0], rtol=1e-4, atol=1e-6)
    member = both.policies["agent"].member(1)
    seen = torch.randn(1, 5, 4)
    torch.testing.assert_close(member(seen)[0][0], both.policies["agent"](seen.expand(2, 5, 4))[0][1])
    both.close()
    alone.close()


def test_a_checkpoint_with_a_module(tmp_path: Path) -> None:
    """It is evaluated and trained further where the module is known, and refused elsewhere, with what can be done."""
    args = small("CartPole-v1", out=str(tmp_path), eval_every=1, eval_episodes=4)
    result = train(Own, args, quiet=True)
    assert result.rows[-1]["eval/agent"] > 0
    assert evaluate("CartPole-v1", result.policies, episodes=4).returns["agent"].shape == (4, 1)
    file = str(result.checkpoint)
    with pytest.raises(ValueError, match=r"policy 'agent' in .* has a network of its own, the module Net, and a check"):
        arrange("CartPole-v1", {"agent": file})
    with pytest.raises(ValueError, match="a checkpoint holds no code"):
        PPO(small("CartPole-v1", load={"agent": file}))
    with pytest.raises(ValueError, match=r"has Net, but `networks` made Recurrent\."):
        Remembering(small("CartPole-v1", load={"agent": file}))
    further = Own(small("CartPole-v1", load={"agent": file}, population=2))
    for member in further.policies["agent"].flat:
        assert torch.equal(member, result.policies["agent"].flat[0])
    further.close()


def test_modules_play_against_their_past_selves() -> None:
    args = small(Nim, pool=2, pool_every=1, config={"heap": 6})
    rows = train(Remembering, args, quiet=True).rows
    assert 0 <= rows[-1]["win_rate"] <= 1


def test_the_executor_is_told() -> None:
    pytest.importorskip("baselines.fast.executor")
    from baselines.executors import choose

    for kind, told in ((Own, "fast, with the networks in plain torch"), (PPO, "fast")):
        trainer = kind(small("CartPole-v1"), choose("auto", "cpu"))
        assert trainer.executor.describe() == told
        trainer.close()


def broken(returned: Any, size: int = 0) -> type[PPO]:
    class Broken(nn.Module):
        memory_size = size

        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(2))

        def forward(self, *seen: Any) -> Any:
            return returned(*seen)

    class Algorithm(PPO):
        def networks(self, agents: Any) -> Policy:
            return ModulePolicy(agents, Broken)

    return Algorithm


@pytest.mark.parametrize(
    ("returned", "size"),
    [
        (lambda x: (x[:, :2], x[:, :1]), 0),  # (rows, 1) would broadcast against (rows,)
        (lambda x: x[:, :2], 0),
        (lambda x, m, b: (x[..., :2], x[..., 0], m[:, :1]), 2),
    ],
)
def test_wrong_shapes_are_refused(returned: Any, size: int) -> None:
    trainer = broken(returned, size)(small("CartPole-v1"), Plain())
    with pytest.raises(ValueError, match=r"Broken must return a tuple of shapes \[.*\] for observations \("):
        trainer.iterate()
    trainer.close()


def test_what_no_module_can_do_is_refused() -> None:
    class Empty(PPO):
        def networks(self, agents: Any) -> Policy:
            return ModulePolicy(agents, nn.Identity)

    with pytest.raises(ValueError, match="the module Identity must have parameters, all of them float32"):
        Empty(small("CartPole-v1"))


# ---- heads ----


@pytest.mark.one_case
@pytest.mark.parametrize("critic", ["separate", "shared", "central"])
def test_a_head_learns_its_own_rewards(critic: str) -> None:
    """With a reward of 1 in each step that never ends, and a discount of a half, all is worth 2."""

    class Alone(TwoHeads):
        def on_rollout(self, learner: Any) -> Any:
            learner.reward = torch.zeros_like(learner.reward)
            return super().on_rollout(learner)

    trainer = Alone(small("SimpleSpread-v0", critic=critic, lr=1e-2, anneal_lr=False, hidden=(16,)))
    first = trainer.iterate()
    for _ in range(24):
        numbers = trainer.iterate()
    value = trainer.learners["agent"].player.value
    assert (value[..., 1] - 2).abs().mean() < 0.2
    assert value[..., 0].abs().mean() < 0.5
    assert numbers["agent/value_loss_steady"][0] < 0.1 * first["agent/value_loss_steady"][0]
    trainer.close()


def test_advantages_of_heads_are_weighted() -> None:
    """A head with the game's own rewards, that says the same, has the same advantages and targets."""

    class Twice(PPO):
        heads: ClassVar = {"same": Head(gamma=0.99, weight=0.5)}

        def on_rollout(self, learner: Any) -> Any:
            learner.rewards["same"] = learner.reward.clone()
            return {}

    trainer = Twice(small(toy("Clock"), gamma=0.99), Plain())
    for policy in trainer.policies.values():
        last = policy.critic.weights[-1].data
        last[..., 1] = last[..., 0]
    trainer.play()
    for learner in trainer.learners.values():
        trainer.prepare(learner)
        own = learner.columns["target"] - learner.columns["old_value"]
        assert own.abs().max() > 1
        torch.testing.assert_close(learner.columns["advantage"], 1.5 * own)
        torch.testing.assert_close(learner.columns["target_same"], learner.columns["target"])
    trainer.close()
