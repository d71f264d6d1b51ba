"""Declaration to device code: text in, text out.

`translation_unit` puts together one source that every compiler here takes: the engine's headers, the generated part
(constants, `Config`, `Store`, `State`, `Env`) and the game's rules, with every include inlined, so that a hash of the
text identifies the program, and ``#line`` marks, so that a compiler's message names the author's file and line.

One file, in the order of what it writes.
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from gpuzoo.core import packed
from gpuzoo.core.definition import (
    C_TYPES,
    Config,
    EnvDef,
    Field,
    Layout,
    PerEnv,
    Shapes,
    choices,
    config_types,
    flat_size,
    resolve_constants,
    resolve_fields,
)
from gpuzoo.core.dialect import ENTRIES, check_rules, counts, inline_includes
from gpuzoo.core.form import Form, choose
from gpuzoo.core.parameters import layout_of_all
from gpuzoo.core.tokens import DialectError, Piece
from gpuzoo.core.uniform import Uniform
from gpuzoo.core.windows import in_windows

DEVICE = Path(__file__).parent / "device"

#: what the engine keeps per env (E) or per agent (A), beside the game's fields; name -> (dtype, E or A)
ENGINE_ARRAYS: Mapping[str, tuple[str, str]] = {
    "reward": ("float32", "A"),
    "terminated": ("bool", "A"),
    "truncated": ("bool", "A"),
    "alive": ("bool", "A"),
    "episode_return": ("float32", "A"),
    "final_return": ("float32", "A"),
    "final_length": ("int32", "A"),
    "elapsed_steps": ("int32", "E"),
    "episode": ("uint32", "E"),
    "seed": ("uint64", "E"),
    "ended": ("bool", "E"),
    "waiting": ("bool", "E"),
    "over": ("bool", "E"),
    "reset_mask": ("bool", "E"),
    "reset_seed": ("uint64", "E"),
}


#: bytes of arguments that a kernel takes with every driver, less those beside the Store
_MOST_BYTES = 4096 - 16

#: what rules reach by an index, beside fields and tables
_INDEXED = ("action", "terminate", "reward", "terminated", "alive", "observation", "action_mask")


@dataclasses.dataclass(frozen=True)
class Program:
    """All that is known about a game once its configuration is.

    Attributes:
        env: the declaration.
        cfg: its configuration.
        layout: spaces and agents.
        fields: the state, with numeric shapes.
        scratch: the scratch fields that lie in memory, with numeric shapes.
        lanes: threads per env on a GPU.
        form: which form the kernels have.
        per_env: names of the parameters given per env.
        params: names of the run-time (float) parameters.
        tables: the shared constant arrays.
        store: names of the pointers of the device struct `Store`, in order.
        indexed: what rules reach by an index, by the numbers that a fault has for them.
        debug: whether this is the checked form.
        code: the translation unit.
        shapes: kept by `Simulator`: shapes and dtypes of a batch's arrays, which are the same for the next one.
    """

    env: EnvDef
    cfg: Config
    layout: Layout
    fields: dict[str, Field]
    scratch: dict[str, Field]
    lanes: int
    form: Form
    per_env: frozenset[str]
    params: tuple[str, ...]
    tables: dict[str, np.ndarray[Any, Any]]
    store: tuple[str, ...]
    indexed: tuple[str, ...]
    debug: bool
    code: str
    shapes: dict[Hashable, Shapes] = dataclasses.field(default_factory=dict)

    @property
    def block(self) -> int:
        """Threads per block on a GPU, `BLOCK` of prelude.cuh."""
        return self.lanes if self.lanes > 32 else 32 if self.form.packed else 128


@cache
def _header(name: str) -> str:
    return f'#line 1 "{name}"\n' + (DEVICE / name).read_text(encoding="utf-8")


def _defined(text: str) -> dict[str, int]:
    """Names of the constants that C++ defines outside of functions, and where they stand."""
    found = {m[1]: m.start() for m in re.finditer(r"^(?:constexpr [\w<>]+|#define) ([A-Z]\w*)", text, re.M)}
    for enum in re.finditer(r"\benum\b[^{;]*\{([^}]*)\}", text):
        found |= dict.fromkeys(re.findall(r"\b[A-Z]\w*", enum[1]), enum.start())
    return found


@cache
def _taken() -> frozenset[str]:
    """Names that the engine defines, on any machine."""
    return frozenset(_defined("\n".join(path.read_text(encoding="utf-8") for path in DEVICE.glob("*.cuh"))))


def _check_names(rules: Sequence[Piece]) -> None:
    """Refuses constants of the rules that would be the engine's: some machines may not compile them, others may."""
    for piece in rules:
        for name, place in _defined(piece.source).items():
            if name in _taken():
                line = piece.line + piece.source.count("\n", 0, place)
                raise DialectError(f"{piece.path}:{line}: the engine has a name {name} of its own: choose another one.")


def _number(x: float) -> str:
    return f"{float(np.float32(x))!r}f"


def _pick(index: str, values: Sequence[str]) -> str:
    """An expression for ``values[index]`` without a table in memory; equal neighbours share a comparison."""
    runs: list[tuple[int, str]] = []
    for k, value in enumerate(values):
        if not runs or runs[-1][1] != value:
            runs.append((k, value))
    text = runs[-1][1]
    for (_, value), (start, _) in zip(reversed(runs[:-1]), reversed(runs[1:]), strict=True):
        text = f"({index} < {start} ? {value} : {text})"
    return text


def _per_agent(lay: Layout, rows: Mapping[str, Sequence[str]], padding: str) -> str:
    """An expression in ``agent`` and ``k`` for a value that depends on the group and the component."""
    by_group = []
    for group, count in lay.groups.items():
        row = list(rows[group]) + [padding] * (lay.action_size - len(rows[group]))
        by_group += [_pick("k", row)] * count
    return _pick("agent", by_group)


def _by_width(one: Iterable[str], several: Iterable[str]) -> str:
    """What is said of packs of one env, which is what ordinary rules have, and of longer ones."""
    return "\n".join(["#if GZ_PACK_WIDTH == 1", *one, "#else", *several, "#endif"])


def _constants(program: dict[str, Any]) -> Iterable[str]:
    lay: Layout = program["layout"]
    yield f"constexpr Const<{lay.agents}> AGENTS;"
    for group, count in lay.groups.items():
        if group != "agent":
            yield f"constexpr Const<{count}> {group.upper()}S;"
        yield f"constexpr int FIRST_{group.upper()} = {lay.first[group]};"
    for name, value in resolve_constants(program["env"], program["cfg"]).items():
        if name in _taken():
            raise ValueError(
                f"{program['env'].id}: the engine has a name {name} of its own: call the constant otherwise."
            )
        yield f"constexpr Const<{value}> {name};"
    yield f"constexpr int OBSERVATION_SIZE = {lay.observation_size};"
    yield f"constexpr int ACTION_SIZE = {lay.action_size};"
    yield f"constexpr int MASK_SIZE = {lay.mask_size};"
    yield f"constexpr int INVALID_ACTION = {type(program['env']).invalid_action};"
    size = 0 if lay.state_space is None else flat_size(lay.state_space)
    yield f"constexpr int STATE_SIZE = {size};"
    yield f"using StateNumber = {C_TYPES[str(lay.state_space.dtype)] if lay.state_space else 'u8'};"
    yield f"constexpr int TILE = {program['tile']};"
    yield f"using Observation = {C_TYPES[lay.observation_dtype]};"
    yield f"using Action = {C_TYPES[lay.action_dtype]};"
    number = "Pack" if program["form"].packed else "Observation"
    yield f"using Row = {f'Pointer<{number}>' if program['debug'] else f'{number} *'};"


def _config(env: EnvDef, cfg: Config, per_env: PerEnv) -> Iterable[str]:
    members, loads, draws = [], [], []
    number = "Pack" if env.packed else "float"
    for name, kind in config_types(env.Config).items():
        value = getattr(cfg, name)
        if kind is float:
            members.append(f"  {number} {name};")
            loads.append(f"  c.{name} = s.param_{name}[{'i' if name in per_env else '0'}];")
            drawn = per_env.get(name)
            if isinstance(drawn, Uniform):
                value = f"drawn(s.seed[i], episode, {len(loads) - 1}, {str(drawn.log).lower()}, s.ends_{name})"
                draws.append(f"  f(s.param_{name}[i], {value});")
        elif typing.get_origin(kind) is Literal:
            options = typing.get_args(kind)
            for k, option in enumerate(options):
                yield f"constexpr int {name.upper()}_{str(option).upper().replace('-', '_')} = {k};"
            members.append(f"  static constexpr int {name} = {options.index(value)};")
        elif kind is not str:
            c_type = "bool" if kind is bool else "int"
            members.append(f"  static constexpr {c_type} {name} = {str(value).lower()};")
    yield "struct Config {"
    yield from members
    yield "};"
    yield "struct Store;\n#if GZ_PACK_WIDTH == 1\nGZ Config load_config(const Store &s, i64 i);\n#endif"
    program = "\n".join(["GZ Config load_config(const Store &s, i64 i) {", "  Config c;", *loads, "  return c;", "}"])
    if env.packed:
        names = [name for name, kind in config_types(env.Config).items() if kind is float]
        program = _by_width([program], packed.load_config(names, per_env))
    yield f"//LOAD_CONFIG\n{program}"
    yield "template <class F> GZ void draw_parameters(const Store &s, i64 i, u32 episode, F f) {"
    yield "\n".join(["  (void)s, (void)i, (void)episode, (void)f;", *draws, "}"])


def _store(
    env: EnvDef,
    lay: Layout,
    fields: Mapping[str, Field],
    params: Iterable[str],
    drawn: Collection[str],
    tables: Mapping[str, np.ndarray[Any, Any]],
    debug: bool,
) -> list[tuple[str, str]]:
    """(C declaration without the name, name) of each member of `Store`; every member is 8 bytes."""
    out = [("struct Control *", "control"), ("i64", "num_envs")]
    out += [("struct Fault *", "faults")] * debug
    out += [(f"{C_TYPES[dtype]} *", name) for name, (dtype, _) in ENGINE_ARRAYS.items()]
    observation = C_TYPES[lay.observation_dtype]
    out += [(f"{observation} *", "observation"), (f"{observation} *", "final_observation")]
    out += [(f"{C_TYPES[lay.action_dtype]} *", "action")]
    if lay.mask_size:
        out += [("i8 *", "action_mask"), ("i8 *", "final_action_mask")]
    if lay.state_space is not None:
        out += [("StateNumber *", "state"), ("StateNumber *", "final_state")]
    out += [(f"{C_TYPES[f.dtype]} *", f"field_{name}") for name, f in fields.items()]
    out += [("float *" if name in drawn else "const float *", f"param_{name}") for name in params]
    out += [("const float *", f"ends_{name}") for name in params if name in drawn]
    out += [(f"const {C_TYPES[str(t.dtype)]} *", f"table_{name}") for name, t in tables.items()]
    return out


def _actions(lay: Layout, single: bool, debug: bool, chooses: bool) -> Iterable[str]:
    """How a game reads actions: illegal values never reach it."""
    spaces_ = lay.action_spaces
    if lay.action_dtype == "int32":
        rows = {g: [str(n) for n in choices(s)] for g, s in spaces_.items()}
        yield "GZ int choices(int agent, int k) {"
        yield f"  (void)agent; (void)k;\n  return {_per_agent(lay, rows, '1')};\n}}"
        offsets = {g: [str(sum(choices(s)[:k])) for k in range(len(choices(s)))] for g, s in spaces_.items()}
        yield "GZ int mask_offset(int agent, int k) {"
        yield f"  (void)agent; (void)k;\n  return {_per_agent(lay, offsets, '0')};\n}}"
        yield "GZ int legal_action(Action raw, const i8 *mask, int agent, int k) {"
        yield "  const bool inside = (u32)raw < (u32)choices(agent, k);"
        if lay.mask_size and not chooses:
            yield "  if (!inside || !mask[mask_offset(agent, k) + raw]) return INVALID_ACTION;\n  return raw;\n}"
        else:  # in bits, as g++ makes comparisons of `inside ? raw : INVALID_ACTION` such as it does not vectorise
            yield "  (void)mask;\n  return (raw & -(int)inside) | (INVALID_ACTION & (int)inside - 1);\n}"
    else:
        boxes = {g: s for g, s in spaces_.items() if isinstance(s, spaces.Box)}
        low = {g: [_number(x) for x in np.ravel(s.low)] for g, s in boxes.items()}
        high = {g: [_number(x) for x in np.ravel(s.high)] for g, s in boxes.items()}
        yield "GZ float action_low(int agent, int k) {"
        yield f"  (void)agent; (void)k;\n  return {_per_agent(lay, low, '0.f')};\n}}"
        yield "GZ float action_high(int agent, int k) {"
        yield f"  (void)agent; (void)k;\n  return {_per_agent(lay, high, '0.f')};\n}}"
        yield "GZ float legal_action(Action raw, const i8 *, int agent, int k) {"
        yield "  const float x = is_nan(raw) ? (float)INVALID_ACTION : raw;"
        yield "  return clamp(x, action_low(agent, k), action_high(agent, k));\n}"
    index = "const Subscript &" if debug else "int "
    yield "#if GZ_PACK_WIDTH == 1\nstruct Actions {"
    yield "  const Action *data;\n  const i8 *mask;"
    if debug:
        number = _INDEXED.index("action")
        yield "  Watch watch;"
        yield "  GZ_MEMBER Action operator()(const Subscript &agent, const Subscript &k) const {"
        yield f"    if (!watch.admits(agent, AGENTS, {number}, AGENT_OF, k.value)) return 0;"
        yield f"    if (!watch.admits(k, ACTION_SIZE, {number}, NUMBER_OF, agent.value)) return 0;"
        yield "    return legal((int)agent.value, (int)k.value);\n  }"
    yield f"  GZ_MEMBER Action {'legal' if debug else 'operator()'}(int agent, int k) const {{"
    yield "    return legal_action(data[agent * ACTION_SIZE + k], mask + agent * MASK_SIZE, agent, k);\n  }"
    both = "0, k" if single else "k, 0"
    yield f"  GZ_MEMBER Action operator[]({index}k) const {{ return (*this)({both}); }}\n}};\n#endif"


def _chosen_action(lay: Layout, chooses: bool) -> Iterable[str]:
    """A legal action from random bits."""
    if chooses:
        yield "GZ int choose(Env e, int agent, u32 bits);"
    if chooses and lay.action_size > 1:
        yield "GZ void choose_parts(const Store &s, i64 i, int agent, u32 bits, Action *parts) {"
        yield "  State v = load(s, i);"
        yield "  const Env e = bind(s, v, i, s.episode[i], s.elapsed_steps[i], s.control->max_steps);"
        yield "  int number = choose(e, agent, bits);"
        yield "  for (int k = ACTION_SIZE - 1; k >= 0; --k) {"
        yield "    parts[k] = number % choices(agent, k);\n    number /= choices(agent, k);\n  }\n}"
        return
    yield "GZ Action chosen_action(const Store &s, i64 i, int agent, int k, u32 bits) {\n  (void)s; (void)i;"
    if lay.action_dtype == "float32":
        yield "  const float low = action_low(agent, k), high = action_high(agent, k);"
        yield "  return low + (high - low) * unit_float(bits);"
    elif chooses:
        yield "  (void)k;\n  State v = load(s, i);"
        yield "  const Env e = bind(s, v, i, s.episode[i], s.elapsed_steps[i], s.control->max_steps);"
        yield "  return choose(e, agent, bits);"
    elif lay.mask_size:
        yield "  const i8 *mask = s.action_mask + (i * AGENTS + agent) * MASK_SIZE + mask_offset(agent, k);"
        yield "  return chosen_of(mask, choices(agent, k), bits);"
    else:
        yield "  return (int)mulhi(bits, (u32)choices(agent, k));"
    yield "}"


def _scratch(fields: Mapping[str, Field]) -> Iterable[str]:
    """Where the scratch arrays of an env begin: a GPU's envs run side by side, a CPU's thread runs one at a time."""
    yield "GZ i64 scratch_stride(const Store &s) { return GZ_THREADS ? s.num_envs : 1; }"
    for name, field in fields.items():
        c_type, size = C_TYPES[field.dtype], int(np.prod(field.sizes))
        yield f"#if defined(GZ_CUDA) || defined(GZ_SIMT)\nGZ {c_type} *scratch_{name}(const Store &s, i64 i) {{"
        yield f"  return s.field_{name} + field_offset(i, {size});\n}}\n#elif GZ_PACK_WIDTH == 1"
        yield f"alignas(64) static thread_local {c_type} {name}_of_thread[{size}];"
        yield f"GZ {c_type} *scratch_{name}(const Store &, i64) {{ return found_once({name}_of_thread); }}\n#endif"


def _forget(fields: Mapping[str, Field]) -> Iterable[str]:
    """Fills scratch with garbage before rules are called, in tests and with debug=True: nothing may depend on it."""
    yield "GZ void forget(const Env &e) {\n  (void)e;\n#if defined(GZ_LANE_ORDER) || defined(GZ_DEBUG)"
    for name, field in fields.items():
        c_type, size = C_TYPES[field.dtype], int(np.prod(field.sizes))
        place = f"e.{name}" if field.shape == () else f"e.{name}.data[element_offset(k, e.{name}.num_envs)]"
        yield f"  lanes(e, {size}, [=](int k) {{ (void)k, {place} = garbage<{c_type}>(); }});"
    yield "#endif\n}"


def _lengths(lay: Layout) -> Iterable[str]:
    """How many numbers an agent's observation and mask have, without padding."""
    observations = {g: flat_size(s) for g, s in lay.observation_spaces.items()}
    masks = {g: sum(choices(s)) if lay.mask_size else 0 for g, s in lay.action_spaces.items()}
    for name, size, by_group in (
        ("observation", lay.observation_size, observations),
        ("action_mask", lay.mask_size, masks),
    ):
        values = [str(by_group[group]) for group, count in lay.groups.items() for _ in range(count)]
        yield f"struct Length_{name} {{"
        yield f"  static constexpr bool PADDED = {str(min(by_group.values()) < size).lower()};"
        yield "  GZ_MEMBER static int of(int agent) {"
        yield f"    (void)agent;\n    return {_pick('agent', values)};\n  }}\n}};"


def _env(program: dict[str, Any]) -> Iterable[str]:
    """`State`, `Env` and what moves an env's scalars between memory and registers."""
    lay: Layout = program["layout"]
    fields: dict[str, Field] = program["fields"] | program["scratch"]
    one_lane, single, branchless = program["lanes"] == 1, program["single"], program["branchless"]
    debug, indexed = program["debug"], program["indexed"]
    scalars = {n: C_TYPES[f.dtype] for n, f in fields.items() if f.shape == ()}
    arrays = {n: f for n, f in fields.items() if f.shape != ()}
    held = {n: c_type for n, c_type in scalars.items() if not fields[n].scratch} if one_lane else {}
    few = {n: f.sizes[0] for n, f in arrays.items()} if branchless else {}
    extra = {"over": "u8"} | {n: c_type for n, c_type in scalars.items() if n not in held} if one_lane else {}
    if branchless:
        extra["terminated"] = "u8"
    parts = {n: f"s.field_{n}[i]" for n in held}  # of State that are kept in memory, and where
    for name, size in few.items():
        place = f"s.field_{name}[field_offset(i, {size}) + element_offset"
        parts |= {f"{name}[{k}]": f"{place}({k}, s.num_envs)]" for k in range(size)}

    yield "struct State {"
    yield from (f"  {c_type} {name};" for name, c_type in (held | extra).items())
    yield from (f"  {C_TYPES[fields[name].dtype]} {name}[{size}];" for name, size in few.items())
    if branchless:
        yield "  float reward[AGENTS];"
    yield "};"
    yield "GZ State load(const Store &s, i64 i) {\n  (void)s; (void)i;\n  State v;"
    yield from (f"  v.{part} = {place};" for part, place in parts.items())
    yield from (f"  v.{name} = 0;" for name in extra)
    yield "  return v;\n}"
    yield "GZ void save(const Store &s, i64 i, const State &v) {\n  (void)s; (void)i; (void)v;"
    yield from (f"  {place} = v.{part};" for part, place in parts.items())
    yield "}"
    yield "GZ State keep(bool kept, const State &before, const State &after) {"
    yield "  State v = after; (void)kept; (void)before;"
    yield from (f"  v.{part} = kept ? before.{part} : after.{part};" for part in parts)
    yield "  return v;\n}"
    yield "GZ void clear(const Store &s, State &v, i64 i) {\n  (void)s; (void)v; (void)i;"
    yield "  v.over = 0;\n}" if one_lane else "  if (lane() == 0) s.over[i] = 0;\n}"

    def pointer(c_type: str, name: str, place: str, size: str | int, part: str = "FLAT") -> tuple[str, str, str]:
        if not debug:
            return f"{c_type} *", name, place
        return f"Pointer<{c_type}> ", name, f"{{{place}, {size}, watch, {indexed.index(name)}, {part}, 0, 0, 0}}"

    def rows(c_type: str, name: str, place: str, columns: str) -> tuple[str, str, str]:
        if not debug:
            return f"Rows<{c_type}> ", name, f"{{{place}, {columns}}}"
        value = f"{{{place}, {columns}, watch, {indexed.index(name)}, AGENTS}}"
        return f"Rows<{c_type}, Length_{name}> ", name, value

    members: list[tuple[str, str, str]] = []  # declaration, name, value
    watch = ", watch" if debug else ""
    for name, c_type in scalars.items():
        place = f"*scratch_{name}(s, i)" if fields[name].scratch else f"s.field_{name}[i]"
        members.append((f"{c_type} &", name, f"v.{name}" if one_lane else place))
    for name, field in arrays.items():
        size, columns = int(np.prod(field.sizes)), field.sizes[-1]
        place = f"scratch_{name}(s, i)" if field.scratch else f"s.field_{name} + field_offset(i, {size})"
        checked = f"{watch}, {indexed.index(name)}, {size}" if debug else ""
        stride = "scratch_stride(s)" if field.scratch else "s.num_envs"
        if name in few:
            place, stride = f"v.{name}", "1"
        members.append((f"Array<{C_TYPES[field.dtype]}, {columns}> ", name, f"{{{place}, {stride}{checked}}}"))
    for name, table in program["tables"].items():
        members.append(pointer(f"const {C_TYPES[str(table.dtype)]}", name, f"s.table_{name}", table.size))
    agent = "i" if lay.agents == 1 else "i * AGENTS"
    mask = f"s.action_mask + {agent} * MASK_SIZE" if lay.mask_size else "nullptr"
    seen = "s.observation + i * row_size(s)"
    if single:
        if lay.action_size == 1 and lay.action_dtype == "int32":
            members.append(("const int ", "action", f"legal_action(s.action[i], {mask}, 0, 0)"))
        else:
            members.append(("Actions ", "action", f"{{s.action + i * ACTION_SIZE, {mask}{watch}}}"))
        members.append(("float &", "reward", "v.reward[0]" if branchless else "s.reward[i]"))
        members.append(("u8 &", "terminated", "v.terminated" if branchless else "s.terminated[i]"))
        members.append(pointer("Observation", "observation", seen, "OBSERVATION_SIZE", "NUMBER_OF"))
        if lay.mask_size:
            members.append(pointer("i8", "action_mask", "s.action_mask + i * MASK_SIZE", "MASK_SIZE", "NUMBER_OF"))
    else:
        members.append(("Actions ", "action", f"{{s.action + {agent} * ACTION_SIZE, {mask}{watch}}}"))
        reward = "v.reward" if branchless else f"s.reward + {agent}"
        members.append(pointer("float", "reward", reward, "AGENTS"))
        if program["form"].packed:
            members.append(("u8 &", "terminated", "v.over"))
        elif not branchless:
            members.append(pointer("u8", "terminated", f"s.terminated + {agent}", "AGENTS"))
            members.append(pointer("const u8", "alive", f"s.alive + {agent}", "AGENTS"))
        members.append(rows("Observation", "observation", seen, "OBSERVATION_SIZE"))
        if lay.mask_size:
            members.append(rows("i8", "action_mask", f"s.action_mask + {agent} * MASK_SIZE", "MASK_SIZE"))
    if program["windowed"]:  # where rows belong whose parts are assembled elsewhere
        members.append(("Observation *", "gz_rows", seen))
        if lay.mask_size:
            members.append(("i8 *", "gz_mask_rows", f"s.action_mask + {agent} * MASK_SIZE"))
    if lay.state_space is not None:
        members.append(pointer("StateNumber", "state", "nullptr", "STATE_SIZE"))
    members.append(("u8 &", "over", "v.over" if one_lane else "s.over[i]"))
    members.append(("Config ", "cfg", "load_config(s, i)"))
    members.append(("u64 ", "seed", "s.seed[i]"))
    members.append(("u32 ", "episode", "episode"))
    members.append(("int ", "t", "t"))
    members.append(("int ", "max_steps", "max_steps"))
    if debug:
        members.append(("Watch ", "gz_watch", "watch"))

    # GCC vectorises rows of 1, 2, 3, 4, 8, ... values; others only where it does not know how long they are.
    size = lay.agents * lay.observation_size
    unknown = branchless and size & (size - 1) and size != 3
    yield "GZ i64 row_size(const Store &s) {"
    yield f"  (void)s;\n  return {size}{' + (s.num_envs < 0)' if unknown else ''};\n}}"
    yield from _lengths(lay)
    yield "struct Env {\n  using Number = float;\n  using Integer = int;"
    yield from (f"  {c_type}{name};" for c_type, name, _ in members)
    if single or branchless or program["form"].packed:
        pass
    elif not debug:
        yield "  GZ_MEMBER void terminate(int agent) const { terminated[agent] = 1; }"
    else:
        number = indexed.index("terminate")
        yield "  GZ_MEMBER void terminate(const Subscript &agent) const {"
        yield f"    if (gz_watch.admits(agent, AGENTS, {number}, FLAT, 0)) terminated.data[agent.value] = 1;\n  }}"
    yield "  GZ_MEMBER void terminate_all() const { over = 1; }"
    yield "};"
    yield "GZ void see(Env &e, Observation *row) {"
    yield f"  e.observation{'' if single and not debug else '.data'} = row;\n}}"
    if lay.mask_size:
        yield "GZ void see_masks(Env &e, i8 *row) {"
        yield f"  e.action_mask{'' if single and not debug else '.data'} = row;\n}}"
    if lay.state_space is not None:
        yield "GZ void see_state(Env &e, StateNumber *row) {"
        yield f"  e.state{'.data' if debug else ''} = row;\n}}"
    yield "GZ Env bind(const Store &s, State &v, i64 i, u32 episode, int t, int max_steps) {\n  (void)v;"
    if debug:
        yield "  const Watch watch = {s.faults + i * LANES + lane(), t};"
    yield "  return {" + ",\n          ".join(value for _, _, value in members) + "};\n}"
    yield from _forget(program["scratch"])


def _random_order(rules: Sequence[Piece], env: EnvDef, cfg: Config, lay: Layout) -> dict[str, Field]:
    """The scratch of ``in_random_order``: keys, order, and a CPU's buckets: where they begin, and keys in order."""
    sizes = {"AGENTS": lay.agents, **{f"{group.upper()}S": n for group, n in lay.groups.items() if group != "agent"}}
    sizes |= resolve_constants(env, cfg)
    for name, kind in config_types(env.Config).items():
        if kind is int:
            sizes |= dict.fromkeys((f".cfg.{name}", f"Config::{name}"), getattr(cfg, name))
    most = 0
    for place, text in counts(rules, "in_random_order"):
        known = text[text.find(".cfg.") :] if ".cfg." in text else text
        if not text.isdigit() and known not in sizes:
            raise DialectError(
                f"{place}: in_random_order(e, {text}, ...): give AGENTS, the size of a group, a name of constants(), "
                "e.cfg.name where it is an int, or a number, so that there is room for as many."
            )
        most = max(most, 1, int(text) if text.isdigit() else sizes[known])
    return {"random_order": Field("uint32", (4, most), scratch=True)} if most else {}


def program(
    env: EnvDef,
    cfg: Config,
    per_env: PerEnv | None = None,
    lanes: int | None = None,
    debug: bool = False,
) -> Program:
    """Generates the program of a game for one configuration.

    Args:
        env: the declaration.
        cfg: the configuration.
        per_env: the float parameters that have a value per env, with these values, or that each episode draws.
        lanes: overrides the declared number of lanes (results do not depend on it).
        debug: the form that checks every index of the rules; results do not depend on it.

    Raises:
        ValueError: a declaration or rules that break the dialect; the message names file, line and rule. Or more
            arrays than a GPU's kernels take.
    """
    per_env = per_env or {}
    lay = layout_of_all(env, cfg, per_env)
    declared = resolve_fields(env, cfg, lay)
    rules = inline_includes(type(env).source())
    entries = (*ENTRIES, "state") if lay.state_space is not None else ENTRIES
    check_rules(rules, {n: f.dtype for n, f in declared.items()}, entries, env.packed, env.chooses)
    _check_names(rules)
    fields = {n: f for n, f in declared.items() if not f.scratch}
    scratch = {n: f for n, f in declared.items() if f.scratch} | _random_order(rules, env, cfg, lay)
    lanes = env.lanes(cfg) if lanes is None else lanes
    options = {name: getattr(cfg, name) for name, kind in config_types(env.Config).items() if kind is bool}
    windowed = in_windows(rules, entries, options) if lanes > 1 and not debug and not env.packed else None
    if env.packed:
        packed.check_packed(env, lay, declared, env.lanes(cfg))
        lanes = 1
    if lanes not in [2**k for k in range(11)]:
        raise ValueError(f"{env.id}: lanes must be a power of two from 1 to 1024, not {lanes}.")
    params = tuple(n for n, kind in config_types(env.Config).items() if kind is float)
    tables = {n: np.ascontiguousarray(t) for n, t in env.tables(cfg).items()}
    env_bytes = sum(int(np.prod(f.sizes)) * np.dtype(f.dtype).itemsize for f in fields.values())
    env_bytes += lay.agents * (lay.observation_size * np.dtype(lay.observation_dtype).itemsize + 16) + 16
    tile = max(1, min(512, 65536 // env_bytes))
    form = choose(env, lay, fields | scratch, lanes, rules)
    # Whole vectors: of bytes, as the flags are, there are 64 in the longest.
    tile = (
        max(tile - tile % 64, 64)
        if form.branchless or form.packed
        else next((tile - tile % n for n in (64, 16) if tile > n), tile)
    )
    facts: dict[str, Any] = {
        "env": env,
        "cfg": cfg,
        "layout": lay,
        "fields": fields,
        "scratch": scratch,
        "tables": tables,
        "lanes": lanes,
        "single": type(env).single(),
        "branchless": form.branchless,
        "form": form,
        "tile": tile,
        "debug": debug,
        "windowed": windowed is not None,
        "indexed": (*_INDEXED, *fields, *scratch, *tables, "state"),
    }
    in_memory = {n: f for n, f in scratch.items() if f.shape or lanes > 1}
    drawn = {name: x for name, x in per_env.items() if isinstance(x, Uniform)}
    store = _store(env, lay, fields | in_memory, params, drawn, tables, debug)
    types = {name: C_TYPES[str(table.dtype)] for name, table in tables.items()}
    packs = packed.pack_env(lay, type(env).single(), fields, scratch, types) if env.packed else ()
    if 8 * len(store) > _MOST_BYTES:
        raise ValueError(
            f"{env.id}: fields, parameters, tables and the engine's own arrays are {len(store)}, but a GPU's kernels "
            f"take {_MOST_BYTES // 8} at most: put several scalar fields into one field with a shape."
        )
    config, load_config = "\n".join(_config(env, cfg, per_env)).split("//LOAD_CONFIG")
    generated = [
        '#line 1 "generated"',
        "namespace gz {",
        *_constants(facts),
        config,
        "struct Control {\n  int mode, max_steps;\n};",
        "struct Store {",
        *(f"  {c_type} {name};" for c_type, name in store),
        "};",
        load_config,
        *_actions(lay, facts["single"], debug, env.chooses),
        *_scratch(in_memory),
        *((_by_width(_env(facts), packs),) if env.packed else _env(facts)),
        *_chosen_action(lay, env.chooses),
        "}  // namespace gz",
    ]
    parts = [
        *["#define GZ_DEBUG"] * debug,
        f"#define GZ_PACKED {int(env.packed)}",
        *["#define GZ_PACK_WIDTH 1"] * (debug or not env.packed),  # the checked form goes env by env
        f"#define LANES {lanes}",
        f"#define GZ_BRANCHLESS {int(form.branchless)}",
        f"#define GZ_APART {int(form.apart)}",
        f"#define GZ_SHORT {int(form.short)}",
        f"#define GZ_CHOOSES {int(env.chooses)}",
        f"#define GZ_CHOOSES_PARTS {int(env.chooses and lay.action_size > 1)}",
        f"#define GZ_WINDOWED {int(windowed is not None)}",
        _header("base.cuh"),
        "#ifdef GZ_SIMT",
        _header("simt.cuh"),
        "#endif",
        _header("math.cuh"),
        _header("rng.cuh"),
        *[_header("packed.cuh")] * env.packed,
        _header("prelude.cuh"),
        _header("nearest.cuh"),
        _header("checked.cuh" if debug else "arrays.cuh"),
        *generated,
        "namespace gz {",
        *([f'#line 1 "{env.id}, generated"', made] if (made := env.generated(cfg)) else ()),
        *(piece.text for piece in windowed or rules),
        "}  // namespace gz",
        "#if GZ_THREADS",
        _header("rows.cuh"),
        "#endif",
        _header("episode.cuh"),
        "#if GZ_THREADS",
        _header("walk_gpu.cuh"),
        "#else",
        _header("threads.cuh"),
        _header("host.cuh"),
        *(["#if GZ_PACK_WIDTH > 1", _header("walk_packed.cuh"), "#else"] if env.packed else ()),
        _header("walk_cpu.cuh"),
        *["#endif"] * env.packed,
        "#endif",
    ]
    return Program(
        env=env,
        cfg=cfg,
        layout=lay,
        fields=fields,
        scratch=in_memory,
        lanes=lanes,
        form=form,
        per_env=frozenset(per_env),
        params=params,
        tables=tables,
        store=tuple(name for _, name in store),
        indexed=facts["indexed"],
        debug=debug,
        code="\n".join(parts) + "\n",
    )
