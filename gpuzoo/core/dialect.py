"""The rules of the rules: what a ``.cuh`` file may say, checked with file and line before any compiler sees it.

A *region* is a call of ``lanes``, ``once``, ``broadcast`` or a reduction: the only places in which an env's state is
touched. Outside of them every lane runs the same statements, so a read or a write there would race with another lane's
region. The remaining refusals keep the bits equal on every machine: no double precision, no library mathematics, no
clock, no hardware index.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

REGIONS = frozenset(
    "lanes once broadcast lane_sum lane_min lane_max lane_any lane_argmin lanes_smallest in_random_order".split()
)
#: what iterations of one region may do to the same cell
SCATTERS = frozenset("scatter_add scatter_min scatter_max scatter_or".split())
CELLS = ("int32", "uint32", "uint64")
#: members of Env that are the same for all lanes during a step
UNIFORM = frozenset("cfg t max_steps episode seed".split())
ENTRIES = ("reset", "step", "observe")

_OWN_MATH = "use the engine's own functions (sin, cos, exp, log, pow, tanh, atan2, sqrt), equal on every machine"
_NO_INDEX = "lanes are reached through lanes(e, n, f)"
_NO_BARRIER = "every region ends with the barrier already"
FORBIDDEN = {
    "double": "use float: double precision is slow on GPUs",
    "rand": "use random_bits, uniform or random_int, which are reproducible",
    "srand": "use random_bits, uniform or random_int, which are reproducible",
    "clock": "a step depends on nothing but state and actions",
    "clock64": "a step depends on nothing but state and actions",
    "time": "a step depends on nothing but state and actions; the step counter is e.t",
    "threadIdx": _NO_INDEX,
    "blockIdx": _NO_INDEX,
    "blockDim": _NO_INDEX,
    "gridDim": _NO_INDEX,
    "__shared__": "declare a Field instead",
    "__syncthreads": _NO_BARRIER,
    "__syncwarp": _NO_BARRIER,
    "barrier": _NO_BARRIER,
    "reduce": "use lane_sum, lane_min, lane_max, lane_any or lane_argmin",
    "__device__": "write GZ in front of a function",
    "__global__": "the engine has the only kernels",
    "static": "state lives in Fields",
    "asm": "assembly is not portable",
    "goto": "write a loop",
    "volatile": "state lives in Fields",
    "malloc": "state lives in Fields",
    "new": "state lives in Fields",
    "printf": "kernels do not print; look at the state from Python",
} | {
    name: _OWN_MATH
    for base in "sin cos tan exp exp2 log log2 log10 pow tanh atan atan2 asin acos sincos".split()
    for name in (f"{base}f", f"__{base}f")
}

_TOKEN = re.compile(
    r"(?P<number>(?:0[xX][0-9a-fA-F']+|\d[\d']*\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)[a-zA-Z]*)"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<line>\n)|(?P<other>[^\s])"
)
_DOUBLE = re.compile(r"(?!0[xX])(?=.*[.eE]).*[^fF]")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'", re.DOTALL)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)[ \t]*$')


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
class _Token:
    kind: str
    text: str
    path: Path
    line: int

    def error(self, message: str) -> DialectError:
        return DialectError(f"{self.path}:{self.line}: {message}.")


def inline_includes(path: Path, seen: set[Path] | None = None) -> list[Piece]:
    """The file and what it includes from its own folder, each file once, in the order of use.

    Raises:
        DialectError: an include from elsewhere, or of a file that does not exist.
    """
    seen = set() if seen is None else seen
    seen.add(path)
    pieces: list[Piece] = []
    start, lines = 1, []
    for number, line in enumerate(path.read_text().split("\n"), 1):
        found = _INCLUDE.match(line)
        if not found:
            lines.append(line)
            continue
        where = f"{path}:{number}"
        name = found[1] or found[2]
        target = path.parent / name
        if not found[1] or target.resolve().parent != path.parent.resolve():
            raise DialectError(f"{where}: #include {name}: rules include only files of their own folder, in quotes.")
        if not target.is_file():
            raise DialectError(f"{where}: #include {name}: no such file in {path.parent}.")
        pieces.append(Piece(path, start, "\n".join(lines) + "\n"))
        start, lines = number + 1, []
        if target not in seen:
            pieces += inline_includes(target, seen)
    pieces.append(Piece(path, start, "\n".join(lines) + "\n"))
    return pieces


def _tokens(piece: Piece) -> Iterator[_Token]:
    clean = _COMMENT.sub(lambda m: " " + "\n" * m[0].count("\n"), piece.source)
    line = piece.line
    for found in _TOKEN.finditer(clean):
        kind = found.lastgroup or ""
        if kind == "line":
            line += 1
        else:
            yield _Token(kind, found[0], piece.path, line)


def _match(tokens: Sequence[_Token], at: int) -> int:
    """Index of the bracket that closes the one at ``at``."""
    pairs = {"(": ")", "{": "}", "[": "]"}
    opening, closing, depth = tokens[at].text, pairs[tokens[at].text], 0
    for k in range(at, len(tokens)):
        depth += (tokens[k].text == opening) - (tokens[k].text == closing)
        if depth == 0:
            return k
    raise tokens[at].error(f"'{opening}' is never closed")


@dataclasses.dataclass
class _Function:
    name: str
    env: str  # the name of its Env parameter, or ""
    body: range
    collective: bool = False
    touches: bool = False


def _functions(tokens: Sequence[_Token]) -> Iterator[_Function]:
    k = 0
    while k < len(tokens):
        if tokens[k].text != "GZ":
            k += 1
            continue
        while k < len(tokens) and tokens[k].text != "(":
            k += 1
        name, close = tokens[k - 1].text, _match(tokens, k)
        env = ""
        for j in range(k, close):
            if tokens[j].text == "Env":
                rest = [t.text for t in tokens[j + 1 : close] if t.text not in "&*"]
                env = rest[0] if rest else ""
        k = close + 1
        if k < len(tokens) and tokens[k].text == "{":
            end = _match(tokens, k)
            yield _Function(name, env, range(k, end + 1))
            k = end + 1


def _region_spans(tokens: Sequence[_Token], body: range) -> list[range]:
    spans: list[range] = []
    for k in body:
        if tokens[k].text in REGIONS and tokens[k + 1].text == "(" and tokens[k - 1].text not in (".", "::"):
            span = range(k, _match(tokens, k + 1) + 1)
            if any(k in outer for outer in spans):
                raise tokens[k].error(f"{tokens[k].text} inside another region: a region cannot contain a region")
            spans.append(span)
    return spans


def _lambda_bodies(tokens: Sequence[_Token], span: range) -> set[int]:
    """The functions given to a region; the other arguments are outside of it."""
    inside: set[int] = set()
    for k in span:
        if tokens[k].text == "[" and tokens[k - 1].text in ("(", ",") and k not in inside:
            capture = [t.text for t in tokens[k + 1 : _match(tokens, k)]]
            if capture != ["="]:
                raise tokens[k].error("a region's function captures by value: write [=]")
            brace = next(j for j in range(k, span.stop) if tokens[j].text == "{")
            inside.update(range(k, _match(tokens, brace) + 1))
    if not inside:
        raise tokens[span.start].error(f"{tokens[span.start].text} wants a function [=](...) {{ ... }}")
    return inside


def _check_scatters(tokens: Sequence[_Token], body: Sequence[int], env: str, dtypes: Mapping[str, str]) -> None:
    """Checks that nothing else happens to the cells that a region, or a helper called in one, scatters into."""

    def field(k: int) -> str:
        """Its name, where ``e.name`` begins at ``k``."""
        return tokens[k + 2].text if tokens[k].text == env and tokens[k + 1].text == "." else ""

    ways: dict[str, str] = {}
    targets = set()
    for k in body:
        way = tokens[k].text
        if way not in SCATTERS or tokens[k + 1].text != "(" or not field(k + 2):
            continue
        name = field(k + 2)
        targets.add(k + 2)
        if dtypes.get(name, CELLS[0]) not in CELLS:
            raise tokens[k].error(
                f"{way} into {env}.{name}, which is {dtypes[name]}: cells are fields of {', '.join(CELLS)}, whose bits "
                "do not depend on the order; for sums of floats there is lane_sum"
            )
        if ways.setdefault(name, way) != way:
            raise tokens[k].error(f"{way} into {env}.{name}, which this region also gives to {ways[name]}")
    for k in body:
        if k not in targets and field(k) in ways:
            raise tokens[k].error(
                f"{env}.{field(k)} beside {ways[field(k)]} in one region: read it or write it otherwise in another"
            )


def counts(pieces: Sequence[Piece], region: str) -> Iterator[tuple[str, str]]:
    """Of each call of a region, the place in its file and the second argument's text, without blanks."""
    tokens = [token for piece in pieces for token in _tokens(piece)]
    for k, token in enumerate(tokens[:-1]):
        if token.text == region and tokens[k + 1].text == "(":
            arguments: list[str] = [""]
            depth = 0
            for inner in tokens[k + 2 : _match(tokens, k + 1)]:
                depth += (inner.text in "([{") - (inner.text in ")]}")
                if inner.text == "," and depth == 0:
                    arguments.append("")
                else:
                    arguments[-1] += inner.text
            yield f"{token.path}:{token.line}", arguments[1] if len(arguments) > 1 else ""


def names(pieces: Sequence[Piece]) -> frozenset[str]:
    """All names in a game's rules, comments aside."""
    return frozenset(token.text for piece in pieces for token in _tokens(piece) if token.kind == "name")


def check_rules(
    pieces: Sequence[Piece], dtypes: Mapping[str, str] | None = None, entries: Sequence[str] = ENTRIES
) -> None:
    """Checks a game's rules.

    Args:
        pieces: the file with all includes, from `inline_includes`.
        dtypes: of the game's fields, by name.
        entries: the functions that the engine calls.

    Raises:
        DialectError: the first broken rule, with file and line.
    """
    tokens = [token for piece in pieces for token in _tokens(piece)]
    for k, token in enumerate(tokens):
        member = k > 0 and tokens[k - 1].text == "."
        if token.kind == "name" and token.text in FORBIDDEN and not member:
            raise token.error(f"'{token.text}' is not allowed in rules: {FORBIDDEN[token.text]}")
        if token.kind == "number" and _DOUBLE.fullmatch(token.text):
            raise token.error(f"'{token.text}' is a double: write {token.text}f")
        if token.text == "#" and not (tokens[k + 1].text == "pragma" and tokens[k + 2].text == "once"):
            raise token.error("the only directives allowed in rules are #include and #pragma once")

    functions = {f.name: f for f in _functions(tokens)}
    for name in entries:
        if name not in functions or not functions[name].env:
            raise DialectError(f"{pieces[-1].path}:1: rules must define GZ void {name}(Env e).")
    inside: dict[str, set[int]] = {}
    for f in functions.values():
        spans = _region_spans(tokens, f.body)
        bodies = [_lambda_bodies(tokens, span) for span in spans]
        for body in bodies or [set(f.body)]:
            _check_scatters(tokens, sorted(body), f.env, dtypes or {})
        inside[f.name] = set().union(*bodies)
        f.collective = f.name in entries or bool(spans)
        f.touches = bool(f.env) and not f.collective
    for f in functions.values():
        for k in f.body:
            token, here = tokens[k], k in inside[f.name]
            callee = functions.get(token.text) if tokens[k - 1].text != "." and k + 1 < len(tokens) else None
            if callee and tokens[k + 1].text == "(":
                if callee.collective and (here or not f.collective):
                    raise token.error(f"{callee.name} has regions of its own, so it cannot be called inside a region")
                if callee.touches and f.collective and not here:
                    raise token.error(f"{callee.name} works on the state of one lane: call it inside a region")
            if not f.collective or here or token.text != f.env or tokens[k + 1].text != ".":
                continue
            if tokens[k + 2].text not in UNIFORM:
                raise token.error(
                    f"{f.env}.{tokens[k + 2].text} outside of a region: wrap it in lanes, once, broadcast or a "
                    "reduction, where state may be read and written"
                )
