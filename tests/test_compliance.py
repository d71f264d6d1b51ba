"""Every check of gpuzoo.testing, for every game."""

from __future__ import annotations

import pytest

from gpuzoo import testing

pytestmark = pytest.mark.by_kind


@pytest.mark.parametrize("check", testing.CHECKS)
def test_compliance(game, check):
    testing.CHECKS[check](game)
