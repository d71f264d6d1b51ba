"""The trainers: targets, minibatches, whole runs, messages, and that they learn."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys.glide import Glide
from toys.herd import Herd
from toys.lamps import Lamps
from toys.nim import Nim
from toys.orchard import Orchard

torch = pytest.importorskip("torch")

from training import ROOT, small, toy  # noqa: E402

from baselines import a2c, ppo, run  # noqa: E402
from baselines.a2c import A2C  # noqa: E402
from baselines.ppo import PPO, Args  # noqa: E402
from baselines.report import checkpoint  # noqa: E402
from baselines.report.evaluation import evaluate  # noqa: E402
from baselines.run import parse, train  # noqa: E402
from baselines.train.advantages import advantages  # noqa: E402
from baselines.train.config_files import RESULTS_ONLY  # noqa: E402
from baselines.train.loss import COLUMNS  # noqa: E402
from gpuzoo import Simulator  # noqa: E402

# The gradients of a population's parameters lie apart from each other, so that those of a member are neighbours.

GAMMA, LAMBDA = 0.9, 0.8
TAG = {"num_taggers": 2, "num_runners": 3, "num_other_agents_observed": 3, "max_episode_steps": 20}


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
    tensors = [torch.tensor(x) for x in (rewards.astype("f4"), values.astype("f4"), acting, terminated, truncated)]
    got = advantages(*tensors, torch.tensor(final).float() if known else None, GAMMA, LAMBDA, waits)
    for a in range(agents):
        gain, target, valid = slow_advantages(
            *(x[:, a] for x in (rewards, values, acting, terminated, truncated)), final[:, a] if known else None
        )
        np.testing.assert_array_equal(got[1][:, a].numpy(), valid)
        # Sums of up to 40 numbers of size 1 in float32, against float64.
        np.testing.assert_allclose(got[0][:, a].numpy()[valid], gain[valid], rtol=1e-5, atol=5e-6)
        found = got[0][:, a].numpy() + values[:-1, a].astype("f4")
        np.testing.assert_allclose(found[valid], target[valid], rtol=1e-5, atol=5e-6)


def columns_of(learner: Any) -> dict[str, Any]:
    """What a learner knows about its rollout, (steps, members, rows) each."""
    return dict(zip(COLUMNS, learner.packed.unbind(-1), strict=True))


def clock_value(t: int, agent: int, member: int) -> float:
    return (member + 1) * (2.0 + 3 * t + 7 * agent)


def know_clock(policy: Any) -> None:
    """Lets a critic without hidden layers be `clock_value`."""
    rows = [3.0, 7.0]
    network = policy.actor if policy.critic is None else policy.critic
    with torch.no_grad():
        for member in range(policy.members):
            weight, bias = network.weights[0][member], network.biases[0][member, 0]
            if policy.central:  # sees time and number of both agents, and has a value for each
                weight.copy_((member + 1) * torch.tensor([[3.0, 0.0], [0.0, 0.0], [0.0, 3.0], [0.0, 7.0]]))
                bias.fill_(2.0 * (member + 1))
            else:
                weight[:, -1] = (member + 1) * torch.tensor(rows)
                bias[-1] = 2.0 * (member + 1)


def count_clock(policy: Any) -> None:
    """Lets a recurrent policy know the time only by counting what it saw since the episode began."""

    def forward(seen: Any, state: Any, seat: Any, memory: Any, begins: Any = None) -> Any:
        if begins is not None:
            memory = memory * (1 - begins[0].unsqueeze(-1))
        memory = memory + 1
        agent = seen[0, ..., 1] if state is None else seat.expand(memory.shape[:2])
        value = torch.arange(1, policy.members + 1)[:, None] * (2 + 3 * (memory[..., 0] - 1) + 7 * agent)
        return torch.zeros(1, *memory.shape[:2], 2), value.unsqueeze(0), memory

    policy.forward = forward


def clock_targets(agent: int, member: int, begin: int, bootstrap: bool = True) -> Any:
    """What is right for seven steps from step `begin` of all on: gains, targets, and which are transitions.

    The second agent dies in step 3 of 5; the time of the first is up after 5 steps, and then counts what it saw last.
    """
    times = [(begin + k) % 5 for k in range(8)]
    value = [clock_value(t, agent, member) for t in times]
    acting = [agent == 0 or t < 3 for t in times]
    ends = [t == 4 and agent == 0 for t in times[:7]]
    dies = [t == 2 and agent == 1 for t in times[:7]]
    rewards = [t + 1 + 10 * agent for t in times[:7]]
    final = [clock_value(5, agent, member) * bootstrap] * 7
    return slow_advantages(rewards, value, acting, dies, ends, final)


@pytest.mark.one_case
@pytest.mark.parametrize("population", [1, 2])
@pytest.mark.parametrize("form", ["separate", "shared", "central", "memory", "memory central"])
def test_targets_of_a_rollout_are_exact(form: str, population: int) -> None:
    """Two agents, of which one dies in step 3, while the other's time is up after step 5; the critic is known."""
    central = "central" in form
    args = small(
        toy("Clock"), num_envs=2, num_steps=7, gamma=GAMMA, gae_lambda=LAMBDA, minibatches=1, hidden=(),
        population=population, memory=4 * ("memory" in form), critic=form.replace("memory", "").strip() or "separate",
        policies={"lasting": "all", "dying": "all"} if central else {},
    )  # fmt: skip
    trainer = PPO(args)
    for player in trainer.rollout.players.values():
        (count_clock if args.memory else know_clock)(player.policy)
    for begin in (0, 7):
        trainer.play()
        for learner in trainer.learners.values():
            trainer.prepare(learner)
            found = {k: x.unflatten(-1, (2, -1)) for k, x in columns_of(learner).items()}
            valid = learner.valid.unflatten(-1, (2, -1))  # (steps, members, envs, agents)
            assert found["target"].shape == (7, population, 2, 2 if central else 1)
            for place, agent in enumerate(learner.player.agents):
                for member in range(population):
                    gain, target, right = clock_targets(agent, member, begin)
                    for env in range(2):
                        at = (slice(None), member, env, place)
                        assert valid[at].tolist() == right.tolist()
                        # Numbers of size 100 in float32.
                        np.testing.assert_allclose(found["target"][at][right], target[right], atol=1e-4)
                        np.testing.assert_allclose(found["advantage"][at][right], gain[right], atol=1e-4)
                    if agent == 0:  # without the bootstrap it would be another number
                        assert abs(target - clock_targets(agent, member, begin, False)[1]).max() > 1
    trainer.close()


def test_targets_of_games_in_turns() -> None:
    """What follows a move is the player's own next position, and the reply counts for the move that it answers."""
    trainer = PPO(small(Nim, num_envs=16, num_steps=24, gamma=GAMMA, gae_lambda=LAMBDA, hidden=(), config={"heap": 6}))
    trainer.play()
    trainer.play()
    (learner,) = trainer.learners.values()
    trainer.prepare(learner)
    rollout, columns = trainer.rollout, columns_of(learner)
    acting = rollout.observation[..., 1].flatten(1) == 1  # the game says so itself
    reward, done = rollout.reward.flatten(1), rollout.terminated.flatten(1)
    assert not rollout.truncated.any()
    lost = 0
    for row in range(32):
        gain, target, valid = slow_advantages(
            reward[:, row].numpy(), learner.player.value[:, 0, row].numpy(), acting[:, row].numpy(),
            done[:, row].numpy(), rollout.truncated.flatten(1)[:, row].numpy(), None,
        )  # fmt: skip
        assert learner.valid[:, 0, row].tolist() == valid.tolist()
        np.testing.assert_allclose(columns["advantage"][:, 0, row][valid], gain[valid], atol=1e-5)  # float32
        np.testing.assert_allclose(columns["target"][:, 0, row][valid], target[valid], atol=1e-5)
        for t in range(23):
            if valid[t] and done[t + 1, row] and reward[t + 1, row] < 0:  # the reply ends the game
                delta = columns["advantage"][t, 0, row] + columns["old_value"][t, 0, row]
                assert delta == pytest.approx(-1)
                lost += 1
    assert lost > 10
    trainer.close()


def test_agents_that_cannot_act_act_again_later() -> None:
    """A lone agent without a legal action in every third step: rollouts of 4 steps begin at different times."""
    trainer = PPO(small(toy("Pause"), num_envs=2, num_steps=4))
    step = 0
    for _ in range(4):
        trainer.play()
        want = [(step + k) % 6 % 3 != 1 for k in range(5)]
        assert trainer.rollout.acting[:, 0, 0].tolist() == want
        step += 4
    trainer.close()


def test_rewards_are_divided_by_the_deviation_of_returns() -> None:
    trainer = PPO(small("CartPole-v1", num_envs=4, gamma=GAMMA, normalize_rewards=True))
    (learner,) = trainer.learners.values()
    running, seen = np.zeros(4), []
    for _ in range(3):
        trainer.play()
        trainer.prepare(learner)
        for reward, ended in zip(trainer.rollout.reward[..., 0].numpy(), trainer.rollout.ended.numpy(), strict=True):
            running = reward + GAMMA * running
            seen.append(running)
            running = running * ~ended
        deviation = np.std(seen)
        normalization = learner.normalization
        assert normalization.scale.variance.item() == pytest.approx(deviation**2, rel=1e-5)  # float32
        scaled = normalization.scaled(learner, trainer.rollout.reward.view(16, 1, 4), trainer.hyper.gamma)
        assert scaled.max() <= 10
        break
    trainer.close()


# ---- minibatches ----

FORMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "deaths and masks": (Herd, {}),
    "deaths, masks, memory": (Herd, {"memory": 6}),
    "several actions": (Lamps, {}),
    "several actions, memory, shared": (Lamps, {"memory": 6, "critic": "shared"}),
    "box actions, normalised": (Glide, {"normalize_observations": True}),
    "box actions, normalised, memory": (Glide, {"normalize_observations": True, "memory": 6}),
    "central": ("SimpleSpread-v0", {"critic": "central", "normalize_observations": True}),
    "central, memory": ("SimpleSpread-v0", {"critic": "central", "normalize_observations": True, "memory": 6}),
    "shared policy, central": ("TagContinuous-v0", {
        "critic": "central", "memory": 6, "config": TAG, "policies": {"tagger": "all", "runner": "all"}}),
    "turns": (Nim, {}),
    "turns, memory": (Nim, {"memory": 6}),
    "images": ("ConnectFour-v0", {"channels": (3,)}),
}  # fmt: skip


def played(form: str, population: int = 1, **values: Any) -> Any:
    """A trainer in its second rollout, whose policies are far from uniform and have not learnt."""
    game, more = FORMS[form]
    trainer = PPO(
        small(game, **{"num_envs": 4, "num_steps": 32, "hidden": (8,), "population": population} | more | values)
    )
    for learner in trainer.learners.values():
        with torch.no_grad():
            learner.policy.flat.add_(0.3 * torch.randn(learner.policy.flat.shape, generator=torch.manual_seed(2)))
    for k in range(2):
        trainer.play()
        for learner in trainer.learners.values():
            trainer.prepare(learner)
            if k == 0:
                learner.learn_scale()
    return trainer


def number(learner: Any) -> Any:
    """Writes the number of each transition among its member's in place of its advantage; returns which are valid."""
    T, M, R = learner.player.shape
    numbers = torch.arange(T * R, dtype=torch.float32).view(T, 1, R).expand(T, M, R)
    learner.packed[..., COLUMNS.index("advantage")] = numbers
    return learner.valid.transpose(0, 1).flatten(1)


@pytest.mark.one_case
@pytest.mark.parametrize("population", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_minibatches_see_what_the_rollout_saw(form: str, population: int) -> None:
    """Before the first step, probabilities and values are those at which the rollout acted, at every transition."""
    trainer = played(form, population)
    assert trainer.rollout.ended[:-1].any() or form in ("turns", "images")
    for learner in trainer.learners.values():
        for sequence in (32, 8) if learner.policy.recurrent else (32,):
            for batch in learner.minibatches(0, 4, sequence):
                real = batch.weight > 0
                assert real.any()
                # The same numbers in products of other shapes, in float32.
                row = batch.row(*batch.forward())
                for name in ("log_prob", "value"):
                    now, old = getattr(row, name), getattr(row, f"old_{name}")
                    torch.testing.assert_close(now[real], old[real], rtol=1e-4, atol=1e-4)
                assert batch.columns["old_log_prob"][real].std() > 0.01
    trainer.close()


@pytest.mark.one_case
@pytest.mark.parametrize("population", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_minibatches_hold_each_transition_once(form: str, population: int) -> None:
    trainer = played(form, population)
    for learner in trainer.learners.values():
        valid, orders = number(learner), []
        T, _, R = learner.player.shape
        sequence = 8
        for epoch in range(2):
            batches = list(learner.minibatches(epoch, 4, sequence))
            assert len(batches) == 4
            order = torch.cat([b.columns["advantage"] for b in batches], 1)
            weight = torch.cat([b.weight for b in batches], 1)
            assert ((weight == 0) | (weight == 1)).all()
            for member in range(population):
                kept = order[member][weight[member] > 0].long()
                assert kept.sort().values.tolist() == valid[member].nonzero()[:, 0].tolist()
                if learner.policy.recurrent:
                    rows = order[member].long().view(4, sequence, -1)  # a quarter of the sequences in each minibatch
                    assert order[member].long().sort().values.tolist() == list(range(T * R))
                    assert (rows[:, 1:] - rows[:, :-1] == R).all()
                    assert (rows[:, 0] // R % sequence == 0).all()
                else:
                    counts = [int((b.weight[member] > 0).sum()) for b in batches]
                    assert max(counts) - min(counts) <= 1
            orders.append(order)
        assert not torch.equal(orders[0], orders[1])
    trainer.close()


def test_members_have_as_many_rows_as_they_have_transitions() -> None:
    trainer = played("deaths and masks", 3)
    learner = trainer.learners["sheep"]
    counts = learner.valid.sum((0, 2)).tolist()
    assert len(set(counts)) > 1
    seen = torch.stack([b.weight.sum(1) for b in learner.minibatches(0, 4, 32)])
    assert seen.sum(0).tolist() == counts
    assert (seen.max(0).values - seen.min(0).values <= 1).all()
    for batch in learner.minibatches(0, 4, 32):  # what fills up does not count
        noise = torch.randn(batch.weight.shape)
        want = torch.stack([x[w > 0].mean() for x, w in zip(noise, batch.weight, strict=True)])[:, None]
        torch.testing.assert_close(batch.mean(noise), want)
        batch.packed[..., COLUMNS.index("advantage")] = noise
        batch.normalize("advantage")
        normal = batch.columns["advantage"]
        for k in range(3):
            kept = normal[k][batch.weight[k] > 0]
            assert kept.mean().item() == pytest.approx(0, abs=1e-5)
            assert kept.std(correction=0).item() == pytest.approx(1, abs=1e-4)
    trainer.close()


@pytest.mark.parametrize("memory", [0, 4])
def test_no_two_passes_have_the_same_order(memory: int) -> None:
    trainer = PPO(small("CartPole-v1", memory=memory, sequence=4 * bool(memory), minibatches=1))
    orders = []
    for _ in range(2):
        trainer.play()
        (learner,) = trainer.learners.values()
        trainer.prepare(learner)
        number(learner)
        for epoch in range(4):
            orders.extend(tuple(b.columns["advantage"][0].tolist()) for b in learner.minibatches(epoch, 1, 4))
        learner.learn_scale()
        trainer.update()
    assert len(set(orders)) == 8
    trainer.close()


def test_policies_draw_apart_from_each_other() -> None:
    """Two groups with the same outputs and as many agents do not take the same actions."""
    config = TAG | {"num_runners": 2}
    trainer = PPO(small("TagContinuous-v0", config=config))
    for learner in trainer.learners.values():
        with torch.no_grad():
            learner.policy.flat.zero_()
    trainer.play()
    taken = [p.rows(trainer.rollout.action, 1)[..., 0].flatten(1) for p in trainer.rollout.players.values()]
    assert taken[0].shape == taken[1].shape
    share = (taken[0] == taken[1])[:8].float().mean()  # before anyone is out
    choices = trainer.learners["tagger"].policy.actions.width
    assert share < 3 / choices
    trainer.close()


# ---- runs ----


@pytest.mark.one_case
@pytest.mark.parametrize("kind", [PPO, A2C])
@pytest.mark.parametrize("toy_game", [Glide, Herd, Lamps, Nim], ids=lambda game: game.id)
def test_every_kind_of_game_trains_and_is_deterministic(toy_game: Any, kind: Any) -> None:
    game = toy_game
    if kind is PPO:
        args = small(game, normalize_observations=game is not Lamps, clip_values=True, target_kl=0.5)
    else:
        args = small(game, a2c.Args, normalize_rewards=True, normalize_advantages=game is Herd)
    runs = [train(kind, args, quiet=True) for _ in range(2)]
    for group, policy in runs[0].policies.items():
        fresh = kind(args)
        assert not torch.equal(policy.flat, fresh.policies[group].flat)
        fresh.close()
        assert torch.equal(policy.flat, runs[1].policies[group].flat)
        assert policy.flat.isfinite().all()
    other = train(kind, dataclasses.replace(args, seed=2), quiet=True)
    assert not torch.equal(next(iter(runs[0].policies.values())).flat, next(iter(other.policies.values())).flat)
    result = evaluate(game, runs[0].policies, episodes=5)
    assert all(x.shape == (5, policy_count) for x, policy_count in zip(
        result.returns.values(), game().agents(game.Config()).values(), strict=True))  # fmt: skip


@pytest.mark.one_case
@pytest.mark.parametrize("more", [{"clip_values": True}, {"normalize_observations": True, "normalize_rewards": True}])
def test_numbers_do_not_depend_on_threads(more: dict[str, Any]) -> None:
    found = []
    for threads in (1, 2, 3):
        form: dict[str, Any] = {"num_envs": 64, "num_steps": 32, "encoder": "mlp", "hidden": (64, 64), **more}
        policies = train(PPO, small("Breakout-MinAtar-v1", threads=threads, **form), quiet=True).policies
        found.append(torch.cat([policy.flat.detach() for policy in policies.values()]))
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=0, atol=0)


def test_a_frozen_policy_stays_as_it_is() -> None:
    trainer = PPO(small(Herd, freeze=("sheep",), normalize_observations=True))
    before = {
        name: {k: v.clone() for k, v in p.policy.state_dict().items()} for name, p in trainer.rollout.players.items()
    }
    for _ in range(3):
        log = trainer.iterate()
    now = {name: p.policy.state_dict() for name, p in trainer.rollout.players.items()}
    assert all(torch.equal(before["sheep"][k], v) for k, v in now["sheep"].items())
    assert not torch.equal(before["wolf"]["scale.mean"], now["wolf"]["scale.mean"])
    assert not torch.equal(before["wolf"]["actor.weights.0"], now["wolf"]["actor.weights.0"])
    assert "wolf/loss" in log
    assert "sheep/loss" not in log
    assert {"return/wolf", "return/sheep"} <= set(log)
    trainer.close()


@pytest.mark.parametrize("critic", ["separate", "central"])
def test_groups_share_a_policy(tmp_path: Path, critic: str) -> None:
    args = small("TagContinuous-v0", config=TAG, policies={"tagger": "all", "runner": "all"}, out=str(tmp_path),
                 critic=critic)  # fmt: skip
    result = train(PPO, args, quiet=True)
    assert result.policies["tagger"] is result.policies["runner"]
    assert {"return/tagger", "return/runner"} <= set(result.rows[-1])
    assert (tmp_path / "progress.csv").read_text().count("\n") == 4
    assert (tmp_path / "learning_curve.png").stat().st_size > 5000


def test_a_central_critic_sees_the_games_own_state() -> None:
    """Before each step, and at the end of each episode, as a batch without autoreset tells it."""
    args = small(Orchard, critic="central", num_envs=3, num_steps=12, config={"max_episode_steps": 5}, minibatches=1)
    trainer = PPO(args)
    rollout, sim = trainer.rollout, Simulator(Orchard, 3, device="cpu", autoreset_mode="disabled", max_episode_steps=5)
    sim.restore(trainer.simulator.snapshot())
    size = int(np.prod(sim.layout.state_space.shape))  # type: ignore[union-attr]
    assert next(iter(rollout.players.values())).policy.form["state_size"] == size
    for _ in range(2):
        trainer.play()
        for t in range(12):
            assert np.array_equal(rollout.state[t], sim.global_state().reshape(3, size))
            sim.arrays["action"][...] = rollout.action[t].numpy()
            sim.step()
            if sim.arrays["ended"].any():
                assert np.array_equal(rollout.final_state[t], sim.global_state().reshape(3, size))
                sim.reset(mask=sim.arrays["ended"].copy())
        assert np.array_equal(rollout.state[12], sim.global_state().reshape(3, size))
    trainer.close()
    trainer = PPO(args)
    assert np.isfinite(trainer.iterate()["picker/loss"]).all()
    trainer.close()


def test_returns_are_means_over_ended_episodes() -> None:
    trainer = PPO(small(toy("Clock"), num_steps=10))
    log = trainer.iterate()
    assert log["return/lasting"].tolist() == [1 + 2 + 3 + 4 + 5]
    assert log["return/dying"].tolist() == [11 + 12 + 13]
    trainer.close()
    trainer = PPO(small(toy("Clock"), num_steps=4))
    assert np.isnan(trainer.iterate()["return/lasting"]).all()
    trainer.close()


def test_staggered_envs_begin_at_different_times() -> None:
    trainer = PPO(small(toy("Clock"), num_envs=5, num_steps=5, minibatches=1, stagger=True))
    trainer.play()
    assert trainer.rollout.ended.sum(1).tolist() == [1] * 5
    trainer.close()


def test_what_a_run_leaves(tmp_path: Path) -> None:
    result = train(PPO, small("CartPole-v1", out=str(tmp_path), eval_every=2, eval_episodes=4), quiet=True)
    assert result.checkpoint == tmp_path / "checkpoint.safetensors"
    names = {p.name for p in tmp_path.iterdir() if "tfevents" not in p.name}
    assert names == {"checkpoint.safetensors", "learning_curve.png", "progress.csv", "progress.jsonl", "run.json"}
    rows = [json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().splitlines()]
    assert rows == result.rows
    assert [r["steps"] for r in rows] == [128, 256, 384]
    assert ["eval/agent" in r for r in rows] == [False, True, False]
    assert json.loads((tmp_path / "run.json").read_text())["game"] == "CartPole-v1"


def test_a_run_takes_no_more_threads_than_it_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 3, 4}, raising=False)
    seen: list[int] = []
    wide = small("CartPole-v1", num_envs=1024, total_steps=1024 * 16, threads=0)
    train(PPO, wide, quiet=True, on_iteration=lambda _: seen.append(torch.get_num_threads()))
    assert set(seen) == {3}


def test_policies_are_loaded(tmp_path: Path) -> None:
    result = train(PPO, small("CartPole-v1", out=str(tmp_path), normalize_observations=True, hidden=(8,)), quiet=True)
    path = str(result.checkpoint)
    trainer = PPO(small("CartPole-v1", load={"agent": path}, population=2))
    policy, old = trainer.policies["agent"], result.policies["agent"].state_dict()
    assert all(torch.equal(v, old[k].expand_as(v)) for k, v in policy.state_dict().items())
    assert policy.normalize
    before = policy.flat.clone()
    trainer.iterate()
    assert not torch.equal(before, policy.flat)
    trainer.close()

    def refused(message: str, *args: Any, **values: Any) -> None:
        with pytest.raises(ValueError, match=message):
            PPO(small(*args, **values))

    refused(r"holds policies for CartPole-v1, not for Nim-v0", Nim, load={"player": path})
    refused(r"has one member, number 0, and no '1'", "CartPole-v1", load={"agent": path + "#1"})
    refused(r"there is no checkpoint .*nothing", "CartPole-v1", load={"agent": str(tmp_path / "nothing")})
    (tmp_path / "broken").write_bytes(b"nonsense")
    refused(r"broken is not a checkpoint of gpuzoo", "CartPole-v1", load={"agent": str(tmp_path / "broken")})
    config = {"num_taggers": 1, "num_runners": 2, "num_other_agents_observed": 2}
    path = str(train(PPO, small("TagContinuous-v0", config=config, out=str(tmp_path / "tag")), quiet=True).checkpoint)
    refused(r"'runner' in .* was trained with the observation space Box\(15,\) float32, but with",
            "TagContinuous-v0", config=config | {"num_other_agents_observed": 1}, load={"runner": path})  # fmt: skip
    refused(r"has no policy 'hunter'", "TagContinuous-v0", config=config, policies={"tagger": "hunter"},
            load={"hunter": path})  # fmt: skip


@pytest.mark.parametrize("kept", [True, False])
def test_a_loss_that_is_not_a_number_stops_the_run(kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = PPO.iterate

    def spoil(self: PPO) -> Any:
        if self.iteration == 2:
            with torch.no_grad():
                self.policies["agent"].flat[0, 0] = math.nan
        return original(self)

    monkeypatch.setattr(PPO, "iterate", spoil)
    end = r"last good checkpoint is .*checkpoint\.safetensors\." if kept else r"give out=FOLDER to keep some\."
    with pytest.raises(FloatingPointError, match=r"policy 'agent' .* iteration 3: lower the learning rate; .*" + end):
        train(PPO, small("CartPole-v1", out=str(tmp_path) if kept else "", save_every=1e-9), quiet=True)
    if kept:
        tensors, about = checkpoint.load(tmp_path / "checkpoint.safetensors")
        assert about["iteration"] == 2
        assert all(x.isfinite().all() for k, x in tensors.items() if "/weights/" in k)


@pytest.mark.parametrize("memory", [0, 6])
def test_bfloat16_is_near_float32(memory: int) -> None:
    flats = [train(PPO, small("CartPole-v1", bf16=bf16, memory=memory), quiet=True).policies["agent"].flat
             for bf16 in (False, True)]  # fmt: skip
    assert not torch.equal(*flats)
    # Adam's first steps go by signs, so that a parameter may differ by two learning rates per step; most do not.
    assert (flats[0] - flats[1]).abs().mean() < 48 * 2.5e-4


# ---- messages ----


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"minibatches": 3}, r"the 128 transitions .* of policy 'agent' cannot be divided into 3 minibatches"),
        ({"memory": 4, "minibatches": 16}, r"the 8 sequences .* 'agent' cannot be divided into 16 minibatches"),
        ({"total_steps": -5}, r"total_steps=-5 is less than one rollout of num_envs \* num_steps = 128"),
        ({"total_steps": 100}, r"total_steps=100 is less than one rollout of num_envs \* num_steps = 128"),
        ({"sequence": 5}, r"sequence=5 does not divide num_steps=16"),
        ({"resume": True}, r"resume goes on from the checkpoint in a folder: give out=FOLDER"),
        ({"critic": "central"}, r"a central critic needs .* CartPole-v1 with its one agent .* critic='separate'"),
        ({"pool": 3}, r"a pool of past selves is for turn-based games: CartPole-v1 is none; take pool=0"),
        ({"policies": {"agnt": "a"}}, r"CartPole-v1 has no group 'agnt'; did you mean 'agent'\?"),
        ({"freeze": ("tagger",)}, r"there is no policy 'tagger'; did you mean 'agent'"),
        ({"load": {"tagger": "x"}}, r"there is no policy 'tagger'"),
        ({"load": {"agent": "no.safetensors"}}, r"there is no checkpoint no\.safetensors"),
        ({"config": {"gravitty": 1.0}}, r"has no parameter 'gravitty'; did you mean 'gravity'"),
        ({"encoder": "cnn"}, r"a CNN needs observations of shape \(height, width, channels\), not Box"),
        ({"gamma": 1.5}, r"gamma must lie between 0 and 1, not 1\.5"),
        ({"gae_lambda": -0.5}, r"gae_lambda must lie between 0 and 1, not -0\.5"),
        ({"gamma": math.nan}, r"gamma must be a finite number, not nan"),
        *(({name: 0}, rf"{name} must be positive, not 0") for name in (
            "num_envs", "num_steps", "population", "max_grad_norm", "save_every", "eval_episodes", "pool_every",
            "epochs", "minibatches", "clip_eps")),
        *(({name: -1}, rf"{name} must not be negative: -1") for name in (
            "memory", "pool", "eval_every", "threads", "lr", "seed", "sequence")),
        *(({name: "x"}, rf"{name} must be one of .*, not 'x'") for name in ("encoder", "critic", "activation")),
    ],
)  # fmt: skip
def test_messages_come_before_the_compiler(
    values: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("baselines.train.trainer.Simulator", lambda *a, **k: pytest.fail("an env was made"))
    with pytest.raises((ValueError, TypeError), match=message):
        PPO(small("CartPole-v1", **({"total_steps": 384} | values)))


def test_messages_about_groups_and_pools() -> None:
    with pytest.raises(ValueError, match=r"the groups wolf and sheep cannot share the policy 'x': their spaces differ"):
        small(Herd, policies={"wolf": "x", "sheep": "x"}).check()
    with pytest.raises(ValueError, match=r"a pool of past selves is for population=1: this is one of 2; take pool=0"):
        small(Nim, pool=3, population=2).check()
    with pytest.raises(ValueError, match=r"'CartPol-v1'.*did you mean 'CartPole-v1'"):
        small("CartPol-v1").check()
    small(Herd, freeze=("sheep",), num_envs=1, num_steps=2, minibatches=4).check()  # the wolves' rows can be divided


def test_envs_that_do_not_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr("baselines.train.trainer.Rollout", fail)
    with pytest.raises(MemoryError, match=r"1 x 8 envs x 16 steps of CartPole-v1 do not fit .*: try num_envs=4"):
        PPO(small("CartPole-v1"))


# ---- command line ----


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    args = parse(
        Args,
        "TagContinuous-v0 --num-envs 32 --total-steps 2e6 --freeze tagger --policies tagger=a,runner=b --hidden 32,16 "
        "--no-anneal-lr --normalize-rewards on --sweep lr=log:1e-4:1e-2,gamma=0.9/0.99 --population 8 --lr 3e-3 "
        "--out x/y --load a=x.safetensors#3 --config.num_runners 20 --config.use_full_observation true "
        "--config.grid_length 5 --config.max_episode_steps 30".split(),
    )
    assert (args.num_envs, args.total_steps, args.freeze, args.hidden) == (32, 2_000_000, ("tagger",), (32, 16))
    assert (args.anneal_lr, args.normalize_rewards, args.normalize_advantages) == (False, True, True)
    assert (args.sweep, args.population, args.lr, args.out) == ("lr=log:1e-4:1e-2,gamma=0.9/0.99", 8, 3e-3, "x/y")
    assert args.policies == {"tagger": "a", "runner": "b"}
    assert args.load == {"a": "x.safetensors#3"}
    given = {"num_runners": 20, "use_full_observation": True, "grid_length": 5.0, "max_episode_steps": 30}
    assert args.config == args.config | given
    assert parse(Args, ["TagContinuous-v0", "--config.use_full_observation", "False"]).config == {
        "use_full_observation": False
    }
    assert parse(a2c.Args, ["CartPole-v1", "--seed", "9007199254740993"]).seed == 9007199254740993
    assert "--epochs" not in {f"--{f.name}" for f in dataclasses.fields(a2c.Args)}
    for line, message in {
        "CartPole-v1 --nonsense 3": "unknown option --nonsense",
        "CartPole-v1 --num-env 3": "unknown option --num-env",
        "CartPole-v1 --config.nonsense 3": "has no parameter 'nonsense'",
        "CartPol-v1": "did you mean 'CartPole-v1'",
        "CartPole-v1 --policies x": "want name=value",
        "CartPole-v1 --num-envs many": "argument --num-envs: ",
        "CartPole-v1 --num-envs 2.5": "argument --num-envs: ",
        "CartPole-v1 --num-envs 1e999": "argument --num-envs: ",
        "CartPole-v1 --lr fast": "argument --lr: ",
        "TagContinuous-v0 --config.num_runners many": "num_runners",
        "TagContinuous-v0 --config.use_full_observation maybe": "use_full_observation",
        "TagContinuous-v0 --config.num_runners": "num_runners",
    }.items():
        with pytest.raises(SystemExit):
            parse(Args, line.split())
        assert message in capsys.readouterr().err, line


def test_every_configuration_is_known() -> None:
    for path in (ROOT / "baselines" / "configs").glob("*.json"):
        known = {f.name for kind in (ppo.Args, a2c.Args) for f in dataclasses.fields(kind)}
        found = json.loads(path.read_text())
        assert not found.keys() - known - {*RESULTS_ONLY}, path.name
        for kind in (ppo.Args, a2c.Args):
            args = kind.of(path.stem)
            args.check()
            assert all(getattr(args, k) == (tuple(v) if isinstance(v, list) else v)
                       for k, v in found.items() if hasattr(args, k))  # fmt: skip
    assert ppo.Args.of("TagContinuous-v0", num_envs=3, config={"num_runners": 4}).num_envs == 3


@pytest.mark.parametrize("name", ["ppo", pytest.param("a2c", marks=pytest.mark.rotates)])
def test_a_program(name: str, tmp_path: Path) -> None:
    """What it prints, what it leaves, and that the library goes on with it."""
    line = f"CartPole-v1 --num-envs 8 --num-steps 16 --total-steps 256 --out {tmp_path} --device cpu --hidden 8"
    program = [sys.executable, "-m", f"baselines.{name}", *line.split()]
    done = subprocess.run(program, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "CartPole-v1: mean return agent " in done.stdout
    assert "checkpoint.safetensors" in done.stdout
    module = {"ppo": ppo, "a2c": a2c}[name]
    args = parse(module.Args, [*line.split(), "--resume", "--total-steps", "384"])
    result = train(getattr(module, name.upper()), args, quiet=True)
    assert [row["iteration"] for row in result.rows] == [1, 2, 3]


def test_errors_of_a_program_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^error: num_envs must be positive, not 0\.$"):
        run.main(PPO, Args, ["CartPole-v1", "--num-envs", "0"])


# ---- learning ----


@pytest.mark.rotates(long=True)
@pytest.mark.parametrize("kind", ["ppo", "a2c"])
def test_cartpole_learns(kind: str) -> None:
    """PPO in 120,000 steps, from about 22; one of eight members of A2C in 400,000, as some of its runs get stuck."""
    if kind == "ppo":
        args = small("CartPole-v1", num_envs=32, num_steps=32, total_steps=120_000, epochs=10, lr=1e-3,
                     gamma=0.98, gae_lambda=0.8, ent_coef=0.0)  # fmt: skip
        policies = train(PPO, args, quiet=True).policies
    else:
        args = small("CartPole-v1", a2c.Args, population=8, num_envs=32, num_steps=8, total_steps=400_000, lr=3e-3,
                     gamma=0.98, gae_lambda=0.95, ent_coef=0.0)  # fmt: skip
        policies = train(A2C, args, quiet=True).policies
    returns = [
        evaluate("CartPole-v1", policies, episodes=200, greedy=True, member=k).returns["agent"].mean()
        for k in range(args.population)
    ]
    assert max(returns) > 400
    assert min(returns) > 60, returns


@pytest.mark.rotates(long=True)
@pytest.mark.parametrize(("memory", "sequence"), [(16, 0), (16, 5), (0, 0)])
def test_only_who_remembers_can_repeat_what_was_shown(memory: int, sequence: int) -> None:
    """A cue in the first observation is asked for in the fourth step."""
    args = small(toy("Cue"), num_envs=32, num_steps=20, total_steps=32 * 20 * 40, lr=5e-3, memory=memory,
                 sequence=sequence, hidden=(16,), epochs=4, minibatches=2, ent_coef=0.0)  # fmt: skip
    policies = train(PPO, args, quiet=True).policies
    right = evaluate(toy("Cue"), policies, episodes=400).returns["agent"].mean()
    if memory:
        assert right > 0.95
    else:
        assert abs(right - 0.5) < 0.1  # four deviations of the mean of 400


def test_nim_is_learnt_by_playing_against_itself() -> None:
    """With perfect play, who leaves a multiple of four sticks wins; without the entropy, some moves are never tried."""
    args = small(Nim, num_envs=64, num_steps=32, total_steps=64 * 32 * 60, lr=5e-3, gamma=1.0, ent_coef=0.2,
                 normalize_observations=True, config={"heap": 6})  # fmt: skip
    policy = train(PPO, args, quiet=True).policies["player"]
    obs = torch.tensor([[[left, 1] for left in range(1, 10) if left % 4]])
    mask = torch.tensor([[[k < left for k in range(3)] for left, _ in obs[0].tolist()]])
    with torch.no_grad():
        taken = policy.actions.greedy(policy.act(obs)[0], mask)[..., 0] + 1
    right = (obs[..., 0] - taken) % 4 == 0
    assert right.all(), list(zip(obs[0, :, 0].tolist(), taken[0].tolist(), strict=True))


@pytest.mark.rotates(long=True)
def test_a_central_critic_learns_to_spread() -> None:
    """A mean over three members: of ten one ended as it began, and the others about 5 above random play."""
    args = small("SimpleSpread-v0", critic="central", population=3, num_envs=32, num_steps=25,
                 total_steps=32 * 25 * 60, lr=2e-3, ent_coef=0.003)  # fmt: skip
    policies = train(PPO, args, quiet=True).policies
    before = evaluate("SimpleSpread-v0", dict.fromkeys(policies, None), 100).returns
    after = [evaluate("SimpleSpread-v0", policies, 100, member=member).returns for member in range(3)]
    for group in before:
        # More than twice the error of the mean of random play.
        assert np.mean([one[group] for one in after]) > before[group].mean() + 2 * before[group].std() / 10


@pytest.mark.rotates(long=True)
def test_connect_four_beats_random_play() -> None:
    """A mean over three members, which end between 0.82 and 0.91; random play: 0.5."""
    args = small("ConnectFour-v0", population=3, num_envs=64, num_steps=32, total_steps=500_000, lr=1e-3,
                 encoder="mlp")  # fmt: skip
    policy = train(PPO, args, quiet=True).policies["player"]
    wins = [
        evaluate("ConnectFour-v0", {f"player_{seat}": policy}, 200, member=member).returns["player"][:, seat] > 0
        for seat in (0, 1) for member in range(3)
    ]  # fmt: skip
    assert np.mean(wins) > 0.8


def test_exploration_begins_as_wanted() -> None:
    """Of all members; what was drawn has that deviation."""
    trainer = PPO(small("Pendulum-v1", num_envs=200, num_steps=4, population=2, log_std_init=-1.5))
    (learner,) = trainer.learners.values()
    assert torch.all(learner.policy.log_std == -1.5)
    trainer.play()
    learner.collect()
    assert abs(learner.action.std() - math.exp(-1.5)) < 0.02
