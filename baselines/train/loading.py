"""Policies from checkpoints."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from gpuzoo import registry
from gpuzoo.core.definition import Entities, EnvDef
from gpuzoo.core.layout import Layout, flat_size
from gpuzoo.core.suggestions import unknown

from ..report import checkpoint
from .command import checkpoint_of
from .encoders import feature_shape
from .layers import together
from .networks import Policy
from .rollout import state_size


def describe(policy: Policy) -> dict[str, Any]:
    """A policy's form and spaces, as a checkpoint says them."""
    spaces = {"observation space": brief(policy.observation_space), "action space": brief(policy.action_space)}
    return {**spaces, "form": policy.form}


def brief(space: Any) -> str:
    """A space without its bounds."""
    return f"Box{space.shape} {space.dtype}" if type(space).__name__ == "Box" else str(space)


def load(
    path: str, name: str, game: str | type[EnvDef], lay: Layout, group: str, modules: bool = False
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The form and the weights (1, ...) of a policy in a checkpoint: the one of that name, or else the only one.

    Args:
        path: the file, with ``#k`` behind it for member k of a population; or ``"pretrained"``.
        name: of the policy.
        game: the game it is to play.
        lay: the game's layout.
        group: the group it is to play.
        modules: whether its network may be a module of somebody's own, which is code that no checkpoint has.

    Raises:
        ValueError: no checkpoint, or one that does not fit.
    """
    file, _, member = checkpoint_of(game, path).partition("#")
    tensors, about = checkpoint.load_run(file)
    env_id = registry.get(game).id
    if about["game"] != env_id:
        raise ValueError(f"{file} holds policies for {about['game']}, not for {env_id}.")
    found = about["policies"]
    if name not in found and len(found) > 1:
        raise ValueError(unknown(f"{file} has no policy", name, found))
    kept = name if name in found else next(iter(found))
    form, entities = found[kept]["form"], lay.entities[group]
    sized = form["encoder"] == "set"
    if sized and entities is None:
        raise ValueError(f"{file} has a policy for entities, which {env_id} does not declare.")
    board = form["encoder"] == "board" and lay.action_cells[group] is not None and not form["normalize"]
    for key, space in (("observation", lay.observation_spaces[group]), ("action", lay.action_spaces[group])):
        if not sized and not board and found[kept][f"{key} space"] != brief(space):
            raise ValueError(
                f"policy {name!r} in {file} was trained with the {key} space {found[kept][f'{key} space']}, but with "
                f"these parameters {env_id} has {brief(space)} for {group}."
            )
    own = form.get("module")
    if own and not modules:
        raise ValueError(
            f"policy {kept!r} in {file} has a network of its own, the module {own}, and a checkpoint holds no "
            "code: make the trainer that has it with load={policy: file}, and play its policies."
        )
    seen = state_size(lay)
    if form["critic"] == "central" and form["state_size"] != seen:
        raise ValueError(
            f"the critic of policy {name!r} in {file} sees {form['state_size']} numbers of the state, "
            f"but with these parameters {env_id} has {seen}."
        )
    prefix = f"policy/{kept}/weights/"
    weights = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
    members = about["args"]["population"]
    if member and not (member.isdigit() and int(member) < members):
        held = "one member, number 0" if members == 1 else f"{members} members, numbered from 0"
        raise ValueError(f"{file} has {held}, and no {member!r}.")
    k = int(member or 0)
    if not own:
        seen_shape = feature_shape(lay.observation_spaces[group], bool(form.get("one_hot")))
        _check_sizes(form, weights, members, len(seen_shape) == 3, file)
    mine = {n: v[k : k + 1] for n, v in weights.items()}
    if sized and entities is not None:
        rescale(mine, form.get("entities", {}), entities, flat_size(lay.observation_spaces[group]), file)
        form = {**form, "entities": entities}
    if form["encoder"] == "board":
        form = {**form, "cells": lay.action_cells[group]}
        _check_board(form, mine, lay, group, file)
    return form, mine


def rescale(weights: dict[str, Tensor], form: Mapping[str, Any], entities: Entities, size: int, file: str) -> None:
    """Gives a policy for entities the scale of its observations for another number of them.

    Args:
        weights: of the policy, in place.
        form: the entities that it was trained with, as a checkpoint has them.
        entities: those that it is to see.
        size: numbers of an observation of these.
        file: of the checkpoint.

    Raises:
        ValueError: an entity is told by other numbers than in training.
    """
    names = "scale.mean", "scale.variance"
    try:
        old = weights[names[0]].shape[-1]
        before = Entities.of(form)
        fits = before.described <= old and before.told(old) == entities.told(size)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} was changed: it does not say which entities its policy knows.") from error
    if not fits:
        raise ValueError(f"{file} has a policy for entities that are told by other numbers than here.")
    if before == entities:
        return
    kinds = torch.from_numpy(before.alike(old))
    for name, x in zip(names, together(weights[names[0]], weights[names[1]], kinds), strict=True):
        weights[name] = x[..., torch.from_numpy(entities.alike(size))]


def _check_board(form: Mapping[str, Any], weights: Mapping[str, Tensor], lay: Layout, group: str, file: str) -> None:
    """Refuses a policy for boards whose cells have other numbers or kinds of actions than in training."""
    cells, shape = lay.action_cells[group], feature_shape(lay.observation_spaces[group], bool(form.get("one_hot")))
    wanted = {"describe": shape[-1] if len(shape) == 3 else 0}
    if cells is not None:
        wanted |= {"each": int(cells[:, 1].max()) + 1, "elsewhere": int((cells[:, 0] < 0).sum())}
    for name, count in wanted.items():
        found = weights.get(f"actor.{name}.weight")
        if (0 if found is None else found.shape[1 if name == "describe" else 2]) != count:
            raise ValueError(f"{file} has a policy for boards whose cells have other numbers or actions than here.")


def _check_sizes(form: Mapping[str, Any], weights: Mapping[str, Tensor], members: int, image: bool, file: str) -> None:
    """Refuses a form whose layers have more weights than there are, before they are allocated.

    The channels of a CNN count only where observations are images: other policies have them in their form unused.
    """
    numbers = sum(x[:1].numel() for x in weights.values() if x.ndim and len(x) == members)
    channels = form["channels"] if image and form["encoder"] != "mlp" else []
    for sizes in (form["hidden"], channels, [form["memory"]] * 2, [form["state_size"]], [form["seats"]]):
        if max((a * b for a, b in itertools.pairwise([1, *sizes])), default=0) > numbers:
            raise ValueError(
                f"{file} was changed: its weights, {numbers} numbers, do not have the shapes {dict(form)}."
            )


def is_scale(name: str) -> bool:
    """Whether a tensor of a policy belongs to the running mean and deviation of what it sees."""
    return name.startswith(("scale.", "state_scale."))


def fill(policy: Policy, weights: Mapping[str, Tensor], file: str) -> None:
    """Gives a policy the weights of a checkpoint; what it does not normalise by need not be there, or fit.

    Raises:
        ValueError: they are of other shapes, or some are missing.
    """
    if not policy.normalize:
        weights = {**weights, **{k: x for k, x in policy.state_dict().items() if is_scale(k)}}
    try:
        policy.load_state_dict(weights)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"{file} was changed: its weights do not have the shapes that its header states.") from error
