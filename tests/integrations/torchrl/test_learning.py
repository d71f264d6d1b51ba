"""TorchRL's own recipes learn: PPO with one agent, MAPPO with several."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, SamplerWithoutReplacement, TensorDictReplayBuffer
from torchrl.envs import ExplorationType, set_exploration_type
from torchrl.modules import MLP, MultiAgentMLP, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss, ValueEstimators

from gpuzoo.wrappers.torchrl import GpuZooEnv


def learn(
    env: GpuZooEnv,
    actor: Any,
    loss: ClipPPOLoss,
    *,
    steps: int,
    iterations: int,
    epochs: int,
    minibatch: int,
    lr: float,
    group: str | None = None,
) -> None:
    """PPO as in TorchRL's tutorials."""
    frames = steps * env.batch_size[0]
    collector = Collector(
        env,
        actor,
        frames_per_batch=frames,
        total_frames=frames * iterations,
        auto_register_policy_transforms=False,
    )
    storage = LazyTensorStorage(frames)
    buffer = TensorDictReplayBuffer(storage=storage, sampler=SamplerWithoutReplacement(), batch_size=minibatch)
    optimizer = torch.optim.Adam(loss.parameters(), lr)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, iterations)
    for data in collector:
        with torch.no_grad():
            loss.value_estimator(
                data, params=loss.critic_network_params, target_params=loss.target_critic_network_params
            )
        buffer.extend(data.reshape(-1))
        for _ in range(epochs * (frames // minibatch)):
            losses = loss(buffer.sample())
            optimizer.zero_grad()
            sum(losses[k] for k in ("loss_objective", "loss_critic", "loss_entropy")).backward()
            nn.utils.clip_grad_norm_(loss.parameters(), 1.0)
            optimizer.step()
        schedule.step()
    collector.shutdown()


def returns(game: str, actor: Any, reward: Any = "reward", envs: int = 200, **kwargs: Any) -> float:
    """Mean return of an episode of a deterministic policy."""
    env = GpuZooEnv(game, envs, device="cpu", **kwargs)
    env.set_seed(1_000)
    with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
        data = env.rollout(500, actor, break_when_any_done=False, break_when_all_done=True)
    over = data["next", "done"][..., 0].cumsum(1) - data["next", "done"][..., 0].int() > 0
    rewards = data["next", reward].flatten(2).mean(2)
    return float((rewards * ~over).sum(1).mean())


@pytest.mark.rotates
def test_ppo_learns_cartpole() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    env = GpuZooEnv("CartPole-v1", 64, device="cpu")
    env.set_seed(0)
    sizes = {"num_cells": [64, 64], "activation_class": nn.Tanh}
    net = TensorDictModule(MLP(in_features=4, out_features=2, **sizes), ["observation"], ["logits"])
    actor = ProbabilisticActor(
        net, ["logits"], spec=env.action_spec, distribution_class=torch.distributions.Categorical, return_log_prob=True
    )
    critic = ValueOperator(MLP(in_features=4, out_features=1, **sizes))
    loss = ClipPPOLoss(actor, critic, entropy_coeff=0.0, critic_coeff=0.5)
    loss.make_value_estimator(ValueEstimators.GAE, gamma=0.98, lmbda=0.9)
    assert returns("CartPole-v1", actor) < 100
    learn(env, actor, loss, steps=32, iterations=80, epochs=8, minibatch=512, lr=3e-3)
    assert returns("CartPole-v1", actor) >= 475


@pytest.mark.rotates
def test_mappo_learns_to_spread() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    env = GpuZooEnv("SimpleSpread-v0", 64, device="cpu")
    env.set_seed(0)
    shape = {"n_agents": 3, "share_params": True, "depth": 2, "num_cells": 64, "activation_class": nn.Tanh}
    net = MultiAgentMLP(n_agent_inputs=18, n_agent_outputs=5, centralized=False, **shape)
    actor = ProbabilisticActor(
        TensorDictModule(net, [("agent", "observation")], [("agent", "logits")]),
        in_keys=[("agent", "logits")],
        out_keys=[("agent", "action")],
        spec=env.full_action_spec,
        distribution_class=torch.distributions.Categorical,
        return_log_prob=True,
    )
    critic = TensorDictModule(
        MultiAgentMLP(n_agent_inputs=18, n_agent_outputs=1, centralized=True, **shape),
        [("agent", "observation")],
        [("agent", "state_value")],
    )
    loss = ClipPPOLoss(
        actor, critic, entropy_coeff=0.01, normalize_advantage=True, normalize_advantage_exclude_dims=(-2,)
    )
    loss.set_keys(
        reward=("agent", "reward"),
        action=("agent", "action"),
        value=("agent", "state_value"),
        done=("agent", "done"),
        terminated=("agent", "terminated"),
        sample_log_prob=("agent", "action_log_prob"),
    )
    loss.make_value_estimator(ValueEstimators.GAE, gamma=0.95, lmbda=0.95)
    assert returns("SimpleSpread-v0", actor, ("agent", "reward")) < -26  # random play: about -26
    learn(env, actor, loss, steps=25, iterations=40, epochs=8, minibatch=800, lr=2e-3)
    assert returns("SimpleSpread-v0", actor, ("agent", "reward")) > -22
