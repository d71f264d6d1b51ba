"""The ways through a function of the rules: which draws and calls lie on one, and what names stand for.

The text alone is looked at: what it does not decide counts as unknown, and is not refused. One file, as it is one walk:
statements, expressions and names share what is known at each place.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from gpuzoo.core.tokens import Function, Token, closing, separated, whole_number

#: functions of random numbers: how many arguments follow the draw, and how many draws they take
_DRAWS = {"uniform": (2, 1), "random_int": (1, 1), "random_bits": (0, 1), "normal": (0, 2)}
_KEYWORDS = frozenset("return else do case goto new typename class struct enum using template".split())
_TYPES = frozenset("int u8 i8 i16 u32 i64 u64 bool sizeof".split())
_ASSIGNMENTS = frozenset("+-*/%&|^<>")
_LEAVE = frozenset(("return", "break", "continue"))
UNROLLED = 16  # so long a loop is unrolled

#: the branches that lead somewhere: (the token that decides, which way)
Branches = tuple[tuple[int, int], ...]


@dataclasses.dataclass(frozen=True)
class Name:
    """A variable: where it is declared, and what can be known of its value."""

    at: int
    kind: str  # parameter, lane, loop, constant or variable
    value: range = range(0)  # tokens of the initial value
    unrolled: bool = False  # whether compilers know it in each round


@dataclasses.dataclass(frozen=True)
class Draw:
    """A call that draws, as one way through a function meets it."""

    at: int
    agent: str  # the same text for the same agent; "" where that cannot be known
    everywhere: bool  # whether the agent means the same in every function
    draws: frozenset[str]
    path: Branches
    repeated: bool  # in a loop, and the same number in each round


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of any function."""

    at: int
    name: str
    path: Branches


class Walk:
    """Goes through one function, statement by statement.

    Args:
        tokens: of the rules.
        function: which one.
        known: names that are constants everywhere, from `tokens.constants_of`.
        regions: names of the functions that run a function for lanes.
        any_index: whether local arrays may have any index.

    Attributes:
        name: the function's.
        draws: of random numbers.
        calls: of any functions.
        variable: of a member, `e.name`, the first index that compilers do not know.

    Raises:
        DialectError: a local array with a variable index, with file and line.
    """

    def __init__(
        self,
        tokens: Sequence[Token],
        function: Function,
        known: frozenset[str],
        regions: frozenset[str],
        any_index: bool = False,
    ) -> None:
        self.name = function.name
        self.draws: list[Draw] = []
        self.calls: list[Call] = []
        self.variable: dict[str, int] = {}
        self._tokens, self._known, self._regions = tokens, known, regions
        self._any_index = any_index
        self._body = function.body
        self._scopes: list[dict[str, Name]] = [{}]
        self._arrays: list[set[str]] = [set()]
        self._loops: list[range] = []
        self._switches = 0  # in which cases exclude each other, or not
        for part in separated(self._tokens, function.parameters):
            for k in part[-1:]:
                self._scopes[0][tokens[k].text] = Name(k, "parameter")
        head = [tokens[k].text for k in function.head]
        if "template" in head:
            start = function.head.start + len(head) - head[::-1].index("template")
            for k in range(start, function.parameters.start):
                if tokens[k].text in (",", ">") and tokens[k - 1].kind == "name":
                    self._scopes[0][tokens[k - 1].text] = Name(k - 1, "constant", unrolled=True)
        self._block(function.body.start + 1, function.body.stop - 1, ())

    # ---- statements ----

    def _block(self, at: int, stop: int, path: Branches) -> bool:
        """Whether it always leaves what it stands in."""
        self._scopes.append({})
        self._arrays.append(set())
        leaves = False
        while at < stop:
            start = at
            at, leaves, stays = self._statement(at, stop, path)
            path += stays
            assert at > start, "a statement has tokens"
        self._scopes.pop()
        self._arrays.pop()
        return leaves

    def _statement(self, at: int, stop: int, path: Branches) -> tuple[int, bool, Branches]:
        """What follows it, whether it always leaves, and the branch that what follows is in."""
        text = self._tokens[at].text
        if text == "{":
            end = closing(self._tokens, at)
            return end + 1, self._block(at + 1, end, path), ()
        if text == "if":
            return self._if(at, stop, path)
        if text in ("for", "while", "switch"):
            return self._loop(at, stop, path), False, ()
        if text == "do":
            end, _, _ = self._statement(at + 1, stop, path)
            return self._until_semicolon(end, stop), False, ()
        end = self._until_semicolon(at, stop)
        self._declare(at, end, "variable")
        self._expression(at, end, path)
        return end, text in _LEAVE, ()

    def _if(self, at: int, stop: int, path: Branches) -> tuple[int, bool, Branches]:
        opened = at + 1 + (self._tokens[at + 1].text == "constexpr")
        close = closing(self._tokens, opened)
        self._expression(opened + 1, close, path)
        end, left, _ = self._statement(close + 1, stop, (*path, (at, 0)))
        if end >= stop or self._tokens[end].text != "else":
            return end, False, ((at, 1),) if left else ()
        end, right, _ = self._statement(end + 1, stop, (*path, (at, 1)))
        return end, left and right, ((at, 1),) * left + ((at, 0),) * right

    def _loop(self, at: int, stop: int, path: Branches) -> int:
        close = closing(self._tokens, at + 1)
        self._scopes.append({})
        switch = self._tokens[at].text == "switch"
        if self._tokens[at].text == "for":
            self._declare(at + 2, close, "loop")
        end = self._end_of_statement(close + 1, stop)
        self._loops.append(range(at, end))
        self._switches += switch
        self._expression(at + 2, close, path)
        self._statement(close + 1, stop, path)
        self._switches -= switch
        self._loops.pop()
        self._scopes.pop()
        return end

    def _end_of_statement(self, at: int, stop: int) -> int:
        text = self._tokens[at].text
        if text == "{":
            return closing(self._tokens, at) + 1
        if text in ("for", "while", "switch", "if"):
            opened = next(k for k in range(at, stop) if self._tokens[k].text == "(")
            end = self._end_of_statement(closing(self._tokens, opened) + 1, stop)
            if text == "if" and end < stop and self._tokens[end].text == "else":
                end = self._end_of_statement(end + 1, stop)
            return end
        return self._until_semicolon(at, stop)

    def _until_semicolon(self, at: int, stop: int) -> int:
        while at < stop and self._tokens[at].text != ";":
            at = closing(self._tokens, at) + 1 if self._tokens[at].text in "([{" else at + 1
        return min(at + 1, stop)

    # ---- expressions ----

    def _expression(self, at: int, stop: int, path: Branches) -> None:
        tokens, outer, choices = self._tokens, path, list[Branches]()
        while at < stop:
            token = tokens[at]
            if token.text in "([{":
                end = closing(tokens, at)
                if token.text == "[" and at + 1 < stop and tokens[at - 1].kind == "name":
                    self._index(at, end)
                if token.text == "{" and any(tokens[k].text == ";" for k in range(at, end)):
                    self._lambda(at, end, path)
                else:
                    self._expression(at + 1, end, path)
                at = end + 1
                continue
            double = at + 1 < len(tokens) and tokens[at + 1].text == token.text
            if token.text == "?":
                choices.append(path)
                path += ((at, 0),)
            elif token.text == ":" and not double and tokens[at - 1].text != ":" and choices:
                before = choices.pop()
                path = (*before, (path[len(before)][0], 1))
            elif token.text in "&|" and double:
                path += ((at, -1),)
                at += 1
            elif token.text in ",;":
                path, choices = outer, []
            elif token.kind == "name" and tokens[at - 1].text not in (".", "::"):
                self._called(at, stop, path)
            at += 1

    def _called(self, at: int, stop: int, path: Branches) -> None:
        tokens, opened = self._tokens, at + 1
        if opened < stop and tokens[opened].text == "<":  # template arguments
            opened = next((k + 1 for k in range(opened, min(stop, opened + 12)) if tokens[k].text == ">"), stop)
        if opened >= stop or tokens[opened].text != "(" or self._switches:
            return
        if tokens[at].text in _DRAWS and opened == at + 1:
            self._draw(at, path)
        if tokens[at].text == "in_random_order":
            self._order(at, path)
        self.calls.append(Call(at, tokens[at].text, path))

    def _lambda(self, at: int, end: int, path: Branches) -> None:
        """The body of a function within an expression, with its parameters."""
        tokens, scope = self._tokens, dict[str, Name]()
        if tokens[at - 1].text == ")":
            opened = next(k for k in range(at - 1, 0, -1) if tokens[k].text == "(" and closing(tokens, k) == at - 1)
            region = self._region(opened)
            for number, part in enumerate(separated(self._tokens, range(opened + 1, at - 1))):
                for k in part[-1:]:
                    unrolled = region is None or self._constant(region)
                    kind = "parameter" if region is None else f"lane {number}"
                    scope[tokens[k].text] = Name(k, kind, unrolled=unrolled)
        self._scopes.append(scope)
        loops, self._loops = self._loops, []
        self._block(at + 1, end, path)
        self._loops = loops
        self._scopes.pop()

    def _region(self, parameters: int) -> range | None:
        """How many lanes the region has whose function has these parameters; None if it is no region's."""
        depth = 0
        for k in range(parameters - 1, self._body.start, -1):
            depth += (self._tokens[k].text in ")]}") - (self._tokens[k].text in "([{")
            if depth < 0:
                name = self._tokens[k - 1].text
                if self._tokens[k].text != "(" or name not in self._regions:
                    return None
                parts = list(separated(self._tokens, range(k + 1, closing(self._tokens, k))))
                return parts[1] if len(parts) > 1 else range(0)
        return None

    def _index(self, at: int, end: int) -> None:
        tokens, name = self._tokens, self._tokens[at - 1].text
        if all(self._is_known(k) for k in range(at + 1, end)):
            return
        if tokens[at - 2].text == ".":
            self.variable.setdefault(name, at)
        elif not self._any_index and any(name in names for names in self._arrays):
            index = "".join(tokens[k].text for k in range(at + 1, end))
            raise tokens[at - 1].error(
                f"{name}[{index}]: a local array is indexed by constants, or by a loop of at most {UNROLLED} rounds "
                "whose ends are constants; anything else needs a Field, or ? : between scalars"
            )

    # ---- names ----

    def _declare(self, at: int, stop: int, kind: str) -> None:
        """Names that a statement, or the first part of a loop's head, declares."""
        tokens = self._tokens
        constant = any(tokens[k].text == "constexpr" for k in range(at, min(at + 2, stop)))
        const = tokens[at].text == "const"
        words = [k for k in range(at, stop) if tokens[k].kind == "name" and tokens[k].text != "const"]
        if len(words) < 2 or tokens[words[0]].text in _KEYWORDS:
            return
        end = next((k for k in range(at, stop) if tokens[k].text == ";"), stop)
        for number, part in enumerate(separated(self._tokens, range(at, end))):
            if not part:
                continue
            name = next((k for k in part if self._is_declared(k, number, part)), None)
            if name is None:
                return
            equals = next((k for k in part if k > name and tokens[k].text in "=({"), None)
            value = range(equals + 1, part.stop) if equals is not None else range(0)
            bounded = kind == "loop" and self._bounded(end, stop, tokens[name].text, value)
            known = constant or (const and bool(value) and self._constant(value))
            here = "constant" if constant or const else kind
            self._scopes[-1][tokens[name].text] = Name(name, here, value, known or bounded)
            if name + 1 < len(tokens) and tokens[name + 1].text == "[":
                self._arrays[-1].add(tokens[name].text)
            else:
                self._arrays[-1].discard(tokens[name].text)

    def _is_declared(self, k: int, number: int, part: range) -> bool:
        tokens = self._tokens
        if tokens[k].kind != "name" or tokens[k + 1].text not in ("=", ";", ",", "(", "{", "[", ":"):
            return False
        if number:
            return all(tokens[j].text in "&*" for j in range(part.start, k))
        before = [tokens[j].text for j in range(part.start, k)]
        return bool(before) and (before[-1] in ("&", ">", "*") or tokens[k - 1].kind == "name") and "(" not in before

    def _bounded(self, end: int, stop: int, name: str, start: range) -> bool:
        """Whether ``name`` runs from one constant to another that is small, or may be."""
        tokens = self._tokens
        if end + 1 >= stop or not self._constant(start) or tokens[end + 1].text != name:
            return False
        limit = range(
            end + 3 + (tokens[end + 3].text == "="), next(k for k in range(end + 1, stop) if tokens[k].text == ";")
        )
        return tokens[end + 2].text in "<>!" and self._constant(limit)

    def _constant(self, part: range) -> bool:
        """Whether compilers know a value that unrolls a loop: constants, if a number then a small one."""
        tokens = self._tokens
        if len(part) == 1 and tokens[part[0]].kind == "number":
            number = whole_number(tokens[part[0]])
            return number is not None and number <= UNROLLED
        return bool(part) and all(self._is_known(k) for k in part)

    def _is_known(self, k: int) -> bool:
        token = self._tokens[k]
        if (
            token.kind != "name"
            or token.text.isupper()
            or token.text in _TYPES
            or token.text in self._known
            or self._tokens[k - 1].text == ":"
        ):
            return True
        found = self._find(token.text)
        return found is not None and found.unrolled

    def _find(self, name: str) -> Name | None:
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), None)

    def _assigned(self, name: str, found: Name) -> bool:
        """Whether the function changes a parameter of its own."""
        if found.kind != "parameter":
            return False
        text = [self._tokens[k].text for k in self._body]
        for j, word in enumerate(text):
            if word != name or text[j - 1] == ".":
                continue
            after, then = text[j + 1], text[j + 2]
            if (after == "=" and then != "=") or (
                after in _ASSIGNMENTS and "=" in (then, text[j + 3]) and then != after
            ):
                return True
            if (after == then and after in "+-") or (text[j - 1] == text[j - 2] and text[j - 1] in "+-"):
                return True
        return False

    # ---- random numbers ----

    def _draw(self, at: int, path: Branches) -> None:
        parts = list(separated(self._tokens, range(at + 2, closing(self._tokens, at + 1))))
        behind, count = _DRAWS[self._tokens[at].text]
        if len(parts) - behind not in (2, 3):
            return
        agent, everywhere, names = "the env", True, list[Name]()
        if len(parts) - behind == 3:
            agent, everywhere = self._same(parts[1], names)
        draws = self._numbers(parts[len(parts) - behind - 1], count)
        if not draws:
            return
        inner = self._loops[-1] if self._loops else range(0)
        varies = any(name.at in inner for name in names)
        branches = [choice for choice, _ in path if choice in inner]
        repeated = bool(agent) and bool(inner) and not varies and not branches
        self.draws.append(Draw(at, agent, everywhere, draws, path, repeated))

    def _order(self, at: int, path: Branches) -> None:
        """A region in a random order takes one draw of each of its lanes."""
        parts = list(separated(self._tokens, range(at + 2, closing(self._tokens, at + 1))))
        draws = self._numbers(parts[2], 1) if len(parts) in (4, 5) else frozenset[str]()
        if draws:
            self.draws.append(Draw(at, "lane 0", True, draws, path, False))

    def _numbers(self, draw: range, count: int) -> frozenset[str]:
        """``count`` draws from this one on; none where they cannot be known."""
        first, fixed = self._same(draw, [])
        if not first or not fixed or "lane" in first:
            return frozenset()
        number = whole_number(self._tokens[draw[0]]) if len(draw) == 1 else None
        return frozenset(str(number + k) if number is not None else first + f" + {k}" * (k > 0) for k in range(count))

    def _same(self, part: range, names: list[Name]) -> tuple[str, bool]:
        """A text that is the same for the same value, or "", and whether it is so in every function."""
        words, everywhere = [], True
        for k in part:
            token = self._tokens[k]
            found = self._find(token.text) if token.kind == "name" else None
            if found is None and (token.kind == "number" or token.text in "+-*()" or token.text.isupper()):
                words.append(token.text)
            elif found is None or found.kind == "variable" or self._assigned(token.text, found):
                return "", False
            elif found.kind == "constant" and found.value:
                text, fixed = self._same(found.value, names)
                if not text:
                    return "", False
                words.append(f"({text})")
                everywhere &= fixed
            else:
                names.append(found)
                lane = found.kind.startswith("lane")
                words.append(found.kind if lane else f"{token.text}@{found.at}")
                everywhere &= lane
        return " ".join(words), everywhere
