"""EnvPool's ``xla()``: a pool's envs as functions of JAX. `gpuzoo.EnvPool.xla` calls it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import jax.numpy as jnp
import numpy as np

from gpuzoo.core.layout import flat_size
from gpuzoo.core.simulator import Simulator
from gpuzoo.jax.calls import Arrays, Program

if TYPE_CHECKING:
    from gpuzoo.interfaces.pool import EnvPool

_NEXT_STEP: Final = 0
_TOLD: Final = ("observation", "reward", "terminated", "truncated", "alive", "action_mask", "elapsed_steps")
Handle = dict[str, Any]


def xla(pool: EnvPool) -> tuple[Handle, Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """See `gpuzoo.EnvPool.xla`."""
    sim = pool.simulator
    if sim.device != "cpu":
        raise NotImplementedError(f"xla() runs on the CPU only, and this pool is on {sim.device}.")
    if pool.is_async:
        raise ValueError(f"xla() steps all envs at once: make the pool with batch_size={pool.num_envs}, its default.")
    if sim.debug:
        raise ValueError("xla() does not check indices: make the pool without debug.")
    if pool.info_names:
        raise ValueError("xla() does not go together with infos=True: make the pool without it.")
    if not sim.was_reset:
        raise RuntimeError(f"{sim.env.id}: call reset() or async_reset() before xla().")
    config = {name: sim.param(name) for name in vars(sim.cfg)} | dict(sim.drawn)
    program = Program(
        sim.env, sim.num_envs, pool.config["num_threads"], {**config, "max_episode_steps": sim.max_episode_steps}
    )
    n, lay = sim.num_envs, sim.layout
    own = [f"param_{name}" for name, value in program.values.items() if np.ndim(value)]
    call = program.call("step", n, own)
    params = {f"param_{name}": jnp.asarray(value, jnp.float32) for name, value in program.values.items()}
    rows = {name: params.pop(name) for name in own}
    shared = {**params, "control": jnp.array([_NEXT_STEP, program.max_episode_steps], jnp.int32)}
    space = pool.single_action_space
    observed = pool.observation_space
    plain = observed["observation"] if lay.mask_size else observed  # type: ignore[index]

    def send(handle: Handle, action: Any, env_id: Any = None) -> Handle:
        """Steps all envs; `recv` returns what came of it. ``env_id`` is not looked at: the actions are of all envs."""
        numbers = jnp.asarray(action).astype(lay.action_dtype).reshape(n, lay.agents, flat_size(space))
        numbers = jnp.pad(numbers, ((0, 0), (0, 0), (0, lay.action_size - flat_size(space))))
        state = {name: handle[name] for name in program.carried}
        out = call({**state, **rows, "action": numbers}, shared)
        return {name: out[name] for name in handle}

    def recv(handle: Handle) -> tuple[Handle, tuple[Any, Any, Any, Any, Arrays]]:
        """Results of the last step of each env, in the form of `EnvPool.recv`."""
        size, envs = flat_size(plain), jnp.arange(n, dtype=jnp.int32)
        seen: Any = handle["observation"][..., :size].reshape(n * lay.agents, *(plain.shape or ()))
        if lay.mask_size:
            seen = {"observation": seen, "action_mask": handle["action_mask"].reshape(n * lay.agents, -1)}
        each = [handle[name].reshape(-1) for name in ("reward", "terminated", "truncated")]
        infos = {"env_id": envs, "players": {"env_id": jnp.repeat(envs, lay.agents)}}
        infos["elapsed_step"] = handle["elapsed_steps"]
        if lay.agents > 1:
            infos["alive"] = handle["alive"].reshape(-1)
        return handle, (seen, each[0], each[1], each[2], infos)

    def step(handle: Handle, action: Any, env_id: Any = None) -> tuple[Handle, tuple[Any, Any, Any, Any, Arrays]]:
        """`send` and `recv`."""
        return recv(send(handle, action, env_id))

    return _handle(sim, program), recv, send, step


def _handle(sim: Simulator, program: Program) -> Handle:
    """A copy of the state of all envs, and of what their last step told."""
    found: Arrays = {}
    arrays = {**sim.arrays, **{f"param_{name}": array for name, array in sim.params.items()}}
    for name in dict.fromkeys([*program.carried, *(name for name in _TOLD if name in arrays)]):
        array = np.ascontiguousarray(arrays[name])
        words = array.view(np.uint32).reshape(*array.shape, 2) if array.dtype.itemsize == 8 else array
        found[name] = jnp.array(words)
    return found
