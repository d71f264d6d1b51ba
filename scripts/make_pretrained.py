"""Trains the agents that gpuzoo brings along, one game after the other, and writes them to ``baselines/pretrained``.

    python scripts/make_pretrained.py                        # every game with results that has none
    python scripts/make_pretrained.py CartPole-v1 Pong-v0    # these, anew
    python scripts/make_pretrained.py --list                 # what would be trained, the quickest first

The agents of a game are trained as those of the better variant of its results were, with the seeds of the results but
without a population: the best seed first, until one is as good as the results' mean. A run that was killed goes on from
its checkpoint in ``--out``, and one that is there already is not run again.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import make_results  # it finds the clone's packages for all below
import torch
from make_results import RESULTS, ROOT

from baselines import run
from baselines.ppo import Args
from baselines.report import match, pretrained
from baselines.report.evaluation import evaluate
from gpuzoo import registry
from gpuzoo.tools.players import RANDOM

FOLDER = ROOT / "baselines" / "pretrained"
EPISODES = 1000
TOLERANCE = 0.02  # by which agents may fall short of the results' mean


@dataclasses.dataclass
class Best:
    """How the best agents of a game's results were trained.

    Attributes:
        game: its id.
        variant: a key of `make_results.variants`.
        seeds: those of the results, the best one first.
        seconds: that one of them takes.
        scenario, measure: what they are compared by, that of the goal.
        enough: a score that is about the results' mean.
    """

    game: str
    variant: str
    seeds: list[int]
    seconds: float
    scenario: str
    measure: str
    enough: float


def best(game: str) -> Best:
    """The variant with the best mean, of those that play with the game's own settings, by the measure of the goal.

    Without a goal, agents that work together are compared as a team.

    Raises:
        ValueError: the game has no results.
    """
    env, about = registry.get(game), make_results.about_game(game)
    own = [v for v, options in make_results.variants(game).items() if not v or not options.get("config")]
    found = {v: RESULTS / f"{game}{v}.json" for v in own}
    results = {v: json.loads(path.read_text()) for v, path in found.items() if path.is_file()}
    if not results:
        raise ValueError(f"{game} has no results: run python scripts/make_results.py {game}.")

    def compared(variant: str) -> tuple[str, str, dict[str, Any]]:
        scores = results[variant]["scores"]
        goal = make_results.goal_of(env, about, scores)
        together = "all trained" if env.interaction == "cooperative" and "all trained" in scores else next(iter(scores))
        scenario = goal["scenario"] if goal else together
        measure = goal["measure"] if goal else next(iter(scores[scenario]))
        return scenario, measure, scores[scenario][measure]

    variant = max(results, key=lambda v: compared(v)[2]["mean"])
    scenario, measure, score = compared(variant)
    of_seed = dict(zip(results[variant]["seeds"], score["seeds"], strict=True))
    seeds = sorted(of_seed, key=of_seed.__getitem__, reverse=True)
    enough = score["mean"] - TOLERANCE * abs(score["mean"])
    return Best(game, variant, seeds, results[variant]["seconds"] / len(seeds), scenario, measure, enough)


def arguments(chosen: Best, seed: int, out: Path, **options: Any) -> Args:
    """The run that trains one seed again."""
    (args,) = make_results.arguments(chosen.game, 1, **make_results.variants(chosen.game)[chosen.variant])
    folder = str(out / f"{chosen.game}{chosen.variant}-{seed}")
    return dataclasses.replace(args, seed=seed, out=folder, resume=True, **options)


def train(chosen: Best, out: Path, quiet: bool, **options: Any) -> Path:
    """Trains seeds, the best of the results first, until one is good enough; returns the best one's checkpoint."""
    scores: dict[Path, float] = {}
    for seed in chosen.seeds:
        args = arguments(chosen, seed, out, **options)
        policies = make_results.taught(args, quiet, **make_results.variants(chosen.game)[chosen.variant]).policies
        reached = make_results.score(args, policies, make_results.EPISODES, seed).get(chosen.scenario, {})
        scores[Path(args.out) / run.CHECKPOINT] = reached.get(chosen.measure, math.inf)  # against tree search: unknown
        if reached.get(chosen.measure, math.inf) >= chosen.enough:
            break
    return max(scores, key=scores.__getitem__)


def measured(game: str, file: Path, episodes: int = EPISODES, seed: int = 0) -> dict[str, Any]:
    """What the agents of a checkpoint reach, by sides; of rivals who move in turn, the first one's against random play.

    As in results, actions are drawn, but in turn-based games the likeliest is taken.
    """
    env = registry.get(game)
    turns = env.turn is not None
    if turns and env.interaction != "cooperative":
        (group,) = env.agents(env.Config())
        arranged = match.arrange(game, {f"{group}_0": str(file)})
    else:
        arranged = match.arrange(game, {}, str(file))
    seen = evaluate(game, arranged.players, episodes, seed, arranged.config, greedy=turns)
    sides = match.summary(arranged, seen)
    return {
        name: {
            "mean_return": float(f"{side['mean_return']:.6g}"),
            "standard_error": float(f"{side['standard_error']:.3g}"),
            "episodes": side["episodes"],
        }
        for name, side in sides.items()
        if side["player"] != RANDOM
    }


def same(a: dict[str, Any], b: dict[str, Any], errors: float) -> bool:
    """Whether all sides have the same returns, within so many standard errors of the difference."""
    for side, mine in a.items():
        error = math.hypot(mine["standard_error"], b[side]["standard_error"])
        rounding = 1e-5 * abs(mine["mean_return"])
        if abs(mine["mean_return"] - b[side]["mean_return"]) > errors * error + rounding:
            return False
    return True


def make(chosen: Best, out: Path, folder: Path = FOLDER, quiet: bool = False, **options: Any) -> dict[str, Any]:
    """Trains one game's agents and writes their file.

    Half precision is kept if it keeps the returns, on the same episodes, within one standard error.

    Returns:
        The returns that the file reaches, by sides.
    """
    whole, target = train(chosen, out, quiet, **options), folder / f"{chosen.game}.safetensors"
    want, draft = measured(chosen.game, whole), whole.with_name("pretrained.safetensors")
    returns = want
    for dtype in (torch.float16, torch.float32):
        pretrained.write(whole, draft, dtype=dtype)
        returns = measured(chosen.game, draft)
        if same(returns, want, 1.0):
            break
    pretrained.write(whole, target, returns, dtype)
    return returns


def main(argv: Sequence[str] | None = None) -> None:
    """Makes the pretrained agents of the games that are named, or of all with results that have none."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0], allow_abbrev=False)
    parser.add_argument("games", nargs="*", metavar="ID", help="games (default: all with results and without a file)")
    parser.add_argument(
        "--out", type=Path, default=Path("out/pretrained"), help="where runs lie (default: %(default)s)"
    )
    parser.add_argument("--threads", type=int, default=0, help="torch's CPU threads, see baselines.ppo")
    parser.add_argument("--list", action="store_true", help="say what would be trained, and end")
    given = parser.parse_args(argv)
    trained = {path.stem for path in FOLDER.glob("*.safetensors")}
    with_results = [game for game in registry.ids() if (RESULTS / f"{game}.json").is_file()]
    try:
        chosen = [best(registry.get(game).id) for game in given.games or with_results]
    except (ValueError, TypeError) as error:
        parser.error(str(error))
    for one in sorted(chosen, key=lambda x: x.seconds):
        if not given.games and one.game in trained:
            continue
        print(
            f"{one.game}{one.variant}, {one.scenario}: {one.measure}, want {one.enough:g}, {one.seconds:.0f} s a seed",
            flush=True,
        )
        if not given.list:
            for side, reached in make(one, given.out, threads=given.threads).items():
                print(f"  {side}: mean return {reached['mean_return']:g} ± {reached['standard_error']:g}", flush=True)


if __name__ == "__main__":
    main()
