"""Signs in the log that a run learns nothing. Each is a sentence that says what to do. Imports no torch."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = Sequence[Mapping[str, float]]

UNFORESEEN = 0.05  # the explained variance of a critic that has learnt nothing
COLLAPSED = 0.01  # the share of the largest entropy that is left of it
LOOKS = 40  # so many times in a run the log is looked at


@dataclasses.dataclass(frozen=True)
class Facts:
    """Warnings about a run that its log does not show.

    Args:
        iterations: of the whole run.
        num_steps: of each env in an iteration.
        limit: ``max_episode_steps``, or 0 for none.
        groups: those of each policy that learns.
        entropy: the largest that a policy can have; of those whose actions are choices.
        normalized: the policies whose rewards are normalised.
    """

    iterations: int
    num_steps: int
    limit: int
    groups: Mapping[str, Sequence[str]]
    entropy: Mapping[str, float]
    normalized: Callable[[str], bool] = lambda name: False


class Health:
    """Looks at a log now and then, and says each thing once.

    Args:
        facts: about the run.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts, self._every = facts, max(1, facts.iterations // LOOKS)
        self._told: set[tuple[str, str]] = set()

    def look(self, rows: Rows) -> Iterator[str]:
        """The warnings that are new with the last row. To be called for every row, so that no look is missed."""
        if len(rows) % self._every:
            return
        found = {("", "episodes"): no_episode(rows, self.facts)}
        for name in self.facts.groups:
            found[name, "critic"] = blind_critic(rows, self.facts, name)
            found[name, "entropy"] = collapsed_entropy(rows, self.facts, name)
        for key, text in found.items():
            if text and key not in self._told:
                self._told.add(key)
                yield text

    def again(self, rows: Rows) -> list[str]:
        """Goes through the log of a run that goes on, and returns what was said about it before."""
        counts = range(self._every, len(rows) + 1, self._every)
        return [text for count in counts for text in self.look(rows[:count])]


def no_episode(rows: Rows, facts: Facts) -> str:
    """Says if no episode has ended in a tenth of the run, and at least ten rollouts."""
    if len(rows) < max(10, facts.iterations / 10) or any(k.startswith("return/") for row in rows for k in row):
        return ""
    steps, run = len(rows) * facts.num_steps, facts.iterations * facts.num_steps
    limit = f"is {facts.limit}" if facts.limit else "is not set"
    return (
        f"no episode has ended in {steps} steps of each env: --config.max_episode_steps {limit}, and num_steps is "
        f"{facts.num_steps}, with which the whole run is {run} steps of each env; lower that limit, or take more steps "
        "or fewer envs."
    )


def blind_critic(rows: Rows, facts: Facts, name: str) -> str:
    """Says if after a tenth of the run the critic explains nothing for long, and neither it nor the policy improves."""
    window = max(20, facts.iterations // 4)
    first = facts.iterations // 10
    if len(rows) < first + window:
        return ""
    last = rows[-window:]
    variance = column(last, f"{name}/explained_variance")
    error, before = column(last, f"{name}/value_loss"), column(rows[: max(3, first)], f"{name}/value_loss")
    if not variance.size or np.median(variance) >= UNFORESEEN:
        return ""
    if error.size and before.size and (error.max() < 1e-6 or np.median(error) < 0.5 * np.median(before)):
        return ""  # where little is left to foresee, it explains little
    if improved(rows, facts.groups[name]):
        return ""
    advice = "a higher --lr" if facts.normalized(name) else "--normalize-rewards on and a higher --lr"
    return (
        f"the critic of {name} explains no variance of the returns for {window} updates, so that advantages are noise: "
        f"try {advice}, or --memory 64 if observations do not say what was before; where chance alone decides it is as "
        "it should be."
    )


def collapsed_entropy(rows: Rows, facts: Facts, name: str) -> str:
    """Says if in the first quarter of the run the policy hardly draws any more, without having got better by that."""
    if name not in facts.entropy or not 10 <= len(rows) <= max(10, facts.iterations / 4):
        return ""
    entropy = column(rows[-3:], f"{name}/entropy")
    if not entropy.size or entropy.max() > COLLAPSED * facts.entropy[name] or improved(rows, facts.groups[name]):
        return ""
    return (
        f"the entropy of {name} fell to {entropy[-1]:.2g} of {facts.entropy[name]:.2g} early, so that it explores no "
        "more, and returns have not risen: try a higher --ent-coef or a lower --lr."
    )


def improved(rows: Rows, groups: Sequence[str]) -> bool:
    """Whether some group's return is now clearly above what it was at first."""
    part = max(3, len(rows) // 8)
    for group in groups:
        returns = column(rows, f"return/{group}")
        if not returns.size:
            continue
        first, last = returns[:part], returns[-part:]
        if last.mean() - first[: max(1, part // 2)].mean() > max(first.std(), last.std(), 1e-6):
            return True
    return False


def column(rows: Rows, name: str) -> NDArray[np.float64]:
    """The finite values of a metric."""
    return np.array([x for row in rows if math.isfinite(x := row.get(name, math.nan))], np.float64)


def facts_of(trainer: Any) -> Facts:
    """The attributes of a trainer that `Health` reads."""
    from gpuzoo.core.layout import choices

    sim, args, learners = trainer.simulator, trainer.args, trainer.learners
    groups = {name: tuple(learner.player.groups) for name, learner in learners.items()}
    counts = {name: choices(sim.layout.action_spaces[own[0]]) for name, own in groups.items()}
    entropy = {name: float(np.log(n).sum()) for name, n in counts.items() if n}
    return Facts(
        args.iterations, args.num_steps, int(sim.max_episode_steps or 0), groups, entropy,
        lambda name: bool((learners[name].normalization.chosen > 0).all()),
    )  # fmt: skip
