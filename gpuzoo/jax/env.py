"""A game as pure functions of JAX, with gymnax's names."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from gpuzoo import registry
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.layout import choices, flat_size
from gpuzoo.core.suggestions import unknown
from gpuzoo.core.values import checked_value
from gpuzoo.interfaces.spaces import agent_observation_space
from gpuzoo.jax.calls import NO_LIMIT, Arrays, Program

#: the state of one env, or of many: arrays by name
State = dict[str, Any]

_SAME_STEP: Final = 1
_LIMIT: Final = "max_steps_in_episode"
_ENGINES: Final = ("device", "debug", "autoreset_mode", "lanes", "backend")


@functools.cache
def _params_class(env: type[EnvDef], names: tuple[str, ...]) -> Any:
    """The class of a game's run-time parameters, a node of JAX's trees."""

    def replace(self: Any, **values: Any) -> Any:
        """The same with other values."""
        for name in values.keys() - {_LIMIT, *names}:
            raise TypeError(unknown(f"{env.id} has no run-time parameter", name, (_LIMIT, *names)))
        return dataclasses.replace(self, **values)

    made = dataclasses.make_dataclass("Params", (_LIMIT, *names), frozen=True, namespace={"replace": replace})
    made.__doc__ = f"Run-time parameters of {env.id}, and its time limit in steps."
    made.__module__ = __name__
    return jax.tree_util.register_dataclass(made, [_LIMIT, *names], [])


class JaxEnv:
    """A game as pure functions: `make` makes it, with what its parameters are.

    Everything that an env is, its random numbers too, is in its state, so a state may be kept, copied and stepped as
    often as wanted. A finished env begins its next episode in the same step, as in gymnax. An env that was reset with
    the seed ``s`` does the same, bit for bit, as one of any other interface of gpuzoo.

    Without ``num_envs`` the functions are of one env, and `jax.vmap` makes them functions of many: they become one call
    with more envs, however often they are mapped. With ``num_envs`` all arrays have an axis of envs in front.

    **Arrays.** In a game with one agent ``obs`` has the shape of its space and its dtype (Discrete ones are int32),
    ``reward`` is a float32, ``action`` an int32 or as the action space. In a game with several agents these are
    dictionaries by group with arrays ``(agents of the group, ...)``; actions may also be one array ``(agents, ...)``.

    Args:
        env: id or declaration of the game.
        num_envs: number of envs; None for functions of one env.
        merged_done: whether `step` returns one ``done`` in place of ``terminated`` and ``truncated``, as gymnax did
            before its version 1; that is what PureJaxRL and its descendants expect.
        threads: CPU threads that share the envs; all by default.
        max_episode_steps: time limit; by default the game's own, None for no limit.
        **config: the game's parameters; a float one may be an array (num_envs,) or a `gpuzoo.Uniform`.

    Attributes:
        name: id of the game.
        num_envs: as above.
        groups: number of agents by group.
        observation_spaces, action_spaces: Gymnasium's spaces of one agent, by group.
        default_params: the time limit ``max_steps_in_episode`` and the game's float parameters, which `reset` and
            `step` take; ``params.replace(gravity=5.0)`` changes them. Spaces stay as they were made.
    """

    def __init__(
        self,
        env: str | EnvDef | type[EnvDef],
        num_envs: int | None = None,
        *,
        merged_done: bool = False,
        threads: int | None = None,
        **config: Any,
    ) -> None:
        definition = registry.get(env)
        for name in config:
            if name in _ENGINES:
                raise TypeError(f"gpuzoo.jax has no argument {name}: it runs on the CPU, and resets in the same step.")
        if jax.default_backend() != "cpu":
            raise NotImplementedError(
                f"gpuzoo.jax runs on the CPU only, and JAX computes on {jax.default_backend()!r}: set "
                "JAX_PLATFORMS=cpu, or take gpuzoo.make_vec(..., device='cuda'), whose arrays JAX takes by DLPack."
            )
        self._program = program = Program(definition, 1 if num_envs is None else num_envs, threads, config)
        self.name, self.num_envs, self.merged_done = definition.id, num_envs, merged_done
        self._n = 1 if num_envs is None else num_envs
        self._single = type(definition).single()
        self.layout = lay = program.layout
        self.groups = dict(lay.groups)
        self.observation_spaces = {g: agent_observation_space(lay, g) for g in self.groups}
        self.action_spaces = dict(lay.action_spaces)
        params: Any = _params_class(type(definition), tuple(program.values))  # type: ignore[arg-type]
        self.default_params = params(program.max_episode_steps, **program.values)
        self._reset: Callable[..., Any] = jax.jit(self._begin)
        self._step: Callable[..., Any] = jax.jit(self._go_on)

    def __repr__(self) -> str:
        return f"JaxEnv({self.name}, num_envs={self.num_envs})"

    # ---- gymnax's functions ----

    def reset(self, key: Any, params: Any = None) -> tuple[Any, State]:
        """Begins the first episode of each env.

        Args:
            key: a key of `jax.random`, from which a seed is drawn; or the seed itself, an integer. Env ``i`` of
                ``num_envs`` is seeded ``seed + i``, as by ``gpuzoo.make_vec(...).reset(seed=seed)``.
            params: as ``default_params``, which they are by default.

        Returns:
            The observation, and the state.

        Raises:
            ValueError: a negative seed, or a parameter out of range.
            TypeError: neither a key nor a seed.
        """
        return self._reset(_seed_words(key), self._params(params))  # type: ignore[no-any-return]

    def step(self, key: Any, state: State, action: Any, params: Any = None) -> tuple[Any, ...]:
        """One step. An env whose episode ends begins the next one, and ``obs`` is the new episode's.

        Args:
            key: is not looked at, as random numbers follow from the state. It may be None.
            state: from `reset` or `step`.
            action: illegal ones are replaced by the game's ``invalid_action``, as everywhere.
            params: as ``default_params``, which they are by default.

        Returns:
            ``obs``, ``state``, ``reward``, ``terminated``, ``truncated`` and ``info``. ``info`` has ``discount``,
            float32, which is 0 where an agent was terminated and otherwise 1; ``done``, a bool, whether the env's
            episode is over; and ``final_observation``, what the step led to, before the next episode began.

            With ``merged_done``: ``obs``, ``state``, ``reward``, ``done`` and ``info``, which has ``discount``,
            ``terminated`` and ``truncated``. It is small, as trainers keep it for every step; for what a step led to
            see `final_obs`.

        Raises:
            ValueError, TypeError: an action of another shape or kind, or a parameter out of range.
        """
        return self._step(state, action, self._params(params))  # type: ignore[no-any-return]

    def observation_space(self, params: Any = None) -> Any:
        """Of one env with one agent: gymnax's ``Box`` or ``Discrete``.

        Raises:
            ImportError: gymnax is missing; `observation_spaces` has Gymnasium's spaces.
            ValueError: the game has several agents.
        """
        return _gymnax_space(self._only(self.layout.observation_spaces, "observation_spaces"))

    def action_space(self, params: Any = None) -> Any:
        """Of one env with one agent: gymnax's ``Box`` or ``Discrete``.

        Raises:
            ImportError: gymnax is missing; `action_spaces` has Gymnasium's spaces.
            ValueError: the game has several agents.
        """
        return _gymnax_space(self._only(self.action_spaces, "action_spaces"))

    @property
    def num_actions(self) -> int:
        """Number of choices of one agent, or of numbers in its action.

        Raises:
            ValueError: the game has several agents.
        """
        space = self._only(self.action_spaces, "action_spaces")
        return int(space.n) if isinstance(space, spaces.Discrete) else flat_size(space)

    # ---- what else a state tells ----

    def final_obs(self, state: State) -> Any:
        """The final observation of the last episode that ended, shaped as an observation; zeros before the first end.

        After a step with ``done`` it is what the step led to, from which a truncated episode's value is bootstrapped.
        """
        return self._out(self._observed(self._rows(state)["final_observation"]))

    def action_mask(self, state: State) -> Any:
        """Action masks, int8 as Gymnasium has them, shaped as ``action_spaces`` say.

        Raises:
            ValueError: the game has no masks.
        """
        if not self.layout.mask_size:
            raise ValueError(f"{self.name} has no action masks: every action is legal.")
        mask = self._rows(state)["action_mask"]
        sizes = {g: sum(choices(space)) for g, space in self.action_spaces.items()}
        return self._out({g: self._of(mask, g)[..., :size] for g, size in sizes.items()})

    def alive(self, state: State) -> Any:
        """The agents that act in the next step, as bools."""
        return self._of_agents(self._rows(state)["alive"])

    def random_actions(self, state: State, params: Any = None) -> Any:
        """Random legal actions, drawn by the game's kernel: the same that ``rollout`` of a `Simulator` takes next.

        They follow from the state, so the same state has the same ones. ``params`` are those of `step`; only rules that
        choose actions themselves may look at them.
        """
        action = self._call("act", self._rows(state), self._params(params))["action"]
        return self._out({g: self._shaped(self._of(action, g), self.action_spaces[g]) for g in self.groups})

    def global_state(self, state: State, params: Any = None) -> Any:
        """The game's own global state, as a central critic sees it, with the shape of its ``state_space``.

        Raises:
            ValueError: the game declares none.
        """
        space = self.layout.state_space
        if space is None:
            raise ValueError(f"{self.name} declares no state_space: its global state is all observations together.")
        told = self._call("state", self._rows(state), self._params(params))["state"]
        return self._squeezed(told.reshape(self._n, *(space.shape or ())))

    # ---- arrays ----

    def _begin(self, words: Any, params: Any) -> tuple[Any, State]:
        low, high = words[0], words[1]
        lows = low + jnp.arange(self._n, dtype=jnp.uint32)
        seeds = jnp.stack([lows, high + (lows < low)], axis=1)
        rows = {**self._program.zeros(self._n), "seed": seeds}
        out = self._call("reset", rows, params)
        return self._out(self._observed(out["observation"])), self._kept(out)

    def _go_on(self, state: State, action: Any, params: Any) -> tuple[Any, ...]:
        out = self._call("step", {**self._rows(state), "action": self._actions(action)}, params)
        seen, kept = self._observed(out["observation"]), self._kept(out)
        reward, terminated, truncated = (self._of_agents(out[name]) for name in ("reward", "terminated", "truncated"))
        done = self._squeezed(out["ended"])
        info: Arrays = {"discount": jax.tree.map(lambda gone: 1.0 - gone.astype(jnp.float32), terminated)}
        if self.merged_done:
            info |= {"terminated": terminated, "truncated": truncated}
            return self._out(seen), kept, reward, done, info
        last = self._observed(out["final_observation"])
        gone = {group: self._of(out["terminated"] | out["truncated"], group) for group in self.groups}
        led_to = {g: jnp.where(_like(gone[g], x), last[g], x) for g, x in seen.items()}
        info |= {"done": done, "final_observation": self._out(led_to)}
        return self._out(seen), kept, reward, terminated, truncated, info

    def _params(self, params: Any) -> Any:
        """Parameters to run with. Numbers are checked; what is traced, and arrays, may be anything."""
        if params is None or params is self.default_params:
            return self.default_params
        for field in dataclasses.fields(params):
            value = getattr(params, field.name)
            if not isinstance(value, (int, float)):
                continue
            if field.name != _LIMIT:
                checked_value(self._program.env, field.name, value)
            elif not (isinstance(value, int) and 1 <= value <= NO_LIMIT):
                raise ValueError(f"{_LIMIT} must be a positive int, not {value!r}.")
        return params

    def _call(self, kernel: str, rows: Arrays, params: Any) -> Arrays:
        """Runs a kernel. Parameters with a value per env go with the rows, the others are shared."""
        limit = jnp.asarray(getattr(params, _LIMIT), jnp.int32)
        shared: Arrays = {"control": jnp.stack([jnp.int32(_SAME_STEP), limit])}
        own: Arrays = {}
        for name in self._program.values:
            value = jnp.asarray(getattr(params, name), jnp.float32)
            if value.shape not in ((), (self._n,)):
                raise ValueError(f"{self.name}: {name} must be a number or have shape ({self._n},), not {value.shape}.")
            (own if value.shape else shared)[f"param_{name}"] = value
        return self._program.call(kernel, self._n, own)({**rows, **own}, shared)

    def _kept(self, out: Arrays) -> State:
        return {name: self._squeezed(out[name]) for name in self._program.carried}

    def _rows(self, state: State) -> Arrays:
        return {name: x[None] for name, x in state.items()} if self.num_envs is None else dict(state)

    def _squeezed(self, array: Any) -> Any:
        return array.reshape(array.shape[1:]) if self.num_envs is None else array

    def _of(self, array: Any, group: str) -> Any:
        first = self.layout.first[group]
        return array[:, first : first + self.groups[group]]

    def _of_agents(self, array: Any) -> Any:
        """An array (num_envs, agents) as callers get it."""
        return self._out({group: self._of(array, group) for group in self.groups})

    @staticmethod
    def _shaped(rows: Any, space: spaces.Space[Any]) -> Any:
        """Flat numbers in the shape of a space, without the padding behind them."""
        return rows[..., : flat_size(space)].reshape(*rows.shape[:2], *(space.shape or ()))

    def _observed(self, array: Any) -> Arrays:
        found = self.layout.observation_spaces
        return {g: self._shaped(self._of(array, g), found[g]) for g in self.groups}

    def _out(self, by_group: Arrays) -> Any:
        """The form for the caller: arrays if there is one agent, otherwise a dictionary by group."""
        if self._single:
            (only,) = by_group.values()
            return self._squeezed(only.reshape(only.shape[0], *only.shape[2:]))
        return {group: self._squeezed(array) for group, array in by_group.items()}

    def _actions(self, action: Any) -> Any:
        """Actions of all agents, (num_envs, agents, action_size)."""
        lay = self.layout
        lead = () if self.num_envs is None else (self._n,)
        if isinstance(action, Mapping):
            if set(action) != set(self.groups):
                raise ValueError(f"{self.name}: actions must be of the groups {list(self.groups)}, not {list(action)}.")
            parts = [self._action_rows(action[g], self.action_spaces[g], (*lead, n)) for g, n in self.groups.items()]
            return jnp.concatenate(parts, axis=1)
        agents = () if self._single else (lay.agents,)
        return self._action_rows(action, next(iter(self.action_spaces.values())), (*lead, *agents))

    def _action_rows(self, action: Any, space: spaces.Space[Any], lead: tuple[int, ...]) -> Any:
        array = jnp.asarray(action)
        wanted = (*lead, *(space.shape or ()))
        if array.shape != wanted:
            raise ValueError(f"{self.name}: action must have shape {wanted}, not {array.shape}.")
        dtype = np.dtype(self.layout.action_dtype)
        if array.dtype.kind not in ("fiu" if dtype.kind == "f" else "iu"):
            raise TypeError(f"{self.name}: action must be in {space}, not {array.dtype}.")
        size = flat_size(space)
        array = array.astype(dtype).reshape(self._n, -1, size)
        return jnp.pad(array, ((0, 0), (0, 0), (0, self.layout.action_size - size)))

    def _only(self, by_group: Mapping[str, Any], name: str) -> Any:
        if not self._single:
            raise ValueError(f"{self.name} has several agents: see {name}, by group.")
        return next(iter(by_group.values()))


def _like(flags: Any, array: Any) -> Any:
    """Flags with further axes, so that they choose among the rows of an array."""
    return flags.reshape(*flags.shape, *(1,) * (array.ndim - flags.ndim))


def _seed_words(key: Any) -> Any:
    """The lower and the upper half of a seed, uint32 (2,), from a key of JAX or from the seed itself."""
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        if key < 0:
            raise ValueError(f"seed must not be negative: {key}.")
        return jnp.array([int(key) & 0xFFFFFFFF, int(key) >> 32 & 0xFFFFFFFF], jnp.uint32)
    array = jnp.asarray(key)
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key) or (array.dtype == jnp.uint32 and array.ndim == 1):
        return jax.random.bits(array, (2,), jnp.uint32)
    if array.ndim == 0 and jnp.issubdtype(array.dtype, jnp.integer):
        upper = array >> 32 if array.dtype.itemsize == 8 else jnp.zeros_like(array)
        return jnp.stack([array.astype(jnp.uint32), upper.astype(jnp.uint32)])
    raise TypeError(f"a reset takes a key of jax.random or a seed, not {key!r}.")


def _gymnax_space(space: spaces.Space[Any]) -> Any:
    try:
        from gymnax.environments import spaces as theirs
    except ImportError as error:
        raise ImportError("spaces of gymnax need it: pip install 'gpuzoo[jax]'.") from error
    if isinstance(space, spaces.Discrete):
        return theirs.Discrete(int(space.n))
    if isinstance(space, spaces.Box):
        return theirs.Box(jnp.asarray(space.low), jnp.asarray(space.high), space.shape, space.dtype)
    return theirs.Box(0, int(space.nvec.max()) - 1, space.shape, jnp.int32)  # type: ignore[attr-defined]


def make(env: str | EnvDef | type[EnvDef], num_envs: int | None = None, **kwargs: Any) -> tuple[JaxEnv, Any]:
    """A game as functions of JAX and its parameters, as ``gymnax.make`` returns them: see `JaxEnv` for the arguments.

    Raises:
        ValueError, TypeError: no such game, or an argument out of range or of the wrong type.
        NotImplementedError: JAX does not compute on the CPU.
        RuntimeError: no compiler.
    """
    made = JaxEnv(env, num_envs, **kwargs)
    return made, made.default_params
