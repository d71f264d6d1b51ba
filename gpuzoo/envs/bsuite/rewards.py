"""What bsuite does with the rewards of some of its games."""

from __future__ import annotations

import dataclasses

from gpuzoo.core.definition import Config, param


@dataclasses.dataclass(frozen=True)
class RewardConfig(Config):
    """Rewards as in bsuite's experiments with noise (``catch_noise``) and of other sizes (``catch_scale``)."""

    reward_scale: float = param(1.0, doc="factor of the rewards; bsuite's experiments have 0.001 to 1000")
    noise_scale: float = param(
        0.0, low=0.0, doc="standard deviation of normal noise on each reward; bsuite's experiments have 0.1 to 10"
    )
