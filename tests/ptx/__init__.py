"""Executes a GPU's kernels without a GPU: NVRTC's PTX, translated to C++ for this host.

- `translate`: PTX to C++, with `instructions`, the table of what each instruction computes.
- ``machine.h``: what that C++ stands on: the threads of a block, barriers, shuffles, and instructions that C++ has no
  operator for.
- `exact`: whether PTX has only instructions that give the host's bits.
- `host`: the PTX of a program, kernels that Python can call, and a backend for `Simulator`.
"""
