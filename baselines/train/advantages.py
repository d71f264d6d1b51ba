"""Generalised advantage estimates, and discounted sums."""

from __future__ import annotations

import torch
from torch import Tensor


def advantages(
    rewards: Tensor,
    values: Tensor,
    acting: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    final_values: Tensor | None,
    gamma: float | Tensor,
    gae_lambda: float | Tensor,
    waits: bool = False,
) -> tuple[Tensor, Tensor]:
    """Generalised advantage estimates (Schulman et al. 2016) over every agent's own decisions.

    A transition of an agent begins where it acts and ends where it acts next. In most games that is one step. Where
    agents wait for their turn, or are out of the game, the steps between belong to the transition before: their rewards
    are added to it undiscounted, since time, for the agent, passes from decision to decision. So in a board game the
    opponent's reply, and a loss that comes with it, count for the move that it answers.

    What follows a transition is worth the value of the agent's next observation at which it acts; 0 if the agent was
    terminated; the value of its final observation if it was truncated: time ran out, but not for what it did. A
    transition whose end is not known is left out: in games with waiting agents, the last move before the rollout's end
    of an agent that is not to move there, and the last move before a truncation.

    Args:
        rewards: (steps, ...).
        values: (steps + 1, ...), of the observations before each step, and of the last one.
        acting: (steps + 1, ...) bool, whether the agent acts on that observation.
        terminated: (steps, ...) bool.
        truncated: (steps, ...) bool.
        final_values: (steps, ...), of the final observations where truncated; None: not known.
        gamma: discount; a number or a tensor that broadcasts.
        gae_lambda: decay of the sum, likewise.
        waits: whether agents may skip steps and act again in the same episode.

    Returns:
        Advantages, and which rows are transitions, each (steps, ...). The values' targets are the advantages plus the
        values.
    """
    done = terminated | truncated
    goes_on = acting[1:] & ~done
    known = goes_on | terminated
    targets = torch.where(goes_on, rewards + gamma * values[1:], rewards)  # what one step says of the value before it
    if final_values is not None:
        targets = torch.where(truncated & ~terminated, targets + gamma * final_values, targets)
        known |= truncated
    if waits:  # the steps between two decisions belong to the first of them
        between = ~acting[1:] & ~done
        for t in range(len(rewards) - 2, -1, -1):
            targets[t] += torch.where(between[t], targets[t + 1], 0)
            known[t] |= between[t] & known[t + 1]
    valid = acting[:-1] & known if waits else acting[:-1].clone()
    out = torch.where(valid, targets - values[:-1], 0)
    decay = torch.where(acting[:-1], gamma * gae_lambda, 1).masked_fill(done, 0)
    steps, factors = out.unbind(), decay.unbind()
    for t in range(len(rewards) - 2, -1, -1):
        steps[t].addcmul_(factors[t], steps[t + 1])
    return out, valid


def discounted_sum(x: Tensor, decay: Tensor) -> Tensor:
    """``y[t] = x[t] + decay[t] * y[t - 1]`` along the first axis, with ``y[0] = x[0]``; both (steps, ...)."""
    out = x.clone()
    for t in range(1, len(x)):
        out[t].addcmul_(decay[t], out[t - 1])
    return out
