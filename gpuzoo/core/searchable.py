"""Which games a tree search can play."""

from __future__ import annotations

from gymnasium import spaces

from gpuzoo.core.definition import EnvDef
from gpuzoo.core.layout import Layout


def check_searchable(env: EnvDef, lay: Layout) -> None:
    """Refuses a game whose positions cannot be searched.

    Raises:
        ValueError: agents with unlike actions or with several at once, or several who do not move in turn against each
            other.
    """
    kinds = [*lay.action_spaces.values()]
    if not isinstance(kinds[0], spaces.Discrete) or any(kind != kinds[0] for kind in kinds):
        raise ValueError(f"{env.id} cannot be searched: its agents must have one Discrete action space in common.")
    if lay.agents > 1 and (env.turn is None or lay.agents != 2 or env.interaction != "competitive"):
        raise ValueError(
            f"{env.id} cannot be searched: a game must have one agent, or two who move in turn against each other."
        )
