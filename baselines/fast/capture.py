"""CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def captured(function: Callable[[], Any], device: torch.device) -> Callable[[], Any]:
    """A function that on a GPU runs as one CUDA graph from its second call on; on a CPU it is what it was.

    It must do the same at each call, to the same tensors.
    """
    if device.type != "cuda":
        return function
    graph, stream, result, calls = torch.cuda.CUDAGraph(), torch.cuda.Stream(device), None, 0

    def run() -> Any:
        nonlocal result, calls
        calls += 1
        if calls == 1:  # on the stream on which it is captured next
            here = torch.cuda.current_stream(device)
            stream.wait_stream(here)
            with torch.cuda.stream(stream):
                out = function()
            here.wait_stream(stream)
            return out
        if calls == 2:
            with torch.cuda.device(device), torch.cuda.graph(graph, stream=stream):
                result = function()
        graph.replay()
        return result

    return run
