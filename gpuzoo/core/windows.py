"""Rules whose rows a GPU may assemble in windows: some agents' rows after the others'.

Where an env's rows do not fit into shared memory, the region that writes them goes through the agents a window at a
time (``row_lanes`` in device/rows.cuh). For that an iteration of it must write the row of its agent and no other, and
no other region may write a part of these rows. Only the text is looked at; where it does not show this, rows are
written where they belong, one number at a time.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gpuzoo.core.dialect import REGIONS, region_spans
from gpuzoo.core.flow import Branches, Walk
from gpuzoo.core.tokens import Function, Piece, Token, closing, constants_of, functions_of, separated, tokens_of

_ROWS = frozenset(("observation", "action_mask"))
_LOOPS = frozenset(("for", "while", "do"))


class _UnclearError(Exception):
    """The text does not show whose rows are written."""


def in_windows(
    pieces: Sequence[Piece], entries: Sequence[str], options: Mapping[str, bool] | None = None
) -> list[Piece] | None:
    """The rules with ``row_lanes`` for each ``lanes`` that writes rows; None if they may not be written in windows.

    Args:
        pieces: the rules, from `dialect.inline_includes`.
        entries: the functions that the engine calls.
        options: parameters that are true or false. What a branch does that they rule out makes no difference.
    """
    found = [(number, token) for number, piece in enumerate(pieces) for token in tokens_of(piece)]
    tokens = [token for _, token in found]
    try:
        regions = _Rules(tokens, options or {}).row_regions(entries)
    except _UnclearError:
        return None
    sources = [piece.source for piece in pieces]
    for number, token in sorted((found[k] for k in regions), key=lambda x: (x[0], x[1].at), reverse=True):
        text = sources[number]
        sources[number] = f"{text[: token.at]}row_{text[token.at :]}"
    return [dataclasses.replace(piece, source=source) for piece, source in zip(pieces, sources, strict=True)]


class _Rules:
    def __init__(self, tokens: Sequence[Token], options: Mapping[str, bool]) -> None:
        self._tokens, self._options = tokens, options
        functions, known = list(functions_of(tokens)), constants_of(tokens)
        names = [f.name for f in functions]
        self._functions = {f.name: f for f in functions}
        self._overloaded = {name for name in names if names.count(name) > 1}
        self._walks = {f.name: Walk(tokens, f, known, REGIONS, any_index=True) for f in functions}
        self._spans = {f.name: region_spans(tokens, f.body) for f in functions}
        self._rows: dict[str, int | None] = {}

    def row_regions(self, entries: Sequence[str]) -> set[int]:
        """The tokens of ``lanes`` that name these regions."""
        self._find_helpers()
        ways = []
        for entry in entries:
            for f, span, path in self._ways(entry):
                if self._writes_rows(f, span):
                    if entry != "observe":
                        raise _UnclearError
                    ways.append((span.start, path))
        for k, (_, left) in enumerate(ways):
            if not all(_exclusive(left, right) for _, right in ways[:k]):
                raise _UnclearError
        if not ways:
            raise _UnclearError
        return {start for start, _ in ways}

    def _is_row(self, f: Function, k: int) -> bool:
        """Whether ``e.observation`` or ``e.action_mask`` begins here."""
        text = [token.text for token in self._tokens[k : k + 3]]
        return bool(f.env) and text[:2] == [f.env, "."] and text[2] in _ROWS

    def _helper(self, k: int) -> bool:
        """Whether a helper that writes rows is called here."""
        return self._tokens[k].text in self._rows and self._tokens[k - 1].text not in (".", "::")

    def _find_helpers(self) -> None:
        """Helpers that write a row, or give it, and which parameter says whose; None where that is unclear."""
        helpers = [f for f in self._functions.values() if not self._spans[f.name]]
        for _ in helpers:  # one may call another
            before = len(self._rows)
            for f in helpers:
                if f.name not in self._rows:
                    self._add_helper(f)
            if len(self._rows) == before:
                break

    def _add_helper(self, f: Function) -> None:
        try:
            agents = self._agents(f, f.body)
        except _UnclearError:
            self._rows[f.name] = None
            return
        names = [self._tokens[part[-1]].text for part in separated(self._tokens, f.parameters)]
        if agents:
            clear = len(agents) == 1 and agents <= set(names) and f.name not in self._overloaded
            self._rows[f.name] = names.index(next(iter(agents))) if clear else None

    def _agents(self, f: Function, body: Iterable[int]) -> set[str]:
        """What a stretch of a function has as the agent of its rows."""
        found = set()
        for k in self._alive(body):
            if self._is_row(f, k):
                if self._tokens[k + 3].text != "[":
                    raise _UnclearError
                found.add(self._text(range(k + 4, closing(self._tokens, k + 3))))
            elif self._helper(k):
                number = self._rows[self._tokens[k].text]
                if number is None or self._tokens[k + 1].text != "(":
                    raise _UnclearError
                arguments = list(separated(self._tokens, range(k + 2, closing(self._tokens, k + 1))))
                found.add(self._text(arguments[number]))
        return found

    def _alive(self, body: Iterable[int]) -> Iterator[int]:
        """Without statements that an option rules out."""
        after = 0
        for k in body:
            if k < after:
                continue
            if self._ruled_out(k, 0):
                after = self._behind(k)
            yield k

    def _behind(self, at: int) -> int:
        """What follows the statement that an ``if`` decides about."""
        opened = next(k for k in range(at, len(self._tokens)) if self._tokens[k].text == "(")
        begin = closing(self._tokens, opened) + 1
        if self._tokens[begin].text == "{":
            return closing(self._tokens, begin) + 1
        return next(k for k in range(begin, len(self._tokens)) if self._tokens[k].text == ";") + 1

    def _text(self, part: range) -> str:
        return " ".join(self._tokens[k].text for k in part)

    def _writes_rows(self, f: Function, span: range) -> bool:
        agents = self._agents(f, span)
        if not agents:
            return False
        _, count, *_ = separated(self._tokens, range(span.start + 2, span.stop - 1))
        capture = next(k for k in span if self._tokens[k].text == "[")
        opened = closing(self._tokens, capture) + 1
        first = next(iter(separated(self._tokens, range(opened + 1, closing(self._tokens, opened)))))
        if self._tokens[span.start].text != "lanes" or self._text(count) not in ("AGENTS", "OBSERVERS"):
            raise _UnclearError
        if agents != {self._tokens[first[-1]].text}:
            raise _UnclearError
        return True

    def _ways(self, name: str, path: Branches = ()) -> Iterator[tuple[Function, range, Branches]]:
        """The regions that a function comes to, each with the branches that lead to it."""
        f, spans = self._functions[name], {span.start: span for span in self._spans[name]}
        inside = {k for span in spans.values() for k in span}
        rest = [k for k in f.body if k not in inside]
        loops = any(self._tokens[k].text in _LOOPS for k in rest)
        if name in self._overloaded or self._agents(f, rest):
            raise _UnclearError
        for call in self._walks[name].calls:
            here = path + call.path
            if any(self._ruled_out(*branch) for branch in call.path):
                continue
            if call.at in spans:
                if loops and self._writes_rows(f, spans[call.at]):
                    raise _UnclearError
                yield f, spans[call.at], here
            elif call.name in self._functions and call.at not in inside and self._spans[call.name]:
                if loops:
                    raise _UnclearError
                yield from self._ways(call.name, here)

    def _ruled_out(self, at: int, way: int) -> bool:
        """Whether an option says that a branch is never taken."""
        if self._tokens[at].text != "if":
            return False
        opened = at + 1 + (self._tokens[at + 1].text == "constexpr")
        condition = self._text(range(opened + 1, closing(self._tokens, opened)))
        found = re.fullmatch(r"(! )?(?:Config : : |\w+ \. cfg \. )(\w+)", condition)
        return found is not None and self._options.get(found[2]) is (bool(found[1]) == (way == 0))


def _exclusive(left: Branches, right: Branches) -> bool:
    """Whether no way goes through both."""
    common = 0
    while common < min(len(left), len(right)) and left[common] == right[common]:
        common += 1
    return common < min(len(left), len(right)) and left[common][0] == right[common][0]
