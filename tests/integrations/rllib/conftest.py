"""Ray on one machine, small."""

from __future__ import annotations

import os
import warnings

os.environ["OMP_NUM_THREADS"] = "1"  # RLlib's batches are small: torch's threads would wait for each other

with warnings.catch_warnings():  # Ray calls what it and its dependencies have deprecated
    warnings.simplefilter("ignore")
    import ray
    import ray.rllib.algorithms.ppo

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for ignored in (
            "ignore::DeprecationWarning",  # of Ray about itself, in many places
            "ignore::PendingDeprecationWarning",
            "ignore:.*Overriding environment rllib-:UserWarning",  # each env runner registers its env anew
        ):
            item.add_marker(pytest.mark.filterwarnings(ignored))


@pytest.fixture(scope="session", autouse=True)
def _ray():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(num_cpus=2, include_dashboard=False, object_store_memory=200_000_000, log_to_driver=False)
    yield
    ray.shutdown()
