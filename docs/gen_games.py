"""Writes a page for each registered game, and the pages that list them. Nothing on them is written by hand."""

from __future__ import annotations

import dataclasses
import inspect
import math
import os
import re
import typing
from pathlib import Path
from typing import Any, Literal

import charts
import exactness
import films
import gallery
import gen_results
import measured
import numpy as np
import rotation
from gymnasium import spaces
from markdown_text import by_group, number, table, write

import gpuzoo
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.dialect import inline_includes
from gpuzoo.core.layout import layout, resolve_fields
from gpuzoo.core.names import Part, action_parts, links, observation_parts
from gpuzoo.core.values import config_types
from gpuzoo.interfaces.infos import names_of

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden"
MOST_PARTS = 60  #: rows of a table of observations
UNSEEN = films.Shots("", "", False, "", 1.0)
#: a page that no list of contents names, as such lists would be on every page; the gallery has them all
ORPHAN = "---\norphan: true\n---\n\n[All games](index.md)\n\n"


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


# ---- what the docstring says ----

_LABEL = re.compile(r"\*\*([^*]+?)\.?\*\*[.,:]?\s*")
#: labels that have a heading of their own
_HEADINGS = {"Actions": "Actions", "Observation": "Observations", "Reward": "Reward"}


def told(env: EnvDef) -> dict[str, str]:
    """The docstring by headings; what comes before all labels, and all other labels, is in ``Rules``."""
    found: dict[str, list[str]] = {"Rules": []}
    heading = "Rules"
    for paragraph in inspect.cleandoc(env.__doc__ or "").split("\n\n"):
        label = _LABEL.match(paragraph)
        if label:
            heading = _HEADINGS.get(label[1].rstrip("."), "Rules")
            if heading != "Rules":
                paragraph = paragraph[label.end() :]
        found.setdefault(heading, []).append(_sentence(paragraph) if label else paragraph)
    return {name: "\n\n".join(parts) for name, parts in found.items()}


def _sentence(text: str) -> str:
    """With a capital letter, but for a dtype."""
    return text if text.startswith("float32") else text[:1].upper() + text[1:]


# ---- tables ----


def _span(part: Part) -> str:
    return str(part.first) if part.first == part.last else f"{part.first}\N{WORD JOINER}–\N{WORD JOINER}{part.last}"  # noqa: RUF001


def _range(part: Part) -> str:
    if math.isinf(part.low) and math.isinf(part.high):
        return "any"
    return number(part.low) if part.low == part.high else f"{number(part.low)} to {number(part.high)}"


def _parts(head: str, parts: list[Part]) -> str:
    with_range = head != "action"
    rows = [[_span(p), p.name or "", *([_range(p)] if with_range else [])] for p in parts]
    text = table([head, "meaning", *(["range"] if with_range else [])], rows)
    if len(rows) <= MOST_PARTS:
        return text
    return f"<details>\n<summary>All {len(rows)} parts</summary>\n\n{text}\n\n</details>"


def _by_groups(env: EnvDef, which: typing.Callable[..., tuple[str, list[Part]]], space: Any) -> str:
    """A table for each group, or one for all groups that have the same."""
    cfg = env.Config()
    found: dict[str, list[str]] = {}
    for group in env.agents(cfg):
        head, parts = which(env, cfg, group)
        text = f"`{space_text(space(cfg, group))}`\n\n{_parts(head, parts)}"
        found.setdefault(text, []).append(group)
    if len(found) == 1:
        return next(iter(found))
    return "\n\n".join(f"**{', '.join(groups)}**: {text}" for text, groups in found.items())


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
        "\n\nA `float` may change between steps and may differ from env to env. The others are compiled in."
    )


def _shape(declared: tuple[int | str, ...], sizes: tuple[int, ...]) -> str:
    """A field's shape: its declared names, and their sizes with the default parameters."""
    if not declared:
        return "one value"
    return " by ".join(str(n) if name == n else f"{n} ({name})" for name, n in zip(declared, sizes, strict=True))


def _state(env: EnvDef) -> str:
    cfg, rows = env.Config(), []
    resolved = resolve_fields(env, cfg, layout(env, cfg))
    for name, field in env.fields(cfg).items():
        if field.scratch:
            continue
        shape = _shape(field.shape, resolved[name].sizes)
        rows.append([f"`{name}`", field.dtype, shape, field.doc])
    return table(["field", "dtype", "shape", "meaning"], rows)


def _order(env: EnvDef) -> str:
    """How several agents act."""
    if env.turn is not None:
        return f"in turns; the field `{env.turn}` says who"
    return "" if env.single() else "all at once"


def _facts(env: EnvDef) -> str:
    cfg = env.Config()
    lay = layout(env, cfg)
    illegal = f"{env.invalid_action}" + ("" if lay.action_dtype == "int32" else " (NaN; the rest is clamped)")
    rows = [
        ["id in Gymnasium and PettingZoo", f"`gpuzoo/{env.id}`"],
        ["agents", gallery.groups_text(env) + (f", {env.interaction}" if env.interaction else "")],
        ["they act", _order(env)],
        ["observation", by_group({g: space_text(s) for g, s in lay.observation_spaces.items()})],
        ["action", by_group({g: space_text(s) for g, s in lay.action_spaces.items()})],
        ["action mask", f"{lay.mask_size} entries" if env.action_mask else "none"],
        ["an illegal action counts as", illegal],
        ["time limit", "none" if env.max_episode_steps is None else f"{env.max_episode_steps} steps"],
        ["solved at a return of", "" if env.reward_threshold is None else number(float(env.reward_threshold))],
        ["lanes", f"{env.lanes(cfg)} per env on a GPU"],
        ["infos of its own", ", ".join(f"`{name}`" for name in names_of(env))],
        ["links", ", ".join(f"[{name}]({address})" for name, address in links(env).items())],
    ]
    return table(["", ""], [row for row in rows if row[1]])


# ---- code ----


def usage(env: EnvDef) -> dict[str, str]:
    """How to load the game, by library."""
    single, turns = env.single(), env.turn is not None
    name, code = f'"{env.id}"', {}
    code["Gymnasium"] = (
        "import gymnasium\nimport gpuzoo\n\n"
        + (f'env = gymnasium.make("gpuzoo/{env.id}")\n' if single else "")
        + ("" if single else "# a row is an agent of an env\n")
        + f"envs = gpuzoo.make_vec({name}, num_worlds=1024)\n"
        "observations, infos = envs.reset(seed=0)\n"
    )
    call = "aec_env" if turns else "parallel_env"
    code["PettingZoo"] = (
        f"import gpuzoo\n\nenv = gpuzoo.{call}({name})\nenv.reset(seed=0)\n"
        f"\nfrom gpuzoo.envs import {env.module_name()}  # or as PettingZoo's own games\n\n"
        f"env = {env.module_name()}.{'env' if turns else 'parallel_env'}()\n"
    )
    code["torch"] = (
        f'import gpuzoo\n\n# by group, on the device\nenvs = gpuzoo.make({name}, num_envs=1024, output="torch")\n'
        "observations, infos = envs.reset(seed=0)\n"
        "observations, rewards, terminations, truncations, infos = envs.step(envs.random_actions())\n"
    )
    slots = 'group="player_0", opponents="random", ' if turns else ""
    code["Stable-Baselines3"] = (
        "from gpuzoo.wrappers.sb3 import SB3VecEnv\n\n"
        f'env = SB3VecEnv({name}, {slots}num_worlds=64, device="cpu")\nobservations = env.reset()\n'
    )
    code["TorchRL"] = (
        f"from gpuzoo.wrappers.torchrl import GpuZooEnv\n\nenv = GpuZooEnv({name}, num_envs=64)\n"
        "data = env.rollout(10)\n"
    )
    kind = "RLlibVectorEnv" if single else "RLlibMultiAgentEnv"
    runners = (
        'gym_env_vectorize_mode="vector_entry_point", num_envs_per_env_runner=64'
        if single
        else "env_runner_cls=BatchedEnvRunner, num_envs_per_env_runner=64"
    )
    imports = kind if single else f"BatchedEnvRunner, {kind}, policies"
    agents = "" if single else "    .multi_agent(**policies(game))\n"
    code["RLlib"] = (
        f"from gpuzoo.wrappers.rllib import {imports}\nfrom ray.rllib.algorithms.ppo import PPOConfig\n\n"
        f'game = {{"env": {name}}}\nconfig = (\n    PPOConfig()\n    .environment({kind}, env_config=game)\n{agents}'
        f"    .env_runners({runners})\n)\n"
    )
    return code


def _usage(env: EnvDef) -> str:
    blocks = [f"```{{code-block}} python\n:caption: {name}\n\n{code}```" for name, code in usage(env).items()]
    return "````{container} tabs\n" + "\n\n".join(blocks) + "\n````"


def _rules(env: EnvDef) -> str:
    files = list(dict.fromkeys(piece.path for piece in inline_includes(env.source())))
    out = []
    for path in files:
        target = path if not path.is_relative_to(ROOT) else Path("../..") / path.relative_to(ROOT)
        out.append(
            f"<details>\n<summary>{path.name} ({len(path.read_text().splitlines())} lines)</summary>\n\n"
            f"```{{literalinclude}} {target}\n:language: cpp\n```\n\n</details>"
        )
    return "\n\n".join(out)


# ---- what was shown and measured ----


def _exact(env: EnvDef) -> str:
    parts = [f"Compared with {env.reference}." if env.reference else f"No reference: {env.exempt['reference']}"]
    for one in exactness.evidence(env) if env.reference else []:
        numbers = ", ".join(f"`{name} = {value}`" for name, value in one.numbers.items())
        tests = "\n".join(f"- `{name}`" + (f": {about}" if about else "") for name, about in one.tests.items())
        count = f"{len(one.tests)} test{'s' * (len(one.tests) > 1)}"
        parts += [
            f"**`{one.file}`**, {count}" + (f", with {numbers}" if numbers else "") + ".",
            *(f"> {paragraph}" for paragraph in one.about),
            f"<details>\n<summary>The tests</summary>\n\n{tests}\n\n</details>",
        ]
    parts += [f"Exempt from the test `{test}`: {why}" for test, why in env.exempt.items() if test != "reference"]
    return "\n\n".join(parts)


def _speed(env: EnvDef) -> str:
    rows = [
        [s.case or "default", s.per, charts.engineering(s.ours), s.envs,
         s.library, charts.engineering(s.theirs), s.batch,
         f"{s.ratio:,.0f}" if s.ratio >= 10 else f"{s.ratio:.3g}", f"[how](../{s.page})"]
        for s in measured.games()
        if s.game == env.id
    ]  # fmt: skip
    bench = f"`gpuzoo bench {env.id}` times it on your machine."
    if not rows and env.id not in measured.alone():
        return f"Not timed beside another library. {bench}"
    if not rows:
        rate, envs = measured.alone()[env.id]
        own = f"{charts.engineering(rate)} steps in a CPU second of one core, with {envs} envs"
        how = "[how](../benchmarks.md#games-alone)"
        return f"{own} ({how}), not timed beside another library. {bench}"
    head = ["case", "steps per", "gpuzoo", "envs", "library", "its steps", "its envs", "ratio", ""]
    return table(head, rows) + f"\n\n{bench}"


def _versions(env: EnvDef) -> str:
    stem = env.id.rpartition("-v")[0]
    rows = []
    for env_id in sorted((i for i in gpuzoo.ids() if i.rpartition("-v")[0] == stem), reverse=True):
        golden = GOLDEN / f"{env_id}.json"
        released = "released, with a golden rollout" if golden.exists() else "not released yet"
        rows.append([f"`{env_id}`", released, gpuzoo.get(env_id).reference])
    log = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:]
    name = stem.split("-")[0]
    for release in log:
        title = release.split("\n", 1)[0].strip("[] ")
        entries = [" ".join(e.split()) for e in re.split(r"\n(?=- )", release) if e.startswith("- ")]
        about = [e[2:] for e in entries if re.search(rf"\b{re.escape(name)}\b", e)]
        rows += [[title, text, ""] for text in about]
    return table(["version", "what", "reference"], rows)


# ---- pages ----


def _page(env: EnvDef, shot: films.Shots, results: str) -> str:
    texts = told(env)
    return (
        "\n\n".join(
            [
                ORPHAN + f"# {env.id}",
                gallery.figure(env, shot),
                "## Load it",
                _usage(env),
                "## Rules",
                texts["Rules"],
                "## Observations",
                texts.get("Observations", ""),
                _by_groups(env, observation_parts, env.observation_space),
                "## Actions",
                texts.get("Actions", ""),
                _by_groups(env, action_parts, env.action_space),
                "## Reward",
                texts.get("Reward", "See the rules."),
                "## Results",
                results,
                "## Speed",
                _speed(env),
                "## Facts",
                _facts(env),
                "With the default parameters.",
                "## Parameters",
                _parameters(env),
                "## State",
                "`state()` returns these arrays and `set_state()` takes them, with the envs along the first axis. "
                "Sizes are those of the default parameters.",
                _state(env),
                "## Exactness",
                _exact(env),
                "## Versions",
                _versions(env),
                "## Source",
                _rules(env),
            ]
        )
        + "\n"
    )


def chosen() -> list[str]:
    """The games of this build, which ``GPUZOO_DOCS`` names: all of them, unless told.

    With ``turn`` those that changed lately or whose turn it is, and with ids, separated by commas, these.

    Raises:
        ValueError: an unknown id.
    """
    which = os.environ.get("GPUZOO_DOCS") or "all"
    if which == "all":
        return gpuzoo.ids()
    if which != "turn":
        return [gpuzoo.get(name).id for name in which.split(",")]
    now = rotation.rotation()
    return [name for name in gpuzoo.ids() if name in now.names or now.comes(f"page of {name}")]


def generate(pages: Path, pictures: Path | None) -> list[Path]:
    """Writes all pages. Games that are not in this build have a page that says so.

    Args:
        pages: folder for the pages.
        pictures: folder for films and stills, or None for neither these nor learning curves.

    Returns:
        The files that were written or are still current.
    """
    pages.mkdir(parents=True, exist_ok=True)
    names, now = gpuzoo.ids(), chosen()
    curves = gen_results.draw(now, pages / "curves") if pictures is not None else {}
    shots = dict.fromkeys(names, UNSEEN) | (films.all_shots(now, pictures) if pictures is not None else {})
    texts = {name: f"{ORPHAN}# {name}\n\nNot in this build: `make docs` writes all pages.\n" for name in names}
    texts |= {name: _page(gpuzoo.get(name), shots[name], gen_results.section(name, curves)) for name in now}
    texts["index"] = gallery.page(shots)
    texts["results"] = gen_results.page(names)
    for name, text in texts.items():
        write(pages / f"{name}.md", text)
    for old in {*pages.glob("*.md")} - {pages / f"{name}.md" for name in texts}:
        old.unlink()
    return [pages / f"{name}.md" for name in texts]
