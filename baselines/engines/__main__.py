"""Plays a match against a program.

    python -m baselines.engines Go-v0 "gnugo --mode gtp --level 1 --chinese-rules --positional-superko"
    python -m baselines.engines Chess-v0 "stockfish" --option "Skill Level=0" --go "depth 1"
    python -m baselines.engines Backgammon-v0 "gnubg --tty --quiet --no-rc" --player pretrained
    python -m baselines.engines Shogi-v0 "gnushogi" --protocol gnushogi

Each opening is played from both seats, and the result is said with its 95 % interval.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from gpuzoo import registry

from .. import pretrained
from ..alphazero import evaluator, load
from ..report.searchers import Player, policy_player, random_player, searcher
from .gnubg import GnuBackgammon
from .gnushogi import GnuShogi
from .gtp import Gtp
from .match import match
from .position import Engine
from .uci import Uci

#: of programs, by game
PROTOCOLS = {"Go-v0": "gtp", "Chess-v0": "uci", "GardnerChess-v0": "uci", "Shogi-v0": "usi", "Backgammon-v0": "gnubg"}


def engine_of(protocol: str, command: str, go: str, options: dict[str, str]) -> Engine:
    """A running program."""
    if protocol in ("uci", "usi"):
        return Uci(command, go, options, protocol)
    if protocol == "gtp":
        return Gtp(command)
    return GnuBackgammon(command) if protocol == "gnubg" else GnuShogi(command)


def player_of(kind: str, game: str, simulations: int) -> Player:
    """A player by the name that the command line has for it."""
    if kind == "random":
        return random_player
    if kind == "pretrained":
        return policy_player(next(iter(pretrained(game).values())))
    if kind == "uct":
        return searcher("uct", simulations, None, 1)
    network, _ = load(kind)
    return searcher("puct", simulations, evaluator(network), 1)


def main() -> None:
    """Plays as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game", help="its id")
    parser.add_argument("command", help="starts the program, with all of its arguments")
    parser.add_argument("--protocol", choices=["gtp", "uci", "usi", "gnubg", "gnushogi"], help="default: by the game")
    parser.add_argument(
        "--player", default="uct", help="uct, random, pretrained (PPO), or a checkpoint of baselines.alphazero (uct)"
    )
    parser.add_argument("--simulations", type=int, default=200, help="of the player's search, for each move (200)")
    parser.add_argument("--games", type=int, default=20, help="an even number (20)")
    parser.add_argument("--opening", type=int, help="random moves at the beginning of a game (2; with dice 0)")
    parser.add_argument("--config", type=json.loads, default={}, help="the game's parameters, as JSON")
    parser.add_argument("--go", default="nodes 1", help="how far a program with UCI or USI thinks (nodes 1)")
    parser.add_argument("--option", action="append", default=[], help="NAME=VALUE, for a program with UCI or USI")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    game = registry.get(given.game).id
    protocol = given.protocol or PROTOCOLS.get(game)
    if protocol is None:
        parser.error(f"{game} needs --protocol.")
    opening = given.opening if given.opening is not None else 0 if protocol == "gnubg" else 2
    options: dict[str, Any] = dict(pair.split("=", 1) for pair in given.option)
    try:
        player = player_of(given.player, game, given.simulations)
        engine = engine_of(protocol, given.command, given.go, options)
        try:
            score = match(
                game, player, engine, games=given.games, opening=opening, config=given.config, seed=given.seed
            )
        finally:
            engine.close()
    except (ValueError, RuntimeError) as error:
        parser.exit(1, f"{error}\n")
    low, high = score.interval
    print(f"{score.wins} won, {score.draws} drawn, {score.losses} lost: {score.points:.3f} of the points, "
          f"95 % interval {low:.3f} to {high:.3f}")  # fmt: skip


if __name__ == "__main__":
    main()
