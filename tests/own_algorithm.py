"""An algorithm with all that a hook can bring: modules with a memory, a central critic, two heads, state of its own."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import nn

from baselines.ppo import PPO
from baselines.train import distributed
from baselines.train.learner import Head
from baselines.train.modules import ModulePolicy


class Net(nn.Module):
    """A GRU for the actor, and two values of the observation and the global state."""

    memory_size = 6

    def __init__(self, inputs: int, state: int, outputs: int) -> None:
        super().__init__()
        self.cell, self.actor = nn.GRUCell(inputs, self.memory_size), nn.Linear(self.memory_size, outputs)
        self.critic = nn.Sequential(nn.Linear(inputs + state, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, x: Any, memory: Any, begins: Any, state: Any) -> Any:
        remembered = []
        for now, begin in zip(x, begins, strict=True):
            memory = self.cell(now, memory * (1 - begin.unsqueeze(-1)))
            remembered.append(memory)
        return self.actor(torch.stack(remembered)), self.critic(torch.cat([x, state], -1)), memory


class Own(PPO):
    """PPO with a bonus for what a model of the rewards does not foresee; a head of its own foresees that."""

    heads: ClassVar = {"surprise": Head(gamma=0.9, weight=0.5, episodic=False)}

    def __init__(self, args: Any, executor: Any = None) -> None:
        super().__init__(args, executor)
        (learner,) = self.learners.values()
        with torch.random.fork_rng([]):
            torch.manual_seed(args.seed)
            self.model = nn.Linear(*learner.policy.observation_space.shape, 1)
        self.adam, self.calls = torch.optim.Adam(self.model.parameters(), 1e-2), torch.zeros(())
        self.extra |= {"model": self.model, "adam": self.adam, "calls": self.calls}

    def networks(self, agents: Any) -> ModulePolicy:
        return ModulePolicy(agents, lambda: Net(*agents.shape, agents.options["state_size"], agents.outputs))

    def on_rollout(self, learner: Any) -> Any:
        error = (self.model(learner.observation).squeeze(-1) - learner.reward).square()
        self.adam.zero_grad()
        (error.mean() / distributed.world_size()).backward()
        for parameter in self.model.parameters():
            distributed.all_reduce(parameter.grad)
        self.adam.step()
        self.calls += 1
        learner.rewards["surprise"] = error.detach()
        surprise = distributed.all_reduce(error.detach().mean((0, 2))) / distributed.world_size()
        return {**super().on_rollout(learner), "surprise": surprise}
