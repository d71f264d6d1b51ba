"""Rules as the dialect's checker reads them: tokens with file and line, brackets, functions."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

_TOKEN = re.compile(
    r"(?P<number>(?:0[xX][0-9a-fA-F']+|\d[\d']*\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)[a-zA-Z]*)"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<line>\n)|(?P<other>[^\s])"
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'", re.DOTALL)


class DialectError(ValueError):
    """Rules that break the dialect; the message names file, line and rule."""


@dataclasses.dataclass(frozen=True)
class Piece:
    """A stretch of one file, with the ``#line`` mark in front of it."""

    path: Path
    line: int
    source: str

    @property
    def text(self) -> str:
        """What the compiler gets."""
        return f'#line {self.line} "{self.path}"\n{self.source}'


@dataclasses.dataclass(frozen=True)
class Token:
    """A number, a name, or another sign (``kind``), and where it stands: its line, and its place in the piece."""

    kind: str
    text: str
    path: Path
    line: int
    at: int

    def error(self, message: str) -> DialectError:
        """What is wrong here; the message is a sentence without its full stop."""
        return DialectError(f"{self.path}:{self.line}: {message}.")


def tokens_of(piece: Piece) -> Iterator[Token]:
    """The tokens of a piece; comments and texts are none."""
    clean = _COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), piece.source)
    line = piece.line
    for found in _TOKEN.finditer(clean):
        kind = found.lastgroup or ""
        if kind == "line":
            line += 1
        else:
            yield Token(kind, found[0], piece.path, line, found.start())


def closing(tokens: Sequence[Token], at: int) -> int:
    """Index of the bracket that closes the one at ``at``."""
    pairs = {"(": ")", "{": "}", "[": "]"}
    opening, other, depth = tokens[at].text, pairs[tokens[at].text], 0
    for k in range(at, len(tokens)):
        depth += (tokens[k].text == opening) - (tokens[k].text == other)
        if depth == 0:
            return k
    raise tokens[at].error(f"'{opening}' is never closed")


def separated(tokens: Sequence[Token], span: range) -> Iterator[range]:
    """What commas separate."""
    start, k = span.start, span.start
    while k < span.stop:
        if tokens[k].text in "([{":
            k = closing(tokens, k)
        elif tokens[k].text == ",":
            yield range(start, k)
            start = k + 1
        k += 1
    if start < span.stop:
        yield range(start, span.stop)


@dataclasses.dataclass
class Function:
    """A function of the rules; ranges are of tokens.

    Attributes:
        name: its name.
        env: the name of its Env parameter, or "".
        head: template parameters, type, name and parameters.
        parameters: between the brackets behind the name.
        body: with its brackets.
        collective: whether it is an entry or has regions.
        touches: whether it works on the state of one lane.
    """

    name: str
    env: str
    head: range
    parameters: range
    body: range
    collective: bool = False
    touches: bool = False


def functions_of(tokens: Sequence[Token]) -> Iterator[Function]:
    """The functions with a body, in order."""
    k = end = 0
    while k < len(tokens):
        if tokens[k].text != "GZ":
            k += 1
            continue
        start = end
        while k < len(tokens) and tokens[k].text != "(":
            k += 1
        name, opened, close = tokens[k - 1].text, k, closing(tokens, k)
        env = ""
        for j in range(k, close):
            if tokens[j].text == "Env":
                rest = [t.text for t in tokens[j + 1 : close] if t.text not in "&*"]
                env = rest[0] if rest else ""
        k = close + 1
        if k < len(tokens) and tokens[k].text == "{":
            end = closing(tokens, k) + 1
            yield Function(name, env, range(start, close), range(opened + 1, close), range(k, end))
            k = end


def whole_number(token: Token) -> int | None:
    """The value of a literal that is a whole number."""
    try:
        return int(token.text.rstrip("uUlL").replace("'", ""), 0)
    except ValueError:
        return None


def constants_of(tokens: Sequence[Token]) -> frozenset[str]:
    """Names of enumerators and of what is declared constexpr."""
    found = set()
    for k, token in enumerate(tokens):
        if token.text == "enum":
            brace = next((j for j in range(k, len(tokens)) if tokens[j].text in "{;"), k)
            if tokens[brace].text == "{":
                found |= {tokens[j].text for j in range(brace, closing(tokens, brace)) if tokens[j].kind == "name"}
        if token.text == "constexpr" and tokens[k - 1].text != "if":
            end = next((j for j in range(k, len(tokens)) if tokens[j].text == ";"), k)
            found |= {tokens[j].text for j in range(k, end) if tokens[j].kind == "name" and tokens[j + 1].text in "=;"}
    return frozenset(found)
