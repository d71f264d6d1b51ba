"""PTX to C++ that runs on the host, one function per kernel.

A register becomes a variable, a branch a goto. `instructions` says what each instruction computes. Anything unknown is
an error that names it.
"""

from __future__ import annotations

import dataclasses
import itertools
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
from .parse import (
    HINTS,
    LINE,
    NAME,
    PARAMETER,
    TYPE,
    UnknownInstructionError,
    bodies,
    c_name,
    cleaned,
    parts_of,
    size_of,
    space_of,
    type_of,
    variables_of,
)


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
    """C++ of a module's variables and functions, and its kernels.

    Raises:
        UnknownInstructionError: names the first instruction or directive that this translator does not know.
    """
    ptx = cleaned(ptx)
    used = set(re.findall(NAME, " ".join(body for *_, body in bodies(ptx))))
    symbols: dict[str, tuple[str, str]] = {}
    code, shared = [], 0
    for name, space, align, size, count, value in sorted(variables_of(ptx), key=lambda variable: variable[4] == 0):
        if space == "shared":  # what is dynamic, and so has no length, comes last
            offset = -(-shared // align) * align
            symbols[name], shared = ("shared", str(offset)), offset + size * count
        elif name in used:
            symbols[name] = space, f"(u64){c_name(name)}"
            code.append(f"alignas({align}) static u{size * 8} {c_name(name)}[{count}] = {{{value}}};")
    functions: dict[str, _Function] = {}
    sites = itertools.count(1)
    for is_entry, name, *parts in bodies(ptx):
        functions[name] = _Function(is_entry, name, *parts, dict(symbols), sites, functions)
    translated = {function: function.code() for function in functions.values()}
    for function, text in translated.items():
        if not function.is_entry:
            code.insert(0, f"static void {c_name(function.name)}(Thread &t, const char *params);")
            code.append(text)
    waits = next(sites) > 1
    return "\n".join(code), [
        Entry(function.name, tuple(function.parameters), function.most_threads, shared, waits, text)
        for function, text in translated.items()
        if function.is_entry
    ]


class _Function:
    """The translation of one kernel or function. Arguments of functions lie in a block, as those of kernels do."""

    def __init__(
        self,
        is_entry: bool,
        name: str,
        parameters: str,
        directives: str,
        body: str,
        symbols: dict[str, tuple[str, str]],
        sites: Iterator[int],
        functions: dict[str, _Function],
    ) -> None:
        self.is_entry, self.name, self.body, self.symbols = is_entry, name, body, symbols
        self.sites, self.functions = sites, functions
        self.registers: dict[str, str] = {}  # their types in C++
        self.slots: dict[str, int] = {}  # bytes of what is passed to functions
        self.targets: dict[str, list[str]] = {}  # of indexed branches
        self.parameters: list[tuple[int, int]] = []
        end = 0
        for align, kind, parameter, length in PARAMETER.findall(parameters):
            offset = -(-end // int(align or size_of(kind))) * int(align or size_of(kind))
            end = offset + size_of(kind) * int(length or 1)
            self.parameters.append((offset, end - offset))
            symbols[parameter] = "param", f"((u64)params + {offset})"
        bound = re.search(r"\.(?:max|req)ntid\s+([\d, ]+)", directives)
        self.most_threads = math.prod(map(int, bound[1].split(","))) if bound else 1024

    def code(self) -> str:
        lines = [f"{c_name(text[:-1])}:;" if text.endswith(":") else self._statement(text) for text in self._lines()]
        return "\n".join(
            [
                f"static void {self.name if self.is_entry else c_name(self.name)}(Thread &t, const char *params) {{",
                "(void)t, (void)params;",
                *(f"{kind} {c_name(name)};" for name, kind in self.registers.items()),
                *(f"alignas(16) char {c_name(name)}[{size}];" for name, size in self.slots.items()),
                "u64 odd = 0;",
                *lines,
                "end:",
                'if (odd) FAIL("an address is no multiple of the size that is accessed");',
                "}",
            ]
        )

    def _lines(self) -> Iterator[str]:
        """Labels with their colons, directives and instructions."""
        place = 0
        while place < len(self.body.rstrip()):
            found = LINE.match(self.body, place) or self._unknown(self.body[place : place + 60])
            label, targets, line = found.groups()
            place = found.end()
            if targets:
                self.targets[label] = parts_of(targets)
            elif label or line:
                yield f"{label}:" if label else " ".join(line.split())

    def _unknown(self, text: str) -> re.Match[str]:
        raise UnknownInstructionError(f"tests/ptx/translate.py does not know {text!r}, which is in {self.name}.")

    def _declare(self, line: str) -> str:
        words = re.fullmatch(r"\.reg \.(\w+) (.+)", line)
        if words and TYPE.fullmatch(words[1]):
            for name, count in re.findall(r"([^<\s,]+)(?:<(\d+)>)?", words[2]):
                names = [f"{name}{k}" for k in range(int(count))] if count else [name]
                self.registers |= dict.fromkeys(names, type_of(words[1]).replace("s", "u"))
            return ""
        for name, space, align, size, count, _ in variables_of(line):
            if space == "local":
                self.symbols[name] = space, f"(u64){c_name(name)}"
                return f"alignas({align}) char {c_name(name)}[{count * size}];"
            if space == "shared":  # has its place among the module's
                return ""
        for _, kind, name, length in PARAMETER.findall(line):
            self.symbols[name] = "param", f"(u64){c_name(name)}"
            self.slots[name] = max(self.slots.get(name, 0), size_of(kind) * int(length or 1))
            return ""
        if not line.startswith(".pragma"):
            self._unknown(line)
        return ""

    # ---- operands ----

    def _read(self, text: str, kind: str) -> str:
        """An operand, as a value of a type."""
        c_type = type_of(kind)
        if text.startswith("!"):
            return f"!{self._read(text[1:], kind)}"
        if text in self.registers:
            held, name = self.registers[text], c_name(text)
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
        held, c_type = self.registers[text], type_of(kind)
        if held == c_type:
            return f"{c_name(text)} = {value};"
        if "bool" in (held, c_type):
            self._unknown(f"{text} as .{kind}")
        if "f32" in (held, c_type):
            return f"{c_name(text)} = bits<{held}>(({c_type})({value}));"
        return f"{c_name(text)} = ({held})({c_type})({value});"

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
        operands = [word.strip() for word in re.findall(r"(?:\{[^}]*\}|\[[^\]]*\]|\([^)]*\)|[^,])+", rest or "")]
        try:
            code = self._instruction(opcode, operands)
        except (IndexError, ValueError):  # it has not as many types, words or operands as expected
            code = None
        if code is None:
            self._unknown(line)
        return f"if ({negated}{c_name(guard)}) {{ {code} }}" if guard else str(code)

    def _instruction(self, opcode: str, x: list[str]) -> str | None:
        name, *words = opcode.split(".")
        types = [word for word in words if TYPE.fullmatch(word)]
        words = [word for word in words if word not in types]
        if len(types) == 1 and types != ["f64"]:
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
            parts = parts_of(x[0])
            bits = size_of(kind) * 8 // len(parts)
            code = [self._write(p, f"u{bits}", f"(u{bits})(x >> {k * bits})") for k, p in enumerate(parts)]
            return f"{{ const u64 x = {self._read(x[1], whole)}; {' '.join(code)} }}"
        if x[1].startswith("{"):
            parts = parts_of(x[1])
            bits = size_of(kind) * 8 // len(parts)
            joined = " | ".join(f"(u64){self._read(p, f'u{bits}')} << {k * bits}" for k, p in enumerate(parts))
            return self._write(x[0], whole, f"({whole})({joined})")
        return self._write(x[0], kind, self._read(x[1], kind))

    def _on_cvt(self, words: list[str], types: list[str], x: list[str]) -> str | None:
        to, source = types
        value = self._read(x[1], source)
        if "f64" in types:
            return self._write(x[0], to, f"number((f32){value})") if (to, words) == ("f32", ["rn"]) else None
        if source != "f32":
            expected = ["rn"] if to == "f32" else []
            return self._write(x[0], to, f"({type_of(to)}){value}") if words == expected else None
        (rounding,) = words
        if rounding not in ROUNDINGS:
            return None
        whole = f"{ROUNDINGS[rounding]}({value})"
        return self._write(x[0], to, f"number({whole})" if to == "f32" else f"to_integer<{type_of(to)}>({whole})")

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
        c_type = type_of(kind)
        loads = [self._write(r, kind, f"get<{c_type}>(p + {k * size_of(kind)})") for k, r in enumerate(parts_of(to))]
        return self._access(words, kind, address, loads)

    def _on_st(self, words: list[str], types: list[str], x: list[str]) -> str | None:
        (kind,), (address, source) = types, x
        c_type, values = type_of(kind), [self._read(r, kind) for r in parts_of(source)]
        return self._access(
            words, kind, address, [f"put<{c_type}>(p + {k * size_of(kind)}, {v});" for k, v in enumerate(values)]
        )

    def _access(self, words: list[str], kind: str, address: str, parts: list[str]) -> str | None:
        space = space_of(words)
        if any(word != space and not HINTS.fullmatch(word) for word in words) or size_of(kind) * len(parts) > 16:
            return None
        return f"{{ char *p = {self._address(address, size_of(kind) * len(parts), space)}; {' '.join(parts)} }}"

    def _on_atom(self, words: list[str], types: list[str], x: list[str]) -> str | None:
        (kind,), space = types, space_of(words)
        (operation,) = [word for word in words if word != space and not HINTS.fullmatch(word)]
        if operation not in ATOMICS or kind == "f32":  # a sum of floats in any order has any bits
            return None
        c_type = type_of(kind)
        value = ATOMICS[operation].format(*(f"({c_type})({self._read(y, kind)})" for y in x[2:]))
        place = self._address(x[1], size_of(kind), space)
        return self._write(x[0], kind, f"atomic<{c_type}>({place}, [&]({c_type} x) {{ return ({c_type})({value}); }})")

    def _on_red(self, words: list[str], types: list[str], x: list[str]) -> str | None:
        return self._on_atom(words, types, ["_", *x])

    # ---- threads ----

    def _on_bar(self, words: list[str], types: list[str], x: list[str]) -> str | None:
        if words == ["sync"] and x == ["0"]:
            return f"wait(t, BAR_SYNC, {next(self.sites)}, 0);"
        if words == ["warp", "sync"]:
            return f"wait(t, BAR_WARP_SYNC, {next(self.sites)}, {self._read(x[0], 'u32')});"
        return None

    def _on_shfl(self, words: list[str], types: list[str], x: list[str]) -> str | None:
        sync, mode = words
        if sync != "sync" or mode not in ("up", "down", "bfly", "idx"):
            return None
        to, _, inside = x[0].partition("|")
        arguments = ", ".join(self._read(y, "u32") for y in x[1:])
        code = self._write(to, "u32", f"shuffled(t, {next(self.sites)}, inside, '{mode[0]}', {arguments})")
        return f"{{ bool inside; {code} {self._write(inside or '_', 'pred', 'inside')} }}"

    def _on_vote(self, words: list[str], types: list[str], x: list[str]) -> str | None:
        sync, mode = words
        to, voter, mask = x[0], self._read(x[1], "pred"), self._read(x[2], "u32")
        result = {"ballot": "votes", "any": "votes != 0", "all": f"votes == {mask}"}.get(mode)
        if sync != "sync" or result is None:
            return None
        votes = f"const u32 votes = ballot(t, {next(self.sites)}, {voter}, {mask});"
        return f"{{ {votes} {self._write(to, types[0], result)} }}"

    # ---- control ----

    def _on_bra(self, words: list[str], types: list[str], x: list[str]) -> str:
        return f"goto {c_name(x[0])};"

    def _on_brx(self, words: list[str], types: list[str], x: list[str]) -> str:
        ways = " ".join(f"case {k}: goto {c_name(label)};" for k, label in enumerate(self.targets[x[1]]))
        return f"switch ({self._read(x[0], 'u32')}) {{ {ways} }}"

    def _on_call(self, words: list[str], types: list[str], x: list[str]) -> str | None:
        results = parts_of(x.pop(0)) if x[0].startswith("(") else []
        name, *arguments = x
        if name not in self.functions:
            return None
        places = self.functions[name].parameters
        slots = [*results, *(parts_of(arguments[0]) if arguments else [])]
        pairs = [(c_name(slot), f"block + {at}", size) for slot, (at, size) in zip(slots, places, strict=True)]
        given = [f"memcpy({block}, {slot}, {size});" for slot, block, size in pairs[len(results) :]]
        taken = [f"memcpy({slot}, {block}, {size});" for slot, block, size in pairs[: len(results)]]
        code = [f"alignas(16) char block[{sum(places[-1]) if places else 1}];", *given, f"{c_name(name)}(t, block);"]
        return f"{{ {' '.join([*code, *taken])} }}"

    def _on_ret(self, words: list[str], types: list[str], x: list[str]) -> str:
        return "goto end;"

    _on_exit = _on_ret

    def _on_trap(self, words: list[str], types: list[str], x: list[str]) -> str:
        return '{ FAIL("it came to a trap"); goto end; }'
