"""The page that shows all games, with filters, and the film at the top of a game's page."""

from __future__ import annotations

import html
import importlib
import inspect
import re
import urllib.parse
from collections.abc import Mapping

import films
from gymnasium import spaces
from markdown_text import raw

import gpuzoo
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.layout import Layout, layout
from gpuzoo.core.names import links
from gpuzoo.tools.listing import agents_text

MANY = 10  #: agents from which a game is for many
#: filters: name -> its choices, in the order of the page
FILTERS = {
    "agents": ("one", "several", "many"),
    "interaction": ("cooperative", "competitive", "mixed"),
    "actions": ("discrete", "continuous"),
    "observations": ("numbers", "grid or picture", "index"),
}
ALONE = "More games"


def groups_text(env: EnvDef) -> str:
    """Groups of agents with their numbers."""
    return agents_text(env.agents(env.Config()))


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


def traits(env: EnvDef) -> dict[str, str]:
    """What the filters ask for."""
    lay = layout(env, env.Config())
    kinds = {_observations(lay, group) for group in lay.groups}
    discrete = lay.action_dtype == "int32"
    return {
        "agents": "one" if lay.agents == 1 else "several" if lay.agents < MANY else "many",
        "interaction": env.interaction,
        "actions": "discrete" if discrete else "continuous",
        "observations": next(kind for kind in FILTERS["observations"][::-1] if kind in kinds),
    }


def _observations(lay: Layout, group: str) -> str:
    space = lay.observation_spaces[group]
    if isinstance(space, spaces.Discrete):
        return "index"
    return "grid or picture" if len(space.shape or ()) > 1 else "numbers"


def actions_text(env: EnvDef) -> str:
    """The actions of the first group, in a few words."""
    lay = layout(env, env.Config())
    space = next(iter(lay.action_spaces.values()))
    if isinstance(space, spaces.Discrete):
        return f"{int(space.n)} actions"
    size = space.shape[0] if space.shape else 1
    kind = "discrete" if isinstance(space, spaces.MultiDiscrete) else "continuous"
    return f"{size} {kind} action{'s' * (size > 1)}"


# ---- films ----


def video(shot: films.Shots, name: str, classes: str, by_expert: bool = False) -> str:
    """A film with its still as a poster; it begins when a reader sees it, points at it, or presses play."""
    who = "a program" if by_expert else "trained agents" if shot.trained else "chance"
    width = films.PIXELS if shot.aspect >= 1 else round(films.PIXELS * shot.aspect)
    height = films.PIXELS if shot.aspect <= 1 else round(films.PIXELS / shot.aspect)
    where, label = "../_static/games/", html.escape(f"{name} played by {who}")
    return (
        f'<video class="{classes}" width="{width}" height="{height}" muted loop playsinline preload="none" '
        f'poster="{where}{shot.still}" aria-label="{label}"{" controls" if "film" in classes else ""}>'
        f'<source src="{where}{shot.by_expert if by_expert else shot.film}" type="video/mp4"></video>'
    )


def episode_text(kind: str) -> str:
    """Which episode a film shows, of an `films.Episode.kind`."""
    found = re.fullmatch(r"(?P<which>best|part|solved-(?P<solved>\d+))-of-(?P<envs>\d+)(-(?P<speed>\d+)x)?", kind)
    assert found
    which, envs, solved = found["which"], found["envs"], found["solved"]
    if which == "part":
        text = f"where they earn the most in {envs} episodes"
    elif which == "best":
        text = f"in the best of {envs} episodes"
    elif solved == envs:
        text = f"in one of {envs} episodes, which were all solved"
    elif solved == "1":
        text = f"in the one of {envs} episodes that was solved"
    else:
        text = f"in one of the {solved} of {envs} episodes that were solved"
    return text + (f", as a time-lapse of {found['speed']} times the game's speed" if found["speed"] else "")


def figure(env: EnvDef, shot: films.Shots) -> str:
    """The film of a game's page, with what the game is in a line."""
    facts = [groups_text(env), env.interaction, actions_text(env), traits(env)["observations"]]
    facts += [family(env)] if family(env) not in links(env) else []
    chips = "".join(f"<li>{html.escape(fact)}</li>" for fact in facts if fact)
    found = "".join(f'<li><a href="{url}">{html.escape(name)}</a></li>' for name, url in links(env).items())
    lead = f'<ul class="chips">{chips}{found}</ul>'
    if not shot.film:
        return raw(lead)
    given = ", ".join(f"<code>{name}={html.escape(repr(value))}</code>" for name, value in shot.config.items())
    if not shot.trained:
        who = "Random actions: there are no trained agents of this game yet."
    else:
        how = f"trained with {given}" if given else "in the default game"
        which = f", {episode_text(shot.shows)}" if shot.shows else ""
        who = f"Pretrained agents of {films.algorithm(env.id)}, {how}{which}."
    shown = [(video(shot, env.id, "film"), who)]
    if shot.by_expert:
        which = f", {episode_text(shot.expert_shows)}" if shot.expert_shows else ""
        who = f"The game's expert, the program <code>{env.expert.partition(':')[0]}</code>{which}."
        shown.append((video(shot, env.id, "film", by_expert=True), who))
    figures = (f'<figure class="film">{film}<figcaption>{text}</figcaption></figure>' for film, text in shown)
    return raw("\n".join((lead, *figures)))


# ---- the page ----


def family(env: EnvDef) -> str:
    """The name of the family that a game is of."""
    text = about(type(env).source().parent.name)
    return re.split(r"[:,(]", text)[0].rstrip(".").strip() if text else ""


def kinds() -> str:
    """The families of games as links into the gallery, the largest first."""
    counts: dict[str, int] = {}
    for names in families().values():
        for name in names:
            shelf = family(gpuzoo.get(name))
            if shelf:
                counts[shelf] = counts.get(shelf, 0) + 1
    items = [
        f'<li><a href="games/index.html#family={urllib.parse.quote_plus(shelf)}">{html.escape(shelf)}</a> {count}</li>'
        for shelf, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
    return raw(f'<ul class="chips" aria-label="Families of games">{"".join(items)}</ul>')


def _card(name: str, shot: films.Shots) -> str:
    env = gpuzoo.get(name)
    data = " ".join(f'data-{key}="{html.escape(value)}"' for key, value in traits(env).items())
    picture = video(shot, name, "hover") if shot.film else '<div class="empty"></div>'
    facts = ", ".join(x for x in (groups_text(env), env.interaction, actions_text(env)) if x)
    text = re.sub(r"[`*]", "", summary(env))
    return (
        f'<li class="card" {data}><a href="{name}.html">{picture}'
        f'<strong>{name}</strong><span class="facts">{html.escape(facts)}</span>'
        f"<span>{html.escape(text)}</span></a></li>"
    )


def _filters(names: list[str]) -> str:
    sets = []
    for key, choices in [*FILTERS.items(), ("family", names)]:
        options = "".join(f'<option value="{html.escape(choice)}">{html.escape(choice)}</option>' for choice in choices)
        sets.append(f'<label>{key}<select name="{key}"><option value="">any</option>{options}</select></label>')
    return (
        '<form class="filters" aria-label="Filter the games">'
        + "".join(sets)
        + '<label>name<input type="search" name="name"></label><output aria-live="polite"></output></form>'
    )


def page(shots: Mapping[str, films.Shots]) -> str:
    """The text of the page: families with many agents first."""
    shelves: dict[str, list[str]] = {}
    for names in families().values():
        for name in names:
            shelves.setdefault(family(gpuzoo.get(name)) or ALONE, []).append(name)
    texts = {family(gpuzoo.get(names[0])): about(folder) for folder, names in families().items() if about(folder)}
    several = {name: not gpuzoo.get(name).single() for name in shots}
    split: dict[tuple[bool, str], list[str]] = {}
    for shelf, names in shelves.items():
        for name in names:
            split.setdefault((not several[name], shelf), []).append(name)
    size = {name: sum(gpuzoo.get(name).agents(gpuzoo.get(name).Config()).values()) for name in shots}
    order = sorted(split, key=lambda key: (key[0], -max(size[name] for name in split[key]), -len(split[key])))
    count = sum(several.values())
    parts = [
        "---\nhide-toc: true\n---",
        "# Games",
        f"{len(shots)} games, {count} of them for several agents. Point at a picture, or tap it, to see trained agents "
        "play; the picture itself shows random play. Numbers are those of the default parameters.",
        raw(_filters(sorted({shelf for shelf in shelves if shelf != ALONE}))),
    ]
    for alone, shelf in order:
        where = "one agent" if alone else "several agents"
        title = f"{shelf}, {where}" if shelf != ALONE else f"More games, {where}" if alone else "Several agents"
        cards = "\n".join(_card(name, shots[name]) for name in sorted(split[alone, shelf], key=lambda n: -size[n]))
        parts += [
            f"## {title}",
            *([texts[shelf]] if shelf in texts else []),
            raw(f'<ul class="gallery" data-family="{html.escape(shelf)}">\n{cards}\n</ul>'),
        ]
    return "\n\n".join(parts) + "\n"
