"""Games about models of one's own: ``gpuzoo.from_mjcf``."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.mujoco.robot import ModelConfig, Robot, check_actuators, varied, vary_text
from gpuzoo.physics.generate import generate
from gpuzoo.physics.mjcf import read
from gpuzoo.physics.model import Model
from gpuzoo.physics.watched import sizes_of

_HERE = Path(__file__).parent
_CHOSEN = re.compile(r"(?P<what>\w+( [\w-]+)?)(\[(?P<first>-?\d*):(?P<last>-?\d*)\])?")

#: words for rules, of which ``//KEEP``, ``//START``, ``//NONE`` and ``//SEE`` are the model's own part
_WORDS = """
template <class E> GZ void keep(const E &e, const Physics &s, PackMask anew) {
  (void)e, (void)s, (void)anew;
//KEEP
}
template <class E> GZ void rest(const E &e) {
  set_positions(e, e.cfg.reset_noise_scale);
  set_normal_velocities(e, e.cfg.reset_noise_scale);
//START
  Physics s = physics_of(e);
//NONE
  physics_look(s);
  keep(e, s, true);
}
template <class E> GZ Physics move(const E &e) {
  const Physics s = simulate(e, e.cfg.frame_skip);
  keep(e, s, !e.diverged);
  e.reward = 0.f;
  e.terminated = e.diverged;
  return s;
}
template <class E> GZ void see(const E &e) {
//SEE
}
"""


#: fields of every robot's state
_STATE = {"qpos", "qvel", "qacc", "diverged"}


@dataclasses.dataclass(frozen=True)
class OwnConfig(ModelConfig):
    """Options that every model has."""

    frame_skip: int = param(1, low=1, doc="steps of time for each step of the env")
    reset_noise_scale: float = param(0.0, low=0.0, doc="noise of the first state")


@dataclasses.dataclass(frozen=True)
class _Seen:
    """A quantity that is observed: a field, and which of its numbers."""

    field: str
    first: int
    last: int


class Own(Robot):
    """What games about models of one's own have in common."""

    constants_: Model
    mjcf_: str | Path | None
    rules: Path
    seen: tuple[_Seen, ...]
    own_fields: Mapping[str, Field]
    start: NDArray[np.float32]
    #: the text by what is randomized
    texts: dict[tuple[str, ...], str]

    @classmethod
    def shipped(cls) -> Model:
        return cls.constants_

    def xml(self, cfg: Any) -> Path | None:
        return None

    def mjcf(self, cfg: Any) -> tuple[str | Path, str | None] | None:
        return None if self.mjcf_ is None else (self.mjcf_, None)

    @classmethod
    def source(cls) -> Path:
        return cls.rules

    def generated(self, cfg: Any) -> str:
        vary = varied(cfg)
        if vary not in self.texts:
            self.texts[vary] = _text(self.constants_, self.watch, self.own_fields, self.seen, vary)
        return self.texts[vary]

    def fields(self, cfg: Any) -> dict[str, Field]:
        return {**super().fields(cfg), **self.own_fields}

    def tables(self, cfg: Any) -> dict[str, NDArray[Any]]:
        return {"qpos0": self.start}

    def observation_space(self, cfg: Any, group: str) -> spaces.Box:
        return spaces.Box(-np.inf, np.inf, (sum(s.last - s.first for s in self.seen),), np.float32)

    def observation_names(self, cfg: Any, group: str) -> dict[str, int]:
        return {f"{s.field}[{s.first}:{s.last}]": s.last - s.first for s in self.seen}


def _text(
    m: Model,
    watch: tuple[str, ...],
    own_fields: Mapping[str, Field],
    seen: Iterable[_Seen],
    vary: tuple[str, ...] = (),
) -> str:
    """What stands in front of the rules: the model's step, and words for rules."""
    keep, zero, none, see = [], [], [], []
    for words in watch:
        name = words.replace(" ", "_")
        size = own_fields[name].sizes[0]
        none.append(f"  for (int k = 0; k < {size}; ++k) s.{name}[k] = vec(0.f);")
        keep.append(f"  for (int k = 0; k < {size}; ++k) e.{name}[k] = select(anew, Pack(s.{name}[k]), e.{name}[k]);")
    for name, field in own_fields.items():
        zero.append(f"  for (int k = 0; k < {field.sizes[0]}; ++k) e.{name}[k] = 0.f;")
    column = 0
    for s in seen:
        see.append(
            f"  for (int k = {s.first}; k < {s.last}; ++k) e.observation[{column - s.first} + k] = e.{s.field}[k];"
        )
        column += s.last - s.first
    words = _WORDS.replace("//KEEP", "\n".join(keep)).replace("//START", "\n".join(zero))
    words = words.replace("//NONE", "\n".join(none)).replace("//SEE", "\n".join(see))
    return generate(m, watch, True, vary) + vary_text(vary) + (_HERE / "mujoco.cuh").read_text(encoding="utf-8") + words


def from_mjcf(
    model: str | Path | Model,
    rules: str | Path | None = None,
    *,
    id: str | None = None,
    observe: Sequence[str] = ("qpos", "qvel"),
    watch: Sequence[str] = (),
    parameters: Mapping[str, bool | int | float] | None = None,
    fields: Mapping[str, int] | None = None,
    qpos: ArrayLike | None = None,
    frame_skip: int = 1,
    reset_noise_scale: float = 0.0,
    max_episode_steps: int | None = 1000,
    view_height: float = 2.0,
    view_above: bool = False,
) -> type[Robot]:
    """Makes a game from your own model, for `gpuzoo.make_vec`, `gpuzoo.Simulator` and all else that takes a game.

    The actions are the controls, within their ranges. Without ``rules`` the reward is 0, and an episode ends if the
    state diverges.

    Args:
        model: an MJCF file (``robot.xml``) or its text, which need the package ``mujoco``; or a file of constants
            (``robot.json``, as ``python -m gpuzoo.physics.mjcf`` writes it), or the constants.
        rules: a file with ``reset``, ``step`` and ``observe``; see docs/physics.md.
        id: of the game, ``Name-vN``; by default it follows from the file's name.
        observe: the parts of the observation, in order: ``"qpos"``, ``"qvel[2:5]"``, ``"xpos torso"``, ``"site_xpos
            tip"``, ``"qfrc_constraint knee"``, ``"cfrc_ext"``, or one of ``fields``. After a reset, only positions are
            known; velocities of bodies and forces are 0 until the first step, as in MuJoCo.
        watch: more such quantities, for the rules only.
        parameters: of the rules, with their defaults, as ``e.cfg.name``. Floats can be changed at run time.
        fields: numbers that the rules keep for each env, name -> how many. They begin as zero.
        qpos: the position at the beginning of an episode; by default the model's own.
        frame_skip: time steps per step of the env.
        reset_noise_scale: scale of the noise at the beginning: uniform in positions, normal in velocities.
        max_episode_steps: time limit, or None.
        view_height: metres from top to bottom of a picture.
        view_above: whether pictures are from above instead of from the side.

    Returns:
        The declaration of the game.

    Raises:
        ImportError: MJCF is given, and the package ``mujoco`` is not installed.
        ValueError: the model uses something that is not supported, or an argument does not fit; the message names it.
    """
    found = read(model)
    text = isinstance(model, Model) or str(model).lstrip().startswith("<")
    stem = (
        "Robot" if text else "".join(part[:1].upper() + part[1:] for part in re.split(r"\W+|_", Path(str(model)).stem))
    )
    check_actuators(found)
    sizes = sizes_of(found)
    taken = {"fields": _STATE, "parameters": {f.name for f in dataclasses.fields(OwnConfig)}}
    for what, given in (("fields", fields or {}), ("parameters", parameters or {})):
        for name in given:
            if name in taken[what]:
                raise ValueError(f"{what} cannot be called {name!r}: every model has one of that name.")
    if frame_skip < 1:
        raise ValueError(f"frame_skip must be at least 1, not {frame_skip}.")
    own = {name: Field("float32", (count,), "of the rules") for name, count in (fields or {}).items()}
    wanted = [m["what"] for m in map(_CHOSEN.fullmatch, observe) if m]
    watched = [words for words in (*wanted, *watch) if words.split()[0] in sizes]
    for words in watch:
        if words not in watched:
            raise ValueError(f"{words!r} cannot be watched: {', '.join(sizes)} can.")
    unique = tuple(dict.fromkeys(watched))
    for words in unique:
        doc = "a quantity of the model, as of the last evaluation of the dynamics"
        own[words.replace(" ", "_")] = Field("float32", (sizes[words.split()[0]],), doc)
    lengths = {"qpos": found.nq, "qvel": found.nv, "qacc": found.nv}
    lengths |= {name: int(field.sizes[0]) for name, field in own.items()}
    options = [
        (name, type(default), param(default, doc="of the rules")) for name, default in (parameters or {}).items()
    ]
    defaults = [
        ("frame_skip", int, param(frame_skip, low=1, doc="steps of time for each step of the env")),
        ("reset_noise_scale", float, param(float(reset_noise_scale), low=0.0, doc="noise of the first state")),
    ]
    config = dataclasses.make_dataclass("Config", [*defaults, *options], bases=(OwnConfig,), frozen=True)
    start = found.qpos0 if qpos is None else np.asarray(qpos, np.float64)
    if start.shape != (found.nq,):
        raise ValueError(f"qpos has the shape {start.shape}, but the model has {found.nq} positions.")
    seen = tuple(_seen(words, lengths) for words in observe)
    members = {
        "__doc__": f"A model of one's own: {found.source}.",
        "id": id or f"{stem}-v0",
        "Config": config,
        "max_episode_steps": max_episode_steps,
        "constants_": found,
        "mjcf_": None if isinstance(model, Model) or str(model).endswith(".json") else model,
        "rules": _HERE / "own.cuh" if rules is None else Path(rules).resolve(),
        "watch": unique,
        "seen": seen,
        "own_fields": own,
        "start": start.astype(np.float32),
        "texts": {(): _text(found, unique, own, seen)},
        "view_height": view_height,
        "view_above": view_above,
        "exempt": {**Robot.exempt, "reference": "a model of one's own"},
    }
    return type("Own", (Own,), members)


def _seen(words: str, lengths: Mapping[str, int]) -> _Seen:
    match = _CHOSEN.fullmatch(words)
    name = match["what"].replace(" ", "_") if match else words
    if match is None or name not in lengths:
        raise ValueError(f"{words!r} cannot be observed; there are: {', '.join(lengths)}.")
    first, last, _ = slice(*(int(x) if x else None for x in (match["first"], match["last"]))).indices(lengths[name])
    if last <= first:
        raise ValueError(f"{words!r} has no numbers: {name} has {lengths[name]}.")
    return _Seen(name, first, last)
