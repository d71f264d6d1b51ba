"""The tests of a GPU's interfaces, streams and graphs, on the stand-in for a GPU: all but what its kernels compute."""

from __future__ import annotations

import pytest
from gpu_stand_in import installed
from test_gpu import (  # noqa: F401 the same tests
    test_batch_env,
    test_cuda_graph_of_a_vector_env,
    test_cuda_graph_of_the_simulator,
    test_device_names,
    test_masks_on_the_device,
    test_nothing_waits_for_the_device,
    test_opponents_by_function_get_tensors,
    test_parameters_per_env,
    test_pettingzoo_and_single_env_on_the_gpu,
    test_rows_of_movers_equal_the_cpus,
    test_snapshot_between_cpu_and_gpu,
    test_state,
    test_steps_are_ordered_with_torchs_current_stream,
    test_vector_env_equals_the_cpus,
    test_vector_env_keeps_gymnasiums_contract,
    test_views_are_the_simulators_memory,
    torch,
)
from toys.herd import Herd
from toys.lamps import Lamps

ONLY = [Herd, Lamps]


@pytest.fixture(autouse=True)
def gpu():
    with installed() as driver:
        yield driver
    assert driver.failures == []
