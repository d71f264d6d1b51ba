"""Trainers that stay on the device, and the demonstration. In a clone ``baselines`` is ``gpuzoo.baselines``, too."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuzoo.core.definition import EnvDef

    from .train.networks import Policy

# Before torch is imported: a thread that waits gives its core away. Without this, two threads on two busy cores are ten
# times slower than one.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

if __name__ == "baselines":
    from gpuzoo.baselines.clone import share_modules

    share_modules(__name__)


def pretrained(game: str | type[EnvDef], device: str = "cpu") -> dict[str, Policy]:
    """Pretrained agents, trained with the options of ``baselines/configs``.

    Args:
        game: its id. The policies are for the parameters that ``Args.of(game).config`` has.
        device: of the policies.

    Returns:
        By group, as `run.train` returns them.

    Raises:
        ValueError: there are none for this game, or its file is damaged.
    """
    from .report.match import arrange
    from .train.networks import Policy

    players = arrange(game, {}, "pretrained", device=device).players
    return {group: policy for group, policy in players.items() if isinstance(policy, Policy)}
