"""The trainer: targets, distributions, checkpoints, messages, and that it learns."""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from toys.glide import Glide
from toys.herd import Herd
from toys.lamps import Lamps
from toys.nim import Nim

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[1]))

from baselines.ppo import PPO, Args, Policy, advantages, evaluate, parse, scan, train  # noqa: E402

GAMMA, LAMBDA = 0.9, 0.8


# ---- targets ----


def slow_advantages(rewards, values, acting, terminated, truncated, final_values):  # type: ignore[no-untyped-def]
    """What `advantages` promises, for one agent: follow each decision to the next one, or to the end."""
    steps = len(rewards)
    gain, target, valid = np.zeros(steps), np.zeros(steps), np.zeros(steps, bool)
    for t in reversed(range(steps)):
        if not acting[t]:
            continue
        total, k = 0.0, t
        while True:
            total += rewards[k]
            if terminated[k]:
                follow, chain = 0.0, 0.0
            elif truncated[k]:
                if final_values is None:
                    break
                follow, chain = final_values[k], 0.0
            elif acting[k + 1]:
                follow, chain = values[k + 1], gain[k + 1] if k + 1 < steps else 0.0
            elif k + 1 < steps:
                k += 1
                continue
            else:
                break
            valid[t] = True
            gain[t] = total + GAMMA * follow - values[t] + GAMMA * LAMBDA * chain
            target[t] = gain[t] + values[t]
            break
    return gain, target, valid


@pytest.mark.parametrize(("waits", "known"), [(False, True), (True, True), (True, False)])
@pytest.mark.parametrize("seed", range(5))
def test_advantages_follow_their_definition(seed: int, waits: bool, known: bool) -> None:
    rng = np.random.default_rng(seed)
    steps, agents = 40, 50
    rewards = rng.normal(size=(steps, agents))
    values, final = rng.normal(size=(steps + 1, agents)), rng.normal(size=(steps, agents))
    ends = rng.random((steps, agents))
    terminated, truncated = ends < 0.1, (ends > 0.05) & (ends < 0.2)
    acting = rng.random((steps + 1, agents)) < 0.5
    if not waits:  # agents are out from their end until the next episode begins, and act otherwise
        out = np.zeros(agents, bool)
        for t in range(steps):
            acting[t] = ~out
            terminated[t] &= acting[t]
            truncated[t] &= acting[t]
            out = (out | terminated[t]) & (rng.random(agents) < 0.7)
        acting[steps] = ~out
    tensors = [torch.tensor(x) for x in (rewards, values, acting, terminated, truncated)]
    got = advantages(*tensors, torch.tensor(final) if known else None, GAMMA, LAMBDA, waits)
    for a in range(agents):
        gain, target, valid = slow_advantages(
            *(x[:, a] for x in (rewards, values, acting, terminated, truncated)), final[:, a] if known else None
        )
        np.testing.assert_array_equal(got[2][:, a].numpy(), valid)
        np.testing.assert_allclose(got[0][:, a].numpy()[valid], gain[valid], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(got[1][:, a].numpy()[valid], target[valid], rtol=1e-5, atol=1e-6)


CLOCK = '''
from gpuzoo.core.definition import EnvDef
from gymnasium import spaces
import numpy as np

class Clock(EnvDef):
    """Rewards and deaths by the clock."""

    id = "Clock-v0"
    max_episode_steps = 5
    exempt = {"reference": "a toy of the tests"}

    def agents(self, cfg):
        return {"lasting": 1, "dying": 1}

    def lanes(self, cfg):
        return 2

    def observation_space(self, cfg, group):
        return spaces.Box(0, 100, (2,), np.float32)

    def action_space(self, cfg, group):
        return spaces.Discrete(2)

    def fields(self, cfg):
        return {}
'''

CLOCK_RULES = """
GZ void reset(Env e) {}
GZ void step(Env e) {
  lanes(e, AGENTS, [=](int a) {
    e.reward[a] = (float)(e.t + 10 * a);
    if (a == 1 && e.t == 3) e.terminate(a);
  });
}
GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    e.observation[a][0] = (float)e.t;
    e.observation[a][1] = (float)a;
  });
}
"""


def test_targets_of_a_rollout_are_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two agents, of which one dies in step 3, while the other's time is up after step 5; the critic is known."""
    (tmp_path / "clock.py").write_text(CLOCK)
    (tmp_path / "clock.cuh").write_text(CLOCK_RULES)
    spec = importlib.util.spec_from_file_location("clock_of_test_baselines", tmp_path / "clock.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)

    args = Args(module.Clock, num_envs=2, num_steps=7, total_steps=14, gamma=GAMMA, gae_lambda=LAMBDA, minibatches=1,
                device="cpu")  # fmt: skip
    ppo = PPO(args)
    ppo.rollout()
    value = lambda t, a: 2.0 + t * t + 7 * a  # noqa: E731
    found = {}
    for name, learner in ppo.learners.items():
        monkeypatch.setattr(learner.policy, "value", lambda obs: value(obs[:, 0], obs[:, 1]))
        gain, target, old, rows = learner.targets()
        found[name] = gain.view(7, 2)
        assert (target - old - gain).abs().max() < 1e-5
        alive = [0, 1, 2, 3, 4, 5, 6] if name == "lasting" else [0, 1, 2, 5, 6]
        assert rows.tolist() == [2 * t + env for t in alive for env in (0, 1)]
    ppo.close()

    # The agent that lasts: steps 0..4 end with a truncation, worth the value of what it saw last (t = 5), not of the
    # new episode's first observation (t = 0). The rollout goes on with two steps of the next episode.
    for agent, (name, end) in enumerate({"lasting": 5, "dying": 3}.items()):
        expected = torch.zeros(7)
        chain, follow = 0.0, value(2, agent)
        for t in (6, 5):
            delta = (t - 4 + 10 * agent) + GAMMA * follow - value(t - 5, agent)
            chain = delta + GAMMA * LAMBDA * chain
            expected[t], follow = chain, value(t - 5, agent)
        chain, follow = 0.0, value(5, agent) if name == "lasting" else 0.0
        for t in reversed(range(end)):
            delta = (t + 1 + 10 * agent) + GAMMA * follow - value(t, agent)
            chain = delta + GAMMA * LAMBDA * chain
            expected[t], follow = chain, value(t, agent)
        alive = [t for t in range(7) if t < end or t > 4]
        torch.testing.assert_close(found[name][alive], expected[alive, None].expand(-1, 2))
        if name == "lasting":  # without the bootstrap it would be another number
            assert abs(found[name][4, 0] - (5 - value(4, 0))) > 1


def test_scan() -> None:
    x, decay = torch.randn(2, 6, 3)
    y, want = scan(x, decay), torch.zeros(3)
    for t in reversed(range(6)):
        want = x[t] + (decay[t] * want if t < 5 else 0)
        torch.testing.assert_close(y[t], want)


# ---- policies ----


def policy_of(observation: spaces.Space[Any], action: spaces.Space[Any], **kwargs: Any) -> Policy:
    policy = Policy(observation, action, (16, 8), generator=torch.Generator().manual_seed(3), **kwargs)
    with torch.no_grad():
        policy.flat.add_(0.3 * torch.randn(policy.flat.shape, generator=torch.Generator().manual_seed(4)))
    return policy


BOX = spaces.Box(-1, 1, (3, 2), np.float32)


def logits_of(policy: Policy, x: Any) -> Any:
    for k, (weight, bias) in enumerate(zip(policy.weights, policy.biases, strict=True)):
        x = x @ weight[0] + bias[0]
        x = x if k == len(policy.hidden) else x.tanh()
    return x


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("space", [spaces.Discrete(5), spaces.MultiDiscrete([4, 4]), spaces.MultiDiscrete([2, 5, 3])])
def test_discrete_distributions(space: spaces.Space[Any], masked: bool) -> None:
    policy = policy_of(BOX, space)
    nvec = [int(space.n)] if isinstance(space, spaces.Discrete) else [int(n) for n in space.nvec]  # type: ignore[attr-defined]
    rows = 200
    obs = torch.randn(rows, 3, 2)
    mask = torch.ones(rows, sum(nvec), dtype=torch.int8)
    if masked:
        mask = (torch.rand(rows, sum(nvec)) < 0.5).to(torch.int8)
        for part in mask.split(nvec, 1):
            part[:, 0] |= part.sum(1) == 0
    logits = logits_of(policy, obs.flatten(1)).view(rows, len(nvec), max(nvec))
    parts = [
        torch.distributions.Categorical(logits=logits[:, k, :n].masked_fill(m == 0, -math.inf))
        for k, (n, m) in enumerate(zip(nvec, mask.split(nvec, 1), strict=True))
    ]
    action = torch.stack([d.sample() for d in parts], -1)
    log, entropy, value = policy(obs, mask if masked else None, action)
    torch.testing.assert_close(log, sum(d.log_prob(a) for d, a in zip(parts, action.unbind(-1), strict=True)))
    want = sum(torch.where(d.probs > 0, -d.probs * d.probs.log(), 0.0).sum(-1) for d in parts)
    torch.testing.assert_close(entropy, want)
    with torch.no_grad():
        torch.testing.assert_close(policy.value(obs), value)
        best = policy.act(obs, mask if masked else None, None)
        torch.testing.assert_close(best, torch.stack([d.probs.argmax(-1) for d in parts], -1))

        one, few = obs[:1].expand(20_000, 3, 2), mask[:1].expand(20_000, -1)
        noise = torch.empty(20_000, *policy.noise_shape)
        policy.draw(noise, torch.Generator().manual_seed(5))
        drawn = policy.act(one, few if masked else None, noise)
        for k, d in enumerate(parts):
            share = torch.bincount(drawn[:, k], minlength=nvec[k]) / len(drawn)
            torch.testing.assert_close(share, d.probs[0], atol=0.015, rtol=0)
            assert (share[d.probs[0] == 0] == 0).all()


def test_continuous_distribution() -> None:
    policy = policy_of(BOX, spaces.Box(-1, 1, (3,), np.float32))
    obs = torch.randn(100, 3, 2)
    normal = torch.distributions.Normal(logits_of(policy, obs.flatten(1)), policy.log_std.exp())
    noise = torch.randn(100, 3)
    with torch.no_grad():
        action = policy.act(obs, None, noise)
    torch.testing.assert_close(action, normal.mean + noise * normal.stddev)
    log, entropy, _ = policy(obs, None, action)
    torch.testing.assert_close(log, normal.log_prob(action).sum(-1))
    torch.testing.assert_close(entropy, normal.entropy().sum(-1))


def test_observations_are_scaled_and_choices_one_hot() -> None:
    policy = policy_of(BOX, spaces.Discrete(2), normalize=True)
    obs = 5 + 3 * torch.randn(1000, 3, 2)
    for part in obs.split(300):
        policy.learn_scale(part)
    torch.testing.assert_close(policy.mean, obs.flatten(1).mean(0), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(policy.variance, obs.flatten(1).var(0, correction=0), rtol=1e-4, atol=1e-4)
    policy = policy_of(spaces.MultiDiscrete([2, 3]), spaces.Discrete(2))
    assert policy.features(torch.tensor([[1, 2], [0, 0]])).tolist() == [[0, 1, 0, 0, 1], [1, 0, 1, 0, 0]]


# ---- runs ----


def small(game: Any, **values: Any) -> Args:
    chosen: dict[str, Any] = {"num_envs": 8, "num_steps": 16, "total_steps": 8 * 16 * 3, "device": "cpu", "threads": 1}
    return Args(game, **(chosen | values))


@pytest.mark.parametrize("toy", [Glide, Herd, Lamps, Nim], ids=lambda toy: toy.id)
def test_every_kind_of_game_trains_and_is_deterministic(toy: Any) -> None:
    args = small(toy, normalize_observations=toy is not Lamps, clip_values=True)
    runs = [train(args, quiet=True) for _ in range(2)]
    for group, policy in runs[0].policies.items():
        fresh = PPO(args)
        assert not torch.equal(policy.flat, fresh.policies[group].flat)
        fresh.close()
        assert torch.equal(policy.flat, runs[1].policies[group].flat)
        assert policy.flat.isfinite().all()
    other = train(dataclasses.replace(args, seed=2), quiet=True)
    assert not torch.equal(next(iter(runs[0].policies.values())).flat, next(iter(other.policies.values())).flat)
    result = evaluate(toy, runs[0].policies, episodes=5)
    assert all(x.shape == (5, policy_count) for x, policy_count in zip(
        result.returns.values(), toy().agents(toy.Config()).values(), strict=True))  # fmt: skip


def test_a_frozen_policy_stays_as_it_is() -> None:
    args = small(Herd, freeze=("sheep",))
    ppo = PPO(args)
    before = {name: x.policy.flat.clone() for name, x in ppo.learners.items()}
    for _ in range(3):
        log = ppo.iterate()
    assert torch.equal(before["sheep"], ppo.learners["sheep"].policy.flat)
    assert not torch.equal(before["wolf"], ppo.learners["wolf"].policy.flat)
    assert "wolf/loss" in log
    assert "sheep/loss" not in log
    ppo.close()


def test_groups_share_a_policy(tmp_path: Path) -> None:
    config = {"num_taggers": 2, "num_runners": 3, "num_other_agents_observed": 3, "max_episode_steps": 20}
    args = small("TagContinuous-v0", config=config, policies={"tagger": "all", "runner": "all"}, out=str(tmp_path))
    result = train(args, quiet=True)
    assert result.policies["tagger"] is result.policies["runner"]
    assert {"return/tagger", "return/runner"} <= set(result.rows[-1])
    assert (tmp_path / "progress.csv").read_text().count("\n") == 4
    assert (tmp_path / "learning_curve.png").stat().st_size > 5000


def test_checkpoint(tmp_path: Path) -> None:
    result = train(small("CartPole-v1", out=str(tmp_path)), quiet=True)
    assert result.checkpoint is not None
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint.pt", "learning_curve.png", "progress.csv"]
    ppo = PPO(small("CartPole-v1", load={"agent": str(result.checkpoint)}))
    assert torch.equal(ppo.policies["agent"].flat, result.policies["agent"].flat)
    assert ppo.learners["agent"].optimizer.state_dict()["state"][0]["step"] == 3 * 16
    before = ppo.policies["agent"].flat.clone()
    ppo.iterate()
    assert not torch.equal(before, ppo.policies["agent"].flat)
    ppo.close()

    path = str(result.checkpoint)
    with pytest.raises(ValueError, match=r"holds policies for CartPole-v1, not for Nim-v0"):
        PPO(small(Nim, load={"player": path}))
    config = {"num_taggers": 1, "num_runners": 2, "num_other_agents_observed": 2}
    tag = train(small("TagContinuous-v0", config=config, out=str(tmp_path / "tag")), quiet=True)
    wrong = config | {"num_other_agents_observed": 1}
    with pytest.raises(
        ValueError, match=r"'runner' in .* was trained with the observation space Box\(15,\) float32, but"
    ):
        PPO(small("TagContinuous-v0", config=wrong, load={"runner": str(tag.checkpoint)}))
    with pytest.raises(ValueError, match=r"has no policy 'hunter'"):
        PPO(
            small(
                "TagContinuous-v0", config=config, policies={"tagger": "hunter"}, load={"hunter": str(tag.checkpoint)}
            )
        )
    (tmp_path / "broken.pt").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match=r"cannot read a checkpoint from .*broken\.pt"):
        PPO(small("CartPole-v1", load={"agent": str(tmp_path / "broken.pt")}))


def test_a_loss_that_is_not_a_number_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = train(small("CartPole-v1", total_steps=8 * 16 * 2), quiet=True).policies["agent"]
    original = PPO.iterate

    def spoil(self: PPO) -> dict[str, float]:
        if self.iteration == 2:
            self.policies["agent"].flat[0] = math.nan
        return original(self)

    monkeypatch.setattr(PPO, "iterate", spoil)
    with pytest.raises(
        FloatingPointError, match=r"policy 'agent' .* iteration 3.* last good checkpoint is .*checkpoint\.pt"
    ):
        train(small("CartPole-v1", out=str(tmp_path), anneal=False), quiet=True)
    kept = torch.load(tmp_path / "checkpoint.pt", weights_only=True)["policies"]["agent"]["weights"]
    assert all(x.isfinite().all() for x in kept.values())
    assert kept["weights.0"].shape == good.weights[0].shape


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"minibatches": 3}, r"128 transitions of policy 'agent' .* cannot be divided into 3 minibatches"),
        ({"total_steps": 100}, r"total_steps=100 is less than one rollout of num_envs \* num_steps = 128"),
        ({"policies": {"agnt": "a"}}, r"CartPole-v1 has no group 'agnt'; did you mean 'agent'\?"),
        ({"freeze": ("tagger",)}, r"there is no policy 'tagger'; did you mean 'agent'"),
        ({"load": {"tagger": "x.pt"}}, r"there is no policy 'tagger'"),
        ({"num_envs": 0}, r"num_envs must be positive, not 0"),
        ({"gamma": 1.5}, r"gamma must lie between 0 and 1, not 1\.5"),
        ({"load": {"agent": "no.pt"}}, r"cannot read a checkpoint from no\.pt"),
        ({"config": {"gravitty": 1.0}}, r"has no parameter 'gravitty'; did you mean 'gravity'"),
    ],
)
def test_messages_come_before_the_compiler(
    values: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("baselines.ppo.BatchEnv", lambda *a, **k: pytest.fail("an env was made"))
    with pytest.raises((ValueError, TypeError), match=message):
        PPO(small("CartPole-v1", **values))


def test_groups_with_unlike_spaces_cannot_share() -> None:
    with pytest.raises(ValueError, match=r"the groups wolf and sheep cannot share the policy 'x'"):
        small(Herd, policies={"wolf": "x", "sheep": "x"}).check()


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    args = parse(
        "TagContinuous-v0 --num-envs 32 --total-steps 2e6 --freeze tagger --policies tagger=a,runner=b --hidden 32,16 "
        "--no-anneal --config.num_runners 20 --config.use_full_observation true --config.grid_length 5".split()
    )
    assert (args.num_envs, args.total_steps, args.freeze, args.hidden) == (32, 2_000_000, ("tagger",), (32, 16))
    assert args.policies == {"tagger": "a", "runner": "b"}
    assert args.config | {"num_runners": 20, "use_full_observation": True, "grid_length": 5.0} == args.config
    for line, message in {
        "CartPole-v1 --nonsense 3": "unknown option --nonsense",
        "CartPole-v1 --config.nonsense 3": "has no parameter 'nonsense'",
        "CartPol-v1": "did you mean 'CartPole-v1'",
        "CartPole-v1 --policies x": "want name=value",
    }.items():
        with pytest.raises(SystemExit):
            parse(line.split())
        assert message in capsys.readouterr().err


# ---- learning ----


@pytest.mark.slow
def test_cartpole_learns() -> None:
    """In 120,000 steps, from about 22."""
    args = small("CartPole-v1", num_envs=32, num_steps=32, total_steps=120_000, epochs=10, learning_rate=1e-3,
                 gamma=0.98, gae_lambda=0.8, entropy=0.0)  # fmt: skip
    result = train(args, quiet=True)
    played = evaluate("CartPole-v1", result.policies, episodes=200, greedy=True)
    assert played.returns["agent"].mean() > 400


def test_nim_is_learnt_by_playing_against_itself() -> None:
    """With perfect play, who leaves a multiple of four sticks wins."""
    args = small(Nim, num_envs=64, num_steps=32, total_steps=64 * 32 * 80, learning_rate=3e-3, gamma=1.0,
                 normalize_observations=True, config={"heap": 6})  # fmt: skip
    result = train(args, quiet=True)
    policy = result.policies["player"]
    obs = torch.tensor([[left, 1] for left in range(1, 10) if left % 4])
    mask = torch.tensor([[k < left for k in range(3)] for left, _ in obs.tolist()])
    with torch.no_grad():
        taken = policy.act(obs, mask, None)[:, 0] + 1
    right = (obs[:, 0] - taken) % 4 == 0
    assert right.all(), list(zip(obs[:, 0].tolist(), taken.tolist(), strict=True))


@pytest.mark.slow
def test_connect_four_beats_random_play() -> None:
    args = small("ConnectFour-v0", num_envs=64, num_steps=32, total_steps=250_000, learning_rate=1e-3)
    policy = train(args, quiet=True).policies["player"]
    wins = [evaluate("ConnectFour-v0", {f"player_{seat}": policy}, 200).returns["player"][:, seat] for seat in (0, 1)]
    assert np.mean(np.concatenate(wins) > 0) > 0.8
