"""PTX to C++ that runs on the host, one function per kernel.

A register becomes a variable, a branch a goto. `instructions` says what each instruction computes. Anything unknown is
an error that names it.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator

from .instructions import (
    ATOMICS,
    BOOLEANS,
    COMPARISONS,
    FLOAT_COMPARISONS,
    FLOATS,
    INTEGERS,
    PREDICATES,
    ROUNDINGS,
    SPECIAL,
)

NAME = r"[\w$%.]+"
TYPE = re.compile(r"[usb](?:8|16|32|64)|f32|pred")
SPACES = ("global", "shared", "local", "const", "param")
#: words of loads, stores and atomics that change no value
HINTS = re.compile(r"weak|volatile|relaxed|gpu|cta|sys|nc|c[agsv]|lu|w[bt]|L[12]::\w+|v[24]")
#: a brace of inline assembly, a label and perhaps its list of targets, a directive or an instruction
LINE = re.compile(rf"\s*(?:[{{}}]|({NAME}):(?:\s*\.branchtargets([^;]*);)?|([.@\w][^;]*);)\s*")
VARIABLE = re.compile(
    rf"\.(global|const|shared|local)\s+\.align\s+(\d+)\s+\.(\w+)\s+({NAME})(\[\d*\])?\s*(?:=([^;]*))?(?:;|$)"
)
PARAMETER = re.compile(
    rf"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(?:\.ptr\s+(?:\.\w+\s+(?:\d+\s+)?)*)?({NAME})(?:\[(\d+)\])?"
)


class UnknownInstructionError(Exception):
    """PTX that this translator has no C++ for."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """A kernel.

    Attributes:
        name: its name.
        parameters: offset and size in bytes of each parameter in the block of arguments.
        most_threads: the largest block that it may be launched with.
        shared: bytes of static shared memory of its module.
        waits: whether threads wait for each other anywhere in it.
        code: a C++ function of its name.
    """

    name: str
    parameters: tuple[tuple[int, int], ...]
    most_threads: int
    shared: int
    waits: bool
    code: str


def translate(ptx: str) -> tuple[str, list[Entry]]:
    """C++ of a module's variables, and its kernels.

    Raises:
        UnknownInstructionError: names the first instruction or directive that this translator does not know.
    """
    ptx = re.sub(r"//[^\n]*|/\*.*?\*/|^\s*\.(?:loc|file)\b[^\n]*", "", ptx, flags=re.S | re.M)
    ptx = re.sub(r"^\s*\.section\s[^{]*\{[^}]*\}", "", ptx, flags=re.M)
    if re.search(r"\.func\b", ptx):
        raise UnknownInstructionError("tests/ptx/translate.py does not know functions (.func), only what is inlined.")
    bodies = list(_bodies(ptx))
    used = set(re.findall(NAME, " ".join(body for *_, body in bodies)))
    symbols: dict[str, tuple[str, str]] = {}
    variables, shared = [], 0
    for name, space, align, size, count, value in sorted(_variables(ptx), key=lambda variable: variable[4] == 0):
        if space == "shared":  # what is dynamic, and so has no length, comes last
            offset = -(-shared // align) * align
            symbols[name], shared = ("shared", str(offset)), offset + size * count
        elif name in used:
            symbols[name] = space, f"(u64){_c(name)}"
            variables.append(f"alignas({align}) static u{size * 8} {_c(name)}[{count}] = {{{value}}};")
    return "\n".join(variables), [_Kernel(*parts, dict(symbols), shared).entry() for parts in bodies]


def _bodies(ptx: str) -> Iterator[tuple[str, str, str, str]]:
    """Name, parameters, directives and body of each kernel."""
    for found in re.finditer(r"\.entry\s+(\w+)\s*\(([^)]*)\)([^{]*)\{", ptx):
        end, depth = found.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(ptx[end], 0)
            end += 1
        yield found[1], found[2], found[3], ptx[found.end() : end - 1]


def _variables(text: str) -> Iterator[tuple[str, str, int, int, int, str]]:
    """Name, space, alignment, size of an element, length and initial value of each variable."""
    for space, align, kind, name, length, value in VARIABLE.findall(text):
        size = _size(kind)
        numbers = re.sub(r"\b0f([0-9A-Fa-f]{8})", r"0x\1", value).strip(" {}\n").split(",") if value else []
        if not all(re.fullmatch(r"\s*-?(0x[0-9A-Fa-f]+|\d+)\s*", number) for number in numbers):
            raise UnknownInstructionError(f"tests/ptx/translate.py does not know the initial value {value} of {name}.")
        values = ", ".join(f"(u{size * 8}){number}{'' if '-' in number else 'ull'}" for number in numbers)
        yield name, space, int(align), size, int(length.strip("[]") or 0) if length else 1, values


def _size(kind: str) -> int:
    return int(kind[1:]) // 8


def _c(name: str) -> str:
    return re.sub(r"\W", "_", f"_{name}")


def _c_type(kind: str) -> str:
    return "bool" if kind == "pred" else kind.replace("b", "u")


def _parts(text: str) -> list[str]:
    """The registers of a vector, or the one that is none."""
    return [part.strip() for part in text.strip("{}").split(",")]


def _space(words: list[str]) -> str:
    return next((word for word in words if word in SPACES), "")


class _Kernel:
    """The translation of one kernel."""

    def __init__(
        self, name: str, parameters: str, directives: str, body: str, symbols: dict[str, tuple[str, str]], shared: int
    ) -> None:
        self.name, self.body, self.symbols, self.shared = name, body, symbols, shared
        self.sites = 0  # instructions at which threads wait
        self.registers: dict[str, str] = {}  # their types in C++
        self.targets: dict[str, list[str]] = {}  # of indexed branches
        self.parameters: list[tuple[int, int]] = []
        end = 0
        for align, kind, parameter, length in PARAMETER.findall(parameters):
            offset = -(-end // int(align or _size(kind))) * int(align or _size(kind))
            end = offset + _size(kind) * int(length or 1)
            self.parameters.append((offset, end - offset))
            symbols[parameter] = "param", f"((u64)params + {offset})"
        bound = re.search(r"\.(?:max|req)ntid\s+([\d, ]+)", directives)
        self.most_threads = math.prod(map(int, bound[1].split(","))) if bound else 1024

    def entry(self) -> Entry:
        code = [f"{_c(text[:-1])}:;" if text.endswith(":") else self._statement(text) for text in self._lines()]
        code = [
            f"static void {self.name}(Thread &t, const char *params) {{",
            "(void)t, (void)params;",
            *(f"{kind} {_c(name)};" for name, kind in self.registers.items()),
            "u64 odd = 0;",
            *code,
            "end:",
            'if (odd) FAIL("an address is no multiple of the size that is accessed");',
            "}",
        ]
        return Entry(self.name, tuple(self.parameters), self.most_threads, self.shared, self.sites > 0, "\n".join(code))

    def _lines(self) -> Iterator[str]:
        """Labels with their colons, directives and instructions."""
        place = 0
        while place < len(self.body.rstrip()):
            found = LINE.match(self.body, place) or self._unknown(self.body[place : place + 60])
            label, targets, line = found.groups()
            place = found.end()
            if targets:
                self.targets[label] = _parts(targets)
            elif label or line:
                yield f"{label}:" if label else " ".join(line.split())

    def _unknown(self, text: str) -> re.Match[str]:
        raise UnknownInstructionError(f"tests/ptx/translate.py does not know {text!r}, which is in {self.name}.")

    def _declare(self, line: str) -> str:
        words = re.fullmatch(r"\.reg \.(\w+) (.+)", line)
        if words and TYPE.fullmatch(words[1]):
            for name, count in re.findall(r"([^<\s,]+)(?:<(\d+)>)?", words[2]):
                names = [f"{name}{k}" for k in range(int(count))] if count else [name]
                self.registers |= dict.fromkeys(names, _c_type(words[1]).replace("s", "u"))
            return ""
        for name, space, align, size, count, _ in _variables(line):
            if space == "local":
                self.symbols[name] = space, f"(u64){_c(name)}"
                return f"alignas({align}) char {_c(name)}[{count * size}];"
        if not line.startswith(".pragma"):
            self._unknown(line)
        return ""

    # ---- operands ----

    def _read(self, text: str, kind: str) -> str:
        """An operand, as a value of a type."""
        c_type = _c_type(kind)
        if text.startswith("!"):
            return f"!{self._read(text[1:], kind)}"
        if text in self.registers:
            held, name = self.registers[text], _c(text)
            if held == c_type:
                return name
            if "bool" in (held, c_type):
                self._unknown(f"{text} as .{kind}")
            return f"bits<{c_type}>({name})" if "f32" in (held, c_type) else f"({c_type}){name}"
        if text in SPECIAL:
            return f"({c_type})({SPECIAL[text]})"
        if found := re.fullmatch(r"0[fF]([0-9A-Fa-f]{8})", text):
            return f"bits<f32>(0x{found[1]}u)" if kind == "f32" else f"({c_type})0x{found[1]}u"
        if re.fullmatch(r"-?(0x[0-9A-Fa-f]+|\d+)U?", text) and kind != "f32":
            return f"({c_type}){text.rstrip('U')}{'' if '-' in text else 'ull'}"
        symbol, _, offset = text.partition("+")
        if symbol not in self.symbols:
            self._unknown(text)
        return f"({c_type})({self.symbols[symbol][1]} + {offset or 0})"

    def _write(self, text: str, kind: str, value: str) -> str:
        """A statement that gives a register a value of a type. The type's sign fills a wider register."""
        if text == "_":
            return f"(void)({value});"
        if text not in self.registers:
            self._unknown(text)
        held, c_type = self.registers[text], _c_type(kind)
        if held == c_type:
            return f"{_c(text)} = {value};"
        if "bool" in (held, c_type):
            self._unknown(f"{text} as .{kind}")
        if "f32" in (held, c_type):
            return f"{_c(text)} = bits<{held}>(({c_type})({value}));"
        return f"{_c(text)} = ({held})({c_type})({value});"

    def _address(self, text: str, size: int, space: str) -> str:
        base, _, offset = text.strip("[]").replace(" ", "").partition("+")
        if base in self.symbols and space not in ("", self.symbols[base][0]):
            self._unknown(f"{text} in .{space}")
        address = f"(u64){self._read(base, 'u32' if self.registers.get(base) == 'u32' else 'u64')} + {offset or 0}"
        return f"at({'(u64)shared_memory + ' * (space == 'shared')}{address}, {size}, odd)"

    # ---- instructions that compute ----

    def _statement(self, line: str) -> str:
        if line.startswith("."):
            return self._declare(line)
        found = re.fullmatch(r"(?:@(!?)(\S+) )?([\w.:]+)(?: (.*))?", line) or self._unknown(line)
        negated, guard, opcode, rest = found.groups()
        operands = [word.strip() for word in re.findall(r"(?:\{[^}]*\}|\[[^\]]*\]|[^,])+", rest or "")]
        try:
            code = self._instruction(opcode, operands)
        except (IndexError, ValueError):  # it has not as many types, words or operands as expected
            code = None
        if code is None:
            self._unknown(line)
        return f"if ({negated}{_c(guard)}) {{ {code} }}" if guard else str(code)

    def _instruction(self, opcode: str, x: list[str]) -> str | None:
        name, *words = opcode.split(".")
        types = [word for word in words if TYPE.fullmatch(word)]
        words = [word for word in words if word not in types]
        if len(types) == 1:
            table = {"f": FLOATS, "p": PREDICATES}.get(types[0][0], INTEGERS)
            if entry := table.get(".".join([name, *words])):
                return self._computed(*entry, types[0], x)
        special = getattr(self, f"_on_{name}", None)
        return special(words, types, x) if special else None

    def _computed(self, letters: str, expression: str, kind: str, x: list[str]) -> str:
        kinds = {"t": kind, "n": "u32", "p": "pred"}
        if kind[0] in "usb":
            kinds |= {"u": f"u{kind[1:]}", "w": f"{kind[0]}{2 * int(kind[1:])}"}
        result, operands = kinds[letters[0]], [kinds[letter] for letter in letters[2:]]
        values = [self._read(text, kind) for text, kind in zip(x[1:], operands, strict=True)]
        return self._write(x[0], result, expression.format(*values, w=kinds.get("w")))

    def _on_mov(self, words: list[str], types: list[str], x: list[str]) -> str | None:
        (kind,), whole = types, f"u{types[0][1:]}"
        if words:
            return None
        if x[0].startswith("{"):
            parts = _parts(x[0])
            bits = _size(kind) * 8 // len(parts)
            code = [self._write(p, f"u{bits}", f"(u{bits})(x >> {k * bits})") for k, p in enumerate(parts)]
            return f"{{ const u64 x = {self._read(x[1], whole)}; {' '.join(code)} }}"
        if x[1].startswith("{"):
            parts = _parts(x[1])
            bits = _size(kind) * 8 // len(parts)
            joined = " | ".join(f"(u64){self._read(p, f'u{bits}')} << {k * bits}" for k, p in enumerate(parts))
            return self._write(x[0], whole, f"({whole})({joined})")
        return self._write(x[0], kind, self._read(x[1], kind))

    def _on_cvt(self, words: list[str], types: list[str], x: list[str]) -> str | None:
        to, source = types
        value = self._read(x[1], source)
        if source != "f32":
            expected = ["rn"] if to == "f32" else []
            return self._write(x[0], to, f"({_c_type(to)}){value}") if words == expected else None
        (rounding,) = words
        if rounding not in ROUNDINGS:
            return None
        whole = f"{ROUNDINGS[rounding]}({value})"
        return self._write(x[0], to, f"number({whole})" if to == "f32" else f"to_integer<{_c_type(to)}>({whole})")

    def _on_setp(self, words: list[str], types: list[str], x: list[str]) -> str | None:
        (kind,), (comparison, *boolean) = types, words
        table = FLOAT_COMPARISONS if kind == "f32" else COMPARISONS
        if comparison not in table or len(x) != 3 + len(boolean):
            return None
        first, _, second = x[0].partition("|")
        true = table[comparison].format(self._read(x[1], kind), self._read(x[2], kind))
        other = f"{BOOLEANS[boolean[0]]} {self._read(x[3], 'pred')}" if boolean else ""
        code = [self._write(first, "pred", f"x {other}"), self._write(second or "_", "pred", f"!x {other}")]
        return f"{{ const bool x = {true}; {' '.join(code)} }}"

    # ---- memory ----

    def _on_ld(self, words: list[str], types: list[str], x: list[str]) -> str | None:
        (kind,), (to, address) = types, x
        c_type = _c_type(kind)
        loads = [self._write(r, kind, f"get<{c_type}>(p + {k * _size(kind)})") for k, r in enumerate(_parts(to))]
        return self._access(words, kind, address, loads)

    def _on_st(self, words: list[str], types: list[str], x: list[str]) -> str | None:
        (kind,), (address, source) = types, x
        c_type, values = _c_type(kind), [self._read(r, kind) for r in _parts(source)]
        return self._access(
            words, kind, address, [f"put<{c_type}>(p + {k * _size(kind)}, {v});" for k, v in enumerate(values)]
        )

    def _access(self, words: list[str], kind: str, address: str, parts: list[str]) -> str | None:
        space = _space(words)
        if any(word != space and not HINTS.fullmatch(word) for word in words) or _size(kind) * len(parts) > 16:
            return None
        return f"{{ char *p = {self._address(address, _size(kind) * len(parts), space)}; {' '.join(parts)} }}"

    def _on_atom(self, words: list[str], types: list[str], x: list[str]) -> str | None:
        (kind,), space = types, _space(words)
        (operation,) = [word for word in words if word != space and not HINTS.fullmatch(word)]
        if operation not in ATOMICS or kind == "f32":  # a sum of floats in any order has any bits
            return None
        c_type = _c_type(kind)
        value = ATOMICS[operation].format(*(f"({c_type})({self._read(y, kind)})" for y in x[2:]))
        place = self._address(x[1], _size(kind), space)
        return self._write(x[0], kind, f"atomic<{c_type}>({place}, [&]({c_type} x) {{ return ({c_type})({value}); }})")

    def _on_red(self, words: list[str], types: list[str], x: list[str]) -> str | None:
        return self._on_atom(words, types, ["_", *x])

    # ---- threads ----

    def _site(self) -> int:
        self.sites += 1
        return self.sites

    def _on_bar(self, words: list[str], types: list[str], x: list[str]) -> str | None:
        if words == ["sync"] and x == ["0"]:
            return f"wait(t, BAR_SYNC, {self._site()}, 0);"
        if words == ["warp", "sync"]:
            return f"wait(t, BAR_WARP_SYNC, {self._site()}, {self._read(x[0], 'u32')});"
        return None

    def _on_shfl(self, words: list[str], types: list[str], x: list[str]) -> str | None:
        sync, mode = words
        if sync != "sync" or mode not in ("up", "down", "bfly", "idx"):
            return None
        to, _, inside = x[0].partition("|")
        arguments = ", ".join(self._read(y, "u32") for y in x[1:])
        code = self._write(to, "u32", f"shuffled(t, {self._site()}, inside, '{mode[0]}', {arguments})")
        return f"{{ bool inside; {code} {self._write(inside or '_', 'pred', 'inside')} }}"

    def _on_vote(self, words: list[str], types: list[str], x: list[str]) -> str | None:
        sync, mode = words
        to, voter, mask = x[0], self._read(x[1], "pred"), self._read(x[2], "u32")
        result = {"ballot": "votes", "any": "votes != 0", "all": f"votes == {mask}"}.get(mode)
        if sync != "sync" or result is None:
            return None
        votes = f"const u32 votes = ballot(t, {self._site()}, {voter}, {mask});"
        return f"{{ {votes} {self._write(to, types[0], result)} }}"

    # ---- control ----

    def _on_bra(self, words: list[str], types: list[str], x: list[str]) -> str:
        return f"goto {_c(x[0])};"

    def _on_brx(self, words: list[str], types: list[str], x: list[str]) -> str:
        ways = " ".join(f"case {k}: goto {_c(label)};" for k, label in enumerate(self.targets[x[1]]))
        return f"switch ({self._read(x[0], 'u32')}) {{ {ways} }}"

    def _on_ret(self, words: list[str], types: list[str], x: list[str]) -> str:
        return "goto end;"

    _on_exit = _on_ret

    def _on_trap(self, words: list[str], types: list[str], x: list[str]) -> str:
        return '{ FAIL("it came to a trap"); goto end; }'
