"""The results of a search."""

from __future__ import annotations

import dataclasses
import math

import torch
from torch import Tensor

from gpuzoo.search.tree import Tree


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of a search, for each of the R roots.

    Attributes:
        action: int64 (R,): the best action: by the improved policy's argmax with ``"gumbel"``, by visits otherwise.
        policy: float32 (R, A): what a network is to learn: the improved policy with ``"gumbel"``, shares of visits
            otherwise.
        value: float32 (R,): of the root, for who moves there.
        visits: int32 (R, A): how often each action was tried.
        q: float32 (R, A): values of the actions that were tried, for who moves; 0 for the others.
    """

    action: Tensor
    policy: Tensor
    value: Tensor
    visits: Tensor
    q: Tensor


def result_of(tree: Tree) -> Result:
    """Statistics at the roots.

    With ``"gumbel"`` the action is the best by noise, prior and completed value among those with the most visits, and
    the policy is the improved one (Danihelka et al. 2022, sections 2 and 4).
    """
    visits, q = tree.root_visits(), tree.root_q()
    value = tree.value[:, 0].clone()
    if tree.rule != "gumbel":
        return Result(visits.argmax(1), visits / visits.sum(1, keepdim=True).clamp_min(1), value, visits, q)
    completed = tree.completed()
    logits = tree.logits[:, 0]
    score = tree.gumbel + (logits - logits.amax(1, keepdim=True)) + completed
    score = torch.where(visits == visits.amax(1, keepdim=True), score.clamp_min(-1e9), -math.inf)
    score = score.masked_fill(logits == -math.inf, -math.inf)
    return Result(score.argmax(1), (logits + completed).softmax(1), value, visits, q)
