"""Writes about the training results in ``baselines/results``: a section for each game's page, and a page with all."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import charts
import films
import numpy as np
from markdown_text import number, raw, table, write

import gpuzoo
from baselines import run
from baselines.report import checkpoint, curves
from gpuzoo.tools.players import EXPERT

ROOT = Path(__file__).parents[1]
RESULTS, CONFIGS = ROOT / "baselines" / "results", ROOT / "baselines" / "configs"
LEAGUES = ROOT / "docs" / "leagues"
MAPPO = "-MAPPO"
NBSP = "\N{NO-BREAK SPACE}"

HEAD = """\
---
hide-toc: true
---

# Results

One row for each game: the score of trained agents, beside random play and the score at which the game counts as solved.
PPO trained them, unless the name of another algorithm stands behind the game's. A game's name leads to its learning
curves, its commands, and all other scores. Click a heading to sort. Steps are those of one seed, and the time is that
of all seeds.
"""

LEAGUE_HEAD = """\
## Leagues of AlphaZero

At the end of a run of [AlphaZero](../alphazero.md) its past selves play each other, UCT and random play, as many games
against each. Random play has rating 0, and 400 points more mean ten times the odds of winning. Past selves search as in
self-play, with a few simulations for each move.
"""

TAIL = """\
## How to read the table

- The score is that of the policy at the end of training, in {episodes} episodes that training did not see. Actions are
  sampled as in training. In board games the likeliest move is taken, a win counts 1 and a draw 0.5.
- Where games of two are worth more or less than 1, as in poker, there is a return beside the score: chips or points.
- `a ± b` is the mean over {seeds} seeds and its standard error. A return is the mean over the agents of a group.
- "Solved at" is a score that somebody published, or that follows from the rules. The game's page names its source.
- In games of several agents each agent learns from its own observations (IPPO). MAPPO has a central critic, which sees
  what all agents see; the table has the better of the two, and says which one it is.
- In a game of several sides a return says little by itself. The table has the side that the goal is about; the game's
  page has one line for each side that is trained while all others act at random, and one for each side when all of them
  are trained against each other.

Hyper-parameters were tuned on some of the reported seeds, so a new seed may do a little worse. Many runs shared their
cores with other programs: alone they take a half or a quarter of the time.

## Make them yourself

The commands on the games' pages train the same seeds. This command trains and scores all games, or those that are
named, and writes `baselines/results`. The next build of this documentation takes them from there:

```bash
python scripts/make_results.py
```

Games against tree search need `pip install open_spiel`. Without it they are left out.
"""


def results(game: str) -> dict[str, dict[str, Any]]:
    """A game's results by the names of their files; empty while nobody has trained it."""
    names = (game, game + MAPPO, *ways(game))
    paths = {name: RESULTS / f"{name}.json" for name in names}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.is_file()}


def about_game(game: str) -> dict[str, Any]:
    """The game's config; empty without one."""
    path = CONFIGS / f"{game}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    return found


def ways(game: str) -> dict[str, dict[str, Any]]:
    """Other settings with which the game is trained, too, by the names of their results."""
    return {f"{game}-{name}": way for name, way in about_game(game).get("ways", {}).items()}


def name_of(found: Mapping[str, Any]) -> str:
    """Of the algorithm that gave these results."""
    return run.algorithm(found["algorithm"])[0].__name__


def goal_of(name: str, game: str) -> dict[str, Any]:
    """What the config says of the goal of these results; empty where nothing."""
    found: dict[str, Any] = ways(game).get(name, about_game(game)).get("goal") or {}
    return found


def parameters(game: str) -> dict[str, Any]:
    """The parameters with which the game's agents are trained, where they are not its defaults."""
    return _of_game(game, about_game(game).get("config", {}))


def _of_game(game: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a game's configuration takes of the parameters that are given; a time limit, for one, is not in it."""
    names = {field.name for field in dataclasses.fields(gpuzoo.get(game).Config)}
    return {name: value for name, value in given.items() if name in names}


def value(found: dict[str, Any]) -> str:
    """A mean with its standard error."""
    error = found["standard_error"]
    return short(found["mean"]) + (f"{NBSP}±{NBSP}{short(error)}" if error is not None else "")


def short(x: float) -> str:
    """A number with as many digits as a reader wants."""
    return f"{x:.0f}" if abs(x) >= 1000 else f"{x:.1f}" if abs(x) >= 10 else f"{x:.2f}"


def article(noun: str) -> str:
    """A noun with its indefinite article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def duration(seconds: float) -> str:
    """Seconds, or minutes and seconds."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def lines(game: str, found: dict[str, Any], name: str = "") -> list[tuple[str, str, str]]:
    """Name, score of random play, and score of each measure; the goal's measure comes first."""
    goal = goal_of(name, game)
    wanted = goal.get("scenario"), goal.get("measure")
    scored = sorted(_scored(found["scores"]), key=lambda line: line[:2] != wanted)
    env, given = gpuzoo.get(game), found["hyperparameters"]["config"]
    groups = set(env.agents(env.Config(**_of_game(game, given))))
    return [(_title(scenario, measure, groups), base, score) for scenario, measure, base, score in scored]


def _title(scenario: str, measure: str, groups: Collection[str]) -> str:
    if measure in ("score", "return"):
        name = measure
    else:
        name = f"return of {article(measure)}" if measure in groups else f"share {measure.replace('_', ' ')}"
    return name if scenario == "trained" else f"{scenario}: {name}"


def _scored(scores: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    for scenario, measures in scores.items():
        if scenario.startswith("random ") or scenario == EXPERT:
            continue
        if "score" in measures:
            for measure in (name for name in ("return", "score") if name in measures):
                base = short(scores[f"random {scenario}"][measure]["mean"])
                yield scenario, measure, base, value(measures[measure])
            continue
        mine = [g for g in measures if scenario == f"{g} trained, others random"] or list(measures)
        for measure in mine:
            yield scenario, measure, value(scores["random play"][measure]), value(measures[measure])


# ---- the page with all games ----


def page(games: Iterable[str]) -> str:
    """The text of the page that compares all games."""
    found = {game: results(game) for game in games}
    trained = [result for by_name in found.values() for result in by_name.values()]
    episodes = " or ".join(sorted({str(r["episodes"]) for r in trained}))
    seeds = " or ".join(sorted({str(len(r["seeds"])) for r in trained}))
    rows = [_row(game, by_name) for game, by_name in found.items() if by_name]
    solved = sum(best(by_name)[1]["solved"] is True for by_name in found.values() if by_name)
    goals = sum(bool(best(by_name)[1]["goal"]) for by_name in found.values() if by_name)
    parts = [HEAD.rstrip(), f"{solved} of the {goals} games for which a goal is stated are solved.", _overview(rows)]
    missing = [f"[{game}]({game}.md)" for game, by_name in found.items() if not by_name]
    if missing:
        parts.append(f"Not trained yet: {', '.join(missing)}.")
    return "\n\n".join([*parts, *leagues(), TAIL.format(episodes=episodes, seeds=seeds)])


def leagues() -> Iterator[str]:
    """The section about runs of AlphaZero, each with a table of its league, best first."""
    paths = sorted(LEAGUES.glob("*.csv"))
    if paths:
        yield LEAGUE_HEAD
    for path in paths:
        with path.open(encoding="utf-8") as file:
            rows = sorted(csv.DictReader(file), key=lambda row: -float(row["elo"]))
        told = ([row["player"], f"{float(row['elo']):.0f}", row["wins"], row["draws"], row["losses"]] for row in rows)
        yield f"### {path.stem}\n\n" + table(["player", "Elo", "won", "drawn", "lost"], told)


def best(by_name: Mapping[str, Mapping[str, Any]]) -> tuple[str, Mapping[str, Any]]:
    """Of the results of a game with its own settings the one whose score of the goal is better."""
    own = {k: found for k, found in by_name.items() if not ways(found["game"]).get(k, {}).get("config")}
    return max(own.items(), key=lambda item: (item[1]["solved"] is True, _goal_score(item[1])))


def _goal_score(found: Mapping[str, Any]) -> float:
    goal = about_game(found["game"]).get("goal", {})
    scenario = goal.get("scenario", next(iter(found["scores"])))
    measures = found["scores"][scenario]
    return float(measures[goal.get("measure", next(iter(measures)))]["mean"])


def _row(game: str, by_name: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, float | str]]:
    """By column, the text of a cell and what it is sorted by."""
    name, result = best(by_name)
    env = gpuzoo.get(game)
    scored, base, score = lines(game, dict(result))[0]
    level = goal_of(name, game).get("at_least", env.reward_threshold)
    mark = {True: "yes", False: "not yet"}.get(result["solved"] if result["goal"] else None, "no goal")
    other = " (MAPPO)" if name.endswith(MAPPO) else f" ({name_of(result)})" if result["algorithm"] != "ppo" else ""
    agents = sum(env.agents(env.Config(**parameters(game))).values())
    return {
        "game": (f'<a href="{game}.html#results">{game}</a>{other}', game),
        "agents": (str(agents), agents),
        "random play": (base, _first(base)),
        "trained": (f"<strong>{score}</strong>", _first(score)),
        "solved at": (number(float(level)), float(level)) if level is not None else ("", ""),
        "solved": (mark, mark),
        "steps": (f"{result['steps_per_seed'] / 1e6:.3g} M", result["steps_per_seed"]),
        "time": (duration(result["seconds"]), result["seconds"]),
        "what is scored": (scored, scored),
    }


def _first(text: str) -> float:
    return float(text.split(NBSP)[0])


def _overview(rows: list[dict[str, tuple[str, float | str]]]) -> str:
    out = ['<div class="table-wrapper wide"><table class="sortable results">']
    heads = "".join(f'<th scope="col">{name}</th>' for name in (rows[0] if rows else {}))
    out.append(f"<thead><tr>{heads}</tr></thead><tbody>")
    for row in rows:
        cells = "".join(f'<td data-sort="{key}">{text}</td>' for text, key in row.values())
        out.append(f'<tr class="{row["solved"][0].replace(" ", "-")}">{cells}</tr>')
    return raw("\n".join([*out, "</tbody></table></div>"]))


def _solved(found: dict[str, Any]) -> str:
    return "solved" if found["solved"] else "not solved" if found["goal"] else "no goal is stated"


# ---- a game's section ----


def section(game: str, pictures: Mapping[str, str]) -> str:
    """What a game's page says about training.

    Args:
        game: its id.
        pictures: the learning curves by the names of results, as the page names them; the others are not shown.
    """
    found = results(game)
    if not found:
        return f"Not trained yet. `python scripts/make_results.py {game}` trains and scores it."
    parts = [_one(game, name, result, pictures) for name, result in found.items()]
    note = about_game(game).get("note")
    if given := about_game(game).get("config"):
        parts.insert(0, f"Trained with {', '.join(f'`{name}={value!r}`' for name, value in given.items())}.")
    return "\n\n".join([*_pretrained(game), *parts, *([note] if note else [])])


def _pretrained(game: str) -> list[str]:
    """How to see the pretrained agents, and how well they play."""
    path = films.pretrained(game)
    if path is None:
        return []
    returns = checkpoint.load_run(path)[1]["returns"]
    episodes = " or ".join(sorted({str(side["episodes"]) for side in returns.values()}))
    reached = ", ".join(
        f"{name} {value({'mean': side['mean_return'], 'standard_error': side['standard_error']})}"
        for name, side in returns.items()
    )
    return [
        f"`gpuzoo play {game} --pretrained` shows trained agents. Mean returns in {episodes} episodes: {reached}.",
    ]


def _one(game: str, name: str, found: dict[str, Any], pictures: Mapping[str, str]) -> str:
    machine, reference = found["machine"], found["reference"]
    cores = "1 core" if machine["cores"] == 1 else f"{machine['cores']} cores"
    where = machine["gpu"] or f"{cores} of {machine['cpu']}"
    parts = []
    if name in ways(game):
        settings = ", ".join(f"`{key}={x!r}`" for key, x in ways(game)[name].get("config", {}).items())
        parts.append(f"### With {settings or name.removeprefix(f'{game}-')}")
    elif name != game:
        parts.append("### With a central critic (MAPPO)")
    if name in pictures:
        parts.append(f"```{{raw}} html\n:file: {pictures[name]}\n```")
    head = ["what is scored", "random play", name_of(found)]
    parts += [
        table(head, lines(game, found, name)),
        f"{_solved(found).capitalize()}." + (f" The goal is {found['goal']}." if found["goal"] else ""),
    ]
    if EXPERT in found["scores"]:
        env = gpuzoo.get(game)
        program, groups = env.expert.partition(":")[0], set(env.agents(env.Config()))
        reached = (f"{_title('trained', measure, groups)} {value(x)}" for measure, x in found["scores"][EXPERT].items())
        parts.append(f"The game's expert, the program `{program}`, reaches: {', '.join(reached)}.")
    if reference:
        parts.append(f"Reference: {reference['what']} Source: {reference['source']}")
    games = {s: m for s, m in found["scores"].items() if "wins" in m}
    if games:
        names = ["score", "wins", "draws", "losses"]
        parts.append(table(["who plays", *names], [[s, *(value(m[n]) for n in names)] for s, m in games.items()]))
    parts += [
        f"{len(found['seeds'])} seeds of {found['steps_per_seed']:,} steps: {duration(found['seconds'])}, "
        f"{found['steps_per_second']:,.0f} steps per second, on {where}.",
        "```bash\n" + "\n".join(found["commands"]) + "\n```",
    ]
    return "\n\n".join(parts)


# ---- learning curves ----


def draw(games: Iterable[str], folder: Path) -> dict[str, str]:
    """Draws the learning curves that are not there yet, and removes the pictures of others.

    In self-play of a zero-sum game the mean return is always the same, so there is nothing to draw.

    Args:
        games: ids.
        folder: of the pictures.

    Returns:
        The picture of each result, beside the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: f"{name}-{_digest(name)}.svg" for game in games for name in results(game)}
    for name, file in list(files.items()):
        steps, returns = curves.read(RESULTS / f"{name}.csv")
        if all(np.nanmin(x) == np.nanmax(x) for x in returns.values()):
            del files[name]
        elif not (folder / file).exists():
            levels = _levels(name, returns)
            write(folder / file, charts.learning_curves(steps, returns, f"Learning curves of {name}", levels))
    for path in folder.iterdir():
        if path.name not in files.values():
            path.unlink()
    return {name: f"{folder.name}/{file}" for name, file in files.items()}


def _levels(name: str, groups: Collection[str]) -> dict[str, float]:
    """Lines in the learning curves of groups: random play, and the goal, where they are about the one that is shown."""
    found = json.loads((RESULTS / f"{name}.json").read_text())
    random = found["scores"].get("random play", {})
    if len(groups) != 1 or not random:
        return {}
    (group,) = groups
    levels = {"random play": random[group]["mean"]}
    goal = {"scenario": "trained", "measure": group, "at_least": gpuzoo.get(found["game"]).reward_threshold}
    goal |= goal_of(name, found["game"])
    if (goal["scenario"], goal["measure"]) == ("trained", group) and goal["at_least"] is not None:
        levels["solved at"] = goal["at_least"]
    return levels


def _digest(name: str) -> str:
    """Of the curves and of the code that draws them."""
    sources = (RESULTS / f"{name}.csv", RESULTS / f"{name}.json", Path(charts.__file__))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:10]
