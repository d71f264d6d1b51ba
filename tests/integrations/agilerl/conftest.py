import os

import pytest

# Set before torch starts its threads, so that they do not spin beside the simulator's.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

#: what AgileRL does to itself
IGNORED = (
    "ignore:.*torch.jit:DeprecationWarning",
    "ignore:.*:DeprecationWarning:torch",
    "ignore:MakeEvolvable:DeprecationWarning",
)


def pytest_configure(config: pytest.Config) -> None:
    for line in IGNORED:
        config.addinivalue_line("filterwarnings", line)
