"""The rules of the rules: what a ``.cuh`` file may say, checked with file and line before any compiler sees it.

A *region* is a call of ``lanes``, ``once``, ``broadcast`` or a reduction: the only places in which an env's state is
touched. Outside of them every lane runs the same statements, so a read or a write there would race with another lane's
region. Other refusals keep the bits equal on every machine: no double precision, no library mathematics, no clock, no
hardware index. Raw pointers are refused because ``debug=True`` could not check them. What depends on the ways through a
function (draws, local arrays) is in `flow` and `draws`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gpuzoo.core.draws import check_draws
from gpuzoo.core.flow import Walk
from gpuzoo.core.masks import check_masks
from gpuzoo.core.scatters import check_scatters
from gpuzoo.core.tokens import DialectError, Function, Piece, Token, closing, constants_of, functions_of, tokens_of

REGIONS = frozenset(
    "lanes lanes_of_bits rows_of_bits lanes_of_views once broadcast lane_sum lane_min lane_max lane_any lane_argmin "
    "lanes_smallest lanes_nearest lanes_nearest_others in_random_order".split()
)
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
    "reinterpret_cast": "use words(row) for four bytes at once, or copy<N>(to, from): debug=True checks their indices",
} | {
    name: _OWN_MATH
    for base in "sin cos tan exp exp2 log log2 log10 pow tanh atan atan2 asin acos sincos".split()
    for name in (f"{base}f", f"__{base}f")
}

_POINTED = frozenset("float int bool char void auto u8 i8 i16 u32 i32 i64 u64 Observation Action".split())
_DOUBLE = re.compile(r"(?!0[xX])(?=.*[.eE]).*[^fF]")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)[ \t]*$')


def inline_includes(path: Path, seen: set[Path] | None = None) -> list[Piece]:
    """The file and what it includes from its own folder, each file once, in the order of use.

    Raises:
        DialectError: an include from elsewhere, or of a file that does not exist.
    """
    seen = set() if seen is None else seen
    seen.add(path)
    pieces: list[Piece] = []
    start, lines = 1, []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
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


def _is_real(tokens: Sequence[Token], k: int) -> bool:
    """Whether a literal stands in ``Real(...)``, which rounds it."""
    before = [token.text for token in tokens[max(0, k - 3) : k] if token.text != "-"]
    return before[-2:] == ["Real", "("]


def _check_pointers(tokens: Sequence[Token]) -> None:
    """Refuses types of raw pointers, and addresses: nobody would know how far they may go."""
    for k in range(1, len(tokens)):
        before, after = tokens[k - 1], tokens[k + 1 : k + 4]
        if tokens[k].text == "*" and before.text in _POINTED:
            raise before.error(
                f"'{before.text} *' is a pointer whose indices debug=True cannot check: write Row for an agent's "
                "observation, auto for a mask or a table, and a reference for one value"
            )
        if tokens[k].text != "&" or before.text not in ("(", ",", "=", "return", "?", ":", "{") or not after:
            continue
        name = after[0]
        captured = before.text == "," and _captures(tokens, k)
        reference_to_array = [t.text for t in after[1:]] == [")", "["]
        if name.kind == "name" and not captured and not reference_to_array:
            raise name.error(f"'&{name.text}' is an address, whose indices debug=True cannot check: use a reference")


def _captures(tokens: Sequence[Token], at: int) -> bool:
    """Whether it stands among the captures of a lambda."""
    depth = 0
    for k in range(at - 1, -1, -1):
        depth += (tokens[k].text in ")]}") - (tokens[k].text in "([{")
        if depth < 0:
            return tokens[k].text == "["
    return False


def region_spans(tokens: Sequence[Token], body: range) -> list[range]:
    """The regions of a function's body.

    Raises:
        DialectError: one is inside another.
    """
    spans: list[range] = []
    for k in body:
        if tokens[k].text in REGIONS and tokens[k + 1].text == "(" and tokens[k - 1].text not in (".", "::"):
            span = range(k, closing(tokens, k + 1) + 1)
            if any(k in outer for outer in spans):
                raise tokens[k].error(f"{tokens[k].text} inside another region: a region cannot contain a region")
            spans.append(span)
    return spans


def _lambda_bodies(tokens: Sequence[Token], span: range) -> set[int]:
    """The functions given to a region; the other arguments are outside of it."""
    inside: set[int] = set()
    for k in span:
        if tokens[k].text == "[" and tokens[k - 1].text in ("(", ",") and k not in inside:
            capture = [t.text for t in tokens[k + 1 : closing(tokens, k)]]
            if capture != ["="]:
                raise tokens[k].error("a region's function captures by value: write [=]")
            brace = next(j for j in range(k, span.stop) if tokens[j].text == "{")
            inside.update(range(k, closing(tokens, brace) + 1))
    if not inside:
        raise tokens[span.start].error(f"{tokens[span.start].text} wants a function [=](...) {{ ... }}")
    return inside


def counts(pieces: Sequence[Piece], region: str) -> Iterator[tuple[str, str]]:
    """Of each call of a region, the place in its file and the second argument's text, without blanks."""
    tokens = [token for piece in pieces for token in tokens_of(piece)]
    for k, token in enumerate(tokens[:-1]):
        if token.text == region and tokens[k + 1].text == "(":
            arguments: list[str] = [""]
            depth = 0
            for inner in tokens[k + 2 : closing(tokens, k + 1)]:
                depth += (inner.text in "([{") - (inner.text in ")]}")
                if inner.text == "," and depth == 0:
                    arguments.append("")
                else:
                    arguments[-1] += inner.text
            yield f"{token.path}:{token.line}", arguments[1] if len(arguments) > 1 else ""


def names(pieces: Sequence[Piece]) -> dict[str, str]:
    """All names in a game's rules, comments aside, and the first place of each as ``file:line``."""
    found: dict[str, str] = {}
    for piece in pieces:
        for token in tokens_of(piece):
            if token.kind == "name":
                found.setdefault(token.text, f"{token.path}:{token.line}")
    return found


def variable_indices(pieces: Sequence[Piece]) -> dict[str, str]:
    """Members of Env that rules index by what is not known before they run, and the first such place of each."""
    tokens = [token for piece in pieces for token in tokens_of(piece)]
    known = constants_of(tokens)
    walks = [Walk(tokens, f, known, REGIONS, any_index=True) for f in functions_of(tokens)]
    return {name: f"{tokens[k].path}:{tokens[k].line}" for walk in reversed(walks) for name, k in walk.variable.items()}


def check_rules(
    pieces: Sequence[Piece],
    dtypes: Mapping[str, str] | None = None,
    entries: Sequence[str] = ENTRIES,
    packed: bool = False,
    chooses: bool = False,
) -> None:
    """Checks a game's rules.

    Args:
        pieces: the file with all includes, from `inline_includes`.
        dtypes: of the game's fields, by name.
        entries: the functions that the engine calls.
        packed: whether they are rules of packs.
        chooses: whether they choose random actions.

    Raises:
        DialectError: the first broken rule, with file and line.
    """
    tokens = [token for piece in pieces for token in tokens_of(piece)]
    for k, token in enumerate(tokens):
        member = k > 0 and tokens[k - 1].text == "."
        if token.kind == "name" and token.text in FORBIDDEN and not member:
            raise token.error(f"'{token.text}' is not allowed in rules: {FORBIDDEN[token.text]}")
        if token.kind == "number" and _DOUBLE.fullmatch(token.text) and not (packed and _is_real(tokens, k)):
            raise token.error(f"'{token.text}' is a double: write {token.text}f")
        if token.text == "#" and not (tokens[k + 1].text == "pragma" and tokens[k + 2].text == "once"):
            raise token.error("the only directives allowed in rules are #include and #pragma once")

    _check_pointers(tokens)
    all_functions = list(functions_of(tokens))
    functions = {f.name: f for f in all_functions}
    for name in entries:
        if name not in functions or not functions[name].env:
            raise DialectError(f"{pieces[-1].path}:1: rules must define GZ void {name}(Env e).")
    if chooses and ("choose" not in functions or region_spans(tokens, functions["choose"].body)):
        raise DialectError(
            f"{pieces[-1].path}:1: rules must define GZ int choose(Env e, int agent, u32 bits), without regions."
        )
    known = constants_of(tokens)
    walks = [Walk(tokens, f, known, REGIONS, any_index=packed) for f in all_functions]
    if packed:
        check_masks(tokens, all_functions, REGIONS, dtypes or {})
    else:
        _check_regions(tokens, functions, dtypes or {}, entries)
    check_draws(tokens, walks, ENTRIES)


def _check_regions(
    tokens: Sequence[Token], functions: Mapping[str, Function], dtypes: Mapping[str, str], entries: Sequence[str]
) -> None:
    """State is touched in regions only, which do not nest, and cells are changed by scatters in one way only."""
    inside: dict[str, set[int]] = {}
    for f in functions.values():
        spans = region_spans(tokens, f.body)
        bodies = [_lambda_bodies(tokens, span) for span in spans]
        for body in bodies or [set(f.body)]:
            check_scatters(tokens, sorted(body), f.env, dtypes)
        inside[f.name] = set().union(*bodies)
        f.collective = f.name in entries or bool(spans)
    for _ in functions:  # one may call another
        for f in functions.values():
            called = {tokens[k].text for k in f.body[:-1] if tokens[k + 1].text == "(" and tokens[k - 1].text != "."}
            f.collective |= any(name in functions and functions[name].collective for name in called)
    for f in functions.values():
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
