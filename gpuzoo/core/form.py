"""Which form of the kernels a game gets, and why: the one place where this is decided.

A step has a general form and a branchless one, in which a CPU steps several envs in one vector instruction (see
episode.cuh and walk_cpu.cuh).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from gpuzoo.core.definition import EnvDef, Field
from gpuzoo.core.dialect import names, variable_indices
from gpuzoo.core.layout import Layout
from gpuzoo.core.tokens import Piece

#: more numbers of an array, or more agents' rewards, do not fit into registers
MOST_HELD = 4
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
        together: whether all agents of an env leave at the same time.
    """

    obstacles: tuple[str, ...]
    apart: bool
    short: bool
    packed: bool
    together: bool

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
        why = "Its rules are packed: they say themselves what is done for several envs at once."
        return Form((why,), apart=False, short=False, packed=True, together=True)
    obstacles, single = [], type(env).single()
    if lanes > 1:
        obstacles.append(f"It has {lanes} lanes per env, which work on the agents of one env.")
    arrays = {name: field for name, field in fields.items() if field.shape != ()}
    held = {
        n for n, field in arrays.items() if not field.scratch and len(field.shape) == 1 and field.sizes[0] <= MOST_HELD
    }
    if len(held) < len(arrays):
        long = ", ".join(name for name in arrays if name not in held)
        obstacles.append(f"It has arrays ({long}), which are not held in registers.")
    if not single and lay.agents > MOST_HELD:
        obstacles.append(f"It has {lay.agents} agents; the rewards of at most {MOST_HELD} are held in registers.")
    held |= set() if single else {"reward"}
    places = variable_indices(rules) if held and not obstacles else {}  # it takes time
    obstacles += [
        f"{places[name]}: e.{name} has an index that depends on the state, so it is not held in registers."
        for name in sorted(held & places.keys())
    ]
    places = {} if single else names(rules)
    of_one = [name for name in _OF_ONE if name in places]
    obstacles += [f"{places[name]}: e.{name} means that an agent may leave before the others." for name in of_one]
    short = not obstacles and env.short_episodes
    # Rows of several agents are groups of numbers that compilers do not blend in vectors, as `short` does.
    apart = not obstacles and (lay.observers * lay.observation_size > LONGEST_ROW or (short and not single))
    return Form(tuple(obstacles), apart, short, False, not of_one)


def check_of_mover(env: EnvDef, rules: Sequence[Piece]) -> None:
    """Checks that rules can write the row of the agent to move alone.

    Raises:
        ValueError: they write rows of all agents.
    """
    if "OBSERVERS" not in names(rules):
        raise ValueError(
            f"{env.id}: its rules write a row for each agent, so observers must be 'all', not 'mover'. (Rules that go "
            "through OBSERVERS can do both: see docs/dialect.md.)"
        )
