"""Packed rules: what a condition may be, and how a block that only some envs need changes what is outside of it.

A pack's envs take every way together. So a condition is the same for all of them or goes through ``any`` and ``all``,
and a block behind such a condition, which runs because of *some* env, must leave the others as they were. Only the text
is looked at; what it does not show, tests in several widths and orders do.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence

from gpuzoo.core.scatters import SCATTERS
from gpuzoo.core.tokens import Function, Token, closing

_PACKS = frozenset(("Pack", "PackInt", "PackMask"))
_UNIFORM = frozenset("int bool float u32 u8 i64 u64".split())
_GUARDS = frozenset(("any", "all"))
_LEAVE = frozenset(("break", "continue", "return"))
#: members of Env that differ from env to env, beside fields
_MEMBERS = frozenset("action reward terminated observation state t".split())
#: members of Env that packed rules do not have
_ABSENT = ("terminate", "terminate_all", "alive", "action_mask")


def check_masks(
    tokens: Sequence[Token], functions: Sequence[Function], regions: Collection[str], fields: Collection[str]
) -> None:
    """Checks packed rules.

    Args:
        tokens: of the rules.
        functions: all of them.
        regions: names of the dialect's regions, which packed rules do not have.
        fields: names of the game's fields.

    Raises:
        DialectError: the first broken rule, with file and line.
    """
    for k, token in enumerate(tokens[:-1]):
        called = tokens[k + 1].text == "(" and tokens[k - 1].text != "."
        if token.text in regions and called:
            raise token.error(f"{token.text} in packed rules: a pack has one lane, so write the statements alone")
        if token.text in SCATTERS and called:
            raise token.error(f"{token.text} in packed rules: an env has no agents that meet in a cell")
    for function in functions:
        _Guards(tokens, function, _MEMBERS | set(fields)).check()


class _Guards:
    """Goes through one function.

    Args:
        tokens: of the rules.
        function: which one.
        members: of Env, those that differ from env to env.
    """

    def __init__(self, tokens: Sequence[Token], function: Function, members: Collection[str]) -> None:
        self._tokens, self._function, self._members = tokens, function, members
        self._packs = set(self._declared(function.head.start, function.body.stop, _PACKS))
        self._uniform = set(self._declared(function.head.start, function.body.stop, _UNIFORM)) - self._packs

    def check(self) -> None:
        body = self._function.body
        for k in body:
            if self._is_env(k) and self._tokens[k + 2].text in _ABSENT:
                raise self._tokens[k].error(
                    f"{self._function.env}.{self._tokens[k + 2].text} in packed rules: agents end together, by "
                    f"{self._function.env}.terminated = ..., and have no masks"
                )
        self._block(body.start + 1, body.stop - 1, None)

    # ---- statements; `own` is None where nothing guards, else the names that the guarded block declared ----

    def _block(self, at: int, stop: int, own: set[str] | None) -> None:
        inner = None if own is None else set(own)
        while at < stop:
            at = self._statement(at, stop, inner)

    def _statement(self, at: int, stop: int, own: set[str] | None) -> int:
        tokens = self._tokens
        text = tokens[at].text
        if text == "{":
            end = closing(tokens, at)
            self._block(at + 1, end, own)
            return end + 1
        if text in ("if", "while", "for", "switch"):
            opened = at + 1 + (tokens[at + 1].text == "constexpr")
            close = closing(tokens, opened)
            first, last = opened + 1, close
            if text == "for":
                semicolons = [k for k in range(first, close) if tokens[k].text == ";"]
                if len(semicolons) == 2:
                    self._plain(first, semicolons[0], own)
                    first, last = semicolons[0] + 1, semicolons[1]
            self._condition(first, last)
            end = self._end(close + 1, stop)
            guarded = self._has_guard(first, last) or (text != "if" and self._is_left(close + 1, end))
            inner = own if not guarded else (set() if own is None else own)
            if text == "if" and guarded:
                self._refuse_return(close + 1, end)
            self._statement(close + 1, stop, inner)
            if text == "if" and end < stop and tokens[end].text == "else":
                self._statement(end + 1, stop, inner)
                end = self._end(end + 1, stop)
            return end
        if text in ("else", "do"):
            return self._statement(at + 1, stop, own)
        end = self._semicolon(at, stop)
        self._plain(at, end, own)
        return end + 1

    def _plain(self, at: int, end: int, own: set[str] | None) -> None:
        tokens = self._tokens
        for k in range(at, end):
            if tokens[k].text == "?":
                start = self._start_of_choice(at, k)
                self._condition(start, k)
        if own is None:
            return
        declared = set(self._declares(at, end))
        if declared:
            own |= declared
            return
        equal = next((k for k in self._level(at, end) if tokens[k].text == "="), None)
        if equal is None or tokens[equal - 1].text in ("<", ">", "!", "=") or tokens[equal + 1].text == "=":
            return
        root, before = tokens[at].text, tokens[equal - 1].text
        if root in own or root in self._uniform:
            return
        right = [tokens[k].text for k in range(equal + 1, end)]
        left = [tokens[k].text for k in range(at, equal)]
        if before in "+-*/%^&|<>":
            fits = before == "&" or (before == "|" and "&" in right)
        else:
            fits = right[:2] == ["select", "("] or right[: len(left) + 1] == [*left, "&"]
        if not fits:
            name = "".join(left[:-1] if before in "+-*/%^&|<>" else left)
            raise tokens[at].error(
                f"{name} is changed in a block that runs because of some envs: write {name} = select(m, ..., {name}) "
                "with a mask m of these, so that the others keep what they have"
            )

    def _refuse_return(self, at: int, end: int) -> None:
        for k in range(at, end):
            if self._tokens[k].text == "return":
                raise self._tokens[k].error(
                    "return behind any() or all(): what follows would be computed or not as other envs want; use select"
                )

    # ---- conditions ----

    def _condition(self, at: int, stop: int) -> None:
        tokens, k = self._tokens, at
        while k < stop:
            if tokens[k].text in _GUARDS and tokens[k + 1].text == "(":
                k = closing(tokens, k + 1)
            elif self._is_env(k) and tokens[k + 2].text in self._members:
                self._refuse(k, f"{tokens[k].text}.{tokens[k + 2].text}")
            elif tokens[k].text in self._packs and tokens[k - 1].text not in (".", "::"):
                self._refuse(k, tokens[k].text)
            k += 1

    def _refuse(self, at: int, name: str) -> None:
        raise self._tokens[at].error(
            f"{name} in a condition: it has a value for each env; write select(m, a, b), or if (any(m)) with select "
            "inside"
        )

    def _has_guard(self, at: int, stop: int) -> bool:
        return any(self._tokens[k].text in _GUARDS and self._tokens[k + 1].text == "(" for k in range(at, stop))

    def _is_left(self, at: int, end: int) -> bool:
        """Whether a loop's body is left behind any() or all()."""
        tokens = self._tokens
        for k in range(at, end):
            if tokens[k].text == "if" and tokens[k + 1].text == "(":
                close = closing(tokens, k + 1)
                inside = range(close, self._end(close + 1, end))
                if self._has_guard(k, close) and any(tokens[j].text in _LEAVE for j in inside):
                    return True
        return False

    # ---- the text ----

    def _is_env(self, k: int) -> bool:
        env = self._function.env
        return bool(env) and self._tokens[k].text == env and self._tokens[k + 1].text == "."

    def _end(self, at: int, stop: int) -> int:
        """Where the statement that begins here ends, without the else of an if."""
        tokens = self._tokens
        if at >= stop:
            return stop
        if tokens[at].text == "{":
            return closing(tokens, at) + 1
        if tokens[at].text in ("if", "while", "for", "switch"):
            opened = at + 1 + (tokens[at + 1].text == "constexpr")
            end = self._end(closing(tokens, opened) + 1, stop)
            if tokens[at].text == "if" and end < stop and tokens[end].text == "else":
                end = self._end(end + 1, stop)
            return end
        return self._semicolon(at, stop) + 1

    def _semicolon(self, at: int, stop: int) -> int:
        while at < stop and self._tokens[at].text != ";":
            at = closing(self._tokens, at) + 1 if self._tokens[at].text in "([{" else at + 1
        return min(at, stop)

    def _level(self, at: int, end: int) -> Iterator[int]:
        """Tokens outside of brackets."""
        while at < end:
            if self._tokens[at].text in "([{":
                at = closing(self._tokens, at)
            else:
                yield at
            at += 1

    def _start_of_choice(self, at: int, mark: int) -> int:
        """Where the condition in front of a question mark begins."""
        depth = 0
        for k in range(mark - 1, at - 1, -1):
            text = self._tokens[k].text
            depth += (text in ")]}") - (text in "([{")
            double = text == "=" and (self._tokens[k - 1].text in "=<>!" or self._tokens[k + 1].text == "=")
            if depth < 0 or (depth == 0 and (text in (",", "?", ":", "return") or (text == "=" and not double))):
                return k + 1
        return at

    def _declares(self, at: int, end: int) -> Iterator[str]:
        """Names that a statement declares."""
        tokens = self._tokens
        words = [k for k in self._level(at, end) if tokens[k].text not in ("const", "constexpr", "&")]
        if len(words) < 2 or tokens[words[0]].kind != "name" or tokens[words[1]].kind != "name":
            return
        if tokens[words[0]].text in ("return", "else", "case"):
            return
        for before, k in itertools.pairwise(words):
            if tokens[k].kind == "name" and (k == words[1] or tokens[before].text == ","):
                yield tokens[k].text

    def _declared(self, at: int, stop: int, types: Collection[str]) -> Iterator[str]:
        """Names of these types: of variables, and of parameters."""
        tokens = self._tokens
        for k in range(at, stop - 1):
            if tokens[k].text not in types:
                continue
            place = k + 1 + (tokens[k + 1].text == "&")
            while place < stop and tokens[place].kind == "name":
                yield tokens[place].text
                end = place + 1
                while end < stop and tokens[end].text not in (",", ";", ")", ":"):
                    end = closing(tokens, end) + 1 if tokens[end].text in "([{" else end + 1
                if end >= stop or tokens[end].text != "," or tokens[end + 1].kind != "name":
                    break
                if tokens[end + 2].kind == "name" or tokens[end + 2].text == "&":  # the next parameter has a type
                    break
                place = end + 1
