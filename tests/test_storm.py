"""Storm's games as they are drawn: exactness is compared with JaxMARL, in tests/integrations/jaxmarl."""

from __future__ import annotations

import numpy as np
import pytest

import gpuzoo


@pytest.mark.parametrize("name", ["Storm2P-v0", "Storm-v0", "StormNP-v0"])
def test_players_who_stand_still_are_drawn_as_such(name: str) -> None:
    envs = gpuzoo.make(name, 1)
    envs.reset(seed=0)
    before = envs.render()
    freeze = envs.simulator.state()["freeze"]
    envs.simulator.set_state({"freeze": np.full_like(freeze, 3)})
    assert (envs.render() != before).any(-1).sum() > 100
