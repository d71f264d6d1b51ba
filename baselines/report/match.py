"""Matches between policies from checkpoints, and their scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from gpuzoo import registry
from gpuzoo.core.configuration import split_config
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.layout import Layout, layout
from gpuzoo.core.suggestions import unknown
from gpuzoo.tools.players import EXPERT, RANDOM

from ..train import loading
from ..train.command import checkpoint_of
from ..train.experts import Expert, ExpertPlayer
from ..train.networks import Policy
from . import checkpoint
from .evaluation import Evaluation, Player


@dataclasses.dataclass
class Match:
    """A game with its players.

    Attributes:
        game: its id.
        config: its parameters, as far as they are not the defaults.
        players: the player of each group or agent. Where it is None, the agents act at random.
        sides: what a table tells apart: by name, the group, its agents, and the file that plays them, ``"random"``,
            ``"pretrained"`` or ``"expert"``.
    """

    game: str
    config: dict[str, Any]
    players: dict[str, Player | None]
    sides: dict[str, tuple[str, list[int], str]]


def arrange(
    game: str | type[EnvDef],
    files: Mapping[str, str],
    default: str = RANDOM,
    config: Mapping[str, Any] | None = None,
    device: torch.device | str = "cpu",
) -> Match:
    """Loads the players of a game.

    The game's parameters are those of training, by the first checkpoint that is named, with ``config`` over them.

    Args:
        game: its id.
        files: who plays a group (``"tagger"``) or one agent (``"tagger_0"``): ``"random"``, ``"pretrained"``,
            ``"expert"`` (the game's own), or the file of a checkpoint, with ``#k`` behind it for member k of a
            population.
        default: who plays the others.
        config: parameters of the game.
        device: where the policies shall be.

    Raises:
        ValueError: no such group, agent, expert, file or member, or a checkpoint that does not fit the game.
        TypeError: parameters that the game does not take.
    """
    env = registry.get(game)
    given = [file for file in (default, *files.values()) if file not in (RANDOM, EXPERT)]
    abouts = {file: checkpoint.load_run(checkpoint_of(game, file).partition("#")[0])[1] for file in given}
    values: dict[str, Any] = {}
    if given and abouts[given[0]]["game"] == env.id:
        values |= abouts[given[0]]["args"]["config"]
    values |= config or {}
    cfg, _ = split_config(env, 1, {k: v for k, v in values.items() if k != "max_episode_steps"})
    lay = layout(env, cfg)
    group_of = {name: _group(env, lay, name) for name in files}

    found: dict[tuple[str, str], Player] = {}

    def player(file: str, group: str) -> Player | None:
        if file == RANDOM:
            return None
        if file == EXPERT:
            return ExpertPlayer(Expert(game), group, lay.action_spaces[group], device)
        if (file, group) not in found:
            name = abouts[file]["args"]["policies"].get(group, group)
            form, weights = loading.load(file, name, game, lay, group)
            new = Policy(lay.observation_spaces[group], lay.action_spaces[group], [0], device=device, **form)
            loading.fill(new, weights, file)
            found[file, group] = new
        return found[file, group]

    match = Match(env.id, values, {}, {})
    for group, count in lay.groups.items():
        own = {int(n.rpartition("_")[2]): n for n, g in group_of.items() if g == group and n != group}
        rest, usual = [k for k in range(count) if k not in own], files.get(group, default)
        sides = {name: (group, [k], files[name]) for k, name in own.items()}
        if rest:
            name = group if not own else f"{group}_{rest[0]}" if len(rest) == 1 else f"{group}, the others"
            sides[name] = group, rest, usual
        match.sides |= sorted(sides.items(), key=lambda side: side[1][1])
        if own:
            match.players |= {f"{group}_{k}": player(files[own[k]] if k in own else usual, group) for k in range(count)}
        else:
            match.players[group] = player(usual, group)
    return match


def _group(env: EnvDef, lay: Layout, name: str) -> str:
    """The group that a group's or an agent's name stands for."""
    group, _, k = (name, "", "0") if name in lay.groups else name.rpartition("_")
    if group not in lay.groups or not (k.isdigit() and int(k) < lay.groups[group]):
        raise ValueError(unknown(f"{env.id} has no group or agent", name, lay.groups))
    return group


def summary(match: Match, seen: Evaluation) -> dict[str, dict[str, Any]]:
    """The scores of each side of a match, as JSON.

    An episode counts as one observation: the mean over the agents of the side. The standard error is the deviation of
    the episodes over the root of their number; None for a single one.
    """
    out = {}
    for name, (group, agents, player) in match.sides.items():
        returns = seen.returns[group][:, agents].mean(1, dtype=np.float64)
        count = len(returns)
        out[name] = {
            "player": player, "agents": len(agents), "episodes": count, "mean_return": float(returns.mean()),
            "standard_error": float(returns.std(ddof=1) / count**0.5) if count > 1 else None,
            "mean_length": float(seen.lengths[group][:, agents].mean()),
        }  # fmt: skip
    return out
