"""``gpuzoo play``: trained agents against each other, or against a person."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from gpuzoo.tools.commands import common
from gpuzoo.tools.commands.options import DeviceOption, JsonOption, dotted, parse_config


def players(words: list[str]) -> dict[str, str]:
    """The players of a match, from ``name=file`` words.

    Raises:
        ValueError: a word without a name or a file.
    """
    for word in words:
        name, _, file = word.partition("=")
        if not (name and file):
            raise ValueError(f"--player takes NAME=FILE, NAME=pretrained, NAME=expert or NAME=random, not {word!r}.")
    return {name: file for name, _, file in (word.partition("=") for word in words)}


def _play_oneself(
    game: str, agent: str | None, checkpoint: str, player: list[str], config: list[str], seed: int, device: str
) -> None:
    """A person plays an agent in a window; prints what came of it."""
    from gpuzoo import registry
    from gpuzoo.baselines.train.command import PRETRAINED
    from gpuzoo.core.backend import make_backend
    from gpuzoo.render.window import need_display
    from gpuzoo.tools import controls, human
    from gpuzoo.tools.live import Live, has_trained
    from gpuzoo.tools.players import RANDOM, SEARCH, TRAINED

    need_display()
    env = registry.get(game)
    values, files = parse_config(env, config), players(player)
    groups = env.agents(env.Config(**{k: v for k, v in values.items() if k != "max_episode_steps"}))
    alone = sum(groups.values()) == 1
    if checkpoint == RANDOM and not files and not alone and has_trained(env):
        checkpoint = PRETRAINED
    match = None
    if checkpoint == SEARCH:
        if files:
            raise ValueError("against a search nobody else plays: leave out --player.")
    elif not alone and {checkpoint, *files.values()} != {RANDOM}:
        common.require("playing against trained agents", "torch", "safetensors")
        from gpuzoo.baselines.report import match as matches

        match = matches.arrange(game, files, checkpoint, values)
        values = match.config
    who = TRAINED if match else SEARCH if checkpoint == SEARCH else RANDOM
    live = Live(
        env, players=dict.fromkeys(groups, who), seed=seed, device=make_backend(device).device, trained=match, **values
    )
    try:
        mine = agent or live.agents[0]
        live.play(mine)  # refuses whom there is not
        out = common.console()
        out.print(f"You are [bold]{mine}[/] in {env.id}. Escape ends.", soft_wrap=True)
        out.print(escape(controls.legend(live.controls[live.group(mine)])), style="dim", soft_wrap=True)
        played = human.play(live, mine)
    finally:
        live.close()
    table = common.table("episode", *(f">{name}" for name in live.agents[:12]))
    for k, returns in enumerate(played):
        table.add_row(str(k + 1), *(f"{returns[name]:.4g}" for name in live.agents[:12]))
    out.print(table if played else "No episode came to its end.")


def play(
    context: typer.Context,
    game: Annotated[str, typer.Argument(metavar="ID", help="Id of the game, such as CartPole-v1.")],
    checkpoint: Annotated[
        str,
        typer.Option(
            metavar="FILE[#MEMBER]",
            help="Who plays all agents: what training left, pretrained, expert or random. With --human also search.",
        ),
    ] = "random",
    pretrained: Annotated[
        bool, typer.Option("--pretrained", help="The agents that gpuzoo brings play, as --checkpoint pretrained.")
    ] = False,
    player: Annotated[
        list[str] | None,
        typer.Option(
            "--player", "-p", metavar="NAME=FILE|pretrained|expert|random",
            help="Who plays a group or an agent instead.",
        ),
    ] = None,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to measure, each with a seed of its own.")] = 256,
    greedy: Annotated[bool, typer.Option("--greedy/--sample", help="Take the likeliest actions or draw them.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the episodes and of the actions.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write an animation: a .gif, .png, .mp4, .webm or .html file.")
    ] = None,
    window: Annotated[bool, typer.Option("--window", help="Show them in a window, until it is closed.")] = False,
    human: Annotated[
        bool,
        typer.Option(
            "--human", help="Play yourself, in a window, by keyboard or mouse: against pretrained agents unless told."
        ),
    ] = False,
    agent: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --human: the agent that you play.  [default: the first]")
    ] = None,
    num_envs: Annotated[int, typer.Option(min=1, max=64, help="Envs in the animation or window.")] = 4,
    seconds: Annotated[float, typer.Option(min=0.1, max=600, help="Length of the animation.")] = 10.0,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config", "-c", metavar="NAME=VALUE",
            help="A parameter of the game, also as --config.NAME VALUE. By default those of training.",
        ),
    ] = None,
    device: DeviceOption = "cpu",
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Let trained agents play: measure their returns, and show them. Or play yourself, with --human."""
    from gpuzoo.baselines.train.command import PRETRAINED, checkpoint_of, existing

    if human:
        words = [*(config or []), *dotted(context.args)]
        with common.errors():
            _play_oneself(game, agent, PRETRAINED if pretrained else checkpoint, player or [], words, seed, device)
        return
    if agent is not None:
        common.fail("--agent needs --human.", 2)
    common.require("playing", "torch", "safetensors")
    from gpuzoo import registry
    from gpuzoo.core.backend import make_backend
    from gpuzoo.tools.players import EXPERT, RANDOM, SEARCH

    err = common.console(stderr=True)
    with common.errors():
        if checkpoint == SEARCH:
            raise ValueError("--checkpoint search goes with --human; gpuzoo view has a search, too.")
        values = parse_config(registry.get(game), [*(config or []), *dotted(context.args)])
        files = players(player or [])
        if pretrained and checkpoint != RANDOM:
            raise ValueError(f"give either --pretrained or --checkpoint {checkpoint}, not both.")
        checkpoint = PRETRAINED if pretrained else checkpoint
        for file in {checkpoint, *files.values()} - {RANDOM, EXPERT}:
            existing(checkpoint_of(game, file).partition("#")[0])
        # Only now: torch takes longer to import than all of the above.
        from gpuzoo.baselines.report import match as matches
        from gpuzoo.baselines.report.evaluation import evaluate

        device = make_backend(device).device
        match = matches.arrange(game, files, checkpoint, values, device)
        options: dict[str, Any] = {"greedy": greedy, "seed": seed}
        if out:
            from gpuzoo.baselines.report.video import film

            film(match.game, match.players, out, match.config, device, envs=num_envs, seconds=seconds, **options)
        with err.status(f"Playing {episodes} episodes"):
            seen = evaluate(match.game, match.players, episodes, config=match.config, device=device, **options)
        sides = matches.summary(match, seen)
    if as_json:
        about = {"game": match.game, "config": match.config, "device": device, **options}
        print(json.dumps({**about, "sides": sides, "outcomes": seen.rates}, indent=2))
    else:
        table = common.table("", "played by", ">agents", ">mean return", ">standard error", ">mean length")
        for name, side in sides.items():
            error = "" if side["standard_error"] is None else f"{side['standard_error']:.2g}"
            table.add_row(
                f"[bold cyan]{name}[/]", escape(side["player"]), str(side["agents"]), f"{side['mean_return']:.4g}",
                error, f"{side['mean_length']:.1f}",
            )  # fmt: skip
        how = "the likeliest actions" if greedy else "drawn actions"
        count = "1 episode" if episodes == 1 else f"{episodes} episodes"
        common.console().print(table)
        if seen.rates:
            told = ", ".join(f"{name.replace('_', ' ')} {rate:.1%}" for name, rate in seen.rates.items())
            common.console().print(f"Shares: {told}.")
        common.console().print(
            f"{match.game}, {count} with {how}; an agent's return, its length until it left.", style="dim"
        )
    if out:
        err.print(f"Wrote [bold]{escape(str(out))}[/].", soft_wrap=True)
    if window:
        from gpuzoo.baselines.report.video import show

        with common.errors():
            show(match.game, match.players, match.config, device, envs=num_envs, **options)
