"""Games as pure functions of JAX: `make`."""

from __future__ import annotations

from importlib.util import find_spec

if not find_spec("jax"):
    raise ImportError("gpuzoo.jax needs JAX: pip install 'gpuzoo[jax]'.")

from gpuzoo.jax.env import JaxEnv, State, make

__all__ = ["JaxEnv", "State", "make"]
