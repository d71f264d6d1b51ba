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

    for env_id in registry.ids():  # in any spelling: tag_gridworld_v0, tag_grid_world_v0
        if "".join(filter(str.isalnum, env_id)).lower() == name.replace("_", ""):
            return _as_module(env_id, name)
    raise AttributeError(f"module 'gpuzoo.envs' has no attribute {name!r}")


@functools.cache
def _as_module(env_id: str, name: str) -> ModuleType:
    from gpuzoo import registry
    from gpuzoo.interfaces.aec import aec_env
    from gpuzoo.interfaces.parallel import parallel_env

    game = registry.get(env_id)
    module: Any = ModuleType(f"gpuzoo.envs.{name}", game.__doc__)
    module.env = functools.partial(aec_env, env_id)
    module.raw_env = module.env
    if game.turn is None:
        module.parallel_env = functools.partial(parallel_env, env_id)
    return module  # type: ignore[no-any-return]
