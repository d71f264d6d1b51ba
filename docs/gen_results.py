"""Writes about the training results in ``baselines/results``: a section for each game's page, and a page with all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from markdown_text import number, table

from baselines.report import checkpoint, curves, plots
from baselines.train.command import PRETRAINED, checkpoint_of

ROOT = Path(__file__).parents[1]
RESULTS, CONFIGS = ROOT / "baselines" / "results", ROOT / "baselines" / "configs"
MAPPO = "-MAPPO"
NBSP = "\N{NO-BREAK SPACE}"

HEAD = """\
# Results

PPO's score on each game, trained with the options in `baselines/configs`. The score is that of the policy at the end of
training, in {episodes} episodes that training did not see. Actions are sampled as in training; in board games the
likeliest move is taken. `a ± b` is the mean over {seeds} seeds and its standard error. A return is the mean over the
agents of a group. In board games a win counts 1 and a draw 0.5. A reference is a score that somebody published, or that
follows from the rules. A game's page has its learning curves, its commands, its steps and times, and what its reference
is.

Hyper-parameters were tuned on some of the reported seeds, so a new seed may do a little worse. Many runs shared their
cores with other programs: alone they take a half or a quarter of the time.

In games of several agents each agent learns from its own observations (IPPO). MAPPO means a central critic, which sees
what all agents see.

In a game of several sides a return says little by itself. Such a game has one line for each side that is trained while
all others play randomly, and one for each side when all of them are trained against each other. The goal refers to the
first line.
"""

TAIL = """\
## Make them yourself

The commands on the games' pages train the same seeds. This command trains and scores all games, or those that are
named, and writes `baselines/results`, from which the next build of this documentation takes them:

```bash
python scripts/make_results.py
```

Games against tree search need `pip install open_spiel`. Without it they are left out.
"""


def results(game: str) -> dict[str, dict[str, Any]]:
    """A game's results by the names of their files; empty while nobody has trained it."""
    paths = {name: RESULTS / f"{name}.json" for name in (game, game + MAPPO)}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.is_file()}


def about_game(game: str) -> dict[str, Any]:
    """The game's config; empty without one."""
    path = CONFIGS / f"{game}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    return found


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


def lines(game: str, found: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Name, score of random play, and score of each measure; the goal's measure comes first."""
    goal = about_game(game).get("goal", {})
    wanted = goal.get("scenario"), goal.get("measure")
    scored = sorted(_scored(found["scores"]), key=lambda line: line[:2] != wanted)
    return [(_title(scenario, measure), base, score) for scenario, measure, base, score in scored]


def _title(scenario: str, measure: str) -> str:
    name = measure if measure == "score" else f"return of {article(measure)}"
    return name if scenario == "trained" else f"{scenario}: {name}"


def _scored(scores: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    for scenario, measures in scores.items():
        if scenario.startswith("random "):
            continue
        if "score" in measures:
            base = short(scores[f"random {scenario}"]["score"]["mean"])
            yield scenario, "score", base, value(measures["score"])
            continue
        groups = [g for g in measures if scenario == f"{g} trained, others random"] or list(measures)
        for group in groups:
            yield scenario, group, value(scores["random play"][group]), value(measures[group])


# ---- the page with all games ----


def page(games: Iterable[str]) -> str:
    """The text of the page that compares all games."""
    found = {game: results(game) for game in games}
    trained = [result for by_name in found.values() for result in by_name.values()]
    episodes = " or ".join(sorted({str(r["episodes"]) for r in trained}))
    seeds = " or ".join(sorted({str(len(r["seeds"])) for r in trained}))
    parts = [HEAD.format(episodes=episodes, seeds=seeds).rstrip(), _overview(found)]
    missing = [f"[{game}]({game}.md)" for game, by_name in found.items() if not by_name]
    if missing:
        parts.append(f"Not trained yet: {', '.join(missing)}.")
    return "\n\n".join([*parts, TAIL])


def _overview(found: dict[str, dict[str, dict[str, Any]]]) -> str:
    rows = []
    for game, by_name in found.items():
        for name, result in by_name.items():
            reference = (result["reference"] or {}).get("score")
            last = ["" if reference is None else number(reference), _solved(result)]
            title = f"[{name.replace(MAPPO, ', MAPPO')}]({game}.md#results)"
            for k, (scored, base, score) in enumerate(lines(game, result)):
                rows.append([title, scored, base, score, *last] if k == 0 else ["", scored, base, score, "", ""])
    return table(["game", "what is scored", "random play", "PPO", "reference", "goal"], rows)


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
    return "\n\n".join([*_pretrained(game), *parts, *([note] if note else [])])


def pretrained(game: str) -> Path | None:
    """The file of the game's pretrained agents, if there is one."""
    try:
        return Path(checkpoint_of(game, PRETRAINED))
    except ValueError:
        return None


def _pretrained(game: str) -> list[str]:
    """How to see the pretrained agents, and how well they play."""
    path = pretrained(game)
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
    where = machine["gpu"] or f"{machine['cores']} cores of {machine['cpu']}"
    parts = []
    if name != game:
        parts.append("### With a central critic (MAPPO)")
    if name in pictures:
        parts.append(f"![Learning curves of {name}]({pictures[name]})")
    head = ["what is scored", "random play", "PPO"]
    parts += [
        table(head, lines(game, found)),
        f"{_solved(found).capitalize()}." + (f" The goal is {found['goal']}." if found["goal"] else ""),
    ]
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

    Args:
        games: ids.
        folder: of the pictures.

    Returns:
        The name of the picture of each result.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: f"{name}-{_digest(name)}.png" for game in games for name in results(game)}
    for name, file in files.items():
        if not (folder / file).exists():
            plots.population_curves(*curves.read(RESULTS / f"{name}.csv"), name, folder / file)
    for path in folder.glob("*.png"):
        if path.name not in files.values():
            path.unlink()
    return files


def _digest(name: str) -> str:
    """Of the curves and of the code that draws them."""
    sources = (RESULTS / f"{name}.csv", Path(plots.__file__), Path(curves.__file__))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:10]
