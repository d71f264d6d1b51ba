"""Writes ``docs/results.md`` from the files in ``baselines/results``; ``--write`` replaces it, else it is printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gen_games import number, table

import gpuzoo

ROOT = Path(__file__).parents[1]
RESULTS, CONFIGS = ROOT / "baselines" / "results", ROOT / "baselines" / "configs"
PAGE = ROOT / "docs" / "results.md"

HEAD = """\
<!-- written by docs/results_table.py; do not edit -->

# Results

What PPO makes of each game, trained with what stands in `baselines/configs` for it. A score is that of a policy at the
end of its training, in {episodes} episodes that training did not see. Actions are drawn as in training; in board games
the likeliest move is taken. Where a line says `a ± b`, `a` is the mean over {seeds} seeds and `b` its standard error.
A return is the mean over the agents of a group. In board games a win counts 1 and a draw 0.5.

Hyper-parameters were tuned on some of the seeds that are reported, so a new seed may do a little worse. Many runs
shared their cores with other programs: alone they take a half or a quarter of the time.

In games of several agents each learns from its own observations (IPPO). Where a line says MAPPO, a critic has seen what
all see.

In games of several sides a return says little by itself. So there is one line for each side that is trained while all
others play randomly, and one for each side when all of them are trained against each other. The first line
is the one that the goal speaks of.
"""

TAIL = """\
## Make them yourself

The commands above train the same seeds. This trains and scores all games, or those that are named, and writes
`baselines/results`; then this page:

```bash
python scripts/make_results.py
python docs/results_table.py --write
```

Games against tree search need `pip install open_spiel`. Without it they are left out.
"""


MAPPO = "-MAPPO"


def results() -> dict[str, dict[str, Any]]:
    """What the files say, by game, and with a central critic by game and `MAPPO`; what has no file is left out."""
    paths = {name: RESULTS / f"{name}.json" for game in gpuzoo.ids() for name in (game, game + MAPPO)}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.is_file()}


def value(found: dict[str, Any]) -> str:
    """A mean with its standard error."""
    error = found["standard_error"]
    return short(found["mean"]) + (f" ± {short(error)}" if error is not None else "")


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
    """What is scored, the score of random play, and the score; what the goal speaks of comes first."""
    goal = json.loads((CONFIGS / f"{game.removesuffix(MAPPO)}.json").read_text()).get("goal", {})
    wanted = goal.get("scenario"), goal.get("measure")
    scored = sorted(_scored(found["scores"]), key=lambda line: line[:2] != wanted)
    return [(f"{scenario}: {_name(measure)}", base, score) for scenario, measure, base, score in scored]


def _name(measure: str) -> str:
    return measure if measure == "score" else f"return of {article(measure)}"


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


def overview(found: dict[str, dict[str, Any]]) -> str:
    """The table of all games."""
    rows = []
    for game, result in found.items():
        solved = "yes" if result["solved"] else "**no**"
        reference, what = result["reference"], "none known"
        if reference:  # its first sentence; the rest stands in the game's section
            score, what = reference["score"], reference["what"].partition(". ")[0].removesuffix(".")
            what = what if score is None else f"{number(score)}: {what}"
        last = [what, solved, f"{result['steps_per_seed']:,}", duration(result["seconds"])]
        for k, (scored, base, score) in enumerate(lines(game, result)):
            name = game.replace(MAPPO, ", MAPPO")
            rows.append(
                [f"[{name}](#{game.lower()})" if k == 0 else "", scored, base, score, *(last if k == 0 else [""] * 4)]
            )
    head = ["game", "what is scored", "random play", "PPO", "reference", "solved", "steps per seed", "time, all seeds"]
    return table(head, rows)


def section(game: str, found: dict[str, Any]) -> str:
    """All about one game."""
    machine, reference = found["machine"], found["reference"]
    where = machine["gpu"] or f"{machine['cores']} cores of {machine['cpu']}"
    parts = [
        f"## {game}",
        f"![Learning curves of {game}](../baselines/results/{game}.png)",
        "```bash\n" + "\n".join(found["commands"]) + "\n```",
        f"{len(found['seeds'])} seeds of {found['steps_per_seed']:,} steps: {duration(found['seconds'])}, "
        f"{found['steps_per_second']:,.0f} steps per second, on {where}.",
        f"{'Solved' if found['solved'] else 'Not solved'}. The goal is {found['goal']}.",
    ]
    if reference:
        parts.append(f"Reference: {reference['what']} Source: {reference['source']}")
    games = {s: m for s, m in found["scores"].items() if "wins" in m}
    if games:
        names = ["score", "wins", "draws", "losses"]
        parts.append(table(["who plays", *names], [[s, *(value(m[n]) for n in names)] for s, m in games.items()]))
    return "\n\n".join(parts)


def page() -> str:
    """The page's text."""
    found = results()
    episodes = " or ".join(sorted({str(r["episodes"]) for r in found.values()}))
    seeds = " or ".join(sorted({str(len(r["seeds"])) for r in found.values()}))
    sections = [section(game, result) for game, result in found.items()]
    return "\n\n".join([HEAD.format(episodes=episodes, seeds=seeds).rstrip(), overview(found), *sections, TAIL])


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page())
    else:
        print(page())
