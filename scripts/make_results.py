"""Trains agents for every registered game and writes what came of it to ``baselines/results``.

    python scripts/make_results.py                                # all games, five seeds each
    python scripts/make_results.py CartPole-v1 --seeds 3 --out my_results
    python scripts/make_results.py Overcooked-v0-coordination_ring  # one of several variants
    python scripts/make_results.py --quick                        # a trial of a few seconds per game, to out/results
    python scripts/make_results.py Humanoid-v5 --runs out/pretrained  # a run for each seed, which goes on if killed

For each game: ``<ID>.json`` with the command, the hyper-parameters and the scores of each seed; ``<ID>.csv`` with the
learning curves, which the documentation draws. What is trained, and what it is compared with, stands in
``baselines/configs/<ID>.json``, if there is one; its keys ``reference``, ``goal``, ``mappo`` and ``open_spiel`` are
read here only. Its ``note``, which says what hinders a weak result, is read by the documentation only. With ``mappo``,
the options that differ for a central critic (``{}`` if none), that is trained as well, to ``<ID>-MAPPO.*``. ``ways``
are other settings of the game, such as further maps: each has a name, options that differ, and a goal of its own if it
has one, and is trained to ``<ID>-<NAME>.*``; or another ``algorithm`` than PPO, with its options. ``lessons``
is a list of such options for runs that follow each other: each begins with the policies that learned before. With
``past_selves`` the policies also play against those of each lesson before the last one. Seeds learn as one population.
With ``--runs`` each has a run of its own in a folder, named ``<ID>-<seed>``, which goes on where it was: for long
trainings, and for ``make_pretrained.py``, which takes the best of them from ``out/pretrained``.
Where ``open_spiel`` names a board game of OpenSpiel (``pip install open_spiel``), its Monte-Carlo tree search is an
opponent, too. One file, in the order of a run: what is trained, the training, the scores, and the file of results.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from baselines import run
from baselines.report import curves, match
from baselines.report.evaluation import Evaluation, evaluate
from baselines.train.args import Args
from baselines.train.config_files import RESULTS_ONLY
from baselines.train.networks import Policy
from gpuzoo import registry
from gpuzoo.core.backend import make_backend
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.files import replacing
from gpuzoo.tools import provenance
from gpuzoo.tools.players import EXPERT

ROOT = Path(__file__).resolve().parents[1]
CONFIGS, RESULTS = ROOT / "baselines" / "configs", ROOT / "baselines" / "results"
EPISODES, QUICK_EPISODES = 200, 8
SIMULATIONS = 100  # of a tree search, for each move
QUICK_ITERATIONS = 3

Scores = dict[str, dict[str, float]]  # by scenario and measure

OF_RUNS = ("algorithm", "lessons")  # what a way may say beside options

#: options that say where and how a run goes, not what it learns
ASIDE = (
    "game", "algorithm", "seed", "population", "device", "out", "resume", "save_every", "eval_every", "eval_episodes",
    "video", "track", "threads", "executor", "load", "freeze",
)  # fmt: skip


# ---- training ----


@dataclasses.dataclass
class Trained:
    """What training left.

    Attributes:
        policies: for each seed, by group.
        steps: (T,), of all envs of a seed, after those of the lessons that go before.
        returns: by group that learns in the last lesson, (T, seeds), NaN where no episode ended.
        seconds: of all seeds together.
    """

    policies: list[dict[str, Policy]]
    steps: NDArray[np.int64]
    returns: dict[str, NDArray[np.float64]]
    seconds: float


def variants(game: str) -> dict[str, dict[str, Any]]:
    """What is trained, by the ends of the names of its files: options beside those of the config, and `OF_RUNS`."""
    about = about_game(game)
    central = {"-MAPPO": {"critic": "central"} | about["mappo"]} if "mappo" in about else {}
    ways = {
        f"-{name}": {key: value for key, value in way.items() if key in OF_RUNS or key not in RESULTS_ONLY}
        for name, way in about.get("ways", {}).items()
    }
    return {"": {}} | central | ways


def runs_of(name: str) -> list[tuple[str, str]]:
    """Games and variants: all of a game, or the one of which a file of results has the name.

    Raises:
        ValueError: no such game.
    """
    for game in registry.ids():
        if name.startswith(f"{game}-") and name.removeprefix(game) in variants(game):
            return [(game, name.removeprefix(game))]
    game = type(registry.get(name)).id
    return [(game, variant) for variant in variants(game)]


def about_game(game: str, variant: str = "") -> dict[str, Any]:
    """The game's config; that of one of its ways has the way's own reference, goal and note instead."""
    path = CONFIGS / f"{type(registry.get(game)).id}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    way = found.get("ways", {}).get(variant.removeprefix("-"))
    return found if way is None else found | {key: way.get(key) for key in ("reference", "goal", "note")}


def arguments(game: str, seeds: int, quick: bool = False, apart: bool = False, **options: Any) -> list[Args]:
    """The runs that train all seeds: one population, or a run for each, ``apart`` or as past selves or lessons want."""
    *others, last = lessons(game, options)
    args = made(game, options | last, seed=1)
    if quick:
        args = dataclasses.replace(args, total_steps=QUICK_ITERATIONS * args.num_envs * args.num_steps)
    if args.pool or apart or seeds == 1 or others:
        return [dataclasses.replace(args, seed=1 + k) for k in range(seeds)]
    return [dataclasses.replace(args, population=seeds)]


def made(game: str, options: Mapping[str, Any], **more: Any) -> Any:
    """The arguments of a run by the algorithm that the options name."""
    _, kind = run.algorithm(options.get("algorithm", "ppo"))
    return kind.of(game, **of_training(options), **more)


def of_training(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those that a trainer has."""
    return {name: value for name, value in options.items() if name not in OF_RUNS}


def lessons(game: str, options: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """The options that differ in each of the runs that train one after the other; most games have one run."""
    return list((options or {}).get("lessons", about_game(game).get("lessons", [{}])))


def before(args: Args, **options: Any) -> list[Args]:
    """The runs that go before, shorter in a trial. Each lies in a folder beside that of the run."""
    game = str(args.game)
    *first, last = lessons(game, options)
    share = args.total_steps / made(game, options | last).total_steps
    runs = []
    for k, lesson in enumerate(first, 1):
        one = made(game, options | lesson, seed=args.seed, device=args.device, resume=args.resume)
        steps = max(int(one.total_steps * share), one.num_envs * one.num_steps)
        runs.append(dataclasses.replace(one, total_steps=steps, out=f"{args.out}-lesson-{k}"))
    return runs


def learned(runs: Sequence[Args]) -> dict[str, str]:
    """The last checkpoint of each policy that learned in one of the runs."""
    return {
        name: f"{args.out}/{run.CHECKPOINT}" for args in runs for name in args.check()[1] if name not in args.freeze
    }


def steps_of(args: Args) -> int:
    """Those of all envs of a member: whole rollouts."""
    return args.iterations * args.num_envs * args.num_steps


def commands(args: Args, variant: str = "", alone: bool = True, **options: Any) -> list[str]:
    """What a user types for the same run, ``alone`` or beside those of other seeds; the game's config has the rest."""
    out = f"out/{args.game}{variant}" + ("" if alone else f"-{args.seed}")
    last = dataclasses.replace(args, out=out)
    runs = [*before(last, **options), last]
    return [
        typed(one, of_training(options) | lesson, learned(runs[:k]))
        for k, (one, lesson) in enumerate(zip(runs, lessons(str(args.game), options), strict=True))
    ]


def typed(args: Args, options: Mapping[str, Any], load: Mapping[str, str]) -> str:
    """The command of a run whose options differ from those of the game's config."""
    words = ["python", "-m", f"baselines.{args.algorithm}", str(args.game), "--seed", str(args.seed)]
    words += ["--population", str(args.population)] if args.population > 1 else []
    for name, value in options.items():
        if name == "config":
            words += [word for parameter, x in value.items() for word in (f"--config.{parameter}", str(x))]
        else:
            words += flag(name.replace("_", "-"), value)
    words += flag("load", load) if load else []
    return shlex.join([*words, "--out", args.out])


def flag(name: str, value: Any) -> list[str]:
    """An option and its value as the command line takes them."""
    if isinstance(value, bool):
        return [f"--{'' if value else 'no-'}{name}"]
    if isinstance(value, Mapping):
        value = [f"{key}={x}" for key, x in value.items()]
    return [f"--{name}", ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)]


def hyperparameters(args: Args) -> dict[str, Any]:
    """What a run learns with, as JSON."""
    return {k: v for k, v in args.about().items() if k not in ASIDE}


def taught(args: Args, quiet: bool, **options: Any) -> run.Result:
    """Trains the lessons of a run, one after the other; the seconds are those of all."""
    runs, seconds = [*before(args, **options), args], 0.0
    for k, one in enumerate(runs):
        trainer, _ = run.algorithm(one.algorithm)
        done = run.train(trainer, dataclasses.replace(one, load=learned(runs[:k])), quiet)
        seconds += done.seconds
    return dataclasses.replace(done, seconds=seconds)


def train(runs: Sequence[Args], quiet: bool, **options: Any) -> Trained:
    """Trains all seeds, each run in its own ``out``; ``options`` are those of the variant."""
    policies: list[dict[str, Policy]] = []
    returns: dict[str, list[NDArray[np.float64]]] = {}
    seconds, steps = 0.0, np.empty(0, np.int64)
    for args in runs:
        done = taught(args, quiet, **options)
        seconds += done.seconds
        taken = sum(map(steps_of, before(args, **options)))
        steps = taken + np.array([row["steps"] for row in done.rows], np.int64)
        members = run.stacked(run.load_members(Path(args.out), len(done.rows))) if args.population > 1 else {}
        for group in (g for g in done.policies if g not in args.freeze):
            alone = [[row.get(f"return/{group}", np.nan)] for row in done.rows]
            returns.setdefault(group, []).append(np.asarray(members.get(group, alone), np.float64))
        for k in range(args.population):
            policies.append({group: policy.member(k) for group, policy in done.policies.items()})
    return Trained(policies, steps, {g: np.concatenate(v, 1) for g, v in returns.items()}, seconds)


# ---- scores ----


def scenarios(policies: Mapping[str, Policy]) -> dict[str, dict[str, Policy]]:
    """The players of each kind of match, by its name. Agents without a player act at random."""
    if len(policies) == 1:
        return {"trained": dict(policies), "random play": {}}
    one = {f"{group} trained, others random": {group: policy} for group, policy in policies.items()}
    return one | {"all trained": dict(policies), "random play": {}}


def score(args: Args, policies: Mapping[str, Policy], episodes: int, seed: int) -> Scores:
    """Plays all scenarios, on seeds that training does not use.

    Actions are drawn as in training, but in turn-based games the likeliest is taken: there it is the stronger play, and
    chance comes in by the opponent.

    Returns:
        By scenario: the mean return of an agent of each group, and the share of episodes with each of the game's
        outcomes, such as ``won``; in turn-based games of rivals instead how often each seat wins against random
        players, and its score, where a draw is half a win; and its mean return, if games are worth more or less than 1.
        What is called ``random ...`` is the same with nobody trained. ``expert`` is the game's own expert, if it has
        one.
    """
    env, out = registry.get(args.game), {}

    def seen(players: Mapping[str, Policy]) -> Evaluation:
        greedy = env.turn is not None
        return evaluate(args.game, players, episodes, seed, args.config, device=args.device, greedy=greedy)

    if env.turn is None or env.interaction == "cooperative":
        for name, players in scenarios(policies).items():
            out[name] = measured(seen(players))
        return out | expert_scores(args, episodes, seed)
    ((group, policy),) = policies.items()
    nobody = seen({}).returns[group]
    counts = bool(np.isin(nobody, (-1, 0, 1)).all())  # all that is won or lost is a game
    for seat in range(nobody.shape[1]):
        name = f"{group}_{seat}"
        for title, x in ((name, seen({name: policy}).returns[group]), (f"random {name}", nobody)):
            points = points_of(x, seat)
            worth = {} if counts else {"return": float(x[:, seat].mean(dtype=np.float64))}
            out[f"{title} against random play"] = worth | results_of_games(points)
    return out


def expert_scores(args: Args, episodes: int, seed: int) -> Scores:
    """What the game's own expert reaches on the same seeds, if there is one."""
    if not registry.get(args.game).expert:
        return {}
    players = match.arrange(args.game, {}, EXPERT, args.config).players
    return {EXPERT: measured(evaluate(args.game, players, episodes, seed, args.config, device=args.device))}


def measured(seen: Evaluation) -> dict[str, float]:
    """The mean return of an agent of each group, and the rates of the game's outcomes."""
    return {group: float(x.mean(dtype=np.float64)) for group, x in seen.returns.items()} | seen.rates


def points_of(returns: NDArray[Any], seat: int) -> NDArray[Any]:
    """1, 0 and -1 for each episode that a seat wins, draws or loses against the best of its rivals.

    Partners, who always have the same return as the seat, are no rivals.

    Args:
        returns: (episodes, seats).
        seat: whose points.
    """
    mine = returns[:, seat]
    rivals = returns[:, (returns != mine[:, None]).any(0)]
    return np.sign(mine - rivals.max(1)) if rivals.size else np.zeros_like(mine)


def past_selves(args: Args, policies: Mapping[str, Policy], episodes: int, **options: Any) -> Scores:
    """The measures while one group plays as it does in the end, and the others as after a lesson."""
    out: Scores = {}
    for k, lesson in enumerate(before(args, **options), 1):
        then = match.arrange(args.game, {}, f"{lesson.out}/{run.CHECKPOINT}", args.config).players
        for group in policies:
            players = {**then, group: policies[group]}
            seen = evaluate(args.game, players, episodes, args.seed, args.config, device=args.device)
            out[f"{group} trained, others as after lesson {k}"] = measured(seen)
    return out


def results_of_games(points: NDArray[Any]) -> dict[str, float]:
    """Of games that count 1, 0 and -1 for a win, a draw and a loss."""
    wins, draws, losses = (float(np.mean(points == x)) for x in (1, 0, -1))
    return {"score": wins + draws / 2, "wins": wins, "draws": draws, "losses": losses}


def tree_search(args: Args, about: Mapping[str, Any], policies: Mapping[str, Policy], games: int, seed: int) -> Scores:
    """The scores against OpenSpiel's tree search, if that is installed."""
    name = about.get("open_spiel")
    if not name:
        return {}
    try:
        from spiel_opponent import play
    except ImportError:
        warnings.warn(f"{args.game}: no games against tree search: pip install open_spiel.", stacklevel=2)
        return {}
    ((group, policy),) = policies.items()
    return {
        f"{title}{group}_{seat} against tree search ({SIMULATIONS} simulations)": results_of_games(
            play(args.game, name, player, seat, games, SIMULATIONS, seed)
        )
        for seat in range(2)
        for title, player in (("", policy), ("random ", None))
    }


def summary(seeds: Sequence[Scores]) -> dict[str, dict[str, Any]]:
    """By scenario and measure: each seed's score, their mean, and the standard error of that."""
    out: dict[str, dict[str, Any]] = {}
    for scenario, measures in seeds[0].items():
        for measure in measures:
            values = np.array([seed[scenario][measure] for seed in seeds])
            error = float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else None
            out.setdefault(scenario, {})[measure] = {
                "mean": rounded(float(values.mean())), "standard_error": rounded(error),
                "seeds": [rounded(float(x)) for x in values],
            }  # fmt: skip
    return out


def rounded(value: float | None) -> float | None:
    """Five digits: more say nothing."""
    return None if value is None else float(f"{value:.5g}")


def goal_of(env: EnvDef, about: Mapping[str, Any], scores: Mapping[str, Any]) -> dict[str, Any] | None:
    """The goal: that of the game's config, or Gymnasium's threshold; None if nobody has stated one."""
    goal: dict[str, Any] | None = about.get("goal")
    if goal is None and env.reward_threshold is not None:
        (group,) = scores["trained"]
        return {"scenario": "trained", "measure": group, "at_least": env.reward_threshold,
                "because": "Gymnasium's reward_threshold"}  # fmt: skip
    return goal


def verdict(env: EnvDef, about: Mapping[str, Any], scores: Mapping[str, Any]) -> tuple[bool, str | None]:
    """Whether the game is solved, and the goal; None if nobody has stated one."""
    goal = goal_of(env, about, scores)
    if goal is None:
        return False, None
    measure = scores.get(goal["scenario"], {}).get(goal["measure"])
    what = f"at least {goal['at_least']:g} for {goal['measure']} ({goal['scenario']}): {goal['because']}"
    if measure is None:
        return False, f"not measured: {what}"
    return bool(measure["mean"] >= goal["at_least"]), what


# ---- files ----


def make(
    game: str,
    seeds: int,
    out: Path,
    quick: bool = False,
    quiet: bool = False,
    variant: str = "",
    folder: Path | None = None,
) -> dict[str, Any]:
    """Trains, scores and writes one game.

    Args:
        game: its id.
        seeds: how many, from 1 on.
        out: folder to write to.
        quick: a few updates and episodes only, to see that it runs.
        quiet: no progress bar.
        variant: a key of `variants`.
        folder: where each seed has a run of its own, which goes on if it was begun; None: seeds learn as a population.

    Returns:
        What the JSON file says.
    """
    env, about, options = registry.get(game), about_game(game, variant), variants(game)[variant]
    runs, episodes = arguments(game, seeds, quick, bool(folder), **options), QUICK_EPISODES if quick else EPISODES
    numbers, name = list(range(1, seeds + 1)), f"{game}{variant}"
    with tempfile.TemporaryDirectory() as passing:
        places = [str((folder or Path(passing)) / f"{name}-{args.seed}") for args in runs]
        in_places = [dataclasses.replace(x, out=out, resume=bool(folder)) for x, out in zip(runs, places, strict=True)]
        trained = train(in_places, quiet, **options)
        each = [
            score(runs[0], policies, episodes, seed) | tree_search(runs[0], about, policies, episodes, seed)
            for seed, policies in zip(numbers, trained.policies, strict=True)
        ]
        if about.get("past_selves"):
            for scored, args, policies in zip(each, in_places, trained.policies, strict=True):
                scored |= past_selves(args, policies, episodes, **options)
    scores = summary(each)
    solved, why = verdict(env, about, scores)
    steps = int(trained.steps[-1])
    device = next(iter(trained.policies[0].values())).flat.device
    machine = provenance.describe(make_backend(str(device), None))
    found = {
        "game": game, "algorithm": runs[0].algorithm,
        "commands": [x for args in runs for x in commands(args, variant, len(runs) == 1, **options)],
        "hyperparameters": hyperparameters(runs[0]), "seeds": numbers, "steps_per_seed": steps,
        "seconds": rounded(trained.seconds), "steps_per_second": rounded(steps * seeds / trained.seconds),
        "machine": {k: machine[k] for k in ("device", "cpu", "cores", "gpu")},
        "episodes": episodes, "scores": scores, "reference": about.get("reference"), "solved": solved, "goal": why,
    }  # fmt: skip
    with replacing(out / f"{name}.json") as file:
        file.write((json.dumps(found, indent=1) + "\n").encode())
    curves.write(out / f"{name}.csv", trained.steps, trained.returns, numbers)
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Makes the results of the games that are named, or of all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0], allow_abbrev=False)
    parser.add_argument("games", nargs="*", metavar="ID", help="games, or files of results (default: all)")
    parser.add_argument("--seeds", type=int, default=5, help="how many seeds (default: 5)")
    parser.add_argument("--quick", action="store_true", help="a trial: few steps, few episodes")
    parser.add_argument(
        "--out", type=Path, help=f"folder (default: {RESULTS.relative_to(ROOT)}, of a trial out/results)"
    )
    parser.add_argument("--runs", type=Path, help="folder for a run of each seed (default: one population, not kept)")
    chosen = parser.parse_args(argv)
    if chosen.seeds < 1:
        parser.error(f"--seeds must be positive, not {chosen.seeds}.")
    out = chosen.out or (Path("out/results") if chosen.quick else RESULTS)
    try:
        runs = [run for name in chosen.games or registry.ids() for run in runs_of(name)]
    except (ValueError, TypeError) as error:
        parser.error(str(error))
    for game, variant in runs:
        found = make(game, chosen.seeds, out, chosen.quick, variant=variant, folder=chosen.runs)
        said = "solved" if found["solved"] else "not solved" if found["goal"] else "no goal is stated"
        print(f"{game}{variant}: {said}" + (f"; the goal is {found['goal']}" if found["goal"] else ""))
        for scenario, measures in found["scores"].items():
            means = ", ".join(f"{measure} {value['mean']:g}" for measure, value in measures.items())
            print(f"  {scenario}: {means}")


if __name__ == "__main__":
    main()
