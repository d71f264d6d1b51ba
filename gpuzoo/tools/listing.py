"""What ``gpuzoo list`` shows. It is remembered on disk, as importing 200 games for their spaces takes half a second."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

import gpuzoo
from gpuzoo import registry
from gpuzoo.core.cache import cache_root
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.files import replacing
from gpuzoo.core.layout import choices, layout

PACKAGE = Path(gpuzoo.__file__).parent


def brief(space: spaces.Space[Any]) -> str:
    """A space in a few characters: ``Box(4)``, ``Box(8x8x3, uint8)``, ``Discrete(2)``, ``MultiDiscrete(21, 21)``."""
    if isinstance(space, spaces.Box):
        shape = "x".join(map(str, space.shape)) or "1"
        return f"Box({shape})" if str(space.dtype) == "float32" else f"Box({shape}, {space.dtype})"
    sizes = choices(space)
    if len(sizes) > 3 and len(set(sizes)) == 1:
        return f"MultiDiscrete({len(sizes)} x {sizes[0]})"
    return f"{type(space).__name__}({', '.join(map(str, sizes))})"


def plural(name: str) -> str:
    """English plural of a group's name."""
    if name.endswith(("s", "deer", "melee", "prey", "ranged", "sheep")):
        return name
    return re.sub(r"([^aeiou])y$", r"\1ie", name) + "s"


def agents_text(groups: Mapping[str, int]) -> str:
    """Groups of agents with their numbers: ``1 agent``, ``3 taggers, 1 runner``."""
    if len(groups) > 1 and set(groups.values()) == {1} and all(re.search(r"_\d+$", group) for group in groups):
        return f"{len(groups)} agents"  # each has a group of its own
    return ", ".join(f"{count} {name if count == 1 else plural(name)}" for name, count in groups.items())


def first_sentence(doc: str | None) -> str:
    """The first sentence of a docstring, on one line and without markup."""
    paragraph = " ".join((doc or "").strip().split("\n\n")[0].split()).replace("**", "").replace("`", "")
    found = re.match(r".+?[.!?](?=\s+[A-Z]|$)", paragraph)
    return found.group() if found else paragraph


def described(env: EnvDef) -> dict[str, Any]:
    """What ``gpuzoo list`` says of a game with default parameters."""
    lay = layout(env, env.Config())
    return {
        "id": env.id,
        "agents": dict(lay.groups),
        "observation": {g: brief(s) for g, s in lay.observation_spaces.items()},
        "action": {g: brief(s) for g, s in lay.action_spaces.items()},
        "action_mask": env.action_mask,
        "turn_based": env.turn is not None,
        "max_episode_steps": env.max_episode_steps,
        "reference": env.reference,
        "description": first_sentence(type(env).__doc__),
    }


def _stamp() -> list[Any]:
    """What the listing depends on: the declarations, the engine, and the libraries that spaces come from."""
    files = sorted([*(PACKAGE / "envs").rglob("*.py"), *(PACKAGE / "core").glob("*.py"), Path(__file__)])
    stats = [(str(path), path.stat()) for path in files]
    return [gymnasium.__version__, np.__version__, [[name, s.st_mtime_ns, s.st_size] for name, s in stats]]


def games() -> list[dict[str, Any]]:
    """What is said of each game, in the order of their ids. Games from outside of the collection are looked at anew."""
    ids = registry.ids()
    known = _remembered([env_id for env_id in ids if registry.module_of(env_id).startswith("gpuzoo.envs.")])
    return [known[env_id] if env_id in known else described(registry.get(env_id)) for env_id in ids]


def _remembered(ids: list[str]) -> dict[str, dict[str, Any]]:
    """What is said of the games of the collection, by id."""
    stamp = json.loads(json.dumps(_stamp()))
    file = cache_root() / "registry" / "listing.json"
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):  # none yet, or damaged
        kept = json.loads(file.read_bytes())
        if kept["stamp"] == stamp and [*kept["games"]] == ids:
            return dict(kept["games"])
    found = {env_id: described(registry.get(env_id)) for env_id in ids}
    with contextlib.suppress(OSError), replacing(file) as part:
        part.write(json.dumps({"stamp": stamp, "games": found}).encode())
    return found
