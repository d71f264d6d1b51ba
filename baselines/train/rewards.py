"""Rewards divided by the deviation of the discounted return: always, never, or as the first rewards decide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..report.checkpoint import below
from . import distributed
from .args import LARGE_RETURNS
from .layers import Scale

if TYPE_CHECKING:
    from .learner import Learner


class Normalization:
    """Divides the rewards of those members for whom that was chosen.

    ``"auto"`` chooses once for each member, after the first rollout with a reward other than 0: by the deviation of the
    discounted returns so far, those of agents that hardly learnt yet. Until then all rewards are 0, whatever they are
    divided by. So a run is bit for bit one with ``True`` or one with ``False``.

    Args:
        mode: True, False or ``"auto"``.
        members: of the population.
        rows: of a member, see `Player`.
        device: of the rewards.

    Attributes:
        scale: of the discounted returns.
        running_return: (members, rows), the discounted returns of the episodes that are under way.
        chosen: int8 (members,): 1 for yes, 0 for no, -1 while that is open.
        is_open: whether it is for some member; then `apply` waits for the device.
    """

    def __init__(self, mode: bool | str, members: int, rows: int, device: torch.device) -> None:
        self.automatic = mode == "auto"
        self.scale, self.running_return = Scale(members, 1, device), torch.zeros(members, rows, device=device)
        self.chosen = torch.full((members,), -1 if self.automatic else int(mode), dtype=torch.int8, device=device)
        self._news = ""
        self._take(self.chosen)

    def apply(self, learner: Learner, reward: Tensor, gamma: Tensor) -> Tensor:
        """Rewards (steps, members, rows) as advantages are computed from them; ``gamma`` (members, 1)."""
        if not (self.is_open or self._any):
            return reward
        scaled = self.scaled(learner, reward, gamma)
        if self.is_open:
            self._choose(learner, reward)
        return scaled if self._all else torch.where((self.chosen > 0)[:, None], scaled, reward)

    def scaled(self, learner: Learner, reward: Tensor, gamma: Tensor) -> Tensor:
        """Rewards divided by the deviation, which learns from them."""
        ended = learner.rollout.ended.view(len(reward), len(self.chosen), -1)
        goes_on = 1 - ended.repeat_interleave(len(learner.player.agents), -1).float()
        decay = gamma * torch.cat([torch.ones_like(goes_on[:1]), goes_on[:-1]])
        first = reward[:1] + gamma * self.running_return
        returns = learner.executor.discounted_sum(torch.cat([first, reward[1:]]), decay)
        self.running_return.copy_(returns[-1] * goes_on[-1])
        flat = returns.transpose(0, 1).reshape(reward.shape[1], -1, 1)
        self.scale.learn(flat, torch.ones_like(flat[..., 0]), distributed.all_reduce)
        return (reward * self.scale.factor()).clamp(-10, 10)

    def _choose(self, learner: Learner, reward: Tensor) -> None:
        rewarded = distributed.all_reduce((reward != 0).any(2).any(0).float()) > 0
        deviation = self.scale.variance[:, 0].sqrt()
        chosen = torch.where((self.chosen < 0) & rewarded, (deviation > LARGE_RETURNS).to(torch.int8), self.chosen)
        self._take(chosen)
        if self._any and not self.is_open:
            self._news = (
                f"the rewards of {learner.name} are normalised, as their discounted returns have a deviation of "
                f"{float(deviation.max()):.3g}, over {LARGE_RETURNS:g}; --normalize-rewards off leaves them."
            )

    def _take(self, chosen: Tensor) -> None:
        self.chosen.copy_(chosen)
        yes = self.chosen > 0
        self.is_open, self._any, self._all = bool((self.chosen < 0).any()), bool(yes.any()), bool(yes.all())

    def news(self) -> str:
        """A sentence about what was chosen, once."""
        text, self._news = self._news, ""
        return text

    def state_dict(self) -> dict[str, Tensor]:
        """What a policy's checkpoint has of it; `running_return` belongs to the envs."""
        found = {f"reward_scale/{k}": v for k, v in self.scale.state_dict().items()}
        return found | ({"normalizes_rewards": self.chosen} if self.automatic else {})

    def load_state_dict(self, found: Mapping[str, Tensor]) -> None:
        """Puts back what `state_dict` gave."""
        self.scale.load_state_dict(below(found, "reward_scale/"))
        if self.automatic:
            self._take(found["normalizes_rewards"])
