"""The declaration of a game: what its author writes in Python.

A game is two files in a folder of its own. ``<name>.py`` holds a subclass of `EnvDef`, which declares the id, the
configuration, the agents, the spaces and the state; ``<name>.cuh`` holds the rules. Everything else (arrays, kernels,
interfaces, tests, documentation) follows from the declaration.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from gpuzoo.core.assets import Asset
from gpuzoo.core.variants import variant_of

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

#: what ids look like
ID = re.compile(r"^[A-Z][A-Za-z0-9-]*-v\d+$")


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


@dataclasses.dataclass(frozen=True)
class Entities:
    """Things of one kind that an agent observes and chooses between, such as cities: an action each, or equally many.

    Networks that treat all of them alike (``encoder="set"`` of the bundled trainers) learn of all what one teaches.
    The flat observation begins with what describes them, as arrays one after the other.

    Args:
        count: how many there are.
        widths: numbers of each entity in each of the arrays: (2, 1) for the places of all, then the demands of all.
        pointers: indices of numbers that say which entity is meant, such as the last city. Other values than the index
            of an entity mean none.
        listed: indices of numbers that list entities, such as the visited cities.
        partners: things of another kind of which an action takes one, too, such as the items for the spaces of a bin.
            Action ``a`` is entity ``a // partners.count`` with partner ``a % partners.count``. What describes the
            partners comes behind what describes the entities; nothing points at them or lists them.

    Raises:
        ValueError: partners with pointers, lists or partners of their own.
    """

    count: int
    widths: tuple[int, ...]
    pointers: tuple[int, ...] = ()
    listed: tuple[int, ...] = ()
    partners: Entities | None = None

    def __post_init__(self) -> None:
        others = self.partners
        if others is not None and (others.pointers or others.listed or others.partners):
            raise ValueError("Entities: partners must have no pointers, lists or partners of their own.")

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Entities:
        """The entities of which ``dataclasses.asdict`` made a dictionary, also one that JSON has kept.

        Raises:
            KeyError, TypeError, ValueError: it is none.
        """
        widths, pointers, listed = (tuple(map(int, fields[name])) for name in ("widths", "pointers", "listed"))
        partners = fields.get("partners")
        return cls(int(fields["count"]), widths, pointers, listed, None if partners is None else cls.of(partners))

    @property
    def columns(self) -> NDArray[np.int64]:
        """(count, numbers of each), indices of the numbers that describe each entity."""
        ends = self.count * np.cumsum((0, *self.widths))
        arrays = [np.arange(a, b).reshape(self.count, -1) for a, b in itertools.pairwise(ends)]
        return np.concatenate(arrays, 1)

    @property
    def partner_columns(self) -> NDArray[np.int64]:
        """The same of the partners; (0, 0) without any."""
        return np.empty((0, 0), np.int64) if self.partners is None else self.columns.size + self.partners.columns

    @property
    def described(self) -> int:
        """How many numbers describe entities and partners."""
        partners = 0 if self.partners is None else self.partners.described
        return self.count * sum(self.widths) + partners

    def context(self, size: int) -> NDArray[np.int64]:
        """Indices of the other numbers of an observation of ``size`` numbers."""
        return np.setdiff1d(np.arange(self.described, size), [*self.pointers, *self.listed])

    def told(self, size: int) -> tuple[Any, ...]:
        """What does not depend on how many there are: two games of equal ones can have the same network."""
        widths = self.widths, () if self.partners is None else self.partners.widths
        return *widths, len(self.pointers), bool(self.listed), len(self.context(size))

    def alike(self, size: int) -> NDArray[np.int64]:
        """For each number of an observation, (size,): equal where it says the same of another entity; 0 for indices."""
        out, known = np.zeros(size, np.int64), 1
        for columns in (self.columns, self.partner_columns, self.context(size)[None]):
            out[columns] = known + np.arange(columns.shape[1])
            known += columns.shape[1]
        return out


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
    #: whether a CPU writes the observations of several agents in a loop over envs of their own, behind the steps of a
    #: tile of envs. Results do not depend on it, and speed does: try both with `gpuzoo bench`.
    observes_apart: ClassVar[bool] = False
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
    #: a program that plays well, ``"module:function"`` or ``"module:Class"``: see "Imitation" in docs/training.md
    expert: ClassVar[str] = ""
    #: files that the game needs: levels, tables, weights; `tables` and other methods read them
    assets: ClassVar[Mapping[str, Asset]] = {}
    #: the games that `variants` declares: subclasses, with an id and a ``Config`` of their own
    variant_classes: ClassVar[tuple[type[EnvDef], ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.variants().items() if "variants" in vars(cls) else ()  # those of a base class are not this one's
        cls.variant_classes = tuple(variant_of(cls, env_id, changes) for env_id, changes in own)
        for variant in cls.variant_classes:
            setattr(cls, variant.__name__, variant)  # where pickle looks for it

    @classmethod
    def variants(cls) -> dict[str, dict[str, Any]]:
        """More ids that this class declares, such as one for each map.

        Returns:
            id -> its different defaults: parameters, ``max_episode_steps``, ``reward_threshold``, ``reference``,
            ``render_fps``. If this is a literal, gpuzoo reads it without importing the game, so it starts faster.
            Subclasses do not inherit these ids.
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

    def entities(self, cfg: Any, group: str) -> Entities | None:
        """What an agent observes and chooses between, for networks to which the order of entities means nothing."""
        return None

    def action_cells(self, cfg: Any, group: str) -> tuple[ArrayLike, ArrayLike] | None:
        """Where actions lie on the board that is observed, for networks that say of each cell what to do there.

        For each action of a Discrete space the cell, counted row by row in an observation (rows, columns) or (rows,
        columns, channels), or -1 for actions without one, such as a pass; and the kind of the action, from 0, or one
        kind for all. No two actions have the same cell and kind.
        """
        return None

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
                operators only, which work on all three. Quotients of integers become float32 for all of them.
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
