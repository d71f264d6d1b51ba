"""Trains agents in about two minutes on two CPU cores, and shows what they learnt.

    python -m baselines.demo --out out/demo

First one agent balances a pole (CartPole-v1). Then five taggers and fifteen runners learn at the same time, each side
with a policy of its own, from nothing but the rewards for being caught and for catching (TagContinuous-v0).
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from gpuzoo.core.files import replacing
from gpuzoo.interfaces.batch import BatchEnv
from gpuzoo.render import Canvas, save_animation, tile

from .ppo import PPO
from .report.evaluation import evaluate, play
from .report.plots import curve, finish
from .run import CHECKPOINT, Result, train
from .train.args import PPOArgs as Args
from .train.networks import Policy
from .train.trainer import Trainer

GAME = "TagContinuous-v0"
DEVICE = "auto"  # a GPU where there is one
#: Fewer runners than the game's default and fewer actions, so that two cores see many chases: agents turn by right
#: angles, and are slow in relation to the reach of a tagger.
FIELD: dict[str, Any] = {
    "num_taggers": 5, "num_runners": 15, "num_other_agents_observed": 8, "max_episode_steps": 100,
    "max_speed": 0.5, "tagging_distance": 0.03, "tag_reward_for_tagger": 1.0, "tag_penalty_for_runner": -1.0,
    "end_of_game_reward_for_runner": 0.0,
    "num_turn_levels": 4, "min_turn": -math.pi / 2, "max_turn": math.pi,
    "num_acceleration_levels": 2, "min_acceleration": -0.25, "max_acceleration": 0.25,
}  # fmt: skip
#: who plays, in the table and in the learning curve
MATCHES = {
    "random taggers, random runners": (False, False),
    "trained taggers, random runners": (True, False),
    "random taggers, trained runners": (False, True),
    "trained taggers, trained runners": (True, True),
}
SIZE, TRAIL = 320, 8  # pixels of a panel of the animation, and steps that one sees behind an agent


def players(policies: Mapping[str, Policy], match: str) -> dict[str, Policy | None]:
    """The players of a match. A group whose player is None acts at random."""
    chosen = dict(zip(("tagger", "runner"), MATCHES[match], strict=True))
    return {group: policies[group] if trained else None for group, trained in chosen.items()}


def caught(policies: Mapping[str, Policy], match: str, episodes: int) -> float:
    """The share of the runners that are caught before time is up."""
    found = evaluate(GAME, players(policies, match), episodes, seed=7, config=FIELD, device=DEVICE)
    return float(found.terminated["runner"].mean())


def film(policies: Mapping[str, Policy], match: str, seed: int, steps: int) -> list[NDArray[np.uint8]]:
    """Pictures of the first steps of one episode, with the match as a title and a trail behind every agent."""
    title = Canvas(SIZE, 28)
    title.background("white")
    title.view(0, 0, SIZE, 28)
    title.text(SIZE / 2, 13, match, height=13, bold=True)
    head = title.array()
    env = BatchEnv(GAME, 1, device=DEVICE, output="torch", autoreset_mode="disabled", **FIELD)
    simulator, taggers = env.simulator, FIELD["num_taggers"]
    game = play(env, players(policies, match), seed)
    paths: list[NDArray[Any]] = []
    pictures = []
    for _ in range(steps):
        next(game)
        state = {name: simulator.backend.to_numpy(array)[0] for name, array in simulator.state(0).items()}
        paths = [*paths[-TRAIL:], np.stack([state["x"], state["y"]], -1)]
        canvas = Canvas(SIZE, SIZE)
        simulator.env.render(simulator.cfg, state, canvas)
        for agent, path in enumerate(np.stack(paths, 1)):
            if agent < taggers or state["tagged_by"][agent - taggers] < 0:
                canvas.trail(path, colour="red" if agent < taggers else "blue", width=1.6)
        pictures.append(np.concatenate([head, canvas.array()]))
    env.close()
    return pictures


def draw_curves(points: list[dict[str, float]], chance: float, tag: Result, cartpole: Result, path: Path) -> None:
    """The learning curves of both games."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 4.2), layout="tight")
    axes = figure.subplots(1, 3)
    axes[0].axhline(chance, linestyle="--", color="#9aa4b2", label="random taggers, random runners")
    trained = [match for match in MATCHES if any(MATCHES[match])]
    for match, colour in zip(trained, ("#e5575a", "#4285e0", "#8a66d3"), strict=True):
        values = [point[match] for point in points]
        axes[0].plot([p["steps"] for p in points], values, color=colour, marker="o", markersize=4, label=match)
    axes[0].set_ylim(0, 100)
    axes[0].set_ylabel("runners caught in an episode, %")
    axes[0].set_title(f"{GAME}: who catches whom", loc="left", fontsize=11)
    axes[0].legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.45, -0.2), ncol=2)
    for axis, result, colours in (
        (axes[1], tag, {"tagger": "#e5575a", "runner": "#4285e0"}), (axes[2], cartpole, {"agent": "#4cae72"}),
    ):  # fmt: skip
        for group, colour in colours.items():
            curve(axis, result.rows, group, colour)
        axis.set_ylabel("mean return of an agent")
    axes[1].set_title(f"{GAME}: both learn at once", loc="left", fontsize=11)
    axes[1].legend(fontsize=8, frameon=False)
    axes[2].set_title("CartPole-v1", loc="left", fontsize=11)
    for axis in axes:
        finish(axis)
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=120)


def main() -> None:
    """Trains, measures, draws."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path("out/demo"), help="folder for what is made (default: out/demo)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of everything (default: 1)")
    parser.add_argument("--pole-steps", type=lambda s: int(float(s)), default=120_000, help="steps of CartPole")
    parser.add_argument("--tag-steps", type=lambda s: int(float(s)), default=230_000, help="steps of TagContinuous")
    options = parser.parse_args()
    out: Path = options.out
    console, start = Console(highlight=False), time.perf_counter()

    console.print("[bold]1. CartPole-v1[/bold]: one agent pushes a cart so that the pole on it stays upright.")
    cartpole = train(
        PPO,
        Args("CartPole-v1", num_envs=32, num_steps=32, total_steps=options.pole_steps, epochs=10, ent_coef=0.0, lr=1e-3,
             gamma=0.98, gae_lambda=0.8, seed=options.seed, device=DEVICE),
    )  # fmt: skip
    pole = evaluate("CartPole-v1", cartpole.policies, 200, device=DEVICE, greedy=True).returns["agent"]
    chance = evaluate("CartPole-v1", {}, 200, device=DEVICE).returns["agent"]
    console.print(
        f"   The pole stood for {chance.mean():.0f} of 500 steps with random pushes, and stands for "
        f"[bold]{pole.mean():.0f}[/bold] after {cartpole.seconds:.0f} s of training.\n"
    )

    console.print(
        f"[bold]2. {GAME}[/bold]: {FIELD['num_taggers']} taggers chase {FIELD['num_runners']} runners, who leave the "
        "game when they are caught. Both learn."
    )
    args = Args(GAME, num_envs=32, num_steps=32, epochs=4, minibatches=8, lr=2e-3, gamma=0.95, gae_lambda=0.9,
                ent_coef=0.01, hidden=(96, 96), normalize_observations=True, total_steps=options.tag_steps,
                seed=options.seed, device=DEVICE, out=str(out), config=FIELD)  # fmt: skip
    points: list[dict[str, float]] = []

    def measure(trainer: Trainer) -> None:
        if trainer.iteration == 1 or (trainer.iteration and trainer.iteration % max(1, args.iterations // 6) == 0):
            shares = {match: 100 * caught(trainer.policies, match, 24) for match in MATCHES if any(MATCHES[match])}
            points.append({"steps": trainer.steps, **shares})

    result = train(PPO, args, on_iteration=measure)
    shares = {match: caught(result.policies, match, 100) for match in MATCHES}
    table = Table(title="Runners that are caught within 100 steps", title_justify="left")
    for column in ("taggers", "runners"):
        table.add_column(column)
    table.add_column("caught", justify="right")
    for match in MATCHES:
        taggers, runners = (part.split()[0] for part in match.split(", "))
        table.add_row(taggers, runners, f"{shares[match]:.0%}")
    console.print(table)

    draw_curves(points, 100 * shares["random taggers, random runners"], result, cartpole, out / "learning_curve.png")
    films = [film(result.policies, match, options.seed, 100) for match in MATCHES]
    pictures = [tile(quarters, 2) for quarters in zip(*films, strict=True)]
    save_animation([*pictures, *[pictures[-1]] * 15], out / "agents.gif", fps=12)
    gpuzoo = "gpuzoo" if shutil.which("gpuzoo") else os.path.relpath(Path(sys.executable).with_name("gpuzoo"))
    console.print(
        f"\nIn [bold]{out}[/bold]: agents.gif (the chase before and after), learning_curve.png, {CHECKPOINT}. "
        f"{time.perf_counter() - start:.0f} s in all. Next:\n\n"
        f"  {gpuzoo} play {GAME} --checkpoint {out / CHECKPOINT} -o tag.gif\n"
        f"  {gpuzoo} list\n"
        f"  {gpuzoo} train SimpleSpread-v0  # on a GPU where there is one\n",
        soft_wrap=True,
    )


if __name__ == "__main__":
    main()
