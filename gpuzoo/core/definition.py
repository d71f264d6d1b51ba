"""The declaration of a game: what its author writes in Python.

A game is two files in a folder of its own. ``<name>.py`` holds a subclass of `EnvDef`, which declares the id, the
configuration, the agents, the spaces and the state; ``<name>.cuh`` holds the rules. Everything else (arrays, kernels,
interfaces, tests, documentation) follows from the declaration.

One file, as it is what an author of a game reads; half of it is docstrings and messages.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import math
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.assets import Asset
from gpuzoo.core.uniform import Uniform

#: parameters that differ between envs: values given, or drawn for each episode
PerEnv = Mapping[str, NDArray[np.float32] | Uniform]

#: dtypes that a kernel can hold, with their names in the device code
C_TYPES: Mapping[str, str] = {
    "float32": "float",
    "int32": "int",
    "uint32": "u32",
    "uint64": "u64",
    "int16": "i16",
    "int8": "i8",
    "uint8": "u8",
    "bool": "u8",
}

#: what of a game a variant may change, beside the parameters
VARIED = ("max_episode_steps", "reward_threshold", "reference")

#: what ids look like
ID = re.compile(r"^[A-Z][A-Za-z0-9-]*-v\d+$")
_NAME = re.compile(r"^[a-z][a-z0-9_]*$")
_NUMBERED = re.compile(r"_\d+$")
_CONSTANT = re.compile(r"^[A-Z][A-Z0-9_]*$")
_LARGEST = float(np.finfo(np.float32).max)


@dataclasses.dataclass(frozen=True)
class Field:
    """An array of an env: part of its state, or a scratch array for the rules.

    Args:
        dtype: one of float32, int32, uint32, uint64, int16, int8, uint8, bool.
        shape: the shape within one env; an entry is an integer or the name of a size: ``"agents"``, a group's name
            with an ``s`` (``"taggers"``), an integer of the configuration, or one of `EnvDef.constants`. ``()`` is one
            value per env.
        doc: one line for the documentation.
        scratch: not part of the state. Its contents are undefined whenever `reset`, `step` or `observe` begins.
            Snapshots leave it out, and on a CPU it takes no memory per env.
    """

    dtype: str
    shape: tuple[int | str, ...] = ()
    doc: str = ""
    scratch: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape, after `resolve_fields` has replaced names by numbers."""
        return tuple(int(k) for k in self.shape)

    def __post_init__(self) -> None:
        if self.dtype not in C_TYPES:
            raise ValueError(f"Field dtype {self.dtype!r} is not supported: use one of {', '.join(C_TYPES)}.")


def param(default: Any, *, low: float | None = None, high: float | None = None, doc: str = "") -> Any:
    """A field of a ``Config`` with a range and a line of documentation.

    Integers, booleans and ``Literal`` strings become compile-time constants of the kernel. Floats are run-time values:
    they may change at any time and may differ between envs. A free text (``str``) does not reach the kernel;
    `EnvDef.constants`, `EnvDef.tables` and the spaces may depend on it.

    Args:
        default: the default value; its type is the type of the parameter.
        low: smallest value accepted.
        high: largest value accepted.
        doc: one line for the documentation.
    """
    return dataclasses.field(default=default, metadata={"low": low, "high": high, "doc": doc})


@dataclasses.dataclass(frozen=True)
class Config:
    """Base of every game's configuration: an immutable dataclass of ints, bools, floats and strings."""


class EnvDef:
    """The declaration of a game. Subclass it; the class docstring becomes the game's page in the documentation.

    Methods receive ``cfg``, an instance of the game's ``Config``. They must depend on nothing else.
    """

    #: ``Name-vN``; N grows whenever spaces, rules or random draws change
    id: ClassVar[str]
    #: the configuration, a frozen dataclass derived from `Config`
    Config: ClassVar[type[Config]] = Config
    #: time limit in steps, or None; it can be changed when an env is made
    max_episode_steps: ClassVar[int | None] = None
    #: replaces an action that is out of range, NaN or masked; the rules see no other illegal value
    invalid_action: ClassVar[int] = 0
    #: whether agents have action masks, written by `observe` together with the observation
    action_mask: ClassVar[bool] = False
    #: whether episodes are so short that a CPU had better reset many envs together; results do not depend on it, but a
    #: game whose envs a CPU steps in vector instructions is faster then, and takes longer to compile
    short_episodes: ClassVar[bool] = False
    #: whether the rules are packed, which means written for several envs at once: see "Packed rules" in docs/dialect.md
    packed: ClassVar[bool] = False
    #: whether the rules have ``GZ int choose(Env e, int agent, u32 bits)``, which returns a random legal action, for
    #: games with long masks. A rollout then writes observations and masks after its last step only, and ``e.action``
    #: may be illegal though it is in range: see "Random actions" in docs/dialect.md
    chooses: ClassVar[bool] = False
    #: turn-based games: the name of the scalar int32 field with the index of the agent to move
    turn: ClassVar[str | None] = None
    #: the independent implementation that tests compare with, e.g. ``"gymnasium==1.4.0 CartPole-v1"``
    reference: ClassVar[str] = ""
    #: names that other libraries give this game, as regular expressions; `gpuzoo.get` takes them, and the last word of
    #: `reference`. `config_of` says what one of them stands for.
    aliases: ClassVar[tuple[str, ...]] = ()
    #: names of different games of other libraries that this game can replace: `gpuzoo.get` suggests it
    similar: ClassVar[tuple[str, ...]] = ()
    #: configurations that `gpuzoo bench` times beside the default one: name -> arguments of `Simulator`, which may
    #: hold ``num_envs`` (otherwise a good number is searched)
    benchmarks: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    #: tests that do not apply, by name, with the reason
    exempt: ClassVar[Mapping[str, str]] = {}
    #: frames per second of an animation
    render_fps: ClassVar[int] = 30
    #: return at which the game counts as solved, where the field has agreed on one
    reward_threshold: ClassVar[float | None] = None
    #: whether agents share a goal (cooperative), oppose each other (competitive), or both (mixed)
    interaction: ClassVar[Literal["", "cooperative", "competitive", "mixed"]] = ""
    #: the original and its papers, name -> address; those of base classes count as well
    links: ClassVar[Mapping[str, str]] = {}
    #: files that the game needs: levels, tables, weights; `tables` and other methods read them
    assets: ClassVar[Mapping[str, Asset]] = {}
    #: the games that `variants` declares: subclasses, with an id and a ``Config`` of their own
    variant_classes: ClassVar[tuple[type[EnvDef], ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.variants().items() if "variants" in vars(cls) else ()  # those of a base class are not this one's
        cls.variant_classes = tuple(_variant(cls, env_id, changes) for env_id, changes in own)
        for variant in cls.variant_classes:
            setattr(cls, variant.__name__, variant)  # where pickle looks for it

    @classmethod
    def variants(cls) -> dict[str, dict[str, Any]]:
        """More ids that this class declares, such as one for each map.

        Returns:
            id -> its different defaults: parameters, ``max_episode_steps``, ``reward_threshold``, ``reference``. If
            this is a literal, gpuzoo reads it without importing the game, so it starts faster. Subclasses do not
            inherit these ids.
        """
        return {}

    @staticmethod
    def config_of(name: str) -> dict[str, Any]:
        """The parameters that an alias of `aliases` stands for, if they differ from the defaults.

        Raises:
            ValueError: the name looks like an alias, but is not one.
        """
        return {}

    @classmethod
    def parameters_of(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """The parameters that a user means, where the original has options of other names or types.

        Raises:
            ValueError: an option that stands for no parameters.
        """
        return options

    def agents(self, cfg: Any) -> dict[str, int]:
        """Groups of agents, in order, with their sizes. A game with one agent does not override this.

        An agent's name is its group's with a number: ``runner_0``. In a group of one whose name ends in a number, such
        as ``agent_3``, the agent has the group's name.
        """
        return {"agent": 1}

    def lanes(self, cfg: Any) -> int:
        """Threads that work on one env on a GPU: a power of two from 1 to 1024."""
        return 1

    def observation_space(self, cfg: Any, group: str) -> spaces.Space[Any]:
        """Box, Discrete or MultiDiscrete space of one agent's observation, the same dtype for all groups.

        A bound of a Box may rise or fall with a run-time parameter. A batch's space holds for all of its envs.
        """
        raise NotImplementedError(f"{type(self).__name__} must define observation_space(cfg, group)")

    def state_space(self, cfg: Any) -> spaces.Box | None:
        """Space of the global state that the rules write in ``state``, or None for all observations together.

        A central critic and PettingZoo's ``state()`` read it.
        """
        return None

    def action_space(self, cfg: Any, group: str) -> spaces.Space[Any]:
        """Discrete, MultiDiscrete or bounded Box space of one agent's action, the same kind for all groups."""
        raise NotImplementedError(f"{type(self).__name__} must define action_space(cfg, group)")

    def observation_names(self, cfg: Any, group: str) -> Mapping[str, int]:
        """Names of the numbers of an observation, in order, for tables: name -> how many numbers it covers.

        The counts add up to the size of the observation. For a Box with several axes they may name its channels
        instead, and add up to the length of its last or first axis. Without names a table has only ranges.
        """
        return {}

    def action_names(self, cfg: Any, group: str) -> Mapping[str, int]:
        """Names of the actions of a Discrete space, or of the parts of an action: name -> how many it covers."""
        return {}

    def fields(self, cfg: Any) -> dict[str, Field]:
        """The state of one env, and the scratch arrays of its rules."""
        raise NotImplementedError(f"{type(self).__name__} must define fields(cfg)")

    def constants(self, cfg: Any) -> dict[str, int]:
        """Integers that follow from the configuration, compile-time constants of the rules under these names.

        They may also be sizes of fields: ``Field("int8", ("SHELVES", 2))``. Names are in upper case.
        """
        return {}

    def tables(self, cfg: Any) -> dict[str, NDArray[Any]]:
        """Constant arrays that all envs share. Rules read them with a flat index: ``e.name[k]``."""
        return {}

    def generated(self, cfg: Any) -> str:
        """Generated device code that comes before the rules, such as the equations of a robot's motion.

        It is in the namespace of the rules. The checker does not read it, so its generator must keep to the dialect.
        """
        return ""

    def infos(self, cfg: Any, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Infos about the state, for an interface with ``infos=True``: name -> (num_envs, ...).

        Args:
            cfg: the configuration.
            state: the fields of a batch by name, (num_envs, ...) each, as NumPy or CuPy arrays or torch tensors. Use
                operators only, which work on all three.
        """
        return {}

    def step_infos(self, cfg: Any, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Infos about the last step. An env that has just been reset has none."""
        return {}

    def check(self, cfg: Any) -> None:
        """Raises ValueError if values of the configuration do not fit together.

        If parameters are given per env, it is called with the values of each env, also before they change.
        """

    def aspect(self, cfg: Any) -> float:
        """Width of a picture divided by its height. Pictures are square by default."""
        return 1.0

    def side(self, cfg: Any) -> int:
        """Pixels of the longer side of a picture, unless another one is asked for."""
        return 480

    def render(self, cfg: Any, state: Mapping[str, NDArray[Any]], canvas: Any) -> None:
        """Draws one env onto a `gpuzoo.render.Canvas`.

        ``state`` holds the env's fields, ``elapsed_steps`` and ``alive``. Where agents have secrets, ``canvas.hides``
        says whose are not to be seen.
        """
        raise NotImplementedError(f"{type(self).__name__} does not draw itself")

    def presses(self, cfg: Any, state: Mapping[str, NDArray[Any]], action: int) -> Sequence[tuple[float, float] | str]:
        """Where a person presses on the picture of a board game for an action, in coordinates of the canvas' view.

        One point, or several in turn: a piece, and where it goes. A word at the end tells actions apart that have the
        same points, such as ``"queen"`` and ``"knight"``; the person is asked which one. Nothing for an action that has
        no place, such as a pass. A press means the nearest place within half a unit, which is half a cell of a board.
        Legal actions only are pressed, but any is asked for.
        """
        return []

    @classmethod
    def source(cls) -> Path:
        """The file with the rules: the module's own path with the suffix ``.cuh``."""
        return Path(inspect.getfile(cls)).with_suffix(".cuh")

    @classmethod
    def single(cls) -> bool:
        """Whether the game always has one agent (`agents` is not overridden)."""
        return cls.agents is EnvDef.agents

    @classmethod
    def module_name(cls) -> str:
        """The name in PettingZoo's style: ``SimpleSpread-v0`` is ``simple_spread_v0``."""
        words = re.findall(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z0-9]+", cls.id)
        return "_".join(words).lower()


def _variant(game: type[EnvDef], env_id: str, changes: Mapping[str, Any]) -> type[EnvDef]:
    """A subclass with another id and other defaults, as `EnvDef.variants` declares it."""
    owner = f"{game.__name__}.variants: {env_id}"
    if not hasattr(game, "id"):
        raise TypeError(f"{owner} is a variant of a class without an id: give {game.__name__} one.")
    if env_id == game.id:
        raise ValueError(f"{owner} is the id of {game.__name__} itself: choose another name or version.")
    return configured(game, env_id, changes, owner)


def configured(game: type[EnvDef], env_id: str, changes: Mapping[str, Any], owner: str) -> type[EnvDef]:
    """A subclass with an id and with other defaults.

    Args:
        game: the game.
        env_id: of the subclass.
        changes: parameters, and what else may differ (`VARIED`), by name.
        owner: what messages call it.

    Raises:
        TypeError, ValueError: no such parameter, or a value that it cannot have.
    """
    name = re.sub(r"\W", "_", env_id)
    kinds, fields = config_types(game.Config), {f.name: f for f in dataclasses.fields(game.Config)}
    varied = {key: value for key, value in changes.items() if key in VARIED}
    defaults = []
    for key in changes.keys() - varied.keys():
        if key not in fields:
            raise TypeError(unknown(f"{owner} has no parameter", key, [*fields, *VARIED]))
        value = _checked(owner, fields[key], kinds[key], changes[key])
        defaults.append((key, kinds[key], dataclasses.field(default=value, metadata=fields[key].metadata)))
    config = dataclasses.make_dataclass("Config", defaults, bases=(game.Config,), frozen=True)
    place = {"__module__": game.__module__, "__qualname__": f"{game.__qualname__}.{name}"}
    for key, value in place.items():
        setattr(config, key, value + (".Config" if key == "__qualname__" else ""))
    config.__doc__ = game.Config.__doc__
    differs = ", ".join(f"`{key}={value!r}`" for key, value in changes.items()) or "nothing changed"
    about = f"{inspect.cleandoc(game.__doc__ or '')}\n\n**This id.** {game.id} with {differs}."
    return type(name, (game,), {**place, **varied, "id": env_id, "Config": config, "benchmarks": {}, "__doc__": about})


# ---- configuration ----


_TYPES: dict[type[Config], dict[str, Any]] = {}


def config_types(config: type[Config]) -> dict[str, Any]:
    """Annotated type of each field of a ``Config``. The dictionary is shared: do not change it."""
    if config in _TYPES:
        return _TYPES[config]
    hints = typing.get_type_hints(config)
    return _TYPES.setdefault(config, {f.name: hints[f.name] for f in dataclasses.fields(config)})


def _checked(owner: str, field: dataclasses.Field[Any], kind: Any, value: Any) -> Any:
    name = f"{owner}: {field.name}"
    if typing.get_origin(kind) is Literal:
        choices = typing.get_args(kind)
        if value not in choices:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}.")
        return value
    if kind is bool:
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{name} must be a bool, not {value!r}.")
        return bool(value)
    if kind is int:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"{name} must be an int, not {value!r}.")
        value = int(value)
    elif kind is float:
        if isinstance(value, (bool, str)) or not np.isscalar(value) or not np.isreal(value):
            raise TypeError(f"{name} must be a float, not {value!r}.")
        value = float(typing.cast(float, value))
    elif kind is str:
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a str, not {value!r}.")
        return value
    else:
        raise TypeError(f"{name}: a Config holds int, bool, float and strings, not {kind!r}.")
    low, high = field.metadata.get("low"), field.metadata.get("high")
    finite = kind is int or abs(value) <= _LARGEST
    if not (low is None or value >= low) or not (high is None or value <= high) or not finite:
        bounds = [f"{word} {bound}" for word, bound in (("at least", low), ("at most", high)) if bound is not None]
        if not finite and len(bounds) < 2:
            bounds.append("finite in float32")
        raise ValueError(f"{name} must be {' and '.join(bounds)}, not {value!r}.")
    return value


def checked_value(env: EnvDef, name: str, value: Any) -> Any:
    """A value of a parameter, in the type of the parameter.

    Raises:
        TypeError: another type.
        ValueError: out of range, infinite or not a number.
    """
    field = next(f for f in dataclasses.fields(env.Config) if f.name == name)
    return _checked(env.id, field, config_types(env.Config)[name], value)


def checked_values(env: EnvDef, name: str, values: Any) -> NDArray[np.float32]:
    """Values of a float parameter as an array, each checked by itself.

    Raises:
        ValueError: one is out of range, infinite or not a number.
    """
    with np.errstate(over="ignore"):  # what overflows becomes infinite, which is refused
        array = np.asarray(values, np.float32)
    for bound in (array.min(), array.max()) if array.size else ():  # NaN is both
        checked_value(env, name, float(bound))
    return array


def check_ranges(env: EnvDef, cfg: Any) -> None:
    """Checks the ranges among the parameters, which are two numbers each: ``NAME_low`` and ``NAME_high``.

    Raises:
        ValueError: the lower one is above the other.
    """
    for name in env.Config.__dataclass_fields__:
        if name.endswith("_low"):
            low, high = getattr(cfg, name), getattr(cfg, other := f"{name.removesuffix('_low')}_high")
            if low > high:
                raise ValueError(f"{env.id}: {name} must not be above {other}: {low} > {high}.")


def check_relations(env: EnvDef, cfg: Config, per_env: PerEnv, check: Callable[[Config], object] | None = None) -> None:
    """Calls `EnvDef.check` with the configuration of each env.

    Envs that have the same values of all that `EnvDef.check` reads are checked once. Parameters that are drawn for each
    episode are checked at all combinations of their ends.

    Args:
        env: the game.
        cfg: the configuration; what it says of parameters given per env does not matter.
        per_env: those, (num_envs,) each, or drawn.
        check: what is called in place of `EnvDef.check`.

    Raises:
        ValueError: values do not fit together; the message names the first env concerned.
    """
    if check is None:
        if not per_env or type(env).check is EnvDef.check:
            return env.check(cfg)
        check = env.check
    drawn = {name: sorted({x.low, x.high}) for name, x in per_env.items() if isinstance(x, Uniform)}
    given = {name: x for name, x in per_env.items() if not isinstance(x, Uniform)}
    for corner in itertools.product(*drawn.values()):
        _check_each(check, dataclasses.replace(cfg, **dict(zip(drawn, corner, strict=True))), given)
    return None


def _check_each(check: Callable[[Config], object], cfg: Config, per_env: Mapping[str, NDArray[np.float32]]) -> None:
    if not per_env:
        check(cfg)
        return
    reads: set[str] = set()

    class Watched(type(cfg)):  # type: ignore[misc]
        def __getattribute__(self, name: str) -> Any:
            reads.add(name)
            return super().__getattribute__(name)

    def shortest(value: Any) -> Any:  # a number given for one env is equal to the same number given for all
        return float(str(np.float32(value))) if isinstance(value, (float, np.float32)) else value

    fixed = {f.name: shortest(getattr(cfg, f.name)) for f in dataclasses.fields(cfg) if f.name not in per_env}
    names: list[str] = []
    while True:
        unlike = np.unique(np.stack([per_env[n] for n in names], 1), axis=0, return_index=True)[1] if names else [0]
        for k in sorted(map(int, unlike)):
            try:
                check(Watched(**fixed, **{name: shortest(values[k]) for name, values in per_env.items()}))
            except ValueError as error:
                raise ValueError(f"env {k}: {error}") from error
        found = sorted(reads & per_env.keys())
        if found == names:
            return
        names = found


def split_config(env: EnvDef, num_envs: int, values: Mapping[str, Any]) -> tuple[Config, PerEnv]:
    """Checks configuration values and separates those that differ between envs.

    Returns:
        The configuration, in which a per-env parameter stands with its largest value, and the per-env parameters as
        float32 arrays of shape ``(num_envs,)``, or as what each episode draws from.

    Raises:
        TypeError: an unknown parameter, or a value of the wrong type.
        ValueError: a value out of range, a per-env array of the wrong length, or values that do not fit together in one
            of the envs.
    """
    kinds = config_types(env.Config)
    fields = env.Config.__dataclass_fields__
    plain: dict[str, Any] = {}
    per_env: dict[str, NDArray[np.float32] | Uniform] = {}
    for name, value in env.parameters_of(values).items():
        if name not in fields:
            raise TypeError(unknown(f"{env.id} has no parameter", name, fields))
        if isinstance(value, str) and ":" in value and kinds[name] in (int, float):
            value = Uniform.parse(value)
        if isinstance(value, Uniform):
            if kinds[name] is not float:
                raise TypeError(f"{env.id}: {name} is compiled into the kernel, so episodes cannot draw it.")
            checked_values(env, name, value.ends)
            per_env[name] = value
            value = value.high
        elif kinds[name] is float and hasattr(value, "__len__") and not isinstance(value, str):
            array = checked_values(env, name, value)
            if array.shape != (num_envs,):
                raise ValueError(f"{env.id}: {name} given per env must have shape ({num_envs},), not {array.shape}.")
            per_env[name] = array
            value = float(array.max())
        plain[name] = _checked(env.id, fields[name], kinds[name], value)
    cfg = env.Config(**plain)
    check_relations(env, cfg, per_env)
    return cfg, per_env


@dataclasses.dataclass(frozen=True, eq=False)
class Shapes:
    """Names, shapes and dtypes of the arrays of a batch. Equal only to itself."""

    names: tuple[str, ...]
    shapes: tuple[tuple[tuple[int, ...], str], ...]


def unknown(what: str, name: str, known: Any) -> str:
    """One sentence about a name that does not exist, with the names that are close to it."""
    import difflib

    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    if close:  # the best one first; others only if they are nearly as close
        ratios = [difflib.SequenceMatcher(None, name, other).ratio() for other in close]
        close = [other for other, ratio in zip(close, ratios, strict=True) if ratio > 0.7 * ratios[0]]
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"there are: {', '.join(known) or 'none'}."
    return f"{what} {name!r}; {hint}"


# ---- spaces ----


@dataclasses.dataclass(frozen=True)
class Layout:
    """How the spaces of all groups lie in one array per kind: the facts that code generation and adapters share.

    Attributes:
        groups: agents of each group, in order.
        first: index of each group's first agent.
        agents: number of agents of one env.
        observation_spaces: one agent's observation, by group.
        action_spaces: one agent's action, by group.
        observation_size: elements of the longest flat observation; shorter ones are padded with zeros.
        observation_dtype: dtype of all observations.
        action_size: elements of the longest flat action.
        action_dtype: int32, or float32 for Box actions.
        mask_size: entries of the longest action mask (0 without masks).
        state_space: of the game's own global state, or None.
    """

    groups: dict[str, int]
    first: dict[str, int]
    agents: int
    observation_spaces: dict[str, spaces.Space[Any]]
    action_spaces: dict[str, spaces.Space[Any]]
    observation_size: int
    observation_dtype: str
    action_size: int
    action_dtype: str
    mask_size: int
    state_space: spaces.Box | None

    def agent_names(self) -> list[str]:
        """Names as PettingZoo wants them: ``tagger_0``, ``tagger_1``, ``runner_0``."""
        own = {group for group, count in self.groups.items() if count == 1 and _NUMBERED.search(group)}
        names = ([g] if g in own else [f"{g}_{k}" for k in range(n)] for g, n in self.groups.items())
        return [name for of_group in names for name in of_group]

    def group_of(self, agent: int) -> str:
        """The group of the agent with this index."""
        return next(g for g, n in self.groups.items() if self.first[g] <= agent < self.first[g] + n)


def choices(space: spaces.Space[Any]) -> list[int]:
    """Number of choices of each component of a Discrete or MultiDiscrete space; empty for a Box."""
    if isinstance(space, spaces.Discrete):
        return [int(space.n)]
    if isinstance(space, spaces.MultiDiscrete):
        return [int(n) for n in np.ravel(space.nvec)]
    return []


def flat_size(space: spaces.Space[Any]) -> int:
    """Elements of one sample: 1 for a Discrete space."""
    return math.prod(space.shape or ())


def _in_32_bits(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """A MultiDiscrete space of int32, the dtype of such observations: PettingZoo's tests want the space's own."""
    if isinstance(space, spaces.MultiDiscrete) and space.dtype != np.int32:
        return spaces.MultiDiscrete(space.nvec, dtype=np.int32, start=space.start)
    return space


def layout(env: EnvDef, cfg: Config) -> Layout:
    """Derives the layout of the arrays from the declared agents and spaces, and checks the declaration.

    Raises:
        ValueError: a declaration that breaks a rule of `EnvDef`, with the rule.
    """
    name = type(env).__name__
    groups = env.agents(cfg)
    for group, count in groups.items():
        if not _NAME.match(group) or count < 1:
            raise ValueError(f"{name}: group {group!r} with {count} agents: want a lower-case name and at least one.")
    observation_spaces = {g: _in_32_bits(env.observation_space(cfg, g)) for g in groups}
    action_spaces = {g: env.action_space(cfg, g) for g in groups}
    dtypes, kinds = set(), set()
    for space in observation_spaces.values():
        if not isinstance(space, (spaces.Box, spaces.Discrete, spaces.MultiDiscrete)):
            raise ValueError(f"{name}: observations must be Box, Discrete or MultiDiscrete, not {space}.")
        dtypes.add(str(space.dtype) if isinstance(space, spaces.Box) else "int32")
    for space in action_spaces.values():
        if isinstance(space, spaces.Box):
            if not space.is_bounded():
                raise ValueError(f"{name}: a Box action space must be bounded, {space} is not.")
            kinds.add("float32")
        elif isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
            if np.any(getattr(space, "start", 0)):
                raise ValueError(f"{name}: a Discrete action space must start at 0.")
            kinds.add("int32")
        else:
            raise ValueError(f"{name}: actions must be Discrete, MultiDiscrete or Box, not {space}.")
    if len(dtypes) != 1 or not dtypes <= set(C_TYPES):
        raise ValueError(f"{name}: all observations must share one dtype of {', '.join(C_TYPES)}, not {dtypes}.")
    if len(kinds) != 1:
        raise ValueError(f"{name}: the actions of all groups must be discrete, or those of all groups continuous.")
    first, total = {}, 0
    for group, count in groups.items():
        first[group] = total
        total += count
    state = env.state_space(cfg)
    if state is not None and (not isinstance(state, spaces.Box) or str(state.dtype) not in C_TYPES):
        raise ValueError(f"{name}: state_space must be a Box of {', '.join(C_TYPES)}, or None, not {state}.")
    if env.action_mask and kinds != {"int32"}:
        raise ValueError(f"{name}: action masks need discrete actions.")
    if env.chooses and not env.action_mask:
        raise ValueError(f"{name}: only games with action masks choose actions by rules.")
    lay = Layout(
        groups=dict(groups),
        first=first,
        agents=total,
        observation_spaces=observation_spaces,
        action_spaces=action_spaces,
        observation_size=max(1, *(flat_size(s) for s in observation_spaces.values())),
        observation_dtype=dtypes.pop(),
        action_size=max(1, *(flat_size(s) for s in action_spaces.values())),
        action_dtype=kinds.pop(),
        mask_size=max(sum(choices(s)) for s in action_spaces.values()) if env.action_mask else 0,
        state_space=state,
    )
    names = lay.agent_names()
    if len({*names}) < total:
        raise ValueError(f"{name}: two agents would have the same name: {', '.join(names)}.")
    return lay


def resolve_constants(env: EnvDef, cfg: Config) -> dict[str, int]:
    """The game's own constants.

    Raises:
        ValueError: a bad name, or a value that is no 32-bit integer.
    """
    out = env.constants(cfg)
    for name, value in out.items():
        if not _CONSTANT.match(name):
            raise ValueError(f"{type(env).__name__}: the name of the constant {name!r} must be upper-case.")
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or abs(value) >= 2**31:
            raise ValueError(f"{type(env).__name__}: the constant {name} must be a 32-bit integer, not {value!r}.")
    return {name: int(value) for name, value in out.items()}


def resolve_fields(env: EnvDef, cfg: Config, lay: Layout) -> dict[str, Field]:
    """The fields with numbers for the names of sizes.

    Raises:
        ValueError: a bad name, or a size that does not exist.
    """
    sizes = {f"{g}s": n for g, n in lay.groups.items()} | {"agents": lay.agents}  # all, where a group is called agent
    sizes |= {n: getattr(cfg, n) for n, kind in config_types(env.Config).items() if kind is int}
    sizes |= resolve_constants(env, cfg)
    out = {}
    for name, field in env.fields(cfg).items():
        if not _NAME.match(name):
            raise ValueError(f"{type(env).__name__}: field name {name!r} must be lower-case.")
        shape = []
        for dim in field.shape:
            if isinstance(dim, str) and dim not in sizes:
                raise ValueError(unknown(f"{type(env).__name__}: field {name} has no size", dim, sizes))
            shape.append(sizes[dim] if isinstance(dim, str) else int(dim))
        out[name] = dataclasses.replace(field, shape=tuple(shape))
    return out


_CHECKED: set[type[EnvDef]] = set()


def check_class(env: EnvDef) -> None:
    """Checks what does not depend on a configuration.

    Raises:
        TypeError: not a declaration.
        ValueError: a bad id, a Config that is not a frozen dataclass, a missing rules file, or no reference.
    """
    if not isinstance(env, EnvDef):
        raise TypeError(f"a game must be an EnvDef or a subclass of it, not {env!r}: gpuzoo.get gives that of an id.")
    cls = type(env)
    if cls in _CHECKED:
        return
    if not ID.match(getattr(cls, "id", "")):
        raise ValueError(f"{cls.__name__}.id must look like 'Name-v0', not {getattr(cls, 'id', None)!r}.")
    if not (dataclasses.is_dataclass(cls.Config) and issubclass(cls.Config, Config)):
        raise ValueError(f"{cls.__name__}.Config must be a frozen dataclass derived from gpuzoo.Config.")
    if not cls.source().is_file():
        raise ValueError(f"{cls.__name__}: the rules are missing: no file {cls.source()}.")
    if not cls.reference and "reference" not in cls.exempt:
        raise ValueError(f"{cls.__name__} must name its reference, or say in `exempt` why it has none.")
    _CHECKED.add(cls)
