"""The games, one folder each.

PettingZoo's habit of importing an env as a module works for all of them: ``from gpuzoo.envs import simple_spread_v0``
gives an object with ``parallel_env``, ``env`` and ``raw_env``.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any


def __getattr__(name: str) -> Any:
    from gpuzoo import registry

    for env_id in registry.ids():
        env = type(registry.get(env_id))
        if env.module_name() == name:
            return _as_module(env_id, name, env.__doc__)
    raise AttributeError(f"module 'gpuzoo.envs' has no attribute {name!r}")


@functools.cache
def _as_module(env_id: str, name: str, doc: str | None) -> ModuleType:
    from gpuzoo import registry
    from gpuzoo.interfaces.aec import aec_env
    from gpuzoo.interfaces.parallel import parallel_env

    module: Any = ModuleType(f"gpuzoo.envs.{name}", doc)
    module.env = functools.partial(aec_env, env_id)
    module.raw_env = module.env
    if registry.get(env_id).turn is None:
        module.parallel_env = functools.partial(parallel_env, env_id)
    return module  # type: ignore[no-any-return]
