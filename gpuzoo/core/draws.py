"""A draw that is used twice: two random numbers of one agent and one step that would be the same number.

Only what is so on some way through the rules whatever the state is: see `flow`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuzoo.core.flow import Branches, Draw, Walk
from gpuzoo.core.tokens import Token

#: a draw, with the branches and the calls that lead to it
_Calls = tuple[int, ...]
_Found = tuple[Draw, Branches, _Calls]


def check_draws(tokens: Sequence[Token], walks: Sequence[Walk], entries: Sequence[str]) -> None:
    """Refuses draws that give the same number twice.

    Args:
        tokens: of the rules.
        walks: through their functions.
        entries: names of the engine's calls, of which the last follows each of the others within a step.

    Raises:
        DialectError: the first one, with file and line.
    """
    by_name: dict[str, list[Walk]] = {}
    for walk in walks:
        by_name.setdefault(walk.name, []).append(walk)
        for draw in walk.draws:
            if draw.repeated:
                raise tokens[draw.at].error(
                    f"draw {_listed(draw)} of {_agent(draw)} is the same number in each round of the loop: let the "
                    "draw depend on the loop's variable"
                )
    *first, last = entries
    for entry in first:
        seen: list[_Found] = []
        for name in (entry, last):
            for new in _ways(by_name, name):
                for old in seen:
                    _compare(tokens, old, new)
                seen.append(new)


def _ways(by_name: dict[str, list[Walk]], name: str, path: Branches = (), calls: _Calls = ()) -> Iterator[_Found]:
    """The draws that a function makes itself or by others, each with the branches and the calls that lead to it."""
    overloads = by_name.get(name, [])
    for number, walk in enumerate(overloads):
        here = (*path, (calls[-1], number)) if calls and len(overloads) > 1 else path
        for draw in walk.draws:
            yield draw, here + draw.path, calls
        for call in walk.calls:
            if call.name in by_name and call.at not in calls:
                yield from _ways(by_name, call.name, here + call.path, (*calls, call.at))


def _compare(tokens: Sequence[Token], old: _Found, new: _Found) -> None:
    (left, left_path, left_calls), (right, right_path, right_calls) = old, new
    if left.at == right.at or not left.agent or left.agent != right.agent or not left.draws & right.draws:
        return
    if not (left.everywhere and right.everywhere) and left_calls != right_calls:
        return
    if _exclusive(left_path, right_path):
        return
    before, here = sorted((left, right), key=lambda draw: draw.at)
    raise tokens[here.at].error(
        f"draw {_listed(here)} of {_agent(here)} is drawn in line {tokens[before.at].line} of "
        f"{tokens[before.at].path.name} already, and would be the same number again in the same step: use another draw"
    )


def _listed(draw: Draw) -> str:
    return " and ".join(sorted(draw.draws))


def _agent(draw: Draw) -> str:
    return "one agent" if draw.agent != "the env" else draw.agent


def _exclusive(left: Branches, right: Branches) -> bool:
    """Whether no way, or none that the text shows, goes through both."""
    common = 0
    while common < min(len(left), len(right)) and left[common] == right[common]:
        common += 1
    return bool(left[common:]) and bool(right[common:])
