"""The trainers' captured paths on the stand-in for a GPU: what a graph may not hold; it does what was captured."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from gpu_stand_in import installed  # noqa: E402
from test_fast_capture import RUNS, run_of  # noqa: E402

from baselines.fast.executor import Fast  # noqa: E402

pytestmark = pytest.mark.rotates  # about these modules of the trainers


@pytest.fixture
def gpu():
    with installed() as driver:
        yield driver
    assert driver.failures == []


@pytest.mark.parametrize("name", RUNS)
def test_a_graph_does_what_its_operations_do(gpu, name, monkeypatch):
    """From the second iteration on an iteration is two graphs, on the stream that is torch's current one."""
    kind, args = run_of(name, 3, device="cuda")
    found, own = [], torch.cuda.Stream()
    for capture in (True, False):
        if not capture:
            monkeypatch.setattr("baselines.fast.executor.captured", lambda function, device: function)
        with torch.cuda.stream(own):
            gpu.log.clear()
            trainer = kind(args, Fast("cuda"))
            log = [trainer.iterate() for _ in range(2)]
            with gpu.watched() as entries:
                log.append(trainer.iterate())
            found.append(({group: policy.flat.host().clone() for group, policy in trainer.policies.items()}, log))
            trainer.close()
        assert 0 not in gpu.streams()
        launches = {(entry.what, entry.stream) for entry in entries if entry.kind == "launch"}
        assert launches == {("graph", own.cuda_stream)} or not capture, launches
    for group, flat in found[0][0].items():
        assert torch.equal(flat, found[1][0][group])
    for one, other in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_equal(one, other)
