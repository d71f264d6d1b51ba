"""Writes a page for each registered game, with an animation, and the pages that list them.

Pretrained agents play in the animation; where a game has none, actions are random.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import inspect
import itertools
import math
import re
import typing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import gen_results
import numpy as np
from gymnasium import spaces
from markdown_text import number, table, write

import gpuzoo
from baselines.report import match, video
from baselines.train.command import PRETRAINED
from gpuzoo import render
from gpuzoo.core.codegen import program
from gpuzoo.core.definition import EnvDef, config_types, layout
from gpuzoo.core.dialect import inline_includes

ROOT = Path(__file__).parents[1]
SECONDS, TRAINED_SECONDS, MAX_FPS, PIXELS = 3, 4, 20, 300


def space_text(space: spaces.Space[Any]) -> str:
    """A space in one line."""
    if isinstance(space, spaces.Discrete):
        return f"Discrete({space.n})"
    if isinstance(space, spaces.MultiDiscrete):
        nvec = np.ravel(space.nvec).tolist()
        same = len(set(nvec)) == 1 and len(nvec) > 3
        return f"MultiDiscrete([{nvec[0]}] * {len(nvec)})" if same else f"MultiDiscrete({nvec})"
    assert isinstance(space, spaces.Box)
    low, high = (number(float(x)) for x in (np.min(space.low), np.max(space.high)))
    return f"Box({', '.join(map(str, space.shape))}) {space.dtype}, {low} to {high}"


def groups_text(env: EnvDef) -> str:
    """Groups of agents with their numbers."""
    if env.single():
        return "1"
    groups = env.agents(env.Config())
    return ", ".join(f"{count} {name if count == 1 else plural(name)}" for name, count in groups.items())


def plural(name: str) -> str:
    """English plural of a group's name."""
    return name if name.endswith(("s", "sheep")) else re.sub(r"([^aeiou])y$", r"\1ie", name) + "s"


def by_group(values: dict[str, str]) -> str:
    """One text per group, or one for all if they agree."""
    if len(set(values.values())) == 1:
        return f"`{next(iter(values.values()))}`"
    return "; ".join(f"{group}: `{text}`" for group, text in values.items())


def summary(env: EnvDef) -> str:
    """The first sentence of the docstring."""
    text = inspect.cleandoc(env.__doc__ or "").split("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=[.!?])\s", text)[0]


def families() -> dict[str, list[str]]:
    """Ids by the folder that they lie in."""
    found: dict[str, list[str]] = {}
    for name in gpuzoo.ids():
        found.setdefault(type(gpuzoo.get(name)).source().parent.name, []).append(name)
    return found


def about(folder: str) -> str:
    """The docstring of a folder, which a family of games has; a folder without is not a family."""
    return inspect.cleandoc(importlib.import_module(f"gpuzoo.envs.{folder}").__doc__ or "").replace("\n", " ")


def games_table(names: typing.Iterable[str]) -> str:
    """Games with their agents and actions, for the page that lists them."""
    rows = []
    for name in names:
        env = gpuzoo.get(name)
        lay = layout(env, env.Config())
        actions = by_group({g: space_text(s) for g, s in lay.action_spaces.items()})
        rows.append([f"[{name}]({name}.md)", groups_text(env), actions, summary(env)])
    return table(["game", "agents", "actions", "what it is about"], rows)


# ---- a game's page ----


def _facts(env: EnvDef) -> str:
    cfg = env.Config()
    lay = layout(env, cfg)
    rows = [
        ["Gymnasium, PettingZoo id", f"`gpuzoo/{env.id}`"],
        ["agents", groups_text(env)],
        ["observation", by_group({g: space_text(s) for g, s in lay.observation_spaces.items()})],
        ["action", by_group({g: space_text(s) for g, s in lay.action_spaces.items()})],
        ["action mask", f"{lay.mask_size} entries" if env.action_mask else "none"],
        [
            "an illegal action counts as",
            f"{env.invalid_action}" + ("" if lay.action_dtype == "int32" else " (NaN; the rest is clamped)"),
        ],
        ["acting", "all at once" if env.turn is None else f"in turns, field `{env.turn}` says who"],
        ["time limit", "none" if env.max_episode_steps is None else f"{env.max_episode_steps} steps"],
        ["lanes", f"{env.lanes(cfg)} per env on a GPU"],
        ["checked against", env.reference or f"no reference: {env.exempt['reference']}"],
    ]
    if env.single():
        rows[1][1] = "1 (single-agent)"
    if env.reward_threshold is not None:
        rows.append(["counts as solved at a return of", number(float(env.reward_threshold))])
    for test, reason in env.exempt.items():
        if test != "reference":
            rows.append([f"exempt from the test `{test}`", reason])
    return table(["", ""], rows)


def _parameters(env: EnvDef) -> str:
    kinds, rows = config_types(env.Config), []
    for field in dataclasses.fields(env.Config):
        kind, meta = kinds[field.name], field.metadata
        if typing.get_origin(kind) is Literal:
            kind_text, span = "choice", ", ".join(f'`"{o}"`' for o in typing.get_args(kind))
        else:
            low, high = (number(meta[k]) if meta.get(k) is not None else "" for k in ("low", "high"))
            kind_text, span = kind.__name__, f"{low} to {high}" if low and high else low and f"from {low}"
            span = span or (high and f"to {high}")
        default = f'"{field.default}"' if isinstance(field.default, str) else number(field.default)
        rows.append([f"`{field.name}`", kind_text, f"`{default}`", span, meta.get("doc", "")])
    if not rows:
        return "None."
    return table(["name", "type", "default", "range", "meaning"], rows) + (
        "\n\nA `float` may be changed between steps and may differ from env to env. The others are compiled in."
    )


def _state(env: EnvDef) -> str:
    rows = []
    for name, field in env.fields(env.Config()).items():
        if field.scratch:
            continue
        shape = "one value" if field.shape == () else " by ".join(map(str, field.shape))
        rows.append([f"`{name}`", field.dtype, shape, field.doc])
    return table(["field", "dtype", "shape", "meaning"], rows)


def _usage(env: EnvDef) -> str:
    lines = ["import gymnasium", "import gpuzoo", ""]
    if env.single():
        lines += [f'env = gymnasium.make("gpuzoo/{env.id}")  # one env']
    elif env.turn is None:
        lines += [f'env = gpuzoo.parallel_env("{env.id}")  # one env, PettingZoo parallel']
    else:
        lines += [f'env = gpuzoo.aec_env("{env.id}")  # one env, PettingZoo AEC']
    lines += [
        f'envs = gpuzoo.make("{env.id}", num_envs=1024)  # a batch, arrays by group',
        f'rows = gpuzoo.make_vec("{env.id}", num_worlds=1024)  # a batch as gymnasium.vector.VectorEnv',
    ]
    if not env.single():
        lines.append(f"from gpuzoo.envs import {env.module_name()}  # PettingZoo's habit")
        lines.remove("import gymnasium")
    return "```python\n" + "\n".join(lines) + "\n```"


def _rules(env: EnvDef, page: Path) -> str:
    files = list(dict.fromkeys(piece.path for piece in inline_includes(env.source())))
    out = []
    for path in files:
        target = path if not path.is_relative_to(ROOT) else Path("../..") / path.relative_to(ROOT)
        out.append(
            f"<details>\n<summary>{path.name} ({len(path.read_text().splitlines())} lines)</summary>\n\n"
            f"```{{literalinclude}} {target}\n:language: cpp\n```\n\n</details>"
        )
    return "\n\n".join(out)


def _page(env: EnvDef, picture: str, results: str, folder: Path) -> str:
    parts = [f"# {env.id}"]
    if picture:
        players = "pretrained agents" if gen_results.pretrained(env.id) else "random actions"
        parts.append(f"![{env.id} with {players}]({picture}){{width={PIXELS}px}}")
    parts += [
        inspect.cleandoc(env.__doc__ or ""),
        "## Facts",
        _facts(env),
        "With the default parameters.",
        "## Parameters",
        _parameters(env),
        "## State",
        "What `state()` returns and `set_state()` takes, with the envs along the first axis.",
        _state(env),
        "## Use",
        _usage(env),
        "## Results",
        results,
        "## Rules",
        _rules(env, folder),
    ]
    return "\n\n".join(parts) + "\n"


# ---- pictures ----


def frames(
    env: EnvDef, count: int, stride: int, seed: int = 0, size: int = PIXELS, aspect: float | None = None
) -> list[Any]:
    """Pictures of one env under random actions; an empty list if the game does not draw itself.

    ``size`` is the longer side, and ``aspect`` the width by the height, by default the game's own.
    """
    batch = gpuzoo.BatchEnv(env, 1, device="cpu", threads=1)
    try:
        batch.reset(seed=seed)
        out = []
        for _ in range(count):
            state = {name: array[0] for name, array in batch.simulator.state(0).items()}
            width_and_height = render.picture_size(env.aspect(batch.simulator.cfg) if aspect is None else aspect, size)
            canvas = gpuzoo.Canvas(*width_and_height, supersample=2)
            env.render(batch.simulator.cfg, state, canvas)
            out.append(canvas.array())
            batch.simulator.rollout(stride)
        return out
    except NotImplementedError:
        return []
    finally:
        batch.close()


def films_of(env: EnvDef) -> tuple[list[Any], float]:
    """Pictures of one env, and how many a second shows: pretrained agents play, or else actions are random."""
    if gen_results.pretrained(env.id):
        arranged = match.arrange(env.id, {}, PRETRAINED)
        fps = video.rate(env.id)[0]
        shown = video.pictures(env.id, arranged.players, arranged.config, envs=1, size=PIXELS)
        with contextlib.closing(shown), contextlib.suppress(NotImplementedError):
            return [*itertools.islice(shown, round(TRAINED_SECONDS * fps))], fps
        return [], fps
    stride = math.ceil(env.render_fps / MAX_FPS)
    fps = env.render_fps / stride
    return frames(env, max(2, round(SECONDS * fps)), stride), fps


def _picture(env: EnvDef, folder: Path) -> str:
    """Renders the game's animation unless it is there already; its name tells what it was made from."""
    cfg = env.Config()
    code = program(env, cfg).code + Path(inspect.getfile(type(env))).read_text()
    code += Path(inspect.getfile(render)).read_text() + Path(__file__).read_text()
    trained = gen_results.pretrained(env.id)
    content = code.encode() + (trained.read_bytes() if trained else b"")
    path = folder / f"{env.id}-{hashlib.sha256(content).hexdigest()[:10]}.gif"
    if not path.exists():
        films, fps = films_of(env)
        if not films:
            return ""
        render.save_animation(films, path, fps)
    for old in folder.glob(f"{env.id}-*.gif"):
        if old != path and re.fullmatch(re.escape(env.id) + r"-[0-9a-f]{10}\.gif", old.name):
            old.unlink()
    return path.name


def _shelf(names: list[str], shots: dict[str, str]) -> list[str]:
    pictures = "\n".join(f"[![{n}]({shots[n]}){{width=150px}}]({n}.md)" for n in names if shots[n])
    return [games_table(names), *([pictures] if pictures else [])]


def generate(pages: Path, pictures: Path | None) -> list[Path]:
    """Writes all pages.

    Args:
        pages: folder for the pages.
        pictures: folder for the animations, or None for neither animations nor learning curves.

    Returns:
        The files that were written or are still current.
    """
    pages.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    drawn = gen_results.draw(gpuzoo.ids(), pages / "curves") if pictures is not None else {}
    curves = {name: f"curves/{file}" for name, file in drawn.items()}
    with ThreadPoolExecutor() as pool:  # most of it is compilation
        files = pool.map(lambda name: _picture(gpuzoo.get(name), pictures) if pictures else "", gpuzoo.ids())
        shots = {
            name: f"../_static/games/{file}" if file else "" for name, file in zip(gpuzoo.ids(), files, strict=True)
        }
    for name in gpuzoo.ids():
        env = gpuzoo.get(name)
        write(pages / f"{name}.md", _page(env, shots[name], gen_results.section(name, curves), pages))
        written.append(pages / f"{name}.md")
    parts = [
        "# Games",
        f"{len(written)} games, found in the registry when this page was built. Numbers of agents and spaces are "
        "those of the default parameters.",
    ]
    alone: list[str] = []
    for folder, names in families().items():
        text = about(folder)
        if text:
            parts += [f"## {text.split(':')[0].rstrip('.')}", text, *_shelf(names, shots)]
        else:
            alone += names
    parts += ["## More games", *_shelf(alone, shots)]
    parts.append("```{toctree}\n:hidden:\n\n" + "\n".join(shots) + "\n```")
    write(pages / "index.md", "\n\n".join(parts) + "\n")
    write(pages / "results.md", gen_results.page(shots))
    written += [pages / "index.md", pages / "results.md"]
    for old in {*pages.glob("*.md")} - {*written}:
        old.unlink()
    return written
