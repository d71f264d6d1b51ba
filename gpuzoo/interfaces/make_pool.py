"""`make_pool`: a pool as Gymnasium or dm_env has its steps."""

from __future__ import annotations

from typing import Any, Literal, overload

from gpuzoo.core.definition import EnvDef
from gpuzoo.interfaces.dm import COLUMNS, DmPool
from gpuzoo.interfaces.pool import EnvPool


@overload
def make_pool(
    env: str | EnvDef | type[EnvDef],
    num_envs: int = 1,
    batch_size: int | None = None,
    num_threads: int | None = None,
    *,
    env_type: Literal["gymnasium"] = "gymnasium",
    **kwargs: Any,
) -> EnvPool: ...


@overload
def make_pool(
    env: str | EnvDef | type[EnvDef],
    num_envs: int = 1,
    batch_size: int | None = None,
    num_threads: int | None = None,
    *,
    env_type: Literal["dm"],
    **kwargs: Any,
) -> DmPool: ...


def make_pool(
    env: str | EnvDef | type[EnvDef],
    num_envs: int = 1,
    batch_size: int | None = None,
    num_threads: int | None = None,
    *,
    env_type: Literal["gymnasium", "dm"] = "gymnasium",
    **kwargs: Any,
) -> Any:
    """A pool of envs with EnvPool's interface: an `EnvPool`, or for dm_env a `gpuzoo.interfaces.dm.DmPool`.

    Args:
        env: id or declaration of the game.
        num_envs: number of envs. (With several agents per env there are that many times more rows.)
        batch_size: number of envs that `EnvPool.recv` waits for; by default all, which is the synchronous mode.
        num_threads: native threads that step the envs, besides the thread that waits; by default one per CPU. On a GPU
            they do nothing.
        env_type: ``"gymnasium"``, or ``"dm"`` for time steps as in dm_env.
        seed: env ``i`` is seeded ``seed + i``; or a sequence of seeds; None draws one. EnvPool's default, 42.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:k"``, ``"auto"``, or a ``torch.device``.
        output: kind of the arrays: ``"numpy"`` (default on a CPU), ``"torch"`` (on a GPU) or ``"cupy"``.
        max_episode_steps: time limit; None or -1 means none.
        infos: adds the game's own infos to those of `EnvPool.recv`.
        render_mode: ``"rgb_array"``, or None for no pictures.
        **kwargs: these, and the game's parameters.

    Raises:
        ValueError, TypeError: an unknown game or argument, or one out of range.
    """
    if env_type not in ("gymnasium", "dm"):
        raise ValueError(f"env_type must be 'gymnasium' or 'dm', not {env_type!r}; EnvPool's 'gym' is 'gymnasium'.")
    if env_type == "dm":
        if kwargs.setdefault("output", "numpy") != "numpy":
            raise ValueError(f"time steps come in NumPy arrays, so output must be 'numpy', not {kwargs['output']!r}.")
        if kwargs.get("infos"):
            raise ValueError("time steps have no infos: leave out infos=True, or take env_type='gymnasium'.")
        return DmPool(EnvPool(env, num_envs, batch_size, num_threads, extra_columns=COLUMNS, **kwargs))
    return EnvPool(env, num_envs, batch_size, num_threads, **kwargs)
