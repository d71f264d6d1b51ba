"""Whether rewards are divided by the deviation of the discounted return: yes, no, or as the first rewards decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from . import distributed
from .args import LARGE_RETURNS

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
        device: of the rewards.

    Attributes:
        chosen: int8 (members,): 1 for yes, 0 for no, -1 while that is open.
        is_open: whether it is for some member; then `apply` waits for the device.
    """

    def __init__(self, mode: bool | str, members: int, device: torch.device) -> None:
        self.automatic = mode == "auto"
        self.chosen = torch.full((members,), -1 if self.automatic else int(mode), dtype=torch.int8, device=device)
        self._news = ""
        self.load(self.chosen)

    def apply(self, learner: Learner, reward: Tensor, gamma: Tensor) -> Tensor:
        """Rewards (steps, members, rows) as advantages are computed from them; ``gamma`` (members, 1)."""
        if not (self.is_open or self._any):
            return reward
        scaled = learner.scaled_rewards(reward, gamma)
        if self.is_open:
            self._choose(learner, reward)
        return scaled if self._all else torch.where((self.chosen > 0)[:, None], scaled, reward)

    def _choose(self, learner: Learner, reward: Tensor) -> None:
        rewarded = distributed.all_reduce((reward != 0).any(2).any(0).float()) > 0
        deviation = learner.reward_scale.variance[:, 0].sqrt()
        chosen = torch.where((self.chosen < 0) & rewarded, (deviation > LARGE_RETURNS).to(torch.int8), self.chosen)
        self.load(chosen)
        if self._any and not self.is_open:
            self._news = (
                f"the rewards of {learner.name} are normalised, as their discounted returns have a deviation of "
                f"{float(deviation.max()):.3g}, over {LARGE_RETURNS:g}; --normalize-rewards off leaves them."
            )

    def load(self, chosen: Tensor) -> None:
        """Takes a choice that was made before."""
        self.chosen.copy_(chosen)
        yes = self.chosen > 0
        self.is_open, self._any, self._all = bool((self.chosen < 0).any()), bool(yes.any()), bool(yes.all())

    def news(self) -> str:
        """A sentence about what was chosen, once."""
        text, self._news = self._news, ""
        return text
