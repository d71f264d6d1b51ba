"""Which form of the kernels a game gets, and why: the one place where this is decided.

A step has a general form and a branchless one, in which a CPU steps several envs in one vector instruction (see
episode.cuh and walk_cpu.cuh).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from gpuzoo.core.definition import EnvDef, Field
from gpuzoo.core.dialect import names
from gpuzoo.core.layout import Layout
from gpuzoo.core.tokens import Piece

#: more agents' rewards than these do not fit into registers
MOST_AGENTS = 4
#: a longer row of observations is written by a loop, which would keep the loop over envs from being vectorised
LONGEST_ROW = 32
#: names in rules by which one agent leaves before the others, or it is asked who has
_OF_ONE = ("terminate", "terminated", "alive")


@dataclasses.dataclass(frozen=True)
class Form:
    """The form of a game's kernels.

    Attributes:
        obstacles: what keeps the game from the branchless form, one sentence each; rules are named by file and line.
        apart: whether a CPU writes observations in a loop over envs of their own.
        short: whether a CPU resets neighbours in vector instructions, where many of them begin at once.
        packed: whether the rules are of packs of envs; a compiler then has no loops over envs to vectorise.
    """

    obstacles: tuple[str, ...]
    apart: bool
    short: bool
    packed: bool

    @property
    def branchless(self) -> bool:
        """Whether a step has no branch, so that a loop over envs can be vectorised."""
        return not self.obstacles

    @property
    def remainders(self) -> bool:
        """Whether loops of a CPU may leave something over behind whole vectors.

        Those over envs do not, as tiles are whole vectors.
        """
        return self.apart or not self.branchless


def choose(env: EnvDef, lay: Layout, fields: Mapping[str, Field], lanes: int, rules: Sequence[Piece]) -> Form:
    """Chooses the form of a game."""
    if env.packed:
        return Form(
            ("Its rules are packed: they say themselves what is done for several envs at once.",), False, False, True
        )
    obstacles = []
    if lanes > 1:
        obstacles.append(f"It has {lanes} lanes per env, which work on the agents of one env.")
    arrays = [name for name, field in fields.items() if field.shape != ()]
    if arrays:
        obstacles.append(f"It has arrays ({', '.join(arrays)}), which are not held in registers.")
    single = type(env).single()
    if not single:
        if lay.agents > MOST_AGENTS:
            obstacles.append(f"It has {lay.agents} agents; the rewards of at most {MOST_AGENTS} are held in registers.")
        if env.turn is not None:
            obstacles.append("Its agents take turns, so rewards go to an agent that depends on the state.")
        places = names(rules)
        obstacles += [
            f"{places[name]}: e.{name} means that an agent may leave before the others."
            for name in _OF_ONE
            if name in places
        ]
    apart = not obstacles and lay.agents * lay.observation_size > LONGEST_ROW
    return Form(tuple(obstacles), apart, not obstacles and single and env.short_episodes, False)
